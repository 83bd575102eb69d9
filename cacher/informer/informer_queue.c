/* A ring buffer. */
#include "informer_queue.h"

size_t vdi_informer_queue_put(struct vdi_informer_queue *queue, const struct vd_watch_event *events,
			      size_t count)
{
	size_t taken = 0;

	for (; taken < count && queue->count < VDI_INFORMER_QUEUE_MAX; taken++) {
		const struct vd_watch_event *event = &events[taken];

		queue->events[(queue->start + queue->count++) % VDI_INFORMER_QUEUE_MAX] =
			(struct vdi_informer_event) { event->type, event->initial, event->initial_events_end,
						      event->revision,
						      event->object ? vd_object_ref(event->object) : NULL };
	}
	queue->is_full = taken < count;
	return taken;
}

size_t vdi_informer_queue_take(struct vdi_informer_queue *queue, struct vdi_informer_event *events,
			       size_t max, bool *ret_has_room_again)
{
	size_t count = 0;

	while (count < max && queue->count) {
		events[count++] = queue->events[queue->start];
		queue->start = (queue->start + 1) % VDI_INFORMER_QUEUE_MAX;
		queue->count--;
	}
	*ret_has_room_again = count && queue->is_full;
	if (*ret_has_room_again)
		queue->is_full = false;
	return count;
}
