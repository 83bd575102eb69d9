/* The server against our own client, over loopback, and against bytes. */
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "await.h"
#include "rpc_fixture.h"
#include "rpc_under_test.h"
#include "wait.h"

static struct vdi_rpc_client *client;

static int start_both(void **state)
{
	rpc_fixture_start(state);
	assert_status(rpc_echo_start(&echo, env, NULL, NULL, NULL), VD_OK);
	client = rpc_connect_to(rpc_echo_address(&echo));
	return 0;
}

static int stop_both(void **state)
{
	rpc_close(env, client);
	rpc_echo_stop(&echo, env);
	assert_int_equal(echo.accepted, echo.ended);
	return rpc_fixture_stop(state);
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
	answer = rpc_ask_simply(env, client, "/test.Echo/Fail",
				vd_bytes_of("11 etcdserver: mvcc: required revision has been compacted"),
				VD_SECONDS(10));
	assert_int_equal(answer.end.code, VDI_RPC_OUT_OF_RANGE);
	assert_string_equal(answer.text, "etcdserver: mvcc: required revision has been compacted");
	assert_false(answer.end.unsent || answer.end.local);
	answer = rpc_ask_simply(env, client, "/other/Method", VD_BYTES_NONE, VD_SECONDS(10));
	assert_int_equal(answer.end.code, VDI_RPC_UNIMPLEMENTED);
	answer = rpc_ask_simply(env, client, "/test.Echo/Peer", VD_BYTES_NONE, VD_SECONDS(10));
	assert_memory_equal(answer.message.bytes.data, "127.0.0.1:", 10);
	rpc_answer_release(&answer);
}

/* Much more than the window of a stream. */
static void large_requests_arrive_whole(void **state)
{
	static char	  bytes[3000001];
	struct rpc_answer answer;

	(void) state;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (char) (i * 7 + i / 256);
	answer = rpc_ask_simply(env, client, "/test.Echo/Echo", (struct vd_bytes) { bytes, sizeof bytes },
				VD_SECONDS(300));
	assert_int_equal(answer.end.code, VDI_RPC_OK);
	assert_int_equal(answer.message.bytes.size, sizeof bytes);
	assert_memory_equal(answer.message.bytes.data, bytes, sizeof bytes);
	rpc_answer_release(&answer);
}

static void streams_go_both_ways(void **state)
{
	struct rpc_recorder recorder;

	(void) state;
	rpc_recorder_start(&recorder, client, true, &chat_request);
	for (int i = 0; i < 1000; i++)
		assert_status(client->ops->stream_send(recorder.stream, vd_bytes_of("one")), VD_OK);
	assert_status(client->ops->stream_send(recorder.stream, vd_bytes_of("last")), VD_OK);
	rpc_recorder_wait_messages(&recorder, 1001);
	assert_string_equal(recorder.last, "re: last");
	client->ops->stream_half_close(recorder.stream);
	rpc_recorder_finish(&recorder, VDI_RPC_OK);
}

static void many_messages_of_one_request(void **state)
{
	struct vdi_rpc_request request = { .method = "/test.Echo/Count",
					   .message = vd_bytes_of("20000 1000"),
					   .half_close = true,
					   .endpoint = VDI_RPC_ANY_ENDPOINT };
	struct rpc_recorder    recorder;

	(void) state;
	rpc_recorder_start(&recorder, client, true, &request);
	rpc_recorder_wait_ended(&recorder);
	assert_int_equal(recorder.end.code, VDI_RPC_OK);
	assert_int_equal(recorder.messages, 20000);
	assert_int_equal(recorder.bytes, 20000000);
	rpc_recorder_fini(&recorder);
}

#define HEAVY 8

/* Streams that always have more to send, read as fast as the client can, do not keep a small stream of the
 * same connection waiting: each gets its turn. */
static void e1021_a_small_stream_is_served_beside_endless_ones(void **state)
{
	struct vdi_rpc_request endless = { .method = "/test.Echo/Count",
					   .message = vd_bytes_of("100000000 10000"),
					   .half_close = true,
					   .endpoint = VDI_RPC_ANY_ENDPOINT };
	struct rpc_recorder    heavy[HEAVY], chat;

	(void) state;
	for (size_t i = 0; i < HEAVY; i++) {
		rpc_recorder_start(&heavy[i], client, true, &endless);
		rpc_recorder_wait_messages(&heavy[i], 100);
	}
	rpc_recorder_start(&chat, client, true, &chat_request);
	for (unsigned i = 1; i <= 20; i++) {
		assert_status(client->ops->stream_send(chat.stream, vd_bytes_of("event")), VD_OK);
		rpc_recorder_wait_messages(&chat, i);
	}
	for (size_t i = 0; i < HEAVY; i++) {
		client->ops->stream_cancel(heavy[i].stream);
		rpc_recorder_finish(&heavy[i], VDI_RPC_CANCELED);
	}
	client->ops->stream_half_close(chat.stream);
	rpc_recorder_finish(&chat, VDI_RPC_OK);
}

static void an_address_in_use_is_an_error_that_names_it(void **state)
{
	struct rpc_echo other;
	struct vd_error error = { 0 };
	char		expected[128];

	(void) state;
	assert_status(rpc_echo_start(&other, env, rpc_echo_address(&echo), NULL, &error), VD_IO);
	snprintf(expected, sizeof expected, "address \"%s\": Address already in use",
		 rpc_echo_address(&echo));
	assert_string_equal(error.message, expected);
	assert_status(rpc_echo_start(&other, env, "nonsense", NULL, &error), VD_INVALID_ARGUMENT);
}

static void the_bound_of_streams_of_a_connection(void **state)
{
	struct vdi_rpc_server_options options = { .streams_max = 2 };
	struct rpc_recorder	      recorders[3];
	struct rpc_echo		      bounded;
	struct vdi_rpc_client	     *guest;

	(void) state;
	assert_status(rpc_echo_start(&bounded, env, NULL, &options, NULL), VD_OK);
	guest = rpc_connect_to(rpc_echo_address(&bounded));
	for (int i = 0; i < 3; i++) {
		rpc_recorder_start(&recorders[i], guest, true, &chat_request);
		assert_status(guest->ops->stream_send(recorders[i].stream, vd_bytes_of("hello")), VD_OK);
		if (i < 2)
			rpc_recorder_wait_messages(&recorders[i], 1);
	}
	/* The answer comes after everything that the server does with the third stream's start. */
	assert_status(guest->ops->stream_send(recorders[0].stream, vd_bytes_of("hello")), VD_OK);
	rpc_recorder_wait_messages(&recorders[0], 2);
	assert_int_equal(bounded.accepted, 2);
	guest->ops->stream_half_close(recorders[0].stream);
	rpc_recorder_wait_messages(&recorders[2], 1);
	for (int i = 0; i < 3; i++) {
		if (i)
			guest->ops->stream_cancel(recorders[i].stream);
		rpc_recorder_wait_ended(&recorders[i]);
		rpc_recorder_fini(&recorders[i]);
	}
	rpc_close(env, guest);
	rpc_echo_stop(&bounded, env);
}

static void a_client_that_goes_ends_its_calls(void **state)
{
	struct vdi_rpc_client *guest = rpc_connect_to(rpc_echo_address(&echo));
	struct rpc_recorder    recorder;

	(void) state;
	rpc_recorder_start(&recorder, guest, true, &chat_request);
	assert_status(guest->ops->stream_send(recorder.stream, vd_bytes_of("hello")), VD_OK);
	rpc_recorder_wait_messages(&recorder, 1);
	assert_int_equal(echo.ended, 0);
	rpc_close(env, guest);
	rpc_wait_for(env, &echo.ended, 1);
	assert_int_equal(echo.cancelled, 1);
	rpc_recorder_fini(&recorder);
}

/* ---- The bound of unsent bytes ---- */

struct bounded {
	struct vdi_rpc_server *server;
	size_t		       size;   /* of each message */
	unsigned	       passed; /* inside accepted, where nothing can leave meanwhile */
	unsigned	       sent;
	_Atomic uint64_t       writables;
};

static void send_until_full(struct bounded *bounded, struct vdi_rpc_server_call *call, unsigned total)
{
	while (bounded->sent < total) {
		struct vdi_rpc_blob *blob;
		char		    *bytes;
		vd_status	     status;

		assert_status(vdi_rpc_blob_new(bounded->size, &blob, &bytes), VD_OK);
		memset(bytes, 'b', bounded->size);
		status = vdi_rpc_server_send(call, VD_BYTES_NONE, blob);
		vdi_rpc_blob_unref(blob);
		if (status == VD_FULL)
			return;
		assert_status(status, VD_OK);
		bounded->sent++;
	}
	vdi_rpc_server_finish(call, VDI_RPC_OK, NULL);
	/* Too late for anything. */
	assert_status(vdi_rpc_server_send(call, vd_bytes_of("more"), NULL), VD_CLOSED);
	assert_status(vdi_rpc_server_answer(call, vd_bytes_of("more"), NULL), VD_CLOSED);
	vdi_rpc_server_finish(call, VDI_RPC_INTERNAL, "more");
}

static void accept_bounded(void *arg, struct vdi_rpc_server_call *call, const char *method)
{
	struct bounded *bounded = arg;

	(void) method;
	vdi_rpc_server_call_set_arg(call, bounded);
	send_until_full(bounded, call, 100);
	bounded->passed = bounded->sent;
}

static void ignore_message(void *arg, struct vdi_rpc_server_call *call, struct vdi_rpc_message *message)
{
	(void) arg;
	(void) call;
	vdi_rpc_message_release(message);
}

static void write_on(void *arg, struct vdi_rpc_server_call *call)
{
	struct bounded *bounded = arg;

	atomic_fetch_add(&bounded->writables, 1);
	send_until_full(bounded, call, 100);
}

static void end_bounded(void *arg, struct vdi_rpc_server_call *call, bool cancelled)
{
	(void) arg;
	assert_false(cancelled);
	vdi_rpc_server_call_free(call);
}

static void check_bound(size_t size, unsigned passes)
{
	static const struct vdi_rpc_server_handlers handlers = { accept_bounded, ignore_message, write_on,
								 end_bounded };
	static const char *const		    streams[] = { "/test.Echo/Chat" };
	const char				   *address = "127.0.0.1:0";
	struct bounded				    bounded = { .size = size };
	struct vdi_rpc_server_options		    options = { .listen = &address,
								.listen_count = 1,
								.send_bytes_max = 1000,
								.handlers = &handlers,
								.arg = &bounded,
								.stream_methods = streams,
								.stream_method_count = 1 };
	struct rpc_recorder			    recorder;
	struct vdi_rpc_client			   *guest;
	struct vdi_wait				    wait;

	assert_status(rpc_under_test()->server_new(env, &options, &bounded.server, NULL), VD_OK);
	guest = rpc_connect_to(vdi_rpc_server_address(bounded.server, 0));
	rpc_recorder_start(&recorder, guest, true, &chat_request);
	rpc_recorder_wait_ended(&recorder);
	assert_int_equal(recorder.end.code, VDI_RPC_OK);
	assert_int_equal(recorder.messages, 100);
	assert_int_equal(recorder.bytes, 100 * size);
	rpc_recorder_fini(&recorder);
	rpc_close(env, guest);
	vdi_wait_init(&wait, env);
	vdi_rpc_server_close(bounded.server, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	assert_int_equal(bounded.passed, passes);
	assert_true(bounded.writables > 0 && bounded.writables < 100);
}

static void unsent_bytes_are_bounded_exactly(void **state)
{
	(void) state;
	check_bound(250, 4);
	check_bound(251, 3);
	check_bound(1000, 1);
	/* A single one may be larger. */
	check_bound(5000, 1);
}

/* ---- A service on another thread ---- */

struct remote {
	struct vdi_rpc_server		     *server;
	_Atomic(struct vdi_rpc_server_call *) call;
	_Atomic uint64_t		      messages, ended;
};

static void accept_remote(void *arg, struct vdi_rpc_server_call *call, const char *method)
{
	struct remote *remote = arg;

	(void) method;
	vdi_rpc_server_call_set_arg(call, remote);
	atomic_store(&remote->call, call);
}

static void count_message(void *arg, struct vdi_rpc_server_call *call, struct vdi_rpc_message *message)
{
	struct remote *remote = arg;

	(void) call;
	vdi_rpc_message_release(message);
	atomic_fetch_add(&remote->messages, 1);
}

static void no_room(void *arg, struct vdi_rpc_server_call *call)
{
	(void) arg;
	(void) call;
}

static void end_remote(void *arg, struct vdi_rpc_server_call *call, bool cancelled)
{
	struct remote *remote = arg;

	assert_false(cancelled);
	vdi_rpc_server_call_free(call);
	atomic_fetch_add(&remote->ended, 1);
}

/* Requests, messages and the status from a thread that is not the transport's: nothing waits until something
 * else happens on the connection. */
static void another_thread_serves(void **state)
{
	static const struct vdi_rpc_server_handlers handlers = { accept_remote, count_message, no_room,
								 end_remote };
	static const char *const		    streams[] = { "/test.Echo/Chat" };
	const char				   *address = "127.0.0.1:0";
	struct remote				    remote = { .call = NULL };
	struct vdi_rpc_server_options		    options = { .listen = &address,
								.listen_count = 1,
								.handlers = &handlers,
								.arg = &remote,
								.stream_methods = streams,
								.stream_method_count = 1 };
	struct vdi_rpc_client			   *guest;
	struct vdi_wait				    wait;

	(void) state;
	assert_status(rpc_under_test()->server_new(env, &options, &remote.server, NULL), VD_OK);
	guest = rpc_connect_to(vdi_rpc_server_address(remote.server, 0));
	for (unsigned round = 0; round < 3; round++) {
		struct rpc_recorder	    recorder;
		struct vdi_rpc_server_call *call;

		rpc_recorder_start(&recorder, guest, true, &chat_request);
		AWAIT((call = atomic_exchange(&remote.call, NULL)) != NULL);
		for (unsigned i = 1; i <= 2; i++) {
			assert_status(guest->ops->stream_send(recorder.stream, vd_bytes_of("hello")), VD_OK);
			vdi_rpc_server_receive(call);
			AWAIT(atomic_load(&remote.messages) == 2 * round + i);
			assert_status(vdi_rpc_server_send(call, vd_bytes_of("re"), NULL), VD_OK);
			rpc_recorder_wait_messages(&recorder, i);
			assert_string_equal(recorder.last, "re");
		}
		vdi_rpc_server_finish(call, VDI_RPC_OK, NULL);
		rpc_recorder_finish(&recorder, VDI_RPC_OK);
		AWAIT(atomic_load(&remote.ended) == round + 1);
	}
	rpc_close(env, guest);
	vdi_wait_init(&wait, env);
	vdi_rpc_server_close(remote.server, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
}

/* ---- Bytes ---- */

static int connect_raw(const char *address)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int		   fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	at.sin_port = htons((uint16_t) atoi(strrchr(address, ':') + 1));
	assert_int_equal(connect(fd, (struct sockaddr *) &at, sizeof at), 0);
	return fd;
}

static void write_all(int fd, const void *bytes, size_t size)
{
	assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t) size);
}

struct pinger {
	int	 fd;
	char	 got[8192];
	size_t	 size;
	unsigned answered;
	bool	 refused;
};

/* Until count answers came, or a refusal, or the end. */
static void hear_pings(struct pinger *pinger, unsigned count)
{
	while (!pinger->refused && pinger->answered < count) {
		struct pollfd  wait = { .fd = pinger->fd, .events = POLLIN };
		const uint8_t *at;
		ssize_t	       more;

		assert_int_equal(poll(&wait, 1, 300000), 1);
		more = read(pinger->fd, pinger->got + pinger->size, sizeof pinger->got - pinger->size);
		if (more <= 0) { /* its last words are lost when it closes before it has read all of ours */
			pinger->refused = true;
			return;
		}
		pinger->size += (size_t) more;
		pinger->refused = memmem(pinger->got, pinger->size, "too_many_pings", 14) != NULL;
		pinger->answered = 0;
		for (at = (const uint8_t *) pinger->got;
		     at + 9 <= (const uint8_t *) pinger->got + pinger->size;
		     at += 9 + (at[0] << 16 | at[1] << 8 | at[2]))
			pinger->answered += at[3] == 6 && (at[4] & 1);
	}
}

/* Returns true if a connection that pings so often is refused. Each ping but the first waits for the answer
 * to the one before, and then for interval; with 0 all are sent at once. */
static bool ping(const char *address, unsigned count, vd_dur interval)
{
	static const char    preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	static const uint8_t settings[] = { 0, 0, 0, 4, 0, 0, 0, 0, 0 };
	static const uint8_t acknowledge[] = { 0, 0, 0, 4, 1, 0, 0, 0, 0 };
	static const uint8_t frame[17] = {
		0, 0, 8, 6, 0, 0, 0, 0, 0, 'p', 'i', 'n', 'g', 'p', 'i', 'n', 'g'
	};
	struct pinger pinger = { .fd = connect_raw(address) };
	vd_mono	      permitted;

	write_all(pinger.fd, preface, sizeof preface - 1);
	write_all(pinger.fd, settings, sizeof settings);
	write_all(pinger.fd, acknowledge, sizeof acknowledge);
	for (unsigned i = 0; i < count && !pinger.refused; i++) {
		if (send(pinger.fd, frame, sizeof frame, MSG_NOSIGNAL) < 0)
			break;
		if (interval.ns) {
			hear_pings(&pinger, i + 1);
			permitted = vd_mono_add(vd_env_now(env), interval);
			AWAIT(vd_env_now(env).ns > permitted.ns);
		}
	}
	hear_pings(&pinger, count);
	close(pinger.fd);
	return pinger.refused;
}

static void e151_pings_are_taken_at_the_permitted_pace(void **state)
{
	struct vdi_rpc_server_options options = { .ping_interval_min = VD_SECONDS(5) };
	struct rpc_echo		      strict;

	(void) state;
	assert_status(rpc_echo_start(&strict, env, NULL, &options, NULL), VD_OK);
	assert_true(ping(rpc_echo_address(&strict), 10, (vd_dur) { 0 }));
	rpc_echo_stop(&strict, env);
	options.ping_interval_min = VD_MS(1);
	assert_status(rpc_echo_start(&strict, env, NULL, &options, NULL), VD_OK);
	assert_false(ping(rpc_echo_address(&strict), 10, VD_MS(2)));
	rpc_echo_stop(&strict, env);
}

/* A client that answers no ping is given up when the timeout is over, and not after the 20 s that core takes
 * by itself. */
static void a_client_that_answers_no_ping_is_given_up(void **state)
{
	static const char	      preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	static const uint8_t	      settings[] = { 0, 0, 0, 4, 0, 0, 0, 0, 0 };
	struct vdi_rpc_server_options options = { .keepalive_time = VD_MS(200),
						  .keepalive_timeout = VD_MS(200) };
	struct rpc_echo		      impatient;
	char			      got[512];
	ssize_t			      size;
	vd_mono			      began;
	int			      fd;

	(void) state;
	assert_status(rpc_echo_start(&impatient, env, NULL, &options, NULL), VD_OK);
	began = vd_env_now(env);
	fd = connect_raw(rpc_echo_address(&impatient));
	write_all(fd, preface, sizeof preface - 1);
	write_all(fd, settings, sizeof settings);
	do {
		struct pollfd wait = { .fd = fd, .events = POLLIN };

		assert_int_equal(poll(&wait, 1, 300000), 1);
		size = read(fd, got, sizeof got);
	} while (size > 0);
	assert_true(vd_mono_since(vd_env_now(env), began).ns < VD_SECONDS(19).ns);
	close(fd);
	rpc_echo_stop(&impatient, env);
}

/* Whatever comes in, the server goes on. */
static void bytes_that_are_no_http2_hurt_nobody(void **state)
{
	uint64_t random = 1;

	(void) state;
	for (int i = 0; i < 100; i++) {
		int	fd = connect_raw(rpc_echo_address(&echo));
		uint8_t bytes[512];

		for (size_t k = 0; k < sizeof bytes; k++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			bytes[k] = (uint8_t) (random >> 56);
		}
		if (i % 2)
			write_all(fd, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
		(void) !send(fd, bytes, (size_t) i * 5, MSG_NOSIGNAL);
		close(fd);
	}
	rpc_expect_echo(client);
}

/* Of a message that is far too large little is taken in. */
static void a_message_that_is_far_too_large(void **state)
{
	struct vdi_rpc_server_options options = { .receive_size_max = 1 << 20, .memory_max = 32 << 20 };
	struct rpc_echo		      bounded;
	struct vdi_rpc_client	     *guest;
	struct rpc_answer	      answer;
	size_t			      size = 128 << 20;
	char			     *bytes = vdi_calloc(1, size);

	(void) state;
	assert_status(rpc_echo_start(&bounded, env, NULL, &options, NULL), VD_OK);
	guest = rpc_connect_to(rpc_echo_address(&bounded));
	answer = rpc_ask_simply(env, guest, "/test.Echo/Echo", (struct vd_bytes) { bytes, size },
				VD_SECONDS(60));
	assert_int_not_equal(answer.end.code, VDI_RPC_OK);
	/* gRPC's core would take in all of it before it looks at its size; its decision on a whole message
	 * would tell that. */
	if (rpc_is_grpc())
		assert_null(strstr(answer.text, "larger than max"));
	assert_int_equal(bounded.received, 0);
	rpc_expect_echo(guest);
	rpc_close(env, guest);
	rpc_echo_stop(&bounded, env);
	vdi_free(bytes);
}

static void ipv6_addresses(void **state)
{
	struct rpc_echo	       local;
	struct vdi_rpc_client *guest;
	struct rpc_answer      answer;

	(void) state;
	if (rpc_echo_start(&local, env, "[::1]:0", NULL, NULL) != VD_OK)
		skip_because("no IPv6 here");
	assert_memory_equal(rpc_echo_address(&local), "[::1]:", 6);
	guest = rpc_connect_to(rpc_echo_address(&local));
	answer = rpc_ask_simply(env, guest, "/test.Echo/Peer", VD_BYTES_NONE, VD_SECONDS(10));
	assert_int_equal(answer.end.code, VDI_RPC_OK);
	assert_memory_equal(answer.message.bytes.data, "[::1]:", 6);
	rpc_answer_release(&answer);
	rpc_close(env, guest);
	rpc_echo_stop(&local, env);
}

#define SERVED_TEST(name) cmocka_unit_test_setup_teardown(name, start_both, stop_both)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVED_TEST(unary_calls_are_answered),
		SERVED_TEST(large_requests_arrive_whole),
		SERVED_TEST(streams_go_both_ways),
		SERVED_TEST(many_messages_of_one_request),
		SERVED_TEST(e1021_a_small_stream_is_served_beside_endless_ones),
		SERVED_TEST(an_address_in_use_is_an_error_that_names_it),
		RPC_TEST(the_bound_of_streams_of_a_connection),
		SERVED_TEST(a_client_that_goes_ends_its_calls),
		RPC_TEST(unsent_bytes_are_bounded_exactly),
		RPC_TEST(another_thread_serves),
		RPC_TEST(e151_pings_are_taken_at_the_permitted_pace),
		RPC_TEST(a_client_that_answers_no_ping_is_given_up),
		SERVED_TEST(bytes_that_are_no_http2_hurt_nobody),
		RPC_TEST(a_message_that_is_far_too_large),
		RPC_TEST(ipv6_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
