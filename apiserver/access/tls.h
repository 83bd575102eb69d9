/* TLS for connections: 1.2 and later, HTTP/1.1 by ALPN (H-504); client certificates are asked for and not
 * demanded.
 *
 * A context is what certificates and authorities were at one reading; links made of it go on with it when it
 * is freed. A link belongs to its connection and to one thread, does not own the socket, and never waits.
 */
#ifndef VDI_TLS_H
#define VDI_TLS_H

#include <sys/types.h>
#include <sys/uio.h>

#include "base.h"
#include "identity.h"

struct vdi_tls;
struct vdi_tls_link;

/* PEM files: the certificate with its chain, its key, and (or NULL) the authorities of clients. VD_INVALID:
 * one that cannot be read or does not fit the others; the message names the file. VD_NOMEM. Blocks for the
 * disk. */
VDI_MUST_USE vd_status vdi_tls_new(const char *cert_path, const char *key_path, const char *client_ca_path,
				   struct vdi_tls **ret_tls, struct vd_error *reterr);
/* NULL is fine; returns NULL. */
struct vdi_tls *vdi_tls_free(struct vdi_tls *tls);

/* fd: non-blocking. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_tls_link_new(struct vdi_tls *tls, int fd, struct vdi_tls_link **ret_link);
/* NULL is fine; returns NULL. */
struct vdi_tls_link *vdi_tls_link_free(struct vdi_tls_link *link);

/* VD_OK: done. VD_AGAIN: call again when the socket is readable, or *ret_wants_write and it is writable.
 * VD_BAD_REQUEST: plain HTTP came. VD_IO: it failed. */
VDI_MUST_USE vd_status vdi_tls_link_shake(struct vdi_tls_link *link, bool *ret_wants_write);
/* As recv(2): bytes, 0 at the end, -1 with errno. Whatever lies decoded is returned before: after EAGAIN the
 * socket says when there is more. */
ssize_t vdi_tls_link_receive(struct vdi_tls_link *link, void *buffer, size_t size);
/* As vdi_http_connection_send, with one difference: what was taken may not be out yet. VD_AGAIN with
 * everything taken: call again with nothing when the socket is writable. */
VDI_MUST_USE vd_status vdi_tls_link_send(struct vdi_tls_link *link, const struct iovec *parts, size_t count,
					 size_t *ret_sent);
/* Tells the peer that no more comes, if the socket takes it. */
void vdi_tls_link_end(struct vdi_tls_link *link);

/* Who the client's certificate says it is: user the common name, groups the organizations, as upstream.
 * *ret_identity NULL: there is none, or no authority of ours signed it; then *ret_why is what is wrong with
 * it, or NULL. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_tls_link_identity(const struct vdi_tls_link *link,
					     struct vdi_identity **ret_identity, const char **ret_why);

#endif
