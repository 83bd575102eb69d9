/* Data shared by all watch streams of a server: their list, their counts, and events encoded once for all
 * watchers.
 *
 * A frame is a WatchResponse without its watch_id, which is in the head of each message. Watchers that get
 * the same events at the same time find the frame made by the first of them. Any thread; nothing blocks.
 */
#ifndef VDI_SERVE_WATCHES_H
#define VDI_SERVE_WATCHES_H

#include <sys/queue.h>

#include "serve_call.h"

/* Maximum number and size of kept frames: enough for a few consecutive events, or those of one large
 * transaction, sent to many watchers. */
#define VDI_WATCH_FRAMES 32
#define VDI_WATCH_FRAME_EVENTS_MAX 1024
#define VDI_WATCH_FRAME_BYTES_MAX ((size_t) 128 << 10)

struct vdi_serve_watches;
struct vdi_watch_stream;

struct vdi_watch_frame {
	const struct vd_store_event *events;
	size_t			     event_count;
	vd_rev			     revision; /* of the header */
	bool			     previous;
	bool			     is_fragment;
};

VDI_MUST_USE vd_status vdi_serve_watches_new(struct vdi_etcdserver     *server,
					     struct vdi_serve_watches **ret_watches);
/* No stream may be left. NULL is fine; returns NULL. */
struct vdi_serve_watches *vdi_serve_watches_free(struct vdi_serve_watches *watches);
/* Notifies every stream of the stop. */
void vdi_serve_watches_stop(struct vdi_serve_watches *watches);
/* Ends the streams of a deleted user; etcd lets them continue. Any thread. */
void vdi_serve_watches_revoke(struct vdi_serve_watches *watches, struct vd_bytes user);

/* Runs work when every stream has sent its pending events; streams whose client does not read, or that are
 * far behind, are not waited for. So a compaction ends no watcher that keeps up. Work takes over the caller's
 * reference. Any thread; work may run before this returns. */
void vdi_serve_watches_flush(struct vdi_serve_watches *watches, struct vdi_serve_call *call,
			     void (*work)(struct vdi_serve_call *call));

struct vdi_serve_watch_counts {
	int64_t streams;
	int64_t watchers;
	int64_t slow_watchers; /* not all events are delivered */
	int64_t events;	       /* ever sent, counted per watcher */
	int64_t frames;	       /* encoded */
};
void vdi_serve_watches_counts(struct vdi_serve_watches *watches, struct vdi_serve_watch_counts *ret_counts);

/* For the streams. */
LIST_HEAD(vdi_watch_stream_list, vdi_watch_stream_link);
struct vdi_watch_stream_link {
	LIST_ENTRY(vdi_watch_stream_link) node;
	void (*stop)(struct vdi_watch_stream_link *link); /* only wakes; does no work */
	void (*revoke)(struct vdi_watch_stream_link *link,
		       /* the same, if it belongs to that user */
		       struct vd_bytes user);
	void (*flush)(struct vdi_watch_stream_link *link); /* as stop: only wakes */
	atomic_bool is_flushing;			   /* vdi_serve_watches_flushed must be called */
};
void vdi_serve_watches_add(struct vdi_serve_watches *watches, struct vdi_watch_stream_link *link);
void vdi_serve_watches_remove(struct vdi_serve_watches *watches, struct vdi_watch_stream_link *link);
/* Reports that the events pending when is_flushing was set are sent, or will not be waited for. No effect if
 * is_flushing is not set. */
void vdi_serve_watches_flushed(struct vdi_serve_watches *watches, struct vdi_watch_stream_link *link);
void vdi_serve_watches_count(struct vdi_serve_watches *watches, int watchers, int slow_watchers, int events);
/* Returns the size of an event in bytes, as field 11. */
size_t vdi_watch_event_size(const struct vd_store_event *event, bool previous);
/* Returns a frame with a reference for the caller. VD_NOMEM, VD_TOO_BIG. */
VDI_MUST_USE vd_status vdi_serve_watches_frame(struct vdi_serve_watches	    *watches,
					       const struct vdi_watch_frame *frame,
					       struct vdi_rpc_blob	   **ret_blob);

#endif
