/* Metric instances are looked up once per loop and label combination, and kept. The combinations are bounded
 * by the served resources, verbs and scopes and by the known codes, never by input of clients. */
#include "http_metrics.h"

#include <stdio.h>

#include "env.h"
#include "http_request.h"

#define TABLE_SIZE 256

struct entry {
	struct entry			 *next;
	const struct vdi_resource_counts *resource;
	const char			 *subresource;
	uint8_t				  verb;
	uint8_t				  scope;
	bool				  dry_run;
	int				  code; /* 0: the labels are not of a response */
	struct vdi_metric		 *total;
	struct vdi_metric		 *duration;
	struct vdi_metric		 *sli_duration;
	struct vdi_metric		 *sizes;
	struct vdi_metric		 *running;
	struct vdi_metric		 *watch_list;
};

struct loop_table {
	struct entry *buckets[TABLE_SIZE]; /* the loop's thread only */
};

struct vdi_http_metrics {
	struct vd_server	    *server;
	struct vdi_metrics	    *registry;
	struct vdi_metrics_collector collector;
	bool			     is_collected;
	struct vdi_resource_counts  *resources; /* newest first; guarded by the server's lock */
	struct loop_table	    *loops;
	size_t			     loop_count;
	struct vdi_metric	    *inflight_mutating;
	struct vdi_metric	    *inflight_reading;
	struct vdi_metric	    *memory_blocks;
	struct vdi_metric	    *storage_size;
	struct vdi_metric	    *clients;
	struct vdi_metric	    *unsent_watches;
	struct vdi_metric	    *unsent_answers;
	struct vdi_metric	    *late_ok;
	struct vdi_metric	    *late_error;
};

static const char *const verb_names[] = { "GET",  "LIST",  "WATCH",  "POST",
					  "PUT",  "PATCH", "DELETE", "DELETECOLLECTION",
					  "other" };
enum { SCOPE_NONE, SCOPE_RESOURCE, SCOPE_NAMESPACE, SCOPE_CLUSTER };
static const char *const scope_names[] = { "", "resource", "namespace", "cluster" };

/* ---- Collecting ---- */

struct owed {
	int64_t clients, watch_bytes, answer_bytes;
};

static void add_owed(void *arg, const struct vdi_account *account)
{
	struct owed *owed = arg;

	owed->clients++;
	owed->watch_bytes += account->unsent_bytes;
	owed->answer_bytes += account->answer_bytes;
}

static void collect_clients(struct vdi_http_metrics *metrics)
{
	struct owed owed = { 0, 0, 0 };

	vdi_accounts_each(&metrics->server->accounts, add_owed, &owed);
	vdi_metric_set(metrics->clients, owed.clients);
	vdi_metric_set(metrics->unsent_watches, owed.watch_bytes);
	vdi_metric_set(metrics->unsent_answers, owed.answer_bytes);
}

static void collect_resource(const struct vdi_http_metrics *metrics, struct vdi_resource_counts *resource)
{
	uint64_t sizes[VDI_EVENT_SIZE_BUCKETS + 1] = { 0 }, events = 0, bytes = 0;

	for (size_t l = 0; l < metrics->loop_count; l++) {
		const struct vdi_watch_counts *counts = &resource->loops[l];

		events += atomic_load_explicit(&counts->events, memory_order_relaxed);
		bytes += atomic_load_explicit(&counts->bytes, memory_order_relaxed);
		for (size_t b = 0; b <= VDI_EVENT_SIZE_BUCKETS; b++)
			sizes[b] += atomic_load_explicit(&counts->sizes[b], memory_order_relaxed);
	}
	vdi_metric_add(resource->events, events - resource->seen);
	resource->seen = events;
	vdi_metric_set_histogram(resource->sizes, sizes, (double) bytes);
}

static void collect(void *arg)
{
	struct vdi_http_metrics	   *metrics = arg;
	struct vd_server	   *server = metrics->server;
	struct vdi_resource_counts *resource;
	struct vd_store_status	    store;

	vdi_metric_set(metrics->memory_blocks, vdi_alloc_live());
	collect_clients(metrics);
	if (vd_store_status_get(server->store, &store) == VD_OK)
		vdi_metric_set(metrics->storage_size, store.size_bytes);
	vdi_lock_acquire(&server->lock);
	resource = metrics->resources; /* entries after it do not change */
	vdi_lock_release(&server->lock);
	for (; resource; resource = resource->next)
		collect_resource(metrics, resource);
}

/* ---- Construction ---- */

static vd_status get_fixed(struct vdi_http_metrics *metrics)
{
	static const char *const storage_size[] = { "etcd-0" };
	static const char *const late_ok[] = { "rest-handler", "ok" }, *const late_error[] = { "rest-handler",
											       "error" };
	static const char *const mutating[] = { "mutating" }, *const reading[] = { "readOnly" };
	static const char *const watches[] = { "watches" }, *const answers[] = { "answers" };
	struct vdi_metrics *registry = metrics->registry;

	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_CURRENT_INFLIGHT_REQUESTS, mutating,
			       &metrics->inflight_mutating));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_CURRENT_INFLIGHT_REQUESTS, reading,
			       &metrics->inflight_reading));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_MEMORY_BLOCKS, NULL, &metrics->memory_blocks));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_HTTP_CLIENTS, NULL, &metrics->clients));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_HTTP_UNSENT_BYTES, watches, &metrics->unsent_watches));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_HTTP_UNSENT_BYTES, answers, &metrics->unsent_answers));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_STORAGE_SIZE_BYTES, storage_size,
			       &metrics->storage_size));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_REQUEST_POST_TIMEOUT_TOTAL, late_ok, &metrics->late_ok));
	return vdi_metric_get(registry, VDI_METRIC_REQUEST_POST_TIMEOUT_TOTAL, late_error,
			      &metrics->late_error);
}

static const struct vdi_resource_counts *find_counts(const struct vdi_http_metrics *metrics,
						     const struct vdi_resource	   *resource)
{
	const struct vdi_resource_counts *counts = metrics->resources;

	while (counts && (strcmp(counts->plural, resource->plural) != 0 ||
			  strcmp(counts->group, resource->group) != 0 ||
			  strcmp(counts->version, resource->version) != 0))
		counts = counts->next;
	return counts;
}

static void free_counts(struct vdi_resource_counts *counts)
{
	vdi_metric_release(counts->events);
	vdi_metric_release(counts->sizes);
	vdi_free((char *) (uintptr_t) counts->group);
	vdi_free((char *) (uintptr_t) counts->version);
	vdi_free((char *) (uintptr_t) counts->plural);
	vdi_free(counts);
}

static vd_status new_counts(const struct vdi_http_metrics *metrics, const struct vdi_resource *resource,
			    struct vdi_resource_counts **ret_counts)
{
	struct vdi_resource_counts *counts =
		vdi_calloc(1, sizeof *counts + metrics->loop_count * sizeof counts->loops[0]);
	const char *labels[] = { resource->group, resource->version, resource->plural };
	vd_status   status;

	if (counts == NULL)
		return VD_NOMEM;
	counts->group = vdi_strdup(resource->group);
	counts->version = vdi_strdup(resource->version);
	counts->plural = vdi_strdup(resource->plural);
	status = counts->group && counts->version && counts->plural ? VD_OK : VD_NOMEM;
	if (status == VD_OK)
		status = vdi_metric_get(metrics->registry, VDI_METRIC_WATCH_EVENTS_TOTAL, labels,
					&counts->events);
	if (status == VD_OK)
		status = vdi_metric_get(metrics->registry, VDI_METRIC_WATCH_EVENTS_SIZES, labels,
					&counts->sizes);
	if (status != VD_OK)
		free_counts(counts);
	else
		*ret_counts = counts;
	return status;
}

vd_status vdi_http_metrics_counts(struct vdi_http_metrics *metrics, const struct vdi_resource *resource,
				  struct vdi_resource_counts **ret_counts)
{
	struct vdi_resource_counts *found, *fresh;

	vdi_lock_acquire(&metrics->server->lock);
	found = (struct vdi_resource_counts *) (uintptr_t) find_counts(metrics, resource);
	vdi_lock_release(&metrics->server->lock);
	if (found) {
		*ret_counts = found;
		return VD_OK;
	}
	VDI_TRY(new_counts(metrics, resource, &fresh));
	vdi_lock_acquire(&metrics->server->lock);
	fresh->next = metrics->resources;
	metrics->resources = fresh;
	vdi_lock_release(&metrics->server->lock);
	*ret_counts = fresh;
	return VD_OK;
}

static vd_status build(struct vdi_http_metrics *metrics)
{
	metrics->loops = vdi_calloc(metrics->loop_count, sizeof *metrics->loops);
	return metrics->loops ? get_fixed(metrics) : VD_NOMEM;
}

vd_status vdi_http_metrics_new(struct vd_server *server, size_t loop_count,
			       struct vdi_http_metrics **ret_metrics)
{
	struct vdi_http_metrics *metrics = VDI_NEW(struct vdi_http_metrics);
	vd_status		 status;

	if (metrics == NULL)
		return VD_NOMEM;
	metrics->server = server;
	metrics->loop_count = loop_count;
	metrics->registry = vdi_env_metrics(server->env);
	status = build(metrics);
	if (status != VD_OK) {
		(void) vdi_http_metrics_free(metrics);
		return status;
	}
	metrics->collector = (struct vdi_metrics_collector) { .collect = collect, .arg = metrics };
	vdi_metrics_add_collector(metrics->registry, &metrics->collector);
	metrics->is_collected = true;
	*ret_metrics = metrics;
	return VD_OK;
}

static void free_table(struct loop_table *table)
{
	for (size_t i = 0; i < TABLE_SIZE; i++)
		for (struct entry *entry = table->buckets[i], *next; entry; entry = next) {
			next = entry->next;
			vdi_metric_release(entry->total);
			vdi_metric_release(entry->duration);
			vdi_metric_release(entry->sli_duration);
			vdi_metric_release(entry->sizes);
			vdi_metric_release(entry->running);
			vdi_metric_release(entry->watch_list);
			vdi_free(entry);
		}
}

struct vdi_http_metrics *vdi_http_metrics_free(struct vdi_http_metrics *metrics)
{
	if (metrics == NULL)
		return NULL;
	if (metrics->is_collected) {
		collect(metrics); /* add the counts that no scrape has read yet */
		vdi_metrics_remove_collector(metrics->registry, &metrics->collector);
	}
	for (size_t i = 0; metrics->loops && i < metrics->loop_count; i++)
		free_table(&metrics->loops[i]);
	for (struct vdi_resource_counts *counts = metrics->resources, *next; counts; counts = next) {
		next = counts->next;
		free_counts(counts);
	}
	vdi_metric_release(metrics->inflight_mutating);
	vdi_metric_release(metrics->inflight_reading);
	vdi_metric_release(metrics->clients);
	vdi_metric_release(metrics->unsent_watches);
	vdi_metric_release(metrics->unsent_answers);
	vdi_metric_release(metrics->memory_blocks);
	vdi_metric_release(metrics->storage_size);
	vdi_metric_release(metrics->late_ok);
	vdi_metric_release(metrics->late_error);
	vdi_free(metrics->loops);
	vdi_free(metrics);
	return NULL;
}

/* ---- Labels ---- */

static enum vdi_http_verb verb_of(const struct vdi_request *request)
{
	bool is_collection = request->resource && request->route.name.size == 0;

	switch (request->head.method) {
	case VDI_HTTP_GET:
	case VDI_HTTP_HEAD:
		if (request->resource &&
		    (request->route.watch_prefix || (is_collection && request->params.watch)))
			return VDI_VERB_WATCH;
		return is_collection ? VDI_VERB_LIST : VDI_VERB_GET;
	case VDI_HTTP_POST: return VDI_VERB_POST;
	case VDI_HTTP_PUT: return VDI_VERB_PUT;
	case VDI_HTTP_PATCH: return VDI_VERB_PATCH;
	case VDI_HTTP_DELETE: return is_collection ? VDI_VERB_DELETE_COLLECTION : VDI_VERB_DELETE;
	default: return VDI_VERB_OTHER;
	}
}

/* Returns only subresources that are served: a client must not choose a label. */
static const char *subresource_of(const struct vdi_request *request)
{
	static const char *const plain[] = { "/healthz",   "/livez",	     "/readyz",	    "/metrics",
					     "/version",   "/debug/vedette", "/openapi/v2", "/openapi/v3",
					     "/status.js", "/status.css" };

	if (request->resource) {
		if (vd_bytes_equal(request->route.subresource, vd_bytes_of("status")))
			return "status";
		return vd_bytes_equal(request->route.subresource, vd_bytes_of("scale")) ? "scale" : "";
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(plain); i++)
		if (vd_bytes_equal(request->route.path, vd_bytes_of(plain[i])))
			return plain[i];
	return "";
}

void vdi_request_labels_of(const struct vdi_request *request, struct vdi_request_labels *ret_labels)
{
	enum vdi_http_verb verb = verb_of(request);

	*ret_labels =
		(struct vdi_request_labels) { .loop = request->loop,
					      .resource =
						      request->resource ? request->resource->counts : NULL,
					      .verb = verb,
					      .subresource = subresource_of(request),
					      .dry_run = request->params.has_dry_run,
					      .started = request->started };
	if (request->resource == NULL)
		ret_labels->scope = SCOPE_NONE;
	else if (request->route.name.size || verb == VDI_VERB_POST)
		ret_labels->scope = SCOPE_RESOURCE;
	else
		ret_labels->scope = request->route.namespace_name.size ? SCOPE_NAMESPACE : SCOPE_CLUSTER;
}

static struct loop_table *table_of(const struct vdi_http_loop *loop)
{
	return &loop->server->metrics->loops[loop - loop->server->loops];
}

/* values: verb [dry_run] group version resource subresource scope component [code] */
static struct vdi_metric *get(const struct vdi_request_labels *labels, enum vdi_metric_id id,
			      bool with_dry_run, const char *code)
{
	const struct vdi_resource_counts *resource = labels->resource;
	const char			 *values[9];
	size_t				  count = 0;
	struct vdi_metric		 *metric = NULL;

	values[count++] = verb_names[labels->verb];
	if (with_dry_run)
		values[count++] = labels->dry_run ? "All" : "";
	values[count++] = resource ? resource->group : "";
	values[count++] = resource ? resource->version : "";
	values[count++] = resource ? resource->plural : "";
	values[count++] = labels->subresource;
	values[count++] = scope_names[labels->scope];
	values[count++] = "apiserver";
	if (code)
		values[count++] = code;
	return vdi_metric_get(labels->loop->server->metrics->registry, id, values, &metric) == VD_OK ?
		       metric :
		       NULL;
}

static struct vdi_metric *get_watch_list(const struct vdi_request_labels *labels)
{
	const struct vdi_resource_counts *resource = labels->resource;
	const char			 *values[] = { resource->group, resource->version, resource->plural,
						       scope_names[labels->scope] };
	struct vdi_metric		 *metric = NULL;

	return vdi_metric_get(labels->loop->server->metrics->registry, VDI_METRIC_WATCH_LIST_DURATION_SECONDS,
			      values, &metric) == VD_OK ?
		       metric :
		       NULL;
}

static struct entry *new_entry(const struct vdi_request_labels *labels, int code)
{
	struct entry *entry = VDI_NEW(struct entry);
	char	      text[16];

	if (entry == NULL)
		return NULL;
	entry->resource = labels->resource;
	entry->subresource = labels->subresource;
	entry->verb = labels->verb;
	entry->scope = labels->scope;
	entry->dry_run = labels->dry_run;
	entry->code = code;
	if (code) {
		(void) snprintf(text, sizeof text, "%d", code);
		entry->total = get(labels, VDI_METRIC_REQUEST_TOTAL, true, text);
		entry->duration = get(labels, VDI_METRIC_REQUEST_DURATION_SECONDS, true, NULL);
		if (labels->verb != VDI_VERB_WATCH)
			entry->sli_duration =
				get(labels, VDI_METRIC_REQUEST_SLI_DURATION_SECONDS, false, NULL);
		if (labels->verb == VDI_VERB_GET || labels->verb == VDI_VERB_LIST)
			entry->sizes = get(labels, VDI_METRIC_RESPONSE_SIZES, false, NULL);
	} else {
		entry->running = get(labels, VDI_METRIC_LONGRUNNING_REQUESTS, false, NULL);
		if (labels->resource)
			entry->watch_list = get_watch_list(labels);
	}
	return entry;
}

static struct entry *find(const struct vdi_request_labels *labels, int code)
{
	uintptr_t key = (uintptr_t) labels->resource / 64 * 31 + (uintptr_t) labels->subresource;
	size_t	  bucket =
		((key * 16 + labels->verb) * 4 + labels->scope + (size_t) code * 7 + labels->dry_run) %
		TABLE_SIZE;
	struct entry **place = &table_of(labels->loop)->buckets[bucket];

	for (struct entry *entry = *place; entry; entry = entry->next)
		if (entry->resource == labels->resource && entry->subresource == labels->subresource &&
		    entry->verb == labels->verb && entry->scope == labels->scope &&
		    entry->dry_run == labels->dry_run && entry->code == code)
			return entry;
	{
		struct entry *entry = new_entry(labels, code);

		if (entry) {
			entry->next = *place;
			*place = entry;
		}
		return entry;
	}
}

/* ---- Counting ---- */

void vdi_request_labels_answered(const struct vdi_request_labels *labels, int code, int64_t size_bytes)
{
	struct entry *entry = find(labels, code);
	vd_dur	      duration = vd_mono_since(vd_env_now(labels->loop->server->env), labels->started);

	if (entry == NULL)
		return;
	vdi_metric_add(entry->total, 1);
	vdi_metric_observe_duration(entry->duration, duration);
	vdi_metric_observe_duration(entry->sli_duration, duration);
	if (size_bytes >= 0)
		vdi_metric_observe(entry->sizes, (double) size_bytes);
}

struct vdi_metric *vdi_request_labels_running(const struct vdi_request_labels *labels)
{
	struct entry *entry = find(labels, 0);

	return entry ? entry->running : NULL;
}

void vdi_request_labels_state_sent(const struct vdi_request_labels *labels)
{
	struct entry *entry = find(labels, 0);

	if (entry)
		vdi_metric_observe_duration(
			entry->watch_list,
			vd_mono_since(vd_env_now(labels->loop->server->env), labels->started));
}

void vdi_request_labels_terminated(const struct vdi_request_labels *labels, int code)
{
	char		   text[16];
	struct vdi_metric *metric;

	(void) snprintf(text, sizeof text, "%d", code);
	metric = get(labels, VDI_METRIC_REQUEST_TERMINATIONS_TOTAL, false, text);
	vdi_metric_add(metric, 1);
	vdi_metric_release(metric);
}

void vdi_request_labels_aborted(const struct vdi_request_labels *labels)
{
	const struct vdi_resource_counts *resource = labels->resource;
	const char			 *values[] = { verb_names[labels->verb],
				       resource ? resource->group : "",
				       resource ? resource->version : "",
				       resource ? resource->plural : "",
						       labels->subresource,
						       scope_names[labels->scope] };
	struct vdi_metric		 *metric;

	if (vdi_metric_get(labels->loop->server->metrics->registry, VDI_METRIC_REQUEST_ABORTS_TOTAL, values,
			   &metric) != VD_OK)
		return;
	vdi_metric_add(metric, 1);
	vdi_metric_release(metric);
}

void vdi_http_metrics_late(struct vdi_http_metrics *metrics, vd_status status)
{
	vdi_metric_add(status == VD_OK ? metrics->late_ok : metrics->late_error, 1);
}

void vdi_http_metrics_received(const struct vdi_request *request)
{
	const char *values[] = { request->resource ? request->resource->plural : "",
				 verb_names[verb_of(request)] };
	struct vdi_metric *metric;

	if (request->body_size == 0 || request->resource == NULL)
		return;
	if (vdi_metric_get(request->server->metrics->registry, VDI_METRIC_REQUEST_BODY_SIZE_BYTES, values,
			   &metric) != VD_OK)
		return;
	vdi_metric_observe(metric, (double) request->body_size);
	vdi_metric_release(metric);
}

void vdi_http_metrics_answered(const struct vdi_request *request, int code, int64_t size_bytes)
{
	struct vdi_request_labels labels;

	vdi_request_labels_of(request, &labels);
	vdi_request_labels_answered(&labels, code, size_bytes);
}

void vdi_http_metrics_begin(const struct vdi_request *request, struct vdi_metric **ret_gauge)
{
	struct vdi_http_metrics *metrics = request->server->metrics;
	bool reads = request->head.method == VDI_HTTP_GET || request->head.method == VDI_HTTP_HEAD;

	*ret_gauge = reads ? metrics->inflight_reading : metrics->inflight_mutating;
	vdi_metric_add(*ret_gauge, 1);
}

struct vdi_watch_counts *vdi_http_metrics_watch(const struct vdi_http_loop *loop,
						const struct vdi_resource  *resource)
{
	return &resource->counts->loops[loop - loop->server->loops];
}
