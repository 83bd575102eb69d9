/* Transports of remote calls: how an etcd client reaches its servers (vd_etcd_options.transport), and how an etcd server is reached.
 *
 * A transport is an immutable value that lives as long as the process; both functions may be called from any thread and do nothing else.
 *
 *   vd_rpc_http2()  HTTP/2 of vedette's own, on libnghttp2 and libevent; the default, and the one for addresses that strangers reach
 *   vd_rpc_grpc()   gRPC C core, in the library libvedette-grpc (vedette/rpc_grpc.h); for programs that have it already. Its servers do not bound all that a client
 *                   can make them hold: docs/SECURITY.md lists what
 */
#ifndef VEDETTE_RPC_H
#define VEDETTE_RPC_H

#include <vedette/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vd_rpc_transport;

VD_API const struct vd_rpc_transport *vd_rpc_http2(void);

#ifdef __cplusplus
}
#endif

#endif
