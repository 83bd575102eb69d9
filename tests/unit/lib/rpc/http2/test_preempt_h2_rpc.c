/* Calls and streams of the HTTP/2 client between the threads of their users and the loop, under preemption:
 * the file itself, over a connection that is a page of code and a peer that answers, refuses, resets and goes
 * away at random. */
#include "actor_sim.h"
#include "env.h"
#include "h2_client_state.h"
#include "preempt.h"
#include "vdtest.h"
#include "wait.h"

#include <vedette/vedette.h>

#define USERS 6
#define LINE_MAX_COUNT 3
#define MESSAGES 5
#define SEEDS 150

/* What a user's call or stream is to be told, and was. */
struct user {
	struct vdi_lock	       lock;
	struct vdi_rpc_stream *stream; /* NULL: a call */
	struct vdi_rpc_call   *call;
	bool		       is_begun;
	bool		       is_cancelled;
	bool		       is_opened;
	bool		       is_asking;
	bool		       has_ended;
	unsigned	       received;
	int		       code;
	/* The peer's. */
	unsigned step;
	bool	 was_reset;
};

static struct {
	struct vd_env	     *env;
	struct vd_actor	     *loop;
	struct vd_actor	     *callers[2];
	struct vdi_h2_client  client;
	struct vdi_h2_channel channel, *channels[1];
	struct vdi_h2_line    line;
	struct user	      users[USERS];
	int32_t		      next_id;
	bool		      is_over;	 /* nobody is reset or cancels any more */
	bool		      is_silent; /* the peer */
} world;

static void fake_wake(struct vdi_h2_loop *h2_loop)
{
	vd_actor_wake(world.loop);
}

static void fake_timer_set(struct vdi_h2_loop *h2_loop, struct vdi_h2_timer *timer, vd_mono due)
{
}

static nghttp2_session *fake_session(struct vdi_h2_connection *connection)
{
	return NULL;
}

static bool fake_is_over(const struct vdi_h2_connection *connection)
{
	return false;
}

static void fake_touch(struct vdi_h2_connection *connection)
{
}

static void fake_abort(struct vdi_h2_connection *connection, const char *why)
{
	fail_msg("%s", why);
}

static struct vdi_h2_line *fake_line(struct vdi_h2_channel *channel)
{
	return world.line.count < LINE_MAX_COUNT ? &world.line : NULL;
}

static void fake_unref_locked(struct vdi_h2_channel *channel)
{
	channel->references--;
}

static void fake_add(struct vdi_h2_line *line, struct vdi_h2_rpc *rpc)
{
	TAILQ_INSERT_TAIL(&line->rpcs, rpc, line_node);
	line->count++;
	rpc->line = line;
}

static void fake_remove(struct vdi_h2_line *line, struct vdi_h2_rpc *rpc)
{
	TAILQ_REMOVE(&line->rpcs, rpc, line_node);
	line->count--;
	rpc->line = NULL;
	world.client.has_room = true;
	vd_actor_wake(world.loop);
}

static void fake_describe(struct vdi_h2_client *client, const struct vdi_h2_channel *only, char *text,
			  size_t size)
{
	text[0] = 0;
}

#define vdi_h2_loop_wake fake_wake
#define vdi_h2_timer_set fake_timer_set
#define vdi_h2_connection_session fake_session
#define vdi_h2_connection_is_over fake_is_over
#define vdi_h2_connection_touch fake_touch
#define vdi_h2_connection_abort fake_abort
#define vdi_h2_channel_line fake_line
#define vdi_h2_channel_unref_locked fake_unref_locked
#define vdi_h2_line_add fake_add
#define vdi_h2_line_remove fake_remove
#define vdi_h2_client_describe_unready fake_describe
#define vdi_h2_outbox_resume(outbox, session, id) ((void) (id))
#define vdi_loop_is_current(loop) false
#define nghttp2_submit_request(session, priority, pairs, count, provider, rpc)                               \
	((void) (session), (void) (provider), world.next_id += 2)
#define nghttp2_session_set_stream_user_data(session, ...) ((void) (session), 0)
#define nghttp2_session_get_stream_local_close(session, ...) ((void) (session), 1)
#define nghttp2_submit_rst_stream(session, ...) ((void) (session), 0)
#define nghttp2_session_want_write(session, ...) ((void) (session), 0)
#define nghttp2_session_consume_stream(session, ...) ((void) (session), 0)
#include "h2_rpc.c"
#include "h2_rpc_user.c"

/* ---- What users are told ---- */

static void note_opened(void *arg, const char *endpoint)
{
	struct user *user = arg;

	assert_false(user->is_opened || user->has_ended);
	assert_non_null(user->stream); /* its owner has it */
	user->is_opened = true;
}

static void take_message(struct user *user, struct vdi_rpc_message *message)
{
	assert_false(user->has_ended);
	assert_int_equal(message->bytes.size, 1);
	assert_int_equal(*(const char *) message->bytes.data, 'a' + (int) user->received);
	user->received++;
	vdi_rpc_message_release(message);
}

/* One for each that was asked for. */
static void note_message(void *arg, struct vdi_rpc_message *message)
{
	struct user *user = arg;

	assert_true(user->is_opened && user->is_asking);
	take_message(user, message);
	user->is_asking = false;
	vdi_preempt_point();
	vd_actor_wake(world.callers[0]);
}

static void note_ended(void *arg, const struct vdi_rpc_end *how)
{
	struct user *user = arg;

	vdi_lock_acquire(&user->lock);
	assert_false(user->has_ended);
	assert_true(user->stream || user->call); /* its owner has it */
	user->has_ended = true;
	user->code = how->code;
	vdi_lock_release(&user->lock);
	if (how->code == VDI_RPC_OK)
		assert_int_equal(user->received, user->stream ? MESSAGES : 1);
	else
		assert_true(user->is_cancelled || user->was_reset);
}

static void note_done(void *arg, const struct vdi_rpc_end *how, struct vdi_rpc_message *message)
{
	if (how->code == VDI_RPC_OK)
		take_message(arg, message);
	note_ended(arg, how);
}

static const struct vdi_rpc_stream_handlers handlers = { note_opened, note_message, note_ended };

/* ---- The peer, in the loop's iterations ---- */

static void note_headers(struct vdi_h2_rpc *rpc)
{
	vdi_h2_answer_note(&rpc->answer, vd_bytes_of(":status"), vd_bytes_of("200"));
	vdi_h2_answer_note(&rpc->answer, vd_bytes_of("content-type"), vd_bytes_of("application/grpc"));
	vdi_h2_rpc_headers(rpc, false);
}

/* Up to three messages in one piece, as far as there are any. */
static void send_messages(struct vdi_h2_rpc *rpc, struct user *user, unsigned first, unsigned count)
{
	char   bytes[6 * MESSAGES];
	size_t size = 0;

	for (unsigned i = 0; i < count; i++) {
		memcpy(bytes + size, "\0\0\0\0\1", 5);
		bytes[size + 5] = (char) ('a' + first + i);
		size += 6;
	}
	user->step += count;
	vdi_h2_rpc_data(rpc, (struct vd_bytes) { bytes, size });
}

static void finish_well(struct vdi_h2_rpc *rpc)
{
	vdi_h2_answer_note(&rpc->answer, vd_bytes_of("grpc-status"), vd_bytes_of("0"));
	vdi_h2_rpc_headers(rpc, true);
}

/* step 0: the headers of the request; 1: those of the answer; then messages; then the end. */
static void answer_some(struct vdi_h2_rpc *rpc)
{
	struct user *user = rpc->arg;
	unsigned     last = 2 + (rpc->is_stream ? MESSAGES : 1);
	uint64_t     dice = world.is_over ? 99 : vd_env_random_below(world.env, 40);

	if (dice < 2) {
		user->was_reset |= user->step > 0;
		if (user->step == 0)
			vdi_h2_rpc_reset(
				rpc, NGHTTP2_REFUSED_STREAM); /* again, if it was not told that it is open */
		else if (dice == 0)
			vdi_h2_rpc_reset(rpc, NGHTTP2_INTERNAL_ERROR);
		else
			vdi_h2_rpc_lost(rpc, "gone");
	} else if (user->step == 0) {
		user->step = 1;
		vdi_h2_rpc_opened(rpc);
	} else if (user->step == 1) {
		user->step = 2;
		note_headers(rpc);
	} else if (user->step < last) {
		send_messages(rpc, user, user->step - 2,
			      (unsigned) VDI_MIN(last - user->step, 1 + vd_env_random_below(world.env, 3)));
	} else {
		finish_well(rpc);
	}
}

static void run_loop(void *arg)
{
	struct vdi_h2_rpc *rpc, *next;

	vdi_h2_rpc_attend_posted(&world.client);
	vdi_h2_rpc_start_waiting(&world.client);
	for (rpc = TAILQ_FIRST(&world.line.rpcs); rpc; rpc = next) {
		next = TAILQ_NEXT(rpc, line_node);
		if (!world.is_silent && vd_env_random_below(world.env, 2))
			answer_some(rpc); /* ends this one at most */
	}
	if (world.line.count && !world.is_silent)
		vd_actor_wake(world.loop);
}

/* ---- Users ---- */

static void begin_one(struct user *user)
{
	struct vdi_rpc_request request = { .method = "/a/b",
					   .message = vd_bytes_of("q"),
					   .endpoint = VDI_RPC_ANY_ENDPOINT };

	user->is_begun = true;
	if ((user - world.users) % 2)
		assert_status(
			vdi_h2_stream_open(&world.client.client, &request, &handlers, user, &user->stream),
			VD_OK);
	else
		assert_status(vdi_h2_call(&world.client.client, &request, note_done, user, &user->call),
			      VD_OK);
}

static void cancel_one(struct user *user)
{
	vdi_lock_acquire(&user->lock);
	if (!user->has_ended && user->is_begun) {
		user->is_cancelled = true;
		if (user->stream)
			vdi_h2_stream_cancel(user->stream);
		else if (user->call)
			vdi_h2_call_cancel(user->call);
	}
	vdi_lock_release(&user->lock);
}

/* The first caller begins and asks; the second sends, closes and cancels beside it. */
static void run_asker(void *arg)
{
	for (unsigned i = 0; i < USERS; i++) {
		struct user *user = &world.users[i];

		if (!user->is_begun) {
			begin_one(user);
			break;
		}
		if (user->stream && !user->is_asking && !user->has_ended &&
		    (world.is_over || vd_env_random_below(world.env, 3))) {
			user->is_asking = true;
			vdi_h2_stream_receive(user->stream);
		}
	}
}

static void run_other(void *arg)
{
	struct user *user = &world.users[vd_env_random_below(world.env, USERS)];

	if (!user->is_begun || world.is_over)
		return;
	switch (vd_env_random_below(world.env, 6)) {
	case 0: cancel_one(user); break;
	case 1:
		if (user->stream)
			vdi_h2_stream_half_close(user->stream);
		break;
	default:
		if (user->stream)
			assert_status(vdi_h2_stream_send(user->stream, vd_bytes_of("more")), VD_OK);
		break;
	}
}

static void open_world(uint64_t seed)
{
	void (*const runs[])(void *) = { run_loop, run_asker, run_other };
	struct vd_actor **actors[] = { &world.loop, &world.callers[0], &world.callers[1] };

	memset(&world, 0, sizeof world);
	assert_status(vdi_env_new_sim(seed, NULL, NULL, &world.env), VD_OK);
	assert_status(vdi_sim_set_preemptions(world.env, 6), VD_OK);
	world.channel = (struct vdi_h2_channel) { .client = &world.client,
						  .name = (char *) (uintptr_t) "peer",
						  .authority = (char *) (uintptr_t) "peer",
						  .references = 1 };
	world.channels[0] = &world.channel;
	world.line.channel = &world.channel;
	TAILQ_INIT(&world.line.rpcs);
	world.client.env = world.env;
	world.client.send_size_max = world.client.receive_size_max = 1000;
	world.client.channels = world.channels;
	world.client.channel_count = 1;
	TAILQ_INIT(&world.client.live);
	TAILQ_INIT(&world.client.posted);
	TAILQ_INIT(&world.client.waiting);
	vdi_lock_init(&world.client.lock, VDI_LOCK_RPC);
	for (unsigned i = 0; i < USERS; i++)
		vdi_lock_init(&world.users[i].lock, VDI_LOCK_ETCD_CLIENT);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(runs); i++) {
		struct vd_actor_options options = { .name = "actor", .run = runs[i] };

		assert_status(vd_actor_new(world.env, &options, actors[i]), VD_OK);
	}
}

static bool have_all_ended(void)
{
	for (unsigned i = 0; i < USERS; i++)
		if (!world.users[i].has_ended)
			return false;
	return true;
}

static void close_world(void)
{
	assert_true(TAILQ_EMPTY(&world.client.live) && TAILQ_EMPTY(&world.client.posted) &&
		    TAILQ_EMPTY(&world.client.waiting));
	assert_int_equal(world.line.count, 0);
	for (unsigned i = 0; i < USERS; i++) {
		vdi_h2_stream_free(world.users[i].stream);
		vdi_lock_fini(&world.users[i].lock);
	}
	assert_int_equal(world.channel.references, 1);
	vdi_wait_for_actor_close(world.env, world.loop);
	for (unsigned i = 0; i < 2; i++)
		vdi_wait_for_actor_close(world.env, world.callers[i]);
	vdi_lock_fini(&world.client.lock);
	vd_env_free(world.env);
}

static void run_at_random(void)
{
	for (unsigned i = 0; i < 60; i++) {
		vd_actor_wake(world.callers[vd_env_random_below(world.env, 2)]);
		for (uint64_t steps = vd_env_random_below(world.env, 5); steps; steps--)
			(void) vdi_sim_step(world.env);
	}
}

/* Each ends once: well with all its messages in order, each of which was asked for, or because it was
 * cancelled, reset or lost. */
static void calls_and_streams_end_once_with_all_that_was_sent(void **state)
{
	unsigned good = 0, bad = 0;

	(void) state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		open_world(seed);
		run_at_random();
		world.is_over = true;
		for (unsigned iterations = 0; !have_all_ended(); iterations++) {
			assert_true(iterations < 200); /* else something was lost */
			vd_actor_wake(world.callers[0]);
			vdi_sim_run_until_idle(world.env);
		}
		vdi_sim_run_until_idle(world.env);
		for (unsigned i = 0; i < USERS; i++) {
			good += world.users[i].code == VDI_RPC_OK;
			bad += world.users[i].code != VDI_RPC_OK;
		}
		close_world();
	}
	assert_true(good > SEEDS && bad > SEEDS); /* of six times as many */
}

/* Whether it waits for a place, runs, or waits for its owner to ask: it ends without a word from the peer. */
static void whoever_cancels_waits_for_nobody(void **state)
{
	(void) state;
	for (uint64_t seed = 1000; seed < 1000 + SEEDS; seed++) {
		open_world(seed);
		run_at_random();
		world.is_silent = true;
		vdi_sim_run_until_idle(world.env);
		for (unsigned i = 0; i < USERS; i++) {
			if (!world.users[i].is_begun)
				begin_one(&world.users[i]);
			cancel_one(&world.users[i]);
		}
		vdi_sim_run_until_idle(world.env);
		assert_true(have_all_ended());
		close_world();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_and_streams_end_once_with_all_that_was_sent),
		cmocka_unit_test(whoever_cancels_waits_for_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
