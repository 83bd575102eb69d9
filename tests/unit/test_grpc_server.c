/* The server against our own client, over loopback. */
#include "rpc_echo.h"
#include "vdtest.h"
#include "wait.h"

static struct vd_env	     *env;
static struct rpc_echo	      echo;
static struct vdi_rpc_client *client;
static int64_t		      live_before;

static int start(void **state)
{
	(void) state;
	live_before = vdi_alloc_live();
	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	return 0;
}

static int start_both(void **state)
{
	const char *address;

	start(state);
	assert_status(rpc_echo_start(&echo, env, NULL, NULL, NULL), VD_OK);
	address = rpc_echo_address(&echo);
	client = rpc_connect(env, &address, 1, NULL);
	return 0;
}

static int stop(void **state)
{
	(void) state;
	env = vd_env_free(env);
	assert_int_equal(vdi_alloc_live(), live_before);
	return 0;
}

static int stop_both(void **state)
{
	rpc_close(env, client);
	rpc_echo_stop(&echo, env);
	assert_int_equal(echo.accepted, echo.ended);
	return stop(state);
}

static void unary_calls_are_answered(void **state)
{
	struct rpc_answer answer;

	(void) state;
	answer = rpc_ask_simply(env, client, "/test.Echo/Echo", vd_bytes_of("hello"), VD_SECONDS(10));
	assert_int_equal(answer.end.code, VDI_RPC_OK);
	assert_true(vd_bytes_equal(answer.message.bytes, vd_bytes_of("hello")));
	assert_string_equal(answer.endpoint, rpc_echo_address(&echo));
	rpc_answer_release(&answer);
	answer = rpc_ask_simply(env, client, "/test.Echo/Size", vd_bytes_of("3000000"), VD_SECONDS(10));
	assert_int_equal(answer.message.bytes.size, 3000000);
	rpc_answer_release(&answer);
	answer = rpc_ask_simply(env, client, "/test.Echo/Echo", VD_BYTES_NONE, VD_SECONDS(10));
	assert_int_equal(answer.end.code, VDI_RPC_OK);
	assert_int_equal(answer.message.bytes.size, 0);
	rpc_answer_release(&answer);
	answer = rpc_ask_simply(env, client, "/test.Echo/Fail", vd_bytes_of("11 etcdserver: mvcc: required revision has been compacted"), VD_SECONDS(10));
	assert_int_equal(answer.end.code, VDI_RPC_OUT_OF_RANGE);
	assert_string_equal(answer.text, "etcdserver: mvcc: required revision has been compacted");
	assert_false(answer.end.unsent || answer.end.local);
	answer = rpc_ask_simply(env, client, "/other/Method", VD_BYTES_NONE, VD_SECONDS(10));
	assert_int_equal(answer.end.code, VDI_RPC_UNIMPLEMENTED);
	answer = rpc_ask_simply(env, client, "/test.Echo/Peer", VD_BYTES_NONE, VD_SECONDS(10));
	assert_memory_equal(answer.message.bytes.data, "127.0.0.1:", 10);
	rpc_answer_release(&answer);
}

static void streams_go_both_ways(void **state)
{
	struct vdi_rpc_request request = { .method = "/test.Echo/Chat", .endpoint = VDI_RPC_ANY_ENDPOINT };
	struct rpc_recorder    recorder;

	(void) state;
	rpc_recorder_init(&recorder, env, client, true);
	assert_status(rpc_recorder_open(&recorder, &request), VD_OK);
	for (int i = 0; i < 1000; i++)
		assert_status(client->ops->stream_send(recorder.stream, vd_bytes_of("one")), VD_OK);
	assert_status(client->ops->stream_send(recorder.stream, vd_bytes_of("last")), VD_OK);
	rpc_recorder_wait_messages(&recorder, 1001);
	assert_string_equal(recorder.last, "re: last");
	client->ops->stream_half_close(recorder.stream);
	rpc_recorder_wait_ended(&recorder);
	assert_int_equal(recorder.end.code, VDI_RPC_OK);
	rpc_recorder_fini(&recorder);
}

static void many_messages_of_one_request(void **state)
{
	struct vdi_rpc_request request = { .method = "/test.Echo/Count", .message = vd_bytes_of("20000 1000"), .half_close = true, .endpoint = VDI_RPC_ANY_ENDPOINT };
	struct rpc_recorder    recorder;

	(void) state;
	rpc_recorder_init(&recorder, env, client, true);
	assert_status(rpc_recorder_open(&recorder, &request), VD_OK);
	rpc_recorder_wait_ended(&recorder);
	assert_int_equal(recorder.end.code, VDI_RPC_OK);
	assert_int_equal(recorder.messages, 20000);
	assert_int_equal(recorder.bytes, 20000000);
	rpc_recorder_fini(&recorder);
}

static void an_address_in_use_is_an_error_that_names_it(void **state)
{
	struct rpc_echo	other;
	struct vd_error error = { 0 };
	char		expected[128];

	(void) state;
	assert_status(rpc_echo_start(&other, env, rpc_echo_address(&echo), NULL, &error), VD_IO);
	snprintf(expected, sizeof expected, "address \"%s\": Address already in use", rpc_echo_address(&echo));
	assert_string_equal(error.message, expected);
	assert_status(rpc_echo_start(&other, env, "nonsense", NULL, &error), VD_INVALID_ARGUMENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(unary_calls_are_answered, start_both, stop_both),
		cmocka_unit_test_setup_teardown(streams_go_both_ways, start_both, stop_both),
		cmocka_unit_test_setup_teardown(many_messages_of_one_request, start_both, stop_both),
		cmocka_unit_test_setup_teardown(an_address_in_use_is_an_error_that_names_it, start_both, stop_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
