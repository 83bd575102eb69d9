/* The simulator with preemption: that it loses the races that atomic turns never lose, that locks keep their
 * promise, and that a run is its seed. */
#include <stdatomic.h>

#include "actor_sim.h"
#include "env.h"
#include "expect_panic.h"
#include "lock.h"
#include "wait.h"

#define SEEDS 40
#define ADDERS 3
#define TURNS 20

struct counter {
	struct vd_env	*env;
	struct vdi_lock	 lock;
	bool		 is_safe;
	atomic_int	 value;
	unsigned	 inside, inside_max;
	struct vd_actor *actors[ADDERS];
	unsigned	 turns[ADDERS];
};

struct adder {
	struct counter *counter;
	unsigned	index;
};

static void add(struct counter *counter)
{
	int value;

	/* Unsafe: a release of the lock between the look and the change. */
	vdi_lock_acquire(&counter->lock);
	counter->inside++;
	counter->inside_max = VDI_MAX(counter->inside_max, counter->inside);
	value = atomic_load(&counter->value);
	if (counter->is_safe) {
		vdi_preempt_point();
	} else {
		counter->inside--;
		vdi_lock_release(&counter->lock);
		vdi_lock_acquire(&counter->lock);
		counter->inside++;
	}
	atomic_store(&counter->value, value + 1);
	counter->inside--;
	vdi_lock_release(&counter->lock);
}

static void run_adder(void *arg)
{
	struct adder   *adder = arg;
	struct counter *counter = adder->counter;

	add(counter);
	if (++counter->turns[adder->index] < TURNS)
		vd_actor_wake(counter->actors[adder->index]);
}

/* Returns the sum; the driver adds too. */
static int count(uint64_t seed, unsigned preemptions, bool is_safe, vd_dur stall, uint64_t *ret_hash)
{
	struct counter counter = { .is_safe = is_safe };
	struct adder   adders[ADDERS];

	assert_status(vdi_env_new_sim(seed, NULL, NULL, &counter.env), VD_OK);
	assert_status(vdi_sim_set_preemptions(counter.env, preemptions), VD_OK);
	vdi_sim_set_stalls(counter.env, stall);
	vdi_lock_init(&counter.lock, VDI_LOCK_LEAF);
	for (unsigned i = 0; i < ADDERS; i++) {
		struct vd_actor_options options = { .name = "adder", .run = run_adder, .arg = &adders[i] };

		adders[i] = (struct adder) { &counter, i };
		assert_status(vd_actor_new(counter.env, &options, &counter.actors[i]), VD_OK);
		vd_actor_wake(counter.actors[i]);
	}
	(void) vdi_sim_set_atomic(counter.env, false);
	for (unsigned i = 0; i < TURNS; i++)
		add(&counter);
	(void) vdi_sim_set_atomic(counter.env, true);
	vdi_sim_advance(counter.env, VD_SECONDS(100));
	assert_int_equal(counter.inside_max, 1);
	for (unsigned i = 0; i < ADDERS; i++) {
		assert_int_equal(counter.turns[i], TURNS);
		vdi_wait_for_actor_close(counter.env, counter.actors[i]);
	}
	*ret_hash = vdi_sim_schedule_hash(counter.env);
	vd_env_free(counter.env);
	vdi_lock_fini(&counter.lock);
	return atomic_load(&counter.value);
}

static void it_loses_races_and_keeps_locks(void **state)
{
	const int wanted = (ADDERS + 1) * TURNS;
	unsigned  lost = 0;
	uint64_t  hash;

	(void) state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		assert_int_equal(count(seed, 0, false, VD_US(0), &hash), wanted);
		assert_int_equal(count(seed, 3, true, VD_US(0), &hash), wanted);
		assert_int_equal(count(seed, 3, true, VD_SECONDS(1), &hash), wanted);
		lost += count(seed, 2, false, VD_US(0), &hash) < wanted;
	}
	assert_true(lost > SEEDS / 4);
}

static void the_same_seed_gives_the_same_preemptions(void **state)
{
	(void) state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		uint64_t first, second;
		int	 value = count(seed, 2, false, VD_MS(10), &first);

		assert_int_equal(count(seed, 2, false, VD_MS(10), &second), value);
		assert_true(first == second);
	}
}

/* ---- Stalls ---- */

struct sleeper {
	struct vd_env *env;
	vd_mono	       longest_from, longest_to;
};

static void run_sleeper(void *arg)
{
	struct sleeper *sleeper = arg;

	for (int i = 0; i < 2000; i++) {
		vd_mono from = vd_env_now(sleeper->env), to;

		vdi_preempt_point();
		to = vd_env_now(sleeper->env);
		if (to.ns - from.ns > sleeper->longest_to.ns - sleeper->longest_from.ns)
			*sleeper = (struct sleeper) { sleeper->env, from, to };
	}
}

static bool never(void *arg)
{
	return false;
}

static void a_stall_lets_time_pass_and_settle_ends_it(void **state)
{
	struct sleeper		sleeper = { 0 };
	struct vd_actor_options options = { .name = "sleeper", .run = run_sleeper, .arg = &sleeper };
	struct vd_actor	       *actor;

	(void) state;
	assert_status(vdi_env_new_sim(1, NULL, NULL, &sleeper.env), VD_OK);
	assert_status(vdi_sim_set_preemptions(sleeper.env, 8), VD_OK);
	vdi_sim_set_stalls(sleeper.env, VD_SECONDS(1));
	assert_status(vd_actor_new(sleeper.env, &options, &actor), VD_OK);
	vd_actor_wake(actor);
	assert_false(vdi_sim_run_until(sleeper.env, never, NULL, VD_SECONDS(1000)));
	assert_in_range(sleeper.longest_to.ns - sleeper.longest_from.ns, VD_MS(1).ns, VD_SECONDS(1).ns);
	vd_actor_wake(actor);
	while (vdi_sim_step(sleeper.env))
		continue;
	vdi_sim_settle(sleeper.env);
	assert_false(vdi_sim_advance_to_next_timer(sleeper.env));
	assert_true(vdi_sim_preemptions(sleeper.env) > 0);
	vdi_wait_for_actor_close(sleeper.env, actor);
	vd_env_free(sleeper.env);
}

/* ---- Deadlocks ---- */

static struct vdi_lock outer, inner;
static struct vd_env  *deadlock_env;

static void hold_outer(void *arg)
{
	vdi_lock_acquire(&outer);
	for (int i = 0; i < 100; i++)
		vdi_preempt_spin();
	vdi_lock_acquire(&inner);
	vdi_lock_release(&inner);
	vdi_lock_release(&outer);
}

/* What the order of locks cannot see: it waits with a lock for something that needs the lock. */
static void spin_with_inner(void *arg)
{
	vdi_lock_acquire(&inner);
	vdi_preempt_spin();
	vdi_lock_release(&inner);
	/* Taken again and never released. */
	vdi_lock_acquire(&inner);
	vdi_preemption->blocked(vdi_preemption, &outer);
	vdi_preemption->blocked(vdi_preemption, &outer);
}

static void make_deadlock(void)
{
	struct vd_actor_options options[] = { { .name = "outer", .run = hold_outer },
					      { .name = "inner", .run = spin_with_inner } };
	struct vd_actor	       *actor;

	(void) !vdi_env_new_sim(1, NULL, NULL, &deadlock_env);
	(void) !vdi_sim_set_preemptions(deadlock_env, 1);
	vdi_lock_init(&outer, VDI_LOCK_QUEUE);
	vdi_lock_init(&inner, VDI_LOCK_LEAF);
	for (int i = 0; i < 2; i++) {
		(void) !vd_actor_new(deadlock_env, &options[i], &actor);
		vd_actor_wake(actor);
	}
	vdi_sim_run_until_idle(deadlock_env);
}

static void contexts_that_wait_for_each_other_stop_the_program(void **state)
{
	(void) state;
	expect_panic(make_deadlock, "deadlock");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_loses_races_and_keeps_locks),
		cmocka_unit_test(the_same_seed_gives_the_same_preemptions),
		cmocka_unit_test(a_stall_lets_time_pass_and_settle_ends_it),
		cmocka_unit_test(contexts_that_wait_for_each_other_stop_the_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
