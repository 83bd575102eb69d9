/* The life of a cacher: what it refuses to be made of, when it is ready, what its end and its new beginnings
 * do to those who read and watch. */
#include "cacher.h"
#include "cacher_fixture.h"
#include "env.h"
#include "feed_store.h"
#include "store_chaos.h"

#define PUT_OP(name)                                                                                         \
	{                                                                                                    \
		.kind = VD_OP_PUT, .key = vd_bytes_of(KEY(name)), .value = vd_bytes_of(POD(name))            \
	}
#define POD(name) "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\"}}"
#define KEY(name) "/registry/pods/ns/" name

/* rules: R-109 */
static void r501_what_cannot_be_a_cacher(void **state)
{
	static const struct {
		const char *prefix, *trigger, *why;
		int64_t	    window_s;
	} rows[] = {
		{ "", NULL, "key prefix", 75 },
		{ "/", NULL, "key prefix", 75 },
		{ "registry/pods/", NULL, "key prefix", 75 },
		{ "/registry/pods", NULL, "key prefix", 75 },
		{ "/registry/pods/", "spec.other", "the trigger spec.other is not a declared field", 75 },
		{ "/registry/pods/", NULL, "the history window (74000 ms) must not be below 1m15s", 74 },
	};
	struct cacher_fixture f;

	cacher_fixture_init(&f, 1);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_cacher *cacher = NULL;
		struct vd_error	  error = { 0 };

		f.options.key_prefix = rows[i].prefix;
		f.options.trigger = rows[i].trigger;
		f.options.history_window = VD_SECONDS(rows[i].window_s);
		assert_status(vd_cacher_new(f.env, f.store, &f.options, &cacher, &error),
			      VD_INVALID_ARGUMENT);
		if (strstr(error.message, rows[i].why) == NULL)
			fail_msg("%s", error.message);
	}
	cacher_fixture_teardown(&f);
}

/* Each of its options at its border, with the words of the refusal; NULL: it is fine. */
static void r501_the_borders_of_the_options(void **state)
{
	static const char positive[] = "history_bytes, lag_bytes_max and watcher_count_max must be positive";
	static const char interval[] = "consistency_interval (-1 ms) must not be negative, and "
				       "on_inconsistency (0) must be one of enum vd_on_inconsistency";
	static const struct {
		int64_t	    history, lag, interval_ms;
		unsigned    watchers, on_inconsistency;
		const char *resource, *why;
	} rows[] = {
		{ 1, 1, 0, 1, 0, "pods", NULL },
		{ 0, 1, 0, 1, 0, "pods", positive },
		{ -1, 1, 0, 1, 0, "pods", positive },
		{ 1, 0, 0, 1, 0, "pods", positive },
		{ 1, -1, 0, 1, 0, "pods", positive },
		{ 1, 1, 0, 0, 0, "pods", positive },
		{ 1, 1, -1, 1, 0, "pods", interval },
		{ 1, 1, 1, 1, VD_ON_INCONSISTENCY_PANIC, "pods", NULL },
		{ 1, 1, 0, 1, VD_ON_INCONSISTENCY_PANIC + 1, "pods", "on_inconsistency (" },
		{ 1, 1, 0, 1, 0, "", "cacher: resource is NULL or empty" },
		{ 1, 1, 0, 1, 0, NULL, "cacher: resource is NULL or empty" },
	};
	struct cacher_fixture f;

	cacher_fixture_init(&f, 1);
	for (size_t i = 0; i <= VDI_ARRAY_SIZE(rows); i++) {
		bool			 has_codec = i < VDI_ARRAY_SIZE(rows);
		const char		*why = has_codec ? rows[i].why : "cacher: codec is NULL";
		struct vd_cacher_options options = f.options;
		struct vd_cacher	*cacher = NULL;
		struct vd_error		 error = { 0 };

		options.codec = has_codec ? options.codec : NULL;
		if (has_codec) {
			options.history_bytes = rows[i].history;
			options.lag_bytes_max = rows[i].lag;
			options.consistency_interval = VD_MS(rows[i].interval_ms);
			options.watcher_count_max = rows[i].watchers;
			options.on_inconsistency = rows[i].on_inconsistency;
			options.resource = rows[i].resource;
		}
		assert_status(vd_cacher_new(f.env, f.store, &options, &cacher, &error),
			      why ? VD_INVALID_ARGUMENT : VD_OK);
		assert_int_equal(cacher == NULL, why != NULL);
		if (why ? strstr(error.message, why) == NULL : error.message[0])
			fail_msg("%zu: %s", i, error.message);
		vd_cacher_close_wait(cacher);
	}
	cacher_fixture_teardown(&f);
}

/* The constructor does not wait; who asks meanwhile is told to come again, and a wait ends with the fill. */
static void r502_r504_r510_r511_r513_it_becomes_ready_by_itself(void **state)
{
	struct chaos_options  down = { .refuse = 1000, .refuse_watch = 1000 }, calm = { 0 };
	struct cacher_fixture f;
	struct vd_store	     *chaos;
	struct vd_error	      error;
	uint64_t	      generation = 9;
	vd_mono		      changed;

	cacher_fixture_init(&f, 2);
	chaos = chaos_store_new(f.env, f.store, &down);
	assert_status(vd_cacher_new(f.env, chaos, &f.options, &f.cacher, &error), VD_OK);
	assert_status(vd_cacher_ready(f.cacher, &error), VD_NOT_READY);
	assert_int_equal(vd_cacher_revision(f.cacher), 0);
	/* Nobody becomes ready by waiting: the time is over. */
	changed = vd_env_now(f.env);
	assert_status(vd_cacher_ready_wait(f.cacher, VD_SECONDS(0), &error), VD_NOT_READY);
	assert_int_equal(vd_env_now(f.env).ns, changed.ns);
	assert_status(vd_cacher_ready_wait(f.cacher, VD_SECONDS(2), &error), VD_NOT_READY);
	assert_int_equal(vd_mono_since(vd_env_now(f.env), changed).ns, VD_SECONDS(2).ns);
	changed = f.cacher->ready.changed;
	vdi_sim_advance(f.env, VD_SECONDS(5));
	assert_true(f.cacher->ready.changed.ns == changed.ns); /* pending to pending is no change */
	assert_int_equal(f.cacher->ready.generation, 0);
	chaos_set(chaos, &calm);
	assert_status(vd_cacher_ready_wait(f.cacher, (vd_dur) { -1 }, &error), VD_OK); /* however long */
	assert_status(vdi_ready_check(&f.cacher->ready, &generation, &error), VD_OK);
	assert_int_equal(generation, 1);
	assert_true(f.cacher->ready.changed.ns > changed.ns);
	/* Ready again while ready: neither a generation nor a change. */
	changed = f.cacher->ready.changed;
	vdi_sim_advance(f.env, VD_SECONDS(1));
	vdi_ready_set_ready(&f.cacher->ready);
	assert_status(vdi_ready_check(&f.cacher->ready, &generation, &error), VD_OK);
	assert_int_equal(generation, 1);
	assert_true(f.cacher->ready.changed.ns == changed.ns);
	f.cacher = vd_cacher_close_wait(f.cacher);
	chaos_store_free(chaos);
	cacher_fixture_teardown(&f);
}

static bool is_pending(void *arg)
{
	return vd_cacher_ready(arg, NULL) != VD_OK;
}

/* Relist: watches end without an error event, who comes meanwhile is refused, and from the last revision
 * nothing is missing where the history reaches, or it is Expired: never a gap.
 * rules, T-120 */
static void r503_r504_t120_a_new_beginning_makes_no_gap(void **state)
{
	struct cacher_fixture	f;
	struct vd_store	       *feed;
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct recorder	       *r = calloc(1, sizeof *r);
	struct vd_error		error;
	vd_rev			seen;

	cacher_fixture_init(&f, 3);
	f.options.no_backfill = true;
	feed = feed_store_new(f.env);
	cacher_fixture_open(&f, feed);
	feed_put(feed, KEY("x"), POD("x"));
	cacher_fixture_settle(&f);
	options.revision = seen = vd_cacher_revision(f.cacher);
	assert_status(recorder_open(&f, r, &options, NULL), VD_OK);
	cacher_fixture_settle(&f);
	feed_break(feed, VD_EXPIRED);
	assert_true(vdi_sim_run_until(f.env, is_pending, f.cacher, VD_SECONDS(1)));
	feed_put(feed, KEY("y"), POD("y")); /* while nobody listens */
	cacher_fixture_settle(&f);
	assert_int_equal(r->ended, 1);
	assert_status(r->reason, VD_CLOSED);
	assert_int_equal(r->count, 0);
	recorder_close(&f, r);
	*r = (struct recorder) { 0 };
	assert_status(recorder_open(&f, r, &options, NULL), VD_NOT_READY);
	assert_status(vd_cacher_ready_wait(f.cacher, VD_SECONDS(60), &error), VD_OK);
	assert_int_equal(f.cacher->ready.generation, 2);
	assert_int_equal(vdi_metric_value(f.cacher->metrics.initializations), 2);
	assert_status(recorder_open(&f, r, &options, NULL), VD_OK);
	cacher_fixture_settle(&f);
	assert_string_equal(recorder_text(r), "!expired");
	recorder_close(&f, r);
	f.cacher = vd_cacher_close_wait(f.cacher);
	feed_store_free(feed);
	cacher_fixture_teardown(&f);
	free(r);
}

/* A watch that was let in before the relist and joins behind it gets nothing, not even an error. */
static void r520_a_watch_of_the_old_generation_just_ends(void **state)
{
	struct cacher_fixture	f;
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct recorder	       *r = calloc(1, sizeof *r);

	cacher_fixture_setup(&f, 4);
	put_pod(&f, "ns", "x", NULL, NULL);
	cacher_fixture_settle(&f);
	assert_status(recorder_open(&f, r, &options, NULL), VD_OK); /* not joined yet */
	vdi_ready_set_pending(&f.cacher->ready, "test");
	vdi_ready_set_ready(&f.cacher->ready);
	cacher_fixture_settle(&f);
	assert_int_equal(r->count, 0);
	assert_int_equal(r->ended, 1);
	assert_status(r->reason, VD_CLOSED);
	recorder_close(&f, r);
	cacher_fixture_teardown(&f);
	free(r);
}

struct answer {
	unsigned  count;
	vd_status status;
};

static void note_object(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
			const struct vd_error *error)
{
	struct answer *answer = arg;

	answer->count++;
	answer->status = status;
}

static void note_list(void *arg, vd_status status, struct vd_list *list, const struct vd_error *error)
{
	struct answer *answer = arg;

	answer->count++;
	answer->status = status;
	vd_list_free(list);
}

static void note_closed(void *arg)
{
	*(bool *) arg = true;
}

/* After the end watches and lists are refused; those that waited are answered, once.
 * rules */
static void t119_r564_the_end_answers_everybody(void **state)
{
	struct cacher_fixture	f;
	struct vd_watch_options watch = VD_WATCH_OPTIONS_INIT;
	struct vd_list_options	list = VD_LIST_OPTIONS_INIT;
	struct recorder	       *r = calloc(1, sizeof *r);
	struct answer		get = { 0 }, listed = { 0 }, late = { 0 };
	struct vd_watcher      *watcher;
	struct vd_error		error;
	bool			is_closed = false;

	cacher_fixture_setup(&f, 5);
	assert_status(recorder_open(&f, r, &watch, NULL), VD_OK);
	cacher_fixture_settle(&f);
	/* Both wait for a revision of the future. */
	list.revision = vd_cacher_revision(f.cacher) + 10;
	assert_status(vd_cacher_get(f.cacher, vd_bytes_of("ns"), vd_bytes_of("x"), list.revision, note_object,
				    &get),
		      VD_OK);
	assert_status(vd_cacher_list(f.cacher, &list, note_list, &listed, &error), VD_OK);
	vdi_sim_advance(f.env, VD_MS(100));
	assert_int_equal(get.count + listed.count, 0);
	vdi_cacher_ref(f.cacher); /* to look at it afterwards */
	vd_cacher_close(f.cacher, note_closed, &is_closed);
	assert_status(vd_cacher_watch(f.cacher, &watch, NULL, &watcher, &error), VD_CLOSED);
	assert_string_equal(error.message, "apiserver cacher is stopped");
	assert_status(vd_cacher_list(f.cacher, &list, note_list, &late, &error), VD_CLOSED);
	assert_status(vd_cacher_get(f.cacher, vd_bytes_of("ns"), vd_bytes_of("x"), 0, note_object, &late),
		      VD_CLOSED);
	vdi_sim_advance(f.env, VD_MS(50));
	assert_int_equal(get.count, 1);
	assert_status(get.status, VD_CLOSED);
	assert_int_equal(listed.count, 1);
	assert_status(listed.status, VD_CLOSED);
	assert_int_equal(late.count, 0);
	assert_int_equal(r->ended, 1);
	assert_status(r->reason, VD_CLOSED);
	recorder_close(&f, r);
	cacher_fixture_settle(&f);
	assert_true(is_closed);
	vdi_cacher_unref(f.cacher);
	f.cacher = NULL;
	cacher_fixture_teardown(&f);
	free(r);
}

/* ..R-464: nobody waits longer than 3 s, however often the revision moves below what is asked;
 * only real waits are measured. */
static void t168_r462_r463_r464_waiting_for_a_revision(void **state)
{
	struct cacher_fixture f;
	struct answer	      now = { 0 }, soon = { 0 }, never = { 0 };
	vd_rev		      revision;
	vd_mono		      started;

	cacher_fixture_setup(&f, 6);
	put_pod(&f, "ns", "x", NULL, NULL);
	cacher_fixture_settle(&f);
	revision = vd_cacher_revision(f.cacher);
	started = vd_env_now(f.env);
	assert_status(
		vd_cacher_get(f.cacher, vd_bytes_of("ns"), vd_bytes_of("x"), revision, note_object, &now),
		VD_OK);
	assert_int_equal(now.count, 1); /* at once */
	assert_int_equal(vdi_metric_value(f.cacher->metrics.read_wait), 0);
	assert_status(vd_cacher_get(f.cacher, vd_bytes_of("ns"), vd_bytes_of("x"), revision + 3, note_object,
				    &soon),
		      VD_OK);
	assert_status(vd_cacher_get(f.cacher, vd_bytes_of("ns"), vd_bytes_of("x"), revision + 100,
				    note_object, &never),
		      VD_OK);
	for (unsigned i = 0; i < 3; i++) {
		vdi_sim_advance(f.env, VD_MS(500));
		assert_int_equal(soon.count, 0);
		put_pod(&f, "ns", "x", NULL, NULL);
	}
	cacher_fixture_settle(&f);
	assert_int_equal(soon.count, 1);
	assert_status(soon.status, VD_OK);
	assert_int_equal(vdi_metric_value(f.cacher->metrics.read_wait), 1);
	while (never.count == 0)
		vdi_sim_advance(f.env, VD_MS(10));
	assert_status(never.status, VD_TOO_LARGE_REVISION);
	assert_in_range((uint64_t) vd_mono_since(vd_env_now(f.env), started).ns, VD_SECONDS(3).ns,
			VD_MS(3030).ns);
	assert_int_equal(vdi_metric_value(f.cacher->metrics.read_wait), 2);
	cacher_fixture_teardown(&f);
}

/* a DELETED event and its object carry the revision of the deletion. R-450: a bookmark of the
 * store moves the revision and keeps no snapshot.
 * rules: R-407 */
static void t061_t126_r434_r437_r450_revisions_move_on(void **state)
{
	struct cacher_fixture	f;
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct recorder	       *r = calloc(1, sizeof *r);
	struct vd_store	       *feed;
	char			expected[64];
	vd_rev			gone, later;

	cacher_fixture_init(&f, 7);
	feed = feed_store_new(f.env);
	cacher_fixture_open(&f, feed);
	feed_put(feed, KEY("x"), POD("x"));
	cacher_fixture_settle(&f);
	options.revision = vd_cacher_revision(f.cacher);
	options.allow_bookmarks = true;
	assert_status(recorder_open(&f, r, &options, NULL), VD_OK);
	cacher_fixture_settle(&f);
	gone = feed_delete(feed, KEY("x"));
	cacher_fixture_settle(&f);
	snprintf(expected, sizeof expected, "-ns/x@%lld", (long long) gone);
	assert_string_equal(recorder_text(r), expected);
	for (unsigned i = 0; i < 5; i++)
		feed_progress(feed);
	later = gone + 5;
	vdi_sim_advance(f.env, VD_SECONDS(65));
	assert_int_equal(vd_cacher_revision(f.cacher), later);
	assert_int_equal(f.cacher->watch_cache.store.retained_count, 0);
	assert_int_equal(f.cacher->watch_cache.history.end - f.cacher->watch_cache.history.start,
			 2); /* */
	snprintf(expected, sizeof expected, "*@%lld", (long long) later);
	assert_string_equal(recorder_text(r), expected);
	/* The newest snapshot stays good for the higher revision. */
	assert_true(vdi_watch_cache_has_revision(&f.cacher->watch_cache, later));
	recorder_close(&f, r);
	f.cacher = vd_cacher_close_wait(f.cacher);
	feed_store_free(feed);
	cacher_fixture_teardown(&f);
	free(r);
}

/* several events of one revision; who reads at it sees the last state only, who watches sees all of
 * them (E-459). */
static void on_txn(void *arg, vd_status status, const struct vd_txn_result *result,
		   const struct vd_error *error)
{
	assert_status(status, VD_OK);
	*(vd_rev *) arg = result->revision;
}

static void r446_r484_one_revision_many_events(void **state)
{
	struct cacher_fixture	f;
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct recorder	       *r = calloc(1, sizeof *r);
	struct vd_op		ops[] = { PUT_OP("x"), PUT_OP("y"), PUT_OP("z") };
	struct vd_txn_request	txn = { .success = ops, .success_count = 3 };
	struct vd_list_options	list = VD_LIST_OPTIONS_INIT;
	struct vd_list	       *listed;
	vd_rev			before, revision = 0;
	char			expected[96];

	cacher_fixture_setup(&f, 8);
	before = put_pod(&f, "ns", "a", NULL, NULL);
	assert_status(vd_store_txn(f.store, &txn, on_txn, &revision), VD_OK);
	cacher_fixture_settle(&f);
	assert_int_equal(revision, before + 1);
	options.revision = before;
	assert_status(recorder_open(&f, r, &options, NULL), VD_OK);
	cacher_fixture_settle(&f);
	snprintf(expected, sizeof expected, "+ns/x@%lld +ns/y@%lld +ns/z@%lld", (long long) revision,
		 (long long) revision, (long long) revision);
	assert_string_equal(recorder_text(r), expected);
	recorder_close(&f, r);
	*r = (struct recorder) { 0 };
	/* From it: none of them. */
	options.revision = revision;
	assert_status(recorder_open(&f, r, &options, NULL), VD_OK);
	put_pod(&f, "ns", "b", NULL, NULL);
	cacher_fixture_settle(&f);
	snprintf(expected, sizeof expected, "+ns/b@%lld", (long long) revision + 1);
	assert_string_equal(recorder_text(r), expected);
	list.match = VD_MATCH_EXACT;
	for (unsigned i = 0; i < 2; i++) {
		size_t count = 0;

		list.revision = i ? revision : before;
		assert_status(vd_cacher_list_wait(f.cacher, &list, &listed, NULL), VD_OK);
		while (vd_list_next(listed))
			count++;
		assert_int_equal(count, i ? 4 : 1);
		vd_list_free(listed);
	}
	recorder_close(&f, r);
	cacher_fixture_teardown(&f);
	free(r);
}

/* what happens while a watch is being opened is neither lost nor told twice, wherever it starts. */
static void r486_events_while_a_watch_opens(void **state)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct cacher_fixture	f;
		struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
		struct recorder	       *r = calloc(1, sizeof *r);
		vd_rev			first;

		cacher_fixture_setup(&f, seed);
		first = put_pod(&f, "ns", "x", NULL, NULL);
		put_pod(&f, "ns", "x", NULL, NULL);
		options.revision = seed % 2 ? first - 1 : VD_REVISION_ANY;
		assert_status(recorder_open(&f, r, &options, seed % 3 ? NULL : vdi_env_executor(f.env)),
			      VD_OK);
		for (unsigned i = 0; i < 20; i++) {
			put_pod(&f, "ns", "x", NULL, NULL);
			for (unsigned steps = 0; steps < (unsigned) (seed % 7); steps++)
				(void) vdi_sim_step(f.env);
		}
		cacher_fixture_settle(&f);
		assert_true(r->count > 0 && r->count <= 22);
		for (size_t i = 1; i < r->count; i++)
			assert_int_equal(r->events[i].revision, r->events[i - 1].revision + 1);
		assert_int_equal(r->events[r->count - 1].revision, first + 21);
		if (seed % 2)
			assert_int_equal(r->count, 22);
		recorder_close(&f, r);
		cacher_fixture_teardown(&f);
		free(r);
	}
}

static void there_are_at_most_so_many_watches(void **state)
{
	struct cacher_fixture	f;
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct recorder	       *r = calloc(2, sizeof *r);
	struct vd_watcher      *watcher;
	struct vd_error		error = { 0 };

	cacher_fixture_init(&f, 9);
	f.options.watcher_count_max = 2;
	cacher_fixture_open(&f, NULL);
	assert_status(vd_cacher_watch(f.cacher, &options, NULL, &watcher, &error), VD_OK);
	assert_string_equal(error.message, ""); /* nothing is said about what goes well */
	vd_watcher_close(watcher, NULL, NULL);
	cacher_fixture_settle(&f);
	for (unsigned i = 0; i < 2; i++)
		assert_status(recorder_open(&f, &r[i], &options, NULL), VD_OK);
	assert_status(vd_cacher_watch(f.cacher, &options, NULL, &watcher, &error), VD_FULL);
	assert_string_equal(error.message, "2 watches are open on pods, no more are allowed");
	recorder_close(&f, &r[0]);
	cacher_fixture_settle(&f);
	r[0] = (struct recorder) { 0 };
	assert_status(recorder_open(&f, &r[0], &options, NULL), VD_OK);
	for (unsigned i = 0; i < 2; i++)
		recorder_close(&f, &r[i]);
	cacher_fixture_teardown(&f);
	free(r);
}

/* Whatever cannot be allocated, there is no half cacher. */
static void torture_construction(void **state)
{
	bool failed = true;

	for (unsigned nth = 1; failed; nth++) {
		struct cacher_fixture f;
		const char *const     labels[] = { "app", NULL };
		vd_status	      status;

		cacher_fixture_init(&f, 10);
		f.options.index_labels = labels;
		(void) vdi_alloc_fail_nth(nth, 1);
		status = vd_cacher_new(f.env, f.store, &f.options, &f.cacher, NULL);
		failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		cacher_fixture_teardown(&f);
		assert_true(nth < 2000);
	}
}

/* an idle cache follows the store by the progress that comes by itself, every ten minutes here;
 * nobody has to wait for it. */
static void r211_an_idle_cache_follows_by_itself(void **state)
{
	struct cacher_fixture f;
	struct vd_error	      error;
	vd_rev		      revision;

	cacher_fixture_setup(&f, 11);
	assert_status(vd_store_put_wait(f.store, vd_bytes_of("/registry/other/x"), vd_bytes_of("{}"),
					&revision, &error),
		      VD_OK);
	cacher_fixture_settle(&f);
	assert_true(vd_cacher_revision(f.cacher) < revision);
	vdi_sim_advance(f.env, VD_SECONDS(21 * 60));
	assert_int_equal(vd_cacher_revision(f.cacher), revision);
	cacher_fixture_teardown(&f);
}

static const struct vd_store_ops *honest;
static vd_rev			  said_compacted, said_kept;

static vd_status say_what_is_compacted(struct vd_store *store, struct vd_store_status *ret_status)
{
	vd_status status = honest->status(store, ret_status);

	ret_status->compacted = said_compacted;
	ret_status->kept = said_kept;
	return status;
}

/* Within 15 s the cache drops the history that the store does not have any more, and no longer answers for
 * revisions before the compaction, also where the store keeps them in memory. */
static void r455_the_cache_follows_the_compactions_of_the_store(void **state)
{
	enum { PUTS = 20 };
	static const struct {
		int compacted, kept; /* index of a put; -1: none */
		int floor, exact;    /* the oldest that a watch, and that an exact list may start from */
	} rows[] = { { -1, -1, 0, 0 }, { 10, -1, 10, 10 }, { 10, 5, 5, 10 }, { -1, 5, 5, 5 } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_store_ops	ops;
		struct cacher_fixture	f;
		struct vdi_watch_cache *cache;
		vd_rev			at[PUTS];

		cacher_fixture_init(&f, 9);
		at[0] = put_pod(&f, "a", "x", NULL, NULL);
		cacher_fixture_open(&f, NULL);
		cache = &f.cacher->watch_cache;
		for (unsigned k = 1; k < PUTS; k++)
			at[k] = put_pod(&f, "a", "x", k % 2 ? "web" : "db", NULL);
		cacher_fixture_settle(&f);
		honest = f.store->ops;
		ops = *honest;
		ops.status = say_what_is_compacted;
		said_compacted = rows[i].compacted < 0 ? -1 : at[rows[i].compacted];
		said_kept = rows[i].kept < 0 ? 0 : at[rows[i].kept];
		f.store->ops = &ops;
		vdi_sim_advance(f.env, VD_MS(15100));
		assert_true(vdi_history_floor(&cache->history) <= at[rows[i].floor]);
		if (rows[i].floor)
			assert_int_equal(vdi_history_floor(&cache->history), at[rows[i].floor]);
		for (int k = 0; k < PUTS; k++)
			assert_int_equal(vdi_watch_cache_has_revision(cache, at[k]), k >= rows[i].exact);
		f.cacher = vd_cacher_close_wait(f.cacher);
		f.store->ops = honest;
		cacher_fixture_teardown(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r501_what_cannot_be_a_cacher),
		cmocka_unit_test(r501_the_borders_of_the_options),
		cmocka_unit_test(r502_r504_r510_r511_r513_it_becomes_ready_by_itself),
		cmocka_unit_test(r503_r504_t120_a_new_beginning_makes_no_gap),
		cmocka_unit_test(r520_a_watch_of_the_old_generation_just_ends),
		cmocka_unit_test(t119_r564_the_end_answers_everybody),
		cmocka_unit_test(t168_r462_r463_r464_waiting_for_a_revision),
		cmocka_unit_test(t061_t126_r434_r437_r450_revisions_move_on),
		cmocka_unit_test(r446_r484_one_revision_many_events),
		cmocka_unit_test(there_are_at_most_so_many_watches),
		cmocka_unit_test(torture_construction),
		cmocka_unit_test(r211_an_idle_cache_follows_by_itself),
		cmocka_unit_test(r486_events_while_a_watch_opens),
		cmocka_unit_test(r455_the_cache_follows_the_compactions_of_the_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
