/* Cancels and closes at every moment, thousands of calls, and no memory: each call ends once, and nothing
 * is lost. */
#include <sched.h>

#include "rpc_fixture.h"
#include "rpc_tally.h"
#include "rpc_under_test.h"
#include "wait.h"

/* ---- Cancel and close at every moment ---- */

static void give_way_sometimes(unsigned i)
{
	for (unsigned k = 0; k < i % 7 * 200; k++)
		__asm__ volatile("" ::: "memory");
	for (unsigned k = 0; i % 11 == 0 && k < 20; k++)
		(void) sched_yield();
}

/* As a user has it: a call is canceled only while its pointer is known to be good. */
struct cancelled_call {
	struct vdi_lock	     lock;
	struct vdi_rpc_call *call; /* under lock; NULL: done */
	struct rpc_tally    *tally;
};

static void cancelled_done(void *arg, const struct vdi_rpc_end *end, struct vdi_rpc_message *message)
{
	struct cancelled_call *mine = arg;

	vdi_lock_acquire(&mine->lock);
	assert_non_null(mine->call);
	mine->call = NULL;
	vdi_lock_release(&mine->lock);
	assert_true(end->code == VDI_RPC_OK || (end->code == VDI_RPC_CANCELED && end->local));
	rpc_tally_end(mine->tally, end, message);
}

static void cancel_calls(struct vdi_rpc_client *client, const struct vdi_rpc_request *request, unsigned count,
			 struct rpc_tally *tally)
{
	struct cancelled_call *calls = vdi_calloc(count, sizeof calls[0]);

	for (unsigned i = 0; i < count; i++) {
		vdi_lock_init(&calls[i].lock, VDI_LOCK_STORE);
		calls[i].tally = tally;
		vdi_lock_acquire(&calls[i].lock);
		assert_status(client->ops->call(client, request, cancelled_done, &calls[i], &calls[i].call),
			      VD_OK);
		vdi_lock_release(&calls[i].lock);
		give_way_sometimes(i);
		vdi_lock_acquire(&calls[i].lock);
		if (calls[i].call)
			client->ops->call_cancel(calls[i].call);
		vdi_lock_release(&calls[i].lock);
	}
	rpc_wait_for(env, &tally->ended, count);
	for (unsigned i = 0; i < count; i++)
		vdi_lock_fini(&calls[i].lock);
	vdi_free(calls);
}

static void calls_are_canceled_at_any_moment(void **state)
{
	struct vdi_rpc_client *client = rpc_connect_to(rpc_echo_address(&echo));
	struct vdi_rpc_client *lonely = rpc_connect_to("127.0.0.1:1");
	struct rpc_tally       hanging = { 0 };
	struct rpc_tally       quick = { 0 };
	struct rpc_tally       waiting = { 0 };

	(void) state;
	cancel_calls(client, &hang_request, 300, &hanging);
	assert_int_equal(hanging.codes[VDI_RPC_CANCELED], 300);
	cancel_calls(client, &echo_request, 300, &quick);
	assert_int_equal(quick.codes[VDI_RPC_CANCELED] + quick.ok, 300);
	cancel_calls(lonely, &echo_request, 300, &waiting);
	assert_int_equal(waiting.codes[VDI_RPC_CANCELED], 300);
	assert_int_equal(waiting.unsent, 300);
	rpc_close(env, lonely);
	rpc_close(env, client);
}

static void streams_are_canceled_at_any_moment(void **state)
{
	struct vdi_rpc_client *client = rpc_connect_to(rpc_echo_address(&echo));

	(void) state;
	for (unsigned i = 0; i < 300; i++) {
		struct rpc_recorder recorder;

		rpc_recorder_init(&recorder, env, client, true);
		recorder.keeps_stream = true;
		assert_status(rpc_recorder_open(&recorder, &chat_request), VD_OK);
		give_way_sometimes(i);
		for (unsigned k = 0; k < i % 5; k++)
			assert_status(client->ops->stream_send(
					      recorder.stream,
					      vd_bytes_of("some message, longer than what is inline")),
				      VD_OK);
		if (i % 4 == 0)
			client->ops->stream_half_close(recorder.stream);
		give_way_sometimes(i / 3);
		client->ops->stream_cancel(recorder.stream);
		rpc_recorder_wait_ended(&recorder);
		assert_true(recorder.end.code == VDI_RPC_CANCELED ||
			    (i % 4 == 0 && recorder.end.code == VDI_RPC_OK));
		client->ops->stream_free(recorder.stream);
		rpc_recorder_fini(&recorder);
	}
	rpc_close(env, client);
}

#define CLOSE_STREAMS 4

static void a_client_is_closed_at_any_moment(void **state)
{
	(void) state;
	for (unsigned i = 0; i < 60; i++) {
		const char *endpoints[] = { rpc_echo_address(&echo), "127.0.0.1:1", "nowhere.invalid:1" };
		struct vdi_rpc_client *client =
			rpc_connect(env, endpoints + i % 2, i % 3 + 1 - (i % 2 && i % 3 == 2), NULL);
		struct rpc_recorder recorders[CLOSE_STREAMS];
		struct rpc_tally    tally = { 0 };

		give_way_sometimes(i);
		for (unsigned k = 0; k < CLOSE_STREAMS; k++) {
			rpc_recorder_start(&recorders[k], client, false, &chat_request);
			assert_status(client->ops->stream_send(recorders[k].stream, vd_bytes_of("hello")),
				      VD_OK);
			rpc_tally_call(client, k % 2 ? &hang_request : &echo_request, &tally);
		}
		if (i % 5 == 0 && i % 2 == 0)
			rpc_recorder_wait_opened(&recorders[0]);
		rpc_close(env, client);
		assert_int_equal(tally.ended, CLOSE_STREAMS);
		assert_int_equal(tally.ok + tally.codes[VDI_RPC_CANCELED], CLOSE_STREAMS);
		for (unsigned k = 0; k < CLOSE_STREAMS; k++) {
			assert_true(recorders[k].is_ended);
			assert_int_equal(recorders[k].end.code, VDI_RPC_CANCELED);
			assert_string_equal(recorders[k].text, "grpc: the client connection is closing");
			rpc_recorder_fini(&recorders[k]);
		}
	}
}

struct late {
	struct vdi_rpc_client *client;
	vd_status	       status;
	struct vdi_wait	       wait;
};

static void call_late(void *arg, const struct vdi_rpc_end *end, struct vdi_rpc_message *message)
{
	struct late *late = arg;

	assert_int_equal(end->code, VDI_RPC_CANCELED);
	vdi_rpc_message_release(message);
	late->status = late->client->ops->call(late->client, &echo_request, rpc_tally_end, NULL, NULL);
}

static void a_closing_client_takes_no_calls(void **state)
{
	struct late late = { .client = rpc_connect_to(rpc_echo_address(&echo)), .status = VD_OK };

	(void) state;
	assert_status(late.client->ops->call(late.client, &hang_request, call_late, &late, NULL), VD_OK);
	rpc_close(env, late.client);
	assert_status(late.status, VD_CLOSED);
}

static void a_server_is_closed_at_any_moment(void **state)
{
	(void) state;
	for (unsigned i = 0; i < 30; i++) {
		struct vdi_rpc_request count = { .method = "/test.Echo/Count",
						 .message = vd_bytes_of("100000 500"),
						 .half_close = true,
						 .endpoint = -1 };
		struct vdi_rpc_client *client;
		struct rpc_recorder    chat;
		struct rpc_recorder    counted;
		struct rpc_tally       tally = { 0 };

		rpc_tally_start_other();
		client = rpc_connect_to(rpc_echo_address(&rpc_tally_other));
		rpc_recorder_init(&chat, env, client, true);
		rpc_recorder_init(&counted, env, client, i % 3 != 0);
		assert_status(rpc_recorder_open(&chat, &chat_request), VD_OK);
		assert_status(rpc_recorder_open(&counted, &count), VD_OK);
		for (unsigned k = 0; k < 10; k++)
			rpc_tally_call(client, k % 2 ? &hang_request : &echo_request, &tally);
		if (i % 2)
			rpc_recorder_wait_opened(&chat);
		if (i % 4 == 3)
			rpc_wait_for(env, &rpc_tally_other.sent, 100);
		give_way_sometimes(i * 3);
		rpc_echo_stop(&rpc_tally_other, env);
		assert_int_equal(rpc_tally_other.accepted, rpc_tally_other.ended);
		rpc_close(env, client);
		assert_int_equal(tally.ended, 10);
		assert_true(chat.is_ended && counted.is_ended);
		rpc_recorder_fini(&chat);
		rpc_recorder_fini(&counted);
	}
}

/* ---- Many; no memory ---- */

static void thousands_of_calls_at_once(void **state)
{
	struct vdi_rpc_client *client = rpc_connect_to(rpc_echo_address(&echo));
	struct rpc_tally       tally = { 0 };

	(void) state;
	for (int i = 0; i < 5000; i++)
		rpc_tally_call(client, &echo_request, &tally);
	rpc_wait_for(env, &tally.ended, 5000);
	assert_int_equal(tally.ok, 5000);
	rpc_close(env, client);
}

static void more_streams_than_one_queue_takes(void **state)
{
	enum { COUNT = VDI_RPC_STREAMS_PER_QUEUE + 100 };
	struct vdi_rpc_client *client = rpc_connect_to(rpc_echo_address(&echo));
	struct rpc_recorder   *recorders = vdi_calloc(COUNT, sizeof recorders[0]);

	(void) state;
	for (unsigned i = 0; i < COUNT; i++) {
		rpc_recorder_start(&recorders[i], client, true, &chat_request);
		assert_status(client->ops->stream_send(recorders[i].stream, vd_bytes_of("a")), VD_OK);
	}
	for (unsigned i = 0; i < COUNT; i++)
		rpc_recorder_wait_messages(&recorders[i], 1);
	for (unsigned i = 0; i < COUNT; i++)
		client->ops->stream_half_close(recorders[i].stream);
	for (unsigned i = 0; i < COUNT; i++) {
		rpc_recorder_finish(&recorders[i], VDI_RPC_OK);
	}
	vdi_free(recorders);
	rpc_close(env, client);
}

/* Everything that may fail is one sequence; true when it went through to its end. */
static bool try_all(bool *ret_failed)
{
	struct vdi_rpc_client	     *client = NULL;
	const char		     *address = "127.0.0.1:1";
	const char		     *replaced = "127.0.0.1:2";
	struct vdi_rpc_client_options options = { .endpoints = &address, .endpoint_count = 1, .tls = NULL };
	struct vdi_rpc_metadata	      pair = { "x-test", { "value", 5 } };
	struct vdi_rpc_request	      request = { .method = "/test.Echo/Echo",
						  .message = vd_bytes_of("longer than 23 bytes: a copy"),
						  .metadata = &pair,
						  .metadata_count = 1,
						  .endpoint = VDI_RPC_ANY_ENDPOINT };
	struct rpc_recorder	      recorder;
	struct rpc_tally	      tally = { 0 };
	vd_status		      status;
	uint64_t		      begun = 0;
	bool			      opened = false;

	status = rpc_under_test()->client_new(env, &options, &client, NULL);
	if (status == VD_OK) {
		rpc_recorder_init(&recorder, env, client, true);
		status = client->ops->call(client, &request, rpc_tally_end, &tally, NULL);
		begun = status == VD_OK;
		if (status == VD_OK)
			status = rpc_recorder_open(&recorder, &chat_request);
		opened = status == VD_OK;
		if (status == VD_OK)
			status = client->ops->stream_send(recorder.stream, request.message);
		if (status == VD_OK)
			status = client->ops->set_endpoints(client, &replaced, 1, NULL);
	}
	*ret_failed = vdi_alloc_failed();
	vdi_alloc_fail_nth(0, 0);
	assert_true(status == VD_OK || status == VD_NOMEM);
	if (client) {
		rpc_close(env, client);
		assert_int_equal(tally.ended, begun);
		assert_true(!opened || recorder.is_ended);
		rpc_recorder_fini(&recorder);
	}
	return status == VD_OK;
}

static void without_memory_nothing_is_lost(void **state)
{
	bool failed = true;
	bool through;

	(void) state;
	for (uint64_t n = 1; failed; n++) {
		int64_t before = vdi_alloc_live();

		vdi_alloc_fail_nth(n, 1);
		through = try_all(&failed);
		assert_true(through || failed);
		(void) before;
	}
}

/* A transport without memory for a frame gives up the stream, or the connection. */
static bool is_for_lack_of_memory(int code)
{
	return code == VDI_RPC_RESOURCE_EXHAUSTED ||
	       (!rpc_is_grpc() && (code == VDI_RPC_UNAVAILABLE || code == VDI_RPC_INTERNAL));
}

/* Whatever fails on either side of a running call, each call ends exactly once and the next one works. */
static void calls_survive_failing_allocations(void **state)
{
	struct vdi_rpc_client *client = rpc_connect_to(rpc_echo_address(&echo));
	struct rpc_tally       tally = { 0 };
	uint64_t	       lost = 0;

	(void) state;
	rpc_wait_until_ready(client, 0, true);
	for (uint64_t n = 1; n <= 40; n++) {
		struct rpc_recorder    recorder;
		struct vdi_rpc_request count = { .method = "/test.Echo/Count",
						 .message = vd_bytes_of("20 100"),
						 .half_close = true,
						 .endpoint = -1 };
		bool		       opened;

		rpc_recorder_init(&recorder, env, client, true);
		recorder.keeps_stream = true;
		vdi_alloc_fail_nth(n, 1);
		if (client->ops->call(client, &echo_request, rpc_tally_end, &tally, NULL) == VD_OK)
			atomic_fetch_add(&tally.begun, 1);
		opened = rpc_recorder_open(&recorder, &count) == VD_OK;
		if (opened) {
			rpc_recorder_wait_ended(&recorder);
			client->ops->stream_free(recorder.stream);
			assert_true(recorder.end.code == VDI_RPC_OK ||
				    is_for_lack_of_memory(recorder.end.code));
			assert_true(recorder.end.code != VDI_RPC_OK || recorder.messages == 20);
		}
		rpc_wait_for(env, &tally.ended, tally.begun);
		vdi_alloc_fail_nth(0, 0);
		rpc_recorder_fini(&recorder);
	}
	for (int code = 1; code < 17; code++)
		lost += is_for_lack_of_memory(code) ? tally.codes[code] : 0;
	assert_int_equal(tally.ok + lost, tally.begun);
	for (int i = 0; i < 50; i++)
		rpc_expect_echo(client);
	rpc_close(env, client);
}

static void a_server_without_memory_undoes_itself(void **state)
{
	bool failed = true;

	(void) state;
	for (uint64_t n = 1; failed; n++) {
		vd_status status;

		vdi_alloc_fail_nth(n, 1);
		status = rpc_echo_start(&rpc_tally_other, env, NULL, NULL, NULL);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		if (status == VD_OK)
			rpc_echo_stop(&rpc_tally_other, env);
		else
			assert_status(status, VD_NOMEM);
	}
}

/* ---- Sockets ---- */

#define SERVED_TEST(name) cmocka_unit_test_setup_teardown(name, rpc_tally_start, rpc_tally_stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVED_TEST(calls_are_canceled_at_any_moment),
		SERVED_TEST(streams_are_canceled_at_any_moment),
		SERVED_TEST(a_client_is_closed_at_any_moment),
		SERVED_TEST(a_closing_client_takes_no_calls),
		RPC_TEST(a_server_is_closed_at_any_moment),
		SERVED_TEST(thousands_of_calls_at_once),
		SERVED_TEST(more_streams_than_one_queue_takes),
		RPC_TEST(without_memory_nothing_is_lost),
		SERVED_TEST(calls_survive_failing_allocations),
		RPC_TEST(a_server_without_memory_undoes_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
