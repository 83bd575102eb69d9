/* Records, and which events are repeated. */
#include "kube_mirror.h"

#include "vdtest.h"

static struct vd_error error;

static struct vd_kv *record(const char *key, vd_rev revision)
{
	struct vd_kv *kv;

	assert_status(vd_kv_new(vd_bytes_of(key), vd_bytes_of("v"), &kv), VD_OK);
	kv->mod_rev = revision;
	return kv;
}

/* Applies an event; "" if it is repeated, else "create_rev version previous". */
static const char *apply(struct vdi_kube_mirror *mirror, const char *key, vd_rev revision, bool is_delete)
{
	static char	       text[64];
	struct vdi_kube_change change;
	vd_status status = vdi_kube_mirror_apply(mirror, record(key, revision), is_delete, &change, &error);

	if (status == VD_EXISTS)
		return "";
	assert_status(status, VD_OK);
	snprintf(text, sizeof text, "%d %d %d", (int) change.kv->create_rev, (int) change.kv->version,
		 change.previous ? (int) change.previous->mod_rev : 0);
	vdi_kube_change_fini(&change);
	return text;
}

static void events_get_what_the_server_does_not_send(void **state)
{
	struct vdi_kube_mirror mirror;

	vdi_kube_mirror_init(&mirror);
	assert_status(vdi_kube_mirror_list(&mirror, record("a", 5), &error), VD_OK);
	assert_status(vdi_kube_mirror_list(&mirror, record("b", 7), &error), VD_OK);
	mirror.applied = 10;
	assert_string_equal(apply(&mirror, "a", 11, false), "5 2 5");
	assert_string_equal(apply(&mirror, "c", 12, false), "12 1 0");
	assert_string_equal(apply(&mirror, "c", 13, false), "12 2 12");
	assert_string_equal(apply(&mirror, "c", 14, true), "0 0 13");
	assert_string_equal(apply(&mirror, "c", 15, false), "15 1 0");
	assert_int_equal(vdi_kube_mirror_count(&mirror), 3);
	assert_int_equal(mirror.applied, 15);
	vdi_kube_mirror_fini(&mirror);
}

static void a_mirror_begins_empty_wherever_it_lies(void **state)
{
	struct vdi_kube_mirror mirror;

	memset(&mirror, 0x55, sizeof mirror);
	vdi_kube_mirror_init(&mirror);
	assert_int_equal(vdi_kube_mirror_count(&mirror), 0);
	assert_int_equal(mirror.applied, 0);
	assert_null(vdi_kube_mirror_get(&mirror, vd_bytes_of("a")));
	assert_status(vdi_kube_mirror_list(&mirror, record("a", 5), &error), VD_OK);
	assert_int_equal(mirror.applied, 5);
	vdi_kube_mirror_fini(&mirror);
}

static void repeated_events_are_dropped(void **state)
{
	struct vdi_kube_mirror mirror;

	vdi_kube_mirror_init(&mirror);
	mirror.applied = 10;
	assert_string_equal(apply(&mirror, "a", 11, false), "11 1 0");
	assert_string_equal(apply(&mirror, "a", 12, true), "0 0 11");
	/* Further objects of one revision, and the same ones again. */
	assert_string_equal(apply(&mirror, "b", 12, false), "12 1 0");
	assert_string_equal(apply(&mirror, "b", 12, false), "");
	assert_string_equal(apply(&mirror, "a", 12, true), "");
	assert_string_equal(apply(&mirror, "c", 12, false), "12 1 0");
	/* A put whose key was deleted later is not a creation. */
	assert_string_equal(apply(&mirror, "a", 11, false), "");
	assert_null(vdi_kube_mirror_get(&mirror, vd_bytes_of("a")));
	assert_string_equal(apply(&mirror, "b", 9, true), "");
	assert_non_null(vdi_kube_mirror_get(&mirror, vd_bytes_of("b")));
	vdi_kube_mirror_fini(&mirror);
}

static void listed_objects_may_change_and_go_while_the_list_arrives(void **state)
{
	struct vdi_kube_mirror mirror;

	vdi_kube_mirror_init(&mirror);
	assert_status(vdi_kube_mirror_list(&mirror, record("a", 5), &error), VD_OK);
	assert_status(vdi_kube_mirror_list(&mirror, record("a", 8), &error), VD_OK);
	assert_int_equal(vdi_kube_mirror_get(&mirror, vd_bytes_of("a"))->create_rev, 8);
	assert_status(vdi_kube_mirror_unlist(&mirror, vd_bytes_of("a")), VD_OK);
	assert_status(vdi_kube_mirror_unlist(&mirror, vd_bytes_of("a")), VD_OK);
	assert_int_equal(vdi_kube_mirror_count(&mirror), 0);
	vdi_kube_mirror_fini(&mirror);
}

static void the_bytes_are_counted_and_bounded(void **state)
{
	struct vdi_kube_mirror mirror;
	struct vdi_kube_change change;
	struct vd_kv	      *a = record("a", 5);
	uint64_t	       size = vdi_kube_mirror_size(a);

	vdi_kube_mirror_init(&mirror);
	mirror.bytes_max = 2 * size;
	assert_status(vdi_kube_mirror_list(&mirror, a, &error), VD_OK);
	assert_status(vdi_kube_mirror_list(&mirror, record("b", 5), &error), VD_OK);
	assert_status(vdi_kube_mirror_list(&mirror, record("b", 6), &error), VD_OK);
	assert_int_equal(mirror.bytes, 2 * size);
	assert_status(vdi_kube_mirror_list(&mirror, record("c", 7), &error), VD_TOO_BIG);
	assert_non_null(strstr(error.message, "source_bytes_max"));
	assert_int_equal(mirror.applied, 6);
	/* A change of a record needs no room, a new one does. */
	assert_string_equal(apply(&mirror, "a", 8, false), "5 2 5");
	assert_status(vdi_kube_mirror_apply(&mirror, record("c", 9), false, &change, &error), VD_TOO_BIG);
	assert_int_equal(mirror.applied, 8);
	assert_int_equal(vdi_kube_mirror_count(&mirror), 2);
	assert_string_equal(apply(&mirror, "a", 10, true), "0 0 8");
	assert_int_equal(mirror.bytes, size);
	assert_string_equal(apply(&mirror, "c", 11, false), "11 1 0");
	assert_status(vdi_kube_mirror_unlist(&mirror, vd_bytes_of("b")), VD_OK);
	assert_status(vdi_kube_mirror_unlist(&mirror, vd_bytes_of("c")), VD_OK);
	assert_int_equal(mirror.bytes, 0);
	vdi_kube_mirror_fini(&mirror);
}

static void torture_apply_leaves_the_mirror_unchanged(void **state)
{
	for (unsigned is_delete = 0; is_delete < 2; is_delete++)
		for (unsigned nth = 1;; nth++) {
			struct vdi_kube_mirror mirror;
			struct vdi_kube_change change;
			struct vd_kv	      *event = record("a", 11);
			vd_status	       status;

			vdi_kube_mirror_init(&mirror);
			for (char c = 'a'; c <= 'z'; c++)
				assert_status(
					vdi_kube_mirror_list(&mirror, record((char[]) { c, 0 }, 5), &error),
					VD_OK);
			mirror.applied = 10;
			vdi_alloc_fail_nth(nth, 1);
			status = vdi_kube_mirror_apply(&mirror, event, is_delete, &change, &error);
			vdi_alloc_fail_nth(0, 0);
			if (status == VD_OK) {
				vdi_kube_change_fini(&change);
				vdi_kube_mirror_fini(&mirror);
				break;
			}
			assert_status(status, VD_NOMEM);
			assert_int_equal(mirror.applied, 10);
			assert_int_equal(vdi_kube_mirror_get(&mirror, vd_bytes_of("a"))->mod_rev, 5);
			vdi_kube_mirror_fini(&mirror);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_get_what_the_server_does_not_send),
		cmocka_unit_test(a_mirror_begins_empty_wherever_it_lies),
		cmocka_unit_test(repeated_events_are_dropped),
		cmocka_unit_test(listed_objects_may_change_and_go_while_the_list_arrives),
		cmocka_unit_test(the_bytes_are_counted_and_bounded),
		cmocka_unit_test(torture_apply_leaves_the_mirror_unchanged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
