/* The consistency checker: periodically compares the cache with the store at one revision.
 *
 * Runs on the cacher's actor and reads one page of the store at a time, so that no event waits for a
 * comparison. It computes two digests as upstream does (FNV-1, 64 bits, over namespace "/" name "/" revision
 * of every object in key order) and also compares the bytes of the objects. Mirrors kubernetes/apiserver
 * pkg/storage/cacher/consistency/checker.go. A difference is counted and logged with the first object that
 * differs, and exact reads are answered by the store until a later check succeeds. An option selects further
 * reactions.
 */
#ifndef VDI_CONSISTENCY_H
#define VDI_CONSISTENCY_H

#include "periodic.h"

struct vd_cacher;

#define VDI_CONSISTENCY_PAGE 500

/* interval.ns <= 0 disables the check. Draws the jitter from env. */
void vdi_consistency_init(struct vdi_consistency *check, const struct vd_env *env, vd_dur interval);
/* Runs one step if it is due. Returns the time of the next call. */
vd_mono vdi_consistency_run(struct vd_cacher *cacher);
/* No call into the store may be outstanding. */
void vdi_consistency_fini(struct vdi_consistency *check);
/* "none", "success", "failure", "error". */
const char *vdi_consistency_result_name(enum vdi_consistency_result result);

#endif
