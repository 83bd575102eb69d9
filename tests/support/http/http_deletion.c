#include "http_deletion.h"

#include <unistd.h>

struct http_fixture deletion_server;
unsigned	    deletion_loop_count = 2;

void deletion_start_server(bool no_collector)
{
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;

	options.no_garbage_collector = no_collector;
	http_fixture_start(&deletion_server, deletion_loop_count, &options);
}

void deletion_stop_server(void)
{
	http_fixture_stop(&deletion_server, VD_SECONDS(60));
}

int deletion_set_up(void **state)
{
	(void) state;
	http_fixture_init(&deletion_server);
	deletion_start_server(false);
	return 0;
}

int deletion_tear_down(void **state)
{
	(void) state;
	http_fixture_close(&deletion_server, VD_SECONDS(60));
	return 0;
}

char *deletion_ask(const char *method, const char *path, const char *body, int *ret_code)
{
	return http_ask(deletion_server.port, method, path, HTTP_JSON, body, ret_code);
}

void deletion_expect(const char *method, const char *path, const char *body, int code, const char *part)
{
	http_expect(deletion_server.port, method, path, strcmp(method, "PATCH") == 0 ? HTTP_MERGE : HTTP_JSON,
		    body, code, part);
}

void deletion_expect_empty(const char *collection)
{
	int   got;
	char *text = deletion_ask("GET", collection, "", &got);

	if (got != 200 || strstr(text, "\"name\":"))
		print_message("%s: %s\n", collection, text);
	assert_int_equal(got, 200);
	assert_null(strstr(text, "\"name\":"));
	free(text);
}

long long deletion_present_revision(const char *collection)
{
	char	  path[512];
	char	 *text, *at;
	int	  code;
	long long revision;

	(void) snprintf(path, sizeof path, "%s?limit=1", collection);
	text = deletion_ask("GET", path, "", &code);
	assert_int_equal(code, 200);
	at = strstr(text, "\"resourceVersion\":\"");
	assert_non_null(at);
	revision = atoll(at + 19);
	free(text);
	return revision;
}

char *deletion_watch_until(const char *collection, const char *name, long long revision, const char *mark)
{
	char  path[512];
	char *text;
	int   fd = http_open(deletion_server.port, 0);

	(void) snprintf(path, sizeof path,
			"%s?watch=1&fieldSelector=metadata.name%%3D%s&resourceVersion=%.0lld", collection,
			name, revision);
	http_send_request(fd, "GET", path, HTTP_JSON, "");
	text = http_read_until(fd, mark);
	(void) close(fd);
	return text;
}

void deletion_expect_gone(const char *collection, const char *name)
{
	long long revision = deletion_present_revision(collection);
	char	  path[512];
	int	  code;

	(void) snprintf(path, sizeof path, "%s/%s", collection, name);
	free(deletion_ask("GET", path, "", &code));
	if (code != 404)
		free(deletion_watch_until(collection, name, revision, "\"type\":\"DELETED\""));
	deletion_expect("GET", path, "", 404, "NotFound");
}

void deletion_make_namespace(const char *name)
{
	char body[128];

	(void) snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"%s\"}}", name);
	deletion_expect("POST", NS, body, 201, "\"finalizers\":[\"kubernetes\"]");
}
