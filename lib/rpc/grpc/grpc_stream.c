/* A stream of messages in both directions.
 *
 * Each kind of batch has its own tag, and at most one batch of a kind is outstanding: opening (our metadata),
 * the peer's metadata, sending, receiving, the status. All batches are started under the stream's lock, which
 * callers' threads and the queue's thread share. The end is reported when the status has arrived and no tag
 * is outstanding, so no callback follows it.
 *
 * Messages are given to core one by one after the opening batch has succeeded: until then the stream may
 * still move to another endpoint, with all queued messages. The single request of a server stream is such a
 * message too.
 */
#include "grpc_client_state.h"

struct outgoing {
	struct outgoing	 *next;
	grpc_byte_buffer *message;
};

struct stream {
	struct vdi_rpc_stream		      stream;
	struct vdi_grpc_rpc		      rpc;
	const struct vdi_rpc_stream_handlers *handlers;
	void				     *arg;
	bool				      is_single; /* one request, sent right after the opening */
	struct vdi_lock			      lock;

	/* Under lock. */
	unsigned	  tags;	      /* outstanding */
	bool		  is_running; /* core has the call */
	bool		  is_opened;
	bool		  is_ended; /* the end was reported, or is being reported */
	bool		  is_freed; /* by its user */
	bool		  is_left;  /* by the client */
	struct outgoing	 *queue;
	struct outgoing **queue_last;
	bool		  is_sending;
	bool		  wants_half_close;
	bool		  is_half_closed;
	bool		  is_receiving;	 /* core has a receive */
	bool		  wants_message; /* requested, and not yet with core */

	/* Queue's thread only. */
	bool has_status;

	/* Used by core. */
	struct vdi_grpc_tag    open_tag;
	struct vdi_grpc_tag    metadata_tag;
	struct vdi_grpc_tag    send_tag;
	struct vdi_grpc_tag    receive_tag;
	struct vdi_grpc_tag    status_tag;
	grpc_metadata_array    metadata;
	grpc_byte_buffer      *received;
	struct vdi_grpc_status status;
};

static struct stream *stream_of(struct vdi_rpc_stream *stream)
{
	return VDI_CONTAINER_OF(stream, struct stream, stream);
}

static void free_stream(struct stream *stream)
{
	vdi_lock_fini(&stream->lock);
	vdi_free(stream);
}

/* ---- Batches ---- */

static void start_locked(struct stream *stream, const grpc_op *ops, size_t count, struct vdi_grpc_tag *tag)
{
	grpc_call      *core = stream->rpc.core; /* must be read before the tag is handed over */
	grpc_call_error error;

	stream->tags++;
	vdi_grpc_tag_hand(tag);
	error = grpc_call_start_batch(core, ops, count, tag, NULL);
	VDI_CHECK(error == GRPC_CALL_OK);
}

static void send_next_locked(struct stream *stream)
{
	struct outgoing *outgoing = stream->queue;
	grpc_op		 ops[2] = { 0 };
	size_t		 count = 1;

	if (!stream->is_running || !stream->is_opened || stream->is_sending)
		return;
	if (stream->is_single && !stream->is_half_closed) {
		stream->is_half_closed = true;
		ops[0].op = GRPC_OP_SEND_MESSAGE;
		ops[0].data.send_message.send_message = stream->rpc.message;
		ops[count++].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
	} else if (outgoing) {
		stream->queue = outgoing->next;
		if (stream->queue == NULL)
			stream->queue_last = &stream->queue;
		ops[0].op = GRPC_OP_SEND_MESSAGE;
		ops[0].data.send_message.send_message = outgoing->message;
	} else if (stream->wants_half_close && !stream->is_half_closed) {
		stream->is_half_closed = true;
		ops[0].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
	} else
		return;
	stream->is_sending = true;
	start_locked(stream, ops, count, &stream->send_tag);
	if (outgoing) {
		grpc_byte_buffer_destroy(outgoing->message);
		vdi_free(outgoing);
	}
}

static void receive_next_locked(struct stream *stream)
{
	grpc_op op = { .op = GRPC_OP_RECV_MESSAGE };

	if (!stream->is_running || !stream->wants_message || stream->is_receiving)
		return;
	stream->wants_message = false;
	stream->is_receiving = true;
	stream->received = NULL;
	op.data.recv_message.recv_message = &stream->received;
	start_locked(stream, &op, 1, &stream->receive_tag);
}

static void drop_queue_locked(struct stream *stream)
{
	while (stream->queue) {
		struct outgoing *outgoing = stream->queue;

		stream->queue = outgoing->next;
		grpc_byte_buffer_destroy(outgoing->message);
		vdi_free(outgoing);
	}
	stream->queue_last = &stream->queue;
}

static void start(struct vdi_grpc_rpc *rpc)
{
	struct stream *stream = VDI_CONTAINER_OF(rpc, struct stream, rpc);
	grpc_op	       open_op = vdi_grpc_rpc_metadata_op(rpc);
	grpc_op	       metadata_op = { .op = GRPC_OP_RECV_INITIAL_METADATA };
	grpc_op	       status_op;

	vdi_lock_acquire(&stream->lock);
	vdi_grpc_status_init(&stream->status);
	grpc_metadata_array_init(&stream->metadata);
	start_locked(stream, &open_op, 1, &stream->open_tag);
	metadata_op.data.recv_initial_metadata.recv_initial_metadata = &stream->metadata;
	start_locked(stream, &metadata_op, 1, &stream->metadata_tag);
	status_op = vdi_grpc_status_op(&stream->status);
	start_locked(stream, &status_op, 1, &stream->status_tag);
	stream->is_running = true;
	receive_next_locked(stream);
	vdi_lock_release(&stream->lock);
}

/* ---- End ---- */

static void notify_end(struct stream *stream, const struct vdi_rpc_end *end)
{
	bool is_freed;

	vdi_lock_acquire(&stream->lock);
	stream->is_ended = true;
	drop_queue_locked(stream);
	vdi_lock_release(&stream->lock);
	stream->handlers->ended(stream->arg, end);
	vdi_grpc_rpc_fini(&stream->rpc);
	vdi_grpc_rpc_leave(&stream->rpc);
	vdi_lock_acquire(&stream->lock);
	stream->is_left = true;
	is_freed = stream->is_freed;
	vdi_lock_release(&stream->lock);
	if (is_freed)
		free_stream(stream);
}

static void refused(struct vdi_grpc_rpc *rpc, const struct vdi_rpc_end *end)
{
	notify_end(VDI_CONTAINER_OF(rpc, struct stream, rpc), end);
}

/* Called by each tag when it has completed. After the last one the stream is not accessed any more. */
static void give_back(struct stream *stream)
{
	struct vdi_grpc_ending ending;
	bool		       is_last;

	vdi_lock_acquire(&stream->lock);
	is_last = --stream->tags == 0 && stream->has_status;
	if (is_last)
		stream->is_running = false; /* no new batch is started */
	vdi_lock_release(&stream->lock);
	if (!is_last)
		return;
	grpc_metadata_array_destroy(&stream->metadata);
	stream->has_status = false;
	if (!vdi_grpc_rpc_ended(&stream->rpc, &stream->status, &ending)) {
		vdi_lock_acquire(&stream->lock);
		stream->wants_message = stream->wants_message || stream->is_receiving;
		stream->is_receiving = false;
		vdi_lock_release(&stream->lock);
		return;
	}
	notify_end(stream, &ending.end);
	vdi_grpc_text_fini(&ending.text);
}

/* ---- Tags ---- */

static void notify_opened(struct stream *stream)
{
	if (stream->rpc.was_opened)
		return;
	stream->rpc.was_opened = true;
	if (stream->handlers->opened)
		stream->handlers->opened(stream->arg, stream->rpc.channel->name);
}

static void run_open(struct vdi_grpc_tag *tag, bool success)
{
	struct stream *stream = VDI_CONTAINER_OF(tag, struct stream, open_tag);

	if (success) {
		notify_opened(stream);
		vdi_lock_acquire(&stream->lock);
		stream->is_opened = true;
		send_next_locked(stream);
		vdi_lock_release(&stream->lock);
	}
	give_back(stream);
}

static void run_metadata(struct vdi_grpc_tag *tag, bool success)
{
	(void) success; /* the status has the result */
	give_back(VDI_CONTAINER_OF(tag, struct stream, metadata_tag));
}

static void run_send(struct vdi_grpc_tag *tag, bool success)
{
	struct stream *stream = VDI_CONTAINER_OF(tag, struct stream, send_tag);

	vdi_lock_acquire(&stream->lock);
	stream->is_sending = !success; /* after a failure the status follows and nothing more is sent */
	if (success)
		send_next_locked(stream);
	vdi_lock_release(&stream->lock);
	give_back(stream);
}

static void run_receive(struct vdi_grpc_tag *tag, bool success)
{
	struct stream	      *stream = VDI_CONTAINER_OF(tag, struct stream, receive_tag);
	struct vdi_rpc_message message = { 0 };
	grpc_byte_buffer      *received = stream->received;

	(void) success; /* no buffer: end or failure; the status has the reason */
	vdi_lock_acquire(&stream->lock);
	stream->is_receiving = received == NULL; /* after the end nothing more is requested */
	vdi_lock_release(&stream->lock);
	if (received) {
		if (vdi_grpc_message_unpack(received, &message) == VD_OK) {
			notify_opened(stream);
			stream->handlers->message(stream->arg, &message);
		} else {
			vdi_lock_acquire(&stream->lock);
			vdi_grpc_rpc_stop(&stream->rpc, VDI_GRPC_NO_MEMORY, 0);
			vdi_lock_release(&stream->lock);
		}
	}
	give_back(stream);
}

static void run_status(struct vdi_grpc_tag *tag, bool success)
{
	struct stream *stream = VDI_CONTAINER_OF(tag, struct stream, status_tag);

	(void) success; /* always true */
	stream->has_status = true;
	give_back(stream);
}

/* ---- Functions for the client's user ---- */

vd_status vdi_grpc_stream_open(struct vdi_rpc_client *client, const struct vdi_rpc_request *request,
			       const struct vdi_rpc_stream_handlers *handlers, void *arg,
			       struct vdi_rpc_stream **ret_stream)
{
	static const struct vdi_grpc_rpc_ops ops = { .is_stream = true, .start = start, .refused = refused };
	struct stream			    *stream = VDI_NEW(struct stream);
	vd_status			     status;

	if (stream == NULL)
		return VD_NOMEM;
	stream->stream.client = client;
	stream->handlers = handlers;
	stream->arg = arg;
	stream->is_single = request->half_close;
	stream->queue_last = &stream->queue;
	stream->open_tag.run = run_open;
	stream->metadata_tag.run = run_metadata;
	stream->send_tag.run = run_send;
	stream->receive_tag.run = run_receive;
	stream->status_tag.run = run_status;
	vdi_lock_init(&stream->lock, VDI_LOCK_RPC_STREAM);
	status = vdi_grpc_rpc_init(&stream->rpc, &ops,
				   VDI_CONTAINER_OF(client, struct vdi_grpc_client, client), request);
	if (status != VD_OK) {
		free_stream(stream);
		return status;
	}
	status = vdi_grpc_rpc_admit(&stream->rpc, request->endpoint);
	if (status != VD_OK) {
		vdi_grpc_rpc_fini(&stream->rpc);
		free_stream(stream);
		return status;
	}
	*ret_stream = &stream->stream; /* set before the first callback */
	vdi_grpc_rpc_submit(&stream->rpc);
	return VD_OK;
}

vd_status vdi_grpc_stream_send(struct vdi_rpc_stream *base, struct vd_bytes message)
{
	struct stream	       *stream = stream_of(base);
	struct vdi_grpc_client *client = stream->rpc.client;
	struct outgoing	       *outgoing = VDI_NEW(struct outgoing);

	if (outgoing == NULL)
		return VD_NOMEM;
	vdi_lock_acquire(&stream->lock);
	if (stream->is_ended || stream->wants_half_close || stream->is_single) {
		vdi_lock_release(&stream->lock);
		vdi_free(outgoing);
		return VD_OK;
	}
	if (message.size > client->send_size_max) {
		vdi_grpc_rpc_stop(&stream->rpc, VDI_GRPC_TOO_BIG, message.size);
		vdi_lock_release(&stream->lock);
		vdi_free(outgoing);
		return VD_OK;
	}
	outgoing->message = vdi_grpc_message_pack(message);
	if (outgoing->message == NULL) {
		vdi_lock_release(&stream->lock);
		vdi_free(outgoing);
		return VD_NOMEM;
	}
	*stream->queue_last = outgoing;
	stream->queue_last = &outgoing->next;
	send_next_locked(stream);
	vdi_lock_release(&stream->lock);
	return VD_OK;
}

void vdi_grpc_stream_receive(struct vdi_rpc_stream *base)
{
	struct stream *stream = stream_of(base);

	vdi_lock_acquire(&stream->lock);
	stream->wants_message = !stream->is_ended;
	receive_next_locked(stream);
	vdi_lock_release(&stream->lock);
}

void vdi_grpc_stream_half_close(struct vdi_rpc_stream *base)
{
	struct stream *stream = stream_of(base);

	vdi_lock_acquire(&stream->lock);
	stream->wants_half_close = true;
	send_next_locked(stream);
	vdi_lock_release(&stream->lock);
}

void vdi_grpc_stream_cancel(struct vdi_rpc_stream *base)
{
	struct stream *stream = stream_of(base);

	vdi_lock_acquire(&stream->lock);
	if (!stream->is_ended)
		vdi_grpc_rpc_stop(&stream->rpc, VDI_GRPC_CANCELED, 0);
	vdi_lock_release(&stream->lock);
}

void vdi_grpc_stream_free(struct vdi_rpc_stream *base)
{
	struct stream *stream = base ? stream_of(base) : NULL;
	bool	       is_left;

	if (stream == NULL)
		return;
	vdi_lock_acquire(&stream->lock);
	VDI_CHECK(stream->is_ended && !stream->is_freed);
	stream->is_freed = true;
	is_left = stream->is_left;
	vdi_lock_release(&stream->lock);
	if (is_left)
		free_stream(stream);
}
