#include "http_fixture.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

void http_fixture_init(struct http_fixture *fixture)
{
	struct vd_error error = { 0 };

	memset(fixture, 0, sizeof *fixture);
	assert_status(vd_env_new_threads(NULL, &fixture->env), VD_OK);
	if (vd_store_open_mvcc(fixture->env, NULL, &fixture->store, &error) != VD_OK)
		fail_msg("%s", error.message);
}

void http_fixture_start(struct http_fixture *fixture, unsigned loops, const struct vd_server_options *options)
{
	struct vd_server_options mine = VD_SERVER_OPTIONS_INIT;
	struct vd_error		 error = { 0 };

	if (options)
		mine = *options;
	mine.listen = "127.0.0.1:0";
	mine.threads = loops;
	if (vd_server_new(fixture->env, fixture->store, &mine, &fixture->server, &error) != VD_OK ||
	    vd_server_start(fixture->server, VD_SECONDS(600), &error) != VD_OK)
		fail_msg("%s", error.message);
	fixture->port = http_port_of(fixture->server);
}

void http_fixture_stop(struct http_fixture *fixture, vd_dur drain)
{
	if (drain.ns)
		(void) vd_server_drain(fixture->server, drain); /* the remaining connections are cut */
	fixture->server = vd_server_free(fixture->server);
}

struct http_fixture http_fixture_open(const struct vd_server_options *options)
{
	struct http_fixture fixture;

	http_fixture_init(&fixture);
	http_fixture_start(&fixture, 1, options);
	return fixture;
}

void http_fixture_close(struct http_fixture *fixture, vd_dur drain)
{
	http_fixture_stop(fixture, drain);
	fixture->store = vd_store_close_wait(fixture->store);
	fixture->env = vd_env_free(fixture->env);
}

uint16_t http_port_of(const struct vd_server *server)
{
	return (uint16_t) atoi(strrchr(vd_server_address(server), ':') + 1);
}

void http_fixture_put(struct http_fixture *fixture, const char *name, size_t size, bool random)
{
	char	       *body = malloc(size + 300), key[64];
	static uint32_t seed = 1;
	size_t		used;

	assert_non_null(body);
	used = (size_t) snprintf(body, 300,
				 "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%"
				 "s\",\"namespace\":\"default\"},\"data\":{\"x\":\"",
				 name);
	for (size_t i = 0; i < size; i++) {
		seed = seed * 1664525 + 1013904223;
		body[used++] =
			random ? "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[seed >>
												    26] :
				 'x';
	}
	used += (size_t) sprintf(body + used, "\"}}");
	(void) snprintf(key, sizeof key, "/registry/configmaps/default/%s", name);
	assert_status(vd_store_put_wait(fixture->store, vd_bytes_of(key), (struct vd_bytes) { body, used },
					NULL, NULL),
		      VD_OK);
	free(body);
}

/* ---- Clients ---- */

int http_open(uint16_t port, int receive_bytes)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int		   fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	if (receive_bytes)
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes),
				 0);
	assert_int_equal(connect(fd, (struct sockaddr *) &address, sizeof address), 0);
	return fd;
}

void http_send_bytes(int fd, const void *bytes, size_t size)
{
	for (const char *at = bytes; size;) {
		ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);

		assert_true(sent > 0);
		at += sent;
		size -= (size_t) sent;
	}
}

void http_send_kept_request(int fd, const char *method, const char *path, const char *headers,
			    const char *body)
{
	char *text;
	int   size = asprintf(&text, "%s %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %zu\r\n\r\n%s",
			      method, path, headers, strlen(body), body);

	assert_true(size > 0);
	http_send_bytes(fd, text, (size_t) size);
	free(text);
}

void http_send_request(int fd, const char *method, const char *path, const char *headers, const char *body)
{
	char all[1024];

	assert_true((size_t) snprintf(all, sizeof all, "Connection: close\r\n%s", headers) < sizeof all);
	http_send_kept_request(fd, method, path, all, body);
}

ssize_t http_receive_bytes(int fd, void *bytes, size_t size)
{
	struct pollfd waiting = { fd, POLLIN, 0 };

	assert_int_equal(poll(&waiting, 1, HTTP_PATIENCE_MS), 1);
	return recv(fd, bytes, size, 0);
}

char *http_read_until(int fd, const char *mark)
{
	size_t	size = 0, capacity = 65536;
	char   *text = calloc(1, capacity);
	ssize_t taken;

	while (mark == NULL || strstr(text, mark) == NULL) {
		if (capacity - size < 32768)
			text = realloc(text, capacity *= 2);
		taken = http_receive_bytes(fd, text + size, capacity - size - 1);
		if (taken <= 0 && mark)
			fail_msg("no %s in: %s", mark, text);
		if (taken <= 0)
			break;
		size += (size_t) taken;
		text[size] = 0;
	}
	return text;
}

int http_code_of(const char *text)
{
	return strncmp(text, "HTTP/1.1 ", 9) == 0 ? atoi(text + 9) : 0;
}

char *http_ask(uint16_t port, const char *method, const char *path, const char *headers, const char *body,
	       int *ret_code)
{
	int   fd = http_open(port, 0);
	char *text;

	http_send_request(fd, method, path, headers, body);
	text = http_read_until(fd, NULL);
	(void) close(fd);
	*ret_code = http_code_of(text);
	return text;
}

void http_expect(uint16_t port, const char *method, const char *path, const char *headers, const char *body,
		 int code, const char *part)
{
	int   got;
	char *text = http_ask(port, method, path, headers, body, &got);

	if (got != code || strstr(text, part) == NULL)
		fail_msg("%s %s: %s", method, path, text);
	free(text);
}
