/* A run handles dirty subscriptions first (live events to members), then the inbox, then the watchers that
 * are behind, one array of events each in rotation. subscription.c implements the subscriptions.
 *
 * The inbox follows the subscriptions so that a bookmark posted after a batch is delivered after the events
 * of the batch.
 */
#include "delivery_worker.h"

#include <unistd.h>

#include "cache_watcher.h"
#include "watch_cache.h"
#include "watchers.h"

/* ---- Delivery workers ---- */

static void run_actor(void *arg)
{
	struct vdi_delivery_worker *worker = arg;

	if (vdi_delivery_worker_run(worker))
		vd_actor_wake(worker->actor);
}

vd_status vdi_delivery_worker_new(struct vdi_watchers *watchers, enum vdi_delivery_worker_kind kind,
				  struct vdi_delivery_worker **ret_worker)
{
	struct vdi_delivery_worker *worker = VDI_NEW(struct vdi_delivery_worker);

	if (worker == NULL)
		return VD_NOMEM;
	atomic_init(&worker->references, 1);
	worker->kind = kind;
	worker->watchers = watchers;
	worker->fd = -1;
	vdi_lock_init(&worker->lock, VDI_LOCK_CACHE_WATCHER);
	*ret_worker = worker;
	return VD_OK;
}

struct vdi_delivery_worker *vdi_delivery_worker_ref(struct vdi_delivery_worker *worker)
{
	atomic_fetch_add_explicit(&worker->references, 1, memory_order_relaxed);
	return worker;
}

struct vdi_delivery_worker *vdi_delivery_worker_unref(struct vdi_delivery_worker *worker)
{
	if (worker && atomic_fetch_sub_explicit(&worker->references, 1, memory_order_acq_rel) == 1) {
		if (worker->fd >= 0)
			close(worker->fd);
		vdi_lock_fini(&worker->lock);
		vdi_free(worker);
	}
	return NULL;
}

static bool same_executor(const struct vd_executor *a, const struct vd_executor *b)
{
	return a->ops == b->ops && a->executor == b->executor;
}

static struct vdi_delivery_worker *find_locked(struct vdi_watchers	*watchers,
					       const struct vd_executor *executor)
{
	struct vdi_delivery_worker *worker = watchers->workers;

	while (worker && !same_executor(&worker->executor, executor))
		worker = worker->next;
	if (worker)
		worker->attached++;
	return worker;
}

static vd_status new_on_executor(struct vdi_watchers *watchers, const struct vd_executor *executor,
				 struct vdi_delivery_worker **ret_worker)
{
	struct vdi_delivery_worker *worker;
	struct vd_actor_options	    options = { .name = "delivery", .run = run_actor };
	vd_status status = vdi_delivery_worker_new(watchers, VDI_DELIVERY_WORKER_ACTOR, &worker);

	if (status != VD_OK)
		return status;
	worker->executor = *executor;
	options.arg = worker;
	status = vd_executor_actor_new(executor, &options, &worker->actor);
	if (status != VD_OK) {
		vdi_delivery_worker_unref(worker);
		return status;
	}
	*ret_worker = worker;
	return VD_OK;
}

static void unref_worker(void *arg)
{
	vdi_delivery_worker_unref(arg);
}

vd_status vdi_delivery_worker_get(struct vdi_watchers *watchers, const struct vd_executor *executor,
				  struct vdi_delivery_worker **ret_worker)
{
	struct vdi_delivery_worker *made = NULL;
	struct vdi_delivery_worker *worker;

	vdi_lock_acquire(&watchers->lock);
	if (executor == NULL) {
		worker = vdi_delivery_worker_ref(watchers->inline_worker);
		worker->attached++;
	} else if ((worker = find_locked(watchers, executor))) {
		vdi_delivery_worker_ref(worker);
	}
	vdi_lock_release(&watchers->lock);
	if (worker) {
		*ret_worker = worker;
		return VD_OK;
	}
	VDI_TRY(new_on_executor(watchers, executor, &made));
	vdi_lock_acquire(&watchers->lock);
	worker = find_locked(watchers, executor);
	if (worker == NULL) {
		worker = made;
		made = NULL;
		worker->attached = 1;
		worker->next = watchers->workers;
		watchers->workers = worker;
		watchers->worker_count++;
		vdi_watchers_ref(watchers); /* until after_shutdown */
	}
	vdi_delivery_worker_ref(worker);
	vdi_lock_release(&watchers->lock);
	if (made)
		vd_actor_close(made->actor, unref_worker, made);
	*ret_worker = worker;
	return VD_OK;
}

/* ---- Posting ---- */

static void notify_locked(struct vdi_delivery_worker *worker)
{
	uint64_t one = 1;

	if (worker->waiter)
		vdi_wait_signal(worker->waiter);
	worker->waiter = NULL;
	if (worker->fd >= 0 && write(worker->fd, &one, sizeof one) < 0)
		return; /* a full counter is readable already */
}

static void wake_locked(struct vdi_delivery_worker *worker)
{
	if (worker->is_shut_down)
		return;
	switch (worker->kind) {
	case VDI_DELIVERY_WORKER_ACTOR: vd_actor_wake(worker->actor); break;
	case VDI_DELIVERY_WORKER_INLINE: vd_actor_wake(worker->watchers->actor); break;
	case VDI_DELIVERY_WORKER_PULLED: notify_locked(worker); break;
	}
}

static void enqueue_locked(struct vdi_delivery_worker *worker, struct vd_watcher *watcher)
{
	if (watcher->in_inbox)
		return;
	watcher->in_inbox = true;
	watcher->inbox_next = NULL;
	if (worker->inbox_last)
		worker->inbox_last->inbox_next = watcher;
	else
		worker->inbox_first = watcher;
	worker->inbox_last = watcher;
}

bool vdi_delivery_worker_post(struct vd_watcher *watcher, uint8_t message)
{
	struct vdi_delivery_worker *worker = watcher->worker;
	bool			    is_posted;

	vdi_lock_acquire(&worker->lock);
	is_posted = !watcher->is_detached;
	if (is_posted) {
		watcher->pending |= message;
		enqueue_locked(worker, watcher);
		if (message == VDI_MESSAGE_CLOSE)
			atomic_fetch_add(&worker->closing, 1);
		wake_locked(worker);
	}
	vdi_lock_release(&worker->lock);
	return is_posted;
}

void vdi_delivery_worker_post_dirty(struct vdi_subscription *subscription, uint64_t from)
{
	struct vdi_delivery_worker *worker = subscription->worker;
	bool			    was_empty;

	vdi_lock_acquire(&worker->lock);
	was_empty = worker->dirty_first == NULL;
	/* A shut delivery worker is not run again; the reference would keep subscription and delivery worker
	 * alive. */
	if (!subscription->is_dirty && !worker->is_shut_down) {
		subscription->is_dirty = true;
		subscription->dirty_from = from;
		subscription->dirty_next = NULL;
		vdi_subscription_ref(subscription);
		if (worker->dirty_last)
			worker->dirty_last->dirty_next = subscription;
		else
			worker->dirty_first = subscription;
		worker->dirty_last = subscription;
	}
	/* If the list was not empty, a wake-up is pending. The caller runs the inline delivery worker
	 * next. */
	if (was_empty && worker->kind != VDI_DELIVERY_WORKER_INLINE)
		wake_locked(worker);
	vdi_lock_release(&worker->lock);
}

void vdi_delivery_worker_post_end(struct vdi_delivery_worker *worker, uint32_t generation)
{
	vdi_lock_acquire(&worker->lock);
	worker->end_wanted = true;
	worker->end_generation = VDI_MAX(worker->end_generation, generation);
	wake_locked(worker);
	vdi_lock_release(&worker->lock);
}

void vdi_delivery_worker_wake(struct vdi_delivery_worker *worker)
{
	vdi_lock_acquire(&worker->lock);
	wake_locked(worker);
	vdi_lock_release(&worker->lock);
}

void vdi_delivery_worker_notify(struct vdi_delivery_worker *worker)
{
	vdi_lock_acquire(&worker->lock);
	notify_locked(worker);
	vdi_lock_release(&worker->lock);
}

bool vdi_delivery_worker_has_work(struct vdi_delivery_worker *worker)
{
	bool has;

	vdi_lock_acquire(&worker->lock);
	has = worker->inbox_first || worker->dirty_first || worker->end_wanted || atomic_load(&worker->dumps);
	vdi_lock_release(&worker->lock);
	return has;
}

/* ---- Messages ---- */

/* Joins the watcher to its subscription. false: it ended and may be freed. */
static bool join(struct vdi_delivery_worker *worker, struct vd_watcher *watcher, uint32_t end_generation)
{
	vdi_subscription_add_lagging(watcher);
	if (watcher->subscription) {
		vdi_subscription_list(worker, watcher->subscription);
		vdi_subscription_note_lag_limit(watcher);
	}
	if (atomic_load(&watcher->is_closing))
		return true; /* its CLOSE is handled next, or was kept by handle */
	if (watcher->end_reason == VD_CLOSED || watcher->generation <= end_generation) {
		vdi_subscription_end_watcher(worker, watcher, VD_CLOSED);
		return false;
	}
	if (watcher->subscription && vdi_subscription_end_slow_joiner(worker, watcher))
		return false;
	vdi_subscription_make_busy(worker, watcher);
	return true;
}

/* Returns the revision up to which all matches were delivered to the subscription's members; 0: some are
 * undelivered. */
static vd_rev bookmark_revision(struct vdi_delivery_worker *worker, struct vdi_subscription *subscription)
{
	struct vdi_watch_cache *cache = worker->watchers->cache;
	vd_rev			revision = 0;

	vdi_lock_acquire(&cache->lock);
	if (subscription->group->matched_events == subscription->taken_events)
		revision = cache->matched_revision;
	vdi_lock_release(&cache->lock);
	return revision;
}

static void deliver_bookmark(struct vdi_delivery_worker *worker, struct vd_watcher *watcher)
{
	struct vd_watch_event event = { .type = VD_WATCH_BOOKMARK };

	if (watcher->state == VDI_WATCHER_LAGGING && watcher->from_revision && !watcher->is_stuck) {
		/* It waits for a future revision that may have come without a match, so nothing has woken
		 * it. */
		watcher->is_owed_bookmark = true;
		vdi_subscription_make_busy(worker, watcher);
	}
	if (watcher->state != VDI_WATCHER_MEMBER)
		return; /* behind or stuck: it misses this bookmark, as upstream */
	event.revision = bookmark_revision(worker, watcher->subscription);
	if (event.revision == 0)
		watcher->is_owed_bookmark = watcher->subscription->owes_bookmarks =
			true; /* new matches: the subscription is dirty or will be soon */
	else
		(void) watcher->deliver(watcher->arg, &event, 1); /* if not taken, it is missed too */
}

static void close_watcher(struct vdi_delivery_worker *worker, struct vd_watcher *watcher)
{
	atomic_fetch_sub(&worker->closing, 1);
	vdi_subscription_end_watcher(worker, watcher, VD_CANCELED);
	watcher->lagging_next = worker->closed;
	worker->closed = watcher;
}

static void handle(struct vdi_delivery_worker *worker, struct vd_watcher *watcher, uint8_t messages,
		   uint32_t end_generation)
{
	if (messages & VDI_MESSAGE_JOIN && !join(worker, watcher, end_generation))
		return;
	if (watcher->state == VDI_WATCHER_OPENING) {
		/* Closed before it joined: keep CLOSE until the JOIN, which always follows. */
		vdi_lock_acquire(&worker->lock);
		watcher->pending |= messages & VDI_MESSAGE_CLOSE;
		vdi_lock_release(&worker->lock);
		return;
	}
	if (messages & VDI_MESSAGE_CLOSE) {
		close_watcher(worker, watcher);
		return;
	}
	if (watcher->state == VDI_WATCHER_ENDED)
		return;
	if (messages & VDI_MESSAGE_RESUME && watcher->is_stuck) {
		watcher->is_stuck = false;
		vdi_subscription_make_busy(worker, watcher);
	}
	if (messages & VDI_MESSAGE_BOOKMARK && !atomic_load(&watcher->is_closing))
		deliver_bookmark(worker, watcher);
	if (messages & VDI_MESSAGE_DEADLINE)
		vdi_subscription_end_watcher(worker, watcher, VD_TIMEOUT);
}

static void end_list(struct vdi_delivery_worker *worker, struct vd_watcher *watcher, uint32_t generation)
{
	for (struct vd_watcher *following; watcher; watcher = following) {
		following = watcher->lagging_next;
		if (watcher->generation <= generation)
			vdi_subscription_end_watcher(worker, watcher, VD_CLOSED);
	}
}

static void end_generation_of(struct vdi_delivery_worker *worker, uint32_t generation)
{
	end_list(worker, worker->failed, generation);
	for (struct vdi_subscription *subscription = worker->subscriptions, *next; subscription;
	     subscription = next) {
		next = subscription->worker_next;
		vdi_subscription_ref(subscription);
		for (size_t i = subscription->member_count; i-- > 0;)
			if (vdi_subscription_member_at(subscription, i)->generation <= generation)
				vdi_subscription_end_watcher(
					worker, vdi_subscription_member_at(subscription, i), VD_CLOSED);
		end_list(worker, subscription->lagging, generation);
		vdi_subscription_unref(subscription);
	}
}

/* The end of a generation is posted before anything of the next one. So a run that takes work of the next
 * generation also takes the end, under the same lock, and handles it first. Otherwise a watcher would
 * continue across the gap between the generations. */
static bool take_end_locked(struct vdi_delivery_worker *worker, uint32_t *ret_generation)
{
	bool end_wanted = worker->end_wanted;

	worker->end_wanted = false;
	*ret_generation = worker->end_generation;
	return end_wanted;
}

static void run_dirty(struct vdi_delivery_worker *worker)
{
	struct vdi_subscription *subscriptions;
	uint32_t		 end_generation;
	bool			 end_wanted;

	vdi_lock_acquire(&worker->lock);
	end_wanted = take_end_locked(worker, &end_generation);
	subscriptions = worker->dirty_first;
	worker->dirty_first = worker->dirty_last = NULL;
	vdi_lock_release(&worker->lock);
	if (end_wanted)
		end_generation_of(worker, end_generation);
	vdi_subscription_run_dirty(worker, subscriptions);
}

static void handle_inbox(struct vdi_delivery_worker *worker)
{
	struct vd_watcher *last;

	vdi_lock_acquire(&worker->lock);
	last = worker->inbox_last;
	vdi_lock_release(&worker->lock);
	/* Only present messages: those posted by a handler wait for the next run. */
	for (bool more = last != NULL; more;) {
		struct vd_watcher *watcher;
		uint32_t	   end_generation;
		uint8_t		   messages;
		bool		   is_detached;
		bool		   end_wanted;

		vdi_lock_acquire(&worker->lock);
		watcher = worker->inbox_first;
		worker->inbox_first = watcher->inbox_next;
		if (worker->inbox_first == NULL)
			worker->inbox_last = NULL;
		watcher->in_inbox = false;
		messages = watcher->pending;
		watcher->pending = 0;
		is_detached = watcher->is_detached;
		end_wanted = take_end_locked(worker, &end_generation);
		vdi_lock_release(&worker->lock);
		more = watcher != last;
		if (end_wanted)
			end_generation_of(worker, end_generation);
		handle(worker, watcher, messages, end_generation);
		if (is_detached)
			vdi_subscription_leave_cacher(worker, watcher);
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

/* Called when the actor has ended; worker->closed is not used by other threads any more. */
static void after_shutdown(void *arg)
{
	struct vdi_delivery_worker *worker = arg;
	struct vd_watcher	   *closed = worker->closed;
	struct vdi_watchers	   *watchers = worker->watchers;

	worker->closed = NULL;
	call_closed(closed);
	vdi_lock_acquire(&watchers->lock);
	watchers->worker_count--;
	vd_actor_wake(watchers->actor);
	vdi_lock_release(&watchers->lock);
	vdi_delivery_worker_unref(worker);
	vdi_watchers_unref(watchers);
}

/* Shuts a delivery worker with an actor if it has no watchers, messages or dumps. true: it was shut. */
static bool shut_down_if_unused(struct vdi_delivery_worker *worker)
{
	struct vdi_watchers *watchers = worker->watchers;
	bool		     is_unused;

	if (worker->kind != VDI_DELIVERY_WORKER_ACTOR)
		return false;
	vdi_lock_acquire(&watchers->lock);
	vdi_lock_acquire(&worker->lock);
	is_unused = worker->attached == 0 && worker->inbox_first == NULL && !worker->is_shut_down &&
		    atomic_load(&worker->dumps) == NULL;
	if (is_unused) {
		struct vdi_delivery_worker **place = &watchers->workers;

		while (*place != worker)
			place = &(*place)->next;
		*place = worker->next;
		worker->is_shut_down = true;
	}
	vdi_lock_release(&worker->lock);
	vdi_lock_release(&watchers->lock);
	return is_unused;
}

static void drop_dirty(struct vdi_delivery_worker *worker)
{
	struct vdi_subscription *subscription;

	vdi_lock_acquire(&worker->lock);
	subscription = worker->dirty_first;
	worker->dirty_first = worker->dirty_last = NULL;
	vdi_lock_release(&worker->lock);
	while (subscription) {
		struct vdi_subscription *next = subscription->dirty_next;

		vdi_subscription_unref(subscription);
		subscription = next;
	}
}

bool vdi_delivery_worker_run(struct vdi_delivery_worker *worker)
{
	struct vd_watcher *closed;

	run_dirty(worker);
	handle_inbox(worker);
	vdi_subscription_serve_busy(worker);
	if (__builtin_expect(atomic_load(&worker->watchers->is_draining), 0))
		vdi_subscription_end_drained(worker);
	if (__builtin_expect(atomic_load_explicit(&worker->dumps, memory_order_relaxed) != NULL, 0))
		worker->watchers->dump(worker);
	if (worker->busy_first == NULL && shut_down_if_unused(worker)) {
		drop_dirty(worker);
		vd_actor_close(worker->actor, after_shutdown, worker);
		return false;
	}
	closed = worker->closed;
	worker->closed = NULL;
	call_closed(closed);
	return worker->busy_first || vdi_delivery_worker_has_work(worker);
}

void vdi_delivery_worker_shut_down(struct vdi_delivery_worker *worker)
{
	vdi_lock_acquire(&worker->lock);
	worker->is_shut_down = true;
	vdi_lock_release(&worker->lock);
	drop_dirty(worker);
}

bool vdi_delivery_worker_try_run(struct vdi_delivery_worker *worker, bool *ret_more)
{
	bool is_mine;

	vdi_lock_acquire(&worker->lock);
	is_mine = !worker->is_running;
	worker->is_running = true;
	vdi_lock_release(&worker->lock);
	if (!is_mine)
		return false;
	*ret_more = vdi_delivery_worker_run(worker);
	vdi_lock_acquire(&worker->lock);
	worker->is_running = false;
	vdi_lock_release(&worker->lock);
	return true;
}

void vdi_delivery_worker_put(struct vdi_delivery_worker *worker)
{
	struct vdi_watchers *watchers = worker->watchers;

	vdi_lock_acquire(&watchers->lock);
	worker->attached--;
	vdi_lock_release(&watchers->lock);
	/* The delivery worker may be unused now; its own thread checks. */
	vdi_lock_acquire(&worker->lock);
	wake_locked(worker);
	vdi_lock_release(&worker->lock);
	vdi_delivery_worker_unref(worker);
}
