/* The tables of methods, acceptance of calls, and the lifecycle of the server. */
#include "etcdserver.h"

#include <stdio.h>

#include "auth.h"
#include "env.h"
#include "serve_counts.h"
#include "serve_logins.h"
#include "serve_metrics.h"
#include "serve_state.h"
#include "serve_watches.h"
#include "utf8.h"
#include "wait.h"

/* ---- Methods ---- */

static const struct vdi_serve_method *const tables[] = {
	vdi_serve_kv_methods,	       vdi_serve_watch_methods,	  vdi_serve_lease_methods,
	vdi_serve_maintenance_methods, vdi_serve_cluster_methods, vdi_serve_auth_methods,
	vdi_serve_health_methods,
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

/* With grpc-go's messages. */
static void finish_unknown(struct vdi_serve_call *call, const char *path)
{
	const char *service = path[0] == '/' ? path + 1 : path;
	const char *slash = strchr(service, '/');
	char	    text[256];
	bool	    is_known = false;

	for (size_t i = 0; slash && i < VDI_ARRAY_SIZE(tables); i++)
		is_known = is_known ||
			   strncmp(tables[i]->path + 1, service, (size_t) (slash - service) + 1) == 0;
	if (is_known)
		(void) snprintf(text, sizeof text, "unknown method %.100s for service %.*s", slash + 1,
				(int) VDI_MIN(slash - service, 100), service);
	else
		(void) snprintf(text, sizeof text, "unknown service %.*s",
				slash ? (int) VDI_MIN(slash - service, 200) : 200, service);
	vdi_serve_finish(call, VDI_RPC_UNIMPLEMENTED, text);
}

/* ---- Calls ---- */

static bool is_message(struct vd_bytes bytes)
{
	int64_t number;

	return vdi_wire_read_number(bytes, &number, NULL);
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
	if (call->method->ignores_request && !is_message(call->request.bytes))
		vdi_serve_fail_malformed(call);
	else
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
	vdi_serve_count_begun(call, place);
	if (atomic_load_explicit(&server->is_stopping, memory_order_acquire)) {
		vdi_serve_fail(call, VD_ETCD_STOPPED);
		return;
	}
	if (call->ops->metadata(call, "client-api-version", &version) && !vdi_utf8_valid(version)) {
		/* As etcd: a client-api-version that is not UTF-8. */
		vdi_serve_fail(call, VD_ETCD_INVALID_CLIENT_API_VERSION);
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
		vdi_serve_count_received(call, message->bytes.size);
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
	vdi_serve_count_ended(call, VDI_RPC_CANCELED);
	atomic_store_explicit(&call->is_ended, true, memory_order_release);
	if (call->on_ended)
		call->on_ended(call);
	vdi_serve_call_unref(call);
}

/* ---- Workers ---- */

static vd_status start_workers(struct vdi_etcdserver *server)
{
	for (size_t i = 0; i < VDI_SERVE_WORKERS; i++) {
		struct vdi_serve_worker *worker = &server->workers[i];
		struct vd_actor_options	 options = {
			 .name = "etcd worker", .run = vdi_serve_worker_run, .arg = worker, .blocking = true
		};

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
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "etcd: store is NULL");
	if (options->txn_ops_max > 128)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "etcd: the maximum of operations in a transaction must be at most 128");
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
		vdi_log(env, VD_LOG_WARNING, "etcd",
			"the progress interval is raised to 100 ms, its minimum");
		options->progress_interval = VD_MS(100);
	}
	if (options->watchers_max == 0)
		options->watchers_max = 100000;
	if (options->bcrypt_cost == 0)
		options->bcrypt_cost = 10;
	if (options->token_ttl.ns == 0)
		options->token_ttl = VD_SECONDS(300);
}

vd_status vdi_etcdserver_new(const struct vd_env *env, const struct vdi_etcdserver_options *options,
			     struct vdi_etcdserver **ret_server, struct vd_error *reterr)
{
	struct vdi_etcdserver *server;
	vd_status	       status;

	VDI_TRY(check_options(options, reterr));
	server = VDI_NEW(struct vdi_etcdserver);
	if (server == NULL)
		return vd_error_set(reterr, VD_NOMEM, "etcd: out of memory");
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
