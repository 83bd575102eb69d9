/* Threads that are lent to a pool: lib/env/actor_threads.h. The pool has one thread, which some tests keep
 * busy, so that whose thread runs what is known. */
#include <pthread.h>
#include <stdatomic.h>

#include "actor_threads.h"
#include "env.h"
#include "vdtest.h"
#include "wait.h"

#define PASSES 20000
#define LONG_TURN VD_MS(300)
#define ATTEMPTS 1000

struct world {
	struct vd_env	 *env;
	struct vd_actor	 *busy; /* holds the pool's thread until it is let go */
	pthread_barrier_t barrier;
	struct vdi_wait	  let_go;

	struct vd_actor *lender;
	void (*lend)(struct world *world);
	struct vdi_wait done;

	struct vd_actor *first;
	struct vd_actor *second;
	atomic_uint	 runs;
	atomic_uint	 lent_runs; /* of these, on the lender's thread */
	unsigned	 runs_wanted;
	unsigned	 passes;
};

static __thread bool is_lender;

static void hold(void *arg)
{
	struct world *world = arg;

	pthread_barrier_wait(&world->barrier);
	vdi_wait_wait(&world->let_go);
}

static void run_lender(void *arg)
{
	struct world *world = arg;

	is_lender = true;
	world->lend(world);
}

static void count(struct world *world)
{
	atomic_fetch_add(&world->runs, 1);
	if (is_lender)
		atomic_fetch_add(&world->lent_runs, 1);
}

static void run_once(void *arg)
{
	count(arg);
}

static struct vd_actor *actor(struct world *world, void (*run)(void *arg))
{
	struct vd_actor_options options = { .name = "lent to", .run = run, .arg = world };
	struct vd_actor	       *made;

	assert_status(vd_actor_new(world->env, &options, &made), VD_OK);
	return made;
}

static void open_world(struct world *world, void (*lend)(struct world *world), void (*first)(void *arg),
		       void (*second)(void *arg))
{
	struct vd_actor_options lender = {
		.name = "lender", .run = run_lender, .arg = world, .blocking = true
	};
	struct vd_env_options options = VD_ENV_OPTIONS_INIT;

	memset(world, 0, sizeof *world);
	options.threads = 1;
	assert_status(vd_env_new_threads(&options, &world->env), VD_OK);
	assert_int_equal(pthread_barrier_init(&world->barrier, NULL, 2), 0);
	vdi_wait_init(&world->let_go, world->env);
	vdi_wait_init(&world->done, world->env);
	world->lend = lend;
	assert_status(vd_actor_new(world->env, &lender, &world->lender), VD_OK);
	world->first = actor(world, first);
	world->second = actor(world, second);
	world->busy = actor(world, hold);
}

static void keep_pool_busy(struct world *world)
{
	vd_actor_wake(world->busy);
	pthread_barrier_wait(&world->barrier);
}

static void close_world(struct world *world)
{
	vdi_wait_for_actor_close(world->env, world->lender);
	vdi_wait_for_actor_close(world->env, world->first);
	vdi_wait_for_actor_close(world->env, world->second);
	vdi_wait_for_actor_close(world->env, world->busy);
	vd_env_free(world->env);
	vdi_wait_fini(&world->done);
	vdi_wait_fini(&world->let_go);
	pthread_barrier_destroy(&world->barrier);
}

/* ---- ---- */

static void lend_to_first(struct world *world)
{
	vdi_actor_lend_begin();
	vd_actor_wake(world->first);
	vdi_actor_lend_end();
	vdi_wait_signal(&world->done);
}

static void run_and_wake_second(void *arg)
{
	struct world *world = arg;

	count(world);
	vd_actor_wake(world->second);
}

/* How many of the two ran on the lent thread: the second one does not when the first has taken too long
 * already, which the scheduler may make of any turn. */
static unsigned lend_to_a_chain(void)
{
	struct world world;
	unsigned     runs;

	open_world(&world, lend_to_first, run_and_wake_second, run_once);
	keep_pool_busy(&world);
	vd_actor_wake(world.lender);
	vdi_wait_wait(&world.done);
	runs = atomic_load(&world.runs);
	assert_int_equal(atomic_load(&world.lent_runs), runs);
	vdi_wait_signal(&world.let_go);
	close_world(&world);
	return runs;
}

static void what_a_lent_thread_woke_runs_on_it_and_what_that_woke_too(void **state)
{
	unsigned runs = 0;

	(void) state;
	for (unsigned attempt = 0; attempt < ATTEMPTS && runs < 2; attempt++) {
		runs = lend_to_a_chain();
		assert_true(runs >= 1);
	}
	assert_int_equal(runs, 2);
}

/* ---- ---- */

static void meet(void *arg)
{
	struct world *world = arg;

	count(world);
	pthread_barrier_wait(&world->barrier);
}

static void lend_to_both(struct world *world)
{
	vdi_actor_lend_begin();
	vd_actor_wake(world->first);
	vd_actor_wake(world->second);
	vdi_actor_lend_end();
	vdi_wait_signal(&world->done);
}

static void a_second_one_gets_a_thread_of_the_pool(void **state)
{
	struct world world;

	(void) state;
	open_world(&world, lend_to_both, meet, meet);
	vd_actor_wake(world.lender);
	vdi_wait_wait(&world.done);
	assert_int_equal(atomic_load(&world.runs), 2);
	close_world(&world);
}

/* ---- ---- */

static void run_on(void *arg)
{
	struct world *world = arg;

	count(world);
	if (atomic_load(&world->runs) < world->runs_wanted)
		vd_actor_wake(world->first);
	else
		vdi_wait_signal(&world->let_go);
}

static void an_endless_chain_goes_on_in_the_pool(void **state)
{
	struct world world;
	unsigned     lent_runs;

	(void) state;
	open_world(&world, lend_to_first, run_on, run_once);
	world.runs_wanted = 1000;
	vd_actor_wake(world.lender);
	vdi_wait_wait(&world.done);
	lent_runs = atomic_load(&world.lent_runs);
	assert_true(lent_runs <= 16);
	vdi_wait_wait(&world.let_go);
	assert_int_equal(atomic_load(&world.runs), 1000);
	assert_int_equal(atomic_load(&world.lent_runs), lent_runs);
	close_world(&world);
}

/* ---- ---- */

static void take_long(void *arg)
{
	struct world *world = arg;
	vd_mono	      until = vd_mono_add(vd_env_now(world->env), LONG_TURN);

	count(world);
	while (vd_env_now(world->env).ns < until.ns)
		continue;
}

static void lend_twice(struct world *world)
{
	vdi_actor_lend_begin();
	vd_actor_wake(world->first);
	vdi_actor_lend_end();
	assert_int_equal(atomic_load(&world->lent_runs), 1);
	lend_to_first(world);
}

static void who_took_long_is_not_lent_to_again_soon(void **state)
{
	struct world world;

	(void) state;
	open_world(&world, lend_twice, take_long, run_once);
	keep_pool_busy(&world);
	vd_actor_wake(world.lender);
	vdi_wait_wait(&world.done);
	assert_int_equal(atomic_load(&world.runs), 1); /* the other waits for the pool's thread */
	vdi_wait_signal(&world.let_go);
	close_world(&world); /* the first is closed after it has run, or without */
	assert_int_equal(atomic_load(&world.lent_runs), 1);
}

/* ---- ---- */

/* Every pass needs each wake; one that got lost would end them. Others wake meanwhile. */
static void pass_back(void *arg)
{
	struct world *world = arg;

	vd_actor_wake(world->lender);
}

static void pass(struct world *world)
{
	if (world->passes++ == PASSES) {
		vdi_wait_signal(&world->done);
		return;
	}
	vdi_actor_lend_begin();
	vd_actor_wake(world->first);
	if (world->passes % 3 == 0)
		vd_actor_wake(world->second);
	vdi_actor_lend_end();
}

static void no_wake_gets_lost(void **state)
{
	struct world world;

	(void) state;
	open_world(&world, pass, pass_back, run_once);
	vd_actor_wake(world.lender);
	while (!vdi_wait_is_done(&world.done))
		vd_actor_wake(world.second);
	vdi_wait_wait(&world.done);
	close_world(&world);
}

/* The same with nobody else about: all threads go to sleep in between. */
static void no_wake_gets_lost_in_silence(void **state)
{
	struct world world;

	(void) state;
	open_world(&world, pass, pass_back, run_once);
	vd_actor_wake(world.lender);
	vdi_wait_wait(&world.done);
	close_world(&world);
}

/* ---- ---- */

static void say_done(void *arg)
{
	struct world *world = arg;

	count(world);
	vdi_wait_signal(&world->done);
}

static void on_other_threads_it_does_nothing(void **state)
{
	struct world world;

	(void) state;
	open_world(&world, lend_to_first, say_done, run_once);
	is_lender = true;
	vdi_actor_lend_begin();
	vd_actor_wake(world.first);
	vdi_actor_lend_end();
	vdi_wait_wait(&world.done);
	is_lender = false;
	assert_int_equal(atomic_load(&world.lent_runs), 0);
	close_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_lent_thread_woke_runs_on_it_and_what_that_woke_too),
		cmocka_unit_test(a_second_one_gets_a_thread_of_the_pool),
		cmocka_unit_test(an_endless_chain_goes_on_in_the_pool),
		cmocka_unit_test(who_took_long_is_not_lent_to_again_soon),
		cmocka_unit_test(no_wake_gets_lost),
		cmocka_unit_test(no_wake_gets_lost_in_silence),
		cmocka_unit_test(on_other_threads_it_does_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
