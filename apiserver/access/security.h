/* What a server knows about its clients: its certificates, their authorities and tokens, the policy.
 *
 * A snapshot of the files, shared by reference and never changed; reading them again makes another one. Any
 * thread.
 */
#ifndef VDI_SECURITY_H
#define VDI_SECURITY_H

#include "identity.h"
#include "policy.h"
#include "tls.h"
#include "tokens.h"

struct vdi_security_files {
	const char *cert, *key; /* both or none */
	const char *client_ca;	/* or NULL */
	const char *tokens;	/* or NULL */
	const char *policy;	/* or NULL */
};

struct vdi_security {
	_Atomic uint32_t     users;
	struct vdi_tls	    *tls;	    /* NULL: plain */
	struct vdi_tokens   *tokens;	    /* NULL: none */
	struct vdi_policy   *policy;	    /* NULL: who was authenticated may do everything */
	struct vdi_identity *anonymous;	    /* who shows nothing */
	bool		     authenticates; /* by tokens or certificates; else everybody may do everything */
};

/* Reads everything. VD_INVALID: files that do not go together, or one that is not what it should be; the
 * message names it. VD_NOMEM. Blocks for the disk. */
VDI_MUST_USE vd_status vdi_security_load(const struct vdi_security_files *files,
					 struct vdi_security **ret_security, struct vd_error *reterr);
/* NULL is fine in both; unref returns NULL. */
struct vdi_security *vdi_security_ref(struct vdi_security *security);
struct vdi_security *vdi_security_unref(struct vdi_security *security);

#endif
