/* TLS files and limits in the options of clients and servers. The caller owns paths and texts. */
#ifndef VDI_RPC_TLS_H
#define VDI_RPC_TLS_H

#include "base.h"

struct vdi_rpc_tls {
	const char *ca_path;   /* NULL: the system's roots */
	const char *cert_path; /* with key_path: mutual TLS */
	const char *key_path;
	const char *server_name; /* name to verify instead of the endpoint's host; NULL: the host */
};

struct vdi_rpc_server_tls {
	const char *cert_path;
	const char *key_path;
	const char *client_ca_path; /* with require_client_cert: mutual TLS */
	bool	    require_client_cert;
	/* Each may be NULL. Not supported by gRPC C core: VD_UNSUPPORTED. */
	const char *min_version; /* "TLS1.2" or "TLS1.3" */
	const char *max_version;
	const char *cipher_suites; /* of TLS 1.2, IANA names, separated by commas */
	/* separated by commas; a client's certificate must be valid for one of them */
	const char *allowed_hostnames;
	/* revoked client certificates, PEM or DER; read for each connection that presents a certificate. Must
	 * outlive the server */
	const char *crl_path;
};

#endif
