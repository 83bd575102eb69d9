/* One connection on a loop of the test's own, over a pair of sockets. */
#include <sys/socket.h>
#include <unistd.h>

#include "h2_connection.h"
#include "vdtest.h"

static const uint8_t settings[] = { 0, 0, 0, NGHTTP2_SETTINGS, 0, 0, 0, 0, 0 };

struct fixture {
	struct vd_env		 *env;
	struct vdi_loop		 *loop;
	struct vdi_h2_hub	 *hub;
	struct vdi_h2_connection *connection;
	int			  fds[2];
	unsigned		  ready;
	unsigned		  ended;
	char			  why[300];
	bool			  closes_when_ready;
};

static void on_ready(void *arg)
{
	struct fixture *f = arg;

	f->ready++;
	if (f->closes_when_ready)
		vdi_h2_connection_close(f->connection, (vd_dur) { 0 });
}

static void on_ended(void *arg, const char *why)
{
	struct fixture *f = arg;

	f->ended++;
	(void) snprintf(f->why, sizeof f->why, "%s", why);
	f->connection = vdi_h2_connection_free(f->connection);
	vdi_loop_stop(f->loop);
}

static const struct vdi_h2_side side = { .ready = on_ready, .ended = on_ended };

static void set_up(struct fixture *f)
{
	const struct vdi_h2_hub_options options = { .turn = NULL };

	*f = (struct fixture) { 0 };
	assert_status(vd_env_new_threads(NULL, &f->env), VD_OK);
	assert_status(vdi_loop_new(f->env, &f->loop), VD_OK);
	assert_status(vdi_h2_hub_new(f->env, f->loop, &options, &f->hub), VD_OK);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, f->fds), 0);
}

static void tear_down(struct fixture *f)
{
	close(f->fds[1]);
	f->hub = vdi_h2_hub_free(f->hub);
	f->loop = vdi_loop_free(f->loop);
	f->env = vd_env_free(f->env);
}

static vd_status connect_client(struct fixture *f, struct vdi_h2_connection_options options)
{
	options.side = &side;
	options.arg = f;
	return vdi_h2_connection_new(f->hub, f->fds[0], &options, &f->connection);
}

static void say(struct fixture *f, const void *bytes, size_t size)
{
	assert_int_equal(write(f->fds[1], bytes, size), (ssize_t) size);
}

static void expect_end(struct fixture *f, const char *why)
{
	vdi_loop_run(f->loop);
	assert_int_equal(f->ended, 1);
	assert_string_equal(f->why, why);
	tear_down(f);
}

static void a_peer_that_does_not_answer_pings_is_left(void **state)
{
	struct fixture f;

	(void) state;
	set_up(&f);
	assert_status(connect_client(&f, (struct vdi_h2_connection_options) { .keepalive_time = VD_MS(1), .keepalive_timeout = VD_MS(1), .keepalive_without_streams = true }),
		      VD_OK);
	say(&f, settings, sizeof settings);
	expect_end(&f, "keepalive ping failed to receive ACK within timeout");
	assert_int_equal(f.ready, 1);
}

static void a_peer_that_says_nothing_is_left(void **state)
{
	struct fixture f;

	(void) state;
	set_up(&f);
	assert_status(connect_client(&f, (struct vdi_h2_connection_options) { .settle_timeout = VD_MS(1) }), VD_OK);
	expect_end(&f, "no HTTP/2 settings came (not an HTTP/2 server, or TLS is expected)");
	assert_int_equal(f.ready, 0);
	set_up(&f);
	assert_status(connect_client(&f, (struct vdi_h2_connection_options) { .is_server = true, .settle_timeout = VD_MS(1) }), VD_OK);
	expect_end(&f, "no HTTP/2 settings came");
}

static void a_peer_that_goes_is_seen(void **state)
{
	struct fixture f;

	(void) state;
	set_up(&f);
	assert_status(connect_client(&f, (struct vdi_h2_connection_options) { 0 }), VD_OK);
	assert_int_equal(shutdown(f.fds[1], SHUT_WR), 0);
	expect_end(&f, "the server closed the connection before HTTP/2 began (TLS or a client certificate may be expected)");
	set_up(&f);
	assert_status(connect_client(&f, (struct vdi_h2_connection_options) { 0 }), VD_OK);
	say(&f, settings, sizeof settings);
	assert_int_equal(shutdown(f.fds[1], SHUT_WR), 0);
	expect_end(&f, "the connection was closed");
	assert_int_equal(f.ready, 1);
	set_up(&f);
	assert_status(connect_client(&f, (struct vdi_h2_connection_options) { .is_server = true }), VD_OK);
	say(&f, "GET / HTTP/1.1\r\n\r\n", 18);
	expect_end(&f, "not an HTTP/2 client");
}

/* GOAWAY is written, and the end told in no words. */
static void a_connection_that_is_closed_says_goodbye(void **state)
{
	struct fixture f;
	uint8_t	       got[4096];
	ssize_t	       size;
	bool	       found = false;

	(void) state;
	set_up(&f);
	f.closes_when_ready = true;
	assert_status(connect_client(&f, (struct vdi_h2_connection_options) { 0 }), VD_OK);
	say(&f, settings, sizeof settings);
	vdi_loop_run(f.loop);
	assert_string_equal(f.why, "");
	size = read(f.fds[1], got, sizeof got);
	for (ssize_t at = 24; at + 9 <= size; at += 9 + got[at + 2])
		found |= got[at + 3] == NGHTTP2_GOAWAY;
	assert_true(found);
	tear_down(&f);
}

static void without_memory_the_socket_stays_the_callers(void **state)
{
	struct fixture f;
	bool	       failed = true;

	(void) state;
	set_up(&f);
	for (uint64_t n = 1; failed; n++) {
		int64_t	  before = vdi_alloc_live();
		vd_status status;

		vdi_alloc_fail_nth(n, 1);
		status = connect_client(&f, (struct vdi_h2_connection_options) { .settle_timeout = VD_SECONDS(300), .connection_window = 1 << 20, .stream_window = 1 << 20 });
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		if (failed)
			assert_int_equal(vdi_alloc_live(), before);
	}
	vdi_h2_connection_abort(f.connection, "enough");
	expect_end(&f, "enough");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peer_that_does_not_answer_pings_is_left),
		cmocka_unit_test(a_peer_that_says_nothing_is_left),
		cmocka_unit_test(a_peer_that_goes_is_seen),
		cmocka_unit_test(a_connection_that_is_closed_says_goodbye),
		cmocka_unit_test(without_memory_the_socket_stays_the_callers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
