/* cache_watcher: one client's watch of one resource, from open to end.
 *
 * Events are kept in the shared history; a watcher is at most a position in it. While it takes all events
 * that are offered it is a member of its subscription and has no position of its own. When it takes fewer, it
 * is stuck at the first event that it did not take, and continues there when it is resumed.
 *
 *   OPENING --joined--> INITIAL --state sent--> CATCHING UP <--> MEMBER
 *   CATCHING UP becomes MEMBER when it reaches the subscription, and back when it takes fewer events.
 *   From each of these: --> ENDING --> ended
 *
 * While it opens, a watcher belongs to the caller, then to the cacher's actor. After the join it belongs to
 * its delivery worker, which alone calls the sink. It is freed when both the user (closed) and the cacher's
 * actor (left) have released it.
 */
#ifndef VDI_CACHE_WATCHER_H
#define VDI_CACHE_WATCHER_H

#include <stdatomic.h>

#include "candidates.h"
#include "delivery_worker.h"
#include "predicate.h"
#include "watch_cache.h"

/* State that only the opening needs. */
struct vdi_watch_start {
	struct vdi_fresh_waiter waiter;
	struct vd_watcher      *watcher;
	struct vdi_predicate   *predicate;
	vd_rev			revision; /* as requested, or VD_REVISION_UNSET */
	vd_rev			required; /* minimum cache revision for the initial state */
	enum vd_tristate	send_initial_events;
	vd_status		status; /* if not VD_OK, the opening fails with this */
	struct vd_error	       *error;	/* may be NULL if out of memory */
};

/* The initial state, read lazily from a snapshot. */
struct vdi_initial {
	struct vdi_candidates	    candidates;
	const struct vdi_predicate *predicate; /* the group's */
	vd_rev			    revision;
	bool			    end_bookmark;
};

#define VDI_PULL_EVENTS 32

/* Events delivered by the delivery worker and not yet taken by the caller of vd_watcher_next. Filled by the
 * thread that runs the delivery worker: the pulling thread, or the cacher's actor at its end. */
struct vdi_pull {
	/* All below: VDI_LOCK_LEAF. Events before count are unchanged until the pulling thread releases
	 * them. */
	struct vdi_lock	      lock;
	struct vd_watch_event events[VDI_PULL_EVENTS];
	size_t		      count;
	size_t		      next;
	struct vd_error	      error;
	bool		      is_ended;
	vd_status	      end_reason;
};

enum vdi_watcher_state { VDI_WATCHER_OPENING, VDI_WATCHER_LAGGING, VDI_WATCHER_MEMBER, VDI_WATCHER_ENDED };

struct vd_watcher {
	/* Fixed at creation. */
	size_t (*deliver)(void *arg, const struct vd_watch_event *events, size_t count);
	void (*ended)(void *arg, vd_status reason);
	void			   *arg;
	struct vdi_delivery_worker *worker; /* a reference; it holds a reference to its cacher */
	int64_t			    lag_bytes_max;
	vd_mono			    deadline;
	uint32_t		    lag_events_max; /* 0: none */
	bool			    allow_bookmarks;

	/* The delivery worker's lock. */
	uint8_t		   pending; /* VDI_MESSAGE_ */
	bool		   in_inbox;
	bool		   is_detached;
	struct vd_watcher *inbox_next;
	void (*closed)(void *arg);
	void *closed_arg;

	/* Any thread. */
	atomic_bool	is_closing;
	_Atomic uint8_t finished; /* VDI_FINISHED_ */

	/* Owned by the cacher's actor; while opening, by the thread that opens it. */
	bool			 in_wheel;
	bool			 had_last_bookmark; /* the one before the deadline */
	uint32_t		 generation;
	struct vd_watcher	*queue_next; /* opening, then left */
	struct vd_watcher	*wheel_next;
	struct vd_watcher      **wheel_place;
	struct vdi_subscription *subscription; /* a reference; NULL: not joined */

	/* Owned by the delivery worker; before the join, by the thread that opens it. */
	uint8_t	  state;
	bool	  is_stuck : 1; /* took fewer than offered; waits for a resume */
	bool	  in_busy : 1;
	bool	  error_due : 1; /* deliver an ERROR event, then end */
	bool	  is_owed_bookmark : 1;
	vd_status end_reason;
	union {
		struct vdi_watch_start *start;	 /* OPENING */
		struct vdi_initial     *initial; /* unless error_due; NULL: state sent */
		struct vd_error	       *error;	 /* error_due; NULL if out of memory */
	};
	vd_rev	 from_revision; /* skip events up to here, which were in the future at the start */
	uint64_t position;	/* LAGGING: first event not taken; MEMBER: index in the subscription */
	uint64_t counted_from;	/* since its join the group's sums exclude matches before this position */
	uint64_t base_events;	/* the group's sums up to position */
	uint64_t base_bytes;
	struct vd_watcher  *lagging_next;
	struct vd_watcher **lagging_place;
	struct vd_watcher  *busy_next;
};

_Static_assert(sizeof(struct vd_watcher) <= 200,
	       "a cacher may have 100,000 watchers: each is one block of at most 200 bytes");

#define VDI_FINISHED_USER 1
#define VDI_FINISHED_CACHER 2

/* Releases the user's or the cacher's part; the second release frees the watcher. */
void vdi_watcher_finish(struct vd_watcher *watcher, uint8_t part);
/* NULL when out of memory. */
struct vdi_pull *vdi_pull_new(void);
void		 vdi_pull_free(struct vdi_pull *pull);
/* The sink of a pulled watcher; arg is its struct vdi_pull. */
size_t vdi_pull_deliver(void *arg, const struct vd_watch_event *events, size_t count);
void   vdi_pull_ended(void *arg, vd_status reason);
void   vdi_watch_start_free(struct vdi_watch_start *start);
void   vdi_initial_free(struct vdi_initial *initial);
/* Returns the next object that the predicate selects, borrowed from the snapshot. NULL at the end, or when
 * the budget *comparisons (in units of vdi_predicate_cost, decreased by what is used) reaches 0. */
struct vd_object *vdi_initial_next(struct vdi_initial *initial, size_t *comparisons);

#endif
