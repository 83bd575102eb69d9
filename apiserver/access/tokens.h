/* Bearer tokens out of a file, as kube-apiserver's --token-auth-file has them: lines of
 * `token,user,uid[,"group1,group2"]`.
 *
 * Kept and compared as digests, all of them for every request, so that the time taken says nothing about a
 * token. Never changed once made: any thread.
 */
#ifndef VDI_TOKENS_H
#define VDI_TOKENS_H

#include "base.h"
#include "identity.h"

#define VDI_TOKENS_MAX 10000
#define VDI_TOKEN_SIZE_MAX 4096

struct vdi_tokens;

/* Empty lines and those that begin with '#' are skipped. VD_INVALID: what and in which line, never the token
 * itself. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_tokens_parse(struct vd_bytes text, struct vdi_tokens **ret_tokens,
					struct vd_error *reterr);
/* NULL is fine; returns NULL. */
struct vdi_tokens *vdi_tokens_free(struct vdi_tokens *tokens);
/* Lent; NULL: nobody has this token. */
struct vdi_identity *vdi_tokens_find(const struct vdi_tokens *tokens, struct vd_bytes token);

#endif
