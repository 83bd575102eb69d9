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
 * Readers know a state by its revision: who listed at R watches from R + 1. If it turns out that a state of
 * revision R was not the one that the events after R continue, a watch from R + 1 must be refused, and no
 * other state may be given as R, because the two could not be told apart:
 *
 *   broken   an event of this revision, or of an earlier one, arrived after the revision was shown
 *   lost     revisions of states given before the server was restored
 *
 * Protected by the source's lock. */
#ifndef VDI_KUBE_RING_H
#define VDI_KUBE_RING_H

#include "kube_mirror.h"

#define VDI_KUBE_RING_BYTES_MAX ((size_t) 16 << 20)
#define VDI_KUBE_RING_BYTES_MIN ((size_t) 512 << 10)
/* The newest of given and lost revisions are remembered. */
#define VDI_KUBE_GIVEN_MAX 16
#define VDI_KUBE_LOST_MAX 32

struct vdi_kube_ring {
	struct vdi_kube_change *changes; /* event n is at n % capacity */
	size_t			capacity;
	uint64_t		first, visible, end;
	size_t			bytes, bytes_min, bytes_max;
	vd_rev			after;	/* all events after this revision are in the ring */
	vd_rev			broken; /* 0: none */
	vd_rev			given[VDI_KUBE_GIVEN_MAX], lost[VDI_KUBE_LOST_MAX];
	unsigned		given_count, lost_count; /* written so far */
};

void vdi_kube_ring_init(struct vdi_kube_ring *ring, size_t bytes_min, size_t bytes_max);
void vdi_kube_ring_fini(struct vdi_kube_ring *ring);
/* Drops all events; the next ones are later than after. */
void vdi_kube_ring_reset(struct vdi_kube_ring *ring, vd_rev after);
/* Drops all events: those of revision (or before) were not complete when they were shown. */
void vdi_kube_ring_break(struct vdi_kube_ring *ring, vd_rev revision);
/* Notes that a reader has a state of this revision. */
void vdi_kube_ring_give(struct vdi_kube_ring *ring, vd_rev revision);
/* The given states are those of a server that was replaced. */
void vdi_kube_ring_lose(struct vdi_kube_ring *ring);
bool vdi_kube_ring_is_lost(const struct vdi_kube_ring *ring, vd_rev revision);
/* False: a state of this revision must not be given, and no watch can continue one. */
bool vdi_kube_ring_can_continue(const struct vdi_kube_ring *ring, vd_rev revision);
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
/* Watches that start after this revision can be served. */
static inline vd_rev vdi_kube_ring_history(const struct vdi_kube_ring *ring)
{
	return ring->broken >= ring->after && ring->broken ? ring->broken + 1 : ring->after;
}
/* Finds the first event with a revision of at least start. VD_EXPIRED: events since start were dropped, or
 * a state of start - 1 cannot be continued. */
VDI_MUST_USE vd_status		      vdi_kube_ring_find(const struct vdi_kube_ring *ring, vd_rev start,
							 uint64_t *ret_cursor);
static inline struct vdi_kube_change *vdi_kube_ring_at(const struct vdi_kube_ring *ring, uint64_t number)
{
	return &ring->changes[number & (ring->capacity - 1)];
}

#endif
