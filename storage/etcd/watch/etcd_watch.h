/* The Watcher of an etcd client, inside: many watches over few streams.
 *
 *   user's threads                      the set's actor                                   transport's thread
 *   vd_etcd_watch_open, close,   -->    streams: the state machine of each     <-- queue --  messages, ends
 *   progress: a command to the set      (etcd_watch_stream, etcd_watch_dispatch)
 *   vd_etcd_watch_next           <--    the buffer of each watch (etcd_watch)
 *
 * One actor per client owns all streams: it decodes, matches answers to watches, keeps resume positions and
 * fills buffers. It never waits for a reader: a watch whose buffer is full is parked (canceled at the server,
 * created again from its next revision when it was read), so siblings go on and memory is bounded.
 *
 * A watch has up to three references: its user's, the set's (until it ended), and the command list's. A
 * user's call reaches the set only through watch->set with the watch's lock held, and the set clears that
 * before it lets a watch go; so a watch outlives its client, and closing either first is fine.
 *
 * Mirrors etcd client/v3/watch.go (rules E-230..E-285); where it differs, the rule says BETTER.
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

/* One response in a watch's buffer: whole revisions, or the creation. */
struct vdi_etcd_watch_batch {
	struct vdi_etcd_watch_batch *next;
	struct vd_etcd_header	     header;
	size_t			     bytes; /* what it counts in the buffer */
	size_t			     event_count;
	bool			     created;
	struct vd_store_event	     events[]; /* each owns kv and previous */
};

/* Takes over the first count events; the others stay. VD_NOMEM: events is as before. */
VDI_MUST_USE vd_status vdi_etcd_watch_batch_new(const struct vd_etcd_header *header,
						struct vdi_etcd_wire_events *events, size_t count,
						struct vdi_etcd_watch_batch **ret_batch);
void		       vdi_etcd_watch_batch_free(struct vdi_etcd_watch_batch *batch);
/* The first count events have another owner now. */
void vdi_etcd_watch_events_forget(struct vdi_etcd_wire_events *events, size_t count);

/* Why watches ended, shared by all that ended so. */
struct vdi_etcd_watch_end {
	_Atomic uint32_t     references;
	struct vd_etcd_error error;
};
/* One reference for the caller; NULL when out of memory: watches then end with the code alone. */
struct vdi_etcd_watch_end *vdi_etcd_watch_end_new(const struct vd_etcd_error *error);
void			   vdi_etcd_watch_end_unref(struct vdi_etcd_watch_end *end);

/* Fragments of one response that is not complete (E-275). */
struct vdi_etcd_watch_partial {
	struct vd_etcd_header	    header; /* the first one's */
	struct vdi_etcd_wire_events events;
};

/* Of a watch that was created while an answer about progress may have been on its way that does not speak for
 * it (etcd_watch_dispatch.c). */
struct vdi_etcd_watch_doubt {
	uint64_t requests; /* for progress, sent on the connection before its create */
	vd_rev	 revision; /* of the server when it was created; 0: it did not say */
};

/*   WAITING --create sent--> CREATING --Created--> ESTABLISHED --buffer full--> PARKED
 *     ^ ^                       |   \                 |    \                      | |
 *     | \______stream lost______/    closed           |     \                     | |
 *     |\_____________________________________________/       \                    | |
 *     | \________________________________________read________/\__________________/  |
 *     |                             ABANDONED --Created--> ENDED <-----------------/ closed, canceled, failed: from anywhere
 */
enum vdi_etcd_watch_state {
	VDI_ETCD_WATCH_WAITING,	  /* for its turn to be created */
	VDI_ETCD_WATCH_CREATING,  /* the request is on its way; the server answers in the order of requests */
	VDI_ETCD_WATCH_ABANDONED, /* closed meanwhile: keeps its place until the answer (E-263) */
	VDI_ETCD_WATCH_ESTABLISHED, /* has an id */
	VDI_ETCD_WATCH_PARKED,	    /* not at the server; waits for its reader */
	VDI_ETCD_WATCH_ENDED,
	VDI_ETCD_WATCH_STATE_COUNT
};

/* What a user asked of the set; one bit each. */
enum vdi_etcd_watch_want {
	VDI_ETCD_WATCH_WANT_OPEN = 1,
	VDI_ETCD_WATCH_WANT_CLOSE = 2,
	VDI_ETCD_WATCH_WANT_RESUME = 4, /* a parked one was read */
	VDI_ETCD_WATCH_WANT_PROGRESS = 8,
};

struct vd_etcd_watch {
	/* Fixed at creation. */
	void (*ready)(void *arg);
	void			       *ready_arg;
	const struct vd_watch_observer *observer; /* NULL: none */
	struct vdi_usage	       *usage;	  /* of the client; NULL: nobody asks */
	struct vdi_etcd_watch_stream   *stream;	  /* used by the actor only, until ENDED */
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
	bool			      is_armed;	 /* ready is to be called */
	bool			      is_full;	 /* parked, or about to be */
	bool			      has_progress;
	vd_status		      end_status; /* VD_OK: goes on */
	struct vdi_etcd_watch_set    *set;	  /* NULL: the set does not know it any more */
	struct vdi_etcd_watch_batch  *first;
	struct vdi_etcd_watch_batch **last;
	size_t			      buffered_bytes;
	struct vd_etcd_header	      progress_header; /* read after all batches */
	vd_rev			      end_compacted;
	struct vdi_etcd_watch_end    *end;

	/* One caller of next at a time. */
	struct vdi_etcd_watch_batch *lent;

	/* The set's actor only. */
	TAILQ_ENTRY(vd_etcd_watch) stream_node; /* in the list of its state */
	/* the server's when it first had the watch; 0: it has not answered yet; any thread reads it */
	_Atomic vd_rev created_revision;
	bool	       tells_created; /* E-241; once */
	bool	       has_heard;     /* events or progress since it was created on this connection */
	struct vdi_sm  sm;
	int64_t	       id;
	vd_rev	       next_revision;  /* E-280..E-284: where it would be created again; 0: now */
	vd_rev	       floor_revision; /* events below are not its: asked for, or delivered */
	struct vdi_etcd_watch_partial *partial;
	struct vdi_etcd_watch_doubt
		*doubt; /* NULL: answers about progress that come from now on speak for it */

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

static inline void vdi_etcd_watch_drop_doubt(struct vd_etcd_watch *watch)
{
	vdi_free(watch->doubt);
	watch->doubt = NULL;
}

void vdi_etcd_watch_unref(struct vd_etcd_watch *watch);

extern const struct vdi_sm_table vdi_etcd_watch_table;

/* ---- The actor's end of a watch's buffer ---- */

/* Takes batch over. True: the buffer is full now; the reader will ask to resume. */
bool vdi_etcd_watch_put(struct vd_etcd_watch *watch, struct vdi_etcd_watch_batch *batch);
/* Everything up to header->revision was put. Takes the place of one that stands last and was not read. */
void vdi_etcd_watch_put_progress(struct vd_etcd_watch *watch, const struct vd_etcd_header *header);
/* Tells the watch's observer, if it has one and the user has not closed the watch. */
void vdi_etcd_watch_report(struct vd_etcd_watch *watch, enum vd_watch_fault_kind kind, vd_rev revision,
			   struct vd_bytes key, const char *text);
/* The last thing that a reader sees; then the set has nothing more to do with the watch (its reference is the
 * caller's to drop). end may be NULL. */
/* The server's revision when it first had the watch; 0: it has not answered yet. The reader, after what it
 * was told last. */
static inline vd_rev vdi_etcd_watch_created(const struct vd_etcd_watch *watch)
{
	return atomic_load_explicit(&watch->created_revision, memory_order_relaxed);
}
void vdi_etcd_watch_put_end(struct vd_etcd_watch *watch, vd_status status, vd_rev compacted,
			    struct vdi_etcd_watch_end *end);

#endif
