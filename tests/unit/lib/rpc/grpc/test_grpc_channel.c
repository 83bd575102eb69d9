/* Unit tests of lib/rpc/grpc/grpc_channel.c: what core is told of each endpoint. Connections are in
 * test_rpc_client.c. */
#include <limits.h>

#include "core_args.h"
#include "grpc_client_state.h"
#include "grpc_transport.h"
#include "rpc_fixture.h"

static struct core_args told;
static char		target[256];

/* This takes the place of core's. */
grpc_channel *grpc_channel_create(const char *to, grpc_channel_credentials *credentials,
				  const grpc_channel_args *args)
{
	grpc_channel *(*create)(const char *, grpc_channel_credentials *, const grpc_channel_args *) =
		(grpc_channel * (*) (const char *, grpc_channel_credentials *, const grpc_channel_args *) )
			dlsym(RTLD_NEXT, "grpc_channel_create");

	core_args_keep(&told, args);
	(void) snprintf(target, sizeof target, "%s", to);
	return create(to, credentials, args);
}

static int told_with(const char *endpoint, struct vdi_rpc_client_options options, const char *key)
{
	struct vdi_rpc_client *client;

	options.endpoints = &endpoint;
	options.endpoint_count = 1;
	assert_status(vdi_grpc_client_new(env, &options, &client, NULL), VD_OK);
	rpc_close(env, client);
	return core_args_number(&told, key);
}
#define TOLD(key, ...) told_with("127.0.0.1:1", (struct vdi_rpc_client_options) { __VA_ARGS__ }, key)

static void core_is_told_what_holds_for_every_endpoint(void **state)
{
	(void) state;
	assert_int_equal(TOLD(GRPC_ARG_ENABLE_RETRIES, 0), 0); /* never a write twice */
	assert_int_equal(core_args_number(&told, GRPC_ARG_ENABLE_HTTP_PROXY), 0);
	assert_int_equal(core_args_number(&told, GRPC_ARG_ENABLE_CHANNELZ), 0);
	assert_int_equal(core_args_number(&told, GRPC_ARG_HTTP2_BDP_PROBE), 0);
	assert_int_equal(core_args_number(&told, GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES), VDI_GRPC_WINDOW);
	assert_int_equal(core_args_number(&told, GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION), 1);
	assert_int_equal(core_args_number(&told, GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL), 1);
	assert_int_equal(core_args_number(&told, GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS), 100);
	assert_int_equal(core_args_number(&told, GRPC_ARG_MAX_RECONNECT_BACKOFF_MS), 2000);
	assert_int_equal(core_args_number(&told, GRPC_ARG_MIN_RECONNECT_BACKOFF_MS), 5000);
	assert_int_equal(core_args_number(&told, GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS), INT_MAX);
	assert_int_equal(core_args_number(&told, GRPC_ARG_MAX_METADATA_SIZE), 65536);
	assert_int_equal(core_args_number(&told, GRPC_ARG_MAX_SEND_MESSAGE_LENGTH), -1);
	assert_memory_equal(core_args_text(&told, GRPC_ARG_PRIMARY_USER_AGENT_STRING), "vedette/", 8);
}

static void core_is_told_the_largest_message(void **state)
{
	(void) state;
	assert_int_equal(TOLD(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, 0), -1);
	assert_int_equal(TOLD(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, .receive_size_max = 1000), 1000);
	assert_int_equal(TOLD(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, .receive_size_max = INT_MAX - 1),
			 INT_MAX - 1);
	assert_int_equal(TOLD(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, .receive_size_max = INT_MAX), -1);
}

/* Pings are sent every 5 s at most, and only while calls are open. */
static void core_is_told_when_to_ping(void **state)
{
	static const char *const absent[] = { GRPC_ARG_KEEPALIVE_TIME_MS, GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
					      GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS,
					      GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(absent); i++)
		assert_int_equal(TOLD(absent[i], .keepalive_timeout = VD_SECONDS(9)), CORE_ARG_ABSENT);
	assert_int_equal(TOLD(GRPC_ARG_KEEPALIVE_TIME_MS, .keepalive_time = VD_MS(1)), 5000);
	assert_int_equal(core_args_number(&told, GRPC_ARG_KEEPALIVE_TIMEOUT_MS), CORE_ARG_ABSENT);
	assert_int_equal(core_args_number(&told, GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS), 0);
	assert_int_equal(core_args_number(&told, GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA), 0);
	assert_int_equal(TOLD(GRPC_ARG_KEEPALIVE_TIME_MS, .keepalive_time = VD_MS(5001)), 5001);
	assert_int_equal(TOLD(GRPC_ARG_KEEPALIVE_TIME_MS, .keepalive_time = VD_SECONDS(100000000)), INT_MAX);
	assert_int_equal(TOLD(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, .keepalive_time = VD_SECONDS(10),
			      .keepalive_timeout = VD_SECONDS(3)),
			 3000);
}

static const char *name_with(const char *endpoint, const char *server_name, bool with_tls)
{
	struct vdi_rpc_tls tls = { .server_name = server_name };

	(void) told_with(endpoint, (struct vdi_rpc_client_options) { .tls = with_tls ? &tls : NULL }, "");
	return core_args_text(&told, GRPC_SSL_TARGET_NAME_OVERRIDE_ARG);
}

/* The name that the certificate must have: the endpoint's, unless another one is configured; a socket in the
 * file system has none, so it is localhost. */
static void core_is_told_the_name_of_the_server(void **state)
{
	(void) state;
	assert_string_equal(name_with("127.0.0.1:1", NULL, false), "");
	assert_string_equal(name_with("https://127.0.0.1:1", NULL, false), "");
	assert_string_equal(name_with("127.0.0.1:1", NULL, true), "");
	assert_string_equal(name_with("127.0.0.1:1", "etcd.example", true), "etcd.example");
	assert_string_equal(name_with("http://127.0.0.1:1", "etcd.example", true), "");
	assert_string_equal(name_with("unixs:/nowhere/socket", NULL, true), "localhost");
	assert_string_equal(name_with("unixs:/nowhere/socket", "etcd.example", true), "etcd.example");
	assert_string_equal(name_with("unix:/nowhere/socket", NULL, false), "");
}

/* Each allocation of a new list fails in turn: the old one stays. */
static void endpoints_without_memory(void **state)
{
	static const char *const two[] = { "127.0.0.1:2", "127.0.0.1:3" };
	struct vdi_rpc_client	*client = rpc_connect_to("127.0.0.1:1");
	vd_status		 status = VD_NOMEM;

	(void) state;
	(void) rpc_wait_for_cause(client, 0); /* now the client's thread has a rest */
	for (uint64_t nth = 1; status != VD_OK; nth++) {
		assert_true(nth < 200);
		(void) vdi_alloc_fail_nth(nth, 1);
		status = client->ops->set_endpoints(client, two, 2, NULL);
		assert_int_equal(status == VD_OK, !vdi_alloc_failed());
		(void) vdi_alloc_fail_nth(0, 0);
		assert_int_equal(client->ops->endpoint_count(client), status == VD_OK ? 2 : 1);
		if (status != VD_OK)
			assert_status(status, VD_NOMEM);
	}
	rpc_close(env, client);
}

static void a_client_needs_endpoints(void **state)
{
	static const char *const good = "127.0.0.1:1", *const bad = "nonsense";
	struct vdi_rpc_client_options options = { .endpoints = &good };
	struct vdi_rpc_client	     *client = NULL;
	struct vd_error		      error = { 0 };
	vd_status		      status = VD_NOMEM;
	struct vdi_rpc_tls	      tls = { .server_name = "etcd.example" };

	(void) state;
	assert_status(vdi_grpc_client_new(env, &options, &client, &error), VD_INVALID_ARGUMENT);
	assert_string_equal(error.message, "etcdclient: no available endpoints");
	options.endpoint_count = 1;
	options.endpoints = &bad;
	assert_status(vdi_grpc_client_new(env, &options, &client, &error), VD_INVALID_ARGUMENT);
	assert_string_equal(error.message, "endpoint \"nonsense\": has no port");
	assert_null(client);
	/* Each allocation fails in turn: nothing is left. */
	options.endpoints = &good;
	options.tls = &tls;
	for (uint64_t nth = 1; status != VD_OK; nth++) {
		assert_true(nth < 200);
		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_grpc_client_new(env, &options, &client, NULL);
		assert_int_equal(status == VD_OK, !vdi_alloc_failed());
		(void) vdi_alloc_fail_nth(0, 0);
		if (status != VD_OK)
			assert_status(status, VD_NOMEM);
	}
	rpc_close(env, client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPC_TEST(core_is_told_what_holds_for_every_endpoint),
		RPC_TEST(core_is_told_the_largest_message),
		RPC_TEST(core_is_told_when_to_ping),
		RPC_TEST(core_is_told_the_name_of_the_server),
		RPC_TEST(endpoints_without_memory),
		RPC_TEST(a_client_needs_endpoints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
