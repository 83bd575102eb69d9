/* A unary call is one batch of six operations with one tag. From submission on its memory belongs to the
 * queue's thread. */
#include "grpc_client_state.h"

struct unary {
	struct vdi_rpc_call    call;
	struct vdi_grpc_rpc    rpc;
	vdi_rpc_done_fn	       done;
	void		      *arg;
	struct vdi_grpc_tag    tag;
	struct vdi_grpc_status status;
	grpc_metadata_array    metadata;
	grpc_byte_buffer      *answer;
	grpc_byte_buffer      *sent; /* copy for this attempt, because core empties what it sends */
};

static void start(struct vdi_grpc_rpc *rpc)
{
	struct unary   *unary = VDI_CONTAINER_OF(rpc, struct unary, rpc);
	grpc_call      *core = rpc->core; /* the call must not be accessed after its tag was handed over */
	grpc_op		ops[6] = { 0 };
	grpc_call_error error;

	vdi_grpc_status_init(&unary->status);
	grpc_metadata_array_init(&unary->metadata);
	unary->answer = NULL;
	unary->sent = grpc_byte_buffer_copy(rpc->message); /* shares the bytes by reference */
	ops[0] = vdi_grpc_rpc_metadata_op(rpc);
	ops[1].op = GRPC_OP_SEND_MESSAGE;
	ops[1].data.send_message.send_message = unary->sent;
	ops[2].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
	ops[3].op = GRPC_OP_RECV_INITIAL_METADATA;
	ops[3].data.recv_initial_metadata.recv_initial_metadata = &unary->metadata;
	ops[4].op = GRPC_OP_RECV_MESSAGE;
	ops[4].data.recv_message.recv_message = &unary->answer;
	ops[5] = vdi_grpc_status_op(&unary->status);
	vdi_grpc_tag_hand(&unary->tag);
	error = grpc_call_start_batch(core, ops, VDI_ARRAY_SIZE(ops), &unary->tag, NULL);
	VDI_CHECK(error == GRPC_CALL_OK);
}

static void finish(struct unary *unary, const struct vdi_rpc_end *end, struct vdi_rpc_message *message)
{
	unary->done(unary->arg, end, message);
	vdi_grpc_rpc_leave(&unary->rpc);
	vdi_grpc_rpc_fini(&unary->rpc);
	vdi_free(unary);
}

static void refused(struct vdi_grpc_rpc *rpc, const struct vdi_rpc_end *end)
{
	struct vdi_rpc_message none = { 0 };

	finish(VDI_CONTAINER_OF(rpc, struct unary, rpc), end, &none);
}

static void run_tag(struct vdi_grpc_tag *tag, bool success)
{
	struct unary	      *unary = VDI_CONTAINER_OF(tag, struct unary, tag);
	struct vdi_rpc_message message = { 0 };
	struct vdi_grpc_ending ending;

	(void) success; /* always true: the status has the result */
	grpc_metadata_array_destroy(&unary->metadata);
	grpc_byte_buffer_destroy(unary->sent);
	if (unary->status.code != GRPC_STATUS_OK && unary->answer) {
		grpc_byte_buffer_destroy(unary->answer);
		unary->answer = NULL;
	}
	if (!vdi_grpc_rpc_ended(&unary->rpc, &unary->status, &ending))
		return;
	if (ending.end.code == VDI_RPC_OK && unary->answer == NULL) {
		ending.end.code = VDI_RPC_INTERNAL;
		ending.end.message =
			"cardinality violation: received no response message from non-server-streaming RPC";
	} else if (unary->answer && vdi_grpc_message_unpack(unary->answer, &message) != VD_OK) {
		ending.end.code = VDI_RPC_RESOURCE_EXHAUSTED;
		ending.end.message = "out of memory";
		ending.end.local = true;
	}
	finish(unary, &ending.end, &message);
	vdi_grpc_text_fini(&ending.text);
}

vd_status vdi_grpc_call(struct vdi_rpc_client *client, const struct vdi_rpc_request *request,
			vdi_rpc_done_fn done, void *arg, struct vdi_rpc_call **ret_call)
{
	static const struct vdi_grpc_rpc_ops ops = { .is_stream = false, .start = start, .refused = refused };
	struct unary			    *unary = VDI_NEW(struct unary);
	vd_status			     status;

	if (unary == NULL)
		return VD_NOMEM;
	unary->call.client = client;
	unary->done = done;
	unary->arg = arg;
	unary->tag.run = run_tag;
	status = vdi_grpc_rpc_init(&unary->rpc, &ops,
				   VDI_CONTAINER_OF(client, struct vdi_grpc_client, client), request);
	if (status != VD_OK) {
		vdi_free(unary);
		return status;
	}
	status = vdi_grpc_rpc_admit(&unary->rpc, request->endpoint);
	if (status != VD_OK) {
		vdi_grpc_rpc_fini(&unary->rpc);
		vdi_free(unary);
		return status;
	}
	if (ret_call)
		*ret_call = &unary->call; /* set before the call can end */
	vdi_grpc_rpc_submit(&unary->rpc);
	return VD_OK;
}

void vdi_grpc_call_cancel(struct vdi_rpc_call *call)
{
	vdi_grpc_rpc_stop(&VDI_CONTAINER_OF(call, struct unary, call)->rpc, VDI_GRPC_CANCELED, 0);
}
