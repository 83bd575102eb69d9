/* A doubling array. Only one function allocates, so the size limit and the sticky failure are handled in one
 * place. */
#include <stdarg.h>
#include <stdio.h>

#include "buffer.h"
#include "utf8.h"

#define CAPACITY_FIRST 256

void vdi_buffer_init(struct vdi_buffer *buffer, size_t size_max)
{
	*buffer = (struct vdi_buffer) { .size_max = size_max };
}

void vdi_buffer_fini(struct vdi_buffer *buffer)
{
	vdi_free(buffer->data);
	*buffer = (struct vdi_buffer) { .size_max = buffer->size_max };
}

void vdi_buffer_clear(struct vdi_buffer *buffer)
{
	buffer->size = 0;
	buffer->status = VD_OK;
}

/* size may be 0; on success the result is never NULL. */
char *vdi_buffer_reserve(struct vdi_buffer *buffer, size_t size)
{
	size_t capacity;
	char  *grown;

	if (buffer->status != VD_OK)
		return NULL;
	if (size > buffer->size_max - buffer->size) {
		buffer->status = VD_TOO_BIG;
		return NULL;
	}
	if (buffer->data && size <= buffer->capacity - buffer->size)
		return buffer->data + buffer->size;
	capacity = VDI_MAX(buffer->capacity, CAPACITY_FIRST / 2);
	do
		capacity = capacity <= SIZE_MAX / 2 ? capacity * 2 : SIZE_MAX;
	while (capacity - buffer->size < size);
	capacity = VDI_MAX(VDI_MIN(capacity, buffer->size_max), 1);
	grown = vdi_realloc(buffer->data, capacity);
	if (grown == NULL) {
		buffer->status = VD_NOMEM;
		return NULL;
	}
	buffer->data = grown;
	buffer->capacity = capacity;
	return grown + buffer->size;
}

void vdi_buffer_commit(struct vdi_buffer *buffer, size_t size)
{
	VDI_CHECK(size <= buffer->capacity - buffer->size);
	buffer->size += size;
}

void vdi_buffer_append(struct vdi_buffer *buffer, struct vd_bytes bytes)
{
	char *room;

	if (bytes.size == 0)
		return;
	room = vdi_buffer_reserve(buffer, bytes.size);
	if (room) {
		memcpy(room, bytes.data, bytes.size);
		buffer->size += bytes.size;
	}
}

void vdi_buffer_append_text(struct vdi_buffer *buffer, const char *text)
{
	vdi_buffer_append(buffer, vd_bytes_of(text));
}

void vdi_buffer_append_char(struct vdi_buffer *buffer, char character)
{
	vdi_buffer_append(buffer, (struct vd_bytes) { &character, 1 });
}

void vdi_buffer_append_u64(struct vdi_buffer *buffer, uint64_t value)
{
	char   digits[20];
	size_t start = sizeof digits;

	do
		digits[--start] = (char) ('0' + value % 10);
	while (value /= 10);
	vdi_buffer_append(buffer, (struct vd_bytes) { digits + start, sizeof digits - start });
}

void vdi_buffer_append_i64(struct vdi_buffer *buffer, int64_t value)
{
	uint64_t magnitude = value < 0 ? -(uint64_t) value : (uint64_t) value;
	size_t	 before = buffer->size;

	if (value < 0)
		vdi_buffer_append_char(buffer, '-');
	vdi_buffer_append_u64(buffer, magnitude);
	if (buffer->status != VD_OK)
		buffer->size = before;
}

void vdi_buffer_printf(struct vdi_buffer *buffer, const char *format, ...)
{
	va_list arguments;
	va_list again;
	char	small[256];
	int	length;

	if (buffer->status != VD_OK)
		return;
	va_start(arguments, format);
	va_copy(again, arguments);
	length = vsnprintf(small, sizeof small, format, arguments);
	va_end(arguments);
	VDI_CHECK(length >= 0);
	if ((size_t) length < sizeof small) {
		vdi_buffer_append(buffer, (struct vd_bytes) { small, (size_t) length });
	} else {
		/* vsnprintf needs room for its NUL, one byte above the limit. */
		char *text = vdi_alloc((size_t) length + 1);

		if (text == NULL) {
			buffer->status = VD_NOMEM;
		} else {
			vsnprintf(text, (size_t) length + 1, format, again);
			vdi_buffer_append(buffer, (struct vd_bytes) { text, (size_t) length });
			vdi_free(text);
		}
	}
	va_end(again);
}

static void append_escaped(struct vdi_buffer *buffer, unsigned char character)
{
	static const char short_forms[] = "\bb\tt\nn\ff\rr\"\"\\\\";

	for (const char *form = short_forms; *form; form += 2)
		if (*form == (char) character) {
			vdi_buffer_append(buffer, (struct vd_bytes) { (char[]) { '\\', form[1] }, 2 });
			return;
		}
	vdi_buffer_printf(buffer, "\\u%04x", character);
}

void vdi_buffer_append_json_string(struct vdi_buffer *buffer, struct vd_bytes text)
{
	const unsigned char *data = text.data;
	size_t		     before = buffer->size;
	size_t		     plain = 0; /* start of the bytes that need no escaping */
	size_t		     at = 0;

	vdi_buffer_append_char(buffer, '"');
	while (at < text.size) {
		size_t length = vdi_utf8_character(data + at, text.size - at);
		bool   is_plain = length > 1 ||
				(length == 1 && data[at] >= 0x20 && data[at] != '"' && data[at] != '\\');

		if (is_plain) {
			at += length;
			continue;
		}
		vdi_buffer_append(buffer, (struct vd_bytes) { data + plain, at - plain });
		if (length)
			append_escaped(buffer, data[at]);
		else
			vdi_buffer_append_text(buffer, "\\ufffd");
		plain = ++at;
	}
	vdi_buffer_append(buffer, (struct vd_bytes) { data + plain, at - plain });
	vdi_buffer_append_char(buffer, '"');
	if (buffer->status != VD_OK)
		buffer->size = before;
}

vd_status vdi_buffer_status(const struct vdi_buffer *buffer)
{
	return buffer->status;
}

struct vd_bytes vdi_buffer_bytes(const struct vdi_buffer *buffer)
{
	return (struct vd_bytes) { buffer->data, buffer->size };
}

vd_status vdi_buffer_take_blob(struct vdi_buffer *buffer, struct vd_blob **ret_blob)
{
	VDI_TRY(buffer->status);
	VDI_TRY(vd_blob_new(vdi_buffer_bytes(buffer), ret_blob));
	vdi_buffer_clear(buffer);
	return VD_OK;
}
