/* A raw HTTP/1.1 client, as cheap as possible, because it shares the processors with the measured server. */
#ifndef BENCH_HTTP_CLIENT_H
#define BENCH_HTTP_CLIENT_H

#include "measure.h"

/* ---- The server, a process of its own ---- */

struct http_server {
	pid_t pid;
	int   port;
};
/* Starts `program serve --listen 127.0.0.1:0 ARGUMENTS` (NULL-terminated) and waits until it is ready. */
void http_server_start(struct http_server *server, const char *program, const char *const *arguments);
void http_server_stop(struct http_server *server);

/* ---- Blocking calls on a connection that is kept ---- */

int http_connect(const struct http_server *server);
/* Sends a request; body may be empty. */
void http_send(int connection, const char *method, const char *path, struct vd_bytes body);
/* Reads one whole answer; ends the program unless its status is in [200, 300). */
void http_receive(int connection);
/* Follows the continue tokens of a list on one connection to its end; returns the number of pages. path holds
 * a query. */
unsigned http_read_pages(const struct http_server *server, const char *path);

/* ---- Many watches at once ---- */

struct http_watch {
	int	 connection;
	bool	 header_seen;
	char	 last; /* byte read */
	uint64_t events;
};
struct http_watches {
	struct http_watch *watches;
	size_t		   count;
	int		   epoll;
	uint64_t	   events; /* of all */
};
/* Opens them on path and waits until each has seen the header of its answer. */
void http_watches_open(struct http_watches *watches, const struct http_server *server, const char *path,
		       size_t count);
/* The same; format is that of a path and takes the number of the watch, a size_t. */
void http_watches_open_each(struct http_watches *watches, const struct http_server *server,
			    const char *format, size_t count);
/* Reads until all of them together have seen that many events. */
void http_watches_read(struct http_watches *watches, uint64_t events);
/* Reads the available data, waiting at most timeout_ms if there is none. */
void http_watches_poll(struct http_watches *watches, int timeout_ms);
void http_watches_close(struct http_watches *watches);

#endif
