/* The identity of a client: token, certificate and CA, kept current.
 *
 * Files are read again at the first request that begins 10 s or more after they were read last, and at the
 * first one after a 401. A file that cannot be read or used then leaves its part of the identity (token, CA,
 * certificate with key) as it is, and is logged; a certificate that does not match its key does so too,
 * because one of the two may not have been replaced yet. A token goes only to the configured server.
 *
 * One thread at a time: after creation, the client's actor. Blocks only to read files. */
#ifndef VDI_KUBE_IDENTITY_H
#define VDI_KUBE_IDENTITY_H

#include "kube_config.h"
#include "kube_transport.h"

struct vdi_kube_identity;

/* Takes over *config, also on failure. changed is called, on another actor, when a credential program has
 * ended: call vdi_kube_identity_take again. VD_INVALID_ARGUMENT: the message names the file; VD_NOMEM. */
VDI_MUST_USE vd_status	     vdi_kube_identity_new(const struct vd_env *env, struct vdi_kubeconfig *config,
						   void (*changed)(void *arg), void		   *arg,
						   struct vdi_kube_identity **ret_identity,
						   struct vd_error	     *reterr);
const struct vdi_kubeconfig *vdi_kube_identity_config(const struct vdi_kube_identity *identity);
/* Returns true if a credential program is used, so that changed may be called. */
bool vdi_kube_identity_has_program(const struct vdi_kube_identity *identity);

/* What one exchange is sent with. */
struct vdi_kube_credential {
	const char *token;	 /* NULL: none; borrowed until the next call */
	uint64_t    generation;	 /* for vdi_kube_identity_refused and _accepted */
	bool	    tls_changed; /* until vdi_kube_identity_configured */
};
/* VD_AGAIN: a program runs, changed will be called. VD_FORBIDDEN: it failed, or the server rejected its
 * credential; with the cause and retry_after_s. */
VDI_MUST_USE vd_status vdi_kube_identity_take(struct vdi_kube_identity	 *identity,
					      struct vdi_kube_credential *ret_credential,
					      struct vd_error		 *reterr);
/* Returns the current TLS settings, borrowed until the next call. */
void vdi_kube_identity_tls(const struct vdi_kube_identity *identity, struct vdi_kube_tls *ret_tls);
/* The transport has the current TLS settings. */
void vdi_kube_identity_configured(struct vdi_kube_identity *identity);
/* Returns when take should be called next to renew a credential in time; VD_NEVER: not needed. */
vd_mono vdi_kube_identity_due(const struct vdi_kube_identity *identity);
/* The server answered 401, or something else, to an exchange with this generation. */
void vdi_kube_identity_refused(struct vdi_kube_identity *identity, uint64_t generation);
void vdi_kube_identity_accepted(struct vdi_kube_identity *identity);
/* Returns true if another credential may come after a 401. */
bool vdi_kube_identity_can_change(const struct vdi_kube_identity *identity);

/* Ends a running program; done is called once, possibly inside the call. Then the identity is freed. */
void vdi_kube_identity_close(struct vdi_kube_identity *identity, void (*done)(void *arg), void *arg);

#endif
