/* Remote calls with both ends in this process, over our own HTTP/2 (bench_rpc) and over gRPC C core
 * (bench_rpc_grpc). CPU is that of client and server together, unless the name says otherwise.
 *
 *   - unary: calls per second with N in flight; a small message in each direction. client_us, server_us: CPU
 *     of each side per call
 *   - stream: messages per second from the server over N streams of one connection, 1,000 bytes each
 */
#include <stdatomic.h>
#include <stdio.h>

#include "env.h"
#include "measure.h"
#include "rpc_echo.h"
#include "rpc_under_test.h"
#include "wait.h"

static struct vd_env	     *env;
static struct rpc_echo	      echo;
static struct vdi_rpc_client *client;

/* ---- Unary ---- */

static struct {
	struct vdi_wait	 done;
	_Atomic uint64_t left;	  /* to begin */
	_Atomic uint64_t pending; /* to end */
} unary;

static void begin(void);

static void take_answer(void *arg, const struct vdi_rpc_end *end, struct vdi_rpc_message *message)
{
	(void) arg;
	measure_check(end->code == VDI_RPC_OK ? VD_OK : VD_INTERNAL, NULL, end->message);
	vdi_rpc_message_release(message);
	begin();
	if (atomic_fetch_sub(&unary.pending, 1) == 1)
		vdi_wait_signal(&unary.done);
}

static void begin(void)
{
	static const struct vdi_rpc_request request = { .method = "/test.Echo/Echo",
							.message = { "a small message of some 30 bytes", 32 },
							.timeout = { INT64_C(60000000000) },
							.endpoint = VDI_RPC_ANY_ENDPOINT };
	uint64_t			    left = atomic_load(&unary.left);

	while (left && !atomic_compare_exchange_weak(&unary.left, &left, left - 1))
		;
	if (left)
		measure_check(client->ops->call(client, &request, take_answer, NULL, NULL), NULL, "call");
}

static void run_unary(unsigned together, size_t calls, const struct measure_threads *client_threads,
		      const struct measure_threads *server_threads)
{
	struct measure_rounds rounds = { .count = 0 };
	char		      name[32];
	char		      parameters[160];
	int64_t		      client_ns = 0;
	int64_t		      server_ns = 0;

	snprintf(name, sizeof name, "unary-%u", together);
	if (!measure_wanted(name))
		return;
	for (unsigned round = 0; round < measure_options.rounds; round++) {
		int64_t client_before = measure_threads_cpu_ns(client_threads);
		int64_t server_before = measure_threads_cpu_ns(server_threads);
		int64_t cpu = measure_cpu_ns();
		int64_t wall = measure_wall_ns();

		vdi_wait_init(&unary.done, env);
		atomic_store(&unary.left, calls);
		atomic_store(&unary.pending, calls);
		for (unsigned i = 0; i < together; i++)
			begin();
		vdi_wait_wait(&unary.done);
		vdi_wait_fini(&unary.done);
		wall = measure_wall_ns() - wall;
		cpu = measure_cpu_ns() - cpu;
		client_ns += measure_threads_cpu_ns(client_threads) - client_before;
		server_ns += measure_threads_cpu_ns(server_threads) - server_before;
		measure_add(&rounds, (double) calls * 1e9 / (double) wall, (double) cpu / 1e9,
			    (double) wall / 1e9);
	}
	snprintf(parameters, sizeof parameters, "\"together\":%u,\"client_us\":%.1f,\"server_us\":%.1f",
		 together, (double) client_ns / 1e3 / (double) (calls * rounds.count),
		 (double) server_ns / 1e3 / (double) (calls * rounds.count));
	measure_report(name, parameters, &rounds, "calls/s");
}

/* ---- Streams ---- */

static struct {
	struct vdi_wait	 done;
	_Atomic unsigned open;
	_Atomic uint64_t messages;
} streams;

struct reader {
	struct vdi_rpc_stream *stream;
};

static void take_message(void *arg, struct vdi_rpc_message *message)
{
	struct reader *reader = arg;

	vdi_rpc_message_release(message);
	atomic_fetch_add_explicit(&streams.messages, 1, memory_order_relaxed);
	client->ops->stream_receive(reader->stream);
}

static void end_stream(void *arg, const struct vdi_rpc_end *end)
{
	struct reader *reader = arg;

	measure_check(end->code == VDI_RPC_OK ? VD_OK : VD_INTERNAL, NULL, end->message);
	client->ops->stream_free(reader->stream);
	if (atomic_fetch_sub(&streams.open, 1) == 1)
		vdi_wait_signal(&streams.done);
}

static void run_streams(unsigned together, size_t messages, const struct measure_threads *client_threads,
			const struct measure_threads *server_threads)
{
	static const struct vdi_rpc_stream_handlers handlers = { NULL, take_message, end_stream };
	static struct reader			    readers[1000];
	struct measure_rounds			    rounds = { .count = 0 };
	char					    name[32];
	char					    text[64];
	char					    parameters[160];
	struct vdi_rpc_request			    request = { .method = "/test.Echo/Count",
								.message = { text, 0 },
								.half_close = true,
								.endpoint = VDI_RPC_ANY_ENDPOINT };
	int64_t					    client_ns = 0;
	int64_t					    server_ns = 0;

	snprintf(name, sizeof name, "stream-%u", together);
	if (!measure_wanted(name))
		return;
	request.message.size = (size_t) snprintf(text, sizeof text, "%zu 1000", messages / together);
	for (unsigned round = 0; round < measure_options.rounds; round++) {
		int64_t client_before = measure_threads_cpu_ns(client_threads);
		int64_t server_before = measure_threads_cpu_ns(server_threads);
		int64_t cpu = measure_cpu_ns();
		int64_t wall = measure_wall_ns();

		vdi_wait_init(&streams.done, env);
		atomic_store(&streams.open, together);
		atomic_store(&streams.messages, 0);
		for (unsigned i = 0; i < together; i++) {
			measure_check(client->ops->stream_open(client, &request, &handlers, &readers[i],
							       &readers[i].stream),
				      NULL, "open");
			client->ops->stream_receive(readers[i].stream);
		}
		vdi_wait_wait(&streams.done);
		vdi_wait_fini(&streams.done);
		wall = measure_wall_ns() - wall;
		cpu = measure_cpu_ns() - cpu;
		client_ns += measure_threads_cpu_ns(client_threads) - client_before;
		server_ns += measure_threads_cpu_ns(server_threads) - server_before;
		measure_add(&rounds, (double) atomic_load(&streams.messages) * 1e9 / (double) wall,
			    (double) cpu / 1e9, (double) wall / 1e9);
	}
	messages = messages / together * together;
	snprintf(parameters, sizeof parameters, "\"streams\":%u,\"client_us\":%.1f,\"server_us\":%.1f",
		 together, (double) client_ns / 1e3 / (double) (messages * rounds.count),
		 (double) server_ns / 1e3 / (double) (messages * rounds.count));
	measure_report(name, parameters, &rounds, "messages/s");
}

int main(int argc, char **argv)
{
	struct measure_threads before;
	struct measure_threads client_threads;
	struct measure_threads server_threads;
	struct rpc_answer      answer;
	const char	      *address;

	measure_begin(rpc_is_grpc() ? "rpc_grpc" : "rpc", argc, argv);
	measure_check(vd_env_new_threads(NULL, &env), NULL, "env");
	measure_threads_all(&before);
	measure_check(rpc_echo_start(&echo, env, NULL, NULL, NULL), NULL, "server");
	measure_threads_since(&before, &server_threads);
	measure_threads_all(&before);
	address = rpc_echo_address(&echo);
	client = rpc_connect(env, &address, 1, NULL);
	answer = rpc_ask_simply(env, client, "/test.Echo/Echo", VD_BYTES_NONE, VD_SECONDS(10));
	rpc_answer_release(&answer);
	measure_threads_since(&before, &client_threads);
	run_unary(1, measure_scaled(20000), &client_threads, &server_threads);
	run_unary(16, measure_scaled(50000), &client_threads, &server_threads);
	run_unary(64, measure_scaled(100000), &client_threads, &server_threads);
	run_unary(256, measure_scaled(100000), &client_threads, &server_threads);
	run_streams(1, measure_scaled(300000), &client_threads, &server_threads);
	run_streams(100, measure_scaled(300000), &client_threads, &server_threads);
	run_streams(1000, measure_scaled(300000), &client_threads, &server_threads);
	rpc_close(env, client);
	rpc_echo_stop(&echo, env);
	vd_env_free(env);
	return 0;
}
