/* The objects of one resource: order, snapshots, which of them are kept, and indexes that come back. */
#include "object_store.h"

#include "pod_codec_group.h"

/* As a scan counts them. */
static void check_bytes(const struct vdi_object_store *store)
{
	struct vdi_key_range	everything = VDI_KEY_RANGE_ALL;
	struct vdi_btree_cursor cursor;
	struct vd_object       *object;
	int64_t			bytes = 0;

	vdi_btree_cursor_init(&cursor, vdi_btree_view(&store->objects));
	(void) vdi_btree_cursor_range(&cursor, &everything);
	while ((object = vdi_btree_cursor_range_next(&cursor)))
		bytes += vdi_object_store_size_of(object);
	assert_int_equal(store->bytes, bytes);
}

static void put(struct vdi_object_store *store, const char *name, const char *app, vd_rev revision)
{
	struct vd_object *object = pod_new(codec, "ns", name, app, app, revision);
	struct vd_object *there = vdi_object_store_get(store, vd_object_key(object)), *old;

	assert_status(vdi_object_store_change(store, vd_object_key(object), object, &old), VD_OK);
	assert_ptr_equal(old, there);
	vd_object_unref(old);
	vd_object_unref(object);
	check_bytes(store);
}

static void drop(struct vdi_object_store *store, const char *name)
{
	char		  key[64];
	struct vd_object *there, *old;

	snprintf(key, sizeof key, "/registry/pods/ns/%s", name);
	there = vdi_object_store_get(store, vd_bytes_of(key));
	assert_status(vdi_object_store_change(store, vd_bytes_of(key), NULL, &old), VD_OK);
	assert_ptr_equal(old, there);
	vd_object_unref(old);
	check_bytes(store);
}

static const char *indexed(const struct vdi_object_store *store, size_t index, const char *value)
{
	struct vdi_btree_snapshot found;
	static char		  text[8192];

	if (!vdi_object_index_snapshot(&store->indexes[index], vd_bytes_of(value), &found))
		return "unusable";
	snprintf(text, sizeof text, "%s", pod_names(&found));
	vdi_btree_snapshot_release(&found);
	return text;
}

static void r440_t172_key_order_and_indexes_follow_changes(void **state)
{
	static const char *const labels[] = { "app", "tier", NULL };
	struct vdi_object_store	 store;

	assert_status(vdi_object_store_init(&store, 1, labels), VD_OK);
	assert_int_equal(store.index_count, 3);
	put(&store, "b", "web", 1);
	put(&store, "a", "db", 2);
	put(&store, "c", "web", 3);
	assert_string_equal(pod_names(vdi_btree_view(&store.objects)), "ns/a ns/b ns/c");
	assert_string_equal(indexed(&store, 0, "web"), "ns/b ns/c");
	assert_string_equal(indexed(&store, 1, "web"), "ns/b ns/c");
	assert_string_equal(indexed(&store, 2, "web"), "");
	put(&store, "b", "db", 4);
	drop(&store, "c");
	assert_string_equal(indexed(&store, 0, "web"), "");
	assert_string_equal(indexed(&store, 1, "db"), "ns/a ns/b");
	assert_null(vdi_object_store_get(&store, vd_bytes_of("/registry/pods/ns/c")));
	vdi_object_store_fini(&store);
}

static void a_snapshot_never_changes(void **state)
{
	struct vdi_object_store	  store;
	struct vdi_btree_snapshot before;

	assert_status(vdi_object_store_init(&store, 0, NULL), VD_OK);
	assert_int_equal(store.index_count, 0);
	put(&store, "a", NULL, 1);
	vdi_object_store_snapshot(&store, &before);
	put(&store, "b", NULL, 2);
	drop(&store, "a");
	assert_string_equal(pod_names(&before), "ns/a");
	assert_string_equal(pod_names(vdi_btree_view(&store.objects)), "ns/b");
	vdi_btree_snapshot_release(&before);
	vdi_object_store_fini(&store);
}

static void retain(struct vdi_object_store *store, vd_rev revision, uint64_t position)
{
	struct vdi_btree_snapshot snapshot;

	vdi_object_store_snapshot(store, &snapshot);
	vdi_object_store_retain(store, &snapshot, revision, position);
	vdi_btree_snapshot_release(&snapshot);
}

static void r447_few_snapshots_are_kept_and_the_nearest_newer_one_is_found(void **state)
{
	struct vdi_object_store store;

	assert_status(vdi_object_store_init(&store, 0, NULL), VD_OK);
	assert_null(vdi_object_store_nearest(&store, 0));
	retain(&store, 30, 20);
	retain(&store, 10, 5);
	retain(&store, 20, 12);
	assert_int_equal(vdi_object_store_nearest(&store, 0)->revision, 10);
	assert_int_equal(vdi_object_store_nearest(&store, 5)->revision, 10);
	assert_int_equal(vdi_object_store_nearest(&store, 6)->revision, 20);
	assert_null(vdi_object_store_nearest(&store, 21));
	/* Nothing happened between 20 and 25: one state, known for both. */
	retain(&store, 25, 12);
	retain(&store, 22, 12);
	assert_int_equal(store.retained_count, 3);
	assert_int_equal(vdi_object_store_nearest(&store, 6)->revision, 25);
	vdi_object_store_forget(&store, 25);
	assert_int_equal(store.retained_count, 2);
	assert_int_equal(vdi_object_store_nearest(&store, 0)->revision, 25);
	for (unsigned i = 0; i < 40; i++)
		retain(&store, 100 + i, 100 + i);
	assert_int_equal(store.retained_count, VDI_SNAPSHOT_COUNT_MAX);
	for (unsigned i = 0; i < VDI_SNAPSHOT_COUNT_MAX; i++)
		assert_int_equal(store.retained[i].position, 140 - VDI_SNAPSHOT_COUNT_MAX + i);
	vdi_object_store_forget(&store, 1000);
	assert_int_equal(store.retained_count, 0);
	vdi_object_store_fini(&store);
}

static void r447_a_replace_drops_snapshots_and_builds_indexes(void **state)
{
	struct vdi_object_store store;
	struct vdi_object_index index;
	struct vdi_btree	fresh;
	struct vd_object       *object = pod_new(codec, "ns", "new", "web", "web", 9);

	assert_status(vdi_object_store_init(&store, 1, NULL), VD_OK);
	put(&store, "old", "web", 1);
	retain(&store, 1, 1);
	vdi_btree_init(&fresh, &vdi_object_btree_ops);
	assert_status(vdi_btree_put(&fresh, object, NULL), VD_OK);
	vd_object_unref(object);
	vdi_object_store_replace(&store, &fresh, -1);
	assert_int_equal(vdi_btree_count(&fresh), 0);
	assert_int_equal(store.retained_count, 0);
	assert_false(store.indexes[0].is_usable);
	assert_true(vdi_object_store_index_begin(&store, 0, &index));
	vdi_object_index_build(&index, vdi_btree_view(&store.objects));
	vdi_object_store_index_end(&store, 0, &index);
	assert_string_equal(indexed(&store, 0, "web"), "ns/new");
	assert_false(vdi_object_store_index_begin(&store, 0, &index));
	vdi_btree_fini(&fresh);
	vdi_object_store_fini(&store);
}

static void changes_are_taken_back(void **state)
{
	struct vdi_object_store	  store;
	struct vdi_btree_snapshot before;
	struct vdi_event	 *events[3] = { 0 };
	struct vd_object	 *a2, *b;

	assert_status(vdi_object_store_init(&store, 1, NULL), VD_OK);
	put(&store, "a", "web", 1);
	vdi_object_store_snapshot(&store, &before);
	a2 = pod_new(codec, "ns", "a", "db", "db", 2);
	b = pod_new(codec, "ns", "b", "db", "db", 2);
	events[0] = pod_event(2, vd_object_ref(a2),
			      vd_object_ref(vdi_object_store_get(&store, vd_object_key(a2))));
	events[2] = pod_event(2, vd_object_ref(b), NULL);
	put(&store, "a", "db", 2);
	put(&store, "b", "db", 2);
	vdi_object_store_restore(&store, &before, events, 3);
	assert_null(before.root);
	assert_string_equal(pod_names(vdi_btree_view(&store.objects)), "ns/a");
	assert_string_equal(indexed(&store, 0, "web"), "ns/a");
	assert_string_equal(indexed(&store, 0, "db"), "");
	for (unsigned i = 0; i < 3; i++)
		vdi_event_unref(events[i]);
	vd_object_unref(a2);
	vd_object_unref(b);
	vdi_object_store_fini(&store);
}

static void r448_an_event_is_taken_back_in_a_private_tree(void **state)
{
	struct vdi_btree  tree;
	struct vd_object *old = pod_new(codec, "ns", "x", NULL, NULL, 1);
	struct vd_object *now = pod_new(codec, "ns", "x", NULL, NULL, 2);
	struct vdi_event *added = pod_event(1, vd_object_ref(old), NULL);
	struct vdi_event *modified = pod_event(2, vd_object_ref(now), vd_object_ref(old));
	struct vdi_event *deleted = pod_event(3, NULL, vd_object_ref(now));

	vdi_btree_init(&tree, &vdi_object_btree_ops);
	assert_status(vdi_object_undo(&tree, deleted), VD_OK);
	assert_int_equal(vd_object_revision(vdi_btree_snapshot_get(&tree.live, vd_object_key(old))), 2);
	assert_status(vdi_object_undo(&tree, modified), VD_OK);
	assert_int_equal(vd_object_revision(vdi_btree_snapshot_get(&tree.live, vd_object_key(old))), 1);
	assert_status(vdi_object_undo(&tree, added), VD_OK);
	assert_int_equal(vdi_btree_count(&tree), 0);
	assert_status(vdi_object_undo(&tree, added), VD_OK); /* not there: fine */
	vdi_btree_fini(&tree);
	vdi_event_unref(added);
	vdi_event_unref(modified);
	vdi_event_unref(deleted);
	vd_object_unref(old);
	vd_object_unref(now);
}

static void a_lost_index_comes_back_after_a_while(void **state)
{
	struct vdi_object_store store;
	bool			is_back = false;

	assert_status(vdi_object_store_init(&store, 1, NULL), VD_OK);
	for (unsigned i = 0; i < 5000 && !is_back; i++) {
		char		  name[16];
		struct vd_object *object, *old;

		snprintf(name, sizeof name, "p%04u", i);
		object = pod_new(codec, "ns", name, "a", "a", i + 1);
		if (i == 0)
			store.indexes[0].is_usable = false; /* as it says itself when memory is short */
		assert_status(vdi_object_store_change(&store, vd_object_key(object), object, &old), VD_OK);
		assert_null(old);
		vd_object_unref(object);
		is_back = store.indexes[0].is_usable;
		if (is_back)
			assert_int_equal(vdi_object_index_count(&store.indexes[0], vd_bytes_of("a")), i + 1);
	}
	assert_true(is_back);
	vdi_object_store_fini(&store);
}

static void put_many(struct vdi_object_store *store, unsigned from, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		char		  name[16];
		struct vd_object *object, *old;

		snprintf(name, sizeof name, "p%04u", (from + i) % 1500);
		object = pod_new(codec, "ns", name, "a", i % 3 ? "a" : "b", from + i + 1);
		assert_status(vdi_object_store_change(store, vd_object_key(object), object, &old), VD_OK);
		vd_object_unref(old);
		vd_object_unref(object);
	}
}

/* An index on demand is there from the second list on that could use it, follows changes, and goes when no
 * list asks any more. */
static void r442_an_index_on_demand_comes_and_goes(void **state)
{
	static const char *const labels[] = { "app", NULL };
	struct vdi_object_store	 store;
	unsigned		 changes = 0;

	assert_status(vdi_object_store_init(&store, 1, labels), VD_OK);
	vdi_object_store_on_demand(&store);
	assert_true(vdi_object_store_ask(&store, 1, 1000000)); /* that of the label is always there */
	put_many(&store, 0, 1500);
	assert_false(vdi_object_store_ask(&store, 0, 10)); /* so few are scanned */
	assert_false(vdi_object_store_ask(&store, 0, 10));
	assert_false(vdi_object_store_ask(&store, 0, 1500));
	put_many(&store, 1500, 2000); /* nothing builds it meanwhile */
	assert_false(store.indexes[0].is_usable);
	assert_true(vdi_object_store_ask(&store, 0, 1500));
	assert_int_equal(vdi_object_index_count(&store.indexes[0], vd_bytes_of("a")) +
				 vdi_object_index_count(&store.indexes[0], vd_bytes_of("b")),
			 1500);
	put_many(&store, 3500, 4000);
	assert_true(vdi_object_store_ask(&store, 0, 1500));
	for (; store.indexes[0].is_usable; changes++)
		put_many(&store, 7500 + changes, 1);
	assert_int_equal(changes, 4097);
	assert_int_equal(store.indexes[0].posting_count, 0);
	assert_true(store.indexes[1].is_usable);
	assert_false(vdi_object_store_ask(&store, 0, 1500)); /* from the beginning */
	assert_true(vdi_object_store_ask(&store, 0, 1500));
	vdi_object_store_fini(&store);
}

/* Labels without a declared index get one the same way, a few at a time; what lists still use is not driven
 * out. */
static void r442_labels_that_lists_ask_for_get_an_index(void **state)
{
	static const char *const others[] = { "b", "c", "d" };
	struct vdi_object_store	 store;
	struct vdi_object_index *index;

	assert_status(vdi_object_store_init(&store, 0, NULL), VD_OK);
	assert_null(vdi_object_store_ask_label(&store, vd_bytes_of("app"),
					       1500)); /* only where indexes are kept on demand */
	vdi_object_store_on_demand(&store);
	put_many(&store, 0, 1500);
	assert_null(vdi_object_store_ask_label(&store, vd_bytes_of("app"), 1000));
	assert_null(vdi_object_store_ask_label(&store, vd_bytes_of("app"), 1500));
	index = vdi_object_store_ask_label(&store, vd_bytes_of("app"), 1500);
	assert_non_null(index);
	assert_int_equal(vdi_object_index_count(index, vd_bytes_of("a")), 1500);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(others); i++) {
		assert_null(vdi_object_store_ask_label(&store, vd_bytes_of(others[i]), 1500));
		assert_non_null(vdi_object_store_ask_label(&store, vd_bytes_of(others[i]), 1500));
	}
	for (unsigned i = 0; i < 3; i++) /* no place is free */
		assert_null(vdi_object_store_ask_label(&store, vd_bytes_of("e"), 1500));
	put_many(&store, 1500, 3000);
	assert_ptr_equal(vdi_object_store_ask_label(&store, vd_bytes_of("app"), 1500), index);
	assert_int_equal(vdi_object_index_count(index, vd_bytes_of("a")), 1500);
	put_many(&store, 4500, 2000); /* nobody asked for the others */
	assert_ptr_equal(vdi_object_store_ask_label(&store, vd_bytes_of("app"), 1500), index);
	assert_null(vdi_object_store_ask_label(&store, vd_bytes_of("e"), 1500));
	assert_ptr_not_equal(vdi_object_store_ask_label(&store, vd_bytes_of("e"), 1500), index);
	assert_string_equal(vdi_object_store_ask_label(&store, vd_bytes_of("e"), 1500)->label_key,
			    "e"); /* in another's place */
	assert_string_equal(index->label_key, "app");
	vdi_object_store_fini(&store);
}

/* Built when memory was short it is not there, and comes back as any other. */
static void an_index_on_demand_that_could_not_be_built_comes_back(void **state)
{
	struct vdi_object_store store;
	unsigned		changes = 0;

	assert_status(vdi_object_store_init(&store, 1, NULL), VD_OK);
	vdi_object_store_on_demand(&store);
	put_many(&store, 0, 1500);
	assert_false(vdi_object_store_ask(&store, 0, 1500));
	(void) vdi_alloc_fail_nth(1, 1);
	assert_false(vdi_object_store_ask(&store, 0, 1500));
	(void) vdi_alloc_fail_nth(0, 0);
	for (; changes < 5000 && !store.indexes[0].is_usable; changes++)
		put_many(&store, 1500 + changes, 1);
	assert_true(changes < 5000);
	assert_true(vdi_object_store_ask(&store, 0, 1500));
	assert_int_equal(vdi_object_index_count(&store.indexes[0], vd_bytes_of("a")) +
				 vdi_object_index_count(&store.indexes[0], vd_bytes_of("b")),
			 1500);
	vdi_object_store_fini(&store);
}

/* Changes a pod until the index can be used; returns how often. */
static unsigned change_until_usable(struct vdi_object_store *store, size_t index)
{
	static unsigned revision = 100;
	unsigned	changes = 0;

	while (!store->indexes[index].is_usable) {
		put(store, "a", changes % 2 ? "web" : "db", ++revision);
		assert_true(++changes < 5000);
	}
	return changes;
}

/* An index for which memory was short is built again with the next change, but not twice within a thousand:
 * each attempt visits all objects. */
static void r442_a_lost_index_is_built_again(void **state)
{
	static const char *const labels[] = { "app", NULL };
	struct vdi_object_store	 store;

	assert_status(vdi_object_store_init(&store, 1, labels), VD_OK);
	put(&store, "a", "web", 1);
	put(&store, "b", "web", 2);
	for (unsigned round = 0; round < 2; round++) {
		for (size_t i = 0; i < 2; i++)
			vdi_object_index_give_up(&store.indexes[i]);
		assert_int_equal(change_until_usable(&store, 0), 1);
		assert_true(store.indexes[1].is_usable);
		assert_string_equal(indexed(&store, 0, "db"), "ns/a");
		assert_string_equal(indexed(&store, 1, "web"), "ns/b");
		vdi_object_index_give_up(&store.indexes[1]);
		assert_int_equal(change_until_usable(&store, 1), 1001);
		assert_string_equal(indexed(&store, 1, "web"), "ns/b");
		/* Nothing was lost for a long time. */
		for (unsigned i = 0; i < 1500; i++)
			put(&store, "a", "web", 10000 + i);
	}
	vdi_object_store_fini(&store);
}

static void torture_a_change_that_fails_changes_nothing(void **state)
{
	static const char *const labels[] = { "app", NULL };
	bool			 failed = true;
	int64_t			 live = vdi_alloc_live();

	for (unsigned nth = 1; failed; nth++) {
		struct vdi_object_store store;
		vd_status		status;

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_object_store_init(&store, 1, labels);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		if (status == VD_OK)
			vdi_object_store_fini(&store);
		assert_int_equal(vdi_alloc_live(), live);
	}
	failed = true;
	for (unsigned nth = 1; failed; nth++) {
		struct vdi_object_store	  store;
		struct vdi_btree_snapshot held;
		struct vd_object	 *object = pod_new(codec, "ns", "p050", "new", "new", 999);
		struct vd_object	 *old = NULL;
		vd_status		  status;

		assert_status(vdi_object_store_init(&store, 1, labels), VD_OK);
		for (unsigned i = 0; i < 100; i++) {
			char name[8];

			snprintf(name, sizeof name, "p%03u", i);
			put(&store, name, "a", i + 1);
		}
		vdi_object_store_snapshot(&store, &held); /* so that nodes must be copied */
		vdi_alloc_fail_nth(nth, 1);
		status = vdi_object_store_change(&store, vd_object_key(object), object, &old);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_int_equal(vd_object_revision(vdi_object_store_get(&store, vd_object_key(object))),
				 status == VD_OK ? 999 : 51);
		assert_int_equal(vdi_btree_count(&store.objects), 100);
		for (size_t i = 0; i < 2; i++)
			if (store.indexes[i].is_usable)
				assert_string_equal(indexed(&store, i, "new"),
						    status == VD_OK ? "ns/p050" : "");
		vdi_btree_snapshot_release(&held);
		vd_object_unref(old);
		vd_object_unref(object);
		vdi_object_store_fini(&store);
		assert_int_equal(vdi_alloc_live(), live);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r440_t172_key_order_and_indexes_follow_changes),
		cmocka_unit_test(a_snapshot_never_changes),
		cmocka_unit_test(r447_few_snapshots_are_kept_and_the_nearest_newer_one_is_found),
		cmocka_unit_test(r447_a_replace_drops_snapshots_and_builds_indexes),
		cmocka_unit_test(changes_are_taken_back),
		cmocka_unit_test(r448_an_event_is_taken_back_in_a_private_tree),
		cmocka_unit_test(a_lost_index_comes_back_after_a_while),
		cmocka_unit_test(r442_an_index_on_demand_comes_and_goes),
		cmocka_unit_test(r442_labels_that_lists_ask_for_get_an_index),
		cmocka_unit_test(an_index_on_demand_that_could_not_be_built_comes_back),
		cmocka_unit_test(r442_a_lost_index_is_built_again),
		cmocka_unit_test(torture_a_change_that_fails_changes_nothing),
	};

	return cmocka_run_group_tests(tests, pod_codec_start, pod_codec_end);
}
