/* Values that a kube-apiserver stored: protobuf in storage/codec/codec_json.c, and how object.c,
 * revision_cut.c, storage.c and the cacher live with them. */
#include "cacher.h"
#include "cacher_fixture.h"
#include "k8s_proto.h"
#include "object.h"
#include "revision_cut.h"
#include "storage.h"

static const struct vd_field_spec fields[] = { { "spec.nodeName", ".spec.nodeName", NULL } };

#define POD(app, node)                                                                                       \
	"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\",\"namespace\":\"a\",\"uid\":"  \
	"\"u\",\"labels\":{\"app\":\"" app "\"}},"                                                           \
	"\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{}}],\"nodeName\":\"" node                  \
	"\"},\"status\":{}}"

static const struct vd_bytes pod_key = { "/registry/pods/a/x", 18 };

/* As kube-apiserver would store it. The caller frees. */
static struct vd_bytes stored(struct vdi_buffer *buffer, const char *kind, const char *json)
{
	const struct vdi_k8s_message *message = vdi_k8s_kind_find(vd_bytes_of("v1"), vd_bytes_of(kind));
	size_t			      mark;

	vdi_buffer_init(buffer, 1 << 20);
	mark = vdi_k8s_proto_envelope_begin(buffer, vd_bytes_of("v1"), vd_bytes_of(kind));
	assert_status(vdi_k8s_proto_from_json(
			      message ? message : vdi_k8s_kind_find(vd_bytes_of("v1"), vd_bytes_of("Pod")),
			      vd_bytes_of(json), NULL, buffer, NULL),
		      VD_OK);
	vdi_k8s_proto_envelope_end(buffer, mark);
	assert_status(vdi_buffer_status(buffer), VD_OK);
	return vdi_buffer_bytes(buffer);
}

static struct vd_codec *codec_new(void)
{
	struct vd_codec *codec = NULL;

	assert_status(vd_codec_json_new(fields, VDI_ARRAY_SIZE(fields), &codec, NULL), VD_OK);
	return codec;
}

static struct vd_kv *kv_of(struct vd_bytes value)
{
	struct vd_kv *kv = NULL;

	assert_status(vd_kv_new(pod_key, value, &kv), VD_OK);
	kv->create_rev = 7;
	kv->mod_rev = 42;
	kv->version = 3;
	kv->lease = 5;
	kv->sub = 1;
	return kv;
}

static void assert_value(const struct vd_kv *kv, const char *json)
{
	struct vd_bytes value = vd_kv_value(kv);

	if (!vd_bytes_equal(value, vd_bytes_of(json)))
		fail_msg("\n got %.*s\nwant %s", (int) value.size, (const char *) value.data, json);
}

static void h324_a_stored_protobuf_value_is_an_object(void **state)
{
	struct vd_codec	     *codec = codec_new();
	struct vdi_buffer     buffer;
	struct vd_kv	     *kv = kv_of(stored(&buffer, "Pod", POD("web", "n1")));
	struct vd_object     *object = NULL;
	struct vd_object_json json;
	struct vd_bytes	      app;

	(void) state;
	assert_status(vd_object_new(codec, kv, &object, NULL), VD_OK);
	vd_kv_unref(kv);
	kv = vd_object_kv(object);
	assert_value(kv, POD("web", "n1"));
	assert_true(kv->create_rev == 7 && kv->mod_rev == 42 && kv->version == 3 && kv->lease == 5 &&
		    kv->sub == 1);
	assert_true(vd_bytes_equal(vd_object_key(object), pod_key));
	assert_true(vd_bytes_equal(vd_object_name(object), vd_bytes_of("x")));
	assert_true(vd_bytes_equal(vd_object_field(object, 0), vd_bytes_of("n1")));
	assert_true(vd_object_label_get(object, vd_bytes_of("app"), &app) &&
		    vd_bytes_equal(app, vd_bytes_of("web")));
	vd_object_json(object, 42, &json);
	assert_true(vd_bytes_equal(json.piece[1], vd_bytes_of("\"resourceVersion\":\"42\",")));
	vd_object_unref(object);
	vdi_buffer_fini(&buffer);
	vd_codec_free(codec);
}

static void json_values_are_shared_as_before(void **state)
{
	struct vd_codec	 *codec = codec_new();
	struct vd_kv	 *kv = kv_of(vd_bytes_of(POD("web", "n1")));
	struct vd_object *object = NULL;

	(void) state;
	assert_status(vd_object_new(codec, kv, &object, NULL), VD_OK);
	assert_ptr_equal(vd_object_kv(object), kv);
	vd_kv_unref(kv);
	vd_object_unref(object);
	vd_codec_free(codec);
}

static void assert_undecodable(struct vd_codec *codec, struct vd_bytes value, const char *sentence)
{
	struct vd_kv	 *kv = kv_of(value);
	struct vd_object *object = NULL;
	struct vd_error	  error = { 0 };

	assert_status(vd_object_new(codec, kv, &object, &error), VD_UNDECODABLE);
	assert_int_equal(error.code, VD_UNDECODABLE);
	if (strstr(error.message, sentence) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", error.message, sentence);
	vd_kv_unref(kv);
}

static void r221_what_cannot_be_read_says_why(void **state)
{
	struct vd_codec	 *codec = codec_new();
	struct vdi_buffer buffer;
	struct vd_bytes	  value;

	(void) state;
	value = stored(&buffer, "Widget", POD("web", "n1"));
	assert_undecodable(codec, value,
			   "v1 Widget a/x is stored as protobuf, but this kind has no conversion table");
	vdi_buffer_fini(&buffer);
	value = stored(&buffer, "Pod", POD("web", "n1"));
	value.size -= 10;
	assert_undecodable(codec, value,
			   "stored as protobuf: malformed protobuf: the envelope is damaged or truncated");
	vdi_buffer_fini(&buffer);
	assert_undecodable(codec, (struct vd_bytes) { "k8s\0\x0a\xff\x01", 7 },
			   "stored as protobuf: malformed protobuf");
	assert_undecodable(codec, (struct vd_bytes) { "k8s:enc:aescbc:v1:key1:\x01\x02\xff{", 27 },
			   "the value is encrypted (k8s:enc:aescbc:v1:key1:): only a kube-apiserver that has "
			   "the key can read it");
	assert_undecodable(codec, vd_bytes_of("k8s:enc:"), "the value is encrypted (k8s:enc:)");
	/* What is shown is letters, digits, '-' and ':' up to the last colon before any other byte, and never
	 * more than 80 bytes. */
	for (int byte = 0; byte < 256; byte++) {
		char text[] = "k8s:enc:p:v1:k ey:x:", expected[64];
		bool is_shown = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
				(byte >= 'A' && byte <= 'Z') || byte == '-' || byte == ':';

		text[14] = (char) byte;
		if (is_shown)
			snprintf(expected, sizeof expected,
				 "the value is encrypted (k8s:enc:p:v1:k%cey:x:): only", byte);
		else
			strcpy(expected, "the value is encrypted (k8s:enc:p:v1:): only");
		assert_undecodable(codec, vd_bytes_of(text), expected);
	}
	for (size_t colon = 78; colon <= 81; colon++) {
		char text[128], expected[256];

		memset(text, 'x', 100);
		memcpy(text, "k8s:enc:", 8);
		text[colon] = ':';
		text[100] = 0;
		snprintf(expected, sizeof expected, "the value is encrypted (%.*s): only",
			 colon < 80 ? (int) colon + 1 : 8, text);
		assert_undecodable(codec, vd_bytes_of(text), expected);
	}
	vd_codec_free(codec);
}

static void r105_what_is_written_is_json_without_a_revision(void **state)
{
	struct vd_codec	 *codec = codec_new();
	struct vdi_buffer buffer;
	struct vd_kv	 *kv = NULL;
	struct vd_error	  error;

	(void) state;
	assert_status(vdi_revision_cut_kv(codec, pod_key,
					  stored(&buffer, "Pod",
						 "{\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"4\"}}"),
					  false, &kv, NULL),
		      VD_OK);
	assert_value(kv, "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\"},\"spec\":{"
			 "\"containers\":null},\"status\":{}}");
	kv = vd_kv_unref(kv);
	assert_status(vdi_revision_cut_kv(codec, pod_key, vdi_buffer_bytes(&buffer), true, &kv, &error),
		      VD_REVISION_ON_CREATE);
	vdi_buffer_fini(&buffer);
	assert_status(
		vdi_revision_cut_kv(codec, pod_key, stored(&buffer, "Widget", "{}"), false, &kv, &error),
		VD_BAD_REQUEST);
	vdi_buffer_fini(&buffer);
	vd_codec_free(codec);
}

/* ---- Through the layers ---- */

static vd_rev put_stored(struct cacher_fixture *f, const char *json)
{
	struct vdi_buffer buffer;
	vd_rev		  revision = 0;

	assert_status(vd_store_put_wait(f->store, pod_key, stored(&buffer, "Pod", json), &revision, NULL),
		      VD_OK);
	vdi_buffer_fini(&buffer);
	cacher_fixture_settle(f);
	return revision;
}

static void r219_watches_see_protobuf_and_json_alike(void **state)
{
	struct cacher_fixture	f;
	struct vd_watch_options by_app = VD_WATCH_OPTIONS_INIT, by_node = VD_WATCH_OPTIONS_INIT;
	static struct recorder	web, on_n1;

	(void) state;
	cacher_fixture_init(&f, 1);
	put_stored(&f, POD("web", "n1")); /* listed */
	cacher_fixture_open(&f, NULL);
	by_app.label_selector = vd_bytes_of("app=web");
	by_node.field_selector = vd_bytes_of("spec.nodeName=n1");
	web = on_n1 = (struct recorder) { .room = 100 };
	assert_status(recorder_open(&f, &web, &by_app, NULL), VD_OK);
	assert_status(recorder_open(&f, &on_n1, &by_node, NULL), VD_OK);
	cacher_fixture_settle(&f);
	put_stored(&f, POD("web", "n2"));   /* leaves the node: the previous value is protobuf */
	put_pod(&f, "a", "x", "web", "n1"); /* JSON over protobuf */
	put_stored(&f, POD("db", "n1"));    /* protobuf over JSON; leaves the label */
	delete_pod(&f, "a", "x");
	cacher_fixture_settle(&f);
	assert_string_equal(recorder_text(&web), "+a/x@2 ~a/x@3 ~a/x@4 -a/x@5");
	assert_string_equal(recorder_text(&on_n1), "+a/x@2 -a/x@3 +a/x@4 ~a/x@5 -a/x@6");
	recorder_close(&f, &web);
	recorder_close(&f, &on_n1);
	cacher_fixture_teardown(&f);
}

static void r5a1_translated_values_are_no_difference(void **state)
{
	struct cacher_fixture f;

	(void) state;
	cacher_fixture_setup(&f, 2);
	put_stored(&f, POD("web", "n1"));
	vdi_sim_advance(f.env, VD_SECONDS(500));
	assert_true(f.cacher->consistency.counts[VDI_CONSISTENCY_SUCCESS] >= 1);
	assert_int_equal(f.cacher->consistency.counts[VDI_CONSISTENCY_FAILURE], 0);
	cacher_fixture_teardown(&f);
}

struct change {
	const char *value;
	bool	    done;
	vd_rev	    revision;
	char	    text[1024];
};

static vd_status on_update(void *arg, struct vd_object *current, struct vd_bytes *ret_value,
			   int64_t *ret_ttl_s, struct vd_error *reterr)
{
	struct change  *change = arg;
	struct vd_bytes value = vd_kv_value(vd_object_kv(current));

	(void) reterr;
	snprintf(change->text, sizeof change->text, "%.*s", (int) value.size, (const char *) value.data);
	*ret_value = vd_bytes_of(change->value);
	*ret_ttl_s = 0;
	return VD_OK;
}

static void on_object(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
		      const struct vd_error *error)
{
	struct change *change = arg;

	(void) revision;
	if (status != VD_OK)
		fail_msg("%s", error->message);
	change->revision = vd_object_revision(object);
	change->done = true;
}

static bool is_done(void *arg)
{
	return ((struct change *) arg)->done;
}

static vd_rev update(struct cacher_fixture *f, struct vdi_storage *storage, struct change *change,
		     struct vd_object *suggestion, const char *value)
{
	change->value = value;
	change->done = false;
	assert_status(
		vdi_storage_update(storage, pod_key, false, NULL, suggestion, on_update, on_object, change),
		VD_OK);
	assert_true(vdi_sim_run_until(f->env, is_done, change, VD_SECONDS(60)));
	return change->revision;
}

static void r135_an_equal_update_of_protobuf_writes_nothing(void **state)
{
	struct vdi_storage_options options = { .resource = "pods", .key_prefix = "/registry/pods/" };
	struct cacher_fixture	   f;
	struct vdi_storage	  *storage = NULL;
	struct vd_object	  *suggestion = NULL;
	struct vd_kv		  *kv = NULL;
	struct change		   change = { .value = NULL };
	vd_rev			   revision;

	(void) state;
	cacher_fixture_init(&f, 3);
	options.codec = f.codec;
	assert_status(vdi_storage_new(f.env, f.store, &options, &storage, NULL), VD_OK);
	revision = put_stored(&f, POD("web", "n1"));
	assert_int_equal(update(&f, storage, &change, NULL, POD("web", "n1")), revision);
	assert_string_equal(change.text, POD("web", "n1"));
	/* the same, on a suggestion that is the present state */
	assert_status(vd_store_get_wait(f.store, pod_key, &kv, NULL), VD_OK);
	assert_true(vdi_k8s_proto_is(vd_kv_value(kv)));
	assert_status(vd_object_new(f.codec, kv, &suggestion, NULL), VD_OK);
	kv = vd_kv_unref(kv);
	assert_int_equal(update(&f, storage, &change, suggestion, POD("web", "n1")), revision);
	/* a real change is written as JSON, and compares the revision of the protobuf value */
	assert_int_equal(update(&f, storage, &change, suggestion, POD("web", "n2")), revision + 1);
	assert_status(vd_store_get_wait(f.store, pod_key, &kv, NULL), VD_OK);
	assert_value(kv, POD("web", "n2"));
	kv = vd_kv_unref(kv);
	/* the suggestion is stale now */
	revision = put_stored(&f, POD("db", "n1"));
	assert_int_equal(update(&f, storage, &change, suggestion, POD("web", "n1")), revision + 1);
	assert_string_equal(change.text, POD("db", "n1"));
	vd_object_unref(suggestion);
	vdi_storage_free(storage);
	vd_store_close_wait(f.store);
	vd_codec_free(f.codec);
	vd_env_free(f.env);
	assert_int_equal(vdi_alloc_live(), f.live);
}

/* A field is what the object says; without that, or if it is no scalar or empty, its default. */
static void a_field_has_its_default_unless_the_object_says_more(void **state)
{
	static const struct vd_field_spec specs[] = { { "one", ".spec.a", "default" },
						      { "two", ".spec.b", NULL },
						      { "three", ".status.c", "other" } };
	static const struct {
		const char *rest, *a, *b, *c;
	} rows[] = {
		{ "\"spec\":{\"a\":\"x\",\"b\":\"y\"},\"status\":{\"c\":\"z\"}", "x", "y", "z" },
		{ "\"spec\":{},\"status\":{}", "default", "", "other" },
		{ "\"spec\":{\"a\":\"\",\"b\":\"\"}", "default", "", "other" },
		{ "\"spec\":{\"a\":null,\"b\":null},\"status\":null", "default", "", "other" },
		{ "\"spec\":{\"a\":{},\"b\":[]},\"status\":{\"c\":[1]}", "default", "", "other" },
		{ "\"spec\":{\"a\":false,\"b\":true},\"status\":{\"c\":0}", "false", "true", "0" },
		{ "\"spec\":{\"a\":\"\\u0061\",\"b\":-1.5}", "a", "-1.5", "other" },
	};
	struct vd_codec *codec = NULL;

	(void) state;
	assert_status(vd_codec_json_new(specs, VDI_ARRAY_SIZE(specs), &codec, NULL), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		const char	 *expected[] = { rows[i].a, rows[i].b, rows[i].c };
		struct vd_object *object = NULL;
		struct vd_kv	 *kv;
		char		  value[256];

		snprintf(value, sizeof value, "{\"metadata\":{\"name\":\"x\"},%s}", rows[i].rest);
		kv = kv_of(vd_bytes_of(value));
		assert_status(vd_object_new(codec, kv, &object, NULL), VD_OK);
		for (size_t j = 0; j < VDI_ARRAY_SIZE(expected); j++)
			if (!vd_bytes_equal(vd_object_field(object, j), vd_bytes_of(expected[j])))
				fail_msg("row %zu, field %zu: %.*s", i, j,
					 (int) vd_object_field(object, j).size,
					 (const char *) vd_object_field(object, j).data);
		vd_object_unref(object);
		vd_kv_unref(kv);
	}
	vd_codec_free(codec);
}

static void every_failed_allocation_is_reported(void **state)
{
	struct vdi_buffer buffer;
	struct vd_bytes	  value = stored(&buffer, "Pod", POD("web", "n1"));
	int64_t		  live = vdi_alloc_live();

	(void) state;
	for (uint64_t nth = 1;; nth++) {
		struct vd_codec	 *codec = NULL;
		struct vd_object *object = NULL;
		struct vd_kv	 *kv = kv_of(value), *cut = NULL;
		vd_status	  status;
		bool		  failed;

		vdi_alloc_fail_nth(nth, 1);
		status = vd_codec_json_new(fields, VDI_ARRAY_SIZE(fields), &codec, NULL);
		if (status == VD_OK)
			status = vd_object_new(codec, kv, &object, NULL);
		if (status == VD_OK)
			status = vdi_revision_cut_kv(codec, pod_key, value, false, &cut, NULL);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		vd_object_unref(object);
		vd_kv_unref(cut);
		vd_kv_unref(kv);
		vd_codec_free(codec);
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed)
			break;
	}
	vdi_buffer_fini(&buffer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h324_a_stored_protobuf_value_is_an_object),
		cmocka_unit_test(json_values_are_shared_as_before),
		cmocka_unit_test(r221_what_cannot_be_read_says_why),
		cmocka_unit_test(r105_what_is_written_is_json_without_a_revision),
		cmocka_unit_test(r219_watches_see_protobuf_and_json_alike),
		cmocka_unit_test(r5a1_translated_values_are_no_difference),
		cmocka_unit_test(r135_an_equal_update_of_protobuf_writes_nothing),
		cmocka_unit_test(a_field_has_its_default_unless_the_object_says_more),
		cmocka_unit_test(every_failed_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
