/* A collector adds the counts since its last run. */
#include "serve_metrics.h"

#include <stdio.h>

#include "auth.h"
#include "env.h"
#include "etcdserver.h"
#include "process_stat.h"
#include "serve_counts.h"
#include "serve_logins.h"
#include "serve_watches.h"

/* Counts of a method already added to the registry. Collectors run one at a time. */
struct reported {
	uint64_t started, received, received_bytes, sent, sent_bytes, handled[VDI_SERVE_CODES];
};

struct vdi_serve_metrics {
	struct vdi_etcdserver	       *server;
	struct vdi_metrics	       *registry;
	struct vdi_metrics_collector	collector;
	size_t				method_count;
	struct vdi_serve_method_counts *counts;
	struct reported		       *reported;
	uint64_t reported_calls, reported_frames, reported_events, reported_health[2], reported_rejected[2];
};

static const char *const code_names[VDI_SERVE_CODES] = {
	"OK",	    "Canceled",	      "Unknown",	  "InvalidArgument",   "DeadlineExceeded",
	"NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
	"Aborted",  "OutOfRange",     "Unimplemented",	  "Internal",	       "Unavailable",
	"DataLoss", "Unauthenticated"
};

/* ---- Labels ---- */

struct method_labels {
	char	    service[64];
	const char *values[4]; /* type, service, method, code */
};

/* "/etcdserverpb.KV/Range" */
static void label_method(const struct vdi_serve_method *method, struct method_labels *labels)
{
	static const char *const server_streams[] = { "RangeStream", "Snapshot", "Health/Watch" };
	const char		*name = strrchr(method->path, '/') + 1;
	bool			 is_server_stream = false;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(server_streams); i++)
		is_server_stream = is_server_stream ||
				   strcmp(method->path + strlen(method->path) - strlen(server_streams[i]),
					  server_streams[i]) == 0;
	(void) snprintf(labels->service, sizeof labels->service, "%.*s", (int) (name - method->path - 2),
			method->path + 1);
	labels->values[0] = method->kind == VDI_SERVE_STREAM ? "bidi_stream" :
			    is_server_stream		     ? "server_stream" :
							       "unary";
	labels->values[1] = labels->service;
	labels->values[2] = name;
}

/* ---- Collecting ---- */

/* Without memory they are added next time. */
static void report(struct vdi_serve_metrics *metrics, enum vdi_metric_id id, const char *const *labels,
		   uint64_t now, uint64_t *reported)
{
	struct vdi_metric *metric;

	if (vdi_metric_get(metrics->registry, id, labels, &metric) != VD_OK)
		return;
	vdi_metric_add(metric, now - *reported);
	*reported = now;
	vdi_metric_release(metric);
}

static void set(struct vdi_serve_metrics *metrics, enum vdi_metric_id id, const char *const *labels,
		int64_t value)
{
	struct vdi_metric *metric;

	if (vdi_metric_get(metrics->registry, id, labels, &metric) != VD_OK)
		return;
	vdi_metric_set(metric, value);
	vdi_metric_release(metric);
}

static uint64_t now_of(_Atomic uint64_t *count)
{
	return atomic_load_explicit(count, memory_order_relaxed);
}

static void collect_methods(struct vdi_serve_metrics *metrics)
{
	for (size_t i = 0; i < metrics->method_count; i++) {
		struct vdi_serve_method_counts *counts = &metrics->counts[i];
		struct reported		       *reported = &metrics->reported[i];
		struct method_labels		labels;

		label_method(vdi_serve_method_at(i), &labels);
		report(metrics, VDI_METRIC_GRPC_SERVER_STARTED_TOTAL, labels.values, now_of(&counts->started),
		       &reported->started);
		report(metrics, VDI_METRIC_GRPC_SERVER_MSG_RECEIVED_TOTAL, labels.values,
		       now_of(&counts->received), &reported->received);
		report(metrics, VDI_METRIC_GRPC_SERVER_MSG_SENT_TOTAL, labels.values, now_of(&counts->sent),
		       &reported->sent);
		report(metrics, VDI_METRIC_ETCD_NETWORK_RECEIVED_BYTES_TOTAL, NULL,
		       now_of(&counts->received_bytes), &reported->received_bytes);
		report(metrics, VDI_METRIC_ETCD_NETWORK_SENT_BYTES_TOTAL, NULL, now_of(&counts->sent_bytes),
		       &reported->sent_bytes);
		for (int code = 0; code < VDI_SERVE_CODES; code++) {
			labels.values[3] = code_names[code];
			report(metrics, VDI_METRIC_GRPC_SERVER_HANDLED_TOTAL, labels.values,
			       now_of(&counts->handled[code]), &reported->handled[code]);
		}
	}
}

static void collect_server(struct vdi_serve_metrics *metrics)
{
	static const enum vdi_metric_id none[] = { VDI_METRIC_ETCD_SERVER_IS_LEARNER,
						   VDI_METRIC_ETCD_SERVER_LEARNER_PROMOTE_SUCCESSES,
						   VDI_METRIC_ETCD_SERVER_HEARTBEAT_SEND_FAILURES_TOTAL,
						   VDI_METRIC_ETCD_SERVER_PROPOSALS_PENDING,
						   VDI_METRIC_ETCD_SERVER_PROPOSALS_FAILED_TOTAL,
						   VDI_METRIC_ETCD_SERVER_SLOW_APPLY_TOTAL,
						   VDI_METRIC_ETCD_SERVER_READ_INDEXES_FAILED_TOTAL,
						   VDI_METRIC_ETCD_SERVER_SLOW_READ_INDEXES_TOTAL,
						   VDI_METRIC_ETCD_SERVER_SNAPSHOT_APPLY_IN_PROGRESS,
						   VDI_METRIC_ETCD_DISK_DEFRAG_INFLIGHT };
	struct vdi_etcdserver	       *server = metrics->server;
	struct vdi_serve_watch_counts	watches;
	struct vdi_serve_login_counts	logins;
	struct vd_store_status		store = { 0 };
	char				id[24];
	const char		       *ids[] = { id, id };

	if (vd_store_status_get(server->store, &store) != VD_OK)
		memset(&store, 0, sizeof store); /* it is closing */
	vdi_serve_watches_counts(server->watches, &watches);
	vdi_serve_logins_counts(server->logins, &logins);
	(void) snprintf(id, sizeof id, "%llx", (unsigned long long) server->member_id);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(none); i++)
		set(metrics, none[i], NULL, 0);
	set(metrics, VDI_METRIC_ETCD_SERVER_HAS_LEADER, NULL, 1);
	set(metrics, VDI_METRIC_ETCD_SERVER_IS_LEADER, NULL, 1);
	set(metrics, VDI_METRIC_ETCD_SERVER_LEADER_CHANGES_SEEN_TOTAL, NULL, 1);
	set(metrics, VDI_METRIC_ETCD_SERVER_PROPOSALS_COMMITTED_TOTAL, NULL, store.current + 3);
	set(metrics, VDI_METRIC_ETCD_SERVER_PROPOSALS_APPLIED_TOTAL, NULL, store.current + 3);
	set(metrics, VDI_METRIC_ETCD_SERVER_QUOTA_BACKEND_BYTES, NULL,
	    server->options.quota_bytes ? server->options.quota_bytes : VDI_ETCD_QUOTA_DEFAULT);
	set(metrics, VDI_METRIC_ETCD_SERVER_ID, ids, 1);
	set(metrics, VDI_METRIC_ETCD_NETWORK_KNOWN_PEERS, ids, 1);
	set(metrics, VDI_METRIC_ETCD_SERVER_VERSION, &(const char *) { VDI_ETCD_VERSION }, 1);
	set(metrics, VDI_METRIC_ETCD_CLUSTER_VERSION, &(const char *) { VDI_ETCD_CLUSTER_VERSION }, 1);
	set(metrics, VDI_METRIC_ETCD_MVCC_WATCH_STREAMS, NULL, watches.streams);
	set(metrics, VDI_METRIC_ETCD_AUTH_REVISION, NULL, (int64_t) vdi_auth_revision(server->auth));
	set(metrics, VDI_METRIC_ETCD_LOGINS_WAITING, NULL, (int64_t) logins.waiting);
	report(metrics, VDI_METRIC_ETCD_LOGINS_REJECTED_TOTAL, &(const char *) { "address" },
	       logins.rejected_address, &metrics->reported_rejected[0]);
	report(metrics, VDI_METRIC_ETCD_LOGINS_REJECTED_TOTAL, &(const char *) { "total" },
	       logins.rejected_total, &metrics->reported_rejected[1]);
	report(metrics, VDI_METRIC_ETCD_SERVER_CALLS_TOTAL, NULL, now_of(&server->calls_total),
	       &metrics->reported_calls);
	report(metrics, VDI_METRIC_ETCD_SERVER_WATCH_FRAMES_TOTAL, NULL, (uint64_t) watches.frames,
	       &metrics->reported_frames);
	report(metrics, VDI_METRIC_ETCD_SERVER_WATCH_EVENTS_SENT_TOTAL, NULL, (uint64_t) watches.events,
	       &metrics->reported_events);
	report(metrics, VDI_METRIC_ETCD_SERVER_HEALTH_SUCCESS, NULL, now_of(&server->health_successes),
	       &metrics->reported_health[0]);
	report(metrics, VDI_METRIC_ETCD_SERVER_HEALTH_FAILURES, NULL, now_of(&server->health_failures),
	       &metrics->reported_health[1]);
}

static void collect_process(struct vdi_serve_metrics *metrics)
{
	struct vdi_process_stat stat;

	vdi_process_stat_read(&stat);
	set(metrics, VDI_METRIC_OS_FD_USED, NULL, stat.open_files);
	set(metrics, VDI_METRIC_OS_FD_LIMIT, NULL, stat.open_files_max);
	set(metrics, VDI_METRIC_PROCESS_OPEN_FDS, NULL, stat.open_files);
	set(metrics, VDI_METRIC_PROCESS_MAX_FDS, NULL, stat.open_files_max);
	set(metrics, VDI_METRIC_PROCESS_RESIDENT_MEMORY_BYTES, NULL, stat.resident_bytes);
	set(metrics, VDI_METRIC_PROCESS_VIRTUAL_MEMORY_BYTES, NULL, stat.virtual_bytes);
	set(metrics, VDI_METRIC_PROCESS_VIRTUAL_MEMORY_MAX_BYTES, NULL, stat.virtual_bytes_max);
	set(metrics, VDI_METRIC_PROCESS_START_TIME_SECONDS, NULL, stat.start_time_s);
}

static void collect(void *arg)
{
	struct vdi_serve_metrics *metrics = arg;

	collect_methods(metrics);
	collect_server(metrics);
	collect_process(metrics);
}

/* ---- Life ---- */

/* Registers families before the first value. */
static vd_status make_histograms(struct vdi_serve_metrics *metrics)
{
	static const enum vdi_metric_id ids[] = { VDI_METRIC_ETCD_DISK_BACKEND_SNAPSHOT_DURATION_SECONDS,
						  VDI_METRIC_ETCD_MVCC_HASH_DURATION_SECONDS,
						  VDI_METRIC_ETCD_MVCC_HASH_REV_DURATION_SECONDS };
	struct vdi_metric	       *histogram;
	struct method_labels		labels;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(ids); i++) {
		VDI_TRY(vdi_metric_get(metrics->registry, ids[i], NULL, &histogram));
		vdi_metric_release(histogram);
	}
	for (size_t i = 0; metrics->server->options.extensive_metrics && i < metrics->method_count; i++) {
		label_method(vdi_serve_method_at(i), &labels);
		VDI_TRY(vdi_metric_get(metrics->registry, VDI_METRIC_GRPC_SERVER_HANDLING_SECONDS,
				       labels.values, &metrics->counts[i].handling));
	}
	return VD_OK;
}

vd_status vdi_serve_metrics_new(struct vdi_etcdserver *server, struct vdi_serve_metrics **ret_metrics)
{
	struct vdi_serve_metrics *metrics = VDI_NEW(struct vdi_serve_metrics);
	vd_status		  status;

	if (metrics == NULL)
		return VD_NOMEM;
	metrics->server = server;
	metrics->registry = vdi_env_metrics(server->env);
	while (vdi_serve_method_at(metrics->method_count))
		metrics->method_count++;
	metrics->counts = vdi_calloc(metrics->method_count, sizeof metrics->counts[0]);
	metrics->reported = vdi_calloc(metrics->method_count, sizeof metrics->reported[0]);
	status = metrics->counts && metrics->reported ? make_histograms(metrics) : VD_NOMEM;
	if (status != VD_OK) {
		(void) vdi_serve_metrics_free(metrics);
		return status;
	}
	metrics->collector = (struct vdi_metrics_collector) { .collect = collect, .arg = metrics };
	vdi_metrics_add_collector(metrics->registry, &metrics->collector);
	server->method_counts = metrics->counts;
	*ret_metrics = metrics;
	return VD_OK;
}

struct vdi_serve_metrics *vdi_serve_metrics_free(struct vdi_serve_metrics *metrics)
{
	if (metrics == NULL)
		return NULL;
	if (metrics->collector.collect)
		vdi_metrics_remove_collector(metrics->registry, &metrics->collector);
	for (size_t i = 0; metrics->counts && i < metrics->method_count; i++)
		vdi_metric_release(metrics->counts[i].handling);
	vdi_free(metrics->counts);
	vdi_free(metrics->reported);
	vdi_free(metrics);
	return NULL;
}
