/* Plain requests over TLS: what ALPN decides, how connections end, and certificates of clients. */
#include <openssl/ssl.h>
#include <unistd.h>

#include "h1_peer.h"
#include "h2_peer.h"
#include "rpc_certs.h"
#include "rpc_fixture.h"
#include "wait.h"

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
	h1_start_with((struct vdi_rpc_server_options) { .tls = &tls });
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
	return h1_stop(state);
}

/* protocols: as ALPN has them, or NULL. False: no handshake. */
static bool join_tls(struct h1_client *client, const char *protocols)
{
	h1_join(client);
	client->ssl = SSL_new(context);
	assert_non_null(client->ssl);
	if (protocols)
		assert_int_equal(SSL_set_alpn_protos(client->ssl, (const unsigned char *) protocols,
						     (unsigned) strlen(protocols)),
				 0);
	assert_int_equal(SSL_set_fd(client->ssl, client->fd), 1);
	return SSL_connect(client->ssl) == 1;
}

static const char *agreed(const struct h1_client *client)
{
	static char	     text[16];
	const unsigned char *protocol;
	unsigned	     size;

	SSL_get0_alpn_selected(client->ssl, &protocol, &size);
	snprintf(text, sizeof text, "%.*s", (int) size, (const char *) protocol);
	return text;
}

/* TLS tells an end from a cut. */
static bool was_told_the_end(const struct h1_client *client)
{
	return SSL_get_shutdown(client->ssl) & SSL_RECEIVED_SHUTDOWN;
}

static void alpn_decides(void **state)
{
	static const char *const one[] = { NULL, "\x08http/1.1", "\x08http/1.0\x08http/1.1" };
	static const char *const two[] = { "\x02h2", "\x02h2\x08http/1.1", "\x08http/1.1\x02h2" };
	struct h1_client	 client;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(one); i++) {
		assert_true(join_tls(&client, one[i]));
		assert_string_equal(agreed(&client), "");
		for (int round = 0; round < 3; round++) {
			assert_true(h1_say(&client, H1_HELLO));
			assert_string_equal(h1_hear(&client, true).body, "GET /hello?a=b&c tls\n");
		}
		h1_leave(&client);
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(two); i++) {
		assert_true(join_tls(&client, two[i]));
		assert_string_equal(agreed(&client), "h2");
		h1_leave(&client);
	}
	assert_false(join_tls(&client, "\x07spdy/99"));
	h1_leave(&client);
	/* Garbage hears what is wrong with it: here it must be a request. HTTP/2 wants to be agreed on. */
	assert_true(join_tls(&client, NULL));
	assert_true(h1_say(&client, "\x16\x03\x01 x\r\n\r\n"));
	assert_int_equal(h1_hear(&client, true).code, 400);
	h1_expect_end(&client);
	assert_true(was_told_the_end(&client));
	h1_leave(&client);
	assert_true(join_tls(&client, NULL));
	assert_true(h1_say(&client, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
	h1_expect_end(&client);
	assert_true(was_told_the_end(&client));
	h1_leave(&client);
}

static void large_answers_over_tls(void **state)
{
	struct h1_client client;
	struct h1_answer answer;

	(void) state;
	assert_true(join_tls(&client, NULL));
	assert_true(h1_say(&client, "GET /big?3000000 HTTP/1.1\r\nHost: x\r\n\r\n" H1_HELLO H1_HELLO
				    "GET /close HTTP/1.1\r\nHost: x\r\n\r\n"));
	answer = h1_hear(&client, true);
	assert_int_equal(answer.body_size, 3000000);
	for (int i = 0; i < 3; i++)
		assert_int_equal(h1_hear(&client, true).code, 200);
	h1_expect_end(&client);
	h1_leave(&client);
}

/* Frames of HTTP/2 by hand, through TLS: what is no call is a request. */
static struct heard ask_http2(struct h1_client *client, const char *method, const char *path, bool is_open)
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
	assert_true(h1_say(client, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
	assert_true(h1_say_bytes(client, (char *) room, peer_frame_head(room, NGHTTP2_SETTINGS, 0, 0, 0)));
	peer_frame_head(room, NGHTTP2_HEADERS,
			NGHTTP2_FLAG_END_HEADERS | (is_open ? 0 : NGHTTP2_FLAG_END_STREAM), 1, size);
	memcpy(room + 9, block, size);
	assert_true(h1_say_bytes(client, (char *) room, 9 + size));
	while (!heard.is_whole) {
		for (size_t i = 0; i < 9; i++)
			room[i] = (uint8_t) h1_hear_byte(client);
		frame = (struct frame) { .type = room[3],
					 .flags = room[4],
					 .stream = peer_number_of(room + 5),
					 .size = (size_t) room[1] << 8 | room[2],
					 .payload = room };
		assert_true(frame.size <= sizeof room && !client->is_over);
		for (size_t i = 0; i < frame.size; i++)
			room[i] = (uint8_t) h1_hear_byte(client);
		if (frame.stream != 1)
			continue;
		peer_hear_frame(&peer, &frame, &heard);
		heard.is_whole = frame.flags & NGHTTP2_FLAG_END_STREAM &&
				 (frame.type == NGHTTP2_HEADERS || frame.type == NGHTTP2_DATA);
	}
	nghttp2_hd_inflate_del(peer.inflater);
	return heard;
}

static void expect_to_be_told_the_end(struct h1_client *client)
{
	while (h1_hear_more(client))
		client->used = client->size;
	assert_true(was_told_the_end(client));
	h1_leave(client);
}

static void who_agrees_on_http2_and_does_not_speak_it_is_told_the_end(void **state)
{
	struct h1_client client;

	(void) state;
	assert_true(join_tls(&client, "\x02h2"));
	assert_true(h1_say(&client, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"));
	expect_to_be_told_the_end(&client);
}

static void who_speaks_http2_over_tls_is_told_that_it_closes(void **state)
{
	struct h1_client client;
	struct vdi_wait	 closed;

	(void) state;
	assert_true(join_tls(&client, "\x02h2"));
	(void) ask_http2(&client, "GET", "/hello", false);
	vdi_wait_init(&closed, env);
	vdi_rpc_server_close(echo.server, vdi_wait_signal_arg, &closed);
	expect_to_be_told_the_end(&client);
	vdi_wait_wait(&closed);
	vdi_wait_fini(&closed);
	(void) rpc_echo_start(&echo, env, NULL, &(struct vdi_rpc_server_options) { .http = h1_serve }, NULL);
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
		struct h1_client client;
		struct heard	 heard;

		assert_true(join_tls(&client, "\x02h2"));
		heard = ask_http2(&client, cases[i].method, cases[i].path, cases[i].is_open);
		assert_string_equal(heard.http_status, cases[i].status);
		assert_string_equal(heard.type, "text/plain");
		assert_string_equal(heard.data, cases[i].body);
		h1_leave(&client);
	}
}

/* As etcd: whoever shows no certificate gets no further than the handshake, whatever the path. */
static void e153_mutual_tls_is_for_every_path(void **state)
{
	struct h1_client client;

	(void) state;
	if (join_tls(&client, NULL)) { /* with TLS 1.3 the client learns it with the first bytes */
		(void) h1_say(&client, H1_HELLO);
		h1_expect_end(&client);
	}
	h1_leave(&client);
	assert_int_equal(h1_service.requests, 0);
	assert_int_equal(
		SSL_CTX_use_certificate_file(context, rpc_certs_path(&certs, "client.pem"), SSL_FILETYPE_PEM),
		1);
	assert_int_equal(
		SSL_CTX_use_PrivateKey_file(context, rpc_certs_path(&certs, "client.key"), SSL_FILETYPE_PEM),
		1);
	assert_true(join_tls(&client, NULL));
	assert_true(h1_say(&client, H1_HELLO));
	assert_int_equal(h1_hear(&client, true).code, 200);
	h1_leave(&client);
}

#define WITH(test, before, after) cmocka_unit_test_setup_teardown(test, before, after)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(alpn_decides, start_tls, stop_tls),
		WITH(large_answers_over_tls, start_tls, stop_tls),
		WITH(plain_requests_over_http2, start_tls, stop_tls),
		WITH(who_agrees_on_http2_and_does_not_speak_it_is_told_the_end, start_tls, stop_tls),
		WITH(who_speaks_http2_over_tls_is_told_that_it_closes, start_tls, stop_tls),
		WITH(e153_mutual_tls_is_for_every_path, start_mutual, stop_tls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
