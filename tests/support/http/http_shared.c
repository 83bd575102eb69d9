#include "http_shared.h"

#include <unistd.h>

struct http_fixture http_shared;

int http_shared_set_up(void **state)
{
	(void) state;
	http_fixture_init(&http_shared);
	http_fixture_start(&http_shared, 2, NULL);
	return 0;
}

int http_shared_tear_down(void **state)
{
	(void) state;
	http_fixture_close(&http_shared, VD_SECONDS(10));
	return 0;
}

struct http_client http_client_open(void)
{
	return (struct http_client) { .fd = http_open(http_shared.port, 0) };
}

void http_client_close(struct http_client *client)
{
	(void) close(client->fd);
	free(client->data);
	memset(client, 0, sizeof *client);
	client->fd = -1;
}

void http_client_send(struct http_client *client, const char *text)
{
	http_send_bytes(client->fd, text, strlen(text));
}

bool http_client_read_more(struct http_client *client)
{
	ssize_t size;

	if (client->capacity - client->size < 65536) {
		client->capacity = client->capacity * 2 + 131072;
		client->data = realloc(client->data, client->capacity);
	}
	size = http_receive_bytes(client->fd, client->data + client->size,
				  client->capacity - client->size - 1);
	if (size <= 0)
		return false;
	client->size += (size_t) size;
	client->data[client->size] = 0;
	return true;
}

static void use_up(struct http_client *client, size_t size)
{
	client->size -= size;
	memmove(client->data, client->data + size, client->size + 1);
}

char *http_client_read_until(struct http_client *client, const char *mark)
{
	char *found = NULL, *text;

	while (client->size == 0 || (found = strstr(client->data, mark)) == NULL)
		assert_true(http_client_read_more(client));
	found += strlen(mark);
	text = strndup(client->data, (size_t) (found - client->data));
	use_up(client, (size_t) (found - client->data));
	return text;
}

static char *read_exactly(struct http_client *client, size_t size)
{
	char *text;

	while (client->size < size)
		assert_true(http_client_read_more(client));
	text = malloc(size + 1);
	memcpy(text, client->data, size);
	text[size] = 0;
	use_up(client, size);
	return text;
}

char *http_client_read_chunk(struct http_client *client)
{
	char  *line = http_client_read_until(client, "\r\n");
	size_t size = strtoul(line, NULL, 16);
	char  *chunk = read_exactly(client, size), *end = read_exactly(client, 2);

	assert_string_equal(end, "\r\n");
	free(end);
	free(line);
	if (size)
		return chunk;
	free(chunk);
	return NULL;
}

struct http_answer http_client_read_answer(struct http_client *client)
{
	struct http_answer answer = { .head = http_client_read_until(client, "\r\n\r\n") };
	const char	  *length = strstr(answer.head, "Content-Length: ");

	answer.code = http_code_of(answer.head);
	if (length) {
		answer.body = read_exactly(client, strtoul(length + 16, NULL, 10));
	} else if (strstr(answer.head, "Transfer-Encoding: chunked")) {
		size_t size = 0;
		char  *chunk;

		answer.body = calloc(1, 1);
		while ((chunk = http_client_read_chunk(client)) != NULL) {
			answer.body = realloc(answer.body, size + strlen(chunk) + 1);
			strcpy(answer.body + size, chunk);
			size += strlen(chunk);
			free(chunk);
		}
	} else {
		answer.body = calloc(1, 1);
	}
	return answer;
}

void http_answer_free(struct http_answer *answer)
{
	free(answer->head);
	free(answer->body);
}

struct http_answer http_client_request(struct http_client *client, const char *method, const char *path,
				       const char *headers, const char *body)
{
	http_send_kept_request(client->fd, method, path, headers, body);
	return http_client_read_answer(client);
}

struct http_answer http_shared_request(const char *method, const char *path, const char *headers,
				       const char *body)
{
	struct http_client client = http_client_open();
	struct http_answer answer = http_client_request(&client, method, path, headers, body);

	http_client_close(&client);
	return answer;
}

void http_shared_expect(const char *method, const char *path, const char *headers, const char *body, int code,
			const char *part)
{
	struct http_answer answer = http_shared_request(method, path, headers, body);

	if (answer.code != code || strstr(answer.body, part) == NULL)
		print_message("%s %s: %d %s\n", method, path, answer.code, answer.body);
	assert_int_equal(answer.code, code);
	assert_non_null(strstr(answer.body, part));
	http_answer_free(&answer);
}

void http_client_watch(struct http_client *client, const char *query, const char *headers)
{
	char text[600];

	sprintf(text, "GET " HTTP_CM "?watch=1%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", query, headers);
	http_client_send(client, text);
	free(http_client_read_until(client, "\r\n\r\n"));
}
