/* The HTTP endpoints of an etcd server: /health, /version, /metrics, /livez, /readyz. GET only, except for
 * /metrics; plain text; they report nothing about keys or values.
 *
 * They are served on the client addresses beside gRPC (serve_rpc.c; not with gRPC C core), and on a separate
 * port (serve_http_port.c).
 */
#ifndef VDI_SERVE_HTTP_H
#define VDI_SERVE_HTTP_H

#include "etcdserver.h"

/* Fills the response in http (code, headers, body, closes) from its request. with_cors: CORS headers for any
 * origin, and OPTIONS, as etcd's client URLs. Any thread; does not block, except as stated by
 * vdi_serve_http_is_slow. */
void vdi_serve_http_fill(struct vdi_etcdserver *server, bool with_cors, struct vdi_rpc_http *http);
/* Returns true if a worker must fill the response, because it renders metrics. */
bool vdi_serve_http_is_slow(const struct vdi_rpc_http *http);

#endif
