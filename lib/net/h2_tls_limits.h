/* Limits of a TLS server: versions, cipher suites, host names of client certificates, revoked certificates.
 * Any thread; blocks only to read the revocation list. */
#ifndef VDI_H2_TLS_LIMITS_H
#define VDI_H2_TLS_LIMITS_H

#include <openssl/ssl.h>

#include "rpc_tls.h"

/* Sets versions, cipher suites and host names in context, and reads the revocation list once to check it.
 * VD_INVALID_ARGUMENT names the option or the file; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_h2_tls_limits_set(SSL_CTX *context, const struct vdi_rpc_server_tls *tls,
					     struct vd_error *reterr);
/* Returns false if a certificate of the verified chain is in the revocation list, or if that file cannot be
 * read. Reads the file each time, so that a new list needs no restart. */
VDI_MUST_USE bool vdi_h2_tls_limits_allow(SSL *ssl, const char *crl_path);

#endif
