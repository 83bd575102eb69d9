/* Metrics of the etcd server, under etcd's names (lib/env/metrics.def).
 *
 * Instances in the env's registry are made and set when metrics are read. Servers on one env share them:
 * counters add up, gauges are those of the server collected last.
 */
#ifndef VDI_SERVE_METRICS_H
#define VDI_SERVE_METRICS_H

#include "serve_call.h"

/* VD_NOMEM. */
VDI_MUST_USE vd_status vdi_serve_metrics_new(struct vdi_etcdserver     *server,
					     struct vdi_serve_metrics **ret_metrics);
/* Call after the last call, before the rest of the server is freed. NULL is fine; returns NULL. */
struct vdi_serve_metrics *vdi_serve_metrics_free(struct vdi_serve_metrics *metrics);

#endif
