/* Streams over real sockets: back pressure, silence, cancellation. */
#include "kube_curl.h"

#include <stdatomic.h>
#include <zlib.h>

#include "await.h"
#include "kube_client.h"
#include "kube_socket.h"
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

static struct vd_kube *client(const char *server)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct vd_error	       error = { 0 };
	struct vd_kube	      *kube = NULL;

	options.server = server;
	if (vd_kube_open(env, &options, &kube, &error) != VD_OK)
		fail_msg("%s", error.message);
	return kube;
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

/* Its reader does not take what is there; the server may not be silent at all. */
static void a_held_stream_is_not_silent(void **state)
{
	uint64_t	   size = 4097; /* odd: then nothing */
	struct kube_socket server;
	struct vd_kube	  *kube;
	struct stream	   held, taken;

	(void) state;
	kube_socket_start(&server, answer_stream, &size, NULL, NULL, NULL);
	kube = client(server.url);
	stream_open_path(&held, kube, VD_MS(100), "/api/v1/pods?watch=true", true);
	AWAIT(held.refused > 0);
	/* One that is opened later, and ends for its silence. */
	stream_open(&taken, kube, VD_MS(100));
	AWAIT(taken.is_ended);
	assert_status(taken.status, VD_TIMEOUT);
	assert_false(held.is_ended);
	held.is_paused = false;
	vdi_kube_member_wake(&held.member);
	AWAIT(held.received == 8192 || held.is_ended);
	assert_int_equal(held.received, 8192);
	stream_close(&held);
	stream_close(&taken);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refused_stream_is_held_and_goes_on),
		cmocka_unit_test(a_refused_compressed_response_is_held_and_goes_on),
		cmocka_unit_test(a_paused_stream_is_bounded),
		cmocka_unit_test(a_silent_stream_ends),
		cmocka_unit_test(a_held_stream_is_not_silent),
		cmocka_unit_test(many_streams_are_served_at_once),
		cmocka_unit_test(a_stream_is_canceled),
	};

	return cmocka_run_group_tests(tests, start_env, stop_env);
}
