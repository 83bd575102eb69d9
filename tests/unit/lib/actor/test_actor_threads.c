/* Actors on a pool of threads: the common suite, and what only threads can do. */
#include "actor_suite.h"

#include "actor_threads.h"

static void threads_world_free(struct actor_world *world)
{
	assert_null(vd_env_free(world->env));
}

static void actor_world_init(struct actor_world *world)
{
	struct vd_env_options options = VD_ENV_OPTIONS_INIT;

	options.threads = 3;
	assert_status(vd_env_new_threads(&options, &world->env), VD_OK);
	world->executor = vdi_env_executor(world->env);
	world->waker_threads = 3;
	world->free = threads_world_free;
}

/* Two handlers that wait for each other show that they run at the same time. */
struct meeting {
	pthread_barrier_t barrier;
	struct vdi_wait	  met;
	bool		  signals;
};

static void meet(void *arg)
{
	struct meeting *meeting = arg;

	if (pthread_barrier_wait(&meeting->barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
		vdi_wait_signal(&meeting->met);
}

static void two_actors_meet(bool blocking)
{
	struct meeting		meeting;
	struct vd_actor_options options = {
		.name = "meeting", .run = meet, .arg = &meeting, .blocking = blocking
	};
	struct vd_env_options env_options = VD_ENV_OPTIONS_INIT;
	struct vd_env	     *env;
	struct vd_actor	     *a;
	struct vd_actor	     *b;

	env_options.threads = blocking ? 1 : 2;
	assert_status(vd_env_new_threads(&env_options, &env), VD_OK);
	assert_int_equal(pthread_barrier_init(&meeting.barrier, NULL, 2), 0);
	vdi_wait_init(&meeting.met, env);
	assert_status(vd_actor_new(env, &options, &a), VD_OK);
	assert_status(vd_actor_new(env, &options, &b), VD_OK);
	vd_actor_wake(a);
	vd_actor_wake(b);
	vdi_wait_wait(&meeting.met);
	vd_actor_close(a, NULL, NULL);
	vd_actor_close(b, NULL, NULL);
	vd_env_free(env);
	vdi_wait_fini(&meeting.met);
	pthread_barrier_destroy(&meeting.barrier);
}

static void two_actors_run_at_once_on_two_threads(void **state)
{
	(void) state;
	two_actors_meet(false);
}

static void blocking_actors_have_threads_of_their_own(void **state)
{
	(void) state;
	two_actors_meet(true);
}

/* A handler that stays in its thread until another actor, woken by it, has run. */
struct busy {
	struct vd_actor	 *first;
	struct vd_actor	 *second;
	struct vd_actor	 *third;
	pthread_barrier_t barrier;
	struct vdi_wait	  met;
};

static void wake_two_and_wait(void *arg)
{
	struct busy *busy = arg;

	vd_actor_wake(busy->second);
	vd_actor_wake(busy->third);
	pthread_barrier_wait(&busy->barrier);
	vdi_wait_signal(&busy->met);
}

static void come_to_barrier(void *arg)
{
	struct busy *busy = arg;

	pthread_barrier_wait(&busy->barrier);
}

static void run_nothing(void *arg)
{
	(void) arg;
}

/* The first one woken may wait for this thread, but with two in the queue a sleeper must come. */
static void a_busy_handler_that_wakes_two_calls_another_thread(void **state)
{
	struct busy		busy;
	struct vd_actor_options first = { .name = "first", .run = wake_two_and_wait, .arg = &busy };
	struct vd_actor_options second = { .name = "second", .run = come_to_barrier, .arg = &busy };
	struct vd_actor_options third = { .name = "third", .run = run_nothing };
	struct vd_env_options	env_options = VD_ENV_OPTIONS_INIT;
	struct vd_env	       *env;

	(void) state;
	env_options.threads = 2;
	assert_status(vd_env_new_threads(&env_options, &env), VD_OK);
	for (int i = 0; i < 200; i++) {
		assert_int_equal(pthread_barrier_init(&busy.barrier, NULL, 2), 0);
		vdi_wait_init(&busy.met, env);
		assert_status(vd_actor_new(env, &first, &busy.first), VD_OK);
		assert_status(vd_actor_new(env, &second, &busy.second), VD_OK);
		assert_status(vd_actor_new(env, &third, &busy.third), VD_OK);
		vd_actor_wake(busy.first);
		vdi_wait_wait(&busy.met);
		vdi_wait_for_actor_close(env, busy.first);
		vdi_wait_for_actor_close(env, busy.second);
		vdi_wait_for_actor_close(env, busy.third);
		vdi_wait_fini(&busy.met);
		pthread_barrier_destroy(&busy.barrier);
	}
	vd_env_free(env);
}

struct late {
	struct vd_actor *woken;
	struct vd_actor *messenger; /* on a thread of its own, whom no hold concerns */
	struct vdi_wait	 ran, answered;
	atomic_uint	 runs;
};

static void note_late(void *arg)
{
	struct late *late = arg;

	atomic_fetch_add(&late->runs, 1);
	vdi_wait_signal(&late->ran);
}

static void answer_late(void *arg)
{
	vdi_wait_signal(&((struct late *) arg)->answered);
}

/* As long as it takes to get up a thread that sleeps. */
static void ask_messenger(struct late *late, struct vd_env *env)
{
	vdi_wait_init(&late->answered, env);
	vd_actor_wake(late->messenger);
	vdi_wait_wait(&late->answered);
	vdi_wait_fini(&late->answered);
}

/* Calls that are held back come when the last hold is over, and none is lost. That none comes before can only
 * be seen in the many: a thread that had not gone to sleep yet needs no call. */
static void calls_that_are_held_come_with_the_release(void **state)
{
	struct late		late = { .runs = 0 };
	struct vd_actor_options woken = { .name = "woken", .run = note_late, .arg = &late };
	struct vd_actor_options messenger = {
		.name = "messenger", .run = answer_late, .arg = &late, .blocking = true
	};
	struct vd_env_options env_options = VD_ENV_OPTIONS_INIT;
	struct vd_env	     *env;
	const unsigned	      rounds = 200;
	unsigned	      early = 0;

	(void) state;
	env_options.threads = 1;
	assert_status(vd_env_new_threads(&env_options, &env), VD_OK);
	assert_status(vd_actor_new(env, &woken, &late.woken), VD_OK);
	assert_status(vd_actor_new(env, &messenger, &late.messenger), VD_OK);
	for (unsigned i = 0; i < rounds; i++) {
		vdi_wait_init(&late.ran, env);
		ask_messenger(&late, env);
		vdi_actor_calls_hold();
		vdi_actor_calls_hold();
		vd_actor_wake(late.woken);
		vdi_actor_calls_release();
		vdi_actor_calls_hold();
		vdi_actor_calls_release();
		vdi_actor_calls_release();
		vdi_wait_wait(&late.ran); /* or the test would hang */
		vdi_wait_fini(&late.ran);
		vdi_wait_init(&late.ran, env);
		ask_messenger(&late, env);
		vdi_actor_calls_hold();
		vd_actor_wake(late.woken);
		for (unsigned j = 0; j < 4; j++)
			ask_messenger(&late, env);
		early += atomic_load(&late.runs) > 2 * i + 1;
		vdi_actor_calls_release();
		vdi_wait_wait(&late.ran);
		vdi_wait_fini(&late.ran);
		assert_int_equal(atomic_load(&late.runs), 2 * i + 2);
	}
	assert_true(early < rounds / 2);
	vdi_wait_for_actor_close(env, late.woken);
	vdi_wait_for_actor_close(env, late.messenger);
	vd_env_free(env);
}

/* One call for a sleeper answers a burst of wakes: the one who comes calls the next. */
struct burst {
	struct vd_actor	 *actors[3];
	pthread_barrier_t barrier;
	struct vdi_wait	  met;
};

static void wake_three(void *arg)
{
	struct burst *burst = arg;

	for (size_t i = 0; i < 3; i++)
		vd_actor_wake(burst->actors[i]);
}

static void meet_in_burst(void *arg)
{
	struct burst *burst = arg;

	if (pthread_barrier_wait(&burst->barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
		vdi_wait_signal(&burst->met);
}

static void a_burst_of_wakes_gets_all_threads_up(void **state)
{
	struct burst		burst;
	struct vd_actor_options waker = { .name = "waker", .run = wake_three, .arg = &burst };
	struct vd_actor_options member = { .name = "member", .run = meet_in_burst, .arg = &burst };
	struct actor_world	world;
	struct vd_actor	       *first;

	(void) state;
	actor_world_init(&world);
	assert_int_equal(pthread_barrier_init(&burst.barrier, NULL, 3), 0);
	assert_status(vd_actor_new(world.env, &waker, &first), VD_OK);
	for (size_t i = 0; i < 3; i++)
		assert_status(vd_actor_new(world.env, &member, &burst.actors[i]), VD_OK);
	for (int round = 0; round < 200; round++) {
		vdi_wait_init(&burst.met, world.env);
		vd_actor_wake(first);
		vdi_wait_wait(&burst.met);
		vdi_wait_fini(&burst.met);
	}
	for (size_t i = 0; i < 3; i++)
		vdi_wait_for_actor_close(world.env, burst.actors[i]);
	vdi_wait_for_actor_close(world.env, first);
	world.free(&world);
	pthread_barrier_destroy(&burst.barrier);
}

/* A blocking actor keeps the promises of the others: coalescing, timers, closing from inside. */
static void blocking_probe_init(struct probe *probe, struct actor_world *world)
{
	struct vd_actor_options options = {
		.name = "blocking", .run = probe_run, .arg = probe, .blocking = true
	};

	memset(probe, 0, sizeof *probe);
	probe->world = world;
	assert_status(vd_actor_new(world->env, &options, &probe->actor), VD_OK);
}

static void a_blocking_actor_keeps_the_same_promises(void **state)
{
	struct actor_world world;
	struct probe	   probe;
	struct vdi_wait	   closed;

	(void) state;
	actor_world_init(&world);
	blocking_probe_init(&probe, &world);
	expect_runs(&probe, 1, act_wake);
	expect_runs(&probe, 2, act_timer);
	expect_runs(&probe, 3, act_timer_in_the_past);
	vd_actor_set_timer(probe.actor, after(&world, LONG_WAIT));
	expect_runs(&probe, 4, act_timer);
	atomic_store(&probe.wake_self, 3);
	expect_runs(&probe, 8, act_wake);
	probe_close(&probe);

	for (int i = 0; i < 20; i++) {
		blocking_probe_init(&probe, &world);
		vdi_wait_init(&closed, world.env);
		probe.closed = &closed;
		atomic_store(&probe.close_inside, true);
		vd_actor_wake(probe.actor);
		vdi_wait_wait(&closed);
		vdi_wait_fini(&closed);
		assert_int_equal(atomic_load(&probe.runs), 1);
	}
	world.free(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ACTOR_SUITE,
		cmocka_unit_test(two_actors_run_at_once_on_two_threads),
		cmocka_unit_test(blocking_actors_have_threads_of_their_own),
		cmocka_unit_test(a_busy_handler_that_wakes_two_calls_another_thread),
		cmocka_unit_test(calls_that_are_held_come_with_the_release),
		cmocka_unit_test(a_burst_of_wakes_gets_all_threads_up),
		cmocka_unit_test(a_blocking_actor_keeps_the_same_promises),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
