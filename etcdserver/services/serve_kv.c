/* The KV service: Range, Put, DeleteRange, Txn, Compact. RangeStream is in serve_range_stream.c.
 *
 * Small reads are answered on the transport's thread, large ones on a worker, so that a list of a million
 * keys does not delay a put. Transactions with ranges also go to a worker. Writes are answered by the store's
 * writer; encoding their responses takes a few dozen bytes, unless previous records are requested.
 */
#include "auth.h"
#include "etcdserver.h"
#include "serve_range_stream.h"
#include "serve_txn.h"
#include "serve_watches.h"

/* Maximum keys in a response made on the transport's thread. */
#define INLINE_KEYS_MAX 64

/* ---- Range ---- */

struct range_answer {
	const struct vdi_etcdserver	  *server;
	vd_rev				   revision;
	const struct vdi_serve_range_view *view;
};

static void write_range(struct vdi_wire_out *out, const void *arg)
{
	const struct range_answer *answer = arg;

	vdi_serve_write_header(out, answer->server, answer->revision);
	vdi_serve_range_view_write(out, answer->view);
}

static void range_done(void *arg, vd_status status, const struct vd_range_result *result,
		       const struct vd_error *error)
{
	struct vdi_serve_call	   *call = arg;
	struct vdi_serve_range	    range;
	struct vdi_serve_range_view view;

	(void) error;
	if (status == VD_OK) {
		(void) vdi_serve_range_decode(call->request.bytes, &range); /* decoded before */
		status = vdi_serve_range_view_init(&range, result, &view);
	}
	if (status == VD_OK) {
		struct range_answer answer = { call->server, result->store_revision, &view };

		vdi_serve_reply(call, write_range, &answer);
		vdi_serve_range_view_fini(&view);
	} else {
		vdi_serve_fail_status(call, status);
	}
	vdi_serve_call_unref(call);
}

static void do_range(struct vdi_serve_call *call)
{
	struct vdi_serve_range	range;
	struct vd_range_request request;
	vd_status		status;

	(void) vdi_serve_range_decode(call->request.bytes, &range);
	vdi_serve_range_ask(&range, &request);
	vdi_serve_call_ref(call);
	status = vd_store_range(call->server->store, &request, range_done, call);
	if (status != VD_OK)
		range_done(call, status, NULL, NULL);
}

static void take_count(void *arg, vd_status status, const struct vd_range_result *result,
		       const struct vd_error *error)
{
	(void) error;
	if (status == VD_OK)
		*(int64_t *) arg = result->count;
}

/* Returns true if a worker should make the response. Counting the keys takes two walks down the tree. */
static bool is_long(struct vdi_etcdserver *server, const struct vdi_serve_range *range)
{
	struct vd_range_request request;
	int64_t			count = 0;

	if (range->range_end.size == 0 || range->count_only)
		return false;
	vdi_serve_range_ask(range, &request);
	if (request.limit > 0 && request.limit <= INLINE_KEYS_MAX)
		return false;
	request.count_only = true;
	request.revision = 0;
	return vd_store_range(server->store, &request, take_count, &count) == VD_OK &&
	       count > INLINE_KEYS_MAX;
}

static void range_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	struct vdi_serve_range range;
	struct vdi_auth_user   user;
	enum vd_etcd_code      code;

	if (!vdi_serve_range_decode(message, &range)) {
		vdi_serve_fail_malformed(call);
		return;
	}
	code = vdi_serve_range_check(&range);
	if (code == VD_ETCD_OTHER) {
		if (!vdi_auth_identify(call, &user))
			return;
		code = vdi_auth_check_range(call->server->auth, &user, range.key, range.range_end);
	}
	if (code != VD_ETCD_OTHER)
		vdi_serve_fail(call, code);
	else if (is_long(call->server, &range))
		vdi_serve_defer(call, vdi_serve_any_range_worker(call->server), do_range);
	else
		do_range(call);
}

/* ---- Put and DeleteRange ---- */

struct op_answer {
	const struct vdi_etcdserver *server;
	const struct vd_txn_result  *result;
};

static void write_put(struct vdi_wire_out *out, const void *arg)
{
	const struct op_answer *answer = arg;

	vdi_serve_write_header(out, answer->server, answer->result->revision);
	vdi_serve_put_write(out, &answer->result->results[0]);
}

static void write_delete(struct vdi_wire_out *out, const void *arg)
{
	const struct op_answer *answer = arg;

	vdi_serve_write_header(out, answer->server, answer->result->revision);
	vdi_serve_delete_write(out, &answer->result->results[0]);
}

static void op_done(struct vdi_serve_call *call, vd_status status, const struct vd_txn_result *result,
		    vdi_wire_write_fn write)
{
	struct op_answer answer = { call->server, result };

	if (status == VD_OK)
		vdi_serve_reply(call, write, &answer);
	else
		vdi_serve_fail_status(call, status);
	vdi_serve_call_unref(call);
}

static void put_done(void *arg, vd_status status, const struct vd_txn_result *result,
		     const struct vd_error *error)
{
	(void) error;
	op_done(arg, status, result, write_put);
}

static void delete_done(void *arg, vd_status status, const struct vd_txn_result *result,
			const struct vd_error *error)
{
	(void) error;
	op_done(arg, status, result, write_delete);
}

static void submit_op(struct vdi_serve_call *call, const struct vd_op *op, vd_txn_fn done)
{
	struct vd_txn_request request = { .success = op, .success_count = 1 };
	vd_status	      status;

	vdi_serve_call_ref(call);
	status = vd_store_txn(call->server->store, &request, done, call);
	if (status != VD_OK)
		done(call, status, NULL, NULL);
}

static enum vd_etcd_code check_put_permission(struct vdi_etcdserver *server, const struct vdi_auth_user *user,
					      const struct vd_op *op)
{
	enum vd_etcd_code code = vdi_auth_check_write(server->auth, user, op->key, VD_BYTES_NONE);

	if (code == VD_ETCD_OTHER && op->lease)
		code = vdi_auth_check_lease(server->auth, user, op->lease, true);
	if (code == VD_ETCD_OTHER && op->previous)
		code = vdi_auth_check_range(server->auth, user, op->key, VD_BYTES_NONE);
	return code;
}

static enum vd_etcd_code check_delete_permission(struct vdi_etcdserver	    *server,
						 const struct vdi_auth_user *user, const struct vd_op *op)
{
	enum vd_etcd_code code = vdi_auth_check_write(server->auth, user, op->key, op->range_end);

	if (code == VD_ETCD_OTHER && op->previous)
		code = vdi_auth_check_range(server->auth, user, op->key, op->range_end);
	return code;
}

static void do_put(struct vdi_serve_call *call)
{
	struct vdi_auth_user user;
	struct vd_op	     op;
	enum vd_etcd_code    code;

	(void) vdi_serve_put_decode(call->request.bytes, &op); /* decoded before */
	if (!vdi_auth_identify(call, &user) || !vdi_serve_check_corrupt(call))
		return;
	code = check_put_permission(call->server, &user, &op);
	if (code == VD_ETCD_OTHER)
		submit_op(call, &op, put_done);
	else
		vdi_serve_fail(call, code);
}

static void put_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	struct vd_op	  op;
	enum vd_etcd_code code;

	if (!vdi_serve_put_decode(message, &op)) {
		vdi_serve_fail_malformed(call);
		return;
	}
	/* As etcd, check the quota before the request. */
	if (!vdi_serve_check_quota(call, vdi_serve_put_cost(&op)))
		return;
	code = vdi_serve_put_check(&op);
	if (code != VD_ETCD_OTHER)
		vdi_serve_fail(call, code);
	else if (!vdi_serve_check_size(call, message))
		return;
	else if (op.lease)
		vdi_auth_defer_lease(call, do_put);
	else
		do_put(call);
}

static void delete_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	struct vdi_auth_user user;
	struct vd_op	     op;
	enum vd_etcd_code    code = VD_ETCD_OTHER;

	if (!vdi_serve_delete_decode(message, &op)) {
		vdi_serve_fail_malformed(call);
		return;
	}
	if (op.key.size == 0)
		code = VD_ETCD_EMPTY_KEY;
	if (code == VD_ETCD_OTHER) {
		if (!vdi_serve_check_size(call, message) || !vdi_auth_identify(call, &user) ||
		    !vdi_serve_check_corrupt(call))
			return;
		code = check_delete_permission(call->server, &user, &op);
	}
	if (code == VD_ETCD_OTHER)
		submit_op(call, &op, delete_done);
	else
		vdi_serve_fail(call, code);
}

/* ---- Txn ---- */

struct txn_answer {
	const struct vdi_etcdserver *server;
	const struct vdi_serve_txn  *txn;
	const struct vd_txn_result  *result;
};

static void write_txn(struct vdi_wire_out *out, const void *arg)
{
	const struct txn_answer *answer = arg;

	vdi_serve_write_header(out, answer->server, answer->result->revision);
	vdi_serve_txn_write(out, answer->txn, answer->result);
}

static void txn_done(void *arg, vd_status status, const struct vd_txn_result *result,
		     const struct vd_error *error)
{
	struct vdi_serve_call *call = arg;

	(void) error;
	if (status == VD_OK)
		status = vdi_serve_txn_prepare(call->state, result);
	if (status == VD_OK) {
		struct txn_answer answer = { call->server, call->state, result };

		vdi_serve_reply(call, write_txn, &answer);
	} else {
		vdi_serve_fail_status(call, status);
	}
	vdi_serve_call_unref(call);
}

static void txn_free(struct vdi_serve_call *call)
{
	call->state = vdi_serve_txn_free(call->state);
}

static enum vd_etcd_code check_txn_permission(struct vdi_etcdserver *server, const struct vdi_auth_user *user,
					      const struct vd_txn_request *request);

static enum vd_etcd_code check_ops_permission(struct vdi_etcdserver *server, const struct vdi_auth_user *user,
					      const struct vd_op *ops, size_t count)
{
	enum vd_etcd_code code = VD_ETCD_OTHER;

	for (size_t i = 0; code == VD_ETCD_OTHER && i < count; i++) {
		switch (ops[i].kind) {
		case VD_OP_RANGE:
			code = vdi_auth_check_range(server->auth, user, ops[i].range.key,
						    ops[i].range.range_end);
			break;
		case VD_OP_PUT: code = check_put_permission(server, user, &ops[i]); break;
		case VD_OP_DELETE: code = check_delete_permission(server, user, &ops[i]); break;
		case VD_OP_TXN: code = check_txn_permission(server, user, ops[i].txn); break;
		}
	}
	return code;
}

static enum vd_etcd_code check_txn_permission(struct vdi_etcdserver *server, const struct vdi_auth_user *user,
					      const struct vd_txn_request *request)
{
	enum vd_etcd_code code = VD_ETCD_OTHER;

	for (size_t i = 0; code == VD_ETCD_OTHER && i < request->compare_count; i++)
		code = vdi_auth_check_range(server->auth, user, request->compares[i].key,
					    request->compares[i].range_end);
	if (code == VD_ETCD_OTHER)
		code = check_ops_permission(server, user, request->success, request->success_count);
	if (code == VD_ETCD_OTHER)
		code = check_ops_permission(server, user, request->failure, request->failure_count);
	return code;
}

/* A transaction that only reads is executed here, at once. */
static void submit_txn(struct vdi_serve_call *call)
{
	const struct vdi_serve_txn *txn = call->state;
	vd_status		    status;

	vdi_serve_call_ref(call);
	status = vd_store_txn(call->server->store, &txn->request, txn_done, call);
	if (status != VD_OK)
		txn_done(call, status, NULL, NULL);
}

static void do_txn(struct vdi_serve_call *call)
{
	const struct vdi_serve_txn *txn = call->state;
	struct vdi_auth_user	    user;
	enum vd_etcd_code	    code = VD_ETCD_OTHER;

	if (!vdi_auth_identify(call, &user) ||
	    (!vdi_serve_txn_is_read_only(txn) && !vdi_serve_check_corrupt(call)))
		return;
	if (vdi_auth_is_enabled(call->server->auth))
		code = check_txn_permission(call->server, &user, &txn->request);
	if (code == VD_ETCD_OTHER)
		submit_txn(call);
	else
		vdi_serve_fail(call, code);
}

static void txn_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	unsigned	      ops_max = call->server->options.txn_ops_max;
	struct vdi_serve_txn *txn;
	enum vd_etcd_code     code;
	vd_status	      status = vdi_serve_txn_decode(message, ops_max, &txn);

	if (status == VD_BAD_REQUEST)
		vdi_serve_fail_malformed(call);
	else if (status == VD_TOO_BIG)
		vdi_serve_fail(call, VD_ETCD_TOO_MANY_OPS);
	else if (status != VD_OK)
		vdi_serve_fail_status(call, status);
	if (status != VD_OK)
		return;
	call->state = txn;
	call->on_free = txn_free;
	if (!vdi_serve_check_quota(call, vdi_serve_txn_cost(txn)))
		return;
	code = vdi_serve_txn_check(txn, ops_max);
	if (code != VD_ETCD_OTHER)
		vdi_serve_fail(call, code);
	else if (!vdi_serve_check_size(call, message))
		return;
	else if (vdi_serve_txn_is_long(txn))
		vdi_serve_defer(call, vdi_serve_any_range_worker(call->server), do_txn);
	else if (vdi_serve_txn_has_leases(txn))
		vdi_auth_defer_lease(call, do_txn);
	else
		do_txn(call);
}

/* ---- Compact ---- */

static void start_compact(struct vdi_serve_call *call)
{
	vd_rev	  revision;
	bool	  physical;
	vd_status status;

	(void) vdi_wire_read_number(call->request.bytes, &revision, &physical);
	status = vd_store_compact(call->server->store, revision, physical, vdi_serve_header_done, call);
	if (status != VD_OK)
		vdi_serve_header_done(call, status, 0, NULL);
}

/* Upstream has queued the events of a write for all watchers before it answers the write, so a compaction to
 * that revision ends no watcher that keeps up. This server first sends pending events. */
static void compact_begin(struct vdi_serve_call *call, struct vd_bytes message)
{
	vd_rev revision;
	bool   physical;

	if (!vdi_wire_read_number(message, &revision, &physical)) {
		vdi_serve_fail_malformed(call);
		return;
	}
	if (!vdi_auth_require_admin(call) || !vdi_serve_check_corrupt(call))
		return;
	vdi_serve_watches_flush(call->server->watches, vdi_serve_call_ref(call), start_compact);
}

const struct vdi_serve_method vdi_serve_kv_methods[] = {
	{ "/etcdserverpb.KV/Range", VDI_SERVE_UNARY, range_begin },
	{ "/etcdserverpb.KV/RangeStream", VDI_SERVE_UNARY, vdi_serve_range_stream_begin },
	{ "/etcdserverpb.KV/Put", VDI_SERVE_UNARY, put_begin },
	{ "/etcdserverpb.KV/DeleteRange", VDI_SERVE_UNARY, delete_begin },
	{ "/etcdserverpb.KV/Txn", VDI_SERVE_UNARY, txn_begin },
	{ "/etcdserverpb.KV/Compact", VDI_SERVE_UNARY, compact_begin },
	{ 0 },
};
