/* rpc_client.h over gRPC C core: one completion queue, one thread, one channel per endpoint (so that TLS checks each endpoint's own name and a
 * maintenance call can go to exactly one of them).
 *
 * Endpoints (E-204): host:port, http://host:port, https://host:port, unix:path, unixs:path. The scheme of the first decides for all.
 * No http_proxy, no retries by the core, reconnect back-off 100 ms to 2 s; keepalive pings never more often than every 5 s nor without calls.
 */
#ifndef VDI_GRPC_CLIENT_H
#define VDI_GRPC_CLIENT_H

#include "rpc_client.h"

struct vdi_grpc_tls {
	const char *ca_path;	 /* NULL: the system's roots */
	const char *cert_path;	 /* with key_path: mutual TLS */
	const char *key_path;
	const char *server_name; /* checked instead of the endpoint's host; NULL: the host */
};

struct vdi_grpc_client_options {
	const char *const	  *endpoints;
	size_t			   endpoint_count;
	const struct vdi_grpc_tls *tls; /* NULL: as the scheme says, with the system's roots */
	vd_dur			   keepalive_time; /* 0: off */
	vd_dur			   keepalive_timeout;
	size_t			   send_size_max; /* a larger message ends its call with VDI_RPC_RESOURCE_EXHAUSTED, "trying to send message larger than max (n vs. max)" */
	size_t			   receive_size_max;
};

/* Does not touch the network. Everything in options is copied; certificate files are read now. VD_INVALID_ARGUMENT names the endpoint or the
 * file, VD_IO (no thread), VD_NOMEM. */
VDI_MUST_USE vd_status vdi_grpc_client_new(const struct vd_env *env, const struct vdi_grpc_client_options *options,
					   struct vdi_rpc_client **ret_client, struct vd_error *reterr);

#endif
