/* What guards the cacher between two actors, under preemption: each test makes many small worlds in which one
 * kind of race is likely, and knows what must come. */
#include "cacher_fixture.h"

#include <poll.h>

#include "cacher.h"
#include "env.h"
#include "feed_store.h"
#include "lock.h"
#include "store_chaos.h"

#define WATCHERS 6
#define KEY(name) "/registry/pods/ns/" name
#define POD(name) "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\"}}"

struct race {
	struct cacher_fixture  f;
	struct recorder	       recorders[WATCHERS];
	struct vd_executor_ops ops[WATCHERS];
};

static void put_done(void *arg, vd_status status, const struct vd_txn_result *result,
		     const struct vd_error *error)
{
	assert_status(status, VD_OK);
}

/* Nobody waits for the answer: handlers run while it is written. */
static void start_put(struct race *race, unsigned number)
{
	char		      key[64], name[16], value[512];
	struct vd_op	      op = { .kind = VD_OP_PUT };
	struct vd_txn_request request = { .success = &op, .success_count = 1 };

	snprintf(name, sizeof name, "p%u", number % 5);
	snprintf(key, sizeof key, KEY("%s"), name);
	write_pod(value, sizeof value, "ns", name, "x", NULL);
	op.key = vd_bytes_of(key);
	op.value = vd_bytes_of(value);
	assert_status(vd_store_txn(race->f.store, &request, put_done, NULL), VD_OK);
}

/* Each watcher has a group of its own, and wants everything. */
static void open_watcher(struct race *race, unsigned index, vd_rev from, bool bookmarks)
{
	struct vd_executor	executor = *vdi_env_executor(race->f.env);
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	char			selector[32];

	snprintf(selector, sizeof selector, "app in (x,y%u)", index);
	/* The same simulator under another name: a delivery worker of its own. */
	race->ops[index] = *executor.ops;
	executor.ops = &race->ops[index];
	memset(&race->recorders[index], 0, sizeof race->recorders[index]);
	options.label_selector = vd_bytes_of(selector);
	options.revision = from;
	options.send_initial_events = VD_FALSE;
	options.allow_bookmarks = bookmarks;
	if (from > 0)
		options.send_initial_events = VD_UNSET;
	assert_status(recorder_open(&race->f, &race->recorders[index], &options, &executor), VD_OK);
}

static void close_watchers(struct race *race)
{
	for (unsigned i = 0; i < WATCHERS; i++)
		recorder_close(&race->f, &race->recorders[i]);
}

/* Events are revisions without a gap; every write is to a pod. Returns the last revision. */
static vd_rev check_no_gap(const struct recorder *recorder, vd_rev last)
{
	for (size_t i = 0; i < recorder->count; i++) {
		const struct recorded *event = &recorder->events[i];

		if (event->type == VD_WATCH_ERROR)
			continue;
		if (event->type == VD_WATCH_BOOKMARK)
			assert_int_equal(event->revision, last ? last : event->revision);
		else if (last)
			assert_int_equal(event->revision, last + 1);
		last = event->revision;
	}
	return last;
}

/* rules: R-542 */
static void a_bookmark_neither_overtakes_events_nor_is_lost_among_them(void **state)
{
	static struct race race;

	(void) state;
	for (uint64_t seed = 0; seed < 60; seed++) {
		vd_rev start;

		cacher_fixture_init_preempted(&race.f, seed, 3, VD_US(0));
		cacher_fixture_open(&race.f, NULL);
		start = put_pod(&race.f, "ns", "p0", "x", NULL);
		cacher_fixture_settle(&race.f);
		for (unsigned i = 0; i < WATCHERS; i++)
			open_watcher(&race, i, start, true);
		vdi_sim_advance(race.f.env, VD_SECONDS(56));
		/* Writes meet each tick of the wheel. */
		for (unsigned tick = 0; tick < 9; tick++) {
			vd_mono at = race.f.cacher->bookmarks.tick_next;

			vdi_sim_advance(race.f.env, (vd_dur) { at.ns - 1 - vd_env_now(race.f.env).ns });
			for (unsigned i = 0; i < 12; i++)
				start_put(&race, i);
			(void) vdi_sim_advance_to_next_timer(race.f.env);
			for (unsigned i = 0; i < 12; i++) {
				start_put(&race, i);
				for (unsigned steps = 0; steps < 3; steps++)
					(void) vdi_sim_step(race.f.env);
			}
			vdi_sim_advance(race.f.env, VD_MS(1));
		}
		for (unsigned i = 0; i < WATCHERS; i++) {
			const struct recorder *recorder = &race.recorders[i];
			unsigned	       bookmarks = 0;

			for (size_t j = 0; j < recorder->count; j++)
				bookmarks += recorder->events[j].type == VD_WATCH_BOOKMARK;
			assert_int_equal(check_no_gap(recorder, start), start + (vd_rev) 9 * 24);
			assert_int_equal(bookmarks, 1);
		}
		close_watchers(&race);
		cacher_fixture_teardown(&race.f);
	}
}

/* rules: R-551 */
static void a_watch_from_the_future_sees_nothing_before_it(void **state)
{
	static struct race race;

	(void) state;
	for (uint64_t seed = 0; seed < 60; seed++) {
		cacher_fixture_init_preempted(&race.f, seed, 3, VD_US(0));
		cacher_fixture_open(&race.f, NULL);
		for (unsigned round = 0; round < 12; round++) {
			vd_rev current = put_pod(&race.f, "ns", "p0", "x", NULL), from[WATCHERS];

			cacher_fixture_settle(&race.f);
			for (unsigned i = 0; i < WATCHERS; i++) {
				from[i] = current + 1 + (vd_rev) vd_env_random_below(race.f.env, 8);
				open_watcher(&race, i, from[i], false);
			}
			for (unsigned i = 0; i < 10; i++) {
				start_put(&race, i);
				for (uint64_t steps = vd_env_random_below(race.f.env, 6); steps; steps--)
					(void) vdi_sim_step(race.f.env);
			}
			cacher_fixture_settle(&race.f);
			for (unsigned i = 0; i < WATCHERS; i++)
				assert_int_equal(check_no_gap(&race.recorders[i], from[i]), current + 10);
			close_watchers(&race);
		}
		cacher_fixture_teardown(&race.f);
	}
}

static void compacted(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
}

static bool is_ready(void *arg)
{
	return vd_cacher_ready(arg, NULL) == VD_OK;
}

/* rules: R-562 */
static void no_watch_goes_on_across_two_generations(void **state)
{
	static struct race   race;
	struct chaos_options options = { 0 };
	unsigned	     relists = 0;

	(void) state;
	for (uint64_t seed = 0; seed < 150; seed++) {
		struct vd_store *chaos;

		cacher_fixture_init_preempted(&race.f, seed, 8, VD_SECONDS(8));
		chaos = chaos_store_new(race.f.env, race.f.store, &options);
		cacher_fixture_open(&race.f, chaos);
		for (unsigned round = 0; round < 4; round++) {
			vd_rev current = put_pod(&race.f, "ns", "p0", "x", NULL);

			vdi_sim_settle(race.f.env);
			assert_true(vdi_sim_run_until(race.f.env, is_ready, race.f.cacher, VD_SECONDS(100)));
			cacher_fixture_settle(&race.f);
			for (unsigned i = 0; i < WATCHERS; i++)
				open_watcher(&race, i, VD_REVISION_ANY, false);
			cacher_fixture_settle(&race.f);
			for (unsigned i = 0; i < 6; i++) {
				start_put(&race, i);
				for (uint64_t steps = vd_env_random_below(race.f.env, 8); steps; steps--)
					(void) vdi_sim_step(race.f.env);
			}
			/* The stream ends, and what it missed is compacted: the cache lists again. */
			chaos_cut(chaos);
			current = put_pod(&race.f, "ns", "p1", "x", NULL);
			current = put_pod(&race.f, "ns", "p1", "x", NULL);
			assert_status(vd_store_compact(race.f.store, current, false, compacted, NULL), VD_OK);
			for (unsigned i = 0; i < 100; i++) {
				vdi_sim_advance(race.f.env, VD_MS(50));
				start_put(&race, i);
			}
			vdi_sim_settle(race.f.env);
			vdi_sim_advance(race.f.env, VD_SECONDS(10));
			for (unsigned i = 0; i < WATCHERS; i++)
				(void) check_no_gap(&race.recorders[i], 0);
			close_watchers(&race);
		}
		relists += race.f.cacher->reflector.relists > 0;
		race.f.cacher = vd_cacher_close_wait(race.f.cacher);
		chaos_store_free(chaos);
		cacher_fixture_teardown(&race.f);
	}
	assert_true(relists > 40);
}

/* ---- A delivery that takes long ---- */

/* Holds up a delivery of one revision until the test releases the gate. */
struct gated {
	struct recorder *recorder;
	struct vdi_lock *gates;
	vd_rev		 first; /* the delivery of revision first + i waits for gates[i] */
	unsigned	 count;
};

static size_t deliver_through_gate(void *arg, const struct vd_watch_event *events, size_t count)
{
	struct gated	    *gated = arg;
	struct vd_watch_sink sink = recorder_sink(gated->recorder, NULL);
	uint64_t	     gate = (uint64_t) (events[0].revision - gated->first);

	if (gate < gated->count) {
		vdi_lock_acquire(&gated->gates[gate]);
		vdi_lock_release(&gated->gates[gate]);
	}
	return sink.deliver(gated->recorder, events, count);
}

static void end_gated(void *arg, vd_status reason)
{
	struct gated *gated = arg;

	recorder_sink(gated->recorder, NULL).ended(gated->recorder, reason);
}

static void open_on(struct race *race, unsigned index, const char *selector, struct gated *gated)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct recorder	       *recorder = &race->recorders[index];
	struct vd_watch_sink	sink = recorder_sink(recorder, NULL);
	struct vd_error		error;

	options.label_selector = vd_bytes_of(selector);
	options.revision = VD_REVISION_ANY;
	options.send_initial_events = VD_FALSE;
	sink.executor = vdi_env_executor(race->f.env);
	if (gated) {
		sink.deliver = deliver_through_gate;
		sink.ended = end_gated;
		sink.arg = gated;
	}
	assert_status(vd_cacher_watch(race->f.cacher, &options, &sink, &recorder->watcher, &error), VD_OK);
	cacher_fixture_settle(&race->f);
}

/* The pod is named like its app. */
static vd_rev feed_pod(struct race *race, struct vd_store *feed, const char *app)
{
	char   key[64], value[512];
	vd_rev revision;

	snprintf(key, sizeof key, KEY("%s"), app);
	write_pod(value, sizeof value, "ns", app, app, NULL);
	revision = feed_put(feed, key, value);
	cacher_fixture_settle(&race->f);
	return revision;
}

/* A watcher that is not a member yet stands exactly where the history of a generation ends, while the
 * delivery worker is held up between taking its dirty subscriptions and running the last of them. Meanwhile
 * the cache lists again. rules: R-562 */
static void a_watch_at_the_end_of_a_generation_does_not_see_the_next_one(void **state)
{
	static struct race race;

	(void) state;
	for (uint64_t seed = 0; seed < 8; seed++) {
		struct vdi_lock	 gates[2];
		struct recorder *slow = &race.recorders[1], *fresh = &race.recorders[2];
		struct gated	 gated = { .recorder = &race.recorders[0], .gates = gates, .count = 2 };
		struct vd_store *feed;

		memset(race.recorders, 0, sizeof race.recorders);
		vdi_lock_init(&gates[0], VDI_LOCK_COLLECTORS);
		vdi_lock_init(&gates[1], VDI_LOCK_SERVER);
		cacher_fixture_init_preempted(&race.f, seed, 1, VD_US(0));
		feed = feed_store_new(race.f.env);
		cacher_fixture_open(&race.f, feed);
		race.recorders[0].room = SIZE_MAX;
		slow->room = 1;
		fresh->room = SIZE_MAX;
		open_on(&race, 0, "app in (x,z)",
			&gated); /* opened first: its subscription is the first of a batch */
		open_on(&race, 1, "app in (x,y)", NULL);
		(void) feed_pod(&race, feed, "x");
		gated.first = feed_pod(&race, feed, "x") +
			      1; /* the second one finds no room: that subscription has no member */
		vdi_lock_acquire(&gates[0]);
		(void) feed_pod(&race, feed, "z");
		vdi_lock_acquire(&gates[1]);
		(void) feed_pod(&race, feed, "x");
		open_on(&race, 2, "app in (x,y)", NULL);
		vdi_lock_release(&gates[0]);
		cacher_fixture_settle(&race.f);
		feed_break(feed, VD_EXPIRED);
		cacher_fixture_settle(&race.f);
		(void) feed_pod(&race, feed, "x");
		(void) feed_pod(&race, feed, "x");
		vdi_sim_advance(race.f.env, VD_SECONDS(30));
		assert_status(vd_cacher_ready(race.f.cacher, NULL), VD_OK);
		assert_int_equal(race.f.cacher->ready.generation, 2);
		(void) feed_pod(&race, feed, "x");
		vdi_lock_release(&gates[1]);
		cacher_fixture_settle(&race.f);
		/* Expired, not closed: the end of the generation was not noticed before the events of the
		 * next one. */
		assert_int_equal(fresh->count, 1);
		assert_int_equal(fresh->events[0].type, VD_WATCH_ERROR);
		assert_status(fresh->events[0].code, VD_EXPIRED);
		assert_int_equal(fresh->ended, 1);
		assert_int_equal(slow->ended, 1);
		assert_int_equal(race.recorders[0].ended, 1);
		for (unsigned i = 0; i < 3; i++)
			recorder_close(&race.f, &race.recorders[i]);
		race.f.cacher = vd_cacher_close_wait(race.f.cacher);
		feed_store_free(feed);
		cacher_fixture_teardown(&race.f);
		vdi_lock_fini(&gates[0]);
		vdi_lock_fini(&gates[1]);
	}
}

/* rules: O-20 */
static void the_cache_learns_at_once_that_an_undecodable_object_was_passed(void **state)
{
	static struct race race;

	(void) state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		vd_rev		revision;
		struct vd_error error;

		cacher_fixture_init_preempted(&race.f, seed, 3, VD_US(0));
		race.f.options.skip_undecodable = true;
		cacher_fixture_open(&race.f, NULL);
		for (unsigned i = 0; i < 10; i++) {
			assert_status(vd_store_put_wait(race.f.store, vd_bytes_of(KEY("junk")),
							vd_bytes_of("{"), &revision, &error),
				      VD_OK);
			/* No timer: not by asking the store how far it is. */
			vdi_sim_run_until_idle(race.f.env);
			assert_int_equal(vd_cacher_revision(race.f.cacher), revision);
		}
		cacher_fixture_teardown(&race.f);
	}
}

/* rules: R-313, W-26 */
static void a_store_that_goes_back_is_listed_again(void **state)
{
	static struct race race;

	(void) state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct vd_store *feed;
		uint64_t	 generation;

		cacher_fixture_init_preempted(&race.f, seed, 3, VD_US(0));
		feed = feed_store_new(race.f.env);
		cacher_fixture_open(&race.f, feed);
		for (unsigned i = 0; i < 8; i++)
			(void) feed_put(feed, KEY("a"), POD("a"));
		cacher_fixture_settle(&race.f);
		generation = race.f.cacher->ready.generation;
		open_watcher(&race, 0, VD_REVISION_ANY, false);
		cacher_fixture_settle(&race.f);
		feed_set_back(feed, 3);
		(void) feed_put(feed, KEY("b"), POD("b"));
		vdi_sim_advance(race.f.env, VD_SECONDS(30));
		assert_true(race.f.cacher->ready.generation > generation);
		assert_int_equal(vd_cacher_revision(race.f.cacher), 4);
		assert_int_equal(race.recorders[0].ended, 1);
		assert_status(race.recorders[0].reason, VD_CLOSED);
		recorder_close(&race.f, &race.recorders[0]);
		race.f.cacher = vd_cacher_close_wait(race.f.cacher);
		feed_store_free(feed);
		cacher_fixture_teardown(&race.f);
	}
}

/* ---- The embedded store's progress ---- */

static void ignore_ready(void *arg)
{
}

static vd_rev drain_watch(struct vd_store_watch *watch, unsigned *ret_events)
{
	struct vd_store_batch batch;
	struct vd_error	      error;
	vd_rev		      progress = 0;
	vd_status	      status;

	*ret_events = 0;
	while ((status = vd_store_watch_next(watch, 100, &batch, &error)) == VD_OK) {
		*ret_events += (unsigned) batch.event_count;
		if (batch.event_count == 0)
			progress = batch.revision;
	}
	assert_status(status, VD_AGAIN);
	return progress;
}

/* rules: E-340 */
static void periodic_progress_comes_again_after_events(void **state)
{
	static struct race race;

	(void) state;
	for (uint64_t seed = 0; seed < 10; seed++) {
		struct vd_store_watch_request request = { .key = vd_bytes_of(KEY("")),
							  .range_end = vd_bytes_of("/registry/pods/ns0"),
							  .progress = true,
							  .ready = ignore_ready };
		struct vd_store_watch	     *watch;
		struct vd_error		      error;
		unsigned		      events;

		cacher_fixture_init_preempted(&race.f, seed, 3, VD_US(0));
		assert_status(vd_store_watch_open(race.f.store, &request, &watch, &error), VD_OK);
		(void) drain_watch(watch, &events);
		for (unsigned round = 0; round < 3; round++) {
			vd_rev revision = put_pod(&race.f, "ns", "p0", "x", NULL);

			cacher_fixture_settle(&race.f);
			(void) drain_watch(watch, &events);
			assert_int_equal(events, 1);
			/* Marked as active when the next batch is asked for; so idle from the second period
			 * on. */
			(void) drain_watch(watch, &events);
			vdi_sim_advance(race.f.env, VD_SECONDS(3 * 600 + 60));
			assert_int_equal(drain_watch(watch, &events), revision);
			assert_int_equal(events, 0);
		}
		vd_store_watch_close(watch);
		cacher_fixture_teardown(&race.f);
	}
}

/* Whole events, each once and without a gap: every write is in the watch's range. A batch of progress says
 * that nothing is missing up to there. */
static vd_rev drain_in_order(struct vd_store_watch *watch, vd_rev last)
{
	struct vd_store_batch batch;
	struct vd_error	      error;
	vd_status	      status;

	while ((status = vd_store_watch_next(watch, 3, &batch, &error)) == VD_OK) {
		for (size_t i = 0; i < batch.event_count; i++)
			assert_int_equal(batch.events[i].kv->mod_rev, ++last);
		assert_int_equal(batch.revision, last);
	}
	assert_status(status, VD_AGAIN);
	return last;
}

/* A watch is read, and asked for progress, while a commit is between its publication and its notification. */
static void an_embedded_watch_sees_each_event_once(void **state)
{
	static struct race race;

	(void) state;
	for (uint64_t seed = 0; seed < 300; seed++) {
		struct vd_store_watch_request request = { .key = vd_bytes_of(KEY("")),
							  .range_end = vd_bytes_of("/registry/pods/ns0"),
							  .ready = ignore_ready };
		struct vd_store_watch	     *watch;
		struct vd_error		      error;
		vd_rev			      start, last;

		cacher_fixture_init_preempted(&race.f, seed, 3, VD_US(0));
		last = start = put_pod(&race.f, "ns", "p0", "x", NULL);
		assert_status(vd_store_watch_open(race.f.store, &request, &watch, &error), VD_OK);
		for (unsigned i = 0; i < 60; i++) {
			start_put(&race, i);
			for (uint64_t steps = vd_env_random_below(race.f.env, 4); steps; steps--)
				(void) vdi_sim_step(race.f.env);
			(void) vdi_sim_set_atomic(race.f.env, false);
			last = drain_in_order(watch, last);
			if (vd_env_random_below(race.f.env, 2))
				assert_status(vd_store_watch_progress(watch), VD_OK);
			(void) vdi_sim_set_atomic(race.f.env, true);
		}
		cacher_fixture_settle(&race.f);
		assert_int_equal(drain_in_order(watch, last), start + 60);
		vd_store_watch_close(watch);
		cacher_fixture_teardown(&race.f);
	}
}

/* ---- Reads of the past ---- */

/* ---- Pulled watches ---- */

static bool is_readable(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) == 1;
}

static vd_rev pull_in_order(struct vd_watcher *watcher, vd_rev last)
{
	struct vd_watch_event event;
	vd_status	      status;

	while ((status = vd_watcher_next(watcher, &event)) == VD_OK)
		assert_int_equal(event.revision, ++last);
	assert_status(status, VD_AGAIN);
	return last;
}

/* Events that come while the reader finds nothing and clears the descriptor make it readable again, or are
 * given at once: a reader that takes events only when the descriptor is readable gets them all. */
static void a_pulled_watch_is_readable_while_it_has_events(void **state)
{
	static struct race race;

	(void) state;
	for (uint64_t seed = 0; seed < 100; seed++) {
		struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
		struct vd_watcher      *watcher;
		vd_rev			start, last;
		int			fd;

		cacher_fixture_init_preempted(&race.f, seed, 3, VD_US(0));
		cacher_fixture_open(&race.f, NULL);
		last = start = put_pod(&race.f, "ns", "p0", "x", NULL);
		cacher_fixture_settle(&race.f);
		options.revision = start;
		assert_status(vd_cacher_watch(race.f.cacher, &options, NULL, &watcher, NULL), VD_OK);
		fd = vd_watcher_fd(watcher);
		assert_true(fd >= 0);
		last = pull_in_order(watcher, last);
		for (unsigned i = 0; i < 40; i++) {
			start_put(&race, i);
			for (uint64_t steps = vd_env_random_below(race.f.env, 8); steps; steps--)
				(void) vdi_sim_step(race.f.env);
			(void) vdi_sim_set_atomic(race.f.env, false);
			if (is_readable(fd))
				last = pull_in_order(watcher, last);
			(void) vdi_sim_set_atomic(race.f.env, true);
		}
		cacher_fixture_settle(&race.f);
		for (unsigned i = 0; i < 3 && is_readable(fd); i++) {
			last = pull_in_order(watcher, last);
			cacher_fixture_settle(&race.f);
		}
		assert_int_equal(last, start + 40);
		vd_watcher_close(watcher, NULL, NULL);
		cacher_fixture_teardown(&race.f);
	}
}

static void note_list(void *arg, vd_status status, struct vd_list *list, const struct vd_error *error)
{
	struct vd_list	**ret_list = arg;
	struct vd_object *object;
	size_t		  count = 0;

	assert_status(status, VD_OK);
	/* The pods were written in turn: those of the last five revisions. */
	for (; (object = vd_list_next(list)) != NULL; count++)
		assert_in_range(vd_object_revision(object), vd_list_revision(list) - 4,
				vd_list_revision(list));
	assert_int_equal(count, 5);
	vd_list_free(*ret_list);
	*ret_list = list;
}

/* The past is found by taking events back, which leave the history meanwhile, between the choice of the cache
 * and the walk, too: then the store answers. */
static void t112_r589_a_state_of_the_past_is_whole(void **state)
{
	static struct race race;

	(void) state;
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct vd_list *list = NULL;
		unsigned	number = 0;

		cacher_fixture_init_preempted(&race.f, seed, 8, VD_US(0));
		race.f.options.history_bytes = 60000; /* a hundred events or so */
		cacher_fixture_open(&race.f, NULL);
		while (number < 150)
			start_put(&race, number++);
		cacher_fixture_settle(&race.f);
		for (unsigned round = 0; round < 20; round++) {
			struct vd_list_options options = VD_LIST_OPTIONS_INIT;

			options.match = VD_MATCH_EXACT;
			options.revision = vd_cacher_revision(race.f.cacher) - 60 -
					   (vd_rev) vd_env_random_below(race.f.env, 60);
			for (unsigned i = 0; i < 60; i++)
				start_put(&race, number++);
			for (uint64_t steps = vd_env_random_below(race.f.env, 3); steps; steps--)
				(void) vdi_sim_step(race.f.env);
			(void) vdi_sim_set_atomic(race.f.env, false);
			assert_status(vd_cacher_list(race.f.cacher, &options, note_list, &list, NULL), VD_OK);
			(void) vdi_sim_set_atomic(race.f.env, true);
			cacher_fixture_settle(&race.f);
		}
		vd_list_free(list);
		cacher_fixture_teardown(&race.f);
	}
}

/* A sink that is closed at any moment. */
struct closing {
	struct vd_watcher *watcher;
	vd_rev		   last;
	unsigned	   ended, closed;
};

static size_t take_until_closed(void *arg, const struct vd_watch_event *events, size_t count)
{
	struct closing *closing = arg;

	assert_int_equal(closing->closed + closing->ended, 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(events[i].revision, ++closing->last);
	return count;
}

static void note_end(void *arg, vd_status reason)
{
	struct closing *closing = arg;

	assert_status(reason, VD_CLOSED);
	assert_int_equal(closing->closed, 0);
	assert_int_equal(closing->ended++, 0);
}

static void note_close(void *arg)
{
	struct closing *closing = arg;

	assert_int_equal(closing->closed++, 0);
}

/* While events are delivered, and while the cacher itself ends: the close is told once, nothing comes behind
 * it, and what came before has no gap.
 * rules */
static void t143_a_close_meets_deliveries_and_the_end(void **state)
{
	unsigned some = 0, all = 0, ended = 0;

	(void) state;
	for (uint64_t seed = 0; seed < 120; seed++) {
		static struct race race;
		struct closing	   closing[WATCHERS];
		vd_rev		   start;

		cacher_fixture_init_preempted(&race.f, seed, 5, VD_US(0));
		cacher_fixture_open(&race.f, NULL);
		start = put_pod(&race.f, "ns", "p0", "x", NULL);
		cacher_fixture_settle(&race.f);
		for (unsigned i = 0; i < WATCHERS; i++) {
			struct vd_watch_sink	sink = { take_until_closed, note_end, &closing[i], NULL };
			struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;

			closing[i] = (struct closing) { .last = start };
			options.revision = start;
			assert_status(
				vd_cacher_watch(race.f.cacher, &options, &sink, &closing[i].watcher, NULL),
				VD_OK);
		}
		for (unsigned i = 0; i < 2 * WATCHERS; i++) {
			start_put(&race, i);
			for (uint64_t steps = vd_env_random_below(race.f.env, 12); steps; steps--)
				(void) vdi_sim_step(race.f.env);
			if (i % 2)
				continue;
			if (seed % 2 && i == WATCHERS)
				vd_cacher_close(race.f.cacher, NULL, NULL);
			(void) vdi_sim_set_atomic(race.f.env, false);
			vd_watcher_close(closing[i / 2].watcher, note_close, &closing[i / 2]);
			(void) vdi_sim_set_atomic(race.f.env, true);
		}
		cacher_fixture_settle(&race.f);
		for (unsigned i = 0; i < WATCHERS; i++) {
			assert_int_equal(closing[i].closed, 1);
			ended += closing[i].ended;
			some += closing[i].last > start;
			all += closing[i].last == start + 2 * WATCHERS;
		}
		if (seed % 2)
			race.f.cacher = NULL;
		cacher_fixture_teardown(&race.f);
	}
	assert_true(some > 100 && all < some && ended > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bookmark_neither_overtakes_events_nor_is_lost_among_them),
		cmocka_unit_test(a_watch_from_the_future_sees_nothing_before_it),
		cmocka_unit_test(no_watch_goes_on_across_two_generations),
		cmocka_unit_test(a_watch_at_the_end_of_a_generation_does_not_see_the_next_one),
		cmocka_unit_test(the_cache_learns_at_once_that_an_undecodable_object_was_passed),
		cmocka_unit_test(a_store_that_goes_back_is_listed_again),
		cmocka_unit_test(periodic_progress_comes_again_after_events),
		cmocka_unit_test(an_embedded_watch_sees_each_event_once),
		cmocka_unit_test(a_pulled_watch_is_readable_while_it_has_events),
		cmocka_unit_test(t143_a_close_meets_deliveries_and_the_end),
		cmocka_unit_test(t112_r589_a_state_of_the_past_is_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
