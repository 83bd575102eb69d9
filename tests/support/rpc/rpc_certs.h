/* Certificates for tests, made by openssl(1) in a new directory. False: there is no openssl.
 *
 *   ca.pem                     signs the following
 *   server.pem, server.key     localhost, 127.0.0.1
 *   elsewhere.pem, .key        elsewhere.example
 *   client.pem, client.key     common name alice
 *   stranger.pem, .key         self-signed, not trusted; common name mallory, localhost
 */
#ifndef RPC_CERTS_H
#define RPC_CERTS_H

#include "temp_folder.h"

#include <stdbool.h>

struct rpc_certs {
	char directory[TEMP_FOLDER_SIZE];
};

bool rpc_certs_make(struct rpc_certs *certs);
/* Lent until the eighth call after this one. */
const char *rpc_certs_path(const struct rpc_certs *certs, const char *name);
/* Makes the list `out` of ca's revoked certificates, with the certificate in it or (NULL) with none. */
bool rpc_certs_revoke(const struct rpc_certs *certs, const char *certificate, const char *out);
void rpc_certs_remove(struct rpc_certs *certs);

/* For a group of tests: one set of certificates, made before the first test and removed after the last one.
 * Without openssl(1), rpc_certs_set_up ends the program as skipped. */
extern struct rpc_certs rpc_certs;

int rpc_certs_set_up(void **state);
int rpc_certs_tear_down(void **state);

#endif
