/* Endpoint names in the forms of etcd's client (host:port, http:, https:, unix:, unixs:). Pure functions. */
#ifndef VDI_RPC_ENDPOINT_H
#define VDI_RPC_ENDPOINT_H

#include "base.h"

enum vdi_rpc_scheme {
	VDI_RPC_AS_CONFIGURED, /* host:port, unix: -- TLS if it is configured */
	VDI_RPC_PLAIN,	       /* http: */
	VDI_RPC_TLS,	       /* https:, unixs: */
};

struct vdi_rpc_endpoint {
	enum vdi_rpc_scheme scheme;
	bool		    is_socket; /* unix:, unixs: */
	/* host:port, with an IPv6 host in brackets; or the path of a socket. vdi_free */
	char *address;
};

/* VD_INVALID_ARGUMENT names the endpoint and the fault; VD_NOMEM. */
VDI_SHARED VDI_MUST_USE vd_status vdi_rpc_endpoint_parse(const char		 *name,
							 struct vdi_rpc_endpoint *ret_endpoint,
							 struct vd_error	 *reterr);

/* Decides whether a client uses TLS: the scheme of the first endpoint applies to all; without one TLS is used
 * if is_tls_configured. VD_INVALID_ARGUMENT: there is no endpoint, or the first one is invalid; VD_NOMEM. */
VDI_SHARED VDI_MUST_USE vd_status vdi_rpc_endpoints_use_tls(const char *const *endpoints, size_t count,
							    bool is_tls_configured, bool *ret_tls,
							    struct vd_error *reterr);

#endif
