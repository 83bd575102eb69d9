/* The tests that every executor of actors must pass, run by test_actor_threads.c, test_actor_loop.c and
 * test_actor_sim.c, each with a struct actor_world.
 *
 * Nothing here sleeps. The tests wait for real executors with a lock and a condition, and step the simulator.
 */
#ifndef ACTOR_SUITE_H
#define ACTOR_SUITE_H

#include <pthread.h>
#include <stdatomic.h>

#include "actor_sim.h"
#include "await.h"
#include "env.h"
#include "vdtest.h"
#include "wait.h"

struct actor_world {
	struct vd_env		 *env;
	const struct vd_executor *executor;
	unsigned waker_threads; /* threads that torture it from outside; 0 for the simulator */
	void (*free)(struct actor_world *world);
	void *own;
};

/* Each executor's test file defines it. */
static void actor_world_init(struct actor_world *world);

#define LONG_WAIT VD_SECONDS(100)

static inline vd_mono after(struct actor_world *world, vd_dur wait)
{
	return vd_mono_add(vd_env_now(world->env), wait);
}

/* ---- One probe actor ---- */

struct probe {
	struct actor_world *world;
	struct vd_actor	   *actor;
	atomic_int	    inside; /* runs at this moment: never above 1 */
	_Atomic uint64_t    runs;
	_Atomic uint64_t    posted; /* written relaxed before a wake ... */
	_Atomic uint64_t    seen;   /* ... and read by the handler */
	atomic_bool	    is_done;

	/* Actions of the next run. */
	atomic_bool	 close_inside;
	_Atomic uint64_t wake_self;   /* times */
	_Atomic uint64_t runs_wanted; /* signals wait when reached */
	struct vdi_wait *wait;
	struct vdi_wait *closed;
	int		*order; /* appends its id to a list */
	int		*order_count;
	int		 id;
};

static void probe_done(void *arg)
{
	struct probe *probe = arg;

	assert_int_equal(atomic_load(&probe->inside), 0);
	assert_false(atomic_exchange(&probe->is_done, true));
	if (probe->closed)
		vdi_wait_signal(probe->closed);
}

static void probe_run(void *arg)
{
	struct probe *probe = arg;
	uint64_t      runs;

	assert_int_equal(atomic_fetch_add(&probe->inside, 1), 0);
	assert_false(atomic_load(&probe->is_done));
	atomic_store_explicit(&probe->seen, atomic_load_explicit(&probe->posted, memory_order_relaxed),
			      memory_order_relaxed);
	if (probe->order)
		probe->order[(*probe->order_count)++] = probe->id;
	if (atomic_load(&probe->wake_self)) {
		atomic_fetch_sub(&probe->wake_self, 1);
		vd_actor_wake(probe->actor);
	}
	runs = atomic_fetch_add(&probe->runs, 1) + 1;
	if (atomic_load(&probe->close_inside)) {
		vd_actor_close(probe->actor, probe_done, probe);
		/* Both are harmless now, and both must not bring it back. */
		vd_actor_wake(probe->actor);
		vd_actor_set_timer(probe->actor, after(probe->world, VD_MS(1)));
		assert_false(atomic_load(&probe->is_done));
	}
	atomic_fetch_sub(&probe->inside, 1);
	if (probe->wait && runs == atomic_load(&probe->runs_wanted))
		vdi_wait_signal(probe->wait);
}

static void probe_init(struct probe *probe, struct actor_world *world)
{
	struct vd_actor_options options = { .name = "probe", .run = probe_run, .arg = probe };

	memset(probe, 0, sizeof *probe);
	probe->world = world;
	assert_status(vd_executor_actor_new(world->executor, &options, &probe->actor), VD_OK);
}

static void probe_close(struct probe *probe)
{
	struct vdi_wait closed;

	vdi_wait_init(&closed, probe->world->env);
	probe->closed = &closed;
	vd_actor_close(probe->actor, probe_done, probe);
	vdi_wait_wait(&closed);
	vdi_wait_fini(&closed);
	assert_true(atomic_load(&probe->is_done));
}

/* Calls act (a wake, a timer) and waits until the probe has run `runs` times in all. */
static void expect_runs(struct probe *probe, uint64_t runs, void (*act)(struct probe *probe))
{
	struct vdi_wait wait;

	vdi_wait_init(&wait, probe->world->env);
	probe->wait = &wait;
	atomic_store(&probe->runs_wanted, runs);
	act(probe);
	assert_true(vdi_wait_until(&wait, after(probe->world, LONG_WAIT)));
	probe->wait = NULL;
	vdi_wait_fini(&wait);
	assert_int_equal(atomic_load(&probe->runs), runs);
}

static void act_wake(struct probe *probe)
{
	vd_actor_wake(probe->actor);
}

static void act_timer(struct probe *probe)
{
	vd_actor_set_timer(probe->actor, after(probe->world, VD_US(200)));
}

static void act_timer_in_the_past(struct probe *probe)
{
	vd_actor_set_timer(probe->actor, (vd_mono) { 1 });
}

/* ---- The tests ---- */

static void a_wake_runs_and_shows_what_was_written_before(void **state)
{
	struct actor_world world;
	struct probe	   probe;

	(void) state;
	actor_world_init(&world);
	probe_init(&probe, &world);
	for (uint64_t i = 1; i <= 100; i++) {
		atomic_store_explicit(&probe.posted, i, memory_order_relaxed);
		expect_runs(&probe, i, act_wake);
		assert_int_equal(atomic_load(&probe.seen), i);
	}
	probe_close(&probe);
	world.free(&world);
}

static void a_wake_from_the_handler_causes_one_more_run(void **state)
{
	struct actor_world world;
	struct probe	   probe;

	(void) state;
	actor_world_init(&world);
	probe_init(&probe, &world);
	atomic_store(&probe.wake_self, 5);
	expect_runs(&probe, 6, act_wake);
	probe_close(&probe);
	assert_int_equal(atomic_load(&probe.runs), 6);
	world.free(&world);
}

static void an_actor_runs_when_its_timer_is_due(void **state)
{
	struct actor_world world;
	struct probe	   probe;
	vd_mono		   start;

	(void) state;
	actor_world_init(&world);
	probe_init(&probe, &world);
	start = vd_env_now(world.env);
	expect_runs(&probe, 1, act_timer);
	assert_true(vd_env_now(world.env).ns - start.ns >= VD_US(200).ns);
	expect_runs(&probe, 2, act_timer_in_the_past);
	expect_runs(&probe, 3, act_timer);
	/* A wake leaves a timer as it is; VD_NEVER clears it; closing with a timer set is fine. */
	vd_actor_set_timer(probe.actor, after(&world, LONG_WAIT));
	expect_runs(&probe, 4, act_wake);
	vd_actor_set_timer(probe.actor, VD_NEVER);
	vd_actor_set_timer(probe.actor, after(&world, LONG_WAIT));
	probe_close(&probe);
	assert_int_equal(atomic_load(&probe.runs), 4);
	world.free(&world);
}

static void an_earlier_timer_replaces_a_later_one(void **state)
{
	struct actor_world world;
	struct probe	   probe;

	(void) state;
	actor_world_init(&world);
	probe_init(&probe, &world);
	for (uint64_t runs = 0; runs < 60; runs += 3) {
		vd_actor_set_timer(probe.actor, after(&world, LONG_WAIT));
		/* Gives the executor time to fall asleep until the later one. */
		expect_runs(&probe, runs + 1, act_wake);
		expect_runs(&probe, runs + 2, act_wake);
		expect_runs(&probe, runs + 3, act_timer);
	}
	probe_close(&probe);
	world.free(&world);
}

static void an_actor_may_close_itself(void **state)
{
	struct actor_world world;
	struct probe	   probe;
	struct vdi_wait	   closed;

	(void) state;
	actor_world_init(&world);
	probe_init(&probe, &world);
	vdi_wait_init(&closed, world.env);
	probe.closed = &closed;
	atomic_store(&probe.close_inside, true);
	vd_actor_wake(probe.actor);
	vdi_wait_wait(&closed);
	vdi_wait_fini(&closed);
	assert_int_equal(atomic_load(&probe.runs), 1);
	world.free(&world);
}

static void closing_ends_an_actor_that_is_queued_asleep_or_waits_for_a_timer(void **state)
{
	struct actor_world world;
	struct probe	   probe;

	(void) state;
	actor_world_init(&world);
	for (int i = 0; i < 300; i++) {
		probe_init(&probe, &world);
		if (i % 3 == 1)
			vd_actor_wake(probe.actor);
		if (i % 3 == 2)
			vd_actor_set_timer(probe.actor, vd_env_now(world.env));
		probe_close(&probe);
		assert_true(atomic_load(&probe.runs) <= 1);
	}
	vd_actor_close(NULL, NULL, NULL);
	world.free(&world);
}

/* ---- Many actors, random wakes, from everywhere ---- */

struct crowd {
	struct actor_world world;
	struct probe	  *probes;
	size_t		   count;
	_Atomic uint64_t   seed;
	_Atomic size_t	   closed;
};

static void crowd_wake_randomly(struct crowd *crowd, unsigned wakes)
{
	struct vdi_rand rand;

	vdi_rand_init(&rand, atomic_fetch_add(&crowd->seed, 1));
	for (unsigned i = 0; i < wakes; i++) {
		struct probe *probe = &crowd->probes[vdi_rand_below(&rand, crowd->count)];

		if (vdi_rand_once_in(&rand, 10))
			vd_actor_set_timer(probe->actor,
					   after(&crowd->world, VD_US(vdi_rand_below(&rand, 300))));
		if (vdi_rand_once_in(&rand, 20))
			atomic_store(&probe->wake_self, vdi_rand_below(&rand, 3));
		atomic_fetch_add_explicit(&probe->posted, 1, memory_order_relaxed);
		vd_actor_wake(probe->actor);
	}
}

static void *crowd_thread(void *arg)
{
	crowd_wake_randomly(arg, 20000);
	return NULL;
}

static void crowd_done(void *arg)
{
	struct crowd *crowd = arg;

	atomic_fetch_add(&crowd->closed, 1);
}

static void thousands_of_actors_and_random_wakes_lose_nothing(void **state)
{
	struct crowd crowd = { .count = 2000 };
	pthread_t    threads[8];
	int64_t	     live = vdi_alloc_live();

	(void) state;
	actor_world_init(&crowd.world);
	crowd.probes = test_calloc(crowd.count, sizeof *crowd.probes);
	for (size_t i = 0; i < crowd.count; i++)
		probe_init(&crowd.probes[i], &crowd.world);
	for (unsigned i = 0; i < crowd.world.waker_threads; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, crowd_thread, &crowd), 0);
	crowd_wake_randomly(&crowd, 20000);
	for (unsigned i = 0; i < crowd.world.waker_threads; i++)
		pthread_join(threads[i], NULL);
	/* The run that one more wake causes sees everything posted. */
	for (size_t i = 0; i < crowd.count; i++) {
		struct probe *probe = &crowd.probes[i];

		if (i % 50 == 0) {
			vd_actor_wake(probe->actor);
			AWAIT((vdi_env_sim(crowd.world.env) && (vdi_sim_step(crowd.world.env), false)) ||
			      atomic_load(&probe->seen) == atomic_load(&probe->posted));
		}
		probe_close(probe);
	}
	test_free(crowd.probes);
	crowd.world.free(&crowd.world);
	assert_int_equal(vdi_alloc_live(), live);
}

static void close_races_with_wakes_of_others(void **state)
{
	struct actor_world world;
	struct crowd	   crowd = { .count = 1000 };

	(void) state;
	actor_world_init(&world);
	crowd.world = world;
	crowd.probes = test_calloc(crowd.count, sizeof *crowd.probes);
	for (size_t i = 0; i < crowd.count; i++) {
		probe_init(&crowd.probes[i], &world);
		atomic_store(&crowd.probes[i].wake_self, i % 7);
		vd_actor_wake(crowd.probes[i].actor);
		if (i % 2)
			vd_actor_set_timer(crowd.probes[i].actor, vd_env_now(world.env));
	}
	for (size_t i = 0; i < crowd.count; i++)
		vd_actor_close(crowd.probes[i].actor, crowd_done, &crowd);
	world.free(&world);
	assert_int_equal(atomic_load(&crowd.closed), crowd.count);
	test_free(crowd.probes);
}

static void a_failed_allocation_makes_no_actor(void **state)
{
	struct vd_actor_options options = { .name = "probe", .run = probe_run };
	struct actor_world	world;
	struct vd_actor	       *actor = NULL;
	bool			failed = true;

	(void) state;
	actor_world_init(&world);
	for (int blocking = 0; blocking < 2; blocking++) {
		failed = true;
		for (uint64_t nth = 1; failed; nth++) {
			vd_status status;

			options.blocking = blocking;
			vdi_alloc_fail_nth(nth, 1);
			status = vd_executor_actor_new(world.executor, &options, &actor);
			failed = vdi_alloc_failed();
			vdi_alloc_fail_nth(0, 0);
			assert_status(status, failed ? VD_NOMEM : VD_OK);
		}
		vdi_wait_for_actor_close(world.env, actor);
	}
	world.free(&world);
}

static void an_actor_without_a_handler_is_refused(void **state)
{
	struct vd_actor_options options = { .name = "probe" };
	struct actor_world	world;
	struct vd_actor	       *actor = NULL;

	(void) state;
	actor_world_init(&world);
	assert_status(vd_executor_actor_new(world.executor, &options, &actor), VD_INVALID_ARGUMENT);
	assert_null(actor);
	world.free(&world);
}

#define ACTOR_SUITE                                                                                          \
	cmocka_unit_test(a_wake_runs_and_shows_what_was_written_before),                                     \
		cmocka_unit_test(a_wake_from_the_handler_causes_one_more_run),                               \
		cmocka_unit_test(an_actor_runs_when_its_timer_is_due),                                       \
		cmocka_unit_test(an_earlier_timer_replaces_a_later_one),                                     \
		cmocka_unit_test(an_actor_may_close_itself),                                                 \
		cmocka_unit_test(closing_ends_an_actor_that_is_queued_asleep_or_waits_for_a_timer),          \
		cmocka_unit_test(thousands_of_actors_and_random_wakes_lose_nothing),                         \
		cmocka_unit_test(close_races_with_wakes_of_others),                                          \
		cmocka_unit_test(a_failed_allocation_makes_no_actor),                                        \
		cmocka_unit_test(an_actor_without_a_handler_is_refused)

#endif
