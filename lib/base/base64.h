/* base64 (RFC 4648), strict: the standard alphabet with padding, and the URL alphabet without.
 *
 * Decoding rejects other characters (including white space), wrong, missing or unexpected padding, and unused
 * bits that are not zero, so each value has exactly one text. Does not allocate or block; any thread.
 */
#ifndef VDI_BASE64_H
#define VDI_BASE64_H

#include "base.h"

enum vdi_base64_kind {
	VDI_BASE64_STANDARD, /* A-Z a-z 0-9 + /, padded with = */
	VDI_BASE64_URL,	     /* A-Z a-z 0-9 - _, no padding */
};

/* Maximum size of the text of size bytes, and of the bytes of a text of size characters. */
#define VDI_BASE64_ENCODED_MAX(size) (((size) + 2) / 3 * 4)
#define VDI_BASE64_DECODED_MAX(size) ((size) / 4 * 3 + 3)

/* Returns the number of characters written, not NUL-terminated. */
size_t vdi_base64_encode(enum vdi_base64_kind kind, struct vd_bytes bytes, char *ret_text);
/* VD_BAD_REQUEST: *ret_error_at, if not NULL, is the index of the first wrong character. ret_bytes may be
 * written in any case. */
VD_MUST_USE vd_status vdi_base64_decode(enum vdi_base64_kind kind, struct vd_bytes text, void *ret_bytes,
					size_t *ret_size, size_t *ret_error_at);

#endif
