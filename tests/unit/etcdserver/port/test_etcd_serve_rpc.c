/* The clients' port of the etcd server over a real socket: HTTP endpoints beside the calls, one request or
 * several at once. */
#include "etcd_server_fixture.h"

#include <pthread.h>

#include "http_fixture.h"
#include "rpc_fixture.h"
#include "rpc_transport.h"
#include "serve_rpc.h"
#include "vdtest.h"

struct rpc_test {
	struct vd_env	      *env;
	struct vd_store	      *store;
	struct vdi_etcdserver *server;
	struct vdi_serve_rpc  *rpc;
	uint16_t	       port;
};

static int setup(void **state)
{
	static const char *const      listen[] = { "127.0.0.1:0" };
	struct vd_mvcc_options	      memory = VD_MVCC_OPTIONS_INIT;
	struct vdi_etcdserver_options options = { .bcrypt_cost = 4 };
	struct vdi_serve_rpc_options  rpc = { .listen = listen, .listen_count = 1, .threads = 1 };
	struct rpc_test		     *test = malloc(sizeof *test);

	assert_status(vd_env_new_threads(NULL, &test->env), VD_OK);
	assert_status(vd_store_open_mvcc(test->env, &memory, &test->store, NULL), VD_OK);
	options.store = test->store;
	assert_status(vdi_etcdserver_new(test->env, &options, &test->server, NULL), VD_OK);
	assert_status(vdi_serve_rpc_new(test->server, &rpc, &test->rpc, NULL), VD_OK);
	test->port = (uint16_t) atoi(strrchr(vdi_serve_rpc_address(test->rpc, 0), ':') + 1);
	*state = test;
	return 0;
}

static int teardown(void **state)
{
	struct rpc_test *test = *state;

	assert_null(vdi_serve_rpc_close(test->rpc));
	(void) vdi_etcdserver_free(test->server);
	(void) vd_store_close_wait(test->store);
	vd_env_free(test->env);
	free(test);
	return 0;
}

static void ask(struct rpc_test *test, const char *path, const char *part)
{
	int   code;
	char *text = http_ask(test->port, "GET", path, "", "", &code);

	assert_int_equal(code, 200);
	assert_non_null(strstr(text, part));
	/* Pages of any origin may ask here. */
	assert_non_null(strstr(text, "Access-Control-Allow-Origin: *"));
	free(text);
}

static void e152_endpoints_on_the_clients_port(void **state)
{
	for (int i = 0; i < 3; i++) {
		ask(*state, "/metrics", "\netcd_server_has_leader 1\n");
		ask(*state, "/health", "{\"health\":\"true\",\"reason\":\"\"}");
		ask(*state, "/version", "\"etcdserver\":\"3.7.3\"");
	}
}

static void *ask_for_metrics(void *arg)
{
	for (int i = 0; i < 10; i++)
		ask(arg, "/metrics", "\netcd_server_has_leader 1\n");
	return NULL;
}

/* Slow answers are made one after the other; none is forgotten. */
static void e152_several_may_ask_at_once(void **state)
{
	pthread_t threads[4];

	for (size_t i = 0; i < VDI_ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_for_metrics, *state), 0);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void an_address_that_cannot_be_used(void **state)
{
	struct rpc_test		    *test = *state;
	const char		    *listen[] = { vdi_serve_rpc_address(test->rpc, 0) };
	struct vdi_serve_rpc_options options = { .listen = listen, .listen_count = 1, .threads = 1 };
	struct vdi_serve_rpc	    *second;
	struct vd_error		     error = { .code = VD_OK };

	assert_status(vdi_serve_rpc_new(test->server, &options, &second, &error), VD_IO);
	assert_non_null(strstr(error.message, listen[0]));
	ask(test, "/health", "true");
}

/* ---- Limits that nobody has chosen ---- */

static struct vdi_rpc_server_options noted;

static vd_status note_options(const struct vd_env *env_of, const struct vdi_rpc_server_options *options,
			      struct vdi_rpc_server **ret_server, struct vd_error *reterr)
{
	(void) env_of;
	(void) ret_server;
	noted = *options;
	return vd_error_set(reterr, VD_IO, "noted");
}

/* rules: E-151 */
static void e150_defaults_of_the_transport(void **state)
{
	static const char *const	     listen[] = { "127.0.0.1:0" };
	static const struct vd_rpc_transport notes = { .name = "notes", .server_new = note_options };
	struct rpc_test			    *test = *state;
	struct vdi_serve_rpc_options options = { .listen = listen, .listen_count = 1, .transport = &notes };
	struct vdi_serve_rpc	    *rpc;

	assert_status(vdi_serve_rpc_new(test->server, &options, &rpc, NULL), VD_IO);
	assert_int_equal(noted.receive_size_max, 2097152);
	assert_int_equal(noted.streams_max, 0);
	assert_int_equal(noted.ping_interval_min.ns, VD_SECONDS(5).ns);
	assert_int_equal(noted.keepalive_time.ns, VD_SECONDS(7200).ns);
	assert_int_equal(noted.keepalive_timeout.ns, VD_SECONDS(20).ns);
	options.streams_max = 3;
	options.ping_interval_min = VD_SECONDS(6);
	options.keepalive_time = VD_SECONDS(7);
	options.keepalive_timeout = VD_SECONDS(8);
	assert_status(vdi_serve_rpc_new(test->server, &options, &rpc, NULL), VD_IO);
	assert_int_equal(noted.streams_max, 3);
	assert_int_equal(noted.ping_interval_min.ns, VD_SECONDS(6).ns);
	assert_int_equal(noted.keepalive_time.ns, VD_SECONDS(7).ns);
	assert_int_equal(noted.keepalive_timeout.ns, VD_SECONDS(8).ns);
}

/* A request of more than 1.5 MiB is refused by the server, a message of more than 2 MiB by the transport. */
static void e150_the_largest_message(void **state)
{
	struct rpc_test		*test = *state;
	Etcdserverpb__PutRequest request = ETCDSERVERPB__PUT_REQUEST__INIT;
	uint8_t			*value = calloc(1, 2097152), *bytes = malloc(2097153);
	const char		*address = vdi_serve_rpc_address(test->rpc, 0);
	struct vdi_rpc_client	*client = rpc_connect(test->env, &address, 1, NULL);
	struct rpc_answer	 answer;
	size_t			 size;

	request.key = etcd_bytes("big");
	request.value = (ProtobufCBinaryData) { 2097152, value };
	while (protobuf_c_message_get_packed_size(&request.base) > 2097152)
		request.value.len--;
	size = protobuf_c_message_pack(&request.base, bytes);
	assert_int_equal(size, 2097152);
	answer = rpc_ask_simply(test->env, client, "/etcdserverpb.KV/Put", (struct vd_bytes) { bytes, size },
				VD_SECONDS(300));
	assert_int_equal(answer.end.code, VDI_RPC_INVALID_ARGUMENT);
	assert_string_equal(answer.text, "etcdserver: request is too large");
	request.value.len++;
	size = protobuf_c_message_pack(&request.base, bytes);
	answer = rpc_ask_simply(test->env, client, "/etcdserverpb.KV/Put", (struct vd_bytes) { bytes, size },
				VD_SECONDS(300));
	assert_int_equal(answer.end.code, VDI_RPC_RESOURCE_EXHAUSTED);
	assert_string_equal(answer.text, "grpc: received message larger than max (2097153 vs. 2097152)");
	rpc_close(test->env, client);
	free(value);
	free(bytes);
}

static const char put_bytes[] = "\x0a\1k\x12\1v";   /* k=v */
static const char create_bytes[] = "\x0a\3\x0a\1k"; /* a watch of k */

static int64_t put_over(struct rpc_test *test, struct vdi_rpc_client *client, const char *version)
{
	const struct vdi_rpc_metadata metadata = { "client-api-version", vd_bytes_of(version) };
	const struct vdi_rpc_request  request = { .method = "/etcdserverpb.KV/Put",
						  .metadata = &metadata,
						  .metadata_count = 1,
						  .message = { put_bytes, sizeof put_bytes - 1 },
						  .timeout = VD_SECONDS(300),
						  .endpoint = VDI_RPC_ANY_ENDPOINT };
	struct rpc_answer	      answer = rpc_ask(test->env, client, &request);
	Etcdserverpb__PutResponse    *response;
	int64_t			      revision;

	assert_int_equal(answer.end.code, VDI_RPC_OK);
	response = etcdserverpb__put_response__unpack(NULL, answer.message.bytes.size,
						      answer.message.bytes.data);
	revision = response->header->revision;
	ETCD_FREE(response);
	rpc_answer_release(&answer);
	return revision;
}

/* What the transport carries in both directions: requests, answers, messages of streams, metadata, ends. */
static void calls_and_streams_over_a_socket(void **state)
{
	struct rpc_test		    *test = *state;
	const char		    *address = vdi_serve_rpc_address(test->rpc, 0);
	struct vdi_rpc_client	    *client = rpc_connect(test->env, &address, 1, NULL);
	const struct vdi_rpc_request watch = { .method = "/etcdserverpb.Watch/Watch",
					       .endpoint = VDI_RPC_ANY_ENDPOINT };
	struct rpc_recorder	     recorder;
	struct rpc_answer	     answer;

	assert_int_equal(put_over(test, client, "3.8"), 2);
	assert_int_equal(put_over(test, client, "3.8"), 3);
	ask(test, "/metrics", "{client_api_version=\"3.8\",type=\"unary\"} 2\n");
	rpc_recorder_init(&recorder, test->env, client, true);
	assert_status(rpc_recorder_open(&recorder, &watch), VD_OK);
	assert_status(client->ops->stream_send(recorder.stream,
					       (struct vd_bytes) { create_bytes, sizeof create_bytes - 1 }),
		      VD_OK);
	rpc_recorder_wait_messages(&recorder, 1);
	for (int64_t revision = 4; revision < 7; revision++) {
		assert_int_equal(put_over(test, client, "3.7"), revision);
		rpc_recorder_wait_messages(&recorder, (unsigned) revision - 2);
	}
	client->ops->stream_half_close(recorder.stream);
	client->ops->stream_cancel(recorder.stream);
	rpc_recorder_wait_ended(&recorder);
	rpc_recorder_fini(&recorder);
	answer =
		rpc_ask_simply(test->env, client, "/etcdserverpb.KV/Nothing", VD_BYTES_NONE, VD_SECONDS(300));
	assert_int_equal(answer.end.code, VDI_RPC_UNIMPLEMENTED);
	assert_string_equal(answer.text, "unknown method Nothing for service etcdserverpb.KV");
	rpc_close(test->env, client);
}

/* An address for health and metrics alone takes no calls. */
static void e152_an_address_without_calls(void **state)
{
	static const char *const     listen[] = { "127.0.0.1:0" };
	struct rpc_test		    *test = *state;
	struct vdi_serve_rpc_options options = {
		.listen = listen, .listen_count = 1, .threads = 1, .without_calls = true
	};
	struct vdi_serve_rpc  *port;
	struct vdi_rpc_client *client;
	struct rpc_answer      answer;
	const char	      *address;
	char		      *text;
	int		       code;

	assert_status(vdi_serve_rpc_new(test->server, &options, &port, NULL), VD_OK);
	address = vdi_serve_rpc_address(port, 0);
	client = rpc_connect(test->env, &address, 1, NULL);
	answer = rpc_ask_simply(test->env, client, "/etcdserverpb.KV/Put",
				(struct vd_bytes) { put_bytes, sizeof put_bytes - 1 }, VD_SECONDS(300));
	assert_int_equal(answer.end.code, VDI_RPC_UNIMPLEMENTED);
	assert_string_equal(answer.text, "this address only serves health and metrics");
	text = http_ask((uint16_t) atoi(strrchr(address, ':') + 1), "GET", "/health", "", "", &code);
	assert_int_equal(code, 200);
	free(text);
	rpc_close(test->env, client);
	assert_null(vdi_serve_rpc_close(port));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		CASE(e152_endpoints_on_the_clients_port), CASE(e152_several_may_ask_at_once),
		CASE(an_address_that_cannot_be_used),	  CASE(e150_defaults_of_the_transport),
		CASE(e150_the_largest_message),		  CASE(calls_and_streams_over_a_socket),
		CASE(e152_an_address_without_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
