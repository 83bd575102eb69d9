/* Unit tests of lib/json/json_patch.c; the rows up to "appendix" are those of RFC 6902, appendix A. */
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

static void h704_json_patch_rfc6902(void **state)
{
	static const struct {
		const char *target;
		const char *patch;
		const char *result; /* or the end of the error */
		vd_status   status;
	} rows[] = {
		{ "{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/baz\",\"value\":\"qux\"}]",
		  "{\"foo\":\"bar\",\"baz\":\"qux\"}", VD_OK },
		{ "{\"foo\":[\"bar\",\"baz\"]}", "[{\"op\":\"add\",\"path\":\"/foo/1\",\"value\":\"qux\"}]",
		  "{\"foo\":[\"bar\",\"qux\",\"baz\"]}", VD_OK },
		{ "{\"baz\":\"qux\",\"foo\":\"bar\"}", "[{\"op\":\"remove\",\"path\":\"/baz\"}]",
		  "{\"foo\":\"bar\"}", VD_OK },
		{ "{\"foo\":[\"bar\",\"qux\",\"baz\"]}", "[{\"op\":\"remove\",\"path\":\"/foo/1\"}]",
		  "{\"foo\":[\"bar\",\"baz\"]}", VD_OK },
		{ "{\"baz\":\"qux\",\"foo\":\"bar\"}",
		  "[{\"op\":\"replace\",\"path\":\"/baz\",\"value\":\"boo\"}]",
		  "{\"baz\":\"boo\",\"foo\":\"bar\"}", VD_OK },
		{ "{\"foo\":{\"bar\":\"baz\",\"waldo\":\"fred\"},\"qux\":{\"corge\":\"grault\"}}",
		  "[{\"op\":\"move\",\"from\":\"/foo/waldo\",\"path\":\"/qux/thud\"}]",
		  "{\"foo\":{\"bar\":\"baz\"},\"qux\":{\"corge\":\"grault\",\"thud\":\"fred\"}}", VD_OK },
		{ "{\"foo\":[\"all\",\"grass\",\"cows\",\"eat\"]}",
		  "[{\"op\":\"move\",\"from\":\"/foo/1\",\"path\":\"/foo/3\"}]",
		  "{\"foo\":[\"all\",\"cows\",\"eat\",\"grass\"]}", VD_OK },
		{ "{\"baz\":\"qux\",\"foo\":[\"a\",2,\"c\"]}",
		  "[{\"op\":\"test\",\"path\":\"/baz\",\"value\":\"qux\"},{\"op\":\"test\",\"path\":\"/foo/"
		  "1\",\"value\":2}]",
		  "{\"baz\":\"qux\",\"foo\":[\"a\",2,\"c\"]}", VD_OK },
		{ "{\"baz\":\"qux\"}", "[{\"op\":\"test\",\"path\":\"/baz\",\"value\":\"bar\"}]",
		  "operation 0 (test /baz): the test failed", VD_INVALID },
		{ "{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/child\",\"value\":{\"grandchild\":{}}}]",
		  "{\"foo\":\"bar\",\"child\":{\"grandchild\":{}}}", VD_OK },
		{ "{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/baz\",\"value\":\"qux\",\"xyz\":123}]",
		  "{\"foo\":\"bar\",\"baz\":\"qux\"}", VD_OK },
		{ "{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/baz/bat\",\"value\":\"qux\"}]",
		  "the parent of the path does not exist", VD_INVALID },
		{ "{\"/\":9,\"~1\":10}", "[{\"op\":\"test\",\"path\":\"/~01\",\"value\":10}]",
		  "{\"/\":9,\"~1\":10}", VD_OK },
		{ "{\"/\":9,\"~1\":10}", "[{\"op\":\"test\",\"path\":\"/~01\",\"value\":\"10\"}]",
		  "the test failed", VD_INVALID },
		{ "{\"foo\":[\"bar\"]}", "[{\"op\":\"add\",\"path\":\"/foo/-\",\"value\":[\"abc\",\"def\"]}]",
		  "{\"foo\":[\"bar\",[\"abc\",\"def\"]]}", VD_OK },
		/* appendix */
		{ "{}", "[]", "{}", VD_OK },
		{ "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":null}]", "{\"a\":null}", VD_OK },
		{ "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/b\",\"value\":1}]",
		  "operation 0 (replace /b): the path does not exist", VD_INVALID },
		{ "{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/b\"}]", "the path does not exist",
		  VD_INVALID },
		{ "{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"\"}]", "the whole document cannot be removed",
		  VD_INVALID },
		{ "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":[]}]", "[]", VD_OK },
		{ "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"\",\"value\":2}]", "2", VD_OK },
		{ "{\"\":{\"\":1}}", "[{\"op\":\"remove\",\"path\":\"//\"}]", "{\"\":{}}", VD_OK },
		{ "[1,2]", "[{\"op\":\"add\",\"path\":\"/2\",\"value\":3}]", "[1,2,3]", VD_OK },
		{ "[1,2]", "[{\"op\":\"add\",\"path\":\"/3\",\"value\":3}]", "the array has no such index",
		  VD_INVALID },
		{ "[1,2]", "[{\"op\":\"add\",\"path\":\"/01\",\"value\":3}]", "the array has no such index",
		  VD_INVALID },
		{ "[1,2]", "[{\"op\":\"add\",\"path\":\"/-1\",\"value\":3}]", "the array has no such index",
		  VD_INVALID },
		{ "[1,2]", "[{\"op\":\"add\",\"path\":\"/1e0\",\"value\":3}]", "the array has no such index",
		  VD_INVALID },
		{ "[1,2]", "[{\"op\":\"add\",\"path\":\"/\",\"value\":3}]", "the array has no such index",
		  VD_INVALID },
		{ "[1,2]", "[{\"op\":\"add\",\"path\":\"/4294967297\",\"value\":3}]",
		  "the array has no such index", VD_INVALID },
		{ "[1,2]", "[{\"op\":\"replace\",\"path\":\"/2\",\"value\":3}]", "the path does not exist",
		  VD_INVALID },
		{ "[1,2]", "[{\"op\":\"replace\",\"path\":\"/1\",\"value\":3}]", "[1,3]", VD_OK },
		{ "[1,2]", "[{\"op\":\"replace\",\"path\":\"/-\",\"value\":3}]", "the path does not exist",
		  VD_INVALID },
		{ "[1,2]", "[{\"op\":\"remove\",\"path\":\"/2\"}]", "the path does not exist", VD_INVALID },
		{ "[1,2]", "[{\"op\":\"remove\",\"path\":\"/-\"}]", "the path does not exist", VD_INVALID },
		{ "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":1}]",
		  "the parent of the path does not exist", VD_INVALID },
		{ "{\"a\":{\"b\":1}}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/c\"}]",
		  "{\"a\":{\"b\":1,\"c\":{\"b\":1}}}", VD_OK },
		{ "{\"a\":{\"b\":1}}", "[{\"op\":\"copy\",\"from\":\"\",\"path\":\"/c\"}]",
		  "{\"a\":{\"b\":1},\"c\":{\"a\":{\"b\":1}}}", VD_OK },
		{ "{\"a\":{\"b\":1}}", "[{\"op\":\"copy\",\"from\":\"/x\",\"path\":\"/c\"}]",
		  "from does not exist", VD_INVALID },
		{ "{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/c\"}]",
		  "a value cannot be moved into itself", VD_INVALID },
		{ "{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"\",\"path\":\"/a\"}]",
		  "a value cannot be moved into itself", VD_INVALID },
		{ "{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a\"}]",
		  "{\"a\":{\"b\":1}}", VD_OK },
		{ "{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a/b\",\"path\":\"\"}]", "1", VD_OK },
		{ "{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/ab\"}]",
		  "{\"ab\":{\"b\":1}}", VD_OK },
		{ "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":1.0}]", "{\"a\":1}", VD_OK },
		{ "{\"a\":{\"x\":1,\"y\":[2]}}",
		  "[{\"op\":\"test\",\"path\":\"/a\",\"value\":{\"y\":[2],\"x\":1}}]",
		  "{\"a\":{\"x\":1,\"y\":[2]}}", VD_OK },
		{ "{\"a\":{\"x\":1,\"y\":[2]}}",
		  "[{\"op\":\"test\",\"path\":\"/a\",\"value\":{\"y\":[2],\"z\":1}}]", "the test failed",
		  VD_INVALID },
		{ "{\"a\":[1,2]}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":[2,1]}]", "the test failed",
		  VD_INVALID },
		{ "{\"a\":null}", "[{\"op\":\"test\",\"path\":\"/b\",\"value\":null}]",
		  "the path does not exist", VD_INVALID },
		{ "{}", "{}", "a JSON patch is an array of operations", VD_BAD_REQUEST },
		{ "{}", "[1]", "JSON patch operation 0 is no object", VD_BAD_REQUEST },
		{ "{}", "[{}]", "unknown operation", VD_BAD_REQUEST },
		{ "{}", "[{\"op\":\"Add\",\"path\":\"\",\"value\":1}]", "unknown operation", VD_BAD_REQUEST },
		{ "{}", "[{\"op\":\"add\",\"value\":1}]", "path is missing or no string", VD_BAD_REQUEST },
		{ "{}", "[{\"op\":\"add\",\"path\":\"/a\"}]", "value is missing", VD_BAD_REQUEST },
		{ "{}", "[{\"op\":\"copy\",\"path\":\"/a\"}]", "from is missing or no string",
		  VD_BAD_REQUEST },
		{ "{}", "[{\"op\":\"add\",\"path\":\"a\",\"value\":1}]", "a JSON pointer begins with /",
		  VD_BAD_REQUEST },
		{ "{}", "[{\"op\":\"add\",\"path\":\"/~2\",\"value\":1}]", "must be followed by 0 or 1",
		  VD_BAD_REQUEST },
		{ "{}", "[{\"op\":\"add\",\"path\":\"/~\",\"value\":1}]", "must be followed by 0 or 1",
		  VD_BAD_REQUEST },
		{ "{}", "[{\"op\":\"add\",\"path\":\"/a\\u0000\",\"value\":1}]", "a key with a NUL",
		  VD_INVALID },
		{ "{}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":1},{\"op\":\"remove\",\"path\":\"/b\"}]",
		  "operation 1 (remove /b): the path does not exist", VD_INVALID },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		json_t	       *target = load(rows[i].target);
		json_t	       *patch = load(rows[i].patch);
		json_t	       *before = json_deep_copy(target);
		json_t	       *result = NULL;
		struct vd_error error = { .message = "" };
		vd_status	status = vdi_json_patch(target, patch, &result, &error);

		if (status != rows[i].status)
			fail_msg("%s %s: %s %s", rows[i].target, rows[i].patch, vd_status_name(status),
				 error.message);
		if (status == VD_OK) {
			char  *text = NULL;
			size_t size;

			assert_status(vdi_json_dump(result, &text, &size, NULL), VD_OK);
			assert_string_equal(text, rows[i].result);
			vdi_free(text);
		} else {
			const char *place = strstr(error.message, rows[i].result);

			if (place == NULL || strcmp(place, rows[i].result) != 0)
				fail_msg("%s: %s", rows[i].patch, error.message);
			assert_null(result);
		}
		assert_true(json_equal(before, target));
		json_decref(result);
		json_decref(before);
		json_decref(target);
		json_decref(patch);
	}
}

static json_t *operations(const char *operation, size_t count)
{
	json_t *patch = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(patch, load(operation));
	return patch;
}

static void check_refused(const char *target_text, const char *operation, size_t count, vd_status expected,
			  const char *why)
{
	json_t	       *target = load(target_text);
	json_t	       *patch = operations(operation, count);
	json_t	       *result = NULL;
	struct vd_error error;

	assert_status(vdi_json_patch(target, patch, &result, &error), expected);
	if (strstr(error.message, why) == NULL)
		fail_msg("%s", error.message);
	json_decref(target);
	json_decref(patch);
}

static void patches_are_bounded(void **state)
{
	json_t *target = load("{}");
	json_t *patch =
		operations("{\"op\":\"test\",\"path\":\"\",\"value\":{}}", VDI_JSON_PATCH_OPERATIONS_MAX);
	json_t *result = NULL;

	(void) state;
	assert_status(vdi_json_patch(target, patch, &result, NULL), VD_OK);
	json_decref(result);
	json_decref(patch);
	json_decref(target);
	check_refused("{}", "{\"op\":\"test\",\"path\":\"\",\"value\":{}}", VDI_JSON_PATCH_OPERATIONS_MAX + 1,
		      VD_TOO_BIG, "The allowed maximum operations in a JSON patch is 10000, got 10001");
	/* Copying doubles: into itself it grows deep, beside itself it grows wide. */
	check_refused("{\"a\":[\"x\"]}", "{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/-\"}", 100,
		      VD_TOO_BIG, "the copies are too large");
	check_refused("{\"a\":1}", "{\"op\":\"copy\",\"from\":\"\",\"path\":\"/a\"}", 100, VD_INVALID,
		      "too many levels");
}

static void torture_every_allocation(void **state)
{
	json_t *target = load("{\"a\":{\"b\":1}}");
	json_t *patch = load(
		"[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/c\"},{\"op\":\"remove\",\"path\":\"/a/b\"}]");
	int64_t	 live = vdi_alloc_live();
	uint64_t nth = 1;

	(void) state;
	for (;; nth++) {
		json_t	 *result = NULL;
		vd_status status;

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_json_patch(target, patch, &result, NULL);
		assert_status(status, vdi_alloc_failed() ? VD_NOMEM : VD_OK);
		vdi_alloc_fail_nth(0, 0);
		json_decref(result);
		assert_int_equal(vdi_alloc_live(), live);
		if (status == VD_OK)
			break;
	}
	assert_int_equal(nth, 4);
	json_decref(target);
	json_decref(patch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h704_json_patch_rfc6902),
		cmocka_unit_test(patches_are_bounded),
		cmocka_unit_test(torture_every_allocation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
