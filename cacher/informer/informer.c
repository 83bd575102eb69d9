/* The informer opens a watch list through an ordinary watch, which delivers into a bounded queue. The
 * informer's own actor takes the events, changes the local store and calls the handlers. So changes, resyncs
 * and new handlers never run concurrently, and only the trees of the local store are shared, under a lock.
 *
 *   watch --deliver (takes fewer events when full)--> queue --actor--> store, indexes, handlers
 *     ^------------------- vd_watcher_resume when the queue has space again ---/
 *
 * The initial state is compared with the local store, so that the first fill and later ones are the same
 * code: known and changed -> update, unknown -> add, and at its end not received again -> remove. When a
 * watch ends, the informer opens another one, from the last revision if that may still work, otherwise with
 * the initial state. Mirrors client-go's reflector and shared informer.
 */
#include "actor_poll.h"
#include "cacher.h"
#include "env.h"
#include "informer_state.h"

#define REOPEN_DELAY VD_SECONDS(1)
#define RUN_EVENTS_MAX 64

static void free_registrations(struct vd_informer_registration *registration)
{
	while (registration) {
		struct vd_informer_registration *next = registration->next;

		vdi_free(registration);
		registration = next;
	}
}

static void free_informer(struct vd_informer *informer)
{
	vdi_usage_end(&informer->usage);
	free_registrations(informer->registrations);
	free_registrations(informer->arrivals);
	vdi_informer_indexes_free(informer->indexes, informer->index_count);
	vdi_btree_fini(&informer->objects);
	vdi_btree_fini(&informer->seen);
	vdi_lock_fini(&informer->lock);
	vdi_cacher_unref(informer->cacher);
	vdi_free((char *) (uintptr_t) informer->options.namespace_name.data);
	vdi_free((char *) (uintptr_t) informer->options.label_selector.data);
	vdi_free((char *) (uintptr_t) informer->options.field_selector.data);
	vdi_free(informer);
}

/* ---- The watch ---- */

static size_t deliver(void *arg, const struct vd_watch_event *events, size_t count)
{
	struct vd_informer *informer = arg;
	size_t		    taken;

	vdi_lock_acquire(&informer->lock);
	taken = vdi_informer_queue_put(&informer->queue, events, count);
	vd_actor_wake(informer->actor);
	vdi_lock_release(&informer->lock);
	return taken;
}

static void watch_closed(void *arg)
{
	struct vd_informer *informer = arg;

	vdi_lock_acquire(&informer->lock);
	informer->watch_open = false;
	vd_actor_wake(informer->actor);
	vdi_lock_release(&informer->lock);
}

static void ended(void *arg, vd_status reason)
{
	struct vd_informer *informer = arg;

	vdi_lock_acquire(&informer->lock);
	informer->has_ended = true;
	vd_actor_wake(informer->actor);
	vdi_lock_release(&informer->lock);
}

/* Closes the watch and drops its queued events. On the actor. */
static void close_watch(struct vd_informer *informer)
{
	struct vdi_informer_event dropped[VDI_INFORMER_QUEUE_MAX];
	struct vd_watcher	 *watcher;
	size_t			  count;
	bool			  has_room;

	vdi_lock_acquire(&informer->lock);
	watcher = informer->watcher;
	informer->watcher = NULL;
	count = vdi_informer_queue_take(&informer->queue, dropped, VDI_INFORMER_QUEUE_MAX, &has_room);
	informer->has_ended = false;
	vdi_lock_release(&informer->lock);
	for (size_t i = 0; i < count; i++)
		vd_object_unref(dropped[i].object);
	if (watcher)
		vd_watcher_close(watcher, watch_closed, informer);
}

static vd_status open_watch(struct vd_informer *informer)
{
	struct vd_watch_sink	sink = { deliver, ended, informer, informer->executor };
	struct vd_watch_options options = informer->options;
	struct vd_watcher      *watcher = NULL;
	vd_status		status;

	options.allow_bookmarks = true;
	if (informer->revision && informer->set_back != atomic_load(&informer->cacher->set_back))
		vdi_informer_forget_place(informer);
	if (informer->revision) {
		options.revision = informer->revision;
	} else {
		informer->set_back = atomic_load(&informer->cacher->set_back);
		options.send_initial_events = VD_TRUE;
		options.revision = vdi_cacher_initial_revision(informer->cacher);
		informer->is_filling = true;
	}
	vdi_lock_acquire(&informer->lock);
	informer->watch_open = true;
	informer->queue.is_full = false;
	vdi_lock_release(&informer->lock);
	status = vd_cacher_watch(informer->cacher, &options, &sink, &watcher, NULL);
	vdi_lock_acquire(&informer->lock);
	if (status == VD_OK)
		informer->watcher = watcher;
	else
		informer->watch_open = false;
	vdi_lock_release(&informer->lock);
	return status;
}

/* ---- The actor ---- */

static size_t take_queued(struct vd_informer *informer, struct vdi_informer_event *events)
{
	bool   has_room_again;
	size_t count;

	vdi_lock_acquire(&informer->lock);
	count = vdi_informer_queue_take(&informer->queue, events, RUN_EVENTS_MAX, &has_room_again);
	vdi_lock_release(&informer->lock);
	/* Only this actor closes the watch, so it is still open. */
	if (has_room_again && informer->watcher)
		vd_watcher_resume(informer->watcher);
	return count;
}

/* Handles the end of the watch, after all events before it. If the watch failed, one of them was the error,
 * which has made the informer forget its place. */
static void take_end(struct vd_informer *informer)
{
	bool has_ended;

	vdi_lock_acquire(&informer->lock);
	has_ended = informer->has_ended && informer->queue.count == 0;
	vdi_lock_release(&informer->lock);
	if (!has_ended)
		return;
	if (informer->is_filling)
		vdi_informer_forget_place(informer);
	close_watch(informer);
	informer->reopen_at = vd_mono_add(vd_env_now(informer->env), REOPEN_DELAY);
}

static void take_events(struct vd_informer *informer)
{
	struct vdi_informer_event events[RUN_EVENTS_MAX];
	size_t			  count = take_queued(informer, events);
	vd_status		  status = VD_OK;

	for (size_t i = 0; i < count; i++) {
		if (status == VD_OK)
			status = vdi_informer_take_event(informer, &events[i]);
		vd_object_unref(events[i].object);
	}
	if (status != VD_OK) {
		/* Out of memory: load the initial state again a little later; handlers get the
		 * differences. */
		vdi_informer_forget_place(informer);
		close_watch(informer);
		informer->reopen_at = vd_mono_add(vd_env_now(informer->env), REOPEN_DELAY);
	} else if (count == RUN_EVENTS_MAX) {
		vd_actor_wake(informer->actor);
	} else {
		take_end(informer);
	}
}

static void cache_ready(void *arg)
{
	struct vd_informer *informer = arg;

	atomic_store(&informer->is_cache_ready, true);
	vd_actor_wake(informer->actor);
}

/* Opens a watch. A cacher that becomes ready wakes the informer; after other failures it retries later. */
static void try_open(struct vd_informer *informer, vd_mono now)
{
	vd_status status;

	if (atomic_exchange(&informer->is_cache_ready, false))
		informer->reopen_at = now;
	if (now.ns < informer->reopen_at.ns)
		return;
	status = open_watch(informer);
	if (status == VD_OK)
		return;
	informer->reopen_at = vd_mono_add(now, REOPEN_DELAY);
	vdi_ready_forget(&informer->cacher->ready, &informer->ready_waiter);
	if (status == VD_NOT_READY && !vdi_ready_listen(&informer->cacher->ready, &informer->ready_waiter))
		cache_ready(informer);
}

static void on_informer_closed(void *arg)
{
	struct vd_informer *informer = arg;
	void (*closed)(void *) = informer->closed;
	void *closed_arg = informer->closed_arg;

	free_informer(informer);
	if (closed)
		closed(closed_arg);
}

static void run(void *arg)
{
	struct vd_informer *informer = arg;
	vd_mono		    due, now;
	bool		    is_open;
	bool		    is_closed;

	vdi_lock_acquire(&informer->lock);
	is_closed = informer->is_closed;
	vdi_lock_release(&informer->lock);
	vdi_informer_take_arrivals(informer);
	if (is_closed)
		close_watch(informer); /* drops events received since the last run */
	else
		take_events(informer);
	due = is_closed ? VD_NEVER : vdi_informer_resync(informer);
	vdi_informer_drop_removed(informer);
	vdi_lock_acquire(&informer->lock);
	is_open = informer->watch_open;
	/* The informer was closed during this run, which has woken the actor again. */
	if (!is_closed && informer->is_closed) {
		vdi_lock_release(&informer->lock);
		return;
	}
	vdi_lock_release(&informer->lock);
	if (is_closed) {
		vdi_ready_forget(&informer->cacher->ready, &informer->ready_waiter);
		if (!is_open) /* otherwise the end of the watch wakes the actor */
			vd_actor_close(informer->actor, on_informer_closed, informer);
		return;
	}
	now = vd_env_now(informer->env);
	if (!is_open)
		try_open(informer, now);
	if (informer->reopen_at.ns > now.ns)
		due.ns = VDI_MIN(due.ns, informer->reopen_at.ns);
	vd_actor_set_timer(informer->actor, due);
}

/* ---- Public functions ---- */

static bool copy_bytes(struct vd_bytes from, struct vd_bytes *ret_copy)
{
	*ret_copy = (struct vd_bytes) { from.size ? vdi_strndup(from.data, from.size) : NULL, from.size };
	return from.size == 0 || ret_copy->data;
}

static vd_status build(struct vd_informer *informer, const struct vd_informer_options *options)
{
	struct vd_actor_options actor = { .name = "informer", .run = run, .arg = informer };

	if (!copy_bytes(options->namespace_name, &informer->options.namespace_name) ||
	    !copy_bytes(options->label_selector, &informer->options.label_selector) ||
	    !copy_bytes(options->field_selector, &informer->options.field_selector))
		return VD_NOMEM;
	VDI_TRY(vdi_informer_indexes_new(options->indexes, options->index_count, &informer->indexes));
	informer->index_count = options->index_count;
	return vd_executor_actor_new(informer->executor, &actor, &informer->actor);
}

static vd_status new_informer(struct vd_cacher *cacher, const struct vd_informer_options *options,
			      struct vd_informer **ret_informer, struct vd_error *reterr)
{
	struct vd_watch_options watch = VD_WATCH_OPTIONS_INIT;
	struct vd_informer     *informer;
	vd_status		status;

	if (options->index_count && options->indexes == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "indexes is NULL but index_count is %zu",
				    options->index_count);
	VDI_TRY(vdi_cacher_check_scope(cacher, options->namespace_name, VD_BYTES_NONE, reterr));
	VDI_TRY(vdi_predicate_check(cacher->codec, options->label_selector, options->field_selector, reterr));
	informer = VDI_NEW(struct vd_informer);
	if (informer == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory for an informer");
	informer->env = cacher->env;
	informer->cacher = vdi_cacher_ref(cacher);
	informer->executor = options->executor ? options->executor : vdi_env_executor(cacher->env);
	informer->options = watch;
	informer->ready_waiter = (struct vdi_ready_waiter) { .notify = cache_ready, .arg = informer };
	vdi_lock_init(&informer->lock, VDI_LOCK_CACHE_WATCHER);
	vdi_btree_init(&informer->objects, &vdi_object_btree_ops);
	vdi_btree_init(&informer->seen, &vdi_object_btree_ops);
	status = build(informer, options);
	if (status != VD_OK) {
		free_informer(informer);
		return status == VD_INVALID_ARGUMENT ?
			       vd_error_set(reterr, status,
					    "informer: each index must have a unique name and a function") :
			       vd_error_set(reterr, status, "%s for an informer", vd_status_sentence(status));
	}
	informer->usage = (struct vdi_usage) { .kind = "informer of",
					       .name = cacher->options.resource,
					       .closed_by = "vd_informer_close",
					       .env = cacher->env };
	vdi_usage_begin(&informer->usage);
	*ret_informer = informer;
	return VD_OK;
}

vd_status vd_informer_open(struct vd_cacher *cacher, const struct vd_informer_options *options,
			   struct vd_informer **ret_informer, struct vd_error *reterr)
{
	VDI_REQUIRE(cacher, reterr);
	VDI_REQUIRE(ret_informer, reterr);
	VDI_REQUIRE_OPTIONS(options, reterr);
	VDI_TRY(new_informer(cacher, options, ret_informer, reterr));
	vd_actor_wake((*ret_informer)->actor);
	return VD_OK;
}

vd_status vd_informer_new(struct vd_cacher *cacher, struct vd_bytes namespace_name,
			  struct vd_bytes label_selector, struct vd_bytes field_selector,
			  const struct vd_informer_handler *handler, struct vd_informer **ret_informer,
			  struct vd_error *reterr)
{
	struct vd_informer_options options = VD_INFORMER_OPTIONS_INIT;
	struct vd_informer	  *informer;
	vd_status		   status;

	VDI_REQUIRE(cacher, reterr);
	VDI_REQUIRE(ret_informer, reterr);
	VDI_TRY(vdi_informer_check_handler(handler, reterr));
	options.namespace_name = namespace_name;
	options.label_selector = label_selector;
	options.field_selector = field_selector;
	VDI_TRY(new_informer(cacher, &options, &informer, reterr));
	status = vd_informer_add_handler(informer, handler, NULL, reterr);
	if (status != VD_OK) {
		vd_actor_close(informer->actor, NULL, NULL); /* it never ran, so nothing uses the informer */
		free_informer(informer);
		return status;
	}
	*ret_informer = informer;
	return VD_OK;
}

vd_status vd_informer_synced_wait(struct vd_informer *informer, vd_dur timeout)
{
	struct vdi_wait		 wait;
	struct vdi_synced_waiter waiter = { .wait = &wait };
	vd_mono			 due;
	bool			 in_time = true;
	bool			 is_synced;

	VDI_REQUIRE(informer, NULL);
	VDI_TRY(vdi_wait_check(informer->env, __func__, NULL));
	due = timeout.ns < 0 ? VD_NEVER : vd_mono_add(vd_env_now(informer->env), timeout);
	vdi_wait_init(&wait, informer->env);
	vdi_lock_acquire(&informer->lock);
	is_synced = informer->is_synced;
	if (!is_synced && vdi_poller_serves_here(informer->executor)) {
		vdi_lock_release(&informer->lock);
		vdi_wait_fini(&wait);
		vdi_log(informer->env, VD_LOG_ERROR, "misuse",
			"vd_informer_synced_wait: this thread runs the poller of this informer: run the "
			"poller until the handlers' synced callback is called");
		return VD_INVALID_ARGUMENT;
	}
	if (!is_synced) {
		waiter.next = informer->waiters;
		informer->waiters = &waiter;
	}
	vdi_lock_release(&informer->lock);
	if (!is_synced)
		in_time = vdi_wait_until(&wait, due);
	vdi_lock_acquire(&informer->lock);
	for (struct vdi_synced_waiter **place = &informer->waiters; *place; place = &(*place)->next)
		if (*place == &waiter) {
			*place = waiter.next;
			break;
		}
	is_synced = informer->is_synced;
	vdi_lock_release(&informer->lock);
	vdi_wait_fini(&wait);
	return is_synced ? VD_OK : in_time ? VD_CLOSED : VD_TIMEOUT;
}

void vd_informer_close(struct vd_informer *informer, void (*done)(void *arg), void *arg)
{
	if (informer == NULL) {
		if (done)
			done(arg);
		return;
	}
	if (atomic_exchange(&informer->usage.is_closing, true))
		vdi_misuse("vd_informer_close: the informer of %s is closing already", informer->usage.name);
	vdi_lock_acquire(&informer->lock);
	informer->is_closed = true;
	informer->closed = done;
	informer->closed_arg = arg;
	vdi_informer_wake_waiters_locked(informer);
	vd_actor_wake(informer->actor);
	vdi_lock_release(&informer->lock);
}

struct vd_informer *vd_informer_close_wait(struct vd_informer *informer)
{
	struct vdi_wait wait;

	if (informer == NULL)
		return NULL;
	vdi_wait_check_close(__func__, "vd_informer_close");
	if (vdi_poller_serves_here(informer->executor))
		vdi_misuse("vd_informer_close_wait: this thread runs the poller of this informer: call "
			   "vd_informer_close, and run the poller until done is called");
	vdi_wait_init(&wait, informer->env);
	vd_informer_close(informer, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	return NULL;
}
