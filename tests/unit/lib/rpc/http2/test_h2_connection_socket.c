/* One connection over a socket that takes and gives what the test says: a few bytes, nothing, or an error. */
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include "h2_pair.h"

/* What the next calls on the connection's socket do. */
static struct {
	int	 fd;				    /* of the connection; all others are left alone */
	size_t	 send_max, receive_max;		    /* in one call; 0: everything */
	int	 send_errors[8], receive_errors[8]; /* one after the other; 0: no more */
	size_t	 send_error, receive_error;
	bool	 is_full; /* takes nothing */
	unsigned sends, receives;
} net;

/* These take the place of libc's. */
ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
	if (fd == net.fd) {
		int error = net.send_errors[net.send_error];

		net.sends++;
		if (net.is_full)
			error = EAGAIN;
		else if (error)
			net.send_error++;
		if (error) {
			errno = error;
			return -1;
		}
		if (net.send_max)
			size = VDI_MIN(size, net.send_max);
	}
	return sendto(fd, bytes, size, flags, NULL, 0);
}

ssize_t recv(int fd, void *room, size_t size, int flags)
{
	if (fd == net.fd) {
		int error = net.receive_errors[net.receive_error];

		net.receives++;

		if (error) {
			net.receive_error++;
			errno = error;
			return -1;
		}
		if (net.receive_max)
			size = VDI_MIN(size, net.receive_max);
	}
	return recvfrom(fd, room, size, flags, NULL, NULL);
}

static void start(struct fixture *f, bool is_server)
{
	memset(&net, 0, sizeof net);
	net.fd = -1;
	set_up_with_clock(f);
	assert_status(connect_client(f, (struct vdi_h2_connection_options) { .is_server = is_server }),
		      VD_OK);
	net.fd = f->fds[0];
}

static void start_ready(struct fixture *f, bool is_server)
{
	start(f, is_server);
	if (is_server)
		say(f, preface, 24);
	say(f, settings, sizeof settings);
	settle(f);
	assert_int_equal(f->ready, 1);
}

static void finish(struct fixture *f)
{
	net.fd = -1;
	end_test(f);
}

/* Every answer to so many pings, in order, whatever the socket takes at a time. */
static void expect_pongs(struct fixture *f, unsigned count)
{
	static uint8_t bytes[1 << 18];
	size_t	       size = 0, at = 0;
	unsigned       heard = 0;

	for (unsigned idle = 0; idle < 50; idle++) {
		ssize_t got =
			recvfrom(f->fds[1], bytes + size, sizeof bytes - size, MSG_DONTWAIT, NULL, NULL);

		settle(f);
		if (got > 0) {
			size += (size_t) got;
			idle = 0;
		}
	}
	for (; at + 9 <= size;
	     at += 9 + ((size_t) bytes[at] << 16 | (size_t) bytes[at + 1] << 8 | bytes[at + 2]))
		if (bytes[at + 3] == NGHTTP2_PING) {
			assert_int_equal(bytes[at + 4], NGHTTP2_FLAG_ACK);
			assert_int_equal(bytes[at + 15] << 8 | bytes[at + 16], heard);
			heard++;
		}
	assert_int_equal(at, size);
	assert_int_equal(heard, count);
	assert_int_equal(vdi_h2_connection_kept(f->connection), 0);
}

static void say_pings(struct fixture *f, unsigned count)
{
	uint8_t ping[17] = { 0, 0, 8, NGHTTP2_PING };

	for (unsigned i = 0; i < count; i++) {
		ping[15] = (uint8_t) (i >> 8);
		ping[16] = (uint8_t) i;
		say(f, ping, sizeof ping);
	}
}

/* ---- Pieces ---- */

static void bytes_come_and_go_in_any_pieces(void **state)
{
	static const size_t sizes[] = { 1, 2, 9, 16, 17, 18, 100, 0 };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(sizes); i++) {
		for (size_t k = 0; k < VDI_ARRAY_SIZE(sizes); k++) {
			struct fixture f;
			struct told    told;

			start(&f, true);
			net.send_max = sizes[i];
			net.receive_max = sizes[k];
			say(&f, preface, 24);
			say(&f, settings, sizeof settings);
			for (unsigned iterations = 0; iterations < 10; iterations++)
				settle(&f);
			assert_int_equal(f.ready, 1);
			hear(&f, &told);
			assert_true(told.size > 9);
			for (unsigned iterations = 0; iterations < 10; iterations++)
				settle(&f);
			hear(&f, &told);
			say_pings(&f, 40);
			expect_pongs(&f, 40);
			finish(&f);
		}
	}
}

/* What the socket does not take is kept, and is said to be. */
static void what_the_socket_does_not_take_is_kept(void **state)
{
	struct fixture f;
	struct told    told;

	(void) state;
	start_ready(&f, true);
	hear(&f, &told);
	net.is_full = true;
	say_pings(&f, 3);
	for (unsigned iterations = 0; iterations < 10;
	     iterations++) /* the pipe under it could be written to all the time */
		(void) event_base_loop(vdi_loop_base(f.loop), EVLOOP_ONCE | EVLOOP_NONBLOCK);
	assert_int_equal(vdi_h2_connection_kept(f.connection), 3 * 17);
	net.is_full = false;
	net.send_max = 10;
	expect_pongs(&f, 3);
	assert_true(net.sends >= 6);
	finish(&f);
}

/* A socket that takes a part is full: it is asked again when it is writable. */
static void a_part_is_all_that_a_turn_sends(void **state)
{
	struct fixture f;
	struct told    told;

	(void) state;
	start_ready(&f, true);
	hear(&f, &told);
	net.send_max = 5;
	net.sends = 0;
	say_ping(&f, 0, 0);
	for (unsigned iterations = 0; net.sends == 0 && iterations < 10; iterations++)
		(void) event_base_loop(vdi_loop_base(f.loop), EVLOOP_ONCE | EVLOOP_NONBLOCK);
	assert_int_equal(net.sends, 1);
	assert_int_equal(vdi_h2_connection_kept(f.connection), 12);
	expect_pongs(&f, 1);
	assert_int_equal(net.sends, 4);
	finish(&f);
}

static void take_turns(struct fixture *f)
{
	for (unsigned iterations = 0; iterations < 10; iterations++)
		(void) event_base_loop(vdi_loop_base(f->loop), EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

static int unread(struct fixture *f)
{
	int size = 0;

	take_turns(f);
	assert_int_equal(ioctl(f->fds[0], FIONREAD, &size), 0);
	return size;
}

/* A thousand answers that the peer does not take, and no more: then it is not read from before it reads. */
static void unread_answers_have_their_bound(void **state)
{
	struct fixture f;
	struct told    told;

	(void) state;
	start_ready(&f, true);
	hear(&f, &told);
	for (int round = 0; round < 3; round++) {
		net.is_full = true;
		say_pings(&f, 1); /* this one is kept */
		assert_int_equal(unread(&f), 0);
		assert_int_equal(vdi_h2_connection_kept(f.connection), 17);
		for (int i = 0; i < 9; i++) {
			say_pings(&f, 100);
			assert_int_equal(unread(&f), 0);
		}
		say_pings(&f, 99);
		assert_int_equal(unread(&f), 0);
		say_pings(&f, 1); /* the thousandth */
		assert_int_equal(unread(&f), 0);
		say_pings(&f, 1);
		assert_int_equal(unread(&f), 17);
		net.is_full = false;
		settle(&f);
		assert_int_equal(unread(&f), 0);
		assert_int_equal(f.ended, 0);
		hear(&f, &told);
		assert_int_equal(told.size, 1002 * 17);
	}
	finish(&f);
}

/* A short read has emptied the socket: it is not asked again before there is more. */
static void a_socket_is_asked_once_for_what_it_has(void **state)
{
	static const struct {
		unsigned pings, receives;
	} cases[] = { { 1, 1 }, { 100, 1 }, { 3855, 1 }, { 3856, 2 }, { 7800, 3 } }; /* of 17 bytes */
	static uint8_t pings[8000][17];
	const int      room = 1 << 20;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(pings); i++) {
		pings[i][2] = 8;
		pings[i][3] = NGHTTP2_PING;
		pings[i][4] = NGHTTP2_FLAG_ACK; /* needs no answer */
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct fixture f;

		start_ready(&f, false);
		assert_int_equal(setsockopt(f.fds[1], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room), 0);
		net.receives = 0;
		say(&f, pings, cases[i].pings * 17ul);
		settle(&f);
		assert_int_equal(net.receives, cases[i].receives);
		finish(&f);
	}
}

/* ---- For the moment ---- */

static void a_busy_socket_is_asked_again(void **state)
{
	static const int errors[] = { EAGAIN, EINTR, ENOBUFS };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(errors); i++) {
		struct fixture f;
		struct told    told;

		start_ready(&f, true);
		hear(&f, &told);
		for (size_t k = 0; k < 4; k++)
			net.send_errors[k] = errors[i];
		say_pings(&f, 5);
		expect_pongs(&f, 5);
		assert_int_equal(net.send_error, 4);
		memset(net.receive_errors, 0, sizeof net.receive_errors);
		for (size_t k = 0; k < 4; k++)
			net.receive_errors[k] = errors[i] == ENOBUFS ? EAGAIN : errors[i];
		say_pings(&f, 5);
		expect_pongs(&f, 5);
		assert_int_equal(net.receive_error, 4);
		finish(&f);
	}
}

/* ---- For good ---- */

static void expect_why(struct fixture *f, const char *why)
{
	for (unsigned iterations = 0; iterations < 3; iterations++)
		settle(f);
	assert_int_equal(f->ended, 1);
	assert_string_equal(f->why, why);
	finish(f);
}

static const char before_http2[] =
	"the server closed the connection before HTTP/2 began (TLS or a client certificate may be expected)";

static void a_socket_that_breaks_when_written_to(void **state)
{
	static const struct {
		int	    error;
		const char *early, *late; /* of a client; before the first settings, and behind them */
	} cases[] = {
		{ EPIPE, before_http2, "the connection was closed" },
		{ ECONNRESET, before_http2, "the connection was closed" },
		{ ETIMEDOUT, "connection timed out", "connection timed out" },
		{ EHOSTUNREACH, "no route to host", "no route to host" },
		{ EDOTDOT, "RFS specific error", "RFS specific error" }, /* an abbreviation stays one */
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct fixture f;

		start(&f, false);
		net.send_errors[0] = cases[i].error;
		expect_why(&f, cases[i].early);
		start_ready(&f, false);
		net.send_errors[0] = cases[i].error;
		say_ping(&f, 0, 1);
		expect_why(&f, cases[i].late);
		/* To a server it is a client like others. */
		start(&f, true);
		net.send_errors[0] = cases[i].error;
		expect_why(&f, cases[i].late);
		/* What was kept finds it, too. */
		start_ready(&f, true);
		net.send_errors[0] = EAGAIN;
		net.send_errors[1] = cases[i].error;
		say_ping(&f, 0, 1);
		expect_why(&f, cases[i].late);
	}
}

static void a_socket_that_breaks_when_read_from(void **state)
{
	static const struct {
		int	    error;
		const char *why;
	} cases[] = { { ECONNRESET, "connection reset by peer" },
		      { ETIMEDOUT, "the connection was closed" } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct fixture f;

		start(&f, false);
		net.receive_errors[0] = cases[i].error;
		say(&f, settings, sizeof settings);
		expect_why(&f, before_http2);
		start_ready(&f, false);
		net.receive_errors[0] = cases[i].error;
		say_ping(&f, 0, 1);
		expect_why(&f, cases[i].why);
		start(&f, true);
		net.receive_errors[0] = cases[i].error;
		say(&f, preface, 24);
		expect_why(&f, cases[i].why);
		/* Who closes does not ask why. */
		start_ready(&f, false);
		vdi_h2_connection_close(f.connection, VD_SECONDS(5));
		settle(&f);
		net.receive_errors[0] = cases[i].error;
		say_ping(&f, 0, 1);
		expect_why(&f, "");
	}
}

/* Of a client that ends with a word, that word; even if the socket breaks then. */
static void the_peers_last_word_is_the_reason(void **state)
{
	const uint8_t  goaway[] = { 0, 0, 8, NGHTTP2_GOAWAY,	    0, 0, 0, 0, 0, 0, 0, 0, 0,
				    0, 0, 0, NGHTTP2_INTERNAL_ERROR };
	struct fixture f;

	(void) state;
	start_ready(&f, true);
	say(&f, goaway, sizeof goaway);
	net.receive_errors[0] = EAGAIN;
	settle(&f);
	expect_why(&f, "the peer ended the connection: INTERNAL_ERROR");
}

/* A peer that is told goodbye, does not read it, and asks and asks: it is not listened to any more, but it
 * can still read what it was told. */
static void a_flood_does_not_stop_a_goodbye(void **state)
{
	const uint8_t  misplaced[] = { 0, 0, 0, NGHTTP2_DATA, 0, 0, 0, 0, 0 }; /* on no stream */
	static uint8_t pings[1200][17];
	/* Of the static table: POST, http, "/"; a literal authority. */
	const uint8_t request[] = {
		0, 0, 6, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 0, 0, 0, 1, 0x83, 0x86, 0x84, 0x01, 1, 'x'
	};
	struct fixture f;
	struct told    told = { .size = 0 };
	unsigned       goaways = 0;
	ssize_t	       got;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(pings); i++) {
		pings[i][2] = 8;
		pings[i][3] = NGHTTP2_PING;
	}
	start_ready(&f, true);
	say(&f, request, sizeof request); /* without a stream nghttp2 reads nothing after GOAWAY */
	settle(&f);
	hear(&f, &told);
	net.send_max = 100;
	say(&f, pings, sizeof pings);
	vdi_h2_connection_close(f.connection, VD_SECONDS(5));
	take_turns(&f);
	assert_int_equal(f.ended, 0);
	assert_true(vdi_h2_connection_kept(f.connection) > 0);
	for (int i = 0; i < 3; i++)
		say(&f, misplaced, sizeof misplaced);
	take_turns(&f);
	net.send_max = 0;
	settle(&f);
	assert_int_equal(f.ended, 0);
	told.size = 0;
	while ((got = recvfrom(f.fds[1], told.bytes + told.size, sizeof told.bytes - (size_t) told.size,
			       MSG_DONTWAIT, NULL, NULL)) > 0)
		told.size += got;
	assert_int_equal(got, 0); /* its end */
	for (told.at = 0; told.at + 9 <= told.size; told.at += 9 + told.bytes[told.at + 2])
		if (told.bytes[told.at + 3] == NGHTTP2_GOAWAY) {
			assert_int_equal(told.bytes[told.at + 16], NGHTTP2_NO_ERROR);
			goaways++;
		}
	assert_int_equal(goaways, 1);
	assert_int_equal(shutdown(f.fds[1], SHUT_WR), 0);
	expect_why(&f, "");
}

/* ---- Its life ---- */

/* A connection may be freed as long as nothing was done with it. */
static void one_that_did_not_begin_leaves_nothing_behind(void **state)
{
	for (int is_server = 0; is_server < 2; is_server++) {
		struct fixture f;

		(void) state;
		start(&f, is_server);
		f.connection = vdi_h2_connection_free(f.connection);
		assert_null(f.connection);
		settle(&f);
		assert_int_equal(recvfrom(f.fds[1], &f.why, 1, MSG_DONTWAIT, NULL, NULL),
				 0); /* its end is closed, and nothing was said */
		assert_int_equal(f.ended, 0);
		tear_down(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_come_and_go_in_any_pieces),
		cmocka_unit_test(what_the_socket_does_not_take_is_kept),
		cmocka_unit_test(a_part_is_all_that_a_turn_sends),
		cmocka_unit_test(unread_answers_have_their_bound),
		cmocka_unit_test(a_socket_is_asked_once_for_what_it_has),
		cmocka_unit_test(a_busy_socket_is_asked_again),
		cmocka_unit_test(a_socket_that_breaks_when_written_to),
		cmocka_unit_test(a_socket_that_breaks_when_read_from),
		cmocka_unit_test(the_peers_last_word_is_the_reason),
		cmocka_unit_test(a_flood_does_not_stop_a_goodbye),
		cmocka_unit_test(one_that_did_not_begin_leaves_nothing_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
