/* The client of remote calls, with a server that sends frames of all kinds, with header blocks (h2_frames.h).
 * The client makes three calls: a unary one, a stream that requests each message, and one that requests none;
 * the frames are sent when all three were received. Each call ends exactly once, and nothing of the client
 * remains. First byte: 1 the client closes before the server has sent everything, 2 the server cuts the
 * connection. */
#include <stdio.h>
#include <sys/un.h>

#include "env.h"
#include "h2_frames.h"
#include "rpc_client.h"
#include "rpc_transport.h"
#include "wait.h"

#define CALLS 3

static struct vd_env *env;
static int	      listener = -1;
static char	      endpoint[128];

struct call {
	struct vdi_rpc_client *client;
	struct vdi_rpc_stream *stream; /* NULL: a call */
	bool		       asks;
	unsigned	       ends;
};

/* ---- The calls ---- */

static void check_end(struct call *call, const struct vdi_rpc_end *end)
{
	VDI_CHECK(end->message && end->endpoint);
	VDI_CHECK(++call->ends == 1);
}

static void on_done(void *arg, const struct vdi_rpc_end *end, struct vdi_rpc_message *message)
{
	check_end(arg, end);
	VDI_CHECK(end->code == VDI_RPC_OK || message->bytes.data == NULL);
	vdi_rpc_message_release(message);
}

static void on_message(void *arg, struct vdi_rpc_message *message)
{
	struct call *call = arg;

	VDI_CHECK(call->ends == 0 && call->asks);
	vdi_rpc_message_release(message);
	call->client->ops->stream_receive(call->stream);
}

static void on_ended(void *arg, const struct vdi_rpc_end *end)
{
	struct call *call = arg;

	check_end(call, end);
	call->client->ops->stream_free(call->stream);
}

static void open_stream(struct vdi_rpc_client *client, struct call *call, bool asks)
{
	static const struct vdi_rpc_stream_handlers handlers = { .message = on_message, .ended = on_ended };
	static const struct vdi_rpc_request	    request = { .method = "/test.Echo/Chat",
								.endpoint = VDI_RPC_ANY_ENDPOINT };

	call->asks = asks;
	if (client->ops->stream_open(client, &request, &handlers, call, &call->stream) != VD_OK ||
	    client->ops->stream_send(call->stream, vd_bytes_of("hello")) != VD_OK)
		abort();
	if (asks)
		client->ops->stream_receive(call->stream);
}

/* ---- The server ---- */

/* Joins the threads of the clients. */
static void end(void)
{
	(void) close(listener);
	env = vd_env_free(env);
}

static void start(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	(void) snprintf(at.sun_path, sizeof at.sun_path, "/tmp/vedette-fuzz-h2-%ld.sock", (long) getpid());
	(void) snprintf(endpoint, sizeof endpoint, "unix://%s", at.sun_path);
	(void) unlink(at.sun_path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (vd_env_new_threads(NULL, &env) != VD_OK ||
	    bind(listener, (struct sockaddr *) &at, sizeof at) != 0 || listen(listener, 16) != 0)
		abort();
	(void) atexit(end);
}

static bool read_exactly(int fd, uint8_t *bytes, size_t size)
{
	while (size) {
		ssize_t got = recv(fd, bytes, size, 0);

		if (got < 0 && errno == EINTR) /* libFuzzer's timer */
			continue;
		if (got <= 0)
			return false;
		bytes += got;
		size -= (size_t) got;
	}
	return true;
}

/* Waits for all requests, so that frames for their streams are not for idle ones. */
static bool hear_requests(int fd)
{
	static uint8_t room[1 << 16];
	unsigned       heard = 0;

	if (!read_exactly(fd, room, NGHTTP2_CLIENT_MAGIC_LEN))
		return false;
	while (heard < CALLS) {
		size_t size;

		if (!read_exactly(fd, room, 9))
			return false;
		size = (size_t) room[0] << 16 | (size_t) room[1] << 8 | room[2];
		heard += room[3] == NGHTTP2_HEADERS;
		if (size > sizeof room || !read_exactly(fd, room, size))
			return false;
	}
	return true;
}

/* Returns false for a connection of a previous client, which dialed once more. */
static bool serve(int fd, const struct frames *frames, uint8_t how)
{
	static const uint8_t settings[9] = { 0, 0, 0, NGHTTP2_SETTINGS };
	const struct linger  at_once = { .l_onoff = 1, .l_linger = 0 };

	if (how & 2)
		(void) setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	if (!exchange(fd, settings, sizeof settings, false) || !hear_requests(fd))
		return false;
	if (exchange(fd, frames->bytes, frames->size, true) && !(how & 3) && shutdown(fd, SHUT_WR) == 0)
		read_to_end(fd);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct frames	      frames;
	const char *const	      endpoints[] = { endpoint };
	struct vdi_rpc_client_options options = {
		.endpoints = endpoints, .endpoint_count = 1, .send_size_max = 4096, .receive_size_max = 4096
	};
	static const struct vdi_rpc_request request = { .method = "/test.Echo/Echo",
							.message = { "hi", 2 },
							.endpoint = VDI_RPC_ANY_ENDPOINT };
	struct source			    source = { data, size };
	uint8_t				    how = take(&source);
	struct call			    calls[CALLS] = { 0 };
	struct vdi_rpc_client		   *client;
	struct vdi_wait			    closed;
	int				    fd;
	bool				    is_served;

	if (listener < 0)
		start();
	frames.size = frames.last = 0;
	while (source.size && frames.size < FRAMES_SIZE_MAX - 16384)
		take_frame(&frames, &source);
	if (vd_rpc_http2()->client_new(env, &options, &client, NULL) != VD_OK)
		abort();
	for (size_t i = 0; i < CALLS; i++)
		calls[i].client = client;
	if (client->ops->call(client, &request, on_done, &calls[0], NULL) != VD_OK)
		abort();
	open_stream(client, &calls[1], true);
	open_stream(client, &calls[2], false);
	do {
		do
			fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		while (fd < 0 && errno == EINTR);
		if (fd < 0)
			abort();
		is_served = serve(fd, &frames, how);
		if (!is_served)
			(void) close(fd);
	} while (!is_served);
	vdi_wait_init(&closed, env);
	client->ops->close(client, vdi_wait_signal_arg, &closed);
	vdi_wait_wait(&closed);
	vdi_wait_fini(&closed);
	(void) close(fd);
	for (size_t i = 0; i < CALLS; i++)
		VDI_CHECK(calls[i].ends == 1);
	return 0;
}
