/* watchchan/: what it asks of its store, word for word, what becomes of its failures, and what the receiver
 * and the metrics learn. */
#include "watchchan_script.h"

/* ---- What is asked ---- */

/* rules: R-212 */
static void r206_the_watch_begins_behind_its_base(void **state)
{
	for (int i = 0; i < 4; i++) {
		struct world world;

		world_init(&world);
		world.options.revision = i ? 41 : 1;
		world.options.progress = i == 2;
		world.options.recursive = i != 3;
		if (i == 3)
			world.options.key = vd_bytes_of(KEY "a");
		open_watch(&world);
		assert_int_equal(world.script.ranges, 0);
		assert_int_equal(world.script.opened, 1);
		assert_int_equal(world.script.request.start_revision, i ? 42 : 2);
		assert_true(world.script.request.previous);
		assert_int_equal(world.script.request.progress, i == 2);
		assert_false(world.script.request.no_put || world.script.request.no_delete);
		assert_true(vd_bytes_equal(world.script.request.key, vd_bytes_of(i == 3 ? KEY "a" : KEY)));
		assert_true(vd_bytes_equal(world.script.request.range_end,
					   i == 3 ? VD_BYTES_NONE : vd_bytes_of("/registry/pods0")));
		assert_int_equal(world.script.asked_for, VDI_WATCHCHAN_QUEUE_LEN);
		assert_status(next_status(&world), VD_AGAIN);
		world_fini(&world);
	}
}

/* The key is the watchChan's own copy. */
static void r201_the_key_is_copied(void **state)
{
	struct world world;
	char	     key[] = KEY;

	world_init(&world);
	world.options.key = vd_bytes_of(key);
	world.options.revision = 0;
	assert_status(
		vdi_watchchan_open(world.env, &world.script.store, &world.options, &world.watchchan, NULL),
		VD_OK);
	memset(key, 'x', sizeof key - 1);
	vdi_sim_run_until_idle(world.env);
	assert_string_equal(world.script.key, KEY);
	assert_string_equal(world.script.range_end, "/registry/pods0");
	answer_range(&world, VD_OK, 3, NULL, 0, false, NULL);
	assert_true(vd_bytes_equal(world.script.request.key, vd_bytes_of(KEY)));
	world_fini(&world);
}

/* Page by page, each from behind the last key, all at the first one's revision; then the watch from there.
 * rules: R-206 */
static void r207_the_pages_that_are_asked_for(void **state)
{
	struct world  world;
	struct vd_kv *kvs[2];

	world_init(&world);
	world.options.revision = 0;
	world.options.initial_end_bookmark = true;
	open_watch(&world);
	assert_int_equal(world.script.ranges, 1);
	assert_string_equal(world.script.key, KEY);
	assert_string_equal(world.script.range_end, "/registry/pods0");
	assert_int_equal(world.script.revision, 0);
	assert_int_equal(world.script.limit, VDI_WATCHCHAN_PAGE_LEN);
	assert_false(world.script.keys_only);
	kvs[0] = record("a", "x", 2, 2);
	kvs[1] = record("b", "x", 3, 5);
	answer_range(&world, VD_OK, 7, kvs, 2, true, NULL);
	assert_int_equal(world.script.ranges, 2);
	assert_int_equal(world.script.revision, 7);
	assert_int_equal(world.script.limit, VDI_WATCHCHAN_PAGE_LEN);
	assert_string_equal(world.script.range_end, "/registry/pods0");
	assert_memory_equal(world.script.key, KEY "b", strlen(KEY "b") + 1); /* and a zero byte behind it */
	assert_int_equal(world.script.opened, 0);
	kvs[0] = record("c", "x", 4, 4);
	answer_range(&world, VD_OK, 9, kvs, 1, false, NULL);
	assert_int_equal(world.script.ranges, 2);
	assert_int_equal(world.script.request.start_revision, 8);
	expect_object(&world, VD_WATCH_ADDED, "a", 2, false);
	expect_object(&world, VD_WATCH_ADDED, "b", 5, false);
	expect_object(&world, VD_WATCH_ADDED, "c", 4, false);
	expect_bookmark(&world, 7, true);
	assert_status(next_status(&world), VD_AGAIN);
	world_fini(&world);
}

static void r207_one_key_has_one_page(void **state)
{
	struct world		   world;
	struct vd_kv		  *kv;
	struct vdi_watchchan_event event;

	world_init(&world);
	world.options.revision = 0;
	world.options.recursive = false;
	world.options.key = vd_bytes_of(KEY "a");
	open_watch(&world);
	assert_string_equal(world.script.key, KEY "a");
	assert_string_equal(world.script.range_end, "");
	assert_int_equal(world.script.limit, 0);
	kv = record("a", "x", 2, 3);
	answer_range(&world, VD_OK, 4, &kv, 1, true, NULL); /* whatever it says */
	assert_int_equal(world.script.ranges, 1);
	assert_int_equal(world.script.request.start_revision, 5);
	event = next(&world);
	assert_true(event.initial);
	assert_int_equal(event.type, VD_WATCH_ADDED);
	assert_int_equal(event.revision, 3);
	assert_null(event.old_object); /* */
	vdi_watchchan_event_fini(&event);
	assert_status(next_status(&world), VD_AGAIN); /* no bookmark was asked for */
	world_fini(&world);
}

/* Which reads and watches each start needs: the state at once, from here on, from now on, or the
 * state once the store is that far. */
static void r202_r206_what_each_start_asks(void **state)
{
	static const struct {
		enum vd_tristate initial;
		vd_rev		 revision;
		bool		 asks_revision, has_state;
		vd_rev		 start;
	} rows[] = {
		{ VD_UNSET, 0, false, true, 7 },  { VD_UNSET, 5, false, false, 6 },
		{ VD_TRUE, 0, false, true, 7 },	  { VD_TRUE, 5, true, true, 7 },
		{ VD_TRUE, 6, true, true, 7 },	  { VD_FALSE, 0, true, false, 7 },
		{ VD_FALSE, 5, false, false, 6 },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct world world;

		world_init(&world);
		world.options.send_initial_events = rows[i].initial;
		world.options.revision = rows[i].revision;
		world.options.initial_end_bookmark = true;
		open_watch(&world);
		assert_int_equal(world.script.ranges, rows[i].asks_revision || rows[i].has_state);
		if (rows[i].asks_revision) {
			assert_string_equal(world.script.key, "/registry/pods");
			assert_true(world.script.keys_only);
			vd_actor_wake(world.watchchan->actor); /* while it waits it does not ask again */
			vdi_sim_run_until_idle(world.env);
			assert_int_equal(world.script.ranges, 1);
			answer_range(&world, VD_OK, 6, NULL, 0, false, NULL);
		}
		if (rows[i].has_state) {
			assert_string_equal(world.script.key, KEY);
			assert_int_equal(world.script.opened, 0);
			vd_actor_wake(world.watchchan->actor);
			vdi_sim_run_until_idle(world.env);
			answer_range(&world, VD_OK, 6, NULL, 0, false, NULL);
			expect_bookmark(&world, 6, true);
		}
		assert_int_equal(world.script.ranges, rows[i].asks_revision + rows[i].has_state);
		assert_int_equal(world.script.opened, 1);
		assert_int_equal(world.script.request.start_revision, rows[i].start);
		assert_status(next_status(&world), VD_AGAIN);
		world_fini(&world);
	}
}

/* Of the shortest prefix nothing is left without its slash. */
static void r138_the_revision_of_everything(void **state)
{
	struct world world;

	world_init(&world);
	world.options.key = vd_bytes_of("/");
	world.options.send_initial_events = VD_FALSE;
	world.options.revision = 0;
	open_watch(&world);
	assert_int_equal(world.script.ranges, 1);
	assert_string_equal(world.script.key, "/");
	answer_range(&world, VD_OK, 5, NULL, 0, false, NULL);
	assert_int_equal(world.script.request.start_revision, 6);
	world_fini(&world);
}

/* A store that has long reads and cannot begin one now is not read in pages instead. */
static void r208_a_long_read_that_does_not_begin(void **state)
{
	static const struct {
		vd_status refused, told;
	} rows[] = { { VD_UNAVAILABLE, VD_INTERNAL }, { VD_NOMEM, VD_NOMEM }, { VD_CLOSED, VD_CLOSED } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct world world;

		world_init(&world);
		world.options.revision = 0;
		world.script.refuse_stream = rows[i].refused;
		open_watch(&world);
		if (rows[i].told != VD_CLOSED) {
			struct vdi_watchchan_event event = next(&world);

			assert_int_equal(event.type, VD_WATCH_ERROR);
			assert_status(event.error->code, rows[i].told);
		}
		assert_status(next_status(&world), VD_CLOSED);
		assert_int_equal(world.script.ranges, 0);
		world_fini(&world);
	}
}

/* A wish for progress that comes before the watch is open is passed on once, when it is. */
static void r211_progress_is_asked_for_once(void **state)
{
	struct world world;

	world_init(&world);
	world.options.revision = 0;
	open_watch(&world);
	vdi_watchchan_progress(world.watchchan);
	vdi_watchchan_progress(world.watchchan);
	assert_int_equal(world.script.progress, 0);
	answer_range(&world, VD_OK, 3, NULL, 0, false, NULL);
	assert_int_equal(world.script.progress, 1);
	vdi_watchchan_progress(world.watchchan);
	assert_int_equal(world.script.progress, 2);
	tell_progress(&world, 4);
	assert_int_equal(world.script.progress, 2);
	expect_bookmark(&world, 4, false);
	world_fini(&world);
	/* Nobody asked: nor does it. */
	world_init(&world);
	open_watch(&world);
	assert_int_equal(world.script.progress, 0);
	world_fini(&world);
}

/* rules: R-201 */
static void r201_what_is_refused(void **state)
{
	struct world		     world;
	struct vdi_watchchan_options good;
	struct vdi_watchchan	    *watchchan = NULL;
	struct vd_error		     error;
	char			     longest[VD_KEY_SIZE_MAX + 1];

	world_init(&world);
	memset(longest, '/', sizeof longest);
	good = world.options;
	for (int i = 0; i < 6; i++) {
		static const char *const messages[] = { "watch: start revision is -1, must be 0 or more",
							"watch: codec or ready is NULL",
							"watch: codec or ready is NULL", "watch: the key has",
							"watch: the key has" };

		world.options = good;
		world.options.revision = i == 0 ? -1 : 1;
		if (i == 1)
			world.options.ready = NULL;
		if (i == 2)
			world.options.codec = NULL;
		if (i >= 3)
			world.options.key = (struct vd_bytes) { longest, i == 3 ? sizeof longest :
									 i == 4 ? 0 :
										  VD_KEY_SIZE_MAX };
		memset(&error, 0, sizeof error);
		if (i == 5) {
			assert_status(vdi_watchchan_open(world.env, &world.script.store, &world.options,
							 &world.watchchan, NULL),
				      VD_OK);
			break;
		}
		assert_status(vdi_watchchan_open(world.env, &world.script.store, &world.options, &watchchan,
						 &error),
			      VD_INVALID_ARGUMENT);
		assert_memory_equal(error.message, messages[i], strlen(messages[i]));
		assert_null(watchchan);
	}
	world_fini(&world);
}

/* ---- What becomes of an error (R-227) ---- */

/* rules */
static void r227_each_failure_in_its_words(void **state)
{
	static const struct {
		vd_status   status;
		const char *said;
		vd_status   code; /* VD_CLOSED: a quiet end */
		const char *message;
	} rows[] = {
		{ VD_EXPIRED, "compacted", VD_EXPIRED,
		  "The resourceVersion for the provided watch is too old." },
		{ VD_CORRUPT, "a broken file", VD_CORRUPT, "a broken file" },
		{ VD_UNDECODABLE, "a key that is not ours", VD_UNDECODABLE, "a key that is not ours" },
		{ VD_TOO_LARGE_REVISION, "too far", VD_TOO_LARGE_REVISION, "too far" },
		{ VD_INTERNAL, "a surprise", VD_INTERNAL, "a surprise" },
		{ VD_INTERNAL, NULL, VD_INTERNAL, NULL },
		{ VD_NOMEM, NULL, VD_NOMEM, NULL },
		{ VD_BAD_REQUEST, "no such key", VD_BAD_REQUEST, "no such key" },
		{ VD_INVALID_ARGUMENT, "too long", VD_INVALID_ARGUMENT, "too long" },
		{ VD_UNSUPPORTED, "no watches here", VD_UNSUPPORTED, "no watches here" },
		{ VD_UNAVAILABLE, "no route", VD_INTERNAL, "Internal error occurred: no route" },
		{ VD_UNAVAILABLE, NULL, VD_INTERNAL, NULL },
		{ VD_CLOSED, "bye", VD_CLOSED, "" },
		{ VD_CANCELED, "bye", VD_CLOSED, "" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		for (int where = 0; where < 4; where++) {
			struct world world;
			char	     sentence[256];

			world_init(&world);
			world.options.revision = where < 2;
			if (where == 1) {
				world.script.refuse_watch = rows[i].status;
				world.script.refuse_message = rows[i].said;
			}
			if (where == 3) /* without a word of it, at once */
				world.script.refuse = rows[i].status;
			open_watch(&world);
			if (where == 0)
				tell_status(&world, rows[i].status, rows[i].said);
			if (where == 2)
				answer_range(&world, rows[i].status, 0, NULL, 0, false, rows[i].said);
			if (rows[i].code == VD_CLOSED) {
				assert_status(next_status(&world), VD_CLOSED);
			} else if (rows[i].message == NULL || (where == 3 && rows[i].status != VD_EXPIRED)) {
				snprintf(sentence, sizeof sentence, "%s%s",
					 rows[i].status == VD_UNAVAILABLE ? "Internal error occurred: " : "",
					 vd_status_sentence(rows[i].status));
				expect_error(&world, rows[i].code, sentence);
			} else {
				expect_error(&world, rows[i].code, rows[i].message);
			}
			/* The cause keeps what the event does not say. */
			if (rows[i].status == VD_EXPIRED && where < 3)
				assert_string_equal(vdi_watchchan_cause(world.watchchan), "compacted");
			else if (rows[i].message && where < 3)
				assert_string_equal(vdi_watchchan_cause(world.watchchan), rows[i].message);
			assert_int_equal(world.script.opened, where == 0);
			assert_null(world.script.done);
			vd_actor_wake(world.watchchan->actor); /* nothing is asked after the end */
			vdi_sim_run_until_idle(world.env);
			assert_int_equal(world.script.ranges, where >= 2);
			assert_status(next_status(&world), VD_CLOSED);
			world_fini(&world);
		}
}

/* A start from a revision that the store has not reached says how far it is, and when to come back.
 * rules: R-231 */
static void r206_a_state_of_the_future(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct world		   world;
		struct vdi_watchchan_event event;

		world_init(&world);
		world.options.send_initial_events = VD_TRUE;
		world.options.revision = 10;
		open_watch(&world);
		if (i == 0) {
			answer_range(&world, VD_OK, 9, NULL, 0, false, NULL);
			event = next(&world);
			assert_int_equal(event.type, VD_WATCH_ERROR);
			assert_status(event.error->code, VD_TOO_LARGE_REVISION);
			assert_string_equal(event.error->message,
					    "Too large resource version: 10, current: 9");
			assert_int_equal(event.error->requested, 10);
			assert_int_equal(event.error->current, 9);
			assert_in_range(event.error->retry_after_s, 1, 3);
			assert_status(next_status(&world), VD_CLOSED);
		} else {
			answer_range(&world, VD_UNAVAILABLE, 0, NULL, 0, false, "gone");
			expect_error(&world, VD_INTERNAL, "Internal error occurred: gone");
		}
		assert_int_equal(world.script.ranges, 1);
		world_fini(&world);
	}
}

/* What came before the error is delivered before it, also when all queues are full. */
static void r226_an_error_behind_full_queues(void **state)
{
	enum { COUNT = 130 };
	struct world		   world;
	struct answer		  *answer;
	struct vdi_watchchan_stats stats;
	char			   name[16];

	world_init(&world);
	open_watch(&world);
	for (int batch = 0; batch < 2; batch++) {
		answer = answer_new(&world);
		answer->count = COUNT;
		answer->revision = 1 + (batch + 1) * COUNT;
		for (int i = 0; i < COUNT; i++) {
			snprintf(name, sizeof name, "p%03d", batch * COUNT + i);
			answer->events[i] =
				(struct vd_store_event) { .kv = record(name, "x", 2 + batch * COUNT + i,
								       2 + batch * COUNT + i) };
		}
	}
	tell_status(&world, VD_UNAVAILABLE, "no route");
	vdi_watchchan_stats_get(world.watchchan, &stats);
	assert_int_equal(stats.result_len, VDI_WATCHCHAN_QUEUE_LEN);
	assert_int_equal(stats.raw_len, VDI_WATCHCHAN_QUEUE_LEN);
	assert_true(stats.raw_full > 0);
	assert_int_equal(stats.result_full, 1);
	assert_int_equal(stats.events, VDI_WATCHCHAN_QUEUE_LEN);
	assert_int_equal(world.script.answer_next, 2); /* not read on */
	for (int i = 0; i < 2 * COUNT; i++) {
		snprintf(name, sizeof name, "p%03d", i);
		expect_object(&world, VD_WATCH_ADDED, name, 2 + i, false);
	}
	expect_error(&world, VD_INTERNAL, "Internal error occurred: no route");
	vdi_watchchan_stats_get(world.watchchan, &stats);
	assert_int_equal(stats.raw_len, 0);
	assert_int_equal(stats.result_len, 0);
	world_fini(&world);
}

/* However many events the receiver takes at once: as long as the error, or an event before it, is still on
 * its way, nothing says that the stream has ended. */
static void r226_the_end_is_behind_the_error(void **state)
{
	enum { COUNT = 130 };

	for (size_t most = 1; most <= VDI_WATCHCHAN_QUEUE_LEN; most += 33) {
		struct world		   world;
		struct vdi_watchchan_event events[VDI_WATCHCHAN_QUEUE_LEN];
		struct answer		  *answer;
		size_t			   count, taken = 0;
		vd_status		   status = VD_OK;
		char			   name[16];

		world_init(&world);
		open_watch(&world);
		answer = answer_new(&world);
		answer->count = COUNT;
		answer->revision = 1 + COUNT;
		for (int i = 0; i < COUNT; i++) {
			snprintf(name, sizeof name, "p%03d", i);
			answer->events[i] = (struct vd_store_event) { .kv = record(name, "x", 2 + i, 2 + i) };
		}
		tell_status(&world, VD_UNAVAILABLE, "no route");
		while (taken <= COUNT) {
			status = vdi_watchchan_take(world.watchchan, events, most, &count);
			if (status == VD_AGAIN) {
				vdi_sim_run_until_idle(world.env);
				continue;
			}
			assert_status(status, VD_OK);
			for (size_t i = 0; i < count; i++) {
				assert_int_equal(events[i].type == VD_WATCH_ERROR, taken++ == COUNT);
				vdi_watchchan_event_fini(&events[i]);
			}
		}
		assert_status(vdi_watchchan_take(world.watchchan, events, most, &count), VD_CLOSED);
		world_fini(&world);
	}
}

/* ---- The receiver ---- */

/* Told once each time it has found nothing: of an event, and of the end. */
static void the_receiver_is_told_once(void **state)
{
	struct world		   world;
	struct vdi_watchchan_event events[4];
	size_t			   count = 9;

	world_init(&world);
	open_watch(&world);
	assert_int_equal(world.ready, 0);
	tell_progress(&world, 2);
	assert_int_equal(world.ready, 1);
	tell_progress(&world, 3);
	assert_int_equal(world.ready, 1); /* it has not looked yet */
	assert_status(vdi_watchchan_take(world.watchchan, events, 4, &count), VD_OK);
	assert_int_equal(count, 2);
	assert_int_equal(events[0].revision, 2);
	assert_int_equal(events[1].revision, 3);
	tell_progress(&world, 4);
	assert_int_equal(world.ready, 1); /* nor has it found nothing */
	assert_status(vdi_watchchan_take(world.watchchan, events, 1, &count), VD_OK);
	assert_int_equal(count, 1);
	assert_status(vdi_watchchan_take(world.watchchan, events, 4, &count), VD_AGAIN);
	assert_int_equal(count, 0);
	tell_progress(&world, 5);
	assert_int_equal(world.ready, 2);
	assert_status(vdi_watchchan_take(world.watchchan, events, 4, &count), VD_OK);
	assert_status(vdi_watchchan_take(world.watchchan, events, 4, &count), VD_AGAIN);
	tell_status(&world, VD_CLOSED, NULL);
	assert_int_equal(world.ready, 3);
	vd_actor_wake(world.watchchan->actor);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(world.ready, 3);
	assert_status(vdi_watchchan_take(world.watchchan, events, 4, &count), VD_CLOSED);
	assert_int_equal(count, 0);
	world_fini(&world);
}

/* After close nothing is told, whatever the store says; the watch of the store is closed once, and a read
 * that is under way is waited for. */
static void r228_the_end_waits_for_the_store(void **state)
{
	struct world  world;
	struct vd_kv *kv;

	world_init(&world);
	open_watch(&world);
	answer_new(&world)->revision = 2;
	world.script.request.ready(world.script.request.ready_arg);
	vdi_watchchan_close(world.watchchan, on_closed, &world.closed);
	vdi_sim_run_until_idle(world.env);
	assert_true(world.closed);
	assert_int_equal(world.ready, 0);
	assert_int_equal(world.script.closed, 1);
	world.watchchan = NULL;
	world_fini(&world);
	for (int workers = 0; workers < 3; workers += 2) {
		world_init(&world);
		world.options.revision = 0;
		world.options.decode_workers = workers;
		open_watch(&world);
		vdi_watchchan_close(world.watchchan, on_closed, &world.closed);
		vdi_sim_run_until_idle(world.env);
		assert_false(world.closed);
		kv = record("a", "x", 2, 2);
		answer_range(&world, VD_OK, 2, &kv, 1, true, NULL);
		assert_true(world.closed);
		assert_int_equal(world.ready, 0);
		assert_int_equal(world.script.ranges, 1);
		world.watchchan = NULL;
		world_fini(&world);
	}
	world.closed = false;
	vdi_watchchan_close(NULL, on_closed, &world.closed);
	assert_true(world.closed);
	vdi_watchchan_close(NULL, NULL, NULL);
}

/* ---- What is counted ---- */

static int64_t counted(struct world *world, enum vdi_metric_id id, const char *first, const char *second,
		       const char *third)
{
	const char	  *values[] = { first, second, third, NULL };
	struct vdi_metric *metric;
	int64_t		   value;

	assert_status(vdi_metric_get(vdi_env_metrics(world->env), id, values, &metric), VD_OK);
	value = vdi_metric_value(metric);
	vdi_metric_release(metric);
	return value;
}

/* rules */
static void r723_the_requests_are_counted_under_their_names(void **state)
{
	for (int single = 0; single < 2; single++) {
		struct vdi_storage_metrics *metrics;
		struct world		    world;
		struct vd_kv		   *kv;

		world_init(&world);
		assert_status(vdi_storage_metrics_new(world.env, "g", "pods", &metrics), VD_OK);
		world.options.metrics = metrics;
		world.options.send_initial_events = VD_TRUE;
		world.options.recursive = !single;
		if (single)
			world.options.key = vd_bytes_of(KEY "a");
		open_watch(&world);
		answer_range(&world, VD_OK, 2, NULL, 0, false, NULL);
		assert_int_equal(counted(&world, VDI_METRIC_ETCD_REQUESTS_TOTAL, "getCurrentResourceVersion",
					 "g", "pods"),
				 1);
		assert_int_equal(
			counted(&world, VDI_METRIC_ETCD_REQUESTS_TOTAL, single ? "get" : "list", "g", "pods"),
			0);
		kv = record("a", "x", 2, 2);
		answer_range(&world, VD_OK, 2, &kv, 1, false, NULL);
		assert_int_equal(counted(&world, VDI_METRIC_ETCD_REQUESTS_TOTAL, "getCurrentResourceVersion",
					 "g", "pods"),
				 1);
		assert_int_equal(
			counted(&world, VDI_METRIC_ETCD_REQUESTS_TOTAL, single ? "get" : "list", "g", "pods"),
			1);
		assert_int_equal(
			counted(&world, VDI_METRIC_ETCD_REQUESTS_TOTAL, single ? "list" : "get", "g", "pods"),
			0);
		assert_int_equal(counted(&world, VDI_METRIC_ETCD_REQUEST_ERRORS_TOTAL,
					 single ? "get" : "list", "g", "pods"),
				 0);
		tell_event(&world, false, record("a", "x", 2, 3), record("a", "x", 2, 2));
		tell_event(&world, false, record("a", "x", 2, 4), record("a", "x", 2, 3));
		tell_progress(&world, 5);
		assert_int_equal(counted(&world, VDI_METRIC_STORAGE_EVENTS_RECEIVED_TOTAL, "g", "pods", NULL),
				 2);
		assert_int_equal(counted(&world, VDI_METRIC_ETCD_BOOKMARK_TOTAL, "g", "pods", NULL), 1);
		close_watch(&world);
		world.options.revision = 0;
		world.script.refuse = VD_UNAVAILABLE; /* refused at once is counted, too */
		open_watch(&world);
		assert_int_equal(counted(&world, VDI_METRIC_ETCD_REQUEST_ERRORS_TOTAL,
					 single ? "get" : "list", "g", "pods"),
				 1);
		close_watch(&world);
		vdi_storage_metrics_free(metrics);
		world_fini(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r206_the_watch_begins_behind_its_base),
		cmocka_unit_test(r201_the_key_is_copied),
		cmocka_unit_test(r207_the_pages_that_are_asked_for),
		cmocka_unit_test(r207_one_key_has_one_page),
		cmocka_unit_test(r202_r206_what_each_start_asks),
		cmocka_unit_test(r138_the_revision_of_everything),
		cmocka_unit_test(r208_a_long_read_that_does_not_begin),
		cmocka_unit_test(r211_progress_is_asked_for_once),
		cmocka_unit_test(r201_what_is_refused),
		cmocka_unit_test(r227_each_failure_in_its_words),
		cmocka_unit_test(r206_a_state_of_the_future),
		cmocka_unit_test(r226_an_error_behind_full_queues),
		cmocka_unit_test(r226_the_end_is_behind_the_error),
		cmocka_unit_test(the_receiver_is_told_once),
		cmocka_unit_test(r228_the_end_waits_for_the_store),
		cmocka_unit_test(r723_the_requests_are_counted_under_their_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
