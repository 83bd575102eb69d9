/* Compaction by itself (E-463; etcd server/etcdserver/api/v3compactor): off, behind a time (periodic), or
 * behind a number of revisions.
 *
 *   periodic T   the revision is sampled ten times every min(T, 1h); every min(T, 1h), first after T, what is older than T goes
 *   revision N   every 5 minutes (etcd), or as often as told, all but the newest N revisions go
 *
 * An actor of the pool; a compaction that fails is tried again at the next turn.
 */
#ifndef VDI_AUTO_COMPACTION_H
#define VDI_AUTO_COMPACTION_H

#include <vedette/store.h>

#include "base.h"

struct vdi_auto_compaction;

struct vdi_auto_compaction_options {
	struct vd_store *store;	    /* borrowed; outlives it */
	vd_dur		 period;    /* periodic; 0: by revisions */
	int64_t		 revisions; /* 0 as well: nothing is done */
	vd_dur		 interval;  /* between compactions by revisions; 0: 5 minutes */
};

VDI_MUST_USE vd_status vdi_auto_compaction_new(const struct vd_env			*env,
					       const struct vdi_auto_compaction_options *options,
					       struct vdi_auto_compaction	       **ret_compaction);
/* Blocks. NULL is fine; returns NULL. */
struct vdi_auto_compaction *vdi_auto_compaction_free(struct vdi_auto_compaction *compaction);

#endif
