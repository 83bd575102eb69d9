/* Compaction by itself, under the simulator's clock. */
#include "auto_compaction.h"

#include "actor_sim.h"
#include "vdtest.h"

struct compaction_test {
	struct vd_env		   *env;
	struct vd_store		   *store;
	struct vdi_auto_compaction *compaction;
};

static void open_store(struct compaction_test *test)
{
	struct vd_mvcc_options mvcc = VD_MVCC_OPTIONS_INIT;

	mvcc.history_window = (vd_dur) { 0 };
	assert_status(vdi_env_new_sim(3, NULL, NULL, &test->env), VD_OK);
	assert_status(vd_store_open_mvcc(test->env, &mvcc, &test->store, NULL), VD_OK);
}

static void start_compaction(struct compaction_test *test, struct vdi_auto_compaction_options options)
{
	options.store = test->store;
	assert_status(vdi_auto_compaction_new(test->env, &options, &test->compaction), VD_OK);
	(void) vdi_sim_run_until_idle(test->env);
}

static void start(struct compaction_test *test, struct vdi_auto_compaction_options options)
{
	open_store(test);
	start_compaction(test, options);
}

static void stop(struct compaction_test *test)
{
	assert_null(vdi_auto_compaction_free(test->compaction));
	assert_null(vd_store_close_wait(test->store));
	assert_null(vd_env_free(test->env));
	assert_int_equal(vdi_alloc_live(), 0);
}

static void put(struct compaction_test *test, int count)
{
	for (int i = 0; i < count; i++)
		assert_status(vd_store_put_wait(test->store, vd_bytes_of("k"), vd_bytes_of("v"), NULL, NULL),
			      VD_OK);
}

static vd_rev compacted(struct compaction_test *test)
{
	struct vd_store_status status;

	(void) vdi_sim_run_until_idle(test->env);
	assert_status(vd_store_status_get(test->store, &status), VD_OK);
	return status.compacted;
}

static void e463_periodic_keeps_what_is_younger(void **state)
{
	struct compaction_test test;

	(void) state;
	start(&test, (struct vdi_auto_compaction_options) { .period = VD_SECONDS(600) });
	/* One write a minute: 2 at the first minute, ... */
	for (int minute = 1; minute <= 10; minute++) {
		vdi_sim_advance(test.env, VD_SECONDS(60));
		put(&test, 1);
		assert_int_equal(compacted(&test), minute < 10 ? -1 : compacted(&test));
	}
	vdi_sim_advance(test.env, VD_SECONDS(10 * 60));
	assert_true(compacted(&test) >= 1 && compacted(&test) <= 11);
	put(&test, 5);
	vdi_sim_advance(test.env, VD_SECONDS(9 * 60));
	assert_true(compacted(&test) <= 11); /* younger than ten minutes */
	vdi_sim_advance(test.env, VD_SECONDS(21 * 60));
	assert_int_equal(compacted(&test), 16);
	stop(&test);
}

static void e463_by_revisions_every_five_minutes(void **state)
{
	struct compaction_test test;

	(void) state;
	start(&test, (struct vdi_auto_compaction_options) { .revisions = 10 });
	put(&test, 5);
	vdi_sim_advance(test.env, VD_SECONDS(301));
	assert_int_equal(compacted(&test), -1);
	put(&test, 20);
	assert_int_equal(compacted(&test), -1);
	vdi_sim_advance(test.env, VD_SECONDS(300));
	assert_int_equal(compacted(&test), 16);
	vdi_sim_advance(test.env, VD_SECONDS(900));
	assert_int_equal(compacted(&test), 16);
	stop(&test);
}

static void e463_by_revisions_as_often_as_told(void **state)
{
	struct compaction_test test;

	(void) state;
	start(&test, (struct vdi_auto_compaction_options) { .revisions = 10, .interval = VD_SECONDS(2) });
	put(&test, 20);
	vdi_sim_advance(test.env, VD_SECONDS(1));
	assert_int_equal(compacted(&test), -1);
	vdi_sim_advance(test.env, VD_SECONDS(1));
	assert_int_equal(compacted(&test), 11);
	put(&test, 7);
	assert_int_equal(compacted(&test), 11);
	vdi_sim_advance(test.env, VD_SECONDS(2));
	assert_int_equal(compacted(&test), 18);
	stop(&test);
}

/* A server that starts on a long history compacts after the first interval or period, not at once. */
static void e463_a_history_of_before_the_start_stays_for_an_interval(void **state)
{
	struct compaction_test test;

	(void) state;
	for (int by_period = 0; by_period < 2; by_period++) {
		open_store(&test);
		put(&test, 30);
		vdi_sim_advance(test.env, VD_SECONDS(3600));
		start_compaction(&test,
				 by_period ?
					 (struct vdi_auto_compaction_options) { .period = VD_SECONDS(300) } :
					 (struct vdi_auto_compaction_options) { .revisions = 10 });
		assert_int_equal(compacted(&test), -1);
		vdi_sim_advance(test.env, VD_SECONDS(299));
		assert_int_equal(compacted(&test), -1);
		vdi_sim_advance(test.env, VD_SECONDS(2));
		assert_int_equal(compacted(&test), by_period ? 31 : 21);
		stop(&test);
	}
}

/* As many revisions as are kept, or fewer: nothing is compacted, not even at revision 0. */
static void e463_a_short_history_is_kept(void **state)
{
	struct compaction_test test;

	(void) state;
	start(&test, (struct vdi_auto_compaction_options) { .revisions = 10, .interval = VD_SECONDS(2) });
	for (int revision = 2; revision <= 10; revision++) {
		put(&test, 1);
		vdi_sim_advance(test.env, VD_SECONDS(2));
		assert_int_equal(compacted(&test), -1);
	}
	put(&test, 1);
	vdi_sim_advance(test.env, VD_SECONDS(2));
	assert_int_equal(compacted(&test), 1);
	stop(&test);
}

/* A compaction that cannot begin for memory is one of many. */
static void e463_a_compaction_without_memory_is_repeated(void **state)
{
	bool has_failed = true;

	(void) state;
	for (uint64_t nth = 1; has_failed; nth++) {
		struct compaction_test test;

		start(&test,
		      (struct vdi_auto_compaction_options) { .revisions = 10, .interval = VD_SECONDS(2) });
		put(&test, 20);
		vdi_alloc_fail_nth(nth, 1);
		vdi_sim_advance(test.env, VD_SECONDS(2));
		has_failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		vdi_sim_advance(test.env, VD_SECONDS(4));
		assert_int_equal(compacted(&test), 11);
		stop(&test);
		assert_true(nth < 50);
	}
}

static void e463_long_periods_are_sampled_less_often(void **state)
{
	struct compaction_test test;

	(void) state;
	start(&test,
	      (struct vdi_auto_compaction_options) { .period = VD_SECONDS((int64_t) 3600 * 24 * 365) });
	put(&test, 3);
	vdi_sim_advance(test.env, VD_SECONDS(3600 * 48));
	assert_int_equal(compacted(&test), -1);
	stop(&test);
}

/* One write every half hour. First after two hours, then every hour: to the revision of two hours ago. */
static void e463_long_periods_compact_every_hour(void **state)
{
	struct compaction_test test;

	(void) state;
	start(&test, (struct vdi_auto_compaction_options) { .period = VD_SECONDS(2 * 3600) });
	vdi_sim_advance(test.env, VD_SECONDS(60));
	for (int half = 1; half <= 12; half++) {
		put(&test, 1); /* revision half + 1, one minute after half - 1 half hours */
		vdi_sim_advance(test.env, VD_SECONDS(1800));
		assert_int_equal(compacted(&test), half < 4 ? -1 : half / 2 * 2 - 3);
	}
	stop(&test);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e463_periodic_keeps_what_is_younger),
		cmocka_unit_test(e463_by_revisions_every_five_minutes),
		cmocka_unit_test(e463_by_revisions_as_often_as_told),
		cmocka_unit_test(e463_long_periods_compact_every_hour),
		cmocka_unit_test(e463_a_short_history_is_kept),
		cmocka_unit_test(e463_a_compaction_without_memory_is_repeated),
		cmocka_unit_test(e463_a_history_of_before_the_start_stays_for_an_interval),
		cmocka_unit_test(e463_long_periods_are_sampled_less_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
