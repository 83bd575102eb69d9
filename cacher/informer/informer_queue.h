/* A bounded queue of the events that a watch has delivered to an informer and its actor has not processed,
 * with a reference to each object. The owner locks. */
#ifndef VDI_INFORMER_QUEUE_H
#define VDI_INFORMER_QUEUE_H

#include <vedette/watch.h>

#include "base.h"

#define VDI_INFORMER_QUEUE_MAX 256

struct vdi_informer_event {
	enum vd_watch_type type;
	bool		   initial;
	bool		   initial_events_end;
	vd_rev		   revision;
	struct vd_object  *object; /* a reference, or NULL */
};

struct vdi_informer_queue {
	struct vdi_informer_event events[VDI_INFORMER_QUEUE_MAX];
	size_t			  start;
	size_t			  count;
	bool			  is_full; /* the watch was offered no space */
};

/* Appends as many events as fit, and returns their number. */
size_t vdi_informer_queue_put(struct vdi_informer_queue *queue, const struct vd_watch_event *events,
			      size_t count);
/* Moves at most max events out, with their references. *ret_has_room_again: the watch found the queue full
 * and can now be resumed. */
size_t vdi_informer_queue_take(struct vdi_informer_queue *queue, struct vdi_informer_event *events,
			       size_t max, bool *ret_has_room_again);

#endif
