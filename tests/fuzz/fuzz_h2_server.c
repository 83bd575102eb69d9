/* The server of remote calls, with a client that sends frames of all kinds, with header blocks (h2_frames.h).
 * The first byte selects the behaviour of the client: 1 it reads nothing, 2 it cuts the connection at the
 * end, 4 no preface. One server for all inputs; nothing of a connection may remain after its end. */
#include <sched.h>
#include <stdio.h>
#include <sys/un.h>

#include "env.h"
#include "h2_frames.h"
#include "h2_server_state.h"
#include "rpc_server.h"
#include "rpc_transport.h"

static struct vd_env	     *env;
static struct vdi_rpc_server *server;
static struct sockaddr_un     address = { .sun_family = AF_UNIX };
static _Atomic uint64_t	      accepted, ended;

/* ---- The service, selected by the method's last letters ---- */

struct service {
	char kind; /* E: one answer, C: echo of each message, H: none, F: an error */
};

static void on_accepted(void *arg, struct vdi_rpc_server_call *call, const char *method)
{
	struct service *service = vdi_alloc(sizeof *service);
	size_t		size = strlen(method);

	(void) arg;
	if (service == NULL)
		abort();
	service->kind = size > 4 ? method[size - 4] : 0;
	vdi_rpc_server_call_set_arg(call, service);
	atomic_fetch_add(&accepted, 1);
	if (service->kind == 0)
		vdi_rpc_server_finish(call, VDI_RPC_UNIMPLEMENTED, "unknown method");
	else
		vdi_rpc_server_receive(call);
}

static void on_message(void *call_arg, struct vdi_rpc_server_call *call, struct vdi_rpc_message *message)
{
	struct service	    *service = call_arg;
	struct vdi_rpc_blob *blob;
	struct vd_bytes	     bytes = message->bytes;
	char		    *room;

	if (bytes.data == NULL || service->kind == 'F')
		vdi_rpc_server_finish(call, bytes.data ? VDI_RPC_INTERNAL : VDI_RPC_OK, "50% of\n\xc3\xa4");
	else if (service->kind != 'H') {
		if (vdi_rpc_blob_new(bytes.size, &blob, &room) != VD_OK)
			abort();
		memcpy(room, bytes.data, bytes.size);
		if (service->kind == 'E')
			(void) !vdi_rpc_server_answer(call, VD_BYTES_NONE, blob);
		else if (vdi_rpc_server_send(call, vd_bytes_of("re: "), blob) != VD_FULL)
			vdi_rpc_server_receive(call);
		vdi_rpc_blob_unref(blob);
	}
	vdi_rpc_message_release(message);
}

static void on_writable(void *call_arg, struct vdi_rpc_server_call *call)
{
	(void) call_arg;
	vdi_rpc_server_receive(call);
}

static void on_ended(void *call_arg, struct vdi_rpc_server_call *call, bool cancelled)
{
	(void) cancelled;
	vdi_free(call_arg);
	atomic_fetch_add(&ended, 1);
	vdi_rpc_server_call_free(call);
}

static void on_http(void *arg, struct vdi_rpc_http *http)
{
	(void) arg;
	vdi_buffer_append(&http->body, http->query);
	http->answer(http);
}

static void start(void)
{
	static const struct vdi_rpc_server_handlers handlers = { on_accepted, on_message, on_writable,
								 on_ended };
	static const char *const		    streams[] = { "/test.Echo/Chat" };
	static char				    listen[100];
	static const char *const		    addresses[] = { listen };
	struct vdi_rpc_server_options		    options = { .listen = addresses,
								.listen_count = 1,
								.receive_size_max = 4096,
								.send_bytes_max = 4096,
								.memory_max = 1 << 20,
								.unsent_max = 1 << 18,
								.streams_max = 20,
								.threads = 1,
								.stream_methods = streams,
								.stream_method_count = 1,
								.ping_interval_min = VD_SECONDS(1),
								.handlers = &handlers,
								.http = on_http };

	(void) snprintf(listen, sizeof listen, "unix:/tmp/vedette-fuzz-h2-%ld.sock", (long) getpid());
	(void) snprintf(address.sun_path, sizeof address.sun_path, "%s", listen + 5);
	if (vd_env_new_threads(NULL, &env) != VD_OK ||
	    vd_rpc_http2()->server_new(env, &options, &server, NULL) != VD_OK)
		abort();
}

/* ---- An input ---- */

static void expect_nothing_left(void)
{
	struct vdi_h2_server *inside = VDI_CONTAINER_OF(server, struct vdi_h2_server, base);

	while (atomic_load(&inside->loops[0].connection_count))
		sched_yield();
	VDI_CHECK(atomic_load(&accepted) == atomic_load(&ended));
	VDI_CHECK(atomic_load(&inside->memory_used) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct frames frames;
	const struct linger  at_once = { .l_onoff = 1, .l_linger = 0 };
	struct source	     source = { data, size };
	uint8_t		     how = take(&source);
	int		     fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (server == NULL)
		start();
	frames.size = frames.last = 0;
	if (!(how & 4)) {
		put_bytes(&frames, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
		put_frame(&frames, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
	}
	while (source.size && frames.size < FRAMES_SIZE_MAX - 16384)
		take_frame(&frames, &source);
	if (fd < 0 || connect(fd, (struct sockaddr *) &address, sizeof address) != 0)
		abort();
	if (how & 2)
		(void) setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	if (exchange(fd, frames.bytes, frames.size, !(how & 1)) && !(how & 2) && shutdown(fd, SHUT_WR) == 0)
		read_to_end(fd);
	(void) close(fd);
	expect_nothing_left();
	return 0;
}
