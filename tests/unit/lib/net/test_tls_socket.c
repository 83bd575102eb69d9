/* Over pairs of sockets that would wait. */
#include "vdtest.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tls_socket.h"

struct pair {
	BIO *bio;
	int  fds[2]; /* the first lies under the BIO */
};

static void pair_open(struct pair *pair)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair->fds), 0);
	assert_true(vdi_tls_socket_prepare());
	pair->bio = vdi_tls_socket_new(pair->fds[0]);
	assert_non_null(pair->bio);
}

/* The socket was lent. */
static void pair_close(struct pair *pair)
{
	BIO_free(pair->bio);
	assert_true(fcntl(pair->fds[0], F_GETFD) >= 0);
	close(pair->fds[0]);
	close(pair->fds[1]);
}

static void bytes_go_both_ways(void **state)
{
	struct pair pair, other;
	char	    bytes[16];

	(void) state;
	pair_open(&pair);
	pair_open(&other);
	assert_int_equal(BIO_write(pair.bio, "hello", 5), 5);
	assert_int_equal(BIO_write(other.bio, "other", 5), 5);
	assert_int_equal(BIO_flush(pair.bio), 1);
	assert_int_equal(read(pair.fds[1], bytes, sizeof bytes), 5);
	assert_memory_equal(bytes, "hello", 5);
	assert_int_equal(write(pair.fds[1], "you", 3), 3);
	assert_int_equal(BIO_read(pair.bio, bytes, sizeof bytes), 3);
	assert_memory_equal(bytes, "you", 3);
	pair_close(&pair);
	pair_close(&other);
}

static void nothing_waits(void **state)
{
	struct pair pair;
	char	    bytes[4096] = { 0 };
	int	    count;

	(void) state;
	pair_open(&pair);
	assert_int_equal(BIO_read(pair.bio, bytes, sizeof bytes), -1);
	assert_true(BIO_should_retry(pair.bio) && BIO_should_read(pair.bio));
	do
		count = BIO_write(pair.bio, bytes, sizeof bytes);
	while (count > 0);
	assert_int_equal(count, -1);
	assert_true(BIO_should_retry(pair.bio) && BIO_should_write(pair.bio));
	/* What a call left behind does not outlive the next one. */
	assert_int_equal(write(pair.fds[1], "you", 3), 3);
	assert_int_equal(BIO_read(pair.bio, bytes, sizeof bytes), 3);
	assert_false(BIO_should_retry(pair.bio));
	pair_close(&pair);
}

static void a_peer_that_went_is_an_end_and_no_signal(void **state)
{
	struct pair pair;
	char	    byte;

	(void) state;
	pair_open(&pair);
	assert_int_equal(shutdown(pair.fds[1], SHUT_RDWR), 0);
	assert_int_equal(BIO_read(pair.bio, &byte, 1), 0);
	assert_false(BIO_should_retry(pair.bio));
	errno = 0;
	assert_int_equal(BIO_write(pair.bio, "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	assert_false(BIO_should_retry(pair.bio));
	pair_close(&pair);
}

static void a_key_with_a_passphrase_is_not_asked_for_it(void **state)
{
	EVP_PKEY *key = EVP_EC_gen("P-256"), *read;
	BIO	 *plain = BIO_new(BIO_s_mem()), *locked = BIO_new(BIO_s_mem());

	(void) state;
	assert_int_equal(PEM_write_bio_PrivateKey(plain, key, NULL, NULL, 0, NULL, NULL), 1);
	assert_int_equal(PEM_write_bio_PrivateKey(locked, key, EVP_aes_128_cbc(),
						  (const unsigned char *) "secret", 6, NULL, NULL),
			 1);
	read = PEM_read_bio_PrivateKey(plain, NULL, vdi_tls_no_passphrase, NULL);
	assert_non_null(read);
	EVP_PKEY_free(read);
	assert_null(PEM_read_bio_PrivateKey(locked, NULL, vdi_tls_no_passphrase, NULL));
	BIO_free(plain);
	BIO_free(locked);
	EVP_PKEY_free(key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_go_both_ways),
		cmocka_unit_test(nothing_waits),
		cmocka_unit_test(a_peer_that_went_is_an_end_and_no_signal),
		cmocka_unit_test(a_key_with_a_passphrase_is_not_asked_for_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
