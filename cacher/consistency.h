/* The consistency checker: from time to time the cache is compared with the store, both at one revision.
 *
 * Part of the cacher's actor; one page of the store at a time, so that no event waits for a comparison. Two digests are made as upstream does (FNV-1, 64
 * bits, over namespace "/" name "/" revision of every object in key order); the bytes of the objects are compared too. Mirrors
 * kubernetes/apiserver pkg/storage/cacher/consistency/checker.go (R-5A0..R-5A3). A difference is counted and logged with the first object that differs, and
 * exact reads go to the store until a later check succeeds; what else happens is an option.
 */
#ifndef VDI_CONSISTENCY_H
#define VDI_CONSISTENCY_H

#include <stdatomic.h>

#include "base.h"
#include "btree.h"
#include "storage.h"

struct vd_cacher;

#define VDI_CONSISTENCY_PAGE 500

enum vdi_consistency_verdict { VDI_CONSISTENCY_NONE, VDI_CONSISTENCY_SUCCESS, VDI_CONSISTENCY_FAILURE, VDI_CONSISTENCY_ERROR };

struct vdi_consistency {
	/* The cacher's actor. */
	vd_mono	 due; /* VD_NEVER: off, or under way */
	bool	 is_running;
	uint64_t counts[4]; /* by verdict */
	vd_mono	 checked;   /* the last verdict */
	enum vdi_consistency_verdict verdict;
	vd_rev			     verdict_revision;
	uint64_t		     verdict_digest; /* the cache's */

	/* Of the check under way: the call's from its start to `answered`, else the actor's. */
	struct vdi_btree_snapshot snapshot;
	struct vdi_btree_cursor	  cursor;
	struct vd_object	 *head; /* the cache's object that comes next; lent by the snapshot */
	vd_rev			  revision;
	uint64_t		  cache_digest;
	uint64_t		  store_digest;
	vd_mono			  issued;
	bool			  differs;
	bool			  more;
	vd_status		  status;
	char			  difference[VD_ERROR_MESSAGE_SIZE];
	struct vd_kv		 *last; /* of the page before; owned; NULL: none */
	atomic_bool		  answered;
};

/* interval.ns <= 0: off. Jitter is drawn from env. */
void vdi_consistency_init(struct vdi_consistency *check, const struct vd_env *env, vd_dur interval);
/* A step, if one is due. Returns when to call again. */
vd_mono vdi_consistency_run(struct vd_cacher *cacher);
/* No call is open. */
void vdi_consistency_fini(struct vdi_consistency *check);
/* "none", "success", "failure", "error". */
const char *vdi_consistency_verdict_name(enum vdi_consistency_verdict verdict);

#endif
