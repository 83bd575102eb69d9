/* The simulator: actors on one thread, in an order drawn from a seed, with a clock that moves only when a
 * caller advances it.
 *
 * The same seed and the same calls give the same order on every machine; vdi_sim_schedule_hash() can verify
 * it. Use the env from one thread only. Actors run only inside the vdi_sim_ functions (and inside
 * lib/env/wait.h, which calls them); handlers must not call those.
 */
#ifndef VDI_ACTOR_SIM_H
#define VDI_ACTOR_SIM_H

#include "base.h"

/* Creates a simulated env. seed 0 is a seed like any other. log may be NULL; it gets all levels. Free with
 * vd_env_free(), which completes closing actors. Monotonic time starts at 1000 s, wall time at 2024-01-01.
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_env_new_sim(uint64_t seed, vd_log_fn log, void *log_arg, struct vd_env **ret_env);

/* Runs one ready actor, chosen at random; false if none is ready. Does not advance the clock. */
bool vdi_sim_step(struct vd_env *env);
/* Runs steps until no actor is ready; returns their number. A check fails if an actor wakes itself without
 * end. */
uint64_t vdi_sim_run_until_idle(struct vd_env *env);
/* Advances the clock by `by`: ready actors run first, then the clock stops at each timer on the way. */
void vdi_sim_advance(struct vd_env *env, vd_dur by);
/* Advances to the next timer and makes its actors ready; false if no timer is set. Runs no actor. */
bool vdi_sim_advance_to_next_timer(struct vd_env *env);
/* Runs actors and advances from timer to timer until the condition is true. False: limit of simulated time
 * has passed, or no further event is possible. The condition is evaluated between steps. */
bool vdi_sim_run_until(struct vd_env *env, bool (*condition)(void *arg), void *arg, vd_dur limit);

/* Each step takes a random time below max (0, the default: none), so that timers and runs interleave
 * differently. */
void vdi_sim_set_step_delay(struct vd_env *env, vd_dur max);
/* Lets wall time jump, like an administrator or NTP. */
void vdi_sim_jump_wall(struct vd_env *env, vd_dur by);
/* ---- Preemption ----
 *
 * Without this call a handler runs to its end. With it, handlers, and the driver's own calls, may be
 * suspended at the points of lib/base/preempt.h while others run: at most `preemptions` times (0: never; up
 * to VDI_PREEMPTIONS_MAX) in each window of points, at points drawn from the env's seed, so the same seed and
 * the same calls still give the same order. Call it once, before any actor exists, on the thread that uses
 * the env; one such env per thread. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_sim_set_preemptions(struct vd_env *env, unsigned preemptions);
/* Sets whether the running code (a handler, or the driver) is atomic: atomic code is not suspended. Returns
 * the previous value. Handlers begin with false, the driver with true. A test's callbacks set it, because
 * their own data has no locks, and restore the previous value; a test clears it around calls that may be
 * suspended. While the driver is suspended the simulator continues, so callbacks may run before a call
 * returns. No effect without preemption. */
bool vdi_sim_set_atomic(struct vd_env *env, bool is_atomic);
/* From now on one suspension of a handler in eight is a stall: it lasts for up to max of simulated time (0:
 * none), like a suspended thread on a busy machine; the others end when nothing else is ready. No effect
 * without preemption. */
void vdi_sim_set_stalls(struct vd_env *env, vd_dur max);
/* Runs every suspended handler to its end. Not from a handler. */
void vdi_sim_settle(struct vd_env *env);
/* Suspensions so far; for tests that need them to occur. */
uint64_t vdi_sim_preemptions(const struct vd_env *env);

/* A hash of all steps so far: which actor, at which time. */
uint64_t vdi_sim_schedule_hash(const struct vd_env *env);
uint64_t vdi_sim_steps(const struct vd_env *env);
/* Actors created and not yet ended; for leak checks. */
size_t vdi_sim_actors(const struct vd_env *env);

#endif
