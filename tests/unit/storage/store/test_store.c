/* Unit tests of storage/store/store.c: each call arrives at its own operation with its own arguments, and
 * what a store need not offer may be absent. */
#include "store.h"
#include "vdtest.h"

/* The name of the operation that was called last, and what it got. */
static struct {
	const char *name;
	int64_t	    number, more;
	bool	    flag;
	const void *arg, *done;
} called;

static void calls(const char *name, int64_t number, int64_t more, bool flag, const void *done,
		  const void *arg)
{
	called.name = name;
	called.number = number;
	called.more = more;
	called.flag = flag;
	called.done = done;
	called.arg = arg;
}

/* A pointer to a function as a number of a pointer, to compare it only. */
#define AS_POINTER(function) ((const void *) (uintptr_t) (function))

static vd_status fake_compact(struct vd_store *store, vd_rev revision, bool physical, vd_done_fn done,
			      void *arg)
{
	(void) store;
	calls("compact", revision, 0, physical, AS_POINTER(done), arg);
	return VD_FULL;
}
static vd_status fake_grant(struct vd_store *store, int64_t id, int64_t ttl_s, vd_lease_fn done, void *arg)
{
	(void) store;
	calls("grant", id, ttl_s, false, AS_POINTER(done), arg);
	return VD_FULL;
}
static vd_status fake_revoke(struct vd_store *store, int64_t id, vd_done_fn done, void *arg)
{
	(void) store;
	calls("revoke", id, 0, false, AS_POINTER(done), arg);
	return VD_FULL;
}
static vd_status fake_keep_alive(struct vd_store *store, int64_t id, vd_lease_fn done, void *arg)
{
	(void) store;
	calls("keep alive", id, 0, false, AS_POINTER(done), arg);
	return VD_FULL;
}
static vd_status fake_time_to_live(struct vd_store *store, int64_t id, bool keys, vd_lease_fn done, void *arg)
{
	(void) store;
	calls("time to live", id, 0, keys, AS_POINTER(done), arg);
	return VD_FULL;
}
static vd_status fake_status(struct vd_store *store, struct vd_store_status *ret_status)
{
	(void) store;
	calls("status", 0, 0, false, ret_status, NULL);
	return VD_FULL;
}
static vd_status fake_watch_progress(struct vd_store_watch *watch)
{
	calls("progress", 0, 0, false, NULL, watch);
	return VD_FULL;
}
static void fake_watch_close(struct vd_store_watch *watch)
{
	calls("watch close", 0, 0, false, NULL, watch);
}
static vd_status fake_watch_next(struct vd_store_watch *watch, size_t event_count_max,
				 struct vd_store_batch *ret_batch, struct vd_error *reterr)
{
	(void) reterr;
	calls("watch next", (int64_t) event_count_max, 0, false, ret_batch, watch);
	return VD_FULL;
}
static vd_status fake_stream(struct vd_store *store, const struct vd_store_stream_request *request,
			     struct vd_store_stream **ret_stream)
{
	(void) store;
	calls("stream", 0, 0, false, ret_stream, request);
	return VD_FULL;
}
static vd_status fake_stream_next(struct vd_store_stream *stream, struct vd_store_part *ret_part,
				  struct vd_error *reterr)
{
	(void) reterr;
	calls("stream next", 0, 0, false, ret_part, stream);
	return VD_FULL;
}
static void fake_stream_close(struct vd_store_stream *stream)
{
	calls("stream close", 0, 0, false, NULL, stream);
}
static void fake_shutdown(struct vd_store *store)
{
	calls("shutdown", 0, 0, false, NULL, store);
}
static void fake_dump(struct vd_store *store, void (*write)(void *arg, struct vd_bytes json), void *arg)
{
	(void) store;
	calls("dump", 0, 0, false, AS_POINTER(write), arg);
}
static vd_status fake_lease_list(struct vd_store *store, vd_lease_list_fn done, void *arg)
{
	(void) store;
	calls("lease list", 0, 0, false, AS_POINTER(done), arg);
	return VD_FULL;
}

static const struct vd_store_ops all = {
	.size = sizeof(struct vd_store_ops),
	.compact = fake_compact,
	.lease_grant = fake_grant,
	.lease_revoke = fake_revoke,
	.lease_keep_alive = fake_keep_alive,
	.lease_time_to_live = fake_time_to_live,
	.watch_next = fake_watch_next,
	.watch_progress = fake_watch_progress,
	.watch_close = fake_watch_close,
	.status = fake_status,
	.stream = fake_stream,
	.stream_next = fake_stream_next,
	.stream_close = fake_stream_close,
	.shutdown = fake_shutdown,
	.dump = fake_dump,
	.lease_list = fake_lease_list,
};

static void on_done(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	(void) arg;
	(void) status;
	(void) revision;
	(void) error;
}
static void on_lease(void *arg, vd_status status, const struct vd_lease_result *result,
		     const struct vd_error *error)
{
	(void) result;
	on_done(arg, status, 0, error);
}
static void on_leases(void *arg, vd_status status, const int64_t *ids, size_t count, vd_rev revision)
{
	(void) ids;
	(void) count;
	on_done(arg, status, revision, NULL);
}
static void on_json(void *arg, struct vd_bytes json)
{
	(void) arg;
	(void) json;
}
static void on_ready(void *arg)
{
	(void) arg;
}

static void expect(const char *name, int64_t number, int64_t more, bool flag, const void *done,
		   const void *arg)
{
	assert_non_null(called.name);
	assert_string_equal(called.name, name);
	assert_true(called.number == number && called.more == more && called.flag == flag &&
		    called.done == done && called.arg == arg);
	called.name = NULL;
}

static void each_call_arrives_at_its_operation(void **state)
{
	struct vd_store	       store = { &all, NULL };
	struct vd_store_watch  watch = { .store = &store };
	struct vd_store_status status;
	struct vd_store_batch  batch;
	int		       arg;

	(void) state;
	for (unsigned flag = 0; flag < 2; flag++) {
		assert_status(vd_store_compact(&store, 7, flag, on_done, &arg), VD_FULL);
		expect("compact", 7, 0, flag, AS_POINTER(on_done), &arg);
		assert_status(vd_store_lease_time_to_live(&store, 8, flag, on_lease, &arg), VD_FULL);
		expect("time to live", 8, 0, flag, AS_POINTER(on_lease), &arg);
	}
	assert_status(vd_store_lease_grant(&store, 8, 9000000000, on_lease, &arg), VD_FULL);
	expect("grant", 8, 9000000000, false, AS_POINTER(on_lease), &arg);
	assert_status(vd_store_lease_grant(&store, 8, 9000000001, on_lease, &arg), VD_INVALID_ARGUMENT);
	assert_null(called.name);
	assert_status(vd_store_lease_grant(&store, 8, -1, on_lease, &arg),
		      VD_FULL); /* what is too short is the store's to say */
	expect("grant", 8, -1, false, AS_POINTER(on_lease), &arg);
	assert_status(vd_store_lease_revoke(&store, 9, on_done, &arg), VD_FULL);
	expect("revoke", 9, 0, false, AS_POINTER(on_done), &arg);
	assert_status(vd_store_lease_keep_alive(&store, 10, on_lease, &arg), VD_FULL);
	expect("keep alive", 10, 0, false, AS_POINTER(on_lease), &arg);
	assert_status(vd_store_status_get(&store, &status), VD_FULL);
	expect("status", 0, 0, false, &status, NULL);
	assert_status(vd_store_watch_next(&watch, 5, &batch, NULL), VD_FULL);
	expect("watch next", 5, 0, false, &batch, &watch);
	assert_status(vd_store_watch_progress(&watch), VD_FULL);
	expect("progress", 0, 0, false, NULL, &watch);
	vd_store_watch_close(&watch);
	expect("watch close", 0, 0, false, NULL, &watch);
	assert_status(vd_store_watch_progress(NULL), VD_INVALID_ARGUMENT);
	vd_store_watch_close(NULL);
	assert_null(called.name);
}

static void ask_optional(struct vd_store *store, bool has_stream, bool has_shutdown, bool has_dump,
			 bool has_list)
{
	struct vd_store_stream_request request = { .range = { .key = { "a", 1 } }, .ready = on_ready };
	struct vd_store_stream	      *stream;
	int			       arg;

	assert_status(vd_store_stream_open(store, &request, &stream), has_stream ? VD_FULL : VD_UNSUPPORTED);
	if (has_stream)
		expect("stream", 0, 0, false, &stream, &request);
	vd_store_shutdown(store);
	if (has_shutdown)
		expect("shutdown", 0, 0, false, NULL, store);
	vd_store_dump(store, on_json, &arg);
	if (has_dump)
		expect("dump", 0, 0, false, AS_POINTER(on_json), &arg);
	assert_status(vd_store_lease_list(store, on_leases, &arg), has_list ? VD_FULL : VD_UNSUPPORTED);
	if (has_list)
		expect("lease list", 0, 0, false, AS_POINTER(on_leases), &arg);
	assert_null(called.name);
}

/* An older store's table of operations ends earlier; a newer one may have holes. */
static void what_a_store_need_not_offer(void **state)
{
	struct vd_store_ops    ops = all;
	struct vd_store	       store = { &ops, NULL };
	struct vd_store_stream stream = { &store };
	struct vd_store_part   part;

	(void) state;
	ask_optional(&store, true, true, true, true);
	ops.size = offsetof(struct vd_store_ops, lease_list);
	ask_optional(&store, true, true, true, false);
	ops.size = offsetof(struct vd_store_ops, dump);
	ask_optional(&store, true, true, false, false);
	ops.size = offsetof(struct vd_store_ops, shutdown);
	ask_optional(&store, true, false, false, false);
	ops.size = offsetof(struct vd_store_ops, stream);
	ask_optional(&store, false, false, false, false);
	ops = all;
	ops.stream = NULL;
	ask_optional(&store, false, true, true, true);
	ops.shutdown = NULL;
	ask_optional(&store, false, false, true, true);
	ops.dump = NULL;
	ask_optional(&store, false, false, false, true);
	ops.lease_list = NULL;
	ask_optional(&store, false, false, false, false);
	assert_status(vd_store_stream_next(&stream, &part, NULL), VD_FULL);
	expect("stream next", 0, 0, false, &part, &stream);
	vd_store_stream_close(&stream);
	expect("stream close", 0, 0, false, NULL, &stream);
	vd_store_stream_close(NULL);
	vd_store_shutdown(NULL);
	vd_store_dump(NULL, on_json, NULL);
	ops = all;
	vd_store_dump(&store, NULL, NULL);
	assert_null(called.name);
}

static vd_status fake_range(struct vd_store *store, const struct vd_range_request *request, vd_range_fn done,
			    void *arg)
{
	struct vd_error error = { .code = VD_EXPIRED, .requested = 3, .compacted = 7 };

	(void) store;
	if (vd_bytes_equal(request->key, vd_bytes_of("full")))
		return VD_FULL;
	done(arg, VD_EXPIRED, NULL, &error);
	return VD_OK;
}

static vd_status fake_txn_done(struct vd_store *store, const struct vd_txn_request *request, vd_txn_fn done,
			       void *arg)
{
	struct vd_op_result  removed = { .deleted = 3 };
	struct vd_txn_result result = { .revision = 9, .results = &removed, .result_count = 1 };

	(void) store;
	assert_int_equal(request->success_count, 1);
	assert_int_equal(request->failure_count, 0);
	done(arg, VD_OK, &result, NULL);
	return VD_OK;
}

/* The blocking writes hand out what was asked for, each alone and all together. */
static void waiting_writes_hand_out_the_results(void **state)
{
	struct vd_store_ops ops = all;
	struct vd_store	    store = { &ops, NULL };
	struct vd_env	   *env;
	int64_t		    deleted = 0;
	vd_rev		    revision = 0;

	(void) state;
	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	store.env = env;
	ops.txn = fake_txn_done;
	assert_status(vd_store_delete_wait(&store, vd_bytes_of("a"), vd_bytes_of("d"), &deleted, NULL, NULL),
		      VD_OK);
	assert_int_equal(deleted, 3);
	assert_status(vd_store_delete_wait(&store, vd_bytes_of("a"), VD_BYTES_NONE, NULL, &revision, NULL),
		      VD_OK);
	assert_int_equal(revision, 9);
	assert_status(vd_store_delete_wait(&store, vd_bytes_of("a"), VD_BYTES_NONE, NULL, NULL, NULL), VD_OK);
	revision = 0;
	assert_status(vd_store_put_wait(&store, vd_bytes_of("a"), vd_bytes_of("1"), &revision, NULL), VD_OK);
	assert_int_equal(revision, 9);
	vd_env_free(env);
}

/* Every key, end and value of a request has a largest size: exactly so large is fine, one byte more is
 * refused by name. */
static void sizes_have_bounds(void **state)
{
	static char key[VD_KEY_SIZE_MAX + 1], value[VD_VALUE_SIZE_MAX + 1];
	static const struct {
		const char *name;
		size_t	    size_max;
	} rows[] = { { "range", VD_KEY_SIZE_MAX },
		     { "range end", VD_KEY_SIZE_MAX },
		     { "put", VD_KEY_SIZE_MAX },
		     { "put value", VD_VALUE_SIZE_MAX },
		     { "delete", VD_KEY_SIZE_MAX },
		     { "delete range end", VD_KEY_SIZE_MAX },
		     { "compare", VD_KEY_SIZE_MAX },
		     { "compare range end", VD_KEY_SIZE_MAX },
		     { "compare value", VD_VALUE_SIZE_MAX } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		for (size_t more = 0; more < 2; more++) {
			struct vd_bytes bytes = { rows[i].size_max == VD_KEY_SIZE_MAX ? key : value,
						  rows[i].size_max + more },
					k = vd_bytes_of("k");
			struct vd_op	      op = { .kind = i < 2 ? VD_OP_RANGE :
							     i < 4 ? VD_OP_PUT :
								     VD_OP_DELETE,
						     .key = k,
						     .range = { .key = k } };
			struct vd_compare     compare = { .key = k, .target = VD_COMPARE_VALUE };
			struct vd_txn_request txn = { .success = &op,
						      .success_count = 1,
						      .compares = &compare,
						      .compare_count = i >= 6 };
			struct vd_error	      error = { 0 };
			char		      expected[64];

			*(struct vd_bytes *[]) { &op.range.key, &op.range.range_end,
						 &op.key,	&op.value,
						 &op.key,	&op.range_end,
						 &compare.key,	&compare.range_end,
						 &compare.value }[i] = bytes;
			assert_status(vdi_store_check_txn(&txn, &error), more ? VD_TOO_BIG : VD_OK);
			snprintf(expected, sizeof expected, "%s: ", rows[i].name);
			assert_true(!more || strncmp(error.message, expected, strlen(expected)) == 0);
		}
}

/* Eight levels, the outermost included, in either branch. */
static void transactions_are_nested_eight_levels_deep(void **state)
{
	(void) state;
	for (unsigned depth = 1; depth <= 20; depth++)
		for (unsigned branches = 0; branches < 2; branches++) {
			struct vd_txn_request txns[20] = { 0 };
			struct vd_op	      ops[20] = { 0 };
			struct vd_error	      error = { 0 };

			for (unsigned i = 0; i + 1 < depth; i++) {
				ops[i] = (struct vd_op) { .kind = VD_OP_TXN, .txn = &txns[i + 1] };
				if ((i + branches) % 2)
					txns[i] = (struct vd_txn_request) { .success = &ops[i],
									    .success_count = 1 };
				else
					txns[i] = (struct vd_txn_request) { .failure = &ops[i],
									    .failure_count = 1 };
			}
			assert_status(vdi_store_check_txn(&txns[0], &error),
				      depth <= VDI_TXN_DEPTH_MAX ? VD_OK : VD_INVALID_ARGUMENT);
			if (depth > VDI_TXN_DEPTH_MAX)
				assert_string_equal(error.message, "transactions nested deeper than 8");
		}
}

/* Duplicates inside a nested transaction count, at any depth and in either branch, although it is alone. */
static void e451_duplicates_inside_a_nested_transaction_are_found(void **state)
{
	const struct vd_op puts[] = { { .kind = VD_OP_PUT, .key = vd_bytes_of("a") },
				      { .kind = VD_OP_PUT, .key = vd_bytes_of("b") },
				      { .kind = VD_OP_PUT, .key = vd_bytes_of("a") } };

	(void) state;
	for (unsigned depth = 1; depth <= VDI_TXN_DEPTH_MAX; depth++)
		for (unsigned branches = 0; branches < 2; branches++)
			for (size_t count = 1; count <= VDI_ARRAY_SIZE(puts); count++) {
				struct vd_txn_request txns[VDI_TXN_DEPTH_MAX] = { 0 };
				struct vd_op	      ops[VDI_TXN_DEPTH_MAX] = { 0 };
				struct vd_error	      error = { 0 };

				for (unsigned i = 0; i < depth; i++) {
					bool		    is_last = i + 1 == depth;
					const struct vd_op *list = is_last ? puts : &ops[i];
					size_t		    size = is_last ? count : 1;

					if (!is_last)
						ops[i] = (struct vd_op) { .kind = VD_OP_TXN,
									  .txn = &txns[i + 1] };
					if ((i + branches) % 2)
						txns[i] = (struct vd_txn_request) { .success = list,
										    .success_count = size };
					else
						txns[i] = (struct vd_txn_request) { .failure = list,
										    .failure_count = size };
				}
				assert_status(vdi_store_check_duplicates(&txns[0], &error),
					      count == 3 ? VD_DUPLICATE_KEY : VD_OK);
				if (count == 3)
					assert_string_equal(error.message,
							    "duplicate key given in txn request");
			}
}

/* A page that promises more brings at least one key, from which to go on. */
static void r157_a_page_with_more_has_a_key(void **state)
{
	static const struct {
		size_t kv_count;
		bool   more, is_good;
	} rows[] = { { 0, false, true },
		     { 0, true, false },
		     { 1, false, true },
		     { 1, true, true },
		     { 5, true, true } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_range_result result = { .kv_count = rows[i].kv_count, .more = rows[i].more };
		struct vd_error	       error = { 0 };

		assert_status(vdi_store_check_page(&result, &error), rows[i].is_good ? VD_OK : VD_INTERNAL);
		assert_status(error.code, rows[i].is_good ? VD_OK : VD_INTERNAL);
	}
}

/* The blocking calls hand out what the answer said, and why a call was not accepted. */
static void waiting_calls_hand_out_the_details(void **state)
{
	struct vd_store_ops ops = all;
	struct vd_store	    store = { &ops, NULL };
	struct vd_error	    error = { 0 };
	struct vd_kv	   *kv = NULL;
	struct vd_env	   *env;

	(void) state;
	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	store.env = env;
	ops.range = fake_range;
	assert_status(vd_store_get_wait(&store, vd_bytes_of("a"), &kv, &error), VD_EXPIRED);
	assert_true(error.code == VD_EXPIRED && error.requested == 3 && error.compacted == 7);
	assert_status(vd_store_get_wait(&store, vd_bytes_of("a"), &kv, NULL), VD_EXPIRED);
	assert_status(vd_store_get_wait(&store, vd_bytes_of("full"), &kv, &error), VD_FULL);
	assert_true(error.code == VD_FULL && error.message[0]);
	assert_null(kv);
	vd_env_free(env);
}

static void fake_close(struct vd_store *store, void (*done)(void *arg), void *arg)
{
	(void) store;
	calls("close", 0, 0, false, AS_POINTER(done), arg);
}

static void count_done(void *arg)
{
	++*(int *) arg;
}

/* No store is closed at once. */
static void close_of_nothing_is_done(void **state)
{
	struct vd_store_ops ops = all;
	struct vd_store	    store = { &ops, NULL };
	int		    count = 0;

	(void) state;
	ops.close = fake_close;
	vd_store_close(NULL, count_done, &count);
	assert_int_equal(count, 1);
	vd_store_close(NULL, NULL, NULL);
	assert_null(vd_store_close_wait(NULL));
	assert_null(called.name);
	vd_store_close(&store, count_done, &count);
	expect("close", 0, 0, false, AS_POINTER(count_done), &count);
	assert_int_equal(count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call_arrives_at_its_operation),
		cmocka_unit_test(what_a_store_need_not_offer),
		cmocka_unit_test(close_of_nothing_is_done),
		cmocka_unit_test(waiting_calls_hand_out_the_details),
		cmocka_unit_test(waiting_writes_hand_out_the_results),
		cmocka_unit_test(sizes_have_bounds),
		cmocka_unit_test(e451_duplicates_inside_a_nested_transaction_are_found),
		cmocka_unit_test(transactions_are_nested_eight_levels_deep),
		cmocka_unit_test(r157_a_page_with_more_has_a_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
