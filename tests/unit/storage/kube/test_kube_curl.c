/* The transport over real sockets: what is sent, and what servers do that are broken or hostile. */
#include "kube_curl.h"

#include <stdatomic.h>
#include <zlib.h>

#include "await.h"
#include "buffer.h"
#include "kube_client.h"
#include "kube_socket.h"
#include "rpc_certs.h"
#include "vdtest.h"
#include "wait.h"

static struct vd_env *env;

static int start_env(void **state)
{
	struct vd_env_options options = VD_ENV_OPTIONS_INIT;

	(void) state;
	options.threads = 1;
	return vd_env_new_threads(&options, &env) == VD_OK ? 0 : -1;
}

static int stop_env(void **state)
{
	(void) state;
	env = vd_env_free(env);
	return 0;
}

/* ---- Clients ---- */

static struct vd_kube *client_with(struct vd_kube_options options, const char *server)
{
	struct vd_error error = { 0 };
	struct vd_kube *kube = NULL;

	options.server = server;
	if (vd_kube_open(env, &options, &kube, &error) != VD_OK)
		fail_msg("%s", error.message);
	return kube;
}

static struct vd_kube *client(const char *server)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;

	return client_with(options, server);
}

/* One request and its answer. */
struct told {
	struct vdi_wait	  wait;
	vd_status	  status;
	struct vd_error	  error;
	int		  code;
	struct vdi_buffer body, type, warning;
};

static void on_answer(void *arg, vd_status status, const struct vd_kube_answer *answer,
		      const struct vd_error *error)
{
	struct told *told = arg;

	told->status = status;
	told->error = *error;
	if (answer) {
		told->code = answer->code;
		vdi_buffer_append(&told->body, answer->body);
		vdi_buffer_append(&told->type, answer->content_type);
		vdi_buffer_append(&told->warning, answer->warning);
		vdi_buffer_append_char(&told->body, 0);
		vdi_buffer_append_char(&told->type, 0);
		vdi_buffer_append_char(&told->warning, 0);
	}
	vdi_wait_signal(&told->wait);
}

static void told_begin(struct told *told)
{
	memset(told, 0, sizeof *told);
	vdi_wait_init(&told->wait, env);
	vdi_buffer_init(&told->body, SIZE_MAX / 2);
	vdi_buffer_init(&told->type, SIZE_MAX / 2);
	vdi_buffer_init(&told->warning, SIZE_MAX / 2);
}

static void told_fini(struct told *told)
{
	vdi_wait_fini(&told->wait);
	vdi_buffer_fini(&told->body);
	vdi_buffer_fini(&told->type);
	vdi_buffer_fini(&told->warning);
}

static void ask(struct vd_kube *kube, const struct vd_kube_call *call, struct told *told)
{
	told_begin(told);
	assert_status(vd_kube_request(kube, call, on_answer, told), VD_OK);
	vdi_wait_wait(&told->wait);
}

/* Sends GET path to a server with this answer; returns the status and the message. */
static vd_status get(kube_socket_answer_fn answer, void *arg, vd_dur timeout, char message[384])
{
	struct vd_kube_call call = VD_KUBE_CALL_INIT;
	struct kube_socket  server;
	struct vd_kube	   *kube;
	struct told	    told;
	vd_status	    status;

	kube_socket_start(&server, answer, arg, NULL, NULL, NULL);
	kube = client(server.url);
	call.path = "/api";
	call.timeout = timeout;
	ask(kube, &call, &told);
	status = told.status;
	snprintf(message, 384, "%s", told.error.message);
	told_fini(&told);
	assert_null(vd_kube_close_wait(kube));
	kube_socket_stop(&server);
	return status;
}

#define PATIENCE VD_SECONDS(60)

/* ---- Requests ---- */

static void expect_header(struct kube_socket_call *call, const char *name, const char *value)
{
	char text[256];

	KUBE_SOCKET_EXPECT(strcmp(kube_socket_header(call, name, text), value) == 0);
}

static bool answer_in_detail(struct kube_socket_call *call, void *arg)
{
	char text[256];

	(void) arg;
	KUBE_SOCKET_EXPECT(strstr(call->head, "PUT /api/v1/x?a=b%20c HTTP/1.1\r\n") == call->head);
	expect_header(call, "Authorization", "Bearer secret");
	expect_header(call, "Accept", "application/x");
	expect_header(call, "Content-Type", "application/json");
	expect_header(call, "Expect", "");
	KUBE_SOCKET_EXPECT(strncmp(kube_socket_header(call, "User-Agent", text), "vedette/", 8) == 0);
	KUBE_SOCKET_EXPECT(strcmp(call->body, "{\"a\":1}") == 0);
	return kube_socket_say_text(call, "HTTP/1.1 100 Continue\r\nWarning: none\r\n\r\n"
					  "HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\n"
					  "WARNING: 299 - \"first\"\r\nwarning:299 - \"second\"  \r\n"
					  "Content-Length: 5\r\n\r\nhello");
}

static void a_request_and_its_answer(void **state)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct vd_kube_call    call = VD_KUBE_CALL_INIT;
	struct kube_socket     server;
	struct vd_kube	      *kube;
	struct told	       told;
	unsigned	       i;

	(void) state;
	kube_socket_start(&server, answer_in_detail, NULL, NULL, NULL, NULL);
	options.token = "secret";
	kube = client_with(options, server.url);
	assert_string_equal(vd_kube_server(kube), server.url);
	assert_string_equal(vd_kube_namespace(kube), "default");
	call.method = "PUT";
	call.path = "/api/v1/x?a=b%20c";
	call.accept = "application/x";
	call.body = vd_bytes_of("{\"a\":1}");
	for (i = 0; i < 3; i++) {
		ask(kube, &call, &told);
		assert_status(told.status, VD_OK);
		assert_int_equal(told.code, 201);
		assert_string_equal(told.body.data, "hello");
		assert_string_equal(told.type.data, "text/plain");
		assert_string_equal(told.warning.data, "299 - \"first\"\n299 - \"second\"");
		told_fini(&told);
	}
	assert_null(vd_kube_close_wait(kube));
	assert_int_equal(atomic_load(&server.connections), 1); /* reused */
	kube_socket_stop(&server);
}

static bool answer_host(struct kube_socket_call *call, void *arg)
{
	char text[256];

	(void) arg;
	KUBE_SOCKET_EXPECT(strstr(kube_socket_header(call, "Host", text), "127.0.0.1:") == text);
	return kube_socket_say_text(call, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
}

/* It names the server in TLS, which a plain connection does not have. */
static void a_server_name_without_tls_has_no_effect(void **state)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct vd_kube_call    call = VD_KUBE_CALL_INIT;
	struct kube_socket     server;
	struct vd_kube	      *kube;
	struct told	       told;

	(void) state;
	kube_socket_start(&server, answer_host, NULL, NULL, NULL, NULL);
	options.tls_server_name = "elsewhere.example";
	kube = client_with(options, server.url);
	call.path = "/api";
	ask(kube, &call, &told);
	assert_status(told.status, VD_OK);
	assert_string_equal(told.body.data, "hello");
	told_fini(&told);
	assert_null(vd_kube_close_wait(kube));
	kube_socket_stop(&server);
}

static bool answer_with_status(struct kube_socket_call *call, void *arg)
{
	(void) arg;
	return kube_socket_say_text(call, "HTTP/1.1 404 Not Found\r\nContent-Length: 52\r\n\r\n"
					  "{\"kind\":\"Status\",\"message\":\"there is no such thing\"}");
}

static void an_error_has_the_servers_message(void **state)
{
	char message[384];

	(void) state;
	assert_status(get(answer_with_status, NULL, PATIENCE, message), VD_NOT_FOUND);
	assert_string_equal(message, "there is no such thing");
}

/* ---- Redirects ---- */

static bool answer_elsewhere(struct kube_socket_call *call, void *arg)
{
	struct kube_socket *other = arg;
	char		    text[256];

	snprintf(text, sizeof text, "HTTP/1.1 302 Found\r\nLocation: %s/\r\nContent-Length: 0\r\n\r\n",
		 other->url);
	return kube_socket_say_text(call, text);
}

static void redirects_are_not_followed(void **state)
{
	struct kube_socket other;
	char		   message[384];

	(void) state;
	kube_socket_start(&other, answer_with_status, NULL, NULL, NULL, NULL);
	assert_status(get(answer_elsewhere, &other, PATIENCE, message), VD_UNAVAILABLE);
	assert_non_null(strstr(message, "302"));
	assert_int_equal(atomic_load(&other.connections), 0);
	kube_socket_stop(&other);
}

/* ---- Broken and hostile servers ---- */

static bool answer_endless_head(struct kube_socket_call *call, void *arg)
{
	(void) arg;
	if (!kube_socket_say_text(call, "HTTP/1.1 200 OK\r\n"))
		return false;
	while (kube_socket_say_text(call, "X-Some-Header: with a value that goes on and on\r\n"))
		continue;
	return false;
}

/* One line of any length. */
static bool answer_endless_line(struct kube_socket_call *call, void *arg)
{
	(void) arg;
	if (!kube_socket_say_text(call, "HTTP/1.1 200 OK\r\nX-Some-Header: "))
		return false;
	while (kube_socket_say_text(call, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"))
		continue;
	return false;
}

static bool answer_endless_continue(struct kube_socket_call *call, void *arg)
{
	(void) arg;
	while (kube_socket_say_text(call, "HTTP/1.1 100 Continue\r\n\r\n"))
		continue;
	return false;
}

static void endless_heads_are_given_up(void **state)
{
	char	  message[384];
	vd_status status;

	(void) state;
	assert_status(get(answer_endless_head, NULL, PATIENCE, message), VD_TOO_BIG);
	assert_non_null(strstr(message, "head"));
	assert_status(get(answer_endless_continue, NULL, PATIENCE, message), VD_TOO_BIG);
	status = get(answer_endless_line, NULL, PATIENCE, message); /* libcurl's own bound */
	assert_true(status == VD_UNAVAILABLE || status == VD_TOO_BIG || status == VD_NOMEM);
}

/* Bytes that keep coming do not extend the time of a request. */
static bool answer_slowly(struct kube_socket_call *call, void *arg)
{
	(void) arg;
	if (!kube_socket_say_text(call, "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n"))
		return false;
	while (kube_socket_say_text(call, "a"))
		continue;
	return false;
}

static bool answer_never(struct kube_socket_call *call, void *arg)
{
	(void) arg;
	kube_socket_wait_for_end(call);
	return false;
}

static void a_request_has_a_deadline(void **state)
{
	char message[384];

	(void) state;
	assert_status(get(answer_slowly, NULL, VD_MS(100), message), VD_TIMEOUT);
	assert_non_null(strstr(message, "no complete response"));
	assert_status(get(answer_never, NULL, VD_MS(50), message), VD_TIMEOUT);
}

static bool answer_text(struct kube_socket_call *call, void *arg)
{
	(void) kube_socket_say_text(call, arg); /* and closes */
	return false;
}

static void broken_responses_are_errors(void **state)
{
	static const char *const texts[] = {
		"",
		"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ncut",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nhello\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nContent-Le",
		"hello, this is not HTTP\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 100 Continue\r\n\r\n",
	};
	char   message[384];
	size_t i;

	(void) state;
	for (i = 0; i < VDI_ARRAY_SIZE(texts); i++) {
		assert_status(get(answer_text, (void *) (uintptr_t) texts[i], PATIENCE, message),
			      VD_UNAVAILABLE);
		assert_non_null(strstr(message, "http://127.0.0.1:"));
	}
}

static void a_server_that_is_not_there(void **state)
{
	struct vd_kube_call call = VD_KUBE_CALL_INIT;
	struct kube_socket  server;
	struct vd_kube	   *kube;
	struct told	    told;

	(void) state;
	kube_socket_start(&server, answer_never, NULL, NULL, NULL, NULL);
	kube_socket_stop(&server);
	kube = client(server.url);
	call.path = "/";
	ask(kube, &call, &told);
	assert_status(told.status, VD_UNAVAILABLE);
	assert_int_equal(told.code, 0);
	told_fini(&told);
	assert_null(vd_kube_close_wait(kube));
}

static void closing_answers_outstanding_requests(void **state)
{
	struct vd_kube_call call = VD_KUBE_CALL_INIT;
	struct kube_socket  server;
	struct vd_kube	   *kube;
	struct told	    told[3];
	unsigned	    i;

	(void) state;
	kube_socket_start(&server, answer_never, NULL, NULL, NULL, NULL);
	kube = client(server.url);
	call.path = "/";
	for (i = 0; i < 3; i++) {
		told_begin(&told[i]);
		assert_status(vd_kube_request(kube, &call, on_answer, &told[i]), VD_OK);
	}
	AWAIT(atomic_load(&server.requests) == 3);
	assert_null(vd_kube_close_wait(kube));
	for (i = 0; i < 3; i++) {
		assert_true(vdi_wait_is_done(&told[i].wait));
		assert_status(told[i].status, VD_CLOSED);
		told_fini(&told[i]);
	}
	kube_socket_stop(&server);
}

/* ---- Compression ---- */

static char   packed[256];
static size_t packed_size;

static bool answer_packed(struct kube_socket_call *call, void *arg)
{
	char text[256];

	(void) arg;
	if (*kube_socket_header(call, "Accept-Encoding", text) == 0)
		return kube_socket_say_text(call, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain");
	expect_header(call, "Accept-Encoding", "gzip");
	snprintf(text, sizeof text,
		 "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n", packed_size);
	return kube_socket_say_text(call, text) && kube_socket_say(call, packed, packed_size);
}

static void pack(const char *text)
{
	z_stream stream = { 0 };

	assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	stream.next_in = (Bytef *) (uintptr_t) text;
	stream.avail_in = (uInt) strlen(text);
	stream.next_out = (Bytef *) packed;
	stream.avail_out = sizeof packed;
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	packed_size = stream.total_out;
	assert_int_equal(deflateEnd(&stream), Z_OK);
}

static void gzip_is_decoded_and_not_asked_for_by_watches(void **state)
{
	struct vd_kube_call call = VD_KUBE_CALL_INIT;
	struct kube_socket  server;
	struct vd_kube	   *kube;
	struct told	    told;

	(void) state;
	pack("unpacked");
	kube_socket_start(&server, answer_packed, NULL, NULL, NULL, NULL);
	kube = client(server.url);
	call.path = "/api/v1/pods";
	ask(kube, &call, &told);
	assert_status(told.status, VD_OK);
	assert_string_equal(told.body.data, "unpacked");
	told_fini(&told);
	call.path = "/api/v1/pods?watch=true";
	ask(kube, &call, &told);
	assert_string_equal(told.body.data, "plain");
	told_fini(&told);
	assert_null(vd_kube_close_wait(kube));
	kube_socket_stop(&server);
}

/* ---- Streams ---- */

/* A member with one exchange. */
struct stream {
	struct vdi_kube_member	     member;
	struct vdi_kube_http_request request;
	struct vdi_kube_exchange    *exchange;
	struct vdi_wait		     removed;
	_Atomic bool		     is_started, has_head, is_ended, is_paused, wants_cancel, wants_end;
	_Atomic uint64_t	     received, refused;
	bool			     is_wrong, is_resumed;
	vd_status		     status;
	struct vd_error		     error;
};

static void stream_head(void *arg, const struct vdi_kube_head *head)
{
	struct stream *stream = arg;

	KUBE_SOCKET_EXPECT(head->code == 200);
	stream->has_head = true;
}

/* The byte at each place of the body is known. */
static bool stream_body(void *arg, struct vd_bytes bytes)
{
	struct stream *stream = arg;
	uint64_t       at = stream->received;
	size_t	       i;

	if (stream->is_paused) {
		stream->refused++;
		return false;
	}
	for (i = 0; i < bytes.size; i++)
		if (((const unsigned char *) bytes.data)[i] != (unsigned char) ((at + i) % 251))
			stream->is_wrong = true;
	stream->received = at + bytes.size;
	return true;
}

static void stream_ended(void *arg, vd_status status, const struct vd_error *error)
{
	struct stream *stream = arg;

	stream->exchange = NULL;
	stream->status = status;
	stream->error = *error;
	stream->is_ended = true;
}

static vd_mono stream_run(struct vdi_kube_member *member, vd_mono now)
{
	struct stream		     *stream = VDI_CONTAINER_OF(member, struct stream, member);
	const struct vdi_kube_handler handler = { stream_head, stream_body, stream_ended, stream };

	(void) now;
	if (!stream->is_started) {
		stream->is_started = true;
		assert_status(
			vdi_kube_start(member->kube, &stream->request, &handler, &stream->exchange, NULL),
			VD_OK);
	}
	if (stream->exchange && (stream->wants_cancel || stream->wants_end)) {
		vdi_kube_cancel(stream->exchange);
		stream->exchange = NULL;
		stream->is_ended = true;
	}
	if (stream->exchange && !stream->is_paused && stream->refused)
		vdi_kube_resume(stream->exchange);
	if (stream->wants_end) {
		vdi_kube_member_remove(member);
		vdi_wait_signal(&stream->removed);
	}
	return VD_NEVER;
}

static void stream_open_path(struct stream *stream, struct vd_kube *kube, vd_dur silence_max,
			     const char *path, bool is_paused)
{
	memset(stream, 0, sizeof *stream);
	vdi_wait_init(&stream->removed, env);
	stream->is_paused = is_paused;
	stream->request.method = "GET";
	stream->request.path = path;
	stream->request.silence_max = silence_max;
	stream->member.run = stream_run;
	assert_status(vdi_kube_member_add(kube, &stream->member), VD_OK);
}

static void stream_open(struct stream *stream, struct vd_kube *kube, vd_dur silence_max)
{
	stream_open_path(stream, kube, silence_max, "/api/v1/pods?watch=true", false);
}

static void stream_close(struct stream *stream)
{
	stream->wants_end = true;
	vdi_kube_member_wake(&stream->member);
	vdi_wait_wait(&stream->removed);
	vdi_wait_fini(&stream->removed);
}

static _Atomic uint64_t said;

/* Sends bytes for as long as the client takes them. */
static bool answer_stream(struct kube_socket_call *call, void *arg)
{
	uint64_t     *size_max = arg;
	unsigned char part[4096];
	char	      text[64];
	uint64_t      at = 0;
	size_t	      i;

	said = 0;
	if (!kube_socket_say_text(call, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))
		return false;
	snprintf(text, sizeof text, "%zx\r\n", sizeof part);
	for (; at < *size_max; at += sizeof part) {
		for (i = 0; i < sizeof part; i++)
			part[i] = (unsigned char) ((at + i) % 251);
		if (!kube_socket_say_text(call, text) || !kube_socket_say(call, (char *) part, sizeof part) ||
		    !kube_socket_say_text(call, "\r\n"))
			return false;
		said = at + sizeof part;
	}
	if (*size_max % 2 == 0)
		return kube_socket_say_text(call, "0\r\n\r\n");
	kube_socket_wait_for_end(call);
	return false;
}

static void a_refused_stream_is_held_and_goes_on(void **state)
{
	uint64_t	   size = (uint64_t) 48 << 20, before;
	struct kube_socket server;
	struct vd_kube	  *kube;
	struct stream	   stream;
	unsigned	   i;

	(void) state;
	kube_socket_start(&server, answer_stream, &size, NULL, NULL, NULL);
	kube = client(server.url);
	stream_open(&stream, kube, VD_SECONDS(60));
	for (i = 0; i < 3; i++) {
		AWAIT(stream.received > 0);
		before = stream.refused;
		stream.is_paused = true;
		AWAIT(stream.refused > before || stream.is_ended);
		before = stream.received;
		stream.is_paused = false;
		vdi_kube_member_wake(&stream.member);
		AWAIT(stream.received > before || stream.is_ended);
	}
	AWAIT(stream.is_ended);
	assert_status(stream.status, VD_OK);
	assert_int_equal(stream.received, size);
	assert_false(stream.is_wrong);
	stream_close(&stream);
	assert_null(vd_kube_close_wait(kube));
	kube_socket_stop(&server);
}

#define PACKED_SIZE ((size_t) 24 << 20)

/* The same bytes, compressed, in one response of known length. */
static bool answer_packed_stream(struct kube_socket_call *call, void *arg)
{
	z_stream       stream = { 0 };
	unsigned char *plain = malloc(PACKED_SIZE), *small = malloc(PACKED_SIZE + 65536);
	char	       text[128];
	size_t	       i;
	bool	       is_said;

	(void) arg;
	for (i = 0; i < PACKED_SIZE; i++)
		plain[i] = (unsigned char) (i % 251);
	KUBE_SOCKET_EXPECT(deflateInit2(&stream, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) == Z_OK);
	stream.next_in = plain;
	stream.avail_in = (uInt) PACKED_SIZE;
	stream.next_out = small;
	stream.avail_out = (uInt) PACKED_SIZE + 65536;
	KUBE_SOCKET_EXPECT(deflate(&stream, Z_FINISH) == Z_STREAM_END);
	snprintf(text, sizeof text,
		 "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %lu\r\n\r\n",
		 stream.total_out);
	is_said = kube_socket_say_text(call, text) && kube_socket_say(call, (char *) small, stream.total_out);
	KUBE_SOCKET_EXPECT(deflateEnd(&stream) == Z_OK);
	free(plain);
	free(small);
	return is_said;
}

static void a_refused_compressed_response_is_held_and_goes_on(void **state)
{
	struct kube_socket server;
	struct vd_kube	  *kube;
	struct stream	   stream;
	uint64_t	   before;

	(void) state;
	kube_socket_start(&server, answer_packed_stream, NULL, NULL, NULL, NULL);
	kube = client(server.url);
	stream_open_path(&stream, kube, VD_SECONDS(60), "/api/v1/pods", true);
	AWAIT(stream.refused > 0);
	while (!stream.is_ended) {
		before = stream.received;
		stream.is_paused = false;
		vdi_kube_member_wake(&stream.member);
		AWAIT(stream.received > before || stream.is_ended);
		before = stream.refused;
		stream.is_paused = true;
		AWAIT(stream.refused > before || stream.is_ended);
	}
	assert_status(stream.status, VD_OK);
	assert_int_equal(stream.received, PACKED_SIZE);
	assert_false(stream.is_wrong);
	stream_close(&stream);
	assert_null(vd_kube_close_wait(kube));
	kube_socket_stop(&server);
}

/* An endless response fills no memory while it is refused: the server is stopped by back pressure. */
static void a_paused_stream_is_bounded(void **state)
{
	uint64_t	   size = UINT64_MAX, taken = 0;
	struct kube_socket server;
	struct vd_kube	  *kube;
	struct stream	   stream;
	struct await	   await = { 0 };
	unsigned	   blocked = 0;

	(void) state;
	kube_socket_start(&server, answer_stream, &size, NULL, NULL, NULL);
	kube = client(server.url);
	stream_open(&stream, kube, VD_SECONDS(60));
	AWAIT(stream.received > 0);
	stream.is_paused = true;
	AWAIT(stream.refused > 0);
	while (blocked < 20000) {
		blocked = said == taken && atomic_load(&server.is_blocked) ? blocked + 1 : 0;
		taken = said;
		await_turn(&await, "the server is blocked", __FILE__, __LINE__);
	}
	assert_true(said - stream.received < ((uint64_t) 64 << 20)); /* mostly buffers of the kernel */
	assert_false(stream.is_wrong);
	stream_close(&stream);
	assert_null(vd_kube_close_wait(kube));
	kube_socket_stop(&server);
}

static void a_silent_stream_ends(void **state)
{
	uint64_t	   size = 4097; /* odd: then nothing */
	struct kube_socket server;
	struct vd_kube	  *kube;
	struct stream	   stream;

	(void) state;
	kube_socket_start(&server, answer_stream, &size, NULL, NULL, NULL);
	kube = client(server.url);
	stream_open(&stream, kube, VD_MS(100));
	AWAIT(stream.is_ended);
	assert_status(stream.status, VD_TIMEOUT);
	assert_non_null(strstr(stream.error.message, "nothing was received for 0.1 s"));
	assert_int_equal(stream.received, 8192);
	stream_close(&stream);
	assert_null(vd_kube_close_wait(kube));
	kube_socket_stop(&server);
}

#define MANY 100

static void many_streams_are_served_at_once(void **state)
{
	static struct stream streams[MANY];
	uint64_t	     size = 4097;
	struct kube_socket   server;
	struct vd_kube	    *kube;
	unsigned	     i;

	(void) state;
	kube_socket_start(&server, answer_stream, &size, NULL, NULL, NULL);
	kube = client(server.url);
	for (i = 0; i < MANY; i++)
		stream_open(&streams[i], kube, VD_SECONDS(300));
	for (i = 0; i < MANY; i++) {
		AWAIT(streams[i].received == 8192 || streams[i].is_ended);
		assert_false(streams[i].is_ended);
	}
	assert_int_equal(atomic_load(&server.connections), MANY);
	/* Those that are canceled while others wait for their turn. */
	for (i = 0; i < MANY; i++)
		stream_close(&streams[i]);
	for (i = 0; i < 20; i++)
		stream_open(&streams[i], kube, VD_SECONDS(300));
	for (i = 0; i < 20; i++)
		stream_close(&streams[i]);
	assert_null(vd_kube_close_wait(kube));
	kube_socket_stop(&server);
}

static void a_stream_is_canceled(void **state)
{
	uint64_t	   size = UINT64_MAX;
	struct kube_socket server;
	struct vd_kube	  *kube;
	struct stream	   stream;
	uint64_t	   received;

	(void) state;
	kube_socket_start(&server, answer_stream, &size, NULL, NULL, NULL);
	kube = client(server.url);
	stream_open(&stream, kube, VD_SECONDS(60));
	AWAIT(stream.received > 100000);
	stream.wants_cancel = true;
	vdi_kube_member_wake(&stream.member);
	AWAIT(stream.is_ended);
	received = stream.received;
	stream_close(&stream);
	assert_int_equal(stream.received, received);
	assert_null(vd_kube_close_wait(kube));
	kube_socket_stop(&server);
}

/* ---- TLS ---- */

static bool answer_ok(struct kube_socket_call *call, void *arg)
{
	(void) arg;
	return kube_socket_say_text(call, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
}

static vd_status get_tls(const struct kube_socket *server, struct vd_kube_options options, char message[384])
{
	struct vd_kube_call call = VD_KUBE_CALL_INIT;
	struct vd_kube	   *kube = client_with(options, server->url);
	struct told	    told;
	vd_status	    status;

	call.path = "/";
	ask(kube, &call, &told);
	status = told.status;
	snprintf(message, 384, "%s", told.error.message);
	told_fini(&told);
	assert_null(vd_kube_close_wait(kube));
	return status;
}

static void certificates_are_verified(void **state)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct rpc_certs       certs;
	struct kube_socket     server;
	char		       message[384];

	(void) state;
	if (!rpc_certs_make(&certs))
		skip_because("there is no openssl");
	kube_socket_start(&server, answer_ok, NULL, rpc_certs_path(&certs, "server.pem"),
			  rpc_certs_path(&certs, "server.key"), NULL);
	assert_status(get_tls(&server, options, message), VD_UNAVAILABLE); /* the system's CAs */
	options.ca_path = rpc_certs_path(&certs, "stranger.pem");
	assert_status(get_tls(&server, options, message), VD_UNAVAILABLE);
	assert_non_null(strstr(message, "certificate"));
	options.insecure = true;
	assert_status(get_tls(&server, options, message), VD_OK);
	options.insecure = false;
	options.ca_path = rpc_certs_path(&certs, "ca.pem");
	assert_status(get_tls(&server, options, message), VD_OK);
	options.tls_server_name = "localhost";
	assert_status(get_tls(&server, options, message), VD_OK);
	options.tls_server_name = "elsewhere.example";
	assert_status(get_tls(&server, options, message), VD_UNAVAILABLE);
	kube_socket_stop(&server);
	rpc_certs_remove(&certs);
}

static bool answer_by_name(struct kube_socket_call *call, void *arg)
{
	const char *name = SSL_get_servername(call->ssl, TLSEXT_NAMETYPE_host_name);
	char	    text[256];

	(void) arg;
	KUBE_SOCKET_EXPECT(strncmp(kube_socket_header(call, "Host", text), "127.0.0.1:", 10) == 0);
	KUBE_SOCKET_EXPECT(name && strcmp(name, "elsewhere.example") == 0);
	return answer_ok(call, arg);
}

static void the_server_name_and_a_client_certificate(void **state)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct rpc_certs       certs;
	struct kube_socket     server;
	char		       message[384];

	(void) state;
	if (!rpc_certs_make(&certs))
		skip_because("there is no openssl");
	kube_socket_start(&server, answer_by_name, NULL, rpc_certs_path(&certs, "elsewhere.pem"),
			  rpc_certs_path(&certs, "elsewhere.key"), rpc_certs_path(&certs, "ca.pem"));
	options.ca_path = rpc_certs_path(&certs, "ca.pem");
	options.tls_server_name = "elsewhere.example";
	assert_status(get_tls(&server, options, message), VD_UNAVAILABLE); /* no client certificate */
	options.cert_path = rpc_certs_path(&certs, "client.pem");
	options.key_path = rpc_certs_path(&certs, "client.key");
	assert_status(get_tls(&server, options, message), VD_OK);
	kube_socket_stop(&server);
	rpc_certs_remove(&certs);
}

/* ---- Proxies ---- */

static bool answer_as_proxy(struct kube_socket_call *call, void *arg)
{
	(void) arg;
	return kube_socket_say_text(call, strstr(call->head, "GET http://") == call->head ?
						  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nproxy" :
						  "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ndirect");
}

/* Sends GET / to the server; body gets the answer, empty if there is none. */
static void get_body(const char *server, const char *proxy_url, char body[16])
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct vd_kube_call    call = VD_KUBE_CALL_INIT;
	struct vd_kube	      *kube;
	struct told	       told;

	options.proxy_url = proxy_url;
	kube = client_with(options, server);
	call.path = "/";
	ask(kube, &call, &told);
	snprintf(body, 16, "%s", told.status == VD_OK ? (const char *) told.body.data : "");
	told_fini(&told);
	assert_null(vd_kube_close_wait(kube));
}

static void proxies_are_used_unless_the_server_is_here(void **state)
{
	struct kube_socket server;
	char		   body[16];

	(void) state;
	kube_socket_start(&server, answer_as_proxy, NULL, NULL, NULL, NULL);
	(void) setenv("HTTP_PROXY", server.url, 1);
	get_body("http://kube.invalid", NULL, body);
	assert_string_equal(body, "proxy");
	get_body(server.url, NULL, body);
	assert_string_equal(body, "direct");
	(void) setenv("NO_PROXY", "kube.invalid", 1);
	get_body("http://kube.invalid", NULL, body);
	assert_string_equal(body, "");
	get_body("http://kube.invalid", server.url, body); /* the option counts more */
	assert_string_equal(body, "proxy");
	(void) unsetenv("HTTP_PROXY");
	(void) unsetenv("NO_PROXY");
	get_body("http://kube.invalid", server.url, body);
	assert_string_equal(body, "proxy");
	kube_socket_stop(&server);
}

static void bad_urls_are_refused(void **state)
{
	static const char *const urls[] = { "http://user:pass@127.0.0.1",
					    "http://127.0.0.1/?a",
					    "ftp://127.0.0.1",
					    "127.0.0.1:80",
					    "http://",
					    "http://a b",
					    "http://127.0.0.1/#x" };
	struct vd_kube_options	 options = VD_KUBE_OPTIONS_INIT;
	struct vd_error		 error;
	struct vd_kube		*kube;
	size_t			 i;

	(void) state;
	for (i = 0; i < VDI_ARRAY_SIZE(urls); i++) {
		options.server = urls[i];
		assert_status(vd_kube_open(env, &options, &kube, &error), VD_INVALID_ARGUMENT);
		assert_non_null(strstr(error.message, "URL"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_and_its_answer),
		cmocka_unit_test(a_server_name_without_tls_has_no_effect),
		cmocka_unit_test(an_error_has_the_servers_message),
		cmocka_unit_test(redirects_are_not_followed),
		cmocka_unit_test(endless_heads_are_given_up),
		cmocka_unit_test(a_request_has_a_deadline),
		cmocka_unit_test(broken_responses_are_errors),
		cmocka_unit_test(a_server_that_is_not_there),
		cmocka_unit_test(closing_answers_outstanding_requests),
		cmocka_unit_test(gzip_is_decoded_and_not_asked_for_by_watches),
		cmocka_unit_test(a_refused_stream_is_held_and_goes_on),
		cmocka_unit_test(a_refused_compressed_response_is_held_and_goes_on),
		cmocka_unit_test(a_paused_stream_is_bounded),
		cmocka_unit_test(a_silent_stream_ends),
		cmocka_unit_test(many_streams_are_served_at_once),
		cmocka_unit_test(a_stream_is_canceled),
		cmocka_unit_test(certificates_are_verified),
		cmocka_unit_test(the_server_name_and_a_client_certificate),
		cmocka_unit_test(proxies_are_used_unless_the_server_is_here),
		cmocka_unit_test(bad_urls_are_refused),
	};

	return cmocka_run_group_tests(tests, start_env, stop_env);
}
