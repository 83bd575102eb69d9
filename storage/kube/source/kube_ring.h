/* The last events of a source, which all its watches read through cursors.
 *
 *   after      first .......... visible ...... end
 *   (gone)     | whole revisions |  open revision |
 *
 * A cursor is the number of the next event to read. The ring keeps at most bytes_max, but always the newest
 * revision; the oldest revision is dropped as a whole, and a cursor on it expires. Of the events that all
 * cursors have passed it keeps about bytes_min: a watch that is opened again starts there. Events from
 * visible on wait for the end of their revision.
 *
 * Protected by the source's lock. */
#ifndef VDI_KUBE_RING_H
#define VDI_KUBE_RING_H

#include "kube_mirror.h"

#define VDI_KUBE_RING_BYTES_MAX ((size_t) 16 << 20)
#define VDI_KUBE_RING_BYTES_MIN ((size_t) 512 << 10)

struct vdi_kube_ring {
	struct vdi_kube_change *changes; /* event n is at n % capacity */
	size_t			capacity;
	uint64_t		first, visible, end;
	size_t			bytes, bytes_min, bytes_max;
	vd_rev			after; /* all events after this revision are in the ring */
};

void vdi_kube_ring_init(struct vdi_kube_ring *ring, size_t bytes_min, size_t bytes_max);
void vdi_kube_ring_fini(struct vdi_kube_ring *ring);
/* Drops all events; the next ones are later than after. */
void vdi_kube_ring_reset(struct vdi_kube_ring *ring, vd_rev after);
/* After VD_OK the next push succeeds. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_kube_ring_reserve(struct vdi_kube_ring *ring);
/* Appends an event that is not visible yet; takes over its references. */
void vdi_kube_ring_push(struct vdi_kube_ring *ring, const struct vdi_kube_change *change);
/* Drops the oldest whole revisions before cursor, as long as the ring has more than bytes_min. */
void vdi_kube_ring_trim(struct vdi_kube_ring *ring, uint64_t cursor);
/* Makes all events visible. */
void vdi_kube_ring_show(struct vdi_kube_ring *ring);
/* Revision of the newest visible event, or after. */
vd_rev vdi_kube_ring_shown(const struct vdi_kube_ring *ring);
/* Finds the first event with a revision of at least start. VD_EXPIRED: events since start were dropped. */
VDI_MUST_USE vd_status		      vdi_kube_ring_find(const struct vdi_kube_ring *ring, vd_rev start,
							 uint64_t *ret_cursor);
static inline struct vdi_kube_change *vdi_kube_ring_at(const struct vdi_kube_ring *ring, uint64_t number)
{
	return &ring->changes[number & (ring->capacity - 1)];
}

#endif
