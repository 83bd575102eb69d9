/* Growing text with Go's JSON escapes. Runs of plain bytes are copied in one piece. */
#include "out.h"
#include "utf8.h"

#include <errno.h>
#include <stdio.h>

void vdi_out_fini(struct vdi_out *out)
{
	vdi_free(out->data);
	memset(out, 0, sizeof *out);
}

void vdi_out_reset(struct vdi_out *out)
{
	out->size = 0;
	out->failed = false;
}

static char *reserve(struct vdi_out *out, size_t size)
{
	bool is_armed = __builtin_expect(vdi_alloc_is_armed(), 0); /* each request may fail then */

	if (out->failed)
		return NULL;
	if (out->capacity - out->size < size || is_armed) {
		size_t capacity = is_armed ? out->capacity : VDI_MAX(out->capacity * 2, (size_t) 256);
		char  *data;

		if (size > SIZE_MAX / 4 - out->size) {
			out->failed = true;
			return NULL;
		}
		if (capacity < out->size + size)
			capacity = out->size + size;
		data = vdi_realloc(out->data, capacity);
		if (data == NULL) {
			out->failed = true;
			return NULL;
		}
		out->data = data;
		out->capacity = capacity;
	}
	return out->data + out->size;
}

void vdi_out_bytes(struct vdi_out *out, struct vd_bytes bytes)
{
	char *to;

	if (bytes.size == 0)
		return;
	to = reserve(out, bytes.size);
	if (to == NULL)
		return;
	memcpy(to, bytes.data, bytes.size);
	out->size += bytes.size;
}

void vdi_out_raw(struct vdi_out *out, const char *text)
{
	vdi_out_bytes(out, vd_bytes_of(text));
}

void vdi_out_vprintf(struct vdi_out *out, const char *format, va_list arguments)
{
	va_list again;
	int	needed;
	char   *to;

	va_copy(again, arguments);
	needed = vsnprintf(NULL, 0, format, arguments);
	if (needed < 0)
		out->failed = true;
	to = needed < 0 ? NULL : reserve(out, (size_t) needed + 1);
	if (to) {
		(void) vsnprintf(to, (size_t) needed + 1, format, again);
		out->size += (size_t) needed;
	}
	va_end(again);
}

void vdi_out_printf(struct vdi_out *out, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vdi_out_vprintf(out, format, arguments);
	va_end(arguments);
}

void vdi_out_int(struct vdi_out *out, int64_t number)
{
	char	 digits[24];
	char	*at = digits + sizeof digits;
	uint64_t rest = number < 0 ? 0 - (uint64_t) number : (uint64_t) number;

	do {
		*--at = (char) ('0' + rest % 10);
		rest /= 10;
	} while (rest);
	if (number < 0)
		*--at = '-';
	vdi_out_bytes(out, (struct vd_bytes) { at, (size_t) (digits + sizeof digits - at) });
}

void vdi_out_index(struct vdi_out *out, size_t index)
{
	vdi_out_raw(out, "[");
	vdi_out_int(out, (int64_t) index);
	vdi_out_raw(out, "]");
}

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&';
}

void vdi_out_string(struct vdi_out *out, struct vd_bytes text)
{
	const unsigned char *at = text.data;
	const unsigned char *end = at + text.size;

	vdi_out_raw(out, "\"");
	while (at < end) {
		const unsigned char *from = at;
		size_t		     size;

		while (at < end && is_plain(*at))
			at++;
		if (at > from)
			vdi_out_bytes(out, (struct vd_bytes) { from, (size_t) (at - from) });
		if (at == end)
			break;
		size = vdi_utf8_character(at, (size_t) (end - at));
		if (size == 0) {
			vdi_out_raw(out, "\\ufffd");
			at++;
		} else if (size == 3 && at[0] == 0xE2 && at[1] == 0x80 && (at[2] & 0xFE) == 0xA8) {
			vdi_out_raw(out, at[2] == 0xA8 ? "\\u2028" : "\\u2029");
			at += 3;
		} else if (size > 1) {
			vdi_out_bytes(out, (struct vd_bytes) { at, size });
			at += size;
		} else {
			switch (*at) {
			case '"': vdi_out_raw(out, "\\\""); break;
			case '\\': vdi_out_raw(out, "\\\\"); break;
			case '\n': vdi_out_raw(out, "\\n"); break;
			case '\r': vdi_out_raw(out, "\\r"); break;
			case '\t': vdi_out_raw(out, "\\t"); break;
			case '\b': vdi_out_raw(out, "\\b"); break;
			case '\f': vdi_out_raw(out, "\\f"); break;
			case 0x7F: vdi_out_bytes(out, (struct vd_bytes) { at, 1 }); break;
			default: vdi_out_printf(out, "\\u%04x", *at);
			}
			at++;
		}
	}
	vdi_out_raw(out, "\"");
}

void vdi_out_text(struct vdi_out *out, const char *text)
{
	vdi_out_string(out, vd_bytes_of(text));
}

void vdi_out_comma(struct vdi_out *out)
{
	if (out->size && out->data[out->size - 1] != '{' && out->data[out->size - 1] != '[')
		vdi_out_raw(out, ",");
}

void vdi_out_key(struct vdi_out *out, const char *key)
{
	vdi_out_comma(out);
	vdi_out_text(out, key);
	vdi_out_raw(out, ":");
}

void vdi_out_member(struct vdi_out *out, const char *key, struct vd_bytes value)
{
	if (value.size == 0)
		return;
	vdi_out_key(out, key);
	vdi_out_string(out, value);
}

static void newline(struct vdi_out *out, size_t depth)
{
	vdi_out_raw(out, "\n");
	for (size_t i = 0; i < depth; i++)
		vdi_out_raw(out, "  ");
}

void vdi_out_pretty(struct vdi_out *out, struct vd_bytes text)
{
	const char *at = text.data;
	const char *end = at + text.size;
	size_t	    depth = 0;

	while (at < end) {
		const char *from = at;

		switch (*at) {
		case ' ':
		case '\t':
		case '\r':
		case '\n': at++; continue;
		case '"':
			for (at++; at < end && *at != '"'; at++)
				if (*at == '\\')
					at++;
			at = at < end ? at + 1 : end;
			break;
		case '{':
		case '[':
			at++;
			while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
				at++;
			vdi_out_bytes(out, (struct vd_bytes) { from, 1 });
			if (at < end && (*at == '}' || *at == ']'))
				vdi_out_bytes(out, (struct vd_bytes) { at++, 1 });
			else
				newline(out, ++depth);
			continue;
		case '}':
		case ']':
			newline(out, depth ? --depth : 0);
			at++;
			break;
		case ',':
			vdi_out_raw(out, ",");
			newline(out, depth);
			at++;
			continue;
		case ':':
			vdi_out_raw(out, ": ");
			at++;
			continue;
		default:
			while (at < end && strchr(" \t\r\n,:{}[]\"", *at) == NULL)
				at++;
			if (at == from)
				at++;
		}
		vdi_out_bytes(out, (struct vd_bytes) { from, (size_t) (at - from) });
	}
	vdi_out_raw(out, "\n");
}

vd_status vdi_out_read_file(struct vdi_out *out, const char *path, size_t max, struct vd_error *reterr)
{
	FILE	 *file = fopen(path, "re");
	char	  piece[4096];
	size_t	  size, start = out->size;
	vd_status status = VD_OK;

	if (file == NULL)
		return vd_error_set(reterr, VD_INVALID, "%s: %s", path, strerror(errno));
	while ((size = fread(piece, 1, sizeof piece, file)) > 0 && out->size - start <= max)
		vdi_out_bytes(out, (struct vd_bytes) { piece, size });
	if (ferror(file))
		status = vd_error_set(reterr, VD_INVALID, "%s: %s", path, strerror(errno));
	else if (out->failed)
		status = vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	else if (out->size - start > max)
		status = vd_error_set(reterr, VD_INVALID, "%s: larger than %zu MiB", path, max >> 20);
	(void) fclose(file);
	return status;
}
