/* After a shutdown the queue refuses keys and wakes all consumers, which then find that it ends. A drain is a
 * node in a list until no key is queued or processed: it belongs to a blocked thread, or is allocated and the
 * queue's actor calls its function. */
#include "env.h"
#include "rate_limited_queue.h"

void vdi_rate_limited_queue_end_drains_locked(struct vd_work_queue *queue, vd_status status)
{
	struct vdi_work_drain *next;

	for (struct vdi_work_drain *drain = queue->drains; drain; drain = next) {
		next = drain->next;
		drain->status = status;
		if (drain->wait) {
			drain->is_over = true;
			vdi_wait_signal(drain->wait);
		} else {
			drain->next = queue->drained;
			queue->drained = drain;
			vd_actor_wake(queue->actor);
		}
	}
	queue->drains = NULL;
}

static void drop_delayed_locked(struct vd_work_queue *queue)
{
	struct vdi_timer *timer;

	while ((timer = vdi_timer_heap_pop_due(&queue->delayed, VD_NEVER)))
		vdi_rate_limited_queue_free_unless_used_locked(
			queue, VDI_CONTAINER_OF(timer, struct vdi_work_item, timer));
}

static void shutdown_locked(struct vd_work_queue *queue)
{
	queue->is_shutting_down = true;
	drop_delayed_locked(queue);
	while (queue->waiter_first)
		vdi_rate_limited_queue_wake_one_locked(queue);
}

void vd_work_queue_shutdown(struct vd_work_queue *queue)
{
	if (queue == NULL)
		return;
	vdi_lock_acquire(&queue->lock);
	shutdown_locked(queue);
	vdi_rate_limited_queue_end_drains_locked(queue, VD_CANCELED);
	vdi_lock_release(&queue->lock);
}

bool vd_work_queue_is_shutting_down(struct vd_work_queue *queue)
{
	bool is_shutting_down;

	if (queue == NULL)
		return true;
	vdi_lock_acquire(&queue->lock);
	is_shutting_down = queue->is_shutting_down;
	vdi_lock_release(&queue->lock);
	return is_shutting_down;
}

static void drain_locked(struct vd_work_queue *queue, struct vdi_work_drain *drain)
{
	drain->next = queue->drains;
	queue->drains = drain;
	shutdown_locked(queue);
	if (queue->processed == 0 && queue->count == 0)
		vdi_rate_limited_queue_end_drains_locked(queue, VD_OK);
}

vd_status vd_work_queue_shutdown_drain(struct vd_work_queue *queue, void (*done)(void *arg, vd_status status),
				       void		    *arg)
{
	struct vdi_work_drain *drain;

	VDI_REQUIRE(queue, NULL);
	VDI_REQUIRE(done, NULL);
	drain = VDI_NEW(struct vdi_work_drain);
	if (drain == NULL)
		return VD_NOMEM;
	drain->done = done;
	drain->arg = arg;
	vdi_lock_acquire(&queue->lock);
	drain_locked(queue, drain);
	vdi_lock_release(&queue->lock);
	return VD_OK;
}

vd_status vd_work_queue_shutdown_drain_wait(struct vd_work_queue *queue, vd_dur timeout)
{
	struct vdi_wait	      wait;
	struct vdi_work_drain drain = { .wait = &wait };
	vd_mono		      due;
	bool		      is_in_time;

	VDI_REQUIRE(queue, NULL);
	VDI_TRY(vdi_wait_check(queue->env, __func__, NULL));
	due = timeout.ns < 0 ? VD_NEVER : vd_mono_add(vd_env_now(queue->env), timeout);
	vdi_wait_init(&wait, queue->env);
	vdi_lock_acquire(&queue->lock);
	queue->blocked++;
	drain_locked(queue, &drain);
	vdi_lock_release(&queue->lock);
	is_in_time = vdi_wait_until(&wait, due);
	vdi_lock_acquire(&queue->lock);
	if (!is_in_time && !drain.is_over) {
		struct vdi_work_drain **place = &queue->drains;

		while (*place != &drain)
			place = &(*place)->next;
		*place = drain.next;
		drain.status = VD_TIMEOUT;
	}
	queue->blocked--;
	if (queue->is_closed)
		vd_actor_wake(queue->actor);
	vdi_lock_release(&queue->lock);
	vdi_wait_fini(&wait);
	return drain.status;
}

void vd_work_queue_close(struct vd_work_queue *queue, void (*done)(void *arg), void *arg)
{
	if (queue == NULL) {
		if (done)
			done(arg);
		return;
	}
	if (atomic_exchange(&queue->usage.is_closing, true))
		vdi_misuse("vd_work_queue_close: the work queue %s is closing already",
			   queue->name ? queue->name : "without a name");
	vdi_lock_acquire(&queue->lock);
	queue->is_closed = true;
	queue->closed = done;
	queue->closed_arg = arg;
	shutdown_locked(queue);
	vdi_rate_limited_queue_end_drains_locked(queue, VD_CANCELED);
	vd_actor_wake(queue->actor);
	vdi_lock_release(&queue->lock);
}

struct vd_work_queue *vd_work_queue_close_wait(struct vd_work_queue *queue)
{
	struct vdi_wait wait;

	if (queue == NULL)
		return NULL;
	vdi_wait_check_close(__func__, "vd_work_queue_close");
	vdi_wait_init(&wait, queue->env);
	vd_work_queue_close(queue, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	return NULL;
}
