/* What only the embedded store promises: bounded queues, groups that roll back, history that compacts itself, memory that runs out. What it shares with
 * every store is in tests/conformance/store_suite*.c. */
#include <ftw.h>

#include "actor_sim.h"
#include "env.h"
#include "metrics.h"
#include "mvcc_read.h"
#include "mvcc_replay.h"
#include "mvcc_store.h"
#include "vdtest.h"
#include "wait.h"

#include <vedette/store.h>

#define K(text) vd_bytes_of(text)
#define ZERO_END ((struct vd_bytes) { "", 1 })

static struct vd_env *new_env(void)
{
	struct vd_env *env = NULL;

	assert_status(vdi_env_new_sim(5, NULL, NULL, &env), VD_OK);
	return env;
}

static struct vd_store *new_store(struct vd_env *env, const struct vd_mvcc_options *options)
{
	struct vd_store *store = NULL;

	assert_status(vd_store_open_mvcc(env, options, &store, NULL), VD_OK);
	return store;
}

/* ---- Asynchronous calls and their answers ---- */

struct call {
	int	  answers;
	vd_status status;
	vd_rev	  revision;
	bool	  succeeded;
};

static void got_txn(void *arg, vd_status status, const struct vd_txn_result *result, const struct vd_error *error)
{
	struct call *call = arg;

	assert_true((status == VD_OK) == (result != NULL));
	assert_true((status == VD_OK) == (error == NULL));
	call->answers++;
	call->status = status;
	if (result) {
		call->revision = result->revision;
		call->succeeded = result->succeeded;
	}
}

static void got_done(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	struct call *call = arg;

	(void) error;
	call->answers++;
	call->status = status;
	call->revision = revision;
}

static void got_lease(void *arg, vd_status status, const struct vd_lease_result *result, const struct vd_error *error)
{
	struct call *call = arg;

	(void) error;
	call->answers++;
	call->status = status;
	if (result)
		call->revision = result->revision;
}

static vd_status submit_put(struct vd_store *store, const char *key, const char *value, struct call *call)
{
	struct vd_op	      op = { .kind = VD_OP_PUT, .key = K(key), .value = K(value) };
	struct vd_txn_request request = { .success = &op, .success_count = 1 };

	memset(call, 0, sizeof *call);
	return vd_store_txn(store, &request, got_txn, call);
}

static void put(struct vd_store *store, const char *key, const char *value)
{
	assert_status(vd_store_put_wait(store, K(key), K(value), NULL, NULL), VD_OK);
}

/* A transaction that only reads, at any depth and in both branches, does not wait behind writes: it is answered within its call, also when the writer takes nothing more. */
static void reads_do_not_wait_for_the_writer(void **state)
{
	struct vd_env	      *env = new_env();
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_op	       range = { .kind = VD_OP_RANGE, .range = { .key = K("a") } };
	struct vd_op	       write = { .kind = VD_OP_PUT, .key = K("b"), .value = K("1") };
	struct vd_txn_request  inner = { .success = &range, .success_count = 1, .failure = &range, .failure_count = 1 };
	struct vd_op	       nested = { .kind = VD_OP_TXN, .txn = &inner };
	struct vd_txn_request  requests[] = { { .success = &range, .success_count = 1 },
					      { .success = &nested, .success_count = 1, .failure = &nested, .failure_count = 1 },
					      { .failure = &range, .failure_count = 1 },
					      { .success = NULL } };
	struct vd_txn_request  writes[] = { { .success = &range, .success_count = 1, .failure = &write, .failure_count = 1 } };
	struct call	       waiting, call;
	struct vd_store	      *store;

	(void) state;
	options.history_window = (vd_dur) { 0 };
	options.in_flight_max = 1;
	store = new_store(env, &options);
	assert_status(submit_put(store, "a", "1", &waiting), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(requests); i++) {
		memset(&call, 0, sizeof call);
		assert_status(vd_store_txn(store, &requests[i], got_txn, &call), VD_OK);
		assert_int_equal(call.answers, 1);
		assert_status(call.status, VD_OK);
	}
	assert_status(vd_store_txn(store, &writes[0], got_txn, &call), VD_FULL);
	assert_int_equal(waiting.answers, 0);
	vd_store_close_wait(store);
	assert_int_equal(waiting.answers, 1);
	vd_env_free(env);
}

/* All records as text. */
struct text {
	char   bytes[2048];
	size_t size;
	vd_rev revision;
};

static void got_text(void *arg, vd_status status, const struct vd_range_result *result, const struct vd_error *error)
{
	struct text *text = arg;

	(void) error;
	assert_status(status, VD_OK);
	text->revision = result->revision;
	for (size_t i = 0; i < result->kv_count; i++) {
		struct vd_bytes key = vd_kv_key(result->kvs[i]);
		struct vd_bytes value = vd_kv_value(result->kvs[i]);

		text->size += (size_t) snprintf(text->bytes + text->size, sizeof text->bytes - text->size, "%s%.*s=%.*s@%d/%d",
						i ? " " : "", (int) key.size, (const char *) key.data, (int) value.size,
						(const char *) value.data, (int) result->kvs[i]->mod_rev, (int) result->kvs[i]->lease);
	}
}

static struct text all_text(struct vd_store *store, vd_rev revision)
{
	struct vd_range_request request = { .key = ZERO_END, .range_end = ZERO_END, .revision = revision };
	struct text		text = { 0 };

	assert_status(vd_store_range(store, &request, got_text, &text), VD_OK);
	return text;
}

static struct vd_store_status status_of(struct vd_store *store)
{
	struct vd_store_status status;

	assert_status(vd_store_status_get(store, &status), VD_OK);
	return status;
}

static void ready(void *arg)
{
	++*(int *) arg;
}

/* ---- Tests ---- */

static void options_are_checked(void **state)
{
	struct vd_env	      *env = new_env();
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
	struct vd_env	      *env = new_env();
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_store	      *store;
	struct call	       calls[4];

	(void) state;
	options.in_flight_max = 3;
	store = new_store(env, &options);
	for (int i = 0; i < 3; i++)
		assert_status(submit_put(store, "a", "1", &calls[i]), VD_OK);
	assert_status(submit_put(store, "a", "1", &calls[3]), VD_FULL);
	vdi_sim_run_until_idle(env);
	assert_int_equal(calls[2].revision, 4);
	assert_int_equal(calls[3].answers, 0);
	assert_status(submit_put(store, "a", "1", &calls[3]), VD_OK);
	vd_store_close_wait(store);
	assert_int_equal(calls[3].answers, 1);
	vd_env_free(env);
}

/* A submission sees what was submitted before it in the same group; nobody else does. */
static void a_group_sees_itself_and_is_published_together(void **state)
{
	struct vd_env	     *env = new_env();
	struct vd_store	     *store = new_store(env, NULL);
	struct vd_compare     compare = { VD_COMPARE_MOD, VD_COMPARE_EQUAL, K("a"), VD_BYTES_NONE, 2 };
	struct vd_op	      op = { .kind = VD_OP_PUT, .key = K("a"), .value = K("2") };
	struct vd_txn_request request = { .compares = &compare, .compare_count = 1, .success = &op, .success_count = 1 };
	struct call	      calls[4] = { 0 };

	(void) state;
	assert_status(submit_put(store, "a", "1", &calls[0]), VD_OK);
	assert_status(vd_store_txn(store, &request, got_txn, &calls[1]), VD_OK);
	assert_status(vd_store_txn(store, &request, got_txn, &calls[2]), VD_OK);
	assert_status(vd_store_compact(store, 2, false, got_done, &calls[3]), VD_OK);
	assert_string_equal(all_text(store, 0).bytes, "");
	vdi_sim_run_until_idle(env);
	assert_int_equal(calls[0].revision, 2);
	assert_true(calls[1].succeeded);
	assert_int_equal(calls[1].revision, 3);
	assert_false(calls[2].succeeded);
	assert_int_equal(calls[2].revision, 3);
	assert_status(calls[3].status, VD_OK);
	assert_string_equal(all_text(store, 0).bytes, "a=2@3/0");
	assert_string_equal(all_text(store, 2).bytes, "a=1@2/0");
	vd_store_close_wait(store);
	vd_env_free(env);
}

struct old_reads {
	struct text texts[4];
	size_t	    count;
};

static void got_old_reads(void *arg, vd_status status, const struct vd_txn_result *result, const struct vd_error *error)
{
	struct old_reads *reads = arg;

	assert_status(status, VD_OK);
	for (size_t i = 0; i < result->result_count; i++)
		if (result->results[i].kind == VD_OP_RANGE)
			got_text(&reads->texts[reads->count++], VD_OK, &result->results[i].range, error);
}

/* Reads at each revision of a group that is not yet published see that revision: what the log has, and what only the group has. */
static void reads_of_revisions_of_the_same_group(void **state)
{
	static const char *const expected[] = { "a=1@2/0 c=1@3/0", "a=1@2/0 b=1@4/0 c=1@3/0", "a=2@5/0 b=1@4/0 c=1@3/0", "b=1@4/0 c=1@3/0" };
	struct vd_env		*env = new_env();
	struct vd_store		*store = new_store(env, NULL);
	struct vd_op		 delete = { .kind = VD_OP_DELETE, .key = K("a") };
	struct vd_txn_request	 delete_txn = { .success = &delete, .success_count = 1 };
	struct vd_op		 ops[5] = { { .kind = VD_OP_PUT, .key = K("d"), .value = K("1") } }; /* a write, so that it joins the group */
	struct vd_txn_request	 txn = { .success = ops, .success_count = 5 };
	struct call		 calls[3] = { 0 };
	struct old_reads	 reads = { 0 };
	char			 start[1] = { 0 }, end[1] = { 0 };

	(void) state;
	for (int i = 0; i < 4; i++)
		ops[1 + i] = (struct vd_op) { .kind = VD_OP_RANGE, .range = { .key = { start, 1 }, .range_end = { end, 1 }, .revision = 3 + i } };
	put(store, "a", "1");
	put(store, "c", "1");
	assert_status(submit_put(store, "b", "1", &calls[0]), VD_OK);
	assert_status(submit_put(store, "a", "2", &calls[1]), VD_OK);
	assert_status(vd_store_txn(store, &delete_txn, got_txn, &calls[2]), VD_OK);
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

static void got_expired(void *arg, vd_status status, const struct vd_range_result *result, const struct vd_error *error)
{
	(void) result;
	assert_status(status, VD_EXPIRED);
	*(struct vd_error *) arg = *error;
}

/* Who asks for too old a revision learns what there is instead. */
static void an_expired_read_names_the_revisions(void **state)
{
	struct vd_env		 *env = new_env();
	struct vd_store		 *store = new_store(env, NULL);
	struct vd_range_request	  request = { .key = K("a"), .revision = 2 };
	struct call		  call = { 0 };
	struct vd_error		  error = { 0 };

	(void) state;
	for (int i = 0; i < 5; i++)
		put(store, "a", "1");
	assert_status(vd_store_compact(store, 4, true, got_done, &call), VD_OK);
	vdi_sim_run_until_idle(env);
	assert_status(call.status, VD_OK);
	assert_status(vd_store_range(store, &request, got_expired, &error), VD_OK);
	assert_int_equal(error.requested, 2);
	assert_int_equal(error.current, 6);
	assert_int_equal(error.compacted, 4);
	vd_store_close_wait(store);
	vd_env_free(env);
}

/* Compaction does not wait for who reads: what a reader still needed of the log is gone, and it is told so. */
static void a_read_that_compaction_overtakes_is_expired(void **state)
{
	struct vd_env		*env = new_env();
	struct vd_store		*store = new_store(env, NULL);
	struct vdi_mvcc		*mvcc = vdi_mvcc_of(store);
	struct vd_range_request	 request = { .key = K("a"), .revision = 3 };
	struct call		 call = { 0 };
	struct vd_error		 error = { 0 };
	struct vdi_mvcc_state	*old;
	struct vdi_view		 view;
	struct vdi_read		 read;

	(void) state;
	for (int i = 0; i < 5; i++)
		put(store, "a", "1");
	old = vdi_mvcc_state_get(mvcc);
	view = vdi_view_of_state(old, &mvcc->log);
	for (int i = 0; i < 2000; i++)
		put(store, "a", "1");
	assert_status(vd_store_compact(store, 2000, true, got_done, &call), VD_OK);
	vdi_sim_run_until_idle(env);
	assert_status(call.status, VD_OK);
	assert_status(vdi_read_range(&view, &request, true, &read, &error), VD_EXPIRED);
	assert_string_equal(error.message, "required revision 3 has been compacted");
	assert_int_equal(error.requested, 3);
	assert_int_equal(error.current, 6);
	assert_int_equal(error.compacted, 2000);
	vdi_mvcc_state_unref(old);
	vd_store_close_wait(store);
	vd_env_free(env);
}

/* The log grows by whole chunks: a new one comes when the old one is full or an eighth of the window old, not before. */
static void a_chunk_of_history_is_filled_before_the_next(void **state)
{
	struct vd_env	      *env = new_env();
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_store	      *store;

	(void) state;
	options.history_window = VD_SECONDS(80);
	store = new_store(env, &options);
	for (int i = 0; i < 20; i++)
		put(store, "a", "1");
	assert_int_equal(vdi_mvcc_of(store)->log.chunk_count, 1);
	vdi_sim_advance(env, VD_SECONDS(9));
	put(store, "a", "1");
	assert_int_equal(vdi_mvcc_of(store)->log.chunk_count, 1);
	vdi_sim_advance(env, VD_SECONDS(1));
	put(store, "a", "1");
	put(store, "a", "1");
	assert_int_equal(vdi_mvcc_of(store)->log.chunk_count, 2);
	vd_store_close_wait(store);
	vd_env_free(env);
}

static void outstanding_calls_are_answered_at_close(void **state)
{
	struct vd_env	*env = new_env();
	struct vd_store *store = new_store(env, NULL);
	struct call	 calls[6] = { 0 };

	(void) state;
	assert_status(submit_put(store, "a", "1", &calls[0]), VD_OK);
	assert_status(vd_store_compact(store, 2, true, got_done, &calls[1]), VD_OK);
	assert_status(vd_store_lease_grant(store, 4, 10, got_lease, &calls[2]), VD_OK);
	assert_status(vd_store_lease_keep_alive(store, 4, got_lease, &calls[3]), VD_OK);
	assert_status(vd_store_lease_revoke(store, 4, got_done, &calls[4]), VD_OK);
	vd_store_close(store, NULL, NULL);
	assert_status(submit_put(store, "a", "1", &calls[5]), VD_CLOSED);
	vdi_sim_run_until_idle(env);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(calls[i].answers, 1);
		assert_status(calls[i].status, VD_OK);
	}
	assert_int_equal(calls[5].answers, 0);
	vd_env_free(env);
}

static void history_compacts_behind_its_window(void **state)
{
	struct vd_env	      *env = new_env();
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_store	      *store;
	vd_rev		       at_cut;

	(void) state;
	options.history_window = VD_SECONDS(80);
	store = new_store(env, &options);
	for (int i = 0; i < 100; i++)
		put(store, "a", "1");
	vdi_sim_advance(env, VD_SECONDS(40));
	at_cut = status_of(store).current;
	for (int i = 0; i < 100; i++)
		put(store, "a", "2");
	vdi_sim_advance(env, VD_SECONDS(39));
	assert_int_equal(status_of(store).compacted, -1);
	vdi_sim_advance(env, VD_SECONDS(2));
	assert_int_equal(status_of(store).compacted, at_cut + 1);
	vdi_sim_advance(env, VD_SECONDS(60));
	/* Of the rest the newest remains readable. */
	assert_int_equal(status_of(store).compacted, status_of(store).current);
	assert_string_equal(all_text(store, 0).bytes, "a=2@201/0");
	vd_store_close_wait(store);
	vd_env_free(env);
}

static void history_is_bounded_by_bytes(void **state)
{
	struct vd_env	      *env = new_env();
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_store	      *store;
	char		       value[1001] = { 0 };
	struct vd_store_status status;

	(void) state;
	memset(value, 'v', 1000);
	options.history_bytes = 200 * 1000;
	store = new_store(env, &options);
	for (int i = 0; i < 1000; i++)
		put(store, "a", value);
	vdi_sim_run_until_idle(env);
	status = status_of(store);
	/* About 180 of those fit; chunks are a thirty-second of the bound. */
	assert_in_range(status.current - status.compacted, 150, 200);
	vd_store_close_wait(store);
	vd_env_free(env);
}

static void history_without_a_window_stays(void **state)
{
	struct vd_env	      *env = new_env();
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_store	      *store;

	(void) state;
	options.history_window = (vd_dur) { 0 };
	options.history_bytes = 1000;
	store = new_store(env, &options);
	for (int i = 0; i < 1000; i++)
		put(store, "a", "1");
	vdi_sim_advance(env, VD_SECONDS(10000));
	assert_int_equal(status_of(store).compacted, -1);
	assert_string_equal(all_text(store, 2).bytes, "a=1@2/0");
	vd_store_close_wait(store);
	vd_env_free(env);
}

/* An event stands for progress in its own period; from the next one on the watch is told again. rules: E-350 */
static void e350_progress_goes_on_after_an_event(void **state)
{
	struct vd_mvcc_options	      options = VD_MVCC_OPTIONS_INIT;
	struct vd_env		     *env = new_env();
	struct vd_store		     *store;
	int			      woken = 0;
	struct vd_store_watch_request request = { .key = K("a"), .progress = true, .ready = ready, .ready_arg = &woken };
	struct vd_store_watch	     *watch;
	struct vd_store_batch	      batch;

	(void) state;
	options.progress_interval = VD_SECONDS(10);
	store = new_store(env, &options);
	assert_status(vd_store_watch_open(store, &request, &watch, NULL), VD_OK);
	assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_AGAIN);
	for (int round = 0; round < 3; round++) {
		vd_rev revision;

		put(store, "a", "1");
		revision = status_of(store).current;
		assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_OK);
		assert_int_equal(batch.event_count, 1);
		assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_AGAIN);
		vdi_sim_advance(env, VD_SECONDS(21));
		assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_OK);
		assert_int_equal(batch.event_count, 0);
		assert_int_equal(batch.revision, revision);
		assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_AGAIN);
	}
	vd_store_watch_close(watch);
	vd_store_close_wait(store);
	vd_env_free(env);
}

/* A parked watch holds no history: what compaction drops is freed at once. */
/* Who looks for one key in a long history lets others run in between, is called again, and misses nothing. */
static void a_long_search_goes_in_steps(void **state)
{
	struct vd_env		     *env = new_env();
	struct vd_store		     *store = new_store(env, NULL);
	int			      woken = 0;
	struct vd_store_watch_request request = { .key = K("w"), .start_revision = 2, .ready = ready, .ready_arg = &woken };
	struct vd_store_watch	     *watch;
	struct vd_store_batch	      batch;
	struct vd_op		      ops[100];
	struct vd_txn_request	      txn = { .success = ops, .success_count = 100 };
	struct call		      call = { 0 };
	char			      keys[100][8];
	vd_rev			      found;
	vd_status		      status;
	int			      steps = 0;

	(void) state;
	for (int i = 0; i < 100; i++) {
		snprintf(keys[i], sizeof keys[i], "%c%d", i ? 'k' : 'z', i); /* nothing in common, so nothing is passed over at once */
		ops[i] = (struct vd_op) { .kind = VD_OP_PUT, .key = K(keys[i]) };
	}
	for (int i = 0; i < 2 * VDI_WATCH_SCAN_MAX / 100 + 2; i++) {
		assert_status(vd_store_txn(store, &txn, got_txn, &call), VD_OK);
		vdi_sim_run_until_idle(env);
	}
	put(store, "w", "1");
	found = status_of(store).current;
	assert_status(vd_store_watch_open(store, &request, &watch, NULL), VD_OK);
	while ((status = vd_store_watch_next(watch, 10, &batch, NULL)) == VD_AGAIN) {
		assert_int_equal(woken, ++steps);
		assert_true(steps < 10);
	}
	assert_status(status, VD_OK);
	assert_int_equal(steps, 2);
	assert_int_equal(batch.event_count, 1);
	assert_int_equal(batch.revision, found);
	assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_AGAIN);
	assert_int_equal(woken, 2);
	vd_store_watch_close(watch);
	vd_store_close_wait(store);
	vd_env_free(env);
}

/* As long as all keys of a chunk begin in another way than those of the watch. */
static void what_is_of_another_kind_is_passed_over_at_once(void **state)
{
	struct vd_env		     *env = new_env();
	struct vd_store		     *store = new_store(env, NULL);
	int			      woken[2] = { 0 };
	struct vd_store_watch_request request = { .key = K("/w/"), .range_end = K("/w0"), .start_revision = 2, .ready = ready, .ready_arg = &woken[0] };
	struct vd_store_watch	     *watch, *late;
	struct vd_store_batch	      batch;
	char			      key[16];

	(void) state;
	for (int i = 0; i < 2 * VDI_WATCH_SCAN_MAX; i++) {
		snprintf(key, sizeof key, "/pods/%d", i % 50);
		put(store, key, "1");
	}
	assert_status(vd_store_watch_open(store, &request, &watch, NULL), VD_OK);
	assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_AGAIN);
	assert_int_equal(woken[0], 0); /* it is not to come again: it has seen everything */
	put(store, "/w/1", "1");
	put(store, "/pods/1", "1");
	put(store, "/w/2", "1");
	assert_int_equal(woken[0], 1);
	request.ready_arg = &woken[1];
	assert_status(vd_store_watch_open(store, &request, &late, NULL), VD_OK);
	assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_OK);
	assert_int_equal(batch.event_count, 2);
	assert_status(vd_store_watch_next(late, 10, &batch, NULL), VD_OK);
	assert_int_equal(batch.event_count, 2);
	assert_true(vd_bytes_equal(vd_kv_key(batch.events[0].kv), K("/w/1")));
	vd_store_watch_close(watch);
	vd_store_watch_close(late);
	vd_store_close_wait(store);
	vd_env_free(env);
}

static void an_idle_watch_pins_nothing(void **state)
{
	struct vd_env		     *env = new_env();
	struct vd_store		     *store = new_store(env, NULL);
	int			      woken = 0;
	struct vd_store_watch_request request = { .key = K("w"), .start_revision = 2, .ready = ready, .ready_arg = &woken };
	struct vd_store_watch	     *watch;
	struct vd_store_batch	      batch;
	struct call		      call = { 0 };
	int64_t			      live;

	(void) state;
	put(store, "a", "1");
	live = vdi_alloc_live();
	assert_status(vd_store_watch_open(store, &request, &watch, NULL), VD_OK);
	assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_AGAIN);
	for (int i = 0; i < 5000; i++)
		put(store, "a", "1");
	assert_true(vdi_alloc_live() > live + 5000);
	for (int i = 0; i < 2; i++) { /* the second one drops the chunk that was still open */
		put(store, "a", "1");
		memset(&call, 0, sizeof call);
		assert_status(vd_store_compact(store, status_of(store).current, true, got_done, &call), VD_OK);
		vdi_sim_run_until_idle(env);
		assert_int_equal(call.answers, 1);
	}
	assert_true(vdi_alloc_live() < live + 64);
	assert_int_equal(woken, 0);
	vd_store_watch_close(watch);
	vd_store_close_wait(store);
	vd_env_free(env);
}

static void ready_is_not_called_after_close(void **state)
{
	struct vd_env		     *env = new_env();
	struct vd_store		     *store = new_store(env, NULL);
	int			      woken = 0;
	struct vd_store_watch_request request = { .key = K("a"), .ready = ready, .ready_arg = &woken };
	struct vd_store_watch	     *watch;
	struct vd_store_batch	      batch;
	struct call		      call;

	(void) state;
	assert_status(vd_store_watch_open(store, &request, &watch, NULL), VD_OK);
	assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_AGAIN);
	assert_status(submit_put(store, "a", "1", &call), VD_OK);
	vd_store_watch_close(watch);
	vdi_sim_run_until_idle(env);
	assert_int_equal(woken, 0);
	vd_store_close_wait(store);
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
	struct vd_env		     *env = new_env();
	struct vd_store		     *store = new_store(env, NULL);
	int			      woken = 0;
	struct vd_store_watch_request request = { .key = K("a"), .start_revision = 2, .ready = ready, .ready_arg = &woken };
	struct vd_store_watch	     *watch;
	struct vd_store_batch	      batch;
	struct vd_op		      ops[2] = { { .kind = VD_OP_DELETE, .key = K("a") }, { .kind = VD_OP_PUT, .key = K("b") } };
	struct vd_txn_request	      txn = { .success = ops, .success_count = 2 };
	struct call		      call = { 0 };
	struct vdi_buffer	      text;

	(void) state;
	put(store, "a", "12345");
	assert_status(vd_store_txn(store, &txn, got_txn, &call), VD_OK);
	assert_status(vd_store_lease_grant(store, 1, 10, got_lease, &call), VD_OK);
	assert_status(vd_store_lease_grant(store, 2, 10, got_lease, &call), VD_OK);
	assert_status(vd_store_lease_keep_alive(store, 1, got_lease, &call), VD_OK);
	assert_status(vd_store_lease_revoke(store, 1, got_done, &call), VD_OK);
	vdi_sim_advance(env, VD_SECONDS(20));
	all_text(store, 0);
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
	} rows[] = { { false, false, "new", 0 }, { true, false, "old", 0 }, { false, true, "new", 7 }, { true, true, "old", 7 } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_env	     *env = new_env();
		struct vd_store	     *store = new_store(env, NULL);
		struct call	      call = { 0 };
		struct vd_op	      op = { .kind = VD_OP_PUT, .key = K("a"), .value = K("old"), .lease = 7 };
		struct vd_txn_request txn = { .success = &op, .success_count = 1 };
		struct vd_kv	     *kv;

		assert_status(vd_store_lease_grant(store, 7, 10, got_lease, &call), VD_OK);
		assert_status(vd_store_txn(store, &txn, got_txn, &call), VD_OK);
		vdi_sim_run_until_idle(env);
		op = (struct vd_op) { .kind = VD_OP_PUT, .key = K("a"), .ignore_value = rows[i].ignore_value, .ignore_lease = rows[i].ignore_lease };
		if (!rows[i].ignore_value)
			op.value = K("new");
		assert_status(vd_store_txn(store, &txn, got_txn, &call), VD_OK);
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

/* Each revision a watch could begin at, up to the one after the newest: progress is told from the first tick on at which it is not below the start. */
static void e340_a_tick_tells_progress_from_the_start_on(void **state)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;

	(void) state;
	options.progress_interval = VD_SECONDS(10);
	for (vd_rev start = 2; start <= 5; start++) {
		struct vd_env		     *env = new_env();
		struct vd_store		     *store = new_store(env, &options);
		int			      woken = 0;
		struct vd_store_watch_request request = { .key = K("b"), .start_revision = start, .progress = true, .ready = ready, .ready_arg = &woken };
		struct vd_store_watch	     *watch;
		struct vd_store_batch	      batch;

		for (int i = 0; i < 3; i++)
			put(store, "a", "1"); /* 2 to 4 */
		assert_status(vd_store_watch_open(store, &request, &watch, NULL), VD_OK);
		assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_AGAIN);
		vdi_sim_advance(env, VD_SECONDS(21));
		if (start <= 4) {
			assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_OK);
			assert_int_equal(batch.revision, 4);
			assert_int_equal(batch.event_count, 0);
		}
		assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_AGAIN);
		vd_store_watch_close(watch);
		vd_store_close_wait(store);
		vd_env_free(env);
	}
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void) status;
	(void) type;
	(void) place;
	return remove(path);
}

static vd_status submit_delete(struct vd_store *store, const char *key, struct call *call)
{
	struct vd_op	      op = { .kind = VD_OP_DELETE, .key = K(key) };
	struct vd_txn_request request = { .success = &op, .success_count = 1 };

	memset(call, 0, sizeof *call);
	return vd_store_txn(store, &request, got_txn, call);
}

/* In one group: what needs space is refused, each with its own answer; what does not goes on. */
static void e466_at_the_quota_deletes_go_on(void **state)
{
	char		       directory[] = "/tmp/vedette-quota-XXXXXX";
	struct vd_env	      *env = new_env();
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_store	      *store;
	struct call	       calls[12];
	vd_status	       status = VD_OK;
	vd_rev		       revision = 1;

	(void) state;
	assert_non_null(mkdtemp(directory));
	options.data_dir = directory;
	options.no_sync = true;
	store = new_store(env, &options);
	put(store, "a", "1");
	put(store, "b", "1");
	options.quota_bytes = status_of(store).size_bytes + 64;
	vd_store_close_wait(store);
	store = new_store(env, &options);
	assert_true(options.quota_bytes > 64);
	while (status == VD_OK)
		status = vd_store_put_wait(store, K("c"), K("0123456789012345678901234567890123456789"), &revision, NULL);
	assert_status(status, VD_NO_SPACE);
	revision = status_of(store).current;
	for (int i = 0; i < 10; i++)
		assert_status(submit_put(store, "d", "0123456789012345678901234567890123456789", &calls[i]), VD_OK);
	assert_status(submit_delete(store, "a", &calls[10]), VD_OK);
	assert_status(vd_store_compact(store, revision, false, got_done, &calls[11]), VD_OK);
	vdi_sim_run_until_idle(env);
	for (int i = 0; i < 10; i++)
		assert_status(calls[i].status, VD_NO_SPACE);
	assert_status(calls[10].status, VD_OK);
	assert_int_equal(calls[10].revision, revision + 1);
	assert_status(calls[11].status, VD_OK);
	assert_int_equal(status_of(store).compacted, revision);
	vd_store_close_wait(store);
	vd_env_free(env);
	nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- Torture ---- */

/* A store with something of everything. */
static struct vd_store *busy_store(struct vd_env *env)
{
	struct vd_store	     *store = new_store(env, NULL);
	struct vd_op	      op = { .kind = VD_OP_PUT, .key = K("leased"), .value = K("l"), .lease = 7 };
	struct vd_txn_request request = { .success = &op, .success_count = 1 };
	struct call	      call = { 0 };
	char		      key[16];

	assert_status(vd_store_lease_grant(store, 7, 100, got_lease, &call), VD_OK);
	vdi_sim_run_until_idle(env);
	assert_status(vd_store_txn(store, &request, got_txn, &call), VD_OK);
	for (int i = 0; i < 40; i++) {
		snprintf(key, sizeof key, "k%02d", i);
		put(store, key, "v");
	}
	return store;
}

static vd_status start_big_txn(struct vd_store *store, struct call *call)
{
	struct vd_compare     compare = { VD_COMPARE_VERSION, VD_COMPARE_EQUAL, K("k01"), VD_BYTES_NONE, 1 };
	struct vd_op	      inner_ops[] = { { .kind = VD_OP_PUT, .key = K("inner"), .value = K("i"), .lease = 7 } };
	struct vd_txn_request inner = { .success = inner_ops, .success_count = 1 };
	struct vd_op	      ops[] = {
		     { .kind = VD_OP_PUT, .key = K("k01"), .value = K("new"), .previous = true },
		     { .kind = VD_OP_DELETE, .key = K("k10"), .range_end = K("k20"), .previous = true },
		     { .kind = VD_OP_RANGE, .range = { .key = K("k"), .range_end = K("l") } },
		     { .kind = VD_OP_RANGE, .range = { .key = K("k"), .range_end = K("l"), .revision = 9 } },
		     { .kind = VD_OP_PUT, .key = K("leased"), .ignore_value = true },
		     { .kind = VD_OP_TXN, .txn = &inner },
	};
	struct vd_txn_request request = { .compares = &compare, .compare_count = 1, .success = ops, .success_count = VDI_ARRAY_SIZE(ops) };

	return vd_store_txn(store, &request, got_txn, call);
}

static vd_status start_put(struct vd_store *store, struct call *call)
{
	return submit_put(store, "new", "1", call);
}

static vd_status start_grant(struct vd_store *store, struct call *call)
{
	return vd_store_lease_grant(store, 8, 50, got_lease, call);
}

static vd_status start_renew(struct vd_store *store, struct call *call)
{
	return vd_store_lease_keep_alive(store, 7, got_lease, call);
}

static vd_status start_revoke(struct vd_store *store, struct call *call)
{
	return vd_store_lease_revoke(store, 7, got_done, call);
}

static vd_status start_compact(struct vd_store *store, struct call *call)
{
	return vd_store_compact(store, 20, true, got_done, call);
}

/* Transactions within one, in both lists, that read and that tell what was there before. */
static vd_status start_nested(struct vd_store *store, struct call *call)
{
	struct vd_op	      inner[] = { { .kind = VD_OP_RANGE, .range = { .key = K("k"), .range_end = K("l") } },
					  { .kind = VD_OP_PUT, .key = K("k01"), .value = K("n"), .previous = true },
					  { .kind = VD_OP_DELETE, .key = K("k10"), .range_end = K("k20"), .previous = true } };
	struct vd_txn_request nested = { .success = inner, .success_count = 3, .failure = inner, .failure_count = 1 };
	struct vd_op	      middle[] = { { .kind = VD_OP_TXN, .txn = &nested }, { .kind = VD_OP_RANGE, .range = { .key = K("k"), .range_end = K("l") } } };
	struct vd_txn_request outer = { .success = middle, .success_count = 2 };
	struct vd_op	      op = { .kind = VD_OP_TXN, .txn = &outer };
	struct vd_txn_request request = { .success = &op, .success_count = 1, .failure = &op, .failure_count = 1 };

	return vd_store_txn(store, &request, got_txn, call);
}

static void torture_one(vd_status (*start)(struct vd_store *store, struct call *call))
{
	bool done = false;

	for (uint64_t nth = 1; !done; nth++) {
		struct vd_env	      *env = new_env();
		struct vd_store	      *store = busy_store(env);
		struct text	       before = all_text(store, 0);
		struct vd_store_status status = status_of(store);
		struct call	       call = { 0 };
		vd_status	       called;

		vdi_alloc_fail_nth(nth, 1);
		called = start(store, &call);
		vdi_sim_run_until_idle(env);
		done = !vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_int_equal(call.answers, called == VD_OK);
		if (called != VD_OK || call.status != VD_OK) {
			assert_status(called == VD_OK ? call.status : called, VD_NOMEM);
			assert_false(done);
			assert_string_equal(all_text(store, 0).bytes, before.bytes);
			assert_int_equal(status_of(store).current, status.current);
			assert_int_equal(status_of(store).compacted, status.compacted);
			/* And it goes on as if nothing had been. */
			memset(&call, 0, sizeof call);
			assert_status(start(store, &call), VD_OK);
			vdi_sim_run_until_idle(env);
			assert_status(call.status, VD_OK);
		}
		vd_store_close_wait(store);
		vd_env_free(env);
		assert_true(nth < 10000);
	}
}

static void torture_every_write(void **state)
{
	(void) state;
	torture_one(start_put);
	torture_one(start_big_txn);
	torture_one(start_nested);
	torture_one(start_grant);
	torture_one(start_renew);
	torture_one(start_revoke);
	torture_one(start_compact);
}

/* Several in one group, one allocation fails: what was answered with success, and nothing else, has happened. */
static void torture_a_group(void **state)
{
	bool done = false;

	(void) state;
	for (uint64_t nth = 1; !done; nth++) {
		struct vd_env	*env = new_env();
		struct vd_store *store = new_store(env, NULL);
		struct call	 calls[6];
		char		 expected[256] = "";
		vd_status	 called[6];
		char		 key[8];
		vd_rev		 revision = 1;

		put(store, "x", "1");
		revision = 2;
		vdi_alloc_fail_nth(nth, 1);
		for (int i = 0; i < 6; i++) {
			snprintf(key, sizeof key, "k%d", i);
			called[i] = submit_put(store, key, "v", &calls[i]);
		}
		vdi_sim_run_until_idle(env);
		done = !vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		for (int i = 0; i < 6; i++) {
			assert_int_equal(calls[i].answers, called[i] == VD_OK);
			if (called[i] != VD_OK || calls[i].status != VD_OK)
				continue;
			assert_int_equal(calls[i].revision, ++revision);
			snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "k%d=v@%d/0 ", i, (int) revision);
		}
		strcat(expected, "x=1@2/0");
		assert_string_equal(all_text(store, 0).bytes, expected);
		vd_store_close_wait(store);
		vd_env_free(env);
	}
}

/* Opening, reading and watching: an error or the right answer, and no leak. */
static void torture_open_read_and_watch(void **state)
{
	bool done = false;

	(void) state;
	for (uint64_t nth = 1; !done; nth++) {
		struct vd_env		     *env = new_env();
		struct vd_store		     *busy = busy_store(env);
		struct vd_store		     *store = NULL;
		int			      woken = 0;
		struct vd_store_watch_request request = { .key = K("k"), .range_end = K("l"), .start_revision = 2, .ready = ready, .ready_arg = &woken };
		struct vd_store_watch	     *watch = NULL;
		struct vd_store_batch	      batch;
		struct vd_kv		     *kv = NULL;
		int64_t			      live = vdi_alloc_live();
		vd_status		      status;

		vdi_alloc_fail_nth(nth, 1);
		status = vd_store_open_mvcc(env, NULL, &store, NULL);
		assert_true(status == VD_OK || status == VD_NOMEM);
		if (store)
			vd_store_close_wait(store);
		vdi_sim_run_until_idle(env);
		if (vd_store_get_wait(busy, K("k05"), &kv, NULL) == VD_OK)
			vd_kv_unref(kv);
		status = vd_store_watch_open(busy, &request, &watch, NULL);
		if (status == VD_OK) {
			status = vd_store_watch_next(watch, 100, &batch, NULL);
			if (status == VD_OK)
				assert_int_equal(batch.event_count, 40);
			else
				assert_status(vd_store_watch_next(watch, 100, &batch, NULL), VD_NOMEM);
			vd_store_watch_close(watch);
		}
		assert_true(status == VD_OK || status == VD_NOMEM);
		done = !vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_int_equal(vdi_alloc_live(), live);
		vd_store_close_wait(busy);
		vd_env_free(env);
	}
}

/* A lease that cannot be revoked for want of memory is revoked later. */
static void torture_expiry_is_tried_again(void **state)
{
	bool done = false;

	(void) state;
	for (uint64_t nth = 1; !done; nth++) {
		struct vd_env	*env = new_env();
		struct vd_store *store = busy_store(env);

		vdi_sim_advance(env, VD_SECONDS(99));
		vdi_alloc_fail_nth(nth, 1);
		vdi_sim_advance(env, VD_SECONDS(3));
		done = !vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_int_equal(status_of(store).key_count, 40);
		vd_store_close_wait(store);
		vd_env_free(env);
	}
}

/* ---- Recorded transactions ---- */

static struct vdi_replay_change change(const char *key, const char *value)
{
	struct vdi_replay_change made = { .is_delete = value == NULL };

	assert_status(vd_kv_new(K(key), value ? K(value) : VD_BYTES_NONE, &made.kv), VD_OK);
	return made;
}

static void replay(struct vd_env *env, struct vd_store *store, vd_rev revision, const struct vdi_replay_change *changes, size_t count, vd_rev expected)
{
	struct call call = { 0 };

	assert_status(vdi_mvcc_replay(store, revision, changes, count, got_done, &call), VD_OK);
	(void) vdi_sim_run_until_idle(env);
	assert_int_equal(call.answers, 1);
	assert_status(call.status, VD_OK);
	assert_int_equal(call.revision, expected);
}

static void recorded_transactions_keep_their_revisions(void **state)
{
	struct vd_env		*env = new_env();
	struct vd_store		*store = new_store(env, NULL);
	struct vdi_replay_change changes[2] = { change("a", "1"), change("b", "2") };
	struct vd_kv		*kv;

	(void) state;
	changes[0].create_rev = 4;
	changes[0].version = 7;
	replay(env, store, 10, changes, 2, 10);
	changes[0] = change("b", NULL);
	changes[1] = change("never", NULL);
	replay(env, store, 15, changes, 2, 15);
	assert_string_equal(all_text(store, 0).bytes, "a=1@10/0");
	assert_string_equal(all_text(store, 12).bytes, "a=1@10/0 b=2@10/0");
	assert_status(vd_store_get_wait(store, K("a"), &kv, NULL), VD_OK);
	assert_int_equal(kv->create_rev, 4);
	assert_int_equal(kv->version, 7);
	vd_kv_unref(kv);
	replay(env, store, 20, NULL, 0, 20);
	replay(env, store, 19, NULL, 0, 20);
	assert_int_equal(all_text(store, 0).revision, 20);
	/* Deletes of what is not there are no revision. */
	changes[0] = change("never", NULL);
	replay(env, store, 25, changes, 1, 20);
	vd_store_close_wait(store);
	vd_env_free(env);
}

static void a_recorded_transaction_that_was_passed_gets_the_next_revision(void **state)
{
	struct vd_env		*env = new_env();
	struct vd_store		*store = new_store(env, NULL);
	struct vdi_replay_change one = change("a", "1");

	(void) state;
	replay(env, store, 3, &one, 1, 3);
	put(store, "mine", "x"); /* 4, which the log has too */
	one = change("a", "2");
	replay(env, store, 4, &one, 1, 5);
	one = change("a", "3");
	replay(env, store, 9, &one, 1, 9);
	assert_string_equal(all_text(store, 0).bytes, "a=3@9/0 mine=x@4/0");
	assert_string_equal(all_text(store, 5).bytes, "a=2@5/0 mine=x@4/0");
	vd_store_close_wait(store);
	vd_env_free(env);
}

struct compaction {
	struct vdi_mvcc *mvcc;
	struct call	 call;
	bool		 has_rest; /* when it was answered, records were still to be removed */
};

static void compaction_answered(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	struct compaction *compaction = arg;

	compaction->has_rest = compaction->mvcc->compactor.first != NULL;
	got_done(&compaction->call, status, revision, error);
}

/* With physical, the answer comes when the records are gone; without, it does not wait for that. */
static void e462_a_physical_compaction_waits_for_the_removal(void **state)
{
	enum { KEYS = 128, TXNS = 100 };

	(void) state;
	for (unsigned physical = 0; physical < 2; physical++) {
		struct vd_env	 *env = new_env();
		struct vd_store	 *store = new_store(env, NULL);
		struct compaction compaction = { .mvcc = vdi_mvcc_of(store) };
		struct call	  call = { 0 };
		struct vd_op	  ops[KEYS];
		char		  keys[KEYS][8];

		for (unsigned i = 0; i < KEYS; i++) {
			(void) snprintf(keys[i], sizeof keys[i], "k%u", i);
			ops[i] = (struct vd_op) { .kind = VD_OP_PUT, .key = K(keys[i]), .value = K("v") };
		}
		for (unsigned i = 0; i < TXNS; i++) {
			struct vd_txn_request request = { .success = ops, .success_count = KEYS };

			assert_status(vd_store_txn(store, &request, got_txn, &call), VD_OK);
			(void) vdi_sim_run_until_idle(env);
			assert_status(call.status, VD_OK);
		}
		assert_status(vd_store_compact(store, call.revision, physical, compaction_answered, &compaction), VD_OK);
		(void) vdi_sim_run_until_idle(env);
		assert_int_equal(compaction.call.answers, 1);
		assert_status(compaction.call.status, VD_OK);
		assert_int_equal(compaction.has_rest, !physical);
		assert_null(compaction.mvcc->compactor.first);
		(void) vd_store_close_wait(store);
		vd_env_free(env);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_do_not_wait_for_the_writer),
		cmocka_unit_test(recorded_transactions_keep_their_revisions),
		cmocka_unit_test(a_recorded_transaction_that_was_passed_gets_the_next_revision),
		cmocka_unit_test(options_are_checked),
		cmocka_unit_test(too_many_in_flight_is_full),
		cmocka_unit_test(a_group_sees_itself_and_is_published_together),
		cmocka_unit_test(reads_of_revisions_of_the_same_group),
		cmocka_unit_test(an_expired_read_names_the_revisions),
		cmocka_unit_test(a_read_that_compaction_overtakes_is_expired),
		cmocka_unit_test(a_chunk_of_history_is_filled_before_the_next),
		cmocka_unit_test(outstanding_calls_are_answered_at_close),
		cmocka_unit_test(history_compacts_behind_its_window),
		cmocka_unit_test(history_is_bounded_by_bytes),
		cmocka_unit_test(history_without_a_window_stays),
		cmocka_unit_test(a_long_search_goes_in_steps),
		cmocka_unit_test(e350_progress_goes_on_after_an_event),
		cmocka_unit_test(what_is_of_another_kind_is_passed_over_at_once),
		cmocka_unit_test(an_idle_watch_pins_nothing),
		cmocka_unit_test(ready_is_not_called_after_close),
		cmocka_unit_test(a_put_keeps_what_it_ignores),
		cmocka_unit_test(e340_a_tick_tells_progress_from_the_start_on),
		cmocka_unit_test(metrics_move),
		cmocka_unit_test(e466_at_the_quota_deletes_go_on),
		cmocka_unit_test(torture_every_write),
		cmocka_unit_test(torture_a_group),
		cmocka_unit_test(torture_open_read_and_watch),
		cmocka_unit_test(torture_expiry_is_tried_again),
		cmocka_unit_test(e462_a_physical_compaction_waits_for_the_removal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
