/* A connection: reads bytes, handles requests in order, writes responses.
 *
 *   SHAKE (TLS only) --> READ_HEAD
 *   READ_HEAD --head--> READ_BODY --complete--> HANDLE --response--> RESPOND --all sent--> READ_HEAD | close
 *       \__________________\____ refused ______________________________________________> LINGER --> close
 *
 * An idle connection holds no buffer: reads use the loop's scratch memory, and only unparsed bytes are kept.
 * One request is handled at a time; pipelined bytes wait in `input`. A closed connection moves to the loop's
 * list of deferred frees, because callers on the stack still hold it.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "env.h"
#include "http_metrics.h"
#include "http_request.h"
#include "http_server.h"
#include "http_text.h"
#include "request_log.h"

#define INPUT_MAX 131072
#define LINGER VD_SECONDS(1)

static void on_ready(evutil_socket_t fd, short events, void *arg);
static void process_input(struct vdi_http_connection *connection);

static void set_events(struct vdi_http_connection *connection, short flags)
{
	if (connection->event_flags == flags)
		return;
	if (connection->event_flags)
		(void) event_del(&connection->event);
	connection->event_flags = flags;
	if (flags == 0)
		return;
	(void) event_assign(&connection->event, vdi_loop_base(connection->loop->loop), connection->fd,
			    (short) (flags | EV_PERSIST), on_ready, connection);
	if (event_add(&connection->event, NULL) != 0) {
		connection->event_flags = 0;
		vdi_http_connection_close(connection);
	}
}

static void set_deadline(struct vdi_http_connection *connection, vd_dur timeout)
{
	vd_mono due =
		timeout.ns < 0 ? VD_NEVER : vd_mono_add(vd_env_now(connection->loop->server->env), timeout);

	vdi_timer_heap_set(&connection->loop->timers, &connection->timer, due);
	vdi_http_loop_arm(connection->loop);
}

static void clear_deadline(struct vdi_http_connection *connection)
{
	vdi_timer_heap_remove(&connection->loop->timers, &connection->timer);
}

/* Closes the connection if the response makes no progress for write_timeout, or at the end of the request's
 * whole time. */
static void set_write_deadline(struct vdi_http_connection *connection)
{
	vd_mono due = vd_mono_add(vd_env_now(connection->loop->server->env),
				  connection->loop->server->options.write_timeout);

	if (due.ns > connection->request_due.ns)
		due = connection->request_due;
	vdi_timer_heap_set(&connection->loop->timers, &connection->timer, due);
	vdi_http_loop_arm(connection->loop);
}

void vdi_http_connection_limit(struct vdi_http_connection *connection, vd_dur timeout)
{
	connection->request_due = vd_mono_add(vd_env_now(connection->loop->server->env), timeout);
	set_deadline(connection, timeout);
}

/* False: out of memory. */
static bool start_tls(struct vdi_http_connection *connection)
{
	const struct vdi_security *security = connection->loop->security;

	if (security->tls == NULL)
		return true;
	connection->state = VDI_HTTP_SHAKE;
	return vdi_tls_link_new(security->tls, connection->fd, &connection->tls) == VD_OK;
}

void vdi_http_connection_open(struct vdi_http_loop *loop, int fd)
{
	struct vdi_http_connection *connection = VDI_NEW(struct vdi_http_connection);
	int			    on = 1, idle_s = 30, interval_s = 10, dead_ms = 60000;

	if (connection == NULL) {
		(void) close(fd);
		loop->server->connections_open--;
		return;
	}
	(void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	(void) setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	(void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
	(void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
	(void) setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead_ms, sizeof dead_ms);
	connection->loop = loop;
	connection->fd = fd;
	connection->keep_alive = true;
	connection->request_due = VD_NEVER;
	LIST_INSERT_HEAD(&loop->connections, connection, siblings);
	loop->connection_count++;
	loop->connections_open++;
	set_deadline(connection, loop->server->options.head_timeout);
	set_events(connection, EV_READ);
	if (loop->server->draining || !start_tls(connection))
		vdi_http_connection_close(connection);
}

/* Frees the rest of a response that was buffered for the client, whether it was sent or not. */
static void drop_pending(struct vdi_http_connection *connection)
{
	vdi_free(connection->pending);
	connection->pending = NULL;
	if (connection->account)
		atomic_fetch_sub(&connection->account->answer_bytes, connection->pending_size);
	vdi_account_put(&connection->loop->server->accounts, connection->account);
	connection->account = NULL;
}

void vdi_http_connection_close(struct vdi_http_connection *connection)
{
	struct vdi_http_loop *loop = connection->loop;

	if (connection->state == VDI_HTTP_CLOSED)
		return;
	connection->state = VDI_HTTP_CLOSED;
	if (connection->event_flags)
		(void) event_del(&connection->event);
	connection->event_flags = 0;
	clear_deadline(connection);
	if (connection->in_turns)
		TAILQ_REMOVE(&loop->turns, connection, turns);
	connection->in_turns = false;
	if (connection->tls)
		vdi_tls_link_end(connection->tls);
	/* The stream lives until the list of deferred frees is emptied and may receive events until then:
	 * they must not reach the next connection that gets this descriptor number. */
	(void) close(connection->fd);
	connection->fd = -1;
	if (connection->request) {
		struct vdi_request_labels labels;

		vdi_request_labels_of(connection->request, &labels);
		vdi_request_labels_aborted(&labels);
		vdi_request_detach(connection->request);
	}
	connection->request = NULL;
	connection->request_log = vdi_request_log_end(connection->request_log);
	LIST_REMOVE(connection, siblings);
	LIST_INSERT_HEAD(&loop->deferred_free, connection, siblings);
	loop->connection_count--;
	loop->connections_open--;
	vd_actor_wake(loop->actor);
}

void vdi_http_connection_free(struct vdi_http_connection *connection)
{
	struct vd_server *server = connection->loop->server;

	if (connection->stream)
		connection->stream->ops->free(connection->stream);
	(void) vdi_tls_link_free(connection->tls);
	(void) vdi_identity_unref(connection->identity);
	vdi_free(connection->input);
	drop_pending(connection);
	vdi_free(connection);
	vdi_lock_acquire(&server->lock);
	if (--server->connections_open == 0)
		vdi_condition_broadcast(&server->changed);
	vdi_lock_release(&server->lock);
}

/* ---- Responses ---- */

vd_status vdi_http_connection_send(struct vdi_http_connection *connection, const struct iovec *parts,
				   size_t count, size_t *ret_sent)
{
	struct msghdr message = { .msg_iov = (struct iovec *) (uintptr_t) parts, .msg_iovlen = count };
	size_t	      total = 0;
	ssize_t	      sent;
	vd_status     status;

	*ret_sent = 0;
	if (connection->fd < 0)
		return VD_IO;
	if (connection->tls) {
		status = vdi_tls_link_send(connection->tls, parts, count, ret_sent);
		vdi_request_log_sent(connection->request_log, *ret_sent);
		return status;
	}
	for (size_t i = 0; i < count; i++)
		total += parts[i].iov_len;
	if (total == 0)
		return VD_OK;
	do
		sent = sendmsg(connection->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? VD_AGAIN : VD_IO;
	*ret_sent = (size_t) sent;
	vdi_request_log_sent(connection->request_log, *ret_sent);
	return (size_t) sent == total ? VD_OK : VD_AGAIN;
}

static void forget_request(struct vdi_http_connection *connection)
{
	struct vdi_request *request = connection->request;

	connection->request = NULL;
	if (request)
		vdi_request_detach(request);
}

/* Ends a response that was sent completely. */
static void finish(struct vdi_http_connection *connection)
{
	struct vdi_http_stream *stream = connection->stream;

	connection->stream = NULL;
	connection->request_log = vdi_request_log_end(connection->request_log);
	connection->is_watch = false;
	connection->request_due = VD_NEVER;
	if (stream)
		stream->ops->free(stream);
	drop_pending(connection);
	if (connection->state == VDI_HTTP_LINGER) {
		if (connection->tls)
			vdi_tls_link_end(connection->tls);
		(void) shutdown(connection->fd, SHUT_WR);
		set_events(connection, EV_READ);
		set_deadline(connection, LINGER);
		return;
	}
	if (!connection->keep_alive || connection->at_end || connection->loop->server->draining) {
		vdi_http_connection_close(connection);
		return;
	}
	connection->state = VDI_HTTP_READ_HEAD;
	memset(&connection->scan, 0, sizeof connection->scan);
	set_deadline(connection, connection->loop->server->options.idle_timeout);
	set_events(connection, EV_READ);
	if (!connection->advancing && connection->input_size && connection->state != VDI_HTTP_CLOSED)
		process_input(connection);
}

void vdi_http_connection_answer(struct vdi_http_connection *connection, struct vd_bytes head,
				struct vd_bytes body)
{
	struct iovec parts[2] = { { (void *) (uintptr_t) head.data, head.size },
				  { (void *) (uintptr_t) body.data, body.size } };
	size_t	     total = head.size + body.size, sent, from_head;
	vd_status    status = vdi_http_connection_send(connection, parts, 2, &sent);

	if (connection->state != VDI_HTTP_LINGER)
		connection->state = VDI_HTTP_RESPOND;
	if (status == VD_AGAIN && connection->request && connection->request->account)
		connection->account =
			vdi_account_use(&connection->loop->server->accounts, connection->request->account);
	forget_request(connection);
	if (status == VD_OK) {
		finish(connection);
		return;
	}
	connection->pending_size = 0;
	connection->pending = status == VD_AGAIN ? vdi_alloc(total - sent + 1) :
						   NULL; /* TLS may buffer bytes that it counts as sent */
	if (connection->pending == NULL) {
		vdi_http_connection_close(connection);
		return;
	}
	from_head = sent < head.size ? head.size - sent : 0;
	if (from_head)
		memcpy(connection->pending, (const char *) head.data + sent, from_head);
	if (total - sent > from_head)
		memcpy(connection->pending + from_head,
		       (const char *) body.data + (body.size - (total - sent - from_head)),
		       total - sent - from_head);
	connection->pending_size = (uint32_t) (total - sent);
	connection->pending_sent = 0;
	if (connection->account)
		atomic_fetch_add(&connection->account->answer_bytes, connection->pending_size);
	set_write_deadline(connection);
	set_events(connection, EV_WRITE);
}

static void flush_pending(struct vdi_http_connection *connection)
{
	struct iovec part = { connection->pending + connection->pending_sent,
			      connection->pending_size - connection->pending_sent };
	size_t	     sent;
	vd_status    status = vdi_http_connection_send(connection, &part, 1, &sent);

	connection->pending_sent += (uint32_t) sent;
	if (status == VD_OK)
		finish(connection);
	else if (status != VD_AGAIN)
		vdi_http_connection_close(connection);
	else if (sent)
		set_write_deadline(connection);
}

static short reading(const struct vdi_http_connection *connection)
{
	return connection->at_end || connection->input_size >= INPUT_MAX ? 0 : EV_READ;
}

/* Queues the connection; the loop pumps its stream in its next turn. */
static void wait_for_turn(struct vdi_http_connection *connection)
{
	set_events(connection, reading(connection));
	if (connection->in_turns || connection->state == VDI_HTTP_CLOSED)
		return;
	TAILQ_INSERT_TAIL(&connection->loop->turns, connection, turns);
	connection->in_turns = true;
	vd_actor_wake(connection->loop->actor);
}

void vdi_http_connection_pump(struct vdi_http_connection *connection)
{
	vd_status status;

	if (connection->state == VDI_HTTP_CLOSED || connection->stream == NULL)
		return;
	status = connection->stream->ops->pump(connection->stream, connection);
	if (connection->state == VDI_HTTP_CLOSED)
		return;
	switch (status) {
	case VD_OK: finish(connection); break;
	case VD_AGAIN:
		if (!connection->is_watch)
			set_write_deadline(connection);
		set_events(connection, (short) (EV_WRITE | (connection->is_watch ? reading(connection) : 0)));
		break;
	case VD_FULL: wait_for_turn(connection); break;
	case VD_NOT_READY: set_events(connection, reading(connection)); break;
	default: vdi_http_connection_close(connection);
	}
}

void vdi_http_stream_kick(struct vdi_http_connection *connection)
{
	if (connection->state == VDI_HTTP_CLOSED || connection->in_turns ||
	    (connection->event_flags & EV_WRITE))
		return;
	vdi_http_connection_pump(connection);
}

void vdi_http_connection_stream(struct vdi_http_connection *connection, struct vdi_http_stream *stream)
{
	connection->state = VDI_HTTP_RESPOND;
	connection->stream = stream;
	forget_request(connection);
	if (connection->is_watch) {
		vdi_request_log_streams(connection->request_log);
		connection->request_due = VD_NEVER;
		clear_deadline(connection);
	} else {
		set_write_deadline(connection);
	}
	vdi_http_connection_pump(connection);
}

/* ---- Input ---- */

/* Responds to bytes that are not a valid request. Later bytes on the connection cannot be parsed any more. */
static void refuse(struct vdi_http_connection *connection, const struct vdi_http_refusal *refusal)
{
	const char	       *reason = refusal->code == 413 ? "RequestEntityTooLarge" :
					 refusal->code == 408 ? "Timeout" :
								"BadRequest";
	struct vdi_http_status *status = VDI_NEW(struct vdi_http_status);
	struct vdi_out		body = VDI_OUT_INIT, head = VDI_OUT_INIT;

	connection->loop->server->refused_total++;
	vdi_request_log_refused(connection, refusal->code);
	connection->keep_alive = false;
	connection->state = VDI_HTTP_LINGER;
	vdi_free(connection->input);
	connection->input = NULL;
	connection->input_size = connection->input_capacity = 0;
	if (status) {
		vdi_http_status_set(status, refusal->code, reason, "%s", refusal->message);
		vdi_http_status_write(&body, status);
		vdi_out_raw(&body, "\n");
		vdi_out_printf(&head,
			       "HTTP/1.1 %d %s\r\n%sContent-Type: application/json\r\nContent-Length: "
			       "%zu\r\nConnection: close\r\n\r\n",
			       refusal->code, vdi_http_reason_phrase(refusal->code),
			       vdi_http_loop_date(connection->loop), body.size);
	}
	if (status == NULL || head.failed || body.failed)
		vdi_http_connection_close(connection);
	else
		vdi_http_connection_answer(connection, vdi_out_slice(&head), vdi_out_slice(&body));
	vdi_free(status);
	vdi_out_fini(&head);
	vdi_out_fini(&body);
}

static void handle(struct vdi_http_connection *connection)
{
	connection->state = VDI_HTTP_HANDLE;
	vdi_http_connection_limit(connection, connection->loop->server->options.request_timeout);
	connection->loop->server->request_total++;
	connection->request_log = vdi_request_log_begin(connection->request);
	connection->loop->server->dispatch(connection->request);
}

/* Starts a request whose head is complete. */
static void begin_request(struct vdi_http_connection *connection, struct vd_bytes head_bytes, bool more)
{
	struct vdi_http_refusal refusal = { 500, "out of memory" };
	struct vdi_request     *request = vdi_request_new(connection, head_bytes, &refusal);

	if (request == NULL) {
		refuse(connection, &refusal);
		return;
	}
	connection->request = request;
	connection->keep_alive = request->head.keep_alive;
	if (!request->head.chunked && request->head.content_length <= 0) {
		handle(connection);
		return;
	}
	connection->state = VDI_HTTP_READ_BODY;
	set_deadline(connection, connection->loop->server->options.body_timeout);
	if (request->head.expect_continue && !more) {
		static char	   interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
		const struct iovec part = { interim, sizeof interim - 1 };
		size_t		   sent;

		/* A partial write counts as none: clients continue without it after a short wait. */
		(void) !vdi_http_connection_send(connection, &part, 1, &sent);
	}
}

/* Returns the number of bytes consumed. */
static size_t consume(struct vdi_http_connection *connection, struct vd_bytes bytes)
{
	const char *data = bytes.data;
	size_t	    used = 0;

	for (;;) {
		struct vd_bytes		rest = { data + used, bytes.size - used };
		struct vdi_http_refusal refusal;
		vd_status		status;
		size_t			size;

		if (rest.size == 0)
			return used;
		if (connection->state == VDI_HTTP_READ_HEAD) {
			if (connection->scan.position == 0 && rest.size >= 2 && data[used] == '\r' &&
			    data[used + 1] == '\n' && !connection->scan.started) {
				/* one empty line before a request is tolerated (RFC 9112, 2.2) */
				connection->scan.started = true;
				used += 2;
				continue;
			}
			if (connection->scan.position == 0)
				set_deadline(connection, connection->loop->server->options.head_timeout);
			status = vdi_http_scan(&connection->scan, rest, &size, &refusal);
			if (status == VD_OK) {
				used += size;
				memset(&connection->scan, 0, sizeof connection->scan);
				begin_request(connection, (struct vd_bytes) { rest.data, size },
					      used < bytes.size);
			}
		} else if (connection->state == VDI_HTTP_READ_BODY) {
			status = vdi_request_body(connection->request, rest, &size, &refusal);
			if (status != VD_BAD_REQUEST)
				used += size;
			if (status == VD_OK)
				handle(connection);
		} else {
			return used;
		}
		if (status == VD_BAD_REQUEST) {
			forget_request(connection);
			refuse(connection, &refusal);
			return bytes.size;
		}
		if (status == VD_AGAIN)
			return used;
	}
}

static bool keep_input(struct vdi_http_connection *connection, struct vd_bytes bytes)
{
	size_t needed = connection->input_size + bytes.size;

	if (bytes.size == 0)
		return true;
	if (needed > connection->input_capacity) {
		size_t capacity =
			VDI_MAX(needed, VDI_MIN((size_t) connection->input_capacity * 2, (size_t) INPUT_MAX));
		char *input = vdi_realloc(connection->input, capacity);

		if (input == NULL)
			return false;
		connection->input = input;
		connection->input_capacity = (uint32_t) capacity;
	}
	memcpy(connection->input + connection->input_size, bytes.data, bytes.size);
	connection->input_size += (uint32_t) bytes.size;
	return true;
}

static void process_input(struct vdi_http_connection *connection)
{
	size_t used;

	connection->advancing = true;
	used = consume(connection, (struct vd_bytes) { connection->input, connection->input_size });
	connection->advancing = false;
	if (connection->state == VDI_HTTP_CLOSED || connection->input == NULL)
		return;
	connection->input_size -= (uint32_t) used;
	if (connection->input_size) {
		memmove(connection->input, connection->input + used, connection->input_size);
	} else {
		vdi_free(connection->input);
		connection->input = NULL;
		connection->input_capacity = 0;
	}
	if (connection->stream == NULL && connection->pending == NULL)
		set_events(connection, reading(connection));
}

static void feed(struct vdi_http_connection *connection, struct vd_bytes bytes)
{
	if (connection->state == VDI_HTTP_LINGER)
		return;
	if (connection->input_size == 0 &&
	    (connection->state == VDI_HTTP_READ_HEAD || connection->state == VDI_HTTP_READ_BODY)) {
		size_t used;

		connection->advancing = true;
		used = consume(connection, bytes);
		connection->advancing = false;
		if (connection->state == VDI_HTTP_CLOSED || connection->state == VDI_HTTP_LINGER)
			return;
		bytes = (struct vd_bytes) { (const char *) bytes.data + used, bytes.size - used };
		if (!keep_input(connection, bytes))
			vdi_http_connection_close(connection);
		return;
	}
	if (!keep_input(connection, bytes)) {
		vdi_http_connection_close(connection);
		return;
	}
	if (connection->state == VDI_HTTP_READ_HEAD || connection->state == VDI_HTTP_READ_BODY)
		process_input(connection);
	else if (connection->input_size >= INPUT_MAX)
		set_events(connection, (short) (connection->event_flags & ~EV_READ));
}

static void read_some(struct vdi_http_connection *connection)
{
	ssize_t size = connection->tls ? vdi_tls_link_receive(connection->tls, connection->loop->scratch,
							      VDI_HTTP_SCRATCH_SIZE) :
					 recv(connection->fd, connection->loop->scratch,
					      VDI_HTTP_SCRATCH_SIZE, MSG_DONTWAIT);

	if (size > 0) {
		feed(connection, (struct vd_bytes) { connection->loop->scratch, (size_t) size });
		return;
	}
	if (size < 0 && (errno == EAGAIN || errno == EINTR || errno == EWOULDBLOCK))
		return;
	if (size < 0 || connection->is_watch || connection->state == VDI_HTTP_READ_HEAD ||
	    connection->state == VDI_HTTP_READ_BODY || connection->state == VDI_HTTP_LINGER) {
		vdi_http_connection_close(connection);
		return;
	}
	/* Half-closed: the response in progress is still sent. */
	connection->at_end = true;
	set_events(connection, (short) (connection->event_flags & ~EV_READ));
}

/* Sends the plain-text response of Go's server to a client that spoke HTTP to this HTTPS port. */
static void answer_https_only(const struct vdi_http_connection *connection)
{
	static const char text[] =
		"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

	(void) !send(connection->fd, text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	(void) shutdown(connection->fd, SHUT_WR);
}

/* As upstream, a certificate that fails verification is not an error yet, because the request may have a
 * token. */
static bool take_identity(struct vdi_http_connection *connection)
{
	const char *why;

	if (vdi_tls_link_identity(connection->tls, &connection->identity, &why) != VD_OK)
		return false;
	if (why)
		vdi_log(connection->loop->server->env, VD_LOG_INFO, "http",
			"a client certificate was rejected: %s", why);
	return true;
}

static void shake(struct vdi_http_connection *connection)
{
	bool	  wants_write;
	vd_status status = vdi_tls_link_shake(connection->tls, &wants_write);

	if (status == VD_AGAIN) {
		set_events(connection, wants_write ? EV_WRITE : EV_READ);
		return;
	}
	if (status == VD_BAD_REQUEST)
		answer_https_only(connection);
	if (status != VD_OK || !take_identity(connection)) {
		connection->loop->server->refused_total++;
		vdi_http_connection_close(connection);
		return;
	}
	connection->state = VDI_HTTP_READ_HEAD;
	set_deadline(connection, connection->loop->server->options.head_timeout);
	set_events(connection, EV_READ);
}

static void on_ready(evutil_socket_t fd, short events, void *arg)
{
	struct vdi_http_connection *connection = arg;

	(void) fd;
	vdi_loop_note_work();
	if (connection->state == VDI_HTTP_SHAKE) {
		shake(connection);
		return;
	}
	if ((events & EV_WRITE) && connection->state != VDI_HTTP_CLOSED) {
		if (connection->pending)
			flush_pending(connection);
		else if (connection->is_watch)
			vdi_http_connection_pump(connection);
		else
			wait_for_turn(
				connection); /* much may be left to write, and many may be able to at once */
	}
	if ((events & EV_READ) && connection->state != VDI_HTTP_CLOSED)
		read_some(connection);
}

/* ---- Timeouts and end ---- */

void vdi_http_connection_expire(struct vdi_http_connection *connection)
{
	struct vdi_http_refusal	  late = { 408, "Timeout: the request did not arrive in time" };
	struct vdi_request_labels labels;
	struct vdi_http_status	 *status;

	switch ((enum vdi_http_state) connection->state) {
	case VDI_HTTP_READ_HEAD:
		if (connection->input_size)
			refuse(connection, &late);
		else
			vdi_http_connection_close(connection);
		break;
	case VDI_HTTP_READ_BODY:
		forget_request(connection);
		refuse(connection, &late);
		break;
	case VDI_HTTP_HANDLE:
		connection->request_due = VD_NEVER; /* the 504 response has its own deadline */
		vdi_request_labels_of(connection->request, &labels);
		vdi_request_labels_terminated(&labels, 504);
		connection->request->is_late = true;
		status = &connection->request->status;
		vdi_http_status_set(status, 504, "Timeout", "%s",
				    connection->request->is_short ?
					    "Timeout: request did not complete within requested timeout - "
					    "context deadline exceeded" :
					    "Timeout: request did not complete within the allotted timeout");
		vdi_request_fail(connection->request, status);
		break;
	default: vdi_http_connection_close(connection);
	}
}

void vdi_http_connection_drain(struct vdi_http_connection *connection)
{
	connection->keep_alive = false;
	if (connection->state == VDI_HTTP_SHAKE ||
	    (connection->state == VDI_HTTP_READ_HEAD && connection->input_size == 0)) {
		vdi_http_connection_close(connection);
	} else if (connection->stream && connection->stream->ops->drain) {
		connection->stream->ops->drain(connection->stream);
		set_deadline(connection, VD_SECONDS(5));
		vdi_http_stream_kick(connection);
	}
}
