/* Actors on a poller: the common suite, run by a thread that polls as an embedder would; and when the
 * descriptor is readable. */
#include "actor_poll.h"

#include <poll.h>
#include <unistd.h>

#include "actor_suite.h"

struct poll_world {
	struct vd_poller *poller;
	pthread_t	  thread;
	int		  stop[2];
};

static void *poll_for_ever(void *arg)
{
	struct poll_world *own = arg;
	struct pollfd	   fds[2] = { { vd_poller_fd(own->poller), POLLIN, 0 }, { own->stop[0], POLLIN, 0 } };

	while (!(fds[1].revents & (POLLIN | POLLHUP))) {
		assert_true(poll(fds, 2, -1) > 0);
		if (fds[0].revents & POLLIN)
			vd_poller_run(own->poller);
	}
	return NULL;
}

static void poll_world_free(struct actor_world *world)
{
	struct poll_world *own = world->own;

	close(own->stop[1]);
	pthread_join(own->thread, NULL);
	close(own->stop[0]);
	assert_null(vd_poller_free(own->poller));
	assert_null(vd_env_free(world->env));
	free(own);
}

static void new_env(struct vd_env **ret_env)
{
	struct vd_env_options options = VD_ENV_OPTIONS_INIT;

	options.threads = 1;
	assert_status(vd_env_new_threads(&options, ret_env), VD_OK);
}

static void actor_world_init(struct actor_world *world)
{
	struct poll_world *own = calloc(1, sizeof *own);

	new_env(&world->env);
	assert_status(vd_poller_new(world->env, &own->poller), VD_OK);
	assert_int_equal(pipe(own->stop), 0);
	assert_int_equal(pthread_create(&own->thread, NULL, poll_for_ever, own), 0);
	world->own = own;
	world->executor = vd_poller_executor(own->poller);
	world->waker_threads = 3;
	world->free = poll_world_free;
}

static bool is_readable(struct vd_poller *poller)
{
	struct pollfd fd = { vd_poller_fd(poller), POLLIN, 0 };

	assert_true(poll(&fd, 1, 0) >= 0);
	return fd.revents & POLLIN;
}

struct lazy {
	struct vd_actor *actor;
	unsigned	 runs, wakes_left;
	vd_mono		 timer;
	bool		 is_done;
};

static void lazy_run(void *arg)
{
	struct lazy *lazy = arg;

	lazy->runs++;
	if (lazy->wakes_left) {
		lazy->wakes_left--;
		vd_actor_wake(lazy->actor);
	}
	if (lazy->timer.ns)
		vd_actor_set_timer(lazy->actor, lazy->timer);
	lazy->timer.ns = 0;
}

static void lazy_done(void *arg)
{
	((struct lazy *) arg)->is_done = true;
}

static void it_is_readable_while_there_is_something_to_do(void **state)
{
	struct lazy		lazy = { 0 };
	struct vd_actor_options options = { .name = "lazy", .run = lazy_run, .arg = &lazy };
	struct vd_poller       *poller;
	struct vd_env	       *env;
	vd_mono			due;

	new_env(&env);
	assert_status(vd_poller_new(env, &poller), VD_OK);
	assert_status(vd_executor_actor_new(vd_poller_executor(poller), &options, &lazy.actor), VD_OK);
	assert_false(is_readable(poller));
	assert_int_equal(vd_poller_run(poller), 0);
	vd_actor_wake(lazy.actor);
	vd_actor_wake(lazy.actor);
	assert_true(is_readable(poller));
	assert_int_equal(vd_poller_run(poller), 1);
	assert_false(is_readable(poller));
	/* A round is bounded; what is left keeps the descriptor readable. */
	lazy.wakes_left = VDI_POLLER_RUN_MAX + 5;
	vd_actor_wake(lazy.actor);
	assert_int_equal(vd_poller_run(poller), VDI_POLLER_RUN_MAX);
	assert_true(is_readable(poller));
	assert_int_equal(vd_poller_run(poller), 6);
	assert_false(is_readable(poller));
	/* A timer: from outside and from inside, earlier, later, never. */
	lazy.runs = 0;
	vd_actor_set_timer(lazy.actor, vd_mono_add(vd_env_now(env), VD_SECONDS(1000)));
	assert_false(is_readable(poller));
	due = vd_mono_add(vd_env_now(env), VD_MS(5));
	vd_actor_set_timer(lazy.actor, due);
	{
		struct pollfd fd = { vd_poller_fd(poller), POLLIN, 0 };

		assert_int_equal(poll(&fd, 1, 10000), 1);
		assert_true(vd_env_now(env).ns >= due.ns);
	}
	assert_int_equal(vd_poller_run(poller), 1);
	assert_false(is_readable(poller));
	lazy.timer = vd_mono_add(vd_env_now(env), VD_MS(1));
	vd_actor_wake(lazy.actor);
	while (lazy.runs < 3)
		vd_poller_run(poller);
	assert_false(is_readable(poller));
	vd_actor_set_timer(lazy.actor, vd_env_now(env));
	vd_actor_set_timer(lazy.actor, VD_NEVER);
	assert_false(is_readable(poller));
	vd_actor_close(lazy.actor, lazy_done, &lazy);
	assert_true(is_readable(poller));
	vd_poller_run(poller);
	assert_true(lazy.is_done);
	vd_poller_free(poller);
	vd_env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ACTOR_SUITE,
		cmocka_unit_test(it_is_readable_while_there_is_something_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
