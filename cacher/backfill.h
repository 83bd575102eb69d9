/* Backfill: the history of a cacher that starts begins where the store's does, so watches from before a
 * restart go on and nobody lists again.
 *
 * After the first listing (at revision L) a second stream runs from the oldest revision that the store still
 * has, at most as many revisions back as the history can grow to, to L; its events go into the history and
 * nowhere else. Then the cacher is ready. Whatever goes wrong, or falls silent for more than 5 s: the history
 * just starts at L. The cacher's actor.
 */
#ifndef VDI_BACKFILL_H
#define VDI_BACKFILL_H

#include "base.h"

struct vd_cacher;

#define VDI_BACKFILL_SILENCE_MAX VD_SECONDS(5)
/* From a remote store no more revisions than these are asked for: an etcd tells the past at 1,000 of them in
 * 100 ms (E-336), and nobody is served before it is there. */
#define VDI_BACKFILL_REMOTE_MAX 10000

/* false: nothing to do. */
bool vdi_backfill_begin(struct vd_cacher *cacher);
/* Takes what came; calls vdi_reflector_fill at the end. Returns when to call again at the latest. */
vd_mono vdi_backfill_run(struct vd_cacher *cacher);
void	vdi_backfill_stop(struct vd_cacher *cacher);

#endif
