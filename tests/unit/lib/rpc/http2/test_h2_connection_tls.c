/* One connection over TLS, whose socket takes and gives as many bytes as the test says. The other end is a
 * link of the test's own. */
#include <errno.h>
#include <sys/ioctl.h>

#include "h2_pair.h"
#include "rpc_certs.h"

#define CLOSED_EARLY                                                                                         \
	"the server closed the connection before HTTP/2 began (TLS or a client certificate may be expected)"

/* What the calls on the connection's socket do. */
static struct {
	int	 fd;			/* -1: none */
	size_t	 send_max, receive_max; /* in one call; 0: everything */
	bool	 is_full;		/* takes nothing */
	int	 send_error;		/* the next call fails with it; 0: none */
	unsigned sends;
} net = { .fd = -1 };

/* These take the place of libc's. */
ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
	if (fd == net.fd) {
		net.sends++;
		if (net.is_full || net.send_error) {
			errno = net.is_full ? EAGAIN : net.send_error;
			net.send_error = 0;
			return -1;
		}
		if (net.send_max)
			size = VDI_MIN(size, net.send_max);
	}
	return sendto(fd, bytes, size, flags, NULL, 0);
}

ssize_t recv(int fd, void *room, size_t size, int flags)
{
	if (fd == net.fd && net.receive_max)
		size = VDI_MIN(size, net.receive_max);
	return recvfrom(fd, room, size, flags, NULL, NULL);
}

struct secured {
	struct fixture	    f;
	struct vdi_h2_tls  *client_tls, *server_tls;
	struct vdi_h2_link *link; /* of the other end */
	bool		    is_up;
	uint8_t		    got[1 << 20];
	size_t		    size, at;
	bool		    has_end; /* close_notify came */
};

static struct secured *make_pair(bool needs_client, const char *max_version)
{
	const struct vdi_rpc_tls	client = { .ca_path = rpc_certs_path(&rpc_certs, "ca.pem"),
						   .cert_path = rpc_certs_path(&rpc_certs, "client.pem"),
						   .key_path = rpc_certs_path(&rpc_certs, "client.key") };
	const struct vdi_rpc_server_tls server = { .cert_path = rpc_certs_path(&rpc_certs, "server.pem"),
						   .key_path = rpc_certs_path(&rpc_certs, "server.key"),
						   .client_ca_path = rpc_certs_path(&rpc_certs, "ca.pem"),
						   .require_client_cert = needs_client,
						   .max_version = max_version };
	struct secured		       *s = test_calloc(1, sizeof *s);

	memset(&net, 0, sizeof net);
	net.fd = -1;
	set_up_with_clock(&s->f);
	assert_status(vdi_h2_tls_new_client(&client, &s->client_tls, NULL), VD_OK);
	assert_status(vdi_h2_tls_new_server(&server, false, &s->server_tls, NULL), VD_OK);
	return s;
}

static void finish(struct secured *s)
{
	net.fd = -1;
	end_test(&s->f);
	vdi_h2_link_free(s->link);
	vdi_h2_tls_free(s->client_tls);
	vdi_h2_tls_free(s->server_tls);
	test_free(s);
}

/* The other end takes what there is, and goes on with its handshake. */
static void pump(struct secured *s)
{
	bool wants_write;

	settle(&s->f);
	if (!s->is_up) {
		vd_status status = vdi_h2_link_shake(s->link, &wants_write);

		assert_true(status == VD_OK || status == VD_AGAIN);
		s->is_up = status == VD_OK;
	}
	while (s->is_up && !s->has_end) {
		ssize_t got = vdi_h2_link_receive(s->link, s->got + s->size, sizeof s->got - s->size);

		if (got < 0) {
			assert_int_equal(errno, EAGAIN);
			break;
		}
		s->size += (size_t) got;
		s->has_end = got == 0;
	}
	settle(&s->f);
}

static void pump_all(struct secured *s)
{
	for (unsigned idle = 0; idle < 30; idle++) {
		size_t before = s->size;

		pump(s);
		if (s->size > before)
			idle = 0;
	}
}

static void say_secured(struct secured *s, const void *bytes, size_t size)
{
	for (size_t at = 0; at < size;) {
		ssize_t sent = vdi_h2_link_send(s->link, (const char *) bytes + at, size - at);

		if (sent > 0)
			at += (size_t) sent;
		else {
			assert_int_equal(errno, EAGAIN);
			pump(s);
		}
	}
}

/* A client of ours that shakes hands with the test's link. */
static struct secured *connect_secured_with(const char *max_version, vd_dur settle_timeout)
{
	struct secured *s = make_pair(false, max_version);

	assert_status(vdi_h2_link_new(s->server_tls, s->f.fds[1], NULL, &s->link), VD_OK);
	assert_status(connect_client(&s->f,
				     (struct vdi_h2_connection_options) { .tls = s->client_tls,
									  .name = "localhost",
									  .settle_timeout = settle_timeout }),
		      VD_OK);
	net.fd = s->f.fds[0];
	return s;
}

static struct secured *connect_secured(vd_dur settle_timeout)
{
	return connect_secured_with(NULL, settle_timeout);
}

/* A server of ours whose link is up already. has_early: the preface was read, and the peer's settings, which
 * came in the same record, are in the link. */
static struct secured *serve_secured(bool needs_client, bool has_early)
{
	struct secured	   *s = make_pair(needs_client, NULL);
	struct vdi_h2_link *link;
	bool		    is_up = false, wants_write;

	assert_status(vdi_h2_link_new(s->client_tls, s->f.fds[1], "localhost", &s->link), VD_OK);
	assert_status(vdi_h2_link_new(s->server_tls, s->f.fds[0], NULL, &link), VD_OK);
	while (!is_up || !s->is_up) {
		if (!is_up)
			is_up = vdi_h2_link_shake(link, &wants_write) == VD_OK;
		pump(s);
	}
	if (has_early) {
		char first[33] = { 0 };

		memcpy(first, preface, 24);
		memcpy(first + 24, settings, sizeof settings);
		say_secured(s, first, sizeof first); /* one record */
		assert_int_equal(vdi_h2_link_receive(link, first, 24), 24);
		assert_memory_equal(first, preface, 24);
		assert_true(vdi_h2_link_has_more(link));
	}
	assert_status(connect_client(&s->f, (struct vdi_h2_connection_options) { .is_server = true,
										 .has_preface = has_early,
										 .link = link }),
		      VD_OK);
	net.fd = s->f.fds[0];
	return s;
}

static struct secured *begin_secured(bool is_server)
{
	return is_server ? serve_secured(false, false) : connect_secured((vd_dur) { 0 });
}

static void say_first(struct secured *s, bool is_server)
{
	pump_all(s);
	assert_true(s->is_up);
	if (is_server)
		say_secured(s, preface, 24);
	say_secured(s, settings, sizeof settings);
	pump_all(s);
	assert_int_equal(s->f.ready, 1);
	assert_int_equal(s->f.ended, 0);
	s->at = is_server ? 0 : 24;
}

/* The next frame; NULL: there is none. */
static const uint8_t *next_frame(struct secured *s)
{
	const uint8_t *head = s->got + s->at;

	if (s->size < s->at + 9)
		return NULL;
	s->at += 9 + ((size_t) head[0] << 16 | (size_t) head[1] << 8 | head[2]);
	assert_true(s->at <= s->size);
	return head;
}

/* So many pings in one piece, each answered once and in order. */
static void expect_pongs(struct secured *s, unsigned count)
{
	uint8_t	      *pings = test_calloc(count, 17);
	const uint8_t *frame;
	unsigned       heard = 0;

	for (unsigned i = 0; i < count; i++) {
		uint8_t *ping = pings + i * 17ul;

		ping[2] = 8;
		ping[3] = NGHTTP2_PING;
		ping[15] = (uint8_t) (i >> 8);
		ping[16] = (uint8_t) i;
	}
	say_secured(s, pings, count * 17ul);
	pump_all(s);
	while ((frame = next_frame(s)) != NULL)
		if (frame[3] == NGHTTP2_PING) {
			assert_int_equal(frame[4], NGHTTP2_FLAG_ACK);
			assert_int_equal(frame[15] << 8 | frame[16], heard);
			heard++;
		}
	assert_int_equal(heard, count);
	assert_int_equal(s->f.ended, 0);
	assert_int_equal(vdi_h2_connection_kept(s->f.connection), 0);
	test_free(pings);
}

/* The handshake, then frames both ways, whatever the socket takes and gives at a time. */
static void bytes_come_and_go_in_any_pieces(void **state)
{
	static const size_t sizes[] = { 1, 5, 100, 0 };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(sizes); i++)
		for (size_t k = 0; k < VDI_ARRAY_SIZE(sizes); k++)
			for (int is_server = 0; is_server < 2; is_server++) {
				struct secured *s = begin_secured(is_server);

				net.send_max = sizes[i];
				net.receive_max = sizes[k];
				say_first(s, is_server);
				expect_pongs(s, 40);
				finish(s);
			}
}

/* More than one iteration reads at once: bytes that OpenSSL has taken from the socket are read although the
 * socket has none left. */
static void what_openssl_holds_is_read(void **state)
{
	(void) state;
	for (int is_server = 0; is_server < 2; is_server++) {
		struct secured *s = begin_secured(is_server);

		say_first(s, is_server);
		expect_pongs(s, 900); /* 15 KiB: within a record */
		for (int i = 0; i < 5; i++)
			expect_pongs(s, 7);
		finish(s);
	}
}

/* An iteration writes all that the socket takes, in as many records as that needs. */
static void a_turn_sends_more_than_a_record(void **state)
{
	struct secured *s = begin_secured(true);
	size_t		before;

	(void) state;
	say_first(s, true);
	before = s->size;
	for (int i = 0; i < 1500; i++) /* 25 KiB */
		assert_int_equal(nghttp2_submit_ping(vdi_h2_connection_session(s->f.connection),
						     NGHTTP2_FLAG_NONE, NULL),
				 0);
	net.sends = 0;
	vdi_h2_connection_touch(s->f.connection);
	for (unsigned iterations = 0; net.sends == 0 && iterations < 10; iterations++)
		(void) event_base_loop(vdi_loop_base(s->f.loop), EVLOOP_ONCE | EVLOOP_NONBLOCK);
	assert_true(net.sends > 1);
	assert_int_equal(vdi_h2_connection_kept(s->f.connection), 0);
	pump_all(s);
	assert_int_equal(s->size - before, 1500 * 17);
	finish(s);
}

static void what_came_with_the_preface_is_read(void **state)
{
	struct secured *s = serve_secured(false, true);
	int		unread;

	(void) state;
	assert_int_equal(ioctl(s->f.fds[0], FIONREAD, &unread), 0);
	assert_int_equal(unread, 0);
	settle(&s->f);
	assert_int_equal(s->f.ready, 1);
	pump_all(s);
	expect_pongs(s, 3);
	finish(s);
}

/* In TLS 1.2 the server's part is the last one: its settings may come with it, and be read with it. */
static void what_came_with_the_handshake_is_read(void **state)
{
	struct secured *s = connect_secured_with("TLS1.2", (vd_dur) { 0 });
	bool		wants_write;
	int		unread;

	(void) state;
	for (int i = 0; i < 10 && !s->is_up; i++) {
		settle(&s->f);
		s->is_up = vdi_h2_link_shake(s->link, &wants_write) == VD_OK;
	}
	assert_true(s->is_up);
	say_secured(s, settings, sizeof settings);
	settle(&s->f);
	assert_int_equal(ioctl(s->f.fds[0], FIONREAD, &unread), 0);
	assert_int_equal(unread, 0);
	assert_int_equal(s->f.ready, 1);
	pump_all(s);
	s->at = 24;
	expect_pongs(s, 3);
	finish(s);
}

/* A handshake that the socket does not take waits until it does. */
static void a_full_socket_delays_the_handshake(void **state)
{
	struct secured *s = connect_secured((vd_dur) { 0 });

	(void) state;
	net.is_full = true;
	for (int i = 0; i < 3; i++)
		(void) event_base_loop(vdi_loop_base(s->f.loop), EVLOOP_ONCE | EVLOOP_NONBLOCK);
	assert_int_equal(s->f.ended, 0);
	assert_true(net.sends > 0);
	net.is_full = false;
	say_first(s, false);
	expect_pongs(s, 3);
	finish(s);
}

static void what_the_socket_does_not_take_is_kept(void **state)
{
	(void) state;
	for (int is_server = 0; is_server < 2; is_server++) {
		struct secured *s = begin_secured(is_server);
		uint8_t		ping[17] = { 0, 0, 8, NGHTTP2_PING };
		size_t		before;

		say_first(s, is_server);
		before = s->size;
		net.is_full = true;
		say_secured(s, ping, sizeof ping);
		for (int i = 0; i < 5; i++)
			(void) event_base_loop(vdi_loop_base(s->f.loop), EVLOOP_ONCE | EVLOOP_NONBLOCK);
		assert_int_equal(vdi_h2_connection_kept(s->f.connection), 17);
		net.is_full = false;
		pump_all(s);
		assert_int_equal(s->size, before + 17);
		assert_int_equal(vdi_h2_connection_kept(s->f.connection), 0);
		finish(s);
	}
}

/* ---- Ends ---- */

static void expect_why(struct secured *s, const char *why)
{
	settle(&s->f);
	assert_int_equal(s->f.ended, 1);
	assert_string_equal(s->f.why, why);
	finish(s);
}

static void a_handshake_has_its_time(void **state)
{
	struct secured *s = connect_secured(VD_SECONDS(5));

	(void) state;
	settle(&s->f);
	advance(&s->f, (vd_dur) { VD_SECONDS(5).ns - 1 });
	assert_int_equal(s->f.ended, 0);
	advance(&s->f, (vd_dur) { 1 });
	expect_why(s, "TLS handshake timed out");
	/* The time counts until the first settings. */
	s = connect_secured(VD_SECONDS(5));
	pump_all(s);
	assert_true(s->is_up);
	advance(&s->f, VD_SECONDS(5));
	expect_why(s, "no HTTP/2 settings received (not an HTTP/2 server, or TLS is expected)");
}

static void a_handshake_that_fails_says_why(void **state)
{
	struct secured *s = connect_secured((vd_dur) { 0 });

	(void) state;
	settle(&s->f);
	assert_int_equal(shutdown(s->f.fds[1], SHUT_WR), 0);
	expect_why(s, CLOSED_EARLY);
	s = connect_secured((vd_dur) { 0 });
	say(&s->f, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
	expect_why(s, "the server does not speak TLS");
	s = connect_secured((vd_dur) { 0 });
	net.send_error = EHOSTUNREACH;
	expect_why(s, "No route to host");
	/* Nothing to say goodbye to. */
	s = connect_secured((vd_dur) { 0 });
	settle(&s->f);
	vdi_h2_connection_close(s->f.connection, VD_SECONDS(300));
	expect_why(s, "");
}

/* A peer that ends, with or without close_notify. */
static void a_peer_that_goes_is_seen(void **state)
{
	(void) state;
	for (int is_server = 0; is_server < 2; is_server++) {
		struct secured *s = begin_secured(is_server);

		say_first(s, is_server);
		vdi_h2_link_end(s->link);
		expect_why(s, "the connection was closed");
		s = begin_secured(is_server);
		say_first(s, is_server);
		assert_int_equal(shutdown(s->f.fds[1], SHUT_WR), 0);
		expect_why(s, "the connection was closed");
	}
	/* Before its first settings. */
	struct secured *s = connect_secured((vd_dur) { 0 });

	pump_all(s);
	vdi_h2_link_end(s->link);
	expect_why(s, CLOSED_EARLY);
}

/* Bytes that are no TLS, after the handshake. */
static void a_broken_record_is_named(void **state)
{
	(void) state;
	for (int is_closing = 0; is_closing < 2; is_closing++)
		for (int is_server = 0; is_server < 2; is_server++) {
			struct secured *s = begin_secured(is_server);

			say_first(s, is_server);
			if (is_closing)
				vdi_h2_connection_close(s->f.connection, VD_SECONDS(300));
			settle(&s->f);
			say(&s->f, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
			expect_why(s, is_server ? "the client does not speak TLS" :
						  "the server does not speak TLS");
		}
}

/* Ends found by writing: before the first settings, and after them. */
static void a_socket_that_breaks_when_written_to(void **state)
{
	static const struct {
		int	    error;
		const char *why;
	} cases[] = { { EPIPE, "the connection was closed" },
		      { ECONNRESET, "the connection was closed" },
		      { EHOSTUNREACH, "No route to host" } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++)
		for (int is_server = 0; is_server < 2; is_server++) {
			struct secured *s = begin_secured(is_server);
			uint8_t		ping[17] = { 0, 0, 8, NGHTTP2_PING };

			say_first(s, is_server);
			net.send_error = cases[i].error;
			say_secured(s, ping, sizeof ping);
			expect_why(s, cases[i].why);
		}
}

/* GOAWAY, then close_notify; the connection ends when the peer has ended, too. */
static void a_close_says_goodbye_in_full(void **state)
{
	(void) state;
	for (int is_server = 0; is_server < 2; is_server++) {
		struct secured *s = begin_secured(is_server);
		const uint8_t  *frame;
		bool		has_goaway = false;

		say_first(s, is_server);
		while (next_frame(s))
			;
		vdi_h2_connection_close(s->f.connection, VD_SECONDS(300));
		pump_all(s);
		while ((frame = next_frame(s)) != NULL)
			has_goaway |= frame[3] == NGHTTP2_GOAWAY;
		assert_true(has_goaway);
		assert_true(s->has_end);
		assert_int_equal(s->f.ended, 0);
		vdi_h2_link_end(s->link);
		expect_why(s, "");
	}
}

/* Whoever is cut hears that this is the end, not that somebody has cut the connection. */
static void an_abort_sends_close_notify(void **state)
{
	(void) state;
	for (int is_server = 0; is_server < 2; is_server++) {
		struct secured *s = begin_secured(is_server);

		say_first(s, is_server);
		vdi_h2_connection_abort(s->f.connection, "enough");
		pump_all(s);
		assert_true(s->has_end);
		expect_why(s, "enough");
	}
}

/* ---- Who it is ---- */

static void the_name_is_that_of_the_certificate(void **state)
{
	char name[64] = "before";

	(void) state;
	for (int needs_client = 0; needs_client < 2; needs_client++) {
		struct secured *s = serve_secured(needs_client, false);

		say_first(s, true);
		vdi_h2_connection_common_name(s->f.connection, name, sizeof name);
		assert_string_equal(name, "alice");
		vdi_h2_connection_common_name(s->f.connection, name, 4);
		assert_string_equal(name, "ali");
		finish(s);
	}
	struct secured *s = connect_secured((vd_dur) { 0 });

	say_first(s, false);
	vdi_h2_connection_common_name(s->f.connection, name, sizeof name);
	assert_string_equal(name, "server");
	finish(s);
	s = make_pair(false, NULL); /* without TLS there is no name */
	assert_status(connect_client(&s->f, (struct vdi_h2_connection_options) { .is_server = true }), VD_OK);
	vdi_h2_connection_common_name(s->f.connection, name, sizeof name);
	assert_string_equal(name, "");
	finish(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_come_and_go_in_any_pieces),
		cmocka_unit_test(what_openssl_holds_is_read),
		cmocka_unit_test(a_turn_sends_more_than_a_record),
		cmocka_unit_test(what_came_with_the_preface_is_read),
		cmocka_unit_test(what_came_with_the_handshake_is_read),
		cmocka_unit_test(a_full_socket_delays_the_handshake),
		cmocka_unit_test(what_the_socket_does_not_take_is_kept),
		cmocka_unit_test(a_handshake_has_its_time),
		cmocka_unit_test(a_handshake_that_fails_says_why),
		cmocka_unit_test(a_peer_that_goes_is_seen),
		cmocka_unit_test(a_broken_record_is_named),
		cmocka_unit_test(a_socket_that_breaks_when_written_to),
		cmocka_unit_test(a_close_says_goodbye_in_full),
		cmocka_unit_test(an_abort_sends_close_notify),
		cmocka_unit_test(the_name_is_that_of_the_certificate),
	};

	return cmocka_run_group_tests(tests, rpc_certs_set_up, rpc_certs_tear_down);
}
