/* What a CustomResourceDefinition may say: names, columns, scale paths, selectable fields, deprecations,
 * and what may change. */
#include "crd.h"
#include "crd_text.h"
#include "vdtest.h"

#define SELECTING(fields)                                                                                    \
	CRD("{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{\"type\":"   \
	    "\"object\",\"properties\":{\"metadata\":{\"type\":\"object\","                                  \
	    "\"properties\":{\"name\":{\"type\":\"string\"}}},\"flag\":{\"type\":\"boolean\"},\"rate\":{"    \
	    "\"type\":\"number\"},\"either\":{\"x-kubernetes-int-or-string\":true},"                         \
	    "\"any\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true},\"list\":{"         \
	    "\"type\":\"array\",\"items\":{\"type\":\"string\"}},\"map\":{\"type\":\"object\","              \
	    "\"additionalProperties\":{\"type\":\"string\"}},\"spec\":{\"type\":\"object\",\"properties\":{" \
	    "\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"string\"},"                                      \
	    "\"c\":{\"type\":\"string\"},\"d\":{\"type\":\"string\"},\"e\":{\"type\":\"string\"},\"f\":{"    \
	    "\"type\":\"string\"},\"g\":{\"type\":\"string\"}}}}}},"                                         \
	    "\"selectableFields\":[" fields "]}")
#define PATH(path) "{\"jsonPath\":\"" path "\"}"
#define SEVEN                                                                                                \
	PATH(".spec.a")                                                                                      \
	"," PATH(".spec.b") "," PATH(".spec.c") "," PATH(".spec.d") "," PATH(".spec.e") "," PATH(            \
		".spec.f") "," PATH(".spec.g")
#define FIRST "spec.versions[0].selectableFields[0].jsonPath: "

static void r691_selectable_fields_are_fields_of_the_schema(void **state)
{
	static const char *const rows[][2] = {
		/* NULL: all is fine */
		{ SELECTING(SEVEN "," PATH(".flag")), NULL },
		{ SELECTING(PATH(".map.key")), NULL },
		{ SELECTING(PATH(".map.'a.b'")), NULL },
		{ SELECTING(PATH(".map.'a")), NULL },
		{ SELECTING(PATH(".map.'a'.b")), FIRST
		  "Invalid value: \".map.'a'.b\": is an invalid path: does not refer to a valid field" },
		{ SELECTING(PATH(".map.'a'b")),
		  FIRST "Invalid value: \".map.'a'b\": is an invalid path: expected [ or . but got: b" },
		{ SELECTING(PATH(".spec.nope")), FIRST
		  "Invalid value: \".spec.nope\": is an invalid path: does not refer to a valid field" },
		{ SELECTING(PATH(".any.thing")), FIRST
		  "Invalid value: \".any.thing\": is an invalid path: does not refer to a valid field" },
		{ SELECTING(PATH(".spec.a.b")),
		  FIRST "Invalid value: \".spec.a.b\": is an invalid path: does not refer to a valid field" },
		{ SELECTING(PATH("..spec")),
		  FIRST "Invalid value: \"..spec\": is an invalid path: does not refer to a valid field" },
		{ SELECTING(PATH(".spec.")),
		  FIRST "Invalid value: \".spec.\": is an invalid path: unexpected end of JSON path" },
		{ SELECTING(PATH("spec.a")),
		  FIRST "Invalid value: \"spec.a\": is an invalid path: expected [ or . but got: spec" },
		{ SELECTING(PATH(".spec]")),
		  FIRST "Invalid value: \".spec]\": is an invalid path: expected [ or . but got: ]" },
		{ SELECTING(PATH(".spec['a']")),
		  FIRST "Invalid value: \".spec['a']\": is an invalid path: array notation is not allowed" },
		{ SELECTING(PATH(".'a.b")),
		  FIRST "Invalid value: \".'a.b\": is an invalid path: does not refer to a valid field" },
		{ SELECTING(PATH(".metadata.name")),
		  FIRST "Invalid value: \".metadata.name\": must not point to fields in metadata" },
		{ SELECTING(PATH(".spec")),
		  FIRST "Invalid value: \".spec\": must point to a field of type string, boolean or integer. "
			"Enum string fields and strings with formats are allowed." },
		{ SELECTING(PATH(".list")), FIRST "Invalid value: \".list\": must point to a field of type" },
		{ SELECTING(PATH(".rate")), FIRST "Invalid value: \".rate\": must point to a field of type" },
		{ SELECTING(PATH(".either")),
		  FIRST "Invalid value: \".either\": must point to a field of type" },
		{ SELECTING("{}"), FIRST "Required value" },
		{ SELECTING(PATH(".flag") "," PATH(".flag")),
		  "spec.versions[0].selectableFields[1].jsonPath: Duplicate value: \".flag\"" },
		{ SELECTING(SEVEN "," PATH(".flag") "," PATH(".flag")),
		  "spec.versions[0].selectableFields[8].jsonPath: Duplicate value: \".flag\"" },
		{ SELECTING(SEVEN "," PATH(".flag") "," PATH(".map.x")),
		  "spec.versions[0].selectableFields: Too many: must have at most 8 items" },
		{ CRD("{\"name\":\"v1\",\"served\":true,\"storage\":true,\"selectableFields\":[" PATH(
			  ".a") "]}"),
		  "spec.versions[0].selectableFields: Invalid value: \"\": may only be set when "
		  "`version.schema.openAPIV3Schema` is not included" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_tree		tree = VDI_TREE_INIT;
		struct vdi_field_errors field_errors = { 0 };
		struct vdi_node	       *root;
		struct vd_bytes		message;
		size_t			rule_count;

		assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i][0]), &root, NULL), VD_OK);
		assert_status(vdi_crd_validate(&tree, root, NULL, &field_errors, &rule_count), VD_OK);
		message = vdi_field_errors_message(&field_errors);
		if (rows[i][1] == NULL ?
			    field_errors.count > 0 :
			    memmem(message.data, message.size, rows[i][1], strlen(rows[i][1])) == NULL)
			fail_msg("%zu: %.*s", i, (int) message.size, (const char *) message.data);
		assert_true(field_errors.count <= 1 ||
			    i + 1 == VDI_ARRAY_SIZE(
					     rows)); /* nothing else is wrong, but that there is no schema */
		vdi_field_errors_fini(&field_errors);
		vdi_tree_fini(&tree);
	}
}

#define SCALE(paths)                                                                                         \
	CRD("{\"name\":\"v1\",\"served\":true,\"storage\":true," ANYTHING                                    \
	    ",\"subresources\":{\"scale\":{" paths "}}}")
#define SCALE_AT "spec.versions[0].subresources.scale."
#define FIFTY "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define LONG_NAME                                                                                            \
	FIFTY FIFTY FIFTY FIFTY                                                                              \
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" /* 249: with ".spec." 255 */
#define COLUMN(column)                                                                                       \
	CRD("{\"name\":\"v1\",\"served\":true,\"storage\":true," ANYTHING                                    \
	    ",\"additionalPrinterColumns\":[" column "]}")
#define COLUMN_AT "spec.versions[0].additionalPrinterColumns[0]."

static void columns_and_scale_paths_are_checked(void **state)
{
	static const char *const rows[][2] = {
		{ SCALE("\"specReplicasPath\":\".spec.r\",\"statusReplicasPath\":\".status.r\""), NULL },
		{ SCALE("\"specReplicasPath\":\".spec.r\",\"statusReplicasPath\":\".status.r\","
			"\"labelSelectorPath\":\".spec.s\""),
		  NULL },
		{ SCALE("\"specReplicasPath\":\".spec.r\",\"statusReplicasPath\":\".status.r\","
			"\"labelSelectorPath\":\".status.s\""),
		  NULL },
		{ SCALE("\"statusReplicasPath\":\".status.r\""),
		  SCALE_AT "specReplicasPath: Required value" },
		{ SCALE("\"specReplicasPath\":\".spec.r\""), SCALE_AT "statusReplicasPath: Required value" },
		{ SCALE("\"specReplicasPath\":\"spec\",\"statusReplicasPath\":\".status.r\""),
		  "must be a simple json path starting with ." },
		{ COLUMN("{\"name\":\"A\",\"type\":\"string\",\"jsonPath\":\".a\"}"), NULL },
		{ COLUMN("{\"name\":\"A\",\"jsonPath\":\".a\"}"),
		  COLUMN_AT "type: Required value: must be one of boolean,date,integer,number,string" },
		{ COLUMN("{\"name\":\"A\",\"type\":\"float\",\"jsonPath\":\".a\"}"),
		  COLUMN_AT "type: Invalid value: \"float\": must be one of" },
		{ COLUMN("{\"type\":\"string\",\"jsonPath\":\".a\"}"), COLUMN_AT "name: Required value" },
		{ COLUMN("{\"name\":\"A\",\"type\":\"string\"}"), COLUMN_AT "jsonPath: Required value" },
		{ SCALE("\"specReplicasPath\":\".spec." LONG_NAME "\",\"statusReplicasPath\":\".status.r\""),
		  NULL },
		{ SCALE("\"specReplicasPath\":\".spec." LONG_NAME "a\",\"statusReplicasPath\":\".status.r\""),
		  "must be a simple json path starting with ." },
		{ SCALE("\"specReplicasPath\":\".spec.a b\",\"statusReplicasPath\":\".status.r\""),
		  "must be a simple json path starting with ." },
		{ SCALE("\"specReplicasPath\":\".spec.{a\",\"statusReplicasPath\":\".status.r\""),
		  "must be a simple json path starting with ." },
		{ SCALE("\"specReplicasPath\":\".spec.a}\",\"statusReplicasPath\":\".status.r\""),
		  "must be a simple json path starting with ." },
		{ SCALE("\"specReplicasPath\":\".spec[0]\",\"statusReplicasPath\":\".status.r\""),
		  "must be a simple json path starting with ." },
		{ SCALE("\"specReplicasPath\":\".spec.a['b'].c\",\"statusReplicasPath\":\".status.r\""),
		  NULL },
		{ SCALE("\"specReplicasPath\":\".spec.r[\",\"statusReplicasPath\":\".status.r\""),
		  "must be a simple json path starting with ." },
		{ SCALE("\"specReplicasPath\":\".spec.r\",\"statusReplicasPath\":\".status[0]\""),
		  SCALE_AT "statusReplicasPath: Invalid value: \".status[0]\": must be a simple json path" },
		{ SCALE("\"specReplicasPath\":\".spec.r\",\"statusReplicasPath\":\".status.r\","
			"\"labelSelectorPath\":\".spec[0]\""),
		  SCALE_AT "labelSelectorPath: Invalid value: \".spec[0]\": must be a simple json path" },
		{ SCALE("\"specReplicasPath\":\".status.r\",\"statusReplicasPath\":\".status.r\""),
		  "should be a json path under .spec" },
		{ SCALE("\"specReplicasPath\":\".spec.r\",\"statusReplicasPath\":\"status\""),
		  "must be a simple json path starting with ." },
		{ SCALE("\"specReplicasPath\":\".spec.r\",\"statusReplicasPath\":\".spec.r\""),
		  "should be a json path under .status" },
		{ SCALE("\"specReplicasPath\":\".spec.r\",\"statusReplicasPath\":\".status.r\","
			"\"labelSelectorPath\":\"s\""),
		  "must be a simple json path starting with ." },
		{ SCALE("\"specReplicasPath\":\".spec.r\",\"statusReplicasPath\":\".status.r\","
			"\"labelSelectorPath\":\".s\""),
		  "should be a json path under either .spec or .status" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_tree		tree = VDI_TREE_INIT;
		struct vdi_field_errors field_errors = { 0 };
		struct vdi_node	       *root;
		struct vd_bytes		message;
		size_t			rule_count;

		assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i][0]), &root, NULL), VD_OK);
		assert_status(vdi_crd_validate(&tree, root, NULL, &field_errors, &rule_count), VD_OK);
		message = vdi_field_errors_message(&field_errors);
		if (field_errors.count != (rows[i][1] != NULL) ||
		    (rows[i][1] &&
		     memmem(message.data, message.size, rows[i][1], strlen(rows[i][1])) == NULL))
			fail_msg("%zu: %.*s", i, (int) message.size, (const char *) message.data);
		vdi_field_errors_fini(&field_errors);
		vdi_tree_fini(&tree);
	}
}

#define DEPRECATED(more)                                                                                     \
	"{\"name\":\"v1\",\"served\":true,\"storage\":true," ANYTHING ",\"deprecated\":true" more "}"
#define WARNING(text) ",\"deprecationWarning\":\"" text "\""
#define UNPRINTABLE "must only contain printable UTF-8 characters; non-printable character found at index "
#define AT "spec.versions[0].deprecationWarning: Invalid value: "
#define HUNDRED                                                                                              \
	"01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567" \
	"89"

static void a_deprecation_can_be_told(void **state)
{
	static const char *const rows[][2] = {
		/* NULL: all is fine */
		{ CRD(DEPRECATED("")), NULL },
		{ CRD(DEPRECATED(WARNING("an \\\"old\\\" one, na\u00efve"))), NULL },
		{ CRD(DEPRECATED(",\"deprecationWarning\":null")), NULL },
		/* The first and last characters of each length in UTF-8 that can be seen. */
		{ CRD(DEPRECATED(WARNING("~\u00a1\u07ff\u0800\u0fff\u1000\ud7ff\ufffd\U00010000\U0001f600"))),
		  NULL },
		{ CRD(DEPRECATED(WARNING("\u0800\ufffe"))), UNPRINTABLE "3" },
		{ CRD(DEPRECATED(WARNING(HUNDRED HUNDRED
					 "01234567890123456789012345678901234567890123456789012345"))),
		  NULL },
		{ CRD(DEPRECATED(WARNING(HUNDRED HUNDRED
					 "012345678901234567890123456789012345678901234567890123456"))),
		  "\": must be <= 256 characters long" },
		{ CRD(DEPRECATED(WARNING(""))), AT "\"\": must not be an empty string" },
		{ CRD(DEPRECATED(WARNING("a\\nb"))), AT "\"a\\nb\": " UNPRINTABLE "1" },
		{ CRD(DEPRECATED(WARNING("\\u00e9\\u0085"))), UNPRINTABLE "2" },
		{ CRD(DEPRECATED(WARNING("ab\\u2028"))), UNPRINTABLE "2" },
		{ CRD("{\"name\":\"v1\",\"served\":true,\"storage\":true," ANYTHING WARNING("x") "}"),
		  AT "\"x\": can only be set for deprecated versions" },
		{ CRD("{\"name\":\"v1\",\"served\":true,\"storage\":true,\"deprecated\":false," ANYTHING
			      WARNING("") "}"),
		  AT "\"\": can only be set for deprecated versions" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_tree		tree = VDI_TREE_INIT;
		struct vdi_field_errors field_errors = { 0 };
		struct vdi_node	       *root;
		struct vd_bytes		message;
		size_t			rule_count;

		assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i][0]), &root, NULL), VD_OK);
		assert_status(vdi_crd_validate(&tree, root, NULL, &field_errors, &rule_count), VD_OK);
		message = vdi_field_errors_message(&field_errors);
		if (rows[i][1] == NULL ?
			    field_errors.count > 0 :
			    field_errors.count != 1 || memmem(message.data, message.size, rows[i][1],
							      strlen(rows[i][1])) == NULL)
			fail_msg("%zu: %.*s", i, (int) message.size, (const char *) message.data);
		vdi_field_errors_fini(&field_errors);
		vdi_tree_fini(&tree);
	}
}

#define VERSION(name, more) "{\"name\":\"" name "\",\"served\":true," ANYTHING more "}"
#define V2_STORED "{\"name\":\"v2\",\"served\":true,\"storage\":true," ANYTHING "}"

static void a_deprecated_version_says_so(void **state)
{
	static const struct {
		const char *definition, *version, *line;
	} rows[] = {
		{ CRD(VERSION("v1", "") "," V2_STORED), "v1", NULL },
		{ CRD(VERSION("v1", ",\"deprecated\":true") "," V2_STORED), "v2", NULL },
		{ CRD(VERSION("v1", ",\"deprecated\":true") "," V2_STORED), "v1",
		  "Warning: 299 - \"example.com/v1 Widget is deprecated; use example.com/v2 Widget\"\r\n" },
		{ CRD(VERSION("v1beta1", ",\"deprecated\":true") "," VERSION("v3alpha1", "") "," VERSION(
			  "v3", ",\"deprecated\":true") "," VERSION("v1beta2", "") "," V2_STORED),
		  "v1beta1",
		  "Warning: 299 - \"example.com/v1beta1 Widget is deprecated; use example.com/v2 "
		  "Widget\"\r\n" },
		{ CRD(VERSION("v3", ",\"deprecated\":true") "," V2_STORED), "v3",
		  "Warning: 299 - \"example.com/v3 Widget is deprecated\"\r\n" },
		{ CRD(VERSION("v1",
			      ",\"deprecated\":true" WARNING("say \\\"when\\\" \\\\ else")) "," V2_STORED),
		  "v1", "Warning: 299 - \"say \\\"when\\\" \\\\ else\"\r\n" },
		/* others may have stored it */
		{ CRD(VERSION("v1", ",\"deprecated\":true" WARNING("x\\r\\nY: z")) "," V2_STORED), "v1",
		  NULL },
		{ CRD(VERSION("v1", ",\"deprecated\":true" WARNING("\\u0085")) "," V2_STORED), "v1", NULL },
		{ CRD(VERSION("v1", ",\"deprecated\":true" WARNING("")) "," V2_STORED), "v1", NULL },
		{ CRD(VERSION("v1", ",\"deprecated\":true" WARNING("\\u009f")) "," V2_STORED), "v1", NULL },
		{ CRD(VERSION("v1", ",\"deprecated\":true" WARNING("a\\u007f")) "," V2_STORED), "v1", NULL },
		{ CRD(VERSION("v1", ",\"deprecated\":true" WARNING("a\\u001f")) "," V2_STORED), "v1", NULL },
		{ CRD(VERSION("v1", ",\"deprecated\":true" WARNING(" ~\\u00a0\\u00c0")) "," V2_STORED), "v1",
		  "Warning: 299 - \" ~\xc2\xa0\xc3\x80\"\r\n" },
		/* the best of all, whatever their order */
		{ CRD(VERSION("v1", ",\"deprecated\":true,\"storage\":true") "," VERSION(
			  "v3", "") "," VERSION("v2", "")),
		  "v1",
		  "Warning: 299 - \"example.com/v1 Widget is deprecated; use example.com/v3 Widget\"\r\n" },
		{ CRD(VERSION("v1", ",\"deprecated\":true,\"storage\":true") ",{\"name\":\"v3\",\"served\":"
									     "false," ANYTHING
									     "}," VERSION("v2", "")),
		  "v1",
		  "Warning: 299 - \"example.com/v1 Widget is deprecated; use example.com/v2 Widget\"\r\n" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		const struct vdi_resource *resource;
		struct vdi_crd		   crd;

		assert_status(vdi_crd_read(vd_bytes_of(rows[i].definition), "/registry/", &crd, NULL), VD_OK);
		resource = vdi_resources_find(&crd.resources, vd_bytes_of("example.com"),
					      vd_bytes_of(rows[i].version), vd_bytes_of("widgets"));
		assert_non_null(resource);
		assert_string_equal(resource->deprecation ? resource->deprecation : "none",
				    rows[i].line ? rows[i].line : "none");
		vdi_crd_fini(&crd);
	}
}

/* The definition of one stored version v with these names, and more of the version. */
static vd_status read_named(const char *group, const char *plural, const char *more, struct vdi_crd *ret_crd,
			    struct vd_error *reterr)
{
	char text[8000];

	snprintf(text, sizeof text,
		 "{\"spec\":{\"group\":\"%s\",\"names\":{\"plural\":\"%s\",\"singular\":\"s\",\"kind\":\"K\","
		 "\"listKind\":\"L\"},\"versions\":[{\"name\":\"xd\","
		 "\"served\":true,\"storage\":true%s}]}}",
		 group, plural, more);
	return vdi_crd_read(vd_bytes_of(text), "/registry/", ret_crd, reterr);
}

/* size letters, in one of a few places. */
static const char *letters(char letter, size_t size)
{
	static char texts[4][300];
	static int  turn;
	char	   *text = texts[turn++ % 4];

	memset(text, letter, size);
	text[size] = 0;
	return text;
}

static void names_are_those_of_keys(void **state)
{
	const struct {
		const char *group, *plural, *fault; /* NULL: none */
	} rows[] = {
		{ "g", "p", NULL },
		{ letters('g', 253), letters('p', 63), NULL },
		{ letters('g', 254), "p", "spec.group or spec.names.plural is too long or contains '/'" },
		{ "g", letters('p', 64), "spec.group or spec.names.plural is too long or contains '/'" },
		{ "g/h", "p", "spec.group or spec.names.plural is too long or contains '/'" },
		{ "g", "p/q", "spec.group or spec.names.plural is too long or contains '/'" },
		{ "", "p", "spec.group, a version's name or a member of spec.names is empty" },
		{ "g", "", "spec.group, a version's name or a member of spec.names is empty" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_error error = { 0 };
		struct vdi_crd	crd;

		assert_status(read_named(rows[i].group, rows[i].plural, "", &crd, &error),
			      rows[i].fault ? VD_INVALID : VD_OK);
		assert_string_equal(error.message, rows[i].fault ? rows[i].fault : "");
		if (rows[i].fault == NULL)
			vdi_crd_fini(&crd);
	}
}

/* What is longer than a version may be is nobody's successor. */
static void a_successor_has_a_name_of_some_length(void **state)
{
	for (size_t size = 62; size <= 65; size++) {
		struct vdi_crd crd;
		char	       more[300], line[300];

		snprintf(more, sizeof more, ",\"deprecated\":true},{\"name\":\"%s\",\"served\":true",
			 letters('x', size));
		more[strlen(",\"deprecated\":true},{\"name\":\"x")] = 'a'; /* xa.. is better than xd */
		snprintf(line, sizeof line, "Warning: 299 - \"g/xd K is deprecated; use g/xa%s K\"\r\n",
			 letters('x', size - 2));
		assert_status(read_named("g", "p", more, &crd, NULL), VD_OK);
		assert_string_equal(crd.stored->deprecation,
				    size < 64 ? line : "Warning: 299 - \"g/xd K is deprecated\"\r\n");
		vdi_crd_fini(&crd);
	}
}

static void lists_have_a_longest(void **state)
{
	for (size_t count = VDI_RESOURCE_COLUMNS_MAX - 1; count <= VDI_RESOURCE_COLUMNS_MAX + 2; count++) {
		struct vdi_crd crd;
		char	       more[7000];
		size_t	       size = (size_t) snprintf(more, sizeof more, ",\"additionalPrinterColumns\":[");
		size_t	       kept = VDI_MIN(count, (size_t) VDI_RESOURCE_COLUMNS_MAX);
		char	       last[20];

		for (size_t i = 0; i < count; i++)
			size += (size_t) snprintf(more + size, sizeof more - size, "%s{\"name\":\"c%zu\"}",
						  i ? "," : "", i);
		snprintf(more + size, sizeof more - size, "]");
		assert_status(read_named("g", "p", more, &crd, NULL), VD_OK);
		assert_int_equal(crd.stored->column_count, kept + 1);
		snprintf(last, sizeof last, "c%zu", kept - 1);
		assert_string_equal(crd.stored->columns[kept].name, last);
		vdi_crd_fini(&crd);
	}
	for (size_t count = VDI_RESOURCE_WORDS_MAX - 1; count <= VDI_RESOURCE_WORDS_MAX + 2; count++) {
		struct vdi_crd crd;
		char	       text[2000];
		size_t	       size = (size_t) snprintf(text, sizeof text, "p\",\"categories\":[");

		for (size_t i = 0; i < count; i++)
			size += (size_t) snprintf(text + size, sizeof text - size, "%s\"w%zu\"", i ? "," : "",
						  i);
		snprintf(text + size, sizeof text - size, "],\"x\":\"");
		assert_status(read_named("g", text, "", &crd, NULL), VD_OK);
		for (size_t i = 0; i < VDI_RESOURCE_WORDS_MAX; i++)
			assert_int_equal(crd.stored->categories[i] != NULL, i < count);
		vdi_crd_fini(&crd);
	}
}

#define NAMED_CRD(name, group, names, more)                                                                  \
	"{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"group\":\"" group                                 \
	"\",\"scope\":\"Namespaced\",\"names\":{" names "}," more                                            \
	"\"versions\":[{\"name\":\"v1\",\"served\":true,"                                                    \
	"\"storage\":true," ANYTHING "}]}}"
#define NAMES(plural, singular, kind)                                                                        \
	"\"plural\":\"" plural "\",\"singular\":\"" singular "\",\"kind\":\"" kind "\",\"listKind\":\"" kind \
	"List\""
#define PLAIN(more) NAMED_CRD("ws.example.com", "example.com", NAMES("ws", "w", "W"), more)
#define STORED(stored, status)                                                                               \
	"{\"spec\":{\"group\":\"example.com\",\"scope\":\"Cluster\",\"names\":{\"plural\":\"ws\",\"kind\":"  \
	"\"V\"}},\"status\":{\"storedVersions\":[" stored                                                    \
	"],\"conditions\":[{\"type\":\"Established\",\"status\":\"" status "\"}]}}"

static void names_conversion_and_changes_are_checked(void **state)
{
	static const struct {
		const char *sent, *old, *fault; /* NULL: all is fine */
	} rows[] = {
		{ PLAIN(""), NULL, NULL },
		{ PLAIN("\"conversion\":{\"strategy\":\"None\"},"), NULL, NULL },
		{ PLAIN("\"conversion\":{\"strategy\":\"Webhook\"},"), NULL,
		  "spec.conversion.strategy: Invalid value: \"Webhook\": this server calls no webhooks" },
		/* Names before conversion, and that before what may not change. */
		{ NAMED_CRD("ws.example.com", "example.com", NAMES("ws", "W", "W"),
			    "\"conversion\":{\"strategy\":\"Magic\"},"),
		  NULL, "'[a-z]([-a-z0-9]*[a-z0-9])?'), spec.conversion.strategy: Unsupported value: " },
		{ PLAIN("\"conversion\":{\"strategy\":\"Magic\"},"), STORED("\"v1\"", "True"),
		  "supported values: \"None\", spec.scope: Invalid value: \"Namespaced\": field is "
		  "immutable, spec.names.kind: Invalid value: " },
		{ PLAIN("\"conversion\":{\"strategy\":\"Magic\"},"), NULL,
		  "spec.conversion.strategy: Unsupported value: \"Magic\": supported values: \"None\"" },
		{ NAMED_CRD("w-s.example.com", "example.com", NAMES("w-s", "w1", "W-s1"), ""), NULL, NULL },
		{ NAMED_CRD("-ws.example.com", "example.com", NAMES("-ws", "w", "W"), ""), NULL,
		  "spec.names.plural: Invalid value: \"-ws\"" },
		{ NAMED_CRD("ws-.example.com", "example.com", NAMES("ws-", "w", "W"), ""), NULL,
		  "spec.names.plural: Invalid value: \"ws-\"" },
		{ NAMED_CRD("1s.example.com", "example.com", NAMES("1s", "w", "W"), ""), NULL,
		  "spec.names.plural: Invalid value: \"1s\"" },
		{ NAMED_CRD("ws.example.com", "example.com", NAMES("ws", "W", "W"), ""), NULL,
		  "spec.names.singular: Invalid value: \"W\"" },
		{ NAMED_CRD("ws.example.com", "example.com", NAMES("ws", "w", "W_"), ""), NULL,
		  "spec.names.kind: Invalid value: \"W_\": may have mixed case" },
		{ NAMED_CRD("vs.example.com", "example.com", NAMES("ws", "w", "W"), ""), NULL,
		  "metadata.name: Invalid value: \"vs.example.com\"" },
		{ NAMED_CRD("ws.my.k8s.io", "my.k8s.io", NAMES("ws", "w", "W"), ""), NULL,
		  "metadata.annotations[api-approved.kubernetes.io]: Required value" },
		{ NAMED_CRD("ws.k8s.io", "k8s.io", NAMES("ws", "w", "W"), ""), NULL,
		  "metadata.annotations[api-approved.kubernetes.io]: Required value" },
		{ NAMED_CRD("ws.myk8s.io", "myk8s.io", NAMES("ws", "w", "W"), ""), NULL, NULL },
		{ NAMED_CRD("ws.Example.com", "Example.com", NAMES("ws", "w", "W"), ""), NULL,
		  "spec.group: Invalid value: \"Example.com\": a lowercase RFC 1123 subdomain" },
		{ NAMED_CRD("ws.example", "example", NAMES("ws", "w", "W"), ""), NULL,
		  "spec.group: Invalid value: \"example\": should be a domain with at least one dot" },
		{ NAMED_CRD("ws.", "", NAMES("ws", "w", "W"), ""), NULL, "spec.group: Required value" },
		{ "{\"metadata\":{\"name\":\"ws.example.com\"},\"spec\":{\"group\":\"example.com\",\"names\":"
		  "{" NAMES("ws", "w",
			    "W") "},\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true," ANYTHING
				 "}]}}",
		  NULL, "spec.scope: Required value" },
		{ PLAIN(""), PLAIN(""), NULL },
		{ PLAIN(""), STORED("\"v1\"", "False"), NULL },
		{ PLAIN(""), STORED("\"v1\",\"v0\"", "False"),
		  "status.storedVersions[1]: Invalid value: \"v0\": missing from spec.versions; v0 was "
		  "previously a storage version, and must remain in "
		  "spec.versions until a storage migration ensures no data remains persisted in v0 and "
		  "removes v0 from status.storedVersions" },
		{ PLAIN(""), STORED("\"v1\"", "True"),
		  "spec.scope: Invalid value: \"Namespaced\": field is immutable" },
		{ PLAIN(""), STORED("\"v1\"", "True"),
		  "spec.names.kind: Invalid value: \"W\": field is immutable" },
		{ NAMED_CRD("ws.other.com", "other.com", NAMES("ws", "w", "W"), ""), PLAIN(""),
		  "spec.group: Invalid value: \"other.com\": field is immutable" },
		{ NAMED_CRD("vs.example.com", "example.com", NAMES("vs", "v", "W"), ""), PLAIN(""),
		  "spec.names.plural: Invalid value: \"vs\": field is immutable" },
		{ NAMED_CRD("vs.other.com", "other.com", NAMES("vs", "v", "W"), ""), PLAIN(""),
		  "[spec.group: Invalid value: \"other.com\": field is immutable, spec.names.plural: Invalid "
		  "value: \"vs\": field is immutable]" },
		{ NAMED_CRD("ws.example.com", "example.com",
			    NAMES("ws", "w", "W") ",\"shortNames\":[\"ok\",\"S\"],\"categories\":[\"C\"]",
			    ""),
		  NULL, "[spec.names.shortNames[1]: Invalid value: \"S\": " },
		{ NAMED_CRD("ws.example.com", "example.com",
			    NAMES("ws", "w", "W") ",\"categories\":[\"a\",\"C\"]", ""),
		  NULL, "spec.names.categories[1]: Invalid value: \"C\": " },
		{ NAMED_CRD("ws.example.com", "example.com",
			    "\"plural\":\"ws\",\"singular\":\"w\",\"kind\":\"W\",\"listKind\":\"W\"", ""),
		  NULL, "spec.names.listKind: Invalid value: \"W\": kind and listKind may not be the same" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_tree		tree = VDI_TREE_INIT;
		struct vdi_field_errors field_errors = { 0 };
		struct vdi_node	       *root, *old = NULL;
		struct vd_bytes		message;
		size_t			rule_count;

		assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i].sent), &root, NULL), VD_OK);
		if (rows[i].old)
			assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i].old), &old, NULL), VD_OK);
		assert_status(vdi_crd_validate(&tree, root, old, &field_errors, &rule_count), VD_OK);
		message = vdi_field_errors_message(&field_errors);
		if (rows[i].fault == NULL ?
			    field_errors.count > 0 :
			    memmem(message.data, message.size, rows[i].fault, strlen(rows[i].fault)) == NULL)
			fail_msg("%zu: %.*s", i, (int) message.size, (const char *) message.data);
		vdi_field_errors_fini(&field_errors);
		vdi_tree_fini(&tree);
	}
}

/* A version's field errors come in this order: name, deprecation, schema, scale, columns. */
static void the_field_errors_of_a_version_have_an_order(void **state)
{
	static const char text[] =
		CRD("{\"name\":\"V1\",\"served\":true,\"storage\":true,\"deprecationWarning\":\"x\","
		    "\"subresources\":{\"scale\":{"
		    "\"statusReplicasPath\":\".status.r\"}},\"additionalPrinterColumns\":[{\"name\":\"A\","
		    "\"type\":\"string\"}]}");
	static const char *const places[] = { "spec.versions[0].name: ",
					      "spec.versions[0].deprecationWarning: ",
					      "spec.versions[0].schema.openAPIV3Schema: ",
					      "spec.versions[0].subresources.scale.specReplicasPath: ",
					      "spec.versions[0].additionalPrinterColumns[0].jsonPath: " };
	struct vdi_tree		 tree = VDI_TREE_INIT;
	struct vdi_field_errors	 field_errors = { 0 };
	struct vdi_node		*root;
	struct vd_bytes		 message;
	const char		*last = NULL;
	size_t			 rule_count;

	assert_status(vdi_tree_parse(&tree, vd_bytes_of(text), &root, NULL), VD_OK);
	assert_status(vdi_crd_validate(&tree, root, NULL, &field_errors, &rule_count), VD_OK);
	message = vdi_field_errors_message(&field_errors);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(places); i++) {
		const char *at = memmem(message.data, message.size, places[i], strlen(places[i]));

		if (at == NULL || at < last)
			fail_msg("%s: %.*s", places[i], (int) message.size, (const char *) message.data);
		last = at;
	}
	vdi_field_errors_fini(&field_errors);
	vdi_tree_fini(&tree);
}

static size_t fault_count_of(const char *definition, const char *expected, size_t *ret_found)
{
	struct vdi_tree		tree = VDI_TREE_INIT;
	struct vdi_field_errors field_errors = { 0 };
	struct vdi_node	       *root;
	size_t			rule_count, count;

	*ret_found = 0;
	assert_status(vdi_tree_parse(&tree, vd_bytes_of(definition), &root, NULL), VD_OK);
	assert_status(vdi_crd_validate(&tree, root, NULL, &field_errors, &rule_count), VD_OK);
	count = field_errors.count;
	for (size_t i = 0; i < field_errors.kept; i++) {
		struct vd_bytes text = vdi_field_errors_text(&field_errors, i);

		*ret_found += memmem(text.data, text.size, expected, strlen(expected)) != NULL;
	}
	vdi_field_errors_fini(&field_errors);
	vdi_tree_fini(&tree);
	return count;
}

static void lists_of_words_have_a_longest(void **state)
{
	static const char *const lists[] = { "shortNames", "categories" };

	for (size_t list = 0; list < VDI_ARRAY_SIZE(lists); list++)
		for (size_t count = VDI_RESOURCE_WORDS_MAX - 1; count <= VDI_RESOURCE_WORDS_MAX + 1;
		     count++) {
			char   text[4000];
			size_t found,
				size = (size_t) snprintf(
					text, sizeof text,
					"{\"metadata\":{\"name\":\"ws.example.com\"},\"spec\":{"
					"\"group\":\"example.com\",\"scope\":\"Cluster\",\"names\":{" NAMES(
						"ws", "w", "W") ",\"%s\":[",
					lists[list]);

			for (size_t i = 0; i < count; i++)
				size += (size_t) snprintf(text + size, sizeof text - size, "%s\"a%zu\"",
							  i ? "," : "", i);
			(void) snprintf(
				text + size, sizeof text - size,
				"]},\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true," ANYTHING
				"}]}}");
			assert_int_equal(fault_count_of(text, "Too many: must have at most ", &found),
					 count > VDI_RESOURCE_WORDS_MAX);
			assert_int_equal(found, count > VDI_RESOURCE_WORDS_MAX);
		}
}

/* A schema that does not compile counts as the most that one may take. Of all versions together, eight may
 * take as much. */
static void the_schemas_of_all_versions_have_a_price(void **state)
{
	for (size_t count = 7; count <= 10; count++) {
		char   text[4000];
		size_t found, size = (size_t) snprintf(text, sizeof text,
						       "{\"metadata\":{\"name\":\"ws.example.com\"},\"spec\":"
						       "{\"group\":\"example.com\","
						       "\"scope\":\"Cluster\",\"names\":{" NAMES(
							       "ws", "w", "W") "},\"versions\":[");

		for (size_t i = 1; i <= count; i++)
			size += (size_t) snprintf(
				text + size, sizeof text - size,
				"%s{\"name\":\"v%zu\",\"served\":true,\"storage\":%s,\"schema\":{"
				"\"openAPIV3Schema\":{\"type\":\"string\"}}}",
				i > 1 ? "," : "", i, i == 1 ? "true" : "false");
		(void) snprintf(text + size, sizeof text - size, "]}}");
		assert_int_equal(fault_count_of(text,
						"the schemas of all versions take too many steps to compile",
						&found),
				 count);
		assert_int_equal(found, count > 8 ? count - 8 : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_of_words_have_a_longest),
		cmocka_unit_test(the_schemas_of_all_versions_have_a_price),
		cmocka_unit_test(the_field_errors_of_a_version_have_an_order),
		cmocka_unit_test(r691_selectable_fields_are_fields_of_the_schema),
		cmocka_unit_test(a_deprecation_can_be_told),
		cmocka_unit_test(a_deprecated_version_says_so),
		cmocka_unit_test(names_are_those_of_keys),
		cmocka_unit_test(a_successor_has_a_name_of_some_length),
		cmocka_unit_test(lists_have_a_longest),
		cmocka_unit_test(columns_and_scale_paths_are_checked),
		cmocka_unit_test(names_conversion_and_changes_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
