/* Metrics of the controllers inside the server: upstream's names for their queues, our own for their
 * results. */
#ifndef VDI_CONTROLLER_METRICS_H
#define VDI_CONTROLLER_METRICS_H

#include "garbage_collector.h"
#include "namespace_controller.h"

struct vdi_controller_metrics;

/* collector and the other controllers must outlive the metrics. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_controller_metrics_new(const struct vd_env		  *env,
						  struct vdi_garbage_collector	  *collector,
						  struct vdi_namespace_controller *namespaces,
						  struct vdi_controller_metrics	 **ret_metrics);
/* NULL is allowed. Returns NULL. */
struct vdi_controller_metrics *vdi_controller_metrics_free(struct vdi_controller_metrics *metrics);

#endif
