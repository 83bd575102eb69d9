/* One growing buffer holds the texts of all errors, field and message in turn; the list holds offsets into
 * it. */
#include "field_errors.h"

#include <stdlib.h>

struct word {
	const char *reason;
	const char *words;
	bool	    has_value;
};

static const struct word words_of[] = {
	[VDI_FIELD_ERROR_REQUIRED] = { "FieldValueRequired", "Required value", false },
	[VDI_FIELD_ERROR_DUPLICATE] = { "FieldValueDuplicate", "Duplicate value", true },
	[VDI_FIELD_ERROR_INVALID] = { "FieldValueInvalid", "Invalid value", true },
	[VDI_FIELD_ERROR_TYPE_INVALID] = { "FieldValueTypeInvalid", "Invalid value", true },
	[VDI_FIELD_ERROR_NOT_SUPPORTED] = { "FieldValueNotSupported", "Unsupported value", true },
	[VDI_FIELD_ERROR_FORBIDDEN] = { "FieldValueForbidden", "Forbidden", false },
	[VDI_FIELD_ERROR_TOO_LONG] = { "FieldValueTooLong", "Too long", false },
	[VDI_FIELD_ERROR_TOO_MANY] = { "FieldValueTooMany", "Too many", true },
};

void vdi_field_errors_fini(struct vdi_field_errors *field_errors)
{
	vdi_out_fini(&field_errors->text);
	vdi_out_fini(&field_errors->document);
	vdi_out_fini(&field_errors->causes);
	memset(field_errors, 0, sizeof *field_errors);
}

void vdi_field_errors_reset(struct vdi_field_errors *field_errors)
{
	vdi_out_reset(&field_errors->text);
	field_errors->kept = field_errors->count = 0;
	field_errors->failed = false;
}

void vdi_field_errors_truncate(struct vdi_field_errors *field_errors, size_t kept, size_t count)
{
	VDI_CHECK(kept <= field_errors->kept && count <= field_errors->count);
	field_errors->kept = kept;
	field_errors->count = count;
}

void vdi_field_errors_write_quoted(struct vdi_out *out, struct vd_bytes text)
{
	static const char escaped[] = "\"\\\a\b\f\n\r\t\v", letters[] = "\"\\abfnrtv";
	const char	 *at = text.size ? text.data : "";
	size_t		  run = 0;

	vdi_out_raw(out, "\"");
	for (size_t i = 0; i < text.size; i++) {
		const char *found = at[i] ? strchr(escaped, at[i]) : NULL;

		if (found == NULL && (unsigned char) at[i] >= ' ' && at[i] != 0x7f)
			continue;
		vdi_out_bytes(out, (struct vd_bytes) { at + run, i - run });
		run = i + 1;
		if (found)
			vdi_out_printf(out, "\\%c", letters[found - escaped]);
		else
			vdi_out_printf(out, "\\x%02x", (unsigned char) at[i]);
	}
	vdi_out_bytes(out, (struct vd_bytes) { at + run, text.size - run });
	vdi_out_raw(out, "\"");
}

/* Truncates the text written after from, at a character boundary. */
static void shorten(struct vdi_out *out, size_t from)
{
	size_t to = from + VDI_FIELD_ERROR_VALUE_SIZE;

	if (out->failed || out->size <= to)
		return;
	while (to > from && (out->data[to] & 0xC0) == 0x80)
		to--;
	out->size = to;
	vdi_out_raw(out, "...");
}

/* Returns false if the error is only counted. */
static bool begin(struct vdi_field_errors *field_errors, enum vdi_field_error_kind kind,
		  struct vd_bytes field)
{
	struct vdi_field_error *error;

	field_errors->count++;
	if (field_errors->kept == VDI_FIELD_ERRORS_MAX || field_errors->failed)
		return false;
	if (field_errors->kept == 0)
		vdi_out_reset(&field_errors->text);
	error = &field_errors->items[field_errors->kept];
	error->kind = (uint8_t) kind;
	error->field_at = (uint32_t) field_errors->text.size;
	vdi_out_bytes(&field_errors->text, field);
	shorten(&field_errors->text, error->field_at);
	error->field_size = (uint32_t) (field_errors->text.size - error->field_at);
	error->message_at = (uint32_t) field_errors->text.size;
	vdi_out_raw(&field_errors->text, words_of[kind].words);
	return true;
}

__attribute__((format(printf, 2, 0))) static void end(struct vdi_field_errors *field_errors,
						      const char *format, va_list arguments)
{
	struct vdi_field_error *error = &field_errors->items[field_errors->kept];

	if (*format) {
		size_t from = field_errors->text.size + 2;

		vdi_out_raw(&field_errors->text, ": ");
		vdi_out_vprintf(&field_errors->text, format, arguments);
		if (field_errors->text.size == from)
			field_errors->text.size -= 2;
		else
			shorten(&field_errors->text, from);
	}
	error->message_size = (uint32_t) (field_errors->text.size - error->message_at);
	field_errors->failed |= field_errors->text.failed;
	field_errors->kept += !field_errors->failed;
}

void vdi_field_errors_add(struct vdi_field_errors *field_errors, enum vdi_field_error_kind kind,
			  struct vd_bytes field, struct vd_bytes value, const char *format, ...)
{
	va_list arguments;

	if (!begin(field_errors, kind, field))
		return;
	if (words_of[kind].has_value && value.size) {
		vdi_out_raw(&field_errors->text, ": ");
		vdi_out_bytes(&field_errors->text, value);
	}
	va_start(arguments, format);
	end(field_errors, format, arguments);
	va_end(arguments);
}

void vdi_field_errors_add_text(struct vdi_field_errors *field_errors, enum vdi_field_error_kind kind,
			       struct vd_bytes field, struct vd_bytes value, const char *format, ...)
{
	va_list arguments;

	if (!begin(field_errors, kind, field))
		return;
	if (words_of[kind].has_value) {
		size_t from;

		vdi_out_raw(&field_errors->text, ": ");
		from = field_errors->text.size;
		value.size = VDI_MIN(value.size, (size_t) VDI_FIELD_ERROR_VALUE_SIZE + 4);
		vdi_field_errors_write_quoted(&field_errors->text, value);
		shorten(&field_errors->text, from);
	}
	va_start(arguments, format);
	end(field_errors, format, arguments);
	va_end(arguments);
}

void vdi_field_errors_add_node(struct vdi_field_errors *field_errors, enum vdi_field_error_kind kind,
			       struct vd_bytes field, const struct vdi_node *value, const char *format, ...)
{
	va_list arguments;

	if (!begin(field_errors, kind, field))
		return;
	if (words_of[kind].has_value) {
		size_t from;

		vdi_out_raw(&field_errors->text, ": ");
		from = field_errors->text.size;
		if (value == NULL)
			vdi_out_raw(&field_errors->text, "\"\"");
		else if (value->kind == VDI_NODE_STRING)
			vdi_field_errors_write_quoted(
				&field_errors->text,
				(struct vd_bytes) {
					value->text.data,
					VDI_MIN(value->text.size, (size_t) VDI_FIELD_ERROR_VALUE_SIZE + 4) });
		else
			vdi_tree_write_begin(&field_errors->text, value,
					     from + VDI_FIELD_ERROR_VALUE_SIZE + 4);
		shorten(&field_errors->text, from);
	}
	va_start(arguments, format);
	end(field_errors, format, arguments);
	va_end(arguments);
}

static struct vd_bytes field_of(const struct vdi_field_errors *field_errors,
				const struct vdi_field_error  *error)
{
	return (struct vd_bytes) { field_errors->text.data + error->field_at, error->field_size };
}

static struct vd_bytes message_of(const struct vdi_field_errors *field_errors,
				  const struct vdi_field_error	*error)
{
	return (struct vd_bytes) { field_errors->text.data + error->message_at, error->message_size };
}

struct vd_bytes vdi_field_errors_field(const struct vdi_field_errors *field_errors, size_t i)
{
	return field_of(field_errors, &field_errors->items[i]);
}

struct vd_bytes vdi_field_errors_text(const struct vdi_field_errors *field_errors, size_t i)
{
	return message_of(field_errors, &field_errors->items[i]);
}

/* Orders by "<field>: <message>". */
static int compare(const void *a, const void *b, void *arg)
{
	const struct vdi_field_errors *field_errors = arg;
	struct vd_bytes		       x = field_of(field_errors, a), y = field_of(field_errors, b);
	int			       order = memcmp(x.data, y.data, VDI_MIN(x.size, y.size));

	if (order == 0 && x.size != y.size)
		order = x.size < y.size ? ':' - ((const unsigned char *) y.data)[x.size] :
					  ((const unsigned char *) x.data)[y.size] - ':';
	if (order)
		return order;
	x = message_of(field_errors, a);
	y = message_of(field_errors, b);
	order = memcmp(x.data, y.data, VDI_MIN(x.size, y.size));
	return order ? order : (x.size > y.size) - (x.size < y.size);
}

void vdi_field_errors_sort(struct vdi_field_errors *field_errors)
{
	qsort_r(field_errors->items, field_errors->kept, sizeof field_errors->items[0], compare,
		field_errors);
}

static bool seen_before(const struct vdi_field_errors *field_errors, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (compare(&field_errors->items[i], &field_errors->items[index], (void *) field_errors) == 0)
			return true;
	return false;
}

/* Appends the message. As utilerrors.Aggregate, writes equal texts once and puts several in brackets. */
static void write_message(struct vdi_field_errors *field_errors, struct vdi_out *out)
{
	size_t from = out->size, written = 0;

	vdi_out_raw(out, "[");
	for (size_t i = 0; i < field_errors->kept; i++) {
		if (seen_before(field_errors, i))
			continue;
		if (written++)
			vdi_out_raw(out, ", ");
		vdi_out_bytes(out, field_of(field_errors, &field_errors->items[i]));
		vdi_out_raw(out, ": ");
		vdi_out_bytes(out, message_of(field_errors, &field_errors->items[i]));
	}
	if (field_errors->count > field_errors->kept) {
		vdi_out_printf(out, ", and %zu more", field_errors->count - field_errors->kept);
		written++;
	}
	vdi_out_raw(out, "]");
	if (written == 1 && !out->failed) {
		memmove(out->data + from, out->data + from + 1, out->size - from - 2);
		out->size -= 2;
	}
}

struct vd_bytes vdi_field_errors_message(struct vdi_field_errors *field_errors)
{
	vdi_out_reset(&field_errors->document);
	write_message(field_errors, &field_errors->document);
	return vdi_out_slice(&field_errors->document);
}

static void write_causes(struct vdi_field_errors *field_errors, struct vdi_out *out)
{
	for (size_t i = 0; i < field_errors->kept; i++) {
		vdi_out_raw(out, i ? ",{" : "{");
		vdi_out_member(out, "reason", vd_bytes_of(words_of[field_errors->items[i].kind].reason));
		vdi_out_member(out, "message", message_of(field_errors, &field_errors->items[i]));
		vdi_out_member(out, "field", field_of(field_errors, &field_errors->items[i]));
		vdi_out_raw(out, "}");
	}
}

vd_status vdi_field_errors_refuse(struct vdi_field_errors *field_errors, struct vdi_http_status *status,
				  const char *group, const char *kind, struct vd_bytes name)
{
	vdi_out_reset(&field_errors->document);
	vdi_out_reset(&field_errors->causes);
	vdi_out_printf(&field_errors->document, "%s%s%s ", kind, *group ? "." : "", group);
	vdi_field_errors_write_quoted(&field_errors->document, name);
	vdi_out_raw(&field_errors->document, " is invalid: ");
	write_message(field_errors, &field_errors->document);
	write_causes(field_errors, &field_errors->causes);
	if (field_errors->failed || field_errors->document.failed || field_errors->causes.failed) {
		vdi_http_status_set(status, 500, "InternalError", "Internal error occurred: out of memory");
		return VD_NOMEM;
	}
	vdi_http_status_set(status, 422, "Invalid", "%.*s", (int) field_errors->document.size,
			    field_errors->document.data);
	vdi_http_status_details(status, name, group, kind);
	status->long_message = vdi_out_slice(&field_errors->document);
	status->causes_text = vdi_out_slice(&field_errors->causes);
	return VD_INVALID;
}
