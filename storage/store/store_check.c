/* Validates requests (store.h). Upstream: etcd server/etcdserver/api/v3rpc/key.go, checkTxnRequest and
 * checkIntervals.
 *
 * The duplicate check walks the tree of operations and compares each put with the other operations of its
 * level. A transaction has at most VDI_TXN_OPS_TOTAL_MAX operations, so this takes at most milliseconds, on
 * the caller's thread; the usual transaction (one put) costs nothing.
 */
#include "store.h"

static vd_status check_key(struct vd_bytes key, const char *what, struct vd_error *reterr)
{
	if (key.size == 0 || key.data == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "%s: the key is empty", what);
	if (key.size > VD_KEY_SIZE_MAX)
		return vd_error_set(reterr, VD_TOO_BIG, "%s: the key has %zu bytes, more than %d", what,
				    key.size, VD_KEY_SIZE_MAX);
	return VD_OK;
}

static vd_status check_bytes(struct vd_bytes bytes, size_t size_max, const char *what,
			     struct vd_error *reterr)
{
	if (bytes.size && bytes.data == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "%s: data is NULL but size is %zu", what,
				    bytes.size);
	if (bytes.size > size_max)
		return vd_error_set(reterr, VD_TOO_BIG, "%s: %zu bytes, more than %zu", what, bytes.size,
				    size_max);
	return VD_OK;
}

vd_status vdi_store_check_range(const struct vd_range_request *request, struct vd_error *reterr)
{
	VDI_TRY(check_key(request->key, "range", reterr));
	return check_bytes(request->range_end, VD_KEY_SIZE_MAX, "range end", reterr);
}

vd_status vdi_store_check_page(const struct vd_range_result *result, struct vd_error *reterr)
{
	if (result->more && result->kv_count == 0)
		return vd_error_set(
			reterr, VD_INTERNAL,
			"no results were found, but the store indicated there were more values remaining");
	return VD_OK;
}

static vd_status check_compare(const struct vd_compare *compare, struct vd_error *reterr)
{
	VDI_TRY(check_key(compare->key, "compare", reterr));
	VDI_TRY(check_bytes(compare->range_end, VD_KEY_SIZE_MAX, "compare range end", reterr));
	if ((unsigned) compare->target > VD_COMPARE_LEASE)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "compare: unknown target %d",
				    (int) compare->target);
	return check_bytes(compare->value, VD_VALUE_SIZE_MAX, "compare value", reterr);
}

static vd_status check_put(const struct vd_op *op, struct vd_error *reterr)
{
	VDI_TRY(check_key(op->key, "put", reterr));
	VDI_TRY(check_bytes(op->value, VD_VALUE_SIZE_MAX, "put value", reterr));
	if (op->ignore_value && op->value.size)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "put: value given with ignore_value");
	if (op->ignore_lease && op->lease)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "put: lease given with ignore_lease");
	return VD_OK;
}

static vd_status check_txn(const struct vd_txn_request *request, size_t ops_max, unsigned depth,
			   size_t *total, struct vd_error *reterr);

static vd_status check_op(const struct vd_op *op, size_t ops_max, unsigned depth, size_t *total,
			  struct vd_error *reterr)
{
	switch (op->kind) {
	case VD_OP_PUT: return check_put(op, reterr);
	case VD_OP_DELETE:
		VDI_TRY(check_key(op->key, "delete", reterr));
		return check_bytes(op->range_end, VD_KEY_SIZE_MAX, "delete range end", reterr);
	case VD_OP_RANGE: return vdi_store_check_range(&op->range, reterr);
	case VD_OP_TXN:
		if (op->txn == NULL)
			return vd_error_set(reterr, VD_INVALID_ARGUMENT, "nested transaction: txn is NULL");
		return check_txn(op->txn, ops_max, depth + 1, total, reterr);
	}
	return vd_error_set(reterr, VD_INVALID_ARGUMENT, "unknown operation %d", (int) op->kind);
}

static vd_status check_txn(const struct vd_txn_request *request, size_t ops_max, unsigned depth,
			   size_t *total, struct vd_error *reterr)
{
	size_t widest =
		VDI_MAX(request->compare_count, VDI_MAX(request->success_count, request->failure_count));

	if (widest > ops_max)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "too many operations in a transaction: %zu, at most %zu here", widest,
				    ops_max);
	if (depth > VDI_TXN_DEPTH_MAX)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "transactions nested deeper than %d",
				    VDI_TXN_DEPTH_MAX);
	if ((request->compare_count && request->compares == NULL) ||
	    (request->success_count && request->success == NULL) ||
	    (request->failure_count && request->failure == NULL))
		return vd_error_set(
			reterr, VD_INVALID_ARGUMENT,
			"transaction: compares, success or failure is NULL but its count is not 0");
	*total += request->compare_count + request->success_count + request->failure_count;
	if (*total > VDI_TXN_OPS_TOTAL_MAX)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "more than %d operations in a transaction",
				    VDI_TXN_OPS_TOTAL_MAX);
	for (size_t i = 0; i < request->compare_count; i++)
		VDI_TRY(check_compare(&request->compares[i], reterr));
	for (size_t i = 0; i < request->success_count; i++)
		VDI_TRY(check_op(&request->success[i], ops_max - widest, depth, total, reterr));
	for (size_t i = 0; i < request->failure_count; i++)
		VDI_TRY(check_op(&request->failure[i], ops_max - widest, depth, total, reterr));
	return VD_OK;
}

vd_status vdi_store_check_txn(const struct vd_txn_request *request, struct vd_error *reterr)
{
	size_t total = 0;

	return check_txn(request, VDI_TXN_OPS_MAX, 1, &total, reterr);
}

vd_status vdi_store_check_watch(const struct vd_store_watch_request *request, struct vd_error *reterr)
{
	static const char zero[1];
	bool		  to_infinity = vd_bytes_equal(request->range_end, (struct vd_bytes) { zero, 1 });

	VDI_TRY(check_key(request->key, "watch", reterr));
	VDI_TRY(check_bytes(request->range_end, VD_KEY_SIZE_MAX, "watch range end", reterr));
	if (request->ready == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "watch: ready is NULL");
	if (request->start_revision < 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "watch: the start revision is negative; use 0 to start now");
	if (request->range_end.size && !to_infinity &&
	    vd_bytes_compare(request->key, request->range_end) >= 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "watch: the range is empty: key is not below range_end");
	return VD_OK;
}

/* ---- Duplicates ---- */

/* Collects the writes of a list of operations, including nested transactions. The walk uses the stack and the
 * request's own lists, so it allocates nothing; it walks a list again where upstream keeps sets. */

/* Calls visit for every put of op and the transactions below it; stops at the first true. */
static bool any_put(const struct vd_op *op, bool (*visit)(struct vd_bytes key, const void *arg),
		    const void	       *arg)
{
	if (op->kind == VD_OP_PUT)
		return visit(op->key, arg);
	if (op->kind != VD_OP_TXN)
		return false;
	for (size_t i = 0; i < op->txn->success_count; i++)
		if (any_put(&op->txn->success[i], visit, arg))
			return true;
	for (size_t i = 0; i < op->txn->failure_count; i++)
		if (any_put(&op->txn->failure[i], visit, arg))
			return true;
	return false;
}

/* Takes a range_end of one zero byte literally, as upstream does: the interval is empty. */
static bool delete_covers(const struct vd_op *op, struct vd_bytes key)
{
	if (op->range_end.size == 0)
		return vd_bytes_equal(op->key, key);
	return vd_bytes_compare(op->key, key) <= 0 && vd_bytes_compare(key, op->range_end) < 0;
}

/* Returns true if op, or an operation nested in it, deletes the key. */
static bool deletes(const struct vd_op *op, struct vd_bytes key)
{
	if (op->kind == VD_OP_DELETE)
		return delete_covers(op, key);
	if (op->kind != VD_OP_TXN)
		return false;
	for (size_t i = 0; i < op->txn->success_count; i++)
		if (deletes(&op->txn->success[i], key))
			return true;
	for (size_t i = 0; i < op->txn->failure_count; i++)
		if (deletes(&op->txn->failure[i], key))
			return true;
	return false;
}

struct siblings {
	const struct vd_op *ops;
	size_t		    count;
	size_t		    position; /* index of the operation whose puts are being compared */
};

static bool is_same_key(struct vd_bytes key, const void *arg)
{
	return vd_bytes_equal(key, *(const struct vd_bytes *) arg);
}

/* A put of a nested transaction must not collide with a put or delete of an earlier nested sibling, nor with
 * a delete of this level. A put of this level must not collide with any nested write, a delete of this level,
 * or an earlier put. */
static bool collides(struct vd_bytes key, const void *arg)
{
	const struct siblings *siblings = arg;
	bool		       nested = siblings->ops[siblings->position].kind == VD_OP_TXN;

	for (size_t i = 0; i < siblings->count; i++) {
		const struct vd_op *other = &siblings->ops[i];

		if (other->kind == VD_OP_DELETE && delete_covers(other, key))
			return true;
		if (other->kind == VD_OP_PUT && !nested && i < siblings->position &&
		    vd_bytes_equal(other->key, key))
			return true;
		if (other->kind == VD_OP_TXN && (!nested || i < siblings->position) &&
		    (any_put(other, is_same_key, &key) || deletes(other, key)))
			return true;
	}
	return false;
}

static bool list_has_duplicate(const struct vd_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct siblings siblings = { ops, count, i };

		if (ops[i].kind == VD_OP_TXN &&
		    (list_has_duplicate(ops[i].txn->success, ops[i].txn->success_count) ||
		     list_has_duplicate(ops[i].txn->failure, ops[i].txn->failure_count)))
			return true;
		if (count > 1 && any_put(&ops[i], collides, &siblings))
			return true;
	}
	return false;
}

vd_status vdi_store_check_duplicates(const struct vd_txn_request *request, struct vd_error *reterr)
{
	if (list_has_duplicate(request->success, request->success_count) ||
	    list_has_duplicate(request->failure, request->failure_count))
		return vd_error_set(reterr, VD_DUPLICATE_KEY, "duplicate key given in txn request");
	return VD_OK;
}
