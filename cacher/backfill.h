/* Backfill: gives a cacher that starts the history that the store still has, so that watches from before a
 * restart can resume and no client has to list again.
 *
 * The first list is at revision L. Then a second stream reads the events up to L, from the oldest revision
 * that the store retains, at most as many revisions back as the history can hold. These events are added to
 * the history only. Then the cacher becomes ready. If the stream fails, or is silent for more than 5 s, the
 * history starts at L. Runs on the cacher's actor.
 */
#ifndef VDI_BACKFILL_H
#define VDI_BACKFILL_H

#include "base.h"

struct vd_cacher;

#define VDI_BACKFILL_SILENCE_MAX VD_SECONDS(5)
/* Maximum revisions read from a remote store: etcd sends past events in steps of 1,000 every 100 ms, and the
 * cacher serves no request before the backfill ends. */
#define VDI_BACKFILL_REMOTE_MAX 10000

/* Starts the backfill if it applies. Returns false if there is nothing to do. */
bool vdi_backfill_begin(struct vd_cacher *cacher);
/* Takes the received events; calls vdi_reflector_fill at the end. Returns the latest time of the next
 * call. */
vd_mono vdi_backfill_run(struct vd_cacher *cacher);
void	vdi_backfill_stop(struct vd_cacher *cacher);

#endif
