/* A server with a garbage collector, which a test may start again; namespaces in it, and objects whose end
 * is waited for. Whatever fails fails the test. */
#ifndef HTTP_DELETION_H
#define HTTP_DELETION_H

#include "http_fixture.h"
#include "vdtest.h"

extern struct http_fixture deletion_server;
extern unsigned		   deletion_loop_count;

void  deletion_start_server(bool no_collector);
void  deletion_stop_server(void);
int   deletion_set_up(void **state);
int   deletion_tear_down(void **state);
char *deletion_ask(const char *method, const char *path, const char *body, int *ret_code);
void  deletion_expect(const char *method, const char *path, const char *body, int code, const char *part);
void  deletion_expect_empty(const char *collection);
/* Where the server stands. */
long long deletion_present_revision(const char *collection);
/* What a watch of the object says until mark; revision 0: from its present state on. The caller's. */
char *deletion_watch_until(const char *collection, const char *name, long long revision, const char *mark);
/* Waits for the end of an object that is known to be going, without asking again and again: a watch says
 * it. */
void deletion_expect_gone(const char *collection, const char *name);

#define NS "/api/v1/namespaces"
#define CM(name) NS "/" name "/configmaps"

void deletion_make_namespace(const char *name);

#endif
