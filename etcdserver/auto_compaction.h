/* Automatic compaction (etcd server/etcdserver/api/v3compactor): off, by time (periodic), or by number of
 * revisions.
 *
 * - period T: the revision is sampled ten times every min(T, 1h). Every min(T, 1h), first after T, revisions
 *   older than T are compacted.
 * - revisions N: every 5 minutes (as etcd), or every `interval`, all but the newest N revisions are
 *   compacted.
 *
 * An actor of the pool; a failed compaction is retried at the next time.
 */
#ifndef VDI_AUTO_COMPACTION_H
#define VDI_AUTO_COMPACTION_H

#include <vedette/store.h>

#include "base.h"

struct vdi_auto_compaction;

struct vdi_auto_compaction_options {
	struct vd_store *store;	    /* borrowed; must outlive it */
	vd_dur		 period;    /* by time; 0: by revisions */
	int64_t		 revisions; /* 0 as well: off */
	vd_dur		 interval;  /* between compactions by revisions; 0: 5 minutes */
};

VDI_MUST_USE vd_status vdi_auto_compaction_new(const struct vd_env			*env,
					       const struct vdi_auto_compaction_options *options,
					       struct vdi_auto_compaction	       **ret_compaction);
/* Blocks. NULL is fine; returns NULL. */
struct vdi_auto_compaction *vdi_auto_compaction_free(struct vdi_auto_compaction *compaction);

#endif
