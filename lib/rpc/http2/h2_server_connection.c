/* One connection of the server: its protocol; then nghttp2's events for its streams, which are passed to
 * their calls, or its requests of HTTP/1.x, one at a time.
 *
 * Draining is graceful: first GOAWAY with the highest possible stream ID, so that the peer opens no more
 * streams, and a ping. When the ping is acknowledged, every stream that the peer opened before is known, and
 * GOAWAY with the last of them follows. Streams in between are served normally. The connection ends with its
 * last stream.
 */
#include <stdio.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "env.h"
#include "h2_server_state.h"

#define CUT_AFTER VD_MS(200)
#define WRITE_TIMEOUT VD_SECONDS(60) /* for a response of HTTP/1.x */
#define CONNECTION_WINDOW (1u << 20)
#define STREAM_WINDOW 65535
#define LAST_STREAM_ID 0x7fffffff

static const uint8_t drain_ping[8] = { 'd', 'r', 'a', 'i', 'n', 'i', 'n', 'g' };

/* ---- Peer ---- */

static void write_address(const struct vdi_h2_arrival *arrival, char *text, size_t size)
{
	char			   number[INET6_ADDRSTRLEN] = "";
	const struct sockaddr_in  *four = (const struct sockaddr_in *) &arrival->address;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *) &arrival->address;

	if (arrival->address.ss_family == AF_INET) {
		(void) inet_ntop(AF_INET, &four->sin_addr, number, sizeof number);
		snprintf(text, size, "%s:%u", number, ntohs(four->sin_port));
	} else if (arrival->address.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
		(void) inet_ntop(AF_INET, &six->sin6_addr.s6_addr[12], number, sizeof number);
		snprintf(text, size, "%s:%u", number, ntohs(six->sin6_port));
	} else if (arrival->address.ss_family == AF_INET6) {
		(void) inet_ntop(AF_INET6, &six->sin6_addr, number, sizeof number);
		snprintf(text, size, "[%s]:%u", number, ntohs(six->sin6_port));
	} else
		snprintf(text, size, "unix:");
}

static struct vdi_h2_peer *new_peer(const char *address, const char *common_name)
{
	size_t		    address_size = strlen(address) + 1;
	size_t		    name_size = strlen(common_name) + 1;
	struct vdi_h2_peer *peer = vdi_alloc(sizeof *peer + address_size + name_size);

	if (peer == NULL)
		return NULL;
	atomic_init(&peer->references, 1);
	memcpy(peer->address, address, address_size);
	memcpy(peer->address + address_size, common_name, name_size);
	peer->common_name = peer->address + address_size;
	return peer;
}

struct vdi_h2_peer *vdi_h2_peer_unref(struct vdi_h2_peer *peer)
{
	if (peer && atomic_fetch_sub_explicit(&peer->references, 1, memory_order_acq_rel) == 1)
		vdi_free(peer);
	return NULL;
}

/* Sets the peer's name; the certificate is known now. False: out of memory. */
static bool name_peer(struct vdi_h2_server_connection *connection)
{
	struct vdi_h2_peer *peer;
	char		    name[256];

	vdi_h2_connection_common_name(connection->connection, name, sizeof name);
	if (name[0] == 0)
		return true;
	peer = new_peer(connection->peer->address, name);
	if (peer == NULL)
		return false;
	(void) vdi_h2_peer_unref(connection->peer);
	connection->peer = peer;
	return true;
}

/* ---- Callbacks of nghttp2 ---- */

static struct vdi_h2_server_call *call_of(nghttp2_session *session, int32_t stream_id)
{
	return nghttp2_session_get_stream_user_data(session, stream_id);
}

static void on_ready(void *arg)
{
	struct vdi_h2_server_connection *connection = arg;

	connection->is_ready = true;
	if (!name_peer(connection))
		vdi_h2_connection_abort(connection->connection, "out of memory");
	else if (connection->loop->is_drained)
		vdi_h2_server_connection_drain(connection);
}

static bool was_reset(const struct vdi_h2_server_connection *connection, int32_t stream_id)
{
	for (size_t i = 0; i < VDI_ARRAY_SIZE(connection->resets); i++) {
		if (connection->resets[i] == stream_id)
			return true;
	}
	return false;
}

/* RFC 9113, 5.1.1: a new stream must have a higher ID than all before, or the connection ends. nghttp2
 * ignores HEADERS with a lower one, because they may be trailers that crossed our RST_STREAM; so this side
 * keeps the IDs of the streams that it reset last. After GOAWAY both new streams and their trailers are
 * ignored. */
static int on_frame_begin(nghttp2_session *session, const nghttp2_frame_hd *head, void *user_data)
{
	struct vdi_h2_server_connection *connection = vdi_h2_connection_arg_of(user_data);

	if (head->type != NGHTTP2_HEADERS)
		return 0;
	if (head->stream_id > connection->highest_id)
		connection->highest_id = head->stream_id;
	else if (nghttp2_session_get_stream_remote_close(session, head->stream_id) < 0 &&
		 !was_reset(connection, head->stream_id) &&
		 vdi_h2_connection_is_ready(connection->connection))
		return nghttp2_session_terminate_session(session, NGHTTP2_PROTOCOL_ERROR);
	return 0;
}

static int on_headers_begin(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
	struct vdi_h2_server_connection *connection = vdi_h2_connection_arg_of(user_data);
	struct vdi_h2_server_call	*call;

	if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	call = vdi_h2_server_call_new(connection, frame->hd.stream_id);
	if (call == NULL)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	(void) nghttp2_session_set_stream_user_data(session, frame->hd.stream_id,
						    call); /* the stream exists */
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
		     void *user_data)
{
	struct vdi_h2_server_call *call;

	(void) flags;
	(void) user_data;
	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0; /* a server ignores trailers */
	call = call_of(session, frame->hd.stream_id);
	if (call && !vdi_h2_server_call_header(call, (struct vd_bytes) { name, name_size },
					       (struct vd_bytes) { value, value_size }))
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data,
		   size_t size, void *user_data)
{
	struct vdi_h2_server_call *call = call_of(session, stream_id);

	(void) flags;
	(void) user_data;
	if (call)
		vdi_h2_server_call_data(call, (struct vd_bytes) { data, size });
	return 0;
}

/* The peer has acknowledged the ping after the first GOAWAY. */
static void end_drain(struct vdi_h2_server_connection *connection)
{
	nghttp2_session *session = vdi_h2_connection_session(connection->connection);

	if (connection->is_drained)
		return;
	connection->is_drained = true;
	if (nghttp2_submit_goaway(session, NGHTTP2_FLAG_NONE,
				  nghttp2_session_get_last_proc_stream_id(session), NGHTTP2_NO_ERROR, NULL,
				  0) != 0)
		vdi_h2_connection_abort(connection->connection, "out of memory");
	vdi_h2_connection_touch(connection->connection);
	vdi_h2_server_connection_rest(connection);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
	struct vdi_h2_server_connection *connection = vdi_h2_connection_arg_of(user_data);
	struct vdi_h2_server_call	*call;

	if (frame->hd.type == NGHTTP2_PING) {
		if (frame->hd.flags & NGHTTP2_FLAG_ACK &&
		    memcmp(frame->ping.opaque_data, drain_ping, sizeof drain_ping) == 0)
			end_drain(connection);
		return 0;
	}
	if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
		return 0;
	call = call_of(session, frame->hd.stream_id);
	if (call == NULL)
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		vdi_h2_server_call_begin(call);
	if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		vdi_h2_server_call_half_closed(call);
	return 0;
}

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
	struct vdi_h2_server_connection *connection = vdi_h2_connection_arg_of(user_data);
	struct vdi_h2_server_call	*call;

	if (frame->hd.type == NGHTTP2_RST_STREAM)
		connection->resets[connection->reset_next++ % VDI_ARRAY_SIZE(connection->resets)] =
			frame->hd.stream_id;
	/* nghttp2 would send a ping before GOAWAY. */
	if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.last_stream_id == LAST_STREAM_ID)
		return nghttp2_submit_ping(session, NGHTTP2_FLAG_NONE, drain_ping);
	if ((frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) ||
	    !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	call = call_of(session, frame->hd.stream_id);
	if (call)
		vdi_h2_server_call_left(call);
	return 0;
}

static int on_stream_closed(nghttp2_session *session, int32_t stream_id, uint32_t error_code, void *user_data)
{
	struct vdi_h2_server_call *call = call_of(session, stream_id);

	(void) error_code;
	(void) user_data;
	if (call)
		vdi_h2_server_call_stream_closed(call);
	return 0;
}

static void free_connection(struct vdi_h2_server_connection *connection)
{
	struct vdi_h2_server_loop *loop = connection->loop;

	if (connection->previous)
		connection->previous->next = connection->next;
	else
		loop->connections = connection->next;
	if (connection->next)
		connection->next->previous = connection->previous;
	vdi_h2_timer_set(loop->h2_loop, &connection->cut, VD_NEVER);
	(void) vdi_h2_peer_unref(connection->peer);
	vdi_free(connection);
	atomic_fetch_sub_explicit(&loop->connection_count, 1, memory_order_relaxed);
	if (atomic_load_explicit(&loop->server->is_draining, memory_order_acquire))
		vdi_h2_loop_wake(loop->h2_loop);
}

static void on_ended(void *arg, const char *why)
{
	struct vdi_h2_server_connection *connection = arg;

	(void) why; /* concerns one client; its calls end separately */
	while (connection->calls)
		vdi_h2_server_call_stream_closed(connection->calls);
	(void) vdi_h2_connection_free(connection->connection);
	free_connection(connection);
}

static const struct vdi_h2_side side = {
	.ready = on_ready,
	.frame = on_frame,
	.frame_begin = on_frame_begin,
	.headers_begin = on_headers_begin,
	.header = on_header,
	.data = on_data,
	.stream_closed = on_stream_closed,
	.frame_sent = on_frame_sent,
	.ended = on_ended,
};

/* ---- HTTP/1.x ---- */

static void on_older_request(void *arg, const struct vdi_http_head *head)
{
	struct vdi_h2_server_connection *connection = arg;

	if (connection->loop->server->http == NULL ||
	    !vdi_h2_server_http_begin(connection->loop, connection, NULL, head->method, head->path,
				      head->query))
		vdi_h1_connection_abort(connection->older);
}

static void on_older_ended(void *arg)
{
	struct vdi_h2_server_connection *connection = arg;

	if (connection->http)
		connection->http->connection = NULL;
	(void) vdi_h1_connection_free(connection->older);
	free_connection(connection);
}

static const struct vdi_h1_side older_side = { .request = on_older_request, .ended = on_older_ended };

void vdi_h2_server_connection_answer(struct vdi_h2_server_connection *connection,
				     const struct vdi_rpc_http	     *http)
{
	connection->http = NULL;
	vdi_h1_connection_answer(connection->older, http->code, vdi_buffer_bytes(&http->headers),
				 vdi_buffer_bytes(&http->body), http->closes);
}

/* ---- Begin and end ---- */

static void fire_cut(struct vdi_h2_timer *timer)
{
	struct vdi_h2_server_connection *connection =
		VDI_CONTAINER_OF(timer, struct vdi_h2_server_connection, cut);

	if (connection->connection)
		vdi_h2_connection_abort(connection->connection, "the server is closing");
	else
		vdi_h1_connection_abort(connection->older);
}

static vd_status become_http2(struct vdi_h2_server_connection *connection, const struct vdi_h2_opened *opened)
{
	struct vdi_h2_server		*server = connection->loop->server;
	struct vdi_h2_connection_options options = {
		.side = &side,
		.arg = connection,
		.is_server = true,
		.link = opened->link,
		.has_preface = opened->size > 0,
		.stream_window = STREAM_WINDOW,
		.connection_window = CONNECTION_WINDOW,
		.streams_max = server->streams_max,
		.settle_timeout = server->settle_timeout,
		.keepalive_time = server->keepalive_time,
		.keepalive_timeout = server->keepalive_timeout,
		.keepalive_without_streams = true,
		.ping_interval_min = server->ping_interval_min,
	};

	return vdi_h2_connection_new(connection->loop->h2_loop, opened->fd, &options,
				     &connection->connection);
}

static vd_status become_older(struct vdi_h2_server_connection *connection, const struct vdi_h2_opened *opened)
{
	struct vdi_h2_server *server = connection->loop->server;
	struct vdi_h1_options options = {
		.side = &older_side,
		.arg = connection,
		.fd = opened->fd,
		.link = opened->link,
		.first = { opened->bytes, opened->size },
		.head_timeout = server->settle_timeout,
		.idle_timeout = server->idle_timeout,
		.write_timeout = WRITE_TIMEOUT,
		.memory_used = &server->memory_used,
		.memory_max = server->memory_max,
	};

	VDI_TRY(vdi_h1_connection_new(connection->loop->h2_loop, &options, &connection->older));
	if (connection->loop->is_drained)
		vdi_h1_connection_drain(connection->older);
	return VD_OK;
}

static void on_opened(void *arg, const struct vdi_h2_opened *opened)
{
	struct vdi_h2_server_connection *connection = arg;
	vd_status			 status = VD_CLOSED;

	connection->detection = vdi_h2_detection_free(connection->detection);
	if (opened->as == VDI_H2_OPENED_HTTP2)
		status = become_http2(connection, opened);
	else if (opened->as == VDI_H2_OPENED_OTHER)
		status = become_older(connection, opened);
	if (status == VD_OK)
		return;
	if (opened->as != VDI_H2_OPENED_NOTHING) {
		(void) vdi_h2_link_free(opened->link);
		(void) close(opened->fd);
	}
	free_connection(connection);
}

static struct vdi_h2_server_connection *new_connection(struct vdi_h2_server_loop   *loop,
						       const struct vdi_h2_arrival *arrival)
{
	struct vdi_h2_detection_options	 options = { .fd = arrival->fd,
						     .tls = loop->server->tls,
						     .timeout = loop->server->settle_timeout,
						     .opened = on_opened };
	struct vdi_h2_server_connection *connection = VDI_NEW(struct vdi_h2_server_connection);
	char				 address[INET6_ADDRSTRLEN + 16];

	if (connection == NULL)
		return NULL;
	write_address(arrival, address, sizeof address);
	connection->loop = loop;
	connection->is_tls = loop->server->tls != NULL;
	connection->cut.fire = fire_cut;
	connection->peer = new_peer(address, "");
	options.arg = connection;
	if (connection->peer == NULL ||
	    vdi_h2_detection_new(loop->h2_loop, &options, &connection->detection) != VD_OK) {
		(void) vdi_h2_peer_unref(connection->peer);
		vdi_free(connection);
		return NULL;
	}
	return connection;
}

void vdi_h2_server_connection_open(struct vdi_h2_server_loop *loop, const struct vdi_h2_arrival *arrival)
{
	int				 on = 1;
	struct vdi_h2_server_connection *connection = NULL;

	if (arrival->address.ss_family != AF_UNIX)
		(void) setsockopt(arrival->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (!loop->is_drained)
		connection = new_connection(loop, arrival);
	if (connection == NULL) {
		(void) close(arrival->fd);
		atomic_fetch_sub_explicit(&loop->connection_count, 1, memory_order_relaxed);
		return;
	}
	connection->next = loop->connections;
	if (connection->next)
		connection->next->previous = connection;
	loop->connections = connection;
}

void vdi_h2_server_connection_rest(struct vdi_h2_server_connection *connection)
{
	if (connection->connection && connection->calls == NULL &&
	    (connection->is_drained || connection->is_closing))
		vdi_h2_connection_close(connection->connection, CUT_AFTER);
}

void vdi_h2_server_connection_drain(struct vdi_h2_server_connection *connection)
{
	nghttp2_session *session;

	if (connection->older)
		vdi_h1_connection_drain(connection->older);
	if (!connection->is_ready)
		return; /* called again when it is */
	session = vdi_h2_connection_session(connection->connection);
	if (nghttp2_submit_shutdown_notice(session) != 0)
		vdi_h2_connection_abort(connection->connection, "out of memory");
	else
		vdi_h2_connection_touch(connection->connection);
}

void vdi_h2_server_connection_close(struct vdi_h2_server_connection *connection)
{
	struct vdi_h2_server_call *call = connection->calls;

	if (connection->detection) {
		connection->detection = vdi_h2_detection_free(connection->detection);
		free_connection(connection);
		return;
	}
	connection->is_closing = true;
	if (connection->is_ready)
		end_drain(connection);
	while (call) {
		struct vdi_h2_server_call *next = call->next;

		vdi_h2_server_call_shut_down(call);
		call = next;
	}
	vdi_h2_timer_set(connection->loop->h2_loop, &connection->cut,
			 vd_mono_add(vd_env_now(connection->loop->server->env), CUT_AFTER));
	vdi_h2_server_connection_rest(connection);
}
