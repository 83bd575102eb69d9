/* The history from before the start: all of it, or none, and never late. */
#include "backfill.h"

#include "cacher.h"
#include "cacher_fixture.h"
#include "env.h"
#include "feed_store.h"
#include "part_store.h"
#include "store_chaos.h"

static vd_rev floor_of(struct cacher_fixture *f)
{
	return vdi_history_floor(&f->cacher->watch_cache.history);
}

static void compacted(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	assert_status(status, VD_OK);
}

static void the_history_begins_where_the_stores_does(void **state)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct cacher_fixture f;
		vd_rev		      at = 0, last;

		cacher_fixture_init(&f, seed);
		for (unsigned i = 0; i < 40; i++) {
			vd_rev revision = put_pod(&f, "ns", i % 3 ? "x" : "y", "a", NULL);

			if (i == 15)
				at = revision;
			if (i == 20)
				(void) delete_pod(&f, "ns",
						  "x"); /* its state before lies before the compaction */
		}
		last = put_pod(&f, "ns", "z", NULL, NULL);
		if (seed % 2) {
			assert_status(vd_store_compact(f.store, at, false, compacted, NULL), VD_OK);
			vdi_sim_run_until_idle(f.env);
		}
		cacher_fixture_open(&f, NULL);
		assert_int_equal(floor_of(&f), seed % 2 ? at : 1);
		assert_int_equal(f.cacher->watch_cache.history.end - f.cacher->watch_cache.history.start,
				 last - floor_of(&f));
		assert_int_equal(vd_cacher_revision(f.cacher), last);
		assert_null(f.cacher->reflector.backfill);
		cacher_fixture_teardown(&f);
	}
}

/* What was decoded for the list is not decoded again, nor kept twice. */
static void the_history_shares_the_listed_objects(void **state)
{
	struct cacher_fixture	f;
	struct vdi_watch_cache *cache;
	const struct vdi_event *first, *second, *last;

	cacher_fixture_init(&f, 3);
	put_pod(&f, "ns", "x", "a", NULL);
	put_pod(&f, "ns", "y", "a", NULL);
	put_pod(&f, "ns", "x", "b", NULL);
	cacher_fixture_open(&f, NULL);
	cache = &f.cacher->watch_cache;
	first = vdi_history_at(&cache->history, cache->history.start);
	last = vdi_history_at(&cache->history, cache->history.end - 1);
	assert_int_equal(cache->history.end - cache->history.start, 3);
	assert_ptr_equal(last->object, vdi_object_store_get(&cache->store, vd_object_key(last->object)));
	assert_ptr_not_equal(first->object, last->object);
	assert_ptr_not_equal(first->object,
			     vdi_object_store_get(&cache->store, vd_object_key(first->object)));
	second = vdi_history_at(&cache->history, cache->history.start + 1);
	assert_int_equal(cache->store.bytes,
			 vdi_object_store_size_of(second->object) + vdi_object_store_size_of(last->object));
	cacher_fixture_teardown(&f);
}

/* An etcd tells the past slowly: a bounded piece of it is asked for. */
static void a_remote_store_is_asked_for_a_bounded_past(void **state)
{
	for (int remote = 0; remote < 2; remote++) {
		struct part_options   options = { .part_len = 100, .is_remote = remote };
		struct cacher_fixture f;
		struct vd_store	     *store;
		vd_rev		      last = 0;

		cacher_fixture_init(&f, 7);
		store = part_store_new(f.env, f.store, &options);
		for (unsigned i = 0; i < VDI_BACKFILL_REMOTE_MAX + 500; i++)
			last = put_pod(&f, "ns", "x", i % 2 ? "a" : "b", NULL);
		f.options.history_window = VD_SECONDS(3600);
		cacher_fixture_open(&f, store);
		assert_int_equal(floor_of(&f), remote ? last - VDI_BACKFILL_REMOTE_MAX : 1);
		f.cacher = vd_cacher_close_wait(f.cacher);
		part_store_free(store);
		cacher_fixture_teardown(&f);
	}
}

static const struct vd_store_ops *honest;
static vd_rev			  said_kept, said_history;

static vd_status say_what_is_kept(struct vd_store *store, struct vd_store_status *ret_status)
{
	vd_status status = honest->status(store, ret_status);

	ret_status->kept = said_kept;
	ret_status->history = said_history;
	return status;
}

/* A store that answers part of the past out of memory is asked for no more than that, and for no more than it
 * keeps. */
static void what_the_store_keeps_in_memory_is_asked_for(void **state)
{
	static const struct {
		vd_rev kept, history, floor;
	} rows[] = { { 0, 12, 12 }, { 5, 12, 12 }, { 14, 12, 14 } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_store_ops   ops;
		struct cacher_fixture f;

		cacher_fixture_init(&f, 8);
		for (unsigned k = 0; k < 20; k++)
			put_pod(&f, "ns", "x", k % 2 ? "a" : "b", NULL);
		honest = f.store->ops;
		ops = *honest;
		ops.status = say_what_is_kept;
		said_kept = rows[i].kept;
		said_history = rows[i].history;
		f.store->ops = &ops;
		cacher_fixture_open(&f, NULL);
		assert_int_equal(floor_of(&f), rows[i].floor);
		f.cacher = vd_cacher_close_wait(f.cacher);
		f.store->ops = honest;
		cacher_fixture_teardown(&f);
	}
}

static struct vd_store_watch_request asked[4];
static size_t			     asked_count;

static vd_status note_watch(struct vd_store *store, const struct vd_store_watch_request *request,
			    struct vd_store_watch **ret_watch, struct vd_error *reterr)
{
	if (asked_count < VDI_ARRAY_SIZE(asked))
		asked[asked_count++] = *request;
	return honest->watch(store, request, ret_watch, reterr);
}

/* The watch of the past hears of progress by itself, too, and knows the states before; it begins
 * where the history does. */
static void the_watch_of_the_past(void **state)
{
	struct vd_store_ops   ops;
	struct cacher_fixture f;

	cacher_fixture_init(&f, 8);
	for (unsigned k = 0; k < 20; k++)
		put_pod(&f, "ns", "x", k % 2 ? "a" : "b", NULL);
	honest = f.store->ops;
	ops = *honest;
	ops.watch = note_watch;
	asked_count = 0;
	f.store->ops = &ops;
	cacher_fixture_open(&f, NULL);
	assert_int_equal(asked_count, 2);
	assert_int_equal(asked[0].start_revision, vd_cacher_revision(f.cacher) + 1);
	assert_true(asked[0].progress && asked[0].previous);
	assert_int_equal(asked[1].start_revision, floor_of(&f) + 1);
	assert_true(asked[1].progress && asked[1].previous);
	f.cacher = vd_cacher_close_wait(f.cacher);
	f.store->ops = honest;
	cacher_fixture_teardown(&f);
}

/* The store of the feed says that it can tell its progress and then says nothing. */
static void a_silent_store_delays_the_start_by_five_seconds_only(void **state)
{
	struct cacher_fixture f;
	struct vd_store	     *feed;
	vd_mono		      before;

	cacher_fixture_init(&f, 2);
	feed = feed_store_new(f.env);
	feed_load(feed, "/registry/pods/ns/x",
		  vd_bytes_of("{\"metadata\":{\"name\":\"x\",\"namespace\":\"ns\"}}"));
	feed_hold_progress(feed, true);
	before = vd_env_now(f.env);
	cacher_fixture_open(&f, feed);
	assert_in_range(vd_mono_since(vd_env_now(f.env), before).ns, VD_SECONDS(5).ns, VD_MS(5100).ns);
	/* E-317: an etcd does not answer a request that comes while the watch is behind, so one is not
	 * enough. */
	assert_in_range(feed_progress_requests(feed), 45, 55);
	assert_int_equal(floor_of(&f), vd_cacher_revision(f.cacher));
	f.cacher = vd_cacher_close_wait(f.cacher);
	feed_store_free(feed);
	cacher_fixture_teardown(&f);
}

static void a_store_without_progress_is_not_asked(void **state)
{
	struct cacher_fixture f;
	struct vd_store	     *feed;

	cacher_fixture_init(&f, 3);
	feed = feed_store_new(f.env);
	feed_load(feed, "/registry/pods/ns/x",
		  vd_bytes_of("{\"metadata\":{\"name\":\"x\",\"namespace\":\"ns\"}}"));
	feed_set_progress(feed, false);
	cacher_fixture_open(&f, feed);
	assert_int_equal(feed_watches(feed), 1);
	assert_int_equal(floor_of(&f), vd_cacher_revision(f.cacher));
	f.cacher = vd_cacher_close_wait(f.cacher);
	feed_store_free(feed);
	cacher_fixture_teardown(&f);
}

/* Cuts and refusals: all or nothing, and a watch from any revision in it sees all. */
static void a_broken_backfill_leaves_no_hole(void **state)
{
	unsigned whole = 0, none = 0;

	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct cacher_fixture f;
		struct vd_store	     *chaos;
		vd_rev		      first = 0, last = 0, floor;
		struct vdi_history   *history;

		cacher_fixture_init(&f, seed);
		for (unsigned i = 0; i < 200; i++) {
			last = put_pod(&f, "ns", i % 3 ? "x" : "y", "a", NULL);
			first = first ? first : last;
		}
		chaos = chaos_store_new(f.env, f.store,
					&(struct chaos_options) { .delay = 200,
								  .delay_max = VD_MS(20),
								  .cut = 200,
								  .stall = 200,
								  .refuse_watch = 200 });
		cacher_fixture_open(&f, chaos);
		floor = floor_of(&f);
		history = &f.cacher->watch_cache.history;
		whole += floor < first;
		none += floor == last;
		assert_true(floor < first || floor == last);
		for (uint64_t i = history->start; i < history->end; i++)
			assert_int_equal(vdi_history_at(history, i)->revision,
					 floor + 1 + (vd_rev) (i - history->start));
		chaos_set(chaos, &(struct chaos_options) { 0 });
		f.cacher = vd_cacher_close_wait(f.cacher);
		chaos_store_free(chaos);
		cacher_fixture_teardown(&f);
	}
	assert_true(whole > 3);
	assert_true(none > 3);
}

static void torture_the_history_is_whole_or_not_there(void **state)
{
	for (unsigned nth = 1; nth < 400; nth += 7) {
		struct cacher_fixture f;
		vd_rev		      last = 0;
		struct vdi_history   *history;

		cacher_fixture_init(&f, nth);
		for (unsigned i = 0; i < 60; i++)
			last = put_pod(&f, "ns", i % 3 ? "x" : "y", "a", NULL);
		assert_status(vd_cacher_new(f.env, f.store, &f.options, &f.cacher, NULL), VD_OK);
		vdi_alloc_fail_nth(nth, 1 + nth % 3);
		vdi_sim_advance(f.env, VD_SECONDS(10));
		vdi_alloc_fail_nth(0, 0);
		vdi_sim_advance(f.env, VD_SECONDS(10));
		assert_status(vd_cacher_ready(f.cacher, NULL), VD_OK);
		history = &f.cacher->watch_cache.history;
		assert_int_equal(history->end - history->start, last - floor_of(&f));
		cacher_fixture_teardown(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_history_begins_where_the_stores_does),
		cmocka_unit_test(the_history_shares_the_listed_objects),
		cmocka_unit_test(a_remote_store_is_asked_for_a_bounded_past),
		cmocka_unit_test(what_the_store_keeps_in_memory_is_asked_for),
		cmocka_unit_test(the_watch_of_the_past),
		cmocka_unit_test(a_silent_store_delays_the_start_by_five_seconds_only),
		cmocka_unit_test(a_store_without_progress_is_not_asked),
		cmocka_unit_test(a_broken_backfill_leaves_no_hole),
		cmocka_unit_test(torture_the_history_is_whole_or_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
