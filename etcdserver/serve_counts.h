/* Counters of calls, per method: relaxed additions where calls begin and end. serve_metrics.h exports
 * them. */
#ifndef VDI_SERVE_COUNTS_H
#define VDI_SERVE_COUNTS_H

#include "metrics.h"
#include "serve_call.h"

#define VDI_SERVE_CODES 17

struct vdi_serve_method_counts {
	_Atomic uint64_t   started;
	_Atomic uint64_t   received;
	_Atomic uint64_t   received_bytes;
	_Atomic uint64_t   sent;
	_Atomic uint64_t   sent_bytes;
	_Atomic uint64_t   handled[VDI_SERVE_CODES];
	struct vdi_metric *handling; /* NULL without extensive_metrics */
};

/* Counts the start of a call of the method with that index. Any thread, as all functions here. */
void vdi_serve_count_begun(struct vdi_serve_call *call, size_t place);
/* Counts the end with this code, unless it was already counted. */
void vdi_serve_count_ended(struct vdi_serve_call *call, int code);

static inline void vdi_serve_count_received(struct vdi_serve_call *call, size_t size)
{
	if (call->counts == NULL)
		return;
	atomic_fetch_add_explicit(&call->counts->received, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&call->counts->received_bytes, size, memory_order_relaxed);
}

static inline void vdi_serve_count_sent(struct vdi_serve_call *call, size_t size)
{
	if (call->counts == NULL)
		return;
	atomic_fetch_add_explicit(&call->counts->sent, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&call->counts->sent_bytes, size, memory_order_relaxed);
}

/* Observes the duration from begun until now of a rare operation. */
void vdi_serve_observe(struct vdi_etcdserver *server, enum vdi_metric_id id, vd_mono begun);

#endif
