/* The HTTP endpoints of an etcd server (E-153): /health, /version, /metrics, /livez, /readyz. GET only, plain text, one small loop thread; nothing about keys
 * or values is told here.
 */
#ifndef VDI_SERVE_HTTP_H
#define VDI_SERVE_HTTP_H

#include "etcdserver.h"

struct vdi_serve_http;

/* listen: "127.0.0.1:2381", "[::1]:0". Serves when it returns VD_OK. VD_INVALID_ARGUMENT, VD_IO (the address), VD_NOMEM. The server outlives it. */
VDI_MUST_USE vd_status vdi_serve_http_new(struct vdi_etcdserver *server, const char *listen, struct vdi_serve_http **ret_http, struct vd_error *reterr);
/* "127.0.0.1:2381", with the port in use. Lent. */
const char *vdi_serve_http_address(const struct vdi_serve_http *http);
/* Blocks. NULL is fine; returns NULL. */
struct vdi_serve_http *vdi_serve_http_free(struct vdi_serve_http *http);

#endif
