/* Endpoints as targets of core, and short reasons why an endpoint cannot be reached. Pure functions. */
#ifndef VDI_GRPC_CAUSE_H
#define VDI_GRPC_CAUSE_H

#include "buffer.h"
#include "rpc_endpoint.h"

#define VDI_GRPC_TARGET_SIZE_MAX 4096

/* For grpc_channel_create: appends the target with its NUL. */
void vdi_grpc_target(const struct vdi_rpc_endpoint *endpoint, struct vdi_buffer *target);

/* Shortens core's report of a failed connection: "connection refused", "unknown host", "the server's
 * certificate is not trusted (certificate verify failed)", "not an HTTP/2 server", ... Other reports keep
 * core's text. Cut to size. */
void vdi_grpc_cause(const char *words, char *text, size_t size);

#endif
