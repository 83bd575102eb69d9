/* The simulator: actors on one thread, in an order drawn from a seed, under a clock that moves only when told.
 *
 * The same seed and the same calls give the same order, on every machine; vdi_sim_schedule_hash() proves it. An env made here is used
 * from one thread only. Actors run only inside the vdi_sim_ calls (and inside lib/wait.h, which makes them), never on their own;
 * those calls are not for handlers.
 */
#ifndef VDI_ACTOR_SIM_H
#define VDI_ACTOR_SIM_H

#include "base.h"

/* seed 0 is a seed like any other. log may be NULL; all levels are given to it. Free with vd_env_free(), which runs what closing
 * actors still owe. Monotonic time starts at 1000 s, wall time at 2024-01-01. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_env_new_sim(uint64_t seed, vd_log_fn log, void *log_arg, struct vd_env **ret_env);

/* Runs one actor that is ready, chosen at random; false when none is. Does not jump the clock. */
bool vdi_sim_step(struct vd_env *env);
/* Steps until nothing is ready; returns how many steps. An actor that keeps itself awake for ever is stopped by a check. */
uint64_t vdi_sim_run_until_idle(struct vd_env *env);
/* Lets `by` pass: what is ready runs, then the clock stops at each timer on the way. */
void vdi_sim_advance(struct vd_env *env, vd_dur by);
/* Jumps to the next timer and makes its actors ready; false when no timer is set. Runs nothing. */
bool vdi_sim_advance_to_next_timer(struct vd_env *env);
/* Runs actors and jumps from timer to timer until the condition holds. False when limit of simulated time has passed, or when
 * nothing can ever happen any more. The condition is asked between steps. */
bool vdi_sim_run_until(struct vd_env *env, bool (*condition)(void *arg), void *arg, vd_dur limit);

/* Every step takes a random time below max (0, the start: none), so that timers and runs interleave differently. */
void vdi_sim_set_step_delay(struct vd_env *env, vd_dur max);
/* Wall time jumps, as an administrator or NTP makes it jump. */
void vdi_sim_jump_wall(struct vd_env *env, vd_dur by);
/* Changes with every step taken: which actor, when. */
uint64_t vdi_sim_schedule_hash(const struct vd_env *env);
uint64_t vdi_sim_steps(const struct vd_env *env);
/* Actors created and not yet ended; for leak checks. */
size_t vdi_sim_actors(const struct vd_env *env);

#endif
