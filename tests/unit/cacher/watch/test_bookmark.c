/* The wheel of bookmarks and deadlines, with watchers of a real Cacher: who is due what when. */
#include <fcntl.h>
#include <poll.h>

#include "bookmark.h"

#include "cache_watcher.h"
#include "cacher.h"
#include "cacher_fixture.h"
#include "env.h"
#include "feed_store.h"

#define WATCHERS 60

static bool is_readable(int fd)
{
	struct pollfd wanted = { .fd = fd, .events = POLLIN };

	return poll(&wanted, 1, 0) == 1;
}

static int64_t ms_until(const struct cacher_fixture *f, vd_mono time)
{
	return vd_mono_since(time, vd_env_now(f->env)).ns / 1000000;
}

/* each deadline is met to the millisecond, whichever second and bucket it falls into; bookmarks
 * stop before it.
 * rules: H-410 */
static void t145_r558_deadlines_are_exact_and_bookmarks_come_before_them(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct cacher_fixture f;
		struct recorder	     *r = calloc(WATCHERS, sizeof *r);
		vd_mono		      deadlines[WATCHERS], opened;

		cacher_fixture_setup(&f, seed);
		opened = vd_env_now(f.env);
		for (unsigned i = 0; i < WATCHERS; i++) {
			struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;

			options.revision = vd_cacher_revision(f.cacher);
			options.allow_bookmarks = i % 3 != 0;
			deadlines[i] = options.deadline =
				vd_mono_add(vd_env_now(f.env), VD_MS(300 + 3137 * i * (i % 5 ? 1 : 7)));
			assert_status(recorder_open(&f, &r[i], &options, NULL), VD_OK);
		}
		cacher_fixture_settle(&f);
		assert_int_equal(f.cacher->bookmarks.count, WATCHERS);
		for (unsigned i = 0; i < WATCHERS; i++) {
			unsigned least = WATCHERS;

			for (unsigned k = 0; k < WATCHERS; k++)
				if (!r[k].ended &&
				    (least == WATCHERS || deadlines[k].ns < deadlines[least].ns))
					least = k;
			if (least == WATCHERS)
				break;
			if (ms_until(&f, deadlines[least]) > 1)
				vdi_sim_advance(f.env, VD_MS(ms_until(&f, deadlines[least]) - 1));
			assert_int_equal(r[least].ended, 0);
			vdi_sim_advance(f.env, VD_MS(2));
			assert_int_equal(r[least].ended, 1);
			assert_status(r[least].reason, VD_TIMEOUT);
			if (least % 3 == 0)
				assert_int_equal(r[least].count, 0);
			else if (least > 3)
				assert_true(r[least].count >= 1);
			/* Within one period: the one before the deadline, and only that. */
			if (least % 3 && vd_mono_since(deadlines[least], opened).ns > VD_MS(3500).ns &&
			    vd_mono_since(deadlines[least], opened).ns < VD_SECONDS(60).ns)
				assert_int_equal(r[least].count, 1);
		}
		assert_int_equal(f.cacher->bookmarks.count, 0);
		for (unsigned i = 0; i < WATCHERS; i++)
			recorder_close(&f, &r[i]);
		assert_int_equal(f.cacher->bookmarks.tick_next.ns, INT64_MAX);
		cacher_fixture_teardown(&f);
		free(r);
	}
}

/* Several between two ticks, in whatever order they came: each ends when it is due, and the next one is not
 * forgotten. */
static void r563_deadlines_of_the_same_second(void **state)
{
	static const unsigned order[] = { 3, 0, 6, 2, 7, 1, 5, 4, 4 }; /* the last two at the same instant */
	struct cacher_fixture f;
	struct recorder	     *r = calloc(VDI_ARRAY_SIZE(order), sizeof *r);
	vd_mono		      begin;

	cacher_fixture_setup(&f, 6);
	begin = vd_env_now(f.env);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(order); i++) {
		struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;

		options.revision = vd_cacher_revision(f.cacher);
		options.deadline = vd_mono_add(begin, VD_MS(900 + 100 * order[i]));
		assert_status(recorder_open(&f, &r[i], &options, NULL), VD_OK);
	}
	cacher_fixture_settle(&f);
	for (unsigned due = 0; due < 8; due++)
		for (int after = 0; after < 2; after++) {
			vdi_sim_advance(f.env, vd_mono_since(vd_mono_add(begin, VD_MS(900 + 100 * due - 1 +
										      2 * after)),
							     vd_env_now(f.env)));
			for (size_t i = 0; i < VDI_ARRAY_SIZE(order); i++)
				assert_int_equal(r[i].ended, order[i] < due + after);
		}
	assert_int_equal(f.cacher->bookmarks.count, 0);
	assert_int_equal(f.cacher->bookmarks.soon_next.ns, INT64_MAX);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(order); i++)
		recorder_close(&f, &r[i]);
	cacher_fixture_teardown(&f);
	free(r);
}

/* The last bookmark of a short watch is due in the second in which it begins, or the next: the deadline is
 * met all the same. */
static void r558_a_watch_of_two_seconds(void **state)
{
	enum { COUNT = 45 };
	struct cacher_fixture f;
	struct recorder	     *r = calloc(COUNT, sizeof *r);
	vd_mono		      begin;

	for (uint64_t seed = 1; seed <= 3; seed++) {
		cacher_fixture_setup(&f, seed);
		memset(r, 0, COUNT * sizeof *r);
		begin = vd_env_now(f.env);
		for (unsigned i = 0; i < COUNT; i++) {
			struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;

			options.revision = vd_cacher_revision(f.cacher);
			options.allow_bookmarks = true;
			options.deadline = vd_mono_add(begin, VD_MS(2000 + 25 * i));
			assert_status(recorder_open(&f, &r[i], &options, NULL), VD_OK);
		}
		for (unsigned due = 0; due < COUNT; due++) {
			vdi_sim_advance(f.env, vd_mono_since(vd_mono_add(begin, VD_MS(2000 + 25 * due + 1)),
							     vd_env_now(f.env)));
			for (unsigned i = 0; i < COUNT; i++)
				assert_int_equal(r[i].ended, i <= due);
		}
		assert_int_equal(r[0].count,
				 0); /* of exactly two seconds: there is no time before the deadline's two */
		assert_int_equal(r[COUNT - 1].count, 1);
		for (unsigned i = 0; i < COUNT; i++)
			recorder_close(&f, &r[i]);
		cacher_fixture_teardown(&f);
	}
	free(r);
}

/* T-124: every 60 s, each tick at most 1.25 s late; none of them early. rules: H-410 */
static void t124_r558_the_period(void **state)
{
	struct cacher_fixture	f;
	struct recorder	       *r = calloc(1, sizeof *r);
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	vd_mono			last;

	cacher_fixture_setup(&f, 4);
	options.revision = vd_cacher_revision(f.cacher);
	options.allow_bookmarks = true;
	assert_status(recorder_open(&f, r, &options, NULL), VD_OK);
	cacher_fixture_settle(&f);
	last = vd_env_now(f.env);
	for (unsigned i = 1; i <= 10; i++) {
		while (r->count < i)
			vdi_sim_advance(f.env, VD_MS(50));
		assert_in_range(vd_mono_since(vd_env_now(f.env), last).ns / 1000000, 58900, 62400);
		last = vd_env_now(f.env);
	}
	recorder_close(&f, r);
	cacher_fixture_teardown(&f);
	free(r);
}

/* A deadline changes nothing about the period: bookmarks come every 60 s up to the last one, which comes
 * once, about two seconds before the end. */
static void t124_r558_the_period_of_a_watch_with_a_deadline(void **state)
{
	static const unsigned lifetimes_ms[] = { 4000,	59000, 61000,  62000,  62500,  63000,  63500,
						 64000, 75000, 122000, 123000, 124000, 150000, 310000 };
	enum { COUNT = VDI_ARRAY_SIZE(lifetimes_ms) };

	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct cacher_fixture f;
		struct recorder	     *r = calloc(COUNT, sizeof *r);
		int64_t		      last[COUNT] = { 0 };
		unsigned	      near_the_end[COUNT] = { 0 };
		vd_mono		      begin;

		cacher_fixture_setup(&f, seed);
		begin = vd_env_now(f.env);
		for (unsigned i = 0; i < COUNT; i++) {
			struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;

			options.revision = vd_cacher_revision(f.cacher);
			options.allow_bookmarks = true;
			options.deadline = vd_mono_add(begin, VD_MS(lifetimes_ms[i]));
			assert_status(recorder_open(&f, &r[i], &options, NULL), VD_OK);
		}
		for (int64_t now = 50; now <= lifetimes_ms[COUNT - 1] + 50; now += 50) {
			vdi_sim_advance(f.env, VD_MS(50));
			for (unsigned i = 0; i < COUNT; i++) {
				int64_t left = (int64_t) lifetimes_ms[i] - now;

				if (r[i].count == 0)
					continue;
				assert_int_equal(r[i].count, 1);
				assert_int_equal(r[i].events[0].type, VD_WATCH_BOOKMARK);
				r[i].count = 0;
				assert_in_range(left, 700, lifetimes_ms[i]);
				assert_in_range(now - last[i], left <= 3000 ? 50 : 58900, 62400);
				near_the_end[i] += left <= 3000;
				last[i] = now;
			}
		}
		for (unsigned i = 0; i < COUNT; i++) {
			assert_int_equal(near_the_end[i], 1);
			assert_int_equal(r[i].ended, 1);
			recorder_close(&f, &r[i]);
		}
		cacher_fixture_teardown(&f);
		free(r);
	}
}

/* A bookmark never overtakes an event: a watcher that is behind gets none until it has caught up. */
static void t125_r541_no_bookmark_before_what_is_owed(void **state)
{
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct cacher_fixture	f;
		struct recorder	       *r = calloc(1, sizeof *r);
		struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
		vd_rev			first;

		cacher_fixture_setup(&f, seed);
		options.revision = first = vd_cacher_revision(f.cacher);
		options.allow_bookmarks = true;
		options.deadline = vd_mono_add(vd_env_now(f.env), VD_SECONDS(20));
		r->room = 3;
		assert_status(recorder_open(&f, r, &options, seed % 2 ? NULL : vdi_env_executor(f.env)),
			      VD_OK);
		for (unsigned i = 0; i < 10; i++)
			put_pod(&f, "ns", "x", NULL, NULL);
		vdi_sim_advance(f.env, VD_MS(17000));
		assert_int_equal(r->count, 3);
		r->room = SIZE_MAX;
		vd_watcher_resume(r->watcher);
		vdi_sim_advance(f.env, VD_MS(2900));
		assert_int_equal(r->count, 11);
		for (unsigned i = 0; i < 10; i++)
			assert_int_equal(r->events[i].revision, first + 1 + i);
		assert_int_equal(r->events[10].type, VD_WATCH_BOOKMARK);
		assert_int_equal(r->events[10].revision, first + 10);
		recorder_close(&f, r);
		cacher_fixture_teardown(&f);
		free(r);
	}
}

/* A bookmark that its watcher does not take is missed, also by one that has events to take; the next one
 * comes when it is due. */
static void r545_a_bookmark_that_is_not_taken_is_missed(void **state)
{
	struct cacher_fixture	f;
	struct recorder	       *idle = calloc(1, sizeof *idle), *behind = calloc(1, sizeof *behind);
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	vd_rev			event;

	cacher_fixture_setup(&f, 7);
	options.revision = vd_cacher_revision(f.cacher);
	options.allow_bookmarks = true;
	assert_status(recorder_open(&f, idle, &options, NULL), VD_OK);
	options.label_selector = vd_bytes_of("app=web");
	assert_status(recorder_open(&f, behind, &options, vdi_env_executor(f.env)), VD_OK);
	cacher_fixture_settle(&f);
	event = put_pod(&f, "ns", "y", "db", NULL);
	cacher_fixture_settle(&f);
	assert_int_equal(idle->count, 1);
	idle->count = idle->room = behind->room = 0;
	put_pod(&f, "ns", "x", "web", NULL);
	cacher_fixture_settle(&f);
	assert_int_equal(idle->count + behind->count, 0);
	idle->room = 1;
	vd_watcher_resume(idle->watcher);
	cacher_fixture_settle(&f);
	assert_int_equal(idle->count, 1);
	/* The first ones are due: one watcher has no room, the other one has not said that it has some. */
	behind->room = SIZE_MAX;
	vdi_sim_advance(f.env, VD_SECONDS(65));
	assert_int_equal(behind->count, 0);
	idle->room = SIZE_MAX;
	idle->count = 0;
	vd_watcher_resume(behind->watcher);
	vdi_sim_advance(f.env, VD_SECONDS(50));
	assert_int_equal(idle->count, 0);
	assert_int_equal(behind->count, 1);
	assert_int_equal(behind->events[0].revision, event + 1);
	vdi_sim_advance(f.env, VD_SECONDS(10));
	assert_int_equal(idle->count, 1);
	assert_int_equal(idle->events[0].type, VD_WATCH_BOOKMARK);
	assert_int_equal(behind->count, 2);
	assert_int_equal(behind->events[1].type, VD_WATCH_BOOKMARK);
	recorder_close(&f, idle);
	recorder_close(&f, behind);
	cacher_fixture_teardown(&f);
	free(idle);
	free(behind);
}

/* A watcher whose initial events end at a revision that the cache does not have yet gets the bookmark of
 * their end with the next tick after the cache has it, not in a minute. */
static void t145_r558_the_end_of_initial_events_waits_for_no_period(void **state)
{
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct cacher_fixture	f;
		struct recorder	       *r = calloc(1, sizeof *r);
		struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
		struct vd_store	       *feed;

		cacher_fixture_init(&f, seed);
		feed = feed_store_new(f.env);
		cacher_fixture_open(&f, feed);
		feed_hold_progress(feed, true);
		feed_progress(feed);
		options.send_initial_events = VD_TRUE;
		options.allow_bookmarks = true;
		assert_status(recorder_open(&f, r, &options, NULL), VD_OK);
		vdi_sim_advance(f.env, VD_MS(1000));
		assert_int_equal(r->count, 0);
		feed_hold_progress(feed, false);
		vdi_sim_advance(f.env, VD_MS(1250));
		assert_int_equal(r->count, 1);
		assert_true(r->events[0].type == VD_WATCH_BOOKMARK && r->events[0].end);
		assert_int_equal(r->events[0].revision, vd_cacher_revision(f.cacher));
		vdi_sim_advance(f.env, VD_SECONDS(50));
		assert_int_equal(r->count, 1);
		recorder_close(&f, r);
		f.cacher = vd_cacher_close_wait(f.cacher);
		feed_store_free(feed);
		cacher_fixture_teardown(&f);
		free(r);
	}
}

/* However long the initial state takes: the first bookmark is the one that ends it, and it comes once. */
static void r556_r557_no_bookmark_among_the_initial_events(void **state)
{
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct cacher_fixture	f;
		struct recorder	       *r = calloc(1, sizeof *r);
		struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
		vd_rev			state_revision, later;

		cacher_fixture_setup(&f, seed);
		for (unsigned i = 0; i < 5; i++)
			state_revision =
				put_pod(&f, "ns", (const char[2]) { (char) ('a' + i), 0 }, NULL, NULL);
		cacher_fixture_settle(&f);
		options.send_initial_events = VD_TRUE;
		options.allow_bookmarks = true;
		r->room = 2;
		assert_status(recorder_open(&f, r, &options, seed % 2 ? NULL : vdi_env_executor(f.env)),
			      VD_OK);
		cacher_fixture_settle(&f);
		r->room = SIZE_MAX; /* nobody is told */
		vdi_sim_advance(f.env, VD_SECONDS(100));
		later = put_pod(&f, "ns", "z", NULL, NULL);
		vdi_sim_advance(f.env, VD_SECONDS(100));
		assert_int_equal(r->count, 2);
		vd_watcher_resume(r->watcher);
		cacher_fixture_settle(&f);
		assert_true(r->count >= 7);
		for (unsigned i = 0; i < 5; i++)
			assert_true(r->events[i].initial && r->events[i].type == VD_WATCH_ADDED);
		assert_true(r->events[5].type == VD_WATCH_BOOKMARK && r->events[5].end);
		assert_int_equal(r->events[5].revision, state_revision);
		assert_int_equal(r->events[6].revision, later);
		vdi_sim_advance(f.env, VD_SECONDS(65));
		assert_int_equal(r->events[r->count - 1].type, VD_WATCH_BOOKMARK);
		for (size_t i = 6; i < r->count; i++)
			assert_false(r->events[i].end);
		recorder_close(&f, r);
		cacher_fixture_teardown(&f);
		free(r);
	}
}

static void t125_closing_at_any_moment_of_a_tick(void **state)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct cacher_fixture	f;
		struct recorder	       *r = calloc(4, sizeof *r);
		struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;

		cacher_fixture_setup(&f, seed);
		options.revision = vd_cacher_revision(f.cacher);
		options.allow_bookmarks = true;
		options.deadline = vd_mono_add(vd_env_now(f.env), VD_MS(2000 + 13 * (int64_t) seed));
		for (unsigned i = 0; i < 4; i++)
			assert_status(
				recorder_open(&f, &r[i], &options, i % 2 ? NULL : vdi_env_executor(f.env)),
				VD_OK);
		for (uint64_t step = 0; step < seed % 40; step++)
			if (!vdi_sim_step(f.env))
				(void) vdi_sim_advance_to_next_timer(f.env);
		for (unsigned i = 0; i < 4; i++)
			recorder_close(&f, &r[i]);
		vdi_sim_advance(f.env, VD_SECONDS(10));
		assert_int_equal(f.cacher->bookmarks.count, 0);
		cacher_fixture_teardown(&f);
		free(r);
	}
}

static void the_store_is_asked_once_a_tick_and_only_when_somebody_is_near(void **state)
{
	struct cacher_fixture	  f;
	struct vdi_bookmark_wheel wheel;
	struct vd_watcher	  watcher = { .allow_bookmarks = true, .deadline = VD_NEVER },
			  idle = { .deadline = VD_NEVER };
	int64_t	 due;
	unsigned near = 0;

	cacher_fixture_init(&f, 1);
	vdi_bookmark_init(&wheel, f.env);
	assert_false(vdi_bookmark_is_near(&wheel));
	assert_int_equal(vdi_bookmark_run(&wheel).ns, INT64_MAX);
	vdi_bookmark_add(&wheel, &idle);
	assert_int_equal(wheel.count, 0);
	vdi_bookmark_add(&wheel, &watcher);
	due = vd_env_now(f.env).ns / 1000000000 + 60;
	assert_false(vdi_bookmark_is_near(&wheel));
	while (wheel.second < due - 3) {
		vd_mono next = vdi_bookmark_run(&wheel);

		assert_in_range(ms_until(&f, next), 0, 1250); /* while somebody is in the wheel it turns */
		vdi_sim_advance(f.env, vd_mono_since(next, vd_env_now(f.env)));
		(void) vdi_bookmark_run(&wheel);
		assert_int_equal(vdi_bookmark_is_near(&wheel), wheel.second >= due - 2);
		near += wheel.second >= due - 2;
	}
	while (wheel.second < due - 1) {
		vdi_sim_advance(f.env, VD_MS(50));
		if (vdi_bookmark_run(&wheel).ns - vd_env_now(f.env).ns >
		    VD_SECONDS(1).ns) { /* it has just turned */
			near += vdi_bookmark_is_near(&wheel);
			assert_false(vdi_bookmark_is_near(&wheel));
		}
	}
	assert_in_range(near, 1, 2);
	vdi_bookmark_remove(&wheel, &watcher);
	wheel.asked = 0;
	assert_false(vdi_bookmark_is_near(&wheel));
	vdi_bookmark_remove(&wheel, &watcher); /* fine when it is not filed */
	assert_int_equal(wheel.count, 0);
	cacher_fixture_teardown(&f);
}

/* Who wants no bookmark and has no deadline costs the wheel nothing. */
static void r558_who_wants_nothing_is_not_filed(void **state)
{
	struct cacher_fixture	f;
	struct recorder	       *r = calloc(1, sizeof *r);
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;

	cacher_fixture_setup(&f, 2);
	options.revision = vd_cacher_revision(f.cacher);
	assert_status(recorder_open(&f, r, &options, NULL), VD_OK);
	cacher_fixture_settle(&f);
	assert_int_equal(f.cacher->bookmarks.count, 0);
	vdi_sim_advance(f.env, VD_SECONDS(200));
	assert_int_equal(f.cacher->bookmarks.tick_next.ns, INT64_MAX);
	assert_int_equal(r->count, 0);
	recorder_close(&f, r);
	cacher_fixture_teardown(&f);
	free(r);
}

/* A descriptor that is asked for late says at once what is there: an event, or only a word of the cacher. */
static void t124_a_descriptor_is_readable_while_there_is_something(void **state)
{
	struct cacher_fixture	f;
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct vd_watcher      *watchers[3];
	struct vd_watch_event	event;
	struct vd_error		error;

	cacher_fixture_setup(&f, 9);
	options.revision = vd_cacher_revision(f.cacher);
	options.allow_bookmarks = true;
	for (unsigned i = 0; i < 3; i++) {
		assert_status(vd_cacher_watch(f.cacher, &options, NULL, &watchers[i], &error), VD_OK);
		cacher_fixture_settle(&f);
		assert_status(vd_watcher_next(watchers[i], &event), VD_AGAIN);
	}
	assert_false(is_readable(vd_watcher_fd(watchers[0])));
	put_pod(&f, "a", "x", NULL, NULL);
	cacher_fixture_settle(&f);
	assert_true(is_readable(vd_watcher_fd(watchers[0])));
	assert_true(is_readable(vd_watcher_fd(watchers[1])));
	for (unsigned i = 0; i < 3; i++) {
		assert_status(vd_watcher_next(watchers[i], &event), VD_OK);
		assert_int_equal(event.type, VD_WATCH_ADDED);
		assert_status(vd_watcher_next(watchers[i], &event), VD_AGAIN);
		assert_false(is_readable(vd_watcher_fd(watchers[i])));
	}
	vdi_sim_advance(f.env, VD_SECONDS(70));
	assert_true(is_readable(vd_watcher_fd(watchers[2])));
	assert_status(vd_watcher_next(watchers[2], &event), VD_OK);
	assert_int_equal(event.type, VD_WATCH_BOOKMARK);
	for (unsigned i = 0; i < 3; i++) {
		int fd = vd_watcher_fd(watchers[i]);

		assert_int_not_equal(fcntl(fd, F_GETFD), -1);
		vd_watcher_close(watchers[i], NULL, NULL);
		cacher_fixture_settle(&f);
		assert_int_equal(fcntl(fd, F_GETFD), -1);
	}
	cacher_fixture_teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t145_r558_deadlines_are_exact_and_bookmarks_come_before_them),
		cmocka_unit_test(r563_deadlines_of_the_same_second),
		cmocka_unit_test(r558_a_watch_of_two_seconds),
		cmocka_unit_test(t124_r558_the_period),
		cmocka_unit_test(t124_r558_the_period_of_a_watch_with_a_deadline),
		cmocka_unit_test(t124_a_descriptor_is_readable_while_there_is_something),
		cmocka_unit_test(t125_r541_no_bookmark_before_what_is_owed),
		cmocka_unit_test(r545_a_bookmark_that_is_not_taken_is_missed),
		cmocka_unit_test(t145_r558_the_end_of_initial_events_waits_for_no_period),
		cmocka_unit_test(r556_r557_no_bookmark_among_the_initial_events),
		cmocka_unit_test(t125_closing_at_any_moment_of_a_tick),
		cmocka_unit_test(r558_who_wants_nothing_is_not_filed),
		cmocka_unit_test(the_store_is_asked_once_a_tick_and_only_when_somebody_is_near),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
