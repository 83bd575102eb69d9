/* Unit tests of storage/codec/k8s_proto_envelope.c: groups against a naive reader, the fields of an envelope,
 * names, and the bounds. */
#include "vdtest.h"

#include "k8s_proto.h"
#include "k8s_proto_wire.h"
#include "rand.h"

/* ---- Groups: random bytes that are mostly sound ---- */

struct bytes {
	uint8_t data[8192];
	size_t	size;
};

static void add(struct bytes *bytes, const void *data, size_t size)
{
	assert_true(bytes->size + size <= sizeof bytes->data);
	memcpy(bytes->data + bytes->size, data, size);
	bytes->size += size;
}

static void add_varint(struct bytes *bytes, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		add(bytes, &(uint8_t) { (uint8_t) (value | 0x80) }, 1);
	add(bytes, &(uint8_t) { (uint8_t) value }, 1);
}

static void add_field(struct bytes *bytes, struct vdi_rand *rand, unsigned depth)
{
	static const uint8_t filler[32] = { 0x0c, 0x54, 0x80, 0xff, 0x0b };
	unsigned	     wire = (unsigned) vdi_rand_below(rand, depth ? 5 : 4);

	wire += wire == 4; /* not the end of a group */
	if (wire == VDI_K8S_WIRE_GROUP && depth == 0)
		wire = VDI_K8S_WIRE_32;
	add_varint(bytes, (1 + vdi_rand_below(rand, 400)) << 3 | wire);
	switch (wire) {
	case VDI_K8S_WIRE_VARINT: add_varint(bytes, vdi_rand_next(rand) >> vdi_rand_below(rand, 64)); break;
	case VDI_K8S_WIRE_64:
	case VDI_K8S_WIRE_32: add(bytes, filler, wire == VDI_K8S_WIRE_64 ? 8 : 4); break;
	case VDI_K8S_WIRE_BYTES: {
		uint64_t size = vdi_rand_below(rand, sizeof filler);

		add_varint(bytes, size);
		add(bytes, filler, size);
		break;
	}
	default:
		for (uint64_t i = vdi_rand_below(rand, 4); i > 0; i--)
			add_field(bytes, rand, depth - 1);
		add_varint(bytes, 1 << 3 | VDI_K8S_WIRE_GROUP_END);
	}
}

/* The obvious reader: follows groups with calls. Returns where the group that began at `at` ends, or
 * SIZE_MAX. */
static size_t naive_varint(const struct bytes *bytes, size_t at, uint64_t *ret_value)
{
	*ret_value = 0;
	for (unsigned i = 0; i < 10 && at < bytes->size; i++, at++) {
		*ret_value |= (uint64_t) (bytes->data[at] & 0x7f) << (7 * i);
		if (bytes->data[at] < 0x80)
			return at + 1;
	}
	return SIZE_MAX;
}

static size_t naive_group(const struct bytes *bytes, size_t at, unsigned depth)
{
	if (depth > VDI_K8S_PROTO_DEPTH_MAX)
		return SIZE_MAX;
	for (;;) {
		uint64_t tag, value = 0;

		at = naive_varint(bytes, at, &tag);
		if (at == SIZE_MAX || tag >> 3 == 0 || tag >> 3 >= 1 << 29)
			return SIZE_MAX;
		switch (tag & 7) {
		case 0:
			at = naive_varint(bytes, at, &value);
			value = 0;
			break;
		case 1: value = 8; break;
		case 2: at = naive_varint(bytes, at, &value); break;
		case 3: at = naive_group(bytes, at, depth + 1); break;
		case 4: return at;
		case 5: value = 4; break;
		default: return SIZE_MAX;
		}
		if (at == SIZE_MAX || value > bytes->size - at)
			return SIZE_MAX;
		at += value;
	}
}

static void compare(const struct bytes *bytes)
{
	uint8_t *copy = malloc(bytes->size ? bytes->size : 1); /* exact, so that a read too far is caught */
	size_t	 at = 0, expected = naive_group(bytes, 0, 1);
	struct vd_bytes whole = { copy, bytes->size };

	memcpy(copy, bytes->data, bytes->size);
	assert_int_equal(vdi_k8s_skip_group(whole, &at), expected != SIZE_MAX);
	if (expected != SIZE_MAX)
		assert_int_equal(at, expected);
	free(copy);
}

static void h329_groups_end_where_a_naive_reader_ends(void **state)
{
	static struct bytes bytes, part;
	struct vdi_rand	    rand;
	unsigned	    sound = 0;

	(void) state;
	vdi_rand_init(&rand, 17);
	for (int round = 0; round < 1500; round++) {
		bytes.size = 0;
		for (uint64_t i = vdi_rand_below(&rand, 6); i > 0; i--)
			add_field(&bytes, &rand, 5);
		add_varint(&bytes, 9 << 3 | VDI_K8S_WIRE_GROUP_END);
		sound += naive_group(&bytes, 0, 1) == bytes.size;
		add(&bytes, "\x08\x01", 2); /* what stands behind it is nobody's business */
		compare(&bytes);
		for (int i = 0; i < 4; i++) { /* cut off */
			part = bytes;
			part.size = vdi_rand_below(&rand, bytes.size + 1);
			compare(&part);
		}
		for (int i = 0; i < 4; i++) { /* damaged */
			part = bytes;
			part.data[vdi_rand_below(&rand, part.size)] = (uint8_t) vdi_rand_next(&rand);
			compare(&part);
		}
	}
	assert_int_equal(sound, 1500);
}

static void h329_groups_are_nested_to_a_depth(void **state)
{
	static struct bytes bytes;

	(void) state;
	for (unsigned depth = 1; depth < VDI_K8S_PROTO_DEPTH_MAX + 4; depth++) {
		size_t at = 0;

		bytes.size = 0;
		for (unsigned i = 1; i < depth; i++)
			add_varint(&bytes, 1 << 3 | VDI_K8S_WIRE_GROUP);
		for (unsigned i = 0; i < depth; i++)
			add_varint(&bytes, 1 << 3 | VDI_K8S_WIRE_GROUP_END);
		compare(&bytes);
		assert_int_equal(vdi_k8s_skip_group((struct vd_bytes) { bytes.data, bytes.size }, &at),
				 depth <= VDI_K8S_PROTO_DEPTH_MAX);
	}
}

/* Each element ends exactly with the bytes, and one byte before. */
static void h329_elements_of_a_group_may_end_with_the_bytes(void **state)
{
	static const struct {
		const char *bytes;
		size_t	    size;
	} rows[] = {
		{ "\x08\x01", 2 },
		{ "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11 },
		{ "\x09\1\2\3\4\5\6\7\x08", 9 },
		{ "\x0a\x00", 2 },
		{ "\x0a\x03xyz", 5 },
		{ "\x0d\1\2\3\4", 5 },
		{ "\x0b\x0c", 2 },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		static struct bytes bytes;

		for (size_t size = 0; size <= rows[i].size; size++) {
			bytes.size = 0;
			add(&bytes, rows[i].bytes, size);
			compare(&bytes); /* without its end */
		}
		add_varint(&bytes, 2 << 3 | VDI_K8S_WIRE_GROUP_END);
		compare(&bytes);
		assert_int_equal(naive_group(&bytes, 0, 1), bytes.size);
	}
}

/* ---- Envelopes ---- */

static vd_status open_bytes(struct vdi_buffer *buffer, struct vdi_k8s_envelope *envelope)
{
	struct vd_error error = { 0 };
	char	       *copy = malloc(buffer->size);
	vd_status	status;

	memcpy(copy, buffer->data, buffer->size);
	*envelope = (struct vdi_k8s_envelope) { .raw = VD_BYTES_NONE };
	status = vdi_k8s_proto_open((struct vd_bytes) { copy, buffer->size }, envelope, &error);
	assert_int_equal(status != VD_OK, error.message[0] != 0);
	free(copy);
	return status;
}

static void begin(struct vdi_buffer *buffer)
{
	vdi_buffer_clear(buffer);
	vdi_buffer_append(buffer, (struct vd_bytes) { "k8s\0", 4 });
}

/* Fields 1 to 4 are bytes, and 1 and 2 of the type are; whatever else is there may be anything. */
static void h325_fields_of_an_envelope_are_bytes(void **state)
{
	struct vdi_k8s_envelope envelope;
	struct vdi_buffer	buffer;
	size_t			mark;

	(void) state;
	vdi_buffer_init(&buffer, 4096);
	for (unsigned number = 1; number < 8; number++) {
		begin(&buffer);
		vdi_k8s_proto_bytes(&buffer, number,
				    number == 4 ? vd_bytes_of(VDI_K8S_PROTO_TYPE) : VD_BYTES_NONE);
		assert_status(open_bytes(&buffer, &envelope), VD_OK);
		vdi_k8s_proto_varint(&buffer, number, 1);
		assert_status(open_bytes(&buffer, &envelope), number <= 4 ? VD_BAD_REQUEST : VD_OK);
		begin(&buffer);
		mark = vdi_k8s_proto_begin(&buffer, 1);
		vdi_k8s_proto_varint(&buffer, number, 1);
		vdi_k8s_proto_end(&buffer, mark);
		assert_status(open_bytes(&buffer, &envelope), number <= 2 ? VD_BAD_REQUEST : VD_OK);
	}
	/* an empty encoding and an empty type say nothing; another type or any encoding does */
	begin(&buffer);
	vdi_k8s_proto_bytes(&buffer, 3, VD_BYTES_NONE);
	vdi_k8s_proto_bytes(&buffer, 4, VD_BYTES_NONE);
	assert_status(open_bytes(&buffer, &envelope), VD_OK);
	vdi_k8s_proto_bytes(&buffer, 4, vd_bytes_of("application/json"));
	assert_status(open_bytes(&buffer, &envelope), VD_BAD_REQUEST);
	vdi_k8s_proto_bytes(&buffer, 4, vd_bytes_of(VDI_K8S_PROTO_TYPE));
	assert_status(open_bytes(&buffer, &envelope), VD_OK);
	vdi_k8s_proto_bytes(&buffer, 3, vd_bytes_of("x"));
	assert_status(open_bytes(&buffer, &envelope), VD_BAD_REQUEST);
	vdi_buffer_fini(&buffer);
}

static void h325_the_parts_of_an_envelope(void **state)
{
	struct vdi_k8s_envelope envelope = { .raw = VD_BYTES_NONE };
	struct vdi_buffer	buffer;
	size_t			mark;

	(void) state;
	vdi_buffer_init(&buffer, 4096);
	begin(&buffer);
	vdi_k8s_proto_bytes(&buffer, 2, vd_bytes_of("raw"));
	mark = vdi_k8s_proto_begin(&buffer, 1);
	vdi_k8s_proto_bytes(&buffer, 2, vd_bytes_of("Kind"));
	vdi_k8s_proto_bytes(&buffer, 3, vd_bytes_of("other"));
	vdi_k8s_proto_bytes(&buffer, 1, vd_bytes_of("group/v1"));
	vdi_k8s_proto_end(&buffer, mark);
	vdi_k8s_proto_bytes(&buffer, 7, vd_bytes_of("other"));
	assert_status(vdi_k8s_proto_open(vdi_buffer_bytes(&buffer), &envelope, NULL), VD_OK);
	assert_true(vd_bytes_equal(envelope.raw, vd_bytes_of("raw")));
	assert_true(vd_bytes_equal(envelope.kind, vd_bytes_of("Kind")));
	assert_true(vd_bytes_equal(envelope.api_version, vd_bytes_of("group/v1")));
	vdi_buffer_fini(&buffer);
}

/* As large as an object may be, and a byte more: one unknown field, and JSON that is spaces. */
static void objects_have_a_largest_size(void **state)
{
	size_t			      size = VDI_K8S_PROTO_SIZE_MAX;
	const struct vdi_k8s_message *message = vdi_k8s_kind_find(vd_bytes_of("v1"), vd_bytes_of("Pod"));
	struct vdi_k8s_envelope	      envelope;
	struct vdi_buffer	      out;
	char			     *bytes = calloc(1, size + 1);

	(void) state;
	memcpy(bytes, "k8s", 4);
	bytes[4] = 0x2a;
	for (size_t rest = size - 9, i = 5; i < 9; i++, rest >>= 7)
		bytes[i] = (char) ((rest & 0x7f) | (i < 8 ? 0x80 : 0));
	assert_status(vdi_k8s_proto_open((struct vd_bytes) { bytes, size }, &envelope, NULL), VD_OK);
	assert_status(vdi_k8s_proto_open((struct vd_bytes) { bytes, size + 1 }, &envelope, NULL), VD_TOO_BIG);
	memset(bytes, ' ', size + 1);
	memcpy(bytes, "{}", 2);
	vdi_buffer_init(&out, 100);
	assert_status(vdi_k8s_proto_from_json(message, (struct vd_bytes) { bytes, size }, NULL, &out, NULL),
		      VD_OK);
	assert_status(
		vdi_k8s_proto_from_json(message, (struct vd_bytes) { bytes, size + 1 }, NULL, &out, NULL),
		VD_TOO_BIG);
	vdi_buffer_fini(&out);
	free(bytes);
}

/* ---- Names ---- */

struct named {
	struct vdi_buffer raw;
	const char	 *name, *namespace_name;
};

static void expect_names(struct named *named)
{
	struct vd_bytes name = vd_bytes_of("?"), namespace_name = vd_bytes_of("?");

	vdi_k8s_proto_names(vdi_buffer_bytes(&named->raw), &name, &namespace_name);
	assert_true(vd_bytes_equal(name, vd_bytes_of(named->name)));
	assert_true(vd_bytes_equal(namespace_name, vd_bytes_of(named->namespace_name)));
}

static void h324_names_are_found_among_other_fields(void **state)
{
	struct named named = { .name = "", .namespace_name = "" };
	size_t	     mark;

	(void) state;
	vdi_buffer_init(&named.raw, 4096);
	expect_names(&named);
	vdi_k8s_proto_bytes(&named.raw, 2, vd_bytes_of("\x0a\x01n"));
	vdi_k8s_proto_varint(&named.raw, 1, 7); /* metadata is bytes */
	expect_names(&named);
	mark = vdi_k8s_proto_begin(&named.raw, 1);
	vdi_k8s_proto_varint(&named.raw, 1, 5);
	vdi_k8s_proto_bytes(&named.raw, 2, vd_bytes_of("generated"));
	vdi_k8s_proto_bytes(&named.raw, 3, vd_bytes_of("ns"));
	vdi_k8s_proto_bytes(&named.raw, 3, vd_bytes_of("\xff")); /* no text: passed over */
	vdi_k8s_proto_bytes(&named.raw, 4, vd_bytes_of("link"));
	vdi_k8s_proto_bytes(&named.raw, 1, vd_bytes_of("n"));
	vdi_k8s_proto_varint(&named.raw, 3, 5);
	vdi_k8s_proto_end(&named.raw, mark);
	vdi_k8s_proto_varint(&named.raw, 3, 5);
	named.name = "n";
	named.namespace_name = "ns";
	expect_names(&named);
	mark = vdi_k8s_proto_begin(&named.raw, 1); /* the last metadata counts */
	vdi_k8s_proto_bytes(&named.raw, 1, vd_bytes_of("later"));
	vdi_k8s_proto_end(&named.raw, mark);
	named.name = "later";
	named.namespace_name = "";
	expect_names(&named);
	vdi_buffer_append(&named.raw, vd_bytes_of("\x0a\x7f")); /* cut off: what came before it counts */
	expect_names(&named);
	vdi_buffer_fini(&named.raw);
}

static void only_printable_text_is_shown(void **state)
{
	char text[200];

	(void) state;
	for (unsigned c = 0; c < 256; c++) {
		text[0] = 'a';
		text[1] = (char) c;
		text[2] = 'b';
		assert_int_equal(vdi_k8s_proto_shown((struct vd_bytes) { text, 3 }).size,
				 c >= ' ' && c < 0x7f ? 3 : 1);
	}
	memset(text, 'x', sizeof text);
	for (size_t size = 0; size < sizeof text; size++) {
		struct vd_bytes shown = vdi_k8s_proto_shown((struct vd_bytes) { text, size });

		assert_ptr_equal(shown.data, text);
		assert_int_equal(shown.size, VDI_MIN(size, (size_t) 60));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h329_groups_end_where_a_naive_reader_ends),
		cmocka_unit_test(h329_groups_are_nested_to_a_depth),
		cmocka_unit_test(h329_elements_of_a_group_may_end_with_the_bytes),
		cmocka_unit_test(h325_fields_of_an_envelope_are_bytes),
		cmocka_unit_test(h325_the_parts_of_an_envelope),
		cmocka_unit_test(objects_have_a_largest_size),
		cmocka_unit_test(h324_names_are_found_among_other_fields),
		cmocka_unit_test(only_printable_text_is_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
