/* A worker has an actor and processes one key at a time. Its actor takes a key and calls the handler; the end
 * of the processing may come inside the handler or later, from any thread, and wakes the actor for the next
 * key. An idle worker waits in the queue's list of consumers. The actor closes itself when the queue is shut
 * down and empty, or closed. */
#include "env.h"
#include "rate_limited_queue.h"

#define KEYS_MAX 16 /* keys per run of a worker */

static void on_worker_closed(void *arg)
{
	struct vd_work	     *worker = arg;
	struct vd_work_queue *queue = worker->queue;

	vdi_lock_acquire(&queue->lock);
	for (struct vd_work **place = &queue->workers; *place; place = &(*place)->next)
		if (*place == worker) {
			*place = worker->next;
			break;
		}
	queue->worker_count--;
	if (queue->is_closed)
		vd_actor_wake(queue->actor);
	vdi_lock_release(&queue->lock);
	vdi_free(worker);
}

enum step { WORK, IDLE, END };

static enum step next_step_locked(struct vd_work *worker)
{
	struct vd_work_queue *queue = worker->queue;

	if (worker->item || worker->is_ending)
		return IDLE;
	vdi_rate_limited_queue_unwait_locked(queue, &worker->waiter);
	if (!queue->is_closed && (worker->item = vdi_rate_limited_queue_take_locked(queue)))
		return WORK;
	if (queue->is_shutting_down) {
		worker->is_ending = true;
		return END;
	}
	vdi_rate_limited_queue_wait_locked(queue, &worker->waiter);
	return IDLE;
}

static void run_worker(void *arg)
{
	struct vd_work	     *worker = arg;
	struct vd_work_queue *queue = worker->queue;

	for (unsigned i = 0; i < KEYS_MAX; i++) {
		struct vd_bytes key = VD_BYTES_NONE;
		enum step	step;

		vdi_lock_acquire(&queue->lock);
		step = next_step_locked(worker);
		if (step == WORK)
			key = worker->item->key;
		vdi_lock_release(&queue->lock);
		if (step == END)
			vd_actor_close(worker->actor, on_worker_closed, worker);
		if (step != WORK)
			return;
		worker->work(worker->arg, worker, key);
	}
	vd_actor_wake(worker->actor);
}

/* ---- Construction ---- */

static vd_status new_worker(struct vd_work_queue *queue, const struct vd_worker_options *options,
			    struct vd_work **ret_worker)
{
	struct vd_work	       *worker = VDI_NEW(struct vd_work);
	struct vd_actor_options actor = {
		.name = "worker", .run = run_worker, .arg = worker, .blocking = options->blocking
	};
	vd_status status;

	if (worker == NULL)
		return VD_NOMEM;
	worker->queue = queue;
	worker->work = options->work;
	worker->arg = options->arg;
	status = vd_actor_new(queue->env, &actor, &worker->actor);
	if (status != VD_OK) {
		vdi_free(worker);
		return status;
	}
	worker->waiter = (struct vdi_work_waiter) { .kind = VDI_WORK_WAITER_WORKER, .actor = worker->actor };
	*ret_worker = worker;
	return VD_OK;
}

/* Closes workers that were never woken, so nothing uses them. */
static void drop_workers(struct vd_work *worker)
{
	while (worker) {
		struct vd_work *next = worker->next;

		vd_actor_close(worker->actor, vdi_free, worker);
		worker = next;
	}
}

/* Registers the workers and wakes them. */
static vd_status start_workers(struct vd_work_queue *queue, struct vd_work *first, unsigned count)
{
	struct vd_work *worker = first;

	vdi_lock_acquire(&queue->lock);
	if (queue->is_shutting_down) {
		vdi_lock_release(&queue->lock);
		return VD_CLOSED;
	}
	for (;; worker = worker->next) {
		vd_actor_wake(worker->actor);
		if (worker->next == NULL)
			break;
	}
	worker->next = queue->workers;
	queue->workers = first;
	queue->worker_count += count;
	vdi_lock_release(&queue->lock);
	return VD_OK;
}

vd_status vd_work_queue_run(struct vd_work_queue *queue, const struct vd_worker_options *options,
			    struct vd_error *reterr)
{
	struct vd_work *workers = NULL;
	vd_status	status = VD_OK;

	VDI_REQUIRE(queue, reterr);
	VDI_REQUIRE_OPTIONS(options, reterr);
	VDI_REQUIRE(options->work, reterr);
	if (options->concurrency == 0 || options->concurrency > VD_WORKERS_MAX)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "concurrency is %u, must be 1 to %d",
				    options->concurrency, VD_WORKERS_MAX);
	for (unsigned i = 0; i < options->concurrency && status == VD_OK; i++) {
		struct vd_work *worker;

		status = new_worker(queue, options, &worker);
		if (status == VD_OK) {
			worker->next = workers;
			workers = worker;
		}
	}
	if (status == VD_OK)
		status = start_workers(queue, workers, options->concurrency);
	if (status == VD_OK)
		return VD_OK;
	drop_workers(workers);
	return vd_error_set(reterr, status, "workers of a queue: %s", vd_status_sentence(status));
}

/* ---- The end of the processing ---- */

void vd_work_finish(struct vd_work *work, enum vd_work_result result, vd_dur after)
{
	struct vd_work_queue *queue;
	struct vdi_work_item *item;

	if (work == NULL)
		vdi_misuse("vd_work_finish: work is NULL");
	queue = work->queue;
	vdi_lock_acquire(&queue->lock);
	item = work->item;
	if (item == NULL)
		vdi_misuse("vd_work_finish: the worker processes no key: it was finished already");
	if (result == VD_WORK_RETRY) {
		vdi_rate_limited_queue_again_locked(queue, item,
						    vdi_rate_limited_queue_failed_locked(queue, item));
	} else {
		item->failures = 0;
		if (result == VD_WORK_AFTER)
			vdi_rate_limited_queue_again_locked(queue, item, after);
	}
	vdi_rate_limited_queue_done_locked(queue, item);
	work->item = NULL;
	vd_actor_wake(work->actor);
	vdi_lock_release(&queue->lock);
}

unsigned vd_work_num_requeues(const struct vd_work *work)
{
	struct vd_work_queue *queue = work ? work->queue : NULL;
	unsigned	      failures;

	if (queue == NULL)
		return 0;
	vdi_lock_acquire(&queue->lock);
	failures = work->item ? work->item->failures : 0;
	vdi_lock_release(&queue->lock);
	return failures;
}
