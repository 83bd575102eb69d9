/* gRPC C core as a transport (rpc_transport.h): its two constructors. */
#ifndef VDI_GRPC_TRANSPORT_H
#define VDI_GRPC_TRANSPORT_H

#include "rpc_transport.h"

VDI_MUST_USE vd_status vdi_grpc_client_new(const struct vd_env		       *env,
					   const struct vdi_rpc_client_options *options,
					   struct vdi_rpc_client **ret_client, struct vd_error *reterr);
VDI_MUST_USE vd_status vdi_grpc_server_new(const struct vd_env		       *env,
					   const struct vdi_rpc_server_options *options,
					   struct vdi_rpc_server **ret_server, struct vd_error *reterr);

#endif
