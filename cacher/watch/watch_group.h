/* A watch group: all watches of one cacher with equal scope and selectors. Each event is matched and framed
 * once for the group.
 *
 * The group keeps a small ring of the history positions that matched. A reader is a position: all matches
 * before it were taken. While the ring reaches back to that position, reading costs nothing for events that
 * did not match. If the ring has overflowed, the reader evaluates the events of the history itself until its
 * position is in the ring again.
 *
 * A subscription is the group's part at one delivery worker: the caught-up watchers, which have no position
 * of their own, and the lagging ones.
 *
 * Most groups have one watcher with unique selectors, so group, first subscription, predicate and selectors
 * are one block: the group is placed in the room in front of its predicate.
 */
#ifndef VDI_WATCH_GROUP_H
#define VDI_WATCH_GROUP_H

#include <stdatomic.h>

#include "base.h"
#include "history.h"
#include "predicate.h"
#include "subscription.h"

struct vdi_watch_cache;

#define VDI_GROUP_RING_MIN 4
#define VDI_GROUP_RING_MAX 128

struct vdi_watch_group {
	_Atomic uint32_t references; /* one of the index and one of each subscription */

	/* The watch cache's lock. */
	uint8_t ring_capacity;
	uint8_t ring_start;
	uint8_t ring_count;

	/* The cacher's actor only: watch_index.c. */
	uint32_t		index_hash;
	uint32_t		visit;
	struct vdi_watch_group *index_next;
	struct vdi_watch_group *equal_next;

	/* The watch cache's lock. */
	uint64_t *ring;	      /* position * 4 + type */
	uint64_t  ring_floor; /* all matches at positions >= this are in the ring */
	uint64_t  matched_events;
	uint64_t  matched_bytes;

	/* The first subscription; the others follow by its group_next. It belongs to the first delivery
	 * worker that has watchers of the group, and is left unused when they are gone. */
	struct vdi_subscription subscription;
	/* The predicate. */
};

_Static_assert(VDI_GROUP_RING_MAX <= UINT8_MAX && sizeof(struct vdi_watch_group) % 8 == 0 &&
		       sizeof(struct vdi_watch_group) <= VDI_PREDICATE_ROOM_MAX,
	       "the ring is counted in bytes, and the group has room in front of its predicate");
_Static_assert(sizeof(struct vdi_watch_group) + sizeof(struct vdi_predicate) <= 224,
	       "100,000 watchers may have a selector each: group, first subscription and predicate are one "
	       "block of at most 224 bytes and the selectors");

static inline struct vdi_predicate *vdi_watch_group_predicate(const struct vdi_watch_group *group)
{
	return (struct vdi_predicate *) (uintptr_t) (group + 1);
}

/* A match; the reader owns one reference to its event. */
struct vdi_match {
	struct vdi_event  *event;
	uint64_t	   position;
	enum vd_watch_type type;
};

/* Creates a group in the room in front of predicate; one group at a time. Takes a reference to predicate.
 * position: the position up to which the history is matched. */
struct vdi_watch_group *vdi_watch_group_new(struct vdi_predicate *predicate, uint64_t position);
struct vdi_watch_group *vdi_watch_group_ref(struct vdi_watch_group *group);
struct vdi_watch_group *vdi_watch_group_unref(struct vdi_watch_group *group);

/* Appends a match. The watch cache's lock is held. Cannot fail: if out of memory, the ring restarts after
 * this match. */
void vdi_watch_group_append_locked(struct vdi_watch_group *group, uint64_t position, enum vd_watch_type type,
				   uint32_t size_bytes);

/* Returns matches from *position on, below limit, at most max, in order; advances *position over all examined
 * events. Zero matches with VD_OK: none below limit (*position == limit), or none yet, call again
 * (*position < limit). VD_EXPIRED: the history no longer has *position. Takes the watch cache's lock; any
 * thread. */
VDI_MUST_USE vd_status vdi_watch_group_take(struct vdi_watch_group *group, struct vdi_watch_cache *cache,
					    uint64_t *position, uint64_t limit, struct vdi_match *matches,
					    size_t max, size_t *ret_count);
/* Drops the references to the events. */
void vdi_matches_release(struct vdi_match *matches, size_t count);
/* Converts a match to the event that the receiver gets; all pointers are borrowed while the match is held. */
void vdi_match_to_event(const struct vdi_match *match, struct vd_watch_event *ret_event);

#endif
