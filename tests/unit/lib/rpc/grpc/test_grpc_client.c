/* What only the client over gRPC's core can be made to do. */
#include <unistd.h>

#include "await.h"
#include "grpc_client_state.h"
#include "rpc_fixture.h"

/* A connection may go between our choice and core's start. Here it never was: the client is made to believe
 * that its only channel is ready. */
static void believe_ready(struct vdi_rpc_client *base)
{
	struct vdi_grpc_client *client = VDI_CONTAINER_OF(base, struct vdi_grpc_client, client);

	vdi_lock_acquire(&client->lock);
	client->channels[0]->is_ready = true;
	vdi_lock_release(&client->lock);
}

static unsigned waiting_count(struct vdi_rpc_client *base)
{
	struct vdi_grpc_client *client = VDI_CONTAINER_OF(base, struct vdi_grpc_client, client);
	unsigned		count = 0;

	vdi_lock_acquire(&client->lock);
	for (struct vdi_grpc_link *link = client->waiting.next; link != &client->waiting; link = link->next)
		count++;
	vdi_lock_release(&client->lock);
	return count;
}

static void what_finds_no_connection_waits_again_whole(void **state)
{
	char			     address[RPC_ADDRESS_SIZE];
	int			     fd = rpc_listen(address);
	const struct vdi_rpc_request count = { .method = "/test.Echo/Count",
					       .message = vd_bytes_of("3 30"),
					       .half_close = true,
					       .endpoint = -1 };
	struct vdi_rpc_request	     late = echo_request;
	struct vdi_rpc_client	    *client;
	struct rpc_recorder	     chat;
	struct rpc_recorder	     counted;
	struct rpc_answer	     answer;
	struct rpc_asked	    *asked;

	(void) state;
	close(fd);
	client = rpc_connect_to(address);
	rpc_wait_for_cause(client, 0);
	/* One that ends while it waits again was never sent. */
	believe_ready(client);
	late.timeout = VD_MS(100);
	answer = rpc_ask(env, client, &late);
	assert_int_equal(answer.end.code, VDI_RPC_DEADLINE_EXCEEDED);
	assert_true(answer.end.unsent);
	assert_non_null(strstr(answer.text, "(connection refused)"));

	believe_ready(client);
	asked = rpc_ask_begin(env, client, "/test.Echo/Echo",
			      vd_bytes_of("something that is longer than twenty-three bytes"));
	rpc_recorder_init(&chat, env, client, true);
	rpc_recorder_init(&counted, env, client, true);
	believe_ready(client);
	assert_status(rpc_recorder_open(&chat, &chat_request), VD_OK);
	assert_status(client->ops->stream_send(chat.stream, vd_bytes_of("first")), VD_OK);
	believe_ready(client);
	assert_status(rpc_recorder_open(&counted, &count), VD_OK);
	AWAIT(waiting_count(client) == 3);
	assert_status(rpc_echo_start(&echo, env, address, NULL, NULL), VD_OK);
	answer = rpc_ask_end(asked);
	assert_int_equal(answer.end.code, VDI_RPC_OK);
	assert_true(vd_bytes_equal(answer.message.bytes,
				   vd_bytes_of("something that is longer than twenty-three bytes")));
	rpc_answer_release(&answer);
	rpc_recorder_wait_messages(&chat, 1);
	assert_string_equal(chat.last, "re: first");
	rpc_recorder_wait_ended(&counted);
	assert_int_equal(counted.end.code, VDI_RPC_OK);
	assert_int_equal(counted.messages, 3);
	client->ops->stream_cancel(chat.stream);
	rpc_recorder_wait_ended(&chat);
	rpc_recorder_fini(&chat);
	rpc_recorder_fini(&counted);
	rpc_close(env, client);
	rpc_echo_stop(&echo, env);
}

/* An endpoint may be removed between the check of a call's index and its start: nothing would end its wait
 * any more. Here it is removed before, behind the back of the list. */
static void e205_an_endpoint_that_is_removed_before_the_start(void **state)
{
	char			address[RPC_ADDRESS_SIZE];
	int			fd = rpc_listen(address);
	struct vdi_rpc_client  *base = rpc_connect_to(address);
	struct vdi_grpc_client *client = VDI_CONTAINER_OF(base, struct vdi_grpc_client, client);
	struct vdi_rpc_request	request = echo_request;
	struct rpc_answer	answer;

	(void) state;
	vdi_lock_acquire(&client->lock);
	client->channels[0]->is_removed = true;
	client->channels[0]->is_ready = false;
	vdi_lock_release(&client->lock);
	request.endpoint = 0;
	request.timeout = VD_SECONDS(10);
	answer = rpc_ask(env, base, &request);
	assert_int_equal(answer.end.code, VDI_RPC_UNAVAILABLE);
	assert_string_equal(answer.text, "the endpoint was removed");
	assert_true(answer.end.unsent);
	vdi_lock_acquire(&client->lock);
	client->channels[0]->is_removed = false;
	vdi_lock_release(&client->lock);
	rpc_close(env, base);
	close(fd);
}

static void count_end(void *arg, const struct vdi_rpc_end *end, struct vdi_rpc_message *message)
{
	(void) end;
	(void) message;
	atomic_fetch_add((_Atomic uint64_t *) arg, 1);
}

/* A call or stream that cannot begin is refused by its result alone. */
static void calls_and_streams_without_memory(void **state)
{
	const struct vdi_rpc_metadata metadata = { "key", vd_bytes_of("value") };
	char			      address[RPC_ADDRESS_SIZE];
	int			      fd = rpc_listen(address);
	struct vdi_rpc_client	     *client;
	struct vdi_rpc_request	      request = echo_request;
	struct vdi_rpc_call	     *call = NULL;
	struct rpc_recorder	      recorder;
	_Atomic uint64_t	      ended = 0;
	vd_status		      status = VD_NOMEM;

	(void) state;
	close(fd);
	client = rpc_connect_to(address);
	(void) rpc_wait_for_cause(client, 0); /* now the client's thread has a rest */
	request.metadata = &metadata;
	request.metadata_count = 1;
	for (uint64_t nth = 1; status != VD_OK; nth++) {
		assert_true(nth < 50);
		(void) vdi_alloc_fail_nth(nth, 1);
		status = client->ops->call(client, &request, count_end, &ended, &call);
		assert_int_equal(status == VD_OK, !vdi_alloc_failed());
		(void) vdi_alloc_fail_nth(0, 0);
		assert_int_equal(ended, 0);
	}
	client->ops->call_cancel(call);
	rpc_wait_for(env, &ended, 1);
	status = VD_NOMEM;
	rpc_recorder_init(&recorder, env, client, false);
	for (uint64_t nth = 1; status != VD_OK; nth++) {
		assert_true(nth < 50);
		(void) vdi_alloc_fail_nth(nth, 1);
		status = rpc_recorder_open(&recorder, &request);
		assert_int_equal(status == VD_OK, !vdi_alloc_failed());
		(void) vdi_alloc_fail_nth(0, 0);
	}
	client->ops->stream_cancel(recorder.stream);
	rpc_recorder_finish(&recorder, VDI_RPC_CANCELED);
	rpc_close(env, client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPC_TEST(what_finds_no_connection_waits_again_whole),
		RPC_TEST(e205_an_endpoint_that_is_removed_before_the_start),
		RPC_TEST(calls_and_streams_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
