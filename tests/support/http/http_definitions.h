/* A server in this process with CustomResourceDefinitions, and waits for answers. Every error fails the
 * test. */
#ifndef HTTP_DEFINITIONS_H
#define HTTP_DEFINITIONS_H

#include "http_fixture.h"
#include "vdtest.h"

#define CRDS "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#define ANYTHING                                                                                             \
	"\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":"     \
	"true}}"
#define V1 "{\"name\":\"v1\",\"served\":true,\"storage\":true," ANYTHING "}"

extern struct http_fixture definitions_server;
extern char		   definitions_file[64]; /* "": none */

void definitions_start_server(void);
void definitions_restart_server(void);
int  definitions_set_up(void **state);
int  definitions_tear_down(void **state);

#define JSON HTTP_JSON
#define MERGE HTTP_MERGE
#define TABLE "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n"

void definitions_expect(const char *method, const char *path, const char *headers, const char *body, int code,
			const char *part);
/* Returns the answer to a GET. */
char *definitions_get(const char *path, int *ret_code);
/* Opens a watch and reads it until mark. */
int  definitions_watch_until(const char *path, const char *headers, const char *mark);
void definitions_lack(const char *path, const char *part);
/* Repeats a request until all loops answer with that code, with part or (is_without) without it; connections
 * are distributed in turn. */
void definitions_await_answer(uint16_t port, const char *path, int code, const char *part, bool is_without);
void definitions_await(const char *path, int code, const char *part);
void definitions_await_without(const char *path, const char *part);
/* versions: the list's content; more: members of names. */
char *definitions_text(const char *plural, const char *kind, const char *versions, const char *more);
void  definitions_create(const char *plural, const char *kind, const char *versions, const char *more);
void  definitions_await_established(const char *plural);

#define WIDGETS(version) "/apis/example.com/" version "/namespaces/default/widgets"
#define WIDGET(version, name, more)                                                                          \
	"{\"apiVersion\":\"example.com/" version "\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"" name     \
	"\"}" more "}"

void definitions_make_widgets(void);

#endif
