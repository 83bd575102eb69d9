/* Common parts of calls and streams: waiting for a connection, cancellation at any time by any thread, and
 * reporting the end.
 *
 * Waiting is done here and not by core, because core's wait-for-ready would bind a call to one endpoint and
 * would not report whether it was sent. A call is given to core only when its channel is ready, and without
 * wait-for-ready; if the connection is lost meanwhile, it fails at once and waits here again. `unsent` is
 * never set for a request that may have been sent; it may be missing for a call on a connection that broke in
 * that moment.
 *
 * If two threads stop an rpc, the first decides how it ends, unless its result was already on its way.
 */
#include <stdio.h>

#include <grpc/support/alloc.h>

#include "env.h"
#include "grpc_client_state.h"

/* Limits the work if a channel is ready but fails each call before sending it. */
#define ATTEMPTS_MAX 5

void vdi_grpc_status_init(struct vdi_grpc_status *status)
{
	*status = (struct vdi_grpc_status) { .code = GRPC_STATUS_UNKNOWN, .details = grpc_empty_slice() };
	grpc_metadata_array_init(&status->metadata);
}

void vdi_grpc_status_fini(struct vdi_grpc_status *status)
{
	grpc_slice_unref(status->details);
	grpc_metadata_array_destroy(&status->metadata);
	gpr_free((char *) status->words);
}

grpc_op vdi_grpc_status_op(struct vdi_grpc_status *status)
{
	grpc_op op = { .op = GRPC_OP_RECV_STATUS_ON_CLIENT };

	op.data.recv_status_on_client.status = &status->code;
	op.data.recv_status_on_client.status_details = &status->details;
	op.data.recv_status_on_client.trailing_metadata = &status->metadata;
	op.data.recv_status_on_client.error_string = &status->words;
	return op;
}

grpc_op vdi_grpc_rpc_metadata_op(const struct vdi_grpc_rpc *rpc)
{
	grpc_op op = { .op = GRPC_OP_SEND_INITIAL_METADATA };

	op.data.send_initial_metadata.count = rpc->metadata_count;
	op.data.send_initial_metadata.metadata = rpc->metadata;
	return op;
}

/* ---- Adding and removing ---- */

vd_status vdi_grpc_rpc_init(struct vdi_grpc_rpc *rpc, const struct vdi_grpc_rpc_ops *ops,
			    struct vdi_grpc_client *client, const struct vdi_rpc_request *request)
{
	for (size_t i = 0; i < request->metadata_count; i++) {
		if (!vdi_grpc_metadata_is_legal(request->metadata[i].key, request->metadata[i].value))
			return VD_INVALID_ARGUMENT;
	}
	*rpc = (struct vdi_grpc_rpc) {
		.ops = ops, .client = client, .method = request->method, .deadline = VD_NEVER
	};
	if (request->timeout.ns > 0)
		rpc->deadline = vd_mono_add(vd_env_now(client->env), request->timeout);
	if (!ops->is_stream || request->half_close) {
		if (request->message.size > client->send_size_max) {
			rpc->decision = VDI_GRPC_TOO_BIG;
			rpc->too_big_size = request->message.size;
		} else {
			rpc->message = vdi_grpc_message_pack(request->message);
			if (rpc->message == NULL)
				return VD_NOMEM;
		}
	}
	if (request->metadata_count == 0)
		return VD_OK;
	rpc->metadata = vdi_calloc(request->metadata_count, sizeof rpc->metadata[0]);
	if (rpc->metadata == NULL) {
		vdi_grpc_rpc_fini(rpc);
		return VD_NOMEM;
	}
	for (size_t i = 0; i < request->metadata_count; i++) {
		struct vd_bytes value = request->metadata[i].value;

		rpc->metadata[i].key = grpc_slice_from_copied_string(request->metadata[i].key);
		rpc->metadata[i].value =
			grpc_slice_from_copied_buffer(value.data ? value.data : "", value.size);
	}
	rpc->metadata_count = request->metadata_count;
	return VD_OK;
}

void vdi_grpc_rpc_fini(struct vdi_grpc_rpc *rpc)
{
	for (size_t i = 0; i < rpc->metadata_count; i++) {
		grpc_slice_unref(rpc->metadata[i].key);
		grpc_slice_unref(rpc->metadata[i].value);
	}
	vdi_free(rpc->metadata);
	if (rpc->message)
		grpc_byte_buffer_destroy(rpc->message);
}

vd_status vdi_grpc_rpc_admit(struct vdi_grpc_rpc *rpc, int endpoint)
{
	struct vdi_grpc_client *client = rpc->client;
	vd_status		status = VD_OK;

	vdi_lock_acquire(&client->lock);
	if (client->is_closing)
		status = VD_CLOSED;
	else if (endpoint != VDI_RPC_ANY_ENDPOINT &&
		 (endpoint < 0 || (size_t) endpoint >= client->channel_count))
		status = VD_INVALID_ARGUMENT;
	else {
		if (endpoint != VDI_RPC_ANY_ENDPOINT) {
			rpc->only = client->channels[endpoint];
			rpc->only->references++;
		}
		vdi_grpc_link_append(&client->live, &rpc->live);
	}
	vdi_lock_release(&client->lock);
	return status;
}

void vdi_grpc_rpc_leave(struct vdi_grpc_rpc *rpc)
{
	struct vdi_grpc_client *client = rpc->client;

	vdi_lock_acquire(&client->lock);
	if (rpc->channel)
		vdi_grpc_channel_unref_locked(rpc->channel);
	if (rpc->only)
		vdi_grpc_channel_unref_locked(rpc->only);
	vdi_grpc_link_remove(&rpc->live);
	if (client->is_closing)
		vdi_grpc_queue_wake(client->queue);
	vdi_lock_release(&client->lock);
	if (rpc->core)
		grpc_call_unref(rpc->core);
}

/* ---- Starting ---- */

static struct vdi_grpc_channel *pick_locked(struct vdi_grpc_client *client, const struct vdi_grpc_rpc *rpc)
{
	if (rpc->only)
		return rpc->only->is_ready ? rpc->only : NULL;
	for (size_t i = 0; i < client->channel_count; i++) {
		struct vdi_grpc_channel *channel =
			client->channels[(client->channel_next + i) % client->channel_count];

		if (channel->is_ready) {
			client->channel_next = (client->channel_next + i + 1) % client->channel_count;
			return channel;
		}
	}
	return NULL;
}

static void begin_locked(struct vdi_grpc_rpc *rpc, struct vdi_grpc_channel *channel)
{
	channel->references++;
	rpc->channel = channel;
	rpc->place = VDI_GRPC_RUNNING;
	rpc->core = grpc_channel_create_call(
		channel->core, NULL, GRPC_PROPAGATE_DEFAULTS, vdi_grpc_queue_core(rpc->client->queue),
		grpc_slice_from_static_string(rpc->method), NULL, vdi_grpc_timespec(rpc->deadline), NULL);
}

static void refuse_locked(struct vdi_grpc_rpc *rpc)
{
	rpc->place = VDI_GRPC_REFUSED;
	vdi_grpc_link_append(&rpc->client->refused, &rpc->queued);
	vdi_grpc_queue_wake(rpc->client->queue);
}

static void wait_locked(struct vdi_grpc_rpc *rpc)
{
	struct vdi_grpc_client *client = rpc->client;

	rpc->place = VDI_GRPC_WAITING;
	vdi_grpc_link_append(&client->waiting, &rpc->queued);
	vdi_timer_heap_set(&client->timers, &rpc->timer, rpc->deadline);
	if (rpc->deadline.ns < client->next_iteration.ns) {
		client->next_iteration = rpc->deadline;
		vdi_grpc_queue_wake(client->queue);
	}
}

void vdi_grpc_rpc_submit(struct vdi_grpc_rpc *rpc)
{
	struct vdi_grpc_client	*client = rpc->client;
	struct vdi_grpc_channel *channel;
	bool			 started = false;

	vdi_lock_acquire(&client->lock);
	if (rpc->only && rpc->only->is_removed && rpc->decision == VDI_GRPC_UNDECIDED)
		rpc->decision = VDI_GRPC_REMOVED;
	if (rpc->decision != VDI_GRPC_UNDECIDED)
		refuse_locked(rpc);
	else if ((channel = pick_locked(client, rpc)) != NULL) {
		begin_locked(rpc, channel);
		started = true;
	} else
		wait_locked(rpc);
	vdi_lock_release(&client->lock);
	if (started)
		rpc->ops->start(rpc);
}

static struct vdi_grpc_rpc *take_startable_locked(struct vdi_grpc_client *client)
{
	for (struct vdi_grpc_link *link = client->waiting.next; link != &client->waiting; link = link->next) {
		struct vdi_grpc_rpc	*rpc = vdi_grpc_rpc_of_queued(link);
		struct vdi_grpc_channel *channel = pick_locked(client, rpc);

		if (channel) {
			vdi_grpc_link_remove(&rpc->queued);
			vdi_timer_heap_remove(&client->timers, &rpc->timer);
			begin_locked(rpc, channel);
			return rpc;
		}
	}
	return NULL;
}

void vdi_grpc_rpc_start_waiting(struct vdi_grpc_client *client)
{
	struct vdi_grpc_rpc *rpc;

	do {
		vdi_lock_acquire(&client->lock);
		rpc = take_startable_locked(client);
		vdi_lock_release(&client->lock);
		if (rpc)
			rpc->ops->start(rpc);
	} while (rpc);
}

/* ---- Stopping ---- */

void vdi_grpc_rpc_stop_locked(struct vdi_grpc_rpc *rpc, enum vdi_grpc_decision decision)
{
	if (rpc->decision != VDI_GRPC_UNDECIDED)
		return;
	rpc->decision = decision;
	if (rpc->place == VDI_GRPC_WAITING) {
		vdi_grpc_link_remove(&rpc->queued);
		vdi_timer_heap_remove(&rpc->client->timers, &rpc->timer);
		refuse_locked(rpc);
	} else if (rpc->place == VDI_GRPC_RUNNING)
		grpc_call_cancel(rpc->core, NULL); /* after this its tags return */
}

void vdi_grpc_rpc_stop(struct vdi_grpc_rpc *rpc, enum vdi_grpc_decision decision, size_t too_big_size)
{
	vdi_lock_acquire(&rpc->client->lock);
	if (rpc->decision == VDI_GRPC_UNDECIDED)
		rpc->too_big_size = too_big_size;
	vdi_grpc_rpc_stop_locked(rpc, decision);
	vdi_lock_release(&rpc->client->lock);
}

void vdi_grpc_rpc_expire(struct vdi_grpc_client *client, vd_mono now)
{
	struct vdi_timer *timer;

	vdi_lock_acquire(&client->lock);
	while ((timer = vdi_timer_heap_pop_due(&client->timers, now)) != NULL)
		vdi_grpc_rpc_stop_locked(VDI_CONTAINER_OF(timer, struct vdi_grpc_rpc, timer),
					 VDI_GRPC_TIMEOUT);
	vdi_lock_release(&client->lock);
}

/* ---- Ends ---- */

static void describe_end(const struct vdi_grpc_rpc *rpc, enum vdi_grpc_decision decision,
			 struct vdi_rpc_end *end, char *room, size_t size)
{
	switch (decision) {
	case VDI_GRPC_UNDECIDED: break;
	case VDI_GRPC_CANCELED:
		*end = (struct vdi_rpc_end) { .code = VDI_RPC_CANCELED,
					      .message = "context canceled",
					      .local = true };
		break;
	case VDI_GRPC_TIMEOUT:
		vdi_grpc_client_describe_unready(rpc->client, rpc->only, room, size);
		*end = (struct vdi_rpc_end) { .code = VDI_RPC_DEADLINE_EXCEEDED,
					      .message = room,
					      .local = true };
		break;
	case VDI_GRPC_CLOSED:
		*end = (struct vdi_rpc_end) { .code = VDI_RPC_CANCELED,
					      .message = "grpc: the client connection is closing",
					      .local = true };
		break;
	case VDI_GRPC_REMOVED:
		*end = (struct vdi_rpc_end) { .code = VDI_RPC_UNAVAILABLE,
					      .message = "the endpoint was removed" };
		break;
	case VDI_GRPC_TOO_BIG:
		snprintf(room, size, "trying to send message larger than max (%zu vs. %zu)",
			 rpc->too_big_size, rpc->client->send_size_max);
		*end = (struct vdi_rpc_end) { .code = VDI_RPC_RESOURCE_EXHAUSTED,
					      .message = room,
					      .local = true };
		break;
	case VDI_GRPC_NO_MEMORY:
		*end = (struct vdi_rpc_end) { .code = VDI_RPC_RESOURCE_EXHAUSTED,
					      .message = "out of memory",
					      .local = true };
		break;
	}
}

void vdi_grpc_rpc_notify_refused(struct vdi_grpc_client *client)
{
	for (;;) {
		struct vdi_grpc_rpc *rpc = NULL;
		struct vdi_rpc_end   end = { 0 };
		char		     room[1024];

		vdi_lock_acquire(&client->lock);
		if (!vdi_grpc_link_is_empty(&client->refused)) {
			rpc = vdi_grpc_rpc_of_queued(client->refused.next);
			vdi_grpc_link_remove(&rpc->queued);
		}
		vdi_lock_release(&client->lock);
		if (rpc == NULL)
			return;
		describe_end(rpc, rpc->decision, &end, room, sizeof room);
		end.endpoint = "";
		end.unsent = true;
		rpc->ops->refused(rpc, &end);
	}
}

/* For a stream this is certain, because no message is given to core before the opening was sent. A unary call
 * is one batch; for it core reports that no connection was found, with a text of core's own (all statuses of
 * the peer begin with "Error received from peer"). */
static bool is_unsent(const struct vdi_grpc_rpc *rpc, const struct vdi_grpc_status *status)
{
	static const char *const no_connection[] = { "failed to connect to all addresses",
						     "DNS resolution failed", "empty address list" };
	const char		*words;

	if (rpc->ops->is_stream)
		return !rpc->was_opened;
	words = status->words ? strchr(status->words, ':') : NULL;
	if (words == NULL || status->code != GRPC_STATUS_UNAVAILABLE)
		return false;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(no_connection); i++) {
		if (strncmp(words + 1, no_connection[i], strlen(no_connection[i])) == 0)
			return true;
	}
	return false;
}

/* Called if the channel was not ready after all: waits for another one. */
static bool waits_again(struct vdi_grpc_rpc *rpc)
{
	struct vdi_grpc_client	*client = rpc->client;
	struct vdi_grpc_channel *channel = rpc->channel;
	grpc_call		*core = rpc->core;
	bool			 again;

	vdi_lock_acquire(&client->lock);
	again = rpc->decision == VDI_GRPC_UNDECIDED && !client->is_closing &&
		!(rpc->only && rpc->only->is_removed) && ++rpc->attempts < ATTEMPTS_MAX;
	if (again) {
		rpc->core = NULL;
		rpc->channel = NULL;
		channel->is_ready =
			channel->core && !channel->is_removed &&
			grpc_channel_check_connectivity_state(channel->core, 1) == GRPC_CHANNEL_READY;
		vdi_grpc_channel_unref_locked(channel);
		wait_locked(rpc);
		vdi_grpc_queue_wake(client->queue);
	}
	vdi_lock_release(&client->lock);
	if (again)
		grpc_call_unref(core);
	return again;
}

/* Translates core's text into grpc-go's. */
static const char *translate(const char *words, char *room, size_t size)
{
	static const char limit[] = "eceived message larger than max (";
	const char	 *found = strstr(words, limit);
	char		  rest[128];

	if (found == NULL || strncmp(words, "grpc: ", 6) == 0)
		return words;
	snprintf(rest, sizeof rest, "%s", found); /* words may be in room */
	snprintf(room, size, "grpc: r%s", rest);
	return room;
}

bool vdi_grpc_rpc_ended(struct vdi_grpc_rpc *rpc, struct vdi_grpc_status *status,
			struct vdi_grpc_ending *ret_ending)
{
	struct vdi_grpc_ending *ending = ret_ending;
	struct vdi_rpc_end     *end = &ending->end;
	bool			unsent = status->code != GRPC_STATUS_OK && is_unsent(rpc, status);
	enum vdi_grpc_decision	decision;

	if (unsent && status->code == GRPC_STATUS_UNAVAILABLE && waits_again(rpc)) {
		vdi_grpc_status_fini(status);
		return false;
	}
	vdi_lock_acquire(&rpc->client->lock);
	decision = rpc->decision;
	vdi_lock_release(&rpc->client->lock);
	vdi_grpc_text_init(&ending->text, status->details);
	*end = (struct vdi_rpc_end) { .code = status->code, .message = ending->text.text };
	if (status->code == GRPC_STATUS_OK)
		end->message = "";
	else if (decision != VDI_GRPC_UNDECIDED && status->code == GRPC_STATUS_CANCELLED)
		describe_end(rpc, decision, end, ending->text.room, sizeof ending->text.room);
	else if (status->code == GRPC_STATUS_DEADLINE_EXCEEDED &&
		 vd_env_now(rpc->client->env).ns >= rpc->deadline.ns) {
		end->message = "context deadline exceeded";
		end->local = true;
	} else if (status->code == GRPC_STATUS_RESOURCE_EXHAUSTED)
		end->message = translate(end->message, ending->text.room, sizeof ending->text.room);
	end->unsent = unsent;
	end->endpoint = unsent ? "" : rpc->channel->name;
	vdi_grpc_status_fini(status);
	return true;
}
