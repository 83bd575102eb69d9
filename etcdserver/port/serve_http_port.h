/* A separate port for health, version and metrics, without TLS, like etcd's --listen-metrics-urls:
 * serve_http.h on one loop thread. */
#ifndef VDI_SERVE_HTTP_PORT_H
#define VDI_SERVE_HTTP_PORT_H

#include "etcdserver.h"

struct vdi_serve_http_port;

/* listen: "127.0.0.1:2381", "[::1]:0". Serves when it returns VD_OK. VD_INVALID_ARGUMENT, VD_IO (the
 * address), VD_NOMEM. The server must outlive it. */
VDI_MUST_USE vd_status vdi_serve_http_port_new(struct vdi_etcdserver *server, const char *listen,
					       struct vdi_serve_http_port **ret_port,
					       struct vd_error		   *reterr);
/* Returns "127.0.0.1:2381", with the actual port. Borrowed. */
const char *vdi_serve_http_port_address(const struct vdi_serve_http_port *port);
/* Blocks. NULL is fine; returns NULL. */
struct vdi_serve_http_port *vdi_serve_http_port_free(struct vdi_serve_http_port *port);

#endif
