/* The history: the recent events of one resource, stored once, in revision order.
 *
 * A ring whose positions only increase: position p is in slot p mod capacity, and [start, end) are retained.
 * It keeps events younger than the window (as kubernetes/apiserver
 * pkg/storage/cacher/watch_cache_history.go), but always stays within a byte budget. A reader holds a
 * position, not a pointer; comparing it with start shows whether its event was evicted.
 *
 * The ring is guarded by VDI_LOCK_WATCH_CACHE. Events are immutable, reference counted and may be held on any
 * thread.
 */
#ifndef VDI_HISTORY_H
#define VDI_HISTORY_H

#include <stdatomic.h>

#include <vedette/watch.h>

#include "base.h"

struct vdi_frames;

/* One change as the cache applied it: object is the new state (NULL: deleted), old_object the previous state
 * in the cache (NULL: none). */
struct vdi_event {
	_Atomic uint32_t	     references;
	uint32_t		     size_bytes; /* charged to each watcher that has not taken it yet */
	vd_rev			     revision;
	struct vd_object	    *object;
	struct vd_object	    *old_object;
	vd_mono			     record_time;
	_Atomic(struct vdi_frames *) frames; /* caching_object.c */
	atomic_bool		     recent; /* frames may be kept */
};

#define VDI_EVENT_OVERHEAD_BYTES 256

/* Takes references of both objects (each may be NULL, not both). The event has one reference. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_event_new(vd_rev revision, struct vd_object *object, struct vd_object *old_object,
				     vd_mono record_time, struct vdi_event **ret_event);
static inline struct vdi_event *vdi_event_ref(struct vdi_event *event)
{
	atomic_fetch_add_explicit(&event->references, 1, memory_order_relaxed);
	return event;
}
struct vdi_event *vdi_event_unref(struct vdi_event *event);

#define VDI_HISTORY_CAPACITY_MIN 100
#define VDI_HISTORY_CAPACITY_MAX (100 * 1024)

struct vdi_history {
	/* Fixed at creation. */
	int64_t bytes_max;
	vd_dur	window;
	size_t	capacity_lower;
	size_t	capacity_upper;

	struct vdi_event **slots;
	size_t		   capacity;
	uint64_t	   start;
	uint64_t	   end;
	int64_t		   bytes;
	vd_rev		   list_revision;    /* 0: never filled */
	vd_rev		   evicted_revision; /* newest revision evicted since the fill; 0: none */
	vd_rev		   trimmed_revision; /* newest revision evicted by a compaction; 0: none */
	uint64_t	   increases;
	uint64_t	   decreases;
};

/* Returns the maximum capacity for a window. */
size_t vdi_history_capacity_upper(vd_dur window);

/* VD_NOMEM. */
VDI_MUST_USE vd_status vdi_history_init(struct vdi_history *history, int64_t bytes_max, vd_dur window);
void		       vdi_history_fini(struct vdi_history *history);
/* Starts a new generation, listed at revision: empty, capacity kept, positions continue. */
void vdi_history_reset(struct vdi_history *history, vd_rev list_revision);
/* Takes over the caller's reference. Cannot fail: if memory for a larger ring is short, the oldest events are
 * evicted instead. Revisions must not decrease. */
void vdi_history_append(struct vdi_history *history, struct vdi_event *event);

/* Evicts events older than revision after the store was compacted at it, whatever the window and budget. A
 * watch may still start at revision - 1, unless an event of revision includes the previous state, which is
 * compacted: then the events of revision are evicted too. Returns the number of evicted events. */
size_t vdi_history_trim(struct vdi_history *history, vd_rev revision);

/* Borrowed while the lock is held; position must be in [start, end). */
static inline struct vdi_event *vdi_history_at(const struct vdi_history *history, uint64_t position)
{
	return history->slots[position % history->capacity];
}
/* Returns the first position with a greater revision; end if there is none. */
uint64_t vdi_history_after(const struct vdi_history *history, vd_rev revision);
/* Returns the oldest revision at which a watch may start ("events after this one"): upstream's oldest
 * revision minus 1, or after a trim the newest evicted revision. */
vd_rev vdi_history_floor(const struct vdi_history *history);
/* Checks that a watch may start at revision. VD_EXPIRED with upstream's message; VD_INTERNAL before the first
 * fill. */
VDI_MUST_USE vd_status vdi_history_check(const struct vdi_history *history, vd_rev revision,
					 struct vd_error *reterr);

#endif
