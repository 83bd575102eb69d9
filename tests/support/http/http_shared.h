/* One server on a store in memory for all tests of a program, and clients that keep their connection. Every
 * error fails the test. */
#ifndef HTTP_SHARED_H
#define HTTP_SHARED_H

#include "http_fixture.h"
#include "vdtest.h"

/* Data that one client has read and not used yet. */
struct http_client {
	int    fd;
	char  *data;
	size_t size;
	size_t capacity;
};

struct http_answer {
	int   code;
	char *head;
	char *body;
};

extern struct http_fixture http_shared;

int		   http_shared_set_up(void **state);
int		   http_shared_tear_down(void **state);
struct http_client http_client_open(void);
void		   http_client_close(struct http_client *client);
void		   http_client_send(struct http_client *client, const char *text);
/* False at the end of the stream. */
bool  http_client_read_more(struct http_client *client);
char *http_client_read_until(struct http_client *client, const char *mark);
/* NULL for the last chunk. */
char		  *http_client_read_chunk(struct http_client *client);
struct http_answer http_client_read_answer(struct http_client *client);
void		   http_answer_free(struct http_answer *answer);
struct http_answer http_client_request(struct http_client *client, const char *method, const char *path,
				       const char *headers, const char *body);
struct http_answer http_shared_request(const char *method, const char *path, const char *headers,
				       const char *body);
void http_shared_expect(const char *method, const char *path, const char *headers, const char *body, int code,
			const char *part);

#define HTTP_CM "/api/v1/namespaces/default/configmaps"

void http_client_watch(struct http_client *client, const char *query, const char *headers);

#endif
