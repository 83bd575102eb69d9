/* One endpoint: what its name says, and what the client does with its socket and its server, frame by frame,
 * when time passes as the test says. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "await.h"
#include "h2_client_state.h"
#include "h2_peer.h"
#include "hand_clock.h"
#include "rpc_fixture.h"

/* ---- Names ---- */

static void a_name_is_host_port_and_authority(void **state)
{
	static const struct {
		const char *name, *server_name, *host, *port, *authority;
	} cases[] = {
		{ "127.0.0.1:2379", NULL, "127.0.0.1", "2379", "127.0.0.1:2379" },
		{ "https://etcd.example:2379", NULL, "etcd.example", "2379", "etcd.example:2379" },
		{ "http://[::1]:80", NULL, "::1", "80", "[::1]:80" },
		{ "etcd.example:1", "other.example", "etcd.example", "1", "other.example" },
		{ "unix:///run/etcd.sock", NULL, "/run/etcd.sock", NULL, "localhost" },
		{ "unix:a:1", "other.example", "a:1", NULL, "localhost" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct vdi_h2_client client = { .server_name = (char *) (uintptr_t) cases[i].server_name,
						.channels_alive = 1 };
		bool		     was_reached = true;

		vdi_lock_init(&client.lock, VDI_LOCK_RPC);
		for (uint64_t n = 1; was_reached; n++) {
			struct vdi_h2_channel *channel = NULL;
			int64_t		       before = vdi_alloc_live();
			vd_status	       status;

			vdi_alloc_fail_nth(n, 1);
			status = vdi_h2_channel_new(&client, cases[i].name, &channel, NULL);
			was_reached = vdi_alloc_failed();
			vdi_alloc_fail_nth(0, 0);
			assert_status(status, was_reached ? VD_NOMEM : VD_OK);
			assert_int_equal(channel == NULL, was_reached);
			if (channel) {
				assert_string_equal(channel->name, cases[i].name);
				assert_string_equal(channel->host, cases[i].host);
				assert_string_equal(channel->authority, cases[i].authority);
				assert_int_equal(channel->port == NULL, cases[i].port == NULL);
				if (channel->port)
					assert_string_equal(channel->port, cases[i].port);
				assert_int_equal(channel->references, 1);
				vdi_lock_acquire(&client.lock);
				vdi_h2_channel_unref_locked(channel);
				vdi_lock_release(&client.lock);
				assert_int_equal(client.channels_alive, 0);
				assert_true(n > 4);
			}
			assert_int_equal(vdi_alloc_live(), before);
		}
		vdi_lock_fini(&client.lock);
	}
}

/* ---- A server of the test's own ---- */

static struct vdi_clock_sim clock_sim;
static _Atomic int	    no_delay = -1; /* of the client's socket when it connects */

/* Takes the place of libc's. */
int connect(int fd, const struct sockaddr *address, socklen_t size)
{
	int	  on = 0;
	socklen_t on_size = sizeof on;

	if (address->sa_family == AF_INET) {
		assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &on_size), 0);
		no_delay = on;
	}
	return (int) syscall(SYS_connect, fd, address, size);
}

struct served {
	int		       listener;
	char		       address[RPC_ADDRESS_SIZE];
	struct vdi_rpc_client *client;
	struct peer	       peer;
};

static void accept_client(struct served *s)
{
	char preface[24];

	peer_attach(&s->peer, accept4(s->listener, NULL, NULL, SOCK_CLOEXEC));
	assert_int_equal(recv(s->peer.fd, preface, sizeof preface, MSG_WAITALL), sizeof preface);
	assert_true(peer_frame(&s->peer, NGHTTP2_SETTINGS, 0, 0, NULL, 0));
}

static struct served *serve(void)
{
	struct served *s = test_calloc(1, sizeof *s);

	env = hand_clock_env(&clock_sim);
	s->listener = rpc_listen(s->address);
	s->client = rpc_connect_to(s->address);
	accept_client(s);
	return s;
}

static void end_service(struct served *s)
{
	peer_close(&s->peer);
	close(s->listener);
	rpc_close(env, s->client);
	env = vd_env_free(env);
	test_free(s);
}

/* Reads until the client has sent the headers of that stream. */
static void await_headers(struct served *s, uint32_t stream)
{
	struct frame frame;

	do
		assert_true(peer_next(&s->peer, &frame));
	while (frame.type != NGHTTP2_HEADERS || frame.stream != stream);
}

/* The client has done what it had to do, and sleeps. */
static void take_turn(struct peer *peer)
{
	struct frame frame;

	assert_true(peer_frame(peer, NGHTTP2_PING, 0, 0, "12345678", 8));
	do
		assert_true(peer_next(peer, &frame));
	while (frame.type != NGHTTP2_PING || !(frame.flags & NGHTTP2_FLAG_ACK));
}

static void say_headers(struct peer *peer, uint32_t stream, uint8_t flags, const char *const *pairs)
{
	uint8_t block[512];
	size_t	size = 0;

	for (; *pairs; pairs += 2)
		size += peer_put_header(block + size, pairs[0], pairs[1]);
	assert_true(peer_frame(peer, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | flags, stream, block, size));
}

struct outcome {
	_Atomic bool is_over;
	int	     code;
	bool	     is_local;
	char	     text[100];
};

static void on_done(void *arg, const struct vdi_rpc_end *end, struct vdi_rpc_message *message)
{
	struct outcome *outcome = arg;

	vdi_rpc_message_release(message);
	outcome->code = end->code;
	outcome->is_local = end->local;
	snprintf(outcome->text, sizeof outcome->text, "%s", end->message);
	outcome->is_over = true;
}

/* What leaves is not held back by the system. */
static void the_socket_does_not_wait_for_more(void **state)
{
	struct served *s;

	(void) state;
	no_delay = -1;
	s = serve();
	assert_int_equal(no_delay, 1);
	end_service(s);
}

/* The server's clock may be ahead of ours: that its answer says so first is no reason to tell it otherwise
 * than by our own clock. */
static void the_server_may_see_the_deadline_first(void **state)
{
	static const struct {
		const char *status;
		bool	    is_late;
		int	    code;
		bool	    is_local;
		const char *text;
	} cases[] = {
		{ "4", true, VDI_RPC_DEADLINE_EXCEEDED, true, "context deadline exceeded" },
		{ "4", false, VDI_RPC_DEADLINE_EXCEEDED, false, "its words" },
		{ "5", true, VDI_RPC_NOT_FOUND, false, "its words" },
		{ "5", false, VDI_RPC_NOT_FOUND, false, "its words" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		const char *const      answer[] = { ":status",		"200",	       "content-type",
						    "application/grpc", "grpc-status", cases[i].status,
						    "grpc-message",	"its words",   NULL };
		struct served	      *s = serve();
		struct outcome	       outcome = { .code = -1 };
		struct vdi_rpc_request request = echo_request;

		request.timeout = VD_SECONDS(5);
		assert_status(s->client->ops->call(s->client, &request, on_done, &outcome, NULL), VD_OK);
		await_headers(s, 1);
		take_turn(&s->peer);
		/* Time alone wakes nobody here. */
		vdi_clock_sim_advance(&clock_sim, (vd_dur) { VD_SECONDS(5).ns - !cases[i].is_late });
		say_headers(&s->peer, 1, NGHTTP2_FLAG_END_STREAM, answer);
		AWAIT(outcome.is_over);
		assert_int_equal(outcome.code, cases[i].code);
		assert_int_equal(outcome.is_local, cases[i].is_local);
		assert_string_equal(outcome.text, cases[i].text);
		end_service(s);
	}
}

/* A server that leaves gets no more calls: the next one goes to a new connection, while the old one ends its
 * own, and not before. */
static void a_connection_that_is_left_ends_with_its_last_call(void **state)
{
	static const char *const answer[] = {
		":status", "200", "content-type", "application/grpc", "grpc-status", "5", NULL
	};
	static const uint8_t goaway[8] = { 0, 0, 0, 1 };
	struct served	    *s = serve();
	struct outcome	     first = { .code = -1 }, second = { .code = -1 };
	struct peer	     old;

	(void) state;
	assert_status(s->client->ops->call(s->client, &echo_request, on_done, &first, NULL), VD_OK);
	await_headers(s, 1);
	assert_true(peer_frame(&s->peer, NGHTTP2_GOAWAY, 0, 0, goaway, sizeof goaway));
	rpc_wait_until_ready(s->client, 0, false);
	vdi_clock_sim_advance(&clock_sim, VD_SECONDS(3));
	assert_status(s->client->ops->call(s->client, &echo_request, on_done, &second, NULL), VD_OK);
	old = s->peer;
	accept_client(s);
	await_headers(s, 1);
	assert_false(first.is_over);
	say_headers(&s->peer, 1, NGHTTP2_FLAG_END_STREAM, answer);
	AWAIT(second.is_over);
	assert_int_equal(second.code, VDI_RPC_NOT_FOUND);
	assert_false(first.is_over);
	take_turn(&old); /* it is still there */
	say_headers(&old, 1, NGHTTP2_FLAG_END_STREAM, answer);
	AWAIT(first.is_over);
	assert_int_equal(first.code, VDI_RPC_NOT_FOUND);
	assert_int_equal(peer_hear_end(&old, NULL, 0), -1); /* no GOAWAY in answer to ours */
	peer_close(&old);
	end_service(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_host_port_and_authority),
		cmocka_unit_test(the_socket_does_not_wait_for_more),
		cmocka_unit_test(the_server_may_see_the_deadline_first),
		cmocka_unit_test(a_connection_that_is_left_ends_with_its_last_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
