/* rpc_pems.c has read and checked the files before OpenSSL gets them. OpenSSL reads ahead, so that a complete
 * record costs one recv; vdi_h2_link_has_more reports its buffered bytes.
 *
 * With TLS 1.3 a client completes the handshake before the server has checked its certificate: a rejection
 * arrives as an alert with the first bytes. So failures of receive get a readable reason, too.
 */
#include <errno.h>
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
#include "tls_socket.h"

struct vdi_h2_tls {
	SSL_CTX	   *context;
	bool	    is_server;
	bool	    takes_http1;
	const char *crl_path; /* server only; NULL: none */
};

struct vdi_h2_link {
	SSL	   *ssl;
	const char *crl_path;
	bool	    is_server;
	bool	    takes_http1;
	bool	    is_http2;
	bool	    is_up;
	bool	    is_broken;
	char	    why[200];
	char	    name[]; /* name that the certificate must be valid for */
};

/* ---- Contexts ---- */

static const unsigned char protocols[] = "\x02h2";
static const unsigned char older_protocols[] = "\x08http/1.1";

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *size,
			   const unsigned char *offered, unsigned offered_size, void *arg)
{
	(void) ssl;
	(void) arg;
	return SSL_select_next_proto((unsigned char **) (uintptr_t) out, size, protocols,
				     sizeof protocols - 1, offered, offered_size) == OPENSSL_NPN_NEGOTIATED ?
		       SSL_TLSEXT_ERR_OK :
		       SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Like a Go server that lists only h2: a client that offers only http/1.1 is served without ALPN. */
static int choose_or_pass(SSL *ssl, const unsigned char **out, unsigned char *size,
			  const unsigned char *offered, unsigned offered_size, void *arg)
{
	unsigned char *ignored;
	unsigned char  ignored_size;

	if (choose_protocol(ssl, out, size, offered, offered_size, arg) == SSL_TLSEXT_ERR_OK)
		return SSL_TLSEXT_ERR_OK;
	return SSL_select_next_proto(&ignored, &ignored_size, older_protocols, sizeof older_protocols - 1,
				     offered, offered_size) == OPENSSL_NPN_NEGOTIATED ?
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
	(void) SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
						    SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
						    SSL_OP_IGNORE_UNEXPECTED_EOF);
	(void) SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	(void) SSL_CTX_set_num_tickets(context, 0);
	(void) SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
						 SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_read_ahead(context, 1);
	(void) X509_STORE_set_flags(SSL_CTX_get_cert_store(context),
				    X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST);
	return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
	       SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1 &&
	       (pems->ca == NULL || add_certificates(context, pems->ca, true)) &&
	       (pems->cert == NULL || add_certificates(context, pems->cert, false)) &&
	       (pems->key == NULL || add_key(context, pems->key));
}

static vd_status make_context(bool is_server, const struct vdi_rpc_pems *pems, struct vdi_h2_tls **ret_tls,
			      struct vd_error *reterr)
{
	struct vdi_h2_tls *tls = VDI_NEW(struct vdi_h2_tls);

	ERR_clear_error();
	if (tls == NULL || !vdi_tls_socket_prepare() ||
	    (tls->context = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method())) == NULL) {
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
		(void) SSL_CTX_set_alpn_protos(made->context, protocols, sizeof protocols - 1);
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
	BIO		   *bio = NULL;

	if (link == NULL)
		return VD_NOMEM;
	if (name)
		memcpy(link->name, name, name_size);
	link->is_server = tls->is_server;
	link->takes_http1 = tls->takes_http1;
	link->crl_path = tls->crl_path;
	link->ssl = SSL_new(tls->context);
	if (link->ssl == NULL || (!tls->is_server && !expect_name(link->ssl, link->name)) ||
	    (bio = vdi_tls_socket_new(fd)) == NULL) {
		ERR_clear_error();
		(void) vdi_h2_link_free(link);
		return VD_NOMEM;
	}
	SSL_set_bio(link->ssl, bio, bio);
	if (tls->is_server)
		SSL_set_accept_state(link->ssl);
	else
		SSL_set_connect_state(link->ssl);
	*ret_link = link;
	return VD_OK;
}

struct vdi_h2_link *vdi_h2_link_free(struct vdi_h2_link *link)
{
	if (link)
		SSL_free(link->ssl);
	vdi_free(link);
	return NULL;
}

/* ---- Error texts ---- */

static const char *words_of(const struct vdi_h2_link *link, unsigned long code)
{
	bool is_ssl = ERR_GET_LIB(code) == ERR_LIB_SSL;

	switch (is_ssl ? ERR_GET_REASON(code) : 0) {
	case SSL_R_WRONG_VERSION_NUMBER:
	case SSL_R_HTTP_REQUEST:
	case SSL_R_PACKET_LENGTH_TOO_LONG:
		return link->is_server ? "the client does not speak TLS" : "the server does not speak TLS";
	case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
	case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE: return "the server requires a client certificate";
	case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
	case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
	case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
	case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
	case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
		return link->is_server ? "the client does not accept the certificate" :
					 "the server does not accept the client certificate";
	case SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: return "the server does not offer HTTP/2 (ALPN)";
	default: return NULL;
	}
}

static void note_failure(struct vdi_h2_link *link, int error, int system_error)
{
	unsigned long code = ERR_peek_error();
	long	      verified = SSL_get_verify_result(link->ssl);
	const char   *reason = ERR_reason_error_string(code), *words = words_of(link, code);

	link->is_broken = true;
	if (link->why[0])
		return;
	if (!link->is_server &&
	    (verified == X509_V_ERR_HOSTNAME_MISMATCH || verified == X509_V_ERR_IP_ADDRESS_MISMATCH))
		(void) snprintf(link->why, sizeof link->why, "the server's certificate is not valid for %s",
				link->name);
	else if (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED)
		(void) snprintf(link->why, sizeof link->why,
				"the %s's certificate is not trusted (certificate verify failed)",
				link->is_server ? "client" : "server");
	else if (words)
		(void) snprintf(link->why, sizeof link->why, "%s", words);
	else if (reason)
		(void) snprintf(link->why, sizeof link->why, "TLS %s failed: %s",
				link->is_up ? "connection" : "handshake", reason);
	else if (error == SSL_ERROR_SYSCALL && system_error && system_error != ECONNRESET &&
		 system_error != EPIPE)
		(void) snprintf(link->why, sizeof link->why, "%s", strerror(system_error));
}

/* ---- Handshake and bytes ---- */

vd_status vdi_h2_link_shake(struct vdi_h2_link *link, bool *ret_wants_write)
{
	const unsigned char *protocol;
	unsigned	     size;
	int		     result, error, system_error;

	ERR_clear_error();
	errno = 0;
	result = SSL_do_handshake(link->ssl);
	system_error = errno;
	error = SSL_get_error(link->ssl, result);
	*ret_wants_write = error == SSL_ERROR_WANT_WRITE;
	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return VD_AGAIN;
	if (result != 1) {
		note_failure(link, error, system_error);
		ERR_clear_error();
		return VD_IO;
	}
	if (link->crl_path && !vdi_h2_tls_limits_allow(link->ssl, link->crl_path)) {
		link->is_broken = true;
		(void) snprintf(link->why, sizeof link->why,
				"the client's certificate is revoked, or the revocation list cannot be read");
		return VD_IO;
	}
	SSL_get0_alpn_selected(link->ssl, &protocol, &size);
	link->is_http2 = size == 2 && memcmp(protocol, "h2", 2) == 0;
	if (!link->is_http2 && !link->takes_http1) {
		link->is_broken = true;
		(void) snprintf(link->why, sizeof link->why, "the %s does not offer HTTP/2 (ALPN)",
				link->is_server ? "client" : "server");
		return VD_IO;
	}
	link->is_up = true;
	return VD_OK;
}

bool vdi_h2_link_is_http2(const struct vdi_h2_link *link)
{
	return link->is_http2;
}

/* -1 with errno; 0: end of the stream. */
static ssize_t failure_of(struct vdi_h2_link *link, int result, bool is_send)
{
	int system_error = errno;
	int error = SSL_get_error(link->ssl, result);

	if (error == SSL_ERROR_ZERO_RETURN && !is_send) {
		ERR_clear_error();
		return 0;
	}
	if (error == (is_send ? SSL_ERROR_WANT_WRITE : SSL_ERROR_WANT_READ)) {
		ERR_clear_error();
		errno = EAGAIN;
		return -1;
	}
	/* Includes a peer that requests new keys and reads nothing: the answer to it would have to be sent
	 * first, and no code waits for that. */
	note_failure(link, error, system_error);
	ERR_clear_error();
	errno = EIO;
	return -1;
}

ssize_t vdi_h2_link_receive(struct vdi_h2_link *link, void *buffer, size_t size)
{
	size_t got;
	int    result;

	ERR_clear_error();
	errno = 0;
	result = SSL_read_ex(link->ssl, buffer, size, &got);
	return result == 1 ? (ssize_t) got : failure_of(link, result, false);
}

ssize_t vdi_h2_link_send(struct vdi_h2_link *link, const void *data, size_t size)
{
	size_t written;
	int    result;

	if (link->is_broken) {
		errno = EIO;
		return -1;
	}
	ERR_clear_error();
	errno = 0;
	result = SSL_write_ex(link->ssl, data, size, &written);
	return result == 1 ? (ssize_t) written : failure_of(link, result, true);
}

bool vdi_h2_link_has_more(const struct vdi_h2_link *link)
{
	return SSL_has_pending(link->ssl) == 1;
}

void vdi_h2_link_end(struct vdi_h2_link *link)
{
	if (!link->is_up || link->is_broken)
		return;
	link->is_broken = true; /* nothing more is sent */
	ERR_clear_error();
	(void) SSL_shutdown(link->ssl);
	ERR_clear_error();
}

const char *vdi_h2_link_why(const struct vdi_h2_link *link)
{
	return link->why;
}

void vdi_h2_link_common_name(const struct vdi_h2_link *link, char *text, size_t size)
{
	X509 *certificate = SSL_get0_peer_certificate(link->ssl);
	int   used = -1;

	if (certificate && SSL_get_verify_result(link->ssl) == X509_V_OK)
		used = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, text,
						 (int) size);
	if (used < 0 || memchr(text, 0, (size_t) used) != NULL)
		text[0] = 0;
}
