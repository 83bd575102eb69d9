/* An instance of a metric is looked up on first use and published by one compare-and-swap; if two threads
 * race, the second one releases its instance. */
#include "storage_metrics.h"

#include <stdio.h>

#include "env.h"

enum place {
	PLACE_REQUESTS,
	PLACE_ERRORS = PLACE_REQUESTS + VDI_OPERATION_COUNT,
	PLACE_DURATION = PLACE_ERRORS + VDI_OPERATION_COUNT,
	PLACE_LIST_DURATION = PLACE_DURATION + VDI_OPERATION_COUNT, /* not streamed, streamed */
	PLACE_LIST_TOTAL = PLACE_LIST_DURATION + 2,
	PLACE_LIST_FETCHED,
	PLACE_LIST_EVALUATED,
	PLACE_LIST_RETURNED,
	PLACE_EVENTS,
	PLACE_BOOKMARK_TOTAL,
	PLACE_BOOKMARK_COUNTS,
	PLACE_DECODE_ERRORS,
	PLACE_LEASE_OBJECTS,
	PLACE_STORAGE_OBJECTS, /* the gauges, to the end */
	PLACE_RESOURCE_OBJECTS,
	PLACE_SIZE_ESTIMATE,
	PLACE_COUNT
};

struct vdi_storage_metrics {
	const struct vd_env	    *env;
	char			    *group;
	char			    *resource;
	char			    *qualified; /* resource.group */
	_Atomic(struct vdi_metric *) places[PLACE_COUNT];
};

static const char *const operation_names[VDI_OPERATION_COUNT] = {
	"get",	  "list",   "listStream",    "create",
	"update", "delete", "listWithCount", "getCurrentResourceVersion"
};

static enum vdi_metric_id describe(const struct vdi_storage_metrics *metrics, int place,
				   const char *values[4])
{
	const char *group = metrics->group, *resource = metrics->resource;

#define LABELS(...) memcpy(values, ((const char *[4]) { __VA_ARGS__ }), 4 * sizeof *values)
	if (place < PLACE_LIST_DURATION) {
		LABELS(operation_names[place % VDI_OPERATION_COUNT], group, resource);
		return place < PLACE_ERRORS   ? VDI_METRIC_ETCD_REQUESTS_TOTAL :
		       place < PLACE_DURATION ? VDI_METRIC_ETCD_REQUEST_ERRORS_TOTAL :
						VDI_METRIC_ETCD_REQUEST_DURATION_SECONDS;
	}
	if (place < PLACE_LIST_TOTAL) {
		LABELS(place == PLACE_LIST_DURATION ? "false" : "true", group, resource);
		return VDI_METRIC_STORAGE_LIST_DURATION_SECONDS;
	}
	LABELS(group, resource, "etcd", "");
	switch (place) {
	case PLACE_LIST_TOTAL: return VDI_METRIC_STORAGE_LIST_TOTAL;
	case PLACE_LIST_FETCHED: return VDI_METRIC_STORAGE_LIST_FETCHED_OBJECTS_TOTAL;
	case PLACE_LIST_EVALUATED: return VDI_METRIC_STORAGE_LIST_EVALUATED_OBJECTS_TOTAL;
	case PLACE_LIST_RETURNED: return VDI_METRIC_STORAGE_LIST_RETURNED_OBJECTS_TOTAL;
	case PLACE_EVENTS: return VDI_METRIC_STORAGE_EVENTS_RECEIVED_TOTAL;
	case PLACE_BOOKMARK_TOTAL: return VDI_METRIC_ETCD_BOOKMARK_TOTAL;
	case PLACE_BOOKMARK_COUNTS: return VDI_METRIC_ETCD_BOOKMARK_COUNTS;
	case PLACE_DECODE_ERRORS: return VDI_METRIC_STORAGE_DECODE_ERRORS_TOTAL;
	case PLACE_LEASE_OBJECTS: return VDI_METRIC_ETCD_LEASE_OBJECT_COUNTS;
	case PLACE_STORAGE_OBJECTS: LABELS(metrics->qualified); return VDI_METRIC_STORAGE_OBJECTS;
	case PLACE_RESOURCE_OBJECTS: return VDI_METRIC_RESOURCE_OBJECTS;
	case PLACE_SIZE_ESTIMATE: return VDI_METRIC_RESOURCE_SIZE_ESTIMATE_BYTES;
	default: VDI_UNREACHABLE("unknown place of a storage metric");
	}
#undef LABELS
}

/* Returns NULL if there is no memory; the observation is then not counted. */
static struct vdi_metric *find(struct vdi_storage_metrics *metrics, int place)
{
	struct vdi_metric *known = atomic_load_explicit(&metrics->places[place], memory_order_acquire);
	struct vdi_metric *metric;
	const char	  *values[4] = { NULL };

	if (__builtin_expect(known != NULL, 1))
		return known;
	if (vdi_metric_get(vdi_env_metrics(metrics->env), describe(metrics, place, values), values,
			   &metric) != VD_OK)
		return NULL;
	if (atomic_compare_exchange_strong(&metrics->places[place], &known, metric))
		return metric;
	vdi_metric_release(metric);
	return known;
}

vd_status vdi_storage_metrics_new(const struct vd_env *env, const char *group, const char *resource,
				  struct vdi_storage_metrics **ret_metrics)
{
	struct vdi_storage_metrics *metrics = VDI_NEW(struct vdi_storage_metrics);
	size_t			    size = strlen(group) + strlen(resource) + 2;

	if (metrics == NULL)
		return VD_NOMEM;
	metrics->env = env;
	metrics->group = vdi_strdup(group);
	metrics->resource = vdi_strdup(resource);
	metrics->qualified = vdi_alloc(size);
	if (metrics->group == NULL || metrics->resource == NULL || metrics->qualified == NULL) {
		vdi_storage_metrics_free(metrics);
		return VD_NOMEM;
	}
	(void) snprintf(metrics->qualified, size, "%s%s%s", resource, *group ? "." : "", group);
	*ret_metrics = metrics;
	return VD_OK;
}

struct vdi_storage_metrics *vdi_storage_metrics_free(struct vdi_storage_metrics *metrics)
{
	if (metrics == NULL)
		return NULL;
	for (int place = 0; place < PLACE_COUNT; place++) {
		struct vdi_metric *metric = atomic_load(&metrics->places[place]);

		if (place < PLACE_STORAGE_OBJECTS)
			vdi_metric_release(metric);
		else
			vdi_metric_remove(metric);
	}
	vdi_free(metrics->group);
	vdi_free(metrics->resource);
	vdi_free(metrics->qualified);
	vdi_free(metrics);
	return NULL;
}

void vdi_storage_metrics_request(struct vdi_storage_metrics *metrics, enum vdi_storage_operation operation,
				 vd_mono started, vd_status status)
{
	if (metrics == NULL)
		return;
	vdi_metric_add(find(metrics, PLACE_REQUESTS + (int) operation), 1);
	if (status != VD_OK)
		vdi_metric_add(find(metrics, PLACE_ERRORS + (int) operation), 1);
	vdi_metric_observe_duration(find(metrics, PLACE_DURATION + (int) operation),
				    vd_mono_since(vd_env_now(metrics->env), started));
}

void vdi_storage_metrics_list(struct vdi_storage_metrics *metrics, bool streamed, vd_mono started,
			      uint64_t fetched, uint64_t evaluated, uint64_t returned)
{
	if (metrics == NULL)
		return;
	vdi_metric_add(find(metrics, PLACE_LIST_TOTAL), 1);
	vdi_metric_add(find(metrics, PLACE_LIST_FETCHED), fetched);
	vdi_metric_add(find(metrics, PLACE_LIST_EVALUATED), evaluated);
	vdi_metric_add(find(metrics, PLACE_LIST_RETURNED), returned);
	vdi_metric_observe_duration(find(metrics, PLACE_LIST_DURATION + streamed),
				    vd_mono_since(vd_env_now(metrics->env), started));
}

void vdi_storage_metrics_events(struct vdi_storage_metrics *metrics, uint64_t count)
{
	if (metrics && count)
		vdi_metric_add(find(metrics, PLACE_EVENTS), count);
}

void vdi_storage_metrics_progress(struct vdi_storage_metrics *metrics)
{
	if (metrics == NULL)
		return;
	vdi_metric_add(find(metrics, PLACE_BOOKMARK_TOTAL), 1);
	vdi_metric_add(find(metrics, PLACE_BOOKMARK_COUNTS), 1);
}

void vdi_storage_metrics_undecodable(struct vdi_storage_metrics *metrics)
{
	if (metrics)
		vdi_metric_add(find(metrics, PLACE_DECODE_ERRORS), 1);
}

void vdi_storage_metrics_lease(struct vdi_storage_metrics *metrics, uint64_t uses)
{
	if (metrics)
		vdi_metric_observe(find(metrics, PLACE_LEASE_OBJECTS), (double) uses);
}

void vdi_storage_metrics_objects(struct vdi_storage_metrics *metrics, int64_t count, int64_t bytes)
{
	if (metrics == NULL)
		return;
	vdi_metric_set(find(metrics, PLACE_STORAGE_OBJECTS), count);
	vdi_metric_set(find(metrics, PLACE_RESOURCE_OBJECTS), count);
	vdi_metric_set(find(metrics, PLACE_SIZE_ESTIMATE), bytes);
}
