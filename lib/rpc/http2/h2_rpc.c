/* Calls and streams: a call is a stream with one message in each direction.
 *
 * Waiting is done here: an rpc is given to a connection only when that is ready and has room, so `unsent` is
 * known: its headers were never passed to a connection, or the peer reports that it did not process them
 * (REFUSED_STREAM, or GOAWAY with a lower stream). An unsent call waits again, as a whole: its written bytes
 * are retained until the peer's first header. A stream waits again only if it was never opened, because its
 * owner was told its endpoint.
 *
 * If two threads stop an rpc, the first decides how it ends, unless its result was already there. The loop's
 * thread reports the end, never under a lock; a later post finds is_ended set. From then on nghttp2 does not
 * use the rpc: the stream has no user data, and the RST_STREAM is sent before anything that would read from
 * the outbox.
 */
#include <stdio.h>

#include "h2_client_state.h"
#include <vedette/vedette.h>

/* Limits the work if a connection is ready but refuses each call. */
#define ATTEMPTS_MAX 5
#define HEADERS_OWN 9
#define ATTENDED_MAX 1000 /* per iteration */
#define USER_AGENT "vedette/" VD_VERSION

static void deliver_kept(struct vdi_h2_rpc *rpc);

/* ---- Posting, on any thread ---- */

void vdi_h2_rpc_post_locked(struct vdi_h2_rpc *rpc)
{
	struct vdi_h2_client *client = rpc->client;

	if (rpc->is_posted || rpc->is_ended)
		return;
	rpc->is_posted = true;
	TAILQ_INSERT_TAIL(&client->posted, rpc, posted_node);
	vdi_h2_loop_wake(client->h2_loop); /* under the lock, so that the client is not freed before */
}

void vdi_h2_rpc_stop_locked(struct vdi_h2_rpc *rpc, enum vdi_h2_decision decision)
{
	if (rpc->decision != VDI_H2_UNDECIDED)
		return;
	rpc->decision = decision;
	vdi_h2_rpc_post_locked(rpc);
}

void vdi_h2_rpc_stop(struct vdi_h2_rpc *rpc, enum vdi_h2_decision decision, size_t too_big_size)
{
	vdi_lock_acquire(&rpc->client->lock);
	if (rpc->decision == VDI_H2_UNDECIDED)
		rpc->too_big_size = too_big_size;
	vdi_h2_rpc_stop_locked(rpc, decision);
	vdi_lock_release(&rpc->client->lock);
}

/* ---- Ends ---- */

void vdi_h2_rpc_free(struct vdi_h2_rpc *rpc)
{
	vdi_h2_outbox_fini(&rpc->outbox);
	vdi_h2_inbox_fini(&rpc->inbox);
	vdi_h2_answer_fini(&rpc->answer);
	vdi_free(rpc->pairs.list);
	vdi_free(rpc);
}

static void free_sent(struct vdi_h2_outgoing *sent)
{
	while (sent) {
		struct vdi_h2_outgoing *next = sent->next;

		(void) vdi_h2_outgoing_free(sent);
		sent = next;
	}
}

/* Removes the rpc from nghttp2, and informs the peer if needed: with NGHTTP2_NO_ERROR the peer has ended its
 * side, and no frame is needed if we have, too. */
static void leave_line(struct vdi_h2_rpc *rpc, uint32_t error_code)
{
	struct vdi_h2_line *line = rpc->line;
	nghttp2_session	   *session;

	if (line == NULL)
		return;
	session = vdi_h2_connection_session(line->connection);
	if (!vdi_h2_connection_is_over(line->connection)) {
		(void) nghttp2_session_set_stream_user_data(session, rpc->stream_id, NULL);
		if ((error_code != NGHTTP2_NO_ERROR ||
		     nghttp2_session_get_stream_local_close(session, rpc->stream_id) != 1) &&
		    nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, rpc->stream_id, error_code) != 0)
			vdi_h2_connection_abort(line->connection,
						"out of memory"); /* it would read from freed memory */
		if (nghttp2_session_want_write(session))
			vdi_h2_connection_touch(line->connection);
	}
	vdi_h2_line_remove(line, rpc);
}

static void report_end(struct vdi_h2_rpc *rpc, const struct vdi_rpc_end *end)
{
	struct vdi_rpc_message message = { 0 };

	if (rpc->is_stream) {
		rpc->handlers->ended(rpc->arg, end);
		return;
	}
	if (end->code == VDI_RPC_OK)
		message = rpc->message;
	else if (rpc->has_message)
		vdi_rpc_message_release(&rpc->message);
	rpc->has_message = false;
	rpc->done(rpc->arg, end, &message);
}

/* Reports the end and frees the rpc, which has left its line and is not waiting. */
static void end(struct vdi_h2_rpc *rpc, const struct vdi_rpc_end *how)
{
	struct vdi_h2_client   *client = rpc->client;
	struct vdi_h2_outgoing *sent;
	bool			is_mine;

	VDI_CHECK(rpc->line == NULL && rpc->place != VDI_H2_ENDED);
	rpc->place = VDI_H2_ENDED;
	vdi_h2_timer_set(client->h2_loop, &rpc->timer, VD_NEVER);
	vdi_lock_acquire(&client->lock);
	rpc->is_ended = true;
	if (rpc->is_posted)
		TAILQ_REMOVE(&client->posted, rpc, posted_node);
	rpc->is_posted = false;
	sent = rpc->sent;
	rpc->sent = NULL;
	vdi_lock_release(&client->lock);
	free_sent(sent);
	report_end(rpc, how);
	vdi_lock_acquire(&client->lock);
	if (rpc->channel)
		vdi_h2_channel_unref_locked(rpc->channel);
	if (rpc->only)
		vdi_h2_channel_unref_locked(rpc->only);
	TAILQ_REMOVE(&client->live, rpc, live_node);
	rpc->is_gone = true;
	is_mine = !rpc->is_stream || rpc->is_freed;
	if (client->is_closing)
		vdi_h2_loop_wake(client->h2_loop);
	vdi_lock_release(&client->lock);
	if (is_mine)
		vdi_h2_rpc_free(rpc);
}

static void end_with(struct vdi_h2_rpc *rpc, int code, const char *words, bool is_unsent, bool is_local)
{
	struct vdi_rpc_end how = { .code = code,
				   .message = words,
				   .unsent = is_unsent,
				   .local = is_local,
				   .endpoint = rpc->channel && (!is_unsent || rpc->was_notified) ?
						       rpc->channel->name :
						       "" };

	end(rpc, &how);
}

static void stop_waiting(struct vdi_h2_rpc *rpc)
{
	if (rpc->place == VDI_H2_WAITING)
		TAILQ_REMOVE(&rpc->client->waiting, rpc, waiting_node);
}

/* Ends the rpc by this side, in any place but ENDED. */
static void end_by(struct vdi_h2_rpc *rpc, enum vdi_h2_decision decision)
{
	bool is_unsent = !rpc->was_opened;
	bool was_running = rpc->place == VDI_H2_RUNNING || rpc->place == VDI_H2_DRAINING;
	char room[1024];

	stop_waiting(rpc);
	leave_line(rpc, NGHTTP2_CANCEL);
	switch (decision) {
	case VDI_H2_UNDECIDED:
	case VDI_H2_CANCELED: end_with(rpc, VDI_RPC_CANCELED, "context canceled", is_unsent, true); break;
	case VDI_H2_TIMEOUT:
		(void) snprintf(room, sizeof room, "context deadline exceeded");
		if (!was_running)
			vdi_h2_client_describe_unready(rpc->client, rpc->only, room, sizeof room);
		end_with(rpc, VDI_RPC_DEADLINE_EXCEEDED, room, is_unsent, true);
		break;
	case VDI_H2_CLOSED:
		end_with(rpc, VDI_RPC_CANCELED, "grpc: the client connection is closing", is_unsent, true);
		break;
	case VDI_H2_REMOVED:
		end_with(rpc, VDI_RPC_UNAVAILABLE, "the endpoint was removed", is_unsent, false);
		break;
	case VDI_H2_TOO_BIG:
		(void) snprintf(room, sizeof room, "trying to send message larger than max (%zu vs. %zu)",
				rpc->too_big_size, rpc->client->send_size_max);
		end_with(rpc, VDI_RPC_RESOURCE_EXHAUSTED, room, is_unsent, true);
		break;
	case VDI_H2_NO_MEMORY:
		end_with(rpc, VDI_RPC_RESOURCE_EXHAUSTED, "out of memory", is_unsent, true);
		break;
	}
}

static void on_deadline(struct vdi_h2_timer *timer)
{
	end_by(VDI_CONTAINER_OF(timer, struct vdi_h2_rpc, timer), VDI_H2_TIMEOUT);
}

/* Ends the rpc with the peer's status; the stream is closed on the peer's side. The deadline may have passed
 * there first. */
static void end_by_peer(struct vdi_h2_rpc *rpc, int code, const char *words)
{
	bool is_late =
		code == VDI_RPC_DEADLINE_EXCEEDED && vd_env_now(rpc->client->env).ns >= rpc->deadline.ns;

	leave_line(rpc, NGHTTP2_NO_ERROR);
	end_with(rpc, code, is_late ? "context deadline exceeded" : words, false, is_late);
}

/* The peer violated the gRPC protocol. */
static void end_badly(struct vdi_h2_rpc *rpc, int code, const char *words)
{
	leave_line(rpc, NGHTTP2_CANCEL);
	end_with(rpc, code, words, false, false);
}

/* ---- Starting; from here on: the loop's thread ---- */

static nghttp2_nv pair_of(const char *name, const char *value)
{
	return (nghttp2_nv) { .name = (uint8_t *) (uintptr_t) name,
			      .value = (uint8_t *) (uintptr_t) value,
			      .namelen = strlen(name),
			      .valuelen = strlen(value) };
}

static int32_t submit_headers(struct vdi_h2_rpc *rpc, struct vdi_h2_line *line)
{
	nghttp2_data_provider provider = vdi_h2_outbox_provider(&rpc->outbox);
	nghttp2_nv	      few[HEADERS_OWN + 7];
	nghttp2_nv	     *pairs = few;
	size_t		      count = 0;
	char		      timeout[VDI_H2_TIMEOUT_SIZE];
	int32_t		      id;

	if (rpc->pairs.count > VDI_ARRAY_SIZE(few) - HEADERS_OWN) {
		pairs = vdi_calloc(rpc->pairs.count + HEADERS_OWN, sizeof pairs[0]);
		if (pairs == NULL)
			return NGHTTP2_ERR_NOMEM;
	}
	pairs[count++] = pair_of(":method", "POST");
	pairs[count++] = pair_of(":scheme", rpc->client->has_tls ? "https" : "http");
	pairs[count++] = pair_of(":path", rpc->method);
	pairs[count++] = pair_of(":authority", rpc->channel->authority);
	pairs[count++] = pair_of("te", "trailers");
	pairs[count++] = pair_of("content-type", "application/grpc");
	pairs[count++] = pair_of("user-agent", USER_AGENT);
	if (rpc->deadline.ns != VD_NEVER.ns) {
		vdi_h2_timeout_text(vd_mono_since(rpc->deadline, vd_env_now(rpc->client->env)), timeout);
		pairs[count] = pair_of("grpc-timeout", timeout);
		pairs[count++].flags = NGHTTP2_NV_FLAG_NO_INDEX; /* has another value each time */
	}
	if (rpc->pairs.count)
		memcpy(pairs + count, rpc->pairs.list, rpc->pairs.count * sizeof pairs[0]);
	count += rpc->pairs.count;
	id = nghttp2_submit_request(vdi_h2_connection_session(line->connection), NULL, pairs, count,
				    &provider, rpc);
	if (pairs != few)
		vdi_free(pairs);
	return id;
}

static void start(struct vdi_h2_rpc *rpc, struct vdi_h2_line *line)
{
	struct vdi_h2_client *client = rpc->client;
	int32_t		      id;

	vdi_lock_acquire(&client->lock);
	line->channel->references++;
	vdi_lock_release(&client->lock);
	rpc->channel = line->channel;
	id = submit_headers(rpc, line);
	/* after some 10^9 calls: the next connection takes it */
	if (id == NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE)
		vdi_h2_connection_abort(line->connection, "no stream identifiers are left");
	if (id < 0) {
		end_with(rpc,
			 id == NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE ? VDI_RPC_UNAVAILABLE :
								     VDI_RPC_RESOURCE_EXHAUSTED,
			 id == NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE ? "no stream identifiers are left" :
								     "out of memory",
			 true, id != NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE);
		return;
	}
	rpc->stream_id = id;
	rpc->place = VDI_H2_RUNNING;
	vdi_h2_line_add(line, rpc);
}

static struct vdi_h2_line *pick(struct vdi_h2_client *client, const struct vdi_h2_rpc *rpc)
{
	if (rpc->only)
		return vdi_h2_channel_line(rpc->only);
	vdi_lock_acquire(&client->lock);
	for (size_t i = 0; i < client->channel_count; i++) {
		size_t		    at = (client->channel_next + i) % client->channel_count;
		struct vdi_h2_line *line = vdi_h2_channel_line(client->channels[at]);

		if (line) {
			client->channel_next = (at + 1) % client->channel_count;
			vdi_lock_release(&client->lock);
			return line;
		}
	}
	vdi_lock_release(&client->lock);
	return NULL;
}

static void start_or_wait(struct vdi_h2_rpc *rpc)
{
	struct vdi_h2_line *line = pick(rpc->client, rpc);

	if (line) {
		start(rpc, line);
		return;
	}
	rpc->place = VDI_H2_WAITING;
	TAILQ_INSERT_TAIL(&rpc->client->waiting, rpc, waiting_node);
}

static void begin(struct vdi_h2_rpc *rpc)
{
	bool is_removed;

	vdi_lock_acquire(&rpc->client->lock);
	is_removed = rpc->only && rpc->only->is_removed;
	vdi_lock_release(&rpc->client->lock);
	if (is_removed) {
		end_by(rpc, VDI_H2_REMOVED);
		return;
	}
	rpc->timer.fire = on_deadline;
	vdi_h2_timer_set(rpc->client->h2_loop, &rpc->timer, rpc->deadline);
	start_or_wait(rpc);
}

void vdi_h2_rpc_start_waiting(struct vdi_h2_client *client)
{
	struct vdi_h2_rpc *rpc, *next;
	bool		   is_full = false; /* no endpoint has room (for rpcs that accept any) */

	if (!client->has_room)
		return;
	client->has_room = false;
	for (rpc = TAILQ_FIRST(&client->waiting); rpc; rpc = next) {
		struct vdi_h2_line *line = is_full && rpc->only == NULL ? NULL : pick(client, rpc);

		next = TAILQ_NEXT(rpc, waiting_node);
		is_full |= line == NULL && rpc->only == NULL;
		if (line) {
			stop_waiting(rpc);
			start(rpc, line);
		}
	}
}

static void attend(struct vdi_h2_rpc *rpc)
{
	struct vdi_h2_client   *client = rpc->client;
	struct vdi_h2_outgoing *sent, *next;
	enum vdi_h2_decision	decision;
	bool			is_over;

	vdi_lock_acquire(&client->lock);
	decision = rpc->decision;
	sent = rpc->sent;
	rpc->sent = NULL;
	rpc->sent_last = &rpc->sent;
	is_over = rpc->wants_half_close;
	vdi_lock_release(&client->lock);
	if (decision != VDI_H2_UNDECIDED) {
		free_sent(sent);
		end_by(rpc, decision);
		return;
	}
	rpc->outbox.is_ending |= is_over;
	for (is_over = rpc->outbox.is_ending; sent; sent = next, is_over = true) {
		next = sent->next;
		vdi_h2_outbox_push(&rpc->outbox, sent);
	}
	if (rpc->place == VDI_H2_POSTED) {
		begin(rpc);
		return;
	}
	if (rpc->line && is_over) {
		vdi_h2_outbox_resume(&rpc->outbox, vdi_h2_connection_session(rpc->line->connection),
				     rpc->stream_id);
		vdi_h2_connection_touch(rpc->line->connection);
	}
	if (atomic_load_explicit(&rpc->wants_message, memory_order_acquire))
		deliver_kept(rpc);
}

void vdi_h2_rpc_attend_posted(struct vdi_h2_client *client)
{
	struct vdi_h2_rpc *rpc = NULL;
	unsigned	   left = ATTENDED_MAX;

	do {
		vdi_lock_acquire(&client->lock);
		rpc = TAILQ_FIRST(&client->posted);
		if (rpc && left == 0) {
			vdi_h2_loop_wake(client->h2_loop); /* after polling the sockets */
			rpc = NULL;
		} else if (rpc) {
			TAILQ_REMOVE(&client->posted, rpc, posted_node);
			rpc->is_posted = false;
			left--;
		}
		vdi_lock_release(&client->lock);
		if (rpc)
			attend(rpc);
	} while (rpc);
}

/* ---- Responses ---- */

static void end_with_answer(struct vdi_h2_rpc *rpc)
{
	char	    room[256];
	const char *words;
	int	    code = vdi_h2_answer_end(&rpc->answer, room, sizeof room, &words);

	if (code == VDI_RPC_OK && vdi_h2_inbox_is_torn(&rpc->inbox)) {
		code = VDI_RPC_INTERNAL;
		words = "the stream ended inside a message";
	} else if (code == VDI_RPC_OK && !rpc->is_stream && !rpc->has_message) {
		code = VDI_RPC_INTERNAL;
		words = "cardinality violation: received no response message from non-server-streaming RPC";
	}
	end_by_peer(rpc, code, code == VDI_RPC_OK ? "" : words);
}

static void break_message(struct vdi_h2_rpc *rpc, vd_status status)
{
	char room[200];

	switch (status) {
	case VD_TOO_BIG:
		(void) snprintf(room, sizeof room, "grpc: received message larger than max (%zu vs. %zu)",
				rpc->inbox.size, rpc->client->receive_size_max);
		end_badly(rpc, VDI_RPC_RESOURCE_EXHAUSTED, room);
		break;
	case VD_BAD_REQUEST:
		if (rpc->answer.is_encoded)
			end_badly(rpc, VDI_RPC_UNIMPLEMENTED,
				  "grpc: a message is compressed in a way that was not offered");
		else
			end_badly(rpc, VDI_RPC_INTERNAL,
				  "grpc: compressed flag set with identity or empty encoding");
		break;
	default: end_by(rpc, VDI_H2_NO_MEMORY); break;
	}
}

/* Delivers one message; false: the rpc has ended and may be freed. */
static bool deliver(struct vdi_h2_rpc *rpc, struct vdi_rpc_message *message)
{
	if (!rpc->is_stream) {
		if (rpc->has_message) {
			vdi_rpc_message_release(message);
			end_badly(rpc, VDI_RPC_INTERNAL,
				  "cardinality violation: expected <EOF> for non server-streaming RPCs, but "
				  "received another message");
			return false;
		}
		rpc->message = *message;
		rpc->has_message = true;
		return true;
	}
	atomic_store_explicit(&rpc->wants_message, false, memory_order_relaxed);
	rpc->is_delivering = true;
	rpc->handlers->message(rpc->arg, message);
	rpc->is_delivering = false;
	return true;
}

static bool wants(const struct vdi_h2_rpc *rpc)
{
	return !rpc->is_stream || atomic_load_explicit(&rpc->wants_message, memory_order_acquire);
}

static void give_window_back(struct vdi_h2_rpc *rpc)
{
	size_t size = vdi_h2_inbox_settle(&rpc->inbox);

	if (rpc->line == NULL || size == 0)
		return;
	if (nghttp2_session_consume_stream(vdi_h2_connection_session(rpc->line->connection), rpc->stream_id,
					   size) != 0)
		vdi_h2_connection_abort(rpc->line->connection, "out of memory");
}

static void deliver_kept(struct vdi_h2_rpc *rpc)
{
	struct vdi_rpc_message message;

	while (vdi_h2_inbox_has_kept(&rpc->inbox) && wants(rpc)) {
		vd_status status = vdi_h2_inbox_next(&rpc->inbox, &message);

		if (status == VD_AGAIN)
			break;
		if (status != VD_OK) {
			break_message(rpc, status);
			return;
		}
		if (!deliver(rpc, &message))
			return;
	}
	give_window_back(rpc);
	if (rpc->line && nghttp2_session_want_write(vdi_h2_connection_session(rpc->line->connection)))
		vdi_h2_connection_touch(rpc->line->connection);
	if (rpc->place == VDI_H2_DRAINING && !vdi_h2_inbox_has_kept(&rpc->inbox))
		end_with_answer(rpc);
}

void vdi_h2_rpc_data(struct vdi_h2_rpc *rpc, struct vd_bytes bytes)
{
	struct vdi_rpc_message message;

	while (bytes.size && wants(rpc) && !vdi_h2_inbox_has_kept(&rpc->inbox)) {
		size_t	  used;
		vd_status status = vdi_h2_inbox_take(&rpc->inbox, bytes, &used, &message);

		bytes = (struct vd_bytes) { (const char *) bytes.data + used, bytes.size - used };
		if (status == VD_AGAIN)
			break;
		if (status != VD_OK) {
			break_message(rpc, status);
			return;
		}
		if (!deliver(rpc, &message))
			return;
	}
	if (bytes.size && vdi_h2_inbox_keep(&rpc->inbox, bytes) != VD_OK) {
		end_by(rpc, VDI_H2_NO_MEMORY);
		return;
	}
	give_window_back(rpc);
}

static void notify_opened(struct vdi_h2_rpc *rpc)
{
	if (rpc->was_notified || !rpc->is_stream)
		return;
	rpc->was_notified = true;
	if (rpc->handlers->opened)
		rpc->handlers->opened(rpc->arg, rpc->channel->name);
}

void vdi_h2_rpc_opened(struct vdi_h2_rpc *rpc)
{
	rpc->was_opened = true;
	notify_opened(rpc);
}

void vdi_h2_rpc_headers(struct vdi_h2_rpc *rpc, bool is_last)
{
	char	    room[256];
	const char *words;
	int	    code;

	vdi_h2_outbox_forget(&rpc->outbox);
	if (is_last) {
		vdi_h2_rpc_finished(rpc);
		return;
	}
	if (rpc->answer.http_status >= 100 && rpc->answer.http_status < 200) {
		vdi_h2_answer_fini(&rpc->answer); /* further headers follow */
		return;
	}
	code = vdi_h2_answer_check(&rpc->answer, room, sizeof room, &words);
	if (code != VDI_RPC_OK)
		end_badly(rpc, code, words);
}

/* Messages not yet taken are delivered before the end, unless it is an error. Another thread may already have
 * requested one, with a post that is not yet handled. */
void vdi_h2_rpc_finished(struct vdi_h2_rpc *rpc)
{
	if (rpc->answer.has_status && rpc->answer.status == VDI_RPC_OK &&
	    vdi_h2_inbox_has_kept(&rpc->inbox)) {
		leave_line(rpc, NGHTTP2_NO_ERROR);
		rpc->place = VDI_H2_DRAINING;
		deliver_kept(rpc);
	} else
		end_with_answer(rpc);
}

/* The peer certainly did not process it. */
static void wait_again(struct vdi_h2_rpc *rpc, const char *words)
{
	struct vdi_h2_client *client = rpc->client;
	bool		      again;

	rpc->was_opened = false;
	vdi_lock_acquire(&client->lock);
	again = rpc->decision == VDI_H2_UNDECIDED && !client->is_closing &&
		!(rpc->only && rpc->only->is_removed) && !rpc->was_notified &&
		++rpc->attempts < ATTEMPTS_MAX && (rpc->outbox.retains || rpc->outbox.written == NULL);
	if (again) {
		vdi_h2_channel_unref_locked(rpc->channel);
		rpc->channel = NULL;
	}
	vdi_lock_release(&client->lock);
	if (!again) {
		end_with(rpc, VDI_RPC_UNAVAILABLE, words, true, false);
		return;
	}
	vdi_h2_outbox_rewind(&rpc->outbox);
	vdi_h2_answer_fini(&rpc->answer);
	rpc->place = VDI_H2_WAITING;
	TAILQ_INSERT_TAIL(&client->waiting, rpc, waiting_node);
	client->has_room = true;
	vdi_h2_loop_wake(client->h2_loop);
}

void vdi_h2_rpc_reset(struct vdi_h2_rpc *rpc, uint32_t error_code)
{
	char words[200];
	int  code = vdi_h2_reset_end(error_code, words, sizeof words);
	bool is_refused = error_code == NGHTTP2_REFUSED_STREAM && rpc->answer.http_status == 0;
	bool is_unsent = is_refused || !rpc->was_opened;

	vdi_h2_line_remove(rpc->line, rpc); /* nghttp2 has closed the stream */
	/* A status in incomplete trailers does not count. */
	if (is_unsent)
		wait_again(rpc, words);
	else
		end_with(rpc, code, words, false, false);
}

void vdi_h2_rpc_lost(struct vdi_h2_rpc *rpc, const char *why)
{
	char words[300];

	(void) snprintf(words, sizeof words, "%s", why[0] ? why : "the connection was closed");
	vdi_h2_line_remove(rpc->line, rpc);
	if (rpc->was_opened)
		end_with(rpc, VDI_RPC_UNAVAILABLE, words, false, false);
	else
		wait_again(rpc, words);
}
