/* Pages of a store as recorder and verification read them. */
#include "vdtest.h"

#include "store_read.h"

static void a_page_is_kept_with_references(void **state)
{
	struct vd_kv	      *kvs[2];
	struct vd_range_result result = { .revision = 7, .kvs = kvs, .kv_count = 2, .count = 3, .more = true };
	struct vdi_store_page  page = { 0 };

	assert_status(vd_kv_new(vd_bytes_of("/a"), vd_bytes_of("1"), &kvs[0]), VD_OK);
	assert_status(vd_kv_new(vd_bytes_of("/b"), vd_bytes_of("2"), &kvs[1]), VD_OK);
	vdi_store_page_keep(&page, VD_OK, &result, NULL);
	vd_kv_unref(kvs[0]);
	vd_kv_unref(kvs[1]);
	assert_status(page.status, VD_OK);
	assert_int_equal(page.count, 2);
	assert_int_equal(page.revision, 7);
	assert_true(page.more);
	assert_true(vd_bytes_equal(vd_kv_value(page.kvs[1]), vd_bytes_of("2")));
	vdi_store_page_drop(&page);
	assert_int_equal(page.count, 0);
}

static void r157_more_but_no_keys_is_an_error(void **state)
{
	struct vd_range_result result = { .revision = 7, .count = 3, .more = true };
	struct vdi_store_page  page = { 0 };

	vdi_store_page_keep(&page, VD_OK, &result, NULL);
	assert_status(page.status, VD_INTERNAL);
	assert_status(page.error.code, VD_INTERNAL);
	assert_false(page.more);
	vdi_store_page_drop(&page);
	result.more = false; /* there are none */
	vdi_store_page_keep(&page, VD_OK, &result, NULL);
	assert_status(page.status, VD_OK);
	vdi_store_page_drop(&page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_is_kept_with_references),
		cmocka_unit_test(r157_more_but_no_keys_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
