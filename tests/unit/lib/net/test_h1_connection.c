/* HTTP/1.x on the port of remote calls, byte by byte, beside calls that go on; and plain HTTP over HTTP/2,
 * where TLS agreed on it. */
#include <sys/socket.h>
#include <unistd.h>

#include "h1_connection.h"
#include "h1_peer.h"
#include "h2_peer.h"
#include "lock.h"
#include "rpc_fixture.h"

/* ---- What it is, by its first bytes ---- */

static void first_lines_are_told_apart(void **state)
{
	static const struct {
		const char *text;
		vd_status   status;
	} lines[] = {
		{ "GET / HTTP/1.1\r\n", VD_OK },
		{ "GET / HTTP/1.0\n", VD_OK },
		{ "get /x HTTP/1.7\r", VD_OK },
		{ "PRI * HTTP/1.1\r\n", VD_OK },
		{ "M-SEARCH * HTTP/1.1\r\n", VD_OK },
		{ "GET \xff HTTP/1.1\r\n", VD_OK },
		{ "GET / HTTP/2.0\r\n", VD_BAD_REQUEST },
		{ "GET /\r\n", VD_BAD_REQUEST },
		{ "hello\r\n", VD_BAD_REQUEST },
		{ "GET  / HTTP/1.1\r\n", VD_BAD_REQUEST },
		{ " / HTTP/1.1\r\n", VD_BAD_REQUEST },
		{ "GET / x HTTP/1.1\r\n", VD_BAD_REQUEST },
		{ "\r\nGET / HTTP/1.1\r\n", VD_BAD_REQUEST },
		{ "\x16\x03\x01", VD_BAD_REQUEST },
		{ "GET /\x01", VD_BAD_REQUEST },
		{ "GET / HTTP/1.", VD_AGAIN },
		{ "G", VD_AGAIN },
		{ "", VD_AGAIN },
		{ "GETGETGETGETGETGETGETGETGETGETGET / ", VD_BAD_REQUEST },
		{ "GET / HTTP/1.1 \r\n", VD_BAD_REQUEST },
	};
	static char long_line[5000];

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(lines); i++) {
		size_t size = strlen(lines[i].text);

		assert_int_equal(vdi_h1_recognize((struct vd_bytes) { lines[i].text, size }),
				 lines[i].status);
		/* Nothing is said too early that more bytes would change. */
		for (size_t cut = 0; cut < size; cut++) {
			vd_status early = vdi_h1_recognize((struct vd_bytes) { lines[i].text, cut });

			assert_true(early == VD_AGAIN || early == lines[i].status);
		}
	}
	memset(long_line, 'a', sizeof long_line);
	memcpy(long_line, "GET /", 5);
	assert_int_equal(vdi_h1_recognize((struct vd_bytes) { long_line, 4095 }), VD_AGAIN);
	assert_int_equal(vdi_h1_recognize((struct vd_bytes) { long_line, 4096 }), VD_BAD_REQUEST);
}

static void e152_calls_and_requests_on_one_port(void **state)
{
	(void) state;
	for (int i = 0; i < 20; i++)
		h1_expect_service();
}

static void what_begins_like_the_preface_may_be_a_request(void **state)
{
	static const char *const texts[] = { "POST /hello HTTP/1.1\r\nHost: x\r\n\r\n",
					     "PUT /hello HTTP/1.1\r\nHost: x\r\n\r\n" };
	struct h1_client	 client;
	struct h1_answer	 answer;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(texts); i++) {
		h1_join(&client);
		for (size_t at = 0; texts[i][at]; at++)
			assert_true(h1_say_bytes(&client, texts[i] + at, 1));
		answer = h1_hear(&client, true);
		assert_int_equal(answer.code, 200);
		assert_string_equal(answer.body, i ? "PUT /hello?\n" : "POST /hello?\n");
		h1_leave(&client);
	}
}

static void the_preface_may_come_in_pieces(void **state)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	struct peer	  peer;

	(void) state;
	peer_connect(&peer, rpc_echo_address(&echo));
	for (size_t i = 0; i < sizeof preface - 1; i++)
		assert_true(peer_write(&peer, preface + i, 1));
	assert_true(peer_frame(&peer, NGHTTP2_SETTINGS, 0, 0, NULL, 0));
	assert_true(peer_request(&peer, 1, "/test.Echo/Echo", 0, NULL));
	assert_true(peer_message(&peer, 1, "x", NGHTTP2_FLAG_END_STREAM));
	assert_int_equal(peer_hear(&peer, 1).status, 0);
	peer_close(&peer);
}

/* Not a byte for whom we do not understand, at once. */
static void what_is_neither_is_cut(void **state)
{
	static const char *const texts[] = { "\x16\x04\x01\x02\x01",
					     "PRI * HTTP/2.0\r\n\r\nSM\r\n\rX",
					     "hello\r\n",
					     "GET /hello\r\n",
					     "GET /hello HTTP/2.0\r\nHost: x\r\n\r\n",
					     ("\r\n" H1_HELLO),
					     "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
					     "*1\r\n$4\r\nPING\r\n",
					     "PRIx\r\n", /* without its end it may become a request */
					     "{\"json\":1}" };
	struct h1_client	 client;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(texts); i++) {
		h1_join(&client);
		assert_true(h1_say(&client, texts[i]));
		h1_expect_end(&client);
		h1_leave(&client);
	}
	assert_int_equal(h1_service.requests, 0);
	h1_expect_service();
}

static void tls_hears_that_there_is_none(void **state)
{
	struct h1_client client;

	(void) state;
	h1_join(&client);
	assert_true(h1_say(&client, "\x16\x03\x01\x02\x01 and so on"));
	assert_int_equal(h1_hear(&client, true).code, 400);
	h1_expect_end(&client);
	h1_leave(&client);
	h1_expect_service();
}

/* Without what answers requests the port is for calls only. */
static void without_a_service_requests_are_cut(void **state)
{
	struct h1_client client;

	(void) state;
	rpc_fixture_start(NULL);
	vdi_lock_init(&h1_service.lock, VDI_LOCK_QUEUE);
	assert_status(rpc_echo_start(&echo, env, NULL, NULL, NULL), VD_OK);
	h1_join(&client);
	assert_true(h1_say(&client, H1_HELLO));
	h1_expect_end(&client);
	h1_leave(&client);
	(void) h1_stop(NULL);
}

/* ---- Requests ---- */

static void a_request_may_come_in_any_two_pieces(void **state)
{
	static const char text[] = H1_HELLO;

	(void) state;
	for (size_t cut = 1; cut < sizeof text - 1; cut++) {
		struct h1_client client;

		h1_join(&client);
		assert_true(h1_say_bytes(&client, text, cut));
		assert_true(h1_say_bytes(&client, text + cut, sizeof text - 1 - cut));
		h1_expect_hello(&client);
		h1_leave(&client);
	}
}

static void requests_byte_by_byte_on_one_connection(void **state)
{
	static const char text[] = H1_HELLO;
	struct h1_client  client;

	(void) state;
	h1_join(&client);
	for (int round = 0; round < 5; round++) {
		for (size_t i = 0; i < sizeof text - 1; i++)
			assert_true(h1_say_bytes(&client, text + i, 1));
		h1_expect_hello(&client);
	}
	h1_leave(&client);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
	enum { COUNT = 300 };
	static char	 text[COUNT * 64];
	size_t		 size = 0;
	struct h1_client client;

	(void) state;
	for (int i = 0; i < COUNT; i++)
		size += (size_t) snprintf(text + size, sizeof text - size,
					  "GET /hello?%d HTTP/1.1\r\nHost: x\r\n\r\n", i);
	h1_join(&client);
	assert_true(h1_say_bytes(&client, text, size));
	for (int i = 0; i < COUNT; i++) {
		struct h1_answer answer = h1_hear(&client, true);
		char		 wanted[64];

		snprintf(wanted, sizeof wanted, "GET /hello?%d\n", i);
		assert_string_equal(answer.body, wanted);
	}
	h1_leave(&client);
}

static void a_connection_ends_when_one_side_says_so(void **state)
{
	static const struct {
		const char *text;
		const char *header;
		bool	    ends;
	} cases[] = {
		{ "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "\r\nConnection: close\r\n",
		  true },
		{ "GET /close HTTP/1.1\r\nHost: x\r\n\r\n", "\r\nConnection: close\r\n", true },
		{ "GET /hello HTTP/1.0\r\n\r\n", "HTTP/1.0 200 OK\r\n", true },
		{ "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "\r\nConnection: keep-alive\r\n",
		  false },
		{ "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: "
		  "h2c\r\n\r\n",
		  "HTTP/1.1 200 OK\r\n", false },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct h1_client client;
		struct h1_answer answer;

		h1_join(&client);
		assert_true(h1_say(&client, cases[i].text));
		answer = h1_hear(&client, true);
		assert_int_equal(answer.code, 200);
		assert_non_null(strstr(answer.head, cases[i].header));
		if (cases[i].ends) {
			assert_true(h1_say(&client, H1_HELLO) || true);
			h1_expect_end(&client);
		} else {
			assert_true(h1_say(&client, H1_HELLO));
			h1_expect_hello(&client);
		}
		h1_leave(&client);
	}
}

static void who_has_said_all_is_answered(void **state)
{
	struct h1_client client;

	(void) state;
	h1_join(&client);
	assert_true(h1_say(&client, H1_HELLO H1_HELLO));
	assert_int_equal(shutdown(client.fd, SHUT_WR), 0);
	h1_expect_hello(&client);
	h1_expect_hello(&client);
	h1_expect_end(&client);
	h1_leave(&client);
	h1_join(&client);
	assert_true(h1_say(&client, "GET /hello HTTP/1.1\r\nHos"));
	assert_int_equal(shutdown(client.fd, SHUT_WR), 0);
	assert_int_equal(h1_hear(&client, true).code, 400);
	h1_expect_end(&client);
	h1_leave(&client);
}

static void head_has_no_body(void **state)
{
	struct h1_client client;
	struct h1_answer answer;

	(void) state;
	h1_join(&client);
	assert_true(h1_say(&client, "HEAD /hello HTTP/1.1\r\nHost: x\r\n\r\n" H1_HELLO));
	answer = h1_hear(&client, false);
	assert_int_equal(answer.code, 200);
	assert_int_equal(answer.body_size, strlen("HEAD /hello?\n"));
	h1_expect_hello(&client);
	/* Of a body that the service did not make nothing is said. */
	assert_true(h1_say(&client, "HEAD /nothing HTTP/1.1\r\nHost: x\r\n\r\n" H1_HELLO));
	answer = h1_hear(&client, false);
	assert_int_equal(answer.code, 404);
	assert_true(answer.body_size == SIZE_MAX);
	h1_expect_hello(&client);
	h1_leave(&client);
}

static void bodies_are_passed_over(void **state)
{
	static const char *const texts[] = {
		"POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
		"POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
		("POST /hello HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
		 "chunked\r\n\r\n3\r\nabc\r\n10;x=y\r\n0123456789abcdef\r\n0\r\nTrailer: x\r\n\r\n"),
	};
	static char	 huge[VDI_H1_BODY_MAX];
	struct h1_client client;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(texts); i++) {
		size_t size = strlen(texts[i]);

		for (size_t cut = 1; cut <= size; cut += cut < size - 1 ? 7 : 1) {
			cut = VDI_MIN(cut, size);
			h1_join(&client);
			assert_true(h1_say_bytes(&client, texts[i], cut) &&
				    h1_say_bytes(&client, texts[i] + cut, size - cut) &&
				    h1_say(&client, H1_HELLO));
			assert_string_equal(h1_hear(&client, true).body, "POST /hello?\n");
			h1_expect_hello(&client);
			h1_leave(&client);
		}
	}
	memset(huge, 'x', sizeof huge);
	h1_join(&client);
	assert_true(h1_say(&client, "PUT /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 262144\r\n\r\n") &&
		    h1_say_bytes(&client, huge, sizeof huge) && h1_say(&client, H1_HELLO));
	assert_string_equal(h1_hear(&client, true).body, "PUT /hello?\n");
	h1_expect_hello(&client);
	h1_leave(&client);
}

/* Answered all the same, and over. */
static void bodies_that_are_too_large_or_broken_end_the_connection(void **state)
{
	static const char *const texts[] = {
		"POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 262145\r\n\r\n",
		"POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n",
		"POST /hello HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nX\r\n",
		"POST /hello HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n50000\r\n",
	};
	static char	 rest[0x50000];
	struct h1_client client;
	struct h1_answer answer;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(texts); i++) {
		h1_join(&client);
		assert_true(h1_say(&client, texts[i]));
		if (i == 3)
			(void) h1_say_bytes(&client, rest, sizeof rest);
		answer = h1_hear(&client, true);
		assert_int_equal(answer.code, 200);
		if (i < 2) /* later it is too late to say so */
			assert_non_null(strstr(answer.head, "\r\nConnection: close\r\n"));
		h1_expect_end(&client);
		h1_leave(&client);
	}
	h1_expect_service();
}

static void malformed_requests_hear_it_and_are_over(void **state)
{
	static const struct {
		const char *text;
		int	    code;
	} cases[] = {
		{ "GET /hello HTTP/1.1\r\n\r\n", 400 },
		{ "GET /hello HTTP/1.1\nHost: x\n\n", 400 },
		{ "GET /hello HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400 },
		{ "GET /hello HTTP/1.1\r\nHost : x\r\n\r\n", 400 },
		{ "GET /hello HTTP/1.1\r\nHost: x\r\nX: \x01\r\n\r\n", 400 },
		{ "GET /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
		  400 },
		{ "GET /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: "
		  "chunked\r\n\r\nabc",
		  400 },
		{ "GET /hello HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501 },
		{ "GET hello HTTP/1.1\r\nHost: x\r\n\r\n", 400 },
		{ "PRI * HTTP/1.1\r\nHost: x\r\n\r\n", 400 },
		{ "GET /hello HTTP/1.7\r\nHost: x\r\n\r\n", 505 },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct h1_client client;
		struct h1_answer answer;

		h1_join(&client);
		assert_true(h1_say(&client, cases[i].text));
		answer = h1_hear(&client, true);
		assert_int_equal(answer.code, cases[i].code);
		assert_non_null(strstr(answer.head, "\r\nConnection: close\r\n"));
		h1_expect_end(&client);
		h1_leave(&client);
		/* On a connection that was good so far, too; there even what is none at all. */
		h1_join(&client);
		assert_true(h1_say(&client, H1_HELLO) && h1_say(&client, cases[i].text));
		h1_expect_hello(&client);
		assert_int_equal(h1_hear(&client, true).code, cases[i].code);
		h1_expect_end(&client);
		h1_leave(&client);
	}
	h1_expect_service();
}

static void heads_without_end_are_refused_at_their_bound(void **state)
{
	static char	 line[VDI_H1_HEAD_MAX];
	struct h1_client client;

	(void) state;
	memset(line, 'a', sizeof line);
	h1_join(&client);
	assert_true(h1_say(&client, "GET /hello HTTP/1.1\r\nHost: x\r\nX: "));
	(void) h1_say_bytes(&client, line, sizeof line);
	assert_int_equal(h1_hear(&client, true).code, 431);
	h1_expect_end(&client);
	h1_leave(&client);
	h1_join(&client);
	assert_true(h1_say(&client, "GET /hello HTTP/1.1\r\nHost: x\r\n"));
	for (int i = 0; i < 65; i++)
		(void) h1_say(&client, "X: y\r\n");
	(void) h1_say(&client, "\r\n");
	assert_int_equal(h1_hear(&client, true).code, 431);
	h1_expect_end(&client);
	h1_leave(&client);
	/* A first line beyond what decides is nobody's. */
	h1_join(&client);
	(void) h1_say(&client, "GET /");
	(void) h1_say_bytes(&client, line, 4100);
	h1_expect_end(&client);
	h1_leave(&client);
	h1_expect_service();
}

/* ---- TLS ---- */

#define WITH(test, before, after) cmocka_unit_test_setup_teardown(test, before, after)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_lines_are_told_apart),
		WITH(e152_calls_and_requests_on_one_port, h1_start, h1_stop),
		WITH(what_begins_like_the_preface_may_be_a_request, h1_start, h1_stop),
		WITH(the_preface_may_come_in_pieces, h1_start, h1_stop),
		WITH(what_is_neither_is_cut, h1_start, h1_stop),
		WITH(tls_hears_that_there_is_none, h1_start, h1_stop),
		cmocka_unit_test(without_a_service_requests_are_cut),
		WITH(a_request_may_come_in_any_two_pieces, h1_start, h1_stop),
		WITH(requests_byte_by_byte_on_one_connection, h1_start, h1_stop),
		WITH(pipelined_requests_are_answered_in_order, h1_start, h1_stop),
		WITH(a_connection_ends_when_one_side_says_so, h1_start, h1_stop),
		WITH(who_has_said_all_is_answered, h1_start, h1_stop),
		WITH(head_has_no_body, h1_start, h1_stop),
		WITH(bodies_are_passed_over, h1_start, h1_stop),
		WITH(bodies_that_are_too_large_or_broken_end_the_connection, h1_start, h1_stop),
		WITH(malformed_requests_hear_it_and_are_over, h1_start, h1_stop),
		WITH(heads_without_end_are_refused_at_their_bound, h1_start, h1_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
