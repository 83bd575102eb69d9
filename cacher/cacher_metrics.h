/* The metrics of one cacher (R-701..R-717); instances of lib/metrics with the labels group and resource. */
#ifndef VDI_CACHER_METRICS_H
#define VDI_CACHER_METRICS_H

#include "base.h"
#include "metrics.h"

struct vdi_cacher_metrics {
	struct vdi_metric *list_total;
	struct vdi_metric *list_fetched;
	struct vdi_metric *list_returned;
	struct vdi_metric *init_events;
	struct vdi_metric *events_received;
	struct vdi_metric *events_dispatched;
	struct vdi_metric *terminated_watchers;
	struct vdi_metric *revision;
	struct vdi_metric *capacity;
	struct vdi_metric *capacity_increases;
	struct vdi_metric *capacity_decreases;
	struct vdi_metric *initializations;
	struct vdi_metric *initialization_errors;
	struct vdi_metric *initialization_duration;
	struct vdi_metric *read_wait;
	struct vdi_metric *consistent_reads;
	struct vdi_metric *consistent_reads_fallback;
	struct vdi_metric *consistent_reads_failed;
};

/* VD_NOMEM, VD_FULL. */
VDI_MUST_USE vd_status vdi_cacher_metrics_init(struct vdi_cacher_metrics *metrics, const struct vd_env *env, const char *group, const char *resource);
void		       vdi_cacher_metrics_fini(struct vdi_cacher_metrics *metrics);

#endif
