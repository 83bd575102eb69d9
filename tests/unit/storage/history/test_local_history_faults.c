/* A local history whose disk is full or fails, and that has bad luck: it is dropped where it is not whole,
 * and what is told is true. */
#include "actor_sim.h"
#include "disk_sim.h"
#include "env.h"
#include "local_history.h"
#include "local_store.h"
#include "local_world.h"
#include "rand.h"
#include "store_chaos.h"

/* ---- Disks ---- */

static int64_t metric(struct local_world *w, enum vdi_metric_id id)
{
	const char	  *values[4] = { 0 };
	struct vdi_metric *instance;
	struct vdi_buffer  buffer;
	int64_t		   value;

	vdi_buffer_init(&buffer, 16 << 20);
	assert_status(vdi_metrics_render(vdi_env_metrics(w->env), &buffer), VD_OK);
	vdi_buffer_fini(&buffer);
	assert_status(vdi_metric_get(vdi_env_metrics(w->env), id, values, &instance), VD_OK);
	value = vdi_metric_value(instance);
	vdi_metric_release(instance);
	return value;
}

static void a_full_disk_is_said_once_and_loses_nothing(void **state)
{
	struct local_world w;
	vd_rev		   last;

	local_world_init(&w, 8);
	local_start(&w);
	local_put_some(&w, 20);
	assert_int_equal(metric(&w, VDI_METRIC_LOCAL_HISTORY_RECORDING), 1);
	vdi_disk_sim_set_capacity(w.disk, 0);
	for (unsigned i = 0; i < 20; i++) {
		local_put_some(&w, 5);
		vdi_sim_advance(w.env, VD_SECONDS(10));
	}
	assert_int_equal(local_log_lines(&w, "W "), 1);
	assert_int_equal(local_log_lines(&w, "cannot be written, will retry; all else continues: "), 1);
	assert_int_equal(metric(&w, VDI_METRIC_LOCAL_HISTORY_RECORDING), 0);
	assert_true(metric(&w, VDI_METRIC_LOCAL_HISTORY_FAILURES_TOTAL) > 3);
	assert_int_equal(metric(&w, VDI_METRIC_LOCAL_HISTORY_DROPS_TOTAL), 0);
	vdi_disk_sim_set_capacity(w.disk, INT64_MAX);
	vdi_sim_advance(w.env, VD_SECONDS(60));
	assert_int_equal(local_log_lines(&w, "is written again"), 1);
	assert_int_equal(metric(&w, VDI_METRIC_LOCAL_HISTORY_RECORDING), 1);
	last = local_put_some(&w, 5);
	local_stop(&w);
	local_compact(&w, last);
	local_start(&w);
	assert_true(local_assert_watch(&w, "/registry/", 1) > 80);
	/* Full when it starts. */
	local_stop(&w);
	vdi_disk_sim_set_capacity(w.disk, 0);
	local_start(&w);
	last = local_put_some(&w, 5);
	assert_int_equal(local_log_lines(&w, "W "), 1);
	local_stop(&w);
	local_world_fini(&w);
}

/* It fell so far behind that etcd has compacted. */
static void a_disk_that_is_full_for_too_long_costs_the_history(void **state)
{
	struct local_world w;
	vd_rev		   at, last;

	local_world_init(&w, 8);
	local_start(&w);
	local_put_some(&w, 20);
	vdi_disk_sim_set_capacity(w.disk, 0);
	at = local_put_some(&w, 20);
	chaos_cut(w.chaos);
	vdi_sim_advance(w.env, VD_SECONDS(3));
	local_compact(&w, at);
	vdi_disk_sim_set_capacity(w.disk, INT64_MAX);
	vdi_sim_advance(w.env, VD_SECONDS(120));
	last = local_put_some(&w, 5);
	local_stop(&w);
	local_compact(&w, last);
	local_start(&w);
	/* What was heard before the watch broke could be written after all, or the history begins again where
	 * the store's does. */
	assert_true(local_status_of(&w).history >= 1);
	(void) local_assert_watch(&w, "/registry/", local_status_of(&w).history);
	local_world_fini(&w);
}

/* The recorder hears of all of it at once. */
static void a_burst_stays_within_the_bytes(void **state)
{
	struct local_world w;

	local_world_init(&w, 15);
	w.bytes = 128 << 10;
	for (unsigned i = 0; i < 3; i++)
		(void) local_put_some(&w, 1000);
	local_start(&w);
	vdi_sim_advance(w.env, VD_SECONDS(1));
	assert_int_equal(local_status_of(&w).kept, metric(&w, VDI_METRIC_LOCAL_HISTORY_OLDEST_REVISION));
	assert_true(local_status_of(&w).kept > 1000);
	assert_in_range(metric(&w, VDI_METRIC_LOCAL_HISTORY_BYTES), w.bytes / 2,
			w.bytes + w.bytes / VDI_HISTORY_SEGMENTS + 8192);
	local_stop(&w);
	local_start(&w);
	assert_true(local_status_of(&w).history > 1);
	assert_true(local_assert_watch(&w, "/registry/", local_status_of(&w).history) > 100);
	local_world_fini(&w);
}

static void a_disk_that_fails_begins_a_new_history(void **state)
{
	for (uint64_t nth = 1; nth < 12; nth++) {
		struct local_world w;
		vd_rev		   last;

		local_world_init(&w, nth);
		local_start(&w);
		local_put_some(&w, 20);
		vdi_disk_sim_fail_nth(w.disk, nth, VDI_DISK_SIM_IO);
		for (unsigned i = 0; i < 8; i++) {
			local_put_some(&w, 5);
			vdi_sim_advance(w.env, VD_SECONDS(6));
		}
		assert_true(vdi_disk_sim_failed(w.disk));
		assert_int_equal(local_log_lines(&w, "W "), 1);
		assert_int_equal(local_log_lines(&w, "starts over, recorded changes are dropped: "), 1);
		vdi_sim_advance(w.env, VD_SECONDS(60));
		assert_int_equal(local_log_lines(&w, "is written again"), 1);
		/* The caches forget nothing because of it. */
		assert_int_equal(local_status_of(&w).kept, 1);
		assert_true(metric(&w, VDI_METRIC_LOCAL_HISTORY_OLDEST_REVISION) > 1);
		last = local_put_some(&w, 20);
		local_stop(&w);
		local_compact(&w, last);
		local_start(&w);
		assert_true(local_status_of(&w).history > 1);
		(void) local_assert_watch(&w, "/registry/", local_status_of(&w).history);
		local_world_fini(&w);
	}
}

static void bit_rot_is_said_and_not_told(void **state)
{
	struct local_world w;
	int64_t		   size;

	local_world_init(&w, 9);
	w.bytes = 128 << 10;
	local_start(&w);
	for (unsigned i = 0; i < 10; i++)
		local_put_some(&w, 60);
	vdi_sim_advance(w.env, VD_SECONDS(10));
	local_stop(&w);
	assert_non_null(vdi_disk_sim_content(w.disk, "history-0000000000000002.vdh", &size));
	vdi_disk_sim_flip(w.disk, "history-0000000000000002.vdh", size / 2, 1);
	local_start(&w);
	assert_int_equal(
		local_log_lines(&w, "W a part of the local history in " LOCAL_DIRECTORY " is lost: "), 1);
	assert_true(local_status_of(&w).history > 1);
	assert_true(local_assert_watch(&w, "/registry/", local_status_of(&w).history) > 10);
	local_world_fini(&w);
}

static void one_directory_serves_one_server(void **state)
{
	struct local_world		 w;
	struct vd_store			*second;
	struct vd_error			 error = { 0 };
	struct vdi_local_history_options options = { .data_dir = LOCAL_DIRECTORY, .prefix = "/registry/" };

	local_world_init(&w, 10);
	local_start(&w);
	assert_status(vdi_local_history_open(w.env, w.front, &options, &second, &error), VD_LOCKED);
	local_put_some(&w, 3);
	local_world_fini(&w);
}

static void a_directory_that_cannot_be_made_is_an_error(void **state)
{
	struct local_world		 w;
	struct vd_error			 error = { 0 };
	struct vdi_local_history_options options = { .data_dir = "/proc/vedette-history",
						     .prefix = "/registry/" };

	local_world_init(&w, 10);
	vdi_env_set_disk(w.env, NULL);
	assert_int_not_equal(vdi_local_history_open(w.env, w.front, &options, &w.store, &error), VD_OK);
	assert_non_null(strstr(error.message, "/proc/vedette-history"));
	w.store = NULL;
	vdi_env_set_disk(w.env, w.disk);
	local_world_fini(&w);
}

static void a_store_that_does_not_answer_is_asked_again(void **state)
{
	struct chaos_options refusing = { .refuse = 1000 }, sometimes = { .refuse = 500 };
	struct local_world   w;
	struct vd_error	     error = { 0 };

	local_world_init(&w, 11);
	local_start(&w);
	local_put_some(&w, 10);
	local_stop(&w);
	chaos_set(w.chaos, &refusing);
	assert_status(local_try_start(&w, &error), VD_UNAVAILABLE);
	chaos_set(w.chaos, &sometimes);
	local_start(&w);
	assert_int_equal(local_status_of(&w).history, 1);
	local_world_fini(&w);
}

/* The start waits for the comparison with the store, however late its answer comes. */
static void a_slow_answer_is_waited_for(void **state)
{
	struct chaos_options slow = { .delay = 1000, .delay_max = VD_SECONDS(1) }, calm = { 0 };

	for (int is_same = 0; is_same < 2; is_same++) {
		struct local_world w;
		struct vd_store	  *restored;
		char		   key[40];
		vd_rev		   revision = 0;

		local_world_init(&w, 12);
		restored = local_mvcc_new(&w);
		local_start(&w);
		for (unsigned i = 0; i < 20; i++) {
			snprintf(key, sizeof key, "/registry/pods/ns/p%02u", i % 10);
			local_put(&w, key, "{}");
			assert_status(
				vd_store_put_wait(restored, K(key), K("{\"other\":1}"), &revision, NULL),
				VD_OK);
		}
		vdi_sim_advance(w.env, VD_SECONDS(2));
		local_stop(&w);
		if (!is_same)
			chaos_set_inner(w.chaos, restored);
		chaos_set(w.chaos, &slow);
		local_start(&w);
		assert_int_equal(local_log_lines(&w, "it was restored, or is another cluster"), !is_same);
		assert_int_equal(local_status_of(&w).history, is_same);
		chaos_set(w.chaos, &calm);
		local_stop(&w);
		chaos_set_inner(w.chaos, w.mvcc);
		vd_store_close_wait(restored);
		local_world_fini(&w);
	}
}

/* ---- Bad luck ---- */

static void the_truth_survives_bad_luck(void **state)
{
	uint64_t kept = 0, dropped = 0, cuts = 0;

	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct local_world w;

		local_world_init(&w, seed);
		w.bytes = 32 << 10;
		local_start(&w);
		for (unsigned round = 0; round < 10; round++) {
			struct chaos_options rough = { .delay = 100,
						       .delay_max = VD_MS(300),
						       .cut = 30,
						       .stall = 100,
						       .refuse_watch = 100 },
					     calm = { 0 };
			vd_rev last = 1;

			chaos_set(w.chaos, &rough);
			for (unsigned i = 0; i < 20; i++) {
				last = VDI_MAX(
					last, local_put_some(&w, 1 + (unsigned) vdi_rand_below(&w.rand, 20)));
				vdi_sim_advance(w.env, VD_MS((int64_t) vdi_rand_below(&w.rand, 2000)));
				if (vdi_rand_once_in(&w.rand, 40))
					vdi_disk_sim_fail_nth(w.disk, 1 + vdi_rand_below(&w.rand, 5),
							      vdi_rand_once_in(&w.rand, 2) ?
								      VDI_DISK_SIM_NO_SPACE :
								      VDI_DISK_SIM_SHORT_WRITE);
			}
			vdi_sim_advance(w.env, VD_SECONDS(vdi_rand_once_in(&w.rand, 2) ? 60 : 0));
			vdi_disk_sim_fail_nth(w.disk, 0, VDI_DISK_SIM_IO);
			if (vdi_rand_once_in(&w.rand, 2))
				local_power_cut(&w);
			else
				local_stop(&w);
			cuts = chaos_marks(w.chaos)->cuts;
			chaos_set(w.chaos, &calm);
			if (vdi_rand_once_in(&w.rand, 2))
				local_compact(&w, last - (vd_rev) vdi_rand_below(&w.rand, 30));
			local_start(&w);
			if (local_status_of(&w).history) {
				(void) local_assert_watch(&w, "/registry/", local_status_of(&w).history);
				(void) local_assert_watch(&w, "/registry/pods/ns/p0",
							  local_status_of(&w).history +
								  (vd_rev) vdi_rand_below(&w.rand, 30));
				kept++;
			} else {
				assert_true(local_log_lines(&w, "is dropped") == 1 || w.log[0] == 0);
				dropped++;
			}
		}
		local_world_fini(&w);
	}
	assert_true(kept > 100);
	assert_true(dropped > 10);
	assert_true(cuts > 0);
}

static void torture_every_allocation_may_fail(void **state)
{
	bool was_hit = true;

	for (uint64_t nth = 1; was_hit; nth++) {
		struct local_world w;
		struct vd_error	   error = { 0 };
		vd_status	   status;
		vd_rev		   last;

		local_world_init(&w, 12);
		local_start(&w);
		local_put_some(&w, 30);
		local_stop(&w);
		vdi_alloc_fail_nth(nth, 1);
		status = local_try_start(&w, &error);
		if (status != VD_OK) {
			assert_status(status, VD_NOMEM);
			assert_status(local_try_start(&w, &error), VD_OK);
		}
		vdi_sim_advance(w.env, VD_SECONDS(40));
		was_hit = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		(void) local_assert_watch(&w, "/registry/", 1);
		last = local_put_some(&w, 10);
		vdi_sim_advance(w.env, VD_SECONDS(40));
		local_stop(&w);
		local_compact(&w, last);
		local_start(&w);
		assert_true(local_assert_watch(&w, "/registry/", 1) > 25);
		local_world_fini(&w);
	}
}

static void torture_a_watch_in_the_loaded_history(void **state)
{
	bool		   was_hit = true;
	struct local_world w;
	vd_rev		   last;

	local_world_init(&w, 13);
	local_start(&w);
	last = local_put_some(&w, 60);
	local_stop(&w);
	local_compact(&w, last);
	local_start(&w);
	for (uint64_t nth = 1; was_hit; nth++) {
		struct vd_store_watch_request request = { .key = K("/registry/"),
							  .range_end = K("/registry0"),
							  .start_revision = 2,
							  .ready = local_ignore_ready };
		struct vd_store_watch	     *watch;
		struct vd_store_batch	      batch;
		vd_status		      status;

		vdi_alloc_fail_nth(nth, 1);
		status = vd_store_watch_open(w.store, &request, &watch, NULL);
		if (status == VD_OK) {
			while ((status = vd_store_watch_next(watch, 9, &batch, NULL)) == VD_OK)
				;
			vd_store_watch_close(watch);
		}
		was_hit = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, was_hit ? VD_NOMEM : VD_AGAIN);
	}
	local_world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_disk_is_said_once_and_loses_nothing),
		cmocka_unit_test(a_disk_that_is_full_for_too_long_costs_the_history),
		cmocka_unit_test(a_burst_stays_within_the_bytes),
		cmocka_unit_test(a_disk_that_fails_begins_a_new_history),
		cmocka_unit_test(bit_rot_is_said_and_not_told),
		cmocka_unit_test(one_directory_serves_one_server),
		cmocka_unit_test(a_directory_that_cannot_be_made_is_an_error),
		cmocka_unit_test(a_store_that_does_not_answer_is_asked_again),
		cmocka_unit_test(a_slow_answer_is_waited_for),
		cmocka_unit_test(the_truth_survives_bad_luck),
		cmocka_unit_test(torture_every_allocation_may_fail),
		cmocka_unit_test(torture_a_watch_in_the_loaded_history),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
