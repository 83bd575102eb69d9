/* Compressed watch lists: for which clients, that each chunk is one complete member with the content
 * of a plain watch, without delay, and that neither long objects, nor slow readers, nor a thousand of them
 * affect other clients. */
#include <poll.h>
#include <unistd.h>
#include <vedette/vedette.h>
#include <zlib.h>

#include "alloc.h"
#include "http_fixture.h"
#include "http_gzip.h"
#include "http_server.h"

#define CM "/api/v1/namespaces/default/configmaps"
#define STATE "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
#define GZIP "Accept-Encoding: gzip\r\n"
#define TABLE "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n"
#define METADATA "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io\r\n"
#define PROTOBUF "Accept: application/vnd.kubernetes.protobuf\r\n"
#define END "k8s.io/initial-events-end"

/* ---- The client ---- */

struct watch {
	int    fd;
	char   head[1024];
	bool   is_gzip;
	char  *input; /* received and not parsed */
	size_t input_size;
	char  *text; /* content of the chunks */
	size_t text_size, text_taken;
	size_t chunks, chunk_max;	/* their number, and the largest uncompressed size */
	size_t chunk_bytes, chunk_size; /* of the last one, compressed and uncompressed */
	bool   is_over;			/* the last chunk arrived */
	bool   is_cut;			/* the connection ended before */
};

/* Receives more; false: the server has ended the stream. */
static bool receive(struct watch *watch)
{
	ssize_t got;

	watch->input = realloc(watch->input, watch->input_size + 65537);
	got = http_receive_bytes(watch->fd, watch->input + watch->input_size, 65536);
	if (got <= 0)
		return false;
	watch->input_size += (size_t) got;
	watch->input[watch->input_size] = 0;
	return true;
}

static void drop_input(struct watch *watch, size_t size)
{
	watch->input_size -= size;
	memmove(watch->input, watch->input + size, watch->input_size);
	watch->input[watch->input_size] = 0;
}

static struct watch *watch_open(const struct http_fixture *world, const char *query, const char *headers,
				int receive_bytes)
{
	struct watch *watch = calloc(1, sizeof *watch);
	char	      request[1024], *end;
	int size = snprintf(request, sizeof request, "GET " CM "%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
			    query, headers);

	watch->fd = http_open(world->port, receive_bytes);
	http_send_bytes(watch->fd, request, (size_t) size);
	do {
		if (!receive(watch)) {
			watch->is_cut = true;
			return watch;
		}
		end = memmem(watch->input, watch->input_size, "\r\n\r\n", 4);
	} while (end == NULL);
	assert_true((size_t) (end - watch->input) < sizeof watch->head);
	memcpy(watch->head, watch->input, (size_t) (end - watch->input));
	watch->is_gzip = strstr(watch->head, "\r\nContent-Encoding: gzip") != NULL;
	assert_int_equal(watch->is_gzip, strstr(watch->head, "\r\nVary: Accept-Encoding") != NULL);
	drop_input(watch, (size_t) (end - watch->input) + 4);
	return watch;
}

static void watch_close(struct watch *watch)
{
	close(watch->fd);
	free(watch->input);
	free(watch->text);
	free(watch);
}

/* Appends content, whose maximum uncompressed size is known. */
static void take_content(struct watch *watch, char *content, size_t size)
{
	const size_t room = 8 << 20;
	z_stream stream = { .next_in = (Bytef *) content, .avail_in = (uInt) size, .avail_out = (uInt) room };

	watch->text = realloc(watch->text, watch->text_size + (watch->is_gzip ? room : size) + 1);
	if (watch->is_gzip) {
		stream.next_out = (Bytef *) watch->text + watch->text_size;
		assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
		assert_int_equal(inflate(&stream, Z_FINISH),
				 Z_STREAM_END);	      /* complete, with the right checksum */
		assert_int_equal(stream.avail_in, 0); /* and nothing after it */
		size = stream.total_out;
		inflateEnd(&stream);
		assert_true(size > 0);
	} else {
		memcpy(watch->text + watch->text_size, content, size);
	}
	watch->text_size += size;
	watch->text[watch->text_size] = 0;
	watch->chunks++;
	watch->chunk_size = size;
	watch->chunk_max = VDI_MAX(watch->chunk_max, size);
}

/* Takes one more chunk, which must arrive. False: that was the last one, or the connection ended. */
static bool take_chunk(struct watch *watch)
{
	for (;;) {
		char *line_end =
			     watch->input_size ? memmem(watch->input, watch->input_size, "\r\n", 2) : NULL,
		     *end;
		size_t size = line_end ? strtoul(watch->input, &end, 16) : 0, from;

		if (line_end) {
			assert_ptr_equal(end, line_end);
			from = (size_t) (line_end - watch->input) + 2;
			if (watch->input_size >= from + size + 2) {
				assert_memory_equal(watch->input + from + size, "\r\n", 2);
				if (size)
					take_content(watch, watch->input + from, size);
				watch->chunk_bytes = size;
				watch->is_over = size == 0;
				drop_input(watch, from + size + 2);
				return size > 0;
			}
		}
		if (!receive(watch)) {
			watch->is_cut = true;
			return false;
		}
	}
}

/* Returns the next event, NUL-terminated and valid until the next call; NULL: there is none. */
static const char *next_line(struct watch *watch)
{
	char *line, *end;

	while (watch->text_size == watch->text_taken ||
	       (end = memchr(watch->text + watch->text_taken, '\n', watch->text_size - watch->text_taken)) ==
		       NULL)
		if (!take_chunk(watch))
			return NULL;
	line = watch->text + watch->text_taken;
	*end = 0;
	watch->text_taken = (size_t) (end - watch->text) + 1;
	return line;
}

/* Skips bookmarks, which are sent at certain times. Returns the line. */
static const char *expect_line(struct watch *watch, const char *part)
{
	const char *line;

	do
		line = next_line(watch);
	while (line && memcmp(line, "{\"type\":\"BOOKMARK\"", 18) == 0 && strstr(line, END) == NULL);
	if (line == NULL || strstr(line, part) == NULL)
		fail_msg("instead of %s: %.200s", part, line ? line : "the end");
	return line;
}

/* Reads to the end of the initial events. */
static void read_state(struct watch *watch)
{
	const char *line;

	do {
		line = next_line(watch);
		assert_non_null(line);
	} while (strstr(line, END) == NULL);
}

static bool has(const struct watch *watch, const char *text)
{
	return watch->text && memmem(watch->text, watch->text_size, text, strlen(text));
}

/* Reads the watch to its end. */
static void read_all(struct watch *watch)
{
	while (take_chunk(watch))
		continue;
}

/* ---- Tests ---- */

static void t202_r642_a_watch_list_is_one_member_a_flush(void **state)
{
	struct http_fixture world = http_fixture_open(NULL);
	struct watch	   *packed, *plain;
	char		    name[16];

	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof name, "c%03d", i);
		http_fixture_put(&world, name, 1000, i % 2);
	}
	packed = watch_open(&world, STATE, GZIP, 0);
	plain = watch_open(&world, STATE, "", 0);
	assert_true(packed->is_gzip);
	assert_false(plain->is_gzip);
	assert_non_null(strstr(packed->head, "\r\nTransfer-Encoding: chunked"));
	assert_non_null(strstr(packed->head, "\r\nContent-Type: application/json\r\n"));
	read_state(packed);
	read_state(plain);
	assert_int_equal(packed->text_size, plain->text_size);
	assert_memory_equal(packed->text, plain->text, plain->text_size);
	/* Many events in one member, bounded by the iteration. */
	assert_int_equal(plain->chunks, 201);
	assert_true(packed->chunks < 20);
	assert_true(packed->chunk_max <= 65536);
	/* Live events are sent at once, each as its own member: a written event arrives before the next
	 * write. */
	for (int i = 0; i < 20; i++) {
		const char *line;

		snprintf(name, sizeof name, "l%03d", i);
		http_fixture_put(&world, name, 500 + (size_t) i * 5000, false);
		line = expect_line(packed, name);
		assert_int_equal(packed->chunk_size, strlen(line) + 1);
		assert_true(packed->chunk_bytes < 1000);
		assert_string_equal(line, expect_line(plain, name));
	}
	watch_close(packed);
	watch_close(plain);
	http_fixture_close(&world, VD_SECONDS(1));
}

static void t202_r642_only_watch_lists_of_who_takes_gzip(void **state)
{
	static const struct {
		const char *query, *headers;
		bool	    is_gzip;
	} rows[] = {
		{ STATE, GZIP, true },
		{ STATE, "Accept-Encoding: deflate, gzip\r\n", true },
		{ "?watch=1&allowWatchBookmarks=true", GZIP, true }, /* it becomes one */
		{ "?watch=1&allowWatchBookmarks=true&resourceVersion=0", GZIP, true },
		{ STATE, "", false },
		{ STATE, "Accept-Encoding: gzip;q=0\r\n", false },
		{ STATE, "Accept-Encoding: gzip;q=1\r\n", false }, /* upstream accepts only the plain word */
		{ STATE, "Accept-Encoding: GZIP\r\n", false },
		{ STATE, "Accept-Encoding: *\r\n", false },
		{ "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", GZIP, false },
		{ "?watch=1&sendInitialEvents=false&allowWatchBookmarks=true&resourceVersionMatch="
		  "NotOlderThan",
		  GZIP, false },
		{ "?watch=1", GZIP, false },
		{ "?watch=1&resourceVersion=1", GZIP, false },
		{ "?watch=1&resourceVersion=1&allowWatchBookmarks=true", GZIP, false },
	};
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;
	struct http_fixture	 world = http_fixture_open(NULL);
	struct watch		*watch;

	http_fixture_put(&world, "c", 200000, false);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		watch = watch_open(&world, rows[i].query, rows[i].headers, 0);
		if (watch->is_gzip != rows[i].is_gzip || memcmp(watch->head, "HTTP/1.1 200", 12) != 0)
			fail_msg("%s %s: %s", rows[i].query, rows[i].headers, watch->head);
		http_fixture_put(&world, "d", 10, false);
		do
			assert_true(take_chunk(watch));
		while (strstr(watch->text, "\"name\":\"d\"") == NULL);
		watch_close(watch);
	}
	/* Requests that are no watch, or not allowed. */
	watch = watch_open(&world, STATE "&resourceVersion=x", GZIP, 0);
	assert_memory_equal(watch->head, "HTTP/1.1 4", 10);
	assert_false(watch->is_gzip);
	watch_close(watch);
	http_fixture_close(&world, VD_SECONDS(1));

	options.no_compression = true;
	world = http_fixture_open(&options);
	http_fixture_put(&world, "c", 200000, false);
	watch = watch_open(&world, STATE, GZIP, 0);
	assert_false(watch->is_gzip);
	read_state(watch);
	watch_close(watch);
	http_fixture_close(&world, VD_SECONDS(1));
}

static void r642_http_1_0_has_no_watches(void **state)
{
	static const char request[] = "GET " CM STATE " HTTP/1.0\r\n" GZIP "\r\n";
	struct http_fixture			world = http_fixture_open(NULL);
	int					fd = http_open(world.port, 0);
	char				       *answer;

	http_send_bytes(fd, request, sizeof request - 1);
	answer = http_read_until(fd, NULL);
	close(fd);
	assert_non_null(strstr(answer, " 400 "));
	assert_null(strstr(answer, "Content-Encoding"));
	free(answer);
	http_fixture_close(&world, VD_SECONDS(1));
}

/* The content of the members equals the plain watch, in every form (two tables may be written at different
 * seconds, so only their beginning is compared). */
static void r642_r640_every_form_holds_the_same(void **state)
{
	static const char *const forms[] = { "", METADATA, PROTOBUF, TABLE };
	struct http_fixture	 world = http_fixture_open(NULL);
	char			 headers[200], name[16];

	for (int i = 0; i < 150; i++) {
		snprintf(name, sizeof name, "c%03d", i);
		http_fixture_put(&world, name, 700, i % 2);
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(forms); i++) {
		struct watch *watches[2];

		snprintf(headers, sizeof headers, "%s%s", forms[i], GZIP);
		for (int j = 0; j < 2; j++) {
			watches[j] = watch_open(&world, STATE, j ? forms[i] : headers, 0);
			assert_int_equal(watches[j]->is_gzip, j == 0);
			while (!has(watches[j], END))
				assert_true(take_chunk(watches[j]));
		}
		assert_true(watches[0]->text_size > 10000);
		if (i == 3) {
			assert_memory_equal(watches[0]->text,
					    "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Table\"", 40);
			assert_true(has(watches[0], "\"columnDefinitions\":[{"));
		} else {
			assert_int_equal(watches[0]->text_size, watches[1]->text_size);
			assert_memory_equal(watches[0]->text, watches[1]->text, watches[1]->text_size);
		}
		watch_close(watches[0]);
		watch_close(watches[1]);
	}
	http_fixture_close(&world, VD_SECONDS(1));
}

/* The client's timeout has passed: complete members, and the last chunk. */
static void r642_r630_a_deadline_ends_it_behind_a_whole_member(void **state)
{
	struct http_fixture world = http_fixture_open(NULL);
	struct watch	   *watch;

	http_fixture_put(&world, "c", 1000, false);
	watch = watch_open(&world, STATE "&timeoutSeconds=1", GZIP, 0);
	assert_true(watch->is_gzip);
	read_all(watch);
	assert_true(watch->is_over && !watch->is_cut);
	watch_close(watch);
	http_fixture_close(&world, VD_SECONDS(1));
}

/* The later frames of a table watch are shared, too; its first one is its own. */
static void r642_r640_a_table_goes_on(void **state)
{
	struct http_fixture world = http_fixture_open(NULL);
	struct watch	   *watches[2];

	for (int i = 0; i < 2; i++) {
		watches[i] = watch_open(&world, STATE, TABLE GZIP, 0);
		assert_true(watches[i]->is_gzip);
		expect_line(watches[i], END);
		assert_non_null(strstr(watches[i]->text, "\"columnDefinitions\":[{"));
	}
	for (int i = 0; i < 3; i++) {
		http_fixture_put(&world, "c", 100, false);
		for (int j = 0; j < 2; j++)
			expect_line(watches[j], "\"columnDefinitions\":[],\"rows\":[{\"cells\":[\"c\"");
	}
	watch_close(watches[0]);
	watch_close(watches[1]);
	http_fixture_close(&world, VD_SECONDS(1));
}

/* An object that takes longer than one iteration is sent in several members; later events come after it. */
static void r642_a_long_object_takes_several_turns(void **state)
{
	struct http_fixture world = http_fixture_open(NULL);
	struct watch	   *packed, *plain;

	http_fixture_put(&world, "a", 100, false);
	http_fixture_put(&world, "b", 1000000, true);
	http_fixture_put(&world, "c", 1000000, true);
	http_fixture_put(&world, "d", 100, false);
	packed = watch_open(&world, STATE, GZIP, 4096);
	assert_true(packed->is_gzip);
	http_fixture_put(&world, "e", 1000000, true);
	http_fixture_put(&world, "f", 100, false);
	plain = watch_open(&world, STATE, "", 0);
	read_state(plain);
	while (!has(packed, "\"name\":\"f\""))
		assert_true(take_chunk(packed));
	assert_true(packed->chunks > 2 * 1000000 / 65536);
	expect_line(packed, "\"name\":\"a\"");
	expect_line(packed, "\"name\":\"b\"");
	expect_line(packed, "\"name\":\"c\"");
	expect_line(packed, "\"name\":\"d\"");
	watch_close(packed);
	watch_close(plain);
	http_fixture_close(&world, VD_SECONDS(1));
}

/* A slow reader holds little memory: the limits are those of any watch, and it misses nothing in the end. */
static void r642_r655_a_slow_reader_is_bounded_and_misses_nothing(void **state)
{
	enum { LIMIT = 65536, OBJECTS = 100, SIZE = 100000 };
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;
	struct http_fixture	 world;
	struct watch		*slow, *plain, *other;
	const char		*line;
	struct vdi_account	*account;
	int64_t			 unsent, served = -1, agains = 0;
	char			 name[16];

	options.client_bytes_max = LIMIT;
	options.write_timeout = VD_SECONDS(3600); /* however slow this machine is */
	world = http_fixture_open(&options);
	for (int i = 0; i < OBJECTS; i++) {
		snprintf(name, sizeof name, "c%03d", i);
		http_fixture_put(&world, name, SIZE, true);
	}
	slow = watch_open(&world, STATE, GZIP "User-Agent: slow\r\n", 4096);
	assert_true(slow->is_gzip);
	assert_status(vdi_account_get(&world.server->accounts, vd_bytes_of("127.0.0.1"), vd_bytes_of("slow"),
				      &account),
		      VD_OK);
	/* Another one is served meanwhile. */
	plain = watch_open(&world, STATE, "User-Agent: other\r\n", 0);
	read_state(plain);
	for (int i = 0; i < 200 && served != (int64_t) world.server->watch_event_total; i++) {
		served = (int64_t) world.server->watch_event_total;
		unsent = atomic_load(&account->unsent_bytes);
		assert_true(unsent >= 0 && unsent <= LIMIT + 2 * SIZE);
		http_fixture_put(&world, "again", 1000, true);
		expect_line(plain, "\"name\":\"again\"");
		agains++;
	}
	/* Little was taken from the cacher for it. */
	assert_true((int64_t) world.server->watch_event_total - (OBJECTS + 1) - agains < OBJECTS / 2);
	read_state(slow);
	while (strstr(next_line(slow), "\"name\":\"again\"") == NULL)
		continue;
	/* Frames that others have compressed cost it no iteration, but are limited all the same. */
	other = watch_open(&world, STATE, GZIP "User-Agent: other\r\n", 0);
	read_state(other);
	for (int i = 0; i < 60; i++) {
		snprintf(name, sizeof name, "l%03d", i);
		http_fixture_put(&world, name, SIZE, true);
		(void) expect_line(other, name);
	}
	do {
		line = next_line(slow);
		assert_non_null(line);
		unsent = atomic_load(&account->unsent_bytes);
		assert_true(unsent >= 0 && unsent <= LIMIT + 2 * SIZE);
	} while (strstr(line, "\"name\":\"l059\"") == NULL);
	watch_close(other);
	watch_close(slow);
	while (world.server->watches_open > 1)
		continue;
	assert_int_equal(atomic_load(&account->unsent_bytes), 0);
	vdi_account_put(&world.server->accounts, account);
	watch_close(plain);
	http_fixture_close(&world, VD_SECONDS(1));
}

static void r642_r636_an_error_is_the_last_member(void **state)
{
	struct http_fixture world = http_fixture_open(NULL);
	struct watch	   *watch = watch_open(&world, STATE "&resourceVersion=1000000", GZIP, 0);

	assert_true(watch->is_gzip);
	expect_line(watch, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\"");
	assert_null(next_line(watch));
	assert_true(watch->is_over);
	assert_int_equal(watch->chunks, 1);
	watch_close(watch);
	http_fixture_close(&world, VD_SECONDS(1));
}

/* an object that this form cannot represent ends the watch, after the earlier events. */
static void r642_r637_a_refused_object_comes_behind_the_others(void **state)
{
	static const char   misfit[] = "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
				       "\"m\",\"namespace\":\"default\"},\"data\":7}";
	struct http_fixture world = http_fixture_open(NULL);
	struct watch	   *watch;

	http_fixture_put(&world, "c", 10, false);
	watch = watch_open(&world, STATE, PROTOBUF GZIP, 0);
	assert_true(watch->is_gzip);
	while (!has(watch, END))
		assert_true(take_chunk(watch));
	assert_status(vd_store_put_wait(world.store, vd_bytes_of("/registry/configmaps/default/m"),
					vd_bytes_of(misfit), NULL, NULL),
		      VD_OK);
	read_all(watch);
	assert_true(watch->is_over);
	assert_true(has(watch, "ERROR"));
	watch_close(watch);
	/* Among the initial events. */
	watch = watch_open(&world, STATE, PROTOBUF GZIP, 0);
	read_all(watch);
	assert_true(watch->is_over);
	assert_true(has(watch, "ADDED"));
	assert_true(has(watch, "ERROR"));
	assert_false(has(watch, END));
	watch_close(watch);
	http_fixture_close(&world, VD_SECONDS(1));
}

/* The server drains in the middle of an object: the object is sent completely, then the stream ends as
 * usual. */
static void r642_draining_ends_behind_a_whole_event(void **state)
{
	struct http_fixture world = http_fixture_open(NULL);
	struct watch	   *watch;
	size_t		    lines = 0;

	for (int i = 0; i < 8; i++) {
		char name[16];

		snprintf(name, sizeof name, "c%d", i);
		http_fixture_put(&world, name, 900000, true);
	}
	watch = watch_open(&world, STATE, GZIP, 4096);
	assert_true(take_chunk(watch));
	vdi_http_loop_drain(world.server->loops);
	while (next_line(watch))
		lines++;
	assert_true(watch->is_over || watch->is_cut);
	assert_true(watch->is_cut || watch->text_taken == watch->text_size);
	assert_true(lines < 8);
	watch_close(watch);
	http_fixture_close(&world, VD_SECONDS(1));
}

/* Requested faults (--faults cut=): the stream ends in the middle of a member, and everything before it is
 * complete. */
static void r642_a_cut_is_in_the_middle_of_a_member(void **state)
{
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;
	struct http_fixture	 world;
	struct watch		*watch;

	options.cut_frames = 1.0;
	options.cut_seed = 5;
	world = http_fixture_open(&options);
	for (int i = 0; i < 5; i++) {
		char name[16];

		snprintf(name, sizeof name, "c%d", i);
		http_fixture_put(&world, name, 300, true);
	}
	watch = watch_open(&world, STATE, GZIP, 0);
	assert_true(watch->is_gzip);
	expect_line(watch, "\"name\":\"c0\"");
	assert_null(next_line(watch));
	assert_true(watch->is_cut && !watch->is_over);
	assert_int_equal(watch->chunks, 1);
	watch_close(watch);
	http_fixture_close(&world, VD_SECONDS(1));
}

/* The maximum number of compressed lists is in flight and unread: watch lists use other encoders. */
static void r642_encoders_of_lists_are_others(void **state)
{
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;
	struct http_fixture	 world;
	struct watch		*stalled[VDI_GZIP_LOOP_MAX], *watch;
	char			 name[16];

	options.client_request_count_max = VDI_GZIP_LOOP_MAX + 10;
	world = http_fixture_open(&options);
	for (int i = 0; i < 120; i++) {
		snprintf(name, sizeof name, "c%03d", i);
		http_fixture_put(&world, name, 100000, true);
	}
	for (int i = 0; i < VDI_GZIP_LOOP_MAX; i++) {
		stalled[i] = watch_open(&world, "", GZIP, 4096);
		assert_true(stalled[i]->is_gzip);
	}
	watch = watch_open(&world, "", GZIP, 4096);
	assert_false(watch->is_gzip);
	watch_close(watch);
	watch = watch_open(&world, STATE, GZIP, 0);
	assert_true(watch->is_gzip);
	read_state(watch);
	watch_close(watch);
	for (int i = 0; i < VDI_GZIP_LOOP_MAX; i++)
		watch_close(stalled[i]);
	http_fixture_close(&world, VD_SECONDS(1));
}

/* Returns the memory of an idle watch, in blocks. */
static int64_t blocks_of_idle(const struct http_fixture *world, const char *headers, size_t count)
{
	struct watch **watches = calloc(count, sizeof *watches);
	int64_t	       live;

	for (size_t i = 0; i < count; i++)
		watches[i] = watch_open(world, STATE, headers, 0);
	for (size_t i = 0; i < count; i++) {
		read_state(watches[i]);
		assert_int_equal(watches[i]->is_gzip, headers[0] != 0);
	}
	live = vdi_alloc_live();
	for (size_t i = 0; i < count; i++)
		watch_close(watches[i]);
	while (world->server->watches_open || world->server->connections_open)
		continue;
	free(watches);
	return live;
}

/* A thousand at once: each gets its state, and then holds as much as a plain watch; the encoder belongs to
 * the loop. */
static void r642_a_thousand_idle_watch_lists_hold_no_encoder(void **state)
{
	enum { COUNT = 1000 };
	struct http_fixture world = http_fixture_open(NULL);
	int64_t		    plain, packed;
	char		    name[16];

	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof name, "c%03d", i);
		http_fixture_put(&world, name, 1000, true);
	}
	(void) blocks_of_idle(&world, GZIP, 1); /* from here on the loop has its gzip writer */
	plain = blocks_of_idle(&world, "", COUNT);
	packed = blocks_of_idle(&world, GZIP, COUNT);
	print_message("[ %lld and %lld blocks of memory ]\n", (long long) plain, (long long) packed);
	assert_true(packed < plain + COUNT / 10);
	http_fixture_close(&world, VD_SECONDS(1));
}

/* the size of events is measured before compression. */
static void r642_r742_sizes_are_those_of_the_content(void **state)
{
	static const char metric[] =
		"apiserver_watch_events_sizes_sum{group=\"\",version=\"v1\",resource=\"configmaps\"} ";

	for (int i = 0; i < 2; i++) {
		struct http_fixture world = http_fixture_open(NULL);
		struct watch	   *watch;
		char		   *text, *sum;
		int		    code;

		http_fixture_put(&world, "c", 5000, false);
		watch = watch_open(&world, STATE, i ? GZIP : "", 0);
		assert_int_equal(watch->is_gzip, i);
		read_state(watch);
		http_fixture_put(&world, "c", 7000, false);
		(void) expect_line(watch, "MODIFIED");
		text = http_ask(world.port, "GET", "/metrics", "", "", &code);
		sum = strstr(text, metric);
		if (sum == NULL)
			fail_msg("no %s", metric);
		assert_int_equal(atoll(sum + strlen(metric)), watch->text_size);
		free(text);
		watch_close(watch);
		http_fixture_close(&world, VD_SECONDS(1));
	}
}

/* Each allocation fails in turn: the watch is compressed, or plain, or refused, or cut; its content is never
 * wrong. */
static void without_memory_a_watch_list_is_plain_or_none(void **state)
{
	struct http_fixture world = http_fixture_open(NULL);
	unsigned	    packed = 0, plain = 0, other = 0;
	struct watch	   *watch;

	http_fixture_put(&world, "a", 1000, false);
	http_fixture_put(&world, "b", 100000, false);
	for (uint64_t nth = 1; nth < 80; nth++) {
		const char *line;

		(void) vdi_alloc_fail_nth(nth, 1);
		watch = watch_open(&world, STATE, GZIP, 0);
		if (watch->is_cut || memcmp(watch->head, "HTTP/1.1 200", 12) != 0) {
			other++;
		} else if ((line = next_line(watch)) == NULL) {
			other++;
		} else if (strstr(line, "\"type\":\"ERROR\"")) {
			other++;
		} else {
			assert_non_null(strstr(line, "\"name\":\"a\""));
			if ((line = next_line(watch)) != NULL) {
				assert_non_null(strstr(line, "\"name\":\"b\""));
				if ((line = next_line(watch)) != NULL)
					assert_non_null(strstr(line, END));
			}
			*(line == NULL ? &other : watch->is_gzip ? &packed : &plain) += 1;
		}
		(void) vdi_alloc_fail_nth(0, 0);
		watch_close(watch);
		/* Each is the first of its loop. */
		while (world.server->watches_open || world.server->connections_open)
			continue;
		world.server->loops[0].gzip_writer = vdi_gzip_writer_free(world.server->loops[0].gzip_writer);
	}
	print_message("[ %u compressed, %u plain, %u not ]\n", packed, plain, other);
	assert_true(packed > 0 && plain > 0 && other > 0);
	watch = watch_open(&world, STATE, GZIP, 0);
	assert_true(watch->is_gzip);
	read_state(watch);
	watch_close(watch);
	http_fixture_close(&world, VD_SECONDS(1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t202_r642_a_watch_list_is_one_member_a_flush),
		cmocka_unit_test(t202_r642_only_watch_lists_of_who_takes_gzip),
		cmocka_unit_test(r642_http_1_0_has_no_watches),
		cmocka_unit_test(r642_r640_every_form_holds_the_same),
		cmocka_unit_test(r642_r630_a_deadline_ends_it_behind_a_whole_member),
		cmocka_unit_test(r642_r640_a_table_goes_on),
		cmocka_unit_test(r642_a_long_object_takes_several_turns),
		cmocka_unit_test(r642_r655_a_slow_reader_is_bounded_and_misses_nothing),
		cmocka_unit_test(r642_r636_an_error_is_the_last_member),
		cmocka_unit_test(r642_r637_a_refused_object_comes_behind_the_others),
		cmocka_unit_test(r642_draining_ends_behind_a_whole_event),
		cmocka_unit_test(r642_a_cut_is_in_the_middle_of_a_member),
		cmocka_unit_test(r642_encoders_of_lists_are_others),
		cmocka_unit_test(r642_a_thousand_idle_watch_lists_hold_no_encoder),
		cmocka_unit_test(r642_r742_sizes_are_those_of_the_content),
		cmocka_unit_test(without_memory_a_watch_list_is_plain_or_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
