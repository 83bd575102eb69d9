/* Events are matched first, without a lock. Then the matches of one revision are committed under the watch
 * cache's lock, so that a group's ring, its sums and the matched position agree for readers, and no reader
 * stops in the middle of a revision. The match buffer always has room for the matches of one event, because
 * it grows when a group is added, where a failure can still be reported. A revision of several events grows
 * it further; if memory is short, or the revision is very large, the revision is committed in parts. */
#include "dispatch.h"

#include "actor_threads.h"
#include "cache_watcher.h"
#include "caching_object.h"

#define FRAMES_KEPT VD_SECONDS(2)
#define SUBSCRIPTIONS_TOGETHER 64
#define MATCHES_TOGETHER 65536 /* a revision with more matches is committed in parts */

static bool reserve_matches(struct vd_cacher *cacher, size_t count)
{
	void *matches = cacher->matches.matches;

	if (!vdi_grow(&matches, &cacher->matches.capacity, count, sizeof *cacher->matches.matches))
		return false;
	cacher->matches.matches = matches;
	return true;
}

/* ---- Events ---- */

struct match_search {
	struct vd_cacher       *cacher;
	struct vdi_event       *event;
	const struct vd_object *object; /* the state after the event; for a deletion, the state before it */
	uint64_t		position;
	/* Watchers without a name whose selectors keep or kept the object, and those of them whose shard
	 * selector rejects it. */
	size_t matched;
	size_t matched_other_shards;
	/* Watchers of the object's name whose selectors reject it, and those of them whose shard selector
	 * rejects it. */
	size_t filtered;
	size_t filtered_other_shards;
};

/* Adds the group's watchers to the counts that count_filtered needs besides watch_scopes. Watchers whose
 * scope does not include the object do not count: index keys are hashes, and the previous state can be in
 * another namespace. */
static void count_watchers(struct match_search *search, const struct vdi_watch_group *group, bool matches)
{
	const struct vdi_predicate *predicate = vdi_watch_group_predicate(group);
	bool			    has_name = predicate->name_size > 0, is_other_shard;
	size_t			    watchers = 0;

	if (predicate->is_empty || matches == has_name ||
	    !vdi_predicate_has_in_scope(predicate, search->object))
		return;
	for (const struct vdi_subscription *subscription = &group->subscription; subscription;
	     subscription = subscription->group_next)
		watchers += subscription->watcher_count;
	is_other_shard = !vdi_shard_selector_matches(vdi_predicate_shards(predicate), search->object);
	*(has_name ? &search->filtered : &search->matched) += watchers;
	if (is_other_shard)
		*(has_name ? &search->filtered_other_shards : &search->matched_other_shards) += watchers;
}

static void note_candidate(void *arg, struct vdi_watch_group *group)
{
	struct match_search	*search = arg;
	struct vdi_match_buffer *buffer = &search->cacher->matches;
	enum vd_watch_type	 type;
	bool matches = vdi_predicate_transition(vdi_watch_group_predicate(group), search->event->old_object,
						search->event->object, &type);

	if (matches)
		buffer->matches[buffer->count++] =
			(struct vdi_group_match) { group, search->position * 4 + type };
	count_watchers(search, group, matches);
}

/* Counts the event once for each watch that has it in its scope but rejects it with its selectors, and
 * separately with its shard selector alone. */
static void count_filtered(const struct match_search *search)
{
	const struct vdi_cacher_metrics *metrics = &search->cacher->metrics;
	size_t				 watchers, other_shards;

	vdi_watch_scopes_count(&search->cacher->watch_scopes, search->object, &watchers, &other_shards);
	watchers += search->filtered - search->matched;
	other_shards += search->filtered_other_shards - search->matched_other_shards;
	if (watchers)
		vdi_metric_add(metrics->selector_filtered, watchers);
	if (other_shards)
		vdi_metric_add(metrics->shard_filtered, other_shards);
}

static void mark_subscriptions(struct vd_cacher *cacher, struct vdi_watch_group *group, uint64_t position)
{
	for (struct vdi_subscription *subscription = &group->subscription; subscription;
	     subscription = subscription->group_next)
		if (!subscription->in_batch && subscription->watcher_count) {
			subscription->in_batch = true;
			subscription->batch_from = position;
			subscription->batch_next = cacher->batch_subscriptions;
			cacher->batch_subscriptions = subscription;
		}
}

/* Makes all matches up to position visible to readers. revision: the last revision that is matched
 * completely; 0: unchanged. */
static void commit_matches(struct vd_cacher *cacher, const struct vdi_applied *applied, uint64_t position,
			   vd_rev revision)
{
	struct vdi_match_buffer *buffer = &cacher->matches;

	vdi_lock_acquire(&cacher->watch_cache.lock);
	for (size_t i = 0; i < buffer->count; i++) {
		struct vdi_group_match *match = &buffer->matches[i];

		vdi_watch_group_append_locked(
			match->group, match->entry / 4, match->entry % 4,
			applied->made[match->entry / 4 - applied->position]->size_bytes);
	}
	atomic_store_explicit(&cacher->watch_cache.matched_position, position, memory_order_release);
	/* Set for each revision: set after the batch, a bookmark would be older than the events before it. */
	if (revision)
		cacher->watch_cache.matched_revision = revision;
	vdi_lock_release(&cacher->watch_cache.lock);
	for (size_t i = 0; i < buffer->count; i++)
		mark_subscriptions(cacher, buffer->matches[i].group, buffer->matches[i].entry / 4);
	buffer->count = 0;
}

static void dispatch_event(struct vd_cacher *cacher, const struct vdi_applied *applied, size_t index)
{
	struct vdi_event	*event = applied->made[index];
	struct vdi_match_buffer *buffer = &cacher->matches;
	struct match_search	 search = { .cacher = cacher,
					    .event = event,
					    .object = event->object ? event->object : event->old_object,
					    .position = applied->position + index };
	bool			 is_last =
		index + 1 == applied->made_count || applied->made[index + 1]->revision != event->revision;

	vdi_watch_index_candidates(&cacher->watcher_index, event, ++cacher->visit, note_candidate, &search);
	count_filtered(&search);
	if (is_last || buffer->count > MATCHES_TOGETHER ||
	    !reserve_matches(cacher, buffer->count + cacher->watcher_index.group_count + 1))
		commit_matches(cacher, applied, search.position + 1, is_last ? event->revision : 0);
}

/* Marks the subscriptions of the batch dirty. Wake-ups are held back until several subscriptions are marked
 * and the locks of their delivery workers are free, so that woken threads do not block. */
static void wake_subscriptions(struct vd_cacher *cacher)
{
	vdi_actor_calls_hold();
	for (size_t count = 1; cacher->batch_subscriptions; count++) {
		struct vdi_subscription *subscription = cacher->batch_subscriptions;

		cacher->batch_subscriptions = subscription->batch_next;
		subscription->in_batch = false;
		vdi_delivery_worker_post_dirty(subscription, subscription->batch_from);
		if (count % SUBSCRIPTIONS_TOGETHER == 0) {
			vdi_actor_calls_release();
			vdi_actor_calls_hold();
		}
	}
	vdi_actor_calls_release();
}

/* Keeps the event as recent. Takes over the reference. */
static void keep_recent(struct vd_cacher *cacher, struct vdi_event *event)
{
	struct vdi_recent_events *recent = &cacher->recent;

	while (recent->count == VDI_RECENT_EVENTS ||
	       (recent->count && recent->bytes + event->size_bytes > VDI_RECENT_BYTES)) {
		struct vdi_event *oldest = recent->events[recent->start];

		vdi_frames_retire(oldest);
		recent->bytes -= oldest->size_bytes;
		vdi_event_unref(oldest);
		recent->start = (recent->start + 1) % VDI_RECENT_EVENTS;
		recent->count--;
	}
	recent->events[(recent->start + recent->count++) % VDI_RECENT_EVENTS] = event;
	recent->bytes += event->size_bytes;
}

void vdi_dispatch_events(struct vd_cacher *cacher, struct vdi_applied *applied)
{
	struct vdi_watch_cache *cache = &cacher->watch_cache;

	for (size_t i = 0; i < applied->made_count; i++)
		dispatch_event(cacher, applied, i);
	for (size_t i = 0; i < applied->made_count; i++)
		keep_recent(cacher, applied->made[i]);
	vdi_lock_acquire(&cache->lock);
	cache->matched_revision = vdi_watch_cache_revision(cache);
	vdi_lock_release(&cache->lock);
	if (applied->made_count) {
		cacher->recent.last = vd_env_now(cacher->env);
		vdi_metric_add(cacher->metrics.events_dispatched, applied->made_count);
	}
	wake_subscriptions(cacher);
}

vd_mono vdi_dispatch_retire_frames(struct vd_cacher *cacher)
{
	struct vdi_recent_events *recent = &cacher->recent;
	vd_mono			  due = vd_mono_add(recent->last, FRAMES_KEPT);

	if (recent->count == 0)
		return VD_NEVER;
	if (vd_env_now(cacher->env).ns < due.ns)
		return due;
	vdi_dispatch_fini(cacher);
	return VD_NEVER;
}

void vdi_dispatch_fini(struct vd_cacher *cacher)
{
	struct vdi_recent_events *recent = &cacher->recent;

	while (recent->count) {
		struct vdi_event *oldest = recent->events[recent->start];

		vdi_frames_retire(oldest);
		vdi_event_unref(oldest);
		recent->start = (recent->start + 1) % VDI_RECENT_EVENTS;
		recent->count--;
	}
	recent->bytes = 0;
}

/* ---- Registration ---- */

void vdi_dispatch_enqueue(struct vd_cacher *cacher, struct vd_watcher *watcher)
{
	vdi_lock_acquire(&cacher->watchers.lock);
	watcher->queue_next = NULL;
	if (cacher->watchers.opening_last)
		cacher->watchers.opening_last->queue_next = watcher;
	else
		cacher->watchers.opening_first = watcher;
	cacher->watchers.opening_last = watcher;
	vd_actor_wake(cacher->actor);
	vdi_lock_release(&cacher->watchers.lock);
}

static vd_status get_group(struct vd_cacher *cacher, struct vdi_predicate *predicate,
			   struct vdi_watch_group **ret_group)
{
	struct vdi_watch_group *group = vdi_watch_index_find(&cacher->watcher_index, predicate);
	vd_status		status;

	if (group == NULL) {
		if (!reserve_matches(cacher, cacher->watcher_index.group_count + 1))
			return VD_NOMEM;
		group = vdi_watch_group_new(predicate, atomic_load(&cacher->watch_cache.matched_position));
		status = vdi_watch_index_add(&cacher->watcher_index, group);
		if (status != VD_OK) {
			vdi_watch_group_unref(group);
			return status;
		}
	}
	*ret_group = group;
	return VD_OK;
}

static void drop_group_if_unused(struct vd_cacher *cacher, struct vdi_watch_group *group)
{
	if (group->subscription.watcher_count == 0 && group->subscription.group_next == NULL)
		vdi_watch_index_remove(&cacher->watcher_index, group);
}

static vd_status get_subscription(struct vd_cacher *cacher, struct vdi_watch_group *group,
				  struct vdi_delivery_worker *worker,
				  struct vdi_subscription   **ret_subscription)
{
	struct vdi_subscription *subscription = &group->subscription;

	while (subscription && (subscription->watcher_count == 0 || subscription->worker != worker))
		subscription = subscription->group_next;
	if (subscription == NULL) {
		VDI_TRY(vdi_subscription_new(group, worker, &subscription));
		subscription->position = atomic_load(&cacher->watch_cache.matched_position);
		subscription->taken_events = group->matched_events;
		subscription->taken_bytes = group->matched_bytes;
		if (subscription != &group->subscription) {
			subscription->group_next = group->subscription.group_next;
			group->subscription.group_next = subscription;
		}
	}
	*ret_subscription = subscription;
	return VD_OK;
}

static void drop_subscription_if_unused(struct vd_cacher *cacher, struct vdi_subscription *subscription)
{
	struct vdi_watch_group	 *group = subscription->group;
	struct vdi_subscription **place = &group->subscription.group_next;

	if (subscription->watcher_count)
		return;
	if (subscription != &group->subscription) {
		while (*place != subscription)
			place = &(*place)->group_next;
		*place = subscription->group_next;
	}
	drop_group_if_unused(cacher, group);
	vdi_subscription_unref(subscription);
}

/* Returns true if the watch begins with the initial state. */
static bool wants_state(const struct vdi_watch_start *start)
{
	if (start->send_initial_events != VD_UNSET)
		return start->send_initial_events == VD_TRUE;
	return start->revision == VD_REVISION_UNSET || start->revision == VD_REVISION_ANY;
}

static vd_status begin_with_state(struct vd_cacher *cacher, struct vd_watcher *watcher,
				  const struct vdi_watch_start *start, struct vdi_initial **ret_initial)
{
	struct vdi_predicate *predicate = start->predicate;
	struct vdi_initial   *initial = VDI_NEW(struct vdi_initial);
	char		      buffer[VDI_STORAGE_KEY_MAX];
	struct vd_bytes	      scope;
	bool		      single;

	if (initial == NULL)
		return VD_NOMEM;
	if (!vdi_scope_key(vdi_cacher_prefix(cacher), cacher->options.cluster_scoped,
			   vdi_predicate_namespace(predicate), vdi_predicate_name(predicate), buffer, &scope,
			   &single))
		scope = (struct vd_bytes) { "\0", 1 };
	initial->predicate = vdi_watch_group_predicate(watcher->subscription->group);
	initial->end_bookmark = start->send_initial_events == VD_TRUE && watcher->allow_bookmarks;
	vdi_lock_acquire(&cacher->watch_cache.lock);
	initial->revision = vdi_watch_cache_revision(&cacher->watch_cache);
	vdi_candidates_newest_locked(&cacher->watch_cache, predicate, scope, single, VD_BYTES_NONE,
				     &initial->candidates);
	vdi_lock_release(&cacher->watch_cache.lock);
	vdi_metric_add(cacher->metrics.init_events,
		       initial->candidates.count); /* objects read, before filtering */
	*ret_initial = initial;
	return VD_OK;
}

/* Starts the watch after revision, which may be in the future: then earlier events are skipped. */
static vd_status begin_after(struct vd_cacher *cacher, struct vd_watcher *watcher, vd_rev revision,
			     struct vd_error *reterr)
{
	struct vdi_watch_cache *cache = &cacher->watch_cache;
	vd_status		status;

	vdi_lock_acquire(&cache->lock);
	status = vdi_history_check(&cache->history, revision, reterr);
	if (status == VD_OK) {
		watcher->position = vdi_history_after(&cache->history, revision);
		vdi_metric_add(cacher->metrics.init_events, cache->history.end - watcher->position);
		if (revision > vdi_watch_cache_revision(cache))
			watcher->from_revision = revision;
	}
	vdi_lock_release(&cache->lock);
	return status;
}

static vd_status begin(struct vd_cacher *cacher, struct vd_watcher *watcher,
		       const struct vdi_watch_start *start, struct vdi_initial **ret_initial,
		       struct vd_error *reterr)
{
	struct vdi_watch_group *group = watcher->subscription->group;
	vd_rev revision = start->revision == VD_REVISION_UNSET ? start->required : start->revision;

	/* Only this actor changes these. */
	watcher->position = atomic_load(&cacher->watch_cache.matched_position);
	watcher->counted_from = watcher->position;
	watcher->base_events = group->matched_events;
	watcher->base_bytes = group->matched_bytes;
	if (wants_state(start))
		return begin_with_state(cacher, watcher, start, ret_initial);
	if (start->revision == VD_REVISION_ANY)
		return VD_OK;
	return begin_after(cacher, watcher, revision, reterr);
}

static vd_status enter(struct vd_cacher *cacher, struct vd_watcher *watcher,
		       const struct vdi_watch_start *start, struct vdi_initial **ret_initial,
		       struct vd_error *reterr)
{
	struct vdi_watch_group	*group;
	struct vdi_subscription *subscription;
	uint64_t		 generation;
	vd_status		 status;

	if (start->status != VD_OK)
		return start->status;
	/* The cacher stopped or relisted while the watch was opening: the stream ends without an error. */
	if (vdi_ready_check(&cacher->ready, &generation, NULL) != VD_OK ||
	    (uint32_t) generation != watcher->generation)
		return VD_CLOSED;
	VDI_TRY(get_group(cacher, start->predicate, &group));
	status = get_subscription(cacher, group, watcher->worker, &subscription);
	if (status != VD_OK) {
		drop_group_if_unused(cacher, group);
		return status;
	}
	status = vdi_watch_scopes_enter(&cacher->watch_scopes, vdi_watch_group_predicate(group));
	if (status != VD_OK) {
		drop_subscription_if_unused(cacher, subscription);
		return status;
	}
	watcher->subscription = vdi_subscription_ref(subscription);
	subscription->watcher_count++;
	if (start->predicate->has_shards)
		vdi_metric_add(cacher->metrics.sharded_watches, 1);
	return begin(cacher, watcher, start, ret_initial, reterr);
}

static void register_watcher(struct vd_cacher *cacher, struct vd_watcher *watcher)
{
	struct vdi_watch_start *start = watcher->start;
	struct vdi_initial     *initial = NULL;
	struct vd_error		error = { 0 };
	vd_status		status = enter(cacher, watcher, start, &initial, &error);

	if (status != VD_OK && error.code != VD_OK && start->error == NULL &&
	    (start->error = vdi_alloc(sizeof error)))
		*start->error = error;
	watcher->end_reason = status;
	watcher->error_due = status != VD_OK && status != VD_CLOSED;
	/* These replace start in the union. */
	if (watcher->error_due) {
		watcher->error = start->error;
		start->error = NULL;
	} else {
		watcher->initial = initial;
	}
	if (watcher->deadline.ns != INT64_MAX || (watcher->allow_bookmarks && status == VD_OK))
		vdi_bookmark_add(&cacher->bookmarks, watcher);
	vdi_watch_start_free(start);
	/* not detached, because it has not joined */
	(void) vdi_delivery_worker_post(watcher, VDI_MESSAGE_JOIN);
	/* The user has closed the watch and will not pull again, so this thread runs the delivery worker to
	 * end it. */
	if (watcher->worker->kind == VDI_DELIVERY_WORKER_PULLED && atomic_load(&watcher->is_closing)) {
		struct vdi_delivery_worker *worker = vdi_delivery_worker_ref(watcher->worker);
		bool			    more = true;

		while (more && vdi_delivery_worker_try_run(worker, &more))
			;
		vdi_delivery_worker_unref(worker);
	}
}

void vdi_dispatch_opening(struct vd_cacher *cacher)
{
	struct vd_watcher *watcher;

	vdi_lock_acquire(&cacher->watchers.lock);
	watcher = cacher->watchers.opening_first;
	cacher->watchers.opening_first = cacher->watchers.opening_last = NULL;
	vdi_lock_release(&cacher->watchers.lock);
	while (watcher) {
		struct vd_watcher *next = watcher->queue_next;

		register_watcher(cacher, watcher);
		watcher = next;
	}
}

/* ---- Removal ---- */

void vdi_dispatch_left(struct vd_cacher *cacher)
{
	struct vd_watcher *watcher;

	vdi_lock_acquire(&cacher->watchers.lock);
	watcher = cacher->watchers.left;
	cacher->watchers.left = NULL;
	vdi_lock_release(&cacher->watchers.lock);
	while (watcher) {
		struct vd_watcher	   *next = watcher->queue_next;
		struct vdi_delivery_worker *worker = watcher->worker;

		vdi_bookmark_remove(&cacher->bookmarks, watcher);
		if (watcher->subscription) {
			watcher->subscription->watcher_count--;
			vdi_watch_scopes_leave(&cacher->watch_scopes,
					       vdi_watch_group_predicate(watcher->subscription->group));
			if (vdi_watch_group_predicate(watcher->subscription->group)->has_shards)
				vdi_metric_subtract(cacher->metrics.sharded_watches, 1);
			drop_subscription_if_unused(cacher, watcher->subscription);
		}
		vdi_lock_acquire(&cacher->watchers.lock);
		cacher->watchers.count--;
		if (worker->kind == VDI_DELIVERY_WORKER_PULLED) {
			*worker->place = worker->next;
			if (worker->next)
				worker->next->place = worker->place;
		}
		vdi_lock_release(&cacher->watchers.lock);
		/* The delivery worker is not run again; pending posts would keep references to it. */
		if (worker->kind == VDI_DELIVERY_WORKER_PULLED)
			vdi_delivery_worker_shut_down(worker);
		vdi_watcher_finish(watcher, VDI_FINISHED_CACHER);
		watcher = next;
	}
}

void vdi_dispatch_end_all(struct vd_cacher *cacher)
{
	uint32_t generation;

	vdi_lock_acquire(&cacher->ready.lock);
	generation = (uint32_t) cacher->ready.generation;
	vdi_lock_release(&cacher->ready.lock);
	vdi_lock_acquire(&cacher->watchers.lock);
	for (struct vdi_delivery_worker *worker = cacher->watchers.workers; worker; worker = worker->next)
		vdi_delivery_worker_post_end(worker, generation);
	for (struct vdi_delivery_worker *worker = cacher->watchers.pulled; worker; worker = worker->next)
		vdi_delivery_worker_post_end(worker, generation);
	vdi_delivery_worker_post_end(cacher->watchers.inline_worker, generation);
	vdi_lock_release(&cacher->watchers.lock);
}
