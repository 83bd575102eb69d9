/* Shared by the connections of one event loop, HTTP/1.x ones included: buffers for reading and writing,
 * timers, and the end of a loop iteration.
 *
 * In an iteration the loop's callbacks read from sockets and call the sides. At its end, before the loop
 * sleeps again, the side's end_iteration is called (for work that other threads have queued), and then each
 * connection that has data to send writes once. Code that changes something during an iteration requests its
 * end with vdi_h2_loop_wake; on the loop's own thread that needs no system call, and several requests are
 * one.
 *
 * Threads: the loop's thread only, except vdi_h2_loop_wake (any thread). Before the loop runs and after it
 * has stopped, the owner's thread counts as the loop's.
 */
#ifndef VDI_H2_LOOP_H
#define VDI_H2_LOOP_H

#include "actor_loop.h"
#include "base.h"
#include "timer.h"

struct vdi_h2_loop;

#define VDI_H2_SCRATCH_SIZE ((size_t) 64 << 10)

struct vdi_h2_loop_options {
	/* Called at the end of each requested iteration, before connections write; may request another
	 * iteration. NULL: no work. */
	void (*end_iteration)(void *arg);
	void *arg;
	/* actors that input wakes may run on its thread, if the loop had slept before (actor_threads.h,
	 * lending) */
	bool lends;
};

/* The loop (borrowed) must outlive the h2_loop. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_h2_loop_new(const struct vd_env *env, struct vdi_loop *loop,
				       const struct vdi_h2_loop_options *options,
				       struct vdi_h2_loop	       **ret_h2_loop);
/* No connection and no set timer may be left. On the loop's thread, but not inside callbacks
 * (end_iteration, fire, a connection's); or when the loop has stopped. vdi_loop_free finishes the rest.
 * NULL is allowed; returns NULL. */
struct vdi_h2_loop *vdi_h2_loop_free(struct vdi_h2_loop *h2_loop);

/* Requests the end of an iteration. Any thread. */
void vdi_h2_loop_wake(struct vdi_h2_loop *h2_loop);

const struct vd_env *vdi_h2_loop_env(const struct vdi_h2_loop *h2_loop);
struct vdi_loop	    *vdi_h2_loop_event_loop(const struct vdi_h2_loop *h2_loop);

/* Zeroed memory with `fire` set is an unset timer. fire is called on the loop's thread, outside of a
 * connection's callbacks; the timer is then unset, and may be set again or freed. */
struct vdi_h2_timer {
	struct vdi_timer timer;
	void (*fire)(struct vdi_h2_timer *timer);
};
/* Sets or moves the timer; VD_NEVER clears it. Cannot fail. */
void vdi_h2_timer_set(struct vdi_h2_loop *h2_loop, struct vdi_h2_timer *timer, vd_mono due);

#endif
