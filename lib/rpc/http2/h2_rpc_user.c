/* The functions of a call or stream for the client's user: they make an rpc and post its changes to the
 * loop. */
#include "h2_client_state.h"

static vd_status new_rpc(struct vdi_rpc_client *base, const struct vdi_rpc_request *request, bool is_stream,
			 struct vdi_h2_rpc **ret_rpc)
{
	struct vdi_h2_client *client = VDI_CONTAINER_OF(base, struct vdi_h2_client, client);
	struct vdi_h2_rpc    *rpc = VDI_NEW(struct vdi_h2_rpc);
	vd_status	      status;

	if (rpc == NULL)
		return VD_NOMEM;
	rpc->base.call.client = base;
	rpc->client = client;
	rpc->is_stream = is_stream;
	rpc->is_single = !is_stream || request->half_close;
	rpc->method = request->method;
	rpc->deadline =
		request->timeout.ns > 0 ? vd_mono_add(vd_env_now(client->env), request->timeout) : VD_NEVER;
	rpc->sent_last = &rpc->sent;
	vdi_h2_outbox_init(&rpc->outbox);
	vdi_h2_inbox_init(&rpc->inbox, client->receive_size_max);
	rpc->outbox.retains = !is_stream;
	status = vdi_h2_pairs_make(request->metadata, request->metadata_count, &rpc->pairs);
	if (status == VD_OK && rpc->is_single) {
		rpc->outbox.is_ending = true;
		if (request->message.size > client->send_size_max) {
			rpc->decision = VDI_H2_TOO_BIG;
			rpc->too_big_size = request->message.size;
		} else {
			struct vdi_h2_outgoing *outgoing;

			status = vdi_h2_outgoing_new(request->message, NULL, &outgoing);
			if (status == VD_OK)
				vdi_h2_outbox_push(&rpc->outbox, outgoing);
		}
	}
	if (status != VD_OK) {
		vdi_h2_rpc_free(rpc);
		return status == VD_TOO_BIG ? VD_INVALID_ARGUMENT : status;
	}
	*ret_rpc = rpc;
	return VD_OK;
}

/* Adds the rpc to the client, which now lives until the rpc has ended. Sets *ret before that can happen. */
static vd_status admit(struct vdi_h2_rpc *rpc, int endpoint, void **ret)
{
	struct vdi_h2_client *client = rpc->client;
	vd_status	      status = VD_OK;

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
		if (ret)
			*ret = rpc;
		TAILQ_INSERT_TAIL(&client->live, rpc, live_node);
		vdi_h2_rpc_post_locked(rpc);
	}
	vdi_lock_release(&client->lock);
	if (status != VD_OK)
		vdi_h2_rpc_free(rpc);
	return status;
}

vd_status vdi_h2_call(struct vdi_rpc_client *client, const struct vdi_rpc_request *request,
		      vdi_rpc_done_fn done, void *arg, struct vdi_rpc_call **ret_call)
{
	struct vdi_h2_rpc *rpc;

	VDI_TRY(new_rpc(client, request, false, &rpc));
	rpc->done = done;
	rpc->arg = arg;
	return admit(rpc, request->endpoint, (void **) ret_call);
}

void vdi_h2_call_cancel(struct vdi_rpc_call *call)
{
	vdi_h2_rpc_stop(VDI_CONTAINER_OF(call, struct vdi_h2_rpc, base.call), VDI_H2_CANCELED, 0);
}

vd_status vdi_h2_stream_open(struct vdi_rpc_client *client, const struct vdi_rpc_request *request,
			     const struct vdi_rpc_stream_handlers *handlers, void *arg,
			     struct vdi_rpc_stream **ret_stream)
{
	struct vdi_h2_rpc *rpc;

	VDI_TRY(new_rpc(client, request, true, &rpc));
	rpc->handlers = handlers;
	rpc->arg = arg;
	return admit(rpc, request->endpoint, (void **) ret_stream);
}

static struct vdi_h2_rpc *rpc_of(struct vdi_rpc_stream *stream)
{
	return VDI_CONTAINER_OF(stream, struct vdi_h2_rpc, base.stream);
}

vd_status vdi_h2_stream_send(struct vdi_rpc_stream *stream, struct vd_bytes message)
{
	struct vdi_h2_rpc      *rpc = rpc_of(stream);
	struct vdi_h2_client   *client = rpc->client;
	struct vdi_h2_outgoing *outgoing;

	if (message.size > client->send_size_max) {
		vdi_h2_rpc_stop(rpc, VDI_H2_TOO_BIG, message.size);
		return VD_OK;
	}
	if (vdi_h2_outgoing_new(message, NULL, &outgoing) != VD_OK)
		return VD_NOMEM;
	vdi_lock_acquire(&client->lock);
	if (!rpc->is_ended && !rpc->wants_half_close && !rpc->is_single) {
		*rpc->sent_last = outgoing;
		rpc->sent_last = &outgoing->next;
		outgoing = NULL;
		vdi_h2_rpc_post_locked(rpc);
	}
	vdi_lock_release(&client->lock);
	(void) vdi_h2_outgoing_free(outgoing);
	return VD_OK;
}

void vdi_h2_stream_receive(struct vdi_rpc_stream *stream)
{
	struct vdi_h2_rpc    *rpc = rpc_of(stream);
	struct vdi_h2_client *client = rpc->client;

	atomic_store_explicit(&rpc->wants_message, true, memory_order_release);
	if (vdi_loop_is_current(client->loop) && rpc->is_delivering)
		return; /* the loop's thread checks for posts itself */
	vdi_lock_acquire(&client->lock);
	vdi_h2_rpc_post_locked(rpc);
	vdi_lock_release(&client->lock);
}

void vdi_h2_stream_half_close(struct vdi_rpc_stream *stream)
{
	struct vdi_h2_rpc    *rpc = rpc_of(stream);
	struct vdi_h2_client *client = rpc->client;

	vdi_lock_acquire(&client->lock);
	rpc->wants_half_close = true;
	vdi_h2_rpc_post_locked(rpc);
	vdi_lock_release(&client->lock);
}

void vdi_h2_stream_cancel(struct vdi_rpc_stream *stream)
{
	vdi_h2_rpc_stop(rpc_of(stream), VDI_H2_CANCELED, 0);
}

void vdi_h2_stream_free(struct vdi_rpc_stream *stream)
{
	struct vdi_h2_rpc    *rpc;
	struct vdi_h2_client *client;
	bool		      is_gone;

	if (stream == NULL)
		return;
	rpc = rpc_of(stream);
	client = rpc->client;
	vdi_lock_acquire(&client->lock);
	VDI_CHECK(rpc->is_ended && !rpc->is_freed);
	rpc->is_freed = true;
	is_gone = rpc->is_gone;
	vdi_lock_release(&client->lock);
	if (is_gone)
		vdi_h2_rpc_free(rpc);
}
