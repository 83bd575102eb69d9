/* Metrics of requests and watches, with upstream's names, labels and buckets (apiserver_request_total etc.,
 * apiserver_watch_events_total, apiserver_watch_events_sizes, apiserver_watch_list_duration_seconds).
 *
 * Per-event counts of watches are plain numbers of the loop that sends the event, with one writer each; they
 * are summed at a scrape. Per-request counts use a table of instances per loop, so that a repeated
 * combination builds no label and takes no lock. If memory is short, counts are lost, nothing else.
 */
#ifndef VDI_HTTP_METRICS_H
#define VDI_HTTP_METRICS_H

#include <stdatomic.h>

#include "metrics.h"
#include "resources.h"

struct vd_server;
struct vdi_http_loop;
struct vdi_request;

#define VDI_EVENT_SIZE_BUCKETS 8

/* Counts of one resource on one loop. Only the loop's thread writes them. */
struct vdi_watch_counts {
	_Atomic uint64_t events;
	_Atomic uint64_t bytes;
	_Atomic uint64_t sizes[VDI_EVENT_SIZE_BUCKETS + 1];
};

static inline void vdi_watch_count_add(_Atomic uint64_t *number, uint64_t by)
{
	atomic_store_explicit(number, atomic_load_explicit(number, memory_order_relaxed) + by,
			      memory_order_relaxed);
}

/* Counts a frame of size bytes that a watch took over. */
static inline void vdi_watch_counts_frame(struct vdi_watch_counts *counts, size_t size)
{
	unsigned bucket = size <= 1024 ? 0 : 54u - (unsigned) __builtin_clzll(size - 1);

	vdi_watch_count_add(&counts->events, 1);
	vdi_watch_count_add(&counts->bytes, size);
	vdi_watch_count_add(&counts->sizes[bucket < VDI_EVENT_SIZE_BUCKETS ? bucket : VDI_EVENT_SIZE_BUCKETS],
			    1);
}

/* Counts of a resource, by group, version and name. They outlive the resource, and a new one of the same name
 * continues them. */
struct vdi_resource_counts {
	struct vdi_resource_counts *next;
	const char		   *group, *version, *plural;
	struct vdi_metric	   *events;
	struct vdi_metric	   *sizes;
	uint64_t		    seen;    /* events at the last collection; collectors run one at a time */
	struct vdi_watch_counts	    loops[]; /* one per loop */
};

enum vdi_http_verb {
	VDI_VERB_GET,
	VDI_VERB_LIST,
	VDI_VERB_WATCH,
	VDI_VERB_POST,
	VDI_VERB_PUT,
	VDI_VERB_PATCH,
	VDI_VERB_DELETE,
	VDI_VERB_DELETE_COLLECTION,
	VDI_VERB_OTHER
};

/* Labels of a request's metrics; outlive the request. */
struct vdi_request_labels {
	struct vdi_http_loop		 *loop;
	const struct vdi_resource_counts *resource;    /* NULL: none */
	const char			 *subresource; /* a literal */
	uint8_t				  verb;	       /* enum vdi_http_verb */
	uint8_t				  scope;
	bool				  dry_run;
	vd_mono				  started;
};

struct vdi_request_metrics; /* one loop's table of instances */
struct vdi_http_metrics;

/* Call before resources and loops exist; loop_count of them will. VD_NOMEM, VD_FULL. */
VDI_MUST_USE vd_status vdi_http_metrics_new(struct vd_server *server, size_t loop_count,
					    struct vdi_http_metrics **ret_metrics);
/* Returns the counts of this resource, borrowed while metrics live. Any thread, the server's lock not held.
 * VD_NOMEM, VD_FULL. */
VDI_MUST_USE vd_status vdi_http_metrics_counts(struct vdi_http_metrics	   *metrics,
					       const struct vdi_resource   *resource,
					       struct vdi_resource_counts **ret_counts);
/* Call after the last loop has stopped, before the loops are freed. NULL is fine. */
struct vdi_http_metrics *vdi_http_metrics_free(struct vdi_http_metrics *metrics);

/* ---- On the loop's thread ---- */

void vdi_request_labels_of(const struct vdi_request *request, struct vdi_request_labels *ret_labels);
/* Counts a response with its code; size_bytes of the body, negative if unknown. */
void vdi_request_labels_answered(const struct vdi_request_labels *labels, int code, int64_t size_bytes);
/* Returns the gauge of long-running requests with these labels, borrowed forever; NULL: out of memory. */
struct vdi_metric *vdi_request_labels_running(const struct vdi_request_labels *labels);
/* Observes the time until the initial events of a watch were sent. */
void vdi_request_labels_state_sent(const struct vdi_request_labels *labels);
/* Counts a request that the server terminated in self-defence, or that the client aborted before the
 * response. */
void vdi_request_labels_terminated(const struct vdi_request_labels *labels, int code);
void vdi_request_labels_aborted(const struct vdi_request_labels *labels);
/* Counts the result of a handler whose request was answered 504 before. */
void vdi_http_metrics_late(struct vdi_http_metrics *metrics, vd_status status);
/* Counts a complete response. */
void vdi_http_metrics_answered(const struct vdi_request *request, int code, int64_t size_bytes);
/* Observes the size of the request; once, before the response. */
void vdi_http_metrics_received(const struct vdi_request *request);
/* Starts a request; the caller lowers *ret_gauge at its end. */
void vdi_http_metrics_begin(const struct vdi_request *request, struct vdi_metric **ret_gauge);
/* Returns the counts of the resource on this loop. */
struct vdi_watch_counts *vdi_http_metrics_watch(const struct vdi_http_loop *loop,
						const struct vdi_resource  *resource);

#endif
