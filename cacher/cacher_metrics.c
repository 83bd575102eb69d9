/* One table of instances. */
#include "cacher_metrics.h"

#include "env.h"

struct row {
	size_t		   offset;
	enum vdi_metric_id id;
	const char	  *more[2]; /* labels behind group and resource */
};

#define ROW(member, id, ...) { offsetof(struct vdi_cacher_metrics, member), VDI_METRIC_##id, { __VA_ARGS__ } }

static const struct row rows[] = {
	ROW(list_total, CACHE_LIST_TOTAL, ""),
	ROW(list_fetched, CACHE_LIST_FETCHED_OBJECTS_TOTAL, ""),
	ROW(list_returned, CACHE_LIST_RETURNED_OBJECTS_TOTAL, NULL),
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
	ROW(consistent_reads_failed, WATCH_CACHE_CONSISTENT_READ_TOTAL, "false", "true"),
};

static struct vdi_metric **place_of(struct vdi_cacher_metrics *metrics, const struct row *row)
{
	return (struct vdi_metric **) ((char *) metrics + row->offset);
}

vd_status vdi_cacher_metrics_init(struct vdi_cacher_metrics *metrics, const struct vd_env *env, const char *group, const char *resource)
{
	*metrics = (struct vdi_cacher_metrics) { 0 };
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		const char *values[4] = { group, resource, rows[i].more[0], rows[i].more[1] };
		vd_status   status = vdi_metric_get(vdi_env_metrics(env), rows[i].id, values, place_of(metrics, &rows[i]));

		if (status != VD_OK) {
			vdi_cacher_metrics_fini(metrics);
			return status;
		}
	}
	return VD_OK;
}

void vdi_cacher_metrics_fini(struct vdi_cacher_metrics *metrics)
{
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		vdi_metric_release(*place_of(metrics, &rows[i]));
		*place_of(metrics, &rows[i]) = NULL;
	}
}
