/* A BIO of our own, because OpenSSL's socket BIO writes without MSG_NOSIGNAL. */
#include <errno.h>

#include <openssl/crypto.h>
#include <sys/socket.h>

#include "tls_socket.h"

static int socket_of(BIO *bio)
{
	return (int) (intptr_t) BIO_get_data(bio);
}

static int socket_write(BIO *bio, const char *data, int size)
{
	ssize_t sent;

	BIO_clear_retry_flags(bio);
	do
		sent = send(socket_of(bio), data, (size_t) size, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS))
		BIO_set_retry_write(bio);
	return (int) sent;
}

static int socket_read(BIO *bio, char *data, int size)
{
	ssize_t got;

	BIO_clear_retry_flags(bio);
	do
		got = recv(socket_of(bio), data, (size_t) size, MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		BIO_set_retry_read(bio);
	return (int) got;
}

static long socket_control(BIO *bio, int command, long number, void *pointer)
{
	(void) bio;
	(void) number;
	(void) pointer;
	return command == BIO_CTRL_FLUSH ? 1 : 0;
}

/* There is one, never freed, because sockets point to it and outlive their creators. NULL: creation failed,
 * and is not tried again. */
static BIO_METHOD *socket_method;

static void make_socket_method(void)
{
	BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "vedette socket");

	if (method && BIO_meth_set_write(method, socket_write) && BIO_meth_set_read(method, socket_read) &&
	    BIO_meth_set_ctrl(method, socket_control))
		socket_method = method;
	else
		BIO_meth_free(method);
}

bool vdi_tls_socket_prepare(void)
{
	static CRYPTO_ONCE once = CRYPTO_ONCE_STATIC_INIT;

	return CRYPTO_THREAD_run_once(&once, make_socket_method) == 1 && socket_method;
}

BIO *vdi_tls_socket_new(int fd)
{
	BIO *bio = BIO_new(socket_method);

	if (bio) {
		BIO_set_data(bio, (void *) (intptr_t) fd);
		BIO_set_init(bio, 1);
	}
	return bio;
}

int vdi_tls_no_passphrase(char *buffer, int size, int writing, void *arg)
{
	(void) buffer;
	(void) size;
	(void) writing;
	(void) arg;
	return -1;
}
