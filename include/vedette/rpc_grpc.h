/* gRPC C core as a transport (vedette/rpc.h). Link with libvedette-grpc (pkg-config: vedette-grpc). */
#ifndef VEDETTE_RPC_GRPC_H
#define VEDETTE_RPC_GRPC_H

#include <vedette/rpc.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the transport of gRPC C core. May be called from any thread; has no other effect. */
VD_API const struct vd_rpc_transport *vd_rpc_grpc(void);

#ifdef __cplusplus
}
#endif

#endif
