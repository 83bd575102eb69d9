/* The ready state of a cacher (pending, ready or stopped) and its generation, as kubernetes/apiserver
 * pkg/storage/cacher/ready.go.
 *
 * Any thread; own lock (VDI_LOCK_READY). Waiters are called under it.
 */
#ifndef VDI_READY_H
#define VDI_READY_H

#include "base.h"
#include "lock.h"
#include "wait.h"

enum vdi_ready_state { VDI_READY_PENDING, VDI_READY_READY, VDI_READY_STOPPED };

struct vdi_ready_waiter {
	void (*notify)(void *arg); /* must neither block nor call this module */
	void			*arg;
	struct vdi_ready_waiter *next;
};

struct vdi_ready {
	const struct vd_env *env;
	struct vdi_lock	     lock;

	/* Under lock. */
	enum vdi_ready_state	 state;
	uint64_t		 generation; /* counts pending -> ready */
	vd_mono			 changed;
	bool			 has_error;
	char			 error[VD_ERROR_MESSAGE_SIZE];
	struct vdi_ready_waiter *waiters;
};

void vdi_ready_init(struct vdi_ready *ready, const struct vd_env *env);
void vdi_ready_fini(struct vdi_ready *ready);
/* Ignored after a stop. message may be NULL. */
void vdi_ready_set_pending(struct vdi_ready *ready, const char *message);
void vdi_ready_set_ready(struct vdi_ready *ready);
void vdi_ready_stop(struct vdi_ready *ready);
/* Returns VD_OK with the generation; VD_NOT_READY with a message and retry_after_s; VD_CLOSED. ret_generation
 * may be NULL. */
VDI_MUST_USE vd_status vdi_ready_check(struct vdi_ready *ready, uint64_t *ret_generation,
				       struct vd_error *reterr);
/* Blocks until the cacher is ready or stopped, or until due. */
VDI_MUST_USE vd_status vdi_ready_wait(struct vdi_ready *ready, vd_mono due, struct vd_error *reterr);
/* Registers a waiter; its notify is called once, when the cacher is ready or stopped. Returns false if it is
 * ready or stopped now; notify is then not called. */
VDI_MUST_USE bool vdi_ready_listen(struct vdi_ready *ready, struct vdi_ready_waiter *waiter);
/* Unregisters a waiter; notify is not called after the return. Safe after notify was called, or without
 * registration. */
void vdi_ready_forget(struct vdi_ready *ready, struct vdi_ready_waiter *waiter);
/* Returns clamp(e^(0.06 s), 1, 30), rounded down, for s seconds in the state. */
uint32_t vdi_ready_retry_after_s(vd_dur in_state);

#endif
