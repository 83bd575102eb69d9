/* A pairing heap (Fredman et al. 1986). An array heap would be a little faster to pop, but must grow on add,
 * and setting a timer must not fail. Siblings are merged in two passes, iteratively, so that a heap of a
 * million timers does not deepen the stack. */
#include "timer.h"

static bool is_before(const struct vdi_timer *a, const struct vdi_timer *b)
{
	return a->due.ns != b->due.ns ? a->due.ns < b->due.ns : a->order < b->order;
}

/* Merges two roots without siblings; the later one becomes the first child of the earlier one. */
static struct vdi_timer *meld(struct vdi_timer *a, struct vdi_timer *b)
{
	if (a == NULL || b == NULL)
		return a ? a : b;
	if (is_before(b, a)) {
		struct vdi_timer *swap = a;

		a = b;
		b = swap;
	}
	b->next = a->child;
	if (b->next)
		b->next->previous = b;
	b->previous = a;
	a->child = b;
	return a;
}

static struct vdi_timer *merge_siblings(struct vdi_timer *first)
{
	struct vdi_timer *pairs = NULL;
	struct vdi_timer *root = NULL;

	while (first) {
		struct vdi_timer *a = first;
		struct vdi_timer *b = a->next;

		first = b ? b->next : NULL;
		a->next = NULL;
		if (b)
			b->next = NULL;
		a = meld(a, b);
		a->next = pairs;
		pairs = a;
	}
	while (pairs) {
		struct vdi_timer *next = pairs->next;

		pairs->next = NULL;
		root = meld(root, pairs);
		pairs = next;
	}
	return root;
}

static void set_root(struct vdi_timer_heap *heap, struct vdi_timer *root)
{
	heap->root = root;
	if (root) {
		root->next = NULL;
		root->previous = root;
	}
}

void vdi_timer_heap_remove(struct vdi_timer_heap *heap, struct vdi_timer *timer)
{
	struct vdi_timer *rest;

	if (!vdi_timer_is_set(timer))
		return;
	rest = merge_siblings(timer->child);
	if (timer == heap->root) {
		set_root(heap, rest);
	} else {
		if (timer->previous->child == timer)
			timer->previous->child = timer->next;
		else
			timer->previous->next = timer->next;
		if (timer->next)
			timer->next->previous = timer->previous;
		set_root(heap, meld(heap->root, rest));
	}
	timer->child = timer->next = timer->previous = NULL;
	timer->due = VD_NEVER;
	heap->count--;
}

void vdi_timer_heap_set(struct vdi_timer_heap *heap, struct vdi_timer *timer, vd_mono due)
{
	vdi_timer_heap_remove(heap, timer);
	if (due.ns == VD_NEVER.ns)
		return;
	timer->due = due;
	timer->order = heap->order_next++;
	heap->count++;
	set_root(heap, meld(heap->root, timer));
}

vd_mono vdi_timer_heap_next_due(const struct vdi_timer_heap *heap)
{
	return heap->root ? heap->root->due : VD_NEVER;
}

struct vdi_timer *vdi_timer_heap_pop_due(struct vdi_timer_heap *heap, vd_mono now)
{
	struct vdi_timer *first = heap->root;

	if (first == NULL || first->due.ns > now.ns)
		return NULL;
	vdi_timer_heap_remove(heap, first);
	return first;
}
