/* Watches of the embedded store: progress, steps of a long search, what they pin, when they are woken. */
#include <vedette/store.h>

#include "actor_sim.h"
#include "env.h"
#include "mvcc_fixture.h"
#include "mvcc_store.h"
#include "vdtest.h"

/* An event stands for progress in its own period; from the next one on the watch is told again.
 * rules: E-350 */
static void e350_progress_goes_on_after_an_event(void **state)
{
	struct vd_mvcc_options	      options = VD_MVCC_OPTIONS_INIT;
	struct vd_env		     *env = mvcc_env_new();
	struct vd_store		     *store;
	int			      woken = 0;
	struct vd_store_watch_request request = {
		.key = K("a"), .progress = true, .ready = mvcc_count_ready, .ready_arg = &woken
	};
	struct vd_store_watch *watch;
	struct vd_store_batch  batch;

	(void) state;
	options.progress_interval = VD_SECONDS(10);
	store = mvcc_store_new(env, &options);
	assert_status(vd_store_watch_open(store, &request, &watch, NULL), VD_OK);
	assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_AGAIN);
	for (int round = 0; round < 3; round++) {
		vd_rev revision;

		mvcc_put(store, "a", "1");
		revision = mvcc_status_of(store).current;
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

/* No progress is told in the period of an event, only in the next one. rules: E-350 */
static void e350_no_progress_beside_an_event(void **state)
{
	struct vd_mvcc_options	      options = VD_MVCC_OPTIONS_INIT;
	struct vd_env		     *env = mvcc_env_new();
	struct vd_store		     *store;
	int			      woken = 0;
	struct vd_store_watch_request request = {
		.key = K("a"), .progress = true, .ready = mvcc_count_ready, .ready_arg = &woken
	};
	struct vd_store_watch *watch;
	struct vd_store_batch  batch;

	(void) state;
	options.progress_interval = VD_SECONDS(10);
	store = mvcc_store_new(env, &options);
	assert_status(vd_store_watch_open(store, &request, &watch, NULL), VD_OK);
	assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_AGAIN);
	mvcc_put(store, "a", "1");
	assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_OK);
	assert_int_equal(batch.event_count, 1);
	assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_AGAIN);
	vdi_sim_advance(env, VD_SECONDS(11));
	assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_AGAIN);
	vdi_sim_advance(env, VD_SECONDS(10));
	assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_OK);
	assert_int_equal(batch.event_count, 0);
	vd_store_watch_close(watch);
	vd_store_close_wait(store);
	vd_env_free(env);
}

/* A parked watch holds no history: what compaction drops is freed at once. */
/* Who looks for one key in a long history lets others run in between, is called again, and misses nothing. */
static void a_long_search_goes_in_steps(void **state)
{
	struct vd_env		     *env = mvcc_env_new();
	struct vd_store		     *store = mvcc_store_new(env, NULL);
	int			      woken = 0;
	struct vd_store_watch_request request = {
		.key = K("w"), .start_revision = 2, .ready = mvcc_count_ready, .ready_arg = &woken
	};
	struct vd_store_watch *watch;
	struct vd_store_batch  batch;
	struct vd_op	       ops[100];
	struct vd_txn_request  txn = { .success = ops, .success_count = 100 };
	struct mvcc_call       call = { 0 };
	char		       keys[100][8];
	vd_rev		       found;
	vd_status	       status;
	int		       steps = 0;

	(void) state;
	for (int i = 0; i < 100; i++) {
		snprintf(keys[i], sizeof keys[i], "%c%d", i ? 'k' : 'z',
			 i); /* nothing in common, so nothing is passed over at once */
		ops[i] = (struct vd_op) { .kind = VD_OP_PUT, .key = K(keys[i]) };
	}
	for (int i = 0; i < 2 * VDI_WATCH_SCAN_MAX / 100 + 2; i++) {
		assert_status(vd_store_txn(store, &txn, mvcc_got_txn, &call), VD_OK);
		vdi_sim_run_until_idle(env);
	}
	mvcc_put(store, "w", "1");
	found = mvcc_status_of(store).current;
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
	struct vd_env		     *env = mvcc_env_new();
	struct vd_store		     *store = mvcc_store_new(env, NULL);
	int			      woken[2] = { 0 };
	struct vd_store_watch_request request = { .key = K("/w/"),
						  .range_end = K("/w0"),
						  .start_revision = 2,
						  .ready = mvcc_count_ready,
						  .ready_arg = &woken[0] };
	struct vd_store_watch	     *watch, *late;
	struct vd_store_batch	      batch;
	char			      key[16];

	(void) state;
	for (int i = 0; i < 2 * VDI_WATCH_SCAN_MAX; i++) {
		snprintf(key, sizeof key, "/pods/%d", i % 50);
		mvcc_put(store, key, "1");
	}
	assert_status(vd_store_watch_open(store, &request, &watch, NULL), VD_OK);
	assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_AGAIN);
	assert_int_equal(woken[0], 0); /* it is not to come again: it has seen everything */
	mvcc_put(store, "/w/1", "1");
	mvcc_put(store, "/pods/1", "1");
	mvcc_put(store, "/w/2", "1");
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
	struct vd_env		     *env = mvcc_env_new();
	struct vd_store		     *store = mvcc_store_new(env, NULL);
	int			      woken = 0;
	struct vd_store_watch_request request = {
		.key = K("w"), .start_revision = 2, .ready = mvcc_count_ready, .ready_arg = &woken
	};
	struct vd_store_watch *watch;
	struct vd_store_batch  batch;
	struct mvcc_call       call = { 0 };
	int64_t		       live;

	(void) state;
	mvcc_put(store, "a", "1");
	live = vdi_alloc_live();
	assert_status(vd_store_watch_open(store, &request, &watch, NULL), VD_OK);
	assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_AGAIN);
	for (int i = 0; i < 5000; i++)
		mvcc_put(store, "a", "1");
	assert_true(vdi_alloc_live() > live + 5000);
	for (int i = 0; i < 2; i++) { /* the second one drops the chunk that was still open */
		mvcc_put(store, "a", "1");
		memset(&call, 0, sizeof call);
		assert_status(
			vd_store_compact(store, mvcc_status_of(store).current, true, mvcc_got_done, &call),
			VD_OK);
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
	struct vd_env		     *env = mvcc_env_new();
	struct vd_store		     *store = mvcc_store_new(env, NULL);
	int			      woken = 0;
	struct vd_store_watch_request request = { .key = K("a"),
						  .ready = mvcc_count_ready,
						  .ready_arg = &woken };
	struct vd_store_watch	     *watch;
	struct vd_store_batch	      batch;
	struct mvcc_call	      call;

	(void) state;
	assert_status(vd_store_watch_open(store, &request, &watch, NULL), VD_OK);
	assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_AGAIN);
	assert_status(mvcc_submit_put(store, "a", "1", &call), VD_OK);
	vd_store_watch_close(watch);
	vdi_sim_run_until_idle(env);
	assert_int_equal(woken, 0);
	vd_store_close_wait(store);
	vd_env_free(env);
}

/* Each revision a watch could begin at, up to the one after the newest: progress is told from the first tick
 * on at which it is not below the start. */
static void e340_a_tick_tells_progress_from_the_start_on(void **state)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;

	(void) state;
	options.progress_interval = VD_SECONDS(10);
	for (vd_rev start = 2; start <= 5; start++) {
		struct vd_env		     *env = mvcc_env_new();
		struct vd_store		     *store = mvcc_store_new(env, &options);
		int			      woken = 0;
		struct vd_store_watch_request request = { .key = K("b"),
							  .start_revision = start,
							  .progress = true,
							  .ready = mvcc_count_ready,
							  .ready_arg = &woken };
		struct vd_store_watch	     *watch;
		struct vd_store_batch	      batch;

		for (int i = 0; i < 3; i++)
			mvcc_put(store, "a", "1"); /* 2 to 4 */
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

/* A reader that sees a revision finds its events at every watch that has seen the ones before, wherever the
 * writer is suspended meanwhile. */
static void e328_who_reads_a_revision_finds_its_events(void **state)
{
	unsigned early = 0;

	(void) state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct vd_env		     *env;
		struct vd_store		     *store;
		int			      woken = 0;
		struct vd_store_watch_request request = { .key = K("a"),
							  .ready = mvcc_count_ready,
							  .ready_arg = &woken };
		struct vd_store_watch	     *watch;
		struct vd_store_batch	      batch;
		struct mvcc_call	      call;
		vd_rev			      seen = 1;

		assert_status(vdi_env_new_sim(seed, NULL, NULL, &env), VD_OK);
		assert_status(vdi_sim_set_preemptions(env, 4), VD_OK);
		store = mvcc_store_new(env, NULL);
		assert_status(vd_store_watch_open(store, &request, &watch, NULL), VD_OK);
		assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_AGAIN);
		for (vd_rev revision = 2; revision < 10; revision++) {
			assert_status(mvcc_submit_put(store, "a", "1", &call), VD_OK);
			while (seen < revision) {
				(void) vdi_sim_step(env);
				if (mvcc_all_text(store, 0).revision == seen) {
					assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_AGAIN);
					continue;
				}
				early += call.answers == 0;
				assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_OK);
				assert_int_equal(batch.event_count, 1);
				assert_int_equal(batch.revision, revision);
				seen = revision;
				assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_AGAIN);
			}
			vdi_sim_run_until_idle(env);
			assert_status(call.status, VD_OK);
		}
		vd_store_watch_close(watch);
		vd_store_close_wait(store);
		vd_env_free(env);
	}
	assert_true(early > 20); /* read before the write was answered */
}

/* A write that is published while a watch looks for events is not lost: the watch gets it at once, or is
 * woken. */
static void e328_a_write_meets_a_watch_that_begins_to_wait(void **state)
{
	(void) state;
	for (uint64_t seed = 0; seed < 300; seed++) {
		struct vd_env		     *env;
		struct vd_store		     *store;
		int			      woken = 1;
		struct vd_store_watch_request request = { .key = K("a"),
							  .ready = mvcc_count_ready,
							  .ready_arg = &woken };
		struct vd_store_watch	     *watch;
		struct mvcc_call	      call;
		vd_rev			      seen = 1;

		assert_status(vdi_env_new_sim(seed, NULL, NULL, &env), VD_OK);
		assert_status(vdi_sim_set_preemptions(env, 6), VD_OK);
		store = mvcc_store_new(env, NULL);
		assert_status(vd_store_watch_open(store, &request, &watch, NULL), VD_OK);
		for (vd_rev revision = 2; revision < 12; revision++) {
			assert_status(mvcc_submit_put(store, "a", "1", &call), VD_OK);
			for (uint64_t steps = vd_env_random_below(env, 3); steps; steps--)
				(void) vdi_sim_step(env);
			for (bool is_idle = false; seen < revision;) {
				struct vd_store_batch batch;
				vd_status	      status;

				if (woken == 0) {
					assert_false(is_idle);
					vdi_sim_run_until_idle(env);
					is_idle = true;
					continue;
				}
				woken = 0;
				is_idle = false;
				(void) vdi_sim_set_atomic(env, false);
				status = vd_store_watch_next(watch, 1, &batch, NULL);
				(void) vdi_sim_set_atomic(env, true);
				if (status == VD_AGAIN)
					continue;
				assert_status(status, VD_OK);
				seen += (vd_rev) batch.event_count;
				assert_int_equal(batch.revision, seen);
				woken = 1; /* until it says that there is nothing */
			}
		}
		vdi_sim_run_until_idle(env);
		vd_store_watch_close(watch);
		vd_store_close_wait(store);
		vd_env_free(env);
	}
}

static void count_closed(void *arg)
{
	++*(int *) arg;
}

/* From the call on, before the store has ended. */
static void e358_a_closed_store_opens_no_watch(void **state)
{
	struct vd_env		     *env = mvcc_env_new();
	struct vd_store		     *store = mvcc_store_new(env, NULL);
	int			      woken = 0;
	int			      ended = 0;
	struct vd_store_watch_request request = { .key = K("a"),
						  .ready = mvcc_count_ready,
						  .ready_arg = &woken };
	struct vd_store_watch	     *watch;
	struct vd_store_watch	     *refused = NULL;
	struct vd_store_batch	      batch;
	struct vd_error		      error = { 0 };

	(void) state;
	assert_status(vd_store_watch_open(store, &request, &watch, NULL), VD_OK);
	assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_AGAIN);
	vd_store_close(store, count_closed, &ended);
	assert_int_equal(ended, 0);
	assert_status(vd_store_watch_open(store, &request, &refused, &error), VD_CLOSED);
	assert_status(error.code, VD_CLOSED);
	assert_null(refused);
	vdi_sim_run_until_idle(env);
	assert_int_equal(ended, 1);
	assert_int_equal(woken, 1);
	assert_status(vd_store_watch_progress(watch), VD_CLOSED);
	assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_CLOSED);
	vd_store_watch_close(watch);
	assert_int_equal(woken, 1);
	vd_env_free(env);
}

/* Ticks are for watches with progress that are open, and the writer has no timer without one. */
static void only_an_open_watch_with_progress_wants_ticks(void **state)
{
	struct vd_env		     *env = mvcc_env_new();
	struct vd_store		     *store = mvcc_store_new(env, NULL);
	struct vdi_watchable	     *watchable = &vdi_mvcc_of(store)->watchable;
	int			      woken = 0;
	struct vd_store_watch_request request = { .key = K("a"),
						  .ready = mvcc_count_ready,
						  .ready_arg = &woken };
	struct vd_store_watch	     *watches[3];

	(void) state;
	for (int i = 0; i < 3; i++) {
		request.progress = i > 0;
		assert_status(vd_store_watch_open(store, &request, &watches[i], NULL), VD_OK);
		assert_int_equal(vdi_watchable_wants_ticks(watchable), i > 0);
	}
	vd_store_watch_close(watches[1]);
	assert_true(vdi_watchable_wants_ticks(watchable));
	vd_store_watch_close(watches[2]);
	assert_false(vdi_watchable_wants_ticks(watchable));
	vd_store_watch_close(watches[0]);
	assert_false(vdi_watchable_wants_ticks(watchable));
	vd_store_close_wait(store);
	vd_env_free(env);
}

/* A progress request for a watch of a later revision waits in a list, which the watch leaves when it is
 * closed. */
static void a_closed_watch_does_not_wait_for_its_start(void **state)
{
	struct vd_env		     *env = mvcc_env_new();
	struct vd_store		     *store = mvcc_store_new(env, NULL);
	int			      woken[2] = { 0 };
	struct vd_store_watch_request request = { .key = K("b"),
						  .start_revision = 4,
						  .ready = mvcc_count_ready };
	struct vd_store_watch	     *watches[2];
	struct vd_store_batch	      batch;

	(void) state;
	for (int i = 0; i < 2; i++) {
		request.ready_arg = &woken[i];
		assert_status(vd_store_watch_open(store, &request, &watches[i], NULL), VD_OK);
		assert_status(vd_store_watch_next(watches[i], 10, &batch, NULL), VD_AGAIN);
		assert_status(vd_store_watch_progress(watches[i]), VD_OK);
	}
	vd_store_watch_close(watches[1]);
	for (vd_rev revision = 2; revision <= 4; revision++) {
		assert_int_equal(woken[0], 0);
		mvcc_put(store, "a", "1");
	}
	assert_int_equal(woken[0], 1);
	assert_int_equal(woken[1], 0);
	assert_status(vd_store_watch_next(watches[0], 10, &batch, NULL), VD_OK);
	assert_int_equal(batch.revision, 4);
	assert_int_equal(batch.event_count, 0);
	vd_store_watch_close(watches[0]);
	vd_store_close_wait(store);
	vd_env_free(env);
}

/* A watch that ended because of a compaction keeps its reason, also when the store is closed afterwards. The
 * error has the three revisions that a client needs. */
static void the_first_reason_of_an_end_is_kept(void **state)
{
	struct vd_env		     *env = mvcc_env_new();
	struct vd_store		     *store = mvcc_store_new(env, NULL);
	int			      woken = 0;
	int			      ended = 0;
	struct vd_store_watch_request request = {
		.key = K("a"), .start_revision = 2, .ready = mvcc_count_ready, .ready_arg = &woken
	};
	struct vd_store_watch *watch;
	struct vd_store_batch  batch;
	struct vd_error	       error = { 0 };
	struct mvcc_call       call = { 0 };

	(void) state;
	for (int i = 0; i < 4; i++)
		mvcc_put(store, "a", "1");
	assert_status(vd_store_watch_open(store, &request, &watch, NULL), VD_OK);
	assert_status(vd_store_compact(store, 4, true, mvcc_got_done, &call), VD_OK);
	vdi_sim_run_until_idle(env);
	assert_status(call.status, VD_OK);
	assert_status(vd_store_watch_next(watch, 10, &batch, &error), VD_EXPIRED);
	assert_string_equal(error.message, "required revision 2 has been compacted");
	assert_int_equal(error.requested, 2);
	assert_int_equal(error.compacted, 4);
	assert_int_equal(error.current, 5);
	assert_status(vd_store_watch_progress(watch), VD_EXPIRED);
	vd_store_close(store, count_closed, &ended);
	vdi_sim_run_until_idle(env);
	assert_int_equal(ended, 1);
	assert_int_equal(woken, 0);
	assert_status(vd_store_watch_progress(watch), VD_EXPIRED);
	assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_EXPIRED);
	vd_store_watch_close(watch);
	vd_env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_search_goes_in_steps),
		cmocka_unit_test(e350_progress_goes_on_after_an_event),
		cmocka_unit_test(e350_no_progress_beside_an_event),
		cmocka_unit_test(what_is_of_another_kind_is_passed_over_at_once),
		cmocka_unit_test(an_idle_watch_pins_nothing),
		cmocka_unit_test(ready_is_not_called_after_close),
		cmocka_unit_test(e328_who_reads_a_revision_finds_its_events),
		cmocka_unit_test(e328_a_write_meets_a_watch_that_begins_to_wait),
		cmocka_unit_test(e358_a_closed_store_opens_no_watch),
		cmocka_unit_test(only_an_open_watch_with_progress_wants_ticks),
		cmocka_unit_test(a_closed_watch_does_not_wait_for_its_start),
		cmocka_unit_test(the_first_reason_of_an_end_is_kept),
		cmocka_unit_test(e340_a_tick_tells_progress_from_the_start_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
