/* Blocking sockets; a connection's thread ends when its socket is shut down. */
#include "kube_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "vdtest.h"

struct connection {
	struct kube_socket *server;
	int		    fd;
};

static long get_bytes(struct kube_socket_call *call, char *place, size_t room)
{
	return call->ssl ? SSL_read(call->ssl, place, (int) room) : recv(call->fd, place, room, 0);
}

bool kube_socket_say(struct kube_socket_call *call, const char *bytes, size_t size)
{
	while (size) {
		size_t part = size < 65536 ? size : 65536;
		long   sent = call->ssl ? SSL_write(call->ssl, bytes, (int) part) :
					  send(call->fd, bytes, part, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (call->ssl == NULL && sent < 0 && errno == EAGAIN) {
			atomic_store(&call->server->is_blocked, true);
			sent = send(call->fd, bytes, part, MSG_NOSIGNAL);
			atomic_store(&call->server->is_blocked, false);
		}
		if (sent <= 0)
			return false;
		bytes += sent;
		size -= (size_t) sent;
	}
	return true;
}

bool kube_socket_say_text(struct kube_socket_call *call, const char *text)
{
	return kube_socket_say(call, text, strlen(text));
}

void kube_socket_wait_for_end(struct kube_socket_call *call)
{
	char waste[4096];

	while (get_bytes(call, waste, sizeof waste) > 0)
		continue;
}

const char *kube_socket_header(const struct kube_socket_call *call, const char *name, char text[256])
{
	const char *line = call->head;
	size_t	    size = strlen(name);

	text[0] = 0;
	while ((line = strchr(line, '\n')) != NULL) {
		line++;
		if (strncasecmp(line, name, size) == 0 && line[size] == ':') {
			snprintf(text, 256, "%.*s", (int) strcspn(line + size + 2, "\r\n"), line + size + 2);
			return text;
		}
	}
	return text;
}

/* Reads byte by byte: tests send little. */
static bool read_head(struct kube_socket_call *call)
{
	size_t size = 0;

	while (size + 1 < sizeof call->head && get_bytes(call, call->head + size, 1) == 1) {
		call->head[++size] = 0;
		if (size >= 4 && strcmp(call->head + size - 4, "\r\n\r\n") == 0)
			return true;
	}
	return false;
}

static bool read_body(struct kube_socket_call *call)
{
	char   text[256];
	long   left = atol(kube_socket_header(call, "Content-Length", text));
	size_t size = 0;

	while (left > 0) {
		long got = get_bytes(call, call->body + size, 1);

		if (got != 1)
			return false;
		size += size + 2 < sizeof call->body;
		left--;
	}
	call->body[size] = 0;
	return true;
}

static bool begin_tls(struct kube_socket_call *call)
{
	if (call->server->tls == NULL)
		return true;
	call->ssl = SSL_new(call->server->tls);
	return call->ssl && SSL_set_fd(call->ssl, call->fd) == 1 && SSL_accept(call->ssl) == 1;
}

static void *serve(void *arg)
{
	struct connection	*connection = arg;
	struct kube_socket	*server = connection->server;
	struct kube_socket_call *call = calloc(1, sizeof *call);

	call->server = server;
	call->fd = connection->fd;
	free(connection);
	if (begin_tls(call))
		while (read_head(call) && read_body(call)) {
			call->number = atomic_fetch_add(&server->requests, 1);
			if (!server->answer(call, server->arg))
				break;
		}
	SSL_free(call->ssl);
	(void) shutdown(call->fd, SHUT_RDWR); /* closed by kube_socket_stop */
	free(call);
	return NULL;
}

static void *accept_all(void *arg)
{
	struct kube_socket *server = arg;
	int		    fd;

	while ((fd = accept(server->listener, NULL, NULL)) >= 0) {
		unsigned	   number = atomic_load(&server->connections);
		struct connection *connection = malloc(sizeof *connection);
		int		   on = 1;

		/* A response in two writes does not wait for the acknowledgement of the first. */
		(void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		KUBE_SOCKET_EXPECT(number < KUBE_SOCKET_CONNECTIONS_MAX);
		*connection = (struct connection) { server, fd };
		server->fds[number] = fd;
		KUBE_SOCKET_EXPECT(pthread_create(&server->threads[number], NULL, serve, connection) == 0);
		atomic_store(&server->connections, number + 1);
	}
	return NULL;
}

static void begin(struct kube_socket *server, kube_socket_answer_fn answer, void *arg,
		  const struct sockaddr *address, socklen_t size)
{
	memset(server, 0, sizeof *server);
	(void) signal(SIGPIPE, SIG_IGN);
	server->answer = answer;
	server->arg = arg;
	server->listener = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(server->listener >= 0);
	assert_int_equal(bind(server->listener, address, size), 0);
	assert_int_equal(listen(server->listener, 64), 0);
}

void kube_socket_start_at(struct kube_socket *server, const char *path, kube_socket_answer_fn answer,
			  void *arg)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	assert_true(strlen(path) < sizeof address.sun_path);
	memcpy(address.sun_path, path, strlen(path));
	begin(server, answer, arg, (struct sockaddr *) &address, sizeof address);
	snprintf(server->url, sizeof server->url, "unix:%s", path);
	assert_int_equal(pthread_create(&server->acceptor, NULL, accept_all, server), 0);
}

void kube_socket_start(struct kube_socket *server, kube_socket_answer_fn answer, void *arg,
		       const char *certificate, const char *key, const char *ca)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t	   size = sizeof address;

	begin(server, answer, arg, (struct sockaddr *) &address, size);
	assert_int_equal(getsockname(server->listener, (struct sockaddr *) &address, &size), 0);
	server->port = ntohs(address.sin_port);
	snprintf(server->url, sizeof server->url, "%s://127.0.0.1:%u", certificate ? "https" : "http",
		 server->port);
	if (certificate) {
		server->tls = SSL_CTX_new(TLS_server_method());
		assert_int_equal(SSL_CTX_use_certificate_file(server->tls, certificate, SSL_FILETYPE_PEM), 1);
		assert_int_equal(SSL_CTX_use_PrivateKey_file(server->tls, key, SSL_FILETYPE_PEM), 1);
	}
	if (ca) {
		assert_int_equal(SSL_CTX_load_verify_locations(server->tls, ca, NULL), 1);
		SSL_CTX_set_verify(server->tls, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	}
	assert_int_equal(pthread_create(&server->acceptor, NULL, accept_all, server), 0);
}

void kube_socket_stop(struct kube_socket *server)
{
	unsigned i;

	atomic_store(&server->is_stopped, true);
	(void) shutdown(server->listener, SHUT_RDWR);
	(void) pthread_join(server->acceptor, NULL);
	(void) close(server->listener);
	for (i = 0; i < atomic_load(&server->connections); i++)
		(void) shutdown(server->fds[i], SHUT_RDWR);
	for (i = 0; i < atomic_load(&server->connections); i++) {
		(void) pthread_join(server->threads[i], NULL);
		(void) close(server->fds[i]);
	}
	SSL_CTX_free(server->tls);
}
