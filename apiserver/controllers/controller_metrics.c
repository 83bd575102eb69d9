/* When metrics are collected, the difference to the counters of the last collection is added. */
#include "controller_metrics.h"

#include "env.h"
#include "metrics.h"

enum {
	DEPTH,
	NAMESPACE_DEPTH,
	ADDS,
	RETRIES,
	NODES,
	KINDS,
	FAILED,
	DELETED,
	RELEASED,
	ORPHANED,
	INVALID,
	METRICS
};

struct vdi_controller_metrics {
	struct vdi_metrics		*registry;
	struct vdi_metrics_collector	 collector;
	bool				 is_collected;
	struct vdi_garbage_collector	*garbage;
	struct vdi_namespace_controller *namespaces;
	struct vdi_metric		*items[METRICS];
	uint64_t			 seen[METRICS]; /* collectors run one at a time */
};

static void add(struct vdi_controller_metrics *metrics, int index, uint64_t now)
{
	vdi_metric_add(metrics->items[index], now - metrics->seen[index]);
	metrics->seen[index] = now;
}

static void collect(void *arg)
{
	struct vdi_controller_metrics *metrics = arg;
	struct vdi_garbage_counts      counts;

	vdi_garbage_collector_counts(metrics->garbage, &counts);
	vdi_metric_set(metrics->items[DEPTH], (int64_t) counts.waiting);
	vdi_metric_set(metrics->items[NAMESPACE_DEPTH],
		       (int64_t) vdi_namespace_controller_count(metrics->namespaces));
	vdi_metric_set(metrics->items[NODES], (int64_t) counts.nodes);
	vdi_metric_set(metrics->items[KINDS], (int64_t) counts.kinds);
	add(metrics, ADDS, counts.added);
	add(metrics, RETRIES, counts.retried);
	add(metrics, FAILED, counts.failed);
	add(metrics, DELETED, counts.deleted);
	add(metrics, RELEASED, counts.released);
	add(metrics, ORPHANED, counts.orphaned);
	add(metrics, INVALID, counts.invalid);
}

static vd_status get_all(struct vdi_controller_metrics *metrics)
{
	static const char *const queue[] = { "garbage_collector_attempt_to_delete" }, *const namespaces[] = {
		"namespace"
	};
	static const char *const deleted[] = { "deleted" }, *const released[] = { "released" },
				 *const orphaned[] = { "orphaned" }, *const invalid[] = { "invalid" },
				 *const failed[] = { "failed" };
	const struct {
		enum vdi_metric_id id;
		const char *const *labels;
	} rows[METRICS] = {
		[DEPTH] = { VDI_METRIC_WORKQUEUE_DEPTH, queue },
		[NAMESPACE_DEPTH] = { VDI_METRIC_WORKQUEUE_DEPTH, namespaces },
		[ADDS] = { VDI_METRIC_WORKQUEUE_ADDS_TOTAL, queue },
		[RETRIES] = { VDI_METRIC_WORKQUEUE_RETRIES_TOTAL, queue },
		[NODES] = { VDI_METRIC_GARBAGE_NODES, NULL },
		[KINDS] = { VDI_METRIC_GARBAGE_KINDS, NULL },
		[FAILED] = { VDI_METRIC_GARBAGE_TOTAL, failed },
		[DELETED] = { VDI_METRIC_GARBAGE_TOTAL, deleted },
		[RELEASED] = { VDI_METRIC_GARBAGE_TOTAL, released },
		[ORPHANED] = { VDI_METRIC_GARBAGE_TOTAL, orphaned },
		[INVALID] = { VDI_METRIC_GARBAGE_TOTAL, invalid },
	};

	for (size_t i = 0; i < METRICS; i++)
		VDI_TRY(vdi_metric_get(metrics->registry, rows[i].id, rows[i].labels, &metrics->items[i]));
	return VD_OK;
}

vd_status vdi_controller_metrics_new(const struct vd_env *env, struct vdi_garbage_collector *collector,
				     struct vdi_namespace_controller *namespaces,
				     struct vdi_controller_metrics  **ret_metrics)
{
	struct vdi_controller_metrics *metrics = VDI_NEW(struct vdi_controller_metrics);
	vd_status		       status;

	if (metrics == NULL)
		return VD_NOMEM;
	metrics->registry = vdi_env_metrics(env);
	metrics->garbage = collector;
	metrics->namespaces = namespaces;
	status = get_all(metrics);
	if (status != VD_OK) {
		(void) vdi_controller_metrics_free(metrics);
		return status;
	}
	metrics->collector = (struct vdi_metrics_collector) { .collect = collect, .arg = metrics };
	vdi_metrics_add_collector(metrics->registry, &metrics->collector);
	metrics->is_collected = true;
	*ret_metrics = metrics;
	return VD_OK;
}

struct vdi_controller_metrics *vdi_controller_metrics_free(struct vdi_controller_metrics *metrics)
{
	if (metrics == NULL)
		return NULL;
	if (metrics->is_collected)
		vdi_metrics_remove_collector(metrics->registry, &metrics->collector);
	for (size_t i = 0; i < METRICS; i++)
		if (metrics->items[i])
			vdi_metric_release(metrics->items[i]);
	vdi_free(metrics);
	return NULL;
}
