#include "h1_peer.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "h2_peer.h"
#include "http_fixture.h"

struct h1_service h1_service;

static const char *const methods[] = { "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "OTHER" };

static long number_in(struct vd_bytes text)
{
	char room[16];

	snprintf(room, sizeof room, "%.*s", (int) text.size, (const char *) text.data);
	return atol(room);
}

void h1_serve(void *arg, struct vdi_rpc_http *http)
{
	(void) arg;
	if (vd_bytes_equal(http->path, vd_bytes_of("/hold"))) {
		vdi_lock_acquire(&h1_service.lock);
		assert_null(h1_service.held);
		h1_service.held = http;
		vdi_lock_release(&h1_service.lock);
		atomic_fetch_add(&h1_service.holds, 1);
		return;
	}
	atomic_fetch_add(&h1_service.requests, 1);
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

void h1_start_with(struct vdi_rpc_server_options options)
{
	rpc_fixture_start(NULL);
	memset(&h1_service, 0, sizeof h1_service);
	vdi_lock_init(&h1_service.lock, VDI_LOCK_QUEUE);
	options.http = h1_serve;
	options.threads = 2;
	assert_status(rpc_echo_start(&echo, env, NULL, &options, NULL), VD_OK);
}

int h1_start(void **state)
{
	(void) state;
	h1_start_with((struct vdi_rpc_server_options) { 0 });
	return 0;
}

int h1_stop(void **state)
{
	rpc_echo_stop(&echo, env);
	assert_int_equal(echo.accepted, echo.ended);
	vdi_lock_fini(&h1_service.lock);
	return rpc_fixture_stop(state);
}

void h1_join(struct h1_client *client)
{
	memset(client, 0, sizeof *client);
	client->fd = http_open((uint16_t) atoi(strrchr(rpc_echo_address(&echo), ':') + 1), 0);
}

void h1_leave(struct h1_client *client)
{
	SSL_free(client->ssl);
	close(client->fd);
}

bool h1_say_bytes(struct h1_client *client, const char *bytes, size_t size)
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

bool h1_say(struct h1_client *client, const char *text)
{
	return h1_say_bytes(client, text, strlen(text));
}

bool h1_hear_more(struct h1_client *client)
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

char h1_hear_byte(struct h1_client *client)
{
	if (client->used == client->size && !h1_hear_more(client))
		return 0;
	return client->got[client->used++];
}

struct h1_answer h1_hear(struct h1_client *client, bool has_body)
{
	struct h1_answer answer = { 0 };
	size_t		 size = 0;
	const char	*length;

	while (strstr(answer.head, "\r\n\r\n") == NULL) {
		answer.head[size] = h1_hear_byte(client);
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
		char byte = h1_hear_byte(client);

		assert_false(client->is_over);
		if (i < sizeof answer.body - 1)
			answer.body[i] = byte;
	}
	return answer;
}

void h1_expect_end(struct h1_client *client)
{
	while (h1_hear_more(client))
		assert_int_equal(client->size, 0); /* not a byte */
	assert_true(client->is_over);
}

void h1_expect_hello(struct h1_client *client)
{
	struct h1_answer answer = h1_hear(client, true);

	assert_int_equal(answer.code, 200);
	assert_string_equal(answer.body, "GET /hello?a=b&c\n");
	assert_non_null(strstr(answer.head, "\r\nX-Test: a: b\r\n"));
}

void h1_expect_service(void)
{
	struct peer	 other;
	struct heard	 heard;
	struct h1_client client;

	peer_connect(&other, rpc_echo_address(&echo));
	peer_begin(&other, -1);
	assert_true(peer_request(&other, 1, "/test.Echo/Echo", 0, NULL));
	assert_true(peer_message(&other, 1, "still here", NGHTTP2_FLAG_END_STREAM));
	heard = peer_hear(&other, 1);
	assert_int_equal(heard.status, 0);
	assert_int_equal(heard.data_size, 15);
	peer_close(&other);
	h1_join(&client);
	assert_true(h1_say(&client, H1_HELLO));
	h1_expect_hello(&client);
	h1_leave(&client);
}
