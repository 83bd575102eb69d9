/* rpc_pems.c has read and checked the files before OpenSSL gets them. OpenSSL reads ahead, so that a complete
 * record costs one recv; vdi_h2_link_has_more reports its buffered bytes. */
#include <stdio.h>

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "h2_tls.h"
#include "h2_tls_limits.h"
#include "rpc_pems.h"
#include "tls_stream.h"

struct vdi_h2_tls {
	SSL_CTX	   *context;
	bool	    is_server;
	bool	    takes_http1;
	const char *crl_path; /* server only; NULL: none */
};

struct vdi_h2_link {
	struct vdi_tls_stream stream;
	const char	     *crl_path;
	bool		      takes_http1;
	bool		      is_http2;
	char		      name[]; /* name that the certificate must be valid for */
};

/* ---- Contexts ---- */

static const struct vd_bytes protocols = { "\x02h2", 3 };
static const struct vd_bytes older_protocols = { "\x08http/1.1", 9 };

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *size,
			   const unsigned char *offered, unsigned offered_size, void *arg)
{
	(void) ssl;
	(void) arg;
	return vdi_tls_select_protocol(protocols, out, size, offered, offered_size) ?
		       SSL_TLSEXT_ERR_OK :
		       SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Like a Go server that lists only h2: a client that offers only http/1.1 is served without ALPN. */
static int choose_or_pass(SSL *ssl, const unsigned char **out, unsigned char *size,
			  const unsigned char *offered, unsigned offered_size, void *arg)
{
	const unsigned char *ignored;
	unsigned char	     ignored_size;

	if (choose_protocol(ssl, out, size, offered, offered_size, arg) == SSL_TLSEXT_ERR_OK)
		return SSL_TLSEXT_ERR_OK;
	return vdi_tls_select_protocol(older_protocols, &ignored, &ignored_size, offered, offered_size) ?
		       SSL_TLSEXT_ERR_NOACK :
		       SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* The first certificate is our own, or a trusted one; the others are intermediates, or further trusted
 * ones. */
static bool add_certificates(SSL_CTX *context, const char *pem, bool is_trusted)
{
	BIO  *bio = BIO_new_mem_buf(pem, -1);
	X509 *certificate;
	bool  is_first = true;
	bool  fine = bio != NULL;

	while (fine && (certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
		if (is_trusted)
			fine = X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate) == 1;
		else if (is_first)
			fine = SSL_CTX_use_certificate(context, certificate) == 1;
		else
			fine = SSL_CTX_add1_chain_cert(context, certificate) == 1;
		X509_free(certificate);
		is_first = false;
	}
	BIO_free(bio);
	return fine && !is_first;
}

static bool add_key(SSL_CTX *context, const char *pem)
{
	BIO	 *bio = BIO_new_mem_buf(pem, -1);
	EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;
	bool	  fine = key && SSL_CTX_use_PrivateKey(context, key) == 1;

	EVP_PKEY_free(key);
	BIO_free(bio);
	return fine;
}

static bool name_authorities(SSL_CTX *context, const char *pem)
{
	BIO  *bio = BIO_new_mem_buf(pem, -1);
	X509 *certificate;
	bool  fine = bio != NULL;

	while (fine && (certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
		fine = SSL_CTX_add_client_CA(context, certificate) == 1;
		X509_free(certificate);
	}
	BIO_free(bio);
	return fine;
}

static bool set_up(SSL_CTX *context, const struct vdi_rpc_pems *pems)
{
	SSL_CTX_set_read_ahead(context, 1);
	(void) X509_STORE_set_flags(SSL_CTX_get_cert_store(context),
				    X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST);
	return (pems->ca == NULL || add_certificates(context, pems->ca, true)) &&
	       (pems->cert == NULL || add_certificates(context, pems->cert, false)) &&
	       (pems->key == NULL || add_key(context, pems->key));
}

static vd_status make_context(bool is_server, const struct vdi_rpc_pems *pems, struct vdi_h2_tls **ret_tls,
			      struct vd_error *reterr)
{
	struct vdi_h2_tls *tls = VDI_NEW(struct vdi_h2_tls);

	ERR_clear_error();
	if (tls == NULL || (tls->context = vdi_tls_context_new(is_server)) == NULL) {
		(void) vdi_h2_tls_free(tls);
		return vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	}
	tls->is_server = is_server;
	if (!set_up(tls->context, pems)) {
		const char *reason = ERR_reason_error_string(ERR_peek_last_error());

		(void) vd_error_set(reterr, VD_INVALID_ARGUMENT, "the certificates were not accepted%s%s",
				    reason ? ": " : "", reason ? reason : "");
		ERR_clear_error();
		(void) vdi_h2_tls_free(tls);
		return VD_INVALID_ARGUMENT;
	}
	ERR_clear_error();
	*ret_tls = tls;
	return VD_OK;
}

vd_status vdi_h2_tls_new_client(const struct vdi_rpc_tls *tls, struct vdi_h2_tls **ret_tls,
				struct vd_error *reterr)
{
	struct vdi_rpc_pems pems = { 0 };
	struct vdi_h2_tls  *made;
	vd_status	    status;

	if (tls)
		VDI_TRY(vdi_rpc_pems_read(tls->ca_path, tls->cert_path, tls->key_path, &pems, reterr));
	status = make_context(false, &pems, &made, reterr);
	if (status == VD_OK) {
		if (pems.ca == NULL)
			(void) SSL_CTX_set_default_verify_paths(made->context);
		SSL_CTX_set_verify(made->context, SSL_VERIFY_PEER, NULL);
		(void) SSL_CTX_set_alpn_protos(made->context, protocols.data, (unsigned) protocols.size);
		ERR_clear_error();
		*ret_tls = made;
	}
	vdi_rpc_pems_fini(&pems);
	return status;
}

vd_status vdi_h2_tls_new_server(const struct vdi_rpc_server_tls *tls, bool takes_http1,
				struct vdi_h2_tls **ret_tls, struct vd_error *reterr)
{
	struct vdi_rpc_pems pems;
	struct vdi_h2_tls  *made;
	vd_status	    status;

	if (tls->cert_path == NULL || tls->key_path == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "a TLS server needs a certificate and its key");
	if (tls->require_client_cert && tls->client_ca_path == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "client certificates cannot be required without a CA for them");
	VDI_TRY(vdi_rpc_pems_read(tls->client_ca_path, tls->cert_path, tls->key_path, &pems, reterr));
	status = make_context(true, &pems, &made, reterr);
	if (status == VD_OK) {
		made->takes_http1 = takes_http1;
		made->crl_path = tls->crl_path;
		SSL_CTX_set_alpn_select_cb(made->context, takes_http1 ? choose_or_pass : choose_protocol,
					   NULL);
		if (pems.ca)
			SSL_CTX_set_verify(
				made->context,
				SSL_VERIFY_PEER |
					(tls->require_client_cert ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
				NULL);
		status = vdi_h2_tls_limits_set(made->context, tls, reterr);
		if (status == VD_OK && pems.ca && !name_authorities(made->context, pems.ca))
			status = vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
		if (status == VD_OK)
			*ret_tls = made;
		else
			(void) vdi_h2_tls_free(made);
		ERR_clear_error();
	}
	vdi_rpc_pems_fini(&pems);
	return status;
}

struct vdi_h2_tls *vdi_h2_tls_free(struct vdi_h2_tls *tls)
{
	if (tls)
		SSL_CTX_free(tls->context);
	vdi_free(tls);
	return NULL;
}

/* ---- Links ---- */

static bool is_address(const char *name)
{
	unsigned char address[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

static bool expect_name(SSL *ssl, const char *name)
{
	if (is_address(name))
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

vd_status vdi_h2_link_new(struct vdi_h2_tls *tls, int fd, const char *name, struct vdi_h2_link **ret_link)
{
	size_t		    name_size = name ? strlen(name) : 0;
	struct vdi_h2_link *link = vdi_calloc(1, sizeof *link + name_size + 1);

	if (link == NULL)
		return VD_NOMEM;
	if (name)
		memcpy(link->name, name, name_size);
	link->takes_http1 = tls->takes_http1;
	link->crl_path = tls->crl_path;
	if (!tls->is_server)
		link->stream.name = link->name;
	if (vdi_tls_stream_init(&link->stream, tls->context, fd) != VD_OK ||
	    (!tls->is_server && !expect_name(link->stream.ssl, link->name))) {
		ERR_clear_error();
		(void) vdi_h2_link_free(link);
		return VD_NOMEM;
	}
	*ret_link = link;
	return VD_OK;
}

struct vdi_h2_link *vdi_h2_link_free(struct vdi_h2_link *link)
{
	if (link)
		vdi_tls_stream_fini(&link->stream);
	vdi_free(link);
	return NULL;
}

static vd_status refuse(struct vdi_h2_link *link, const char *why)
{
	link->stream.is_up = false;
	link->stream.is_broken = true;
	(void) snprintf(link->stream.why, sizeof link->stream.why, "%s", why);
	return VD_IO;
}

vd_status vdi_h2_link_shake(struct vdi_h2_link *link, bool *ret_wants_write)
{
	vd_status	     status = vdi_tls_stream_shake(&link->stream, ret_wants_write);
	const unsigned char *protocol;
	unsigned	     size;

	if (status != VD_OK)
		return status == VD_AGAIN ? VD_AGAIN : VD_IO;
	if (link->crl_path && !vdi_h2_tls_limits_allow(link->stream.ssl, link->crl_path))
		return refuse(link,
			      "the client's certificate is revoked, or the revocation list cannot be read");
	SSL_get0_alpn_selected(link->stream.ssl, &protocol, &size);
	link->is_http2 = size == 2 && memcmp(protocol, "h2", 2) == 0;
	if (link->is_http2 || link->takes_http1)
		return VD_OK;
	return refuse(link, link->stream.name ? "the server does not offer HTTP/2 (ALPN)" :
						"the client does not offer HTTP/2 (ALPN)");
}

bool vdi_h2_link_is_http2(const struct vdi_h2_link *link)
{
	return link->is_http2;
}

ssize_t vdi_h2_link_receive(struct vdi_h2_link *link, void *buffer, size_t size)
{
	return vdi_tls_stream_receive(&link->stream, buffer, size);
}

ssize_t vdi_h2_link_send(struct vdi_h2_link *link, const void *data, size_t size)
{
	return vdi_tls_stream_send(&link->stream, data, size);
}

bool vdi_h2_link_has_more(const struct vdi_h2_link *link)
{
	return SSL_has_pending(link->stream.ssl) == 1;
}

void vdi_h2_link_end(struct vdi_h2_link *link)
{
	vdi_tls_stream_end(&link->stream);
}

const char *vdi_h2_link_why(const struct vdi_h2_link *link)
{
	return link->stream.why;
}

void vdi_h2_link_common_name(const struct vdi_h2_link *link, char *text, size_t size)
{
	X509 *certificate = SSL_get0_peer_certificate(link->stream.ssl);
	int   used = -1;

	if (certificate && SSL_get_verify_result(link->stream.ssl) == X509_V_OK)
		used = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, text,
						 (int) size);
	if (used < 0 || memchr(text, 0, (size_t) used) != NULL)
		text[0] = 0;
}
