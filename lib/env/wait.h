/* Waits for one result: the base of every blocking call of the public API.
 *
 * A struct vdi_wait is on the caller's stack: init, start the work, wait, fini. The worker signals once, from
 * any thread. In a simulated env waiting runs the simulator instead of blocking, so blocking calls work in
 * tests too. Not in an ordinary actor's handler.
 */
#ifndef VDI_WAIT_H
#define VDI_WAIT_H

#include <stdatomic.h>

#include "base.h"

struct vdi_wait {
	const struct vd_env *env;
	bool		     is_chained; /* fixed at init */
	_Atomic uint32_t     state;	 /* done, or a thread sleeps on it */

	/* Used by the signalling thread before it signals; then by the waiter. */
	struct vdi_wait *next; /* next of those signalled together */
	struct vdi_wait *rest; /* those that this one's waiter signals in turn */
	unsigned	 rest_count;
};

void vdi_wait_init(struct vdi_wait *wait, const struct vd_env *env);
/* For a waiter that calls vdi_wait_wait, without a time limit, right after it started the work: it may have
 * to wake other waiters of the same batch. */
void vdi_wait_init_chained(struct vdi_wait *wait, const struct vd_env *env);
/* Call it after a wait that returned true, or when no signal can come any more. */
void vdi_wait_fini(struct vdi_wait *wait);
/* Signals the waiter; once. The waiter may be freed when this returns. */
void vdi_wait_signal(struct vdi_wait *wait);
/* Has the type of the done callbacks of vd_actor_close and similar functions. */
void vdi_wait_signal_arg(void *wait);

/* Waking a thread costs more than most of the work that it waits for. Between begin and end of a batch, this
 * thread's signals to chained waits are collected: at the end it wakes a few of the waiters, and they wake
 * the others. Other waits are signalled at once. Batches of a thread nest. */
struct vdi_wait_batch {
	struct vdi_wait_batch *outer;
	struct vdi_wait	      *first;
	struct vdi_wait	      *last;
	unsigned	       count;
};

void vdi_wait_batch_begin(struct vdi_wait_batch *batch);
void vdi_wait_batch_end(struct vdi_wait_batch *batch);
/* For fibers, which share a thread: replaces the calling thread's batch and returns the previous one. */
struct vdi_wait_batch *vdi_wait_batch_swap(struct vdi_wait_batch *batch);

/* Returns when signalled. In the simulator a check fails if no further event can signal it. */
void vdi_wait_wait(struct vdi_wait *wait);
/* False: due has passed without a signal; the signal may still come later. */
VDI_MUST_USE bool vdi_wait_until(struct vdi_wait *wait, vd_mono due);
bool		  vdi_wait_is_done(struct vdi_wait *wait);

/* ---- Threads that run handlers ---- */

/* The executor calls these around each run of an actor; in between the checks below fail on this thread. Pass
 * the return value of enter to leave. Threads of blocking actors are exempt, unless the handler calls enter
 * itself. */
const char *vdi_wait_enter_handler(const char *actor);
void	    vdi_wait_leave_handler(const char *outer);
/* For public calls that wait: returns VD_INVALID_ARGUMENT in an actor's handler, whose thread may be the one
 * that must answer. Logs the message if reterr is NULL. */
VDI_MUST_USE vd_status vdi_wait_check(const struct vd_env *env, const char *call, struct vd_error *reterr);
/* For public calls that return no status: stops the program. */
void vdi_wait_check_close(const char *call, const char *instead);

/* Closes the actor and waits until it has ended. Not from a handler. NULL is allowed. */
void vdi_wait_for_actor_close(const struct vd_env *env, struct vd_actor *actor);

#endif
