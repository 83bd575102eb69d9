/* Names and meaning are client-go's. Gauges about the keys that are processed now are computed when the
 * metrics are read, in whole seconds. */
#include "env.h"
#include "rate_limited_queue.h"

static void collect(void *arg)
{
	struct vd_work_queue *queue = arg;
	vd_mono		      now = vd_env_now(queue->env);
	int64_t		      total = 0, longest = 0;

	vdi_lock_acquire(&queue->lock);
	for (const struct vdi_work_item *item = queue->processed_first; item; item = item->next)
		total += vd_mono_since(now, item->started).ns / 1000000;
	if (queue->processed_first)
		longest = vd_mono_since(now, queue->processed_first->started).ns / 1000000;
	vdi_lock_release(&queue->lock);
	vdi_metric_set(queue->metrics.unfinished, total / 1000);
	vdi_metric_set(queue->metrics.longest, longest / 1000);
}

static vd_status get_metrics(struct vd_work_queue *queue)
{
	struct vdi_metrics	*registry = vdi_env_metrics(queue->env);
	struct vdi_work_metrics *metrics = &queue->metrics;
	const char		*values[] = { queue->name };

	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_WORKQUEUE_DEPTH, values, &metrics->depth));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_WORKQUEUE_ADDS_TOTAL, values, &metrics->adds));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_WORKQUEUE_QUEUE_DURATION_SECONDS, values,
			       &metrics->queue_duration));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_WORKQUEUE_WORK_DURATION_SECONDS, values,
			       &metrics->work_duration));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_WORKQUEUE_UNFINISHED_WORK_SECONDS, values,
			       &metrics->unfinished));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_WORKQUEUE_LONGEST_RUNNING_PROCESSOR_SECONDS, values,
			       &metrics->longest));
	return vdi_metric_get(registry, VDI_METRIC_WORKQUEUE_RETRIES_TOTAL, values, &metrics->retries);
}

vd_status vdi_work_metrics_init(struct vd_work_queue *queue)
{
	vd_status status;

	if (queue->name == NULL)
		return VD_OK;
	status = get_metrics(queue);
	if (status != VD_OK) {
		vdi_work_metrics_fini(queue);
		return status;
	}
	queue->collector = (struct vdi_metrics_collector) { .collect = collect, .arg = queue };
	vdi_metrics_add_collector(vdi_env_metrics(queue->env), &queue->collector);
	return VD_OK;
}

void vdi_work_metrics_fini(struct vd_work_queue *queue)
{
	struct vdi_work_metrics *metrics = &queue->metrics;

	if (queue->collector.collect)
		vdi_metrics_remove_collector(vdi_env_metrics(queue->env), &queue->collector);
	queue->collector.collect = NULL;
	vdi_metric_remove(metrics->depth);
	vdi_metric_remove(metrics->unfinished);
	vdi_metric_remove(metrics->longest);
	vdi_metric_release(metrics->adds);
	vdi_metric_release(metrics->queue_duration);
	vdi_metric_release(metrics->work_duration);
	vdi_metric_release(metrics->retries);
	*metrics = (struct vdi_work_metrics) { 0 };
}
