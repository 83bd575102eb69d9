/* An HTTP server on a real socket of this machine, whose answers a test writes byte by byte.
 *
 * Each connection has a thread, which reads requests and calls answer for each. Unless answer returns true,
 * the connection is closed after it. */
#ifndef KUBE_SOCKET_H
#define KUBE_SOCKET_H

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define KUBE_SOCKET_CONNECTIONS_MAX 160

/* For answer, which runs on other threads than cmocka's: ends the process if the condition is false. */
#define KUBE_SOCKET_EXPECT(condition)                                                                        \
	do {                                                                                                 \
		if (!(condition)) {                                                                          \
			(void) fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);               \
			abort();                                                                             \
		}                                                                                            \
	} while (0)

struct kube_socket_call {
	struct kube_socket *server;
	int		    fd;
	SSL		   *ssl;	 /* NULL: plain */
	unsigned	    number;	 /* of the request, from 0, over all connections */
	char		    head[16384]; /* NUL-terminated */
	char		    body[4096];	 /* NUL-terminated, cut */
};

typedef bool (*kube_socket_answer_fn)(struct kube_socket_call *call, void *arg);

struct kube_socket {
	int		      listener;
	unsigned	      port;
	SSL_CTX		     *tls; /* NULL: plain */
	kube_socket_answer_fn answer;
	void		     *arg;
	pthread_t	      acceptor, threads[KUBE_SOCKET_CONNECTIONS_MAX];
	int		      fds[KUBE_SOCKET_CONNECTIONS_MAX];
	_Atomic unsigned      connections, requests;
	_Atomic bool	      is_stopped;
	_Atomic bool	      is_blocked; /* the last kube_socket_say waits for the client */
	char		      url[128];	  /* http://127.0.0.1:PORT, https://..., unix:PATH */
};

/* certificate, key, ca: PEM files for TLS, or NULL. With ca, clients must have a certificate of it. */
void kube_socket_start(struct kube_socket *server, kube_socket_answer_fn answer, void *arg,
		       const char *certificate, const char *key, const char *ca);
/* Listens on a new Unix socket at path. */
void kube_socket_start_at(struct kube_socket *server, const char *path, kube_socket_answer_fn answer,
			  void *arg);
/* Closes all connections and waits for the threads. */
void kube_socket_stop(struct kube_socket *server);

/* False: the client has closed the connection. */
bool kube_socket_say(struct kube_socket_call *call, const char *bytes, size_t size);
bool kube_socket_say_text(struct kube_socket_call *call, const char *text);
/* Returns when the client has closed the connection, or the server is stopped. */
void kube_socket_wait_for_end(struct kube_socket_call *call);
/* Returns the value of a header of the request in text; empty: there is none. */
const char *kube_socket_header(const struct kube_socket_call *call, const char *name, char text[256]);

#endif
