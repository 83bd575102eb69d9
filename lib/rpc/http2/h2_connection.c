/* States of the socket: connecting (client) -> TLS handshake -> up; then of HTTP/2: ready, after the peer's
 * first SETTINGS. Until then frames wait in nghttp2.
 *
 * nghttp2 must not be freed during its own callbacks, and it makes no callbacks while it is freed. So each
 * end is noted where it is detected, and executed at the end of the iteration (`work`), like writing.
 *
 * nghttp2 answers a protocol error of the peer with GOAWAY and then wants neither to read nor to write:
 * that is how this file detects it.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/socket.h>

#include "env.h"
#include "h2_connection_state.h"

#define READ_SIZE_MAX ((size_t) 4 * VDI_H2_SCRATCH_SIZE) /* per iteration */
#define WRITE_SIZE_MAX ((size_t) 4 * VDI_H2_SCRATCH_SIZE)
#define KEEPALIVE_TIMEOUT VD_SECONDS(20)
#define UNSENT_FRAMES_MAX 1000 /* to a peer that does not read; beyond it the connection stops reading too */

/* ---- End ---- */

static void note_end(struct vdi_h2_connection *connection, const char *why)
{
	if (connection->is_over)
		return;
	connection->is_over = true;
	(void) snprintf(connection->why, sizeof connection->why, "%s", why);
	vdi_h2_loop_list_dirty(connection->h2_loop, &connection->dirty);
}

/* Notes errno's text with a small first letter, for use inside a sentence: "connection refused". */
static void note_error(struct vdi_h2_connection *connection, int error)
{
	char text[VDI_H2_WHY_SIZE];

	(void) snprintf(text, sizeof text, "%s", strerror(error));
	if (islower((unsigned char) text[1]))
		text[0] = (char) tolower((unsigned char) text[0]);
	note_end(connection, text);
}

static void close_socket(struct vdi_h2_connection *connection)
{
	if (connection->fd < 0)
		return;
	event_del(&connection->read_event);
	event_del(&connection->write_event);
	if (connection->link)
		vdi_h2_link_end(connection->link);
	close(connection->fd);
	connection->fd = -1;
}

static void finish(struct vdi_h2_connection *connection)
{
	vdi_h2_timer_set(connection->h2_loop, &connection->timer, VD_NEVER);
	close_socket(connection);
	connection->side->ended(connection->arg, connection->why);
}

void vdi_h2_connection_abort(struct vdi_h2_connection *connection, const char *why)
{
	note_end(connection, why);
}

/* Notes the end if nghttp2 wants neither to read nor to write. */
static void note_if_done(struct vdi_h2_connection *connection)
{
	if (nghttp2_session_want_read(connection->session) ||
	    nghttp2_session_want_write(connection->session) || connection->is_closing)
		return;
	if (!connection->is_ready)
		note_end(connection, connection->is_server ? "not an HTTP/2 client" : "not an HTTP/2 server");
	else
		note_end(connection, connection->hint[0] ? connection->hint : "the connection was closed");
}

/* ---- Timers ---- */

void vdi_h2_connection_arm_keepalive(struct vdi_h2_connection *connection)
{
	vd_mono due = VD_NEVER;

	if (connection->keepalive_time.ns > 0)
		due = vd_mono_add(connection->received_at, connection->keepalive_time);
	vdi_h2_timer_set(connection->h2_loop, &connection->timer, due);
}

static void check_keepalive(struct vdi_h2_connection *connection, vd_mono now)
{
	if (connection->has_pinged) {
		note_end(connection, "keepalive ping failed to receive ACK within timeout");
		return;
	}
	if (vd_mono_since(now, connection->received_at).ns < connection->keepalive_time.ns) {
		vdi_h2_connection_arm_keepalive(connection);
		return;
	}
	if (connection->streams == 0 && !connection->keepalive_without_streams) {
		vdi_h2_timer_set(connection->h2_loop, &connection->timer,
				 vd_mono_add(now, connection->keepalive_time));
		return;
	}
	if (nghttp2_submit_ping(connection->session, NGHTTP2_FLAG_NONE, NULL) == 0) {
		connection->has_pinged = true;
		vdi_h2_loop_list_dirty(connection->h2_loop, &connection->dirty);
	}
	vdi_h2_timer_set(connection->h2_loop, &connection->timer,
			 vd_mono_add(now, connection->keepalive_timeout));
}

static void fire(struct vdi_h2_timer *timer)
{
	struct vdi_h2_connection *connection = VDI_CONTAINER_OF(timer, struct vdi_h2_connection, timer);

	if (connection->is_closing)
		note_end(connection, "");
	else if (connection->is_ready)
		check_keepalive(connection, vd_env_now(vdi_h2_loop_env(connection->h2_loop)));
	else if (connection->is_connecting)
		note_end(connection, "connection timed out");
	else if (connection->is_shaking)
		note_end(connection, "TLS handshake timed out");
	else
		note_end(connection,
			 connection->is_server ?
				 "no HTTP/2 settings received" :
				 "no HTTP/2 settings received (not an HTTP/2 server, or TLS is expected)");
}

/* ---- Writing ---- */

/* Returns the number of bytes written; -1: an end was noted. */
static ssize_t write_some(struct vdi_h2_connection *connection, const char *bytes, size_t size)
{
	size_t sent = 0;

	while (sent < size) {
		ssize_t count =
			connection->link ?
				vdi_h2_link_send(connection->link, bytes + sent, size - sent) :
				send(connection->fd, bytes + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (count > 0) {
			sent += (size_t) count;
			if (connection->link == NULL)
				break; /* a socket that has not taken all is full */
			continue;
		}
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS))
			break;
		if (connection->link && vdi_h2_link_why(connection->link)[0])
			note_end(connection, vdi_h2_link_why(connection->link));
		else if (errno == EPIPE || errno == ECONNRESET || connection->link)
			note_end(connection, connection->is_ready || connection->is_server ?
						     "the connection was closed" :
						     "the server closed the connection before HTTP/2 began "
						     "(TLS or a client certificate may be expected)");
		else
			note_error(connection, errno);
		return -1;
	}
	return (ssize_t) sent;
}

static bool keep(struct vdi_h2_connection *connection, const char *bytes, size_t size)
{
	connection->kept = vdi_alloc(size);
	if (connection->kept == NULL || event_add(&connection->write_event, NULL) != 0) {
		note_end(connection, "out of memory");
		return false;
	}
	memcpy(connection->kept, bytes, size);
	connection->kept_size = size;
	connection->kept_used = 0;
	return true;
}

/* Takes frames from nghttp2 while there is room: it writes as much DATA (send_data) as fits, then returns one
 * frame of another type, for which there is always room, or none. False: an end was noted. */
static bool fill(struct vdi_h2_connection *connection, bool *ret_is_all)
{
	char *output = vdi_h2_loop_output(connection->h2_loop);

	connection->output_size = 0;
	connection->is_full = false;
	*ret_is_all = false;
	while (vdi_h2_session_has_room(connection)) {
		const uint8_t *bytes;
		ssize_t	       size = nghttp2_session_mem_send(connection->session, &bytes);

		if (size < 0) {
			note_end(connection,
				 size == NGHTTP2_ERR_NOMEM || size == NGHTTP2_ERR_CALLBACK_FAILURE ?
					 "out of memory" :
					 nghttp2_strerror((int) size));
			return false;
		}
		if (size == 0) {
			*ret_is_all = !connection->is_full;
			break;
		}
		VDI_CHECK((size_t) size <= VDI_H2_FRAME_SIZE_MAX);
		memcpy(output + connection->output_size, bytes, (size_t) size);
		connection->output_size += (size_t) size;
	}
	return true;
}

/* Everything that may be sent is written, or time is over: shuts down our side and waits, so that the peer
 * can read the rest before the connection ends. */
static void submit_goaway(struct vdi_h2_connection *connection)
{
	if (connection->close_timeout.ns <= 0)
		note_end(connection, "");
	else if (!connection->is_lingering) {
		connection->is_lingering = true;
		if (connection->link)
			vdi_h2_link_end(connection->link);
		(void) shutdown(connection->fd, SHUT_WR);
	}
}

/* Stops reading: requests whose responses the peer does not read would accumulate without limit. */
static void pause_if_unread(struct vdi_h2_connection *connection)
{
	if (connection->kept == NULL || connection->is_paused ||
	    nghttp2_session_get_outbound_queue_size(connection->session) < UNSENT_FRAMES_MAX)
		return;
	connection->is_paused = true;
	event_del(&connection->read_event);
}

static void read_on(struct vdi_h2_connection *connection)
{
	connection->is_paused = false;
	if (event_add(&connection->read_event, NULL) != 0)
		note_end(connection, "out of memory");
	else if (connection->link && vdi_h2_link_has_more(connection->link))
		/* the socket would not report buffered bytes */
		event_active(&connection->read_event, EV_READ, 0);
}

static void flush(struct vdi_h2_connection *connection)
{
	size_t written = 0;
	bool   is_all = false;

	while (!is_all && connection->kept == NULL) {
		ssize_t sent;

		if (written >= WRITE_SIZE_MAX) {
			vdi_h2_loop_list_dirty(connection->h2_loop, &connection->dirty);
			return;
		}
		if (!fill(connection, &is_all))
			return;
		sent = write_some(connection, vdi_h2_loop_output(connection->h2_loop),
				  connection->output_size);
		if (sent < 0)
			return;
		if ((size_t) sent < connection->output_size &&
		    !keep(connection, vdi_h2_loop_output(connection->h2_loop) + sent,
			  connection->output_size - (size_t) sent))
			return;
		written += connection->output_size;
	}
	if (connection->kept && (!connection->is_closing || connection->close_timeout.ns > 0))
		return;
	if (connection->is_paused)
		read_on(connection);
	if (connection->is_closing)
		submit_goaway(connection);
	else
		note_if_done(connection);
}

static void work(struct vdi_h2_dirty *dirty)
{
	struct vdi_h2_connection *connection = VDI_CONTAINER_OF(dirty, struct vdi_h2_connection, dirty);

	if (!connection->is_over && !connection->is_connecting && !connection->is_shaking &&
	    !connection->is_lingering)
		flush(connection);
	if (connection->is_over) {
		vdi_h2_loop_unlist_dirty(connection->h2_loop, &connection->dirty);
		finish(connection);
	}
}

void vdi_h2_connection_touch(struct vdi_h2_connection *connection)
{
	if (!connection->dirty.is_listed)
		vdi_h2_loop_list_dirty(connection->h2_loop, &connection->dirty);
}

void vdi_h2_connection_close(struct vdi_h2_connection *connection, vd_dur timeout)
{
	if (connection->is_closing || connection->is_over)
		return;
	connection->is_closing = true;
	connection->close_timeout = timeout;
	if (connection->is_connecting || connection->is_shaking) {
		note_end(connection, "");
		return;
	}
	if (!connection->has_goaway)
		(void) nghttp2_submit_goaway(connection->session, NGHTTP2_FLAG_NONE,
					     nghttp2_session_get_last_proc_stream_id(connection->session),
					     NGHTTP2_NO_ERROR, NULL, 0);
	vdi_h2_timer_set(connection->h2_loop, &connection->timer,
			 timeout.ns > 0 ?
				 vd_mono_add(vd_env_now(vdi_h2_loop_env(connection->h2_loop)), timeout) :
				 VD_NEVER);
	vdi_h2_connection_touch(connection);
}

/* ---- The socket ---- */

static void shake(struct vdi_h2_connection *connection)
{
	bool	  wants_write;
	vd_status status = vdi_h2_link_shake(connection->link, &wants_write);

	if (status == VD_AGAIN) {
		if (wants_write && event_add(&connection->write_event, NULL) != 0)
			note_end(connection, "out of memory");
		return;
	}
	if (status != VD_OK) {
		const char *why = vdi_h2_link_why(connection->link);

		note_end(connection, why[0] ? why :
					      "the server closed the connection before HTTP/2 began (TLS or "
					      "a client certificate may be expected)");
		return;
	}
	connection->is_shaking = false;
	vdi_h2_connection_touch(connection);
	if (vdi_h2_link_has_more(connection->link))
		event_active(&connection->read_event, EV_READ, 0);
}

/* False: an end was noted, or it is still connecting. */
static bool finish_connecting(struct vdi_h2_connection *connection)
{
	int	  error = 0;
	socklen_t size = sizeof error;

	if (getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
		error = errno;
	if (error) {
		note_error(connection, error);
		return false;
	}
	connection->is_connecting = false;
	vdi_h2_connection_touch(connection);
	return true;
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct vdi_h2_connection *connection = arg;
	ssize_t			  sent;

	(void) fd;
	(void) what;
	if (connection->is_over || (connection->is_connecting && !finish_connecting(connection)))
		return;
	if (connection->is_shaking)
		shake(connection);
	if (connection->kept == NULL)
		return;
	sent = write_some(connection, connection->kept + connection->kept_used,
			  connection->kept_size - connection->kept_used);
	if (sent < 0)
		return;
	connection->kept_used += (size_t) sent;
	if (connection->kept_used < connection->kept_size) {
		if (event_add(&connection->write_event, NULL) != 0)
			note_end(connection, "out of memory");
		return;
	}
	vdi_free(connection->kept);
	connection->kept = NULL;
	vdi_h2_connection_touch(connection);
}

/* False: no more bytes now. */
static bool read_some(struct vdi_h2_connection *connection)
{
	char   *input = vdi_h2_loop_input(connection->h2_loop);
	ssize_t got = connection->link ? vdi_h2_link_receive(connection->link, input, VDI_H2_SCRATCH_SIZE) :
					 recv(connection->fd, input, VDI_H2_SCRATCH_SIZE, MSG_DONTWAIT);
	ssize_t used;

	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return false;
	if (got < 0 && errno == EINTR)
		return true;
	if (got <= 0) {
		const char *why = connection->link ? vdi_h2_link_why(connection->link) : "";

		if (why[0])
			note_end(connection, why);
		else if (connection->is_closing)
			note_end(connection, "");
		else if (!connection->is_ready && !connection->is_server)
			note_end(connection, "the server closed the connection before HTTP/2 began (TLS or a "
					     "client certificate may be expected)");
		else
			note_end(connection, connection->hint[0]	    ? connection->hint :
					     got < 0 && errno == ECONNRESET ? "connection reset by peer" :
									      "the connection was closed");
		return false;
	}
	connection->received_at = vd_env_now(vdi_h2_loop_env(connection->h2_loop));
	if (connection->has_pinged) {
		connection->has_pinged = false;
		if (!connection->is_closing)
			vdi_h2_connection_arm_keepalive(connection);
	}
	if (connection->is_deaf || connection->is_lingering)
		return true;
	connection->is_receiving = true;
	used = nghttp2_session_mem_recv(connection->session, (const uint8_t *) input, (size_t) got);
	connection->is_receiving = false;
	if (used < 0) {
		if (used == NGHTTP2_ERR_FLOODED && connection->is_closing) {
			/* stop reading, so that the peer can receive the close reason */
			connection->is_deaf = true;
			return true;
		}
		if (used == NGHTTP2_ERR_BAD_CLIENT_MAGIC)
			note_end(connection, "not an HTTP/2 client");
		else
			note_end(connection,
				 used == NGHTTP2_ERR_NOMEM || used == NGHTTP2_ERR_CALLBACK_FAILURE ?
					 "out of memory" :
					 nghttp2_strerror((int) used));
		return false;
	}
	/* A plain socket is empty after a short read. */
	return connection->link ? vdi_h2_link_has_more(connection->link) :
				  (size_t) got == VDI_H2_SCRATCH_SIZE;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct vdi_h2_connection *connection = arg;
	struct vdi_h2_loop	 *h2_loop = connection->h2_loop;
	size_t			  rounds = 0;
	bool			  lends, has_more = true;

	(void) fd;
	(void) what;
	if (connection->is_over || (connection->is_connecting && !finish_connecting(connection)))
		return;
	if (connection->is_shaking) {
		shake(connection);
		return;
	}
	lends = vdi_h2_loop_begin_input(h2_loop);
	while (has_more && rounds++ < READ_SIZE_MAX / VDI_H2_SCRATCH_SIZE)
		has_more = read_some(connection);
	if (!connection->is_over) {
		pause_if_unread(connection);
		if (has_more && connection->link && !connection->is_paused)
			/* the socket would not report buffered bytes */
			event_active(&connection->read_event, EV_READ, 0);
		if (nghttp2_session_want_write(connection->session) ||
		    !nghttp2_session_want_read(connection->session))
			vdi_h2_connection_touch(connection);
	}
	/* Actors that run on this thread may call anything, but it takes effect at the end of the
	 * iteration. */
	vdi_h2_loop_end_input(h2_loop, lends);
}

/* ---- Creation and end ---- */

static vd_status listen_to_socket(struct vdi_h2_connection *connection)
{
	struct event_base *base = vdi_loop_base(vdi_h2_loop_event_loop(connection->h2_loop));

	if (event_assign(&connection->read_event, base, connection->fd, EV_READ | EV_PERSIST, on_readable,
			 connection) != 0 ||
	    event_assign(&connection->write_event, base, connection->fd, EV_WRITE, on_writable, connection) !=
		    0 ||
	    event_add(&connection->read_event, NULL) != 0)
		return VD_NOMEM;
	/* A connect ends with the socket becoming writable, at once if it is already connected; then the
	 * client sends first. */
	if (connection->is_connecting && event_add(&connection->write_event, NULL) != 0) {
		event_del(&connection->read_event);
		return VD_NOMEM;
	}
	return VD_OK;
}

vd_status vdi_h2_connection_new(struct vdi_h2_loop *h2_loop, int fd,
				const struct vdi_h2_connection_options *options,
				struct vdi_h2_connection	      **ret_connection)
{
	struct vdi_h2_connection *connection = VDI_NEW(struct vdi_h2_connection);
	vd_status		  status;

	if (connection == NULL)
		return VD_NOMEM;
	connection->h2_loop = h2_loop;
	connection->side = options->side;
	connection->arg = options->arg;
	connection->fd = fd;
	connection->is_server = options->is_server;
	connection->keepalive_time = options->keepalive_time;
	connection->keepalive_timeout =
		options->keepalive_timeout.ns > 0 ? options->keepalive_timeout : KEEPALIVE_TIMEOUT;
	connection->keepalive_without_streams = options->keepalive_without_streams;
	connection->ping_interval_min = options->ping_interval_min;
	connection->is_connecting = !options->is_server;
	connection->is_shaking = options->tls != NULL;
	connection->dirty.work = work;
	connection->timer.fire = fire;
	connection->received_at = vd_env_now(vdi_h2_loop_env(h2_loop));
	status = vdi_h2_session_new(connection);
	if (status == VD_OK && options->has_preface &&
	    nghttp2_session_mem_recv(connection->session, (const uint8_t *) NGHTTP2_CLIENT_MAGIC,
				     NGHTTP2_CLIENT_MAGIC_LEN) < 0)
		status = VD_NOMEM;
	if (status == VD_OK)
		status = vdi_h2_session_introduce(connection, options);
	if (status == VD_OK && options->tls)
		status = vdi_h2_link_new(options->tls, fd, options->name, &connection->link);
	if (status == VD_OK)
		status = listen_to_socket(connection);
	if (status != VD_OK) {
		connection->fd = -1; /* the caller keeps it */
		(void) vdi_h2_connection_free(connection);
		return status;
	}
	if (options->link)
		connection->link = options->link;
	if (options->link && vdi_h2_link_has_more(options->link))
		/* the socket would not report buffered bytes */
		event_active(&connection->read_event, EV_READ, 0);
	if (!connection->is_connecting)
		vdi_h2_connection_touch(connection);
	if (options->settle_timeout.ns > 0)
		vdi_h2_timer_set(h2_loop, &connection->timer,
				 vd_mono_add(connection->received_at, options->settle_timeout));
	*ret_connection = connection;
	return VD_OK;
}

struct vdi_h2_connection *vdi_h2_connection_free(struct vdi_h2_connection *connection)
{
	if (connection == NULL)
		return NULL;
	VDI_CHECK(!connection->is_receiving);
	close_socket(connection);
	vdi_h2_timer_set(connection->h2_loop, &connection->timer, VD_NEVER);
	vdi_h2_loop_unlist_dirty(connection->h2_loop, &connection->dirty);
	nghttp2_session_del(connection->session);
	(void) vdi_h2_link_free(connection->link);
	vdi_free(connection->kept);
	vdi_free(connection);
	return NULL;
}

/* ---- Functions for the side ---- */

bool vdi_h2_connection_is_over(const struct vdi_h2_connection *connection)
{
	return connection->is_over;
}

bool vdi_h2_connection_is_ready(const struct vdi_h2_connection *connection)
{
	return connection->is_ready && !connection->has_goaway && !connection->is_closing &&
	       !connection->is_over;
}

nghttp2_session *vdi_h2_connection_session(const struct vdi_h2_connection *connection)
{
	return connection->session;
}

void *vdi_h2_connection_arg(const struct vdi_h2_connection *connection)
{
	return connection->arg;
}

int vdi_h2_connection_fd(const struct vdi_h2_connection *connection)
{
	return connection->fd;
}

void vdi_h2_connection_common_name(const struct vdi_h2_connection *connection, char *text, size_t size)
{
	if (connection->link)
		vdi_h2_link_common_name(connection->link, text, size);
	else
		text[0] = 0;
}

size_t vdi_h2_connection_kept(const struct vdi_h2_connection *connection)
{
	return connection->kept_size - connection->kept_used;
}
