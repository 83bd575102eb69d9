/* The limit of unsent bytes over all calls of a server: unsent_max.
 *
 * A client that does not read makes the server keep its messages. Each stream has a limit (send_bytes_max),
 * but a response is one message of any size, and connections and calls may be many. So the server counts the
 * sum: a message counts with its own memory, and bytes that several messages share count once.
 *
 *   - Up to 3/4 of the limit nothing is checked.
 *   - Above 3/4 each loop checks its calls every 100 ms. A call is ended if its client has read less than 64
 *     KiB in a second although bytes wait for it: its memory is freed at once, and RST_STREAM with
 *     ENHANCE_YOUR_CALM, which gRPC reports as RESOURCE_EXHAUSTED, is sent when the peer reads. The call with
 *     the most bytes is ended first, until there is room.
 *   - At the limit a response is refused with RESOURCE_EXHAUSTED; a message of a stream waits (VD_FULL) until
 *     there is room, as it does at the stream's own limit.
 *
 * So the limit is never exceeded, a client that reads is never ended, and a client that does not read delays
 * others by a few seconds at most. A message larger than the limit is accepted if no other waits. Responses
 * smaller than the memory of a call are not counted: the limit of calls (memory_max) bounds them, and nearly
 * all responses are that small.
 */
#include "env.h"
#include "h2_server_state.h"

#define CHECK_EVERY VD_MS(100)
#define CUTS_PER_CHECK 64
#define STALLED_CHECKS 10
#define SMALL_ANSWER_MAX ((size_t) 1024)

static size_t pressed_from(const struct vdi_h2_server *server)
{
	return server->unsent_max / 4 * 3;
}

/* Makes every loop check its calls: waiting streams, and clients that do not read, may be on any loop. */
static void press(struct vdi_h2_server *server)
{
	for (unsigned i = 0; i < server->loop_count; i++)
		if (!atomic_exchange_explicit(&server->loops[i].is_pressed, true, memory_order_acq_rel))
			vdi_h2_loop_wake(server->loops[i].h2_loop);
}

static bool count(struct vdi_h2_server *server, struct vdi_h2_outgoing *outgoing)
{
	size_t before = vdi_h2_outgoing_count(outgoing, &server->unsent);
	bool   fits = before == 0 ||
		    (outgoing->size <= server->unsent_max && before <= server->unsent_max - outgoing->size);

	if (!fits || before + outgoing->size > pressed_from(server))
		press(server);
	return fits;
}

bool vdi_h2_unsent_take_message(struct vdi_h2_server *server, struct vdi_h2_outgoing *outgoing)
{
	return count(server, outgoing);
}

bool vdi_h2_unsent_take_answer(struct vdi_h2_server *server, struct vdi_h2_outgoing *outgoing)
{
	if (outgoing->size <= SMALL_ANSWER_MAX || count(server, outgoing))
		return true;
	vdi_metric_add(server->unsent_refused, 1);
	return false;
}

/* ---- Checks, on each loop's thread ---- */

static size_t unsent_of(const struct vdi_h2_server *server)
{
	return atomic_load_explicit(&server->unsent.bytes, memory_order_relaxed);
}

/* Returns true if a stream waits for room and there is none. */
static bool check_all(struct vdi_h2_server_loop *loop)
{
	bool has_room = unsent_of(loop->server) < loop->server->unsent_max;
	bool is_waiting = false;

	for (struct vdi_h2_server_connection *connection = loop->connections; connection;
	     connection = connection->next)
		for (struct vdi_h2_server_call *call = connection->calls; call; call = call->next)
			is_waiting = vdi_h2_server_call_check_progress(call, has_room) || is_waiting;
	return is_waiting;
}

static struct vdi_h2_server_call *find_worst(struct vdi_h2_server_loop *loop)
{
	struct vdi_h2_server_call *worst = NULL;

	for (struct vdi_h2_server_connection *connection = loop->connections; connection;
	     connection = connection->next)
		for (struct vdi_h2_server_call *call = connection->calls; call; call = call->next)
			if (call->stalled_checks >= STALLED_CHECKS && call->waiting_then &&
			    (worst == NULL || call->waiting_then > worst->waiting_then))
				worst = call;
	return worst;
}

static void check(struct vdi_h2_timer *timer)
{
	struct vdi_h2_server_loop *loop = VDI_CONTAINER_OF(timer, struct vdi_h2_server_loop, check_timer);
	struct vdi_h2_server	  *server = loop->server;
	struct vdi_h2_server_call *worst;
	bool			   is_waiting;

	loop->is_check_due = false;
	/* Cleared before the check, because a sender that finds no room from here on sets it again. */
	(void) atomic_exchange_explicit(&loop->is_pressed, false, memory_order_acq_rel);
	is_waiting = check_all(loop);
	for (unsigned i = 0; i < CUTS_PER_CHECK && unsent_of(server) > pressed_from(server) &&
			     (worst = find_worst(loop)) != NULL;
	     i++) {
		vdi_h2_server_call_cut(worst);
		vdi_metric_add(server->unsent_cut, 1);
	}
	if (is_waiting || unsent_of(server) > pressed_from(server))
		vdi_h2_unsent_schedule_check(loop);
}

void vdi_h2_unsent_schedule_check(struct vdi_h2_server_loop *loop)
{
	if (loop->is_check_due)
		return;
	loop->is_check_due = true;
	loop->check_timer.fire = check;
	vdi_h2_timer_set(loop->h2_loop, &loop->check_timer,
			 vd_mono_add(vd_env_now(loop->server->env), CHECK_EVERY));
}

void vdi_h2_unsent_stop(struct vdi_h2_server_loop *loop)
{
	if (loop->is_check_due)
		vdi_h2_timer_set(loop->h2_loop, &loop->check_timer, VD_NEVER);
	loop->is_check_due = false;
}

/* ---- Metrics ---- */

/* Sums over all servers of the env. */
static void collect(void *arg)
{
	struct vdi_h2_server *server = arg;
	size_t		      bytes = unsent_of(server);

	vdi_metric_add(server->unsent_bytes, (uint64_t) bytes - (uint64_t) server->unsent_reported);
	server->unsent_reported = bytes;
}

vd_status vdi_h2_unsent_init(struct vdi_h2_server *server)
{
	static const char *const refused[] = { "refused" }, *const cut[] = { "cut" };
	struct vdi_metrics *registry = vdi_env_metrics(server->env);

	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_RPC_UNSENT_BYTES, NULL, &server->unsent_bytes));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_RPC_UNSENT_ENDS_TOTAL, refused, &server->unsent_refused));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_RPC_UNSENT_ENDS_TOTAL, cut, &server->unsent_cut));
	server->collector = (struct vdi_metrics_collector) { .collect = collect, .arg = server };
	vdi_metrics_add_collector(registry, &server->collector);
	server->has_collector = true;
	return VD_OK;
}

void vdi_h2_unsent_fini(struct vdi_h2_server *server)
{
	VDI_CHECK(unsent_of(server) == 0);
	if (server->has_collector)
		vdi_metrics_remove_collector(vdi_env_metrics(server->env), &server->collector);
	vdi_metric_subtract(server->unsent_bytes, server->unsent_reported);
	vdi_metric_release(server->unsent_bytes);
	vdi_metric_release(server->unsent_refused);
	vdi_metric_release(server->unsent_cut);
}
