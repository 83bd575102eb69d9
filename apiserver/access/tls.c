/* TLS by OpenSSL on non-blocking sockets.
 *
 * If the socket is full, OpenSSL requires the same record to be offered again, whole. Callers may return with
 * fewer bytes, so the link keeps a copy of the record and reports it as sent; nothing else is sent before it.
 * Sessions are not resumed: clients keep their connections, and a ticket must not outlive a revoked CA.
 */
#include "tls.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include "tls_socket.h"

#define RECORD 16384

struct vdi_tls {
	SSL_CTX *context;
};

struct vdi_tls_link {
	SSL   *ssl;
	char  *held; /* record that the socket did not take */
	size_t held_size;
	bool   is_up;
	bool   is_broken;
};

/* ---- Contexts ---- */

/* Returns OpenSSL's latest error, or, if that is a system error, the earliest; clears the error queue. */
static const char *reason(void)
{
	unsigned long code = ERR_SYSTEM_ERROR(ERR_peek_error()) ? ERR_peek_error() : ERR_peek_last_error();
	const char   *text =
		  ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code)) : ERR_reason_error_string(code);

	ERR_clear_error();
	return text ? text : "the file is not usable";
}

/* As upstream, certificates are checked after the handshake, so that a token can still authenticate the
 * client. */
static int accept_any(int is_fine, X509_STORE_CTX *store)
{
	(void) is_fine;
	(void) store;
	return 1;
}

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *size,
			   const unsigned char *offered, unsigned offered_size, void *arg)
{
	static const unsigned char ours[] = "\x08http/1.1";

	(void) ssl;
	(void) arg;
	return SSL_select_next_proto((unsigned char **) (uintptr_t) out, size, ours, sizeof ours - 1, offered,
				     offered_size) == OPENSSL_NPN_NEGOTIATED ?
		       SSL_TLSEXT_ERR_OK :
		       SSL_TLSEXT_ERR_NOACK;
}

static vd_status load_clients(SSL_CTX *context, const char *path, struct vd_error *reterr)
{
	STACK_OF(X509_NAME) * names;

	if (SSL_CTX_load_verify_locations(context, path, NULL) != 1 ||
	    (names = SSL_load_client_CA_file(path)) == NULL)
		return vd_error_set(reterr, VD_INVALID, "%s: %s", path, reason());
	SSL_CTX_set_client_CA_list(context, names);
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, accept_any);
	return VD_OK;
}

static vd_status configure(SSL_CTX *context, const char *cert_path, const char *key_path,
			   const char *client_ca_path, struct vd_error *reterr)
{
	(void) SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	(void) SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
						    SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
						    SSL_OP_IGNORE_UNEXPECTED_EOF);
	(void) SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	(void) SSL_CTX_set_num_tickets(context, 0);
	(void) SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
						 SSL_MODE_RELEASE_BUFFERS);
	(void) SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20");
	SSL_CTX_set_default_passwd_cb(context, vdi_tls_no_passphrase);
	SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
	if (SSL_CTX_use_certificate_chain_file(context, cert_path) != 1)
		return vd_error_set(reterr, VD_INVALID, "%s: %s", cert_path, reason());
	if (SSL_CTX_use_PrivateKey_file(context, key_path, SSL_FILETYPE_PEM) != 1)
		return vd_error_set(reterr, VD_INVALID, "%s: %s", key_path, reason());
	if (SSL_CTX_check_private_key(context) != 1)
		return vd_error_set(reterr, VD_INVALID, "%s is not the key of %s: %s", key_path, cert_path,
				    reason());
	return client_ca_path ? load_clients(context, client_ca_path, reterr) : VD_OK;
}

vd_status vdi_tls_new(const char *cert_path, const char *key_path, const char *client_ca_path,
		      struct vdi_tls **ret_tls, struct vd_error *reterr)
{
	struct vdi_tls *tls = VDI_NEW(struct vdi_tls);
	vd_status	status = VD_NOMEM;

	ERR_clear_error();
	if (tls && (tls->context = SSL_CTX_new(TLS_server_method())) != NULL && vdi_tls_socket_prepare())
		status = configure(tls->context, cert_path, key_path, client_ca_path, reterr);
	else
		(void) vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	if (status != VD_OK) {
		(void) vdi_tls_free(tls);
		return status;
	}
	*ret_tls = tls;
	return VD_OK;
}

struct vdi_tls *vdi_tls_free(struct vdi_tls *tls)
{
	if (tls == NULL)
		return NULL;
	SSL_CTX_free(tls->context);
	vdi_free(tls);
	return NULL;
}

/* ---- Links ---- */

vd_status vdi_tls_link_new(struct vdi_tls *tls, int fd, struct vdi_tls_link **ret_link)
{
	struct vdi_tls_link *link = VDI_NEW(struct vdi_tls_link);
	BIO		    *bio = NULL;

	if (link == NULL)
		return VD_NOMEM;
	link->ssl = SSL_new(tls->context);
	if (link->ssl == NULL || (bio = vdi_tls_socket_new(fd)) == NULL) {
		ERR_clear_error();
		(void) vdi_tls_link_free(link);
		return VD_NOMEM;
	}
	SSL_set_bio(link->ssl, bio, bio);
	SSL_set_accept_state(link->ssl);
	*ret_link = link;
	return VD_OK;
}

struct vdi_tls_link *vdi_tls_link_free(struct vdi_tls_link *link)
{
	if (link == NULL)
		return NULL;
	SSL_free(link->ssl);
	vdi_free(link->held);
	vdi_free(link);
	return NULL;
}

vd_status vdi_tls_link_shake(struct vdi_tls_link *link, bool *ret_wants_write)
{
	unsigned long code;
	int	      result, error;

	ERR_clear_error();
	result = SSL_do_handshake(link->ssl);
	error = SSL_get_error(link->ssl, result);
	*ret_wants_write = error == SSL_ERROR_WANT_WRITE;
	if (result == 1) {
		link->is_up = true;
		return VD_OK;
	}
	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return VD_AGAIN;
	code = ERR_peek_error();
	ERR_clear_error();
	link->is_broken = true;
	return ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_HTTP_REQUEST ?
		       VD_BAD_REQUEST :
		       VD_IO;
}

ssize_t vdi_tls_link_receive(struct vdi_tls_link *link, void *buffer, size_t size)
{
	size_t got;
	int    result, error;

	ERR_clear_error();
	result = SSL_read_ex(link->ssl, buffer, size, &got);
	if (result == 1)
		return (ssize_t) got;
	error = SSL_get_error(link->ssl, result);
	ERR_clear_error();
	if (error == SSL_ERROR_ZERO_RETURN)
		return 0;
	if (error == SSL_ERROR_WANT_READ) {
		errno = EAGAIN;
		return -1;
	}
	/* One case is a peer that requests a key update and does not read: OpenSSL must answer first, and
	 * this thread does not wait for that. */
	link->is_broken = true;
	errno = EIO;
	return -1;
}

/* Writes one record. VD_OK, VD_AGAIN, VD_IO. */
static vd_status write_record(struct vdi_tls_link *link, const char *data, size_t size)
{
	size_t written;
	int    result, error;

	ERR_clear_error();
	result = SSL_write_ex(link->ssl, data, size, &written);
	if (result == 1)
		return VD_OK;
	error = SSL_get_error(link->ssl, result);
	ERR_clear_error();
	if (error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ)
		return VD_AGAIN;
	link->is_broken = true;
	return VD_IO;
}

static vd_status flush_held(struct vdi_tls_link *link)
{
	if (link->held == NULL)
		return VD_OK;
	VDI_TRY(write_record(link, link->held, link->held_size));
	vdi_free(link->held);
	link->held = NULL;
	return VD_OK;
}

/* Returns up to one record of parts: a pointer into them, or the bytes gathered in buffer. Advances the
 * position. */
static const char *gather(const struct iovec **parts, size_t *count, size_t *offset, char buffer[RECORD],
			  size_t *ret_size)
{
	size_t size = 0;

	while (*count) {
		const char *at = (const char *) (*parts)->iov_base + *offset;
		size_t	    left = (*parts)->iov_len - *offset, piece;

		if (size == 0 && left >= RECORD) {
			*offset += RECORD;
			*ret_size = RECORD;
			return at;
		}
		piece = VDI_MIN(left, RECORD - size);
		if (piece)
			memcpy(buffer + size, at, piece);
		size += piece;
		*offset += piece;
		if (piece < left)
			break;
		(*parts)++;
		(*count)--;
		*offset = 0;
	}
	*ret_size = size;
	return buffer;
}

vd_status vdi_tls_link_send(struct vdi_tls_link *link, const struct iovec *parts, size_t count,
			    size_t *ret_sent)
{
	char   buffer[RECORD];
	size_t offset = 0;

	*ret_sent = 0;
	if (link->is_broken)
		return VD_IO;
	VDI_TRY(flush_held(link));
	for (;;) {
		size_t	    size;
		const char *data = gather(&parts, &count, &offset, buffer, &size);
		vd_status   status;

		if (size == 0)
			return VD_OK;
		status = write_record(link, data, size);
		if (status == VD_AGAIN) {
			link->held = vdi_alloc(size);
			if (link->held == NULL) {
				link->is_broken = true;
				return VD_IO;
			}
			memcpy(link->held, data, size);
			link->held_size = size;
		}
		if (status != VD_IO)
			*ret_sent += size;
		if (status != VD_OK)
			return status;
	}
}

void vdi_tls_link_end(struct vdi_tls_link *link)
{
	if (!link->is_up || link->is_broken || link->held)
		return;
	link->is_broken = true; /* send nothing more */
	ERR_clear_error();
	(void) SSL_shutdown(link->ssl);
	ERR_clear_error();
}

/* ---- Client certificates ---- */

static struct vd_bytes text_of(const X509_NAME_ENTRY *entry)
{
	const ASN1_STRING *text = X509_NAME_ENTRY_get_data(entry);

	return (struct vd_bytes) { ASN1_STRING_get0_data(text), (size_t) ASN1_STRING_length(text) };
}

vd_status vdi_tls_link_identity(const struct vdi_tls_link *link, struct vdi_identity **ret_identity,
				const char **ret_why)
{
	X509		*cert = SSL_get0_peer_certificate(link->ssl);
	struct vd_bytes	 groups[VDI_IDENTITY_GROUPS_MAX], user = VD_BYTES_NONE;
	const X509_NAME *subject;
	size_t		 count = 0;
	long		 verified;

	*ret_identity = NULL;
	*ret_why = NULL;
	if (cert == NULL)
		return VD_OK;
	verified = SSL_get_verify_result(link->ssl);
	if (verified != X509_V_OK) {
		*ret_why = X509_verify_cert_error_string(verified);
		return VD_OK;
	}
	subject = X509_get_subject_name(cert);
	for (int i = 0; i < X509_NAME_entry_count(subject); i++) {
		const X509_NAME_ENTRY *entry = X509_NAME_get_entry(subject, i);
		struct vd_bytes	       text = text_of(entry);
		int		       kind = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));

		if (memchr(text.data, 0, text.size)) {
			*ret_why = "a NUL in its subject";
			return VD_OK;
		}
		if (kind == NID_commonName)
			user = text;
		else if (kind == NID_organizationName && count < VDI_IDENTITY_GROUPS_MAX)
			groups[count++] = text;
	}
	if (user.size == 0) {
		*ret_why = "no common name in its subject";
		return VD_OK;
	}
	return vdi_identity_new(user, VD_BYTES_NONE, groups, count, VDI_GROUP_AUTHENTICATED, ret_identity);
}
