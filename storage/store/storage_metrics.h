/* What one resource asks of its store, counted under upstream's names (R-721..R-732; kubernetes/apiserver
 * pkg/storage/metrics, pkg/storage/etcd3/metrics).
 *
 * Instances appear with the first observation, as upstream's do: a server of many resources shows the
 * operations that happen. The gauges about stored objects go when the resource goes. Any thread; a NULL
 * struct counts nothing.
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

/* resource without its group. Copies both. VD_NOMEM, VD_FULL. */
VDI_MUST_USE vd_status vdi_storage_metrics_new(const struct vd_env *env, const char *group,
					       const char		   *resource,
					       struct vdi_storage_metrics **ret_metrics);
/* NULL is fine; returns NULL. */
struct vdi_storage_metrics *vdi_storage_metrics_free(struct vdi_storage_metrics *metrics);

/* A request to the store that began at started was answered. */
void vdi_storage_metrics_request(struct vdi_storage_metrics *metrics, enum vdi_storage_operation operation,
				 vd_mono started, vd_status status);
/* A list was answered, or given up, by the store: objects it read, tested and gave (R-162, R-721, R-722,
 * */
void vdi_storage_metrics_list(struct vdi_storage_metrics *metrics, bool streamed, vd_mono started,
			      uint64_t fetched, uint64_t evaluated, uint64_t returned);
/* An event came, a progress notice came. */
void vdi_storage_metrics_events(struct vdi_storage_metrics *metrics, uint64_t count);
void vdi_storage_metrics_progress(struct vdi_storage_metrics *metrics);
/* A read or a write met something that cannot be decoded. */
void vdi_storage_metrics_undecodable(struct vdi_storage_metrics *metrics);
/* A lease was replaced that had been asked for so often, this time included. */
void vdi_storage_metrics_lease(struct vdi_storage_metrics *metrics, uint64_t uses);
/* The last count; -1: unknown. */
void vdi_storage_metrics_objects(struct vdi_storage_metrics *metrics, int64_t count, int64_t bytes);

#endif
