/* Cipher suites have IANA's names; OpenSSL translates them. A revocation list is PEM, one or more blocks, or
 * DER; its signer is not checked, because the operator provides the file, like the CA file. */
#include "h2_tls_limits.h"

#include <errno.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "buffer.h"

#define CIPHER_LIST_MAX 8192

/* ---- Versions and cipher suites ---- */

static bool read_version(const char *text, int *ret_version)
{
	*ret_version = text == NULL || *text == 0  ? 0 :
		       strcmp(text, "TLS1.2") == 0 ? TLS1_2_VERSION :
		       strcmp(text, "TLS1.3") == 0 ? TLS1_3_VERSION :
						     -1;
	return *ret_version >= 0;
}

static vd_status set_versions(SSL_CTX *context, const struct vdi_rpc_server_tls *tls, struct vd_error *reterr)
{
	int least, most;

	if (!read_version(tls->min_version, &least) || !read_version(tls->max_version, &most))
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "TLS version \"%s\" is unknown: TLS1.2 or TLS1.3",
				    least < 0 ? tls->min_version : tls->max_version);
	if (most && least > most)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "the minimum TLS version %s is above the maximum %s", tls->min_version,
				    tls->max_version);
	if (least == TLS1_3_VERSION && tls->cipher_suites && *tls->cipher_suites)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "cipher suites cannot be chosen for TLS1.3");
	if ((least && SSL_CTX_set_min_proto_version(context, least) != 1) ||
	    (most && SSL_CTX_set_max_proto_version(context, most) != 1))
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "OpenSSL does not allow these TLS versions");
	return VD_OK;
}

/* Returns OpenSSL's name; NULL: unknown suite. Go's names of the ChaCha20 suites omit the hash. */
static const char *openssl_name(const char *name, size_t size)
{
	char	    text[80];
	const char *found;

	if (size == 0 || size > sizeof text - 8)
		return NULL;
	memcpy(text, name, size);
	text[size] = 0;
	found = OPENSSL_cipher_name(text);
	if (strcmp(found, "(NONE)") == 0) {
		strcpy(text + size, "_SHA256");
		found = OPENSSL_cipher_name(text);
	}
	return strcmp(found, "(NONE)") == 0 ? NULL : found;
}

static vd_status set_suites(SSL_CTX *context, const char *names, struct vd_error *reterr)
{
	struct vdi_buffer list;
	vd_status	  status = VD_OK;

	vdi_buffer_init(&list, CIPHER_LIST_MAX);
	for (size_t size; status == VD_OK && *names; names += size + (names[size] == ',')) {
		const char *found;

		size = strcspn(names, ",");
		found = openssl_name(names, size);
		if (found == NULL)
			status = vd_error_set(reterr, VD_INVALID_ARGUMENT, "cipher suite \"%.*s\" is unknown",
					      (int) VDI_MIN(size, (size_t) 100), names);
		else
			vdi_buffer_printf(&list, "%s:", found);
	}
	vdi_buffer_append_char(&list, 0);
	if (status == VD_OK)
		status = vdi_buffer_status(&list);
	/* TLS 1.3 suites in the list are ignored: all of them are enabled. */
	if (status == VD_OK && SSL_CTX_set_cipher_list(context, list.data) != 1)
		status = vd_error_set(reterr, VD_INVALID_ARGUMENT,
				      "OpenSSL allows none of the cipher suites for TLS1.2");
	ERR_clear_error();
	vdi_buffer_fini(&list);
	return status;
}

/* ---- Host names of client certificates ---- */

static vd_status set_hostnames(SSL_CTX *context, const char *names, struct vd_error *reterr)
{
	X509_VERIFY_PARAM *param = SSL_CTX_get0_param(context);

	/* Like Go: only the subject alternative names count, not the common name. */
	X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
						       X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	for (size_t size; *names; names += size + (names[size] == ',')) {
		size = strcspn(names, ",");
		if (size && X509_VERIFY_PARAM_add1_host(param, names, size) != 1)
			return vd_error_set(reterr, VD_INVALID_ARGUMENT,
					    "host name \"%.*s\" of client certificates is not valid",
					    (int) VDI_MIN(size, (size_t) 100), names);
	}
	return VD_OK;
}

/* ---- Revoked certificates ---- */

/* NULL: the file cannot be read. The caller owns the result. */
static STACK_OF(X509_CRL) * read_list(const char *path)
{
	STACK_OF(X509_CRL) *lists = sk_X509_CRL_new_null();
	BIO	 *file = BIO_new_file(path, "rb");
	X509_CRL *list = NULL;
	bool	  fine = lists && file;

	while (fine && (list = PEM_read_bio_X509_CRL(file, NULL, NULL, NULL)) != NULL)
		fine = sk_X509_CRL_push(lists, list) > 0;
	if (fine && sk_X509_CRL_num(lists) == 0 && BIO_reset(file) == 0 &&
	    (list = d2i_X509_CRL_bio(file, NULL)) != NULL)
		fine = sk_X509_CRL_push(lists, list) > 0;
	if (!fine)
		X509_CRL_free(list);
	BIO_free(file);
	ERR_clear_error();
	if (fine && sk_X509_CRL_num(lists) > 0)
		return lists;
	sk_X509_CRL_pop_free(lists, X509_CRL_free);
	return NULL;
}

static bool is_revoked(STACK_OF(X509_CRL) * lists, X509 *certificate)
{
	X509_REVOKED *found;

	for (int i = 0; i < sk_X509_CRL_num(lists); i++)
		if (X509_CRL_get0_by_cert(sk_X509_CRL_value(lists, i), &found, certificate) == 1)
			return true;
	return false;
}

bool vdi_h2_tls_limits_allow(SSL *ssl, const char *crl_path)
{
	STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);
	STACK_OF(X509_CRL) * lists;
	bool is_allowed = true;

	if (SSL_get0_peer_certificate(ssl) == NULL)
		return true; /* require_client_cert is checked elsewhere */
	lists = read_list(crl_path);
	if (lists == NULL || chain == NULL)
		is_allowed = false;
	for (int i = 0; is_allowed && i < sk_X509_num(chain); i++)
		is_allowed = !is_revoked(lists, sk_X509_value(chain, i));
	sk_X509_CRL_pop_free(lists, X509_CRL_free);
	return is_allowed;
}

static vd_status try_list(const char *path, struct vd_error *reterr)
{
	STACK_OF(X509_CRL) *lists = read_list(path);

	if (lists == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "revocation list \"%.200s\" cannot be read: it must be PEM or DER", path);
	sk_X509_CRL_pop_free(lists, X509_CRL_free);
	return VD_OK;
}

vd_status vdi_h2_tls_limits_set(SSL_CTX *context, const struct vdi_rpc_server_tls *tls,
				struct vd_error *reterr)
{
	VDI_TRY(set_versions(context, tls, reterr));
	if (tls->cipher_suites && *tls->cipher_suites)
		VDI_TRY(set_suites(context, tls->cipher_suites, reterr));
	if (tls->allowed_hostnames)
		VDI_TRY(set_hostnames(context, tls->allowed_hostnames, reterr));
	return tls->crl_path ? try_list(tls->crl_path, reterr) : VD_OK;
}
