/* The data for authentication and authorization: the server's certificate, the CA bundle for client
 * certificates, the tokens and the policy.
 *
 * An immutable, reference-counted snapshot of the files; a reload makes a new one. Any thread.
 */
#ifndef VDI_SECURITY_H
#define VDI_SECURITY_H

#include "identity.h"
#include "policy.h"
#include "tls.h"
#include "tokens.h"

struct vdi_security_files {
	const char *cert, *key; /* both or neither */
	const char *client_ca;	/* or NULL */
	const char *tokens;	/* or NULL */
	const char *policy;	/* or NULL */
};

struct vdi_security {
	_Atomic uint32_t     users;
	struct vdi_tls	    *tls;	/* NULL: plain HTTP */
	struct vdi_tokens   *tokens;	/* NULL: no tokens */
	struct vdi_policy   *policy;	/* NULL: every authenticated identity may do everything */
	struct vdi_identity *anonymous; /* identity of requests without credentials */
	/* tokens or client certificates are configured; if not, everything is allowed */
	bool authenticates;
};

/* Reads all files. VD_INVALID: the set of files is inconsistent, or the content of one is invalid; the
 * message names it. VD_NOMEM. Blocks on the disk. */
VDI_MUST_USE vd_status vdi_security_load(const struct vdi_security_files *files,
					 struct vdi_security **ret_security, struct vd_error *reterr);
/* NULL is fine in both; unref returns NULL. */
struct vdi_security *vdi_security_ref(struct vdi_security *security);
struct vdi_security *vdi_security_unref(struct vdi_security *security);

#endif
