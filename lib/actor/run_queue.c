#include "run_queue.h"

#include "wait.h"

void vdi_run_queue_init(struct vdi_run_queue *queue, enum vdi_lock_name name)
{
	vdi_lock_init(&queue->lock, name);
}

void vdi_run_queue_fini(struct vdi_run_queue *queue)
{
	VDI_CHECK(queue->first == NULL && queue->timers.count == 0);
	vdi_lock_fini(&queue->lock);
}

void vdi_run_queue_push_locked(struct vdi_run_queue *queue, struct vdi_queued_actor *actor)
{
	actor->next = NULL;
	if (queue->last)
		queue->last->next = actor;
	else
		queue->first = actor;
	queue->last = actor;
}

struct vdi_queued_actor *vdi_run_queue_pop_locked(struct vdi_run_queue *queue)
{
	struct vdi_queued_actor *actor = queue->first;

	if (actor) {
		queue->first = actor->next;
		if (queue->first == NULL)
			queue->last = NULL;
	}
	return actor;
}

void vdi_run_queue_fire_timers_locked(struct vdi_run_queue *queue, vd_mono now)
{
	struct vdi_timer *timer;

	while ((timer = vdi_timer_heap_pop_due(&queue->timers, now)) != NULL) {
		struct vdi_queued_actor *actor = VDI_CONTAINER_OF(timer, struct vdi_queued_actor, timer);

		if (vdi_actor_state_wake(&actor->state))
			vdi_run_queue_push_locked(queue, actor);
	}
}

vd_status vdi_queued_actor_new(struct vdi_run_queue *queue, const struct vd_executor_ops *ops,
			       const struct vd_actor_options *options, struct vd_actor **ret_actor)
{
	struct vdi_queued_actor *actor = VDI_NEW(struct vdi_queued_actor);

	if (actor == NULL)
		return VD_NOMEM;
	actor->actor.ops = ops;
	actor->queue = queue;
	actor->options = *options;
	atomic_init(&actor->state, 0);
	atomic_fetch_add(&queue->actors_open, 1);
	*ret_actor = &actor->actor;
	return VD_OK;
}

bool vdi_queued_actor_close(struct vdi_queued_actor *actor, void (*done)(void *arg), void *arg)
{
	atomic_fetch_sub(&actor->queue->actors_open, 1);
	actor->done = done;
	actor->done_arg = arg;
	return vdi_actor_state_close(&actor->state);
}

static void end_actor(struct vdi_queued_actor *actor)
{
	struct vdi_run_queue *queue = actor->queue;
	void (*done)(void *arg) = actor->done;
	void *done_arg = actor->done_arg;

	vdi_lock_acquire(&queue->lock);
	vdi_timer_heap_remove(&queue->timers, &actor->timer);
	vdi_lock_release(&queue->lock);
	vdi_free(actor);
	if (done)
		done(done_arg);
}

struct vdi_queued_actor *vdi_queued_actor_run(struct vdi_queued_actor *actor)
{
	const char *outer = vdi_wait_enter_handler(actor->options.name);

	if (!vdi_actor_state_start(&actor->state)) {
		end_actor(actor);
		actor = NULL;
	} else {
		actor->options.run(actor->options.arg);
		actor = vdi_actor_state_finish(&actor->state) ? actor : NULL;
	}
	vdi_wait_leave_handler(outer);
	return actor;
}

void vdi_run_queue_drain(struct vdi_run_queue *queue)
{
	struct vdi_queued_actor *actor;

	vdi_lock_acquire(&queue->lock);
	while ((actor = vdi_run_queue_pop_locked(queue)) != NULL) {
		vdi_lock_release(&queue->lock);
		VDI_CHECK(vdi_queued_actor_run(actor) == NULL);
		vdi_lock_acquire(&queue->lock);
	}
	vdi_lock_release(&queue->lock);
}
