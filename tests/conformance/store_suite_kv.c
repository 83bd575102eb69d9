/* Keys, ranges, transactions, compaction: E-401 to E-462. */
#include "store_suite.h"

static void e401_a_fresh_store_stands_at_revision_1(void **state)
{
	struct store_fixture  *f = *state;
	struct vd_store_status status;

	assert_status(vd_store_status_get(f->store, &status), VD_OK);
	assert_int_equal(status.current, 1);
	assert_int_equal(status.compacted, -1);
	assert_int_equal(status.key_count, f->factory->is_remote ? -1 : 0);
	assert_int_equal(status.progress, !f->factory->no_progress);
}

static void e401_only_changes_make_revisions(void **state)
{
	struct store_fixture *f = *state;
	struct lease_answer   lease;
	int64_t		      deleted;

	assert_int_equal(put(f, "a", "1"), 2);
	assert_int_equal(delete_range(f, "x", NULL, &deleted), 2);
	assert_int_equal(deleted, 0);
	lease_grant(f, 7, 100, &lease);
	assert_status(lease.status, VD_OK);
	assert_int_equal(lease.revision, 2);
	assert_status(compact(f, 2), VD_OK);
	assert_int_equal(current(f), 2);
	assert_int_equal(put(f, "a", "2"), 3);
}

static void e403_put_counts_versions(void **state)
{
	struct store_fixture   *f = *state;
	struct vd_range_request request = { .key = K("a") };
	struct range_answer	answer;

	put(f, "a", "1");
	put(f, "b", "1");
	put(f, "a", "2");
	range(f, &request, &answer);
	assert_int_equal(answer.kv_count, 1);
	assert_int_equal(answer.kvs[0]->create_rev, 2);
	assert_int_equal(answer.kvs[0]->mod_rev, 4);
	assert_int_equal(answer.kvs[0]->version, 2);
	assert_int_equal(answer.kvs[0]->lease, 0);
	range_answer_fini(&answer);
	delete_range(f, "a", NULL, NULL);
	put(f, "a", "3");
	range(f, &request, &answer);
	assert_int_equal(answer.kvs[0]->create_rev, 6);
	assert_int_equal(answer.kvs[0]->version, 1);
	range_answer_fini(&answer);
}

/* The example of E-406: put 2, 3, delete 4, put 5, delete 6 (each one later, because a store starts at 1). */
static void generations(struct store_fixture *f)
{
	put(f, "k", "1");
	put(f, "k", "2");
	delete_range(f, "k", NULL, NULL);
	put(f, "k", "4");
	delete_range(f, "k", NULL, NULL);
}

static void e405_old_revisions_are_exact(void **state)
{
	struct store_fixture *f = *state;

	generations(f);
	assert_string_equal(text_at(f, "k", NULL, 1), "");
	assert_string_equal(text_at(f, "k", NULL, 2), "k=1");
	assert_string_equal(text_at(f, "k", NULL, 3), "k=2");
	assert_string_equal(text_at(f, "k", NULL, 4), "");
	assert_string_equal(text_at(f, "k", NULL, 5), "k=4");
	assert_string_equal(text_at(f, "k", NULL, 6), "");
}

static void e406_compaction_keeps_what_it_must(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      watcher;

	generations(f);
	assert_status(compact(f, 3), VD_OK);
	assert_string_equal(text_at(f, "k", NULL, 3), "k=2");
	assert_string_equal(text_at(f, "k", NULL, 5), "k=4");
	assert_status(status_at(f, "k", 2), VD_EXPIRED);
	assert_status(compact(f, 6), VD_OK);
	assert_string_equal(text_at(f, "k", NULL, 6), "");
	watch_range(f, &watcher, "k", NULL, 6);
	assert_status(watch_wait(&watcher, 100), VD_OK);
	assert_int_equal(watcher.batch.event_count, 1);
	assert_true(watcher.batch.events[0].is_delete);
	watch_close(&watcher);
}

static void e409_reads_below_the_compaction_fail_and_at_it_work(void **state)
{
	struct store_fixture   *f = *state;
	struct vd_range_request request = { .key = K("a"), .revision = 2 };
	struct range_answer	answer;

	put(f, "a", "1");
	put(f, "a", "2");
	put(f, "a", "3");
	assert_status(compact(f, 3), VD_OK);
	range(f, &request, &answer);
	assert_status(answer.status, VD_EXPIRED);
	assert_int_equal(answer.error.compacted, 3);
	assert_int_equal(answer.error.current, 4);
	assert_string_equal(text_at(f, "a", NULL, 3), "a=2");
	assert_string_equal(text_at(f, "a", NULL, 4), "a=3");
}

static void e420_an_empty_key_is_refused(void **state)
{
	struct store_fixture   *f = *state;
	struct vd_range_request request = { .key = VD_BYTES_NONE };
	struct vd_op		op = { .kind = VD_OP_PUT };
	struct vd_txn_request	txn_request = { .success = &op, .success_count = 1 };

	assert_status(vd_store_range(f->store, &request, (vd_range_fn) 1, NULL), VD_INVALID_ARGUMENT);
	assert_status(vd_store_txn(f->store, &txn_request, (vd_txn_fn) 1, NULL), VD_INVALID_ARGUMENT);
	op.kind = VD_OP_DELETE;
	assert_status(vd_store_txn(f->store, &txn_request, (vd_txn_fn) 1, NULL), VD_INVALID_ARGUMENT);
}

static void e421_intervals(void **state)
{
	struct store_fixture *f = *state;

	put(f, "b", "2");
	put(f, "a", "1");
	put(f, "c", "3");
	put(f, "ab", "4");
	assert_string_equal(text_at(f, "b", NULL, 0), "b=2");
	assert_string_equal(text_at(f, "a", "c", 0), "a=1 ab=4 b=2");
	assert_string_equal(text_at(f, "ab", "", 0), "ab=4 b=2 c=3");
	assert_string_equal(text_at(f, "c", "a", 0), "");
	assert_string_equal(text_at(f, "b", "b", 0), "");
	assert_string_equal(text_at(f, "a", "c", 3), "a=1 b=2");
}

/* Keys are compared as unsigned bytes, and a key comes before all longer keys that begin with it. */
static void e424_keys_are_in_the_order_of_their_bytes(void **state)
{
	struct store_fixture *f = *state;

	put(f, "a\xff", "5");
	put(f, "a\x7f", "3");
	put(f, "a", "1");
	put(f, "a\x80", "4");
	put(f, "a\x01", "2");
	assert_string_equal(text_at(f, "a", "b", 0), "a=1 a\x01=2 a\x7f=3 a\x80=4 a\xff=5");
}

static void e422_future_before_compacted(void **state)
{
	struct store_fixture   *f = *state;
	struct vd_range_request request = { .key = K("none"), .revision = 4, .count_only = true };
	struct range_answer	answer;

	put(f, "a", "1");
	put(f, "a", "2");
	assert_status(status_at(f, "none", 4), VD_TOO_LARGE_REVISION);
	range(f, &request, &answer);
	assert_status(answer.status, VD_TOO_LARGE_REVISION);
	assert_int_equal(answer.error.current, 3);
	assert_int_equal(answer.error.requested, 4);
	assert_status(compact(f, 3), VD_OK);
	request.revision = 2;
	range(f, &request, &answer);
	assert_status(answer.status, VD_EXPIRED);
	assert_status(status_at(f, "none", 3), VD_OK);
	assert_status(status_at(f, "none", -5), VD_OK);
}

static void e423_the_header_is_the_current_revision(void **state)
{
	struct store_fixture   *f = *state;
	struct vd_range_request request = { .key = K("a"), .revision = 2 };
	struct range_answer	answer;

	put(f, "a", "1");
	put(f, "b", "1");
	range(f, &request, &answer);
	assert_int_equal(answer.revision, 3);
	range_answer_fini(&answer);
}

static void e425_e426_count_limit_more(void **state)
{
	struct store_fixture   *f = *state;
	struct vd_range_request request = { .key = K("a"), .range_end = K("z") };
	struct range_answer	answer;
	char			key[8];

	for (int i = 0; i < 10; i++) {
		snprintf(key, sizeof key, "k%d", i);
		put(f, key, "v");
	}
	delete_range(f, "k0", "k5", NULL);
	for (int old = 0; old < 2; old++) {
		int64_t count = old ? 10 : 5;

		request.revision = old ? 11 : 0;
		request.limit = 2;
		range(f, &request, &answer);
		assert_int_equal(answer.kv_count, 2);
		assert_int_equal(answer.count, count);
		assert_true(answer.more);
		assert_string_equal(kvs_text(answer.kvs, 2), old ? "k0=v k1=v" : "k5=v k6=v");
		range_answer_fini(&answer);
		request.limit = count;
		range(f, &request, &answer);
		assert_int_equal(answer.kv_count, count);
		assert_false(answer.more);
		range_answer_fini(&answer);
		request.limit = 0;
		range(f, &request, &answer);
		assert_int_equal(answer.kv_count, count);
		assert_false(answer.more);
		range_answer_fini(&answer);
		request.count_only = true;
		range(f, &request, &answer);
		assert_int_equal(answer.kv_count, 0);
		assert_int_equal(answer.count, count);
		assert_false(answer.more);
		range_answer_fini(&answer);
		request.count_only = false;
	}
}

/* ---- Put and delete ---- */

static void e440_put_is_checked_in_order(void **state)
{
	struct store_fixture *f = *state;
	struct vd_op	  op = { .kind = VD_OP_PUT, .key = K("a"), .value = K("v"), .ignore_value = true };
	struct txn_answer answer;

	txn_ops(f, &op, 1, &answer);
	assert_status(answer.status, VD_INVALID_ARGUMENT);
	op = (struct vd_op) { .kind = VD_OP_PUT, .key = K("a"), .lease = 3, .ignore_lease = true };
	txn_ops(f, &op, 1, &answer);
	assert_status(answer.status, VD_INVALID_ARGUMENT);
	op = (struct vd_op) { .kind = VD_OP_PUT, .key = K("a"), .lease = 3, .ignore_value = true };
	txn_ops(f, &op, 1, &answer);
	assert_status(answer.status, VD_LEASE_NOT_FOUND);
	op = (struct vd_op) { .kind = VD_OP_PUT, .key = K("a"), .ignore_value = true };
	txn_ops(f, &op, 1, &answer);
	assert_status(answer.status, VD_NOT_FOUND);
	assert_int_equal(current(f), 1);
}

static void e441_ignore_value_and_lease(void **state)
{
	struct store_fixture   *f = *state;
	struct vd_range_request request = { .key = K("a") };
	struct range_answer	read;
	struct lease_answer	lease;
	struct txn_answer	answer;
	struct vd_op		op = { .kind = VD_OP_PUT, .key = K("a"), .value = K("v1"), .lease = 9 };

	lease_grant(f, 9, 100, &lease);
	txn_ops(f, &op, 1, &answer);
	assert_status(answer.status, VD_OK);
	op = (struct vd_op) { .kind = VD_OP_PUT, .key = K("a"), .ignore_value = true, .ignore_lease = true };
	txn_ops(f, &op, 1, &answer);
	range(f, &request, &read);
	assert_string_equal(kvs_text(read.kvs, 1), "a=v1");
	assert_int_equal(read.kvs[0]->lease, 9);
	assert_int_equal(read.kvs[0]->version, 2);
	assert_int_equal(read.kvs[0]->mod_rev, 3);
	range_answer_fini(&read);
	op = (struct vd_op) { .kind = VD_OP_PUT, .key = K("a"), .ignore_value = true };
	txn_ops(f, &op, 1, &answer);
	range(f, &request, &read);
	assert_string_equal(kvs_text(read.kvs, 1), "a=v1");
	assert_int_equal(read.kvs[0]->lease, 0);
	range_answer_fini(&read);
}

static void e442_previous_of_a_put(void **state)
{
	struct store_fixture *f = *state;
	struct vd_op	      op = { .kind = VD_OP_PUT, .key = K("a"), .value = K(""), .previous = true };
	struct txn_answer     answer;

	txn_ops(f, &op, 1, &answer);
	assert_string_equal(answer.ops[0].text, "");
	op.value = K("2");
	txn_ops(f, &op, 1, &answer);
	assert_string_equal(answer.ops[0].text, "a=");
	txn_ops(f, &op, 1, &answer);
	assert_string_equal(answer.ops[0].text, "a=2");
	assert_int_equal(answer.ops[0].revision, 4);
}

static void e444_delete_range(void **state)
{
	struct store_fixture *f = *state;
	struct vd_op	  op = { .kind = VD_OP_DELETE, .key = K("b"), .range_end = K("d"), .previous = true };
	struct txn_answer answer;
	int64_t		  deleted;

	put(f, "a", "1");
	put(f, "c", "3");
	put(f, "b", "2");
	put(f, "d", "4");
	txn_ops(f, &op, 1, &answer);
	assert_int_equal(answer.revision, 6);
	assert_int_equal(answer.ops[0].deleted, 2);
	assert_string_equal(answer.ops[0].text, "b=2 c=3");
	assert_string_equal(text_at(f, "a", "", 0), "a=1 d=4");
	assert_int_equal(delete_range(f, "b", "d", &deleted), 6);
	assert_int_equal(deleted, 0);
	op = (struct vd_op) { .kind = VD_OP_DELETE, .key = K("b"), .range_end = ZERO_END };
	txn_ops(f, &op, 1, &answer);
	assert_int_equal(answer.ops[0].deleted, 1);
	assert_int_equal(answer.revision, 7);
	assert_string_equal(text_at(f, "a", "", 0), "a=1");
}

/* ---- Transactions ---- */

static void e450_limits_of_a_transaction(void **state)
{
	struct store_fixture *f = *state;
	struct vd_op	     *ops = test_calloc(129, sizeof *ops);
	struct vd_compare    *compares = test_calloc(129, sizeof *compares);
	struct vd_txn_request request = { .success = ops, .success_count = 128 };
	struct vd_txn_request inner = { .success = ops, .success_count = 100 };
	struct vd_op	      outer[29];
	struct txn_answer     answer;

	for (int i = 0; i < 129; i++) {
		ops[i] = (struct vd_op) { .kind = VD_OP_RANGE, .range = { .key = K("a") } };
		compares[i] = (struct vd_compare) { .key = K("a") };
	}
	txn(f, &request, &answer);
	assert_status(answer.status, VD_OK);
	request.success_count = 129;
	txn(f, &request, &answer);
	assert_status(answer.status, VD_INVALID_ARGUMENT);
	request = (struct vd_txn_request) { .compares = compares, .compare_count = 129 };
	txn(f, &request, &answer);
	assert_status(answer.status, VD_INVALID_ARGUMENT);
	for (int i = 0; i < 29; i++)
		outer[i] = (struct vd_op) { .kind = VD_OP_RANGE, .range = { .key = K("a") } };
	outer[0] = (struct vd_op) { .kind = VD_OP_TXN, .txn = &inner };
	request = (struct vd_txn_request) { .success = outer, .success_count = 28 };
	txn(f, &request, &answer);
	assert_status(answer.status, VD_OK);
	request.success_count = 29;
	txn(f, &request, &answer);
	assert_status(answer.status, VD_INVALID_ARGUMENT);
	/* Both branches are checked, whichever runs. */
	ops[0] = (struct vd_op) { .kind = VD_OP_PUT };
	request = (struct vd_txn_request) { .failure = ops, .failure_count = 1 };
	txn(f, &request, &answer);
	assert_status(answer.status, VD_INVALID_ARGUMENT);
	test_free(ops);
	test_free(compares);
}

#define PUT(k)                                                                                               \
	{                                                                                                    \
		.kind = VD_OP_PUT, .key = { k, sizeof k - 1 }                                                \
	}
#define RANGE(from, to, at)                                                                                  \
	{                                                                                                    \
		.kind = VD_OP_RANGE, .range = {.key = K(from), .range_end = K(to), .revision = at }          \
	}
#define DELETE(k)                                                                                            \
	{                                                                                                    \
		.kind = VD_OP_DELETE, .key = { k, sizeof k - 1 }                                             \
	}
#define DELETE_RANGE(k, e)                                                                                   \
	{                                                                                                    \
		.kind = VD_OP_DELETE, .key = { k, sizeof k - 1 }, .range_end = { e, sizeof e - 1 }           \
	}
#define NEST(t)                                                                                              \
	{                                                                                                    \
		.kind = VD_OP_TXN, .txn = t                                                                  \
	}
#define LIST(list) .success = list, .success_count = VDI_ARRAY_SIZE(list)

/* Upstream: tests/integration/v3_grpc_test.go TestV3TxnDuplicateKeys. */
static void e451_duplicates(void **state)
{
	struct store_fixture *f = *state;
	struct vd_op	      put_abc[] = { PUT("abc") };
	struct vd_op	      put_xyz[] = { PUT("xyz") };
	struct vd_op	      delete_abc[] = { DELETE("abc") };
	struct vd_txn_request t_put = { LIST(put_abc) };
	struct vd_txn_request t_put_else = { .failure = put_abc, .failure_count = 1 };
	struct vd_txn_request t_put_both = { LIST(put_abc), .failure = put_abc, .failure_count = 1 };
	struct vd_txn_request t_put_other = { LIST(put_xyz) };
	struct vd_txn_request t_delete = { LIST(delete_abc) };
	struct vd_op	      nest_delete[] = { NEST(&t_delete) };
	struct vd_txn_request t_delete_deep = { LIST(nest_delete) };
	struct {
		struct vd_op ops[3];
		size_t	     count;
		vd_status    expected;
	} cases[] = {
		{ { PUT("abc"), PUT("abc") }, 2, VD_DUPLICATE_KEY },
		{ { PUT("abc"), DELETE("abc") }, 2, VD_DUPLICATE_KEY },
		{ { PUT("abc"), DELETE_RANGE("a", "b") }, 2, VD_DUPLICATE_KEY },
		{ { DELETE_RANGE("a", "b"), PUT("abc") }, 2, VD_DUPLICATE_KEY },
		{ { PUT("abc"), NEST(&t_delete) }, 2, VD_DUPLICATE_KEY },
		{ { NEST(&t_delete_deep), PUT("abc") }, 2, VD_DUPLICATE_KEY },
		{ { DELETE("abc"), NEST(&t_put) }, 2, VD_DUPLICATE_KEY },
		{ { NEST(&t_put), NEST(&t_put) }, 2, VD_DUPLICATE_KEY },
		{ { NEST(&t_put), NEST(&t_put_else) }, 2, VD_DUPLICATE_KEY },
		{ { NEST(&t_delete), NEST(&t_put) }, 2, VD_DUPLICATE_KEY },
		{ { NEST(&t_put_both), PUT("abc") }, 2, VD_DUPLICATE_KEY },
		{ { NEST(&t_put_both) }, 1, VD_OK },
		{ { NEST(&t_put), NEST(&t_put_other) }, 2, VD_OK },
		/* A delete does not conflict with an earlier sibling's put. */
		{ { NEST(&t_put), NEST(&t_delete) }, 2, VD_OK },
		{ { DELETE("abc"), DELETE_RANGE("a", "b") }, 2, VD_OK },
		{ { DELETE("abc"), DELETE("abc") }, 2, VD_OK },
		/* Taken literally, this is an empty interval. */
		{ { PUT("abc"), { .kind = VD_OP_DELETE, .key = K("a"), .range_end = ZERO_END } }, 2, VD_OK },
		{ { PUT("abc"), DELETE_RANGE("b", "c"), PUT("xyz") }, 3, VD_OK },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct txn_answer answer;

		txn_ops(f, cases[i].ops, cases[i].count, &answer);
		if (answer.status != cases[i].expected)
			fail_msg("case %zu: %s", i, vd_status_name(answer.status));
	}
	/* The branches are separate. */
	{
		struct vd_txn_request request = { LIST(put_abc), .failure = delete_abc, .failure_count = 1 };
		struct txn_answer     answer;

		txn(f, &request, &answer);
		assert_status(answer.status, VD_OK);
	}
}

static bool compares(struct store_fixture *f, struct vd_compare compare)
{
	struct vd_txn_request request = { .compares = &compare, .compare_count = 1 };
	struct txn_answer     answer;

	txn(f, &request, &answer);
	assert_status(answer.status, VD_OK);
	return answer.succeeded;
}

static void e452_compares(void **state)
{
	struct store_fixture *f = *state;
	struct {
		struct vd_compare compare;
		bool		  expected;
	} cases[] = {
		{ { VD_COMPARE_VERSION, VD_COMPARE_EQUAL, K("a"), VD_BYTES_NONE, 2 }, true },
		{ { VD_COMPARE_VERSION, VD_COMPARE_GREATER, K("a"), VD_BYTES_NONE, 1 }, true },
		{ { VD_COMPARE_VERSION, VD_COMPARE_LESS, K("a"), VD_BYTES_NONE, 2 }, false },
		{ { VD_COMPARE_CREATE, VD_COMPARE_EQUAL, K("a"), VD_BYTES_NONE, 2 }, true },
		{ { VD_COMPARE_MOD, VD_COMPARE_NOT_EQUAL, K("a"), VD_BYTES_NONE, 3 }, false },
		{ { VD_COMPARE_MOD, VD_COMPARE_EQUAL, K("none"), VD_BYTES_NONE, 0 }, true },
		{ { VD_COMPARE_MOD, VD_COMPARE_GREATER, K("none"), VD_BYTES_NONE, 0 }, false },
		{ { VD_COMPARE_LEASE, VD_COMPARE_EQUAL, K("none"), VD_BYTES_NONE, 0 }, true },
		{ { VD_COMPARE_VALUE, VD_COMPARE_EQUAL, K("a"), VD_BYTES_NONE, 0, K("2") }, true },
		{ { VD_COMPARE_VALUE, VD_COMPARE_GREATER, K("a"), VD_BYTES_NONE, 0, K("1zz") }, true },
		{ { VD_COMPARE_VALUE, VD_COMPARE_LESS, K("a"), VD_BYTES_NONE, 0, K("10") }, false },
		{ { VD_COMPARE_VALUE, VD_COMPARE_EQUAL, K("none"), VD_BYTES_NONE, 0, K("") }, false },
		{ { VD_COMPARE_VALUE, VD_COMPARE_NOT_EQUAL, K("none"), VD_BYTES_NONE, 0, K("x") }, false },
		/* Every key of the range. */
		{ { VD_COMPARE_VERSION, VD_COMPARE_GREATER, K("a"), K("c"), 0 }, true },
		{ { VD_COMPARE_VERSION, VD_COMPARE_EQUAL, K("a"), K("c"), 2 }, false },
		{ { VD_COMPARE_CREATE, VD_COMPARE_GREATER, K("a"), ZERO_END, 1 }, true },
		{ { VD_COMPARE_VERSION, VD_COMPARE_EQUAL, K("x"), K("z"), 0 }, true },
		{ { VD_COMPARE_VALUE, VD_COMPARE_EQUAL, K("x"), K("z"), 0 }, false },
		/* An unknown result counts as true. */
		{ { VD_COMPARE_VERSION, (enum vd_compare_result) 9, K("a"), VD_BYTES_NONE, 77 }, true },
	};

	put(f, "a", "1");
	put(f, "a", "2");
	put(f, "b", "1");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++)
		if (f->factory->is_remote && (unsigned) cases[i].compare.result > VD_COMPARE_NOT_EQUAL)
			continue; /* the protocol has no number for it, so a client cannot send it */
		else if (f->factory->no_value_compares && cases[i].compare.target == VD_COMPARE_VALUE)
			continue;
		else if (compares(f, cases[i].compare) != cases[i].expected)
			fail_msg("case %zu", i);
	{
		struct vd_txn_request empty = { 0 };
		struct txn_answer     answer;

		txn(f, &empty, &answer);
		assert_true(answer.succeeded);
		assert_int_equal(answer.revision, 4);
	}
}

static void e453_compares_see_the_state_before(void **state)
{
	struct store_fixture *f = *state;
	struct vd_compare     is_absent = { VD_COMPARE_CREATE, VD_COMPARE_EQUAL, K("a"), VD_BYTES_NONE, 0 };
	struct vd_op	      inner_then[] = { PUT("then") };
	struct vd_op	      inner_else[] = { PUT("else") };
	struct vd_txn_request inner = { .compares = &is_absent,
					.compare_count = 1,
					LIST(inner_then),
					.failure = inner_else,
					.failure_count = 1 };
	struct vd_op	      ops[] = { PUT("a"), NEST(&inner) };
	struct txn_answer     answer;

	txn_ops(f, ops, 2, &answer);
	assert_status(answer.status, VD_OK);
	assert_int_equal(answer.op_count, 3);
	assert_true(answer.ops[1].succeeded);
	assert_string_equal(text_at(f, "then", NULL, 0), "then=");
	assert_string_equal(text_at(f, "else", NULL, 0), "");
}

static void e454_a_rejected_transaction_has_no_effect(void **state)
{
	struct store_fixture *f = *state;
	struct txn_answer     answer;
	struct vd_op	      future[] = { PUT("a"), RANGE("a", "b", 99) };
	struct vd_op	      leased[] = { PUT("a"), { .kind = VD_OP_PUT, .key = K("b"), .lease = 5 } };
	struct vd_op ignoring[] = { PUT("a"), { .kind = VD_OP_PUT, .key = K("b"), .ignore_value = true } };
	struct vd_txn_request inner = { LIST(leased) };
	struct vd_op	      nested[] = { PUT("c"), NEST(&inner) };
	struct vd_txn_request unused = { .success = NULL, .failure = leased, .failure_count = 2 };

	put(f, "x", "1");
	txn_ops(f, future, 2, &answer);
	assert_status(answer.status, VD_TOO_LARGE_REVISION);
	txn_ops(f, leased, 2, &answer);
	assert_status(answer.status, VD_LEASE_NOT_FOUND);
	txn_ops(f, ignoring, 2, &answer);
	assert_status(answer.status, VD_NOT_FOUND);
	txn_ops(f, nested, 2, &answer);
	assert_status(answer.status, VD_LEASE_NOT_FOUND);
	assert_int_equal(current(f), 2);
	assert_string_equal(text_at(f, "a", "x", 0), "");
	/* Only the chosen path is checked against the state. */
	txn(f, &unused, &answer);
	assert_status(answer.status, VD_OK);
	assert_status(compact(f, 2), VD_OK);
	put(f, "x", "2");
	assert_status(compact(f, 3), VD_OK);
	future[1].range.revision = 2;
	txn_ops(f, future, 2, &answer);
	assert_status(answer.status, VD_EXPIRED);
	assert_int_equal(current(f), 3);
}

static void e455_e456_results_follow_the_operations(void **state)
{
	struct store_fixture *f = *state;
	struct vd_op	      put_c[] = { PUT("c") };
	struct vd_txn_request inner = { LIST(put_c) };
	struct vd_op	      ops[] = {
			 RANGE("a", "z", 0),
			 DELETE("none"),
			 { .kind = VD_OP_PUT, .key = K("a"), .value = K("2"), .previous = true },
			 RANGE("a", "z", 0),
			 DELETE("none"),
			 RANGE("a", "z", 2),
			 { .kind = VD_OP_DELETE, .key = K("b"), .previous = true },
			 NEST(&inner),
			 { .kind = VD_OP_RANGE, .range = { .key = K("a"), .range_end = K("z"), .limit = 1 } },
	};
	struct txn_answer answer;

	put(f, "a", "1");
	put(f, "b", "1");
	txn_ops(f, ops, VDI_ARRAY_SIZE(ops), &answer);
	assert_status(answer.status, VD_OK);
	assert_int_equal(answer.revision, 4);
	assert_int_equal(answer.op_count, 10);
	assert_string_equal(answer.ops[0].text, "a=1 b=1");
	assert_int_equal(answer.ops[0].revision, 3);
	assert_int_equal(answer.ops[1].revision, 3);
	assert_string_equal(answer.ops[2].text, "a=1");
	assert_int_equal(answer.ops[2].revision, 4);
	assert_string_equal(answer.ops[3].text, "a=2 b=1");
	assert_int_equal(answer.ops[3].revision, 4);
	assert_int_equal(answer.ops[4].revision, 4);
	assert_string_equal(answer.ops[5].text, "a=1");
	assert_string_equal(answer.ops[6].text, "b=1");
	assert_int_equal(answer.ops[7].kind, VD_OP_TXN);
	assert_int_equal(answer.ops[7].revision, 0);
	assert_int_equal(answer.ops[8].kind, VD_OP_PUT);
	assert_string_equal(answer.ops[9].text, "a=2");
	assert_int_equal(answer.ops[9].count, 2);
	assert_true(answer.ops[9].more);
	assert_string_equal(text_at(f, "a", "z", 0), "a=2 c=");
	assert_string_equal(text_at(f, "a", "z", 3), "a=1 b=1");
}

static void e455_a_range_at_the_current_revision_sees_nothing_of_its_transaction(void **state)
{
	struct store_fixture *f = *state;
	struct vd_op	      ops[] = { { .kind = VD_OP_PUT, .key = K("a"), .value = K("2") },
					{ .kind = VD_OP_RANGE,
					  .range = { .key = K("a"), .range_end = K("z"), .revision = 3 } },
					RANGE("a", "z", 0) };
	struct txn_answer     answer;

	put(f, "a", "1");
	put(f, "b", "1");
	txn_ops(f, ops, 3, &answer);
	assert_string_equal(answer.ops[1].text, "a=1 b=1");
	assert_string_equal(answer.ops[2].text, "a=2 b=1");
}

static void e456_e457_a_read_only_transaction_makes_no_revision(void **state)
{
	struct store_fixture *f = *state;
	struct vd_op	      read[] = { { .kind = VD_OP_RANGE, .range = { .key = K("a") } } };
	struct vd_txn_request inner = { LIST(read) };
	struct vd_op	      ops[] = { NEST(&inner),
					{ .kind = VD_OP_RANGE, .range = { .key = K("a"), .revision = 2 } } };
	struct txn_answer     answer;

	put(f, "a", "1");
	put(f, "a", "2");
	txn_ops(f, ops, 2, &answer);
	assert_status(answer.status, VD_OK);
	assert_int_equal(answer.revision, 3);
	assert_string_equal(answer.ops[1].text, "a=2");
	assert_string_equal(answer.ops[2].text, "a=1");
	assert_int_equal(current(f), 3);
	ops[1].range.revision = 4;
	txn_ops(f, ops, 2, &answer);
	assert_status(answer.status, VD_TOO_LARGE_REVISION);
}

static void e458_put_and_delete_of_one_branch_share_a_revision(void **state)
{
	const struct vd_op delete_range = {
		.kind = VD_OP_DELETE, .key = K("b"), .range_end = K("d"), .previous = true
	};
	struct store_fixture *f = *state;
	struct vd_op	  ops[] = { { .kind = VD_OP_PUT, .key = K("a"), .value = K("2"), .previous = true },
				    delete_range,
				    { .kind = VD_OP_PUT, .key = K("e"), .value = K("5") } };
	struct txn_answer answer;
	struct watcher	  watcher;

	put(f, "a", "1");
	put(f, "b", "1");
	put(f, "c", "1");
	watch_range(f, &watcher, "a", "", 5);
	txn_ops(f, ops, 3, &answer);
	assert_string_equal(answer.ops[0].text, "a=1");
	assert_string_equal(answer.ops[1].text, "b=1 c=1");
	assert_int_equal(watch_wait(&watcher, 1), VD_OK);
	assert_int_equal(watcher.batch.event_count, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(watcher.batch.events[i].kv->mod_rev, 5);
		assert_int_equal(watcher.batch.events[i].kv->sub, i);
	}
	watch_close(&watcher);
}

/* How kube-apiserver writes: create if absent, update if unchanged, otherwise return the present state. */
static void e455_compare_and_swap(void **state)
{
	struct store_fixture *f = *state;
	struct vd_compare     unchanged = { VD_COMPARE_MOD, VD_COMPARE_EQUAL, K("a"), VD_BYTES_NONE, 0 };
	struct vd_op	      write[] = { { .kind = VD_OP_PUT, .key = K("a"), .value = K("1") } };
	struct vd_op	      read[] = { { .kind = VD_OP_RANGE, .range = { .key = K("a") } } };
	struct vd_txn_request request = {
		.compares = &unchanged, .compare_count = 1, LIST(write), .failure = read, .failure_count = 1
	};
	struct txn_answer answer;

	txn(f, &request, &answer);
	assert_true(answer.succeeded);
	assert_int_equal(answer.revision, 2);
	txn(f, &request, &answer);
	assert_false(answer.succeeded);
	assert_int_equal(answer.revision, 2);
	assert_string_equal(answer.ops[0].text, "a=1");
	unchanged.number = 2;
	txn(f, &request, &answer);
	assert_true(answer.succeeded);
	assert_int_equal(answer.revision, 3);
}

static void e462_compact_bounds(void **state)
{
	struct store_fixture  *f = *state;
	struct vd_store_status status;

	put(f, "a", "1");
	put(f, "a", "2");
	assert_status(compact(f, 4), VD_TOO_LARGE_REVISION);
	assert_status(compact(f, 0), VD_OK);
	assert_status(compact(f, 0), VD_EXPIRED);
	assert_status(compact(f, 2), VD_OK);
	assert_status(compact(f, 2), VD_EXPIRED);
	assert_status(compact(f, 1), VD_EXPIRED);
	assert_status(compact(f, 3), VD_OK);
	assert_status(vd_store_status_get(f->store, &status), VD_OK);
	assert_int_equal(status.compacted, 3);
	assert_int_equal(status.current, 3);
	assert_string_equal(text_at(f, "a", NULL, 0), "a=2");
}

static void bounds_of_keys(void **state)
{
	struct store_fixture *f = *state;
	char		     *key = test_calloc(1, VD_KEY_SIZE_MAX + 1);
	struct vd_op	      op = { .kind = VD_OP_PUT, .key = { key, VD_KEY_SIZE_MAX } };
	struct txn_answer     answer;

	memset(key, 'k', VD_KEY_SIZE_MAX + 1);
	txn_ops(f, &op, 1, &answer);
	assert_status(answer.status, VD_OK);
	op.key.size++;
	txn_ops(f, &op, 1, &answer);
	assert_status(answer.status, VD_TOO_BIG);
	test_free(key);
}

/* A key that is deleted and created again is a new key with a new generation; the old generation stays
 * readable at its revisions. */
static void e404_generations(void **state)
{
	static const struct {
		vd_rev	    revision;
		const char *value; /* NULL: absent */
		vd_rev	    create_rev;
		int64_t	    version;
	} wanted[] = { { 2, "1", 2, 1 }, { 3, "2", 2, 2 }, { 4, NULL, 0, 0 }, { 5, NULL, 0, 0 },
		       { 6, "3", 6, 1 }, { 7, "4", 6, 2 }, { 8, NULL, 0, 0 }, { 9, "5", 9, 1 } };
	struct store_fixture *f = *state;

	put(f, "k", "1");
	put(f, "k", "2");
	delete_range(f, "k", NULL, NULL);
	put(f, "other", "1");
	put(f, "k", "3");
	put(f, "k", "4");
	delete_range(f, "k", NULL, NULL);
	put(f, "k", "5");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(wanted); i++) {
		struct vd_range_request request = { .key = K("k"), .revision = wanted[i].revision };
		struct range_answer	answer;

		range(f, &request, &answer);
		assert_int_equal(answer.kv_count, wanted[i].value != NULL);
		if (wanted[i].value) {
			assert_true(vd_bytes_equal(vd_kv_value(answer.kvs[0]), vd_bytes_of(wanted[i].value)));
			assert_int_equal(answer.kvs[0]->create_rev, wanted[i].create_rev);
			assert_int_equal(answer.kvs[0]->version, wanted[i].version);
		}
		range_answer_fini(&answer);
	}
}

/* All records of the newest revisions are compacted; the store's revision still does not go back. */
static void e407_a_restart_never_goes_back(void **state)
{
	struct store_fixture *f = *state;

	if (f->factory->reopen == NULL)
		skip_because("this store cannot be reopened");
	put(f, "k", "1");
	delete_range(f, "k", NULL, NULL); /* revision 3 */
	assert_status(compact(f, 3), VD_OK);
	for (int i = 0; i < 2; i++) {
		assert_status(f->factory->reopen(f->factory->arg, f->env, &f->store), VD_OK);
		assert_int_equal(current(f), 3);
		assert_int_equal(compact(f, 3), VD_EXPIRED);
	}
	assert_int_equal(put(f, "k", "2"), 4);
	assert_status(compact(f, 4), VD_OK);
	assert_status(f->factory->reopen(f->factory->arg, f->env, &f->store), VD_OK);
	assert_int_equal(current(f), 4);
}

static void e469_the_store_comes_back_as_it_was(void **state)
{
	struct store_fixture   *f = *state;
	struct vd_range_request request = { .key = K("a") };
	struct range_answer	answer;

	if (f->factory->reopen == NULL)
		skip_because("this store cannot be reopened");
	generations(f);
	put(f, "a", "1");
	put(f, "a", "2");
	assert_status(compact(f, 4), VD_OK);
	assert_status(f->factory->reopen(f->factory->arg, f->env, &f->store), VD_OK);
	assert_int_equal(current(f), 8);
	assert_string_equal(text_at(f, "a", "z", 0), "a=2");
	assert_string_equal(text_at(f, "a", "z", 7), "a=1");
	assert_string_equal(text_at(f, "a", "z", 5), "k=4");
	assert_string_equal(text_at(f, "a", "z", 4), "");
	assert_status(status_at(f, "a", 3), VD_EXPIRED);
	range(f, &request, &answer);
	assert_int_equal(answer.kvs[0]->create_rev, 7);
	assert_int_equal(answer.kvs[0]->version, 2);
	range_answer_fini(&answer);
	assert_int_equal(put(f, "a", "3"), 9);
}

const struct CMUnitTest store_suite_kv_tests[] = {
	cmocka_unit_test(e401_a_fresh_store_stands_at_revision_1),
	cmocka_unit_test(e401_only_changes_make_revisions),
	cmocka_unit_test(e403_put_counts_versions),
	cmocka_unit_test(e404_generations),
	cmocka_unit_test(e405_old_revisions_are_exact),
	cmocka_unit_test(e407_a_restart_never_goes_back),
	cmocka_unit_test(e406_compaction_keeps_what_it_must),
	cmocka_unit_test(e409_reads_below_the_compaction_fail_and_at_it_work),
	cmocka_unit_test(e420_an_empty_key_is_refused),
	cmocka_unit_test(e421_intervals),
	cmocka_unit_test(e422_future_before_compacted),
	cmocka_unit_test(e423_the_header_is_the_current_revision),
	cmocka_unit_test(e424_keys_are_in_the_order_of_their_bytes),
	cmocka_unit_test(e425_e426_count_limit_more),
	cmocka_unit_test(e440_put_is_checked_in_order),
	cmocka_unit_test(e441_ignore_value_and_lease),
	cmocka_unit_test(e442_previous_of_a_put),
	cmocka_unit_test(e444_delete_range),
	cmocka_unit_test(e450_limits_of_a_transaction),
	cmocka_unit_test(e451_duplicates),
	cmocka_unit_test(e452_compares),
	cmocka_unit_test(e453_compares_see_the_state_before),
	cmocka_unit_test(e454_a_rejected_transaction_has_no_effect),
	cmocka_unit_test(e455_e456_results_follow_the_operations),
	cmocka_unit_test(e455_a_range_at_the_current_revision_sees_nothing_of_its_transaction),
	cmocka_unit_test(e455_compare_and_swap),
	cmocka_unit_test(e456_e457_a_read_only_transaction_makes_no_revision),
	cmocka_unit_test(e458_put_and_delete_of_one_branch_share_a_revision),
	cmocka_unit_test(e462_compact_bounds),
	cmocka_unit_test(bounds_of_keys),
	cmocka_unit_test(e469_the_store_comes_back_as_it_was),
};
const size_t store_suite_kv_test_count = VDI_ARRAY_SIZE(store_suite_kv_tests);
