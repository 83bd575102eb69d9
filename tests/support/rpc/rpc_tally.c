#include "rpc_tally.h"

struct rpc_echo rpc_tally_other;

int rpc_tally_start(void **state)
{
	rpc_fixture_start(state);
	assert_status(rpc_echo_start(&echo, env, NULL, NULL, NULL), VD_OK);
	return 0;
}

int rpc_tally_stop(void **state)
{
	rpc_echo_stop(&echo, env);
	return rpc_fixture_stop(state);
}

void rpc_tally_end(void *arg, const struct vdi_rpc_end *end, struct vdi_rpc_message *message)
{
	struct rpc_tally *tally = arg;

	if (end->code == VDI_RPC_OK)
		atomic_fetch_add(&tally->ok, 1);
	assert_true(end->code >= 0 && end->code < 17);
	assert_non_null(end->message);
	assert_non_null(end->endpoint);
	atomic_fetch_add(&tally->codes[end->code], 1);
	if (end->unsent)
		atomic_fetch_add(&tally->unsent, 1);
	vdi_rpc_message_release(message);
	atomic_fetch_add(&tally->ended, 1);
}

void rpc_tally_call(struct vdi_rpc_client *client, const struct vdi_rpc_request *request,
		    struct rpc_tally *tally)
{
	atomic_fetch_add(&tally->begun, 1);
	assert_status(client->ops->call(client, request, rpc_tally_end, tally, NULL), VD_OK);
}

void rpc_tally_start_other(void)
{
	assert_status(rpc_echo_start(&rpc_tally_other, env, NULL, NULL, NULL), VD_OK);
}
