/* An instance is in two lists: that of its family, for rendering, and that of a hash bucket, for lookup by
 * labels. The label text is built once and is both key and output. Counting never accesses the registry. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "hash.h"
#include "lock.h"
#include "metrics.h"

#define LABELS_MAX 16
#define LABEL_TEXT_SIZE_MAX 65536
#define HASH_SIZE_FIRST 256

enum metric_kind { COUNTER, GAUGE, HISTOGRAM };

struct bucket_list {
	const double *bounds;
	size_t	      count;
};

#define BOUNDS(...)                                                                                          \
	{                                                                                                    \
		(const double[]) { __VA_ARGS__ }, sizeof((const double[]) { __VA_ARGS__ }) / sizeof(double)  \
	}

static const struct bucket_list NONE = { NULL, 0 };
static const struct bucket_list INITIALIZATION = BOUNDS(.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 180, 600);
static const struct bucket_list READ_WAIT = BOUNDS(.005, .025, .05, .1, .2, .4, .6, .8, 1, 1.25, 1.5, 2, 3);
static const struct bucket_list DISPATCH =
	BOUNDS(.0001, .0005, .001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5);
static const struct bucket_list REQUEST =
	BOUNDS(.005, .025, .05, .1, .2, .4, .6, .8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60);
static const struct bucket_list WATCH_LIST = BOUNDS(.05, .1, .2, .4, .6, .8, 1, 2, 4, 6, 8, 10, 15, 20, 30,
						    45, 60, 75, 90, 105, 120, 150, 180, 240, 300);
static const struct bucket_list LEASE_OBJECTS = BOUNDS(10, 50, 100, 500, 1000, 2500, 5000);
static const struct bucket_list EVENT_SIZES = BOUNDS(1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072);
static const struct bucket_list RESPONSE_SIZES = BOUNDS(1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9);
static const struct bucket_list BODY_SIZES =
	BOUNDS(50e3, 150e3, 250e3, 350e3, 450e3, 550e3, 650e3, 750e3, 850e3, 950e3, 1050e3, 1150e3, 1250e3,
	       1350e3, 1450e3, 1550e3, 1650e3, 1750e3, 1850e3, 1950e3, 2050e3, 2150e3, 2250e3, 2350e3, 2450e3,
	       2550e3, 2650e3, 2750e3, 2850e3, 2950e3, 3050e3);
static const struct bucket_list COMMIT = BOUNDS(.00005, .0001, .00015, .0002, .0003, .0005, .001, .002, .005,
						.01, .02, .05, .1, .25, .5, 1, 2.5, 5);

static const struct bucket_list ETCD_DISK =
	BOUNDS(.001, .002, .004, .008, .016, .032, .064, .128, .256, .512, 1.024, 2.048, 4.096, 8.192);
static const struct bucket_list ETCD_HASH =
	BOUNDS(.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84);
static const struct bucket_list ETCD_SNAPSHOT = BOUNDS(.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12,
						       10.24, 20.48, 40.96, 81.92, 163.84, 327.68, 655.36);
static const struct bucket_list GRPC_HANDLING = BOUNDS(.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10);
static const struct bucket_list WORKQUEUE = BOUNDS(1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, .01, .1, 1, 10);

struct family {
	enum metric_kind	  kind;
	const char		 *name;
	const char		 *labels;
	const struct bucket_list *buckets;
	const char		 *help;
};

static const struct family families[] = {
#define VDI_METRIC(id, kind, name, labels, buckets, help) { kind, name, labels, &buckets, help },
#include "metrics.def"
#undef VDI_METRIC
};

struct vdi_metrics {
	/* held by the env, and by lists that may be freed after it */
	_Atomic uint32_t	      references;
	struct vdi_lock		      collector_lock;
	struct vdi_metrics_collector *collectors; /* under collector_lock */

	struct vdi_lock lock;

	/* Under lock. */
	struct vdi_metric  *first[VDI_METRIC_COUNT];
	struct vdi_metric **last[VDI_METRIC_COUNT];
	struct vdi_metric **hash_table;
	size_t		    hash_size; /* power of two */
	size_t		    count;
};

vd_status vdi_metrics_new(struct vdi_metrics **ret_registry)
{
	struct vdi_metrics *registry = VDI_NEW(struct vdi_metrics);

	if (registry == NULL)
		return VD_NOMEM;
	registry->hash_size = HASH_SIZE_FIRST;
	registry->hash_table = vdi_calloc(registry->hash_size, sizeof(struct vdi_metric *));
	if (registry->hash_table == NULL) {
		vdi_free(registry);
		return VD_NOMEM;
	}
	atomic_init(&registry->references, 1);
	for (size_t i = 0; i < VDI_METRIC_COUNT; i++)
		registry->last[i] = &registry->first[i];
	vdi_lock_init(&registry->collector_lock, VDI_LOCK_COLLECTORS);
	vdi_lock_init(&registry->lock, VDI_LOCK_METRICS);
	*ret_registry = registry;
	return VD_OK;
}

struct vdi_metrics *vdi_metrics_free(struct vdi_metrics *registry)
{
	if (registry == NULL)
		return NULL;
	VDI_CHECK(registry->collectors == NULL);
	return vdi_metrics_unref(registry);
}

struct vdi_metrics *vdi_metrics_ref(struct vdi_metrics *registry)
{
	atomic_fetch_add_explicit(&registry->references, 1, memory_order_relaxed);
	return registry;
}

struct vdi_metrics *vdi_metrics_unref(struct vdi_metrics *registry)
{
	if (registry == NULL ||
	    atomic_fetch_sub_explicit(&registry->references, 1, memory_order_acq_rel) != 1)
		return NULL;
	for (size_t i = 0; i < VDI_METRIC_COUNT; i++)
		for (struct vdi_metric *metric = registry->first[i], *next; metric; metric = next) {
			next = metric->next;
			vdi_free(metric);
		}
	vdi_lock_fini(&registry->lock);
	vdi_lock_fini(&registry->collector_lock);
	vdi_free(registry->hash_table);
	vdi_free(registry);
	return NULL;
}

const char *vdi_metric_name(enum vdi_metric_id id)
{
	VDI_CHECK((unsigned) id < VDI_METRIC_COUNT);
	return families[id].name;
}

/* ---- Instances ---- */

static void append_label_value(struct vdi_buffer *text, const char *value)
{
	vdi_buffer_append_char(text, '"');
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			vdi_buffer_append_char(text, '\\');
		if (*value == '\n')
			vdi_buffer_append_text(text, "\\n");
		else
			vdi_buffer_append_char(text, *value);
	}
	vdi_buffer_append_char(text, '"');
}

/* group="apps",resource="deployments" and a NUL. */
static void append_labels(struct vdi_buffer *text, const char *names, const char *const *values)
{
	for (size_t i = 0; *names; i++) {
		size_t length = strcspn(names, ",");

		VDI_CHECK(i < LABELS_MAX);
		if (i)
			vdi_buffer_append_char(text, ',');
		vdi_buffer_append(text, (struct vd_bytes) { names, length });
		vdi_buffer_append_char(text, '=');
		append_label_value(text, values[i] ? values[i] : "");
		names += length + (names[length] == ',');
	}
	vdi_buffer_append_char(text, 0);
}

static struct vdi_metric *new_instance(enum vdi_metric_id id, struct vd_bytes labels)
{
	const struct family *family = &families[id];
	size_t		     counts = family->kind == HISTOGRAM ? family->buckets->count + 1 : 0;
	size_t		     labels_at = sizeof(struct vdi_metric) + counts * sizeof(_Atomic uint64_t);
	struct vdi_metric   *metric = vdi_calloc(1, labels_at + labels.size);

	if (metric) {
		metric->id = id;
		metric->buckets = family->buckets->bounds;
		metric->bucket_count = family->buckets->count;
		metric->labels = memcpy((char *) metric + labels_at, labels.data, labels.size);
	}
	return metric;
}

static struct vdi_metric *find_locked(struct vdi_metrics *registry, enum vdi_metric_id id, const char *labels,
				      uint64_t hash)
{
	struct vdi_metric *metric = registry->hash_table[hash & (registry->hash_size - 1)];

	while (metric && !(metric->hash == hash && metric->id == id && strcmp(metric->labels, labels) == 0))
		metric = metric->hash_next;
	return metric;
}

/* If memory is short the chains only become longer. */
static void grow_hash_locked(struct vdi_metrics *registry)
{
	size_t		    size = registry->hash_size * 2;
	struct vdi_metric **table;

	if (registry->count < registry->hash_size)
		return;
	table = vdi_calloc(size, sizeof(struct vdi_metric *));
	if (table == NULL)
		return;
	for (size_t i = 0; i < registry->hash_size; i++)
		for (struct vdi_metric *metric = registry->hash_table[i], *next; metric; metric = next) {
			next = metric->hash_next;
			metric->hash_next = table[metric->hash & (size - 1)];
			table[metric->hash & (size - 1)] = metric;
		}
	vdi_free(registry->hash_table);
	registry->hash_table = table;
	registry->hash_size = size;
}

static void insert_locked(struct vdi_metrics *registry, struct vdi_metric *metric)
{
	struct vdi_metric **bucket;

	grow_hash_locked(registry);
	bucket = &registry->hash_table[metric->hash & (registry->hash_size - 1)];
	metric->registry = registry;
	metric->hash_next = *bucket;
	*bucket = metric;
	*registry->last[metric->id] = metric;
	registry->last[metric->id] = &metric->next;
	registry->count++;
}

static vd_status get_locked(struct vdi_metrics *registry, enum vdi_metric_id id, struct vd_bytes labels,
			    struct vdi_metric **ret_metric)
{
	uint64_t	   hash = vdi_hash_bytes(labels, vdi_hash_seed() + id);
	struct vdi_metric *metric = find_locked(registry, id, labels.data, hash);

	if (metric == NULL) {
		if (registry->count >= VDI_METRIC_INSTANCES_MAX)
			return VD_FULL;
		metric = new_instance(id, labels);
		if (metric == NULL)
			return VD_NOMEM;
		metric->hash = hash;
		insert_locked(registry, metric);
	}
	metric->users++;
	*ret_metric = metric;
	return VD_OK;
}

vd_status vdi_metric_get(struct vdi_metrics *registry, enum vdi_metric_id id, const char *const *values,
			 struct vdi_metric **ret_metric)
{
	struct vdi_buffer labels;
	vd_status	  status;

	VDI_CHECK((unsigned) id < VDI_METRIC_COUNT);
	vdi_buffer_init(&labels, LABEL_TEXT_SIZE_MAX);
	append_labels(&labels, families[id].labels, values);
	status = vdi_buffer_status(&labels);
	if (status == VD_OK) {
		vdi_lock_acquire(&registry->lock);
		status = get_locked(registry, id, vdi_buffer_bytes(&labels), ret_metric);
		vdi_lock_release(&registry->lock);
	}
	vdi_buffer_fini(&labels);
	return status;
}

void vdi_metric_release(struct vdi_metric *metric)
{
	if (metric == NULL)
		return;
	vdi_lock_acquire(&metric->registry->lock);
	VDI_CHECK(metric->users > 0);
	metric->users--;
	vdi_lock_release(&metric->registry->lock);
}

static void unlink_locked(struct vdi_metrics *registry, struct vdi_metric *metric)
{
	struct vdi_metric **link = &registry->first[metric->id];

	while (*link != metric)
		link = &(*link)->next;
	*link = metric->next;
	if (registry->last[metric->id] == &metric->next)
		registry->last[metric->id] = link;
	link = &registry->hash_table[metric->hash & (registry->hash_size - 1)];
	while (*link != metric)
		link = &(*link)->hash_next;
	*link = metric->hash_next;
	registry->count--;
}

void vdi_metric_remove(struct vdi_metric *metric)
{
	struct vdi_metrics *registry;
	bool		    is_last;

	if (metric == NULL)
		return;
	registry = metric->registry;
	vdi_lock_acquire(&registry->lock);
	VDI_CHECK(metric->users > 0);
	is_last = --metric->users == 0;
	if (is_last)
		unlink_locked(registry, metric);
	vdi_lock_release(&registry->lock);
	if (is_last)
		vdi_free(metric);
}

/* ---- Counting ---- */

void vdi_metric_set_max(struct vdi_metric *gauge, int64_t value)
{
	uint64_t now;

	if (gauge == NULL)
		return;
	now = atomic_load_explicit(&gauge->value, memory_order_relaxed);
	while ((int64_t) now < value &&
	       !atomic_compare_exchange_weak_explicit(&gauge->value, &now, (uint64_t) value,
						      memory_order_relaxed, memory_order_relaxed))
		continue;
}

static double as_double(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof value);
	return value;
}

static uint64_t as_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof bits);
	return bits;
}

void vdi_metric_observe(struct vdi_metric *histogram, double value)
{
	vdi_metric_observe_many(histogram, value, 1);
}

void vdi_metric_set_histogram(struct vdi_metric *histogram, const uint64_t *counts, double sum)
{
	if (histogram == NULL)
		return;
	for (size_t i = 0; i <= histogram->bucket_count; i++)
		atomic_store_explicit(&histogram->counts[i], counts[i], memory_order_relaxed);
	atomic_store_explicit(&histogram->value, as_bits(sum), memory_order_relaxed);
}

void vdi_metric_observe_many(struct vdi_metric *histogram, double value, uint64_t count)
{
	size_t	 bucket = 0;
	uint64_t sum;

	if (histogram == NULL || isnan(value) || count == 0)
		return;
	while (bucket < histogram->bucket_count && value > histogram->buckets[bucket])
		bucket++;
	atomic_fetch_add_explicit(&histogram->counts[bucket], count, memory_order_relaxed);
	sum = atomic_load_explicit(&histogram->value, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&histogram->value, &sum,
						      as_bits(as_double(sum) + value * (double) count),
						      memory_order_relaxed, memory_order_relaxed))
		continue;
}

void vdi_metric_observe_duration(struct vdi_metric *histogram, vd_dur duration)
{
	vdi_metric_observe(histogram, duration.ns > 0 ? (double) duration.ns / 1e9 : 0);
}

int64_t vdi_metric_value(const struct vdi_metric *metric)
{
	uint64_t count = 0;

	if (families[metric->id].kind != HISTOGRAM)
		return (int64_t) atomic_load_explicit(&metric->value, memory_order_relaxed);
	for (size_t i = 0; i <= metric->bucket_count; i++)
		count += atomic_load_explicit(&metric->counts[i], memory_order_relaxed);
	return (int64_t) count;
}

/* ---- Reading ---- */

void vdi_metrics_add_collector(struct vdi_metrics *registry, struct vdi_metrics_collector *collector)
{
	vdi_lock_acquire(&registry->collector_lock);
	collector->next = registry->collectors;
	registry->collectors = collector;
	vdi_lock_release(&registry->collector_lock);
}

void vdi_metrics_remove_collector(struct vdi_metrics *registry, struct vdi_metrics_collector *collector)
{
	struct vdi_metrics_collector **link = &registry->collectors;

	vdi_lock_acquire(&registry->collector_lock);
	while (*link && *link != collector)
		link = &(*link)->next;
	VDI_CHECK(*link);
	*link = collector->next;
	vdi_lock_release(&registry->collector_lock);
}

/* Appends the shortest text that parses to the same number. */
static void append_number(struct vdi_buffer *buffer, double value)
{
	char text[40];

	if (isinf(value)) {
		vdi_buffer_append_text(buffer, value > 0 ? "+Inf" : "-Inf");
		return;
	}
	for (int precision = 15; precision <= 17; precision++) {
		snprintf(text, sizeof text, "%.*g", precision, value);
		if (strtod(text, NULL) == value)
			break;
	}
	vdi_buffer_append_text(buffer, text);
}

static void append_histogram(struct vdi_buffer *buffer, const struct vdi_metric *metric)
{
	const char *name = families[metric->id].name;
	const char *comma = *metric->labels ? "," : "";
	const char *open = *metric->labels ? "{" : "";
	const char *close = *metric->labels ? "}" : "";
	uint64_t    total = 0;

	for (size_t i = 0; i <= metric->bucket_count; i++) {
		total += atomic_load_explicit(&metric->counts[i], memory_order_relaxed);
		vdi_buffer_printf(buffer, "%s_bucket{%s%sle=\"", name, metric->labels, comma);
		append_number(buffer, i < metric->bucket_count ? metric->buckets[i] : INFINITY);
		vdi_buffer_printf(buffer, "\"} %llu\n", (unsigned long long) total);
	}
	vdi_buffer_printf(buffer, "%s_sum%s%s%s ", name, open, metric->labels, close);
	append_number(buffer, as_double(atomic_load_explicit(&metric->value, memory_order_relaxed)));
	vdi_buffer_printf(buffer, "\n%s_count%s%s%s %llu\n", name, open, metric->labels, close,
			  (unsigned long long) total);
}

static void append_value(struct vdi_buffer *buffer, const struct vdi_metric *metric)
{
	vdi_buffer_append_text(buffer, families[metric->id].name);
	if (*metric->labels)
		vdi_buffer_printf(buffer, "{%s}", metric->labels);
	vdi_buffer_append_char(buffer, ' ');
	if (families[metric->id].kind == COUNTER)
		vdi_buffer_append_u64(buffer, atomic_load_explicit(&metric->value, memory_order_relaxed));
	else
		vdi_buffer_append_i64(buffer,
				      (int64_t) atomic_load_explicit(&metric->value, memory_order_relaxed));
	vdi_buffer_append_char(buffer, '\n');
}

static void append_family(struct vdi_buffer *buffer, const struct family *family,
			  const struct vdi_metric *first)
{
	static const char *const kinds[] = { "counter", "gauge", "histogram" };

	vdi_buffer_printf(buffer, "# HELP %s %s\n# TYPE %s %s\n", family->name, family->help, family->name,
			  kinds[family->kind]);
	for (const struct vdi_metric *metric = first; metric; metric = metric->next)
		if (family->kind == HISTOGRAM)
			append_histogram(buffer, metric);
		else
			append_value(buffer, metric);
}

vd_status vdi_metrics_render(struct vdi_metrics *registry, struct vdi_buffer *buffer)
{
	vdi_lock_acquire(&registry->collector_lock);
	for (struct vdi_metrics_collector *collector = registry->collectors; collector;
	     collector = collector->next)
		collector->collect(collector->arg);
	vdi_lock_release(&registry->collector_lock);

	vdi_lock_acquire(&registry->lock);
	for (size_t i = 0; i < VDI_METRIC_COUNT; i++)
		if (registry->first[i])
			append_family(buffer, &families[i], registry->first[i]);
	vdi_lock_release(&registry->lock);
	return vdi_buffer_status(buffer);
}
