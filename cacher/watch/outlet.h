/* An outlet: where the watchers of one cacher that live on one runner get their events, on that runner's
 * thread.
 *
 * The cacher's actor marks lanes dirty and posts messages; the outlet's actor does the rest: it takes each
 * event once per lane, hands arrays to the sinks, parks who takes less, walks initial states, ends watchers.
 * A sink without a runner belongs to the inline outlet, run by the cacher's own actor after each batch; a
 * pulled watcher is the only one of its own outlet, run by whoever calls vd_watcher_next.
 *
 * An outlet on a runner ends with its last watcher, and the last watcher's `closed` comes when its actor is
 * gone, so a runner may be freed then.
 */
#ifndef VDI_OUTLET_H
#define VDI_OUTLET_H

#include <stdatomic.h>

#include "base.h"
#include "lane.h"
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
	struct vdi_watchers *watchers; /* lent; good until is_shut */
	struct vd_runner     runner;
	struct vd_actor	    *actor;
	atomic_uint	     closing; /* CLOSE messages posted and not handled */
	struct vdi_dump_part
		*_Atomic dumps; /* who wants to know what is here; posted under the registry lock */

	/* Registry lock. */
	struct vdi_outlet  *next;
	struct vdi_outlet **place;    /* PULLED */
	size_t		    attached; /* watchers opened and not detached */

	struct vdi_lock lock; /* VDI_LOCK_CACHE_WATCHER */

	/* Under lock. */
	struct vd_watcher *inbox_first;
	struct vd_watcher *inbox_last;
	struct vdi_lane	  *dirty_first;
	struct vdi_lane	  *dirty_last;
	uint32_t	   end_generation; /* all watchers up to this one end */
	bool		   end_wanted;
	bool		   is_shut;
	bool		   is_running; /* PULLED */
	struct vdi_wait	  *waiter;     /* PULLED */
	int		   fd;	       /* PULLED; -1: none */

	/* The outlet. */
	struct vdi_lane	  *lanes;
	struct vd_watcher *busy_first;
	struct vd_watcher *busy_last;
	struct vd_watcher *failed; /* lagging without a lane: an ERROR event is due */
	struct vd_watcher *closed; /* their callback is due when the run is over */
};

/* For watchers of a runner (NULL: inline); creates it if there is none. Counts one watcher as attached. Any
 * thread. VD_NOMEM, VD_FULL, VD_CLOSED. */
VDI_MUST_USE vd_status vdi_outlet_get(struct vdi_watchers *watchers, const struct vd_runner *runner,
				      struct vdi_outlet **ret_outlet);
/* For one pulled watcher. */
VDI_MUST_USE vd_status vdi_outlet_new(struct vdi_watchers *watchers, enum vdi_outlet_kind kind,
				      struct vdi_outlet **ret_outlet);
struct vdi_outlet     *vdi_outlet_ref(struct vdi_outlet *outlet);
struct vdi_outlet     *vdi_outlet_unref(struct vdi_outlet *outlet);
/* A watcher was never joined and is not going to be: undo of _get. */
void vdi_outlet_put(struct vdi_outlet *outlet);

/* A message to a watcher; coalesces. false: it is detached already, nothing was posted. Any thread. */
bool vdi_outlet_post(struct vd_watcher *watcher, uint8_t message);
/* Events from position on matched. The cacher's actor. */
void vdi_outlet_post_dirty(struct vdi_lane *lane, uint64_t from);
/* Everything up to generation ends with VD_CLOSED. */
void vdi_outlet_post_end(struct vdi_outlet *outlet, uint32_t generation);
/* The cacher drains: it looks who can end. */
void vdi_outlet_wake(struct vdi_outlet *outlet);
/* One bounded round; true: there is more to do. Not at the same time from two threads. */
bool vdi_outlet_run(struct vdi_outlet *outlet);
/* The same for a pulled outlet, which two threads may want to run: false when another one is at it. */
bool vdi_outlet_try_run(struct vdi_outlet *outlet, bool *ret_more);
/* Nothing is accepted any more; the cacher's end. */
void vdi_outlet_shut(struct vdi_outlet *outlet);
/* Whether a run would find anything. Any thread. */
/* A pulled outlet was run by somebody else: whoever waits for it looks again. */
void vdi_outlet_tell(struct vdi_outlet *outlet);
bool vdi_outlet_has_work(struct vdi_outlet *outlet);

#endif
