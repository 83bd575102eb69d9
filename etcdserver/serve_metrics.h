/* What the etcd server tells about itself, under etcd's names (lib/env/metrics.def).
 *
 * Instances of the env's registry are made and set when somebody reads the metrics.
 * Servers on one env share them: counters add up, gauges are those of the one that was asked last.
 */
#ifndef VDI_SERVE_METRICS_H
#define VDI_SERVE_METRICS_H

#include "serve_call.h"

/* VD_NOMEM. */
VDI_MUST_USE vd_status vdi_serve_metrics_new(struct vdi_etcdserver     *server,
					     struct vdi_serve_metrics **ret_metrics);
/* After the last call, before anything else of the server goes. NULL is fine; returns NULL. */
struct vdi_serve_metrics *vdi_serve_metrics_free(struct vdi_serve_metrics *metrics);

#endif
