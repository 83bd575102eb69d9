/* The HTTP endpoints of an etcd server (E-153): /health, /version, /metrics, /livez, /readyz. GET only, but
 * for /metrics; plain text; nothing about keys or values is told here.
 *
 * The client's addresses answer them beside gRPC (serve_rpc.c; not with gRPC's core), and a port of their own
 * does (serve_http_port.c).
 */
#ifndef VDI_SERVE_HTTP_H
#define VDI_SERVE_HTTP_H

#include "etcdserver.h"

/* Fills the answer's part of http (code, headers, body, closes) from its request's. with_cors: as etcd's
 * client URLs do, headers for pages of any origin, and OPTIONS. Any thread; blocks as little as a read of a
 * counter does, but for what vdi_serve_http_is_slow says. */
void vdi_serve_http_fill(struct vdi_etcdserver *server, bool with_cors, struct vdi_rpc_http *http);
/* To be filled by a worker: metrics are rendered. */
bool vdi_serve_http_is_slow(const struct vdi_rpc_http *http);

#endif
