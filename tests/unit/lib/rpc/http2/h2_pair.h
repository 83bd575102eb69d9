/* One HTTP/2 connection on a loop of the test's own, over a pair of sockets, and the other end of it: for
 * tests of h2_connection.c. */
#ifndef H2_PAIR_H
#define H2_PAIR_H

#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "h2_connection.h"
#include "hand_clock.h"

#define MAYBE_UNUSED __attribute__((unused))

static const uint8_t settings[] = { 0, 0, 0, NGHTTP2_SETTINGS, 0, 0, 0, 0, 0 };

struct fixture {
	struct vd_env		 *env;
	struct vdi_loop		 *loop;
	struct vdi_h2_loop	 *h2_loop;
	struct vdi_h2_connection *connection;
	struct vdi_clock_sim	  clock; /* of a fixture with a clock of its own */
	struct vd_actor		 *nudge; /* lets the loop look at its timers */
	int			  fds[2];
	unsigned		  ready;
	unsigned		  ended;
	char			  why[300];
	bool			  closes_when_ready;
};

static void on_ready(void *arg)
{
	struct fixture *f = arg;

	f->ready++;
	if (f->closes_when_ready)
		vdi_h2_connection_close(f->connection, (vd_dur) { 0 });
}

static void on_ended(void *arg, const char *why)
{
	struct fixture *f = arg;

	f->ended++;
	(void) snprintf(f->why, sizeof f->why, "%s", why);
	f->connection = vdi_h2_connection_free(f->connection);
	vdi_loop_stop(f->loop);
}

static const struct vdi_h2_side side = { .ready = on_ready, .ended = on_ended };

static void make_loop(struct fixture *f)
{
	const struct vdi_h2_loop_options options = { .end_iteration = NULL };

	assert_status(vdi_loop_new(f->env, &f->loop), VD_OK);
	assert_status(vdi_h2_loop_new(f->env, f->loop, &options, &f->h2_loop), VD_OK);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, f->fds), 0);
}

MAYBE_UNUSED static void set_up(struct fixture *f)
{
	*f = (struct fixture) { 0 };
	assert_status(vd_env_new_threads(NULL, &f->env), VD_OK);
	make_loop(f);
}

static void do_nothing(void *arg)
{
	(void) arg;
}

MAYBE_UNUSED static void set_up_with_clock(struct fixture *f)
{
	struct vd_actor_options options = { .name = "nudge", .run = do_nothing };

	*f = (struct fixture) { 0 };
	f->env = hand_clock_env(&f->clock);
	make_loop(f);
	assert_status(vd_executor_actor_new(vdi_loop_executor(f->loop), &options, &f->nudge), VD_OK);
}

static void tear_down(struct fixture *f)
{
	close(f->fds[1]);
	if (f->nudge)
		vd_actor_close(f->nudge, NULL, NULL);
	f->h2_loop = vdi_h2_loop_free(f->h2_loop);
	f->loop = vdi_loop_free(f->loop);
	f->env = vd_env_free(f->env);
}

static vd_status connect_client(struct fixture *f, struct vdi_h2_connection_options options)
{
	options.side = &side;
	options.arg = f;
	return vdi_h2_connection_new(f->h2_loop, f->fds[0], &options, &f->connection);
}

static void say(struct fixture *f, const void *bytes, size_t size)
{
	assert_int_equal(write(f->fds[1], bytes, size), (ssize_t) size);
}

/* ---- What is said, frame by frame ---- */

/* Everything that can be done now is done: sockets of one machine are as fast as the calls. */
static void settle(struct fixture *f)
{
	for (unsigned i = 0; i < 20; i++)
		(void) event_base_loop(vdi_loop_base(f->loop), EVLOOP_NONBLOCK);
}

MAYBE_UNUSED static void advance(struct fixture *f, vd_dur by)
{
	vdi_clock_sim_advance(&f->clock, by);
	vd_actor_wake(f->nudge);
	settle(f);
}

struct told {
	uint8_t bytes[1 << 16];
	ssize_t size;
	ssize_t at; /* behind the preface of a client */
};

/* What the connection has written since the last time. */
MAYBE_UNUSED static void hear(struct fixture *f, struct told *told)
{
	told->size = recv(f->fds[1], told->bytes, sizeof told->bytes, MSG_DONTWAIT);
	told->at = told->size >= 24 && memcmp(told->bytes, "PRI * HTTP/2.0", 14) == 0 ? 24 : 0;
}

/* The payload of the next frame of this type (acknowledgements apart); NULL: there is none. */
MAYBE_UNUSED static const uint8_t *next_of(struct told *told, uint8_t type, uint8_t flags, size_t *ret_size)
{
	while (told->at + 9 <= told->size) {
		const uint8_t *head = told->bytes + told->at;

		*ret_size = (size_t) head[0] << 16 | (size_t) head[1] << 8 | head[2];
		told->at += 9 + (ssize_t) *ret_size;
		if (head[3] == type && head[4] == flags)
			return head + 9;
	}
	return NULL;
}

/* The value of a setting, -1: it was not said. */
MAYBE_UNUSED static int64_t setting_of(const uint8_t *payload, size_t size, uint16_t id)
{
	for (size_t i = 0; i + 6 <= size; i += 6)
		if ((payload[i] << 8 | payload[i + 1]) == id)
			return (int64_t) payload[i + 2] << 24 | payload[i + 3] << 16 | payload[i + 4] << 8 |
			       payload[i + 5];
	return -1;
}

MAYBE_UNUSED static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

MAYBE_UNUSED static void say_ping(struct fixture *f, uint8_t flags, uint8_t number)
{
	const uint8_t ping[] = { 0, 0, 8, NGHTTP2_PING, flags, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number };

	say(f, ping, sizeof ping);
}

MAYBE_UNUSED static void end_test(struct fixture *f)
{
	if (f->connection)
		vdi_h2_connection_abort(f->connection, "the test is over");
	settle(f);
	assert_int_equal(f->ended, 1);
	tear_down(f);
}

#endif
