/* Unit tests of storage/history/local_recorder.c: what it asks of the store, where a history begins again,
 * and when marks, syncs, and retries are due. */
#include "local_script.h"

static vd_rev oldest(struct local *l)
{
	return metric_of(l, VDI_METRIC_LOCAL_HISTORY_OLDEST_REVISION);
}

static vd_rev newest(struct local *l)
{
	return metric_of(l, VDI_METRIC_LOCAL_HISTORY_NEWEST_REVISION);
}

static int64_t drops(struct local *l)
{
	return metric_of(l, VDI_METRIC_LOCAL_HISTORY_DROPS_TOTAL);
}

/* ---- What it asks for ---- */

static void the_whole_prefix_is_watched_with_what_was_replaced(void **state)
{
	struct local l;

	local_init(&l, 7);
	local_open(&l);
	assert_int_equal(l.script.opens, 1);
	assert_string_equal(l.script.key, "/registry/");
	assert_string_equal(l.script.range_end, "/registry0");
	assert_int_equal(l.script.starts[0], 2);
	assert_true(l.script.request.previous);
	assert_true(l.script.request.progress);
	assert_false(l.script.request.no_put || l.script.request.no_delete);
	assert_int_equal(l.script.taken_max, 256);
	local_fini(&l);
}

/* Nothing is known yet: as far back as the store goes, and at most 10,000 revisions. */
static void a_new_history_begins_where_the_store_does(void **state)
{
	static const struct {
		vd_rev compacted, current, floor;
	} cases[] = { { -1, 1, 1 },	   { 0, 500, 1 },	{ 1, 500, 1 },	      { 2, 500, 2 },
		      { -1, 10000, 1 },	   { -1, 10001, 1 },	{ -1, 10002, 2 },     { 500, 10400, 500 },
		      { 500, 10500, 500 }, { 500, 10501, 501 }, { 500, 20000, 10000 } };

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct local l;

		local_init(&l, cases[i].current);
		l.script.status.compacted = cases[i].compacted;
		local_open(&l);
		assert_int_equal(l.script.starts[0], cases[i].floor + 1);
		assert_int_equal(oldest(&l), cases[i].floor);
		assert_int_equal(newest(&l), cases[i].floor);
		assert_int_equal(status_of(&l).kept, cases[i].floor);
		assert_int_equal(status_of(&l).history, 0);
		assert_string_equal(l.log, "");
		local_fini(&l);
	}
}

/* ---- What it hears ---- */

static void each_revision_is_recorded_once(void **state)
{
	struct local l;

	local_init(&l, 10);
	local_open(&l);
	say(&l, 11, 4);
	assert_int_equal(newest(&l), 14);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_EVENTS_TOTAL), 4);
	/* Told again, as after a watch that was opened again: only what is new counts. */
	say(&l, 13, 4);
	assert_int_equal(newest(&l), 16);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_EVENTS_TOTAL), 6);
	say(&l, 16, 1);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_EVENTS_TOTAL), 6);
	assert_int_equal(l.script.opens, 1);
	local_fini(&l);
}

/* Several changes of one revision are one record, wherever they stand in the batch. */
static void a_revision_of_several_changes_stays_whole(void **state)
{
	struct local l;
	struct step *step;

	local_init(&l, 10);
	local_open(&l);
	step = next_step(&l);
	step->events[0].kv = created_at(11);
	step->events[1].kv = new_record("/registry/a", 12, 12, 1);
	step->events[2].kv = new_record("/registry/b", 12, 12, 1);
	step->events[3].kv = new_record("/registry/c", 12, 12, 1);
	step->event_count = 4;
	step->revision = 12;
	for (size_t i = 0; i < 4; i++)
		l.script.has[l.script.has_count++] = step->events[i].kv;
	l.script.status.current = 12;
	now_ready(&l);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_EVENTS_TOTAL), 4);
	local_close(&l);
	local_open(&l);
	assert_int_equal(status_of(&l).history, 1);
	assert_int_equal(history_of(&l)->loaded->count, 4);
	assert_int_equal(l.script.starts[1], 13);
	local_fini(&l);
}

static void many_batches_are_taken_in_one_go(void **state)
{
	struct local l;

	local_init(&l, 10);
	local_open(&l);
	for (vd_rev revision = 11; revision < 60; revision++) {
		struct step *step = next_step(&l);

		step->events[0].kv = created_at(revision);
		step->event_count = 1;
		step->revision = revision;
	}
	now_ready(&l);
	assert_int_equal(l.script.step_next, 49);
	assert_int_equal(newest(&l), 59);
	local_fini(&l);
}

/* An update of a record that nobody has told: what was there before cannot be known, so the history begins
 * behind it. */
static void what_cannot_be_told_begins_a_new_history(void **state)
{
	struct local l;
	struct step *step;

	local_init(&l, 10);
	local_open(&l);
	say(&l, 11, 2);
	step = next_step(&l);
	step->events[0].kv = created_at(13);
	step->events[1].kv = new_record("/registry/old", 5, 14, 3);
	step->events[2].kv = created_at(15);
	step->event_count = 3;
	step->revision = 15;
	now_ready(&l);
	assert_int_equal(lines_with(&l, "W "), 1);
	assert_int_equal(lines_with(&l, "W the local history starts over after revision 14: etcd sent a "
					"change without the previous record"),
			 1);
	assert_int_equal(oldest(&l), 14);
	assert_int_equal(newest(&l), 14);
	assert_int_equal(drops(&l), 1);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_EVENTS_TOTAL), 3);
	/* It goes on from there at once: the rest of the batch is told again. */
	assert_int_equal(l.script.opens, 2);
	assert_int_equal(l.script.closed, 1);
	assert_int_equal(l.script.starts[1], 15);
	assert_int_equal(status_of(&l).kept, 1); /* the caches forget nothing */
	say(&l, 15, 1);
	assert_int_equal(newest(&l), 15);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_RECORDING), 1);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_FAILURES_TOTAL), 0);
	local_fini(&l);
}

/* ---- The store has compacted what was not recorded yet ---- */

static void after_expired_it_begins_where_the_store_still_can(void **state)
{
	static const struct {
		vd_rev error_compacted, compacted, current, floor;
		bool   status_fails;
	} cases[] = {
		{ 30, -1, 50, 30, false }, /* as the error says */
		{ 30, 40, 50, 40, false }, /* as the status says, which is newer */
		{ 30, 20, 50, 30, false }, /* or older */
		{ 5, -1, 50, 13, false },  /* what was recorded up to 12 is not begun again */
		{ 12, -1, 50, 13, false },	 { 13, -1, 50, 13, false }, { 14, -1, 50, 14, false },
		{ 30, -1, 20030, 10030, false }, /* and not further back than 10,000 */
		{ 30, -1, 10031, 31, false },	 { 30, 0, 0, 30, true }, /* nothing but the error is known */
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct local l;

		local_init(&l, 10);
		local_open(&l);
		say(&l, 11, 2);
		l.script.status.compacted = cases[i].compacted;
		l.script.status.current = cases[i].current;
		l.script.status_code = cases[i].status_fails ? VD_UNAVAILABLE : VD_OK;
		say_end(&l, VD_EXPIRED, cases[i].error_compacted);
		assert_int_equal(lines_with(&l, "W "), 1);
		assert_int_equal(lines_with(&l, "starts over: etcd has compacted the changes after revision "
						"12 before they were recorded"),
				 1);
		assert_int_equal(oldest(&l), cases[i].floor);
		assert_int_equal(newest(&l), cases[i].floor);
		assert_int_equal(drops(&l), 1);
		/* At once. */
		assert_int_equal(l.script.opens, 2);
		assert_int_equal(l.script.closed, 1);
		assert_int_equal(l.script.starts[1], cases[i].floor + 1);
		l.script.status_code = VD_OK;
		assert_int_equal(status_of(&l).kept, 1);
		local_fini(&l);
	}
}

/* A store that does not say how far it has compacted is not asked again and again. */
static void expired_without_a_revision_is_tried_again_later(void **state)
{
	struct local l;

	local_init(&l, 10);
	local_open(&l);
	say(&l, 11, 2);
	l.script.status.compacted = 33;
	l.script.status.current = 50;
	say_end(&l, VD_EXPIRED, 0);
	assert_int_equal(oldest(&l), 33);
	assert_int_equal(l.script.opens, 1);
	vdi_sim_advance(l.env, VD_MS(999));
	assert_int_equal(l.script.opens, 1);
	vdi_sim_advance(l.env, VD_MS(1));
	assert_int_equal(l.script.opens, 2);
	assert_int_equal(l.script.starts[1], 34);
	local_fini(&l);
}

/* The same at the very moment when a watch that broke was to be opened again: the new beginning waits no
 * longer. */
static void a_new_beginning_does_not_wait_for_the_next_retry(void **state)
{
	struct local l;

	(void) state;
	local_init(&l, 10);
	local_open(&l);
	*next_step(&l) = (struct step) { .status = VD_UNAVAILABLE };
	*next_step(&l) = (struct step) { .status = VD_EXPIRED, .compacted = 30 };
	now_ready(&l);
	vdi_sim_advance(l.env, VD_MS(999));
	assert_int_equal(l.script.opens, 1);
	vdi_sim_advance(l.env, VD_MS(1));
	assert_int_equal(l.script.opens, 3);
	assert_int_equal(l.script.opened_at[2].ns, l.script.opened_at[1].ns);
	assert_int_equal(l.script.starts[2], 31);
	local_fini(&l);
}

/* Nothing is lost by it when nothing was heard yet: not a word, and not counted. */
static void a_new_history_that_looked_back_too_far_is_no_loss(void **state)
{
	struct local l;

	local_init(&l, 10);
	local_open(&l);
	say_end(&l, VD_EXPIRED, 6);
	assert_int_equal(l.script.starts[1], 7);
	say_end(&l, VD_EXPIRED, 8);
	assert_int_equal(l.script.starts[2], 9);
	assert_string_equal(l.log, "");
	assert_int_equal(drops(&l), 0);
	/* Progress is news too. */
	send_progress(&l, 10);
	say_end(&l, VD_EXPIRED, 20);
	assert_int_equal(lines_with(&l, "has compacted the changes after revision 10 "), 1);
	assert_int_equal(drops(&l), 1);
	/* And the next one follows a new beginning again. */
	say_end(&l, VD_EXPIRED, 25);
	assert_int_equal(lines_with(&l, "W "), 1);
	assert_int_equal(drops(&l), 1);
	say(&l, 26, 1);
	say_end(&l, VD_EXPIRED, 40);
	assert_int_equal(lines_with(&l, "W "), 2);
	assert_int_equal(drops(&l), 2);
	local_fini(&l);
}

/* ---- Waiting ---- */

static void assert_opened_at(struct local *l, vd_mono from, const int *seconds, unsigned count)
{
	assert_int_equal(l->script.opens, count);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(l->script.opened_at[i].ns, from.ns + VD_SECONDS(seconds[i]).ns);
}

static void a_store_that_refuses_is_asked_more_and_more_seldom(void **state)
{
	static const int seconds[] = { 0, 1, 3, 7, 15, 31, 61, 91, 121 };
	struct local	 l;
	vd_mono		 from;

	local_init(&l, 10);
	l.script.refuse_watch = VD_UNAVAILABLE;
	from = vd_env_now(l.env);
	local_open(&l);
	vdi_sim_advance(l.env, VD_SECONDS(130));
	assert_opened_at(&l, from, seconds, 9);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_RECORDING), 0);
	/* It works: the next failure is the first again. */
	l.script.refuse_watch = VD_OK;
	vdi_sim_advance(l.env, VD_SECONDS(30));
	assert_int_equal(l.script.opens, 10);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_RECORDING), 1);
	forget_opens(&l);
	from = vd_env_now(l.env);
	say_end(&l, VD_UNAVAILABLE, 0);
	assert_int_equal(l.script.closed, 1);
	vdi_sim_advance(l.env, VD_SECONDS(10));
	assert_opened_at(&l, from, (const int[]) { 1 }, 1);
	assert_string_equal(l.log, ""); /* the store tells people what is wrong */
	local_fini(&l);
}

static void a_store_that_is_closed_is_left_alone(void **state)
{
	for (int is_open = 0; is_open < 2; is_open++) {
		struct local l;

		local_init(&l, 10);
		l.script.refuse_watch = is_open ? VD_OK : VD_CLOSED;
		local_open(&l);
		if (is_open)
			say_end(&l, VD_CLOSED, 0);
		vdi_sim_advance(l.env, VD_SECONDS(300));
		assert_int_equal(l.script.opens, 1);
		assert_int_equal(l.script.live, 0);
		assert_string_equal(l.log, "");
		local_fini(&l);
	}
}

/* ---- Marks ---- */

static void progress_is_written_at_most_every_ten_seconds(void **state)
{
	struct local l;

	local_init(&l, 10);
	local_open(&l);
	send_progress(&l, 50);
	assert_int_equal(newest(&l), 50);
	send_progress(&l, 60);
	send_progress(&l, 55); /* never back */
	vdi_sim_advance(l.env, VD_MS(9999));
	assert_int_equal(newest(&l), 50);
	vdi_sim_advance(l.env, VD_MS(1));
	assert_int_equal(newest(&l), 60);
	/* Nothing new: nothing is written. */
	{
		uint64_t operations;

		vdi_sim_advance(l.env, VD_SECONDS(20));
		operations = vdi_disk_sim_operations(l.disk);
		send_progress(&l, 60);
		vdi_sim_advance(l.env, VD_SECONDS(20));
		assert_int_equal(vdi_disk_sim_operations(l.disk), operations);
	}
	/* Events say the same. */
	send_progress(&l, 70);
	assert_int_equal(newest(&l), 70);
	send_progress(&l, 80);
	say(&l, 85, 1);
	assert_int_equal(newest(&l), 85);
	vdi_sim_advance(l.env, VD_SECONDS(20));
	assert_int_equal(newest(&l), 85);
	assert_int_equal(oldest(&l), 1);
	local_fini(&l);
}

/* A mark is due ten seconds after the last one, whatever else is due before or after. */
static void a_mark_has_a_time_of_its_own(void **state)
{
	struct local l;

	(void) state;
	local_init(&l, 10);
	local_open(&l);
	vdi_sim_advance(l.env, VD_SECONDS(3));
	send_progress(&l, 50);
	assert_int_equal(newest(&l), 50);
	vdi_sim_advance(l.env, VD_SECONDS(8));
	send_progress(&l, 60);
	vdi_sim_advance(l.env, VD_MS(1999));
	assert_int_equal(newest(&l), 50);
	vdi_sim_advance(l.env, VD_MS(1));
	assert_int_equal(newest(&l), 60);
	local_fini(&l);
}

/* What was heard is on the disk when it closes, and the next start goes on behind it. */
static void the_end_writes_what_was_heard(void **state)
{
	struct local l;

	local_init(&l, 10);
	local_open(&l);
	say(&l, 11, 1);
	send_progress(&l, 50);
	send_progress(&l, 60);
	assert_int_equal(newest(&l), 50);
	l.script.status.current = 60;
	local_close(&l);
	vdi_disk_sim_crash(l.disk); /* all of it was synced */
	forget_opens(&l);
	local_open(&l);
	assert_int_equal(newest(&l), 60);
	assert_int_equal(l.script.starts[0], 61);
	assert_int_equal(status_of(&l).history, 1);
	local_fini(&l);
}

/* What a watch said of its progress holds for that watch. */
static void progress_of_a_watch_that_broke_is_not_written(void **state)
{
	struct local l;

	local_init(&l, 10);
	local_open(&l);
	send_progress(&l, 50);
	*next_step(&l) = (struct step) { .revision = 60 };
	say_end(&l, VD_UNAVAILABLE, 0);
	vdi_sim_advance(l.env, VD_SECONDS(30));
	assert_int_equal(newest(&l), 50);
	assert_int_equal(l.script.starts[1], 51);
	local_fini(&l);
}

static void progress_is_asked_for_while_the_store_is_ahead(void **state)
{
	struct local l;

	local_init(&l, 10);
	local_open(&l);
	assert_int_equal(l.script.asks, 1); /* 10 is more than 1 */
	vdi_sim_advance(l.env, VD_MS(9999));
	assert_int_equal(l.script.asks, 1);
	say(&l, 3, 1); /* other work asks no sooner */
	send_progress(&l, 4);
	assert_int_equal(l.script.asks, 1);
	vdi_sim_advance(l.env, VD_MS(1));
	assert_int_equal(l.script.asks, 2);
	/* It came. */
	send_progress(&l, 10);
	vdi_sim_advance(l.env, VD_SECONDS(60));
	assert_int_equal(l.script.asks, 2);
	l.script.status.current = 11;
	vdi_sim_advance(l.env, VD_SECONDS(10));
	assert_int_equal(l.script.asks, 3);
	/* Known, though not written yet. */
	send_progress(&l, 11);
	send_progress(&l, 12);
	l.script.status.current = 12;
	vdi_sim_advance(l.env, VD_SECONDS(9));
	assert_int_equal(l.script.asks, 3);
	/* A store that does not answer is not asked. */
	vdi_sim_advance(l.env, VD_SECONDS(11));
	l.script.status.current = 20;
	l.script.status_code = VD_UNAVAILABLE;
	vdi_sim_advance(l.env, VD_SECONDS(30));
	assert_int_equal(l.script.asks, 3);
	local_fini(&l);
}

/* ---- The disk ---- */

static bool is_durable(struct local *l)
{
	int64_t	       size = 0, durable_size = 0;
	const uint8_t *content = vdi_disk_sim_content(l->disk, "history-0000000000000001.vdh", &size);
	const uint8_t *durable = vdi_disk_sim_durable(l->disk, "history-0000000000000001.vdh", &durable_size);

	assert_non_null(content);
	return durable && size == durable_size && memcmp(content, durable, (size_t) size) == 0;
}

/* The loss of power costs five seconds at most, however busy it is. */
static void what_was_written_is_synced_within_five_seconds(void **state)
{
	struct local l;

	local_init(&l, 10);
	local_open(&l);
	vdi_sim_advance(l.env, VD_SECONDS(20));
	assert_true(is_durable(&l));
	for (int round = 0; round < 2; round++) {
		say(&l, 11 + round * 5, 1);
		for (int i = 1; i < 5; i++) {
			vdi_sim_advance(l.env, VD_SECONDS(1));
			say(&l, 11 + round * 5 + i, 1);
			assert_false(is_durable(&l));
		}
		vdi_sim_advance(l.env, VD_MS(999));
		assert_false(is_durable(&l));
		vdi_sim_advance(l.env, VD_MS(1));
		assert_true(is_durable(&l));
		vdi_sim_advance(l.env, VD_SECONDS(7));
	}
	local_fini(&l);
}

/* A store that has something to say at once is synced five seconds later like any other. */
static void what_the_first_run_writes_is_synced_after_five_seconds_too(void **state)
{
	struct local l;
	struct step *step;

	(void) state;
	local_init(&l, 10);
	step = next_step(&l);
	step->events[0].kv = created_at(5);
	step->event_count = 1;
	step->revision = 5;
	local_open(&l);
	assert_int_equal(newest(&l), 5);
	vdi_sim_advance(l.env, VD_MS(4999));
	assert_false(is_durable(&l));
	vdi_sim_advance(l.env, VD_MS(1));
	assert_true(is_durable(&l));
	local_fini(&l);
}

static void a_full_disk_is_tried_more_and_more_seldom(void **state)
{
	static const int seconds[] = { 1, 3, 7, 15, 31, 61, 91 };
	struct local	 l;
	size_t		 at = 0;

	local_init(&l, 10);
	local_open(&l);
	vdi_sim_advance(l.env, VD_SECONDS(20));
	vdi_disk_sim_set_capacity(l.disk, 0);
	say(&l, 11, 2);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_FAILURES_TOTAL), 1);
	for (int second = 1; second < 100; second++) {
		int64_t failures;

		vdi_sim_advance(l.env, VD_SECONDS(1));
		at += at < 7 && second == seconds[at];
		failures = metric_of(&l, VDI_METRIC_LOCAL_HISTORY_FAILURES_TOTAL);
		assert_int_equal(failures, 1 + at);
		assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_RECORDING), 0);
	}
	assert_int_equal(lines_with(&l, "W "), 1);
	vdi_disk_sim_set_capacity(l.disk, INT64_MAX);
	vdi_sim_advance(l.env, VD_SECONDS(30));
	assert_int_equal(lines_with(&l, "I the local history is written again"), 1);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_RECORDING), 1);
	/* Nothing is lost, and the next trouble is said again and tried after a second. */
	assert_int_equal(newest(&l), 12);
	assert_int_equal(oldest(&l), 1);
	assert_int_equal(drops(&l), 0);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_EVENTS_TOTAL), 2);
	vdi_disk_sim_set_capacity(l.disk, 0);
	say(&l, 13, 1);
	assert_int_equal(lines_with(&l, "W "), 2);
	vdi_disk_sim_set_capacity(l.disk, INT64_MAX);
	vdi_sim_advance(l.env, VD_SECONDS(1));
	assert_int_equal(lines_with(&l, "I the local history is written again"), 2);
	assert_int_equal(newest(&l), 13);
	local_fini(&l);
}

/* The same disk that fails: nobody knows what is on it, so the history begins where it ended. */
static void a_disk_that_fails_begins_where_the_history_ended(void **state)
{
	struct local l;

	local_init(&l, 10);
	local_open(&l);
	say(&l, 11, 4);
	vdi_sim_advance(l.env, VD_SECONDS(20));
	vdi_disk_sim_fail_nth(l.disk, 1, VDI_DISK_SIM_IO);
	say(&l, 15, 2);
	assert_int_equal(lines_with(&l, "W the local history starts over, recorded changes are dropped: "),
			 1);
	assert_int_equal(oldest(&l), 16);
	assert_int_equal(newest(&l), 16);
	assert_int_equal(drops(&l), 1);
	assert_int_equal(metric_of(&l, VDI_METRIC_LOCAL_HISTORY_FAILURES_TOTAL), 1);
	assert_int_equal(l.script.opens, 1);
	vdi_sim_advance(l.env, VD_MS(999));
	assert_int_equal(l.script.opens, 1);
	vdi_sim_advance(l.env, VD_MS(1));
	assert_int_equal(l.script.opens, 2);
	assert_int_equal(l.script.starts[1], 17);
	assert_int_equal(status_of(&l).kept, 1);
	local_fini(&l);
}

/* The caches keep what the window keeps: what left it since the disk failed counts again. */
static void what_is_kept_follows_the_window_after_a_new_beginning(void **state)
{
	struct local l;
	vd_rev	     revision = 40;

	local_init(&l, 10);
	l.options.history_window = VD_SECONDS(80);
	local_open(&l);
	say(&l, 11, 1);
	say_end(&l, VD_EXPIRED, 30);
	assert_int_equal(oldest(&l), 30);
	assert_int_equal(status_of(&l).kept, 1);
	for (unsigned i = 0; i < 30; i++) {
		say(&l, revision++, 1);
		vdi_sim_advance(l.env, VD_SECONDS(10));
	}
	assert_true(oldest(&l) > 30);
	assert_int_equal(status_of(&l).kept, oldest(&l));
	local_fini(&l);
}

/* ---- The loaded history ---- */

static void the_loaded_history_stays_for_a_minute_after_its_last_use(void **state)
{
	struct vd_store_watch_request request = { .key = vd_bytes_of("/registry/pods/"),
						  .range_end = vd_bytes_of("/registry/pods0"),
						  .start_revision = 11 };
	struct vd_store_watch	     *watch;
	struct local		      l;

	local_init(&l, 10);
	local_open(&l);
	say(&l, 11, 2);
	local_close(&l);
	local_open(&l);
	request.ready = count_ready;
	request.ready_arg = &l.ready;
	assert_int_equal(status_of(&l).history, 1);
	vdi_sim_advance(l.env, VD_SECONDS(59));
	/* One that the loaded history cannot serve is no use of it. */
	request.start_revision = 13;
	assert_status(vd_store_watch_open(l.store, &request, &watch, NULL), VD_OK);
	vd_store_watch_close(watch);
	vdi_sim_advance(l.env, VD_MS(999));
	assert_int_equal(status_of(&l).history, 1);
	request.start_revision = 12;
	assert_status(vd_store_watch_open(l.store, &request, &watch, NULL), VD_OK);
	vdi_sim_advance(l.env, VD_MS(59999));
	assert_int_equal(status_of(&l).history, 1);
	vdi_sim_advance(l.env, VD_MS(1));
	assert_int_equal(status_of(&l).history, 0);
	/* Who reads it still has it. */
	{
		struct vd_store_batch batch;

		assert_status(vd_store_watch_next(watch, 10, &batch, NULL), VD_OK);
		assert_int_equal(batch.revision, 12);
	}
	vd_store_watch_close(watch);
	local_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_whole_prefix_is_watched_with_what_was_replaced),
		cmocka_unit_test(a_new_history_begins_where_the_store_does),
		cmocka_unit_test(each_revision_is_recorded_once),
		cmocka_unit_test(a_revision_of_several_changes_stays_whole),
		cmocka_unit_test(many_batches_are_taken_in_one_go),
		cmocka_unit_test(what_cannot_be_told_begins_a_new_history),
		cmocka_unit_test(after_expired_it_begins_where_the_store_still_can),
		cmocka_unit_test(expired_without_a_revision_is_tried_again_later),
		cmocka_unit_test(a_new_beginning_does_not_wait_for_the_next_retry),
		cmocka_unit_test(a_new_history_that_looked_back_too_far_is_no_loss),
		cmocka_unit_test(a_store_that_refuses_is_asked_more_and_more_seldom),
		cmocka_unit_test(a_store_that_is_closed_is_left_alone),
		cmocka_unit_test(progress_is_written_at_most_every_ten_seconds),
		cmocka_unit_test(the_end_writes_what_was_heard),
		cmocka_unit_test(progress_of_a_watch_that_broke_is_not_written),
		cmocka_unit_test(progress_is_asked_for_while_the_store_is_ahead),
		cmocka_unit_test(a_mark_has_a_time_of_its_own),
		cmocka_unit_test(what_was_written_is_synced_within_five_seconds),
		cmocka_unit_test(what_the_first_run_writes_is_synced_after_five_seconds_too),
		cmocka_unit_test(a_full_disk_is_tried_more_and_more_seldom),
		cmocka_unit_test(a_disk_that_fails_begins_where_the_history_ended),
		cmocka_unit_test(what_is_kept_follows_the_window_after_a_new_beginning),
		cmocka_unit_test(the_loaded_history_stays_for_a_minute_after_its_last_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
