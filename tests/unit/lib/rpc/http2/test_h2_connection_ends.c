/* How one connection ends: its last callback, what its socket does then, and what happens when libevent has
 * no memory for an event. */
#include <dlfcn.h>
#include <errno.h>

#include "h2_pair.h"

/* The event_add of the connection's socket that fails, of those for reading or for writing; 0: none. */
static int	watched_fd = -1;
static short	fails_for;
static unsigned fails_at, adds;

static void fail_add(short what, unsigned at)
{
	fails_for = what;
	fails_at = at;
	adds = 0;
}

/* Takes the place of libevent's. */
int event_add(struct event *event, const struct timeval *timeout)
{
	int (*real)(struct event * event, const struct timeval *timeout);

	if (event_get_fd(event) == watched_fd && (event_get_events(event) & fails_for) && ++adds == fails_at)
		return -1;
	*(void **) &real = dlsym(RTLD_NEXT, "event_add");
	return real(event, timeout);
}

/* The socket takes nothing, or so much in one call. */
static bool   is_full;
static size_t send_max;

/* Takes the place of libc's. */
ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
	if (fd == watched_fd && is_full) {
		errno = EAGAIN;
		return -1;
	}
	return sendto(fd, bytes, fd == watched_fd && send_max ? VDI_MIN(size, send_max) : size, flags, NULL,
		      0);
}

static void start(struct fixture *f, bool is_server)
{
	watched_fd = -1;
	fail_add(0, 0);
	is_full = false;
	send_max = 0;
	set_up_with_clock(f);
	assert_status(
		connect_client(f, (struct vdi_h2_connection_options) { .is_server = is_server,
								       .keepalive_time = VD_SECONDS(10),
								       .keepalive_without_streams = true }),
		VD_OK);
	watched_fd = f->fds[0];
	if (is_server)
		say(f, preface, 24);
	say(f, settings, sizeof settings);
	settle(f);
	assert_int_equal(f->ready, 1);
}

static void finish(struct fixture *f)
{
	watched_fd = -1;
	end_test(f);
}

static void expect_no_memory(struct fixture *f)
{
	settle(f);
	assert_int_equal(f->ended, 1);
	assert_string_equal(f->why, "out of memory");
	finish(f);
}

/* ---- The last callback ---- */

static struct {
	unsigned ended;
	ssize_t	 heard; /* by the peer, within the callback: 0 is the end */
	int	 fd;	/* of the connection, within it */
} last;

static void keep_connection(void *arg, const char *why)
{
	struct fixture *f = arg;
	char		room[4096];

	assert_string_equal(why, "enough");
	last.ended++;
	last.fd = vdi_h2_connection_fd(f->connection);
	do
		last.heard = recv(f->fds[1], room, sizeof room, MSG_DONTWAIT);
	while (last.heard > 0);
}

static const struct vdi_h2_side keeping_side = { .ended = keep_connection };

/* The owner may free the connection later: the socket is closed, and nothing else is called, however much
 * time passes. */
static void an_ended_connection_waits_to_be_freed(void **state)
{
	for (int is_server = 0; is_server < 2; is_server++) {
		struct vdi_h2_connection_options options = { .side = &keeping_side,
							     .is_server = is_server,
							     .keepalive_time = VD_SECONDS(10),
							     .keepalive_timeout = VD_SECONDS(3),
							     .keepalive_without_streams = true };
		struct fixture			 f;

		(void) state;
		watched_fd = -1;
		memset(&last, 0, sizeof last);
		set_up_with_clock(&f);
		options.arg = &f;
		assert_status(vdi_h2_connection_new(f.h2_loop, f.fds[0], &options, &f.connection), VD_OK);
		settle(&f);
		if (is_server)
			say(&f, preface, 24);
		say(&f, settings, sizeof settings);
		settle(&f);
		assert_true(vdi_h2_connection_is_ready(f.connection));
		vdi_h2_connection_abort(f.connection, "enough");
		assert_int_equal(last.ended, 0); /* not inside of the call */
		settle(&f);
		assert_int_equal(last.ended, 1);
		assert_int_equal(last.heard, 0);
		assert_int_equal(last.fd, -1);
		assert_true(vdi_h2_connection_is_over(f.connection));
		assert_false(vdi_h2_connection_is_ready(f.connection));
		for (int i = 0; i < 5; i++)
			advance(&f, VD_SECONDS(10));
		vdi_h2_connection_abort(f.connection, "once more");
		vdi_h2_connection_close(f.connection, VD_SECONDS(1));
		settle(&f);
		assert_int_equal(last.ended, 1);
		assert_null(vdi_h2_connection_free(f.connection));
		settle(&f);
		tear_down(&f);
	}
}

/* A descriptor that has its number by then is not closed with it. */
static void the_socket_is_closed_once(void **state)
{
	struct vdi_h2_connection_options options = { .side = &keeping_side };
	struct fixture			 f;
	int				 before, other;

	(void) state;
	watched_fd = -1;
	memset(&last, 0, sizeof last);
	set_up_with_clock(&f);
	options.arg = &f;
	before = f.fds[0];
	assert_status(vdi_h2_connection_new(f.h2_loop, f.fds[0], &options, &f.connection), VD_OK);
	vdi_h2_connection_abort(f.connection, "enough");
	settle(&f);
	assert_int_equal(last.ended, 1);
	other = dup2(f.fds[1], before);
	assert_int_equal(other, before);
	assert_null(vdi_h2_connection_free(f.connection));
	assert_true(dup2(other, other) == other);
	close(other);
	tear_down(&f);
}

/* ---- Time before anything was said ---- */

/* A socket that is not connected yet: nothing can be written to it. */
static void a_connect_has_its_time(void **state)
{
	static const char bytes[4096];
	struct fixture	  f;

	(void) state;
	watched_fd = -1;
	set_up_with_clock(&f);
	while (write(f.fds[0], bytes, sizeof bytes) > 0)
		;
	while (write(f.fds[0], bytes, 1) > 0)
		;
	assert_status(
		connect_client(&f, (struct vdi_h2_connection_options) { .settle_timeout = VD_SECONDS(5),
									.keepalive_time = VD_SECONDS(1) }),
		VD_OK);
	settle(&f);
	advance(&f, (vd_dur) { VD_SECONDS(5).ns - 1 });
	assert_int_equal(f.ended, 0);
	advance(&f, (vd_dur) { 1 });
	assert_int_equal(f.ended, 1);
	assert_string_equal(f.why, "connection timed out");
	end_test(&f);
}

/* ---- Libevent without memory ---- */

/* The socket stays the caller's, and nothing listens to it. */
static void without_events_there_is_no_connection(void **state)
{
	(void) state;
	for (int is_server = 0; is_server < 2; is_server++)
		for (unsigned n = 1; n <= 3; n++) {
			struct vdi_h2_connection_options options = { .is_server = is_server };
			struct fixture			 f;
			bool				 fails = n <= (is_server ? 1u : 2u);

			set_up_with_clock(&f);
			watched_fd = f.fds[0];
			fail_add(EV_READ | EV_WRITE, n);
			assert_status(connect_client(&f, options), fails ? VD_NOMEM : VD_OK);
			fail_add(0, 0);
			if (fails) {
				say(&f, settings, sizeof settings);
				settle(&f);
				assert_int_equal(write(f.fds[0], "x", 1), 1);
				assert_int_equal(f.ended, 0);
				watched_fd = -1;
				close(f.fds[0]);
				tear_down(&f);
			} else
				finish(&f);
		}
}

static void what_cannot_be_kept_ends_the_connection(void **state)
{
	struct fixture f;
	struct told    told;

	(void) state;
	/* The first time that the socket is full, */
	start(&f, true);
	hear(&f, &told);
	is_full = true;
	fail_add(EV_WRITE, 1);
	say_ping(&f, 0, 1);
	expect_no_memory(&f);
	/* and a later one: it has taken some of it. */
	start(&f, true);
	hear(&f, &told);
	fail_add(EV_WRITE, 2);
	send_max = 5;
	say_ping(&f, 0, 1);
	expect_no_memory(&f);
	/* The same without memory of our own. */
	start(&f, true);
	hear(&f, &told);
	is_full = true;
	say_ping(&f, 0, 1);
	for (uint64_t n = 1; f.ended == 0; n++) {
		vdi_alloc_fail_nth(n, 1);
		say_ping(&f, 0, 1);
		settle(&f);
		is_full = !is_full;
		settle(&f);
		is_full = !is_full;
		vdi_alloc_fail_nth(0, 0);
		assert_true(n < 50);
	}
	expect_no_memory(&f);
}

/* A peer that did not read, and was not read from, cannot be listened to again. */
static void a_pause_that_cannot_end_ends_the_connection(void **state)
{
	struct fixture f;
	struct told    told;
	uint8_t	       ping[17] = { 0, 0, 8, NGHTTP2_PING };

	(void) state;
	for (int fails = 0; fails < 2; fails++) {
		start(&f, true);
		hear(&f, &told);
		is_full = true;
		for (int i = 0; i < 1100; i++) {
			say(&f, ping, sizeof ping);
			if (i % 100 == 0)
				for (int k = 0; k < 3; k++)
					(void) event_base_loop(vdi_loop_base(f.loop),
							       EVLOOP_ONCE | EVLOOP_NONBLOCK);
		}
		fail_add(EV_READ, fails ? 1 : 0);
		is_full = false;
		settle(&f);
		if (fails)
			expect_no_memory(&f);
		else
			finish(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ended_connection_waits_to_be_freed),
		cmocka_unit_test(the_socket_is_closed_once),
		cmocka_unit_test(a_connect_has_its_time),
		cmocka_unit_test(without_events_there_is_no_connection),
		cmocka_unit_test(what_cannot_be_kept_ends_the_connection),
		cmocka_unit_test(a_pause_that_cannot_end_ends_the_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
