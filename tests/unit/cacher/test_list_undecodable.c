/* Lists of a resource some of whose objects cannot be decoded: from every source, with the others first,
 * last, everywhere and at every border of a page. */
#include "cacher.h"
#include "cacher_fixture.h"
#include "env.h"
#include "rand.h"

enum source {
	CACHE,	   /* the newest state, which the cache has */
	STORE,	   /* the newest state, and the store cannot prove its progress */
	OLD_EXACT, /* an exact revision that the cache does not have */
	FILLING,   /* the cache is not ready */
	OLD_TOKEN, /* the first page is from the cache, which has forgotten its revision then */
	SOURCES
};

#define KEYS_MAX 14

struct world {
	struct cacher_fixture	   f;
	enum source		   source;
	const struct vd_store_ops *ops; /* of the real store */
	struct vd_store_ops	   changed;
	vd_rev			   revision; /* of the state that is listed */
};

/* The stores of one test at a time. */
static const struct vd_store_ops *real;

static vd_status status_without_progress(struct vd_store *store, struct vd_store_status *ret_status)
{
	vd_status status = real->status(store, ret_status);

	ret_status->progress = false;
	return status;
}

static vd_status no_watch(struct vd_store *store, const struct vd_store_watch_request *request,
			  struct vd_store_watch **ret_watch, struct vd_error *reterr)
{
	return vd_error_set(reterr, VD_UNAVAILABLE, "no watches today");
}

static void put_junk(struct cacher_fixture *f, const char *name)
{
	char key[64];

	snprintf(key, sizeof key, "/registry/pods/a/%s", name);
	assert_status(vd_store_put_wait(f->store, vd_bytes_of(key), vd_bytes_of("junk"), NULL, NULL), VD_OK);
}

/* Keys p00, p01, ...; bit i of junk: that one cannot be decoded. */
static void world_open(struct world *world, enum source source, uint64_t seed, unsigned count, unsigned junk)
{
	char name[16];

	memset(world, 0, sizeof *world);
	world->source = source;
	cacher_fixture_init(&world->f, seed);
	world->f.options.skip_undecodable = true;
	world->f.options.no_backfill = source == OLD_EXACT;
	for (unsigned i = 0; i < count; i++) {
		snprintf(name, sizeof name, "p%02u", i);
		if (junk >> i & 1)
			put_junk(&world->f, name);
		else
			(void) put_pod(&world->f, "a", name, i % 2 ? "odd" : "even", NULL);
	}
	world->revision = put_pod(&world->f, "b", "last", "last", NULL);
	if (source == OLD_EXACT) /* the next revisions put an end to the state that is listed */
		for (unsigned i = 0; i < count; i++) {
			snprintf(name, sizeof name, "p%02u", i);
			(void) delete_pod(&world->f, "a", name);
		}
	real = world->ops = world->f.store->ops;
	world->changed = *real;
	if (source == STORE)
		world->changed.status = status_without_progress;
	if (source == FILLING)
		world->changed.watch = no_watch;
	world->f.store->ops = &world->changed;
	if (source == FILLING)
		assert_status(vd_cacher_new(world->f.env, world->f.store, &world->f.options, &world->f.cacher,
					    NULL),
			      VD_OK);
	else
		cacher_fixture_open(&world->f, NULL);
}

static void world_close(struct world *world)
{
	world->f.cacher = vd_cacher_close_wait(world->f.cacher);
	world->f.store->ops = world->ops;
	cacher_fixture_teardown(&world->f);
}

static void forget_the_past(struct world *world)
{
	struct vdi_watch_cache *cache = &world->f.cacher->watch_cache;

	(void) put_pod(&world->f, "b", "later", NULL, NULL);
	cacher_fixture_settle(&world->f);
	vdi_lock_acquire(&cache->lock);
	(void) vdi_history_trim(&cache->history, INT64_MAX);
	vdi_object_store_forget(&cache->store, INT64_MAX);
	vdi_lock_release(&cache->lock);
}

/* All pages; every one is full but the last one, no object is missing and none comes twice. */
static void check_pages(struct world *world, unsigned count, unsigned junk, int64_t limit, const char *app)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	char		       label[16], token[512] = "", expected[16];
	unsigned	       at = 0;
	bool		       seen_last = false;

	snprintf(label, sizeof label, "%s%s", app ? "app=" : "", app ? app : "");
	options.limit = limit;
	options.label_selector = vd_bytes_of(label);
	if (world->source == OLD_EXACT) {
		options.match = VD_MATCH_EXACT;
		options.revision = world->revision;
	}
	for (unsigned page = 0; page == 0 || token[0]; page++) {
		struct vd_list	 *list = NULL;
		struct vd_object *object;
		struct vd_error	  error = { 0 };
		int64_t		  seen = 0;

		assert_true(page <= count + 1);
		options.continue_token = vd_bytes_of(token);
		if (vd_cacher_list_wait(world->f.cacher, &options, &list, &error) != VD_OK)
			fail_msg("source %d, keys %u, junk %x, limit %lld: %s", world->source, count, junk,
				 (long long) limit, error.message);
		options.match = VD_MATCH_UNSET;
		options.revision = VD_REVISION_UNSET;
		assert_int_equal(vd_list_revision(list), world->revision);
		for (; (object = vd_list_next(list)); seen++) {
			while (at < count &&
			       (junk >> at & 1 || (app && strcmp(app, at % 2 ? "odd" : "even") != 0)))
				at++;
			snprintf(expected, sizeof expected, "p%02u", at);
			if (at == count)
				snprintf(expected, sizeof expected, "last");
			if (!vd_bytes_equal(vd_object_name(object), vd_bytes_of(expected)))
				fail_msg("source %d, keys %u, junk %x, limit %lld: %.*s instead of %s",
					 world->source, count, junk, (long long) limit,
					 (int) vd_object_name(object).size,
					 (const char *) vd_object_name(object).data, expected);
			seen_last |= at == count;
			at += at < count;
		}
		snprintf(token, sizeof token, "%.*s", (int) vd_list_continue(list).size,
			 (const char *) vd_list_continue(list).data);
		if (token[0]) {
			assert_int_equal(seen, limit);
			if (app == NULL)
				assert_true(vd_list_remaining(list) > 0 &&
					    vd_list_remaining(list) <= count + 1 - at);
		}
		vd_list_free(list);
		if (page == 0 && world->source == OLD_TOKEN)
			forget_the_past(world);
	}
	while (at < count && (junk >> at & 1 || (app && strcmp(app, at % 2 ? "odd" : "even") != 0)))
		at++;
	if (at != count || seen_last == (app != NULL))
		fail_msg("source %d, keys %u, junk %x, limit %lld: the list ends at %u", world->source, count,
			 junk, (long long) limit, at);
}

static void check_all_limits(enum source source, unsigned count, unsigned junk)
{
	/* A cache that is being filled answers nothing but pages without selectors. */
	bool	     is_filling = source == FILLING, is_open = false;
	struct world world;

	for (int64_t limit = is_filling; limit <= (int64_t) count + 2; limit++)
		for (unsigned selected = 0; selected < 2 - (unsigned) is_filling; selected++) {
			if (!is_open)
				world_open(&world, source, junk + 1, count, junk);
			is_open = source !=
				  OLD_TOKEN; /* it has forgotten the past: the next one needs another world */
			check_pages(&world, count, junk, limit, selected ? "odd" : NULL);
			if (!is_open)
				world_close(&world);
		}
	if (is_open)
		world_close(&world);
}

/* Every set of undecodable ones among four objects: none, first, middle, last, all.
 * rules, O-20 */
static void o20_r156_every_place_of_a_page_from_every_source(void **state)
{
	for (int source = 0; source < SOURCES; source++)
		for (unsigned junk = 0; junk < 16; junk++)
			check_all_limits((enum source) source, 4, junk);
}

static void o20_r156_random_places(void **state)
{
	struct vdi_rand rand;

	vdi_rand_init(&rand, 7);
	for (unsigned round = 0; round < 10; round++)
		for (int source = 0; source < SOURCES; source++)
			check_all_limits((enum source) source, KEYS_MAX,
					 (unsigned) (vdi_rand_next(&rand) & vdi_rand_next(&rand)) %
						 (1u << KEYS_MAX));
}

/* Without a limit the store is read 10,000 keys at a time. */
static void o20_r156_the_ten_thousandth_key(void **state)
{
	static const struct {
		unsigned from, to;
	} junk[] = { { 9999, 9999 }, { 9998, 10001 }, { 0, 9999 }, { 10000, 10000 } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(junk); i++) {
		struct vd_list_options options = VD_LIST_OPTIONS_INIT;
		struct vd_list	      *list = NULL;
		struct world	       world;
		char		       key[64], value[96];
		unsigned	       seen = 0;

		cacher_fixture_init(&world.f, i + 1);
		world.f.options.skip_undecodable = true;
		for (unsigned n = 0; n < 10005; n++) {
			snprintf(key, sizeof key, "/registry/pods/a/p%05u", n);
			snprintf(value, sizeof value,
				 "{\"metadata\":{\"name\":\"p%05u\",\"namespace\":\"a\"}}", n);
			assert_status(
				vd_store_put_wait(
					world.f.store, vd_bytes_of(key),
					vd_bytes_of(n >= junk[i].from && n <= junk[i].to ? "junk" : value),
					NULL, NULL),
				VD_OK);
		}
		real = world.ops = world.f.store->ops;
		world.changed = *real;
		world.changed.status = status_without_progress;
		world.f.store->ops = &world.changed;
		cacher_fixture_open(&world.f, NULL);
		assert_status(vd_cacher_list_wait(world.f.cacher, &options, &list, NULL), VD_OK);
		for (struct vd_object *object; (object = vd_list_next(list)); seen++) {
			unsigned number = seen < junk[i].from ? seen : seen + junk[i].to - junk[i].from + 1;

			snprintf(key, sizeof key, "p%05u", number);
			assert_true(vd_bytes_equal(vd_object_name(object), vd_bytes_of(key)));
		}
		assert_int_equal(seen, 10005 - (junk[i].to - junk[i].from + 1));
		assert_int_equal(vd_list_continue(list).size, 0);
		vd_list_free(list);
		world_close(&world);
	}
}

static double counted(const struct world *world, enum vdi_metric_id id, const char *index)
{
	const char	  *values[] = { "", "pods", "etcd", index };
	struct vdi_metric *metric;
	double		   value;

	assert_status(vdi_metric_get(vdi_env_metrics(world->f.env), id, values, &metric), VD_OK);
	value = vdi_metric_value(metric);
	vdi_metric_release(metric);
	return value;
}

/* Who does not leave them out gets an error, and no list without them. What was read up to there is counted
 * . rules: T-023 */
static void r161_r162_or_the_list_fails(void **state)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct vd_list	      *list = NULL;
	struct vd_error	       error;
	struct world	       world;

	world_open(&world, FILLING, 1, 3, 4);
	world.f.cacher = vd_cacher_close_wait(world.f.cacher);
	world.f.options.skip_undecodable = false;
	assert_status(vd_cacher_new(world.f.env, world.f.store, &world.f.options, &world.f.cacher, NULL),
		      VD_OK);
	options.limit = 2; /* p00 and p01 */
	assert_status(vd_cacher_list_wait(world.f.cacher, &options, &list, &error), VD_OK);
	vd_list_free(list);
	options.limit = 3;
	assert_status(vd_cacher_list_wait(world.f.cacher, &options, &list, &error), VD_UNDECODABLE);
	assert_string_equal(error.message,
			    "failed to read one or more pods from the storage: object not decodable "
			    "revision=4: invalid JSON at byte 0: an object was expected");
	assert_true(counted(&world, VDI_METRIC_STORAGE_LIST_TOTAL, "") == 2);
	assert_true(counted(&world, VDI_METRIC_STORAGE_LIST_FETCHED_OBJECTS_TOTAL, "") == 5);
	assert_true(counted(&world, VDI_METRIC_STORAGE_LIST_EVALUATED_OBJECTS_TOTAL, NULL) == 4);
	assert_true(counted(&world, VDI_METRIC_STORAGE_LIST_RETURNED_OBJECTS_TOTAL, NULL) == 2);
	world_close(&world);
}

/* rules: R-152 */
static void r152_one_key_has_no_pages_and_no_siblings(void **state)
{
	for (unsigned exact = 0; exact < 2; exact++) {
		struct vd_list_options options = VD_LIST_OPTIONS_INIT;
		struct vd_list	      *list = NULL;
		struct vd_error	       error;
		struct world	       world;

		world_open(&world, exact ? CACHE : STORE, 1, 3, 4);
		(void) put_pod(&world.f, "a", "p000", NULL, NULL); /* names that begin with another one */
		put_junk(&world.f, "p001");
		cacher_fixture_settle(&world.f);
		options.namespace_name = vd_bytes_of("a");
		options.name = vd_bytes_of("p00");
		options.limit = 1;
		if (exact) {
			options.match = VD_MATCH_EXACT;
			options.revision = vd_cacher_revision(world.f.cacher);
		}
		assert_status(vd_cacher_list_wait(world.f.cacher, &options, &list, &error), VD_OK);
		assert_int_equal(vd_list_candidate_count(list), 1);
		assert_true(vd_bytes_equal(vd_object_name(vd_list_next(list)), vd_bytes_of("p00")));
		assert_null(vd_list_next(list));
		assert_int_equal(vd_list_continue(list).size, 0);
		assert_int_equal(vd_list_remaining(list), -1);
		vd_list_free(list);
		/* Nor is a token of any use, whatever it is. */
		options.continue_token = vd_bytes_of("nonsense");
		assert_status(vd_cacher_list_wait(world.f.cacher, &options, &list, &error), VD_OK);
		assert_true(vd_bytes_equal(vd_object_name(vd_list_next(list)), vd_bytes_of("p00")));
		vd_list_free(list);
		options.continue_token = VD_BYTES_NONE;
		/* It cannot be shown, and it is not absent. */
		options.name = vd_bytes_of("p02");
		assert_status(vd_cacher_list_wait(world.f.cacher, &options, &list, &error), VD_UNDECODABLE);
		world_close(&world);
	}
}

static vd_status more_without_keys(struct vd_store *store, const struct vd_range_request *request,
				   vd_range_fn done, void *arg)
{
	static unsigned	       asked;
	struct vd_range_result result = { .store_revision = 9, .count = 5, .more = asked++ < 10 };

	if (request->range_end.size == 0)
		return real->range(store, request, done, arg);
	done(arg, VD_OK, &result, NULL);
	return VD_OK;
}

static void r157_more_but_no_keys_is_an_error(void **state)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct vd_list	      *list = NULL;
	struct vd_error	       error;
	struct world	       world;

	world_open(&world, STORE, 1, 3, 0);
	world.changed.range = more_without_keys;
	assert_status(vd_cacher_list_wait(world.f.cacher, &options, &list, &error), VD_INTERNAL);
	assert_string_equal(
		error.message,
		"no results were found, but the store indicated there were more values remaining");
	options.limit = 2;
	assert_status(vd_cacher_list_wait(world.f.cacher, &options, &list, &error), VD_INTERNAL);
	world_close(&world);
}

/* ---- Objects that become undecodable while the cache has them ---- */

#define NAMES 4
#define STEPS 24

enum content { ABSENT, READABLE, JUNK };

static void on_txn(void *arg, vd_status status, const struct vd_txn_result *result,
		   const struct vd_error *error)
{
	assert_status(status, VD_OK);
	*(vd_rev *) arg = result->revision;
}

/* A transaction that changes some of the keys; expected gets what a watcher is told. */
static vd_rev change_some(struct cacher_fixture *f, struct vdi_rand *rand, enum content contents[NAMES],
			  char *expected, size_t size)
{
	static char	      keys[NAMES][64], values[NAMES][256];
	struct vd_op	      ops[NAMES] = { 0 };
	struct vd_txn_request txn = { .success = ops };
	char		      marks[NAMES] = { 0 };
	vd_rev		      revision = 0;

	for (unsigned i = 0; i < NAMES || txn.success_count == 0; i++) {
		struct vd_op *op = &ops[txn.success_count];
		enum content *content = &contents[i % NAMES], before = *content,
			     after = (enum content) vdi_rand_below(rand, 3);

		if (vdi_rand_below(rand, 3) == 0 || (before == ABSENT && after == ABSENT))
			continue;
		*content = after;
		i %= NAMES;
		snprintf(keys[i], sizeof keys[i], "/registry/pods/a/p%u", i);
		snprintf(values[i], sizeof values[i], "{\"metadata\":{\"name\":\"p%u\",\"namespace\":\"a\"}}",
			 i);
		*op = (struct vd_op) { .kind = after == ABSENT ? VD_OP_DELETE : VD_OP_PUT,
				       .key = vd_bytes_of(keys[i]) };
		if (after != ABSENT)
			op->value = vd_bytes_of(after == JUNK ? "junk" : values[i]);
		txn.success_count++;
		if (before == READABLE)
			marks[i] = after == READABLE ? '~' : '-';
		else if (after == READABLE)
			marks[i] = '+';
	}
	assert_status(vd_store_txn(f->store, &txn, on_txn, &revision), VD_OK);
	while (revision == 0)
		vdi_sim_advance(f->env, VD_MS(1));
	for (unsigned i = 0; i < NAMES; i++)
		if (marks[i])
			snprintf(expected + strlen(expected), size - strlen(expected), "%s%ca/p%u@%lld",
				 expected[0] ? " " : "", marks[i], i, (long long) revision);
	return revision;
}

/* The names that are in the cache at a revision (0: now), as "p0 p3". */
static const char *names_at(struct cacher_fixture *f, vd_rev revision)
{
	static char	       text[256];
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct vd_list	      *list = NULL;
	struct vd_error	       error = { 0 };
	struct vd_object      *object;

	options.revision = revision ? revision : VD_REVISION_ANY;
	options.match = revision ? VD_MATCH_EXACT : VD_MATCH_UNSET;
	if (vd_cacher_list_wait(f->cacher, &options, &list, &error) != VD_OK)
		fail_msg("%s", error.message);
	text[0] = 0;
	while ((object = vd_list_next(list)))
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.*s", text[0] ? " " : "",
			 (int) vd_object_name(object).size, (const char *) vd_object_name(object).data);
	vd_list_free(list);
	return text;
}

/* A cached object whose next state cannot be decoded is gone for lists and watches, and there again with its
 * next readable state, in whatever company.
 * rules: O-20 */
static void o20_what_becomes_undecodable_leaves_the_cache(void **state)
{
	for (uint64_t seed = 1; seed <= 150; seed++) {
		struct cacher_fixture	f;
		struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
		struct recorder	       *live = calloc(1, sizeof *live), *later = calloc(1, sizeof *later);
		struct vdi_rand		rand;
		enum content		contents[NAMES] = { ABSENT };
		char			expected[8192] = "", names[STEPS][64];
		vd_rev			revisions[STEPS];

		vdi_rand_init(&rand, seed);
		if (seed % 2)
			cacher_fixture_init(&f, seed);
		else
			cacher_fixture_init_preempted(&f, seed, 3, VD_MS(5));
		f.options.skip_undecodable = true;
		f.options.decode_workers = seed % 3;
		cacher_fixture_open(&f, NULL);
		assert_status(recorder_open(&f, live, &options, NULL), VD_OK);
		cacher_fixture_settle(&f);
		for (unsigned step = 0; step < STEPS; step++) {
			revisions[step] = change_some(&f, &rand, contents, expected, sizeof expected);
			names[step][0] = 0;
			for (unsigned i = 0; i < NAMES; i++)
				if (contents[i] == READABLE)
					snprintf(names[step] + strlen(names[step]),
						 sizeof names[step] - strlen(names[step]), "%sp%u",
						 names[step][0] ? " " : "", i);
			if (vdi_rand_below(&rand, 3) == 0) {
				cacher_fixture_settle(&f);
				assert_string_equal(names_at(&f, 0), names[step]);
			}
		}
		cacher_fixture_settle(&f);
		assert_int_equal(vd_cacher_revision(f.cacher), revisions[STEPS - 1]);
		assert_string_equal(names_at(&f, 0), names[STEPS - 1]);
		for (unsigned step = 0; step < STEPS; step++)
			assert_string_equal(names_at(&f, revisions[step]), names[step]);
		assert_string_equal(recorder_text(live), expected);
		options.revision = revisions[0] - 1;
		assert_status(recorder_open(&f, later, &options, NULL), VD_OK);
		cacher_fixture_settle(&f);
		assert_string_equal(recorder_text(later), expected);
		assert_int_equal(vdi_quarantine_count(&f.cacher->quarantine),
				 (contents[0] == JUNK) + (contents[1] == JUNK) + (contents[2] == JUNK) +
					 (contents[3] == JUNK));
		recorder_close(&f, live);
		recorder_close(&f, later);
		cacher_fixture_teardown(&f);
		free(live);
		free(later);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(o20_r156_every_place_of_a_page_from_every_source),
		cmocka_unit_test(o20_r156_random_places),
		cmocka_unit_test(o20_r156_the_ten_thousandth_key),
		cmocka_unit_test(r161_r162_or_the_list_fails),
		cmocka_unit_test(r152_one_key_has_no_pages_and_no_siblings),
		cmocka_unit_test(r157_more_but_no_keys_is_an_error),
		cmocka_unit_test(o20_what_becomes_undecodable_leaves_the_cache),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
