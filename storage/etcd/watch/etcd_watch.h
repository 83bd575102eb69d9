/* The watcher of an etcd client: many watches over few streams.
 *
 *   user's threads                    the set's actor                            transport's thread
 *   vd_etcd_watch_open, close, -->    streams: a state machine for    <-- queue --   messages, ends
 *   progress: a command               each (etcd_watch_stream, _dispatch)
 *   vd_etcd_watch_next         <--    the buffer of each watch (etcd_watch)
 *
 * One actor per client owns all streams: it decodes, matches responses to watches, keeps resume positions and
 * fills buffers. It never waits for a reader: a watch with a full buffer is paused (canceled at the server,
 * and created again from its next revision once it was read). So other watches continue, and memory is
 * bounded.
 *
 * A watch has up to three references: its user's, the set's (until it ended), and the command list's. A
 * user's call reaches the set only through watch->set with the watch's lock held, and the set clears that
 * before it releases a watch. So a watch may outlive its client, and either may be closed first.
 *
 * Mirrors etcd client/v3/watch.go; differences are described where they are.
 */
#ifndef VDI_ETCD_WATCH_H
#define VDI_ETCD_WATCH_H

#include <stdatomic.h>
#include <sys/queue.h>
#include <vedette/etcd.h>

#include "base.h"
#include "etcd_wire.h"
#include "lock.h"
#include "sm.h"

struct vdi_etcd_watch_set;
struct vdi_etcd_watch_stream;

/* A response in a watch's buffer: whole revisions, or the creation. */
struct vdi_etcd_watch_batch {
	struct vdi_etcd_watch_batch *next;
	struct vd_etcd_header	     header;
	size_t			     bytes; /* its size as counted in the buffer */
	size_t			     event_count;
	bool			     created;
	struct vd_store_event	     events[]; /* each owns kv and previous */
};

/* Makes a batch of the first count events, which it takes over; the others stay. VD_NOMEM: events is
 * unchanged. */
VDI_MUST_USE vd_status vdi_etcd_watch_batch_new(const struct vd_etcd_header *header,
						struct vdi_etcd_wire_events *events, size_t count,
						struct vdi_etcd_watch_batch **ret_batch);
void		       vdi_etcd_watch_batch_free(struct vdi_etcd_watch_batch *batch);
/* Removes the first count events, which have another owner now. */
void vdi_etcd_watch_events_forget(struct vdi_etcd_wire_events *events, size_t count);

/* Reason of an end, shared by all watches that ended for it. */
struct vdi_etcd_watch_end {
	_Atomic uint32_t     references;
	struct vd_etcd_error error;
};
/* Returns an end with one reference for the caller; NULL if out of memory: watches then end with the code
 * alone. */
struct vdi_etcd_watch_end *vdi_etcd_watch_end_new(const struct vd_etcd_error *error);
void			   vdi_etcd_watch_end_unref(struct vdi_etcd_watch_end *end);

/* Fragments of an incomplete response. */
struct vdi_etcd_watch_partial {
	struct vd_etcd_header	    header; /* of the first fragment */
	struct vdi_etcd_wire_events events;
};

/* Unconfirmed progress: a progress response that does not cover this watch may have been on its way when the
 * watch was created (etcd_watch_dispatch.c). */
struct vdi_etcd_watch_unconfirmed {
	uint64_t requests; /* progress requests sent on the connection before the create */
	vd_rev	 revision; /* the server's revision at the creation; 0: not in the response */
};

/* States of a watch:
 *
 *   WAITING --create sent--> CREATING --Created--> ESTABLISHED --buffer full--> PARKED
 *   CREATING, ESTABLISHED --stream lost--> WAITING
 *   PARKED --read--> WAITING
 *   CREATING --closed--> ABANDONED --Created, or stream lost--> ENDED
 *   any other --closed, canceled, failed--> ENDED
 */
enum vdi_etcd_watch_state {
	VDI_ETCD_WATCH_WAITING,	  /* for its turn to be created */
	VDI_ETCD_WATCH_CREATING,  /* the create request is sent; the server answers creates in their order */
	VDI_ETCD_WATCH_ABANDONED, /* closed while being created: keeps its place until the response */
	VDI_ETCD_WATCH_ESTABLISHED, /* has an id */
	VDI_ETCD_WATCH_PAUSED,	    /* not at the server; waits for its reader */
	VDI_ETCD_WATCH_ENDED,
	VDI_ETCD_WATCH_STATE_COUNT
};

/* Commands of a user to the set; one bit each. */
enum vdi_etcd_watch_want {
	VDI_ETCD_WATCH_WANT_OPEN = 1,
	VDI_ETCD_WATCH_WANT_CLOSE = 2,
	VDI_ETCD_WATCH_WANT_RESUME = 4, /* the reader of a paused watch has made room */
	VDI_ETCD_WATCH_WANT_PROGRESS = 8,
};

struct vd_etcd_watch {
	/* Fixed at creation. */
	void (*ready)(void *arg);
	void			       *ready_arg;
	const struct vd_watch_observer *observer; /* NULL: none */
	struct vdi_usage	       *usage;	  /* of the client; NULL: not counted */
	struct vdi_etcd_watch_stream   *stream;	  /* only used by the actor, until ENDED */
	size_t				buffer_bytes_max;
	uint32_t			key_size;
	uint32_t			range_end_size;
	bool				previous : 1;
	bool				progress : 1;
	bool				fragment : 1;
	bool				no_put : 1;
	bool				no_delete : 1;

	_Atomic uint32_t references;

	/* Under the set's lock. */
	uint8_t wants; /* not 0: in the command list, which has a reference */
	TAILQ_ENTRY(vd_etcd_watch) command_node;

	/* Under lock. */
	struct vdi_lock		      lock;
	bool			      is_closed; /* by its user */
	bool			      is_armed;	 /* ready must be called */
	bool			      is_full;	 /* paused, or about to be */
	bool			      has_progress;
	vd_status		      end_status; /* VD_OK: not ended */
	struct vdi_etcd_watch_set    *set;	  /* NULL: no longer in a set */
	struct vdi_etcd_watch_batch  *first;
	struct vdi_etcd_watch_batch **last;
	size_t			      buffered_bytes;
	struct vd_etcd_header	      progress_header; /* of progress that follows all batches */
	vd_rev			      end_compacted;
	struct vdi_etcd_watch_end    *end;

	/* Only the caller of next, one at a time. */
	struct vdi_etcd_watch_batch *borrowed;

	/* The set's actor only. */
	TAILQ_ENTRY(vd_etcd_watch) stream_node; /* in the list of its state */
	/* the server's revision at the first creation; 0: no response yet; read by any thread */
	_Atomic vd_rev created_revision;
	bool	       reports_created; /* report the first Created response to the user, once */
	bool	       has_heard; /* events or progress received since the creation on this connection */
	struct vdi_sm  sm;
	int64_t	       id;
	vd_rev	       next_revision; /* start revision of the next create; 0: now */
	/* Lower events are dropped: before the requested start, or already delivered. */
	vd_rev			       floor_revision;
	struct vdi_etcd_watch_partial *partial;
	/* NULL: the next progress response also covers this watch */
	struct vdi_etcd_watch_unconfirmed *unconfirmed;

	char text[]; /* key, range_end */
};
TAILQ_HEAD(vdi_etcd_watch_list, vd_etcd_watch);

static inline struct vd_bytes vdi_etcd_watch_key(const struct vd_etcd_watch *watch)
{
	return (struct vd_bytes) { watch->text, watch->key_size };
}
static inline struct vd_bytes vdi_etcd_watch_range_end(const struct vd_etcd_watch *watch)
{
	return (struct vd_bytes) { watch->text + watch->key_size, watch->range_end_size };
}

static inline void vdi_etcd_watch_drop_unconfirmed(struct vd_etcd_watch *watch)
{
	vdi_free(watch->unconfirmed);
	watch->unconfirmed = NULL;
}

void vdi_etcd_watch_unref(struct vd_etcd_watch *watch);

extern const struct vdi_sm_table vdi_etcd_watch_table;

/* ---- The actor's end of a watch's buffer ---- */

/* Takes over batch. Returns true if the buffer is now full; the reader will request to resume. */
bool vdi_etcd_watch_put(struct vd_etcd_watch *watch, struct vdi_etcd_watch_batch *batch);
/* Stores progress up to header->revision; replaces progress that is last in the buffer and unread. */
void vdi_etcd_watch_put_progress(struct vd_etcd_watch *watch, const struct vd_etcd_header *header);
/* Calls the watch's observer, if it has one and the user has not closed the watch. */
void vdi_etcd_watch_report(struct vd_etcd_watch *watch, enum vd_watch_fault_kind kind, vd_rev revision,
			   struct vd_bytes key, const char *text);
/* Stores the end, which is the last thing a reader gets. After it the set is done with the watch; its
 * reference must be dropped by the caller. end may be NULL. */
/* Returns the server's revision at the first creation; 0: no response yet. For the reader, after its last
 * response. */
static inline vd_rev vdi_etcd_watch_created(const struct vd_etcd_watch *watch)
{
	return atomic_load_explicit(&watch->created_revision, memory_order_relaxed);
}
void vdi_etcd_watch_put_end(struct vd_etcd_watch *watch, vd_status status, vd_rev compacted,
			    struct vdi_etcd_watch_end *end);

#endif
