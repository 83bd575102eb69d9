/* Unit tests of storage/codec/object.c, storage/codec/codec_json.c and storage/store/revision_cut.c. */
#include "vdtest.h"

#include <vedette/codec.h>

#include "object.h"
#include "revision_cut.h"

static const struct vd_field_spec fields[] = {
	{ "spec.nodeName", ".spec.nodeName", NULL },
	{ "status.phase", ".status.phase", "Pending" },
	{ "spec.replicas", "spec.replicas", NULL },
};

static struct vd_codec *codec_new(void)
{
	struct vd_codec *codec = NULL;

	assert_status(vd_codec_json_new(fields, VDI_ARRAY_SIZE(fields), &codec, NULL), VD_OK);
	return codec;
}

static struct vd_kv *kv_of(const char *json)
{
	struct vd_kv *kv = NULL;

	assert_status(vd_kv_new(vd_bytes_of("/registry/pods/a/b"), vd_bytes_of(json), &kv), VD_OK);
	kv->mod_rev = 42;
	return kv;
}

static struct vd_object *object_of(struct vd_codec *codec, const char *json)
{
	struct vd_kv	 *kv = kv_of(json);
	struct vd_object *object = NULL;
	struct vd_error	  error = { 0 };

	if (vd_object_new(codec, kv, &object, &error) != VD_OK)
		fail_msg("%s", error.message);
	vd_kv_unref(kv);
	return object;
}

static void assert_bytes(struct vd_bytes actual, const char *expected)
{
	if (!vd_bytes_equal(actual, vd_bytes_of(expected)))
		fail_msg("\"%.*s\" != \"%s\"", (int) actual.size, (const char *) actual.data, expected);
}

static void assert_json(const struct vd_object *object, vd_rev revision, const char *expected)
{
	struct vd_object_json json;
	char		      text[2048];
	size_t		      size = 0;

	vd_object_json(object, revision, &json);
	for (size_t i = 0; i < 3; i++) {
		memcpy(text + size, json.piece[i].data, json.piece[i].size);
		size += json.piece[i].size;
	}
	assert_bytes((struct vd_bytes) { text, size }, expected);
	assert_int_equal(size, vd_object_json_size(object, revision));
}

static void header_holds_what_the_cache_asks_for(void **state)
{
	struct vd_codec	 *codec = codec_new();
	struct vd_object *object;
	struct vd_bytes	  value;
	int64_t		  live;

	(void) state;
	object = object_of(
		codec,
		"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"b\",\"namespace\":\"a\",\"uid\":\"u1\","
		"\"labels\":"
		"{\"app\":\"web\",\"tier\":\"a\\u0062c\"}},\"spec\":{\"nodeName\":\"n1\",\"replicas\":3}}");
	assert_bytes(vd_object_key(object), "/registry/pods/a/b");
	assert_bytes(vd_object_name(object), "b");
	assert_bytes(vd_object_namespace(object), "a");
	assert_bytes(vdi_object_metadata(object), "{\"name\":\"b\",\"namespace\":\"a\",\"uid\":\"u1\","
						  "\"labels\":{\"app\":\"web\",\"tier\":\"a\\u0062c\"}}");
	assert_int_equal(vd_object_revision(object), 42);
	assert_int_equal(vd_object_label_count(object), 2);
	assert_true(vd_object_label_get(object, vd_bytes_of("tier"), &value));
	assert_bytes(value, "abc");
	assert_false(vd_object_label_get(object, vd_bytes_of("ti"), &value));
	/* keys of the size of one that is there */
	assert_false(vd_object_label_get(object, vd_bytes_of("tieR"), &value));
	assert_false(vd_object_label_get(object, vd_bytes_of("Tier"), &value));
	assert_bytes(vd_object_field(object, 0), "n1");
	assert_bytes(vd_object_field(object, 1), "Pending");
	assert_bytes(vd_object_field(object, 2), "3");
	assert_bytes(vd_object_field(object, 3), "");
	live = vdi_alloc_live();
	vd_object_unref(vd_object_ref(object));
	assert_int_equal(vdi_alloc_live(), live);
	vd_object_unref(object);
	vd_codec_free(codec);
}

static void r103_revision_is_spliced_in(void **state)
{
	struct vd_codec	 *codec = codec_new();
	struct vd_object *object = object_of(codec, "{\"metadata\":{\"name\":\"b\"}}");

	(void) state;
	assert_json(object, 42, "{\"metadata\":{\"resourceVersion\":\"42\",\"name\":\"b\"}}");
	assert_json(object, 9223372036854775807,
		    "{\"metadata\":{\"resourceVersion\":\"9223372036854775807\",\"name\":\"b\"}}");
	assert_json(object, 0, "{\"metadata\":{\"name\":\"b\"}}");
	vd_object_unref(object);
	object = object_of(codec, "{\"metadata\":{},\"a\":1}");
	assert_json(object, 7, "{\"metadata\":{\"resourceVersion\":\"7\"},\"a\":1}");
	vd_object_unref(object);
	/* Stored against R-105: replaced, not doubled. */
	object = object_of(codec,
			   "{\"metadata\":{\"name\":\"b\", \"resourceVersion\" : \"5\" , \"uid\":\"u\"}}");
	assert_json(object, 7, "{\"metadata\":{\"name\":\"b\", \"resourceVersion\":\"7\" , \"uid\":\"u\"}}");
	assert_json(object, 0, "{\"metadata\":{\"name\":\"b\", \"resourceVersion\":\"\" , \"uid\":\"u\"}}");
	vd_object_unref(object);
	vd_codec_free(codec);
}

static void undecodable_values_are_refused(void **state)
{
	static const char *const bad[] = { "",
					   "{",
					   "[]",
					   "{}",
					   "{\"metadata\":1}",
					   "{\"metadata\":{\"labels\":{\"a\":1}}}",
					   "{\"metadata\":{\"name\":\"\xff\"}}" };
	struct vd_codec		*codec = codec_new();
	struct vd_object	*object = NULL;
	struct vd_error		 error = { 0 };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(bad); i++) {
		struct vd_kv *kv = kv_of(bad[i]);

		assert_status(vd_object_new(codec, kv, &object, &error), VD_UNDECODABLE);
		assert_int_equal(error.code, VD_UNDECODABLE);
		assert_true(error.message[0] != 0);
		vd_kv_unref(kv);
	}
	vd_codec_free(codec);
}

static void r105_stored_values_hold_no_revision_and_no_self_link(void **state)
{
	static const struct {
		const char *in, *out;
		bool	    refuse;
		vd_status   status;
	} rows[] = {
		{ "{\"metadata\":{\"name\":\"b\"}}", "{\"metadata\":{\"name\":\"b\"}}", true, VD_OK },
		{ "{\"metadata\":{\"resourceVersion\":\"5\",\"name\":\"b\"}}",
		  "{\"metadata\":{\"name\":\"b\"}}", false, VD_OK },
		{ "{\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"5\"}}",
		  "{\"metadata\":{\"name\":\"b\"}}", false, VD_OK },
		{ "{\"metadata\":{\"resourceVersion\":\"5\"}}", "{\"metadata\":{}}", false, VD_OK },
		{ "{\"metadata\":{\"resourceVersion\":\"5\"}}", "", true, VD_REVISION_ON_CREATE },
		{ "{\"metadata\":{\"resourceVersion\":\"0\",\"name\":\"b\"}}",
		  "{\"metadata\":{\"name\":\"b\"}}", true, VD_OK },
		{ "{\"metadata\":{\"resourceVersion\":\"\",\"name\":\"b\"}}",
		  "{\"metadata\":{\"name\":\"b\"}}", true, VD_OK },
		{ "{\"metadata\":{\"resourceVersion\":\"abc\",\"name\":\"b\"}}",
		  "{\"metadata\":{\"name\":\"b\"}}", true, VD_OK },
		{ "{\"metadata\":{\"name\":\"b\",\"resourceVersion\":null}}",
		  "{\"metadata\":{\"name\":\"b\"}}", true, VD_OK },
		{ "nonsense", "", true, VD_BAD_REQUEST },
		/* White space around the comma. */
		{ "{\"metadata\":{\"name\":\"b\",\n\"resourceVersion\":\"5\"\n}}",
		  "{\"metadata\":{\"name\":\"b\"\n}}", false, VD_OK },
		{ "{\"metadata\":{\"name\":\"b\",\r\"resourceVersion\":\"5\"\r}}",
		  "{\"metadata\":{\"name\":\"b\"\r}}", false, VD_OK },
		{ "{\"metadata\":{\"name\":\"b\",\t\"resourceVersion\":\"5\"}}",
		  "{\"metadata\":{\"name\":\"b\"}}", false, VD_OK },
		{ "{\"metadata\":{\"resourceVersion\":\"5\"\r\n\t ,\"name\":\"b\"}}",
		  "{\"metadata\":{\"name\":\"b\"}}", false, VD_OK },
		/* Nor a selfLink. */
		{ "{\"metadata\":{\"selfLink\":\"/a\"}}", "{\"metadata\":{}}", true, VD_OK },
		{ "{\"metadata\":{\"name\":\"b\", \"selfLink\" : \"/a\"}}", "{\"metadata\":{\"name\":\"b\"}}",
		  true, VD_OK },
		{ "{\"metadata\":{\"selfLink\":null,\"name\":\"b\"}}", "{\"metadata\":{\"name\":\"b\"}}",
		  true, VD_OK },
		{ "{\"metadata\":{\"selfLink\":\"/a\",\"resourceVersion\":\"5\"}}", "{\"metadata\":{}}",
		  false, VD_OK },
		{ "{\"metadata\":{\"resourceVersion\":\"5\",\"selfLink\":\"/a\"}}", "{\"metadata\":{}}",
		  false, VD_OK },
		{ "{\"metadata\":{\"selfLink\":\"/a\",\"name\":\"b\",\"resourceVersion\":\"5\"}}",
		  "{\"metadata\":{\"name\":\"b\"}}", false, VD_OK },
		{ "{\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"5\",\"selfLink\":\"/"
		  "a\"},\"selfLink\":1}",
		  "{\"metadata\":{\"name\":\"b\"},\"selfLink\":1}", false, VD_OK },
		{ "{\"metadata\":{\"selfLink\":\"/a\",\"resourceVersion\":\"5\"}}", "", true,
		  VD_REVISION_ON_CREATE },
	};
	struct vd_codec *codec = codec_new();

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_kv   *kv = NULL;
		struct vd_error error = { 0 };

		assert_status(vdi_revision_cut_kv(codec, vd_bytes_of("/k"), vd_bytes_of(rows[i].in),
						  rows[i].refuse, &kv, &error),
			      rows[i].status);
		if (rows[i].status == VD_OK)
			assert_bytes(vd_kv_value(kv), rows[i].out);
		vd_kv_unref(kv);
	}
	vd_codec_free(codec);
}

static void every_failed_allocation_is_reported(void **state)
{
	int64_t live = vdi_alloc_live();

	(void) state;
	for (uint64_t nth = 1;; nth++) {
		struct vd_codec	 *codec = NULL;
		struct vd_object *object = NULL;
		struct vd_kv *kv = kv_of("{\"metadata\":{\"name\":\"b\",\"labels\":{\"a\":\"\\u0041\"}}}");
		vd_status     status;

		vdi_alloc_fail_nth(nth, 1);
		status = vd_codec_json_new(fields, VDI_ARRAY_SIZE(fields), &codec, NULL);
		if (status == VD_OK)
			status = vd_object_new(codec, kv, &object, NULL);
		bool failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		vd_object_unref(object);
		vd_codec_free(codec);
		vd_kv_unref(kv);
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed)
			break;
	}
}

/* A field is the text of a scalar; anything else is as if it were not there. */
static void fields_are_scalars(void **state)
{
	static const char *const rows[][2] = { { "\"x\"", "x" },     { "7", "7" },
					       { "-1.5", "-1.5" },   { "true", "true" },
					       { "false", "false" }, { "\"a\\u0062\"", "ab" },
					       { "null", "" },	     { "{}", "" },
					       { "{\"a\":1}", "" },  { "[]", "" },
					       { "[\"x\"]", "" } };
	struct vd_codec		*codec = codec_new();

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		char		  json[128];
		struct vd_object *object;

		(void) snprintf(json, sizeof json,
				"{\"metadata\":{\"name\":\"b\"},\"spec\":{\"nodeName\":%s}}", rows[i][0]);
		object = object_of(codec, json);
		assert_bytes(vd_object_field(object, 0), rows[i][1]);
		vd_object_unref(object);
	}
	vd_codec_free(codec);
}

/* The largest keys and values of labels, and a byte more of each. */
static void labels_have_a_largest_size(void **state)
{
	struct vd_codec *codec = codec_new();
	char		*json = malloc(300000), *text = malloc(70000);

	(void) state;
	memset(text, 'x', 70000);
	for (int more_key = 0; more_key < 2; more_key++)
		for (int more_value = 0; more_value < 2; more_value++) {
			struct vd_object *object = NULL;
			struct vd_bytes	  value;
			struct vd_kv	 *kv;

			snprintf(json, 300000,
				 "{\"metadata\":{\"name\":\"b\",\"labels\":{\"%.*s\":\"%.*s\"}}}",
				 UINT16_MAX + more_key, text, UINT16_MAX + more_value, text);
			kv = kv_of(json);
			assert_status(vd_object_new(codec, kv, &object, NULL),
				      more_key || more_value ? VD_UNDECODABLE : VD_OK);
			if (object) {
				assert_true(vd_object_label_get(
					object, (struct vd_bytes) { text, UINT16_MAX }, &value));
				assert_int_equal(value.size, UINT16_MAX);
			}
			vd_object_unref(object);
			vd_kv_unref(kv);
		}
	free(text);
	free(json);
	vd_codec_free(codec);
}

/* A codec with so many labels and fields in each object. */
struct counting_codec {
	struct vd_codec codec;
	size_t		labels, fields;
};

static vd_status inspect_counts(const struct vd_codec *codec, struct vd_bytes value,
				struct vd_object_attributes *ret_attributes, struct vd_error *reterr)
{
	static struct vd_pair		   labels[VD_LABELS_MAX + 1];
	static struct vd_bytes		   names[VD_FIELDS_MAX + 1];
	const struct counting_codec *const counting = VDI_CONTAINER_OF(codec, struct counting_codec, codec);

	(void) reterr;
	assert_true(value.size > 0);
	for (size_t i = 0; i < counting->labels; i++)
		labels[i].key = vd_bytes_of("a");
	ret_attributes->labels = labels;
	ret_attributes->label_count = counting->labels;
	ret_attributes->fields = names;
	ret_attributes->field_count = counting->fields;
	return VD_OK;
}

/* The most labels and fields of an object, and one more of each. */
static void labels_and_fields_have_a_largest_number(void **state)
{
	static const struct vd_codec_ops ops = { .inspect = inspect_counts };
	struct counting_codec		 codec = { .codec = { .ops = &ops } };
	struct vd_kv			*kv = kv_of("{}");

	(void) state;
	for (size_t more = 0; more < 4; more++) {
		struct vd_object *object = NULL;
		struct vd_error	  error = { 0 };

		codec.labels = VD_LABELS_MAX + more % 2;
		codec.fields = VD_FIELDS_MAX + more / 2;
		assert_status(vd_object_new(&codec.codec, kv, &object, &error),
			      more ? VD_UNDECODABLE : VD_OK);
		assert_string_equal(error.message, more % 2 ? "more than 1024 labels" :
						   more	    ? "more than 32 declared fields" :
							      "");
		vd_object_unref(object);
	}
	vd_kv_unref(kv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_holds_what_the_cache_asks_for),
		cmocka_unit_test(r103_revision_is_spliced_in),
		cmocka_unit_test(undecodable_values_are_refused),
		cmocka_unit_test(labels_have_a_largest_size),
		cmocka_unit_test(labels_and_fields_have_a_largest_number),
		cmocka_unit_test(r105_stored_values_hold_no_revision_and_no_self_link),
		cmocka_unit_test(every_failed_allocation_is_reported),
		cmocka_unit_test(fields_are_scalars),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
