/* Unit tests of lib/json/json_edit.c. */
#include "vdtest.h"

#include "json_edit.h"

static json_t *load(const char *json)
{
	json_t	       *tree = NULL;
	struct vd_error error;

	if (vdi_json_load(vd_bytes_of(json), NULL, &tree, &error) != VD_OK)
		fail_msg("%s: %s", json, error.message);
	return tree;
}

static void assert_dump(const json_t *tree, const char *expected)
{
	char  *text = NULL;
	size_t size = 0;

	assert_status(vdi_json_dump(tree, &text, &size, NULL), VD_OK);
	assert_string_equal(text, expected);
	assert_int_equal(size, strlen(expected));
	vdi_free(text);
}

static void h704_text_survives_a_round_trip(void **state)
{
	static const char *const rows[][2] = {
		{ "{\"z\":1,\"a\":{\"y\":[],\"b\":{}}}", NULL }, /* NULL: the same */
		{ "[9223372036854775807,-9223372036854775808,9007199254740993,0,-1]", NULL },
		{ "[0.1,-2.5,1e+100,3.141592653589793,1.0]", NULL },
		{ "[1.50,1E2,5e-324]", "[1.5,100.0,4.94065645841247e-324]" },
		{ "[\"\\\"\\\\\\b\\f\\n\\r\\t\\u000b\\u0000</>\xc3\xa9\"]", NULL },
		{ "[\"\\u00e9\\/\"]", "[\"\xc3\xa9/\"]" },
		{ " [ true , false , null ] ", "[true,false,null]" },
		{ "\"x\"", NULL },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		json_t *tree = load(rows[i][0]);

		assert_dump(tree, rows[i][1] ? rows[i][1] : rows[i][0]);
		json_decref(tree);
	}
}

static void h704_load_is_strict(void **state)
{
	static const char *const rows[][2] = {
		{ "", "at byte 0: unexpected end" },
		{ "{\"a\":1,}", "at byte 7: a key was expected" },
		{ "{\"a\":1,\"b\":{\"c\":1,\"c\":2}}", "duplicate object key" },
		{ "[9223372036854775808]", "too big integer" },
		{ "[1e999]", "real number overflow" },
		{ "{\"a\\u0000\":1}", "NUL byte in object key" },
		{ "[\"\xff\"]", "at byte 2: invalid UTF-8" },
	};
	const struct vdi_json_limits limits = { 5, 1 };
	json_t			    *tree = NULL;
	struct vd_error		     error;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		assert_status(vdi_json_load(vd_bytes_of(rows[i][0]), NULL, &tree, &error), VD_BAD_REQUEST);
		if (strstr(error.message, rows[i][1]) == NULL)
			fail_msg("%s: %s", rows[i][0], error.message);
	}
	assert_status(vdi_json_load(vd_bytes_of("[1,23]"), &limits, &tree, &error), VD_TOO_BIG);
	assert_status(vdi_json_load(vd_bytes_of("[[]]"), &limits, &tree, &error), VD_BAD_REQUEST);
	assert_null(tree);
}

static void h704_dotted_path(void **state)
{
	json_t *tree = load("{\"a\":{\"b\":{\"c.d\":1,\"\":2}},\"n\":null}");

	(void) state;
	assert_int_equal(json_integer_value(vdi_json_get(tree, "a.b.c\\.d")), 1);
	assert_int_equal(json_integer_value(vdi_json_get(tree, ".a.b.c\\.d")), 1);
	assert_int_equal(json_integer_value(vdi_json_get(tree, "a.b.")), 2);
	assert_true(json_is_null(vdi_json_get(tree, "n")));
	assert_true(json_is_object(vdi_json_get(tree, "a.b")));
	assert_null(vdi_json_get(tree, "a.x"));
	assert_null(vdi_json_get(tree, "a.x.y"));
	assert_null(vdi_json_get(tree, "n.x"));
	assert_null(vdi_json_get(tree, ""));
	json_decref(tree);
}

/* The test cases of RFC 7386, appendix A, and a few of ours. */
static void h704_merge_patch_rfc7386(void **state)
{
	static const char *const rows[][3] = {
		{ "{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
		{ "{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}" },
		{ "{\"a\":\"b\"}", "{\"a\":null}", "{}" },
		{ "{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}" },
		{ "{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
		{ "{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}" },
		{ "{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}" },
		{ "{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}" },
		{ "[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]" },
		{ "{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]" },
		{ "{\"a\":\"foo\"}", "null", "null" },
		{ "{\"a\":\"foo\"}", "\"bar\"", "\"bar\"" },
		{ "{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}" },
		{ "[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}" },
		{ "{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}" },
		{ "{\"z\":1,\"a\":2}", "{\"z\":3}", "{\"z\":3,\"a\":2}" },
		{ "{}", "{\"a\":[null,{\"b\":null}]}", "{\"a\":[null,{\"b\":null}]}" },
		{ "{\"n\":9007199254740993}", "{}", "{\"n\":9007199254740993}" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		json_t *target = load(rows[i][0]);
		json_t *patch = load(rows[i][1]);
		json_t *result = NULL;

		assert_status(vdi_json_merge_patch(target, patch, &result, NULL), VD_OK);
		assert_dump(result, rows[i][2]);
		assert_dump(target, rows[i][0]);
		json_decref(target);
		json_decref(patch);
		json_decref(result);
	}
}

static void torture_every_allocation(void **state)
{
	json_t *tree = load("{\"a\":[1,2.5,\"long enough to make the text grow, once and again and again and "
			    "again\"],\"b\":{}}");
	int64_t live = vdi_alloc_live();
	uint64_t nth = 1;

	(void) state;
	for (;; nth++) {
		char	 *text = NULL;
		size_t	  size;
		vd_status status;

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_json_dump(tree, &text, &size, NULL);
		assert_status(status, vdi_alloc_failed() ? VD_NOMEM : VD_OK);
		vdi_alloc_fail_nth(0, 0);
		vdi_free(text);
		assert_int_equal(vdi_alloc_live(), live);
		if (status == VD_OK)
			break;
	}
	assert_true(nth > 2);
	json_decref(tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h704_text_survives_a_round_trip),
		cmocka_unit_test(h704_load_is_strict),
		cmocka_unit_test(h704_dotted_path),
		cmocka_unit_test(h704_merge_patch_rfc7386),
		cmocka_unit_test(torture_every_allocation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
