/* Ranges over a published state, at its own revision or an older one.
 *
 * Any thread. The only lock is the log's, held briefly, and the writer never waits for a reader. A range at
 * an old revision takes the nearest retained state (the view or a mark of the log) and applies the changes in
 * between: undoes them if the state is newer, redoes them if it is older. The result is exact, as etcd's. It
 * costs the walk over the range plus the changes in between (see VDI_MVCC_LOG_MARK_SPACING).
 */
#ifndef VDI_MVCC_READ_H
#define VDI_MVCC_READ_H

#include "mvcc_log.h"

/* Consistent data that a reader works on. All borrowed. */
struct vdi_view {
	const struct vdi_btree_snapshot *keys; /* as of revision */
	vd_rev				 revision;
	vd_rev				 compacted;
	struct vdi_mvcc_log		*log;
	struct vdi_mvcc_state		*state; /* published state, at or below revision */
	/* The writer's changes since state: whole revisions, ascending. */
	const struct vd_store_event *pending;
	size_t			     pending_count;
};

/* Returns the view of a reader: the published state. */
struct vdi_view vdi_view_of_state(struct vdi_mvcc_state *state, struct vdi_mvcc_log *log);

/* Records in key order. owned: each has one reference, else they live as long as the view's keys. */
struct vdi_read {
	struct vd_range_result result;
	struct vd_kv	      *one[1]; /* avoids an allocation for a single key */
	bool		       owned;
	bool		       in_heap;
};

/* Returns VD_TOO_LARGE_REVISION or VD_EXPIRED if the view cannot serve the revision. As in etcd, a future
 * revision is checked before a compacted one. Only compares numbers. */
VDI_MUST_USE vd_status vdi_read_check(const struct vdi_view *view, vd_rev revision, struct vd_error *reterr);
/* keep: take a reference for each record, for results that must outlive the view. VD_TOO_LARGE_REVISION,
 * VD_EXPIRED, VD_NOMEM: read need not be released. */
VDI_MUST_USE vd_status vdi_read_range(const struct vdi_view *view, const struct vd_range_request *request,
				      bool keep, struct vdi_read *ret_read, struct vd_error *reterr);
/* Estimates the records that vdi_read_range examines for a request that passes vdi_read_check. O(log n). */
uint64_t vdi_read_cost(const struct vdi_view *view, const struct vd_range_request *request);
void	 vdi_read_fini(struct vdi_read *read);

#endif
