/* A batch borrows events from chunks of the history. The watch holds those chunks until the next call, so no
 * reference per event is needed. ready() is called under the lock of watchable, so after
 * vdi_watchable_close_watch it is not called any more. */
#include "watchable.h"

#include "actor_threads.h"
#include "mvcc_store.h"
#include "preempt.h"

static struct vdi_watch *watch_of(struct vd_store_watch *watch)
{
	return (struct vdi_watch *) watch;
}

void vdi_watchable_init(struct vdi_watchable *watchable)
{
	memset(watchable, 0, sizeof *watchable);
	vdi_lock_init(&watchable->lock, VDI_LOCK_WATCHABLE);
	LIST_INIT(&watchable->all);
	LIST_INIT(&watchable->waiting);
}

/* ---- Waiting and waking, under the lock ---- */

static void park_locked(struct vdi_watchable *watchable, struct vdi_watch *watch, bool armed)
{
	watch->parked = true;
	watch->armed = armed;
	watch->position_index = UINT64_MAX;
	LIST_INSERT_HEAD(&watch->group->parked, watch, parked_node);
	watchable->parked_count++;
}

static void unpark_locked(struct vdi_watchable *watchable, struct vdi_watch *watch)
{
	bool armed = watch->armed;

	if (watch->parked) {
		LIST_REMOVE(watch, parked_node);
		watchable->parked_count--;
	}
	watch->parked = false;
	watch->armed = false;
	if (armed)
		watch->ready(watch->ready_arg);
}

static void wait_for_start_locked(struct vdi_watchable *watchable, struct vdi_watch *watch)
{
	if (!watch->is_waiting)
		LIST_INSERT_HEAD(&watchable->waiting, watch, waiting_node);
	watch->is_waiting = true;
}

static void stop_waiting_locked(struct vdi_watch *watch)
{
	if (watch->is_waiting)
		LIST_REMOVE(watch, waiting_node);
	watch->is_waiting = false;
}

/* Requests a progress batch, which the next call of next returns. */
static void want_progress_locked(struct vdi_watchable *watchable, struct vdi_watch *watch)
{
	watch->progress_wanted = true;
	if (!watch->parked)
		return;
	if (watch->start_revision > watchable->notified_revision) {
		wait_for_start_locked(watchable, watch);
		return;
	}
	/* No event up to notified_revision matched, or the watch would not be parked. */
	watch->position = VDI_MAX(watch->position, watchable->notified_revision + 1);
	unpark_locked(watchable, watch);
}

/* ---- The writer's side ---- */

struct wake {
	struct vdi_watchable *watchable;
	vd_rev		      revision;
	uint64_t	      index;
};

static void wake_group(struct vdi_watcher_group *group, void *arg)
{
	const struct wake *wake = arg;
	struct vdi_watch  *next;

	for (struct vdi_watch *watch = LIST_FIRST(&group->parked); watch; watch = next) {
		next = LIST_NEXT(watch, parked_node);
		if (watch->position > wake->revision)
			continue; /* already seen, or before its start revision */
		watch->position = wake->revision;
		watch->position_index = wake->index;
		unpark_locked(wake->watchable, watch);
	}
}

static void release_waiting_locked(struct vdi_watchable *watchable)
{
	struct vdi_watch *next;

	for (struct vdi_watch *watch = LIST_FIRST(&watchable->waiting); watch; watch = next) {
		next = LIST_NEXT(watch, waiting_node);
		if (watch->start_revision > watchable->notified_revision)
			continue;
		stop_waiting_locked(watch);
		if (watch->progress_wanted)
			want_progress_locked(watchable, watch);
	}
}

void vdi_watchable_publish(struct vdi_mvcc *mvcc, struct vdi_mvcc_state *state,
			   const struct vd_store_event *events, size_t count)
{
	struct vdi_watchable *watchable = &mvcc->watchable;
	uint64_t	      first_index = state->log_end - count;

	/* Woken owners call next at once, which takes the lock: delay their wakes until it is released. */
	vdi_actor_calls_hold();
	vdi_lock_acquire(&watchable->lock);
	vdi_mvcc_publish(mvcc, state);
	for (size_t i = 0; i < count && watchable->parked_count; i++) {
		struct wake wake = { watchable, events[i].kv->mod_rev, first_index + i };

		vdi_watcher_index_match(&watchable->index, vd_kv_key(events[i].kv), events[i].is_delete,
					wake_group, &wake);
	}
	watchable->notified_revision = state->revision;
	release_waiting_locked(watchable);
	vdi_lock_release(&watchable->lock);
	vdi_actor_calls_release();
}

void vdi_watchable_tick(struct vdi_watchable *watchable)
{
	struct vdi_watch *watch;

	vdi_lock_acquire(&watchable->lock);
	LIST_FOREACH(watch, &watchable->all, all_node)
	{
		if (!watch->progress || watch->end != VD_OK)
			continue;
		if (!watch->is_active && watch->start_revision <= watchable->notified_revision)
			want_progress_locked(watchable, watch);
		watch->is_active = false;
	}
	vdi_lock_release(&watchable->lock);
}

bool vdi_watchable_wants_ticks(struct vdi_watchable *watchable)
{
	bool wants;

	vdi_lock_acquire(&watchable->lock);
	wants = watchable->progress_count > 0;
	vdi_lock_release(&watchable->lock);
	return wants;
}

void vdi_watchable_counts(struct vdi_watchable *watchable, size_t *ret_watchers, size_t *ret_parked)
{
	vdi_lock_acquire(&watchable->lock);
	*ret_watchers = watchable->watcher_count;
	*ret_parked = watchable->parked_count;
	vdi_lock_release(&watchable->lock);
}

void vdi_watchable_close(struct vdi_watchable *watchable)
{
	struct vdi_watch *watch;

	vdi_lock_acquire(&watchable->lock);
	watchable->is_closed = true;
	LIST_FOREACH(watch, &watchable->all, all_node)
	{
		if (watch->end == VD_OK)
			watch->end = VD_CLOSED;
		stop_waiting_locked(watch);
		unpark_locked(watchable, watch);
	}
	vdi_lock_release(&watchable->lock);
}

void vdi_watchable_fini(struct vdi_watchable *watchable)
{
	struct vdi_watch *watch;

	vdi_lock_acquire(&watchable->lock);
	LIST_FOREACH(watch, &watchable->all, all_node)
	{
		vdi_watcher_index_leave(&watchable->index, watch->group);
		watch->group = NULL;
	}
	vdi_watcher_index_fini(&watchable->index);
	vdi_lock_release(&watchable->lock);
}

/* ---- Opening and closing ---- */

static vd_status insert_watch(struct vdi_mvcc *mvcc, struct vdi_watch *watch,
			      const struct vd_store_watch_request *request)
{
	struct vdi_watchable *watchable = &mvcc->watchable;
	struct vdi_key_range  range = vdi_key_range_from_etcd(request->key, request->range_end);
	vd_status	      status = VD_CLOSED;
	vd_rev		      current;

	vdi_lock_acquire(&watchable->lock);
	if (!watchable->is_closed)
		status = vdi_watcher_index_join(&watchable->index, &range, request->no_put,
						request->no_delete, &watch->group);
	if (status == VD_OK) {
		current = atomic_load_explicit(&mvcc->published, memory_order_acquire);
		LIST_INSERT_HEAD(&watchable->all, watch, all_node);
		watchable->watcher_count++;
		watchable->progress_count += watch->progress;
		watch->base.opened = current;
		watch->position = watch->start_revision ? watch->start_revision : current + 1;
		if (watch->position > current)
			/* It starts at the next write, as etcd's synced watchers. */
			park_locked(watchable, watch, false);
	}
	vdi_lock_release(&watchable->lock);
	return status;
}

vd_status vdi_watchable_open(struct vd_store *store, const struct vd_store_watch_request *request,
			     struct vd_store_watch **ret_watch, struct vd_error *reterr)
{
	struct vdi_mvcc	 *mvcc = vdi_mvcc_of(store);
	struct vdi_watch *watch;
	vd_status	  status;

	if (!vdi_mvcc_enter(mvcc))
		return vd_error_set(reterr, VD_CLOSED, "the store is closed");
	watch = VDI_NEW(struct vdi_watch);
	if (watch == NULL) {
		vdi_mvcc_leave(mvcc);
		return vd_error_set(reterr, VD_NOMEM, "out of memory for a watch");
	}
	watch->base.store = store;
	watch->start_revision = request->start_revision;
	watch->ready = request->ready;
	watch->ready_arg = request->ready_arg;
	watch->previous = request->previous;
	watch->progress = request->progress;
	watch->position_index = UINT64_MAX;
	status = insert_watch(mvcc, watch, request);
	if (status == VD_OK) {
		vdi_mvcc_ref(mvcc);
		atomic_fetch_add(&mvcc->usage.watchers, 1);
		*ret_watch = &watch->base;
		if (watch->progress)
			vdi_writer_wake(&mvcc->writer); /* this may be the first watch that wants ticks */
	} else {
		vdi_free(watch);
		(void) vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	}
	vdi_mvcc_leave(mvcc);
	return status;
}

static void drop_batch(struct vdi_watch *watch)
{
	for (size_t i = 0; i < watch->chunk_count; i++)
		vdi_mvcc_log_chunk_unref(watch->chunks[i]);
	watch->chunk_count = 0;
	watch->event_count = 0;
}

void vdi_watchable_close_watch(struct vd_store_watch *base)
{
	struct vdi_watch     *watch = watch_of(base);
	struct vdi_mvcc	     *mvcc = vdi_mvcc_of(base->store);
	struct vdi_watchable *watchable = &mvcc->watchable;

	vdi_lock_acquire(&watchable->lock);
	watch->armed = false;
	unpark_locked(watchable, watch);
	stop_waiting_locked(watch);
	LIST_REMOVE(watch, all_node);
	watchable->watcher_count--;
	watchable->progress_count -= watch->progress;
	if (watch->group)
		vdi_watcher_index_leave(&watchable->index, watch->group);
	vdi_lock_release(&watchable->lock);
	drop_batch(watch);
	vdi_mvcc_log_cursor_fini(&watch->cursor);
	vdi_free(watch->events);
	vdi_free(watch->chunks);
	vdi_free(watch);
	atomic_fetch_sub(&mvcc->usage.watchers, 1);
	vdi_mvcc_unref(mvcc);
}

/* ---- Next ---- */

static vd_status end_watch(struct vdi_mvcc *mvcc, struct vdi_watch *watch, vd_status reason)
{
	vdi_lock_acquire(&mvcc->watchable.lock);
	if (watch->end == VD_OK)
		watch->end = reason;
	reason = watch->end;
	vdi_lock_release(&mvcc->watchable.lock);
	vdi_mvcc_log_cursor_fini(&watch->cursor);
	drop_batch(watch);
	return reason;
}

static vd_status explain_end(struct vdi_mvcc *mvcc, const struct vdi_watch *watch, vd_status status,
			     struct vd_error *reterr)
{
	if (status == VD_OK || status == VD_AGAIN)
		return status;
	if (status == VD_EXPIRED)
		(void) vd_error_set(reterr, status, "required revision %lld has been compacted",
				    (long long) watch->position);
	else
		(void) vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	if (reterr) {
		reterr->requested = watch->position;
		reterr->compacted = atomic_load_explicit(&mvcc->compacted, memory_order_relaxed);
		reterr->current = atomic_load_explicit(&mvcc->published, memory_order_relaxed);
	}
	return status;
}

/* VD_OK: continue the walk. */
static vd_status begin_next(struct vdi_watchable *watchable, struct vdi_watch *watch)
{
	vd_status status = VD_OK;

	vdi_lock_acquire(&watchable->lock);
	if (watch->event_count)
		watch->is_active = true;
	if (watch->end != VD_OK) {
		status = watch->end;
	} else if (watch->parked) {
		watch->armed = true;
		status = VD_AGAIN;
	}
	vdi_lock_release(&watchable->lock);
	return status;
}

/* Returns the key's record before the transaction at this revision, even if the transaction wrote the key
 * several times, or deleted and recreated it. Returns NULL if the transaction created the key, or if the
 * revision before is compacted, although the history has the record: etcd reads the key at that revision and
 * finds nothing. All events of a revision are in one chunk. */
static struct vd_kv *previous_of(const struct vdi_watch *watch, const struct vd_store_event *event,
				 vd_rev compacted)
{
	struct vd_kv *previous = event->previous;
	vd_rev	      revision = event->kv->mod_rev;

	if (revision <= compacted || (!event->is_delete && event->kv->create_rev == revision))
		return NULL;
	if (previous == NULL || previous->mod_rev != revision)
		return previous;
	for (const struct vd_store_event *earlier = event;
	     earlier-- > watch->cursor.chunk->events && earlier->kv->mod_rev == revision;)
		if (vd_bytes_compare(vd_kv_key(earlier->kv), vd_kv_key(event->kv)) == 0)
			previous = earlier->previous;
	return previous;
}

static vd_status take_event(struct vdi_watch *watch, const struct vd_store_event *event, vd_rev compacted)
{
	struct vd_store_event *taken;

	if (watch->chunk_count == 0 || watch->chunks[watch->chunk_count - 1] != watch->cursor.chunk) {
		if (!vdi_grow((void **) &watch->chunks, &watch->chunk_capacity, watch->chunk_count + 1,
			      sizeof(void *)))
			return VD_NOMEM;
		watch->chunks[watch->chunk_count++] = vdi_mvcc_log_chunk_ref(watch->cursor.chunk);
	}
	if (!vdi_grow((void **) &watch->events, &watch->event_capacity, watch->event_count + 1,
		      sizeof *taken))
		return VD_NOMEM;
	taken = &watch->events[watch->event_count++];
	*taken = *event;
	taken->previous = watch->previous ? previous_of(watch, event, compacted) : NULL;
	return VD_OK;
}

static bool wants(const struct vdi_watch *watch, const struct vd_store_event *event)
{
	return !(event->is_delete ? watch->group->no_delete : watch->group->no_put) &&
	       vdi_key_range_contains(&watch->group->range, vd_kv_key(event->kv));
}

static vd_status place_cursor(struct vdi_mvcc_log *log, struct vdi_watch *watch)
{
	if (watch->cursor.chunk)
		return VD_OK;
	if (watch->position_index != UINT64_MAX)
		return vdi_mvcc_log_seek_index(log, watch->position_index, &watch->cursor);
	return vdi_mvcc_log_seek(log, watch->position, &watch->cursor);
}

/* Returns false if no event of the run can match: most runs of a long history are of one resource, and most
 * watches of another one. */
static bool may_want_some(const struct vdi_watch *watch)
{
	return vdi_key_range_has_prefix(&watch->group->range, vdi_mvcc_log_run_prefix(&watch->cursor));
}

/* Walks whole revisions up to target. VD_OK: there is a batch, or the budget is used up; VD_AGAIN: everything
 * up to target is seen. */
static vd_status walk(struct vdi_mvcc_log *log, struct vdi_watch *watch, vd_rev target, vd_rev compacted,
		      size_t event_count_max, size_t *budget)
{
	const struct vd_store_event *events;
	uint32_t		     count;
	vd_rev			     revision = 0; /* revision of the current event */

	if (watch->position > target)
		return VD_AGAIN;
	VDI_TRY(place_cursor(log, watch));
	for (;;) {
		VDI_TRY(vdi_mvcc_log_run(log, &watch->cursor, &events, &count));
		if (!may_want_some(watch)) {
			revision = events[count - 1].kv->mod_rev;
			watch->position = revision;
			watch->cursor.position += count;
			continue;
		}
		for (uint32_t i = 0; i < count; i++, watch->cursor.position++) {
			const struct vd_store_event *event = &events[i];

			if (event->kv->mod_rev != revision) {
				revision = event->kv->mod_rev;
				watch->position = revision;
				if (revision > target)
					return VD_AGAIN;
				if ((watch->event_count && watch->event_count >= event_count_max) ||
				    *budget == 0)
					return VD_OK;
			}
			if (*budget)
				--*budget;
			if (wants(watch, event))
				VDI_TRY(take_event(watch, event, compacted));
		}
	}
}

/* VD_AGAIN: parked. VD_OK with *ret_progress: a progress batch at target. VD_OK without: continue the
 * walk. */
static vd_status settle(struct vdi_mvcc *mvcc, struct vdi_watch *watch, vd_rev target, bool *ret_progress)
{
	struct vdi_watchable *watchable = &mvcc->watchable;
	vd_status	      status = VD_OK;

	*ret_progress = false;
	vdi_lock_acquire(&watchable->lock);
	if (watch->end != VD_OK) {
		status = watch->end;
	} else if (atomic_load_explicit(&mvcc->published, memory_order_acquire) <= target) {
		watch->position = VDI_MAX(watch->position, target + 1);
		if (watch->progress_wanted && target >= watch->start_revision) {
			watch->progress_wanted = false;
			*ret_progress = true;
		} else {
			if (watch->progress_wanted)
				wait_for_start_locked(watchable, watch);
			park_locked(watchable, watch, true);
			status = VD_AGAIN;
		}
	}
	vdi_lock_release(&watchable->lock);
	return status;
}

static vd_status next_batch(struct vdi_mvcc *mvcc, struct vdi_watch *watch, size_t event_count_max,
			    struct vd_store_batch *ret_batch)
{
	size_t	  budget = VDI_WATCH_SCAN_MAX;
	bool	  progress = false;
	vd_rev	  target, compacted;
	vd_status status;

	do {
		/* Read these before the log: if compaction removes events after that, the log reports it. */
		target = atomic_load_explicit(&mvcc->published, memory_order_acquire);
		compacted = atomic_load_explicit(&mvcc->compacted, memory_order_acquire);
		vdi_preempt_point(); /* the writer may publish before settle takes the lock */
		if (watch->position < compacted)
			return end_watch(mvcc, watch, VD_EXPIRED);
		status = walk(&mvcc->log, watch, target, compacted, event_count_max, &budget);
		if (status != VD_OK && status != VD_AGAIN)
			return end_watch(mvcc, watch, status);
		if (watch->event_count) {
			if (status == VD_AGAIN)
				watch->position = VDI_MAX(watch->position, target + 1);
			vdi_metric_add(mvcc->metrics.events, watch->event_count);
			*ret_batch =
				(struct vd_store_batch) { watch->events[watch->event_count - 1].kv->mod_rev,
							  watch->events, watch->event_count };
			return VD_OK;
		}
		if (status == VD_OK) {
			/* A long walk without a match: yield. */
			watch->ready(watch->ready_arg);
			return VD_AGAIN;
		}
		/* A parked watch must not keep history alive. */
		vdi_mvcc_log_cursor_fini(&watch->cursor);
		watch->position_index = UINT64_MAX;
		status = settle(mvcc, watch, target, &progress);
	} while (status == VD_OK && !progress);
	if (progress)
		*ret_batch = (struct vd_store_batch) { target, NULL, 0 };
	return status;
}

vd_status vdi_watchable_next(struct vd_store_watch *base, size_t event_count_max,
			     struct vd_store_batch *ret_batch, struct vd_error *reterr)
{
	struct vdi_watch *watch = watch_of(base);
	struct vdi_mvcc	 *mvcc = vdi_mvcc_of(base->store);
	vd_status	  status = begin_next(&mvcc->watchable, watch);

	drop_batch(watch);
	if (status == VD_OK) {
		if (vdi_mvcc_enter(mvcc)) {
			status = next_batch(mvcc, watch, event_count_max, ret_batch);
			vdi_mvcc_leave(mvcc);
		} else {
			status = end_watch(mvcc, watch, VD_CLOSED);
		}
	}
	return explain_end(mvcc, watch, status, reterr);
}

vd_status vdi_watchable_progress(struct vd_store_watch *base)
{
	struct vdi_watch     *watch = watch_of(base);
	struct vdi_watchable *watchable = &vdi_mvcc_of(base->store)->watchable;
	vd_status	      status;

	vdi_lock_acquire(&watchable->lock);
	status = watch->end;
	if (status == VD_OK)
		want_progress_locked(watchable, watch);
	vdi_lock_release(&watchable->lock);
	return status;
}
