/* Unit tests of lib/base/bytes.c and the allocator it stands on. */
#include "vdtest.h"

static void blob_keeps_its_bytes(void **state)
{
	struct vd_blob *blob = NULL;
	int64_t		live = vdi_alloc_live();

	(void) state;
	assert_int_equal(vd_blob_new(vd_bytes_of("sentry"), &blob), VD_OK);
	assert_ptr_equal(vd_blob_ref(blob), blob);
	assert_null(vd_blob_unref(blob));
	assert_true(vd_bytes_equal(vd_blob_bytes(blob), vd_bytes_of("sentry")));
	vd_blob_unref(blob);
	assert_null(vd_blob_unref(NULL));
	assert_int_equal(vdi_alloc_live(), live);
}

static void blob_reports_a_failed_allocation(void **state)
{
	struct vd_blob *blob = NULL;

	(void) state;
	vdi_alloc_fail_nth(1, 1);
	assert_int_equal(vd_blob_new(vd_bytes_of("x"), &blob), VD_NOMEM);
	assert_true(vdi_alloc_failed());
	assert_null(blob);
	vdi_alloc_fail_nth(0, 0);
	assert_int_equal(vd_blob_new(vd_bytes_of("x"), &blob), VD_OK);
	vd_blob_unref(blob);
}

static void bytes_order_is_bytewise(void **state)
{
	(void) state;
	assert_true(vd_bytes_compare(vd_bytes_of("a"), vd_bytes_of("ab")) < 0);
	assert_true(vd_bytes_compare(vd_bytes_of("b"), vd_bytes_of("ab")) > 0);
	assert_true(vd_bytes_compare(vd_bytes_of("\xff"), vd_bytes_of("a")) > 0);
	assert_true(vd_bytes_compare(VD_BYTES_NONE, VD_BYTES_NONE) == 0);
	assert_true(vd_bytes_has_prefix(vd_bytes_of("/pods/a"), vd_bytes_of("/pods/")));
	assert_false(vd_bytes_has_prefix(vd_bytes_of("/pod"), vd_bytes_of("/pods/")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blob_keeps_its_bytes),
		cmocka_unit_test(blob_reports_a_failed_allocation),
		cmocka_unit_test(bytes_order_is_bytewise),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
