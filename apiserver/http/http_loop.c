/* An event loop of the server: inbox, timers, acceptor.
 *
 * Other threads put work into the inbox under the lock (accepted sockets, completed requests, commands) and
 * wake the loop's actor, which empties the whole inbox. Two loops accept, so that one busy loop does not
 * delay new connections; they distribute sockets round robin and skip busy loops. Deadlines are in a heap;
 * the actor's one timer has the earliest.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "env.h"
#include "http_request.h"
#include "http_server.h"
#include "http_text.h"

#define ACCEPT_BATCH 64
#define ACCEPTING_LOOPS 2
#define BUSY_TIME VD_MS(1)
#define TURNS_TIME VD_MS(1)
#define COMPLETED_TIME VD_MS(5)

struct vdi_arrival {
	struct vdi_arrival *next;
	int		    fd;
};

static void close_arrivals(struct vdi_arrival *arrival)
{
	while (arrival) {
		struct vdi_arrival *next = arrival->next;

		(void) close(arrival->fd);
		vdi_free(arrival);
		arrival = next;
	}
}

/* Over the connection limit: responds 429 and closes. The response may be lost if the peer is still sending;
 * it then sees a reset, which clients also retry. A TLS connection gets no response, because that needs a
 * handshake, and an overloaded server must not do more of those. */
static void refuse(struct vd_server *server, int fd)
{
	static const char text[] =
		"HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain; charset=utf-8\r\nRetry-After: "
		"1\r\n"
		"Content-Length: 43\r\nConnection: close\r\n\r\nToo many requests, please try again later.\n";
	char sink[4096];

	server->refused_total++;
	if (server->options.tls_cert_path == NULL)
		(void) send(fd, text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	(void) shutdown(fd, SHUT_WR);
	(void) recv(fd, sink, sizeof sink, MSG_DONTWAIT);
	(void) close(fd);
}

/* If all loops are busy, returns any. */
static struct vdi_http_loop *next_loop(struct vd_server *server)
{
	struct vdi_http_loop *loop = NULL;

	for (size_t i = 0; i < server->loop_count; i++) {
		loop = &server->loops[server->loop_next++ % server->loop_count];
		if (!vdi_loop_is_busy(loop->loop, BUSY_TIME))
			break;
	}
	return loop;
}

static void hand_out(struct vd_server *server, int fd)
{
	struct vdi_http_loop *loop = next_loop(server);
	struct vdi_arrival   *arrival = VDI_NEW(struct vdi_arrival);

	if (arrival == NULL || server->connections_open >= (int64_t) server->options.connection_count_max) {
		vdi_free(arrival);
		refuse(server, fd);
		return;
	}
	server->connections_open++;
	arrival->fd = fd;
	vdi_lock_acquire(&loop->lock);
	arrival->next = loop->arrived;
	loop->arrived = arrival;
	/* under the lock: the run that empties the inbox may be the loop's last */
	vd_actor_wake(loop->actor);
	vdi_lock_release(&loop->lock);
}

static bool accepts(const struct vdi_http_loop *loop)
{
	return loop - loop->server->loops < ACCEPTING_LOOPS;
}

static void on_accept(evutil_socket_t fd, short events, void *arg)
{
	struct vdi_http_loop *loop = arg;

	(void) events;
	vdi_loop_note_work();
	for (int i = 0; i < ACCEPT_BATCH; i++) {
		int client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (client >= 0) {
			hand_out(loop->server, client);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			/* The socket stays readable: pause accepting instead of spinning. */
			(void) event_del(&loop->accept_event);
			vdi_timer_heap_set(&loop->timers, &loop->accept_pause,
					   vd_mono_add(vd_env_now(loop->server->env), VD_MS(100)));
			vdi_http_loop_arm(loop);
		}
		if (errno != EINTR && errno != ECONNABORTED)
			return;
	}
}

const char *vdi_http_loop_date(struct vdi_http_loop *loop)
{
	vd_wall now = vd_env_wall(loop->server->env);
	char	text[VDI_HTTP_DATE_SIZE];

	if (now.ns / 1000000000 != loop->date_second) {
		vdi_http_date(now, text);
		(void) snprintf(loop->date, sizeof loop->date, "Date: %s\r\n", text);
		loop->date_second = now.ns / 1000000000;
	}
	return loop->date;
}

struct vdi_gzip_writer *vdi_http_loop_gzip_writer(struct vdi_http_loop *loop)
{
	if (loop->gzip_writer == NULL && vdi_gzip_writer_new(&loop->gzip_writer) != VD_OK)
		return NULL;
	return loop->gzip_writer;
}

void vdi_http_loop_arm(struct vdi_http_loop *loop)
{
	vd_mono due = vdi_timer_heap_next_due(&loop->timers);

	if (due.ns < loop->timer_due.ns) {
		loop->timer_due = due;
		vd_actor_set_timer(loop->actor, due);
	}
}

static void bury(struct vdi_http_loop *loop)
{
	struct vdi_http_connection *connection;

	while ((connection = LIST_FIRST(&loop->deferred_free)) != NULL) {
		LIST_REMOVE(connection, siblings);
		vdi_http_connection_free(connection);
	}
}

static void expire(struct vdi_http_loop *loop)
{
	vd_mono		  now = vd_env_now(loop->server->env);
	struct vdi_timer *timer;

	while ((timer = vdi_timer_heap_pop_due(&loop->timers, now)) != NULL) {
		if (timer == &loop->accept_pause)
			(void) event_add(&loop->accept_event, NULL);
		else
			vdi_http_connection_expire(
				VDI_CONTAINER_OF(timer, struct vdi_http_connection, timer));
	}
}

/* Gives each queued connection one turn, up to TURNS_TIME; the connections not reached are first in the next
 * run. */
static void give_turns(struct vdi_http_loop *loop)
{
	struct vdi_http_connection *last = TAILQ_LAST(&loop->turns, vdi_http_turns_head);
	struct vdi_http_connection *connection;
	vd_mono			    started = vd_env_now(loop->server->env);

	while ((connection = TAILQ_FIRST(&loop->turns)) != NULL) {
		TAILQ_REMOVE(&loop->turns, connection, turns);
		connection->in_turns = false;
		vdi_http_connection_pump(connection);
		if (connection == last ||
		    vd_mono_since(vd_env_now(loop->server->env), started).ns >= TURNS_TIME.ns)
			break;
	}
}

static void for_each_connection(struct vdi_http_loop *loop,
				void (*action)(struct vdi_http_connection *connection))
{
	struct vdi_http_connection *connection = LIST_FIRST(&loop->connections);

	while (connection) {
		struct vdi_http_connection *next = LIST_NEXT(connection, siblings);

		action(connection);
		connection = next;
	}
}

static void take_arrivals(struct vdi_http_loop *loop, struct vdi_arrival *arrival)
{
	while (arrival) {
		struct vdi_arrival *next = arrival->next;

		vdi_http_connection_open(loop, arrival->fd);
		vdi_free(arrival);
		arrival = next;
	}
}

/* The list is newest first; the order between requests does not matter. Requests that are not reached within
 * COMPLETED_TIME wait for the next run. */
static void take_completed(struct vdi_http_loop *loop, struct vdi_request *request)
{
	vd_mono started = vd_env_now(loop->server->env);

	while (request) {
		struct vdi_request *next = request->completed_next;

		request->completed_next = NULL;
		vdi_request_continue(request);
		request = next;
		if (request && vd_mono_since(vd_env_now(loop->server->env), started).ns >= COMPLETED_TIME.ns)
			break;
	}
	loop->left = request;
}

static struct vdi_request *join(struct vdi_request *first, struct vdi_request *second)
{
	struct vdi_request *last = first;

	while (last && last->completed_next)
		last = last->completed_next;
	if (last)
		last->completed_next = second;
	return first ? first : second;
}

static void take_newest(struct vdi_http_loop *loop)
{
	struct vdi_security	*security = loop->security;
	struct vdi_resource_set *resource_set = loop->resource_set;

	vdi_lock_acquire(&loop->server->lock);
	loop->security = vdi_security_ref(loop->server->security);
	loop->resource_set = vdi_resource_set_ref(loop->server->kinds.resource_set);
	atomic_store(&loop->served_number, loop->server->kinds.served_number);
	vdi_kinds_wake_locked(&loop->server->kinds);
	vdi_lock_release(&loop->server->lock);
	(void) vdi_security_unref(security);
	(void) vdi_resource_set_unref(resource_set);
}

void vdi_http_loop_freshen(struct vdi_http_loop *loop)
{
	if (atomic_load_explicit(&loop->server->kinds.served_number, memory_order_acquire) !=
	    atomic_load_explicit(&loop->served_number, memory_order_relaxed))
		take_newest(loop);
}

static void note_ping(struct vdi_http_loop *loop)
{
	struct vd_server *server = loop->server;
	uint64_t	  ping = server->ping;

	if (loop->pong == ping)
		return;
	vdi_lock_acquire(&server->lock);
	loop->pong = ping;
	vdi_condition_broadcast(&server->changed);
	vdi_lock_release(&server->lock);
}

static void run(void *arg)
{
	struct vdi_http_loop *loop = arg;
	struct vdi_request   *completed;
	struct vdi_arrival   *arrived;
	bool		      has_to_accept, has_to_drain, has_to_close, has_to_reload;

	bury(loop);
	note_ping(loop);
	vdi_lock_acquire(&loop->lock);
	completed = loop->completed;
	loop->completed = NULL;
	arrived = loop->arrived;
	loop->arrived = NULL;
	has_to_accept = loop->has_to_accept;
	loop->has_to_accept = false;
	has_to_drain = loop->has_to_drain;
	loop->has_to_drain = false;
	has_to_close = loop->has_to_close;
	has_to_reload = loop->has_to_reload;
	loop->has_to_reload = false;
	vdi_lock_release(&loop->lock);

	if (has_to_reload)
		take_newest(loop);
	if (has_to_accept)
		(void) event_add(&loop->accept_event, NULL);
	take_arrivals(loop, arrived);
	take_completed(loop, join(loop->left, completed));
	if ((has_to_drain || has_to_close) && accepts(loop)) {
		(void) event_del(&loop->accept_event);
		vdi_timer_heap_remove(&loop->timers, &loop->accept_pause);
	}
	if (has_to_drain)
		for_each_connection(loop, vdi_http_connection_drain);
	if (has_to_close)
		for_each_connection(loop, vdi_http_connection_close);
	give_turns(loop);
	expire(loop);
	loop->timer_due = vdi_timer_heap_next_due(&loop->timers);
	vd_actor_set_timer(loop->actor, loop->timer_due);
	if (loop->left || !TAILQ_EMPTY(&loop->turns) || !LIST_EMPTY(&loop->deferred_free))
		vd_actor_wake(loop->actor);
}

static void order(struct vdi_http_loop *loop, bool *flag)
{
	vdi_lock_acquire(&loop->lock);
	*flag = true;
	vd_actor_wake(loop->actor);
	vdi_lock_release(&loop->lock);
}

void vdi_http_loop_accept(struct vdi_http_loop *loop)
{
	if (accepts(loop))
		order(loop, &loop->has_to_accept);
}

void vdi_http_loop_drain(struct vdi_http_loop *loop)
{
	order(loop, &loop->has_to_drain);
}

void vdi_http_loop_reload(struct vdi_http_loop *loop)
{
	order(loop, &loop->has_to_reload);
}

void vdi_http_loop_ping(struct vdi_http_loop *loop)
{
	vdi_lock_acquire(&loop->lock);
	vd_actor_wake(loop->actor);
	vdi_lock_release(&loop->lock);
}

void vdi_http_loop_close_all(struct vdi_http_loop *loop)
{
	order(loop, &loop->has_to_close);
}

void vdi_http_loop_complete(struct vdi_http_loop *loop, struct vdi_request *request)
{
	/* Wake under the lock: once the loop has the request, its connection may end, and the loop with the
	 * last connection. */
	vdi_lock_acquire(&loop->lock);
	request->completed_next = loop->completed;
	loop->completed = request;
	vd_actor_wake(loop->actor);
	vdi_lock_release(&loop->lock);
}

vd_status vdi_http_loop_init(struct vdi_http_loop *loop, struct vd_server *server)
{
	struct vd_actor_options options = { .name = "http_loop", .run = run, .arg = loop };
	vd_status		status;

	memset(loop, 0, sizeof *loop);
	loop->server = server;
	loop->timer_due = VD_NEVER;
	LIST_INIT(&loop->connections);
	LIST_INIT(&loop->deferred_free);
	TAILQ_INIT(&loop->turns);
	vdi_lock_init(&loop->lock, VDI_LOCK_QUEUE);
	take_newest(loop);
	loop->scratch = vdi_alloc(VDI_HTTP_SCRATCH_SIZE);
	status = loop->scratch ? vdi_loop_new(server->env, &loop->loop) : VD_NOMEM;
	if (status == VD_OK)
		status = vd_executor_actor_new(vdi_loop_executor(loop->loop), &options, &loop->actor);
	if (status == VD_OK && accepts(loop))
		(void) event_assign(&loop->accept_event, vdi_loop_base(loop->loop), server->listen_fd,
				    EV_READ | EV_PERSIST, on_accept, loop);
	if (status == VD_OK)
		status = vdi_loop_start_thread(loop->loop, "http");
	if (status != VD_OK)
		vdi_http_loop_fini(loop);
	return status;
}

void vdi_http_loop_fini(struct vdi_http_loop *loop)
{
	if (loop->server == NULL)
		return;
	/* The last run may still be in progress on the loop's thread, with the actor; the actor is freed when
	 * that thread has ended. */
	if (loop->actor)
		vd_actor_close(loop->actor, NULL, NULL);
	loop->loop = vdi_loop_free(loop->loop);
	close_arrivals(loop->arrived);
	bury(loop);
	vdi_lock_fini(&loop->lock);
	(void) vdi_security_unref(loop->security);
	(void) vdi_resource_set_unref(loop->resource_set);
	(void) vdi_gzip_writer_free(loop->gzip_writer);
	vdi_free(loop->scratch);
	memset(loop, 0, sizeof *loop);
}
