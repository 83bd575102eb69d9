/* A level is decoded in two walks over its bytes. The first counts the entries of its three lists, so that
 * excessive requests are rejected before memory is allocated; the second fills the lists. */
#include "serve_txn.h"

/* ---- Puts and deletes ---- */

bool vdi_serve_put_decode(struct vd_bytes message, struct vd_op *ret_op)
{
	struct vd_op	       op = { .kind = VD_OP_PUT, .key = { "", 0 }, .value = { "", 0 } };
	struct vdi_wire_reader reader;

	vdi_wire_reader_init(&reader, message);
	while (vdi_wire_next(&reader)) {
		switch (reader.tag) {
		case VDI_WIRE_BYTES(1): op.key = reader.bytes; break;
		case VDI_WIRE_BYTES(2): op.value = reader.bytes; break;
		case VDI_WIRE_VARINT(3): op.lease = (int64_t) reader.number; break;
		case VDI_WIRE_VARINT(4): op.previous = reader.number != 0; break;
		case VDI_WIRE_VARINT(5): op.ignore_value = reader.number != 0; break;
		case VDI_WIRE_VARINT(6): op.ignore_lease = reader.number != 0; break;
		default: break;
		}
	}
	*ret_op = op;
	return !reader.is_bad;
}

bool vdi_serve_delete_decode(struct vd_bytes message, struct vd_op *ret_op)
{
	struct vd_op	       op = { .kind = VD_OP_DELETE, .key = { "", 0 }, .range_end = { "", 0 } };
	struct vdi_wire_reader reader;

	vdi_wire_reader_init(&reader, message);
	while (vdi_wire_next(&reader)) {
		switch (reader.tag) {
		case VDI_WIRE_BYTES(1): op.key = reader.bytes; break;
		case VDI_WIRE_BYTES(2): op.range_end = reader.bytes; break;
		case VDI_WIRE_VARINT(3): op.previous = reader.number != 0; break;
		default: break;
		}
	}
	*ret_op = op;
	return !reader.is_bad;
}

enum vd_etcd_code vdi_serve_put_check(const struct vd_op *op)
{
	if (op->key.size == 0)
		return VD_ETCD_EMPTY_KEY;
	if (op->ignore_value && op->value.size)
		return VD_ETCD_VALUE_PROVIDED;
	return op->ignore_lease && op->lease ? VD_ETCD_LEASE_PROVIDED : VD_ETCD_OTHER;
}

enum vd_etcd_code vdi_serve_range_check(const struct vdi_serve_range *range)
{
	if (range->key.size == 0)
		return VD_ETCD_EMPTY_KEY;
	return vdi_serve_range_has_valid_sort(range) ? VD_ETCD_OTHER : VD_ETCD_INVALID_SORT_OPTION;
}

int64_t vdi_serve_put_cost(const struct vd_op *op)
{
	return 256 + (int64_t) op->key.size + (int64_t) op->value.size;
}

void vdi_serve_put_write(struct vdi_wire_out *out, const struct vd_op_result *result)
{
	if (result->previous_count)
		vdi_wire_kv(out, 2, result->previous[0], false, true);
}

void vdi_serve_delete_write(struct vdi_wire_out *out, const struct vd_op_result *result)
{
	vdi_wire_number(out, 2, (uint64_t) result->deleted);
	for (size_t i = 0; i < result->previous_count; i++)
		vdi_wire_kv(out, 3, result->previous[i], false, true);
}

/* ---- Decoding ---- */

struct decoder {
	unsigned ops_max;
	size_t	 total; /* of all levels */
};

/* Maximum operations of a transaction, nested ones included, as in the store. */
#define TXN_OPS_TOTAL_MAX 4096

static vd_status decode_level(struct decoder *decoder, struct vd_bytes message, unsigned depth,
			      struct vdi_serve_txn **ret_txn);

/* A field of the union that does not match the target counts as absent, as in etcd; it is dropped after
 * decoding. */
static bool decode_compare(struct vd_bytes message, struct vd_compare *ret_compare)
{
	static const unsigned char field_of_target[] = { [VD_COMPARE_VERSION] = 4,
							 [VD_COMPARE_CREATE] = 5,
							 [VD_COMPARE_MOD] = 6,
							 [VD_COMPARE_VALUE] = 7,
							 [VD_COMPARE_LEASE] = 8 };
	struct vd_compare	   compare = { .key = { "", 0 }, .range_end = { "", 0 }, .value = { "", 0 } };
	struct vdi_wire_reader	   reader;
	uint32_t		   target = 0;
	unsigned		   field = 0;

	vdi_wire_reader_init(&reader, message);
	while (vdi_wire_next(&reader)) {
		switch (reader.tag) {
		case VDI_WIRE_VARINT(1):
			/* As in etcd, an unknown result is always true; the store does the same. */
			compare.result = (uint32_t) reader.number > VD_COMPARE_NOT_EQUAL ?
						 VD_COMPARE_NOT_EQUAL + 1 :
						 (enum vd_compare_result)(uint32_t) reader.number;
			break;
		case VDI_WIRE_VARINT(2): target = (uint32_t) reader.number; break;
		case VDI_WIRE_BYTES(3): compare.key = reader.bytes; break;
		case VDI_WIRE_VARINT(4):
		case VDI_WIRE_VARINT(5):
		case VDI_WIRE_VARINT(6):
		case VDI_WIRE_VARINT(8):
			compare.number = (int64_t) reader.number;
			field = reader.tag >> 3;
			break;
		case VDI_WIRE_BYTES(7):
			compare.value = reader.bytes;
			field = 7;
			break;
		case VDI_WIRE_BYTES(64): compare.range_end = reader.bytes; break;
		default: break;
		}
	}
	if (target > VD_COMPARE_LEASE) {
		/* Upstream then compares no values, which counts as equal: version > -1, or version < 0. */
		bool holds = compare.result == VD_COMPARE_EQUAL || compare.result > VD_COMPARE_NOT_EQUAL;

		compare.target = VD_COMPARE_VERSION;
		compare.result = holds ? VD_COMPARE_GREATER : VD_COMPARE_LESS;
		compare.number = holds ? -1 : 0;
	} else {
		compare.target = (enum vd_compare_target) target;
		if (field_of_target[target] != field) {
			compare.number = 0;
			compare.value = (struct vd_bytes) { "", 0 };
		}
	}
	*ret_compare = compare;
	return !reader.is_bad;
}

static vd_status decode_op(struct decoder *decoder, struct vd_bytes message, unsigned depth, struct vd_op *op,
			   struct vdi_serve_op *more)
{
	struct vdi_wire_reader reader;
	uint32_t	       kind = 0;
	struct vd_bytes	       body = VD_BYTES_NONE;
	bool		       is_good = true;

	/* The last field wins, as in every oneof. */
	vdi_wire_reader_init(&reader, message);
	while (vdi_wire_next(&reader))
		if (reader.tag >= VDI_WIRE_BYTES(1) && reader.tag <= VDI_WIRE_BYTES(4) &&
		    (reader.tag & 7) == 2) {
			kind = reader.tag;
			body = reader.bytes;
		}
	if (reader.is_bad)
		return VD_BAD_REQUEST;
	memset(op, 0, sizeof *op);
	switch (kind) {
	case VDI_WIRE_BYTES(1):
		op->kind = VD_OP_RANGE;
		is_good = vdi_serve_range_decode(body, &more->range);
		vdi_serve_range_ask(&more->range, &op->range);
		break;
	case VDI_WIRE_BYTES(2): is_good = vdi_serve_put_decode(body, op); break;
	case VDI_WIRE_BYTES(3): is_good = vdi_serve_delete_decode(body, op); break;
	case VDI_WIRE_BYTES(4):
		op->kind = VD_OP_TXN;
		VDI_TRY(decode_level(decoder, body, depth + 1, &more->txn));
		op->txn = &more->txn->request;
		break;
	default: more->is_empty = true; break;
	}
	return is_good ? VD_OK : VD_BAD_REQUEST;
}

static vd_status count_lists(struct decoder *decoder, struct vd_bytes message, size_t counts[3])
{
	struct vdi_wire_reader reader;

	vdi_wire_reader_init(&reader, message);
	while (vdi_wire_next(&reader))
		if (reader.tag == VDI_WIRE_BYTES(1) || reader.tag == VDI_WIRE_BYTES(2) ||
		    reader.tag == VDI_WIRE_BYTES(3)) {
			counts[(reader.tag >> 3) - 1]++;
			decoder->total++;
		}
	if (reader.is_bad)
		return VD_BAD_REQUEST;
	for (size_t i = 0; i < 3; i++)
		if (counts[i] > decoder->ops_max || decoder->total > TXN_OPS_TOTAL_MAX)
			return VD_TOO_BIG;
	return VD_OK;
}

static vd_status allocate_level(const size_t counts[3], struct vdi_serve_txn **ret_txn)
{
	size_t		      ops = counts[1] + counts[2];
	struct vdi_serve_txn *txn =
		vdi_calloc(1, sizeof *txn + counts[0] * sizeof(struct vd_compare) +
				      ops * (sizeof(struct vd_op) + sizeof(struct vdi_serve_op)));

	if (txn == NULL)
		return VD_NOMEM;
	txn->compares = (struct vd_compare *) (txn + 1);
	txn->success = (struct vd_op *) (txn->compares + counts[0]);
	txn->failure = txn->success + counts[1];
	txn->success_ops = (struct vdi_serve_op *) (txn->failure + counts[2]);
	txn->failure_ops = txn->success_ops + counts[1];
	*ret_txn = txn;
	return VD_OK;
}

static vd_status fill_level(struct decoder *decoder, struct vd_bytes message, unsigned depth,
			    struct vdi_serve_txn *txn)
{
	struct vdi_wire_reader reader;

	vdi_wire_reader_init(&reader, message);
	while (vdi_wire_next(&reader)) {
		size_t place;

		switch (reader.tag) {
		case VDI_WIRE_BYTES(1):
			if (!decode_compare(reader.bytes, &txn->compares[txn->compare_count++]))
				return VD_BAD_REQUEST;
			break;
		case VDI_WIRE_BYTES(2):
			place = txn->success_count++;
			VDI_TRY(decode_op(decoder, reader.bytes, depth, &txn->success[place],
					  &txn->success_ops[place]));
			break;
		case VDI_WIRE_BYTES(3):
			place = txn->failure_count++;
			VDI_TRY(decode_op(decoder, reader.bytes, depth, &txn->failure[place],
					  &txn->failure_ops[place]));
			break;
		default: break;
		}
	}
	txn->request = (struct vd_txn_request) { txn->compares,	     txn->compare_count, txn->success,
						 txn->success_count, txn->failure,	 txn->failure_count };
	return VD_OK;
}

static vd_status decode_level(struct decoder *decoder, struct vd_bytes message, unsigned depth,
			      struct vdi_serve_txn **ret_txn)
{
	size_t		      counts[3] = { 0 };
	struct vdi_serve_txn *txn;
	vd_status	      status;

	if (depth > VDI_SERVE_TXN_DEPTH_MAX)
		return VD_TOO_BIG;
	VDI_TRY(count_lists(decoder, message, counts));
	VDI_TRY(allocate_level(counts, &txn));
	status = fill_level(decoder, message, depth, txn);
	if (status != VD_OK) {
		vdi_serve_txn_free(txn);
		return status;
	}
	*ret_txn = txn;
	return VD_OK;
}

vd_status vdi_serve_txn_decode(struct vd_bytes message, unsigned ops_max, struct vdi_serve_txn **ret_txn)
{
	struct decoder decoder = { .ops_max = ops_max };

	return decode_level(&decoder, message, 1, ret_txn);
}

static void free_ops(struct vdi_serve_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		vdi_serve_range_view_fini(&ops[i].view);
		vdi_serve_txn_free(ops[i].txn);
	}
}

struct vdi_serve_txn *vdi_serve_txn_free(struct vdi_serve_txn *txn)
{
	if (txn == NULL)
		return NULL;
	free_ops(txn->success_ops, txn->success_count);
	free_ops(txn->failure_ops, txn->failure_count);
	vdi_free(txn);
	return NULL;
}

/* ---- Checks ---- */

static enum vd_etcd_code check_op(const struct vd_op *op, const struct vdi_serve_op *more, unsigned ops_max)
{
	if (more->is_empty)
		return VD_ETCD_KEY_NOT_FOUND;
	switch (op->kind) {
	case VD_OP_PUT: return vdi_serve_put_check(op);
	case VD_OP_DELETE: return op->key.size ? VD_ETCD_OTHER : VD_ETCD_EMPTY_KEY;
	case VD_OP_RANGE: return vdi_serve_range_check(&more->range);
	case VD_OP_TXN: return vdi_serve_txn_check(more->txn, ops_max);
	}
	return VD_ETCD_OTHER;
}

enum vd_etcd_code vdi_serve_txn_check(const struct vdi_serve_txn *txn, unsigned ops_max)
{
	size_t widest = VDI_MAX(txn->compare_count, VDI_MAX(txn->success_count, txn->failure_count));
	enum vd_etcd_code code = VD_ETCD_OTHER;

	if (widest > ops_max)
		return VD_ETCD_TOO_MANY_OPS;
	ops_max -= (unsigned) widest;
	for (size_t i = 0; i < txn->compare_count; i++)
		if (txn->compares[i].key.size == 0)
			return VD_ETCD_EMPTY_KEY;
	for (size_t i = 0; code == VD_ETCD_OTHER && i < txn->success_count; i++)
		code = check_op(&txn->success[i], &txn->success_ops[i], ops_max);
	for (size_t i = 0; code == VD_ETCD_OTHER && i < txn->failure_count; i++)
		code = check_op(&txn->failure[i], &txn->failure_ops[i], ops_max);
	return code;
}

static int64_t cost_of(const struct vd_op *ops, const struct vdi_serve_op *more, size_t count)
{
	int64_t cost = 0;

	for (size_t i = 0; i < count; i++) {
		if (more[i].is_empty)
			continue;
		if (ops[i].kind == VD_OP_PUT)
			cost += vdi_serve_put_cost(&ops[i]);
		else if (ops[i].kind == VD_OP_TXN)
			cost += vdi_serve_txn_cost(more[i].txn);
	}
	return cost;
}

int64_t vdi_serve_txn_cost(const struct vdi_serve_txn *txn)
{
	int64_t success = cost_of(txn->success, txn->success_ops, txn->success_count);
	int64_t failure = cost_of(txn->failure, txn->failure_ops, txn->failure_count);

	return VDI_MAX(success, failure);
}

/* Maximum operations on single keys that the transport's thread executes for one transaction. */
#define SHORT_TXN_OPS 256

static bool has_range(const struct vd_op *ops, const struct vdi_serve_op *more, size_t count, size_t *left);

/* Subtracts all operations and compares from *left; returns true if there are ranges. */
static bool level_has_range(const struct vdi_serve_txn *txn, size_t *left)
{
	*left -= VDI_MIN(*left, txn->compare_count + txn->success_count + txn->failure_count);
	for (size_t i = 0; i < txn->compare_count; i++)
		if (txn->compares[i].range_end.size)
			return true;
	return has_range(txn->success, txn->success_ops, txn->success_count, left) ||
	       has_range(txn->failure, txn->failure_ops, txn->failure_count, left);
}

static bool has_range(const struct vd_op *ops, const struct vdi_serve_op *more, size_t count, size_t *left)
{
	for (size_t i = 0; i < count; i++)
		if ((ops[i].kind == VD_OP_RANGE && ops[i].range.range_end.size) ||
		    (ops[i].kind == VD_OP_TXN && level_has_range(more[i].txn, left)))
			return true;
	return false;
}

bool vdi_serve_txn_is_long(const struct vdi_serve_txn *txn)
{
	size_t left = SHORT_TXN_OPS;

	return level_has_range(txn, &left) || left == 0;
}

static bool are_ranges(const struct vd_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (ops[i].kind != VD_OP_RANGE)
			return false;
	return true;
}

bool vdi_serve_txn_is_read_only(const struct vdi_serve_txn *txn)
{
	return are_ranges(txn->success, txn->success_count) && are_ranges(txn->failure, txn->failure_count);
}

static bool has_lease(const struct vd_op *ops, const struct vdi_serve_op *more, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if ((ops[i].kind == VD_OP_PUT && ops[i].lease) ||
		    (ops[i].kind == VD_OP_TXN && vdi_serve_txn_has_leases(more[i].txn)))
			return true;
	return false;
}

bool vdi_serve_txn_has_leases(const struct vdi_serve_txn *txn)
{
	return has_lease(txn->success, txn->success_ops, txn->success_count) ||
	       has_lease(txn->failure, txn->failure_ops, txn->failure_count);
}

/* ---- Answers ---- */

vd_status vdi_serve_txn_prepare(struct vdi_serve_txn *txn, const struct vd_txn_result *result)
{
	struct vdi_serve_op *ops = result->succeeded ? txn->success_ops : txn->failure_ops;

	for (size_t i = 0; i < result->result_count; i++) {
		if (result->results[i].kind == VD_OP_RANGE)
			VDI_TRY(vdi_serve_range_view_init(&ops[i].range, &result->results[i].range,
							  &ops[i].view));
		else if (result->results[i].kind == VD_OP_TXN)
			VDI_TRY(vdi_serve_txn_prepare(ops[i].txn, result->results[i].txn));
	}
	return VD_OK;
}

static void write_revision(struct vdi_wire_out *out, const void *arg)
{
	vdi_wire_number(out, 3, (uint64_t) * (const vd_rev *) arg);
}

void vdi_serve_write_sub_header(struct vdi_wire_out *out, vd_rev revision)
{
	vdi_wire_message(out, 1, write_revision, &revision);
}

struct op_answer {
	const struct vdi_serve_op *op;
	const struct vd_op_result *result;
};

static void write_answer(struct vdi_wire_out *out, const void *arg)
{
	const struct op_answer *answer = arg;

	/* As in etcd, a nested transaction's header has no revision. */
	vdi_serve_write_sub_header(out, answer->result->kind == VD_OP_TXN ? 0 : answer->result->revision);
	switch (answer->result->kind) {
	case VD_OP_PUT: vdi_serve_put_write(out, answer->result); break;
	case VD_OP_DELETE: vdi_serve_delete_write(out, answer->result); break;
	case VD_OP_RANGE: vdi_serve_range_view_write(out, &answer->op->view); break;
	case VD_OP_TXN: vdi_serve_txn_write(out, answer->op->txn, answer->result->txn); break;
	}
}

static void write_response_op(struct vdi_wire_out *out, const void *arg)
{
	static const unsigned char field_of_kind[] = {
		[VD_OP_RANGE] = 1, [VD_OP_PUT] = 2, [VD_OP_DELETE] = 3, [VD_OP_TXN] = 4
	};
	const struct op_answer *answer = arg;

	vdi_wire_message(out, field_of_kind[answer->result->kind], write_answer, answer);
}

void vdi_serve_txn_write(struct vdi_wire_out *out, const struct vdi_serve_txn *txn,
			 const struct vd_txn_result *result)
{
	const struct vdi_serve_op *ops = result->succeeded ? txn->success_ops : txn->failure_ops;

	vdi_wire_number(out, 2, result->succeeded);
	for (size_t i = 0; i < result->result_count; i++) {
		struct op_answer answer = { &ops[i], &result->results[i] };

		vdi_wire_message(out, 3, write_response_op, &answer);
	}
}
