#include "etcd_loop.h"

#include "actor_sim.h"
#include "etcd_client.h"
#include "etcd_store.h"
#include "rpc_etcd_options.h"
#include "vdtest.h"
#include "wait.h"

struct loop_message {
	struct loop_message *next;
	size_t		     size;
	char		     bytes[];
};

struct loop_call {
	struct vdi_serve_call	base; /* first */
	struct etcd_loop       *loop;
	struct rpc_script_call *peer;
	struct loop_message    *first, **last;
	bool			is_half_closed; /* and the server was not notified yet */
	unsigned		wanted;
	bool			is_pumping; /* the server handles a message: one at a time */
	bool			is_over;
	struct loop_call       *next; /* list of calls whose end the server was not notified of */
};

static const char endpoint[] = "http://loop:2379";

static struct loop_call *call_of(struct vdi_serve_call *base)
{
	return (struct loop_call *) base;
}

static void release_message(void *owner)
{
	free(owner);
}

/* Delivers the client's messages that the server has requested. */
static void pump(struct loop_call *call)
{
	if (call->is_pumping)
		return;
	call->is_pumping = true;
	while (call->wanted && !call->is_over && (call->first || call->is_half_closed)) {
		struct loop_message   *message = call->first;
		struct vdi_rpc_message given = { 0 };

		call->wanted--;
		if (message) {
			call->first = message->next;
			if (call->first == NULL)
				call->last = &call->first;
			given = (struct vdi_rpc_message) { .bytes = { message->bytes, message->size },
							   .owner = message,
							   .release = release_message };
		} else {
			call->is_half_closed = false;
		}
		vdi_etcdserver_message(&call->base, &given);
	}
	call->is_pumping = false;
}

/* Ends a call, once; the actor notifies the server. */
static void is_over(struct loop_call *call)
{
	if (call->is_over)
		return;
	call->is_over = true;
	call->next = call->loop->ended;
	call->loop->ended = call;
	vd_actor_wake(call->loop->actor);
}

static void tell_ends(void *arg)
{
	struct etcd_loop *loop = arg;

	while (loop->ended) {
		struct loop_call *call = loop->ended;

		loop->ended = call->next;
		vdi_etcdserver_ended(&call->base);
	}
}

/* ---- The server's side ---- */

static void send_joined(void (*send)(struct rpc_script_call *call, struct vd_bytes message),
			struct loop_call *call, struct vd_bytes head, struct vdi_rpc_blob *blob)
{
	struct vd_bytes body = blob ? vdi_rpc_blob_bytes(blob) : VD_BYTES_NONE;
	char	       *joined = malloc(head.size + body.size + 1);

	assert_non_null(joined);
	if (head.size)
		memcpy(joined, head.data, head.size);
	if (body.size)
		memcpy(joined + head.size, body.data, body.size);
	send(call->peer, (struct vd_bytes) { joined, head.size + body.size });
	free(joined);
}

static vd_status loop_send(struct vdi_serve_call *base, struct vd_bytes head, struct vdi_rpc_blob *blob)
{
	struct loop_call *call = call_of(base);

	if (call->is_over)
		return VD_CLOSED;
	send_joined(rpc_script_send, call, head, blob);
	return VD_OK;
}

static void loop_finish(struct vdi_serve_call *base, int code, const char *message)
{
	struct loop_call *call = call_of(base);

	if (call->is_over)
		return;
	rpc_script_end(call->peer, code, message);
	is_over(call);
}

static vd_status loop_answer(struct vdi_serve_call *base, struct vdi_rpc_blob *blob)
{
	struct loop_call *call = call_of(base);

	if (call->is_over)
		return VD_CLOSED;
	send_joined(rpc_script_answer, call, VD_BYTES_NONE, blob);
	is_over(call);
	return VD_OK;
}

static void loop_receive(struct vdi_serve_call *base)
{
	call_of(base)->wanted++;
	pump(call_of(base));
}

static bool loop_metadata(struct vdi_serve_call *base, const char *key, struct vd_bytes *ret_value)
{
	*ret_value = rpc_script_call_metadata(call_of(base)->peer, key);
	return ret_value->data != NULL;
}

static const char *loop_common_name(struct vdi_serve_call *base)
{
	(void) base;
	return "";
}

static void loop_free(struct vdi_serve_call *base)
{
	struct loop_call *call = call_of(base);

	while (call->first) {
		struct loop_message *message = call->first;

		call->first = message->next;
		free(message);
	}
	rpc_script_call_set_data(call->peer, NULL); /* messages still in flight are dropped */
	free(call);
}

static const struct vdi_serve_call_ops loop_ops = { loop_send,	  loop_finish,	 loop_answer,
						    loop_receive, loop_metadata, loop_common_name,
						    loop_free };

/* ---- The client's side ---- */

static void on_opened(void *arg, struct rpc_script_call *peer)
{
	struct etcd_loop *loop = arg;
	struct loop_call *call = calloc(1, sizeof *call);

	assert_non_null(call);
	call->base.ops = &loop_ops;
	call->loop = loop;
	call->peer = peer;
	call->last = &call->first;
	rpc_script_call_set_data(peer, call);
	vdi_etcdserver_accept(loop->server, &call->base, rpc_script_call_method(peer));
}

static void on_message(void *arg, struct rpc_script_call *peer, struct vd_bytes bytes)
{
	struct loop_call    *call = rpc_script_call_data(peer);
	struct loop_message *message;

	(void) arg;
	if (call == NULL || call->is_over)
		return;
	message = malloc(sizeof *message + bytes.size + 1);
	assert_non_null(message);
	message->next = NULL;
	message->size = bytes.size;
	if (bytes.size)
		memcpy(message->bytes, bytes.data, bytes.size);
	*call->last = message;
	call->last = &message->next;
	pump(call);
}

static void on_half_closed(void *arg, struct rpc_script_call *peer)
{
	struct loop_call *call = rpc_script_call_data(peer);

	(void) arg;
	if (call == NULL || call->is_over)
		return;
	call->is_half_closed = true;
	pump(call);
}

static void on_canceled(void *arg, struct rpc_script_call *peer)
{
	(void) arg;
	if (rpc_script_call_data(peer))
		is_over(rpc_script_call_data(peer));
}

void etcd_loop_open(struct etcd_loop *loop, struct vd_env *env, uint64_t seed, vd_dur progress)
{
	static const char *const      endpoints[] = { endpoint };
	struct vdi_etcdserver_options server = { .bcrypt_cost = 4, .progress_interval = progress };
	struct vd_mvcc_options	      mvcc = VD_MVCC_OPTIONS_INIT;
	struct rpc_script_peer	      peer = { on_opened, on_message, on_half_closed, on_canceled, loop };
	struct vd_actor_options	      actor = { .name = "etcd_loop", .run = tell_ends, .arg = loop };

	memset(loop, 0, sizeof *loop);
	loop->env = env;
	mvcc.history_window = (vd_dur) { 0 };
	mvcc.progress_interval = progress;
	assert_status(vd_store_open_mvcc(env, &mvcc, &loop->mvcc, NULL), VD_OK);
	server.store = loop->mvcc;
	assert_status(vdi_etcdserver_new(env, &server, &loop->server, NULL), VD_OK);
	assert_status(vd_actor_new(env, &actor, &loop->actor), VD_OK);
	loop->script = rpc_script_new(env, seed, endpoints, 1);
	rpc_script_set_peer(loop->script, &peer);
}

struct vd_store *etcd_loop_store(struct etcd_loop *loop)
{
	static const char *const     endpoints[] = { endpoint };
	struct vd_etcd_options	     etcd = etcd_options_under_test();
	struct vd_etcd_store_options options = VD_ETCD_STORE_OPTIONS_INIT;
	struct vdi_etcd_store	    *store = NULL;
	struct vd_etcd		    *client = NULL;

	etcd.endpoints = endpoints;
	etcd.endpoint_count = 1;
	options.compaction_interval = (vd_dur) { 0 };
	assert_status(vdi_etcd_new(loop->env, &etcd, rpc_script_client(loop->script), &client, NULL), VD_OK);
	assert_status(vdi_etcd_store_new(loop->env, client, &options, endpoints, 1, &store, NULL), VD_OK);
	assert_status(vdi_etcd_store_wait(store, VD_SECONDS(20), NULL), VD_OK);
	return &store->base;
}

void etcd_loop_close(struct etcd_loop *loop)
{
	vdi_etcdserver_stop(loop->server);
	(void) vdi_sim_run_until_idle(loop->env);
	rpc_script_free(loop->script);
	loop->server = vdi_etcdserver_free(loop->server);
	vdi_wait_for_actor_close(loop->env, loop->actor);
	loop->mvcc = vd_store_close_wait(loop->mvcc);
}
