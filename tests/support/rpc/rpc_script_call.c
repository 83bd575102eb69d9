/* The calls of a scripted peer: their queues, and how they end. */
#include "vdtest.h"
#include "rpc_script_state.h"

void *rpc_script_peer_alloc(size_t size)
{
	for (int i = 0; i < 1000; i++) {
		void *memory = vdi_calloc(1, size);

		if (memory)
			return memory;
	}
	VDI_CHECK(false);
	return NULL;
}

char *rpc_script_peer_text(const char *text)
{
	size_t size = strlen(text ? text : "");
	char  *copy = rpc_script_peer_alloc(size + 1);

	memcpy(copy, text ? text : "", size);
	return copy;
}

void rpc_script_peer_push(struct rpc_script_call ***array, size_t *count, size_t *capacity,
			  struct rpc_script_call *call)
{
	for (int i = 0; !vdi_grow((void **) array, capacity, *count + 1, sizeof **array); i++)
		VDI_CHECK(i < 1000);
	(*array)[(*count)++] = call;
}

vd_mono rpc_script_now(const struct rpc_script *script)
{
	return vd_env_now(script->env);
}

vd_mono rpc_script_arrival(struct rpc_script *script)
{
	vd_dur delay = { script->delay_max.ns > 0 ?
				 (int64_t) vdi_rand_below(&script->rand, (uint64_t) script->delay_max.ns) :
				 0 };

	return vd_mono_add(rpc_script_now(script), delay);
}

void rpc_script_wake(struct rpc_script *script)
{
	if (script->actor)
		vd_actor_wake(script->actor);
}

/* ---- Queues ---- */

struct item *rpc_script_item_new(enum item_kind kind, struct vd_bytes bytes)
{
	struct item *item = vdi_alloc(sizeof *item + bytes.size);

	if (item == NULL)
		return NULL;
	*item = (struct item) { .kind = kind, .size = bytes.size };
	if (bytes.size)
		memcpy(item->data, bytes.data, bytes.size);
	return item;
}

struct item *rpc_script_peer_item_new(enum item_kind kind, struct vd_bytes bytes)
{
	struct item *item = rpc_script_peer_alloc(sizeof *item + bytes.size);

	item->kind = kind;
	item->size = bytes.size;
	if (bytes.size)
		memcpy(item->data, bytes.data, bytes.size);
	return item;
}

void rpc_script_queue_put(struct item_queue *queue, struct item *item, vd_mono due)
{
	if (due.ns < queue->due_last.ns)
		due = queue->due_last;
	queue->due_last = item->due = due;
	if (queue->first == NULL)
		queue->last = &queue->first;
	*queue->last = item;
	queue->last = &item->next;
	queue->count++;
	queue->bytes += item->size;
}

struct item *rpc_script_queue_take(struct item_queue *queue)
{
	struct item *item = queue->first;

	queue->first = item->next;
	queue->count--;
	queue->bytes -= item->size;
	item->next = NULL;
	return item;
}

void rpc_script_queue_clear(struct item_queue *queue)
{
	while (queue->first)
		vdi_free(rpc_script_queue_take(queue));
}

/* ---- Calls ---- */

void rpc_script_call_free(struct rpc_script_call *call)
{
	rpc_script_queue_clear(&call->to_peer);
	rpc_script_queue_clear(&call->to_client);
	for (size_t i = 0; i < call->metadata_count; i++) {
		vdi_free((char *) call->metadata[i].key);
		vdi_free((char *) call->metadata[i].value.data);
	}
	vdi_free(call->metadata);
	for (size_t i = 0; i < call->message_count; i++)
		vdi_free(call->messages[i]);
	vdi_free(call->messages);
	vdi_free(call->end_text);
	vdi_free(call);
}

void rpc_script_decide_end(struct rpc_script_call *call, vd_mono due, int code, const char *text,
			   bool is_local)
{
	if (call->has_end || call->state == CALL_OVER)
		return;
	call->has_end = true;
	call->end_due = due;
	call->end_code = code;
	call->end_text = rpc_script_peer_text(text);
	call->end_local = is_local;
	call->end_unsent = code != VDI_RPC_OK && call->state == CALL_WAITING;
	rpc_script_wake(call->script);
}

void rpc_script_break_call(struct rpc_script_call *call, int code, const char *text, bool is_local)
{
	if (call->state == CALL_OVER)
		return;
	call->is_broken = true;
	if (call->has_end && !call->is_canceling) {
		call->has_end = false; /* the peer's end never arrives */
		vdi_free(call->end_text);
		call->end_text = NULL;
	}
	rpc_script_queue_clear(&call->to_client);
	if (vdi_rand_once_in(&call->script->rand, 2))
		rpc_script_queue_clear(&call->to_peer);
	rpc_script_decide_end(call, rpc_script_now(call->script), code, text, is_local);
	call->end_due = rpc_script_now(call->script);
	if (call->state == CALL_OPEN && !call->is_refused && (call->is_seen || call->to_peer.first))
		rpc_script_queue_put(&call->to_peer, rpc_script_peer_item_new(ITEM_CANCEL, VD_BYTES_NONE),
				     rpc_script_arrival(call->script));
	rpc_script_wake(call->script);
}

static vd_status copy_metadata(struct rpc_script_call *call, const struct vdi_rpc_request *request)
{
	if (request->metadata_count == 0)
		return VD_OK;
	call->metadata = vdi_calloc(request->metadata_count, sizeof *call->metadata);
	if (call->metadata == NULL)
		return VD_NOMEM;
	for (size_t i = 0; i < request->metadata_count; i++) {
		char *key = vdi_strdup(request->metadata[i].key);
		char *value =
			vdi_strndup(request->metadata[i].value.data ? request->metadata[i].value.data : "",
				    request->metadata[i].value.size);

		call->metadata[call->metadata_count++] =
			(struct vdi_rpc_metadata) { key, { value, request->metadata[i].value.size } };
		if (key == NULL || value == NULL)
			return VD_NOMEM;
	}
	return VD_OK;
}

bool rpc_script_is_refused(struct rpc_script *script, const char *method)
{
	return script->refusal.count > 0 &&
	       (script->refusal.method == NULL || strcmp(script->refusal.method, method) == 0);
}

vd_status rpc_script_call_new(struct rpc_script *script, const struct vdi_rpc_request *request,
			      bool is_stream, struct rpc_script_call **ret_call)
{
	struct rpc_script_call *call;
	struct item	       *open, *first = NULL, *close = NULL;

	if (script->is_closing)
		return VD_CLOSED;
	if (request->endpoint != VDI_RPC_ANY_ENDPOINT &&
	    (request->endpoint < 0 || (size_t) request->endpoint >= script->endpoint_count))
		return VD_INVALID_ARGUMENT;
	if (!vdi_grow((void **) &script->live, &script->live_capacity, script->live_count + 1,
		      sizeof *script->live))
		return VD_NOMEM;
	call = VDI_NEW(struct rpc_script_call);
	if (call == NULL)
		return VD_NOMEM;
	call->script = script;
	call->call.client = call->stream.client = &script->client;
	call->is_stream = is_stream;
	call->method = request->method;
	call->timeout = request->timeout;
	call->deadline =
		request->timeout.ns > 0 ? vd_mono_add(rpc_script_now(script), request->timeout) : VD_NEVER;
	call->endpoint_wanted = request->endpoint;
	call->endpoint = SIZE_MAX;
	call->to_client.due_last = call->to_peer.due_last = rpc_script_now(script);
	open = rpc_script_item_new(ITEM_OPEN, VD_BYTES_NONE);
	if (!is_stream || request->half_close) {
		first = rpc_script_item_new(ITEM_MESSAGE, request->message);
		close = rpc_script_item_new(ITEM_HALF_CLOSE, VD_BYTES_NONE);
	}
	if (open == NULL || ((!is_stream || request->half_close) && (first == NULL || close == NULL)) ||
	    copy_metadata(call, request) != VD_OK) {
		vdi_free(open);
		vdi_free(first);
		vdi_free(close);
		rpc_script_call_free(call);
		return VD_NOMEM;
	}
	rpc_script_queue_put(&call->to_peer, open, rpc_script_arrival(script));
	if (first) {
		rpc_script_queue_put(&call->to_peer, first, rpc_script_arrival(script));
		rpc_script_queue_put(&call->to_peer, close, rpc_script_arrival(script));
	}
	script->live[script->live_count++] = call;
	rpc_script_wake(script);
	*ret_call = call;
	return VD_OK;
}
