/* The metrics of request handlers (R-741..R-745).
 *
 * What is counted per event of a watch lies in plain numbers of the loop that sends it, one writer each; they
 * are added up when somebody reads. What is counted per request goes through a table of instances that each
 * loop keeps, so that no label is put together and no lock is taken for a request like one before. Out of
 * memory costs counts, nothing else.
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

/* Of one resource on one loop: only its thread writes. */
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

/* A frame of size bytes was taken. */
static inline void vdi_watch_counts_frame(struct vdi_watch_counts *counts, size_t size)
{
	unsigned bucket = size <= 1024 ? 0 : 54u - (unsigned) __builtin_clzll(size - 1);

	vdi_watch_count_add(&counts->events, 1);
	vdi_watch_count_add(&counts->bytes, size);
	vdi_watch_count_add(&counts->sizes[bucket < VDI_EVENT_SIZE_BUCKETS ? bucket : VDI_EVENT_SIZE_BUCKETS],
			    1);
}

/* What is counted of a resource, under its group, version and name: it stays when the resource goes, for one
 * of the same name. */
struct vdi_resource_counts {
	struct vdi_resource_counts *next;
	const char		   *group, *version, *plural;
	struct vdi_metric	   *events;
	struct vdi_metric	   *sizes;
	uint64_t		    seen;    /* events; collectors run one at a time */
	struct vdi_watch_counts	    loops[]; /* one each */
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

/* What a request is counted under; outlives the request. */
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

/* Before there are resources and loops; there will be so many. VD_NOMEM, VD_FULL. */
VDI_MUST_USE vd_status vdi_http_metrics_new(struct vd_server *server, size_t loop_count,
					    struct vdi_http_metrics **ret_metrics);
/* Any thread, the server's lock not held. What is counted of this resource, lent as long as metrics live.
 * VD_NOMEM, VD_FULL. */
VDI_MUST_USE vd_status vdi_http_metrics_counts(struct vdi_http_metrics	   *metrics,
					       const struct vdi_resource   *resource,
					       struct vdi_resource_counts **ret_counts);
/* After the last loop has stopped, before the loops are freed. NULL is fine. */
struct vdi_http_metrics *vdi_http_metrics_free(struct vdi_http_metrics *metrics);

/* ---- The loop's thread ---- */

void vdi_request_labels_of(const struct vdi_request *request, struct vdi_request_labels *ret_labels);
/* Answered: code; size_bytes of the body, negative when unknown. */
void vdi_request_labels_answered(const struct vdi_request_labels *labels, int code, int64_t size_bytes);
/* The gauge of long-running requests like this; lent for ever, NULL for want of memory. */
struct vdi_metric *vdi_request_labels_running(const struct vdi_request_labels *labels);
/* The time until the initial events of a watch were sent. */
void vdi_request_labels_state_sent(const struct vdi_request_labels *labels);
/* The server ended it in self-defence; the client went away before the answer. */
void vdi_request_labels_terminated(const struct vdi_request_labels *labels, int code);
void vdi_request_labels_aborted(const struct vdi_request_labels *labels);
/* What a handler did whose request had been answered 504. */
void vdi_http_metrics_late(struct vdi_http_metrics *metrics, vd_status status);
/* The request is answered as a whole. */
void vdi_http_metrics_answered(const struct vdi_request *request, int code, int64_t size_bytes);
/* Of the request itself; once, before its answer. */
void vdi_http_metrics_received(const struct vdi_request *request);
/* A request begins; *ret_gauge is to be lowered when it ends. */
void vdi_http_metrics_begin(const struct vdi_request *request, struct vdi_metric **ret_gauge);
/* Of the resource, on this loop. */
struct vdi_watch_counts *vdi_http_metrics_watch(const struct vdi_http_loop *loop,
						const struct vdi_resource  *resource);

#endif
