/* Streams with the client's metadata and a valid token.
 *
 * A stream is opened on the client's actor after the preflight, because a token may have to be fetched first.
 * Messages and requests of its owner are kept until then, and passed on in order once the transport's stream
 * exists. The transport may end a stream before its open function has returned; then the actor delivers the
 * end after the handle is stored, so that free always has a handle to free.
 */
#include "etcd_call.h"

struct pending {
	STAILQ_ENTRY(pending) node;
	struct vd_bytes message; /* bytes follow this struct */
};

enum stream_state {
	STREAM_NEW,	/* waits for the actor or the preflight */
	STREAM_OPENING, /* the actor is inside the transport's open function */
	STREAM_OPEN,
	STREAM_ENDED, /* the owner was notified, or is about to be */
};

struct vdi_etcd_stream {
	/* Fixed at open. */
	struct vd_etcd		      *client;
	enum vdi_etcd_method	       method;
	struct vdi_rpc_stream_handlers handlers;
	void			      *arg;
	struct vdi_rpc_metadata	      *metadata;
	size_t			       metadata_count;
	char			      *message;
	size_t			       message_size;
	char			      *endpoint;
	bool			       require_leader;
	bool			       half_close;
	vd_mono			       due;

	/* Under the client's lock. */
	enum stream_state state;
	bool		  is_in_inbox;
	TAILQ_ENTRY(vdi_etcd_stream) inbox_node;
	struct vdi_rpc_stream *rpc; /* not NULL from OPEN on */
	STAILQ_HEAD(, pending) pending;
	bool		    wants_message;
	bool		    wants_half_close;
	bool		    is_canceled;
	bool		    has_ended_early;
	struct vdi_etcd_end end; /* stored if it came while opening */

	/* Actor only. */
	struct vdi_etcd_waiter waiter;
};

static void free_stream(struct vdi_etcd_stream *stream)
{
	struct pending *pending;

	while ((pending = STAILQ_FIRST(&stream->pending)) != NULL) {
		STAILQ_REMOVE_HEAD(&stream->pending, node);
		vdi_free(pending);
	}
	vdi_free(stream->metadata);
	vdi_free(stream->message);
	vdi_free(stream->endpoint);
	vdi_free(stream);
}

static void push_inbox_locked(struct vdi_etcd_stream *stream)
{
	if (!stream->is_in_inbox) {
		stream->is_in_inbox = true;
		TAILQ_INSERT_TAIL(&stream->client->stream_inbox, stream, inbox_node);
	}
	vdi_etcd_wake_locked(stream->client);
}

static void leave_inbox_locked(struct vdi_etcd_stream *stream)
{
	if (stream->is_in_inbox)
		TAILQ_REMOVE(&stream->client->stream_inbox, stream, inbox_node);
	stream->is_in_inbox = false;
}

struct vdi_etcd_stream *vdi_etcd_stream_pop_locked(struct vd_etcd *client)
{
	struct vdi_etcd_stream *stream = TAILQ_FIRST(&client->stream_inbox);

	if (stream)
		leave_inbox_locked(stream);
	return stream;
}

/* ---- The transport's handlers ---- */

static void on_opened(void *arg, const char *endpoint)
{
	struct vdi_etcd_stream *stream = arg;

	if (stream->handlers.opened)
		stream->handlers.opened(stream->arg, endpoint);
}

static void on_message(void *arg, struct vdi_rpc_message *message)
{
	struct vdi_etcd_stream *stream = arg;

	stream->handlers.message(stream->arg, message);
}

static void on_ended(void *arg, const struct vdi_rpc_end *end)
{
	struct vdi_etcd_stream *stream = arg;
	bool			is_early;

	vdi_lock_acquire(&stream->client->lock);
	is_early = stream->state == STREAM_OPENING;
	if (is_early) {
		vdi_etcd_end_copy(&stream->end, end);
		stream->has_ended_early = true;
	} else {
		stream->state = STREAM_ENDED;
	}
	vdi_lock_release(&stream->client->lock);
	if (!is_early)
		stream->handlers.ended(stream->arg, end);
}

/* ---- Opening; actor ---- */

/* Delivers the end. A stream that is canceled while it is handled is in the inbox again; it is removed from
 * there, because its owner may free an ended stream at any moment. */
static void deliver_end(struct vdi_etcd_stream *stream, const struct vdi_rpc_end *end)
{
	vdi_lock_acquire(&stream->client->lock);
	stream->state = STREAM_ENDED;
	leave_inbox_locked(stream);
	vdi_lock_release(&stream->client->lock);
	stream->handlers.ended(stream->arg, end);
}

static void deliver_own_end(struct vdi_etcd_stream *stream, int code, const char *text)
{
	const struct vdi_rpc_end end = {
		.code = code, .message = text, .endpoint = "", .unsent = true, .local = true
	};

	deliver_end(stream, &end);
}

static vd_status open_transport(struct vdi_etcd_stream *stream, struct vdi_rpc_stream **ret_rpc)
{
	static const struct vdi_rpc_stream_handlers handlers = { on_opened, on_message, on_ended };
	struct vd_etcd				   *client = stream->client;
	struct vdi_etcd_metadata		    metadata;
	struct vdi_rpc_request			    request = {
				     .method = vdi_etcd_methods[stream->method].path,
				     .message = { stream->message, stream->message_size },
				     .half_close = stream->half_close,
	};
	vd_status status;

	if (!vdi_etcd_endpoint_index(client, stream->endpoint, &request.endpoint))
		return VD_INVALID_ARGUMENT;
	if (stream->due.ns != VD_NEVER.ns) {
		request.timeout = vd_mono_since(stream->due, vd_env_now(client->env));
		request.timeout.ns = VDI_MAX(request.timeout.ns, 1);
	}
	VDI_TRY(vdi_etcd_metadata_make(client, stream->require_leader, true, stream->metadata,
				       stream->metadata_count, &metadata));
	request.metadata = metadata.items;
	request.metadata_count = metadata.count;
	status = client->transport->ops->stream_open(client->transport, &request, &handlers, stream, ret_rpc);
	vdi_etcd_metadata_fini(&metadata);
	return status;
}

/* Passes on kept messages. The transport copies them; if it has no memory for one, the stream ends. */
static void pass_on_pending_locked(struct vdi_etcd_stream *stream)
{
	const struct vdi_rpc_client_ops *ops = stream->client->transport->ops;
	struct pending			*pending;

	while ((pending = STAILQ_FIRST(&stream->pending)) != NULL) {
		STAILQ_REMOVE_HEAD(&stream->pending, node);
		if (ops->stream_send(stream->rpc, pending->message) != VD_OK)
			stream->is_canceled = true;
		vdi_free(pending);
	}
	if (stream->wants_half_close)
		ops->stream_half_close(stream->rpc);
	if (stream->wants_message)
		ops->stream_receive(stream->rpc);
	if (stream->is_canceled)
		ops->stream_cancel(stream->rpc);
}

static void open_now(struct vdi_etcd_stream *stream)
{
	struct vd_etcd	      *client = stream->client;
	struct vdi_rpc_stream *rpc = NULL;
	struct vdi_etcd_end    end; /* a copy, because the stream may be freed by its owner's callback */
	bool		       is_canceled;
	bool		       has_ended;
	vd_status	       status;

	vdi_lock_acquire(&client->lock);
	is_canceled = stream->is_canceled;
	if (!is_canceled)
		stream->state = STREAM_OPENING;
	vdi_lock_release(&client->lock);
	if (is_canceled) {
		deliver_own_end(stream, VDI_RPC_CANCELED, "context canceled");
		return;
	}
	status = open_transport(stream, &rpc);
	if (status != VD_OK) {
		if (status == VD_NOMEM)
			deliver_own_end(stream, VDI_RPC_RESOURCE_EXHAUSTED, VDI_ETCD_NO_MEMORY_TEXT);
		else
			deliver_own_end(stream, VDI_RPC_UNAVAILABLE, vd_status_sentence(status));
		return;
	}
	vdi_lock_acquire(&client->lock);
	stream->rpc = rpc;
	has_ended = stream->has_ended_early;
	if (has_ended) {
		vdi_etcd_end_copy(&end, &stream->end.end);
	} else {
		stream->state = STREAM_OPEN;
		pass_on_pending_locked(stream);
	}
	vdi_lock_release(&client->lock);
	if (has_ended)
		deliver_end(stream, &end.end);
}

static void resume(struct vdi_etcd_waiter *waiter, const struct vdi_etcd_end *failed)
{
	struct vdi_etcd_stream *stream = VDI_CONTAINER_OF(waiter, struct vdi_etcd_stream, waiter);
	struct vdi_etcd_end	end;

	if (failed == NULL) {
		open_now(stream);
		return;
	}
	/* The deadline of the token request has passed, not that of the stream. clientv3 waits for a token as
	 * long as the stream exists, so the owner shall try again. */
	vdi_etcd_end_copy(&end, &failed->end);
	if (end.end.code == VDI_RPC_DEADLINE_EXCEEDED)
		end.end.code = VDI_RPC_UNAVAILABLE;
	deliver_end(stream, &end.end);
}

void vdi_etcd_stream_step(struct vdi_etcd_stream *stream)
{
	struct vd_etcd *client = stream->client;
	bool		is_canceled;
	bool		is_new;
	bool		is_preflight_done;

	vdi_lock_acquire(&client->lock);
	is_new = stream->state == STREAM_NEW;
	is_canceled = stream->is_canceled;
	is_preflight_done = vdi_etcd_preflight_is_done_locked(client);
	vdi_lock_release(&client->lock);
	if (!is_new)
		return;
	if (is_canceled) {
		vdi_etcd_preflight_leave(client, &stream->waiter);
		deliver_own_end(stream, VDI_RPC_CANCELED, "context canceled");
	} else if (client->user || !is_preflight_done) {
		if (!stream->waiter.waits)
			vdi_etcd_preflight_wait(client, &stream->waiter, true);
	} else {
		open_now(stream);
	}
}

/* ---- For the owner ---- */

static vd_status copy_request(struct vdi_etcd_stream *stream, const struct vdi_etcd_stream_request *request)
{
	stream->metadata_count = request->metadata_count;
	VDI_TRY(vdi_etcd_metadata_copy(request->metadata, request->metadata_count, &stream->metadata));
	if (request->endpoint && (stream->endpoint = vdi_strdup(request->endpoint)) == NULL)
		return VD_NOMEM;
	stream->message_size = request->message.size;
	if (request->message.size &&
	    (stream->message = vdi_strndup(request->message.data, request->message.size)) == NULL)
		return VD_NOMEM;
	return VD_OK;
}

vd_status vdi_etcd_stream_open(struct vd_etcd *client, const struct vdi_etcd_stream_request *request,
			       const struct vdi_rpc_stream_handlers *handlers, void *arg,
			       struct vdi_etcd_stream **ret_stream)
{
	struct vdi_etcd_stream *stream;
	vd_status		status;
	int			index;

	if (!vdi_etcd_endpoint_index(client, request->endpoint, &index))
		return VD_INVALID_ARGUMENT;
	stream = VDI_NEW(struct vdi_etcd_stream);
	if (stream == NULL)
		return VD_NOMEM;
	stream->client = client;
	stream->method = request->method;
	stream->handlers = *handlers;
	stream->arg = arg;
	stream->require_leader = request->require_leader;
	stream->half_close = request->half_close;
	stream->due = request->due.ns ? request->due : VD_NEVER;
	stream->waiter.resume = resume;
	STAILQ_INIT(&stream->pending);
	status = copy_request(stream, request);
	if (status == VD_OK) {
		vdi_lock_acquire(&client->lock);
		if (client->is_closing) {
			status = VD_CLOSED;
		} else {
			client->stream_count++;
			*ret_stream = stream;
			push_inbox_locked(stream);
		}
		vdi_lock_release(&client->lock);
	}
	if (status != VD_OK)
		free_stream(stream);
	return status;
}

vd_status vdi_etcd_stream_send(struct vdi_etcd_stream *stream, struct vd_bytes message)
{
	struct vdi_rpc_stream *rpc;
	struct pending	      *pending;
	bool		       is_over;
	bool		       has_room = true;

	vdi_lock_acquire(&stream->client->lock);
	rpc = stream->rpc;
	is_over = stream->state == STREAM_ENDED;
	if (rpc == NULL && !is_over) {
		pending = vdi_alloc(sizeof *pending + message.size);
		has_room = pending != NULL;
		if (has_room) {
			if (message.size)
				memcpy(pending + 1, message.data, message.size);
			pending->message = (struct vd_bytes) { pending + 1, message.size };
			STAILQ_INSERT_TAIL(&stream->pending, pending, node);
		}
	}
	vdi_lock_release(&stream->client->lock);
	if (!has_room)
		return VD_NOMEM;
	return rpc && !is_over ? stream->client->transport->ops->stream_send(rpc, message) : VD_OK;
}

void vdi_etcd_stream_receive_locked(struct vdi_etcd_stream *stream)
{
	if (stream->state == STREAM_OPEN)
		stream->client->transport->ops->stream_receive(stream->rpc);
	else
		stream->wants_message = true;
}

void vdi_etcd_stream_receive(struct vdi_etcd_stream *stream)
{
	vdi_lock_acquire(&stream->client->lock);
	vdi_etcd_stream_receive_locked(stream);
	vdi_lock_release(&stream->client->lock);
}

void vdi_etcd_stream_half_close(struct vdi_etcd_stream *stream)
{
	vdi_lock_acquire(&stream->client->lock);
	if (stream->state == STREAM_OPEN)
		stream->client->transport->ops->stream_half_close(stream->rpc);
	else
		stream->wants_half_close = true;
	vdi_lock_release(&stream->client->lock);
}

void vdi_etcd_stream_cancel_locked(struct vdi_etcd_stream *stream)
{
	if (stream->is_canceled)
		return;
	stream->is_canceled = true;
	if (stream->state == STREAM_NEW)
		push_inbox_locked(stream);
	else if (stream->state == STREAM_OPEN)
		stream->client->transport->ops->stream_cancel(stream->rpc);
}

void vdi_etcd_stream_cancel(struct vdi_etcd_stream *stream)
{
	vdi_lock_acquire(&stream->client->lock);
	vdi_etcd_stream_cancel_locked(stream);
	vdi_lock_release(&stream->client->lock);
}

void vdi_etcd_stream_free(struct vdi_etcd_stream *stream)
{
	struct vd_etcd *client = stream->client;

	VDI_CHECK(stream->state == STREAM_ENDED);
	if (stream->rpc)
		client->transport->ops->stream_free(stream->rpc);
	vdi_lock_acquire(&client->lock);
	client->stream_count--;
	if (client->is_closing)
		vdi_etcd_wake_locked(client);
	vdi_lock_release(&client->lock);
	free_stream(stream);
}
