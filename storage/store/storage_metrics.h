/* Metrics of one resource's requests to its store, under upstream's names (kubernetes/apiserver
 * pkg/storage/metrics, pkg/storage/etcd3/metrics).
 *
 * An instance appears with its first observation, as upstream's do, so that a server of many resources
 * exposes only operations that happened. The gauges about stored objects disappear with the resource. All
 * functions may be called from any thread; metrics may be NULL: nothing is counted.
 */
#ifndef VDI_STORAGE_METRICS_H
#define VDI_STORAGE_METRICS_H

#include <stdatomic.h>

#include "base.h"
#include "metrics.h"

enum vdi_storage_operation {
	VDI_OPERATION_GET,
	VDI_OPERATION_LIST,
	VDI_OPERATION_LIST_STREAM,
	VDI_OPERATION_CREATE,
	VDI_OPERATION_UPDATE,
	VDI_OPERATION_DELETE,
	VDI_OPERATION_LIST_WITH_COUNT,
	VDI_OPERATION_CURRENT_REVISION,
	VDI_OPERATION_COUNT
};

struct vdi_storage_metrics;

/* resource: without its group. Copies both strings. VD_NOMEM, VD_FULL. */
VDI_MUST_USE vd_status vdi_storage_metrics_new(const struct vd_env *env, const char *group,
					       const char		   *resource,
					       struct vdi_storage_metrics **ret_metrics);
/* NULL is fine; returns NULL. */
struct vdi_storage_metrics *vdi_storage_metrics_free(struct vdi_storage_metrics *metrics);

/* Counts a completed request to the store and its duration since started. */
void vdi_storage_metrics_request(struct vdi_storage_metrics *metrics, enum vdi_storage_operation operation,
				 vd_mono started, vd_status status);
/* Counts a list that the store completed or failed: objects read, tested against the predicate, and
 * returned. */
void vdi_storage_metrics_list(struct vdi_storage_metrics *metrics, bool streamed, vd_mono started,
			      uint64_t fetched, uint64_t evaluated, uint64_t returned);
/* Count received watch events, and received progress notifications. */
void vdi_storage_metrics_events(struct vdi_storage_metrics *metrics, uint64_t count);
void vdi_storage_metrics_progress(struct vdi_storage_metrics *metrics);
/* Counts a read or write that failed because an object cannot be decoded; watches are not counted. */
void vdi_storage_metrics_undecodable(struct vdi_storage_metrics *metrics);
/* Counts the replacement of a lease by a new one. uses: requests for the replaced lease, including this
 * one. */
void vdi_storage_metrics_lease(struct vdi_storage_metrics *metrics, uint64_t uses);
/* Sets the last known number and size of stored objects; -1: unknown. */
void vdi_storage_metrics_objects(struct vdi_storage_metrics *metrics, int64_t count, int64_t bytes);

#endif
