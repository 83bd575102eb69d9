/* The server: its loops, draining and its end.
 *
 * Each loop has a thread (a blocking actor, whose handler is the loop), an h2_loop, and its connections. At
 * the end of an iteration it takes new sockets and the calls that other threads have put into its list.
 *
 * Closing:
 *   - drain: the first loop stops listening; each loop sends GOAWAY on its connections
 *   - close: each loop ends the calls that the service has not finished, refuses new ones, and closes its
 *     connections; unsent bytes are dropped after a short time
 *   - when no loop takes calls any more and the service has freed all of them, each loop ends with its last
 *     connection
 *   - the last loop to end frees the server
 */
#include <unistd.h>

#include "env.h"
#include "h2_server_state.h"
#include "h2_transport.h"
#include "thread.h"

#define LOOPS_MAX 16
#define SEND_BYTES_DEFAULT (4u << 20)
#define MEMORY_DEFAULT ((size_t) 1 << 30)
#define UNSENT_DEFAULT ((size_t) 1 << 30)
#define SETTLE_TIMEOUT VD_SECONDS(20)
#define IDLE_TIMEOUT VD_SECONDS(300)

/* ---- End ---- */

static void wake_loops_locked(struct vdi_h2_server *server)
{
	vdi_lock_assert_held(&server->lock);
	for (unsigned i = 0; i < server->loop_count; i++)
		vdi_h2_loop_wake(server->loops[i].h2_loop);
}

void vdi_h2_server_drop_call(struct vdi_h2_server *server)
{
	if (atomic_fetch_sub_explicit(&server->calls, 1, memory_order_acq_rel) != 1)
		return;
	vdi_lock_acquire(&server->lock);
	server->is_over = true;
	wake_loops_locked(server);
	vdi_lock_release(&server->lock);
}

/* Works on a half-built server too. */
static void free_server(struct vdi_h2_server *server)
{
	vdi_h2_accept_stop(server);
	for (unsigned i = 0; i < server->loop_count; i++) {
		struct vdi_h2_server_loop *loop = &server->loops[i];

		if (loop->h2_loop)
			vdi_h2_unsent_stop(loop);
		loop->h2_loop = vdi_h2_loop_free(loop->h2_loop);
		loop->loop = vdi_loop_free(loop->loop);
		vdi_lock_fini(&loop->lock);
	}
	vdi_h2_accept_fini(server);
	vdi_h2_unsent_fini(server);
	(void) vdi_h2_tls_free(server->tls);
	vdi_free(server->loops);
	vdi_lock_fini(&server->lock);
	vdi_free(server);
}

/* The loop's thread has released everything. */
static void run_loop_ended(void *arg)
{
	struct vdi_h2_server_loop *loop = arg;
	struct vdi_h2_server	  *server = loop->server;
	void (*done)(void *arg);
	void *done_arg;
	bool  is_last;

	vdi_lock_acquire(&server->lock);
	is_last = --server->loops_running == 0;
	done = server->done;
	done_arg = server->done_arg;
	vdi_lock_release(&server->lock);
	if (!is_last)
		return;
	free_server(server);
	if (done)
		done(done_arg);
}

static void for_each_connection(struct vdi_h2_server_loop *loop,
				void (*action)(struct vdi_h2_server_connection *connection))
{
	struct vdi_h2_server_connection *connection = loop->connections;

	while (connection) {
		struct vdi_h2_server_connection *next = connection->next;

		action(connection);
		connection = next;
	}
}

/* One step of closing, for this loop. */
static void end_step(struct vdi_h2_server_loop *loop)
{
	struct vdi_h2_server *server = loop->server;
	bool		      is_closing;
	bool		      is_over;

	if (loop == server->loops && !loop->is_drained) {
		vdi_h2_accept_stop(server);
		vdi_lock_acquire(&server->lock);
		server->has_stopped_listening = true;
		wake_loops_locked(server);
		vdi_lock_release(&server->lock);
	}
	if (!loop->is_drained) {
		loop->is_drained = true;
		for_each_connection(loop, vdi_h2_server_connection_drain);
	}
	vdi_lock_acquire(&server->lock);
	is_closing = server->is_closing;
	is_over = server->is_over && server->has_stopped_listening;
	vdi_lock_release(&server->lock);
	if (is_closing && !loop->is_notified) {
		loop->is_notified = true;
		for_each_connection(loop, vdi_h2_server_connection_close);
		vdi_h2_server_drop_call(server);
	} else if (is_over && loop->connections == NULL &&
		   atomic_load_explicit(&loop->connection_count, memory_order_acquire) == 0)
		vdi_loop_stop(loop->loop);
}

/* ---- One iteration ---- */

static void open_arrivals(struct vdi_h2_server_loop *loop, struct vdi_h2_arrival *arrival)
{
	while (arrival) {
		struct vdi_h2_arrival *next = arrival->next;

		vdi_h2_server_connection_open(loop, arrival);
		vdi_free(arrival);
		arrival = next;
	}
}

static void end_iteration(void *arg)
{
	struct vdi_h2_server_loop *loop = arg;
	struct vdi_h2_server_call *call;
	struct vdi_h2_server_call *next;
	struct vdi_h2_arrival	  *arrivals;
	struct vdi_h2_http	  *answered;

	vdi_lock_acquire(&loop->lock);
	call = loop->kicked;
	loop->kicked = NULL;
	loop->kicked_last = &loop->kicked;
	arrivals = loop->arrivals;
	loop->arrivals = NULL;
	answered = loop->answered;
	loop->answered = NULL;
	vdi_lock_release(&loop->lock);
	open_arrivals(loop, arrivals);
	vdi_h2_server_http_deliver(answered);
	for (; call; call = next) {
		next = call->kicked_next; /* only this thread uses it until is_kicked is false */
		vdi_h2_server_call_run(call);
	}
	if (atomic_load_explicit(&loop->is_pressed, memory_order_acquire))
		vdi_h2_unsent_schedule_check(loop);
	if (atomic_load_explicit(&loop->server->is_draining, memory_order_acquire))
		end_step(loop);
}

static void run_loop(void *arg)
{
	struct vdi_h2_server_loop *loop = arg;

	vdi_loop_run(loop->loop);
	vd_actor_close(loop->thread, run_loop_ended, loop);
}

/* ---- Functions for the owner ---- */

static struct vdi_h2_server *server_of(const struct vdi_rpc_server *base)
{
	return VDI_CONTAINER_OF((struct vdi_rpc_server *) base, struct vdi_h2_server, base);
}

static void server_drain(struct vdi_rpc_server *base)
{
	struct vdi_h2_server *server = server_of(base);

	vdi_lock_acquire(&server->lock);
	if (!atomic_exchange_explicit(&server->is_draining, true, memory_order_acq_rel))
		wake_loops_locked(server);
	vdi_lock_release(&server->lock);
}

static void server_close(struct vdi_rpc_server *base, void (*done)(void *arg), void *arg)
{
	struct vdi_h2_server *server = server_of(base);

	server_drain(base);
	vdi_lock_acquire(&server->lock);
	VDI_CHECK(!server->is_closing);
	server->is_closing = true;
	server->done = done;
	server->done_arg = arg;
	wake_loops_locked(server);
	vdi_lock_release(&server->lock);
}

static const char *server_address(const struct vdi_rpc_server *base, size_t index)
{
	const struct vdi_h2_server *server = server_of(base);

	return index < server->listener_count ? server->listeners[index].address : NULL;
}

/* ---- Start ---- */

static unsigned choose_loops(unsigned threads)
{
	if (threads == 0)
		threads = VDI_MIN(vdi_thread_processors() / 2, 4);
	return VDI_MIN(VDI_MAX(threads, 1), LOOPS_MAX);
}

static vd_status make_loops(struct vdi_h2_server *server, unsigned count)
{
	server->loops = vdi_calloc(count, sizeof server->loops[0]);
	if (server->loops == NULL)
		return VD_NOMEM;
	for (unsigned i = 0; i < count; i++) {
		struct vdi_h2_server_loop *loop = &server->loops[server->loop_count++];
		struct vdi_h2_loop_options options = { .end_iteration = end_iteration, .arg = loop };

		loop->server = server;
		loop->kicked_last = &loop->kicked;
		vdi_lock_init(&loop->lock, VDI_LOCK_QUEUE);
		VDI_TRY(vdi_loop_new(server->env, &loop->loop));
		VDI_TRY(vdi_loop_set_name(loop->loop, "rpc server"));
		VDI_TRY(vdi_h2_loop_new(server->env, loop->loop, &options, &loop->h2_loop));
	}
	return VD_OK;
}

/* A thread that was never woken ends when it is closed. */
static vd_status make_threads(struct vdi_h2_server *server)
{
	vd_status status = VD_OK;

	for (unsigned i = 0; i < server->loop_count && status == VD_OK; i++) {
		struct vd_actor_options options = {
			.name = "vedette-rpc", .run = run_loop, .arg = &server->loops[i], .blocking = true
		};

		status = vd_actor_new(server->env, &options, &server->loops[i].thread);
	}
	for (unsigned i = 0; i < server->loop_count && status != VD_OK; i++)
		vd_actor_close(server->loops[i].thread, NULL, NULL);
	return status;
}

static vd_status set_up(struct vdi_h2_server *server, const struct vdi_rpc_server_options *options,
			struct vd_error *reterr)
{
	VDI_TRY(vdi_h2_unsent_init(server));
	if (options->tls)
		VDI_TRY(vdi_h2_tls_new_server(options->tls, options->http != NULL, &server->tls, reterr));
	VDI_TRY(vdi_h2_accept_listen(server, options, reterr));
	VDI_TRY(make_loops(server, choose_loops(options->threads)));
	VDI_TRY(vdi_h2_accept_start(server));
	return make_threads(server);
}

vd_status vdi_h2_server_new(const struct vd_env *env, const struct vdi_rpc_server_options *options,
			    struct vdi_rpc_server **ret_server, struct vd_error *reterr)
{
	static const struct vdi_rpc_server_ops ops = { .address = server_address,
						       .drain = server_drain,
						       .close = server_close };
	struct vdi_h2_server		      *server = VDI_NEW(struct vdi_h2_server);
	vd_status			       status;

	if (server == NULL)
		return VD_NOMEM;
	server->base.ops = &ops;
	server->env = env;
	server->handlers = options->handlers;
	server->arg = options->arg;
	server->http = options->http;
	server->receive_size_max = options->receive_size_max ? options->receive_size_max : SIZE_MAX;
	server->send_bytes_max = options->send_bytes_max ? options->send_bytes_max : SEND_BYTES_DEFAULT;
	server->memory_max = options->memory_max ? options->memory_max : MEMORY_DEFAULT;
	server->unsent_max = options->unsent_max ? options->unsent_max : UNSENT_DEFAULT;
	server->streams_max = options->streams_max;
	server->ping_interval_min = options->ping_interval_min;
	server->keepalive_time = options->keepalive_time;
	server->keepalive_timeout = options->keepalive_timeout;
	server->settle_timeout = options->settle_timeout.ns ? options->settle_timeout : SETTLE_TIMEOUT;
	server->idle_timeout = options->idle_timeout.ns ? options->idle_timeout : IDLE_TIMEOUT;
	server->stream_methods = options->stream_methods;
	server->stream_method_count = options->stream_method_count;
	vdi_lock_init(&server->lock, VDI_LOCK_RPC_SERVER);
	status = set_up(server, options, reterr);
	if (status != VD_OK) {
		free_server(server);
		return status == VD_FULL ? VD_IO : status;
	}
	atomic_store(&server->calls, server->loop_count);
	server->loops_running = server->loop_count;
	*ret_server = &server->base; /* set before calls arrive */
	for (unsigned i = 0; i < server->loop_count; i++)
		vd_actor_wake(server->loops[i].thread);
	return VD_OK;
}
