/* The functions of a call for the service: they store requests under the call's lock; the loop of its
 * connection executes them. */
#include <string.h>

#include "h2_server_state.h"

static struct vdi_h2_server_call *call_of(const struct vdi_rpc_server_call *base)
{
	return VDI_CONTAINER_OF((struct vdi_rpc_server_call *) base, struct vdi_h2_server_call, base);
}

static void call_set_arg(struct vdi_rpc_server_call *base, void *call_arg)
{
	struct vdi_h2_server_call *call = call_of(base);

	call->arg = call_arg;
}

static void call_receive(struct vdi_rpc_server_call *base)
{
	struct vdi_h2_server_call *call = call_of(base);

	if (atomic_exchange_explicit(&call->wants_message, true, memory_order_acq_rel))
		return;
	if (vdi_loop_is_current(vdi_h2_loop_event_loop(call->loop->h2_loop)) &&
	    (call->is_delivering || !(call->is_half_closed || vdi_h2_inbox_has_kept(&call->inbox))))
		return; /* the current callback, or the next event, handles it */
	vdi_lock_acquire(&call->lock);
	if (!call->is_closed)
		vdi_h2_server_call_kick_locked(call);
	vdi_lock_release(&call->lock);
}

/* VD_FULL: no room in the server's limit (unsent_max). */
static vd_status put_locked(struct vdi_h2_server_call *call, struct vd_bytes head, struct vdi_rpc_blob *blob,
			    bool (*take)(struct vdi_h2_server *server, struct vdi_h2_outgoing *outgoing))
{
	struct vdi_h2_outgoing *outgoing;

	VDI_TRY(vdi_h2_outgoing_new(head, blob, &outgoing));
	if (!take(call->server, outgoing)) {
		(void) vdi_h2_outgoing_free(outgoing);
		return VD_FULL;
	}
	*call->queue_last = outgoing;
	call->queue_last = &outgoing->next;
	call->queued_bytes += head.size + vdi_rpc_blob_size(blob);
	return VD_OK;
}

static vd_status call_send(struct vdi_rpc_server_call *base, struct vd_bytes head, struct vdi_rpc_blob *blob)
{
	struct vdi_h2_server_call *call = call_of(base);
	size_t			   size = head.size + vdi_rpc_blob_size(blob);
	size_t			   waiting;
	vd_status		   status;

	VDI_CHECK(head.size <= VDI_H2_HEAD_SIZE_MAX);
	vdi_lock_acquire(&call->lock);
	waiting = call->queued_bytes + call->outbox_bytes;
	if (call->is_closed || call->is_finishing)
		status = VD_CLOSED;
	else if (waiting &&
		 (size > call->server->send_bytes_max || waiting > call->server->send_bytes_max - size)) {
		call->wants_writable = true;
		status = VD_FULL;
	} else {
		bool wanted = call->wants_writable;

		call->wants_writable =
			true; /* set before the check fails, so that a thread that makes room sees it */
		status = put_locked(call, head, blob, vdi_h2_unsent_take_message);
		if (status != VD_FULL)
			call->wants_writable = wanted;
		if (status == VD_OK)
			vdi_h2_server_call_kick_locked(call);
	}
	vdi_lock_release(&call->lock);
	return status;
}

static vd_status call_answer(struct vdi_rpc_server_call *base, struct vd_bytes head,
			     struct vdi_rpc_blob *blob)
{
	struct vdi_h2_server_call *call = call_of(base);
	vd_status		   status;

	VDI_CHECK(head.size <= VDI_H2_HEAD_SIZE_MAX);
	vdi_lock_acquire(&call->lock);
	if (call->is_closed || call->is_finishing)
		status = VD_CLOSED;
	else {
		status = put_locked(call, head, blob, vdi_h2_unsent_take_answer);
		if (status == VD_OK)
			vdi_h2_server_call_finish_locked(call, VDI_RPC_OK, NULL);
		else if (status == VD_FULL) {
			vdi_h2_server_call_finish_locked(
				call, VDI_RPC_RESOURCE_EXHAUSTED,
				"the server has too many bytes that its clients have not read");
			status = VD_CLOSED;
		}
	}
	vdi_lock_release(&call->lock);
	return status;
}

static void call_finish(struct vdi_rpc_server_call *base, int code, const char *message)
{
	struct vdi_h2_server_call *call = call_of(base);

	vdi_lock_acquire(&call->lock);
	if (!call->is_closed)
		vdi_h2_server_call_finish_locked(call, code, message);
	vdi_lock_release(&call->lock);
}

static void call_free(struct vdi_rpc_server_call *base)
{
	struct vdi_h2_server_call *call = call_of(base);

	vdi_lock_acquire(&call->lock);
	VDI_CHECK(call->is_closed);
	vdi_h2_server_call_unpin_locked(call);
}

static bool call_metadata(const struct vdi_rpc_server_call *base, const char *key, struct vd_bytes *ret_value)
{
	const struct vdi_h2_server_call *call = call_of(base);
	size_t				 at = 0;

	while (at < call->text_size) {
		const char *name = call->text + at;
		uint32_t    size;

		at += strlen(name) + 1;
		if (name == call->method)
			continue;
		memcpy(&size, call->text + at, sizeof size);
		at += sizeof size;
		if (strcmp(name, key) == 0) {
			*ret_value = (struct vd_bytes) { call->text + at, size };
			return true;
		}
		at += size;
	}
	return false;
}

static const char *call_peer(const struct vdi_rpc_server_call *base)
{
	const struct vdi_h2_server_call *call = call_of(base);
	return call->peer->address;
}

static const char *call_common_name(const struct vdi_rpc_server_call *base)
{
	const struct vdi_h2_server_call *call = call_of(base);
	return call->peer->common_name;
}

const struct vdi_rpc_server_call_ops vdi_h2_server_call_ops = {
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
