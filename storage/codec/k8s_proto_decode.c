/* Converts protobuf to JSON.
 *
 * Fields may come in any order and repeatedly, but JSON needs each member once, and a list in one piece. So
 * each message is scanned twice. The first scan reads only tags and lengths; for each field of the table it
 * notes the first and last position and the number of parts (struct slot, on the stack). The second writes
 * the members in the table's order, and reads a list from its first to its last part. Lengths are skipped, so
 * the first scan costs one step per field, not per byte.
 *
 * A message in several parts (allowed, never sent by Go) is joined before it is decoded: the concatenated
 * parts are the merged message. A map with unsorted keys (Go always sorts them) is sorted, so that no key is
 * written twice.
 */
#include <stdlib.h>

#include "base64.h"
#include "json_scan.h"
#include "json_text.h"
#include "k8s_proto.h"
#include "k8s_proto_wire.h"
#include "k8s_time.h"

/* at and end delimit the free room of out; out's size is updated when the room is used up, and at the end.
 * After a failure there is no room. */
struct decoder {
	struct vdi_buffer *out;
	char		  *at, *end;
	struct vd_error	  *reterr;
	size_t		   merged_left; /* remaining bytes that may be copied to join messages */
};

struct slot {
	uint32_t first; /* offset of the first part's tag */
	uint32_t last;	/* offset of the last part's value */
	uint32_t end;	/* offset after the last part */
	uint32_t count;
};

static vd_status malformed(struct decoder *decoder, const char *what)
{
	return vd_error_set(decoder->reterr, VD_BAD_REQUEST, "malformed protobuf: %s", what);
}

/* ---- JSON ---- */

#define ROOM_MIN 1024 /* minimum room to reserve, if out allows */

static void settle(struct decoder *decoder)
{
	if (decoder->out->status == VD_OK && decoder->at)
		decoder->out->size = (size_t) (decoder->at - decoder->out->data);
}

static bool more_room(struct decoder *decoder, size_t size)
{
	struct vdi_buffer *out = decoder->out;

	settle(decoder);
	if (out->status == VD_OK)
		(void) vdi_buffer_reserve(
			out, VDI_MAX(size, VDI_MIN((size_t) ROOM_MIN, out->size_max - out->size)));
	if (out->status != VD_OK)
		return false;
	decoder->at = out->data + out->size;
	decoder->end = out->data + out->capacity;
	return true;
}

static inline bool has_room(struct decoder *decoder, size_t size)
{
	return (size_t) (decoder->end - decoder->at) >= size || more_room(decoder, size);
}

static inline void put(struct decoder *decoder, const char *text, size_t size)
{
	if (has_room(decoder, size)) {
		memcpy(decoder->at, text, size);
		decoder->at += size;
	}
}
#define PUT(decoder, literal) put(decoder, literal, sizeof(literal) - 1)

static inline bool has_failed(const struct decoder *decoder)
{
	return decoder->out->status != VD_OK;
}

/* Returns the number of bytes, from text on, that a JSON string contains unescaped. Checks eight bytes at a
 * time for control characters, quotes, backslashes and non-ASCII bytes. */
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

static vd_status put_escaped_string(struct decoder *decoder, struct vd_bytes text)
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

/* Copies a string; most need no escapes and are copied once. */
static inline vd_status put_string(struct decoder *decoder, struct vd_bytes text)
{
	if (plain_run(text.data, text.size) < text.size)
		return put_escaped_string(decoder, text);
	if (has_room(decoder, text.size + 2)) {
		*decoder->at++ = '"';
		if (text.size)
			memcpy(decoder->at, text.data, text.size);
		decoder->at += text.size;
		*decoder->at++ = '"';
	}
	return VD_OK;
}

/* `,"name":` */
static void put_name(struct decoder *decoder, const struct vdi_k8s_field *field, bool *comma)
{
	if (has_room(decoder, (size_t) field->name_size + 4)) {
		if (*comma)
			*decoder->at++ = ',';
		memcpy(decoder->at, field->quoted, (size_t) field->name_size + 3);
		decoder->at += field->name_size + 3;
	}
	*comma = true;
}

static void put_base64(struct decoder *decoder, struct vd_bytes bytes)
{
	PUT(decoder, "\"");
	if (has_room(decoder, VDI_BASE64_ENCODED_MAX(bytes.size)))
		decoder->at += vdi_base64_encode(VDI_BASE64_STANDARD, bytes, decoder->at);
	PUT(decoder, "\"");
}

/* ---- Values ---- */

static vd_status put_object(struct decoder *decoder, const struct vdi_k8s_message *message,
			    struct vd_bytes bytes, unsigned depth);
static vd_status put_envelope(struct decoder *decoder, struct vd_bytes value, unsigned depth);

static bool is_integer(const struct vdi_k8s_field *field)
{
	return field->type <= VDI_K8S_INT64;
}

static void put_i64(struct decoder *decoder, int64_t value)
{
	uint64_t rest = value < 0 ? -(uint64_t) value : (uint64_t) value;
	char	 digits[20];
	size_t	 start = sizeof digits;

	do
		digits[--start] = (char) ('0' + rest % 10);
	while (rest /= 10);
	if (value < 0)
		digits[--start] = '-';
	put(decoder, digits + start, sizeof digits - start);
}

static void put_integer(struct decoder *decoder, const struct vdi_k8s_field *field, uint64_t integer)
{
	if (field->type != VDI_K8S_BOOL)
		put_i64(decoder,
			field->type == VDI_K8S_INT32 ? (int32_t) (uint32_t) integer : (int64_t) integer);
	else if (integer)
		PUT(decoder, "true");
	else
		PUT(decoder, "false");
}

static vd_status put_time(struct decoder *decoder, const struct vdi_k8s_field *field, struct vd_bytes bytes)
{
	int64_t		    seconds = 0;
	int32_t		    microseconds = 0;
	struct vdi_k8s_part part;
	char		    text[VDI_K8S_TIME_SIZE];
	size_t		    size;

	for (size_t at = 0; at < bytes.size;) {
		if (!vdi_k8s_read_part(bytes, &at, &part) ||
		    (part.number <= 2 && part.wire != VDI_K8S_WIRE_VARINT))
			return malformed(decoder, "a time is not a message");
		if (part.number == 1)
			seconds = (int64_t) part.integer;
		else if (part.number == 2)
			microseconds = (int32_t) (uint32_t) part.integer / 1000;
	}
	if (bytes.size == 0 ||
	    (seconds == VDI_K8S_TIME_ZERO_S && (field->type == VDI_K8S_TIME || microseconds == 0))) {
		PUT(decoder, "null");
		return VD_OK;
	}
	if (microseconds < 0 || microseconds > 999999)
		return malformed(decoder, "the fraction of a time is not below one second");
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
	struct vdi_k8s_part		  part;

	for (size_t at = 0; at < bytes.size;) {
		if (!vdi_k8s_read_part(bytes, &at, &part) ||
		    (part.number <= 2 && part.wire != VDI_K8S_WIRE_VARINT) ||
		    (part.number == 3 && part.wire != VDI_K8S_WIRE_BYTES))
			return malformed(decoder, "an int-or-string value is not a message");
		if (part.number == 1)
			type = part.integer;
		else if (part.number == 2)
			number = part.integer;
		else if (part.number == 3)
			text = part.bytes;
	}
	if (type > 1)
		return malformed(decoder, "an int-or-string value is neither");
	if (type == 1)
		return put_string(decoder, text);
	put_integer(decoder, &integer, number);
	return VD_OK;
}

/* Finds field 1 of a message that has no other field. */
static vd_status only_field(struct decoder *decoder, struct vd_bytes bytes, bool *ret_there,
			    struct vd_bytes *ret_value)
{
	struct vdi_k8s_part part;

	*ret_there = false;
	*ret_value = VD_BYTES_NONE;
	for (size_t at = 0; at < bytes.size;) {
		if (!vdi_k8s_read_part(bytes, &at, &part) ||
		    (part.number == 1 && part.wire != VDI_K8S_WIRE_BYTES))
			return malformed(decoder, "a value is not a message");
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

/* Writes embedded JSON after validating it; invalid JSON could close braces of the outer object. */
static vd_status put_raw(struct decoder *decoder, struct vd_bytes bytes, unsigned depth)
{
	struct vdi_json_limits limits = VDI_JSON_LIMITS_DEFAULT;
	struct vd_bytes	       text;
	bool		       there;

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
	if (has_room(decoder, text.size))
		decoder->at += vdi_json_minify(text, decoder->at);
	return VD_OK;
}

static vd_status put_strings(struct decoder *decoder, struct vd_bytes bytes)
{
	struct vdi_k8s_part part;
	bool		    comma = false;

	PUT(decoder, "[");
	for (size_t at = 0; at < bytes.size;) {
		if (!vdi_k8s_read_part(bytes, &at, &part) ||
		    (part.number == 1 && part.wire != VDI_K8S_WIRE_BYTES))
			return malformed(decoder, "a list of strings is not a message");
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

/* Writes a value that is length-delimited on the wire. */
static vd_status put_value(struct decoder *decoder, const struct vdi_k8s_field *field, struct vd_bytes bytes,
			   unsigned depth)
{
	switch (field->type) {
	case VDI_K8S_STRING: return put_string(decoder, bytes);
	case VDI_K8S_BYTES: put_base64(decoder, bytes); return VD_OK;
	case VDI_K8S_MESSAGE: return put_object(decoder, vdi_k8s_child(field), bytes, depth + 1);
	case VDI_K8S_TIME:
	case VDI_K8S_MICRO_TIME: return put_time(decoder, field, bytes);
	case VDI_K8S_QUANTITY: return put_quantity(decoder, bytes);
	case VDI_K8S_INT_OR_STRING: return put_int_or_string(decoder, bytes);
	case VDI_K8S_RAW: return put_raw(decoder, bytes, depth + 1);
	case VDI_K8S_STRINGS: return put_strings(decoder, bytes);
	default: VDI_UNREACHABLE("not bytes on the wire");
	}
}

/* ---- Lists and maps ---- */

/* Writes numbers of a repeated field, packed or not. */
static vd_status put_packed(struct decoder *decoder, const struct vdi_k8s_field *field, struct vd_bytes bytes,
			    bool *comma)
{
	uint64_t integer;

	for (size_t at = 0; at < bytes.size; *comma = true) {
		if (!vdi_k8s_read_varint(bytes, &at, &integer))
			return malformed(decoder, "packed numbers are truncated");
		if (*comma)
			PUT(decoder, ",");
		put_integer(decoder, field, integer);
	}
	return VD_OK;
}

static vd_status put_list(struct decoder *decoder, const struct vdi_k8s_field *field, struct vd_bytes bytes,
			  const struct slot *slot, unsigned depth)
{
	struct vdi_k8s_part part;
	bool		    comma = false;

	PUT(decoder, "[");
	for (size_t at = slot->first; at < slot->end && !has_failed(decoder);) {
		if (!vdi_k8s_read_part(bytes, &at, &part))
			return malformed(decoder, "a list is truncated");
		if (part.number != field->number)
			continue;
		if (is_integer(field) && part.wire == VDI_K8S_WIRE_BYTES) {
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
	struct vdi_k8s_part part;

	*ret_entry = (struct entry) { .key = VD_BYTES_NONE };
	for (size_t at = 0; at < bytes.size;) {
		if (!vdi_k8s_read_part(bytes, &at, &part) ||
		    (part.number <= 2 && part.wire != VDI_K8S_WIRE_BYTES))
			return false;
		if (part.number == 1)
			ret_entry->key = part.bytes;
		else if (part.number == 2)
			ret_entry->value = part.bytes;
	}
	return true;
}

static vd_status put_entry(struct decoder *decoder, const struct vdi_k8s_field *field,
			   const struct entry *entry, bool *comma, unsigned depth)
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

	return order ? order : VDI_ORDER(left->place, right->place);
}

static vd_status put_sorted(struct decoder *decoder, const struct vdi_k8s_field *field, struct entry *entries,
			    size_t count, unsigned depth)
{
	bool comma = false;

	qsort(entries, count, sizeof *entries, compare_entries);
	for (size_t i = 0; i < count; i++)
		if (i + 1 == count || !vd_bytes_equal(entries[i].key, entries[i + 1].key))
			VDI_TRY(put_entry(decoder, field, &entries[i], &comma, depth));
	return VD_OK;
}

static vd_status put_unsorted(struct decoder *decoder, const struct vdi_k8s_field *field,
			      struct vd_bytes bytes, const struct slot *slot, unsigned depth)
{
	struct entry	   *entries = vdi_calloc(slot->count, sizeof *entries);
	size_t		    count = 0;
	vd_status	    status = VD_OK;
	struct vdi_k8s_part part;

	if (entries == NULL)
		return vd_error_set(decoder->reterr, VD_NOMEM, "out of memory");
	for (size_t at = slot->first; at < slot->end && status == VD_OK;) {
		if (!vdi_k8s_read_part(bytes, &at, &part))
			status = malformed(decoder, "a map is truncated");
		else if (part.number != field->number)
			continue;
		else if (!read_entry(part.bytes, &entries[count]))
			status = malformed(decoder, "an entry of a map is not a message");
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

static vd_status put_map(struct decoder *decoder, const struct vdi_k8s_field *field, struct vd_bytes bytes,
			 const struct slot *slot, unsigned depth)
{
	struct vd_bytes	    previous = VD_BYTES_NONE;
	struct entry	    entry;
	struct vdi_k8s_part part;
	size_t		    start;
	bool		    comma = false;

	PUT(decoder, "{");
	settle(decoder);
	start = decoder->out->size;
	for (size_t at = slot->first; at < slot->end && !has_failed(decoder);) {
		if (!vdi_k8s_read_part(bytes, &at, &part))
			return malformed(decoder, "a map is truncated");
		if (part.number != field->number)
			continue;
		if (!read_entry(part.bytes, &entry))
			return malformed(decoder, "an entry of a map is not a message");
		if (comma && vd_bytes_compare(previous, entry.key) >= 0) {
			if (decoder->at)
				decoder->at = decoder->out->data + start;
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

static bool wire_fits(const struct vdi_k8s_field *field, enum vdi_k8s_wire wire)
{
	if (wire == VDI_K8S_WIRE_BYTES)
		return !is_integer(field) || field->container == VDI_K8S_LIST;
	return wire == VDI_K8S_WIRE_VARINT && is_integer(field);
}

/* First scan: finds the fields. Slots of absent fields stay uninitialized. */
static vd_status find_fields(struct decoder *decoder, const struct vdi_k8s_message *message,
			     struct vd_bytes bytes, struct slot *slots, uint64_t *ret_present)
{
	const struct vdi_k8s_field *fields = vdi_k8s_fields(message);
	unsigned		    next = 0;
	uint64_t		    present = 0;

	for (size_t at = 0; at < bytes.size;) {
		size_t		    tag = at;
		struct vdi_k8s_part part;
		int		    index;

		if (!vdi_k8s_read_part(bytes, &at, &part))
			return malformed(decoder, "a field is truncated or has an invalid type");
		index = vdi_k8s_field_by_number(message, part.number, &next);
		if (index < 0)
			continue;
		if (!wire_fits(&fields[index], part.wire))
			return vd_error_set(decoder->reterr, VD_BAD_REQUEST,
					    "malformed protobuf: field %s has wire type %d",
					    fields[index].name_size ? fields[index].quoted :
								      "of an inlined message",
					    part.wire);
		if (!(present >> index & 1)) {
			present |= (uint64_t) 1 << index;
			slots[index].first = (uint32_t) tag;
			slots[index].count = 0;
		}
		slots[index].count++;
		slots[index].last = (uint32_t) tag;
		slots[index].end = (uint32_t) at;
	}
	*ret_present = present;
	return VD_OK;
}

/* Returns the last part of a field that is not repeated. */
static struct vdi_k8s_part last_part(struct vd_bytes bytes, const struct slot *slot)
{
	struct vdi_k8s_part part = { .integer = 0 };
	size_t		    at = slot->last;

	if (slot->count && !vdi_k8s_read_part(bytes, &at, &part))
		VDI_UNREACHABLE("the first scan accepted this field");
	return part;
}

/* Concatenates all parts of a message. The caller frees *ret_copy. */
static vd_status join_parts(struct decoder *decoder, const struct vdi_k8s_field *field, struct vd_bytes bytes,
			    const struct slot *slot, char **ret_copy, struct vd_bytes *ret_bytes)
{
	size_t		    room = slot->end - slot->first, size = 0;
	struct vdi_k8s_part part;
	char		   *copy;

	if (room > decoder->merged_left)
		return vd_error_set(decoder->reterr, VD_TOO_BIG,
				    "malformed protobuf: messages in several parts are too large");
	decoder->merged_left -= room;
	copy = vdi_alloc(room);
	if (copy == NULL)
		return vd_error_set(decoder->reterr, VD_NOMEM, "out of memory");
	for (size_t at = slot->first; at < slot->end;) {
		if (!vdi_k8s_read_part(bytes, &at, &part))
			VDI_UNREACHABLE("the first scan accepted this field");
		if (part.number == field->number) {
			memcpy(copy + size, part.bytes.data, part.bytes.size);
			size += part.bytes.size;
		}
	}
	*ret_copy = copy;
	*ret_bytes = (struct vd_bytes) { copy, size };
	return VD_OK;
}

static vd_status put_members(struct decoder *decoder, const struct vdi_k8s_message *message,
			     struct vd_bytes bytes, bool *comma, unsigned depth);

static vd_status put_single(struct decoder *decoder, const struct vdi_k8s_field *field, struct vd_bytes value,
			    bool *comma, unsigned depth)
{
	if (field->empty == VDI_K8S_INLINE)
		return put_members(decoder, vdi_k8s_child(field), value, comma, depth + 1);
	put_name(decoder, field, comma);
	return put_value(decoder, field, value, depth);
}

/* Writes a message, or a value that is a message on the wire; if absent it is still written, unless it is a
 * pointer. */
static vd_status put_message_field(struct decoder *decoder, const struct vdi_k8s_field *field,
				   struct vd_bytes bytes, const struct slot *slot, bool *comma,
				   unsigned depth)
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

static vd_status put_scalar_field(struct decoder *decoder, const struct vdi_k8s_field *field,
				  struct vd_bytes bytes, const struct slot *slot, bool *comma)
{
	struct vdi_k8s_part part = last_part(bytes, slot);
	bool		    zero = is_integer(field) ? part.integer == 0 : part.bytes.size == 0;

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

static vd_status put_field(struct decoder *decoder, const struct vdi_k8s_field *field, struct vd_bytes bytes,
			   const struct slot *slot, bool *comma, unsigned depth)
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

static vd_status put_members(struct decoder *decoder, const struct vdi_k8s_message *message,
			     struct vd_bytes bytes, bool *comma, unsigned depth)
{
	const struct vdi_k8s_field *fields = vdi_k8s_fields(message);
	struct slot		    slots[VDI_K8S_FIELDS_MAX];
	static const struct slot    absent = { 0 };
	uint64_t		    present = 0;

	if (depth > VDI_K8S_PROTO_DEPTH_MAX)
		return malformed(decoder, "nested too deeply");
	VDI_TRY(find_fields(decoder, message, bytes, slots, &present));
	for (uint64_t rest = present | message->always; rest; rest &= rest - 1) {
		int i = __builtin_ctzll(rest);

		VDI_TRY(put_field(decoder, &fields[i], bytes, present >> i & 1 ? &slots[i] : &absent, comma,
				  depth));
	}
	if (has_failed(decoder)) /* out of memory or too big: stop */
		return vd_error_set(decoder->reterr, decoder->out->status, "%s",
				    vd_status_sentence(decoder->out->status));
	return VD_OK;
}

static vd_status put_object(struct decoder *decoder, const struct vdi_k8s_message *message,
			    struct vd_bytes bytes, unsigned depth)
{
	bool comma = false;

	PUT(decoder, "{");
	VDI_TRY(put_members(decoder, message, bytes, &comma, depth));
	PUT(decoder, "}");
	return VD_OK;
}

/* ---- Envelopes ---- */

static vd_status put_envelope(struct decoder *decoder, struct vd_bytes value, unsigned depth)
{
	const struct vdi_k8s_message *message;
	struct vdi_k8s_envelope	      envelope;
	bool			      comma = true;

	VDI_TRY(vdi_k8s_proto_open(value, &envelope, decoder->reterr));
	message = vdi_k8s_kind_find(envelope.api_version, envelope.kind);
	if (message == NULL)
		return vd_error_set(
			decoder->reterr, VD_UNSUPPORTED,
			"there is no protobuf conversion table for kind \"%.*s\" of apiVersion \"%.*s\"",
			(int) vdi_k8s_proto_shown(envelope.kind).size, (const char *) envelope.kind.data,
			(int) vdi_k8s_proto_shown(envelope.api_version).size,
			(const char *) envelope.api_version.data);
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
	settle(&decoder);
	if (out->status != VD_OK)
		status = vd_error_set(reterr, out->status, "%s", vd_status_sentence(out->status));
	if (status != VD_OK)
		out->size = before;
	return status;
}
