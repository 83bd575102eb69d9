/* An etcd port on a store that something else serves too: `vedette serve --etcd-listen`. An address that
 * other machines can reach is refused as long as nothing asks who the clients are: client certificates, or
 * authentication enabled through etcd's own API. One thread; blocks. Without etcd in the build opening
 * answers VD_UNSUPPORTED. */
#ifndef VDI_ETCD_PORT_H
#define VDI_ETCD_PORT_H

#include <vedette/store.h>

#include "command_line.h"

struct vdi_etcd_port;

struct vdi_etcd_port_options {
	const char *listen; /* ADDR:PORT, or a URL whose scheme fits; NULL: no port */
	const char *cert_file;
	const char *key_file;
	const char *trusted_ca_file;
	bool	    client_cert_auth;
	bool	    insecure_no_auth;
	const char *rpc; /* the transport; NULL: the default */
};

/* The entries of an option table; as `vedette etcd` calls them, behind etcd-listen. */
#define VDI_ETCD_PORT_OPTION_TABLE(port)                                                                     \
	{ 0,                                                                                                 \
	  "etcd-listen",                                                                                     \
	  VDI_OPTION_TEXT,                                                                                   \
	  "ADDR:PORT",                                                                                       \
	  "serve the store to etcd clients at this address",                                                 \
	  &(port)->listen },                                                                                 \
		{ 0,                                                                                         \
		  "etcd-listen-cert-file",                                                                   \
		  VDI_OPTION_TEXT,                                                                           \
		  "FILE",                                                                                    \
		  "serve TLS on the etcd port with this certificate (PEM)",                                  \
		  &(port)->cert_file },                                                                      \
		{ 0,                                                                                         \
		  "etcd-listen-key-file",                                                                    \
		  VDI_OPTION_TEXT,                                                                           \
		  "FILE",                                                                                    \
		  "private key of the --etcd-listen-cert-file certificate (PEM)",                            \
		  &(port)->key_file },                                                                       \
		{ 0,                                                                                         \
		  "etcd-listen-trusted-ca-file",                                                             \
		  VDI_OPTION_TEXT,                                                                           \
		  "FILE",                                                                                    \
		  "CA bundle for verifying client certificates of the etcd port",                            \
		  &(port)->trusted_ca_file },                                                                \
	{                                                                                                    \
		0, "etcd-listen-client-cert-auth", VDI_OPTION_FLAG, NULL,                                    \
			"require a client certificate on the etcd port; its common name is the user",        \
			&(port)->client_cert_auth                                                            \
	}

/* False: *ret_exit is the exit status (the mistake was said). */
bool vdi_etcd_port_options_check(const struct vdi_command	    *command,
				 const struct vdi_etcd_port_options *options, int *ret_exit);

/* data_dir: of the store; NULL: in memory. VD_INVALID_ARGUMENT: the address, a file, or an address that would
 * be open to everybody. */
VDI_MUST_USE vd_status vdi_etcd_port_open(const struct vd_env *env, struct vd_store *store,
					  const struct vdi_etcd_port_options *options, const char *data_dir,
					  struct vdi_etcd_port **ret_port, struct vd_error *reterr);
/* "127.0.0.1:2379", with the port in use. Lent. */
const char *vdi_etcd_port_address(const struct vdi_etcd_port *port);
/* NULL is fine; returns NULL. Before the store is closed. */
struct vdi_etcd_port *vdi_etcd_port_close(struct vdi_etcd_port *port);

/* ---- For `vedette etcd` too ---- */

/* Nobody on another machine can reach it. */
bool vdi_etcd_is_loopback(const char *address);
/* An address to listen on: "127.0.0.1:2379", "unix:/path". */
struct vdi_etcd_listen {
	bool is_tls;
	char address[288];
};
/* http: and unix: are plain, https: and unixs: are TLS, as in etcd; an address without a scheme is TLS if
 * there is a certificate. NULL, or what is wrong with it. */
VDI_MUST_USE const char *vdi_etcd_listen_parse(const char *url, bool has_certificate,
					       struct vdi_etcd_listen *ret_listen);
/* As a client writes it: "https://127.0.0.1:2379", "unixs:///path". */
void vdi_etcd_listen_url(const char *address, bool is_tls, char *ret_url, size_t size);

#endif
