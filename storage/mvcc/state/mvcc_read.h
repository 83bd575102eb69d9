/* Ranges over a visible state, at its own revision or an older one.
 *
 * Any thread; nothing here blocks beyond the log's short lock, and the writer never waits for a reader. A
 * range at an old revision takes the nearest state that is still held (the view itself or a mark of the log)
 * and puts the changes between the two over it: undone when the state is newer, redone when it is older. The
 * answer is exact (E-405, E-420..E-426); it costs the walk over the range plus the changes in between (see
 * VDI_MVCC_LOG_MARK_SPACING).
 */
#ifndef VDI_MVCC_READ_H
#define VDI_MVCC_READ_H

#include "mvcc_log.h"

/* What a reader stands on. All borrowed. */
struct vdi_view {
	const struct vdi_btree_snapshot *keys; /* as of revision */
	vd_rev				 revision;
	vd_rev				 compacted;
	struct vdi_mvcc_log		*log;
	struct vdi_mvcc_state		*state;	  /* the published state, at or below revision */
	const struct vd_store_event	*pending; /* what the writer did since state; whole, ascending */
	size_t				 pending_count;
};

/* The view of a reader: everything as published. */
struct vdi_view vdi_view_of_state(struct vdi_mvcc_state *state, struct vdi_mvcc_log *log);

/* Records in key order. owned: one reference for each, else they live as long as the view's keys. */
struct vdi_read {
	struct vd_range_result result;
	struct vd_kv	      *one[1]; /* for a single key no memory is needed */
	bool		       owned;
	bool		       in_heap;
};

/* VD_TOO_LARGE_REVISION, VD_EXPIRED: which comes first is E-422. Depends on nothing but the numbers. */
VDI_MUST_USE vd_status vdi_read_check(const struct vdi_view *view, vd_rev revision, struct vd_error *reterr);
/* keep: take a reference for each record, for results that must survive the view. VD_TOO_LARGE_REVISION,
 * VD_EXPIRED, VD_NOMEM; read need not be released then. */
VDI_MUST_USE vd_status vdi_read_range(const struct vdi_view *view, const struct vd_range_request *request,
				      bool keep, struct vdi_read *ret_read, struct vd_error *reterr);
/* An estimate of the records that vdi_read_range looks at for a request that passes vdi_read_check. O(log
 * n). */
uint64_t vdi_read_cost(const struct vdi_view *view, const struct vd_range_request *request);
void	 vdi_read_fini(struct vdi_read *read);

#endif
