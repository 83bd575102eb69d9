/* TxnRequest: decoded by hand into the store's request, validated as etcd does, and its response.
 *
 * Mirrors etcd server/etcdserver/api/v3rpc/key.go. The decoder recurses at most VDI_SERVE_TXN_DEPTH_MAX
 * levels and allocates in proportion to the operations it accepts, for any input.
 */
#ifndef VDI_SERVE_TXN_H
#define VDI_SERVE_TXN_H

#include <vedette/etcd.h>

#include "serve_range.h"

/* The store accepts 8 levels; upstream accepts as many as 128 operations can nest. */
#define VDI_SERVE_TXN_DEPTH_MAX 8

struct vdi_serve_op;

/* One level. request is for the store; ops and ranges are parallel to its lists. */
struct vdi_serve_txn {
	struct vd_txn_request request; /* first */
	struct vd_compare    *compares;
	struct vd_op	     *success;
	struct vd_op	     *failure;
	struct vdi_serve_op  *success_ops;
	struct vdi_serve_op  *failure_ops;
	size_t		      compare_count;
	size_t		      success_count;
	size_t		      failure_count;
};

/* Parts of an operation that the store does not need. */
struct vdi_serve_op {
	bool			    is_empty; /* no operation at all: rejected by the check */
	struct vdi_serve_range	    range;
	struct vdi_serve_txn	   *txn;
	struct vdi_serve_range_view view; /* of the response */
};

/* Writes the header of a partial response, which has only a revision. */
void vdi_serve_write_sub_header(struct vdi_wire_out *out, vd_rev revision);

/* VD_OK; VD_BAD_REQUEST: not a valid message; VD_TOO_BIG: more operations or levels than allowed; VD_NOMEM.
 * Slices point into message. */
VDI_MUST_USE vd_status vdi_serve_txn_decode(struct vd_bytes message, unsigned ops_max,
					    struct vdi_serve_txn **ret_txn);
/* NULL is fine; returns NULL. */
struct vdi_serve_txn *vdi_serve_txn_free(struct vdi_serve_txn *txn);
/* Validates as etcd. VD_ETCD_OTHER: valid. */
enum vd_etcd_code vdi_serve_txn_check(const struct vdi_serve_txn *txn, unsigned ops_max);
/* Returns the maximum growth of the store for the quota. */
int64_t vdi_serve_txn_cost(const struct vdi_serve_txn *txn);

/* Returns true if it reads a range of keys or has many operations, so that a worker must execute it. */
bool vdi_serve_txn_is_long(const struct vdi_serve_txn *txn);
/* Returns true if it can only read. Nested transactions count as writes, as upstream. */
bool vdi_serve_txn_is_read_only(const struct vdi_serve_txn *txn);
/* Returns true if it attaches keys to leases. */
bool vdi_serve_txn_has_leases(const struct vdi_serve_txn *txn);

/* Prepares views of the ranges of the chosen path; call before write. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_serve_txn_prepare(struct vdi_serve_txn *txn, const struct vd_txn_result *result);
/* Writes a TxnResponse without its header: fields 2 and 3. */
void vdi_serve_txn_write(struct vdi_wire_out *out, const struct vdi_serve_txn *txn,
			 const struct vd_txn_result *result);

/* Also used for the unary calls. False: not a valid message. */
bool vdi_serve_put_decode(struct vd_bytes message, struct vd_op *ret_op);
bool vdi_serve_delete_decode(struct vd_bytes message, struct vd_op *ret_op);
/* Validates in etcd's order; VD_ETCD_OTHER: valid. */
enum vd_etcd_code vdi_serve_put_check(const struct vd_op *op);
enum vd_etcd_code vdi_serve_range_check(const struct vdi_serve_range *range);
/* Returns 256 plus the size of key and value, as etcd. */
int64_t vdi_serve_put_cost(const struct vd_op *op);
/* Write a PutResponse and a DeleteRangeResponse without their headers. */
void vdi_serve_put_write(struct vdi_wire_out *out, const struct vd_op_result *result);
void vdi_serve_delete_write(struct vdi_wire_out *out, const struct vd_op_result *result);

#endif
