/* A member of a member list costs one indirect call per array of events and the 24 bytes of its entry; the
 * array of events is made once per subscription. The memory of a watcher is touched only if its sink takes
 * fewer events than offered. Watchers' closing flags are read only if the delivery worker's `closing` count
 * is not 0.
 *
 * A watcher that is behind (resumed, catching up, or at its initial state) is served one array of events per
 * turn, in rotation with the others, until it has its subscription's position and becomes a member.
 */
#include "subscription.h"

#include "cache_watcher.h"
#include "cacher_metrics.h"
#include "delivery_worker.h"
#include "watch_cache.h"
#include "watchers.h"

#define TAKE_MAX 64
#define SUBSCRIPTION_TAKES_MAX 16
#define BUSY_PASSES_MAX 64
#define COMPARISONS_MAX                                                                                      \
	((size_t) 16384)  /* in all turns of one run: less than a millisecond for any selectors */
#define MEMBER_LIST_MIN 4 /* members */

vd_status vdi_subscription_new(struct vdi_watch_group *group, struct vdi_delivery_worker *worker,
			       struct vdi_subscription **ret_subscription)
{
	struct vdi_subscription *subscription =
		group->subscription.worker ? VDI_NEW(struct vdi_subscription) : &group->subscription;

	if (subscription == NULL)
		return VD_NOMEM;
	atomic_init(&subscription->references, 1);
	subscription->group = vdi_watch_group_ref(group);
	subscription->worker = vdi_delivery_worker_ref(worker);
	*ret_subscription = subscription;
	return VD_OK;
}

struct vdi_subscription *vdi_subscription_ref(struct vdi_subscription *subscription)
{
	atomic_fetch_add_explicit(&subscription->references, 1, memory_order_relaxed);
	return subscription;
}

struct vdi_subscription *vdi_subscription_unref(struct vdi_subscription *subscription)
{
	if (subscription &&
	    atomic_fetch_sub_explicit(&subscription->references, 1, memory_order_acq_rel) == 1) {
		struct vdi_watch_group *group = subscription->group;

		vdi_delivery_worker_unref(subscription->worker);
		if (subscription->has_member_list)
			vdi_free(subscription->member_list);
		if (subscription != &group->subscription)
			vdi_free(subscription);
		vdi_watch_group_unref(group);
	}
	return NULL;
}

/* ---- The lists of watchers: busy queue, subscription ---- */

void vdi_subscription_make_busy(struct vdi_delivery_worker *worker, struct vd_watcher *watcher)
{
	if (watcher->in_busy)
		return;
	watcher->in_busy = true;
	watcher->busy_next = NULL;
	if (worker->busy_last)
		worker->busy_last->busy_next = watcher;
	else
		worker->busy_first = watcher;
	worker->busy_last = watcher;
}

static struct vd_watcher *pop_busy(struct vdi_delivery_worker *worker)
{
	struct vd_watcher *watcher = worker->busy_first;

	if (watcher) {
		worker->busy_first = watcher->busy_next;
		if (worker->busy_first == NULL)
			worker->busy_last = NULL;
		watcher->in_busy = false;
	}
	return watcher;
}

static void remove_member(struct vdi_subscription *subscription, size_t index)
{
	subscription->member_count--;
	if (subscription->has_member_list) {
		subscription->member_list->members[index] =
			subscription->member_list->members[subscription->member_count];
		subscription->member_list->members[index].watcher->position = index;
	}
}

void vdi_subscription_add_lagging(struct vd_watcher *watcher)
{
	/* A watcher that failed before it got a subscription has none. */
	struct vd_watcher **first =
		watcher->subscription ? &watcher->subscription->lagging : &watcher->worker->failed;

	watcher->state = VDI_WATCHER_LAGGING;
	watcher->lagging_next = *first;
	watcher->lagging_place = first;
	if (*first)
		(*first)->lagging_place = &watcher->lagging_next;
	*first = watcher;
}

static void remove_lagging(struct vd_watcher *watcher)
{
	*watcher->lagging_place = watcher->lagging_next;
	if (watcher->lagging_next)
		watcher->lagging_next->lagging_place = watcher->lagging_place;
}

static void leave_subscription(struct vd_watcher *watcher)
{
	struct vdi_subscription *subscription = watcher->subscription;

	if (watcher->state == VDI_WATCHER_MEMBER)
		remove_member(subscription, watcher->position);
	else if (watcher->state == VDI_WATCHER_LAGGING)
		remove_lagging(watcher);
	watcher->state = VDI_WATCHER_ENDED;
	if (subscription && subscription->is_listed && subscription->member_count == 0 &&
	    subscription->lagging == NULL) {
		*subscription->worker_place = subscription->worker_next;
		if (subscription->worker_next)
			subscription->worker_next->worker_place = subscription->worker_place;
		subscription->is_listed = false;
		vdi_subscription_unref(subscription);
	}
}

void vdi_subscription_list(struct vdi_delivery_worker *worker, struct vdi_subscription *subscription)
{
	if (subscription->is_listed)
		return;
	subscription->is_listed = true;
	subscription->worker_next = worker->subscriptions;
	subscription->worker_place = &worker->subscriptions;
	if (worker->subscriptions)
		worker->subscriptions->worker_place = &subscription->worker_next;
	worker->subscriptions = vdi_subscription_ref(subscription);
}

/* ---- The end of a watcher ---- */

/* Gives the watcher back to the cacher's actor; the delivery worker has no pointers to it any more. */
void vdi_subscription_leave_cacher(struct vdi_delivery_worker *worker, struct vd_watcher *watcher)
{
	struct vdi_watchers *watchers = worker->watchers;

	vdi_lock_acquire(&watchers->lock);
	worker->attached--;
	watcher->queue_next = watchers->left;
	watchers->left = watcher;
	vd_actor_wake(watchers->actor);
	vdi_lock_release(&watchers->lock);
}

/* Stops accepting messages; a message that is already in the inbox is handled first. */
static void detach(struct vdi_delivery_worker *worker, struct vd_watcher *watcher)
{
	bool in_inbox;

	vdi_lock_acquire(&worker->lock);
	watcher->is_detached = true;
	in_inbox = watcher->in_inbox;
	vdi_lock_release(&worker->lock);
	if (!in_inbox)
		vdi_subscription_leave_cacher(worker, watcher);
}

/* Ends the watcher and notifies its sink, unless the watcher is closing. The watcher may be freed
 * afterwards. */
void vdi_subscription_end_watcher(struct vdi_delivery_worker *worker, struct vd_watcher *watcher,
				  vd_status reason)
{
	if (watcher->state == VDI_WATCHER_ENDED)
		return;
	leave_subscription(watcher);
	vdi_cacher_metrics_count_end(worker->watchers->metrics, reason);
	if (!watcher->error_due) {
		vdi_initial_free(watcher->initial);
		watcher->initial = NULL;
	}
	if (!atomic_load(&watcher->is_closing))
		watcher->ended(watcher->arg, reason);
	if (!watcher->in_busy)
		detach(worker, watcher);
}

/* Delivers an ERROR event, then ends the watcher. */
static void fail_watcher(struct vdi_delivery_worker *worker, struct vd_watcher *watcher, vd_status reason,
			 const struct vd_error *error)
{
	if (watcher->state == VDI_WATCHER_MEMBER) {
		remove_member(watcher->subscription, watcher->position);
		vdi_subscription_add_lagging(watcher);
	}
	if (!watcher->error_due)
		vdi_initial_free(watcher->initial);
	else
		vdi_free(watcher->error);
	watcher->error_due = true;
	watcher->end_reason = reason;
	watcher->error = vdi_alloc(sizeof *watcher->error);
	if (watcher->error)
		*watcher->error = *error;
	if (!watcher->is_stuck)
		vdi_subscription_make_busy(worker, watcher);
}

static void expire_watcher(struct vdi_delivery_worker *worker, struct vd_watcher *watcher)
{
	struct vdi_watch_cache *cache = watcher->worker->watchers->cache;
	struct vd_error		error;
	vd_rev			floor;

	vdi_lock_acquire(&cache->lock);
	floor = vdi_history_floor(&cache->history);
	vdi_lock_release(&cache->lock);
	vd_error_set(&error, VD_EXPIRED,
		     "too old resource version: the watch fell behind the history, which starts after %lld",
		     (long long) floor);
	error.compacted = floor;
	fail_watcher(worker, watcher, VD_EXPIRED, &error);
}

static void deliver_error(struct vdi_delivery_worker *worker, struct vd_watcher *watcher)
{
	struct vd_error	      plain;
	struct vd_watch_event event = { .type = VD_WATCH_ERROR, .error = watcher->error };

	if (event.error == NULL) {
		vd_error_set(&plain, watcher->end_reason, "%s", vd_status_sentence(watcher->end_reason));
		event.error = &plain;
	}
	if (watcher->deliver(watcher->arg, &event, 1) == 1)
		vdi_subscription_end_watcher(worker, watcher, watcher->end_reason);
	else
		watcher->is_stuck = true;
}

/* ---- Subscriptions: live events ---- */

void vdi_subscription_note_lag_limit(struct vd_watcher *watcher)
{
	struct vdi_member_list *list =
		watcher->subscription->has_member_list ? watcher->subscription->member_list : NULL;

	if (list == NULL)
		return; /* no member list: check_lag visits all */
	list->check_bytes =
		VDI_MIN(list->check_bytes, watcher->base_bytes + (uint64_t) watcher->lag_bytes_max);
	if (watcher->lag_events_max)
		list->check_events = VDI_MIN(list->check_events,
					     watcher->base_events + (uint64_t) watcher->lag_events_max);
}

/* Makes a member that took only `taken` of the matches a lagging watcher, at the next match. */
static void block_member(struct vdi_subscription *subscription, size_t index, const struct vdi_match *matches,
			 size_t taken)
{
	struct vd_watcher *watcher = vdi_subscription_member_at(subscription, index);

	remove_member(subscription, index);
	vdi_subscription_add_lagging(watcher);
	watcher->is_stuck = true;
	watcher->position = matches[taken].position;
	watcher->counted_from = 0;
	watcher->base_events = subscription->taken_events + taken;
	watcher->base_bytes = subscription->taken_bytes;
	for (size_t i = 0; i < taken; i++)
		watcher->base_bytes += matches[i].event->size_bytes;
	vdi_subscription_note_lag_limit(watcher);
}

/* Returns true if a watcher of the delivery worker is closing; only then the watchers' flags are read. */
static inline bool any_closes(const struct vdi_delivery_worker *worker)
{
	return __builtin_expect(atomic_load_explicit(&worker->closing, memory_order_acquire) != 0, 0);
}

static void deliver_to_member_list(struct vdi_subscription *subscription, const struct vdi_match *matches,
				   const struct vd_watch_event *events, size_t count)
{
	const struct vdi_delivery_worker *worker = subscription->worker;
	struct vdi_subscription_member	 *member = subscription->member_list->members,
				       *end = member + subscription->member_count;

	while (member < end) {
		size_t taken;

		if (any_closes(worker) && atomic_load(&member->watcher->is_closing)) {
			member++;
			continue;
		}
		taken = member->deliver(member->arg, events, count);
		if (__builtin_expect(taken >= count, 1)) {
			member++;
		} else {
			block_member(subscription, (size_t) (member - subscription->member_list->members),
				     matches, taken);
			end--; /* the last member took its place */
		}
	}
}

static void deliver_to_members(struct vdi_subscription *subscription, const struct vdi_match *matches,
			       size_t count)
{
	struct vd_watch_event events[TAKE_MAX];
	struct vd_watcher    *single = subscription->single;
	size_t		      taken;

	for (size_t i = 0; i < count; i++)
		vdi_match_to_event(&matches[i], &events[i]);
	if (subscription->has_member_list)
		deliver_to_member_list(subscription, matches, events, count);
	else if (!(any_closes(subscription->worker) && atomic_load(&single->is_closing)) &&
		 (taken = single->deliver(single->arg, events, count)) < count)
		block_member(subscription, 0, matches, taken);
}

static bool lags_too_far(const struct vd_watcher *watcher, uint64_t events, uint64_t bytes)
{
	if (events > watcher->base_events && watcher->lag_events_max &&
	    events - watcher->base_events > (uint64_t) watcher->lag_events_max)
		return true;
	return bytes > watcher->base_bytes && bytes - watcher->base_bytes > (uint64_t) watcher->lag_bytes_max;
}

/* Ends stuck watchers that exceed their lag limits, and computes the sums for the next check. */
static void check_lag(struct vdi_delivery_worker *worker, struct vdi_subscription *subscription)
{
	struct vdi_watch_cache *cache = worker->watchers->cache;
	uint64_t		events;
	uint64_t		bytes;

	vdi_lock_acquire(&cache->lock);
	events = subscription->group->matched_events;
	bytes = subscription->group->matched_bytes;
	vdi_lock_release(&cache->lock);
	if (subscription->has_member_list) {
		if (events <= subscription->member_list->check_events &&
		    bytes <= subscription->member_list->check_bytes)
			return;
		subscription->member_list->check_events = subscription->member_list->check_bytes = UINT64_MAX;
	}
	for (struct vd_watcher *watcher = subscription->lagging, *next; watcher; watcher = next) {
		next = watcher->lagging_next;
		/* A watcher that takes all events is not slow: it is served before the run ends. */
		if (watcher->error_due || !watcher->is_stuck || !lags_too_far(watcher, events, bytes)) {
			vdi_subscription_note_lag_limit(watcher);
			continue;
		}
		vdi_metric_add(watcher->worker->watchers->metrics->terminated_watchers, 1);
		vdi_subscription_end_watcher(worker, watcher, VD_TOO_SLOW);
	}
}

static void wake_lagging(struct vdi_delivery_worker *worker, struct vdi_subscription *subscription)
{
	subscription->has_early = false;
	for (struct vd_watcher *watcher = subscription->lagging; watcher; watcher = watcher->lagging_next)
		if (!watcher->is_stuck)
			vdi_subscription_make_busy(worker, watcher);
}

/* Advances a subscription without members over all matches. */
static void skip_subscription(struct vdi_delivery_worker *worker, struct vdi_subscription *subscription)
{
	struct vdi_watch_cache *cache = worker->watchers->cache;

	vdi_lock_acquire(&cache->lock);
	subscription->position = atomic_load(&cache->matched_position);
	subscription->taken_events = subscription->group->matched_events;
	subscription->taken_bytes = subscription->group->matched_bytes;
	vdi_lock_release(&cache->lock);
	wake_lagging(worker, subscription);
}

/* Ends a pulled watcher that exceeds its lag limits. true: it ended. If its position is no longer in the
 * history, it ends as expired elsewhere. */
static bool end_slow_puller(struct vdi_delivery_worker *worker, struct vd_watcher *watcher, uint64_t position)
{
	struct vdi_watch_group *group = watcher->subscription->group;
	struct vdi_watch_cache *cache = worker->watchers->cache;
	uint64_t		events;
	uint64_t		bytes;
	bool			is_expired;

	vdi_lock_acquire(&cache->lock);
	events = group->matched_events;
	bytes = group->matched_bytes;
	is_expired = position < cache->history.start;
	vdi_lock_release(&cache->lock);
	if (is_expired || !lags_too_far(watcher, events, bytes))
		return false;
	vdi_metric_add(watcher->worker->watchers->metrics->terminated_watchers, 1);
	vdi_subscription_end_watcher(worker, watcher, VD_TOO_SLOW);
	return true;
}

bool vdi_subscription_end_slow_joiner(struct vdi_delivery_worker *worker, struct vd_watcher *watcher)
{
	/* A watcher from a future revision is not sent all matches that the sums include. */
	return worker->kind == VDI_DELIVERY_WORKER_PULLED && watcher->from_revision == 0 &&
	       end_slow_puller(worker, watcher, watcher->position);
}

static bool end_slow_member(struct vdi_delivery_worker *worker, struct vdi_subscription *subscription)
{
	struct vd_watcher *watcher = vdi_subscription_member_at(subscription, 0);

	watcher->base_events = subscription->taken_events;
	watcher->base_bytes = subscription->taken_bytes;
	return end_slow_puller(worker, watcher, subscription->position);
}

/* Handles bookmarks that came due while events were undelivered. Posts them again instead of delivering them:
 * the inbox is handled later in the same run. */
static void repost_bookmarks(struct vdi_subscription *subscription)
{
	subscription->owes_bookmarks = false;
	for (size_t i = 0; i < subscription->member_count; i++) {
		struct vd_watcher *watcher = vdi_subscription_member_at(subscription, i);

		if (watcher->is_owed_bookmark)
			(void) vdi_delivery_worker_post(watcher, VDI_MESSAGE_BOOKMARK);
		watcher->is_owed_bookmark = false;
	}
}

static void run_subscription(struct vdi_delivery_worker *worker, struct vdi_subscription *subscription,
			     uint64_t from)
{
	struct vdi_watch_cache *cache = worker->watchers->cache;
	uint64_t		limit = atomic_load_explicit(&cache->matched_position, memory_order_acquire);
	struct vdi_match	matches[TAKE_MAX];
	size_t			count = 0;
	vd_status		status = VD_OK;

	subscription->position = VDI_MAX(subscription->position, from);
	if (subscription->member_count && worker->kind == VDI_DELIVERY_WORKER_PULLED &&
	    end_slow_member(worker, subscription))
		return;
	for (unsigned takes = 0;
	     subscription->member_count && subscription->position < limit && takes < SUBSCRIPTION_TAKES_MAX;
	     takes++) {
		status = vdi_watch_group_take(subscription->group, cache, &subscription->position, limit,
					      matches, TAKE_MAX, &count);
		if (status != VD_OK)
			break;
		if (count == 0)
			continue;
		deliver_to_members(subscription, matches, count);
		subscription->taken_events += count;
		for (size_t i = 0; i < count; i++)
			subscription->taken_bytes += matches[i].event->size_bytes;
		vdi_matches_release(matches, count);
	}
	if (status == VD_EXPIRED)
		while (subscription->member_count)
			expire_watcher(worker, vdi_subscription_member_at(subscription, 0));
	if (subscription->member_count == 0)
		skip_subscription(worker, subscription);
	else if (subscription->position < limit)
		vdi_delivery_worker_post_dirty(subscription, subscription->position);
	if (subscription->owes_bookmarks)
		repost_bookmarks(subscription);
	if (subscription->has_early)
		wake_lagging(worker, subscription);
	if (subscription->lagging)
		check_lag(worker, subscription);
}

void vdi_subscription_run_dirty(struct vdi_delivery_worker *worker, struct vdi_subscription *subscription)
{
	while (subscription) {
		struct vdi_subscription *next;
		uint64_t		 from;

		vdi_lock_acquire(&worker->lock);
		next = subscription->dirty_next;
		from = subscription->dirty_from;
		subscription->is_dirty = false;
		vdi_lock_release(&worker->lock);
		run_subscription(worker, subscription, from);
		vdi_subscription_unref(subscription);
		subscription = next;
	}
}

/* ---- Watchers that are behind ---- */

/* Moves a subscription that has no matches to deliver to the position of a watcher that joins it. */
static void advance_clean_subscription(struct vdi_delivery_worker *worker,
				       struct vdi_subscription *subscription, uint64_t position)
{
	vdi_lock_acquire(&worker->lock);
	if (subscription->position < position &&
	    (!subscription->is_dirty || subscription->dirty_from >= position))
		subscription->position = position;
	vdi_lock_release(&worker->lock);
}

static struct vdi_subscription_member member_of(struct vd_watcher *watcher)
{
	return (struct vdi_subscription_member) { watcher->deliver, watcher->arg, watcher };
}

/* Ensures space for one more member. The member list is kept when only one member remains, because a
 * subscription that had two members is likely to have them again. */
static bool reserve_member(struct vdi_subscription *subscription)
{
	struct vdi_member_list *list = subscription->has_member_list ? subscription->member_list : NULL;
	uint32_t		capacity = list ? list->capacity * 2 : MEMBER_LIST_MIN;

	if (list ? subscription->member_count < list->capacity : subscription->member_count == 0)
		return true;
	if (capacity > UINT32_MAX / 2)
		return false;
	list = vdi_realloc(list, sizeof *list + capacity * sizeof list->members[0]);
	if (list == NULL)
		return false;
	list->capacity = capacity;
	if (!subscription->has_member_list) {
		list->members[0] = member_of(subscription->single);
		/* Check all members next time: their limits were not noted. */
		list->check_events = list->check_bytes = 0;
	}
	subscription->has_member_list = true;
	subscription->member_list = list;
	return true;
}

/* Makes the watcher a member of its subscription. false: out of memory. */
static bool become_member(struct vd_watcher *watcher)
{
	struct vdi_subscription *subscription = watcher->subscription;

	if (!reserve_member(subscription))
		return false; /* it continues as a lagging watcher, which costs time but no events */
	remove_lagging(watcher);
	watcher->state = VDI_WATCHER_MEMBER;
	watcher->position = subscription->member_count;
	if (subscription->has_member_list)
		subscription->member_list->members[subscription->member_count] = member_of(watcher);
	else
		subscription->single = watcher;
	subscription->member_count++;
	return true;
}

static void deliver_end_bookmark(struct vdi_delivery_worker *worker, struct vd_watcher *watcher)
{
	struct vdi_initial   *initial = watcher->initial;
	struct vd_watch_event event = { .type = VD_WATCH_BOOKMARK,
					.revision = initial->revision,
					.initial_events_end = true };

	if (initial->end_bookmark && watcher->deliver(watcher->arg, &event, 1) == 0) {
		watcher->is_stuck = true;
		return;
	}
	vdi_initial_free(initial);
	watcher->initial = NULL;
	vdi_subscription_make_busy(worker, watcher);
}

static void serve_initial(struct vdi_delivery_worker *worker, struct vd_watcher *watcher, size_t *comparisons)
{
	struct vdi_initial     *initial = watcher->initial;
	struct vdi_btree_cursor before = initial->candidates.cursor;
	struct vd_watch_event	events[TAKE_MAX];
	struct vd_object       *object;
	size_t			all = SIZE_MAX;
	size_t			count = 0;
	size_t			taken;

	while (count < TAKE_MAX && (object = vdi_initial_next(initial, comparisons)))
		events[count++] = (struct vd_watch_event) { .type = VD_WATCH_ADDED,
							    .revision = vd_object_revision(object),
							    .object = object,
							    .initial = true };
	if (count == 0 && *comparisons == 0) {
		vdi_subscription_make_busy(worker, watcher);
		return;
	}
	if (count == 0) {
		deliver_end_bookmark(worker, watcher);
		return;
	}
	taken = watcher->deliver(watcher->arg, events, count);
	if (taken < count) {
		/* Rewind to the first object that was not taken. */
		watcher->is_stuck = true;
		initial->candidates.cursor = before;
		for (size_t i = 0; i < taken; i++)
			(void) vdi_initial_next(initial, &all);
	} else {
		vdi_subscription_make_busy(worker, watcher);
	}
}

/* Drops matches up to the watch's start revision, which the cache had not reached when the watch opened. */
static size_t drop_early(struct vd_watcher *watcher, struct vdi_match *matches, size_t count)
{
	size_t early = 0;

	for (; early < count && matches[early].event->revision <= watcher->from_revision; early++)
		if (matches[early].position >= watcher->counted_from) {
			watcher->base_events++;
			watcher->base_bytes += matches[early].event->size_bytes;
		}
	vdi_matches_release(matches, early);
	memmove(matches, matches + early, (count - early) * sizeof *matches);
	return count - early;
}

/* Returns true if matches up to the watch's start revision may still follow; until then it cannot become a
 * member. */
static bool is_early(struct vd_watcher *watcher)
{
	struct vdi_watch_cache	*cache = watcher->worker->watchers->cache;
	struct vdi_subscription *subscription = watcher->subscription;

	if (watcher->from_revision == 0)
		return false;
	vdi_lock_acquire(&cache->lock);
	if (cache->matched_revision >= watcher->from_revision &&
	    subscription->taken_events == subscription->group->matched_events)
		watcher->from_revision = 0;
	vdi_lock_release(&cache->lock);
	return watcher->from_revision != 0;
}

static void serve_catch_up(struct vdi_delivery_worker *worker, struct vd_watcher *watcher,
			   size_t *comparisons)
{
	struct vdi_subscription *subscription = watcher->subscription;
	struct vdi_match	 matches[TAKE_MAX];
	struct vd_watch_event	 events[TAKE_MAX];
	size_t			 count = 0;
	size_t			 taken;

	advance_clean_subscription(worker, subscription, watcher->position);
	/* Each event is evaluated in both states if the group's ring does not have it. */
	*comparisons -= VDI_MIN(
		*comparisons,
		(size_t) VDI_MIN(subscription->position - VDI_MIN(watcher->position, subscription->position),
				 (uint64_t) TAKE_MAX) *
			2 * vdi_predicate_cost(vdi_watch_group_predicate(subscription->group)));
	if (watcher->position < subscription->position &&
	    vdi_watch_group_take(subscription->group, worker->watchers->cache, &watcher->position,
				 subscription->position, matches, TAKE_MAX, &count) != VD_OK) {
		expire_watcher(worker, watcher);
		return;
	}
	if (watcher->from_revision)
		count = drop_early(watcher, matches, count);
	for (size_t i = 0; i < count; i++)
		vdi_match_to_event(&matches[i], &events[i]);
	taken = count ? watcher->deliver(watcher->arg, events, count) : 0;
	for (size_t i = 0; i < VDI_MIN(taken, count); i++)
		if (matches[i].position >= watcher->counted_from) {
			watcher->base_events++;
			watcher->base_bytes += matches[i].event->size_bytes;
		}
	if (taken < count) {
		watcher->is_stuck = true;
		watcher->position = matches[taken].position;
		vdi_subscription_note_lag_limit(watcher);
	}
	vdi_matches_release(matches, count);
	if (watcher->is_stuck)
		return;
	if (watcher->position == subscription->position && is_early(watcher)) {
		subscription->has_early = true;
		return;
	}
	/* Take another turn if the watcher is behind the subscription, or ahead of a subscription that still
	 * has to deliver events that this watcher must skip. */
	if (watcher->position != subscription->position || !become_member(watcher)) {
		vdi_subscription_make_busy(worker, watcher);
		return;
	}
	if (watcher->is_owed_bookmark)
		(void) vdi_delivery_worker_post(watcher, VDI_MESSAGE_BOOKMARK);
	watcher->is_owed_bookmark = false;
}

void vdi_subscription_serve_busy(struct vdi_delivery_worker *worker)
{
	size_t comparisons = COMPARISONS_MAX;

	for (unsigned passes = 0; passes < BUSY_PASSES_MAX && comparisons; passes++) {
		struct vd_watcher *watcher = pop_busy(worker);

		if (watcher == NULL)
			return;
		VDI_CHECK_SLOW(watcher->state != VDI_WATCHER_MEMBER);
		if (watcher->state == VDI_WATCHER_ENDED)
			detach(worker, watcher);
		else if (watcher->is_stuck || atomic_load(&watcher->is_closing))
			continue;
		else if (watcher->error_due)
			deliver_error(worker, watcher);
		else if (watcher->initial)
			serve_initial(worker, watcher, &comparisons);
		else
			serve_catch_up(worker, watcher, &comparisons);
	}
}

/* ---- Draining ---- */

/* Returns true if all matches were delivered to the members. */
static bool is_at_end(struct vdi_delivery_worker *worker, struct vdi_subscription *subscription)
{
	struct vdi_watch_cache *cache = worker->watchers->cache;
	bool			is_it;

	vdi_lock_acquire(&cache->lock);
	is_it = subscription->group->matched_events == subscription->taken_events;
	vdi_lock_release(&cache->lock);
	return is_it;
}

void vdi_subscription_end_drained(struct vdi_delivery_worker *worker)
{
	for (struct vdi_subscription *subscription = worker->subscriptions, *next; subscription;
	     subscription = next) {
		next = subscription->worker_next;
		if (!is_at_end(worker, subscription))
			continue; /* it is dirty and runs again */
		vdi_subscription_ref(subscription);
		while (subscription->member_count)
			vdi_subscription_end_watcher(
				worker,
				vdi_subscription_member_at(subscription, subscription->member_count - 1),
				VD_CLOSED);
		for (struct vd_watcher *watcher = subscription->lagging, *following; watcher;
		     watcher = following) {
			following = watcher->lagging_next;
			/* It waits for a future revision, which the cache will not reach. */
			if (watcher->from_revision && !watcher->is_stuck && !watcher->in_busy)
				vdi_subscription_end_watcher(worker, watcher, VD_CLOSED);
		}
		vdi_subscription_unref(subscription);
	}
}
