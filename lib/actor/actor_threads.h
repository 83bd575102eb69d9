/* Actors on a pool of threads, the executor of vd_env_new_threads().
 *
 * Ordinary actors share the pool's threads; a `blocking` actor gets a thread of its own. Idle threads sleep:
 * one of them until the next timer is due, the others until they are signalled, so an idle process uses no
 * CPU. If all threads are busy, a timer fires up to one handler's run late.
 */
#ifndef VDI_ACTOR_THREADS_H
#define VDI_ACTOR_THREADS_H

#include "base.h"

/* Starts the threads. VD_NOMEM. VD_FULL: the operating system refuses a thread. */
VDI_MUST_USE vd_status vdi_actor_threads_new(unsigned threads, struct vd_executor *ret_executor);
/* Frees the pool; executor is ret_executor->executor. All actors must have been closed (checked); waits for
 * their remaining runs and done callbacks. Not from an actor. */
void vdi_actor_threads_free(void *executor);

/* Defers this thread's wake-ups of pool threads until vdi_actor_calls_release, so that a thread that wakes
 * actors under a lock does not make their handlers block on that lock. Calls nest. Keep the time short, and
 * do not wait for such an actor in between. */
void vdi_actor_calls_hold(void);
void vdi_actor_calls_release(void);

/* Lends the calling thread to the pool. The thread of a blocking actor that waits for input (a connection)
 * wakes other actors when input arrives. Waking a pool thread for them costs more than most handlers do, so
 * between begin and end the calling thread counts as a pool thread: actors that it wakes may run in lend_end,
 * on this thread, until none is left or too much time has passed; a pool thread is woken for the rest. If a
 * handler took long, the thread is not lent for a hundred times that time. Call it only from a thread that
 * has just slept: if input arrives faster than it is handled, the pool's threads should share the work.
 *
 * On other threads than those of the pool's blocking actors both functions do nothing. The caller must hold
 * no locks in lend_end. */
VDI_SHARED void vdi_actor_lend_begin(void);
VDI_SHARED void vdi_actor_lend_end(void);

#endif
