/* KV calls. Requests are validated as far as clientv3 validates them; the server checks the rest. */
#include "etcd_call.h"
#include "etcd_wire.h"

#include <rpc.pb-c.h>

struct vd_bytes vd_etcd_prefix_end(struct vd_bytes prefix, char *buffer)
{
	size_t size = prefix.size;

	while (size && ((const unsigned char *) prefix.data)[size - 1] == 0xff)
		size--;
	if (size == 0) { /* no end: from the key on */
		buffer[0] = '\0';
		return (struct vd_bytes) { buffer, 1 };
	}
	memcpy(buffer, prefix.data, size);
	buffer[size - 1]++;
	return (struct vd_bytes) { buffer, size };
}

static bool is_there(struct vd_bytes bytes)
{
	return bytes.size == 0 || bytes.data;
}

static bool is_valid_range(const struct vd_range_request *range)
{
	return range->limit >= 0 && is_there(range->key) && is_there(range->range_end);
}

static bool is_valid_put(const struct vd_op *op)
{
	return op->range_end.size == 0 && is_there(op->key) && is_there(op->value);
}

static bool is_valid_delete(const struct vd_op *op)
{
	return is_there(op->key) && is_there(op->range_end) && op->value.size == 0 && op->lease == 0 &&
	       !op->ignore_value && !op->ignore_lease;
}

static bool is_valid_txn(const struct vd_txn_request *request, unsigned level);

static bool are_valid_ops(const struct vd_op *ops, size_t count, unsigned level)
{
	if (count && ops == NULL)
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct vd_op *op = &ops[i];
		bool		    is_valid;

		switch (op->kind) {
		case VD_OP_PUT: is_valid = is_valid_put(op); break;
		case VD_OP_DELETE: is_valid = is_valid_delete(op); break;
		case VD_OP_RANGE: is_valid = is_valid_range(&op->range); break;
		case VD_OP_TXN: is_valid = op->txn && is_valid_txn(op->txn, level + 1); break;
		default: is_valid = false; break;
		}
		if (!is_valid)
			return false;
	}
	return true;
}

static bool is_valid_txn(const struct vd_txn_request *request, unsigned level)
{
	if (level > VDI_ETCD_WIRE_LEVELS_MAX)
		return true; /* the encoder reports that it is nested too deeply */
	if (request->compare_count && request->compares == NULL)
		return false;
	for (size_t i = 0; i < request->compare_count; i++)
		if (!is_there(request->compares[i].key) || !is_there(request->compares[i].range_end) ||
		    !is_there(request->compares[i].value) ||
		    (unsigned) request->compares[i].target > VD_COMPARE_LEASE ||
		    (unsigned) request->compares[i].result > VD_COMPARE_NOT_EQUAL)
			return false;
	return are_valid_ops(request->success, request->success_count, level) &&
	       are_valid_ops(request->failure, request->failure_count, level);
}

static uint64_t *id_of(const struct vd_etcd_call *options)
{
	return options ? options->ret_id : NULL;
}

/* ---- Range ---- */

static void range_finished(struct vdi_etcd_call *call, struct vd_etcd_error *error, struct vd_bytes message)
{
	vd_etcd_range_fn       done = (vd_etcd_range_fn) call->done;
	struct vd_etcd_error   unreadable = { 0 };
	struct vd_etcd_header  header;
	struct vd_range_result result;
	vd_status	       status;

	if (error) {
		done(call->arg, error, NULL, NULL);
		return;
	}
	status = vdi_etcd_wire_range_response_decode(message, &header, &result, &unreadable.error);
	if (status != VD_OK) {
		(void) vdi_etcd_call_unreadable(call, status, &unreadable);
		done(call->arg, &unreadable, NULL, NULL);
		return;
	}
	done(call->arg, NULL, &header, &result);
	vdi_etcd_wire_range_result_fini(&result);
}

static bool is_valid_request(const struct vd_etcd_range_request *request)
{
	return request && is_valid_range(&request->range) &&
	       (unsigned) request->sort_order <= VD_ETCD_SORT_DESCEND &&
	       (unsigned) request->sort_target <= VD_ETCD_SORT_VALUE;
}

vd_status vd_etcd_range(struct vd_etcd *client, const struct vd_etcd_call *call,
			const struct vd_etcd_range_request *request, vd_etcd_range_fn done, void *arg)
{
	struct vdi_etcd_call *started;

	if (!is_valid_request(request))
		return VD_INVALID_ARGUMENT;
	VDI_TRY(vdi_etcd_call_new(client, call, VDI_ETCD_METHOD_RANGE, range_finished, (vdi_etcd_any_fn) done,
				  arg, &started));
	return vdi_etcd_call_start(started, vdi_etcd_wire_range_request_encode(request, &started->request),
				   id_of(call));
}

static bool range_part(struct vdi_etcd_call *call, struct vd_bytes message, struct vd_etcd_error *error)
{
	vd_etcd_range_stream_fn done = (vd_etcd_range_stream_fn) call->done;
	struct vd_etcd_header	header;
	struct vd_range_result	result;
	vd_status		status =
		vdi_etcd_wire_range_stream_response_decode(message, &header, &result, &error->error);

	if (status != VD_OK) {
		(void) vdi_etcd_call_unreadable(call, status, error);
		return false;
	}
	call->wants_hold = !done(call->arg, NULL, &header, &result, false);
	vdi_etcd_wire_range_result_fini(&result);
	return true;
}

static void range_stream_finished(struct vdi_etcd_call *call, struct vd_etcd_error *error,
				  struct vd_bytes message)
{
	(void) ((vd_etcd_range_stream_fn) call->done)(call->arg, error, NULL, NULL,
						      true); /* there is no next one */
}

vd_status vd_etcd_range_stream(struct vd_etcd *client, const struct vd_etcd_call *call,
			       const struct vd_etcd_range_request *request, vd_etcd_range_stream_fn done,
			       void *arg)
{
	struct vdi_etcd_call *started;

	if (!is_valid_request(request))
		return VD_INVALID_ARGUMENT;
	VDI_TRY(vdi_etcd_call_new(client, call, VDI_ETCD_METHOD_RANGE_STREAM, range_stream_finished,
				  (vdi_etcd_any_fn) done, arg, &started));
	started->part = range_part;
	return vdi_etcd_call_start(started, vdi_etcd_wire_range_request_encode(request, &started->request),
				   id_of(call));
}

/* ---- Put, delete ---- */

static void op_finished(struct vdi_etcd_call *call, struct vd_etcd_error *error, struct vd_bytes message)
{
	vd_etcd_op_fn	      done = (vd_etcd_op_fn) call->done;
	struct vd_etcd_error  unreadable = { 0 };
	struct vd_etcd_header header;
	struct vd_op_result   result;
	vd_status	      status;

	if (error) {
		done(call->arg, error, NULL, NULL);
		return;
	}
	status = vdi_etcd_wire_op_response_decode(call->extra.kind, message, &header, &result,
						  &unreadable.error);
	if (status != VD_OK) {
		(void) vdi_etcd_call_unreadable(call, status, &unreadable);
		done(call->arg, &unreadable, NULL, NULL);
		return;
	}
	done(call->arg, NULL, &header, &result);
	vdi_etcd_wire_op_result_fini(&result);
}

static vd_status start_op(struct vd_etcd *client, const struct vd_etcd_call *call,
			  enum vdi_etcd_method method, const struct vd_op *op, vd_etcd_op_fn done, void *arg)
{
	struct vdi_etcd_call *started;

	VDI_TRY(vdi_etcd_call_new(client, call, method, op_finished, (vdi_etcd_any_fn) done, arg, &started));
	started->extra.kind = op->kind;
	return vdi_etcd_call_start(started, vdi_etcd_wire_op_request_encode(op, &started->request),
				   id_of(call));
}

vd_status vd_etcd_put(struct vd_etcd *client, const struct vd_etcd_call *call, const struct vd_op *op,
		      vd_etcd_op_fn done, void *arg)
{
	if (op == NULL || op->kind != VD_OP_PUT || !is_valid_put(op))
		return VD_INVALID_ARGUMENT;
	return start_op(client, call, VDI_ETCD_METHOD_PUT, op, done, arg);
}

vd_status vd_etcd_delete(struct vd_etcd *client, const struct vd_etcd_call *call, const struct vd_op *op,
			 vd_etcd_op_fn done, void *arg)
{
	if (op == NULL || op->kind != VD_OP_DELETE || !is_valid_delete(op))
		return VD_INVALID_ARGUMENT;
	return start_op(client, call, VDI_ETCD_METHOD_DELETE_RANGE, op, done, arg);
}

/* ---- Transaction, compaction ---- */

static void txn_finished(struct vdi_etcd_call *call, struct vd_etcd_error *error, struct vd_bytes message)
{
	vd_etcd_txn_fn	      done = (vd_etcd_txn_fn) call->done;
	struct vd_etcd_error  unreadable = { 0 };
	struct vd_etcd_header header;
	struct vd_txn_result  result;
	vd_status	      status;

	if (error) {
		done(call->arg, error, NULL, NULL);
		return;
	}
	status = vdi_etcd_wire_txn_response_decode(message, &header, &result, &unreadable.error);
	if (status != VD_OK) {
		(void) vdi_etcd_call_unreadable(call, status, &unreadable);
		done(call->arg, &unreadable, NULL, NULL);
		return;
	}
	done(call->arg, NULL, &header, &result);
	vdi_etcd_wire_txn_result_fini(&result);
}

vd_status vd_etcd_txn(struct vd_etcd *client, const struct vd_etcd_call *call,
		      const struct vd_txn_request *request, vd_etcd_txn_fn done, void *arg)
{
	struct vdi_etcd_call *started;

	if (request == NULL || !is_valid_txn(request, 1))
		return VD_INVALID_ARGUMENT;
	VDI_TRY(vdi_etcd_call_new(client, call, VDI_ETCD_METHOD_TXN, txn_finished, (vdi_etcd_any_fn) done,
				  arg, &started));
	return vdi_etcd_call_start(started, vdi_etcd_wire_txn_request_encode(request, &started->request),
				   id_of(call));
}

vd_status vd_etcd_compact(struct vd_etcd *client, const struct vd_etcd_call *call, vd_rev revision,
			  bool physical, vd_etcd_done_fn done, void *arg)
{
	Etcdserverpb__CompactionRequest request = ETCDSERVERPB__COMPACTION_REQUEST__INIT;

	request.revision = revision;
	request.physical = physical;
	return vdi_etcd_call_message(client, call, VDI_ETCD_METHOD_COMPACT, vdi_etcd_finish_header,
				     (vdi_etcd_any_fn) done, arg, &request.base);
}
