/* Calls of the store, codec, env, poller, replay and server outside their contract: each is refused, and
 * harms nothing. */
#include "misuse.h"

#include <unistd.h>

#include "actor_sim.h"

#define A vd_bytes_of("a")
#define NO_BYTES ((struct vd_bytes) { NULL, 3 })

#define CALL(name, call)                                                                                     \
	static vd_status name(struct misuse_world *w)                                                        \
	{                                                                                                    \
		return call;                                                                                 \
	}

/* ---- Bytes, records, objects, codecs ---- */

#define RESULT(name, type, call)                                                                             \
	static vd_status name(struct misuse_world *w)                                                        \
	{                                                                                                    \
		struct type *result = NULL;                                                                  \
		vd_status    status = call;                                                                  \
		assert_null(result);                                                                         \
		return status;                                                                               \
	}

CALL(blob_without_result, vd_blob_new(A, NULL))
RESULT(blob_without_bytes, vd_blob, vd_blob_new(NO_BYTES, &result))
CALL(kv_without_result, vd_kv_new(A, A, NULL))
RESULT(kv_without_key, vd_kv, vd_kv_new(NO_BYTES, A, &result))
RESULT(kv_without_value, vd_kv, vd_kv_new(A, NO_BYTES, &result))
CALL(codec_without_result, vd_codec_json_new(NULL, 0, NULL, &w->error))
RESULT(codec_without_fields, vd_codec, vd_codec_json_new(NULL, 2, &result, &w->error))
RESULT(object_without_kv, vd_object, vd_object_new(w->codec, NULL, &result, &w->error))

static vd_status object_with(struct misuse_world *w, const struct vd_codec *codec, bool has_result)
{
	struct vd_object *object = NULL;
	struct vd_kv	 *kv;
	vd_status	  status;

	assert_status(vd_kv_new(A, vd_bytes_of("{\"metadata\":{}}"), &kv), VD_OK);
	status = vd_object_new(codec, kv, has_result ? &object : NULL, &w->error);
	vd_kv_unref(kv);
	return status;
}

CALL(object_without_codec, object_with(w, NULL, true))
CALL(object_without_result, object_with(w, w->codec, false))

static vd_status codec_with(struct misuse_world *w, const char *name, const char *json_path)
{
	struct vd_field_spec field = { name, json_path, NULL };
	struct vd_codec	    *codec;

	return vd_codec_json_new(&field, 1, &codec, &w->error);
}
CALL(nameless_field, codec_with(w, NULL, ".a"))
CALL(field_with_an_empty_name, codec_with(w, "", ".a"))
CALL(field_without_path, codec_with(w, "a", NULL))

/* ---- Envs, actors, pollers ---- */

static void no_run(void *arg)
{
	(void) arg;
}

static const struct vd_actor_options actor = { .name = "actor", .run = no_run };
static const struct vd_actor_options nameless = { .run = no_run };
static const struct vd_actor_options handlerless = { .name = "actor" };

CALL(env_without_result, vd_env_new_threads(NULL, NULL))
RESULT(actor_without_env, vd_actor, vd_actor_new(NULL, &actor, &result))
RESULT(actor_without_options, vd_actor, vd_actor_new(w->env, NULL, &result))
RESULT(actor_without_name, vd_actor, vd_actor_new(w->env, &nameless, &result))
RESULT(actor_without_handler, vd_actor, vd_actor_new(w->env, &handlerless, &result))
CALL(actor_without_result, vd_actor_new(w->env, &actor, NULL))
RESULT(actor_without_executor, vd_actor, vd_executor_actor_new(NULL, &actor, &result))
RESULT(poller_without_env, vd_poller, vd_poller_new(NULL, &result))
CALL(poller_without_result, vd_poller_new(w->env, NULL))
CALL(allocator_without_functions, vd_allocator_install(&(struct vd_allocator) { 0 }))
CALL(allocator_too_late, vd_allocator_install(NULL))

static vd_status env_with(struct vd_env_options options)
{
	struct vd_env *env = NULL;
	vd_status      status = vd_env_new_threads(&options, &env);

	assert_null(env);
	return status;
}

CALL(env_of_no_size, env_with((struct vd_env_options) { 0 }))
CALL(env_with_unknown_level, env_with((struct vd_env_options) { .size = sizeof(struct vd_env_options),
								.log_level = (enum vd_log_level) 8 }))
CALL(env_with_too_many_threads,
     env_with((struct vd_env_options) { .size = sizeof(struct vd_env_options), .threads = 5000 }))

static vd_status poller_in_a_simulation(struct misuse_world *w)
{
	struct vd_poller *poller = NULL;
	struct vd_env	 *env;
	vd_status	  status;

	(void) w;
	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	status = vd_poller_new(env, &poller);
	vd_env_free(env);
	return status;
}

/* ---- The store ---- */

static void no_range(void *arg, vd_status status, const struct vd_range_result *result,
		     const struct vd_error *error)
{
	(void) arg, (void) status, (void) result, (void) error;
	fail();
}

static void no_txn(void *arg, vd_status status, const struct vd_txn_result *result,
		   const struct vd_error *error)
{
	(void) arg, (void) status, (void) result, (void) error;
	fail();
}

static void no_ready(void *arg)
{
	(void) arg;
}

static void no_dump(void *arg, struct vd_bytes json)
{
	(void) arg, (void) json;
}

static const struct vd_range_request range = { .key = { "a", 1 } };
static const struct vd_range_request keyless = { .key = { NULL, 3 } };
static const struct vd_range_request endless = { .key = { "a", 1 }, .range_end = { NULL, 3 } };
static const struct vd_txn_request   txn;
static const struct vd_txn_request   txn_without_list = { .success_count = 1 };
static const struct vd_txn_request   txn_without_compares = { .compare_count = 1 };
static const struct vd_op	     unknown_op = { .kind = (enum vd_op_kind) 77, .key = { "a", 1 } };
static const struct vd_txn_request   txn_with_unknown_op = { .success = &unknown_op, .success_count = 1 };
static const struct vd_op	     empty_nest = { .kind = VD_OP_TXN };
static const struct vd_txn_request   txn_with_empty_nest = { .success = &empty_nest, .success_count = 1 };
static const struct vd_store_watch_request  watch = { .key = { "a", 1 }, .ready = no_ready };
static const struct vd_store_watch_request  watch_without_ready = { .key = { "a", 1 } };
static const struct vd_store_watch_request  watch_before_the_start = { .key = { "a", 1 },
								       .ready = no_ready,
								       .start_revision = -3 };
static const struct vd_store_stream_request stream_without_ready = { .range = { .key = { "a", 1 } } };

CALL(range_of_nothing, vd_store_range(NULL, &range, no_range, NULL))
CALL(range_without_request, vd_store_range(w->store, NULL, no_range, NULL))
CALL(range_without_callback, vd_store_range(w->store, &range, NULL, NULL))
CALL(range_without_key, vd_store_range(w->store, &keyless, no_range, NULL))
CALL(range_without_end_bytes, vd_store_range(w->store, &endless, no_range, NULL))
CALL(txn_of_nothing, vd_store_txn(NULL, &txn, no_txn, NULL))
CALL(txn_without_request, vd_store_txn(w->store, NULL, no_txn, NULL))
CALL(txn_without_callback, vd_store_txn(w->store, &txn, NULL, NULL))
CALL(txn_without_its_list, vd_store_txn(w->store, &txn_without_list, no_txn, NULL))
CALL(txn_without_its_compares, vd_store_txn(w->store, &txn_without_compares, no_txn, NULL))
CALL(txn_of_unknown_kind, vd_store_txn(w->store, &txn_with_unknown_op, no_txn, NULL))
CALL(txn_with_nothing_nested, vd_store_txn(w->store, &txn_with_empty_nest, no_txn, NULL))
CALL(compact_without_callback, vd_store_compact(w->store, 1, false, NULL, NULL))
CALL(grant_without_callback, vd_store_lease_grant(w->store, 0, 10, NULL, NULL))
CALL(revoke_without_callback, vd_store_lease_revoke(w->store, 1, NULL, NULL))
CALL(keep_alive_without_callback, vd_store_lease_keep_alive(w->store, 1, NULL, NULL))
CALL(time_to_live_without_callback, vd_store_lease_time_to_live(w->store, 1, true, NULL, NULL))
CALL(leases_without_callback, vd_store_lease_list(w->store, NULL, NULL))
RESULT(store_watch_without_ready, vd_store_watch,
       vd_store_watch_open(w->store, &watch_without_ready, &result, &w->error))
RESULT(store_watch_before_the_start, vd_store_watch,
       vd_store_watch_open(w->store, &watch_before_the_start, &result, &w->error))
RESULT(store_watch_without_request, vd_store_watch, vd_store_watch_open(w->store, NULL, &result, &w->error))
CALL(store_watch_without_result, vd_store_watch_open(w->store, &watch, NULL, &w->error))
CALL(store_next_of_nothing, vd_store_watch_next(NULL, 1, &(struct vd_store_batch) { 0 }, &w->error))
CALL(store_progress_of_nothing, vd_store_watch_progress(NULL))
RESULT(stream_without_its_ready, vd_store_stream,
       vd_store_stream_open(w->store, &stream_without_ready, &result))
CALL(stream_next_of_nothing, vd_store_stream_next(NULL, &(struct vd_store_part) { 0 }, &w->error))
CALL(status_without_result, vd_store_status_get(w->store, NULL))
RESULT(get_wait_of_nothing, vd_kv, vd_store_get_wait(NULL, A, &result, &w->error))
CALL(get_wait_without_result, vd_store_get_wait(w->store, A, NULL, &w->error))
CALL(put_wait_of_nothing, vd_store_put_wait(NULL, A, A, NULL, &w->error))
CALL(put_wait_without_value, vd_store_put_wait(w->store, A, NO_BYTES, NULL, &w->error))
CALL(delete_wait_of_nothing, vd_store_delete_wait(NULL, A, VD_BYTES_NONE, NULL, NULL, &w->error))

static vd_status dump_without_writer(struct misuse_world *w)
{
	vd_store_dump(w->store, NULL, NULL);
	vd_store_dump(NULL, no_dump, NULL);
	return VD_INVALID_ARGUMENT;
}

static vd_status mvcc_with(struct misuse_world *w, struct vd_mvcc_options options)
{
	struct vd_store *store = NULL;
	vd_status	 status = vd_store_open_mvcc(w->env, &options, &store, &w->error);

	assert_null(store);
	return status;
}

#define MVCC(name, setting)                                                                                  \
	static vd_status name(struct misuse_world *w)                                                        \
	{                                                                                                    \
		struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;                                       \
		setting;                                                                                     \
		return mvcc_with(w, options);                                                                \
	}

MVCC(store_of_another_size, options.size = 0)
MVCC(store_with_zeroed_options, options = (struct vd_mvcc_options) { .size = sizeof options })
MVCC(store_with_negative_window, options.history_window = VD_SECONDS(-1))
MVCC(store_with_negative_progress, options.progress_interval = VD_SECONDS(-1))
MVCC(store_with_negative_quota, options.quota_bytes = -1)
RESULT(store_without_env, vd_store, vd_store_open_mvcc(NULL, NULL, &result, &w->error))
CALL(store_without_result, vd_store_open_mvcc(w->env, NULL, NULL, &w->error))

/* ---- Replay ---- */

#define PLAYER(name, setting)                                                                                \
	static vd_status name(struct misuse_world *w)                                                        \
	{                                                                                                    \
		struct vd_player_options options = VD_PLAYER_OPTIONS_INIT;                                   \
		struct vd_player	*player = NULL;                                                      \
		options.path = "/nonexistent/log";                                                           \
		setting;                                                                                     \
		return vd_player_open(w->env, &options, &player, &w->error);                                 \
	}

PLAYER(player_of_another_size, options.size = 3)
PLAYER(player_with_zeroed_options, options = (struct vd_player_options) { .size = sizeof options })
PLAYER(player_without_path, options.path = NULL)
PLAYER(player_with_negative_speed, options.speed = -1)
PLAYER(player_without_lead, options.lead_max = 0)
PLAYER(player_with_unknown_fault, options.faults = "nosuch=1")
PLAYER(player_without_result, (void) player; return vd_player_open(w->env, &options, NULL, &w->error))
RESULT(player_without_options, vd_player, vd_player_open(w->env, NULL, &result, &w->error))
CALL(player_wait_of_nothing, vd_player_wait(NULL, 1, VD_SECONDS(-1), &w->error))
RESULT(simulation_without_options, vd_simulation, vd_simulation_open(NULL, &result, &w->error))
CALL(simulation_run_of_nothing, vd_simulation_run(NULL, 1, &w->error))
RESULT(simulation_cacher_of_nothing, vd_cacher, vd_simulation_cacher(NULL, "/a/", false, &result, &w->error))
CALL(simulation_rule_of_nothing, vd_simulation_always(NULL, "rule", NULL, NULL))

/* ---- The server ---- */

#define SERVER(name, setting)                                                                                \
	static vd_status name(struct misuse_world *w)                                                        \
	{                                                                                                    \
		struct vd_server_options options = VD_SERVER_OPTIONS_INIT;                                   \
		struct vd_server	*server = NULL;                                                      \
		options.listen = "127.0.0.1:0";                                                              \
		setting;                                                                                     \
		return vd_server_new(w->env, w->store, &options, &server, &w->error);                        \
	}

SERVER(server_of_another_size, options.size = 3)
SERVER(server_with_zeroed_options, memset(&options, 0, sizeof options); options.size = sizeof options;
       options.listen = "127.0.0.1:0")
SERVER(server_without_address, options.listen = NULL)
SERVER(server_without_request_timeout, options.request_timeout = VD_SECONDS(0))
SERVER(server_with_negative_idle_timeout, options.idle_timeout = VD_SECONDS(-1))
SERVER(server_without_connections, options.connection_count_max = 0)
SERVER(server_without_history, options.history_bytes = 0)
SERVER(server_with_unknown_audit_level, options.audit_level = 12; options.audit_path = "-")
SERVER(server_with_too_many_threads, options.threads = 1000)
SERVER(server_that_always_cuts_twice, options.cut_frames = 2)
SERVER(server_without_resource_bytes, options.resources = NO_BYTES)
SERVER(server_without_result, (void) server;
       return vd_server_new(w->env, w->store, &options, NULL, &w->error))
SERVER(server_without_env, return vd_server_new(NULL, w->store, &options, &server, &w->error))
SERVER(server_without_store, return vd_server_new(w->env, NULL, &options, &server, &w->error))
CALL(server_start_of_nothing, vd_server_start(NULL, VD_SECONDS(-1), &w->error))
CALL(server_reload_of_nothing, vd_server_reload(NULL, &w->error))
CALL(server_ping_of_nothing, vd_server_ping(NULL, VD_SECONDS(1)))
CALL(server_drain_of_nothing, vd_server_drain(NULL, VD_SECONDS(1)))

/* The socket is the server's also when it fails. */
static vd_status server_keeps_no_socket(struct misuse_world *w)
{
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;
	struct vd_server	*server = NULL;
	int			 fds[2];
	char			 byte;
	vd_status		 status;

	assert_int_equal(pipe(fds), 0);
	options.listen_socket = fds[1];
	status = vd_server_new(w->env, NULL, &options, &server, &w->error);
	assert_int_equal(read(fds[0], &byte, 1), 0); /* the other end was closed */
	close(fds[0]);
	return status;
}

static const struct misuse misuses[] = {
	MISUSE(blob_without_result, VD_INVALID_ARGUMENT, NULL),
	MISUSE(blob_without_bytes, VD_INVALID_ARGUMENT, NULL),
	MISUSE(kv_without_result, VD_INVALID_ARGUMENT, NULL),
	MISUSE(kv_without_key, VD_INVALID_ARGUMENT, NULL),
	MISUSE(kv_without_value, VD_INVALID_ARGUMENT, NULL),
	MISUSE(codec_without_result, VD_INVALID_ARGUMENT, "ret_codec is NULL"),
	MISUSE(codec_without_fields, VD_INVALID_ARGUMENT, "fields is NULL but field_count is 2"),
	MISUSE(nameless_field, VD_INVALID_ARGUMENT, "declared field 0 needs a name"),
	MISUSE(field_with_an_empty_name, VD_INVALID_ARGUMENT, "declared field 0 needs a name"),
	MISUSE(field_without_path, VD_INVALID_ARGUMENT, "declared field 0 needs a name"),
	MISUSE(object_without_kv, VD_INVALID_ARGUMENT, "kv is NULL"),
	MISUSE(object_without_codec, VD_INVALID_ARGUMENT, "codec is NULL"),
	MISUSE(object_without_result, VD_INVALID_ARGUMENT, "ret_object is NULL"),
	MISUSE(env_without_result, VD_INVALID_ARGUMENT, NULL),
	MISUSE(env_of_no_size, VD_INVALID_ARGUMENT, NULL),
	MISUSE(env_with_unknown_level, VD_INVALID_ARGUMENT, NULL),
	MISUSE(env_with_too_many_threads, VD_INVALID_ARGUMENT, NULL),
	MISUSE(actor_without_env, VD_INVALID_ARGUMENT, NULL),
	MISUSE(actor_without_options, VD_INVALID_ARGUMENT, NULL),
	MISUSE(actor_without_name, VD_INVALID_ARGUMENT, NULL),
	MISUSE(actor_without_handler, VD_INVALID_ARGUMENT, NULL),
	MISUSE(actor_without_result, VD_INVALID_ARGUMENT, NULL),
	MISUSE(actor_without_executor, VD_INVALID_ARGUMENT, NULL),
	MISUSE(poller_without_env, VD_INVALID_ARGUMENT, NULL),
	MISUSE(poller_without_result, VD_INVALID_ARGUMENT, NULL),
	MISUSE(poller_in_a_simulation, VD_INVALID_ARGUMENT, NULL),
	MISUSE(allocator_without_functions, VD_INVALID_ARGUMENT, NULL),
	MISUSE(allocator_too_late, VD_INVALID_ARGUMENT, NULL),
	MISUSE(range_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(range_without_request, VD_INVALID_ARGUMENT, NULL),
	MISUSE(range_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(range_without_key, VD_INVALID_ARGUMENT, NULL),
	MISUSE(range_without_end_bytes, VD_INVALID_ARGUMENT, NULL),
	MISUSE(txn_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(txn_without_request, VD_INVALID_ARGUMENT, NULL),
	MISUSE(txn_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(txn_without_its_list, VD_INVALID_ARGUMENT, NULL),
	MISUSE(txn_without_its_compares, VD_INVALID_ARGUMENT, NULL),
	MISUSE(txn_of_unknown_kind, VD_INVALID_ARGUMENT, NULL),
	MISUSE(txn_with_nothing_nested, VD_INVALID_ARGUMENT, NULL),
	MISUSE(compact_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(grant_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(revoke_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(keep_alive_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(time_to_live_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(leases_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(store_watch_without_ready, VD_INVALID_ARGUMENT, "ready is NULL"),
	MISUSE(store_watch_before_the_start, VD_INVALID_ARGUMENT, "negative"),
	MISUSE(store_watch_without_request, VD_INVALID_ARGUMENT, "request is NULL"),
	MISUSE(store_watch_without_result, VD_INVALID_ARGUMENT, "ret_watch is NULL"),
	MISUSE(store_next_of_nothing, VD_INVALID_ARGUMENT, "watch is NULL"),
	MISUSE(store_progress_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(stream_without_its_ready, VD_INVALID_ARGUMENT, NULL),
	MISUSE(stream_next_of_nothing, VD_INVALID_ARGUMENT, "stream is NULL"),
	MISUSE(status_without_result, VD_INVALID_ARGUMENT, NULL),
	MISUSE(get_wait_of_nothing, VD_INVALID_ARGUMENT, "store is NULL"),
	MISUSE(get_wait_without_result, VD_INVALID_ARGUMENT, "ret_kv is NULL"),
	MISUSE(put_wait_of_nothing, VD_INVALID_ARGUMENT, "store is NULL"),
	MISUSE(put_wait_without_value, VD_INVALID_ARGUMENT, ""),
	MISUSE(delete_wait_of_nothing, VD_INVALID_ARGUMENT, "store is NULL"),
	MISUSE(dump_without_writer, VD_INVALID_ARGUMENT, NULL),
	MISUSE(store_of_another_size, VD_INVALID_ARGUMENT, "options of 0 bytes"),
	MISUSE(store_with_zeroed_options, VD_INVALID_ARGUMENT, "in_flight_max"),
	MISUSE(store_with_negative_window, VD_INVALID_ARGUMENT, "history_window"),
	MISUSE(store_with_negative_progress, VD_INVALID_ARGUMENT, "progress_interval"),
	MISUSE(store_with_negative_quota, VD_INVALID_ARGUMENT, "quota_bytes"),
	MISUSE(store_without_env, VD_INVALID_ARGUMENT, "env is NULL"),
	MISUSE(store_without_result, VD_INVALID_ARGUMENT, "ret_store is NULL"),
	MISUSE(player_of_another_size, VD_INVALID_ARGUMENT, "options of 3 bytes"),
	MISUSE(player_with_zeroed_options, VD_INVALID_ARGUMENT, "path is NULL"),
	MISUSE(player_without_path, VD_INVALID_ARGUMENT, "path is NULL"),
	MISUSE(player_with_negative_speed, VD_INVALID_ARGUMENT, "speed"),
	MISUSE(player_without_lead, VD_INVALID_ARGUMENT, "lead_max"),
	MISUSE(player_with_unknown_fault, VD_INVALID_ARGUMENT, "nosuch"),
	MISUSE(player_without_result, VD_INVALID_ARGUMENT, "ret_player is NULL"),
	MISUSE(player_without_options, VD_INVALID_ARGUMENT, "options is NULL"),
	MISUSE(player_wait_of_nothing, VD_INVALID_ARGUMENT, "player is NULL"),
	MISUSE(simulation_without_options, VD_INVALID_ARGUMENT, "options is NULL"),
	MISUSE(simulation_run_of_nothing, VD_INVALID_ARGUMENT, "simulation is NULL"),
	MISUSE(simulation_cacher_of_nothing, VD_INVALID_ARGUMENT, "simulation is NULL"),
	MISUSE(simulation_rule_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(server_of_another_size, VD_INVALID_ARGUMENT, "options of 3 bytes"),
	MISUSE(server_with_zeroed_options, VD_INVALID_ARGUMENT, "head_timeout is 0 ms"),
	MISUSE(server_without_address, VD_INVALID_ARGUMENT, "listen address"),
	MISUSE(server_without_request_timeout, VD_INVALID_ARGUMENT, "request_timeout is 0 ms"),
	MISUSE(server_with_negative_idle_timeout, VD_INVALID_ARGUMENT, "idle_timeout is -1000 ms"),
	MISUSE(server_without_connections, VD_INVALID_ARGUMENT, "connection_count_max"),
	MISUSE(server_without_history, VD_INVALID_ARGUMENT, "history_bytes"),
	MISUSE(server_with_unknown_audit_level, VD_INVALID_ARGUMENT, ""),
	MISUSE(server_with_too_many_threads, VD_INVALID_ARGUMENT, "1000 threads"),
	MISUSE(server_that_always_cuts_twice, VD_INVALID_ARGUMENT, "cut_frames is 2"),
	MISUSE(server_without_resource_bytes, VD_INVALID_ARGUMENT, "resources.data is NULL"),
	MISUSE(server_without_result, VD_INVALID_ARGUMENT, "ret_server is NULL"),
	MISUSE(server_without_env, VD_INVALID_ARGUMENT, "env is NULL"),
	MISUSE(server_without_store, VD_INVALID_ARGUMENT, "store is NULL"),
	MISUSE(server_start_of_nothing, VD_INVALID_ARGUMENT, "server is NULL"),
	MISUSE(server_reload_of_nothing, VD_INVALID_ARGUMENT, "server is NULL"),
	MISUSE(server_ping_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(server_drain_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(server_keeps_no_socket, VD_INVALID_ARGUMENT, "store is NULL"),
};

int main(void)
{
	return misuse_run("misuse", misuses, VDI_ARRAY_SIZE(misuses));
}
