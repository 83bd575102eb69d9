/* The watchers of one cacher: its delivery workers, the queues of opening and leaving watchers, and the
 * interface through which delivery workers and watchers use the cacher.
 *
 * The cacher embeds this struct and outlives every reference to it. `gone` is called when the last reference
 * is dropped, on the thread that drops it.
 */
#ifndef VDI_WATCHERS_H
#define VDI_WATCHERS_H

#include <stdatomic.h>

#include "base.h"
#include "lock.h"
#include "usage.h"

struct vdi_cacher_metrics;
struct vdi_delivery_worker;
struct vdi_watch_cache;

struct vdi_watchers {
	/* Fixed before the first watcher; borrowed. */
	const struct vd_env	  *env;
	struct vd_actor		  *actor; /* the cacher's */
	struct vdi_watch_cache	  *cache;
	struct vdi_cacher_metrics *metrics;
	/* Fills the parts in worker->dumps; on the delivery worker's thread. */
	void (*dump)(struct vdi_delivery_worker *worker);
	void (*gone)(struct vdi_watchers *watchers);

	atomic_bool	 is_draining; /* the cache has its last event; watchers that have delivered it end */
	_Atomic uint32_t references;

	struct vdi_lock lock; /* VDI_LOCK_CACHER; also guards fields of the cacher */

	/* Registry lock. */
	struct vdi_delivery_worker *workers;
	size_t			    worker_count; /* that have an actor and have not ended */
	struct vdi_delivery_worker *pulled;	  /* delivery workers of all attached pulled watchers */
	struct vd_watcher	   *opening_first;
	struct vd_watcher	   *opening_last;
	struct vd_watcher	   *left;
	size_t			    count; /* admitted and not yet released */

	struct vdi_delivery_worker *inline_worker; /* runs on the cacher's actor; fixed */
	struct vdi_usage	    usage;	   /* the cacher's; counts the open watchers */
};

static inline void vdi_watchers_ref(struct vdi_watchers *watchers)
{
	atomic_fetch_add_explicit(&watchers->references, 1, memory_order_relaxed);
}

static inline void vdi_watchers_unref(struct vdi_watchers *watchers)
{
	if (atomic_fetch_sub_explicit(&watchers->references, 1, memory_order_acq_rel) == 1)
		watchers->gone(watchers);
}

#endif
