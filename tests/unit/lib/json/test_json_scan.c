/* Unit tests of lib/json/json_scan.c and lib/json/json_plan.c. */
#include "vdtest.h"

#include <jansson.h>

#include "json_scan.h"

struct decision {
	const char *json;
	size_t	    size;     /* 0: strlen */
	int	    error_at; /* -1: accepted */
};

static vd_status validate(const char *json, size_t size, struct vd_error *error)
{
	/* A block of its exact size, so that a read too far is caught. */
	char	 *copy = malloc(size ? size : 1);
	vd_status status;

	memcpy(copy, json, size);
	status = vdi_json_validate((struct vd_bytes) { copy, size }, NULL, error);
	free(copy);
	return status;
}

static void check_decisions(const struct decision *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t		size = rows[i].size ? rows[i].size : strlen(rows[i].json);
		struct vd_error error;
		vd_status	status = validate(rows[i].json, size, &error);
		char		place[32];

		if ((status == VD_OK) != (rows[i].error_at < 0))
			fail_msg("row %zu %s: %s", i, rows[i].json,
				 status == VD_OK ? "accepted" : error.message);
		if (status == VD_OK)
			continue;
		assert_status(status, VD_BAD_REQUEST);
		snprintf(place, sizeof place, "at byte %d:", rows[i].error_at);
		if (strstr(error.message, place) == NULL)
			fail_msg("row %zu %s: expected %s got %s", i, rows[i].json, place, error.message);
	}
}

static void h701_grammar_of_rfc_8259(void **state)
{
	static const struct decision rows[] = {
		{ "{}", 0, -1 },
		{ "[]", 0, -1 },
		{ " \t\r\n[ ] ", 0, -1 },
		{ "null", 0, -1 },
		{ "true", 0, -1 },
		{ "false", 0, -1 },
		{ "\"\"", 0, -1 },
		{ "0", 0, -1 },
		{ "-0", 0, -1 },
		{ "-0.0e+00", 0, -1 },
		{ "1E400", 0, -1 },
		{ "9223372036854775808", 0, -1 },
		{ "[1,2 , 3]", 0, -1 },
		{ "{\"a\" : 1 , \"b\":[{}] }", 0, -1 },
		{ "{\"a\":1,\"a\":2}", 0, -1 },
		{ "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"]", 0, -1 },
		{ "[true,false,null]", 0, -1 },
		{ "", 1, 0 }, /* one NUL byte */
		{ " ", 0, 0 },
		{ "\xef\xbb\xbf{}", 0, 0 },
		{ "{", 0, 1 },
		{ "[", 0, 1 },
		{ "[1", 0, 2 },
		{ "[1,", 0, 3 },
		{ "[1,]", 0, 3 },
		{ "[,1]", 0, 1 },
		{ "[1 2]", 0, 3 },
		{ "[1}", 0, 2 },
		{ "{\"a\":1]", 0, 6 },
		{ "{\"a\"}", 0, 4 },
		{ "{\"a\":}", 0, 5 },
		{ "{\"a\" 1}", 0, 5 },
		{ "{\"a\":1,}", 0, 7 },
		{ "{,}", 0, 1 },
		{ "{a:1}", 0, 1 },
		{ "{1:1}", 0, 1 },
		{ "{'a':1}", 0, 1 },
		{ "{\"a\":1}}", 0, 7 },
		{ "{}{}", 0, 2 },
		{ "[][]", 0, 2 },
		{ "[]]", 0, 2 },
		{ "{\"a\":{}", 0, 7 },
		{ "[[]", 0, 3 },
		{ "]", 0, 0 },
		{ "}", 0, 0 },
		{ "1 1", 0, 2 },
		{ "01", 0, 0 },
		{ "-01", 0, 0 },
		{ "[-]", 0, 2 },
		{ "[1.]", 0, 3 },
		{ "[.5]", 0, 1 },
		{ "[1e]", 0, 3 },
		{ "[1e+]", 0, 4 },
		{ "[+1]", 0, 1 },
		{ "[0x1]", 0, 2 },
		{ "[1_000]", 0, 2 },
		{ "[NaN]", 0, 1 },
		{ "[Infinity]", 0, 1 },
		{ "-", 0, 1 },
		{ "1.", 0, 2 },
		{ "1e", 0, 2 },
		{ "tru", 0, 3 },
		{ "truE", 0, 0 },
		{ "[True]", 0, 1 },
		{ "[nul]", 0, 1 },
		{ "[nulll]", 0, 5 },
		{ "\"", 0, 1 },
		{ "\"abc", 0, 4 },
		{ "\"abc}", 0, 5 },
		{ "\"\\", 0, 2 },
		{ "\"\\u12", 0, 5 },
		{ "[\"\\x\"]", 0, 2 },
		{ "[\"\\u12g4\"]", 0, 2 },
		{ "[\"a\nb\"]", 0, 3 },
		{ "[\"a\tb\"]", 0, 3 },
		{ "[\"a\0b\"]", 7, 3 },
		{ "[\"\x1f\"]", 0, 2 },
		{ "[\"\x7f\"]", 0, -1 },
		{ "[1]\v", 0, 3 },
		{ "[1,\f2]", 0, 3 },
		{ "/**/{}", 0, 0 },
		{ "{}//", 0, 2 },
	};

	(void) state;
	check_decisions(rows, VDI_ARRAY_SIZE(rows));
}

static void h701_utf8_is_well_formed(void **state)
{
	static const struct decision rows[] = {
		{ "\"\xc3\xa9\"", 0, -1 },
		{ "\"\xe2\x82\xac\"", 0, -1 },
		{ "\"\xf0\x9f\x98\x80\"", 0, -1 },
		{ "\"\xed\x9f\xbf\xee\x80\x80\"", 0, -1 },
		{ "\"\xf4\x8f\xbf\xbf\"", 0, -1 },
		{ "\"\xef\xbf\xbf\"", 0, -1 },
		{ "\"\x80\"", 0, 1 },
		{ "\"\xc0\x80\"", 0, 1 },
		{ "\"\xc1\xbf\"", 0, 1 },
		{ "\"\xe0\x80\x80\"", 0, 1 },
		{ "\"\xe0\x9f\xbf\"", 0, 1 },
		{ "\"\xed\xa0\x80\"", 0, 1 },
		{ "\"\xed\xbf\xbf\"", 0, 1 },
		{ "\"\xf0\x80\x80\x80\"", 0, 1 },
		{ "\"\xf0\x8f\xbf\xbf\"", 0, 1 },
		{ "\"\xf4\x90\x80\x80\"", 0, 1 },
		{ "\"\xf5\x80\x80\x80\"", 0, 1 },
		{ "\"\xff\"", 0, 1 },
		{ "\"\xc3\"", 0, 1 },
		{ "\"\xe2\x82\"", 0, 1 },
		{ "\"\xe2\x82", 0, 1 },
		{ "\"ok \xc3\xa9\xc3(\"", 0, 6 },
		{ "[\xc3\xa9]", 0, 1 },
		{ "{\"\xff\":1}", 0, 2 },
	};

	(void) state;
	check_decisions(rows, VDI_ARRAY_SIZE(rows));
}

static void h701_surrogates_come_in_pairs(void **state)
{
	static const struct decision rows[] = {
		{ "\"\\ud83d\\ude00\"", 0, -1 },
		{ "\"\\uD83D\\uDE00\"", 0, -1 },
		{ "\"\\u0000\"", 0, -1 },
		{ "\"\\ud7ff\\ue000\"", 0, -1 },
		{ "\"\\ud83d\"", 0, 8 },
		{ "[\"\\ud83d\",1,2,3,4]", 0, 8 },
		{ "[\"\\ud83d\\n\",1,2,3,4]", 0, 8 },
		{ "[\"\\ud83dxx\",1,2,3,4]", 0, 8 },
		{ "\"\\ude00\\ud83d\"", 0, 1 },
		{ "\"\\ud83d\\ud83d\"", 0, 7 },
		{ "\"\\ud83d\\u0041\"", 0, 7 },
	};

	(void) state;
	check_decisions(rows, VDI_ARRAY_SIZE(rows));
}

static void h701_depth_is_bounded(void **state)
{
	char			     text[200];
	const struct vdi_json_limits shallow = { 1000, 2 };
	struct vd_error		     error;

	(void) state;
	for (unsigned depth = 62; depth <= 66; depth++) {
		memset(text, '[', depth);
		memset(text + depth, ']', depth);
		assert_status(validate(text, depth * 2, &error), depth <= 64 ? VD_OK : VD_BAD_REQUEST);
		if (depth > 64)
			assert_string_equal(error.message, "invalid JSON at byte 64: too many levels");
	}
	assert_status(vdi_json_validate(vd_bytes_of("[{}]"), &shallow, NULL), VD_OK);
	assert_status(vdi_json_validate(vd_bytes_of("[{\"a\":[]}]"), &shallow, NULL), VD_BAD_REQUEST);
}

static void h701_size_is_bounded(void **state)
{
	const struct vdi_json_limits limits = { 4, 64 };
	struct vd_error		     error;

	(void) state;
	assert_status(vdi_json_validate(vd_bytes_of("1234"), &limits, &error), VD_OK);
	assert_status(vdi_json_validate(vd_bytes_of("12345"), &limits, &error), VD_TOO_BIG);
	assert_string_equal(error.message, "JSON of 5 bytes is larger than the limit of 4");
	assert_status(vdi_json_validate(VD_BYTES_NONE, NULL, &error), VD_BAD_REQUEST);
	assert_string_equal(error.message, "invalid JSON at byte 0: unexpected end");
}

/* A special byte at every place relative to blocks and windows. */
static void h701_places_of_special_bytes(void **state)
{
	static char text[9000];

	(void) state;
	for (size_t length = 0; length < 8400;
	     length += length < 200 || (length > 4000 && length < 4300) ? 1 : 61) {
		size_t		size = length + 4;
		struct vd_error error;
		char		expected[80];

		memset(text, 'x', sizeof text);
		memcpy(text, "[\"", 2);
		memcpy(text + 2 + length, "\"]", 2);
		assert_status(validate(text, size, &error), VD_OK);
		assert_status(validate(text, size - 1, &error), VD_BAD_REQUEST);
		snprintf(expected, sizeof expected, "invalid JSON at byte %zu: unexpected end", size - 1);
		assert_string_equal(error.message, expected);
		assert_status(validate(text, size - 2, &error), VD_BAD_REQUEST);
		if (length < 6)
			continue;
		text[1 + length] = '\n';
		assert_status(validate(text, size, &error), VD_BAD_REQUEST);
		snprintf(expected, sizeof expected, "invalid JSON at byte %zu: control character in a string",
			 length + 1);
		assert_string_equal(error.message, expected);
		text[length] = '\\';
		text[1 + length] = '"';
		memcpy(text + length - 4, "\xf0\x9f\x98\x80", 4);
		assert_status(validate(text, size, &error), VD_OK);
		text[length - 1] = 'x';
		assert_status(validate(text, size, &error), VD_BAD_REQUEST);
		snprintf(expected, sizeof expected, "invalid JSON at byte %zu: invalid UTF-8 in a string",
			 length - 4);
		assert_string_equal(error.message, expected);
	}
}

struct fixture {
	struct vdi_json_plan  *plan;
	struct vdi_json_object object;
};

static void fixture_init(struct fixture *f, const char *const *paths, size_t count)
{
	struct vd_bytes texts[16];

	for (size_t i = 0; i < count; i++)
		texts[i] = vd_bytes_of(paths[i]);
	assert_status(vdi_json_plan_new(texts, count, &f->plan, NULL), VD_OK);
	assert_status(vdi_json_object_init(&f->object, f->plan), VD_OK);
}

static void fixture_fini(struct fixture *f)
{
	vdi_json_object_fini(&f->object);
	vdi_json_plan_free(f->plan);
}

static void assert_value(const char *json, const struct vdi_json_value *value, enum vdi_json_type type,
			 const char *text)
{
	struct vd_bytes bytes = vdi_json_value_bytes(vd_bytes_of(json), value);

	assert_int_equal(value->type, type);
	if (!vd_bytes_equal(bytes, vd_bytes_of(text)))
		fail_msg("%.*s instead of %s", (int) bytes.size, (const char *) bytes.data, text);
}

static void h701_extracts_the_parts_of_an_object(void **state)
{
	static const char *const paths[] = { "metadata.name",
					     ".spec.nodeName",
					     "{.status.phase}",
					     "spec.containers",
					     "spec",
					     "spec.replicas",
					     "spec.paused",
					     "spec.on",
					     ".spec.nothing",
					     "metadata.labels['a.b/c']",
					     "metadata.labels.a\\.b/c" };
	static const char	 json[] =
		"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"n\",\"namespace\":\"ns\","
		"\"generateName\":\"n-\",\"uid\":\"u\","
		"\"resourceVersion\":\"7\",\"selfLink\":\"/"
		"x\",\"generation\":3,\"creationTimestamp\":\"c\",\"deletionTimestamp\":null,"
		"\"labels\":{\"app\":\"x\",\"a.b/"
		"c\":\"d\\u0065\",\"none\":null},\"annotations\":{\"k\":\"v\",\"k\":\"w\"},\"finalizers\":["
		"\"f\"],"
		"\"ownerReferences\":[{\"name\":\"o\"}],\"other\":{\"name\":\"not "
		"this\"}},\"spec\":{\"name\":\"nor this\",\"nodeName\":\"\","
		"\"containers\":[{\"nodeName\":\"no\"}],\"replicas\":-1.5e3,\"paused\":true,\"on\":false,"
		"\"nothing\":null},"
		"\"status\":{\"phase\":\"Running\"}}";
	static const struct {
		enum vdi_json_member member;
		enum vdi_json_type   type;
		const char	    *text;
	} rows[] = {
		{ VDI_JSON_API_VERSION, VDI_JSON_STRING, "v1" },
		{ VDI_JSON_KIND, VDI_JSON_STRING, "Pod" },
		{ VDI_JSON_NAME, VDI_JSON_STRING, "n" },
		{ VDI_JSON_NAMESPACE, VDI_JSON_STRING, "ns" },
		{ VDI_JSON_GENERATE_NAME, VDI_JSON_STRING, "n-" },
		{ VDI_JSON_UID, VDI_JSON_STRING, "u" },
		{ VDI_JSON_RESOURCE_VERSION, VDI_JSON_STRING, "7" },
		{ VDI_JSON_SELF_LINK, VDI_JSON_STRING, "/x" },
		{ VDI_JSON_GENERATION, VDI_JSON_NUMBER, "3" },
		{ VDI_JSON_CREATION_TIMESTAMP, VDI_JSON_STRING, "c" },
		{ VDI_JSON_DELETION_TIMESTAMP, VDI_JSON_NULL, "null" },
		{ VDI_JSON_DELETION_GRACE_PERIOD_SECONDS, VDI_JSON_ABSENT, "" },
		{ VDI_JSON_LABELS, VDI_JSON_OBJECT, "{\"app\":\"x\",\"a.b/c\":\"d\\u0065\",\"none\":null}" },
		{ VDI_JSON_ANNOTATIONS, VDI_JSON_OBJECT, "{\"k\":\"v\",\"k\":\"w\"}" },
		{ VDI_JSON_FINALIZERS, VDI_JSON_ARRAY, "[\"f\"]" },
		{ VDI_JSON_OWNER_REFERENCES, VDI_JSON_ARRAY, "[{\"name\":\"o\"}]" },
		{ VDI_JSON_MANAGED_FIELDS, VDI_JSON_ABSENT, "" },
	};
	struct fixture		     f;
	const struct vdi_json_value *metadata;
	char			     plain[8];

	(void) state;
	fixture_init(&f, paths, VDI_ARRAY_SIZE(paths));
	for (int round = 0; round < 2; round++) {
		assert_status(vdi_json_scan(vd_bytes_of(json), NULL, &f.object, NULL), VD_OK);
		for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
			assert_value(json, vdi_json_member(&f.object, rows[i].member), rows[i].type,
				     rows[i].text);
		metadata = vdi_json_member(&f.object, VDI_JSON_METADATA);
		assert_int_equal(json[metadata->offset], '{');
		assert_memory_equal(json + metadata->offset + metadata->length, ",\"spec\"", 7);
		assert_int_equal(f.object.metadata_insert, metadata->offset + 1);
		assert_false(f.object.metadata_empty);
		assert_false(f.object.spaced);

		assert_int_equal(f.object.label_count, 3);
		assert_true(vd_bytes_equal(vdi_json_slice_bytes(vd_bytes_of(json), f.object.labels[1].key),
					   vd_bytes_of("a.b/c")));
		assert_false(f.object.labels[0].value.escaped);
		assert_true(f.object.labels[1].value.escaped);
		assert_int_equal(
			vdi_json_unescape(vdi_json_value_bytes(vd_bytes_of(json), &f.object.labels[1].value),
					  plain),
			2);
		assert_memory_equal(plain, "de", 2);
		assert_int_equal(f.object.labels[2].value.length, 0);

		assert_value(json, vdi_json_field(&f.object, 0), VDI_JSON_STRING, "n");
		assert_value(json, vdi_json_field(&f.object, 1), VDI_JSON_STRING, "");
		assert_value(json, vdi_json_field(&f.object, 2), VDI_JSON_STRING, "Running");
		assert_value(json, vdi_json_field(&f.object, 3), VDI_JSON_ARRAY, "[{\"nodeName\":\"no\"}]");
		assert_int_equal(vdi_json_field(&f.object, 4)->type, VDI_JSON_OBJECT);
		assert_value(json, vdi_json_field(&f.object, 5), VDI_JSON_NUMBER, "-1.5e3");
		assert_value(json, vdi_json_field(&f.object, 6), VDI_JSON_TRUE, "true");
		assert_value(json, vdi_json_field(&f.object, 7), VDI_JSON_FALSE, "false");
		assert_value(json, vdi_json_field(&f.object, 8), VDI_JSON_NULL, "null");
		assert_value(json, vdi_json_field(&f.object, 9), VDI_JSON_STRING, "d\\u0065");
		assert_ptr_equal(vdi_json_field(&f.object, 9), vdi_json_field(&f.object, 10));
	}
	/* Nothing of the document before is left. */
	assert_status(vdi_json_scan(vd_bytes_of("{}"), NULL, &f.object, NULL), VD_OK);
	assert_int_equal(f.object.label_count, 0);
	assert_int_equal(vdi_json_field(&f.object, 1)->type, VDI_JSON_ABSENT);
	assert_int_equal(vdi_json_member(&f.object, VDI_JSON_METADATA)->type, VDI_JSON_ABSENT);
	assert_int_equal(f.object.metadata_insert, 0);
	fixture_fini(&f);
}

static void h702_metadata_insertion_and_resource_version_cut(void **state)
{
	static const struct {
		const char *json;
		const char *cut;
		int	    insert;
		bool	    empty;
	} rows[] = {
		{ "{\"metadata\":{}}", "{\"metadata\":{}}", 13, true },
		{ "{\"metadata\":{ \n}}", "{\"metadata\":{ \n}}", 13, true },
		{ "{\"metadata\":{\"resourceVersion\":\"1\"}}", "{\"metadata\":{}}", 13, false },
		{ "{\"metadata\":{\"resourceVersion\":\"1\",\"name\":\"n\"}}",
		  "{\"metadata\":{\"name\":\"n\"}}", 13, false },
		{ "{\"metadata\":{\"name\":\"n\",\"resourceVersion\":\"1\"}}",
		  "{\"metadata\":{\"name\":\"n\"}}", 13, false },
		{ "{\"metadata\":{\"a\":1,\"resourceVersion\":null,\"b\":2}}",
		  "{\"metadata\":{\"a\":1,\"b\":2}}", 13, false },
		{ "{ \"metadata\" : { \"a\" : 1 , \"resourceVersion\" : \"1\" , \"b\" : 2 } }",
		  "{ \"metadata\" : { \"a\" : 1 , \"b\" : 2 } }", 16, false },
		{ "{ \"metadata\" : { \"a\" : 1 , \"resourceVersion\" : \"1\" } }",
		  "{ \"metadata\" : { \"a\" : 1  } }", 16, false },
		{ "{\"metadata\":null}", "{\"metadata\":null}", 0, false },
		{ "{\"resourceVersion\":\"1\"}", "{\"resourceVersion\":\"1\"}", 0, false },
		{ "{\"spec\":{\"resourceVersion\":\"1\"}}", "{\"spec\":{\"resourceVersion\":\"1\"}}", 0,
		  false },
	};
	struct fixture f;

	(void) state;
	fixture_init(&f, NULL, 0);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		char		      text[200];
		struct vdi_json_slice cut;

		assert_status(vdi_json_scan(vd_bytes_of(rows[i].json), NULL, &f.object, NULL), VD_OK);
		cut = f.object.resource_version_member;
		snprintf(text, sizeof text, "%.*s%s", (int) cut.offset, rows[i].json,
			 rows[i].json + cut.offset + cut.length);
		assert_string_equal(text, rows[i].cut);
		assert_status(vdi_json_validate(vd_bytes_of(text), NULL, NULL), VD_OK);
		assert_int_equal(f.object.metadata_insert, rows[i].insert);
		assert_int_equal(f.object.metadata_empty, rows[i].empty);
		assert_int_equal(f.object.spaced, strchr(rows[i].json, ' ') != NULL);
	}
	fixture_fini(&f);
}

/* rules: H-701 */
static void h703_ambiguous_keys_are_refused(void **state)
{
	static const struct {
		const char *json;
		const char *error; /* NULL: accepted */
	} rows[] = {
		{ "{\"kind\":\"A\",\"kind\":\"B\"}", "at byte 12: a key appears twice" },
		{ "{\"data\":1,\"x\":2,\"data\":3}", "at byte 16: a key appears twice" },
		{ "{\"longerThanEightBytes\":1,\"longerThanEightBytes\":3}",
		  "at byte 26: a key appears twice" },
		{ "{\"aLongerThanEightBytes\":1,\"bLongerThanEightBytes\":3}", NULL },
		{ "{\"\":1,\"\":3}", "at byte 6: a key appears twice" },
		{ "{\"a\":1,\"\":3,\"aa\":1,\"b\":2}", NULL },
		{ "{\"metadata\":{\"name\":\"a\",\"uid\":\"x\",\"name\":\"b\"}}",
		  "at byte 34: a key appears twice" },
		{ "{\"metadata\":{\"zone\":\"a\",\"zone\":\"b\"}}", "at byte 24: a key appears twice" },
		{ "{\"zone\":1,\"metadata\":{\"zone\":\"a\"},\"other\":1}", NULL },
		{ "{\"zone\":1,\"metadata\":{\"x\":\"a\"},\"zone\":1}", "at byte 31: a key appears twice" },
		{ "{\"metadata\":{},\"metadata\":{}}", "at byte 15: a key appears twice" },
		{ "{\"metadata\":{\"labels\":{\"a\":\"1\",\"b\":\"2\",\"a\":\"1\"}}}",
		  "at byte 39: a key appears twice" },
		{ "{\"metadata\":{\"labels\":{\"planned\":\"1\",\"planned\":\"1\"}}}",
		  "at byte 37: a key appears twice" },
		{ "{\"metadata\":{\"annotations\":{\"a\":\"1\",\"a\":\"1\"}}}", NULL },
		{ "{\"spec\":{\"nodeName\":\"a\",\"nodeName\":\"b\"}}", "at byte 24: a key appears twice" },
		{ "{\"spec\":{\"nodeName\":\"a\",\"\\u006eodeName\":\"b\"}}",
		  "at byte 24: a key appears twice" },
		{ "{\"spec\":{\"x\":\"a\",\"x\":\"b\"}}", NULL },
		{ "{\"k\\u0069nd\":\"A\"}", "at byte 1: a key with a backslash is not allowed here" },
		{ "{\"x\\\\\":\"A\"}", "at byte 1: a key with a backslash is not allowed here" },
		{ "{\"metadata\":{\"\\u006eame\":\"A\"}}",
		  "at byte 13: a key with a backslash is not allowed here" },
		{ "{\"metadata\":{\"labels\":{\"\\u006eame\":\"A\"}}}",
		  "at byte 23: a key with a backslash is not allowed here" },
		{ "{\"data\":{\"\\u006eame\":\"A\"}}", NULL },
		{ "{\"metadata\":{\"labels\":{\"a\":1}}}",
		  "at byte 27: the value of a label must be a string" },
		{ "{\"metadata\":{\"labels\":{\"a\":{}}}}",
		  "at byte 27: the value of a label must be a string" },
		{ "{\"metadata\":{\"labels\":null}}", NULL },
		{ "{\"metadata\":{\"labels\":[\"a\"]}}", NULL },
		{ "[]", "at byte 0: an object was expected" },
		{ "\"x\"", "at byte 0: an object was expected" },
		{ "  ", "unexpected end" },
		{ "{\"metadata\":{\"labels\":{\"a\":\"1\"}}", "at byte 32: unexpected end" },
		{ "{\"metadata\":{\"labels\":{\"a\":\"1\"", "at byte 30: unexpected end" },
		{ "{\"metadata\":{\"labels\":{\"a\"", "at byte 26: unexpected end" },
		{ "{\"metadata\":{\"name\":\"a\"],\"a\":1}", "at byte 23: `,` or `}` was expected" },
		{ "{\"metadata\":{\"name\":\"a\",}}", "at byte 24: a key was expected" },
		{ "{\"metadata\":{\"name\" \"a\"}}", "at byte 20: `:` was expected" },
		{ "{\"metadata\":{\"name\":x}}", "at byte 20: a value was expected" },
		{ "{\"metadata\":{}} x", "at byte 16: text after the end of the value" },
	};
	static const char *const paths[] = { "spec.nodeName", "metadata.labels.planned" };
	struct fixture		 f;

	(void) state;
	fixture_init(&f, paths, 2);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_error error;
		vd_status	status = vdi_json_scan(vd_bytes_of(rows[i].json), NULL, &f.object, &error);

		if ((status == VD_OK) != (rows[i].error == NULL))
			fail_msg("%s: %s", rows[i].json, status == VD_OK ? "accepted" : error.message);
		if (status == VD_OK)
			continue;
		assert_status(status, VD_BAD_REQUEST);
		if (strstr(error.message, rows[i].error) == NULL)
			fail_msg("%s: %s", rows[i].json, error.message);
		assert_int_equal(vdi_json_member(&f.object, VDI_JSON_METADATA)->type, VDI_JSON_ABSENT);
		assert_int_equal(f.object.label_count, 0);
	}
	assert_status(vdi_json_scan(vd_bytes_of("{\"spec\":{\"\\u006eode\\u004eame\":\"b\"}}"), NULL,
				    &f.object, NULL),
		      VD_OK);
	assert_int_equal(vdi_json_field(&f.object, 0)->type, VDI_JSON_STRING);
	fixture_fini(&f);
}

static void h701_depth_counts_objects_on_a_path(void **state)
{
	static const char *const     paths[] = { "a.b" };
	const struct vdi_json_limits limits = { 1000, 2 };
	struct fixture		     f;

	(void) state;
	fixture_init(&f, paths, 1);
	assert_status(vdi_json_scan(vd_bytes_of("{\"a\":{\"b\":1}}"), &limits, &f.object, NULL), VD_OK);
	assert_status(vdi_json_scan(vd_bytes_of("{\"a\":{\"b\":[]}}"), &limits, &f.object, NULL),
		      VD_BAD_REQUEST);
	assert_status(vdi_json_scan(vd_bytes_of("{\"c\":[[]]}"), &limits, &f.object, NULL), VD_BAD_REQUEST);
	fixture_fini(&f);
}

static void members_are_bounded(void **state)
{
	char		text[16384];
	struct fixture	f;
	struct vd_error error;

	(void) state;
	fixture_init(&f, NULL, 0);
	for (unsigned count = VDI_JSON_MEMBERS_MAX; count <= VDI_JSON_MEMBERS_MAX + 1; count++) {
		size_t size = 0;

		text[size++] = '{';
		for (unsigned i = 0; i < count; i++)
			size += (size_t) snprintf(text + size, sizeof text - size, "%s\"k%u\":1",
						  i ? "," : "", i);
		text[size++] = '}';
		assert_status(vdi_json_scan((struct vd_bytes) { text, size }, NULL, &f.object, &error),
			      count <= VDI_JSON_MEMBERS_MAX ? VD_OK : VD_BAD_REQUEST);
	}
	assert_non_null(strstr(error.message, "too many members"));
	fixture_fini(&f);
}

static void paths_that_are_not_understood(void **state)
{
	static const char *const bad[] = { "",		".",	"a.",
					   "a..b",	"a[0]", "a[*]",
					   "a[?(@.x)]", "a b",	"a['b'",
					   "a['b']c",	"$",	"{.a",
					   "a\\",	"..a",	"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q" };
	static const char *const good[] = {
		"a", ".a", "$.a", "{.a.b}", "a['b']", "a['b'].c", "a[\"b.c\"]['d']", "a.b\\.c"
	};
	struct vdi_json_plan *plan = NULL;
	struct vd_error	      error;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(bad); i++) {
		struct vd_bytes path = vd_bytes_of(bad[i]);

		if (vdi_json_plan_new(&path, 1, &plan, &error) != VD_INVALID_ARGUMENT)
			fail_msg("%s", bad[i]);
		assert_null(plan);
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(good); i++) {
		struct vd_bytes path = vd_bytes_of(good[i]);

		assert_status(vdi_json_plan_new(&path, 1, &plan, &error), VD_OK);
		plan = vdi_json_plan_free(plan);
	}
}

static void torture_every_allocation(void **state)
{
	const struct vd_bytes paths[] = { vd_bytes_of("spec.nodeName"), vd_bytes_of("a.b.c") };
	const char	     *json = "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}";
	int64_t		      live = vdi_alloc_live();
	uint64_t	      nth = 1;

	(void) state;
	for (;; nth++) {
		struct vdi_json_plan  *plan = NULL;
		struct vdi_json_object object = { 0 };
		vd_status	       status;

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_json_plan_new(paths, 2, &plan, NULL);
		if (status == VD_OK)
			status = vdi_json_object_init(&object, plan);
		if (status == VD_OK)
			status = vdi_json_scan(vd_bytes_of(json), NULL, &object, NULL);
		if (!vdi_alloc_failed()) {
			vdi_alloc_fail_nth(0, 0);
			assert_status(status, VD_OK);
			vdi_json_object_fini(&object);
			vdi_json_plan_free(plan);
			break;
		}
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, VD_NOMEM);
		if (object.values)
			assert_status(vdi_json_scan(vd_bytes_of(json), NULL, &object, NULL), VD_OK);
		vdi_json_object_fini(&object);
		vdi_json_plan_free(plan);
		assert_int_equal(vdi_alloc_live(), live);
	}
	assert_true(nth > 10);
	assert_int_equal(vdi_alloc_live(), live);
}

/* Every prefix of a document is refused, every change of one byte is judged as jansson judges it. */
static void h705_agrees_with_jansson_on_small_changes(void **state)
{
	static const char json[] = "{\"a\":[1,-2.5e+3,true,null,\"x\\u00e9\\n\xc3\xa9\"],\"b\":{\"c\":{}}}";
	char		  text[sizeof json];
	const size_t	  size = sizeof json - 1;

	(void) state;
	for (size_t i = 0; i < size; i++)
		assert_status(validate(json, i, NULL), VD_BAD_REQUEST);
	for (size_t i = 0; i < size; i++) {
		for (int byte = 0; byte < 256; byte++) {
			json_t	    *tree;
			json_error_t where;

			memcpy(text, json, size);
			text[i] = (char) byte;
			tree = json_loadb(text, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, &where);
			if ((validate(text, size, NULL) == VD_OK) != (tree != NULL))
				fail_msg("byte %zu = %d: jansson %s", i, byte, tree ? "accepts" : where.text);
			json_decref(tree);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h701_grammar_of_rfc_8259),
		cmocka_unit_test(h701_utf8_is_well_formed),
		cmocka_unit_test(h701_surrogates_come_in_pairs),
		cmocka_unit_test(h701_depth_is_bounded),
		cmocka_unit_test(h701_size_is_bounded),
		cmocka_unit_test(h701_places_of_special_bytes),
		cmocka_unit_test(h701_extracts_the_parts_of_an_object),
		cmocka_unit_test(h702_metadata_insertion_and_resource_version_cut),
		cmocka_unit_test(h703_ambiguous_keys_are_refused),
		cmocka_unit_test(h701_depth_counts_objects_on_a_path),
		cmocka_unit_test(members_are_bounded),
		cmocka_unit_test(paths_that_are_not_understood),
		cmocka_unit_test(torture_every_allocation),
		cmocka_unit_test(h705_agrees_with_jansson_on_small_changes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
