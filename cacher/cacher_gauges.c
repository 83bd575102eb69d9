/* Each number is copied under the lock that guards it, one lock after the other. */
#include "cacher_gauges.h"

#include "cacher_state.h"

static void collect_cache(struct vd_cacher *cacher)
{
	struct vdi_cacher_metrics *metrics = &cacher->metrics;
	struct vdi_watch_cache	  *cache = &cacher->watch_cache;
	struct vdi_history	  *history = &cache->history;
	vd_mono			   now = vd_env_now(cacher->env), oldest = now;

	vdi_lock_acquire(&cache->lock);
	vdi_metric_set(metrics->history_events, (int64_t) (history->end - history->start));
	vdi_metric_set(metrics->history_bytes, history->bytes);
	vdi_metric_set(metrics->history_oldest, history->list_revision ? vdi_history_floor(history) : 0);
	if (history->start != history->end)
		oldest = vdi_history_at(history, history->start)->record_time;
	vdi_metric_set(metrics->objects, (int64_t) vdi_btree_count(&cache->store.objects));
	vdi_metric_set(metrics->object_bytes, cache->store.bytes);
	vdi_lock_release(&cache->lock);
	vdi_metric_set(metrics->history_span, vd_mono_since(now, oldest).ns / 1000000000);
}

/* Each new stream counts from 0. Collectors never run concurrently. */
static void count_full(struct vdi_metric *counter, uint64_t *seen, uint64_t now)
{
	if (now < *seen)
		*seen = 0;
	vdi_metric_add(counter, now - *seen);
	*seen = now;
}

void vdi_cacher_gauges_collect(void *arg)
{
	struct vd_cacher	  *cacher = arg;
	struct vdi_cacher_metrics *metrics = &cacher->metrics;
	struct vdi_watchchan_stats stats = { 0 };

	collect_cache(cacher);
	vdi_metric_set(metrics->quarantined, (int64_t) vdi_quarantine_count(&cacher->quarantine));
	vdi_lock_acquire(&cacher->watchers.lock);
	vdi_metric_set(metrics->watchers, (int64_t) cacher->watchers.count);
	/* The reflector replaces the watchChan under this lock. */
	if (cacher->reflector.watchchan)
		vdi_watchchan_stats_get(cacher->reflector.watchchan, &stats);
	vdi_lock_release(&cacher->watchers.lock);
	vdi_metric_set(metrics->raw_depth, (int64_t) stats.raw_len);
	vdi_metric_set_max(metrics->raw_depth_max, (int64_t) stats.raw_high);
	vdi_metric_set(metrics->raw_capacity, VDI_WATCHCHAN_QUEUE_LEN);
	vdi_metric_set(metrics->result_depth, (int64_t) stats.result_len);
	vdi_metric_set_max(metrics->result_depth_max, (int64_t) stats.result_high);
	vdi_metric_set(metrics->result_capacity, VDI_WATCHCHAN_QUEUE_LEN);
	count_full(metrics->raw_full, &cacher->raw_full_seen, stats.raw_full);
	count_full(metrics->result_full, &cacher->result_full_seen, stats.result_full);
}
