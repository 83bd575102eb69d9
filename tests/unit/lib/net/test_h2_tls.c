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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(our_close_notify_ends_what_we_send, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(an_end_without_close_notify_is_a_failure, open_pair,
						close_pair),
		cmocka_unit_test_setup_teardown(no_close_notify_without_a_connection, open_pair, close_pair),
	};

	return cmocka_run_group_tests(tests, make_certs, remove_certs);
}
