/* Calls are finished and answered here for all services, and counted once. */
#include "serve_call.h"

#include "serve_counts.h"
#include "serve_state.h"

/* ---- Errors ---- */

static const struct {
	int	    grpc;
	const char *message;
} codes[VD_ETCD_CODE_COUNT] = {
#define CODE_ROW(name, grpc, status, known, message) [name] = { grpc, message },
	VD_ETCD_ERROR_MAP(CODE_ROW)
#undef CODE_ROW
};

const char *vdi_serve_code_message(enum vd_etcd_code code)
{
	return codes[code].message;
}

int vdi_serve_code_grpc(enum vd_etcd_code code)
{
	/* upstream's handler returns the client's error, which has no code */
	return code == VD_ETCD_MEMBER_NOT_ENOUGH_STARTED || code == VD_ETCD_TOO_MANY_REQUESTS ?
		       VDI_RPC_UNKNOWN :
		       codes[code].grpc;
}

enum vd_etcd_code vdi_serve_code_of(vd_status status)
{
	switch (status) {
	case VD_EXPIRED: return VD_ETCD_COMPACTED;
	case VD_TOO_LARGE_REVISION: return VD_ETCD_FUTURE_REVISION;
	case VD_NOT_FOUND: return VD_ETCD_KEY_NOT_FOUND;
	case VD_LEASE_NOT_FOUND: return VD_ETCD_LEASE_NOT_FOUND;
	case VD_LEASE_EXISTS: return VD_ETCD_LEASE_EXIST;
	case VD_DUPLICATE_KEY: return VD_ETCD_DUPLICATE_KEY;
	case VD_NO_SPACE: return VD_ETCD_NO_SPACE;
	case VD_TOO_BIG: return VD_ETCD_REQUEST_TOO_LARGE;
	/* Everything else was checked: too many operations in total, or nested too deeply. */
	case VD_INVALID_ARGUMENT: return VD_ETCD_TOO_MANY_OPS;
	case VD_FULL: return VD_ETCD_TOO_MANY_REQUESTS;
	case VD_CLOSED: return VD_ETCD_STOPPED;
	case VD_TIMEOUT: return VD_ETCD_TIMEOUT;
	case VD_UNAVAILABLE:
	case VD_IO: return VD_ETCD_UNHEALTHY;
	case VD_CORRUPT: return VD_ETCD_CORRUPT;
	default: return VD_ETCD_OTHER;
	}
}

void vdi_serve_fail(struct vdi_serve_call *call, enum vd_etcd_code code)
{
	vdi_serve_finish(call, vdi_serve_code_grpc(code), vdi_serve_code_message(code));
}

void vdi_serve_fail_status(struct vdi_serve_call *call, vd_status status)
{
	enum vd_etcd_code code = vdi_serve_code_of(status);

	if (code != VD_ETCD_OTHER)
		vdi_serve_fail(call, code);
	else
		vdi_serve_finish(call, vd_status_grpc(status), vd_status_sentence(status));
}

void vdi_serve_fail_malformed(struct vdi_serve_call *call)
{
	vdi_serve_finish(call, VDI_RPC_INTERNAL,
			 "grpc: error unmarshalling request: proto: cannot parse invalid wire-format data");
}

/* ---- Answers ---- */

void vdi_serve_reply(struct vdi_serve_call *call, vdi_wire_write_fn write, const void *arg)
{
	struct vdi_rpc_blob *blob;
	vd_status	     status = vdi_wire_encode(write, arg, &blob);

	if (status == VD_TOO_BIG) {
		vdi_serve_finish(call, VDI_RPC_RESOURCE_EXHAUSTED,
				 "trying to send message larger than max (2147483647)");
		return;
	}
	if (status != VD_OK) {
		vdi_serve_fail_status(call, status);
		return;
	}
	status = vdi_serve_answer(call, blob);
	vdi_rpc_blob_unref(blob);
	if (status != VD_OK && status != VD_CLOSED)
		vdi_serve_fail_status(call, status);
}

void vdi_serve_finish(struct vdi_serve_call *call, int code, const char *message)
{
	vdi_serve_count_ended(call, code);
	call->ops->finish(call, code, message);
}

/* Count first: the client may ask for the count as soon as it has the response, and the transport may end the
 * call. As in grpc-go, a response counts even if the client no longer takes it. */
vd_status vdi_serve_answer(struct vdi_serve_call *call, struct vdi_rpc_blob *blob)
{
	vdi_serve_count_sent(call, vdi_rpc_blob_size(blob));
	vdi_serve_count_ended(call, VDI_RPC_OK);
	return call->ops->answer(call, blob);
}

vd_status vdi_serve_send(struct vdi_serve_call *call, struct vd_bytes head, struct vdi_rpc_blob *blob)
{
	vd_status status = call->ops->send(call, head, blob);

	if (status == VD_OK)
		vdi_serve_count_sent(call, head.size + vdi_rpc_blob_size(blob));
	if (status != VD_OK && status != VD_FULL && status != VD_CLOSED)
		vdi_serve_fail_status(call, status);
	return status;
}

static void write_header(struct vdi_wire_out *out, const void *arg)
{
	const struct vdi_serve_header *header = arg;

	vdi_wire_number(out, 1, header->server->cluster_id);
	vdi_wire_number(out, 2, header->server->member_id);
	vdi_wire_number(out, 3, (uint64_t) header->revision);
	vdi_wire_number(out, 4, header->server->term);
}

void vdi_serve_write_header(struct vdi_wire_out *out, const struct vdi_etcdserver *server, vd_rev revision)
{
	struct vdi_serve_header header = { server, revision };

	vdi_wire_message(out, 1, write_header, &header);
}

void vdi_serve_write_only_header(struct vdi_wire_out *out, const void *arg)
{
	const struct vdi_serve_header *header = arg;

	vdi_serve_write_header(out, header->server, header->revision);
}

void vdi_serve_header_done(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	struct vdi_serve_call  *call = arg;
	struct vdi_serve_header header = { call->server, revision };

	(void) error;
	if (status == VD_OK)
		vdi_serve_reply(call, vdi_serve_write_only_header, &header);
	else
		vdi_serve_fail_status(call, status);
	vdi_serve_call_unref(call);
}

vd_rev vdi_serve_revision(struct vdi_etcdserver *server)
{
	struct vd_store_status status;

	return vd_store_status_get(server->store, &status) == VD_OK ? status.current : 0;
}

/* ---- Limits ---- */

bool vdi_serve_check_corrupt(struct vdi_serve_call *call)
{
	if (!(atomic_load_explicit(&call->server->alarms, memory_order_relaxed) & 1u << VDI_ALARM_CORRUPT))
		return true;
	vdi_serve_fail(call, VD_ETCD_CORRUPT);
	return false;
}

bool vdi_serve_check_quota(struct vdi_serve_call *call, int64_t cost)
{
	struct vdi_etcdserver *server = call->server;
	int64_t quota = server->options.quota_bytes ? server->options.quota_bytes : VDI_ETCD_QUOTA_DEFAULT;
	struct vd_store_status status;

	if (cost <= 0)
		return true;
	if (!(atomic_load_explicit(&server->alarms, memory_order_relaxed) & 1u << VDI_ALARM_NOSPACE)) {
		if (quota < 0 || vd_store_status_get(server->store, &status) != VD_OK ||
		    status.size_bytes + cost < quota)
			return true;
		vdi_serve_state_raise(server->state, server->member_id, VDI_ALARM_NOSPACE);
	}
	vdi_serve_fail(call, VD_ETCD_NO_SPACE);
	return false;
}

bool vdi_serve_check_size(struct vdi_serve_call *call, struct vd_bytes request)
{
	/* bytes that upstream's envelope adds: a header with an id, tag and length */
	if (request.size + 17 <= call->server->options.request_bytes_max)
		return true;
	vdi_serve_fail(call, VD_ETCD_REQUEST_TOO_LARGE);
	return false;
}

/* ---- References ---- */

struct vdi_serve_call *vdi_serve_call_ref(struct vdi_serve_call *call)
{
	atomic_fetch_add_explicit(&call->references, 1, memory_order_relaxed);
	return call;
}

void vdi_serve_call_unref(struct vdi_serve_call *call)
{
	struct vdi_etcdserver *server = call->server;

	if (atomic_fetch_sub_explicit(&call->references, 1, memory_order_acq_rel) != 1)
		return;
	if (call->on_free)
		call->on_free(call);
	vdi_rpc_message_release(&call->request);
	if (call->has_request)
		atomic_fetch_sub_explicit(&server->unary_count, 1, memory_order_relaxed);
	call->ops->free(call);
	atomic_fetch_sub_explicit(&server->call_count, 1, memory_order_release);
}

/* ---- Workers ---- */

void vdi_serve_worker_run(void *arg)
{
	struct vdi_serve_worker *worker = arg;
	struct vdi_serve_call	*call;
	bool			 more;

	vdi_lock_acquire(&worker->lock);
	call = worker->first;
	if (call) {
		worker->first = call->next;
		if (worker->first == NULL)
			worker->last = &worker->first;
	}
	more = worker->first != NULL;
	vdi_lock_release(&worker->lock);
	if (more)
		vd_actor_wake(worker->actor);
	if (call == NULL)
		return;
	if (atomic_load_explicit(&call->server->is_stopping, memory_order_acquire))
		vdi_serve_fail(call, VD_ETCD_STOPPED);
	else
		call->work(call);
	vdi_serve_call_unref(call);
}

void vdi_serve_defer(struct vdi_serve_call *call, unsigned index, void (*work)(struct vdi_serve_call *call))
{
	struct vdi_serve_worker *worker = &call->server->workers[index];

	vdi_serve_call_ref(call);
	call->work = work;
	call->next = NULL;
	vdi_lock_acquire(&worker->lock);
	*worker->last = call;
	worker->last = &call->next;
	vdi_lock_release(&worker->lock);
	vd_actor_wake(worker->actor);
}

unsigned vdi_serve_any_range_worker(struct vdi_etcdserver *server)
{
	unsigned turn = atomic_fetch_add_explicit(&server->next_worker, 1, memory_order_relaxed);

	return VDI_SERVE_WORKER_RANGES + turn % (VDI_SERVE_WORKERS - VDI_SERVE_WORKER_RANGES);
}
