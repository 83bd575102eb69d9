/* Unit tests of apiserver/object/protobuf.c: what needs no connection. */
#include "vdtest.h"

#include "protobuf.h"

static const struct vdi_resource pods = {
	.group = "", .version = "v1", .kind = "Pod", .list_kind = "PodList", .plural = "pods"
};
static const struct vdi_resource deployments = {
	.group = "apps", .version = "v1", .kind = "Deployment", .plural = "deployments"
};
static const struct vdi_resource widgets = {
	.group = "example.com", .version = "v1", .kind = "Widget", .plural = "widgets"
};

static void assert_bytes(const struct vdi_buffer *out, const char *bytes, size_t size)
{
	if (out->size != size || memcmp(out->data, bytes, size) != 0) {
		for (size_t i = 0; i < out->size; i++)
			print_message("%02x ", (unsigned char) out->data[i]);
		fail_msg("%zu bytes, expected %zu", out->size, size);
	}
}

static void h306_the_message_of_each_form(void **state)
{
	struct vdi_negotiated object = { .form = VDI_FORM_OBJECT }, metadata = { .form = VDI_FORM_METADATA },
			      beta = { .form = VDI_FORM_METADATA_LIST, .v1beta1 = true };
	struct vdi_protobuf protobuf;

	(void) state;
	vdi_protobuf_init(&protobuf, &deployments, false, &object);
	assert_true(vd_bytes_equal(protobuf.api_version, vd_bytes_of("apps/v1")) &&
		    vd_bytes_equal(protobuf.kind, vd_bytes_of("Deployment")));
	assert_ptr_equal(protobuf.message,
			 vdi_k8s_kind_find(vd_bytes_of("apps/v1"), vd_bytes_of("Deployment")));
	vdi_protobuf_init(&protobuf, &deployments, true, &object);
	assert_true(vd_bytes_equal(protobuf.api_version, vd_bytes_of("autoscaling/v1")) &&
		    vd_bytes_equal(protobuf.kind, vd_bytes_of("Scale")));
	assert_non_null(protobuf.message);
	vdi_protobuf_init(&protobuf, &widgets, false, &object);
	assert_null(protobuf.message);
	vdi_protobuf_init(&protobuf, &widgets, false, &metadata);
	assert_true(vd_bytes_equal(protobuf.api_version, vd_bytes_of("meta.k8s.io/v1")));
	assert_non_null(protobuf.message);
	vdi_protobuf_init(&protobuf, &widgets, false, &beta);
	assert_true(vd_bytes_equal(protobuf.api_version, vd_bytes_of("meta.k8s.io/v1beta1")) &&
		    vd_bytes_equal(protobuf.kind, vd_bytes_of("PartialObjectMetadata")));
	assert_non_null(protobuf.message);
}

/* Byte by byte: length, WatchEvent{1 type, 2 {1 envelope{1 {1 apiVersion, 2 kind}, 2 {1 {1 name, 6
 * resourceVersion}}, 3, 4}}}. */
static void r634_r698_h330_an_event_on_the_wire(void **state)
{
	static const char     expected[] = "\0\0\0\x2b\x0a\x05"
					   "ADDED\x12\x22\x0a\x20"
					   "k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod"
					   "\x12\x0b\x0a\x09\x0a\x03pod\x32\x02"
					   "42\x1a\0\x22";
	struct vdi_negotiated object = { .form = VDI_FORM_OBJECT };
	struct vdi_protobuf   protobuf;
	struct vdi_buffer     out;

	(void) state;
	vdi_protobuf_init(&protobuf, &pods, false, &object);
	vdi_buffer_init(&out, 4096);
	assert_status(vdi_protobuf_event(&out, &protobuf, "ADDED",
					 vd_bytes_of("{\"metadata\":{\"name\":\"pod\"}}"), 42, NULL),
		      VD_OK);
	assert_bytes(&out, expected, sizeof expected); /* the NUL at its end is the last byte */
	vdi_buffer_fini(&out);
}

static void r639_r698_an_error_event_holds_a_status(void **state)
{
	static const char expected[] = "\0\0\0\x3e\x0a\x05"
				       "ERROR\x12\x35\x0a\x33"
				       "k8s\0\x0a\x0c\x0a\x02v1\x12\x06Status\x12\x1b\x0a\0\x12\x07"
				       "Failure\x1a\x02no\x22\x07"
				       "Expired\x30\x9a\x03\x1a\0\x22";
	static const char details[] = "\x22\x08"
				      "Conflict\x2a\x26\x0a\x01"
				      "d\x12\x04"
				      "apps\x1a\x0b"
				      "deployments\x32\x01"
				      "u\x22\x09\x0a\x01"
				      "r\x12\x01"
				      "m\x1a\x01"
				      "f\x28\x01"
				      "\x30\x99\x03";
	struct vdi_buffer out;

	(void) state;
	vdi_buffer_init(&out, 4096);
	assert_status(vdi_protobuf_error_event(
			      &out, vd_bytes_of("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
						"\"status\":\"Failure\",\"message\":\"no\","
						"\"reason\":\"Expired\",\"code\":410}")),
		      VD_OK);
	assert_bytes(&out, expected, sizeof expected);
	/* With all that details can hold. */
	vdi_buffer_clear(&out);
	assert_status(
		vdi_protobuf_error_event(
			&out, vd_bytes_of("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
					  "\"status\":\"Failure\",\"message\":\"no\",\"reason\":\"Conflict\","
					  "\"details\":{\"name\":\"d\",\"group\":\"apps\",\"kind\":"
					  "\"deployments\",\"uid\":\"u\",\"causes\":[{\"reason\":\"r\","
					  "\"message\":\"m\",\"field\":\"f\"}],\"retryAfterSeconds\":1},"
					  "\"code\":409}")),
		VD_OK);
	assert_non_null(memmem(out.data, out.size, details, sizeof details - 1));
	vdi_buffer_fini(&out);
}

static void r637_what_does_not_fit_is_told(void **state)
{
	struct vdi_negotiated object = { .form = VDI_FORM_OBJECT };
	struct vdi_protobuf   protobuf;
	struct vdi_buffer     out;
	struct vd_error	      error = { 0 };

	(void) state;
	vdi_protobuf_init(&protobuf, &pods, false, &object);
	vdi_buffer_init(&out, 4096);
	assert_status(vdi_protobuf_event(&out, &protobuf, "ADDED",
					 vd_bytes_of("{\"metadata\":{},\"spec\":{\"priority\":\"high\"}}"),
					 42, &error),
		      VD_BAD_REQUEST);
	assert_string_equal(error.message, "spec.priority: is not a number");
	vdi_buffer_fini(&out);
	/* metadata of the same object does fit */
	object.form = VDI_FORM_METADATA;
	vdi_protobuf_init(&protobuf, &pods, false, &object);
	assert_status(vdi_protobuf_event(&out, &protobuf, "ADDED",
					 vd_bytes_of("{\"metadata\":{},\"spec\":{\"priority\":\"high\"}}"),
					 42, NULL),
		      VD_OK);
	vdi_buffer_fini(&out);
}

static void every_failed_allocation_is_reported(void **state)
{
	struct vdi_negotiated object = { .form = VDI_FORM_OBJECT };
	struct vdi_protobuf   protobuf;
	char		     *json = malloc(8192);
	int64_t		      live = vdi_alloc_live();
	size_t		      size =
		(size_t) snprintf(json, 8192, "{\"metadata\":{\"name\":\"pod\",\"annotations\":{\"a\":\"");

	(void) state;
	memset(json + size, 'x', 4000);
	strcpy(json + size + 4000, "\"}}}");
	vdi_protobuf_init(&protobuf, &pods, false, &object);
	for (uint64_t nth = 1;; nth++) {
		struct vdi_buffer out;
		vd_status	  status;
		bool		  failed;

		vdi_buffer_init(&out, 1 << 20);
		vdi_alloc_fail_nth(nth, 1);
		status = vdi_protobuf_event(&out, &protobuf, "MODIFIED", vd_bytes_of(json), 7, NULL);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		vdi_buffer_fini(&out);
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed)
			break;
	}
	free(json);
}

/* A body becomes the JSON that it means, or an answer that says why not. */
static void a_body_becomes_the_json_that_it_means(void **state)
{
	static const char text[] = "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"}}";
	struct vdi_negotiated  object = { .form = VDI_FORM_OBJECT };
	struct vdi_http_status status = { 0 };
	struct vdi_protobuf    protobuf;
	struct vdi_buffer      body, json;
	struct vdi_tree	       tree = VDI_TREE_INIT;
	struct vdi_node	      *root;
	bool		       failed = true;

	vdi_protobuf_init(&protobuf, &pods, false, &object);
	vdi_buffer_init(&body, 4096);
	assert_status(vdi_protobuf_write_enveloped(&body, &protobuf, vd_bytes_of(text), 0, NULL), VD_OK);
	for (uint64_t nth = 1; failed; nth++) {
		vd_status result;

		status = (struct vdi_http_status) { 0 };
		vdi_buffer_init(&json, 4096);
		vdi_alloc_fail_nth(nth, 1);
		result = vdi_protobuf_decode(vdi_buffer_bytes(&body), &json, &status);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(result, failed ? VD_NOMEM : VD_OK);
		assert_int_equal(status.code, failed ? 500 : 0);
		if (failed)
			vdi_buffer_fini(&json);
	}
	assert_status(vdi_tree_parse(&tree, vdi_buffer_bytes(&json), &root, NULL), VD_OK);
	assert_true(
		vd_bytes_equal(vdi_tree_string_of(vdi_tree_find(&tree, root, "kind")), vd_bytes_of("Pod")));
	assert_true(vd_bytes_equal(vdi_tree_string_of(vdi_tree_find(&tree, root, "metadata.name")),
				   vd_bytes_of("a")));
	vdi_tree_fini(&tree);
	vdi_buffer_fini(&json);
	/* Damaged, of a kind without a table, larger than may be. */
	vdi_buffer_init(&json, 4096);
	assert_status(vdi_protobuf_decode((struct vd_bytes) { body.data, body.size / 2 }, &json, &status),
		      VD_INVALID);
	assert_int_equal(status.code, 400);
	assert_memory_equal(status.message, "the body cannot be read: ", 25);
	vdi_buffer_clear(&body);
	protobuf.kind = vd_bytes_of("Widget");
	assert_status(vdi_protobuf_write_enveloped(&body, &protobuf, vd_bytes_of(text), 0, NULL), VD_OK);
	assert_status(vdi_protobuf_decode(vdi_buffer_bytes(&body), &json, &status), VD_INVALID);
	assert_int_equal(status.code, 400);
	assert_string_equal(status.reason, "BadRequest");
	assert_non_null(strstr(status.message, "Widget"));
	vdi_buffer_fini(&json);
	vdi_buffer_clear(&body);
	protobuf.kind = vd_bytes_of("Pod");
	assert_status(vdi_protobuf_write_enveloped(&body, &protobuf, vd_bytes_of(text), 0, NULL), VD_OK);
	vdi_buffer_init(&json, 10);
	assert_status(vdi_protobuf_decode(vdi_buffer_bytes(&body), &json, &status), VD_INVALID);
	assert_int_equal(status.code, 413);
	vdi_buffer_fini(&json);
	vdi_buffer_fini(&body);
}

/* The lengths around an object have one byte or two, as it is long. */
static void lengths_of_events_grow_with_the_object(void **state)
{
	struct vdi_negotiated object = { .form = VDI_FORM_OBJECT };
	struct vdi_protobuf   protobuf;

	vdi_protobuf_init(&protobuf, &pods, false, &object);
	for (int name = 1; name < 400; name++) {
		struct vdi_buffer out, raw, inner, expected;
		char		  json[500];

		vdi_buffer_init(&out, 4096);
		vdi_buffer_init(&raw, 4096);
		vdi_buffer_init(&inner, 4096);
		vdi_buffer_init(&expected, 4096);
		(void) snprintf(json, sizeof json, "{\"metadata\":{\"name\":\"%0*d\"}}", name, 7);
		vdi_buffer_append(&out, vd_bytes_of("before"));
		assert_status(vdi_protobuf_event(&out, &protobuf, "ADDED", vd_bytes_of(json), 42, NULL),
			      VD_OK);
		assert_status(vdi_protobuf_write_enveloped(&raw, &protobuf, vd_bytes_of(json), 42, NULL),
			      VD_OK);
		vdi_k8s_proto_bytes(&inner, 1, vdi_buffer_bytes(&raw));
		vdi_buffer_append(&expected, vd_bytes_of("before"));
		vdi_buffer_append(&expected, (struct vd_bytes) { "\0\0", 2 });
		vdi_buffer_append(&expected, (struct vd_bytes) { "\0\0", 2 });
		vdi_k8s_proto_bytes(&expected, 1, vd_bytes_of("ADDED"));
		vdi_k8s_proto_bytes(&expected, 2, vdi_buffer_bytes(&inner));
		expected.data[8] = (char) ((expected.size - 10) >> 8);
		expected.data[9] = (char) ((expected.size - 10) & 255);
		assert_bytes(&out, expected.data, expected.size);
		vdi_buffer_fini(&out);
		vdi_buffer_fini(&raw);
		vdi_buffer_fini(&inner);
		vdi_buffer_fini(&expected);
	}
}

/* A revision replaces the object's own; without one, the object keeps its own. */
static void a_revision_of_zero_changes_nothing(void **state)
{
	static const struct {
		const char *revision;
		vd_rev	    given;
		const char *expected;
	} rows[] = { { "7", 0, "7" }, { "7", 1, "1" }, { "7", 42, "42" }, { "", 0, "" } };
	struct vdi_negotiated object = { .form = VDI_FORM_OBJECT };
	struct vdi_protobuf   protobuf;

	vdi_protobuf_init(&protobuf, &pods, false, &object);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_buffer out, expected;
		char		  json[100];

		vdi_buffer_init(&out, 4096);
		vdi_buffer_init(&expected, 4096);
		(void) snprintf(json, sizeof json, "{\"metadata\":{\"resourceVersion\":\"%s\"}}",
				rows[i].revision);
		assert_status(vdi_protobuf_write(&out, &protobuf, vd_bytes_of(json), rows[i].given, NULL),
			      VD_OK);
		(void) snprintf(json, sizeof json, "{\"metadata\":{\"resourceVersion\":\"%s\"}}",
				rows[i].expected);
		assert_status(vdi_protobuf_write(&expected, &protobuf, vd_bytes_of(json), 0, NULL), VD_OK);
		assert_bytes(&out, expected.data, expected.size);
		if (*rows[i].expected)
			assert_non_null(
				memmem(out.data, out.size, rows[i].expected, strlen(rows[i].expected)));
		vdi_buffer_fini(&out);
		vdi_buffer_fini(&expected);
	}
}

static void kinds_with_a_table_are_known(void **state)
{
	assert_true(vdi_protobuf_supports(&pods));
	assert_true(vdi_protobuf_supports(&deployments));
	assert_false(vdi_protobuf_supports(&widgets));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_with_a_table_are_known),
		cmocka_unit_test(lengths_of_events_grow_with_the_object),
		cmocka_unit_test(a_revision_of_zero_changes_nothing),
		cmocka_unit_test(a_body_becomes_the_json_that_it_means),
		cmocka_unit_test(h306_the_message_of_each_form),
		cmocka_unit_test(r634_r698_h330_an_event_on_the_wire),
		cmocka_unit_test(r639_r698_an_error_event_holds_a_status),
		cmocka_unit_test(r637_what_does_not_fit_is_told),
		cmocka_unit_test(every_failed_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
