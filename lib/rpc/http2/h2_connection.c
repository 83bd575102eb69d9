/* The socket's states: connecting (client) -> shaking (TLS) -> up; then, of HTTP/2: ready with the peer's
 * first SETTINGS. What nghttp2 has to send before that lies with it.
 *
 * Nothing of ours is called by nghttp2 while it is being freed, and it must not be freed while it calls us;
 * so every end is noted where it is found and done at the end of the turn (`work`), like writing.
 *
 * nghttp2 answers a peer's breach of protocol with GOAWAY and then wants neither to read nor to write: that
 * is how such an end is seen here. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/socket.h>

#include "env.h"
#include "h2_connection.h"
#include "h2_hub_state.h"
#include "h2_message.h"

#define READ_SIZE_MAX ((size_t) 4 * VDI_H2_SCRATCH_SIZE) /* in one turn */
#define WRITE_SIZE_MAX ((size_t) 4 * VDI_H2_SCRATCH_SIZE)
#define DATA_SIZE_MAX ((size_t) 16384)
#define KEEPALIVE_TIMEOUT VD_SECONDS(20)
#define PING_STRIKES_MAX 2
#define UNSENT_FRAMES_MAX 1000 /* of a peer that does not read; then nothing is read from it either */
#define RESETS_BURST 20000     /* a client that ends all its watches at once */
#define RESETS_PER_SECOND 5000
#define WHY_SIZE 256

struct vdi_h2_connection {
	struct vdi_h2_hub	 *hub;
	const struct vdi_h2_side *side;
	void			 *arg;
	nghttp2_session		 *session;
	struct vdi_h2_link	 *link; /* NULL: plain text */
	int			  fd;
	bool			  is_server;
	vd_dur			  keepalive_time;
	vd_dur			  keepalive_timeout;
	bool			  keepalive_without_streams;
	vd_dur			  ping_interval_min;

	struct event	    read_event;
	struct event	    write_event;
	struct vdi_h2_dirty dirty;
	struct vdi_h2_timer timer; /* settling, then keepalive, then closing */

	bool	 is_connecting;
	bool	 is_shaking;
	bool	 is_ready;
	bool	 is_receiving; /* inside nghttp2_session_mem_recv */
	bool	 is_paused;    /* nothing is read before something is written */
	bool	 is_closing;
	bool	 is_deaf;      /* it closes, and what the peer says is of no interest any more */
	bool	 is_lingering; /* all is written and said; waits for the peer's end */
	bool	 is_over;
	bool	 has_goaway; /* either side's */
	vd_dur	 close_timeout;
	char	 why[WHY_SIZE];
	char	 hint[WHY_SIZE]; /* what may have been the cause, should it end */
	char	*kept;		 /* the socket did not take it */
	size_t	 kept_size;
	size_t	 kept_used;
	size_t	 output_size; /* while the hub's output is being filled */
	bool	 is_full;     /* the output has no room for a frame of DATA */
	size_t	 headers_size;
	unsigned streams;
	int32_t	 not_sent_id;
	bool	 has_pinged;
	vd_mono	 received_at;
	vd_mono	 pinged_at; /* by the peer */
	unsigned strikes;
};

/* ---- The end ---- */

static void note_end(struct vdi_h2_connection *connection, const char *why)
{
	if (connection->is_over)
		return;
	connection->is_over = true;
	(void) snprintf(connection->why, sizeof connection->why, "%s", why);
	vdi_h2_hub_list_dirty(connection->hub, &connection->dirty);
}

/* "Connection refused" in the middle of a sentence. */
static void note_error(struct vdi_h2_connection *connection, int error)
{
	char text[WHY_SIZE];

	(void) snprintf(text, sizeof text, "%s", strerror(error));
	if (text[0] && islower((unsigned char) text[1]))
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
	vdi_h2_timer_set(connection->hub, &connection->timer, VD_NEVER);
	close_socket(connection);
	connection->side->ended(connection->arg, connection->why);
}

void vdi_h2_connection_abort(struct vdi_h2_connection *connection, const char *why)
{
	note_end(connection, why);
}

/* nghttp2 is through with it. */
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

static void arm_keepalive(struct vdi_h2_connection *connection)
{
	vd_mono due = VD_NEVER;

	if (connection->keepalive_time.ns > 0)
		due = vd_mono_add(connection->received_at, connection->keepalive_time);
	vdi_h2_timer_set(connection->hub, &connection->timer, due);
}

static void look_after(struct vdi_h2_connection *connection, vd_mono now)
{
	if (connection->has_pinged) {
		note_end(connection, "keepalive ping failed to receive ACK within timeout");
		return;
	}
	if (vd_mono_since(now, connection->received_at).ns < connection->keepalive_time.ns) {
		arm_keepalive(connection);
		return;
	}
	if (connection->streams == 0 && !connection->keepalive_without_streams) {
		vdi_h2_timer_set(connection->hub, &connection->timer,
				 vd_mono_add(now, connection->keepalive_time));
		return;
	}
	if (nghttp2_submit_ping(connection->session, NGHTTP2_FLAG_NONE, NULL) == 0) {
		connection->has_pinged = true;
		vdi_h2_hub_list_dirty(connection->hub, &connection->dirty);
	}
	vdi_h2_timer_set(connection->hub, &connection->timer,
			 vd_mono_add(now, connection->keepalive_timeout));
}

static void fire(struct vdi_h2_timer *timer)
{
	struct vdi_h2_connection *connection = VDI_CONTAINER_OF(timer, struct vdi_h2_connection, timer);

	if (connection->is_closing)
		note_end(connection, "");
	else if (connection->is_ready)
		look_after(connection, vd_env_now(vdi_h2_hub_env(connection->hub)));
	else if (connection->is_connecting)
		note_end(connection, "connection timed out");
	else if (connection->is_shaking)
		note_end(connection, "TLS handshake timed out");
	else
		note_end(connection,
			 connection->is_server ?
				 "no HTTP/2 settings came" :
				 "no HTTP/2 settings came (not an HTTP/2 server, or TLS is expected)");
}

/* ---- What nghttp2 calls ---- */

static void *allocate(size_t size, void *arg)
{
	(void) arg;
	return vdi_alloc(size);
}

static void release(void *memory, void *arg)
{
	(void) arg;
	vdi_free(memory);
}

static void *allocate_zeroed(size_t count, size_t size, void *arg)
{
	(void) arg;
	return vdi_calloc(count, size);
}

static void *reallocate(void *memory, size_t size, void *arg)
{
	(void) arg;
	return vdi_realloc(memory, size);
}

/* For a frame of DATA, which nghttp2 makes no larger. */
static bool has_room(const struct vdi_h2_connection *connection)
{
	return connection->output_size + 9 + DATA_SIZE_MAX <= VDI_H2_SCRATCH_SIZE;
}

static int send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t size,
		     nghttp2_data_source *source, void *user_data)
{
	struct vdi_h2_connection *connection = user_data;
	char			 *output = vdi_h2_hub_output(connection->hub) + connection->output_size;

	(void) session;
	VDI_CHECK(frame->data.padlen == 0); /* nobody asks for padding */
	VDI_CHECK(size <= DATA_SIZE_MAX && connection->output_size + 9 + size <= VDI_H2_SCRATCH_SIZE);
	memcpy(output, head, 9);
	if (size)
		vdi_h2_outbox_write(source->ptr, output + 9, size);
	connection->output_size += 9 + size;
	if (has_room(connection))
		return 0;
	/* It is sent, and nghttp2 is to stop. To say that it could not be sent would leave a frame announced
	 * whose stream may be gone, and what it reads from with it, when there is room. */
	connection->is_full = true;
	return NGHTTP2_ERR_PAUSE;
}

static void note_goaway(struct vdi_h2_connection *connection, const nghttp2_goaway *goaway)
{
	connection->has_goaway = true;
	if (goaway->error_code != NGHTTP2_NO_ERROR && connection->hint[0] == 0)
		(void) snprintf(
			connection->hint, sizeof connection->hint, "the peer ended the connection: %s%s%.*s",
			nghttp2_http2_strerror(goaway->error_code), goaway->opaque_data_len ? ", " : "",
			(int) VDI_MIN(goaway->opaque_data_len, 100), (const char *) goaway->opaque_data);
}

/* As grpc-go's enforcement; what was sent forgives everything. */
static void judge_ping(struct vdi_h2_connection *connection)
{
	static const char words[] = "too_many_pings";
	vd_mono		  now = connection->received_at;

	if (connection->ping_interval_min.ns == 0)
		return;
	if (connection->pinged_at.ns &&
	    vd_mono_since(now, connection->pinged_at).ns < connection->ping_interval_min.ns &&
	    ++connection->strikes > PING_STRIKES_MAX) {
		(void) nghttp2_submit_goaway(connection->session, NGHTTP2_FLAG_NONE,
					     nghttp2_session_get_last_proc_stream_id(connection->session),
					     NGHTTP2_ENHANCE_YOUR_CALM, (const uint8_t *) words,
					     sizeof words - 1);
		(void) snprintf(connection->hint, sizeof connection->hint, "%s", words);
		vdi_h2_connection_close(connection, VD_SECONDS(1));
	}
	connection->pinged_at = now;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
	struct vdi_h2_connection *connection = user_data;

	if (frame->hd.type == NGHTTP2_SETTINGS && (frame->hd.flags & NGHTTP2_FLAG_ACK) == 0 &&
	    !connection->is_ready) {
		connection->is_ready = true;
		if (!connection->is_closing)
			arm_keepalive(connection);
		if (connection->side->ready && !connection->is_closing)
			connection->side->ready(connection->arg);
	} else if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK) == 0)
		judge_ping(connection);
	else if (frame->hd.type == NGHTTP2_GOAWAY)
		note_goaway(connection, &frame->goaway);
	return connection->side->frame ? connection->side->frame(session, frame, user_data) : 0;
}

static int on_frame_begin(nghttp2_session *session, const nghttp2_frame_hd *head, void *user_data)
{
	struct vdi_h2_connection *connection = user_data;

	return connection->side->frame_begin ? connection->side->frame_begin(session, head, user_data) : 0;
}

static int on_headers_begin(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
	struct vdi_h2_connection *connection = user_data;

	connection->headers_size = 0;
	if (connection->is_server && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		connection->streams++;
	return connection->side->headers_begin ? connection->side->headers_begin(session, frame, user_data) :
						 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
		     void *user_data)
{
	struct vdi_h2_connection *connection = user_data;

	connection->headers_size += name_size + value_size + 32;
	if (connection->headers_size > VDI_H2_HEADERS_SIZE_MAX)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	return connection->side->header ? connection->side->header(session, frame, name, name_size, value,
								   value_size, flags, user_data) :
					  0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data,
		   size_t size, void *user_data)
{
	struct vdi_h2_connection *connection = user_data;

	if (nghttp2_session_consume_connection(session, size) != 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	return connection->side->data ?
		       connection->side->data(session, flags, stream_id, data, size, user_data) :
		       0;
}

static int on_stream_closed(nghttp2_session *session, int32_t stream_id, uint32_t error_code, void *user_data)
{
	struct vdi_h2_connection *connection = user_data;

	if (stream_id == connection->not_sent_id)
		connection->not_sent_id = 0;
	else if (connection->streams)
		connection->streams--;
	return connection->side->stream_closed ?
		       connection->side->stream_closed(session, stream_id, error_code, user_data) :
		       0;
}

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
	struct vdi_h2_connection *connection = user_data;

	if (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) {
		connection->strikes = 0;
		connection->pinged_at.ns = 0;
		if (!connection->is_server && frame->hd.type == NGHTTP2_HEADERS &&
		    frame->headers.cat == NGHTTP2_HCAT_REQUEST)
			connection->streams++;
	} else if (frame->hd.type == NGHTTP2_GOAWAY)
		connection->has_goaway = true;
	return connection->side->frame_sent ? connection->side->frame_sent(session, frame, user_data) : 0;
}

static int on_frame_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int error, void *user_data)
{
	struct vdi_h2_connection *connection = user_data;

	if (!connection->is_server && frame->hd.type == NGHTTP2_HEADERS &&
	    frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		connection->not_sent_id = frame->hd.stream_id;
	return connection->side->frame_not_sent ?
		       connection->side->frame_not_sent(session, frame, error, user_data) :
		       0;
}

static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int error, void *user_data)
{
	struct vdi_h2_connection *connection = user_data;

	(void) session;
	(void) frame;
	(void) snprintf(connection->hint, sizeof connection->hint, "%s", nghttp2_strerror(error));
	return 0;
}

/* ---- Writing ---- */

/* How much the socket took; -1: an end was noted. */
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
			if (connection->link == NULL && sent < size)
				break; /* full */
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

/* What nghttp2 has for us, as long as there is room: it puts out as much DATA (send_data) as that takes, then
 * answers with one frame of another kind, for which there is always room, or with none. False: an end was
 * noted. */
static bool fill(struct vdi_h2_connection *connection, bool *ret_is_all)
{
	char *output = vdi_h2_hub_output(connection->hub);

	connection->output_size = 0;
	connection->is_full = false;
	*ret_is_all = false;
	while (has_room(connection)) {
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

/* All is written of what may be, or there is no time: the peer is to see that before the connection goes. */
static void say_goodbye(struct vdi_h2_connection *connection)
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

/* Requests whose answers nobody takes would pile up without an end. */
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
		event_active(&connection->read_event, EV_READ, 0); /* the socket would not tell */
}

static void flush(struct vdi_h2_connection *connection)
{
	size_t written = 0;
	bool   is_all = false;

	while (!is_all && connection->kept == NULL) {
		ssize_t sent;

		if (written >= WRITE_SIZE_MAX) {
			vdi_h2_hub_list_dirty(connection->hub, &connection->dirty);
			return;
		}
		if (!fill(connection, &is_all))
			return;
		sent = write_some(connection, vdi_h2_hub_output(connection->hub), connection->output_size);
		if (sent < 0)
			return;
		if ((size_t) sent < connection->output_size &&
		    !keep(connection, vdi_h2_hub_output(connection->hub) + sent,
			  connection->output_size - (size_t) sent))
			return;
		written += connection->output_size;
	}
	if (connection->kept && (!connection->is_closing || connection->close_timeout.ns > 0))
		return;
	if (connection->is_paused)
		read_on(connection);
	if (connection->is_closing)
		say_goodbye(connection);
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
		vdi_h2_hub_unlist_dirty(connection->hub, &connection->dirty);
		finish(connection);
	}
}

void vdi_h2_connection_touch(struct vdi_h2_connection *connection)
{
	if (!connection->dirty.is_listed)
		vdi_h2_hub_list_dirty(connection->hub, &connection->dirty);
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
	vdi_h2_timer_set(connection->hub, &connection->timer,
			 timeout.ns > 0 ? vd_mono_add(vd_env_now(vdi_h2_hub_env(connection->hub)), timeout) :
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
				     connection->is_server ?
					      "the client closed the connection before HTTP/2 began" :
					      "the server closed the connection before HTTP/2 began (TLS or "
					      "a client certificate may be expected)");
		return;
	}
	connection->is_shaking = false;
	vdi_h2_connection_touch(connection);
	if (vdi_h2_link_has_more(connection->link))
		event_active(&connection->read_event, EV_READ, 0);
}

/* False: an end was noted, or it goes on connecting. */
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

/* False: nothing more to be had now. */
static bool read_some(struct vdi_h2_connection *connection)
{
	char   *input = vdi_h2_hub_input(connection->hub);
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
	connection->received_at = vd_env_now(vdi_h2_hub_env(connection->hub));
	if (connection->has_pinged) {
		connection->has_pinged = false;
		if (!connection->is_closing)
			arm_keepalive(connection);
	}
	if (connection->is_deaf || connection->is_lingering)
		return true;
	connection->is_receiving = true;
	used = nghttp2_session_mem_recv(connection->session, (const uint8_t *) input, (size_t) got);
	connection->is_receiving = false;
	if (used < 0) {
		if (used == NGHTTP2_ERR_FLOODED && connection->is_closing) {
			connection->is_deaf = true; /* it is to hear why */
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
	/* Plain sockets say by a short count that they are empty. */
	return connection->link ? vdi_h2_link_has_more(connection->link) :
				  (size_t) got == VDI_H2_SCRATCH_SIZE;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct vdi_h2_connection *connection = arg;
	struct vdi_h2_hub	 *hub = connection->hub;
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
	lends = vdi_h2_hub_begin_input(hub);
	while (has_more && rounds++ < READ_SIZE_MAX / VDI_H2_SCRATCH_SIZE)
		has_more = read_some(connection);
	if (!connection->is_over) {
		pause_if_unread(connection);
		if (has_more && connection->link && !connection->is_paused)
			event_active(&connection->read_event, EV_READ, 0); /* the socket would not tell */
		if (nghttp2_session_want_write(connection->session) ||
		    !nghttp2_session_want_read(connection->session))
			vdi_h2_connection_touch(connection);
	}
	/* The guests may do anything, but nothing of it before the end of the turn. */
	vdi_h2_hub_end_input(hub, lends);
}

/* ---- Life ---- */

static vd_status new_callbacks(nghttp2_session_callbacks **ret_callbacks)
{
	nghttp2_session_callbacks *callbacks;

	if (nghttp2_session_callbacks_new(&callbacks) != 0)
		return VD_NOMEM;
	nghttp2_session_callbacks_set_send_data_callback(callbacks, send_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
	nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_frame_begin);
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_headers_begin);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_closed);
	nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
	nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_frame_not_sent);
	*ret_callbacks = callbacks;
	return VD_OK;
}

static vd_status new_options(nghttp2_option **ret_option)
{
	nghttp2_option *option;

	if (nghttp2_option_new(&option) != 0)
		return VD_NOMEM;
	nghttp2_option_set_no_auto_window_update(option, 1);
	nghttp2_option_set_no_closed_streams(option, 1);
	nghttp2_option_set_max_reserved_remote_streams(option, 0);
	nghttp2_option_set_max_send_header_block_length(option, VDI_H2_HEADERS_SIZE_MAX);
	nghttp2_option_set_stream_reset_rate_limit(option, RESETS_BURST, RESETS_PER_SECOND);
#ifdef VDI_H2_HAS_GLITCH_LIMIT
	/* DATA that was on its way when its stream was reset counts, too: as much as a connection's window
	 * holds, and more. */
	nghttp2_option_set_glitch_rate_limit(option, RESETS_BURST, RESETS_PER_SECOND);
#endif
	*ret_option = option;
	return VD_OK;
}

static vd_status make_session(struct vdi_h2_connection *connection)
{
	nghttp2_mem		   memory = { NULL, allocate, release, allocate_zeroed, reallocate };
	nghttp2_session_callbacks *callbacks;
	nghttp2_option		  *option;
	int			   error;

	VDI_TRY(new_callbacks(&callbacks));
	if (new_options(&option) != VD_OK) {
		nghttp2_session_callbacks_del(callbacks);
		return VD_NOMEM;
	}
	error = connection->is_server ? nghttp2_session_server_new3(&connection->session, callbacks,
								    connection, option, &memory) :
					nghttp2_session_client_new3(&connection->session, callbacks,
								    connection, option, &memory);
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	if (error)
		connection->session = NULL;
	return error ? VD_NOMEM : VD_OK;
}

/* What we tell the peer of ourselves, first of all. */
static vd_status introduce(struct vdi_h2_connection		  *connection,
			   const struct vdi_h2_connection_options *options)
{
	nghttp2_settings_entry settings[4];
	size_t		       count = 0;

	settings[count++] =
		(nghttp2_settings_entry) { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, VDI_H2_HEADERS_SIZE_MAX };
	if (!options->is_server)
		settings[count++] = (nghttp2_settings_entry) { NGHTTP2_SETTINGS_ENABLE_PUSH, 0 };
	if (options->stream_window)
		settings[count++] = (nghttp2_settings_entry) { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
							       options->stream_window };
	if (options->is_server && options->streams_max)
		settings[count++] = (nghttp2_settings_entry) { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
							       options->streams_max };
	if (nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, settings, count) != 0)
		return VD_NOMEM;
	if (options->connection_window &&
	    nghttp2_session_set_local_window_size(connection->session, NGHTTP2_FLAG_NONE, 0,
						  (int32_t) options->connection_window) != 0)
		return VD_NOMEM;
	return VD_OK;
}

static vd_status listen_to_socket(struct vdi_h2_connection *connection)
{
	struct event_base *base = vdi_loop_base(vdi_h2_hub_loop(connection->hub));

	if (event_assign(&connection->read_event, base, connection->fd, EV_READ | EV_PERSIST, on_readable,
			 connection) != 0 ||
	    event_assign(&connection->write_event, base, connection->fd, EV_WRITE, on_writable, connection) !=
		    0 ||
	    event_add(&connection->read_event, NULL) != 0)
		return VD_NOMEM;
	/* Writable is what a connect comes to, and at once if it has come already; then a client speaks
	 * first. */
	if ((connection->is_connecting || connection->is_shaking) &&
	    event_add(&connection->write_event, NULL) != 0) {
		event_del(&connection->read_event);
		return VD_NOMEM;
	}
	return VD_OK;
}

vd_status vdi_h2_connection_new(struct vdi_h2_hub *hub, int fd,
				const struct vdi_h2_connection_options *options,
				struct vdi_h2_connection	      **ret_connection)
{
	struct vdi_h2_connection *connection = VDI_NEW(struct vdi_h2_connection);
	vd_status		  status;

	if (connection == NULL)
		return VD_NOMEM;
	connection->hub = hub;
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
	connection->received_at = vd_env_now(vdi_h2_hub_env(hub));
	status = make_session(connection);
	if (status == VD_OK && options->has_preface &&
	    nghttp2_session_mem_recv(connection->session, (const uint8_t *) NGHTTP2_CLIENT_MAGIC,
				     NGHTTP2_CLIENT_MAGIC_LEN) < 0)
		status = VD_NOMEM;
	if (status == VD_OK)
		status = introduce(connection, options);
	if (status == VD_OK && options->tls)
		status = vdi_h2_link_new(options->tls, fd, options->name, &connection->link);
	if (status == VD_OK)
		status = listen_to_socket(connection);
	if (status != VD_OK) {
		connection->fd = -1; /* the caller's */
		(void) vdi_h2_connection_free(connection);
		return status;
	}
	if (options->link)
		connection->link = options->link;
	if (options->link && vdi_h2_link_has_more(options->link))
		event_active(&connection->read_event, EV_READ, 0); /* the socket would not tell */
	if (!connection->is_connecting && !connection->is_shaking)
		vdi_h2_connection_touch(connection);
	if (options->settle_timeout.ns > 0)
		vdi_h2_timer_set(hub, &connection->timer,
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
	vdi_h2_timer_set(connection->hub, &connection->timer, VD_NEVER);
	vdi_h2_hub_unlist_dirty(connection->hub, &connection->dirty);
	nghttp2_session_del(connection->session);
	(void) vdi_h2_link_free(connection->link);
	vdi_free(connection->kept);
	vdi_free(connection);
	return NULL;
}

/* ---- For the side ---- */

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
