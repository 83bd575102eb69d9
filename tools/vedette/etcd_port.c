/* See the header. */
#include "etcd_port.h"

#if VDI_ETCD

#include <stdio.h>

#include "auth.h"
#include "serve_rpc.h"

struct vdi_etcd_port {
	struct vdi_etcdserver *server;
	struct vdi_serve_rpc  *rpc;
	char		      *state_path;
	char		       url[128];
};

static bool is_loopback(const char *address)
{
	return strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]:", 6) == 0 || strncmp(address, "localhost:", 10) == 0 || strncmp(address, "unix:", 5) == 0;
}

static vd_status open_server(const struct vd_env *env, struct vd_store *store, const char *data_dir, struct vdi_etcd_port *port, struct vd_error *reterr)
{
	static const char *const      peer_urls[] = { "http://localhost:2380" };
	struct vdi_etcdserver_options options = { .store = store, .peer_urls = peer_urls, .peer_url_count = 1 };
	size_t			      size = data_dir ? strlen(data_dir) + sizeof "/etcd" : 0;

	if (data_dir) {
		port->state_path = vdi_alloc(size);
		if (port->state_path == NULL)
			return vd_error_set(reterr, VD_NOMEM, "no memory");
		(void) snprintf(port->state_path, size, "%s/etcd", data_dir);
		options.state_path = port->state_path;
	}
	return vdi_etcdserver_new(env, &options, &port->server, reterr);
}

vd_status vdi_etcd_port_open(const struct vd_env *env, struct vd_store *store, const char *listen, const char *data_dir, struct vdi_etcd_port **ret_port,
			     struct vd_error *reterr)
{
	struct vdi_serve_rpc_options options = { .listen = &listen, .listen_count = 1 };
	struct vdi_etcd_port	    *port = VDI_NEW(struct vdi_etcd_port);
	vd_status		     status;

	if (port == NULL)
		return vd_error_set(reterr, VD_NOMEM, "no memory");
	status = open_server(env, store, data_dir, port, reterr);
	if (status == VD_OK && !is_loopback(listen) && !vdi_auth_is_enabled(port->server->auth))
		status = vd_error_set(reterr, VD_INVALID_ARGUMENT, "--etcd-listen %s can be reached from other machines, and nothing asks who they are", listen);
	if (status == VD_OK)
		status = vdi_serve_rpc_new(port->server, &options, &port->rpc, reterr);
	if (status != VD_OK) {
		(void) vdi_etcd_port_close(port);
		return status;
	}
	(void) snprintf(port->url, sizeof port->url, "http://%s", vdi_serve_rpc_address(port->rpc, 0));
	vdi_etcdserver_set_client_url(port->server, port->url);
	*ret_port = port;
	return VD_OK;
}

const char *vdi_etcd_port_address(const struct vdi_etcd_port *port)
{
	return vdi_serve_rpc_address(port->rpc, 0);
}

struct vdi_etcd_port *vdi_etcd_port_close(struct vdi_etcd_port *port)
{
	if (port == NULL)
		return NULL;
	(void) vdi_serve_rpc_close(port->rpc);
	(void) vdi_etcdserver_free(port->server);
	vdi_free(port->state_path);
	vdi_free(port);
	return NULL;
}

#else

struct vdi_etcd_port {
	int unused;
};

vd_status vdi_etcd_port_open(const struct vd_env *env, struct vd_store *store, const char *listen, const char *data_dir, struct vdi_etcd_port **ret_port,
			     struct vd_error *reterr)
{
	(void) env;
	(void) store;
	(void) listen;
	(void) data_dir;
	(void) ret_port;
	return vd_error_set(reterr, VD_UNSUPPORTED, "this program was built without etcd");
}

const char *vdi_etcd_port_address(const struct vdi_etcd_port *port)
{
	(void) port;
	return "";
}

struct vdi_etcd_port *vdi_etcd_port_close(struct vdi_etcd_port *port)
{
	(void) port;
	return NULL;
}

#endif
