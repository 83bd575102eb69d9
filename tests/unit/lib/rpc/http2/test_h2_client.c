/* The client against servers that say what they like, byte by byte. */
#include <sys/socket.h>
#include <unistd.h>

#include <nghttp2/nghttp2.h>

#include "rpc_fixture.h"
#include "thread.h"

/* ---- What is said ---- */

struct text {
	size_t	size;
	uint8_t bytes[1 << 18];
};

static void put(struct text *text, const void *bytes, size_t size)
{
	assert_true(size <= sizeof text->bytes - text->size);
	if (size)
		memcpy(text->bytes + text->size, bytes, size);
	text->size += size;
}

static void put_frame(struct text *text, uint8_t type, uint8_t flags, uint32_t stream, const void *payload,
		      size_t size)
{
	const uint8_t head[9] = { (uint8_t) (size >> 16),
				  (uint8_t) (size >> 8),
				  (uint8_t) size,
				  type,
				  flags,
				  (uint8_t) (stream >> 24),
				  (uint8_t) (stream >> 16),
				  (uint8_t) (stream >> 8),
				  (uint8_t) stream };

	put(text, head, sizeof head);
	put(text, payload, size);
}

/* "name: value\n" ...; literal, in no table. */
static size_t encode_headers(const char *lines, uint8_t *room)
{
	size_t used = 0;

	while (*lines) {
		const char *colon = strchr(lines + 1, ':'), *end = strchr(lines, '\n');
		size_t	    name = (size_t) (colon - lines), value = (size_t) (end - colon - 2);

		room[used++] = 0;
		room[used++] = (uint8_t) name;
		memcpy(room + used, lines, name);
		used += name;
		room[used++] = (uint8_t) value;
		memcpy(room + used, colon + 2, value);
		used += value;
		lines = end + 1;
	}
	return used;
}

#define HEAD ":status: 200\ncontent-type: application/grpc\n"
#define OK "grpc-status: 0\n"
#define FIRST 1 /* stream */

static void put_headers(struct text *text, uint32_t stream, const char *lines, bool is_last)
{
	uint8_t room[4096];

	put_frame(text, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | (is_last ? NGHTTP2_FLAG_END_STREAM : 0),
		  stream, room, encode_headers(lines, room));
}

static void put_data(struct text *text, uint32_t stream, const char *bytes, size_t size)
{
	put_frame(text, NGHTTP2_DATA, 0, stream, bytes, size);
}

static void put_reset(struct text *text, uint32_t stream, uint32_t code)
{
	const uint8_t payload[4] = { 0, 0, 0, (uint8_t) code };

	put_frame(text, NGHTTP2_RST_STREAM, 0, stream, payload, sizeof payload);
}

static void put_goaway(struct text *text, uint32_t last, uint32_t code)
{
	const uint8_t payload[8] = { 0, 0, 0, (uint8_t) last, 0, 0, 0, (uint8_t) code };

	put_frame(text, NGHTTP2_GOAWAY, 0, 0, payload, sizeof payload);
}

static const char hello[] = "\0\0\0\0\5hello";

static void put_answer(struct text *text, uint32_t stream)
{
	put_headers(text, stream, HEAD, false);
	put_data(text, stream, hello, sizeof hello - 1);
	put_headers(text, stream, OK, true);
}

/* ---- Who says it ---- */

/* Each connection in turn hears the client's settings, says its own, waits for so many HEADERS, says its
 * text, and then closes or listens on. The last text is everybody's who comes later. */
struct speaker {
	int		  fd;
	char		  address[RPC_ADDRESS_SIZE];
	struct vdi_thread thread;
	const uint8_t	 *settings; /* payload */
	size_t		  settings_size;
	struct text	 *texts[4];
	unsigned	  text_count;
	unsigned	  headers_min;
	bool		  closes;
	_Atomic uint64_t  connections;
	_Atomic uint64_t  calls;      /* heard */
	_Atomic uint64_t  resets;     /* likewise */
	_Atomic uint32_t  reset_code; /* of the last one */
};

static bool hear_all(int fd, uint8_t *room, size_t size)
{
	while (size) {
		ssize_t got = recv(fd, room, size, 0);

		if (got <= 0)
			return false;
		room += got;
		size -= (size_t) got;
	}
	return true;
}

/* The type of the client's next frame; -1: it is gone. Resets are noted. */
static int hear_frame(struct speaker *speaker, int fd)
{
	uint8_t head[9], room[16384];
	size_t	size;

	if (!hear_all(fd, head, sizeof head))
		return -1;
	size = (size_t) head[0] << 16 | (size_t) head[1] << 8 | head[2];
	if (size > sizeof room || !hear_all(fd, room, size))
		return -1;
	if (head[3] == NGHTTP2_HEADERS)
		atomic_fetch_add(&speaker->calls, 1);
	if (head[3] == NGHTTP2_RST_STREAM) {
		atomic_store(&speaker->reset_code, room[3]);
		atomic_fetch_add(&speaker->resets, 1);
	}
	return head[3];
}

static void serve(struct speaker *speaker, int fd, const struct text *text)
{
	struct text hail = { 0 };
	uint8_t	    preface[24];
	unsigned    headers = 0;
	int	    type = 0;

	put_frame(&hail, NGHTTP2_SETTINGS, 0, 0, speaker->settings, speaker->settings_size);
	(void) !send(fd, hail.bytes, hail.size, MSG_NOSIGNAL);
	if (!hear_all(fd, preface, sizeof preface))
		return;
	while (headers < speaker->headers_min && (type = hear_frame(speaker, fd)) >= 0)
		headers += type == NGHTTP2_HEADERS;
	for (size_t at = 0; at < text->size;) {
		ssize_t sent = send(fd, text->bytes + at, text->size - at, MSG_NOSIGNAL);

		if (sent <= 0)
			return;
		at += (size_t) sent;
	}
	if (speaker->closes)
		(void) shutdown(fd, SHUT_WR);
	while (hear_frame(speaker, fd) >= 0)
		;
}

static void *speak(void *arg)
{
	struct speaker *speaker = arg;
	int		fd;

	while ((fd = accept(speaker->fd, NULL, NULL)) >= 0) {
		uint64_t number = atomic_fetch_add(&speaker->connections, 1);

		serve(speaker, fd, speaker->texts[VDI_MIN(number, speaker->text_count - 1)]);
		close(fd);
	}
	return NULL;
}

static void start_speaker(struct speaker *speaker)
{
	speaker->fd = rpc_listen(speaker->address);
	assert_status(vdi_thread_start(&speaker->thread, "speaker", speak, speaker), VD_OK);
}

static void stop_speaker(struct speaker *speaker)
{
	(void) shutdown(speaker->fd, SHUT_RDWR);
	vdi_thread_join(&speaker->thread);
	close(speaker->fd);
}

/* One call to a server that says text to its first HEADERS. */
static struct rpc_answer ask_speaker(struct text *text, bool closes)
{
	struct speaker speaker = { .texts = { text }, .text_count = 1, .headers_min = 1, .closes = closes };
	struct vdi_rpc_client *client;
	struct rpc_answer      answer;

	start_speaker(&speaker);
	client = rpc_connect_to(speaker.address);
	answer = rpc_ask_simply(env, client, "/test.Echo/Echo", vd_bytes_of("x"), VD_SECONDS(300));
	rpc_close(env, client);
	stop_speaker(&speaker);
	return answer;
}

static void expect(struct text *text, int code, const char *words)
{
	struct rpc_answer answer = ask_speaker(text, false);

	if (answer.end.code != code || strcmp(answer.text, words) != 0)
		fail_msg("%d \"%s\", not %d \"%s\"", answer.end.code, answer.text, code, words);
	rpc_answer_release(&answer);
	free(text);
}

static struct text *new_text(void)
{
	struct text *text = calloc(1, sizeof *text);

	assert_non_null(text);
	return text;
}

/* ---- Ends ---- */

static struct text *only_headers(const char *lines, bool is_last)
{
	struct text *text = new_text();

	put_headers(text, FIRST, lines, is_last);
	return text;
}

static void ends_that_the_peer_words(void **state)
{
	struct text *text = new_text();

	(void) state;
	put_answer(text, FIRST);
	expect(text, VDI_RPC_OK, "");
	expect(only_headers(HEAD "grpc-status: 5\ngrpc-message: a%20b%C3%BC %zz%0\n", true),
	       VDI_RPC_NOT_FOUND, "a b\xc3\xbc %zz%0");
	expect(only_headers(HEAD "grpc-status: 99\n", true), 99, "");
	expect(only_headers(HEAD "grpc-status: nonsense\ngrpc-message: x\n", true), VDI_RPC_UNKNOWN, "x");
	expect(only_headers(":status: 404\ncontent-type: text/html\n", false), VDI_RPC_UNIMPLEMENTED,
	       "unexpected HTTP status code received from server: 404");
	expect(only_headers(":status: 503\n", true), VDI_RPC_UNAVAILABLE,
	       "unexpected HTTP status code received from server: 503");
	expect(only_headers(":status: 200\ncontent-type: text/html\n", false), VDI_RPC_UNKNOWN,
	       "received unexpected content-type \"text/html\"");
	expect(only_headers(HEAD, true), VDI_RPC_INTERNAL,
	       "server closed the stream without sending trailers");
	text = new_text();
	put_headers(text, FIRST, ":status: 103\n", false);
	put_answer(text, FIRST);
	expect(text, VDI_RPC_OK, "");
}

static void streams_that_are_reset(void **state)
{
	static const struct {
		uint32_t    error;
		int	    code;
		const char *name;
	} cases[] = {
		{ NGHTTP2_NO_ERROR, VDI_RPC_INTERNAL, "NO_ERROR" },
		{ NGHTTP2_PROTOCOL_ERROR, VDI_RPC_INTERNAL, "PROTOCOL_ERROR" },
		{ NGHTTP2_CANCEL, VDI_RPC_CANCELED, "CANCEL" },
		{ NGHTTP2_ENHANCE_YOUR_CALM, VDI_RPC_RESOURCE_EXHAUSTED, "ENHANCE_YOUR_CALM" },
		{ NGHTTP2_INADEQUATE_SECURITY, VDI_RPC_PERMISSION_DENIED, "INADEQUATE_SECURITY" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct text *text = new_text();
		char	     words[100];

		put_reset(text, FIRST, cases[i].error);
		(void) snprintf(words, sizeof words, "stream terminated by RST_STREAM with error code: %s",
				cases[i].name);
		expect(text, cases[i].code, words);
	}
}

static void messages_that_are_none(void **state)
{
	struct text *text = new_text();

	(void) state;
	put_headers(text, FIRST, HEAD, false);
	put_data(text, FIRST, hello, 8);
	put_headers(text, FIRST, OK, true);
	expect(text, VDI_RPC_INTERNAL, "the stream ended inside a message");
	text = new_text();
	put_headers(text, FIRST, HEAD, false);
	put_headers(text, FIRST, OK, true);
	expect(text, VDI_RPC_INTERNAL,
	       "cardinality violation: received no response message from non-server-streaming RPC");
	text = new_text();
	put_headers(text, FIRST, HEAD, false);
	put_data(text, FIRST, hello, sizeof hello - 1);
	put_data(text, FIRST, hello, sizeof hello - 1);
	expect(text, VDI_RPC_INTERNAL,
	       "cardinality violation: expected <EOF> for non server-streaming RPCs, but received another "
	       "message");
	text = new_text(); /* all in one piece */
	put_headers(text, FIRST, HEAD, false);
	put_data(text, FIRST, "\0\0\0\0\1a\0\0\0\0\1b\0\0\0\0\1c\0\0\0", 21);
	expect(text, VDI_RPC_INTERNAL,
	       "cardinality violation: expected <EOF> for non server-streaming RPCs, but received another "
	       "message");
	text = new_text();
	put_headers(text, FIRST, HEAD, false);
	put_data(text, FIRST, "\1\0\0\0\1x", 6);
	expect(text, VDI_RPC_INTERNAL, "grpc: compressed flag set with identity or empty encoding");
	text = new_text();
	put_headers(text, FIRST, HEAD "grpc-encoding: gzip\n", false);
	put_data(text, FIRST, "\1\0\0\0\1x", 6);
	expect(text, VDI_RPC_UNIMPLEMENTED, "grpc: a message is compressed in a way that was not offered");
}

/* Four gigabytes are announced and five bytes come: memory follows what comes. */
static void a_message_that_lies_about_its_size(void **state)
{
	struct text	 *text = new_text();
	struct rpc_answer answer;

	(void) state;
	put_headers(text, FIRST, HEAD, false);
	put_data(text, FIRST,
		 "\0\xff\xff\xff\xff"
		 "abcde",
		 10);
	answer = ask_speaker(text, true);
	assert_int_equal(answer.end.code, VDI_RPC_UNAVAILABLE);
	free(text);
}

static void an_answer_in_pieces_of_a_byte(void **state)
{
	struct text *text = new_text();

	(void) state;
	put_headers(text, FIRST, HEAD, false);
	for (size_t i = 0; i < sizeof hello - 1; i++)
		put_data(text, FIRST, hello + i, 1);
	put_data(text, FIRST, NULL, 0);
	put_headers(text, FIRST, OK, true);
	put_data(text, FIRST, hello, 3); /* after the end: nobody's */
	expect(text, VDI_RPC_OK, "");
}

static void a_connection_cut_at_any_byte(void **state)
{
	struct text *whole = new_text(), *part = new_text();

	(void) state;
	put_answer(whole, FIRST);
	for (size_t size = 0; size <= whole->size; size++) {
		struct rpc_answer answer;

		part->size = 0;
		put(part, whole->bytes, size);
		answer = ask_speaker(part, true);
		assert_int_equal(answer.end.code, size == whole->size ? VDI_RPC_OK : VDI_RPC_UNAVAILABLE);
		assert_false(answer.end.unsent || answer.end.local);
		rpc_answer_release(&answer);
	}
	free(whole);
	free(part);
}

/* ---- Peers that break the rules ---- */

/* It ends, with whatever, and the next client of a good server is none the worse. */
static void expect_some_end(struct text *text)
{
	struct rpc_answer answer = ask_speaker(text, true);

	assert_int_not_equal(answer.end.code, VDI_RPC_OK);
	assert_true(answer.text[0] != 0);
	free(text);
}

static void headers_without_end(void **state)
{
	struct text *text = new_text();
	uint8_t	     room[4096];
	size_t	     size = 0;

	(void) state;
	size = encode_headers(HEAD, room);
	put_frame(text, NGHTTP2_HEADERS, 0, FIRST, room, size);
	for (size = 0; size + 130 < sizeof room; size += 125) {
		memset(room + size, 'x', 125);
		room[size] = 0;
		room[size + 1] = 2;
		room[size + 4] = 120;
	}
	for (int i = 0; i < 40; i++)
		put_frame(text, NGHTTP2_CONTINUATION, i == 39 ? NGHTTP2_FLAG_END_HEADERS : 0, FIRST, room,
			  size);
	expect_some_end(text);
}

static void breaches_of_protocol(void **state)
{
	static const uint8_t zeroes[20000];
	uint8_t		     random[2000];
	struct text	    *text;

	(void) state;
	text = new_text(); /* DATA before headers */
	put_data(text, FIRST, hello, sizeof hello - 1);
	expect_some_end(text);
	text = new_text(); /* on a stream that nobody opened */
	put_headers(text, 7, HEAD, false);
	expect_some_end(text);
	text = new_text(); /* push */
	put_frame(text, NGHTTP2_PUSH_PROMISE, NGHTTP2_FLAG_END_HEADERS, FIRST, "\0\0\0\2\x88", 5);
	expect_some_end(text);
	text = new_text(); /* a window of nothing, one beyond all measure */
	put_frame(text, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\0", 4);
	expect_some_end(text);
	text = new_text();
	put_frame(text, NGHTTP2_WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff", 4);
	expect_some_end(text);
	text = new_text(); /* a frame that is too large */
	put_frame(text, NGHTTP2_DATA, 0, FIRST, zeroes, sizeof zeroes);
	expect_some_end(text);
	text = new_text(); /* a compressed header that is none */
	put_frame(text, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, FIRST, "\xff\xff\xff\xff\xff\xff", 6);
	expect_some_end(text);
	for (unsigned seed = 1; seed < 40; seed++) {
		uint64_t next = seed * 0x9e3779b97f4a7c15ull;

		for (size_t i = 0; i < sizeof random; i++) {
			next = next * 6364136223846793005ull + 1442695040888963407ull;
			random[i] = (uint8_t) (next >> 56);
		}
		text = new_text();
		if (seed % 2)
			put_headers(text, FIRST, HEAD, false);
		if (seed % 3) { /* behind the head of a frame that is in order */
			random[0] = 0;
			random[1] %= 64;
			random[3] %= 10;
			memcpy(random + 5, seed % 5 ? "\0\0\0\1" : "\0\0\0\0", 4);
		}
		put(text, random, sizeof random);
		expect_some_end(text);
	}
}

/* More settings and pings than anybody answers: either they are answered, and the call too, or the connection
 * is given up. */
static void floods(void **state)
{
	static const uint8_t types[] = { NGHTTP2_SETTINGS, NGHTTP2_PING };

	(void) state;
	for (size_t k = 0; k < VDI_ARRAY_SIZE(types); k++) {
		struct text	 *text = new_text();
		struct rpc_answer answer;

		for (int i = 0; i < 10000; i++)
			put_frame(text, types[k], 0, 0, "12345678", types[k] == NGHTTP2_PING ? 8 : 0);
		put_answer(text, FIRST);
		answer = ask_speaker(text, true);
		assert_true(answer.end.code == VDI_RPC_OK || answer.end.code == VDI_RPC_UNAVAILABLE);
		rpc_answer_release(&answer);
		free(text);
	}
}

/* ---- What was certainly not done ---- */

static void a_refused_call_is_made_again(void **state)
{
	struct text	      *refusal = new_text();
	struct speaker	       speaker = { .texts = { refusal }, .text_count = 1, .headers_min = 1 };
	struct vdi_rpc_client *client;
	struct rpc_answer      answer;

	(void) state;
	put_reset(refusal, 1, NGHTTP2_REFUSED_STREAM);
	put_reset(refusal, 1, NGHTTP2_REFUSED_STREAM); /* of a stream that is gone: ignored */
	put_answer(refusal, 3);
	speaker.headers_min = 2; /* nothing is said before there are two */
	start_speaker(&speaker);
	client = rpc_connect_to(speaker.address);
	{
		struct rpc_asked *first = rpc_ask_begin(env, client, "/test.Echo/Echo", vd_bytes_of("one"));
		struct rpc_asked *second = rpc_ask_begin(env, client, "/test.Echo/Echo", vd_bytes_of("two"));
		struct rpc_answer other;

		other = rpc_ask_end(second);
		assert_int_equal(other.end.code, VDI_RPC_OK);
		rpc_answer_release(&other);
		/* The first one is on its way once more, as stream 5, which is never answered. */
		rpc_close(env, client);
		answer = rpc_ask_end(first);
		assert_int_equal(answer.end.code, VDI_RPC_CANCELED);
	}
	stop_speaker(&speaker);
	free(refusal);
}

static void above_the_last_stream_of_goaway_nothing_was_done(void **state)
{
	struct text	      *leaving = new_text(), *good = new_text();
	struct speaker	       speaker = { .texts = { leaving, good }, .text_count = 2, .headers_min = 1 };
	struct vdi_rpc_client *client;
	struct rpc_answer      answer;

	(void) state;
	put_goaway(leaving, 0, NGHTTP2_NO_ERROR);
	put_answer(good, FIRST);
	start_speaker(&speaker);
	client = rpc_connect_to(speaker.address);
	answer = rpc_ask_simply(env, client, "/test.Echo/Echo", vd_bytes_of("x"), VD_SECONDS(300));
	assert_int_equal(answer.end.code, VDI_RPC_OK);
	rpc_answer_release(&answer);
	assert_int_equal(speaker.connections, 2);
	rpc_close(env, client);
	stop_speaker(&speaker);
	free(leaving);
	free(good);
}

/* A server that says each time that it did nothing with it. */
static void a_call_is_tried_five_times(void **state)
{
	struct text   *text = new_text();
	struct speaker speaker = { .texts = { text }, .text_count = 1, .headers_min = 1, .closes = true };
	struct vdi_rpc_client *client;
	struct rpc_answer      answer;

	(void) state;
	put_goaway(text, 0, NGHTTP2_NO_ERROR);
	start_speaker(&speaker);
	client = rpc_connect_to(speaker.address);
	answer = rpc_ask_simply(env, client, "/test.Echo/Echo", vd_bytes_of("x"), VD_SECONDS(300));
	assert_int_equal(answer.end.code, VDI_RPC_UNAVAILABLE);
	assert_true(answer.end.unsent);
	assert_false(answer.end.local);
	assert_int_equal(speaker.calls, 5);
	rpc_answer_release(&answer);
	rpc_close(env, client);
	stop_speaker(&speaker);
	free(text);
}

static void calls_wait_for_a_place(void **state)
{
	static const uint8_t   one_stream[6] = { 0, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0, 0, 0, 1 };
	struct text	      *answers = new_text();
	struct speaker	       speaker = { .texts = { answers },
					   .text_count = 1,
					   .headers_min = 1,
					   .settings = one_stream,
					   .settings_size = sizeof one_stream };
	struct vdi_rpc_client *client;
	struct rpc_asked      *first;
	struct rpc_answer      answer;
	struct rpc_recorder    stream;
	struct vdi_rpc_request request = { .method = "/test.Echo/Chat", .endpoint = VDI_RPC_ANY_ENDPOINT };

	(void) state;
	put_headers(answers, FIRST, HEAD, false); /* and never more */
	start_speaker(&speaker);
	client = rpc_connect_to(speaker.address);
	rpc_recorder_init(&stream, env, client, true);
	assert_status(rpc_recorder_open(&stream, &request), VD_OK);
	rpc_recorder_wait_opened(&stream);
	answer = rpc_ask_simply(env, client, "/test.Echo/Echo", vd_bytes_of("x"), VD_MS(50));
	assert_int_equal(answer.end.code, VDI_RPC_DEADLINE_EXCEEDED);
	assert_true(answer.end.unsent);
	assert_non_null(strstr(answer.text, "(at its limit of calls)"));
	first = rpc_ask_begin(env, client, "/test.Echo/Echo", vd_bytes_of("y"));
	client->ops->stream_cancel(stream.stream);
	rpc_recorder_wait_ended(&stream);
	assert_int_equal(stream.end.code, VDI_RPC_CANCELED);
	rpc_wait_for(env, &speaker.resets,
		     1); /* the peer heard that its stream is canceled, so there is a place */
	rpc_close(env, client);
	answer = rpc_ask_end(first);
	assert_int_equal(answer.end.code, VDI_RPC_CANCELED);
	rpc_recorder_fini(&stream);
	stop_speaker(&speaker);
	free(answers);
}

/* ---- What the peer hears ---- */

/* One call or stream that ends with that code; how the peer heard of its end: the code of RST_STREAM, -1:
 * none came, for both sides had said that it is over. */
static int64_t reset_heard(const char *lines, bool is_stream, vd_dur timeout, int code)
{
	struct text	      *text = new_text();
	struct speaker	       speaker = { .texts = { text }, .text_count = 1, .headers_min = 1 };
	struct vdi_rpc_request request = { .method = "/a/b",
					   .timeout = timeout,
					   .endpoint = VDI_RPC_ANY_ENDPOINT };
	struct vdi_rpc_client *client;
	struct rpc_recorder    stream;
	int64_t		       heard;

	if (lines)
		put_headers(text, FIRST, lines, true);
	start_speaker(&speaker);
	client = rpc_connect_to(speaker.address);
	if (is_stream) {
		rpc_recorder_init(&stream, env, client, true);
		assert_status(rpc_recorder_open(&stream, &request), VD_OK);
		rpc_recorder_wait_ended(&stream);
		assert_int_equal(stream.end.code, code);
		rpc_recorder_fini(&stream);
	} else {
		struct rpc_answer answer = rpc_ask_simply(env, client, "/a/b", vd_bytes_of("x"), timeout);

		assert_int_equal(answer.end.code, code);
		rpc_answer_release(&answer);
	}
	rpc_close(env, client); /* the peer has heard everything before it hears of this */
	stop_speaker(&speaker);
	assert_in_range(speaker.resets, 0, 1);
	heard = speaker.resets ? (int64_t) speaker.reset_code : -1;
	free(text);
	return heard;
}

static void the_peer_hears_of_every_end_that_it_does_not_know(void **state)
{
	(void) state;
	assert_int_equal(reset_heard(NULL, false, VD_MS(20), VDI_RPC_DEADLINE_EXCEEDED), NGHTTP2_CANCEL);
	assert_int_equal(reset_heard(NULL, true, VD_MS(20), VDI_RPC_DEADLINE_EXCEEDED), NGHTTP2_CANCEL);
	/* The peer has said all, and we may have said all, too. */
	assert_int_equal(reset_heard(HEAD "grpc-status: 5\n", false, VD_SECONDS(300), VDI_RPC_NOT_FOUND), -1);
	assert_int_equal(reset_heard(HEAD "grpc-status: 5\n", true, VD_SECONDS(300), VDI_RPC_NOT_FOUND),
			 NGHTTP2_NO_ERROR);
}

/* ---- What was kept ---- */

static void ask_the_stream(void *arg, const struct vdi_rpc_end *end, struct vdi_rpc_message *message)
{
	struct rpc_recorder *stream = arg;

	assert_int_equal(end->code, VDI_RPC_OK);
	vdi_rpc_message_release(message);
	stream->client->ops->stream_receive(stream->stream);
}

/* A message that came before it was asked for is asked for, and before that is attended to the stream ends:
 * the answer to a call between the two asks. */
static void a_stream_that_ends_while_it_is_asked(void **state)
{
	const struct vdi_rpc_request request = { .method = "/test.Echo/Stream",
						 .endpoint = VDI_RPC_ANY_ENDPOINT };
	const struct vdi_rpc_request call = { .method = "/test.Echo/Echo", .endpoint = VDI_RPC_ANY_ENDPOINT };
	struct text		    *text = new_text();
	struct speaker		     speaker = { .texts = { text }, .text_count = 1, .headers_min = 2 };
	struct vdi_rpc_client	    *client;
	struct rpc_recorder	     stream;

	(void) state;
	put_headers(text, FIRST, HEAD, false);
	put_data(text, FIRST, hello, sizeof hello - 1);
	put_answer(text, FIRST + 2);
	put_headers(text, FIRST, OK, true);
	start_speaker(&speaker);
	client = rpc_connect_to(speaker.address);
	rpc_recorder_init(&stream, env, client, false);
	stream.keeps_stream = true;
	assert_status(rpc_recorder_open(&stream, &request), VD_OK);
	rpc_recorder_wait_opened(&stream);
	assert_status(client->ops->call(client, &call, ask_the_stream, &stream, NULL), VD_OK);
	rpc_recorder_wait_ended(&stream);
	assert_string_equal(stream.text, "");
	assert_int_equal(stream.end.code, VDI_RPC_OK);
	assert_int_equal(stream.messages, 1);
	client->ops->stream_free(stream.stream);
	rpc_close(env, client);
	rpc_recorder_fini(&stream);
	stop_speaker(&speaker);
	free(text);
}

/* The peer has ended the stream before any of its messages was asked for: they are all there, then the
 * end. */
static void what_was_not_asked_for_outlives_the_end(void **state)
{
	(void) state;
	for (int half_closes = 0; half_closes < 2; half_closes++) {
		const struct vdi_rpc_request request = { .method = "/test.Echo/Stream",
							 .message = vd_bytes_of("x"),
							 .half_close = half_closes,
							 .endpoint = VDI_RPC_ANY_ENDPOINT };
		struct text		    *text = new_text();
		struct speaker	       speaker = { .texts = { text }, .text_count = 1, .headers_min = 2 };
		struct vdi_rpc_client *client;
		struct rpc_recorder    stream;
		struct rpc_answer      answer;

		put_headers(text, FIRST, HEAD, false);
		put_data(text, FIRST, "\0\0\0\0\3one\0\0\0\0\3two", 16);
		put_headers(text, FIRST, OK, true);
		put_answer(text, FIRST + 2);
		start_speaker(&speaker);
		client = rpc_connect_to(speaker.address);
		rpc_recorder_init(&stream, env, client, false);
		assert_status(rpc_recorder_open(&stream, &request), VD_OK);
		rpc_recorder_wait_opened(&stream);
		answer = rpc_ask_simply(env, client, "/test.Echo/Echo", vd_bytes_of("x"), VD_SECONDS(300));
		assert_int_equal(answer.end.code, VDI_RPC_OK); /* so the stream's end is there, too */
		rpc_answer_release(&answer);
		for (unsigned i = 1; i <= 2; i++) {
			client->ops->stream_receive(stream.stream);
			rpc_recorder_wait_messages(&stream, i);
			assert_string_equal(stream.last, i == 1 ? "one" : "two");
		}
		rpc_recorder_wait_ended(&stream);
		assert_int_equal(stream.end.code, VDI_RPC_OK);
		rpc_close(env, client);
		rpc_recorder_fini(&stream);
		stop_speaker(&speaker);
		assert_int_equal(speaker.resets, !half_closes); /* it hears that we say no more either */
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPC_TEST(ends_that_the_peer_words),
		RPC_TEST(streams_that_are_reset),
		RPC_TEST(messages_that_are_none),
		RPC_TEST(a_message_that_lies_about_its_size),
		RPC_TEST(an_answer_in_pieces_of_a_byte),
		RPC_TEST(a_connection_cut_at_any_byte),
		RPC_TEST(headers_without_end),
		RPC_TEST(breaches_of_protocol),
		RPC_TEST(floods),
		RPC_TEST(a_refused_call_is_made_again),
		RPC_TEST(above_the_last_stream_of_goaway_nothing_was_done),
		RPC_TEST(a_call_is_tried_five_times),
		RPC_TEST(calls_wait_for_a_place),
		RPC_TEST(the_peer_hears_of_every_end_that_it_does_not_know),
		RPC_TEST(a_stream_that_ends_while_it_is_asked),
		RPC_TEST(what_was_not_asked_for_outlives_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
