/* One transaction: a copy of its request, and its result, in one block of memory.
 *
 * Copied on the submitting thread, records and all, so that the writer only stamps revisions. Executed once
 * by the writer in a unit of its group, or, when it only reads, on the caller's thread over a published
 * state. Upstream: etcd server/etcdserver/txn/txn.go (E-450..E-459).
 */
#ifndef VDI_MVCC_TXN_H
#define VDI_MVCC_TXN_H

#include "mvcc_group.h"

/* A transaction that writes runs on the store's only writer. Its compares and ranges together look at fewer
 * records than the store has keys plus this. */
#define VDI_TXN_RECORDS_MAX (1 << 18)

struct vdi_txn_node;

struct vdi_txn {
	struct vdi_txn_node *root;
	bool		     is_read_only; /* nothing but ranges, in all branches (E-457) */
	bool		     has_puts;
	unsigned	     op_count;	 /* of the longer list */
	size_t		     size_bytes; /* keys and values, for bounds of groups */
};

/* Allocates head_size bytes for the caller, zeroed, with the copy behind it; the memory is released with
 * vdi_free after vdi_txn_fini(ret_txn). The request has passed vdi_store_check_txn. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_txn_copy(const struct vd_txn_request *request, size_t head_size, void **ret_head,
				    struct vdi_txn *ret_txn);
void		       vdi_txn_fini(struct vdi_txn *txn);

/* Runs a read-only transaction over a view. VD_TOO_LARGE_REVISION, VD_EXPIRED, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_txn_read(struct vdi_txn *txn, const struct vdi_view *view,
				    struct vd_error *reterr);
/* Runs the transaction in the unit at work. Rejections (state untouched): VD_TOO_LARGE_REVISION, VD_EXPIRED,
 * VD_LEASE_NOT_FOUND, VD_NOT_FOUND, VD_TOO_BIG (more records than VDI_TXN_RECORDS_MAX allows). VD_NOMEM: the
 * group must be restored. May be run again after that. */
VDI_MUST_USE vd_status vdi_txn_execute(struct vdi_txn *txn, struct vdi_group *group, struct vd_error *reterr);
/* After a successful run; good until vdi_txn_fini or the next run. */
const struct vd_txn_result *vdi_txn_result(const struct vdi_txn *txn);

#endif
