/* What all watch streams of a server share: the list of them, their counts, and events that are encoded once
 * for everybody who wants them.
 *
 * A frame is a WatchResponse without its watch_id, which travels in the head of each message. Watchers that
 * are given the same events at the same time find the frame that the first of them made (E-1005, E-1031). Any
 * thread; nothing blocks.
 */
#ifndef VDI_SERVE_WATCHES_H
#define VDI_SERVE_WATCHES_H

#include <sys/queue.h>

#include "serve_call.h"

/* Frames that are kept, and how large they may be: what a few events in a row, or those of one large
 * transaction, to many watchers need. */
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
/* No stream is left. NULL is fine; returns NULL. */
struct vdi_serve_watches *vdi_serve_watches_free(struct vdi_serve_watches *watches);
/* Tells every stream that it is over. */
void vdi_serve_watches_stop(struct vdi_serve_watches *watches);
/* Ends the streams of a user who is not there any more. etcd lets them go on. Any thread. */
void vdi_serve_watches_revoke(struct vdi_serve_watches *watches, struct vd_bytes user);

/* work runs when every stream has sent what it had to send when this was called; one whose client does not
 * read, or that is far behind, is not waited for. So a compaction ends no watcher that kept up. The caller's
 * reference is work's. Any thread; work may run at once. */
void vdi_serve_watches_flush(struct vdi_serve_watches *watches, struct vdi_serve_call *call,
			     void (*work)(struct vdi_serve_call *call));

struct vdi_serve_watch_counts {
	int64_t streams;
	int64_t watchers;
	int64_t slow_watchers; /* behind: not everything was delivered */
	int64_t events;	       /* ever sent, for each watcher */
	int64_t frames;	       /* encoded */
};
void vdi_serve_watches_counts(struct vdi_serve_watches *watches, struct vdi_serve_watch_counts *ret_counts);

/* For the streams. */
LIST_HEAD(vdi_watch_stream_list, vdi_watch_stream_link);
struct vdi_watch_stream_link {
	LIST_ENTRY(vdi_watch_stream_link) node;
	void (*stop)(struct vdi_watch_stream_link *link); /* wakes something; does nothing itself */
	void (*revoke)(struct vdi_watch_stream_link *link,
		       /* the same, if it is that user's */
		       struct vd_bytes user);
	void (*flush)(struct vdi_watch_stream_link *link); /* the same */
	atomic_bool is_flushing;			   /* vdi_serve_watches_flushed is owed */
};
void vdi_serve_watches_add(struct vdi_serve_watches *watches, struct vdi_watch_stream_link *link);
void vdi_serve_watches_remove(struct vdi_serve_watches *watches, struct vdi_watch_stream_link *link);
/* What it had when is_flushing was set has been sent, or will not be waited for. Harmless when nothing is
 * owed. */
void vdi_serve_watches_flushed(struct vdi_serve_watches *watches, struct vdi_watch_stream_link *link);
void vdi_serve_watches_count(struct vdi_serve_watches *watches, int watchers, int slow_watchers, int events);
/* The bytes of an event, as field 11. */
size_t vdi_watch_event_size(const struct vd_store_event *event, bool previous);
/* The caller gets a reference. VD_NOMEM, VD_TOO_BIG. */
VDI_MUST_USE vd_status vdi_serve_watches_frame(struct vdi_serve_watches	    *watches,
					       const struct vdi_watch_frame *frame,
					       struct vdi_rpc_blob	   **ret_blob);

#endif
