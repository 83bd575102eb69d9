/* RPC transports: how an etcd client reaches its servers (vd_etcd_options.transport), and how clients
 * reach an etcd server.
 *
 * A transport is an immutable value that lives as long as the process. Both functions return one; they may
 * be called from any thread and have no other effect.
 *
 *   vd_rpc_http2()  vedette's own HTTP/2, on libnghttp2 and libevent: the default, and the transport for
 *                   addresses that untrusted clients reach
 *   vd_rpc_grpc()   gRPC C core, in the library libvedette-grpc (vedette/rpc_grpc.h), for programs that
 *                   use gRPC already. Its servers cannot limit all memory that a client makes them hold;
 *                   docs/SECURITY.md lists the exceptions.
 */
#ifndef VEDETTE_RPC_H
#define VEDETTE_RPC_H

#include <vedette/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vd_rpc_transport;

/* Returns the HTTP/2 transport. */
VD_API const struct vd_rpc_transport *vd_rpc_http2(void);

#ifdef __cplusplus
}
#endif

#endif
