/* A server on a store in memory, in this process, and clients on raw sockets. For tests of apiserver. Every
 * error fails the test. */
#ifndef HTTP_FIXTURE_H
#define HTTP_FIXTURE_H

#include <vedette/server.h>

#include "vdtest.h"

struct http_fixture {
	struct vd_env	 *env;
	struct vd_store	 *store;
	struct vd_server *server;
	uint16_t	  port;
};

/* Environment and store; no server yet. */
void http_fixture_init(struct http_fixture *fixture);
/* A server on a free port of 127.0.0.1, with that many loops. options may be NULL. */
void http_fixture_start(struct http_fixture *fixture, unsigned loops,
			const struct vd_server_options *options);
/* drain: time for its connections to end; 0: none. */
void http_fixture_stop(struct http_fixture *fixture, vd_dur drain);
/* init and start with one loop. */
struct http_fixture http_fixture_open(const struct vd_server_options *options);
/* stop, and the rest. */
void http_fixture_close(struct http_fixture *fixture, vd_dur drain);

uint16_t http_port_of(const struct vd_server *server);
/* Creates a ConfigMap with that name in the namespace default. Its data has that size, and does not compress
 * if random. */
void http_fixture_put(struct http_fixture *fixture, const char *name, size_t size, bool random);

/* ---- Clients ---- */

/* How long the server may say nothing. */
#define HTTP_PATIENCE_MS 240000
#define HTTP_JSON "Content-Type: application/json\r\n"
#define HTTP_MERGE "Content-Type: application/merge-patch+json\r\n"

/* receive_bytes: size of the socket's receive buffer; 0: default. */
int  http_open(uint16_t port, int receive_bytes);
void http_send_bytes(int fd, const void *bytes, size_t size);
/* headers: lines, each with its end. The last one of its connection; or others may follow. */
void http_send_request(int fd, const char *method, const char *path, const char *headers, const char *body);
void http_send_kept_request(int fd, const char *method, const char *path, const char *headers,
			    const char *body);
/* At most that many bytes, when there are some; 0 or less: the end. */
ssize_t http_receive_bytes(int fd, void *bytes, size_t size);
/* Reads until mark, or (NULL) to the end. Returns a NUL-terminated text for the caller to free. */
char *http_read_until(int fd, const char *mark);
/* Returns the code of an answer that begins with text; 0: not an answer. */
int http_code_of(const char *text);
/* Sends a request on its own connection. Returns head and body of the answer for the caller to free. */
char *http_ask(uint16_t port, const char *method, const char *path, const char *headers, const char *body,
	       int *ret_code);
/* Expects that code, and part in the answer. */
void http_expect(uint16_t port, const char *method, const char *path, const char *headers, const char *body,
		 int code, const char *part);

#endif
