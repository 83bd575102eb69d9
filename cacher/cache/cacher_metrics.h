/* The metrics of one cacher, upstream's and vedette's own: instances of lib/env/metrics with the labels group
 * and resource. */
#ifndef VDI_CACHER_METRICS_H
#define VDI_CACHER_METRICS_H

#include "base.h"
#include "metrics.h"
#include <vedette/codec.h>

/* Reasons for the end of a watch. */
enum vdi_end {
	VDI_END_CLOSED,
	VDI_END_CANCELED,
	VDI_END_TIMEOUT,
	VDI_END_EXPIRED,
	VDI_END_TOO_SLOW,
	VDI_END_ERROR,
	VDI_END_COUNT
};

/* Counters of lists that used one index, under upstream's old and new names. */
struct vdi_list_metrics {
	struct vdi_metric *total;
	struct vdi_metric *fetched;
	struct vdi_metric *storage_total;
	struct vdi_metric *storage_fetched;
};

struct vdi_object_store;

struct vdi_cacher_metrics {
	struct vdi_list_metrics *lists; /* without an index, then one per list index */
	size_t			 list_count;
	struct vdi_metric	*list_returned;
	struct vdi_metric	*list_returned_storage;
	struct vdi_metric	*list_evaluated;
	struct vdi_metric	*init_events;
	struct vdi_metric	*events_received;
	struct vdi_metric	*events_dispatched;
	struct vdi_metric	*terminated_watchers;
	struct vdi_metric	*revision;
	struct vdi_metric	*capacity;
	struct vdi_metric	*capacity_increases;
	struct vdi_metric	*capacity_decreases;
	struct vdi_metric	*initializations;
	struct vdi_metric	*initialization_errors;
	struct vdi_metric	*initialization_duration;
	struct vdi_metric	*read_wait;
	struct vdi_metric	*consistent_reads;
	struct vdi_metric	*consistent_reads_fallback;
	struct vdi_metric	*consistent_reads_skipped;
	struct vdi_metric	*consistent_reads_failed;
	struct vdi_metric	*consistent_reads_failed_fallback;
	struct vdi_metric	*consistent_reads_failed_skipped;
	struct vdi_metric	*consistency_checks[4]; /* by result; the first is unused */
	struct vdi_metric	*sharded_watches;
	struct vdi_metric	*shard_filtered;
	struct vdi_metric	*selector_filtered;
	struct vdi_metric	*dispatch_total;
	struct vdi_metric	*dispatch_storage_to_cache;
	struct vdi_metric	*dispatch_cache_to_watcher;
	struct vdi_metric	*history_events;
	struct vdi_metric	*history_bytes;
	struct vdi_metric	*history_oldest;
	struct vdi_metric	*history_span;
	struct vdi_metric	*objects;
	struct vdi_metric	*object_bytes;
	struct vdi_metric	*watchers;
	struct vdi_metric	*groups;
	struct vdi_metric	*quarantined;
	struct vdi_metric	*resumes;
	struct vdi_metric	*relists;
	struct vdi_metric	*ends[VDI_END_COUNT];
	struct vdi_metric	*raw_depth;
	struct vdi_metric	*raw_depth_max;
	struct vdi_metric	*raw_full;
	struct vdi_metric	*raw_capacity;
	struct vdi_metric	*result_depth;
	struct vdi_metric	*result_depth_max;
	struct vdi_metric	*result_full;
	struct vdi_metric	*result_capacity;
};

/* Returns a resource's name without its group ("deployments.apps" of the group "apps": "deployments"),
 * truncated to the size. */
#define VDI_RESOURCE_LABEL_SIZE 256
void vdi_resource_label(const char *resource, const char *group, char label[VDI_RESOURCE_LABEL_SIZE]);

/* resource: the label. store: has its declared indexes. VD_NOMEM, VD_FULL. */
VDI_MUST_USE vd_status vdi_cacher_metrics_init(struct vdi_cacher_metrics *metrics, const struct vd_env *env,
					       const char *group, const char *resource,
					       const struct vdi_object_store *store,
					       const struct vd_codec	     *codec);
void		       vdi_cacher_metrics_fini(struct vdi_cacher_metrics *metrics);

/* Counts a list of the cache that examined `fetched` objects. index: as of struct vdi_candidates. */
void vdi_cacher_metrics_count_list(struct vdi_cacher_metrics *metrics, size_t index, uint64_t fetched);
/* Counts the end of a watch. Any thread. */
void vdi_cacher_metrics_count_end(struct vdi_cacher_metrics *metrics, vd_status reason);
/* "closed", "too_slow", ... */
const char *vdi_end_name(enum vdi_end end);

#endif
