/* Unit tests of storage/store/kv.c. */
#include <vedette/store.h>

#include "vdtest.h"

static void kv_holds_key_and_value_in_one_block(void **state)
{
	int64_t	      live = vdi_alloc_live();
	struct vd_kv *kv = NULL;

	(void) state;
	assert_status(vd_kv_new(vd_bytes_of("/a"), vd_bytes_of("value"), &kv), VD_OK);
	assert_int_equal(vdi_alloc_live(), live + 1);
	assert_true(vd_bytes_equal(vd_kv_key(kv), vd_bytes_of("/a")));
	assert_true(vd_bytes_equal(vd_kv_value(kv), vd_bytes_of("value")));
	assert_true(kv->mod_rev == 0 && kv->create_rev == 0 && kv->version == 0 && kv->lease == 0 &&
		    kv->sub == 0);
	vd_kv_unref(vd_kv_ref(kv));
	assert_null(vd_kv_unref(kv));
	assert_null(vd_kv_unref(NULL));
	assert_int_equal(vdi_alloc_live(), live);
}

static void kv_refuses_what_is_too_big_and_reports_no_memory(void **state)
{
	struct vd_kv *kv = NULL;

	(void) state;
	assert_status(vd_kv_new((struct vd_bytes) { "x", VD_KEY_SIZE_MAX + 1 }, VD_BYTES_NONE, &kv),
		      VD_TOO_BIG);
	assert_status(
		vd_kv_new(vd_bytes_of("x"), (struct vd_bytes) { "x", (size_t) VD_VALUE_SIZE_MAX + 1 }, &kv),
		VD_TOO_BIG);
	vdi_alloc_fail_nth(1, 1);
	assert_status(vd_kv_new(vd_bytes_of("x"), VD_BYTES_NONE, &kv), VD_NOMEM);
	vdi_alloc_fail_nth(0, 0);
	assert_null(kv);
}

/* The largest of both, and one byte more of each. */
static void kv_holds_up_to_the_largest_key_and_value(void **state)
{
	char *bytes = calloc(1, (size_t) VD_VALUE_SIZE_MAX + 1);

	(void) state;
	for (unsigned more_key = 0; more_key < 2; more_key++)
		for (unsigned more_value = 0; more_value < 2; more_value++) {
			struct vd_bytes key = { bytes, VD_KEY_SIZE_MAX + more_key },
					value = { bytes, (size_t) VD_VALUE_SIZE_MAX + more_value };
			struct vd_kv *kv = NULL;

			assert_status(vd_kv_new(key, value, &kv),
				      more_key || more_value ? VD_TOO_BIG : VD_OK);
			assert_int_equal(kv != NULL, !more_key && !more_value);
			if (kv)
				assert_true(vd_kv_key(kv).size == VD_KEY_SIZE_MAX &&
					    vd_kv_value(kv).size == VD_VALUE_SIZE_MAX);
			vd_kv_unref(kv);
		}
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kv_holds_key_and_value_in_one_block),
		cmocka_unit_test(kv_refuses_what_is_too_big_and_reports_no_memory),
		cmocka_unit_test(kv_holds_up_to_the_largest_key_and_value),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
