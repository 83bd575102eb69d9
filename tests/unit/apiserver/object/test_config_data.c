/* Unit tests of apiserver/object/config_data.c: what is stored of a written Secret or ConfigMap, and what is
 * refused. */
#include "vdtest.h"

#include "config_data.h"

static const struct vdi_resource secrets = { .group = "",
					     .version = "v1",
					     .kind = "Secret",
					     .plural = "secrets",
					     .namespaced = true,
					     .built_in = true };
static const struct vdi_resource maps = { .group = "",
					  .version = "v1",
					  .kind = "ConfigMap",
					  .plural = "configmaps",
					  .namespaced = true,
					  .built_in = true };
static const struct vdi_resource custom = {
	.group = "example.com", .version = "v1", .kind = "Secret", .plural = "secrets", .namespaced = true
};

struct row {
	const struct vdi_resource *resource;
	const char		  *old; /* NULL: it is new */
	const char		  *sent;
	const char		  *text; /* what is stored, or the field errors */
};

static struct vdi_node *prepared(struct vdi_tree *tree, const struct vdi_resource *resource, const char *text)
{
	struct vdi_node *root;

	assert_status(vdi_tree_parse(tree, vd_bytes_of(text), &root, NULL), VD_OK);
	assert_status(vdi_config_data_prepare(resource, tree, root), VD_OK);
	return root;
}

static void check_without_memory(const struct row *row)
{
	bool failed = true;

	for (uint64_t nth = 1; failed; nth++) {
		int64_t			live = vdi_alloc_live();
		struct vdi_tree		tree = VDI_TREE_INIT;
		struct vdi_field_errors field_errors = { 0 };
		struct vdi_node *old = row->old ? prepared(&tree, row->resource, row->old) : NULL, *root;
		vd_status	 status;

		assert_status(vdi_tree_parse(&tree, vd_bytes_of(row->sent), &root, NULL), VD_OK);
		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_config_data_prepare(row->resource, &tree, root);
		if (status == VD_OK)
			status = vdi_config_data_validate(row->resource, &tree, root, old, &field_errors);
		failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		if (failed && status != VD_NOMEM && !field_errors.failed)
			fail_msg("%s: allocation %d is not reported", row->sent, (int) nth);
		vdi_field_errors_fini(&field_errors);
		vdi_tree_fini(&tree);
		assert_int_equal(vdi_alloc_live(), live);
	}
}

static void check(const struct row *row)
{
	struct vdi_tree		tree = VDI_TREE_INIT;
	struct vdi_field_errors field_errors = { 0 };
	struct vdi_out		stored = VDI_OUT_INIT;
	struct vdi_node	       *old = row->old ? prepared(&tree, row->resource, row->old) : NULL;
	struct vdi_node	       *root = prepared(&tree, row->resource, row->sent);
	struct vd_bytes		got;

	assert_status(vdi_config_data_validate(row->resource, &tree, root, old, &field_errors), VD_OK);
	vdi_tree_write(&stored, root);
	got = field_errors.count ? vdi_field_errors_message(&field_errors) : vdi_out_slice(&stored);
	if (!vd_bytes_equal(got, vd_bytes_of(row->text)))
		fail_msg("%s: %.*s", row->sent, (int) got.size, (const char *) got.data);
	vdi_out_fini(&stored);
	vdi_field_errors_fini(&field_errors);
	vdi_tree_fini(&tree);
	check_without_memory(row);
}

static void check_all(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check(&rows[i]);
}

static void a_secret_has_a_type(void **state)
{
	static const struct row rows[] = {
		{ &secrets, NULL, "{}", "{\"type\":\"Opaque\"}" },
		{ &secrets, NULL, "{\"type\":\"\"}", "{\"type\":\"Opaque\"}" },
		{ &secrets, NULL, "{\"type\":null}", "{\"type\":\"Opaque\"}" },
		{ &secrets, NULL, "{\"type\":\"a/b\"}", "{\"type\":\"a/b\"}" },
		{ &maps, NULL, "{}", "{}" },
		{ &custom, NULL, "{\"stringData\":{\"a\":\"b\"}}", "{\"stringData\":{\"a\":\"b\"}}" },
	};

	check_all(rows, VDI_ARRAY_SIZE(rows));
}

static void string_data_is_merged_and_never_stored(void **state)
{
	static const struct row rows[] = {
		{ &secrets, NULL, "{\"stringData\":{\"a\":\"x\"}}",
		  "{\"data\":{\"a\":\"eA==\"},\"type\":\"Opaque\"}" },
		{ &secrets, NULL,
		  "{\"data\":{\"a\":\"eQ==\",\"b\":\"eg==\"},\"stringData\":{\"a\":\"x\",\"c\":\"\"},"
		  "\"type\":\"t\"}",
		  "{\"data\":{\"a\":\"eA==\",\"b\":\"eg==\",\"c\":\"\"},\"type\":\"t\"}" },
		{ &secrets, NULL, "{\"stringData\":{\"a\":\"\\u00f6\\n\"}}",
		  "{\"data\":{\"a\":\"w7YK\"},\"type\":\"Opaque\"}" },
		{ &secrets, NULL, "{\"stringData\":{\"a\":null}}",
		  "{\"data\":{\"a\":\"\"},\"type\":\"Opaque\"}" },
		{ &secrets, NULL, "{\"stringData\":{}}", "{\"type\":\"Opaque\"}" },
		{ &secrets, NULL, "{\"stringData\":null,\"data\":null,\"immutable\":null}",
		  "{\"type\":\"Opaque\"}" },
		{ &secrets, NULL, "{\"data\":{\"a\":null}}", "{\"data\":{\"a\":\"\"},\"type\":\"Opaque\"}" },
		{ &secrets, NULL, "{\"data\":{\"a\":\"eA=\\r=\"}}",
		  "{\"data\":{\"a\":\"eA==\"},\"type\":\"Opaque\"}" },
		{ &secrets, NULL, "{\"data\":{\"a\":\"eA=\\n=\"}}",
		  "{\"data\":{\"a\":\"eA==\"},\"type\":\"Opaque\"}" },
		{ &secrets, NULL, "{\"data\":{\"a\":\"eA=\\r\\n=\\n\"}}",
		  "{\"data\":{\"a\":\"eA==\"},\"type\":\"Opaque\"}" },
		{ &maps, NULL, "{\"data\":{\"a\":null,\"b\":\"x\\n\"},\"binaryData\":{}}",
		  "{\"data\":{\"a\":\"\",\"b\":\"x\\n\"}}" },
	};

	check_all(rows, VDI_ARRAY_SIZE(rows));
}

#define SET "`immutable` is set"

static void what_is_immutable_does_not_change(void **state)
{
#define FIXED "\"immutable\":true,\"type\":\"t\""
#define FIXED_SECRET "{\"data\":{\"a\":\"eA==\"}," FIXED "}"
#define FIXED_MAP "{\"data\":{\"a\":\"x\"},\"binaryData\":{\"b\":\"eA==\"},\"immutable\":true}"
	static const struct row rows[] = {
		{ &secrets, FIXED_SECRET, FIXED_SECRET, FIXED_SECRET },
		{ &secrets, FIXED_SECRET, "{\"data\":{\"a\":\"eA==\"},\"type\":\"t\"}",
		  "immutable: Forbidden: field is immutable when " SET },
		{ &secrets, FIXED_SECRET, "{\"data\":{\"a\":\"eA==\"},\"immutable\":null,\"type\":\"t\"}",
		  "immutable: Forbidden: field is immutable when " SET },
		{ &secrets, FIXED_SECRET, "{\"data\":{\"a\":\"eA==\"},\"immutable\":false,\"type\":\"t\"}",
		  "immutable: Forbidden: field is immutable when " SET },
		{ &secrets, FIXED_SECRET, "{\"data\":{\"a\":\"eQ==\"}," FIXED "}",
		  "data: Forbidden: field is immutable when " SET },
		{ &secrets, FIXED_SECRET, "{\"data\":{\"a\":\"eA==\",\"b\":\"\"}," FIXED "}",
		  "data: Forbidden: field is immutable when " SET },
		{ &secrets, FIXED_SECRET, "{" FIXED "}", "data: Forbidden: field is immutable when " SET },
		{ &secrets, FIXED_SECRET,
		  "{\"data\":{\"a\":\"eA==\"},\"stringData\":{\"a\":\"y\"}," FIXED "}",
		  "data: Forbidden: field is immutable when " SET },
		{ &secrets, FIXED_SECRET,
		  "{\"data\":{\"a\":\"eQ==\"},\"stringData\":{\"a\":\"x\"}," FIXED "}", FIXED_SECRET },
		{ &secrets, FIXED_SECRET, "{\"data\":{\"a\":\"eA==\"},\"immutable\":true}",
		  "type: Invalid value: \"Opaque\": field is immutable" },
		{ &secrets, "{\"type\":\"t\"}", "{\"type\":\"u\"}",
		  "type: Invalid value: \"u\": field is immutable" },
		{ &secrets, "{\"data\":{}}", "{\"type\":\"Opaque\"}",
		  "{\"type\":\"Opaque\"}" }, /* stored without a type */
		{ &secrets, "{\"immutable\":true}", "{\"data\":{},\"immutable\":true}",
		  "{\"immutable\":true,\"type\":\"Opaque\"}" },
		{ &secrets, "{\"immutable\":false,\"data\":{\"a\":\"eA==\"}}",
		  "{\"immutable\":true,\"data\":{\"a\":\"eQ==\"}}",
		  "{\"immutable\":true,\"data\":{\"a\":\"eQ==\"},\"type\":\"Opaque\"}" },
		{ &maps, FIXED_MAP, FIXED_MAP, FIXED_MAP },
		{ &maps, FIXED_MAP, "{\"data\":{\"a\":\"x\"},\"binaryData\":{\"b\":\"eA==\"}}",
		  "immutable: Forbidden: field is immutable when " SET },
		{ &maps, FIXED_MAP,
		  "{\"data\":{\"a\":\"y\"},\"binaryData\":{\"b\":\"eA==\"},\"immutable\":true}",
		  "data: Forbidden: field is immutable when " SET },
		{ &maps, FIXED_MAP, "{\"data\":{\"a\":\"x\"},\"immutable\":true}",
		  "binaryData: Forbidden: field is immutable when " SET },
		/* an absent map is an empty one */
		{ &secrets, "{\"immutable\":true,\"type\":\"t\"}", FIXED_SECRET,
		  "data: Forbidden: field is immutable when " SET },
		{ &secrets, "{\"data\":{}," FIXED "}", "{" FIXED "}", "{" FIXED "}" },
		{ &secrets, "{\"data\":{}," FIXED "}", FIXED_SECRET,
		  "data: Forbidden: field is immutable when " SET },
		{ &maps, "{\"immutable\":true}", "{\"data\":{},\"binaryData\":{},\"immutable\":true}",
		  "{\"immutable\":true}" },
		{ &maps, "{\"immutable\":true}", FIXED_MAP,
		  "[data: Forbidden: field is immutable when " SET
		  ", binaryData: Forbidden: field is immutable when " SET "]" },
		{ &maps, FIXED_MAP, "{}",
		  "[immutable: Forbidden: field is immutable when " SET
		  ", data: Forbidden: field is immutable when " SET
		  ", binaryData: Forbidden: field is immutable when " SET "]" },
	};

	check_all(rows, VDI_ARRAY_SIZE(rows));
}

static void keys_are_file_names(void **state)
{
#define SHAPE                                                                                                \
	"a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or " \
	"'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
	static const struct row rows[] = {
		{ &maps, NULL, "{\"data\":{\"A_b-c.d\":\"\",\"...x\":\"\"}}",
		  "data[...x]: Invalid value: \"...x\": must not start with '..'" },
		{ &maps, NULL, "{\"data\":{\"a\":null,\"b\":\"x\"},\"binaryData\":{\"c\":null}}",
		  "{\"data\":{\"a\":\"\",\"b\":\"x\"},\"binaryData\":{\"c\":\"\"}}" },
		{ &maps, NULL, "{\"data\":null,\"binaryData\":{}}", "{}" },
		{ &maps, NULL, "{\"data\":{\".x\":\"\",\"0\":\"\"}}", "{\"data\":{\".x\":\"\",\"0\":\"\"}}" },
		{ &maps, NULL, "{\"data\":{\"a b\":\"\"}}", "data[a b]: Invalid value: \"a b\": " SHAPE },
		{ &maps, NULL, "{\"data\":{\"\":\"\"}}", "data[]: Invalid value: \"\": " SHAPE },
		{ &maps, NULL, "{\"binaryData\":{\".\":\"\"}}",
		  "binaryData[.]: Invalid value: \".\": must not be '.'" },
		{ &secrets, NULL, "{\"data\":{\"..\":\"\"}}",
		  "data[..]: Invalid value: \"..\": must not be '..'" },
		{ &secrets, NULL, "{\"stringData\":{\"a/b\":\"\"}}",
		  "data[a/b]: Invalid value: \"a/b\": " SHAPE },
		{ &maps, NULL, "{\"data\":{\"a\":\"\"},\"binaryData\":{\"a\":\"\"}}",
		  "data[a]: Invalid value: \"a\": duplicate of key present in binaryData" },
	};

	check_all(rows, VDI_ARRAY_SIZE(rows));
}

static void types_have_their_keys(void **state)
{
#define REDACTED "Invalid value: \"<secret contents redacted>\": must be a JSON object"
	static const struct row rows[] = {
		{ &secrets, NULL, "{\"type\":\"kubernetes.io/tls\",\"data\":{\"tls.crt\":\"\"}}",
		  "data[tls.key]: Required value" },
		{ &secrets, NULL,
		  "{\"type\":\"kubernetes.io/tls\",\"data\":{\"tls.crt\":\"\",\"tls.key\":\"\"}}",
		  "{\"type\":\"kubernetes.io/tls\",\"data\":{\"tls.crt\":\"\",\"tls.key\":\"\"}}" },
		{ &secrets, NULL, "{\"type\":\"kubernetes.io/basic-auth\"}",
		  "[data[username]: Required value, data[password]: Required value]" },
		{ &secrets, NULL, "{\"type\":\"kubernetes.io/basic-auth\",\"data\":{\"password\":\"\"}}",
		  "{\"type\":\"kubernetes.io/basic-auth\",\"data\":{\"password\":\"\"}}" },
		{ &secrets, NULL,
		  "{\"type\":\"kubernetes.io/ssh-auth\",\"stringData\":{\"ssh-privatekey\":\"\"}}",
		  "data[ssh-privatekey]: Required value" },
		{ &secrets, NULL,
		  "{\"type\":\"kubernetes.io/ssh-auth\",\"data\":{\"ssh-privatekey\":\"eA==\"}}",
		  "{\"type\":\"kubernetes.io/ssh-auth\",\"data\":{\"ssh-privatekey\":\"eA==\"}}" },
		{ &secrets, NULL, "{\"type\":\"kubernetes.io/dockercfg\"}",
		  "data[.dockercfg]: Required value" },
		{ &secrets, NULL, "{\"type\":\"kubernetes.io/dockercfg\",\"data\":{\".dockercfg\":\"\"}}",
		  "data[.dockercfg]: " REDACTED },
		{ &secrets, NULL,
		  "{\"type\":\"kubernetes.io/"
		  "dockerconfigjson\",\"stringData\":{\".dockerconfigjson\":\"[1]\"}}",
		  "data[.dockerconfigjson]: " REDACTED },
		{ &secrets, NULL,
		  "{\"type\":\"kubernetes.io/dockerconfigjson\",\"stringData\":{\".dockerconfigjson\":\" "
		  "{\\\"a\\\":{}}\"}}",
		  "{\"type\":\"kubernetes.io/"
		  "dockerconfigjson\",\"data\":{\".dockerconfigjson\":\"IHsiYSI6e319\"}}" },
		{ &secrets, NULL, "{\"type\":\"kubernetes.io/service-account-token\"}",
		  "metadata.annotations[kubernetes.io/service-account.name]: Required value" },
		{ &secrets, NULL,
		  "{\"metadata\":{\"annotations\":{\"kubernetes.io/"
		  "service-account.name\":\"s\"}},\"type\":\"kubernetes.io/service-account-token\"}",
		  "{\"metadata\":{\"annotations\":{\"kubernetes.io/"
		  "service-account.name\":\"s\"}},\"type\":\"kubernetes.io/service-account-token\"}" },
	};

	check_all(rows, VDI_ARRAY_SIZE(rows));
}

/* A MiB in all, of the values as they are without base64. */
static void values_have_a_bound(void **state)
{
	static char text[3 << 20];
	size_t	    size;

	for (int more = 0; more < 2; more++) {
		struct row row = { &maps, NULL, text,
				   more ? "[]: Too long: may not be more than 1048576 bytes" : text };

		size = (size_t) snprintf(text, sizeof text, "{\"data\":{\"a\":\"");
		memset(text + size, 'x', (1 << 20) - 1);
		(void) snprintf(text + size + (1 << 20) - 1, sizeof text - size - (1 << 20),
				"\"},\"binaryData\":{\"b\":\"%s\"}}", more ? "eHk=" : "eA==");
		check(&row);
		row.resource = &secrets;
		row.text = more ? "data: Too long: may not be more than 1048576 bytes" : text;
		size = (size_t) snprintf(text, sizeof text, "{\"type\":\"t\",\"data\":{\"a\":\"");
		memset(text + size, 'A', 1398100); /* 1048575 bytes */
		(void) snprintf(text + size + 1398100, sizeof text - size - 1398100, "\",\"b\":\"%s\"}}",
				more ? "eHk=" : "eA==");
		check(&row);
	}
}

static void every_failed_allocation_is_reported(void **state)
{
	static const char text[] = "{\"data\":{\"a\":\"eA==\\n\"},\"stringData\":{\".dockercfg\":\"{}\"},"
				   "\"type\":\"kubernetes.io/dockercfg\",\"immutable\":null}";
	bool		  failed = true;

	for (uint64_t nth = 1; failed; nth++) {
		int64_t			live = vdi_alloc_live();
		struct vdi_tree		tree = VDI_TREE_INIT;
		struct vdi_field_errors field_errors = { 0 };
		struct vdi_node	       *root;
		vd_status		status;

		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_tree_parse(&tree, vd_bytes_of(text), &root, NULL);
		if (status == VD_OK)
			status = vdi_config_data_prepare(&secrets, &tree, root);
		if (status == VD_OK)
			status = vdi_config_data_validate(&secrets, &tree, root, NULL, &field_errors);
		failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		vdi_field_errors_fini(&field_errors);
		vdi_tree_fini(&tree);
		assert_int_equal(vdi_alloc_live(), live);
	}
}

static void only_the_kinds_of_kubernetes_hold_such_data(void **state)
{
	static const struct vdi_resource others[] = {
		{ .group = "", .version = "v1", .plural = "secrets" },
		{ .group = "", .version = "v1", .plural = "pods", .built_in = true },
		{ .group = "example.com", .version = "v1", .plural = "configmaps", .built_in = true },
	};

	assert_true(vdi_config_data_is(&secrets));
	assert_true(vdi_config_data_is(&maps));
	for (size_t i = 0; i < VDI_ARRAY_SIZE(others); i++)
		assert_false(vdi_config_data_is(&others[i]));
}

static void keys_have_a_longest(void **state)
{
	char sent[400], expected[1200], name[260];

	for (int size = 252; size <= 254; size++) {
		struct row row = { &maps, NULL, sent, expected };

		memset(name, 'k', sizeof name);
		name[size] = 0;
		(void) snprintf(sent, sizeof sent, "{\"data\":{\"%s\":\"\"}}", name);
		(void) snprintf(expected, sizeof expected,
				size <= 253 ? "{\"data\":{\"%s\":\"\"}}" :
					      "data[%s]: Invalid value: \"%s\": must be no more than 253 "
					      "characters",
				name, name);
		check(&row);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_have_a_longest),
		cmocka_unit_test(only_the_kinds_of_kubernetes_hold_such_data),
		cmocka_unit_test(a_secret_has_a_type),
		cmocka_unit_test(string_data_is_merged_and_never_stored),
		cmocka_unit_test(what_is_immutable_does_not_change),
		cmocka_unit_test(keys_are_file_names),
		cmocka_unit_test(types_have_their_keys),
		cmocka_unit_test(values_have_a_bound),
		cmocka_unit_test(every_failed_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
