/* The silence of an exchange is judged while another one is paused, on another connection. */
#include <stdatomic.h>

#include "await.h"
#include "kube_client.h"
#include "kube_socket.h"
#include "vdtest.h"
#include "wait.h"

static struct vd_env *env;

/* A member with one exchange. */
struct stream {
	struct vdi_kube_member	     member;
	struct vdi_kube_http_request request;
	struct vdi_kube_exchange    *exchange;
	struct vdi_wait		     removed;
	bool			     is_started, takes;
	_Atomic bool		     has_head, is_ended, wants_end;
	_Atomic uint64_t	     refused;
	vd_status		     status;
};

static void on_head(void *arg, const struct vdi_kube_head *head)
{
	((struct stream *) arg)->has_head = true;
}

static bool on_body(void *arg, struct vd_bytes bytes)
{
	struct stream *stream = arg;

	if (!stream->takes)
		stream->refused++;
	return stream->takes;
}

static void on_ended(void *arg, vd_status status, const struct vd_error *error)
{
	struct stream *stream = arg;

	stream->exchange = NULL;
	stream->status = status;
	stream->is_ended = true;
}

static vd_mono run(struct vdi_kube_member *member, vd_mono now)
{
	struct stream		     *stream = VDI_CONTAINER_OF(member, struct stream, member);
	const struct vdi_kube_handler handler = { on_head, on_body, on_ended, stream };

	if (!stream->is_started) {
		stream->is_started = true;
		assert_status(
			vdi_kube_start(member->kube, &stream->request, &handler, &stream->exchange, NULL),
			VD_OK);
	}
	if (stream->wants_end) {
		if (stream->exchange)
			vdi_kube_cancel(stream->exchange);
		vdi_kube_member_remove(member);
		vdi_wait_signal(&stream->removed);
	}
	return VD_NEVER;
}

static void stream_open(struct stream *stream, struct vd_kube *kube, const char *path, vd_dur silence_max,
			bool takes)
{
	memset(stream, 0, sizeof *stream);
	vdi_wait_init(&stream->removed, env);
	stream->takes = takes;
	stream->request.method = "GET";
	stream->request.path = path;
	stream->request.silence_max = silence_max;
	stream->member.run = run;
	assert_status(vdi_kube_member_add(kube, &stream->member), VD_OK);
}

static void stream_close(struct stream *stream)
{
	stream->wants_end = true;
	vdi_kube_member_wake(&stream->member);
	vdi_wait_wait(&stream->removed);
	vdi_wait_fini(&stream->removed);
}

static _Atomic uint64_t said;

/* /endless: bytes for as long as the client takes them; others: a head, then silence. */
static bool answer(struct kube_socket_call *call, void *arg)
{
	static const char part[65536];

	if (strstr(call->head, "/endless") == NULL) {
		if (kube_socket_say_text(call, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))
			kube_socket_wait_for_end(call);
		return false;
	}
	if (!kube_socket_say_text(call, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))
		return false;
	while (kube_socket_say_text(call, "10000\r\n") && kube_socket_say(call, part, sizeof part) &&
	       kube_socket_say_text(call, "\r\n"))
		said++;
	return false;
}

static void a_silent_stream_ends_beside_a_paused_one(void **state)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct vd_env_options  env_options = VD_ENV_OPTIONS_INIT;
	struct kube_socket     server;
	struct vd_kube	      *kube;
	struct stream	       paused, silent;
	struct await	       await = { 0 };
	struct vd_error	       error;
	uint64_t	       taken = 0;
	unsigned	       blocked = 0;

	env_options.threads = 1;
	assert_status(vd_env_new_threads(&env_options, &env), VD_OK);
	kube_socket_start(&server, answer, NULL, NULL, NULL, NULL);
	options.server = server.url;
	assert_status(vd_kube_open(env, &options, &kube, &error), VD_OK);
	stream_open(&paused, kube, "/endless", VD_SECONDS(600), false);
	AWAIT(paused.refused > 0);
	while (blocked < 20000) { /* back pressure: libcurl has paused it */
		blocked = said == taken && atomic_load(&server.is_blocked) ? blocked + 1 : 0;
		taken = said;
		await_turn(&await, "the server is blocked", __FILE__, __LINE__);
	}
	stream_open(&silent, kube, "/silent", VD_MS(100), true);
	AWAIT(silent.is_ended);
	assert_status(silent.status, VD_TIMEOUT);
	assert_false(paused.is_ended);
	stream_close(&silent);
	stream_close(&paused);
	assert_null(vd_kube_close_wait(kube));
	kube_socket_stop(&server);
	env = vd_env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_silent_stream_ends_beside_a_paused_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
