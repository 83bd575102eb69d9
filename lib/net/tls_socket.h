/* What every use of OpenSSL here shares: a socket beneath an SSL object, and what is answered when a key asks
 * for a passphrase. Any thread. */
#ifndef VDI_TLS_SOCKET_H
#define VDI_TLS_SOCKET_H

#include <openssl/bio.h>

#include "base.h"

/* Before the first vdi_tls_socket_new. False: no memory, and there never will be a socket. */
VDI_MUST_USE bool vdi_tls_socket_prepare(void);
/* Never waits, whatever the socket's own flags are, and writes without SIGPIPE. fd is borrowed. NULL: no
 * memory. */
VDI_MUST_USE BIO *vdi_tls_socket_new(int fd);

/* A pem_password_cb: a key must not need a person. */
int vdi_tls_no_passphrase(char *buffer, int size, int writing, void *arg);

#endif
