/* JSON text without a tree: converts strings to plain bytes and back, and removes white space.
 *
 * Pure functions on the caller's memory: do not allocate or block; any thread.
 */
#ifndef VDI_JSON_TEXT_H
#define VDI_JSON_TEXT_H

#include "base.h"
#include "utf8.h"

/* Converts the inside of a JSON string (without the quotes, already validated by vdi_json_validate or
 * vdi_json_scan) to plain UTF-8. ret_text has room for text.size bytes, which is always enough; it may be
 * text.data itself. Returns the number of bytes written, not NUL-terminated; \u0000 becomes a NUL byte. For
 * text that was not validated the result is undefined, but never larger than text.size. */
size_t vdi_json_unescape(struct vd_bytes text, void *ret_text);

/* The maximum number of bytes that vdi_json_quote writes for a text of this size. */
#define VDI_JSON_QUOTED_MAX(size) ((size) *6 + 2)

/* Writes text as a JSON string with its quotes, escaped like Go's encoding/json with its defaults: `"` and
 * `\` with a backslash; \b \f \n \r \t short; other control characters, < > & and U+2028 U+2029 as \u00xx in
 * lower case; every byte that is not part of valid UTF-8 as \ufffd. ret_text has room for
 * VDI_JSON_QUOTED_MAX(text.size). Returns the number of bytes written. */
size_t vdi_json_quote(struct vd_bytes text, void *ret_text);

/* Copies json, which must be valid (vdi_json_validate), without its insignificant white space; the order of
 * keys and the text of numbers and strings are unchanged. ret_json has room for json.size bytes; it may be
 * json.data itself. Returns the size written. For invalid JSON the result is undefined, but never larger than
 * json.size. */
size_t vdi_json_minify(struct vd_bytes json, void *ret_json);

#endif
