/* Files are read at the start only: a replaced certificate is used after a restart, or by a new client. A
 * transport detects late, and reports little, if a file has no certificate or a key does not match; so
 * everything is checked here, and errors have the file's name and OpenSSL's text. */
#include <errno.h>
#include <stdio.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "rpc_pems.h"
#include "tls_socket.h"

#define FILE_SIZE_MAX (1 << 20)

static vd_status read_file(const char *what, const char *path, char **ret_text, struct vd_error *reterr)
{
	FILE  *file = fopen(path, "re");
	char  *text;
	size_t size;
	int    error = errno;
	bool   failed;

	if (file == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "%s \"%.200s\": %s", what, path,
				    strerror(error));
	text = vdi_alloc(FILE_SIZE_MAX + 1);
	if (text == NULL) {
		fclose(file);
		return vd_error_set(reterr, VD_NOMEM, "%s \"%.200s\": out of memory", what, path);
	}
	size = fread(text, 1, FILE_SIZE_MAX + 1, file);
	error = errno;
	failed = ferror(file);
	fclose(file);
	if (!failed && size <= FILE_SIZE_MAX) {
		text[size] = 0;
		if (strstr(text, "-----BEGIN ")) {
			*ret_text = text;
			return VD_OK;
		}
	}
	vdi_free(text);
	return vd_error_set(reterr, VD_INVALID_ARGUMENT, "%s \"%.200s\": %s", what, path,
			    failed		 ? strerror(error) :
			    size > FILE_SIZE_MAX ? "too large" :
						   "holds no PEM block");
}

/* ---- Trying them ---- */

static vd_status refuse(const char *what, const char *path, const char *why, struct vd_error *reterr)
{
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());

	(void) vd_error_set(reterr, VD_INVALID_ARGUMENT, "%s \"%.200s\" cannot be used: %s%s%s", what, path,
			    why, reason ? ": " : "", reason ? reason : "");
	ERR_clear_error();
	return VD_INVALID_ARGUMENT;
}

/* Returns the first certificate, and checks that all following ones can be read. */
static vd_status try_certificates(const char *what, const char *path, const char *text, X509 **ret_first,
				  struct vd_error *reterr)
{
	BIO  *bio = BIO_new_mem_buf(text, -1);
	X509 *first = bio ? PEM_read_bio_X509(bio, NULL, vdi_tls_no_passphrase, NULL) : NULL;
	X509 *next = first;
	bool  is_end;

	while (next && (next = PEM_read_bio_X509(bio, NULL, vdi_tls_no_passphrase, NULL)) != NULL)
		X509_free(next);
	is_end = first && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
	BIO_free(bio);
	if (!is_end) {
		X509_free(first);
		return refuse(what, path,
			      first ? "a certificate behind the first one cannot be read" :
				      "no certificate can be read",
			      reterr);
	}
	ERR_clear_error();
	*ret_first = first;
	return VD_OK;
}

static vd_status try_key(const char *cert_path, X509 *certificate, const char *path, const char *text,
			 struct vd_error *reterr)
{
	BIO	 *bio = BIO_new_mem_buf(text, -1);
	EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, vdi_tls_no_passphrase, NULL) : NULL;
	vd_status status = VD_OK;
	char	  why[280];

	BIO_free(bio);
	if (key == NULL)
		return refuse("key", path, "no private key can be read", reterr);
	(void) snprintf(why, sizeof why, "it is not the key of \"%.200s\"", cert_path);
	if (X509_check_private_key(certificate, key) != 1)
		status = refuse("key", path, why, reterr);
	EVP_PKEY_free(key);
	return status;
}

static vd_status try_pems(const char *ca_path, const char *cert_path, const char *key_path,
			  const struct vdi_rpc_pems *pems, struct vd_error *reterr)
{
	X509	 *certificate = NULL;
	vd_status status = VD_OK;

	ERR_clear_error();
	if (pems->ca)
		status = try_certificates("CA file", ca_path, pems->ca, &certificate, reterr);
	X509_free(certificate);
	if (status != VD_OK || pems->cert == NULL)
		return status;
	VDI_TRY(try_certificates("certificate", cert_path, pems->cert, &certificate, reterr));
	status = try_key(cert_path, certificate, key_path, pems->key, reterr);
	X509_free(certificate);
	return status;
}

void vdi_rpc_pems_fini(struct vdi_rpc_pems *pems)
{
	vdi_free(pems->ca);
	vdi_free(pems->cert);
	vdi_free(pems->key);
}

vd_status vdi_rpc_pems_read(const char *ca_path, const char *cert_path, const char *key_path,
			    struct vdi_rpc_pems *ret_pems, struct vd_error *reterr)
{
	struct vdi_rpc_pems pems = { 0 };
	vd_status	    status = VD_OK;

	if (!cert_path != !key_path)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "a certificate and its key are given together or not at all");
	if (ca_path)
		status = read_file("CA file", ca_path, &pems.ca, reterr);
	if (status == VD_OK && cert_path)
		status = read_file("certificate", cert_path, &pems.cert, reterr);
	if (status == VD_OK && key_path)
		status = read_file("key", key_path, &pems.key, reterr);
	if (status == VD_OK)
		status = try_pems(ca_path, cert_path, key_path, &pems, reterr);
	if (status != VD_OK) {
		vdi_rpc_pems_fini(&pems);
		return status;
	}
	*ret_pems = pems;
	return VD_OK;
}
