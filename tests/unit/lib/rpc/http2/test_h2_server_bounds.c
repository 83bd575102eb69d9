/* The server against peers that take too much or say what no peer may: what each costs is bounded, and
 * nobody else notices. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "env.h"
#include "h2_peer.h"
#include "h2_served_peer.h"
#include "metrics.h"
#include "rpc_fixture.h"

/* Whoever else comes is served. */
static void h2_served_expect_service(void)
{
	struct peer  other;
	struct heard heard;

	peer_connect(&other, rpc_echo_address(&echo));
	peer_begin(&other, -1);
	assert_true(peer_request(&other, 1, "/test.Echo/Echo", 0, NULL));
	assert_true(peer_message(&other, 1, "still here", NGHTTP2_FLAG_END_STREAM));
	heard = peer_hear(&other, 1);
	assert_int_equal(heard.status, 0);
	assert_int_equal(heard.data_size, 15);
	peer_close(&other);
}

/* ---- Bounds ---- */

static void nobody_reads_a_message_that_nobody_asked_for(void **state)
{
	static const uint8_t bytes[16384];
	struct frame	     frame = { 0 };
	uint32_t	     given = 0;

	(void) state;
	assert_true(peer_request(&peer, 1, "/test.Echo/Hang", 0, NULL));
	assert_true(peer_message(&peer, 1, "x", 0));
	rpc_wait_for(env, &echo.received, 1);
	for (int i = 0; i < 3; i++)
		assert_true(peer_frame(&peer, NGHTTP2_DATA, 0, 1, bytes, sizeof bytes));
	/* The stream's window stays used; what is given back is for others of the connection. */
	assert_true(peer_frame(&peer, NGHTTP2_PING, 0, 0, "12345678", 8));
	do {
		assert_true(peer_next(&peer, &frame));
		if (frame.type == NGHTTP2_WINDOW_UPDATE && frame.stream == 1)
			given += peer_number_of(frame.payload);
	} while (!(frame.type == NGHTTP2_PING && frame.flags & NGHTTP2_FLAG_ACK));
	assert_true(given <= 6);
	h2_served_expect(h2_served_ask(3, NULL), 0, "");
	/* Whoever sends beyond it is stopped. */
	for (int i = 0; i < 3; i++)
		(void) peer_frame(&peer, NGHTTP2_DATA, 0, 1, bytes, sizeof bytes);
	(void) peer_hear(&peer, 1);
	rpc_wait_for(env, &echo.ended, 2);
	assert_int_equal(echo.cancelled, 1);
	h2_served_expect_service();
}

static int start_closed_window(void **state)
{
	struct vdi_rpc_server_options options = { .send_bytes_max = 100000 };

	(void) state;
	h2_served_start_with(&options);
	peer_begin(&peer, 0);
	return 0;
}

static void a_client_that_gives_no_window_costs_its_bound(void **state)
{
	struct heard heard;

	(void) state;
	assert_true(peer_request(&peer, 1, "/test.Echo/Count", 0, NULL));
	assert_true(peer_message(&peer, 1, "1000 10000", NGHTTP2_FLAG_END_STREAM));
	rpc_wait_for(env, &echo.fulls, 1);
	assert_int_equal(echo.sent, 10);
	/* Two messages and a half, in windows of a byte and others. */
	for (int i = 0; i < 100; i++)
		assert_true(peer_number(&peer, NGHTTP2_WINDOW_UPDATE, 1, 1));
	assert_true(peer_number(&peer, NGHTTP2_WINDOW_UPDATE, 1, 60000));
	rpc_wait_for(env, &echo.fulls, 2);
	assert_in_range(echo.sent, 15, 17);
	assert_true(peer_number(&peer, NGHTTP2_WINDOW_UPDATE, 1, 1 << 30));
	assert_true(peer_number(&peer, NGHTTP2_WINDOW_UPDATE, 0, 1 << 30));
	heard = peer_hear(&peer, 1);
	h2_served_expect(heard, 0, "");
	assert_int_equal(heard.data_size, 1000 * 10005);
}

static int start_poor(void **state)
{
	struct vdi_rpc_server_options options = { .memory_max = 400000 };

	(void) state;
	h2_served_start_with(&options);
	peer_begin(&peer, -1);
	return 0;
}

static void what_comes_in_is_bounded_over_all(void **state)
{
	static uint8_t large[16384] = { 0, 0, 1 };
	struct heard   heard;

	(void) state;
	/* Ten messages that never end, of 64 KiB each. */
	for (uint32_t i = 0; i < 10; i++) {
		assert_true(peer_request(&peer, 2 * i + 1, "/test.Echo/Echo", 0, NULL));
		for (int k = 0; k < 3; k++)
			assert_true(peer_frame(&peer, NGHTTP2_DATA, 0, 2 * i + 1, large, sizeof large));
	}
	heard = peer_hear(&peer, 19);
	h2_served_expect(heard, VDI_RPC_RESOURCE_EXHAUSTED, "out of memory");
	assert_int_equal(echo.received, 0);
	/* The last ones were not even told to the service; the first five are still there. */
	assert_in_range(echo.accepted - echo.ended, 5, 5);
	/* It comes back. */
	for (uint32_t i = 0; i < 10; i++)
		(void) peer_number(&peer, NGHTTP2_RST_STREAM, 2 * i + 1, NGHTTP2_CANCEL);
	rpc_wait_for(env, &echo.ended, echo.accepted);
	h2_served_expect(h2_served_ask(21, NULL), 0, "");
}

static int start_full(void **state)
{
	struct vdi_rpc_server_options options = { .unsent_max = 1 << 20 };

	(void) state;
	h2_served_start_with(&options);
	peer_begin(&peer, 0);
	return 0;
}

static int64_t metric_of(enum vdi_metric_id id, const char *how)
{
	const char *const  labels[] = { how };
	struct vdi_metric *metric;
	struct vdi_buffer  text;
	int64_t		   value;

	vdi_buffer_init(&text, 1 << 20);
	assert_status(vdi_metrics_render(vdi_env_metrics(env), &text), VD_OK); /* asks the collectors */
	vdi_buffer_fini(&text);
	assert_status(vdi_metric_get(vdi_env_metrics(env), id, how ? labels : NULL, &metric), VD_OK);
	value = vdi_metric_value(metric);
	vdi_metric_release(metric);
	return value;
}

/* A client asks for a lot and reads nothing: what it costs has a bound, whoever comes at the bound hears why
 * or waits, and it is cut so that others are served. */
static void what_clients_do_not_read_is_bounded_over_all(void **state)
{
	struct peer  other;
	struct frame frame;
	struct heard heard;
	int	     cut = 0;

	(void) state;
	for (uint32_t i = 0; i < 10; i++) {
		assert_true(peer_request(&peer, 2 * i + 1, "/test.Echo/Size", 0, NULL));
		assert_true(peer_message(&peer, 2 * i + 1, "100000", NGHTTP2_FLAG_END_STREAM));
	}
	for (uint32_t i = 10; i < 12; i++) {
		assert_true(peer_request(&peer, 2 * i + 1, "/test.Echo/Size", 0, NULL));
		assert_true(peer_message(&peer, 2 * i + 1, "100000", NGHTTP2_FLAG_END_STREAM));
		h2_served_expect(peer_hear(&peer, 2 * i + 1), VDI_RPC_RESOURCE_EXHAUSTED,
				 "the server has too many bytes that its clients have not read");
	}
	assert_int_equal(metric_of(VDI_METRIC_RPC_UNSENT_ENDS_TOTAL, "refused"), 2);
	assert_in_range(metric_of(VDI_METRIC_RPC_UNSENT_BYTES, NULL), 1000000, 1 << 20);
	/* What is short is answered, and a stream has its turn when there is room. */
	peer_connect(&other, rpc_echo_address(&echo));
	peer_begin(&other, 1 << 30);
	assert_true(peer_number(&other, NGHTTP2_WINDOW_UPDATE, 0, 1 << 30));
	assert_true(peer_request(&other, 1, "/test.Echo/Echo", 0, NULL));
	assert_true(peer_message(&other, 1, "short", NGHTTP2_FLAG_END_STREAM));
	h2_served_expect(peer_hear(&other, 1), 0, "");
	assert_true(peer_request(&other, 3, "/test.Echo/Count", 0, NULL));
	assert_true(peer_message(&other, 3, "50 60000", NGHTTP2_FLAG_END_STREAM));
	heard = peer_hear(&other, 3);
	h2_served_expect(heard, 0, "");
	assert_int_equal(heard.data_size, 50 * 60005);
	peer_close(&other);
	/* Those who went. */
	assert_true(peer_frame(&peer, NGHTTP2_PING, 0, 0, "12345678", 8));
	do {
		assert_true(peer_next(&peer, &frame));
		if (frame.type == NGHTTP2_RST_STREAM) {
			assert_int_equal(peer_number_of(frame.payload), NGHTTP2_ENHANCE_YOUR_CALM);
			cut++;
		}
	} while (!(frame.type == NGHTTP2_PING && frame.flags & NGHTTP2_FLAG_ACK));
	assert_in_range(metric_of(VDI_METRIC_RPC_UNSENT_ENDS_TOTAL, "cut"), 3, 10);
	assert_true(cut <=
		    metric_of(VDI_METRIC_RPC_UNSENT_ENDS_TOTAL, "cut")); /* some may have been heard before */
	assert_in_range(metric_of(VDI_METRIC_RPC_UNSENT_BYTES, NULL), 0, 800000);
	/* The rest is there for who begins to read. */
	assert_true(peer_number(&peer, NGHTTP2_WINDOW_UPDATE, 0, 1 << 30));
	for (uint32_t i = 0; i < 10; i++)
		assert_true(peer_number(&peer, NGHTTP2_WINDOW_UPDATE, 2 * i + 1, 1 << 20));
	rpc_wait_for(env, &echo.ended, echo.accepted);
	assert_int_equal(metric_of(VDI_METRIC_RPC_UNSENT_BYTES, NULL), 0);
	h2_served_expect_service();
}

/* One that is larger than all passes when nothing else waits. */
static void a_message_beyond_the_bound_passes_alone(void **state)
{
	struct heard heard;

	(void) state;
	assert_true(peer_number(&peer, NGHTTP2_WINDOW_UPDATE, 0, 1 << 30));
	assert_true(peer_request(&peer, 1, "/test.Echo/Size", 0, NULL));
	assert_true(peer_message(&peer, 1, "3000000", NGHTTP2_FLAG_END_STREAM));
	rpc_wait_for(env, &echo.accepted, 1);
	assert_true(peer_number(&peer, NGHTTP2_WINDOW_UPDATE, 1, 1 << 30));
	heard = peer_hear(&peer, 1);
	h2_served_expect(heard, 0, "");
	assert_int_equal(heard.data_size, 3000005);
}

/* ---- Hostile ones ---- */

static void rapid_resets_leave_nothing_behind(void **state)
{
	struct frame frame = { 0 };

	(void) state;
	for (uint32_t i = 1; i < 6000; i += 2)
		if (!peer_request(&peer, i, "/test.Echo/Hang", 0, NULL) ||
		    !peer_number(&peer, NGHTTP2_RST_STREAM, i, NGHTTP2_CANCEL))
			break;
	(void) peer_frame(&peer, NGHTTP2_PING, 0, 0, "12345678", 8);
	while (peer_next(&peer, &frame) && frame.type != NGHTTP2_GOAWAY && frame.type != NGHTTP2_PING)
		;
	rpc_wait_for(env, &echo.ended, echo.accepted);
	h2_served_expect_service();
}

/* All of it unread by the peer: what answers it wants are bounded, and in the end it is cut. */
static void flood(uint8_t type, const void *payload, size_t size)
{
	struct timeval patience = { .tv_sec = 300 };

	assert_int_equal(setsockopt(peer.fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience), 0);
	for (unsigned i = 0; i < 10000000; i++)
		if (!peer_frame(&peer, type, 0, 0, payload, size))
			break;
	assert_int_not_equal(errno, EAGAIN);
	h2_served_expect_service();
}

static void pings_without_end(void **state)
{
	(void) state;
	flood(NGHTTP2_PING, "12345678", 8);
}

static int start_strict(void **state)
{
	struct vdi_rpc_server_options options = { .ping_interval_min = VD_SECONDS(3600) };

	(void) state;
	h2_served_start_with(&options);
	peer_begin(&peer, -1);
	return 0;
}

/* So many at once that not even the answers are taken: the reason is. */
static void e151_a_flood_of_pings_hears_why_it_is_cut(void **state)
{
	static uint8_t pings[3000][17];
	struct frame   frame = { 0 };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(pings); i++) {
		pings[i][2] = 8;
		pings[i][3] = NGHTTP2_PING;
	}
	assert_true(peer_write(&peer, pings, sizeof pings));
	do
		assert_true(peer_next(&peer, &frame));
	while (frame.type != NGHTTP2_GOAWAY);
	assert_int_equal(frame.payload[7], NGHTTP2_ENHANCE_YOUR_CALM);
	assert_memory_equal(frame.payload + 8, "too_many_pings", 14);
	h2_served_expect_service();
}

static void settings_without_end(void **state)
{
	(void) state;
	flood(NGHTTP2_SETTINGS, "\0\4\0\0\1\0", 6);
}

static void headers_without_end(void **state)
{
	static uint8_t block[16384];
	bool	       goes_on = true;

	(void) state;
	for (size_t at = peer_put_request(block, "/test.Echo/Echo", NULL); at + 64 < sizeof block;)
		at += peer_put_header(block + at, "x-filler", "nothing but filler");
	goes_on = peer_frame(&peer, NGHTTP2_HEADERS, 0, 1, block, sizeof block - 64);
	for (int i = 0; goes_on && i < 100000; i++)
		goes_on = peer_frame(&peer, NGHTTP2_CONTINUATION, 0, 1, block + 200, 1000);
	assert_false(goes_on);
	assert_int_equal(echo.accepted, 0);
	h2_served_expect_service();
}

static void headers_that_are_too_large(void **state)
{
	uint8_t	    *block = malloc(1 << 20);
	size_t	     size = peer_put_request(block, "/test.Echo/Echo", NULL);
	struct heard heard;

	(void) state;
	assert_non_null(block);
	for (int i = 0; i < 2000; i++)
		size += peer_put_header(block + size, "x-filler",
					"fifty bytes and one of nothing in particular, and");
	assert_true(peer_frame(&peer, NGHTTP2_HEADERS, 0, 1, block, 16384));
	for (size_t at = 16384; at < size; at += 16384)
		(void) peer_frame(&peer, NGHTTP2_CONTINUATION,
				  at + 16384 >= size ? NGHTTP2_FLAG_END_HEADERS : 0, 1, block + at,
				  VDI_MIN(size - at, 16384));
	heard = peer_hear(&peer, 1);
	assert_int_not_equal(heard.status, 0);
	assert_int_equal(echo.accepted, 0);
	free(block);
	h2_served_expect_service();
}

/* A server that answers to nobody's reading keeps none of it for long. */
static void requests_without_reading_the_answers(void **state)
{
	struct timeval patience = { .tv_sec = 1 };
	uint32_t       stream = 1;

	(void) state;
	assert_int_equal(setsockopt(peer.fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience), 0);
	while (stream < 4000000 &&
	       peer_request(&peer, stream, "/other/Method", NGHTTP2_FLAG_END_STREAM, NULL))
		stream += 2;
	/* It stopped reading, or cut us; either way long before the memory that a hundred thousand answers
	 * take. */
	assert_true(stream < 4000000);
	assert_true(echo.accepted - echo.ended < 20000);
	h2_served_expect_service();
}

static void bytes_that_are_not_http2(void **state)
{
	static const char *const texts[] = {
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\rX",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 and then some more"
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(texts); i++) {
		struct peer other;

		peer_connect(&other, rpc_echo_address(&echo));
		assert_true(peer_write(&other, texts[i], strlen(texts[i])));
		while (!other.is_over) {
			other.got_used = other.got_size;
			(void) peer_fill(&other, 1);
		}
		peer_close(&other);
	}
	h2_served_expect_service();
}

/* Frames out of place, each on a connection of its own: an error of the connection or of the stream, or
 * ignored, and never more. */
static void frames_out_of_place(void **state)
{
	static const struct {
		uint8_t	    type, flags;
		uint32_t    stream;
		const char *payload;
		size_t	    size;
	} frames[] = {
		{ NGHTTP2_DATA, 0, 0, "x", 1 },
		{ NGHTTP2_DATA, 0, 7, "x", 1 },
		{ NGHTTP2_DATA, 8, 1, "\377x", 2 },
		{ NGHTTP2_HEADERS, 4, 0, "\202", 1 },
		{ NGHTTP2_HEADERS, 4, 2, "\202", 1 },
		{ NGHTTP2_HEADERS, 4, 1, "\377\377\377\377\377\377\377\377", 8 },
		{ NGHTTP2_HEADERS, 4, 1, "", 0 },
		{ NGHTTP2_PRIORITY, 0, 0, "\0\0\0\1\0", 5 },
		{ NGHTTP2_PRIORITY, 0, 3, "\0\0\0\3\0", 5 },
		{ NGHTTP2_PRIORITY, 0, 3, "\0\0", 2 },
		{ NGHTTP2_RST_STREAM, 0, 0, "\0\0\0\0", 4 },
		{ NGHTTP2_RST_STREAM, 0, 99, "\0\0\0\0", 4 },
		{ NGHTTP2_SETTINGS, 0, 1, "", 0 },
		{ NGHTTP2_SETTINGS, 0, 0, "\0\4\377\377\377\377", 6 },
		{ NGHTTP2_SETTINGS, 0, 0, "\0\5\0\0\0\1", 6 },
		{ NGHTTP2_SETTINGS, 0, 0, "\0\1\2", 3 },
		{ NGHTTP2_SETTINGS, 1, 0, "", 0 },
		{ NGHTTP2_PUSH_PROMISE, 4, 1, "\0\0\0\2\202", 5 },
		{ NGHTTP2_PING, 0, 1, "12345678", 8 },
		{ NGHTTP2_PING, 0, 0, "1234", 4 },
		{ NGHTTP2_PING, 1, 0, "12345678", 8 },
		{ NGHTTP2_GOAWAY, 0, 0, "\0\0\0\0\0\0\0\0bye", 11 },
		{ NGHTTP2_GOAWAY, 0, 0, "\0\0", 2 },
		{ NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\0", 4 },
		{ NGHTTP2_WINDOW_UPDATE, 0, 0, "\177\377\377\377", 4 },
		{ NGHTTP2_WINDOW_UPDATE, 0, 9, "\0\0\0\1", 4 },
		{ NGHTTP2_CONTINUATION, 4, 1, "\202", 1 },
		{ 0xfa, 0xff, 5, "unknown", 7 },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(frames); i++) {
		struct peer other;

		peer_connect(&other, rpc_echo_address(&echo));
		peer_begin(&other, -1);
		(void) peer_frame(&other, frames[i].type, frames[i].flags, frames[i].stream,
				  frames[i].payload, frames[i].size);
		(void) peer_frame(&other, frames[i].type, frames[i].flags, frames[i].stream,
				  frames[i].payload, frames[i].size);
		(void) shutdown(other.fd, SHUT_WR);
		(void) peer_hear_end(&other, NULL, 0);
		peer_close(&other);
	}
	h2_served_expect_service();
}

static void frames_that_are_too_long(void **state)
{
	static uint8_t bytes[20000];
	int64_t	       code;

	(void) state;
	(void) peer_frame(&peer, NGHTTP2_PING, 0, 0, bytes, sizeof bytes);
	code = peer_hear_end(&peer, NULL, 0);
	assert_true(code == NGHTTP2_FRAME_SIZE_ERROR || code == -1);
	h2_served_expect_service();
}

static void half_open_connections_keep_nobody_out(void **state)
{
	static int fds[300];

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(fds); i++) {
		struct peer other;

		peer_connect(&other, rpc_echo_address(&echo));
		nghttp2_hd_inflate_del(other.inflater);
		fds[i] = other.fd;
		if (i % 2)
			(void) !write(fds[i], "PRI * HT", 8);
	}
	h2_served_expect_service();
	for (size_t i = 0; i < VDI_ARRAY_SIZE(fds); i++)
		close(fds[i]);
}

/* The server shares our bound: whoever connects last waits until there are descriptors again. */
static void without_descriptors_arrivals_wait(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct rlimit	   before, little;
	struct peer	   other, late;
	int		   used[64], fd;
	size_t		   count = 0;

	(void) state;
	h2_served_expect_service(); /* with it everything that is opened once */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	peer_connect(&other, rpc_echo_address(&echo));
	peer_begin(&other, -1);
	assert_true(peer_request(&other, 1, "/test.Echo/Echo", 0, NULL));
	assert_true(peer_message(&other, 1, "x", NGHTTP2_FLAG_END_STREAM));
	h2_served_expect(peer_hear(&other, 1), 0, "");
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	little = before;
	little.rlim_cur = (rlim_t) fd + 2;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &little), 0);
	while (count < VDI_ARRAY_SIZE(used) && (used[count] = dup(0)) >= 0)
		count++;
	at.sin_port = htons((uint16_t) atoi(strrchr(rpc_echo_address(&echo), ':') + 1));
	assert_int_equal(connect(fd, (struct sockaddr *) &at, sizeof at), 0);
	peer_attach(&late, fd);
	peer_begin(&late, -1);
	/* Who is there is served, and by the second time the server has looked at who came. */
	for (uint32_t stream = 3; stream <= 5; stream += 2) {
		assert_true(peer_request(&other, stream, "/test.Echo/Echo", 0, NULL));
		assert_true(peer_message(&other, stream, "x", NGHTTP2_FLAG_END_STREAM));
		h2_served_expect(peer_hear(&other, stream), 0, "");
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	while (count)
		close(used[--count]);
	assert_true(peer_request(&late, 1, "/test.Echo/Echo", 0, NULL));
	assert_true(peer_message(&late, 1, "x", NGHTTP2_FLAG_END_STREAM));
	h2_served_expect(peer_hear(&late, 1), 0, "");
	peer_close(&late);
	peer_close(&other);
	h2_served_expect_service();
}

/* ---- Without memory ---- */

/* One connection with a call of each kind. Whether all went well. */
static bool try_all(void)
{
	struct peer  other;
	struct heard heard;
	bool	     is_good;

	peer_connect(&other, rpc_echo_address(&echo));
	is_good = peer_write(&other, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24) &&
		  peer_frame(&other, NGHTTP2_SETTINGS, 0, 0, NULL, 0) &&
		  peer_request(&other, 1, "/test.Echo/Echo", 0, NULL) &&
		  peer_message(&other, 1, "x", NGHTTP2_FLAG_END_STREAM) &&
		  peer_request(&other, 3, "/test.Echo/Fail", 0, NULL) &&
		  peer_message(&other, 3, "5 gone", NGHTTP2_FLAG_END_STREAM) &&
		  peer_request(&other, 5, "/test.Echo/Chat", 0, NULL) && peer_message(&other, 5, "one", 0) &&
		  peer_message(&other, 5, "two", NGHTTP2_FLAG_END_STREAM);
	for (uint32_t i = 1; i <= 5; i += 2) {
		static const int codes[] = { 0, VDI_RPC_NOT_FOUND, 0 };

		if (other.is_over)
			break;
		heard = (struct heard) { 0 };
		if (i == 1)
			heard = peer_hear(&other, 1);
		is_good = is_good && (i != 1 || heard.status == codes[i / 2]);
	}
	peer_close(&other);
	return is_good;
}

static void allocation_failures_end_a_call_or_a_connection_and_no_more(void **state)
{
	bool was_reached = true;

	(void) state;
	h2_served_expect_service();
	for (uint64_t n = 1; was_reached && n < 2000; n++) {
		uint64_t accepted;

		vdi_alloc_fail_nth(n, 1);
		(void) try_all();
		accepted = echo.accepted;
		rpc_wait_for(env, &echo.ended, accepted);
		was_reached = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
	}
	assert_false(was_reached);
	h2_served_expect_service();
}

#define WITH(test, before) cmocka_unit_test_setup_teardown(test, before, h2_served_stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(nobody_reads_a_message_that_nobody_asked_for, h2_served_start),
		WITH(a_client_that_gives_no_window_costs_its_bound, start_closed_window),
		WITH(what_comes_in_is_bounded_over_all, start_poor),
		WITH(what_clients_do_not_read_is_bounded_over_all, start_full),
		WITH(a_message_beyond_the_bound_passes_alone, start_full),
		WITH(rapid_resets_leave_nothing_behind, h2_served_start),
		WITH(pings_without_end, h2_served_start),
		WITH(e151_a_flood_of_pings_hears_why_it_is_cut, start_strict),
		WITH(settings_without_end, h2_served_start),
		WITH(headers_without_end, h2_served_start),
		WITH(headers_that_are_too_large, h2_served_start),
		WITH(requests_without_reading_the_answers, h2_served_start),
		WITH(bytes_that_are_not_http2, h2_served_start),
		WITH(frames_out_of_place, h2_served_start),
		WITH(frames_that_are_too_long, h2_served_start),
		WITH(half_open_connections_keep_nobody_out, h2_served_start),
		WITH(without_descriptors_arrivals_wait, h2_served_start),
		WITH(allocation_failures_end_a_call_or_a_connection_and_no_more, h2_served_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
