/* A state under a lock, and a list of waiters: actors to be woken, and blocked callers that each have a
 * struct vdi_wait on their stack. */
#include "ready.h"

#include <math.h>

void vdi_ready_init(struct vdi_ready *ready, const struct vd_env *env)
{
	*ready = (struct vdi_ready) { .env = env, .changed = vd_env_now(env) };
	vdi_lock_init(&ready->lock, VDI_LOCK_READY);
}

void vdi_ready_fini(struct vdi_ready *ready)
{
	vdi_lock_fini(&ready->lock);
}

static void set_state(struct vdi_ready *ready, enum vdi_ready_state state, const char *message)
{
	struct vdi_ready_waiter *waiters = NULL;

	vdi_lock_acquire(&ready->lock);
	if (ready->state != VDI_READY_STOPPED) {
		if (ready->state != state) {
			ready->generation += state == VDI_READY_READY;
			ready->changed = vd_env_now(ready->env);
			ready->state = state;
		}
		ready->has_error = message && *message;
		if (ready->has_error) {
			size_t size = VDI_MIN(strlen(message), sizeof ready->error - 1);

			memcpy(ready->error, message, size);
			ready->error[size] = 0;
		}
		if (state != VDI_READY_PENDING) {
			waiters = ready->waiters;
			ready->waiters = NULL;
		}
	}
	/* A waiter may be freed after its notify. Waiters that are not notified yet take this lock before
	 * they leave. */
	while (waiters) {
		struct vdi_ready_waiter *waiter = waiters;

		waiters = waiter->next;
		waiter->notify(waiter->arg);
	}
	vdi_lock_release(&ready->lock);
}

void vdi_ready_set_pending(struct vdi_ready *ready, const char *message)
{
	set_state(ready, VDI_READY_PENDING, message);
}

void vdi_ready_set_ready(struct vdi_ready *ready)
{
	set_state(ready, VDI_READY_READY, NULL);
}

void vdi_ready_stop(struct vdi_ready *ready)
{
	set_state(ready, VDI_READY_STOPPED, NULL);
}

uint32_t vdi_ready_retry_after_s(vd_dur in_state)
{
	double seconds = (double) in_state.ns / 1e9;
	double value = exp(0.06 * VDI_MIN(seconds, 60.0));

	return value < 1 ? 1 : value > 30 ? 30 : (uint32_t) value;
}

static vd_status check_locked(struct vdi_ready *ready, uint64_t *ret_generation, struct vd_error *reterr)
{
	uint32_t retry_after_s;

	if (ready->state == VDI_READY_READY) {
		if (ret_generation)
			*ret_generation = ready->generation;
		return VD_OK;
	}
	retry_after_s = vdi_ready_retry_after_s(vd_mono_since(vd_env_now(ready->env), ready->changed));
	if (ready->state == VDI_READY_STOPPED)
		vd_error_set(reterr, VD_CLOSED, "apiserver cacher is stopped");
	else if (ready->has_error)
		vd_error_set(reterr, VD_NOT_READY, "storage is (re)initializing: %s", ready->error);
	else
		vd_error_set(reterr, VD_NOT_READY, "storage is (re)initializing");
	if (reterr)
		reterr->retry_after_s = retry_after_s;
	return ready->state == VDI_READY_STOPPED ? VD_CLOSED : VD_NOT_READY;
}

vd_status vdi_ready_check(struct vdi_ready *ready, uint64_t *ret_generation, struct vd_error *reterr)
{
	vd_status status;

	vdi_lock_acquire(&ready->lock);
	status = check_locked(ready, ret_generation, reterr);
	vdi_lock_release(&ready->lock);
	return status;
}

bool vdi_ready_listen(struct vdi_ready *ready, struct vdi_ready_waiter *waiter)
{
	bool is_pending;

	vdi_lock_acquire(&ready->lock);
	is_pending = ready->state == VDI_READY_PENDING;
	if (is_pending) {
		waiter->next = ready->waiters;
		ready->waiters = waiter;
	}
	vdi_lock_release(&ready->lock);
	return is_pending;
}

void vdi_ready_forget(struct vdi_ready *ready, struct vdi_ready_waiter *waiter)
{
	vdi_lock_acquire(&ready->lock);
	for (struct vdi_ready_waiter **place = &ready->waiters; *place; place = &(*place)->next)
		if (*place == waiter) {
			*place = waiter->next;
			break;
		}
	vdi_lock_release(&ready->lock);
}

vd_status vdi_ready_wait(struct vdi_ready *ready, vd_mono due, struct vd_error *reterr)
{
	struct vdi_wait		wait;
	struct vdi_ready_waiter waiter = { .notify = vdi_wait_signal_arg, .arg = &wait };
	vd_status		status;

	for (;;) {
		struct vd_error error = { 0 };
		bool		in_time;

		status = vdi_ready_check(ready, NULL, &error);
		if (status != VD_NOT_READY) {
			if (status != VD_OK && reterr)
				*reterr = error;
			return status;
		}
		vdi_wait_init(&wait, ready->env);
		in_time = !vdi_ready_listen(ready, &waiter) || vdi_wait_until(&wait, due);
		vdi_ready_forget(ready, &waiter);
		vdi_wait_fini(&wait);
		if (!in_time)
			return vdi_ready_check(ready, NULL, reterr);
	}
}
