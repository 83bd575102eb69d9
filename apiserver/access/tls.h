/* TLS of the REST server's connections: version 1.2 and later, HTTP/1.1 by ALPN. Client certificates are
 * requested but not required.
 *
 * A context (struct vdi_tls) has the certificates and the CA bundle of one read of the files; its links stay
 * valid when it is freed. A link belongs to its connection and to one thread, does not own the socket, and
 * never blocks.
 */
#ifndef VDI_TLS_H
#define VDI_TLS_H

#include <sys/types.h>
#include <sys/uio.h>

#include "base.h"
#include "identity.h"

struct vdi_tls;
struct vdi_tls_link;

/* Loads PEM files: the certificate with its chain, its key, and the CA bundle for client certificates (or
 * NULL). VD_INVALID: a file cannot be read or does not match the others; the message names it. VD_NOMEM.
 * Blocks on the disk. */
VDI_MUST_USE vd_status vdi_tls_new(const char *cert_path, const char *key_path, const char *client_ca_path,
				   struct vdi_tls **ret_tls, struct vd_error *reterr);
/* NULL is fine; returns NULL. */
struct vdi_tls *vdi_tls_free(struct vdi_tls *tls);

/* fd must be non-blocking. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_tls_link_new(struct vdi_tls *tls, int fd, struct vdi_tls_link **ret_link);
/* NULL is fine; returns NULL. */
struct vdi_tls_link *vdi_tls_link_free(struct vdi_tls_link *link);

/* Continues the handshake. VD_OK: done. VD_AGAIN: call again when the socket is readable, or, if
 * *ret_wants_write, writable. VD_BAD_REQUEST: the peer sent plain HTTP. VD_IO: the handshake failed. */
VDI_MUST_USE vd_status vdi_tls_link_shake(struct vdi_tls_link *link, bool *ret_wants_write);
/* As recv(2): bytes, 0 at the end, -1 with errno. Decoded bytes are returned first: after EAGAIN, wait until
 * the socket is readable. */
ssize_t vdi_tls_link_receive(struct vdi_tls_link *link, void *buffer, size_t size);
/* As vdi_http_connection_send, with one difference: bytes counted in *ret_sent may still be buffered here.
 * VD_AGAIN with everything counted: call again with no parts when the socket is writable. */
VDI_MUST_USE vd_status vdi_tls_link_send(struct vdi_tls_link *link, const struct iovec *parts, size_t count,
					 size_t *ret_sent);
/* Sends a close_notify alert if the socket takes it. */
void vdi_tls_link_end(struct vdi_tls_link *link);

/* Returns the identity in the client's certificate: user is the common name, groups are the organizations, as
 * upstream. *ret_identity NULL: no certificate, or no CA of the bundle signed it; *ret_why then has the
 * certificate's fault, or NULL. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_tls_link_identity(const struct vdi_tls_link *link,
					     struct vdi_identity **ret_identity, const char **ret_why);

#endif
