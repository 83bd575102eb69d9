/* Compressed answers: for which clients, that their content is equal to plain ones, and that neither
 * long answers nor slow readers affect other clients. */
#include <poll.h>
#include <unistd.h>
#include <vedette/vedette.h>
#include <zlib.h>

#include "alloc.h"
#include "http_fixture.h"
#include "http_gzip.h"
#include "http_server.h"

#define TEXT_MAX (24 << 20)
#define CM "/api/v1/namespaces/default/configmaps"
#define GZIP "Accept-Encoding: gzip\r\n"
#define TABLE "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n"
#define METADATA "Accept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io\r\n"

/* ---- The client ---- */

static void send_request(int fd, const char *request, const char *headers)
{
	char text[1024];
	int  size = snprintf(text, sizeof text, "%s\r\nHost: localhost\r\n%s\r\n", request, headers);

	http_send_bytes(fd, text, (size_t) size);
}

struct answer {
	char  *head; /* NUL-terminated */
	char  *body; /* without chunk framing */
	size_t size;
	bool   is_whole;
};

static char text[TEXT_MAX + 1];

/* Returns true if text[0..size) is a whole answer; then removes the chunk framing. */
static bool take_apart(size_t size, struct answer *answer)
{
	char *end = memmem(text, size, "\r\n\r\n", 4), *at, *to, *length;

	if (end == NULL)
		return false;
	*end = 0;
	answer->head = text;
	answer->body = to = at = end + 4;
	if ((length = strstr(text, "Content-Length: ")) != NULL) {
		answer->size = strtoul(length + 16, NULL, 10);
		if (size - (size_t) (at - text) >= answer->size)
			return true;
	} else if (strstr(text, "Transfer-Encoding: chunked") && size >= 5 &&
		   memcmp(text + size - 5, "0\r\n\r\n", 5) == 0) {
		for (;;) {
			size_t chunk = strtoul(at, &at, 16);

			assert_memory_equal(at, "\r\n", 2);
			at += 2;
			if (chunk == 0)
				break;
			assert_true(at + chunk + 2 <= text + size);
			memmove(to, at, chunk);
			to += chunk;
			at += chunk;
			assert_memory_equal(at, "\r\n", 2);
			at += 2;
		}
		assert_ptr_equal(at + 2, text + size);
		answer->size = (size_t) (to - answer->body);
		return true;
	}
	*end = '\r';
	return false;
}

/* If the connection ends without a whole answer, returns at least the head. */
static struct answer read_answer(int fd)
{
	struct answer answer = { 0 };
	size_t	      size = 0;

	for (;;) {
		ssize_t got = http_receive_bytes(fd, text + size, TEXT_MAX - size);

		if (got <= 0)
			break;
		size += (size_t) got;
		text[size] = 0;
		/* The end of a chunked answer cannot occur inside it here: contents have no such line ends,
		 * or are compared as a whole. */
		if (take_apart(size, &answer)) {
			answer.is_whole = true;
			return answer;
		}
	}
	answer.head = text;
	answer.size = size;
	return answer;
}

static struct answer ask(const struct http_fixture *world, const char *request, const char *headers)
{
	int	      fd = http_open(world->port, 0);
	struct answer answer;

	send_request(fd, request, headers);
	answer = read_answer(fd);
	close(fd);
	return answer;
}

static bool is_gzip(const struct answer *answer)
{
	bool encoded = strstr(answer->head, "\r\nContent-Encoding: gzip") != NULL;

	assert_int_equal(encoded, strstr(answer->head, "\r\nVary: Accept-Encoding") != NULL);
	return encoded;
}

/* Returns the uncompressed content; free it. */
static char *unpack(const struct answer *answer, size_t *ret_size)
{
	char	*content = malloc(TEXT_MAX);
	z_stream stream = { .next_in = (Bytef *) answer->body,
			    .avail_in = (uInt) answer->size,
			    .next_out = (Bytef *) content,
			    .avail_out = TEXT_MAX };

	assert_true(is_gzip(answer));
	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	assert_int_equal(stream.avail_in, 0);
	*ret_size = stream.total_out;
	inflateEnd(&stream);
	return content;
}

/* ---- The content ---- */

static void put(struct http_fixture *world, unsigned number, size_t size, bool random)
{
	char name[16];

	(void) snprintf(name, sizeof name, "c%u", number);
	http_fixture_put(world, name, size, random);
}

/* Checks that the answer is equal with and without gzip, and whether the former is compressed. */
static void assert_same(const struct http_fixture *world, const char *request, const char *headers,
			bool is_compressed)
{
	struct answer answer = ask(world, request, headers);
	char	     *plain = malloc(answer.size), *content, with[256];
	size_t	      plain_size = answer.size, size;

	assert_true(answer.is_whole);
	assert_false(is_gzip(&answer));
	memcpy(plain, answer.body, plain_size);
	snprintf(with, sizeof with, "%s%s", headers, GZIP);
	answer = ask(world, request, with);
	assert_true(answer.is_whole);
	assert_int_equal(http_code_of(answer.head), 200);
	if (is_gzip(&answer) != is_compressed || is_compressed != (plain_size > VDI_GZIP_THRESHOLD))
		fail_msg("%s, %s: %zu bytes: %s", request, headers, plain_size, answer.head);
	if (is_compressed) {
		assert_null(strstr(answer.head, "Content-Length"));
		assert_true(answer.size < plain_size);
		content = unpack(&answer, &size);
		assert_int_equal(size, plain_size);
		assert_memory_equal(content, plain, size);
		free(content);
	} else {
		assert_int_equal(answer.size, plain_size);
		assert_memory_equal(answer.body, plain, plain_size);
	}
	free(plain);
}

static void r647_h308_long_answers_are_compressed_for_who_asks(void **state)
{
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;
	struct http_fixture	 world = http_fixture_open(&options);
	static const char *const refused[] = { "",
					       "Accept-Encoding: gzip;q=0\r\n",
					       "Accept-Encoding: GZIP\r\n",
					       "Accept-Encoding: *\r\n",
					       "Accept-Encoding:\r\n",
					       "Accept-Encoding: br, deflate\r\n",
					       "Accept-Encoding: identity\r\nAccept-Encoding: gzip\r\n",
					       "Accept-Encoding: ,;=,\"gzip\"\r\n" };
	struct answer		 answer;
	char			*content;
	size_t			 size;
	int			 fd;

	for (unsigned i = 0; i < 1300; i++)
		put(&world, i, 300 + i, i % 2);
	assert_same(&world, "GET " CM " HTTP/1.1", "", true);
	assert_same(&world, "GET " CM "?limit=3 HTTP/1.1", "", false);
	assert_same(&world, "GET " CM "?limit=400 HTTP/1.1", "", true);
	assert_same(&world, "GET " CM "?pretty=true HTTP/1.1", "", true);
	assert_same(&world, "GET " CM " HTTP/1.1", METADATA, true);
	assert_same(&world, "GET " CM "?limit=9 HTTP/1.1", METADATA, false);
	assert_same(&world, "GET " CM "?fieldSelector=metadata.name=c1 HTTP/1.1", TABLE, false);
	assert_same(&world, "GET " CM " HTTP/1.1", "Accept: application/vnd.kubernetes.protobuf\r\n", true);
	assert_same(&world, "GET " CM " HTTP/1.1",
		    "Accept: "
		    "application/"
		    "vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/"
		    "json\r\n",
		    false);
	assert_same(&world, "GET " CM "/c1 HTTP/1.1", "", false);
	put(&world, 1, 200000, true);
	assert_same(&world, "GET " CM "/c1 HTTP/1.1", "", true);
	assert_same(&world, "GET " CM "/c1?pretty=true HTTP/1.1", "", true);
	/* Ages in a table change, so only some of the content is compared. */
	answer = ask(&world, "GET " CM " HTTP/1.1", TABLE GZIP);
	content = unpack(&answer, &size);
	assert_true(size > VDI_GZIP_THRESHOLD);
	assert_memory_equal(content, "{\"kind\":\"Table\"", 15);
	assert_memory_equal(content + size - 3, "]}\n", 3);
	free(content);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(refused); i++) {
		answer = ask(&world, "GET " CM " HTTP/1.1", refused[i]);
		assert_true(answer.is_whole);
		assert_false(is_gzip(&answer));
		assert_memory_equal(answer.body, "{\"kind\":\"ConfigMapList\"", 23);
	}
	/* No chunks in HTTP/1.0. */
	answer = ask(&world, "GET " CM " HTTP/1.0", GZIP);
	assert_false(is_gzip(&answer));
	/* The connection stays open. */
	fd = http_open(world.port, 0);
	for (int i = 0; i < 3; i++) {
		send_request(fd, "GET " CM " HTTP/1.1", GZIP);
		answer = read_answer(fd);
		assert_true(answer.is_whole);
		content = unpack(&answer, &size);
		assert_memory_equal(content + size - 3, "]}\n", 3);
		free(content);
		send_request(fd, "GET " CM "/c2 HTTP/1.1", GZIP);
		answer = read_answer(fd);
		assert_true(answer.is_whole);
		assert_false(is_gzip(&answer));
	}
	close(fd);
	http_fixture_close(&world, VD_SECONDS(1));
}

static void r647_the_threshold_is_met_exactly(void **state)
{
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;
	struct http_fixture	 world = http_fixture_open(&options);
	size_t			 size = 131072 - 4000;
	struct answer		 answer;

	for (unsigned i = 0; i < 15; i++)
		put(&world, 0, 1, false); /* so that no revision gets one more digit below */
	put(&world, 1, 3000, true);
	for (int i = 0; i < 2; i++) {
		put(&world, 0, size, false);
		answer = ask(&world, "GET " CM " HTTP/1.1", "");
		size += 131072 - answer.size;
	}
	assert_int_equal(answer.size, 131072);
	assert_same(&world, "GET " CM " HTTP/1.1", "", false);
	put(&world, 0, size + 1, false);
	assert_same(&world, "GET " CM " HTTP/1.1", "", true);
	http_fixture_close(&world, VD_SECONDS(1));
}

static void r647_it_can_be_switched_off(void **state)
{
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;
	struct http_fixture	 world;
	struct answer		 answer;

	assert_false(options.no_compression);
	options.no_compression = true;
	world = http_fixture_open(&options);
	put(&world, 1, 200000, false);
	answer = ask(&world, "GET " CM " HTTP/1.1", GZIP);
	assert_true(answer.is_whole);
	assert_false(is_gzip(&answer));
	answer = ask(&world, "GET " CM "/c1 HTTP/1.1", GZIP);
	assert_false(is_gzip(&answer));
	http_fixture_close(&world, VD_SECONDS(1));
}

static void fill(struct http_fixture *world, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		put(world, i, 100000, true);
}

/* Waits for the head only. */
static bool begins_with_gzip(int fd)
{
	size_t size = 0;

	do {
		ssize_t got = http_receive_bytes(fd, text + size, 4000);

		assert_true(got > 0);
		size += (size_t) got;
		text[size] = 0;
	} while (strstr(text, "\r\n\r\n") == NULL);
	return strstr(text, "Content-Encoding: gzip") != NULL;
}

/* Slow readers keep their encoders; there are at most VDI_GZIP_LOOP_MAX, and other clients get plain
 * answers. */
static void encoders_are_bounded(void **state)
{
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;
	struct http_fixture	 world;
	int			 stalled[VDI_GZIP_LOOP_MAX];
	struct answer		 answer;

	options.client_request_count_max = VDI_GZIP_LOOP_MAX + 10;
	world = http_fixture_open(&options);
	fill(&world, 120);
	for (int i = 0; i < VDI_GZIP_LOOP_MAX; i++) {
		stalled[i] = http_open(world.port, 4096);
		send_request(stalled[i], "GET " CM " HTTP/1.1", GZIP);
		assert_true(begins_with_gzip(stalled[i]));
	}
	answer = ask(&world, "GET " CM " HTTP/1.1", GZIP);
	assert_true(answer.is_whole);
	assert_false(is_gzip(&answer));
	close(stalled[0]);
	do
		answer = ask(&world, "GET " CM " HTTP/1.1", GZIP);
	while (!is_gzip(&answer));
	assert_true(answer.is_whole);
	for (int i = 1; i < VDI_GZIP_LOOP_MAX; i++)
		close(stalled[i]);
	http_fixture_close(&world, VD_SECONDS(1));
}

/* One loop makes as many lists as there are encoders, as fast as they are read. A small request is answered
 * meanwhile, long before the first list is complete. One thread reads everything, so the order of arrival is
 * that of sending. */
static void long_lists_hold_up_nobody(void **state)
{
	enum { LISTS = VDI_GZIP_LOOP_MAX };
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;
	struct http_fixture	 world = http_fixture_open(&options);
	static char		 piece[65536];
	struct pollfd		 waiting[LISTS + 1];
	size_t			 read_bytes = 0, little_bytes = 0;
	int			 little;

	fill(&world, 120);
	for (int i = 0; i < LISTS; i++) {
		waiting[i] = (struct pollfd) { http_open(world.port, 16384), POLLIN, 0 };
		send_request(waiting[i].fd, "GET " CM " HTTP/1.1", GZIP);
		assert_true(begins_with_gzip(waiting[i].fd)); /* it continues until its socket is full */
	}
	little = http_open(world.port, 0);
	waiting[LISTS] = (struct pollfd) { little, POLLIN, 0 };
	send_request(little, "GET " CM "?limit=1&resourceVersion=0 HTTP/1.1",
		     "Accept-Encoding: identity\r\n");
	while (little_bytes < 100000) {
		assert_true(poll(waiting, LISTS + 1, HTTP_PATIENCE_MS) > 0);
		for (int i = LISTS; i >= 0; i--) {
			ssize_t got;

			if (waiting[i].revents == 0)
				continue;
			got = recv(waiting[i].fd, piece, sizeof piece, 0);
			assert_true(got > 0);
			if (i == LISTS) {
				little_bytes += (size_t) got;
				continue;
			}
			read_bytes += (size_t) got;
			if (got >= 5 && memcmp(piece + got - 5, "0\r\n\r\n", 5) == 0)
				fail_msg("list %d of %d is over after %zu KiB of all, %zu bytes of the other",
					 i, LISTS, read_bytes >> 10, little_bytes);
		}
	}
	print_message("[ %zu KiB of lists before it ]\n", read_bytes >> 10);
	for (int i = 0; i <= LISTS; i++)
		close(waiting[i].fd);
	http_fixture_close(&world, VD_SECONDS(1));
}

/* an answer that has begun and is not complete in time is cut off. */
static void r652_an_answer_that_is_not_read_is_cut(void **state)
{
	static const char *const headers[] = { "", GZIP };
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;
	struct http_fixture	 world = http_fixture_open(&options);

	fill(&world, 120);
	for (int i = 0; i < 2; i++) {
		int	      fd = http_open(world.port, 4096);
		struct answer answer;

		send_request(fd, "GET " CM "?timeout=200ms HTTP/1.1", headers[i]);
		assert_int_equal(begins_with_gzip(fd), i == 1);
		while (world.server->connections_open)
			continue;
		answer = read_answer(fd);
		assert_false(answer.is_whole);
		close(fd);
	}
	http_fixture_close(&world, VD_SECONDS(1));
}

/* Each allocation of such an answer fails in turn: the answer is complete, or an error, or cut, and the
 * server continues. */
static void without_memory_an_answer_is_plain_or_none(void **state)
{
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;
	struct http_fixture	 world = http_fixture_open(&options);
	unsigned		 packed = 0, plain = 0, other = 0;

	put(&world, 1, 200000, false);
	for (uint64_t nth = 1; nth < 60; nth++) {
		struct answer answer;
		char	     *content;
		size_t	      size;

		(void) vdi_alloc_fail_nth(nth, 1);
		answer = ask(&world, nth % 2 ? "GET " CM " HTTP/1.1" : "GET " CM "/c1 HTTP/1.1", GZIP);
		(void) vdi_alloc_fail_nth(0, 0);
		if (!answer.is_whole || http_code_of(answer.head) != 200) {
			other++;
			continue;
		}
		if (!is_gzip(&answer)) {
			plain++;
			continue;
		}
		content = unpack(&answer, &size);
		assert_true(size > 200000);
		free(content);
		packed++;
	}
	assert_true(packed > 0 && plain > 0 && other > 0);
	assert_same(&world, "GET " CM " HTTP/1.1", "", true);
	http_fixture_close(&world, VD_SECONDS(1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r647_h308_long_answers_are_compressed_for_who_asks),
		cmocka_unit_test(r647_the_threshold_is_met_exactly),
		cmocka_unit_test(r647_it_can_be_switched_off),
		cmocka_unit_test(encoders_are_bounded),
		cmocka_unit_test(long_lists_hold_up_nobody),
		cmocka_unit_test(r652_an_answer_that_is_not_read_is_cut),
		cmocka_unit_test(without_memory_an_answer_is_plain_or_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
