/* base64 (RFC 4648), strict: the standard alphabet with padding and the URL alphabet without.
 *
 * Refused on decoding: other characters (white space too), wrong or missing padding, padding where there is
 * none, and spare bits that are not zero: one text for each value. Nothing allocates or blocks; any thread.
 */
#ifndef VDI_BASE64_H
#define VDI_BASE64_H

#include "base.h"

enum vdi_base64_kind {
	VDI_BASE64_STANDARD, /* A-Z a-z 0-9 + /, padded by = */
	VDI_BASE64_URL,	     /* A-Z a-z 0-9 - _, no padding */
};

/* Room for the text of size bytes, and for the bytes of a text of size characters. */
#define VDI_BASE64_ENCODED_MAX(size) (((size) + 2) / 3 * 4)
#define VDI_BASE64_DECODED_MAX(size) ((size) / 4 * 3 + 3)

/* Returns the number of characters written, not NUL-terminated. */
size_t vdi_base64_encode(enum vdi_base64_kind kind, struct vd_bytes bytes, char *ret_text);
/* VD_BAD_REQUEST; *ret_error_at, when not NULL, is the place of the first wrong character then. ret_bytes may
 * be written in any case. */
VD_MUST_USE vd_status vdi_base64_decode(enum vdi_base64_kind kind, struct vd_bytes text, void *ret_bytes,
					size_t *ret_size, size_t *ret_error_at);

#endif
