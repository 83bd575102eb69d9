/* Unit tests of apiserver/schema/schema_check.c (and schema_compile.c): what a schema may not say. The texts
 * were seen from k8s.io/apiextensions-apiserver v0.36.3. */
#include "vdtest.h"

#include "schema.h"

static vd_status compile(const char *text, struct vdi_field_errors *field_errors,
			 struct vdi_schema **ret_schema)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *source;
	struct vd_error	 error;
	vd_status	 status = vdi_tree_parse(&tree, vd_bytes_of(text), &source, &error);

	if (status == VD_OK)
		status = vdi_schema_compile(&tree, source, "", ret_schema, field_errors);
	vdi_tree_fini(&tree);
	return status;
}

static void what_is_refused_and_how(void **state)
{
	static const struct {
		const char *schema, *field_errors;
	} rows[] = {
		{ "{}", "type: Required value: must not be empty at the root" },
		{ "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}",
		  "type: Invalid value: \"array\": must be object at the root" },
		{ "{\"type\":\"object\",\"properties\":{\"metadata\":{\"type\":\"string\"}}}",
		  "properties[metadata].type: Invalid value: \"string\": must be object" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"additionalProperties\":{"
		  "}}}}",
		  "properties[a].additionalProperties.type: Required value: must not be empty for specified "
		  "object fields" },
		/* The pair of integer and string is taken in its two places only. */
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"x-kubernetes-int-or-string\":true,\"anyOf\":"
		  "[{"
		  "\"type\":\"integer\"},{\"type\":\"string\"}],\"allOf\":[{\"anyOf\":[{\"type\":\"integer\"}"
		  ",{"
		  "\"type\":\"string\"}]}],\"not\":{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}]}"
		  "}}}",
		  "[properties[a].not.anyOf[0].type: Forbidden: must be empty to be structural, "
		  "properties[a].not.anyOf[1].type: Forbidden: must be empty to be structural]" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"x-kubernetes-int-or-string\":true,\"allOf\":"
		  "[{},{"
		  "\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}]}]}}}",
		  "[properties[a].allOf[1].anyOf[0].type: Forbidden: must be empty to be structural, "
		  "properties[a].allOf[1].anyOf[1].type: Forbidden: must be empty to be structural]" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"x-kubernetes-int-or-string\":true,\"oneOf\":"
		  "[{"
		  "\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}]}]}}}",
		  "[properties[a].oneOf[0].anyOf[0].type: Forbidden: must be empty to be structural, "
		  "properties[a].oneOf[0].anyOf[1].type: Forbidden: must be empty to be structural]" },
		{ "{\"type\":\"object\",\"properties\":{\"apiVersion\":{\"type\":\"integer\"},\"kind\":{"
		  "\"type\":\"boolean\"}}}",
		  "[properties[apiVersion].type: Invalid value: \"integer\": must be string, "
		  "properties[kind].type: Invalid value: \"boolean\": must be string]" },
		/* Items of a set are atomic. */
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"x-kubernetes-list-type\":"
		  "\"set\",\"items\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"set\",\"items\":{"
		  "\"type\":"
		  "\"string\"}}}}}",
		  "properties[a].items.x-kubernetes-list-type: Invalid value: \"set\": must be atomic as "
		  "item of "
		  "a list with x-kubernetes-list-type=set" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"x-kubernetes-list-type\":"
		  "\"map\",\"x-kubernetes-list-map-keys\":[],\"items\":{\"type\":\"object\"}}}}",
		  "properties[a].x-kubernetes-list-map-keys: Required value: must not be empty if "
		  "x-kubernetes-list-type is map" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{}}}",
		  "properties[a].type: Required value: must not be empty for specified object fields" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\"}}}",
		  "properties[a].items: Required value: must be specified" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"items\":{}}}}",
		  "properties[a].items.type: Required value: must not be empty for specified array items" },
		{ "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}",
		  "additionalProperties: Forbidden: must not be used at the root" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"properties\":{\"b\":{"
		  "\"type\":\"string\"}},\"additionalProperties\":{\"type\":\"string\"}}}}",
		  "properties[a].additionalProperties: Forbidden: additionalProperties and properties are "
		  "mutual exclusive" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"$ref\":\"#/x\"}}}",
		  "properties[a].$ref: Forbidden: $ref is not supported" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"uniqueItems\":true,"
		  "\"items\":{\"type\":\"string\"}}}}",
		  "properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime "
		  "complexity becomes quadratic" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"text\"}}}",
		  "properties[a].type: Unsupported value: \"text\": supported values: \"array\", "
		  "\"boolean\", \"integer\", \"number\", \"object\", \"string\"" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"null\"}}}",
		  "[properties[a].type: Forbidden: type cannot be set to null, use nullable as an "
		  "alternative, properties[a].type: Unsupported value: \"null\": supported values: "
		  "\"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"]" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"pattern\":\"(\"}}}",
		  "properties[a].pattern: Invalid value: \"(\": must be a valid regular expression, but "
		  "isn't: error parsing regexp: missing closing ): `(`" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"pattern\":\"(?=a)\"}}}",
		  "properties[a].pattern: Invalid value: \"(?=a)\": must be a valid regular expression, but "
		  "isn't: error parsing regexp: invalid or unsupported Perl syntax: `(?=`" },
		{ "{\"type\":\"object\",\"properties\":{\"metadata\":{\"type\":\"object\",\"properties\":{"
		  "\"labels\":{\"type\":\"object\"}}}}}",
		  "properties[metadata]: Forbidden: must not specify anything other than name and "
		  "generateName, but metadata is implicitly specified" },
		{ "{\"type\":\"object\",\"properties\":{\"metadata\":{\"type\":\"object\",\"properties\":{"
		  "\"name\":{\"type\":\"string\",\"maxLength\":5}}}}}",
		  NULL },
		{ "{\"type\":\"object\",\"properties\":{\"kind\":{\"type\":\"integer\"},\"apiVersion\":{"
		  "\"type\":\"string\",\"default\":\"v1\"}}}",
		  "[properties[apiVersion].default: Forbidden: must not be set in top-level apiVersion, "
		  "properties[kind].type: Invalid value: \"integer\": must be string]" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"x-kubernetes-int-or-string\":true,\"x-"
		  "kubernetes-preserve-unknown-fields\":true}}}",
		  "properties[a].x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if "
		  "x-kubernetes-int-or-string is true" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"x-kubernetes-preserve-unknown-fields\":true}"
		  "}}",
		  NULL },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"x-kubernetes-preserve-"
		  "unknown-fields\":false}}}",
		  "properties[a].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or "
		  "undefined" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"x-kubernetes-embedded-"
		  "resource\":true}}}",
		  "properties[a].properties: Required value: must not be empty if "
		  "x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"x-kubernetes-embedded-"
		  "resource\":true,\"x-kubernetes-preserve-unknown-fields\":true,\"additionalProperties\":{"
		  "\"type\":\"string\"}}}}",
		  "properties[a].additionalProperties: Forbidden: must not be used if "
		  "x-kubernetes-embedded-resource is set" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"x-kubernetes-embedded-"
		  "resource\":true,\"x-kubernetes-preserve-unknown-fields\":true}}}",
		  "properties[a].type: Invalid value: \"string\": must be object if "
		  "x-kubernetes-embedded-resource is true" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"anyOf\":[{\"type\":"
		  "\"string\",\"description\":\"x\",\"default\":\"y\",\"nullable\":true}]}}}",
		  "[properties[a].anyOf[0].default: Forbidden: must be undefined to be structural, "
		  "properties[a].anyOf[0].description: Forbidden: must be empty to be structural, "
		  "properties[a].anyOf[0].nullable: Forbidden: must be false to be structural, "
		  "properties[a].anyOf[0].type: Forbidden: must be empty to be structural]" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"x-kubernetes-int-or-string\":true,\"anyOf\":"
		  "[{\"type\":\"integer\"},{\"type\":\"string\"}]}}}",
		  NULL },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"x-kubernetes-int-or-string\":true,\"allOf\":"
		  "[{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}]},{\"pattern\":\"^a\"}]}}}",
		  NULL },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"x-kubernetes-int-or-string\":true,\"anyOf\":"
		  "[{\"type\":\"string\"},{\"type\":\"integer\"}]}}}",
		  "[properties[a].anyOf[0].type: Forbidden: must be empty to be structural, "
		  "properties[a].anyOf[1].type: Forbidden: must be empty to be structural]" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"properties\":{\"b\":{"
		  "\"type\":\"string\"}},\"anyOf\":[{\"properties\":{\"c\":{\"minLength\":1}}}]}}}",
		  NULL },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}},\"allOf\":[{"
		  "\"properties\":{\"metadata\":{\"required\":[\"x\"]}}}]}",
		  "[allOf[0].properties[metadata]: Forbidden: must not be specified in a nested context, "
		  "properties[metadata]: Required value: because it is defined in "
		  "allOf[0].properties[metadata]]" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"default\":5}}}",
		  "properties[a].default: Invalid value: \"integer\":  in body must be of type string: "
		  "\"integer\"" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"properties\":{\"b\":{"
		  "\"type\":\"string\",\"maxLength\":1}},\"default\":{\"b\":\"long\",\"c\":1}}}}",
		  "[properties[a].default: Invalid value: {\"b\":\"long\",\"c\":1}: must not have unknown "
		  "fields, properties[a].default.b: Too long: may not be more than 1 byte]" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"x-kubernetes-list-type\":"
		  "\"map\",\"items\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"string\"}}}}}}",
		  "properties[a].x-kubernetes-list-map-keys: Required value: must not be empty if "
		  "x-kubernetes-list-type is map" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"x-kubernetes-list-type\":"
		  "\"map\",\"x-kubernetes-list-map-keys\":[\"n\"],\"items\":{\"type\":\"object\","
		  "\"properties\":{\"n\":{\"type\":\"string\"}}}}}}",
		  "properties[a].items.properties[n].default: Required value: this property is in "
		  "x-kubernetes-list-map-keys, so it must have a default or be a required property" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"x-kubernetes-list-type\":"
		  "\"map\",\"x-kubernetes-list-map-keys\":[\"n\",\"z\"],\"items\":{\"type\":\"object\","
		  "\"properties\":{\"n\":{\"type\":\"object\",\"nullable\":true}},\"required\":[\"n\"]}}}}",
		  "[properties[a].items.properties[n].nullable: Forbidden: this property is in "
		  "x-kubernetes-list-map-keys, so it cannot be nullable, "
		  "properties[a].items.properties[n].type: Invalid value: \"object\": must be a scalar type "
		  "if parent array's x-kubernetes-list-type is map, "
		  "properties[a].x-kubernetes-list-map-keys: Invalid value: [\"n\",\"z\"]: entries must all "
		  "be names of item properties]" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"x-kubernetes-list-type\":"
		  "\"set\",\"items\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"string\"}}}}}}",
		  "properties[a].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of "
		  "a list with x-kubernetes-list-type=set" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"x-kubernetes-list-type\":"
		  "\"heap\",\"items\":{\"type\":\"string\"}}}}",
		  "properties[a].x-kubernetes-list-type: Unsupported value: \"heap\": supported values: "
		  "\"atomic\", \"set\", \"map\"" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"x-kubernetes-list-"
		  "type\":\"set\"}}}",
		  "properties[a].type: Invalid value: \"string\": must be array if x-kubernetes-list-type is "
		  "specified" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"x-kubernetes-map-type\":"
		  "\"atomic\"}}}",
		  "properties[a].type: Invalid value: \"string\": must be object if x-kubernetes-map-type is "
		  "specified" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"x-kubernetes-map-type\":"
		  "\"loose\"}}}",
		  "properties[a].x-kubernetes-map-type: Unsupported value: \"loose\": supported values: "
		  "\"atomic\", \"granular\"" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"x-kubernetes-map-type\":"
		  "\"granular\"}}}",
		  NULL },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"additionalProperties\":{"
		  "\"type\":\"integer\"},\"default\":{\"x\":1,\"y\":\"z\"}}}}",
		  "properties[a].default.y: Invalid value: \"string\": .y in body must be of type integer: "
		  "\"string\"" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"properties\":{\"b\":{"
		  "\"type\":\"array\",\"items\":{\"type\":\"integer\"}}},\"default\":{\"b\":[1,\"z\"]}}}}",
		  "properties[a].default.b[1]: Invalid value: \"string\": b[1] in body must be of type "
		  "integer: \"string\"" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"x-kubernetes-list-type\":"
		  "\"set\",\"items\":{\"type\":\"string\",\"nullable\":true}}}}",
		  "properties[a].items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type "
		  "is set" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"x-kubernetes-list-type\":"
		  "\"map\",\"x-kubernetes-list-map-keys\":[\"n\"],\"items\":{\"type\":\"object\","
		  "\"nullable\":true,"
		  "\"properties\":{\"n\":{\"type\":\"string\"}},\"required\":[\"n\"]}}}}",
		  "properties[a].items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type "
		  "is map" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"x-kubernetes-list-type\":"
		  "\"atomic\",\"items\":{\"type\":\"string\",\"nullable\":true}}}}",
		  NULL },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"x-kubernetes-int-or-"
		  "string\":true,\"x-kubernetes-embedded-resource\":true,\"properties\":{\"b\":{\"type\":"
		  "\"string\"}}}}}",
		  "properties[a].x-kubernetes-embedded-resource: Invalid value: true: must be false if "
		  "x-kubernetes-int-or-string is true" },
		{ "{\"type\":\"object\",\"properties\":{},\"nullable\":true}",
		  "nullable: Forbidden: nullable cannot be true at the root" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"id\":\"x\"}}}",
		  "properties[a].id: Forbidden: id is not supported" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"x-kubernetes-"
		  "validations\":[{\"rule\":\"\"}]}}}",
		  "properties[a].x-kubernetes-validations[0].rule: Required value: rule is not specified" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"x-kubernetes-"
		  "validations\":[{\"rule\":\"self != ''\"}]}}}",
		  NULL },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_field_errors field_errors = { 0 };
		struct vdi_schema      *schema = NULL;
		vd_status		status = compile(rows[i].schema, &field_errors, &schema);
		struct vd_bytes		message = vdi_field_errors_message(&field_errors);

		if (rows[i].field_errors == NULL) {
			if (status != VD_OK)
				fail_msg("%s: %.*s", rows[i].schema, (int) message.size,
					 (const char *) message.data);
		} else {
			if (status != VD_INVALID ||
			    !vd_bytes_equal(message, vd_bytes_of(rows[i].field_errors)))
				fail_msg("%s:\nis  %.*s\nnot %s", rows[i].schema, (int) message.size,
					 (const char *) message.data, rows[i].field_errors);
			assert_null(schema);
		}
		(void) vdi_schema_free(schema);
		vdi_field_errors_fini(&field_errors);
	}
}

static void the_place_comes_first(void **state)
{
	struct vdi_field_errors field_errors = { 0 };
	struct vdi_tree		tree = VDI_TREE_INIT;
	struct vdi_schema      *schema;
	struct vdi_node	       *source;

	(void) state;
	assert_status(vdi_tree_parse(&tree,
				     vd_bytes_of("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":"
						 "\"string\",\"default\":1}}}"),
				     &source, NULL),
		      VD_OK);
	assert_status(vdi_schema_compile(&tree, source, "spec.versions[0].schema.openAPIV3Schema", &schema,
					 &field_errors),
		      VD_INVALID);
	assert_true(
		vd_bytes_equal(vdi_field_errors_message(&field_errors),
			       vd_bytes_of("spec.versions[0].schema.openAPIV3Schema.properties[a].default: "
					   "Invalid value: \"integer\":  in body must be of type string: "
					   "\"integer\"")));
	vdi_field_errors_fini(&field_errors);
	vdi_tree_fini(&tree);
}

static void rules_are_counted(void **state)
{
	struct vdi_field_errors field_errors = { 0 };
	struct vdi_schema      *schema;

	(void) state;
	assert_status(
		compile("{\"type\":\"object\",\"x-kubernetes-validations\":[{\"rule\":\"true\"}],"
			"\"properties\":{\"a\":{\"type\":\"string\","
			"\"x-kubernetes-validations\":[{\"rule\":\"self != 'x'\"},{\"rule\":\"true\"}]}}}",
			&field_errors, &schema),
		VD_OK);
	assert_int_equal(vdi_schema_rule_count(schema), 3);
	(void) vdi_schema_free(schema);
	vdi_field_errors_fini(&field_errors);
}

/* As many subschemas as there may be, and one more. */
static void subschemas_are_bounded(void **state)
{
	for (int more = 0; more < 2; more++) {
		struct vdi_out		text = VDI_OUT_INIT;
		struct vdi_field_errors field_errors = { 0 };
		struct vdi_schema      *schema = NULL;

		(void) state;
		vdi_out_raw(&text, "{\"type\":\"object\",\"properties\":{");
		for (int i = 0; i < VDI_SCHEMA_NODES_MAX - 1 + more; i++)
			vdi_out_printf(&text, "%s\"p%d\":{\"type\":\"string\"}", i ? "," : "", i);
		vdi_out_printf(&text, "}}%c", 0);
		assert_status(compile(text.data, &field_errors, &schema), more ? VD_INVALID : VD_OK);
		if (more)
			assert_true(vd_bytes_equal(
				vdi_field_errors_message(&field_errors),
				vd_bytes_of(": Forbidden: must not have more than 100000 subschemas")));
		(void) vdi_schema_free(schema);
		vdi_field_errors_fini(&field_errors);
		vdi_out_fini(&text);
	}
}

static void refused_because(const struct vdi_out *text, const char *message)
{
	struct vdi_field_errors field_errors = { 0 };
	struct vdi_schema      *schema = NULL;

	assert_status(compile(text->data, &field_errors, &schema), VD_INVALID);
	assert_true(vd_bytes_equal(vdi_field_errors_message(&field_errors), vd_bytes_of(message)));
	vdi_field_errors_fini(&field_errors);
}

/* What a few bytes of schema could blow up. */
static void patterns_keys_and_defaults_are_bounded(void **state)
{
	struct vdi_out text = VDI_OUT_INIT;

	(void) state;
	vdi_out_raw(&text, "{\"type\":\"object\",\"properties\":{");
	for (int i = 0; i < 200; i++)
		vdi_out_printf(&text, "%s\"p%d\":{\"type\":\"string\",\"pattern\":\"((a{10}){10}){100}\"}",
			       i ? "," : "", i);
	vdi_out_printf(&text, "}}%c", 0);
	refused_because(&text, "properties[p90].pattern: Forbidden: the patterns of a schema must not take "
			       "more than 1000000 steps to compile together");

	vdi_out_reset(&text);
	vdi_out_raw(&text, "{\"type\":\"object\",\"properties\":{\"l\":{\"type\":\"array\",\"items\":{"
			   "\"type\":\"object\"},\"x-kubernetes-list-type\":\"map\","
			   "\"x-kubernetes-list-map-keys\":[");
	for (int i = 0; i <= VDI_SCHEMA_LIST_KEYS_MAX; i++)
		vdi_out_printf(&text, "%s\"k%d\"", i ? "," : "", i);
	vdi_out_printf(&text, "]}}}%c", 0);
	refused_because(
		&text,
		"properties[l].x-kubernetes-list-map-keys: Forbidden: must not have more than 64 entries");
	vdi_out_reset(&text);
	vdi_out_raw(&text, "{\"type\":\"object\",\"properties\":{\"l\":{\"type\":\"array\",\"items\":{"
			   "\"type\":\"object\"},\"x-kubernetes-list-type\":\"map\","
			   "\"x-kubernetes-list-map-keys\":[");
	for (int i = 0; i < VDI_SCHEMA_LIST_KEYS_MAX; i++)
		vdi_out_printf(&text, "%s\"k%d\"", i ? "," : "", i);
	vdi_out_printf(&text, "]}}}%c", 0);
	{
		struct vdi_field_errors field_errors = { 0 };
		struct vdi_schema      *schema = NULL;
		struct vd_bytes		message;

		/* As many as there may be: refused because of their names alone. */
		assert_status(compile(text.data, &field_errors, &schema), VD_INVALID);
		message = vdi_field_errors_message(&field_errors);
		assert_null(memmem(message.data, message.size, "must not have more than", 23));
		vdi_field_errors_fini(&field_errors);
	}

	/* defaults are judged out of one purse */
	vdi_out_reset(&text);
	vdi_out_raw(&text, "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"items\":{"
			   "\"type\":\"integer\",\"enum\":[");
	for (int i = 0; i < VDI_SCHEMA_ENUM_MAX; i++)
		vdi_out_printf(&text, "%s%d", i ? "," : "", i);
	vdi_out_raw(&text, "]},\"default\":[");
	for (int i = 0; i < 20000; i++)
		vdi_out_raw(&text, i ? ",9999" : "9999");
	vdi_out_printf(&text, "]}}}%c", 0);
	refused_because(&text, "properties[a].default: Forbidden: the object is too costly to validate: more "
			       "than 20000000 steps");
	vdi_out_fini(&text);
}

static void every_failed_allocation_is_reported(void **state)
{
	static const char text[] = "{\"type\":\"object\",\"required\":[\"a\"],\"properties\":{\"a\":{"
				   "\"type\":\"string\",\"pattern\":\"^(a|b)*$\",\"enum\":[\"a\"],"
				   "\"default\":\"a\",\"anyOf\":[{\"maxLength\":1}]},\"l\":{\"type\":"
				   "\"array\",\"items\":{\"type\":\"integer\"}}}}";
	int64_t		  live = vdi_alloc_live();

	(void) state;
	for (uint64_t nth = 1;; nth++) {
		struct vdi_field_errors field_errors = { 0 };
		struct vdi_schema      *schema = NULL;
		vd_status		status;
		bool			failed;

		vdi_alloc_fail_nth(nth, 1);
		status = compile(text, &field_errors, &schema);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		(void) vdi_schema_free(schema);
		vdi_field_errors_fini(&field_errors);
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed)
			break;
	}
}

static void h203_explain_finds_the_schema(void **state)
{
	struct vdi_field_errors field_errors = { 0 };
	struct vdi_schema      *schema;
	struct vdi_tree		tree = VDI_TREE_INIT;
	struct vdi_node	       *root;
	struct vdi_out		out = VDI_OUT_INIT;

	(void) state;
	assert_status(compile("{\"type\":\"object\",\"description\":\"A "
			      "tab.\",\"properties\":{\"spec\":{\"type\":\"object\",\"description\":\"What "
			      "is wanted.\"},"
			      "\"metadata\":{\"type\":\"object\"}}}",
			      &field_errors, &schema),
		      VD_OK);
	vdi_schema_write_open_api(&out, schema, "example.com", "v1", "Tab");
	assert_status(vdi_tree_parse(&tree, vdi_out_slice(&out), &root, NULL), VD_OK);
	assert_true(vd_bytes_equal(vdi_tree_string_of(vdi_tree_find(&tree, root, "description")),
				   vd_bytes_of("A tab.")));
	assert_true(
		vd_bytes_equal(vdi_tree_string_of(vdi_tree_find(&tree, root, "properties.spec.description")),
			       vd_bytes_of("What is wanted.")));
	assert_true(vd_bytes_equal(vdi_tree_string_of(vdi_tree_find(&tree, root, "properties.kind.type")),
				   vd_bytes_of("string")));
	assert_true(vd_bytes_equal(
		vdi_tree_string_of(vdi_tree_find(
			&tree, vdi_tree_find(&tree, root, "x-kubernetes-group-version-kind")->first, "kind")),
		vd_bytes_of("Tab")));
	vdi_tree_fini(&tree);
	vdi_out_fini(&out);
	(void) vdi_schema_free(schema);
	vdi_field_errors_fini(&field_errors);
}

static void an_open_api_without_memory_is_told(void **state)
{
	struct vdi_field_errors field_errors = { 0 };
	struct vdi_schema      *schema;
	struct vdi_out		whole = VDI_OUT_INIT;
	bool			failed = true;

	assert_status(
		compile("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"description\":"
			"\"A\"},\"b\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}}}",
			&field_errors, &schema),
		VD_OK);
	vdi_schema_write_open_api(&whole, schema, "example.com", "v1", "Tab");
	for (uint64_t nth = 1; failed; nth++) {
		struct vdi_out out = VDI_OUT_INIT;

		vdi_alloc_fail_nth(nth, 1);
		vdi_schema_write_open_api(&out, schema, "example.com", "v1", "Tab");
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_int_equal(out.failed, failed);
		assert_true(failed || vd_bytes_equal(vdi_out_slice(&out), vdi_out_slice(&whole)));
		vdi_out_fini(&out);
	}
	vdi_out_fini(&whole);
	(void) vdi_schema_free(schema);
	vdi_field_errors_fini(&field_errors);
}

/* Each keyword with values of every kind: exactly those of its own are taken. */
static void each_keyword_has_a_shape(void **state)
{
	enum { TEXT, BOOLEAN, FRACTION, COUNT, OBJECT, OBJECTS, TEXTS, LIST, SCHEMAS, SCHEMA_OR_BOOLEAN };
	static const char *const values[] = { "\"x\"", "true",	  "1.5", "3",	      "{}",
					      "[{}]",  "[\"x\"]", "[1]", "{\"a\":1}", "{\"a\":{}}" };
	static const struct {
		const char *keyword, *words;
		const char *taken; /* one letter for each value above */
	} rows[] = {
		{ "title", "must be a string", "y---------" },
		{ "nullable", "must be true or false", "-y--------" },
		{ "minimum", "must be a number", "--yy------" },
		{ "maxLength", "must be an integer", "---y------" },
		{ "not", "must be an object", "----y---yy" },
		{ "allOf", "must be a list of objects", "-----y----" },
		{ "required", "must be a list of strings", "------y---" },
		{ "enum", "must be a list", "-----yyy--" },
		{ "properties", "must be a map of schemas", "----y----y" },
		{ "additionalProperties", "must be a schema, true or false", "-y--y---yy" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		for (size_t k = 0; k < VDI_ARRAY_SIZE(values); k++) {
			struct vdi_field_errors field_errors = { 0 };
			struct vdi_schema      *schema = NULL;
			struct vd_bytes		message = VD_BYTES_NONE;
			char			text[200], wanted[100];
			bool			is_refused;

			(void) snprintf(text, sizeof text,
					"{\"type\":\"object\",\"properties\":{\"f\":{\"type\":\"object\",\"%"
					"s\":%s}}}",
					rows[i].keyword, values[k]);
			(void) snprintf(wanted, sizeof wanted,
					"properties[f].%s: Invalid value: ", rows[i].keyword);
			if (compile(text, &field_errors, &schema) == VD_OK)
				vdi_schema_free(schema);
			else
				message = vdi_field_errors_message(&field_errors);
			is_refused = message.size &&
				     memmem(message.data, message.size, wanted, strlen(wanted)) &&
				     memmem(message.data, message.size, rows[i].words, strlen(rows[i].words));
			if (is_refused == (rows[i].taken[k] == 'y'))
				fail_msg("%s: %.*s", text, (int) message.size,
					 message.size ? (const char *) message.data : "");
			vdi_field_errors_fini(&field_errors);
		}
}

/* What a junctor of the root says about a member needs that member in the structural part. */
#define KEYED_BY_K "\"properties\":{\"k\":{\"type\":\"string\"}}"
static void members_of_junctors_have_counterparts(void **state)
{
	static const char text[] =
		"{\"type\":\"object\",\"properties\":{"
		"\"x\":{\"type\":\"object\"," KEYED_BY_K "},"
		"\"l\":{\"type\":\"array\",\"items\":{\"type\":\"object\"," KEYED_BY_K "}}},"
		"\"anyOf\":["
		"{\"properties\":{\"x\":{\"properties\":{\"k\":{\"minLength\":1},"
		"\"y\":{\"properties\":{\"deep\":{}}}}},\"z\":{}}},"
		"{\"properties\":{\"l\":{\"items\":{\"properties\":{\"q\":{},\"k\":{}}}},"
		"\"w\":{\"items\":{}}}}],"
		"\"not\":{\"properties\":{\"v\":{}}}}";
	static const char *const expected[] = {
		"p.properties[l].items.properties[q]: Required value: because it is defined in "
		"p.anyOf[1].properties[l].items.properties[q]",
		"p.properties[v]: Required value: because it is defined in p.not.properties[v]",
		"p.properties[w]: Required value: because it is defined in p.anyOf[1].properties[w]",
		"p.properties[x].properties[y]: Required value: because it is defined in "
		"p.anyOf[0].properties[x].properties[y]",
		"p.properties[z]: Required value: because it is defined in p.anyOf[0].properties[z]",
	};
	struct vdi_field_errors field_errors = { 0 };
	struct vdi_tree		tree = VDI_TREE_INIT;
	struct vdi_schema      *schema;
	struct vdi_node	       *source;

	assert_status(vdi_tree_parse(&tree, vd_bytes_of(text), &source, NULL), VD_OK);
	assert_status(vdi_schema_compile(&tree, source, "p", &schema, &field_errors), VD_INVALID);
	for (size_t i = 0; i < field_errors.kept; i++) {
		struct vd_bytes field = vdi_field_errors_field(&field_errors, i),
				message = vdi_field_errors_text(&field_errors, i);
		char got[300];

		(void) snprintf(got, sizeof got, "%.*s: %.*s", (int) field.size, (const char *) field.data,
				(int) message.size, (const char *) message.data);
		assert_string_equal(got, i < VDI_ARRAY_SIZE(expected) ? expected[i] : "no more");
	}
	assert_int_equal(field_errors.count, VDI_ARRAY_SIZE(expected));
	vdi_field_errors_fini(&field_errors);
	vdi_tree_fini(&tree);
}

/* The published schema describes apiVersion, kind and each member of metadata. */
static void the_published_schema_describes_metadata(void **state)
{
	static const char *const members[][2] = {
		{ "annotations", "object" },
		{ "creationTimestamp", "string" },
		{ "deletionGracePeriodSeconds", "integer" },
		{ "deletionTimestamp", "string" },
		{ "finalizers", "array" },
		{ "generateName", "string" },
		{ "generation", "integer" },
		{ "labels", "object" },
		{ "name", "string" },
		{ "namespace", "string" },
		{ "ownerReferences", "array" },
		{ "resourceVersion", "string" },
		{ "uid", "string" },
	};
	struct vdi_field_errors field_errors = { 0 };
	struct vdi_schema      *schema;
	struct vdi_tree		tree = VDI_TREE_INIT;
	struct vdi_node	       *root, *node;
	struct vdi_out		out = VDI_OUT_INIT;

	assert_status(compile("{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\"}}}",
			      &field_errors, &schema),
		      VD_OK);
	vdi_schema_write_open_api(&out, schema, "example.com", "v1", "Tab");
	assert_status(vdi_tree_parse(&tree, vdi_out_slice(&out), &root, NULL), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(members); i++) {
		char path[80];

		(void) snprintf(path, sizeof path, "properties.metadata.properties.%s", members[i][0]);
		node = vdi_tree_find(&tree, root, path);
		assert_non_null(node);
		assert_true(vd_bytes_equal(vdi_tree_string_of(vdi_tree_find(&tree, node, "type")),
					   vd_bytes_of(members[i][1])));
		assert_true(vdi_tree_string_of(vdi_tree_find(&tree, node, "description")).size > 20);
	}
	node = vdi_tree_find(&tree, root, "properties.metadata.properties");
	assert_int_equal(node->count, VDI_ARRAY_SIZE(members));
	vdi_tree_fini(&tree);
	vdi_out_fini(&out);
	(void) vdi_schema_free(schema);
	vdi_field_errors_fini(&field_errors);
}

static void these_schemas_are_fine(void **state)
{
	static const char *const rows[] = {
		"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"x-kubernetes-list-type\":"
		"\"set\","
		"\"items\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"atomic\",\"items\":{\"type\":"
		"\"string\"}}}}}",
		"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"x-kubernetes-list-type\":"
		"\"set\","
		"\"items\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}}",
		/* a default is not held to the type of its list */
		"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"x-kubernetes-list-type\":"
		"\"set\","
		"\"items\":{\"type\":\"string\"},\"default\":[\"x\",\"x\"]}}}",
		("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"properties\":{},"
		 "\"additionalProperties\":{\"type\":\"string\"}}}}"),
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_field_errors field_errors = { 0 };
		struct vdi_schema      *schema = NULL;

		if (compile(rows[i], &field_errors, &schema) != VD_OK)
			fail_msg("%s: %.*s", rows[i], (int) vdi_field_errors_message(&field_errors).size,
				 (const char *) vdi_field_errors_message(&field_errors).data);
		(void) vdi_schema_free(schema);
		vdi_field_errors_fini(&field_errors);
	}
}

/* A schema that is refused because of a default: without memory that is VD_NOMEM, never VD_OK. */
static void every_failed_allocation_of_a_bad_default_is_reported(void **state)
{
	static const char text[] =
		"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"default\":1},\"b\":{"
		"\"type\":"
		"\"object\",\"properties\":{\"c\":{\"type\":\"integer\"}},\"default\":{\"d\":1}}}}";
	bool failed = true;

	for (uint64_t nth = 1; failed; nth++) {
		int64_t			live = vdi_alloc_live();
		struct vdi_field_errors field_errors = { 0 };
		struct vdi_schema      *schema = NULL;
		vd_status		status;

		vdi_alloc_fail_nth(nth, 1);
		status = compile(text, &field_errors, &schema);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_INVALID);
		assert_null(schema);
		vdi_field_errors_fini(&field_errors);
		assert_int_equal(vdi_alloc_live(), live);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(these_schemas_are_fine),
		cmocka_unit_test(every_failed_allocation_of_a_bad_default_is_reported),
		cmocka_unit_test(members_of_junctors_have_counterparts),
		cmocka_unit_test(the_published_schema_describes_metadata),
		cmocka_unit_test(what_is_refused_and_how),
		cmocka_unit_test(the_place_comes_first),
		cmocka_unit_test(rules_are_counted),
		cmocka_unit_test(subschemas_are_bounded),
		cmocka_unit_test(patterns_keys_and_defaults_are_bounded),
		cmocka_unit_test(every_failed_allocation_is_reported),
		cmocka_unit_test(h203_explain_finds_the_schema),
		cmocka_unit_test(an_open_api_without_memory_is_told),
		cmocka_unit_test(each_keyword_has_a_shape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
