/* A member of a crowd costs one indirect call per array of events and the 24 bytes of its entry; the array of
 * events is made once per lane. The memory of a watcher is touched only if its sink takes fewer events than
 * offered. Watchers' closing flags are read only if the outlet's `closing` count is not 0.
 *
 * A watcher that is behind (resumed, catching up, or at its initial state) is served one array of events per
 * turn, in rotation with the others, until it has its lane's position and becomes a member.
 */
#include "subscription.h"

#include "cache_watcher.h"
#include "cacher_metrics.h"
#include "delivery_worker.h"
#include "watch_cache.h"
#include "watchers.h"

#define TAKE_MAX 64
#define LANE_TAKES_MAX 16
#define BUSY_TURNS_MAX 64
#define COMPARISONS_MAX                                                                                      \
	((size_t) 16384) /* in all turns of one run: less than a millisecond for any selectors */
#define CROWD_MIN 4	 /* members */

vd_status vdi_lane_new(struct vdi_watch_group *group, struct vdi_outlet *outlet, struct vdi_lane **ret_lane)
{
	struct vdi_lane *lane = group->lane.outlet ? VDI_NEW(struct vdi_lane) : &group->lane;

	if (lane == NULL)
		return VD_NOMEM;
	atomic_init(&lane->references, 1);
	lane->group = vdi_watch_group_ref(group);
	lane->outlet = vdi_outlet_ref(outlet);
	*ret_lane = lane;
	return VD_OK;
}

struct vdi_lane *vdi_lane_ref(struct vdi_lane *lane)
{
	atomic_fetch_add_explicit(&lane->references, 1, memory_order_relaxed);
	return lane;
}

struct vdi_lane *vdi_lane_unref(struct vdi_lane *lane)
{
	if (lane && atomic_fetch_sub_explicit(&lane->references, 1, memory_order_acq_rel) == 1) {
		struct vdi_watch_group *group = lane->group;

		vdi_outlet_unref(lane->outlet);
		if (lane->has_crowd)
			vdi_free(lane->crowd);
		if (lane != &group->lane)
			vdi_free(lane);
		vdi_watch_group_unref(group);
	}
	return NULL;
}

/* ---- The lists of watchers: busy queue, lane ---- */

void vdi_lane_make_busy(struct vdi_outlet *outlet, struct vd_watcher *watcher)
{
	if (watcher->in_busy)
		return;
	watcher->in_busy = true;
	watcher->busy_next = NULL;
	if (outlet->busy_last)
		outlet->busy_last->busy_next = watcher;
	else
		outlet->busy_first = watcher;
	outlet->busy_last = watcher;
}

static struct vd_watcher *pop_busy(struct vdi_outlet *outlet)
{
	struct vd_watcher *watcher = outlet->busy_first;

	if (watcher) {
		outlet->busy_first = watcher->busy_next;
		if (outlet->busy_first == NULL)
			outlet->busy_last = NULL;
		watcher->in_busy = false;
	}
	return watcher;
}

static void remove_member(struct vdi_lane *lane, size_t index)
{
	lane->member_count--;
	if (lane->has_crowd) {
		lane->crowd->members[index] = lane->crowd->members[lane->member_count];
		lane->crowd->members[index].watcher->position = index;
	}
}

void vdi_lane_add_lagging(struct vd_watcher *watcher)
{
	/* A watcher that failed before it got a lane has none. */
	struct vd_watcher **first = watcher->lane ? &watcher->lane->lagging : &watcher->outlet->failed;

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

static void leave_lane(struct vd_watcher *watcher)
{
	struct vdi_lane *lane = watcher->lane;

	if (watcher->state == VDI_WATCHER_MEMBER)
		remove_member(lane, watcher->position);
	else if (watcher->state == VDI_WATCHER_LAGGING)
		remove_lagging(watcher);
	watcher->state = VDI_WATCHER_ENDED;
	if (lane && lane->is_listed && lane->member_count == 0 && lane->lagging == NULL) {
		*lane->outlet_place = lane->outlet_next;
		if (lane->outlet_next)
			lane->outlet_next->outlet_place = lane->outlet_place;
		lane->is_listed = false;
		vdi_lane_unref(lane);
	}
}

void vdi_lane_list(struct vdi_outlet *outlet, struct vdi_lane *lane)
{
	if (lane->is_listed)
		return;
	lane->is_listed = true;
	lane->outlet_next = outlet->lanes;
	lane->outlet_place = &outlet->lanes;
	if (outlet->lanes)
		outlet->lanes->outlet_place = &lane->outlet_next;
	outlet->lanes = vdi_lane_ref(lane);
}

/* ---- The end of a watcher ---- */

/* Gives the watcher back to the cacher's actor; the outlet has no pointers to it any more. */
void vdi_lane_leave_cacher(struct vdi_outlet *outlet, struct vd_watcher *watcher)
{
	struct vdi_watchers *watchers = outlet->watchers;

	vdi_lock_acquire(&watchers->lock);
	outlet->attached--;
	watcher->queue_next = watchers->left;
	watchers->left = watcher;
	vd_actor_wake(watchers->actor);
	vdi_lock_release(&watchers->lock);
}

/* Stops accepting messages; a message that is already in the inbox is handled first. */
static void detach(struct vdi_outlet *outlet, struct vd_watcher *watcher)
{
	bool in_inbox;

	vdi_lock_acquire(&outlet->lock);
	watcher->is_detached = true;
	in_inbox = watcher->in_inbox;
	vdi_lock_release(&outlet->lock);
	if (!in_inbox)
		vdi_lane_leave_cacher(outlet, watcher);
}

/* Ends the watcher and tells its sink, unless the watcher is closing. The watcher may be freed afterwards. */
void vdi_lane_end_watcher(struct vdi_outlet *outlet, struct vd_watcher *watcher, vd_status reason)
{
	if (watcher->state == VDI_WATCHER_ENDED)
		return;
	leave_lane(watcher);
	vdi_cacher_metrics_count_end(outlet->watchers->metrics, reason);
	if (!watcher->error_due) {
		vdi_initial_free(watcher->initial);
		watcher->initial = NULL;
	}
	if (!atomic_load(&watcher->is_closing))
		watcher->ended(watcher->arg, reason);
	if (!watcher->in_busy)
		detach(outlet, watcher);
}

/* Delivers an ERROR event, then ends the watcher. */
static void fail_watcher(struct vdi_outlet *outlet, struct vd_watcher *watcher, vd_status reason,
			 const struct vd_error *error)
{
	if (watcher->state == VDI_WATCHER_MEMBER) {
		remove_member(watcher->lane, watcher->position);
		vdi_lane_add_lagging(watcher);
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
		vdi_lane_make_busy(outlet, watcher);
}

static void expire_watcher(struct vdi_outlet *outlet, struct vd_watcher *watcher)
{
	struct vdi_watch_cache *cache = watcher->outlet->watchers->cache;
	struct vd_error		error;
	vd_rev			floor;

	vdi_lock_acquire(&cache->lock);
	floor = vdi_history_floor(&cache->history);
	vdi_lock_release(&cache->lock);
	vd_error_set(&error, VD_EXPIRED,
		     "too old resource version: the watch fell behind the history, which starts after %lld",
		     (long long) floor);
	error.compacted = floor;
	fail_watcher(outlet, watcher, VD_EXPIRED, &error);
}

static void deliver_error(struct vdi_outlet *outlet, struct vd_watcher *watcher)
{
	struct vd_error	      plain;
	struct vd_watch_event event = { .type = VD_WATCH_ERROR, .error = watcher->error };

	if (event.error == NULL) {
		vd_error_set(&plain, watcher->end_reason, "%s", vd_status_sentence(watcher->end_reason));
		event.error = &plain;
	}
	if (watcher->deliver(watcher->arg, &event, 1) == 1)
		vdi_lane_end_watcher(outlet, watcher, watcher->end_reason);
	else
		watcher->is_stuck = true;
}

/* ---- Lanes: live events ---- */

void vdi_lane_note_lag_limit(struct vd_watcher *watcher)
{
	struct vdi_lane_crowd *crowd = watcher->lane->has_crowd ? watcher->lane->crowd : NULL;

	if (crowd == NULL)
		return; /* no crowd: check_lag visits all */
	crowd->check_bytes =
		VDI_MIN(crowd->check_bytes, watcher->base_bytes + (uint64_t) watcher->lag_bytes_max);
	if (watcher->lag_events_max)
		crowd->check_events = VDI_MIN(crowd->check_events,
					      watcher->base_events + (uint64_t) watcher->lag_events_max);
}

/* Makes a member that took only `taken` of the matches a lagging watcher, at the next match. */
static void park_member(struct vdi_lane *lane, size_t index, const struct vdi_match *matches, size_t taken)
{
	struct vd_watcher *watcher = vdi_lane_member_at(lane, index);

	remove_member(lane, index);
	vdi_lane_add_lagging(watcher);
	watcher->is_stuck = true;
	watcher->position = matches[taken].position;
	watcher->counted_from = 0;
	watcher->base_events = lane->taken_events + taken;
	watcher->base_bytes = lane->taken_bytes;
	for (size_t i = 0; i < taken; i++)
		watcher->base_bytes += matches[i].event->size_bytes;
	vdi_lane_note_lag_limit(watcher);
}

/* Returns true if a watcher of the outlet is closing; only then the watchers' flags are read. */
static inline bool any_closes(const struct vdi_outlet *outlet)
{
	return __builtin_expect(atomic_load_explicit(&outlet->closing, memory_order_acquire) != 0, 0);
}

static void deliver_to_crowd(struct vdi_lane *lane, const struct vdi_match *matches,
			     const struct vd_watch_event *events, size_t count)
{
	const struct vdi_outlet *outlet = lane->outlet;
	struct vdi_lane_member	*member = lane->crowd->members, *end = member + lane->member_count;

	while (member < end) {
		size_t taken;

		if (any_closes(outlet) && atomic_load(&member->watcher->is_closing)) {
			member++;
			continue;
		}
		taken = member->deliver(member->arg, events, count);
		if (__builtin_expect(taken >= count, 1)) {
			member++;
		} else {
			park_member(lane, (size_t) (member - lane->crowd->members), matches, taken);
			end--; /* the last member took its place */
		}
	}
}

static void deliver_to_members(struct vdi_lane *lane, const struct vdi_match *matches, size_t count)
{
	struct vd_watch_event events[TAKE_MAX];
	struct vd_watcher    *single = lane->single;
	size_t		      taken;

	for (size_t i = 0; i < count; i++)
		vdi_match_to_event(&matches[i], &events[i]);
	if (lane->has_crowd)
		deliver_to_crowd(lane, matches, events, count);
	else if (!(any_closes(lane->outlet) && atomic_load(&single->is_closing)) &&
		 (taken = single->deliver(single->arg, events, count)) < count)
		park_member(lane, 0, matches, taken);
}

static bool lags_too_far(const struct vd_watcher *watcher, uint64_t events, uint64_t bytes)
{
	if (events > watcher->base_events && watcher->lag_events_max &&
	    events - watcher->base_events > (uint64_t) watcher->lag_events_max)
		return true;
	return bytes > watcher->base_bytes && bytes - watcher->base_bytes > (uint64_t) watcher->lag_bytes_max;
}

/* Ends stuck watchers that exceed their lag limits, and computes the sums for the next check. */
static void check_lag(struct vdi_outlet *outlet, struct vdi_lane *lane)
{
	struct vdi_watch_cache *cache = outlet->watchers->cache;
	uint64_t		events;
	uint64_t		bytes;

	vdi_lock_acquire(&cache->lock);
	events = lane->group->matched_events;
	bytes = lane->group->matched_bytes;
	vdi_lock_release(&cache->lock);
	if (lane->has_crowd) {
		if (events <= lane->crowd->check_events && bytes <= lane->crowd->check_bytes)
			return;
		lane->crowd->check_events = lane->crowd->check_bytes = UINT64_MAX;
	}
	for (struct vd_watcher *watcher = lane->lagging, *next; watcher; watcher = next) {
		next = watcher->lagging_next;
		/* A watcher that takes all events is not slow: it is served before the run ends. */
		if (watcher->error_due || !watcher->is_stuck || !lags_too_far(watcher, events, bytes)) {
			vdi_lane_note_lag_limit(watcher);
			continue;
		}
		vdi_metric_add(watcher->outlet->watchers->metrics->terminated_watchers, 1);
		vdi_lane_end_watcher(outlet, watcher, VD_TOO_SLOW);
	}
}

static void wake_lagging(struct vdi_outlet *outlet, struct vdi_lane *lane)
{
	lane->has_early = false;
	for (struct vd_watcher *watcher = lane->lagging; watcher; watcher = watcher->lagging_next)
		if (!watcher->is_stuck)
			vdi_lane_make_busy(outlet, watcher);
}

/* Advances a lane without members over all matches. */
static void skip_lane(struct vdi_outlet *outlet, struct vdi_lane *lane)
{
	struct vdi_watch_cache *cache = outlet->watchers->cache;

	vdi_lock_acquire(&cache->lock);
	lane->position = atomic_load(&cache->matched_position);
	lane->taken_events = lane->group->matched_events;
	lane->taken_bytes = lane->group->matched_bytes;
	vdi_lock_release(&cache->lock);
	wake_lagging(outlet, lane);
}

/* Ends a pulled watcher that exceeds its lag limits. true: it ended. If its position is no longer in the
 * history, it ends as expired elsewhere. */
static bool end_slow_puller(struct vdi_outlet *outlet, struct vd_watcher *watcher, uint64_t position)
{
	struct vdi_watch_group *group = watcher->lane->group;
	struct vdi_watch_cache *cache = outlet->watchers->cache;
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
	vdi_metric_add(watcher->outlet->watchers->metrics->terminated_watchers, 1);
	vdi_lane_end_watcher(outlet, watcher, VD_TOO_SLOW);
	return true;
}

bool vdi_lane_end_slow_joiner(struct vdi_outlet *outlet, struct vd_watcher *watcher)
{
	/* A watcher from a future revision is not sent all matches that the sums include. */
	return outlet->kind == VDI_OUTLET_PULLED && watcher->from_revision == 0 &&
	       end_slow_puller(outlet, watcher, watcher->position);
}

static bool end_slow_member(struct vdi_outlet *outlet, struct vdi_lane *lane)
{
	struct vd_watcher *watcher = vdi_lane_member_at(lane, 0);

	watcher->base_events = lane->taken_events;
	watcher->base_bytes = lane->taken_bytes;
	return end_slow_puller(outlet, watcher, lane->position);
}

/* Handles bookmarks that came due while events were undelivered. Posts them again instead of delivering them:
 * the inbox is handled later in the same run. */
static void repost_bookmarks(struct vdi_lane *lane)
{
	lane->owes_bookmarks = false;
	for (size_t i = 0; i < lane->member_count; i++) {
		struct vd_watcher *watcher = vdi_lane_member_at(lane, i);

		if (watcher->is_owed_bookmark)
			(void) vdi_outlet_post(watcher, VDI_MESSAGE_BOOKMARK);
		watcher->is_owed_bookmark = false;
	}
}

static void run_lane(struct vdi_outlet *outlet, struct vdi_lane *lane, uint64_t from)
{
	struct vdi_watch_cache *cache = outlet->watchers->cache;
	uint64_t		limit = atomic_load_explicit(&cache->matched_position, memory_order_acquire);
	struct vdi_match	matches[TAKE_MAX];
	size_t			count = 0;
	vd_status		status = VD_OK;

	lane->position = VDI_MAX(lane->position, from);
	if (lane->member_count && outlet->kind == VDI_OUTLET_PULLED && end_slow_member(outlet, lane))
		return;
	for (unsigned takes = 0; lane->member_count && lane->position < limit && takes < LANE_TAKES_MAX;
	     takes++) {
		status = vdi_watch_group_take(lane->group, cache, &lane->position, limit, matches, TAKE_MAX,
					      &count);
		if (status != VD_OK)
			break;
		if (count == 0)
			continue;
		deliver_to_members(lane, matches, count);
		lane->taken_events += count;
		for (size_t i = 0; i < count; i++)
			lane->taken_bytes += matches[i].event->size_bytes;
		vdi_matches_release(matches, count);
	}
	if (status == VD_EXPIRED)
		while (lane->member_count)
			expire_watcher(outlet, vdi_lane_member_at(lane, 0));
	if (lane->member_count == 0)
		skip_lane(outlet, lane);
	else if (lane->position < limit)
		vdi_outlet_post_dirty(lane, lane->position);
	if (lane->owes_bookmarks)
		repost_bookmarks(lane);
	if (lane->has_early)
		wake_lagging(outlet, lane);
	if (lane->lagging)
		check_lag(outlet, lane);
}

void vdi_lane_run_dirty(struct vdi_outlet *outlet, struct vdi_lane *lane)
{
	while (lane) {
		struct vdi_lane *next;
		uint64_t	 from;

		vdi_lock_acquire(&outlet->lock);
		next = lane->dirty_next;
		from = lane->dirty_from;
		lane->is_dirty = false;
		vdi_lock_release(&outlet->lock);
		run_lane(outlet, lane, from);
		vdi_lane_unref(lane);
		lane = next;
	}
}

/* ---- Watchers that are behind ---- */

/* Moves a lane that has no matches to deliver to the position of a watcher that joins it. */
static void advance_clean_lane(struct vdi_outlet *outlet, struct vdi_lane *lane, uint64_t position)
{
	vdi_lock_acquire(&outlet->lock);
	if (lane->position < position && (!lane->is_dirty || lane->dirty_from >= position))
		lane->position = position;
	vdi_lock_release(&outlet->lock);
}

static struct vdi_lane_member member_of(struct vd_watcher *watcher)
{
	return (struct vdi_lane_member) { watcher->deliver, watcher->arg, watcher };
}

/* Ensures space for one more member. The crowd is kept when only one member remains, because a lane that had
 * two members is likely to have them again. */
static bool reserve_member(struct vdi_lane *lane)
{
	struct vdi_lane_crowd *crowd = lane->has_crowd ? lane->crowd : NULL;
	uint32_t	       capacity = crowd ? crowd->capacity * 2 : CROWD_MIN;

	if (crowd ? lane->member_count < crowd->capacity : lane->member_count == 0)
		return true;
	if (capacity > UINT32_MAX / 2)
		return false;
	crowd = vdi_realloc(crowd, sizeof *crowd + capacity * sizeof crowd->members[0]);
	if (crowd == NULL)
		return false;
	crowd->capacity = capacity;
	if (!lane->has_crowd) {
		crowd->members[0] = member_of(lane->single);
		/* Check all members next time: their limits were not noted. */
		crowd->check_events = crowd->check_bytes = 0;
	}
	lane->has_crowd = true;
	lane->crowd = crowd;
	return true;
}

/* Makes the watcher a member of its lane. false: out of memory. */
static bool become_member(struct vd_watcher *watcher)
{
	struct vdi_lane *lane = watcher->lane;

	if (!reserve_member(lane))
		return false; /* it continues as a lagging watcher, which costs time but no events */
	remove_lagging(watcher);
	watcher->state = VDI_WATCHER_MEMBER;
	watcher->position = lane->member_count;
	if (lane->has_crowd)
		lane->crowd->members[lane->member_count] = member_of(watcher);
	else
		lane->single = watcher;
	lane->member_count++;
	return true;
}

static void deliver_end_bookmark(struct vdi_outlet *outlet, struct vd_watcher *watcher)
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
	vdi_lane_make_busy(outlet, watcher);
}

static void serve_initial(struct vdi_outlet *outlet, struct vd_watcher *watcher, size_t *comparisons)
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
		vdi_lane_make_busy(outlet, watcher);
		return;
	}
	if (count == 0) {
		deliver_end_bookmark(outlet, watcher);
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
		vdi_lane_make_busy(outlet, watcher);
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
	struct vdi_watch_cache *cache = watcher->outlet->watchers->cache;
	struct vdi_lane	       *lane = watcher->lane;

	if (watcher->from_revision == 0)
		return false;
	vdi_lock_acquire(&cache->lock);
	if (cache->matched_revision >= watcher->from_revision &&
	    lane->taken_events == lane->group->matched_events)
		watcher->from_revision = 0;
	vdi_lock_release(&cache->lock);
	return watcher->from_revision != 0;
}

static void serve_catch_up(struct vdi_outlet *outlet, struct vd_watcher *watcher, size_t *comparisons)
{
	struct vdi_lane	     *lane = watcher->lane;
	struct vdi_match      matches[TAKE_MAX];
	struct vd_watch_event events[TAKE_MAX];
	size_t		      count = 0;
	size_t		      taken;

	advance_clean_lane(outlet, lane, watcher->position);
	/* Each event is evaluated in both states if the group's ring does not have it. */
	*comparisons -= VDI_MIN(*comparisons,
				(size_t) VDI_MIN(lane->position - VDI_MIN(watcher->position, lane->position),
						 (uint64_t) TAKE_MAX) *
					2 * vdi_predicate_cost(vdi_watch_group_predicate(lane->group)));
	if (watcher->position < lane->position &&
	    vdi_watch_group_take(lane->group, outlet->watchers->cache, &watcher->position, lane->position,
				 matches, TAKE_MAX, &count) != VD_OK) {
		expire_watcher(outlet, watcher);
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
		vdi_lane_note_lag_limit(watcher);
	}
	vdi_matches_release(matches, count);
	if (watcher->is_stuck)
		return;
	if (watcher->position == lane->position && is_early(watcher)) {
		lane->has_early = true;
		return;
	}
	/* Take another turn if the watcher is behind the lane, or ahead of a lane that still has to deliver
	 * events that this watcher must skip. */
	if (watcher->position != lane->position || !become_member(watcher))
		vdi_lane_make_busy(outlet, watcher);
}

void vdi_lane_serve_busy(struct vdi_outlet *outlet)
{
	size_t comparisons = COMPARISONS_MAX;

	for (unsigned turns = 0; turns < BUSY_TURNS_MAX && comparisons; turns++) {
		struct vd_watcher *watcher = pop_busy(outlet);

		if (watcher == NULL)
			return;
		if (watcher->state == VDI_WATCHER_ENDED)
			detach(outlet, watcher);
		else if (watcher->state == VDI_WATCHER_MEMBER || watcher->is_stuck ||
			 atomic_load(&watcher->is_closing))
			continue;
		else if (watcher->error_due)
			deliver_error(outlet, watcher);
		else if (watcher->initial)
			serve_initial(outlet, watcher, &comparisons);
		else
			serve_catch_up(outlet, watcher, &comparisons);
	}
}

/* ---- Draining ---- */

/* Returns true if all matches were delivered to the members. */
static bool is_at_end(struct vdi_outlet *outlet, struct vdi_lane *lane)
{
	struct vdi_watch_cache *cache = outlet->watchers->cache;
	bool			is_it;

	vdi_lock_acquire(&cache->lock);
	is_it = lane->group->matched_events == lane->taken_events;
	vdi_lock_release(&cache->lock);
	return is_it;
}

void vdi_lane_end_drained(struct vdi_outlet *outlet)
{
	for (struct vdi_lane *lane = outlet->lanes, *next; lane; lane = next) {
		next = lane->outlet_next;
		if (!is_at_end(outlet, lane))
			continue; /* it is dirty and runs again */
		vdi_lane_ref(lane);
		while (lane->member_count)
			vdi_lane_end_watcher(outlet, vdi_lane_member_at(lane, lane->member_count - 1),
					     VD_CLOSED);
		for (struct vd_watcher *watcher = lane->lagging, *following; watcher; watcher = following) {
			following = watcher->lagging_next;
			/* It waits for a future revision, which the cache will not reach. */
			if (watcher->from_revision && !watcher->is_stuck && !watcher->in_busy)
				vdi_lane_end_watcher(outlet, watcher, VD_CLOSED);
		}
		vdi_lane_unref(lane);
	}
}
