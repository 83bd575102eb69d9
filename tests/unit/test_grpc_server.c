/* What only gRPC's core does as a server; test_rpc_server.c is about what all transports do. */
#include "rpc_echo.h"
#include "vdtest.h"

static struct vd_env *env;
static int64_t	      live_before;

static int start(void **state)
{
	(void) state;
	live_before = vdi_alloc_live();
	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	return 0;
}

static int stop(void **state)
{
	(void) state;
	env = vd_env_free(env);
	assert_int_equal(vdi_alloc_live(), live_before);
	return 0;
}

/* Core would take in all of a message before it looks at its size. */
static void a_message_without_an_end_is_bounded_by_memory(void **state)
{
	struct vdi_rpc_server_options options = { .receive_size_max = 1 << 20, .memory_max = 32 << 20 };
	struct rpc_echo		      bounded;
	struct vdi_rpc_client	     *guest;
	const char		     *address;
	struct rpc_answer	      answer;
	size_t			      size = 128 << 20;
	char			     *bytes = vdi_calloc(1, size);

	(void) state;
	assert_status(rpc_echo_start(&bounded, env, NULL, &options, NULL), VD_OK);
	address = rpc_echo_address(&bounded);
	guest = rpc_connect(env, &address, 1, NULL);
	answer = rpc_ask_simply(env, guest, "/test.Echo/Echo", (struct vd_bytes) { bytes, size }, VD_SECONDS(60));
	assert_int_not_equal(answer.end.code, VDI_RPC_OK);
	/* Core's own verdict on a whole message would tell its size. */
	assert_null(strstr(answer.text, "larger than max"));
	assert_int_equal(bounded.received, 0);
	answer = rpc_ask_simply(env, guest, "/test.Echo/Echo", vd_bytes_of("still here"), VD_SECONDS(60));
	assert_int_equal(answer.end.code, VDI_RPC_OK);
	rpc_answer_release(&answer);
	rpc_close(env, guest);
	rpc_echo_stop(&bounded, env);
	vdi_free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_message_without_an_end_is_bounded_by_memory, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
