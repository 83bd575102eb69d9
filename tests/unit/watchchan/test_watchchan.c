/* watchChan: starts, pages, the stream, filters, queues and workers. */
#include "watchchan_world.h"

#include "feed_store.h"
#include "store_chaos.h"
#include "watchchan_state.h"

/* rules: R-209, R-216, R-218, R-619, R-111 */
static void r206_initial_state_then_stream(void **state)
{
	struct world		     world = world_new(1);
	struct vdi_watchchan_options options = options_of(&world);

	(void) state;
	put_app(&world, "b", "x");		      /* 2 */
	put_app(&world, "a", "x");		      /* 3 */
	put_value(&world, "/registry/podsx/z", "{}"); /* 4: a neighbour, R-111 */
	options.initial_end_bookmark = true;
	options.send_initial_events = VD_TRUE;
	open_watch(&world, &options);
	assert_string_equal(next(&world), "ADDED a@3"); /* R-209: key order, own revisions */
	assert_string_equal(next(&world), "ADDED b@2");
	assert_string_equal(next(&world), "BOOKMARK end@4");
	assert_string_equal(next(&world), "AGAIN");
	put_app(&world, "a", "y"); /* 5 */
	delete (&world, "b");	   /* 6 */
	put_app(&world, "c", "x"); /* 7 */
	assert_string_equal(next(&world), "MODIFIED a@5");
	assert_string_equal(next(&world), "DELETED b@6"); /* R-218 */
	assert_string_equal(next(&world), "ADDED c@7");
	assert_string_equal(next(&world), "AGAIN");
	world_free(&world);
}

/* rules: R-124, R-231, T-089 */
static void r202_start_revision(void **state)
{
	struct world		     world = world_new(2);
	struct vdi_watchchan_options options = options_of(&world);
	struct vdi_watchchan_event   event;

	(void) state;
	put_app(&world, "a", "x"); /* 2 */
	put_app(&world, "a", "y"); /* 3 */
	options.revision = 2;
	open_watch(&world, &options);
	assert_string_equal(next(&world), "MODIFIED a@3");
	close_watch(&world);
	/* 0 without initial events: from now. */
	options.revision = 0;
	options.send_initial_events = VD_FALSE;
	open_watch(&world, &options);
	assert_string_equal(next(&world), "AGAIN");
	put_app(&world, "a", "z"); /* 4 */
	assert_string_equal(next(&world), "MODIFIED a@4");
	close_watch(&world);
	/* A future revision without initial events is waited for (R-231). */
	options.send_initial_events = VD_UNSET;
	options.revision = 6;
	open_watch(&world, &options);
	put_app(&world, "b", "x"); /* 5 */
	put_app(&world, "c", "x"); /* 6 */
	put_app(&world, "d", "x"); /* 7 */
	assert_string_equal(next(&world), "ADDED d@7");
	close_watch(&world);
	/* With initial events the current one is served. */
	options.send_initial_events = VD_TRUE;
	options.revision = 7;
	open_watch(&world, &options);
	assert_string_equal(next(&world), "ADDED a@4");
	close_watch(&world);
	/* A future one is refused, to be retried in 1 to 3 s. */
	options.revision = 100;
	open_watch(&world, &options);
	vdi_sim_run_until_idle(world.env);
	assert_status(vdi_watchchan_next(world.watchchan, &event), VD_OK);
	assert_status(event.error->code, VD_TOO_LARGE_REVISION);
	assert_in_range(event.error->retry_after_s, 1, 3);
	vdi_watchchan_event_fini(&event);
	assert_string_equal(next(&world), "END");
	world_free(&world);
}

/* As long as upstream's, and so are the queues (R-215, R-225). rules: T-090 */
static void r207_pages_are_pinned_to_one_revision(void **state)
{
	enum { COUNT = VDI_WATCHCHAN_PAGE_LEN + 7 };
	struct world		     world = world_new(3);
	struct vdi_watchchan_options options = options_of(&world);
	char			     name[32], expected[64];

	(void) state;
	assert_int_equal(VDI_WATCHCHAN_PAGE_LEN, 10000);
	assert_int_equal(VDI_WATCHCHAN_QUEUE_LEN, 100);
	for (int i = 0; i < COUNT; i++) {
		snprintf(name, sizeof name, "p%06d", i);
		put_app(&world, name, "x");
	}
	options.initial_end_bookmark = true;
	open_watch(&world, &options);
	for (int i = 0; i < COUNT; i++) {
		snprintf(expected, sizeof expected, "ADDED p%06d@%d", i, i + 2);
		assert_string_equal(next(&world), expected);
		if (i == 0)
			assert_int_equal(world.watchchan->page_count, VDI_WATCHCHAN_PAGE_LEN);
		if (i == 5) /* after page 1 was read: neither in page 2 nor lost */
			put_app(&world, "p999999", "late");
	}
	snprintf(expected, sizeof expected, "BOOKMARK end@%d", COUNT + 1);
	assert_string_equal(next(&world), expected);
	snprintf(expected, sizeof expected, "ADDED p999999@%d", COUNT + 2);
	assert_string_equal(next(&world), expected);
	world_free(&world);
}

/* A page that ends with a key as long as any: what is asked for next may not be longer. */
static void r207_a_page_may_end_with_the_longest_key(void **state)
{
	enum { COUNT = VDI_WATCHCHAN_PAGE_LEN };
	struct world		     world = world_new(3);
	struct vdi_watchchan_options options = options_of(&world);
	char			     name[32], key[VD_KEY_SIZE_MAX + 1];

	(void) state;
	for (int i = 0; i < COUNT - 1; i++) {
		snprintf(name, sizeof name, "p%06d", i);
		put_app(&world, name, "x");
	}
	memset(key, 'q', sizeof key - 1);
	memcpy(key, watched_prefix, strlen(watched_prefix));
	key[VD_KEY_SIZE_MAX] = 0;
	put_value(&world, key, "{\"metadata\":{\"name\":\"longest\"}}");
	put_app(&world, "r", "x");
	options.initial_end_bookmark = true;
	open_watch(&world, &options);
	for (int i = 0; i < COUNT - 1; i++)
		assert_memory_equal(next(&world), "ADDED p", 7);
	assert_memory_equal(next(&world), "ADDED longest@", 14);
	assert_memory_equal(next(&world), "ADDED r@", 8);
	assert_memory_equal(next(&world), "BOOKMARK end@", 13);
	world_free(&world);
}

/* rules: R-212, R-217, T-054 */
static void r219_the_filter_table(void **state)
{
	struct world		     world = world_new(4);
	struct vdi_watchchan_options options = options_of(&world);

	(void) state;
	options.predicate = app_is_x;
	options.revision = 1;
	open_watch(&world, &options);
	put_app(&world, "a", "x"); /* 2 create, passes */
	put_app(&world, "b", "y"); /* 3 create, does not */
	put_app(&world, "a", "x"); /* 4 passes, passed */
	put_app(&world, "b", "x"); /* 5 enters */
	put_app(&world, "a", "y"); /* 6 leaves */
	put_app(&world, "a", "z"); /* 7 neither */
	delete (&world, "a");	   /* 8 did not pass */
	delete (&world, "b");	   /* 9 passed */
	assert_string_equal(next(&world), "ADDED a@2");
	assert_string_equal(next(&world), "MODIFIED a@4");
	assert_string_equal(next(&world), "ADDED b@5");
	assert_string_equal(next(&world), "DELETED a@6");
	assert_string_equal(next(&world), "DELETED b@9");
	assert_string_equal(next(&world), "AGAIN");
	world_free(&world);
}

/* rules: T-063 */
static void r211_progress_becomes_a_bookmark(void **state)
{
	struct world		     world = world_new(5);
	struct vdi_watchchan_options options = options_of(&world);

	(void) state;
	options.revision = 1;
	options.progress = true;
	open_watch(&world, &options);
	assert_string_equal(next(&world), "AGAIN");
	put_app(&world, "a", "x");		      /* 2 */
	put_value(&world, "/registry/nodes/n", "{}"); /* 3 */
	vdi_watchchan_progress(world.watchchan);
	assert_string_equal(next(&world), "ADDED a@2"); /* in order: events first */
	assert_string_equal(next(&world), "BOOKMARK@3");
	world_free(&world);
}

/* Answers that take their time: each page is looked at once, when it is there. */
static void r207_pages_that_come_late(void **state)
{
	enum { COUNT = 2 * VDI_WATCHCHAN_PAGE_LEN + 7 };
	struct chaos_options	     slow = { .delay = 1000, .delay_max = VD_MS(50) };
	struct world		     world = world_new(33);
	struct vd_store		    *embedded = world.store;
	struct vdi_watchchan_options options = options_of(&world);
	char			     name[32], expected[64];

	(void) state;
	for (int i = 0; i < COUNT; i++) {
		snprintf(name, sizeof name, "p%06d", i);
		put_app(&world, name, "x");
	}
	world.store = chaos_store_new(world.env, embedded, &slow);
	options.initial_end_bookmark = true;
	open_watch(&world, &options);
	for (int i = 0; i <= COUNT; i++) {
		const char *text = next(&world);

		for (int wait = 0; wait < 100 && strcmp(text, "AGAIN") == 0; wait++) {
			vdi_sim_advance(world.env, VD_MS(10));
			text = next(&world);
		}
		if (i < COUNT)
			snprintf(expected, sizeof expected, "ADDED p%06d@%d", i, i + 2);
		else
			snprintf(expected, sizeof expected, "BOOKMARK end@%d", COUNT + 1);
		assert_string_equal(text, expected);
	}
	close_watch(&world);
	chaos_store_free(world.store);
	world.store = embedded;
	world_free(&world);
}

static void r223_there_are_as_many_workers_as_asked_for_and_at_most_so_many(void **state)
{
	static const unsigned asked[] = { 0, 1, VDI_DECODE_WORKERS_MAX, VDI_DECODE_WORKERS_MAX + 1, ~0u };

	(void) state;
	for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
		struct world		     world = world_new(15);
		struct vdi_watchchan_options options = options_of(&world);

		options.decode_workers = asked[i];
		open_watch(&world, &options);
		assert_int_equal(world.watchchan->workers_open,
				 VDI_MIN(asked[i], (unsigned) VDI_DECODE_WORKERS_MAX));
		world_free(&world);
	}
}

static void r223_workers_keep_the_order(void **state)
{
	(void) state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct world		     world = world_new(seed);
		struct vdi_watchchan_options options = options_of(&world);
		char			     name[32], expected[64];

		options.revision = 1;
		options.decode_workers = 10;
		open_watch(&world, &options);
		for (int i = 0; i < 300; i++) {
			snprintf(name, sizeof name, "p%03d", i);
			put_app(&world, name, "x");
		}
		for (int i = 0; i < 300; i++) {
			snprintf(expected, sizeof expected, "ADDED p%03d@%d", i, i + 2);
			assert_string_equal(next(&world), expected);
		}
		world_free(&world);
	}
}

/* rules: R-215 */
static void r225_a_full_queue_stops_reading_and_loses_nothing(void **state)
{
	enum { COUNT = 1000 };
	struct world		     world = world_new(9);
	struct vdi_watchchan_options options = options_of(&world);
	struct vdi_watchchan_stats   stats;
	char			     name[32], expected[64];

	(void) state;
	options.revision = 1;
	open_watch(&world, &options);
	for (int i = 0; i < COUNT; i++) {
		snprintf(name, sizeof name, "p%04d", i);
		put_app(&world, name, "x");
	}
	vdi_sim_run_until_idle(world.env);
	vdi_watchchan_stats_get(world.watchchan, &stats);
	assert_int_equal(stats.result_len, VDI_WATCHCHAN_QUEUE_LEN);
	assert_int_equal(stats.raw_len, VDI_WATCHCHAN_QUEUE_LEN);
	assert_int_equal(stats.result_high, VDI_WATCHCHAN_QUEUE_LEN);
	assert_int_equal(stats.raw_high, VDI_WATCHCHAN_QUEUE_LEN);
	assert_int_equal(stats.result_full, 1);
	for (int i = 0; i < COUNT; i++) {
		snprintf(expected, sizeof expected, "ADDED p%04d@%d", i, i + 2);
		assert_string_equal(next(&world), expected);
	}
	world_free(&world);
}

static void count_blocked(void *arg, const struct vd_log_record *record)
{
	if (strstr(record->message, "was full for"))
		++*(unsigned *) arg;
}

struct blocked_lines {
	char (*texts)[128];
	unsigned count;
};

static void keep_blocked(void *arg, const struct vd_log_record *record)
{
	struct blocked_lines *lines = arg;

	if (strstr(record->message, "was full for"))
		snprintf(lines->texts[lines->count++], sizeof lines->texts[0], "%s", record->message);
}

/* Full to the last place holds nobody up; one more does, until the first is taken, and that is logged when it
 * took long.
 * rules: T-096 */
static void r225_only_who_waits_for_room_is_held_up(void **state)
{
	unsigned		     logged = 0;
	struct world		     world = world_logging(16, count_blocked, &logged);
	struct vdi_watchchan_options options = options_of(&world);
	struct vdi_watchchan_stats   stats;
	char			     name[32];

	(void) state;
	options.revision = 1;
	open_watch(&world, &options);
	for (int i = 0; i < VDI_WATCHCHAN_QUEUE_LEN; i++) {
		snprintf(name, sizeof name, "p%04d", i);
		put_app(&world, name, "x");
	}
	vdi_sim_advance(world.env, VD_SECONDS(100));
	vdi_watchchan_stats_get(world.watchchan, &stats);
	assert_int_equal(stats.result_len, VDI_WATCHCHAN_QUEUE_LEN);
	assert_int_equal(stats.result_full, 0);
	assert_string_equal(next(&world), "ADDED p0000@2");
	assert_int_equal(logged, 0);
	put_app(&world, "q0", "x"); /* takes the free place */
	put_app(&world, "q1", "x");
	vdi_sim_advance(world.env, VD_SECONDS(100));
	vdi_watchchan_stats_get(world.watchchan, &stats);
	assert_int_equal(stats.result_full, 1);
	assert_string_equal(next(&world), "ADDED p0001@3");
	assert_int_equal(logged, 1);
	assert_string_equal(next(&world), "ADDED p0002@4");
	assert_int_equal(logged, 1);
	/* Several long waits within five seconds are one line. */
	for (int i = 0; i < 8; i++) {
		char taken[32];

		snprintf(name, sizeof name, "r%d", i);
		put_app(&world, name, "x");
		put_app(&world, i ? "s" : "r", "x");
		vdi_sim_advance(world.env, VD_SECONDS(1));
		snprintf(taken, sizeof taken, "ADDED p%04d@%d", i * 2 + 3, i * 2 + 5);
		assert_string_equal(next(&world), taken);
		vdi_sim_run_until_idle(world.env);
		snprintf(taken, sizeof taken, "ADDED p%04d@%d", i * 2 + 4, i * 2 + 6);
		assert_string_equal(next(&world), taken);
		assert_int_equal(logged, i < 4 ? 1 : 2);
	}
	world_free(&world);
}

/* Each time that the queue is full counts, from when it is full until the receiver takes something. */
static void r225_each_wait_for_room_is_counted_and_timed(void **state)
{
	enum { WAITS = 3 };
	char			     logged[WAITS][128];
	struct blocked_lines	     lines = { logged, 0 };
	struct world		     world = world_logging(17, keep_blocked, &lines);
	struct vdi_watchchan_options options = options_of(&world);
	struct vdi_watchchan_stats   stats;
	struct vdi_watchchan_event   events[VDI_WATCHCHAN_QUEUE_LEN];
	char			     name[32], expected[64];
	size_t			     count;

	(void) state;
	options.revision = 1;
	open_watch(&world, &options);
	/* The limit of this message belongs to the process: other tests have used it, up to that time. */
	vdi_sim_advance(world.env, VD_SECONDS(1000));
	for (unsigned wait = 1; wait <= WAITS; wait++) {
		for (int i = 0; i <= VDI_WATCHCHAN_QUEUE_LEN; i++) { /* one more than it holds */
			snprintf(name, sizeof name, "p%04d", i);
			put_app(&world, name, "x");
		}
		vdi_sim_run_until_idle(world.env);
		vdi_watchchan_stats_get(world.watchchan, &stats);
		assert_int_equal(stats.result_full, wait);
		vdi_sim_advance(world.env, VD_SECONDS(10 * wait));
		assert_status(vdi_watchchan_take(world.watchchan, events, VDI_WATCHCHAN_QUEUE_LEN, &count),
			      VD_OK);
		assert_int_equal(count, VDI_WATCHCHAN_QUEUE_LEN);
		for (size_t i = 0; i < count; i++)
			vdi_watchchan_event_fini(&events[i]);
		assert_int_equal(lines.count, wait);
		snprintf(expected, sizeof expected, "was full for %u ms", 10000 * wait);
		assert_non_null(strstr(logged[wait - 1], expected));
		/* The last one comes without another wait. */
		vdi_sim_run_until_idle(world.env);
		vdi_sim_advance(world.env, VD_SECONDS(10));
		assert_status(vdi_watchchan_take(world.watchchan, events, 2, &count), VD_OK);
		assert_int_equal(count, 1);
		vdi_watchchan_event_fini(&events[0]);
		assert_int_equal(lines.count, wait);
		assert_string_equal(next(&world), "AGAIN");
	}
	world_free(&world);
}

static void on_txn(void *arg, vd_status status, const struct vd_txn_result *result,
		   const struct vd_error *error)
{
	(void) arg;
	(void) result;
	(void) error;
	assert_status(status, VD_OK);
}

/* The receiver knows where a revision ends, also when its last event is not for it. */
static void e459_the_end_of_a_revision_is_told(void **state)
{
	static const char *const values[] = { "{\"metadata\":{\"name\":\"a\",\"labels\":{\"app\":\"x\"}}}",
					      "{\"metadata\":{\"name\":\"b\",\"labels\":{\"app\":\"x\"}}}",
					      "{\"metadata\":{\"name\":\"c\"}}" };
	struct world		 world = world_new(13);
	struct vdi_watchchan_options options = options_of(&world);
	struct vd_op		     ops[3] = { 0 };
	struct vd_txn_request	     txn = { .success = ops, .success_count = 3 };
	struct vdi_watchchan_event   event;

	(void) state;
	for (size_t i = 0; i < 3; i++) {
		static const char *const keys[] = { "/registry/pods/a", "/registry/pods/b",
						    "/registry/pods/c" };

		ops[i] = (struct vd_op) { .kind = VD_OP_PUT,
					  .key = vd_bytes_of(keys[i]),
					  .value = vd_bytes_of(values[i]) };
	}
	options.revision = 1;
	options.skip_undecodable = true;
	options.predicate = app_is_x;
	open_watch(&world, &options);
	assert_status(vd_store_txn(world.store, &txn, on_txn, NULL), VD_OK);
	vdi_sim_run_until_idle(world.env);
	for (int i = 0; i < 2; i++) {
		assert_status(vdi_watchchan_next(world.watchchan, &event), VD_OK);
		assert_true(event.more_in_revision);
		vdi_watchchan_event_fini(&event);
	}
	assert_status(vdi_watchchan_next(world.watchchan, &event), VD_OK);
	assert_int_equal(event.type, VD_WATCH_BOOKMARK);
	assert_int_equal(event.revision, 2);
	assert_false(event.more_in_revision);
	txn.success_count = 2;
	ops[1].value = vd_bytes_of("junk"); /* what cannot be decoded ends a revision, too */
	assert_status(vd_store_txn(world.store, &txn, on_txn, NULL), VD_OK);
	vdi_sim_run_until_idle(world.env);
	for (int i = 0; i < 2; i++) {
		assert_status(vdi_watchchan_next(world.watchchan, &event), VD_OK);
		assert_int_equal(event.more_in_revision, i == 0);
		vdi_watchchan_event_fini(&event);
	}
	world_free(&world);
}

/* rules: R-229 */
static void r228_close_at_any_moment(void **state)
{
	(void) state;
	for (uint64_t steps = 0; steps < 120; steps++) {
		struct world		     world = world_new(steps);
		struct vdi_watchchan_options options = options_of(&world);

		for (int i = 0; i < 5; i++)
			put_app(&world, "a", "x");
		options.decode_workers = steps % 3;
		open_watch(&world, &options);
		put_app(&world, "b", "x");
		for (uint64_t i = 0; i < steps && vdi_sim_step(world.env); i++)
			;
		world.ready = 0;
		vdi_watchchan_close(world.watchchan, on_closed, &world.closed);
		assert_true(vdi_sim_run_until(world.env, is_true, &world.closed, VD_SECONDS(10)));
		assert_int_equal(world.ready, 0); /* no word after close */
		world.watchchan = NULL;
		world_free(&world);
	}
}

/* rules: T-088 */
static void r201_bad_options_are_refused(void **state)
{
	struct world		     world = world_new(10);
	struct vdi_watchchan_options options = options_of(&world);
	struct vd_error		     error = { 0 };

	(void) state;
	options.key = vd_bytes_of("/registry/pods");
	assert_status(vdi_watchchan_open(world.env, world.store, &options, &world.watchchan, &error),
		      VD_INVALID_ARGUMENT);
	assert_string_equal(error.message, "recursive key needs to end with \"/\"");
	options.key = VD_BYTES_NONE;
	assert_status(vdi_watchchan_open(world.env, world.store, &options, &world.watchchan, &error),
		      VD_INVALID_ARGUMENT);
	world_free(&world);
}

static const struct vd_store_ops *spied;
static char			  asked_key[64];
static int64_t			  asked_limit;
static bool			  asked_keys_only;

static vd_status spy_range(struct vd_store *store, const struct vd_range_request *request, vd_range_fn done,
			   void *arg)
{
	snprintf(asked_key, sizeof asked_key, "%.*s", (int) request->key.size,
		 (const char *) request->key.data);
	assert_int_equal(request->range_end.size, 0);
	asked_limit = request->limit;
	asked_keys_only = request->keys_only;
	return spied->range(store, request, done, arg);
}

/* Which revision is it? The key of the resource itself is asked for, without its slash; nothing is there, and
 * nothing of it is wanted but the header. */
static void r138_the_revision_is_read_by_the_key_of_the_resource(void **state)
{
	struct world		     world = world_new(32);
	struct vdi_watchchan_options options = options_of(&world);
	struct vd_store_ops	     ops = *world.store->ops;

	(void) state;
	spied = world.store->ops;
	ops.range = spy_range;
	world.store->ops = &ops;
	options.send_initial_events = VD_FALSE;
	for (int single = 0; single < 2; single++) {
		options.recursive = !single;
		options.key = vd_bytes_of(single ? "/registry/pods/a" : watched_prefix);
		open_watch(&world, &options);
		assert_string_equal(next(&world), "AGAIN");
		assert_string_equal(asked_key, single ? "/registry/pods/a" : "/registry/pods");
		assert_int_equal(asked_limit, 1);
		assert_true(asked_keys_only);
		close_watch(&world);
	}
	world.store->ops = spied;
	world_free(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r206_initial_state_then_stream),
		cmocka_unit_test(r138_the_revision_is_read_by_the_key_of_the_resource),
		cmocka_unit_test(r202_start_revision),
		cmocka_unit_test(r207_pages_are_pinned_to_one_revision),
		cmocka_unit_test(r207_a_page_may_end_with_the_longest_key),
		cmocka_unit_test(r219_the_filter_table),
		cmocka_unit_test(r211_progress_becomes_a_bookmark),
		cmocka_unit_test(r207_pages_that_come_late),
		cmocka_unit_test(r223_there_are_as_many_workers_as_asked_for_and_at_most_so_many),
		cmocka_unit_test(r223_workers_keep_the_order),
		cmocka_unit_test(r225_a_full_queue_stops_reading_and_loses_nothing),
		cmocka_unit_test(r225_only_who_waits_for_room_is_held_up),
		cmocka_unit_test(r225_each_wait_for_room_is_counted_and_timed),
		cmocka_unit_test(e459_the_end_of_a_revision_is_told),
		cmocka_unit_test(r228_close_at_any_moment),
		cmocka_unit_test(r201_bad_options_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
