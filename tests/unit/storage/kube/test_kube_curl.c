/* The transport over real sockets: what is sent, and what servers do that are broken or hostile. */
#include "kube_curl.h"

#include <stdatomic.h>
#include <zlib.h>

#include "await.h"
#include "kube_client.h"
#include "kube_reply.h"
#include "kube_socket.h"
#include "temp_folder.h"
#include "vdtest.h"

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

/* Sends GET path to a server with this answer; returns the status and the message. */
static vd_status get(kube_socket_answer_fn answer, void *arg, vd_dur timeout, char message[384])
{
	struct vd_kube_call call = VD_KUBE_CALL_INIT;
	struct kube_socket  server;
	struct vd_kube	   *kube;
	struct kube_reply   reply;
	vd_status	    status;

	kube_socket_start(&server, answer, arg, NULL, NULL, NULL);
	kube = client(server.url);
	call.path = "/api";
	call.timeout = timeout;
	kube_reply_await(&reply, env, kube, &call);
	status = reply.status;
	snprintf(message, 384, "%s", reply.error.message);
	kube_reply_fini(&reply);
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
	struct kube_reply      reply;
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
		kube_reply_await(&reply, env, kube, &call);
		assert_status(reply.status, VD_OK);
		assert_int_equal(reply.code, 201);
		assert_string_equal(reply.body.data, "hello");
		assert_string_equal(reply.type.data, "text/plain");
		assert_string_equal(reply.warning.data, "299 - \"first\"\n299 - \"second\"");
		kube_reply_fini(&reply);
	}
	assert_null(vd_kube_close_wait(kube));
	assert_int_equal(atomic_load(&server.connections), 1); /* reused */
	kube_socket_stop(&server);
}

static bool answer_head(struct kube_socket_call *call, void *arg)
{
	(void) arg;
	KUBE_SOCKET_EXPECT(strstr(call->head, "HEAD /a/../b/./c HTTP/1.1\r\n") == call->head);
	expect_header(call, "Accept", "application/json");
	expect_header(call, "Content-Type", "");
	expect_header(call, "Authorization", "");
	(void) kube_socket_say_text(call, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
	return false;
}

/* The response to HEAD has no body, whatever its length says; a path is sent as it is. */
static void a_request_without_a_body(void **state)
{
	struct vd_kube_call call = VD_KUBE_CALL_INIT;
	struct kube_socket  server;
	struct vd_kube	   *kube;
	struct kube_reply   reply;

	(void) state;
	kube_socket_start(&server, answer_head, NULL, NULL, NULL, NULL);
	kube = client(server.url);
	call.method = "HEAD";
	call.path = "/a/../b/./c";
	kube_reply_await(&reply, env, kube, &call);
	assert_status(reply.status, VD_OK);
	assert_string_equal(reply.body.data, "");
	kube_reply_fini(&reply);
	assert_null(vd_kube_close_wait(kube));
	kube_socket_stop(&server);
}

static bool answer_text(struct kube_socket_call *call, void *arg)
{
	(void) kube_socket_say_text(call, arg); /* and closes */
	return false;
}

static void a_head_is_that_of_the_final_response(void **state)
{
	static const struct {
		const char *text, *type, *warning;
		int	    code;
		unsigned    retry_after_s;
	} rows[] = {
		{ "HTTP/1.1 103 Early Hints\r\nContent-Type: early/hints\r\nWarning: early\r\n\r\n"
		  "HTTP/1.1 200 OK\r\nCONTENT-TYPE:\t a/b; c \t\r\nContent-Length: 0\r\n\r\n",
		  "a/b; c", "", 200, 0 },
		{ "HTTP/1.1 299 OK\r\nContent-Type:\r\nWarnings: no\r\nwarning:a\r\nWarning: \r\n"
		  "Warning: b\r\nContent-Length: 0\r\n\r\n",
		  "", "a\n\nb", 299, 0 },
		{ "HTTP/1.1 500 No\r\nRetry-After: 86400\r\nContent-Length: 0\r\n\r\n", "", "", 500, 86400 },
		{ "HTTP/1.1 500 No\r\nRetry-After: 86401\r\nContent-Length: 0\r\n\r\n", "", "", 500, 86400 },
		{ "HTTP/1.1 500 No\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n", "", "", 500, 1 },
		{ "HTTP/1.1 500 No\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n", "", "", 500, 0 },
		{ "HTTP/1.1 300 No\r\nContent-Length: 0\r\n\r\n", "", "", 300, 0 },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_kube_call call = VD_KUBE_CALL_INIT;
		struct kube_socket  server;
		struct vd_kube	   *kube;
		struct kube_reply   reply;

		kube_socket_start(&server, answer_text, (void *) (uintptr_t) rows[i].text, NULL, NULL, NULL);
		kube = client(server.url);
		call.path = "/";
		kube_reply_await(&reply, env, kube, &call);
		assert_int_equal(reply.code, rows[i].code);
		assert_status(reply.status, rows[i].code < 300 ? VD_OK : VD_UNAVAILABLE);
		assert_string_equal(reply.type.data, rows[i].type);
		assert_string_equal(reply.warning.data, rows[i].warning);
		assert_int_equal(reply.error.retry_after_s, rows[i].retry_after_s);
		kube_reply_fini(&reply);
		assert_null(vd_kube_close_wait(kube));
		kube_socket_stop(&server);
	}
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
	struct kube_reply   reply;

	(void) state;
	kube_socket_start(&server, answer_never, NULL, NULL, NULL, NULL);
	kube_socket_stop(&server);
	kube = client(server.url);
	call.path = "/";
	kube_reply_await(&reply, env, kube, &call);
	assert_status(reply.status, VD_UNAVAILABLE);
	assert_int_equal(reply.code, 0);
	kube_reply_fini(&reply);
	assert_null(vd_kube_close_wait(kube));
}

/* The time of a request is also that of its credential's program. */
static void a_request_ends_while_its_program_runs(void **state)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct vd_kube_call    call = VD_KUBE_CALL_INIT;
	struct kube_reply      reply;
	struct vd_error	       error = { 0 };
	struct vd_kube	      *kube = NULL;
	char		       folder[TEMP_FOLDER_SIZE], path[TEMP_FOLDER_SIZE + 8];
	FILE		      *file;

	(void) state;
	temp_folder_make(folder);
	snprintf(path, sizeof path, "%s/config", folder);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs("current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
			  "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\n"
			  "users: [{name: a, user: {exec: {command: sleep, args: ['1000'], apiVersion: "
			  "client.authentication.k8s.io/v1}}}]\n",
			  file) >= 0);
	assert_int_equal(fclose(file), 0);
	options.kubeconfig = path;
	assert_status(vd_kube_open(env, &options, &kube, &error), VD_OK);
	call.path = "/api";
	call.timeout = VD_MS(20);
	kube_reply_await(&reply, env, kube, &call);
	assert_status(reply.status, VD_TIMEOUT);
	assert_string_equal(reply.error.message, "GET /api: no answer in time");
	assert_int_equal(reply.code, 0);
	kube_reply_fini(&reply);
	assert_null(vd_kube_close_wait(kube));
	temp_folder_remove(folder);
}

static void closing_answers_outstanding_requests(void **state)
{
	struct vd_kube_call call = VD_KUBE_CALL_INIT;
	struct kube_socket  server;
	struct vd_kube	   *kube;
	struct kube_reply   replies[3];
	unsigned	    i;

	(void) state;
	kube_socket_start(&server, answer_never, NULL, NULL, NULL, NULL);
	kube = client(server.url);
	call.path = "/";
	for (i = 0; i < 3; i++) {
		kube_reply_begin(&replies[i], env);
		assert_status(vd_kube_request(kube, &call, kube_reply_on_answer, &replies[i]), VD_OK);
	}
	AWAIT(atomic_load(&server.requests) == 3);
	assert_null(vd_kube_close_wait(kube));
	for (i = 0; i < 3; i++) {
		assert_true(vdi_wait_is_done(&replies[i].wait));
		assert_status(replies[i].status, VD_CLOSED);
		kube_reply_fini(&replies[i]);
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
	struct kube_reply   reply;

	(void) state;
	pack("unpacked");
	kube_socket_start(&server, answer_packed, NULL, NULL, NULL, NULL);
	kube = client(server.url);
	call.path = "/api/v1/pods";
	kube_reply_await(&reply, env, kube, &call);
	assert_status(reply.status, VD_OK);
	assert_string_equal(reply.body.data, "unpacked");
	kube_reply_fini(&reply);
	call.path = "/api/v1/pods?watch=true";
	kube_reply_await(&reply, env, kube, &call);
	assert_string_equal(reply.body.data, "plain");
	kube_reply_fini(&reply);
	assert_null(vd_kube_close_wait(kube));
	kube_socket_stop(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_and_its_answer),
		cmocka_unit_test(a_request_without_a_body),
		cmocka_unit_test(a_head_is_that_of_the_final_response),
		cmocka_unit_test(an_error_has_the_servers_message),
		cmocka_unit_test(redirects_are_not_followed),
		cmocka_unit_test(endless_heads_are_given_up),
		cmocka_unit_test(a_request_has_a_deadline),
		cmocka_unit_test(broken_responses_are_errors),
		cmocka_unit_test(a_server_that_is_not_there),
		cmocka_unit_test(a_request_ends_while_its_program_runs),
		cmocka_unit_test(closing_answers_outstanding_requests),
		cmocka_unit_test(gzip_is_decoded_and_not_asked_for_by_watches),
	};

	return cmocka_run_group_tests(tests, start_env, stop_env);
}
