/* HTTP/1.x on the port of remote calls, byte by byte, beside calls that go on; and plain HTTP over HTTP/2,
 * where TLS agreed on it. */
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "env.h"
#include "h1_connection.h"
#include "h2_peer.h"
#include "lock.h"
#include "rpc_certs.h"
#include "rpc_fixture.h"
#include "wait.h"

/* The service:
 *
 * /hello   says what was asked for
 * /big     as many bytes as the query says
 * /hold    is answered by release()
 * /close   ends the connection
 * else 404
 */
struct service {
	struct vdi_lock	     lock;
	struct vdi_rpc_http *held;
	_Atomic uint64_t     holds;
	_Atomic uint64_t     requests;
};

static struct service service;

static const char *const methods[] = { "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "OTHER" };

static long number_in(struct vd_bytes text)
{
	char room[16];

	snprintf(room, sizeof room, "%.*s", (int) text.size, (const char *) text.data);
	return atol(room);
}

static void serve(void *arg, struct vdi_rpc_http *http)
{
	(void) arg;
	if (vd_bytes_equal(http->path, vd_bytes_of("/hold"))) {
		vdi_lock_acquire(&service.lock);
		assert_null(service.held);
		service.held = http;
		vdi_lock_release(&service.lock);
		atomic_fetch_add(&service.holds, 1);
		return;
	}
	atomic_fetch_add(&service.requests, 1);
	vdi_buffer_append_text(&http->headers, "Content-Type: text/plain\r\nX-Test: a: b\r\n");
	if (vd_bytes_equal(http->path, vd_bytes_of("/hello")) ||
	    vd_bytes_equal(http->path, vd_bytes_of("/close")))
		vdi_buffer_printf(&http->body, "%s %.*s?%.*s%s\n", methods[http->method],
				  (int) http->path.size, (const char *) http->path.data,
				  (int) http->query.size, (const char *) http->query.data,
				  http->is_tls ? " tls" : "");
	else if (vd_bytes_equal(http->path, vd_bytes_of("/big")))
		for (long left = number_in(http->query); left > 0; left--)
			vdi_buffer_append_char(&http->body, (char) ('a' + left % 26));
	else
		http->code = 404;
	http->closes = vd_bytes_equal(http->path, vd_bytes_of("/close"));
	http->answer(http);
}

static void release(void)
{
	struct vdi_rpc_http *http;

	vdi_lock_acquire(&service.lock);
	http = service.held;
	service.held = NULL;
	vdi_lock_release(&service.lock);
	assert_non_null(http);
	vdi_buffer_append_text(&http->body, "released");
	http->answer(http);
}

static void start_with(struct vdi_rpc_server_options options)
{
	rpc_fixture_start(NULL);
	memset(&service, 0, sizeof service);
	vdi_lock_init(&service.lock, VDI_LOCK_QUEUE);
	options.http = serve;
	options.threads = 2;
	assert_status(rpc_echo_start(&echo, env, NULL, &options, NULL), VD_OK);
}

static int start(void **state)
{
	(void) state;
	start_with((struct vdi_rpc_server_options) { 0 });
	return 0;
}

static int start_hasty(void **state)
{
	(void) state;
	start_with(
		(struct vdi_rpc_server_options) { .settle_timeout = VD_MS(150), .idle_timeout = VD_MS(150) });
	return 0;
}

static int start_poor(void **state)
{
	(void) state;
	start_with((struct vdi_rpc_server_options) { .memory_max = 64 << 10 });
	return 0;
}

static int stop(void **state)
{
	rpc_echo_stop(&echo, env);
	assert_int_equal(echo.accepted, echo.ended);
	vdi_lock_fini(&service.lock);
	return rpc_fixture_stop(state);
}

/* ---- A client ---- */

struct client {
	int    fd;
	SSL   *ssl;
	char   got[1 << 16];
	size_t size;
	size_t used;
	bool   is_over;
};

static void join(struct client *client)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	memset(client, 0, sizeof *client);
	client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	at.sin_port = htons((uint16_t) atoi(strrchr(rpc_echo_address(&echo), ':') + 1));
	assert_int_equal(connect(client->fd, (struct sockaddr *) &at, sizeof at), 0);
}

static void leave(struct client *client)
{
	SSL_free(client->ssl);
	close(client->fd);
}

static bool say_bytes(struct client *client, const char *bytes, size_t size)
{
	while (size) {
		ssize_t sent = client->ssl ? SSL_write(client->ssl, bytes, (int) size) :
					     send(client->fd, bytes, size, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		bytes += sent;
		size -= (size_t) sent;
	}
	return true;
}

static bool say(struct client *client, const char *text)
{
	return say_bytes(client, text, strlen(text));
}

/* False at the end. */
static bool hear_more(struct client *client)
{
	struct pollfd wait = { .fd = client->fd, .events = POLLIN };
	ssize_t	      got;

	if (client->used == client->size)
		client->used = client->size = 0;
	assert_true(client->size < sizeof client->got);
	if (client->ssl == NULL || !SSL_has_pending(client->ssl))
		assert_int_equal(poll(&wait, 1, PEER_PATIENCE_MS), 1);
	got = client->ssl ? SSL_read(client->ssl, client->got + client->size,
				     (int) (sizeof client->got - client->size)) :
			    read(client->fd, client->got + client->size, sizeof client->got - client->size);
	if (got <= 0) {
		client->is_over = true;
		return false;
	}
	client->size += (size_t) got;
	return true;
}

struct answer {
	int    code; /* 0: none came */
	char   head[1024];
	char   body[512]; /* cut */
	size_t body_size;
};

static char hear_byte(struct client *client)
{
	if (client->used == client->size && !hear_more(client))
		return 0;
	return client->got[client->used++];
}

static struct answer hear(struct client *client, bool has_body)
{
	struct answer answer = { 0 };
	size_t	      size = 0;
	const char   *length;

	while (strstr(answer.head, "\r\n\r\n") == NULL) {
		answer.head[size] = hear_byte(client);
		if (client->is_over) {
			assert_int_equal(size, 0);
			return answer;
		}
		assert_true(++size < sizeof answer.head);
	}
	assert_memory_equal(answer.head, "HTTP/1.", 7);
	answer.code = atoi(answer.head + 9);
	length = strstr(answer.head, "\r\nContent-Length: ");
	assert_non_null(strstr(answer.head, "\r\nDate: "));
	assert_true(length || !has_body);
	answer.body_size = length ? (size_t) atol(length + 18) : SIZE_MAX;
	for (size_t i = 0; has_body && i < answer.body_size; i++) {
		char byte = hear_byte(client);

		assert_false(client->is_over);
		if (i < sizeof answer.body - 1)
			answer.body[i] = byte;
	}
	return answer;
}

static void expect_end(struct client *client)
{
	while (hear_more(client))
		assert_int_equal(client->size, 0); /* not a byte */
	assert_true(client->is_over);
}

static void expect_hello(struct client *client)
{
	struct answer answer = hear(client, true);

	assert_int_equal(answer.code, 200);
	assert_string_equal(answer.body, "GET /hello?a=b&c\n");
	assert_non_null(strstr(answer.head, "\r\nX-Test: a: b\r\n"));
}

#define HELLO "GET /hello?a=b&c HTTP/1.1\r\nHost: x\r\n\r\n"

/* Whoever else comes is served: calls, and requests. */
static void expect_service(void)
{
	struct peer   other;
	struct heard  heard;
	struct client client;

	peer_connect(&other, rpc_echo_address(&echo));
	peer_begin(&other, -1);
	assert_true(peer_request(&other, 1, "/test.Echo/Echo", 0, NULL));
	assert_true(peer_message(&other, 1, "still here", NGHTTP2_FLAG_END_STREAM));
	heard = peer_hear(&other, 1);
	assert_int_equal(heard.status, 0);
	assert_int_equal(heard.data_size, 15);
	peer_close(&other);
	join(&client);
	assert_true(say(&client, HELLO));
	expect_hello(&client);
	leave(&client);
}

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
		expect_service();
}

static void what_begins_like_the_preface_may_be_a_request(void **state)
{
	static const char *const texts[] = { "POST /hello HTTP/1.1\r\nHost: x\r\n\r\n",
					     "PUT /hello HTTP/1.1\r\nHost: x\r\n\r\n" };
	struct client		 client;
	struct answer		 answer;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(texts); i++) {
		join(&client);
		for (size_t at = 0; texts[i][at]; at++)
			assert_true(say_bytes(&client, texts[i] + at, 1));
		answer = hear(&client, true);
		assert_int_equal(answer.code, 200);
		assert_string_equal(answer.body, i ? "PUT /hello?\n" : "POST /hello?\n");
		leave(&client);
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
					     ("\r\n" HELLO),
					     "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
					     "*1\r\n$4\r\nPING\r\n",
					     "PRIx",
					     "{\"json\":1}" };
	struct client		 client;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(texts); i++) {
		join(&client);
		assert_true(say(&client, texts[i]));
		expect_end(&client);
		leave(&client);
	}
	assert_int_equal(service.requests, 0);
	expect_service();
}

static void tls_hears_that_there_is_none(void **state)
{
	struct client client;

	(void) state;
	join(&client);
	assert_true(say(&client, "\x16\x03\x01\x02\x01 and so on"));
	assert_int_equal(hear(&client, true).code, 400);
	expect_end(&client);
	leave(&client);
	expect_service();
}

/* Without what answers requests the port is for calls only. */
static void without_a_service_requests_are_cut(void **state)
{
	struct client client;

	(void) state;
	rpc_fixture_start(NULL);
	vdi_lock_init(&service.lock, VDI_LOCK_QUEUE);
	assert_status(rpc_echo_start(&echo, env, NULL, NULL, NULL), VD_OK);
	join(&client);
	assert_true(say(&client, HELLO));
	expect_end(&client);
	leave(&client);
	(void) stop(NULL);
}

/* ---- Requests ---- */

static void a_request_may_come_in_any_two_pieces(void **state)
{
	static const char text[] = HELLO;

	(void) state;
	for (size_t cut = 1; cut < sizeof text - 1; cut++) {
		struct client client;

		join(&client);
		assert_true(say_bytes(&client, text, cut));
		assert_true(say_bytes(&client, text + cut, sizeof text - 1 - cut));
		expect_hello(&client);
		leave(&client);
	}
}

static void requests_byte_by_byte_on_one_connection(void **state)
{
	static const char text[] = HELLO;
	struct client	  client;

	(void) state;
	join(&client);
	for (int round = 0; round < 5; round++) {
		for (size_t i = 0; i < sizeof text - 1; i++)
			assert_true(say_bytes(&client, text + i, 1));
		expect_hello(&client);
	}
	leave(&client);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
	enum { COUNT = 300 };
	static char   text[COUNT * 64];
	size_t	      size = 0;
	struct client client;

	(void) state;
	for (int i = 0; i < COUNT; i++)
		size += (size_t) snprintf(text + size, sizeof text - size,
					  "GET /hello?%d HTTP/1.1\r\nHost: x\r\n\r\n", i);
	join(&client);
	assert_true(say_bytes(&client, text, size));
	for (int i = 0; i < COUNT; i++) {
		struct answer answer = hear(&client, true);
		char	      wanted[64];

		snprintf(wanted, sizeof wanted, "GET /hello?%d\n", i);
		assert_string_equal(answer.body, wanted);
	}
	leave(&client);
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
		struct client client;
		struct answer answer;

		join(&client);
		assert_true(say(&client, cases[i].text));
		answer = hear(&client, true);
		assert_int_equal(answer.code, 200);
		assert_non_null(strstr(answer.head, cases[i].header));
		if (cases[i].ends) {
			assert_true(say(&client, HELLO) || true);
			expect_end(&client);
		} else {
			assert_true(say(&client, HELLO));
			expect_hello(&client);
		}
		leave(&client);
	}
}

static void who_has_said_all_is_answered(void **state)
{
	struct client client;

	(void) state;
	join(&client);
	assert_true(say(&client, HELLO HELLO));
	assert_int_equal(shutdown(client.fd, SHUT_WR), 0);
	expect_hello(&client);
	expect_hello(&client);
	expect_end(&client);
	leave(&client);
	join(&client);
	assert_true(say(&client, "GET /hello HTTP/1.1\r\nHos"));
	assert_int_equal(shutdown(client.fd, SHUT_WR), 0);
	assert_int_equal(hear(&client, true).code, 400);
	expect_end(&client);
	leave(&client);
}

static void head_has_no_body(void **state)
{
	struct client client;
	struct answer answer;

	(void) state;
	join(&client);
	assert_true(say(&client, "HEAD /hello HTTP/1.1\r\nHost: x\r\n\r\n" HELLO));
	answer = hear(&client, false);
	assert_int_equal(answer.code, 200);
	assert_int_equal(answer.body_size, strlen("HEAD /hello?\n"));
	expect_hello(&client);
	/* Of a body that the service did not make nothing is said. */
	assert_true(say(&client, "HEAD /nothing HTTP/1.1\r\nHost: x\r\n\r\n" HELLO));
	answer = hear(&client, false);
	assert_int_equal(answer.code, 404);
	assert_true(answer.body_size == SIZE_MAX);
	expect_hello(&client);
	leave(&client);
}

static void bodies_are_passed_over(void **state)
{
	static const char *const texts[] = {
		"POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
		"POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
		"POST /hello HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
		"chunked\r\n\r\n3\r\nabc\r\n10;x=y\r\n0123456789abcdef\r\n0\r\nTrailer: x\r\n\r\n",
	};
	static char   huge[VDI_H1_BODY_MAX];
	struct client client;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(texts); i++) {
		size_t size = strlen(texts[i]);

		for (size_t cut = 1; cut <= size; cut += cut < size - 1 ? 7 : 1) {
			cut = VDI_MIN(cut, size);
			join(&client);
			assert_true(say_bytes(&client, texts[i], cut) &&
				    say_bytes(&client, texts[i] + cut, size - cut) && say(&client, HELLO));
			assert_string_equal(hear(&client, true).body, "POST /hello?\n");
			expect_hello(&client);
			leave(&client);
		}
	}
	memset(huge, 'x', sizeof huge);
	join(&client);
	assert_true(say(&client, "PUT /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 262144\r\n\r\n") &&
		    say_bytes(&client, huge, sizeof huge) && say(&client, HELLO));
	assert_string_equal(hear(&client, true).body, "PUT /hello?\n");
	expect_hello(&client);
	leave(&client);
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
	static char   rest[0x50000];
	struct client client;
	struct answer answer;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(texts); i++) {
		join(&client);
		assert_true(say(&client, texts[i]));
		if (i == 3)
			(void) say_bytes(&client, rest, sizeof rest);
		answer = hear(&client, true);
		assert_int_equal(answer.code, 200);
		if (i < 2) /* later it is too late to say so */
			assert_non_null(strstr(answer.head, "\r\nConnection: close\r\n"));
		expect_end(&client);
		leave(&client);
	}
	expect_service();
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
		struct client client;
		struct answer answer;

		join(&client);
		assert_true(say(&client, cases[i].text));
		answer = hear(&client, true);
		assert_int_equal(answer.code, cases[i].code);
		assert_non_null(strstr(answer.head, "\r\nConnection: close\r\n"));
		expect_end(&client);
		leave(&client);
		/* On a connection that was good so far, too; there even what is none at all. */
		join(&client);
		assert_true(say(&client, HELLO) && say(&client, cases[i].text));
		expect_hello(&client);
		assert_int_equal(hear(&client, true).code, cases[i].code);
		expect_end(&client);
		leave(&client);
	}
	expect_service();
}

static void heads_without_end_are_refused_at_their_bound(void **state)
{
	static char   line[VDI_H1_HEAD_MAX];
	struct client client;

	(void) state;
	memset(line, 'a', sizeof line);
	join(&client);
	assert_true(say(&client, "GET /hello HTTP/1.1\r\nHost: x\r\nX: "));
	(void) say_bytes(&client, line, sizeof line);
	assert_int_equal(hear(&client, true).code, 431);
	expect_end(&client);
	leave(&client);
	join(&client);
	assert_true(say(&client, "GET /hello HTTP/1.1\r\nHost: x\r\n"));
	for (int i = 0; i < 65; i++)
		(void) say(&client, "X: y\r\n");
	(void) say(&client, "\r\n");
	assert_int_equal(hear(&client, true).code, 431);
	expect_end(&client);
	leave(&client);
	/* A first line beyond what decides is nobody's. */
	join(&client);
	(void) say(&client, "GET /");
	(void) say_bytes(&client, line, 4100);
	expect_end(&client);
	leave(&client);
	expect_service();
}

/* ---- Time ---- */

static void nobody_waits_for_ever(void **state)
{
	static const char *const texts[] = {
		"",
		"P",
		"PRI * HTTP/2.0\r\n",
		"GET /hello HT",
		"GET /hello HTTP/1.1\r\nHost: x\r\n",
		"POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabc",
		HELLO,
		(HELLO "GET /hel")
	};
	struct client client;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(texts); i++) {
		join(&client);
		assert_true(say(&client, texts[i]));
		if (strncmp(texts[i], HELLO, sizeof HELLO - 1) == 0)
			expect_hello(&client);
		expect_end(&client);
		leave(&client);
	}
	expect_service();
}

/* The limit is of the whole head, not of its bytes. */
static void a_byte_now_and_then_buys_no_time(void **state)
{
	struct client client;
	struct pollfd wait;
	vd_mono	      due = vd_mono_add(vd_env_now(env), VD_SECONDS(100));

	(void) state;
	join(&client);
	assert_true(say(&client, "GET /hello HTTP/1.1\r\nHost: x\r\nX: "));
	wait = (struct pollfd) { .fd = client.fd, .events = POLLIN };
	while (poll(&wait, 1, 20) == 0 && vd_env_now(env).ns < due.ns)
		(void) say(&client, "a");
	assert_true(vd_env_now(env).ns < due.ns);
	leave(&client);
	expect_service();
}

/* ---- Answers ---- */

static void large_answers_wait_for_their_reader(void **state)
{
	struct client client;
	int	      little = 65536;
	struct answer answer;

	(void) state;
	join(&client);
	assert_int_equal(setsockopt(client.fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little), 0);
	assert_true(say(&client, "GET /big?8000000 HTTP/1.1\r\nHost: x\r\n\r\n" HELLO));
	rpc_wait_for(env, &service.requests, 1);
	expect_service(); /* nobody waits for that one */
	answer = hear(&client, true);
	assert_int_equal(answer.body_size, 8000000);
	assert_memory_equal(answer.body, "ihgfedcb", 8);
	expect_hello(&client);
	leave(&client);
}

static void an_answer_that_is_too_large_for_the_server_is_none(void **state)
{
	struct client client;

	(void) state;
	join(&client);
	assert_true(say(&client, "GET /big?200000 HTTP/1.1\r\nHost: x\r\n\r\n"));
	expect_end(&client);
	leave(&client);
	expect_service();
}

static void answers_come_from_anywhere_and_in_their_time(void **state)
{
	struct client client;

	(void) state;
	join(&client);
	assert_true(say(&client, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n" HELLO));
	rpc_wait_for(env, &service.holds, 1);
	expect_service();
	release();
	assert_string_equal(hear(&client, true).body, "released");
	expect_hello(&client);
	/* Nobody is there any more. */
	assert_true(say(&client, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"));
	rpc_wait_for(env, &service.holds, 2);
	leave(&client);
	expect_service();
	release();
	expect_service();
}

static void draining_waits_for_what_was_asked(void **state)
{
	struct client idle, busy, half;

	(void) state;
	join(&idle);
	assert_true(say(&idle, HELLO));
	expect_hello(&idle);
	join(&half);
	assert_true(say(&half, HELLO "GET /hello?a=b&c HTTP/1.1\r\n"));
	expect_hello(&half);
	join(&busy);
	assert_true(say(&busy, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n" HELLO));
	rpc_wait_for(env, &service.holds, 1);
	vdi_rpc_server_drain(echo.server);
	expect_end(&idle);
	assert_true(say(&half, "Host: x\r\n\r\n"));
	expect_hello(&half);
	expect_end(&half);
	release();
	assert_non_null(strstr(hear(&busy, true).head, "\r\nConnection: close\r\n"));
	expect_end(&busy);
	leave(&idle);
	leave(&busy);
	leave(&half);
}

/* Closing cuts, but does not end before the service has answered. */
static void closing_cuts_and_waits_for_the_service(void **state)
{
	struct client	silent, busy;
	struct vdi_wait closed;

	(void) state;
	join(&silent);
	assert_true(say(&silent, "PRI"));
	join(&busy);
	assert_true(say(&busy, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"));
	rpc_wait_for(env, &service.holds, 1);
	vdi_wait_init(&closed, env);
	vdi_rpc_server_close(echo.server, vdi_wait_signal_arg, &closed);
	expect_end(&silent);
	expect_end(&busy);
	assert_false(vdi_wait_is_done(&closed));
	release();
	vdi_wait_wait(&closed);
	vdi_wait_fini(&closed);
	leave(&silent);
	leave(&busy);
	(void) rpc_echo_start(&echo, env, NULL, &(struct vdi_rpc_server_options) { .http = serve }, NULL);
}

/* ---- Without memory ---- */

static void try_all(void)
{
	struct client client;

	join(&client);
	if (say(&client, HELLO "POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcGET "
			       "/big?100000 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
		while (hear_more(&client))
			client.used = client.size;
	leave(&client);
}

static void allocation_failures_end_a_connection_and_no_more(void **state)
{
	bool was_reached = true;

	(void) state;
	expect_service();
	for (uint64_t n = 1; was_reached && n < 500; n++) {
		vdi_alloc_fail_nth(n, 1);
		try_all();
		was_reached = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
	}
	assert_false(was_reached);
	expect_service();
}

/* ---- TLS ---- */

static struct rpc_certs certs;
static SSL_CTX	       *context;

static int start_tls_with(bool mutual)
{
	struct vdi_rpc_server_tls tls;

	if (!rpc_certs_make(&certs)) {
		printf("skipped: openssl cannot make certificates\n");
		exit(77);
	}
	tls = (struct vdi_rpc_server_tls) {
		.cert_path = rpc_certs_path(&certs, "server.pem"),
		.key_path = rpc_certs_path(&certs, "server.key"),
		.client_ca_path = mutual ? rpc_certs_path(&certs, "ca.pem") : NULL,
		.require_client_cert = mutual,
	};
	start_with((struct vdi_rpc_server_options) { .tls = &tls });
	context = SSL_CTX_new(TLS_client_method());
	assert_non_null(context);
	return 0;
}

static int start_tls(void **state)
{
	(void) state;
	return start_tls_with(false);
}

static int start_mutual(void **state)
{
	(void) state;
	return start_tls_with(true);
}

static int stop_tls(void **state)
{
	SSL_CTX_free(context);
	rpc_certs_remove(&certs);
	return stop(state);
}

/* protocols: as ALPN has them, or NULL. False: no handshake. */
static bool join_tls(struct client *client, const char *protocols)
{
	join(client);
	client->ssl = SSL_new(context);
	assert_non_null(client->ssl);
	if (protocols)
		assert_int_equal(SSL_set_alpn_protos(client->ssl, (const unsigned char *) protocols,
						     (unsigned) strlen(protocols)),
				 0);
	assert_int_equal(SSL_set_fd(client->ssl, client->fd), 1);
	return SSL_connect(client->ssl) == 1;
}

static const char *agreed(const struct client *client)
{
	static char	     text[16];
	const unsigned char *protocol;
	unsigned	     size;

	SSL_get0_alpn_selected(client->ssl, &protocol, &size);
	snprintf(text, sizeof text, "%.*s", (int) size, (const char *) protocol);
	return text;
}

/* TLS tells an end from a cut. */
static bool was_told_the_end(const struct client *client)
{
	return SSL_get_shutdown(client->ssl) & SSL_RECEIVED_SHUTDOWN;
}

static void alpn_decides(void **state)
{
	static const char *const one[] = { NULL, "\x08http/1.1", "\x08http/1.0\x08http/1.1" };
	static const char *const two[] = { "\x02h2", "\x02h2\x08http/1.1", "\x08http/1.1\x02h2" };
	struct client		 client;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(one); i++) {
		assert_true(join_tls(&client, one[i]));
		assert_string_equal(agreed(&client), "");
		for (int round = 0; round < 3; round++) {
			assert_true(say(&client, HELLO));
			assert_string_equal(hear(&client, true).body, "GET /hello?a=b&c tls\n");
		}
		leave(&client);
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(two); i++) {
		assert_true(join_tls(&client, two[i]));
		assert_string_equal(agreed(&client), "h2");
		leave(&client);
	}
	assert_false(join_tls(&client, "\x07spdy/99"));
	leave(&client);
	/* Garbage hears what is wrong with it: here it must be a request. HTTP/2 wants to be agreed on. */
	assert_true(join_tls(&client, NULL));
	assert_true(say(&client, "\x16\x03\x01 x\r\n\r\n"));
	assert_int_equal(hear(&client, true).code, 400);
	expect_end(&client);
	assert_true(was_told_the_end(&client));
	leave(&client);
	assert_true(join_tls(&client, NULL));
	assert_true(say(&client, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
	expect_end(&client);
	assert_true(was_told_the_end(&client));
	leave(&client);
}

static void large_answers_over_tls(void **state)
{
	struct client client;
	struct answer answer;

	(void) state;
	assert_true(join_tls(&client, NULL));
	assert_true(say(&client, "GET /big?3000000 HTTP/1.1\r\nHost: x\r\n\r\n" HELLO HELLO
				 "GET /close HTTP/1.1\r\nHost: x\r\n\r\n"));
	answer = hear(&client, true);
	assert_int_equal(answer.body_size, 3000000);
	for (int i = 0; i < 3; i++)
		assert_int_equal(hear(&client, true).code, 200);
	expect_end(&client);
	leave(&client);
}

/* Frames of HTTP/2 by hand, through TLS: what is no call is a request. */
static struct heard ask_http2(struct client *client, const char *method, const char *path, bool is_open)
{
	static struct peer peer;
	const char *const  extra[] = { ":method", method,    "content-type", "",  "te",
				       "",	  ":scheme", "https",	     NULL };
	struct heard	   heard = { .status = -1, .reset = -1 };
	struct frame	   frame;
	uint8_t		   block[1024], room[2048];
	size_t		   size;

	peer_attach(&peer, -1);
	size = peer_put_request(block, path, extra);
	assert_true(say(client, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
	assert_true(say_bytes(client, (char *) room, peer_frame_head(room, NGHTTP2_SETTINGS, 0, 0, 0)));
	peer_frame_head(room, NGHTTP2_HEADERS,
			NGHTTP2_FLAG_END_HEADERS | (is_open ? 0 : NGHTTP2_FLAG_END_STREAM), 1, size);
	memcpy(room + 9, block, size);
	assert_true(say_bytes(client, (char *) room, 9 + size));
	while (!heard.is_whole) {
		for (size_t i = 0; i < 9; i++)
			room[i] = (uint8_t) hear_byte(client);
		frame = (struct frame) { .type = room[3],
					 .flags = room[4],
					 .stream = peer_number_of(room + 5),
					 .size = (size_t) room[1] << 8 | room[2],
					 .payload = room };
		assert_true(frame.size <= sizeof room && !client->is_over);
		for (size_t i = 0; i < frame.size; i++)
			room[i] = (uint8_t) hear_byte(client);
		if (frame.stream != 1)
			continue;
		peer_hear_frame(&peer, &frame, &heard);
		heard.is_whole = frame.flags & NGHTTP2_FLAG_END_STREAM &&
				 (frame.type == NGHTTP2_HEADERS || frame.type == NGHTTP2_DATA);
	}
	nghttp2_hd_inflate_del(peer.inflater);
	return heard;
}

static void expect_to_be_told_the_end(struct client *client)
{
	while (hear_more(client))
		client->used = client->size;
	assert_true(was_told_the_end(client));
	leave(client);
}

static void who_agrees_on_http2_and_does_not_speak_it_is_told_the_end(void **state)
{
	struct client client;

	(void) state;
	assert_true(join_tls(&client, "\x02h2"));
	assert_true(say(&client, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"));
	expect_to_be_told_the_end(&client);
}

static void who_speaks_http2_over_tls_is_told_that_it_closes(void **state)
{
	struct client	client;
	struct vdi_wait closed;

	(void) state;
	assert_true(join_tls(&client, "\x02h2"));
	(void) ask_http2(&client, "GET", "/hello", false);
	vdi_wait_init(&closed, env);
	vdi_rpc_server_close(echo.server, vdi_wait_signal_arg, &closed);
	expect_to_be_told_the_end(&client);
	vdi_wait_wait(&closed);
	vdi_wait_fini(&closed);
	(void) rpc_echo_start(&echo, env, NULL, &(struct vdi_rpc_server_options) { .http = serve }, NULL);
}

static void plain_requests_over_http2(void **state)
{
	static const struct {
		const char *method, *path, *status, *body;
		bool	    is_open;
	} cases[] = {
		{ "GET", "/hello?a", "200", "GET /hello?a tls\n", false },
		{ "POST", "/hello", "200", "POST /hello? tls\n", true },
		{ "HEAD", "/hello", "200", "", false },
		{ "GET", "/nothing", "404", "", false },
		{ "FOO", "/hello?", "200", "OTHER /hello? tls\n", false },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct client client;
		struct heard  heard;

		assert_true(join_tls(&client, "\x02h2"));
		heard = ask_http2(&client, cases[i].method, cases[i].path, cases[i].is_open);
		assert_string_equal(heard.http_status, cases[i].status);
		assert_string_equal(heard.type, "text/plain");
		assert_string_equal(heard.data, cases[i].body);
		leave(&client);
	}
}

/* As etcd: whoever shows no certificate gets no further than the handshake, whatever the path. */
static void e153_mutual_tls_is_for_every_path(void **state)
{
	struct client client;

	(void) state;
	if (join_tls(&client, NULL)) { /* with TLS 1.3 the client learns it with the first bytes */
		(void) say(&client, HELLO);
		expect_end(&client);
	}
	leave(&client);
	assert_int_equal(service.requests, 0);
	assert_int_equal(
		SSL_CTX_use_certificate_file(context, rpc_certs_path(&certs, "client.pem"), SSL_FILETYPE_PEM),
		1);
	assert_int_equal(
		SSL_CTX_use_PrivateKey_file(context, rpc_certs_path(&certs, "client.key"), SSL_FILETYPE_PEM),
		1);
	assert_true(join_tls(&client, NULL));
	assert_true(say(&client, HELLO));
	assert_int_equal(hear(&client, true).code, 200);
	leave(&client);
}

#define WITH(test, before, after) cmocka_unit_test_setup_teardown(test, before, after)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_lines_are_told_apart),
		WITH(e152_calls_and_requests_on_one_port, start, stop),
		WITH(what_begins_like_the_preface_may_be_a_request, start, stop),
		WITH(the_preface_may_come_in_pieces, start, stop),
		WITH(what_is_neither_is_cut, start, stop),
		WITH(tls_hears_that_there_is_none, start, stop),
		cmocka_unit_test(without_a_service_requests_are_cut),
		WITH(a_request_may_come_in_any_two_pieces, start, stop),
		WITH(requests_byte_by_byte_on_one_connection, start, stop),
		WITH(pipelined_requests_are_answered_in_order, start, stop),
		WITH(a_connection_ends_when_one_side_says_so, start, stop),
		WITH(who_has_said_all_is_answered, start, stop),
		WITH(head_has_no_body, start, stop),
		WITH(bodies_are_passed_over, start, stop),
		WITH(bodies_that_are_too_large_or_broken_end_the_connection, start, stop),
		WITH(malformed_requests_hear_it_and_are_over, start, stop),
		WITH(heads_without_end_are_refused_at_their_bound, start, stop),
		WITH(nobody_waits_for_ever, start_hasty, stop),
		WITH(a_byte_now_and_then_buys_no_time, start_hasty, stop),
		WITH(large_answers_wait_for_their_reader, start, stop),
		WITH(an_answer_that_is_too_large_for_the_server_is_none, start_poor, stop),
		WITH(answers_come_from_anywhere_and_in_their_time, start, stop),
		WITH(draining_waits_for_what_was_asked, start, stop),
		WITH(closing_cuts_and_waits_for_the_service, start, stop),
		WITH(allocation_failures_end_a_connection_and_no_more, start, stop),
		WITH(alpn_decides, start_tls, stop_tls),
		WITH(large_answers_over_tls, start_tls, stop_tls),
		WITH(plain_requests_over_http2, start_tls, stop_tls),
		WITH(who_agrees_on_http2_and_does_not_speak_it_is_told_the_end, start_tls, stop_tls),
		WITH(who_speaks_http2_over_tls_is_told_that_it_closes, start_tls, stop_tls),
		WITH(e153_mutual_tls_is_for_every_path, start_mutual, stop_tls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
