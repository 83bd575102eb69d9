/* TLS of one connection with OpenSSL: handshake, bytes, end, and reasons of failures; and the settings that
 * all contexts have in common.
 *
 * A stream belongs to one thread, does not own the socket, and never blocks. Its owner embeds it and decides
 * about certificates and protocols. Contexts: any thread.
 */
#ifndef VDI_TLS_STREAM_H
#define VDI_TLS_STREAM_H

#include <openssl/ssl.h>
#include <sys/types.h>

#include "base.h"

struct vdi_tls_stream {
	SSL	   *ssl;
	const char *name;      /* that a server's certificate must be valid for; NULL on servers */
	bool	    is_up;     /* handshake done */
	bool	    is_broken; /* nothing more is sent */
	char	    why[200];  /* a short reason of the failure; "" if none */
};

/* Creates a context with TLS 1.2 and later, ECDHE with AES-GCM or ChaCha20, without session resumption,
 * renegotiation and compression. Keys must not need a passphrase. NULL: out of memory. */
VDI_MUST_USE SSL_CTX *vdi_tls_context_new(bool is_server);
/* Selects a protocol in an ALPN callback. ours: a list in the form of ALPN. False: the client offered none of
 * them. */
bool vdi_tls_select_protocol(struct vd_bytes ours, const unsigned char **out, unsigned char *size,
			     const unsigned char *offered, unsigned offered_size);

/* Takes the side of the context; the certificate's name is not checked. fd is borrowed. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_tls_stream_init(struct vdi_tls_stream *stream, SSL_CTX *context, int fd);
/* Accepts a zeroed struct. */
void vdi_tls_stream_fini(struct vdi_tls_stream *stream);

/* Continues the handshake. VD_OK: done. VD_AGAIN: call again when the socket is readable, or, if
 * *ret_wants_write, writable. VD_BAD_REQUEST: the peer sent plain HTTP. VD_IO: the handshake failed. */
VDI_MUST_USE vd_status vdi_tls_stream_shake(struct vdi_tls_stream *stream, bool *ret_wants_write);
/* As recv(2) and send(2): 0 is the end; -1 with errno EAGAIN or EIO. After EAGAIN of send the same bytes (or
 * more) must be passed again. */
ssize_t vdi_tls_stream_receive(struct vdi_tls_stream *stream, void *buffer, size_t size);
ssize_t vdi_tls_stream_send(struct vdi_tls_stream *stream, const void *data, size_t size);
/* Sends a close_notify alert if the handshake is done and the socket takes it. */
void vdi_tls_stream_end(struct vdi_tls_stream *stream);

#endif
