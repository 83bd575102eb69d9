/* A port for health, version and metrics alone, without TLS, as etcd's --listen-metrics-urls: serve_http.h on
 * one small loop thread. */
#ifndef VDI_SERVE_HTTP_PORT_H
#define VDI_SERVE_HTTP_PORT_H

#include "etcdserver.h"

struct vdi_serve_http_port;

/* listen: "127.0.0.1:2381", "[::1]:0". Serves when it returns VD_OK. VD_INVALID_ARGUMENT, VD_IO (the
 * address), VD_NOMEM. The server outlives it. */
VDI_MUST_USE vd_status vdi_serve_http_port_new(struct vdi_etcdserver *server, const char *listen,
					       struct vdi_serve_http_port **ret_port,
					       struct vd_error		   *reterr);
/* "127.0.0.1:2381", with the port in use. Lent. */
const char *vdi_serve_http_port_address(const struct vdi_serve_http_port *port);
/* Blocks. NULL is fine; returns NULL. */
struct vdi_serve_http_port *vdi_serve_http_port_free(struct vdi_serve_http_port *port);

#endif
