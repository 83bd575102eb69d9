/* The three patches, by example, and with every allocation failing in turn. */
#include "vdtest.h"

#include "strategic_patch.h"
#include "tree_patch.h"

enum kind { MERGE, OPERATIONS, STRATEGIC };

static vd_status apply(enum kind kind, const char *target_text, const char *patch_text, struct vdi_out *out)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *target, *patch;
	struct vd_error	 error;
	vd_status	 status = vdi_tree_parse(&tree, vd_bytes_of(target_text), &target, &error);

	if (status == VD_OK)
		status = vdi_tree_parse(&tree, vd_bytes_of(patch_text), &patch, &error);
	if (status == VD_OK && kind == MERGE)
		status = vdi_patch_merge(&tree, &target, patch, &error);
	else if (status == VD_OK && kind == OPERATIONS)
		status = vdi_patch_operations(&tree, &target, patch, &error);
	else if (status == VD_OK)
		status = vdi_patch_strategic(&tree, target, patch, &error);
	vdi_out_reset(out);
	if (status == VD_OK)
		vdi_tree_write(out, target);
	if (status == VD_OK && out->failed)
		status = VD_NOMEM;
	vdi_tree_fini(&tree);
	return status;
}

struct row {
	enum kind   kind;
	const char *target, *patch, *wanted; /* wanted NULL: refused */
};

static const struct row rows[] = {
	{ MERGE, "{\"a\":1,\"b\":{\"c\":2,\"d\":3}}", "{\"a\":null,\"b\":{\"c\":null,\"e\":4},\"f\":[1]}",
	  "{\"b\":{\"d\":3,\"e\":4},\"f\":[1]}" },
	{ MERGE, "{\"a\":[1,2]}", "{\"a\":{\"x\":{\"y\":null,\"z\":1}}}", "{\"a\":{\"x\":{\"z\":1}}}" },
	{ MERGE, "{\"n\":1.10,\"big\":12345678901234567890}", "{\"m\":1e2}",
	  "{\"n\":1.10,\"big\":12345678901234567890,\"m\":1e2}" },
	{ MERGE, "{}", "[1]", "[1]" },
	{ OPERATIONS, "{\"a\":[1,2]}",
	  "[{\"op\":\"add\",\"path\":\"/a/1\",\"value\":9},{\"op\":\"add\",\"path\":\"/a/-\",\"value\":8}]",
	  "{\"a\":[1,9,2,8]}" },
	{ OPERATIONS, "{\"a\":{\"b\":1}}",
	  "[{\"op\":\"move\",\"from\":\"/a/b\",\"path\":\"/c\"},{\"op\":\"copy\",\"from\":\"/c\",\"path\":\"/"
	  "a/d\"}]",
	  "{\"a\":{\"d\":1},\"c\":1}" },
	{ OPERATIONS, "{\"a/b\":1,\"m~n\":2}",
	  "[{\"op\":\"remove\",\"path\":\"/a~1b\"},{\"op\":\"replace\",\"path\":\"/m~0n\",\"value\":3}]",
	  "{\"m~n\":3}" },
	{ OPERATIONS, "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":2}]", NULL },
	{ OPERATIONS, "{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/b\"}]", NULL },
	{ OPERATIONS, "{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/2\",\"value\":1}]", NULL },
	{ OPERATIONS, "{\"a\":{}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/b\"}]", NULL },
	{ OPERATIONS, "{\"a\":1}", "{\"op\":\"add\"}", NULL },
	{ OPERATIONS, "{\"a\":1}", "[{\"op\":\"nonsense\",\"path\":\"/a\",\"value\":2}]", NULL },
	{ OPERATIONS, "{}", "[{\"op\":\"add\",\"path\":\"/a~\",\"value\":1}]", NULL },
	{ OPERATIONS, "{}", "[{\"op\":\"add\",\"path\":\"/a~2\",\"value\":1}]", NULL },
	{ OPERATIONS, "{}", "[{\"op\":\"add\",\"path\":\"/a~0~1\",\"value\":1}]", "{\"a~/\":1}" },
	{ OPERATIONS, "{\"a\":{\"x\":1},\"b\":[2,3]}",
	  "[{\"op\":\"move\",\"from\":\"/b/0\",\"path\":\"/c\"},{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/"
	  "b/0\"},"
	  "{\"op\":\"move\",\"from\":\"/c\",\"path\":\"/b/-\"}]",
	  "{\"b\":[{\"x\":1},3,2]}" },
	{ STRATEGIC, "{}", "[]", NULL },
	{ STRATEGIC, "[]", "{}", NULL },
	{ STRATEGIC, "[]", "[]", NULL },
	{ STRATEGIC, "{}", "\"x\"", NULL },
	/* an order of a list that is merged as a whole, or that is no list, changes nothing */
	{ STRATEGIC, "{\"x\":[2,1]}", "{\"$setElementOrder/x\":[1,2]}", "{\"x\":[2,1]}" },
	{ STRATEGIC, "{\"spec\":{\"containers\":[{\"name\":\"b\"},{\"name\":\"a\"}]}}",
	  "{\"spec\":{\"$setElementOrder/containers\":{\"name\":\"a\"}}}",
	  "{\"spec\":{\"containers\":[{\"name\":\"b\"},{\"name\":\"a\"}]}}" },
	{ STRATEGIC, "{\"spec\":{\"containers\":{\"name\":\"b\"}}}",
	  "{\"spec\":{\"$setElementOrder/containers\":[{\"name\":\"a\"}]}}",
	  "{\"spec\":{\"containers\":{\"name\":\"b\"}}}" },
	{ STRATEGIC, "{}", "{\"$setElementOrder/containers\":[{\"name\":\"a\"}]}", "{}" },
	/* an order of plain values; what it does not name keeps its place */
	{ STRATEGIC, "{\"metadata\":{\"finalizers\":[\"a\",\"x\",\"b\",\"c\"]}}",
	  "{\"metadata\":{\"$setElementOrder/finalizers\":[\"c\",\"b\",\"nope\",\"c\",\"a\"]}}",
	  "{\"metadata\":{\"finalizers\":[\"c\",\"x\",\"b\",\"a\"]}}" },
	{ STRATEGIC, "{\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"x\"},{\"name\":\"b\"}]}}",
	  "{\"spec\":{\"$setElementOrder/"
	  "containers\":[{\"name\":\"b\"},{\"other\":\"x\"},{\"name\":\"a\"}]}}",
	  "{\"spec\":{\"containers\":[{\"name\":\"b\"},{\"name\":\"x\"},{\"name\":\"a\"}]}}" },
	{ STRATEGIC, "{}", "{\"a\":{\"b\":null,\"c\":{\"d\":1,\"e\":null}}}",
	  "{\"a\":{\"c\":{\"d\":1}}}" }, /* nulls of what is new are nothing */
	{ STRATEGIC, "{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"1\"},{\"name\":\"b\"}]}}",
	  "{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"2\"},{\"name\":\"c\"}]}}",
	  "{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"2\"},{\"name\":\"b\"},{\"name\":\"c\"}]}"
	  "}" },
	{ STRATEGIC, "{\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"b\"}]}}",
	  "{\"spec\":{\"containers\":[{\"name\":\"a\",\"$patch\":\"delete\"}]}}",
	  "{\"spec\":{\"containers\":[{\"name\":\"b\"}]}}" },
	{ STRATEGIC, "{\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"b\"}]}}",
	  "{\"spec\":{\"$setElementOrder/containers\":[{\"name\":\"b\"},{\"name\":\"a\"}]}}",
	  "{\"spec\":{\"containers\":[{\"name\":\"b\"},{\"name\":\"a\"}]}}" },
	{ STRATEGIC, "{\"metadata\":{\"finalizers\":[\"x\",\"y\"]}}",
	  "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[\"x\"],\"finalizers\":[\"z\"]}}",
	  "{\"metadata\":{\"finalizers\":[\"y\",\"z\"]}}" },
	{ STRATEGIC, "{\"spec\":{\"strategy\":{\"type\":\"A\",\"rollingUpdate\":{}}}}",
	  "{\"spec\":{\"strategy\":{\"$retainKeys\":[\"type\"],\"type\":\"B\"}}}",
	  "{\"spec\":{\"strategy\":{\"type\":\"B\"}}}" },
	{ STRATEGIC, "{\"a\":{\"b\":1}}", "{\"a\":{\"$patch\":\"replace\",\"c\":2}}", "{\"a\":{\"c\":2}}" },
	{ STRATEGIC, "{\"x\":{\"args\":[\"1\",\"2\"]}}", "{\"x\":{\"args\":[\"3\"]}}",
	  "{\"x\":{\"args\":[\"3\"]}}" },
	{ STRATEGIC, "{\"spec\":{\"ports\":[{\"port\":80,\"name\":\"a\"}]}}",
	  "{\"spec\":{\"ports\":[{\"port\":80,\"targetPort\":1},{\"port\":81}]}}",
	  "{\"spec\":{\"ports\":[{\"port\":80,\"name\":\"a\",\"targetPort\":1},{\"port\":81}]}}" },
	{ STRATEGIC, "{\"spec\":{\"containers\":[]}}", "{\"spec\":{\"containers\":[{\"image\":\"x\"}]}}",
	  NULL },
	{ STRATEGIC, "{}", "{\"$patch\":\"nonsense\"}", NULL },
	{ STRATEGIC, "{\"a\":1,\"b\":2}", "{\"$patch\":\"delete\",\"c\":3}", "{}" },
	{ STRATEGIC, "{\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"b\"}]}}",
	  "{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"x\"},{\"$patch\":\"replace\"},{\"name\":"
	  "\"d\"}]}}",
	  "{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"x\"},{\"name\":\"d\"}]}}" },
	{ STRATEGIC, "{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"x\"},{\"name\":\"b\"}]}}",
	  "{\"spec\":{\"containers\":[{\"$patch\":\"replace\",\"name\":\"a\",\"tty\":true}]}}",
	  "{\"spec\":{\"containers\":[{\"name\":\"a\",\"tty\":true}]}}" },
	{ STRATEGIC, "{\"spec\":{\"containers\":[{\"name\":\"a\"}]}}",
	  "{\"spec\":{\"containers\":[{\"$patch\":\"delete\",\"name\":\"b\"}]}}",
	  "{\"spec\":{\"containers\":[{\"name\":\"a\"}]}}" },
	{ STRATEGIC, "{\"spec\":{\"containers\":[{\"name\":\"a\"}]}}",
	  "{\"spec\":{\"containers\":[{\"$patch\":\"delete\"}]}}", NULL },
	{ STRATEGIC, "{\"spec\":{\"containers\":7}}", "{\"spec\":{\"containers\":[{\"name\":\"a\"}]}}",
	  "{\"spec\":{\"containers\":[{\"name\":\"a\"}]}}" },
	{ STRATEGIC, "{\"metadata\":{}}", "{\"metadata\":{\"finalizers\":[\"a\",\"b\",\"a\"]}}",
	  "{\"metadata\":{\"finalizers\":[\"a\",\"b\"]}}" },
	{ STRATEGIC, "{\"a\":1}", "{\"\":2}", "{\"a\":1,\"\":2}" },
	{ STRATEGIC, "{\"a\":{\"b\":1}}", "{\"a\":{\"$patch\":\"merge\",\"c\":2}}",
	  "{\"a\":{\"b\":1,\"c\":2}}" },
	{ STRATEGIC, "{\"a\":{\"b\":1},\"c\":2}", "{\"a\":{\"$patch\":\"delete\"}}", "{\"c\":2}" },
};

/* Operations at the borders of arrays, paths and roots. */
static const struct row operation_rows[] = {
	{ OPERATIONS, "[0,1,2,3,4,5]",
	  "[{\"op\":\"test\",\"path\":\"/3\",\"value\":3},{\"op\":\"test\",\"path\":\"/"
	  "0\",\"value\":0},{\"op\":\"test\",\"path\":\"/5\",\"value\":5}]",
	  "[0,1,2,3,4,5]" },
	{ OPERATIONS, "[0,1]", "[{\"op\":\"test\",\"path\":\"/2\",\"value\":1}]", NULL },
	{ OPERATIONS, "[0,1]", "[{\"op\":\"test\",\"path\":\"/1\",\"value\":2}]", NULL },
	{ OPERATIONS, "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":1}]", "{\"a\":1}" },
	{ OPERATIONS, "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/b\",\"value\":1}]", NULL },
	{ OPERATIONS, "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"\",\"value\":{\"a\":1}}]", "{\"a\":1}" },
	{ OPERATIONS, "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"\",\"value\":{\"a\":2}}]", NULL },
	{ OPERATIONS, "{\"a\":1}",
	  "[{\"op\":\"replace\",\"path\":\"\",\"value\":{\"b\":2}},{\"op\":\"add\",\"path\":\"/"
	  "c\",\"value\":3}]",
	  "{\"b\":2,\"c\":3}" },
	{ OPERATIONS, "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"\",\"value\":{\"b\":2}}]", "{\"b\":2}" },
	{ OPERATIONS, "[1,2,3]", "[{\"op\":\"remove\",\"path\":\"/00\"}]", NULL },
	{ OPERATIONS, "[1,2,3]", "[{\"op\":\"remove\",\"path\":\"/01\"}]", NULL },
	{ OPERATIONS, "[1,2,3]", "[{\"op\":\"remove\",\"path\":\"/-\"}]", NULL },
	{ OPERATIONS, "[1,2,3]", "[{\"op\":\"remove\",\"path\":\"/\"}]", NULL },
	{ OPERATIONS, "[1,2,3]", "[{\"op\":\"remove\",\"path\":\"/1x\"}]", NULL },
	{ OPERATIONS, "[1,2,3]", "[{\"op\":\"remove\",\"path\":\"//\"}]", NULL },
	{ OPERATIONS, "[1,2,3]", "[{\"op\":\"remove\",\"path\":\"/:\"}]", NULL },
	{ OPERATIONS, "[1,2,3]", "[{\"op\":\"add\",\"path\":\"/:\",\"value\":1}]", NULL },
	{ OPERATIONS, "[1,2,3]", "[{\"op\":\"add\",\"path\":\"/!\",\"value\":1}]", NULL },
	{ OPERATIONS, "[1,2,3]", "[{\"op\":\"remove\",\"path\":\"/000000001\"}]", NULL },
	{ OPERATIONS, "[1,2,3]", "[{\"op\":\"remove\",\"path\":\"/100000000\"}]", NULL },
	{ OPERATIONS, "[1,2,3]", "[{\"op\":\"remove\",\"path\":\"/4294967297\"}]", NULL },
	{ OPERATIONS, "[1,2,3]", "[{\"op\":\"add\",\"path\":\"/3\",\"value\":4}]", "[1,2,3,4]" },
	{ OPERATIONS, "[1,2,3]", "[{\"op\":\"add\",\"path\":\"/4\",\"value\":4}]", NULL },
	{ OPERATIONS, "[1,2,3]", "[{\"op\":\"add\",\"path\":\"/-\",\"value\":4}]", "[1,2,3,4]" },
	{ OPERATIONS, "[1,2,3]", "[{\"op\":\"add\",\"path\":\"/1\",\"value\":4}]", "[1,4,2,3]" },
	{ OPERATIONS, "[1,2,3]", "[{\"op\":\"replace\",\"path\":\"/3\",\"value\":4}]", NULL },
	{ OPERATIONS, "[1,2,3]", "[{\"op\":\"replace\",\"path\":\"/2\",\"value\":4}]", "[1,2,4]" },
	{ OPERATIONS, "{\"a\":{\"b\":{\"c\":1}}}",
	  "[{\"op\":\"test\",\"path\":\"/a/b/c\",\"value\":1},{\"op\":\"remove\",\"path\":\"/a/b/c\"}]",
	  "{\"a\":{\"b\":{}}}" },
	{ OPERATIONS, "{\"a\":{\"b\":1}}", "[{\"op\":\"add\",\"path\":\"/a/x/c\",\"value\":1}]", NULL },
	{ OPERATIONS, "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":1}]", NULL },
	{ OPERATIONS, "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"b\",\"value\":1}]", NULL },
	{ OPERATIONS, "{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/b\"}]", NULL },
	{ OPERATIONS, "{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/ab\"}]",
	  "{\"ab\":{\"b\":1}}" },
	{ OPERATIONS, "{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a/b\",\"path\":\"/a\"}]",
	  "{\"a\":1}" },
	{ OPERATIONS, "{\"a\":{\"b\":1}}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/c\"}]",
	  "{\"a\":{\"b\":1,\"c\":{\"b\":1}}}" },
	{ OPERATIONS, "{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a\"}]",
	  "{\"a\":{\"b\":1}}" },
	{ OPERATIONS, "{\"a~\":{\"/\":1}}", "[{\"op\":\"test\",\"path\":\"/a~0/~1\",\"value\":1}]",
	  "{\"a~\":{\"/\":1}}" },
	{ OPERATIONS, "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a~2\",\"value\":1}]", NULL },
	{ OPERATIONS, "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a~\",\"value\":1}]", NULL },
	{ OPERATIONS, "{\"\":1}", "[{\"op\":\"remove\",\"path\":\"/\"}]", "{}" },
	{ OPERATIONS, "{\"a\":1}", "[{\"op\":\"tests\",\"path\":\"/a\",\"value\":1}]", NULL },
	{ OPERATIONS, "{\"a\":1}", "[{\"op\":\"move\",\"path\":\"/a\",\"value\":1}]", NULL },
	{ OPERATIONS, "{\"a\":1}", "[{\"path\":\"/a\",\"value\":1}]", NULL },
	{ OPERATIONS, "{\"a\":1}", "[{\"op\":\"add\",\"value\":1}]", NULL },
	{ OPERATIONS, "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\"}]", NULL },
	{ OPERATIONS, "{\"a\":1}", "[1]", NULL },
	{ OPERATIONS, "{\"a\":1}", "{\"op\":\"remove\",\"path\":\"/a\"}", NULL },
};

/* RFC 6902, appendix A; RFC 7386, appendix A, and merges beside it. */
static const struct row rfc_rows[] = {
	{ OPERATIONS, "{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/baz\",\"value\":\"qux\"}]",
	  "{\"foo\":\"bar\",\"baz\":\"qux\"}" },
	{ OPERATIONS, "{\"foo\":[\"bar\",\"baz\"]}",
	  "[{\"op\":\"add\",\"path\":\"/foo/1\",\"value\":\"qux\"}]", "{\"foo\":[\"bar\",\"qux\",\"baz\"]}" },
	{ OPERATIONS, "{\"baz\":\"qux\",\"foo\":\"bar\"}", "[{\"op\":\"remove\",\"path\":\"/baz\"}]",
	  "{\"foo\":\"bar\"}" },
	{ OPERATIONS, "{\"foo\":[\"bar\",\"qux\",\"baz\"]}", "[{\"op\":\"remove\",\"path\":\"/foo/1\"}]",
	  "{\"foo\":[\"bar\",\"baz\"]}" },
	{ OPERATIONS, "{\"baz\":\"qux\",\"foo\":\"bar\"}",
	  "[{\"op\":\"replace\",\"path\":\"/baz\",\"value\":\"boo\"}]", "{\"baz\":\"boo\",\"foo\":\"bar\"}" },
	{ OPERATIONS, "{\"foo\":{\"bar\":\"baz\",\"waldo\":\"fred\"},\"qux\":{\"corge\":\"grault\"}}",
	  "[{\"op\":\"move\",\"from\":\"/foo/waldo\",\"path\":\"/qux/thud\"}]",
	  "{\"foo\":{\"bar\":\"baz\"},\"qux\":{\"corge\":\"grault\",\"thud\":\"fred\"}}" },
	{ OPERATIONS, "{\"foo\":[\"all\",\"grass\",\"cows\",\"eat\"]}",
	  "[{\"op\":\"move\",\"from\":\"/foo/1\",\"path\":\"/foo/3\"}]",
	  "{\"foo\":[\"all\",\"cows\",\"eat\",\"grass\"]}" },
	{ OPERATIONS, "{\"baz\":\"qux\",\"foo\":[\"a\",2,\"c\"]}",
	  "[{\"op\":\"test\",\"path\":\"/baz\",\"value\":\"qux\"},{\"op\":\"test\",\"path\":\"/foo/"
	  "1\",\"value\":2}]",
	  "{\"baz\":\"qux\",\"foo\":[\"a\",2,\"c\"]}" },
	{ OPERATIONS, "{\"baz\":\"qux\"}", "[{\"op\":\"test\",\"path\":\"/baz\",\"value\":\"bar\"}]", NULL },
	{ OPERATIONS, "{\"foo\":\"bar\"}",
	  "[{\"op\":\"add\",\"path\":\"/child\",\"value\":{\"grandchild\":{}}}]",
	  "{\"foo\":\"bar\",\"child\":{\"grandchild\":{}}}" },
	{ OPERATIONS, "{\"foo\":\"bar\"}",
	  "[{\"op\":\"add\",\"path\":\"/baz\",\"value\":\"qux\",\"xyz\":123}]",
	  "{\"foo\":\"bar\",\"baz\":\"qux\"}" },
	{ OPERATIONS, "{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/baz/bat\",\"value\":\"qux\"}]",
	  NULL },
	{ OPERATIONS, "{\"/\":9,\"~1\":10}", "[{\"op\":\"test\",\"path\":\"/~01\",\"value\":10}]",
	  "{\"/\":9,\"~1\":10}" },
	{ OPERATIONS, "{\"/\":9,\"~1\":10}", "[{\"op\":\"test\",\"path\":\"/~01\",\"value\":\"10\"}]", NULL },
	{ OPERATIONS, "{\"foo\":[\"bar\"]}",
	  "[{\"op\":\"add\",\"path\":\"/foo/-\",\"value\":[\"abc\",\"def\"]}]",
	  "{\"foo\":[\"bar\",[\"abc\",\"def\"]]}" },
	{ MERGE, "{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
	{ MERGE, "{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}" },
	{ MERGE, "{\"a\":\"b\"}", "{\"a\":null}", "{}" },
	{ MERGE, "{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}" },
	{ MERGE, "{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
	{ MERGE, "{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}" },
	{ MERGE, "{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}" },
	{ MERGE, "{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}" },
	{ MERGE, "[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]" },
	{ MERGE, "{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]" },
	{ MERGE, "{\"a\":\"foo\"}", "null", "null" },
	{ MERGE, "{\"a\":\"foo\"}", "\"bar\"", "\"bar\"" },
	{ MERGE, "{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}" },
	{ MERGE, "[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}" },
	{ MERGE, "{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}" },
	{ MERGE, "{\"z\":1,\"a\":2}", "{\"z\":3}", "{\"z\":3,\"a\":2}" },
	{ MERGE, "{}", "{\"a\":[null,{\"b\":null}]}", "{\"a\":[null,{\"b\":null}]}" },
	{ MERGE, "{\"n\":9007199254740993}", "{}", "{\"n\":9007199254740993}" },
};

static void check_rows(const struct row *checked, size_t count)
{
	struct vdi_out out = VDI_OUT_INIT;

	for (size_t i = 0; i < count; i++) {
		vd_status status = apply(checked[i].kind, checked[i].target, checked[i].patch, &out);

		if ((status == VD_OK) != (checked[i].wanted != NULL) ||
		    (checked[i].wanted &&
		     !vd_bytes_equal(vdi_out_slice(&out), vd_bytes_of(checked[i].wanted))))
			fail_msg("%s %s: %.*s", checked[i].target, checked[i].patch, (int) out.size,
				 out.size ? out.data : "");
	}
	vdi_out_fini(&out);
}

static void h341_h342_patches_do_what_upstream_does(void **state)
{
	check_rows(rows, VDI_ARRAY_SIZE(rows));
}

/* rules: H-704 */
static void h341_h342_examples_of_the_rfcs(void **state)
{
	check_rows(rfc_rows, VDI_ARRAY_SIZE(rfc_rows));
}

static void h341_operations_at_borders(void **state)
{
	check_rows(operation_rows, VDI_ARRAY_SIZE(operation_rows));
}

static void out_of_memory_is_an_answer(void **state)
{
	int64_t live = vdi_alloc_live();

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		for (uint64_t nth = 1;; nth++) {
			struct vdi_out out = VDI_OUT_INIT;
			vd_status      status;
			bool	       failed;

			(void) vdi_alloc_fail_nth(nth, 1);
			status = apply(rows[i].kind, rows[i].target, rows[i].patch, &out);
			failed = vdi_alloc_failed();
			(void) vdi_alloc_fail_nth(0, 0);
			vdi_out_fini(&out);
			if (!failed)
				break;
			assert_true(status == VD_NOMEM || rows[i].wanted == NULL);
		}
	}
	assert_int_equal(vdi_alloc_live(), live);
}

/* Copies that double, nesting that grows: refused long before they hurt. */
static void r654_a_patch_cannot_grow_out_of_bounds(void **state)
{
	struct vdi_out patch = VDI_OUT_INIT, out = VDI_OUT_INIT;

	vdi_out_raw(&patch, "[");
	for (int i = 0; i < 64; i++)
		vdi_out_printf(&patch, "%s{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/%d\"}", i ? "," : "",
			       i % 2);
	vdi_out_printf(&patch, "]%c", 0);
	assert_status(apply(OPERATIONS, "{\"a\":[1,2]}", patch.data, &out), VD_TOO_BIG);

	vdi_out_reset(&patch);
	vdi_out_raw(&patch, "[");
	for (int i = 0; i <= VDI_PATCH_OPERATIONS_MAX; i++)
		vdi_out_printf(&patch, "%s{}", i ? "," : "");
	vdi_out_printf(&patch, "]%c", 0);
	assert_status(apply(OPERATIONS, "{}", patch.data, &out), VD_TOO_BIG);
	vdi_out_fini(&patch);
	vdi_out_fini(&out);
}

/* Applies text to the parsed target and answers what that took. */
static vd_status take_steps(enum kind kind, const struct vdi_out *target_text,
			    const struct vdi_out *patch_text, uint64_t *ret_steps, struct vd_error *reterr)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *target, *patch;
	uint64_t	 parsed;
	vd_status	 status;

	assert_false(target_text->failed || patch_text->failed);
	assert_status(vdi_tree_parse(&tree, vdi_out_slice(target_text), &target, reterr), VD_OK);
	assert_status(vdi_tree_parse(&tree, vdi_out_slice(patch_text), &patch, reterr), VD_OK);
	parsed = tree.steps;
	status = kind == OPERATIONS ? vdi_patch_operations(&tree, &target, patch, reterr) :
		 kind == MERGE	    ? vdi_patch_merge(&tree, &target, patch, reterr) :
				      vdi_patch_strategic(&tree, target, patch, reterr);
	*ret_steps = tree.steps - parsed;
	vdi_tree_fini(&tree);
	return status;
}

/* part: with one %d at most. */
__attribute__((format(printf, 3, 0))) static void fill(struct vdi_out *out, const char *begin,
						       const char *part, int count, const char *end)
{
	vdi_out_reset(out);
	vdi_out_raw(out, begin);
	for (int i = 0; i < count; i++) {
		vdi_out_raw(out, i ? "," : "");
		vdi_out_printf(out, part, i);
	}
	vdi_out_raw(out, end);
}

/* Ten thousand operations on a long array: near its ends they are cheap, in its middle they end with an
 * answer before they take long. */
static void r654_operations_times_elements_are_bounded(void **state)
{
	struct vdi_out	target = VDI_OUT_INIT, patch = VDI_OUT_INIT;
	struct vd_error error = { 0 };
	uint64_t	steps;

	fill(&target, "{\"a\":[", "1", 600000, "]}");
	fill(&patch, "[", "{\"op\":\"replace\",\"path\":\"/a/599999\",\"value\":2}", 10000, "]");
	assert_status(take_steps(OPERATIONS, &target, &patch, &steps, &error), VD_OK);
	assert_in_range(steps, 600000, 1000000);
	fill(&patch, "[", "{\"op\":\"replace\",\"path\":\"/a/300000\",\"value\":2}", 10000, "]");
	assert_status(take_steps(OPERATIONS, &target, &patch, &steps, &error), VD_TOO_BIG);
	assert_string_equal(error.message, "operation 31: the patch takes too many steps: fewer operations, "
					   "or shorter arrays, are needed");
	assert_in_range(steps, VDI_PATCH_STEPS_MAX, VDI_PATCH_STEPS_MAX + 1000000);
	/* A subtree that is moved to and fro is measured each time. */
	fill(&patch, "[",
	     "{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/b\"},{\"op\":\"move\",\"from\":\"/b\",\"path\":\"/"
	     "a\"}",
	     5000, "]");
	assert_status(take_steps(OPERATIONS, &target, &patch, &steps, &error), VD_TOO_BIG);
	assert_in_range(steps, VDI_PATCH_STEPS_MAX, VDI_PATCH_STEPS_MAX + 2000000);
	vdi_out_fini(&target);
	vdi_out_fini(&patch);
}

/* The bytes of the document are known after each operation, and so are those that were copied in between and
 * taken out again. */
static void r654_a_document_never_outgrows_a_body(void **state)
{
	struct vdi_out	target = VDI_OUT_INIT, patch = VDI_OUT_INIT;
	struct vd_error error = { 0 };
	uint64_t	steps;

	vdi_out_printf(&target, "{\"a\":\"%01000000d\"}", 0);
	fill(&patch, "[", "{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b%d\"}", 2, "]");
	assert_status(take_steps(OPERATIONS, &target, &patch, &steps, &error), VD_OK);
	fill(&patch, "[", "{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b%d\"}", 3, "]");
	assert_status(take_steps(OPERATIONS, &target, &patch, &steps, &error), VD_TOO_BIG);
	assert_non_null(
		strstr(error.message, "operation 2: the patched object would have more than 3145728 bytes"));
	fill(&patch, "[",
	     "{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"},{\"op\":\"remove\",\"path\":\"/b\"}", 100,
	     "]");
	assert_status(take_steps(OPERATIONS, &target, &patch, &steps, &error), VD_TOO_BIG);
	assert_non_null(strstr(error.message, "operation 6: the patch copies "));
	/* 654 bytes that double eleven times, from the outside inwards. */
	vdi_out_reset(&target);
	vdi_out_raw(&target, "{\"a\":[\"0123456789\"]}");
	fill(&patch, "[", "{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/-\"}", 50, "]");
	assert_status(take_steps(OPERATIONS, &target, &patch, &steps, &error), VD_TOO_BIG);
	/* Merges of two documents that are one too many. */
	vdi_out_reset(&target);
	vdi_out_printf(&target, "{\"a\":\"%02000000d\"}", 0);
	vdi_out_reset(&patch);
	vdi_out_printf(&patch, "{\"b\":\"%02000000d\"}", 0);
	assert_status(take_steps(MERGE, &target, &patch, &steps, &error), VD_TOO_BIG);
	assert_status(take_steps(STRATEGIC, &target, &patch, &steps, &error), VD_TOO_BIG);
	vdi_out_fini(&target);
	vdi_out_fini(&patch);
}

/* Members go in one step each, wherever they stand; elements of lists are looked for, so two long lists end
 * with an answer. */
static void r654_merges_take_bounded_steps(void **state)
{
	struct vdi_out	target = VDI_OUT_INIT, patch = VDI_OUT_INIT;
	struct vd_error error = { 0 };
	uint64_t	steps;

	fill(&target, "{", "\"k%d\":1", 100000, "}");
	fill(&patch, "{", "\"k%d\":null", 100000, "}");
	assert_status(take_steps(MERGE, &target, &patch, &steps, &error), VD_OK);
	assert_in_range(steps, 100000, 2000000);
	assert_status(take_steps(STRATEGIC, &target, &patch, &steps, &error), VD_OK);
	assert_in_range(steps, 100000, 2000000);
	fill(&target, "{\"spec\":{\"containers\":[", "{\"name\":\"%d\"}", 30000, "]}}");
	fill(&patch, "{\"spec\":{\"containers\":[", "{\"name\":\"x%d\"}", 30000, "]}}");
	assert_status(take_steps(STRATEGIC, &target, &patch, &steps, &error), VD_TOO_BIG);
	assert_in_range(steps, VDI_PATCH_STEPS_MAX, VDI_PATCH_STEPS_MAX + 200000);
	fill(&patch, "{\"spec\":{\"$setElementOrder/containers\":[", "{\"name\":\"x%d\"}", 30000, "]}}");
	assert_status(take_steps(STRATEGIC, &target, &patch, &steps, &error), VD_TOO_BIG);
	fill(&target, "{\"metadata\":{\"finalizers\":[", "\"a/%d\"", 100000, "]}}");
	fill(&patch, "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[", "\"a/x%d\"", 100000, "]}}");
	assert_status(take_steps(STRATEGIC, &target, &patch, &steps, &error), VD_TOO_BIG);
	fill(&patch, "{\"metadata\":{\"finalizers\":[", "\"a/x%d\"", 100000, "]}}");
	assert_status(take_steps(STRATEGIC, &target, &patch, &steps, &error), VD_TOO_BIG);
	fill(&patch, "{\"$retainKeys\":[", "\"a/x%d\"", 100000, "]}");
	fill(&target, "{", "\"k%d\":1", 100000, "}");
	assert_status(take_steps(STRATEGIC, &target, &patch, &steps, &error), VD_TOO_BIG);
	vdi_out_fini(&target);
	vdi_out_fini(&patch);
}

static unsigned chain_length(unsigned depth)
{
	return depth ? VDI_MAX(1, chain_length(depth - 1) + 1) : 0;
}

/* Measuring a value of n levels takes n steps, not 2^n: without that this test never ends. */
static void r654_depth_is_measured_in_one_walk(void **state)
{
	struct vdi_out patch = VDI_OUT_INIT, out = VDI_OUT_INIT;
	unsigned       evaluations = 0;

	assert_int_equal(VDI_MAX(++evaluations, 1), 1);
	assert_int_equal(VDI_MIN(++evaluations, 7), 2);
	assert_int_equal(chain_length(60), 60);
	vdi_out_raw(&patch, "[{\"op\":\"add\",\"path\":\"/a\",\"value\":");
	for (int i = 0; i < 58; i++)
		vdi_out_raw(&patch, "[");
	for (int i = 0; i < 58; i++)
		vdi_out_raw(&patch, "]");
	vdi_out_printf(&patch, "}]%c", 0);
	assert_status(apply(OPERATIONS, "{}", patch.data, &out), VD_OK);
	vdi_out_fini(&patch);
	vdi_out_fini(&out);
}

static void strict_json_only(void **state)
{
	static const char *const bad[] = { "",	       "{",	   "{\"a\":1,}",  "[1,]",
					   "01",       "1.",	   "+1",	  "nul",
					   "\"\x01\"", "\"\\x\"",  "\"\\ud800\"", "{\"a\":1,\"a\":2}",
					   "1 2",      "\"\xff\"", "{a:1}",	  "-",
					   "[1 2]" };
	struct vdi_out		 out = VDI_OUT_INIT;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(bad); i++)
		assert_status(apply(MERGE, bad[i], "{}", &out), VD_BAD_REQUEST);
	assert_status(apply(MERGE, "{\"a\":\"\\u0041\\ud83d\\ude00\\/<\"}", "{}", &out), VD_OK);
	assert_int_equal(out.size, strlen("{\"a\":\"A\xF0\x9F\x98\x80/\\u003c\"}"));
	assert_memory_equal(out.data, "{\"a\":\"A\xF0\x9F\x98\x80/\\u003c\"}", out.size);
	vdi_out_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h341_h342_examples_of_the_rfcs),
		cmocka_unit_test(h341_operations_at_borders),
		cmocka_unit_test(h341_h342_patches_do_what_upstream_does),
		cmocka_unit_test(out_of_memory_is_an_answer),
		cmocka_unit_test(r654_a_patch_cannot_grow_out_of_bounds),
		cmocka_unit_test(r654_operations_times_elements_are_bounded),
		cmocka_unit_test(r654_a_document_never_outgrows_a_body),
		cmocka_unit_test(r654_merges_take_bounded_steps),
		cmocka_unit_test(r654_depth_is_measured_in_one_walk),
		cmocka_unit_test(strict_json_only),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
