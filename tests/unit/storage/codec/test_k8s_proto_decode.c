/* Unit tests of storage/codec/k8s_proto_decode.c: two encodings of one object give the same JSON, however the
 * second one is put together. */
#include "vdtest.h"

#include "base64.h"
#include "k8s_proto.h"
#include "k8s_proto_wire.h"
#include "rand.h"

#define SIZE_MAX_TEST ((size_t) 1 << 20)
#define PARTS_MAX 256

static const struct {
	const char *kind, *proto, *json;
} vectors[] = {
#define VECTOR(kind, proto, json) { kind, proto, json },
#include "k8s_proto_vectors.def"
#undef VECTOR
};

/* What is done to each message. */
struct disorder {
	struct vdi_rand rand;
	bool		has_unknown; /* fields that no message has */
	bool is_shuffled; /* fields change places; those of one number keep their order, unless it is a map */
	/* messages come in two parts; what is joined again is bounded, so none inside of another */
	bool is_split;
	bool is_stale; /* values that a later one overrides */
};

static void add_unknown(struct disorder *disorder, struct vdi_buffer *out)
{
	static const char group[] =
		"\xeb\x0f\x08\x01\x12\x01x\x1b\x1c\xec\x0f"; /* 253 {1: 1, 2: "x", 3 {}} */

	if (!disorder->has_unknown)
		return;
	switch (vdi_rand_below(&disorder->rand, 5)) {
	case 0: vdi_k8s_proto_varint(out, 250, vdi_rand_next(&disorder->rand)); break;
	case 1: vdi_k8s_proto_bytes(out, 251, vd_bytes_of("unknown")); break;
	case 2:
		vdi_buffer_append(out, (struct vd_bytes) { "\xe5\x0f"
							   "1234",
							   6 });
		break;
	case 3:
		vdi_buffer_append(out, (struct vd_bytes) { "\xe1\x0f"
							   "12345678",
							   10 });
		break;
	default: vdi_buffer_append(out, (struct vd_bytes) { group, sizeof group - 1 });
	}
}

/* One field of a message: its bytes with tag and length. */
struct piece {
	struct vdi_k8s_part	    part;
	const struct vdi_k8s_field *field; /* NULL: none that the message has */
	struct vd_bytes		    whole;
};

static size_t read_pieces(const struct vdi_k8s_message *message, struct vd_bytes bytes, struct piece *pieces)
{
	size_t	 count = 0;
	unsigned next = 0;

	for (size_t at = 0; at < bytes.size; count++) {
		size_t from = at;
		int    index;

		assert_true(count < PARTS_MAX);
		assert_true(vdi_k8s_read_part(bytes, &at, &pieces[count].part));
		index = vdi_k8s_field_by_number(message, pieces[count].part.number, &next);
		pieces[count].field = index < 0 ? NULL : vdi_k8s_fields(message) + index;
		pieces[count].whole = (struct vd_bytes) { (const char *) bytes.data + from, at - from };
	}
	return count;
}

static bool is_ordered(const struct piece *left, const struct piece *right)
{
	return left->part.number == right->part.number && left->field &&
	       left->field->container != VDI_K8S_MAP;
}

static void shuffle(struct disorder *disorder, struct piece *pieces, size_t count)
{
	for (size_t round = 0; round < 3 * count; round++) {
		size_t	     at = vdi_rand_below(&disorder->rand, count);
		struct piece first = pieces[at];

		if (at + 1 == count || is_ordered(&first, &pieces[at + 1]))
			continue;
		pieces[at] = pieces[at + 1];
		pieces[at + 1] = first;
	}
}

static void write_message(struct disorder *disorder, const struct vdi_k8s_message *message,
			  struct vd_bytes bytes, struct vdi_buffer *out);

/* A map's entry: {1 key, 2 value} the other way round, or with a key and a value that do not count. */
static void write_entry(struct disorder *disorder, const struct piece *piece, struct vdi_buffer *out)
{
	struct vdi_k8s_part part, parts[3] = { { .number = 0 }, { .number = 0 }, { .number = 0 } };
	size_t		    mark = vdi_k8s_proto_begin(out, piece->part.number);

	for (size_t at = 0; at < piece->part.bytes.size;) {
		assert_true(vdi_k8s_read_part(piece->part.bytes, &at, &part));
		assert_in_range(part.number, 1, 2);
		parts[part.number] = part;
	}
	for (unsigned i = 0; i < 2; i++) {
		unsigned number = disorder->is_shuffled ? 2 - i : 1 + i;

		add_unknown(disorder, out);
		if (parts[number].number == 0)
			continue;
		if (disorder->is_stale)
			vdi_k8s_proto_bytes(out, number, VD_BYTES_NONE);
		if (number == 2 && piece->field->type == VDI_K8S_MESSAGE) {
			size_t inner = vdi_k8s_proto_begin(out, 2);

			write_message(disorder, vdi_k8s_child(piece->field), parts[2].bytes, out);
			vdi_k8s_proto_end(out, inner);
		} else {
			vdi_k8s_proto_bytes(out, number, parts[number].bytes);
		}
	}
	add_unknown(disorder, out);
	vdi_k8s_proto_end(out, mark);
}

static void write_child(struct disorder *disorder, const struct piece *piece, struct vdi_buffer *out)
{
	static const size_t whole = SIZE_MAX;
	struct piece	   *pieces = calloc(PARTS_MAX, sizeof *pieces);
	size_t		    count = read_pieces(vdi_k8s_child(piece->field), piece->part.bytes, pieces);
	bool		    is_split = disorder->is_split;
	bool		    is_list = piece->field->container == VDI_K8S_LIST;
	size_t		    cut = is_split && !is_list && vdi_rand_once_in(&disorder->rand, 3) ?
					  vdi_rand_below(&disorder->rand, count + 1) :
					  whole;
	size_t		    size = 0, mark = vdi_k8s_proto_begin(out, piece->part.number);

	disorder->is_split = is_split && cut == whole;
	for (size_t i = 0; i < cut && i < count; i++)
		size += pieces[i].whole.size;
	write_message(disorder, vdi_k8s_child(piece->field),
		      (struct vd_bytes) { piece->part.bytes.data, size }, out);
	vdi_k8s_proto_end(out, mark);
	if (cut != whole) {
		add_unknown(disorder, out);
		mark = vdi_k8s_proto_begin(out, piece->part.number);
		write_message(disorder, vdi_k8s_child(piece->field),
			      (struct vd_bytes) { (const char *) piece->part.bytes.data + size,
						  piece->part.bytes.size - size },
			      out);
		vdi_k8s_proto_end(out, mark);
	}
	disorder->is_split = is_split;
	free(pieces);
}

static void write_piece(struct disorder *disorder, const struct piece *piece, struct vdi_buffer *out)
{
	const struct vdi_k8s_field *field = piece->field;

	if (field && field->container == VDI_K8S_MAP) {
		write_entry(disorder, piece, out);
	} else if (field && field->type == VDI_K8S_MESSAGE) {
		write_child(disorder, piece, out);
	} else {
		if (field && disorder->is_stale && field->container != VDI_K8S_LIST &&
		    field->type < VDI_K8S_MESSAGE) {
			if (field->type <= VDI_K8S_INT64)
				vdi_k8s_proto_varint(out, piece->part.number, 77);
			else
				vdi_k8s_proto_bytes(out, piece->part.number, vd_bytes_of("stale"));
			add_unknown(disorder, out);
		}
		vdi_buffer_append(out, piece->whole);
	}
}

static void write_message(struct disorder *disorder, const struct vdi_k8s_message *message,
			  struct vd_bytes bytes, struct vdi_buffer *out)
{
	struct piece *pieces = calloc(PARTS_MAX, sizeof *pieces);
	size_t	      count = read_pieces(message, bytes, pieces);

	if (disorder->is_shuffled)
		shuffle(disorder, pieces, count);
	for (size_t i = 0; i < count; i++) {
		add_unknown(disorder, out);
		write_piece(disorder, &pieces[i], out);
	}
	add_unknown(disorder, out);
	free(pieces);
}

static void check_vector(struct disorder *disorder, size_t index)
{
	size_t			size = 0, mark;
	char		       *bytes = malloc(VDI_BASE64_DECODED_MAX(strlen(vectors[index].proto)));
	struct vdi_buffer	out, json;
	struct vd_error		error = { 0 };
	struct vdi_k8s_envelope envelope;

	assert_status(
		vdi_base64_decode(VDI_BASE64_STANDARD, vd_bytes_of(vectors[index].proto), bytes, &size, NULL),
		VD_OK);
	assert_status(vdi_k8s_proto_open((struct vd_bytes) { bytes, size }, &envelope, NULL), VD_OK);
	vdi_buffer_init(&out, SIZE_MAX_TEST);
	vdi_buffer_init(&json, SIZE_MAX_TEST);
	mark = vdi_k8s_proto_envelope_begin(&out, envelope.api_version, envelope.kind);
	write_message(disorder, vdi_k8s_kind_find(envelope.api_version, envelope.kind), envelope.raw, &out);
	vdi_k8s_proto_envelope_end(&out, mark);
	assert_status(vdi_buffer_status(&out), VD_OK);
	if (vdi_k8s_proto_to_json(vdi_buffer_bytes(&out), &json, &error) != VD_OK ||
	    !vd_bytes_equal(vdi_buffer_bytes(&json), vd_bytes_of(vectors[index].json)))
		fail_msg("%s: %s\n got %.*s\nwant %s", vectors[index].kind, error.message, (int) json.size,
			 json.data ? json.data : "", vectors[index].json);
	vdi_buffer_fini(&json);
	vdi_buffer_fini(&out);
	free(bytes);
}

static void check_all(struct disorder disorder, uint64_t seeds)
{
	for (uint64_t seed = 0; seed < seeds; seed++) {
		vdi_rand_init(&disorder.rand, seed);
		for (size_t i = 0; i < VDI_ARRAY_SIZE(vectors); i++)
			check_vector(&disorder, i);
	}
}

static void h329_the_same_object_again(void **state)
{
	(void) state;
	check_all((struct disorder) { .has_unknown = false }, 1);
}

static void h329_unknown_fields_between_any_two(void **state)
{
	(void) state;
	check_all((struct disorder) { .has_unknown = true }, 10);
}

static void h329_fields_and_entries_in_any_order(void **state)
{
	(void) state;
	check_all((struct disorder) { .is_shuffled = true }, 10);
}

static void h329_messages_in_parts(void **state)
{
	(void) state;
	check_all((struct disorder) { .is_split = true }, 10);
}

static void h329_the_last_value_counts(void **state)
{
	(void) state;
	check_all((struct disorder) { .is_stale = true }, 3);
}

static void h329_all_of_it_at_once(void **state)
{
	(void) state;
	check_all((struct disorder) { .has_unknown = true, .is_shuffled = true, .is_stale = true }, 10);
	check_all((struct disorder) { .has_unknown = true, .is_split = true }, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h329_the_same_object_again),
		cmocka_unit_test(h329_unknown_fields_between_any_two),
		cmocka_unit_test(h329_fields_and_entries_in_any_order),
		cmocka_unit_test(h329_messages_in_parts),
		cmocka_unit_test(h329_the_last_value_counts),
		cmocka_unit_test(h329_all_of_it_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
