/* The public functions of a watcher: resume, close and pull. A pulled watcher has an internal sink that keeps
 * up to 32 events with references. When the sink is full it takes fewer events than offered, so the watcher
 * becomes stuck and is resumed like any other. */
#include "cache_watcher.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "watchers.h"

const char *vd_watch_type_name(enum vd_watch_type type)
{
	static const char *const names[] = { "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR" };

	return (unsigned) type < VDI_ARRAY_SIZE(names) ? names[type] : "ERROR";
}

void vdi_watch_start_free(struct vdi_watch_start *start)
{
	if (start) {
		vdi_predicate_unref(start->predicate);
		vdi_free(start->error);
	}
	vdi_free(start);
}

void vdi_initial_free(struct vdi_initial *initial)
{
	if (initial)
		vdi_candidates_release(&initial->candidates);
	vdi_free(initial);
}

struct vd_object *vdi_initial_next(struct vdi_initial *initial, size_t *comparisons)
{
	size_t		  cost = vdi_predicate_cost(initial->predicate);
	struct vd_object *object;

	while (*comparisons && (object = vdi_btree_cursor_range_next(&initial->candidates.cursor))) {
		*comparisons -= VDI_MIN(*comparisons, cost);
		if (vdi_predicate_matches(initial->predicate, object))
			return object;
	}
	return NULL;
}

struct vdi_pull *vdi_pull_new(void)
{
	struct vdi_pull *pull = VDI_NEW(struct vdi_pull);

	if (pull)
		vdi_lock_init(&pull->lock, VDI_LOCK_LEAF);
	return pull;
}

void vdi_pull_free(struct vdi_pull *pull)
{
	if (pull) {
		vdi_lock_fini(&pull->lock);
		vdi_free(pull);
	}
}

static void release_pulled(struct vdi_pull *pull)
{
	for (size_t i = 0; i < pull->count; i++) {
		vd_object_unref(pull->events[i].object);
		vd_object_unref(pull->events[i].old_object);
		vdi_event_unref(pull->events[i].shared);
	}
	pull->count = pull->next = 0;
}

void vdi_watcher_finish(struct vd_watcher *watcher, uint8_t part)
{
	struct vdi_watchers *watchers;

	if ((atomic_fetch_or(&watcher->finished, part) | part) != (VDI_FINISHED_USER | VDI_FINISHED_CACHER))
		return;
	if (watcher->worker->kind == VDI_DELIVERY_WORKER_PULLED && watcher->arg) {
		release_pulled(watcher->arg);
		vdi_pull_free(watcher->arg);
	}
	watchers = watcher->worker->watchers;
	if (watcher->error_due)
		vdi_free(watcher->error);
	vdi_subscription_unref(watcher->subscription);
	vdi_delivery_worker_unref(watcher->worker);
	vdi_watchers_unref(watchers);
	vdi_free(watcher);
}

void vd_watcher_resume(struct vd_watcher *watcher)
{
	(void) vdi_delivery_worker_post(watcher, VDI_MESSAGE_RESUME);
}

void vd_watcher_close(struct vd_watcher *watcher, void (*closed)(void *arg), void *arg)
{
	struct vdi_delivery_worker *worker;
	bool			    more = true;

	if (watcher == NULL)
		return;
	worker = vdi_delivery_worker_ref(watcher->worker);
	if (atomic_load(&watcher->is_closing))
		vdi_misuse("vd_watcher_close: this watcher of cacher %s is closed already",
			   worker->watchers->usage.name);
	atomic_fetch_sub_explicit(&worker->watchers->usage.watchers, 1, memory_order_relaxed);
	watcher->closed = closed;
	watcher->closed_arg = arg;
	atomic_store(&watcher->is_closing, true);
	if (!vdi_delivery_worker_post(watcher, VDI_MESSAGE_CLOSE)) {
		if (closed)
			closed(arg);
		vdi_watcher_finish(watcher, VDI_FINISHED_USER);
	} else if (worker->kind == VDI_DELIVERY_WORKER_PULLED) {
		while (more && vdi_delivery_worker_try_run(worker, &more))
			;
	}
	vdi_delivery_worker_unref(worker);
}

/* ---- Pulling ---- */

size_t vdi_pull_deliver(void *arg, const struct vd_watch_event *events, size_t count)
{
	struct vdi_pull *pull = arg;
	size_t		 whole, taken;

	vdi_lock_acquire(&pull->lock);
	whole = VDI_MIN(count, VDI_PULL_EVENTS - pull->count);
	/* Take whole revisions if one fits, because the watch may end before the rest is pulled. */
	if (whole < count && !events[0].initial)
		while (whole > 0 && events[whole].revision == events[whole - 1].revision)
			whole--;
	if (whole == 0 && pull->count == 0)
		whole = VDI_MIN(count, (size_t) VDI_PULL_EVENTS);
	for (taken = 0; taken < whole; taken++) {
		struct vd_watch_event *event = &pull->events[pull->count++];

		*event = events[taken];
		if (event->object)
			vd_object_ref(event->object);
		if (event->old_object)
			vd_object_ref(event->old_object);
		if (event->shared)
			vdi_event_ref(event->shared);
		if (event->error) {
			pull->error = *event->error;
			event->error = &pull->error;
		}
	}
	vdi_lock_release(&pull->lock);
	return taken;
}

void vdi_pull_ended(void *arg, vd_status reason)
{
	struct vdi_pull *pull = arg;

	vdi_lock_acquire(&pull->lock);
	pull->is_ended = true;
	pull->end_reason = reason;
	vdi_lock_release(&pull->lock);
}

/* Returns true if no event is available and the watch has not ended. */
static bool pull_is_idle(struct vdi_pull *pull)
{
	bool is_idle;

	vdi_lock_acquire(&pull->lock);
	is_idle = pull->next == pull->count && !pull->is_ended;
	vdi_lock_release(&pull->lock);
	return is_idle;
}

/* Releases the pulled events once all of them were pulled. */
static void pull_release_taken(struct vdi_pull *pull)
{
	vdi_lock_acquire(&pull->lock);
	if (pull->next == pull->count)
		release_pulled(pull);
	vdi_lock_release(&pull->lock);
}

static void clear_fd(struct vdi_delivery_worker *worker)
{
	uint64_t count;

	vdi_lock_acquire(&worker->lock);
	/* EAGAIN is expected if there is nothing to read. */
	if (worker->fd >= 0 && read(worker->fd, &count, sizeof count) < 0)
		count = 0;
	vdi_lock_release(&worker->lock);
}

static void fill(struct vd_watcher *watcher)
{
	struct vdi_pull *pull = watcher->arg;
	bool		 more = true;

	pull_release_taken(pull);
	if (pull_is_idle(pull))
		(void) vdi_delivery_worker_post(watcher, VDI_MESSAGE_RESUME);
	/* If the cacher's actor is running the delivery worker at its end, it wakes the waiting threads
	 * afterwards. */
	while (more && pull_is_idle(pull) && vdi_delivery_worker_try_run(watcher->worker, &more))
		;
}

vd_status vd_watcher_next(struct vd_watcher *watcher, struct vd_watch_event *ret_event)
{
	struct vdi_pull *pull;
	vd_status	 status = VD_AGAIN;

	VDI_REQUIRE(watcher, NULL);
	VDI_REQUIRE(ret_event, NULL);
	if (watcher->worker->kind != VDI_DELIVERY_WORKER_PULLED)
		return VD_INVALID_ARGUMENT;
	pull = watcher->arg;
	if (pull_is_idle(pull))
		fill(watcher);
	if (pull_is_idle(pull)) {
		clear_fd(watcher->worker);
		if (vdi_delivery_worker_has_work(watcher->worker))
			fill(watcher);
	}
	vdi_lock_acquire(&pull->lock);
	if (pull->next < pull->count) {
		*ret_event = pull->events[pull->next++];
		status = VD_OK;
	} else if (pull->is_ended) {
		status = pull->end_reason;
	}
	vdi_lock_release(&pull->lock);
	return status;
}

vd_status vd_watcher_wait(struct vd_watcher *watcher, vd_dur timeout)
{
	struct vdi_delivery_worker *worker;
	struct vdi_pull		   *pull;
	const struct vd_env	   *env;
	vd_mono			    due;
	struct vdi_wait		    wait;
	bool			    in_time;

	VDI_REQUIRE(watcher, NULL);
	worker = watcher->worker;
	if (worker->kind != VDI_DELIVERY_WORKER_PULLED)
		return VD_INVALID_ARGUMENT;
	pull = watcher->arg;
	env = worker->watchers->env;
	VDI_TRY(vdi_wait_check(env, __func__, NULL));
	due = timeout.ns < 0 ? VD_NEVER : vd_mono_add(vd_env_now(env), timeout);
	for (;;) {
		if (pull_is_idle(pull))
			fill(watcher);
		if (!pull_is_idle(pull))
			return VD_OK;
		vdi_wait_init(&wait, env);
		vdi_lock_acquire(&worker->lock);
		if (worker->inbox_first || worker->dirty_first || worker->end_wanted || !pull_is_idle(pull))
			vdi_wait_signal(&wait);
		else
			worker->waiter = &wait;
		vdi_lock_release(&worker->lock);
		in_time = vdi_wait_until(&wait, due);
		vdi_lock_acquire(&worker->lock);
		worker->waiter = NULL;
		vdi_lock_release(&worker->lock);
		vdi_wait_fini(&wait);
		if (!in_time)
			return VD_TIMEOUT;
	}
}

int vd_watcher_fd(struct vd_watcher *watcher)
{
	struct vdi_delivery_worker *worker = watcher->worker;
	struct vdi_pull		   *pull = watcher->arg;

	if (worker->kind != VDI_DELIVERY_WORKER_PULLED)
		return -1;
	vdi_lock_acquire(&worker->lock);
	if (worker->fd < 0) {
		bool has = worker->inbox_first || worker->dirty_first || worker->end_wanted ||
			   worker->busy_first || !pull_is_idle(pull);

		worker->fd = eventfd(has, EFD_NONBLOCK | EFD_CLOEXEC);
	}
	vdi_lock_release(&worker->lock);
	return worker->fd;
}
