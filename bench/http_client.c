/* Counts an event by the newline after its object, because the JSON itself has none. */
#include "http_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what)
{
	fprintf(stderr, "bench_http: %s: %s\n", what, strerror(errno));
	exit(1);
}

void http_server_start(struct http_server *server, const char *program, const char *const *arguments)
{
	const char   *all[32] = { program, "serve", "--listen", "127.0.0.1:0", "--log-level", "error" };
	struct rlimit limit;
	char	      text[512];
	size_t	      size = 0;
	int	      output;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void) setrlimit(RLIMIT_NOFILE, &limit);
	}
	for (size_t i = 0; arguments[i] && i < 24; i++)
		all[6 + i] = arguments[i];
	server->pid = measure_spawn(all, &output);
	server->port = 0;
	while (server->port == 0 && size + 1 < sizeof text) {
		ssize_t got = read(output, text + size, sizeof text - 1 - size);
		char   *place;

		if (got <= 0) {
			fprintf(stderr, "bench_http: %s does not start\n", program);
			exit(1);
		}
		size += (size_t) got;
		text[size] = 0;
		place = strchr(text, '\n') ? strstr(text, "http://127.0.0.1:") : NULL;
		if (place)
			server->port = atoi(place + 17);
	}
	/* output stays open: the server may have something to say. */
}

void http_server_stop(struct http_server *server)
{
	kill(server->pid, SIGTERM);
	waitpid(server->pid, NULL, 0);
}

int http_connect(const struct http_server *server)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t) server->port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int		   connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int		   one = 1;

	if (connection < 0 || connect(connection, (struct sockaddr *) &address, sizeof address) != 0)
		die("connect");
	setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return connection;
}

void http_send(int connection, const char *method, const char *path, struct vd_bytes body)
{
	char head[512];
	int  size =
		snprintf(head, sizeof head,
			 "%s %s HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n", method, path);
	struct iovec parts[2] = { { head, 0 }, { (void *) (uintptr_t) body.data, body.size } };

	if (body.size)
		size += snprintf(head + size, sizeof head - (size_t) size,
				 "Content-Type: application/json\r\nContent-Length: %zu\r\n", body.size);
	size += snprintf(head + size, sizeof head - (size_t) size, "\r\n");
	parts[0].iov_len = (size_t) size;
	if (writev(connection, parts, body.size ? 2 : 1) != (ssize_t) (parts[0].iov_len + body.size))
		die("request");
}

void http_receive(int connection)
{
	static char text[65536];
	size_t	    size = 0, head, wanted = 0;
	char	   *end, *length;

	do {
		ssize_t got = read(connection, text + size, sizeof text - 1 - size);

		if (got <= 0)
			die("answer");
		size += (size_t) got;
		text[size] = 0;
	} while ((end = strstr(text, "\r\n\r\n")) == NULL);
	if (strncmp(text, "HTTP/1.1 2", 10) != 0) {
		fprintf(stderr, "bench_http: %.300s\n", text);
		exit(1);
	}
	head = (size_t) (end - text) + 4;
	length = strcasestr(text, "\r\ncontent-length:");
	if (length)
		wanted = head + strtoull(length + 17, NULL, 10);
	while (size < wanted) {
		ssize_t got =
			read(connection, text, wanted - size < sizeof text ? wanted - size : sizeof text);

		if (got <= 0)
			die("answer");
		size += (size_t) got;
	}
}

unsigned http_read_pages(const struct http_server *server, const char *path)
{
	static char text[8 << 20];
	char	    next[2048];
	int	    connection = http_connect(server);
	unsigned    pages = 0;

	snprintf(next, sizeof next, "%s", path);
	for (;;) {
		size_t size = 0;
		char  *token, *end;

		http_send(connection, "GET", next, VD_BYTES_NONE);
		pages++;
		/* Every page ends as a last chunk does, and none is as long as text. */
		while (size < 5 || memcmp(text + size - 5, "0\r\n\r\n", 5) != 0) {
			ssize_t got = read(connection, text + size, sizeof text - 1 - size);

			if (got <= 0)
				die("page");
			size += (size_t) got;
		}
		text[size] = 0;
		token = memmem(text, size, "\"continue\":\"", 12);
		if (token == NULL || (end = strchr(token + 12, '"')) == NULL || end == token + 12)
			break;
		snprintf(next, sizeof next, "%s&continue=%.*s", path, (int) (end - token - 12), token + 12);
	}
	close(connection);
	return pages;
}

/* ---- Watches ---- */

static void count_bytes(struct http_watches *watches, struct http_watch *watch, const char *text, size_t size)
{
	const char *end = text + size;

	if (!watch->header_seen) {
		const char *body = memmem(text, size, "\r\n\r\n", 4);

		if (body == NULL)
			return; /* answers arrive with their header in one piece */
		if (strncmp(text, "HTTP/1.1 200", 12) != 0) {
			fprintf(stderr, "bench_http: %.*s\n", (int) size, text);
			exit(1);
		}
		watch->header_seen = true;
		text = body + 4;
	}
	for (const char *at = text; (at = memchr(at, '\n', (size_t) (end - at))); at++)
		if ((at == text ? watch->last : at[-1]) == '}') {
			watch->events++;
			watches->events++;
		}
	if (end > text)
		watch->last = end[-1];
}

void http_watches_poll(struct http_watches *watches, int timeout_ms)
{
	static char	   text[262144];
	struct epoll_event events[256];
	int		   count = epoll_wait(watches->epoll, events, 256, timeout_ms);

	for (int i = 0; i < count; i++) {
		struct http_watch *watch = &watches->watches[events[i].data.u64];
		ssize_t		   got = read(watch->connection, text, sizeof text);

		if (got == 0 || (got < 0 && errno != EAGAIN)) {
			fprintf(stderr, "bench_http: a watch ended\n");
			exit(1);
		}
		if (got > 0)
			count_bytes(watches, watch, text, (size_t) got);
	}
}

void http_watches_read(struct http_watches *watches, uint64_t events)
{
	while (watches->events < events)
		http_watches_poll(watches, -1);
}

static void format_path(char *path, size_t size, const char *format, size_t number)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(path, size, format, number);
#pragma GCC diagnostic pop
}

void http_watches_open(struct http_watches *watches, const struct http_server *server, const char *path,
		       size_t count)
{
	/* A path of ours holds no percent sign. */
	http_watches_open_each(watches, server, path, count);
}

void http_watches_open_each(struct http_watches *watches, const struct http_server *server,
			    const char *format, size_t count)
{
	size_t waiting = 0;

	*watches = (struct http_watches) { .watches = calloc(count + 1, sizeof *watches->watches),
					   .count = count,
					   .epoll = epoll_create1(EPOLL_CLOEXEC) };
	for (size_t i = 0; i < count; i++) {
		struct http_watch *watch = &watches->watches[i];
		struct epoll_event event = { .events = EPOLLIN, .data.u64 = i };
		char		   path[400];

		format_path(path, sizeof path, format, i);
		watch->connection = http_connect(server);
		http_send(watch->connection, "GET", path, VD_BYTES_NONE);
		fcntl(watch->connection, F_SETFL, O_NONBLOCK);
		epoll_ctl(watches->epoll, EPOLL_CTL_ADD, watch->connection, &event);
		if (i % 64 == 63)
			http_watches_poll(watches, 0);
	}
	do {
		waiting = 0;
		for (size_t i = 0; i < count; i++)
			waiting += !watches->watches[i].header_seen;
		if (waiting)
			http_watches_poll(watches, 1000);
	} while (waiting);
}

void http_watches_close(struct http_watches *watches)
{
	for (size_t i = 0; i < watches->count; i++)
		close(watches->watches[i].connection);
	close(watches->epoll);
	free(watches->watches);
}
