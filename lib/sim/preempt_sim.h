/* The contexts of a simulator with preemption: the driver (the program that calls vdi_sim_ functions), and
 * fibers on which handlers run.
 *
 * At a point (lib/base/preempt.h) the running context may be suspended while others run; the seed determines
 * how often, where and for how long. A context that takes a lock held by a suspended one waits for it; a
 * deadlock stops the program. One thread.
 *
 * The schedule follows PCT (Burckhardt et al., ASPLOS 2010): in each window of points a few are chosen,
 * because few preemptions at the right points find nearly all races. The size of the window is drawn from the
 * seed too.
 */
#ifndef VDI_PREEMPT_SIM_H
#define VDI_PREEMPT_SIM_H

#include "preempt.h"

struct vdi_preempt_sim;

/* preemptions: per window, 1 to VDI_PREEMPTIONS_MAX. step makes one step of the simulator (below); it is
 * called while the driver is suspended. Belongs to the calling thread, which has at most one. The driver
 * begins as atomic. VD_NOMEM. */
#define VDI_PREEMPTIONS_MAX 8
VDI_MUST_USE vd_status vdi_preempt_sim_new(uint64_t seed, unsigned preemptions, bool (*step)(void *arg),
					   void *arg, struct vdi_preempt_sim **ret_preempt);
/* No context may be suspended. NULL is allowed. */
void vdi_preempt_sim_free(struct vdi_preempt_sim *preempt);

/* The following three are for step, which runs on the driver's stack. */

/* First call of a step. true: a suspended context was resumed, and that was the step. *ret_must_stop: no step
 * is possible before the driver continues. is_idle: no handler is ready, so suspended contexts resume early,
 * unless they are stalled. */
bool vdi_preempt_sim_resume(struct vdi_preempt_sim *preempt, vd_mono now, bool is_idle, bool *ret_must_stop);
/* Returns true if an atomic context waits for a lock: the step must continue until that context runs, unless
 * the driver holds the lock. */
bool vdi_preempt_sim_is_urgent(const struct vdi_preempt_sim *preempt);
/* The end of the first stall; VD_NEVER: none. */
vd_mono vdi_preempt_sim_next_due(const struct vdi_preempt_sim *preempt);
/* Calls run(arg) on a fiber; returns when run has returned or is suspended. After vdi_preempt_sim_resume
 * returned false. */
void vdi_preempt_sim_run(struct vdi_preempt_sim *preempt, void (*run)(void *arg), void *arg);
/* A random number below bound, from the generator of the schedule. */
uint64_t vdi_preempt_sim_draw(struct vdi_preempt_sim *preempt, uint64_t bound);

/* Sets whether the running context is atomic: it is then not suspended at points. Returns the previous
 * value. */
bool vdi_preempt_sim_set_atomic(struct vdi_preempt_sim *preempt, bool is_atomic);
/* From now on one suspension of a handler in eight is a stall, which lasts for up to max of simulated time.
 * 0: none. */
void vdi_preempt_sim_set_stalls(struct vdi_preempt_sim *preempt, vd_dur max);
/* While held, no context is suspended at a point, and stalls have no effect. */
void vdi_preempt_sim_hold(struct vdi_preempt_sim *preempt, bool is_held);
bool vdi_preempt_sim_is_driver(const struct vdi_preempt_sim *preempt);
/* A hash of all switches so far. */
uint64_t vdi_preempt_sim_hash(const struct vdi_preempt_sim *preempt);
/* Suspensions at points so far. */
uint64_t vdi_preempt_sim_count(const struct vdi_preempt_sim *preempt);

#endif
