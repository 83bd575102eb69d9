/* Borrowed slices and shared immutable blobs.
 *
 * A struct vd_bytes never owns what it points at; the function that takes or returns one says how long it is good for. A struct
 * vd_blob is reference counted and never changes after vd_blob_new* returned, so it may be shared between threads freely.
 */
#ifndef VEDETTE_BYTES_H
#define VEDETTE_BYTES_H

#include <stdbool.h>
#include <string.h>
#include <vedette/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vd_bytes {
	const void *data; /* may be NULL when size is 0 */
	size_t	    size;
};

#define VD_BYTES_NONE ((struct vd_bytes) { NULL, 0 })
/* From a string literal or any NUL-terminated string. */
static inline struct vd_bytes vd_bytes_of(const char *text)
{
	struct vd_bytes bytes = { text, text ? strlen(text) : 0 };
	return bytes;
}
static inline bool vd_bytes_equal(struct vd_bytes a, struct vd_bytes b)
{
	return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}
/* Bytewise, shorter first: the order of keys everywhere in vedette. */
static inline int vd_bytes_compare(struct vd_bytes a, struct vd_bytes b)
{
	size_t least = a.size < b.size ? a.size : b.size;
	int    order = least ? memcmp(a.data, b.data, least) : 0;
	return order ? order : (a.size > b.size) - (a.size < b.size);
}
static inline bool vd_bytes_has_prefix(struct vd_bytes bytes, struct vd_bytes prefix)
{
	return bytes.size >= prefix.size && (prefix.size == 0 || memcmp(bytes.data, prefix.data, prefix.size) == 0);
}

struct vd_blob; /* opaque */

/* Copies size bytes. VD_NOMEM only. The caller owns one reference. */
VD_API VD_MUST_USE vd_status vd_blob_new(struct vd_bytes content, struct vd_blob **ret_blob);
/* Returns blob. */
VD_API struct vd_blob *vd_blob_ref(struct vd_blob *blob);
/* Drops one reference; the last one frees. NULL is fine. Returns NULL. */
VD_API struct vd_blob *vd_blob_unref(struct vd_blob *blob);
/* Good as long as the caller (or someone it relies on) holds a reference. */
VD_API struct vd_bytes vd_blob_bytes(const struct vd_blob *blob);

#ifdef __cplusplus
}
#endif
#endif
