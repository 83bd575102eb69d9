/* The simulator: actors on one thread, in an order drawn from a seed, under a clock that moves only when
 * told.
 *
 * The same seed and the same calls give the same order, on every machine; vdi_sim_schedule_hash() proves it.
 * An env made here is used from one thread only. Actors run only inside the vdi_sim_ calls (and inside
 * lib/env/wait.h, which makes them), never on their own; those calls are not for handlers.
 */
#ifndef VDI_ACTOR_SIM_H
#define VDI_ACTOR_SIM_H

#include "base.h"

/* seed 0 is a seed like any other. log may be NULL; all levels are given to it. Free with vd_env_free(),
 * which runs what closing actors still owe. Monotonic time starts at 1000 s, wall time at 2024-01-01.
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_env_new_sim(uint64_t seed, vd_log_fn log, void *log_arg, struct vd_env **ret_env);

/* Runs one actor that is ready, chosen at random; false when none is. Does not jump the clock. */
bool vdi_sim_step(struct vd_env *env);
/* Steps until nothing is ready; returns how many steps. An actor that keeps itself awake for ever is stopped
 * by a check. */
uint64_t vdi_sim_run_until_idle(struct vd_env *env);
/* Lets `by` pass: what is ready runs, then the clock stops at each timer on the way. */
void vdi_sim_advance(struct vd_env *env, vd_dur by);
/* Jumps to the next timer and makes its actors ready; false when no timer is set. Runs nothing. */
bool vdi_sim_advance_to_next_timer(struct vd_env *env);
/* Runs actors and jumps from timer to timer until the condition holds. False when limit of simulated time has
 * passed, or when nothing can ever happen any more. The condition is asked between steps. */
bool vdi_sim_run_until(struct vd_env *env, bool (*condition)(void *arg), void *arg, vd_dur limit);

/* Every step takes a random time below max (0, the start: none), so that timers and runs interleave
 * differently. */
void vdi_sim_set_step_delay(struct vd_env *env, vd_dur max);
/* Wall time jumps, as an administrator or NTP makes it jump. */
void vdi_sim_jump_wall(struct vd_env *env, vd_dur by);
/* ---- Preemption ----
 *
 * Turns are atomic unless this is called: then handlers, and the driver's own calls, may be suspended at the
 * points of lib/base/preempt.h while others run. At most so many times (0: never; up to VDI_PREEMPTIONS_MAX)
 * in each window of points, at places drawn from the env's seed, so the same seed and the same calls still
 * give the same order. Once, before any actor exists, on the thread that uses the env; one such env per
 * thread. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_sim_set_preemptions(struct vd_env *env, unsigned preemptions);
/* The code that runs (a handler, or the driver) is not suspended until this is called with false. Returns the
 * value before. Handlers begin with false, the driver with true. Callbacks of a test set it, because their
 * own data has no locks, and restore the value before; a test clears it around calls that may be suspended.
 * While the driver is suspended the simulator goes on, so callbacks may come before a call returns. Without
 * preemption it does nothing. */
bool vdi_sim_set_atomic(struct vd_env *env, bool is_atomic);
/* From now on one suspension of a handler in eight lasts for up to max of simulated time (0: none), as that
 * of a thread on a busy machine does; the others end when nothing else is ready. Without preemption it does
 * nothing. */
void vdi_sim_set_stalls(struct vd_env *env, vd_dur max);
/* Lets every suspended handler go on until it returns. Not from a handler. */
void vdi_sim_settle(struct vd_env *env);
/* Suspensions at points so far; for tests that they happen. */
uint64_t vdi_sim_preemptions(const struct vd_env *env);

/* Changes with every step taken: which actor, when. */
uint64_t vdi_sim_schedule_hash(const struct vd_env *env);
uint64_t vdi_sim_steps(const struct vd_env *env);
/* Actors created and not yet ended; for leak checks. */
size_t vdi_sim_actors(const struct vd_env *env);

#endif
