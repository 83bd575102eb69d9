/* Converts JSON to protobuf, and writes messages field by field.
 *
 * The encoder reads the JSON text once and writes as it reads, without a tree. A message's length precedes
 * its content but is known only after it: one byte is reserved, and longer contents are moved by the missing
 * bytes. The members of an inlined message (such as Volume's source) are among those of the outer message:
 * the first pass skips them, and if there was one, a second pass over the object writes them, so that each
 * message is written in one piece.
 */
#include <stdio.h>

#include "base64.h"
#include "json_text.h"
#include "k8s_proto.h"
#include "k8s_proto_wire.h"
#include "k8s_time.h"

#define PATH_MAX_SIZE 256
#define VARINT_MAX 10

/* A step of the path from the root: a member or an element. */
struct step {
	struct vd_bytes name; /* member name as in the text; empty: an element */
	size_t		index;
};

struct encoder {
	const char			   *at, *end;
	struct vdi_buffer		   *out;
	struct vd_error			   *reterr;
	const struct vdi_k8s_proto_options *options;
	/* Message whose resourceVersion the options replace; NULL: none. */
	const struct vdi_k8s_message *metadata;
	unsigned		      depth;
	struct step		      steps[VDI_K8S_PROTO_DEPTH_MAX + 1];
};

/* ---- The wire ---- */

static inline unsigned put_varint_at(char *at, uint64_t value)
{
	return (unsigned) (vdi_varint_put((uint8_t *) at, value) - (uint8_t *) at);
}

/* Reserves room as vdi_buffer_reserve; the caller adds the written bytes to out->size. */
static inline char *room_for(struct vdi_buffer *out, size_t size)
{
	if (out->capacity - out->size >= size && out->status == VD_OK && out->data)
		return out->data + out->size;
	return vdi_buffer_reserve(out, size);
}

static inline unsigned put_tag_at(char *at, unsigned number, enum vdi_k8s_wire wire)
{
	return put_varint_at(at, (uint64_t) number << 3 | wire);
}

void vdi_k8s_proto_varint(struct vdi_buffer *out, unsigned number, uint64_t value)
{
	char	*room = room_for(out, 2 * VARINT_MAX);
	unsigned size;

	if (room) {
		size = put_tag_at(room, number, VDI_K8S_WIRE_VARINT);
		out->size += size + put_varint_at(room + size, value);
	}
}

void vdi_k8s_proto_bytes(struct vdi_buffer *out, unsigned number, struct vd_bytes bytes)
{
	char	*room = room_for(out, 2 * VARINT_MAX + bytes.size);
	unsigned size;

	if (room) {
		size = put_tag_at(room, number, VDI_K8S_WIRE_BYTES);
		size += put_varint_at(room + size, bytes.size);
		if (bytes.size)
			memcpy(room + size, bytes.data, bytes.size);
		out->size += size + bytes.size;
	}
}

size_t vdi_k8s_proto_begin(struct vdi_buffer *out, unsigned number)
{
	char *room = room_for(out, VARINT_MAX + 1);

	if (room)
		out->size += put_tag_at(room, number, VDI_K8S_WIRE_BYTES) + 1;
	return out->size;
}

void vdi_k8s_proto_end(struct vdi_buffer *out, size_t mark)
{
	size_t	 size = out->size - mark;
	char	 length[VARINT_MAX];
	unsigned more;
	char	*content;

	if (size < 0x80 && out->status == VD_OK) {
		out->data[mark - 1] = (char) size;
		return;
	}
	more = put_varint_at(length, size) - 1;
	if (room_for(out, more) == NULL)
		return;
	content = out->data + mark;
	memmove(content + more, content, size);
	out->size += more;
	memcpy(content - 1, length, more + 1);
}

size_t vdi_k8s_proto_envelope_begin(struct vdi_buffer *out, struct vd_bytes api_version, struct vd_bytes kind)
{
	size_t mark;

	vdi_buffer_append(out, (struct vd_bytes) { "k8s", 4 });
	mark = vdi_k8s_proto_begin(out, 1);
	vdi_k8s_proto_bytes(out, 1, api_version);
	vdi_k8s_proto_bytes(out, 2, kind);
	vdi_k8s_proto_end(out, mark);
	return vdi_k8s_proto_begin(out, 2);
}

void vdi_k8s_proto_envelope_end(struct vdi_buffer *out, size_t mark)
{
	vdi_k8s_proto_end(out, mark);
	vdi_k8s_proto_bytes(out, 3, VD_BYTES_NONE);
	vdi_k8s_proto_bytes(out, 4, VD_BYTES_NONE);
}

/* ---- Where we are ---- */

/* Writes the path for messages; if it is too long, its end is cut. */
static struct vd_bytes write_path(const struct encoder *encoder, char buffer[PATH_MAX_SIZE])
{
	size_t size = 0;

	for (unsigned i = 1; i <= encoder->depth && size < PATH_MAX_SIZE; i++) {
		const struct step *step = &encoder->steps[i];
		int		   written;

		if (step->name.data)
			written = snprintf(buffer + size, PATH_MAX_SIZE - size, "%s%.*s", size ? "." : "",
					   (int) VDI_MIN(step->name.size, (size_t) PATH_MAX_SIZE),
					   (const char *) step->name.data);
		else
			written = snprintf(buffer + size, PATH_MAX_SIZE - size, "[%zu]", step->index);
		size = VDI_MIN(size + (size_t) written, (size_t) PATH_MAX_SIZE - 1);
	}
	if (size == PATH_MAX_SIZE - 1) /* cut, possibly within a character */
		while (size > 0 && (buffer[size - 1] & 0x80))
			size--;
	return (struct vd_bytes) { buffer, size };
}

static vd_status wrong(const struct encoder *encoder, const char *wanted)
{
	char		path[PATH_MAX_SIZE];
	struct vd_bytes text = write_path(encoder, path);

	return vd_error_set(encoder->reterr, VD_BAD_REQUEST, "%.*s: %s", (int) text.size,
			    (const char *) text.data, wanted);
}

static vd_status enter(struct encoder *encoder, struct vd_bytes name, size_t index)
{
	if (encoder->depth == VDI_K8S_PROTO_DEPTH_MAX)
		return vd_error_set(encoder->reterr, VD_BAD_REQUEST, "nested deeper than %d",
				    VDI_K8S_PROTO_DEPTH_MAX);
	encoder->steps[++encoder->depth] = (struct step) { name, index };
	return VD_OK;
}

static void leave(struct encoder *encoder)
{
	encoder->depth--;
}

/* ---- Reading JSON that is known to be valid; what is not ends early or reads as something else ---- */

static inline char peek(struct encoder *encoder)
{
	if (encoder->at<encoder->end && * encoder->at> ' ')
		return *encoder->at;
	while (encoder->at < encoder->end &&
	       (*encoder->at == ' ' || *encoder->at == '\n' || *encoder->at == '\t' || *encoder->at == '\r'))
		encoder->at++;
	return encoder->at < encoder->end ? *encoder->at : 0;
}

static bool take(struct encoder *encoder, char wanted)
{
	if (peek(encoder) != wanted || wanted == 0)
		return false;
	encoder->at++;
	return true;
}

/* Finds the first quote or backslash, eight bytes at a time. */
static const char *find_special(const char *at, const char *end)
{
	const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;

	for (; end - at >= 8; at += 8) {
		uint64_t word, quote, backslash;

		memcpy(&word, at, 8);
		quote = word ^ ones * '"';
		backslash = word ^ ones * '\\';
		if ((((quote - ones) & ~quote) | ((backslash - ones) & ~backslash)) & tops)
			break;
	}
	while (at < end && *at != '"' && *at != '\\')
		at++;
	return at;
}

/* Reads a string; *ret_text is its content without quotes. */
static bool take_string(struct encoder *encoder, struct vd_bytes *ret_text, bool *ret_escaped)
{
	const char *from, *at;
	bool	    escaped = false;

	if (!take(encoder, '"'))
		return false;
	from = encoder->at;
	for (at = find_special(from, encoder->end); at < encoder->end && *at == '\\';
	     at = find_special(at + 1, encoder->end)) {
		escaped = true;
		if (++at == encoder->end)
			return false;
	}
	if (at == encoder->end)
		return false;
	*ret_text = (struct vd_bytes) { from, (size_t) (at - from) };
	*ret_escaped = escaped;
	encoder->at = at + 1;
	return true;
}

static bool ends_scalar(char character)
{
	return character == ',' || character == '}' || character == ']' || character == ' ' ||
	       character == '\n' || character == '\t' || character == '\r';
}

/* Reads a literal: everything up to a delimiter. */
static struct vd_bytes take_word(struct encoder *encoder)
{
	const char *from = encoder->at;

	while (encoder->at < encoder->end && !ends_scalar(*encoder->at))
		encoder->at++;
	return (struct vd_bytes) { from, (size_t) (encoder->at - from) };
}

/* Skips a value of any type by counting brackets. */
static bool skip_value(struct encoder *encoder, struct vd_bytes *ret_text)
{
	struct vd_bytes text;
	size_t		depth = 0;
	const char     *from;
	bool		escaped;

	(void) peek(encoder);
	from = encoder->at;
	do {
		switch (peek(encoder)) {
		case 0: return false;
		case '"':
			if (!take_string(encoder, &text, &escaped))
				return false;
			break;
		case '{':
		case '[':
			depth++;
			encoder->at++;
			break;
		case '}':
		case ']':
			if (depth == 0)
				return false;
			depth--;
			encoder->at++;
			break;
		case ',':
		case ':':
			encoder->at++;
			if (depth == 0)
				return false;
			break;
		default:
			if (take_word(encoder).size == 0)
				return false;
		}
	} while (depth > 0);
	*ret_text = (struct vd_bytes) { from, (size_t) (encoder->at - from) };
	return true;
}

static bool take_null(struct encoder *encoder)
{
	if (peek(encoder) != 'n')
		return false;
	(void) take_word(encoder);
	return true;
}

/* Moves to the next member or element of an open object or array; returns true if there is one. first starts
 * as true. */
static bool next_item(struct encoder *encoder, char close, bool *first, bool *ret_broken)
{
	if (take(encoder, close))
		return false;
	if (!*first && !take(encoder, ',')) {
		*ret_broken = true;
		return false;
	}
	*first = false;
	return true;
}

/* ---- Values ---- */

static vd_status put_object(struct encoder *encoder, const struct vdi_k8s_message *message);

static vd_status read_integer(struct encoder *encoder, int64_t low, int64_t high, int64_t *ret_value)
{
	struct vd_bytes word;
	const char     *digits;
	uint64_t	value = 0;
	bool		negative;

	if (peek(encoder) != '-' && (peek(encoder) < '0' || peek(encoder) > '9'))
		return wrong(encoder, "is not a number");
	word = take_word(encoder);
	digits = word.data;
	negative = *digits == '-';
	if (word.size - negative == 0 || word.size - negative > 19)
		return wrong(encoder, "is out of range");
	for (size_t i = negative; i < word.size; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			return wrong(encoder, "is not a whole number");
		value = value * 10 + (unsigned) (digits[i] - '0');
	}
	if (negative ? value > -(uint64_t) low : value > (uint64_t) high)
		return wrong(encoder, "is out of range");
	*ret_value = negative ? (int64_t) -value : (int64_t) value;
	return VD_OK;
}

static vd_status read_bool(struct encoder *encoder, int64_t *ret_value)
{
	char character = peek(encoder);

	if (character != 't' && character != 'f')
		return wrong(encoder, "is neither true nor false");
	(void) take_word(encoder);
	*ret_value = character == 't';
	return VD_OK;
}

static vd_status read_number(struct encoder *encoder, enum vdi_k8s_type type, int64_t *ret_value)
{
	if (type == VDI_K8S_BOOL)
		return read_bool(encoder, ret_value);
	if (type == VDI_K8S_INT32)
		return read_integer(encoder, INT32_MIN, INT32_MAX, ret_value);
	return read_integer(encoder, INT64_MIN, INT64_MAX, ret_value);
}

static void put_text(struct encoder *encoder, unsigned number, struct vd_bytes text, bool escaped)
{
	size_t mark;
	char  *room;

	if (!escaped) {
		vdi_k8s_proto_bytes(encoder->out, number, text);
		return;
	}
	mark = vdi_k8s_proto_begin(encoder->out, number);
	room = vdi_buffer_reserve(encoder->out, text.size);
	if (room) {
		vdi_buffer_commit(encoder->out, vdi_json_unescape(text, room));
		vdi_k8s_proto_end(encoder->out, mark);
	}
}

static vd_status put_string(struct encoder *encoder, unsigned number)
{
	struct vd_bytes text;
	bool		escaped;

	if (!take_string(encoder, &text, &escaped))
		return wrong(encoder, "is not a string");
	put_text(encoder, number, text, escaped);
	return VD_OK;
}

/* Removes line breaks from base64 text, which Go's decoder ignores and JSON escapes. */
static struct vd_bytes unfold(struct vd_bytes text, char *room)
{
	size_t size = vdi_json_unescape(text, room), kept = 0;

	for (size_t i = 0; i < size; i++)
		if (room[i] != '\n' && room[i] != '\r')
			room[kept++] = room[i];
	return (struct vd_bytes) { room, kept };
}

static vd_status put_base64(struct encoder *encoder, unsigned number)
{
	struct vd_bytes text;
	bool		escaped;
	size_t		mark, size = 0;
	char	       *room;

	if (!take_string(encoder, &text, &escaped))
		return wrong(encoder, "is not base64 text");
	mark = vdi_k8s_proto_begin(encoder->out, number);
	room = vdi_buffer_reserve(encoder->out,
				  VDI_BASE64_DECODED_MAX(text.size) + (escaped ? text.size : 0));
	if (room == NULL)
		return VD_OK; /* failures stay recorded in the buffer */
	if (escaped)
		text = unfold(text, room + VDI_BASE64_DECODED_MAX(text.size));
	if (vdi_base64_decode(VDI_BASE64_STANDARD, text, room, &size, NULL) != VD_OK)
		return wrong(encoder, "is not base64 text");
	vdi_buffer_commit(encoder->out, size);
	vdi_k8s_proto_end(encoder->out, mark);
	return VD_OK;
}

static vd_status put_time(struct encoder *encoder, unsigned number, bool micro)
{
	struct vd_bytes text;
	int64_t		seconds;
	int32_t		nanoseconds;
	bool		escaped;
	size_t		mark;

	if (!take_string(encoder, &text, &escaped) || escaped ||
	    !vdi_k8s_time_parse(text, &seconds, &nanoseconds))
		return wrong(encoder, "is not a time (RFC 3339)");
	nanoseconds = micro ? nanoseconds / 1000 * 1000 : 0;
	mark = vdi_k8s_proto_begin(encoder->out, number);
	if (seconds != VDI_K8S_TIME_ZERO_S || nanoseconds) {
		vdi_k8s_proto_varint(encoder->out, 1, (uint64_t) seconds);
		vdi_k8s_proto_varint(encoder->out, 2, (uint64_t) nanoseconds);
	}
	vdi_k8s_proto_end(encoder->out, mark);
	return VD_OK;
}

static vd_status put_quantity(struct encoder *encoder, unsigned number)
{
	size_t		mark = vdi_k8s_proto_begin(encoder->out, number);
	struct vd_bytes text;
	bool		escaped;

	if (peek(encoder) == '"') {
		if (!take_string(encoder, &text, &escaped) || text.size == 0)
			return wrong(encoder, "is not a quantity");
		put_text(encoder, 1, text, escaped);
	} else {
		if (peek(encoder) != '-' && (peek(encoder) < '0' || peek(encoder) > '9'))
			return wrong(encoder, "is not a quantity");
		vdi_k8s_proto_bytes(encoder->out, 1, take_word(encoder));
	}
	vdi_k8s_proto_end(encoder->out, mark);
	return VD_OK;
}

static vd_status put_int_or_string(struct encoder *encoder, unsigned number)
{
	size_t	mark = vdi_k8s_proto_begin(encoder->out, number);
	int64_t value;

	if (peek(encoder) == '"') {
		vdi_k8s_proto_varint(encoder->out, 1, 1);
		VDI_TRY(put_string(encoder, 3));
	} else {
		VDI_TRY(read_integer(encoder, INT32_MIN, INT32_MAX, &value));
		vdi_k8s_proto_varint(encoder->out, 1, 0);
		vdi_k8s_proto_varint(encoder->out, 2, (uint64_t) value);
	}
	vdi_k8s_proto_end(encoder->out, mark);
	return VD_OK;
}

static vd_status put_raw(struct encoder *encoder, unsigned number)
{
	size_t		mark = vdi_k8s_proto_begin(encoder->out, number), inner;
	struct vd_bytes text;
	char	       *room;

	if (!skip_value(encoder, &text))
		return wrong(encoder, "is not JSON");
	inner = vdi_k8s_proto_begin(encoder->out, 1);
	room = vdi_buffer_reserve(encoder->out, text.size);
	if (room == NULL)
		return VD_OK; /* failures stay recorded in the buffer */
	vdi_buffer_commit(encoder->out, vdi_json_minify(text, room));
	vdi_k8s_proto_end(encoder->out, inner);
	vdi_k8s_proto_end(encoder->out, mark);
	return VD_OK;
}

static vd_status put_strings(struct encoder *encoder, unsigned number)
{
	size_t mark = vdi_k8s_proto_begin(encoder->out, number), index = 0;
	bool   first = true, broken = false;

	if (!take(encoder, '['))
		return wrong(encoder, "is not a list");
	while (next_item(encoder, ']', &first, &broken)) {
		VDI_TRY(enter(encoder, VD_BYTES_NONE, index++));
		if (take_null(encoder))
			vdi_k8s_proto_bytes(encoder->out, 1, VD_BYTES_NONE);
		else
			VDI_TRY(put_string(encoder, 1));
		leave(encoder);
	}
	if (broken)
		return wrong(encoder, "is not JSON");
	vdi_k8s_proto_end(encoder->out, mark);
	return VD_OK;
}

/* Writes a value as field `number`; the caller handles null. */
static vd_status put_value(struct encoder *encoder, const struct vdi_k8s_field *field, unsigned number)
{
	int64_t value;
	size_t	mark;

	switch (field->type) {
	case VDI_K8S_BOOL:
	case VDI_K8S_INT32:
	case VDI_K8S_INT64:
		VDI_TRY(read_number(encoder, field->type, &value));
		vdi_k8s_proto_varint(encoder->out, number, (uint64_t) value);
		return VD_OK;
	case VDI_K8S_STRING: return put_string(encoder, number);
	case VDI_K8S_BYTES: return put_base64(encoder, number);
	case VDI_K8S_MESSAGE:
		mark = vdi_k8s_proto_begin(encoder->out, number);
		VDI_TRY(put_object(encoder, vdi_k8s_child(field)));
		vdi_k8s_proto_end(encoder->out, mark);
		return VD_OK;
	case VDI_K8S_TIME:
	case VDI_K8S_MICRO_TIME: return put_time(encoder, number, field->type == VDI_K8S_MICRO_TIME);
	case VDI_K8S_QUANTITY: return put_quantity(encoder, number);
	case VDI_K8S_INT_OR_STRING: return put_int_or_string(encoder, number);
	case VDI_K8S_RAW: return put_raw(encoder, number);
	case VDI_K8S_STRINGS: return put_strings(encoder, number);
	default: VDI_UNREACHABLE("type without an encoder");
	}
}

/* Writes the zero value for null in a list, where it keeps its position. Everything but numbers, including a
 * zero time or quantity, is an empty message. */
static void put_zero(struct encoder *encoder, const struct vdi_k8s_field *field)
{
	if (field->type <= VDI_K8S_INT64)
		vdi_k8s_proto_varint(encoder->out, field->number, 0);
	else
		vdi_k8s_proto_bytes(encoder->out, field->number, VD_BYTES_NONE);
}

static vd_status put_list(struct encoder *encoder, const struct vdi_k8s_field *field)
{
	bool   first = true, broken = false;
	size_t index = 0;

	if (!take(encoder, '['))
		return wrong(encoder, "is not a list");
	while (next_item(encoder, ']', &first, &broken)) {
		VDI_TRY(enter(encoder, VD_BYTES_NONE, index++));
		if (take_null(encoder))
			put_zero(encoder, field);
		else
			VDI_TRY(put_value(encoder, field, field->number));
		leave(encoder);
	}
	return broken ? wrong(encoder, "is not JSON") : VD_OK;
}

static vd_status put_map(struct encoder *encoder, const struct vdi_k8s_field *field)
{
	bool		first = true, broken = false, escaped;
	struct vd_bytes key;

	if (!take(encoder, '{'))
		return wrong(encoder, "is not an object");
	while (next_item(encoder, '}', &first, &broken)) {
		size_t mark = vdi_k8s_proto_begin(encoder->out, field->number);

		if (!take_string(encoder, &key, &escaped) || !take(encoder, ':'))
			return wrong(encoder, "is not JSON");
		VDI_TRY(enter(encoder, key, 0));
		put_text(encoder, 1, key, escaped);
		if (!take_null(encoder))
			VDI_TRY(put_value(encoder, field, 2));
		leave(encoder);
		vdi_k8s_proto_end(encoder->out, mark);
	}
	return broken ? wrong(encoder, "is not JSON") : VD_OK;
}

/* ---- Objects ---- */

static vd_status put_field(struct encoder *encoder, const struct vdi_k8s_field *field)
{
	if (take_null(encoder))
		return VD_OK;
	if (field->container == VDI_K8S_LIST)
		return put_list(encoder, field);
	if (field->container == VDI_K8S_MAP)
		return put_map(encoder, field);
	return put_value(encoder, field, field->number);
}

static vd_status skip_unknown(struct encoder *encoder, const struct vdi_k8s_message *message,
			      struct vd_bytes key, bool inlined)
{
	struct vd_bytes value;
	char		path[PATH_MAX_SIZE];
	bool		known = message->has_kind && (vd_bytes_equal(key, vd_bytes_of("kind")) ||
					      vd_bytes_equal(key, vd_bytes_of("apiVersion")));

	if (!known && !inlined && encoder->options && encoder->options->unknown)
		encoder->options->unknown(encoder->options->arg, write_path(encoder, path));
	return skip_value(encoder, &value) ? VD_OK : wrong(encoder, "is not JSON");
}

/* Writes the member whose key was read. Skips and notes members of an inlined message. */
static vd_status put_member(struct encoder *encoder, const struct vdi_k8s_message *message,
			    struct vd_bytes key, unsigned *next, bool inlined, uint64_t *inner)
{
	const struct vdi_k8s_field *field;
	struct vd_bytes		    value;
	int			    index = vdi_k8s_field_by_name(message, key, next);

	if (index < 0)
		return skip_unknown(encoder, message, key, inlined);
	field = vdi_k8s_fields(message) + index;
	if (field->empty == VDI_K8S_INLINE)
		*inner |= (uint64_t) 1 << index;
	else if (message != encoder->metadata || encoder->depth != 2 ||
		 !vd_bytes_equal(key, vd_bytes_of("resourceVersion")))
		return put_field(encoder, field);
	return skip_value(encoder, &value) ? VD_OK : wrong(encoder, "is not JSON");
}

/* Writes the members that belong to message, of the object at the current position. */
static vd_status put_members(struct encoder *encoder, const struct vdi_k8s_message *message, bool inlined,
			     unsigned levels)
{
	const char     *start = encoder->at;
	char		unescaped[64];
	bool		first = true, broken = false, escaped;
	unsigned	next = 0;
	uint64_t	inner = 0;
	struct vd_bytes key;

	if (!take(encoder, '{'))
		return wrong(encoder, "is not an object");
	while (next_item(encoder, '}', &first, &broken)) {
		if (!take_string(encoder, &key, &escaped) || !take(encoder, ':'))
			return wrong(encoder, "is not JSON");
		if (escaped && key.size <= sizeof unescaped)
			key = (struct vd_bytes) { unescaped, vdi_json_unescape(key, unescaped) };
		VDI_TRY(enter(encoder, key, 0));
		VDI_TRY(put_member(encoder, message, key, &next, inlined, &inner));
		leave(encoder);
		if (encoder->out->status != VD_OK)
			return encoder->out->status;
	}
	if (broken)
		return wrong(encoder, "is not JSON");
	VDI_CHECK(inner == 0 || levels > 0); /* the table inlines no deeper */
	for (unsigned i = 0; inner; i++, inner >>= 1)
		if (inner & 1) {
			const struct vdi_k8s_field *field = vdi_k8s_fields(message) + i;
			size_t			    mark = vdi_k8s_proto_begin(encoder->out, field->number);

			encoder->at = start;
			VDI_TRY(put_members(encoder, vdi_k8s_child(field), true, levels - 1));
			vdi_k8s_proto_end(encoder->out, mark);
		}
	return VD_OK;
}

static vd_status put_object(struct encoder *encoder, const struct vdi_k8s_message *message)
{
	(void) peek(encoder);
	VDI_TRY(put_members(encoder, message, false, 4));
	if (message == encoder->metadata && encoder->depth == 1)
		vdi_k8s_proto_bytes(encoder->out, 6, encoder->options->resource_version);
	return VD_OK;
}

vd_status vdi_k8s_proto_from_json(const struct vdi_k8s_message *message, struct vd_bytes json,
				  const struct vdi_k8s_proto_options *options, struct vdi_buffer *out,
				  struct vd_error *reterr)
{
	struct encoder encoder = {
		.at = json.data,
		.end = (const char *) json.data + json.size,
		.out = out,
		.reterr = reterr,
		.options = options,
		.metadata = options && options->resource_version.size ? vdi_k8s_object_meta() : NULL,
	};
	size_t	  before = out->size;
	vd_status status;

	if (json.size > VDI_K8S_PROTO_SIZE_MAX)
		return vd_error_set(reterr, VD_TOO_BIG, "more than %zu bytes of JSON",
				    VDI_K8S_PROTO_SIZE_MAX);
	status = put_object(&encoder, message);
	if (status == VD_OK && peek(&encoder) != 0)
		status = vd_error_set(reterr, VD_BAD_REQUEST, "unexpected text after the object");
	if (out->status != VD_OK)
		status = vd_error_set(reterr, out->status, "%s", vd_status_sentence(out->status));
	if (status != VD_OK)
		out->size = before;
	return status;
}
