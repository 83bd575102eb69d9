/* Points where a thread may be preempted at the worst moment.
 *
 * A race almost never shows if one thread has just released a lock, or published a value, and another would
 * have to do all its work before the first continues. So such points are marked: after each release of a
 * lock, before each wake of an actor, and after each publication without a lock. At these points a simulator
 * with preemption (vdi_sim_set_preemptions) may run other contexts; in builds without NDEBUG real threads can
 * sleep there (vdi_lock_stall). Otherwise a point costs one load.
 */
#ifndef VDI_PREEMPT_H
#define VDI_PREEMPT_H

#include "base.h"

struct vdi_lock;

/* The simulator's callbacks. Called on its thread, from a handler or from the code that drives it. */
struct vdi_preemption {
	void (*point)(struct vdi_preemption *preemption);
	/* A suspended context holds the lock: runs other contexts, so that the lock may be free
	 * afterwards. */
	void (*blocked)(struct vdi_preemption *preemption, const struct vdi_lock *lock);
	/* The caller polls for a change that another context must make: runs other contexts. */
	void (*spin)(struct vdi_preemption *preemption);
};

/* NULL: this thread is not simulated with preemption. */
extern __thread struct vdi_preemption *vdi_preemption __attribute__((tls_model("initial-exec")));

/* Builds without NDEBUG: sleeps at random if vdi_lock_stall enabled it (lib/base/lock.c). */
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

/* For loops that wait for another thread without a lock: lets others run. */
void vdi_preempt_spin(void);

#endif
