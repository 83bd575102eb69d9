/* Each function of struct vdi_serve_call_ops is one of rpc_server.h. */
#include "serve_rpc.h"

#include "env.h"
#include "rpc_transport.h"
#include "serve_http.h"
#include "serve_watches.h"
#include "wait.h"

/* Time for calls in progress when the server ends. */
#define ANSWERS_GRACE VD_SECONDS(2)
/* Maximum unsent bytes of a client that does not read, plus one message: about 300 MiB for a thousand such
 * clients. */
#define SEND_BYTES_MAX ((size_t) 256 << 10)

/* A plain HTTP request to be answered by the worker. */
struct slow_http {
	struct slow_http    *next;
	struct vdi_rpc_http *http;
};

struct vdi_serve_rpc {
	struct vdi_etcdserver *server;
	struct vdi_rpc_server *transport;
	struct vd_actor	      *worker; /* renders metrics, off the transport's threads */
	bool		       without_calls;
	struct vdi_lock	       lock; /* "queue" */

	/* Under the lock. */
	struct slow_http  *first;
	struct slow_http **last;
};

struct rpc_call {
	struct vdi_serve_call	    base; /* first */
	struct vdi_rpc_server_call *call;
};

static struct vdi_rpc_server_call *transport_of(struct vdi_serve_call *call)
{
	return ((struct rpc_call *) call)->call;
}

static vd_status call_send(struct vdi_serve_call *call, struct vd_bytes head, struct vdi_rpc_blob *blob)
{
	return vdi_rpc_server_send(transport_of(call), head, blob);
}

static void call_finish(struct vdi_serve_call *call, int code, const char *message)
{
	vdi_rpc_server_finish(transport_of(call), code, message);
}

static vd_status call_answer(struct vdi_serve_call *call, struct vdi_rpc_blob *blob)
{
	return vdi_rpc_server_answer(transport_of(call), VD_BYTES_NONE, blob);
}

static void call_receive(struct vdi_serve_call *call)
{
	vdi_rpc_server_receive(transport_of(call));
}

static bool call_metadata(struct vdi_serve_call *call, const char *key, struct vd_bytes *ret_value)
{
	return vdi_rpc_server_call_metadata(transport_of(call), key, ret_value);
}

static const char *call_common_name(struct vdi_serve_call *call)
{
	return vdi_rpc_server_call_common_name(transport_of(call));
}

static const char *call_peer(struct vdi_serve_call *call)
{
	return vdi_rpc_server_call_peer(transport_of(call));
}

static void call_free(struct vdi_serve_call *call)
{
	vdi_rpc_server_call_free(transport_of(call));
	vdi_free(call);
}

static const struct vdi_serve_call_ops ops = {
	.send = call_send,
	.finish = call_finish,
	.answer = call_answer,
	.receive = call_receive,
	.metadata = call_metadata,
	.common_name = call_common_name,
	.free = call_free,
	.peer = call_peer,
};

/* ---- What the transport says ---- */

static void on_accepted(void *arg, struct vdi_rpc_server_call *transport, const char *method)
{
	struct vdi_serve_rpc *rpc = arg;
	struct rpc_call	     *call = rpc->without_calls ? NULL : VDI_NEW(struct rpc_call);

	vdi_rpc_server_call_set_arg(transport, call);
	if (rpc->without_calls) {
		vdi_rpc_server_finish(transport, VDI_RPC_UNIMPLEMENTED,
				      "this address only serves health and metrics");
		return;
	}
	if (call == NULL) {
		vdi_rpc_server_finish(transport, VDI_RPC_RESOURCE_EXHAUSTED, vd_status_sentence(VD_NOMEM));
		return;
	}
	call->base.ops = &ops;
	call->call = transport;
	vdi_etcdserver_accept(rpc->server, &call->base, method);
}

static void on_message(void *call_arg, struct vdi_rpc_server_call *transport, struct vdi_rpc_message *message)
{
	struct rpc_call *call = call_arg;

	(void) transport;
	if (call)
		vdi_etcdserver_message(&call->base, message);
	else
		vdi_rpc_message_release(message);
}

static void on_writable(void *call_arg, struct vdi_rpc_server_call *transport)
{
	struct rpc_call *call = call_arg;

	(void) transport;
	if (call)
		vdi_etcdserver_writable(&call->base);
}

static void on_ended(void *call_arg, struct vdi_rpc_server_call *transport, bool cancelled)
{
	struct rpc_call *call = call_arg;

	(void) cancelled;
	if (call)
		vdi_etcdserver_ended(&call->base);
	else
		vdi_rpc_server_call_free(transport);
}

/* ---- Plain HTTP ---- */

static void run_worker(void *arg)
{
	struct vdi_serve_rpc *rpc = arg;
	struct slow_http     *slow;
	bool		      has_more;

	vdi_lock_acquire(&rpc->lock);
	slow = rpc->first;
	if (slow)
		rpc->first = slow->next;
	has_more = rpc->first != NULL;
	if (!has_more)
		rpc->last = &rpc->first;
	vdi_lock_release(&rpc->lock);
	if (has_more)
		vd_actor_wake(rpc->worker);
	if (slow == NULL)
		return;
	vdi_serve_http_fill(rpc->server, true, slow->http);
	slow->http->answer(slow->http);
	vdi_free(slow);
}

static void on_http(void *arg, struct vdi_rpc_http *http)
{
	struct vdi_serve_rpc *rpc = arg;
	struct slow_http     *slow = vdi_serve_http_is_slow(http) ? VDI_NEW(struct slow_http) : NULL;

	if (slow == NULL) { /* without memory it is answered here, and fails */
		vdi_serve_http_fill(rpc->server, true, http);
		http->answer(http);
		return;
	}
	slow->http = http;
	vdi_lock_acquire(&rpc->lock);
	*rpc->last = slow;
	rpc->last = &slow->next;
	vdi_lock_release(&rpc->lock);
	vd_actor_wake(rpc->worker);
}

static const struct vdi_rpc_server_handlers handlers = { on_accepted, on_message, on_writable, on_ended };

/* ---- Life ---- */

/* All requests are answered. */
static void free_rpc(struct vdi_serve_rpc *rpc)
{
	vdi_wait_for_actor_close(rpc->server->env, rpc->worker);
	VDI_CHECK(rpc->first == NULL);
	vdi_lock_fini(&rpc->lock);
	vdi_free(rpc);
}

vd_status vdi_serve_rpc_new(struct vdi_etcdserver *server, const struct vdi_serve_rpc_options *options,
			    struct vdi_serve_rpc **ret_rpc, struct vd_error *reterr)
{
	static const char *const stream_methods[] = { "/etcdserverpb.Watch/Watch",
						      "/etcdserverpb.Lease/LeaseKeepAlive" };
	static const char *const unary_methods[] = {
		"/etcdserverpb.KV/Range",
		"/etcdserverpb.KV/Put",
		"/etcdserverpb.KV/DeleteRange",
		"/etcdserverpb.KV/Txn",
	};
	struct vdi_rpc_server_options transport = {
		.listen = options->listen,
		.listen_count = options->listen_count,
		.tls = options->tls,
		.receive_size_max = server->options.request_bytes_max + VDI_ETCD_RECEIVE_EXTRA,
		.send_bytes_max = options->send_bytes_max ? options->send_bytes_max : SEND_BYTES_MAX,
		.unsent_max = options->unsent_bytes_max,
		.streams_max = options->streams_max,
		.threads = options->threads,
		.stream_methods = stream_methods,
		.stream_method_count = VDI_ARRAY_SIZE(stream_methods),
		.unary_methods = unary_methods,
		.unary_method_count = VDI_ARRAY_SIZE(unary_methods),
		.ping_interval_min =
			options->ping_interval_min.ns ? options->ping_interval_min : VD_SECONDS(5),
		.keepalive_time = options->keepalive_time.ns ? options->keepalive_time : VD_SECONDS(7200),
		.keepalive_timeout =
			options->keepalive_timeout.ns ? options->keepalive_timeout : VD_SECONDS(20),
		.handlers = &handlers,
		.http = options->without_http ? NULL : on_http,
	};
	struct vdi_serve_rpc   *rpc = VDI_NEW(struct vdi_serve_rpc);
	struct vd_actor_options worker = { .name = "etcd metrics", .run = run_worker, .arg = rpc };
	vd_status		status;

	if (rpc == NULL)
		return vd_error_set(reterr, VD_NOMEM, "etcd: out of memory");
	rpc->server = server;
	rpc->without_calls = options->without_calls;
	rpc->last = &rpc->first;
	vdi_lock_init(&rpc->lock, VDI_LOCK_QUEUE);
	transport.arg = rpc;
	status = vd_actor_new(server->env, &worker, &rpc->worker);
	if (status == VD_OK)
		status = vdi_rpc_transport_of(options->transport)
				 ->server_new(server->env, &transport, &rpc->transport, reterr);
	else
		(void) vd_error_set(reterr, status, "etcd: out of memory");
	if (status == VD_OK)
		*ret_rpc = rpc;
	else
		free_rpc(rpc);
	return status;
}

const char *vdi_serve_rpc_address(const struct vdi_serve_rpc *rpc, size_t index)
{
	return vdi_rpc_server_address(rpc->transport, index);
}

static bool is_answered(struct vdi_etcdserver *server)
{
	struct vdi_serve_watch_counts counts;

	vdi_serve_watches_counts(server->watches, &counts);
	return atomic_load_explicit(&server->unary_count, memory_order_relaxed) == 0 && counts.streams == 0;
}

/* Waits for calls in progress: a put that is being written to disk should not look as if it had failed, and
 * watches should get the reason of their end. */
static void wait_for_answers(struct vdi_serve_rpc *rpc)
{
	vd_mono		due = vd_mono_add(vd_env_now(rpc->server->env), ANSWERS_GRACE);
	struct vdi_wait pause;

	vdi_wait_init(&pause, rpc->server->env);
	while (!is_answered(rpc->server) && vd_env_now(rpc->server->env).ns < due.ns)
		if (vdi_wait_until(&pause, vd_mono_add(vd_env_now(rpc->server->env), VD_MS(5))))
			break; /* no wake-up exists for this */
	vdi_wait_fini(&pause);
}

struct vdi_serve_rpc *vdi_serve_rpc_close(struct vdi_serve_rpc *rpc)
{
	struct vdi_wait wait;

	if (rpc == NULL)
		return NULL;
	/* Stop first: calls that arrive now get a reason. gRPC C core cancels calls that arrive at a server
	 * in shutdown, and clientv3 repeats canceled calls, including writes. */
	vdi_etcdserver_stop(rpc->server);
	wait_for_answers(rpc);
	vdi_rpc_server_drain(rpc->transport);
	vdi_wait_init(&wait, rpc->server->env);
	vdi_rpc_server_close(rpc->transport, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	free_rpc(rpc);
	return NULL;
}
