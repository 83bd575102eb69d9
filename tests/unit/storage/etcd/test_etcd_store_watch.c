/* storage/etcd/etcd_store_watch.c over a toy etcd: batches, starts, compactions, progress. */
#include "etcd_store_world.h"

static void e329_batches_are_whole_revisions(void **state)
{
	static const vd_rev    revisions[] = { 5, 5, 6, 7, 7, 7, 8, 9 };
	struct world	      *world = world_open(20, 1);
	unsigned	       ready = 0;
	struct vd_store_watch *watch = watch_from(world, "a", 2, &ready);

	(void) state;
	assert_true(etcd_toy_watch(&world->toy, "a")->require_leader); /* */
	assert_string_equal(next_text(world, watch, 1), "again");
	etcd_toy_send(&world->toy, etcd_toy_watch(&world->toy, "a"), revisions, VDI_ARRAY_SIZE(revisions));
	vdi_sim_run_until_idle(world->env);
	assert_int_equal(ready, 1);
	assert_string_equal(next_text(world, watch, 1), "5 5");
	assert_string_equal(next_text(world, watch, 2), "6 7 7 7");
	assert_string_equal(next_text(world, watch, 100), "8 9");
	assert_string_equal(next_text(world, watch, 100), "again");
	assert_int_equal(status_of(world).current, 9);
	vd_store_watch_close(watch);
	world_free(world);
}

/* The newest revision heard of decides, not when the server gets the request. */
static void e704_from_now_on_begins_behind_what_is_known(void **state)
{
	struct world	      *world = world_open(21, 1);
	unsigned	       ready = 0;
	struct vd_store_watch *watch;

	(void) state;
	world->toy.revision = 40;
	(void) put(world);	     /* 41 */
	etcd_toy_write(&world->toy); /* not heard of */
	watch = watch_from(world, "a", 0, &ready);
	assert_int_equal(etcd_toy_watch(&world->toy, "a")->start, 42);
	assert_int_equal(watch->opened, 41);
	vd_store_watch_close(watch);
	world_free(world);
}

/* it never fails with "compacted". */
static void r231_from_now_on_after_a_long_silence(void **state)
{
	struct world	      *world = world_open(22, 1);
	unsigned	       ready = 0;
	struct vd_store_watch *watch;
	vd_rev		       next = 1001;

	(void) state;
	world->toy.revision = 1000;
	world->toy.compacted = 900;
	watch = watch_from(world, "a", 0, &ready);
	assert_string_equal(next_text(world, watch, 1), "again");
	assert_string_equal(next_text(world, watch, 1), "again");
	assert_int_equal(etcd_toy_watch(&world->toy, "a")->start, 900);
	etcd_toy_send(&world->toy, etcd_toy_watch(&world->toy, "a"), &next, 1);
	assert_string_equal(next_text(world, watch, 1), "1001");
	/* From there it is a watch like any other: where it began is told when that is compacted. */
	{
		struct vd_store_batch batch;
		struct vd_error	      error = { 0 };

		etcd_toy_expire(&world->toy, etcd_toy_watch(&world->toy, "a"), 1500);
		vdi_sim_run_until_idle(world->env);
		assert_status(vd_store_watch_next(watch, 1, &batch, &error), VD_EXPIRED);
		assert_int_equal(error.requested, 900);
		assert_int_equal(error.compacted, 1500);
	}
	vd_store_watch_close(watch);
	world_free(world);
}

/* What was written through the store after the watch was asked for is seen, or the watch says that it cannot
 * be. */
static void e704_from_now_on_hides_no_write_that_was_compacted(void **state)
{
	struct world	      *world = world_open(22, 1);
	unsigned	       ready = 0;
	struct vd_store_watch *watch;
	struct vd_store_batch  batch;
	struct vd_error	       error = { 0 };

	(void) state;
	world->toy.revision = 1000;
	world->toy.compacted = 900;
	watch = watch_from(world, "a", 0, &ready);
	(void) put(world);
	assert_int_equal(vd_store_watch_next(watch, 1, &batch, &error), VD_EXPIRED);
	assert_int_equal(error.compacted, 900);
	vd_store_watch_close(watch);
	world_free(world);
}

/* The server has had the watch: what others wrote while the line was cut, and a compaction took, must be told
 * as a gap. What was written before it had the watch need not be seen. */
static void e704_from_now_on_has_no_silent_gap(void **state)
{
	static const struct {
		vd_rev compacted;
		bool   is_gap;
	} rows[] = { { 900, false }, { 1001, false }, { 1002, true }, { 1500, true } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct world	      *world = world_open(22, 1);
		unsigned	       ready = 0;
		struct vd_store_watch *watch;
		struct vd_store_batch  batch;
		struct vd_error	       error = { 0 };

		world->toy.revision = 1000;
		watch = watch_from(world, "a", 0, &ready);
		assert_string_equal(next_text(world, watch, 1), "again");
		world->toy.revision = 2000;
		world->toy.compacted = rows[i].compacted;
		rpc_script_cut(world->toy.script, 0);
		vdi_sim_advance(world->env, VD_SECONDS(30));
		if (rows[i].is_gap) {
			assert_status(vd_store_watch_next(watch, 1, &batch, &error), VD_EXPIRED);
			assert_int_equal(error.compacted, rows[i].compacted);
		} else {
			assert_string_equal(next_text(world, watch, 1), "again");
			assert_string_equal(next_text(world, watch, 1), "again");
			assert_int_equal(etcd_toy_watch(&world->toy, "a")->start, rows[i].compacted);
		}
		vd_store_watch_close(watch);
		world_free(world);
	}
}

static void e334_a_compacted_start_is_told_with_its_revisions(void **state)
{
	struct world	      *world = world_open(23, 1);
	unsigned	       ready = 0;
	struct vd_store_watch *watch;
	struct vd_store_batch  batch;
	struct vd_error	       error = { 0 };

	(void) state;
	world->toy.revision = 1000;
	world->toy.compacted = 900;
	watch = watch_from(world, "a", 500, &ready);
	vdi_sim_run_until_idle(world->env);
	assert_status(vd_store_watch_next(watch, 1, &batch, &error), VD_EXPIRED);
	assert_int_equal(error.compacted, 900);
	assert_int_equal(error.current, 900); /* at least; nothing newer was heard of */
	assert_int_equal(status_of(world).compacted, 900);
	assert_status(vd_store_watch_next(watch, 1, &batch, &error), VD_EXPIRED);
	vd_store_watch_close(watch);
	world_free(world);
}

/* rules: R-144 */
static void r143_e245_progress_comes_to_who_wants_it(void **state)
{
	struct world	      *world = world_open(24, 1);
	unsigned	       ready = 0;
	struct vd_store_watch *asks = watch_from(world, "a", 2, &ready),
			      *does_not = watch_from(world, "b", 2, &ready), *always = NULL;
	struct vd_store_watch_request request = { .key = vd_bytes_of("c"),
						  .start_revision = 2,
						  .progress = true,
						  .ready = count_ready,
						  .ready_arg = &ready };

	(void) state;
	assert_status(vd_store_watch_open(world->store, &request, &always, NULL), VD_OK);
	vdi_sim_run_until_idle(world->env);
	assert_true(etcd_toy_watch(&world->toy, "a")->require_leader &&
		    etcd_toy_watch(&world->toy, "b")->require_leader);
	assert_true(etcd_toy_watch(&world->toy, "c")->require_leader);
	world->toy.revision = 10;
	assert_status(vd_store_watch_progress(asks), VD_OK);
	assert_string_equal(next_text(world, asks, 1), "progress 10");
	assert_string_equal(next_text(world, asks, 1), "again");
	assert_string_equal(next_text(world, does_not, 1), "again");
	assert_string_equal(next_text(world, always, 1), "progress 10");
	assert_int_equal(status_of(world).current, 10);
	/* It never goes back, nor says anything about what is before the start. */
	etcd_toy_progress(&world->toy, etcd_toy_watch(&world->toy, "c"), 9);
	assert_string_equal(next_text(world, always, 1), "again");
	vd_store_watch_close(always);
	request.start_revision = 50;
	assert_status(vd_store_watch_open(world->store, &request, &always, NULL), VD_OK);
	vdi_sim_run_until_idle(world->env);
	etcd_toy_progress(&world->toy, etcd_toy_watch(&world->toy, "c"), 49); /* E-340 */
	assert_string_equal(next_text(world, always, 1), "again");
	etcd_toy_progress(&world->toy, etcd_toy_watch(&world->toy, "c"), 50);
	assert_string_equal(next_text(world, always, 1), "progress 50");
	vd_store_watch_close(asks);
	vd_store_watch_close(does_not);
	vd_store_watch_close(always);
	world_free(world);
}

/* The watches of all caches lie on one stream: readers of several resources that wait at once cost one
 * request, and its answer is for all of them. */
static void w29_one_request_for_progress_serves_all_caches(void **state)
{
	struct world	      *world = world_open(43, 1);
	unsigned	       ready = 0;
	struct vd_store_watch *watches[5];

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(watches); i++)
		watches[i] = watch_from(world, (const char[2]) { (char) ('a' + i), 0 }, 2, &ready);
	world->toy.revision = 10;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(watches); i++)
		assert_status(vd_store_watch_progress(watches[i]), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(watches); i++)
		assert_string_equal(next_text(world, watches[i], 1), "progress 10");
	vdi_sim_advance(world->env, VD_SECONDS(2));
	assert_int_equal(world->toy.progress_requests, 1);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(watches); i++)
		vd_store_watch_close(watches[i]);
	world_free(world);
}

/* A server that is behind with any watch of the stream drops the request. */
static void e317_a_dropped_request_for_progress_is_repeated(void **state)
{
	struct world	      *world = world_open(41, 1);
	unsigned	       ready = 0;
	struct vd_store_watch *watch = watch_from(world, "a", 2, &ready);

	(void) state;
	world->toy.revision = 10;
	world->toy.has_progress = false;
	assert_status(vd_store_watch_progress(watch), VD_OK);
	vdi_sim_advance(world->env, VD_MS(50));
	assert_int_equal(world->toy.progress_requests, 1);
	vdi_sim_advance(world->env, VD_MS(60));
	assert_int_equal(world->toy.progress_requests, 2);
	assert_string_equal(next_text(world, watch, 1), "again");
	vdi_sim_advance(world->env, VD_SECONDS(10));
	assert_in_range(world->toy.progress_requests, 10, 16); /* ever more patiently */
	world->toy.has_progress = true;
	vdi_sim_advance(world->env, VD_SECONDS(1));
	assert_string_equal(next_text(world, watch, 1), "progress 10");
	world->toy.progress_requests = 0;
	vdi_sim_advance(world->env, VD_SECONDS(10));
	assert_int_equal(world->toy.progress_requests, 0);
	vd_store_watch_close(watch);
	world_free(world);
}

/* A watch that waits for a revision to come keeps the server from answering on its stream (E-340), and one
 * that catches up does, too. */
static void e317_watches_of_the_past_have_a_stream_to_themselves(void **state)
{
	static const vd_rev    revisions[] = { 10 };
	struct world	      *world = world_open(42, 1);
	unsigned	       ready = 0;
	struct vd_store_watch *next = watch_from(world, "next", 2, &ready), *past;
	struct toy_watch      *toy_next = etcd_toy_watch(&world->toy, "next"), *toy_past;

	(void) state;
	etcd_toy_send(&world->toy, toy_next, revisions, 1);
	assert_string_equal(next_text(world, next, 1), "10");
	past = watch_from(world, "past", 10, &ready);
	toy_past = etcd_toy_watch(&world->toy, "past");
	assert_ptr_not_equal(toy_past->call, toy_next->call);
	assert_true(toy_past->require_leader);
	vd_store_watch_close(next);
	next = watch_from(world, "next", 11, &ready);
	toy_next = etcd_toy_watch(&world->toy, "next");
	assert_ptr_not_equal(toy_past->call, toy_next->call);
	world->toy.revision = 10;
	world->toy.has_progress = false;
	/* Each is asked where it is, again and again. */
	assert_status(vd_store_watch_progress(past), VD_OK);
	vdi_sim_advance(world->env, VD_MS(500));
	assert_in_range(world->toy.progress_requests, 3, 6);
	assert_ptr_equal(world->toy.progress_call, toy_past->call);
	world->toy.has_progress = true;
	vdi_sim_advance(world->env, VD_SECONDS(1));
	assert_string_equal(next_text(world, past, 1), "progress 10");
	assert_string_equal(next_text(world, next, 1), "again");
	assert_status(vd_store_watch_progress(next), VD_OK);
	vdi_sim_advance(world->env, VD_MS(500));
	assert_ptr_equal(world->toy.progress_call, toy_next->call);
	vd_store_watch_close(past);
	vd_store_watch_close(next);
	world_free(world);
}

static void r173_without_support_progress_is_not_asked_for(void **state)
{
	struct world		    *world = world_new(25, 1);
	struct vd_etcd_store_options options = options_of();
	unsigned		     ready = 0;
	struct vd_store_watch	    *watch;

	(void) state;
	world->toy.versions[0] = "3.4.23";
	open_store(world, &options);
	assert_status(vdi_etcd_store_wait(world->inner, VD_SECONDS(20), NULL), VD_OK);
	watch = watch_from(world, "a", 2, &ready);
	assert_status(vd_store_watch_progress(watch), VD_UNSUPPORTED);
	vdi_sim_run_until_idle(world->env);
	assert_int_equal(world->toy.progress_requests, 0);
	vd_store_watch_close(watch);
	world_free(world);
}

/* The metrics have each open: those of the client that failed, and those that did not. */
static void opened_watches_are_counted_by_their_outcome(void **state)
{
	struct world		     *world = world_open(27, 1);
	struct vdi_metric	     *ok = world->inner->calls[VDI_ETCD_CALL_WATCH];
	struct vdi_metric	     *failed = world->inner->call_errors[VDI_ETCD_CALL_WATCH];
	unsigned		      ready = 0;
	struct vd_store_watch_request request = {
		.key = vd_bytes_of("a"), .start_revision = 2, .ready = count_ready, .ready_arg = &ready
	};
	struct vd_store_watch *watches[2] = { NULL };

	(void) state;
	assert_int_equal(vdi_metric_value(ok), 0);
	assert_int_equal(vdi_metric_value(failed), 0);
	assert_status(vd_store_watch_open(world->store, &request, &watches[0], NULL), VD_OK);
	assert_int_equal(vdi_metric_value(ok), 1);
	assert_int_equal(vdi_metric_value(failed), 0);
	vdi_alloc_fail_nth(2, 1); /* the first is the store's own */
	assert_status(vd_store_watch_open(world->store, &request, &watches[1], NULL), VD_NOMEM);
	vdi_alloc_fail_nth(0, 0);
	assert_int_equal(vdi_metric_value(ok), 1);
	assert_int_equal(vdi_metric_value(failed), 1);
	vd_store_shutdown(world->store);
	assert_status(vd_store_watch_open(world->store, &request, &watches[1], NULL), VD_CLOSED);
	assert_int_equal(vdi_metric_value(ok), 1);
	assert_int_equal(vdi_metric_value(failed), 2);
	assert_null(watches[1]);
	vd_store_watch_close(watches[0]);
	world_free(world);
}

static void e358_watches_outlive_the_store(void **state)
{
	struct world	      *world = world_open(26, 1);
	unsigned	       ready = 0;
	struct vd_store_watch *watch = watch_from(world, "a", 2, &ready);
	struct vd_store_batch  batch;

	(void) state;
	assert_string_equal(next_text(world, watch, 1), "again");
	close_store(world);
	assert_int_equal(ready, 1);
	assert_status(vd_store_watch_next(watch, 1, &batch, NULL), VD_CLOSED);
	assert_status(vd_store_watch_progress(watch), VD_CLOSED);
	vd_store_watch_close(watch);
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e329_batches_are_whole_revisions),
		cmocka_unit_test(e704_from_now_on_begins_behind_what_is_known),
		cmocka_unit_test(r231_from_now_on_after_a_long_silence),
		cmocka_unit_test(e704_from_now_on_hides_no_write_that_was_compacted),
		cmocka_unit_test(e704_from_now_on_has_no_silent_gap),
		cmocka_unit_test(e334_a_compacted_start_is_told_with_its_revisions),
		cmocka_unit_test(r143_e245_progress_comes_to_who_wants_it),
		cmocka_unit_test(w29_one_request_for_progress_serves_all_caches),
		cmocka_unit_test(e317_a_dropped_request_for_progress_is_repeated),
		cmocka_unit_test(e317_watches_of_the_past_have_a_stream_to_themselves),
		cmocka_unit_test(r173_without_support_progress_is_not_asked_for),
		cmocka_unit_test(opened_watches_are_counted_by_their_outcome),
		cmocka_unit_test(e358_watches_outlive_the_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
