/* A server with a garbage collector, which a test may restart; namespaces in it, and waits for the end of
 * objects. Every error fails the test. */
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
/* Returns the store's current revision. */
long long deletion_present_revision(const char *collection);
/* Returns the events of a watch of the object until mark; revision 0: from its present state on. The caller
 * frees the text. */
char *deletion_watch_until(const char *collection, const char *name, long long revision, const char *mark);
/* Waits for the end of an object that is being deleted, by a watch instead of polling. */
void deletion_expect_gone(const char *collection, const char *name);

#define NS "/api/v1/namespaces"
#define CM(name) NS "/" name "/configmaps"

void deletion_make_namespace(const char *name);

#endif
