/* UTF-8, strictly (RFC 3629): no surrogates, nothing overlong, nothing above U+10FFFF. Pure functions; any
 * thread. */
#ifndef VDI_UTF8_H
#define VDI_UTF8_H

#include "base.h"

/* Returns the length in bytes of the well-formed character at text, or 0 if there is none. size > 0 bytes may
 * be read. */
size_t vdi_utf8_character(const void *text, size_t size);

/* Returns true if all of text is well-formed. */
bool vdi_utf8_valid(struct vd_bytes text);

/* Writes the character code, at most U+10FFFF, and returns its length. ret_text has room for four bytes. */
size_t vdi_utf8_put(void *ret_text, uint32_t code);

#endif
