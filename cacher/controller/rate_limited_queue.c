/* client-go's work queue. Each known key has one item, whose links are part of it: only the first addition of
 * a key allocates, so the end of its processing, a retry and a delay cannot fail.
 *
 *                 delayed (heap)
 *                    | due                          done, not dirty, no failures
 *   add --> dirty, queued --take--> processed ---------------------------------------> freed
 *                ^                     | added meanwhile: dirty, not queued
 *                \------- done --------/
 *
 * A consumer without a key waits in one list: threads, idle workers, callbacks. Each queued key wakes one of
 * them. The queue's actor moves delayed keys when their time has come, and calls the callbacks, because they
 * must not run inside the caller's add.
 */
#include "env.h"
#include "rate_limited_queue.h"

#define CALLBACKS_MAX 1024
#define DUE_MAX 256 /* delayed keys per run of the actor */

/* ---- Items ---- */

static bool is_key(const void *entry, const void *key)
{
	return vd_bytes_equal(((const struct vdi_work_item *) entry)->key, *(const struct vd_bytes *) key);
}

static struct vdi_work_item *find_locked(struct vd_work_queue *queue, struct vd_bytes key)
{
	if (key.size && key.data == NULL)
		return NULL; /* no key was added like this */
	return vdi_hash_get(&queue->items, vdi_hash_bytes(key, queue->seed), &key);
}

static vd_status find_or_new_locked(struct vd_work_queue *queue, struct vd_bytes key,
				    struct vdi_work_item **ret_item)
{
	uint64_t	      hash = vdi_hash_bytes(key, queue->seed);
	struct vdi_work_item *item = vdi_hash_get(&queue->items, hash, &key);
	vd_status	      status;

	if (item == NULL) {
		if (queue->items.count >= queue->items_max)
			return VD_FULL;
		item = vdi_alloc(sizeof *item + key.size);
		if (item == NULL)
			return VD_NOMEM;
		*item = (struct vdi_work_item) { .hash = hash, .key = { item->data, key.size } };
		if (key.size)
			memcpy(item->data, key.data, key.size);
		status = vdi_hash_put(&queue->items, hash, &item->key, item, NULL);
		if (status != VD_OK) {
			vdi_free(item);
			return status;
		}
	}
	*ret_item = item;
	return VD_OK;
}

void vdi_rate_limited_queue_free_unless_used_locked(struct vd_work_queue *queue, struct vdi_work_item *item)
{
	if (item->is_dirty || item->is_processing || vdi_timer_is_set(&item->timer) || item->failures)
		return;
	(void) vdi_hash_remove(&queue->items, item->hash, &item->key);
	vdi_free(item);
}

/* ---- Consumers ---- */

void vdi_rate_limited_queue_wait_locked(struct vd_work_queue *queue, struct vdi_work_waiter *waiter)
{
	waiter->next = NULL;
	waiter->is_listed = true;
	if (queue->waiter_last)
		queue->waiter_last->next = waiter;
	else
		queue->waiter_first = waiter;
	queue->waiter_last = waiter;
}

void vdi_rate_limited_queue_unwait_locked(struct vd_work_queue *queue, struct vdi_work_waiter *waiter)
{
	struct vdi_work_waiter *previous = NULL;

	if (!waiter->is_listed)
		return;
	for (struct vdi_work_waiter *at = queue->waiter_first; at != waiter; at = at->next)
		previous = at;
	if (previous)
		previous->next = waiter->next;
	else
		queue->waiter_first = waiter->next;
	if (queue->waiter_last == waiter)
		queue->waiter_last = previous;
	waiter->is_listed = false;
}

void vdi_rate_limited_queue_wake_one_locked(struct vd_work_queue *queue)
{
	struct vdi_work_waiter *waiter = queue->waiter_first;

	if (waiter == NULL)
		return;
	vdi_rate_limited_queue_unwait_locked(queue, waiter);
	switch (waiter->kind) {
	case VDI_WORK_WAITER_READY:
		waiter->next = queue->called;
		queue->called = waiter;
		vd_actor_wake(queue->actor);
		break;
	case VDI_WORK_WAITER_THREAD: vdi_wait_signal(waiter->wait); break;
	case VDI_WORK_WAITER_WORKER: vd_actor_wake(waiter->actor); break;
	}
}

/* ---- Queued and processed items ---- */

static void push_locked(struct vd_work_queue *queue, struct vdi_work_item *item)
{
	item->next = NULL;
	if (queue->last)
		queue->last->next = item;
	else
		queue->first = item;
	queue->last = item;
	queue->count++;
	vdi_rate_limited_queue_wake_one_locked(queue);
}

static void add_item_locked(struct vd_work_queue *queue, struct vdi_work_item *item)
{
	if (item->is_dirty)
		return;
	item->is_dirty = true;
	item->added = vd_env_now(queue->env);
	vdi_metric_add(queue->metrics.adds, 1);
	vdi_metric_add(queue->metrics.depth, 1);
	if (!item->is_processing)
		push_locked(queue, item);
}

struct vdi_work_item *vdi_rate_limited_queue_take_locked(struct vd_work_queue *queue)
{
	struct vdi_work_item *item = queue->first;

	if (item == NULL)
		return NULL;
	queue->first = item->next;
	if (queue->first == NULL)
		queue->last = NULL;
	queue->count--;
	item->is_dirty = false;
	item->is_processing = true;
	item->started = vd_env_now(queue->env);
	item->next = NULL;
	item->previous = queue->processed_last;
	if (queue->processed_last)
		queue->processed_last->next = item;
	else
		queue->processed_first = item;
	queue->processed_last = item;
	queue->processed++;
	vdi_metric_subtract(queue->metrics.depth, 1);
	vdi_metric_observe_duration(queue->metrics.queue_duration, vd_mono_since(item->started, item->added));
	return item;
}

void vdi_rate_limited_queue_done_locked(struct vd_work_queue *queue, struct vdi_work_item *item)
{
	vdi_metric_observe_duration(queue->metrics.work_duration,
				    vd_mono_since(vd_env_now(queue->env), item->started));
	if (item->previous)
		item->previous->next = item->next;
	else
		queue->processed_first = item->next;
	if (item->next)
		item->next->previous = item->previous;
	else
		queue->processed_last = item->previous;
	queue->processed--;
	item->is_processing = false;
	if (item->is_dirty)
		push_locked(queue, item);
	else
		vdi_rate_limited_queue_free_unless_used_locked(queue, item);
	if (queue->processed == 0 && queue->count == 0)
		vdi_rate_limited_queue_end_drains_locked(queue, VD_OK);
}

/* ---- Delays ---- */

void vdi_rate_limited_queue_again_locked(struct vd_work_queue *queue, struct vdi_work_item *item,
					 vd_dur delay)
{
	vd_mono due = vd_mono_add(vd_env_now(queue->env), delay);
	vd_mono before = vdi_timer_heap_next_due(&queue->delayed);

	if (queue->is_shutting_down)
		return;
	vdi_metric_add(queue->metrics.retries, 1);
	if (delay.ns <= 0) {
		add_item_locked(queue, item);
		return;
	}
	if (vdi_timer_is_set(&item->timer) && item->timer.due.ns <= due.ns)
		return;
	vdi_timer_heap_set(&queue->delayed, &item->timer, due);
	if (due.ns < before.ns)
		vd_actor_wake(queue->actor);
}

vd_dur vdi_rate_limited_queue_failed_locked(struct vd_work_queue *queue, struct vdi_work_item *item)
{
	vd_dur delay = vdi_rate_limiter_when(&queue->limiter, item->failures, vd_env_now(queue->env));

	if (item->failures < UINT32_MAX)
		item->failures++;
	return delay;
}

/* ---- The actor ---- */

static void free_items(struct vd_work_queue *queue)
{
	struct vdi_work_item *item;
	size_t		      position = 0;

	while ((item = vdi_hash_next(&queue->items, &position))) {
		if (item->is_dirty)
			vdi_metric_subtract(queue->metrics.depth, 1);
		vdi_free(item);
	}
	vdi_hash_fini(&queue->items);
}

static void free_queue(struct vd_work_queue *queue)
{
	vdi_usage_end(&queue->usage);
	free_items(queue);
	vdi_work_metrics_fini(queue);
	vdi_lock_fini(&queue->lock);
	vdi_free(queue->name);
	vdi_free(queue);
}

static void on_queue_closed(void *arg)
{
	struct vd_work_queue *queue = arg;
	void (*closed)(void *) = queue->closed;
	void *closed_arg = queue->closed_arg;

	free_queue(queue);
	if (closed)
		closed(closed_arg);
}

/* Calls the callbacks of consumers that were woken, and those of drains. */
static void call_back(struct vd_work_queue *queue)
{
	struct vdi_work_waiter *waiter;
	struct vdi_work_drain  *drain;

	vdi_lock_acquire(&queue->lock);
	while ((waiter = queue->called)) {
		queue->called = waiter->next;
		queue->callbacks--;
		vdi_lock_release(&queue->lock);
		waiter->ready(waiter->arg);
		vdi_free(waiter);
		vdi_lock_acquire(&queue->lock);
	}
	while ((drain = queue->drained)) {
		queue->drained = drain->next;
		vdi_lock_release(&queue->lock);
		drain->done(drain->arg, drain->status);
		vdi_free(drain);
		vdi_lock_acquire(&queue->lock);
	}
	vdi_lock_release(&queue->lock);
}

static void run(void *arg)
{
	struct vd_work_queue *queue = arg;
	vd_mono		      now = vd_env_now(queue->env);
	struct vdi_timer     *timer;
	bool		      is_over;

	call_back(queue);
	vdi_lock_acquire(&queue->lock);
	for (unsigned i = 0; i < DUE_MAX && (timer = vdi_timer_heap_pop_due(&queue->delayed, now)); i++)
		add_item_locked(queue, VDI_CONTAINER_OF(timer, struct vdi_work_item, timer));
	is_over = queue->is_closed && queue->worker_count == 0 && queue->blocked == 0 &&
		  queue->called == NULL && queue->drained == NULL;
	if (!is_over)
		vd_actor_set_timer(queue->actor, vdi_timer_heap_next_due(&queue->delayed));
	vdi_lock_release(&queue->lock);
	if (is_over)
		vd_actor_close(queue->actor, on_queue_closed, queue);
}

/* ---- Construction ---- */

static vd_status check_options(const struct vd_work_queue_options *options, struct vd_error *reterr)
{
	if (options->items_max == 0 || options->items_max > VDI_HASH_COUNT_MAX)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "items_max is %zu, must be 1 to %zu",
				    options->items_max, VDI_HASH_COUNT_MAX);
	return vdi_rate_limits_check(&options->limits, reterr);
}

static vd_status build(struct vd_work_queue *queue, const char *name)
{
	struct vd_actor_options actor = { .name = "work_queue", .run = run, .arg = queue };

	if (name) {
		queue->name = vdi_strdup(name);
		if (queue->name == NULL)
			return VD_NOMEM;
	}
	VDI_TRY(vdi_work_metrics_init(queue));
	return vd_actor_new(queue->env, &actor, &queue->actor);
}

vd_status vd_work_queue_new(const struct vd_env *env, const struct vd_work_queue_options *options,
			    struct vd_work_queue **ret_queue, struct vd_error *reterr)
{
	static const struct vd_work_queue_options defaults = VD_WORK_QUEUE_OPTIONS_INIT;
	struct vd_work_queue			 *queue;
	vd_status				  status;

	VDI_REQUIRE(env, reterr);
	VDI_REQUIRE(ret_queue, reterr);
	if (options == NULL)
		options = &defaults;
	VDI_REQUIRE_OPTIONS(options, reterr);
	VDI_TRY(check_options(options, reterr));
	queue = VDI_NEW(struct vd_work_queue);
	if (queue == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory for a work queue");
	queue->env = env;
	queue->items_max = options->items_max;
	queue->seed = vdi_hash_seed();
	vdi_rate_limiter_init(&queue->limiter, &options->limits, vd_env_now(env));
	vdi_hash_init(&queue->items, is_key, options->items_max);
	vdi_lock_init(&queue->lock, VDI_LOCK_CONTROLLER);
	status = build(queue, options->name);
	if (status != VD_OK) {
		free_queue(queue);
		return vd_error_set(reterr, status, "%s for a work queue", vd_status_sentence(status));
	}
	queue->usage = (struct vdi_usage) {
		.kind = "work queue", .name = queue->name, .closed_by = "vd_work_queue_close", .env = env
	};
	vdi_usage_begin(&queue->usage);
	*ret_queue = queue;
	return VD_OK;
}

/* ---- Adding ---- */

enum addition { ADD, ADD_AFTER, ADD_RATE_LIMITED };

static vd_status admit_locked(struct vd_work_queue *queue, struct vd_bytes key,
			      struct vdi_work_item **ret_item)
{
	if (queue->is_shutting_down)
		return VD_CLOSED;
	if (key.size > VD_WORK_KEY_SIZE_MAX)
		return VD_TOO_BIG;
	return find_or_new_locked(queue, key, ret_item);
}

/* Adds a key for a caller; delay: of ADD_AFTER. */
static vd_status add(struct vd_work_queue *queue, struct vd_bytes key, enum addition addition, vd_dur delay)
{
	struct vdi_work_item *item;
	vd_status	      status;

	VDI_REQUIRE(queue, NULL);
	VDI_REQUIRE_BYTES(key, NULL);
	vdi_lock_acquire(&queue->lock);
	status = admit_locked(queue, key, &item);
	if (status == VD_OK && addition == ADD_RATE_LIMITED)
		delay = vdi_rate_limited_queue_failed_locked(queue, item);
	if (status == VD_OK && addition == ADD)
		add_item_locked(queue, item);
	else if (status == VD_OK)
		vdi_rate_limited_queue_again_locked(queue, item, delay);
	vdi_lock_release(&queue->lock);
	return status;
}

vd_status vd_work_queue_add(struct vd_work_queue *queue, struct vd_bytes key)
{
	return add(queue, key, ADD, (vd_dur) { 0 });
}

vd_status vd_work_queue_add_after(struct vd_work_queue *queue, struct vd_bytes key, vd_dur delay)
{
	return add(queue, key, ADD_AFTER, delay);
}

vd_status vd_work_queue_add_rate_limited(struct vd_work_queue *queue, struct vd_bytes key)
{
	return add(queue, key, ADD_RATE_LIMITED, (vd_dur) { 0 });
}

void vd_work_queue_forget(struct vd_work_queue *queue, struct vd_bytes key)
{
	struct vdi_work_item *item;

	if (queue == NULL)
		return;
	vdi_lock_acquire(&queue->lock);
	item = find_locked(queue, key);
	if (item) {
		item->failures = 0;
		vdi_rate_limited_queue_free_unless_used_locked(queue, item);
	}
	vdi_lock_release(&queue->lock);
}

unsigned vd_work_queue_num_requeues(struct vd_work_queue *queue, struct vd_bytes key)
{
	const struct vdi_work_item *item;
	unsigned		    failures;

	if (queue == NULL)
		return 0;
	vdi_lock_acquire(&queue->lock);
	item = find_locked(queue, key);
	failures = item ? item->failures : 0;
	vdi_lock_release(&queue->lock);
	return failures;
}

size_t vd_work_queue_len(struct vd_work_queue *queue)
{
	size_t count;

	if (queue == NULL)
		return 0;
	vdi_lock_acquire(&queue->lock);
	count = queue->count;
	vdi_lock_release(&queue->lock);
	return count;
}

/* ---- Taking ---- */

/* VD_OK: *ret_key was taken. VD_AGAIN: nothing is queued. */
static vd_status take_key_locked(struct vd_work_queue *queue, struct vd_bytes *ret_key)
{
	struct vdi_work_item *item = queue->is_closed ? NULL : vdi_rate_limited_queue_take_locked(queue);

	if (item == NULL)
		return queue->is_shutting_down ? VD_CLOSED : VD_AGAIN;
	*ret_key = item->key;
	return VD_OK;
}

/* Adds a callback unless it waits already. */
static vd_status call_when_ready_locked(struct vd_work_queue *queue, void (*ready)(void *arg), void *arg)
{
	struct vdi_work_waiter *waiter;

	for (waiter = queue->waiter_first; waiter; waiter = waiter->next)
		if (waiter->kind == VDI_WORK_WAITER_READY && waiter->ready == ready && waiter->arg == arg)
			return VD_AGAIN;
	if (queue->callbacks >= CALLBACKS_MAX)
		return VD_FULL;
	waiter = VDI_NEW(struct vdi_work_waiter);
	if (waiter == NULL)
		return VD_NOMEM;
	waiter->kind = VDI_WORK_WAITER_READY;
	waiter->ready = ready;
	waiter->arg = arg;
	queue->callbacks++;
	vdi_rate_limited_queue_wait_locked(queue, waiter);
	return VD_AGAIN;
}

vd_status vd_work_queue_get(struct vd_work_queue *queue, void (*ready)(void *arg), void *arg,
			    struct vd_bytes *ret_key)
{
	vd_status status;

	VDI_REQUIRE(queue, NULL);
	VDI_REQUIRE(ret_key, NULL);
	vdi_lock_acquire(&queue->lock);
	status = take_key_locked(queue, ret_key);
	if (status == VD_AGAIN && ready)
		status = call_when_ready_locked(queue, ready, arg);
	vdi_lock_release(&queue->lock);
	return status;
}

vd_status vd_work_queue_get_wait(struct vd_work_queue *queue, vd_dur timeout, struct vd_bytes *ret_key)
{
	vd_mono	  due;
	vd_status status;
	bool	  is_in_time = true;

	VDI_REQUIRE(queue, NULL);
	VDI_REQUIRE(ret_key, NULL);
	VDI_TRY(vdi_wait_check(queue->env, __func__, NULL));
	due = timeout.ns < 0 ? VD_NEVER : vd_mono_add(vd_env_now(queue->env), timeout);
	vdi_lock_acquire(&queue->lock);
	while ((status = take_key_locked(queue, ret_key)) == VD_AGAIN && is_in_time) {
		struct vdi_wait	       wait;
		struct vdi_work_waiter waiter = { .kind = VDI_WORK_WAITER_THREAD, .wait = &wait };

		vdi_wait_init(&wait, queue->env);
		vdi_rate_limited_queue_wait_locked(queue, &waiter);
		queue->blocked++;
		vdi_lock_release(&queue->lock);
		is_in_time = vdi_wait_until(&wait, due);
		vdi_lock_acquire(&queue->lock);
		queue->blocked--;
		vdi_rate_limited_queue_unwait_locked(queue, &waiter);
		vdi_wait_fini(&wait);
		if (queue->is_closed)
			vd_actor_wake(queue->actor);
	}
	vdi_lock_release(&queue->lock);
	return status == VD_AGAIN ? VD_TIMEOUT : status;
}

void vd_work_queue_done(struct vd_work_queue *queue, struct vd_bytes key)
{
	struct vdi_work_item *item;

	if (queue == NULL)
		return;
	vdi_lock_acquire(&queue->lock);
	item = find_locked(queue, key);
	if (item && item->is_processing)
		vdi_rate_limited_queue_done_locked(queue, item);
	vdi_lock_release(&queue->lock);
}
