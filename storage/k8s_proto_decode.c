/* Protobuf to JSON.
 *
 * Fields may come in any order and any number of times, while JSON wants each member once and a list in one piece. So a message is looked through
 * twice: first only tags and lengths, noting for each field of the table where it begins, where it ends and how often it comes (struct slot, on
 * the stack); then the members are written in the table's order, and a list is read from its first to its last part. Lengths are jumped over, so
 * the first look costs one step for each field, not for each byte.
 *
 * A message that comes in several parts (allowed, never sent by Go) is put together before it is read: its parts one after the other are the
 * merged message. A map whose keys are not in ascending order (Go always sorts) is sorted, so that no key is written twice.
 */
#include <stdlib.h>

#include "base64.h"
#include "json_text.h"
#include "json_scan.h"
#include "k8s_proto.h"
#include "k8s_time.h"

#define SHOWN_MAX 60

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_GROUP = 3, WIRE_GROUP_END = 4, WIRE_32 = 5 };

struct decoder {
	struct vdi_buffer *out;
	struct vd_error	  *reterr;
	size_t		   merged_left; /* bytes that may still be copied for messages in parts */
};

struct slot {
	uint32_t first; /* offset of the first part's tag */
	uint32_t last;	/* of the last part's value */
	uint32_t end;	/* behind the last part */
	uint32_t count;
};

/* One field on the wire. */
struct part {
	uint32_t	number;
	enum wire	wire;
	uint64_t	integer; /* varint */
	struct vd_bytes bytes;	 /* WIRE_BYTES */
};

static vd_status malformed(struct decoder *decoder, const char *what)
{
	return vd_error_set(decoder->reterr, VD_BAD_REQUEST, "malformed protobuf: %s", what);
}

/* ---- The wire ---- */

static bool read_varint(struct vd_bytes bytes, size_t *at, uint64_t *ret_value)
{
	const uint8_t *data = bytes.data;
	uint64_t       value = 0;

	for (unsigned shift = 0; shift < 64 && *at < bytes.size; shift += 7) {
		uint8_t byte = data[(*at)++];

		value |= (uint64_t) (byte & 0x7f) << shift;
		if (byte < 0x80) {
			*ret_value = value;
			return true;
		}
	}
	return false;
}

static bool read_tag(struct vd_bytes bytes, size_t *at, uint32_t *ret_number, enum wire *ret_wire)
{
	uint64_t tag;

	if (!read_varint(bytes, at, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
		return false;
	*ret_number = (uint32_t) (tag >> 3);
	*ret_wire = (enum wire) (tag & 7);
	return true;
}

/* Jumps over a group: nesting is counted, not followed. */
static bool skip_group(struct vd_bytes bytes, size_t *at)
{
	for (unsigned depth = 1; depth > 0;) {
		uint64_t  value;
		uint32_t  number;
		enum wire wire;

		if (!read_tag(bytes, at, &number, &wire))
			return false;
		switch (wire) {
		case WIRE_VARINT:
			if (!read_varint(bytes, at, &value))
				return false;
			break;
		case WIRE_BYTES:
			if (!read_varint(bytes, at, &value) || value > bytes.size - *at)
				return false;
			*at += (size_t) value;
			break;
		case WIRE_64:
		case WIRE_32:
			if (bytes.size - *at < (wire == WIRE_64 ? 8u : 4u))
				return false;
			*at += wire == WIRE_64 ? 8 : 4;
			break;
		case WIRE_GROUP:
			if (++depth > VDI_K8S_PROTO_DEPTH_MAX)
				return false;
			break;
		case WIRE_GROUP_END:
			depth--;
			break;
		default:
			return false;
		}
	}
	return true;
}

/* Reads the field at *at and moves behind it. false: the bytes are no message. */
static bool read_part(struct vd_bytes bytes, size_t *at, struct part *ret_part)
{
	uint64_t size;

	if (!read_tag(bytes, at, &ret_part->number, &ret_part->wire))
		return false;
	switch (ret_part->wire) {
	case WIRE_VARINT:
		return read_varint(bytes, at, &ret_part->integer);
	case WIRE_BYTES:
		if (!read_varint(bytes, at, &size) || size > bytes.size - *at)
			return false;
		ret_part->bytes = (struct vd_bytes) { (const char *) bytes.data + *at, (size_t) size };
		*at += (size_t) size;
		return true;
	case WIRE_64:
	case WIRE_32:
		size = ret_part->wire == WIRE_64 ? 8 : 4;
		if (bytes.size - *at < size)
			return false;
		*at += (size_t) size;
		return true;
	case WIRE_GROUP:
		return skip_group(bytes, at);
	default:
		return false;
	}
}

/* ---- JSON ---- */

static void put(struct decoder *decoder, const char *text, size_t size)
{
	vdi_buffer_append(decoder->out, (struct vd_bytes) { text, size });
}
#define PUT(decoder, literal) put(decoder, literal, sizeof(literal) - 1)

/* Bytes from at on that stand for themselves in a JSON string. Eight at a time: a byte is special when it is a control character, a quote, a
 * backslash or not ASCII. */
static size_t plain_run(const unsigned char *text, size_t size)
{
	const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
	size_t	       at = 0;

	for (; at + 8 <= size; at += 8) {
		uint64_t word, quote, backslash;

		memcpy(&word, text + at, 8);
		quote = word ^ ones * '"';
		backslash = word ^ ones * '\\';
		if ((word | (word - ones * 0x20) | (quote - ones) | (backslash - ones)) & tops)
			break;
	}
	while (at < size && text[at] >= 0x20 && text[at] < 0x80 && text[at] != '"' && text[at] != '\\')
		at++;
	return at;
}

static void put_escaped(struct decoder *decoder, unsigned char character)
{
	static const char hex[] = "0123456789abcdef";
	static const char short_forms[] = "\bb\tt\nn\ff\rr\"\"\\\\";

	for (const char *form = short_forms; *form; form += 2)
		if (*form == (char) character) {
			put(decoder, (char[]) { '\\', form[1] }, 2);
			return;
		}
	put(decoder, (char[]) { '\\', 'u', '0', '0', hex[character >> 4], hex[character & 15] }, 6);
}

static vd_status put_string(struct decoder *decoder, struct vd_bytes text)
{
	const unsigned char *data = text.data;
	size_t		     at = 0, from = 0;

	PUT(decoder, "\"");
	for (;;) {
		size_t length;

		at += plain_run(data + at, text.size - at);
		if (at == text.size)
			break;
		if (data[at] >= 0x80) {
			length = vdi_utf8_character(data + at, text.size - at);
			if (length == 0)
				return malformed(decoder, "a string is not UTF-8");
			at += length;
			continue;
		}
		put(decoder, (const char *) data + from, at - from);
		put_escaped(decoder, data[at]);
		from = ++at;
	}
	put(decoder, (const char *) data + from, at - from);
	PUT(decoder, "\"");
	return VD_OK;
}

/* `,"name":` */
static void put_name(struct decoder *decoder, const struct vdi_k8s_field *field, bool *comma)
{
	char *room = vdi_buffer_reserve(decoder->out, (size_t) field->name_size + 4);
	char *at = room;

	if (room == NULL)
		return;
	if (*comma)
		*at++ = ',';
	*at++ = '"';
	memcpy(at, field->name, field->name_size);
	at += field->name_size;
	*at++ = '"';
	*at++ = ':';
	vdi_buffer_commit(decoder->out, (size_t) (at - room));
	*comma = true;
}

static void put_base64(struct decoder *decoder, struct vd_bytes bytes)
{
	char *room;

	PUT(decoder, "\"");
	room = vdi_buffer_reserve(decoder->out, VDI_BASE64_ENCODED_MAX(bytes.size));
	if (room)
		vdi_buffer_commit(decoder->out, vdi_base64_encode(VDI_BASE64_STANDARD, bytes, room));
	PUT(decoder, "\"");
}

/* ---- Values ---- */

static vd_status put_object(struct decoder *decoder, const struct vdi_k8s_message *message, struct vd_bytes bytes, unsigned depth);
static vd_status put_envelope(struct decoder *decoder, struct vd_bytes value, unsigned depth);

static bool is_integer(const struct vdi_k8s_field *field)
{
	return field->type <= VDI_K8S_INT64;
}

static void put_integer(struct decoder *decoder, const struct vdi_k8s_field *field, uint64_t integer)
{
	if (field->type == VDI_K8S_BOOL)
		vdi_buffer_append_text(decoder->out, integer ? "true" : "false");
	else if (field->type == VDI_K8S_INT32)
		vdi_buffer_append_i64(decoder->out, (int32_t) (uint32_t) integer);
	else
		vdi_buffer_append_i64(decoder->out, (int64_t) integer);
}

static vd_status put_time(struct decoder *decoder, const struct vdi_k8s_field *field, struct vd_bytes bytes)
{
	int64_t	    seconds = 0;
	int32_t	    microseconds = 0;
	struct part part;
	char	    text[VDI_K8S_TIME_SIZE];
	size_t	    size;

	for (size_t at = 0; at < bytes.size;) {
		if (!read_part(bytes, &at, &part) || (part.number <= 2 && part.wire != WIRE_VARINT))
			return malformed(decoder, "a time is no message");
		if (part.number == 1)
			seconds = (int64_t) part.integer;
		else if (part.number == 2)
			microseconds = (int32_t) (uint32_t) part.integer / 1000;
	}
	if (bytes.size == 0 || (seconds == VDI_K8S_TIME_ZERO_S && (field->type == VDI_K8S_TIME || microseconds == 0))) {
		PUT(decoder, "null");
		return VD_OK;
	}
	if (microseconds < 0 || microseconds > 999999)
		return malformed(decoder, "a time has no part of a second");
	size = vdi_k8s_time_write(seconds, field->type == VDI_K8S_MICRO_TIME ? microseconds : -1, text);
	if (size == 0)
		return malformed(decoder, "a time is outside the years 0 to 9999");
	PUT(decoder, "\"");
	put(decoder, text, size);
	PUT(decoder, "\"");
	return VD_OK;
}

static vd_status put_int_or_string(struct decoder *decoder, struct vd_bytes bytes)
{
	static const struct vdi_k8s_field integer = { .type = VDI_K8S_INT32 };
	uint64_t			  type = 0, number = 0;
	struct vd_bytes			  text = VD_BYTES_NONE;
	struct part			  part;

	for (size_t at = 0; at < bytes.size;) {
		if (!read_part(bytes, &at, &part) || (part.number <= 2 && part.wire != WIRE_VARINT) || (part.number == 3 && part.wire != WIRE_BYTES))
			return malformed(decoder, "a number or string is no message");
		if (part.number == 1)
			type = part.integer;
		else if (part.number == 2)
			number = part.integer;
		else if (part.number == 3)
			text = part.bytes;
	}
	if (type > 1)
		return malformed(decoder, "a value is neither number nor string");
	if (type == 1)
		return put_string(decoder, text);
	put_integer(decoder, &integer, number);
	return VD_OK;
}

/* Field 1 of a message that has only that one. */
static vd_status only_field(struct decoder *decoder, struct vd_bytes bytes, bool *ret_there, struct vd_bytes *ret_value)
{
	struct part part;

	*ret_there = false;
	*ret_value = VD_BYTES_NONE;
	for (size_t at = 0; at < bytes.size;) {
		if (!read_part(bytes, &at, &part) || (part.number == 1 && part.wire != WIRE_BYTES))
			return malformed(decoder, "a value is no message");
		if (part.number == 1) {
			*ret_there = true;
			*ret_value = part.bytes;
		}
	}
	return VD_OK;
}

static vd_status put_quantity(struct decoder *decoder, struct vd_bytes bytes)
{
	struct vd_bytes text;
	bool		there;

	VDI_TRY(only_field(decoder, bytes, &there, &text));
	if (there && text.size == 0)
		return malformed(decoder, "a quantity is empty");
	return put_string(decoder, there ? text : vd_bytes_of("0"));
}

/* Somebody else's JSON inside of ours: checked, or it could close more braces than it opened. */
static vd_status put_raw(struct decoder *decoder, struct vd_bytes bytes, unsigned depth)
{
	struct vdi_json_limits limits = VDI_JSON_LIMITS_DEFAULT;
	struct vd_bytes	       text;
	bool		       there;
	char		      *room;

	VDI_TRY(only_field(decoder, bytes, &there, &text));
	if (text.size == 0) {
		PUT(decoder, "null");
		return VD_OK;
	}
	if (depth >= VDI_K8S_PROTO_DEPTH_MAX)
		return malformed(decoder, "nested too deeply");
	if (vdi_k8s_proto_is(text))
		return put_envelope(decoder, text, depth);
	limits.size_max = VDI_K8S_PROTO_SIZE_MAX;
	limits.depth_max = VDI_K8S_PROTO_DEPTH_MAX - depth;
	if (vdi_json_validate(text, &limits, NULL) != VD_OK)
		return malformed(decoder, "raw bytes are not JSON");
	room = vdi_buffer_reserve(decoder->out, text.size);
	if (room)
		vdi_buffer_commit(decoder->out, vdi_json_minify(text, room));
	return VD_OK;
}

static vd_status put_strings(struct decoder *decoder, struct vd_bytes bytes)
{
	struct part part;
	bool	    comma = false;

	PUT(decoder, "[");
	for (size_t at = 0; at < bytes.size;) {
		if (!read_part(bytes, &at, &part) || (part.number == 1 && part.wire != WIRE_BYTES))
			return malformed(decoder, "a list of strings is no message");
		if (part.number != 1)
			continue;
		if (comma)
			PUT(decoder, ",");
		comma = true;
		VDI_TRY(put_string(decoder, part.bytes));
	}
	PUT(decoder, "]");
	return VD_OK;
}

/* A value that is bytes on the wire. */
static vd_status put_value(struct decoder *decoder, const struct vdi_k8s_field *field, struct vd_bytes bytes, unsigned depth)
{
	switch (field->type) {
	case VDI_K8S_STRING:
		return put_string(decoder, bytes);
	case VDI_K8S_BYTES:
		put_base64(decoder, bytes);
		return VD_OK;
	case VDI_K8S_MESSAGE:
		return put_object(decoder, vdi_k8s_child(field), bytes, depth + 1);
	case VDI_K8S_TIME:
	case VDI_K8S_MICRO_TIME:
		return put_time(decoder, field, bytes);
	case VDI_K8S_QUANTITY:
		return put_quantity(decoder, bytes);
	case VDI_K8S_INT_OR_STRING:
		return put_int_or_string(decoder, bytes);
	case VDI_K8S_RAW:
		return put_raw(decoder, bytes, depth + 1);
	case VDI_K8S_STRINGS:
		return put_strings(decoder, bytes);
	default:
		VDI_UNREACHABLE("not bytes on the wire");
	}
}

/* ---- Lists and maps ---- */

/* Elements of numbers may come one by one or packed into bytes. */
static vd_status put_packed(struct decoder *decoder, const struct vdi_k8s_field *field, struct vd_bytes bytes, bool *comma)
{
	uint64_t integer;

	for (size_t at = 0; at < bytes.size; *comma = true) {
		if (!read_varint(bytes, &at, &integer))
			return malformed(decoder, "packed numbers are cut off");
		if (*comma)
			PUT(decoder, ",");
		put_integer(decoder, field, integer);
	}
	return VD_OK;
}

static vd_status put_list(struct decoder *decoder, const struct vdi_k8s_field *field, struct vd_bytes bytes, const struct slot *slot, unsigned depth)
{
	struct part part;
	bool	    comma = false;

	PUT(decoder, "[");
	for (size_t at = slot->first; at < slot->end && decoder->out->status == VD_OK;) {
		if (!read_part(bytes, &at, &part))
			return malformed(decoder, "a list is cut off");
		if (part.number != field->number)
			continue;
		if (is_integer(field) && part.wire == WIRE_BYTES) {
			VDI_TRY(put_packed(decoder, field, part.bytes, &comma));
			continue;
		}
		if (comma)
			PUT(decoder, ",");
		comma = true;
		if (is_integer(field))
			put_integer(decoder, field, part.integer);
		else
			VDI_TRY(put_value(decoder, field, part.bytes, depth));
	}
	PUT(decoder, "]");
	return VD_OK;
}

struct entry {
	struct vd_bytes key;
	struct vd_bytes value;
	uint32_t	place;
};

static bool read_entry(struct vd_bytes bytes, struct entry *ret_entry)
{
	struct part part;

	*ret_entry = (struct entry) { .key = VD_BYTES_NONE };
	for (size_t at = 0; at < bytes.size;) {
		if (!read_part(bytes, &at, &part) || (part.number <= 2 && part.wire != WIRE_BYTES))
			return false;
		if (part.number == 1)
			ret_entry->key = part.bytes;
		else if (part.number == 2)
			ret_entry->value = part.bytes;
	}
	return true;
}

static vd_status put_entry(struct decoder *decoder, const struct vdi_k8s_field *field, const struct entry *entry, bool *comma, unsigned depth)
{
	if (*comma)
		PUT(decoder, ",");
	*comma = true;
	VDI_TRY(put_string(decoder, entry->key));
	PUT(decoder, ":");
	return put_value(decoder, field, entry->value, depth);
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;
	int		    order = vd_bytes_compare(left->key, right->key);

	return order ? order : (left->place > right->place) - (left->place < right->place);
}

static vd_status put_sorted(struct decoder *decoder, const struct vdi_k8s_field *field, struct entry *entries, size_t count, unsigned depth)
{
	bool comma = false;

	qsort(entries, count, sizeof *entries, compare_entries);
	for (size_t i = 0; i < count; i++)
		if (i + 1 == count || !vd_bytes_equal(entries[i].key, entries[i + 1].key))
			VDI_TRY(put_entry(decoder, field, &entries[i], &comma, depth));
	return VD_OK;
}

static vd_status put_unsorted(struct decoder *decoder, const struct vdi_k8s_field *field, struct vd_bytes bytes, const struct slot *slot,
			      unsigned depth)
{
	struct entry *entries = vdi_calloc(slot->count, sizeof *entries);
	size_t	      count = 0;
	vd_status     status = VD_OK;
	struct part   part;

	if (entries == NULL)
		return vd_error_set(decoder->reterr, VD_NOMEM, "out of memory");
	for (size_t at = slot->first; at < slot->end && status == VD_OK;) {
		if (!read_part(bytes, &at, &part))
			status = malformed(decoder, "a map is cut off");
		else if (part.number != field->number)
			continue;
		else if (!read_entry(part.bytes, &entries[count]))
			status = malformed(decoder, "an entry of a map is no message");
		else {
			entries[count].place = (uint32_t) count;
			count++;
		}
	}
	if (status == VD_OK)
		status = put_sorted(decoder, field, entries, count, depth);
	vdi_free(entries);
	return status;
}

static vd_status put_map(struct decoder *decoder, const struct vdi_k8s_field *field, struct vd_bytes bytes, const struct slot *slot, unsigned depth)
{
	struct vd_bytes previous = VD_BYTES_NONE;
	struct entry	entry;
	struct part	part;
	size_t		start = decoder->out->size;
	bool		comma = false;

	PUT(decoder, "{");
	for (size_t at = slot->first; at < slot->end && decoder->out->status == VD_OK;) {
		if (!read_part(bytes, &at, &part))
			return malformed(decoder, "a map is cut off");
		if (part.number != field->number)
			continue;
		if (!read_entry(part.bytes, &entry))
			return malformed(decoder, "an entry of a map is no message");
		if (comma && vd_bytes_compare(previous, entry.key) >= 0) {
			decoder->out->size = start + 1;
			VDI_TRY(put_unsorted(decoder, field, bytes, slot, depth));
			break;
		}
		VDI_TRY(put_entry(decoder, field, &entry, &comma, depth));
		previous = entry.key;
	}
	PUT(decoder, "}");
	return VD_OK;
}

/* ---- Messages ---- */

static bool wire_fits(const struct vdi_k8s_field *field, enum wire wire)
{
	if (wire == WIRE_BYTES)
		return !is_integer(field) || field->container == VDI_K8S_LIST;
	return wire == WIRE_VARINT && is_integer(field);
}

/* The first look: where is what. */
static vd_status find_fields(struct decoder *decoder, const struct vdi_k8s_message *message, struct vd_bytes bytes, struct slot *slots)
{
	const struct vdi_k8s_field *fields = vdi_k8s_fields(message);
	unsigned		    next = 0;

	memset(slots, 0, message->field_count * sizeof *slots);
	for (size_t at = 0; at < bytes.size;) {
		size_t	    tag = at;
		struct part part;
		int	    index;

		if (!read_part(bytes, &at, &part))
			return malformed(decoder, "a field is cut off or has no type");
		index = vdi_k8s_field_by_number(message, part.number, &next);
		if (index < 0)
			continue;
		if (!wire_fits(&fields[index], part.wire))
			return vd_error_set(decoder->reterr, VD_BAD_REQUEST, "malformed protobuf: field %s comes with wire type %d",
					    fields[index].name[0] ? fields[index].name : "of an inlined message", part.wire);
		if (slots[index].count++ == 0)
			slots[index].first = (uint32_t) tag;
		slots[index].last = (uint32_t) tag;
		slots[index].end = (uint32_t) at;
	}
	return VD_OK;
}

/* The last part of a field that there is one of. */
static struct part last_part(struct vd_bytes bytes, const struct slot *slot)
{
	struct part part = { .integer = 0 };
	size_t	    at = slot->last;

	if (slot->count && !read_part(bytes, &at, &part))
		VDI_UNREACHABLE("read before");
	return part;
}

/* All parts of a message, one after the other. The caller frees *ret_copy. */
static vd_status join_parts(struct decoder *decoder, const struct vdi_k8s_field *field, struct vd_bytes bytes, const struct slot *slot,
			    char **ret_copy, struct vd_bytes *ret_bytes)
{
	size_t	    room = slot->end - slot->first, size = 0;
	struct part part;
	char	   *copy;

	if (room > decoder->merged_left)
		return vd_error_set(decoder->reterr, VD_TOO_BIG, "malformed protobuf: too many messages in several parts");
	decoder->merged_left -= room;
	copy = vdi_alloc(room);
	if (copy == NULL)
		return vd_error_set(decoder->reterr, VD_NOMEM, "out of memory");
	for (size_t at = slot->first; at < slot->end;) {
		if (!read_part(bytes, &at, &part))
			VDI_UNREACHABLE("read before");
		if (part.number == field->number) {
			memcpy(copy + size, part.bytes.data, part.bytes.size);
			size += part.bytes.size;
		}
	}
	*ret_copy = copy;
	*ret_bytes = (struct vd_bytes) { copy, size };
	return VD_OK;
}

static vd_status put_members(struct decoder *decoder, const struct vdi_k8s_message *message, struct vd_bytes bytes, bool *comma, unsigned depth);

static vd_status put_single(struct decoder *decoder, const struct vdi_k8s_field *field, struct vd_bytes value, bool *comma, unsigned depth)
{
	if (field->empty == VDI_K8S_INLINE)
		return put_members(decoder, vdi_k8s_child(field), value, comma, depth + 1);
	put_name(decoder, field, comma);
	return put_value(decoder, field, value, depth);
}

/* A message, or a value that is one on the wire: written even when absent, unless it is a pointer. */
static vd_status put_message_field(struct decoder *decoder, const struct vdi_k8s_field *field, struct vd_bytes bytes, const struct slot *slot,
				   bool *comma, unsigned depth)
{
	struct vd_bytes value = VD_BYTES_NONE;
	char	       *copy = NULL;
	vd_status	status;

	if (field->empty == VDI_K8S_OMIT_ZERO && slot->count <= 1 && last_part(bytes, slot).bytes.size == 0)
		return VD_OK;
	if (slot->count <= 1)
		return put_single(decoder, field, last_part(bytes, slot).bytes, comma, depth);
	VDI_TRY(join_parts(decoder, field, bytes, slot, &copy, &value));
	status = put_single(decoder, field, value, comma, depth);
	vdi_free(copy);
	return status;
}

static vd_status put_scalar_field(struct decoder *decoder, const struct vdi_k8s_field *field, struct vd_bytes bytes, const struct slot *slot,
				  bool *comma)
{
	struct part part = last_part(bytes, slot);
	bool	    zero = is_integer(field) ? part.integer == 0 : part.bytes.size == 0;

	if (field->type == VDI_K8S_INT32)
		zero = (uint32_t) part.integer == 0;
	if (field->container == VDI_K8S_ONE && zero && field->empty == VDI_K8S_OMIT)
		return VD_OK;
	put_name(decoder, field, comma);
	if (field->type == VDI_K8S_BYTES && slot->count == 0)
		PUT(decoder, "null");
	else if (is_integer(field))
		put_integer(decoder, field, part.integer);
	else
		return put_value(decoder, field, part.bytes, 0);
	return VD_OK;
}

static vd_status put_field(struct decoder *decoder, const struct vdi_k8s_field *field, struct vd_bytes bytes, const struct slot *slot, bool *comma,
			   unsigned depth)
{
	if (field->container != VDI_K8S_ONE && slot->count == 0) {
		if (field->empty == VDI_K8S_KEEP) {
			put_name(decoder, field, comma);
			PUT(decoder, "null");
		}
		return VD_OK;
	}
	if (field->container == VDI_K8S_LIST) {
		put_name(decoder, field, comma);
		return put_list(decoder, field, bytes, slot, depth);
	}
	if (field->container == VDI_K8S_MAP) {
		put_name(decoder, field, comma);
		return put_map(decoder, field, bytes, slot, depth);
	}
	if (field->type >= VDI_K8S_MESSAGE)
		return put_message_field(decoder, field, bytes, slot, comma, depth);
	return put_scalar_field(decoder, field, bytes, slot, comma);
}

static vd_status put_members(struct decoder *decoder, const struct vdi_k8s_message *message, struct vd_bytes bytes, bool *comma, unsigned depth)
{
	const struct vdi_k8s_field *fields = vdi_k8s_fields(message);
	struct slot		    slots[VDI_K8S_FIELDS_MAX];

	if (depth > VDI_K8S_PROTO_DEPTH_MAX)
		return malformed(decoder, "nested too deeply");
	VDI_TRY(find_fields(decoder, message, bytes, slots));
	for (unsigned i = 0; i < message->field_count; i++)
		VDI_TRY(put_field(decoder, &fields[i], bytes, &slots[i], comma, depth));
	if (decoder->out->status != VD_OK) /* no use in going on */
		return vd_error_set(decoder->reterr, decoder->out->status, "%s", vd_status_sentence(decoder->out->status));
	return VD_OK;
}

static vd_status put_object(struct decoder *decoder, const struct vdi_k8s_message *message, struct vd_bytes bytes, unsigned depth)
{
	bool comma = false;

	PUT(decoder, "{");
	VDI_TRY(put_members(decoder, message, bytes, &comma, depth));
	PUT(decoder, "}");
	return VD_OK;
}

/* ---- Envelopes ---- */

bool vdi_k8s_proto_is(struct vd_bytes value)
{
	return value.size >= 4 && memcmp(value.data, "k8s", 4) == 0;
}

static bool read_type_meta(struct vd_bytes bytes, struct vdi_k8s_envelope *envelope)
{
	struct part part;

	for (size_t at = 0; at < bytes.size;) {
		if (!read_part(bytes, &at, &part) || (part.number <= 2 && part.wire != WIRE_BYTES))
			return false;
		if (part.number == 1)
			envelope->api_version = part.bytes;
		else if (part.number == 2)
			envelope->kind = part.bytes;
	}
	return true;
}

vd_status vdi_k8s_proto_open(struct vd_bytes value, struct vdi_k8s_envelope *ret_envelope, struct vd_error *reterr)
{
	struct vdi_k8s_envelope envelope = { .raw = VD_BYTES_NONE };
	struct vd_bytes		encoding = VD_BYTES_NONE, type = VD_BYTES_NONE;
	struct vd_bytes		bytes;
	struct part		part;

	if (!vdi_k8s_proto_is(value))
		return vd_error_set(reterr, VD_BAD_REQUEST, "malformed protobuf: it does not begin with the bytes of Kubernetes' envelope");
	if (value.size > VDI_K8S_PROTO_SIZE_MAX)
		return vd_error_set(reterr, VD_TOO_BIG, "more than %zu bytes of protobuf", VDI_K8S_PROTO_SIZE_MAX);
	bytes = (struct vd_bytes) { (const char *) value.data + 4, value.size - 4 };
	for (size_t at = 0; at < bytes.size;) {
		if (!read_part(bytes, &at, &part) || (part.number <= 4 && part.wire != WIRE_BYTES) ||
		    (part.number == 1 && !read_type_meta(part.bytes, &envelope)))
			return vd_error_set(reterr, VD_BAD_REQUEST, "malformed protobuf: the envelope is damaged or cut off");
		if (part.number == 2)
			envelope.raw = part.bytes;
		else if (part.number == 3)
			encoding = part.bytes;
		else if (part.number == 4)
			type = part.bytes;
	}
	if (encoding.size || (type.size && !vd_bytes_equal(type, vd_bytes_of(VDI_K8S_PROTO_TYPE))))
		return vd_error_set(reterr, VD_BAD_REQUEST, "the protobuf envelope holds content of type \"%.*s\", encoding \"%.*s\"",
				    (int) vdi_k8s_proto_shown(type).size, (const char *) type.data, (int) vdi_k8s_proto_shown(encoding).size,
				    (const char *) encoding.data);
	*ret_envelope = envelope;
	return VD_OK;
}

void vdi_k8s_proto_names(struct vd_bytes raw, struct vd_bytes *ret_name, struct vd_bytes *ret_namespace)
{
	struct vd_bytes metadata = VD_BYTES_NONE;
	struct part	part;

	*ret_name = *ret_namespace = VD_BYTES_NONE;
	for (size_t at = 0; at < raw.size && read_part(raw, &at, &part);)
		if (part.number == 1 && part.wire == WIRE_BYTES)
			metadata = part.bytes;
	for (size_t at = 0; at < metadata.size && read_part(metadata, &at, &part);) {
		if (part.wire != WIRE_BYTES || !vdi_utf8_valid(part.bytes))
			continue;
		if (part.number == 1)
			*ret_name = part.bytes;
		else if (part.number == 3)
			*ret_namespace = part.bytes;
	}
}

struct vd_bytes vdi_k8s_proto_shown(struct vd_bytes text)
{
	const char *data = text.data;
	size_t	    size = 0;

	while (size < text.size && size < SHOWN_MAX && data[size] >= ' ' && data[size] < 0x7f)
		size++;
	return (struct vd_bytes) { data, size };
}

static vd_status put_envelope(struct decoder *decoder, struct vd_bytes value, unsigned depth)
{
	const struct vdi_k8s_message *message;
	struct vdi_k8s_envelope	      envelope;
	bool			      comma = true;

	VDI_TRY(vdi_k8s_proto_open(value, &envelope, decoder->reterr));
	message = vdi_k8s_kind_find(envelope.api_version, envelope.kind);
	if (message == NULL)
		return vd_error_set(decoder->reterr, VD_UNSUPPORTED, "there is no protobuf table for kind \"%.*s\" of apiVersion \"%.*s\"",
				    (int) vdi_k8s_proto_shown(envelope.kind).size, (const char *) envelope.kind.data,
				    (int) vdi_k8s_proto_shown(envelope.api_version).size, (const char *) envelope.api_version.data);
	PUT(decoder, "{\"kind\":");
	VDI_TRY(put_string(decoder, envelope.kind));
	PUT(decoder, ",\"apiVersion\":");
	VDI_TRY(put_string(decoder, envelope.api_version));
	VDI_TRY(put_members(decoder, message, envelope.raw, &comma, depth));
	PUT(decoder, "}");
	return VD_OK;
}

vd_status vdi_k8s_proto_to_json(struct vd_bytes value, struct vdi_buffer *out, struct vd_error *reterr)
{
	struct decoder decoder = { .out = out, .reterr = reterr, .merged_left = 2 * value.size };
	size_t	       before = out->size;
	vd_status      status;

	status = put_envelope(&decoder, value, 1);
	if (out->status != VD_OK)
		status = vd_error_set(reterr, out->status, "%s", vd_status_sentence(out->status));
	if (status != VD_OK)
		out->size = before;
	return status;
}
