/* A heap of deadlines with intrusive nodes.
 *
 * Adding, changing and removing cost O(log n) amortized and never allocate, so they cannot fail. Timers with
 * equal deadlines come out in the order in which they were set. Not thread-safe: one owner or one lock.
 */
#ifndef VDI_TIMER_H
#define VDI_TIMER_H

#include "base.h"

struct vdi_timer {
	vd_mono		  due;
	uint64_t	  order; /* tie-breaker: increases with every set */
	struct vdi_timer *child;
	struct vdi_timer *next; /* sibling */
	/* previous sibling; the parent for a first child; itself for the root; NULL if not in a heap */
	struct vdi_timer *previous;
};

/* Zeroed memory is an empty heap. */
struct vdi_timer_heap {
	struct vdi_timer *root;
	uint64_t	  order_next;
	size_t		  count;
};

/* Zeroed memory is an unset timer. */
static inline bool vdi_timer_is_set(const struct vdi_timer *timer)
{
	return timer->previous != NULL;
}

/* Adds or moves the timer; VD_NEVER removes it. */
VDI_SHARED void vdi_timer_heap_set(struct vdi_timer_heap *heap, struct vdi_timer *timer, vd_mono due);
/* Allowed if the timer is not set. */
VDI_SHARED void vdi_timer_heap_remove(struct vdi_timer_heap *heap, struct vdi_timer *timer);
/* Earliest deadline; VD_NEVER if the heap is empty. */
VDI_SHARED vd_mono vdi_timer_heap_next_due(const struct vdi_timer_heap *heap);
/* Removes and returns the earliest timer that is due at now; NULL if none is. */
VDI_SHARED struct vdi_timer *vdi_timer_heap_pop_due(struct vdi_timer_heap *heap, vd_mono now);

#endif
