/* Reads certificates and keys from files as text. Blocks only to read files. */
#ifndef VDI_RPC_PEMS_H
#define VDI_RPC_PEMS_H

#include "base.h"

/* NUL-terminated; NULL: not configured. */
struct vdi_rpc_pems {
	char *ca;
	char *cert;
	char *key;
};

/* Each path may be NULL, certificate and key only together. Checks that the certificates can be read, the key
 * too and without a passphrase, and that the key matches the certificate. VD_INVALID_ARGUMENT names the file
 * and the fault; VD_NOMEM. */
VDI_SHARED VDI_MUST_USE vd_status vdi_rpc_pems_read(const char *ca_path, const char *cert_path,
						    const char *key_path, struct vdi_rpc_pems *ret_pems,
						    struct vd_error *reterr);
VDI_SHARED void			  vdi_rpc_pems_fini(struct vdi_rpc_pems *pems);

#endif
