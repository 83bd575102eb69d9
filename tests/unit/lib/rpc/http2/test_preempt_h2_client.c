/* The endpoints of the HTTP/2 client and their connections under preemption: callers that begin and cancel
 * calls, a caller that replaces the list of endpoints, resolvers on threads of their own, the loop, and an
 * end at any moment. h2_channel.c and h2_rpc.c are the real ones; h2_loop, sockets and connections are a
 * page of code, whose network refuses, connects, says goodbye and breaks at random. */
#include <errno.h>
#include <netdb.h>
#include <unistd.h>

#include <netinet/in.h>
#include <vedette/vedette.h>

#include "actor_sim.h"
#include "env.h"
#include "h2_client_state.h"
#include "timer.h"
#include "vdtest.h"
#include "wait.h"

#define USERS 12
#define SEEDS 120
#define LINE_MAX_COUNT 4

struct vdi_h2_loop {
	struct vdi_h2_loop_options options;
	struct vdi_timer_heap	   timers;
};

struct vdi_h2_connection {
	const struct vdi_h2_side *side;
	void			 *arg;
	int			  fd;
	bool			  is_up, has_goaway, is_over;
	char			  why[64];
	TAILQ_ENTRY(vdi_h2_connection) node;
};

struct user {
	struct vdi_lock	       lock;
	struct vdi_rpc_stream *stream; /* NULL: a call */
	struct vdi_rpc_call   *call;
	bool		       is_begun;
	bool		       is_late; /* it began when all was calm */
	bool		       has_ended;
	int		       code;
	unsigned	       step; /* the peer's */
};

static struct {
	struct vd_env	      *env;
	struct vdi_rpc_client *client;
	struct vd_actor	      *callers[2];
	struct user	       users[USERS];
	TAILQ_HEAD(, vdi_h2_connection) connections;
	unsigned connection_count, dials;
	int32_t	 next_id;
	bool	 is_calm;   /* the network */
	bool	 is_silent; /* it does nothing at all */
	bool	 is_stopped;
	bool	 is_closed; /* done was called */
} world;

static bool one_in(uint64_t count)
{
	return vd_env_random_below(world.env, count) == 0;
}

/* ---- Instead of the operating system ---- */

static struct addrinfo *new_address(struct addrinfo *next)
{
	struct addrinfo	   *made = calloc(1, sizeof *made + sizeof(struct sockaddr_in));
	struct sockaddr_in *at = (struct sockaddr_in *) (made + 1);

	assert_non_null(made);
	at->sin_family = AF_INET;
	made->ai_family = AF_INET;
	made->ai_addr = (struct sockaddr *) at;
	made->ai_addrlen = sizeof *at;
	made->ai_next = next;
	return made;
}

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **list)
{
	bool is_name = host[0] > '9';

	(void) port;
	if (is_name && hints->ai_flags & AI_NUMERICHOST)
		return EAI_NONAME;
	if (is_name && !world.is_calm && one_in(3))
		return EAI_AGAIN;
	*list = new_address(is_name && one_in(2) ? new_address(NULL) : NULL);
	return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
	while (list) {
		struct addrinfo *next = list->ai_next;

		free(list);
		list = next;
	}
}

int connect(int fd, const struct sockaddr *at, socklen_t size)
{
	(void) fd;
	(void) at;
	(void) size;
	world.dials++;
	errno = world.is_calm || !one_in(4) ? EINPROGRESS : ECONNREFUSED;
	return -1;
}

/* ---- Instead of the h2_loop and nghttp2 ---- */

vd_status vdi_h2_loop_new(const struct vd_env *env, struct vdi_loop *loop,
			  const struct vdi_h2_loop_options *options, struct vdi_h2_loop **ret_h2_loop)
{
	struct vdi_h2_loop *h2_loop = VDI_NEW(struct vdi_h2_loop);

	(void) env;
	(void) loop;
	assert_non_null(h2_loop);
	h2_loop->options = *options;
	*ret_h2_loop = h2_loop;
	return VD_OK;
}

struct vdi_h2_loop *vdi_h2_loop_free(struct vdi_h2_loop *h2_loop)
{
	assert_int_equal(h2_loop->timers.count, 0);
	vdi_free(h2_loop);
	return NULL;
}

void vdi_h2_loop_wake(struct vdi_h2_loop *h2_loop)
{
	vd_actor_wake(((struct vdi_h2_client *) h2_loop->options.arg)->actor);
}

void vdi_h2_timer_set(struct vdi_h2_loop *h2_loop, struct vdi_h2_timer *timer, vd_mono due)
{
	vdi_timer_heap_set(&h2_loop->timers, &timer->timer, due);
}

vd_status vdi_h2_connection_new(struct vdi_h2_loop *h2_loop, int fd,
				const struct vdi_h2_connection_options *options,
				struct vdi_h2_connection	      **ret_connection)
{
	struct vdi_h2_connection *connection = VDI_NEW(struct vdi_h2_connection);

	(void) h2_loop;
	assert_non_null(connection);
	connection->side = options->side;
	connection->arg = options->arg;
	connection->fd = fd;
	TAILQ_INSERT_TAIL(&world.connections, connection, node);
	world.connection_count++;
	*ret_connection = connection;
	return VD_OK;
}

struct vdi_h2_connection *vdi_h2_connection_free(struct vdi_h2_connection *connection)
{
	TAILQ_REMOVE(&world.connections, connection, node);
	world.connection_count--;
	close(connection->fd);
	vdi_free(connection);
	return NULL;
}

void vdi_h2_connection_abort(struct vdi_h2_connection *connection, const char *why)
{
	if (connection->is_over)
		return;
	connection->is_over = true;
	(void) snprintf(connection->why, sizeof connection->why, "%s", why);
}

void vdi_h2_connection_close(struct vdi_h2_connection *connection, vd_dur timeout)
{
	(void) timeout;
	vdi_h2_connection_abort(connection, "");
}

void vdi_h2_connection_touch(struct vdi_h2_connection *connection)
{
	(void) connection;
}

bool vdi_h2_connection_is_over(const struct vdi_h2_connection *connection)
{
	return connection->is_over;
}

bool vdi_h2_connection_is_ready(const struct vdi_h2_connection *connection)
{
	return connection->is_up && !connection->has_goaway && !connection->is_over;
}

nghttp2_session *vdi_h2_connection_session(const struct vdi_h2_connection *connection)
{
	(void) connection;
	return NULL;
}

void *vdi_h2_connection_arg(const struct vdi_h2_connection *connection)
{
	return connection->arg;
}

int32_t nghttp2_submit_request(nghttp2_session *session, const nghttp2_priority_spec *priority,
			       const nghttp2_nv *pairs, size_t count, const nghttp2_data_provider *provider,
			       void *rpc)
{
	(void) session;
	(void) priority;
	(void) pairs;
	(void) count;
	(void) provider;
	(void) rpc;
	return world.next_id += 2;
}

int nghttp2_session_set_stream_user_data(nghttp2_session *session, int32_t id, void *data)
{
	(void) session;
	(void) id;
	(void) data;
	return 0;
}

void *nghttp2_session_get_stream_user_data(nghttp2_session *session, int32_t id)
{
	(void) session;
	(void) id;
	return NULL;
}

int nghttp2_session_get_stream_local_close(nghttp2_session *session, int32_t id)
{
	(void) session;
	(void) id;
	return 1;
}

int nghttp2_submit_rst_stream(nghttp2_session *session, uint8_t flags, int32_t id, uint32_t code)
{
	(void) session;
	(void) flags;
	(void) id;
	(void) code;
	return 0;
}

int nghttp2_session_want_write(nghttp2_session *session)
{
	(void) session;
	return 0;
}

int nghttp2_session_consume_stream(nghttp2_session *session, int32_t id, size_t size)
{
	(void) session;
	(void) id;
	(void) size;
	return 0;
}

int nghttp2_session_resume_data(nghttp2_session *session, int32_t id)
{
	(void) session;
	(void) id;
	return 0;
}

uint32_t nghttp2_session_get_remote_settings(nghttp2_session *session, nghttp2_settings_id id)
{
	(void) session;
	(void) id;
	return LINE_MAX_COUNT;
}

/* ---- The network, in the loop's iterations ---- */

static void answer_some(struct vdi_h2_rpc *rpc)
{
	struct user *user = rpc->arg;

	if (user->step == 0) {
		user->step = 1;
		vdi_h2_rpc_opened(rpc);
	} else if (!rpc->is_stream && user->step == 1) {
		user->step = 2;
		vdi_h2_answer_note(&rpc->answer, vd_bytes_of(":status"), vd_bytes_of("200"));
		vdi_h2_answer_note(&rpc->answer, vd_bytes_of("content-type"),
				   vd_bytes_of("application/grpc"));
		vdi_h2_rpc_headers(rpc, false);
		vdi_h2_rpc_data(rpc, (struct vd_bytes) { "\0\0\0\0\1a", 6 });
	} else if (!rpc->is_stream) {
		vdi_h2_answer_note(&rpc->answer, vd_bytes_of("grpc-status"), vd_bytes_of("0"));
		vdi_h2_rpc_headers(rpc, true);
	}
}

static void refuse_one(struct vdi_h2_rpc *rpc)
{
	((struct user *) rpc->arg)->step = 0;
	vdi_h2_rpc_reset(rpc, NGHTTP2_REFUSED_STREAM);
}

static void say_goaway(struct vdi_h2_connection *connection)
{
	nghttp2_frame frame = { .hd = { .type = NGHTTP2_GOAWAY } };

	connection->has_goaway = true;
	(void) connection->side->frame(NULL, &frame, connection);
}

static void happen_to(struct vdi_h2_connection *connection)
{
	struct vdi_h2_line *line = connection->arg;
	struct vdi_h2_rpc  *rpc, *next;

	if (connection->is_over || (!world.is_calm && one_in(3)))
		return;
	if (!world.is_calm && one_in(8))
		vdi_h2_connection_abort(connection, connection->is_up ? "reset" : "refused");
	else if (!connection->is_up) {
		connection->is_up = true;
		connection->side->ready(connection->arg);
	} else if (!world.is_calm && !connection->has_goaway && one_in(8))
		say_goaway(connection);
	else
		for (rpc = TAILQ_FIRST(&line->rpcs); rpc && !connection->is_over; rpc = next) {
			next = TAILQ_NEXT(rpc, line_node);
			if (!world.is_calm && rpc->answer.http_status == 0 && one_in(12))
				refuse_one(rpc);
			else if (one_in(2))
				answer_some(rpc);
		}
}

static void finish_ends(void)
{
	struct vdi_h2_connection *connection, *next;

	for (connection = TAILQ_FIRST(&world.connections); connection; connection = next) {
		next = TAILQ_NEXT(connection, node);
		if (connection->is_over) {
			struct vdi_h2_line *line = connection->arg;
			struct vdi_h2_rpc  *rpc;

			TAILQ_FOREACH(rpc, &line->rpcs, line_node)
			((struct user *) rpc->arg)->step = 0;
			connection->side->ended(connection->arg, connection->why);
		}
	}
}

/* One iteration of the loop; true: it was stopped. */
static bool run_loop(struct vdi_h2_client *client)
{
	struct vdi_h2_connection *connection, *next;
	struct vdi_timer	 *timer;
	vd_mono			  due;

	while ((timer = vdi_timer_heap_pop_due(&client->h2_loop->timers, vd_env_now(world.env))) != NULL) {
		struct vdi_h2_timer *mine = VDI_CONTAINER_OF(timer, struct vdi_h2_timer, timer);

		mine->fire(mine);
	}
	for (connection = TAILQ_FIRST(&world.connections); connection && !world.is_silent;
	     connection = next) {
		next = TAILQ_NEXT(connection, node);
		happen_to(connection);
	}
	client->h2_loop->options.end_iteration(client);
	finish_ends();
	due = vdi_timer_heap_next_due(&client->h2_loop->timers);
	if (world.connection_count && !world.is_silent)
		due.ns = VDI_MIN(due.ns, vd_mono_add(vd_env_now(world.env), VD_MS(10)).ns);
	vd_actor_set_timer(client->actor, due);
	return world.is_stopped;
}

static struct vdi_loop *const no_loop = NULL;

#define vdi_loop_new(env, ret_loop) (*(ret_loop) = no_loop, VD_OK)
#define vdi_loop_free(loop) no_loop
#define vdi_loop_stop(loop) ((void) (loop), (void) (world.is_stopped = true))
/* A run of the client's actor is the whole life of a loop; here each iteration is a run. */
#define vdi_loop_run(loop)                                                                                   \
	if (!run_loop(client))                                                                               \
	return
#define vdi_h2_client_new client_under_test
#include "h2_client.c"

/* ---- Users ---- */

static void note_end(struct user *user, const struct vdi_rpc_end *how)
{
	vdi_lock_acquire(&user->lock);
	assert_false(user->has_ended);
	user->has_ended = true;
	user->code = how->code;
	vdi_lock_release(&user->lock);
	if (user->is_late && user->stream == NULL)
		assert_int_equal(how->code, VDI_RPC_OK);
	if (user->stream)
		vdi_h2_stream_free(user->stream);
}

static void note_done(void *arg, const struct vdi_rpc_end *how, struct vdi_rpc_message *message)
{
	if (how->code == VDI_RPC_OK) {
		assert_int_equal(message->bytes.size, 1);
		vdi_rpc_message_release(message);
	}
	note_end(arg, how);
}

static void note_ended(void *arg, const struct vdi_rpc_end *how)
{
	note_end(arg, how);
}

static void note_message(void *arg, struct vdi_rpc_message *message)
{
	(void) arg;
	(void) message;
	fail();
}

static const struct vdi_rpc_stream_handlers handlers = { .message = note_message, .ended = note_ended };

static void begin_one(struct user *user, int endpoint)
{
	struct vdi_rpc_request request = { .method = "/a/b",
					   .message = vd_bytes_of("q"),
					   .endpoint = endpoint };
	vd_status	       status;

	user->is_begun = true;
	user->is_late = world.is_calm;
	if ((user - world.users) % 3 == 2)
		status = world.client->ops->stream_open(world.client, &request, &handlers, user,
							&user->stream);
	else
		status = world.client->ops->call(world.client, &request, note_done, user, &user->call);
	if (status != VD_OK) {
		assert_status(status, VD_INVALID_ARGUMENT); /* there is no such endpoint now */
		assert_int_not_equal(endpoint, VDI_RPC_ANY_ENDPOINT);
		user->is_begun = false;
	}
}

static void cancel_one(struct user *user)
{
	vdi_lock_acquire(&user->lock);
	if (!user->has_ended && user->is_begun) {
		if (user->stream)
			world.client->ops->stream_cancel(user->stream);
		else if (user->call)
			world.client->ops->call_cancel(user->call);
	}
	vdi_lock_release(&user->lock);
}

static void run_beginner(void *arg)
{
	(void) arg;
	for (unsigned i = 0; i < USERS; i++) {
		if (!world.users[i].is_begun) {
			begin_one(&world.users[i], (int) vd_env_random_below(world.env, 4) - 1);
			return;
		}
	}
}

static void replace_endpoints(void)
{
	static const char *const names[] = { "127.0.0.1:1", "one.test:2", "127.0.0.1:3", "two.test:4",
					     "unix:/five" };
	const char		*chosen[VDI_ARRAY_SIZE(names) + 1];
	size_t			 count = 0;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(names); i++)
		if (one_in(2))
			chosen[count++] = names[i];
	if (one_in(4)) { /* nothing is changed by a list that is wrong at its end */
		chosen[count++] = "without a port";
		assert_status(world.client->ops->set_endpoints(world.client, chosen, count, NULL),
			      VD_INVALID_ARGUMENT);
	} else if (count)
		assert_status(world.client->ops->set_endpoints(world.client, chosen, count, NULL), VD_OK);
}

static void run_changer(void *arg)
{
	struct vdi_rpc_endpoint_state state;

	(void) arg;
	switch (vd_env_random_below(world.env, 4)) {
	case 0: cancel_one(&world.users[vd_env_random_below(world.env, USERS)]); break;
	case 1: (void) world.client->ops->endpoint_state(world.client, 0, &state); break;
	default: replace_endpoints(); break;
	}
}

static void open_world(uint64_t seed)
{
	static const char *const	    endpoints[] = { "127.0.0.1:1", "one.test:2" };
	const struct vdi_rpc_client_options options = { .endpoints = endpoints, .endpoint_count = 2 };
	void (*const runs[])(void *) = { run_beginner, run_changer };

	memset(&world, 0, sizeof world);
	TAILQ_INIT(&world.connections);
	assert_status(vdi_env_new_sim(seed, NULL, NULL, &world.env), VD_OK);
	assert_status(vdi_sim_set_preemptions(world.env, 6), VD_OK);
	for (unsigned i = 0; i < USERS; i++)
		vdi_lock_init(&world.users[i].lock, VDI_LOCK_ETCD_CLIENT);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(runs); i++) {
		struct vd_actor_options actor = { .name = "caller", .run = runs[i] };

		assert_status(vd_actor_new(world.env, &actor, &world.callers[i]), VD_OK);
	}
	assert_status(client_under_test(world.env, &options, &world.client, NULL), VD_OK);
}

static void run_at_random(void)
{
	for (unsigned i = 0; i < 80; i++) {
		vd_actor_wake(world.callers[vd_env_random_below(world.env, 2)]);
		for (uint64_t steps = vd_env_random_below(world.env, 8); steps; steps--)
			(void) vdi_sim_step(world.env);
		if (one_in(10))
			vdi_sim_advance(world.env, VD_MS(100));
	}
}

static void note_closed(void *arg)
{
	(void) arg;
	assert_false(world.is_closed);
	world.is_closed = true;
}

/* Nothing of the network is needed for the end, and no time. */
static void close_world(void)
{
	for (unsigned i = 0; i < 2; i++)
		vdi_wait_for_actor_close(world.env, world.callers[i]);
	world.is_silent = true;
	vdi_sim_set_atomic(world.env, false);
	world.client->ops->close(world.client, note_closed, NULL);
	vdi_sim_set_atomic(world.env, true);
	vdi_sim_run_until_idle(world.env);
	assert_true(world.is_closed);
	assert_int_equal(world.connection_count, 0);
	for (unsigned i = 0; i < USERS; i++) {
		assert_int_equal(world.users[i].has_ended, world.users[i].is_begun);
		vdi_lock_fini(&world.users[i].lock);
	}
	assert_int_equal(vdi_sim_actors(world.env), 0);
	vd_env_free(world.env);
}

/* Whatever the network did, and whoever changed the list: in the end all that is called is answered, by an
 * endpoint of the last list. */
static void a_calm_network_answers_every_call(void **state)
{
	static const char *const last[] = { "three.test:6" };
	unsigned		 good = 0, bad = 0;

	(void) state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		int64_t before = vdi_alloc_live();

		open_world(seed);
		run_at_random();
		vdi_sim_settle(world.env);
		world.is_calm = true;
		if (seed % 2)
			assert_status(world.client->ops->set_endpoints(world.client, last, 1, NULL), VD_OK);
		for (unsigned i = 0; i < USERS; i++)
			if (!world.users[i].is_begun)
				begin_one(&world.users[i], VDI_RPC_ANY_ENDPOINT);
		vdi_sim_advance(world.env, VD_SECONDS(10));
		for (unsigned i = 0; i < USERS; i++) {
			if (world.users[i].stream == NULL)
				assert_true(world.users[i].has_ended);
			good += world.users[i].has_ended && world.users[i].code == VDI_RPC_OK;
			bad += world.users[i].has_ended && world.users[i].code != VDI_RPC_OK;
		}
		close_world();
		assert_int_equal(vdi_alloc_live(), before);
	}
	assert_true(good > SEEDS && bad > SEEDS / 4);
}

/* Everything ends once, whatever was under way. */
static void an_end_at_any_moment_ends_all(void **state)
{
	(void) state;
	for (uint64_t seed = 1000; seed < 1000 + SEEDS; seed++) {
		int64_t before = vdi_alloc_live();

		open_world(seed);
		run_at_random();
		close_world();
		assert_int_equal(vdi_alloc_live(), before);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_calm_network_answers_every_call),
		cmocka_unit_test(an_end_at_any_moment_ends_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
