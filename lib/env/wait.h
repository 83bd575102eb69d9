/* Waiting for one thing to be done: the base of every blocking call that users are offered.
 *
 * A struct vdi_wait lies on the caller's stack: init, start the work, wait, fini. The worker signals once,
 * from any thread. Under a simulated env waiting runs the simulator instead of blocking, so blocking calls
 * work in tests too. Never in an ordinary actor's handler.
 */
#ifndef VDI_WAIT_H
#define VDI_WAIT_H

#include <stdatomic.h>

#include "base.h"

struct vdi_wait {
	const struct vd_env *env;
	bool		     is_chained; /* fixed */
	_Atomic uint32_t     state;	 /* whether it is done, or a thread sleeps on it */

	/* The thread that signals, before it does; then the waiter. */
	struct vdi_wait *next; /* of those signalled together */
	struct vdi_wait *rest; /* those whom this one's waiter signals in turn */
	unsigned	 rest_count;
};

void vdi_wait_init(struct vdi_wait *wait, const struct vd_env *env);
/* For a waiter who goes straight to vdi_wait_wait once the work is under way, without a limit: a round may
 * have it get up others. */
void vdi_wait_init_chained(struct vdi_wait *wait, const struct vd_env *env);
/* After a wait that returned true, or when it is certain that no signal will come. */
void vdi_wait_fini(struct vdi_wait *wait);
/* Once. The waiter may be gone when this returns. */
void vdi_wait_signal(struct vdi_wait *wait);
/* Matches the done callbacks of vd_actor_close and its like. */
void vdi_wait_signal_arg(void *wait);

/* Getting a thread up costs more than most of the work whose end it hears of. Between begin and end of a
 * round, signals of this thread to chained waits are kept together, at most until the end: it gets up a few
 * of them, and they get up the others. Other waits are signalled at once. Rounds of a thread nest. */
struct vdi_wait_round {
	struct vdi_wait_round *outer;
	struct vdi_wait	      *first;
	struct vdi_wait	      *last;
	unsigned	       count;
};

void vdi_wait_round_begin(struct vdi_wait_round *round);
void vdi_wait_round_end(struct vdi_wait_round *round);
/* For fibers, which share a thread: replaces the calling thread's round and returns the one before. */
struct vdi_wait_round *vdi_wait_round_swap(struct vdi_wait_round *round);

/* Returns when signalled. In the simulator, a check fails when nothing is left that could ever signal. */
void vdi_wait_wait(struct vdi_wait *wait);
/* False when due has passed without a signal; the signal may still come later. */
VDI_MUST_USE bool vdi_wait_until(struct vdi_wait *wait, vd_mono due);
bool		  vdi_wait_is_done(struct vdi_wait *wait);

/* ---- Threads that serve others ---- */

/* Around each run of an actor by its runner: meanwhile the thread is refused by the checks below. leave takes
 * what enter returned. Threads of blocking actors serve nobody, unless the handler says so itself. */
const char *vdi_wait_enter_handler(const char *actor);
void	    vdi_wait_leave_handler(const char *outer);
/* For public calls that wait: VD_INVALID_ARGUMENT inside an actor's handler, whose thread may be the one that
 * would have to answer. The sentence is logged where reterr is NULL. */
VDI_MUST_USE vd_status vdi_wait_check(const struct vd_env *env, const char *call, struct vd_error *reterr);
/* For those that return no status: stops the program. */
void vdi_wait_check_close(const char *call, const char *instead);

/* Closes the actor and waits until it is gone. Not from a handler. NULL is fine. */
void vdi_wait_for_actor_close(const struct vd_env *env, struct vd_actor *actor);

#endif
