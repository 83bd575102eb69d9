/* TLS by OpenSSL on non-blocking sockets.
 *
 * If the socket is full, OpenSSL requires the same record to be offered again, whole. Callers may return with
 * fewer bytes, so the link keeps a copy of the record and reports it as sent; nothing else is sent before it.
 */
#include "tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include "tls_stream.h"

#define RECORD 16384

struct vdi_tls {
	SSL_CTX *context;
};

struct vdi_tls_link {
	struct vdi_tls_stream stream;
	char		     *held; /* record that the socket did not take */
	size_t		      held_size;
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
	static const struct vd_bytes ours = { "\x08http/1.1", 9 };

	(void) ssl;
	(void) arg;
	return vdi_tls_select_protocol(ours, out, size, offered, offered_size) ? SSL_TLSEXT_ERR_OK :
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
	if (tls && (tls->context = vdi_tls_context_new(true)) != NULL)
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
	vd_status	     status = link ? vdi_tls_stream_init(&link->stream, tls->context, fd) : VD_NOMEM;

	if (status == VD_OK)
		*ret_link = link;
	else
		vdi_free(link);
	return status;
}

struct vdi_tls_link *vdi_tls_link_free(struct vdi_tls_link *link)
{
	if (link == NULL)
		return NULL;
	vdi_tls_stream_fini(&link->stream);
	vdi_free(link->held);
	vdi_free(link);
	return NULL;
}

vd_status vdi_tls_link_shake(struct vdi_tls_link *link, bool *ret_wants_write)
{
	return vdi_tls_stream_shake(&link->stream, ret_wants_write);
}

ssize_t vdi_tls_link_receive(struct vdi_tls_link *link, void *buffer, size_t size)
{
	return vdi_tls_stream_receive(&link->stream, buffer, size);
}

/* Writes one record. VD_OK, VD_AGAIN, VD_IO. */
static vd_status write_record(struct vdi_tls_link *link, const char *data, size_t size)
{
	return vdi_tls_stream_send(&link->stream, data, size) >= 0 ? VD_OK :
	       errno == EAGAIN					   ? VD_AGAIN :
								     VD_IO;
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
	if (link->stream.is_broken)
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
				link->stream.is_broken = true;
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
	if (link->held == NULL)
		vdi_tls_stream_end(&link->stream);
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
	X509		*cert = SSL_get0_peer_certificate(link->stream.ssl);
	struct vd_bytes	 groups[VDI_IDENTITY_GROUPS_MAX], user = VD_BYTES_NONE;
	const X509_NAME *subject;
	size_t		 count = 0;
	long		 verified;

	*ret_identity = NULL;
	*ret_why = NULL;
	if (cert == NULL)
		return VD_OK;
	verified = SSL_get_verify_result(link->stream.ssl);
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
