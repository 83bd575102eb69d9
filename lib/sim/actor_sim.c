/* Ready actors are in an array; a step swaps a random one to the end and takes it. The array is grown when an
 * actor is created, to the number of actors, so a wake cannot fail. Choices come from a generator of their
 * own, so random numbers drawn by the code under test do not change them. Actors are identified by number,
 * never by address, so the hash is the same in every process.
 *
 * With preemption (preempt_sim.c) a step either resumes a suspended handler or begins one, and the choice
 * prefers actors of high priority, as in PCT, because a purely random choice hardly ever lets one actor run
 * far ahead of another.
 */
#include "actor_sim.h"
#include "actor_state.h"
#include "clock_sim.h"
#include "env.h"
#include "preempt_sim.h"
#include "timer.h"
#include "wait.h"

#define MONO_START_S 1000
#define WALL_START_S INT64_C(1704067200) /* 2024-01-01 */
#define STEPS_AT_ONE_INSTANT_MAX 20000000
#define PRIORITY_EXCEPTIONS 8 /* one choice in this number ignores priorities */

struct sim_actor {
	struct vd_actor		actor;
	struct vdi_sim	       *sim;
	struct vd_actor_options options;
	uint64_t		number;
	uint64_t		priority; /* with preemption; redrawn from time to time */
	vdi_actor_state		state;
	struct vdi_timer	timer;
	void (*done)(void *arg);
	void *done_arg;
};

struct vdi_sim {
	struct vdi_clock_sim  clock;
	struct vdi_rand	      choices;
	struct vdi_timer_heap timers;
	struct sim_actor    **ready;
	size_t		      ready_count;
	size_t		      ready_capacity;
	size_t		      actors;	   /* created, not yet ended */
	size_t		      actors_open; /* created, not yet closed */
	uint64_t	      number_next;
	uint64_t	      steps;
	uint64_t	      steps_at_this_instant;
	uint64_t	      hash;
	vd_dur		      step_delay_max;
	bool		      is_running; /* inside a handler or a done callback */

	struct vdi_preempt_sim *preempt; /* NULL: handlers are not suspended */
	bool			has_priorities;
};

static struct vdi_sim *sim_of(const struct vd_env *env)
{
	VDI_CHECK(env->sim);
	return env->sim;
}

static vd_mono now_of(const struct vdi_sim *sim)
{
	return vdi_clock_mono(&sim->clock.clock);
}

static void make_ready(struct sim_actor *actor)
{
	struct vdi_sim *sim = actor->sim;

	VDI_CHECK(sim->ready_count < sim->ready_capacity);
	sim->ready[sim->ready_count++] = actor;
}

static void fire_timers(struct vdi_sim *sim)
{
	struct vdi_timer *timer;

	while ((timer = vdi_timer_heap_pop_due(&sim->timers, now_of(sim))) != NULL) {
		struct sim_actor *actor = VDI_CONTAINER_OF(timer, struct sim_actor, timer);

		if (vdi_actor_state_wake(&actor->state))
			make_ready(actor);
	}
}

static void set_now(struct vdi_sim *sim, vd_mono now)
{
	if (now.ns > now_of(sim).ns) {
		vdi_clock_sim_set(&sim->clock, now);
		sim->steps_at_this_instant = 0;
	}
	fire_timers(sim);
}

/* ---- Actors ---- */

static void sim_actor_wake(struct vd_actor *base)
{
	struct sim_actor *actor = VDI_CONTAINER_OF(base, struct sim_actor, actor);

	if (vdi_actor_state_wake(&actor->state))
		make_ready(actor);
}

static void sim_actor_set_timer(struct vd_actor *base, vd_mono due)
{
	struct sim_actor *actor = VDI_CONTAINER_OF(base, struct sim_actor, actor);

	vdi_timer_heap_set(&actor->sim->timers, &actor->timer, due);
}

static void sim_actor_close(struct vd_actor *base, void (*done)(void *arg), void *arg)
{
	struct sim_actor *actor = VDI_CONTAINER_OF(base, struct sim_actor, actor);

	actor->sim->actors_open--;
	actor->done = done;
	actor->done_arg = arg;
	if (vdi_actor_state_close(&actor->state))
		make_ready(actor);
}

static vd_status sim_actor_new(void *executor, const struct vd_actor_options *options,
			       struct vd_actor **ret_actor);

static const struct vd_executor_ops sim_ops = { sim_actor_new, sim_actor_wake, sim_actor_set_timer,
						sim_actor_close };

static vd_status sim_actor_new(void *executor, const struct vd_actor_options *options,
			       struct vd_actor **ret_actor)
{
	struct vdi_sim	 *sim = executor;
	struct sim_actor *actor;

	if (!vdi_grow((void **) &sim->ready, &sim->ready_capacity, sim->actors + 1,
		      sizeof(struct sim_actor *)))
		return VD_NOMEM;
	actor = VDI_NEW(struct sim_actor);
	if (actor == NULL)
		return VD_NOMEM;
	actor->actor.ops = &sim_ops;
	actor->sim = sim;
	actor->options = *options;
	actor->number = sim->number_next++;
	actor->priority = sim->preempt ? vdi_preempt_sim_draw(sim->preempt, UINT64_MAX) : 0;
	atomic_init(&actor->state, 0);
	sim->actors++;
	sim->actors_open++;
	*ret_actor = &actor->actor;
	return VD_OK;
}

static void end_actor(struct sim_actor *actor)
{
	void (*done)(void *arg) = actor->done;
	void *done_arg = actor->done_arg;

	vdi_timer_heap_remove(&actor->sim->timers, &actor->timer);
	actor->sim->actors--;
	vdi_free(actor);
	if (done)
		done(done_arg);
}

/* ---- Steps ---- */

/* Chooses the highest priority, with random exceptions, so that no actor starves. */
static size_t choose_by_priority(struct vdi_sim *sim)
{
	size_t choice = 0;

	if (vdi_preempt_sim_draw(sim->preempt, PRIORITY_EXCEPTIONS) == 0) {
		choice = vdi_preempt_sim_draw(sim->preempt, sim->ready_count);
		sim->ready[choice]->priority = vdi_preempt_sim_draw(sim->preempt, UINT64_MAX);
		return choice;
	}
	for (size_t i = 1; i < sim->ready_count; i++)
		if (sim->ready[i]->priority > sim->ready[choice]->priority)
			choice = i;
	return choice;
}

static struct sim_actor *choose(struct vdi_sim *sim)
{
	size_t		  index = sim->has_priorities ? choose_by_priority(sim) :
							vdi_rand_below(&sim->choices, sim->ready_count);
	struct sim_actor *actor = sim->ready[index];

	sim->ready[index] = sim->ready[--sim->ready_count];
	return actor;
}

static void note_step(struct vdi_sim *sim, const struct sim_actor *actor)
{
	sim->steps++;
	VDI_CHECK(sim->steps_at_this_instant++ <
		  STEPS_AT_ONE_INSTANT_MAX); /* an actor wakes itself again without end */
	sim->hash = (sim->hash ^ actor->number) * UINT64_C(0x100000001b3);
	sim->hash = (sim->hash ^ (uint64_t) now_of(sim).ns) * UINT64_C(0x100000001b3);
	sim->hash ^= sim->hash >> 32;
}

static void run_handler(void *arg)
{
	struct sim_actor *actor = arg;
	const char	 *outer = vdi_wait_enter_handler(actor->options.name);

	if (!vdi_actor_state_start(&actor->state)) {
		end_actor(actor);
	} else {
		actor->options.run(actor->options.arg);
		if (vdi_actor_state_finish(&actor->state))
			make_ready(actor);
	}
	vdi_wait_leave_handler(outer);
}

static void pass_step(struct vdi_sim *sim)
{
	if (sim->step_delay_max.ns > 0)
		set_now(sim, vd_mono_add(now_of(sim),
					 (vd_dur) { (int64_t) vdi_rand_below(
						 &sim->choices, (uint64_t) sim->step_delay_max.ns) }));
}

static bool step_with_preemption(void *arg)
{
	struct vdi_sim	 *sim = arg;
	struct sim_actor *actor;
	bool		  must_stop;

	VDI_CHECK(vdi_preempt_sim_is_driver(sim->preempt));
	fire_timers(sim);
	if (!vdi_preempt_sim_resume(sim->preempt, now_of(sim), sim->ready_count == 0, &must_stop)) {
		if (must_stop || sim->ready_count == 0)
			return false;
		actor = choose(sim);
		note_step(sim, actor);
		vdi_preempt_sim_run(sim->preempt, run_handler, actor);
	}
	while (vdi_preempt_sim_is_urgent(sim->preempt) &&
	       vdi_preempt_sim_resume(sim->preempt, now_of(sim), false, &must_stop))
		continue;
	pass_step(sim);
	return true;
}

static bool step(struct vdi_sim *sim)
{
	struct sim_actor *actor;

	if (sim->preempt)
		return step_with_preemption(sim);
	VDI_CHECK(!sim->is_running);
	fire_timers(sim); /* a timer may have been set into the past */
	if (sim->ready_count == 0)
		return false;
	actor = choose(sim);
	note_step(sim, actor);
	sim->is_running = true;
	run_handler(actor);
	sim->is_running = false;
	pass_step(sim);
	return true;
}

bool vdi_sim_step(struct vd_env *env)
{
	return step(sim_of(env));
}

/* The time of the next event, if nothing is ready now. */
static vd_mono next_due(const struct vdi_sim *sim)
{
	vd_mono timer = vdi_timer_heap_next_due(&sim->timers);
	vd_mono stall = sim->preempt ? vdi_preempt_sim_next_due(sim->preempt) : VD_NEVER;

	return timer.ns < stall.ns ? timer : stall;
}

uint64_t vdi_sim_run_until_idle(struct vd_env *env)
{
	struct vdi_sim *sim = sim_of(env);
	uint64_t	before = sim->steps;

	while (step(sim))
		continue;
	return sim->steps - before;
}

void vdi_sim_advance(struct vd_env *env, vd_dur by)
{
	struct vdi_sim *sim = sim_of(env);
	vd_mono		target = vd_mono_add(now_of(sim), by);

	for (;;) {
		vd_mono due;

		vdi_sim_run_until_idle(env);
		due = next_due(sim);
		if (due.ns > target.ns)
			break;
		set_now(sim, due);
	}
	set_now(sim, target);
}

bool vdi_sim_advance_to_next_timer(struct vd_env *env)
{
	struct vdi_sim *sim = sim_of(env);
	vd_mono		due = next_due(sim);

	if (due.ns == VD_NEVER.ns)
		return false;
	set_now(sim, due);
	return true;
}

bool vdi_sim_run_until(struct vd_env *env, bool (*condition)(void *arg), void *arg, vd_dur limit)
{
	struct vdi_sim *sim = sim_of(env);
	vd_mono		last = vd_mono_add(now_of(sim), limit);

	while (!condition(arg)) {
		vd_mono due;

		if (now_of(sim).ns > last.ns)
			return false;
		if (step(sim))
			continue;
		due = next_due(sim);
		if (due.ns > last.ns) {
			if (last.ns != VD_NEVER.ns)
				set_now(sim, last);
			return false;
		}
		if (due.ns == VD_NEVER.ns)
			return false;
		set_now(sim, due);
	}
	return true;
}

void vdi_sim_set_step_delay(struct vd_env *env, vd_dur max)
{
	sim_of(env)->step_delay_max = max;
}

void vdi_sim_jump_wall(struct vd_env *env, vd_dur by)
{
	vdi_clock_sim_jump_wall(&sim_of(env)->clock, by);
}

uint64_t vdi_sim_schedule_hash(const struct vd_env *env)
{
	struct vdi_sim *sim = sim_of(env);

	return sim->hash ^ (sim->preempt ? vdi_preempt_sim_hash(sim->preempt) : 0);
}

uint64_t vdi_sim_steps(const struct vd_env *env)
{
	return sim_of(env)->steps;
}

size_t vdi_sim_actors(const struct vd_env *env)
{
	return sim_of(env)->actors;
}

/* ---- Preemption ---- */

vd_status vdi_sim_set_preemptions(struct vd_env *env, unsigned preemptions)
{
	struct vdi_sim *sim = sim_of(env);

	VDI_CHECK(sim->preempt == NULL && !sim->is_running);
	if (preemptions == 0)
		return VD_OK;
	VDI_TRY(vdi_preempt_sim_new(env->seed, preemptions, step_with_preemption, sim, &sim->preempt));
	sim->has_priorities = vdi_preempt_sim_draw(sim->preempt, 2) == 0;
	return VD_OK;
}

bool vdi_sim_set_atomic(struct vd_env *env, bool is_atomic)
{
	struct vdi_sim *sim = sim_of(env);

	return sim->preempt && vdi_preempt_sim_set_atomic(sim->preempt, is_atomic);
}

void vdi_sim_set_stalls(struct vd_env *env, vd_dur max)
{
	if (sim_of(env)->preempt)
		vdi_preempt_sim_set_stalls(sim_of(env)->preempt, max);
}

void vdi_sim_settle(struct vd_env *env)
{
	struct vdi_sim *sim = sim_of(env);
	bool		must_stop;

	if (sim->preempt == NULL)
		return;
	vdi_preempt_sim_hold(sim->preempt, true);
	while (vdi_preempt_sim_resume(sim->preempt, now_of(sim), true, &must_stop))
		continue;
	vdi_preempt_sim_hold(sim->preempt, false);
}

uint64_t vdi_sim_preemptions(const struct vd_env *env)
{
	struct vdi_sim *sim = sim_of(env);

	return sim->preempt ? vdi_preempt_sim_count(sim->preempt) : 0;
}

/* ---- The env ---- */

static void sim_free(void *executor)
{
	struct vdi_sim *sim = executor;

	if (sim->actors_open)
		vdi_misuse("vd_env_free: %zu actors are still open; close them with vd_actor_close",
			   sim->actors_open);
	if (sim->preempt)
		vdi_preempt_sim_hold(sim->preempt, true); /* also ends all stalls */
	while (step(sim))
		continue;
	VDI_CHECK(sim->actors == 0);
	vdi_preempt_sim_free(sim->preempt);
	vdi_free(sim->ready);
	vdi_free(sim);
}

vd_status vdi_env_new_sim(uint64_t seed, vd_log_fn log, void *log_arg, struct vd_env **ret_env)
{
	struct vd_env_options options = { .size = sizeof options,
					  .log = log,
					  .log_arg = log_arg,
					  .log_level = VD_LOG_DEBUG,
					  .seed = seed ^ UINT64_C(0x9e3779b97f4a7c15) };
	struct vdi_sim	     *sim = VDI_NEW(struct vdi_sim);
	struct vd_env	     *env;

	if (sim == NULL)
		return VD_NOMEM;
	options.seed += options.seed == 0; /* 0 would take a seed from the operating system */
	vdi_clock_sim_init(&sim->clock, (vd_mono) { VD_SECONDS(MONO_START_S).ns },
			   (vd_wall) { VD_SECONDS(WALL_START_S).ns });
	vdi_rand_init(&sim->choices, seed);
	if (vdi_env_new(&options, &sim->clock.clock, &env) != VD_OK) {
		vdi_free(sim);
		return VD_NOMEM;
	}
	env->sim = sim;
	env->drive = vdi_sim_run_until;
	env->executor = (struct vd_executor) { &sim_ops, sim };
	env->executor_free = sim_free;
	*ret_env = env;
	return VD_OK;
}
