/* Continue tokens: where the next page of a list begins.
 *
 * A token is the base64url text (no padding) of `{"v":"meta.k8s.io/v1","rv":<revision>,"start":"<key behind
 * the list's prefix>"}`. Tokens of the cache, of the store and of upstream are interchangeable (R-153,
 * Revision -1 means "go on with the newest state". Mirrors k8s.io/apiserver
 * pkg/storage/continue.go. Any thread; nothing blocks.
 */
#ifndef VDI_CONTINUE_TOKEN_H
#define VDI_CONTINUE_TOKEN_H

#include "base.h"

/* Bytes of a token that is decoded; longer ones are refused. */
#define VDI_CONTINUE_TOKEN_SIZE_MAX ((size_t) 32 << 10)
#define VDI_CONTINUE_LATEST ((vd_rev) -1)

/* A token that goes on at start_key, which begins with prefix and has something behind it. *ret_token is
 * NUL-terminated, the caller frees it with vdi_free. VD_INTERNAL `unable to encode next field: the key and
 * key prefix do not match`, VD_NOMEM. */
VD_MUST_USE vd_status vdi_continue_token_encode(struct vd_bytes start_key, struct vd_bytes prefix,
						vd_rev revision, char **ret_token, struct vd_error *reterr);
/* The usual case: goes on right behind last_key, the key of the last item of this page (NUL appended). */
VD_MUST_USE vd_status vdi_continue_token_encode_after(struct vd_bytes last_key, struct vd_bytes prefix,
						      vd_rev revision, char **ret_token,
						      struct vd_error *reterr);
/* *ret_key: prefix and start together, the caller frees it with vdi_free; it may hold NUL bytes, *ret_key_size counts them. The key never lies
 * outside prefix. *ret_revision is never 0; it is below 0 for "newest". VD_BAD_REQUEST, each text beginning
 * `continue key is not valid`; VD_NOMEM. */
VD_MUST_USE vd_status vdi_continue_token_decode(struct vd_bytes token, struct vd_bytes prefix, char **ret_key,
						size_t *ret_key_size, vd_rev *ret_revision,
						struct vd_error *reterr);

#endif
