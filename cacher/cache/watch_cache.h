/* The watch cache: objects and history of one resource at one revision, and the readers that wait for a newer
 * one.
 *
 * The cacher's actor is the only writer. Any thread may read under the lock, which is held at most as long as
 * applying one batch takes. Snapshots are taken under the lock and read without it. Mirrors
 * kubernetes/apiserver pkg/storage/cacher/watch_cache.go.
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

/* A wait until the cache has reached revision. Owned by the caller until done is called, exactly once. */
struct vdi_fresh_waiter {
	vd_rev revision;
	/* VD_OK; VD_TOO_LARGE_REVISION after 3 s; VD_CLOSED. On the cacher's actor, no lock held. */
	void (*done)(struct vdi_fresh_waiter *waiter, vd_status status);
	vd_mono			 since;
	vd_status		 status; /* argument of the call of done */
	struct vdi_fresh_waiter *next;
};

struct vdi_watch_cache {
	const struct vd_env *env;
	/* The cacher's actor, woken for new waiters; set before the first wait; NULL: none. */
	struct vd_actor *actor;
	struct vdi_lock	 lock; /* VDI_LOCK_WATCH_CACHE */

	/* Under lock; revision and matched_position may be read without it. */
	struct vdi_object_store	 store;
	struct vdi_history	 history;
	_Atomic vd_rev		 revision; /* published: store and history include everything up to here */
	_Atomic uint64_t	 matched_position; /* all events before it were matched by the watch groups */
	vd_rev			 matched_revision;
	struct vdi_fresh_waiter *waiters_first; /* in the order of their deadlines, as each waits 3 s */
	struct vdi_fresh_waiter *waiters_last;
	vd_rev			 waiters_revision_min; /* of all waiters; INT64_MAX if none */
	uint64_t		 waits;
	/* States before this revision are not served; 0: not compacted in this generation. */
	vd_rev compacted;
	bool   is_stopped;
	bool   is_inconsistent; /* exact revisions are not served */
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

/* Returns the object with this key, with a reference for the caller; NULL: absent. *ret_revision (may be
 * NULL): revision of the state that was read. Any thread. */
struct vd_object *vdi_watch_cache_get(struct vdi_watch_cache *cache, struct vd_bytes key,
				      vd_rev *ret_revision);

/* ---- The cacher's actor ---- */

/* Starts a new generation. Takes over the tree's objects. bytes: their total size; -1: compute it.
 * keep_history: the history was backfilled up to revision; otherwise it starts there.
 * vdi_watch_cache_build_indexes then builds the indexes, while the cache is already read. */
void vdi_watch_cache_replace(struct vdi_watch_cache *cache, struct vdi_btree *objects, int64_t bytes,
			     vd_rev revision, bool keep_history);
void vdi_watch_cache_build_indexes(struct vdi_watch_cache *cache);
/* Before the fill: starts the history at floor. _backfill appends events to the history only. VD_NOMEM. */
void		       vdi_watch_cache_backfill_begin(struct vdi_watch_cache *cache, vd_rev floor);
VDI_MUST_USE vd_status vdi_watch_cache_backfill(struct vdi_watch_cache		 *cache,
						const struct vdi_watchchan_event *event);

struct vdi_applied {
	size_t		   taken;    /* number of events taken */
	uint64_t	   position; /* of made[0] in the history */
	size_t		   made_count;
	struct vdi_event **made; /* has space for count; the caller drops the references */
};
/* Applies whole revisions, in order, all newer than the published one, and publishes the last taken event's
 * revision. taken is less than count only with VD_NOMEM; it ends between two revisions, and the caller may
 * retry the rest. */
VDI_MUST_USE vd_status vdi_watch_cache_apply(struct vdi_watch_cache	      *cache,
					     const struct vdi_watchchan_event *events, size_t count,
					     struct vdi_applied *applied);
/* Records whether the consistency check found the cache equal to the store. If not, retained snapshots are
 * dropped, and exact revisions are not served until a later check succeeds. Any thread. */
void vdi_watch_cache_mark_consistent(struct vdi_watch_cache *cache, bool is_consistent);
/* Handles a compaction of the store at revision. Drops events older than kept, which is less than revision if
 * another part still needs them, drops retained snapshots older than revision, and no longer serves such
 * states. */
void vdi_watch_cache_compact(struct vdi_watch_cache *cache, vd_rev revision, vd_rev kept);
/* Returns true if a compaction could drop something. */
bool vdi_watch_cache_can_compact(struct vdi_watch_cache *cache);
/* Publishes revision: there are no changes up to it. */
void vdi_watch_cache_advance(struct vdi_watch_cache *cache, vd_rev revision);
/* Calls the waiters whose revision is published or whose time has expired. Returns the next deadline. */
vd_mono vdi_watch_cache_serve_waiters(struct vdi_watch_cache *cache);
/* Ends all present and future waits with VD_CLOSED. */
void vdi_watch_cache_stop(struct vdi_watch_cache *cache);
/* Returns true if readers wait. *ret_waits: number of waits so far. */
bool vdi_watch_cache_has_waiters(struct vdi_watch_cache *cache, uint64_t *ret_waits);

/* ---- Any thread ---- */

/* Waits for waiter->revision. true: already reached, done is not called. Otherwise the waiter is queued and
 * the cacher's actor is woken; the waiter may be freed before the return. */
VDI_MUST_USE bool vdi_watch_cache_wait(struct vdi_watch_cache *cache, struct vdi_fresh_waiter *waiter);
/* Sets upstream's error for a revision that the cache did not reach in time. */
vd_status vdi_too_large_revision(struct vd_error *reterr, vd_rev requested, vd_rev current);
/* Returns the state at exactly revision, as a snapshot that the caller releases. VD_EXPIRED `too old resource
 * version: N`, VD_NOMEM. revision must not be greater than the published one. The snapshot is retained for
 * the next page. */
VDI_MUST_USE vd_status vdi_watch_cache_snapshot_at(struct vdi_watch_cache *cache, vd_rev revision,
						   struct vdi_btree_snapshot *ret_snapshot,
						   struct vd_error	     *reterr);
/* Retains the newest state (a reference to a snapshot that was just taken of it) for exact reads of the
 * published revision. */
void vdi_watch_cache_retain_newest_locked(struct vdi_watch_cache *cache);
/* Returns true if vdi_watch_cache_snapshot_at would succeed now. */
bool vdi_watch_cache_has_revision(struct vdi_watch_cache *cache, vd_rev revision);

#endif
