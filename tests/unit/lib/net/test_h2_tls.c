/* How TLS connections end: with a close_notify, ours or the peer's, or without one. Links of both sides over
 * a pair of sockets. */
#include <errno.h>
#include <fcntl.h>
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

static struct rpc_certs certs;

struct pair {
	struct vdi_h2_tls  *tls[2];
	struct vdi_h2_link *links[2];
	int		    fds[2];
};

static int make_certs(void **state)
{
	(void) state;
	if (!rpc_certs_make(&certs)) {
		printf("skipped: openssl cannot make certificates\n");
		exit(77);
	}
	return 0;
}

static int remove_certs(void **state)
{
	(void) state;
	rpc_certs_remove(&certs);
	return 0;
}

/* Shakes hands; what TLS 1.3 sends behind that is taken. */
static int open_pair(void **state)
{
	const struct vdi_rpc_tls	client = { .ca_path = rpc_certs_path(&certs, "ca.pem") };
	const struct vdi_rpc_server_tls server = { .cert_path = rpc_certs_path(&certs, "server.pem"),
						   .key_path = rpc_certs_path(&certs, "server.key") };
	struct pair		       *pair = test_calloc(1, sizeof *pair);
	bool				is_up[2] = { false, false }, wants_write;
	char				byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair->fds), 0);
	assert_status(vdi_h2_tls_new_client(&client, &pair->tls[CLIENT], NULL), VD_OK);
	assert_status(vdi_h2_tls_new_server(&server, false, &pair->tls[SERVER], NULL), VD_OK);
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

		for (int turns = 0; got < 4; turns++) {
			ssize_t count =
				sent < 4 ? vdi_h2_link_send(pair->links[side], &"last"[sent], 4 - sent) : 0;

			assert_true(turns < 1000);
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
	};

	return cmocka_run_group_tests(tests, make_certs, remove_certs);
}
