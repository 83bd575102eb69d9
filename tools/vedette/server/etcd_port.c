/* The checks of the options, and the server on the port. */
#include "etcd_port.h"

#include <stdio.h>
#include "loopback.h"
#include "rpc_choice.h"

bool vdi_etcd_port_options_check(const struct vdi_command	    *command,
				 const struct vdi_etcd_port_options *options, int *ret_exit)
{
	bool has_more = options->cert_file || options->key_file || options->trusted_ca_file ||
			options->client_cert_auth;
	struct vdi_etcd_listen listen;
	const char	      *why = NULL;

	if (options->listen)
		why = vdi_etcd_listen_parse(options->listen, options->cert_file != NULL, &listen);
	*ret_exit = VDI_EXIT_OK;
	if (options->listen == NULL && has_more)
		*ret_exit =
			vdi_command_usage_error(command, "options --etcd-listen-... require --etcd-listen");
	else if (!options->cert_file != !options->key_file)
		*ret_exit = vdi_command_usage_error(
			command, "--etcd-listen-cert-file and --etcd-listen-key-file must be given together");
	else if (options->client_cert_auth && !(options->cert_file && options->trusted_ca_file))
		*ret_exit = vdi_command_usage_error(
			command, "--etcd-listen-client-cert-auth requires "
				 "--etcd-listen-cert-file, -key-file and -trusted-ca-file");
	else if (why)
		*ret_exit =
			vdi_command_usage_error(command, "--etcd-listen \"%s\": %s", options->listen, why);
	else if (options->listen && options->cert_file && !listen.is_tls)
		*ret_exit = vdi_command_usage_error(command,
						    "--etcd-listen \"%s\": http and unix exclude a "
						    "certificate: use https or unixs for TLS",
						    options->listen);
	return *ret_exit == VDI_EXIT_OK;
}

bool vdi_etcd_is_loopback(const char *address)
{
	return strncmp(address, "unix:", 5) == 0 || vdi_loopback_has_host(vd_bytes_of(address));
}

const char *vdi_etcd_listen_parse(const char *url, bool has_certificate, struct vdi_etcd_listen *ret_listen)
{
	static const struct {
		const char *scheme;
		const char *prefix; /* of the address */
		bool	    is_tls;
	} schemes[] = { { "http://", "", false },
			{ "https://", "", true },
			{ "unixs:", "unix:", true },
			{ "unix:", "unix:", false } };
	const char *rest = url, *prefix = "";

	ret_listen->is_tls = has_certificate;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(schemes); i++)
		if (strncmp(url, schemes[i].scheme, strlen(schemes[i].scheme)) == 0) {
			ret_listen->is_tls = schemes[i].is_tls;
			prefix = schemes[i].prefix;
			rest = url + strlen(schemes[i].scheme);
			break;
		}
	if (strstr(rest, "://"))
		return "the scheme must be http, https, unix or unixs";
	if (ret_listen->is_tls && !has_certificate)
		return "https and unixs require a certificate and its key";
	if (*rest == 0 || (size_t) snprintf(ret_listen->address, sizeof ret_listen->address, "%s%s", prefix,
					    rest) >= sizeof ret_listen->address)
		return "it is empty or too long";
	return NULL;
}

void vdi_etcd_listen_url(const char *address, bool is_tls, char *ret_url, size_t size)
{
	if (strncmp(address, "unix:", 5) == 0)
		(void) snprintf(ret_url, size, "%s://%s", is_tls ? "unixs" : "unix",
				address + 5 + (strncmp(address + 5, "//", 2) == 0 ? 2 : 0));
	else
		(void) snprintf(ret_url, size, "%s://%s", is_tls ? "https" : "http", address);
}

#if VDI_ETCD

#include "auth.h"
#include "serve_rpc.h"

struct vdi_etcd_port {
	struct vdi_etcdserver *server;
	struct vdi_serve_rpc  *rpc;
	char		      *state_path;
	char		       url[320];
};

static vd_status open_server(const struct vd_env *env, struct vd_store *store, bool client_cert_auth,
			     const char *data_dir, struct vdi_etcd_port *port, struct vd_error *reterr)
{
	static const char *const      peer_urls[] = { "http://localhost:2380" };
	struct vdi_etcdserver_options options = { .store = store,
						  .peer_urls = peer_urls,
						  .peer_url_count = 1,
						  .client_cert_auth = client_cert_auth };
	size_t			      size = data_dir ? strlen(data_dir) + sizeof "/etcd" : 0;

	if (data_dir) {
		port->state_path = vdi_alloc(size);
		if (port->state_path == NULL)
			return vd_error_set(reterr, VD_NOMEM, "out of memory");
		(void) snprintf(port->state_path, size, "%s/etcd", data_dir);
		options.state_path = port->state_path;
	}
	return vdi_etcdserver_new(env, &options, &port->server, reterr);
}

static vd_status check_exposure(const struct vdi_etcd_port_options *options,
				const struct vdi_etcd_listen *listen, const struct vdi_etcd_port *port,
				struct vd_error *reterr)
{
	if (options->insecure_no_auth || vdi_etcd_is_loopback(listen->address) ||
	    (listen->is_tls && options->client_cert_auth) || vdi_auth_is_enabled(port->server->auth))
		return VD_OK;
	return vd_error_set(reterr, VD_INVALID_ARGUMENT,
			    "--etcd-listen %s can be reached from other machines without authentication: use "
			    "--etcd-listen-client-cert-auth, enable "
			    "authentication, or give --insecure-no-auth",
			    listen->address);
}

vd_status vdi_etcd_port_open(const struct vd_env *env, struct vd_store *store,
			     const struct vdi_etcd_port_options *options, const char *data_dir,
			     struct vdi_etcd_port **ret_port, struct vd_error *reterr)
{
	struct vdi_etcd_listen listen;
	const char *why = vdi_etcd_listen_parse(options->listen, options->cert_file != NULL, &listen);
	const char *address = listen.address;
	struct vdi_rpc_server_tls    tls = { .cert_path = options->cert_file,
					     .key_path = options->key_file,
					     .client_ca_path = options->trusted_ca_file,
					     .require_client_cert = options->client_cert_auth };
	struct vdi_serve_rpc_options rpc = { .listen = &address,
					     .listen_count = 1,
					     .tls = listen.is_tls ? &tls : NULL };
	struct vdi_etcd_port	    *port = VDI_NEW(struct vdi_etcd_port);
	vd_status		     status;

	if (port == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	VDI_CHECK(why == NULL); /* checked by vdi_etcd_port_options_check */
	status = open_server(env, store, options->client_cert_auth, data_dir, port, reterr);
	if (status == VD_OK)
		status = check_exposure(options, &listen, port, reterr);
	if (status == VD_OK)
		status = vdi_rpc_choose(options->rpc, &rpc.transport, reterr);
	if (status == VD_OK)
		status = vdi_serve_rpc_new(port->server, &rpc, &port->rpc, reterr);
	if (status != VD_OK) {
		(void) vdi_etcd_port_close(port);
		return status;
	}
	vdi_etcd_listen_url(vdi_serve_rpc_address(port->rpc, 0), listen.is_tls, port->url, sizeof port->url);
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

vd_status vdi_etcd_port_open(const struct vd_env *env, struct vd_store *store,
			     const struct vdi_etcd_port_options *options, const char *data_dir,
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
