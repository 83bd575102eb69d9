/* What the server does when time passes: arrivals that say nothing, requests that do not come or are not
 * read, calls with a deadline, clients that do not take what is there. One loop, and time moves when the
 * test says so. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "h2_peer.h"
#include "hand_clock.h"
#include "lock.h"
#include "metrics.h"
#include "rpc_fixture.h"
#include "temp_folder.h"

#define JUST_BEFORE(duration) ((vd_dur) { (duration).ns - 1 })
#define AN_INSTANT ((vd_dur) { 1 })

static struct vdi_clock_sim clock_sim;
static struct peer	    other; /* ready from the start: what it hears comes after all that was due */

/* The request that waits for its answer: of /hold. */
static _Atomic(struct vdi_rpc_http *) held;

static void serve(void *arg, struct vdi_rpc_http *http)
{
	(void) arg;
	if (vd_bytes_equal(http->path, vd_bytes_of("/hold"))) {
		atomic_store(&held, http);
		return;
	}
	if (vd_bytes_equal(http->path, vd_bytes_of("/big")))
		for (long left = 32 << 20; left > 0; left -= 16)
			vdi_buffer_append_text(&http->body, "sixteen letters.");
	else
		vdi_buffer_append_text(&http->body, "hello");
	http->closes = vd_bytes_equal(http->path, vd_bytes_of("/close"));
	http->answer(http);
}

static void take_turns(void)
{
	for (int i = 0; i < 3; i++) {
		struct frame frame = { 0 };

		assert_true(peer_frame(&other, NGHTTP2_PING, 0, 0, "12345678", 8));
		do
			assert_true(peer_next(&other, &frame));
		while (frame.type != NGHTTP2_PING || !(frame.flags & NGHTTP2_FLAG_ACK));
	}
}

static void advance(vd_dur by)
{
	vdi_clock_sim_advance(&clock_sim, by);
	take_turns();
}

static void start_with(struct vdi_rpc_server_options options)
{
	options.threads = 1;
	options.http = serve;
	env = hand_clock_env(&clock_sim);
	assert_status(rpc_echo_start(&echo, env, NULL, &options, NULL), VD_OK);
	peer_connect(&other, rpc_echo_address(&echo));
	peer_begin(&other, -1);
	take_turns();
}

static int start(void **state)
{
	(void) state;
	start_with((struct vdi_rpc_server_options) { 0 });
	return 0;
}

static int stop(void **state)
{
	(void) state;
	peer_close(&other);
	rpc_echo_stop(&echo, env);
	env = vd_env_free(env);
	assert_int_equal(echo.accepted, echo.ended);
	return 0;
}

/* ---- Sockets without HTTP/2 ---- */

static int join(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int		   fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
	at.sin_port = htons((uint16_t) atoi(strrchr(rpc_echo_address(&echo), ':') + 1));
	assert_int_equal(connect(fd, (struct sockaddr *) &at, sizeof at), 0);
	take_turns(); /* it is accepted */
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t) strlen(text));
	take_turns();
}

/* Takes all that came; whether the other side has ended. */
static bool is_over(int fd)
{
	char	room[4096];
	ssize_t got;

	do
		got = recv(fd, room, sizeof room, MSG_DONTWAIT);
	while (got > 0);
	return got == 0 || errno != EAGAIN;
}

static void expect_cut_after(int fd, vd_dur time)
{
	assert_false(is_over(fd));
	advance(JUST_BEFORE(time));
	assert_false(is_over(fd));
	advance(AN_INSTANT);
	assert_true(is_over(fd));
	close(fd);
}

static void whoever_does_not_begin_is_cut_after_20_s(void **state)
{
	int fd;

	(void) state;
	expect_cut_after(join(), VD_SECONDS(20));
	/* A part of the preface does not prolong it. */
	fd = join();
	advance(VD_SECONDS(5));
	say(fd, "PRI * HT");
	expect_cut_after(fd, VD_SECONDS(15));
	/* Settings have their own time. */
	fd = join();
	advance(VD_SECONDS(5));
	say(fd, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
	expect_cut_after(fd, VD_SECONDS(20));
}

/* Who goes is let go at once. */
static void whoever_ends_before_it_begins_is_not_waited_for(void **state)
{
	static const char *const texts[] = { "", "P", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r",
					     "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "G" };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(texts); i++) {
		int fd = join();

		say(fd, texts[i]);
		assert_false(is_over(fd));
		assert_int_equal(shutdown(fd, SHUT_WR), 0);
		take_turns();
		assert_true(is_over(fd));
		close(fd);
	}
}

static void the_time_to_begin_can_be_chosen(void **state)
{
	int fd;

	(void) state;
	start_with((struct vdi_rpc_server_options) { .settle_timeout = VD_SECONDS(3),
						     .idle_timeout = VD_SECONDS(7) });
	expect_cut_after(join(), VD_SECONDS(3));
	fd = join();
	say(fd, "GET / HT");
	expect_cut_after(fd, VD_SECONDS(3));
	fd = join();
	say(fd, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
	expect_cut_after(fd, VD_SECONDS(7));
	(void) stop(NULL);
}

static void a_request_has_20_s_from_its_first_byte(void **state)
{
	int fd = join();

	(void) state;
	for (int i = 0; i < 3; i++) {
		/* An idle connection has 300 s, anew after each answer. */
		say(fd, "G");
		advance(VD_SECONDS(19));
		say(fd, "ET /hello HTTP/1.1\r\nHost: x\r\n");
		assert_false(is_over(fd));
		say(fd, "\r\n");
		advance(VD_SECONDS(299));
		assert_false(is_over(fd));
	}
	say(fd, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\nGE"); /* the next one has begun */
	expect_cut_after(fd, VD_SECONDS(20));
	fd = join();
	say(fd, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
	expect_cut_after(fd, VD_SECONDS(300));
}

static void a_service_has_all_the_time_it_needs(void **state)
{
	struct vdi_rpc_http *http;
	int		     fd = join();

	(void) state;
	for (int with_body = 0; with_body < 2; with_body++) {
		say(fd, with_body ? "POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nab" :
				    "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
		if (with_body) {
			advance(VD_SECONDS(19));
			say(fd, "c");
		}
		advance(VD_SECONDS(100000));
		assert_false(is_over(fd));
		http = atomic_exchange(&held, NULL);
		assert_non_null(http);
		http->answer(http);
		take_turns();
	}
	expect_cut_after(fd, VD_SECONDS(300));
}

/* Whether the answer is there or not. */
static void a_body_that_does_not_come_is_not_waited_for(void **state)
{
	struct vdi_rpc_http *http;
	int		     fd = join();

	(void) state;
	say(fd, "POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nab");
	expect_cut_after(fd, VD_SECONDS(20));
	fd = join();
	say(fd, "POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nab");
	expect_cut_after(fd, VD_SECONDS(20));
	http = atomic_exchange(&held, NULL);
	assert_non_null(http);
	http->answer(http);
	take_turns();
}

static void an_answer_that_is_not_read_is_cut_after_60_s(void **state)
{
	int  fd = join();
	char room[4096];

	(void) state;
	say(fd, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
	advance(JUST_BEFORE(VD_SECONDS(60)));
	assert_int_equal(recv(fd, room, sizeof room, MSG_DONTWAIT), sizeof room);
	take_turns();
	advance(AN_INSTANT);
	while (recv(fd, room, sizeof room, MSG_DONTWAIT) > 0)
		;
	assert_true(is_over(fd));
	close(fd);
}

/* The other side's end is awaited for a moment, so that it gets to read all. */
static void after_the_last_answer_the_clients_end_has_half_a_second(void **state)
{
	for (int waits = 0; waits < 2; waits++) {
		int  fd = join();
		char byte = 'x';

		(void) state;
		say(fd, "GET /close HTTP/1.1\r\nHost: x\r\n\r\n");
		advance(JUST_BEFORE(VD_MS(500)));
		assert_true(is_over(fd)); /* all was said, */
		assert_int_equal(send(fd, &byte, 1, MSG_NOSIGNAL), 1);
		take_turns();
		assert_int_equal(send(fd, &byte, 1, MSG_NOSIGNAL), 1); /* and what comes is taken, */
		take_turns();
		if (waits) {
			advance(AN_INSTANT);
			(void) send(fd, &byte, 1, MSG_NOSIGNAL); /* up to here */
			take_turns();
			assert_int_equal(send(fd, &byte, 1, MSG_NOSIGNAL), -1);
		}
		close(fd);
	}
}

/* The answer that is on its way, and requests that were there before: then the connection ends by itself. */
static void a_drained_connection_ends_with_what_it_has(void **state)
{
	static const char one[] = "GET /big HTTP/1.1\r\nHost: x\r\n\r\n",
			  hello[] = "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n";

	for (int has_next = 0; has_next < 2; has_next++) {
		char	room[65536];
		ssize_t got;
		size_t	size = 0;
		int	fd;

		(void) start(state);
		fd = join();
		assert_int_equal(send(fd, one, sizeof one - 1, MSG_NOSIGNAL), sizeof one - 1);
		if (has_next)
			assert_int_equal(send(fd, hello, sizeof hello - 1, MSG_NOSIGNAL), sizeof hello - 1);
		take_turns();
		vdi_rpc_server_drain(echo.server);
		assert_int_equal(peer_hear_end(&other, NULL, 0), NGHTTP2_NO_ERROR);
		while ((got = recv(fd, room, sizeof room, 0)) > 0)
			size += (size_t) got;
		assert_int_equal(got, 0);
		assert_true(size > 32 << 20);
		close(fd);
		(void) stop(state);
	}
}

/* ---- Calls ---- */

static void a_deadline_comes_to_the_nanosecond(void **state)
{
	static const char *const five[] = { "grpc-timeout", "5S", NULL };
	struct heard		 heard;

	(void) state;
	assert_true(peer_request(&other, 1, "/test.Echo/Hang", 0, five));
	assert_true(peer_message(&other, 1, "x", NGHTTP2_FLAG_END_STREAM));
	assert_true(peer_request(&other, 3, "/test.Echo/Hang", 0, NULL));
	assert_true(peer_message(&other, 3, "x", NGHTTP2_FLAG_END_STREAM));
	take_turns();
	assert_int_equal(echo.received, 2);
	advance(JUST_BEFORE(VD_SECONDS(5)));
	assert_int_equal(echo.ended, 0);
	vdi_clock_sim_advance(&clock_sim, AN_INSTANT);
	assert_true(peer_frame(&other, NGHTTP2_PING, 0, 0, "12345678", 8));
	heard = peer_hear(&other, 1);
	assert_int_equal(heard.status, VDI_RPC_DEADLINE_EXCEEDED);
	assert_string_equal(heard.message, "context deadline exceeded");
	take_turns();
	assert_int_equal(echo.ended, 1);
	advance(VD_SECONDS(100000)); /* the one without a deadline */
	assert_int_equal(echo.ended, 1);
}

/* ---- Clients that say nothing ---- */

/* Pings when that time has passed since the last one; the server answers. */
static void ping_after(struct peer *peer, vd_dur time)
{
	struct frame frame = { 0 };

	vdi_clock_sim_advance(&clock_sim, time);
	assert_true(peer_frame(peer, NGHTTP2_PING, 0, 0, "12345678", 8));
	do {
		assert_true(peer_next(peer, &frame));
		assert_int_not_equal(frame.type, NGHTTP2_GOAWAY);
	} while (frame.type != NGHTTP2_PING || !(frame.flags & NGHTTP2_FLAG_ACK));
}

/* Every 5 s, or 30 s as kube-apiserver, they may go on without end; also without a stream. The first faster
 * ones are tolerated. */
static void e151_pings_every_5_s_are_accepted(void **state)
{
	static const int64_t	      accepted[] = { 5, 30, 86400 };
	struct vdi_rpc_server_options options = { .ping_interval_min = VD_SECONDS(5), .threads = 1 };
	struct peer		      peer;
	struct frame		      frame = { 0 };

	(void) state;
	env = hand_clock_env(&clock_sim);
	assert_status(rpc_echo_start(&echo, env, NULL, &options, NULL), VD_OK);
	for (int with_stream = 0; with_stream < 2; with_stream++) {
		peer_connect(&peer, rpc_echo_address(&echo));
		peer_begin(&peer, -1);
		if (with_stream) {
			assert_true(peer_request(&peer, 1, "/test.Echo/Hang", 0, NULL));
			assert_true(peer_message(&peer, 1, "x", NGHTTP2_FLAG_END_STREAM));
		}
		for (size_t i = 0; i < VDI_ARRAY_SIZE(accepted); i++)
			for (int j = 0; j < 20; j++)
				ping_after(&peer, VD_SECONDS(accepted[i]));
		ping_after(&peer, JUST_BEFORE(VD_SECONDS(5)));
		ping_after(&peer, JUST_BEFORE(VD_SECONDS(5)));
		ping_after(&peer, VD_SECONDS(5));
		vdi_clock_sim_advance(&clock_sim, JUST_BEFORE(VD_SECONDS(5)));
		assert_true(peer_frame(&peer, NGHTTP2_PING, 0, 0, "12345678", 8));
		do
			assert_true(peer_next(&peer, &frame));
		while (frame.type != NGHTTP2_GOAWAY);
		assert_int_equal(frame.payload[7], NGHTTP2_ENHANCE_YOUR_CALM);
		assert_memory_equal(frame.payload + 8, "too_many_pings", 14);
		peer_close(&peer);
	}
	rpc_echo_stop(&echo, env);
	env = vd_env_free(env);
	assert_int_equal(echo.accepted, echo.ended);
}

/* After etcd's two hours, and for its 20 s. */
static void e151_silent_clients_are_asked_whether_they_live(void **state)
{
	struct peer  peer;
	struct frame frame = { 0 };

	(void) state;
	start_with((struct vdi_rpc_server_options) { .keepalive_time = VD_SECONDS(7200),
						     .keepalive_timeout = VD_SECONDS(20) });
	peer_connect(&peer, rpc_echo_address(&echo));
	peer_begin(&peer, -1);
	assert_true(peer_frame(&peer, NGHTTP2_PING, 0, 0, "12345678", 8));
	do
		assert_true(peer_next(&peer, &frame));
	while (frame.type != NGHTTP2_PING || !(frame.flags & NGHTTP2_FLAG_ACK));
	take_turns();
	advance(JUST_BEFORE(VD_SECONDS(7200)));
	assert_int_equal(recv(peer.fd, &frame, 1, MSG_DONTWAIT | MSG_PEEK), -1);
	advance(AN_INSTANT);
	assert_true(peer_next(&peer, &frame));
	assert_int_equal(frame.type, NGHTTP2_PING);
	assert_int_equal(frame.flags, 0);
	take_turns();
	/* peer_next has answered it; the next one gets no answer. */
	advance(VD_SECONDS(7200));
	expect_cut_after(peer.fd, VD_SECONDS(20));
	peer.fd = -1;
	peer_close(&peer);
	(void) stop(NULL);
}

/* ---- Clients that do not read ---- */

static int64_t cut_count(void)
{
	const char *const  labels[] = { "cut" };
	struct vdi_metric *metric;
	int64_t		   value;

	assert_status(vdi_metric_get(vdi_env_metrics(env), VDI_METRIC_RPC_UNSENT_ENDS_TOTAL, labels, &metric),
		      VD_OK);
	value = vdi_metric_value(metric);
	vdi_metric_release(metric);
	return value;
}

static void ask_for(struct peer *peer, uint32_t stream, const char *size)
{
	assert_true(peer_request(peer, stream, "/test.Echo/Size", 0, NULL));
	assert_true(peer_message(peer, stream, size, NGHTTP2_FLAG_END_STREAM));
}

/* The bytes that one of its streams has been sent; -1: it was reset. */
static int64_t taken[32];

static void take_all(struct peer *peer)
{
	struct frame frame = { 0 };

	assert_true(peer_frame(peer, NGHTTP2_PING, 0, 0, "12345678", 8));
	do {
		assert_true(peer_next(peer, &frame));
		if (frame.type == NGHTTP2_RST_STREAM) {
			assert_int_equal(peer_number_of(frame.payload), NGHTTP2_ENHANCE_YOUR_CALM);
			taken[frame.stream] = -1;
		} else if (frame.type == NGHTTP2_DATA)
			taken[frame.stream] += (int64_t) frame.size;
	} while (frame.type != NGHTTP2_PING || !(frame.flags & NGHTTP2_FLAG_ACK));
}

/* So many looks, one each 100 ms; at each the streams before which it stands 64 KiB are given. */
static void look(struct peer *peer, unsigned count, uint32_t reader, uint32_t window)
{
	for (unsigned i = 0; i < count; i++) {
		advance(VD_MS(100));
		if (reader) {
			assert_true(peer_number(peer, NGHTTP2_WINDOW_UPDATE, reader, window));
			assert_true(peer_number(peer, NGHTTP2_WINDOW_UPDATE, 0, window));
			take_all(peer);
		}
	}
}

/* Above three quarters of the bound, whoever has taken less than 64 KiB in ten looks in a row goes, the
 * largest first, and no more of them than must. */
static void whoever_does_not_read_is_cut_largest_first(void **state)
{
	struct peer peer;

	(void) state;
	start_with((struct vdi_rpc_server_options) { .unsent_max = 4 << 20 });
	memset(taken, 0, sizeof taken);
	peer_connect(&peer, rpc_echo_address(&echo));
	peer_begin(&peer, 0);
	ask_for(&peer, 1, "1000000");
	ask_for(&peer, 3, "1500000");
	take_all(&peer);
	look(&peer, 50, 0, 0);
	assert_int_equal(cut_count(), 0); /* there is room */
	ask_for(&peer, 5, "700000");
	take_all(&peer);
	look(&peer, 9, 0, 0);
	assert_int_equal(cut_count(), 0);
	look(&peer, 3, 0, 0);
	assert_int_equal(cut_count(), 1);
	take_all(&peer);
	assert_int_equal(taken[3], -1);
	look(&peer, 50, 0, 0);
	assert_int_equal(cut_count(), 1);
	peer_close(&peer);
	take_turns();
	(void) stop(NULL);
}

static void whoever_reads_is_not_cut_however_slowly(void **state)
{
	struct peer peer;

	(void) state;
	start_with((struct vdi_rpc_server_options) { .unsent_max = 4 << 20 });
	memset(taken, 0, sizeof taken);
	peer_connect(&peer, rpc_echo_address(&echo));
	peer_begin(&peer, 0);
	ask_for(&peer, 1, "3200000");
	ask_for(&peer, 3, "600000");
	take_all(&peer);
	/* 64 KiB in each ten looks are enough; the other one goes, and then there is room. */
	look(&peer, 8, 1, 8192);
	assert_int_equal(cut_count(), 0);
	look(&peer, 22, 1, 8192);
	assert_int_equal(cut_count(), 1);
	assert_int_equal(taken[3], -1);
	assert_int_equal(taken[1], 30 * 8192);
	peer_close(&peer);
	take_turns();
	(void) stop(NULL);
}

/* Pressed once more after it was over: the looks begin again. */
static void it_looks_again_whenever_it_is_pressed(void **state)
{
	struct peer peer;

	(void) state;
	start_with((struct vdi_rpc_server_options) { .unsent_max = 4 << 20 });
	memset(taken, 0, sizeof taken);
	peer_connect(&peer, rpc_echo_address(&echo));
	peer_begin(&peer, 0);
	for (uint32_t round = 0; round < 3; round++) {
		ask_for(&peer, 4 * round + 1, "3500000");
		take_all(&peer);
		look(&peer, 12, 0, 0);
		assert_int_equal(cut_count(), round + 1);
		look(&peer, 5, 0, 0);
	}
	peer_close(&peer);
	take_turns();
	(void) stop(NULL);
}

/* A client that takes nothing from its socket cannot hear of the end of its call, which is ended once: others
 * that wait longer are looked at as before. */
static void a_call_is_cut_once(void **state)
{
	struct sockaddr_un	      at = { .sun_family = AF_UNIX };
	char			      folder[TEMP_FOLDER_SIZE], listen[TEMP_FOLDER_SIZE + 16];
	struct vdi_rpc_server_options options = { .threads = 1, .unsent_max = 4 << 20 };
	struct peer		      full, slow;
	int			      fd;

	(void) state;
	temp_folder_make(folder);
	snprintf(listen, sizeof listen, "unix:%s/s", folder);
	snprintf(at.sun_path, sizeof at.sun_path, "%s/s", folder);
	env = hand_clock_env(&clock_sim);
	assert_status(rpc_echo_start(&echo, env, listen, &options, NULL), VD_OK);
	for (int i = 0; i < 3; i++) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(fd, (struct sockaddr *) &at, sizeof at), 0);
		peer_attach(i == 0 ? &other : i == 1 ? &full : &slow, fd);
	}
	peer_begin(&other, -1);
	take_turns();
	memset(taken, 0, sizeof taken);
	peer_begin(&full, 1 << 30);
	assert_true(peer_number(&full, NGHTTP2_WINDOW_UPDATE, 0, 1 << 30));
	ask_for(&full, 1, "850000"); /* more than its socket takes */
	rpc_wait_for(env, &echo.accepted, 1);
	peer_begin(&slow, 0);
	ask_for(&slow, 1, "3300000");
	take_all(&slow);
	look(&slow, 25, 1, 8192);
	assert_int_equal(cut_count(), 1);
	look(&slow, 15, 1, 8192); /* still pressed, and only by one that reads */
	assert_int_equal(cut_count(), 1);
	peer_close(&full);
	peer_close(&slow);
	take_turns();
	(void) stop(NULL);
	temp_folder_remove(folder);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(whoever_does_not_begin_is_cut_after_20_s),
		TEST(whoever_ends_before_it_begins_is_not_waited_for),
		cmocka_unit_test(the_time_to_begin_can_be_chosen),
		TEST(a_request_has_20_s_from_its_first_byte),
		TEST(a_service_has_all_the_time_it_needs),
		TEST(a_body_that_does_not_come_is_not_waited_for),
		TEST(an_answer_that_is_not_read_is_cut_after_60_s),
		TEST(after_the_last_answer_the_clients_end_has_half_a_second),
		cmocka_unit_test(a_drained_connection_ends_with_what_it_has),
		TEST(a_deadline_comes_to_the_nanosecond),
		cmocka_unit_test(e151_pings_every_5_s_are_accepted),
		cmocka_unit_test(e151_silent_clients_are_asked_whether_they_live),
		cmocka_unit_test(whoever_does_not_read_is_cut_largest_first),
		cmocka_unit_test(whoever_reads_is_not_cut_however_slowly),
		cmocka_unit_test(a_call_is_cut_once),
		cmocka_unit_test(it_looks_again_whenever_it_is_pressed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
