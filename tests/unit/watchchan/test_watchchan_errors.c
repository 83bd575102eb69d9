/* watchChan: what cannot be read, decoded or allocated, what was compacted, and how it ends. */
#include "watchchan_world.h"

#include "feed_store.h"
#include "store_chaos.h"
#include "watchchan_state.h"

static void on_compacted(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	(void) arg;
	(void) revision;
	(void) error;
	assert_status(status, VD_OK);
}

static void r230_compacted_start_is_expired(void **state)
{
	struct world		     world = world_new(6);
	struct vdi_watchchan_options options = options_of(&world);

	(void) state;
	for (int i = 0; i < 3; i++)
		put_app(&world, "a", i % 2 ? "x" : "y"); /* 2..4 */
	put_app(&world, "b", "x");
	put_app(&world, "a", "z");
	assert_status(vd_store_compact(world.store, 5, true, on_compacted, &world), VD_OK);
	vdi_sim_run_until_idle(world.env);
	options.revision = 4; /* C-1 works: etcd is asked for 5 */
	open_watch(&world, &options);
	assert_string_equal(next(&world), "ADDED b@5");
	assert_string_equal(next(&world), "MODIFIED a@6");
	close_watch(&world);
	options.revision = 3;
	open_watch(&world, &options);
	assert_string_equal(next(&world), "ERROR expired");
	assert_string_equal(next(&world), "END");
	assert_string_equal(next(&world), "END");
	world_free(&world);
}

/* RunTestWatchFromZero: what was before a compacted revision is gone, and who needs it starts over. Always
 * Expired, where upstream has an Internal error too.
 * rules: W-14 */
static void t053_r212_a_change_at_the_compacted_revision_is_expired(void **state)
{
	for (unsigned deletes = 0; deletes < 2; deletes++) {
		struct world		     world = world_new(7);
		struct vdi_watchchan_options options = options_of(&world);

		(void) state;
		put_app(&world, "a", "x"); /* 2 */
		put_app(&world, "a", "y");
		if (deletes)
			delete (&world, "a");
		else
			put_app(&world, "a", "z"); /* 4 */
		assert_status(vd_store_compact(world.store, 4, true, on_compacted, &world), VD_OK);
		vdi_sim_run_until_idle(world.env);
		options.revision = 3;
		open_watch(&world, &options);
		assert_string_equal(next(&world), "ERROR expired");
		assert_string_equal(next(&world), "END");
		close_watch(&world);
		options.revision = 4;
		open_watch(&world, &options);
		put_app(&world, "b", "x");
		assert_string_equal(next(&world), "ADDED b@5");
		close_watch(&world);
		options.revision = 0;
		open_watch(&world, &options);
		if (!deletes)
			assert_string_equal(next(&world), "ADDED a@4");
		assert_string_equal(next(&world), "ADDED b@5");
		world_free(&world);
	}
}

/* The state could be read to its first page only: the reader learns what is gone. */
static void r226_r230_a_page_that_is_compacted(void **state)
{
	struct world		     world = world_new(17);
	struct vdi_watchchan_options options = options_of(&world);
	struct vdi_watchchan_event   event;
	char			     name[32];
	vd_rev			     last = 0;

	(void) state;
	for (int i = 0; i < VDI_WATCHCHAN_PAGE_LEN + 7; i++) {
		snprintf(name, sizeof name, "p%06d", i);
		put_app(&world, name, "x");
	}
	open_watch(&world, &options);
	assert_string_equal(next(&world), "ADDED p000000@2");
	last = put_app(&world, "p999999", "late");
	assert_status(vd_store_compact(world.store, last, true, on_compacted, &world), VD_OK);
	for (int i = 1; i < VDI_WATCHCHAN_PAGE_LEN; i++)
		assert_string_not_equal(next(&world), "AGAIN");
	vdi_sim_run_until_idle(world.env);
	assert_status(vdi_watchchan_next(world.watchchan, &event), VD_OK);
	assert_int_equal(event.type, VD_WATCH_ERROR);
	assert_status(event.error->code, VD_EXPIRED);
	assert_int_equal(event.error->compacted, last);
	assert_string_equal(next(&world), "END");
	world_free(&world);
}

/* No read was begun, so there is none to wait for. */
static void r214_r228_a_store_that_is_closing_already(void **state)
{
	(void) state;
	for (int i = 0; i < 2; i++) {
		struct world		     world = world_new(18);
		struct vdi_watchchan_options options = options_of(&world);
		bool			     store_closed = false;

		options.send_initial_events = VD_TRUE;
		options.revision = i; /* 0: the state at once; 1: which revision is it? */
		vd_store_close(world.store, on_closed, &store_closed);
		open_watch(&world, &options);
		assert_string_equal(next(&world), "END");
		close_watch(&world);
		assert_true(vdi_sim_run_until(world.env, is_true, &store_closed, VD_SECONDS(10)));
		vd_codec_free(world.codec);
		vd_env_free(world.env);
	}
}

/* Also where several are decoded at once: the first error in the order of events is told, and nothing behind
 * it.
 * rules: R-223, T-057 */
static void r221_undecodable_ends_the_watch(void **state)
{
	(void) state;
	for (uint64_t seed = 0; seed < 24; seed++) {
		struct world		     world = world_new(7 + seed);
		struct vdi_watchchan_options options = options_of(&world);

		options.revision = 1;
		options.decode_workers = seed % 12;
		open_watch(&world, &options);
		put_app(&world, "a", "x");			 /* 2 */
		put_value(&world, "/registry/pods/bad", "junk"); /* 3 */
		for (int i = 0; i < 20; i++)
			put_app(&world, "b", "x");
		put_value(&world, "/registry/pods/bad", "junk");
		vdi_sim_run_until_idle(world.env);
		assert_string_equal(next(&world), "ADDED a@2");
		assert_string_equal(next(&world), "ERROR undecodable");
		assert_string_equal(next(&world), "END"); /* nothing after the error, T-070 */
		world_free(&world);
	}
}

static void o20_undecodable_may_be_skipped(void **state)
{
	struct world		     world = world_new(8);
	struct vdi_watchchan_options options = options_of(&world);
	struct vdi_watchchan_stats   stats;

	(void) state;
	put_value(&world, "/registry/pods/bad", "junk"); /* 2 */
	options.skip_undecodable = true;
	options.initial_end_bookmark = true;
	open_watch(&world, &options);
	assert_string_equal(next(&world), "BOOKMARK end@2");
	put_value(&world, "/registry/pods/bad", "still junk"); /* 3 */
	put_app(&world, "a", "x");			       /* 4 */
	put_app(&world, "bad", "x");			       /* 5: healed */
	put_value(&world, "/registry/pods/bad", "junk");       /* 6 */
	delete (&world, "bad");				       /* 7: its last state is unreadable */
	put_app(&world, "b", "x");			       /* 8 */
	assert_string_equal(next(&world), "LOST bad@3");       /* whoever has a state of it drops that */
	assert_string_equal(next(&world), "ADDED a@4");
	assert_string_equal(next(&world), "MODIFIED bad@5");
	assert_string_equal(next(&world), "LOST bad@6");
	assert_string_equal(next(&world), "LOST bad@7");
	assert_string_equal(next(&world), "ADDED b@8");
	put_app(&world, "c", "x"); /* 9 */
	assert_string_equal(next(&world), "ADDED c@9");
	assert_int_equal(world.undecodable, 4);
	vdi_watchchan_stats_get(world.watchchan, &stats);
	assert_int_equal(stats.undecodable, 4);
	world_free(&world);
}

/* A state before the change that cannot be read, and the filter asks for it: nobody has seen it (O-20), or
 * the watch ends. */
static void o20_r221_an_unreadable_state_before(void **state)
{
	(void) state;
	for (int skip = 0; skip < 2; skip++) {
		struct world		     world = world_new(14);
		struct vdi_watchchan_options options = options_of(&world);

		put_value(&world, "/registry/pods/bad", "junk"); /* 2 */
		options.revision = 2;
		options.predicate = app_is_x;
		options.skip_undecodable = skip;
		open_watch(&world, &options);
		put_app(&world, "bad", "x"); /* 3: healed */
		put_app(&world, "bad", "x"); /* 4 */
		assert_string_equal(next(&world), skip ? "ADDED bad@3" : "ERROR undecodable");
		assert_string_equal(next(&world), skip ? "MODIFIED bad@4" : "END");
		world_free(&world);
	}
}

static void r214_the_end_of_the_store_is_quiet(void **state)
{
	struct world		     world = world_new(11);
	struct vdi_watchchan_options options = options_of(&world);

	(void) state;
	put_app(&world, "a", "x");
	open_watch(&world, &options);
	assert_string_equal(next(&world), "ADDED a@2");
	world.closed = false;
	vd_store_close(world.store, on_closed, &world.closed);
	vdi_sim_run_until_idle(world.env);
	assert_string_equal(next(&world), "END");
	close_watch(&world);
	world.closed = true;
	vdi_sim_run_until_idle(world.env);
	vd_codec_free(world.codec);
	vd_env_free(world.env);
}

static void every_failed_allocation_ends_with_a_reason(void **state)
{
	int64_t live = vdi_alloc_live();

	(void) state;
	for (uint64_t nth = 1;; nth++) {
		struct world		     world = world_new(12);
		struct vdi_watchchan_options options = options_of(&world);
		const char		    *text = "END";
		bool			     failed;

		put_app(&world, "a", "x");
		options.decode_workers = 2;
		vdi_alloc_fail_nth(nth, 1);
		if (vdi_watchchan_open(world.env, world.store, &options, &world.watchchan, NULL) == VD_OK)
			text = next(&world);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		if (!failed)
			assert_string_equal(text, "ADDED a@2");
		else if (strcmp(text, "ADDED a@2") != 0 && strcmp(text, "END") != 0)
			assert_string_equal(text, "ERROR out_of_memory");
		world_free(&world); /* a failed open leaves nothing that uses the env */
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed)
			break;
	}
}

/* T-093: an event of a store that does not say what was there before is an error, but for a creation. */
static void t093_r212_the_record_before_is_needed(void **state)
{
	struct world		     world = world_new(30);
	struct vd_store		    *embedded = world.store;
	struct vdi_watchchan_options options = options_of(&world);

	world.store = feed_store_new(world.env);
	feed_omit_previous(world.store, true);
	options.revision = 1;
	for (unsigned is_delete = 0; is_delete < 2; is_delete++) {
		open_watch(&world, &options);
		feed_put(world.store, is_delete ? "/registry/pods/b" : "/registry/pods/a",
			 "{\"metadata\":{\"name\":\"x\"}}");
		assert_string_equal(next(&world), is_delete ? "ADDED x@4" : "ADDED x@2");
		if (is_delete)
			feed_delete(world.store, "/registry/pods/b");
		else
			feed_put(world.store, "/registry/pods/a", "{\"metadata\":{\"name\":\"x\"}}");
		assert_string_equal(next(&world), "ERROR expired");
		assert_string_equal(next(&world), "END");
		close_watch(&world);
		options.revision = 3;
	}
	feed_store_free(world.store);
	world.store = embedded;
	world_free(&world);
}

/* The revision that the start depends on cannot be read. */
static void r206_a_start_that_cannot_be_read(void **state)
{
	struct chaos_options	     down = { .refuse = 1000 };
	struct world		     world = world_new(31);
	struct vd_store		    *embedded = world.store;
	struct vdi_watchchan_options options = options_of(&world);

	world.store = chaos_store_new(world.env, embedded, &down);
	options.send_initial_events = VD_TRUE;
	options.revision = 1;
	open_watch(&world, &options);
	assert_string_equal(next(&world), "ERROR internal");
	assert_string_equal(next(&world), "END");
	close_watch(&world);
	chaos_store_free(world.store);
	world.store = embedded;
	world_free(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t093_r212_the_record_before_is_needed),
		cmocka_unit_test(r206_a_start_that_cannot_be_read),
		cmocka_unit_test(r230_compacted_start_is_expired),
		cmocka_unit_test(t053_r212_a_change_at_the_compacted_revision_is_expired),
		cmocka_unit_test(r226_r230_a_page_that_is_compacted),
		cmocka_unit_test(r214_r228_a_store_that_is_closing_already),
		cmocka_unit_test(r221_undecodable_ends_the_watch),
		cmocka_unit_test(o20_undecodable_may_be_skipped),
		cmocka_unit_test(o20_r221_an_unreadable_state_before),
		cmocka_unit_test(r214_the_end_of_the_store_is_quiet),
		cmocka_unit_test(every_failed_allocation_ends_with_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
