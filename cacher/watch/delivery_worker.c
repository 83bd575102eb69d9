/* A run handles dirty lanes first (live events to members), then the inbox, then the watchers that are
 * behind, one array of events each in rotation. subscription.c implements the lanes.
 *
 * The inbox follows the lanes so that a bookmark posted after a batch is delivered after the events of the
 * batch.
 */
#include "delivery_worker.h"

#include <unistd.h>

#include "cache_watcher.h"
#include "watch_cache.h"
#include "watchers.h"

/* ---- Outlets ---- */

static void run_actor(void *arg)
{
	struct vdi_outlet *outlet = arg;

	if (vdi_outlet_run(outlet))
		vd_actor_wake(outlet->actor);
}

vd_status vdi_outlet_new(struct vdi_watchers *watchers, enum vdi_outlet_kind kind,
			 struct vdi_outlet **ret_outlet)
{
	struct vdi_outlet *outlet = VDI_NEW(struct vdi_outlet);

	if (outlet == NULL)
		return VD_NOMEM;
	atomic_init(&outlet->references, 1);
	outlet->kind = kind;
	outlet->watchers = watchers;
	outlet->fd = -1;
	vdi_lock_init(&outlet->lock, VDI_LOCK_CACHE_WATCHER);
	*ret_outlet = outlet;
	return VD_OK;
}

struct vdi_outlet *vdi_outlet_ref(struct vdi_outlet *outlet)
{
	atomic_fetch_add_explicit(&outlet->references, 1, memory_order_relaxed);
	return outlet;
}

struct vdi_outlet *vdi_outlet_unref(struct vdi_outlet *outlet)
{
	if (outlet && atomic_fetch_sub_explicit(&outlet->references, 1, memory_order_acq_rel) == 1) {
		if (outlet->fd >= 0)
			close(outlet->fd);
		vdi_lock_fini(&outlet->lock);
		vdi_free(outlet);
	}
	return NULL;
}

static bool same_runner(const struct vd_runner *a, const struct vd_runner *b)
{
	return a->ops == b->ops && a->runner == b->runner;
}

static struct vdi_outlet *find_locked(struct vdi_watchers *watchers, const struct vd_runner *runner)
{
	struct vdi_outlet *outlet = watchers->outlets;

	while (outlet && !same_runner(&outlet->runner, runner))
		outlet = outlet->next;
	if (outlet)
		outlet->attached++;
	return outlet;
}

static vd_status new_on_runner(struct vdi_watchers *watchers, const struct vd_runner *runner,
			       struct vdi_outlet **ret_outlet)
{
	struct vdi_outlet      *outlet;
	struct vd_actor_options options = { .name = "outlet", .run = run_actor };
	vd_status		status = vdi_outlet_new(watchers, VDI_OUTLET_ACTOR, &outlet);

	if (status != VD_OK)
		return status;
	outlet->runner = *runner;
	options.arg = outlet;
	status = vd_runner_actor_new(runner, &options, &outlet->actor);
	if (status != VD_OK) {
		vdi_outlet_unref(outlet);
		return status;
	}
	*ret_outlet = outlet;
	return VD_OK;
}

static void unref_outlet(void *arg)
{
	vdi_outlet_unref(arg);
}

vd_status vdi_outlet_get(struct vdi_watchers *watchers, const struct vd_runner *runner,
			 struct vdi_outlet **ret_outlet)
{
	struct vdi_outlet *made = NULL;
	struct vdi_outlet *outlet;

	vdi_lock_acquire(&watchers->lock);
	if (runner == NULL) {
		outlet = vdi_outlet_ref(watchers->inline_outlet);
		outlet->attached++;
	} else if ((outlet = find_locked(watchers, runner))) {
		vdi_outlet_ref(outlet);
	}
	vdi_lock_release(&watchers->lock);
	if (outlet) {
		*ret_outlet = outlet;
		return VD_OK;
	}
	VDI_TRY(new_on_runner(watchers, runner, &made));
	vdi_lock_acquire(&watchers->lock);
	outlet = find_locked(watchers, runner);
	if (outlet == NULL) {
		outlet = made;
		made = NULL;
		outlet->attached = 1;
		outlet->next = watchers->outlets;
		watchers->outlets = outlet;
		watchers->outlet_count++;
		vdi_watchers_ref(watchers); /* until after_shut */
	}
	vdi_outlet_ref(outlet);
	vdi_lock_release(&watchers->lock);
	if (made)
		vd_actor_close(made->actor, unref_outlet, made);
	*ret_outlet = outlet;
	return VD_OK;
}

/* ---- Posting ---- */

static void tell_locked(struct vdi_outlet *outlet)
{
	uint64_t one = 1;

	if (outlet->waiter)
		vdi_wait_signal(outlet->waiter);
	outlet->waiter = NULL;
	if (outlet->fd >= 0 && write(outlet->fd, &one, sizeof one) < 0)
		return; /* a full counter is readable already */
}

static void wake_locked(struct vdi_outlet *outlet)
{
	if (outlet->is_shut)
		return;
	switch (outlet->kind) {
	case VDI_OUTLET_ACTOR: vd_actor_wake(outlet->actor); break;
	case VDI_OUTLET_INLINE: vd_actor_wake(outlet->watchers->actor); break;
	case VDI_OUTLET_PULLED: tell_locked(outlet); break;
	}
}

static void enqueue_locked(struct vdi_outlet *outlet, struct vd_watcher *watcher)
{
	if (watcher->in_inbox)
		return;
	watcher->in_inbox = true;
	watcher->inbox_next = NULL;
	if (outlet->inbox_last)
		outlet->inbox_last->inbox_next = watcher;
	else
		outlet->inbox_first = watcher;
	outlet->inbox_last = watcher;
}

bool vdi_outlet_post(struct vd_watcher *watcher, uint8_t message)
{
	struct vdi_outlet *outlet = watcher->outlet;
	bool		   is_posted;

	vdi_lock_acquire(&outlet->lock);
	is_posted = !watcher->is_detached;
	if (is_posted) {
		watcher->pending |= message;
		enqueue_locked(outlet, watcher);
		if (message == VDI_MESSAGE_CLOSE)
			atomic_fetch_add(&outlet->closing, 1);
		wake_locked(outlet);
	}
	vdi_lock_release(&outlet->lock);
	return is_posted;
}

void vdi_outlet_post_dirty(struct vdi_lane *lane, uint64_t from)
{
	struct vdi_outlet *outlet = lane->outlet;
	bool		   was_empty;

	vdi_lock_acquire(&outlet->lock);
	was_empty = outlet->dirty_first == NULL;
	/* A shut outlet is not run again; the reference would keep lane and outlet alive. */
	if (!lane->is_dirty && !outlet->is_shut) {
		lane->is_dirty = true;
		lane->dirty_from = from;
		lane->dirty_next = NULL;
		vdi_lane_ref(lane);
		if (outlet->dirty_last)
			outlet->dirty_last->dirty_next = lane;
		else
			outlet->dirty_first = lane;
		outlet->dirty_last = lane;
	}
	/* If the list was not empty, a wake-up is pending. The caller runs the inline outlet next. */
	if (was_empty && outlet->kind != VDI_OUTLET_INLINE)
		wake_locked(outlet);
	vdi_lock_release(&outlet->lock);
}

void vdi_outlet_post_end(struct vdi_outlet *outlet, uint32_t generation)
{
	vdi_lock_acquire(&outlet->lock);
	outlet->end_wanted = true;
	outlet->end_generation = VDI_MAX(outlet->end_generation, generation);
	wake_locked(outlet);
	vdi_lock_release(&outlet->lock);
}

void vdi_outlet_wake(struct vdi_outlet *outlet)
{
	vdi_lock_acquire(&outlet->lock);
	wake_locked(outlet);
	vdi_lock_release(&outlet->lock);
}

void vdi_outlet_tell(struct vdi_outlet *outlet)
{
	vdi_lock_acquire(&outlet->lock);
	tell_locked(outlet);
	vdi_lock_release(&outlet->lock);
}

bool vdi_outlet_has_work(struct vdi_outlet *outlet)
{
	bool has;

	vdi_lock_acquire(&outlet->lock);
	has = outlet->inbox_first || outlet->dirty_first || outlet->end_wanted || atomic_load(&outlet->dumps);
	vdi_lock_release(&outlet->lock);
	return has;
}

/* ---- Messages ---- */

/* Joins the watcher to its lane. false: it ended and may be freed. */
static bool join(struct vdi_outlet *outlet, struct vd_watcher *watcher, uint32_t end_generation)
{
	vdi_lane_add_lagging(watcher);
	if (watcher->lane) {
		vdi_lane_list(outlet, watcher->lane);
		vdi_lane_note_lag_limit(watcher);
	}
	if (atomic_load(&watcher->is_closing))
		return true; /* its CLOSE is handled next, or was kept by handle */
	if (watcher->end_reason == VD_CLOSED || watcher->generation <= end_generation) {
		vdi_lane_end_watcher(outlet, watcher, VD_CLOSED);
		return false;
	}
	if (watcher->lane && vdi_lane_end_slow_joiner(outlet, watcher))
		return false;
	vdi_lane_make_busy(outlet, watcher);
	return true;
}

/* Returns the revision up to which all matches were delivered to the lane's members; 0: some are
 * undelivered. */
static vd_rev bookmark_revision(struct vdi_outlet *outlet, struct vdi_lane *lane)
{
	struct vdi_watch_cache *cache = outlet->watchers->cache;
	vd_rev			revision = 0;

	vdi_lock_acquire(&cache->lock);
	if (lane->group->matched_events == lane->taken_events)
		revision = cache->matched_revision;
	vdi_lock_release(&cache->lock);
	return revision;
}

static void deliver_bookmark(struct vdi_outlet *outlet, struct vd_watcher *watcher)
{
	struct vd_watch_event event = { .type = VD_WATCH_BOOKMARK };

	if (watcher->state != VDI_WATCHER_MEMBER)
		return; /* behind or stuck: it misses this bookmark, as upstream */
	event.revision = bookmark_revision(outlet, watcher->lane);
	if (event.revision == 0)
		watcher->is_owed_bookmark = watcher->lane->owes_bookmarks =
			true; /* new matches: the lane is dirty or will be soon */
	else
		(void) watcher->deliver(watcher->arg, &event, 1); /* if not taken, it is missed too */
}

static void close_watcher(struct vdi_outlet *outlet, struct vd_watcher *watcher)
{
	atomic_fetch_sub(&outlet->closing, 1);
	vdi_lane_end_watcher(outlet, watcher, VD_CANCELED);
	watcher->lagging_next = outlet->closed;
	outlet->closed = watcher;
}

static void handle(struct vdi_outlet *outlet, struct vd_watcher *watcher, uint8_t messages,
		   uint32_t end_generation)
{
	if (messages & VDI_MESSAGE_JOIN && !join(outlet, watcher, end_generation))
		return;
	if (watcher->state == VDI_WATCHER_OPENING) {
		/* Closed before it joined: keep CLOSE until the JOIN, which always follows. */
		vdi_lock_acquire(&outlet->lock);
		watcher->pending |= messages & VDI_MESSAGE_CLOSE;
		vdi_lock_release(&outlet->lock);
		return;
	}
	if (messages & VDI_MESSAGE_CLOSE) {
		close_watcher(outlet, watcher);
		return;
	}
	if (watcher->state == VDI_WATCHER_ENDED)
		return;
	if (messages & VDI_MESSAGE_RESUME && watcher->is_stuck) {
		watcher->is_stuck = false;
		vdi_lane_make_busy(outlet, watcher);
	}
	if (messages & VDI_MESSAGE_BOOKMARK && !atomic_load(&watcher->is_closing))
		deliver_bookmark(outlet, watcher);
	if (messages & VDI_MESSAGE_DEADLINE)
		vdi_lane_end_watcher(outlet, watcher, VD_TIMEOUT);
}

static void end_list(struct vdi_outlet *outlet, struct vd_watcher *watcher, uint32_t generation)
{
	for (struct vd_watcher *following; watcher; watcher = following) {
		following = watcher->lagging_next;
		if (watcher->generation <= generation)
			vdi_lane_end_watcher(outlet, watcher, VD_CLOSED);
	}
}

static void end_generation_of(struct vdi_outlet *outlet, uint32_t generation)
{
	end_list(outlet, outlet->failed, generation);
	for (struct vdi_lane *lane = outlet->lanes, *next; lane; lane = next) {
		next = lane->outlet_next;
		vdi_lane_ref(lane);
		for (size_t i = lane->member_count; i-- > 0;)
			if (vdi_lane_member_at(lane, i)->generation <= generation)
				vdi_lane_end_watcher(outlet, vdi_lane_member_at(lane, i), VD_CLOSED);
		end_list(outlet, lane->lagging, generation);
		vdi_lane_unref(lane);
	}
}

/* The end of a generation is posted before anything of the next one. So a run that takes work of the next
 * generation also takes the end, under the same lock, and handles it first. Otherwise a watcher would
 * continue across the gap between the generations. */
static bool take_end_locked(struct vdi_outlet *outlet, uint32_t *ret_generation)
{
	bool end_wanted = outlet->end_wanted;

	outlet->end_wanted = false;
	*ret_generation = outlet->end_generation;
	return end_wanted;
}

static void run_dirty(struct vdi_outlet *outlet)
{
	struct vdi_lane *lanes;
	uint32_t	 end_generation;
	bool		 end_wanted;

	vdi_lock_acquire(&outlet->lock);
	end_wanted = take_end_locked(outlet, &end_generation);
	lanes = outlet->dirty_first;
	outlet->dirty_first = outlet->dirty_last = NULL;
	vdi_lock_release(&outlet->lock);
	if (end_wanted)
		end_generation_of(outlet, end_generation);
	vdi_lane_run_dirty(outlet, lanes);
}

static void handle_inbox(struct vdi_outlet *outlet)
{
	struct vd_watcher *last;

	vdi_lock_acquire(&outlet->lock);
	last = outlet->inbox_last;
	vdi_lock_release(&outlet->lock);
	/* Only present messages: those posted by a handler wait for the next run. */
	for (bool more = last != NULL; more;) {
		struct vd_watcher *watcher;
		uint32_t	   end_generation;
		uint8_t		   messages;
		bool		   is_detached;
		bool		   end_wanted;

		vdi_lock_acquire(&outlet->lock);
		watcher = outlet->inbox_first;
		outlet->inbox_first = watcher->inbox_next;
		if (outlet->inbox_first == NULL)
			outlet->inbox_last = NULL;
		watcher->in_inbox = false;
		messages = watcher->pending;
		watcher->pending = 0;
		is_detached = watcher->is_detached;
		end_wanted = take_end_locked(outlet, &end_generation);
		vdi_lock_release(&outlet->lock);
		more = watcher != last;
		if (end_wanted)
			end_generation_of(outlet, end_generation);
		handle(outlet, watcher, messages, end_generation);
		if (is_detached)
			vdi_lane_leave_cacher(outlet, watcher);
	}
}

/* ---- A run ---- */

static void call_closed(void *arg)
{
	for (struct vd_watcher *watcher = arg, *next; watcher; watcher = next) {
		next = watcher->lagging_next;
		if (watcher->closed)
			watcher->closed(watcher->closed_arg);
		vdi_watcher_finish(watcher, VDI_FINISHED_USER);
	}
}

/* Called when the actor has ended; outlet->closed is not used by other threads any more. */
static void after_shut(void *arg)
{
	struct vdi_outlet   *outlet = arg;
	struct vd_watcher   *closed = outlet->closed;
	struct vdi_watchers *watchers = outlet->watchers;

	outlet->closed = NULL;
	call_closed(closed);
	vdi_lock_acquire(&watchers->lock);
	watchers->outlet_count--;
	vd_actor_wake(watchers->actor);
	vdi_lock_release(&watchers->lock);
	vdi_outlet_unref(outlet);
	vdi_watchers_unref(watchers);
}

/* Shuts an outlet with an actor if it has no watchers, messages or dumps. true: it was shut. */
static bool shut_if_unused(struct vdi_outlet *outlet)
{
	struct vdi_watchers *watchers = outlet->watchers;
	bool		     is_unused;

	if (outlet->kind != VDI_OUTLET_ACTOR)
		return false;
	vdi_lock_acquire(&watchers->lock);
	vdi_lock_acquire(&outlet->lock);
	is_unused = outlet->attached == 0 && outlet->inbox_first == NULL && !outlet->is_shut &&
		    atomic_load(&outlet->dumps) == NULL;
	if (is_unused) {
		struct vdi_outlet **place = &watchers->outlets;

		while (*place != outlet)
			place = &(*place)->next;
		*place = outlet->next;
		outlet->is_shut = true;
	}
	vdi_lock_release(&outlet->lock);
	vdi_lock_release(&watchers->lock);
	return is_unused;
}

static void drop_dirty(struct vdi_outlet *outlet)
{
	struct vdi_lane *lane;

	vdi_lock_acquire(&outlet->lock);
	lane = outlet->dirty_first;
	outlet->dirty_first = outlet->dirty_last = NULL;
	vdi_lock_release(&outlet->lock);
	while (lane) {
		struct vdi_lane *next = lane->dirty_next;

		vdi_lane_unref(lane);
		lane = next;
	}
}

bool vdi_outlet_run(struct vdi_outlet *outlet)
{
	struct vd_watcher *closed;

	run_dirty(outlet);
	handle_inbox(outlet);
	vdi_lane_serve_busy(outlet);
	if (__builtin_expect(atomic_load(&outlet->watchers->is_draining), 0))
		vdi_lane_end_drained(outlet);
	if (__builtin_expect(atomic_load_explicit(&outlet->dumps, memory_order_relaxed) != NULL, 0))
		outlet->watchers->dump(outlet);
	if (outlet->busy_first == NULL && shut_if_unused(outlet)) {
		drop_dirty(outlet);
		vd_actor_close(outlet->actor, after_shut, outlet);
		return false;
	}
	closed = outlet->closed;
	outlet->closed = NULL;
	call_closed(closed);
	return outlet->busy_first || vdi_outlet_has_work(outlet);
}

void vdi_outlet_shut(struct vdi_outlet *outlet)
{
	vdi_lock_acquire(&outlet->lock);
	outlet->is_shut = true;
	vdi_lock_release(&outlet->lock);
	drop_dirty(outlet);
}

bool vdi_outlet_try_run(struct vdi_outlet *outlet, bool *ret_more)
{
	bool is_mine;

	vdi_lock_acquire(&outlet->lock);
	is_mine = !outlet->is_running;
	outlet->is_running = true;
	vdi_lock_release(&outlet->lock);
	if (!is_mine)
		return false;
	*ret_more = vdi_outlet_run(outlet);
	vdi_lock_acquire(&outlet->lock);
	outlet->is_running = false;
	vdi_lock_release(&outlet->lock);
	return true;
}

void vdi_outlet_put(struct vdi_outlet *outlet)
{
	struct vdi_watchers *watchers = outlet->watchers;

	vdi_lock_acquire(&watchers->lock);
	outlet->attached--;
	vdi_lock_release(&watchers->lock);
	/* The outlet may be unused now; its own thread checks. */
	vdi_lock_acquire(&outlet->lock);
	wake_locked(outlet);
	vdi_lock_release(&outlet->lock);
	vdi_outlet_unref(outlet);
}
