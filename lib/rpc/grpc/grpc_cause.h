/* Endpoints as gRPC's core names them, and why one cannot be reached, in a few words. Pure functions. */
#ifndef VDI_GRPC_CAUSE_H
#define VDI_GRPC_CAUSE_H

#include "buffer.h"
#include "rpc_endpoint.h"

#define VDI_GRPC_TARGET_SIZE_MAX 4096

/* For grpc_channel_create: appends it with its NUL. */
void vdi_grpc_target(const struct vdi_rpc_endpoint *endpoint, struct vdi_buffer *target);

/* What core says about a connection that it could not make, in short: "connection refused", "unknown host",
 * "the server's certificate is not trusted (certificate verify failed)", "not an HTTP/2 server", ... What it
 * does not know it leaves in core's words. Cut to size. */
void vdi_grpc_cause(const char *words, char *text, size_t size);

#endif
