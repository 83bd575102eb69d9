/* Counts by relaxed additions to the counters of the call's method. */
#include "serve_counts.h"

#include "env.h"

void vdi_serve_count_begun(struct vdi_serve_call *call, size_t place)
{
	call->counts = &call->server->method_counts[place];
	if (call->counts->handling)
		call->begun = vd_env_now(call->server->env);
	atomic_fetch_add_explicit(&call->counts->started, 1, memory_order_relaxed);
}

void vdi_serve_count_ended(struct vdi_serve_call *call, int code)
{
	if (call->counts == NULL || atomic_exchange_explicit(&call->is_counted, true, memory_order_relaxed))
		return;
	atomic_fetch_add_explicit(
		&call->counts->handled[code >= 0 && code < VDI_SERVE_CODES ? code : VDI_RPC_UNKNOWN], 1,
		memory_order_relaxed);
	if (call->counts->handling)
		vdi_metric_observe_duration(call->counts->handling,
					    vd_mono_since(vd_env_now(call->server->env), call->begun));
}

void vdi_serve_observe(struct vdi_etcdserver *server, enum vdi_metric_id id, vd_mono begun)
{
	struct vdi_metric *histogram;

	if (vdi_metric_get(vdi_env_metrics(server->env), id, NULL, &histogram) != VD_OK)
		return;
	vdi_metric_observe_duration(histogram, vd_mono_since(vd_env_now(server->env), begun));
	vdi_metric_release(histogram);
}
