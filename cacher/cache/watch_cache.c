/* The lock is taken once per batch. Objects and history change together under it, so a reader that holds it
 * sees one revision. Events are allocated before. Under the lock only copying tree nodes can fail; then the
 * batch stops between two revisions, so that a reader never sees part of one.
 *
 * An exact read of an older revision undoes events, newest first, in a private copy-on-write tree, some at a
 * time, so that the writer does not wait. If the history evicts one of them meanwhile, the revision has
 * become too old. */
#include "watch_cache.h"

vd_status vdi_watch_cache_init(struct vdi_watch_cache *cache, const struct vd_env *env, int64_t history_bytes,
			       vd_dur history_window, size_t field_count, const char *const *index_labels)
{
	*cache = (struct vdi_watch_cache) { .env = env, .waiters_revision_min = INT64_MAX };
	VDI_TRY(vdi_history_init(&cache->history, history_bytes, history_window));
	if (vdi_object_store_init(&cache->store, field_count, index_labels) != VD_OK) {
		vdi_history_fini(&cache->history);
		return VD_NOMEM;
	}
	vdi_lock_init(&cache->lock, VDI_LOCK_WATCH_CACHE);
	return VD_OK;
}

void vdi_watch_cache_fini(struct vdi_watch_cache *cache)
{
	if (cache->env == NULL)
		return;
	vdi_object_store_fini(&cache->store);
	vdi_history_fini(&cache->history);
	vdi_lock_fini(&cache->lock);
	cache->env = NULL;
}

static void publish_locked(struct vdi_watch_cache *cache, vd_rev revision)
{
	atomic_store_explicit(&cache->revision, revision, memory_order_release);
}

void vdi_watch_cache_replace(struct vdi_watch_cache *cache, struct vdi_btree *objects, int64_t bytes,
			     vd_rev revision, bool keep_history)
{
	vdi_lock_acquire(&cache->lock);
	if (!keep_history)
		vdi_history_reset(&cache->history, revision);
	vdi_object_store_replace(&cache->store, objects, bytes);
	cache->matched_revision = revision;
	cache->is_inconsistent = false;
	cache->compacted = 0;
	atomic_store_explicit(&cache->matched_position, cache->history.end, memory_order_release);
	publish_locked(cache, revision);
	vdi_lock_release(&cache->lock);
}

void vdi_watch_cache_build_indexes(struct vdi_watch_cache *cache)
{
	struct vdi_btree_snapshot objects;
	struct vdi_object_index	  fresh;

	vdi_lock_acquire(&cache->lock);
	vdi_object_store_snapshot(&cache->store, &objects);
	for (size_t i = 0; i < cache->store.index_count; i++) {
		if (!vdi_object_store_index_begin(&cache->store, i, &fresh))
			continue;
		vdi_lock_release(&cache->lock);
		vdi_object_index_build(&fresh, &objects);
		vdi_lock_acquire(&cache->lock);
		vdi_object_store_index_end(&cache->store, i, &fresh);
	}
	vdi_lock_release(&cache->lock);
	vdi_btree_snapshot_release(&objects);
}

struct vd_object *vdi_watch_cache_get(struct vdi_watch_cache *cache, struct vd_bytes key,
				      vd_rev *ret_revision)
{
	struct vd_object *object;

	vdi_lock_acquire(&cache->lock);
	object = vdi_object_store_get(&cache->store, key);
	if (object)
		vd_object_ref(object);
	if (ret_revision)
		*ret_revision = vdi_watch_cache_revision(cache);
	vdi_lock_release(&cache->lock);
	return object;
}

void vdi_watch_cache_backfill_begin(struct vdi_watch_cache *cache, vd_rev floor)
{
	vdi_lock_acquire(&cache->lock);
	vdi_history_reset(&cache->history, floor);
	vdi_lock_release(&cache->lock);
}

vd_status vdi_watch_cache_backfill(struct vdi_watch_cache *cache, const struct vdi_watchchan_event *event)
{
	bool		  is_delete = event->type == VD_WATCH_DELETED;
	struct vdi_event *made;

	if (is_delete && event->object == NULL)
		return VD_OK;
	VDI_TRY(vdi_event_new(event->revision, is_delete ? NULL : event->object,
			      is_delete ? event->object : event->old_object, vd_env_now(cache->env), &made));
	vdi_lock_acquire(&cache->lock);
	vdi_history_append(&cache->history, made);
	vdi_lock_release(&cache->lock);
	return VD_OK;
}

/* The event gets the cache's own previous object, whatever the store reported. *ret_made: false for a
 * deletion of an unknown key. */
static vd_status change_locked(struct vdi_watch_cache *cache, struct vdi_event *event, bool *ret_made)
{
	struct vd_object *object = event->object;
	struct vd_object *old_object;

	VDI_TRY(vdi_object_store_change(&cache->store, vd_object_key(object ? object : event->old_object),
					object, &old_object));
	*ret_made = object || old_object;
	if (!*ret_made)
		return VD_OK;
	vd_object_unref(event->old_object);
	event->old_object = old_object;
	return VD_OK;
}

/* Applies the events of one revision, all or none; events that change nothing become NULL. */
static vd_status apply_revision_locked(struct vdi_watch_cache *cache, struct vdi_event **made, size_t count)
{
	struct vdi_btree_snapshot before = { 0 };
	vd_status		  status = VD_OK;
	size_t			  done;
	bool			  is_made;

	if (count > 1) /* a single change that fails changes nothing */
		vdi_object_store_snapshot(&cache->store, &before);
	for (done = 0; done < count; done++) {
		status = change_locked(cache, made[done], &is_made);
		if (status != VD_OK)
			break;
		if (!is_made)
			made[done] = vdi_event_unref(made[done]);
	}
	if (status != VD_OK && done > 0)
		vdi_object_store_restore(&cache->store, &before, made, done);
	vdi_btree_snapshot_release(&before);
	for (size_t i = 0; status == VD_OK && i < count; i++)
		if (made[i])
			vdi_history_append(&cache->history, vdi_event_ref(made[i]));
	return status;
}

static size_t look_ahead_locked(struct vdi_watch_cache *cache, struct vdi_event *const *made, size_t count)
{
	struct vd_bytes keys[VDI_PREPARE_MAX];

	for (size_t i = 0; i < count; i++)
		keys[i] = vd_object_key(made[i]->object ? made[i]->object : made[i]->old_object);
	vdi_object_store_prepare(&cache->store, keys, count);
	return count;
}

static vd_status make_event(struct vdi_watch_cache *cache, const struct vdi_watchchan_event *from,
			    struct vdi_event **ret_event)
{
	bool	is_delete = from->type == VD_WATCH_DELETED;
	vd_mono time = from->received.ns ? from->received : vd_env_now(cache->env);

	return vdi_event_new(from->revision, is_delete ? NULL : from->object, is_delete ? from->object : NULL,
			     time, ret_event);
}

static size_t revision_size(const struct vdi_watchchan_event *events, size_t count)
{
	size_t size = 1;

	while (size < count && events[size].revision == events[0].revision)
		size++;
	return size;
}

vd_status vdi_watch_cache_apply(struct vdi_watch_cache *cache, const struct vdi_watchchan_event *events,
				size_t count, struct vdi_applied *applied)
{
	struct vdi_event **made = applied->made;
	size_t		   prepared = 0;
	size_t		   taken = 0;
	size_t		   kept = 0;
	size_t		   looked_at = 0;

	while (prepared < count && make_event(cache, &events[prepared], &made[prepared]) == VD_OK)
		prepared++;
	vdi_lock_acquire(&cache->lock);
	applied->position = cache->history.end;
	while (taken < prepared) {
		size_t size = revision_size(events + taken, count - taken);

		if (taken + size > looked_at && prepared - taken > 2) {
			looked_at = VDI_MAX(looked_at, taken);
			looked_at +=
				look_ahead_locked(cache, made + looked_at,
						  VDI_MIN(prepared - looked_at, (size_t) VDI_PREPARE_MAX));
		}

		if (taken + size > prepared || apply_revision_locked(cache, made + taken, size) != VD_OK)
			break;
		for (size_t i = taken; i < taken + size; i++)
			if (made[i])
				made[kept++] = made[i];
		taken += size;
	}
	if (taken > 0)
		publish_locked(cache, events[taken - 1].revision);
	if (cache->history.evicted_revision && cache->store.retained_count)
		vdi_object_store_forget(&cache->store, vdi_history_floor(&cache->history));
	vdi_lock_release(&cache->lock);
	for (size_t rest = taken; rest < prepared; rest++)
		vdi_event_unref(made[rest]);
	applied->taken = taken;
	applied->made_count = kept;
	return taken == count ? VD_OK : VD_NOMEM;
}

void vdi_watch_cache_advance(struct vdi_watch_cache *cache, vd_rev revision)
{
	vdi_lock_acquire(&cache->lock);
	if (revision > vdi_watch_cache_revision(cache)) {
		publish_locked(cache, revision);
		if (atomic_load(&cache->matched_position) == cache->history.end)
			cache->matched_revision = revision;
	}
	vdi_lock_release(&cache->lock);
}

/* The mark and the snapshots change under one lock, so that no snapshot appears in between. */
void vdi_watch_cache_mark_consistent(struct vdi_watch_cache *cache, bool is_consistent)
{
	vdi_lock_acquire(&cache->lock);
	cache->is_inconsistent = !is_consistent;
	if (!is_consistent)
		vdi_object_store_forget(&cache->store, INT64_MAX);
	vdi_lock_release(&cache->lock);
}

void vdi_watch_cache_compact(struct vdi_watch_cache *cache, vd_rev revision, vd_rev kept)
{
	vdi_lock_acquire(&cache->lock);
	cache->compacted = VDI_MAX(cache->compacted, revision);
	(void) vdi_history_trim(&cache->history, kept);
	vdi_object_store_forget(&cache->store, cache->compacted);
	vdi_lock_release(&cache->lock);
}

bool vdi_watch_cache_can_compact(struct vdi_watch_cache *cache)
{
	bool has;

	vdi_lock_acquire(&cache->lock);
	has = cache->history.start != cache->history.end || cache->store.retained_count > 0;
	vdi_lock_release(&cache->lock);
	return has;
}

/* ---- Waiting for a revision ---- */

bool vdi_watch_cache_wait(struct vdi_watch_cache *cache, struct vdi_fresh_waiter *waiter)
{
	if (waiter->revision <= vdi_watch_cache_revision(cache))
		return true;
	waiter->since = vd_env_now(cache->env);
	waiter->next = NULL;
	vdi_lock_acquire(&cache->lock);
	if (waiter->revision <= vdi_watch_cache_revision(cache)) {
		vdi_lock_release(&cache->lock);
		return true;
	}
	if (cache->waiters_last)
		cache->waiters_last->next = waiter;
	else
		cache->waiters_first = waiter;
	cache->waiters_last = waiter;
	cache->waits++;
	cache->waiters_revision_min = VDI_MIN(cache->waiters_revision_min, waiter->revision);
	/* Under the lock: once it is released the waiter may be served, and the actor may be closed. */
	if (cache->actor)
		vd_actor_wake(cache->actor);
	vdi_lock_release(&cache->lock);
	return false;
}

static vd_status waiter_status_locked(const struct vdi_watch_cache  *cache,
				      const struct vdi_fresh_waiter *waiter, vd_mono now)
{
	if (waiter->revision <= vdi_watch_cache_revision(cache))
		return VD_OK;
	if (cache->is_stopped)
		return VD_CLOSED;
	return vd_mono_add(waiter->since, VDI_FRESH_WAIT).ns <= now.ns ? VD_TOO_LARGE_REVISION : VD_AGAIN;
}

/* Removes all waiters that have an answer, in their order of arrival. *ret_due: deadline of the first
 * remaining one. */
static struct vdi_fresh_waiter *take_answered(struct vdi_watch_cache *cache, vd_mono now, vd_mono *ret_due)
{
	struct vdi_fresh_waiter	 *answered = NULL, *waiter;
	struct vdi_fresh_waiter **answered_end = &answered, **place = &cache->waiters_first;
	vd_rev			  least = INT64_MAX;

	vdi_lock_acquire(&cache->lock);
	waiter = cache->waiters_first;
	*ret_due = waiter ? vd_mono_add(waiter->since, VDI_FRESH_WAIT) : VD_NEVER;
	/* No waiter's revision is reached and no deadline has passed: the first deadline is the earliest. */
	if (waiter && !cache->is_stopped && cache->waiters_revision_min > vdi_watch_cache_revision(cache) &&
	    ret_due->ns > now.ns)
		waiter = NULL;
	if (waiter) {
		cache->waiters_last = NULL;
		for (; waiter; waiter = waiter->next) {
			waiter->status = waiter_status_locked(cache, waiter, now);
			if (waiter->status != VD_AGAIN) {
				*answered_end = waiter;
				answered_end = &waiter->next;
			} else {
				*place = cache->waiters_last = waiter;
				place = &waiter->next;
				least = VDI_MIN(least, waiter->revision);
			}
		}
		*answered_end = *place = NULL;
		cache->waiters_revision_min = least;
		*ret_due = cache->waiters_first ? vd_mono_add(cache->waiters_first->since, VDI_FRESH_WAIT) :
						  VD_NEVER;
	}
	vdi_lock_release(&cache->lock);
	return answered;
}

vd_mono vdi_watch_cache_serve_waiters(struct vdi_watch_cache *cache)
{
	vd_mono			 now = vd_env_now(cache->env);
	struct vdi_fresh_waiter *waiter, *next;
	vd_mono			 due;

	/* Repeat, because the callbacks may wait again. */
	while ((waiter = take_answered(cache, now, &due)))
		for (; waiter; waiter = next) {
			next = waiter->next;
			waiter->done(waiter, waiter->status);
		}
	return due;
}

void vdi_watch_cache_stop(struct vdi_watch_cache *cache)
{
	vdi_lock_acquire(&cache->lock);
	cache->is_stopped = true;
	vdi_lock_release(&cache->lock);
	(void) vdi_watch_cache_serve_waiters(cache);
}

bool vdi_watch_cache_has_waiters(struct vdi_watch_cache *cache, uint64_t *ret_waits)
{
	bool has;

	vdi_lock_acquire(&cache->lock);
	*ret_waits = cache->waits;
	has = cache->waiters_first != NULL;
	vdi_lock_release(&cache->lock);
	return has;
}

vd_status vdi_too_large_revision(struct vd_error *reterr, vd_rev requested, vd_rev current)
{
	vd_error_set(reterr, VD_TOO_LARGE_REVISION, "Too large resource version: %lld, current: %lld",
		     (long long) requested, (long long) current);
	if (reterr) {
		reterr->requested = requested;
		reterr->current = current;
		reterr->retry_after_s = 1;
	}
	return VD_TOO_LARGE_REVISION;
}

/* ---- Exact revisions ---- */

static vd_status too_old(struct vd_error *reterr, vd_rev revision)
{
	vd_error_set(reterr, VD_EXPIRED, "too old resource version: %lld", (long long) revision);
	if (reterr)
		reterr->requested = revision;
	return VD_EXPIRED;
}

static const struct vdi_retained_snapshot *find_exact_locked(const struct vdi_watch_cache *cache,
							     vd_rev			   revision)
{
	for (size_t i = 0; i < cache->store.retained_count; i++)
		if (cache->store.retained[i].revision == revision)
			return &cache->store.retained[i];
	return NULL;
}

static bool has_revision_locked(const struct vdi_watch_cache *cache, vd_rev revision)
{
	if (cache->is_inconsistent || revision < cache->compacted)
		return false;
	return revision >= vdi_history_floor(&cache->history) || find_exact_locked(cache, revision) != NULL;
}

bool vdi_watch_cache_has_revision(struct vdi_watch_cache *cache, vd_rev revision)
{
	bool has;

	vdi_lock_acquire(&cache->lock);
	has = has_revision_locked(cache, revision);
	vdi_lock_release(&cache->lock);
	return has;
}

/* Wakes the actor for the first retained snapshot, because the actor may have set no timer for
 * compactions. */
static void retain_locked(struct vdi_watch_cache *cache, const struct vdi_btree_snapshot *snapshot,
			  vd_rev revision, uint64_t position)
{
	if (cache->store.retained_count == 0 && cache->actor)
		vd_actor_wake(cache->actor);
	vdi_object_store_retain(&cache->store, snapshot, revision, position);
}

void vdi_watch_cache_retain_newest_locked(struct vdi_watch_cache *cache)
{
	if (!cache->is_inconsistent)
		retain_locked(cache, vdi_btree_view(&cache->store.objects), vdi_watch_cache_revision(cache),
			      cache->history.end);
}

/* Undoes the events [to, from), newest first. */
static vd_status undo(struct vdi_watch_cache *cache, struct vdi_btree *objects, uint64_t from, uint64_t to)
{
	struct vdi_event *events[VDI_APPLY_BATCH];
	vd_status	  status = VD_OK;

	while (from > to && status == VD_OK) {
		size_t count = 0;

		vdi_lock_acquire(&cache->lock);
		for (; from > to && count < VDI_APPLY_BATCH && from - 1 >= cache->history.start; from--)
			events[count++] = vdi_event_ref(vdi_history_at(&cache->history, from - 1));
		vdi_lock_release(&cache->lock);
		if (count == 0)
			return VD_EXPIRED;
		for (size_t i = 0; i < count; i++) {
			if (status == VD_OK)
				status = vdi_object_undo(objects, events[i]);
			vdi_event_unref(events[i]);
		}
	}
	return status;
}

vd_status vdi_watch_cache_snapshot_at(struct vdi_watch_cache *cache, vd_rev revision,
				      struct vdi_btree_snapshot *ret_snapshot, struct vd_error *reterr)
{
	const struct vdi_retained_snapshot *nearest;
	struct vdi_btree		    objects;
	uint64_t			    from;
	uint64_t			    to;
	vd_status			    status;

	vdi_btree_init(&objects, &vdi_object_btree_ops);
	vdi_lock_acquire(&cache->lock);
	if (!has_revision_locked(cache, revision)) {
		vdi_lock_release(&cache->lock);
		return too_old(reterr, revision);
	}
	nearest = find_exact_locked(cache, revision);
	if (nearest) {
		vdi_btree_snapshot_ref(&nearest->snapshot, ret_snapshot);
		vdi_lock_release(&cache->lock);
		return VD_OK;
	}
	to = vdi_history_after(&cache->history, revision);
	nearest = vdi_object_store_nearest(&cache->store, to);
	from = nearest ? nearest->position : cache->history.end;
	if (nearest)
		vdi_btree_snapshot_ref(&nearest->snapshot, &objects.live);
	else
		vdi_btree_snapshot(&cache->store.objects, &objects.live);
	vdi_lock_release(&cache->lock);
	status = undo(cache, &objects, from, to);
	if (status != VD_OK) {
		vdi_btree_fini(&objects);
		return status == VD_EXPIRED ? too_old(reterr, revision) :
					      vd_error_set(reterr, status, "out of memory for a snapshot");
	}
	vdi_lock_acquire(&cache->lock);
	/* Not across a new generation, where the history starts after these positions. */
	if (to >= cache->history.start && revision >= vdi_history_floor(&cache->history) &&
	    has_revision_locked(cache, revision))
		retain_locked(cache, &objects.live, revision, to);
	vdi_lock_release(&cache->lock);
	*ret_snapshot = objects.live;
	return VD_OK;
}
