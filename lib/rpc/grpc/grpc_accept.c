/* Accepting calls: core is given a number of call slots, each an outstanding request for a new call, and
 * fills one when a call arrives; another one is then offered in its place. Tens of slots, not thousands,
 * because core searches all tags of a queue at each completion.
 *
 * The queue for the events of a call is decided when its slot is offered. Stream methods are registered with
 * core by name, so their slots are bound to accept queues of streams. So are frequent methods with a single
 * request, for which core delivers the request together with the call. All other methods, known or not, share
 * the slots of the unary accept queues. All new calls are reported on unary accept queues, because core must
 * know those queues before it starts; a stream moves to its own accept queue with an empty batch.
 *
 * If there is no memory for a new slot, the call that arrived is refused and its slot is offered again, so
 * slots never run out.
 */
#include "grpc_server_state.h"

#define OFFERS_PER_UNARY_ACCEPT_QUEUE 32
#define OFFERS_PER_UNARY_METHOD 32 /* per unary accept queue */
#define OFFERS_PER_STREAM_METHOD 4

static void run_arrive(struct vdi_grpc_tag *tag, bool success);

static void offer(struct vdi_grpc_server_call *call)
{
	struct vdi_grpc_server *server = call->server;
	grpc_completion_queue  *notification = vdi_grpc_queue_core(call->notification_queue->queue);
	grpc_completion_queue  *bound = vdi_grpc_queue_core(call->accept_queue->queue);
	grpc_call_error		error;

	vdi_lock_acquire(&server->lock);
	server->offers++;
	vdi_lock_release(&server->lock);
	call->arrive_tag.run = run_arrive;
	vdi_grpc_tag_hand(&call->arrive_tag);
	if (call->method_index != SIZE_MAX)
		error = grpc_server_request_registered_call(
			server->core, server->stream_handles[call->method_index], &call->core,
			&call->deadline, &call->metadata, NULL, bound, notification, &call->arrive_tag);
	else if (call->unary_index != SIZE_MAX)
		error = grpc_server_request_registered_call(
			server->core, server->unary_handles[call->unary_index], &call->core, &call->deadline,
			&call->metadata, &call->payload, bound, notification, &call->arrive_tag);
	else
		error = grpc_server_request_call(server->core, &call->core, &call->details, &call->metadata,
						 bound, notification, &call->arrive_tag);
	VDI_CHECK(error == GRPC_CALL_OK);
}

static void place(struct vdi_grpc_server_call *call, struct vdi_grpc_accept_queue *notification_queue,
		  size_t method_index, size_t unary_index)
{
	call->notification_queue = notification_queue;
	call->method_index = method_index;
	call->unary_index = unary_index;
	call->accept_queue = method_index != SIZE_MAX ? vdi_grpc_server_queue_for_stream(call->server) :
							notification_queue;
	offer(call);
}

vd_status vdi_grpc_accept_start(struct vdi_grpc_server *server)
{
	struct vdi_grpc_server_call *places = NULL;
	struct vdi_grpc_server_call *call;
	size_t			     any_count = server->unary_accept_queues * OFFERS_PER_UNARY_ACCEPT_QUEUE;
	size_t			     unary_count =
		server->unary_accept_queues * server->unary_method_count * OFFERS_PER_UNARY_METHOD;
	size_t	  count = any_count + unary_count + server->stream_method_count * OFFERS_PER_STREAM_METHOD;
	vd_status status = VD_OK;

	/* Offer all or none: core returns an offered slot only through its queue. */
	for (size_t i = 0; i < count && status == VD_OK; i++) {
		status = vdi_grpc_server_call_new(server, &call);
		if (status == VD_OK) {
			call->next = places;
			places = call;
		}
	}
	for (size_t i = 0; places; i++) {
		call = places;
		places = call->next;
		call->next = NULL;
		if (status != VD_OK)
			vdi_grpc_server_call_destroy(call);
		else if (i < any_count)
			place(call, server->accept_queues[i % server->unary_accept_queues], SIZE_MAX,
			      SIZE_MAX);
		else if (i < any_count + unary_count)
			place(call, server->accept_queues[i % server->unary_accept_queues], SIZE_MAX,
			      i / server->unary_accept_queues % server->unary_method_count);
		else
			place(call, server->accept_queues[0], i % server->stream_method_count, SIZE_MAX);
	}
	return status;
}

static void take_back(struct vdi_grpc_server_call *call)
{
	struct vdi_grpc_server *server = call->server;

	vdi_grpc_server_call_destroy(call);
	vdi_lock_acquire(&server->lock);
	server->offers--;
	vdi_grpc_server_wake_locked(server);
	vdi_lock_release(&server->lock);
}

/* Sets the method name as text. False: out of memory. */
static bool name_method(struct vdi_grpc_server_call *call)
{
	if (call->method_index != SIZE_MAX) {
		call->method = call->server->stream_methods[call->method_index];
		return true;
	}
	if (call->unary_index != SIZE_MAX) {
		call->method = call->server->unary_methods[call->unary_index];
		return true;
	}
	call->method_copy = vdi_strndup(GRPC_SLICE_START_PTR(call->details.method),
					GRPC_SLICE_LENGTH(call->details.method));
	call->method = call->method_copy;
	return call->method != NULL;
}

static void run_arrive(struct vdi_grpc_tag *tag, bool success)
{
	struct vdi_grpc_server_call *call = VDI_CONTAINER_OF(tag, struct vdi_grpc_server_call, arrive_tag);
	struct vdi_grpc_server	    *server = call->server;
	struct vdi_grpc_server_call *next;

	if (!success) {
		take_back(call); /* the server is draining */
		return;
	}
	if (vdi_grpc_server_call_new(server, &next) == VD_OK)
		place(next, call->notification_queue, call->method_index, call->unary_index);
	else
		call->offers_again = true;
	vdi_lock_acquire(&server->lock);
	server->offers--;
	call->is_refused = !name_method(call) || call->offers_again || server->is_notified;
	call->code = server->is_notified ? VDI_RPC_UNAVAILABLE : VDI_RPC_RESOURCE_EXHAUSTED;
	call->next = server->calls;
	if (call->next)
		call->next->previous = call;
	server->calls = call;
	vdi_lock_release(&server->lock);
	vdi_grpc_server_call_arrive(call);
}

void vdi_grpc_accept_again(struct vdi_grpc_server_call *call)
{
	place(call, call->notification_queue, call->method_index, call->unary_index);
}
