/* The objects a list has to look at: never too few, and as few as an index allows. */
#include "candidates.h"

#include "actor_sim.h"
#include "pod_objects.h"

static const char prefix[] = "/registry/pods/";

/* rules: R-621 */
static void r525_the_key_of_a_scope(void **state)
{
	static const struct {
		const char *ns, *name;
		bool	    cluster;
		const char *key;
		bool	    single;
	} rows[] = {
		{ "", "", false, "/registry/pods/", false },
		{ "a", "", false, "/registry/pods/a/", false },
		{ "a", "x", false, "/registry/pods/a/x", true },
		{ "", "x", false, "/registry/pods/", false },
		{ "", "x", true, "/registry/pods/x", true },
		{ "", "", true, "/registry/pods/", false },
	};
	static char	long_name[VDI_STORAGE_KEY_MAX];
	char		buffer[VDI_STORAGE_KEY_MAX];
	struct vd_bytes key;
	bool		single;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		assert_true(vdi_scope_key(vd_bytes_of(prefix), rows[i].cluster, vd_bytes_of(rows[i].ns),
					  vd_bytes_of(rows[i].name), buffer, &key, &single));
		assert_true(vd_bytes_equal(key, vd_bytes_of(rows[i].key)));
		assert_int_equal(single, rows[i].single);
	}
	memset(long_name, 'x', sizeof long_name);
	for (size_t size = sizeof long_name - 40; size < sizeof long_name; size++) {
		bool fits = vdi_scope_key(vd_bytes_of(prefix), false, vd_bytes_of("a"),
					  (struct vd_bytes) { long_name, size }, buffer, &key, &single);

		assert_int_equal(fits, sizeof prefix - 1 + 2 + size <= VDI_STORAGE_KEY_MAX);
	}
}

#define KEYS 60

struct world {
	struct vd_env	      *env;
	struct vd_codec	      *codec;
	struct vdi_watch_cache cache;
	struct vd_object      *objects[KEYS];
};

static void world_init(struct world *world)
{
	static const char *const labels[] = { "app", NULL };
	uint64_t		 random = 11;

	assert_status(vdi_env_new_sim(1, NULL, NULL, &world->env), VD_OK);
	world->codec = pod_codec_new();
	assert_status(vdi_watch_cache_init(&world->cache, world->env, 1 << 20, VD_SECONDS(75), 1, labels),
		      VD_OK);
	for (unsigned i = 0; i < KEYS; i++) {
		char		  ns[4], name[4], app[4], node[4];
		struct vd_object *old;

		random = random * UINT64_C(6364136223846793005) + 1;
		snprintf(ns, sizeof ns, "n%u", i / 20);
		snprintf(name, sizeof name, "p%u", 10 + i % 20);
		snprintf(app, sizeof app, "a%u", (unsigned) (random >> 40) % 6);
		snprintf(node, sizeof node, "h%u", (unsigned) (random >> 50) % 9);
		world->objects[i] = pod_new(world->codec, ns, name, app, node, i + 1);
		assert_status(vdi_object_store_change(&world->cache.store, vd_object_key(world->objects[i]),
						      world->objects[i], &old),
			      VD_OK);
		assert_null(old);
	}
}

static void world_fini(struct world *world)
{
	for (unsigned i = 0; i < KEYS; i++)
		vd_object_unref(world->objects[i]);
	vdi_watch_cache_fini(&world->cache);
	vd_codec_free(world->codec);
	vd_env_free(world->env);
}

/* Walks the candidates; what matches must be what a scan of everything gives, from start on, in key order. */
static uint64_t check(struct world *world, const char *ns, const char *labels, const char *fields,
		      const char *start, bool *ret_indexed)
{
	struct vdi_predicate_options options = { vd_bytes_of(ns),     VD_BYTES_NONE, vd_bytes_of(labels),
						 vd_bytes_of(fields), true,	     false };
	struct vdi_predicate	    *predicate;
	struct vdi_candidates	     candidates;
	char			     buffer[VDI_STORAGE_KEY_MAX];
	struct vd_bytes		     scope;
	struct vd_object	    *object;
	unsigned		     at = 0;
	uint64_t		     looked = 0;
	bool			     single;

	assert_status(vdi_predicate_new(world->codec, &options, &predicate, NULL), VD_OK);
	assert_true(vdi_scope_key(vd_bytes_of(prefix), false, vdi_predicate_namespace(predicate),
				  vdi_predicate_name(predicate), buffer, &scope, &single));
	vdi_lock_acquire(&world->cache.lock);
	vdi_candidates_newest_locked(&world->cache, predicate, scope, single, vd_bytes_of(start),
				     &candidates);
	vdi_lock_release(&world->cache.lock);
	while ((object = vdi_btree_cursor_range_next(&candidates.cursor))) {
		looked++;
		if (!vdi_predicate_matches(predicate, object))
			continue;
		while (at < KEYS && (!vdi_predicate_matches(predicate, world->objects[at]) ||
				     (!single && vd_bytes_compare(vd_object_key(world->objects[at]),
								  vd_bytes_of(start)) < 0)))
			at++;
		assert_true(at < KEYS);
		assert_ptr_equal(object, world->objects[at]);
		at++;
	}
	for (; at < KEYS; at++)
		assert_true(!vdi_predicate_matches(predicate, world->objects[at]) ||
			    vd_bytes_compare(vd_object_key(world->objects[at]), vd_bytes_of(start)) < 0);
	assert_int_equal(looked, candidates.count);
	*ret_indexed = candidates.index != 0;
	vdi_candidates_release(&candidates);
	vdi_predicate_unref(predicate);
	return looked;
}

/* rules: T-136, W-02, W-11 */
static void r443_r444_no_candidate_is_missed_and_the_shortest_way_is_taken(void **state)
{
	static const char *const starts[] = { "", "/registry/pods/n1/p15", "/registry/pods/n2/",
					      "/registry/pods/zz", "/registry/" };
	static const char *const spaces[] = { "", "n0", "n1", "n2", "n3" };
	static const char *const labels[] = { "", "app=a1", "app=a2,app=a3", "app=nobody", "app!=a1" };
	static const char *const fields[] = { "",
					      "spec.nodeName=h1",
					      "spec.nodeName=none",
					      "spec.nodeName!=h1",
					      "metadata.namespace=n1",
					      "metadata.name=p15,metadata.namespace=n1" };
	struct world		 world;
	bool			 indexed, plain;

	world_init(&world);
	for (size_t a = 0; a < VDI_ARRAY_SIZE(starts); a++)
		for (size_t b = 0; b < VDI_ARRAY_SIZE(spaces); b++)
			for (size_t c = 0; c < VDI_ARRAY_SIZE(labels); c++)
				for (size_t d = 0; d < VDI_ARRAY_SIZE(fields); d++) {
					uint64_t looked = check(&world, spaces[b], labels[c], fields[d],
								d == 5 ? "" : starts[a], &indexed);

					assert_true(looked <= check(&world, spaces[b], "", "", "", &plain));
				}
	/* W-02: the smaller index, and none where the namespace is smaller. */
	assert_int_equal(check(&world, "", "app=a1", "spec.nodeName=none", "", &indexed), 0);
	assert_true(indexed);
	assert_true(check(&world, "", "", "spec.nodeName=h1", "", &indexed) < KEYS / 2);
	assert_true(indexed);
	assert_int_equal(check(&world, "n3", "app=a1", "", "", &indexed), 0);
	assert_false(indexed);
	assert_int_equal(check(&world, "", "", "metadata.name=p15,metadata.namespace=n1", "", &indexed),
			 1); /* R-481, T-069 */
	/* an index that is out of order is passed over. */
	world.cache.store.indexes[0].is_usable = false;
	assert_int_equal(check(&world, "", "", "spec.nodeName=h1", "", &indexed), KEYS);
	assert_false(indexed);
	world_fini(&world);
}

/* Looks at the objects that may match, and finds those that do. */
static uint64_t look(struct vdi_watch_cache *cache, const struct vd_codec *pods, const char *labels,
		     const char *fields, uint64_t *ret_found, size_t *ret_index)
{
	struct vdi_predicate_options options = { VD_BYTES_NONE,	      VD_BYTES_NONE, vd_bytes_of(labels),
						 vd_bytes_of(fields), true,	     false };
	struct vdi_predicate	    *predicate;
	struct vdi_candidates	     candidates;
	struct vd_object	    *object, *last = NULL;
	uint64_t		     count;

	assert_status(vdi_predicate_new(pods, &options, &predicate, NULL), VD_OK);
	vdi_lock_acquire(&cache->lock);
	vdi_candidates_newest_locked(cache, predicate, vd_bytes_of(prefix), false, VD_BYTES_NONE,
				     &candidates);
	vdi_lock_release(&cache->lock);
	*ret_found = 0;
	while ((object = vdi_btree_cursor_range_next(&candidates.cursor))) {
		assert_true(last == NULL || vd_bytes_compare(vd_object_key(last), vd_object_key(object)) < 0);
		last = object;
		*ret_found += vdi_predicate_matches(predicate, object);
	}
	count = candidates.count;
	*ret_index = candidates.index;
	vdi_candidates_release(&candidates);
	vdi_predicate_unref(predicate);
	return count;
}

/* An index that leads to all objects saves nothing. */
static void r443_an_index_of_everything_is_not_taken(void **state)
{
	static const char *const labels[] = { "app", NULL };
	struct vdi_watch_cache	 cache;
	struct vd_env		*env;
	struct vd_codec		*pods = pod_codec_new();

	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	assert_status(vdi_watch_cache_init(&cache, env, 1 << 20, VD_SECONDS(75), 0, labels), VD_OK);
	for (unsigned i = 0; i <= 30; i++) {
		struct vd_object *object, *old;
		uint64_t	  found;
		size_t		  index;
		char		  name[8];

		snprintf(name, sizeof name, "p%02u", i);
		object = pod_new(pods, "ns", name, i < 30 ? "all" : "other", NULL, i + 1);
		assert_status(vdi_object_store_change(&cache.store, vd_object_key(object), object, &old),
			      VD_OK);
		assert_null(old);
		vd_object_unref(object);
		assert_int_equal(look(&cache, pods, "app=all", "", &found, &index), i < 30 ? i + 1 : 30);
		assert_int_equal(found, i < 30 ? i + 1 : 30);
		assert_int_equal(index != 0, i == 30);
	}
	vdi_watch_cache_fini(&cache);
	vd_codec_free(pods);
	vd_env_free(env);
}

/* What is looked at shrinks with the second list; what is found never changes. */
static void r443_labels_and_fields_are_indexed_when_lists_ask(void **state)
{
	static const char *const selectors[] = { "app=a1", "app=a1,app!=a2", "app in (a1)" };
	struct vdi_watch_cache	 cache;
	struct vd_codec		*pods = pod_codec_new();
	struct vd_env		*env;
	uint64_t		 found;
	size_t			 index;

	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	assert_status(vdi_watch_cache_init(&cache, env, 1 << 20, VD_SECONDS(75), 1, NULL), VD_OK);
	vdi_object_store_on_demand(&cache.store);
	for (unsigned i = 0; i < 1200; i++) {
		char		  name[8], app[8];
		struct vd_object *object, *old;

		snprintf(name, sizeof name, "p%04u", i);
		snprintf(app, sizeof app, "a%u", i % 6);
		object = pod_new(pods, i % 2 ? "n1" : "n2", name, app, app, i + 1);
		assert_status(vdi_object_store_change(&cache.store, vd_object_key(object), object, &old),
			      VD_OK);
		vd_object_unref(object);
	}
	assert_int_equal(look(&cache, pods, "app=a1", "", &found, &index), 1200);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(selectors); i++) {
		assert_int_equal(look(&cache, pods, selectors[i], "", &found, &index), 200);
		assert_int_equal(found, 200);
		assert_int_equal(index, 0); /* it has no name to be counted by */
	}
	assert_int_equal(look(&cache, pods, "app!=a1", "", &found, &index), 1200);
	assert_int_equal(found, 1000);
	assert_int_equal(look(&cache, pods, "app=a9", "", &found, &index), 0);
	assert_int_equal(look(&cache, pods, "", "spec.nodeName=a2", &found, &index), 1200);
	assert_int_equal(look(&cache, pods, "", "spec.nodeName=a2", &found, &index), 200);
	assert_int_equal(found, 200);
	assert_int_equal(index, 1);
	vdi_watch_cache_fini(&cache);
	vd_codec_free(pods);
	vd_env_free(env);
}

/* A thousand objects are scanned as fast as an index is found; of one more there is an index for who asks
 * twice. */
static void r443_few_objects_are_never_indexed(void **state)
{
	for (unsigned count = 1000; count <= 1001; count++) {
		struct vdi_watch_cache cache;
		struct vd_codec	      *pods = pod_codec_new();
		struct vd_env	      *env;
		uint64_t	       found;
		size_t		       index;

		assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
		assert_status(vdi_watch_cache_init(&cache, env, 1 << 20, VD_SECONDS(75), 1, NULL), VD_OK);
		vdi_object_store_on_demand(&cache.store);
		for (unsigned i = 0; i < count; i++) {
			char		  name[8];
			struct vd_object *object, *old;

			snprintf(name, sizeof name, "p%04u", i);
			object = pod_new(pods, "ns", name, i % 2 ? "a" : "b", i % 2 ? "n" : "m", i + 1);
			assert_status(
				vdi_object_store_change(&cache.store, vd_object_key(object), object, &old),
				VD_OK);
			vd_object_unref(object);
		}
		for (unsigned asked = 1; asked <= 4; asked++) {
			bool	 is_indexed = count > 1000 && asked > 1;
			uint64_t some = count / 2;

			assert_int_equal(look(&cache, pods, "", "spec.nodeName=n", &found, &index),
					 is_indexed ? some : count);
			assert_int_equal(found, some);
			assert_int_equal(look(&cache, pods, "app=a", "", &found, &index),
					 is_indexed ? some : count);
			assert_int_equal(found, some);
		}
		vdi_watch_cache_fini(&cache);
		vd_codec_free(pods);
		vd_env_free(env);
	}
}

/* A label with a declared index takes no place of the indexes on demand, however often it is asked for. */
static void a_declared_label_is_indexed_once(void **state)
{
	static const char *const labels[] = { "app", NULL };
	struct vdi_watch_cache	 cache;
	struct vd_codec		*pods = pod_codec_new();
	struct vd_env		*env;
	uint64_t		 found;
	size_t			 index;

	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	assert_status(vdi_watch_cache_init(&cache, env, 1 << 20, VD_SECONDS(75), 0, labels), VD_OK);
	vdi_object_store_on_demand(&cache.store);
	for (unsigned i = 0; i < 1300; i++) {
		char		  name[8];
		struct vd_object *object, *old;

		snprintf(name, sizeof name, "p%04u", i);
		object = pod_new(pods, "ns", name, i < 1200 ? "a" : "b", NULL, i + 1);
		assert_status(vdi_object_store_change(&cache.store, vd_object_key(object), object, &old),
			      VD_OK);
		vd_object_unref(object);
	}
	for (unsigned asked = 0; asked < 5; asked++) {
		assert_int_equal(look(&cache, pods, "app=a", "", &found, &index), 1200);
		assert_int_equal(found, 1200);
		assert_int_equal(index, 1);
	}
	for (size_t i = 0; i < VDI_DEMAND_LABELS_MAX; i++)
		assert_null(cache.store.indexes[cache.store.index_count + i].label_key);
	vdi_watch_cache_fini(&cache);
	vd_codec_free(pods);
	vd_env_free(env);
}

/* A new state gives the declared indexes up; they are built while the cache is already read. */
static void declared_indexes_are_built_after_a_new_state(void **state)
{
	struct world	 world;
	struct vdi_btree objects;

	world_init(&world);
	assert_true(world.cache.store.indexes[0].is_usable);
	vdi_btree_init(&objects, &vdi_object_btree_ops);
	for (unsigned i = 0; i < 10; i++)
		assert_status(vdi_btree_put(&objects, world.objects[i], NULL), VD_OK);
	vdi_watch_cache_replace(&world.cache, &objects, -1, KEYS + 1, false);
	assert_false(world.cache.store.indexes[0].is_usable);
	vdi_watch_cache_build_indexes(&world.cache);
	assert_true(world.cache.store.indexes[0].is_usable);
	assert_in_range(world.cache.store.indexes[0].posting_count, 1, 10);
	vdi_btree_fini(&objects);
	world_fini(&world);
}

/* Not from the start, not after a list of the store, not when lost indexes are built again: each index costs
 * each change. */
static void nothing_is_indexed_that_nobody_asks_for(void **state)
{
	struct vdi_watch_cache cache;
	struct vd_codec	      *pods = pod_codec_new();
	struct vdi_btree       objects;
	struct vd_object      *object = pod_new(pods, "n1", "p1", "a1", "h1", 1), *old;
	struct vd_env	      *env;

	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	assert_status(vdi_watch_cache_init(&cache, env, 1 << 20, VD_SECONDS(75), 1, NULL), VD_OK);
	vdi_object_store_on_demand(&cache.store);
	vdi_btree_init(&objects, &vdi_object_btree_ops);
	assert_status(vdi_btree_put(&objects, object, NULL), VD_OK);
	vdi_watch_cache_replace(&cache, &objects, -1, 1, false);
	vdi_watch_cache_build_indexes(&cache);
	for (unsigned i = 0; i < 2500; i++) {
		assert_status(vdi_object_store_change(&cache.store, vd_object_key(object), object, &old),
			      VD_OK);
		vd_object_unref(old);
	}
	for (size_t i = 0; i < cache.store.index_count + VDI_DEMAND_LABELS_MAX; i++) {
		assert_false(cache.store.indexes[i].is_usable);
		assert_int_equal(cache.store.indexes[i].posting_count, 0);
	}
	vd_object_unref(object);
	vdi_btree_fini(&objects);
	vdi_watch_cache_fini(&cache);
	vd_codec_free(pods);
	vd_env_free(env);
}

static void r449_an_older_state_is_walked_by_its_keys(void **state)
{
	struct world		  world;
	struct vdi_btree_snapshot snapshot;
	struct vdi_candidates	  candidates;

	world_init(&world);
	vdi_object_store_snapshot(&world.cache.store, &snapshot);
	vdi_candidates_of(&snapshot, vd_bytes_of("/registry/pods/n1/"), false,
			  vd_bytes_of("/registry/pods/n1/p25"), &candidates);
	assert_null(snapshot.root); /* taken over */
	assert_int_equal(candidates.count, 5);
	assert_ptr_equal(vdi_btree_cursor_range_next(&candidates.cursor), world.objects[35]);
	vdi_candidates_release(&candidates);
	world_fini(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r525_the_key_of_a_scope),
		cmocka_unit_test(r443_r444_no_candidate_is_missed_and_the_shortest_way_is_taken),
		cmocka_unit_test(r443_an_index_of_everything_is_not_taken),
		cmocka_unit_test(r443_labels_and_fields_are_indexed_when_lists_ask),
		cmocka_unit_test(r443_few_objects_are_never_indexed),
		cmocka_unit_test(a_declared_label_is_indexed_once),
		cmocka_unit_test(declared_indexes_are_built_after_a_new_state),
		cmocka_unit_test(nothing_is_indexed_that_nobody_asks_for),
		cmocka_unit_test(r449_an_older_state_is_walked_by_its_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
