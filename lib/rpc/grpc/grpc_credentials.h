/* Certificates and keys from files into credentials of gRPC's core. Blocks for reading files only. */
#ifndef VDI_GRPC_CREDENTIALS_H
#define VDI_GRPC_CREDENTIALS_H

#include <grpc/grpc_security.h>

#include "rpc_client.h"
#include "rpc_server.h"

/* Files are read now, once. VD_INVALID_ARGUMENT names the file and what is wrong, VD_NOMEM. tls NULL: the
 * system's roots and no client certificate. */
VDI_MUST_USE vd_status vdi_grpc_credentials_client(const struct vdi_rpc_tls  *tls,
						   grpc_channel_credentials **ret_credentials,
						   struct vd_error	     *reterr);
VDI_MUST_USE vd_status vdi_grpc_credentials_server(const struct vdi_rpc_server_tls *tls,
						   grpc_server_credentials	  **ret_credentials,
						   struct vd_error		   *reterr);

#endif
