/* See the header. */
#include "etcd_port.h"
#include "loopback.h"

bool vdi_etcd_port_options_check(const struct vdi_command *command, const struct vdi_etcd_port_options *options, int *ret_exit)
{
	bool has_more = options->cert_file || options->key_file || options->trusted_ca_file || options->client_cert_auth;

	*ret_exit = VDI_EXIT_OK;
	if (options->listen == NULL && has_more)
		*ret_exit = vdi_command_mistake(command, "options --etcd-listen-... need --etcd-listen");
	else if (!options->cert_file != !options->key_file)
		*ret_exit = vdi_command_mistake(command, "--etcd-listen-cert-file and --etcd-listen-key-file belong together");
	else if (options->client_cert_auth && !(options->cert_file && options->trusted_ca_file))
		*ret_exit = vdi_command_mistake(command, "--etcd-listen-client-cert-auth needs --etcd-listen-cert-file, -key-file and -trusted-ca-file");
	else if (options->listen && vdi_etcd_address_of_url(options->listen, options->cert_file != NULL) == NULL)
		*ret_exit = vdi_command_mistake(command, "--etcd-listen \"%s\": https needs --etcd-listen-cert-file and -key-file, http must not have them",
						options->listen);
	return *ret_exit == VDI_EXIT_OK;
}

bool vdi_etcd_is_loopback(const char *address)
{
	return strncmp(address, "unix:", 5) == 0 || vdi_loopback_has_host(vd_bytes_of(address));
}

const char *vdi_etcd_address_of_url(const char *url, bool is_tls)
{
	if (strncmp(url, "http://", 7) == 0)
		return is_tls ? NULL : url + 7;
	if (strncmp(url, "https://", 8) == 0)
		return is_tls ? url + 8 : NULL;
	if (strncmp(url, "unix://", 7) == 0 || strncmp(url, "unix:", 5) == 0)
		return url;
	return strstr(url, "://") ? NULL : url;
}

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

static vd_status open_server(const struct vd_env *env, struct vd_store *store, bool client_cert_auth, const char *data_dir, struct vdi_etcd_port *port,
			     struct vd_error *reterr)
{
	static const char *const      peer_urls[] = { "http://localhost:2380" };
	struct vdi_etcdserver_options options = { .store = store, .peer_urls = peer_urls, .peer_url_count = 1, .client_cert_auth = client_cert_auth };
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

static vd_status check_exposure(const struct vdi_etcd_port_options *options, const char *address, const struct vdi_etcd_port *port, struct vd_error *reterr)
{
	if (options->insecure_no_auth || vdi_etcd_is_loopback(address) || (options->cert_file && options->client_cert_auth) ||
	    vdi_auth_is_enabled(port->server->auth))
		return VD_OK;
	return vd_error_set(reterr, VD_INVALID_ARGUMENT,
			    "--etcd-listen %s can be reached from other machines, and nothing asks who they are: use --etcd-listen-client-cert-auth, enable "
			    "authentication, or say --insecure-no-auth",
			    address);
}

vd_status vdi_etcd_port_open(const struct vd_env *env, struct vd_store *store, const struct vdi_etcd_port_options *options, const char *data_dir,
			     struct vdi_etcd_port **ret_port, struct vd_error *reterr)
{
	bool			     is_tls = options->cert_file != NULL;
	const char		    *address = vdi_etcd_address_of_url(options->listen, is_tls);
	struct vdi_rpc_server_tls    tls = { .cert_path = options->cert_file,
					     .key_path = options->key_file,
					     .client_ca_path = options->trusted_ca_file,
					     .require_client_cert = options->client_cert_auth };
	struct vdi_serve_rpc_options rpc = { .listen = &address, .listen_count = 1, .tls = is_tls ? &tls : NULL };
	struct vdi_etcd_port	    *port = VDI_NEW(struct vdi_etcd_port);
	vd_status		     status;

	if (port == NULL)
		return vd_error_set(reterr, VD_NOMEM, "no memory");
	status = open_server(env, store, options->client_cert_auth, data_dir, port, reterr);
	if (status == VD_OK)
		status = check_exposure(options, address, port, reterr);
	if (status == VD_OK)
		status = vdi_serve_rpc_new(port->server, &rpc, &port->rpc, reterr);
	if (status != VD_OK) {
		(void) vdi_etcd_port_close(port);
		return status;
	}
	(void) snprintf(port->url, sizeof port->url, "%s://%s", is_tls ? "https" : "http", vdi_serve_rpc_address(port->rpc, 0));
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

vd_status vdi_etcd_port_open(const struct vd_env *env, struct vd_store *store, const struct vdi_etcd_port_options *options, const char *data_dir,
			     struct vdi_etcd_port **ret_port, struct vd_error *reterr)
{
	(void) env;
	(void) store;
	(void) options;
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
