/* See the header. A call has one reference of the transport and one for each thing that will still answer it: a submission in the store, a place in
 * a worker's queue. finish and send come too late without harm, so nobody has to be told that a client has gone. */
#include "etcdserver.h"

#include <stdio.h>

#include "auth.h"
#include "env.h"
#include "serve_metrics.h"
#include "serve_logins.h"
#include "serve_state.h"
#include "serve_watches.h"
#include "wait.h"

/* ---- Methods ---- */

static const struct vdi_serve_method *const tables[] = {
	vdi_serve_kv_methods,	      vdi_serve_watch_methods,	 vdi_serve_lease_methods, vdi_serve_maintenance_methods,
	vdi_serve_cluster_methods,    vdi_serve_auth_methods,	 vdi_serve_health_methods,
};

static const struct vdi_serve_method *find_method(const char *path, size_t *ret_place)
{
	*ret_place = 0;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(tables); i++)
		for (const struct vdi_serve_method *method = tables[i]; method->path; method++, ++*ret_place)
			if (strcmp(method->path, path) == 0)
				return method;
	return NULL;
}

const struct vdi_serve_method *vdi_serve_method_at(size_t place)
{
	for (size_t i = 0; i < VDI_ARRAY_SIZE(tables); i++)
		for (const struct vdi_serve_method *method = tables[i]; method->path; method++)
			if (place-- == 0)
				return method;
	return NULL;
}

/* As grpc-go words it. */
static void finish_unknown(struct vdi_serve_call *call, const char *path)
{
	const char *service = path[0] == '/' ? path + 1 : path;
	const char *slash = strchr(service, '/');
	char	    text[256];
	bool	    is_known = false;

	for (size_t i = 0; slash && i < VDI_ARRAY_SIZE(tables); i++)
		is_known = is_known || strncmp(tables[i]->path + 1, service, (size_t) (slash - service) + 1) == 0;
	if (is_known)
		(void) snprintf(text, sizeof text, "unknown method %.100s for service %.*s", slash + 1, (int) VDI_MIN(slash - service, 100), service);
	else
		(void) snprintf(text, sizeof text, "unknown service %.*s", slash ? (int) VDI_MIN(slash - service, 200) : 200, service);
	vdi_serve_finish(call, VDI_RPC_UNIMPLEMENTED, text);
}

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
	/* E-132: the handler upstream returns the client's error, which has no code. */
	return code == VD_ETCD_MEMBER_NOT_ENOUGH_STARTED || code == VD_ETCD_TOO_MANY_REQUESTS ? VDI_RPC_UNKNOWN : codes[code].grpc;
}

enum vd_etcd_code vdi_serve_code_of(vd_status status)
{
	switch (status) {
	case VD_EXPIRED:
		return VD_ETCD_COMPACTED;
	case VD_TOO_LARGE_REVISION:
		return VD_ETCD_FUTURE_REVISION;
	case VD_NOT_FOUND:
		return VD_ETCD_KEY_NOT_FOUND;
	case VD_LEASE_NOT_FOUND:
		return VD_ETCD_LEASE_NOT_FOUND;
	case VD_LEASE_EXISTS:
		return VD_ETCD_LEASE_EXIST;
	case VD_DUPLICATE_KEY:
		return VD_ETCD_DUPLICATE_KEY;
	case VD_NO_SPACE:
		return VD_ETCD_NO_SPACE;
	case VD_TOO_BIG:
		return VD_ETCD_REQUEST_TOO_LARGE;
	case VD_INVALID_ARGUMENT: /* all else was checked: too many operations in all, or too deep */
		return VD_ETCD_TOO_MANY_OPS;
	case VD_FULL:
		return VD_ETCD_TOO_MANY_REQUESTS;
	case VD_CLOSED:
		return VD_ETCD_STOPPED;
	case VD_TIMEOUT:
		return VD_ETCD_TIMEOUT;
	case VD_UNAVAILABLE:
	case VD_IO:
		return VD_ETCD_UNHEALTHY;
	case VD_CORRUPT:
		return VD_ETCD_CORRUPT;
	default:
		return VD_ETCD_OTHER;
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
	vdi_serve_finish(call, VDI_RPC_INTERNAL, "grpc: error unmarshalling request: proto: cannot parse invalid wire-format data");
}

/* ---- Answers ---- */

void vdi_serve_reply(struct vdi_serve_call *call, vdi_wire_write_fn write, const void *arg)
{
	struct vdi_rpc_blob *blob;
	vd_status	     status = vdi_wire_encode(write, arg, &blob);

	if (status == VD_TOO_BIG) {
		vdi_serve_finish(call, VDI_RPC_RESOURCE_EXHAUSTED, "trying to send message larger than max (2147483647)");
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
	vdi_serve_metrics_ended(call, code);
	call->ops->finish(call, code, message);
}

/* Counted before: the client may ask for the count as soon as it has the answer, and the transport may end the call. As in grpc-go, an answer counts whether or not the client still takes it. */
vd_status vdi_serve_answer(struct vdi_serve_call *call, struct vdi_rpc_blob *blob)
{
	vdi_serve_metrics_sent(call, vdi_rpc_blob_size(blob));
	vdi_serve_metrics_ended(call, VDI_RPC_OK);
	return call->ops->answer(call, blob);
}

vd_status vdi_serve_send(struct vdi_serve_call *call, struct vd_bytes head, struct vdi_rpc_blob *blob)
{
	vd_status status = call->ops->send(call, head, blob);

	if (status == VD_OK)
		vdi_serve_metrics_sent(call, head.size + vdi_rpc_blob_size(blob));
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
	int64_t		       quota = server->options.quota_bytes ? server->options.quota_bytes : VDI_ETCD_QUOTA_DEFAULT;
	struct vd_store_status status;

	if (cost <= 0)
		return true;
	if (!(atomic_load_explicit(&server->alarms, memory_order_relaxed) & 1u << VDI_ALARM_NOSPACE)) {
		if (quota < 0 || vd_store_status_get(server->store, &status) != VD_OK || status.size_bytes + cost < quota)
			return true;
		vdi_serve_state_raise(server->state, server->member_id, VDI_ALARM_NOSPACE);
	}
	vdi_serve_fail(call, VD_ETCD_NO_SPACE);
	return false;
}

bool vdi_serve_check_size(struct vdi_serve_call *call, struct vd_bytes request)
{
	/* What upstream's envelope adds: a header with an id, tag and length. */
	if (request.size + 17 <= call->server->options.request_bytes_max)
		return true;
	vdi_serve_fail(call, VD_ETCD_REQUEST_TOO_LARGE);
	return false;
}

/* ---- Calls ---- */

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

static void unary_message(struct vdi_serve_call *call, struct vdi_rpc_message *message)
{
	if (call->has_request) {
		vdi_rpc_message_release(message);
		return;
	}
	call->has_request = true;
	atomic_fetch_add_explicit(&call->server->unary_count, 1, memory_order_relaxed);
	if (message->bytes.data == NULL) {
		vdi_serve_finish(call, VDI_RPC_INTERNAL, "grpc: the call ended before its request");
		return;
	}
	call->request = *message;
	*message = (struct vdi_rpc_message) { 0 };
	call->method->begin(call, call->request.bytes);
}

void vdi_etcdserver_accept(struct vdi_etcdserver *server, struct vdi_serve_call *call, const char *method)
{
	struct vd_bytes version = VD_BYTES_NONE;
	size_t		place;

	call->server = server;
	atomic_store_explicit(&call->references, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&server->call_count, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&server->calls_total, 1, memory_order_relaxed);
	call->method = find_method(method, &place);
	if (call->method == NULL) {
		finish_unknown(call, method);
		return;
	}
	vdi_serve_metrics_begun(call, place);
	if (atomic_load_explicit(&server->is_stopping, memory_order_acquire)) {
		vdi_serve_fail(call, VD_ETCD_STOPPED);
		return;
	}
	if (call->ops->metadata(call, "client-api-version", &version) && !vdi_wire_is_utf8(version)) {
		vdi_serve_fail(call, VD_ETCD_INVALID_CLIENT_API_VERSION); /* E-141 */
		return;
	}
	vdi_serve_clients_count(&server->clients, version, call->method->kind == VDI_SERVE_STREAM);
	if (call->method->kind == VDI_SERVE_UNARY)
		call->on_message = unary_message;
	else
		call->method->begin(call, VD_BYTES_NONE);
	call->ops->receive(call);
}

void vdi_etcdserver_message(struct vdi_serve_call *call, struct vdi_rpc_message *message)
{
	if (message->bytes.data)
		vdi_serve_metrics_received(call, message->bytes.size);
	if (call->on_message)
		call->on_message(call, message);
	else
		vdi_rpc_message_release(message);
}

void vdi_etcdserver_writable(struct vdi_serve_call *call)
{
	if (call->on_writable)
		call->on_writable(call);
}

void vdi_etcdserver_ended(struct vdi_serve_call *call)
{
	vdi_serve_metrics_ended(call, VDI_RPC_CANCELED);
	atomic_store_explicit(&call->is_ended, true, memory_order_release);
	if (call->on_ended)
		call->on_ended(call);
	vdi_serve_call_unref(call);
}

/* ---- Workers ---- */

static void worker_run(void *arg)
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

static vd_status start_workers(struct vdi_etcdserver *server)
{
	for (size_t i = 0; i < VDI_SERVE_WORKERS; i++) {
		struct vdi_serve_worker *worker = &server->workers[i];
		struct vd_actor_options	 options = { .name = "etcd worker", .run = worker_run, .arg = worker, .blocking = true };

		VDI_TRY(vd_actor_new(server->env, &options, &worker->actor));
	}
	return VD_OK;
}

static void stop_workers(struct vdi_etcdserver *server)
{
	for (size_t i = 0; i < VDI_SERVE_WORKERS; i++) {
		vdi_wait_for_actor_close(server->env, server->workers[i].actor);
		vdi_lock_fini(&server->workers[i].lock);
	}
}

/* ---- Life ---- */

static vd_status check_options(const struct vdi_etcdserver_options *options, struct vd_error *reterr)
{
	if (options->store == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "etcd: the store is missing");
	if (options->txn_ops_max > 128)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "etcd: more than 128 operations in a transaction are not supported");
	if (options->progress_interval.ns < 0 || options->token_ttl.ns < 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "etcd: an option is outside its range");
	return VD_OK;
}

static void set_defaults(const struct vd_env *env, struct vdi_etcdserver_options *options)
{
	if (options->name == NULL)
		options->name = "default";
	if (options->request_bytes_max == 0)
		options->request_bytes_max = 3 << 19;
	if (options->txn_ops_max == 0)
		options->txn_ops_max = 128;
	if (options->progress_interval.ns == 0)
		options->progress_interval = VD_SECONDS(600);
	if (options->progress_interval.ns < VD_MS(100).ns) {
		vdi_log(env, VD_LOG_WARNING, "etcd", "the interval of progress is raised to 100 ms, the least there is"); /* E-301 */
		options->progress_interval = VD_MS(100);
	}
	if (options->watchers_max == 0)
		options->watchers_max = 100000;
	if (options->bcrypt_cost == 0)
		options->bcrypt_cost = 10;
	if (options->token_ttl.ns == 0)
		options->token_ttl = VD_SECONDS(300);
}

vd_status vdi_etcdserver_new(const struct vd_env *env, const struct vdi_etcdserver_options *options, struct vdi_etcdserver **ret_server,
			     struct vd_error *reterr)
{
	struct vdi_etcdserver *server;
	vd_status	       status;

	VDI_TRY(check_options(options, reterr));
	server = VDI_NEW(struct vdi_etcdserver);
	if (server == NULL)
		return vd_error_set(reterr, VD_NOMEM, "etcd: no memory");
	server->env = env;
	server->options = *options;
	server->store = options->store;
	set_defaults(env, &server->options);
	vdi_serve_clients_init(&server->clients);
	for (size_t i = 0; i < VDI_SERVE_WORKERS; i++) {
		vdi_lock_init(&server->workers[i].lock, VDI_LOCK_QUEUE);
		server->workers[i].last = &server->workers[i].first;
	}
	status = vdi_serve_state_open(server, &server->state, reterr);
	if (status == VD_OK)
		status = vdi_auth_new(server, &server->auth, reterr);
	if (status == VD_OK)
		status = vdi_serve_logins_new(server, &server->logins);
	if (status == VD_OK)
		status = vdi_serve_watches_new(server, &server->watches);
	if (status == VD_OK)
		status = start_workers(server);
	if (status == VD_OK)
		status = vdi_serve_metrics_new(server, &server->metrics);
	if (status == VD_OK) {
		*ret_server = server;
		return VD_OK;
	}
	(void) vdi_etcdserver_free(server);
	return status;
}

void vdi_etcdserver_set_client_url(struct vdi_etcdserver *server, const char *url)
{
	atomic_store_explicit(&server->client_url, url, memory_order_release);
}

void vdi_etcdserver_stop(struct vdi_etcdserver *server)
{
	atomic_store_explicit(&server->is_stopping, true, memory_order_release);
	vdi_serve_logins_stop(server->logins);
	vdi_serve_watches_stop(server->watches);
}

struct vdi_etcdserver *vdi_etcdserver_free(struct vdi_etcdserver *server)
{
	if (server == NULL)
		return NULL;
	stop_workers(server);
	VDI_CHECK(atomic_load_explicit(&server->call_count, memory_order_acquire) == 0);
	server->metrics = vdi_serve_metrics_free(server->metrics);
	server->logins = vdi_serve_logins_free(server->logins);
	server->watches = vdi_serve_watches_free(server->watches);
	server->auth = vdi_auth_free(server->auth);
	server->state = vdi_serve_state_close(server->state);
	vdi_serve_clients_fini(&server->clients);
	vdi_free(server);
	return NULL;
}
