/* Places where a thread may lose the processor at the worst moment.
 *
 * A race is nearly never lost where one thread has just released a lock, or published something, and the
 * other one would have to do all its work before the first goes on. So such places say so: after each release
 * of a lock, before each wake of an actor, and after each publication without a lock. There a simulator with
 * preemption (vdi_sim_set_preemptions) may run others; and in builds without NDEBUG real threads can be made
 * to sleep there (vdi_lock_stall). Otherwise a point costs one load.
 */
#ifndef VDI_PREEMPT_H
#define VDI_PREEMPT_H

#include "base.h"

struct vdi_lock;

/* What a simulator with preemption is asked. Called on its thread, in a handler or in what drives it. */
struct vdi_preemption {
	void (*point)(struct vdi_preemption *preemption);
	/* The lock is held by a context that is suspended: runs others, so that it may be free afterwards. */
	void (*blocked)(struct vdi_preemption *preemption, const struct vdi_lock *lock);
	/* The caller looks again and again for something that others must do. */
	void (*spin)(struct vdi_preemption *preemption);
};

/* NULL: nothing on this thread is simulated with preemption. */
extern __thread struct vdi_preemption *vdi_preemption __attribute__((tls_model("initial-exec")));

/* Builds without NDEBUG: sleeps now and then if vdi_lock_stall said so (lib/base/lock.c). */
#ifdef NDEBUG
static inline void vdi_lock_stall_here(void)
{
}
#else
void vdi_lock_stall_here(void);
#endif

static inline void vdi_preempt_point(void)
{
	if (__builtin_expect(vdi_preemption != NULL, 0))
		vdi_preemption->point(vdi_preemption);
	else
		vdi_lock_stall_here();
}

/* In a loop that waits for another thread without a lock: lets others run. */
void vdi_preempt_spin(void);

#endif
