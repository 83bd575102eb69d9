/* A transport of remote calls as a value: what makes clients and servers. */
#ifndef VDI_RPC_TRANSPORT_H
#define VDI_RPC_TRANSPORT_H

#include <vedette/rpc.h>

#include "rpc_server.h"

struct vd_rpc_transport {
	const char *name; /* "http2", "grpc" */
	/* Which bounds its servers do not keep, as the end of a sentence; NULL: they keep all. */
	const char *unbounded;
	bool	    has_http; /* vdi_rpc_server_options.http is called */

	/* Does not touch the network. Everything in options is copied; certificate files are read now.
	 * VD_INVALID_ARGUMENT names the endpoint or the file, VD_IO (no thread), VD_NOMEM. */
	vd_status (*client_new)(const struct vd_env *env, const struct vdi_rpc_client_options *options,
				struct vdi_rpc_client **ret_client, struct vd_error *reterr);
	/* Listens and serves when it returns VD_OK. VD_INVALID_ARGUMENT names the address or the file, VD_IO
	 * (an address is in use, no thread), VD_NOMEM. */
	vd_status (*server_new)(const struct vd_env *env, const struct vdi_rpc_server_options *options,
				struct vdi_rpc_server **ret_server, struct vd_error *reterr);
};

/* transport, or the default when it is NULL. */
static inline const struct vd_rpc_transport *vdi_rpc_transport_of(const struct vd_rpc_transport *transport)
{
	return transport ? transport : vd_rpc_http2();
}

#endif
