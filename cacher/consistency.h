/* The consistency checker: from time to time the cache is compared with the store, both at one revision.
 *
 * Part of the cacher's actor; one page of the store at a time, so that no event waits for a comparison. Two
 * digests are made as upstream does (FNV-1, 64 bits, over namespace "/" name "/" revision of every object in
 * key order); the bytes of the objects are compared too. Mirrors kubernetes/apiserver
 * pkg/storage/cacher/consistency/checker.go (R-5A0..R-5A3). A difference is counted and logged with the first
 * object that differs, and exact reads go to the store until a later check succeeds; what else happens is an
 * option.
 */
#ifndef VDI_CONSISTENCY_H
#define VDI_CONSISTENCY_H

#include "periodic.h"

struct vd_cacher;

#define VDI_CONSISTENCY_PAGE 500

/* interval.ns <= 0: off. Jitter is drawn from env. */
void vdi_consistency_init(struct vdi_consistency *check, const struct vd_env *env, vd_dur interval);
/* A step, if one is due. Returns when to call again. */
vd_mono vdi_consistency_run(struct vd_cacher *cacher);
/* No call is open. */
void vdi_consistency_fini(struct vdi_consistency *check);
/* "none", "success", "failure", "error". */
const char *vdi_consistency_verdict_name(enum vdi_consistency_verdict verdict);

#endif
