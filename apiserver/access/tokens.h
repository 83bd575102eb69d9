/* Bearer tokens of a file in the format of kube-apiserver's --token-auth-file: lines of
 * `token,user,uid[,"group1,group2"]`.
 *
 * Stored as digests. Every lookup compares with all of them, so that its duration reveals nothing about a
 * token. Immutable once parsed: any thread.
 */
#ifndef VDI_TOKENS_H
#define VDI_TOKENS_H

#include "base.h"
#include "identity.h"

#define VDI_TOKENS_MAX 10000
#define VDI_TOKEN_SIZE_MAX 4096

struct vdi_tokens;

/* Skips empty lines and lines that begin with '#'. VD_INVALID: the message names the fault and the line,
 * never the token. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_tokens_parse(struct vd_bytes text, struct vdi_tokens **ret_tokens,
					struct vd_error *reterr);
/* NULL is fine; returns NULL. */
struct vdi_tokens *vdi_tokens_free(struct vdi_tokens *tokens);
/* Borrowed; NULL: unknown token. */
struct vdi_identity *vdi_tokens_find(const struct vdi_tokens *tokens, struct vd_bytes token);

#endif
