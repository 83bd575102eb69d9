/* TLS of HTTP/2 connections, by OpenSSL: TLS 1.2 or 1.3, ALPN "h2" and nothing else; a server may take
 * HTTP/1.x too. Contexts: any thread; a link: its connection's loop. Nothing blocks but the reading of files
 * in vdi_h2_tls_new_*. Sessions are not resumed and keys not renegotiated. */
#ifndef VDI_H2_TLS_H
#define VDI_H2_TLS_H

#include <sys/types.h>

#include "base.h"
#include "rpc_tls.h"

struct vdi_h2_tls;
struct vdi_h2_link;

/* Files are read now, once. VD_INVALID_ARGUMENT names the file and what is wrong with it; VD_NOMEM. tls NULL:
 * the system's roots and no certificate of our own. */
VDI_MUST_USE vd_status vdi_h2_tls_new_client(const struct vdi_rpc_tls *tls, struct vdi_h2_tls **ret_tls,
					     struct vd_error *reterr);
/* takes_http1: clients that speak no ALPN, or offer http/1.1 without h2, are shaken hands with, too (without
 * a protocol agreed on, as Go's server does). */
VDI_MUST_USE vd_status vdi_h2_tls_new_server(const struct vdi_rpc_server_tls *tls, bool takes_http1,
					     struct vdi_h2_tls **ret_tls, struct vd_error *reterr);
/* Links may outlive it, those of a server only without a crl_path. NULL is fine; returns NULL. */
struct vdi_h2_tls *vdi_h2_tls_free(struct vdi_h2_tls *tls);

/* One connection's. fd is borrowed. name (client only): the host name or the address in numbers that the
 * server's certificate must be for. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_h2_link_new(struct vdi_h2_tls *tls, int fd, const char *name,
				       struct vdi_h2_link **ret_link);
struct vdi_h2_link    *vdi_h2_link_free(struct vdi_h2_link *link);
/* VD_OK: done, with h2 agreed on (or see takes_http1). VD_AGAIN: when the socket can be read, or with
 * *ret_wants_write written. VD_IO: failed; why in the words of vdi_rpc_endpoint_state.last_error. */
VDI_MUST_USE vd_status vdi_h2_link_shake(struct vdi_h2_link *link, bool *ret_wants_write);
/* After the handshake: h2 was agreed on. */
bool vdi_h2_link_is_http2(const struct vdi_h2_link *link);
/* As recv and send do: 0 is the end; -1 with errno EAGAIN or another. After EAGAIN of send the same bytes (or
 * more) must be offered again. */
ssize_t vdi_h2_link_receive(struct vdi_h2_link *link, void *buffer, size_t size);
ssize_t vdi_h2_link_send(struct vdi_h2_link *link, const void *data, size_t size);
/* Whether receive has more without the socket becoming readable. */
bool vdi_h2_link_has_more(const struct vdi_h2_link *link);
/* Says goodbye if there is room in the socket. */
void vdi_h2_link_end(struct vdi_h2_link *link);
/* What went wrong, in few words; "" when nothing did. Lent for the link's life. */
const char *vdi_h2_link_why(const struct vdi_h2_link *link);
/* Common name of the verified certificate of the peer, cut to size; "" when there is none. */
void vdi_h2_link_common_name(const struct vdi_h2_link *link, char *text, size_t size);

#endif
