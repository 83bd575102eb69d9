/* Names of endpoints (E-204), and why one cannot be reached, in a few words. Pure functions. */
#ifndef VDI_GRPC_ENDPOINT_H
#define VDI_GRPC_ENDPOINT_H

#include "base.h"

enum vdi_grpc_scheme {
	VDI_GRPC_AS_CONFIGURED, /* host:port, unix: -- TLS when it is configured */
	VDI_GRPC_PLAIN,		/* http: */
	VDI_GRPC_TLS,		/* https:, unixs: */
};

struct vdi_grpc_endpoint {
	enum vdi_grpc_scheme scheme;
	bool		     is_socket; /* unix:, unixs: */
	char		    *target; /* for grpc_channel_create; vdi_free */
};

/* VD_INVALID_ARGUMENT names the endpoint and what is wrong with it; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_grpc_endpoint_parse(const char *name, struct vdi_grpc_endpoint *ret_endpoint, struct vd_error *reterr);

/* What core says about a connection that it could not make, in short: "connection refused", "unknown host",
 * "the server's certificate is not trusted (certificate verify failed)", "not an HTTP/2 server", ... What it does not know it leaves in core's words.
 * Cut to size. */
void vdi_grpc_cause(const char *words, char *text, size_t size);

#endif
