/* The watch cache: what is known of one resource at one revision, and who waits for a newer one.
 *
 * The cacher's actor is the only writer; every thread may read under the lock, which is never held longer
 * than it takes to apply one batch. Snapshots are taken under it and walked without. Mirrors
 * kubernetes/apiserver pkg/storage/cacher/watch_cache.go (R-430..R-465).
 */
#ifndef VDI_WATCH_CACHE_H
#define VDI_WATCH_CACHE_H

#include <stdatomic.h>

#include "base.h"
#include "history.h"
#include "lock.h"
#include "object_store.h"
#include "watchchan.h"

#define VDI_FRESH_WAIT VD_SECONDS(3)
#define VDI_APPLY_BATCH 32

/* Waits until the cache stands at revision or later. Owned by whoever made it, until done is called, exactly
 * once. */
struct vdi_fresh_waiter {
	vd_rev revision;
	/* VD_OK; VD_TOO_LARGE_REVISION after 3 s; VD_CLOSED. On the cacher's actor, no lock held. */
	void (*done)(struct vdi_fresh_waiter *waiter, vd_status status);
	vd_mono			 since;
	vd_status		 status; /* that done will be told */
	struct vdi_fresh_waiter *next;
};

struct vdi_watch_cache {
	const struct vd_env *env;
	/* the cacher's, woken for new waiters; set once before anybody waits; NULL: nobody to wake */
	struct vd_actor *actor;
	struct vdi_lock	 lock; /* VDI_LOCK_WATCH_CACHE */

	/* Under lock; revision and matched_position may be read without. */
	struct vdi_object_store	 store;
	struct vdi_history	 history;
	_Atomic vd_rev		 revision; /* published: everything up to here is in store and history */
	_Atomic uint64_t	 matched_position; /* watch groups know of everything before */
	vd_rev			 matched_revision;
	struct vdi_fresh_waiter *waiters_first; /* in the order of their deadlines, which all are 3 s */
	struct vdi_fresh_waiter *waiters_last;
	vd_rev			 waiters_revision_min; /* of all waiters; INT64_MAX when none waits */
	uint64_t		 waits;
	/* no state of an older revision is given out; 0: none was compacted in this generation */
	vd_rev compacted;
	bool   is_stopped;
	bool   is_inconsistent; /* exact revisions are not given out */
};

/* field_count, index_labels as in object_store.h. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_watch_cache_init(struct vdi_watch_cache *cache, const struct vd_env *env,
					    int64_t history_bytes, vd_dur history_window, size_t field_count,
					    const char *const *index_labels);
void		       vdi_watch_cache_fini(struct vdi_watch_cache *cache);

static inline vd_rev vdi_watch_cache_revision(const struct vdi_watch_cache *cache)
{
	return atomic_load_explicit(&cache->revision, memory_order_acquire);
}

/* The object of this key, with a reference for the caller; NULL: there is none. *ret_revision (may be NULL):
 * of the state that this is true of. Any thread. */
struct vd_object *vdi_watch_cache_get(struct vdi_watch_cache *cache, struct vd_bytes key,
				      vd_rev *ret_revision);

/* ---- The cacher's actor ---- */

/* A new generation. Takes over the content of objects, which are so many bytes (-1: they are
 * counted). keep_history: it was backfilled up to here; else it starts over at revision. Its indexes are
 * built by the next call, while it is read already. */
void vdi_watch_cache_replace(struct vdi_watch_cache *cache, struct vdi_btree *objects, int64_t bytes,
			     vd_rev revision, bool keep_history);
void vdi_watch_cache_build_indexes(struct vdi_watch_cache *cache);
/* Before the fill: the history starts at floor, and takes events for nothing but itself. VD_NOMEM. */
void		       vdi_watch_cache_backfill_begin(struct vdi_watch_cache *cache, vd_rev floor);
VDI_MUST_USE vd_status vdi_watch_cache_backfill(struct vdi_watch_cache		 *cache,
						const struct vdi_watchchan_event *event);

struct vdi_applied {
	size_t		   taken;    /* of the events given */
	uint64_t	   position; /* of made[0] in the history */
	size_t		   made_count;
	struct vdi_event **made; /* room for count; a reference each, for the caller to drop */
};
/* Applies whole revisions, in order, all newer than the published one. The published revision is the last
 * taken event's. taken is less than count only with VD_NOMEM, ends between two revisions, and the rest may be
 * tried again. */
VDI_MUST_USE vd_status vdi_watch_cache_apply(struct vdi_watch_cache	      *cache,
					     const struct vdi_watchchan_event *events, size_t count,
					     struct vdi_applied *applied);
/* Whether the cache was found equal to the store (R-5A2): if not, retained snapshots go and no exact revision
 * is given out until it is again. Any thread. */
void vdi_watch_cache_mark_consistent(struct vdi_watch_cache *cache, bool is_consistent);
/* the store was compacted at revision. Events go that are older than kept, which may be less where
 * something else keeps them; retained snapshots that are older than revision go, and no such state is given
 * out any more. */
void vdi_watch_cache_compact(struct vdi_watch_cache *cache, vd_rev revision, vd_rev kept);
/* Whether there is something that a compaction could take away. */
bool vdi_watch_cache_has_past(struct vdi_watch_cache *cache);
/* Nothing happened up to revision. */
void vdi_watch_cache_advance(struct vdi_watch_cache *cache, vd_rev revision);
/* Calls those who waited for what is now published, and those whose time is over. Returns when the next one
 * is due. */
vd_mono vdi_watch_cache_serve_waiters(struct vdi_watch_cache *cache);
/* Everybody who waits or will wait gets VD_CLOSED. */
void vdi_watch_cache_stop(struct vdi_watch_cache *cache);
/* *ret_waits: how many waits there ever were. */
bool vdi_watch_cache_has_waiters(struct vdi_watch_cache *cache, uint64_t *ret_waits);

/* ---- Any thread ---- */

/* true: revision is there already, done is not called. Else waiter is queued, the cacher's actor is woken,
 * and waiter may be gone already. */
VDI_MUST_USE bool vdi_watch_cache_wait(struct vdi_watch_cache *cache, struct vdi_fresh_waiter *waiter);
/* the words of a revision that did not come. */
vd_status vdi_too_large_revision(struct vd_error *reterr, vd_rev requested, vd_rev current);
/* The state of exactly revision, as a snapshot that the caller releases. VD_EXPIRED `too old resource
 * version: N`, VD_NOMEM. revision must not be above the published one. The snapshot stays around for the next
 * page. */
VDI_MUST_USE vd_status vdi_watch_cache_snapshot_at(struct vdi_watch_cache *cache, vd_rev revision,
						   struct vdi_btree_snapshot *ret_snapshot,
						   struct vd_error	     *reterr);
/* Keeps the newest state (another reference to a snapshot that was just taken of it) for exact reads of the
 * revision that is published now. */
void vdi_watch_cache_retain_newest_locked(struct vdi_watch_cache *cache);
/* Whether that would work now. */
bool vdi_watch_cache_has_revision(struct vdi_watch_cache *cache, vd_rev revision);

#endif
