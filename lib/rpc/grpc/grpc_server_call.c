/* One call of the server, from its arrival to its end.
 *
 * There are three kinds of batches, each with its tag and at most one outstanding: receiving; sending (our
 * metadata, one message, the status: those that are available go in one batch); and waiting for core's close
 * event. That event is the only reliable end: client gone, deadline, or our status delivered. When it has
 * arrived and no tag is outstanding, the service is notified.
 *
 * A call of a frequent unary method arrives with its request, and requests the close event together with the
 * response: one batch and two events in all, where other calls have three and four.
 *
 * Sending: core has one message at a time, the others wait in the call's queue. All but the last have core's
 * buffer hint, so many small messages become few writes.
 *
 * Batches are started on the accept queue's own thread. Another thread that has data to send puts the call
 * into the accept queue's list and wakes the accept queue, once for many calls. With core, two threads on one
 * connection are slow: a thread that finds the other inside leaves its work to a third one, of core's
 * executor, and each completion that appears elsewhere wakes the thread that sleeps in the queue.
 * docs/decisions/batches-on-one-thread.md.
 */
#include <stdio.h>

#include <grpc/support/alloc.h>

#include "grpc_server_state.h"

static void run_accept(struct vdi_grpc_tag *tag, bool success);
static void run_receive(struct vdi_grpc_tag *tag, bool success);
static void run_send(struct vdi_grpc_tag *tag, bool success);
static void run_close(struct vdi_grpc_tag *tag, bool success);

static void init_call(struct vdi_grpc_server_call *call, struct vdi_grpc_server *server)
{
	*call = (struct vdi_grpc_server_call) { .base = { &vdi_grpc_server_call_ops }, .server = server };
	call->method_index = SIZE_MAX;
	call->unary_index = SIZE_MAX;
	call->queue_last = &call->queue;
	call->accept_tag.run = run_accept;
	call->receive_tag.run = run_receive;
	call->send_tag.run = run_send;
	call->close_tag.run = run_close;
	vdi_lock_init(&call->lock, VDI_LOCK_RPC_STREAM);
	grpc_call_details_init(&call->details);
	grpc_metadata_array_init(&call->metadata);
}

vd_status vdi_grpc_server_call_new(struct vdi_grpc_server *server, struct vdi_grpc_server_call **ret_call)
{
	struct vdi_grpc_server_call *call = VDI_NEW(struct vdi_grpc_server_call);

	if (call == NULL)
		return VD_NOMEM;
	init_call(call, server);
	*ret_call = call;
	return VD_OK;
}

static void fini_call(struct vdi_grpc_server_call *call)
{
	if (call->core)
		grpc_call_unref(call->core);
	grpc_byte_buffer_destroy(call->payload);
	grpc_call_details_destroy(&call->details);
	grpc_metadata_array_destroy(&call->metadata);
	vdi_lock_fini(&call->lock);
	vdi_free(call->method_copy);
	vdi_free(call->message);
	vdi_free(call->peer);
	vdi_free(call->common_name);
}

void vdi_grpc_server_call_destroy(struct vdi_grpc_server_call *call)
{
	fini_call(call);
	vdi_free(call);
}

/* ---- Batches ---- */

static void start_locked(struct vdi_grpc_server_call *call, const grpc_op *ops, size_t count,
			 struct vdi_grpc_tag *tag)
{
	grpc_call_error error;

	call->tags++;
	vdi_grpc_tag_hand(tag);
	error = grpc_call_start_batch(call->core, ops, count, tag, NULL);
	VDI_CHECK(error == GRPC_CALL_OK);
}

static void free_outgoing(struct vdi_grpc_outgoing *outgoing)
{
	vdi_rpc_blob_unref(outgoing->blob);
	vdi_free(outgoing);
}

static void drop_queue_locked(struct vdi_grpc_server_call *call)
{
	while (call->queue) {
		struct vdi_grpc_outgoing *outgoing = call->queue;

		call->queue = outgoing->next;
		free_outgoing(outgoing);
	}
	call->queue_last = &call->queue;
	call->queued_bytes = call->sending_bytes;
}

static size_t outgoing_size(const struct vdi_grpc_outgoing *outgoing)
{
	return outgoing->head_size + vdi_rpc_blob_size(outgoing->blob);
}

static struct vdi_grpc_outgoing *take_outgoing_locked(struct vdi_grpc_server_call *call)
{
	struct vdi_grpc_outgoing *outgoing = call->queue;

	if (outgoing) {
		call->queue = outgoing->next;
		if (call->queue == NULL)
			call->queue_last = &call->queue;
	}
	return outgoing;
}

static grpc_op close_op_locked(struct vdi_grpc_server_call *call)
{
	grpc_op op = { .op = GRPC_OP_RECV_CLOSE_ON_SERVER };

	call->awaits_close = true;
	op.data.recv_close_on_server.cancelled = &call->close_cancelled;
	return op;
}

static void await_close_locked(struct vdi_grpc_server_call *call)
{
	grpc_op op = close_op_locked(call);

	start_locked(call, &op, 1, &call->close_tag);
}

static void send_next_locked(struct vdi_grpc_server_call *call)
{
	grpc_op			  ops[4] = { 0 };
	size_t			  count = 0;
	struct vdi_grpc_outgoing *outgoing;
	grpc_byte_buffer	 *buffer = NULL;
	grpc_slice		  details = grpc_empty_slice();

	if (call->is_sending || call->is_closed || call->is_finished ||
	    (call->queue == NULL && !call->is_finishing))
		return;
	outgoing = take_outgoing_locked(call);
	if (!call->has_metadata)
		ops[count++].op = GRPC_OP_SEND_INITIAL_METADATA;
	if (outgoing) {
		buffer = vdi_grpc_blob_pack((struct vd_bytes) { outgoing->head, outgoing->head_size },
					    outgoing->blob);
		call->sending_bytes = outgoing_size(outgoing);
		ops[count].op = GRPC_OP_SEND_MESSAGE;
		ops[count].flags = call->queue ? GRPC_WRITE_BUFFER_HINT : 0;
		ops[count++].data.send_message.send_message = buffer;
	}
	if (call->is_finishing && call->queue == NULL) {
		call->is_finished = true;
		if (call->message)
			details = grpc_slice_from_copied_string(call->message);
		ops[count].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
		ops[count].data.send_status_from_server.status = (grpc_status_code) call->code;
		ops[count++].data.send_status_from_server.status_details = &details;
		call->closes_with_send = !call->awaits_close;
		if (call->closes_with_send)
			ops[count++] = close_op_locked(call);
	}
	call->has_metadata = true;
	call->is_sending = true;
	start_locked(call, ops, count, &call->send_tag);
	grpc_slice_unref(details);
	if (outgoing) {
		grpc_byte_buffer_destroy(buffer);
		free_outgoing(outgoing);
	}
}

static void send_metadata_locked(struct vdi_grpc_server_call *call)
{
	grpc_op op = { .op = GRPC_OP_SEND_INITIAL_METADATA };

	call->has_metadata = true;
	call->is_sending = true;
	start_locked(call, &op, 1, &call->send_tag);
}

/* ---- Called from other threads ---- */

static bool wants_payload_locked(const struct vdi_grpc_server_call *call)
{
	return call->wants_message && call->payload;
}

static void receive_next_locked(struct vdi_grpc_server_call *call)
{
	grpc_op op = { .op = GRPC_OP_RECV_MESSAGE };

	if (!call->wants_message || call->payload || call->is_closed)
		return;
	call->wants_message = false;
	call->is_receiving = true;
	call->received = NULL;
	op.data.recv_message.recv_message = &call->received;
	start_locked(call, &op, 1, &call->receive_tag);
}

/* Starts pending batches: at once on the accept queue's thread, else in its next iteration. Wakes under the
 * lock, so that the call, and with it the accept queue, still exists. */
static void kick_locked(struct vdi_grpc_server_call *call)
{
	struct vdi_grpc_accept_queue *accept_queue = call->accept_queue;
	bool			      was_empty;

	if (vdi_grpc_queue_is_own(accept_queue->queue) &&
	    (call->is_beginning || !wants_payload_locked(call))) {
		receive_next_locked(call);
		send_next_locked(call);
		return;
	}
	if (call->is_kicked)
		return;
	call->is_kicked = true;
	call->tags++;
	vdi_lock_acquire(&accept_queue->lock);
	was_empty = accept_queue->kicked == NULL;
	call->kicked_next = NULL;
	*accept_queue->kicked_last = call;
	accept_queue->kicked_last = &call->kicked_next;
	vdi_lock_release(&accept_queue->lock);
	if (was_empty)
		vdi_grpc_queue_wake(accept_queue->queue);
}

static void finish_locked(struct vdi_grpc_server_call *call, int code, const char *message)
{
	if (call->is_finishing)
		return;
	call->is_finishing = true;
	call->code = code;
	if (message && *message)
		call->message = vdi_strndup(
			message,
			VDI_MIN(strlen(message),
				VDI_RPC_STATUS_SIZE_MAX)); /* out of memory: the status has the code only */
	kick_locked(call);
}

static void notify_payload(struct vdi_grpc_server_call *call);
static void give_back(struct vdi_grpc_server_call *call);
static void call_free(struct vdi_rpc_server_call *base);

void vdi_grpc_server_calls_run(struct vdi_grpc_accept_queue *accept_queue)
{
	struct vdi_grpc_server_call *call;
	struct vdi_grpc_server_call *next;

	vdi_lock_acquire(&accept_queue->lock);
	call = accept_queue->kicked;
	accept_queue->kicked = NULL;
	accept_queue->kicked_last = &accept_queue->kicked;
	vdi_lock_release(&accept_queue->lock);
	for (; call; call = next) {
		next = call->kicked_next; /* only this thread uses it until is_kicked is false */
		vdi_lock_acquire(&call->lock);
		call->is_kicked = false;
		receive_next_locked(call);
		send_next_locked(call);
		vdi_lock_release(&call->lock);
		notify_payload(call);
		give_back(call);
	}
}

/* ---- Arrival and end ---- */

static void begin(struct vdi_grpc_server_call *call)
{
	struct vdi_grpc_server *server = call->server;

	vdi_lock_acquire(&call->lock);
	if (call->unary_index == SIZE_MAX)
		await_close_locked(call);
	call->is_beginning = true;
	call->tags++; /* keeps the call until this function has notified the service */
	if (call->is_refused)
		finish_locked(call, call->code,
			      call->code == VDI_RPC_UNAVAILABLE ? "the server is closing" : "out of memory");
	else if (call->method_index != SIZE_MAX && !call->is_finishing)
		send_metadata_locked(call);
	call->is_arrived = true;
	send_next_locked(call);
	vdi_lock_release(&call->lock);
	if (!call->is_refused)
		server->handlers->accepted(server->arg, &call->base, call->method);
	call->is_beginning = false;
	notify_payload(call);
	give_back(call);
}

void vdi_grpc_server_call_arrive(struct vdi_grpc_server_call *call)
{
	if (call->accept_queue == call->notification_queue) {
		begin(call);
		return;
	}
	vdi_lock_acquire(&call->lock);
	start_locked(call, NULL, 0, &call->accept_tag);
	vdi_lock_release(&call->lock);
}

static void remove_call(struct vdi_grpc_server_call *call)
{
	struct vdi_grpc_server *server = call->server;

	/* Release core's part first, because the server waits for its list to be empty. */
	grpc_call_unref(call->core);
	call->core = NULL;
	vdi_lock_acquire(&server->lock);
	if (call->previous)
		call->previous->next = call->next;
	else
		server->calls = call->next;
	if (call->next)
		call->next->previous = call->previous;
	if (call->method_index != SIZE_MAX)
		call->accept_queue->calls--;
	vdi_grpc_server_wake_locked(server);
	vdi_lock_release(&server->lock);
}

/* The memory of a call that was refused for lack of memory becomes the next slot. */
static void end_refused(struct vdi_grpc_server_call *call)
{
	struct vdi_grpc_server	     *server = call->server;
	struct vdi_grpc_accept_queue *notification_queue = call->notification_queue;
	size_t			      method_index = call->method_index;
	size_t			      unary_index = call->unary_index;

	if (!call->offers_again) {
		call_free(&call->base);
		return;
	}
	vdi_lock_acquire(&server->lock);
	server->offers++; /* the server waits for this slot too */
	vdi_lock_release(&server->lock);
	remove_call(call);
	fini_call(call);
	init_call(call, server);
	call->notification_queue = notification_queue;
	call->method_index = method_index;
	call->unary_index = unary_index;
	vdi_grpc_accept_again(call);
	vdi_lock_acquire(&server->lock);
	server->offers--;
	vdi_lock_release(&server->lock);
}

/* The last action of a tag. */
static void give_back(struct vdi_grpc_server_call *call)
{
	bool is_over;
	bool is_cancelled;

	vdi_lock_acquire(&call->lock);
	is_over = --call->tags == 0 && call->is_closed;
	call->is_ended = is_over;
	is_cancelled = call->is_cancelled;
	vdi_lock_release(&call->lock);
	if (!is_over)
		return;
	if (call->is_refused)
		end_refused(call);
	else
		call->server->handlers->ended(call->arg, &call->base, is_cancelled);
}

/* ---- Tags ---- */

static void run_accept(struct vdi_grpc_tag *tag, bool success)
{
	struct vdi_grpc_server_call *call = VDI_CONTAINER_OF(tag, struct vdi_grpc_server_call, accept_tag);

	(void) success; /* an empty batch cannot fail */
	begin(call);
	give_back(call);
}

/* Notifies the service. received NULL: half-closed, or ended. */
static void notify_message(struct vdi_grpc_server_call *call, grpc_byte_buffer *received)
{
	struct vdi_grpc_server *server = call->server;
	struct vdi_rpc_message	message = { 0 };
	bool			is_notified;

	vdi_lock_acquire(&call->lock);
	call->is_receiving = false;
	is_notified = !call->is_closed;
	if (received && grpc_byte_buffer_length(received) > server->receive_size_max) {
		char text[96];

		snprintf(text, sizeof text, "grpc: received message larger than max (%zu vs. %zu)",
			 grpc_byte_buffer_length(received), server->receive_size_max);
		grpc_byte_buffer_destroy(received);
		finish_locked(call, VDI_RPC_RESOURCE_EXHAUSTED, text);
		is_notified = false;
	} else if (received && vdi_grpc_message_unpack(received, &message) != VD_OK) {
		finish_locked(call, VDI_RPC_RESOURCE_EXHAUSTED, "out of memory");
		is_notified = false;
	}
	vdi_lock_release(&call->lock);
	if (is_notified)
		server->handlers->message(call->arg, &call->base, &message);
	else
		vdi_rpc_message_release(&message);
}

/* Passes on the request that arrived with the call, if the service has asked for it. On the accept queue's
 * thread. */
static void notify_payload(struct vdi_grpc_server_call *call)
{
	grpc_byte_buffer *payload = NULL;

	vdi_lock_acquire(&call->lock);
	if (wants_payload_locked(call)) {
		payload = call->payload;
		call->payload = NULL;
		call->wants_message = false;
		call->is_receiving = true;
	}
	vdi_lock_release(&call->lock);
	if (payload)
		notify_message(call, payload);
}

static void run_receive(struct vdi_grpc_tag *tag, bool success)
{
	struct vdi_grpc_server_call *call = VDI_CONTAINER_OF(tag, struct vdi_grpc_server_call, receive_tag);

	(void) success;
	notify_message(call, call->received);
	give_back(call);
}

static void close_locked(struct vdi_grpc_server_call *call)
{
	call->is_closed = true;
	call->is_cancelled = call->close_cancelled != 0;
	drop_queue_locked(call);
}

static void run_send(struct vdi_grpc_tag *tag, bool success)
{
	struct vdi_grpc_server_call *call = VDI_CONTAINER_OF(tag, struct vdi_grpc_server_call, send_tag);
	bool			     is_writable;

	vdi_lock_acquire(&call->lock);
	call->is_sending = !success; /* after a failure nothing more is sent; core's close event follows */
	call->queued_bytes -= call->sending_bytes;
	call->sending_bytes = 0;
	if (call->closes_with_send)
		close_locked(call);
	else if (success)
		send_next_locked(call);
	else {
		drop_queue_locked(call);
		if (!call->awaits_close)
			await_close_locked(call);
	}
	is_writable = call->wants_writable && call->queued_bytes <= call->server->send_bytes_max / 2 &&
		      !call->is_closed && success;
	if (is_writable)
		call->wants_writable = false;
	vdi_lock_release(&call->lock);
	if (is_writable)
		call->server->handlers->writable(call->arg, &call->base);
	give_back(call);
}

static void run_close(struct vdi_grpc_tag *tag, bool success)
{
	struct vdi_grpc_server_call *call = VDI_CONTAINER_OF(tag, struct vdi_grpc_server_call, close_tag);

	(void) success; /* always true */
	vdi_lock_acquire(&call->lock);
	close_locked(call);
	vdi_lock_release(&call->lock);
	give_back(call);
}

/* ---- Functions for the service ---- */

static struct vdi_grpc_server_call *call_of(const struct vdi_rpc_server_call *base)
{
	return VDI_CONTAINER_OF((struct vdi_rpc_server_call *) base, struct vdi_grpc_server_call, base);
}

static void call_set_arg(struct vdi_rpc_server_call *base, void *call_arg)
{
	struct vdi_grpc_server_call *call = call_of(base);

	call->arg = call_arg;
}

static void call_receive(struct vdi_rpc_server_call *base)
{
	struct vdi_grpc_server_call *call = call_of(base);

	vdi_lock_acquire(&call->lock);
	if (!call->is_receiving && !call->wants_message && !call->is_closed) {
		call->wants_message = true;
		kick_locked(call);
	}
	vdi_lock_release(&call->lock);
}

static vd_status put_locked(struct vdi_grpc_server_call *call, struct vd_bytes head,
			    struct vdi_rpc_blob *blob)
{
	struct vdi_grpc_outgoing *outgoing = vdi_alloc(sizeof *outgoing);

	if (outgoing == NULL)
		return VD_NOMEM;
	VDI_CHECK(head.size <= sizeof outgoing->head);
	outgoing->next = NULL;
	outgoing->blob = blob ? vdi_rpc_blob_ref(blob) : NULL;
	outgoing->head_size = head.size;
	if (head.size)
		memcpy(outgoing->head, head.data, head.size);
	*call->queue_last = outgoing;
	call->queue_last = &outgoing->next;
	call->queued_bytes += outgoing_size(outgoing);
	return VD_OK;
}

static vd_status call_send(struct vdi_rpc_server_call *base, struct vd_bytes head, struct vdi_rpc_blob *blob)
{
	struct vdi_grpc_server_call *call = call_of(base);
	size_t			     size = head.size + vdi_rpc_blob_size(blob);
	vd_status		     status;

	vdi_lock_acquire(&call->lock);
	if (call->is_closed || call->is_finishing)
		status = VD_CLOSED;
	else if (call->queued_bytes && (size > call->server->send_bytes_max ||
					call->queued_bytes > call->server->send_bytes_max - size)) {
		call->wants_writable = true;
		status = VD_FULL;
	} else {
		status = put_locked(call, head, blob);
		/* A message behind one in flight is sent when that has completed. */
		if (status == VD_OK && !call->is_sending)
			kick_locked(call);
	}
	vdi_lock_release(&call->lock);
	return status;
}

static vd_status call_answer(struct vdi_rpc_server_call *base, struct vd_bytes head,
			     struct vdi_rpc_blob *blob)
{
	struct vdi_grpc_server_call *call = call_of(base);
	vd_status		     status;

	vdi_lock_acquire(&call->lock);
	if (call->is_closed || call->is_finishing)
		status = VD_CLOSED;
	else {
		status = put_locked(call, head, blob);
		if (status == VD_OK)
			finish_locked(call, VDI_RPC_OK, NULL);
	}
	vdi_lock_release(&call->lock);
	return status;
}

static void call_finish(struct vdi_rpc_server_call *base, int code, const char *message)
{
	struct vdi_grpc_server_call *call = call_of(base);

	vdi_lock_acquire(&call->lock);
	if (!call->is_closed)
		finish_locked(call, code, message);
	vdi_lock_release(&call->lock);
}

void vdi_grpc_server_call_shut_down(struct vdi_grpc_server_call *call)
{
	vdi_lock_acquire(&call->lock);
	if (call->is_arrived && !call->is_closed && !call->is_finishing) {
		drop_queue_locked(call);
		finish_locked(call, VDI_RPC_UNAVAILABLE, "the server is closing");
	}
	vdi_lock_release(&call->lock);
}

static void call_free(struct vdi_rpc_server_call *base)
{
	struct vdi_grpc_server_call *call = call_of(base);

	vdi_lock_acquire(&call->lock);
	VDI_CHECK(call->is_ended);
	vdi_lock_release(&call->lock);
	remove_call(call);
	vdi_grpc_server_call_destroy(call);
}

static bool call_metadata(const struct vdi_rpc_server_call *base, const char *key, struct vd_bytes *ret_value)
{
	const struct vdi_grpc_server_call *call = call_of(base);
	for (size_t i = 0; i < call->metadata.count; i++) {
		const grpc_metadata *pair = &call->metadata.metadata[i];

		if (grpc_slice_str_cmp(pair->key, key) == 0) {
			*ret_value = vdi_grpc_slice_bytes(&pair->value);
			return true;
		}
	}
	return false;
}

/* Returns "ipv4:127.0.0.1:1" or "ipv6:%5B::1%5D:1" without the scheme, unescaped. */
static char *tidy_peer(const char *peer)
{
	const char *from = peer;
	char	   *text;
	size_t	    size = 0;

	if (strncmp(from, "ipv4:", 5) == 0 || strncmp(from, "ipv6:", 5) == 0)
		from += 5;
	text = vdi_alloc(strlen(from) + 1);
	if (text == NULL)
		return NULL;
	for (; *from; from++) {
		if (strncmp(from, "%5B", 3) == 0 || strncmp(from, "%5D", 3) == 0) {
			text[size++] = from[2] == 'B' ? '[' : ']';
			from += 2;
		} else
			text[size++] = *from;
	}
	text[size] = 0;
	return text;
}

static const char *call_peer(const struct vdi_rpc_server_call *base)
{
	struct vdi_grpc_server_call *call = call_of(base); /* caches the result in the call */
	const char		    *peer;

	vdi_lock_acquire(&call->lock);
	if (call->peer == NULL) {
		char *uri = grpc_call_get_peer(call->core);

		call->peer = uri ? tidy_peer(uri) : NULL;
		gpr_free(uri);
	}
	peer = call->peer;
	vdi_lock_release(&call->lock);
	return peer ? peer : "";
}

static char *find_common_name(grpc_call *core)
{
	grpc_auth_context	   *context = grpc_call_auth_context(core);
	grpc_auth_property_iterator iterator;
	const grpc_auth_property   *property;
	char			   *name = NULL;

	if (context == NULL)
		return NULL;
	if (grpc_auth_context_peer_is_authenticated(context)) {
		iterator = grpc_auth_context_find_properties_by_name(context, GRPC_X509_CN_PROPERTY_NAME);
		property = grpc_auth_property_iterator_next(&iterator);
		if (property)
			name = vdi_strndup(property->value, property->value_length);
	}
	grpc_auth_context_release(context);
	return name;
}

static const char *call_common_name(const struct vdi_rpc_server_call *base)
{
	struct vdi_grpc_server_call *call = call_of(base);
	const char		    *name;

	vdi_lock_acquire(&call->lock);
	if (call->common_name == NULL)
		call->common_name = find_common_name(call->core);
	name = call->common_name;
	vdi_lock_release(&call->lock);
	return name ? name : "";
}

const struct vdi_rpc_server_call_ops vdi_grpc_server_call_ops = {
	.set_arg = call_set_arg,
	.peer = call_peer,
	.metadata = call_metadata,
	.common_name = call_common_name,
	.receive = call_receive,
	.send = call_send,
	.answer = call_answer,
	.finish = call_finish,
	.free = call_free,
};
