/* Unit tests of apiserver/kinds/read_defaults.c: what an object gets when it is decoded, by the version it is
 * stored in, and with allocations that fail. */
#include "vdtest.h"

#include "k8s_proto.h"
#include "read_defaults.h"
#include "tree.h"

#define HEAD(version)                                                                                        \
	"{\"apiVersion\":\"example.com/" version                                                             \
	"\",\"kind\":\"Tab\",\"metadata\":{\"name\":\"x\",\"namespace\":\"n\",\"uid\":\"u\"}"
#define KEY "/registry/example.com/tabs/n/x"

static struct vdi_schema *compile(const char *text)
{
	struct vdi_tree		tree = VDI_TREE_INIT;
	struct vdi_field_errors field_errors = { 0 };
	struct vdi_schema      *schema;
	struct vdi_node	       *source;

	assert_status(vdi_tree_parse(&tree, vd_bytes_of(text), &source, NULL), VD_OK);
	assert_status(vdi_schema_compile(&tree, source, "", &schema, &field_errors), VD_OK);
	vdi_field_errors_fini(&field_errors);
	vdi_tree_fini(&tree);
	return schema;
}

static const char red[] = "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"default\":{},"
			  "\"properties\":{\"color\":{\"type\":\"string\",\"default\":\"red\"},"
			  "\"list\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"n\":"
			  "{\"type\":\"integer\",\"default\":3}}}}}}}}";
static const char blue[] = "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\","
			   "\"properties\":{\"color\":{\"type\":\"string\",\"default\":\"blue\"}}}}}";
static const char plain[] = "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\","
			    "\"properties\":{\"color\":{\"type\":\"string\"}}}}}";

/* v1 red, v2 blue, v3 nothing. */
static struct vdi_read_defaults *make(void)
{
	static const char *const texts[] = { red, blue, plain }, *const versions[] = { "example.com/v1",
										       "example.com/v2",
										       "example.com/v3" };
	struct vdi_read_defaults *defaults = NULL;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(texts); i++) {
		struct vdi_schema *schema = compile(texts[i]);

		assert_status(vdi_read_defaults_add(&defaults, versions[i], schema), VD_OK);
		(void) vdi_schema_free(schema);
	}
	assert_non_null(defaults);
	return defaults;
}

static struct vd_codec *make_codec(void)
{
	static const struct vd_field_spec fields[] = { { "spec.color", ".spec.color", NULL } };
	struct vdi_read_defaults	 *defaults = make();
	struct vd_codec			 *codec;

	assert_status(vd_codec_json_new(fields, 1, &codec, NULL), VD_OK);
	assert_status(vdi_read_defaults_wrap(defaults, &codec), VD_OK);
	(void) vdi_read_defaults_unref(defaults);
	assert_int_equal(codec->field_count, 1);
	return codec;
}

static void what_is_missing_is_there_when_it_is_read(void **state)
{
	static const struct {
		const char *stored, *read; /* NULL: the very bytes of the store */
	} rows[] = {
		{ HEAD("v1") "}", HEAD("v1") ",\"spec\":{\"color\":\"red\"}}" },
		{ HEAD("v1") ",\"spec\":{\"list\":[{},{\"n\":1}]}}",
		  HEAD("v1") ",\"spec\":{\"list\":[{\"n\":3},{\"n\":1}],\"color\":\"red\"}}" },
		{ HEAD("v1") ",\"spec\":{\"color\":\"green\"}}", NULL },
		{ HEAD("v1") ", \"spec\": {\"color\": \"green\", \"other\": 1.50}}", NULL },
		{ HEAD("v1") ",\"spec\":{\"color\":null}}", HEAD("v1") ",\"spec\":{\"color\":\"red\"}}" },
		{ HEAD("v2") "}", NULL },
		{ HEAD("v2") ",\"spec\":{}}", HEAD("v2") ",\"spec\":{\"color\":\"blue\"}}" },
		{ HEAD("v3") ",\"spec\":{}}", NULL },
		{ HEAD("v4") ",\"spec\":{}}", NULL },
		{ "{\"metadata\":{\"name\":\"x\",\"namespace\":\"n\"}}", NULL },
	};
	struct vd_codec *codec = make_codec();

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_object *object;
		struct vd_kv	 *kv;

		assert_status(vd_kv_new(vd_bytes_of(KEY), vd_bytes_of(rows[i].stored), &kv), VD_OK);
		kv->mod_rev = 7;
		kv->version = 3;
		assert_status(vd_object_new(codec, kv, &object, NULL), VD_OK);
		if (rows[i].read == NULL) {
			assert_ptr_equal(vd_object_kv(object), kv);
		} else {
			struct vd_bytes value = vd_kv_value(vd_object_kv(object));

			if (!vd_bytes_equal(value, vd_bytes_of(rows[i].read)))
				fail_msg("%.*s", (int) value.size, (const char *) value.data);
			assert_true(vd_bytes_equal(vd_object_key(object), vd_bytes_of(KEY)));
			assert_int_equal(vd_object_revision(object), 7);
			assert_int_equal(vd_object_kv(object)->version, 3);
			if (strstr(rows[i].read, "red")) /* a selector finds it */
				assert_true(vd_bytes_equal(vd_object_field(object, 0), vd_bytes_of("red")));
			assert_true(vd_bytes_equal(vd_kv_value(kv), vd_bytes_of(rows[i].stored)));
		}
		(void) vd_object_unref(object);
		vd_kv_unref(kv);
	}
	(void) vd_codec_free(codec);
}

static void what_is_no_object_is_refused_as_ever(void **state)
{
	static const char *const rows[] = {
		"",
		"[]",
		"{\"apiVersion\":\"example.com/v1\"",
		"{\"apiVersion\":\"example.com/v1\",\"spec\":{}}",
		"{\"apiVersion\":\"example.com/v1\",\"apiVersion\":\"example.com/v1\"}",
		"\""
	};
	struct vd_codec *codec = make_codec();

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_object *object;
		struct vd_error	  error = { 0 };
		struct vd_kv	 *kv;

		assert_status(vd_kv_new(vd_bytes_of(KEY), vd_bytes_of(rows[i]), &kv), VD_OK);
		assert_status(vd_object_new(codec, kv, &object, &error), VD_UNDECODABLE);
		vd_kv_unref(kv);
	}
	(void) vd_codec_free(codec);
}

#define DEFAULT_OBJECT(members)                                                                              \
	"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-"   \
	"fields\":true,\"default\":{" members "}}}}"

/* Only what changes an object makes another key: then the kind's cache stays what it is. */
static void equal_keys_do_the_same(void **state)
{
	static const struct {
		const char *a, *b;
		bool	    is_same;
	} rows[] = {
		{ red, red, true },
		{ red, blue, false },
		{ blue,
		  "{\"type\":\"object\",\"description\":\"x\",\"properties\":{\"spec\":{\"type\":\"object\","
		  "\"properties\":{\"size\":{\"type\":\"integer\"},"
		  "\"color\":{\"type\":\"string\",\"maxLength\":9,\"default\":\"blue\"}}}}}",
		  true },
		{ blue,
		  "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":{"
		  "\"colour\":{\"type\":\"string\",\"default\":\"blue\"}}}}}",
		  false },
		{ blue,
		  "{\"type\":\"object\",\"properties\":{\"status\":{\"type\":\"object\",\"properties\":{"
		  "\"color\":{\"type\":\"string\",\"default\":\"blue\"}}}}}",
		  false },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"type\":"
		  "\"object\",\"properties\":{\"b\":{\"type\":\"integer\",\"default\":1}}}}}}",
		  "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\",\"additionalProperties\":{"
		  "\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"integer\",\"default\":1}}}}}}",
		  false },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"default\":\"x\"}}}",
		  "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"default\":\"x\","
		  "\"nullable\":"
		  "true}}}",
		  false },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"default\":\"x\"},\"b\":{"
		  "\"type\":\"string\"}}}",
		  "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"default\":\"x\"},\"b\":{"
		  "\"type\":\"string\",\"nullable\":true}}}",
		  false },
		{ DEFAULT_OBJECT("\"b\":[1]"), DEFAULT_OBJECT("\"b\":[1]"), true },
		{ DEFAULT_OBJECT("\"b\":[1]"), DEFAULT_OBJECT("\"b\":[2]"), false },
		{ DEFAULT_OBJECT("\"b\":[1]"), DEFAULT_OBJECT("\"c\":[1]"), false },
		{ DEFAULT_OBJECT("\"b\":[1]"), DEFAULT_OBJECT("\"b\":[1,1]"), false },
		{ DEFAULT_OBJECT("\"b\":[[1],2]"), DEFAULT_OBJECT("\"b\":[[1,2]]"), false },
		{ DEFAULT_OBJECT("\"b\":[true]"), DEFAULT_OBJECT("\"b\":[\"true\"]"), false },
	};
	struct vdi_schema	 *schema = compile(plain);
	struct vdi_read_defaults *none = NULL, *one = NULL, *other = NULL;

	assert_int_equal(vdi_schema_default_key(schema), 0);
	assert_status(vdi_read_defaults_add(&none, "example.com/v1", schema), VD_OK);
	assert_null(none);
	assert_int_equal(vdi_read_defaults_key(none), 0);
	(void) vdi_schema_free(schema);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_schema *a = compile(rows[i].a), *b = compile(rows[i].b);

		if ((vdi_schema_default_key(a) == vdi_schema_default_key(b)) != rows[i].is_same)
			fail_msg("row %zu", i);
		(void) vdi_schema_free(a);
		(void) vdi_schema_free(b);
	}
	schema = compile(red);
	assert_status(vdi_read_defaults_add(&one, "example.com/v1", schema), VD_OK);
	assert_status(vdi_read_defaults_add(&other, "example.com/v2", schema), VD_OK);
	assert_true(vdi_read_defaults_key(one) != vdi_read_defaults_key(other));
	assert_true(vdi_read_defaults_key(one) != 0);
	(void) vdi_schema_free(schema);
	(void) vdi_read_defaults_unref(one);
	(void) vdi_read_defaults_unref(other);
}

static void every_failed_allocation_is_told(void **state)
{
	for (uint64_t nth = 1;; nth++) {
		int64_t			  live = vdi_alloc_live();
		struct vdi_schema	 *schema = compile(red);
		struct vdi_read_defaults *defaults = NULL;
		struct vd_codec		 *codec;
		struct vd_object	 *object = NULL;
		struct vd_kv		 *kv;
		vd_status		  status;
		bool			  failed;

		assert_status(vd_codec_json_new(NULL, 0, &codec, NULL), VD_OK);
		assert_status(vd_kv_new(vd_bytes_of(KEY), vd_bytes_of(HEAD("v1") "}"), &kv), VD_OK);
		vdi_alloc_fail_nth(nth, 1);
		status = vdi_read_defaults_add(&defaults, "example.com/v1", schema);
		if (status == VD_OK)
			status = vdi_read_defaults_wrap(defaults, &codec);
		if (status == VD_OK)
			status = vd_object_new(codec, kv, &object, NULL);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		(void) vd_object_unref(object);
		vd_kv_unref(kv);
		(void) vd_codec_free(codec);
		(void) vdi_read_defaults_unref(defaults);
		(void) vdi_schema_free(schema);
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed)
			break;
	}
}

/* A value that the store has as protobuf becomes JSON first, and gets its defaults then. */
static void a_translated_value_gets_its_defaults(void **state)
{
	static const char with_default[] = "{\"type\":\"object\",\"properties\":{\"data\":{\"type\":"
					   "\"object\",\"default\":{\"a\":\"b\"},"
					   "\"additionalProperties\":{\"type\":\"string\"}}}}";
	static const struct {
		const char *version, *sent, *expected;
	} rows[] = {
		{ "v1", "{\"metadata\":{\"name\":\"x\"}}", "\"data\":{\"a\":\"b\"}" },
		{ "v1", "{\"metadata\":{\"name\":\"x\"},\"data\":{\"c\":\"d\"}}", "\"data\":{\"c\":\"d\"}" },
		{ "v2", "{\"metadata\":{\"name\":\"x\"},\"data\":{\"c\":\"d\"}}", "\"data\":{\"c\":\"d\"}" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		int64_t			  live = vdi_alloc_live();
		struct vdi_read_defaults *defaults = NULL;
		struct vdi_schema	 *schema = compile(with_default);
		struct vd_codec		 *codec;
		struct vdi_buffer	  stored;
		struct vd_object	 *object;
		struct vd_kv		 *kv;
		struct vd_bytes		  value;
		size_t			  mark;
		bool			  failed = true;

		assert_status(vdi_read_defaults_add(&defaults, rows[i].version, schema), VD_OK);
		assert_status(vd_codec_json_new(NULL, 0, &codec, NULL), VD_OK);
		assert_status(vdi_read_defaults_wrap(defaults, &codec), VD_OK);
		vdi_buffer_init(&stored, 4096);
		mark = vdi_k8s_proto_envelope_begin(&stored, vd_bytes_of("v1"), vd_bytes_of("ConfigMap"));
		assert_status(vdi_k8s_proto_from_json(
				      vdi_k8s_kind_find(vd_bytes_of("v1"), vd_bytes_of("ConfigMap")),
				      vd_bytes_of(rows[i].sent), NULL, &stored, NULL),
			      VD_OK);
		vdi_k8s_proto_envelope_end(&stored, mark);
		assert_status(
			vd_kv_new(vd_bytes_of("/registry/configmaps/n/x"), vdi_buffer_bytes(&stored), &kv),
			VD_OK);
		for (uint64_t nth = 1; failed; nth++) {
			vd_status status;

			(void) vdi_alloc_fail_nth(nth, 1);
			status = vd_object_new(codec, kv, &object, NULL);
			failed = vdi_alloc_failed();
			(void) vdi_alloc_fail_nth(0, 0);
			assert_status(status, failed ? VD_NOMEM : VD_OK);
		}
		value = vd_kv_value(vd_object_kv(object));
		if (memmem(value.data, value.size, rows[i].expected, strlen(rows[i].expected)) == NULL ||
		    memmem(value.data, value.size, "\"name\":\"x\"", 10) == NULL)
			fail_msg("%.*s", (int) value.size, (const char *) value.data);
		vd_object_unref(object);
		vd_kv_unref(kv);
		vdi_buffer_fini(&stored);
		vd_codec_free(codec);
		(void) vdi_read_defaults_unref(defaults);
		(void) vdi_schema_free(schema);
		assert_int_equal(vdi_alloc_live(), live);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_translated_value_gets_its_defaults),
		cmocka_unit_test(what_is_missing_is_there_when_it_is_read),
		cmocka_unit_test(what_is_no_object_is_refused_as_ever),
		cmocka_unit_test(equal_keys_do_the_same),
		cmocka_unit_test(every_failed_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
