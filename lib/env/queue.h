/* Bounded FIFO queues with names and counters.
 *
 * The whole capacity is allocated at creation; put returns VD_FULL beyond it. Items of a fixed size are
 * copied in and out; pointers are items like any other. Depth, maximum depth, puts and rejected puts are
 * metrics.
 *
 * A struct vdi_queue is protected by its one owner or by one lock; struct vdi_queue_shared includes the lock,
 * for any thread.
 */
#ifndef VDI_QUEUE_H
#define VDI_QUEUE_H

#include "lock.h"
#include "metrics.h"

struct vdi_queue_options {
	const char *name;      /* "raw_events", ...; a literal */
	const char *when_full; /* what the producer does when the queue is full, for dumps; a literal */
	const char *resource;  /* label of the metrics; may be NULL; copied */
	size_t	    capacity;  /* items, > 0 */
	size_t	    item_size; /* bytes, > 0 */
};

struct vdi_queue {
	const char *name;
	const char *when_full;
	size_t	    capacity;
	size_t	    item_size;
	char	   *items; /* ring */
	size_t	    first;
	size_t	    count;
	size_t	    count_max; /* maximum count so far */
	uint64_t    puts;
	uint64_t    fulls;

	struct vdi_metric *depth;
	struct vdi_metric *depth_max;
	struct vdi_metric *capacity_total;
	struct vdi_metric *puts_total;
	struct vdi_metric *fulls_total;
};

/* Queues with the same name and resource share their metrics: the depths add up. registry may be NULL: no
 * metrics. VD_NOMEM, VD_FULL. */
VDI_MUST_USE vd_status vdi_queue_init(struct vdi_queue *queue, const struct vdi_queue_options *options,
				      struct vdi_metrics *registry);
/* Drops the remaining items. Zeroed memory is allowed. */
void vdi_queue_fini(struct vdi_queue *queue);

/* VD_FULL: the item was not added. */
VDI_MUST_USE vd_status vdi_queue_put(struct vdi_queue *queue, const void *item);
/* False: the queue is empty, and ret_item is unchanged. */
VDI_MUST_USE bool vdi_queue_take(struct vdi_queue *queue, void *ret_item);
/* The oldest item, borrowed until the next put or take; NULL if empty. */
void *vdi_queue_peek(const struct vdi_queue *queue);

/* For queues whose item_size is sizeof(void *); pointer must not be NULL. */
VDI_MUST_USE vd_status vdi_queue_put_pointer(struct vdi_queue *queue, void *pointer);
void		      *vdi_queue_take_pointer(struct vdi_queue *queue); /* NULL if empty */

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
/* Takes up to count items into the array ret_items under one lock; returns their number. */
size_t vdi_queue_shared_take(struct vdi_queue_shared *shared, void *ret_items, size_t count);
size_t vdi_queue_shared_count(struct vdi_queue_shared *shared);

#endif
