/* A transport of remote calls as a value: it creates clients and servers. */
#ifndef VDI_RPC_TRANSPORT_H
#define VDI_RPC_TRANSPORT_H

#include <vedette/rpc.h>

#include "rpc_server.h"

struct vd_rpc_transport {
	const char *name; /* "http2", "grpc" */
	/* limits that its servers do not enforce, as the end of a sentence; NULL: they enforce all */
	const char *unbounded;

	/* Creates a client; does not use the network. Copies options; reads certificate files now.
	 * VD_INVALID_ARGUMENT names the endpoint or the file, VD_IO (no thread), VD_NOMEM. */
	vd_status (*client_new)(const struct vd_env *env, const struct vdi_rpc_client_options *options,
				struct vdi_rpc_client **ret_client, struct vd_error *reterr);
	/* Creates a server, which listens and serves when this returns VD_OK. VD_INVALID_ARGUMENT names the
	 * address or the file, VD_IO (address in use, no thread), VD_NOMEM. */
	vd_status (*server_new)(const struct vd_env *env, const struct vdi_rpc_server_options *options,
				struct vdi_rpc_server **ret_server, struct vd_error *reterr);
};

/* Returns transport, or the default if it is NULL. */
static inline const struct vd_rpc_transport *vdi_rpc_transport_of(const struct vd_rpc_transport *transport)
{
	return transport ? transport : vd_rpc_http2();
}

#endif
