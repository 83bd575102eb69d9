/* Continue tokens: the start of the next page of a list.
 *
 * A token is the base64url text (no padding) of `{"v":"meta.k8s.io/v1","rv":<revision>,"start":"<key without
 * the list's prefix>"}`. Tokens of the cache, of the store and of upstream are interchangeable. Revision -1
 * means "continue with the newest state". Mirrors k8s.io/apiserver pkg/storage/continue.go. Any thread;
 * nothing blocks.
 */
#ifndef VDI_CONTINUE_TOKEN_H
#define VDI_CONTINUE_TOKEN_H

#include "base.h"

/* Maximum bytes of a token; longer ones are rejected. */
#define VDI_CONTINUE_TOKEN_SIZE_MAX ((size_t) 32 << 10)
#define VDI_CONTINUE_LATEST ((vd_rev) -1)

/* Returns a token for a page that starts at start_key, which must have prefix and more. *ret_token is
 * NUL-terminated; the caller frees it with vdi_free. VD_INTERNAL `unable to encode next field: the key and
 * key prefix do not match`, VD_NOMEM. */
VD_MUST_USE vd_status vdi_continue_token_encode(struct vd_bytes start_key, struct vd_bytes prefix,
						vd_rev revision, char **ret_token, struct vd_error *reterr);
/* The usual case: the next page starts directly after last_key, the last key of this page (NUL appended). */
VD_MUST_USE vd_status vdi_continue_token_encode_after(struct vd_bytes last_key, struct vd_bytes prefix,
						      vd_rev revision, char **ret_token,
						      struct vd_error *reterr);
/* Decodes a token. *ret_key: prefix and start joined, which the caller frees with vdi_free. It may contain
 * NUL bytes; *ret_key_size counts them. The key always has the prefix. *ret_revision is never 0; less than 0
 * means the newest state. VD_BAD_REQUEST, each message starting with `continue key is not valid`;
 * VD_NOMEM. */
VD_MUST_USE vd_status vdi_continue_token_decode(struct vd_bytes token, struct vd_bytes prefix, char **ret_key,
						size_t *ret_key_size, vd_rev *ret_revision,
						struct vd_error *reterr);

#endif
