/* rpc_pems.c reads and checks the files. Core copies what it is given. */
#include "grpc_credentials.h"
#include "rpc_pems.h"

vd_status vdi_grpc_credentials_client(const struct vdi_rpc_tls	*tls,
				      grpc_channel_credentials **ret_credentials, struct vd_error *reterr)
{
	grpc_ssl_pem_key_cert_pair pair = { 0 };
	grpc_channel_credentials  *credentials;
	struct vdi_rpc_pems	   pems = { 0 };

	if (tls)
		VDI_TRY(vdi_rpc_pems_read(tls->ca_path, tls->cert_path, tls->key_path, &pems, reterr));
	pair.cert_chain = pems.cert;
	pair.private_key = pems.key;
	credentials = grpc_ssl_credentials_create_ex(pems.ca, pems.cert ? &pair : NULL, NULL, NULL);
	vdi_rpc_pems_fini(&pems);
	if (credentials == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "the certificates were not accepted");
	*ret_credentials = credentials;
	return VD_OK;
}

vd_status vdi_grpc_credentials_server(const struct vdi_rpc_server_tls *tls,
				      grpc_server_credentials **ret_credentials, struct vd_error *reterr)
{
	grpc_ssl_pem_key_cert_pair		 pair;
	grpc_ssl_client_certificate_request_type request = GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
	grpc_server_credentials			*credentials;
	struct vdi_rpc_pems			 pems;

	if (tls->cert_path == NULL || tls->key_path == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "a TLS server needs a certificate and its key");
	if (tls->require_client_cert && tls->client_ca_path == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "client certificates cannot be required without a CA for them");
	if (tls->min_version || tls->max_version || tls->cipher_suites || tls->allowed_hostnames ||
	    tls->crl_path)
		return vd_error_set(
			reterr, VD_UNSUPPORTED,
			"TLS versions, cipher suites, allowed client host names and revocation lists "
			"are not supported with gRPC C core");
	VDI_TRY(vdi_rpc_pems_read(tls->client_ca_path, tls->cert_path, tls->key_path, &pems, reterr));
	pair.cert_chain = pems.cert;
	pair.private_key = pems.key;
	if (pems.ca)
		request = tls->require_client_cert ?
				  GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY :
				  GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY;
	credentials = grpc_ssl_server_credentials_create_ex(pems.ca, &pair, 1, request, NULL);
	vdi_rpc_pems_fini(&pems);
	if (credentials == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "the certificates were not accepted");
	*ret_credentials = credentials;
	return VD_OK;
}
