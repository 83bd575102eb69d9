/* All metrics of a cacher come from one table. */
#include "cacher_metrics.h"

#include <stdio.h>

#include "env.h"
#include "object_store.h"

struct row {
	size_t		   offset;
	enum vdi_metric_id id;
	const char	  *more[2]; /* labels after group and resource */
	const char	  *queue;   /* not NULL: the labels are queue and resource */
};

#define ROW(member, id, ...)                                                                                 \
	{                                                                                                    \
		offsetof(struct vdi_cacher_metrics, member), VDI_METRIC_##id, { __VA_ARGS__ }, NULL          \
	}
#define QUEUE_ROW(member, id, queue)                                                                         \
	{                                                                                                    \
		offsetof(struct vdi_cacher_metrics, member), VDI_METRIC_##id, { NULL }, queue                \
	}

static const struct row rows[] = {
	ROW(list_returned, CACHE_LIST_RETURNED_OBJECTS_TOTAL, NULL),
	ROW(list_returned_storage, STORAGE_LIST_RETURNED_OBJECTS_TOTAL, "watchcache"),
	ROW(list_evaluated, STORAGE_LIST_EVALUATED_OBJECTS_TOTAL, "watchcache"), /* stays 0, as upstream */
	ROW(init_events, INIT_EVENTS_TOTAL, NULL),
	ROW(events_received, WATCH_CACHE_EVENTS_RECEIVED_TOTAL, NULL),
	ROW(events_dispatched, WATCH_CACHE_EVENTS_DISPATCHED_TOTAL, NULL),
	ROW(terminated_watchers, TERMINATED_WATCHERS_TOTAL, NULL),
	ROW(revision, WATCH_CACHE_RESOURCE_VERSION, NULL),
	ROW(capacity, WATCH_CACHE_CAPACITY, NULL),
	ROW(capacity_increases, WATCH_CACHE_CAPACITY_INCREASE_TOTAL, NULL),
	ROW(capacity_decreases, WATCH_CACHE_CAPACITY_DECREASE_TOTAL, NULL),
	ROW(initializations, WATCH_CACHE_INITIALIZATIONS_TOTAL, NULL),
	ROW(initialization_errors, WATCH_CACHE_INITIALIZATION_ERRORS_TOTAL, NULL),
	ROW(initialization_duration, WATCH_CACHE_INITIALIZATION_DURATION_SECONDS, NULL),
	ROW(read_wait, WATCH_CACHE_READ_WAIT_SECONDS, NULL),
	ROW(consistent_reads, WATCH_CACHE_CONSISTENT_READ_TOTAL, "true", "false"),
	ROW(consistent_reads_fallback, WATCH_CACHE_CONSISTENT_READ_TOTAL, "true", "true"),
	ROW(consistent_reads_skipped, WATCH_CACHE_CONSISTENT_READ_TOTAL, "true", "skipped"),
	ROW(consistent_reads_failed, WATCH_CACHE_CONSISTENT_READ_TOTAL, "false", "false"),
	ROW(consistent_reads_failed_fallback, WATCH_CACHE_CONSISTENT_READ_TOTAL, "false", "true"),
	ROW(consistent_reads_failed_skipped, WATCH_CACHE_CONSISTENT_READ_TOTAL, "false", "skipped"),
	ROW(consistency_checks[1], STORAGE_CONSISTENCY_CHECKS_TOTAL, "success"),
	ROW(consistency_checks[2], STORAGE_CONSISTENCY_CHECKS_TOTAL, "failure"),
	ROW(consistency_checks[3], STORAGE_CONSISTENCY_CHECKS_TOTAL, "error"),
	ROW(sharded_watches, WATCH_SHARDS_TOTAL, NULL),
	ROW(shard_filtered, WATCH_FILTERED_EVENTS_TOTAL, NULL),
	ROW(selector_filtered, WATCH_SELECTOR_FILTERED_EVENTS_TOTAL, NULL),
	ROW(dispatch_total, WATCH_EVENTS_DISPATCH_DURATION_SECONDS, "total"),
	ROW(dispatch_storage_to_cache, WATCH_EVENTS_DISPATCH_DURATION_SECONDS, "storage_to_cache"),
	ROW(dispatch_cache_to_watcher, WATCH_EVENTS_DISPATCH_DURATION_SECONDS, "cache_to_watcher"),
	ROW(history_events, HISTORY_EVENTS, NULL),
	ROW(history_bytes, HISTORY_BYTES, NULL),
	ROW(history_oldest, HISTORY_OLDEST_REVISION, NULL),
	ROW(history_span, HISTORY_SPAN_SECONDS, NULL),
	ROW(objects, CACHE_OBJECTS, NULL),
	ROW(object_bytes, CACHE_BYTES, NULL),
	ROW(watchers, WATCHERS, NULL),
	ROW(groups, WATCH_GROUPS, NULL),
	ROW(quarantined, QUARANTINED_KEYS, NULL),
	ROW(resumes, WATCH_RESTARTS_TOTAL, "resume"),
	ROW(relists, WATCH_RESTARTS_TOTAL, "relist"),
	ROW(ends[VDI_END_CLOSED], WATCH_ENDS_TOTAL, "closed"),
	ROW(ends[VDI_END_CANCELED], WATCH_ENDS_TOTAL, "canceled"),
	ROW(ends[VDI_END_TIMEOUT], WATCH_ENDS_TOTAL, "timeout"),
	ROW(ends[VDI_END_EXPIRED], WATCH_ENDS_TOTAL, "expired"),
	ROW(ends[VDI_END_TOO_SLOW], WATCH_ENDS_TOTAL, "too_slow"),
	ROW(ends[VDI_END_ERROR], WATCH_ENDS_TOTAL, "error"),
	QUEUE_ROW(raw_depth, QUEUE_DEPTH, "watchchan_raw"),
	QUEUE_ROW(raw_depth_max, QUEUE_DEPTH_MAX, "watchchan_raw"),
	QUEUE_ROW(raw_full, QUEUE_FULL_TOTAL, "watchchan_raw"),
	QUEUE_ROW(raw_capacity, QUEUE_CAPACITY, "watchchan_raw"),
	QUEUE_ROW(result_depth, QUEUE_DEPTH, "watchchan_result"),
	QUEUE_ROW(result_depth_max, QUEUE_DEPTH_MAX, "watchchan_result"),
	QUEUE_ROW(result_full, QUEUE_FULL_TOTAL, "watchchan_result"),
	QUEUE_ROW(result_capacity, QUEUE_CAPACITY, "watchchan_result"),
};

static struct vdi_metric **place_of(struct vdi_cacher_metrics *metrics, const struct row *row)
{
	return (struct vdi_metric **) ((char *) metrics + row->offset);
}

void vdi_resource_label(const char *resource, const char *group, char label[VDI_RESOURCE_LABEL_SIZE])
{
	size_t size = strlen(resource), group_size = strlen(group);

	if (group_size && size > group_size + 1 && resource[size - group_size - 1] == '.' &&
	    strcmp(resource + size - group_size, group) == 0)
		size -= group_size + 1;
	size = VDI_MIN(size, (size_t) VDI_RESOURCE_LABEL_SIZE - 1);
	memcpy(label, resource, size);
	label[size] = 0;
}

static vd_status init_lists(struct vdi_cacher_metrics *metrics, const struct vd_env *env, const char *group,
			    const char *resource, const struct vdi_object_store *store,
			    const struct vd_codec *codec)
{
	static const enum vdi_metric_id ids[] = { VDI_METRIC_CACHE_LIST_TOTAL,
						  VDI_METRIC_CACHE_LIST_FETCHED_OBJECTS_TOTAL,
						  VDI_METRIC_STORAGE_LIST_TOTAL,
						  VDI_METRIC_STORAGE_LIST_FETCHED_OBJECTS_TOTAL };

	metrics->lists = vdi_calloc(store->index_count + 1, sizeof *metrics->lists);
	if (metrics->lists == NULL)
		return VD_NOMEM;
	metrics->list_count = store->index_count + 1;
	for (size_t i = 0; i < metrics->list_count; i++) {
		const struct vdi_object_index *index = i ? &store->indexes[i - 1] : NULL;
		struct vdi_metric **places[] = { &metrics->lists[i].total, &metrics->lists[i].fetched,
						 &metrics->lists[i].storage_total,
						 &metrics->lists[i].storage_fetched };
		char		    name[VDI_RESOURCE_LABEL_SIZE + 2] = "";

		if (index)
			(void) snprintf(name, sizeof name, "%s%s", index->label_key ? "l:" : "f:",
					index->label_key ? index->label_key :
							   codec->field_names[index->field_index]);
		for (size_t k = 0; k < VDI_ARRAY_SIZE(places); k++) {
			const char *values[4] = { group, resource, k < 2 ? name : "watchcache", name };

			VDI_TRY(vdi_metric_get(vdi_env_metrics(env), ids[k], values, places[k]));
		}
	}
	return VD_OK;
}

vd_status vdi_cacher_metrics_init(struct vdi_cacher_metrics *metrics, const struct vd_env *env,
				  const char *group, const char *resource,
				  const struct vdi_object_store *store, const struct vd_codec *codec)
{
	vd_status status;

	*metrics = (struct vdi_cacher_metrics) { 0 };
	status = init_lists(metrics, env, group, resource, store, codec);
	if (status != VD_OK) {
		vdi_cacher_metrics_fini(metrics);
		return status;
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		const char *queue = rows[i].queue;
		const char *values[4] = { queue ? queue : group, resource, rows[i].more[0], rows[i].more[1] };

		status =
			vdi_metric_get(vdi_env_metrics(env), rows[i].id, values, place_of(metrics, &rows[i]));
		if (status != VD_OK) {
			vdi_cacher_metrics_fini(metrics);
			return status;
		}
	}
	return VD_OK;
}

void vdi_cacher_metrics_fini(struct vdi_cacher_metrics *metrics)
{
	for (size_t i = 0; i < metrics->list_count; i++) {
		vdi_metric_release(metrics->lists[i].total);
		vdi_metric_release(metrics->lists[i].fetched);
		vdi_metric_release(metrics->lists[i].storage_total);
		vdi_metric_release(metrics->lists[i].storage_fetched);
	}
	vdi_free(metrics->lists);
	metrics->lists = NULL;
	metrics->list_count = 0;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		vdi_metric_release(*place_of(metrics, &rows[i]));
		*place_of(metrics, &rows[i]) = NULL;
	}
}

void vdi_cacher_metrics_count_list(struct vdi_cacher_metrics *metrics, size_t index, uint64_t fetched)
{
	struct vdi_list_metrics *list = &metrics->lists[index];

	vdi_metric_add(list->total, 1);
	vdi_metric_add(list->fetched, fetched);
	vdi_metric_add(list->storage_total, 1);
	vdi_metric_add(list->storage_fetched, fetched);
}

/* ---- Ends ---- */

static const char *const end_names[VDI_END_COUNT] = { "closed",	 "canceled", "timeout",
						      "expired", "too_slow", "error" };

const char *vdi_end_name(enum vdi_end end)
{
	return end_names[end];
}

void vdi_cacher_metrics_count_end(struct vdi_cacher_metrics *metrics, vd_status reason)
{
	enum vdi_end end;

	switch (reason) {
	case VD_CLOSED: end = VDI_END_CLOSED; break;
	case VD_CANCELED: end = VDI_END_CANCELED; break;
	case VD_TIMEOUT: end = VDI_END_TIMEOUT; break;
	case VD_EXPIRED: end = VDI_END_EXPIRED; break;
	case VD_TOO_SLOW: end = VDI_END_TOO_SLOW; break;
	default: end = VDI_END_ERROR;
	}
	vdi_metric_add(metrics->ends[end], 1);
}
