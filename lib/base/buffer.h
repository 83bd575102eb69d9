/* Growable bytes with a size limit, for text and frames that are built piece by piece.
 *
 * Appending returns no error. The first failure (out of memory, limit exceeded) sticks: the content stays as
 * before the failed append, later appends do nothing, and the caller checks vdi_buffer_status() once at the
 * end. One owner; not thread-safe. Responses of the API server are built with struct vdi_out (out.h), which
 * has no limit and Go's JSON escapes.
 */
#ifndef VDI_BUFFER_H
#define VDI_BUFFER_H

#include "base.h"

struct vdi_buffer {
	char	 *data; /* NULL until the first append */
	size_t	  size;
	size_t	  capacity;
	size_t	  size_max;
	vd_status status;
};

VDI_SHARED void vdi_buffer_init(struct vdi_buffer *buffer, size_t size_max);
VDI_SHARED void vdi_buffer_fini(struct vdi_buffer *buffer);
/* Clears content and failure, keeps the memory. */
void vdi_buffer_clear(struct vdi_buffer *buffer);

void		vdi_buffer_append(struct vdi_buffer *buffer, struct vd_bytes bytes);
VDI_SHARED void vdi_buffer_append_text(struct vdi_buffer *buffer, const char *text);
VDI_SHARED void vdi_buffer_append_char(struct vdi_buffer *buffer, char character);
void		vdi_buffer_append_u64(struct vdi_buffer *buffer, uint64_t value);
void		vdi_buffer_append_i64(struct vdi_buffer *buffer, int64_t value);
VDI_SHARED void vdi_buffer_printf(struct vdi_buffer *buffer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Appends a JSON string with quotes. Escapes control characters, quote and backslash; replaces each byte that
 * is not part of valid UTF-8 by U+FFFD, so the result is always valid JSON. */
void vdi_buffer_append_json_string(struct vdi_buffer *buffer, struct vd_bytes text);

/* Returns room for size bytes, which the caller writes and then adds with vdi_buffer_commit(). NULL on
 * failure. */
char *vdi_buffer_reserve(struct vdi_buffer *buffer, size_t size);
void  vdi_buffer_commit(struct vdi_buffer *buffer, size_t size);

/* VD_OK, VD_NOMEM or VD_TOO_BIG. */
VDI_SHARED VDI_MUST_USE vd_status vdi_buffer_status(const struct vdi_buffer *buffer);
/* Valid until the next append. */
struct vd_bytes vdi_buffer_bytes(const struct vdi_buffer *buffer);
/* Copies the content into a blob and clears the buffer. On failure, including an earlier failure of the
 * buffer, the buffer is unchanged. */
VDI_MUST_USE vd_status vdi_buffer_take_blob(struct vdi_buffer *buffer, struct vd_blob **ret_blob);

#endif
