/* The server: listening, its accept queues, draining and its end.
 *
 * An accept queue is a completion queue with its thread. The first accept queues (options.threads) accept
 * calls and serve the unary ones. Each stream is bound to an accept queue of streams; another one is added
 * when all have VDI_RPC_STREAMS_PER_QUEUE streams, because Debian's build of core searches all tags of a
 * queue at each completion: with ten thousand streams on one queue, it would spend all time there.
 *
 * Closing, in iterations of the first accept queue:
 *   - drain: core stops listening, sends GOAWAY to clients, and returns the call slots
 *   - every call that the service has not finished gets a status; calls still open after CUT_AFTER are cut
 *   - when core reports that it is drained, all slots are back and the service has freed every call, core's
 *     server is destroyed and all accept queues stop
 *   - the last accept queue to end frees the server and stops core
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "env.h"
#include "grpc_credentials.h"
#include "grpc_server_state.h"
#include "grpc_transport.h"
#include "thread.h"

#define UNARY_ACCEPT_QUEUES_MAX 16
#define SEND_BYTES_DEFAULT (4u << 20)
#define CUT_AFTER VD_MS(200)
#define METADATA_SIZE_MAX 65536
#define MEMORY_DEFAULT ((size_t) 1 << 30)

static void run_shutdown(struct vdi_grpc_tag *tag, bool success);

/* ---- Lanes ---- */

static vd_mono run_iteration(void *arg);
static void    run_accept_queue_ended(void *arg);

static vd_status add_accept_queue_locked(struct vdi_grpc_server *server, const char *name,
					 struct vdi_grpc_accept_queue **ret_accept_queue)
{
	struct vdi_grpc_accept_queue *accept_queue = server->accept_queue_count < VDI_GRPC_ACCEPT_QUEUES_MAX ?
							     VDI_NEW(struct vdi_grpc_accept_queue) :
							     NULL;
	struct vdi_grpc_queue_options options = {
		.name = name, .iterate = run_iteration, .ended = run_accept_queue_ended, .arg = accept_queue
	};
	vd_status status;

	if (accept_queue == NULL)
		return VD_NOMEM;
	accept_queue->server = server;
	accept_queue->kicked_last = &accept_queue->kicked;
	status = vdi_grpc_queue_new(server->env, &options, &accept_queue->queue);
	if (status != VD_OK) {
		vdi_free(accept_queue);
		return status;
	}
	vdi_lock_init(&accept_queue->lock, VDI_LOCK_QUEUE);
	server->accept_queues[server->accept_queue_count++] = accept_queue;
	*ret_accept_queue = accept_queue;
	return VD_OK;
}

static void start_accept_queue_locked(struct vdi_grpc_accept_queue *accept_queue)
{
	accept_queue->server->accept_queues_running++;
	vdi_grpc_queue_start(accept_queue->queue);
}

static struct vdi_grpc_accept_queue *least_busy_locked(const struct vdi_grpc_server *server, unsigned first,
						       unsigned end)
{
	struct vdi_grpc_accept_queue *best = NULL;

	for (unsigned i = first; i < end; i++)
		if (best == NULL || server->accept_queues[i]->calls < best->calls)
			best = server->accept_queues[i];
	return best;
}

/* The first streams stay on the unary accept queues: each further idle thread in core's shared set of
 * descriptors takes turns polling it, and passes events to other threads (18 % of the CPU of a put). */
struct vdi_grpc_accept_queue *vdi_grpc_server_queue_for_stream(struct vdi_grpc_server *server)
{
	struct vdi_grpc_accept_queue *added;
	struct vdi_grpc_accept_queue *best;

	vdi_lock_acquire(&server->lock);
	best = least_busy_locked(server, 0, server->unary_accept_queues);
	if (best->calls >= VDI_GRPC_STREAMS_PER_UNARY_ACCEPT_QUEUE) {
		struct vdi_grpc_accept_queue *own =
			least_busy_locked(server, server->unary_accept_queues, server->accept_queue_count);

		best = own ? own : best;
		/* If out of memory or threads, the existing accept queues take more streams. */
		if ((own == NULL || own->calls >= VDI_RPC_STREAMS_PER_QUEUE) && !server->is_stopping &&
		    add_accept_queue_locked(server, "vedette-stream", &added) == VD_OK) {
			start_accept_queue_locked(added);
			best = added;
		}
	}
	best->calls++;
	vdi_lock_release(&server->lock);
	return best;
}

void vdi_grpc_server_wake_locked(struct vdi_grpc_server *server)
{
	if (server->is_closing && !server->is_stopping)
		vdi_grpc_queue_wake(server->accept_queues[0]->queue);
}

/* ---- End ---- */

static void free_server(struct vdi_grpc_server *server)
{
	if (server->core)
		grpc_server_destroy(server->core);
	for (unsigned i = 0; i < server->accept_queue_count; i++) {
		vdi_lock_fini(&server->accept_queues[i]->lock);
		vdi_free(server->accept_queues[i]);
	}
	for (size_t i = 0; i < server->address_count; i++)
		vdi_free(server->addresses[i]);
	vdi_free(server->addresses);
	vdi_free(server->stream_handles);
	vdi_free(server->unary_handles);
	vdi_grpc_runtime_leave(&server->user);
	vdi_lock_fini(&server->lock);
	vdi_free(server);
}

static void run_accept_queue_ended(void *arg)
{
	struct vdi_grpc_accept_queue *accept_queue = arg;
	struct vdi_grpc_server	     *server = accept_queue->server;
	bool			      is_last;

	vdi_lock_acquire(&server->lock);
	is_last = --server->accept_queues_running == 0;
	vdi_lock_release(&server->lock);
	if (is_last) {
		void (*done)(void *arg) = server->done;
		void *done_arg = server->done_arg;

		free_server(server);
		if (done)
			done(done_arg);
	}
}

static void run_shutdown(struct vdi_grpc_tag *tag, bool success)
{
	struct vdi_grpc_server *server = VDI_CONTAINER_OF(tag, struct vdi_grpc_server, shutdown_tag);

	(void) success;
	vdi_lock_acquire(&server->lock);
	server->is_drained = true;
	vdi_grpc_server_wake_locked(server);
	vdi_lock_release(&server->lock);
}

static void notify_calls_locked(struct vdi_grpc_server *server)
{
	server->is_notified = true;
	server->cut_at = vd_mono_add(vd_env_now(server->env), CUT_AFTER);
	for (struct vdi_grpc_server_call *call = server->calls; call; call = call->next)
		vdi_grpc_server_call_shut_down(call);
}

/* One step of closing. Returns when to call it again. */
static vd_mono close_iteration(struct vdi_grpc_server *server)
{
	vd_mono due = VD_NEVER;
	bool	cuts;
	bool	stops;

	vdi_lock_acquire(&server->lock);
	if (!server->is_notified)
		notify_calls_locked(server);
	cuts = !server->is_cut && server->is_shut && vd_env_now(server->env).ns >= server->cut_at.ns;
	stops = server->is_drained && server->offers == 0 && server->calls == NULL;
	if (!server->is_cut && !cuts)
		due = server->is_shut ? server->cut_at : vd_mono_add(vd_env_now(server->env), VD_MS(10));
	vdi_lock_release(&server->lock);
	if (cuts && !stops) {
		server->is_cut = true;
		grpc_server_cancel_all_calls(server->core);
	}
	if (stops) {
		grpc_server_destroy(server->core);
		server->core = NULL;
		vdi_lock_acquire(&server->lock);
		server->is_stopping = true;
		for (unsigned i = 1; i < server->accept_queue_count; i++)
			vdi_grpc_queue_wake(server->accept_queues[i]->queue);
		vdi_lock_release(&server->lock);
		due = VD_NEVER;
	}
	return due;
}

static vd_mono run_iteration(void *arg)
{
	struct vdi_grpc_accept_queue *accept_queue = arg;
	struct vdi_grpc_server	     *server = accept_queue->server;
	vd_mono			      due = VD_NEVER;
	bool			      closes;
	bool			      stops;

	vdi_grpc_server_calls_run(accept_queue);
	vdi_lock_acquire(&server->lock);
	closes = server->is_closing && accept_queue == server->accept_queues[0];
	vdi_lock_release(&server->lock);
	if (closes)
		due = close_iteration(server);
	vdi_lock_acquire(&server->lock);
	stops = server->is_stopping;
	vdi_lock_release(&server->lock);
	if (stops)
		vdi_grpc_queue_stop(accept_queue->queue);
	return due;
}

static struct vdi_grpc_server *server_of(const struct vdi_rpc_server *base)
{
	return VDI_CONTAINER_OF((struct vdi_rpc_server *) base, struct vdi_grpc_server, base);
}

static const char *server_address(const struct vdi_rpc_server *base, size_t index)
{
	const struct vdi_grpc_server *server = server_of(base);

	return index < server->address_count ? server->addresses[index] : NULL;
}

static void server_drain(struct vdi_rpc_server *base)
{
	struct vdi_grpc_server *server = server_of(base);

	bool is_first;

	vdi_lock_acquire(&server->lock);
	is_first = !server->is_draining;
	server->is_draining = true;
	vdi_lock_release(&server->lock);
	if (!is_first)
		return;
	vdi_grpc_tag_hand(&server->shutdown_tag);
	grpc_server_shutdown_and_notify(server->core, vdi_grpc_queue_core(server->accept_queues[0]->queue),
					&server->shutdown_tag);
	vdi_lock_acquire(&server->lock);
	server->is_shut = true;
	vdi_lock_release(&server->lock);
}

static void server_close(struct vdi_rpc_server *base, void (*done)(void *arg), void *arg)
{
	struct vdi_grpc_server *server = server_of(base);

	server_drain(base);
	vdi_lock_acquire(&server->lock);
	VDI_CHECK(!server->is_closing);
	server->is_closing = true;
	server->done = done;
	server->done_arg = arg;
	vdi_grpc_server_wake_locked(server);
	vdi_lock_release(&server->lock);
}

/* ---- Start ---- */

static grpc_arg int_arg(const char *key, int64_t value)
{
	return (grpc_arg) { .type = GRPC_ARG_INTEGER,
			    .key = (char *) key,
			    .value.integer = value > INT32_MAX ? INT32_MAX : (int) value };
}

static void create_core(struct vdi_grpc_server *server, const struct vdi_rpc_server_options *options)
{
	grpc_arg	     list[24];
	grpc_channel_args    args = { .args = list };
	grpc_resource_quota *quota = grpc_resource_quota_create("vedette-server");

	grpc_resource_quota_resize(quota, options->memory_max ? options->memory_max : MEMORY_DEFAULT);
	list[args.num_args++] = (grpc_arg) { .type = GRPC_ARG_POINTER,
					     .key = (char *) GRPC_ARG_RESOURCE_QUOTA,
					     .value.pointer = { quota, grpc_resource_quota_arg_vtable() } };
	/* Twice the limit: messages in between are refused here with grpc-go's text, larger ones by core. */
	list[args.num_args++] = int_arg(
		GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
		server->receive_size_max > INT32_MAX / 2 ? -1 : (int64_t) server->receive_size_max * 2);
	list[args.num_args++] = int_arg(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1);
	list[args.num_args++] = int_arg(GRPC_ARG_ALLOW_REUSEPORT, 0);
	list[args.num_args++] = int_arg(GRPC_ARG_ENABLE_CHANNELZ, 0);
	/* A window of fixed size, instead of one that core measures with pings and grows to up to 16 MiB. */
	list[args.num_args++] = int_arg(GRPC_ARG_HTTP2_BDP_PROBE, 0);
	list[args.num_args++] = int_arg(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, VDI_GRPC_WINDOW);
	list[args.num_args++] = int_arg(GRPC_ARG_MAX_METADATA_SIZE, METADATA_SIZE_MAX);
	list[args.num_args++] = int_arg(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
	list[args.num_args++] = int_arg(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
	if (options->streams_max)
		list[args.num_args++] = int_arg(GRPC_ARG_MAX_CONCURRENT_STREAMS, options->streams_max);
	if (options->ping_interval_min.ns > 0)
		list[args.num_args++] = int_arg(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
						options->ping_interval_min.ns / 1000000);
	if (options->keepalive_time.ns > 0)
		list[args.num_args++] =
			int_arg(GRPC_ARG_KEEPALIVE_TIME_MS, options->keepalive_time.ns / 1000000);
	if (options->keepalive_timeout.ns > 0)
		list[args.num_args++] =
			int_arg(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, options->keepalive_timeout.ns / 1000000);
	VDI_CHECK(args.num_args <= VDI_ARRAY_SIZE(list));
	server->core = grpc_server_create(&args, NULL);
	grpc_resource_quota_unref(quota);
}

/* Core reports only that listening failed: try the same here to get the reason. NULL: the address is not the
 * reason. */
static const char *why_not_listening(const char *address)
{
	char		 host[256];
	const char	*colon = strrchr(address, ':');
	struct addrinfo	 hints = { .ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	const char	*why = NULL;
	size_t		 size;
	int		 fd;
	int		 on = 1;

	if (colon == NULL || strncmp(address, "unix:", 5) == 0)
		return why;
	size = (size_t) (colon - address);
	if (size >= 2 && address[0] == '[')
		snprintf(host, sizeof host, "%.*s", (int) (size - 2), address + 1);
	else
		snprintf(host, sizeof host, "%.*s", (int) size, address);
	if (getaddrinfo(host, colon + 1, &hints, &found) != 0)
		return "no such address";
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		(void) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on,
				  sizeof on); /* like core; without it the error may differ */
		if (bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, 1) != 0)
			why = strerror(errno);
		close(fd);
	}
	freeaddrinfo(found);
	return why;
}

static vd_status listen_on(struct vdi_grpc_server *server, const char *address,
			   grpc_server_credentials *credentials, bool has_tls, struct vd_error *reterr)
{
	const char *colon = strrchr(address, ':');
	const char *why;
	bool	    is_socket = strncmp(address, "unix:", 5) == 0;
	char	    text[300];
	int	    port;

	if (!is_socket && (colon == NULL || strlen(address) > 256))
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "address \"%.200s\" is not of the form address:port", address);
	port = grpc_server_add_http2_port(server->core, address, credentials);
	if (port == 0) {
		why = why_not_listening(address);
		if (why == NULL && has_tls)
			return vd_error_set(reterr, VD_INVALID_ARGUMENT,
					    "the certificate, its key or the CA cannot be used");
		return vd_error_set(reterr, VD_IO, "address \"%.200s\": %s", address,
				    why ? why : "cannot listen");
	}
	if (is_socket)
		snprintf(text, sizeof text, "%s", address);
	else
		snprintf(text, sizeof text, "%.*s:%d", (int) (colon - address), address, port);
	server->addresses[server->address_count] = vdi_strdup(text);
	if (server->addresses[server->address_count] == NULL)
		return VD_NOMEM;
	server->address_count++;
	return VD_OK;
}

static vd_status listen_on_all(struct vdi_grpc_server *server, const struct vdi_rpc_server_options *options,
			       struct vd_error *reterr)
{
	grpc_server_credentials *credentials;
	vd_status		 status = VD_OK;

	if (options->listen_count == 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "no address to listen on");
	server->addresses = vdi_calloc(options->listen_count, sizeof server->addresses[0]);
	if (server->addresses == NULL)
		return VD_NOMEM;
	if (options->tls)
		VDI_TRY(vdi_grpc_credentials_server(options->tls, &credentials, reterr));
	else
		credentials = grpc_insecure_server_credentials_create();
	for (size_t i = 0; i < options->listen_count && status == VD_OK; i++)
		status = listen_on(server, options->listen[i], credentials, options->tls != NULL, reterr);
	grpc_server_credentials_release(credentials);
	return status;
}

static vd_status register_methods(struct vdi_grpc_server *server, const char *const *methods, size_t count,
				  grpc_server_register_method_payload_handling payload, void ***ret_handles,
				  struct vd_error *reterr)
{
	void **handles;

	if (count == 0)
		return VD_OK;
	handles = vdi_calloc(count, sizeof handles[0]);
	if (handles == NULL)
		return VD_NOMEM;
	*ret_handles = handles;
	for (size_t i = 0; i < count; i++) {
		handles[i] = grpc_server_register_method(server->core, methods[i], NULL, payload, 0);
		if (handles[i] == NULL)
			return vd_error_set(reterr, VD_INVALID_ARGUMENT, "method \"%s\" is given twice",
					    methods[i]);
	}
	return VD_OK;
}

static vd_status make_accept_queues(struct vdi_grpc_server *server)
{
	struct vdi_grpc_accept_queue *accept_queue;
	vd_status		      status = VD_OK;

	vdi_lock_acquire(&server->lock);
	for (unsigned i = 0; i < server->unary_accept_queues && status == VD_OK; i++) {
		status = add_accept_queue_locked(server, "vedette-rpc", &accept_queue);
		if (status == VD_OK)
			grpc_server_register_completion_queue(server->core,
							      vdi_grpc_queue_core(accept_queue->queue), NULL);
	}
	vdi_lock_release(&server->lock);
	return status;
}

static unsigned choose_accept_queues(unsigned threads)
{
	unsigned processors = vdi_thread_processors();

	/* On two processors a second thread costs more than it gains. */
	if (threads == 0)
		threads = VDI_MIN(processors / 2, 4);
	return VDI_MIN(VDI_MAX(threads, 1), UNARY_ACCEPT_QUEUES_MAX);
}

/* Frees a server that never started, whose accept queues never ran. */
static void undo(struct vdi_grpc_server *server)
{
	grpc_completion_queue *queue;

	if (server->core) {
		/* Core's server must be shut down even so, on a queue that it knows. */
		queue = server->accept_queue_count ? vdi_grpc_queue_core(server->accept_queues[0]->queue) :
						     NULL;
		if (queue) {
			grpc_server_shutdown_and_notify(server->core, queue, &server->shutdown_tag);
			(void) grpc_completion_queue_next(queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
		}
		grpc_server_destroy(server->core);
		server->core = NULL;
	}
	for (unsigned i = 0; i < server->accept_queue_count; i++)
		vdi_grpc_queue_free(server->accept_queues[i]->queue);
	free_server(server);
}

static vd_status set_up(struct vdi_grpc_server *server, const struct vdi_rpc_server_options *options,
			struct vd_error *reterr)
{
	create_core(server, options);
	VDI_TRY(register_methods(server, options->stream_methods, options->stream_method_count,
				 GRPC_SRM_PAYLOAD_NONE, &server->stream_handles, reterr));
	VDI_TRY(register_methods(server, options->unary_methods, options->unary_method_count,
				 GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER, &server->unary_handles, reterr));
	server->stream_methods = options->stream_methods;
	server->stream_method_count = options->stream_method_count;
	server->unary_methods = options->unary_methods;
	server->unary_method_count = options->unary_method_count;
	VDI_TRY(make_accept_queues(server));
	return listen_on_all(server, options, reterr);
}

vd_status vdi_grpc_server_new(const struct vd_env *env, const struct vdi_rpc_server_options *options,
			      struct vdi_rpc_server **ret_server, struct vd_error *reterr)
{
	static const struct vdi_rpc_server_ops ops = { .address = server_address,
						       .drain = server_drain,
						       .close = server_close };
	struct vdi_grpc_server		      *server = VDI_NEW(struct vdi_grpc_server);
	vd_status			       status;

	if (server == NULL)
		return VD_NOMEM;
	server->base.ops = &ops;
	server->env = env;
	server->handlers = options->handlers;
	server->arg = options->arg;
	server->receive_size_max = options->receive_size_max ? options->receive_size_max : SIZE_MAX;
	server->send_bytes_max = options->send_bytes_max ? options->send_bytes_max : SEND_BYTES_DEFAULT;
	server->unary_accept_queues = choose_accept_queues(options->threads);
	server->shutdown_tag.run = run_shutdown;
	vdi_lock_init(&server->lock, VDI_LOCK_RPC_SERVER);
	vdi_grpc_runtime_enter(&server->user, env);
	status = set_up(server, options, reterr);
	if (status != VD_OK) {
		undo(server);
		return status == VD_FULL ? VD_IO : status;
	}
	grpc_server_start(server->core);
	*ret_server = &server->base; /* set before calls arrive */
	status = vdi_grpc_accept_start(server);
	vdi_lock_acquire(&server->lock);
	for (unsigned i = 0; status == VD_OK && i < server->accept_queue_count; i++)
		start_accept_queue_locked(server->accept_queues[i]);
	vdi_lock_release(&server->lock);
	if (status != VD_OK)
		undo(server);
	return status;
}
