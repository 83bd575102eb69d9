/* The states of streams as RFC 9113 has them, against a peer that says each frame by itself: what a breach
 * costs, the stream or the connection, and with which code; and connections that break. */
#include <sys/socket.h>

#include "env.h"
#include "h2_peer.h"
#include "rpc_fixture.h"
#include "wait.h"

static struct peer peer;

static int start(void **state)
{
	(void) state;
	rpc_fixture_start(NULL);
	assert_status(rpc_echo_start(&echo, env, NULL, NULL, NULL), VD_OK);
	return 0;
}

static int stop(void **state)
{
	rpc_echo_stop(&echo, env);
	assert_int_equal(echo.accepted, echo.ended);
	return rpc_fixture_stop(state);
}

static void join(void)
{
	peer_connect(&peer, rpc_echo_address(&echo));
	peer_begin(&peer, -1);
}

static void expect_answer(uint32_t stream)
{
	struct heard heard;

	assert_true(peer_request(&peer, stream, "/test.Echo/Echo", 0, NULL));
	assert_true(peer_message(&peer, stream, "x", NGHTTP2_FLAG_END_STREAM));
	heard = peer_hear(&peer, stream);
	assert_int_equal(heard.status, 0);
	assert_true(heard.is_whole);
}

/* ---- States ---- */

enum before {
	NOTHING,
	OPEN,	     /* stream 1 */
	HALF_CLOSED, /* stream 1, by the peer */
	CLOSED,	     /* stream 1, by both */
	RESET,	     /* stream 1, by the peer */
	RESET_BY_US, /* stream 1, which was half closed by the server */
	SKIPPED,     /* streams 1 and 3 were not used: 5 is open */
	SKIPPED_CLOSED,
	IN_HEADERS, /* of stream 1 */
};

static void prepare(enum before before)
{
	uint8_t	     block[512];
	struct heard heard;

	switch (before) {
	case NOTHING: break;
	case OPEN: assert_true(peer_request(&peer, 1, "/test.Echo/Chat", 0, NULL)); break;
	case HALF_CLOSED:
		assert_true(peer_request(&peer, 1, "/test.Echo/Hang", 0, NULL));
		assert_true(peer_message(&peer, 1, "x", NGHTTP2_FLAG_END_STREAM));
		break;
	case CLOSED: expect_answer(1); break;
	case RESET:
		assert_true(peer_request(&peer, 1, "/test.Echo/Chat", 0, NULL));
		assert_true(peer_number(&peer, NGHTTP2_RST_STREAM, 1, NGHTTP2_CANCEL));
		break;
	case RESET_BY_US:
		assert_true(peer_request(&peer, 1, "/test.Echo/Echo", 0, NULL));
		assert_true(peer_message(&peer, 1, "x", 0));
		do
			heard = peer_hear(&peer, 1);
		while (heard.reset < 0);
		break;
	case SKIPPED: assert_true(peer_request(&peer, 5, "/test.Echo/Chat", 0, NULL)); break;
	case SKIPPED_CLOSED: expect_answer(5); break;
	case IN_HEADERS:
		assert_true(peer_frame(&peer, NGHTTP2_HEADERS, 0, 1, block,
				       peer_put_request(block, "/test.Echo/Echo", NULL)));
		break;
	}
}

struct breach {
	enum before before;
	uint8_t	    type, flags;
	uint32_t    stream;
	const char *payload;
	size_t	    size;
	int64_t	    code;
};

/* A block of one header: "x: y". */
#define FIELD "\0\1x\1y"
#define FIELD_SIZE 5
/* ":method: GET". */
#define METHOD "\202"
#define END_HEADERS NGHTTP2_FLAG_END_HEADERS
#define END (NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM)

static void send_breach(const struct breach *breach)
{
	join();
	prepare(breach->before);
	assert_true(peer_frame(&peer, breach->type, breach->flags, breach->stream, breach->payload,
			       breach->size));
}

static void a_breach_of_the_connection_ends_it_with_the_code_of_the_rfc(void **state)
{
	static const struct breach breaches[] = {
		/* 5.1.1: a number that is lower than an earlier one, whatever became of that. */
		{ SKIPPED, NGHTTP2_HEADERS, END_HEADERS, 3, METHOD, 1, NGHTTP2_PROTOCOL_ERROR },
		{ SKIPPED, NGHTTP2_HEADERS, END, 1, METHOD, 1, NGHTTP2_PROTOCOL_ERROR },
		{ SKIPPED, NGHTTP2_HEADERS, NGHTTP2_FLAG_PRIORITY | END, 1, "\0\0\0\0\0" METHOD, 6,
		  NGHTTP2_PROTOCOL_ERROR },
		{ SKIPPED, NGHTTP2_HEADERS, 0, 3, METHOD, 1, NGHTTP2_PROTOCOL_ERROR },
		{ SKIPPED_CLOSED, NGHTTP2_HEADERS, END, 3, METHOD, 1, NGHTTP2_PROTOCOL_ERROR },
		{ SKIPPED_CLOSED, NGHTTP2_HEADERS, END, 5, METHOD, 1, NGHTTP2_PROTOCOL_ERROR },
		{ CLOSED, NGHTTP2_HEADERS, END, 1, METHOD, 1, NGHTTP2_PROTOCOL_ERROR },
		{ RESET, NGHTTP2_HEADERS, END, 1, METHOD, 1, NGHTTP2_PROTOCOL_ERROR },
		/* 5.1.1: even numbers, and none. */
		{ NOTHING, NGHTTP2_HEADERS, END, 2, METHOD, 1, NGHTTP2_PROTOCOL_ERROR },
		{ SKIPPED, NGHTTP2_HEADERS, END, 2, METHOD, 1, NGHTTP2_PROTOCOL_ERROR },
		{ SKIPPED, NGHTTP2_HEADERS, END, 8, METHOD, 1, NGHTTP2_PROTOCOL_ERROR },
		{ NOTHING, NGHTTP2_HEADERS, END, 0, METHOD, 1, NGHTTP2_PROTOCOL_ERROR },
		{ SKIPPED, NGHTTP2_HEADERS, END, 0, METHOD, 1, NGHTTP2_PROTOCOL_ERROR },
		/* 5.1, idle: only HEADERS and PRIORITY. */
		{ NOTHING, NGHTTP2_DATA, 0, 7, "x", 1, NGHTTP2_PROTOCOL_ERROR },
		{ SKIPPED, NGHTTP2_DATA, 0, 7, "x", 1, NGHTTP2_PROTOCOL_ERROR },
		{ SKIPPED, NGHTTP2_DATA, 0, 2, "x", 1, NGHTTP2_PROTOCOL_ERROR },
		{ NOTHING, NGHTTP2_WINDOW_UPDATE, 0, 9, "\0\0\0\1", 4, NGHTTP2_PROTOCOL_ERROR },
		{ NOTHING, NGHTTP2_RST_STREAM, 0, 99, "\0\0\0\0", 4, NGHTTP2_PROTOCOL_ERROR },
		/* 5.1, half-closed by the peer: neither HEADERS nor DATA. */
		{ HALF_CLOSED, NGHTTP2_HEADERS, END, 1, FIELD, FIELD_SIZE, NGHTTP2_STREAM_CLOSED },
		{ HALF_CLOSED, NGHTTP2_DATA, 0, 1, "x", 1, NGHTTP2_STREAM_CLOSED },
		/* 6: frames of the connection on a stream, those of streams on the connection. */
		{ NOTHING, NGHTTP2_DATA, 0, 0, "x", 1, NGHTTP2_PROTOCOL_ERROR },
		{ NOTHING, NGHTTP2_RST_STREAM, 0, 0, "\0\0\0\0", 4, NGHTTP2_PROTOCOL_ERROR },
		{ OPEN, NGHTTP2_SETTINGS, 0, 1, "", 0, NGHTTP2_PROTOCOL_ERROR },
		{ OPEN, NGHTTP2_PING, 0, 1, "12345678", 8, NGHTTP2_PROTOCOL_ERROR },
		{ OPEN, NGHTTP2_GOAWAY, 0, 1, "\0\0\0\0\0\0\0\0", 8, NGHTTP2_PROTOCOL_ERROR },
		/* 6.6: clients do not push. */
		{ OPEN, NGHTTP2_PUSH_PROMISE, END_HEADERS, 1, "\0\0\0\2" METHOD, 5, NGHTTP2_PROTOCOL_ERROR },
		/* 6.10: CONTINUATION only behind HEADERS, and nothing else there. */
		{ NOTHING, NGHTTP2_CONTINUATION, END_HEADERS, 1, METHOD, 1, NGHTTP2_PROTOCOL_ERROR },
		{ OPEN, NGHTTP2_CONTINUATION, END_HEADERS, 1, METHOD, 1, NGHTTP2_PROTOCOL_ERROR },
		{ IN_HEADERS, NGHTTP2_CONTINUATION, END_HEADERS, 3, METHOD, 1, NGHTTP2_PROTOCOL_ERROR },
		{ IN_HEADERS, NGHTTP2_DATA, 0, 1, "x", 1, NGHTTP2_PROTOCOL_ERROR },
		{ IN_HEADERS, NGHTTP2_PING, 0, 0, "12345678", 8, NGHTTP2_PROTOCOL_ERROR },
		/* 4.3: a block that does not decode, also of a stream that is refused. */
		{ NOTHING, NGHTTP2_HEADERS, END, 1, "\377\377\377\377\377\377\377\377", 8,
		  NGHTTP2_COMPRESSION_ERROR },
		/* 6.9, 6.5.2: windows. */
		{ NOTHING, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\0", 4, NGHTTP2_PROTOCOL_ERROR },
		{ NOTHING, NGHTTP2_WINDOW_UPDATE, 0, 0, "\177\377\377\377", 4, NGHTTP2_FLOW_CONTROL_ERROR },
		{ NOTHING, NGHTTP2_SETTINGS, 0, 0, "\0\4\377\377\377\377", 6, NGHTTP2_FLOW_CONTROL_ERROR },
		/* 6.5.2, 4.2: values and sizes. */
		{ NOTHING, NGHTTP2_SETTINGS, 0, 0, "\0\5\0\0\0\1", 6, NGHTTP2_PROTOCOL_ERROR },
		{ NOTHING, NGHTTP2_SETTINGS, 0, 0, "\0\2\0\0\0\2", 6, NGHTTP2_PROTOCOL_ERROR },
		{ NOTHING, NGHTTP2_SETTINGS, 0, 0, "\0\1\2", 3, NGHTTP2_FRAME_SIZE_ERROR },
		{ NOTHING, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, "\0\4\0\0\1\0", 6,
		  NGHTTP2_FRAME_SIZE_ERROR },
		{ NOTHING, NGHTTP2_PING, 0, 0, "1234", 4, NGHTTP2_FRAME_SIZE_ERROR },
		{ OPEN, NGHTTP2_RST_STREAM, 0, 1, "\0\0", 2, NGHTTP2_FRAME_SIZE_ERROR },
		/* 6.1: more padding than there is. */
		{ OPEN, NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, 1, "\377x", 2, NGHTTP2_PROTOCOL_ERROR },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(breaches); i++) {
		int64_t code;

		send_breach(&breaches[i]);
		assert_int_equal(shutdown(peer.fd, SHUT_WR), 0); /* so that it ends in any case */
		code = peer_hear_end(&peer, NULL, 0);
		if (code != breaches[i].code)
			fail_msg("breach %zu ends the connection with %" PRId64 ", not %" PRId64, i, code,
				 breaches[i].code);
		peer_close(&peer);
	}
	join();
	expect_answer(1);
	peer_close(&peer);
}

/* nghttp2 takes malformed headers as an error of the stream, since 1.65 of the connection. Either is right;
 * others are served on. */
static void a_breach_of_a_stream_ends_no_more_than_its_connection(void **state)
{
	static const struct breach breaches[] = {
		{ OPEN, NGHTTP2_HEADERS, END_HEADERS, 1, FIELD, FIELD_SIZE,
		  NGHTTP2_PROTOCOL_ERROR }, /* trailers that are not the end */
		{ OPEN, NGHTTP2_HEADERS, END, 1, METHOD, 1,
		  NGHTTP2_PROTOCOL_ERROR }, /* with a pseudo-header */
		{ OPEN, NGHTTP2_WINDOW_UPDATE, 0, 1, "\177\377\377\377", 4, NGHTTP2_FLOW_CONTROL_ERROR },
		{ NOTHING, NGHTTP2_HEADERS, END, 1, "", 0,
		  NGHTTP2_PROTOCOL_ERROR }, /* a request without a method */
		{ SKIPPED, NGHTTP2_HEADERS, END, 7, "\0\1X\1y", FIELD_SIZE,
		  NGHTTP2_PROTOCOL_ERROR }, /* a name in capitals */
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(breaches); i++) {
		struct frame frame = { 0 };
		int64_t	     code = -1;

		send_breach(&breaches[i]);
		while (code < 0 && peer_next(&peer, &frame)) {
			if (frame.type == NGHTTP2_RST_STREAM && frame.stream == breaches[i].stream)
				code = peer_number_of(frame.payload);
			else if (frame.type == NGHTTP2_GOAWAY)
				code = peer_number_of(frame.payload + 4);
		}
		if (code != breaches[i].code)
			fail_msg("breach %zu ends with %" PRId64 ", not %" PRId64, i, code, breaches[i].code);
		peer_close(&peer);
		join();
		expect_answer(1);
		peer_close(&peer);
	}
}

/* Frames that crossed ours, or say nothing. */
static void what_may_come_late_is_ignored(void **state)
{
	static const struct breach late[] = {
		{ RESET_BY_US, NGHTTP2_HEADERS, END, 1, FIELD, FIELD_SIZE, 0 },
		{ RESET_BY_US, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, "x", 1, 0 },
		{ RESET_BY_US, NGHTTP2_WINDOW_UPDATE, 0, 1, "\0\0\0\1", 4, 0 },
		{ RESET_BY_US, NGHTTP2_RST_STREAM, 0, 1, "\0\0\0\0", 4, 0 },
		{ CLOSED, NGHTTP2_WINDOW_UPDATE, 0, 1, "\0\0\0\1", 4, 0 },
		{ CLOSED, NGHTTP2_RST_STREAM, 0, 1, "\0\0\0\0", 4, 0 },
		{ SKIPPED, NGHTTP2_PRIORITY, 0, 3, "\0\0\0\1\0", 5, 0 },
		{ SKIPPED, NGHTTP2_PRIORITY, 0, 7, "\0\0\0\5\0", 5, 0 },
		{ NOTHING, 0xfa, 0xff, 5, "unknown", 7, 0 },
		{ NOTHING, NGHTTP2_SETTINGS, 0, 0, "\377\377\0\0\0\1", 6, 0 },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(late); i++) {
		send_breach(&late[i]);
		expect_answer(9);
		expect_answer(15);
		peer_close(&peer);
	}
}

static void settings_come_first(void **state)
{
	(void) state;
	peer_connect(&peer, rpc_echo_address(&echo));
	assert_true(peer_write(&peer, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN));
	assert_true(peer_request(&peer, 1, "/test.Echo/Echo", 0, NULL));
	assert_int_equal(peer_hear_end(&peer, NULL, 0), NGHTTP2_PROTOCOL_ERROR);
	peer_close(&peer);
	assert_int_equal(echo.accepted, 0);
}

/* It was accepted before the server began to drain, and its settings come afterwards. */
static void a_connection_that_is_ready_late_hears_of_the_draining(void **state)
{
	(void) state;
	peer_connect(&peer, rpc_echo_address(&echo));
	assert_true(peer_write(&peer, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN));
	assert_true(peer_fill(&peer, 9)); /* its own; not answered yet */
	vdi_rpc_server_drain(echo.server);
	assert_true(peer_frame(&peer, NGHTTP2_SETTINGS, 0, 0, NULL, 0));
	assert_int_equal(peer_hear_end(&peer, NULL, 0), NGHTTP2_NO_ERROR);
	peer_close(&peer);
}

/* ---- Ends ---- */

/* Streams of all states, as a deep tree of priorities: each of their calls ends once, with any version of
 * nghttp2. */
static void a_connection_that_breaks_ends_all_of_its_calls(void **state)
{
	static const char *const paths[] = { "/test.Echo/Hang", "/test.Echo/Chat", "/test.Echo/Echo" };
	const struct linger	 at_once = { .l_onoff = 1, .l_linger = 0 };
	uint64_t		 accepted = 0;

	(void) state;
	for (int round = 0; round < 2; round++) {
		join();
		for (uint32_t i = 0; i < 60; i++) {
			uint8_t block[512] = { 0 };
			size_t	size;

			block[3] = i ? (uint8_t) (2 * i - 1) : 0; /* the stream before is the parent */
			size = 5 + peer_put_request(block + 5, paths[i % 3], NULL);
			assert_true(peer_frame(&peer, NGHTTP2_HEADERS, NGHTTP2_FLAG_PRIORITY | END_HEADERS,
					       2 * i + 1, block, size));
			if (i % 2)
				assert_true(peer_message(&peer, 2 * i + 1, "x",
							 i % 3 == 0 ? NGHTTP2_FLAG_END_STREAM : 0));
		}
		accepted += 60;
		rpc_wait_for(env, &echo.accepted, accepted);
		if (round == 1)
			assert_int_equal(setsockopt(peer.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once),
					 0);
		peer_close(&peer);
		rpc_wait_for(env, &echo.ended, accepted);
	}
	join();
	expect_answer(1);
	peer_close(&peer);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_breach_of_the_connection_ends_it_with_the_code_of_the_rfc),
		TEST(a_breach_of_a_stream_ends_no_more_than_its_connection),
		TEST(what_may_come_late_is_ignored),
		TEST(settings_come_first),
		TEST(a_connection_that_is_ready_late_hears_of_the_draining),
		TEST(a_connection_that_breaks_ends_all_of_its_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
