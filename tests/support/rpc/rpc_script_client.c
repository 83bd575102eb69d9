/* The client's side of the scripted peer (lib/rpc/rpc_client.h), and the actor that delivers due data. */
#include "vdtest.h"
#include "rpc_script_state.h"

/* ---- The client's side ---- */

static struct rpc_script *script_of(struct vdi_rpc_client *client)
{
	return VDI_CONTAINER_OF(client, struct rpc_script, client);
}

static struct rpc_script_call *call_of(struct vdi_rpc_stream *stream)
{
	return VDI_CONTAINER_OF(stream, struct rpc_script_call, stream);
}

static vd_status client_call(struct vdi_rpc_client *client, const struct vdi_rpc_request *request,
			     vdi_rpc_done_fn done, void *arg, struct vdi_rpc_call **ret_call)
{
	struct rpc_script_call *call;

	VDI_TRY(rpc_script_call_new(script_of(client), request, false, &call));
	call->done = done;
	call->arg = arg;
	call->is_asked = true;
	if (ret_call)
		*ret_call = &call->call;
	return VD_OK;
}

/* Between the cancel and its end, a message that is on its way may still arrive. */
static void cancel(struct rpc_script_call *call)
{
	if (call->is_canceling || call->state == CALL_OVER)
		return;
	if (call->has_end && call->end_due.ns <= rpc_script_now(call->script).ns &&
	    call->to_client.first == NULL)
		return; /* the result is on its way */
	call->is_canceling = true;
	if (call->has_end) {
		call->has_end = false;
		vdi_free(call->end_text);
		call->end_text = NULL;
	}
	rpc_script_decide_end(call, rpc_script_arrival(call->script), VDI_RPC_CANCELED, "context canceled",
			      true);
	if (call->state == CALL_OPEN && !call->is_refused)
		rpc_script_queue_put(&call->to_peer, rpc_script_peer_item_new(ITEM_CANCEL, VD_BYTES_NONE),
				     rpc_script_arrival(call->script));
	rpc_script_wake(call->script);
}

static void client_call_cancel(struct vdi_rpc_call *call)
{
	cancel(VDI_CONTAINER_OF(call, struct rpc_script_call, call));
}

static vd_status client_stream_open(struct vdi_rpc_client *client, const struct vdi_rpc_request *request,
				    const struct vdi_rpc_stream_handlers *handlers, void *arg,
				    struct vdi_rpc_stream **ret_stream)
{
	struct rpc_script_call *call;

	VDI_TRY(rpc_script_call_new(script_of(client), request, true, &call));
	call->handlers = *handlers;
	call->arg = arg;
	*ret_stream = &call->stream;
	return VD_OK;
}

static vd_status client_stream_send(struct vdi_rpc_stream *stream, struct vd_bytes message)
{
	struct rpc_script_call *call = call_of(stream);
	struct item	       *item;

	VDI_CHECK(!call->is_freed);
	if (call->state == CALL_OVER || call->is_canceling || call->is_broken)
		return VD_OK;
	item = rpc_script_item_new(ITEM_MESSAGE, message);
	if (item == NULL)
		return VD_NOMEM;
	rpc_script_queue_put(&call->to_peer, item, rpc_script_arrival(call->script));
	rpc_script_wake(call->script);
	return VD_OK;
}

static void client_stream_receive(struct vdi_rpc_stream *stream)
{
	struct rpc_script_call *call = call_of(stream);

	VDI_CHECK(!call->is_freed);
	VDI_CHECK(!call->is_asked); /* one at a time */
	call->is_asked = true;
	rpc_script_wake(call->script);
}

static void client_stream_half_close(struct vdi_rpc_stream *stream)
{
	struct rpc_script_call *call = call_of(stream);

	VDI_CHECK(!call->is_freed);
	if (call->state == CALL_OVER || call->is_canceling || call->is_broken)
		return;
	rpc_script_queue_put(&call->to_peer, rpc_script_peer_item_new(ITEM_HALF_CLOSE, VD_BYTES_NONE),
			     rpc_script_arrival(call->script));
	rpc_script_wake(call->script);
}

static void client_stream_cancel(struct vdi_rpc_stream *stream)
{
	VDI_CHECK(!call_of(stream)->is_freed);
	cancel(call_of(stream));
}

static void client_stream_free(struct vdi_rpc_stream *stream)
{
	struct rpc_script_call *call = call_of(stream);

	VDI_CHECK(call->state == CALL_OVER);
	VDI_CHECK(!call->is_freed);
	call->is_freed = true;
}

static size_t client_endpoint_count(struct vdi_rpc_client *client)
{
	return script_of(client)->endpoint_count;
}

static bool client_endpoint_state(struct vdi_rpc_client *client, size_t index,
				  struct vdi_rpc_endpoint_state *ret_state)
{
	struct rpc_script *script = script_of(client);

	if (index >= script->endpoint_count)
		return false;
	*ret_state = (struct vdi_rpc_endpoint_state) { .endpoint = script->endpoints[index],
						       .ready = script->up[index] };
	memcpy(ret_state->last_error, script->last_errors[index], sizeof ret_state->last_error);
	return true;
}

static size_t find_endpoint(const char *const *endpoints, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(endpoints[i], name) == 0)
			return i;
	return SIZE_MAX;
}

static vd_status client_set_endpoints(struct vdi_rpc_client *client, const char *const *endpoints,
				      size_t count, struct vd_error *reterr)
{
	struct rpc_script *script = script_of(client);
	bool		   up[RPC_SCRIPT_ENDPOINTS_MAX];
	char		  *copies[RPC_SCRIPT_ENDPOINTS_MAX];

	if (count == 0 || count > RPC_SCRIPT_ENDPOINTS_MAX)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "etcdclient: no available endpoints");
	for (size_t i = 0; i < count; i++) {
		size_t old = find_endpoint((const char *const *) script->endpoints, script->endpoint_count,
					   endpoints[i]);

		copies[i] = rpc_script_peer_text(endpoints[i]);
		up[i] = old == SIZE_MAX || script->up[old];
	}
	for (size_t i = 0; i < script->live_count; i++) {
		struct rpc_script_call *call = script->live[i];

		if (call->state != CALL_OPEN)
			continue;
		call->endpoint = find_endpoint(endpoints, count, script->endpoints[call->endpoint]);
		if (call->endpoint == SIZE_MAX) {
			call->endpoint = 0;
			rpc_script_break_call(call, VDI_RPC_UNAVAILABLE, "the endpoint was removed", true);
		}
	}
	for (size_t i = 0; i < script->endpoint_count; i++)
		vdi_free(script->endpoints[i]);
	memcpy(script->endpoints, copies, count * sizeof *copies);
	memcpy(script->up, up, count * sizeof *up);
	memset(script->last_errors, 0, sizeof script->last_errors);
	script->endpoint_count = count;
	rpc_script_wake(script);
	return VD_OK;
}

void rpc_script_client_close(struct vdi_rpc_client *client, void (*done)(void *arg), void *arg)
{
	struct rpc_script *script = script_of(client);

	VDI_CHECK(!script->is_closing);
	script->is_closing = true;
	script->closed = done;
	script->closed_arg = arg;
	for (size_t i = 0; i < script->live_count; i++)
		rpc_script_break_call(script->live[i], VDI_RPC_CANCELED,
				      "grpc: the client connection is closing", true);
	rpc_script_wake(script);
}

const struct vdi_rpc_client_ops rpc_script_ops = {
	.call = client_call,
	.call_cancel = client_call_cancel,
	.stream_open = client_stream_open,
	.stream_send = client_stream_send,
	.stream_receive = client_stream_receive,
	.stream_half_close = client_stream_half_close,
	.stream_cancel = client_stream_cancel,
	.stream_free = client_stream_free,
	.set_endpoints = client_set_endpoints,
	.endpoint_count = client_endpoint_count,
	.endpoint_state = client_endpoint_state,
	.close = rpc_script_client_close,
};

/* ---- The transport's actor ---- */

static bool choose_endpoint(struct rpc_script *script, const struct rpc_script_call *call,
			    size_t *ret_endpoint)
{
	if (call->endpoint_wanted != VDI_RPC_ANY_ENDPOINT) {
		*ret_endpoint = (size_t) call->endpoint_wanted;
		return *ret_endpoint < script->endpoint_count && script->up[*ret_endpoint];
	}
	for (size_t i = 0; i < script->endpoint_count; i++) {
		size_t index = (script->endpoint_next + i) % script->endpoint_count;

		if (script->up[index]) {
			script->endpoint_next = index + 1;
			*ret_endpoint = index;
			return true;
		}
	}
	return false;
}

static bool start_call(struct rpc_script *script, struct rpc_script_call *call)
{
	if (rpc_script_is_refused(script, call->method)) {
		script->refusal.count--;
		call->is_refused = true;
		rpc_script_decide_end(call, rpc_script_arrival(script), script->refusal.code,
				      script->refusal.text, false);
		call->state = CALL_OPEN;
		call->endpoint = 0;
		return true;
	}
	if (!choose_endpoint(script, call, &call->endpoint))
		return false;
	call->state = CALL_OPEN;
	if (call->is_stream && call->handlers.opened)
		call->handlers.opened(call->arg, script->endpoints[call->endpoint]);
	return true;
}

static void reach_peer(struct rpc_script *script, struct rpc_script_call *call)
{
	struct item *item = rpc_script_queue_take(&call->to_peer);

	switch (item->kind) {
	case ITEM_OPEN:
		call->is_seen = true;
		rpc_script_peer_push(&script->seen, &script->seen_count, &script->seen_capacity, call);
		if (script->peer.opened)
			script->peer.opened(script->peer.arg, call);
		break;
	case ITEM_MESSAGE:
		for (int i = 0; !vdi_grow((void **) &call->messages, &call->message_capacity,
					  call->message_count + 1, sizeof *call->messages);
		     i++)
			VDI_CHECK(i < 1000);
		call->messages[call->message_count++] = item;
		if (script->peer.message) {
			call->message_taken = call->message_count;
			script->peer.message(script->peer.arg, call,
					     (struct vd_bytes) { item->data, item->size });
		}
		return;
	case ITEM_HALF_CLOSE:
		call->is_peer_half_closed = true;
		if (script->peer.half_closed)
			script->peer.half_closed(script->peer.arg, call);
		break;
	case ITEM_CANCEL:
		call->is_peer_canceled = true;
		if (call->is_seen && !call->is_peer_ended && script->peer.canceled)
			script->peer.canceled(script->peer.arg, call);
		break;
	}
	vdi_free(item);
}

static void release_item(void *owner)
{
	vdi_free(owner);
}

static struct vdi_rpc_message message_of(struct item *item)
{
	return (struct vdi_rpc_message) { { item->data, item->size }, item, release_item };
}

static void end_call(struct rpc_script *script, struct rpc_script_call *call)
{
	const char *endpoint =
		call->state == CALL_OPEN && !call->is_refused ? script->endpoints[call->endpoint] : "";
	struct vdi_rpc_end end = { call->end_code, call->end_text, endpoint, call->end_unsent,
				   call->end_local };

	if (call->is_stream) {
		call->state = CALL_OVER;
		call->handlers.ended(call->arg, &end);
	} else {
		struct vdi_rpc_message message = { 0 };

		call->is_freed = true;
		if (end.code == VDI_RPC_OK) {
			VDI_CHECK(call->to_client.first); /* the test answers a unary call with a message */
			message = message_of(rpc_script_queue_take(&call->to_client));
		}
		call->state = CALL_OVER;
		call->done(call->arg, &end, &message);
	}
	rpc_script_queue_clear(&call->to_client);
}

static bool is_due(const struct rpc_script *script, const struct item *item)
{
	return item && item->due.ns <= rpc_script_now(script).ns;
}

/* Returns true if sent data can reach a peer, also for a call that is over. */
static bool has_way(const struct rpc_script_call *call)
{
	return call->endpoint != SIZE_MAX && !call->is_refused;
}

/* Delivers one item to either side. False: nothing is due. */
static bool serve_call(struct rpc_script *script, struct rpc_script_call *call)
{
	bool did = false;

	if (call->deadline.ns <= rpc_script_now(script).ns && call->state != CALL_OVER &&
	    !(call->has_end && call->end_due.ns <= rpc_script_now(script).ns)) {
		rpc_script_break_call(call, VDI_RPC_DEADLINE_EXCEEDED, "context deadline exceeded", true);
		did = true;
	}
	if (call->state == CALL_WAITING && !call->has_end)
		did |= start_call(script, call);
	if (has_way(call) && is_due(script, call->to_peer.first)) {
		reach_peer(script, call);
		did = true;
	}
	if (call->state == CALL_OVER)
		return did;
	if (call->is_stream && call->is_asked && is_due(script, call->to_client.first)) {
		struct vdi_rpc_message message = message_of(rpc_script_queue_take(&call->to_client));

		call->is_asked = false;
		call->handlers.message(call->arg, &message);
		return true;
	}
	if (call->has_end && call->end_due.ns <= rpc_script_now(script).ns &&
	    (!call->is_stream || call->is_canceling || call->to_client.first == NULL)) {
		end_call(script, call);
		return true;
	}
	return did;
}

bool rpc_script_is_live(const struct rpc_script_call *call)
{
	return call->state != CALL_OVER || (call->to_peer.first && has_way(call));
}

void rpc_script_drop_dead(struct rpc_script *script)
{
	size_t kept = 0;

	for (size_t i = 0; i < script->live_count; i++) {
		struct rpc_script_call *call = script->live[i];

		if (rpc_script_is_live(call))
			script->live[kept++] = call;
		else if (!call->is_seen)
			rpc_script_peer_push(&script->unseen, &script->unseen_count, &script->unseen_capacity,
					     call);
	}
	script->live_count = kept;
}

/* Due but blocked items wait for a wake; only future ones need a timer. */
static void note_due(vd_mono *due, vd_mono candidate, vd_mono present)
{
	if (candidate.ns > present.ns)
		due->ns = VDI_MIN(due->ns, candidate.ns);
}

static vd_mono next_due(const struct rpc_script *script)
{
	vd_mono due = VD_NEVER;
	vd_mono present = rpc_script_now(script);

	for (size_t i = 0; i < script->live_count; i++) {
		const struct rpc_script_call *call = script->live[i];

		if (call->to_peer.first && has_way(call))
			note_due(&due, call->to_peer.first->due, present);
		if (call->state == CALL_OVER)
			continue;
		note_due(&due, call->deadline, present);
		if (call->to_client.first && call->is_asked)
			note_due(&due, call->to_client.first->due, present);
		if (call->has_end &&
		    (!call->is_stream || call->is_canceling || call->to_client.first == NULL))
			note_due(&due, call->end_due, present);
	}
	return due;
}

static void closed(void *arg)
{
	struct rpc_script *script = arg;

	script->is_closed = true;
	if (script->closed)
		script->closed(script->closed_arg);
}

void rpc_script_run(void *arg)
{
	struct rpc_script *script = arg;
	bool		   did = true;

	while (did) {
		size_t first = script->live_count ? vdi_rand_below(&script->rand, script->live_count) : 0;

		did = false;
		for (size_t i = 0; i < script->live_count; i++)
			did |= serve_call(script, script->live[(first + i) % script->live_count]);
	}
	rpc_script_drop_dead(script);
	if (script->is_closing && script->live_count == 0 && script->actor) {
		struct vd_actor *actor = script->actor;

		script->actor = NULL;
		vd_actor_close(actor, closed, script);
		return;
	}
	if (script->actor)
		vd_actor_set_timer(script->actor, next_due(script));
}
