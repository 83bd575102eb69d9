/* Metrics of the embedded store, under etcd's names where those exist.
 *
 * The code that does the work increments the counters; a collector sets the gauges when metrics are read.
 * Stores of one env share the instances. */
#ifndef VDI_MVCC_METRICS_H
#define VDI_MVCC_METRICS_H

#include "metrics.h"

struct vdi_mvcc;

struct vdi_mvcc_metrics {
	struct vdi_metrics	    *registry; /* NULL until init */
	struct vdi_metrics_collector collector;

	/* Writer. */
	struct vdi_metric *puts;
	struct vdi_metric *deletes;
	struct vdi_metric *txns;
	struct vdi_metric *put_bytes;
	struct vdi_metric *leases_granted;
	struct vdi_metric *leases_revoked;
	struct vdi_metric *leases_renewed;
	struct vdi_metric *leases_expired;
	struct vdi_metric *commits;
	struct vdi_metric *commit_txns;
	struct vdi_metric *commit_duration;
	struct vdi_metric *disk_full;
	struct vdi_metric *quota_full;
	struct vdi_metric *sync_duration;
	struct vdi_metric *checkpoint_duration; /* observed by the checkpointer */
	/* Callers' threads. */
	struct vdi_metric *ranges;
	struct vdi_metric *events;
	/* Collector. */
	struct vdi_metric *keys;
	struct vdi_metric *store_keys;
	struct vdi_metric *current;
	struct vdi_metric *store_current;
	struct vdi_metric *compacted;
	struct vdi_metric *store_compacted;
	struct vdi_metric *size;
	struct vdi_metric *size_in_use;
	struct vdi_metric *reserve;
	struct vdi_metric *watchers;
	struct vdi_metric *slow_watchers;
};

/* Registers the collector. The last step of opening, because the collector needs the complete store.
 * VD_NOMEM: undone. */
VDI_MUST_USE vd_status vdi_mvcc_metrics_init(struct vdi_mvcc_metrics *metrics, struct vdi_mvcc *mvcc);
/* After it returns, the collector is not running. May be called without init. */
void vdi_mvcc_metrics_fini(struct vdi_mvcc_metrics *metrics);

#endif
