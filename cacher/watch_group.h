/* A watch group: all watches of one cacher with equal scope and selectors. Matched once per event, framed once, shared by all.
 *
 * The group keeps a small ring of the positions (of the history) that matched. A reader is a position: "everything matched before it was handed
 * out". While the ring reaches back to it, reading costs nothing per event that did not match; when the ring has overflowed, the reader
 * evaluates the history's events itself until it is inside the ring again.
 *
 * A lane is the group's share at one outlet: the caught-up watchers there, who have no position of their own, and those who lag.
 */
#ifndef VDI_WATCH_GROUP_H
#define VDI_WATCH_GROUP_H

#include <stdatomic.h>

#include "base.h"
#include "history.h"
#include "predicate.h"

struct vdi_watch_cache;
struct vdi_outlet;

#define VDI_GROUP_RING_MIN 4
#define VDI_GROUP_RING_MAX 128

struct vdi_watch_group {
	_Atomic uint32_t references; /* one of the index, one of each lane */
	uint16_t	 ring_capacity;
	uint16_t	 ring_start;
	uint16_t	 ring_count;

	/* Fixed at creation. */
	struct vdi_predicate *predicate;

	/* The cacher's actor only. */
	struct vdi_watch_group *index_next; /* watch_index.c */
	struct vdi_watch_group *equal_next;
	uint64_t		index_hash;
	uint64_t		visit;
	struct vdi_lane	       *lanes;

	/* The watch cache's lock. */
	uint64_t *ring;	      /* position * 4 + type */
	uint64_t  ring_floor; /* all matches at positions >= this are in the ring */
	uint64_t  matched_events;
	uint64_t  matched_bytes;
};

/* A found event: the reader owns one reference. */
struct vdi_match {
	struct vdi_event  *event;
	uint64_t	   position;
	enum vd_watch_type type;
};

/* Takes a reference of predicate. position: where the history is matched up to. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_watch_group_new(struct vdi_predicate *predicate, uint64_t position, struct vdi_watch_group **ret_group);
struct vdi_watch_group *vdi_watch_group_ref(struct vdi_watch_group *group);
struct vdi_watch_group *vdi_watch_group_unref(struct vdi_watch_group *group);

/* A match was found. The watch cache's lock is held. Cannot fail: without memory the ring starts over behind it. */
void vdi_watch_group_append_locked(struct vdi_watch_group *group, uint64_t position, enum vd_watch_type type, uint32_t size_bytes);

/* Hands out what matched from *position on, below limit, at most max, in order; moves *position behind what it looked at. 0 with VD_OK: nothing
 * more below limit (*position == limit), or nothing yet, ask again (*position < limit). VD_EXPIRED: the history no longer has *position.
 * Takes the watch cache's lock itself; any thread. */
VDI_MUST_USE vd_status vdi_watch_group_take(struct vdi_watch_group *group, struct vdi_watch_cache *cache, uint64_t *position, uint64_t limit,
					    struct vdi_match *matches, size_t max, size_t *ret_count);
/* Drops the references. */
void vdi_matches_release(struct vdi_match *matches, size_t count);
/* As the receiver sees it; all pointers lent while the match is held. */
void vdi_match_to_event(const struct vdi_match *match, struct vd_watch_event *ret_event);

#endif
