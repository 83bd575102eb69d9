/* Unit tests of apiserver/schema/schema_validate.c (and schema_value.c, schema_default.c): what a write makes
 * of an object. The texts were seen from k8s.io/apiextensions-apiserver v0.36.3 on the same schemas and
 * objects. */
#include "vdtest.h"

#include "schema.h"

struct row {
	const char *schema;
	const char *object;
	const char *old;	  /* or NULL */
	const char *result;	  /* after defaulting and pruning; NULL: as it was */
	const char *field_errors; /* `field: message` joined; NULL: none */
};

struct outcome {
	struct vdi_out result, unknown, field_errors;
	vd_status      status;
};

static void note_unknown(void *arg, struct vd_bytes path)
{
	struct vdi_out *out = arg;

	if (out->size)
		vdi_out_raw(out, " ");
	vdi_out_bytes(out, path);
}

static vd_status validator(struct vdi_tree *tree, const struct row *row,
			   struct vdi_field_errors *field_errors, struct vdi_out *result,
			   struct vdi_out *unknown)
{
	struct vdi_schema *schema = NULL;
	struct vdi_node	  *source, *object, *old = NULL;
	struct vd_error	   error;
	vd_status	   status;

	VDI_TRY(vdi_tree_parse(tree, vd_bytes_of(row->schema), &source, &error));
	VDI_TRY(vdi_tree_parse(tree, vd_bytes_of(row->object), &object, &error));
	if (row->old)
		VDI_TRY(vdi_tree_parse(tree, vd_bytes_of(row->old), &old, &error));
	status = vdi_schema_compile(tree, source, "", &schema, field_errors);
	if (status == VD_INVALID)
		fail_msg("%s: %.*s", row->schema, (int) vdi_field_errors_message(field_errors).size,
			 (const char *) vdi_field_errors_message(field_errors).data);
	if (status == VD_OK)
		status = vdi_schema_default(schema, tree, object);
	if (status == VD_OK)
		status = vdi_schema_prune(schema, tree, object, note_unknown, unknown);
	if (status == VD_OK) {
		vdi_tree_write(result, object);
		status = vdi_schema_validate(schema, tree, object, old, VDI_SCHEMA_WHOLE, field_errors);
	}
	(void) vdi_schema_free(schema);
	return result->failed || unknown->failed ? VD_NOMEM : status;
}

static void outcome_of(const struct row *row, struct outcome *outcome)
{
	struct vdi_tree		tree = VDI_TREE_INIT;
	struct vdi_field_errors field_errors = { 0 };

	*outcome = (struct outcome) { .status = VD_OK };
	outcome->status = validator(&tree, row, &field_errors, &outcome->result, &outcome->unknown);
	if (outcome->status == VD_INVALID)
		vdi_out_bytes(&outcome->field_errors, vdi_field_errors_message(&field_errors));
	outcome->field_errors.failed |= field_errors.document.failed;
	vdi_field_errors_fini(&field_errors);
	vdi_tree_fini(&tree);
}

static void free_outcome(struct outcome *outcome)
{
	vdi_out_fini(&outcome->result);
	vdi_out_fini(&outcome->unknown);
	vdi_out_fini(&outcome->field_errors);
}

static void assert_text(const struct row *row, const struct vdi_out *got, const char *wanted)
{
	if (!vd_bytes_equal(vdi_out_slice(got), vd_bytes_of(wanted)))
		fail_msg("%s with %s:\nis  %.*s\nnot %s", row->schema, row->object, (int) got->size,
			 got->size ? got->data : "", wanted);
}

static void check_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct outcome outcome;

		outcome_of(&rows[i], &outcome);
		assert_text(&rows[i], &outcome.field_errors,
			    rows[i].field_errors ? rows[i].field_errors : "");
		assert_status(outcome.status, rows[i].field_errors ? VD_INVALID : VD_OK);
		if (rows[i].result)
			assert_text(&rows[i], &outcome.result, rows[i].result);
		free_outcome(&outcome);
	}
}

#define OBJECT(properties) "{\"type\":\"object\",\"properties\":{" properties "}}"

static void types_and_their_limits(void **state)
{
	static const struct row rows[] = {
		/* A format is no way around a number\"s type; a list passes for a string that has one. */
		{ OBJECT("\"a\":{\"type\":\"integer\",\"format\":\"int32\"}"), "{\"a\":\"x\"}", NULL, NULL,
		  "a: Invalid value: \"string\": a in body must be of type integer: \"string\"" },
		{ OBJECT("\"a\":{\"type\":\"number\",\"format\":\"double\"}"), "{\"a\":[\"x\"]}", NULL, NULL,
		  "a: Invalid value: \"array\": a in body must be of type number: \"array\"" },
		{ OBJECT("\"a\":{\"type\":\"string\",\"format\":\"date\"}"), "{\"a\":[]}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"boolean\"}"), "{\"a\":\"true\"}", NULL, NULL,
		  "a: Invalid value: \"string\": a in body must be of type boolean: \"string\"" },
		{ OBJECT("\"a\":{\"type\":\"integer\"}"), "{\"a\":1}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"integer\"}"), "{\"a\":1.0}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"integer\"}"), "{\"a\":\"1\"}", NULL, NULL,
		  "a: Invalid value: \"string\": a in body must be of type integer: \"string\"" },
		{ OBJECT("\"a\":{\"type\":\"string\"}"), "{\"a\":[]}", NULL, NULL,
		  "a: Invalid value: \"array\": a in body must be of type string: \"array\"" },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"format\":\"int32\"}"), "{\"a\":2147483648}", NULL,
		  NULL,
		  "<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in "
		  "a" },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":10}"), "{\"a\":11}", NULL,
		  NULL, "a: Invalid value: 11: a in body should be less than or equal to 10" },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"minimum\":1,\"exclusiveMinimum\":true}"), "{\"a\":1}",
		  NULL, NULL, "a: Invalid value: 1: a in body should be greater than 1" },
		{ OBJECT("\"a\":{\"type\":\"number\",\"maximum\":2.5}"), "{\"a\":1e3}", NULL, NULL,
		  "a: Invalid value: 1000: a in body should be less than or equal to 2.5" },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"multipleOf\":3}"), "{\"a\":7}", NULL, NULL,
		  "a: Invalid value: 7: a in body should be a multiple of 3" },
		{ OBJECT("\"a\":{\"type\":\"string\",\"maxLength\":2}"), "{\"a\":\"\xC3\xA9\xC3\xA9\"}", NULL,
		  NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"string\",\"maxLength\":2}"), "{\"a\":\"abc\"}", NULL, NULL,
		  "a: Too long: may not be more than 2 bytes" },
		{ OBJECT("\"a\":{\"type\":\"string\",\"minLength\":0}"), "{\"a\":\"\"}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"string\",\"minLength\":2}"), "{\"a\":\"ab\"}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"string\",\"format\":\"date\"}"), "{\"a\":7}", NULL, NULL,
		  "a: Invalid value: \"int64\": a in body must be of type date: \"int64\"" },
		{ OBJECT("\"a\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"set\",\"items\":{\"type\":"
			 "\"object\",\"x-kubernetes-map-type\":\"atomic\",\"properties\":{"
			 "\"x\":{\"type\":\"integer\"},\"y\":{\"type\":\"integer\"}}}}"),
		  "{\"a\":[{\"x\":1,\"y\":2},{\"y\":2,\"x\":1}]}", NULL, NULL,
		  "a[1]: Duplicate value: {\"y\":2,\"x\":1}" },
		{ OBJECT("\"a\":{\"type\":\"string\",\"minLength\":2}"), "{\"a\":\"a\"}", NULL, NULL,
		  "a: Invalid value: \"a\": a in body should be at least 2 chars long" },
		{ OBJECT("\"a\":{\"type\":\"string\",\"pattern\":\"^b+$\"}"), "{\"a\":\"ab\"}", NULL, NULL,
		  "a: Invalid value: \"ab\": a in body should match '^b+$'" },
		{ OBJECT("\"a\":{\"type\":\"string\",\"enum\":[\"x\",\"y\"]}"), "{\"a\":\"z\"}", NULL, NULL,
		  "a: Unsupported value: \"z\": supported values: \"x\", \"y\"" },
		{ OBJECT("\"a\":{\"type\":\"string\",\"format\":\"date-time\"}"), "{\"a\":\"yesterday\"}",
		  NULL, NULL,
		  "a: Invalid value: \"yesterday\": a in body must be of type date-time: \"yesterday\"" },
		{ OBJECT("\"a\":{\"type\":\"string\",\"format\":\"nobody-knows\"}"), "{\"a\":\"x\"}", NULL,
		  NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"array\",\"maxItems\":1,\"items\":{\"type\":\"string\"}}"),
		  "{\"a\":[\"x\",\"y\"]}", NULL, NULL, "a: Too many: 2: must have at most 1 item" },
		{ OBJECT("\"a\":{\"type\":\"array\",\"minItems\":1,\"items\":{\"type\":\"string\"}}"),
		  "{\"a\":[]}", NULL, NULL, "a: Invalid value: 0: a in body should have at least 1 items" },
		{ OBJECT("\"a\":{\"type\":\"object\",\"maxProperties\":1,\"additionalProperties\":{\"type\":"
			 "\"integer\"}}"),
		  "{\"a\":{\"x\":1,\"y\":\"z\"}}", NULL, NULL,
		  "[a: Too many: 2: must have at most 1 item, a.y: Invalid value: \"string\": a.y in body "
		  "must be of type integer: \"string\"]" },
		{ OBJECT("\"a\":{\"type\":\"object\",\"required\":[\"b\"],\"properties\":{\"b\":{\"type\":"
			 "\"string\"}}}"),
		  "{\"a\":{}}", NULL, NULL, "a.b: Required value" },
		{ OBJECT("\"a\":{\"type\":\"object\",\"additionalProperties\":false}"), "{\"a\":{\"v\":1}}",
		  NULL, NULL, "a: Invalid value: \"v\": a.v in body is a forbidden property" },
		{ OBJECT("\"a\":{\"x-kubernetes-int-or-string\":true}"), "{\"a\":1}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"x-kubernetes-int-or-string\":true}"), "{\"a\":\"1%\"}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"x-kubernetes-int-or-string\":true}"), "{\"a\":true}", NULL, NULL,
		  "a: Invalid value: \"boolean\": a in body must be of type integer,string: \"boolean\"" },
	};

	(void) state;
	check_rows(rows, VDI_ARRAY_SIZE(rows));
}

static void all_any_one_not(void **state)
{
	static const struct row rows[] = {
		/* What an item or a member is not, its list or object is not. */
		{ OBJECT("\"a\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"anyOf\":[{\"items\":{"
			 "\"pattern\":\"^x\"}},{\"maxItems\":1}]}"),
		  "{\"a\":[\"x\",\"y\"]}", NULL, NULL,
		  "[<nil>: Invalid value: \"\": \"a\" must validate at least one schema (anyOf), a[1]: "
		  "Invalid value: \"y\": a[1] in body should match '^x']" },
		{ OBJECT("\"a\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"anyOf\":[{\"items\":{"
			 "\"pattern\":\"^x\"}},{\"maxItems\":1}]}"),
		  "{\"a\":[\"x\",\"x\"]}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"string\"}},\"not\":{"
			 "\"properties\":{\"b\":{\"pattern\":\"^x\"}}}}"),
		  "{\"a\":{\"b\":\"y\"}}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"not\":{\"items\":{"
			 "\"pattern\":\"^x\"}}}"),
		  "{\"a\":[\"x\",\"y\"]}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"allOf\":[{\"minimum\":5}],\"anyOf\":[{\"minimum\":6}]"
			 ",\"oneOf\":[{\"minimum\":7}],\"not\":{\"minimum\":1}}"),
		  "{\"a\":3}", NULL, NULL,
		  "[<nil>: Invalid value: \"\": \"a\" must validate at least one schema (anyOf), a: Invalid "
		  "value: 3: a in body should be greater than or equal to 6, <nil>: Invalid value: \"\": "
		  "\"a\" must validate one and only one schema (oneOf). Found none valid, a: Invalid value: "
		  "3: a in body should be greater than or equal to 7, a: Invalid value: 3: a in body should "
		  "be greater than or equal to 5, <nil>: Invalid value: \"\": \"a\" must validate all the "
		  "schemas (allOf). None validated, <nil>: Invalid value: \"\": \"a\" must not validate the "
		  "schema (not)]" },
		{ OBJECT("\"a\":{\"type\":\"string\",\"anyOf\":[{\"pattern\":\"^x\"},{\"maxLength\":1}]}"),
		  "{\"a\":\"y\"}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"string\",\"oneOf\":[{\"anyOf\":[{\"pattern\":\"^x\"},{"
			 "\"maxLength\":1}]},{\"maxLength\":9}]}"),
		  "{\"a\":\"yy\"}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"string\",\"anyOf\":[{\"pattern\":\"^x\"},{\"maxLength\":1}]}"),
		  "{\"a\":\"yy\"}", NULL, NULL,
		  "[<nil>: Invalid value: \"\": \"a\" must validate at least one schema (anyOf), a: Invalid "
		  "value: \"yy\": a in body should match '^x']" },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"oneOf\":[{\"minimum\":5},{\"maximum\":7}]}"),
		  "{\"a\":6}", NULL, NULL,
		  "<nil>: Invalid value: \"\": \"a\" must validate one and only one schema (oneOf). Found 2 "
		  "valid alternatives" },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"oneOf\":[{\"minimum\":5},{\"maximum\":7}]}"),
		  "{\"a\":8}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"allOf\":[{\"minimum\":5},{\"multipleOf\":2}]}"),
		  "{\"a\":3}", NULL, NULL,
		  "[a: Invalid value: 3: a in body should be greater than or equal to 5, a: Invalid value: "
		  "3: a in body should be a multiple of 2, "
		  "<nil>: Invalid value: \"\": \"a\" must validate all the schemas (allOf). None "
		  "validated]" },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"not\":{\"minimum\":5}}"), "{\"a\":5}", NULL, NULL,
		  "<nil>: Invalid value: \"\": \"a\" must not validate the schema (not)" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{\"type\":"
		  "\"string\"}},\"oneOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}",
		  "{}", NULL, NULL,
		  "[<nil>: Invalid value: \"\": \"\" must validate one and only one schema (oneOf). Found "
		  "none valid, a: Required value]" },
	};

	(void) state;
	check_rows(rows, VDI_ARRAY_SIZE(rows));
}

#define KEYED                                                                                                \
	OBJECT("\"l\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-"       \
	       "keys\":[\"n\",\"p\"],\"items\":{\"type\":\"object\","                                        \
	       "\"required\":[\"n\"],\"properties\":{\"n\":{\"type\":\"string\"},\"p\":{\"type\":"           \
	       "\"integer\",\"default\":1},\"v\":{\"type\":\"string\"}}}}")

static void lists_hold_nothing_twice(void **state)
{
	static const struct row rows[] = {
		{ OBJECT("\"s\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"set\",\"items\":{\"type\":"
			 "\"string\"}}"),
		  "{\"s\":[\"a\",\"b\",\"a\",\"a\"]}", NULL, NULL, "s[2]: Duplicate value: \"a\"" },
		{ OBJECT("\"s\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"set\",\"items\":{\"type\":"
			 "\"number\"}}"),
		  "{\"s\":[1,2.5,2.50,3]}", NULL, NULL, "s[2]: Duplicate value: 2.50" },
		{ OBJECT("\"m\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"array\",\"x-"
			 "kubernetes-list-type\":\"set\",\"items\":{\"type\":\"string\"}}}"),
		  "{\"m\":{\"k\":[\"a\",\"a\"]}}", NULL, NULL, "m[k][1]: Duplicate value: \"a\"" },
		/* Below items, below more than one list, and beside members that are none. */
		{ OBJECT("\"l\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"s\":{"
			 "\"type\":\"array\",\"x-kubernetes-list-type\":\"set\",\"items\":{\"type\":"
			 "\"string\"}}}}}"),
		  "{\"l\":[{\"s\":[\"a\",\"b\"]},{\"s\":[\"a\",\"b\",\"b\"]},{\"s\":[\"c\",\"c\"]}]}", NULL,
		  NULL, "[l[1].s[2]: Duplicate value: \"b\", l[2].s[1]: Duplicate value: \"c\"]" },
		{ OBJECT("\"l\":{\"type\":\"array\",\"items\":{\"type\":\"array\",\"x-kubernetes-list-type\":"
			 "\"set\",\"items\":{\"type\":\"string\"}}}"),
		  "{\"l\":[[\"a\",\"b\"],[\"a\"],[\"c\",\"c\"]]}", NULL, NULL,
		  "l[2][1]: Duplicate value: \"c\"" },
		{ OBJECT("\"s\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"set\",\"items\":{\"type\":"
			 "\"string\"}},\"t\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},\"x\":{"
			 "\"type\":\"string\"},\"y\":{\"type\":\"string\"}"),
		  "{\"s\":[\"a\",\"b\"],\"t\":[\"c\",\"c\"],\"x\":\"d\",\"y\":\"d\"}", NULL, NULL, NULL },
		{ OBJECT("\"s\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"set\",\"items\":{\"type\":"
			 "\"string\"}},\"t\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},\"x\":{"
			 "\"type\":\"string\"},\"y\":{\"type\":\"string\"}"),
		  "{\"s\":[\"a\",\"b\"],\"t\":[\"c\",\"c\"],\"x\":\"d\",\"y\":\"d\"}",
		  "{\"s\":[\"a\",\"b\"],\"t\":[\"c\",\"c\"],\"x\":\"d\",\"y\":\"d\"}", NULL, NULL },
		/* A key that only one of them has */
		{ OBJECT("\"l\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-"
			 "map-keys\":[\"n\",\"p\"],\"items\":{\"type\":\"object\",\"required\":[\"n\",\"p\"],"
			 "\"properties\":{\"n\":{\"type\":\"string\"},\"p\":{\"type\":\"integer\"}}}}"),
		  "{\"l\":[{\"n\":\"a\"},{\"n\":\"a\",\"p\":1}]}", NULL, NULL, "l[0].p: Required value" },
		{ OBJECT("\"l\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-"
			 "map-keys\":[\"n\",\"p\"],\"items\":{\"type\":\"object\",\"required\":[\"n\",\"p\"],"
			 "\"properties\":{\"n\":{\"type\":\"string\"},\"p\":{\"type\":\"integer\"}}}}"),
		  "{\"l\":[{\"n\":\"a\",\"p\":1},{\"n\":\"a\"}]}", NULL, NULL, "l[1].p: Required value" },
		{ OBJECT("\"l\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-"
			 "map-keys\":[\"n\",\"p\"],\"items\":{\"type\":\"object\",\"required\":[\"n\",\"p\"],"
			 "\"properties\":{\"n\":{\"type\":\"string\"},\"p\":{\"type\":\"integer\"}}}}"),
		  "{\"l\":[{\"n\":\"a\"},{\"n\":\"a\"}]}", NULL, NULL,
		  "[l[0].p: Required value, l[1].p: Required value, l[1]: Duplicate value: {\"n\":\"a\"}]" },
		{ KEYED, "{\"l\":[{\"n\":\"a\"},{\"n\":\"a\",\"p\":2}]}", NULL,
		  "{\"l\":[{\"n\":\"a\",\"p\":1},{\"n\":\"a\",\"p\":2}]}", NULL },
		{ KEYED, "{\"l\":[{\"n\":\"a\"},{\"n\":\"a\",\"p\":1}]}", NULL, NULL,
		  "l[1]: Duplicate value: {\"n\":\"a\",\"p\":1}" },
		/* what was double before may stay so */
		{ KEYED, "{\"l\":[{\"n\":\"a\"},{\"n\":\"a\",\"p\":1}]}",
		  "{\"l\":[{\"n\":\"a\",\"p\":1},{\"n\":\"a\",\"p\":1}]}", NULL, NULL },
	};

	(void) state;
	check_rows(rows, VDI_ARRAY_SIZE(rows));
}

static void defaults_and_nulls(void **state)
{
#define DEFAULTED                                                                                            \
	OBJECT("\"a\":{\"type\":\"string\",\"default\":\"x\"},\"b\":{\"type\":\"string\",\"nullable\":true," \
	       "\"default\":\"y\"},\"c\":{\"type\":\"string\"},"                                             \
	       "\"d\":{\"type\":\"object\",\"properties\":{\"e\":{\"type\":\"integer\",\"default\":5}}},"    \
	       "\"f\":{\"type\":\"object\",\"default\":{},\"properties\":"                                   \
	       "{\"g\":{\"type\":\"boolean\",\"default\":true}}}")
	static const struct row rows[] = {
		{ DEFAULTED, "{}", NULL, "{\"a\":\"x\",\"b\":\"y\",\"f\":{\"g\":true}}", NULL },
		{ DEFAULTED, "{\"a\":null,\"b\":null,\"c\":null,\"d\":{\"e\":null},\"f\":{\"g\":false}}",
		  NULL, "{\"a\":\"x\",\"b\":null,\"d\":{\"e\":5},\"f\":{\"g\":false}}", NULL },
		{ OBJECT("\"l\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"default\":\"z\"}}"),
		  "{\"l\":[null,\"a\"]}", NULL, "{\"l\":[\"z\",\"a\"]}", NULL },
		{ OBJECT("\"l\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"), "{\"l\":[null]}",
		  NULL, "{\"l\":[null]}",
		  "l[0]: Invalid value: \"null\": l[0] in body must be of type string: \"null\"" },
		{ OBJECT("\"m\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"object\","
			 "\"properties\":{\"x\":{\"type\":\"integer\",\"default\":1}}}}"),
		  "{\"m\":{\"k\":{},\"n\":null}}", NULL, "{\"m\":{\"k\":{\"x\":1}}}", NULL },
	};

	(void) state;
	check_rows(rows, VDI_ARRAY_SIZE(rows));
}

static void unknown_members_go_and_are_told(void **state)
{
	static const struct {
		struct row  row;
		const char *unknown;
	} rows[] = {
		{ { OBJECT("\"spec\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}"),
		    "{\"apiVersion\":\"v1\",\"kind\":\"K\",\"metadata\":{\"name\":\"x\",\"bogus\":1},"
		    "\"spec\":{\"z\":1,\"a\":\"b\",\"c\":{}},\"foo\":2}",
		    NULL,
		    "{\"apiVersion\":\"v1\",\"kind\":\"K\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"a\":"
		    "\"b\"}}",
		    NULL },
		  "foo metadata.bogus spec.c spec.z" },
		{ { OBJECT("\"l\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"a\":{"
			   "\"type\":\"string\"}}}}"),
		    "{\"l\":[{\"a\":\"1\"},{\"b\":2}]}", NULL, "{\"l\":[{\"a\":\"1\"},{}]}", NULL },
		  "l[1].b" },
		{ { OBJECT("\"a\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true,"
			   "\"properties\":{\"b\":{\"type\":\"object\"}}}"),
		    "{\"a\":{\"x\":{\"y\":1},\"b\":{\"z\":1}}}", NULL, "{\"a\":{\"x\":{\"y\":1},\"b\":{}}}",
		    NULL },
		  "a.b.z" },
		/* apiVersion, kind and metadata are something special in resources only */
		{ { OBJECT("\"a\":{\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"string\"}}}"),
		    "{\"a\":{\"kind\":\"K\",\"metadata\":{\"name\":\"x\"},\"b\":\"y\"}}", NULL,
		    "{\"a\":{\"b\":\"y\"}}", NULL },
		  "a.kind a.metadata" },
		{ { OBJECT("\"a\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"b\":{"
			   "\"type\":\"string\"}}}}"),
		    "{\"a\":[{\"kind\":\"K\",\"metadata\":{\"name\":\"x\"},\"b\":\"y\"}]}", NULL,
		    "{\"a\":[{\"b\":\"y\"}]}", NULL },
		  "a[0].kind a[0].metadata" },
		{ { OBJECT("\"a\":{\"type\":\"array\",\"x-kubernetes-preserve-unknown-fields\":true,"
			   "\"items\":{\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"object\","
			   "\"properties\":{\"c\":{\"type\":\"string\"}}}}}}"),
		    "{\"a\":[{\"kind\":\"K\",\"metadata\":{\"name\":\"x\",\"odd\":1},\"b\":{\"d\":1}}]}",
		    NULL, "{\"a\":[{\"kind\":\"K\",\"metadata\":{\"name\":\"x\",\"odd\":1},\"b\":{}}]}",
		    NULL },
		  "a[0].b.d" },
		{ { OBJECT("\"a\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"x-kubernetes-embedded-"
			   "resource\":true,\"properties\":{\"b\":{\"type\":\"string\"}}}}"),
		    "{\"a\":[{\"apiVersion\":\"v1\",\"kind\":\"K\",\"metadata\":{\"name\":\"x\",\"odd\":1},"
		    "\"b\":\"y\",\"c\":1}]}",
		    NULL,
		    "{\"a\":[{\"apiVersion\":\"v1\",\"kind\":\"K\",\"metadata\":{\"name\":\"x\"},\"b\":\"y\"}"
		    "]}",
		    NULL },
		  "a[0].c a[0].metadata.odd" },
		/* true keeps the members, and nothing is known of what is in them */
		{ { OBJECT("\"a\":{\"type\":\"object\",\"additionalProperties\":true}"),
		    "{\"a\":{\"x\":1,\"y\":{\"z\":1}}}", NULL, "{\"a\":{\"x\":1,\"y\":{}}}", NULL },
		  "a.y.z" },
		{ { OBJECT("\"e\":{\"type\":\"object\",\"x-kubernetes-embedded-resource\":true,"
			   "\"properties\":{\"spec\":{\"type\":\"object\"}}}"),
		    "{\"e\":{\"apiVersion\":\"v1\",\"kind\":\"K\",\"metadata\":{\"name\":\"x\",\"no\":1},"
		    "\"spec\":{\"x\":1},\"y\":1}}",
		    NULL,
		    "{\"e\":{\"apiVersion\":\"v1\",\"kind\":\"K\",\"metadata\":{\"name\":\"x\"},\"spec\":{}}"
		    "}",
		    NULL },
		  "e.metadata.no e.spec.x e.y" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct outcome outcome;

		check_rows(&rows[i].row, 1);
		outcome_of(&rows[i].row, &outcome);
		assert_text(&rows[i].row, &outcome.unknown, rows[i].unknown);
		free_outcome(&outcome);
	}
}

#define KIND_NAME                                                                                            \
	"may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case "      \
	"alphanumeric characters or '-', start with an "                                                     \
	"alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "      \
	"regex used for validation is "                                                                      \
	"'[a-z]([-a-z0-9]*[a-z0-9])?')"

static void embedded_resources_are_resources(void **state)
{
#define EMBEDDED                                                                                             \
	OBJECT("\"e\":{\"type\":\"object\",\"x-kubernetes-embedded-resource\":true,\"x-kubernetes-preserve-" \
	       "unknown-fields\":true}")
#define SIXTY_THREE "Kaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg"
	static const struct row rows[] = {
		{ EMBEDDED, "{\"e\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"spec\":{\"x\":1}}}", NULL, NULL,
		  NULL },
		{ EMBEDDED, "{\"e\":{}}", NULL, NULL,
		  "[e.apiVersion: Required value, e.kind: Required value]" },
		{ EMBEDDED, "{\"e\":{\"apiVersion\":\"\",\"kind\":1}}", NULL, NULL,
		  "[e.apiVersion: Invalid value: \"\": must not be empty, e.kind: Invalid value: 1: must be "
		  "a string]" },
		{ EMBEDDED, "{\"e\":{\"apiVersion\":\"v1\",\"kind\":\"P-1z\"}}", NULL, NULL, NULL },
		{ EMBEDDED, "{\"e\":{\"apiVersion\":\"v1\",\"kind\":\"" SIXTY_THREE "\"}}", NULL, NULL,
		  NULL },
		{ EMBEDDED, "{\"e\":{\"apiVersion\":\"v1\",\"kind\":\"" SIXTY_THREE "z\"}}", NULL, NULL,
		  "e.kind: Invalid value: \"" SIXTY_THREE "z\": " KIND_NAME },
		{ OBJECT("\"l\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"x-kubernetes-embedded-"
			 "resource\":true,\"x-kubernetes-preserve-unknown-fields\":true}},"
			 "\"m\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"object\",\"x-"
			 "kubernetes-embedded-resource\":true,\"x-kubernetes-preserve-unknown-fields\":true}"
			 "}"),
		  "{\"l\":[{\"apiVersion\":\"v1\",\"kind\":\"A\"},{\"apiVersion\":\"v1\",\"kind\":\"B\","
		  "\"metadata\":5},{\"apiVersion\":\"\",\"kind\":5}],\"m\":{\"k\":{\"kind\":\"B\"}}}",
		  NULL, NULL,
		  "[l[1].metadata: Invalid value: 5: must be an object, l[2].apiVersion: Invalid value: "
		  "\"\": must not be empty, l[2].kind: Invalid value: 5: must be a string, m[k].apiVersion: "
		  "Required value]" },
		{ EMBEDDED,
		  "{\"e\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a-b\"}}}", NULL,
		  NULL, NULL },
		{ EMBEDDED,
		  "{\"e\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a/b\"}}}", NULL,
		  NULL, "e.metadata.name: Invalid value: \"a/b\": may not contain '/'" },
		{ EMBEDDED, "{\"e\":{\"apiVersion\":\"v1\",\"kind\":\"P_d\"}}", NULL, NULL,
		  "e.kind: Invalid value: \"P_d\": " KIND_NAME },
		{ EMBEDDED, "{\"e\":{\"apiVersion\":\"v1\",\"kind\":\"Pod-\"}}", NULL, NULL,
		  "e.kind: Invalid value: \"Pod-\": " KIND_NAME },
		{ EMBEDDED, "{\"e\":{\"apiVersion\":\"v1\",\"kind\":\"1Pod\"}}", NULL, NULL,
		  "e.kind: Invalid value: \"1Pod\": " KIND_NAME },
	};

	(void) state;
	check_rows(rows, VDI_ARRAY_SIZE(rows));
}

/* CRDValidationRatcheting: what was wrong before and is the same is tolerated. */
static void updates_are_held_to_what_they_change(void **state)
{
#define RATCHET                                                                                              \
	OBJECT("\"a\":{\"type\":\"string\",\"maxLength\":1},\"b\":{\"type\":\"string\",\"maxLength\":1}")
	static const struct row rows[] = {
		{ RATCHET, "{\"a\":\"long\",\"b\":\"x\"}", "{\"a\":\"long\",\"b\":\"y\"}", NULL, NULL },
		{ RATCHET, "{\"a\":\"long\",\"b\":\"x\"}", "{\"a\":\"other\",\"b\":\"x\"}", NULL,
		  "a: Too long: may not be more than 1 byte" },
		{ RATCHET, "{\"a\":\"long\"}", "{}", NULL, "a: Too long: may not be more than 1 byte" },
		{ KEYED, "{\"l\":[1]}", NULL, NULL,
		  "[l[0]: Invalid value: \"integer\": l[0] in body must be of type object: \"integer\", "
		  "l[0]: Invalid value: 1: must be an object for an array of list-type map]" },
		{ KEYED, "{\"l\":[{\"n\":\"a\",\"p\":1,\"v\":1}]}", "{\"l\":[{\"n\":\"a\",\"p\":1,\"v\":1}]}",
		  NULL, NULL },
		{ KEYED, "{\"l\":[{\"p\":1,\"v\":1}]}", "{\"l\":[{\"p\":1,\"v\":1}]}",
		  NULL, /* an item without its keys is nobody's */
		  "[l[0].v: Invalid value: \"integer\": l[0].v in body must be of type string: \"integer\", "
		  "l[0].n: Required value]" },
		{ KEYED, "{\"l\":[{\"n\":\"b\",\"v\":1},{\"n\":\"a\",\"v\":2}]}",
		  "{\"l\":[{\"n\":\"a\",\"p\":1,\"v\":2}]}", NULL,
		  "l[0].v: Invalid value: \"integer\": l[0].v in body must be of type string: \"integer\"" },
	};

	(void) state;
	check_rows(rows, VDI_ARRAY_SIZE(rows));
}

static void formats(void **state)
{
	static const struct {
		const char *format, *yes, *no;
	} rows[] = {
		{ "date-time", "2026-11-21T22:00:00Z", "2026-11-21 22:00:00Z" },
		{ "date-time", "2026-11-21t22:00:00.123+01:00", "2026-11-21T24:00:00Z" },
		{ "date", "2024-02-29", "2026-02-29" },
		{ "ipv4", "10.0.0.1", "10.0.0.256" },
		{ "ipv6", "fe80::1", "fe80::1%eth0" },
		{ "cidr", "10.0.0.0/8", "10.0.0.0/33" },
		{ "cidr", "::/0", "10.0.0.0" },
		{ "uuid", "0f0e0d0c-0b0a-4908-8706-050403020100", "0f0e0d0c" },
		{ "uuid4", "0f0e0d0c-0b0a-4908-8706-050403020100", "0f0e0d0c-0b0a-3908-8706-050403020100" },
		{ "byte", "YWI=", "YW" },
		{ "email", "a.b@example.com", "a@" },
		{ "email", "Name <a@b>", "a b" },
		{ "hostname", "a-b.example.com", "-a.example.com" },
		{ "uri", "http://example.com/x?y", "example.com" },
		{ "mac", "00:11:22:33:44:55", "00:11:22:33:44" },
		{ "duration", "1h30m", "soon" },
		{ "duration", "3 days", "3" },
		{ "hexcolor", "#fff", "#ffff" },
		{ "rgbcolor", "rgb(1, 2,255)", "rgb(1,2,256)" },
		{ "isbn10", "0321751043", "0321751044" },
		{ "isbn13", "978-0321751041", "978-0321751042" },
		{ "creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112" },
		{ "ssn", "123-45-6789", "123-456-789" },
		{ "bsonobjectid", "507f1f77bcf86cd799439011", "507f" },
		{ "k8s-short-name", "a-1", "a.b" },
		{ "k8s-long-name", "a.b", "A" },
		/* Each part to its last value, and one more. */
		{ "date-time", "2026-12-31T23:59:59Z", "2026-12-31T23:60:59Z" },
		{ "date-time", "2026-01-01T00:00:00z", "2026-01-01T00:00:60Z" },
		{ "date-time", "2026-01-01T00:00:00-23:59", "2026-01-01T00:00:00" },
		{ "date-time", "2026-01-01T00:00:00.5+00:00", "2026-13-01T00:00:00Z" },
		{ "date", "2026-01-31", "2026-01-32" },
		{ "date", "2026-12-01", "2026-00-01" },
		{ "date", "2026-04-30", "2026-04-31" },
		{ "date", "2000-02-29", "1900-02-29" },
		{ "date", "2026-01-01", "2026-01-00" },
		{ "date", "0000-01-01", "2026-1-01" },
		{ "duration", "-1.5h", "h" },
		{ "duration", "0", "-" },
		{ "duration", "1ns2us", "1x" },
		{ "duration", ".5s", "." },
		{ "ipv4", "255.255.255.255", "1.2.3" },
		{ "cidr", "::/128", "::/129" },
		{ "uri", "http://a/%41", "http://a%4/" },
		{ "uri", "http://[::1]:80/", "http://[::1/" },
		{ "uri", "http://u@a:8/", "http://a:b/" },
		{ "uri", "http://[::1]", "http://[::1]x" },
		{ "k8s-short-name", "a", "-a" },
		{ "k8s-long-name", "a-1.b", "a..b" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		char	   schema[160], object[160];
		struct row row = { schema, object, NULL, NULL, NULL };

		(void) snprintf(schema, sizeof schema,
				OBJECT("\"a\":{\"type\":\"string\",\"format\":\"%s\"}"), rows[i].format);
		for (int bad = 0; bad < 2; bad++) {
			struct outcome outcome;

			(void) snprintf(object, sizeof object, "{\"a\":\"%s\"}",
					bad ? rows[i].no : rows[i].yes);
			outcome_of(&row, &outcome);
			if ((outcome.status != VD_OK) != bad)
				fail_msg("%s: %s", rows[i].format, object);
			free_outcome(&outcome);
		}
	}
}

/* Work is counted, so what an object can cost has an end, whatever schema it meets. */
static void work_has_an_end(void **state)
{
	struct vdi_out schema = VDI_OUT_INIT, object = VDI_OUT_INIT;
	struct outcome outcome;
	struct row     row = { 0 };

	(void) state;
	vdi_out_raw(&schema, "{\"type\":\"object\",\"properties\":{\"l\":{\"type\":\"array\",\"items\":{"
			     "\"type\":\"string\",\"enum\":[");
	for (int i = 0; i < 10000; i++)
		vdi_out_printf(&schema, "%s\"%d\"", i ? "," : "", i);
	vdi_out_printf(&schema, "]}}}}%c", 0);
	vdi_out_raw(&object, "{\"l\":[");
	for (int i = 0; i < 20000; i++)
		vdi_out_raw(&object, i ? ",\"9999\"" : "\"9999\"");
	vdi_out_printf(&object, "]}%c", 0);
	row.schema = schema.data;
	row.object = object.data;
	outcome_of(&row, &outcome);
	assert_status(outcome.status, VD_INVALID);
	vdi_out_printf(&outcome.field_errors, "%c", 0);
	assert_string_equal(
		outcome.field_errors.data,
		"<nil>: Forbidden: the object is too costly to validate: more than 20000000 steps");
	free_outcome(&outcome);
	vdi_out_fini(&schema);
	vdi_out_fini(&object);
}

/* Each item fails the first branch of anyOf, and its fault would name a path of 100 KB. */
static void long_paths_cost_little(void **state)
{
	struct vdi_out object = VDI_OUT_INIT;
	struct outcome outcome;
	struct row     row = { .schema = "{\"type\":\"object\",\"properties\":{\"m\":{\"type\":\"object\","
					     "\"additionalProperties\":{\"type\":\"array\","
					     "\"items\":{\"type\":\"string\","
					     "\"anyOf\":[{\"minLength\":9},{\"maxLength\":8}]}}}}}" };

	(void) state;
	vdi_out_raw(&object, "{\"m\":{\"");
	for (int i = 0; i < 100000; i++)
		vdi_out_raw(&object, "k");
	vdi_out_raw(&object, "\":[");
	for (int i = 0; i < 100000; i++)
		vdi_out_raw(&object, i ? ",\"\"" : "\"\"");
	vdi_out_printf(&object, "]}}%c", 0);
	row.object = object.data;
	outcome_of(&row, &outcome);
	assert_status(outcome.status, VD_OK);
	free_outcome(&outcome);
	vdi_out_fini(&object);
}

static void defaults_cannot_grow_out_of_bounds(void **state)
{
	struct vdi_out schema = VDI_OUT_INIT, object = VDI_OUT_INIT;
	struct outcome outcome;
	struct row     row = { 0 };

	(void) state;
	vdi_out_raw(&schema, "{\"type\":\"object\",\"properties\":{\"l\":{\"type\":\"array\",\"items\":{"
			     "\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"default\":\"");
	for (int i = 0; i < 10000; i++)
		vdi_out_raw(&schema, "x");
	vdi_out_printf(&schema, "\"}}}}}}%c", 0);
	vdi_out_raw(&object, "{\"l\":[");
	for (int i = 0; i < 2000; i++)
		vdi_out_raw(&object, i ? ",{}" : "{}");
	vdi_out_printf(&object, "]}%c", 0);
	row.schema = schema.data;
	row.object = object.data;
	outcome_of(&row, &outcome);
	assert_status(outcome.status, VD_TOO_BIG);
	free_outcome(&outcome);
	vdi_out_fini(&schema);
	vdi_out_fini(&object);
}

/* Members that are looked up by an index: none that is gone is found. */
static void pruned_members_are_not_found(void **state)
{
	struct vdi_tree		tree = VDI_TREE_INIT;
	struct vdi_field_errors field_errors = { 0 };
	struct vdi_out		text = VDI_OUT_INIT;
	struct vdi_schema      *schema;
	struct vdi_node	       *source, *object;

	assert_status(vdi_tree_parse(&tree,
				     vd_bytes_of(OBJECT(
					     "\"n1\":{\"type\":\"integer\"},\"n3\":{\"type\":\"integer\"}")),
				     &source, NULL),
		      VD_OK);
	assert_status(vdi_schema_compile(&tree, source, "", &schema, &field_errors), VD_OK);
	for (int i = 0; i < 100; i++)
		vdi_out_printf(&text, "%s\"n%d\":%s", i ? "," : "{", i, i == 3 ? "null" : "1");
	vdi_out_raw(&text, "}");
	assert_status(vdi_tree_parse(&tree, vdi_out_slice(&text), &object, NULL), VD_OK);
	assert_non_null(vdi_tree_get(&tree, object, vd_bytes_of("n7")));
	assert_status(vdi_schema_default(schema, &tree, object), VD_OK);
	assert_null(vdi_tree_get(&tree, object, vd_bytes_of("n3")));
	assert_non_null(vdi_tree_get(&tree, object, vd_bytes_of("n7")));
	assert_status(vdi_schema_prune(schema, &tree, object, NULL, NULL), VD_OK);
	for (int i = 0; i < 100; i++) {
		char name[8];

		(void) snprintf(name, sizeof name, "n%d", i);
		assert_int_equal(vdi_tree_get(&tree, object, vd_bytes_of(name)) != NULL, i == 1);
	}
	(void) vdi_schema_free(schema);
	vdi_out_fini(&text);
	vdi_field_errors_fini(&field_errors);
	vdi_tree_fini(&tree);
}

static void every_failed_allocation_is_reported(void **state)
{
	static const struct row rows[] = {
		{ KEYED, "{\"l\":[{\"n\":\"a\"},{\"n\":\"a\",\"p\":1}],\"x\":1}", NULL, NULL, "x" },
		{ OBJECT("\"a\":{\"type\":\"string\",\"pattern\":\"^b\",\"enum\":[\"x\"],\"anyOf\":[{"
			 "\"maxLength\":1},{\"format\":\"date\"}]}"),
		  "{\"a\":\"abc\"}", "{\"a\":\"y\"}", NULL, "x" },
		{ EMBEDDED, "{\"e\":{\"metadata\":{\"labels\":{\"-\":\"b\"}}}}", NULL, NULL, "x" },
		{ DEFAULTED, "{\"a\":null,\"b\":null,\"c\":5,\"d\":{\"e\":null},\"f\":{},\"g\":1}", NULL,
		  NULL, "x" },
		{ OBJECT("\"l\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"default\":\"z\"}},\"m\":"
			 "{\"type\":\"integer\",\"maximum\":1}"),
		  "{\"l\":[null,\"a\"],\"m\":2}", NULL, NULL, "x" },
	};
	int64_t live = vdi_alloc_live();

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		for (uint64_t nth = 1;; nth++) {
			struct outcome outcome;
			bool	       failed;

			vdi_alloc_fail_nth(nth, 1);
			outcome_of(&rows[i], &outcome);
			failed = vdi_alloc_failed();
			vdi_alloc_fail_nth(0, 0);
			if (!failed ||
			    !outcome.field_errors
				     .failed) /* the message itself may be what there was no memory for */
				assert_status(outcome.status,
					      failed && outcome.status != VD_INVALID ? VD_NOMEM : VD_INVALID);
			free_outcome(&outcome);
			assert_int_equal(vdi_alloc_live(), live);
			if (!failed)
				break;
		}
}

/* Each limit: what stands on it, and what is one beyond. */
static void limits_are_met_exactly(void **state)
{
	static const struct row rows[] = {
		/* Whole numbers that a double cannot tell apart. */
		{ OBJECT("\"a\":{\"type\":\"integer\",\"maximum\":9007199254740992}"),
		  "{\"a\":9007199254740993}", NULL, NULL,
		  "a: Invalid value: 9007199254740993: a in body should be less than or equal to "
		  "9007199254740992" },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"minimum\":-9007199254740992}"),
		  "{\"a\":-9007199254740993}", NULL, NULL,
		  "a: Invalid value: -9007199254740993: a in body should be greater than or equal to "
		  "-9007199254740992" },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"maximum\":9007199254740992}"),
		  "{\"a\":9007199254740992}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"string\",\"maxLength\":0}"), "{\"a\":\"\"}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"string\",\"maxLength\":0}"), "{\"a\":\"b\"}", NULL, NULL,
		  "a: Too long: may not be more than 0 bytes" },
		{ OBJECT("\"a\":{\"type\":\"string\",\"maxLength\":1}"), "{\"a\":\"b\"}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"string\",\"maxLength\":1}"), "{\"a\":\"bb\"}", NULL, NULL,
		  "a: Too long: may not be more than 1 byte" },
		{ OBJECT("\"a\":{\"type\":\"string\",\"minLength\":1}"), "{\"a\":\"\"}", NULL, NULL,
		  "a: Invalid value: \"\": a in body should be at least 1 chars long" },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"minimum\":2}"), "{\"a\":2}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"minimum\":2}"), "{\"a\":1}", NULL, NULL,
		  "a: Invalid value: 1: a in body should be greater than or equal to 2" },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"maximum\":2}"), "{\"a\":2}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"maximum\":2,\"exclusiveMaximum\":true}"), "{\"a\":2}",
		  NULL, NULL, "a: Invalid value: 2: a in body should be less than 2" },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"maximum\":2,\"exclusiveMaximum\":true}"), "{\"a\":1}",
		  NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"minimum\":2,\"exclusiveMinimum\":true}"), "{\"a\":3}",
		  NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"minimum\":1.5}"), "{\"a\":2}", NULL, NULL,
		  "<nil>: Invalid value: \"\": Minimum boundary value must be of type integer (default "
		  "format) in a" },
		{ OBJECT("\"a\":{\"type\":\"number\",\"minimum\":1.5}"), "{\"a\":1.5}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"number\",\"minimum\":1.5}"), "{\"a\":1.25}", NULL, NULL,
		  "a: Invalid value: 1.25: a in body should be greater than or equal to 1.5" },
		{ OBJECT("\"a\":{\"type\":\"number\",\"format\":\"float\"}"),
		  "{\"a\":3.40282346638528859811704183484516925440e+38}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"number\",\"format\":\"float\"}"), "{\"a\":-3.5e38}", NULL, NULL,
		  "<nil>: Invalid value: \"\": Checked value must be of type number with format float in a" },
		{ OBJECT("\"a\":{\"type\":\"number\",\"format\":\"double\"}"), "{\"a\":3.5e38}", NULL, NULL,
		  NULL },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"format\":\"int32\"}"), "{\"a\":2147483647}", NULL,
		  NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"format\":\"int32\"}"), "{\"a\":-2147483648}", NULL,
		  NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"format\":\"int32\"}"), "{\"a\":-2147483649}", NULL,
		  NULL,
		  "<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in "
		  "a" },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"format\":\"int64\"}"), "{\"a\":2147483648}", NULL,
		  NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"multipleOf\":3}"), "{\"a\":9}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"number\",\"multipleOf\":0.5}"), "{\"a\":1.5}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"number\",\"multipleOf\":0.5}"), "{\"a\":1.25}", NULL, NULL,
		  "a: Invalid value: 1.25: a in body should be a multiple of 0.5" },
		{ OBJECT("\"a\":{\"type\":\"number\",\"multipleOf\":2.5}"), "{\"a\":7.5}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"array\",\"maxItems\":2,\"items\":{\"type\":\"integer\"}}"),
		  "{\"a\":[1,2]}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"array\",\"maxItems\":2,\"items\":{\"type\":\"integer\"}}"),
		  "{\"a\":[1,2,3]}", NULL, NULL, "a: Too many: 3: must have at most 2 items" },
		{ OBJECT("\"a\":{\"type\":\"array\",\"minItems\":2,\"items\":{\"type\":\"integer\"}}"),
		  "{\"a\":[1,2]}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"object\",\"minProperties\":1,\"additionalProperties\":{\"type\":"
			 "\"integer\"}}"),
		  "{\"a\":{}}", NULL, NULL,
		  "a: Invalid value: 0: a in body should have at least 1 properties" },
		{ OBJECT("\"a\":{\"type\":\"object\",\"minProperties\":1,\"additionalProperties\":{\"type\":"
			 "\"integer\"}}"),
		  "{\"a\":{\"b\":1}}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"enum\":[1,2]}"), "{\"a\":2}", NULL, NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"enum\":[1,2]}"), "{\"a\":3}", NULL, NULL,
		  "a: Unsupported value: 3: supported values: \"1\", \"2\"" },
		{ OBJECT("\"a\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"set\",\"items\":{\"type\":"
			 "\"string\"}}"),
		  "{\"a\":[\"x\",\"y\",\"x\",\"x\",\"y\"]}", NULL, NULL,
		  "[a[2]: Duplicate value: \"x\", a[4]: Duplicate value: \"y\"]" },
		{ OBJECT("\"a\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-"
			 "map-keys\":[\"k\",\"l\"],\"items\":{\"type\":\"object\",\"required\":[\"k\",\"l\"],"
			 "\"properties\":{"
			 "\"k\":{\"type\":\"string\"},\"l\":{\"type\":\"integer\"}}}}"),
		  "{\"a\":[{\"k\":\"x\",\"l\":1},{\"k\":\"x\",\"l\":2},{\"k\":\"x\",\"l\":1}]}", NULL, NULL,
		  "a[2]: Duplicate value: {\"k\":\"x\",\"l\":1}" },
	};

	check_rows(rows, VDI_ARRAY_SIZE(rows));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_are_met_exactly),
		cmocka_unit_test(types_and_their_limits),
		cmocka_unit_test(all_any_one_not),
		cmocka_unit_test(lists_hold_nothing_twice),
		cmocka_unit_test(defaults_and_nulls),
		cmocka_unit_test(unknown_members_go_and_are_told),
		cmocka_unit_test(embedded_resources_are_resources),
		cmocka_unit_test(updates_are_held_to_what_they_change),
		cmocka_unit_test(formats),
		cmocka_unit_test(work_has_an_end),
		cmocka_unit_test(long_paths_cost_little),
		cmocka_unit_test(defaults_cannot_grow_out_of_bounds),
		cmocka_unit_test(pruned_members_are_not_found),
		cmocka_unit_test(every_failed_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
