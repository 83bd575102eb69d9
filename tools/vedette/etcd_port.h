/* An etcd port on a store that something else serves too: `vedette serve --etcd-listen`. Loopback only: nothing asks who the clients are, unless authentication is
 * enabled through etcd's own API. One thread; blocks. Without etcd in the build opening answers VD_UNSUPPORTED. */
#ifndef VDI_ETCD_PORT_H
#define VDI_ETCD_PORT_H

#include <vedette/store.h>

#include "base.h"

struct vdi_etcd_port;

/* data_dir: of the store; NULL: in memory. VD_INVALID_ARGUMENT: the address, or one that is not loopback. */
VDI_MUST_USE vd_status vdi_etcd_port_open(const struct vd_env *env, struct vd_store *store, const char *listen, const char *data_dir,
					  struct vdi_etcd_port **ret_port, struct vd_error *reterr);
/* "127.0.0.1:2379", with the port in use. Lent. */
const char *vdi_etcd_port_address(const struct vdi_etcd_port *port);
/* NULL is fine; returns NULL. Before the store is closed. */
struct vdi_etcd_port *vdi_etcd_port_close(struct vdi_etcd_port *port);

#endif
