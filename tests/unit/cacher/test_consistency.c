/* The consistency checker: when it runs, what it compares, what follows a difference. */
#include "consistency.h"

#include "cacher.h"
#include "cacher_dump.h"
#include "cacher_fixture.h"
#include "env.h"
#include "expect_panic.h"
#include "pod_objects.h"
#include "store_chaos.h"

#define PERIOD 300

static uint64_t count_of(const struct cacher_fixture *f, enum vdi_consistency_result result)
{
	assert_int_equal(vdi_metric_value(f->cacher->metrics.consistency_checks[result]),
			 f->cacher->consistency.counts[result]);
	return f->cacher->consistency.counts[result];
}

static void pass(struct cacher_fixture *f, int64_t seconds)
{
	vdi_sim_advance(f->env, VD_SECONDS(seconds));
}

/* Changes what the cache holds behind everybody's back. */
static void corrupt(struct cacher_fixture *f, struct vd_object *old_object, struct vd_object *object)
{
	struct vdi_watch_cache *cache = &f->cacher->watch_cache;
	struct vd_object       *replaced;

	vdi_lock_acquire(&cache->lock);
	assert_status(vdi_object_store_change(&cache->store, vd_object_key(object ? object : old_object),
					      object, &replaced),
		      VD_OK);
	vdi_lock_release(&cache->lock);
	vd_object_unref(replaced);
}

static struct vd_object *cached(struct cacher_fixture *f, const char *key)
{
	return vdi_object_store_get(&f->cacher->watch_cache.store, vd_bytes_of(key));
}

/* First after 5 minutes and up to half of that, then again, counted from the end of the last one. */
static void r5a0_it_runs_every_five_minutes_and_something(void **state)
{
	struct cacher_fixture f;
	uint64_t	      before;

	for (uint64_t seed = 1; seed <= 5; seed++) {
		cacher_fixture_setup(&f, seed);
		put_pod(&f, "a", "x", NULL, NULL);
		pass(&f, PERIOD - 2);
		assert_int_equal(count_of(&f, VDI_CONSISTENCY_SUCCESS), 0);
		pass(&f, PERIOD / 2 + 3);
		assert_int_equal(count_of(&f, VDI_CONSISTENCY_SUCCESS), 1);
		before = (uint64_t) f.cacher->consistency.checked.ns;
		pass(&f, PERIOD * 3 / 2 + 1);
		assert_int_equal(count_of(&f, VDI_CONSISTENCY_SUCCESS), 2);
		assert_in_range((uint64_t) f.cacher->consistency.checked.ns - before,
				(uint64_t) PERIOD * 1000000000, (uint64_t) (PERIOD * 3 / 2 + 1) * 1000000000);
		assert_int_equal(f.cacher->consistency.result, VDI_CONSISTENCY_SUCCESS);
		cacher_fixture_teardown(&f);
	}
}

/* The answer of the store is what continues the check: it ends in the instant in which it began when the
 * store is quick, however many pages it takes. */
static void r5a0_an_answer_is_looked_at_at_once(void **state)
{
	for (unsigned count = 1; count <= 2 * VDI_CONSISTENCY_PAGE + 1; count += VDI_CONSISTENCY_PAGE) {
		struct cacher_fixture f;
		char		      name[16];
		vd_mono		      due;

		cacher_fixture_setup(&f, 9);
		for (unsigned i = 0; i < count; i++) {
			snprintf(name, sizeof name, "p%u", i);
			put_pod(&f, "a", name, NULL, NULL);
		}
		cacher_fixture_settle(&f);
		due = f.cacher->consistency.due;
		vdi_sim_advance(f.env, vd_mono_since(due, vd_env_now(f.env)));
		vdi_sim_run_until_idle(f.env);
		assert_int_equal(count_of(&f, VDI_CONSISTENCY_SUCCESS), 1);
		assert_int_equal(f.cacher->consistency.checked.ns, due.ns);
		cacher_fixture_teardown(&f);
	}
}

static void r5a0_it_can_be_switched_off(void **state)
{
	struct cacher_fixture f;

	cacher_fixture_init(&f, 1);
	f.options.consistency_interval = (vd_dur) { 0 };
	cacher_fixture_open(&f, NULL);
	pass(&f, 10 * PERIOD);
	for (int i = 1; i <= 3; i++)
		assert_int_equal(count_of(&f, (enum vdi_consistency_result) i), 0);
	cacher_fixture_teardown(&f);
}

/* The digest is upstream's: FNV-1 over namespace/name/revision of every item, nothing between items.
 * rules: T-151 */
static void r5a1_the_digest_is_upstreams(void **state)
{
	struct cacher_fixture f;
	char		      text[128];
	uint64_t	      digest = UINT64_C(0xcbf29ce484222325);
	vd_rev		      first, second;

	cacher_fixture_setup(&f, 2);
	first = put_pod(&f, "a", "y", NULL, NULL);
	second = put_pod(&f, "a", "x", NULL, NULL);
	pass(&f, PERIOD * 3 / 2 + 1);
	snprintf(text, sizeof text, "a/x/%llda/y/%lld", (long long) second, (long long) first);
	for (const char *at = text; *at; at++)
		digest = (digest * UINT64_C(0x100000001b3)) ^ (unsigned char) *at;
	assert_true(f.cacher->consistency.result_digest == digest);
	assert_int_equal(f.cacher->consistency.result_revision, second);
	assert_int_equal(count_of(&f, VDI_CONSISTENCY_SUCCESS), 1);
	cacher_fixture_teardown(&f);
}

/* Without a namespace, its slash remains. rules: T-151 */
static void r5a1_the_digest_of_a_cluster_scoped_object(void **state)
{
	struct cacher_fixture f;
	char		      text[128];
	uint64_t	      digest = UINT64_C(0xcbf29ce484222325);
	vd_rev		      revision;
	struct vd_error	      error;

	cacher_fixture_init(&f, 2);
	f.options.cluster_scoped = true;
	cacher_fixture_open(&f, NULL);
	assert_status(vd_store_put_wait(f.store, vd_bytes_of("/registry/pods/x"),
					vd_bytes_of("{\"metadata\":{\"name\":\"x\"}}"), &revision, &error),
		      VD_OK);
	pass(&f, PERIOD * 3 / 2 + 1);
	snprintf(text, sizeof text, "/x/%lld", (long long) revision);
	for (const char *at = text; *at; at++)
		digest = (digest * UINT64_C(0x100000001b3)) ^ (unsigned char) *at;
	assert_true(f.cacher->consistency.result_digest == digest);
	cacher_fixture_teardown(&f);
}

/* Many pages at one revision, while others write. */
static void r5a1_pages_are_read_at_one_revision(void **state)
{
	struct cacher_fixture f;
	char		      name[16];

	cacher_fixture_setup(&f, 3);
	for (unsigned i = 0; i < 3 * VDI_CONSISTENCY_PAGE + 7; i++) {
		snprintf(name, sizeof name, "p%u", i);
		put_pod(&f, i % 2 ? "a" : "b", name, NULL, NULL);
	}
	cacher_fixture_settle(&f);
	for (unsigned i = 0; i < 500; i++) {
		snprintf(name, sizeof name, "p%u", (i * 37) % (3 * VDI_CONSISTENCY_PAGE));
		if (i % 3)
			put_pod(&f, (i * 37) % 2 ? "a" : "b", name, "new", NULL);
		else
			delete_pod(&f, (i * 37) % 2 ? "a" : "b", name);
		pass(&f, 1);
	}
	assert_int_equal(count_of(&f, VDI_CONSISTENCY_SUCCESS), 1);
	assert_int_equal(count_of(&f, VDI_CONSISTENCY_FAILURE), 0);
	cacher_fixture_teardown(&f);
}

static void r5a2_r5a3_every_kind_of_difference_is_found(void **state)
{
	static const char *const expected[] = {
		"only in the cache: /registry/pods/a/extra", "only in storage: /registry/pods/a/x",
		"different revision: /registry/pods/a/x",    "different content: /registry/pods/a/x",
		"only in the cache: /registry/pods/a/z",     "only in the cache: /registry/pods/A/a"
	};

	for (int kind = 0; kind < 6; kind++) {
		struct cacher_fixture f;
		struct vd_object     *forged = NULL;
		vd_rev		      revision;

		cacher_fixture_setup(&f, 4);
		put_pod(&f, "a", "w", NULL, NULL);
		revision = put_pod(&f, "a", "x", "web", NULL);
		put_pod(&f, "a", "y", NULL, NULL);
		cacher_fixture_settle(&f);
		if (kind == 0)
			forged = pod_new(f.codec, "a", "extra", NULL, NULL, 2);
		else if (kind >= 4) /* behind the last key of the store, and before its first */
			forged = kind == 4 ? pod_new(f.codec, "a", "z", NULL, NULL, 2) :
					     pod_new(f.codec, "A", "a", NULL, NULL, 2);
		else if (kind > 1)
			forged = pod_new(f.codec, "a", "x", "web", NULL, kind == 2 ? revision - 1 : revision);
		corrupt(&f, kind && kind < 4 ? cached(&f, "/registry/pods/a/x") : NULL, forged);
		vd_object_unref(forged);
		pass(&f, PERIOD * 3 / 2 + 1);
		assert_int_equal(count_of(&f, VDI_CONSISTENCY_FAILURE), 1);
		assert_int_equal(count_of(&f, VDI_CONSISTENCY_SUCCESS), 0);
		if (strstr(f.cacher->consistency.difference, expected[kind]) == NULL)
			fail_msg("%s", f.cacher->consistency.difference);
		/* Reported, nothing else. */
		assert_status(vd_cacher_ready(f.cacher, NULL), VD_OK);
		cacher_fixture_teardown(&f);
	}
}

static size_t list_at(struct cacher_fixture *f, vd_rev revision)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct vd_list	      *list;
	struct vd_error	       error;
	size_t		       count = 0;

	options.revision = revision;
	options.match = VD_MATCH_EXACT;
	assert_status(vd_cacher_list_wait(f->cacher, &options, &list, &error), VD_OK);
	assert_int_equal(vd_list_revision(list), revision);
	while (vd_list_next(list))
		count++;
	vd_list_free(list);
	return count;
}

static void give_a_page(struct cacher_fixture *f)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct vd_list	      *list;

	options.limit = 1;
	assert_status(vd_cacher_list_wait(f->cacher, &options, &list, NULL), VD_OK);
	vd_list_free(list);
}

/* a failure drops the snapshots and sends exact reads to the store; a success gives them back.
 * No event between makes a new one (W-25).
 * rules: T-140, W-25 */
static void r447_r452_r5a2_exact_reads_need_a_consistent_cache(void **state)
{
	struct cacher_fixture f;
	vd_rev		      one, two;
	struct vd_object     *lost;

	cacher_fixture_setup(&f, 5);
	one = put_pod(&f, "a", "x", NULL, NULL);
	two = put_pod(&f, "a", "y", NULL, NULL);
	cacher_fixture_settle(&f);
	assert_int_equal(list_at(&f, one), 1);
	assert_int_equal(f.cacher->watch_cache.store.retained_count, 1);
	assert_true(vdi_watch_cache_has_revision(&f.cacher->watch_cache, one));
	/* The cache loses x: what it says of any revision is wrong. */
	lost = vd_object_ref(cached(&f, "/registry/pods/a/x"));
	corrupt(&f, lost, NULL);
	assert_int_equal(list_at(&f, two), 1);
	pass(&f, PERIOD * 3 / 2 + 1);
	assert_int_equal(count_of(&f, VDI_CONSISTENCY_FAILURE), 1);
	assert_int_equal(f.cacher->watch_cache.store.retained_count, 0);
	assert_false(vdi_watch_cache_has_revision(&f.cacher->watch_cache, one));
	assert_false(vdi_watch_cache_has_revision(&f.cacher->watch_cache, two));
	assert_int_equal(list_at(&f, one), 1);
	assert_int_equal(list_at(&f, two), 2);
	assert_int_equal(f.cacher->watch_cache.store.retained_count, 0);
	for (unsigned i = 0; i < 5; i++) {
		two = put_pod(&f, "a", "y", NULL, NULL);
		cacher_fixture_settle(&f);
		assert_false(vdi_watch_cache_has_revision(&f.cacher->watch_cache, two));
		assert_int_equal(list_at(&f, two), 2);
		give_a_page(&f); /* whose next one would want this state */
		assert_int_equal(f.cacher->watch_cache.store.retained_count, 0);
	}
	corrupt(&f, NULL, lost);
	vd_object_unref(lost);
	pass(&f, PERIOD * 3 / 2 + 1);
	assert_int_equal(count_of(&f, VDI_CONSISTENCY_SUCCESS), 1);
	assert_true(vdi_watch_cache_has_revision(&f.cacher->watch_cache, two));
	assert_int_equal(list_at(&f, two), 2);
	assert_true(f.cacher->watch_cache.store.retained_count > 0);
	cacher_fixture_teardown(&f);
}

static void r5a2_a_relist_repairs(void **state)
{
	struct cacher_fixture	f;
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct recorder	       *recorder = calloc(1, sizeof *recorder);

	cacher_fixture_init(&f, 6);
	f.options.on_inconsistency = VD_ON_INCONSISTENCY_RELIST;
	cacher_fixture_open(&f, NULL);
	put_pod(&f, "a", "x", NULL, NULL);
	cacher_fixture_settle(&f);
	assert_status(recorder_open(&f, recorder, &options, NULL), VD_OK);
	corrupt(&f, cached(&f, "/registry/pods/a/x"), NULL);
	pass(&f, PERIOD * 3 / 2 + 5);
	assert_int_equal(count_of(&f, VDI_CONSISTENCY_FAILURE), 1);
	assert_int_equal(recorder->ended, 1);
	assert_status(recorder->reason, VD_CLOSED);
	assert_non_null(cached(&f, "/registry/pods/a/x"));
	assert_status(vd_cacher_ready(f.cacher, NULL), VD_OK);
	/* A new generation is trusted. */
	assert_true(vdi_watch_cache_has_revision(&f.cacher->watch_cache, vd_cacher_revision(f.cacher)));
	pass(&f, PERIOD * 3 / 2 + 1);
	assert_int_equal(count_of(&f, VDI_CONSISTENCY_FAILURE), 1);
	assert_true(count_of(&f, VDI_CONSISTENCY_SUCCESS) >= 1);
	recorder_close(&f, recorder);
	cacher_fixture_teardown(&f);
	free(recorder);
}

static struct cacher_fixture *doomed;

static void find_difference(void)
{
	corrupt(doomed, cached(doomed, "/registry/pods/a/x"), NULL);
	pass(doomed, PERIOD * 3 / 2 + 1);
}

static void r5a2_or_stops_the_program(void **state)
{
	struct cacher_fixture f;

	cacher_fixture_init(&f, 7);
	f.options.on_inconsistency = VD_ON_INCONSISTENCY_PANIC;
	cacher_fixture_open(&f, NULL);
	put_pod(&f, "a", "x", NULL, NULL);
	cacher_fixture_settle(&f);
	doomed = &f;
	expect_panic(find_difference, "the watch cache equals storage");
	cacher_fixture_teardown(&f);
}

/* No answer, no result: nothing changes but a counter. rules: R-5A0, R-715 */
static void r5a2_errors_change_nothing(void **state)
{
	struct chaos_options  calm = { 0 }, down = { .refuse = 1000 };
	struct cacher_fixture f;
	struct vd_store	     *chaos;
	vd_rev		      one;

	cacher_fixture_init(&f, 8);
	chaos = chaos_store_new(f.env, f.store, &calm);
	cacher_fixture_open(&f, chaos);
	one = put_pod(&f, "a", "x", NULL, NULL);
	cacher_fixture_settle(&f);
	chaos_set(chaos, &down);
	pass(&f, PERIOD * 3 / 2 + 1);
	assert_int_equal(count_of(&f, VDI_CONSISTENCY_ERROR), 1);
	assert_int_equal(f.cacher->consistency.result, VDI_CONSISTENCY_ERROR);
	assert_string_equal(f.cacher->consistency.difference, "the line was cut");
	assert_int_equal(f.cacher->consistency.counts[VDI_CONSISTENCY_NONE], 0);
	assert_true(vdi_watch_cache_has_revision(&f.cacher->watch_cache, one));
	chaos_set(chaos, &calm);
	pass(&f, PERIOD * 3 / 2 + 1);
	assert_int_equal(count_of(&f, VDI_CONSISTENCY_SUCCESS), 1);
	assert_int_equal(count_of(&f, VDI_CONSISTENCY_ERROR), 1);
	/* Neither does a cache that is not ready. */
	vdi_ready_set_pending(&f.cacher->ready, "test");
	pass(&f, PERIOD * 3 / 2 + 1);
	assert_int_equal(count_of(&f, VDI_CONSISTENCY_ERROR), 2);
	assert_int_equal(f.cacher->consistency.result_revision, 0); /* nothing was compared */
	assert_int_equal(f.cacher->consistency.result_digest, 0);
	assert_false(f.cacher->consistency.is_running);
	f.cacher = vd_cacher_close_wait(f.cacher);
	chaos_store_free(chaos);
	cacher_fixture_teardown(&f);
}

static const struct vd_store_ops *honest;

static struct asked {
	char	key[64];
	vd_rev	revision;
	int64_t limit;
	bool	ends;
} asked[8];
static unsigned asked_count;

static vd_status note_range(struct vd_store *store, const struct vd_range_request *request, vd_range_fn done,
			    void *arg)
{
	struct asked *ask = &asked[asked_count % VDI_ARRAY_SIZE(asked)];

	snprintf(ask->key, sizeof ask->key, "%.*s", (int) request->key.size,
		 (const char *) request->key.data);
	ask->revision = request->revision;
	ask->limit = request->limit;
	ask->ends = vd_bytes_equal(request->range_end, vd_bytes_of("/registry/pods0"));
	asked_count += request->range_end.size && !request->count_only; /* others count the objects */
	return honest->range(store, request, done, arg);
}

/* One page after the other, each from behind the last key of the one before, all at the revision of the
 * cache; and again from the start at the next check. */
static void r5a1_the_pages_that_are_asked_for(void **state)
{
	struct cacher_fixture f;
	struct vd_store_ops   spy;
	vd_rev		      last = 0;
	char		      name[16];

	cacher_fixture_setup(&f, 9);
	for (unsigned i = 0; i < VDI_CONSISTENCY_PAGE + 1; i++) {
		snprintf(name, sizeof name, "p%06u", i);
		last = put_pod(&f, "a", name, NULL, NULL);
	}
	cacher_fixture_settle(&f);
	honest = f.store->ops;
	spy = *honest;
	spy.range = note_range;
	f.store->ops = &spy;
	for (unsigned check = 1; check <= 2; check++) {
		asked_count = 0;
		while (count_of(&f, VDI_CONSISTENCY_SUCCESS) < check)
			pass(&f, 1);
		assert_int_equal(asked_count, 2);
		assert_string_equal(asked[0].key, "/registry/pods/");
		snprintf(name, sizeof name, "p%06u", VDI_CONSISTENCY_PAGE - 1);
		assert_string_equal(asked[1].key + strlen("/registry/pods/a/"), name);
		for (unsigned i = 0; i < 2; i++) {
			assert_int_equal(asked[i].revision, last);
			assert_int_equal(asked[i].limit, VDI_CONSISTENCY_PAGE);
			assert_true(asked[i].ends);
		}
	}
	f.store->ops = honest;
	cacher_fixture_teardown(&f);
}

/* Of many differences the first is named; they are gone from the next result when they are gone. */
static void r5a2_the_first_difference_is_named(void **state)
{
	struct cacher_fixture f;
	struct vd_object     *x, *y;

	cacher_fixture_setup(&f, 10);
	put_pod(&f, "a", "w", NULL, NULL);
	put_pod(&f, "a", "x", NULL, NULL);
	put_pod(&f, "a", "y", NULL, NULL);
	cacher_fixture_settle(&f);
	x = vd_object_ref(cached(&f, "/registry/pods/a/x"));
	y = vd_object_ref(cached(&f, "/registry/pods/a/y"));
	corrupt(&f, x, NULL);
	corrupt(&f, y, NULL);
	while (count_of(&f, VDI_CONSISTENCY_FAILURE) < 1)
		pass(&f, 1);
	assert_memory_equal(f.cacher->consistency.difference,
			    "only in storage: /registry/pods/a/x (revision 0 in the cache, ", 62);
	assert_int_equal(f.cacher->consistency.result, VDI_CONSISTENCY_FAILURE);
	corrupt(&f, NULL, x);
	corrupt(&f, NULL, y);
	vd_object_unref(x);
	vd_object_unref(y);
	while (count_of(&f, VDI_CONSISTENCY_SUCCESS) < 1)
		pass(&f, 1);
	assert_string_equal(f.cacher->consistency.difference, "");
	assert_int_equal(f.cacher->consistency.result, VDI_CONSISTENCY_SUCCESS);
	assert_int_equal(count_of(&f, VDI_CONSISTENCY_FAILURE), 1);
	cacher_fixture_teardown(&f);
}

static vd_status more_without_keys(struct vd_store *store, const struct vd_range_request *request,
				   vd_range_fn done, void *arg)
{
	struct vd_range_result result = { .store_revision = 9, .count = 5, .more = true };

	if (request->range_end.size == 0)
		return honest->range(store, request, done, arg);
	done(arg, VD_OK, &result, NULL);
	return VD_OK;
}

/* Neither does a store that contradicts itself: it has not shown all it has. */
static void r157_more_but_no_keys_is_an_error(void **state)
{
	struct cacher_fixture f;
	struct vd_store_ops   liar;

	cacher_fixture_setup(&f, 9);
	put_pod(&f, "a", "x", NULL, NULL);
	cacher_fixture_settle(&f);
	honest = f.store->ops;
	liar = *honest;
	liar.range = more_without_keys;
	f.store->ops = &liar;
	pass(&f, PERIOD * 3 / 2 + 1);
	assert_int_equal(count_of(&f, VDI_CONSISTENCY_ERROR), 1);
	assert_int_equal(count_of(&f, VDI_CONSISTENCY_FAILURE), 0);
	f.store->ops = honest;
	cacher_fixture_teardown(&f);
}

/* An object that nobody can decode is left out of the cache on purpose. */
static void r5a1_what_cannot_be_decoded_is_no_difference(void **state)
{
	struct cacher_fixture f;
	struct vd_error	      error;
	vd_rev		      revision;

	cacher_fixture_init(&f, 9);
	f.options.skip_undecodable = true;
	cacher_fixture_open(&f, NULL);
	put_pod(&f, "a", "x", NULL, NULL);
	assert_status(vd_store_put_wait(f.store, vd_bytes_of("/registry/pods/a/bad"), vd_bytes_of("nonsense"),
					&revision, &error),
		      VD_OK);
	assert_status(vd_store_put_wait(f.store, vd_bytes_of("/registry/pods/z/bad"), vd_bytes_of("nonsense"),
					&revision, &error),
		      VD_OK);
	pass(&f, PERIOD * 3 / 2 + 1);
	assert_int_equal(count_of(&f, VDI_CONSISTENCY_SUCCESS), 1);
	cacher_fixture_teardown(&f);
}

/* The end of the cacher in the middle of a check. */
static void r5a0_it_may_end_in_the_middle(void **state)
{
	struct chaos_options slow = { .delay = 1000, .delay_max = VD_SECONDS(40) };

	for (unsigned round = 0; round < 12; round++) {
		struct chaos_options  calm = { 0 };
		struct cacher_fixture f;
		struct vd_store	     *chaos;

		cacher_fixture_init(&f, 10 + round);
		chaos = chaos_store_new(f.env, f.store, &calm);
		cacher_fixture_open(&f, chaos);
		put_pod(&f, "a", "x", NULL, NULL);
		pass(&f, 290);
		chaos_set(chaos, &slow);
		pass(&f, 20 * round);
		f.cacher = vd_cacher_close_wait(f.cacher);
		chaos_store_free(chaos);
		cacher_fixture_teardown(&f);
	}
}

/* Without memory at any point there is a result all the same, and never a wrong one. */
static void r5a2_torture(void **state)
{
	for (unsigned nth = 1; nth < 12; nth++) {
		struct cacher_fixture f;

		cacher_fixture_setup(&f, 31);
		put_pod(&f, "a", "x", NULL, NULL);
		cacher_fixture_settle(&f);
		corrupt(&f, cached(&f, "/registry/pods/a/x"), NULL);
		pass(&f, 290);
		(void) vdi_alloc_fail_nth(nth, 1);
		pass(&f, PERIOD);
		(void) vdi_alloc_fail_nth(0, 0);
		assert_int_equal(count_of(&f, VDI_CONSISTENCY_SUCCESS), 0);
		cacher_fixture_teardown(&f);
	}
	for (unsigned nth = 1; nth < 40; nth++) {
		struct cacher_fixture f;

		cacher_fixture_setup(&f, 30);
		put_pod(&f, "a", "x", NULL, NULL);
		pass(&f, 290);
		(void) vdi_alloc_fail_nth(nth, 1);
		pass(&f, PERIOD);
		(void) vdi_alloc_fail_nth(0, 0);
		assert_int_equal(count_of(&f, VDI_CONSISTENCY_FAILURE), 0);
		pass(&f, 2 * PERIOD);
		assert_true(count_of(&f, VDI_CONSISTENCY_SUCCESS) > 0);
		cacher_fixture_teardown(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r5a0_it_runs_every_five_minutes_and_something),
		cmocka_unit_test(r5a0_an_answer_is_looked_at_at_once),
		cmocka_unit_test(r5a0_it_can_be_switched_off),
		cmocka_unit_test(r5a1_the_digest_is_upstreams),
		cmocka_unit_test(r5a1_the_digest_of_a_cluster_scoped_object),
		cmocka_unit_test(r5a1_pages_are_read_at_one_revision),
		cmocka_unit_test(r5a2_r5a3_every_kind_of_difference_is_found),
		cmocka_unit_test(r447_r452_r5a2_exact_reads_need_a_consistent_cache),
		cmocka_unit_test(r5a2_a_relist_repairs),
		cmocka_unit_test(r5a2_or_stops_the_program),
		cmocka_unit_test(r5a2_errors_change_nothing),
		cmocka_unit_test(r5a1_the_pages_that_are_asked_for),
		cmocka_unit_test(r5a2_the_first_difference_is_named),
		cmocka_unit_test(r157_more_but_no_keys_is_an_error),
		cmocka_unit_test(r5a1_what_cannot_be_decoded_is_no_difference),
		cmocka_unit_test(r5a0_it_may_end_in_the_middle),
		cmocka_unit_test(r5a2_torture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
