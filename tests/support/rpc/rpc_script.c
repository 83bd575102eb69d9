/* How: a call is two queues of things with a due time, one each way, and the state at either end. The one
 * actor looks at all live calls, hands over what is due, and sets its timer to what comes next. A message
 * waits, after its time has come, until the client asks for it; an end waits behind it.
 *
 *   client                         script                              peer (the test)
 *   call/stream_open -> WAITING --an endpoint is up--> OPEN
 *   stream_send      -> to_peer   --due--------------> messages[]      message()
 *   message()        <- to_client <-due and asked for-                 rpc_script_send
 *   ended()          <- end       <-due, queue empty--                 rpc_script_end, or a cut, a cancel, a timeout
 */
#include "vdtest.h"

#include "actor_sim.h"
#include "rand.h"
#include "rpc_script.h"

#define EXPECT_LIMIT VD_SECONDS(60)
#define ENDPOINTS_MAX 16

enum item_kind { ITEM_OPEN, ITEM_MESSAGE, ITEM_HALF_CLOSE, ITEM_CANCEL };

struct item {
	struct item   *next;
	vd_mono	       due;
	enum item_kind kind;
	size_t	       size;
	char	       data[];
};

struct item_queue {
	struct item  *first;
	struct item **last;
	vd_mono	      due_last;
	size_t	      count;
	size_t	      bytes;
};

enum call_state { CALL_WAITING, CALL_OPEN, CALL_OVER };

struct rpc_script_call {
	struct rpc_script	*script;
	struct vdi_rpc_call	 call;
	struct vdi_rpc_stream	 stream;
	bool			 is_stream;
	enum call_state		 state;
	const char		*method;
	struct vdi_rpc_metadata *metadata;
	size_t			 metadata_count;
	vd_dur			 timeout;
	vd_mono			 deadline;
	int			 endpoint_wanted;
	size_t			 endpoint;
	struct item_queue	 to_peer;
	struct item_queue	 to_client;

	/* The end, once decided. */
	bool	has_end;
	vd_mono end_due;
	int	end_code;
	char   *end_text;
	bool	end_local;
	bool	end_unsent;
	bool	is_refused; /* the peer never sees it */
	bool	is_broken;  /* nothing more reaches the peer */

	/* Client's end. */
	struct vdi_rpc_stream_handlers handlers;
	vdi_rpc_done_fn		       done;
	void			      *arg;
	bool			       is_asked; /* one message */
	bool			       is_freed; /* unary: done; stream: stream_free */
	bool			       is_canceling;

	/* Peer's end. */
	bool	      is_seen, is_taken, is_peer_half_closed, is_peer_canceled, is_peer_ended;
	struct item **messages;
	size_t	      message_count, message_capacity, message_taken;
	void	     *data;
};

struct refusal {
	const char *method;
	size_t	    count;
	int	    code;
	const char *text;
};

struct rpc_script {
	struct vdi_rpc_client	 client;
	struct vd_env		*env;
	struct vdi_rand		 rand;
	struct vd_actor		*actor;
	struct rpc_script_peer	 peer;
	vd_dur			 delay_max;
	char			*endpoints[ENDPOINTS_MAX];
	bool			 up[ENDPOINTS_MAX];
	char			 last_errors[ENDPOINTS_MAX][256];
	size_t			 endpoint_count;
	size_t			 endpoint_next;
	struct refusal		 refusal;
	struct rpc_script_call **live;
	size_t			 live_count, live_capacity;
	struct rpc_script_call **seen; /* by the peer, in order */
	size_t			 seen_count, seen_capacity;
	struct rpc_script_call **unseen; /* over, and never seen: kept until their streams are freed */
	size_t			 unseen_count, unseen_capacity;
	bool			 is_closing, is_closed;
	void (*closed)(void *arg);
	void *closed_arg;
};

static const struct vdi_rpc_client_ops script_ops;

/* The peer's memory does not fail: an injected failure is spent here and forgotten. */
static void *peer_alloc(size_t size)
{
	for (int i = 0; i < 1000; i++) {
		void *memory = vdi_calloc(1, size);

		if (memory)
			return memory;
	}
	VDI_CHECK(false);
	return NULL;
}

static char *peer_text(const char *text)
{
	size_t size = strlen(text ? text : "");
	char  *copy = peer_alloc(size + 1);

	memcpy(copy, text ? text : "", size);
	return copy;
}

static void peer_push(struct rpc_script_call ***array, size_t *count, size_t *capacity,
		      struct rpc_script_call *call)
{
	for (int i = 0; !vdi_grow((void **) array, capacity, *count + 1, sizeof **array); i++)
		VDI_CHECK(i < 1000);
	(*array)[(*count)++] = call;
}

static vd_mono now(const struct rpc_script *script)
{
	return vd_env_now(script->env);
}

static vd_mono arrival(struct rpc_script *script)
{
	vd_dur delay = { script->delay_max.ns > 0 ?
				 (int64_t) vdi_rand_below(&script->rand, (uint64_t) script->delay_max.ns) :
				 0 };

	return vd_mono_add(now(script), delay);
}

static void wake(struct rpc_script *script)
{
	if (script->actor)
		vd_actor_wake(script->actor);
}

/* ---- Queues ---- */

static struct item *item_new(enum item_kind kind, struct vd_bytes bytes)
{
	struct item *item = vdi_alloc(sizeof *item + bytes.size);

	if (item == NULL)
		return NULL;
	*item = (struct item) { .kind = kind, .size = bytes.size };
	if (bytes.size)
		memcpy(item->data, bytes.data, bytes.size);
	return item;
}

static struct item *peer_item_new(enum item_kind kind, struct vd_bytes bytes)
{
	struct item *item = peer_alloc(sizeof *item + bytes.size);

	item->kind = kind;
	item->size = bytes.size;
	if (bytes.size)
		memcpy(item->data, bytes.data, bytes.size);
	return item;
}

static void queue_put(struct item_queue *queue, struct item *item, vd_mono due)
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

static struct item *queue_take(struct item_queue *queue)
{
	struct item *item = queue->first;

	queue->first = item->next;
	queue->count--;
	queue->bytes -= item->size;
	item->next = NULL;
	return item;
}

static void queue_clear(struct item_queue *queue)
{
	while (queue->first)
		vdi_free(queue_take(queue));
}

/* ---- Calls ---- */

static void call_free(struct rpc_script_call *call)
{
	queue_clear(&call->to_peer);
	queue_clear(&call->to_client);
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

static void decide_end(struct rpc_script_call *call, vd_mono due, int code, const char *text, bool is_local)
{
	if (call->has_end || call->state == CALL_OVER)
		return;
	call->has_end = true;
	call->end_due = due;
	call->end_code = code;
	call->end_text = peer_text(text);
	call->end_local = is_local;
	call->end_unsent = code != VDI_RPC_OK && call->state == CALL_WAITING;
	wake(call->script);
}

/* An end that overtakes everything: what was on its way to the client is lost, the other way perhaps; the
 * peer learns of it. */
static void break_call(struct rpc_script_call *call, int code, const char *text, bool is_local)
{
	if (call->state == CALL_OVER)
		return;
	call->is_broken = true;
	if (call->has_end && !call->is_canceling) {
		call->has_end = false; /* the peer's end never arrives */
		vdi_free(call->end_text);
		call->end_text = NULL;
	}
	queue_clear(&call->to_client);
	if (vdi_rand_once_in(&call->script->rand, 2))
		queue_clear(&call->to_peer);
	decide_end(call, now(call->script), code, text, is_local);
	call->end_due = now(call->script);
	if (call->state == CALL_OPEN && !call->is_refused && (call->is_seen || call->to_peer.first))
		queue_put(&call->to_peer, peer_item_new(ITEM_CANCEL, VD_BYTES_NONE), arrival(call->script));
	wake(call->script);
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

static bool is_refused(struct rpc_script *script, const char *method)
{
	return script->refusal.count > 0 &&
	       (script->refusal.method == NULL || strcmp(script->refusal.method, method) == 0);
}

static vd_status call_new(struct rpc_script *script, const struct vdi_rpc_request *request, bool is_stream,
			  struct rpc_script_call **ret_call)
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
	call->deadline = request->timeout.ns > 0 ? vd_mono_add(now(script), request->timeout) : VD_NEVER;
	call->endpoint_wanted = request->endpoint;
	call->endpoint = SIZE_MAX;
	call->to_client.due_last = call->to_peer.due_last = now(script);
	open = item_new(ITEM_OPEN, VD_BYTES_NONE);
	if (!is_stream || request->half_close) {
		first = item_new(ITEM_MESSAGE, request->message);
		close = item_new(ITEM_HALF_CLOSE, VD_BYTES_NONE);
	}
	if (open == NULL || ((!is_stream || request->half_close) && (first == NULL || close == NULL)) ||
	    copy_metadata(call, request) != VD_OK) {
		vdi_free(open);
		vdi_free(first);
		vdi_free(close);
		call_free(call);
		return VD_NOMEM;
	}
	queue_put(&call->to_peer, open, arrival(script));
	if (first) {
		queue_put(&call->to_peer, first, arrival(script));
		queue_put(&call->to_peer, close, arrival(script));
	}
	script->live[script->live_count++] = call;
	wake(script);
	*ret_call = call;
	return VD_OK;
}

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

	VDI_TRY(call_new(script_of(client), request, false, &call));
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
	if (call->has_end && call->end_due.ns <= now(call->script).ns && call->to_client.first == NULL)
		return; /* the result is on its way */
	call->is_canceling = true;
	if (call->has_end) {
		call->has_end = false;
		vdi_free(call->end_text);
		call->end_text = NULL;
	}
	decide_end(call, arrival(call->script), VDI_RPC_CANCELED, "context canceled", true);
	if (call->state == CALL_OPEN && !call->is_refused)
		queue_put(&call->to_peer, peer_item_new(ITEM_CANCEL, VD_BYTES_NONE), arrival(call->script));
	wake(call->script);
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

	VDI_TRY(call_new(script_of(client), request, true, &call));
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
	item = item_new(ITEM_MESSAGE, message);
	if (item == NULL)
		return VD_NOMEM;
	queue_put(&call->to_peer, item, arrival(call->script));
	wake(call->script);
	return VD_OK;
}

static void client_stream_receive(struct vdi_rpc_stream *stream)
{
	struct rpc_script_call *call = call_of(stream);

	VDI_CHECK(!call->is_freed);
	VDI_CHECK(!call->is_asked); /* one at a time */
	call->is_asked = true;
	wake(call->script);
}

static void client_stream_half_close(struct vdi_rpc_stream *stream)
{
	struct rpc_script_call *call = call_of(stream);

	VDI_CHECK(!call->is_freed);
	if (call->state == CALL_OVER || call->is_canceling || call->is_broken)
		return;
	queue_put(&call->to_peer, peer_item_new(ITEM_HALF_CLOSE, VD_BYTES_NONE), arrival(call->script));
	wake(call->script);
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
	bool		   up[ENDPOINTS_MAX];
	char		  *copies[ENDPOINTS_MAX];

	if (count == 0 || count > ENDPOINTS_MAX)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "etcdclient: no available endpoints");
	for (size_t i = 0; i < count; i++) {
		size_t old = find_endpoint((const char *const *) script->endpoints, script->endpoint_count,
					   endpoints[i]);

		copies[i] = peer_text(endpoints[i]);
		up[i] = old == SIZE_MAX || script->up[old];
	}
	for (size_t i = 0; i < script->live_count; i++) {
		struct rpc_script_call *call = script->live[i];

		if (call->state != CALL_OPEN)
			continue;
		call->endpoint = find_endpoint(endpoints, count, script->endpoints[call->endpoint]);
		if (call->endpoint == SIZE_MAX) {
			call->endpoint = 0;
			break_call(call, VDI_RPC_UNAVAILABLE, "the endpoint was removed", true);
		}
	}
	for (size_t i = 0; i < script->endpoint_count; i++)
		vdi_free(script->endpoints[i]);
	memcpy(script->endpoints, copies, count * sizeof *copies);
	memcpy(script->up, up, count * sizeof *up);
	memset(script->last_errors, 0, sizeof script->last_errors);
	script->endpoint_count = count;
	wake(script);
	return VD_OK;
}

static void client_close(struct vdi_rpc_client *client, void (*done)(void *arg), void *arg)
{
	struct rpc_script *script = script_of(client);

	VDI_CHECK(!script->is_closing);
	script->is_closing = true;
	script->closed = done;
	script->closed_arg = arg;
	for (size_t i = 0; i < script->live_count; i++)
		break_call(script->live[i], VDI_RPC_CANCELED, "grpc: the client connection is closing", true);
	wake(script);
}

static const struct vdi_rpc_client_ops script_ops = {
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
	.close = client_close,
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
	if (is_refused(script, call->method)) {
		script->refusal.count--;
		call->is_refused = true;
		decide_end(call, arrival(script), script->refusal.code, script->refusal.text, false);
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
	struct item *item = queue_take(&call->to_peer);

	switch (item->kind) {
	case ITEM_OPEN:
		call->is_seen = true;
		peer_push(&script->seen, &script->seen_count, &script->seen_capacity, call);
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
			message = message_of(queue_take(&call->to_client));
		}
		call->state = CALL_OVER;
		call->done(call->arg, &end, &message);
	}
	queue_clear(&call->to_client);
}

static bool is_due(const struct rpc_script *script, const struct item *item)
{
	return item && item->due.ns <= now(script).ns;
}

/* Whether what was sent can reach a peer; of a call that is over, too. */
static bool has_way(const struct rpc_script_call *call)
{
	return call->endpoint != SIZE_MAX && !call->is_refused;
}

/* One thing for either side. False: nothing is due. */
static bool serve_call(struct rpc_script *script, struct rpc_script_call *call)
{
	bool did = false;

	if (call->deadline.ns <= now(script).ns && call->state != CALL_OVER &&
	    !(call->has_end && call->end_due.ns <= now(script).ns)) {
		break_call(call, VDI_RPC_DEADLINE_EXCEEDED, "context deadline exceeded", true);
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
		struct vdi_rpc_message message = message_of(queue_take(&call->to_client));

		call->is_asked = false;
		call->handlers.message(call->arg, &message);
		return true;
	}
	if (call->has_end && call->end_due.ns <= now(script).ns &&
	    (!call->is_stream || call->is_canceling || call->to_client.first == NULL)) {
		end_call(script, call);
		return true;
	}
	return did;
}

/* A call that is over still has to reach its peer with what was sent before. */
static bool is_live(const struct rpc_script_call *call)
{
	return call->state != CALL_OVER || (call->to_peer.first && has_way(call));
}

static void drop_dead(struct rpc_script *script)
{
	size_t kept = 0;

	for (size_t i = 0; i < script->live_count; i++) {
		struct rpc_script_call *call = script->live[i];

		if (is_live(call))
			script->live[kept++] = call;
		else if (!call->is_seen)
			peer_push(&script->unseen, &script->unseen_count, &script->unseen_capacity, call);
	}
	script->live_count = kept;
}

/* What is due now and stands still waits for a wake; only the future wants a timer. */
static void note_due(vd_mono *due, vd_mono candidate, vd_mono present)
{
	if (candidate.ns > present.ns)
		due->ns = VDI_MIN(due->ns, candidate.ns);
}

static vd_mono next_due(const struct rpc_script *script)
{
	vd_mono due = VD_NEVER;
	vd_mono present = now(script);

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

static void run(void *arg)
{
	struct rpc_script *script = arg;
	bool		   did = true;

	while (did) {
		size_t first = script->live_count ? vdi_rand_below(&script->rand, script->live_count) : 0;

		did = false;
		for (size_t i = 0; i < script->live_count; i++)
			did |= serve_call(script, script->live[(first + i) % script->live_count]);
	}
	drop_dead(script);
	if (script->is_closing && script->live_count == 0 && script->actor) {
		struct vd_actor *actor = script->actor;

		script->actor = NULL;
		vd_actor_close(actor, closed, script);
		return;
	}
	if (script->actor)
		vd_actor_set_timer(script->actor, next_due(script));
}

/* ---- The script ---- */

struct rpc_script *rpc_script_new(struct vd_env *env, uint64_t seed, const char *const *endpoints,
				  size_t endpoint_count)
{
	struct rpc_script      *script = peer_alloc(sizeof *script);
	struct vd_actor_options options = { .name = "rpc_script", .run = run, .arg = script };

	VDI_CHECK(endpoint_count > 0 && endpoint_count <= ENDPOINTS_MAX);
	script->client.ops = &script_ops;
	script->env = env;
	vdi_rand_init(&script->rand, seed ^ UINT64_C(0x5c1297));
	for (size_t i = 0; i < endpoint_count; i++) {
		script->endpoints[i] = peer_text(endpoints[i]);
		script->up[i] = true;
	}
	script->endpoint_count = endpoint_count;
	for (int i = 0; vd_actor_new(env, &options, &script->actor) != VD_OK; i++)
		VDI_CHECK(i < 1000);
	return script;
}

struct vdi_rpc_client *rpc_script_client(struct rpc_script *script)
{
	return &script->client;
}

void rpc_script_free(struct rpc_script *script)
{
	if (!script->is_closing)
		client_close(&script->client, NULL, NULL);
	while (!script->is_closed)
		VDI_CHECK(vdi_sim_step(script->env) || vdi_sim_advance_to_next_timer(script->env));
	VDI_CHECK(script->live_count == 0);
	rpc_script_forget_ended(script);
	VDI_CHECK(script->seen_count == 0 && script->unseen_count == 0); /* every stream was freed */
	for (size_t i = 0; i < script->endpoint_count; i++)
		vdi_free(script->endpoints[i]);
	vdi_free(script->live);
	vdi_free(script->seen);
	vdi_free(script->unseen);
	vdi_free(script);
}

void rpc_script_set_delay(struct rpc_script *script, vd_dur max)
{
	script->delay_max = max;
}

static void break_endpoint(struct rpc_script *script, size_t endpoint, const char *text)
{
	for (size_t i = 0; i < script->live_count; i++)
		if (script->live[i]->state == CALL_OPEN && script->live[i]->endpoint == endpoint &&
		    !script->live[i]->is_refused)
			break_call(script->live[i], VDI_RPC_UNAVAILABLE, text, false);
}

void rpc_script_set_up(struct rpc_script *script, size_t endpoint, bool up)
{
	VDI_CHECK(endpoint < script->endpoint_count);
	script->up[endpoint] = up;
	snprintf(script->last_errors[endpoint], sizeof script->last_errors[endpoint], "%s",
		 up ? "" : "connection refused");
	if (!up)
		break_endpoint(script, endpoint, "Socket closed");
	wake(script);
}

void rpc_script_cut(struct rpc_script *script, size_t endpoint)
{
	break_endpoint(script, endpoint, "Socket closed");
}

void rpc_script_cut_call(struct rpc_script_call *call, int code, const char *text)
{
	break_call(call, code, text, false);
}

void rpc_script_refuse(struct rpc_script *script, const char *method, size_t count, int code,
		       const char *text)
{
	script->refusal = (struct refusal) { method, count, code, text };
}

void rpc_script_set_peer(struct rpc_script *script, const struct rpc_script_peer *peer)
{
	script->peer = *peer;
}

/* ---- The peer's answers ---- */

void rpc_script_send_later(struct rpc_script_call *call, struct vd_bytes message, vd_dur delay)
{
	struct rpc_script *script = call->script;

	if (call->state == CALL_OVER || call->has_end || call->is_peer_ended)
		return;
	queue_put(&call->to_client, peer_item_new(ITEM_MESSAGE, message),
		  vd_mono_add(arrival(script), delay));
	wake(script);
}

void rpc_script_send(struct rpc_script_call *call, struct vd_bytes message)
{
	rpc_script_send_later(call, message, (vd_dur) { 0 });
}

void rpc_script_end_later(struct rpc_script_call *call, int code, const char *text, vd_dur delay)
{
	vd_mono due = vd_mono_add(arrival(call->script), delay);

	call->is_peer_ended = true;
	decide_end(call, (vd_mono) { VDI_MAX(due.ns, call->to_client.due_last.ns) }, code, text, false);
}

void rpc_script_end(struct rpc_script_call *call, int code, const char *text)
{
	rpc_script_end_later(call, code, text, (vd_dur) { 0 });
}

void rpc_script_answer(struct rpc_script_call *call, struct vd_bytes message)
{
	rpc_script_send(call, message);
	rpc_script_end(call, VDI_RPC_OK, NULL);
}

/* ---- Looking on ---- */

size_t rpc_script_call_count(const struct rpc_script *script)
{
	return script->seen_count;
}

struct rpc_script_call *rpc_script_call_at(struct rpc_script *script, size_t index)
{
	VDI_CHECK(index < script->seen_count);
	return script->seen[index];
}

struct rpc_script_call *rpc_script_take_call(struct rpc_script *script, const char *method)
{
	for (size_t i = 0; i < script->seen_count; i++) {
		struct rpc_script_call *call = script->seen[i];

		if (!call->is_taken && (method == NULL || strcmp(call->method, method) == 0)) {
			call->is_taken = true;
			return call;
		}
	}
	return NULL;
}

struct expectation {
	struct rpc_script      *script;
	struct rpc_script_call *call;
	const char	       *method;
	struct vd_bytes		message;
};

static bool has_call(void *arg)
{
	struct expectation *expectation = arg;

	expectation->call = rpc_script_take_call(expectation->script, expectation->method);
	return expectation->call != NULL;
}

struct rpc_script_call *rpc_script_expect_call(struct rpc_script *script, const char *method)
{
	struct expectation expectation = { .script = script, .method = method };

	if (!vdi_sim_run_until(script->env, has_call, &expectation, EXPECT_LIMIT))
		fail_msg("no call of %s came", method ? method : "any method");
	return expectation.call;
}

const char *rpc_script_call_method(const struct rpc_script_call *call)
{
	return call->method;
}

size_t rpc_script_call_endpoint(const struct rpc_script_call *call)
{
	return call->endpoint;
}

vd_dur rpc_script_call_timeout(const struct rpc_script_call *call)
{
	return call->timeout;
}

bool rpc_script_call_is_stream(const struct rpc_script_call *call)
{
	return call->is_stream;
}

bool rpc_script_call_is_half_closed(const struct rpc_script_call *call)
{
	return call->is_peer_half_closed;
}

bool rpc_script_call_is_canceled(const struct rpc_script_call *call)
{
	return call->is_peer_canceled;
}

bool rpc_script_call_is_over(const struct rpc_script_call *call)
{
	return call->state == CALL_OVER;
}

struct vd_bytes rpc_script_call_metadata(const struct rpc_script_call *call, const char *key)
{
	for (size_t i = 0; i < call->metadata_count; i++)
		if (strcmp(call->metadata[i].key, key) == 0)
			return call->metadata[i].value;
	return VD_BYTES_NONE;
}

size_t rpc_script_call_metadata_count(const struct rpc_script_call *call)
{
	return call->metadata_count;
}

void rpc_script_call_set_data(struct rpc_script_call *call, void *data)
{
	call->data = data;
}

void *rpc_script_call_data(const struct rpc_script_call *call)
{
	return call->data;
}

size_t rpc_script_message_count(const struct rpc_script_call *call)
{
	return call->message_count;
}

struct vd_bytes rpc_script_message_at(const struct rpc_script_call *call, size_t index)
{
	VDI_CHECK(index < call->message_count);
	return (struct vd_bytes) { call->messages[index]->data, call->messages[index]->size };
}

bool rpc_script_take_message(struct rpc_script_call *call, struct vd_bytes *ret_message)
{
	if (call->message_taken >= call->message_count)
		return false;
	*ret_message = rpc_script_message_at(call, call->message_taken++);
	return true;
}

static bool has_message(void *arg)
{
	struct expectation *expectation = arg;

	return rpc_script_take_message(expectation->call, &expectation->message);
}

struct vd_bytes rpc_script_expect_message(struct rpc_script_call *call)
{
	struct expectation expectation = { .call = call };

	if (!vdi_sim_run_until(call->script->env, has_message, &expectation, EXPECT_LIMIT))
		fail_msg("no message came on a call of %s", call->method);
	return expectation.message;
}

size_t rpc_script_call_pending_bytes(const struct rpc_script_call *call)
{
	return call->to_client.bytes;
}

size_t rpc_script_call_pending_count(const struct rpc_script_call *call)
{
	return call->to_client.count;
}

size_t rpc_script_live_count(const struct rpc_script *script)
{
	size_t count = 0;

	for (size_t i = 0; i < script->live_count; i++)
		count += script->live[i]->state != CALL_OVER;
	return count;
}

static size_t forget(struct rpc_script_call **calls, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (is_live(calls[i]) || !calls[i]->is_freed)
			calls[kept++] = calls[i];
		else
			call_free(calls[i]);
	}
	return kept;
}

void rpc_script_forget_ended(struct rpc_script *script)
{
	drop_dead(script);
	script->seen_count = forget(script->seen, script->seen_count);
	script->unseen_count = forget(script->unseen, script->unseen_count);
}
