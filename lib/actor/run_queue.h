/* The actors of one executor that are ready to run, in order, with the timers of all its actors. One lock
 * protects both, and may also protect the executor's own state.
 *
 * The executor decides which thread runs an actor and how a sleeping thread learns of it. Functions named
 * _locked need the lock; the others must be called without it.
 */
#ifndef VDI_RUN_QUEUE_H
#define VDI_RUN_QUEUE_H

#include "actor_state.h"
#include "env.h"
#include "lock.h"
#include "timer.h"

struct vdi_run_queue;

struct vdi_queued_actor {
	/* Fixed at creation. */
	struct vd_actor		actor;
	struct vdi_run_queue   *queue;
	struct vd_actor_options options;

	vdi_actor_state state;

	/* Written before CLOSING is set. */
	void (*done)(void *arg);
	void *done_arg;

	/* Under the queue's lock. */
	struct vdi_queued_actor *next;
	struct vdi_timer	 timer;
};

struct vdi_run_queue {
	struct vdi_lock lock;
	_Atomic int64_t actors_open; /* created and not yet closed */

	/* Under lock. */
	struct vdi_queued_actor *first;
	struct vdi_queued_actor *last;
	struct vdi_timer_heap	 timers;
};

static inline struct vdi_queued_actor *vdi_queued_actor_of(struct vd_actor *actor)
{
	return VDI_CONTAINER_OF(actor, struct vdi_queued_actor, actor);
}

void vdi_run_queue_init(struct vdi_run_queue *queue, enum vdi_lock_name name);
/* No actor is left. */
void vdi_run_queue_fini(struct vdi_run_queue *queue);

void vdi_run_queue_push_locked(struct vdi_run_queue *queue, struct vdi_queued_actor *actor);
/* NULL: the queue is empty. */
struct vdi_queued_actor *vdi_run_queue_pop_locked(struct vdi_run_queue *queue);
/* Queues the actors whose timers are due at now. */
void vdi_run_queue_fire_timers_locked(struct vdi_run_queue *queue, vd_mono now);

/* Creates an actor of this queue. VD_NOMEM. */
VD_MUST_USE vd_status vdi_queued_actor_new(struct vdi_run_queue *queue, const struct vd_executor_ops *ops,
					   const struct vd_actor_options *options,
					   struct vd_actor		**ret_actor);
/* Starts closing the actor; done is called by the run that ends it. True: the caller must queue the actor. */
VD_MUST_USE bool vdi_queued_actor_close(struct vdi_queued_actor *actor, void (*done)(void *arg), void *arg);
/* Runs the actor's handler, or ends a closing actor and calls its done. Returns the actor if it must be
 * queued again, otherwise NULL. */
VD_MUST_USE struct vdi_queued_actor *vdi_queued_actor_run(struct vdi_queued_actor *actor);
/* Ends the actors that are still queued, for an executor that is being freed. All of them are closing. */
void vdi_run_queue_drain(struct vdi_run_queue *queue);

#endif
