/* Unit tests of lib/rpc/grpc/grpc_server.c: what core is told, which addresses and methods are refused, and
 * how streams are spread over queues. Calls are in test_rpc_server.c. */
#include "core_args.h"
#include "grpc_server_state.h"
#include "grpc_transport.h"
#include "rpc_certs.h"
#include "rpc_fixture.h"
#include "thread.h"
#include "wait.h"

static struct core_args told;

/* This takes the place of core's. */
grpc_server *grpc_server_create(const grpc_channel_args *args, void *reserved)
{
	grpc_server *(*create)(const grpc_channel_args *, void *) =
		(grpc_server * (*) (const grpc_channel_args *, void *) )
			dlsym(RTLD_NEXT, "grpc_server_create");

	core_args_keep(&told, args);
	return create(args, reserved);
}

static const char *const		    local[] = { "127.0.0.1:0" };
static const struct vdi_rpc_server_handlers handlers;

static struct vdi_grpc_server *open_server(struct vdi_rpc_server_options options)
{
	struct vdi_rpc_server *server;

	options.handlers = &handlers;
	if (options.listen == NULL) {
		options.listen = local;
		options.listen_count = 1;
	}
	assert_status(vdi_grpc_server_new(env, &options, &server, NULL), VD_OK);
	return VDI_CONTAINER_OF(server, struct vdi_grpc_server, base);
}

static void on_closed(void *arg)
{
	vdi_wait_signal(arg);
}

static void close_server(struct vdi_grpc_server *server)
{
	struct vdi_wait closed;

	vdi_wait_init(&closed, env);
	server->base.ops->close(&server->base, on_closed, &closed);
	vdi_wait_wait(&closed);
	vdi_wait_fini(&closed);
}

static int told_with(struct vdi_rpc_server_options options, const char *key)
{
	close_server(open_server(options));
	return core_args_number(&told, key);
}
#define TOLD(key, ...) told_with((struct vdi_rpc_server_options) { __VA_ARGS__ }, key)

static void core_is_told_what_holds_for_every_server(void **state)
{
	(void) state;
	assert_int_equal(TOLD(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, 0), -1);
	assert_int_equal(core_args_number(&told, GRPC_ARG_ALLOW_REUSEPORT), 0);
	assert_int_equal(core_args_number(&told, GRPC_ARG_ENABLE_CHANNELZ), 0);
	assert_int_equal(core_args_number(&told, GRPC_ARG_HTTP2_BDP_PROBE), 0);
	assert_int_equal(core_args_number(&told, GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES), VDI_GRPC_WINDOW);
	assert_int_equal(core_args_number(&told, GRPC_ARG_MAX_METADATA_SIZE), 65536);
	assert_int_equal(core_args_number(&told, GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS), 1);
	assert_int_equal(core_args_number(&told, GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA), 0);
}

/* Without an option core keeps its own value. */
static void core_is_told_the_options(void **state)
{
	(void) state;
	assert_int_equal(TOLD(GRPC_ARG_MAX_CONCURRENT_STREAMS, 0), CORE_ARG_ABSENT);
	assert_int_equal(core_args_number(&told, GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS),
			 CORE_ARG_ABSENT);
	assert_int_equal(core_args_number(&told, GRPC_ARG_KEEPALIVE_TIME_MS), CORE_ARG_ABSENT);
	assert_int_equal(core_args_number(&told, GRPC_ARG_KEEPALIVE_TIMEOUT_MS), CORE_ARG_ABSENT);
	assert_int_equal(TOLD(GRPC_ARG_MAX_CONCURRENT_STREAMS, .streams_max = 7), 7);
	assert_int_equal(
		TOLD(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, .ping_interval_min = VD_MS(30)),
		30);
	assert_int_equal(TOLD(GRPC_ARG_KEEPALIVE_TIME_MS, .keepalive_time = VD_SECONDS(7200)), 7200000);
	assert_int_equal(core_args_number(&told, GRPC_ARG_KEEPALIVE_TIMEOUT_MS), CORE_ARG_ABSENT);
	assert_int_equal(TOLD(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, .keepalive_timeout = VD_SECONDS(20)), 20000);
	assert_int_equal(core_args_number(&told, GRPC_ARG_KEEPALIVE_TIME_MS), CORE_ARG_ABSENT);
	assert_int_equal(TOLD(GRPC_ARG_KEEPALIVE_TIME_MS, .keepalive_time = VD_SECONDS(100000000)),
			 INT32_MAX);
}

/* Core refuses messages of more than twice the limit; smaller ones are refused here, with the text. */
static void core_refuses_what_is_far_too_large(void **state)
{
	(void) state;
	assert_int_equal(TOLD(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, 0), -1);
	assert_int_equal(TOLD(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, .receive_size_max = 1000), 2000);
	assert_int_equal(TOLD(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, .receive_size_max = INT32_MAX / 2),
			 INT32_MAX / 2 * 2);
	assert_int_equal(TOLD(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, .receive_size_max = INT32_MAX / 2 + 1),
			 -1);
}

static void expect_refused(struct vdi_rpc_server_options options, vd_status status, const char *text)
{
	struct vdi_rpc_server *server = NULL;
	struct vd_error	       error = { 0 };

	options.handlers = &handlers;
	assert_status(vdi_grpc_server_new(env, &options, &server, &error), status);
	assert_string_equal(error.message, text);
	assert_null(server);
}

static void addresses_and_methods_are_checked(void **state)
{
	static const char *const names[] = { "/a.B/C", "/a.B/D", "/a.B/C" };
	static const char *const bad[] = { "127.0.0.1:0", "nonsense" };
	char			 long_address[300];
	const char		*too_long = long_address;
	char			 text[400];

	(void) state;
	expect_refused((struct vdi_rpc_server_options) { 0 }, VD_INVALID_ARGUMENT, "no address to listen on");
	expect_refused((struct vdi_rpc_server_options) { .listen = bad, .listen_count = 2 },
		       VD_INVALID_ARGUMENT, "address \"nonsense\" is not of the form address:port");
	memset(long_address, 'a', sizeof long_address);
	memcpy(long_address + 255, ":0", 3);
	(void) snprintf(text, sizeof text, "address \"%.200s\" is not of the form address:port",
			long_address);
	expect_refused((struct vdi_rpc_server_options) { .listen = &too_long, .listen_count = 1 },
		       VD_INVALID_ARGUMENT, text);
	expect_refused((struct vdi_rpc_server_options) { .listen = local,
							 .listen_count = 1,
							 .stream_methods = names,
							 .stream_method_count = 3 },
		       VD_INVALID_ARGUMENT, "method \"/a.B/C\" is given twice");
	expect_refused((struct vdi_rpc_server_options) { .listen = local,
							 .listen_count = 1,
							 .stream_methods = names,
							 .stream_method_count = 2,
							 .unary_methods = names + 1,
							 .unary_method_count = 1 },
		       VD_INVALID_ARGUMENT, "method \"/a.B/D\" is given twice");
}

static void each_address_has_its_port(void **state)
{
	static const char *const addresses[] = { "127.0.0.1:0", "127.0.0.1:0" };
	struct vdi_grpc_server	*server =
		open_server((struct vdi_rpc_server_options) { .listen = addresses, .listen_count = 2 });
	const struct vdi_rpc_server_ops *ops = server->base.ops;

	(void) state;
	assert_memory_equal(ops->address(&server->base, 0), "127.0.0.1:", 10);
	assert_string_not_equal(ops->address(&server->base, 0), "127.0.0.1:0");
	assert_string_not_equal(ops->address(&server->base, 0), ops->address(&server->base, 1));
	assert_null(ops->address(&server->base, 2));
	ops->drain(&server->base);
	ops->drain(&server->base);
	close_server(server);
}

static void an_address_of_a_file(void **state)
{
	char			folder[TEMP_FOLDER_SIZE];
	char			address[TEMP_FOLDER_SIZE + 16];
	char			text[TEMP_FOLDER_SIZE + 64];
	const char	       *listen = address;
	struct vdi_grpc_server *server;

	(void) state;
	temp_folder_make(folder);
	(void) snprintf(address, sizeof address, "unix:%s/socket", folder);
	server = open_server((struct vdi_rpc_server_options) { .listen = &listen, .listen_count = 1 });
	assert_string_equal(server->base.ops->address(&server->base, 0), address);
	close_server(server);
	(void) snprintf(address, sizeof address, "unix:%s/no/socket", folder);
	(void) snprintf(text, sizeof text, "address \"%s\": cannot listen", address);
	expect_refused((struct vdi_rpc_server_options) { .listen = &listen, .listen_count = 1 }, VD_IO, text);
	temp_folder_remove(folder);
}

/* Core says only that it cannot listen; the reason is found out. */
static void an_address_in_use_is_named(void **state)
{
	static const char *const addresses[] = { "127.0.0.1:0", "[::1]:0" };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(addresses); i++) {
		struct vdi_rpc_server_options options = { .listen = &addresses[i],
							  .listen_count = 1,
							  .handlers = &handlers };
		struct vdi_rpc_server	     *server;
		const char		     *address;
		char			      text[128];

		if (vdi_grpc_server_new(env, &options, &server, NULL) != VD_OK && i == 1)
			break; /* no IPv6 here */
		address = server->ops->address(server, 0);
		(void) snprintf(text, sizeof text, "address \"%s\": Address already in use", address);
		expect_refused((struct vdi_rpc_server_options) { .listen = &address, .listen_count = 1 },
			       VD_IO, text);
		close_server(VDI_CONTAINER_OF(server, struct vdi_grpc_server, base));
	}
}

static void an_address_in_use_is_named_with_tls_too(void **state)
{
	struct vdi_rpc_server_tls tls = { .cert_path = rpc_certs_path(&rpc_certs, "server.pem"),
					  .key_path = rpc_certs_path(&rpc_certs, "server.key") };
	struct vdi_grpc_server	 *server = open_server((struct vdi_rpc_server_options) { .tls = &tls });
	const char		 *address = server->base.ops->address(&server->base, 0);
	char			  text[128];

	(void) state;
	(void) snprintf(text, sizeof text, "address \"%s\": Address already in use", address);
	expect_refused((struct vdi_rpc_server_options) { .listen = &address, .listen_count = 1, .tls = &tls },
		       VD_IO, text);
	close_server(server);
}

/* What core cannot do is refused instead of being forgotten. */
static void settings_of_tls_that_core_has_not(void **state)
{
	static const char *const no_core = "TLS versions, cipher suites, allowed client host names and "
					   "revocation lists are not supported with gRPC C core";
	const char *const	 cert = rpc_certs_path(&rpc_certs, "server.pem");
	const char *const	 key = rpc_certs_path(&rpc_certs, "server.key");
	const struct {
		struct vdi_rpc_server_tls tls;
		vd_status		  status;
		const char		 *text;
	} rows[] = {
		{ { .cert_path = cert },
		  VD_INVALID_ARGUMENT,
		  "a TLS server needs a certificate and its key" },
		{ { .key_path = key }, VD_INVALID_ARGUMENT, "a TLS server needs a certificate and its key" },
		{ { .cert_path = cert, .key_path = key, .require_client_cert = true },
		  VD_INVALID_ARGUMENT,
		  "client certificates cannot be required without a CA for them" },
		{ { .cert_path = cert, .key_path = key, .min_version = "1.2" }, VD_UNSUPPORTED, no_core },
		{ { .cert_path = cert, .key_path = key, .max_version = "1.2" }, VD_UNSUPPORTED, no_core },
		{ { .cert_path = cert, .key_path = key, .cipher_suites = "x" }, VD_UNSUPPORTED, no_core },
		{ { .cert_path = cert, .key_path = key, .allowed_hostnames = "x" }, VD_UNSUPPORTED, no_core },
		{ { .cert_path = cert, .key_path = key, .crl_path = "x" }, VD_UNSUPPORTED, no_core },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		expect_refused((struct vdi_rpc_server_options) { .listen = local,
								 .listen_count = 1,
								 .tls = &rows[i].tls },
			       rows[i].status, rows[i].text);
}

static void threads_are_chosen_within_bounds(void **state)
{
	static const struct {
		unsigned threads, queues;
	} rows[] = { { 1, 1 }, { 3, 3 }, { 16, 16 }, { 17, 16 }, { 1000, 16 } };
	unsigned processors = vdi_thread_processors();

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_grpc_server *server =
			open_server((struct vdi_rpc_server_options) { .threads = rows[i].threads });

		assert_int_equal(server->unary_accept_queues, rows[i].queues);
		assert_int_equal(server->accept_queue_count, rows[i].queues);
		close_server(server);
	}
	{
		struct vdi_grpc_server *server = open_server((struct vdi_rpc_server_options) { 0 });

		assert_int_equal(server->unary_accept_queues, processors < 4 ? 1 :
							      processors < 8 ? processors / 2 :
									       4);
		close_server(server);
	}
}

/* The first streams share the queues of unary calls; more get queues of their own, each of which is filled
 * before the next one. */
static void streams_are_spread_over_queues(void **state)
{
	struct vdi_grpc_server	     *server = open_server((struct vdi_rpc_server_options) { .threads = 2 });
	struct vdi_grpc_accept_queue *queue;

	(void) state;
	for (unsigned i = 0; i < 2 * VDI_GRPC_STREAMS_PER_UNARY_ACCEPT_QUEUE; i++)
		assert_ptr_equal(vdi_grpc_server_queue_for_stream(server), server->accept_queues[i % 2]);
	assert_int_equal(server->accept_queue_count, 2);
	for (unsigned own = 2; own < 5; own++)
		for (unsigned i = 0; i < VDI_RPC_STREAMS_PER_QUEUE; i++) {
			queue = vdi_grpc_server_queue_for_stream(server);
			assert_int_equal(server->accept_queue_count, own + 1);
			assert_ptr_equal(queue, server->accept_queues[own]);
		}
	/* A stream that ends leaves room for another one: first on the queues of unary calls. */
	server->accept_queues[3]->calls--;
	assert_ptr_equal(vdi_grpc_server_queue_for_stream(server), server->accept_queues[3]);
	server->accept_queues[1]->calls--;
	assert_ptr_equal(vdi_grpc_server_queue_for_stream(server), server->accept_queues[1]);
	assert_int_equal(server->accept_queue_count, 5);
	close_server(server);
}

/* If no queue can be added, those that are there take more. */
static void streams_without_memory_for_a_queue(void **state)
{
	struct vdi_grpc_server	     *server = open_server((struct vdi_rpc_server_options) { .threads = 1 });
	struct vdi_grpc_accept_queue *queue;

	(void) state;
	for (unsigned i = 0; i < VDI_GRPC_STREAMS_PER_UNARY_ACCEPT_QUEUE; i++)
		assert_ptr_equal(vdi_grpc_server_queue_for_stream(server), server->accept_queues[0]);
	(void) vdi_alloc_fail_nth(1, 1);
	assert_ptr_equal(vdi_grpc_server_queue_for_stream(server), server->accept_queues[0]);
	(void) vdi_alloc_fail_nth(0, 0);
	assert_int_equal(server->accept_queue_count, 1);
	queue = vdi_grpc_server_queue_for_stream(server);
	assert_int_equal(server->accept_queue_count, 2);
	assert_ptr_equal(queue, server->accept_queues[1]);
	close_server(server);
}

/* Each allocation of the start fails in turn: nothing is left. */
static void a_start_without_memory(void **state)
{
	static const char *const method = "/a.B/C", *const frequent = "/a.B/D";
	struct vdi_rpc_server_options options = { .listen = local,
						  .listen_count = 1,
						  .threads = 2,
						  .stream_methods = &method,
						  .stream_method_count = 1,
						  .unary_methods = &frequent,
						  .unary_method_count = 1,
						  .handlers = &handlers };
	vd_status		      status = VD_NOMEM;

	(void) state;
	for (uint64_t nth = 1; status != VD_OK; nth++) {
		struct vdi_rpc_server *server = NULL;

		assert_true(nth < 200);
		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_grpc_server_new(env, &options, &server, NULL);
		assert_int_equal(status == VD_OK, !vdi_alloc_failed());
		(void) vdi_alloc_fail_nth(0, 0);
		if (status == VD_OK)
			close_server(VDI_CONTAINER_OF(server, struct vdi_grpc_server, base));
		else
			assert_status(status, VD_NOMEM);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPC_TEST(core_is_told_what_holds_for_every_server),
		RPC_TEST(core_is_told_the_options),
		RPC_TEST(core_refuses_what_is_far_too_large),
		RPC_TEST(addresses_and_methods_are_checked),
		RPC_TEST(each_address_has_its_port),
		RPC_TEST(an_address_of_a_file),
		RPC_TEST(an_address_in_use_is_named),
		RPC_TEST(an_address_in_use_is_named_with_tls_too),
		RPC_TEST(settings_of_tls_that_core_has_not),
		RPC_TEST(threads_are_chosen_within_bounds),
		RPC_TEST(streams_are_spread_over_queues),
		RPC_TEST(streams_without_memory_for_a_queue),
		RPC_TEST(a_start_without_memory),
	};

	return cmocka_run_group_tests(tests, rpc_certs_set_up, rpc_certs_tear_down);
}
