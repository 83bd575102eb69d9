/* One completion queue of gRPC C core with its thread: it delivers all completions of the calls bound to it,
 * one at a time.
 *
 * A tag is a member of the object that starts a batch. It is handed to core with vdi_grpc_tag_hand right
 * before the batch starts, and returns exactly once through its run function. Writes of the starter before
 * that are visible in run.
 *
 * Core is not instrumented for the thread sanitizer: the release and the acquire on `handed` are what it
 * sees.
 */
#ifndef VDI_GRPC_QUEUE_H
#define VDI_GRPC_QUEUE_H

#include <stdatomic.h>

#include <grpc/grpc.h>

#include "base.h"

struct vdi_grpc_tag {
	/* On the queue's thread. Core's documentation defines success for each operation. */
	void (*run)(struct vdi_grpc_tag *tag, bool success);
	_Atomic unsigned handed;
};
static inline void vdi_grpc_tag_hand(struct vdi_grpc_tag *tag)
{
	atomic_fetch_add_explicit(&tag->handed, 1, memory_order_release);
}

struct vdi_grpc_queue;

struct vdi_grpc_queue_options {
	const char *name; /* name of the thread; a literal */
	/* Called after each wake, and at the time that the last call returned. Returns when it must be called
	 * again. */
	vd_mono (*iterate)(void *arg);
	/* The last callback: the queue has been freed. May block. */
	void (*ended)(void *arg);
	void *arg;
	/* actors that its events wake may run on its thread, if it slept before (actor_threads.h, lending) */
	bool lends;
};

/* The caller has entered core (grpc_runtime.h). No callback before vdi_grpc_queue_start. VD_NOMEM, VD_FULL
 * (no thread). */
VDI_MUST_USE vd_status vdi_grpc_queue_new(const struct vd_env		      *env,
					  const struct vdi_grpc_queue_options *options,
					  struct vdi_grpc_queue		     **ret_queue);
/* Frees a queue that was not started and has no calls; ended is not called. */
struct vdi_grpc_queue *vdi_grpc_queue_free(struct vdi_grpc_queue *queue);
void		       vdi_grpc_queue_start(struct vdi_grpc_queue *queue);
/* Causes an iteration; wakes before it runs are merged. Any thread; not after stop. */
void vdi_grpc_queue_wake(struct vdi_grpc_queue *queue);
/* Called once, on its own thread, when no batch will be started on it any more. The thread ends when all tags
 * have returned. */
void vdi_grpc_queue_stop(struct vdi_grpc_queue *queue);

/* Returns true on the queue's own thread. */
bool vdi_grpc_queue_is_own(const struct vdi_grpc_queue *queue);

grpc_completion_queue *vdi_grpc_queue_core(struct vdi_grpc_queue *queue);

/* VD_NEVER becomes core's infinite future. */
gpr_timespec vdi_grpc_timespec(vd_mono due);

#endif
