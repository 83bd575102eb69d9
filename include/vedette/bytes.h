/* Borrowed slices and shared immutable blobs.
 *
 * A struct vd_bytes does not own the memory at data; the function that takes or returns a slice states how
 * long it is valid. A struct vd_blob is reference counted and immutable, so that threads can share it
 * without a lock.
 *
 * All functions may be called from any thread and never block.
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
	const void *data; /* may be NULL if size is 0 */
	size_t	    size;
};

#define VD_BYTES_NONE ((struct vd_bytes) { NULL, 0 })

/* Borrows a NUL-terminated string; NULL gives an empty slice. */
static inline struct vd_bytes vd_bytes_of(const char *text)
{
	struct vd_bytes bytes = { text, text ? strlen(text) : 0 };
	return bytes;
}
/* Returns true if both slices have the same bytes. */
static inline bool vd_bytes_equal(struct vd_bytes a, struct vd_bytes b)
{
	return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}
/* Compares bytewise; a prefix sorts before the longer slice. All keys in vedette have this order. Returns
 * less than 0, 0, or more than 0. */
static inline int vd_bytes_compare(struct vd_bytes a, struct vd_bytes b)
{
	size_t least = a.size < b.size ? a.size : b.size;
	int    order = least ? memcmp(a.data, b.data, least) : 0;
	return order ? order : (a.size > b.size) - (a.size < b.size);
}
/* Returns true if bytes begins with prefix; an empty prefix always matches. */
static inline bool vd_bytes_has_prefix(struct vd_bytes bytes, struct vd_bytes prefix)
{
	return bytes.size >= prefix.size &&
	       (prefix.size == 0 || memcmp(bytes.data, prefix.data, prefix.size) == 0);
}

/* A reference-counted, immutable copy of bytes. */
struct vd_blob;

/* Creates a blob with a copy of content. The caller owns one reference. Error: VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_blob_new(struct vd_bytes content, struct vd_blob **ret_blob);
/* Takes a reference and returns blob. */
VD_API struct vd_blob *vd_blob_ref(struct vd_blob *blob);
/* Drops one reference; the last one frees the blob. blob may be NULL. Returns NULL. */
VD_API struct vd_blob *vd_blob_unref(struct vd_blob *blob);
/* Returns the content; borrowed while the blob has a reference. */
VD_API struct vd_bytes vd_blob_bytes(const struct vd_blob *blob);

#ifdef __cplusplus
}
#endif
#endif
