/* The reflector: resumes what can be resumed, lists again when it must, and waits between (client-go
 * tools/cache/reflector.go, as far as it is ours). */
#include "cacher_fixture.h"

#include "cacher.h"
#include "env.h"
#include "feed_store.h"
#include "store_chaos.h"

#define POD(name) "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\"}}"
#define KEY(name) "/registry/pods/ns/" name

struct world {
	struct cacher_fixture f;
	struct vd_store	     *feed;
	struct recorder	     *r;
};

static void world_open(struct world *world, uint64_t seed, bool skip_undecodable)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;

	memset(world, 0, sizeof *world);
	cacher_fixture_init(&world->f, seed);
	world->f.options.skip_undecodable = skip_undecodable;
	world->feed = feed_store_new(world->f.env);
	world->r = calloc(1, sizeof *world->r);
	cacher_fixture_open(&world->f, world->feed);
	assert_status(recorder_open(&world->f, world->r, &options, NULL), VD_OK);
	cacher_fixture_settle(&world->f);
}

static void world_close(struct world *world)
{
	recorder_close(&world->f, world->r);
	world->f.cacher = vd_cacher_close_wait(world->f.cacher);
	feed_store_free(world->feed);
	cacher_fixture_teardown(&world->f);
	free(world->r);
}

static uint64_t generation(struct world *world)
{
	return world->f.cacher->ready.generation;
}

/* rules: R-313, T-185 */
static void t183_r318_a_passing_error_is_resumed_without_a_list(void **state)
{
	static const vd_status passing[] = { VD_UNAVAILABLE, VD_TIMEOUT,   VD_INTERNAL,
					     VD_FULL,	     VD_NOT_READY, VD_NOMEM };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(passing); i++) {
		struct world world;
		uint64_t     watches;
		vd_rev	     revision;
		char	     expected[128];

		world_open(&world, i, false);
		watches = feed_watches(world.feed);
		revision = feed_put(world.feed, KEY("x"), POD("x"));
		cacher_fixture_settle(&world.f);
		feed_break(world.feed, passing[i]);
		cacher_fixture_settle(&world.f);
		/* While nobody looks. Readers are served from what there is. */
		feed_put(world.feed, KEY("x"), POD("x"));
		feed_put(world.feed, KEY("y"), POD("y"));
		assert_status(vd_cacher_ready(world.f.cacher, NULL), VD_OK);
		assert_int_equal(vd_cacher_revision(world.f.cacher), revision);
		vdi_sim_advance(world.f.env, VD_MS(750));
		assert_int_equal(feed_watches(world.feed), watches);
		vdi_sim_advance(world.f.env, VD_MS(900));
		assert_int_equal(feed_watches(world.feed), watches + 1);
		assert_int_equal(world.f.cacher->reflector.relists, 0);
		assert_int_equal(world.f.cacher->reflector.resumes, 1);
		assert_int_equal(vdi_metric_value(world.f.cacher->metrics.resumes), 1);
		assert_int_equal(vdi_metric_value(world.f.cacher->metrics.relists), 0);
		assert_int_equal(generation(&world), 1);
		snprintf(expected, sizeof expected, "+ns/x@%lld ~ns/x@%lld +ns/y@%lld", (long long) revision,
			 (long long) revision + 1, (long long) revision + 2);
		assert_string_equal(recorder_text(world.r), expected);
		assert_int_equal(world.r->ended, 0);
		world_close(&world);
	}
}

/* rules: T-183 */
static void t188_r313_an_expired_stream_makes_a_new_generation(void **state)
{
	static const vd_status lasting[] = { VD_EXPIRED,     VD_TOO_LARGE_REVISION, VD_CORRUPT,
					     VD_UNDECODABLE, VD_BAD_REQUEST,	    VD_INVALID_ARGUMENT,
					     VD_UNSUPPORTED };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(lasting); i++) {
		struct world	       world;
		struct vd_error	       error;
		struct vd_object      *object;
		struct vd_list_options options = VD_LIST_OPTIONS_INIT;
		struct vd_list	      *list;
		int64_t		       bytes;

		world_open(&world, i, false);
		feed_put(world.feed, KEY("x"), POD("x"));
		cacher_fixture_settle(&world.f);
		feed_break(world.feed, lasting[i]);
		cacher_fixture_settle(&world.f);
		assert_int_equal(world.r->ended, 1);
		assert_status(world.r->reason, VD_CLOSED); /* no error event */
		assert_int_equal(world.r->count, 1);
		assert_status(vd_cacher_ready(world.f.cacher, &error), VD_NOT_READY);
		assert_true(error.retry_after_s >= 1);
		feed_delete(world.feed, KEY("x"));
		feed_put(world.feed, KEY("z"), POD("z"));
		vdi_sim_advance(world.f.env, VD_SECONDS(2));
		assert_status(vd_cacher_ready(world.f.cacher, NULL), VD_OK);
		assert_int_equal(generation(&world), 2);
		assert_int_equal(world.f.cacher->reflector.relists, 1);
		assert_int_equal(vdi_metric_value(world.f.cacher->metrics.relists), 1);
		options.revision = VD_REVISION_ANY;
		assert_status(vd_cacher_list_wait(world.f.cacher, &options, &list, NULL), VD_OK);
		object = vd_list_next(list);
		assert_memory_equal(vd_object_name(object).data, "z", 1);
		bytes = vdi_object_store_size_of(object);
		assert_int_equal(world.f.cacher->watch_cache.store.bytes, bytes);
		assert_null(vd_list_next(list));
		vd_list_free(list);
		feed_break(world.feed, lasting[i]);
		vdi_sim_advance(world.f.env, VD_SECONDS(10));
		assert_int_equal(generation(&world), 3);
		assert_int_equal(world.f.cacher->watch_cache.store.bytes,
				 bytes); /* of this generation only */
		world_close(&world);
	}
}

static const struct vd_store_ops *honest;
static struct {
	vd_range_fn done;
	void	   *arg;
} reversed;

static void give_reversed(void *arg, vd_status status, const struct vd_range_result *result,
			  const struct vd_error *error)
{
	struct vd_range_result copy = result ? *result : (struct vd_range_result) { 0 };
	struct vd_kv	      *kvs[16];

	assert_true(copy.kv_count < VDI_ARRAY_SIZE(kvs));
	for (size_t i = 0; i < copy.kv_count; i++)
		kvs[i] = copy.kvs[copy.kv_count - 1 - i];
	if (copy.kv_count) /* and one of them twice */
		kvs[copy.kv_count++] = kvs[0];
	copy.kvs = kvs;
	reversed.done(reversed.arg, status, result ? &copy : NULL, error);
}

static vd_status range_reversed(struct vd_store *store, const struct vd_range_request *request,
				vd_range_fn done, void *arg)
{
	if (request->range_end.size == 0 || request->count_only)
		return honest->range(store, request, done, arg);
	reversed.done = done;
	reversed.arg = arg;
	return honest->range(store, request, give_reversed, arg);
}

/* A store that does not keep the order, and names a key twice: the cache is whole and in order all the
 * same. */
static void a_list_without_order(void **state)
{
	struct cacher_fixture  f;
	struct vd_store	      *feed;
	struct vd_store_ops    liar;
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct vd_list	      *list;
	int64_t		       bytes = 0;

	cacher_fixture_init(&f, 7);
	feed = feed_store_new(f.env);
	feed_load(feed, KEY("x"), vd_bytes_of(POD("x")));
	feed_load(feed, KEY("y"), vd_bytes_of(POD("y")));
	feed_load(feed, KEY("z"), vd_bytes_of(POD("z")));
	honest = feed->ops;
	liar = *honest;
	liar.range = range_reversed;
	feed->ops = &liar;
	cacher_fixture_open(&f, feed);
	feed->ops = honest;
	assert_int_equal(vdi_metric_value(f.cacher->metrics.initialization_errors), 0);
	options.revision = VD_REVISION_ANY;
	assert_status(vd_cacher_list_wait(f.cacher, &options, &list, NULL), VD_OK);
	for (char name = 'x'; name <= 'z'; name++) {
		struct vd_object *object = vd_list_next(list);

		assert_non_null(object);
		assert_memory_equal(vd_object_name(object).data, &name, 1);
		bytes += vdi_object_store_size_of(object);
	}
	assert_null(vd_list_next(list));
	vd_list_free(list);
	assert_int_equal(f.cacher->watch_cache.store.bytes, bytes);
	f.cacher = vd_cacher_close_wait(f.cacher);
	feed_store_free(feed);
	cacher_fixture_teardown(&f);
}

static void r512_words_say_why_it_is_not_ready(void **state)
{
	struct world	world;
	struct vd_error error;

	world_open(&world, 3, false);
	feed_break(world.feed, VD_EXPIRED);
	cacher_fixture_settle(&world.f);
	assert_status(vd_cacher_ready(world.f.cacher, &error), VD_NOT_READY);
	assert_string_equal(
		error.message,
		"storage is (re)initializing: The resourceVersion for the provided watch is too old.");
	world_close(&world);
}

/* A server's timeout is followed at once; a watch that ended within a second and said nothing waits.
 * rules */
static void t181_r317_very_short_watches(void **state)
{
	struct world world;
	uint64_t     watches;

	world_open(&world, 4, false);
	vdi_sim_advance(world.f.env, VD_SECONDS(5));
	watches = feed_watches(world.feed);
	feed_break(world.feed, VD_CLOSED);
	vdi_sim_advance(world.f.env, VD_MS(1));
	assert_int_equal(feed_watches(world.feed), watches + 1);
	feed_break(world.feed, VD_CLOSED); /* nothing came, no second passed */
	vdi_sim_advance(world.f.env, VD_MS(790));
	assert_int_equal(feed_watches(world.feed), watches + 1);
	vdi_sim_advance(world.f.env, VD_MS(820));
	assert_int_equal(feed_watches(world.feed), watches + 2);
	feed_put(world.feed, KEY("x"), POD("x"));
	vdi_sim_advance(world.f.env, VD_MS(10));
	feed_break(world.feed, VD_CLOSED); /* short, but it brought something */
	vdi_sim_advance(world.f.env, VD_MS(1));
	assert_int_equal(feed_watches(world.feed), watches + 3);
	assert_int_equal(world.f.cacher->reflector.relists, 0);
	assert_int_equal(world.r->count, 1);
	world_close(&world);
}

/* To the nanosecond. */
static void r317_a_watch_of_one_second_is_not_short(void **state)
{
	for (int early = 0; early < 2; early++) {
		struct world world;
		uint64_t     watches;
		vd_mono	     end;

		world_open(&world, 4, false);
		end = vd_mono_add(world.f.cacher->reflector.opened, (vd_dur) { VD_SECONDS(1).ns - early });
		vdi_sim_advance(world.f.env, vd_mono_since(end, vd_env_now(world.f.env)));
		watches = feed_watches(world.feed);
		feed_break(world.feed, VD_CLOSED);
		vdi_sim_run_until_idle(world.f.env);
		assert_int_equal(feed_watches(world.feed), watches + !early);
		world_close(&world);
	}
}

/* The second wait in a row is longer, unless two minutes have passed since the first began. */
static void r318_the_back_off_is_reset_after_two_minutes(void **state)
{
	for (int later = 0; later < 2; later++) {
		struct world world;
		uint64_t     watches;
		vd_mono	     end;

		world_open(&world, 4, false);
		vdi_sim_advance(world.f.env,
				VD_SECONDS(200)); /* from the start on, no time has passed before */
		feed_break(world.feed, VD_UNAVAILABLE);
		vdi_sim_run_until_idle(world.f.env);
		end = vd_mono_add(world.f.cacher->reflector.last_backoff,
				  (vd_dur) { VDI_BACKOFF_RESET.ns + later });
		vdi_sim_advance(world.f.env, vd_mono_since(end, vd_env_now(world.f.env)));
		watches = feed_watches(world.feed);
		feed_break(world.feed, VD_UNAVAILABLE);
		vdi_sim_advance(world.f.env, (vd_dur) { 2 * VDI_BACKOFF_FIRST.ns - 1 });
		assert_int_equal(feed_watches(world.feed), watches + later);
		world_close(&world);
	}
}

struct refusals {
	struct vd_store *chaos;
	uint64_t	 seen;
};

static bool has_more_refusals(void *arg)
{
	struct refusals *refusals = arg;

	return chaos_marks(refusals->chaos)->refused_watches > refusals->seen;
}

static vd_dur next_refusal(struct cacher_fixture *f, struct refusals *refusals)
{
	vd_mono before = vd_env_now(f->env);

	refusals->seen = chaos_marks(refusals->chaos)->refused_watches;
	assert_true(vdi_sim_run_until(f->env, has_more_refusals, refusals, VD_SECONDS(100)));
	return vd_mono_since(vd_env_now(f->env), before);
}

static void t184_back_off_numbers(void **state)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct cacher_fixture	   f;
		const struct chaos_options refuse = { .refuse_watch = 1000 };
		struct refusals		   refusals = { 0 };
		int64_t			   least_ms = 800;
		int64_t			   sum_ms = 0;

		cacher_fixture_init(&f, seed);
		put_pod(&f, "ns", "x", NULL, NULL);
		refusals.chaos = chaos_store_new(f.env, f.store, &(struct chaos_options) { 0 });
		cacher_fixture_open(&f, refusals.chaos);
		vdi_sim_advance(f.env, VD_SECONDS(130));
		chaos_set(refusals.chaos, &(struct chaos_options) { .cut = 1000, .refuse_watch = 1000 });
		put_pod(&f, "ns", "x", NULL, NULL); /* the next look at the stream breaks it */
		assert_true(vdi_sim_run_until(f.env, has_more_refusals, &refusals, VD_SECONDS(100)));
		least_ms = 1600; /* 800 ms were over when the first was refused */
		chaos_set(refusals.chaos, &refuse);
		for (unsigned i = 0; i < 9; i++) {
			int64_t ms = next_refusal(&f, &refusals).ns / 1000000;

			assert_in_range(ms, least_ms, 2 * least_ms);
			sum_ms += ms;
			least_ms = VDI_MIN(least_ms * 2, 30000);
		}
		assert_true(sum_ms > 0);
		assert_status(vd_cacher_ready(f.cacher, NULL), VD_OK); /* what it has stays good */
		chaos_set(refusals.chaos, &(struct chaos_options) { 0 });
		vdi_sim_advance(f.env, VD_SECONDS(61));
		assert_int_equal(f.cacher->reflector.relists, 0);
		/* Two minutes of peace and it begins at 800 ms again. */
		vdi_sim_advance(f.env, VD_SECONDS(125));
		chaos_set(refusals.chaos, &(struct chaos_options) { .cut = 1000, .refuse_watch = 1000 });
		put_pod(&f, "ns", "x", NULL, NULL);
		refusals.seen = chaos_marks(refusals.chaos)->refused_watches;
		assert_in_range(next_refusal(&f, &refusals).ns / 1000000, 800, 1650);
		chaos_set(refusals.chaos, &(struct chaos_options) { 0 });
		f.cacher = vd_cacher_close_wait(f.cacher);
		chaos_store_free(refusals.chaos);
		cacher_fixture_teardown(&f);
	}
}

/* A store that refuses everything: whoever comes is told so at once. */
static void t117_r514_a_start_that_fails_hangs_nobody(void **state)
{
	struct cacher_fixture	f;
	struct vd_store	       *chaos;
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct vd_watcher      *watcher;
	struct vd_error		error;

	cacher_fixture_init(&f, 1);
	chaos = chaos_store_new(f.env, f.store,
				&(struct chaos_options) { .refuse = 1000, .refuse_watch = 1000 });
	assert_status(vd_cacher_new(f.env, chaos, &f.options, &f.cacher, &error), VD_OK);
	assert_status(vd_cacher_watch(f.cacher, &options, NULL, &watcher, &error), VD_NOT_READY);
	assert_int_equal(error.retry_after_s, 1);
	vdi_sim_advance(f.env, VD_SECONDS(300));
	assert_status(vd_cacher_watch(f.cacher, &options, NULL, &watcher, &error), VD_NOT_READY);
	chaos_set(chaos, &(struct chaos_options) { 0 });
	vdi_sim_advance(f.env, VD_SECONDS(62));
	assert_status(vd_cacher_ready(f.cacher, NULL), VD_OK);
	f.cacher = vd_cacher_close_wait(f.cacher);
	chaos_store_free(chaos);
	cacher_fixture_teardown(&f);
}

/* rules: R-168 */
static void t191_r221_an_undecodable_object_starts_over_until_it_is_gone(void **state)
{
	struct world world;

	world_open(&world, 5, false);
	feed_put(world.feed, KEY("x"), POD("x"));
	cacher_fixture_settle(&world.f);
	feed_put(world.feed, KEY("x"), "junk");
	vdi_sim_advance(world.f.env, VD_SECONDS(20));
	assert_status(vd_cacher_ready(world.f.cacher, NULL), VD_NOT_READY);
	assert_int_equal(world.r->ended, 1);
	feed_delete(world.feed, KEY("x"));
	vdi_sim_advance(world.f.env, VD_SECONDS(62));
	assert_status(vd_cacher_ready(world.f.cacher, NULL), VD_OK);
	assert_int_equal(vdi_btree_count(&world.f.cacher->watch_cache.store.objects), 0);
	world_close(&world);
}

/* The first event after a compaction lacks its previous record: going on from there again and again would
 * never end. */
static void r212_r313_a_missing_previous_record_lists_again(void **state)
{
	for (int skips = 0; skips < 2; skips++) {
		struct world world;
		vd_rev	     revision;

		world_open(&world, 6, skips != 0);
		feed_put(world.feed, KEY("x"), POD("x"));
		cacher_fixture_settle(&world.f);
		revision = feed_delete(world.feed, KEY("unknown"));
		vdi_sim_advance(world.f.env, VD_SECONDS(4));
		assert_status(vd_cacher_ready(world.f.cacher, NULL), VD_OK);
		assert_int_equal(world.f.cacher->reflector.relists, 1);
		assert_int_equal(vdi_metric_value(world.f.cacher->metrics.relists), 1);
		assert_int_equal(world.f.cacher->reflector.resumes, 0);
		assert_int_equal(vd_cacher_revision(world.f.cacher), revision);
		assert_int_equal(world.r->ended, 1);
		world_close(&world);
	}
}

static void o20_an_undecodable_object_may_be_left_out(void **state)
{
	struct world world;
	vd_rev	     last;

	world_open(&world, 6, true);
	feed_put(world.feed, KEY("x"), "junk");
	last = feed_put(world.feed, KEY("y"), POD("y"));
	cacher_fixture_settle(&world.f);
	assert_status(vd_cacher_ready(world.f.cacher, NULL), VD_OK);
	assert_int_equal(world.f.cacher->reflector.undecodable, 1);
	assert_int_equal(vd_cacher_revision(world.f.cacher), last);
	assert_int_equal(world.r->count, 1);
	assert_string_equal(world.r->events[0].name, "ns/y");
	world_close(&world);
}

/* Nothing but the undecodable object tells how far the store is: whoever waits for that revision is answered.
 * rules: O-20, R-221 */
static void o20_a_revision_that_is_left_out_has_passed(void **state)
{
	struct world	       world;
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct vd_list	      *list = NULL;
	vd_rev		       last;

	world_open(&world, 8, true);
	feed_put(world.feed, KEY("x"), POD("x"));
	cacher_fixture_settle(&world.f);
	feed_hold_progress(world.feed, true);
	last = feed_put(world.feed, KEY("y"), "junk");
	cacher_fixture_settle(&world.f);
	assert_int_equal(vd_cacher_revision(world.f.cacher), last);
	options.revision = last;
	assert_status(vd_cacher_list_wait(world.f.cacher, &options, &list, NULL), VD_OK);
	assert_int_equal(vd_list_revision(list), last);
	vd_list_free(list);
	last = feed_put(world.feed, KEY("x"), "junk"); /* one that there was: it is left out from now on */
	cacher_fixture_settle(&world.f);
	assert_int_equal(vd_cacher_revision(world.f.cacher), last);
	world_close(&world);
}

/* A store that was put back: what is cached is of another past. Its new changes come after what was applied,
 * or together with it.
 * rules: R-313, W-26 */
static void r313_revisions_that_go_back_list_again(void **state)
{
	for (unsigned together = 0; together < 2; together++) {
		struct world	       world;
		struct vd_list_options options = VD_LIST_OPTIONS_INIT;
		struct vd_list	      *list = NULL;
		vd_rev		       last;

		world_open(&world, 9, false);
		for (unsigned i = 0; i < 6; i++)
			feed_put(world.feed, KEY("x"), POD("x"));
		if (!together)
			cacher_fixture_settle(&world.f);
		feed_set_back(world.feed, 3);
		last = feed_put(world.feed, KEY("y"), POD("y"));
		cacher_fixture_settle(&world.f);
		/* The watch's end may overtake what it has not been given; what came after the change is not
		 * told. */
		assert_string_equal(recorder_text(world.r),
				    together ? "" : "+ns/x@2 ~ns/x@3 ~ns/x@4 ~ns/x@5 ~ns/x@6 ~ns/x@7");
		assert_int_equal(world.r->ended, 1);
		assert_int_equal(world.f.cacher->reflector.relists, 1);
		assert_status(vd_cacher_ready(world.f.cacher, NULL), VD_NOT_READY);
		vdi_sim_advance(world.f.env, VD_SECONDS(2));
		assert_status(vd_cacher_ready(world.f.cacher, NULL), VD_OK);
		assert_int_equal(vd_cacher_revision(world.f.cacher), last);
		assert_int_equal(generation(&world), 2);
		options.revision = VD_REVISION_ANY;
		assert_status(vd_cacher_list_wait(world.f.cacher, &options, &list, NULL), VD_OK);
		assert_int_equal(vd_list_candidate_count(list), 2);
		vd_list_free(list);
		world_close(&world);
	}
}

static void t180_r314_it_may_stop_in_any_phase(void **state)
{
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct cacher_fixture f;

		cacher_fixture_init(&f, seed);
		for (unsigned i = 0; i < 5; i++)
			put_pod(&f, "ns", "x", NULL, NULL);
		assert_status(vd_cacher_new(f.env, f.store, &f.options, &f.cacher, NULL), VD_OK);
		for (uint64_t step = 0; step < seed; step++)
			(void) vdi_sim_step(f.env);
		cacher_fixture_teardown(&f);
	}
}

static bool is_ready(void *arg)
{
	return vd_cacher_ready(arg, NULL) == VD_OK;
}

/* Listing and watching begin again until they succeed. rules: R-301 */
static void torture_the_first_fill_is_late_but_right(void **state)
{
	unsigned refused = 0;

	for (unsigned nth = 1; nth < 260; nth += 3) {
		struct cacher_fixture f;
		struct vd_cacher     *cacher = NULL;
		vd_rev		      last = 0;

		cacher_fixture_init(&f, nth);
		for (unsigned i = 0; i < 30; i++) {
			char name[8];

			snprintf(name, sizeof name, "p%02u", i % 20);
			last = put_pod(&f, "ns", name, "a", NULL);
		}
		vdi_alloc_fail_nth(nth, 1);
		if (vd_cacher_new(f.env, f.store, &f.options, &cacher, NULL) != VD_OK) {
			vdi_alloc_fail_nth(0, 0);
			refused++;
		} else {
			f.cacher = cacher;
			assert_true(vdi_sim_run_until(f.env, is_ready, cacher, VD_SECONDS(100)));
			vdi_alloc_fail_nth(0, 0);
			assert_int_equal(vd_cacher_revision(cacher), last);
			assert_int_equal(vdi_btree_count(&cacher->watch_cache.store.objects), 20);
		}
		cacher_fixture_teardown(&f);
	}
	assert_true(refused > 3);
}

/* However small the history of the store is: its newest events are whole, so the cache over it goes on and no
 * watch ends. */
static void e343_a_small_history_of_the_store_ends_no_watch(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct vd_mvcc_options	mvcc = VD_MVCC_OPTIONS_INIT;
		struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
		struct cacher_fixture	f;
		struct recorder	       *r = calloc(1, sizeof *r);
		struct vd_store_status	status;

		cacher_fixture_init(&f, seed);
		vd_store_close_wait(f.store);
		mvcc.history_bytes = 1;
		assert_status(vd_store_open_mvcc(f.env, &mvcc, &f.store, NULL), VD_OK);
		cacher_fixture_open(&f, NULL);
		assert_status(recorder_open(&f, r, &options, NULL), VD_OK);
		for (int i = 0; i < 200; i++) {
			put_pod(&f, "ns", "x", i % 2 ? "a" : "b", NULL);
			cacher_fixture_settle(&f);
		}
		assert_status(vd_store_status_get(f.store, &status), VD_OK);
		assert_true(status.compacted >= 100);
		assert_int_equal(f.cacher->reflector.relists, 0);
		assert_int_equal(r->ended, 0);
		assert_int_equal(r->count, 200);
		recorder_close(&f, r);
		cacher_fixture_teardown(&f);
		free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t183_r318_a_passing_error_is_resumed_without_a_list),
		cmocka_unit_test(t188_r313_an_expired_stream_makes_a_new_generation),
		cmocka_unit_test(a_list_without_order),
		cmocka_unit_test(r512_words_say_why_it_is_not_ready),
		cmocka_unit_test(t181_r317_very_short_watches),
		cmocka_unit_test(r317_a_watch_of_one_second_is_not_short),
		cmocka_unit_test(r318_the_back_off_is_reset_after_two_minutes),
		cmocka_unit_test(t184_back_off_numbers),
		cmocka_unit_test(t117_r514_a_start_that_fails_hangs_nobody),
		cmocka_unit_test(t191_r221_an_undecodable_object_starts_over_until_it_is_gone),
		cmocka_unit_test(r212_r313_a_missing_previous_record_lists_again),
		cmocka_unit_test(o20_an_undecodable_object_may_be_left_out),
		cmocka_unit_test(o20_a_revision_that_is_left_out_has_passed),
		cmocka_unit_test(r313_revisions_that_go_back_list_again),
		cmocka_unit_test(e343_a_small_history_of_the_store_ends_no_watch),
		cmocka_unit_test(t180_r314_it_may_stop_in_any_phase),
		cmocka_unit_test(torture_the_first_fill_is_late_but_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
