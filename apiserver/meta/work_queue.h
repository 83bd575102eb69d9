/* Threads for work that would hold an event loop for too long: edits of large objects, schemas, documents,
 * searches through many objects.
 *
 * A bounded queue, served by a few threads, oldest first. A piece of work belongs to the poster and must live
 * until its run function has returned. That function computes and reports completion in its own way
 * (vdi_request_got_object). It touches nothing that a loop owns.
 */
#ifndef VDI_WORK_QUEUE_H
#define VDI_WORK_QUEUE_H

#include "queue.h"

#define VDI_WORK_THREADS 2
#define VDI_WORK_COUNT_MAX 256
/* bytes of request body and present object that a loop edits itself: a few milliseconds at most */
#define VDI_WORK_BYTES_SHORT ((size_t) 16384)

struct vdi_work {
	void (*run)(struct vdi_work *work);
};

struct vdi_work_queue {
	const struct vd_env    *env;
	struct vdi_queue_shared queue;
	struct vd_actor	       *workers[VDI_WORK_THREADS];
};

/* name, for metrics and threads, is kept. VD_NOMEM, VD_FULL. */
VDI_MUST_USE vd_status vdi_work_queue_init(struct vdi_work_queue *work, const struct vd_env *env,
					   const char *name);
/* All posted work must have run. Waits for the threads. All zero is fine. */
void vdi_work_queue_fini(struct vdi_work_queue *work);

/* Any thread. VD_FULL: VDI_WORK_COUNT_MAX pieces are queued already; nothing was posted. */
VDI_MUST_USE vd_status vdi_work_queue_post(struct vdi_work_queue *queue, struct vdi_work *work);
/* Returns true if the calling thread is inside a run function of any queue. */
bool vdi_work_is_current(void);

#endif
