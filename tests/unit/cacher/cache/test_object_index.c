/* A list index against a naive scan, and what it does without memory. */
#include "object_index.h"

#include "pod_codec_group.h"

#define KEYS 40

static uint64_t roll(uint64_t *random, uint64_t below)
{
	*random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (*random >> 33) % below;
}

/* What a scan finds, in key order. */
static const char *scan(struct vd_object *const *objects, const char *app)
{
	static char text[4096];
	size_t	    size = 0;

	text[0] = 0;
	for (unsigned key = 0; key < KEYS; key++) {
		struct vd_bytes value;

		if (objects[key] && vd_object_label_get(objects[key], vd_bytes_of("app"), &value) &&
		    vd_bytes_equal(value, vd_bytes_of(app)))
			size += (size_t) snprintf(text + size, sizeof text - size, "%sns/k%02u",
						  size ? " " : "", key);
	}
	return text;
}

static void check_value(const struct vdi_object_index *index, struct vd_object *const *objects,
			const char *app)
{
	struct vdi_btree_snapshot found;

	assert_true(vdi_object_index_snapshot(index, vd_bytes_of(app), &found));
	assert_string_equal(pod_names(&found), scan(objects, app));
	assert_int_equal(found.count, vdi_object_index_count(index, vd_bytes_of(app)));
	vdi_btree_snapshot_release(&found);
}

static void change(struct vdi_object_index *index, struct vd_object **objects, unsigned key, const char *app,
		   vd_rev revision)
{
	char		  name[8];
	struct vd_object *object = NULL;

	snprintf(name, sizeof name, "k%02u", key);
	if (app)
		object = pod_new(codec, "ns", name, *app ? app : NULL, NULL, revision);
	vdi_object_index_change(index, objects[key], object);
	vd_object_unref(objects[key]);
	objects[key] = object;
}

static void r441_t172_an_index_answers_as_a_scan_does(void **state)
{
	struct vdi_object_index index;
	struct vd_object       *objects[KEYS] = { 0 };
	uint64_t		random = 1;
	size_t			values = 0;

	assert_status(vdi_object_index_init(&index, "app", 0), VD_OK);
	for (vd_rev step = 1; step < 3000; step++) {
		char	 app[8] = "";
		unsigned which = (unsigned) roll(&random, 45);

		if (which < 40)
			snprintf(app, sizeof app, "a%u", which); /* more than the first buckets */
		if (step % 5 == 1) /* changes nothing, whatever is there and whatever is not */
			vdi_object_index_prepare(&index, objects + roll(&random, KEYS - VDI_PREPARE_MAX),
						 VDI_PREPARE_MAX);
		change(&index, objects, (unsigned) roll(&random, KEYS), which == 44 ? NULL : app, step);
		if (step % 37 == 0)
			for (unsigned i = 0; i < 40; i++) {
				snprintf(app, sizeof app, "a%u", i);
				check_value(&index, objects, app);
			}
	}
	for (unsigned i = 0; i < 40; i++) {
		char app[8];

		snprintf(app, sizeof app, "a%u", i);
		values += *scan(objects, app) != 0;
	}
	assert_int_equal(index.posting_count, values); /* empty sets are removed */
	check_value(&index, objects, "no such value");
	for (unsigned key = 0; key < KEYS; key++)
		change(&index, objects, key, NULL, 0);
	assert_int_equal(index.posting_count, 0);
	vdi_object_index_fini(&index);
}

static void r442_an_absent_field_is_the_empty_value_and_an_absent_label_is_none(void **state)
{
	struct vdi_object_index	  label, field;
	struct vd_object	 *object = pod_new(codec, "ns", "x", NULL, NULL, 1);
	struct vdi_btree_snapshot found;

	assert_status(vdi_object_index_init(&label, "app", 0), VD_OK);
	assert_status(vdi_object_index_init(&field, NULL, 0), VD_OK);
	vdi_object_index_change(&label, NULL, object);
	vdi_object_index_change(&field, NULL, object);
	assert_int_equal(vdi_object_index_count(&label, VD_BYTES_NONE), 0);
	assert_int_equal(vdi_object_index_count(&field, VD_BYTES_NONE), 1);
	assert_true(vdi_object_index_snapshot(&label, VD_BYTES_NONE, &found));
	assert_int_equal(found.count, 0);
	vdi_btree_snapshot_release(&found);
	vd_object_unref(object);
	vdi_object_index_fini(&label);
	vdi_object_index_fini(&field);
}

static void a_snapshot_of_a_value_stays_as_it_was(void **state)
{
	struct vdi_object_index	  index;
	struct vd_object	 *objects[KEYS] = { 0 };
	struct vdi_btree_snapshot before;

	assert_status(vdi_object_index_init(&index, "app", 0), VD_OK);
	change(&index, objects, 1, "a", 1);
	change(&index, objects, 2, "a", 2);
	assert_true(vdi_object_index_snapshot(&index, vd_bytes_of("a"), &before));
	change(&index, objects, 1, "b", 3);
	change(&index, objects, 2, NULL, 4);
	change(&index, objects, 3, "a", 5);
	assert_string_equal(pod_names(&before), "ns/k01 ns/k02");
	check_value(&index, objects, "a");
	vdi_btree_snapshot_release(&before);
	for (unsigned key = 0; key < KEYS; key++)
		change(&index, objects, key, NULL, 0);
	vdi_object_index_fini(&index);
}

/* An update within one value shows the new object, not the old one. */
static void r441_an_equal_value_replaces_the_object(void **state)
{
	struct vdi_object_index	  index;
	struct vd_object	 *objects[KEYS] = { 0 };
	struct vdi_btree_snapshot found;

	assert_status(vdi_object_index_init(&index, "app", 0), VD_OK);
	change(&index, objects, 1, "a", 1);
	change(&index, objects, 1, "a", 7);
	assert_true(vdi_object_index_snapshot(&index, vd_bytes_of("a"), &found));
	assert_int_equal(found.count, 1);
	assert_int_equal(vd_object_revision(vdi_btree_snapshot_min(&found)), 7);
	vdi_btree_snapshot_release(&found);
	change(&index, objects, 1, NULL, 0);
	vdi_object_index_fini(&index);
}

/* Nothing to take out is no failure: the index stays usable. */
static void r441_what_is_not_there_can_be_removed(void **state)
{
	struct vdi_object_index index;
	struct vd_object       *object = pod_new(codec, "ns", "k01", "a1", NULL, 1);
	struct vd_object       *other = pod_new(codec, "ns", "k02", "a2", NULL, 1);

	assert_status(vdi_object_index_init(&index, "app", 0), VD_OK);
	vdi_object_index_change(&index, object, NULL);
	assert_true(index.is_usable);
	vdi_object_index_change(&index, NULL, other);
	vdi_object_index_change(&index, object, NULL);
	assert_true(index.is_usable);
	assert_int_equal(vdi_object_index_count(&index, vd_bytes_of("a2")), 1);
	vdi_object_index_change(&index, other, NULL);
	assert_int_equal(vdi_object_index_count(&index, vd_bytes_of("a2")), 0);
	vdi_object_index_fini(&index);
	vd_object_unref(object);
	vd_object_unref(other);
}

static void torture_without_memory_it_is_unusable_never_wrong(void **state)
{
	unsigned unusable = 0;

	for (unsigned nth = 1;; nth++) {
		int64_t			live = vdi_alloc_live();
		struct vdi_object_index index;
		struct vd_object       *objects[KEYS] = { 0 };
		struct vdi_btree	tree;
		bool			failed = false;

		vdi_btree_init(&tree, &vdi_object_btree_ops);
		if (nth == 1) {
			vdi_alloc_fail_nth(1, 1);
			assert_status(vdi_object_index_init(&index, "app", 0), VD_NOMEM);
			vdi_alloc_fail_nth(0, 0);
		}
		assert_status(vdi_object_index_init(&index, "app", 0), VD_OK);
		for (unsigned key = 0; key < KEYS; key++) {
			char		  name[8], app[8];
			struct vd_object *object;

			snprintf(name, sizeof name, "k%02u", key);
			snprintf(app, sizeof app, "a%u", key % 30);
			object = pod_new(codec, "ns", name, app, NULL, 1);
			vdi_alloc_fail_nth(failed ? 0 : nth > key * 4 ? nth - key * 4 : 1, 1);
			vdi_object_index_change(&index, NULL, object);
			failed |= vdi_alloc_failed();
			vdi_alloc_fail_nth(0, 0);
			objects[key] = object;
			assert_status(vdi_btree_put(&tree, object, NULL), VD_OK);
		}
		if (index.is_usable)
			check_value(&index, objects, "a3");
		else
			assert_int_equal(vdi_object_index_count(&index, vd_bytes_of("a3")), 0);
		unusable += !index.is_usable;
		vdi_object_index_build(&index, vdi_btree_view(&tree));
		assert_true(index.is_usable);
		check_value(&index, objects, "a3");
		for (unsigned key = 0; key < KEYS; key++)
			vd_object_unref(objects[key]);
		vdi_btree_fini(&tree);
		vdi_object_index_fini(&index);
		assert_int_equal(vdi_alloc_live(), live);
		if (nth > 170)
			break;
	}
	assert_true(unusable > 20);
}

/* Many of one value, one of another, and some without: each value's tree is as a scan finds it. */
static void torture_building_is_whole_or_not_at_all(void **state)
{
	struct vd_object       *objects[KEYS] = { 0 };
	struct vdi_object_index index;
	struct vdi_btree	tree;
	unsigned		unusable = 0;
	int64_t			live = vdi_alloc_live();
	bool			failed = true;

	vdi_btree_init(&tree, &vdi_object_btree_ops);
	assert_status(vdi_object_index_init(&index, "app", 0), VD_OK);
	vdi_object_index_build(&index, vdi_btree_view(&tree));
	assert_true(index.is_usable);
	for (unsigned key = 0; key < KEYS; key++) {
		char name[8], app[8];

		snprintf(name, sizeof name, "k%02u", key);
		snprintf(app, sizeof app, "a%u", key == 7 ? 99 : key % 3);
		objects[key] = pod_new(codec, "ns", name, key % 5 == 4 ? NULL : app, NULL, 1);
		assert_status(vdi_btree_put(&tree, objects[key], NULL), VD_OK);
	}
	for (unsigned nth = 1; failed; nth++) {
		vdi_alloc_fail_nth(nth, 1);
		vdi_object_index_build(&index, vdi_btree_view(&tree));
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		unusable += !index.is_usable;
		if (index.is_usable)
			for (unsigned app = 0; app < 101; app += app == 3 ? 96 : 1) {
				char text[8];

				snprintf(text, sizeof text, "a%u", app);
				check_value(&index, objects, text);
			}
		else
			assert_int_equal(vdi_object_index_count(&index, vd_bytes_of("a0")), 0);
	}
	assert_true(index.is_usable);
	assert_true(unusable > 10);
	/* What was built is changed like any other. */
	change(&index, objects, 7, "a1", 2);
	change(&index, objects, 1, NULL, 3);
	check_value(&index, objects, "a1");
	check_value(&index, objects, "a99");
	for (unsigned key = 0; key < KEYS; key++)
		vd_object_unref(objects[key]);
	vdi_btree_fini(&tree);
	vdi_object_index_fini(&index);
	assert_int_equal(vdi_alloc_live(), live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r441_t172_an_index_answers_as_a_scan_does),
		cmocka_unit_test(r442_an_absent_field_is_the_empty_value_and_an_absent_label_is_none),
		cmocka_unit_test(a_snapshot_of_a_value_stays_as_it_was),
		cmocka_unit_test(r441_an_equal_value_replaces_the_object),
		cmocka_unit_test(r441_what_is_not_there_can_be_removed),
		cmocka_unit_test(torture_without_memory_it_is_unusable_never_wrong),
		cmocka_unit_test(torture_building_is_whole_or_not_at_all),
	};

	return cmocka_run_group_tests(tests, pod_codec_start, pod_codec_end);
}
