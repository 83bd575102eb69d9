/* One table names the instances, so that init and fini cannot disagree. */
#include "mvcc_metrics.h"

#include "env.h"
#include "mvcc_store.h"

static const struct {
	enum vdi_metric_id id;
	size_t		   offset;
} instances[] = {
#define INSTANCE(name, field)                                                                                \
	{                                                                                                    \
		VDI_METRIC_##name, offsetof(struct vdi_mvcc_metrics, field)                                  \
	}
	INSTANCE(ETCD_MVCC_PUT_TOTAL, puts),
	INSTANCE(ETCD_MVCC_DELETE_TOTAL, deletes),
	INSTANCE(ETCD_MVCC_TXN_TOTAL, txns),
	INSTANCE(ETCD_MVCC_TOTAL_PUT_SIZE, put_bytes),
	INSTANCE(ETCD_LEASE_GRANTED_TOTAL, leases_granted),
	INSTANCE(ETCD_LEASE_REVOKED_TOTAL, leases_revoked),
	INSTANCE(ETCD_LEASE_RENEWED_TOTAL, leases_renewed),
	INSTANCE(ETCD_LEASE_EXPIRED_TOTAL, leases_expired),
	INSTANCE(STORE_COMMITS_TOTAL, commits),
	INSTANCE(STORE_TXNS_TOTAL, commit_txns),
	INSTANCE(STORE_COMMIT_DURATION_SECONDS, commit_duration),
	INSTANCE(STORE_DISK_FULL_TOTAL, disk_full),
	INSTANCE(STORE_QUOTA_FULL_TOTAL, quota_full),
	INSTANCE(STORE_RESERVE_BYTES, reserve),
	INSTANCE(ETCD_DISK_WAL_FSYNC_DURATION_SECONDS, sync_duration),
	INSTANCE(ETCD_DISK_BACKEND_COMMIT_DURATION_SECONDS, checkpoint_duration),
	INSTANCE(ETCD_MVCC_RANGE_TOTAL, ranges),
	INSTANCE(ETCD_MVCC_EVENTS_TOTAL, events),
	INSTANCE(ETCD_MVCC_KEYS, keys),
	INSTANCE(STORE_KEYS, store_keys),
	INSTANCE(ETCD_MVCC_CURRENT_REVISION, current),
	INSTANCE(STORE_REVISION, store_current),
	INSTANCE(ETCD_MVCC_COMPACT_REVISION, compacted),
	INSTANCE(STORE_COMPACT_REVISION, store_compacted),
	INSTANCE(ETCD_MVCC_DB_TOTAL_SIZE, size),
	INSTANCE(ETCD_MVCC_DB_TOTAL_SIZE_IN_USE, size_in_use),
	INSTANCE(ETCD_MVCC_WATCHERS, watchers),
	INSTANCE(ETCD_MVCC_SLOW_WATCHERS, slow_watchers),
#undef INSTANCE
};

static struct vdi_metric **instance_of(struct vdi_mvcc_metrics *metrics, size_t i)
{
	return (struct vdi_metric **) ((char *) metrics + instances[i].offset);
}

static void collect(void *arg)
{
	struct vdi_mvcc		*mvcc = arg;
	struct vdi_mvcc_metrics *metrics = &mvcc->metrics;
	struct vd_store_status	 status;
	size_t			 watchers;
	size_t			 parked;

	if (mvcc->store.ops->status(&mvcc->store, &status) != VD_OK)
		return;
	vdi_watchable_counts(&mvcc->watchable, &watchers, &parked);
	vdi_metric_set(metrics->keys, status.key_count);
	vdi_metric_set(metrics->store_keys, status.key_count);
	vdi_metric_set(metrics->current, status.current);
	vdi_metric_set(metrics->store_current, status.current);
	vdi_metric_set(metrics->compacted, status.compacted);
	vdi_metric_set(metrics->store_compacted, status.compacted);
	vdi_metric_set(metrics->reserve, mvcc->backend ? vdi_backend_reserve_bytes(mvcc->backend) : 0);
	vdi_metric_set(metrics->size, status.size_bytes);
	vdi_metric_set(metrics->size_in_use, status.size_bytes);
	vdi_metric_set(metrics->watchers, (int64_t) watchers);
	vdi_metric_set(metrics->slow_watchers, (int64_t) (watchers - parked));
}

vd_status vdi_mvcc_metrics_init(struct vdi_mvcc_metrics *metrics, struct vdi_mvcc *mvcc)
{
	struct vdi_metrics *registry = vdi_env_metrics(mvcc->env);
	vd_status	    status = VD_OK;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(instances) && status == VD_OK; i++)
		status = vdi_metric_get(registry, instances[i].id, NULL, instance_of(metrics, i));
	if (status != VD_OK) {
		vdi_mvcc_metrics_fini(metrics);
		return status;
	}
	metrics->registry = registry;
	metrics->collector = (struct vdi_metrics_collector) { .collect = collect, .arg = mvcc };
	vdi_metrics_add_collector(registry, &metrics->collector);
	return VD_OK;
}

void vdi_mvcc_metrics_fini(struct vdi_mvcc_metrics *metrics)
{
	if (metrics->registry)
		vdi_metrics_remove_collector(metrics->registry, &metrics->collector);
	metrics->registry = NULL;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(instances); i++) {
		vdi_metric_release(*instance_of(metrics, i));
		*instance_of(metrics, i) = NULL;
	}
}
