/* Watches: E-311 to E-355. Tests that reproduce one of upstream's name it beside the rule:
 * server/storage/mvcc/watchable_store_test.go and watcher_test.go (TestWatch..., TestSyncWatchers,
 * TestWatchFutureRev, ...). */
#include "store_suite.h"

static void never_ready(void *arg)
{
	(void) arg;
}

static void e311_wrong_ranges_are_refused(void **state)
{
	struct store_fixture	     *f = *state;
	struct vd_store_watch_request request = { .key = K("b"), .range_end = K("a"), .ready = never_ready };
	struct vd_store_watch	     *watch = NULL;
	struct vd_error		      error;

	assert_status(vd_store_watch_open(f->store, &request, &watch, &error), VD_INVALID_ARGUMENT);
	request.range_end = K("b");
	assert_status(vd_store_watch_open(f->store, &request, &watch, &error), VD_INVALID_ARGUMENT);
	request =
		(struct vd_store_watch_request) { .key = K("b"), .start_revision = -1, .ready = never_ready };
	assert_status(vd_store_watch_open(f->store, &request, &watch, &error), VD_INVALID_ARGUMENT);
	request.start_revision = 0;
	request.range_end = ZERO_END;
	assert_status(vd_store_watch_open(f->store, &request, &watch, &error), VD_OK);
	vd_store_watch_close(watch);
	vd_store_watch_close(NULL);
}

static void e326_start_0_sees_what_comes_after(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      watcher;

	put(f, "a", "1");
	watch_range(f, &watcher, "a", NULL, 0);
	assert_true(watch_is_quiet(&watcher));
	put(f, "b", "1");
	assert_true(watch_is_quiet(&watcher));
	put(f, "a", "2");
	expect_watch(&watcher, 100, "4: a=2(1)");
	assert_true(watch_is_quiet(&watcher));
	watch_close(&watcher);
}

/* The watch starts when it is opened, not at the first call of next. */
static void e326_start_0_begins_when_opened(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      watcher;

	watch_range(f, &watcher, "a", NULL, 0);
	put(f, "a", "1");
	put(f, "x", "1");
	put(f, "a", "2");
	expect_watch(&watcher, 1, "2: +a=1");
	expect_watch(&watcher, 1, "4: a=2(1)");
	assert_true(watch_is_quiet(&watcher));
	watch_close(&watcher);
}

static void e327_prefixes_synced_and_unsynced(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      old;
	struct watcher	      live;
	struct watcher	      all;
	struct watcher	      tail;

	watch_range(f, &live, "foo", "fop", 0);
	watch_range(f, &all, "a", "", 0);
	watch_range(f, &tail, "foobar", "", 0);
	put(f, "foobar", "1");
	put(f, "fo", "1");
	put(f, "fop", "1");
	put(f, "foo", "1");
	watch_range(f, &old, "foo", "fop", 2);
	expect_watch(&live, 100, "2: +foobar=1 5: +foo=1");
	expect_watch(&old, 100, "2: +foobar=1 5: +foo=1");
	expect_watch(&all, 100, "2: +foobar=1 3: +fo=1 4: +fop=1 5: +foo=1");
	expect_watch(&tail, 100, "2: +foobar=1 4: +fop=1");
	assert_true(watch_is_quiet(&live) && watch_is_quiet(&old) && watch_is_quiet(&all) &&
		    watch_is_quiet(&tail));
	watch_close(&old);
	watch_close(&live);
	watch_close(&all);
	watch_close(&tail);
}

struct hundred {
	struct store_fixture *f;
	struct watcher	      watchers[100];
};

static unsigned woken(struct hundred *hundred)
{
	unsigned count = 0;

	for (int i = 0; i < 100; i++) {
		vdi_lock_acquire(&hundred->watchers[i].lock);
		count += hundred->watchers[i].ready_count;
		vdi_lock_release(&hundred->watchers[i].lock);
	}
	return count;
}

static bool two_events(void *arg)
{
	struct hundred *hundred = arg;

	return current(hundred->f) >= 3 && (!hundred->f->factory->is_remote || woken(hundred) >= 4);
}

static void e327_a_write_wakes_only_those_that_match(void **state)
{
	struct store_fixture *f = *state;
	struct hundred	     *hundred = test_calloc(1, sizeof *hundred);
	struct watcher	     *watchers = hundred->watchers;
	char		      key[8];

	hundred->f = f;
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof key, "k%02d", i);
		if (i % 2)
			watch_range(f, &watchers[i], key, NULL, 0);
		else
			watch_range(f, &watchers[i], key, i % 4 ? "k99" : "", 0);
		assert_true(watch_is_quiet(&watchers[i]));
	}
	put(f, "k05", "1");
	put(f, "k05", "2");
	wait_until(f, two_events, hundred);
	/* k05 itself, and the ranges from k00, k02, k04: each is woken once, although there were two
	 * writes. */
	assert_int_equal(woken(hundred), 4);
	expect_watch(&watchers[5], 100, "2: +k05=1 3: k05=2(1)");
	for (int i = 0; i < 100; i++)
		watch_close(&watchers[i]);
	test_free(hundred);
}

static void e329_one_revision_one_batch(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      watcher;
	struct vd_op	      ops[3] = { { .kind = VD_OP_PUT, .key = K("a"), .value = K("1") },
					 { .kind = VD_OP_PUT, .key = K("x"), .value = K("1") },
					 { .kind = VD_OP_PUT, .key = K("b"), .value = K("1") } };
	struct txn_answer     answer;

	for (int i = 0; i < 3; i++)
		txn_ops(f, ops, 3, &answer);
	watch_range(f, &watcher, "a", "c", 2);
	expect_watch(&watcher, 1, "2: +a=1 +b=1");
	expect_watch(&watcher, 3, "3: a=1(1) b=1(1) 4: a=1(1) b=1(1)");
	assert_true(watch_is_quiet(&watcher));
	watch_close(&watcher);
}

/* TestWatchDeleteRange. */
static void e329_delete_range_is_one_batch(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      watcher;

	put(f, "foo_0", "x");
	put(f, "foo_1", "y");
	put(f, "foo_2", "z");
	watch_range(f, &watcher, "foo_", "foo_9", 5);
	delete_range(f, "foo_0", "foo_3", NULL);
	expect_watch(&watcher, 1, "5: -foo_0(x) -foo_1(y) -foo_2(z)");
	assert_true(watch_is_quiet(&watcher));
	watch_close(&watcher);
}

/* TestSyncWatchers: many from an old revision. */
static void e333_to_e338_a_hundred_catch_up(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      watchers[100];

	put(f, "foo", "bar");
	for (int i = 0; i < 100; i++)
		watch_range(f, &watchers[i], "foo", NULL, 1);
	for (int i = 0; i < 100; i++) {
		expect_watch(&watchers[i], 100, "2: +foo=bar");
		assert_true(watch_is_quiet(&watchers[i]));
	}
	put(f, "foo", "baz");
	for (int i = 0; i < 100; i++)
		expect_watch(&watchers[i], 100, "3: foo=baz(bar)");
	for (int i = 0; i < 100; i++)
		watch_close(&watchers[i]);
}

/* A key that is a prefix of all other keys, at each place of the history: first, in the middle, last. It is
 * then the common prefix of a chunk of the history. */
static void e336_a_key_that_others_begin_with(void **state)
{
	static const char *const orders[][5] = { { "p", "p/1", "p/2", "p/3", "p/4" },
						 { "p/1", "p/2", "p", "p/3", "p/4" },
						 { "p/1", "p/2", "p/3", "p/4", "p" } };
	struct store_fixture	*f = *state;
	struct watcher		 watcher;
	vd_rev			 first = 2;

	for (size_t order = 0; order < VDI_ARRAY_SIZE(orders); order++) {
		vd_rev at = 0;
		char   expected[64];

		for (vd_rev i = 0; i < 5; i++) {
			put(f, orders[order][i], "/1"); /* a value that looks like the rest of another key */
			if (strcmp(orders[order][i], "p") == 0)
				at = first + i;
		}
		for (vd_rev start = first; start <= at; start++) {
			snprintf(expected, sizeof expected, order ? "%lld: p=/1(/1)" : "%lld: +p=/1",
				 (long long) at);
			watch_range(f, &watcher, "p", NULL, start);
			expect_watch(&watcher, 100, expected);
			assert_true(watch_is_quiet(&watcher));
			watch_close(&watcher);
			/* As the interval of that single key, and of everything before its children. */
			watch_range(f, &watcher, "p", "p/", start);
			expect_watch(&watcher, 100, expected);
			watch_close(&watcher);
		}
		first += 5;
	}
	/* No key is between it and its children, and none after them. */
	watch_range(f, &watcher, "p!", "p.", 2);
	assert_true(watch_is_quiet(&watcher));
	watch_close(&watcher);
	watch_range(f, &watcher, "o", "p", 2);
	assert_true(watch_is_quiet(&watcher));
	watch_close(&watcher);
}

/* TestWatchCompacted. */
static void e334_a_start_below_the_compaction_is_told(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      watcher;

	for (int i = 0; i < 10; i++)
		put(f, "foo", "bar");
	assert_status(compact(f, 6), VD_OK);
	watch_range(f, &watcher, "foo", NULL, 5);
	assert_status(watch_wait(&watcher, 100), VD_EXPIRED);
	assert_int_equal(watcher.error.compacted, 6);
	assert_int_equal(watcher.error.current, 11);
	assert_status(watch_wait(&watcher, 100), VD_EXPIRED);
	watch_close(&watcher);
}

/* TestWatchNoEventLossOnCompact: a slow watch gets its events or the error, never a gap. */
static void e334_no_gap_when_compaction_overtakes(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      watcher;

	for (int i = 0; i < 10; i++)
		put(f, "foo", "bar");
	watch_range(f, &watcher, "foo", NULL, 2);
	expect_watch(&watcher, 1, "2: +foo=bar");
	assert_status(compact(f, 3), VD_OK);
	/* The previous state is compacted: only events received before have it. */
	expect_watch(&watcher, 1, f->factory->is_remote ? "3: foo=bar(bar)" : "3: foo=bar");
	assert_status(compact(f, 6), VD_OK);
	if (f->factory->is_remote) {
		/* Events received before are delivered. */
		for (vd_rev next = 4; next <= 11; next++) {
			assert_status(watch_wait(&watcher, 1), VD_OK);
			assert_int_equal(watcher.batch.revision, next);
		}
	} else {
		assert_status(watch_wait(&watcher, 1), VD_EXPIRED);
		assert_int_equal(watcher.error.compacted, 6);
	}
	watch_close(&watcher);
}

static void e335_a_start_at_the_compaction_works(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      watcher;

	put(f, "a", "1");
	put(f, "a", "2");
	delete_range(f, "a", NULL, NULL);
	put(f, "b", "1");
	assert_status(compact(f, 4), VD_OK);
	watch_range(f, &watcher, "a", "", 4);
	assert_status(watch_wait(&watcher, 100), VD_OK);
	assert_int_equal(watcher.batch.event_count, 2);
	assert_true(watcher.batch.events[0].is_delete);
	assert_int_equal(watcher.batch.events[0].kv->mod_rev, 4);
	watch_close(&watcher);
}

/* The state before a compacted revision is not shown, even if the store still has it; the state before the
 * next revision is. */
static void e343_no_previous_record_at_the_compaction(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      early, late;

	put(f, "a", "1"); /* 2 */
	put(f, "b", "1");
	put(f, "a", "2"); /* 4 */
	put(f, "a", "3");
	delete_range(f, "b", NULL, NULL);
	watch_range(f, &early, "a", "\xff", 4);
	expect_watch(&early, 1, "4: a=2(1)");
	expect_watch(&early, 1, "5: a=3(2)");
	expect_watch(&early, 1, "6: -b(1)");
	assert_status(compact(f, 4), VD_OK);
	watch_range(f, &late, "a", "\xff", 4);
	expect_watch(&late, 1, "4: a=2");
	expect_watch(&late, 1, "5: a=3(2)");
	expect_watch(&late, 1, "6: -b(1)");
	watch_close(&late);
	assert_status(compact(f, 6), VD_OK);
	watch_range(f, &late, "a", "\xff", 6);
	expect_watch(&late, 1, "6: -b");
	put(f, "a", "4");
	expect_watch(&late, 1, "7: a=4(3)");
	expect_watch(&early, 1, "7: a=4(3)");
	watch_close(&late);
	watch_close(&early);
}

/* After one more revision, a possibly remote store knows every watch opened before, because requests arrive
 * in order. */
static void let_watches_arrive(struct store_fixture *f)
{
	struct watcher probe;

	watch_range(f, &probe, "probe", NULL, 0);
	put(f, "probe", "1");
	assert_status(watch_wait(&probe, 1), VD_OK);
	watch_close(&probe);
}

static void e334_compaction_below_an_idle_watch_does_not_disturb_it(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      idle;
	struct watcher	      never_asked;

	put(f, "a", "1");
	watch_range(f, &idle, "a", NULL, 0);
	watch_range(f, &never_asked, "a", NULL, 0);
	let_watches_arrive(f);
	assert_true(watch_is_quiet(&idle));
	for (int i = 0; i < 10; i++)
		put(f, "b", "1");
	assert_status(compact(f, 13), VD_OK);
	put(f, "a", "2");
	expect_watch(&idle, 100, "14: a=2(1)");
	expect_watch(&never_asked, 100, "14: a=2(1)");
	watch_close(&idle);
	watch_close(&never_asked);
}

/* Upstream bug 17507: it still gets progress. */
static void e334_an_idle_watch_gets_progress_beyond_the_compaction(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      idle;

	put(f, "a", "1");
	watch_range(f, &idle, "a", NULL, 0);
	let_watches_arrive(f);
	assert_true(watch_is_quiet(&idle));
	for (int i = 0; i < 10; i++)
		put(f, "b", "1");
	assert_status(compact(f, 13), VD_OK);
	assert_status(vd_store_watch_progress(idle.watch), VD_OK);
	expect_watch(&idle, 100, "progress 13");
	put(f, "a", "2");
	expect_watch(&idle, 100, "14: a=2(1)");
	watch_close(&idle);
}

/* Each iteration switches threads several times. */
#define RACES 2000

struct race {
	_Atomic int answered;
	_Atomic int failed;
};

static void race_answered(void *arg, vd_status status, const struct vd_txn_result *result,
			  const struct vd_error *error)
{
	struct race *race = arg;

	(void) result;
	(void) error;
	race->failed += status != VD_OK;
	race->answered++;
}

static bool race_over(void *arg)
{
	return ((struct race *) arg)->answered == RACES;
}

/* A write happens while the watch checks for events and begins to wait: the wake must not be lost. A lost one
 * ends in a timeout here. */
static void e328_no_wake_is_lost(void **state)
{
	struct store_fixture *f = *state;
	struct vd_op	      op = { .kind = VD_OP_PUT, .key = K("a"), .value = K("1") };
	struct vd_txn_request request = { .success = &op, .success_count = 1 };
	struct race	      race = { 0 };
	struct watcher	      watcher;

	watch_range(f, &watcher, "a", NULL, 0);
	for (vd_rev revision = 2; revision < RACES + 2; revision++) {
		assert_status(vd_store_txn(f->store, &request, race_answered, &race), VD_OK);
		assert_status(watch_wait(&watcher, 1), VD_OK);
		assert_int_equal(watcher.batch.event_count, 1);
		assert_int_equal(watcher.batch.revision, revision);
	}
	wait_until(f, race_over, &race);
	assert_int_equal(race.failed, 0);
	watch_close(&watcher);
}

/* TestWatchBatchUnsynced: batches are bounded, nothing is lost, in order. */
static void e336_batches_are_bounded(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      watcher;
	vd_rev		      expected = 2;

	put_many(f, "foo", "bar", 3000);
	watch_range(f, &watcher, "foo", NULL, 1);
	while (expected < 3002) {
		assert_status(watch_wait(&watcher, 500), VD_OK);
		assert_true(watcher.batch.event_count <= 500);
		for (size_t i = 0; i < watcher.batch.event_count; i++)
			assert_int_equal(watcher.batch.events[i].kv->mod_rev, expected++);
		assert_int_equal(watcher.batch.revision, expected - 1);
	}
	assert_true(watch_is_quiet(&watcher));
	watch_close(&watcher);
}

static void e339_filters(void **state)
{
	struct store_fixture	     *f = *state;
	struct vd_store_watch_request request = {
		.key = K("a"), .range_end = K("c"), .start_revision = 2, .no_put = true
	};
	struct watcher deletes;
	struct watcher puts;
	struct watcher live;

	put(f, "a", "1");
	delete_range(f, "a", NULL, NULL);
	watch_open(f, &deletes, &request);
	request.no_put = false;
	request.no_delete = true;
	watch_open(f, &puts, &request);
	request.start_revision = 0;
	request.range_end = VD_BYTES_NONE;
	watch_open(f, &live, &request);
	assert_true(watch_is_quiet(&live));
	put(f, "a", "2");
	delete_range(f, "a", NULL, NULL);
	expect_watch(&deletes, 100, "3: -a 5: -a");
	expect_watch(&puts, 100, "2: +a=1 4: +a=2");
	expect_watch(&live, 100, "4: +a=2");
	assert_true(watch_is_quiet(&live));
	delete_range(f, "a", "c", NULL);
	assert_true(watch_is_quiet(&live));
	watch_close(&deletes);
	watch_close(&puts);
	watch_close(&live);
}

/* TestWatchFutureRev; upstream bug 20221. */
static void e340_a_future_start(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      watcher;
	bool		      has_progress;

	watch_range(f, &watcher, "foo", NULL, 10);
	assert_true(watch_is_quiet(&watcher));
	has_progress = ask_progress(&watcher);
	for (int i = 2; i < 10; i++) {
		put(f, "foo", "bar");
		assert_true(watch_is_quiet(&watcher));
	}
	put(f, "foo", "ten");
	expect_watch(&watcher, 100, "10: foo=ten(bar)");
	if (has_progress)
		expect_watch(&watcher, 100, "progress 10");
	put(f, "foo", "eleven");
	expect_watch(&watcher, 100, "11: foo=eleven(ten)");
	watch_close(&watcher);
}

static void e340_progress_for_a_future_start_waits(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      watcher;

	watch_range(f, &watcher, "foo", NULL, 4);
	assert_true(watch_is_quiet(&watcher));
	assert_status(vd_store_watch_progress(watcher.watch), VD_OK);
	assert_true(watch_is_quiet(&watcher));
	put(f, "x", "1");
	put(f, "x", "2");
	assert_true(watch_is_quiet(&watcher));
	put(f, "x", "3");
	expect_watch(&watcher, 100, "progress 4");
	watch_close(&watcher);
}

static void e342_e343_what_events_carry(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      watcher;
	struct lease_answer   lease;
	struct vd_op	      op = { .kind = VD_OP_PUT, .key = K("a"), .value = K("2"), .lease = 77 };
	struct txn_answer     answer;

	lease_grant(f, 77, 100, &lease);
	put(f, "a", "1");
	txn_ops(f, &op, 1, &answer);
	delete_range(f, "a", NULL, NULL);
	put(f, "a", "4");
	watch_range(f, &watcher, "a", NULL, 2);
	assert_status(watch_wait(&watcher, 100), VD_OK);
	assert_int_equal(watcher.batch.event_count, 4);
	{
		const struct vd_store_event *events = watcher.batch.events;

		assert_true(vd_store_event_is_create(&events[0]));
		assert_null(events[0].previous);
		assert_int_equal(events[1].kv->create_rev, 2);
		assert_int_equal(events[1].kv->version, 2);
		assert_int_equal(events[1].kv->lease, 77);
		assert_int_equal(events[1].previous->mod_rev, 2);
		assert_true(events[2].is_delete);
		assert_int_equal(events[2].kv->mod_rev, 4);
		assert_int_equal(events[2].kv->create_rev, 0);
		assert_int_equal(events[2].kv->version, 0);
		assert_int_equal(events[2].kv->lease, 0);
		assert_int_equal(events[2].kv->value_size, 0);
		assert_int_equal(events[2].previous->lease, 77);
		assert_true(vd_store_event_is_create(&events[3]));
		assert_null(events[3].previous);
	}
	watch_close(&watcher);
}

/* TestWatchResponseEventsNotSharedAcrossWatchers: each watch has its own setting for previous records. */
static void e344_previous_only_for_those_who_asked(void **state)
{
	struct store_fixture	     *f = *state;
	struct vd_store_watch_request request = { .key = K("a") };
	struct watcher		      with;
	struct watcher		      without;

	put(f, "a", "1");
	watch_open(f, &without, &request);
	watch_range(f, &with, "a", NULL, 0);
	put(f, "a", "2");
	expect_watch(&without, 100, "3: a=2");
	expect_watch(&with, 100, "3: a=2(1)");
	watch_close(&with);
	watch_close(&without);
}

/* Synced to unsynced and back: an owner that does not read keeps its position (upstream's victims). */
static void e331_e332_a_slow_owner_loses_nothing(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      slow;
	struct watcher	      quick;
	vd_rev		      seen = 1;

	watch_range(f, &slow, "k", NULL, 0);
	watch_range(f, &quick, "k", NULL, 0);
	for (int i = 0; i < 20; i++) {
		put_many(f, "k", "v", 100);
		while (seen < current(f)) {
			assert_status(watch_wait(&quick, 1000), VD_OK);
			seen = quick.batch.revision;
		}
	}
	seen = 1;
	while (seen < 2001) {
		assert_status(watch_wait(&slow, 64), VD_OK);
		for (size_t i = 0; i < slow.batch.event_count; i++)
			assert_int_equal(slow.batch.events[i].kv->mod_rev, ++seen);
	}
	assert_true(watch_is_quiet(&slow));
	watch_close(&slow);
	watch_close(&quick);
}

static void e317_progress_when_caught_up(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      watcher;

	put(f, "a", "1");
	put(f, "b", "1");
	watch_range(f, &watcher, "a", NULL, 1);
	assert_status(vd_store_watch_progress(watcher.watch), VD_OK);
	expect_watch(&watcher, 100, "2: +a=1");
	expect_watch(&watcher, 100, "progress 3");
	assert_true(watch_is_quiet(&watcher));
	put(f, "b", "2");
	assert_status(vd_store_watch_progress(watcher.watch), VD_OK);
	expect_watch(&watcher, 100, "progress 4");
	/* Requested twice, answered once. */
	assert_true(watch_is_quiet(&watcher));
	assert_status(vd_store_watch_progress(watcher.watch), VD_OK);
	assert_status(vd_store_watch_progress(watcher.watch), VD_OK);
	expect_watch(&watcher, 100, "progress 4");
	assert_true(watch_is_quiet(&watcher));
	put(f, "a", "2");
	expect_watch(&watcher, 100, "5: a=2(1)");
	watch_close(&watcher);
}

static void e350_periodic_progress_for_idle_watches(void **state)
{
	struct store_fixture	     *f = *state;
	struct vd_store_watch_request request = { .key = K("a"), .progress = true };
	struct watcher		      with;
	struct watcher		      without;

	watch_open(f, &with, &request);
	watch_range(f, &without, "a", NULL, 0);
	if (f->simulated) /* in a remote store a second may have passed */
		assert_true(watch_is_quiet(&with));
	put(f, "b", "1");
	do {
		assert_status(watch_wait(&with, 100), VD_OK);
		assert_int_equal(with.batch.event_count, 0);
	} while (with.batch.revision < 2);
	expect_watch(&with, 100, "progress 2");
	assert_true(watch_is_quiet(&without));
	/* Again after an event, which counts as progress in its own period only. */
	for (vd_rev event = 3; event <= 5; event += 2) {
		put(f, "a", "1");
		do
			assert_status(watch_wait(&with, 100), VD_OK);
		while (with.batch.event_count == 0);
		assert_int_equal(with.batch.revision, event);
		put(f, "b", "1");
		do {
			assert_status(watch_wait(&with, 100), VD_OK);
			assert_int_equal(with.batch.event_count, 0);
		} while (with.batch.revision < event + 1);
	}
	watch_close(&with);
	watch_close(&without);
}

static void e355_a_progress_follows_all_events(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      watcher;
	vd_rev		      seen = 0;

	put_many(f, "a", "1", 100);
	watch_range(f, &watcher, "a", NULL, 1);
	assert_status(vd_store_watch_progress(watcher.watch), VD_OK);
	while (seen < 101) {
		assert_status(watch_wait(&watcher, 7), VD_OK);
		assert_true(watcher.batch.event_count > 0);
		seen = watcher.batch.revision;
	}
	expect_watch(&watcher, 7, "progress 101");
	watch_close(&watcher);
}

/* A watch far behind without matches yields to others, and still catches up, without a pause between its
 * runs. */
static void e1003_a_long_way_without_a_match(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      watcher;
	struct vd_op	      ops[128];
	char		      keys[128][8];
	struct txn_answer     answer;
	vd_mono		      began;

	for (int i = 0; i < 128; i++) {
		snprintf(keys[i], sizeof keys[i], "k%d", i);
		ops[i] = (struct vd_op) { .kind = VD_OP_PUT, .key = K(keys[i]), .value = K("v") };
	}
	put(f, "a", "1");
	for (int i = 0; i < 200; i++)
		txn_ops(f, ops, 128, &answer);
	watch_range(f, &watcher, "b", NULL, 2);
	assert_true(watch_is_quiet(&watcher));
	put(f, "b", "1");
	expect_watch(&watcher, 100, "203: +b=1");
	watch_close(&watcher);
	began = vd_env_now(f->env);
	watch_range(f, &watcher, "k0", NULL, 2);
	for (int i = 0; i < 200;) {
		assert_status(watch_wait(&watcher, 1), VD_OK);
		i += (int) watcher.batch.event_count;
	}
	if (f->simulated && f->factory->reopen)
		assert_true(vd_mono_since(vd_env_now(f->env), began).ns < VD_MS(100).ns);
	watch_close(&watcher);
}

/* TestCancelUnsynced, TestStressWatchCancelClose: closing in any state. */
static void e351_closing_in_any_state(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      watchers[90];

	put(f, "a", "1");
	for (int i = 0; i < 90; i++) {
		watch_range(f, &watchers[i], "a", i % 2 ? NULL : "b", i % 3);
		if (i % 5 == 0 && f->factory->is_remote && i % 3)
			assert_status(watch_wait(&watchers[i], 10), VD_OK);
		else if (i % 5 == 0)
			assert_int_equal(watch_is_quiet(&watchers[i]), i % 3 == 0);
		if (i % 7 == 0)
			(void) ask_progress(&watchers[i]);
	}
	for (int i = 0; i < 90; i += 2)
		watch_close(&watchers[i]);
	put(f, "a", "2");
	for (int i = 1; i < 90; i += 2) {
		assert_status(watch_wait(&watchers[i], 10), VD_OK);
		watch_close(&watchers[i]);
	}
}

static void closed(void *arg)
{
	vdi_wait_signal(arg);
}

static void e358_watches_end_when_the_store_closes(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      idle;
	struct watcher	      behind;
	struct vdi_wait	      wait;

	put(f, "a", "1");
	watch_range(f, &idle, "a", NULL, 0);
	watch_range(f, &behind, "a", NULL, 1);
	assert_true(watch_is_quiet(&idle));
	vdi_wait_init(&wait, f->env);
	vd_store_close(f->store, closed, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	assert_status(watch_wait(&idle, 10), VD_CLOSED);
	assert_status(watch_wait(&behind, 10), VD_CLOSED);
	assert_status(vd_store_watch_progress(idle.watch), VD_CLOSED);
	watch_close(&idle);
	watch_close(&behind);
	assert_status(f->factory->open(f->factory->arg, f->env, &f->store), VD_OK);
}

static void e331_history_survives_a_restart(void **state)
{
	struct store_fixture *f = *state;
	struct watcher	      watcher;

	if (f->factory->reopen == NULL)
		skip_because("this store cannot be reopened");
	put(f, "a", "1");
	put(f, "a", "2");
	delete_range(f, "a", NULL, NULL);
	put(f, "b", "1");
	assert_status(f->factory->reopen(f->factory->arg, f->env, &f->store), VD_OK);
	watch_range(f, &watcher, "a", "c", 3);
	expect_watch(&watcher, 100, "3: a=2(1) 4: -a(2) 5: +b=1");
	assert_true(watch_is_quiet(&watcher));
	put(f, "b", "2");
	expect_watch(&watcher, 100, "6: b=2(1)");
	watch_close(&watcher);
}

const struct CMUnitTest store_suite_watch_tests[] = {
	cmocka_unit_test(e311_wrong_ranges_are_refused),
	cmocka_unit_test(e317_progress_when_caught_up),
	cmocka_unit_test(e326_start_0_sees_what_comes_after),
	cmocka_unit_test(e326_start_0_begins_when_opened),
	cmocka_unit_test(e327_prefixes_synced_and_unsynced),
	cmocka_unit_test(e327_a_write_wakes_only_those_that_match),
	cmocka_unit_test(e329_one_revision_one_batch),
	cmocka_unit_test(e329_delete_range_is_one_batch),
	cmocka_unit_test(e331_e332_a_slow_owner_loses_nothing),
	cmocka_unit_test(e331_history_survives_a_restart),
	cmocka_unit_test(e333_to_e338_a_hundred_catch_up),
	cmocka_unit_test(e334_a_start_below_the_compaction_is_told),
	cmocka_unit_test(e334_no_gap_when_compaction_overtakes),
	cmocka_unit_test(e334_compaction_below_an_idle_watch_does_not_disturb_it),
	cmocka_unit_test(e334_an_idle_watch_gets_progress_beyond_the_compaction),
	cmocka_unit_test(e328_no_wake_is_lost),
	cmocka_unit_test(e335_a_start_at_the_compaction_works),
	cmocka_unit_test(e343_no_previous_record_at_the_compaction),
	cmocka_unit_test(e336_a_key_that_others_begin_with),
	cmocka_unit_test(e336_batches_are_bounded),
	cmocka_unit_test(e339_filters),
	cmocka_unit_test(e340_a_future_start),
	cmocka_unit_test(e340_progress_for_a_future_start_waits),
	cmocka_unit_test(e342_e343_what_events_carry),
	cmocka_unit_test(e344_previous_only_for_those_who_asked),
	cmocka_unit_test(e350_periodic_progress_for_idle_watches),
	cmocka_unit_test(e351_closing_in_any_state),
	cmocka_unit_test(e355_a_progress_follows_all_events),
	cmocka_unit_test(e358_watches_end_when_the_store_closes),
	cmocka_unit_test(e1003_a_long_way_without_a_match),
};
const size_t store_suite_watch_test_count = VDI_ARRAY_SIZE(store_suite_watch_tests);
