/* Every method of the etcd server with arbitrary requests: the decoders, and the execution of the accepted
 * requests. An input is a few calls to a server of its own, without a network:
 *
 *   method, size, bytes; method, size, bytes; ...          size 255: the rest of the input
 *
 * Streams stay open and get the next message for their method. Their clients read a little, then nothing,
 * then everything.
 */
#include <vedette/vedette.h>

#include "actor_sim.h"
#include "env.h"
#include "etcdserver.h"
#include "fuzz.h"

#define CALLS_MAX 24
#define METHODS_MAX 80
#define STREAM_ROOM 8

struct fuzz_call {
	struct vdi_serve_call base; /* first */
	size_t		      room;
	unsigned	      wanted;
	bool		      is_open;
	bool		      is_finished;
	bool		      is_freed;
	bool		      is_stream;
};

static const struct vdi_serve_method *methods[METHODS_MAX];
static size_t			      method_count;

static struct fuzz_call *call_of(struct vdi_serve_call *base)
{
	return (struct fuzz_call *) base;
}

static vd_status call_send(struct vdi_serve_call *base, struct vd_bytes head, struct vdi_rpc_blob *blob)
{
	struct fuzz_call *call = call_of(base);

	if (call->is_finished)
		return VD_CLOSED;
	if (call->room == 0)
		return VD_FULL;
	call->room--;
	VDI_CHECK(head.size + (blob ? vdi_rpc_blob_bytes(blob).size : 0) > 0);
	return VD_OK;
}

static void call_finish(struct vdi_serve_call *base, int code, const char *message)
{
	VDI_CHECK(code >= 0 && code <= 16 && message);
	call_of(base)->is_finished = true;
}

static vd_status call_answer(struct vdi_serve_call *base, struct vdi_rpc_blob *blob)
{
	(void) blob;
	VDI_CHECK(!call_of(base)->is_finished);
	call_of(base)->is_finished = true;
	return VD_OK;
}

static void call_receive(struct vdi_serve_call *base)
{
	call_of(base)->wanted++;
}

static bool call_metadata(struct vdi_serve_call *base, const char *key, struct vd_bytes *ret_value)
{
	(void) base;
	(void) key;
	(void) ret_value;
	return false;
}

static const char *call_common_name(struct vdi_serve_call *base)
{
	(void) base;
	return "root";
}

static void call_free(struct vdi_serve_call *base)
{
	call_of(base)->is_freed = true;
}

static const struct vdi_serve_call_ops ops = { call_send,     call_finish,	call_answer, call_receive,
					       call_metadata, call_common_name, call_free };

static void add_methods(const struct vdi_serve_method *table)
{
	for (; table->path; table++) {
		VDI_CHECK(method_count < METHODS_MAX);
		methods[method_count++] = table;
	}
}

static void find_methods(void)
{
	add_methods(vdi_serve_kv_methods);
	add_methods(vdi_serve_watch_methods);
	add_methods(vdi_serve_lease_methods);
	add_methods(vdi_serve_maintenance_methods);
	add_methods(vdi_serve_cluster_methods);
	add_methods(vdi_serve_auth_methods);
	add_methods(vdi_serve_health_methods);
}

static void release_copy(void *owner)
{
	free(owner);
}

/* Each message is in a block of its own size, so that a read beyond it is detected. */
static void deliver(struct fuzz_call *call, const uint8_t *data, size_t size)
{
	uint8_t		      *copy = malloc(size ? size : 1);
	struct vdi_rpc_message message = { .bytes = { copy, size }, .owner = copy, .release = release_copy };

	if (copy == NULL)
		abort();
	memcpy(copy, data, size);
	call->wanted--;
	vdi_etcdserver_message(&call->base, &message);
}

static struct fuzz_call *open_call(struct vdi_etcdserver *server, struct fuzz_call *calls, size_t *count,
				   const struct vdi_serve_method *method)
{
	struct fuzz_call *call;

	for (size_t i = 0; i < *count; i++)
		if (calls[i].is_stream && calls[i].is_open && calls[i].base.method == method)
			return &calls[i];
	if (*count == CALLS_MAX)
		return NULL;
	call = &calls[(*count)++];
	*call = (struct fuzz_call) { .base = { .ops = &ops },
				     .room = STREAM_ROOM,
				     .is_open = true,
				     .is_stream = method->kind == VDI_SERVE_STREAM };
	vdi_etcdserver_accept(server, &call->base, method->path);
	return call;
}

static void end_call(struct vd_env *env, struct fuzz_call *call)
{
	call->is_open = false;
	vdi_etcdserver_ended(&call->base);
	(void) vdi_sim_run_until_idle(env);
	VDI_CHECK(call->is_freed);
}

/* Every request is answered in the end. Answers of many messages wait for room. */
static void finish_unary(struct vd_env *env, struct fuzz_call *call)
{
	for (int tries = 0; tries < 20 && !call->is_finished; tries++) {
		call->room = STREAM_ROOM;
		vdi_etcdserver_writable(&call->base);
		(void) vdi_sim_run_until_idle(env);
		if (!call->is_finished)
			vdi_sim_advance(env, VD_MS(100));
	}
	VDI_CHECK(call->is_finished || strcmp(call->base.method->path, "/grpc.health.v1.Health/Watch") == 0);
	end_call(env, call);
}

static void make_calls(struct vd_env *env, struct vdi_etcdserver *server, const uint8_t *data, size_t size)
{
	struct fuzz_call calls[CALLS_MAX];
	size_t		 count = 0;

	while (size >= 2) {
		size_t		  length = data[1] == 255 ? size - 2 : VDI_MIN((size_t) data[1], size - 2);
		struct fuzz_call *call = open_call(server, calls, &count, methods[data[0] % method_count]);

		if (call == NULL)
			break;
		(void) vdi_sim_run_until_idle(env);
		if (!call->is_finished && call->wanted)
			deliver(call, data + 2, length);
		(void) vdi_sim_run_until_idle(env);
		if (!call->is_stream)
			finish_unary(env, call);
		data += 2 + length;
		size -= 2 + length;
	}
	vdi_sim_advance(env, VD_SECONDS(3));
	(void) vdi_sim_run_until_idle(env);
	for (size_t i = 0; i < count; i++)
		if (calls[i].is_open) {
			calls[i].room = SIZE_MAX;
			vdi_etcdserver_writable(&calls[i].base);
			(void) vdi_sim_run_until_idle(env);
			end_call(env, &calls[i]);
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const      urls[] = { "http://localhost:2380" };
	struct vdi_etcdserver_options options = { .name = "fuzz",
						  .bcrypt_cost = 4,
						  .client_cert_auth = true,
						  .peer_urls = urls,
						  .peer_url_count = 1 };
	struct vd_mvcc_options	      mvcc = VD_MVCC_OPTIONS_INIT;
	struct vdi_etcdserver	     *server;
	struct vd_env		     *env;

	if (method_count == 0)
		find_methods();
	mvcc.history_window = (vd_dur) { 0 };
	if (vdi_env_new_sim(7, NULL, NULL, &env) != VD_OK ||
	    vd_store_open_mvcc(env, &mvcc, &options.store, NULL) != VD_OK ||
	    vdi_etcdserver_new(env, &options, &server, NULL) != VD_OK)
		abort();
	make_calls(env, server, data, size);
	vdi_etcdserver_stop(server);
	(void) vdi_sim_run_until_idle(env);
	(void) vdi_etcdserver_free(server);
	(void) vd_store_close_wait(options.store);
	(void) vd_env_free(env);
	VDI_CHECK(vdi_alloc_live() == 0);
	return 0;
}
