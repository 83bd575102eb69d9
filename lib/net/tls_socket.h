/* Shared by all uses of OpenSSL here: a BIO for a socket, and the answer to passphrase prompts. Any
 * thread. */
#ifndef VDI_TLS_SOCKET_H
#define VDI_TLS_SOCKET_H

#include <openssl/bio.h>

#include "base.h"

/* Call it before the first vdi_tls_socket_new. False: out of memory, and sockets will never be available. */
VDI_MUST_USE bool vdi_tls_socket_prepare(void);
/* Never blocks, whatever the flags of the socket, and writes without SIGPIPE. fd is borrowed. NULL: out of
 * memory. */
VDI_MUST_USE BIO *vdi_tls_socket_new(int fd);

/* A pem_password_cb that refuses: a key must not need a passphrase. */
int vdi_tls_no_passphrase(char *buffer, int size, int writing, void *arg);

#endif
