/* What only the embedded store promises: bounded queues, groups that roll back, transactions that are
 * replayed. What it shares with every store is in tests/conformance/store_suite*.c. */

#include <vedette/store.h>

#include "actor_sim.h"
#include "env.h"
#include "metrics.h"
#include "mvcc_fixture.h"
#include "mvcc_read.h"
#include "mvcc_replay.h"
#include "mvcc_store.h"
#include "temp_folder.h"
#include "vdtest.h"

/* A transaction that only reads, at any depth and in both branches, does not wait behind writes: it is
 * answered within its call, also when the writer takes nothing more. */
static void reads_do_not_wait_for_the_writer(void **state)
{
	struct vd_env	      *env = mvcc_env_new();
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_op	       range = { .kind = VD_OP_RANGE, .range = { .key = K("a") } };
	struct vd_op	       write = { .kind = VD_OP_PUT, .key = K("b"), .value = K("1") };
	struct vd_txn_request  inner = {
		 .success = &range, .success_count = 1, .failure = &range, .failure_count = 1
	};
	struct vd_op	      nested = { .kind = VD_OP_TXN, .txn = &inner };
	struct vd_txn_request requests[] = {
		{ .success = &range, .success_count = 1 },
		{ .success = &nested, .success_count = 1, .failure = &nested, .failure_count = 1 },
		{ .failure = &range, .failure_count = 1 },
		{ .success = NULL }
	};
	struct vd_txn_request writes[] = {
		{ .success = &range, .success_count = 1, .failure = &write, .failure_count = 1 }
	};
	struct mvcc_call waiting, call;
	struct vd_store *store;

	(void) state;
	options.history_window = (vd_dur) { 0 };
	options.in_flight_max = 1;
	store = mvcc_store_new(env, &options);
	assert_status(mvcc_submit_put(store, "a", "1", &waiting), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(requests); i++) {
		memset(&call, 0, sizeof call);
		assert_status(vd_store_txn(store, &requests[i], mvcc_got_txn, &call), VD_OK);
		assert_int_equal(call.answers, 1);
		assert_status(call.status, VD_OK);
	}
	assert_status(vd_store_txn(store, &writes[0], mvcc_got_txn, &call), VD_FULL);
	assert_int_equal(waiting.answers, 0);
	vd_store_close_wait(store);
	assert_int_equal(waiting.answers, 1);
	vd_env_free(env);
}

static void options_are_checked(void **state)
{
	struct vd_env	      *env = mvcc_env_new();
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_store	      *store = NULL;

	(void) state;
	options.size = 3;
	assert_status(vd_store_open_mvcc(env, &options, &store, NULL), VD_INVALID_ARGUMENT);
	options = (struct vd_mvcc_options) VD_MVCC_OPTIONS_INIT;
	options.in_flight_max = 0;
	assert_status(vd_store_open_mvcc(env, &options, &store, NULL), VD_INVALID_ARGUMENT);
	options = (struct vd_mvcc_options) VD_MVCC_OPTIONS_INIT;
	options.history_bytes = -1;
	assert_status(vd_store_open_mvcc(env, &options, &store, NULL), VD_INVALID_ARGUMENT);
	assert_null(store);
	vd_env_free(env);
}

static void too_many_in_flight_is_full(void **state)
{
	struct vd_env	      *env = mvcc_env_new();
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_store	      *store;
	struct mvcc_call       calls[4];

	(void) state;
	options.in_flight_max = 3;
	store = mvcc_store_new(env, &options);
	for (int i = 0; i < 3; i++)
		assert_status(mvcc_submit_put(store, "a", "1", &calls[i]), VD_OK);
	assert_status(mvcc_submit_put(store, "a", "1", &calls[3]), VD_FULL);
	vdi_sim_run_until_idle(env);
	assert_int_equal(calls[2].revision, 4);
	assert_int_equal(calls[3].answers, 0);
	assert_status(mvcc_submit_put(store, "a", "1", &calls[3]), VD_OK);
	vd_store_close_wait(store);
	assert_int_equal(calls[3].answers, 1);
	vd_env_free(env);
}

/* A refused operation leaves no memory behind, whatever it is. */
static void a_full_queue_refuses_operations_of_every_kind(void **state)
{
	struct vd_env	      *env = mvcc_env_new();
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_store	      *store;
	struct mvcc_call       first = { 0 }, call = { 0 };
	int64_t		       live;

	(void) state;
	options.in_flight_max = 1;
	store = mvcc_store_new(env, &options);
	assert_status(mvcc_submit_put(store, "a", "1", &first), VD_OK);
	live = vdi_alloc_live();
	assert_status(mvcc_submit_put(store, "a", "1", &call), VD_FULL);
	assert_status(vd_store_compact(store, 1, false, mvcc_got_done, &call), VD_FULL);
	assert_status(vd_store_lease_grant(store, 7, 10, mvcc_got_lease, &call), VD_FULL);
	assert_status(vd_store_lease_keep_alive(store, 7, mvcc_got_lease, &call), VD_FULL);
	assert_status(vd_store_lease_revoke(store, 7, mvcc_got_done, &call), VD_FULL);
	assert_int_equal(vdi_alloc_live(), live);
	vd_store_close_wait(store);
	assert_int_equal(first.answers, 1);
	assert_int_equal(call.answers, 0);
	vd_env_free(env);
}

/* A submission sees what was submitted before it in the same group; nobody else does. */
static void a_group_sees_itself_and_is_published_together(void **state)
{
	struct vd_env	     *env = mvcc_env_new();
	struct vd_store	     *store = mvcc_store_new(env, NULL);
	struct vd_compare     compare = { VD_COMPARE_MOD, VD_COMPARE_EQUAL, K("a"), VD_BYTES_NONE, 2 };
	struct vd_op	      op = { .kind = VD_OP_PUT, .key = K("a"), .value = K("2") };
	struct vd_txn_request request = {
		.compares = &compare, .compare_count = 1, .success = &op, .success_count = 1
	};
	struct mvcc_call calls[4] = { 0 };

	(void) state;
	assert_status(mvcc_submit_put(store, "a", "1", &calls[0]), VD_OK);
	assert_status(vd_store_txn(store, &request, mvcc_got_txn, &calls[1]), VD_OK);
	assert_status(vd_store_txn(store, &request, mvcc_got_txn, &calls[2]), VD_OK);
	assert_status(vd_store_compact(store, 2, false, mvcc_got_done, &calls[3]), VD_OK);
	assert_string_equal(mvcc_all_text(store, 0).bytes, "");
	vdi_sim_run_until_idle(env);
	assert_int_equal(calls[0].revision, 2);
	assert_true(calls[1].succeeded);
	assert_int_equal(calls[1].revision, 3);
	assert_false(calls[2].succeeded);
	assert_int_equal(calls[2].revision, 3);
	assert_status(calls[3].status, VD_OK);
	assert_string_equal(mvcc_all_text(store, 0).bytes, "a=2@3/0");
	assert_string_equal(mvcc_all_text(store, 2).bytes, "a=1@2/0");
	vd_store_close_wait(store);
	vd_env_free(env);
}

struct old_reads {
	struct mvcc_text texts[4];
	size_t		 count;
};

static void got_old_reads(void *arg, vd_status status, const struct vd_txn_result *result,
			  const struct vd_error *error)
{
	struct old_reads *reads = arg;

	assert_status(status, VD_OK);
	for (size_t i = 0; i < result->result_count; i++)
		if (result->results[i].kind == VD_OP_RANGE)
			mvcc_got_text(&reads->texts[reads->count++], VD_OK, &result->results[i].range, error);
}

/* Reads at each revision of a group that is not yet published see that revision: what the log has, and what
 * only the group has. */
static void reads_of_revisions_of_the_same_group(void **state)
{
	static const char *const expected[] = { "a=1@2/0 c=1@3/0", "a=1@2/0 b=1@4/0 c=1@3/0",
						"a=2@5/0 b=1@4/0 c=1@3/0", "b=1@4/0 c=1@3/0" };
	struct vd_env		*env = mvcc_env_new();
	struct vd_store		*store = mvcc_store_new(env, NULL);
	struct vd_op delete = { .kind = VD_OP_DELETE, .key = K("a") };
	struct vd_txn_request delete_txn = { .success = &delete, .success_count = 1 };
	struct vd_op	      ops[5] = {
			 { .kind = VD_OP_PUT, .key = K("d"), .value = K("1") }
	}; /* a write, so that it joins the group */
	struct vd_txn_request txn = { .success = ops, .success_count = 5 };
	struct mvcc_call      calls[3] = { 0 };
	struct old_reads      reads = { 0 };
	char		      start[1] = { 0 }, end[1] = { 0 };

	(void) state;
	for (int i = 0; i < 4; i++)
		ops[1 + i] = (struct vd_op) {
			.kind = VD_OP_RANGE,
			.range = { .key = { start, 1 }, .range_end = { end, 1 }, .revision = 3 + i }
		};
	mvcc_put(store, "a", "1");
	mvcc_put(store, "c", "1");
	assert_status(mvcc_submit_put(store, "b", "1", &calls[0]), VD_OK);
	assert_status(mvcc_submit_put(store, "a", "2", &calls[1]), VD_OK);
	assert_status(vd_store_txn(store, &delete_txn, mvcc_got_txn, &calls[2]), VD_OK);
	assert_status(vd_store_txn(store, &txn, got_old_reads, &reads), VD_OK);
	memset(ops, 0, sizeof ops); /* it was copied, to the last key */
	start[0] = end[0] = 'b';
	vdi_sim_run_until_idle(env);
	assert_int_equal(reads.count, 4);
	for (int i = 0; i < 4; i++)
		assert_string_equal(reads.texts[i].bytes, expected[i]);
	vd_store_close_wait(store);
	vd_env_free(env);
}

static void outstanding_calls_are_answered_at_close(void **state)
{
	struct vd_env	*env = mvcc_env_new();
	struct vd_store *store = mvcc_store_new(env, NULL);
	struct mvcc_call calls[6] = { 0 };

	(void) state;
	assert_status(mvcc_submit_put(store, "a", "1", &calls[0]), VD_OK);
	assert_status(vd_store_compact(store, 2, true, mvcc_got_done, &calls[1]), VD_OK);
	assert_status(vd_store_lease_grant(store, 4, 10, mvcc_got_lease, &calls[2]), VD_OK);
	assert_status(vd_store_lease_keep_alive(store, 4, mvcc_got_lease, &calls[3]), VD_OK);
	assert_status(vd_store_lease_revoke(store, 4, mvcc_got_done, &calls[4]), VD_OK);
	vd_store_close(store, NULL, NULL);
	assert_status(mvcc_submit_put(store, "a", "1", &calls[5]), VD_CLOSED);
	vdi_sim_run_until_idle(env);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(calls[i].answers, 1);
		assert_status(calls[i].status, VD_OK);
	}
	assert_int_equal(calls[5].answers, 0);
	vd_env_free(env);
}

static int64_t metric(struct vd_env *env, enum vdi_metric_id id)
{
	struct vdi_metric *instance;
	int64_t		   value;

	assert_status(vdi_metric_get(vdi_env_metrics(env), id, NULL, &instance), VD_OK);
	value = vdi_metric_value(instance);
	vdi_metric_release(instance);
	return value;
}

static void metrics_move(void **state)
{
	struct vd_env		     *env = mvcc_env_new();
	struct vd_store		     *store = mvcc_store_new(env, NULL);
	int			      woken = 0;
	struct vd_store_watch_request request = {
		.key = K("a"), .start_revision = 2, .ready = mvcc_count_ready, .ready_arg = &woken
	};
	struct vd_store_watch *watch;
	struct vd_store_batch  batch;
	struct vd_op	       ops[2] = { { .kind = VD_OP_DELETE, .key = K("a") },
					  { .kind = VD_OP_PUT, .key = K("b") } };
	struct vd_txn_request  txn = { .success = ops, .success_count = 2 };
	struct mvcc_call       call = { 0 };
	struct vdi_buffer      text;

	(void) state;
	mvcc_put(store, "a", "12345");
	assert_status(vd_store_txn(store, &txn, mvcc_got_txn, &call), VD_OK);
	assert_status(vd_store_lease_grant(store, 1, 10, mvcc_got_lease, &call), VD_OK);
	assert_status(vd_store_lease_grant(store, 2, 10, mvcc_got_lease, &call), VD_OK);
	assert_status(vd_store_lease_keep_alive(store, 1, mvcc_got_lease, &call), VD_OK);
	assert_status(vd_store_lease_revoke(store, 1, mvcc_got_done, &call), VD_OK);
	vdi_sim_advance(env, VD_SECONDS(20));
	mvcc_all_text(store, 0);
	assert_status(vd_store_watch_open(store, &request, &watch, NULL), VD_OK);
	assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_OK);
	vdi_buffer_init(&text, 1 << 20);
	assert_status(vdi_metrics_render(vdi_env_metrics(env), &text), VD_OK);
	vdi_buffer_fini(&text);
	assert_int_equal(metric(env, VDI_METRIC_ETCD_MVCC_PUT_TOTAL), 2);
	assert_int_equal(metric(env, VDI_METRIC_ETCD_MVCC_DELETE_TOTAL), 1);
	assert_int_equal(metric(env, VDI_METRIC_ETCD_MVCC_TXN_TOTAL), 1);
	assert_int_equal(metric(env, VDI_METRIC_ETCD_MVCC_RANGE_TOTAL), 1);
	assert_int_equal(metric(env, VDI_METRIC_ETCD_MVCC_TOTAL_PUT_SIZE), 7);
	assert_int_equal(metric(env, VDI_METRIC_ETCD_MVCC_CURRENT_REVISION), 3);
	assert_int_equal(metric(env, VDI_METRIC_ETCD_MVCC_COMPACT_REVISION), -1);
	assert_int_equal(metric(env, VDI_METRIC_STORE_REVISION), 3);
	assert_int_equal(metric(env, VDI_METRIC_STORE_COMPACT_REVISION), -1);
	assert_int_equal(metric(env, VDI_METRIC_STORE_KEYS), 1);
	assert_int_equal(metric(env, VDI_METRIC_ETCD_MVCC_KEYS), 1);
	assert_int_equal(metric(env, VDI_METRIC_ETCD_MVCC_WATCHERS), 1);
	assert_int_equal(metric(env, VDI_METRIC_ETCD_MVCC_SLOW_WATCHERS), 1);
	assert_int_equal(metric(env, VDI_METRIC_ETCD_MVCC_EVENTS_TOTAL), 2);
	assert_int_equal(metric(env, VDI_METRIC_ETCD_LEASE_GRANTED_TOTAL), 2);
	assert_int_equal(metric(env, VDI_METRIC_ETCD_LEASE_RENEWED_TOTAL), 1);
	assert_int_equal(metric(env, VDI_METRIC_ETCD_LEASE_REVOKED_TOTAL), 2);
	assert_int_equal(metric(env, VDI_METRIC_ETCD_LEASE_EXPIRED_TOTAL), 1);
	assert_int_equal(metric(env, VDI_METRIC_STORE_TXNS_TOTAL), 2);
	vd_store_watch_close(watch);
	vd_store_close_wait(store);
	vd_env_free(env);
}

/* A put may keep the value, the lease, both or neither of the record that is there. rules: E-455 */
static void a_put_keeps_what_it_ignores(void **state)
{
	static const struct {
		bool	    ignore_value, ignore_lease;
		const char *value; /* afterwards */
		int64_t	    lease;
	} rows[] = { { false, false, "new", 0 },
		     { true, false, "old", 0 },
		     { false, true, "new", 7 },
		     { true, true, "old", 7 } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_env	*env = mvcc_env_new();
		struct vd_store *store = mvcc_store_new(env, NULL);
		struct mvcc_call call = { 0 };
		struct vd_op	 op = { .kind = VD_OP_PUT, .key = K("a"), .value = K("old"), .lease = 7 };
		struct vd_txn_request txn = { .success = &op, .success_count = 1 };
		struct vd_kv	     *kv;

		assert_status(vd_store_lease_grant(store, 7, 10, mvcc_got_lease, &call), VD_OK);
		assert_status(vd_store_txn(store, &txn, mvcc_got_txn, &call), VD_OK);
		vdi_sim_run_until_idle(env);
		op = (struct vd_op) { .kind = VD_OP_PUT,
				      .key = K("a"),
				      .ignore_value = rows[i].ignore_value,
				      .ignore_lease = rows[i].ignore_lease };
		if (!rows[i].ignore_value)
			op.value = K("new");
		assert_status(vd_store_txn(store, &txn, mvcc_got_txn, &call), VD_OK);
		vdi_sim_run_until_idle(env);
		assert_status(call.status, VD_OK);
		assert_status(vd_store_get_wait(store, K("a"), &kv, NULL), VD_OK);
		assert_true(vd_bytes_equal(vd_kv_value(kv), K(rows[i].value)));
		assert_int_equal(kv->lease, rows[i].lease);
		assert_int_equal(kv->version, 2);
		vd_kv_unref(kv);
		vd_store_close_wait(store);
		vd_env_free(env);
	}
}

static vd_status submit_delete(struct vd_store *store, const char *key, struct mvcc_call *call)
{
	struct vd_op	      op = { .kind = VD_OP_DELETE, .key = K(key) };
	struct vd_txn_request request = { .success = &op, .success_count = 1 };

	memset(call, 0, sizeof *call);
	return vd_store_txn(store, &request, mvcc_got_txn, call);
}

/* In one group: what needs space is refused, each with its own answer; what does not goes on. */
static void e466_at_the_quota_deletes_go_on(void **state)
{
	char		       directory[TEMP_FOLDER_SIZE];
	struct vd_env	      *env = mvcc_env_new();
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_store	      *store;
	struct mvcc_call       calls[12];
	vd_status	       status = VD_OK;
	vd_rev		       revision = 1;

	(void) state;
	temp_folder_make(directory);
	options.data_dir = directory;
	options.no_sync = true;
	store = mvcc_store_new(env, &options);
	mvcc_put(store, "a", "1");
	mvcc_put(store, "b", "1");
	options.quota_bytes = mvcc_status_of(store).size_bytes + 64;
	vd_store_close_wait(store);
	store = mvcc_store_new(env, &options);
	assert_true(options.quota_bytes > 64);
	while (status == VD_OK)
		status = vd_store_put_wait(store, K("c"), K("0123456789012345678901234567890123456789"),
					   &revision, NULL);
	assert_status(status, VD_NO_SPACE);
	revision = mvcc_status_of(store).current;
	for (int i = 0; i < 10; i++)
		assert_status(
			mvcc_submit_put(store, "d", "0123456789012345678901234567890123456789", &calls[i]),
			VD_OK);
	assert_status(submit_delete(store, "a", &calls[10]), VD_OK);
	assert_status(vd_store_compact(store, revision, false, mvcc_got_done, &calls[11]), VD_OK);
	vdi_sim_run_until_idle(env);
	for (int i = 0; i < 10; i++)
		assert_status(calls[i].status, VD_NO_SPACE);
	assert_status(calls[10].status, VD_OK);
	assert_int_equal(calls[10].revision, revision + 1);
	assert_status(calls[11].status, VD_OK);
	assert_int_equal(mvcc_status_of(store).compacted, revision);
	vd_store_close_wait(store);
	vd_env_free(env);
	temp_folder_remove(directory);
}

static struct vdi_replay_change change(const char *key, const char *value)
{
	struct vdi_replay_change made = { .is_delete = value == NULL };

	assert_status(vd_kv_new(K(key), value ? K(value) : VD_BYTES_NONE, &made.kv), VD_OK);
	return made;
}

static void replay(struct vd_env *env, struct vd_store *store, vd_rev revision,
		   const struct vdi_replay_change *changes, size_t count, vd_rev expected)
{
	struct mvcc_call call = { 0 };

	assert_status(vdi_mvcc_replay(store, revision, changes, count, mvcc_got_done, &call), VD_OK);
	(void) vdi_sim_run_until_idle(env);
	assert_int_equal(call.answers, 1);
	assert_status(call.status, VD_OK);
	assert_int_equal(call.revision, expected);
}

static void recorded_transactions_keep_their_revisions(void **state)
{
	struct vd_env		*env = mvcc_env_new();
	struct vd_store		*store = mvcc_store_new(env, NULL);
	struct vdi_replay_change changes[2] = { change("a", "1"), change("b", "2") };
	struct vd_kv		*kv;

	(void) state;
	changes[0].create_rev = 4;
	changes[0].version = 7;
	replay(env, store, 10, changes, 2, 10);
	changes[0] = change("b", NULL);
	changes[1] = change("never", NULL);
	replay(env, store, 15, changes, 2, 15);
	assert_string_equal(mvcc_all_text(store, 0).bytes, "a=1@10/0");
	assert_string_equal(mvcc_all_text(store, 12).bytes, "a=1@10/0 b=2@10/0");
	assert_status(vd_store_get_wait(store, K("a"), &kv, NULL), VD_OK);
	assert_int_equal(kv->create_rev, 4);
	assert_int_equal(kv->version, 7);
	vd_kv_unref(kv);
	replay(env, store, 20, NULL, 0, 20);
	replay(env, store, 19, NULL, 0, 20);
	assert_int_equal(mvcc_all_text(store, 0).revision, 20);
	/* Deletes of what is not there are no revision. */
	changes[0] = change("never", NULL);
	replay(env, store, 25, changes, 1, 20);
	vd_store_close_wait(store);
	vd_env_free(env);
}

static void a_recorded_transaction_that_was_passed_gets_the_next_revision(void **state)
{
	struct vd_env		*env = mvcc_env_new();
	struct vd_store		*store = mvcc_store_new(env, NULL);
	struct vdi_replay_change one = change("a", "1");

	(void) state;
	replay(env, store, 3, &one, 1, 3);
	mvcc_put(store, "mine", "x"); /* 4, which the log has too */
	one = change("a", "2");
	replay(env, store, 4, &one, 1, 5);
	one = change("a", "3");
	replay(env, store, 9, &one, 1, 9);
	assert_string_equal(mvcc_all_text(store, 0).bytes, "a=3@9/0 mine=x@4/0");
	assert_string_equal(mvcc_all_text(store, 5).bytes, "a=2@5/0 mine=x@4/0");
	vd_store_close_wait(store);
	vd_env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_do_not_wait_for_the_writer),
		cmocka_unit_test(recorded_transactions_keep_their_revisions),
		cmocka_unit_test(a_recorded_transaction_that_was_passed_gets_the_next_revision),
		cmocka_unit_test(options_are_checked),
		cmocka_unit_test(too_many_in_flight_is_full),
		cmocka_unit_test(a_full_queue_refuses_operations_of_every_kind),
		cmocka_unit_test(a_group_sees_itself_and_is_published_together),
		cmocka_unit_test(reads_of_revisions_of_the_same_group),
		cmocka_unit_test(outstanding_calls_are_answered_at_close),
		cmocka_unit_test(a_put_keeps_what_it_ignores),
		cmocka_unit_test(metrics_move),
		cmocka_unit_test(e466_at_the_quota_deletes_go_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
