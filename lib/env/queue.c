/* A ring of fixed-size items. The counters of a queue are plain numbers of its owner; the metrics, which
 * queues with the same name share, are updated together with them. */
#include "queue.h"

static vd_status get_metrics(struct vdi_queue *queue, const char *resource, struct vdi_metrics *registry)
{
	const char *values[] = { queue->name, resource };

	if (registry == NULL)
		return VD_OK;
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_QUEUE_DEPTH, values, &queue->depth));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_QUEUE_DEPTH_MAX, values, &queue->depth_max));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_QUEUE_PUTS_TOTAL, values, &queue->puts_total));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_QUEUE_FULL_TOTAL, values, &queue->fulls_total));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_QUEUE_CAPACITY, values, &queue->capacity_total));
	vdi_metric_add(queue->capacity_total, queue->capacity);
	return VD_OK;
}

vd_status vdi_queue_init(struct vdi_queue *queue, const struct vdi_queue_options *options,
			 struct vdi_metrics *registry)
{
	vd_status status;

	VDI_CHECK(options->capacity > 0 && options->item_size > 0);
	*queue = (struct vdi_queue) {
		.name = options->name,
		.when_full = options->when_full,
		.capacity = options->capacity,
		.item_size = options->item_size,
		.items = vdi_calloc(options->capacity, options->item_size),
	};
	status = queue->items ? get_metrics(queue, options->resource, registry) : VD_NOMEM;
	if (status != VD_OK) {
		/* A queue that failed to open leaves no metric instances, not even counters. */
		vdi_metric_remove(queue->puts_total);
		vdi_metric_remove(queue->fulls_total);
		queue->puts_total = queue->fulls_total = NULL;
		vdi_queue_fini(queue);
	}
	return status;
}

void vdi_queue_fini(struct vdi_queue *queue)
{
	vdi_metric_subtract(queue->depth, queue->count);
	vdi_metric_subtract(queue->capacity_total, queue->capacity);
	vdi_metric_remove(queue->depth);
	vdi_metric_remove(queue->depth_max);
	vdi_metric_remove(queue->capacity_total);
	vdi_metric_release(queue->puts_total);
	vdi_metric_release(queue->fulls_total);
	vdi_free(queue->items);
	*queue = (struct vdi_queue) { 0 };
}

vd_status vdi_queue_put(struct vdi_queue *queue, const void *item)
{
	size_t slot;

	if (queue->count == queue->capacity) {
		queue->fulls++;
		vdi_metric_add(queue->fulls_total, 1);
		return VD_FULL;
	}
	slot = queue->first + queue->count;
	if (slot >= queue->capacity)
		slot -= queue->capacity;
	memcpy(queue->items + slot * queue->item_size, item, queue->item_size);
	queue->puts++;
	vdi_metric_add(queue->puts_total, 1);
	vdi_metric_add(queue->depth, 1);
	if (++queue->count > queue->count_max) {
		queue->count_max = queue->count;
		vdi_metric_set_max(queue->depth_max, (int64_t) queue->count);
	}
	return VD_OK;
}

void *vdi_queue_peek(const struct vdi_queue *queue)
{
	return queue->count ? queue->items + queue->first * queue->item_size : NULL;
}

bool vdi_queue_take(struct vdi_queue *queue, void *ret_item)
{
	const void *item = vdi_queue_peek(queue);

	if (item == NULL)
		return false;
	memcpy(ret_item, item, queue->item_size);
	queue->first = queue->first + 1 < queue->capacity ? queue->first + 1 : 0;
	queue->count--;
	vdi_metric_subtract(queue->depth, 1);
	return true;
}

vd_status vdi_queue_put_pointer(struct vdi_queue *queue, void *pointer)
{
	VDI_CHECK(queue->item_size == sizeof pointer && pointer != NULL);
	return vdi_queue_put(queue, &pointer);
}

void *vdi_queue_take_pointer(struct vdi_queue *queue)
{
	void *pointer;

	VDI_CHECK(queue->item_size == sizeof pointer);
	return vdi_queue_take(queue, &pointer) ? pointer : NULL;
}

/* ---- Shared by threads ---- */

vd_status vdi_queue_shared_init(struct vdi_queue_shared *shared, const struct vdi_queue_options *options,
				struct vdi_metrics *registry)
{
	VDI_TRY(vdi_queue_init(&shared->queue, options, registry));
	vdi_lock_init(&shared->lock, VDI_LOCK_QUEUE);
	return VD_OK;
}

void vdi_queue_shared_fini(struct vdi_queue_shared *shared)
{
	vdi_lock_fini(&shared->lock);
	vdi_queue_fini(&shared->queue);
}

vd_status vdi_queue_shared_put(struct vdi_queue_shared *shared, const void *item)
{
	vd_status status;

	vdi_lock_acquire(&shared->lock);
	status = vdi_queue_put(&shared->queue, item);
	vdi_lock_release(&shared->lock);
	return status;
}

size_t vdi_queue_shared_take(struct vdi_queue_shared *shared, void *ret_items, size_t count)
{
	size_t taken = 0;

	vdi_lock_acquire(&shared->lock);
	while (taken < count &&
	       vdi_queue_take(&shared->queue, (char *) ret_items + taken * shared->queue.item_size))
		taken++;
	vdi_lock_release(&shared->lock);
	return taken;
}

size_t vdi_queue_shared_count(struct vdi_queue_shared *shared)
{
	size_t count;

	vdi_lock_acquire(&shared->lock);
	count = shared->queue.count;
	vdi_lock_release(&shared->lock);
	return count;
}
