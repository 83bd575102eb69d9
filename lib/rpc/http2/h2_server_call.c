/* One call of the server, from its first header to its end.
 *
 * Receiving: bytes are assembled into messages in the inbox; one is delivered per receive. Sending: the
 * service's messages wait in the call's queue, under its lock, until the loop takes them; then in the
 * outbox, from which nghttp2 takes as much as the peer's windows allow. send_bytes_max bounds both
 * together.
 *
 * A thread that has data for a call puts it into its loop's list of kicked calls and requests the end of a
 * iteration, once for many calls. On the loop's own thread that needs no system call. So everything that
 * one read or one commit of the store produced leaves a connection in one write.
 *
 * The end is nghttp2's report that the stream is closed: our status is sent and the client has half-closed
 * (else we reset the stream, which tells the client that its messages are not read), or the client reset
 * it, or the connection has ended. The memory is freed when the stream, the service and the list have
 * released it.
 */
#include <stdio.h>

#include "env.h"
#include "h2_server_state.h"

/* nghttp2's memory per stream, approximately */
#define STREAM_SIZE 512

static int  end_outbox(struct vdi_h2_outbox *outbox);
static void note_sent(struct vdi_h2_outbox *outbox, size_t size);
static void fire_deadline(struct vdi_h2_timer *timer);

/* ---- Memory ---- */

struct vdi_h2_server_call *vdi_h2_server_call_new(struct vdi_h2_server_connection *connection,
						  int32_t			   stream_id)
{
	struct vdi_h2_server_call *call = VDI_NEW(struct vdi_h2_server_call);
	struct vdi_h2_server	  *server = connection->loop->server;

	if (call == NULL)
		return NULL;
	call->base.ops = &vdi_h2_server_call_ops;
	call->server = server;
	call->loop = connection->loop;
	call->connection = connection;
	call->stream_id = stream_id;
	call->may_be_http = connection->is_tls && server->http;
	call->peer = connection->peer;
	atomic_fetch_add_explicit(&call->peer->references, 1, memory_order_relaxed);
	call->text = call->room;
	call->text_capacity = sizeof call->room;
	vdi_h2_inbox_init(&call->inbox, server->receive_size_max);
	vdi_h2_outbox_init(&call->outbox);
	call->outbox.end = end_outbox;
	call->outbox.sent = note_sent;
	call->deadline.fire = fire_deadline;
	call->queue_last = &call->queue;
	call->pins = 1;
	vdi_lock_init(&call->lock, VDI_LOCK_RPC_STREAM);
	call->next = connection->calls;
	if (call->next)
		call->next->previous = call;
	connection->calls = call;
	call->charged = sizeof *call + STREAM_SIZE;
	atomic_fetch_add_explicit(&server->memory_used, call->charged, memory_order_relaxed);
	return call;
}

static void drop_queue_locked(struct vdi_h2_server_call *call)
{
	while (call->queue) {
		struct vdi_h2_outgoing *outgoing = call->queue;

		call->queue = outgoing->next;
		(void) vdi_h2_outgoing_free(outgoing);
	}
	call->queue_last = &call->queue;
	call->queued_bytes = 0;
}

/* No pin is left. */
static void destroy(struct vdi_h2_server_call *call)
{
	struct vdi_h2_server *server = call->server;
	bool		      is_notified = call->is_notified;

	if (call->text != call->room)
		vdi_free(call->text);
	(void) vdi_h2_peer_unref(call->peer);
	vdi_lock_fini(&call->lock);
	vdi_free(call->message);
	vdi_free(call);
	if (is_notified)
		vdi_h2_server_drop_call(server);
}

/* Releases the lock. */
void vdi_h2_server_call_unpin_locked(struct vdi_h2_server_call *call)
{
	bool is_last = --call->pins == 0;

	vdi_lock_release(&call->lock);
	if (is_last)
		destroy(call);
}

/* Updates the memory charged for its unread bytes. False: more than the server's limit. */
static bool charge(struct vdi_h2_server_call *call)
{
	struct vdi_h2_server *server = call->server;
	size_t cost = sizeof *call + STREAM_SIZE + call->text_capacity + call->inbox.kept.capacity +
		      (call->inbox.bytes ? call->inbox.size : 0);
	size_t before;

	if (cost == call->charged)
		return true;
	if (cost < call->charged) {
		atomic_fetch_sub_explicit(&server->memory_used, call->charged - cost, memory_order_relaxed);
		call->charged = cost;
		return true;
	}
	before = atomic_fetch_add_explicit(&server->memory_used, cost - call->charged, memory_order_relaxed);
	before += cost - call->charged;
	call->charged = cost;
	return before <= server->memory_max;
}

/* ---- Sending, on the loop's thread ---- */

#define NAME_VALUE(name, value)                                                                              \
	{                                                                                                    \
		(uint8_t *) (name), (uint8_t *) (value), sizeof(name) - 1, sizeof(value) - 1,                \
			NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE                         \
	}

static const nghttp2_nv header_status = NAME_VALUE(":status", "200");
static const nghttp2_nv header_type = NAME_VALUE("content-type", "application/grpc");
static const nghttp2_nv trailer_ok = NAME_VALUE("grpc-status", "0");

/* Buffers for the trailers of one status. */
struct trailers {
	nghttp2_nv pairs[2];
	size_t	   count;
	char	   number[12];
	char	   text[3 * VDI_RPC_STATUS_SIZE_MAX];
};

/* nghttp2 copies all values except constants. */
static void make_trailers(const struct vdi_h2_server_call *call, struct trailers *trailers)
{
	trailers->pairs[0] = trailer_ok;
	trailers->count = 1;
	if (call->code != VDI_RPC_OK) {
		trailers->pairs[0].value = (uint8_t *) trailers->number;
		trailers->pairs[0].valuelen =
			(size_t) snprintf(trailers->number, sizeof trailers->number, "%d", call->code);
		trailers->pairs[0].flags = NGHTTP2_NV_FLAG_NO_COPY_NAME;
	}
	if (call->message) {
		nghttp2_nv *pair = &trailers->pairs[trailers->count++];

		pair->name = (uint8_t *) "grpc-message";
		pair->namelen = sizeof "grpc-message" - 1;
		pair->value = (uint8_t *) trailers->text;
		pair->valuelen = vdi_h2_status_encode(call->message, trailers->text, sizeof trailers->text);
		pair->flags = NGHTTP2_NV_FLAG_NO_COPY_NAME;
	}
}

static nghttp2_session *session_of(const struct vdi_h2_server_call *call)
{
	return vdi_h2_connection_session(call->connection->connection);
}

/* A stream for which nghttp2 has no memory is reset; if that fails too, the connection ends. */
static void reset(struct vdi_h2_server_call *call, uint32_t error_code)
{
	if (nghttp2_submit_rst_stream(session_of(call), NGHTTP2_FLAG_NONE, call->stream_id, error_code) != 0)
		vdi_h2_connection_abort(call->connection->connection, "out of memory");
}

static int end_outbox(struct vdi_h2_outbox *outbox)
{
	struct vdi_h2_server_call *call = VDI_CONTAINER_OF(outbox, struct vdi_h2_server_call, outbox);
	struct trailers		   trailers;

	make_trailers(call, &trailers);
	return nghttp2_submit_trailer(session_of(call), call->stream_id, trailers.pairs, trailers.count);
}

static void submit_headers(struct vdi_h2_server_call *call)
{
	nghttp2_data_provider provider = vdi_h2_outbox_provider(&call->outbox);
	nghttp2_nv	      pairs[4] = { header_status, header_type };
	size_t		      count = 2;
	bool		      is_all = call->outbox.is_ending && call->outbox.first == NULL;
	struct trailers	      trailers;
	char		      number[8];
	int		      failure;

	call->has_headers = true;
	if (call->http_status) {
		pairs[0].value = (uint8_t *) number;
		pairs[0].valuelen = (size_t) snprintf(number, sizeof number, "%u", call->http_status);
		pairs[0].flags = NGHTTP2_NV_FLAG_NO_COPY_NAME;
	}
	if (is_all) {
		make_trailers(call, &trailers);
		for (size_t i = 0; i < trailers.count; i++)
			pairs[count++] = trailers.pairs[i];
	}
	failure = nghttp2_submit_response(session_of(call), call->stream_id, pairs, count,
					  is_all ? NULL : &provider);
	if (failure)
		reset(call, NGHTTP2_INTERNAL_ERROR);
}

static bool is_among(const char *method, const char *const *methods, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(method, methods[i]) == 0)
			return true;
	return false;
}

static void fill_outbox_locked(struct vdi_h2_server_call *call)
{
	while (call->queue) {
		struct vdi_h2_outgoing *outgoing = call->queue;

		call->queue = outgoing->next;
		outgoing->next = NULL;
		call->outbox_bytes += outgoing->size;
		vdi_h2_outbox_push(&call->outbox, outgoing);
	}
	call->queue_last = &call->queue;
	call->queued_bytes = 0;
}

/* The outbox has more messages, or has got its last one. */
static void pump(struct vdi_h2_server_call *call)
{
	if (!call->has_headers) {
		if (call->outbox.first || call->outbox.is_ending)
			submit_headers(call);
	} else
		vdi_h2_outbox_resume(&call->outbox, session_of(call), call->stream_id);
	vdi_h2_connection_touch(call->connection->connection);
}

/* ---- On any thread ---- */

/* Puts the call into the loop's list. Wakes under the lock, so that the call, and with it the loop, still
 * exists. */
void vdi_h2_server_call_kick_locked(struct vdi_h2_server_call *call)
{
	struct vdi_h2_server_loop *loop = call->loop;
	bool			   was_empty;

	if (call->is_kicked)
		return;
	call->is_kicked = true;
	call->pins++;
	vdi_lock_acquire(&loop->lock);
	was_empty = loop->kicked == NULL;
	call->kicked_next = NULL;
	*loop->kicked_last = call;
	loop->kicked_last = &call->kicked_next;
	vdi_lock_release(&loop->lock);
	if (was_empty)
		vdi_h2_loop_wake(loop->h2_loop);
}

static bool is_writable_locked(const struct vdi_h2_server_call *call)
{
	return call->wants_writable && !call->is_closed && !call->is_finishing &&
	       call->queued_bytes + call->outbox_bytes <= call->server->send_bytes_max / 2;
}

/* Inside nghttp2, so the service is notified at the end of the iteration. */
static void note_sent(struct vdi_h2_outbox *outbox, size_t size)
{
	struct vdi_h2_server_call *call = VDI_CONTAINER_OF(outbox, struct vdi_h2_server_call, outbox);

	vdi_lock_acquire(&call->lock);
	VDI_CHECK(call->outbox_bytes >= size);
	call->outbox_bytes -= size;
	call->sent += size;
	if (is_writable_locked(call))
		vdi_h2_server_call_kick_locked(call);
	vdi_lock_release(&call->lock);
}

void vdi_h2_server_call_set_status_locked(struct vdi_h2_server_call *call, int code, const char *message)
{
	call->is_finishing = true;
	call->code = code;
	if (message && *message)
		call->message = vdi_strndup(
			message,
			VDI_MIN(strlen(message),
				VDI_RPC_STATUS_SIZE_MAX)); /* out of memory: the status has the code only */
}

void vdi_h2_server_call_finish_locked(struct vdi_h2_server_call *call, int code, const char *message)
{
	if (call->is_finishing)
		return;
	vdi_h2_server_call_set_status_locked(call, code, message);
	vdi_h2_server_call_kick_locked(call);
}

/* ---- Receiving, on the loop's thread ---- */

static void deliver_message(struct vdi_h2_server_call *call, struct vdi_rpc_message *message)
{
	bool is_notified;

	vdi_lock_acquire(&call->lock);
	is_notified = !call->is_closed && !call->is_expired;
	vdi_lock_release(&call->lock);
	atomic_store_explicit(&call->wants_message, false, memory_order_release);
	if (is_notified)
		call->server->handlers->message(call->arg, &call->base, message);
	else
		vdi_rpc_message_release(message);
}

/* Ends the call from our side: nothing more is read. */
static void fail(struct vdi_h2_server_call *call, int code, const char *message)
{
	vdi_h2_inbox_fini(&call->inbox);
	vdi_h2_inbox_init(&call->inbox, 0);
	vdi_lock_acquire(&call->lock);
	vdi_h2_server_call_finish_locked(call, code, message);
	vdi_lock_release(&call->lock);
}

static void fail_inbox(struct vdi_h2_server_call *call, vd_status status)
{
	char text[96];

	if (status == VD_TOO_BIG) {
		snprintf(text, sizeof text, "grpc: received message larger than max (%zu vs. %zu)",
			 call->inbox.size, call->server->receive_size_max);
		fail(call, VDI_RPC_RESOURCE_EXHAUSTED, text);
	} else if (status == VD_NOMEM)
		fail(call, VDI_RPC_RESOURCE_EXHAUSTED, "out of memory");
	else
		fail(call, VDI_RPC_INTERNAL, "grpc: compressed flag set with identity or empty encoding");
}

static bool reads_on(struct vdi_h2_server_call *call)
{
	bool reads;

	if (call->is_refused || !call->is_notified)
		return false;
	vdi_lock_acquire(&call->lock);
	reads = !call->is_finishing && !call->is_closed;
	vdi_lock_release(&call->lock);
	return reads;
}

static bool wants(const struct vdi_h2_server_call *call)
{
	return atomic_load_explicit(&call->wants_message, memory_order_acquire);
}

static void settle(struct vdi_h2_server_call *call)
{
	size_t size = vdi_h2_inbox_settle(&call->inbox);

	if (size && nghttp2_session_consume_stream(session_of(call), call->stream_id, size) != 0)
		vdi_h2_connection_abort(call->connection->connection, "out of memory");
}

static void deliver_half_close(struct vdi_h2_server_call *call)
{
	struct vdi_rpc_message none = { 0 };

	if (vdi_h2_inbox_is_torn(&call->inbox)) {
		fail(call, VDI_RPC_INTERNAL, "unexpected EOF");
		return;
	}
	call->is_half_close_delivered = true;
	deliver_message(call, &none);
}

/* Delivers kept messages while the service requests more. */
static void deliver_kept(struct vdi_h2_server_call *call)
{
	struct vdi_rpc_message message;
	vd_status	       status = VD_OK;

	if (call->is_delivering)
		return;
	call->is_delivering = true;
	while (status == VD_OK && wants(call) && reads_on(call)) {
		status = vdi_h2_inbox_next(&call->inbox, &message);
		if (status == VD_OK)
			deliver_message(call, &message);
		else if (status != VD_AGAIN)
			fail_inbox(call, status);
		else if (call->is_half_closed && !call->is_half_close_delivered)
			deliver_half_close(call);
	}
	call->is_delivering = false;
	settle(call);
	(void) charge(call);
}

void vdi_h2_server_call_data(struct vdi_h2_server_call *call, struct vd_bytes bytes)
{
	struct vdi_rpc_message message;
	vd_status	       status = VD_OK;
	size_t		       used;

	if (!reads_on(call)) {
		/* The call has a status, or will have one soon. */
		(void) nghttp2_session_consume_stream(session_of(call), call->stream_id, bytes.size);
		return;
	}
	while (bytes.size && status == VD_OK && reads_on(call)) {
		if (!wants(call) || vdi_h2_inbox_has_kept(&call->inbox)) {
			status = vdi_h2_inbox_keep(&call->inbox, bytes);
			bytes.size = 0;
			break;
		}
		status = vdi_h2_inbox_take(&call->inbox, bytes, &used, &message);
		if (status == VD_OK || status == VD_AGAIN)
			bytes = (struct vd_bytes) { (const char *) bytes.data + used, bytes.size - used };
		if (status == VD_OK)
			deliver_message(call, &message);
	}
	if (status != VD_OK && status != VD_AGAIN)
		fail_inbox(call, status);
	settle(call);
	if (!charge(call) && reads_on(call))
		fail_inbox(call, VD_NOMEM);
	if (wants(call) && vdi_h2_inbox_has_kept(&call->inbox))
		deliver_kept(call);
}

void vdi_h2_server_call_half_closed(struct vdi_h2_server_call *call)
{
	call->is_half_closed = true;
	if (wants(call) && reads_on(call))
		deliver_kept(call);
}

/* ---- Plain HTTP ---- */

/* Over TLS etcd's port answers requests that are not calls as it answers HTTP/1.x; without TLS it serves only
 * calls over HTTP/2. */
static bool is_plain_http(const struct vdi_h2_server_call *call)
{
	return call->may_be_http && !call->is_grpc && call->has_method && !call->loop->is_notified;
}

/* The request's body is not read, and of the service's handlers only http is called. */
static void begin_http(struct vdi_h2_server_call *call)
{
	const char *text = call->text + call->method_at;
	const char *mark = strchr(text, '?');
	size_t	    size = mark ? (size_t) (mark - text) : strlen(text);

	call->is_refused = true;
	call->pins++; /* for the request */
	if (vdi_h2_server_http_begin(call->loop, NULL, call, (enum vdi_http_method) call->http_method,
				     (struct vd_bytes) { text, size }, vd_bytes_of(mark ? mark + 1 : "")))
		return;
	call->pins--;
	reset(call, NGHTTP2_INTERNAL_ERROR);
}

void vdi_h2_server_call_answer(struct vdi_h2_server_call *call, const struct vdi_rpc_http *http)
{
	struct vdi_h2_server *server = call->server;
	size_t		      cost = http->body.size;

	if (call->connection) {
		call->outbox.end = NULL; /* no trailers */
		call->outbox.sent = NULL;
		call->outbox.is_ending = true;
		call->has_headers = true;
		call->charged += cost;
		if (atomic_fetch_add_explicit(&server->memory_used, cost, memory_order_relaxed) + cost >
			    server->memory_max ||
		    !vdi_h2_server_http_submit(call, http))
			reset(call, NGHTTP2_INTERNAL_ERROR);
		vdi_h2_connection_touch(call->connection->connection);
	}
	vdi_lock_acquire(&call->lock);
	vdi_h2_server_call_unpin_locked(call);
}

/* ---- Begin and end ---- */

static void end_refused(struct vdi_h2_server_call *call)
{
	call->outbox.is_ending = true;
	submit_headers(call);
}

static void check_begin(struct vdi_h2_server_call *call)
{
	if (call->is_refused)
		return;
	if (!call->has_content_type)
		vdi_h2_server_call_refuse(call, 415, VDI_RPC_INVALID_ARGUMENT,
					  "invalid gRPC request content-type \"\"");
	else if (!call->has_method)
		vdi_h2_server_call_refuse(call, 400, VDI_RPC_INTERNAL, "malformed method name: \"\"");
	else if (call->loop->is_notified)
		vdi_h2_server_call_refuse(call, 0, VDI_RPC_UNAVAILABLE, "the server is closing");
	else if (!charge(call) || atomic_load_explicit(&call->server->memory_used, memory_order_relaxed) >
					  call->server->memory_max)
		vdi_h2_server_call_refuse(call, 0, VDI_RPC_RESOURCE_EXHAUSTED, "out of memory");
}

void vdi_h2_server_call_begin(struct vdi_h2_server_call *call)
{
	struct vdi_h2_server *server = call->server;

	if (is_plain_http(call)) {
		begin_http(call);
		return;
	}
	check_begin(call);
	if (call->is_refused) {
		end_refused(call);
		return;
	}
	call->method = call->text + call->method_at;
	call->is_notified = true;
	call->pins++; /* for the service */
	atomic_fetch_add_explicit(&server->calls, 1, memory_order_relaxed);
	if (call->timeout.ns)
		vdi_h2_timer_set(call->loop->h2_loop, &call->deadline,
				 vd_mono_add(vd_env_now(server->env), call->timeout));
	if (is_among(call->method, server->stream_methods, server->stream_method_count))
		submit_headers(call); /* clients wait for these before they send */
	server->handlers->accepted(server->arg, &call->base, call->method);
}

void vdi_h2_server_call_left(struct vdi_h2_server_call *call)
{
	call->has_status_left = true;
	if (!call->is_half_closed)
		reset(call, NGHTTP2_NO_ERROR);
}

void vdi_h2_server_call_stream_closed(struct vdi_h2_server_call *call)
{
	struct vdi_h2_server_connection *connection = call->connection;
	bool				 is_cancelled = !call->has_status_left || call->is_expired;

	if (call->previous)
		call->previous->next = call->next;
	else
		connection->calls = call->next;
	if (call->next)
		call->next->previous = call->previous;
	call->connection = NULL;
	vdi_h2_timer_set(call->loop->h2_loop, &call->deadline, VD_NEVER);
	vdi_h2_inbox_fini(&call->inbox);
	vdi_h2_outbox_fini(&call->outbox);
	atomic_fetch_sub_explicit(&call->server->memory_used, call->charged, memory_order_relaxed);
	vdi_lock_acquire(&call->lock);
	call->is_closed = true;
	call->outbox_bytes = 0;
	drop_queue_locked(call);
	vdi_lock_release(&call->lock);
	if (call->is_notified)
		call->server->handlers->ended(call->arg, &call->base, is_cancelled);
	vdi_lock_acquire(&call->lock);
	vdi_h2_server_call_unpin_locked(call);
	vdi_h2_server_connection_rest(connection);
}

void vdi_h2_server_call_run(struct vdi_h2_server_call *call)
{
	bool is_writable;

	vdi_lock_acquire(&call->lock);
	call->is_kicked = false;
	if (call->connection == NULL) {
		vdi_h2_server_call_unpin_locked(call);
		return;
	}
	fill_outbox_locked(call);
	call->outbox.is_ending = call->is_finishing;
	is_writable = is_writable_locked(call);
	if (is_writable)
		call->wants_writable = false;
	vdi_lock_release(&call->lock);
	if (!call->is_cut)
		pump(call);
	if (is_writable)
		call->server->handlers->writable(call->arg, &call->base);
	if (wants(call) && reads_on(call))
		deliver_kept(call);
	vdi_lock_acquire(&call->lock);
	vdi_h2_server_call_unpin_locked(call);
}

/* Ends the call from our side, without the messages that have not begun to be sent. False: it already has a
 * status. */
static bool cut_short(struct vdi_h2_server_call *call, int code, const char *message)
{
	bool was_finishing;

	vdi_lock_acquire(&call->lock);
	was_finishing = call->is_finishing;
	if (!was_finishing) {
		vdi_h2_server_call_set_status_locked(call, code, message);
		drop_queue_locked(call);
		vdi_h2_outbox_cut(&call->outbox);
		call->outbox_bytes = call->outbox.size;
	}
	vdi_lock_release(&call->lock);
	if (was_finishing)
		return false;
	call->outbox.is_ending = true;
	pump(call);
	return true;
}

static void fire_deadline(struct vdi_h2_timer *timer)
{
	struct vdi_h2_server_call *call = VDI_CONTAINER_OF(timer, struct vdi_h2_server_call, deadline);
	bool			   is_stuck = call->outbox.first_used > 0;

	call->is_expired = true;
	if (call->is_cut)
		return;
	if (cut_short(call, VDI_RPC_DEADLINE_EXCEEDED, "context deadline exceeded") && !is_stuck)
		return;
	/* The client does not read what is available, and its own deadline has passed too. */
	reset(call, NGHTTP2_CANCEL);
	vdi_h2_connection_touch(call->connection->connection);
}

/* Bytes that show progress of a client, however slow, over consecutive checks. */
#define GETS_ON ((uint64_t) 64 << 10)

bool vdi_h2_server_call_check_progress(struct vdi_h2_server_call *call, bool has_room)
{
	bool is_waiting;

	vdi_lock_acquire(&call->lock);
	call->waiting_then = call->queued_bytes + call->outbox_bytes;
	is_waiting = is_writable_locked(call);
	if (is_waiting && has_room)
		vdi_h2_server_call_kick_locked(call);
	vdi_lock_release(&call->lock);
	if (call->waiting_then == 0 || call->sent - call->sent_then >= GETS_ON) {
		call->sent_then = call->sent;
		call->stalled_checks = 0;
	} else
		call->stalled_checks++;
	return is_waiting;
}

void vdi_h2_server_call_cut(struct vdi_h2_server_call *call)
{
	call->is_cut = true;
	call->waiting_then = 0;
	vdi_lock_acquire(&call->lock);
	if (!call->is_finishing)
		vdi_h2_server_call_set_status_locked(call, VDI_RPC_RESOURCE_EXHAUSTED, NULL);
	drop_queue_locked(call);
	call->outbox_bytes = 0;
	vdi_lock_release(&call->lock);
	vdi_h2_outbox_fini(&call->outbox); /* between frames nghttp2 has no reference to it */
	reset(call, NGHTTP2_ENHANCE_YOUR_CALM);
	vdi_h2_connection_touch(call->connection->connection);
}

void vdi_h2_server_call_shut_down(struct vdi_h2_server_call *call)
{
	if (call->is_notified)
		(void) cut_short(call, VDI_RPC_UNAVAILABLE, "the server is closing");
}
