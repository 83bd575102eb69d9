/* Dispatch: passes events to the watch groups that match them, and registers and removes watchers. Runs on
 * the cacher's actor.
 *
 * An event costs the index lookups of its own keys, one evaluation per candidate group and 8 bytes per match.
 * The subscriptions of matching groups are marked dirty, and each delivery worker is woken once per batch.
 * The cost does not depend on how fast watchers take events.
 */
#ifndef VDI_DISPATCH_H
#define VDI_DISPATCH_H

#include "cacher_state.h"

struct vdi_group_match {
	struct vdi_watch_group *group;
	uint64_t		entry; /* position * 4 + type */
};

/* Matches and marks the events that the watch cache has just applied; drops their references. */
void vdi_dispatch_events(struct vd_cacher *cacher, struct vdi_applied *applied);
/* Registers the watchers queued by vd_cacher_watch. */
void vdi_dispatch_opening(struct vd_cacher *cacher);
/* Removes the watchers that have left their delivery workers. */
void vdi_dispatch_left(struct vd_cacher *cacher);
/* Ends all watchers with VD_CLOSED, because a new generation begins or the cacher stops. */
void vdi_dispatch_end_all(struct vd_cacher *cacher);
/* Queues a watcher that is ready to be registered, or that failed (start->status). Any thread. */
void vdi_dispatch_enqueue(struct vd_cacher *cacher, struct vd_watcher *watcher);
/* Frees the frames of events that are no longer recent. Returns the time of the next call. */
vd_mono vdi_dispatch_retire_frames(struct vd_cacher *cacher);
void	vdi_dispatch_fini(struct vd_cacher *cacher);

#endif
