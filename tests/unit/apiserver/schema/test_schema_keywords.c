/* Unit tests of apiserver/schema/schema_validate.c, keyword by keyword: a good and a bad value alone, below
 * `not` and the other junctors, and in an update that leaves the bad value as it was. */
#include "vdtest.h"

#include "schema.h"
#include "schema_node.h"

struct keyword {
	const char *base;    /* the structural part of the schema of member a */
	const char *keyword; /* what is said about its value */
	const char *good, *bad, *other_bad;
};

static const struct keyword keywords[] = {
	{ "\"type\":\"string\"", "\"maxLength\":2", "\"ab\"", "\"abc\"", "\"abd\"" },
	{ "\"type\":\"string\"", "\"minLength\":2", "\"ab\"", "\"a\"", "\"b\"" },
	{ "\"type\":\"string\"", "\"pattern\":\"^x\"", "\"x\"", "\"y\"", "\"z\"" },
	{ "\"type\":\"string\"", "\"enum\":[\"x\",\"y\"]", "\"y\"", "\"z\"", "\"w\"" },
	{ "\"type\":\"string\"", "\"format\":\"date\"", "\"2026-01-02\"", "\"x\"", "\"y\"" },
	{ "\"type\":\"string\",\"nullable\":true", "\"enum\":[\"x\"]", "\"x\"", "null", "\"y\"" },
	{ "\"type\":\"integer\"", "\"minimum\":5", "5", "4", "3" },
	{ "\"type\":\"integer\"", "\"maximum\":5", "5", "6", "7" },
	{ "\"type\":\"integer\"", "\"minimum\":5,\"exclusiveMinimum\":true", "6", "5", "4" },
	{ "\"type\":\"integer\"", "\"maximum\":5,\"exclusiveMaximum\":true", "4", "5", "6" },
	{ "\"type\":\"integer\"", "\"multipleOf\":3", "6", "7", "8" },
	{ "\"type\":\"integer\"", "\"enum\":[1,2]", "2", "3", "4" },
	{ "\"type\":\"number\"", "\"minimum\":0.5", "0.5", "0.25", "0.125" },
	{ "\"type\":\"number\"", "\"maximum\":0.5", "0.5", "0.75", "1.5" },
	{ "\"type\":\"number\"", "\"multipleOf\":0.5", "1.5", "1.25", "1.75" },
	{ "\"type\":\"array\",\"items\":{\"type\":\"integer\"}", "\"maxItems\":1", "[1]", "[1,2]", "[1,3]" },
	{ "\"type\":\"array\",\"items\":{\"type\":\"integer\"}", "\"minItems\":2", "[1,2]", "[1]", "[3]" },
	{ "\"type\":\"array\",\"items\":{\"type\":\"integer\"}", "\"items\":{\"minimum\":2}", "[2,3]",
	  "[2,1]", "[2,0]" },
	{ "\"type\":\"array\",\"items\":{\"type\":\"integer\"}", "\"enum\":[[1,2]]", "[1,2]", "[2,1]",
	  "[2]" },
	{ "\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}", "\"maxProperties\":1",
	  "{\"x\":1}", "{\"x\":1,\"y\":2}", "{\"x\":1,\"y\":3}" },
	{ "\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}", "\"minProperties\":1",
	  "{\"x\":1}", "{}", NULL },
	{ "\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"integer\"},\"y\":{\"type\":\"integer\"}}",
	  "\"required\":[\"x\"]", "{\"x\":1}", "{\"y\":1}", "{\"y\":2}" },
	{ "\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"integer\"}}",
	  "\"properties\":{\"x\":{\"minimum\":2}}", "{\"x\":2}", "{\"x\":1}", "{\"x\":0}" },
	{ "\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"string\",\"nullable\":true}}",
	  "\"properties\":{\"x\":{\"enum\":[\"a\"]}}", "{\"x\":\"a\"}", "{\"x\":null}", "{\"x\":\"b\"}" },
	{ "\"type\":\"integer\"", "\"allOf\":[{\"minimum\":5},{\"maximum\":7}]", "6", "4", "3" },
	{ "\"type\":\"integer\"", "\"anyOf\":[{\"minimum\":5},{\"maximum\":2}]", "2", "4", "3" },
	{ "\"type\":\"integer\"", "\"oneOf\":[{\"minimum\":5},{\"maximum\":7}]", "8", "6", "5" },
	{ "\"type\":\"integer\"", "\"oneOf\":[{\"minimum\":5},{\"minimum\":7}]", "6", "4", "3" },
	{ "\"type\":\"integer\"", "\"not\":{\"minimum\":5}", "4", "5", "6" },
	{ "\"type\":\"integer\"", "\"not\":{\"not\":{\"minimum\":5}}", "5", "4", "3" },
};

/* Whether the object is valid. */
static bool is_valid(const char *schema_text, const char *object_text, const char *old_text)
{
	struct vdi_tree		tree = VDI_TREE_INIT;
	struct vdi_field_errors field_errors = { 0 };
	struct vdi_schema      *schema = NULL;
	struct vdi_node	       *source, *object, *old = NULL;
	vd_status		status;

	assert_status(vdi_tree_parse(&tree, vd_bytes_of(schema_text), &source, NULL), VD_OK);
	assert_status(vdi_tree_parse(&tree, vd_bytes_of(object_text), &object, NULL), VD_OK);
	if (old_text)
		assert_status(vdi_tree_parse(&tree, vd_bytes_of(old_text), &old, NULL), VD_OK);
	status = vdi_schema_compile(&tree, source, "", &schema, &field_errors);
	if (status != VD_OK)
		fail_msg("%s: %.*s", schema_text, (int) vdi_field_errors_message(&field_errors).size,
			 (const char *) vdi_field_errors_message(&field_errors).data);
	status = vdi_schema_validate(schema, &tree, object, old, VDI_SCHEMA_WHOLE, &field_errors);
	assert_true(status == VD_OK || status == VD_INVALID);
	assert_int_equal(field_errors.count > 0, status == VD_INVALID);
	(void) vdi_schema_free(schema);
	vdi_field_errors_fini(&field_errors);
	vdi_tree_fini(&tree);
	return status == VD_OK;
}

/* wrapped: the keyword with %s in its place. */
static void check(const struct keyword *keyword, const char *wrapped, const char *value, const char *old,
		  bool expected)
{
	char said[400], schema[800], object[100], old_object[100];

	(void) snprintf(said, sizeof said, wrapped, keyword->keyword);
	(void) snprintf(schema, sizeof schema, "{\"type\":\"object\",\"properties\":{\"a\":{%s%s%s}}}",
			strncmp(said, "\"items\"", 7) == 0	 ? "\"type\":\"array\"" :
			strncmp(said, "\"properties\"", 12) == 0 ? "\"type\":\"object\"" :
								   keyword->base,
			*said ? "," : "", said);
	(void) snprintf(object, sizeof object, "{\"a\":%s}", value);
	(void) snprintf(old_object, sizeof old_object, "{\"a\":%s}", old ? old : "");
	if (is_valid(schema, object, old ? old_object : NULL) != expected)
		fail_msg("%s with %s and %s", schema, object, old ? old_object : "no old object");
}

/* What is said below items or properties needs the structural type beside it; it is tried below the junctors
 * only. */
static bool stands_alone(const struct keyword *keyword)
{
	return strncmp(keyword->keyword, "\"items\"", 7) != 0 &&
	       strncmp(keyword->keyword, "\"properties\"", 12) != 0;
}

/* A null is held to the type and the enum of its own schema only, not to the junctors. */
static bool is_null(const struct keyword *keyword)
{
	return strcmp(keyword->bad, "null") == 0;
}

static void each_keyword_refuses_its_bad_values(void **state)
{
	for (size_t i = 0; i < VDI_ARRAY_SIZE(keywords); i++) {
		const struct keyword *one = &keywords[i];

		if (stands_alone(one)) {
			check(one, "%s", one->good, NULL, true);
			check(one, "%s", one->bad, NULL, false);
		}
		if (is_null(one))
			continue;
		check(one, "\"not\":{%s}", one->good, NULL, false);
		check(one, "\"not\":{%s}", one->bad, NULL, true);
		check(one, "\"not\":{\"not\":{%s}}", one->good, NULL, true);
		check(one, "\"not\":{\"not\":{%s}}", one->bad, NULL, false);
		check(one, "\"allOf\":[{},{%s}]", one->good, NULL, true);
		check(one, "\"allOf\":[{},{%s}]", one->bad, NULL, false);
		check(one, "\"anyOf\":[{\"not\":{}},{%s}]", one->good, NULL, true);
		check(one, "\"anyOf\":[{\"not\":{}},{%s}]", one->bad, NULL, false);
		check(one, "\"oneOf\":[{\"not\":{}},{%s}]", one->good, NULL, true);
		check(one, "\"oneOf\":[{\"not\":{}},{%s}]", one->bad, NULL, false);
		check(one, "\"oneOf\":[{},{%s}]", one->good, NULL, false);
		check(one, "\"oneOf\":[{},{%s}]", one->bad, NULL, true);
		check(one, "\"not\":{\"allOf\":[{%s}]}", one->bad, NULL, true);
		check(one, "\"not\":{\"anyOf\":[{%s}]}", one->bad, NULL, true);
		check(one, "\"not\":{\"oneOf\":[{%s}]}", one->bad, NULL, true);
	}
}

/* An update may leave a bad value as it was, but not make another bad one of it. */
static void an_update_may_leave_what_was_bad(void **state)
{
	static const char *const wrapped[] = { "%s", "\"allOf\":[{%s}]", "\"not\":{\"not\":{%s}}" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(keywords); i++)
		for (size_t k = 0; k < VDI_ARRAY_SIZE(wrapped); k++) {
			const struct keyword *one = &keywords[i];

			if (k == 0 ? !stands_alone(one) : is_null(one))
				continue;
			check(one, wrapped[k], one->bad, one->bad, true);
			check(one, wrapped[k], one->bad, one->good, false);
			if (one->other_bad)
				check(one, wrapped[k], one->bad, one->other_bad, false);
		}
}

#define OBJECT(properties) "{\"type\":\"object\",\"properties\":{" properties "}}"

/* Of several branches that fail, the one that passed the most checks is shown, and the first of equals. */
static void the_best_branch_is_shown(void **state)
{
	static const struct {
		const char *branches, *shown;
	} rows[] = {
		{ "\"anyOf\":[{\"pattern\":\"^x\"},{\"pattern\":\"^z\"}]", "'^x'" },
		{ "\"anyOf\":[{\"pattern\":\"^x\"},{\"allOf\":[{\"minLength\":1}],\"pattern\":\"^z\"}]",
		  "'^z'" },
		{ "\"anyOf\":[{\"pattern\":\"^x\"},{\"anyOf\":[{\"minLength\":1}],\"pattern\":\"^z\"}]",
		  "'^z'" },
		{ "\"anyOf\":[{\"pattern\":\"^x\"},{\"oneOf\":[{\"minLength\":1},{\"minLength\":9}],"
		  "\"pattern\":"
		  "\"^z\"}]",
		  "'^z'" },
		{ "\"anyOf\":[{\"pattern\":\"^x\"},{\"oneOf\":[{\"minLength\":9},{\"minLength\":1}],"
		  "\"pattern\":"
		  "\"^z\"}]",
		  "'^z'" },
		{ "\"oneOf\":[{\"pattern\":\"^x\"},{\"allOf\":[{\"minLength\":1}],\"pattern\":\"^z\"}]",
		  "'^z'" },
		{ "\"oneOf\":[{\"allOf\":[{\"minLength\":1}],\"pattern\":\"^z\"},{\"pattern\":\"^x\"}]",
		  "'^z'" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_tree		tree = VDI_TREE_INIT;
		struct vdi_field_errors field_errors = { 0 };
		struct vdi_schema      *schema = NULL;
		struct vdi_node	       *source, *object;
		struct vd_bytes		message;
		char			text[400];

		(void) snprintf(text, sizeof text, OBJECT("\"a\":{\"type\":\"string\",%s}"),
				rows[i].branches);
		assert_status(vdi_tree_parse(&tree, vd_bytes_of(text), &source, NULL), VD_OK);
		assert_status(vdi_tree_parse(&tree, vd_bytes_of("{\"a\":\"yy\"}"), &object, NULL), VD_OK);
		assert_status(vdi_schema_compile(&tree, source, "", &schema, &field_errors), VD_OK);
		assert_status(
			vdi_schema_validate(schema, &tree, object, NULL, VDI_SCHEMA_WHOLE, &field_errors),
			VD_INVALID);
		assert_int_equal(field_errors.count, 2);
		message = vdi_field_errors_text(&field_errors, 1);
		if (memmem(message.data, message.size, rows[i].shown, strlen(rows[i].shown)) == NULL)
			fail_msg("%s: %.*s", text, (int) message.size, (const char *) message.data);
		(void) vdi_schema_free(schema);
		vdi_field_errors_fini(&field_errors);
		vdi_tree_fini(&tree);
	}
}

static void a_factor_is_positive(void **state)
{
	static const char *const factors[] = { "0", "0.0", "-1", "-0.5" };
	static const char *const types[] = { "integer", "number" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(factors); i++)
		for (size_t k = 0; k < VDI_ARRAY_SIZE(types); k++) {
			char schema[200];

			(void) snprintf(schema, sizeof schema,
					OBJECT("\"a\":{\"type\":\"%s\",\"multipleOf\":%s}"), types[k],
					factors[i]);
			assert_false(is_valid(schema, "{\"a\":0}", NULL));
			assert_false(is_valid(schema, "{\"a\":1}", NULL));
			if (k == 1)
				assert_false(is_valid(schema, "{\"a\":1.5}", NULL));
		}
	assert_true(is_valid(OBJECT("\"a\":{\"type\":\"number\",\"multipleOf\":0.1}"), "{\"a\":0.3}", NULL));
	assert_false(
		is_valid(OBJECT("\"a\":{\"type\":\"number\",\"multipleOf\":0.1}"), "{\"a\":0.35}", NULL));
	assert_true(is_valid(OBJECT("\"a\":{\"type\":\"number\",\"multipleOf\":2.5}"), "{\"a\":7.5}", NULL));
	assert_true(is_valid(OBJECT("\"a\":{\"type\":\"number\",\"multipleOf\":1}"), "{\"a\":-3}", NULL));
}

/* ---- Messages ---- */

static struct vdi_schema *compiled(struct vdi_tree *tree, const char *text)
{
	struct vdi_field_errors field_errors = { 0 };
	struct vdi_schema      *schema = NULL;
	struct vdi_node	       *source;

	assert_status(vdi_tree_parse(tree, vd_bytes_of(text), &source, NULL), VD_OK);
	if (vdi_schema_compile(tree, source, "", &schema, &field_errors) != VD_OK)
		fail_msg("%s: %.*s", text, (int) vdi_field_errors_message(&field_errors).size,
			 (const char *) vdi_field_errors_message(&field_errors).data);
	vdi_field_errors_fini(&field_errors);
	return schema;
}

#define KEYED                                                                                                \
	OBJECT("\"l\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-"       \
	       "keys\":["                                                                                    \
	       "\"n\"],\"items\":{\"type\":\"object\",\"required\":[\"n\"],\"properties\":{\"n\":{\"type\":" \
	       "\"string\"},\"v\":{\"type\":\"integer\"}}}}")
#define EMBEDDED                                                                                             \
	OBJECT("\"e\":{\"type\":\"object\",\"x-kubernetes-embedded-resource\":true,"                         \
	       "\"x-kubernetes-preserve-unknown-fields\":true}")
#define SET                                                                                                  \
	OBJECT("\"s\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"set\",\"items\":{\"type\":"           \
	       "\"integer\"}}")

static void messages_are_exact(void **state)
{
	static const struct {
		const char *schema, *object, *old, *message; /* message NULL: it is valid */
	} rows[] = {
		/* lists of type map are compared by their keys, sets by their items */
		{ KEYED, "{\"l\":[{\"n\":\"a\",\"v\":1},{\"n\":\"b\",\"v\":1}]}", NULL, NULL },
		{ KEYED, "{\"l\":[{\"n\":\"a\",\"v\":1},{\"n\":\"a\",\"v\":2}]}", NULL,
		  "l[1]: Duplicate value: {\"n\":\"a\"}" },
		{ KEYED, "{\"l\":[\"x\",\"x\"]}", NULL,
		  "[l[0]: Invalid value: \"string\": l[0] in body must be of type object: \"string\", l[1]: "
		  "Invalid value: \"string\": l[1] in body must be of type object: \"string\", l[0]: Invalid "
		  "value: \"x\": must be an object for an array of list-type map]" },
		{ OBJECT("\"l\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-"
			 "map-keys\":["
			 "\"v\",\"n\"],\"items\":{\"type\":\"object\",\"required\":[\"n\",\"v\"],"
			 "\"properties\":{\"n\":{"
			 "\"type\":\"string\"},\"v\":{\"type\":\"integer\"}}}}"),
		  "{\"l\":[{\"v\":1,\"n\":\"a\"},{\"v\":1,\"n\":\"a\"}]}", NULL,
		  "l[1]: Duplicate value: {\"n\":\"a\",\"v\":1}" }, /* the keys are sorted */
		/* metadata of an embedded resource is held to the rules of metadata */
		{ EMBEDDED,
		  "{\"e\":{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"labels\":{\"a\":\"b\"}}}}",
		  NULL, NULL },
		{ EMBEDDED,
		  "{\"e\":{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"labels\":{\"a/\":\"b\"}}}}",
		  NULL, "e.metadata.labels: Forbidden: \"a/\": name part must be non-empty" },
		/* an update may keep a list that had duplicates, but not make one */
		{ KEYED, "{\"l\":[{\"n\":\"a\"},{\"n\":\"a\"}]}", "{\"l\":[{\"n\":\"a\"}]}",
		  "l[1]: Duplicate value: {\"n\":\"a\"}" },
		{ KEYED, "{\"l\":[{\"n\":\"a\"},{\"n\":\"a\"}]}", "{}",
		  "l[1]: Duplicate value: {\"n\":\"a\"}" },
		{ KEYED, "{\"l\":[{\"n\":\"a\"},{\"n\":\"a\"}]}", "{\"l\":[{\"n\":\"b\"},{\"n\":\"b\"}]}",
		  NULL },
		{ SET, "{\"s\":[1,2,1]}", "{\"s\":[1,2]}", "s[2]: Duplicate value: 1" },
		/* values of an enum are compared deeply, and each message begins anew */
		{ OBJECT("\"a\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"},"
			 "\"enum\":[{\"x\":"
			 "1}]}"),
		  "{\"a\":{\"y\":1}}", NULL,
		  "a: Unsupported value: {\"y\":1}: supported values: \"{\\\"x\\\":1}\"" },
		{ OBJECT("\"a\":{\"type\":\"string\",\"enum\":[\"x\"]},\"b\":{\"type\":\"integer\",\"enum\":["
			 "1,2]}"),
		  "{\"a\":\"q\",\"b\":3}", NULL,
		  "[a: Unsupported value: \"q\": supported values: \"x\", b: Unsupported value: 3: supported "
		  "values: \"1\", \"2\"]" },
		/* integers have 64 bits */
		{ OBJECT("\"a\":{\"type\":\"integer\"}"), "{\"a\":9223372036854775807}", NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"integer\"}"), "{\"a\":-9223372036854775808}", NULL, NULL },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"format\":\"int32\"}"), "{\"a\":2147483647}", NULL,
		  NULL },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"format\":\"int32\"}"), "{\"a\":-2147483648}", NULL,
		  NULL },
		{ OBJECT("\"a\":{\"type\":\"integer\",\"format\":\"int32\"}"), "{\"a\":-2147483649}", NULL,
		  "<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in "
		  "a" },
		/* what another type than the format's is called */
		{ OBJECT("\"a\":{\"type\":\"string\",\"format\":\"date\"}"), "{\"a\":1.5}", NULL,
		  "a: Invalid value: \"float64\": a in body must be of type date: \"float64\"" },
		{ OBJECT("\"a\":{\"type\":\"string\",\"format\":\"date\"}"), "{\"a\":true}", NULL,
		  "a: Invalid value: \"\": a in body must be of type date: \"\"" },
		/* an empty list is no empty object, also if nothing else has changed */
		{ OBJECT("\"a\":{\"type\":\"object\",\"minProperties\":1,\"additionalProperties\":{\"type\":"
			 "\"integer\"}}"),
		  "{\"a\":{}}", "{\"a\":[]}",
		  "a: Invalid value: 0: a in body should have at least 1 properties" },
		{ OBJECT("\"a\":{\"type\":\"object\",\"minProperties\":1,\"additionalProperties\":{\"type\":"
			 "\"integer\"}}"),
		  "{\"a\":{}}", "{\"a\":{}}", NULL },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_tree		tree = VDI_TREE_INIT;
		struct vdi_field_errors field_errors = { 0 };
		struct vdi_schema      *schema = compiled(&tree, rows[i].schema);
		struct vdi_node	       *object, *old = NULL;
		vd_status		status;

		assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i].object), &object, NULL), VD_OK);
		if (rows[i].old)
			assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i].old), &old, NULL), VD_OK);
		status = vdi_schema_validate(schema, &tree, object, old, VDI_SCHEMA_WHOLE, &field_errors);
		if (status != (rows[i].message ? VD_INVALID : VD_OK) ||
		    !vd_bytes_equal(vdi_field_errors_message(&field_errors),
				    vd_bytes_of(rows[i].message ? rows[i].message : "[]")))
			fail_msg("%s: %.*s", rows[i].object,
				 (int) vdi_field_errors_message(&field_errors).size,
				 (const char *) vdi_field_errors_message(&field_errors).data);
		(void) vdi_schema_free(schema);
		vdi_field_errors_fini(&field_errors);
		vdi_tree_fini(&tree);
	}
}

/* A set of any size has no duplicates but those that it has. */
static void duplicates_are_found_in_long_lists(void **state)
{
	for (int count = 2; count < 300; count += 7)
		for (int twice = -1; twice < count; twice += 1 + count / 5) {
			struct vdi_tree		tree = VDI_TREE_INIT;
			struct vdi_field_errors field_errors = { 0 };
			struct vdi_schema      *schema = compiled(&tree, SET);
			struct vdi_out		text = VDI_OUT_INIT;
			struct vdi_node	       *object;
			char			expected[60];

			vdi_out_raw(&text, "{\"s\":[");
			for (int i = 0; i < count; i++)
				vdi_out_printf(&text, "%s%d", i ? "," : "", i * 13);
			if (twice >= 0)
				vdi_out_printf(&text, ",%d", twice * 13);
			vdi_out_raw(&text, "]}");
			assert_status(vdi_tree_parse(&tree, vdi_out_slice(&text), &object, NULL), VD_OK);
			assert_status(vdi_schema_validate(schema, &tree, object, NULL, VDI_SCHEMA_WHOLE,
							  &field_errors),
				      twice >= 0 ? VD_INVALID : VD_OK);
			if (twice >= 0) {
				(void) snprintf(expected, sizeof expected, "s[%d]: Duplicate value: %d",
						count, twice * 13);
				assert_true(vd_bytes_equal(vdi_field_errors_message(&field_errors),
							   vd_bytes_of(expected)));
			}
			(void) vdi_schema_free(schema);
			vdi_out_fini(&text);
			vdi_field_errors_fini(&field_errors);
			vdi_tree_fini(&tree);
		}
}

/* A validation needs exactly the work that it takes; with less it is refused as too costly. */
static void a_validation_needs_the_work_that_it_takes(void **state)
{
	static const char *const rows[][2] = {
		{ SET, "{\"s\":[1,2,3,4,5,6,7,8,9]}" },
		{ KEYED, "{\"l\":[{\"n\":\"a\"},{\"n\":\"b\",\"v\":1},{\"n\":\"c\"}]}" },
		{ OBJECT("\"a\":{\"type\":\"string\",\"pattern\":\"^(a|b)*$\",\"enum\":[\"a\",\"b\",\"abab\"]"
			 "}"),
		  "{\"a\":\"abab\"}" },
		{ OBJECT("\"e\":{\"type\":\"object\",\"x-kubernetes-embedded-resource\":true,\"x-kubernetes-"
			 "preserve-"
			 "unknown-fields\":true}"),
		  "{\"e\":{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"x\"}}}" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_tree	   tree = VDI_TREE_INIT;
		struct vdi_schema *schema = compiled(&tree, rows[i][0]);
		uint64_t	   work = 100000, needed;
		struct vdi_node	  *object;

		assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i][1]), &object, NULL), VD_OK);
		for (uint64_t given = 100000, k = 0; k <= 100000; k++) {
			struct vdi_field_errors field_errors = { 0 };
			vd_status		status;

			work = given;
			status = vdi_schema_validate_node(schema->root, &tree, object, NULL, VD_BYTES_NONE,
							  false, &work, &field_errors);
			if (k == 0) {
				assert_status(status, VD_OK);
				needed = given - work;
				assert_true(needed > 3);
				given = needed + 1;
			} else if (given >= needed) {
				assert_status(status, VD_OK);
				assert_int_equal(work, given - needed);
			} else {
				struct vd_bytes message = vdi_field_errors_message(&field_errors);

				assert_status(status, VD_INVALID);
				assert_true(work <= given);
				assert_non_null(
					memmem(message.data, message.size, "too costly to validate", 22));
			}
			vdi_field_errors_fini(&field_errors);
			if (given-- == 0)
				break;
		}
		(void) vdi_schema_free(schema);
		vdi_tree_fini(&tree);
	}
}

/* Unknown members are all removed; the first VDI_FIELD_ERRORS_MAX are noted. */
static void count_unknown(void *arg, struct vd_bytes path)
{
	++*(int *) arg;
}

static void the_first_unknown_members_are_noted(void **state)
{
	for (int count = VDI_FIELD_ERRORS_MAX - 1; count <= VDI_FIELD_ERRORS_MAX + 2; count++) {
		struct vdi_tree	   tree = VDI_TREE_INIT;
		struct vdi_schema *schema = compiled(&tree, OBJECT("\"a\":{\"type\":\"string\"}"));
		struct vdi_out	   text = VDI_OUT_INIT;
		struct vdi_node	  *object;
		int		   noted = 0;

		vdi_out_raw(&text, "{\"a\":\"x\"");
		for (int i = 0; i < count; i++)
			vdi_out_printf(&text, ",\"u%d\":1", i);
		vdi_out_raw(&text, "}");
		assert_status(vdi_tree_parse(&tree, vdi_out_slice(&text), &object, NULL), VD_OK);
		assert_status(vdi_schema_prune(schema, &tree, object, count_unknown, &noted), VD_OK);
		assert_int_equal(noted, VDI_MIN(count, VDI_FIELD_ERRORS_MAX));
		assert_int_equal(object->count, 1);
		vdi_out_fini(&text);
		(void) vdi_schema_free(schema);
		vdi_tree_fini(&tree);
	}
}

/* A number out of its format's range is bad like any other value: an update may leave it. */
static void a_format_of_numbers_has_a_range(void **state)
{
	static const char int32[] = OBJECT("\"a\":{\"type\":\"integer\",\"format\":\"int32\"}");
	static const char bounds[] =
		OBJECT("\"a\":{\"type\":\"integer\",\"format\":\"int32\",\"maximum\":3000000000}");
	static const char numbers[] = OBJECT("\"a\":{\"type\":\"number\",\"format\":\"float\"}");

	assert_true(is_valid(int32, "{\"a\":2147483647}", NULL));
	assert_false(is_valid(int32, "{\"a\":2147483648}", NULL));
	assert_true(is_valid(int32, "{\"a\":2147483648}", "{\"a\":2147483648}"));
	assert_false(is_valid(int32, "{\"a\":2147483648}", "{\"a\":2147483649}"));
	assert_false(is_valid(bounds, "{\"a\":5}", NULL)); /* the limit itself is out of range */
	assert_true(is_valid(bounds, "{\"a\":5}", "{\"a\":5}"));
	assert_true(is_valid(numbers, "{\"a\":3.4e38}", NULL));
	assert_false(is_valid(numbers, "{\"a\":3.5e38}", NULL));
	assert_true(is_valid(numbers, "{\"a\":-3.4e38}", NULL));
	assert_false(is_valid(numbers, "{\"a\":-3.5e38}", NULL));
	assert_true(is_valid(numbers, "{\"a\":3.5e38}", "{\"a\":3.5e38}"));
}

/* Defaults leave members alone that the schema does not know, whatever they hold. */
static void defaults_do_not_touch_unknown_members(void **state)
{
	static const char *const rows[][2] = {
		{ "{\"u\":null}", "{\"u\":null,\"a\":\"x\"}" },
		{ "{\"u\":[null,{\"x\":null,\"l\":[null]},[1]]}",
		  "{\"u\":[null,{\"x\":null,\"l\":[null]},[1]],\"a\":\"x\"}" },
		{ "{\"u\":{\"x\":null,\"l\":[{\"y\":null}]}}",
		  "{\"u\":{\"x\":null,\"l\":[{\"y\":null}]},\"a\":\"x\"}" },
		{ "{\"a\":null}", "{\"a\":\"x\"}" },
		{ "{\"b\":null}", "{\"a\":\"x\"}" },
		{ "{\"a\":\"y\"}", "{\"a\":\"y\"}" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_tree	   tree = VDI_TREE_INIT;
		struct vdi_schema *schema = compiled(
			&tree,
			OBJECT("\"a\":{\"type\":\"string\",\"default\":\"x\"},\"b\":{\"type\":\"string\"}"));
		struct vdi_out	 text = VDI_OUT_INIT;
		struct vdi_node *object;

		assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i][0]), &object, NULL), VD_OK);
		assert_status(vdi_schema_default(schema, &tree, object), VD_OK);
		vdi_tree_write(&text, object);
		if (!vd_bytes_equal(vdi_out_slice(&text), vd_bytes_of(rows[i][1])))
			fail_msg("%s: %.*s", rows[i][0], (int) text.size, text.data);
		vdi_out_fini(&text);
		(void) vdi_schema_free(schema);
		vdi_tree_fini(&tree);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_format_of_numbers_has_a_range),
		cmocka_unit_test(defaults_do_not_touch_unknown_members),
		cmocka_unit_test(messages_are_exact),
		cmocka_unit_test(duplicates_are_found_in_long_lists),
		cmocka_unit_test(a_validation_needs_the_work_that_it_takes),
		cmocka_unit_test(the_first_unknown_members_are_noted),
		cmocka_unit_test(each_keyword_refuses_its_bad_values),
		cmocka_unit_test(an_update_may_leave_what_was_bad),
		cmocka_unit_test(the_best_branch_is_shown),
		cmocka_unit_test(a_factor_is_positive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
