/* The contexts of a simulator with preemption: the driver (the program that calls vdi_sim_ functions), and
 * fibers on which handlers run.
 *
 * At a point (lib/base/preempt.h) the running context may be suspended while others run; how often, where and
 * for how long is drawn from the seed. A context that takes a lock of a suspended one waits for it; contexts
 * that wait for each other stop the program. One thread.
 *
 * The schedule is that of PCT (Burckhardt et al., ASPLOS 2010): in each window of points a few are chosen,
 * because few preemptions at the right places find nearly all races. The window's size is drawn from the seed
 * too.
 */
#ifndef VDI_PREEMPT_SIM_H
#define VDI_PREEMPT_SIM_H

#include "preempt.h"

struct vdi_preempt_sim;

/* preemptions: per window, 1 to VDI_PREEMPTIONS_MAX. step makes one step of the simulator (below); it is
 * called when the driver is suspended. Belongs to the calling thread, which has one of these at most. The
 * driver begins as atomic. VD_NOMEM. */
#define VDI_PREEMPTIONS_MAX 8
VDI_MUST_USE vd_status vdi_preempt_sim_new(uint64_t seed, unsigned preemptions, bool (*step)(void *arg),
					   void *arg, struct vdi_preempt_sim **ret_preempt);
/* No context is suspended. NULL is allowed. */
void vdi_preempt_sim_free(struct vdi_preempt_sim *preempt);

/* The following three are for step, which runs on the driver's stack. */

/* Before anything else. true: a suspended context was resumed, and that was the step. *ret_must_stop: no step
 * is possible before the driver goes on. is_idle: no handler is ready, so the time of a suspension does not
 * matter, unless it is a stall. */
bool vdi_preempt_sim_resume(struct vdi_preempt_sim *preempt, vd_mono now, bool is_idle, bool *ret_must_stop);
/* An atomic context waits for a lock: the step is not over before it goes on, unless the driver holds the
 * lock. */
bool vdi_preempt_sim_is_urgent(const struct vdi_preempt_sim *preempt);
/* When the first stall is over; VD_NEVER: none. */
vd_mono vdi_preempt_sim_next_due(const struct vdi_preempt_sim *preempt);
/* Calls run(arg) on a fiber; returns when it has returned or is suspended. After vdi_preempt_sim_resume
 * returned false. */
void vdi_preempt_sim_run(struct vdi_preempt_sim *preempt, void (*run)(void *arg), void *arg);
/* Below bound, from the generator of the schedule. */
uint64_t vdi_preempt_sim_draw(struct vdi_preempt_sim *preempt, uint64_t bound);

/* Of the context that runs: it is not suspended at points while it is atomic. Returns what it was before. */
bool vdi_preempt_sim_set_atomic(struct vdi_preempt_sim *preempt, bool is_atomic);
/* One suspension of a handler in eight is a stall from now on: it lasts for up to max of simulated time. 0:
 * none. */
void vdi_preempt_sim_set_stalls(struct vdi_preempt_sim *preempt, vd_dur max);
/* Until off again: no context is suspended at a point, and stalls are over. */
void vdi_preempt_sim_hold(struct vdi_preempt_sim *preempt, bool is_held);
bool vdi_preempt_sim_is_driver(const struct vdi_preempt_sim *preempt);
/* Changes with every switch. */
uint64_t vdi_preempt_sim_hash(const struct vdi_preempt_sim *preempt);
/* Contexts suspended at a point so far. */
uint64_t vdi_preempt_sim_count(const struct vdi_preempt_sim *preempt);

#endif
