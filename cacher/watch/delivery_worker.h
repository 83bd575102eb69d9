/* An outlet: the watchers of one cacher whose sinks run on one runner, and the actor that delivers their
 * events on that runner's thread.
 *
 * The cacher's actor marks lanes dirty and posts messages. The outlet's actor takes each event once per lane,
 * passes arrays of events to the sinks, keeps a position for each watcher that takes fewer, sends initial
 * states and ends watchers. A sink without a runner belongs to the inline outlet, which the cacher's actor
 * runs after each batch. A pulled watcher has an outlet of its own, run by the thread that calls
 * vd_watcher_next.
 *
 * An outlet on a runner ends with its last watcher. The `closed` callback of that watcher is called when the
 * outlet's actor is gone, so the runner may be freed then.
 */
#ifndef VDI_OUTLET_H
#define VDI_OUTLET_H

#include <stdatomic.h>

#include "base.h"
#include "subscription.h"
#include "lock.h"
#include "wait.h"
#include "watch_group.h"

struct vdi_dump_part;
struct vdi_watchers;

enum vdi_outlet_kind { VDI_OUTLET_ACTOR, VDI_OUTLET_INLINE, VDI_OUTLET_PULLED };

#define VDI_MESSAGE_JOIN 1
#define VDI_MESSAGE_RESUME 2
#define VDI_MESSAGE_CLOSE 4
#define VDI_MESSAGE_BOOKMARK 8
#define VDI_MESSAGE_DEADLINE 16

struct vdi_outlet {
	_Atomic uint32_t     references;
	enum vdi_outlet_kind kind;
	struct vdi_watchers *watchers; /* borrowed; valid until is_shut */
	struct vd_runner     runner;
	struct vd_actor	    *actor;
	atomic_uint	     closing; /* CLOSE messages posted and not yet handled */
	struct vdi_dump_part
		*_Atomic dumps; /* pending dumps that include this outlet; posted under the registry lock */

	/* Registry lock. */
	struct vdi_outlet  *next;
	struct vdi_outlet **place;    /* PULLED */
	size_t		    attached; /* watchers opened and not yet detached */

	struct vdi_lock lock; /* VDI_LOCK_CACHE_WATCHER */

	/* Under lock. */
	struct vd_watcher *inbox_first;
	struct vd_watcher *inbox_last;
	struct vdi_lane	  *dirty_first;
	struct vdi_lane	  *dirty_last;
	uint32_t	   end_generation; /* all watchers up to this generation end */
	bool		   end_wanted;
	bool		   is_shut;
	bool		   is_running; /* PULLED */
	struct vdi_wait	  *waiter;     /* PULLED */
	int		   fd;	       /* PULLED; -1: none */

	/* Owned by the outlet's thread. */
	struct vdi_lane	  *lanes;
	struct vd_watcher *busy_first;
	struct vd_watcher *busy_last;
	struct vd_watcher *failed; /* failed before they had a lane: an ERROR event is due */
	struct vd_watcher *closed; /* watchers whose `closed` is called after the run */
};

/* Returns the outlet of a runner (NULL: the inline outlet); creates it if there is none. Counts one attached
 * watcher. Any thread. VD_NOMEM, VD_FULL, VD_CLOSED. */
VDI_MUST_USE vd_status vdi_outlet_get(struct vdi_watchers *watchers, const struct vd_runner *runner,
				      struct vdi_outlet **ret_outlet);
/* Creates the outlet of one pulled watcher. */
VDI_MUST_USE vd_status vdi_outlet_new(struct vdi_watchers *watchers, enum vdi_outlet_kind kind,
				      struct vdi_outlet **ret_outlet);
struct vdi_outlet     *vdi_outlet_ref(struct vdi_outlet *outlet);
struct vdi_outlet     *vdi_outlet_unref(struct vdi_outlet *outlet);
/* Undoes _get for a watcher that will not be joined. */
void vdi_outlet_put(struct vdi_outlet *outlet);

/* Posts a message to a watcher; equal messages coalesce. false: the watcher is detached, nothing was posted.
 * Any thread. */
bool vdi_outlet_post(struct vd_watcher *watcher, uint8_t message);
/* Marks the lane dirty from position on. The cacher's actor. */
void vdi_outlet_post_dirty(struct vdi_lane *lane, uint64_t from);
/* Ends all watchers up to generation with VD_CLOSED. */
void vdi_outlet_post_end(struct vdi_outlet *outlet, uint32_t generation);
/* Wakes the outlet of a draining cacher, so that it ends watchers that have delivered all events. */
void vdi_outlet_wake(struct vdi_outlet *outlet);
/* Runs one bounded step; true: more work is left. Not concurrently from two threads. */
bool vdi_outlet_run(struct vdi_outlet *outlet);
/* vdi_outlet_run for a pulled outlet, which two threads may want to run; false: another thread is running
 * it. */
bool vdi_outlet_try_run(struct vdi_outlet *outlet, bool *ret_more);
/* Shuts the outlet at the cacher's end; later posts are ignored. */
void vdi_outlet_shut(struct vdi_outlet *outlet);
/* Wakes the threads that wait for a pulled outlet after another thread has run it. */
void vdi_outlet_tell(struct vdi_outlet *outlet);
/* Returns true if a run would find work. Any thread. */
bool vdi_outlet_has_work(struct vdi_outlet *outlet);

#endif
