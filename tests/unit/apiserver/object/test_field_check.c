/* Unit tests of apiserver/object/field_check.c: what needs no connection. */
#include "vdtest.h"

#include "field_check.h"
#include "schema.h"

static const struct vdi_resource pods = { .group = "", .version = "v1", .kind = "Pod", .plural = "pods" };
static const struct vdi_resource widgets = {
	.group = "example.com", .version = "v1", .kind = "Widget", .plural = "widgets"
};

static const struct vdi_resource definitions = { .built_in = true,
						 .group = "apiextensions.k8s.io",
						 .version = "v1",
						 .kind = "CustomResourceDefinition",
						 .plural = "customresourcedefinitions" };

#define GOOD "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"priority\":1}}"
#define BAD "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"priority\":\"1\"}}"
#define ODD "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"prio\":\"1\"}}"
#define ODDER                                                                                                \
	"{\"metadata\":{\"name\":\"a\"},\"spec\":{\"pri\":1,\"prio\":\"1\",\"containers\":[{\"nosuch\":1}]}" \
	"}"

static void r612_a_patch_may_not_spoil_an_object(void **state)
{
	static const struct {
		const struct vdi_resource *resource;
		const char		  *current, *patched;
		vd_status		   status;
		const char		  *said; /* the sentence, or the members that are new */
	} rows[] = {
		{ &pods, GOOD, GOOD, VD_OK, "" },
		{ &pods, GOOD, BAD, VD_BAD_REQUEST, "spec.priority: is not a number" },
		{ &pods, BAD, GOOD, VD_OK, "" },
		{ &pods, BAD, BAD, VD_OK, "" },
		{ &pods, GOOD, ODD, VD_OK, "unknown field \"spec.prio\"" },
		{ &pods, ODD, ODD, VD_OK, "" }, /* what was there may stay */
		{ &pods, ODD, ODDER, VD_OK,
		  "unknown field \"spec.pri\", unknown field \"spec.containers[0].nosuch\"" },
		{ &widgets, GOOD, BAD, VD_OK, "" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_unknown_fields unknown = { .warnings = VDI_OUT_INIT, .refusal = VDI_OUT_INIT };
		struct vd_error		  error = { 0 };

		assert_status(vdi_field_check_patched(rows[i].resource, vd_bytes_of(rows[i].current),
						      vd_bytes_of(rows[i].patched), &unknown, &error),
			      rows[i].status);
		if (rows[i].status != VD_OK)
			assert_string_equal(error.message, rows[i].said);
		else
			assert_true(
				vd_bytes_equal(vdi_out_slice(&unknown.refusal), vd_bytes_of(rows[i].said)));
		assert_status(vdi_field_check_patched(rows[i].resource, vd_bytes_of(rows[i].current),
						      vd_bytes_of(rows[i].patched), NULL, NULL),
			      rows[i].status);
		vdi_unknown_fields_fini(&unknown);
	}
}

/* ---- Bodies ---- */

#define DEFINITION(members) "{\"metadata\":{\"name\":\"a\"},\"spec\":{" members "}}"
#define LONG                                                                                                 \
	"12345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678" \
	"9012345678901234567890"
#define UNKNOWN(path) "Warning: 299 - \"unknown field \\\"" path "\\\"\"\r\n"
#define POD_CANNOT "Pod in version \"v1\" cannot be handled as a Pod: "

static struct vdi_schema *schema_of(const char *text)
{
	struct vdi_tree		tree = VDI_TREE_INIT;
	struct vdi_field_errors field_errors = { 0 };
	struct vdi_schema      *schema;
	struct vdi_node	       *node;

	assert_status(vdi_tree_parse(&tree, vd_bytes_of(text), &node, NULL), VD_OK);
	assert_status(vdi_schema_compile(&tree, node, "", &schema, &field_errors), VD_OK);
	vdi_field_errors_fini(&field_errors);
	vdi_tree_fini(&tree);
	return schema;
}

static void r612_bodies_are_judged_as_was_asked(void **state)
{
	struct vdi_resource with_schema = widgets;
	struct vdi_schema  *schema;
	const struct {
		const struct vdi_resource *resource;
		const char		  *subresource, *validation, *body;
		const char		  *message; /* NULL: it may pass */
		const char		  *warnings;
	} rows[] = {
		{ &pods, "", "", GOOD, NULL, "" },
		{ &pods, "", "Strict", GOOD, NULL, "" },
		{ &pods, "", "", ODD, NULL, UNKNOWN("spec.prio") },
		{ &pods, "", "Warn", ODD, NULL, UNKNOWN("spec.prio") },
		{ &pods, "", "Ignore", ODD, NULL, "" },
		{ &pods, "", "Strict", ODD, POD_CANNOT "strict decoding error: unknown field \"spec.prio\"",
		  "" },
		{ &pods, "status", "Strict", ODD,
		  POD_CANNOT "strict decoding error: unknown field \"spec.prio\"", "" },
		{ &pods, "scale", "Strict", ODD, NULL, "" },
		{ &pods, "scale", "", BAD, NULL, "" },
		{ &pods, "", "Ignore", BAD, POD_CANNOT "spec.priority: is not a number", "" },
		{ &pods, "", "Warn", ODDER, NULL,
		  UNKNOWN("spec.pri") UNKNOWN("spec.prio") UNKNOWN("spec.containers[0].nosuch") },
		/* What is no JSON, or no object, is told by who takes it apart. */
		{ &pods, "", "Strict", "{", NULL, "" },
		{ &pods, "", "Strict", "[]", NULL, "" },
		{ &pods, "", "Strict", "\"{\"", NULL, "" },
		{ &pods, "", "Strict", "", NULL, "" },
		{ &pods, "", "Strict", " \t\r\n" ODD,
		  POD_CANNOT "strict decoding error: unknown field \"spec.prio\"", "" },
		{ &definitions, "", "Strict", "{\"spec\":{},\"spec\":{}}", NULL, "" },
		{ &with_schema, "", "Strict", "{\"spec\":{},\"spec\":{}}", NULL, "" },
		/* Custom kinds are what their schema says, or anything. */
		{ &widgets, "", "Strict", ODD, NULL, "" },
		{ &with_schema, "", "Strict", "{\"spec\":{\"a\":1}}", NULL, "" },
		{ &with_schema, "", "Warn", "{\"spec\":{\"a\":1,\"b\":2}}", NULL, UNKNOWN("spec.b") },
		{ &with_schema, "", "Strict", "{\"spec\":{\"a\":1,\"b\":2}}",
		  "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown "
		  "field \"spec.b\"",
		  "" },
		{ &with_schema, "", "Strict", "[1]", NULL, "" },
		{ &with_schema, "scale", "Strict", "{\"spec\":{\"a\":1,\"b\":2}}", NULL, "" },
		/* Definitions of kinds. */
		{ &definitions, "", "Strict", DEFINITION("\"group\":\"g\""), NULL, "" },
		{ &definitions, "", "Warn", DEFINITION("\"grup\":\"g\""), NULL, UNKNOWN("spec.grup") },
		{ &definitions, "", "Strict", DEFINITION("\"grup\":\"g\""),
		  "CustomResourceDefinition in version \"v1\" cannot be handled as a "
		  "CustomResourceDefinition: strict decoding error: unknown field \"spec.grup\"",
		  "" },
		{ &definitions, "", "Ignore", DEFINITION("\"group\":5"),
		  "CustomResourceDefinition in version \"v1\" cannot be handled as a "
		  "CustomResourceDefinition: spec.group: is not a string",
		  "" },
	};

	with_schema.schema = schema =
		schema_of("{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":"
			  "{\"a\":{\"type\":\"integer\"}}}}}");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_field_check check = { rows[i].resource, vd_bytes_of(rows[i].subresource),
						 vd_bytes_of(rows[i].validation) };
		struct vdi_out	       warnings = VDI_OUT_INIT;
		struct vdi_http_status status = { 0 };

		assert_status(vdi_field_check_body(&check, vd_bytes_of(rows[i].body), &warnings, &status),
			      rows[i].message ? VD_INVALID : VD_OK);
		assert_int_equal(status.code, rows[i].message ? 400 : 0);
		assert_string_equal(status.message, rows[i].message ? rows[i].message : "");
		assert_true(vd_bytes_equal(vdi_out_slice(&warnings), vd_bytes_of(rows[i].warnings)));
		vdi_out_fini(&warnings);
	}
	(void) vdi_schema_free(schema);
	assert_true(vdi_field_check_has_schema(&pods));
	assert_false(vdi_field_check_has_schema(&widgets));
}

/* A refusal has room for the first of them. */
static void many_unknown_members_are_cut_off(void **state)
{
	static const char body[] = "{\"a" LONG "\":1,\"b" LONG "\":1,\"c" LONG "\":1,\"d" LONG "\":1,\"e" LONG
				   "\":1,\"f" LONG "\":1,\"g" LONG "\":1,\"h" LONG "\":1}";
	struct vdi_field_check check = { .resource = &pods, .validation = vd_bytes_of("Strict") };
	struct vdi_out	       warnings = VDI_OUT_INIT;
	struct vdi_http_status status = { 0 };

	assert_status(vdi_field_check_body(&check, vd_bytes_of(body), &warnings, &status), VD_INVALID);
	assert_int_equal(strlen(status.message), strlen(POD_CANNOT "strict decoding error: ") + 700);
	assert_int_equal(warnings.size, 0);
	vdi_out_fini(&warnings);
}

static void metadata_has_the_types_of_every_kind(void **state)
{
	static const char *const rows[][2] = {
		{ "{\"name\":\"a\",\"labels\":{\"a\":\"b\"}}", "" },
		{ "{\"nosuch\":1}", "" },
		{ "{\"labels\":{\"a\":1}}", "metadata.labels.a: is not a string" },
		{ "{\"name\":1}", "metadata.name: is not a string" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_tree	 tree = VDI_TREE_INIT;
		struct vd_error	 error = { 0 };
		struct vdi_node *node;

		assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i][0]), &node, NULL), VD_OK);
		assert_status(vdi_field_check_metadata(node, &error), *rows[i][1] ? VD_BAD_REQUEST : VD_OK);
		assert_string_equal(error.message, rows[i][1]);
		vdi_tree_fini(&tree);
	}
}

static void check_without_memory(const struct vdi_resource *resource)
{
	int64_t live = vdi_alloc_live();

	for (uint64_t nth = 1;; nth++) {
		struct vdi_field_check check = { .resource = resource, .validation = vd_bytes_of("Strict") };
		struct vdi_out	       warnings = VDI_OUT_INIT;
		struct vdi_http_status status = { 0 };
		vd_status	       result;
		bool		       failed;

		vdi_alloc_fail_nth(nth, 1);
		result = vdi_field_check_body(&check, vd_bytes_of(ODD), &warnings, &status);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		vdi_out_fini(&warnings);
		assert_status(result, failed ? VD_NOMEM : VD_INVALID);
		assert_int_equal(status.code, failed ? 500 : 400);
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed)
			break;
	}
}

static void bodies_without_memory_are_500(void **state)
{
	struct vdi_resource with_schema = widgets;
	struct vdi_schema  *schema = schema_of("{\"type\":\"object\",\"properties\":{\"spec\":"
						"{\"type\":\"object\",\"properties\":"
						"{\"a\":{\"type\":\"integer\"}}}}}");

	with_schema.schema = schema;
	check_without_memory(&pods);
	check_without_memory(&definitions);
	check_without_memory(&with_schema);
	(void) vdi_schema_free(schema);
}

static void every_failed_allocation_is_reported(void **state)
{
	int64_t live = vdi_alloc_live();

	(void) state;
	for (uint64_t nth = 1;; nth++) {
		struct vdi_unknown_fields unknown = { .warnings = VDI_OUT_INIT, .refusal = VDI_OUT_INIT };
		vd_status		  result;
		bool			  failed;

		vdi_alloc_fail_nth(nth, 1);
		result = vdi_field_check_patched(&pods, vd_bytes_of(ODD), vd_bytes_of(ODDER), &unknown, NULL);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		vdi_unknown_fields_fini(&unknown);
		assert_status(result, failed ? VD_NOMEM : VD_OK);
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed)
			break;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r612_a_patch_may_not_spoil_an_object),
		cmocka_unit_test(r612_bodies_are_judged_as_was_asked),
		cmocka_unit_test(many_unknown_members_are_cut_off),
		cmocka_unit_test(metadata_has_the_types_of_every_kind),
		cmocka_unit_test(bodies_without_memory_are_500),
		cmocka_unit_test(every_failed_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
