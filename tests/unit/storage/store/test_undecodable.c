/* Unit tests of storage/store/undecodable.c: upstream's words for values that cannot be read. */
#include "undecodable.h"

#include "vdtest.h"

static void r165_r168_each_value_has_its_words(void **state)
{
#define DELETED "saw a DELETED event, but object data is corrupt - "
#define INTERNAL "Internal error occurred: "
	static const struct {
		const char *value, *words;
		bool	    is_untransformed;
	} rows[] = {
		{ "junk", "object not decodable revision=7: why", false },
		{ "", "object not decodable revision=7: why", false },
		{ "k8s:en", "object not decodable revision=7: why", false },
		{ "k8s:enc:aescbc:v1:k:x", "data from the storage is not transformable revision=7: why",
		  true },
		{ VDI_VALUE_REFUSED, "data from the storage is not transformable revision=7: why", true },
		{ VDI_VALUE_REFUSED "x", "object not decodable revision=7: why", false },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_error error = { 0 };
		struct vd_kv   *kv;
		char		expected[256];

		assert_status(vd_kv_new(vd_bytes_of("/k"), vd_bytes_of(rows[i].value), &kv), VD_OK);
		kv->mod_rev = 7;
		(void) vd_error_set(&error, VD_UNDECODABLE, "why");
		assert_status(vdi_undecodable(&error, kv), VD_UNDECODABLE);
		snprintf(expected, sizeof expected, INTERNAL "%s", rows[i].words);
		assert_string_equal(error.message, expected);
		(void) vd_error_set(&error, VD_UNDECODABLE, "why");
		assert_status(vdi_undecodable_deleted(&error, kv), VD_UNDECODABLE);
		snprintf(expected, sizeof expected, "%s%s", rows[i].is_untransformed ? DELETED : INTERNAL,
			 rows[i].words);
		assert_string_equal(error.message, expected);
		(void) vd_error_set(&error, VD_UNDECODABLE, "why");
		assert_status(vdi_undecodable_item(&error, kv), VD_UNDECODABLE);
		assert_string_equal(error.message, rows[i].words);
		vd_kv_unref(kv);
	}
}

/* The revision is never cut off. */
static void a_long_reason_is_cut(void **state)
{
	struct vd_error error = { 0 };
	struct vd_kv   *kv;

	(void) state;
	assert_status(vd_kv_new(vd_bytes_of("/k"), vd_bytes_of(VDI_VALUE_REFUSED), &kv), VD_OK);
	kv->mod_rev = INT64_MAX;
	memset(error.message, 'x', sizeof error.message - 1);
	assert_status(vdi_undecodable_deleted(&error, kv), VD_UNDECODABLE);
	assert_non_null(strstr(error.message, "revision=9223372036854775807: xxx"));
	vd_kv_unref(kv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r165_r168_each_value_has_its_words),
		cmocka_unit_test(a_long_reason_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
