/* Unit tests of storage/codec/k8s_proto_decode.c, k8s_proto_encode.c and k8s_proto_table.c. The vectors were
 * made by Go's own libraries. */
#include "vdtest.h"

#include "base64.h"
#include "json_scan.h"
#include "k8s_proto.h"

#define SIZE_MAX_TEST ((size_t) 1 << 20)

static const struct {
	const char *kind, *proto, *json;
} vectors[] = {
#define VECTOR(kind, proto, json) { kind, proto, json },
#include "k8s_proto_vectors.def"
#undef VECTOR
};

static struct vd_bytes decoded(const char *base64)
{
	size_t size = 0;
	char  *bytes = malloc(VDI_BASE64_DECODED_MAX(strlen(base64)));

	assert_status(vdi_base64_decode(VDI_BASE64_STANDARD, vd_bytes_of(base64), bytes, &size, NULL), VD_OK);
	return (struct vd_bytes) { realloc(bytes, size), size }; /* exact, so that a read too far is caught */
}

static vd_status to_json(struct vd_bytes proto, struct vdi_buffer *out, struct vd_error *error)
{
	struct vd_error unused;

	vdi_buffer_clear(out);
	return vdi_k8s_proto_to_json(proto, out, error ? error : &unused);
}

static void assert_text(const struct vdi_buffer *out, const char *text)
{
	if (out->size != strlen(text) || memcmp(out->data, text, out->size) != 0)
		fail_msg("\n got %.*s\nwant %s", (int) out->size, out->data, text);
}

static const struct vdi_k8s_message *message_of(const char *api_version, const char *kind)
{
	const struct vdi_k8s_message *message =
		vdi_k8s_kind_find(vd_bytes_of(api_version), vd_bytes_of(kind));

	assert_non_null(message);
	return message;
}

/* An envelope around raw. */
static void wrap(struct vdi_buffer *out, const char *api_version, const char *kind,
		 const struct vdi_buffer *raw)
{
	size_t mark;

	vdi_buffer_clear(out);
	mark = vdi_k8s_proto_envelope_begin(out, vd_bytes_of(api_version), vd_bytes_of(kind));
	vdi_buffer_append(out, vdi_buffer_bytes(raw));
	vdi_k8s_proto_envelope_end(out, mark);
	assert_status(vdi_buffer_status(out), VD_OK);
}

struct buffers {
	struct vdi_buffer raw, proto, json;
};

static int setup(void **state)
{
	struct buffers *buffers = calloc(1, sizeof *buffers);

	vdi_buffer_init(&buffers->raw, SIZE_MAX_TEST);
	vdi_buffer_init(&buffers->proto, SIZE_MAX_TEST);
	vdi_buffer_init(&buffers->json, SIZE_MAX_TEST);
	*state = buffers;
	return 0;
}

static int teardown(void **state)
{
	struct buffers *buffers = *state;

	vdi_buffer_fini(&buffers->raw);
	vdi_buffer_fini(&buffers->proto);
	vdi_buffer_fini(&buffers->json);
	free(buffers);
	return 0;
}

/* rules: H-326 */
static void h327_json_is_what_go_writes(void **state)
{
	struct buffers *b = *state;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(vectors); i++) {
		struct vd_bytes proto = decoded(vectors[i].proto);

		assert_status(to_json(proto, &b->json, NULL), VD_OK);
		assert_text(&b->json, vectors[i].json);
		assert_status(vdi_json_validate(vdi_buffer_bytes(&b->json), NULL, NULL), VD_OK);
		free((void *) (uintptr_t) proto.data);
	}
}

static void h328_there_and_back_again(void **state)
{
	struct buffers *b = *state;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(vectors); i++) {
		const char *space = strchr(vectors[i].kind, ' ');
		char	    api_version[64];

		snprintf(api_version, sizeof api_version, "%.*s", (int) (space - vectors[i].kind),
			 vectors[i].kind);
		vdi_buffer_clear(&b->raw);
		assert_status(vdi_k8s_proto_from_json(message_of(api_version, space + 1),
						      vd_bytes_of(vectors[i].json), NULL, &b->raw, NULL),
			      VD_OK);
		wrap(&b->proto, api_version, space + 1, &b->raw);
		assert_status(to_json(vdi_buffer_bytes(&b->proto), &b->json, NULL), VD_OK);
		assert_text(&b->json, vectors[i].json);
	}
}

static void h329_cut_off_bytes_are_errors_or_another_object(void **state)
{
	struct buffers *b = *state;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(vectors); i++) {
		struct vd_bytes whole = decoded(vectors[i].proto);

		for (size_t size = 0; size < whole.size; size++) {
			char	       *copy = malloc(size ? size : 1);
			struct vd_error error = { 0 };

			memcpy(copy, whole.data, size);
			if (to_json((struct vd_bytes) { copy, size }, &b->json, &error) == VD_OK)
				assert_status(vdi_json_validate(vdi_buffer_bytes(&b->json), NULL, NULL),
					      VD_OK); /* the ends of the envelope are optional */
			else {
				assert_int_equal(b->json.size, 0);
				assert_true(error.message[0]);
			}
			free(copy);
		}
		free((void *) (uintptr_t) whole.data);
	}
}

static void r697_h325_envelopes_are_checked(void **state)
{
	struct buffers	       *b = *state;
	struct vdi_k8s_envelope envelope;
	struct vd_error		error;

	assert_false(vdi_k8s_proto_is(vd_bytes_of("k8s")));
	assert_false(vdi_k8s_proto_is(vd_bytes_of("{}")));
	assert_true(vdi_k8s_proto_is((struct vd_bytes) { "k8s\0", 4 }));
	assert_status(vdi_k8s_proto_open(VD_BYTES_NONE, &envelope, &error), VD_BAD_REQUEST);
	assert_status(vdi_k8s_proto_open(vd_bytes_of("{\"kind\":1}"), &envelope, &error), VD_BAD_REQUEST);
	/* nothing in it: an object of no kind */
	assert_status(to_json((struct vd_bytes) { "k8s\0", 4 }, &b->json, &error), VD_UNSUPPORTED);
	/* content in another encoding */
	assert_status(to_json((struct vd_bytes) { "k8s\0\x1a\x04gzip", 10 }, &b->json, &error),
		      VD_BAD_REQUEST);
	assert_non_null(strstr(error.message, "gzip"));
	assert_status(to_json((struct vd_bytes) { "k8s\0\x22\x03"
						  "a/b",
						  9 },
			      &b->json, &error),
		      VD_BAD_REQUEST);
	assert_status(to_json((struct vd_bytes) { "k8s\0\x08\x01", 6 }, &b->json, &error), VD_BAD_REQUEST);
}

static void h324_a_kind_without_a_table_is_named(void **state)
{
	struct buffers *b = *state;
	struct vd_error error;
	struct vd_bytes name, namespace_name;
	size_t		mark = vdi_k8s_proto_begin(&b->raw, 1);

	vdi_k8s_proto_bytes(&b->raw, 1, vd_bytes_of("n"));
	vdi_k8s_proto_bytes(&b->raw, 3, vd_bytes_of("ns"));
	vdi_k8s_proto_end(&b->raw, mark);
	wrap(&b->proto, "example.com/v1", "Widget", &b->raw);
	assert_status(to_json(vdi_buffer_bytes(&b->proto), &b->json, &error), VD_UNSUPPORTED);
	assert_non_null(strstr(error.message, "Widget"));
	assert_non_null(strstr(error.message, "example.com/v1"));
	/* metadata is field 1 of every object */
	vdi_k8s_proto_names(vdi_buffer_bytes(&b->raw), &name, &namespace_name);
	assert_true(vd_bytes_equal(name, vd_bytes_of("n")));
	assert_true(vd_bytes_equal(namespace_name, vd_bytes_of("ns")));
	vdi_k8s_proto_names(vd_bytes_of("\x0a\xff"), &name, &namespace_name);
	assert_int_equal(name.size + namespace_name.size, 0);
}

static void h323_delete_options_of_every_group(void **state)
{
	struct buffers *b = *state;

	(void) state;
	vdi_k8s_proto_varint(&b->raw, 1, 0);
	vdi_k8s_proto_bytes(&b->raw, 4, vd_bytes_of("Background"));
	wrap(&b->proto, "apps/v1", "DeleteOptions", &b->raw);
	assert_status(to_json(vdi_buffer_bytes(&b->proto), &b->json, NULL), VD_OK);
	assert_text(&b->json, "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"apps/"
			      "v1\",\"gracePeriodSeconds\":0,\"propagationPolicy\":\"Background\"}");
}

static void namespace_of(struct buffers *b, const char *raw, size_t size)
{
	vdi_buffer_clear(&b->raw);
	vdi_buffer_append(&b->raw, (struct vd_bytes) { raw, size });
	wrap(&b->proto, "v1", "Namespace", &b->raw);
}
#define NAMESPACE(b, literal) namespace_of(b, literal, sizeof(literal) - 1)
#define HEAD "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{"
#define TAIL "},\"spec\":{},\"status\":{}}"

static void h329_unknown_fields_are_skipped(void **state)
{
	struct buffers *b = *state;

	/* a varint, 8 bytes, bytes, a group with a group and bytes in it, 4 bytes; then metadata {1 "a"}, and
	 * inside of it a number 99 */
	NAMESPACE(b, "\x50\x01\x51\x01\x02\x03\x04\x05\x06\x07\x08\x52\x02zz\x53\x5b\x08\x01\x12\x01x\x5c\x54"
		     "\x55\x01\x02\x03\x04"
		     "\x0a\x06\x0a\x01"
		     "a\x98\x06\x01");
	assert_status(to_json(vdi_buffer_bytes(&b->proto), &b->json, NULL), VD_OK);
	assert_text(&b->json, HEAD "\"name\":\"a\"" TAIL);
}

static void h329_what_is_no_message_is_an_error(void **state)
{
	static const struct {
		const char *bytes;
		size_t	    size;
		const char *why;
	} rows[] = {
		{ "\x08\x01", 2, "metadata" },		 /* a number where a message belongs */
		{ "\x0a\x02\x08\x01", 4, "name" },	 /* a number where a string belongs */
		{ "\x0a\x02\x3a\x00", 4, "generation" }, /* bytes where a number belongs */
		{ "\x0a\x05\x0a\x01", 4, "truncated" },	 /* longer than there is */
		{ "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11, "truncated" },
		{ "\x02\x00", 2, "truncated" },				/* field number 0 */
		{ "\x0e", 1, "truncated" },				/* wire type 6 */
		{ "\x0c", 1, "truncated" },				/* the end of no group */
		{ "\x55\x01\x02\x03", 4, "truncated" },			/* 4 bytes that are 3 */
		{ "\x51\x01\x02\x03\x04\x05\x06\x07", 8, "truncated" }, /* 8 that are 7 */
		{ "\x53\x08", 2, "truncated" },				/* a group without end */
		{ "\x0a\x04\x0a\x02\xc0\x80", 6, "UTF-8" },		/* overlong */
		{ "\x0a\x05\x0a\x03\xed\xa0\x80", 7, "UTF-8" },		/* a surrogate */
		{ "\x0a\x03\x0a\x01\xff", 5, "UTF-8" },
		{ "\x0a\x04\x5a\x02\x08\x01", 6, "map" }, /* a label that is a number */
		{ "\x0a\x04\x42\x02\x0a\x00", 6, "time" },
		{ "\x0a\x0d\x42\x0b\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x10\x00", 15, "year" },
	};
	struct buffers *b = *state;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_error error = { 0 };

		namespace_of(b, rows[i].bytes, rows[i].size);
		if (to_json(vdi_buffer_bytes(&b->proto), &b->json, &error) != VD_BAD_REQUEST ||
		    strstr(error.message, rows[i].why) == NULL)
			fail_msg("row %zu: %.*s %s", i, (int) b->json.size, b->json.data ? b->json.data : "",
				 error.message);
		assert_int_equal(b->json.size, 0);
	}
}

static void h329_order_and_repetition_do_not_matter(void **state)
{
	struct buffers *b = *state;

	/* spec before metadata; metadata in two parts, the later one wins where both speak; finalizers apart
	 * from each other */
	NAMESPACE(b, "\x12\x03\x0a\x01x"
		     "\x0a\x0b\x0a\x01"
		     "a\x72\x01"
		     "f\x12\x01"
		     "g\x72\x00"
		     "\x12\x03\x0a\x01y"
		     "\x0a\x06\x72\x01h\x0a\x01"
		     "b");
	assert_status(to_json(vdi_buffer_bytes(&b->proto), &b->json, NULL), VD_OK);
	assert_text(&b->json, HEAD "\"name\":\"b\",\"generateName\":\"g\",\"finalizers\":[\"f\",\"\",\"h\"]},"
				   "\"spec\":{\"finalizers\":[\"x\",\"y\"]},\"status\":{}}");
	/* a map whose keys are not in order, one of them twice */
	NAMESPACE(b, "\x0a\x1d\x5a\x06\x0a\x01z\x12\x01"
		     "1\x5a\x06\x0a\x01"
		     "a\x12\x01"
		     "1\x5a\x06\x0a\x01z\x12\x01"
		     "2\x5a\x03\x0a\x01k");
	assert_status(to_json(vdi_buffer_bytes(&b->proto), &b->json, NULL), VD_OK);
	assert_text(&b->json, HEAD "\"labels\":{\"a\":\"1\",\"k\":\"\",\"z\":\"2\"}" TAIL);
}

static void h327_numbers_may_come_packed(void **state)
{
	struct buffers *b = *state;
	size_t		spec, security;

	/* spec.securityContext.supplementalGroups: 1, then 2 and 300 packed */
	spec = vdi_k8s_proto_begin(&b->raw, 2);
	security = vdi_k8s_proto_begin(&b->raw, 14);
	vdi_k8s_proto_varint(&b->raw, 4, 1);
	vdi_k8s_proto_bytes(&b->raw, 4, (struct vd_bytes) { "\x02\xac\x02", 3 });
	vdi_k8s_proto_end(&b->raw, security);
	vdi_k8s_proto_end(&b->raw, spec);
	wrap(&b->proto, "v1", "Pod", &b->raw);
	assert_status(to_json(vdi_buffer_bytes(&b->proto), &b->json, NULL), VD_OK);
	assert_text(&b->json,
		    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{},\"spec\":{\"containers\":null,"
		    "\"securityContext\":{\"supplementalGroups\":[1,2,300]}},\"status\":{}}");
}

/* A map whose values are lists of strings: CertificateSigningRequest.spec.extra. */
static void h327_lists_of_strings(void **state)
{
	static const char *const lists[] = { "\"a\":[]", "\"a\":[\"x\"]",
					     "\"a\":[\"x\",\"\",\"y,z\"],\"b\":[\"\"]" };
	struct buffers		*b = *state;
	struct vd_error		 error;
	char			 json[512];
	size_t			 spec, extra, value;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(lists); i++) {
		char expected[64];

		(void) snprintf(json, sizeof json,
				"{\"kind\":\"CertificateSigningRequest\",\"apiVersion\":\"certificates.k8s."
				"io/v1\",\"metadata\":{},\"spec\":{\"request\":\"YQ==\","
				"\"signerName\":\"s\",\"extra\":{%s}}}",
				lists[i]);
		vdi_buffer_clear(&b->raw);
		assert_status(vdi_k8s_proto_from_json(
				      message_of("certificates.k8s.io/v1", "CertificateSigningRequest"),
				      vd_bytes_of(json), NULL, &b->raw, NULL),
			      VD_OK);
		wrap(&b->proto, "certificates.k8s.io/v1", "CertificateSigningRequest", &b->raw);
		assert_status(to_json(vdi_buffer_bytes(&b->proto), &b->json, &error), VD_OK);
		(void) snprintf(expected, sizeof expected, "\"extra\":{%s}", lists[i]);
		if (memmem(b->json.data, b->json.size, expected, strlen(expected)) == NULL)
			fail_msg("no %s in %.*s", expected, (int) b->json.size, b->json.data);
	}
	/* what is not known inside is skipped; what is no list is refused */
	for (int is_bad = 0; is_bad < 3; is_bad++) {
		vdi_buffer_clear(&b->raw);
		spec = vdi_k8s_proto_begin(&b->raw, 2);
		extra = vdi_k8s_proto_begin(&b->raw, 6);
		vdi_k8s_proto_bytes(&b->raw, 1, vd_bytes_of("k"));
		value = vdi_k8s_proto_begin(&b->raw, 2);
		vdi_k8s_proto_bytes(&b->raw, 1, vd_bytes_of("v"));
		vdi_k8s_proto_varint(&b->raw, is_bad == 1 ? 1 : 7, 5);
		if (is_bad == 2)
			vdi_buffer_append(&b->raw, (struct vd_bytes) { "\x0a\x09", 2 });
		vdi_k8s_proto_bytes(&b->raw, 1, vd_bytes_of("w"));
		vdi_k8s_proto_end(&b->raw, value);
		vdi_k8s_proto_end(&b->raw, extra);
		vdi_k8s_proto_end(&b->raw, spec);
		wrap(&b->proto, "certificates.k8s.io/v1", "CertificateSigningRequest", &b->raw);
		assert_status(to_json(vdi_buffer_bytes(&b->proto), &b->json, &error),
			      is_bad ? VD_BAD_REQUEST : VD_OK);
		if (is_bad)
			assert_non_null(strstr(error.message, "a list of strings is not a message"));
		else
			assert_non_null(
				memmem(b->json.data, b->json.size, "\"extra\":{\"k\":[\"v\",\"w\"]}", 23));
	}
}

/* ControllerRevision.data: 2 {1 raw} */
static vd_status revision_data(struct buffers *b, struct vd_bytes data, struct vd_error *error)
{
	size_t mark;

	vdi_buffer_clear(&b->raw);
	mark = vdi_k8s_proto_begin(&b->raw, 2);
	vdi_k8s_proto_bytes(&b->raw, 1, data);
	vdi_k8s_proto_end(&b->raw, mark);
	wrap(&b->proto, "apps/v1", "ControllerRevision", &b->raw);
	return to_json(vdi_buffer_bytes(&b->proto), &b->json, error);
}

static void h327_json_inside_is_checked(void **state)
{
	static const char *const refused[] = { "{},\"x\":{}", "{", "1 2", "{\"a\":1}}", "\xff", "[1,]" };
	struct buffers		*b = *state;
	struct vd_error		 error;
	struct vdi_buffer	 inner;

	assert_status(revision_data(b, vd_bytes_of(" { \"a\" : [ 1 ] } "), &error), VD_OK);
	assert_non_null(memmem(b->json.data, b->json.size, ",\"data\":{\"a\":[1]},", 18));
	for (size_t i = 0; i < VDI_ARRAY_SIZE(refused); i++)
		assert_status(revision_data(b, vd_bytes_of(refused[i]), &error), VD_BAD_REQUEST);
	/* an enveloped object there becomes one, too */
	vdi_buffer_init(&inner, SIZE_MAX_TEST);
	vdi_buffer_append(&inner, (struct vd_bytes) { "k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace", 21 });
	assert_status(revision_data(b, vdi_buffer_bytes(&inner), &error), VD_OK);
	assert_non_null(memmem(b->json.data, b->json.size, ",\"data\":{\"kind\":\"Namespace\"", 26));
	/* without end */
	for (int i = 0; i < 100; i++) {
		vdi_buffer_clear(&inner);
		vdi_buffer_append(&inner, vdi_buffer_bytes(&b->proto));
		if (revision_data(b, vdi_buffer_bytes(&inner), &error) != VD_OK)
			break;
	}
	assert_non_null(strstr(error.message, "nested too deeply"));
	vdi_buffer_fini(&inner);
}

static void bounded_output(void **state)
{
	struct buffers	 *b = *state;
	struct vdi_buffer small;
	struct vd_error	  error = { 0 };
	size_t		  spec = vdi_k8s_proto_begin(&b->raw, 2);

	for (int i = 0; i < 1000; i++) /* two bytes here, thirty there */
		vdi_k8s_proto_bytes(&b->raw, 2, VD_BYTES_NONE);
	vdi_k8s_proto_end(&b->raw, spec);
	wrap(&b->proto, "v1", "Pod", &b->raw);
	vdi_buffer_init(&small, 10000);
	vdi_buffer_append_text(&small, "kept");
	assert_status(vdi_k8s_proto_to_json(vdi_buffer_bytes(&b->proto), &small, &error), VD_TOO_BIG);
	assert_int_equal(error.code, VD_TOO_BIG);
	assert_int_equal(small.size, 4);
	vdi_buffer_fini(&small);
}

struct unknown {
	char   text[256];
	size_t count;
};

static void note_unknown(void *arg, struct vd_bytes path)
{
	struct unknown *unknown = arg;

	unknown->count++;
	snprintf(unknown->text + strlen(unknown->text), sizeof unknown->text - strlen(unknown->text), "%.*s;",
		 (int) path.size, (const char *) path.data);
}

static void h328_unknown_members_are_told_and_left_out(void **state)
{
	struct buffers		    *b = *state;
	struct unknown		     unknown = { "", 0 };
	struct vdi_k8s_proto_options options = { .unknown = note_unknown, .arg = &unknown };
	const char *json = "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"x\":{\"y\":[1,{\"z\":\"}\"}]},"
			   "\"metadata\":{\"name\":\"a\",\"nam\":1},"
			   "\"spec\":{\"containers\":[{\"name\":\"c\"},{\"comand\":[\"a\"],\"name\":\"d\"}],"
			   "\"volumes\":[{\"emptyDir\":{},\"nfs2\":null,\"name\":\"v\"}]}}";

	assert_status(
		vdi_k8s_proto_from_json(message_of("v1", "Pod"), vd_bytes_of(json), &options, &b->raw, NULL),
		VD_OK);
	assert_string_equal(unknown.text, "x;metadata.nam;spec.containers[1].comand;spec.volumes[0].nfs2;");
	wrap(&b->proto, "v1", "Pod", &b->raw);
	assert_status(to_json(vdi_buffer_bytes(&b->proto), &b->json, NULL), VD_OK);
	/* the inlined member (emptyDir) and the plain one (name) come out together, wherever they stood */
	assert_text(&b->json, "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"},"
			      "\"spec\":{\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}}],"
			      "\"containers\":[{\"name\":\"c\",\"resources\":{}},{\"name\":\"d\","
			      "\"resources\":{}}]},\"status\":{}}");
}

static void h328_wrong_types_are_errors_with_their_place(void **state)
{
	static const struct {
		const char *json, *error;
	} rows[] = {
		{ "{\"metadata\":{\"name\":1}}", "metadata.name: is not a string" },
		{ "{\"metadata\":[]}", "metadata: is not an object" },
		{ "{\"metadata\":{\"labels\":{\"a\":1}}}", "metadata.labels.a: is not a string" },
		{ "{\"metadata\":{\"labels\":[]}}", "metadata.labels: is not an object" },
		{ "{\"metadata\":{\"creationTimestamp\":\"yesterday\"}}",
		  "metadata.creationTimestamp: is not a time (RFC 3339)" },
		{ "{\"metadata\":{\"generation\":1.5}}", "metadata.generation: is not a whole number" },
		{ "{\"metadata\":{\"generation\":9223372036854775808}}",
		  "metadata.generation: is out of range" },
		{ "{\"spec\":{\"priority\":2147483648}}", "spec.priority: is out of range" },
		{ "{\"spec\":{\"priority\":\"1\"}}", "spec.priority: is not a number" },
		{ "{\"spec\":{\"hostNetwork\":1}}", "spec.hostNetwork: is neither true nor false" },
		{ "{\"spec\":{\"containers\":[{\"name\":\"a\"},{\"ports\":{}}]}}",
		  "spec.containers[1].ports: is not a list" },
		{ "{\"spec\":{\"overhead\":{\"cpu\":true}}}", "spec.overhead.cpu: is not a quantity" },
		{ "{\"spec\":{\"overhead\":{\"cpu\":\"\"}}}", "spec.overhead.cpu: is not a quantity" },
		{ "{\"spec\":{\"containers\":[{\"readinessProbe\":{\"httpGet\":{\"port\":1.5}}}]}}",
		  "spec.containers[0].readinessProbe.httpGet.port: is not a whole number" },
		{ "[]", ": is not an object" },
		{ "{\"metadata\"", ": is not JSON" },
		{ "{} {}", "unexpected text after the object" },
	};
	struct buffers *b = *state;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_error error = { 0 };

		assert_status(vdi_k8s_proto_from_json(message_of("v1", "Pod"), vd_bytes_of(rows[i].json),
						      NULL, &b->raw, &error),
			      VD_BAD_REQUEST);
		assert_string_equal(error.message, rows[i].error);
		assert_int_equal(b->raw.size, 0);
	}
}

/* A place that is too long to be shown is cut before what is not ASCII. More JSON than an object may have is
 * refused unread. */
static void h328_long_places_and_long_objects(void **state)
{
	struct buffers *b = *state;

	for (size_t before = 0; before < 3; before++) {
		char		json[4096], *at = json;
		struct vd_error error = { 0 };
		const char     *end;

		at += sprintf(at, "{\"metadata\":{\"labels\":{\"%.*s", (int) before, "xxx");
		for (int i = 0; i < 900; i++)
			at += sprintf(at, "\xe2\x82\xac");
		sprintf(at, "\":1}}}");
		assert_status(vdi_k8s_proto_from_json(message_of("v1", "Pod"), vd_bytes_of(json), NULL,
						      &b->raw, &error),
			      VD_BAD_REQUEST);
		assert_memory_equal(error.message, "metadata.labels.", 16);
		end = strstr(error.message, ": is not a string");
		assert_non_null(end);
		assert_int_equal(end - error.message,
				 16 + before); /* no part of a character, so none of those at its end */
	}
	{
		struct vd_error error = { 0 };

		assert_status(vdi_k8s_proto_from_json(message_of("v1", "Pod"),
						      (struct vd_bytes) { "{}", VDI_K8S_PROTO_SIZE_MAX + 1 },
						      NULL, &b->raw, &error),
			      VD_TOO_BIG);
		assert_status(error.code, VD_TOO_BIG);
		assert_int_equal(b->raw.size, 0);
	}
}

static void h327_forms_that_only_json_has(void **state)
{
	struct buffers *b = *state;
	const char     *json = "{\"metadata\":{\"creationTimestamp\":\"2026-01-02T03:04:05.678+01:00\","
			       "\"labels\":null,\"n\\u0061me\":\"\\u00e4\\n\"},"
			       "\"spec\":{\"overhead\":{\"cpu\":2,\"memory\":\"1Gi\"},\"containers\":[null,{"
			       "\"livenessProbe\":{\"tcpSocket\":{\"port\":\"http\"}}}],"
			       "\"priority\":-5,\"activeDeadlineSeconds\":-9223372036854775808}}";

	assert_status(
		vdi_k8s_proto_from_json(message_of("v1", "Pod"), vd_bytes_of(json), NULL, &b->raw, NULL),
		VD_OK);
	wrap(&b->proto, "v1", "Pod", &b->raw);
	assert_status(to_json(vdi_buffer_bytes(&b->proto), &b->json, NULL), VD_OK);
	assert_text(
		&b->json,
		"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"\xc3\xa4\\n\","
		"\"creationTimestamp\":\"2026-01-02T02:04:05Z\"},"
		"\"spec\":{\"containers\":[{\"name\":\"\",\"resources\":{}},{\"name\":\"\",\"resources\":{},"
		"\"livenessProbe\":{\"tcpSocket\":{\"port\":\"http\"}}}],\"activeDeadlineSeconds\":-"
		"9223372036854775808,\"priority\":-5,"
		"\"overhead\":{\"cpu\":\"2\",\"memory\":\"1Gi\"}},\"status\":{}}");
}

/* The bytes of one object in the order of its fields: moments, and values that JSON has as base64. */
static void h328_moments_and_bytes_on_the_wire(void **state)
{
	struct buffers	 *b = *state;
	struct vdi_buffer expected;
	size_t		  spec, moment;

	vdi_buffer_init(&expected, SIZE_MAX_TEST);
	assert_status(
		vdi_k8s_proto_from_json(
			message_of("coordination.k8s.io/v1", "Lease"),
			vd_bytes_of("{\"spec\":{\"holderIdentity\":\"h\",\"acquireTime\":\"0001-01-01T00:00:"
				    "00.000000Z\",\"renewTime\":\"2026-01-02T03:04:05.678901234Z\"}}"),
			NULL, &b->raw, NULL),
		VD_OK);
	spec = vdi_k8s_proto_begin(&expected, 2);
	vdi_k8s_proto_bytes(&expected, 1, vd_bytes_of("h"));
	vdi_k8s_proto_bytes(&expected, 3, VD_BYTES_NONE);
	moment = vdi_k8s_proto_begin(&expected, 4);
	vdi_k8s_proto_varint(&expected, 1, 1767323045);
	vdi_k8s_proto_varint(&expected, 2, 678901000);
	vdi_k8s_proto_end(&expected, moment);
	vdi_k8s_proto_end(&expected, spec);
	assert_int_equal(b->raw.size, expected.size);
	assert_memory_equal(b->raw.data, expected.data, expected.size);
	vdi_buffer_clear(&b->raw);
	vdi_buffer_clear(&expected);
	assert_status(vdi_k8s_proto_from_json(message_of("v1", "Secret"),
					      vd_bytes_of("{\"data\":{\"k\":\"AAH/\",\"z\":\"\"}}"), NULL,
					      &b->raw, NULL),
		      VD_OK);
	spec = vdi_k8s_proto_begin(&expected, 2);
	vdi_k8s_proto_bytes(&expected, 1, vd_bytes_of("k"));
	vdi_k8s_proto_bytes(&expected, 2, (struct vd_bytes) { "\x00\x01\xff", 3 });
	vdi_k8s_proto_end(&expected, spec);
	assert_true(b->raw.size >= expected.size);
	assert_memory_equal(b->raw.data, expected.data, expected.size);
	wrap(&b->proto, "v1", "Secret", &b->raw);
	assert_status(to_json(vdi_buffer_bytes(&b->proto), &b->json, NULL), VD_OK);
	assert_non_null(memmem(b->json.data, b->json.size, "\"data\":{\"k\":\"AAH/\",\"z\":\"\"}", 26));
	/* A slash of base64 may be escaped in JSON. */
	vdi_buffer_clear(&b->raw);
	assert_status(vdi_k8s_proto_from_json(message_of("v1", "Secret"),
					      vd_bytes_of("{\"data\":{\"k\":\"AAH\\/\",\"z\":\"\"}}"), NULL,
					      &b->raw, NULL),
		      VD_OK);
	assert_true(b->raw.size >= expected.size);
	assert_memory_equal(b->raw.data, expected.data, expected.size);
	vdi_buffer_fini(&expected);
}

/* Lease.spec.renewTime, with so many nanoseconds. */
static void h329_parts_of_a_second_have_bounds(void **state)
{
	static const struct {
		int64_t	    nanoseconds;
		const char *text; /* NULL: refused */
	} rows[] = {
		{ 0, "2026-01-02T03:04:05.000000Z" },
		{ 999, "2026-01-02T03:04:05.000000Z" },
		{ 1000, "2026-01-02T03:04:05.000001Z" },
		{ 999999999, "2026-01-02T03:04:05.999999Z" },
		{ 1000000000, NULL },
		{ 2147483647, NULL },
		{ -1000, NULL },
		{ -2147483648, NULL },
	};
	struct buffers *b = *state;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_error error = { 0 };
		vd_status	status;
		size_t		spec, moment;

		vdi_buffer_clear(&b->raw);
		spec = vdi_k8s_proto_begin(&b->raw, 2);
		moment = vdi_k8s_proto_begin(&b->raw, 4);
		vdi_k8s_proto_varint(&b->raw, 1, 1767323045);
		vdi_k8s_proto_varint(&b->raw, 2, (uint64_t) rows[i].nanoseconds);
		vdi_k8s_proto_end(&b->raw, moment);
		vdi_k8s_proto_end(&b->raw, spec);
		wrap(&b->proto, "coordination.k8s.io/v1", "Lease", &b->raw);
		status = to_json(vdi_buffer_bytes(&b->proto), &b->json, &error);
		if (rows[i].text) {
			assert_status(status, VD_OK);
			assert_non_null(
				memmem(b->json.data, b->json.size, rows[i].text, strlen(rows[i].text)));
		} else {
			assert_status(status, VD_BAD_REQUEST);
			assert_non_null(
				strstr(error.message, "the fraction of a time is not below one second"));
		}
	}
}

/* The zero of Go's time.Time is no time. A time has no part of a second, so that of a zero does not count. */
static void h327_the_zero_of_a_time_is_null(void **state)
{
	static const struct {
		const char *api_version, *kind;
		unsigned    spec, time; /* their numbers */
		int64_t	    nanoseconds;
		const char *text;
	} rows[] = {
		{ "coordination.k8s.io/v1", "Lease", 2, 4, 0, "\"renewTime\":null" },
		{ "coordination.k8s.io/v1", "Lease", 2, 4, 999, "\"renewTime\":null" },
		{ "coordination.k8s.io/v1", "Lease", 2, 4, 1000,
		  "\"renewTime\":\"0001-01-01T00:00:00.000001Z\"" },
		{ "v1", "Pod", 1, 8, 0, "\"creationTimestamp\":null" },
		{ "v1", "Pod", 1, 8, 5000, "\"creationTimestamp\":null" },
	};
	struct buffers *b = *state;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		size_t spec, moment;

		vdi_buffer_clear(&b->raw);
		spec = vdi_k8s_proto_begin(&b->raw, rows[i].spec);
		moment = vdi_k8s_proto_begin(&b->raw, rows[i].time);
		vdi_k8s_proto_varint(&b->raw, 1, (uint64_t) -62135596800);
		vdi_k8s_proto_varint(&b->raw, 2, (uint64_t) rows[i].nanoseconds);
		vdi_k8s_proto_end(&b->raw, moment);
		vdi_k8s_proto_end(&b->raw, spec);
		wrap(&b->proto, rows[i].api_version, rows[i].kind, &b->raw);
		assert_status(to_json(vdi_buffer_bytes(&b->proto), &b->json, NULL), VD_OK);
		if (memmem(b->json.data, b->json.size, rows[i].text, strlen(rows[i].text)) == NULL)
			fail_msg("row %zu: %.*s", i, (int) b->json.size, b->json.data);
	}
}

static void r103_resource_version_is_given_by_the_caller(void **state)
{
	struct buffers		    *b = *state;
	struct vdi_k8s_proto_options options = { .resource_version = vd_bytes_of("42") };
	static const char *const rows[] = { "{\"metadata\":{}}", "{\"metadata\":{\"resourceVersion\":\"7\"}}",
					    "{\"metadata\":{\"resourceVersion\":7}}" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		vdi_buffer_clear(&b->raw);
		assert_status(vdi_k8s_proto_from_json(message_of("v1", "Namespace"), vd_bytes_of(rows[i]),
						      &options, &b->raw, NULL),
			      VD_OK);
		wrap(&b->proto, "v1", "Namespace", &b->raw);
		assert_status(to_json(vdi_buffer_bytes(&b->proto), &b->json, NULL), VD_OK);
		assert_text(&b->json, HEAD "\"resourceVersion\":\"42\"" TAIL);
	}
	/* only the object's own */
	vdi_buffer_clear(&b->raw);
	assert_status(
		vdi_k8s_proto_from_json(message_of("v1", "Pod"),
					vd_bytes_of("{\"spec\":{\"containers\":[{\"env\":[{\"valueFrom\":{"
						    "\"fieldRef\":{\"fieldPath\":\"x\"}}}]}]}}"),
					&options, &b->raw, NULL),
		VD_OK);
	assert_null(memmem(b->raw.data, b->raw.size, "42", 2));
}

static void every_kind_is_found_and_reads_nothing(void **state)
{
	struct buffers *b = *state;
	struct vd_bytes api_version, kind;
	size_t		count = 0;

	for (; vdi_k8s_kind_at(count, &api_version, &kind); count++) {
		const struct vdi_k8s_message *message = vdi_k8s_kind_find(api_version, kind);
		const struct vdi_k8s_field   *fields;

		assert_non_null(message);
		fields = vdi_k8s_fields(message);
		for (unsigned i = 0; i < message->field_count; i++) {
			unsigned next = 0;

			assert_int_equal(vdi_k8s_field_by_number(message, fields[i].number, &next), i);
			next = 0;
			if (fields[i].name_size)
				assert_int_equal(
					vdi_k8s_field_by_name(message, vdi_k8s_name(&fields[i]), &next), i);
		}
		vdi_buffer_clear(&b->raw);
		wrap(&b->proto, "x", "y", &b->raw);
		assert_status(vdi_k8s_proto_from_json(message, vd_bytes_of("{}"), NULL, &b->raw, NULL),
			      VD_OK);
		assert_int_equal(b->raw.size, 0);
	}
	assert_true(count > 100);
	assert_null(vdi_k8s_kind_find(vd_bytes_of("v2"), vd_bytes_of("Pod")));
	assert_null(vdi_k8s_kind_find(vd_bytes_of("v1"), vd_bytes_of("Pods")));
	assert_null(vdi_k8s_kind_find(VD_BYTES_NONE, VD_BYTES_NONE));
}

static void every_failed_allocation_is_reported(void **state)
{
	struct buffers *b = *state;
	int64_t		live = vdi_alloc_live();

	/* metadata in two parts and unsorted labels: everything that allocates */
	NAMESPACE(b, "\x0a\x10\x5a\x06\x0a\x01z\x12\x01"
		     "1\x5a\x06\x0a\x01"
		     "a\x12\x01"
		     "1\x0a\x03\x0a\x01"
		     "b");
	live = vdi_alloc_live();
	for (uint64_t nth = 1;; nth++) {
		struct vdi_buffer json, raw;
		vd_status	  status;
		bool		  failed;

		vdi_buffer_init(&json, SIZE_MAX_TEST);
		vdi_buffer_init(&raw, SIZE_MAX_TEST);
		vdi_alloc_fail_nth(nth, 1);
		status = vdi_k8s_proto_to_json(vdi_buffer_bytes(&b->proto), &json, NULL);
		if (status == VD_OK)
			status = vdi_k8s_proto_from_json(message_of("v1", "Namespace"),
							 vdi_buffer_bytes(&json), NULL, &raw, NULL);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		vdi_buffer_fini(&json);
		vdi_buffer_fini(&raw);
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed)
			break;
		assert_true(nth < 100);
	}
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

/* A null in a list of strings is an empty one, as in Go. */
static void h327_a_null_among_strings(void **state)
{
	struct buffers *b = *state;
	const char     *json = "{\"spec\":{\"containers\":[{\"name\":\"c\",\"args\":[\"a\",null,\"b\"],"
			       "\"command\":[null]}]}}";

	assert_status(
		vdi_k8s_proto_from_json(message_of("v1", "Pod"), vd_bytes_of(json), NULL, &b->raw, NULL),
		VD_OK);
	wrap(&b->proto, "v1", "Pod", &b->raw);
	assert_status(to_json(vdi_buffer_bytes(&b->proto), &b->json, NULL), VD_OK);
	assert_non_null(memmem(b->json.data, b->json.size, "\"args\":[\"a\",\"\",\"b\"]", 19));
	assert_non_null(memmem(b->json.data, b->json.size, "\"command\":[\"\"]", 14));
}

/* The whole numbers of a port are those of 32 bits. */
static void h328_borders_of_a_port(void **state)
{
	static const struct {
		const char *port;
		vd_status   status;
	} rows[] = {
		{ "2147483647", VD_OK },
		{ "-2147483648", VD_OK },
		{ "2147483648", VD_BAD_REQUEST },
		{ "-2147483649", VD_BAD_REQUEST },
		{ "-", VD_BAD_REQUEST },
		{ "1.5", VD_BAD_REQUEST },
		{ "12345678901234567890", VD_BAD_REQUEST },
		{ "true", VD_BAD_REQUEST },
	};
	struct buffers *b = *state;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		char json[160];

		snprintf(json, sizeof json,
			 "{\"spec\":{\"containers\":[{\"livenessProbe\":{\"tcpSocket\":{\"port\":%s}}}]}}",
			 rows[i].port);
		vdi_buffer_clear(&b->raw);
		vdi_buffer_clear(&b->proto);
		vdi_buffer_clear(&b->json);
		assert_status(vdi_k8s_proto_from_json(message_of("v1", "Pod"), vd_bytes_of(json), NULL,
						      &b->raw, NULL),
			      rows[i].status);
		if (rows[i].status != VD_OK)
			continue;
		wrap(&b->proto, "v1", "Pod", &b->raw);
		assert_status(to_json(vdi_buffer_bytes(&b->proto), &b->json, NULL), VD_OK);
		assert_non_null(memmem(b->json.data, b->json.size, rows[i].port, strlen(rows[i].port)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(h327_json_is_what_go_writes),
		TEST(h328_there_and_back_again),
		TEST(h329_cut_off_bytes_are_errors_or_another_object),
		TEST(r697_h325_envelopes_are_checked),
		TEST(h324_a_kind_without_a_table_is_named),
		TEST(h323_delete_options_of_every_group),
		TEST(h329_unknown_fields_are_skipped),
		TEST(h329_what_is_no_message_is_an_error),
		TEST(h329_order_and_repetition_do_not_matter),
		TEST(h327_numbers_may_come_packed),
		TEST(h327_lists_of_strings),
		TEST(h327_json_inside_is_checked),
		TEST(bounded_output),
		TEST(h328_unknown_members_are_told_and_left_out),
		TEST(h328_wrong_types_are_errors_with_their_place),
		TEST(h328_long_places_and_long_objects),
		TEST(h327_forms_that_only_json_has),
		TEST(h328_moments_and_bytes_on_the_wire),
		TEST(h329_parts_of_a_second_have_bounds),
		TEST(h327_the_zero_of_a_time_is_null),
		TEST(h327_a_null_among_strings),
		TEST(h328_borders_of_a_port),
		TEST(r103_resource_version_is_given_by_the_caller),
		TEST(every_kind_is_found_and_reads_nothing),
		TEST(every_failed_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
