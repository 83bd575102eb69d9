/* An etcd port on a store that is also served otherwise: `vedette serve --etcd-listen`. An address that other
 * machines can reach is rejected unless clients are authenticated, by client certificates or by
 * authentication enabled through etcd's API. One thread; blocks. In a build without etcd, opening returns
 * VD_UNSUPPORTED. */
#ifndef VDI_ETCD_PORT_H
#define VDI_ETCD_PORT_H

#include <vedette/store.h>

#include "command_line.h"

struct vdi_etcd_port;

struct vdi_etcd_port_options {
	const char *listen; /* ADDR:PORT, or a URL with a matching scheme; NULL: no port */
	const char *cert_file;
	const char *key_file;
	const char *trusted_ca_file;
	bool	    client_cert_auth;
	bool	    insecure_no_auth;
	const char *rpc; /* name of the transport; NULL: the default */
};

/* Entries of an option table, named as those of `vedette etcd` after the prefix etcd-listen. */
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

/* false: *ret_exit is the exit status (the error was reported). */
bool vdi_etcd_port_options_check(const struct vdi_command	    *command,
				 const struct vdi_etcd_port_options *options, int *ret_exit);

/* data_dir: directory of the store; NULL: in memory. VD_INVALID_ARGUMENT: the address, a file, or an address
 * that would be open to other machines without authentication. */
VDI_MUST_USE vd_status vdi_etcd_port_open(const struct vd_env *env, struct vd_store *store,
					  const struct vdi_etcd_port_options *options, const char *data_dir,
					  struct vdi_etcd_port **ret_port, struct vd_error *reterr);
/* Returns "127.0.0.1:2379", with the actual port. Borrowed. */
const char *vdi_etcd_port_address(const struct vdi_etcd_port *port);
/* Call before the store is closed. Accepts NULL; returns NULL. */
struct vdi_etcd_port *vdi_etcd_port_close(struct vdi_etcd_port *port);

/* ---- Also for `vedette etcd` ---- */

/* Returns true if other machines cannot reach the address. */
bool vdi_etcd_is_loopback(const char *address);
/* A listen address: "127.0.0.1:2379", "unix:/path". */
struct vdi_etcd_listen {
	bool is_tls;
	char address[288];
};
/* Parses a listen URL: http: and unix: are plain, https: and unixs: are TLS, as in etcd; an address without a
 * scheme is TLS if there is a certificate. Returns NULL, or the error. */
VDI_MUST_USE const char *vdi_etcd_listen_parse(const char *url, bool has_certificate,
					       struct vdi_etcd_listen *ret_listen);
/* Formats the URL for clients: "https://127.0.0.1:2379", "unixs:///path". */
void vdi_etcd_listen_url(const char *address, bool is_tls, char *ret_url, size_t size);

#endif
