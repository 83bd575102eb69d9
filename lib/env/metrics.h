/* Counters, gauges and histograms, declared once in metrics.def and rendered as Prometheus text.
 *
 * A family is a line of metrics.def; an instance is a family with values for its labels, registered in an
 * env's registry. Code gets its instances when it is constructed and keeps the pointers; counting is a
 * relaxed atomic addition and takes no lock. All functions may be called from any thread. Counting on a NULL
 * instance does nothing.
 */
#ifndef VDI_METRICS_H
#define VDI_METRICS_H

#include <stdatomic.h>

#include "base.h"
#include "buffer.h"

enum vdi_metric_id {
#define VDI_METRIC(id, kind, name, labels, buckets, help) VDI_METRIC_##id,
#include "metrics.def"
#undef VDI_METRIC
	VDI_METRIC_COUNT
};

/* Instances of one registry, all families together. */
#define VDI_METRIC_INSTANCES_MAX 200000

struct vdi_metrics;

/* Fields are the registry's own, but for counting. */
struct vdi_metric {
	struct vdi_metrics *registry;
	enum vdi_metric_id  id;
	unsigned	    users; /* under the registry's lock, as the links are */
	uint64_t	    hash;
	struct vdi_metric  *next; /* in the family, in order of creation */
	struct vdi_metric  *hash_next;
	const char	   *labels;  /* group="apps",resource="deployments" */
	const double	   *buckets; /* upper bounds, ascending */
	size_t		    bucket_count;

	_Atomic uint64_t value;	   /* counter; gauge as int64_t; sum of a histogram as double */
	_Atomic uint64_t counts[]; /* histogram: one per bucket and one for what lies above all */
};

VDI_MUST_USE vd_status vdi_metrics_new(struct vdi_metrics **ret_registry);
/* Frees all instances too. NULL is fine; returns NULL. */
struct vdi_metrics *vdi_metrics_free(struct vdi_metrics *registry);
/* For what counts after the env may be gone, as lists do: the instances are freed with the last reference.
 * NULL is fine for unref, which returns NULL. */
struct vdi_metrics *vdi_metrics_ref(struct vdi_metrics *registry);
struct vdi_metrics *vdi_metrics_unref(struct vdi_metrics *registry);

/* Finds or makes the instance with these label values, in the order of metrics.def (copied; NULL counts as
 * ""). The caller becomes one of its users. VD_NOMEM; VD_FULL beyond VDI_METRIC_INSTANCES_MAX; VD_TOO_BIG
 * when the values exceed 64 KiB. */
VDI_MUST_USE vd_status vdi_metric_get(struct vdi_metrics *registry, enum vdi_metric_id id,
				      const char *const *values, struct vdi_metric **ret_metric);
/* One user fewer; the instance and its value stay. NULL is fine. */
void vdi_metric_release(struct vdi_metric *metric);
/* One user fewer, and with the last one the instance disappears: for gauges of things that go. NULL is
 * fine. */
void vdi_metric_remove(struct vdi_metric *metric);

/* ---- Counting ---- */

static inline void vdi_metric_add(struct vdi_metric *metric, uint64_t by)
{
	if (metric)
		atomic_fetch_add_explicit(&metric->value, by, memory_order_relaxed);
}

static inline void vdi_metric_subtract(struct vdi_metric *gauge, uint64_t by)
{
	if (gauge)
		atomic_fetch_sub_explicit(&gauge->value, by, memory_order_relaxed);
}

static inline void vdi_metric_set(struct vdi_metric *gauge, int64_t value)
{
	if (gauge)
		atomic_store_explicit(&gauge->value, (uint64_t) value, memory_order_relaxed);
}

/* Raises the gauge to value unless it is higher. */
void vdi_metric_set_max(struct vdi_metric *gauge, int64_t value);
/* Histograms. A value that is not a number is not counted. */
void vdi_metric_observe(struct vdi_metric *histogram, double value);
/* The same value count times. */
void vdi_metric_observe_many(struct vdi_metric *histogram, double value, uint64_t count);
/* A histogram whose values are counted elsewhere, as gauges are: one number per bucket and one for what lies
 * above all. */
void vdi_metric_set_histogram(struct vdi_metric *histogram, const uint64_t *counts, double sum);
/* In seconds; negative durations count as 0. */
void vdi_metric_observe_duration(struct vdi_metric *histogram, vd_dur duration);

/* Counter or gauge as it is now; of a histogram, how many values were observed. */
int64_t vdi_metric_value(const struct vdi_metric *metric);

/* ---- Reading ---- */

/* Asked before each rendering, to set gauges that are not kept up to date otherwise. It may take locks of its
 * own. The node belongs to the caller. Adding and removing must not happen under any lock; a collector is not
 * running once it is removed. */
struct vdi_metrics_collector {
	void (*collect)(void *arg);
	void			     *arg;
	struct vdi_metrics_collector *next;
};
void vdi_metrics_add_collector(struct vdi_metrics *registry, struct vdi_metrics_collector *collector);
void vdi_metrics_remove_collector(struct vdi_metrics *registry, struct vdi_metrics_collector *collector);

/* Appends all families that have instances, in the text format 0.0.4. Answers the buffer's status. */
VDI_MUST_USE vd_status vdi_metrics_render(struct vdi_metrics *registry, struct vdi_buffer *buffer);

/* "apiserver_watch_events_total", ... */
const char *vdi_metric_name(enum vdi_metric_id id);

#endif
