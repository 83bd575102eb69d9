/* A service of plain requests beside the echo service of calls, on one port, and a client that sends raw
 * bytes to it, with or without TLS. */
#ifndef H1_PEER_H
#define H1_PEER_H

#include <openssl/ssl.h>

#include "env.h"
#include "lock.h"
#include "rpc_fixture.h"
#include "vdtest.h"

/* The service:
 *
 * /hello   answers with the request
 * /big     answers with as many bytes as the query says
 * /hold    is answered when the test releases it
 * /close   closes the connection
 * others   404
 */
struct h1_service {
	struct vdi_lock	     lock;
	struct vdi_rpc_http *held;
	_Atomic uint64_t     holds;
	_Atomic uint64_t     requests;
};

extern struct h1_service h1_service;

void h1_serve(void *arg, struct vdi_rpc_http *http);
void h1_start_with(struct vdi_rpc_server_options options);
int  h1_start(void **state);
int  h1_stop(void **state);

struct h1_client {
	int    fd;
	SSL   *ssl;
	char   got[1 << 16];
	size_t size;
	size_t used;
	bool   is_over;
};

void h1_join(struct h1_client *client);
void h1_leave(struct h1_client *client);
bool h1_say_bytes(struct h1_client *client, const char *bytes, size_t size);
bool h1_say(struct h1_client *client, const char *text);
/* False at the end. */
bool h1_hear_more(struct h1_client *client);

struct h1_answer {
	int    code; /* 0: no answer */
	char   head[1024];
	char   body[512]; /* cut */
	size_t body_size;
};

char		 h1_hear_byte(struct h1_client *client);
struct h1_answer h1_hear(struct h1_client *client, bool has_body);
void		 h1_expect_end(struct h1_client *client);
void		 h1_expect_hello(struct h1_client *client);

#define H1_HELLO "GET /hello?a=b&c HTTP/1.1\r\nHost: x\r\n\r\n"

/* Checks that other clients are still served: calls, and requests. */
void h1_expect_service(void);

#endif
