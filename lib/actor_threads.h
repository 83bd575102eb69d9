/* Actors on a pool of threads, the runner of vd_env_new_threads().
 *
 * Ordinary actors share the pool's threads; a `blocking` actor gets a thread of its own. Idle threads sleep: one of them until the next
 * timer is due, the others until they are told, so an idle process uses no CPU. A timer fires up to one handler's run late when all
 * threads are busy.
 */
#ifndef VDI_ACTOR_THREADS_H
#define VDI_ACTOR_THREADS_H

#include "base.h"

/* Starts the threads. VD_NOMEM; VD_FULL when the operating system refuses a thread. */
VDI_MUST_USE vd_status vdi_actor_threads_new(unsigned threads, struct vd_runner *ret_runner);
/* runner is ret_runner->runner. Every actor must have been closed (a check); waits for the runs and done calls still to come. Not
 * from an actor. */
void vdi_actor_threads_free(void *runner);

#endif
