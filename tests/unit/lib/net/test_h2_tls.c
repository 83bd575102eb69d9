/* How TLS connections end: with a close_notify, ours or the peer's, or without one. Links of both sides over
 * a pair of sockets. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include "h2_tls.h"
#include "rpc_certs.h"
#include "vdtest.h"

enum { CLIENT, SERVER };

/* What the next calls on that socket do; without an error they take or give so many bytes at most (0:
 * all). */
static struct {
	int    fd;				  /* -1: none */
	int    send_errors[4], receive_errors[4]; /* one after the other; 0: no more */
	size_t send_next, receive_next;
	size_t size_max;
} net = { .fd = -1 };

/* These take the place of libc's. */
ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
	if (fd == net.fd && net.send_errors[net.send_next]) {
		errno = net.send_errors[net.send_next++];
		return -1;
	}
	return sendto(fd, bytes, net.size_max && size > net.size_max ? net.size_max : size, flags, NULL, 0);
}

ssize_t recv(int fd, void *room, size_t size, int flags)
{
	if (fd == net.fd && net.receive_errors[net.receive_next]) {
		errno = net.receive_errors[net.receive_next++];
		return -1;
	}
	return recvfrom(fd, room, net.size_max && size > net.size_max ? net.size_max : size, flags, NULL,
			NULL);
}

struct pair {
	struct vdi_h2_tls  *tls[2];
	struct vdi_h2_link *links[2];
	int		    fds[2];
};

/* Shakes hands; what TLS 1.3 sends behind that is taken. */
static void open_pair_with(void **state, const struct vdi_rpc_tls *client,
			   const struct vdi_rpc_server_tls *server)
{
	struct pair *pair = test_calloc(1, sizeof *pair);
	bool	     is_up[2] = { false, false }, wants_write;
	char	     byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair->fds), 0);
	assert_status(vdi_h2_tls_new_client(client, &pair->tls[CLIENT], NULL), VD_OK);
	assert_status(vdi_h2_tls_new_server(server, false, &pair->tls[SERVER], NULL), VD_OK);
	for (int i = 0; i < 2; i++)
		assert_status(vdi_h2_link_new(pair->tls[i], pair->fds[i], i == CLIENT ? "localhost" : NULL,
					      &pair->links[i]),
			      VD_OK);
	while (!is_up[CLIENT] || !is_up[SERVER])
		for (int i = 0; i < 2; i++)
			if (!is_up[i]) {
				vd_status status = vdi_h2_link_shake(pair->links[i], &wants_write);

				assert_true(status == VD_OK || status == VD_AGAIN);
				is_up[i] = status == VD_OK;
			}
	errno = 0;
	assert_int_equal(vdi_h2_link_receive(pair->links[CLIENT], &byte, 1), -1);
	assert_int_equal(errno, EAGAIN);
	*state = pair;
}

static int open_pair(void **state)
{
	const struct vdi_rpc_tls	client = { .ca_path = rpc_certs_path(&rpc_certs, "ca.pem") };
	const struct vdi_rpc_server_tls server = { .cert_path = rpc_certs_path(&rpc_certs, "server.pem"),
						   .key_path = rpc_certs_path(&rpc_certs, "server.key") };

	open_pair_with(state, &client, &server);
	return 0;
}

static int close_pair(void **state)
{
	struct pair *pair = *state;

	for (int i = 0; i < 2; i++) {
		vdi_h2_link_free(pair->links[i]);
		vdi_h2_tls_free(pair->tls[i]);
		if (pair->fds[i] >= 0)
			close(pair->fds[i]);
	}
	test_free(pair);
	return 0;
}

/* After what was sent before, the peer sees an end that nobody has cut. */
static void assert_end(struct pair *pair, int side)
{
	char bytes[16];

	assert_int_equal(vdi_h2_link_receive(pair->links[side], bytes, sizeof bytes), 4);
	assert_memory_equal(bytes, "last", 4);
	for (int i = 0; i < 2; i++) /* also when asked again */
		assert_int_equal(vdi_h2_link_receive(pair->links[side], bytes, sizeof bytes), 0);
	assert_string_equal(vdi_h2_link_why(pair->links[side]), "");
}

static void our_close_notify_ends_what_we_send(void **state)
{
	struct pair *pair = *state;
	char	     byte;

	for (int side = 0; side < 2; side++) {
		int other = 1 - side;

		assert_int_equal(vdi_h2_link_send(pair->links[side], "last", 4), 4);
		vdi_h2_link_end(pair->links[side]);
		vdi_h2_link_end(pair->links[side]); /* once is enough */
		assert_end(pair, other);
		errno = 0;
		assert_int_equal(vdi_h2_link_send(pair->links[side], "more", 4), -1);
		assert_int_equal(errno, EIO);
		if (side == CLIENT) {
			/* The other direction is still open. */
			assert_int_equal(vdi_h2_link_send(pair->links[other], "x", 1), 1);
			assert_int_equal(vdi_h2_link_receive(pair->links[side], &byte, 1), 1);
		}
	}
}

/* Whoever cuts the connection cannot make it look like its end; after that nothing is sent. */
static void an_end_without_close_notify_is_a_failure(void **state)
{
	struct pair *pair = *state;
	char	     bytes[16];

	for (int side = 0; side < 2; side++) {
		assert_int_equal(vdi_h2_link_send(pair->links[side], "last", 4), 4);
		assert_int_equal(shutdown(pair->fds[side], SHUT_WR), 0);
		assert_int_equal(vdi_h2_link_receive(pair->links[1 - side], bytes, sizeof bytes), 4);
	}
	for (int side = 0; side < 2; side++) {
		errno = 0;
		assert_int_equal(vdi_h2_link_receive(pair->links[side], bytes, sizeof bytes), -1);
		assert_int_equal(errno, EIO);
		errno = 0;
		assert_int_equal(vdi_h2_link_send(pair->links[side], "more", 4), -1);
		assert_int_equal(errno, EIO);
	}
}

/* A broken connection, and one that was never up, say no goodbye. */
static void no_close_notify_without_a_connection(void **state)
{
	struct pair	   *pair = *state;
	struct vdi_h2_link *link;
	int		    fds[2];
	char		    byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
	assert_status(vdi_h2_link_new(pair->tls[CLIENT], fds[0], "localhost", &link), VD_OK);
	vdi_h2_link_end(link);
	errno = 0;
	assert_int_equal(recv(fds[1], &byte, 1, 0), -1);
	assert_int_equal(errno, EAGAIN);
	vdi_h2_link_free(link);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(shutdown(pair->fds[SERVER], SHUT_WR), 0);
	assert_int_equal(vdi_h2_link_receive(pair->links[CLIENT], &byte, 1), -1);
	vdi_h2_link_end(pair->links[CLIENT]);
	errno = 0;
	assert_int_equal(recv(pair->fds[SERVER], &byte, 1, 0), -1);
	assert_int_equal(errno, EAGAIN);
}

/* ---- Sockets that take little, and that break ---- */

static int open_slow_pair(void **state)
{
	memset(&net, 0, sizeof net);
	net.fd = -1;
	net.size_max = 1;
	return open_pair(state);
}

static int close_faulty_pair(void **state)
{
	memset(&net, 0, sizeof net);
	net.fd = -1;
	return close_pair(state);
}

static void say_and_hear(struct pair *pair)
{
	char bytes[16];

	for (int side = 0; side < 2; side++) {
		size_t sent = 0, got = 0;

		for (int iterations = 0; got < 4; iterations++) {
			ssize_t count =
				sent < 4 ? vdi_h2_link_send(pair->links[side], &"last"[sent], 4 - sent) : 0;

			assert_true(iterations < 1000);
			assert_true(count >= 0 || errno == EAGAIN);
			sent += count > 0 ? (size_t) count : 0;
			count = vdi_h2_link_receive(pair->links[1 - side], bytes + got, sizeof bytes - got);
			assert_true(count > 0 || (count < 0 && errno == EAGAIN));
			got += count > 0 ? (size_t) count : 0;
		}
		assert_int_equal(got, 4);
		assert_memory_equal(bytes, "last", 4);
	}
}

static void records_come_and_go_in_any_pieces(void **state)
{
	say_and_hear(*state);
}

static void a_socket_that_is_busy_is_asked_again(void **state)
{
	static const int errors[] = { EAGAIN, EINTR, ENOBUFS };
	struct pair	*pair = *state;

	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < VDI_ARRAY_SIZE(errors); i++) {
			memset(&net, 0, sizeof net);
			net.fd = pair->fds[side];
			for (int k = 0; k < 3; k++) {
				net.send_errors[k] = errors[i];
				net.receive_errors[k] = errors[i] == ENOBUFS ? EAGAIN : errors[i];
			}
			say_and_hear(pair);
			assert_int_equal(net.send_next, 3);
			assert_int_equal(net.receive_next, 3);
		}
}

/* The words are of the socket's own failures; that a peer has gone is for the connection to word. */
static void a_socket_that_breaks_says_why(void **state)
{
	static const struct {
		int	    error;
		const char *why;
	} cases[] = { { ETIMEDOUT, "Connection timed out" },
		      { EHOSTUNREACH, "No route to host" },
		      { ECONNRESET, "" },
		      { EPIPE, "" } };

	(void) state;
	for (size_t i = 0; i < 2 * VDI_ARRAY_SIZE(cases); i++) {
		void	    *opened;
		struct pair *pair;
		char	     byte;

		(void) open_pair(&opened);
		pair = opened;
		net.fd = pair->fds[CLIENT];
		errno = 0;
		if (i % 2) {
			net.send_errors[0] = cases[i / 2].error;
			assert_int_equal(vdi_h2_link_send(pair->links[CLIENT], "x", 1), -1);
		} else {
			net.receive_errors[0] = cases[i / 2].error;
			assert_int_equal(vdi_h2_link_receive(pair->links[CLIENT], &byte, 1), -1);
		}
		assert_int_equal(errno, EIO);
		assert_string_equal(vdi_h2_link_why(pair->links[CLIENT]), cases[i / 2].why);
		(void) close_faulty_pair(&opened);
	}
}

/* Before the end of the handshake as well, on either side. */
static void a_handshake_that_breaks_says_why(void **state)
{
	struct pair *pair = *state;

	for (int side = 0; side < 2; side++) {
		struct vdi_h2_link *link;
		bool		    wants_write;
		int		    fds[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
		assert_status(
			vdi_h2_link_new(pair->tls[side], fds[0], side == CLIENT ? "localhost" : NULL, &link),
			VD_OK);
		assert_status(vdi_h2_link_shake(link, &wants_write), VD_AGAIN);
		assert_false(wants_write);
		memset(&net, 0, sizeof net);
		net.fd = fds[0];
		net.receive_errors[0] = ETIMEDOUT;
		assert_status(vdi_h2_link_shake(link, &wants_write), VD_IO);
		assert_string_equal(vdi_h2_link_why(link), "Connection timed out");
		net.fd = -1;
		vdi_h2_link_free(link);
		close(fds[0]);
		close(fds[1]);
	}
}

/* ---- Names of clients ---- */

static FILE *open_file(const char *name, const char *mode)
{
	FILE *file = fopen(rpc_certs_path(&rpc_certs, name), mode);

	assert_non_null(file);
	return file;
}

/* A certificate of the tests' CA whose common name has these bytes; none: without a name. */
static void make_certificate(const char *name, int size)
{
	FILE	 *files[] = { open_file("ca.pem", "r"), open_file("ca.key", "r"), open_file("named.pem", "w"),
			      open_file("named.key", "w") };
	X509	 *ca = PEM_read_X509(files[0], NULL, NULL, NULL), *certificate = X509_new();
	EVP_PKEY *ca_key = PEM_read_PrivateKey(files[1], NULL, NULL, NULL), *key = EVP_EC_gen("P-256");
	X509_NAME *subject = X509_get_subject_name(certificate);

	assert_non_null(ca);
	assert_non_null(ca_key);
	assert_int_equal(X509_set_version(certificate, 2), 1);
	assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(certificate), 7), 1);
	assert_non_null(X509_gmtime_adj(X509_getm_notBefore(certificate), 0));
	assert_non_null(X509_gmtime_adj(X509_getm_notAfter(certificate), 86400));
	assert_int_equal(X509_NAME_add_entry_by_NID(subject, NID_organizationName, MBSTRING_UTF8,
						    (const unsigned char *) "tests", -1, -1, 0),
			 1);
	if (size)
		assert_int_equal(X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8,
							    (const unsigned char *) name, size, -1, 0),
				 1);
	assert_int_equal(X509_set_issuer_name(certificate, X509_get_subject_name(ca)), 1);
	assert_int_equal(X509_set_pubkey(certificate, key), 1);
	assert_true(X509_sign(certificate, ca_key, EVP_sha256()) > 0);
	assert_int_equal(PEM_write_X509(files[2], certificate), 1);
	assert_int_equal(PEM_write_PrivateKey(files[3], key, NULL, NULL, 0, NULL, NULL), 1);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(files); i++)
		assert_int_equal(fclose(files[i]), 0);
	X509_free(ca);
	X509_free(certificate);
	EVP_PKEY_free(ca_key);
	EVP_PKEY_free(key);
}

/* The name that a server sees, in room of that size; what was in the room before does not matter. */
static void expect_name(const char *name, int size, size_t room_size, const char *expected)
{
	struct vdi_rpc_tls	  client;
	struct vdi_rpc_server_tls server;
	char			  room[80];
	struct pair		 *pair;
	void			 *opened;

	make_certificate(name, size);
	client = (struct vdi_rpc_tls) { .ca_path = rpc_certs_path(&rpc_certs, "ca.pem"),
					.cert_path = rpc_certs_path(&rpc_certs, "named.pem"),
					.key_path = rpc_certs_path(&rpc_certs, "named.key") };
	server = (struct vdi_rpc_server_tls) { .cert_path = rpc_certs_path(&rpc_certs, "server.pem"),
					       .key_path = rpc_certs_path(&rpc_certs, "server.key"),
					       .client_ca_path = rpc_certs_path(&rpc_certs, "ca.pem") };
	open_pair_with(&opened, &client, &server);
	pair = opened;
	memset(room, 'x', sizeof room);
	vdi_h2_link_common_name(pair->links[SERVER], room, room_size);
	assert_string_equal(room, expected);
	(void) close_pair(&opened);
}

/* Whoever has a certificate for a name with a NUL in it is not the one that the first part names. */
static void a_common_name_is_whole_or_none(void **state)
{
	(void) state;
	expect_name("bob", 3, 80, "bob");
	expect_name("b\xc3\xb6"
		    "b",
		    4, 80,
		    "b\xc3\xb6"
		    "b");
	expect_name("bob", 3, 4, "bob");
	expect_name("bob", 3, 3, "bo");
	expect_name("", 0, 80, "");
	expect_name("root\0.example", 13, 80, "");
	expect_name("\0root", 5, 80, "");
	expect_name("root\0", 5, 80, "");
}

/* A client with several certificates chooses by these names. */
static void the_server_names_the_authorities_of_client_certificates(void **state)
{
	static const char *const wanted[] = { NULL, "ca.pem" };

	(void) state;
	for (int with_ca = 0; with_ca < 2; with_ca++) {
		struct vdi_rpc_server_tls options = {
			.cert_path = rpc_certs_path(&rpc_certs, "server.pem"),
			.key_path = rpc_certs_path(&rpc_certs, "server.key"),
			.client_ca_path = wanted[with_ca] ? rpc_certs_path(&rpc_certs, wanted[with_ca]) : NULL
		};
		struct vdi_h2_tls  *server;
		struct vdi_h2_link *link;
		SSL_CTX		   *context = SSL_CTX_new(TLS_client_method());
		SSL		   *client = SSL_new(context);
		const STACK_OF(X509_NAME) * names;
		bool is_up[2] = { false, false }, wants_write;
		int  fds[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
		assert_status(vdi_h2_tls_new_server(&options, false, &server, NULL), VD_OK);
		assert_status(vdi_h2_link_new(server, fds[SERVER], NULL, &link), VD_OK);
		assert_int_equal(SSL_set_alpn_protos(client, (const unsigned char *) "\2h2", 3), 0);
		assert_int_equal(SSL_set_fd(client, fds[CLIENT]), 1);
		while (!is_up[CLIENT] || !is_up[SERVER]) {
			int done = SSL_connect(client);

			assert_true(done == 1 || SSL_get_error(client, done) == SSL_ERROR_WANT_READ);
			is_up[CLIENT] = done == 1;
			if (!is_up[SERVER])
				is_up[SERVER] = vdi_h2_link_shake(link, &wants_write) == VD_OK;
		}
		names = SSL_get0_peer_CA_list(client);
		assert_int_equal(names ? sk_X509_NAME_num(names) : 0, with_ca);
		if (with_ca) {
			FILE *file = open_file("ca.pem", "r");
			X509 *ca = PEM_read_X509(file, NULL, NULL, NULL);

			assert_int_equal(
				X509_NAME_cmp(sk_X509_NAME_value(names, 0), X509_get_subject_name(ca)), 0);
			X509_free(ca);
			fclose(file);
		}
		SSL_free(client);
		SSL_CTX_free(context);
		vdi_h2_link_free(link);
		vdi_h2_tls_free(server);
		close(fds[0]);
		close(fds[1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(our_close_notify_ends_what_we_send, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(an_end_without_close_notify_is_a_failure, open_pair,
						close_pair),
		cmocka_unit_test_setup_teardown(no_close_notify_without_a_connection, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(records_come_and_go_in_any_pieces, open_slow_pair,
						close_faulty_pair),
		cmocka_unit_test_setup_teardown(a_socket_that_is_busy_is_asked_again, open_pair,
						close_faulty_pair),
		cmocka_unit_test(a_socket_that_breaks_says_why),
		cmocka_unit_test_setup_teardown(a_handshake_that_breaks_says_why, open_pair,
						close_faulty_pair),
		cmocka_unit_test(a_common_name_is_whole_or_none),
		cmocka_unit_test(the_server_names_the_authorities_of_client_certificates),
	};

	return cmocka_run_group_tests(tests, rpc_certs_set_up, rpc_certs_tear_down);
}
