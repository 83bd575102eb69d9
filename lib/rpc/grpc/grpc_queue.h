/* One completion queue of gRPC's core with its thread: everything that core reports about calls bound to it
 * comes out there, one at a time.
 *
 * A tag lies inside whoever starts a batch. It is handed to core with vdi_grpc_tag_hand right before the
 * batch starts, and comes back exactly once through its run function. What the starter wrote before is
 * visible there.
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
	/* On the queue's thread. success is core's word; see there what it means for which operation. */
	void (*run)(struct vdi_grpc_tag *tag, bool success);
	_Atomic unsigned handed;
};
static inline void vdi_grpc_tag_hand(struct vdi_grpc_tag *tag)
{
	atomic_fetch_add_explicit(&tag->handed, 1, memory_order_release);
}

struct vdi_grpc_queue;

struct vdi_grpc_queue_options {
	const char *name; /* of the thread; a literal */
	/* After each wake, and when the instant that it answered last has come. Answers when to be called
	 * again at the latest. */
	vd_mono (*round)(void *arg);
	/* The last of all: the queue is gone. May block. */
	void (*ended)(void *arg);
	void *arg;
	/* What came after the thread had slept may run on in it (actor_threads.h, lending). */
	bool lends;
};

/* Core must have been entered (grpc_runtime.h). Nothing runs before vdi_grpc_queue_start. VD_NOMEM, VD_FULL
 * (no thread). */
VDI_MUST_USE vd_status vdi_grpc_queue_new(const struct vd_env		      *env,
					  const struct vdi_grpc_queue_options *options,
					  struct vdi_grpc_queue		     **ret_queue);
/* Instead of starting it: ended is not called. Nothing may be bound to it. */
struct vdi_grpc_queue *vdi_grpc_queue_free(struct vdi_grpc_queue *queue);
void		       vdi_grpc_queue_start(struct vdi_grpc_queue *queue);
/* Any thread, not after stop. Many wakes before a round cause one round. */
void vdi_grpc_queue_wake(struct vdi_grpc_queue *queue);
/* On its own thread, once: no batch will be started on it any more. When all tags are back its thread
 * ends. */
void vdi_grpc_queue_stop(struct vdi_grpc_queue *queue);

/* Whether the caller is its thread. */
bool vdi_grpc_queue_is_own(const struct vdi_grpc_queue *queue);

grpc_completion_queue *vdi_grpc_queue_core(struct vdi_grpc_queue *queue);

/* NEVER is core's infinite future. */
gpr_timespec vdi_grpc_timespec(vd_mono due);

#endif
