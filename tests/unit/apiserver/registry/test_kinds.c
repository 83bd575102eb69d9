/* Unit tests of apiserver/registry/kinds.c: when a kind is served, by which loop, and who waits for it. The
 * server is in this process and has two loops. */
#include <poll.h>
#include <unistd.h>

#include "await.h"
#include "vdtest.h"

#include "actor_loop.h"
#include "env.h"
#include "http_server.h"
#include "http_shared.h"
#include "wait.h"

#define PATIENCE_MS 240000
#define CRDS "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#define WIDGETS "/apis/example.com/v1/widgets?resourceVersion=0"
#define WIDGETS_CRD                                                                                          \
	"{\"apiVersion\":\"apiextensions.k8s.io/"                                                            \
	"v1\",\"kind\":\"CustomResourceDefinition\",\"metadata\":{\"name\":\"widgets.example.com\"},"        \
	"\"spec\":{\"group\":\"example.com\","                                                               \
	"\"scope\":\"Namespaced\",\"names\":{\"plural\":\"widgets\",\"kind\":\"Widget\"},\"versions\":[{"    \
	"\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"                                      \
	"\"openAPIV3Schema\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true}}}]}}"

/* ---- Servers ---- */

static struct vd_server *new_server(struct vd_env *env, struct vd_store *store)
{
	struct vd_server_options options = VD_SERVER_OPTIONS_INIT;
	struct vd_server	*server;
	struct vd_error		 error = { 0 };

	options.listen = "127.0.0.1:0";
	options.threads = 2;
	if (vd_server_new(env, store, &options, &server, &error) != VD_OK)
		fail_msg("%s", error.message);
	return server;
}

static void start(struct vd_server *server)
{
	struct vd_error error = { 0 };

	if (vd_server_start(server, VD_MS(PATIENCE_MS), &error) != VD_OK)
		fail_msg("%s", error.message);
}

struct fixture {
	struct vd_env	 *env;
	struct vd_store	 *store;
	struct vd_server *server, *other; /* of the same store; NULL: there is none */
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);

	*state = fixture;
	if (fixture == NULL || vd_env_new_threads(NULL, &fixture->env) != VD_OK ||
	    vd_store_open_mvcc(fixture->env, NULL, &fixture->store, NULL) != VD_OK)
		return -1;
	fixture->server = new_server(fixture->env, fixture->store);
	start(fixture->server);
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	(void) vd_server_free(fixture->other);
	(void) vd_server_free(fixture->server);
	(void) vd_store_close_wait(fixture->store);
	(void) vd_env_free(fixture->env);
	free(fixture);
	return 0;
}

/* ---- A client ---- */

static int connect_to(const struct vd_server *server)
{
	return http_open(http_port_of(server), 0);
}

static void send_request(int fd, const char *method, const char *path, const char *body)
{
	http_send_kept_request(fd, method, path, HTTP_JSON, body);
}

/* The code; the whole answer is taken, so that the connection can be used again. */
static int read_answer(int fd)
{
	struct http_client client = { .fd = fd };
	struct http_answer answer = http_client_read_answer(&client);

	assert_int_equal(client.size, 0);
	free(client.data);
	http_answer_free(&answer);
	return answer.code;
}

static int ask(int fd, const char *method, const char *path, const char *body)
{
	send_request(fd, method, path, body);
	return read_answer(fd);
}

/* One connection of each loop: they are handed out in turn. */
static void connect_to_both(struct vd_server *server, int fds[2])
{
	int	fd, *at;
	int64_t before;

	fds[0] = fds[1] = -1;
	while (fds[0] < 0 || fds[1] < 0) {
		before = atomic_load(&server->loops[1].connections_open);
		fd = connect_to(server);
		assert_int_equal(ask(fd, "GET", "/version", ""), 200);
		at = &fds[atomic_load(&server->loops[1].connections_open) > before];
		if (*at >= 0)
			(void) close(*at);
		*at = fd;
	}
}

/* ---- Loops and actors that are held ---- */

struct gate {
	struct vd_actor *actor;
	struct vdi_wait	 entered, opened;
};

static void stand(void *arg)
{
	struct gate *gate = arg;

	vdi_wait_signal(&gate->entered);
	vdi_wait_wait(&gate->opened);
}

/* One thread of the executor is in it from now on. */
static void shut(struct gate *gate, const struct vd_env *env, const struct vd_executor *executor)
{
	struct vd_actor_options options = { .name = "gate", .run = stand, .arg = gate };

	vdi_wait_init(&gate->entered, env);
	vdi_wait_init(&gate->opened, env);
	assert_status(vd_executor_actor_new(executor, &options, &gate->actor), VD_OK);
	vd_actor_wake(gate->actor);
	vdi_wait_wait(&gate->entered);
}

static void open_gate(struct gate *gate, const struct vd_env *env)
{
	vdi_wait_signal(&gate->opened);
	vdi_wait_for_actor_close(env, gate->actor);
	vdi_wait_fini(&gate->entered);
	vdi_wait_fini(&gate->opened);
}

/* The server hears of no definition until it is given its ear back. */
static struct vd_informer *deafen(struct vd_server *server)
{
	struct vd_informer *ear;

	vdi_lock_acquire(&server->lock);
	ear = server->kinds.informer;
	server->kinds.informer = NULL;
	vdi_lock_release(&server->lock);
	return ear;
}

static void let_hear(struct vd_server *server, struct vd_informer *ear)
{
	vdi_lock_acquire(&server->lock);
	server->kinds.informer = ear;
	vdi_kinds_wake_locked(&server->kinds);
	vdi_lock_release(&server->lock);
}

static bool has_waiters(struct vd_server *server)
{
	bool has;

	vdi_lock_acquire(&server->lock);
	has = server->kinds.waiters != NULL;
	vdi_lock_release(&server->lock);
	return has;
}

static bool has_heard_all(struct vd_server *server)
{
	bool has;

	vdi_lock_acquire(&server->lock);
	has = server->kinds.is_synced && !server->kinds.has_news;
	vdi_lock_release(&server->lock);
	return has;
}

struct decision {
	struct vdi_wait wait;
	vd_status	status;
};

static void decided(void *arg, vd_status status)
{
	struct decision *decision = arg;

	decision->status = status;
	vdi_wait_signal(&decision->wait);
}

static vd_status decision_on(struct vd_server *server, const char *definition, vd_rev revision)
{
	struct decision decision;

	vdi_wait_init(&decision.wait, server->env);
	assert_status(vdi_kinds_await(&server->kinds, vd_bytes_of(definition), revision, decided, &decision),
		      VD_OK);
	vdi_wait_wait(&decision.wait);
	vdi_wait_fini(&decision.wait);
	return decision.status;
}

/* ---- Tests ---- */

/* From when one loop serves a kind all do, also the one that nobody has told yet: the second loop's inbox is
 * shut. */
static void a_kind_is_served_by_all_loops_or_none(void **state)
{
	struct fixture *fixture = *state;
	uint64_t	before;
	int		fds[2], codes[4];

	connect_to_both(fixture->server, fds);
	assert_int_equal(ask(fds[0], "GET", WIDGETS, ""), 404);
	assert_int_equal(ask(fds[1], "GET", WIDGETS, ""), 404);
	before = atomic_load(&fixture->server->kinds.served_number);
	vdi_lock_acquire(&fixture->server->loops[1].lock);
	send_request(fds[0], "POST", CRDS, WIDGETS_CRD);
	AWAIT(atomic_load(&fixture->server->kinds.served_number) > before);
	codes[0] = read_answer(fds[0]);
	codes[1] = ask(fds[0], "GET", WIDGETS, "");
	codes[2] = ask(fds[1], "GET", WIDGETS, "");
	codes[3] = ask(fds[1], "GET", "/apis/example.com/v1", "");
	vdi_lock_release(&fixture->server->loops[1].lock);
	assert_int_equal(codes[0], 201);
	for (int i = 1; i < 4; i++)
		assert_int_equal(codes[i], 200);
	(void) close(fds[0]);
	(void) close(fds[1]);
}

/* A loop that stands still is waited for, before the server says that it is ready. */
static void a_server_is_ready_when_all_loops_serve_all_kinds(void **state)
{
	struct fixture	     *fixture = *state;
	struct vd_env_options few = VD_ENV_OPTIONS_INIT;
	struct gate	      pool, loop;
	struct vd_server     *server;
	struct vd_env	     *env;
	int		      fd = connect_to(fixture->server), fds[2];

	assert_int_equal(ask(fd, "POST", CRDS, WIDGETS_CRD), 201);
	(void) close(fd);
	few.threads = 1;
	assert_status(vd_env_new_threads(&few, &env), VD_OK);
	shut(&pool, env, vdi_env_executor(env)); /* so that nothing is served before the loop is held */
	server = new_server(env, fixture->store);
	shut(&loop, env, vdi_loop_executor(server->loops[1].loop));
	open_gate(&pool, env);
	AWAIT(has_heard_all(server));
	assert_status(decision_on(server, "widgets.example.com", 1), VD_OK);
	assert_true(atomic_load(&server->kinds.served_number) > 0);
	assert_status(vdi_kinds_wait(&server->kinds, vd_env_now(env), NULL), VD_TIMEOUT);
	assert_status(vd_server_start(server, VD_MS(0), NULL), VD_TIMEOUT);
	open_gate(&loop, env);
	start(server);
	for (int i = 0; i < 2; i++)
		assert_true(atomic_load(&server->loops[i].served_number) ==
			    atomic_load(&server->kinds.served_number));
	connect_to_both(server, fds);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ask(fds[i], "GET", WIDGETS, ""), 200);
		(void) close(fds[i]);
	}
	(void) vd_server_free(server);
	(void) vd_env_free(env);
}

/* Another server's definition is in the store, and may be Established for who reads it there, before this one
 * has heard of it. */
static void a_kind_of_another_server_is_waited_for(void **state)
{
	struct fixture	   *fixture = *state;
	struct vd_informer *ear;
	struct pollfd	    answer;
	int		    fd = connect_to(fixture->server), fds[2];

	fixture->other = new_server(fixture->env, fixture->store);
	start(fixture->other);
	connect_to_both(fixture->other, fds);
	assert_int_equal(ask(fds[1], "GET", WIDGETS, ""), 404); /* nothing of the kind is there */
	ear = deafen(fixture->other);
	assert_int_equal(ask(fd, "POST", CRDS, WIDGETS_CRD), 201);
	send_request(fds[1], "GET", WIDGETS, "");
	answer = (struct pollfd) { fds[1], POLLIN, 0 };
	AWAIT(has_waiters(fixture->other) || poll(&answer, 1, 0) == 1);
	let_hear(fixture->other, ear);
	assert_int_equal(read_answer(fds[1]), 200);
	assert_int_equal(ask(fds[0], "GET", WIDGETS, ""), 200);
	/* What the definition does not serve is not waited for when that is known. */
	assert_int_equal(ask(fds[0], "GET", "/apis/example.com/v2/widgets", ""), 404);
	(void) close(fd);
	(void) close(fds[0]);
	(void) close(fds[1]);
}

static void the_wait_for_a_kind_has_an_end(void **state)
{
	struct fixture	   *fixture = *state;
	struct vd_informer *ear;
	struct decision	    never;
	int		    fd = connect_to(fixture->server), other;

	fixture->other = new_server(fixture->env, fixture->store);
	start(fixture->other);
	other = connect_to(fixture->other);
	ear = deafen(fixture->other);
	assert_int_equal(ask(fd, "POST", CRDS, WIDGETS_CRD), 201);
	fixture->other->kinds.patience = VD_MS(0);
	assert_int_equal(ask(other, "GET", WIDGETS, ""), 503);
	fixture->other->kinds.patience = VDI_KIND_PATIENCE;
	let_hear(fixture->other, ear);
	assert_int_equal(ask(other, "GET", WIDGETS, ""), 200);
	/* And the server's end is one. */
	fixture->other->kinds.patience = VD_SECONDS(3600);
	vdi_wait_init(&never.wait, fixture->env);
	assert_status(vdi_kinds_await(&fixture->other->kinds, vd_bytes_of("widgets.example.com"), INT64_MAX,
				      decided, &never),
		      VD_OK);
	AWAIT(has_waiters(fixture->other));
	fixture->other = vd_server_free(fixture->other);
	vdi_wait_wait(&never.wait);
	assert_status(never.status, VD_CLOSED);
	vdi_wait_fini(&never.wait);
	(void) close(fd);
	(void) close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_kind_is_served_by_all_loops_or_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_server_is_ready_when_all_loops_serve_all_kinds, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_kind_of_another_server_is_waited_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_wait_for_a_kind_has_an_end, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
