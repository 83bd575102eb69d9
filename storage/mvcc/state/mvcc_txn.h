/* A transaction: a copy of its request, and its result, in one block of memory.
 *
 * The submitting thread copies the request including its records, so that the writer only stamps revisions.
 * The writer executes it once, in a unit of its group; a read-only transaction runs on the caller's thread
 * over a published state. Upstream: etcd server/etcdserver/txn/txn.go.
 */
#ifndef VDI_MVCC_TXN_H
#define VDI_MVCC_TXN_H

#include "mvcc_group.h"

/* A transaction that writes runs on the store's only writer, so its reads are limited: its compares and
 * ranges together examine fewer records than the store has keys plus this. */
#define VDI_TXN_RECORDS_MAX (1 << 18)

struct vdi_txn_node;

struct vdi_txn {
	struct vdi_txn_node *root;
	bool		     is_read_only; /* all operations in both branches are ranges */
	bool		     has_puts;
	unsigned	     op_count;	 /* length of the longer list */
	size_t		     size_bytes; /* of keys and values; limits the size of groups */
};

/* Allocates head_size zeroed bytes for the caller, followed by the copy. To release: vdi_txn_fini(ret_txn),
 * then vdi_free of *ret_head. The request has passed vdi_store_check_txn. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_txn_copy(const struct vd_txn_request *request, size_t head_size, void **ret_head,
				    struct vdi_txn *ret_txn);
void		       vdi_txn_fini(struct vdi_txn *txn);

/* Runs a read-only transaction over a view. VD_TOO_LARGE_REVISION, VD_EXPIRED, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_txn_read(struct vdi_txn *txn, const struct vdi_view *view,
				    struct vd_error *reterr);
/* Runs the transaction in the current unit. Rejections change nothing: VD_TOO_LARGE_REVISION, VD_EXPIRED,
 * VD_LEASE_NOT_FOUND, VD_NOT_FOUND, VD_TOO_BIG (more records than VDI_TXN_RECORDS_MAX allows). VD_NOMEM: the
 * group must be restored; the transaction may then be run again. */
VDI_MUST_USE vd_status vdi_txn_execute(struct vdi_txn *txn, struct vdi_group *group, struct vd_error *reterr);
/* Call after a successful run; valid until vdi_txn_fini or the next run. */
const struct vd_txn_result *vdi_txn_result(const struct vdi_txn *txn);

#endif
