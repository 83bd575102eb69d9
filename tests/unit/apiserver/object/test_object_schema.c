/* Unit tests of apiserver/object/object_schema.c: creations, updates, patches and subresources of a kind that
 * has a schema, and of definitions. */
#include "vdtest.h"

#include "object_schema.h"

static const char schema_text[] =
	"{\"type\":\"object\",\"required\":[\"spec\"],\"properties\":{"
	"\"spec\":{\"type\":\"object\",\"properties\":{\"replicas\":{\"type\":\"integer\",\"minimum\":1,"
	"\"default\":3},\"colour\":{\"type\":\"string\",\"maxLength\":3}}},"
	"\"status\":{\"type\":\"object\",\"properties\":{\"phase\":{\"type\":\"string\",\"enum\":[\"a\","
	"\"b\"]}}}}}";

#define HEAD "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Tab\",\"metadata\":{\"name\":\"x\""
#define CURRENT                                                                                              \
	HEAD ",\"namespace\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"5\",\"generation\":1},\"spec\":{"     \
	     "\"replicas\":2,\"colour\":\"long\"},\"status\":{\"phase\":\"a\"}}"
/* written before the schema had a default */
#define PLAIN                                                                                                \
	HEAD ",\"namespace\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"5\",\"generation\":1},\"spec\":{}}"

struct fixture {
	struct vdi_schema     *schema;
	struct vdi_resource    resource;
	struct vdi_edited      edited;
	struct vdi_http_status status;
};

static void begin(struct fixture *fixture)
{
	struct vdi_tree		tree = VDI_TREE_INIT;
	struct vdi_field_errors field_errors = { 0 };
	struct vdi_node	       *source;

	memset(fixture, 0, sizeof *fixture);
	assert_status(vdi_tree_parse(&tree, vd_bytes_of(schema_text), &source, NULL), VD_OK);
	assert_status(vdi_schema_compile(&tree, source, "", &fixture->schema, &field_errors), VD_OK);
	vdi_field_errors_fini(&field_errors);
	vdi_tree_fini(&tree);
	fixture->resource = (struct vdi_resource) { .group = "example.com",
						    .version = "v1",
						    .kind = "Tab",
						    .plural = "tabs",
						    .namespaced = true,
						    .has_status = true,
						    .has_scale = true,
						    .has_generation = true,
						    .schema = fixture->schema };
}

static void end(struct fixture *fixture)
{
	vdi_edited_fini(&fixture->edited);
	(void) vdi_schema_free(fixture->schema);
}

struct row {
	enum vdi_edit_part    part;
	enum vdi_edit_patch   patch;
	enum vdi_edit_unknown unknown;
	const char	     *current; /* NULL: a creation */
	const char	     *body;
	const char	     *result; /* what is in it; or, of a refusal, its message */
	int		      code;   /* 0: it is fine */
};

static vd_status run(struct fixture *fixture, const struct row *row)
{
	struct vdi_edit edit = { .resource = &fixture->resource,
				 .namespace_name = vd_bytes_of("n"),
				 .body = vd_bytes_of(row->body),
				 .part = row->part,
				 .patch = row->patch,
				 .unknown = row->unknown };

	if (row->current == NULL)
		return vdi_edit_create(&edit, &fixture->edited, &fixture->status);
	edit.name = vd_bytes_of("x");
	return vdi_edit_update(&edit, vd_bytes_of(row->current), &fixture->edited, &fixture->status);
}

static const struct row rows[] = {
	{ 0, 0, 0, NULL, HEAD "},\"spec\":{\"odd\":1},\"status\":{\"phase\":\"zzz\"}}",
	  "\"spec\":{\"replicas\":3}}", 0 },
	{ 0, 0, 0, NULL, HEAD "}}", "Tab.example.com \"x\" is invalid: spec: Required value", 422 },
	{ 0, 0, 0, NULL, HEAD "},\"spec\":{\"replicas\":0,\"colour\":\"long\"}}",
	  "Tab.example.com \"x\" is invalid: [spec.replicas: Invalid value: 0: spec.replicas in body should "
	  "be greater than or equal to 1, spec.colour: Too long: may not be more than 3 bytes]",
	  422 },
	/* what was too long before may stay so */
	{ 0, 0, 0, CURRENT, HEAD ",\"resourceVersion\":\"5\"},\"spec\":{\"replicas\":4,\"colour\":\"long\"}}",
	  "\"spec\":{\"replicas\":4,\"colour\":\"long\"},\"status\":{\"phase\":\"a\"}}", 0 },
	{ 0, 0, 0, CURRENT,
	  HEAD ",\"resourceVersion\":\"5\"},\"spec\":{\"replicas\":4,\"colour\":\"other\"}}",
	  "Tab.example.com \"x\" is invalid: spec.colour: Too long: may not be more than 3 bytes", 422 },
	{ 0, VDI_PATCH_MERGE, 0, CURRENT, "{\"spec\":{\"replicas\":null,\"colour\":null}}",
	  "\"generation\":2},\"spec\":{\"replicas\":3}", 0 },
	/* a label does not make a new generation of an object that has only got its defaults */
	{ 0, VDI_PATCH_MERGE, 0, PLAIN, "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}", "\"generation\":1", 0 },
	{ 0, VDI_PATCH_MERGE, VDI_UNKNOWN_IGNORED, CURRENT, "{\"spec\":{\"odd\":1}}",
	  "\"spec\":{\"replicas\":2,\"colour\":\"long\"}", 0 },
	{ 0, VDI_PATCH_MERGE, VDI_UNKNOWN_WARNED, CURRENT, "{\"spec\":{\"odd\":1}}",
	  "\"spec\":{\"replicas\":2,\"colour\":\"long\"}", 0 },
	{ 0, VDI_PATCH_OPERATIONS, VDI_UNKNOWN_REFUSED, PLAIN,
	  "[{\"op\":\"add\",\"path\":\"/spec/odd\",\"value\":1}]",
	  " \"\" is invalid: patch: Invalid value: "
	  "\"{\\\"apiVersion\\\":\\\"example.com/"
	  "v1\\\",\\\"kind\\\":\\\"Tab\\\",\\\"metadata\\\":{\\\"name\\\":\\\"x\\\",\\\"namespace\\\":"
	  "\\\"n\\\","
	  "\\\"uid\\\":\\\"u\\\",\\\"resourceVersion\\\":\\\"5\\\",\\\"generation\\\":1},\\\"spec\\\":{"
	  "\\\"odd\\\":1}}\": strict decoding error: unknown field \"spec.odd\"",
	  422 },
	{ VDI_EDIT_STATUS, VDI_PATCH_MERGE, 0, CURRENT,
	  "{\"status\":{\"phase\":\"b\",\"odd\":1},\"spec\":{\"replicas\":9}}",
	  "\"spec\":{\"replicas\":2,\"colour\":\"long\"},\"status\":{\"phase\":\"b\"}}", 0 },
	{ VDI_EDIT_STATUS, VDI_PATCH_MERGE, 0, CURRENT, "{\"status\":{\"phase\":\"c\"}}",
	  "Tab.example.com \"x\" is invalid: status.phase: Unsupported value: \"c\": supported values: "
	  "\"a\", \"b\"",
	  422 },
	{ VDI_EDIT_SCALE, VDI_PATCH_MERGE, 0, CURRENT, "{\"spec\":{\"replicas\":7}}",
	  "\"spec\":{\"replicas\":7,\"colour\":\"long\"}", 0 },
	{ VDI_EDIT_SCALE, VDI_PATCH_MERGE, 0, CURRENT, "{\"spec\":{\"replicas\":0}}",
	  "Tab.example.com \"x\" is invalid: spec.replicas: Invalid value: 0: spec.replicas in body should "
	  "be greater than or equal to 1",
	  422 },
};

static void h340_writes_are_held_to_the_schema(void **state)
{
	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct fixture fixture;
		vd_status      status;

		begin(&fixture);
		status = run(&fixture, &rows[i]);
		assert_status(status, rows[i].code ? VD_INVALID : VD_OK);
		if (rows[i].code) {
			assert_int_equal(fixture.status.code, rows[i].code);
			assert_string_equal(fixture.status.message, rows[i].result);
		} else {
			vdi_out_raw(&fixture.edited.text, "\n");
			fixture.edited.text.data[fixture.edited.text.size - 1] = 0;
			if (strstr(fixture.edited.text.data, rows[i].result) == NULL)
				fail_msg("%s is not in %s", rows[i].result, fixture.edited.text.data);
		}
		assert_int_equal(fixture.edited.unknown.count, rows[i].unknown != VDI_UNKNOWN_IGNORED);
		end(&fixture);
	}
}

/* A patch is tried again when somebody else has written: what it brings is told once. */
static void unknown_members_are_told_once(void **state)
{
	static const struct row row = { 0,	 VDI_PATCH_MERGE,	   VDI_UNKNOWN_WARNED,
					CURRENT, "{\"spec\":{\"odd\":1}}", NULL,
					0 };
	struct fixture		fixture;

	begin(&fixture);
	for (int i = 0; i < 2; i++) {
		assert_status(run(&fixture, &row), VD_OK);
		assert_int_equal(fixture.edited.unknown.count, 1);
		assert_true(vd_bytes_equal(vdi_out_slice(&fixture.edited.unknown.refusal),
					   vd_bytes_of("unknown field \"spec.odd\"")));
	}
	end(&fixture);
}

/* Nothing changed, but what is stored has no defaults yet: it is written. */
static void defaults_alone_are_a_change(void **state)
{
	static const struct row once = { 0, VDI_PATCH_MERGE, 0, PLAIN, "{}", NULL, 0 },
				again = { 0, VDI_PATCH_MERGE, 0, CURRENT, "{}", NULL, 0 };
	struct fixture fixture;

	(void) state;
	begin(&fixture);
	assert_status(run(&fixture, &once), VD_OK);
	assert_false(fixture.edited.unchanged);
	assert_status(run(&fixture, &again), VD_OK);
	assert_true(fixture.edited.unchanged);
	end(&fixture);
}

static void every_failed_allocation_is_reported(void **state)
{
	int64_t live = vdi_alloc_live();

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		for (uint64_t nth = 1;; nth++) {
			struct fixture fixture;
			vd_status      status;
			bool	       failed;

			begin(&fixture);
			vdi_alloc_fail_nth(nth, 1);
			status = run(&fixture, &rows[i]);
			failed = vdi_alloc_failed();
			vdi_alloc_fail_nth(0, 0);
			end(&fixture);
			if (failed && status != VD_NOMEM)
				fail_msg("row %zu, allocation %llu: %s %d %s", i, (unsigned long long) nth,
					 vd_status_name(status), fixture.status.code, fixture.status.message);
			assert_int_equal(vdi_alloc_live(), live);
			if (!failed)
				break;
			assert_int_equal(fixture.status.code, 500);
		}
}

/* ---- Definitions: the tables of crd_fields.c ---- */

static const struct vdi_resource definitions = { .group = "apiextensions.k8s.io",
						 .version = "v1",
						 .kind = "CustomResourceDefinition",
						 .plural = "customresourcedefinitions",
						 .built_in = true,
						 .has_status = true,
						 .has_generation = true };

#define DEFINITION_HEAD                                                                                      \
	"{\"apiVersion\":\"apiextensions.k8s.io/"                                                            \
	"v1\",\"kind\":\"CustomResourceDefinition\",\"metadata\":{\"name\":\"tabs.example.com\""
#define DEFINITION_SPEC                                                                                      \
	"\"spec\":{\"group\":\"example.com\",\"scope\":\"Cluster\",\"names\":{\"plural\":\"tabs\","          \
	"\"singular\":\"tab\",\"kind\":\"Tab\",\"listKind\":\"TabList\"},\"versions\":[{"                    \
	"\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{\"type\":"        \
	"\"object\"}}}],\"conversion\":{\"strategy\":\"None\"}"
#define DEFINITION                                                                                           \
	DEFINITION_HEAD ",\"uid\":\"u\",\"resourceVersion\":\"5\",\"generation\":1}," DEFINITION_SPEC        \
			"},\"status\":{\"storedVersions\":[\"v1\"],\"conditions\":[]}}"

static const struct row definition_rows[] = {
	{ 0, 0, 0, NULL, DEFINITION_HEAD "}," DEFINITION_SPEC ",\"nosuch\":1}}",
	  "\"conversion\":{\"strategy\":\"None\"}},\"status\":", 0 },
	{ 0, 0, 0, NULL, DEFINITION_HEAD "},\"spec\":\"x\"}",
	  "cannot be handled as a CustomResourceDefinition: spec: is not an object", 400 },
	{ 0, 0, 0, DEFINITION,
	  DEFINITION_HEAD ",\"resourceVersion\":\"5\"}," DEFINITION_SPEC ",\"nosuch\":1}}",
	  "\"conversion\":{\"strategy\":\"None\"}},\"status\":", 0 },
	{ 0, VDI_PATCH_MERGE, VDI_UNKNOWN_IGNORED, DEFINITION, "{\"spec\":{\"nosuch\":1}}",
	  "\"conversion\":{\"strategy\":\"None\"}},\"status\":", 0 },
	{ 0, VDI_PATCH_MERGE, VDI_UNKNOWN_WARNED, DEFINITION, "{\"spec\":{\"nosuch\":1}}",
	  "\"conversion\":{\"strategy\":\"None\"}},\"status\":", 0 },
	{ 0, VDI_PATCH_OPERATIONS, VDI_UNKNOWN_REFUSED, DEFINITION,
	  "[{\"op\":\"add\",\"path\":\"/spec/versions/0/nosuch\",\"value\":1}]",
	  "strict decoding error: unknown field \"spec.versions[0].nosuch\"", 422 },
	{ 0, VDI_PATCH_MERGE, 0, DEFINITION, "{\"spec\":{\"versions\":\"x\"}}",
	  ": spec.versions: is not a list", 422 },
	{ VDI_EDIT_STATUS, VDI_PATCH_MERGE, 0, DEFINITION, "{\"status\":{\"storedVersions\":\"x\"}}",
	  ": status.storedVersions: is not a list", 422 },
	{ VDI_EDIT_STATUS, VDI_PATCH_MERGE, 0, DEFINITION, "{\"status\":{\"conditions\":\"x\"}}",
	  " \"\" is invalid: patch: Invalid value: \"{", 422 },
	{ VDI_EDIT_STATUS, VDI_PATCH_MERGE, VDI_UNKNOWN_REFUSED, DEFINITION, "{\"status\":{\"nosuch\":1}}",
	  "unknown field \"status.nosuch\"", 422 },
	{ VDI_EDIT_STATUS, VDI_PATCH_MERGE, 0, DEFINITION,
	  "{\"status\":{\"storedVersions\":[\"v1\",\"v2\"]}}", "\"storedVersions\":[\"v1\",\"v2\"]", 0 },
};

static vd_status run_definition(struct fixture *fixture, const struct row *row)
{
	struct vdi_edit edit = { .resource = &definitions,
				 .body = vd_bytes_of(row->body),
				 .part = row->part,
				 .patch = row->patch,
				 .unknown = row->unknown };

	memset(fixture, 0, sizeof *fixture);
	if (row->current == NULL)
		return vdi_edit_create(&edit, &fixture->edited, &fixture->status);
	edit.name = vd_bytes_of("tabs.example.com");
	return vdi_edit_update(&edit, vd_bytes_of(row->current), &fixture->edited, &fixture->status);
}

static void r612_definitions_are_what_they_can_be(void **state)
{
	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(definition_rows); i++) {
		const struct row *row = &definition_rows[i];
		struct fixture	  fixture;
		vd_status	  status = run_definition(&fixture, row);
		const char	 *text = fixture.status.message;

		vdi_out_bytes(&fixture.edited.text, (struct vd_bytes) { "", 1 });
		if (row->code == 0)
			text = fixture.edited.text.data;
		if (status != (row->code ? VD_INVALID : VD_OK) || fixture.status.code != row->code ||
		    strstr(text, row->result) == NULL || strstr(row->code ? "" : text, "nosuch"))
			fail_msg("%zu: %d %s", i, fixture.status.code, text);
		assert_int_equal(fixture.edited.unknown.count, row->unknown != VDI_UNKNOWN_IGNORED);
		vdi_edited_fini(&fixture.edited);
	}
}

static void every_failed_allocation_of_a_definition_is_reported(void **state)
{
	int64_t live = vdi_alloc_live();

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(definition_rows); i++)
		for (uint64_t nth = 1;; nth++) {
			struct fixture fixture;
			vd_status      status;
			bool	       failed;

			vdi_alloc_fail_nth(nth, 1);
			status = run_definition(&fixture, &definition_rows[i]);
			failed = vdi_alloc_failed();
			vdi_alloc_fail_nth(0, 0);
			vdi_edited_fini(&fixture.edited);
			if (failed && (status != VD_NOMEM || fixture.status.code != 500))
				fail_msg("row %zu, allocation %llu: %s %d %s", i, (unsigned long long) nth,
					 vd_status_name(status), fixture.status.code, fixture.status.message);
			assert_int_equal(vdi_alloc_live(), live);
			if (!failed)
				break;
		}
}

static const struct vdi_resource pods = { .group = "",
					  .version = "v1",
					  .kind = "Pod",
					  .plural = "pods",
					  .namespaced = true,
					  .built_in = true,
					  .has_status = true };

#define POD_HEAD                                                                                             \
	"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"x\",\"namespace\":\"n\",\"uid\":"  \
	"\"u\",\"resourceVersion\":\"5\"}"
#define POD POD_HEAD ",\"spec\":{\"nodeName\":\"a\"}}"
#define ODD_POD POD_HEAD ",\"spec\":{\"odd\":1}}"
#define QUOTED                                                                                               \
	"{\\\"apiVersion\\\":\\\"v1\\\",\\\"kind\\\":\\\"Pod\\\",\\\"metadata\\\":{\\\"name\\\":\\\"x\\\","  \
	"\\\"namespace\\\":\\\"n\\\",\\\"uid\\\":\\\"u\\\",\\\"resourceVersion\\\":\\\"5\\\"}"

/* Kubernetes' own kinds, which have tables; result: of a refusal its message, else what is told. */
static const struct row pod_rows[] = {
	{ 0, VDI_PATCH_MERGE, VDI_UNKNOWN_IGNORED, POD, "{\"spec\":{\"odd\":1}}", "", 0 },
	{ 0, VDI_PATCH_MERGE, VDI_UNKNOWN_WARNED, POD, "{\"spec\":{\"odd\":1}}", "unknown field \"spec.odd\"",
	  0 },
	{ 0, VDI_PATCH_MERGE, VDI_UNKNOWN_REFUSED, POD, "{\"spec\":{\"nodeName\":\"b\"}}", "", 0 },
	{ 0, VDI_PATCH_MERGE, VDI_UNKNOWN_REFUSED, ODD_POD, "{\"spec\":{\"nodeName\":\"b\"}}", "", 0 },
	{ 0, VDI_PATCH_MERGE, VDI_UNKNOWN_REFUSED, POD, "{\"spec\":{\"odd\":1},\"more\":2}",
	  " \"\" is invalid: patch: Invalid value: \"" QUOTED
	  ",\\\"spec\\\":{\\\"nodeName\\\":\\\"a\\\",\\\"odd\\\":1},\\\"more\\\":2}\": "
	  "strict decoding error: unknown field \"spec.odd\", unknown field \"more\"",
	  422 },
	{ 0, VDI_PATCH_OPERATIONS, VDI_UNKNOWN_REFUSED, POD,
	  "[{\"op\":\"add\",\"path\":\"/spec/odd\",\"value\":1}]",
	  " \"\" is invalid: patch: Invalid value: \"" QUOTED
	  ",\\\"spec\\\":{\\\"nodeName\\\":\\\"a\\\",\\\"odd\\\":1}}\": strict decoding error: unknown field "
	  "\"spec.odd\"",
	  422 },
	{ 0, VDI_PATCH_STRATEGIC, VDI_UNKNOWN_REFUSED, POD,
	  "{\"spec\":{\"odd\":[1,null,{}],\"nodeName\":\"a "
	  "b\"},\"metadata\":{\"labels\":{\"b\":\"\",\"a\":\"x\"}}}",
	  " \"\" is invalid: patch: Invalid value: \"map[metadata:map[labels:map[a:x b:]] "
	  "spec:map[nodeName:a b odd:[1 <nil> map[]]]]\": strict decoding error: "
	  "unknown field \"spec.odd\"",
	  422 },
	{ 0, VDI_PATCH_MERGE, VDI_UNKNOWN_IGNORED, POD, "{\"spec\":{\"priority\":\"1\"}}",
	  " \"\" is invalid: patch: Invalid value: \"" QUOTED
	  ",\\\"spec\\\":{\\\"nodeName\\\":\\\"a\\\",\\\"priority\\\":\\\"1\\\"}}\": spec.priority: is not a "
	  "number",
	  422 },
	/* Bodies that are no patches were judged as they came (field_check.h), not again. */
	{ 0, VDI_PATCH_NONE, VDI_UNKNOWN_REFUSED, POD, POD_HEAD ",\"spec\":{\"priority\":\"1\",\"odd\":1}}",
	  "", 0 },
	{ VDI_EDIT_STATUS, VDI_PATCH_MERGE, VDI_UNKNOWN_REFUSED, POD, "{\"status\":{\"odd\":1}}",
	  " \"\" is invalid: patch: Invalid value: \"" QUOTED
	  ",\\\"spec\\\":{\\\"nodeName\\\":\\\"a\\\"},\\\"status\\\":{\\\"odd\\\":1}}\": strict decoding "
	  "error: unknown field \"status.odd\"",
	  422 },
};

static vd_status run_pod(struct fixture *fixture, const struct row *row)
{
	struct vdi_edit edit = { .resource = &pods,
				 .namespace_name = vd_bytes_of("n"),
				 .name = vd_bytes_of("x"),
				 .body = vd_bytes_of(row->body),
				 .part = row->part,
				 .patch = row->patch,
				 .unknown = row->unknown };

	memset(fixture, 0, sizeof *fixture);
	return vdi_edit_update(&edit, vd_bytes_of(row->current), &fixture->edited, &fixture->status);
}

static void r612_patches_bring_what_the_kind_has(void **state)
{
	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(pod_rows); i++) {
		const struct row *row = &pod_rows[i];
		struct fixture	  fixture;

		assert_status(run_pod(&fixture, row), row->code ? VD_INVALID : VD_OK);
		assert_int_equal(fixture.status.code, row->code);
		if (row->code)
			assert_string_equal(fixture.status.message, row->result);
		else
			assert_true(vd_bytes_equal(vdi_out_slice(&fixture.edited.unknown.refusal),
						   vd_bytes_of(row->result)));
		vdi_edited_fini(&fixture.edited);
	}
}

static void every_failed_allocation_of_a_patch_is_reported(void **state)
{
	int64_t live = vdi_alloc_live();

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(pod_rows); i++)
		for (uint64_t nth = 1;; nth++) {
			struct fixture fixture;
			vd_status      status;
			bool	       failed;

			vdi_alloc_fail_nth(nth, 1);
			status = run_pod(&fixture, &pod_rows[i]);
			failed = vdi_alloc_failed();
			vdi_alloc_fail_nth(0, 0);
			vdi_edited_fini(&fixture.edited);
			if (failed && (status != VD_NOMEM || fixture.status.code != 500))
				fail_msg("row %zu, allocation %llu: %s %d %s", i, (unsigned long long) nth,
					 vd_status_name(status), fixture.status.code, fixture.status.message);
			assert_int_equal(vdi_alloc_live(), live);
			if (!failed)
				break;
		}
}

/* The message of a refused patch names its own field errors only, also when the patch is tried again. */
static void a_refused_patch_is_refused_alike_again(void **state)
{
	struct row row = { 0,  VDI_PATCH_MERGE, VDI_UNKNOWN_REFUSED, CURRENT, "{\"spec\":{\"odd\":1}}", NULL,
			   422 };
	struct fixture fixture;
	char	       first[sizeof fixture.status.message];

	begin(&fixture);
	for (int i = 0; i < 3; i++) {
		assert_status(run(&fixture, &row), VD_INVALID);
		assert_int_equal(fixture.status.code, 422);
		assert_non_null(strstr(fixture.status.message,
				       "}\": strict decoding error: unknown field \"spec.odd\""));
		if (i == 0)
			strcpy(first, fixture.status.message);
		assert_string_equal(fixture.status.message, first);
		assert_int_equal(fixture.edited.field_errors.count, 1);
	}
	row.body = "{\"spec\":{\"other\":1}}";
	assert_status(run(&fixture, &row), VD_INVALID);
	assert_null(strstr(fixture.status.message, "spec.odd"));
	assert_non_null(strstr(fixture.status.message, "unknown field \"spec.other\""));
	end(&fixture);
}

/* Defaults that would make an object too large are 413. */
static void defaults_make_an_object_too_large(void **state)
{
	struct vdi_out		schema_out = VDI_OUT_INIT, body = VDI_OUT_INIT;
	struct vdi_tree		tree = VDI_TREE_INIT;
	struct vdi_field_errors field_errors = { 0 };
	struct vdi_edited	edited = { 0 };
	struct vdi_http_status	status = { 0 };
	struct vdi_resource	resource = {
		    .group = "example.com", .version = "v1", .kind = "Tab", .plural = "tabs"
	};
	struct vdi_edit	   edit = { .resource = &resource };
	struct vdi_schema *schema = NULL;
	struct vdi_node	  *source;

	vdi_out_raw(&schema_out,
		    "{\"type\":\"object\",\"properties\":{\"l\":{\"type\":\"array\",\"items\":{\"type\":"
		    "\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"default\":\"");
	for (int i = 0; i < 5000; i++)
		vdi_out_raw(&schema_out, "x");
	vdi_out_raw(&schema_out, "\"}}}}}}");
	vdi_out_raw(&body, HEAD "},\"l\":[{}");
	for (int i = 0; i < 20000; i++)
		vdi_out_raw(&body, ",{}");
	vdi_out_raw(&body, "]}");
	assert_status(vdi_tree_parse(&tree, vdi_out_slice(&schema_out), &source, NULL), VD_OK);
	assert_status(vdi_schema_compile(&tree, source, "", &schema, &field_errors), VD_OK);
	resource.schema = schema;
	edit.body = vdi_out_slice(&body);
	assert_status(vdi_edit_create(&edit, &edited, &status), VD_INVALID);
	assert_int_equal(status.code, 413);
	assert_string_equal(status.reason, "RequestEntityTooLarge");
	assert_string_equal(status.message, "the object's defaults make it too large");
	(void) vdi_schema_free(schema);
	vdi_edited_fini(&edited);
	vdi_field_errors_fini(&field_errors);
	vdi_tree_fini(&tree);
	vdi_out_fini(&schema_out);
	vdi_out_fini(&body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refused_patch_is_refused_alike_again),
		cmocka_unit_test(defaults_make_an_object_too_large),
		cmocka_unit_test(h340_writes_are_held_to_the_schema),
		cmocka_unit_test(defaults_alone_are_a_change),
		cmocka_unit_test(unknown_members_are_told_once),
		cmocka_unit_test(every_failed_allocation_is_reported),
		cmocka_unit_test(r612_definitions_are_what_they_can_be),
		cmocka_unit_test(every_failed_allocation_of_a_definition_is_reported),
		cmocka_unit_test(r612_patches_bring_what_the_kind_has),
		cmocka_unit_test(every_failed_allocation_of_a_patch_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
