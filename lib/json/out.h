/* Growing text: response heads, JSON documents, pages.
 *
 * A failed allocation sets `failed`, and later calls have no effect, so a writer checks once at its end. One
 * owner, one thread. Strings are escaped like Go's encoder: `<`, `>`, `&`, U+2028 and U+2029 become \u003c
 * and so on.
 *
 * struct vdi_buffer (buffer.h) grows, too, but for bytes whose size has a limit: frames, log lines, dumps. It
 * tells a limit from lack of memory, undoes a failed append, and escapes only what JSON requires. Here every
 * append is on the path of a request, needs no limit and no init, and Go's clients compare the text.
 */
#ifndef VDI_OUT_H
#define VDI_OUT_H

#include <stdarg.h>

#include "base.h"

struct vdi_out {
	char  *data; /* not NUL-terminated */
	size_t size;
	size_t capacity;
	bool   failed;
};

#define VDI_OUT_INIT                                                                                         \
	{                                                                                                    \
		0, 0, 0, false                                                                               \
	}

/* Frees the memory; the struct may be used again. */
void vdi_out_fini(struct vdi_out *out);
/* Clears the content and keeps the memory. */
void vdi_out_reset(struct vdi_out *out);

void vdi_out_raw(struct vdi_out *out, const char *text);
void vdi_out_bytes(struct vdi_out *out, struct vd_bytes bytes);
void vdi_out_printf(struct vdi_out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void vdi_out_vprintf(struct vdi_out *out, const char *format, va_list arguments)
	__attribute__((format(printf, 2, 0)));
void vdi_out_int(struct vdi_out *out, int64_t number);
/* `[5]` */
void vdi_out_index(struct vdi_out *out, size_t index);
/* Appends a quoted, escaped string. Bytes that are not UTF-8 become U+FFFD. */
void vdi_out_string(struct vdi_out *out, struct vd_bytes text);
void vdi_out_text(struct vdi_out *out, const char *text);
/* Appends `"key":`, after a comma unless the last byte opens an object or array. */
void vdi_out_key(struct vdi_out *out, const char *key);
/* Appends `"key":"value"`; nothing if value is empty. */
void vdi_out_member(struct vdi_out *out, const char *key, struct vd_bytes value);
/* Appends a comma unless the last byte opens an object or array. */
void vdi_out_comma(struct vdi_out *out);

/* Appends the document indented by two blanks per level, with a newline at the end. text must be valid
 * JSON. */
void vdi_out_pretty(struct vdi_out *out, struct vd_bytes text);

/* Appends the content of the file. VD_INVALID: it cannot be read, or is larger than max; the message names
 * it. VD_NOMEM. Blocks on the disk. */
VDI_MUST_USE vd_status vdi_out_read_file(struct vdi_out *out, const char *path, size_t max,
					 struct vd_error *reterr);

static inline struct vd_bytes vdi_out_slice(const struct vdi_out *out)
{
	struct vd_bytes bytes = { out->data, out->size };
	return bytes;
}

#endif
