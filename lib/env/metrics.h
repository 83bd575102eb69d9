/* Counters, gauges and histograms, declared once in metrics.def and rendered as Prometheus text.
 *
 * A family is an entry of metrics.def; an instance is a family with values for its labels, registered in an
 * env's registry. Constructors get the instances that they need and keep the pointers; counting is a relaxed
 * atomic addition and takes no lock. All functions may be called from any thread. Counting on a NULL instance
 * does nothing.
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

/* Maximum instances of one registry, over all families. */
#define VDI_METRIC_INSTANCES_MAX 200000

struct vdi_metrics;

/* Only the registry accesses the fields, except for counting. */
struct vdi_metric {
	struct vdi_metrics *registry;
	enum vdi_metric_id  id;
	unsigned	    users; /* under the registry's lock, like the links */
	uint64_t	    hash;
	struct vdi_metric  *next; /* next of the family, in order of creation */
	struct vdi_metric  *hash_next;
	const char	   *labels;  /* group="apps",resource="deployments" */
	const double	   *buckets; /* upper bounds, ascending */
	size_t		    bucket_count;

	_Atomic uint64_t value;	   /* counter; gauge as int64_t; sum of a histogram as double */
	_Atomic uint64_t counts[]; /* histogram: one per bucket, and one for values above all buckets */
};

VDI_MUST_USE vd_status vdi_metrics_new(struct vdi_metrics **ret_registry);
/* Frees all instances too. NULL is allowed; returns NULL. */
struct vdi_metrics *vdi_metrics_free(struct vdi_metrics *registry);
/* For objects that count and may outlive the env, such as lists: the instances are freed with the last
 * reference. NULL is allowed for unref, which returns NULL. */
struct vdi_metrics *vdi_metrics_ref(struct vdi_metrics *registry);
struct vdi_metrics *vdi_metrics_unref(struct vdi_metrics *registry);

/* Finds or creates the instance with these label values, in the order of metrics.def (copied; NULL counts as
 * ""). The caller becomes one of its users. VD_NOMEM. VD_FULL: more than VDI_METRIC_INSTANCES_MAX.
 * VD_TOO_BIG: the values exceed 64 KiB. */
VDI_MUST_USE vd_status vdi_metric_get(struct vdi_metrics *registry, enum vdi_metric_id id,
				      const char *const *values, struct vdi_metric **ret_metric);
/* Ends one use; the instance and its value stay. NULL is allowed. */
void vdi_metric_release(struct vdi_metric *metric);
/* Ends one use, and removes the instance with its last user: for gauges of objects that end. NULL is
 * allowed. */
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

/* Raises the gauge to value if it is lower. */
void vdi_metric_set_max(struct vdi_metric *gauge, int64_t value);
/* Histograms only. A NaN is not counted. */
void vdi_metric_observe(struct vdi_metric *histogram, double value);
/* Observes the same value count times. */
void vdi_metric_observe_many(struct vdi_metric *histogram, double value, uint64_t count);
/* Sets a histogram whose values are counted elsewhere: one number per bucket, and one for values above all
 * buckets. */
void vdi_metric_set_histogram(struct vdi_metric *histogram, const uint64_t *counts, double sum);
/* In seconds; negative durations count as 0. */
void vdi_metric_observe_duration(struct vdi_metric *histogram, vd_dur duration);

/* The current value of a counter or gauge; the number of observed values of a histogram. */
int64_t vdi_metric_value(const struct vdi_metric *metric);

/* ---- Reading ---- */

/* Called before each rendering, to set gauges that are not updated otherwise. It may take locks of its own.
 * The node belongs to the caller. Do not add or remove a collector under a lock; after its removal it is not
 * running. */
struct vdi_metrics_collector {
	void (*collect)(void *arg);
	void			     *arg;
	struct vdi_metrics_collector *next;
};
void vdi_metrics_add_collector(struct vdi_metrics *registry, struct vdi_metrics_collector *collector);
void vdi_metrics_remove_collector(struct vdi_metrics *registry, struct vdi_metrics_collector *collector);

/* Appends all families that have instances, in the text format 0.0.4. Returns the buffer's status. */
VDI_MUST_USE vd_status vdi_metrics_render(struct vdi_metrics *registry, struct vdi_buffer *buffer);

/* "apiserver_watch_events_total", ... */
const char *vdi_metric_name(enum vdi_metric_id id);

#endif
