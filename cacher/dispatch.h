/* Dispatch: an event to the watch groups that want it, and the watchers' way in and out. All on the cacher's
 * actor.
 *
 * An event costs the lookups of its own keys, one evaluation per candidate group and 8 bytes per match; the
 * lanes of the groups are marked and each outlet is woken once per batch. Nothing here depends on how fast
 * anybody takes events (R-540..R-549; W-06, W-17).
 */
#ifndef VDI_DISPATCH_H
#define VDI_DISPATCH_H

#include "cacher_state.h"

struct vdi_group_match {
	struct vdi_watch_group *group;
	uint64_t		entry; /* position * 4 + type */
};

/* What the watch cache has just applied; drops the references. */
void vdi_dispatch_events(struct vd_cacher *cacher, struct vdi_applied *applied);
/* Registers what vd_cacher_watch has queued. */
void vdi_dispatch_opening(struct vd_cacher *cacher);
/* Forgets the watchers that their outlets are done with. */
void vdi_dispatch_left(struct vd_cacher *cacher);
/* Everybody ends with VD_CLOSED: a new generation begins, or the cacher stops. */
void vdi_dispatch_end_all(struct vd_cacher *cacher);
/* A watcher is ready to be registered, or has failed (start->status). Any thread. */
void vdi_dispatch_enqueue(struct vd_cacher *cacher, struct vd_watcher *watcher);
/* Lets the frames of events go that are no longer recent. Returns when to call again. */
vd_mono vdi_dispatch_retire_frames(struct vd_cacher *cacher);
void	vdi_dispatch_fini(struct vd_cacher *cacher);

#endif
