/* Shared by the tests of remote calls: an environment of real threads for each test, and waits for states of
 * a client. */
#ifndef RPC_FIXTURE_H
#define RPC_FIXTURE_H

#include "rpc_echo.h"
#include "vdtest.h"

/* From start to stop. */
extern struct vd_env *env;
/* The service that the tests of a program call; each test starts and stops it. */
extern struct rpc_echo echo;

/* cmocka's setup and teardown; stop checks that nothing leaked. */
int rpc_fixture_start(void **state);
int rpc_fixture_stop(void **state);
#define RPC_TEST(name) cmocka_unit_test_setup_teardown(name, rpc_fixture_start, rpc_fixture_stop)

struct vdi_rpc_client *rpc_connect_to(const char *endpoint);
/* Each fails the test after AWAIT_PATIENCE_S. */
void rpc_wait_until_ready(struct vdi_rpc_client *client, size_t index, bool ready);
/* Until it is known why that endpoint cannot be reached; its state then. */
struct vdi_rpc_endpoint_state rpc_wait_for_cause(struct vdi_rpc_client *client, size_t index);
/* Init and open. */
void rpc_recorder_start(struct rpc_recorder *recorder, struct vdi_rpc_client *client, bool asks_again,
			const struct vdi_rpc_request *request);
/* Waits for the end, which must have that code; fini. */
void rpc_recorder_finish(struct rpc_recorder *recorder, int code);

/* Echo and Hang of one byte, Chat; any endpoint. */
extern const struct vdi_rpc_request echo_request, hang_request, chat_request;
/* Expects that /test.Echo/Echo of a few bytes succeeds. */
void rpc_expect_echo(struct vdi_rpc_client *client);

/* A listening socket of 127.0.0.1, and its address. */
#define RPC_ADDRESS_SIZE 64
int rpc_listen(char address[RPC_ADDRESS_SIZE]);

#endif
