/* Actors in the simulator: the common suite, and that a run is its seed. */
#include "actor_suite.h"

static void sim_world_free(struct actor_world *world)
{
	assert_null(vd_env_free(world->env));
}

static void actor_world_init(struct actor_world *world)
{
	assert_status(vdi_env_new_sim(7, NULL, NULL, &world->env), VD_OK);
	world->executor = vdi_env_executor(world->env);
	world->waker_threads = 0;
	world->free = sim_world_free;
}

static void sim_init(struct actor_world *world, uint64_t seed)
{
	assert_status(vdi_env_new_sim(seed, NULL, NULL, &world->env), VD_OK);
	world->executor = vdi_env_executor(world->env);
	world->waker_threads = 0;
	world->free = sim_world_free;
}

/* A workload: twenty actors that wake themselves a few times and have timers. */
static uint64_t schedule_of(uint64_t seed, vd_dur step_delay)
{
	struct actor_world world;
	struct probe	   probes[20];
	uint64_t	   hash;

	sim_init(&world, seed);
	vdi_sim_set_step_delay(world.env, step_delay);
	for (int i = 0; i < 20; i++) {
		probe_init(&probes[i], &world);
		atomic_store(&probes[i].wake_self, i % 4);
		vd_actor_wake(probes[i].actor);
		vd_actor_set_timer(probes[i].actor, after(&world, VD_MS(vd_env_random_below(world.env, 5))));
	}
	vdi_sim_advance(world.env, VD_MS(10));
	for (int i = 0; i < 20; i++)
		probe_close(&probes[i]);
	hash = vdi_sim_schedule_hash(world.env);
	world.free(&world);
	return hash;
}

static void the_same_seed_gives_the_same_schedule(void **state)
{
	(void) state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		assert_true(schedule_of(seed, VD_US(0)) == schedule_of(seed, VD_US(0)));
		assert_true(schedule_of(seed, VD_US(900)) == schedule_of(seed, VD_US(900)));
		assert_true(schedule_of(seed, VD_US(0)) != schedule_of(seed + 1, VD_US(0)));
		assert_true(schedule_of(seed, VD_US(0)) != schedule_of(seed, VD_US(900)));
	}
}

/* Ten actors, all ready at once, and no random numbers but the simulator's own. */
static void another_seed_gives_another_order(void **state)
{
	uint64_t hashes[20];
	unsigned distinct = 0;

	(void) state;
	for (uint64_t seed = 0; seed < VDI_ARRAY_SIZE(hashes); seed++) {
		struct actor_world world;
		struct probe	   probes[10];
		bool		   is_new = true;

		sim_init(&world, seed);
		for (int i = 0; i < 10; i++) {
			probe_init(&probes[i], &world);
			vd_actor_wake(probes[i].actor);
		}
		assert_int_equal(vdi_sim_run_until_idle(world.env), 10);
		hashes[seed] = vdi_sim_schedule_hash(world.env);
		for (uint64_t other = 0; other < seed; other++)
			is_new = is_new && hashes[other] != hashes[seed];
		distinct += is_new;
		for (int i = 0; i < 10; i++)
			probe_close(&probes[i]);
		world.free(&world);
	}
	assert_true(distinct > 15);
}

static void wakes_coalesce_into_one_run(void **state)
{
	struct actor_world world;
	struct probe	   probe;

	(void) state;
	actor_world_init(&world);
	probe_init(&probe, &world);
	for (int i = 0; i < 10; i++)
		vd_actor_wake(probe.actor);
	assert_int_equal(vdi_sim_run_until_idle(world.env), 1);
	assert_false(vdi_sim_step(world.env));
	probe_close(&probe);
	world.free(&world);
}

static void advance_stops_at_every_timer_in_order(void **state)
{
	struct actor_world world;
	struct probe	   probes[5];
	int		   order[16];
	int		   count = 0;
	vd_mono		   start;

	(void) state;
	actor_world_init(&world);
	start = vd_env_now(world.env);
	for (int i = 0; i < 5; i++) {
		probe_init(&probes[i], &world);
		probes[i].order = order;
		probes[i].order_count = &count;
		probes[i].id = i;
		vd_actor_set_timer(probes[i].actor, after(&world, VD_SECONDS(5 - i)));
	}
	vdi_sim_advance(world.env, VD_SECONDS(3));
	assert_int_equal(count, 3);
	assert_int_equal(order[0], 4);
	assert_int_equal(order[1], 3);
	assert_int_equal(order[2], 2);
	assert_true(vd_env_now(world.env).ns - start.ns == VD_SECONDS(3).ns);
	assert_true(vdi_sim_advance_to_next_timer(world.env));
	assert_int_equal(count, 3); /* ready, not run */
	assert_true(vdi_sim_step(world.env));
	assert_int_equal(order[3], 1);
	assert_true(vd_env_now(world.env).ns - start.ns == VD_SECONDS(4).ns);
	assert_true(vdi_sim_advance_to_next_timer(world.env));
	assert_false(vdi_sim_advance_to_next_timer(world.env));
	for (int i = 0; i < 5; i++)
		probe_close(&probes[i]);
	assert_int_equal(vdi_sim_actors(world.env), 0);
	world.free(&world);
}

static bool has_run(void *arg)
{
	struct probe *probe = arg;

	return atomic_load(&probe->runs) > 0;
}

static void run_until_jumps_and_gives_up(void **state)
{
	struct actor_world world;
	struct probe	   probe;
	vd_mono		   start;

	(void) state;
	actor_world_init(&world);
	probe_init(&probe, &world);
	start = vd_env_now(world.env);
	/* Nothing can ever happen: no time passes while finding out, unless there is a limit to reach. */
	assert_false(vdi_sim_run_until(world.env, has_run, &probe, (vd_dur) { INT64_MAX }));
	assert_true(vd_env_now(world.env).ns == start.ns);
	vd_actor_set_timer(probe.actor, after(&world, VD_SECONDS(60)));
	assert_false(vdi_sim_run_until(world.env, has_run, &probe, VD_SECONDS(59)));
	assert_true(vd_env_now(world.env).ns - start.ns == VD_SECONDS(59).ns);
	assert_true(vdi_sim_run_until(world.env, has_run, &probe, VD_SECONDS(1)));
	assert_true(vd_env_now(world.env).ns - start.ns == VD_SECONDS(60).ns);
	probe_close(&probe);
	world.free(&world);
}

static void wall_time_jumps_alone(void **state)
{
	struct actor_world world;
	vd_mono		   mono;
	vd_wall		   wall;

	(void) state;
	actor_world_init(&world);
	mono = vd_env_now(world.env);
	wall = vd_env_wall(world.env);
	vdi_sim_jump_wall(world.env, (vd_dur) { -VD_SECONDS(3600).ns });
	assert_true(vd_env_now(world.env).ns == mono.ns);
	assert_true(vd_env_wall(world.env).ns == wall.ns - VD_SECONDS(3600).ns);
	vdi_sim_advance(world.env, VD_SECONDS(1));
	assert_true(vd_env_wall(world.env).ns == wall.ns - VD_SECONDS(3599).ns);
	world.free(&world);
}

static void a_failed_allocation_makes_no_env(void **state)
{
	struct vd_env *env = NULL;
	int64_t	       live = vdi_alloc_live();
	bool	       failed = true;

	(void) state;
	for (uint64_t nth = 1; failed; nth++) {
		vd_status status;

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_env_new_sim(1, NULL, NULL, &env);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		assert_true(failed == (env == NULL));
	}
	vd_env_free(env);
	assert_int_equal(vdi_alloc_live(), live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ACTOR_SUITE,
		cmocka_unit_test(the_same_seed_gives_the_same_schedule),
		cmocka_unit_test(another_seed_gives_another_order),
		cmocka_unit_test(wakes_coalesce_into_one_run),
		cmocka_unit_test(advance_stops_at_every_timer_in_order),
		cmocka_unit_test(run_until_jumps_and_gives_up),
		cmocka_unit_test(wall_time_jumps_alone),
		cmocka_unit_test(a_failed_allocation_makes_no_env),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
