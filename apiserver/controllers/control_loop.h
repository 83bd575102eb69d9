/* An actor for controllers inside the server: what they start elsewhere comes back to it, and it has timers.
 *
 * A controller embeds struct vdi_control_loop and a struct vdi_control_return in whatever it starts. Its
 * functions run on the actor, one at a time.
 */
#ifndef VDI_CONTROL_LOOP_H
#define VDI_CONTROL_LOOP_H

#include "base.h"
#include "lock.h"
#include "timer.h"
#include "wait.h"

struct vdi_control_return {
	struct vdi_control_return *next;
	void (*run)(struct vdi_control_return *back); /* on the actor; may free it */
};

struct vdi_control_loop {
	/* Fixed. */
	const struct vd_env *env;
	struct vd_actor	    *actor;
	void (*turn)(void *arg); /* after each batch of returns and due timers */
	void *arg;

	/* The actor. */
	struct vdi_timer_heap timers;
	void (*expired)(void *arg, struct vdi_timer *timer);

	struct vdi_lock lock; /* VDI_LOCK_CONTROLLER */
	struct vdi_wait idle; /* of close, for what was started */

	/* Under lock. */
	struct vdi_control_return *first, *last;
	size_t			   open_count; /* started and not back */
	bool			   is_closing;
	bool			   is_made;
};

/* name: a literal. VD_NOMEM, and what a runner says. */
VDI_MUST_USE vd_status vdi_control_loop_init(struct vdi_control_loop *loop, const struct vd_env *env,
					     const char *name, void (*turn)(void *arg),
					     void (*expired)(void *arg, struct vdi_timer *timer), void *arg);
/* No turn happens afterwards; blocks until what was started is back, whose run functions are not called: it
 * is in `first`. Fine on a loop that was never made. */
void vdi_control_loop_close(struct vdi_control_loop *loop);
/* After close; nobody wakes it any more. */
void vdi_control_loop_fini(struct vdi_control_loop *loop);

/* Before something is started whose end will be posted. False: the loop is closing, start nothing. Any
 * thread. */
VDI_MUST_USE bool vdi_control_loop_begin(struct vdi_control_loop *loop);
/* Its end. Any thread; the loop may be gone when this returns, and back with it. */
void vdi_control_loop_post(struct vdi_control_loop *loop, struct vdi_control_return *back);
/* Any thread, until fini. */
void vdi_control_loop_wake(struct vdi_control_loop *loop);
/* The actor. */
void vdi_control_loop_set_timer(struct vdi_control_loop *loop, struct vdi_timer *timer, vd_mono due);

#endif
