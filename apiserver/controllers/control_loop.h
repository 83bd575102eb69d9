/* An actor for controllers inside the server, with timers. Asynchronous operations that a controller started
 * complete on it.
 *
 * A controller embeds a struct vdi_control_loop, and a struct vdi_control_return in each operation. Its
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
	void (*run)(struct vdi_control_return *back); /* on the actor; may free the struct */
};

struct vdi_control_loop {
	/* Fixed after init. */
	const struct vd_env *env;
	struct vd_actor	    *actor;
	void (*turn)(void *arg); /* called after each batch of completions and due timers */
	void *arg;

	/* Owned by the actor. */
	struct vdi_timer_heap timers;
	void (*expired)(void *arg, struct vdi_timer *timer);

	struct vdi_lock lock; /* VDI_LOCK_CONTROLLER */
	struct vdi_wait idle; /* signalled when close waits and no operation is outstanding */

	/* Under lock. */
	struct vdi_control_return *first, *last;
	size_t			   open_count; /* operations begun and not posted */
	bool			   is_closing;
	bool			   is_made;
};

/* name: a literal. VD_NOMEM, and errors of vd_actor_new. */
VDI_MUST_USE vd_status vdi_control_loop_init(struct vdi_control_loop *loop, const struct vd_env *env,
					     const char *name, void (*turn)(void *arg),
					     void (*expired)(void *arg, struct vdi_timer *timer), void *arg);
/* Ends the loop: no callback runs afterwards. Blocks until every begun operation is posted. The run functions
 * of pending completions are not called; `first` lists them for the caller. Does nothing on a loop whose init
 * failed. */
void vdi_control_loop_close(struct vdi_control_loop *loop);
/* Call after close, when no thread can wake the loop any more. */
void vdi_control_loop_fini(struct vdi_control_loop *loop);

/* Call before an operation that ends with vdi_control_loop_post. False: the loop is closing, start nothing.
 * Any thread. */
VDI_MUST_USE bool vdi_control_loop_begin(struct vdi_control_loop *loop);
/* Completes an operation. Any thread; loop and back may be freed before this returns. */
void vdi_control_loop_post(struct vdi_control_loop *loop, struct vdi_control_return *back);
/* Any thread, until fini. */
void vdi_control_loop_wake(struct vdi_control_loop *loop);
/* On the actor only. */
void vdi_control_loop_set_timer(struct vdi_control_loop *loop, struct vdi_timer *timer, vd_mono due);

#endif
