/* cache_watcher: one client's view of one resource, from watch to end.
 *
 * Events lie in the shared history; a watcher is at most a position in it. While it takes everything it is
 * offered it is a member of its lane and has no position at all; when it takes less, it is parked at the
 * first event it did not take and goes on from there when it is resumed.
 *
 *   OPENING --joined--> INITIAL --state sent--> CATCHING UP <--took less / reached the lane--> MEMBER
 *      \___________________\__________________________\____________________________________/--> ENDING --> ended
 *
 * Opening belongs to the caller, then to the cacher's actor; from the join on the watcher belongs to its
 * outlet, which alone calls the sink. It is freed when both are done with it: the user (closed) and the
 * cacher's actor (left).
 */
#ifndef VDI_CACHE_WATCHER_H
#define VDI_CACHE_WATCHER_H

#include <stdatomic.h>

#include "candidates.h"
#include "outlet.h"
#include "predicate.h"
#include "watch_cache.h"

/* What opening needs and nobody later. */
struct vdi_watch_start {
	struct vdi_fresh_waiter waiter;
	struct vd_watcher      *watcher;
	struct vdi_predicate   *predicate;
	vd_rev			revision; /* as asked, or VD_REVISION_UNSET */
	vd_rev			required; /* R-520 step 6 */
	enum vd_tristate	send_initial_events;
	vd_status		status; /* not VD_OK: fails with this */
	struct vd_error	       *error;	/* may be NULL for want of memory */
};

/* The initial state, walked lazily. */
struct vdi_initial {
	struct vdi_candidates	    candidates;
	const struct vdi_predicate *predicate; /* the group's */
	vd_rev			    revision;
	bool			    end_bookmark;
};

#define VDI_PULL_EVENTS 32

/* What was taken from the outlet and not yet from the watcher. Filled by whoever runs the outlet: the pulling
 * thread, or the end of the cacher. */
struct vdi_pull {
	/* VDI_LOCK_LEAF: all below; events before count stay as they are until they are released by the
	 * pulling thread */
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
	void		  *arg;
	struct vdi_outlet *outlet; /* a reference, and one of its cacher */
	int64_t		   lag_bytes_max;
	vd_mono		   deadline;
	uint32_t	   lag_events_max; /* 0: none */
	bool		   allow_bookmarks;

	/* The outlet's lock. */
	uint8_t		   pending; /* VDI_MESSAGE_ */
	bool		   in_inbox;
	bool		   is_detached;
	struct vd_watcher *inbox_next;
	void (*closed)(void *arg);
	void *closed_arg;

	/* Any thread. */
	atomic_bool	is_closing;
	_Atomic uint8_t finished; /* VDI_FINISHED_ */

	/* The cacher's actor; before, whoever opens it. */
	bool		    in_wheel;
	bool		    had_last_bookmark; /* the one before the deadline */
	uint32_t	    generation;
	struct vd_watcher  *queue_next; /* opening, then left */
	struct vd_watcher  *wheel_next;
	struct vd_watcher **wheel_place;
	struct vdi_lane	   *lane; /* a reference; NULL: never joined */

	/* The outlet; before the join whoever opens it. */
	uint8_t	  state;
	bool	  is_stuck : 1; /* took less than offered; waits for a resume */
	bool	  in_busy : 1;
	bool	  error_due : 1; /* an ERROR event goes first, then the end */
	bool	  is_owed_bookmark : 1;
	vd_status end_reason;
	union {
		struct vdi_watch_start *start;	 /* OPENING */
		struct vdi_initial     *initial; /* unless error_due; NULL when it was sent */
		struct vd_error	       *error;	 /* error_due; NULL for want of memory */
	};
	vd_rev	 from_revision; /* events up to it are not wanted, though the cache did not have them yet */
	uint64_t position;	/* LAGGING: of the first event not taken; MEMBER: index in the lane */
	uint64_t counted_from;	/* matches before this position are not in the group's sums since it joined */
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

/* The user or the cacher is done with it; the second frees. */
void vdi_watcher_finish(struct vd_watcher *watcher, uint8_t part);
/* NULL when out of memory. */
struct vdi_pull *vdi_pull_new(void);
void		 vdi_pull_free(struct vdi_pull *pull);
/* The sink of a pulled watcher; arg is its struct vdi_pull. */
size_t vdi_pull_deliver(void *arg, const struct vd_watch_event *events, size_t count);
void   vdi_pull_ended(void *arg, vd_status reason);
void   vdi_watch_start_free(struct vdi_watch_start *start);
void   vdi_initial_free(struct vdi_initial *initial);
/* The next object that the predicate wants; lent while the snapshot is. NULL at the end, or when *comparisons
 * (vdi_predicate_cost), of which it takes what it uses, are used up: 0. */
struct vd_object *vdi_initial_next(struct vdi_initial *initial, size_t *comparisons);

#endif
