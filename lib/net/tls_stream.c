/* Sessions are not resumed: clients keep their connections, and a ticket must not outlive a revoked CA.
 *
 * With TLS 1.3 a client completes the handshake before the server has checked its certificate: a rejection
 * arrives as an alert with the first bytes. So failures of receive get a readable reason, too.
 */
#include "tls_stream.h"

#include <errno.h>
#include <stdio.h>

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include "tls_socket.h"

/* ---- Contexts ---- */

SSL_CTX *vdi_tls_context_new(bool is_server)
{
	SSL_CTX *context = vdi_tls_socket_prepare() ?
				   SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method()) :
				   NULL;

	if (context == NULL)
		return NULL;
	(void) SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
						    SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
						    SSL_OP_IGNORE_UNEXPECTED_EOF);
	(void) SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	(void) SSL_CTX_set_num_tickets(context, 0);
	(void) SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
						 SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_default_passwd_cb(context, vdi_tls_no_passphrase);
	if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
	    SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1)
		return context;
	SSL_CTX_free(context);
	return NULL;
}

bool vdi_tls_select_protocol(struct vd_bytes ours, const unsigned char **out, unsigned char *size,
			     const unsigned char *offered, unsigned offered_size)
{
	return SSL_select_next_proto((unsigned char **) (uintptr_t) out, size, ours.data,
				     (unsigned) ours.size, offered, offered_size) == OPENSSL_NPN_NEGOTIATED;
}

/* ---- Streams ---- */

vd_status vdi_tls_stream_init(struct vdi_tls_stream *stream, SSL_CTX *context, int fd)
{
	BIO *bio;

	stream->ssl = SSL_new(context);
	bio = stream->ssl ? vdi_tls_socket_new(fd) : NULL;
	if (bio == NULL) {
		ERR_clear_error();
		vdi_tls_stream_fini(stream);
		return VD_NOMEM;
	}
	SSL_set_bio(stream->ssl, bio, bio);
	if (SSL_is_server(stream->ssl))
		SSL_set_accept_state(stream->ssl);
	else
		SSL_set_connect_state(stream->ssl);
	return VD_OK;
}

void vdi_tls_stream_fini(struct vdi_tls_stream *stream)
{
	SSL_free(stream->ssl);
	stream->ssl = NULL;
}

/* ---- Error texts ---- */

static const char *words_of(const struct vdi_tls_stream *stream, unsigned long code)
{
	bool is_server = SSL_is_server(stream->ssl);
	bool is_ssl = ERR_GET_LIB(code) == ERR_LIB_SSL;

	switch (is_ssl ? ERR_GET_REASON(code) : 0) {
	case SSL_R_WRONG_VERSION_NUMBER:
	case SSL_R_HTTP_REQUEST:
	case SSL_R_PACKET_LENGTH_TOO_LONG:
		return is_server ? "the client does not speak TLS" : "the server does not speak TLS";
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
		return is_server ? "the client does not accept the certificate" :
				   "the server does not accept the client certificate";
	case SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: return "the server does not offer HTTP/2 (ALPN)";
	default: return NULL;
	}
}

static void note_failure(struct vdi_tls_stream *stream, int error, int system_error)
{
	bool	      is_server = SSL_is_server(stream->ssl);
	unsigned long code = ERR_peek_error();
	long	      verified = SSL_get_verify_result(stream->ssl);
	const char   *reason = ERR_reason_error_string(code), *words = words_of(stream, code);

	stream->is_broken = true;
	if (stream->why[0])
		return;
	if (!is_server &&
	    (verified == X509_V_ERR_HOSTNAME_MISMATCH || verified == X509_V_ERR_IP_ADDRESS_MISMATCH))
		(void) snprintf(stream->why, sizeof stream->why,
				"the server's certificate is not valid for %s", stream->name);
	else if (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED)
		(void) snprintf(stream->why, sizeof stream->why,
				"the %s's certificate is not trusted (certificate verify failed)",
				is_server ? "client" : "server");
	else if (words)
		(void) snprintf(stream->why, sizeof stream->why, "%s", words);
	else if (reason)
		(void) snprintf(stream->why, sizeof stream->why, "TLS %s failed: %s",
				stream->is_up ? "connection" : "handshake", reason);
	else if (error == SSL_ERROR_SYSCALL && system_error && system_error != ECONNRESET &&
		 system_error != EPIPE)
		(void) snprintf(stream->why, sizeof stream->why, "%s", strerror(system_error));
}

/* ---- Handshake and bytes ---- */

vd_status vdi_tls_stream_shake(struct vdi_tls_stream *stream, bool *ret_wants_write)
{
	unsigned long code;
	int	      result, error, system_error;

	ERR_clear_error();
	errno = 0;
	result = SSL_do_handshake(stream->ssl);
	system_error = errno;
	error = SSL_get_error(stream->ssl, result);
	*ret_wants_write = error == SSL_ERROR_WANT_WRITE;
	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return VD_AGAIN;
	if (result == 1) {
		stream->is_up = true;
		return VD_OK;
	}
	code = ERR_peek_error();
	note_failure(stream, error, system_error);
	ERR_clear_error();
	return ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_HTTP_REQUEST ?
		       VD_BAD_REQUEST :
		       VD_IO;
}

/* -1 with errno; 0: end of the stream. */
static ssize_t failure_of(struct vdi_tls_stream *stream, int result, bool is_send)
{
	int system_error = errno;
	int error = SSL_get_error(stream->ssl, result);

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
	note_failure(stream, error, system_error);
	ERR_clear_error();
	errno = EIO;
	return -1;
}

ssize_t vdi_tls_stream_receive(struct vdi_tls_stream *stream, void *buffer, size_t size)
{
	size_t got;
	int    result;

	ERR_clear_error();
	errno = 0;
	result = SSL_read_ex(stream->ssl, buffer, size, &got);
	return result == 1 ? (ssize_t) got : failure_of(stream, result, false);
}

ssize_t vdi_tls_stream_send(struct vdi_tls_stream *stream, const void *data, size_t size)
{
	size_t written;
	int    result;

	if (stream->is_broken) {
		errno = EIO;
		return -1;
	}
	ERR_clear_error();
	errno = 0;
	result = SSL_write_ex(stream->ssl, data, size, &written);
	return result == 1 ? (ssize_t) written : failure_of(stream, result, true);
}

void vdi_tls_stream_end(struct vdi_tls_stream *stream)
{
	if (!stream->is_up || stream->is_broken)
		return;
	stream->is_broken = true; /* nothing more is sent */
	ERR_clear_error();
	(void) SSL_shutdown(stream->ssl);
	ERR_clear_error();
}
