/* Fibers: several stacks that alternate on one thread. For the simulator (lib/sim/actor_sim.h), which
 * suspends a handler in the middle and runs others meanwhile.
 *
 * A switch is a function call that returns when another fiber switches back. The address and thread
 * sanitizers are informed of each switch.
 */
#ifndef VDI_FIBER_H
#define VDI_FIBER_H

#include "base.h"

struct vdi_fiber;

/* A handle of the calling thread's own stack, to switch from and back to. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_fiber_of_thread(struct vdi_fiber **ret_fiber);
/* A fiber with a stack of its own. The first switch to it calls run, which must not return: its last action
 * is to switch away. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_fiber_new(void (*run)(void *arg), void *arg, struct vdi_fiber **ret_fiber);
/* NULL is allowed. Not for the running fiber. The content of its stack is lost. */
void vdi_fiber_free(struct vdi_fiber *fiber);
/* from is the calling fiber. Both belong to this thread. Returns after a switch back to from. */
void vdi_fiber_switch(struct vdi_fiber *from, struct vdi_fiber *to);

#endif
