/* One endpoint: its addresses are tried in turn until a connection is ready, which means that the peer's
 * SETTINGS have arrived. The connection takes rpcs until the peer sends GOAWAY or it breaks; then the next
 * one is dialed. A connection that takes no new rpcs lives until its last rpc has ended, beside the next one.
 *
 * Back-off: an attempt that failed with all addresses is followed by the next one 100 ms, later up to 2 s,
 * after it began; a connection that became ready resets this. So a connection that lasted for a while is
 * replaced at once, and a peer that ends each one right away is dialed at most every 100 ms.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <vedette/vedette.h>

#include "h2_client_state.h"
#include "rpc_endpoint.h"

#define BACKOFF_FIRST VD_MS(100)
#define BACKOFF_MAX VD_SECONDS(2)
#define CONNECT_TIMEOUT VD_SECONDS(5)
#define KEEPALIVE_MIN VD_SECONDS(5)
#define STREAM_WINDOW (1u << 20)
#define CONNECTION_WINDOW (16u << 20)

static void dial(struct vdi_h2_channel *channel);
static void fire(struct vdi_h2_timer *timer);

/* ---- Creation and end ---- */

static void free_channel(struct vdi_h2_channel *channel)
{
	vdi_free(channel->name);
	vdi_free(channel->host);
	vdi_free(channel->port);
	vdi_free(channel->authority);
	vdi_free(channel->addresses);
	vdi_free(channel->resolved);
	vdi_free(channel);
}

/* "[::1]:2379" -> "::1", "2379". */
static void split(struct vdi_h2_channel *channel, const struct vdi_rpc_endpoint *endpoint)
{
	const char *colon = strrchr(endpoint->address, ':');
	size_t	    size = colon ? (size_t) (colon - endpoint->address) : 0;
	bool	    has_brackets = endpoint->address[0] == '[';

	if (endpoint->is_socket) {
		channel->host = vdi_strdup(endpoint->address);
		channel->authority = vdi_strdup("localhost");
		return;
	}
	channel->host = vdi_strndup(endpoint->address + has_brackets, has_brackets ? size - 2 : size);
	channel->port = vdi_strdup(colon + 1);
	channel->authority =
		vdi_strdup(channel->client->server_name ? channel->client->server_name : endpoint->address);
}

vd_status vdi_h2_channel_new(struct vdi_h2_client *client, const char *name,
			     struct vdi_h2_channel **ret_channel, struct vd_error *reterr)
{
	struct vdi_h2_channel  *channel = VDI_NEW(struct vdi_h2_channel);
	struct vdi_rpc_endpoint endpoint = { 0 };
	vd_status		status;

	if (channel == NULL)
		return VD_NOMEM;
	channel->client = client;
	channel->references = 1;
	channel->backoff = BACKOFF_FIRST;
	channel->timer.fire = fire;
	channel->name = vdi_strdup(name);
	status = channel->name ? vdi_rpc_endpoint_parse(name, &endpoint, reterr) : VD_NOMEM;
	if (status == VD_OK) {
		split(channel, &endpoint);
		if (channel->host == NULL || channel->authority == NULL ||
		    (!endpoint.is_socket && channel->port == NULL))
			status = VD_NOMEM;
	}
	vdi_free(endpoint.address);
	if (status != VD_OK) {
		free_channel(channel);
		return status;
	}
	*ret_channel = channel;
	return VD_OK;
}

void vdi_h2_channel_unref_locked(struct vdi_h2_channel *channel)
{
	struct vdi_h2_client *client = channel->client;

	VDI_CHECK(channel->references > 0);
	if (--channel->references)
		return;
	client->channels_alive--;
	if (client->is_closing && client->h2_loop)
		vdi_h2_loop_wake(client->h2_loop);
	free_channel(channel);
}

static void set_ready(struct vdi_h2_channel *channel, bool is_ready, const char *last_error)
{
	vdi_lock_acquire(&channel->client->lock);
	channel->is_ready = is_ready && !channel->is_removed;
	if (last_error)
		(void) snprintf(channel->last_error, sizeof channel->last_error, "%s", last_error);
	vdi_lock_release(&channel->client->lock);
}

/* ---- Dialing ---- */

static void dial_later(struct vdi_h2_channel *channel)
{
	const struct vd_env *env = channel->client->env;
	vd_dur		     wait = channel->backoff;

	/* Random, from four to six fifths of it. */
	wait.ns = wait.ns / 5 * 4 + (int64_t) vd_env_random_below(env, (uint64_t) wait.ns / 5 * 2);
	channel->backoff.ns = VDI_MIN(channel->backoff.ns * 8 / 5, BACKOFF_MAX.ns);
	vdi_free(channel->addresses); /* the name may have other addresses by then */
	channel->addresses = NULL;
	vdi_h2_timer_set(channel->client->h2_loop, &channel->timer, vd_mono_add(channel->dialed_at, wait));
}

static void note_failure(struct vdi_h2_channel *channel, const char *why)
{
	set_ready(channel, false, why);
	if (!channel->is_retired)
		dial_later(channel);
}

static const char *words_of_errno(char *text, size_t size)
{
	(void) snprintf(text, size, "%s", strerror(errno));
	if (text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'a')
		text[0] += 'a' - 'A';
	return text;
}

/* VD_OK: the connect is in progress or done. */
static vd_status open_socket(const struct vdi_h2_address *address, int *ret_fd, char *why, size_t why_size)
{
	int one = 1;
	int fd = socket(address->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		(void) words_of_errno(why, why_size);
		return VD_IO;
	}
	if (address->at.ss_family != AF_UNIX)
		(void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (connect(fd, (const struct sockaddr *) &address->at, address->size) != 0 && errno != EINPROGRESS) {
		(void) words_of_errno(why, why_size);
		close(fd);
		return VD_IO;
	}
	*ret_fd = fd;
	return VD_OK;
}

static const struct vdi_h2_side client_side;

static vd_status make_line(struct vdi_h2_channel *channel, int fd)
{
	struct vdi_h2_client		*client = channel->client;
	struct vdi_h2_line		*line = VDI_NEW(struct vdi_h2_line);
	struct vdi_h2_connection_options options = {
		.side = &client_side,
		.arg = line,
		.tls = client->tls,
		.name = client->server_name ? client->server_name :
			channel->port	    ? channel->host :
					      "localhost",
		.stream_window = STREAM_WINDOW,
		.connection_window = CONNECTION_WINDOW,
		.settle_timeout = CONNECT_TIMEOUT,
		.keepalive_timeout = client->keepalive_timeout,
	};

	if (line == NULL)
		return VD_NOMEM;
	if (client->keepalive_time.ns > 0)
		options.keepalive_time =
			client->keepalive_time.ns < KEEPALIVE_MIN.ns ? KEEPALIVE_MIN : client->keepalive_time;
	line->channel = channel;
	TAILQ_INIT(&line->rpcs);
	if (vdi_h2_connection_new(client->h2_loop, fd, &options, &line->connection) != VD_OK) {
		vdi_free(line);
		return VD_NOMEM;
	}
	vdi_lock_acquire(&client->lock);
	channel->references++;
	vdi_lock_release(&client->lock);
	channel->line = line;
	return VD_OK;
}

/* Dials the next address; after the last one the attempt has failed, with the error of the last. */
static void dial_next(struct vdi_h2_channel *channel, const char *why)
{
	char room[200];

	while (channel->addresses && channel->address_next < channel->addresses->count) {
		const struct vdi_h2_address *address = &channel->addresses->list[channel->address_next++];
		int			     fd;

		if (open_socket(address, &fd, room, sizeof room) != VD_OK) {
			why = room;
			continue;
		}
		if (make_line(channel, fd) == VD_OK)
			return;
		close(fd);
		why = "out of memory";
	}
	note_failure(channel, why);
}

static void take_addresses(struct vdi_h2_channel *channel, struct vdi_h2_addresses *addresses)
{
	vdi_free(channel->addresses);
	channel->addresses = addresses;
	channel->address_next = 0;
	dial_next(channel, "unknown host");
}

/* Called on the resolver's thread. */
static void resolved(void *arg, struct vdi_h2_addresses *addresses, const char *why)
{
	struct vdi_h2_channel *channel = arg;
	struct vdi_h2_client  *client = channel->client;

	vdi_lock_acquire(&client->lock);
	channel->resolved = addresses;
	channel->has_answer = true;
	(void) snprintf(channel->answer_why, sizeof channel->answer_why, "%s", why);
	client->has_news = true;
	vdi_h2_loop_wake(client->h2_loop);
	vdi_lock_release(&client->lock);
}

static void dial(struct vdi_h2_channel *channel)
{
	struct vdi_h2_addresses *addresses;
	vd_status		 status;

	channel->dialed_at = vd_env_now(channel->client->env);
	status = channel->port ? vdi_h2_address_of_number(channel->host, channel->port, &addresses) :
				 vdi_h2_address_of_path(channel->host, &addresses);
	if (status == VD_OK) {
		take_addresses(channel, addresses);
		return;
	}
	if (status == VD_AGAIN)
		status = vdi_h2_resolve_start(channel->client->env, channel->host, channel->port, resolved,
					      channel, &channel->resolve);
	if (status != VD_OK)
		note_failure(channel, status == VD_NOMEM ? "out of memory" : vd_status_sentence(status));
}

static void fire(struct vdi_h2_timer *timer)
{
	struct vdi_h2_channel *channel = VDI_CONTAINER_OF(timer, struct vdi_h2_channel, timer);

	if (channel->line == NULL && channel->resolve == NULL && !channel->is_retired)
		dial(channel);
}

void vdi_h2_channel_tend(struct vdi_h2_channel *channel)
{
	struct vdi_h2_client	*client = channel->client;
	struct vdi_h2_addresses *addresses = NULL;
	bool			 has_answer;

	if (channel->is_retired)
		return;
	if (!channel->is_tended) {
		channel->is_tended = true;
		dial(channel);
		return;
	}
	vdi_lock_acquire(&client->lock);
	has_answer = channel->has_answer;
	channel->has_answer = false;
	addresses = channel->resolved;
	channel->resolved = NULL;
	vdi_lock_release(&client->lock);
	if (!has_answer)
		return;
	channel->resolve = vdi_h2_resolve_end(channel->resolve);
	if (addresses)
		take_addresses(channel, addresses);
	else
		note_failure(channel, channel->answer_why);
}

/* ---- Lines (connections of the endpoint) ---- */

/* The line takes no more rpcs. */
static void leave(struct vdi_h2_line *line)
{
	struct vdi_h2_channel *channel = line->channel;

	if (line->is_left)
		return;
	line->is_left = true;
	if (channel->line == line) {
		channel->line = NULL;
		set_ready(channel, false, NULL);
		if (!channel->is_retired)
			dial_later(channel);
	}
	if (line->count == 0)
		vdi_h2_connection_close(line->connection, (vd_dur) { 0 });
}

void vdi_h2_channel_retire(struct vdi_h2_channel *channel)
{
	struct vdi_h2_client *client = channel->client;
	struct vdi_h2_rpc    *rpc;

	channel->is_retired = true;
	/* Calls in flight may finish. */
	vdi_lock_acquire(&client->lock);
	TAILQ_FOREACH(rpc, &client->live, live_node)
	{
		if ((rpc->channel == channel && rpc->is_stream) ||
		    (rpc->only == channel && rpc->place != VDI_H2_RUNNING && rpc->place != VDI_H2_DRAINING))
			vdi_h2_rpc_stop_locked(rpc, VDI_H2_REMOVED);
	}
	vdi_lock_release(&client->lock);
	channel->resolve = vdi_h2_resolve_end(channel->resolve);
	vdi_h2_timer_set(client->h2_loop, &channel->timer, VD_NEVER);
	if (channel->line)
		leave(channel->line);
	vdi_lock_acquire(&client->lock);
	vdi_h2_channel_unref_locked(channel);
	vdi_lock_release(&client->lock);
}

struct vdi_h2_line *vdi_h2_channel_line(struct vdi_h2_channel *channel)
{
	struct vdi_h2_line *line = channel->line;

	if (line == NULL || !vdi_h2_connection_is_ready(line->connection))
		return NULL;
	return line->count < nghttp2_session_get_remote_settings(vdi_h2_connection_session(line->connection),
								 NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS) ?
		       line :
		       NULL;
}

void vdi_h2_line_add(struct vdi_h2_line *line, struct vdi_h2_rpc *rpc)
{
	rpc->line = line;
	line->count++;
	TAILQ_INSERT_TAIL(&line->rpcs, rpc, line_node);
	vdi_h2_connection_touch(line->connection);
}

void vdi_h2_line_remove(struct vdi_h2_line *line, struct vdi_h2_rpc *rpc)
{
	struct vdi_h2_client *client = line->channel->client;

	rpc->line = NULL;
	line->count--;
	TAILQ_REMOVE(&line->rpcs, rpc, line_node);
	if (!TAILQ_EMPTY(&client->waiting)) {
		client->has_room = true;
		vdi_h2_loop_wake(client->h2_loop);
	}
	if (line->is_left && line->count == 0)
		vdi_h2_connection_close(line->connection, (vd_dur) { 0 });
}

/* ---- Callbacks of the connection ---- */

static void on_ready(void *arg)
{
	struct vdi_h2_line    *line = arg;
	struct vdi_h2_channel *channel = line->channel;

	line->was_ready = true;
	channel->backoff = BACKOFF_FIRST;
	set_ready(channel, true, "");
	channel->client->has_room = true;
	vdi_h2_loop_wake(channel->client->h2_loop);
}

static void on_ended(void *arg, const char *why)
{
	struct vdi_h2_line    *line = arg;
	struct vdi_h2_channel *channel = line->channel;
	struct vdi_h2_client  *client = channel->client;
	struct vdi_h2_rpc     *rpc;
	bool		       was_current = channel->line == line;

	if (was_current) {
		channel->line = NULL;
		set_ready(channel, false, NULL);
	}
	while ((rpc = TAILQ_FIRST(&line->rpcs)) != NULL)
		vdi_h2_rpc_lost(rpc, why);
	if (was_current && !channel->is_retired) {
		if (line->was_ready)
			dial_later(channel);
		else
			dial_next(channel, why);
	}
	(void) vdi_h2_connection_free(line->connection); /* also frees the text that why points to */
	vdi_free(line);
	vdi_lock_acquire(&client->lock);
	vdi_h2_channel_unref_locked(channel);
	vdi_lock_release(&client->lock);
}

static struct vdi_h2_rpc *rpc_of(nghttp2_session *session, int32_t stream_id)
{
	return stream_id > 0 ? nghttp2_session_get_stream_user_data(session, stream_id) : NULL;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
	struct vdi_h2_line *line = vdi_h2_connection_arg_of(user_data);
	struct vdi_h2_rpc  *rpc = rpc_of(session, frame->hd.stream_id);
	bool		    is_last = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

	switch (frame->hd.type) {
	case NGHTTP2_GOAWAY: leave(line); break;
	case NGHTTP2_SETTINGS:
		line->channel->client->has_room = true; /* the peer may have changed its limit of streams */
		vdi_h2_loop_wake(line->channel->client->h2_loop);
		break;
	case NGHTTP2_HEADERS:
		if (rpc)
			vdi_h2_rpc_headers(rpc, is_last);
		break;
	case NGHTTP2_DATA:
		if (rpc && is_last)
			vdi_h2_rpc_finished(rpc);
		break;
	default: break;
	}
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
		     void *user_data)
{
	struct vdi_h2_rpc *rpc = rpc_of(session, frame->hd.stream_id);

	(void) flags;
	(void) user_data;
	if (rpc && frame->hd.type == NGHTTP2_HEADERS)
		vdi_h2_answer_note(&rpc->answer, (struct vd_bytes) { name, name_size },
				   (struct vd_bytes) { value, value_size });
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data,
		   size_t size, void *user_data)
{
	struct vdi_h2_rpc *rpc = rpc_of(session, stream_id);

	(void) flags;
	(void) user_data;
	if (rpc)
		vdi_h2_rpc_data(rpc, (struct vd_bytes) { data, size });
	return 0;
}

static int on_stream_closed(nghttp2_session *session, int32_t stream_id, uint32_t error_code, void *user_data)
{
	struct vdi_h2_rpc *rpc = rpc_of(session, stream_id);

	if (rpc && !vdi_h2_connection_is_over(user_data)) /* else on_ended reports the reason */
		vdi_h2_rpc_reset(rpc, error_code);
	return 0;
}

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
	struct vdi_h2_rpc *rpc;

	(void) user_data;
	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST &&
	    (rpc = rpc_of(session, frame->hd.stream_id)) != NULL)
		vdi_h2_rpc_opened(rpc);
	return 0;
}

static const struct vdi_h2_side client_side = {
	.ready = on_ready,
	.frame = on_frame,
	.header = on_header,
	.data = on_data,
	.stream_closed = on_stream_closed,
	.frame_sent = on_frame_sent,
	.ended = on_ended,
};
