/* TLS of HTTP/2 connections with OpenSSL: TLS 1.2 or 1.3, ALPN "h2" only; a server may accept HTTP/1.x too.
 * Contexts: any thread; a link: its connection's loop. Only vdi_h2_tls_new_* block, to read files. No session
 * resumption and no renegotiation. */
#ifndef VDI_H2_TLS_H
#define VDI_H2_TLS_H

#include <sys/types.h>

#include "base.h"
#include "rpc_tls.h"

struct vdi_h2_tls;
struct vdi_h2_link;

/* Reads the files once. VD_INVALID_ARGUMENT names the file and the fault; VD_NOMEM. tls NULL: system roots,
 * no certificate of our own. */
VDI_MUST_USE vd_status vdi_h2_tls_new_client(const struct vdi_rpc_tls *tls, struct vdi_h2_tls **ret_tls,
					     struct vd_error *reterr);
/* takes_http1: also accepts clients without ALPN, or with http/1.1 but not h2 (without an agreed protocol,
 * like Go's server). */
VDI_MUST_USE vd_status vdi_h2_tls_new_server(const struct vdi_rpc_server_tls *tls, bool takes_http1,
					     struct vdi_h2_tls **ret_tls, struct vd_error *reterr);
/* Links may outlive it, those of a server only if it has no crl_path. NULL is allowed; returns NULL. */
struct vdi_h2_tls *vdi_h2_tls_free(struct vdi_h2_tls *tls);

/* TLS of one connection. fd is borrowed. name (client only): host name or numeric address that the server's
 * certificate must be valid for. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_h2_link_new(struct vdi_h2_tls *tls, int fd, const char *name,
				       struct vdi_h2_link **ret_link);
struct vdi_h2_link    *vdi_h2_link_free(struct vdi_h2_link *link);
/* Continues the handshake. VD_OK: done, with h2 agreed on (but see takes_http1). VD_AGAIN: call again when
 * the socket is readable, or with *ret_wants_write writable. VD_IO: failed; vdi_h2_link_why has the reason,
 * in the texts of vdi_rpc_endpoint_state.last_error. */
VDI_MUST_USE vd_status vdi_h2_link_shake(struct vdi_h2_link *link, bool *ret_wants_write);
/* After the handshake: returns true if h2 was agreed on. */
bool vdi_h2_link_is_http2(const struct vdi_h2_link *link);
/* Like recv and send: 0 is the end; -1 with errno EAGAIN or another error. After EAGAIN of send the same
 * bytes (or more) must be passed again. */
ssize_t vdi_h2_link_receive(struct vdi_h2_link *link, void *buffer, size_t size);
ssize_t vdi_h2_link_send(struct vdi_h2_link *link, const void *data, size_t size);
/* Returns true if receive has more bytes without the socket becoming readable. */
bool vdi_h2_link_has_more(const struct vdi_h2_link *link);
/* Sends close_notify if the socket has room. */
void vdi_h2_link_end(struct vdi_h2_link *link);
/* A short reason of the failure; "" if none. Borrowed for the life of the link. */
const char *vdi_h2_link_why(const struct vdi_h2_link *link);
/* Common name of the peer's verified certificate, cut to size; "" if there is none. */
void vdi_h2_link_common_name(const struct vdi_h2_link *link, char *text, size_t size);

#endif
