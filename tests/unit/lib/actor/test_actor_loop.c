/* Actors on a libevent loop: the common suite, and how a loop starts, stops and shares its thread with
 * events. */
#include <event2/event.h>
#include <unistd.h>

#include "actor_loop.h"
#include "actor_suite.h"
#include "env.h"
#include "thread.h"

static void loop_world_free(struct actor_world *world)
{
	assert_null(vdi_loop_free(world->own));
	assert_null(vd_env_free(world->env));
}

static void new_env_and_loop(struct vd_env **ret_env, struct vdi_loop **ret_loop)
{
	struct vd_env_options options = VD_ENV_OPTIONS_INIT;

	options.threads = 1;
	assert_status(vd_env_new_threads(&options, ret_env), VD_OK);
	assert_status(vdi_loop_new(*ret_env, ret_loop), VD_OK);
}

static void actor_world_init(struct actor_world *world)
{
	struct vdi_loop *loop;

	new_env_and_loop(&world->env, &loop);
	assert_status(vdi_loop_start_thread(loop, "loop"), VD_OK);
	world->own = loop;
	world->executor = vdi_loop_executor(loop);
	world->waker_threads = 3;
	world->free = loop_world_free;
}

static void a_stop_before_the_run_ends_it_at_once(void **state)
{
	struct vd_env	*env;
	struct vdi_loop *loop;

	(void) state;
	new_env_and_loop(&env, &loop);
	vdi_loop_stop(loop);
	vdi_loop_run(loop);
	vdi_loop_stop(loop);
	vdi_loop_stop(loop);
	vdi_loop_run(loop);
	vdi_loop_free(loop);
	vd_env_free(env);
}

struct stopper {
	struct vdi_loop *loop;
	struct vd_actor *actor;
	int		 runs;
	int		 stop_after;
	int		 event_calls;
};

static void stopper_run(void *arg)
{
	struct stopper *stopper = arg;

	assert_true(vdi_loop_is_current(stopper->loop));
	if (++stopper->runs == stopper->stop_after)
		vdi_loop_stop(stopper->loop);
	else
		vd_actor_wake(stopper->actor);
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
	struct stopper *stopper = arg;

	(void) fd;
	(void) what;
	stopper->event_calls++;
	vd_actor_wake(stopper->actor); /* from the loop's own thread, outside an actor */
}

static void an_actor_awake_for_ever_leaves_events_their_turn(void **state)
{
	struct vd_env	       *env;
	struct stopper		stopper = { .stop_after = 20000 };
	struct vd_actor_options options = { .name = "stopper", .run = stopper_run, .arg = &stopper };
	struct event	       *event;
	int			pipe_fds[2];

	(void) state;
	new_env_and_loop(&env, &stopper.loop);
	assert_status(vd_executor_actor_new(vdi_loop_executor(stopper.loop), &options, &stopper.actor),
		      VD_OK);
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(write(pipe_fds[1], "x", 1), 1);
	event = event_new(vdi_loop_base(stopper.loop), pipe_fds[0], EV_READ | EV_PERSIST, on_event, &stopper);
	event_add(event, NULL);
	assert_false(vdi_loop_is_current(stopper.loop));
	vdi_loop_run(stopper.loop); /* the readable pipe alone must start the actor */
	assert_int_equal(stopper.runs, 20000);
	assert_true(stopper.event_calls > 19000); /* after each run */
	event_free(event);
	vd_actor_close(stopper.actor, NULL, NULL);
	vdi_loop_free(stopper.loop);
	vd_env_free(env);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

#define BURNERS 4

struct burner {
	struct vd_actor	    *actor;
	const struct vd_env *env;
	struct stopper	    *shared;
	int		     events_before; /* calls of the event until it ran */
};

static void burn(void *arg)
{
	struct burner *burner = arg;
	vd_mono	       until = vd_mono_add(vd_env_now(burner->env), (vd_dur) { 6000000 });

	burner->events_before = burner->shared->event_calls;
	while (vd_env_now(burner->env).ns < until.ns)
		continue;
	if (++burner->shared->runs == BURNERS)
		vdi_loop_stop(burner->shared->loop);
}

static void count_event(evutil_socket_t fd, short what, void *arg)
{
	(void) fd;
	(void) what;
	((struct stopper *) arg)->event_calls++;
}

/* Many at once that take some milliseconds each would be one iteration of all their time. */
static void actors_that_take_long_leave_events_their_turn(void **state)
{
	struct vd_env *env;
	struct stopper shared = { 0 };
	struct burner  burners[BURNERS];
	struct event  *event;
	int	       pipe_fds[2];

	(void) state;
	new_env_and_loop(&env, &shared.loop);
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(write(pipe_fds[1], "x", 1), 1);
	event = event_new(vdi_loop_base(shared.loop), pipe_fds[0], EV_READ | EV_PERSIST, count_event,
			  &shared);
	event_add(event, NULL);
	for (size_t i = 0; i < BURNERS; i++) {
		struct vd_actor_options options = { .name = "burner", .run = burn, .arg = &burners[i] };

		burners[i] = (struct burner) { .env = env, .shared = &shared };
		assert_status(
			vd_executor_actor_new(vdi_loop_executor(shared.loop), &options, &burners[i].actor),
			VD_OK);
		vd_actor_wake(burners[i].actor);
	}
	vdi_loop_run(shared.loop);
	assert_true(burners[BURNERS - 1].events_before > 0);
	for (size_t i = 0; i < BURNERS; i++)
		vd_actor_close(burners[i].actor, NULL, NULL);
	event_free(event);
	vdi_loop_free(shared.loop);
	vd_env_free(env);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

static void stop_loop(evutil_socket_t fd, short what, void *arg)
{
	(void) fd;
	(void) what;
	vdi_loop_stop(arg);
}

/* An iteration ends before the loop waits, the first one too. */
static void waiting_is_no_part_of_an_iteration(void **state)
{
	static const struct timeval wait = { 0, 40000 };
	struct vd_env		   *env;
	struct vdi_loop		   *loop;
	struct event		   *event;
	vd_mono			    began;
	vd_dur			    all;

	(void) state;
	new_env_and_loop(&env, &loop);
	event = evtimer_new(vdi_loop_base(loop), stop_loop, loop);
	evtimer_add(event, &wait);
	began = vd_env_now(env);
	vdi_loop_run(loop);
	all = vd_mono_since(vd_env_now(env), began);
	assert_true(vdi_loop_longest_iteration(loop).wall.ns <=
		    all.ns - 20000000); /* libevent's clock is coarse */
	event_free(event);
	vdi_loop_free(loop);
	vd_env_free(env);
}

static void burn_and_stop(evutil_socket_t fd, short what, void *arg)
{
	vd_dur until;

	(void) fd;
	(void) what;
	vdi_loop_note_work();
	until.ns = vdi_thread_cpu().ns + 3000000;
	while (vdi_thread_cpu().ns < until.ns)
		;
	vdi_loop_stop(arg);
}

/* What a callback burns is seen, and it is never more than the time that passed. */
static void the_cpu_time_of_a_long_iteration_is_noted(void **state)
{
	static const struct timeval at_once;
	struct vd_env		   *env;
	struct vdi_loop		   *loop;
	struct event		   *event;
	struct vdi_loop_iteration   longest;

	(void) state;
	new_env_and_loop(&env, &loop);
	event = evtimer_new(vdi_loop_base(loop), burn_and_stop, loop);
	evtimer_add(event, &at_once);
	vdi_loop_run(loop);
	longest = vdi_loop_longest_iteration(loop);
	assert_true(longest.cpu.ns >= 3000000);
	assert_true(longest.cpu.ns <= longest.wall.ns);
	event_free(event);
	vdi_loop_free(loop);
	vd_env_free(env);
}

static void note_done(void *arg)
{
	*(bool *) arg = true;
}

static void freeing_the_loop_ends_closed_actors(void **state)
{
	struct vd_env	       *env;
	struct vdi_loop	       *loop;
	struct stopper		stopper = { .stop_after = 1 };
	struct vd_actor_options options = { .name = "stopper", .run = stopper_run, .arg = &stopper };
	bool			is_done = false;

	(void) state;
	new_env_and_loop(&env, &loop);
	assert_status(vd_executor_actor_new(vdi_loop_executor(loop), &options, &stopper.actor), VD_OK);
	vd_actor_wake(stopper.actor);
	vd_actor_close(stopper.actor, note_done, &is_done);
	assert_false(is_done);
	vdi_loop_free(loop);
	assert_true(is_done);
	assert_int_equal(stopper.runs, 0);
	vd_env_free(env);
}

static void a_failed_allocation_makes_no_loop(void **state)
{
	struct vd_env	*env;
	struct vdi_loop *loop = NULL;

	(void) state;
	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	vdi_alloc_fail_nth(1, 1);
	assert_status(vdi_loop_new(env, &loop), VD_NOMEM);
	vdi_alloc_fail_nth(0, 0);
	assert_null(loop);
	assert_null(vdi_loop_free(NULL));
	vd_env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ACTOR_SUITE,
		cmocka_unit_test(a_stop_before_the_run_ends_it_at_once),
		cmocka_unit_test(an_actor_awake_for_ever_leaves_events_their_turn),
		cmocka_unit_test(actors_that_take_long_leave_events_their_turn),
		cmocka_unit_test(waiting_is_no_part_of_an_iteration),
		cmocka_unit_test(the_cpu_time_of_a_long_iteration_is_noted),
		cmocka_unit_test(freeing_the_loop_ends_closed_actors),
		cmocka_unit_test(a_failed_allocation_makes_no_loop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
