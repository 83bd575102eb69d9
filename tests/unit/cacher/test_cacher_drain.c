/* The last words of a cacher: nobody's watch ends before it has been told everything, however slow its reader
 * is; and nothing else can hold the end up. */
#include <poll.h>

#include "cacher.h"
#include "cacher_fixture.h"
#include "env.h"
#include "feed_store.h"

#define KEY(name) "/registry/pods/ns/" name
#define POD(name) "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\"}}"
#define MANY 3000 /* more than a delivery worker takes in two rounds */

static void count_call(void *arg)
{
	++*(unsigned *) arg;
}

static void open_from(struct cacher_fixture *f, struct recorder *r, vd_rev revision, size_t room)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;

	options.revision = revision;
	r->room = room;
	assert_status(recorder_open(f, r, &options, NULL), VD_OK);
}

static void expect_ended(const struct recorder *r)
{
	assert_int_equal(r->ended, 1);
	assert_status(r->reason, VD_CLOSED);
}

/* Takes so many more events; the simulator runs. */
static void take_more(struct cacher_fixture *f, struct recorder *r, size_t count)
{
	r->room = count;
	vd_watcher_resume(r->watcher);
	cacher_fixture_settle(f);
}

static void a_watch_ends_behind_its_last_event(void **state)
{
	struct cacher_fixture	f;
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct recorder	       *quick = calloc(1, sizeof *quick), *slow = calloc(1, sizeof *slow),
			*late = calloc(1, sizeof *late);
	struct recorder	     *stuck = calloc(1, sizeof *stuck), *early = calloc(1, sizeof *early);
	struct vd_watcher    *pulled;
	struct vd_watch_event event;
	struct vd_error	      error;
	unsigned	      drained = 0;
	int64_t		      deleted = 0;
	char		      name[16];
	vd_rev		      before, last = 0;

	cacher_fixture_setup(&f, 1);
	for (int i = 0; i < MANY; i++) {
		sprintf(name, "p%04d", i);
		last = put_pod(&f, "ns", name, NULL, NULL);
	}
	cacher_fixture_settle(&f);
	before = last;
	open_from(&f, quick, before, SIZE_MAX);
	open_from(&f, slow, before, 1);
	open_from(&f, stuck, before, 1);
	options.revision = before;
	assert_status(vd_cacher_watch(f.cacher, &options, NULL, &pulled, &error), VD_OK);
	cacher_fixture_settle(&f);
	vdi_cacher_drain(f.cacher, last + 1, count_call, &drained);
	assert_status(vd_store_delete_wait(f.store, vd_bytes_of(KEY("p")), vd_bytes_of(KEY("q")), &deleted,
					   &last, &error),
		      VD_OK);
	assert_int_equal(deleted, MANY);
	open_from(&f, early, last + 100, SIZE_MAX); /* it waits for what does not come */
	cacher_fixture_settle(&f);
	assert_int_equal(quick->count, MANY);
	assert_int_equal(quick->events[MANY - 1].revision, last);
	expect_ended(quick);
	assert_int_equal(early->count, 0);
	expect_ended(early);
	/* Time does not end who is slow, as long as the history has what it is to be told. */
	vdi_sim_advance(f.env, VD_SECONDS(60));
	assert_int_equal(slow->count, 1);
	assert_int_equal(slow->ended, 0);
	take_more(&f, slow, 100);
	assert_int_equal(slow->ended, 0);
	/* What somebody begins anew there is not theirs. */
	(void) put_pod(&f, "ns", "new", NULL, NULL);
	cacher_fixture_settle(&f);
	/* A watch of before goes on where it stood, and ends like the others. */
	open_from(&f, late, before, SIZE_MAX);
	cacher_fixture_settle(&f);
	assert_int_equal(late->count, MANY);
	expect_ended(late);
	for (unsigned i = 0; i < MANY; i++) {
		assert_status(vd_watcher_wait(pulled, VD_SECONDS(10)), VD_OK);
		assert_status(vd_watcher_next(pulled, &event), VD_OK);
		assert_int_equal(event.type, VD_WATCH_DELETED);
	}
	assert_status(vd_watcher_wait(pulled, VD_SECONDS(10)), VD_OK);
	assert_status(vd_watcher_next(pulled, &event), VD_CLOSED);
	take_more(&f, slow, MANY - 102);
	assert_int_equal(slow->ended, 0); /* one is left */
	take_more(&f, slow, 1);
	assert_int_equal(slow->count, MANY);
	for (unsigned i = 0; i < MANY; i++)
		assert_string_equal(slow->events[i].name, quick->events[i].name);
	expect_ended(slow);
	recorder_close(&f, quick);
	recorder_close(&f, slow);
	recorder_close(&f, late);
	recorder_close(&f, early);
	vd_watcher_close(pulled, NULL, NULL);
	cacher_fixture_settle(&f);
	assert_int_equal(drained, 0); /* one never came back */
	recorder_close(&f, stuck);
	cacher_fixture_settle(&f);
	assert_int_equal(drained, 1);
	cacher_fixture_teardown(&f);
	free(quick);
	free(slow);
	free(late);
	free(stuck);
	free(early);
}

/* What the store has deleted and the cache has not heard of is told too. */
static void the_cache_comes_up_to_the_revision_first(void **state)
{
	struct cacher_fixture f;
	struct vd_store	     *feed;
	struct recorder	     *r = calloc(1, sizeof *r);
	unsigned	      drained = 0;
	vd_rev		      revision;

	for (int proves = 0; proves < 2; proves++) {
		*r = (struct recorder) { 0 };
		drained = 0;
		cacher_fixture_init(&f, 2);
		f.options.no_backfill = true;
		feed = feed_store_new(f.env);
		cacher_fixture_open(&f, feed);
		revision = feed_put(feed, KEY("x"), POD("x"));
		cacher_fixture_settle(&f);
		feed_set_progress(feed, proves);
		open_from(&f, r, revision, SIZE_MAX);
		cacher_fixture_settle(&f);
		vdi_cacher_drain(f.cacher, revision + 2, count_call, &drained);
		vdi_sim_advance(f.env, VD_SECONDS(600));
		assert_int_equal(r->ended, 0);
		feed_hold_progress(feed, true);
		feed_delete(feed, KEY("x"));
		vdi_sim_advance(f.env, VD_SECONDS(1));
		assert_int_equal(r->count, 1);
		assert_int_equal(r->ended,
				 !proves); /* where nothing can be proved an empty cache is enough */
		feed_progress(feed);
		feed_hold_progress(feed, false);
		vdi_sim_advance(f.env, VD_SECONDS(1));
		expect_ended(r);
		recorder_close(&f, r);
		cacher_fixture_settle(&f);
		assert_int_equal(drained, 1);
		f.cacher = vd_cacher_close_wait(f.cacher);
		feed_store_free(feed);
		cacher_fixture_teardown(&f);
	}
	free(r);
}

/* The end of the server cannot wait for slow readers. And without watches there is nothing to wait for, not
 * even a revision. */
static void the_end_cuts_it_short(void **state)
{
	struct cacher_fixture f;
	struct recorder	     *r = calloc(1, sizeof *r);
	unsigned	      drained = 0;
	vd_rev		      revision;

	cacher_fixture_setup(&f, 3);
	revision = put_pod(&f, "ns", "x", NULL, NULL);
	cacher_fixture_settle(&f);
	open_from(&f, r, revision, SIZE_MAX);
	vdi_cacher_drain(f.cacher, revision + 1, count_call, &drained);
	cacher_fixture_settle(&f);
	assert_int_equal(drained, 0);
	vdi_cacher_ref(f.cacher);
	vd_cacher_close(f.cacher, NULL, NULL);
	cacher_fixture_settle(&f);
	assert_int_equal(drained, 1);
	expect_ended(r);
	recorder_close(&f, r);
	cacher_fixture_settle(&f);
	vdi_cacher_unref(f.cacher);
	f.cacher = NULL;
	cacher_fixture_teardown(&f);

	cacher_fixture_setup(&f, 4);
	drained = 0;
	vdi_cacher_drain(f.cacher, INT64_MAX, count_call, &drained);
	cacher_fixture_settle(&f);
	assert_int_equal(drained, 1);
	cacher_fixture_teardown(&f);
	free(r);
}

/* Where nothing happens any more the end is told all the same, wherever the watch is served. */
static void idle_watches_end_too(void **state)
{
	struct cacher_fixture	f;
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct recorder	       *inl = calloc(1, sizeof *inl), *run = calloc(1, sizeof *run);
	struct vd_watcher      *pulled;
	struct vd_watch_event	event;
	struct pollfd		wanted = { .events = POLLIN };
	unsigned		drained = 0;

	cacher_fixture_setup(&f, 5);
	options.revision = put_pod(&f, "ns", "x", NULL, NULL);
	cacher_fixture_settle(&f);
	assert_status(recorder_open(&f, inl, &options, NULL), VD_OK);
	assert_status(recorder_open(&f, run, &options, vdi_env_executor(f.env)), VD_OK);
	assert_status(vd_cacher_watch(f.cacher, &options, NULL, &pulled, NULL), VD_OK);
	cacher_fixture_settle(&f);
	assert_status(vd_watcher_next(pulled, &event), VD_AGAIN);
	wanted.fd = vd_watcher_fd(pulled);
	assert_int_equal(poll(&wanted, 1, 0), 0);
	vdi_cacher_drain(f.cacher, options.revision, count_call, &drained);
	vdi_sim_run_until_idle(f.env);
	expect_ended(inl);
	expect_ended(run);
	assert_int_equal(poll(&wanted, 1, 0), 1);
	assert_status(vd_watcher_next(pulled, &event), VD_CLOSED);
	assert_int_equal(drained, 0);
	vd_watcher_close(pulled, NULL, NULL);
	recorder_close(&f, inl);
	recorder_close(&f, run);
	cacher_fixture_settle(&f);
	assert_int_equal(drained, 1);
	cacher_fixture_teardown(&f);
	free(inl);
	free(run);
}

/* However many share a selector and a thread, and however many of them are behind: each one ends, once. */
static void all_watches_of_one_selector_end(void **state)
{
	enum { MOST = 9 };

	for (unsigned count = 1; count <= MOST; count++)
		for (unsigned served = 0; served < 2; served++) {
			struct cacher_fixture	f;
			struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
			struct recorder	       *r = calloc(2 * MOST, sizeof *r);
			unsigned		drained = 0;

			cacher_fixture_setup(&f, 6);
			options.revision = put_pod(&f, "ns", "x", NULL, NULL);
			cacher_fixture_settle(&f);
			for (unsigned i = 0; i < 2 * count; i++) { /* every other one waits for a revision */
				struct vd_watch_options own = options;

				own.revision += i % 2 ? 100 : 0;
				assert_status(recorder_open(&f, &r[i], &own,
							    served ? vdi_env_executor(f.env) : NULL),
					      VD_OK);
			}
			cacher_fixture_settle(&f);
			vdi_cacher_drain(f.cacher, options.revision, count_call, &drained);
			vdi_sim_run_until_idle(f.env);
			for (unsigned i = 0; i < 2 * count; i++) {
				expect_ended(&r[i]);
				recorder_close(&f, &r[i]);
			}
			cacher_fixture_settle(&f);
			assert_int_equal(drained, 1);
			cacher_fixture_teardown(&f);
			free(r);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_watch_ends_behind_its_last_event),
		cmocka_unit_test(the_cache_comes_up_to_the_revision_first),
		cmocka_unit_test(the_end_cuts_it_short),
		cmocka_unit_test(idle_watches_end_too),
		cmocka_unit_test(all_watches_of_one_selector_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
