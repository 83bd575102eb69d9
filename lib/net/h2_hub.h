/* What the HTTP/2 connections of one loop share: room to read into and to write from, their timers, and the
 * end of a turn.
 *
 * A turn: the loop's callbacks read from sockets and call the sides; at its end, before the loop sleeps
 * again, the side's `turn` is called (work that other threads have put somewhere for it), and then each
 * connection that has something to send writes it, once. Whoever changes something during a turn asks for its
 * end with vdi_h2_hub_wake; on the loop's own thread that is no system call, and many are one.
 *
 * Threads: everything on the loop's thread, but vdi_h2_hub_wake (any). Before the loop runs and after it has
 * stopped the owner's thread counts as the loop's.
 */
#ifndef VDI_H2_HUB_H
#define VDI_H2_HUB_H

#include "actor_loop.h"
#include "base.h"
#include "timer.h"

struct vdi_h2_hub;

#define VDI_H2_SCRATCH_SIZE ((size_t) 64 << 10)

struct vdi_h2_hub_options {
	/* At the end of each turn that was asked for, before connections write; may ask for another one.
	 * NULL: nothing to do. */
	void (*turn)(void *arg);
	void *arg;
	/* what comes in after the loop had slept may be worked on in its thread (actor_threads.h, lending) */
	bool lends;
};

/* The loop (borrowed) outlives the hub. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_h2_hub_new(const struct vd_env *env, struct vdi_loop *loop,
				      const struct vdi_h2_hub_options *options, struct vdi_h2_hub **ret_hub);
/* No connection and no set timer may be left. On the loop's thread, not inside one of its callbacks' sides
 * (turn, fire, a connection's); or when the loop has stopped. The loop's own free sees to the rest. NULL is
 * fine; returns NULL. */
struct vdi_h2_hub *vdi_h2_hub_free(struct vdi_h2_hub *hub);

/* Any thread. */
void vdi_h2_hub_wake(struct vdi_h2_hub *hub);

const struct vd_env *vdi_h2_hub_env(const struct vdi_h2_hub *hub);
struct vdi_loop	    *vdi_h2_hub_loop(const struct vdi_h2_hub *hub);

/* Zeroed memory with `fire` is an idle timer. fire is called on the loop's thread, not inside a connection's
 * callbacks; the timer is not set any more then and may be set again or freed. */
struct vdi_h2_timer {
	struct vdi_timer timer;
	void (*fire)(struct vdi_h2_timer *timer);
};
/* Sets or moves it; VD_NEVER clears. Never fails. */
void vdi_h2_timer_set(struct vdi_h2_hub *hub, struct vdi_h2_timer *timer, vd_mono due);

#endif
