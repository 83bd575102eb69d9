/* The client against our own servers, and against what is none: endpoints, sizes, metadata, deadlines,
 * streams. */
#include <sys/socket.h>
#include <unistd.h>

#include "rpc_fixture.h"
#include "rpc_tally.h"
#include "rpc_under_test.h"
#include "sanitizer.h"
#include "thread.h"

/* ---- No connection ---- */

static void e201_a_call_waits_for_a_connection_until_its_timeout(void **state)
{
	const char	      *endpoints[] = { "127.0.0.1:1", "nowhere.invalid:2379" };
	struct vdi_rpc_client *client = rpc_connect(env, endpoints, 2, NULL);
	struct rpc_answer      answer;
	struct vdi_rpc_request second = echo_request;

	(void) state;
	rpc_wait_for_cause(client, 0);
	rpc_wait_for_cause(client, 1);
	answer = rpc_ask_simply(env, client, "/test.Echo/Echo", VD_BYTES_NONE, VD_MS(50));
	assert_int_equal(answer.end.code, VDI_RPC_DEADLINE_EXCEEDED);
	assert_true(answer.end.unsent && answer.end.local);
	assert_string_equal(answer.endpoint, "");
	assert_string_equal(answer.text, "no endpoint is connected: 127.0.0.1:1 (connection refused), "
					 "nowhere.invalid:2379 (unknown host)");
	second.endpoint = 1;
	second.timeout = VD_MS(50);
	answer = rpc_ask(env, client, &second);
	assert_string_equal(answer.text, "no endpoint is connected: nowhere.invalid:2379 (unknown host)");
	rpc_close(env, client);
}

/* A server that is none of ours: its thread has the listening socket. */
struct rpc_stranger {
	int		  fd;
	char		  address[RPC_ADDRESS_SIZE];
	struct vdi_thread thread;
};

static void rpc_stranger_start(struct rpc_stranger *stranger, void *(*run)(void *fd))
{
	stranger->fd = rpc_listen(stranger->address);
	assert_status(vdi_thread_start(&stranger->thread, "stranger", run, &stranger->fd), VD_OK);
}

static void rpc_stranger_stop(struct rpc_stranger *stranger)
{
	(void) shutdown(stranger->fd, SHUT_RDWR);
	vdi_thread_join(&stranger->thread);
	close(stranger->fd);
}

static void *answer_http1(void *arg)
{
	static const char answer[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
	int		  fd = *(int *) arg;
	int		  connection;

	while ((connection = accept(fd, NULL, NULL)) >= 0) {
		char	bytes[256];
		ssize_t ignored = read(connection, bytes, sizeof bytes);

		ignored = write(connection, answer, sizeof answer - 1);
		(void) ignored;
		close(connection);
	}
	return NULL;
}

static void a_server_that_is_no_http2_server_is_named_so(void **state)
{
	struct rpc_stranger    stranger;
	struct vdi_rpc_client *client;
	struct rpc_answer      answer;
	char		       expected[128];

	(void) state;
	rpc_stranger_start(&stranger, answer_http1);
	client = rpc_connect_to(stranger.address);
	rpc_wait_for_cause(client, 0);
	answer = rpc_ask_simply(env, client, "/test.Echo/Echo", VD_BYTES_NONE, VD_MS(50));
	snprintf(expected, sizeof expected, "no endpoint is connected: %s (not an HTTP/2 server)",
		 stranger.address);
	assert_string_equal(answer.text, expected);
	assert_true(answer.end.unsent);
	rpc_close(env, client);
	rpc_stranger_stop(&stranger);
}

static void what_waits_is_sent_when_the_server_comes(void **state)
{
	char		       address[RPC_ADDRESS_SIZE];
	int		       fd = rpc_listen(address);
	struct vdi_rpc_client *client;
	struct rpc_tally       tally = { 0 };
	struct rpc_recorder    recorder;

	(void) state;
	close(fd);
	client = rpc_connect_to(address);
	rpc_recorder_start(&recorder, client, true, &chat_request);
	assert_status(client->ops->stream_send(recorder.stream, vd_bytes_of("early")), VD_OK);
	for (int i = 0; i < 100; i++)
		rpc_tally_call(client, &echo_request, &tally);
	rpc_wait_until_ready(client, 0, false);
	assert_status(rpc_echo_start(&echo, env, address, NULL, NULL), VD_OK);
	rpc_wait_for(env, &tally.ok, 100);
	rpc_recorder_wait_messages(&recorder, 1);
	assert_string_equal(recorder.last, "re: early");
	client->ops->stream_cancel(recorder.stream);
	rpc_recorder_wait_ended(&recorder);
	assert_int_equal(recorder.end.code, VDI_RPC_CANCELED);
	assert_true(recorder.end.local);
	rpc_recorder_fini(&recorder);
	rpc_close(env, client);
	rpc_echo_stop(&echo, env);
}

/* ---- Several endpoints ---- */

static struct vdi_rpc_client *connect_to_both(void)
{
	rpc_tally_start_other();
	return rpc_connect(
		env, (const char *const[]) { rpc_echo_address(&echo), rpc_echo_address(&rpc_tally_other) }, 2,
		NULL);
}

static void e205_calls_go_round_and_leave_a_dead_endpoint_out(void **state)
{
	char		       address[64];
	struct vdi_rpc_client *client;
	struct rpc_tally       tally = { 0 };

	(void) state;
	client = connect_to_both();
	snprintf(address, sizeof address, "%s", rpc_echo_address(&rpc_tally_other));
	rpc_wait_until_ready(client, 0, true);
	rpc_wait_until_ready(client, 1, true);
	for (int i = 0; i < 100; i++)
		rpc_tally_call(client, &echo_request, &tally);
	rpc_wait_for(env, &tally.ok, 100);
	assert_int_equal(echo.accepted, 50);
	assert_int_equal(rpc_tally_other.accepted, 50);
	rpc_echo_stop(&rpc_tally_other, env);
	for (int i = 0; i < 100; i++) {
		struct rpc_answer answer = rpc_ask(env, client, &echo_request);

		/* Whatever had begun on the dying connection may fail; nothing else. */
		assert_true(answer.end.code == VDI_RPC_OK || strcmp(answer.endpoint, address) == 0);
		rpc_answer_release(&answer);
	}
	rpc_wait_until_ready(client, 1, false);
	for (int i = 0; i < 20; i++)
		rpc_expect_echo(client);
	assert_status(rpc_echo_start(&rpc_tally_other, env, address, NULL, NULL), VD_OK);
	rpc_wait_until_ready(client, 1, true);
	for (int i = 0; i < 10; i++) {
		struct rpc_answer answer = rpc_ask(env, client, &echo_request);

		rpc_answer_release(&answer);
	}
	assert_int_equal(rpc_tally_other.accepted, 5);
	rpc_close(env, client);
	rpc_echo_stop(&rpc_tally_other, env);
}

/* A stream stays on its connection; when that is lost, the next stream opens on another one that is ready. */
static void e205_the_next_stream_opens_on_another_ready_connection(void **state)
{
	struct vdi_rpc_client *client;
	struct rpc_recorder    recorders[2];
	size_t		       lost;

	(void) state;
	client = connect_to_both();
	rpc_wait_until_ready(client, 0, true);
	rpc_wait_until_ready(client, 1, true);
	for (size_t i = 0; i < 2; i++) {
		rpc_recorder_start(&recorders[i], client, true, &chat_request);
		rpc_recorder_wait_opened(&recorders[i]);
	}
	lost = strcmp(recorders[0].endpoint, rpc_echo_address(&rpc_tally_other)) == 0 ? 0 : 1;
	assert_string_equal(recorders[lost].endpoint, rpc_echo_address(&rpc_tally_other));
	assert_string_equal(recorders[!lost].endpoint, rpc_echo_address(&echo));
	for (unsigned i = 1; i <= 3; i++) {
		rpc_expect_echo(client); /* calls go round meanwhile */
		assert_status(client->ops->stream_send(recorders[lost].stream, vd_bytes_of("here")), VD_OK);
		rpc_recorder_wait_messages(&recorders[lost], i);
	}
	rpc_echo_stop(&rpc_tally_other, env);
	rpc_recorder_wait_ended(&recorders[lost]);
	assert_int_equal(recorders[lost].end.code, VDI_RPC_UNAVAILABLE);
	rpc_recorder_fini(&recorders[lost]);
	rpc_wait_until_ready(client, 1, false);
	for (unsigned i = 0; i < 2; i++) {
		rpc_recorder_start(&recorders[lost], client, true, &chat_request);
		rpc_recorder_wait_opened(&recorders[lost]);
		assert_string_equal(recorders[lost].endpoint, rpc_echo_address(&echo));
		client->ops->stream_cancel(recorders[lost].stream);
		rpc_recorder_finish(&recorders[lost], VDI_RPC_CANCELED);
	}
	client->ops->stream_cancel(recorders[!lost].stream);
	rpc_recorder_finish(&recorders[!lost], VDI_RPC_CANCELED);
	rpc_close(env, client);
}

static void a_call_may_go_to_one_endpoint_only(void **state)
{
	struct vdi_rpc_client *client;
	struct vdi_rpc_request request = echo_request;

	(void) state;
	client = connect_to_both();
	request.endpoint = 1;
	for (int i = 0; i < 10; i++) {
		struct rpc_answer answer = rpc_ask(env, client, &request);

		assert_string_equal(answer.endpoint, rpc_echo_address(&rpc_tally_other));
		rpc_answer_release(&answer);
	}
	assert_int_equal(rpc_tally_other.accepted, 10);
	assert_int_equal(echo.accepted, 0);
	request.endpoint = 2;
	assert_status(client->ops->call(client, &request, rpc_tally_end, NULL, NULL), VD_INVALID_ARGUMENT);
	request.endpoint = -2;
	assert_status(client->ops->call(client, &request, rpc_tally_end, NULL, NULL), VD_INVALID_ARGUMENT);
	rpc_close(env, client);
	rpc_echo_stop(&rpc_tally_other, env);
}

static void e205_streams_on_removed_endpoints_end(void **state)
{
	const char	      *first = rpc_echo_address(&echo);
	const char	      *second;
	const char	      *bad = "nonsense";
	struct vdi_rpc_client *client = rpc_connect_to(first);
	struct rpc_recorder    recorder;
	struct vdi_rpc_request bound = hang_request;
	struct rpc_tally       tally = { 0 };
	struct rpc_answer      answer;
	struct vd_error	       error = { 0 };

	(void) state;
	rpc_tally_start_other();
	second = rpc_echo_address(&rpc_tally_other);
	rpc_recorder_start(&recorder, client, true, &chat_request);
	rpc_recorder_wait_opened(&recorder);
	assert_string_equal(recorder.endpoint, first);
	assert_status(client->ops->set_endpoints(client, &bad, 1, &error), VD_INVALID_ARGUMENT);
	assert_string_equal(error.message, "endpoint \"nonsense\": has no port");
	assert_status(client->ops->set_endpoints(client, NULL, 0, &error), VD_INVALID_ARGUMENT);
	assert_int_equal(client->ops->endpoint_count(client), 1);
	/* The same again changes nothing. */
	assert_status(client->ops->set_endpoints(client, &first, 1, NULL), VD_OK);
	assert_status(client->ops->stream_send(recorder.stream, vd_bytes_of("still there")), VD_OK);
	rpc_recorder_wait_messages(&recorder, 1);
	assert_status(client->ops->set_endpoints(client, &second, 1, NULL), VD_OK);
	rpc_recorder_wait_ended(&recorder);
	assert_int_equal(recorder.end.code, VDI_RPC_UNAVAILABLE);
	assert_string_equal(recorder.text, "the endpoint was removed");
	answer = rpc_ask(env, client, &echo_request);
	assert_string_equal(answer.endpoint, second);
	rpc_answer_release(&answer);
	/* A call on its way is let finish; one that waits for a removed endpoint ends. */
	assert_status(client->ops->set_endpoints(client, (const char *const[]) { "127.0.0.1:1" }, 1, NULL),
		      VD_OK);
	bound.endpoint = 0;
	rpc_tally_call(client, &bound, &tally);
	assert_status(client->ops->set_endpoints(client, &second, 1, NULL), VD_OK);
	rpc_wait_for(env, &tally.ended, 1);
	assert_int_equal(tally.codes[VDI_RPC_UNAVAILABLE], 1);
	assert_int_equal(tally.unsent, 1);
	rpc_recorder_fini(&recorder);
	rpc_close(env, client);
	rpc_echo_stop(&rpc_tally_other, env);
}

/* Calls for one endpoint only: one that waits for it ends when it is removed, one that it has taken does not,
 * and neither does one that waits for another. */
static void e205_calls_on_removed_endpoints(void **state)
{
	struct rpc_recorder    recorder;
	struct vdi_rpc_client *client;
	struct vdi_rpc_request request = hang_request;
	struct rpc_tally       waiting = { 0 }, taken = { 0 }, kept = { 0 };
	const char	      *first = rpc_echo_address(&echo);

	(void) state;
	rpc_tally_start_other();
	client = rpc_connect(env,
			     (const char *const[]) { first, rpc_echo_address(&rpc_tally_other), "127.0.0.1:1",
						     "127.0.0.1:2" },
			     4, NULL);
	request.endpoint = 1;
	rpc_tally_call(client, &request, &taken);
	request.endpoint = 2;
	rpc_tally_call(client, &request, &waiting);
	request.endpoint = 3;
	rpc_tally_call(client, &request, &kept);
	rpc_wait_for(env, &rpc_tally_other.received, 1);
	/* The client has dealt with them when one that came later is answered. */
	request = chat_request;
	request.endpoint = 0;
	rpc_recorder_start(&recorder, client, true, &request);
	rpc_recorder_wait_opened(&recorder);
	assert_status(
		client->ops->set_endpoints(client, (const char *const[]) { first, "127.0.0.1:2" }, 2, NULL),
		VD_OK);
	rpc_wait_for(env, &waiting.ended, 1);
	assert_int_equal(waiting.codes[VDI_RPC_UNAVAILABLE], 1);
	assert_int_equal(waiting.unsent, 1);
	assert_status(client->ops->stream_send(recorder.stream, vd_bytes_of("still there")), VD_OK);
	rpc_recorder_wait_messages(&recorder, 1);
	assert_int_equal(taken.ended, 0);
	assert_int_equal(kept.ended, 0);
	rpc_echo_stop(&rpc_tally_other, env);
	rpc_wait_for(env, &taken.ended, 1);
	assert_int_equal(taken.unsent, 0);
	client->ops->stream_half_close(recorder.stream);
	rpc_recorder_finish(&recorder, VDI_RPC_OK);
	rpc_close(env, client);
}

static void a_draining_server_keeps_its_streams_and_gets_no_calls(void **state)
{
	struct vdi_rpc_client *client;
	struct rpc_recorder    recorder;
	struct vdi_rpc_request request = chat_request;
	uint64_t	       accepted;

	(void) state;
	client = connect_to_both();
	rpc_wait_until_ready(client, 0, true);
	rpc_wait_until_ready(client, 1, true);
	request.endpoint = 1;
	rpc_recorder_start(&recorder, client, true, &request);
	assert_status(client->ops->stream_send(recorder.stream, vd_bytes_of("before")), VD_OK);
	rpc_recorder_wait_messages(&recorder, 1);
	vdi_rpc_server_drain(rpc_tally_other.server);
	rpc_wait_until_ready(client, 1, false);
	accepted = rpc_tally_other.accepted;
	for (int i = 0; i < 20; i++)
		rpc_expect_echo(client);
	assert_int_equal(rpc_tally_other.accepted, accepted);
	assert_status(client->ops->stream_send(recorder.stream, vd_bytes_of("after")), VD_OK);
	rpc_recorder_wait_messages(&recorder, 2);
	client->ops->stream_half_close(recorder.stream);
	rpc_recorder_finish(&recorder, VDI_RPC_OK);
	rpc_close(env, client);
	rpc_echo_stop(&rpc_tally_other, env);
}

/* ---- Sizes, metadata, timeouts ---- */

static void e201_messages_over_the_limits(void **state)
{
	const char		     *address = rpc_echo_address(&echo);
	struct vdi_rpc_client_options options = {
		.endpoints = &address, .endpoint_count = 1, .send_size_max = 1000, .receive_size_max = 5000
	};
	struct vdi_rpc_client *client;
	char		       bytes[1001] = { 0 };
	struct rpc_answer      answer;
	struct rpc_recorder    recorder;
	struct vdi_rpc_request request = {
		.method = "/test.Echo/Count", .message = { bytes, 1001 }, .half_close = true, .endpoint = -1
	};

	(void) state;
	assert_status(rpc_under_test()->client_new(env, &options, &client, NULL), VD_OK);
	answer = rpc_ask_simply(env, client, "/test.Echo/Echo", (struct vd_bytes) { bytes, 1001 },
				VD_SECONDS(10));
	assert_int_equal(answer.end.code, VDI_RPC_RESOURCE_EXHAUSTED);
	assert_string_equal(answer.text, "trying to send message larger than max (1001 vs. 1000)");
	assert_true(answer.end.unsent && answer.end.local);
	answer = rpc_ask_simply(env, client, "/test.Echo/Echo", (struct vd_bytes) { bytes, 1000 },
				VD_SECONDS(10));
	assert_int_equal(answer.end.code, VDI_RPC_OK);
	rpc_answer_release(&answer);
	answer = rpc_ask_simply(env, client, "/test.Echo/Size", vd_bytes_of("5001"), VD_SECONDS(10));
	assert_int_equal(answer.end.code, VDI_RPC_RESOURCE_EXHAUSTED);
	assert_string_equal(answer.text, "grpc: received message larger than max (5001 vs. 5000)");
	assert_false(answer.end.unsent);
	answer = rpc_ask_simply(env, client, "/test.Echo/Size", vd_bytes_of("5000"), VD_SECONDS(10));
	assert_int_equal(answer.end.code, VDI_RPC_OK);
	rpc_answer_release(&answer);

	rpc_recorder_start(&recorder, client, false, &request);
	rpc_recorder_wait_ended(&recorder);
	assert_int_equal(recorder.end.code, VDI_RPC_RESOURCE_EXHAUSTED);
	assert_false(recorder.is_opened);
	rpc_recorder_fini(&recorder);
	rpc_recorder_start(&recorder, client, true, &chat_request);
	rpc_recorder_wait_opened(&recorder);
	assert_status(client->ops->stream_send(recorder.stream, (struct vd_bytes) { bytes, 1001 }), VD_OK);
	rpc_recorder_wait_ended(&recorder);
	assert_int_equal(recorder.end.code, VDI_RPC_RESOURCE_EXHAUSTED);
	assert_string_equal(recorder.text, "trying to send message larger than max (1001 vs. 1000)");
	rpc_recorder_fini(&recorder);
	rpc_close(env, client);
}

static void e150_the_servers_limit(void **state)
{
	struct vdi_rpc_server_options options = { .receive_size_max = 10000 };
	struct vdi_rpc_client	     *client;
	char			     *bytes = vdi_calloc(1, 40000);
	struct rpc_answer	      answer;

	(void) state;
	assert_status(rpc_echo_start(&rpc_tally_other, env, NULL, &options, NULL), VD_OK);
	client = rpc_connect_to(rpc_echo_address(&rpc_tally_other));
	answer = rpc_ask_simply(env, client, "/test.Echo/Echo", (struct vd_bytes) { bytes, 10000 },
				VD_SECONDS(10));
	assert_int_equal(answer.end.code, VDI_RPC_OK);
	rpc_answer_release(&answer);
	answer = rpc_ask_simply(env, client, "/test.Echo/Echo", (struct vd_bytes) { bytes, 10001 },
				VD_SECONDS(10));
	assert_int_equal(answer.end.code, VDI_RPC_RESOURCE_EXHAUSTED);
	assert_string_equal(answer.text, "grpc: received message larger than max (10001 vs. 10000)");
	answer = rpc_ask_simply(env, client, "/test.Echo/Echo", (struct vd_bytes) { bytes, 40000 },
				VD_SECONDS(10));
	assert_int_equal(answer.end.code, VDI_RPC_RESOURCE_EXHAUSTED);
	rpc_close(env, client);
	rpc_echo_stop(&rpc_tally_other, env);
	vdi_free(bytes);
}

static void metadata_arrives_and_bad_metadata_is_refused(void **state)
{
	struct vdi_rpc_client  *client = rpc_connect_to(rpc_echo_address(&echo));
	struct vdi_rpc_metadata pairs[] = { { "hasleader", { "true", 4 } },
					    { "x-test", { "some value", 10 } } };
	struct vdi_rpc_request	request = { .method = "/test.Echo/Meta",
					    .metadata = pairs,
					    .metadata_count = 2,
					    .endpoint = VDI_RPC_ANY_ENDPOINT };
	struct rpc_answer	answer = rpc_ask(env, client, &request);

	(void) state;
	assert_true(vd_bytes_equal(answer.message.bytes, vd_bytes_of("some value")));
	rpc_answer_release(&answer);
	request.metadata_count = 1;
	answer = rpc_ask(env, client, &request);
	assert_true(vd_bytes_equal(answer.message.bytes, vd_bytes_of("none")));
	rpc_answer_release(&answer);
	pairs[0].key = "Upper";
	assert_status(client->ops->call(client, &request, rpc_tally_end, NULL, NULL), VD_INVALID_ARGUMENT);
	pairs[0] = (struct vdi_rpc_metadata) { "key", { "new\nline", 8 } };
	assert_status(client->ops->call(client, &request, rpc_tally_end, NULL, NULL), VD_INVALID_ARGUMENT);
	rpc_close(env, client);
}

static void timeouts_end_what_runs(void **state)
{
	struct vdi_rpc_client *client = rpc_connect_to(rpc_echo_address(&echo));
	struct vdi_rpc_request request = hang_request;
	struct rpc_recorder    recorder;
	struct rpc_answer      answer;

	(void) state;
	rpc_wait_until_ready(client, 0, true);
	/* On a busy machine it may end before the server has seen it; then once more, with more time. */
	for (int ms = 50; echo.accepted == 0; ms *= 2) {
		request.timeout = VD_MS(ms);
		answer = rpc_ask(env, client, &request);
		assert_int_equal(answer.end.code, VDI_RPC_DEADLINE_EXCEEDED);
		assert_string_equal(answer.text, "context deadline exceeded");
		assert_true(answer.end.local);
		assert_false(answer.end.unsent);
	}
	rpc_wait_for(env, &echo.cancelled, 1);
	request = chat_request;
	request.timeout = VD_MS(50);
	rpc_recorder_start(&recorder, client, false, &request);
	rpc_recorder_finish(&recorder, VDI_RPC_DEADLINE_EXCEEDED);
	/* The peer's own deadline is not ours. */
	answer = rpc_ask_simply(env, client, "/test.Echo/Fail", vd_bytes_of("4 etcdserver: too slow"),
				VD_SECONDS(20));
	assert_int_equal(answer.end.code, VDI_RPC_DEADLINE_EXCEEDED);
	assert_string_equal(answer.text, "etcdserver: too slow");
	assert_false(answer.end.local);
	rpc_close(env, client);
}

/* ---- Streams ---- */

static void a_receiver_that_does_not_ask_stops_the_sender(void **state)
{
	struct vdi_rpc_client *client = rpc_connect_to(rpc_echo_address(&echo));
	struct vdi_rpc_request request = { .method = "/test.Echo/Count",
					   .message = vd_bytes_of("50000 1000"),
					   .half_close = true,
					   .endpoint = -1 };
	struct rpc_recorder    recorder;
	uint64_t	       sent;

	(void) state;
	rpc_recorder_start(&recorder, client, false, &request);
	rpc_wait_for(env, &echo.fulls, 1);
	/* Until nothing moves any more: what is in sockets and windows, and in the call's own queue. The
	 * answer to another call has passed all of them. */
	do {
		sent = atomic_load(&echo.sent);
		for (int i = 0; i < 10; i++)
			rpc_expect_echo(client);
	} while (atomic_load(&echo.sent) != sent);
	assert_true(sent < 30000);
	client->ops->stream_receive(recorder.stream);
	rpc_recorder_wait_messages(&recorder, 1);
	recorder.asks_again = true;
	client->ops->stream_receive(recorder.stream);
	rpc_recorder_wait_ended(&recorder);
	assert_int_equal(recorder.end.code, VDI_RPC_OK);
	assert_int_equal(recorder.messages, 50000);
	rpc_recorder_fini(&recorder);
	rpc_close(env, client);
}

static void a_peer_that_dies_ends_the_stream(void **state)
{
	struct vdi_rpc_client *client;
	struct rpc_recorder    recorder;
	struct rpc_tally       tally = { 0 };

	(void) state;
	rpc_tally_start_other();
	client = rpc_connect_to(rpc_echo_address(&rpc_tally_other));
	rpc_recorder_start(&recorder, client, true, &chat_request);
	assert_status(client->ops->stream_send(recorder.stream, vd_bytes_of("one")), VD_OK);
	rpc_recorder_wait_messages(&recorder, 1);
	rpc_tally_call(client, &hang_request, &tally);
	rpc_wait_for(env, &rpc_tally_other.received, 2);
	rpc_echo_stop(&rpc_tally_other, env);
	rpc_recorder_wait_ended(&recorder);
	assert_int_equal(recorder.end.code, VDI_RPC_UNAVAILABLE);
	assert_false(recorder.end.local || recorder.end.unsent);
	rpc_wait_for(env, &tally.ended, 1);
	assert_int_equal(tally.codes[VDI_RPC_UNAVAILABLE], 1);
	assert_int_equal(tally.unsent, 0);
	rpc_recorder_fini(&recorder);
	rpc_close(env, client);
}

/* Whether among these bytes of a client is a HEADERS frame, behind the preface of 24 bytes. */
static bool has_headers(const unsigned char *bytes, size_t size)
{
	for (size_t at = 24; at + 9 <= size;
	     at += 9 + ((size_t) bytes[at] << 16 | (size_t) bytes[at + 1] << 8 | bytes[at + 2])) {
		if (bytes[at + 3] == 1)
			return true;
	}
	return false;
}

static void *cut_connection(void *arg)
{
	int	      fd = *(int *) arg;
	int	      connection = accept(fd, NULL, NULL);
	unsigned char bytes[4096];
	size_t	      used = 0;
	/* An empty SETTINGS frame makes the connection ready; then the first of the client's frames that is
	 * none of its settings or windows is the end. */
	static const char settings[] = { 0, 0, 0, 4, 0, 0, 0, 0, 0 };
	ssize_t		  size = write(connection, settings, sizeof settings);

	while (!has_headers(bytes, used) && (size = read(connection, bytes + used, sizeof bytes - used)) > 0)
		used += (size_t) size;
	close(connection);
	return NULL;
}

static void a_connection_cut_after_the_request_is_not_called_unsent(void **state)
{
	struct rpc_stranger    stranger;
	struct vdi_rpc_client *client;
	struct rpc_answer      answer;

	(void) state;
	rpc_stranger_start(&stranger, cut_connection);
	client = rpc_connect_to(stranger.address);
	answer = rpc_ask_simply(env, client, "/test.Echo/Echo", VD_BYTES_NONE, VD_SECONDS(10));
	assert_int_equal(answer.end.code, VDI_RPC_UNAVAILABLE);
	assert_false(answer.end.unsent || answer.end.local);
	assert_string_equal(answer.endpoint, stranger.address);
	rpc_close(env, client);
	rpc_stranger_stop(&stranger);
}

/* Takes connections, says that it is an HTTP/2 server, and reads nothing: a process that was stopped. */
static void *freeze(void *arg)
{
	static const char settings[] = { 0, 0, 0, 4, 0, 0, 0, 0, 0 };
	int		  fd = *(int *) arg;
	int		  taken[16];
	unsigned	  count = 0;

	while (count < VDI_ARRAY_SIZE(taken) && (taken[count] = accept(fd, NULL, NULL)) >= 0) {
		ssize_t ignored = write(taken[count++], settings, sizeof settings);

		(void) ignored;
	}
	while (count)
		close(taken[--count]);
	return NULL;
}

/* Seldom, core 1.51 never frees the transport of a connection whose peer stands still, although core was
 * stopped and waited for: nothing of ours is in what the leak sanitizer shows. So not under the address
 * sanitizer. */
static void a_server_that_stands_still_holds_nothing_up(void **state)
{
	struct rpc_stranger    stranger;
	struct vdi_rpc_request request = { .method = "/test.Echo/Echo", .endpoint = VDI_RPC_ANY_ENDPOINT };
	char		      *bytes = vdi_calloc(1, 8 << 20);

	(void) state;
#if VDI_ADDRESS_SANITIZED
	if (rpc_is_grpc()) {
		vdi_free(bytes);
		skip_because("gRPC core leaks here");
	}
#endif
	rpc_stranger_start(&stranger, freeze);
	for (int i = 0; i < 4; i++) {
		struct vdi_rpc_client *client = rpc_connect_to(stranger.address);
		struct rpc_recorder    recorder;
		struct rpc_tally       tally = { 0 };
		struct rpc_answer      answer;

		rpc_wait_until_ready(client, 0, true);
		request.message = (struct vd_bytes) { bytes, 8 << 20 };
		request.timeout = (vd_dur) { 0 };
		rpc_tally_call(client, &request, &tally);
		rpc_recorder_start(&recorder, client, true, &chat_request);
		rpc_recorder_wait_opened(&recorder); /* and the call before it has begun */
		for (int k = 0; k < 100; k++)
			assert_status(
				client->ops->stream_send(recorder.stream, (struct vd_bytes) { bytes, 10000 }),
				VD_OK);
		if (i % 2) {
			request.timeout = VD_MS(100);
			answer = rpc_ask(env, client, &request);
			assert_int_equal(answer.end.code, VDI_RPC_DEADLINE_EXCEEDED);
			assert_false(answer.end.unsent);
		}
		rpc_close(env, client);
		assert_int_equal(tally.codes[VDI_RPC_CANCELED], 1);
		assert_int_equal(tally.unsent, 0);
		assert_int_equal(recorder.end.code, VDI_RPC_CANCELED);
		rpc_recorder_fini(&recorder);
	}
	rpc_stranger_stop(&stranger);
	vdi_free(bytes);
}

static void what_is_done_after_the_end_is_ignored(void **state)
{
	struct vdi_rpc_client *client = rpc_connect_to(rpc_echo_address(&echo));
	struct rpc_recorder    recorder;
	struct vdi_rpc_request request = chat_request;

	(void) state;
	request.endpoint = 0;
	rpc_recorder_init(&recorder, env, client, true);
	recorder.keeps_stream = true;
	assert_status(rpc_recorder_open(&recorder, &request), VD_OK);
	client->ops->stream_half_close(recorder.stream);
	assert_status(client->ops->stream_send(recorder.stream, vd_bytes_of("after half-close")), VD_OK);
	rpc_recorder_wait_ended(&recorder);
	assert_int_equal(recorder.end.code, VDI_RPC_OK);
	assert_int_equal(recorder.messages, 0);
	assert_status(client->ops->stream_send(recorder.stream, vd_bytes_of("late")), VD_OK);
	client->ops->stream_receive(recorder.stream);
	client->ops->stream_half_close(recorder.stream);
	client->ops->stream_cancel(recorder.stream);
	client->ops->stream_cancel(recorder.stream);
	client->ops->stream_free(recorder.stream);
	rpc_recorder_fini(&recorder);
	rpc_close(env, client);
}

/* ---- Sockets ---- */

static void e204_a_socket_in_the_file_system(void **state)
{
	char		       listen[128];
	struct vdi_rpc_client *client;
	struct rpc_answer      answer;

	(void) state;
	snprintf(listen, sizeof listen, "unix:/tmp/vedette-test-%d.sock", (int) getpid());
	client = rpc_connect_to(listen);
	rpc_wait_for_cause(client, 0);
	answer = rpc_ask_simply(env, client, "/test.Echo/Echo", vd_bytes_of("x"), VD_MS(50));
	assert_int_equal(answer.end.code, VDI_RPC_DEADLINE_EXCEEDED);
	assert_non_null(strstr(answer.text, "(no such file or directory)"));
	assert_status(rpc_echo_start(&rpc_tally_other, env, listen, NULL, NULL), VD_OK);
	rpc_expect_echo(client);
	rpc_close(env, client);
	assert_int_equal(access(listen + 5, F_OK), 0);
	rpc_echo_stop(&rpc_tally_other, env);
	assert_int_not_equal(access(listen + 5, F_OK), 0); /* who made it removes it */
}

#define SERVED_TEST(name) cmocka_unit_test_setup_teardown(name, rpc_tally_start, rpc_tally_stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPC_TEST(e201_a_call_waits_for_a_connection_until_its_timeout),
		RPC_TEST(a_server_that_is_no_http2_server_is_named_so),
		RPC_TEST(what_waits_is_sent_when_the_server_comes),
		SERVED_TEST(e205_calls_go_round_and_leave_a_dead_endpoint_out),
		SERVED_TEST(e205_the_next_stream_opens_on_another_ready_connection),
		SERVED_TEST(a_call_may_go_to_one_endpoint_only),
		SERVED_TEST(e205_streams_on_removed_endpoints_end),
		SERVED_TEST(e205_calls_on_removed_endpoints),
		SERVED_TEST(a_draining_server_keeps_its_streams_and_gets_no_calls),
		SERVED_TEST(e201_messages_over_the_limits),
		RPC_TEST(e150_the_servers_limit),
		SERVED_TEST(metadata_arrives_and_bad_metadata_is_refused),
		SERVED_TEST(timeouts_end_what_runs),
		SERVED_TEST(a_receiver_that_does_not_ask_stops_the_sender),
		RPC_TEST(a_peer_that_dies_ends_the_stream),
		RPC_TEST(a_connection_cut_after_the_request_is_not_called_unsent),
		RPC_TEST(a_server_that_stands_still_holds_nothing_up),
		SERVED_TEST(what_is_done_after_the_end_is_ignored),
		RPC_TEST(e204_a_socket_in_the_file_system),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
