/* Creates core's credentials from certificate and key files. Blocks only to read files. */
#ifndef VDI_GRPC_CREDENTIALS_H
#define VDI_GRPC_CREDENTIALS_H

#include <grpc/grpc_security.h>

#include "rpc_client.h"
#include "rpc_server.h"

/* Reads the files once. VD_INVALID_ARGUMENT names the file and the fault, VD_NOMEM. tls NULL: system roots,
 * no client certificate. */
VDI_MUST_USE vd_status vdi_grpc_credentials_client(const struct vdi_rpc_tls  *tls,
						   grpc_channel_credentials **ret_credentials,
						   struct vd_error	     *reterr);
VDI_MUST_USE vd_status vdi_grpc_credentials_server(const struct vdi_rpc_server_tls *tls,
						   grpc_server_credentials	  **ret_credentials,
						   struct vd_error		   *reterr);

#endif
