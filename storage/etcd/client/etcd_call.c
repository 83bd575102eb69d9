/* The states of a call, from start to end (etcd client/v3 retry_interceptor.go).
 *
 * 	start --preflight done--> STARTING --> RUNNING --> ENDED --last attempt--> finish
 * 	  \                     ^                       | repeat
 * 	   `--> WAITING --------'<----------------------'
 *
 * If nothing delays it, an attempt begins on the thread that starts the call, else on the actor. Before the
 * transport's start function returns the handle, the call may already have ended, been repeated, or been
 * freed; so the call is then looked up again by id and attempt.
 */
#include "etcd_call.h"

#define RETRY_WAIT VD_MS(25)

/* ---- The table of ids ---- */

static vd_status slot_take_locked(struct vd_etcd *client, struct vdi_etcd_call *call)
{
	struct vdi_etcd_slot *slot;
	uint32_t	      index;

	if (client->slot_free) {
		index = client->slot_free - 1;
		client->slot_free = client->slots[index].next_free;
	} else {
		if (client->slot_count == UINT32_MAX - 1 ||
		    !vdi_grow((void **) &client->slots, &client->slot_capacity, client->slot_count + 1,
			      sizeof *client->slots))
			return VD_NOMEM;
		index = (uint32_t) client->slot_count++;
		client->slots[index] = (struct vdi_etcd_slot) { 0 };
	}
	slot = &client->slots[index];
	slot->call = call;
	slot->generation++;
	call->id = (uint64_t) slot->generation << 32 | (index + 1);
	client->call_count++;
	return VD_OK;
}

static void slot_give_locked(struct vd_etcd *client, const struct vdi_etcd_call *call)
{
	uint32_t	      index = (uint32_t) call->id - 1;
	struct vdi_etcd_slot *slot = &client->slots[index];

	slot->call = NULL;
	slot->next_free = client->slot_free;
	client->slot_free = index + 1;
	client->call_count--;
	if (client->is_closing)
		vdi_etcd_wake_locked(client);
}

static struct vdi_etcd_call *find_locked(struct vd_etcd *client, uint64_t id)
{
	size_t index = (size_t) (uint32_t) id - 1;

	if ((uint32_t) id == 0 || index >= client->slot_count ||
	    client->slots[index].generation != (uint32_t) (id >> 32))
		return NULL;
	return client->slots[index].call;
}

/* ---- Making ---- */

vd_status vdi_etcd_call_new(struct vd_etcd *client, const struct vd_etcd_call *options,
			    enum vdi_etcd_method method, vdi_etcd_finish_fn finish, vdi_etcd_any_fn done,
			    void *arg, struct vdi_etcd_call **ret_call)
{
	static const struct vd_etcd_call defaults;
	struct vdi_etcd_call		*call;
	vd_dur				 timeout;
	vd_status			 status;
	int				 index;

	options = options ? options : &defaults;
	if (client == NULL || done == NULL || (options->metadata_count && options->metadata == NULL) ||
	    options->timeout.ns < 0 || !vdi_etcd_endpoint_index(client, options->endpoint, &index))
		return VD_INVALID_ARGUMENT;
	call = VDI_NEW(struct vdi_etcd_call);
	if (call == NULL)
		return VD_NOMEM;
	call->client = client;
	call->method = method;
	call->finish = finish;
	call->done = done;
	call->arg = arg;
	call->require_leader = options->require_leader;
	vdi_buffer_init(&call->request, INT32_MAX);
	timeout = options->timeout.ns ? options->timeout : client->call_timeout;
	call->due = timeout.ns ? vd_mono_add(vd_env_now(client->env), timeout) : VD_NEVER;
	call->metadata_count = options->metadata_count;
	status = vdi_etcd_metadata_copy(options->metadata, options->metadata_count, &call->metadata);
	if (status == VD_OK && options->endpoint) {
		call->endpoint = vdi_strdup(options->endpoint);
		status = call->endpoint ? VD_OK : VD_NOMEM;
	}
	if (status == VD_OK && vdi_etcd_methods[method].kind != VDI_ETCD_UNARY) {
		call->stop_error = VDI_NEW(struct vd_etcd_error);
		status = call->stop_error ? VD_OK : VD_NOMEM;
	}
	if (status != VD_OK) {
		vdi_etcd_call_free(call);
		return status;
	}
	*ret_call = call;
	return VD_OK;
}

void vdi_etcd_call_free(struct vdi_etcd_call *call)
{
	if (call == NULL)
		return;
	vdi_rpc_message_release(&call->message);
	vdi_buffer_fini(&call->request);
	vdi_free(call->metadata);
	vdi_free(call->endpoint);
	vdi_free(call->stop_error);
	vdi_free(call);
}

vd_status vdi_etcd_call_message(struct vd_etcd *client, const struct vd_etcd_call *options,
				enum vdi_etcd_method method, vdi_etcd_finish_fn finish, vdi_etcd_any_fn done,
				void *arg, const ProtobufCMessage *message)
{
	struct vdi_etcd_call *call;

	VDI_TRY(vdi_etcd_call_new(client, options, method, finish, done, arg, &call));
	return vdi_etcd_call_start(call, vdi_etcd_proto_pack(message, &call->request),
				   options ? options->ret_id : NULL);
}

/* ---- One attempt ---- */

static void push_inbox_locked(struct vdi_etcd_call *call)
{
	if (!call->is_in_inbox) {
		call->is_in_inbox = true;
		TAILQ_INSERT_TAIL(&call->client->call_inbox, call, inbox_node);
	}
	vdi_etcd_wake_locked(call->client);
}

static void on_done(void *arg, const struct vdi_rpc_end *end, struct vdi_rpc_message *message)
{
	struct vdi_etcd_call *call = arg;
	struct vd_etcd	     *client = call->client;

	vdi_lock_acquire(&client->lock);
	vdi_etcd_end_copy(&call->end, end);
	if (end->code == VDI_RPC_OK && message)
		call->message = *message;
	call->state = VDI_ETCD_CALL_ENDED;
	call->rpc = NULL;
	push_inbox_locked(call);
	vdi_lock_release(&client->lock);
}

static void on_stream_message(void *arg, struct vdi_rpc_message *message)
{
	struct vdi_etcd_call *call = arg;
	struct vd_etcd	     *client = call->client;

	vdi_lock_acquire(&client->lock);
	call->message = *message;
	call->has_message = true;
	push_inbox_locked(call);
	vdi_lock_release(&client->lock);
}

static void on_stream_ended(void *arg, const struct vdi_rpc_end *end)
{
	struct vdi_etcd_call *call = arg;
	struct vd_etcd	     *client = call->client;

	vdi_lock_acquire(&client->lock);
	vdi_etcd_end_copy(&call->end, end);
	call->state = VDI_ETCD_CALL_ENDED;
	push_inbox_locked(call);
	vdi_lock_release(&client->lock);
}

static vd_status launch_unary(struct vdi_etcd_call *call, struct vdi_rpc_call **ret_rpc)
{
	struct vd_etcd		*client = call->client;
	struct vdi_rpc_request	 request = { .method = vdi_etcd_methods[call->method].path,
					     .message = vdi_buffer_bytes(&call->request) };
	struct vdi_etcd_metadata metadata;
	vd_status		 status;

	if (!vdi_etcd_endpoint_index(client, call->endpoint, &request.endpoint))
		return VD_INVALID_ARGUMENT;
	if (call->due.ns != VD_NEVER.ns) {
		request.timeout = vd_mono_since(call->due, vd_env_now(client->env));
		request.timeout.ns = VDI_MAX(request.timeout.ns, 1);
	}
	VDI_TRY(vdi_etcd_metadata_make(client, call->require_leader,
				       call->method != VDI_ETCD_METHOD_AUTHENTICATE, call->metadata,
				       call->metadata_count, &metadata));
	request.metadata = metadata.items;
	request.metadata_count = metadata.count;
	call->token_generation = metadata.token_generation;
	status = client->transport->ops->call(client->transport, &request, on_done, call, ret_rpc);
	vdi_etcd_metadata_fini(&metadata);
	return status;
}

static vd_status launch_stream(struct vdi_etcd_call *call)
{
	static const struct vdi_rpc_stream_handlers handlers = { .message = on_stream_message,
								 .ended = on_stream_ended };
	struct vd_etcd_pair			   *pairs = NULL;
	struct vdi_etcd_stream_request		    request = {
			     .method = call->method,
			     .require_leader = call->require_leader,
			     .metadata_count = call->metadata_count,
			     .message = vdi_buffer_bytes(&call->request),
			     .half_close = true,
			     .due = call->due,
			     .endpoint = call->endpoint,
	};
	vd_status status;

	if (call->metadata_count) {
		pairs = vdi_calloc(call->metadata_count, sizeof *pairs);
		if (pairs == NULL)
			return VD_NOMEM;
		for (size_t i = 0; i < call->metadata_count; i++)
			pairs[i] = (struct vd_etcd_pair) { call->metadata[i].key, call->metadata[i].value };
		request.metadata = pairs;
	}
	status = vdi_etcd_stream_open(call->client, &request, &handlers, call, &call->stream);
	vdi_free(pairs);
	return status;
}

/* Begins an attempt; the state is STARTING. On failure nothing has begun; on success the call may be freed
 * already when this returns. */
static vd_status launch(struct vdi_etcd_call *call)
{
	struct vd_etcd	    *client = call->client;
	uint64_t	     id = call->id;
	uint64_t	     serial = call->attempt_serial;
	bool		     is_stream = vdi_etcd_methods[call->method].kind != VDI_ETCD_UNARY;
	struct vdi_rpc_call *rpc = NULL;

	VDI_TRY(is_stream ? launch_stream(call) : launch_unary(call, &rpc));
	vdi_lock_acquire(&client->lock);
	if (find_locked(client, id) == call && call->attempt_serial == serial &&
	    call->state == VDI_ETCD_CALL_STARTING) {
		call->state = VDI_ETCD_CALL_RUNNING;
		call->rpc = rpc;
		if (is_stream)
			vdi_etcd_stream_receive_locked(call->stream);
		if (call->context != VDI_ETCD_CONTEXT_ALIVE && is_stream)
			vdi_etcd_stream_cancel_locked(call->stream);
		else if (call->context != VDI_ETCD_CONTEXT_ALIVE)
			client->transport->ops->call_cancel(rpc);
	}
	vdi_lock_release(&client->lock);
	return VD_OK;
}

static bool passes_preflight_locked(const struct vdi_etcd_call *call)
{
	return call->is_internal || vdi_etcd_methods[call->method].kind != VDI_ETCD_UNARY ||
	       vdi_etcd_preflight_is_done_locked(call->client);
}

static void begin_attempt_locked(struct vdi_etcd_call *call)
{
	call->state = VDI_ETCD_CALL_STARTING;
	call->attempt_serial++;
}

static void resume(struct vdi_etcd_waiter *waiter, const struct vdi_etcd_end *failed);

vd_status vdi_etcd_call_start(struct vdi_etcd_call *call, vd_status encoded, uint64_t *ret_id)
{
	struct vd_etcd *client = call->client;
	vd_status	status = encoded;
	bool		is_direct = false;

	if (status != VD_OK) {
		vdi_etcd_call_free(call);
		return status;
	}
	call->waiter.resume = resume;
	vdi_lock_acquire(&client->lock);
	status = client->is_closing ? VD_CLOSED : slot_take_locked(client, call);
	if (status == VD_OK) {
		if (ret_id)
			*ret_id = call->id;
		is_direct = passes_preflight_locked(call);
		if (is_direct) {
			client->starter_count++;
			begin_attempt_locked(call);
		} else {
			push_inbox_locked(call);
		}
	}
	vdi_lock_release(&client->lock);
	if (status != VD_OK) {
		vdi_etcd_call_free(call);
		return status;
	}
	if (!is_direct)
		return VD_OK;
	status = launch(call);
	vdi_lock_acquire(&client->lock);
	if (status != VD_OK)
		slot_give_locked(client, call);
	client->starter_count--;
	if (client->is_closing)
		vdi_etcd_wake_locked(client);
	vdi_lock_release(&client->lock);
	if (status != VD_OK)
		vdi_etcd_call_free(call);
	return status;
}

/* ---- Canceling ---- */

static void cancel_locked(struct vdi_etcd_call *call, enum vdi_etcd_context context)
{
	if (call->context != VDI_ETCD_CONTEXT_ALIVE)
		return;
	call->context = context;
	switch (call->state) {
	case VDI_ETCD_CALL_WAITING: push_inbox_locked(call); break;
	case VDI_ETCD_CALL_RUNNING:
		if (call->stream)
			vdi_etcd_stream_cancel_locked(call->stream);
		else
			call->client->transport->ops->call_cancel(call->rpc);
		break;
	case VDI_ETCD_CALL_STARTING: /* launch() checks the context afterwards */
	case VDI_ETCD_CALL_ENDED: break;
	}
}

void vd_etcd_cancel(struct vd_etcd *client, uint64_t id)
{
	struct vdi_etcd_call *call;

	vdi_lock_acquire(&client->lock);
	call = find_locked(client, id);
	if (call)
		cancel_locked(call, VDI_ETCD_CONTEXT_CANCELED);
	vdi_lock_release(&client->lock);
}

void vd_etcd_range_stream_resume(struct vd_etcd *client, uint64_t id)
{
	struct vdi_etcd_call *call;

	vdi_lock_acquire(&client->lock);
	call = find_locked(client, id);
	if (call && call->method == VDI_ETCD_METHOD_RANGE_STREAM && !call->is_held)
		call->is_resumed = true;
	else if (call && call->is_held && call->state == VDI_ETCD_CALL_RUNNING)
		vdi_etcd_stream_receive_locked(call->stream);
	if (call)
		call->is_held = false;
	vdi_lock_release(&client->lock);
}

void vdi_etcd_calls_close(struct vd_etcd *client)
{
	vdi_lock_acquire(&client->lock);
	for (size_t i = 0; i < client->slot_count; i++)
		if (client->slots[i].call)
			cancel_locked(client->slots[i].call, VDI_ETCD_CONTEXT_CLOSED);
	vdi_lock_release(&client->lock);
}

/* ---- The end; from here on: the actor ---- */

static enum vdi_etcd_context context_of(struct vdi_etcd_call *call)
{
	enum vdi_etcd_context context;

	vdi_lock_acquire(&call->client->lock);
	context = call->context;
	vdi_lock_release(&call->client->lock);
	if (context == VDI_ETCD_CONTEXT_ALIVE && vd_env_now(call->client->env).ns >= call->due.ns)
		context = VDI_ETCD_CONTEXT_TIMEOUT;
	return context;
}

static void finish(struct vdi_etcd_call *call, struct vd_etcd_error *error, struct vd_bytes message)
{
	struct vd_etcd *client = call->client;

	vdi_timer_heap_remove(&client->timers, &call->timer);
	vdi_etcd_preflight_leave(client, &call->waiter);
	vdi_lock_acquire(&client->lock);
	if (call->is_in_inbox)
		TAILQ_REMOVE(&client->call_inbox, call, inbox_node);
	slot_give_locked(client, call);
	vdi_lock_release(&client->lock);
	if (error)
		error->maybe_applied = call->maybe_applied;
	call->finish(call, error, message);
	vdi_etcd_call_free(call);
}

/* Adds a reason to a timeout: the error of the first endpoint that cannot be reached. */
static void explain_timeout(struct vd_etcd *client, struct vd_etcd_error *error)
{
	struct vdi_rpc_endpoint_state state;

	vdi_lock_acquire(&client->lock); /* keeps the list of endpoints unchanged */
	for (size_t i = 0; client->transport->ops->endpoint_state(client->transport, i, &state); i++) {
		if (state.ready || state.last_error[0] == '\0')
			continue;
		(void) vd_error_set(&error->error, error->error.code, "context deadline exceeded: %s: %s",
				    state.endpoint, state.last_error);
		break;
	}
	vdi_lock_release(&client->lock);
}

static void finish_end(struct vdi_etcd_call *call, const struct vdi_rpc_end *end,
		       enum vdi_etcd_context context)
{
	struct vd_etcd_error error;

	vdi_etcd_error_of_end(end, context, &error);
	if (context == VDI_ETCD_CONTEXT_TIMEOUT && error.error.code == VD_TIMEOUT &&
	    error.endpoint[0] == '\0')
		explain_timeout(call->client, &error);
	finish(call, &error, VD_BYTES_NONE);
}

static void finish_context(struct vdi_etcd_call *call, enum vdi_etcd_context context)
{
	const struct vdi_rpc_end end = { .code = context == VDI_ETCD_CONTEXT_TIMEOUT ?
							 VDI_RPC_DEADLINE_EXCEEDED :
							 VDI_RPC_CANCELED,
					 .message = "",
					 .endpoint = "",
					 .local = true };

	finish_end(call, &end, context);
}

static void finish_status(struct vdi_etcd_call *call, vd_status status)
{
	struct vd_etcd_error error;

	(void) vdi_etcd_error_set(&error, status, "%s%s", VDI_ETCD_OWN_PREFIX,
				  status == VD_NOMEM		? "out of memory" :
				  status == VD_INVALID_ARGUMENT ? "the endpoint is no longer in the list" :
								  vd_status_sentence(status));
	finish(call, &error, VD_BYTES_NONE);
}

static void attempt(struct vdi_etcd_call *call)
{
	struct vd_etcd *client = call->client;
	bool		is_late = vd_env_now(client->env).ns >= call->due.ns;
	bool		is_over;
	bool		passes;
	vd_status	status;

	call->retries = false;
	vdi_lock_acquire(&client->lock);
	is_over = is_late || call->context != VDI_ETCD_CONTEXT_ALIVE;
	passes = passes_preflight_locked(call);
	call->state = VDI_ETCD_CALL_WAITING;
	if (passes && !is_over)
		begin_attempt_locked(call);
	vdi_lock_release(&client->lock);
	if (is_over) {
		finish_context(call, context_of(call));
		return;
	}
	if (!passes) {
		vdi_timer_heap_set(&client->timers, &call->timer, call->due);
		vdi_etcd_preflight_wait(client, &call->waiter, false);
		return;
	}
	vdi_timer_heap_remove(&client->timers, &call->timer);
	status = launch(call);
	if (status != VD_OK)
		finish_status(call, status);
}

static void resume(struct vdi_etcd_waiter *waiter, const struct vdi_etcd_end *failed)
{
	struct vdi_etcd_call *call = VDI_CONTAINER_OF(waiter, struct vdi_etcd_call, waiter);

	if (failed)
		finish_end(call, &failed->end, context_of(call));
	else
		attempt(call);
}

static void repeat(struct vdi_etcd_call *call)
{
	struct vd_etcd *client = call->client;
	size_t		quorum = client->transport->ops->endpoint_count(client->transport) / 2 + 1;
	vd_mono		at;

	call->attempt++;
	if (call->attempt % quorum != 0) {
		attempt(call);
		return;
	}
	at = vd_mono_add(vd_env_now(client->env), vdi_etcd_jitter(client, RETRY_WAIT));
	vdi_lock_acquire(&client->lock);
	call->state = VDI_ETCD_CALL_WAITING;
	vdi_lock_release(&client->lock);
	call->retries = true;
	vdi_timer_heap_set(&client->timers, &call->timer, at.ns < call->due.ns ? at : call->due);
	/* Canceled before it waited, so nothing else wakes it. */
	if (context_of(call) != VDI_ETCD_CONTEXT_ALIVE)
		attempt(call);
}

static void repeat_with_new_token(struct vdi_etcd_call *call)
{
	struct vd_etcd *client = call->client;
	bool		is_stale;

	/* Each opening of a stream fetches a token anyway. */
	if (vdi_etcd_methods[call->method].kind != VDI_ETCD_UNARY) {
		repeat(call);
		return;
	}
	vdi_lock_acquire(&client->lock);
	is_stale = client->preflight.token_generation ==
		   call->token_generation; /* else another call has fetched a new one meanwhile */
	if (is_stale)
		client->preflight.is_token_known = false;
	vdi_lock_release(&client->lock);
	repeat(call);
}

static void evaluate(struct vdi_etcd_call *call)
{
	struct vdi_etcd_stream	 *stream = call->stream;
	const struct vdi_rpc_end *end = &call->end.end;
	struct vdi_rpc_message	  message;
	enum vdi_etcd_context	  context;
	enum vd_etcd_code	  known;

	if (stream) {
		vdi_lock_acquire(&call->client->lock);
		call->stream = NULL;
		vdi_lock_release(&call->client->lock);
		vdi_etcd_stream_free(stream);
	}
	if (call->is_stopped) {
		finish(call, call->stop_error, VD_BYTES_NONE);
		return;
	}
	if (end->code == VDI_RPC_OK) {
		message = call->message;
		call->message = (struct vdi_rpc_message) { 0 };
		finish(call, NULL, message.bytes);
		vdi_rpc_message_release(&message);
		return;
	}
	known = vdi_etcd_code_of(end->message);
	call->maybe_applied |= vdi_etcd_may_have_applied(call->method, end, known);
	context = context_of(call);
	if (context == VDI_ETCD_CONTEXT_ALIVE && end->local && end->code == VDI_RPC_DEADLINE_EXCEEDED)
		context = VDI_ETCD_CONTEXT_TIMEOUT; /* the transport's clock was slightly ahead */
	if (context != VDI_ETCD_CONTEXT_ALIVE || !vdi_etcd_has_attempts_left(call))
		finish_end(call, end, context);
	else if (!call->is_internal && vdi_etcd_wants_new_token(call->client, known))
		repeat_with_new_token(call);
	else if (vdi_etcd_may_repeat(call, known))
		repeat(call);
	else
		finish_end(call, end, context);
}

/* Delivers a message of a stream to the user, then requests the next one. */
static void deliver_part(struct vdi_etcd_call *call, struct vdi_rpc_message message)
{
	struct vd_etcd *client = call->client;

	call->wants_hold = false;
	if (!call->is_stopped) {
		call->has_parts = true;
		call->is_stopped = !call->part(call, message.bytes, call->stop_error);
	}
	vdi_rpc_message_release(&message);
	vdi_lock_acquire(&client->lock);
	if (call->state != VDI_ETCD_CALL_ENDED && call->is_stopped)
		vdi_etcd_stream_cancel_locked(call->stream);
	else if (call->wants_hold && !call->is_resumed)
		call->is_held = true;
	else if (call->state != VDI_ETCD_CALL_ENDED)
		vdi_etcd_stream_receive_locked(call->stream);
	call->is_resumed = false;
	vdi_lock_release(&client->lock);
}

void vdi_etcd_call_step(struct vdi_etcd_call *call)
{
	struct vd_etcd		*client = call->client;
	struct vdi_rpc_message	 message = { 0 };
	bool			 has_message;
	enum vdi_etcd_call_state state;

	vdi_lock_acquire(&client->lock);
	has_message = call->has_message;
	if (has_message) {
		message = call->message;
		call->message = (struct vdi_rpc_message) { 0 };
		call->has_message = false;
	}
	state = call->state;
	vdi_lock_release(&client->lock);
	if (has_message)
		deliver_part(call, message);
	if (state == VDI_ETCD_CALL_ENDED)
		evaluate(call);
	else if (state == VDI_ETCD_CALL_WAITING && context_of(call) != VDI_ETCD_CONTEXT_ALIVE)
		finish_context(call, context_of(call));
	else if (state == VDI_ETCD_CALL_WAITING && !call->waiter.waits && !call->retries)
		attempt(call);
}

void vdi_etcd_call_timer_due(struct vdi_timer *timer)
{
	struct vdi_etcd_call *call = VDI_CONTAINER_OF(timer, struct vdi_etcd_call, timer);

	if (context_of(call) != VDI_ETCD_CONTEXT_ALIVE)
		finish_context(call, context_of(call));
	else if (call->retries)
		attempt(call);
}
