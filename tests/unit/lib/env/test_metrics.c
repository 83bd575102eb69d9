/* Unit tests of lib/env/metrics.c: names and buckets as upstream has them, and text that Prometheus can
 * read. */
#include <math.h>
#include <pthread.h>
#include <regex.h>

#include "metrics.h"
#include "vdtest.h"

static const char *const pods[] = { "", "pods" };

static struct vdi_metrics *new_registry(void)
{
	struct vdi_metrics *registry;

	assert_status(vdi_metrics_new(&registry), VD_OK);
	return registry;
}

static struct vdi_metric *get(struct vdi_metrics *registry, enum vdi_metric_id id, const char *const *values)
{
	struct vdi_metric *metric = NULL;

	assert_status(vdi_metric_get(registry, id, values, &metric), VD_OK);
	return metric;
}

/* The caller frees. */
static char *render(struct vdi_metrics *registry)
{
	struct vdi_buffer buffer;
	char		 *text;

	vdi_buffer_init(&buffer, 1 << 24);
	assert_status(vdi_metrics_render(registry, &buffer), VD_OK);
	text = vdi_strndup(buffer.data, buffer.size);
	assert_non_null(text);
	vdi_buffer_fini(&buffer);
	return text;
}

static void an_empty_registry_renders_nothing(void **state)
{
	struct vdi_metrics *registry = new_registry();
	char		   *text = render(registry);

	(void) state;
	assert_string_equal(text, "");
	vdi_free(text);
	assert_null(vdi_metrics_free(registry));
	assert_null(vdi_metrics_free(NULL));
}

static void families_are_rendered_once_with_all_their_instances(void **state)
{
	struct vdi_metrics *registry = new_registry();
	const char	   *apps[] = { "apps", "deployments" };
	struct vdi_metric  *a = get(registry, VDI_METRIC_WATCH_CACHE_EVENTS_RECEIVED_TOTAL, pods);
	struct vdi_metric  *b = get(registry, VDI_METRIC_WATCH_CACHE_EVENTS_RECEIVED_TOTAL, apps);
	struct vdi_metric  *gauge = get(registry, VDI_METRIC_WATCH_CACHE_CAPACITY, pods);
	char		   *text;

	(void) state;
	vdi_metric_add(a, 3);
	vdi_metric_add(b, 4);
	vdi_metric_add(a, 2);
	vdi_metric_set(gauge, -1);
	text = render(registry);
	assert_string_equal(
		text,
		"# HELP apiserver_watch_cache_events_received_total Events received by the watch cache.\n"
		"# TYPE apiserver_watch_cache_events_received_total counter\n"
		"apiserver_watch_cache_events_received_total{group=\"\",resource=\"pods\"} 5\n"
		"apiserver_watch_cache_events_received_total{group=\"apps\",resource=\"deployments\"} 4\n"
		"# HELP watch_cache_capacity Events that the history of the watch cache can hold.\n"
		"# TYPE watch_cache_capacity gauge\n"
		"watch_cache_capacity{group=\"\",resource=\"pods\"} -1\n");
	vdi_free(text);
	vdi_metrics_free(registry);
}

static void histograms_are_cumulative(void **state)
{
	struct vdi_metrics *registry = new_registry();
	struct vdi_metric  *sizes = get(registry, VDI_METRIC_ETCD_LEASE_OBJECT_COUNTS, NULL);
	char		   *text;

	(void) state;
	vdi_metric_observe(sizes, 10); /* a bound belongs to its bucket */
	vdi_metric_observe(sizes, 10.5);
	vdi_metric_observe(sizes, 4000);
	vdi_metric_observe(sizes, 5001);
	vdi_metric_observe(sizes, NAN);
	assert_int_equal(vdi_metric_value(sizes), 4);
	text = render(registry);
	assert_string_equal(
		text, "# HELP etcd_lease_object_counts Objects attached to one lease when it is replaced.\n"
		      "# TYPE etcd_lease_object_counts histogram\n"
		      "etcd_lease_object_counts_bucket{le=\"10\"} 1\n"
		      "etcd_lease_object_counts_bucket{le=\"50\"} 2\n"
		      "etcd_lease_object_counts_bucket{le=\"100\"} 2\n"
		      "etcd_lease_object_counts_bucket{le=\"500\"} 2\n"
		      "etcd_lease_object_counts_bucket{le=\"1000\"} 2\n"
		      "etcd_lease_object_counts_bucket{le=\"2500\"} 2\n"
		      "etcd_lease_object_counts_bucket{le=\"5000\"} 3\n"
		      "etcd_lease_object_counts_bucket{le=\"+Inf\"} 4\n"
		      "etcd_lease_object_counts_sum 9021.5\n"
		      "etcd_lease_object_counts_count 4\n");
	vdi_free(text);
	vdi_metrics_free(registry);
}

static void expect_bounds(enum vdi_metric_id id, const char *const *values, const double *bounds,
			  size_t count)
{
	struct vdi_metrics *registry = new_registry();
	struct vdi_metric  *metric = get(registry, id, values);

	assert_int_equal(metric->bucket_count, count);
	for (size_t i = 0; i < count; i++)
		assert_true(metric->buckets[i] == bounds[i]);
	vdi_metrics_free(registry);
}

#define EXPECT_BOUNDS(id, values, ...)                                                                       \
	expect_bounds(id, values, (const double[]) { __VA_ARGS__ },                                          \
		      sizeof((const double[]) { __VA_ARGS__ }) / sizeof(double))

static void r712_initialization_duration_buckets(void **state)
{
	(void) state;
	assert_string_equal(vdi_metric_name(VDI_METRIC_WATCH_CACHE_INITIALIZATION_DURATION_SECONDS),
			    "apiserver_watch_cache_initialization_duration_seconds");
	EXPECT_BOUNDS(VDI_METRIC_WATCH_CACHE_INITIALIZATION_DURATION_SECONDS, pods, .05, .1, .25, .5, 1, 2.5,
		      5, 10, 30, 60, 180, 600);
}

static void r713_read_wait_buckets(void **state)
{
	(void) state;
	EXPECT_BOUNDS(VDI_METRIC_WATCH_CACHE_READ_WAIT_SECONDS, pods, .005, .025, .05, .1, .2, .4, .6, .8, 1,
		      1.25, 1.5, 2, 3);
}

static void r717_negative_dispatch_durations_count_as_zero(void **state)
{
	const char	   *values[] = { "", "pods", "total" };
	struct vdi_metrics *registry = new_registry();
	struct vdi_metric  *metric = get(registry, VDI_METRIC_WATCH_EVENTS_DISPATCH_DURATION_SECONDS, values);
	char		   *text;

	(void) state;
	EXPECT_BOUNDS(VDI_METRIC_WATCH_EVENTS_DISPATCH_DURATION_SECONDS, values, .0001, .0005, .001, .005,
		      .01, .025, .05, .1, .25, .5, 1, 2.5, 5);
	vdi_metric_observe_duration(metric, (vd_dur) { -5 });
	vdi_metric_observe_duration(metric, VD_MS(3));
	text = render(registry);
	assert_non_null(strstr(text, "{group=\"\",resource=\"pods\",stage=\"total\",le=\"0.0001\"} 1\n"));
	assert_non_null(strstr(text, "stage=\"total\",le=\"0.001\"} 1\n"));
	assert_non_null(strstr(text, "stage=\"total\",le=\"0.005\"} 2\n"));
	assert_non_null(strstr(text, "_sum{group=\"\",resource=\"pods\",stage=\"total\"} 0.003\n"));
	vdi_free(text);
	vdi_metrics_free(registry);
}

static void r723_request_duration_buckets(void **state)
{
	const char *values[] = { "get", "", "pods" };

	(void) state;
	EXPECT_BOUNDS(VDI_METRIC_ETCD_REQUEST_DURATION_SECONDS, values, .005, .025, .05, .1, .2, .4, .6, .8,
		      1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60);
}

static void r732_list_duration_buckets(void **state)
{
	const char *values[] = { "false", "", "pods" };

	(void) state;
	EXPECT_BOUNDS(VDI_METRIC_STORAGE_LIST_DURATION_SECONDS, values, .005, .025, .05, .1, .2, .4, .6, .8,
		      1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60);
}

static void r709_capacity_carries_no_apiserver_prefix(void **state)
{
	(void) state;
	assert_string_equal(vdi_metric_name(VDI_METRIC_WATCH_CACHE_CAPACITY), "watch_cache_capacity");
	assert_string_equal(vdi_metric_name(VDI_METRIC_WATCH_CACHE_CAPACITY_INCREASE_TOTAL),
			    "watch_cache_capacity_increase_total");
	assert_string_equal(vdi_metric_name(VDI_METRIC_WATCH_CACHE_CAPACITY_DECREASE_TOTAL),
			    "watch_cache_capacity_decrease_total");
}

static void r742_event_sizes_double_from_1024(void **state)
{
	const char *values[] = { "", "v1", "pods" };

	(void) state;
	EXPECT_BOUNDS(VDI_METRIC_WATCH_EVENTS_SIZES, values, 1024, 2048, 4096, 8192, 16384, 32768, 65536,
		      131072);
}

static void r743_watch_list_duration_ends_at_300(void **state)
{
	const char *values[] = { "", "v1", "pods", "cluster" };

	(void) state;
	EXPECT_BOUNDS(VDI_METRIC_WATCH_LIST_DURATION_SECONDS, values, .05, .1, .2, .4, .6, .8, 1, 2, 4, 6, 8,
		      10, 15, 20, 30, 45, 60, 75, 90, 105, 120, 150, 180, 240, 300);
}

static void r745_request_buckets(void **state)
{
	static const char *const many[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
	double			 body_sizes[31];

	(void) state;
	for (int i = 0; i < 31; i++)
		body_sizes[i] = 50e3 + i * 100e3;
	expect_bounds(VDI_METRIC_REQUEST_BODY_SIZE_BYTES, many, body_sizes, VDI_ARRAY_SIZE(body_sizes));
	EXPECT_BOUNDS(VDI_METRIC_RESPONSE_SIZES, many, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9);
	EXPECT_BOUNDS(VDI_METRIC_REQUEST_DURATION_SECONDS, many, .005, .025, .05, .1, .2, .4, .6, .8, 1, 1.25,
		      1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60);
	EXPECT_BOUNDS(VDI_METRIC_REQUEST_SLI_DURATION_SECONDS, many, .005, .025, .05, .1, .2, .4, .6, .8, 1,
		      1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60);
}

/* What is kube-apiserver's has its type, its name and its labels, in their order.
 * rules,
 *
 * */
static void names_and_labels_are_upstreams(void **state)
{
#define LONG "verb,group,version,resource,subresource,scope,component"
#define DRY "verb,dry_run,group,version,resource,subresource,scope,component"
	static const struct {
		const char *type, *name, *labels;
	} rows[] = {
		{ "counter", "apiserver_cache_list_total", "group,resource,index" },
		{ "counter", "apiserver_cache_list_fetched_objects_total", "group,resource,index" },
		{ "counter", "apiserver_cache_list_returned_objects_total", "group,resource" },
		{ "counter", "apiserver_init_events_total", "group,resource" },
		{ "counter", "apiserver_watch_cache_events_received_total", "group,resource" },
		{ "counter", "apiserver_watch_cache_events_dispatched_total", "group,resource" },
		{ "counter", "apiserver_terminated_watchers_total", "group,resource" },
		{ "gauge", "apiserver_watch_cache_resource_version", "group,resource" },
		{ "gauge", "watch_cache_capacity", "group,resource" },
		{ "counter", "watch_cache_capacity_increase_total", "group,resource" },
		{ "counter", "watch_cache_capacity_decrease_total", "group,resource" },
		{ "counter", "apiserver_watch_cache_initializations_total", "group,resource" },
		{ "counter", "apiserver_watch_cache_initialization_errors_total", "group,resource" },
		{ "histogram", "apiserver_watch_cache_initialization_duration_seconds", "group,resource" },
		{ "histogram", "apiserver_watch_cache_read_wait_seconds", "group,resource" },
		{ "counter", "apiserver_watch_cache_consistent_read_total",
		  "group,resource,success,fallback" },
		{ "counter", "apiserver_storage_consistency_checks_total", "group,resource,status" },
		{ "gauge", "apiserver_watch_shards_total", "group,resource" },
		{ "counter", "apiserver_watch_filtered_events_total", "group,resource" },
		{ "histogram", "apiserver_watch_events_dispatch_duration_seconds", "group,resource,stage" },
		{ "counter", "apiserver_storage_list_total", "group,resource,storage,index" },
		{ "counter", "apiserver_storage_list_fetched_objects_total", "group,resource,storage,index" },
		{ "counter", "apiserver_storage_list_evaluated_objects_total", "group,resource,storage" },
		{ "counter", "apiserver_storage_list_returned_objects_total", "group,resource,storage" },
		{ "histogram", "etcd_request_duration_seconds", "operation,group,resource" },
		{ "counter", "etcd_requests_total", "operation,group,resource" },
		{ "counter", "etcd_request_errors_total", "operation,group,resource" },
		{ "gauge", "apiserver_storage_objects", "resource" },
		{ "gauge", "apiserver_resource_objects", "group,resource" },
		{ "gauge", "apiserver_resource_size_estimate_bytes", "group,resource" },
		{ "gauge", "apiserver_storage_size_bytes", "storage_cluster_id" },
		{ "counter", "apiserver_storage_events_received_total", "group,resource" },
		{ "counter", "etcd_bookmark_total", "group,resource" },
		{ "gauge", "etcd_bookmark_counts", "group,resource" },
		{ "histogram", "etcd_lease_object_counts", "" },
		{ "counter", "apiserver_storage_decode_errors_total", "group,resource" },
		{ "histogram", "apiserver_storage_list_duration_seconds", "streamed,group,resource" },
		{ "counter", "apiserver_watch_events_total", "group,version,resource" },
		{ "histogram", "apiserver_watch_events_sizes", "group,version,resource" },
		{ "histogram", "apiserver_watch_list_duration_seconds", "group,version,resource,scope" },
		{ "gauge", "apiserver_longrunning_requests", LONG },
		{ "counter", "apiserver_request_total", DRY ",code" },
		{ "histogram", "apiserver_request_duration_seconds", DRY },
		{ "histogram", "apiserver_request_sli_duration_seconds", LONG },
		{ "histogram", "apiserver_response_sizes", LONG },
		{ "counter", "apiserver_request_terminations_total", LONG ",code" },
		{ "counter", "apiserver_request_aborts_total",
		  "verb,group,version,resource,subresource,scope" },
		{ "counter", "apiserver_request_post_timeout_total", "source,status" },
		{ "gauge", "apiserver_current_inflight_requests", "request_kind" },
		{ "histogram", "apiserver_request_body_size_bytes", "resource,verb" },
	};
	static const char *const many[] = { "x", "x", "x", "x", "x", "x", "x", "x",
					    "x", "x", "x", "x", "x", "x", "x", "x" };
	struct vdi_metrics	*registry = new_registry();
	char			*text, wanted[512];

	(void) state;
	for (unsigned id = 0; id < VDI_METRIC_COUNT; id++)
		(void) get(registry, (enum vdi_metric_id) id, many);
	text = render(registry);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		const char *labels = rows[i].labels;
		size_t	    size;

		(void) snprintf(wanted, sizeof wanted, "# TYPE %s %s\n", rows[i].name, rows[i].type);
		if (strstr(text, wanted) == NULL)
			fail_msg("no %s", wanted);
		size = (size_t) snprintf(wanted, sizeof wanted, "\n%s%s%s", rows[i].name,
					 strcmp(rows[i].type, "histogram") == 0 ? "_count" : "",
					 *labels ? "{" : " ");
		while (*labels) {
			size_t length = strcspn(labels, ",");

			size += (size_t) snprintf(wanted + size, sizeof wanted - size, "%.*s=\"x\"%s",
						  (int) length, labels, labels[length] ? "," : "} ");
			labels += length + (labels[length] == ',');
		}
		if (strstr(text, wanted) == NULL)
			fail_msg("no %s", wanted);
	}
	vdi_free(text);
	vdi_metrics_free(registry);
#undef LONG
#undef DRY
}

/* Every line of metrics.def: legal name and labels, help, ascending buckets; and the whole text parses line
 * by line. */
static void every_family_renders_as_valid_text(void **state)
{
	static const char *const many[] = { "a", "b", "c", "d", "e", "f", "g", "h",
					    "i", "j", "k", "l", "m", "n", "o", "p" };
	struct vdi_metrics	*registry = new_registry();
	char			*text;
	char			*line;
	char			*rest;
	size_t			 types = 0;
	regex_t			 sample;
	regex_t			 comment;

	(void) state;
	for (unsigned id = 0; id < VDI_METRIC_COUNT; id++) {
		struct vdi_metric *metric = get(registry, (enum vdi_metric_id) id, many);

		for (size_t i = 1; i < metric->bucket_count; i++)
			assert_true(metric->buckets[i] > metric->buckets[i - 1]);
		if (metric->bucket_count)
			vdi_metric_observe(metric, 0.1);
		for (unsigned other = 0; other < id; other++)
			assert_string_not_equal(vdi_metric_name((enum vdi_metric_id) id),
						vdi_metric_name((enum vdi_metric_id) other));
	}
	assert_int_equal(regcomp(&sample,
				 "^[a-z_]+(\\{([A-Za-z_]+=\"[^\"\\]*\")(,[A-Za-z_]+=\"[^\"\\]*\")*\\})? "
				 "(-?[0-9]+(\\.[0-9]+)?(e[-+][0-9]+)?|\\+Inf)$",
				 REG_EXTENDED | REG_NOSUB),
			 0);
	assert_int_equal(regcomp(&comment,
				 "^# (HELP [a-z_]+ [A-Z][^\\]*\\.|TYPE [a-z_]+ (counter|gauge|histogram))$",
				 REG_EXTENDED | REG_NOSUB),
			 0);
	text = render(registry);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		types += strncmp(line, "# TYPE", 6) == 0;
		if (regexec(*line == '#' ? &comment : &sample, line, 0, NULL, 0) != 0)
			fail_msg("not valid: %s", line);
	}
	assert_int_equal(types, VDI_METRIC_COUNT);
	regfree(&sample);
	regfree(&comment);
	vdi_free(text);
	vdi_metrics_free(registry);
}

static void label_values_are_escaped(void **state)
{
	const char	   *values[] = { "a\"b\\c\nd", NULL };
	struct vdi_metrics *registry = new_registry();
	char		   *text;

	(void) state;
	vdi_metric_add(get(registry, VDI_METRIC_INIT_EVENTS_TOTAL, values), 1);
	text = render(registry);
	assert_non_null(strstr(text, "{group=\"a\\\"b\\\\c\\nd\",resource=\"\"} 1\n"));
	vdi_free(text);
	vdi_metrics_free(registry);
}

static void users_share_an_instance_until_the_last_removes_it(void **state)
{
	struct vdi_metrics *registry = new_registry();
	struct vdi_metric  *a = get(registry, VDI_METRIC_RESOURCE_OBJECTS, pods);
	struct vdi_metric  *b = get(registry, VDI_METRIC_RESOURCE_OBJECTS, pods);
	struct vdi_metric  *kept = get(registry, VDI_METRIC_INIT_EVENTS_TOTAL, pods);
	char		   *text;

	(void) state;
	assert_ptr_equal(a, b);
	vdi_metric_set(a, 7);
	vdi_metric_remove(a);
	assert_int_equal(vdi_metric_value(b), 7);
	vdi_metric_remove(b);
	vdi_metric_add(kept, 1);
	vdi_metric_release(kept);
	text = render(registry);
	assert_null(strstr(text, "apiserver_resource_objects"));
	assert_non_null(strstr(text, "apiserver_init_events_total{group=\"\",resource=\"pods\"} 1"));
	vdi_free(text);
	vdi_metric_release(NULL);
	vdi_metric_remove(NULL);
	vdi_metric_add(NULL, 1);
	vdi_metric_set(NULL, 1);
	vdi_metric_observe(NULL, 1);
	vdi_metrics_free(registry);
}

static void many_instances_come_and_go(void **state)
{
	struct vdi_metrics *registry = new_registry();
	struct vdi_metric  *metrics[2000];
	char		    name[32];
	const char	   *values[] = { "", name };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(metrics); i++) {
		snprintf(name, sizeof name, "r%zu", i);
		metrics[i] = get(registry, VDI_METRIC_CACHE_OBJECTS, values);
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(metrics); i += 2)
		vdi_metric_remove(metrics[i]);
	for (size_t i = 1; i < VDI_ARRAY_SIZE(metrics); i += 2) {
		snprintf(name, sizeof name, "r%zu", i);
		assert_ptr_equal(get(registry, VDI_METRIC_CACHE_OBJECTS, values), metrics[i]);
	}
	vdi_metrics_free(registry);
}

static void *count_a_lot(void *arg)
{
	struct vdi_metrics *registry = arg;
	struct vdi_metric  *counter = get(registry, VDI_METRIC_INIT_EVENTS_TOTAL, pods);
	struct vdi_metric  *histogram = get(registry, VDI_METRIC_ETCD_LEASE_OBJECT_COUNTS, NULL);
	struct vdi_metric  *highest = get(registry, VDI_METRIC_QUEUE_DEPTH_MAX, pods);

	for (int i = 0; i < 10000; i++) {
		vdi_metric_add(counter, 1);
		vdi_metric_observe(histogram, 2);
		vdi_metric_set_max(highest, i);
	}
	vdi_metric_release(counter);
	return NULL;
}

static void threads_count_without_losing_any(void **state)
{
	struct vdi_metrics *registry = new_registry();
	pthread_t	    threads[4];
	char		   *text;

	(void) state;
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_a_lot, registry), 0);
	vdi_free(render(registry));
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	text = render(registry);
	assert_non_null(strstr(text, "apiserver_init_events_total{group=\"\",resource=\"pods\"} 40000\n"));
	assert_non_null(strstr(text, "etcd_lease_object_counts_sum 80000\n"));
	assert_non_null(strstr(text, "etcd_lease_object_counts_count 40000\n"));
	assert_non_null(strstr(text, "vedette_queue_depth_max{queue=\"\",resource=\"pods\"} 9999\n"));
	vdi_free(text);
	vdi_metrics_free(registry);
}

static void set_blocks(void *gauge)
{
	vdi_metric_set(gauge, 42);
}

static void collectors_run_before_the_text_is_made(void **state)
{
	struct vdi_metrics	    *registry = new_registry();
	struct vdi_metric	    *gauge = get(registry, VDI_METRIC_MEMORY_BLOCKS, NULL);
	struct vdi_metrics_collector collector = { .collect = set_blocks, .arg = gauge };
	char			    *text;

	(void) state;
	vdi_metrics_add_collector(registry, &collector);
	text = render(registry);
	assert_non_null(strstr(text, "vedette_memory_blocks 42\n"));
	vdi_free(text);
	vdi_metrics_remove_collector(registry, &collector);
	vdi_metric_set(gauge, 1);
	vdi_free(render(registry));
	assert_int_equal(vdi_metric_value(gauge), 1);
	vdi_metrics_free(registry);
}

static void a_failed_allocation_leaves_no_instance(void **state)
{
	int64_t live = vdi_alloc_live();
	bool	failed = true;

	(void) state;
	for (uint64_t nth = 1; failed; nth++) {
		struct vdi_metrics *registry = NULL;
		struct vdi_metric  *metric = NULL;
		struct vdi_buffer   buffer;
		vd_status	    status;

		vdi_buffer_init(&buffer, 1 << 20);
		vdi_alloc_fail_nth(nth, 1);
		status = vdi_metrics_new(&registry);
		if (status == VD_OK)
			status = vdi_metric_get(registry, VDI_METRIC_INIT_EVENTS_TOTAL, pods, &metric);
		if (status == VD_OK)
			status = vdi_metrics_render(registry, &buffer);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		if (registry && metric == NULL) {
			char *text = render(registry);

			assert_string_equal(text, "");
			vdi_free(text);
		}
		vdi_buffer_fini(&buffer);
		vdi_metrics_free(registry);
		assert_int_equal(vdi_alloc_live(), live);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_registry_renders_nothing),
		cmocka_unit_test(families_are_rendered_once_with_all_their_instances),
		cmocka_unit_test(histograms_are_cumulative),
		cmocka_unit_test(r709_capacity_carries_no_apiserver_prefix),
		cmocka_unit_test(r712_initialization_duration_buckets),
		cmocka_unit_test(r713_read_wait_buckets),
		cmocka_unit_test(r717_negative_dispatch_durations_count_as_zero),
		cmocka_unit_test(r732_list_duration_buckets),
		cmocka_unit_test(r723_request_duration_buckets),
		cmocka_unit_test(r742_event_sizes_double_from_1024),
		cmocka_unit_test(r743_watch_list_duration_ends_at_300),
		cmocka_unit_test(r745_request_buckets),
		cmocka_unit_test(names_and_labels_are_upstreams),
		cmocka_unit_test(every_family_renders_as_valid_text),
		cmocka_unit_test(label_values_are_escaped),
		cmocka_unit_test(users_share_an_instance_until_the_last_removes_it),
		cmocka_unit_test(many_instances_come_and_go),
		cmocka_unit_test(threads_count_without_losing_any),
		cmocka_unit_test(collectors_run_before_the_text_is_made),
		cmocka_unit_test(a_failed_allocation_leaves_no_instance),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
