/* The client against our own server, and against what is none. */
#include <sys/socket.h>
#include <unistd.h>

#include "rpc_fixture.h"
#include "thread.h"
#include "wait.h"
#include "rpc_under_test.h"

static struct rpc_echo other;

static int start_server(void **state)
{
	rpc_fixture_start(state);
	assert_status(rpc_echo_start(&echo, env, NULL, NULL, NULL), VD_OK);
	return 0;
}

static int stop_server(void **state)
{
	rpc_echo_stop(&echo, env);
	return rpc_fixture_stop(state);
}

/* A call that nobody waits for; counts. */
struct tally {
	_Atomic uint64_t begun;
	_Atomic uint64_t ended;
	_Atomic uint64_t ok;
	_Atomic uint64_t codes[17];
	_Atomic uint64_t unsent;
};

static void count_end(void *arg, const struct vdi_rpc_end *end, struct vdi_rpc_message *message)
{
	struct tally *tally = arg;

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

static void begin_call(struct vdi_rpc_client *client, const struct vdi_rpc_request *request,
		       struct tally *tally)
{
	atomic_fetch_add(&tally->begun, 1);
	assert_status(client->ops->call(client, request, count_end, tally, NULL), VD_OK);
}

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
struct stranger {
	int		  fd;
	char		  address[RPC_ADDRESS_SIZE];
	struct vdi_thread thread;
};

static void stranger_start(struct stranger *stranger, void *(*run)(void *fd))
{
	stranger->fd = rpc_listen(stranger->address);
	assert_status(vdi_thread_start(&stranger->thread, "stranger", run, &stranger->fd), VD_OK);
}

static void stranger_stop(struct stranger *stranger)
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
	struct stranger	       stranger;
	struct vdi_rpc_client *client;
	struct rpc_answer      answer;
	char		       expected[128];

	(void) state;
	stranger_start(&stranger, answer_http1);
	client = rpc_connect_to(stranger.address);
	rpc_wait_for_cause(client, 0);
	answer = rpc_ask_simply(env, client, "/test.Echo/Echo", VD_BYTES_NONE, VD_MS(50));
	snprintf(expected, sizeof expected, "no endpoint is connected: %s (not an HTTP/2 server)",
		 stranger.address);
	assert_string_equal(answer.text, expected);
	assert_true(answer.end.unsent);
	rpc_close(env, client);
	stranger_stop(&stranger);
}

static void what_waits_is_sent_when_the_server_comes(void **state)
{
	char		       address[RPC_ADDRESS_SIZE];
	int		       fd = rpc_listen(address);
	struct vdi_rpc_client *client;
	struct tally	       tally = { 0 };
	struct rpc_recorder    recorder;

	(void) state;
	close(fd);
	client = rpc_connect_to(address);
	rpc_recorder_start(&recorder, client, true, &chat_request);
	assert_status(client->ops->stream_send(recorder.stream, vd_bytes_of("early")), VD_OK);
	for (int i = 0; i < 100; i++)
		begin_call(client, &echo_request, &tally);
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

static void start_second(void)
{
	assert_status(rpc_echo_start(&other, env, NULL, NULL, NULL), VD_OK);
}

static struct vdi_rpc_client *connect_to_both(void)
{
	start_second();
	return rpc_connect(env, (const char *const[]) { rpc_echo_address(&echo), rpc_echo_address(&other) },
			   2, NULL);
}

static void e205_calls_go_round_and_leave_a_dead_endpoint_out(void **state)
{
	char		       address[64];
	struct vdi_rpc_client *client;
	struct tally	       tally = { 0 };

	(void) state;
	client = connect_to_both();
	snprintf(address, sizeof address, "%s", rpc_echo_address(&other));
	rpc_wait_until_ready(client, 0, true);
	rpc_wait_until_ready(client, 1, true);
	for (int i = 0; i < 100; i++)
		begin_call(client, &echo_request, &tally);
	rpc_wait_for(env, &tally.ok, 100);
	assert_int_equal(echo.accepted, 50);
	assert_int_equal(other.accepted, 50);
	rpc_echo_stop(&other, env);
	for (int i = 0; i < 100; i++) {
		struct rpc_answer answer = rpc_ask(env, client, &echo_request);

		/* Whatever had begun on the dying connection may fail; nothing else. */
		assert_true(answer.end.code == VDI_RPC_OK || strcmp(answer.endpoint, address) == 0);
		rpc_answer_release(&answer);
	}
	rpc_wait_until_ready(client, 1, false);
	for (int i = 0; i < 20; i++)
		rpc_expect_echo(client);
	assert_status(rpc_echo_start(&other, env, address, NULL, NULL), VD_OK);
	rpc_wait_until_ready(client, 1, true);
	for (int i = 0; i < 10; i++) {
		struct rpc_answer answer = rpc_ask(env, client, &echo_request);

		rpc_answer_release(&answer);
	}
	assert_int_equal(other.accepted, 5);
	rpc_close(env, client);
	rpc_echo_stop(&other, env);
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
	lost = strcmp(recorders[0].endpoint, rpc_echo_address(&other)) == 0 ? 0 : 1;
	assert_string_equal(recorders[lost].endpoint, rpc_echo_address(&other));
	assert_string_equal(recorders[!lost].endpoint, rpc_echo_address(&echo));
	for (unsigned i = 1; i <= 3; i++) {
		rpc_expect_echo(client); /* calls go round meanwhile */
		assert_status(client->ops->stream_send(recorders[lost].stream, vd_bytes_of("here")), VD_OK);
		rpc_recorder_wait_messages(&recorders[lost], i);
	}
	rpc_echo_stop(&other, env);
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

		assert_string_equal(answer.endpoint, rpc_echo_address(&other));
		rpc_answer_release(&answer);
	}
	assert_int_equal(other.accepted, 10);
	assert_int_equal(echo.accepted, 0);
	request.endpoint = 2;
	assert_status(client->ops->call(client, &request, count_end, NULL, NULL), VD_INVALID_ARGUMENT);
	request.endpoint = -2;
	assert_status(client->ops->call(client, &request, count_end, NULL, NULL), VD_INVALID_ARGUMENT);
	rpc_close(env, client);
	rpc_echo_stop(&other, env);
}

static void e205_streams_on_removed_endpoints_end(void **state)
{
	const char	      *first = rpc_echo_address(&echo);
	const char	      *second;
	const char	      *bad = "nonsense";
	struct vdi_rpc_client *client = rpc_connect_to(first);
	struct rpc_recorder    recorder;
	struct vdi_rpc_request bound = hang_request;
	struct tally	       tally = { 0 };
	struct rpc_answer      answer;
	struct vd_error	       error = { 0 };

	(void) state;
	start_second();
	second = rpc_echo_address(&other);
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
	begin_call(client, &bound, &tally);
	assert_status(client->ops->set_endpoints(client, &second, 1, NULL), VD_OK);
	rpc_wait_for(env, &tally.ended, 1);
	assert_int_equal(tally.codes[VDI_RPC_UNAVAILABLE], 1);
	assert_int_equal(tally.unsent, 1);
	rpc_recorder_fini(&recorder);
	rpc_close(env, client);
	rpc_echo_stop(&other, env);
}

/* Calls for one endpoint only: one that waits for it ends when it is removed, one that it has taken does not,
 * and neither does one that waits for another. */
static void e205_calls_on_removed_endpoints(void **state)
{
	struct rpc_recorder    recorder;
	struct vdi_rpc_client *client;
	struct vdi_rpc_request request = hang_request;
	struct tally	       waiting = { 0 }, taken = { 0 }, kept = { 0 };
	const char	      *first = rpc_echo_address(&echo);

	(void) state;
	start_second();
	client = rpc_connect(
		env, (const char *const[]) { first, rpc_echo_address(&other), "127.0.0.1:1", "127.0.0.1:2" },
		4, NULL);
	request.endpoint = 1;
	begin_call(client, &request, &taken);
	request.endpoint = 2;
	begin_call(client, &request, &waiting);
	request.endpoint = 3;
	begin_call(client, &request, &kept);
	rpc_wait_for(env, &other.received, 1);
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
	rpc_echo_stop(&other, env);
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
	vdi_rpc_server_drain(other.server);
	rpc_wait_until_ready(client, 1, false);
	accepted = other.accepted;
	for (int i = 0; i < 20; i++)
		rpc_expect_echo(client);
	assert_int_equal(other.accepted, accepted);
	assert_status(client->ops->stream_send(recorder.stream, vd_bytes_of("after")), VD_OK);
	rpc_recorder_wait_messages(&recorder, 2);
	client->ops->stream_half_close(recorder.stream);
	rpc_recorder_finish(&recorder, VDI_RPC_OK);
	rpc_close(env, client);
	rpc_echo_stop(&other, env);
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
	assert_status(rpc_echo_start(&other, env, NULL, &options, NULL), VD_OK);
	client = rpc_connect_to(rpc_echo_address(&other));
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
	rpc_echo_stop(&other, env);
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
	assert_status(client->ops->call(client, &request, count_end, NULL, NULL), VD_INVALID_ARGUMENT);
	pairs[0] = (struct vdi_rpc_metadata) { "key", { "new\nline", 8 } };
	assert_status(client->ops->call(client, &request, count_end, NULL, NULL), VD_INVALID_ARGUMENT);
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
	/* Until nothing moves any more: what lies in sockets and windows, and the call's own queue. */
	do {
		sent = atomic_load(&echo.sent);
		for (int i = 0; i < 100; i++)
			rpc_give_way(env);
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
	struct tally	       tally = { 0 };

	(void) state;
	start_second();
	client = rpc_connect_to(rpc_echo_address(&other));
	rpc_recorder_start(&recorder, client, true, &chat_request);
	assert_status(client->ops->stream_send(recorder.stream, vd_bytes_of("one")), VD_OK);
	rpc_recorder_wait_messages(&recorder, 1);
	begin_call(client, &hang_request, &tally);
	rpc_wait_for(env, &other.received, 2);
	rpc_echo_stop(&other, env);
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
	struct stranger	       stranger;
	struct vdi_rpc_client *client;
	struct rpc_answer      answer;

	(void) state;
	stranger_start(&stranger, cut_connection);
	client = rpc_connect_to(stranger.address);
	answer = rpc_ask_simply(env, client, "/test.Echo/Echo", VD_BYTES_NONE, VD_SECONDS(10));
	assert_int_equal(answer.end.code, VDI_RPC_UNAVAILABLE);
	assert_false(answer.end.unsent || answer.end.local);
	assert_string_equal(answer.endpoint, stranger.address);
	rpc_close(env, client);
	stranger_stop(&stranger);
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
	struct stranger	       stranger;
	struct vdi_rpc_request request = { .method = "/test.Echo/Echo", .endpoint = VDI_RPC_ANY_ENDPOINT };
	char		      *bytes = vdi_calloc(1, 8 << 20);

	(void) state;
#if defined(__SANITIZE_ADDRESS__)
	if (rpc_is_grpc()) {
		vdi_free(bytes);
		skip_because("gRPC core leaks here");
	}
#endif
	stranger_start(&stranger, freeze);
	for (int i = 0; i < 4; i++) {
		struct vdi_rpc_client *client = rpc_connect_to(stranger.address);
		struct rpc_recorder    recorder;
		struct tally	       tally = { 0 };
		struct rpc_answer      answer;

		rpc_wait_until_ready(client, 0, true);
		request.message = (struct vd_bytes) { bytes, 8 << 20 };
		request.timeout = (vd_dur) { 0 };
		begin_call(client, &request, &tally);
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
	stranger_stop(&stranger);
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

/* ---- Cancel and close at every moment ---- */

static void give_way_sometimes(unsigned i)
{
	for (unsigned k = 0; k < i % 7 * 200; k++)
		__asm__ volatile("" ::: "memory");
	if (i % 11 == 0)
		rpc_give_way(env);
}

/* As a user has it: a call is canceled only while its pointer is known to be good. */
struct cancelled_call {
	struct vdi_lock	     lock;
	struct vdi_rpc_call *call; /* under lock; NULL: done */
	struct tally	    *tally;
};

static void cancelled_done(void *arg, const struct vdi_rpc_end *end, struct vdi_rpc_message *message)
{
	struct cancelled_call *mine = arg;

	vdi_lock_acquire(&mine->lock);
	assert_non_null(mine->call);
	mine->call = NULL;
	vdi_lock_release(&mine->lock);
	assert_true(end->code == VDI_RPC_OK || (end->code == VDI_RPC_CANCELED && end->local));
	count_end(mine->tally, end, message);
}

static void cancel_calls(struct vdi_rpc_client *client, const struct vdi_rpc_request *request, unsigned count,
			 struct tally *tally)
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
	struct tally	       hanging = { 0 };
	struct tally	       quick = { 0 };
	struct tally	       waiting = { 0 };

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
		struct tally	    tally = { 0 };

		give_way_sometimes(i);
		for (unsigned k = 0; k < CLOSE_STREAMS; k++) {
			rpc_recorder_start(&recorders[k], client, false, &chat_request);
			assert_status(client->ops->stream_send(recorders[k].stream, vd_bytes_of("hello")),
				      VD_OK);
			begin_call(client, k % 2 ? &hang_request : &echo_request, &tally);
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
	late->status = late->client->ops->call(late->client, &echo_request, count_end, NULL, NULL);
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
		struct tally	       tally = { 0 };

		start_second();
		client = rpc_connect_to(rpc_echo_address(&other));
		rpc_recorder_init(&chat, env, client, true);
		rpc_recorder_init(&counted, env, client, i % 3 != 0);
		assert_status(rpc_recorder_open(&chat, &chat_request), VD_OK);
		assert_status(rpc_recorder_open(&counted, &count), VD_OK);
		for (unsigned k = 0; k < 10; k++)
			begin_call(client, k % 2 ? &hang_request : &echo_request, &tally);
		if (i % 2)
			rpc_recorder_wait_opened(&chat);
		if (i % 4 == 3)
			rpc_wait_for(env, &other.sent, 100);
		give_way_sometimes(i * 3);
		rpc_echo_stop(&other, env);
		assert_int_equal(other.accepted, other.ended);
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
	struct tally	       tally = { 0 };

	(void) state;
	for (int i = 0; i < 5000; i++)
		begin_call(client, &echo_request, &tally);
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
						  .message = vd_bytes_of("a message that is longer than 23 bytes"),
						  .metadata = &pair,
						  .metadata_count = 1,
						  .endpoint = VDI_RPC_ANY_ENDPOINT };
	struct rpc_recorder	      recorder;
	struct tally		      tally = { 0 };
	vd_status		      status;
	uint64_t		      begun = 0;
	bool			      opened = false;

	status = rpc_under_test()->client_new(env, &options, &client, NULL);
	if (status == VD_OK) {
		rpc_recorder_init(&recorder, env, client, true);
		status = client->ops->call(client, &request, count_end, &tally, NULL);
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
	struct tally	       tally = { 0 };
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
		if (client->ops->call(client, &echo_request, count_end, &tally, NULL) == VD_OK)
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
		status = rpc_echo_start(&other, env, NULL, NULL, NULL);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		if (status == VD_OK)
			rpc_echo_stop(&other, env);
		else
			assert_status(status, VD_NOMEM);
	}
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
	assert_status(rpc_echo_start(&other, env, listen, NULL, NULL), VD_OK);
	rpc_expect_echo(client);
	rpc_close(env, client);
	assert_int_equal(access(listen + 5, F_OK), 0);
	rpc_echo_stop(&other, env);
	assert_int_not_equal(access(listen + 5, F_OK), 0); /* who made it removes it */
}

#define SERVED_TEST(name) cmocka_unit_test_setup_teardown(name, start_server, stop_server)

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
		RPC_TEST(e204_a_socket_in_the_file_system),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
