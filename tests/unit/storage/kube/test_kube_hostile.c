/* Broken and hostile servers over real sockets: what a client, and a source that follows a resource, do with
 * responses that no API server sends. Each ends with an error that names the cause, in bounded memory, and
 * the client can be closed. Some of the bounds are tested by test_kube_curl*.c. */
#include <stdatomic.h>
#include <unistd.h>
#include <zlib.h>

#include "await.h"
#include "buffer.h"
#include "kube_client.h"
#include "kube_socket.h"
#include "lock.h"
#include "vdtest.h"
#include "wait.h"

#define MIB ((size_t) 1 << 20)

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

/* ---- Requests ---- */

struct told {
	struct vdi_wait wait;
	vd_status	status;
	char		message[512];
	char		body[256];
	size_t		size;
};

static void on_answer(void *arg, vd_status status, const struct vd_kube_answer *answer,
		      const struct vd_error *error)
{
	struct told *told = arg;

	told->status = status;
	snprintf(told->message, sizeof told->message, "%s", error->message);
	if (answer) {
		told->size = answer->body.size;
		snprintf(told->body, sizeof told->body, "%.*s",
			 (int) VDI_MIN(answer->body.size, sizeof told->body - 1),
			 answer->body.size ? (const char *) answer->body.data : "");
	}
	vdi_wait_signal(&told->wait);
}

static struct vd_kube *client(const char *server, const char *token)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct vd_error	       error = { 0 };
	struct vd_kube	      *kube = NULL;

	options.server = server;
	options.token = token;
	if (vd_kube_open(env, &options, &kube, &error) != VD_OK)
		fail_msg("%s", error.message);
	return kube;
}

static void ask(struct vd_kube *kube, struct told *told)
{
	struct vd_kube_call call = VD_KUBE_CALL_INIT;

	memset(told, 0, sizeof *told);
	vdi_wait_init(&told->wait, env);
	call.path = "/api";
	call.timeout = VD_SECONDS(60);
	assert_status(vd_kube_request(kube, &call, on_answer, told), VD_OK);
	vdi_wait_wait(&told->wait);
	vdi_wait_fini(&told->wait);
}

static struct told ask_once(kube_socket_answer_fn answer, void *arg)
{
	struct kube_socket server;
	struct vd_kube	  *kube;
	struct told	   told;

	kube_socket_start(&server, answer, arg, NULL, NULL, NULL);
	kube = client(server.url, NULL);
	ask(kube, &told);
	assert_null(vd_kube_close_wait(kube));
	kube_socket_stop(&server);
	return told;
}

static bool answer_bytewise(struct kube_socket_call *call, void *arg)
{
	for (const char *text = arg; *text; text++)
		if (!kube_socket_say(call, text, 1))
			return false;
	return false;
}

static void a_response_of_single_bytes_is_read(void **state)
{
	static char text[] =
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
		"\r\n3\r\n{\"a\r\n4\r\n\":1}\r\n0\r\n\r\n";
	struct told told = ask_once(answer_bytewise, text);

	(void) state;
	assert_status(told.status, VD_OK);
	assert_string_equal(told.body, "{\"a\":1}");
}

static void a_server_of_http_1_0_is_read_to_its_end(void **state)
{
	static char text[] = "HTTP/1.0 200 OK\r\n\r\n{\"a\":1}";
	struct told told = ask_once(answer_bytewise, text);

	(void) state;
	assert_status(told.status, VD_OK);
	assert_string_equal(told.body, "{\"a\":1}");
}

/* The second response was not asked for. */
static bool answer_twice(struct kube_socket_call *call, void *arg)
{
	(void) arg;
	return kube_socket_say_text(call, call->number == 0 ?
						  "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none"
						  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong" :
						  "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo");
}

static void a_response_before_its_request_is_not_taken(void **state)
{
	struct kube_socket server;
	struct vd_kube	  *kube;
	struct told	   told;

	(void) state;
	kube_socket_start(&server, answer_twice, NULL, NULL, NULL, NULL);
	kube = client(server.url, NULL);
	ask(kube, &told);
	assert_string_equal(told.body, "one");
	ask(kube, &told);
	assert_string_equal(told.body, "two");
	assert_null(vd_kube_close_wait(kube));
	kube_socket_stop(&server);
}

static bool answer_lying_chunks(struct kube_socket_call *call, void *arg)
{
	(void) kube_socket_say_text(call, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	(void) kube_socket_say_text(call, arg);
	return false;
}

static void chunks_that_lie_about_their_size_are_errors(void **state)
{
	static char texts[][40] = { "ffffffffffffffffffff\r\nx\r\n0\r\n\r\n", "-1\r\nx\r\n0\r\n\r\n",
				    "1\r\nxxxxx\r\n0\r\n\r\n", "7fffffffffffffff\r\nx" };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(texts); i++)
		assert_status(ask_once(answer_lying_chunks, texts[i]).status, VD_UNAVAILABLE);
}

static bool answer_two_lengths(struct kube_socket_call *call, void *arg)
{
	(void) arg;
	(void) kube_socket_say_text(
		call, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4000\r\n\r\none");
	return false;
}

static void two_lengths_are_not_both_believed(void **state)
{
	struct told told = ask_once(answer_two_lengths, NULL);

	(void) state;
	assert_true(told.status == VD_UNAVAILABLE || told.size == 3);
}

/* ---- Redirects ---- */

static bool refuse_token(struct kube_socket_call *call, void *arg)
{
	(void) arg;
	KUBE_SOCKET_EXPECT(strstr(call->head, "secret") == NULL);
	return kube_socket_say_text(call, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
}

static bool redirect(struct kube_socket_call *call, void *arg)
{
	struct kube_socket *other = arg;
	char		    text[256];

	snprintf(text, sizeof text,
		 "HTTP/1.1 %u Found\r\nlocation: %s/api?ticket=abc\r\nContent-Length: 0\r\n\r\n",
		 (unsigned[]) { 301, 302, 303, 307, 308 }[call->number % 5], other->url);
	return kube_socket_say_text(call, text);
}

static void no_redirect_takes_the_token_to_another_host(void **state)
{
	struct kube_socket server, other;
	struct vd_kube	  *kube;
	struct told	   told;
	char		   named[160];

	(void) state;
	kube_socket_start(&other, refuse_token, NULL, NULL, NULL, NULL);
	snprintf(named, sizeof named, "a redirect to %s/api: ", other.url); /* without the ticket */
	kube_socket_start(&server, redirect, &other, NULL, NULL, NULL);
	kube = client(server.url, "secret");
	for (unsigned i = 0; i < 5; i++) {
		ask(kube, &told);
		assert_status(told.status, VD_UNAVAILABLE);
		assert_non_null(strstr(told.message, "HTTP status 30"));
		assert_non_null(strstr(told.message, named));
	}
	assert_null(vd_kube_close_wait(kube));
	assert_int_equal(atomic_load(&other.connections), 0);
	kube_socket_stop(&server);
	kube_socket_stop(&other);
}

/* ---- Sources ---- */

/* A server that answers watches and lists of pods with one text, and everything else as an API server. */
struct hostile {
	const char	     *type;	  /* NULL: application/json */
	const char	     *watch_list; /* NULL: 403 */
	const char	     *list;	  /* NULL: 404 */
	kube_socket_answer_fn say; /* NULL, or the body of the list if list is NULL, else that of the watch */
	_Atomic unsigned      watches, lists;
};

static bool say_response(struct kube_socket_call *call, const char *code, const char *type, const char *text)
{
	char head[256];

	snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", code,
		 type, strlen(text));
	return kube_socket_say_text(call, head) && kube_socket_say_text(call, text);
}

static bool answer_hostile(struct kube_socket_call *call, void *arg)
{
	struct hostile *hostile = arg;
	const char     *type = hostile->type ? hostile->type : "application/json";

	if (strstr(call->head, "/namespaces/kube-system "))
		return say_response(call, "200 OK", "application/json", "{\"metadata\":{\"uid\":\"u\"}}");
	if (strstr(call->head, "watch=true")) {
		atomic_fetch_add(&hostile->watches, 1);
		if (hostile->watch_list)
			return say_response(call, "200 OK", type, hostile->watch_list);
		if (hostile->say && hostile->list)
			return hostile->say(call, hostile);
		return say_response(call, "403 Forbidden", "application/json", "{\"code\":403}");
	}
	atomic_fetch_add(&hostile->lists, 1);
	if (hostile->list)
		return say_response(call, "200 OK", type, hostile->list);
	if (hostile->say)
		return hostile->say(call, hostile);
	return say_response(call, "404 Not Found", "application/json", "{\"code\":404}");
}

/* The health of one source. */
struct seen {
	pthread_mutex_t mutex;
	char		message[512];
	vd_status	code;
	_Atomic bool	has_failed, is_watching;
};

static void on_changed(void *arg, const struct vd_kube_health *health)
{
	struct seen *seen = arg;

	if (health->resource == NULL)
		return;
	if (health->state == VD_KUBE_WATCHING)
		atomic_store(&seen->is_watching, true);
	if (health->state != VD_KUBE_RETRYING || atomic_load(&seen->has_failed))
		return;
	snprintf(seen->message, sizeof seen->message, "%s", health->error.message);
	seen->code = health->error.code;
	atomic_store(&seen->has_failed, true);
}

static void ignore(void *arg)
{
	(void) arg;
}

/* Follows the server's pods until the first failure, or until it watches; returns what was seen. */
static struct seen follow(struct hostile *hostile, bool until_watching)
{
	static const struct vd_kube_resource pods = { "", "v1", "pods", "Pod", false };
	struct vd_store_watch_request	     request = { .key = vd_bytes_of("/registry/pods/"),
							 .range_end = vd_bytes_of("/registry/pods0"),
							 .ready = ignore };
	struct vd_kube_options		     options = VD_KUBE_OPTIONS_INIT;
	struct seen			     seen = { .code = VD_OK };
	struct vd_store_watch		    *watch;
	struct vd_store			    *store;
	struct vd_kube			    *kube;
	struct kube_socket		     server;

	kube_socket_start(&server, answer_hostile, hostile, NULL, NULL, NULL);
	options.server = server.url;
	options.changed = on_changed;
	options.changed_arg = &seen;
	assert_status(vd_kube_open(env, &options, &kube, NULL), VD_OK);
	assert_status(vd_store_open_kube(kube, &pods, NULL, "/registry/pods/", &store, NULL), VD_OK);
	assert_status(vd_store_watch_open(store, &request, &watch, NULL), VD_OK);
	AWAIT(atomic_load(&seen.has_failed) || (until_watching && atomic_load(&seen.is_watching)));
	vd_store_watch_close(watch);
	assert_null(vd_store_close_wait(store));
	assert_null(vd_kube_close_wait(kube));
	kube_socket_stop(&server);
	return seen;
}

static void expect_failure(struct hostile *hostile, vd_status code, const char *text)
{
	struct seen seen = follow(hostile, false);

	if (seen.code != code || strstr(seen.message, text) == NULL)
		fail_msg("%d: \"%s\" is not %d: \"%s\"", (int) seen.code, seen.message, (int) code, text);
}

#define POD(name, revision)                                                                                  \
	"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"" name "\",\"namespace\":\"n\","   \
	"\"resourceVersion\":\"" revision "\"}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"

static void expect_event(const char *event, const char *text)
{
	struct hostile hostile = { .watch_list = event };

	expect_failure(&hostile, VD_BAD_REQUEST, text);
}

static void a_page_of_a_proxy_is_refused(void **state)
{
	struct hostile hostile = { .type = "text/html", .watch_list = "<html>log in</html>" };

	(void) state;
	expect_failure(&hostile, VD_BAD_REQUEST, "not readable");
}

static bool say_redirect(struct kube_socket_call *call, void *arg)
{
	(void) arg;
	return kube_socket_say_text(
		call, "HTTP/1.1 302 Found\r\nLocation: https://login\x1b[1m.example/\xc3\xa9\r\n"
		      "Content-Length: 0\r\n\r\n");
}

/* Of a watch, and of the list that follows it. */
static void a_redirect_is_named(void **state)
{
	static const char named[] = "HTTP status 302, a redirect to https://login_[1m.example/__: ";
	struct hostile	  list = { .say = say_redirect }, watch = { .list = "{}", .say = say_redirect };

	(void) state;
	expect_failure(&list, VD_UNAVAILABLE, named);
	expect_failure(&watch, VD_UNAVAILABLE, named);
}

static void revisions_that_are_no_numbers_are_refused(void **state)
{
	(void) state;
	expect_event(EVENT("ADDED", POD("a", "x1")), "is not a number");
	expect_event(EVENT("ADDED", POD("a", "-1")), "is not a number");
	expect_event(EVENT("ADDED", POD("a", "1.5")), "is not a number");
	expect_event(EVENT("ADDED", POD("a", "9999999999999999999999")), "is not a number");
	expect_event(EVENT("ADDED", POD("a", "0")), "no resourceVersion");
	expect_event(EVENT("ADDED", POD("a", "")), "no resourceVersion");
	expect_event("{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{"
		     "\"name\":\"a\",\"resourceVersion\":5}}}",
		     "plain strings");
}

static void names_that_are_no_part_of_a_key_are_refused(void **state)
{
	(void) state;
	expect_event(EVENT("ADDED", POD("a\\u0000b", "1")), "plain strings");
	expect_event(EVENT("ADDED", POD("\\u0061", "1")), "plain strings");
	expect_event(EVENT("ADDED", POD("../a", "1")), "cannot be part of a key");
	expect_event(EVENT("ADDED", POD("..", "1")), "cannot be part of a key");
	expect_event(EVENT("ADDED", POD("", "1")), "no name");
	expect_event(EVENT("ADDED", POD("a\tb", "1")), "control character");
}

static void events_of_another_kind_are_refused(void **state)
{
	(void) state;
	expect_event(EVENT("ADDED", "{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\","
				    "\"namespace\":\"n\",\"resourceVersion\":\"2\"}}"),
		     "kind Node instead of Pod");
	expect_event(EVENT("CHANGED", POD("a", "1")), "its type is unknown");
	expect_event(EVENT("ADDED", "[]"), "type or object is missing");
	expect_event("{\"type\":\"ADDED\"}", "type or object is missing");
	expect_event("[]", "not a watch event");
	expect_event("1 2 3", "not readable");
}

static void deep_json_is_refused(void **state)
{
	enum { DEPTH = 100000 };
	char *text = malloc(2 * DEPTH + 64);

	(void) state;
	memcpy(text, "{\"type\":\"ADDED\",\"object\":{\"spec\":", 33);
	memset(text + 33, '[', DEPTH);
	memset(text + 33 + DEPTH, ']', DEPTH);
	memcpy(text + 33 + 2 * (size_t) DEPTH, "}}", 3);
	expect_event(text, "too many levels");
	free(text);
}

/* Readers may differ in which of two equal members they take. */
static void duplicate_members_are_no_second_identity(void **state)
{
	struct hostile hostile = {
		.watch_list =
			"{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\","
			"\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\",\"resourceVersion\":\"2\"}}}"
	};

	(void) state;
	expect_failure(&hostile, VD_BAD_REQUEST, "a key appears twice");
}

static void a_list_older_than_its_objects_is_refused(void **state)
{
	struct hostile hostile = { .list = "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{"
					   "\"resourceVersion\":\"5\"},\"items\":[" POD("a", "6") "]}" };

	(void) state;
	expect_failure(&hostile, VD_BAD_REQUEST, "the list of revision 5 has an object of revision 6");
	hostile = (struct hostile) {
		.watch_list = EVENT("ADDED", POD("a", "9"))
			EVENT("BOOKMARK",
			      "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":"
			      "\"5\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}")
	};
	expect_failure(&hostile, VD_BAD_REQUEST, "ends at revision 5, but has an object of revision 9");
}

static void lists_of_other_shapes_are_refused(void **state)
{
	static const struct {
		const char *list, *error;
	} cases[] = { { "{}", "it has no items" },
		      { "[]", "an object was expected" },
		      { "{\"metadata\":{},\"items\":[]}", "no resourceVersion" },
		      { "{\"metadata\":{\"resourceVersion\":\"x\"},\"items\":[]}", "not a number" },
		      { "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":{}}", "it has no items" },
		      { "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[1]}", "cannot be understood" },
		      { "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[", "unexpected end" },
		      { "", "unexpected end" } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct hostile hostile = { .list = cases[i].list };

		expect_failure(&hostile, VD_BAD_REQUEST, cases[i].error);
	}
}

/* The continue token never ends. */
static bool say_empty_page(struct kube_socket_call *call, void *arg)
{
	static const char page[] =
		"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\",\"continue\":"
		"\"t\"},\"items\":[]}";

	(void) arg;
	return say_response(call, "200 OK", "application/json", page);
}

/* The pages of one list have one revision. */
static bool say_moving_page(struct kube_socket_call *call, void *arg)
{
	(void) arg;
	return say_response(
		call, "200 OK", "application/json",
		strstr(call->head, "continue=t") ?
			"{\"metadata\":{\"resourceVersion\":\"2\"},\"items\":[]}" :
			"{\"metadata\":{\"resourceVersion\":\"1\",\"continue\":\"t\"},\"items\":[]}");
}

static void pages_of_different_revisions_are_refused(void **state)
{
	struct hostile hostile = { .say = say_moving_page };

	(void) state;
	expect_failure(&hostile, VD_BAD_REQUEST, "the server returned a list at revision 2 instead of 1");
	assert_int_equal(atomic_load(&hostile.lists), 2);
}

static void a_long_continue_token_is_refused(void **state)
{
	static char    page[66000];
	struct hostile hostile = { .list = page };

	(void) state;
	snprintf(page, sizeof page,
		 "{\"metadata\":{\"resourceVersion\":\"1\",\"continue\":\"%065537d\"},\"items\":[]}", 0);
	expect_failure(&hostile, VD_BAD_REQUEST, "the continue token of the list is longer than 64 KiB");
	assert_int_equal(atomic_load(&hostile.lists), 1);
}

static void empty_pages_without_end_are_given_up(void **state)
{
	struct hostile hostile = { .say = say_empty_page };

	(void) state;
	expect_failure(&hostile, VD_BAD_REQUEST, "empty and do not end");
	assert_true(atomic_load(&hostile.lists) <= 1002);
}

static bool answer_with_controls(struct kube_socket_call *call, void *arg)
{
	(void) arg;
	return say_response(call, "404 Not Found", "application/json",
			    "{\"message\":\"a\\nb\\u001b[31mc\\u007f\"}");
}

static void messages_of_the_server_are_printable(void **state)
{
	struct hostile hostile = { .watch_list = EVENT("ERROR",
						       "{\"message\":\"a\\nb\\u001b[31mc\",\"code\":500}") };
	struct told    told = ask_once(answer_with_controls, NULL);

	(void) state;
	assert_status(told.status, VD_NOT_FOUND);
	assert_string_equal(told.message, "a b [31mc ");
	expect_failure(&hostile, VD_UNAVAILABLE, "a b [31mc");
}

/* ---- Sizes ---- */

/* One object of 100 MiB. */
static bool say_giant(struct kube_socket_call *call, void *arg)
{
	char blank[65536];

	(void) arg;
	memset(blank, 'x', sizeof blank);
	if (!kube_socket_say_text(call, "HTTP/1.1 200 OK\r\n\r\n{\"type\":\"ADDED\",\"object\":{\"a\":\""))
		return false;
	for (size_t sent = 0; sent < 100 * MIB; sent += sizeof blank)
		if (!kube_socket_say(call, blank, sizeof blank))
			return false;
	(void) kube_socket_say_text(call, "\"}}");
	return false;
}

static void an_object_of_100_mib_is_given_up(void **state)
{
	struct hostile hostile = { .list = "", .say = say_giant };

	(void) state;
	expect_failure(&hostile, VD_TOO_BIG, "not readable");
}

/* A list whose length says 4 GiB, and which never ends. */
static bool say_endless_list(struct kube_socket_call *call, void *arg)
{
	static const char item[] = POD("a", "1") ",";
	char		  items[sizeof item * 512];
	size_t		  size = 0;

	(void) arg;
	for (unsigned i = 0; i < 512; i++, size += sizeof item - 1)
		memcpy(items + size, item, sizeof item - 1);
	if (!kube_socket_say_text(
		    call, "HTTP/1.1 200 OK\r\nContent-Length: 4294967296\r\n\r\n{\"kind\":\"PodList\","
			  "\"metadata\":{\"resourceVersion\":\"1\"},\"items\":["))
		return false;
	while (kube_socket_say(call, items, size))
		continue;
	return false;
}

static void a_list_of_4_gib_is_given_up(void **state)
{
	struct hostile hostile = { .say = say_endless_list };

	(void) state;
	expect_failure(&hostile, VD_TOO_BIG, "longer than 64 MiB");
	assert_true(atomic_load(&hostile.lists) <= 8); /* pages of 500, 62, 7, 1 */
}

/* 1 GiB of blanks in 1 MiB. */
static bool say_bomb(struct kube_socket_call *call, void *arg)
{
	char	      blank[65536];
	unsigned char out[65536];
	z_stream      stream = { 0 };
	bool is_open = kube_socket_say_text(call, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n");

	(void) arg;
	memset(blank, ' ', sizeof blank);
	KUBE_SOCKET_EXPECT(deflateInit2(&stream, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) == Z_OK);
	for (size_t sent = 0; is_open && sent < 1024 * MIB; sent += sizeof blank) {
		stream.next_in = (Bytef *) blank;
		stream.avail_in = sizeof blank;
		while (is_open && stream.avail_in) {
			stream.next_out = out;
			stream.avail_out = sizeof out;
			KUBE_SOCKET_EXPECT(deflate(&stream, Z_NO_FLUSH) == Z_OK);
			is_open = kube_socket_say(call, (char *) out, sizeof out - stream.avail_out);
		}
	}
	(void) deflateEnd(&stream);
	return false;
}

static void a_gzip_bomb_is_given_up(void **state)
{
	struct hostile hostile = { .say = say_bomb };

	(void) state;
	expect_failure(&hostile, VD_TOO_BIG, "longer than 64 MiB");
}

/* ---- Attempts ---- */

/* The same answer again and again is asked for with pauses: the second attempt is not before 50 ms. */
static void a_server_that_always_ends_is_not_stormed(void **state)
{
	struct hostile hostile = {
		.watch_list =
			EVENT("BOOKMARK",
			      "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":"
			      "\"5\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}")
	};
	struct seen seen = follow(&hostile, true);

	(void) state;
	assert_true(atomic_load(&seen.is_watching));
	assert_true(atomic_load(&hostile.watches) <= 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_response_of_single_bytes_is_read),
		cmocka_unit_test(a_server_of_http_1_0_is_read_to_its_end),
		cmocka_unit_test(a_response_before_its_request_is_not_taken),
		cmocka_unit_test(chunks_that_lie_about_their_size_are_errors),
		cmocka_unit_test(two_lengths_are_not_both_believed),
		cmocka_unit_test(no_redirect_takes_the_token_to_another_host),
		cmocka_unit_test(a_page_of_a_proxy_is_refused),
		cmocka_unit_test(a_redirect_is_named),
		cmocka_unit_test(revisions_that_are_no_numbers_are_refused),
		cmocka_unit_test(names_that_are_no_part_of_a_key_are_refused),
		cmocka_unit_test(events_of_another_kind_are_refused),
		cmocka_unit_test(deep_json_is_refused),
		cmocka_unit_test(duplicate_members_are_no_second_identity),
		cmocka_unit_test(a_list_older_than_its_objects_is_refused),
		cmocka_unit_test(lists_of_other_shapes_are_refused),
		cmocka_unit_test(messages_of_the_server_are_printable),
		cmocka_unit_test(pages_of_different_revisions_are_refused),
		cmocka_unit_test(a_long_continue_token_is_refused),
		cmocka_unit_test(empty_pages_without_end_are_given_up),
		cmocka_unit_test(an_object_of_100_mib_is_given_up),
		cmocka_unit_test(a_list_of_4_gib_is_given_up),
		cmocka_unit_test(a_gzip_bomb_is_given_up),
		cmocka_unit_test(a_server_that_always_ends_is_not_stormed),
	};

	return cmocka_run_group_tests(tests, start_env, stop_env);
}
