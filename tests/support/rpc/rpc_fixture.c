#include "rpc_fixture.h"

#include "await.h"

#include <netinet/in.h>
#include <sys/socket.h>

struct vd_env  *env;
struct rpc_echo echo;
static int64_t	live_before;

const struct vdi_rpc_request echo_request = { .method = "/test.Echo/Echo",
					      .message = { "x", 1 },
					      .endpoint = VDI_RPC_ANY_ENDPOINT };
const struct vdi_rpc_request hang_request = { .method = "/test.Echo/Hang",
					      .message = { "x", 1 },
					      .endpoint = VDI_RPC_ANY_ENDPOINT };
const struct vdi_rpc_request chat_request = { .method = "/test.Echo/Chat", .endpoint = VDI_RPC_ANY_ENDPOINT };

int rpc_fixture_start(void **state)
{
	(void) state;
	live_before = vdi_alloc_live();
	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	return 0;
}

int rpc_fixture_stop(void **state)
{
	(void) state;
	env = vd_env_free(env);
	assert_int_equal(vdi_alloc_live(), live_before);
	return 0;
}

struct vdi_rpc_client *rpc_connect_to(const char *endpoint)
{
	return rpc_connect(env, &endpoint, 1, NULL);
}

static struct vdi_rpc_endpoint_state state_of(struct vdi_rpc_client *client, size_t index)
{
	struct vdi_rpc_endpoint_state state;

	assert_true(client->ops->endpoint_state(client, index, &state));
	return state;
}

void rpc_wait_until_ready(struct vdi_rpc_client *client, size_t index, bool ready)
{
	AWAIT(state_of(client, index).ready == ready);
}

struct vdi_rpc_endpoint_state rpc_wait_for_cause(struct vdi_rpc_client *client, size_t index)
{
	struct vdi_rpc_endpoint_state state;

	AWAIT((state = state_of(client, index)).last_error[0]);
	return state;
}

void rpc_recorder_start(struct rpc_recorder *recorder, struct vdi_rpc_client *client, bool asks_again,
			const struct vdi_rpc_request *request)
{
	rpc_recorder_init(recorder, env, client, asks_again);
	assert_status(rpc_recorder_open(recorder, request), VD_OK);
}

void rpc_recorder_finish(struct rpc_recorder *recorder, int code)
{
	rpc_recorder_wait_ended(recorder);
	assert_int_equal(recorder->end.code, code);
	rpc_recorder_fini(recorder);
}

void rpc_expect_echo(struct vdi_rpc_client *client)
{
	struct rpc_answer answer =
		rpc_ask_simply(env, client, "/test.Echo/Echo", vd_bytes_of("still here"), VD_SECONDS(60));

	assert_int_equal(answer.end.code, VDI_RPC_OK);
	assert_true(vd_bytes_equal(answer.message.bytes, vd_bytes_of("still here")));
	rpc_answer_release(&answer);
}

int rpc_listen(char address[RPC_ADDRESS_SIZE])
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t	   length = sizeof at;
	int		   fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *) &at, sizeof at), 0);
	assert_int_equal(listen(fd, 16), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *) &at, &length), 0);
	(void) snprintf(address, RPC_ADDRESS_SIZE, "127.0.0.1:%d", ntohs(at.sin_port));
	return fd;
}
