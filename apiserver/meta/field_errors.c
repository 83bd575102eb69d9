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
	[VDI_FAULT_REQUIRED] = { "FieldValueRequired", "Required value", false },
	[VDI_FAULT_DUPLICATE] = { "FieldValueDuplicate", "Duplicate value", true },
	[VDI_FAULT_INVALID] = { "FieldValueInvalid", "Invalid value", true },
	[VDI_FAULT_TYPE_INVALID] = { "FieldValueTypeInvalid", "Invalid value", true },
	[VDI_FAULT_NOT_SUPPORTED] = { "FieldValueNotSupported", "Unsupported value", true },
	[VDI_FAULT_FORBIDDEN] = { "FieldValueForbidden", "Forbidden", false },
	[VDI_FAULT_TOO_LONG] = { "FieldValueTooLong", "Too long", false },
	[VDI_FAULT_TOO_MANY] = { "FieldValueTooMany", "Too many", true },
};

void vdi_faults_fini(struct vdi_faults *faults)
{
	vdi_out_fini(&faults->text);
	vdi_out_fini(&faults->document);
	vdi_out_fini(&faults->causes);
	memset(faults, 0, sizeof *faults);
}

void vdi_faults_reset(struct vdi_faults *faults)
{
	vdi_out_reset(&faults->text);
	faults->kept = faults->count = 0;
	faults->failed = false;
}

void vdi_faults_truncate(struct vdi_faults *faults, size_t kept, size_t count)
{
	VDI_CHECK(kept <= faults->kept && count <= faults->count);
	faults->kept = kept;
	faults->count = count;
}

void vdi_faults_write_quoted(struct vdi_out *out, struct vd_bytes text)
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
	size_t to = from + VDI_FAULT_VALUE_SIZE;

	if (out->failed || out->size <= to)
		return;
	while (to > from && (out->data[to] & 0xC0) == 0x80)
		to--;
	out->size = to;
	vdi_out_raw(out, "...");
}

/* Returns false if the error is only counted. */
static bool begin(struct vdi_faults *faults, enum vdi_fault_kind kind, struct vd_bytes field)
{
	struct vdi_fault *fault;

	faults->count++;
	if (faults->kept == VDI_FAULTS_MAX || faults->failed)
		return false;
	if (faults->kept == 0)
		vdi_out_reset(&faults->text);
	fault = &faults->items[faults->kept];
	fault->kind = (uint8_t) kind;
	fault->field_at = (uint32_t) faults->text.size;
	vdi_out_bytes(&faults->text, field);
	shorten(&faults->text, fault->field_at);
	fault->field_size = (uint32_t) (faults->text.size - fault->field_at);
	fault->message_at = (uint32_t) faults->text.size;
	vdi_out_raw(&faults->text, words_of[kind].words);
	return true;
}

__attribute__((format(printf, 2, 0))) static void end(struct vdi_faults *faults, const char *format,
						      va_list arguments)
{
	struct vdi_fault *fault = &faults->items[faults->kept];

	if (*format) {
		size_t from = faults->text.size + 2;

		vdi_out_raw(&faults->text, ": ");
		vdi_out_vprintf(&faults->text, format, arguments);
		if (faults->text.size == from)
			faults->text.size -= 2;
		else
			shorten(&faults->text, from);
	}
	fault->message_size = (uint32_t) (faults->text.size - fault->message_at);
	faults->failed |= faults->text.failed;
	faults->kept += !faults->failed;
}

void vdi_faults_add(struct vdi_faults *faults, enum vdi_fault_kind kind, struct vd_bytes field,
		    struct vd_bytes value, const char *format, ...)
{
	va_list arguments;

	if (!begin(faults, kind, field))
		return;
	if (words_of[kind].has_value && value.size) {
		vdi_out_raw(&faults->text, ": ");
		vdi_out_bytes(&faults->text, value);
	}
	va_start(arguments, format);
	end(faults, format, arguments);
	va_end(arguments);
}

void vdi_faults_add_text(struct vdi_faults *faults, enum vdi_fault_kind kind, struct vd_bytes field,
			 struct vd_bytes value, const char *format, ...)
{
	va_list arguments;

	if (!begin(faults, kind, field))
		return;
	if (words_of[kind].has_value) {
		size_t from;

		vdi_out_raw(&faults->text, ": ");
		from = faults->text.size;
		value.size = VDI_MIN(value.size, (size_t) VDI_FAULT_VALUE_SIZE + 4);
		vdi_faults_write_quoted(&faults->text, value);
		shorten(&faults->text, from);
	}
	va_start(arguments, format);
	end(faults, format, arguments);
	va_end(arguments);
}

void vdi_faults_add_node(struct vdi_faults *faults, enum vdi_fault_kind kind, struct vd_bytes field,
			 const struct vdi_node *value, const char *format, ...)
{
	va_list arguments;

	if (!begin(faults, kind, field))
		return;
	if (words_of[kind].has_value) {
		size_t from;

		vdi_out_raw(&faults->text, ": ");
		from = faults->text.size;
		if (value == NULL)
			vdi_out_raw(&faults->text, "\"\"");
		else if (value->kind == VDI_NODE_STRING)
			vdi_faults_write_quoted(
				&faults->text,
				(struct vd_bytes) {
					value->text.data,
					VDI_MIN(value->text.size, (size_t) VDI_FAULT_VALUE_SIZE + 4) });
		else
			vdi_tree_write_begin(&faults->text, value, from + VDI_FAULT_VALUE_SIZE + 4);
		shorten(&faults->text, from);
	}
	va_start(arguments, format);
	end(faults, format, arguments);
	va_end(arguments);
}

static struct vd_bytes field_of(const struct vdi_faults *faults, const struct vdi_fault *fault)
{
	return (struct vd_bytes) { faults->text.data + fault->field_at, fault->field_size };
}

static struct vd_bytes message_of(const struct vdi_faults *faults, const struct vdi_fault *fault)
{
	return (struct vd_bytes) { faults->text.data + fault->message_at, fault->message_size };
}

struct vd_bytes vdi_faults_field(const struct vdi_faults *faults, size_t i)
{
	return field_of(faults, &faults->items[i]);
}

struct vd_bytes vdi_faults_text(const struct vdi_faults *faults, size_t i)
{
	return message_of(faults, &faults->items[i]);
}

/* Orders by "<field>: <message>". */
static int compare(const void *a, const void *b, void *arg)
{
	const struct vdi_faults *faults = arg;
	struct vd_bytes		 x = field_of(faults, a), y = field_of(faults, b);
	int			 order = memcmp(x.data, y.data, VDI_MIN(x.size, y.size));

	if (order == 0 && x.size != y.size)
		order = x.size < y.size ? ':' - ((const unsigned char *) y.data)[x.size] :
					  ((const unsigned char *) x.data)[y.size] - ':';
	if (order)
		return order;
	x = message_of(faults, a);
	y = message_of(faults, b);
	order = memcmp(x.data, y.data, VDI_MIN(x.size, y.size));
	return order ? order : (x.size > y.size) - (x.size < y.size);
}

void vdi_faults_sort(struct vdi_faults *faults)
{
	qsort_r(faults->items, faults->kept, sizeof faults->items[0], compare, faults);
}

static bool seen_before(const struct vdi_faults *faults, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (compare(&faults->items[i], &faults->items[index], (void *) faults) == 0)
			return true;
	return false;
}

/* Appends the message. As utilerrors.Aggregate, writes equal texts once and puts several in brackets. */
static void write_message(struct vdi_faults *faults, struct vdi_out *out)
{
	size_t from = out->size, written = 0;

	vdi_out_raw(out, "[");
	for (size_t i = 0; i < faults->kept; i++) {
		if (seen_before(faults, i))
			continue;
		if (written++)
			vdi_out_raw(out, ", ");
		vdi_out_bytes(out, field_of(faults, &faults->items[i]));
		vdi_out_raw(out, ": ");
		vdi_out_bytes(out, message_of(faults, &faults->items[i]));
	}
	if (faults->count > faults->kept) {
		vdi_out_printf(out, ", and %zu more", faults->count - faults->kept);
		written++;
	}
	vdi_out_raw(out, "]");
	if (written == 1 && !out->failed) {
		memmove(out->data + from, out->data + from + 1, out->size - from - 2);
		out->size -= 2;
	}
}

struct vd_bytes vdi_faults_message(struct vdi_faults *faults)
{
	vdi_out_reset(&faults->document);
	write_message(faults, &faults->document);
	return vdi_out_slice(&faults->document);
}

static void write_causes(struct vdi_faults *faults, struct vdi_out *out)
{
	for (size_t i = 0; i < faults->kept; i++) {
		vdi_out_raw(out, i ? ",{" : "{");
		vdi_out_member(out, "reason", vd_bytes_of(words_of[faults->items[i].kind].reason));
		vdi_out_member(out, "message", message_of(faults, &faults->items[i]));
		vdi_out_member(out, "field", field_of(faults, &faults->items[i]));
		vdi_out_raw(out, "}");
	}
}

vd_status vdi_faults_refuse(struct vdi_faults *faults, struct vdi_http_status *status, const char *group,
			    const char *kind, struct vd_bytes name)
{
	vdi_out_reset(&faults->document);
	vdi_out_reset(&faults->causes);
	vdi_out_printf(&faults->document, "%s%s%s ", kind, *group ? "." : "", group);
	vdi_faults_write_quoted(&faults->document, name);
	vdi_out_raw(&faults->document, " is invalid: ");
	write_message(faults, &faults->document);
	write_causes(faults, &faults->causes);
	if (faults->failed || faults->document.failed || faults->causes.failed) {
		vdi_http_status_set(status, 500, "InternalError", "Internal error occurred: out of memory");
		return VD_NOMEM;
	}
	vdi_http_status_set(status, 422, "Invalid", "%.*s", (int) faults->document.size,
			    faults->document.data);
	vdi_http_status_details(status, name, group, kind);
	status->long_message = vdi_out_slice(&faults->document);
	status->causes_text = vdi_out_slice(&faults->causes);
	return VD_INVALID;
}
