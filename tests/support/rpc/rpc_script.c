/* A call is two queues of things with a due time, one each way, and the state at either end. The one actor
 * looks at all live calls, hands over what is due, and sets its timer to what comes next. A message waits,
 * after its time has come, until the client asks for it; an end waits behind it.
 *
 *   client                         script                              peer (the test)
 *   call/stream_open -> WAITING --an endpoint is up--> OPEN
 *   stream_send      -> to_peer   --due--------------> messages[]      message()
 *   message()        <- to_client <-due and asked for-                 rpc_script_send
 *   ended()          <- end       <-due, queue empty--                 rpc_script_end, cut, cancel, timeout
 */
#include "vdtest.h"
#include "actor_sim.h"
#include "rpc_script_state.h"

#define EXPECT_LIMIT VD_SECONDS(60)

/* ---- The script ---- */

struct rpc_script *rpc_script_new(struct vd_env *env, uint64_t seed, const char *const *endpoints,
				  size_t endpoint_count)
{
	struct rpc_script      *script = rpc_script_peer_alloc(sizeof *script);
	struct vd_actor_options options = { .name = "rpc_script", .run = rpc_script_run, .arg = script };

	VDI_CHECK(endpoint_count > 0 && endpoint_count <= RPC_SCRIPT_ENDPOINTS_MAX);
	script->client.ops = &rpc_script_ops;
	script->env = env;
	vdi_rand_init(&script->rand, seed ^ UINT64_C(0x5c1297));
	for (size_t i = 0; i < endpoint_count; i++) {
		script->endpoints[i] = rpc_script_peer_text(endpoints[i]);
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
		rpc_script_client_close(&script->client, NULL, NULL);
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
			rpc_script_break_call(script->live[i], VDI_RPC_UNAVAILABLE, text, false);
}

void rpc_script_set_up(struct rpc_script *script, size_t endpoint, bool up)
{
	VDI_CHECK(endpoint < script->endpoint_count);
	script->up[endpoint] = up;
	snprintf(script->last_errors[endpoint], sizeof script->last_errors[endpoint], "%s",
		 up ? "" : "connection refused");
	if (!up)
		break_endpoint(script, endpoint, "Socket closed");
	rpc_script_wake(script);
}

void rpc_script_cut(struct rpc_script *script, size_t endpoint)
{
	break_endpoint(script, endpoint, "Socket closed");
}

void rpc_script_cut_call(struct rpc_script_call *call, int code, const char *text)
{
	rpc_script_break_call(call, code, text, false);
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
	rpc_script_queue_put(&call->to_client, rpc_script_peer_item_new(ITEM_MESSAGE, message),
			     vd_mono_add(rpc_script_arrival(script), delay));
	rpc_script_wake(script);
}

void rpc_script_send(struct rpc_script_call *call, struct vd_bytes message)
{
	rpc_script_send_later(call, message, (vd_dur) { 0 });
}

void rpc_script_end_later(struct rpc_script_call *call, int code, const char *text, vd_dur delay)
{
	vd_mono due = vd_mono_add(rpc_script_arrival(call->script), delay);

	call->is_peer_ended = true;
	rpc_script_decide_end(call, (vd_mono) { VDI_MAX(due.ns, call->to_client.due_last.ns) }, code, text,
			      false);
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
		if (rpc_script_is_live(calls[i]) || !calls[i]->is_freed)
			calls[kept++] = calls[i];
		else
			rpc_script_call_free(calls[i]);
	}
	return kept;
}

void rpc_script_forget_ended(struct rpc_script *script)
{
	rpc_script_drop_dead(script);
	script->seen_count = forget(script->seen, script->seen_count);
	script->unseen_count = forget(script->unseen, script->unseen_count);
}
