/* The history: the recent events of one resource, once, in revision order.
 *
 * A ring whose positions only grow: position p lies in slot p mod capacity, [start, end) is what is held. It
 * keeps what is younger than the window (R-401..R-406, kubernetes/apiserver
 * pkg/storage/cacher/watch_cache_history.go) and stays within a byte budget whatever the window says. A
 * reader holds positions, not pointers: what was evicted is noticed by comparing with start.
 *
 * The ring belongs to the cacher's lock (VDI_LOCK_WATCH_CACHE); events are immutable, reference counted and
 * may be held on any thread.
 */
#ifndef VDI_HISTORY_H
#define VDI_HISTORY_H

#include <stdatomic.h>

#include <vedette/watch.h>

#include "base.h"

struct vdi_frames;

/* One change as the cache saw it: object is the state after (NULL: deleted), old_object the state before as
 * the cache had it (NULL: none). */
struct vdi_event {
	_Atomic uint32_t	     references;
	uint32_t		     size_bytes; /* what a watcher that has not taken it yet is charged */
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
	vd_rev		   evicted_revision; /* newest one evicted since the fill; 0: none */
	vd_rev		   trimmed_revision; /* newest one that a compaction of the store evicted; 0: none */
	uint64_t	   increases;
	uint64_t	   decreases;
};

/* the capacity that a window asks for at most. */
size_t vdi_history_capacity_upper(vd_dur window);

/* VD_NOMEM. */
VDI_MUST_USE vd_status vdi_history_init(struct vdi_history *history, int64_t bytes_max, vd_dur window);
void		       vdi_history_fini(struct vdi_history *history);
/* A new generation that was listed at revision: empty, capacity kept, positions go on. */
void vdi_history_reset(struct vdi_history *history, vd_rev list_revision);
/* Takes over the caller's reference. Cannot fail: where memory for a larger ring is missing, the oldest
 * events go instead. Revisions must not decrease. */
void vdi_history_append(struct vdi_history *history, struct vdi_event *event);

/* The store has compacted: events older than revision go, whatever window and budget say. A watch may
 * start at revision - 1 all the same, unless an event of revision shows the state before, which is
 * compacted (E-343): then that revision goes too. Returns how many events went. */
size_t vdi_history_trim(struct vdi_history *history, vd_rev revision);

/* Lent while the lock is held; position must be in [start, end). */
static inline struct vdi_event *vdi_history_at(const struct vdi_history *history, uint64_t position)
{
	return history->slots[position % history->capacity];
}
/* The first position whose revision is greater; end if there is none. */
uint64_t vdi_history_after(const struct vdi_history *history, vd_rev revision);
/* The oldest revision from which a watch may go on ("events after this one"); what R-483 calls oldest - 1,
 * but after a trim the newest revision that went. */
vd_rev vdi_history_floor(const struct vdi_history *history);
/* VD_EXPIRED with the words of R-483; VD_INTERNAL before the first fill. */
VDI_MUST_USE vd_status vdi_history_check(const struct vdi_history *history, vd_rev revision,
					 struct vd_error *reterr);

#endif
