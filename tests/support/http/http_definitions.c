#include "http_definitions.h"

#include "await.h"

#include <unistd.h>

struct http_fixture definitions_server;
char		    definitions_file[64];

void definitions_start_server(void)
{
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;

	options.resources_path = definitions_file[0] ? definitions_file : NULL;
	http_fixture_start(&definitions_server, 2, &options);
}

void definitions_restart_server(void)
{
	http_fixture_stop(&definitions_server, VD_SECONDS(0));
	definitions_start_server();
}

int definitions_set_up(void **state)
{
	(void) state;
	http_fixture_init(&definitions_server);
	definitions_start_server();
	return 0;
}

int definitions_tear_down(void **state)
{
	(void) state;
	http_fixture_close(&definitions_server, VD_SECONDS(0));
	if (definitions_file[0])
		(void) unlink(definitions_file);
	definitions_file[0] = 0;
	return 0;
}

void definitions_expect(const char *method, const char *path, const char *headers, const char *body, int code,
			const char *part)
{
	http_expect(definitions_server.port, method, path, headers, body, code, part);
}

char *definitions_get(const char *path, int *ret_code)
{
	return http_ask(definitions_server.port, "GET", path, "", "", ret_code);
}

int definitions_watch_until(const char *path, const char *headers, const char *mark)
{
	int fd = http_open(definitions_server.port, 0);

	http_send_request(fd, "GET", path, headers, "");
	free(http_read_until(fd, mark));
	return fd;
}

void definitions_lack(const char *path, const char *part)
{
	int   code;
	char *text = definitions_get(path, &code);

	assert_int_equal(code, 200);
	assert_null(strstr(text, part));
	free(text);
}

void definitions_await_answer(uint16_t port, const char *path, int code, const char *part, bool is_without)
{
	struct await await = { 0 };

	for (int in_a_row = 0; in_a_row < 3;) {
		int   got;
		char *text = http_ask(port, "GET", path, "", "", &got);

		in_a_row = got == code && (strstr(text, part) == NULL) == is_without ? in_a_row + 1 : 0;
		free(text);
		await_turn(&await, path, __FILE__, __LINE__);
	}
}

void definitions_await(const char *path, int code, const char *part)
{
	definitions_await_answer(definitions_server.port, path, code, part, false);
}

void definitions_await_without(const char *path, const char *part)
{
	definitions_await_answer(definitions_server.port, path, 200, part, true);
}

char *definitions_text(const char *plural, const char *kind, const char *versions, const char *more)
{
	char *text = malloc(strlen(versions) + 1024);

	if (text == NULL)
		abort();
	sprintf(text,
		"{\"apiVersion\":\"apiextensions.k8s.io/"
		"v1\",\"kind\":\"CustomResourceDefinition\",\"metadata\":{\"name\":\"%s.example.com\"},"
		"\"spec\":{"
		"\"group\":\"example.com\",\"scope\":\"Namespaced\",\"names\":{\"plural\":\"%s\",\"kind\":\"%"
		"s\"%s},\"versions\":[%s]}}",
		plural, plural, kind, more, versions);
	return text;
}

void definitions_create(const char *plural, const char *kind, const char *versions, const char *more)
{
	char *text = definitions_text(plural, kind, versions, more);

	definitions_expect("POST", CRDS, JSON, text, 201, "\"storedVersions\":[\"v1\"]");
	free(text);
}

void definitions_await_established(const char *plural)
{
	char path[256];

	sprintf(path, CRDS "/%s.example.com", plural);
	definitions_await(path, 200,
			  "\"reason\":\"InitialNamesAccepted\",\"status\":\"True\",\"type\":\"Established\"");
}

void definitions_make_widgets(void)
{
	definitions_create("widgets", "Widget", V1, ",\"shortNames\":[\"wd\"]");
	definitions_await_established("widgets");
}
