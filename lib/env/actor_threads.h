/* Actors on a pool of threads, the runner of vd_env_new_threads().
 *
 * Ordinary actors share the pool's threads; a `blocking` actor gets a thread of its own. Idle threads sleep:
 * one of them until the next timer is due, the others until they are told, so an idle process uses no CPU. A
 * timer fires up to one handler's run late when all threads are busy.
 */
#ifndef VDI_ACTOR_THREADS_H
#define VDI_ACTOR_THREADS_H

#include "base.h"

/* Starts the threads. VD_NOMEM; VD_FULL when the operating system refuses a thread. */
VDI_MUST_USE vd_status vdi_actor_threads_new(unsigned threads, struct vd_runner *ret_runner);
/* runner is ret_runner->runner. Every actor must have been closed (a check); waits for the runs and done
 * calls still to come. Not from an actor. */
void vdi_actor_threads_free(void *runner);

/* Between these two this thread gets no sleeping thread of a pool up; the actors that it wakes wait for
 * calls_release. For a thread that wakes actors under a lock that their handlers take: who gets up finds it
 * free. They nest. Not for long, and nothing in between may wait for such an actor. */
void vdi_actor_calls_hold(void);
void vdi_actor_calls_release(void);

/* Lending. The thread of a blocking actor that waits for input (a connection) wakes other actors with what
 * came in. To get one of the pool's threads up for that costs more than most handlers do, so between these
 * two the caller's thread counts as one of the pool's: actors that it wakes may run in lend_end, on this
 * thread, until there are none left or it gets long; a thread of the pool is called for the rest. A thread
 * that lost much time to a handler is not lent for a hundred times as long. Not from a thread that has not
 * slept before: work that comes faster than it is done is better shared out.
 *
 * On any thread but a blocking actor's of such a pool both do nothing. No locks may be held in lend_end. */
VDI_SHARED void vdi_actor_lend_begin(void);
VDI_SHARED void vdi_actor_lend_end(void);

#endif
