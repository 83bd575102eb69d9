/* Calls of the etcd client outside their contract: each is refused, and reaches nobody. */
#include <vedette/etcd.h>

#include "misuse.h"

#define NO_BYTES ((struct vd_bytes) { NULL, 3 })

static const char *const nowhere[] = { "127.0.0.1:1" };

static struct vd_etcd_options options_of(void)
{
	struct vd_etcd_options options = VD_ETCD_OPTIONS_INIT;

	options.endpoints = nowhere;
	options.endpoint_count = 1;
	return options;
}

/* ---- Opening ---- */

#define OPEN(name, setting)                                                                                  \
	static vd_status name(struct misuse_world *w)                                                        \
	{                                                                                                    \
		struct vd_etcd_options options = options_of();                                               \
		struct vd_etcd	      *client = NULL;                                                        \
		setting;                                                                                     \
		return vd_etcd_open(w->env, &options, &client, &w->error);                                   \
	}

OPEN(client_of_another_size, options.size = 2)
OPEN(client_with_zeroed_options, memset(&options, 0, sizeof options); options.size = sizeof options)
OPEN(client_without_endpoints, options.endpoints = NULL)
OPEN(client_with_negative_timeout, options.call_timeout = VD_SECONDS(-1))
OPEN(client_without_attempts, options.attempts_max = 0)
OPEN(client_without_env, return vd_etcd_open(NULL, &options, &client, &w->error))
OPEN(client_without_options, return vd_etcd_open(w->env, NULL, &client, &w->error))
OPEN(client_without_result, (void) client; return vd_etcd_open(w->env, &options, NULL, &w->error))

#define STORE(name, setting)                                                                                 \
	static vd_status name(struct misuse_world *w)                                                        \
	{                                                                                                    \
		struct vd_etcd_options	     client = options_of();                                          \
		struct vd_etcd_store_options options = VD_ETCD_STORE_OPTIONS_INIT;                           \
		struct vd_store		    *store = NULL;                                                   \
		options.etcd = &client;                                                                      \
		setting;                                                                                     \
		return vd_store_open_etcd(w->env, &options, &store, &w->error);                              \
	}

STORE(store_of_another_size, options.size = 2)
STORE(store_with_zeroed_options, memset(&options, 0, sizeof options); options.size = sizeof options;
      options.etcd = &client)
STORE(store_without_client, options.etcd = NULL)
STORE(store_with_negative_start, options.start_timeout = VD_SECONDS(-1))
STORE(store_without_result, (void) store; return vd_store_open_etcd(w->env, &options, NULL, &w->error))
STORE(store_without_options, return vd_store_open_etcd(w->env, NULL, &store, &w->error))

/* ---- Calls ---- */

static vd_status with_client(struct misuse_world *w,
			     vd_status (*commit)(struct misuse_world *w, struct vd_etcd *client))
{
	struct vd_etcd_options options = options_of();
	struct vd_etcd	      *client;
	vd_status	       status;

	assert_status(vd_etcd_open(w->env, &options, &client, NULL), VD_OK);
	status = commit(w, client);
	assert_null(vd_etcd_close_wait(client));
	return status;
}

#define CALL(name, call)                                                                                     \
	static vd_status call_##name(struct misuse_world *w, struct vd_etcd *client)                         \
	{                                                                                                    \
		(void) w;                                                                                    \
		return call;                                                                                 \
	}                                                                                                    \
	static vd_status name(struct misuse_world *w)                                                        \
	{                                                                                                    \
		return with_client(w, call_##name);                                                          \
	}

static void no_range(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		     const struct vd_range_result *result)
{
	(void) arg, (void) error, (void) header, (void) result;
	fail();
}

static void no_op(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		  const struct vd_op_result *result)
{
	(void) arg, (void) error, (void) header, (void) result;
	fail();
}

static void no_txn(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		   const struct vd_txn_result *result)
{
	(void) arg, (void) error, (void) header, (void) result;
	fail();
}

static void no_done(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header)
{
	(void) arg, (void) error, (void) header;
	fail();
}

static void no_ready(void *arg)
{
	(void) arg;
}

static const struct vd_etcd_range_request range = { .range = { .key = { "a", 1 } } };
static const struct vd_etcd_range_request keyless = { .range = { .key = { NULL, 3 } } };
static const struct vd_etcd_range_request unsorted = { .range = { .key = { "a", 1 } },
						       .sort_order = (enum vd_etcd_sort_order) 9 };
static const struct vd_op		  put = { .kind = VD_OP_PUT, .key = { "a", 1 } };
static const struct vd_op	   valueless = { .kind = VD_OP_PUT, .key = { "a", 1 }, .value = { NULL, 3 } };
static const struct vd_op	   removal = { .kind = VD_OP_DELETE, .key = { "a", 1 } };
static const struct vd_txn_request txn;
static const struct vd_txn_request listless = { .failure_count = 1 };
static const struct vd_txn_request compareless = { .compare_count = 1 };
static const struct vd_etcd_call   late = { .timeout = { -1 } };
static const struct vd_etcd_call   elsewhere = { .endpoint = "nowhere:1" };
static const struct vd_etcd_call   metadataless = { .metadata_count = 1 };
static const struct vd_etcd_watch_request watch = { .key = { "a", 1 }, .ready = no_ready };
static const struct vd_etcd_watch_request watch_without_callback = { .key = { "a", 1 } };
static const struct vd_etcd_watch_request watch_without_key_bytes = { .key = { NULL, 3 }, .ready = no_ready };
static const struct vd_etcd_watch_request watch_without_pairs = { .key = { "a", 1 },
								  .ready = no_ready,
								  .metadata_count = 2 };

#define RESULT(name, type, call)                                                                             \
	CALL(name, ({                                                                                        \
		     struct type *result = NULL;                                                             \
		     vd_status	  answer = call;                                                             \
		     assert_null(result);                                                                    \
		     answer;                                                                                 \
	     }))

CALL(range_of_nothing, vd_etcd_range(NULL, NULL, &range, no_range, NULL))
CALL(range_without_request, vd_etcd_range(client, NULL, NULL, no_range, NULL))
CALL(range_without_callback, vd_etcd_range(client, NULL, &range, NULL, NULL))
CALL(range_without_key, vd_etcd_range(client, NULL, &keyless, no_range, NULL))
CALL(range_of_unknown_order, vd_etcd_range(client, NULL, &unsorted, no_range, NULL))
CALL(range_with_negative_timeout, vd_etcd_range(client, &late, &range, no_range, NULL))
CALL(range_at_an_unknown_endpoint, vd_etcd_range(client, &elsewhere, &range, no_range, NULL))
CALL(range_without_metadata, vd_etcd_range(client, &metadataless, &range, no_range, NULL))
CALL(range_stream_without_callback, vd_etcd_range_stream(client, NULL, &range, NULL, NULL))
CALL(put_without_op, vd_etcd_put(client, NULL, NULL, no_op, NULL))
CALL(put_without_callback, vd_etcd_put(client, NULL, &put, NULL, NULL))
CALL(put_without_value, vd_etcd_put(client, NULL, &valueless, no_op, NULL))
CALL(put_of_a_delete, vd_etcd_put(client, NULL, &removal, no_op, NULL))
CALL(delete_without_op, vd_etcd_delete(client, NULL, NULL, no_op, NULL))
CALL(delete_without_callback, vd_etcd_delete(client, NULL, &removal, NULL, NULL))
CALL(txn_without_request, vd_etcd_txn(client, NULL, NULL, no_txn, NULL))
CALL(txn_without_callback, vd_etcd_txn(client, NULL, &txn, NULL, NULL))
CALL(txn_without_list, vd_etcd_txn(client, NULL, &listless, no_txn, NULL))
CALL(txn_without_compares, vd_etcd_txn(client, NULL, &compareless, no_txn, NULL))
CALL(compact_without_callback, vd_etcd_compact(client, NULL, 1, false, NULL, NULL))
CALL(grant_without_callback, vd_etcd_lease_grant(client, NULL, 0, 10, NULL, NULL))
CALL(revoke_without_callback, vd_etcd_lease_revoke(client, NULL, 1, NULL, NULL))
CALL(keep_alive_once_without_callback, vd_etcd_lease_keep_alive_once(client, NULL, 1, NULL, NULL))
CALL(time_to_live_without_callback, vd_etcd_lease_time_to_live(client, NULL, 1, false, NULL, NULL))
CALL(leases_without_callback, vd_etcd_lease_list(client, NULL, NULL, NULL))
RESULT(keep_alive_without_callback, vd_etcd_keep_alive,
       vd_etcd_keep_alive_start(client, NULL, 1, NULL, NULL, &result))
CALL(status_without_callback, vd_etcd_status_get(client, NULL, NULL, NULL))
CALL(alarm_without_callback, vd_etcd_alarm(client, NULL, VD_ETCD_ALARM_GET, NULL, NULL, NULL))
CALL(alarm_of_unknown_action, vd_etcd_alarm(client, NULL, (enum vd_etcd_alarm_action) 5, NULL, NULL, NULL))
CALL(defragment_without_callback, vd_etcd_defragment(client, NULL, NULL, NULL))
CALL(hash_without_callback, vd_etcd_hash_kv(client, NULL, 0, NULL, NULL))
CALL(move_without_callback, vd_etcd_move_leader(client, NULL, 1, NULL, NULL))
CALL(snapshot_without_callback, vd_etcd_snapshot(client, NULL, NULL, NULL))
CALL(members_without_callback, vd_etcd_member_list(client, NULL, false, NULL, NULL))
CALL(auth_status_without_callback, vd_etcd_auth_status(client, NULL, NULL, NULL))
CALL(auth_enable_without_callback, vd_etcd_auth_enable(client, NULL, true, NULL, NULL))
CALL(user_without_name, vd_etcd_user_add(client, NULL, NULL, "secret", no_done, NULL))
CALL(user_without_callback, vd_etcd_user_add(client, NULL, "u", "secret", NULL, NULL))
CALL(role_without_bytes,
     vd_etcd_role_grant(client, NULL, "r", VD_ETCD_READ, NO_BYTES, VD_BYTES_NONE, no_done, NULL))
CALL(role_of_unknown_permission, vd_etcd_role_grant(client, NULL, "r", (enum vd_etcd_permission) 4,
						    VD_BYTES_NONE, VD_BYTES_NONE, no_done, NULL))
RESULT(watch_of_nothing, vd_etcd_watch, vd_etcd_watch_open(NULL, &watch, &result, &w->error))
RESULT(watch_without_request, vd_etcd_watch, vd_etcd_watch_open(client, NULL, &result, &w->error))
RESULT(watch_without_ready, vd_etcd_watch,
       vd_etcd_watch_open(client, &watch_without_callback, &result, &w->error))
RESULT(watch_without_key, vd_etcd_watch,
       vd_etcd_watch_open(client, &watch_without_key_bytes, &result, &w->error))
RESULT(watch_without_metadata, vd_etcd_watch,
       vd_etcd_watch_open(client, &watch_without_pairs, &result, &w->error))
CALL(watch_without_result, vd_etcd_watch_open(client, &watch, NULL, &w->error))
CALL(watch_next_of_nothing, vd_etcd_watch_next(NULL, &(struct vd_etcd_watch_response) { 0 }, NULL))
CALL(watch_progress_of_nothing, vd_etcd_watch_progress(NULL))
CALL(progress_without_metadata, vd_etcd_request_progress(client, &metadataless, &w->error))
CALL(progress_of_nothing, vd_etcd_request_progress(NULL, NULL, &w->error))
CALL(endpoints_of_nothing, vd_etcd_set_endpoints(NULL, nowhere, 1, &w->error))
CALL(endpoints_without_list, vd_etcd_set_endpoints(client, NULL, 1, &w->error))
CALL(endpoint_state_without_result, vd_etcd_endpoint_state(client, 0, NULL, NULL, 0))

static const struct misuse misuses[] = {
	MISUSE(client_of_another_size, VD_INVALID_ARGUMENT, "unknown size of the options"),
	MISUSE(client_with_zeroed_options, VD_INVALID_ARGUMENT, "no available endpoints"),
	MISUSE(client_without_endpoints, VD_INVALID_ARGUMENT, "no available endpoints"),
	MISUSE(client_with_negative_timeout, VD_INVALID_ARGUMENT, "negative"),
	MISUSE(client_without_attempts, VD_INVALID_ARGUMENT, "attempts_max"),
	MISUSE(client_without_env, VD_INVALID_ARGUMENT, "env is NULL"),
	MISUSE(client_without_options, VD_INVALID_ARGUMENT, "options"),
	MISUSE(client_without_result, VD_INVALID_ARGUMENT, "ret_client is NULL"),
	MISUSE(store_of_another_size, VD_INVALID_ARGUMENT, "options of 2 bytes"),
	MISUSE(store_with_zeroed_options, VD_INVALID_ARGUMENT, "the call timeout not 0"),
	MISUSE(store_without_client, VD_INVALID_ARGUMENT, "options->etcd is NULL"),
	MISUSE(store_with_negative_start, VD_INVALID_ARGUMENT, "negative"),
	MISUSE(store_without_result, VD_INVALID_ARGUMENT, "ret_store is NULL"),
	MISUSE(store_without_options, VD_INVALID_ARGUMENT, "options is NULL"),
	MISUSE(range_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(range_without_request, VD_INVALID_ARGUMENT, NULL),
	MISUSE(range_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(range_without_key, VD_INVALID_ARGUMENT, NULL),
	MISUSE(range_of_unknown_order, VD_INVALID_ARGUMENT, NULL),
	MISUSE(range_with_negative_timeout, VD_INVALID_ARGUMENT, NULL),
	MISUSE(range_at_an_unknown_endpoint, VD_INVALID_ARGUMENT, NULL),
	MISUSE(range_without_metadata, VD_INVALID_ARGUMENT, NULL),
	MISUSE(range_stream_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(put_without_op, VD_INVALID_ARGUMENT, NULL),
	MISUSE(put_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(put_without_value, VD_INVALID_ARGUMENT, NULL),
	MISUSE(put_of_a_delete, VD_INVALID_ARGUMENT, NULL),
	MISUSE(delete_without_op, VD_INVALID_ARGUMENT, NULL),
	MISUSE(delete_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(txn_without_request, VD_INVALID_ARGUMENT, NULL),
	MISUSE(txn_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(txn_without_list, VD_INVALID_ARGUMENT, NULL),
	MISUSE(txn_without_compares, VD_INVALID_ARGUMENT, NULL),
	MISUSE(compact_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(grant_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(revoke_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(keep_alive_once_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(time_to_live_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(leases_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(keep_alive_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(status_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(alarm_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(alarm_of_unknown_action, VD_INVALID_ARGUMENT, NULL),
	MISUSE(defragment_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(hash_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(move_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(snapshot_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(members_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(auth_status_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(auth_enable_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(user_without_name, VD_INVALID_ARGUMENT, NULL),
	MISUSE(user_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(role_without_bytes, VD_INVALID_ARGUMENT, NULL),
	MISUSE(role_of_unknown_permission, VD_INVALID_ARGUMENT, NULL),
	MISUSE(watch_of_nothing, VD_INVALID_ARGUMENT, "client is NULL"),
	MISUSE(watch_without_request, VD_INVALID_ARGUMENT, "request is NULL"),
	MISUSE(watch_without_ready, VD_INVALID_ARGUMENT, "ready"),
	MISUSE(watch_without_key, VD_INVALID_ARGUMENT, "key.data is NULL"),
	MISUSE(watch_without_metadata, VD_INVALID_ARGUMENT, "metadata is NULL"),
	MISUSE(watch_without_result, VD_INVALID_ARGUMENT, "ret_watch is NULL"),
	MISUSE(watch_next_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(watch_progress_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(progress_without_metadata, VD_INVALID_ARGUMENT, "metadata is NULL"),
	MISUSE(progress_of_nothing, VD_INVALID_ARGUMENT, "client is NULL"),
	MISUSE(endpoints_of_nothing, VD_INVALID_ARGUMENT, "client is NULL"),
	MISUSE(endpoints_without_list, VD_INVALID_ARGUMENT, "no available endpoints"),
	MISUSE(endpoint_state_without_result, VD_INVALID_ARGUMENT, NULL),
};

int main(void)
{
	vd_etcd_close(NULL, NULL, NULL);
	return misuse_run("etcd_misuse", misuses, VDI_ARRAY_SIZE(misuses));
}
