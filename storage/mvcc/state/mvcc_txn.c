/* The copy is a tree of nodes, one per (nested) transaction, carved from one block. A put's key and value
 * point into its record, which is built at copy time, so the record is found from the key (record_of). A run
 * has three passes over the chosen path: compare (all against the state before the transaction), check,
 * execute. Nothing changes before execution, so a rejection costs nothing. Upstream does the same. */
#include "mvcc_txn.h"

struct vdi_txn_node {
	struct vd_txn_request request; /* points into the block */
	struct vd_txn_result  result;
	struct vd_op_result  *results; /* length: that of the longer list */
	struct vdi_read	     *reads;   /* parallel to results: owner of the records of a range */
};

static struct vd_kv *record_of(const struct vd_op *op)
{
	return VDI_CONTAINER_OF(op->key.data, struct vd_kv, data);
}

static struct vdi_txn_node *node_of(const struct vd_op *op)
{
	return VDI_CONTAINER_OF(op->txn, struct vdi_txn_node, request);
}

static size_t longer_list(const struct vd_txn_request *request)
{
	return VDI_MAX(request->success_count, request->failure_count);
}

static const struct vd_op *chosen_ops(const struct vdi_txn_node *node)
{
	return node->result.succeeded ? node->request.success : node->request.failure;
}

static size_t chosen_count(const struct vdi_txn_node *node)
{
	return node->result.succeeded ? node->request.success_count : node->request.failure_count;
}

/* ---- The copy ---- */

#define ALIGNED(size) (((size) + 7) & ~(size_t) 7)

static size_t measure(const struct vd_txn_request *request);

static size_t measure_ops(const struct vd_op *ops, size_t count)
{
	size_t size = ALIGNED(count * sizeof ops[0]);

	for (size_t i = 0; i < count; i++) {
		switch (ops[i].kind) {
		case VD_OP_PUT: break;
		case VD_OP_DELETE: size += ALIGNED(ops[i].key.size) + ALIGNED(ops[i].range_end.size); break;
		case VD_OP_RANGE:
			size += ALIGNED(ops[i].range.key.size) + ALIGNED(ops[i].range.range_end.size);
			break;
		case VD_OP_TXN: size += measure(ops[i].txn); break;
		}
	}
	return size;
}

static size_t measure(const struct vd_txn_request *request)
{
	size_t size = ALIGNED(sizeof(struct vdi_txn_node)) +
		      ALIGNED(request->compare_count * sizeof(struct vd_compare)) +
		      ALIGNED(longer_list(request) * sizeof(struct vd_op_result)) +
		      ALIGNED(longer_list(request) * sizeof(struct vdi_read));

	for (size_t i = 0; i < request->compare_count; i++)
		size += ALIGNED(request->compares[i].key.size) +
			ALIGNED(request->compares[i].range_end.size) +
			ALIGNED(request->compares[i].value.size);
	return size + measure_ops(request->success, request->success_count) +
	       measure_ops(request->failure, request->failure_count);
}

struct carver {
	char  *memory;
	size_t size_bytes; /* of keys and values */
	bool   has_puts;
};

static void *carve(struct carver *carver, size_t size)
{
	void *memory = carver->memory;

	carver->memory += ALIGNED(size);
	return memory;
}

static struct vd_bytes copy_bytes(struct carver *carver, struct vd_bytes bytes)
{
	void *memory = carve(carver, bytes.size);

	if (bytes.size)
		memcpy(memory, bytes.data, bytes.size);
	carver->size_bytes += bytes.size;
	return (struct vd_bytes) { memory, bytes.size };
}

static vd_status copy_node(struct carver *carver, const struct vd_txn_request *request,
			   struct vdi_txn_node **ret_node);

/* On failure *copy is an operation without resources. */
static vd_status copy_op(struct carver *carver, const struct vd_op *op, struct vd_op *copy)
{
	struct vdi_txn_node *node = NULL;
	struct vd_kv	    *kv = NULL;
	vd_status	     status = VD_OK;

	*copy = *op;
	switch (op->kind) {
	case VD_OP_PUT:
		status = vd_kv_new(op->key, op->value, &kv);
		copy->kind = status == VD_OK ? VD_OP_PUT : VD_OP_RANGE;
		if (status == VD_OK) {
			copy->key = vd_kv_key(kv);
			copy->value = vd_kv_value(kv);
			carver->size_bytes += op->key.size + op->value.size;
			carver->has_puts = true;
		}
		break;
	case VD_OP_DELETE:
		copy->key = copy_bytes(carver, op->key);
		copy->range_end = copy_bytes(carver, op->range_end);
		break;
	case VD_OP_RANGE:
		copy->range.key = copy_bytes(carver, op->range.key);
		copy->range.range_end = copy_bytes(carver, op->range.range_end);
		break;
	case VD_OP_TXN:
		status = copy_node(carver, op->txn, &node);
		copy->txn = &node->request; /* release_ops accepts a partly built node */
		break;
	}
	return status;
}

static vd_status copy_ops(struct carver *carver, const struct vd_op *ops, size_t count,
			  const struct vd_op **ret_ops, size_t *ret_count)
{
	struct vd_op *copies = carve(carver, count * sizeof *copies);

	*ret_ops = copies;
	for (*ret_count = 0; *ret_count < count; (*ret_count)++) {
		vd_status status = copy_op(carver, &ops[*ret_count], &copies[*ret_count]);

		if (status != VD_OK) {
			++*ret_count;
			return status;
		}
	}
	return VD_OK;
}

/* *ret_node is set even on failure. */
static vd_status copy_node(struct carver *carver, const struct vd_txn_request *request,
			   struct vdi_txn_node **ret_node)
{
	struct vdi_txn_node *node = carve(carver, sizeof *node);
	struct vd_compare   *compares = carve(carver, request->compare_count * sizeof *compares);

	*ret_node = node;
	memset(node, 0, sizeof *node);
	node->results = carve(carver, longer_list(request) * sizeof node->results[0]);
	node->reads = carve(carver, longer_list(request) * sizeof node->reads[0]);
	memset(node->results, 0, longer_list(request) * sizeof node->results[0]);
	memset(node->reads, 0, longer_list(request) * sizeof node->reads[0]);
	for (size_t i = 0; i < request->compare_count; i++) {
		compares[i] = request->compares[i];
		compares[i].key = copy_bytes(carver, request->compares[i].key);
		compares[i].range_end = copy_bytes(carver, request->compares[i].range_end);
		compares[i].value = copy_bytes(carver, request->compares[i].value);
	}
	node->request.compares = compares;
	node->request.compare_count = request->compare_count;
	VDI_TRY(copy_ops(carver, request->success, request->success_count, &node->request.success,
			 &node->request.success_count));
	return copy_ops(carver, request->failure, request->failure_count, &node->request.failure,
			&node->request.failure_count);
}

static bool only_reads(const struct vd_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (ops[i].kind == VD_OP_TXN && only_reads(ops[i].txn->success, ops[i].txn->success_count) &&
		    only_reads(ops[i].txn->failure, ops[i].txn->failure_count))
			continue;
		if (ops[i].kind != VD_OP_RANGE)
			return false;
	}
	return true;
}

vd_status vdi_txn_copy(const struct vd_txn_request *request, size_t head_size, void **ret_head,
		       struct vdi_txn *ret_txn)
{
	char	      *memory = vdi_alloc(ALIGNED(head_size) + measure(request));
	struct carver  carver = { 0 };
	struct vdi_txn txn = { 0 };
	vd_status      status;

	if (memory == NULL)
		return VD_NOMEM;
	memset(memory, 0, head_size);
	carver.memory = memory + ALIGNED(head_size);
	status = copy_node(&carver, request, &txn.root);
	if (status != VD_OK) {
		vdi_txn_fini(&txn);
		vdi_free(memory);
		return status;
	}
	txn.size_bytes = carver.size_bytes;
	txn.has_puts = carver.has_puts;
	txn.op_count = (unsigned) longer_list(request);
	txn.is_read_only = only_reads(request->success, request->success_count) &&
			   only_reads(request->failure, request->failure_count);
	*ret_head = memory;
	*ret_txn = txn;
	return VD_OK;
}

/* ---- Results ---- */

static void drop_results(struct vdi_txn_node *node)
{
	for (size_t i = 0; i < longer_list(&node->request); i++) {
		struct vd_op_result *result = &node->results[i];

		for (size_t j = 0; j < result->previous_count; j++)
			vd_kv_unref(result->previous[j]);
		vdi_free(result->previous);
		vdi_read_fini(&node->reads[i]);
		memset(result, 0, sizeof *result);
	}
	memset(&node->result, 0, sizeof node->result);
}

static void drop_all_results(struct vdi_txn_node *node);

static void drop_nested_results(const struct vd_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (ops[i].kind == VD_OP_TXN)
			drop_all_results(node_of(&ops[i]));
}

static void drop_all_results(struct vdi_txn_node *node)
{
	drop_nested_results(node->request.success, node->request.success_count);
	drop_nested_results(node->request.failure, node->request.failure_count);
	drop_results(node);
}

static void release_node(struct vdi_txn_node *node);

static void release_ops(const struct vd_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (ops[i].kind == VD_OP_PUT)
			vd_kv_unref(record_of(&ops[i]));
		else if (ops[i].kind == VD_OP_TXN)
			release_node(node_of(&ops[i]));
	}
}

static void release_node(struct vdi_txn_node *node)
{
	drop_results(node);
	release_ops(node->request.success, node->request.success_count);
	release_ops(node->request.failure, node->request.failure_count);
}

void vdi_txn_fini(struct vdi_txn *txn)
{
	if (txn->root)
		release_node(txn->root);
}

const struct vd_txn_result *vdi_txn_result(const struct vdi_txn *txn)
{
	return &txn->root->result;
}

/* ---- Compare ---- */

static bool holds(enum vd_compare_result wanted, int order)
{
	switch (wanted) {
	case VD_COMPARE_EQUAL: return order == 0;
	case VD_COMPARE_GREATER: return order > 0;
	case VD_COMPARE_LESS: return order < 0;
	case VD_COMPARE_NOT_EQUAL: return order != 0;
	}
	return true;
}

static bool compare_record(const struct vd_compare *compare, const struct vd_kv *kv)
{
	int64_t number = 0;

	switch (compare->target) {
	case VD_COMPARE_VALUE:
		return kv && holds(compare->result, vd_bytes_compare(vd_kv_value(kv), compare->value));
	case VD_COMPARE_VERSION: number = kv ? kv->version : 0; break;
	case VD_COMPARE_CREATE: number = kv ? kv->create_rev : 0; break;
	case VD_COMPARE_MOD: number = kv ? kv->mod_rev : 0; break;
	case VD_COMPARE_LEASE: number = kv ? kv->lease : 0; break;
	}
	return holds(compare->result, VDI_ORDER(number, compare->number));
}

/* *left: records that the run may still examine. */
static bool compare_holds(const struct vd_compare *compare, const struct vdi_btree_snapshot *keys,
			  uint64_t *left)
{
	struct vdi_key_range	range = vdi_key_range_from_etcd(compare->key, compare->range_end);
	struct vdi_btree_cursor cursor;
	const struct vd_kv     *kv;

	if (range.single)
		return compare_record(compare, vdi_btree_snapshot_get(keys, range.from));
	vdi_btree_cursor_init(&cursor, keys);
	if (vdi_btree_cursor_range(&cursor, &range) == 0)
		return compare_record(compare, NULL);
	for (; (kv = vdi_btree_cursor_range_next(&cursor)) != NULL && *left; (*left)--)
		if (!compare_record(compare, kv))
			return false;
	return true;
}

/* Chooses the branch of this transaction and of those nested in it. If *left becomes 0, nothing is chosen. */
static void choose(struct vdi_txn_node *node, const struct vdi_btree_snapshot *keys, uint64_t *left)
{
	bool succeeded = true;

	for (size_t i = 0; succeeded && *left && i < node->request.compare_count; i++)
		succeeded = compare_holds(&node->request.compares[i], keys, left);
	node->result.succeeded = succeeded;
	for (size_t i = 0; *left && i < chosen_count(node); i++)
		if (chosen_ops(node)[i].kind == VD_OP_TXN)
			choose(node_of(&chosen_ops(node)[i]), keys, left);
}

/* ---- Check ---- */

static vd_status check_put(const struct vd_op *op, const struct vdi_view *view,
			   const struct vdi_btree_snapshot *leases, struct vd_error *reterr)
{
	if (op->lease && vdi_lease_find(leases, op->lease) == NULL)
		return vd_error_set(reterr, VD_LEASE_NOT_FOUND, "lease %016llx does not exist",
				    (unsigned long long) op->lease);
	if ((op->ignore_value || op->ignore_lease) && vdi_btree_snapshot_get(view->keys, op->key) == NULL)
		return vd_error_set(reterr, VD_NOT_FOUND,
				    "put with ignore_value or ignore_lease: the key does not exist");
	return VD_OK;
}

static void take_records(uint64_t *left, uint64_t count)
{
	*left -= VDI_MIN(*left, count);
}

/* leases: NULL if the transaction only reads. */
static vd_status check(struct vdi_txn_node *node, const struct vdi_view *view,
		       const struct vdi_btree_snapshot *leases, uint64_t *left, struct vd_error *reterr)
{
	for (size_t i = 0; i < chosen_count(node); i++) {
		const struct vd_op *op = &chosen_ops(node)[i];

		if (op->kind == VD_OP_PUT)
			VDI_TRY(check_put(op, view, leases, reterr));
		else if (op->kind == VD_OP_RANGE)
			VDI_TRY(vdi_read_check(view, op->range.revision, reterr));
		else if (op->kind == VD_OP_TXN)
			VDI_TRY(check(node_of(op), view, leases, left, reterr));
		if (op->kind == VD_OP_RANGE && leases)
			take_records(left, vdi_read_cost(view, &op->range));
	}
	return VD_OK;
}

/* ---- Execute ---- */

static vd_status keep_previous(struct vd_op_result *result, const struct vd_store_event *events, size_t count)
{
	if (count == 0)
		return VD_OK;
	result->previous = vdi_alloc(count * sizeof result->previous[0]);
	if (result->previous == NULL)
		return VD_NOMEM;
	for (size_t i = 0; i < count; i++)
		result->previous[i] = vd_kv_ref(events[i].previous);
	result->previous_count = count;
	return VD_OK;
}

static vd_status execute_put(const struct vd_op *op, struct vdi_group *group, struct vd_op_result *result)
{
	struct vd_kv	   *kv = vd_kv_ref(record_of(op));
	const struct vd_kv *stored = NULL;
	struct vd_kv	   *previous = NULL;
	int64_t		    lease = op->lease;
	vd_status	    status = VD_OK;

	if (op->ignore_value || op->ignore_lease)
		stored = vdi_btree_snapshot_get(vdi_btree_view(&group->keys), op->key);
	if (op->ignore_lease && stored)
		lease = stored->lease;
	if (op->ignore_value && stored) {
		vd_kv_unref(kv);
		VDI_TRY(vd_kv_new(op->key, vd_kv_value(stored), &kv));
	}
	status = vdi_group_put(group, kv, lease, &previous);
	vd_kv_unref(kv);
	VDI_TRY(status);
	result->revision = group->unit_revision;
	if (op->previous && previous)
		return keep_previous(result, &group->events[group->event_count - 1], 1);
	return VD_OK;
}

static vd_status execute_delete(const struct vd_op *op, struct vdi_group *group, struct vd_op_result *result)
{
	struct vdi_key_range range = vdi_key_range_from_etcd(op->key, op->range_end);
	size_t		     first;
	size_t		     count;

	VDI_TRY(vdi_group_delete(group, &range, &first, &count));
	result->deleted = (int64_t) count;
	result->revision = vdi_group_view(group).revision;
	return op->previous ? keep_previous(result, &group->events[first], count) : VD_OK;
}

/* group NULL: only reads, over view. */
static vd_status execute(struct vdi_txn_node *node, const struct vdi_view *view, struct vdi_group *group,
			 struct vd_error *reterr)
{
	for (size_t i = 0; i < chosen_count(node); i++) {
		const struct vd_op  *op = &chosen_ops(node)[i];
		struct vd_op_result *result = &node->results[i];
		struct vdi_view	     now = group ? vdi_group_view(group) : *view;

		result->kind = op->kind;
		switch (op->kind) {
		case VD_OP_PUT: VDI_TRY(execute_put(op, group, result)); break;
		case VD_OP_DELETE: VDI_TRY(execute_delete(op, group, result)); break;
		case VD_OP_RANGE:
			VDI_TRY(vdi_read_range(&now, &op->range, true, &node->reads[i], reterr));
			result->range = node->reads[i].result;
			result->revision = now.revision;
			break;
		case VD_OP_TXN:
			VDI_TRY(execute(node_of(op), view, group, reterr));
			result->txn = &node_of(op)->result;
			break;
		}
	}
	node->result.results = node->results;
	node->result.result_count = chosen_count(node);
	return VD_OK;
}

static vd_status run(struct vdi_txn *txn, const struct vdi_view *view, struct vdi_group *group,
		     struct vd_error *reterr)
{
	uint64_t left = group ? view->keys->count + VDI_TXN_RECORDS_MAX : UINT64_MAX;

	drop_all_results(txn->root);
	choose(txn->root, view->keys, &left);
	if (left)
		VDI_TRY(check(txn->root, view, group ? vdi_btree_view(&group->leases) : NULL, &left, reterr));
	if (left == 0)
		return vd_error_set(reterr, VD_TOO_BIG,
				    "transaction too large: its compares and ranges read too many records");
	return execute(txn->root, view, group, reterr);
}

vd_status vdi_txn_read(struct vdi_txn *txn, const struct vdi_view *view, struct vd_error *reterr)
{
	VDI_TRY(run(txn, view, NULL, reterr));
	txn->root->result.revision = view->revision;
	return VD_OK;
}

vd_status vdi_txn_execute(struct vdi_txn *txn, struct vdi_group *group, struct vd_error *reterr)
{
	struct vdi_view view = vdi_group_view(group);

	VDI_TRY(run(txn, &view, group, reterr));
	txn->root->result.revision = vdi_group_view(group).revision;
	return VD_OK;
}
