/* What happened between two revisions, against what the store says of them. */
#include "cacher.h"
#include "cacher_fixture.h"
#include "env.h"

static const char *text_of(struct cacher_fixture *f, const struct vd_changes_options *options)
{
	static char	   text[4096];
	struct vd_changes *changes;
	struct vd_error	   error;
	size_t		   size = 0;

	text[0] = 0;
	if (vd_cacher_changes(f->cacher, options, &changes, &error) != VD_OK) {
		snprintf(text, sizeof text, "%s: %s", vd_status_name(error.code), error.message);
		return text;
	}
	for (size_t i = 0; i < vd_changes_count(changes); i++) {
		struct vd_change change = vd_changes_at(changes, i);
		struct vd_bytes	 before = { "", 0 }, after = { "", 0 }, name = vd_object_name(change.object);

		if (change.old_object)
			(void) vd_object_label_get(change.old_object, vd_bytes_of("app"), &before);
		(void) vd_object_label_get(change.object, vd_bytes_of("app"), &after);
		size += (size_t) snprintf(
			text + size, sizeof text - size, "%s%c%.*s@%lld:%.*s>%.*s", size ? " " : "",
			"+~-"[change.type], (int) name.size, (const char *) name.data,
			(long long) change.revision, (int) before.size, (const char *) before.data,
			change.type == VD_WATCH_DELETED ? 0 : (int) after.size, (const char *) after.data);
		assert_int_equal(change.old_object == NULL, change.type == VD_WATCH_ADDED);
	}
	vd_changes_free(changes);
	return text;
}

static struct vd_changes_options of(const char *name, vd_rev after, vd_rev until, bool combined)
{
	struct vd_changes_options options = VD_CHANGES_OPTIONS_INIT;

	options.namespace_name = vd_bytes_of(*name ? "a" : "");
	options.name = vd_bytes_of(name);
	options.after = after;
	options.until = until;
	options.combined = combined;
	return options;
}

#define assert_changes(f, options, ...)                                                                      \
	do {                                                                                                 \
		char expected_[512];                                                                         \
		snprintf(expected_, sizeof expected_, __VA_ARGS__);                                          \
		assert_string_equal(text_of(f, options), expected_);                                         \
	} while (0)

/* Of one object, through its deletion and its second life; from before the cacher was there. */
static void the_history_of_one_object(void **state)
{
	struct cacher_fixture	  f;
	struct vd_changes_options options = of("x", 0, 0, false);
	long long		  r1, r2, r3, r4, r5;

	cacher_fixture_init(&f, 1);
	r1 = put_pod(&f, "a", "x", "one", NULL);
	put_pod(&f, "a", "y", "one", NULL);
	r2 = put_pod(&f, "a", "x", "two", NULL);
	cacher_fixture_open(&f, NULL);
	r3 = delete_pod(&f, "a", "x");
	put_pod(&f, "a", "xx", "one", NULL);
	r4 = put_pod(&f, "a", "x", "three", NULL);
	r5 = put_pod(&f, "a", "x", "four", NULL);
	cacher_fixture_settle(&f);
	assert_changes(&f, &options,
		       "+x@%lld:>one ~x@%lld:one>two -x@%lld:two> +x@%lld:>three ~x@%lld:three>four", r1, r2,
		       r3, r4, r5);
	options.after = r2;
	assert_changes(&f, &options, "-x@%lld:two> +x@%lld:>three ~x@%lld:three>four", r3, r4, r5);
	options.until = r4;
	assert_changes(&f, &options, "-x@%lld:two> +x@%lld:>three", r3, r4);
	options.after = r4;
	assert_changes(&f, &options, "%s", "");
	cacher_fixture_teardown(&f);
}

static void the_difference_between_two_revisions(void **state)
{
	struct cacher_fixture	  f;
	struct vd_changes_options options;
	long long		  start, x, z, gone, back, last;

	cacher_fixture_setup(&f, 2);
	put_pod(&f, "a", "keep", "one", NULL);
	put_pod(&f, "a", "x", "one", NULL);
	start = put_pod(&f, "a", "gone", "one", NULL);
	put_pod(&f, "a", "x", "two", NULL);
	put_pod(&f, "a", "gone", "two", NULL);
	gone = delete_pod(&f, "a", "gone");
	put_pod(&f, "a", "brief", "one", NULL); /* came and went */
	delete_pod(&f, "a", "brief");
	x = put_pod(&f, "a", "x", "three", NULL);
	delete_pod(&f, "a", "keep");
	back = put_pod(&f, "a", "keep", "one", NULL);
	put_pod(&f, "a", "z", "one", NULL);
	last = z = put_pod(&f, "a", "z", "two", NULL);
	cacher_fixture_settle(&f);
	options = of("", start, 0, true);
	assert_changes(&f, &options, "-gone@%lld:one> ~keep@%lld:one>one ~x@%lld:one>three +z@%lld:>two",
		       gone, back, x, z);
	/* For a selector: who leaves it is gone, with the state that it had at first. */
	options.label_selector = vd_bytes_of("app=one");
	assert_changes(&f, &options, "-gone@%lld:one> ~keep@%lld:one>one -x@%lld:one>", gone - 1, back,
		       (long long) start + 1);
	options.label_selector = vd_bytes_of("app in (one,two)");
	assert_changes(&f, &options, "-gone@%lld:one> ~keep@%lld:one>one -x@%lld:one> +z@%lld:>two", gone,
		       back, x, z);
	options = of("", last, 0, true);
	assert_changes(&f, &options, "%s", "");
	cacher_fixture_teardown(&f);
}

/* The states at both ends, read as lists, differ by exactly what is told. */
static void random_differences_agree_with_lists(void **state)
{
	struct cacher_fixture f;
	vd_rev		      revisions[200];
	char		      name[8];

	cacher_fixture_setup(&f, 3);
	for (unsigned i = 0; i < 200; i++) {
		snprintf(name, sizeof name, "p%u", (unsigned) vd_env_random_below(f.env, 12));
		revisions[i] = vd_env_random_below(f.env, 3) ?
				       put_pod(&f, "a", name, i % 2 ? "web" : "db", NULL) :
				       delete_pod(&f, "a", name);
	}
	cacher_fixture_settle(&f);
	for (unsigned round = 0; round < 300; round++) {
		vd_rev a = revisions[vd_env_random_below(f.env, 200)],
		       b = revisions[vd_env_random_below(f.env, 200)];
		struct vd_changes_options options = of("", VDI_MIN(a, b), VDI_MAX(a, b), true);
		struct vd_list_options	  lists = VD_LIST_OPTIONS_INIT;
		struct vd_list		 *before, *after;
		struct vd_changes	 *changes;
		struct vd_object	 *old_object, *object;
		size_t			  at = 0;

		lists.match = VD_MATCH_EXACT;
		lists.revision = options.after;
		assert_status(vd_cacher_list_wait(f.cacher, &lists, &before, NULL), VD_OK);
		lists.revision = options.until;
		assert_status(vd_cacher_list_wait(f.cacher, &lists, &after, NULL), VD_OK);
		assert_status(vd_cacher_changes(f.cacher, &options, &changes, NULL), VD_OK);
		assert_int_equal(vd_changes_after(changes), options.after);
		assert_int_equal(vd_changes_until(changes), options.until);
		old_object = vd_list_next(before);
		object = vd_list_next(after);
		while (old_object || object) {
			int		 order = old_object == NULL ? 1 :
						 object == NULL	    ? -1 :
								  vd_bytes_compare(vd_object_key(old_object),
										   vd_object_key(object));
			struct vd_change change;

			if (order == 0 && vd_object_revision(old_object) == vd_object_revision(object)) {
				old_object = vd_list_next(before);
				object = vd_list_next(after);
				continue;
			}
			assert_true(at < vd_changes_count(changes));
			change = vd_changes_at(changes, at++);
			assert_int_equal(change.type, order > 0 ? VD_WATCH_ADDED :
						      order < 0 ? VD_WATCH_DELETED :
								  VD_WATCH_MODIFIED);
			if (order <= 0) {
				assert_int_equal(vd_object_revision(change.old_object),
						 vd_object_revision(old_object));
				old_object = vd_list_next(before);
			}
			if (order >= 0) {
				assert_int_equal(vd_object_revision(change.object),
						 vd_object_revision(object));
				assert_int_equal(change.revision, vd_object_revision(object));
				object = vd_list_next(after);
			}
		}
		assert_int_equal(at, vd_changes_count(changes));
		vd_list_free(before);
		vd_list_free(after);
		vd_changes_free(changes);
	}
	cacher_fixture_teardown(&f);
}

static void what_cannot_be_told(void **state)
{
	struct cacher_fixture	  f;
	struct vd_changes_options options = of("", 5, 4, false);
	struct vd_changes	 *changes;
	struct vd_error		  error;
	long long		  first;

	cacher_fixture_init(&f, 4);
	f.options.no_backfill = true;
	put_pod(&f, "a", "x", NULL, NULL);
	first = put_pod(&f, "a", "y", NULL, NULL);
	cacher_fixture_open(&f, NULL);
	assert_status(vd_cacher_changes(f.cacher, &options, &changes, &error), VD_INVALID_ARGUMENT);
	options = of("", -1, 0, false);
	assert_status(vd_cacher_changes(f.cacher, &options, &changes, &error), VD_INVALID_ARGUMENT);
	options = of("", 0, -1, false);
	assert_status(vd_cacher_changes(f.cacher, &options, &changes, &error), VD_INVALID_ARGUMENT);
	options = of("", first, first, false); /* nothing lies between */
	memset(&error, 0, sizeof error);
	assert_status(vd_cacher_changes(f.cacher, &options, &changes, &error), VD_OK);
	assert_int_equal(vd_changes_count(changes), 0);
	assert_int_equal(vd_changes_after(changes), first);
	assert_int_equal(vd_changes_until(changes), first);
	assert_string_equal(error.message, "");
	vd_changes_free(changes);
	assert_null(vd_changes_free(NULL));
	options = of("", first - 1, 0, false);
	assert_changes(&f, &options, "expired: too old resource version: %lld (%lld)", first - 1, first);
	options = of("", 0, first, false); /* from the oldest one, which is the newest */
	assert_changes(&f, &options, "%s", "");
	options = of("", 0, first - 1, false);
	assert_changes(&f, &options, "expired: too old resource version: %lld (%lld)", first - 1, first);
	options = of("", first, first + 10, false);
	assert_changes(&f, &options, "too_large_revision: Too large resource version: %lld, current: %lld",
		       first + 10, first);
	options = of("", 0, 0, true);
	assert_changes(&f, &options, "%s", "");
	options.label_selector = vd_bytes_of("(");
	assert_status(vd_cacher_changes(f.cacher, &options, &changes, &error), VD_BAD_REQUEST);
	cacher_fixture_teardown(&f);
}

/* More than are taken out at once. */
static void a_long_history_is_told_whole(void **state)
{
	for (unsigned count = 255; count <= 513; count += 129) {
		struct cacher_fixture	  f;
		struct vd_changes_options options = of("", 0, 0, false);
		struct vd_changes	 *changes;
		vd_rev			  first = 0;

		cacher_fixture_setup(&f, 6);
		for (unsigned i = 0; i < count; i++) {
			vd_rev revision = put_pod(&f, "a", i % 2 ? "x" : "y", NULL, NULL);

			first = first ? first : revision;
		}
		cacher_fixture_settle(&f);
		assert_status(vd_cacher_changes(f.cacher, &options, &changes, NULL), VD_OK);
		assert_int_equal(vd_changes_count(changes), count);
		assert_int_equal(vd_changes_after(changes),
				 vdi_history_floor(&f.cacher->watch_cache.history));
		assert_int_equal(vd_changes_until(changes), first + count - 1);
		for (unsigned i = 0; i < count; i++)
			assert_int_equal(vd_changes_at(changes, i).revision, first + i);
		vd_changes_free(changes);
		cacher_fixture_teardown(&f);
	}
}

static void torture(void **state)
{
	struct cacher_fixture	  f;
	struct vd_changes_options options = of("", 0, 0, true);
	bool			  failed = true;

	cacher_fixture_setup(&f, 5);
	for (unsigned i = 0; i < 20; i++)
		put_pod(&f, "a", i % 2 ? "x" : "y", i % 3 ? "a" : "b", NULL);
	cacher_fixture_settle(&f);
	for (unsigned nth = 1; failed; nth++) {
		struct vd_changes *changes = NULL;
		int64_t		   live = vdi_alloc_live();
		vd_status	   status;

		(void) vdi_alloc_fail_nth(nth, 1);
		status = vd_cacher_changes(f.cacher, &options, &changes, NULL);
		failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		vd_changes_free(changes);
		assert_int_equal(vdi_alloc_live(), live);
	}
	cacher_fixture_teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_history_of_one_object),
		cmocka_unit_test(the_difference_between_two_revisions),
		cmocka_unit_test(random_differences_agree_with_lists),
		cmocka_unit_test(what_cannot_be_told),
		cmocka_unit_test(torture),
		cmocka_unit_test(a_long_history_is_told_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
