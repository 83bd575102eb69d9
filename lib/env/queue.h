/* Bounded first-in, first-out queues that are named and counted.
 *
 * A queue has room for its capacity from the start; put answers VD_FULL beyond it and never grows. Items of a
 * fixed size are copied in and out; pointers are items like any other. Depth, greatest depth, puts and
 * refusals are metrics by construction.
 *
 * struct vdi_queue belongs to one owner or one lock; struct vdi_queue_shared brings the lock and serves any
 * threads.
 */
#ifndef VDI_QUEUE_H
#define VDI_QUEUE_H

#include "lock.h"
#include "metrics.h"

struct vdi_queue_options {
	const char *name;      /* "raw_events", ...; lent for ever: a literal */
	const char *when_full; /* what the one who puts does then, for dumps; a literal */
	const char *resource;  /* label of the metrics; may be NULL; copied */
	size_t	    capacity;  /* items, > 0 */
	size_t	    item_size; /* bytes, > 0 */
};

struct vdi_queue {
	const char *name;
	const char *when_full;
	size_t	    capacity;
	size_t	    item_size;
	char	   *items; /* a ring */
	size_t	    first;
	size_t	    count;
	size_t	    count_max; /* the greatest count ever */
	uint64_t    puts;
	uint64_t    fulls;

	struct vdi_metric *depth;
	struct vdi_metric *depth_max;
	struct vdi_metric *capacity_total;
	struct vdi_metric *puts_total;
	struct vdi_metric *fulls_total;
};

/* Queues of one name and resource share their metrics: depths add up. registry may be NULL: no metrics.
 * VD_NOMEM, VD_FULL. */
VDI_MUST_USE vd_status vdi_queue_init(struct vdi_queue *queue, const struct vdi_queue_options *options,
				      struct vdi_metrics *registry);
/* What is still inside is forgotten. Zeroed memory is fine. */
void vdi_queue_fini(struct vdi_queue *queue);

/* VD_FULL: nothing was put. */
VDI_MUST_USE vd_status vdi_queue_put(struct vdi_queue *queue, const void *item);
/* False when empty; ret_item is untouched then. */
VDI_MUST_USE bool vdi_queue_take(struct vdi_queue *queue, void *ret_item);
/* The oldest item, lent until the next put or take; NULL when empty. */
void *vdi_queue_peek(const struct vdi_queue *queue);

/* For queues of item_size sizeof(void *); pointer must not be NULL. */
VDI_MUST_USE vd_status vdi_queue_put_pointer(struct vdi_queue *queue, void *pointer);
void		      *vdi_queue_take_pointer(struct vdi_queue *queue); /* NULL when empty */

static inline bool vdi_queue_is_full(const struct vdi_queue *queue)
{
	return queue->count == queue->capacity;
}

/* ---- Shared by threads ---- */

struct vdi_queue_shared {
	struct vdi_lock	 lock;
	struct vdi_queue queue; /* under lock */
};

VDI_MUST_USE vd_status vdi_queue_shared_init(struct vdi_queue_shared	    *shared,
					     const struct vdi_queue_options *options,
					     struct vdi_metrics		    *registry);
void		       vdi_queue_shared_fini(struct vdi_queue_shared *shared);
VDI_MUST_USE vd_status vdi_queue_shared_put(struct vdi_queue_shared *shared, const void *item);
/* Takes up to count items into the array ret_items with one lock; answers how many. */
size_t vdi_queue_shared_take(struct vdi_queue_shared *shared, void *ret_items, size_t count);
size_t vdi_queue_shared_count(struct vdi_queue_shared *shared);

#endif
