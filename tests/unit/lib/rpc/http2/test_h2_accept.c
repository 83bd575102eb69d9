/* Arrivals that cannot be accepted: what accept4 answers comes from the test, and time moves when the test
 * says so. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "await.h"
#include "h2_peer.h"
#include "hand_clock.h"
#include "rpc_fixture.h"

static struct vdi_clock_sim clock_sim;
static struct peer	    first; /* it was there before */

/* What the next calls answer instead; and how many there were of either kind. */
static _Atomic int	errors[200];
static _Atomic unsigned error_count, errors_used;
static _Atomic unsigned accepted, asked;
static _Atomic int	last_fd; /* that was accepted */

/* Takes the place of libc's. */
int accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
	int got;

	atomic_fetch_add(&asked, 1);
	if (errors_used < error_count) {
		errno = errors[errors_used];
		atomic_fetch_add(&errors_used, 1);
		return -1;
	}
	got = (int) syscall(SYS_accept4, fd, address, size, flags);
	if (got >= 0) {
		atomic_fetch_add(&accepted, 1);
		last_fd = got;
	}
	return got;
}

static void fail_with(int error, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		errors[i] = error;
	errors_used = 0;
	error_count = count;
}

/* One iteration of the loop from begin to end, and what it left for the next one. */
static void take_turns(void)
{
	for (int i = 0; i < 3; i++) {
		struct frame frame = { 0 };

		assert_true(peer_frame(&first, NGHTTP2_PING, 0, 0, "12345678", 8));
		do
			assert_true(peer_next(&first, &frame));
		while (frame.type != NGHTTP2_PING || !(frame.flags & NGHTTP2_FLAG_ACK));
	}
}

/* Also waits until the loop has done what it does after an error: it reads the clock for its pause. */
static void wait_for_errors(unsigned count)
{
	AWAIT(errors_used >= count);
	take_turns();
}

static void advance(vd_dur by)
{
	vdi_clock_sim_advance(&clock_sim, by);
	take_turns();
}

static int start(void **state)
{
	struct vdi_rpc_server_options options = { .threads = 1 };

	(void) state;
	fail_with(0, 0);
	accepted = asked = 0;
	env = hand_clock_env(&clock_sim);
	assert_status(rpc_echo_start(&echo, env, NULL, &options, NULL), VD_OK);
	peer_connect(&first, rpc_echo_address(&echo));
	peer_begin(&first, -1);
	take_turns();
	return 0;
}

static int stop(void **state)
{
	(void) state;
	peer_close(&first);
	rpc_echo_stop(&echo, env);
	env = vd_env_free(env);
	return 0;
}

static void expect_service(struct peer *peer)
{
	struct heard heard;

	assert_true(peer_request(peer, 1, "/test.Echo/Echo", 0, NULL));
	assert_true(peer_message(peer, 1, "hello", NGHTTP2_FLAG_END_STREAM));
	heard = peer_hear(peer, 1);
	assert_int_equal(heard.status, 0);
	assert_int_equal(heard.data_size, 10);
}

/* It never blocks, goes to no other program, and what is written leaves at once. */
static void expect_socket(int fd)
{
	int	  no_delay = 0;
	socklen_t size = sizeof no_delay;

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, &size), 0);
	assert_true(no_delay);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

/* Who comes is served without any time passing; the socket is asked until it says that there are no more. */
static void arrivals_are_taken_as_they_come(void **state)
{
	(void) state;
	for (int i = 0; i < 5; i++) {
		struct peer peer;

		peer_connect(&peer, rpc_echo_address(&echo));
		peer_begin(&peer, -1);
		expect_service(&peer);
		expect_socket(last_fd);
		peer_close(&peer);
	}
	assert_int_equal(accepted, 6);
	assert_in_range(asked, 7, 12);
}

/* Nothing is accepted for 50 ms, lest the loop spins; then whoever waits is served. */
static void without_descriptors_or_memory_it_pauses(void **state)
{
	static const int lacks[] = { EMFILE, ENFILE, ENOBUFS, ENOMEM };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(lacks); i++) {
		unsigned    before;
		struct peer late;

		take_turns();
		before = asked;
		fail_with(lacks[i], 2);
		peer_connect(&late, rpc_echo_address(&echo));
		peer_begin(&late, -1);
		wait_for_errors(1);
		advance((vd_dur) { VD_MS(50).ns - 1 });
		assert_int_equal(asked, before + 1);
		advance((vd_dur) { 1 });
		wait_for_errors(2); /* it has tried again, and pauses again */
		advance((vd_dur) { VD_MS(50).ns - 1 });
		assert_int_equal(asked, before + 2);
		advance((vd_dur) { 1 });
		expect_service(&late);
		assert_int_equal(accepted, i + 2);
		/* From here on as before. */
		take_turns();
		assert_in_range(asked - before, 3, 5);
		peer_close(&late);
	}
}

/* Of one arrival that is gone: the next one is taken at once. */
static void other_errors_are_of_one_arrival(void **state)
{
	static const int those[] = { ECONNABORTED, EPROTO, EPERM, EINTR, ENETDOWN, EHOSTUNREACH };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(those); i++) {
		struct peer peer;

		fail_with(those[i], 3);
		peer_connect(&peer, rpc_echo_address(&echo));
		peer_begin(&peer, -1);
		expect_service(&peer);
		peer_close(&peer);
	}
	assert_int_equal(accepted, 1 + VDI_ARRAY_SIZE(those));
}

/* However many of them there are, those who are connected are served in between. */
static void arrivals_without_end_leave_the_others_their_turns(void **state)
{
	struct peer peer;

	(void) state;
	fail_with(ECONNABORTED, VDI_ARRAY_SIZE(errors));
	peer_connect(&peer, rpc_echo_address(&echo));
	peer_begin(&peer, -1);
	expect_service(&first);
	expect_service(&peer);
	assert_int_equal(errors_used, VDI_ARRAY_SIZE(errors));
	peer_close(&peer);
}

/* A server that ends while it pauses. */
static void a_pause_ends_with_the_server(void **state)
{
	struct peer late;

	(void) state;
	fail_with(EMFILE, 1);
	peer_connect(&late, rpc_echo_address(&echo));
	wait_for_errors(1);
	vdi_rpc_server_drain(echo.server);
	assert_int_equal(peer_hear_end(&first, NULL, 0), NGHTTP2_NO_ERROR);
	peer_close(&late);
	assert_int_equal(accepted, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(arrivals_are_taken_as_they_come),
		TEST(without_descriptors_or_memory_it_pauses),
		TEST(other_errors_are_of_one_arrival),
		TEST(arrivals_without_end_leave_the_others_their_turns),
		TEST(a_pause_ends_with_the_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
