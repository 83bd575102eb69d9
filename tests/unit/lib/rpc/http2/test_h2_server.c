/* The server against a peer that says each frame by itself: requests, messages, and how calls end. */
#include <sys/socket.h>

#include "h2_peer.h"
#include "h2_served_peer.h"
#include "rpc_fixture.h"
#include "wait.h"

/* ---- What stands on the wire ---- */

static void an_answer_is_headers_data_and_trailers(void **state)
{
	struct heard heard;

	(void) state;
	assert_true(peer_request(&peer, 1, "/test.Echo/Echo", 0, NULL));
	assert_true(peer_message(&peer, 1, "hello", NGHTTP2_FLAG_END_STREAM));
	heard = peer_hear(&peer, 1);
	h2_served_expect(heard, 0, "");
	assert_string_equal(heard.http_status, "200");
	assert_string_equal(heard.type, "application/grpc");
	assert_int_equal(heard.header_frames, 2);
	assert_int_equal(heard.data_size, 10);
	assert_memory_equal(heard.data, "\0\0\0\0\5hello", 10);
}

static void an_error_without_a_message_is_trailers_only(void **state)
{
	struct heard heard;

	(void) state;
	assert_true(peer_request(&peer, 1, "/other/Method", NGHTTP2_FLAG_END_STREAM, NULL));
	heard = peer_hear(&peer, 1);
	h2_served_expect(heard, VDI_RPC_UNIMPLEMENTED, "unknown method");
	assert_int_equal(heard.header_frames, 1);
	assert_string_equal(heard.http_status, "200");
}

static void words_of_a_status_are_percent_encoded(void **state)
{
	(void) state;
	assert_true(peer_request(&peer, 1, "/test.Echo/Fail", 0, NULL));
	assert_true(peer_message(&peer, 1, "3 50% of\n\xc3\xa4 ~", NGHTTP2_FLAG_END_STREAM));
	h2_served_expect(peer_hear(&peer, 1), VDI_RPC_INVALID_ARGUMENT, "50%25 of%0A%C3%A4 ~");
	assert_true(peer_request(&peer, 3, "/test.Echo/Fail", 0, NULL));
	assert_true(peer_message(&peer, 3, "3 ", NGHTTP2_FLAG_END_STREAM));
	h2_served_expect(peer_hear(&peer, 3), VDI_RPC_INVALID_ARGUMENT, "");
}

static void streams_hear_headers_before_anything_is_sent(void **state)
{
	struct frame frame = { 0 };

	(void) state;
	assert_true(peer_request(&peer, 1, "/test.Echo/Chat", 0, NULL));
	do
		assert_true(peer_next(&peer, &frame));
	while (frame.stream != 1);
	assert_int_equal(frame.type, NGHTTP2_HEADERS);
	assert_false(frame.flags & NGHTTP2_FLAG_END_STREAM);
}

/* ---- Requests of all kinds ---- */

static void requests_that_are_no_calls_are_refused_as_grpc_go_does(void **state)
{
	static const char *const get[] = { ":method", "GET", NULL };
	static const char *const type[] = { "content-type", "text/html", NULL };
	static const char *const alike[] = { "content-type", "application/grpcx", NULL };
	static const char *const none[] = { "content-type", "", NULL };
	static const char *const late[] = { "grpc-timeout", "12", NULL };
	static const char *const unit[] = { "grpc-timeout", "123456789S", NULL };
	static const char *const gzip[] = { "grpc-encoding", "gzip", NULL };
	struct heard		 heard;

	(void) state;
	heard = h2_served_ask(1, get);
	h2_served_expect(heard, VDI_RPC_INTERNAL,
			 "Received a HEADERS frame with :method \"GET\" which should be POST");
	assert_string_equal(heard.http_status, "405");
	heard = h2_served_ask(3, type);
	h2_served_expect(heard, VDI_RPC_INVALID_ARGUMENT, "invalid gRPC request content-type \"text/html\"");
	assert_string_equal(heard.http_status, "415");
	assert_string_equal(h2_served_ask(5, alike).http_status, "415");
	assert_string_equal(h2_served_ask(7, none).http_status, "415");
	heard = h2_served_ask(9, late);
	h2_served_expect(heard, VDI_RPC_INTERNAL, "malformed grpc-timeout: 12");
	assert_string_equal(heard.http_status, "400");
	assert_string_equal(h2_served_ask(11, unit).http_status, "400");
	heard = h2_served_ask(13, gzip);
	h2_served_expect(heard, VDI_RPC_UNIMPLEMENTED,
			 "grpc: Decompressor is not installed for grpc-encoding \"gzip\"");
	assert_string_equal(heard.http_status, "200");
	assert_int_equal(echo.accepted, 0);
}

static void requests_that_are_calls(void **state)
{
	static const char *const variants[][7] = {
		{ "content-type", "application/grpc+proto", NULL },
		{ "content-type", "application/grpc;charset=utf-8", NULL },
		{ "te", "", NULL },
		{ "grpc-encoding", "identity", NULL },
		{ "grpc-timeout", "99999999H", NULL },
		{ "x-unknown", "1", "x-other-bin", "AAE", NULL },
	};

	(void) state;
	for (uint32_t i = 0; i < VDI_ARRAY_SIZE(variants); i++)
		h2_served_expect(h2_served_ask(2 * i + 1, variants[i]), 0, "");
}

static void metadata_reaches_the_service(void **state)
{
	static const char *const first[] = { "x-test", "one", "x-test", "two", NULL };
	char			 many[40][16];
	const char		*extra[2 * 40 + 3];
	struct heard		 heard;

	(void) state;
	assert_true(peer_request(&peer, 1, "/test.Echo/Meta", 0, first));
	assert_true(peer_message(&peer, 1, "x", NGHTTP2_FLAG_END_STREAM));
	heard = peer_hear(&peer, 1);
	assert_memory_equal(heard.data, "\0\0\0\0\3one", 8);
	/* More than has room in the call itself. */
	for (int i = 0; i < 40; i++) {
		snprintf(many[i], sizeof many[i], "x-number-%d", i);
		extra[2 * i] = many[i];
		extra[2 * i + 1] = "a value that takes some room";
	}
	extra[80] = "x-test";
	extra[81] = "behind";
	extra[82] = NULL;
	assert_true(peer_request(&peer, 3, "/test.Echo/Meta", 0, extra));
	assert_true(peer_message(&peer, 3, "x", NGHTTP2_FLAG_END_STREAM));
	heard = peer_hear(&peer, 3);
	assert_memory_equal(heard.data, "\0\0\0\0\6behind", 11);
	/* The method itself is none. */
	assert_true(peer_request(&peer, 5, "/test.Echo/Meta", 0, NULL));
	assert_true(peer_message(&peer, 5, "x", NGHTTP2_FLAG_END_STREAM));
	heard = peer_hear(&peer, 5);
	assert_memory_equal(heard.data, "\0\0\0\0\4none", 9);
}

static void headers_may_come_in_pieces(void **state)
{
	uint8_t block[512];
	size_t	size = peer_put_request(block, "/test.Echo/Echo", NULL);

	(void) state;
	assert_true(peer_frame(&peer, NGHTTP2_HEADERS, 0, 1, block, 10));
	assert_true(peer_frame(&peer, NGHTTP2_CONTINUATION, 0, 1, block + 10, 10));
	assert_true(
		peer_frame(&peer, NGHTTP2_CONTINUATION, NGHTTP2_FLAG_END_HEADERS, 1, block + 20, size - 20));
	assert_true(peer_message(&peer, 1, "x", NGHTTP2_FLAG_END_STREAM));
	h2_served_expect(peer_hear(&peer, 1), 0, "");
}

static void trailers_of_a_client_say_nothing(void **state)
{
	uint8_t block[64];
	size_t	size = peer_put_header(block, "x-test", "late");

	(void) state;
	assert_true(peer_request(&peer, 1, "/test.Echo/Meta", 0, NULL));
	assert_true(peer_message(&peer, 1, "x", 0));
	assert_true(peer_frame(&peer, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 1,
			       block, size));
	assert_memory_equal(peer_hear(&peer, 1).data, "\0\0\0\0\4none", 9);
}

/* ---- Messages ---- */

static void messages_come_in_any_pieces(void **state)
{
	static const uint8_t two[] = { 0, 0, 0, 0, 3, 'o', 'n', 'e', 0, 0, 0, 0, 3, 't', 'w', 'o' };
	static const uint8_t small[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
	struct heard	     heard;

	(void) state;
	assert_true(peer_request(&peer, 1, "/test.Echo/Chat", 0, NULL));
	for (size_t i = 0; i < sizeof two; i++)
		assert_true(peer_frame(&peer, NGHTTP2_DATA, 0, 1, two + i, 1));
	assert_true(peer_frame(&peer, NGHTTP2_DATA, 0, 1, two, sizeof two));
	assert_true(peer_frame(&peer, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, NULL, 0));
	heard = peer_hear(&peer, 1);
	h2_served_expect(heard, 0, "");
	assert_int_equal(heard.data_size, 4 * 12);
	assert_memory_equal(heard.data + 36, "\0\0\0\0\7re: two", 12);
	/* Messages without a byte. */
	assert_true(peer_request(&peer, 3, "/test.Echo/Chat", 0, NULL));
	assert_true(peer_frame(&peer, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 3, small, sizeof small));
	heard = peer_hear(&peer, 3);
	h2_served_expect(heard, 0, "");
	assert_int_equal(heard.data_size, 2 * 9);
}

static void a_stream_that_ends_within_a_message(void **state)
{
	static const uint8_t torn[] = { 0, 0, 0, 0, 3, 'o' };

	(void) state;
	for (uint32_t size = 1; size <= sizeof torn; size++) {
		assert_true(peer_request(&peer, 2 * size - 1, "/test.Echo/Echo", 0, NULL));
		assert_true(
			peer_frame(&peer, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 2 * size - 1, torn, size));
		h2_served_expect(peer_hear(&peer, 2 * size - 1), VDI_RPC_INTERNAL, "unexpected EOF");
	}
	assert_int_equal(echo.received, 0);
}

static void a_message_that_says_it_is_compressed(void **state)
{
	static const uint8_t zipped[] = { 1, 0, 0, 0, 1, 'x' };

	(void) state;
	assert_true(peer_request(&peer, 1, "/test.Echo/Echo", 0, NULL));
	assert_true(peer_frame(&peer, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, zipped, sizeof zipped));
	h2_served_expect(peer_hear(&peer, 1), VDI_RPC_INTERNAL,
			 "grpc: compressed flag set with identity or empty encoding");
}

static int start_small(void **state)
{
	struct vdi_rpc_server_options options = { .receive_size_max = 100 };

	(void) state;
	h2_served_start_with(&options);
	peer_begin(&peer, -1);
	return 0;
}

/* By what it says of itself, before its bytes come; and the client is told to stop sending. rules: E-465 */
static void e134_a_message_that_is_too_large_is_refused_at_its_size(void **state)
{
	static const uint8_t prefix[] = { 0, 0, 0, 0, 101 };
	static const uint8_t huge[] = { 0, 255, 255, 255, 255 };
	uint8_t		     allowed[105] = { 0, 0, 0, 0, 100 };
	struct frame	     frame = { 0 };

	(void) state;
	assert_true(peer_request(&peer, 1, "/test.Echo/Echo", 0, NULL));
	assert_true(peer_frame(&peer, NGHTTP2_DATA, 0, 1, prefix, sizeof prefix));
	h2_served_expect(peer_hear(&peer, 1), VDI_RPC_RESOURCE_EXHAUSTED,
			 "grpc: received message larger than max (101 vs. 100)");
	do
		assert_true(peer_next(&peer, &frame));
	while (frame.stream != 1);
	assert_int_equal(frame.type, NGHTTP2_RST_STREAM);
	assert_int_equal(peer_number_of(frame.payload), NGHTTP2_NO_ERROR);
	assert_true(peer_request(&peer, 3, "/test.Echo/Echo", 0, NULL));
	assert_true(peer_frame(&peer, NGHTTP2_DATA, 0, 3, huge, sizeof huge));
	h2_served_expect(peer_hear(&peer, 3), VDI_RPC_RESOURCE_EXHAUSTED,
			 "grpc: received message larger than max (4294967295 vs. 100)");
	assert_true(peer_request(&peer, 5, "/test.Echo/Echo", 0, NULL));
	assert_true(peer_frame(&peer, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 5, allowed, sizeof allowed));
	h2_served_expect(peer_hear(&peer, 5), 0, "");
}

/* ---- Ends ---- */

static void a_deadline_ends_the_call(void **state)
{
	static const char *const soon[] = { "grpc-timeout", "1m", NULL };
	struct heard		 heard;

	(void) state;
	assert_true(peer_request(&peer, 1, "/test.Echo/Hang", 0, soon));
	assert_true(peer_message(&peer, 1, "x", NGHTTP2_FLAG_END_STREAM));
	h2_served_expect(peer_hear(&peer, 1), VDI_RPC_DEADLINE_EXCEEDED, "context deadline exceeded");
	rpc_wait_for(env, &echo.ended, 1);
	assert_int_equal(echo.cancelled, 1);
	/* One that does not read, in the middle of a message. */
	assert_true(peer_request(&peer, 3, "/test.Echo/Size", 0, soon));
	assert_true(peer_message(&peer, 3, "1000000", NGHTTP2_FLAG_END_STREAM));
	heard = peer_hear(&peer, 3);
	if (heard.status != VDI_RPC_DEADLINE_EXCEEDED)
		assert_int_equal(heard.reset, NGHTTP2_CANCEL);
	rpc_wait_for(env, &echo.ended, 2);
}

/* No time at all is a deadline, not none. */
static void a_deadline_of_nothing_has_passed(void **state)
{
	static const char *const texts[] = { "0n", "0S", "00000000H", "1n" };

	(void) state;
	for (uint32_t i = 0; i < VDI_ARRAY_SIZE(texts); i++) {
		const char *const extra[] = { "grpc-timeout", texts[i], NULL };

		assert_true(peer_request(&peer, 2 * i + 1, "/test.Echo/Hang", 0, extra));
		assert_true(peer_message(&peer, 2 * i + 1, "x", NGHTTP2_FLAG_END_STREAM));
		h2_served_expect(peer_hear(&peer, 2 * i + 1), VDI_RPC_DEADLINE_EXCEEDED,
				 "context deadline exceeded");
		rpc_wait_for(env, &echo.ended, i + 1);
	}
}

static void a_reset_ends_the_call(void **state)
{
	(void) state;
	assert_true(peer_request(&peer, 1, "/test.Echo/Hang", 0, NULL));
	assert_true(peer_message(&peer, 1, "x", 0));
	rpc_wait_for(env, &echo.received, 1);
	assert_true(peer_number(&peer, NGHTTP2_RST_STREAM, 1, NGHTTP2_CANCEL));
	rpc_wait_for(env, &echo.ended, 1);
	assert_int_equal(echo.cancelled, 1);
	h2_served_expect(h2_served_ask(3, NULL), 0, "");
}

static void the_end_of_the_connection_ends_its_calls(void **state)
{
	(void) state;
	for (uint32_t i = 1; i < 20; i += 2)
		assert_true(
			peer_request(&peer, i, i % 4 == 1 ? "/test.Echo/Chat" : "/test.Echo/Hang", 0, NULL));
	rpc_wait_for(env, &echo.accepted, 10);
	assert_int_equal(shutdown(peer.fd, SHUT_WR), 0);
	rpc_wait_for(env, &echo.ended, 10);
	assert_int_equal(echo.cancelled, 10);
}

/* The client has to hear that nobody reads on; trailers alone would leave it sending. */
static void a_status_before_the_client_has_ended_comes_with_a_reset(void **state)
{
	struct frame frame = { 0 };

	(void) state;
	assert_true(peer_request(&peer, 1, "/test.Echo/Echo", 0, NULL));
	assert_true(peer_message(&peer, 1, "x", 0));
	h2_served_expect(peer_hear(&peer, 1), 0, "");
	do
		assert_true(peer_next(&peer, &frame));
	while (frame.stream != 1);
	assert_int_equal(frame.type, NGHTTP2_RST_STREAM);
	assert_int_equal(peer_number_of(frame.payload), NGHTTP2_NO_ERROR);
	rpc_wait_for(env, &echo.ended, 1);
	assert_int_equal(echo.cancelled, 0);
	/* What was on its way is no error. */
	assert_true(peer_message(&peer, 1, "more", 0));
	h2_served_expect(h2_served_ask(3, NULL), 0, "");
}

/* Frames until GOAWAY, of which the last stream is told. */
static uint32_t hear_goaway(void)
{
	struct frame frame = { 0 };

	do
		assert_true(peer_next(&peer, &frame));
	while (frame.type != NGHTTP2_GOAWAY);
	assert_int_equal(peer_number_of(frame.payload + 4), NGHTTP2_NO_ERROR);
	return peer_number_of(frame.payload);
}

static void draining_lets_finish_what_was_opened_before_it_is_known(void **state)
{
	(void) state;
	assert_true(peer_request(&peer, 1, "/test.Echo/Chat", 0, NULL));
	rpc_wait_for(env, &echo.accepted, 1);
	vdi_rpc_server_drain(echo.server);
	assert_int_equal(hear_goaway(), 0x7fffffff);
	/* In the time before we could know; and the answer to the ping goes out when it is read. */
	assert_true(peer_request(&peer, 3, "/test.Echo/Echo", 0, NULL));
	assert_true(peer_message(&peer, 3, "x", NGHTTP2_FLAG_END_STREAM));
	assert_int_equal(hear_goaway(), 3);
	rpc_wait_for(env, &echo.ended, 1);
	/* Too late. */
	assert_true(peer_request(&peer, 5, "/test.Echo/Echo", NGHTTP2_FLAG_END_STREAM, NULL));
	/* What runs goes on, and the connection ends with it. */
	assert_true(peer_message(&peer, 1, "on", NGHTTP2_FLAG_END_STREAM));
	assert_int_equal(peer_hear_end(&peer, NULL, 0), -1);
	rpc_wait_for(env, &echo.ended, 2);
	assert_int_equal(echo.accepted, 2);
	assert_int_equal(echo.cancelled, 0);
}

static void closing_tells_what_runs(void **state)
{
	struct vdi_wait wait;
	struct heard	heard;

	(void) state;
	assert_true(peer_request(&peer, 1, "/test.Echo/Chat", 0, NULL));
	assert_true(peer_request(&peer, 3, "/test.Echo/Hang", 0, NULL));
	assert_true(peer_message(&peer, 3, "x", NGHTTP2_FLAG_END_STREAM));
	rpc_wait_for(env, &echo.received, 1);
	vdi_wait_init(&wait, env);
	vdi_rpc_server_close(echo.server, vdi_wait_signal_arg, &wait);
	heard = peer_hear(&peer, 1);
	h2_served_expect(heard, VDI_RPC_UNAVAILABLE, "the server is closing");
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	assert_int_equal(echo.accepted, 2);
	assert_int_equal(echo.ended, 2);
	assert_status(rpc_echo_start(&echo, env, NULL, NULL, NULL), VD_OK); /* for stop */
}

/* ---- Without memory ---- */

#define WITH(test, before) cmocka_unit_test_setup_teardown(test, before, h2_served_stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(an_answer_is_headers_data_and_trailers, h2_served_start),
		WITH(an_error_without_a_message_is_trailers_only, h2_served_start),
		WITH(words_of_a_status_are_percent_encoded, h2_served_start),
		WITH(streams_hear_headers_before_anything_is_sent, h2_served_start),
		WITH(requests_that_are_no_calls_are_refused_as_grpc_go_does, h2_served_start),
		WITH(requests_that_are_calls, h2_served_start),
		WITH(metadata_reaches_the_service, h2_served_start),
		WITH(headers_may_come_in_pieces, h2_served_start),
		WITH(trailers_of_a_client_say_nothing, h2_served_start),
		WITH(messages_come_in_any_pieces, h2_served_start),
		WITH(a_stream_that_ends_within_a_message, h2_served_start),
		WITH(a_message_that_says_it_is_compressed, h2_served_start),
		WITH(e134_a_message_that_is_too_large_is_refused_at_its_size, start_small),
		WITH(a_deadline_ends_the_call, h2_served_start),
		WITH(a_deadline_of_nothing_has_passed, h2_served_start),
		WITH(a_reset_ends_the_call, h2_served_start),
		WITH(the_end_of_the_connection_ends_its_calls, h2_served_start),
		WITH(a_status_before_the_client_has_ended_comes_with_a_reset, h2_served_start),
		WITH(draining_lets_finish_what_was_opened_before_it_is_known, h2_served_start),
		WITH(closing_tells_what_runs, h2_served_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
