/* A heap of deadlines whose nodes lie inside their owners.
 *
 * Adding, changing and removing cost O(log n) amortized and never allocate, so none of them can fail. Timers
 * with equal deadlines come out in the order in which they were set. One owner or one lock; nothing here is
 * thread-safe.
 */
#ifndef VDI_TIMER_H
#define VDI_TIMER_H

#include "base.h"

struct vdi_timer {
	vd_mono		  due;
	uint64_t	  order; /* tie-breaker: grows with every set */
	struct vdi_timer *child;
	struct vdi_timer *next; /* sibling */
	/* sibling, or the parent for a first child; itself for the root; NULL when not in a heap */
	struct vdi_timer *previous;
};

/* Zeroed memory is an empty heap. */
struct vdi_timer_heap {
	struct vdi_timer *root;
	uint64_t	  order_next;
	size_t		  count;
};

/* Zeroed memory is an idle timer too. */
static inline bool vdi_timer_is_set(const struct vdi_timer *timer)
{
	return timer->previous != NULL;
}

/* Adds or moves the timer; VD_NEVER removes it. */
VDI_SHARED void vdi_timer_heap_set(struct vdi_timer_heap *heap, struct vdi_timer *timer, vd_mono due);
/* Fine when the timer is not set. */
VDI_SHARED void vdi_timer_heap_remove(struct vdi_timer_heap *heap, struct vdi_timer *timer);
/* When the first one is due; VD_NEVER when there is none. */
VDI_SHARED vd_mono vdi_timer_heap_next_due(const struct vdi_timer_heap *heap);
/* Takes out the first timer that is due at now; NULL when none is. */
VDI_SHARED struct vdi_timer *vdi_timer_heap_pop_due(struct vdi_timer_heap *heap, vd_mono now);

#endif
