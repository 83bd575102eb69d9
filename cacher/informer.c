/* How: a WatchList through the ordinary watch, whose events go into a bounded queue; the informer's own actor takes them out, changes the picture and calls the
 * handlers. So one actor owns everything but the picture's trees, which are under a lock, and new handlers, resyncs and changes come one after the other.
 *
 *   watch --deliver (takes less when full)--> queue --actor--> picture, indexes, handlers --(room again)--> vd_watcher_resume
 *
 * What the initial state brings is compared with what is known, so that the first fill and every later one are the same code: known and changed -> update,
 * unknown -> add, and at its end what was not seen again -> remove. When a watch ends it is opened again: from the last revision if that may still work, else with
 * the whole state (R-350..R-356).
 */
#include <vedette/informer.h>

#include "actor_poll.h"
#include "cacher.h"
#include "candidates.h"
#include "env.h"
#include "informer_index.h"
#include "informer_queue.h"

#define REOPEN_DELAY VD_SECONDS(1)
#define TURN_MAX 64

struct vd_informer_registration {
	struct vd_informer_handler	 handler;
	struct vd_informer_registration *next;
	bool				 is_synced;
	bool				 is_removed; /* under the informer's lock */
	vd_mono				 resync_due;
	void (*removed)(void *arg);
	void *removed_arg;
};

struct vd_informer {
	/* Fixed at creation. */
	const struct vd_env	  *env;
	struct vd_cacher	  *cacher; /* a reference */
	const struct vd_runner	  *runner;
	struct vd_actor		  *actor;
	struct vdi_usage	   usage;
	struct vd_watch_options	   options; /* strings are ours */
	struct vdi_informer_index *indexes;
	size_t			   index_count;

	struct vdi_lock lock; /* VDI_LOCK_CACHE_WATCHER */

	/* Under lock. */
	struct vdi_btree objects; /* changed by the actor only, as the indexes are */
	vd_rev		 shown_revision;
	bool		 is_synced;
	bool		 is_closed;
	struct synced_waiter {
		struct vdi_wait	     *wait;
		struct synced_waiter *next;
	} *waiters;
	void (*closed)(void *arg);
	void *closed_arg;
	struct vd_informer_registration *arrivals; /* not seen by the actor yet, newest first */
	struct vdi_informer_queue queue;
	bool	       has_ended;  /* the watch, behind what is queued */
	vd_status      end_reason;
	bool	       watch_open; /* a watcher that was not closed yet */
	struct vd_watcher *watcher;

	/* The actor. */
	struct vd_informer_registration *registrations; /* in the order in which they came */
	struct vdi_btree		 seen;		/* of the initial state under way */
	bool				 is_filling;
	bool				 was_filled;
	vd_rev				 revision; /* last one seen; 0: the whole state is needed */
	vd_mono				 reopen_at;

	struct vdi_ready_waiter ready_waiter;
	atomic_bool		is_cache_ready; /* it was not when the watch was to be opened, and is now */
};

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

/* ---- Telling ---- */

static bool may_call(struct vd_informer *informer, const struct vd_informer_registration *registration)
{
	bool may;

	vdi_lock_acquire(&informer->lock);
	may = !registration->is_removed && !informer->is_closed;
	vdi_lock_release(&informer->lock);
	return may;
}

static void tell_add(struct vd_informer *informer, struct vd_object *object)
{
	for (struct vd_informer_registration *to = informer->registrations; to; to = to->next)
		if (to->handler.add && may_call(informer, to))
			to->handler.add(to->handler.arg, object, !to->is_synced);
}

static void tell_update(struct vd_informer *informer, struct vd_object *old_object, struct vd_object *object)
{
	for (struct vd_informer_registration *to = informer->registrations; to; to = to->next)
		if (to->handler.update && may_call(informer, to))
			to->handler.update(to->handler.arg, old_object, object);
}

static void tell_remove(struct vd_informer *informer, struct vd_object *object, bool unknown_final_state)
{
	for (struct vd_informer_registration *to = informer->registrations; to; to = to->next)
		if (to->handler.remove && may_call(informer, to))
			to->handler.remove(to->handler.arg, object, unknown_final_state);
}

static void tell_synced(struct vd_informer *informer, struct vd_informer_registration *to)
{
	if (to->is_synced)
		return;
	to->is_synced = true;
	if (to->handler.synced && may_call(informer, to))
		to->handler.synced(to->handler.arg);
}

static void wake_waiters_locked(struct vd_informer *informer)
{
	struct synced_waiter *waiter;

	while ((waiter = informer->waiters)) {
		informer->waiters = waiter->next;
		vdi_wait_signal(waiter->wait);
	}
}

static void snapshot_objects(struct vd_informer *informer, struct vdi_btree_snapshot *ret_snapshot, struct vdi_btree_cursor *cursor)
{
	struct vdi_key_range everything = VDI_KEY_RANGE_ALL;

	vdi_lock_acquire(&informer->lock);
	vdi_btree_snapshot(&informer->objects, ret_snapshot);
	vdi_lock_release(&informer->lock);
	vdi_btree_cursor_init(cursor, ret_snapshot);
	(void) vdi_btree_cursor_range(cursor, &everything);
}

/* ---- Changes ---- */

/* The watch starts over with the whole state: memory was missing or the stream broke. */
static void forget_place(struct vd_informer *informer)
{
	informer->revision = 0;
	informer->is_filling = false;
	vdi_btree_clear(&informer->seen);
}

/* object takes the place of what has its key, or (object NULL) that goes. The caller owns the reference of *ret_old. VD_NOT_FOUND: nothing to remove. */
static vd_status change(struct vd_informer *informer, struct vd_bytes key, struct vd_object *object, struct vd_object **ret_old)
{
	struct vdi_index_change	  old_entries, entries;
	struct vdi_btree_snapshot before;
	struct vd_object	 *old;
	vd_status		  status;

	/* Only this actor changes the trees. */
	old = vdi_btree_snapshot_get(vdi_btree_view(&informer->objects), key);
	if (old == NULL && object == NULL)
		return VD_NOT_FOUND;
	VDI_TRY(vdi_index_change_prepare(&old_entries, informer->indexes, informer->index_count, old));
	status = vdi_index_change_prepare(&entries, informer->indexes, informer->index_count, object);
	if (status != VD_OK) {
		vdi_index_change_fini(&old_entries);
		return status;
	}
	if (old)
		vd_object_ref(old);
	vdi_lock_acquire(&informer->lock);
	vdi_btree_snapshot(&informer->objects, &before);
	status = object ? vdi_btree_put(&informer->objects, object, NULL) : vdi_btree_remove(&informer->objects, key, NULL);
	if (status == VD_OK)
		status = vdi_index_change_apply(&old_entries, &entries, informer->indexes, informer->index_count);
	if (status != VD_OK) {
		struct vdi_btree undone = informer->objects;

		informer->objects.live = before;
		vdi_btree_fini(&undone);
	} else {
		vdi_btree_snapshot_release(&before);
	}
	vdi_lock_release(&informer->lock);
	vdi_index_change_fini(&old_entries);
	vdi_index_change_fini(&entries);
	if (status == VD_OK)
		*ret_old = old;
	else
		vd_object_unref(old);
	return status;
}

static vd_status set_object(struct vd_informer *informer, struct vd_object *object)
{
	struct vd_object *old = NULL;

	VDI_TRY(change(informer, vd_object_key(object), object, &old));
	if (old == NULL)
		tell_add(informer, object);
	else if (vd_object_revision(old) != vd_object_revision(object)) /* */
		tell_update(informer, old, object);
	vd_object_unref(old);
	return VD_OK;
}

static vd_status remove_object(struct vd_informer *informer, struct vd_bytes key, bool unknown_final_state)
{
	struct vd_object *old = NULL;
	vd_status	  status = change(informer, key, NULL, &old);

	if (status == VD_NOT_FOUND)
		return VD_OK;
	if (status != VD_OK)
		return status;
	tell_remove(informer, old, unknown_final_state);
	vd_object_unref(old);
	return VD_OK;
}

/* What the new state does not hold was deleted while nobody looked. */
static vd_status remove_unseen(struct vd_informer *informer)
{
	struct vdi_btree_snapshot before;
	struct vdi_btree_cursor	  cursor;
	struct vd_object	 *object;
	vd_status		  status = VD_OK;

	snapshot_objects(informer, &before, &cursor);
	while (status == VD_OK && (object = vdi_btree_cursor_range_next(&cursor)))
		if (vdi_btree_snapshot_get(vdi_btree_view(&informer->seen), vd_object_key(object)) == NULL)
			status = remove_object(informer, vd_object_key(object), true);
	vdi_btree_snapshot_release(&before);
	return status;
}

static void note_revision(struct vd_informer *informer, vd_rev revision)
{
	informer->revision = revision;
	vdi_lock_acquire(&informer->lock);
	informer->shown_revision = revision;
	vdi_lock_release(&informer->lock);
}

static vd_status finish_fill(struct vd_informer *informer, vd_rev revision)
{
	VDI_TRY(remove_unseen(informer));
	vdi_btree_clear(&informer->seen);
	informer->is_filling = false;
	informer->was_filled = true;
	note_revision(informer, revision);
	for (struct vd_informer_registration *to = informer->registrations; to; to = to->next)
		tell_synced(informer, to);
	vdi_lock_acquire(&informer->lock);
	informer->is_synced = true;
	wake_waiters_locked(informer);
	vdi_lock_release(&informer->lock);
	return VD_OK;
}

static vd_status take_event(struct vd_informer *informer, const struct vdi_informer_event *event)
{
	vd_status status = VD_OK;

	switch (event->type) {
	case VD_WATCH_ADDED:
	case VD_WATCH_MODIFIED:
		if (event->initial)
			VDI_TRY(vdi_btree_put(&informer->seen, event->object, NULL));
		status = set_object(informer, event->object);
		break;
	case VD_WATCH_DELETED:
		status = remove_object(informer, vd_object_key(event->object), false);
		break;
	case VD_WATCH_BOOKMARK:
		if (event->initial_events_end)
			return finish_fill(informer, event->revision);
		break;
	case VD_WATCH_ERROR:
		forget_place(informer);
		return VD_OK;
	}
	if (status == VD_OK && !informer->is_filling)
		note_revision(informer, event->revision);
	return status;
}

/* ---- Handlers that come, go, and want to hear everything again ---- */

static void tell_everything(struct vd_informer *informer, struct vd_informer_registration *to, bool as_update)
{
	struct vdi_btree_snapshot snapshot;
	struct vdi_btree_cursor	  cursor;
	struct vd_object	 *object;

	snapshot_objects(informer, &snapshot, &cursor);
	while ((object = vdi_btree_cursor_range_next(&cursor)) && may_call(informer, to)) {
		if (as_update && to->handler.update)
			to->handler.update(to->handler.arg, object, object);
		else if (!as_update && to->handler.add)
			to->handler.add(to->handler.arg, object, true);
	}
	vdi_btree_snapshot_release(&snapshot);
}

static void take_arrivals(struct vd_informer *informer)
{
	struct vd_informer_registration **end = &informer->registrations, *arrivals, *in_order = NULL;

	vdi_lock_acquire(&informer->lock);
	arrivals = informer->arrivals;
	informer->arrivals = NULL;
	vdi_lock_release(&informer->lock);
	while (arrivals) {
		struct vd_informer_registration *next = arrivals->next;

		arrivals->next = in_order;
		in_order = arrivals;
		arrivals = next;
	}
	while (*end)
		end = &(*end)->next;
	*end = in_order;
	for (struct vd_informer_registration *to = in_order; to; to = to->next) {
		to->resync_due = to->handler.resync_period.ns ? vd_mono_add(vd_env_now(informer->env), to->handler.resync_period) : VD_NEVER;
		tell_everything(informer, to, false);
		if (informer->was_filled)
			tell_synced(informer, to);
	}
}

static void drop_removed(struct vd_informer *informer)
{
	for (struct vd_informer_registration **place = &informer->registrations; *place;) {
		struct vd_informer_registration *registration = *place;
		bool				 is_removed;

		vdi_lock_acquire(&informer->lock);
		is_removed = registration->is_removed;
		vdi_lock_release(&informer->lock);
		if (!is_removed) {
			place = &registration->next;
			continue;
		}
		*place = registration->next;
		if (registration->removed)
			registration->removed(registration->removed_arg);
		vdi_free(registration);
	}
}

/* Returns when the next one is due. */
static vd_mono resync(struct vd_informer *informer)
{
	vd_mono now = vd_env_now(informer->env), due = VD_NEVER;

	for (struct vd_informer_registration *to = informer->registrations; to; to = to->next) {
		if (to->resync_due.ns <= now.ns) {
			if (informer->was_filled)
				tell_everything(informer, to, true);
			to->resync_due = vd_mono_add(now, to->handler.resync_period);
		}
		due.ns = VDI_MIN(due.ns, to->resync_due.ns);
	}
	return due;
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
	informer->end_reason = reason;
	vd_actor_wake(informer->actor);
	vdi_lock_release(&informer->lock);
}

/* The actor. What is queued of it is forgotten. */
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
	struct vd_watch_sink	sink = { deliver, ended, informer, informer->runner };
	struct vd_watch_options options = informer->options;
	struct vd_watcher      *watcher = NULL;
	struct vd_store_status	store = { 0 };
	vd_status		status;

	options.allow_bookmarks = true;
	if (informer->revision) {
		options.revision = informer->revision;
	} else {
		options.send_initial_events = VD_TRUE;
		/* What cannot be proved to be the newest is taken as it is, as client-go's reflector does. */
		if (vd_store_status_get(informer->cacher->store, &store) != VD_OK || !store.progress)
			options.revision = VD_REVISION_ANY;
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
	count = vdi_informer_queue_take(&informer->queue, events, TURN_MAX, &has_room_again);
	vdi_lock_release(&informer->lock);
	/* Only this actor closes it. */
	if (has_room_again && informer->watcher)
		vd_watcher_resume(informer->watcher);
	return count;
}

/* The end of the watch, when everything before it was taken. */
static bool take_end(struct vd_informer *informer)
{
	bool	  has_ended;
	vd_status reason;

	vdi_lock_acquire(&informer->lock);
	has_ended = informer->has_ended && informer->queue.count == 0;
	reason = informer->end_reason;
	vdi_lock_release(&informer->lock);
	if (!has_ended)
		return false;
	if (informer->is_filling || reason == VD_EXPIRED)
		forget_place(informer);
	close_watch(informer);
	informer->reopen_at = vd_mono_add(vd_env_now(informer->env), REOPEN_DELAY);
	return true;
}

static void take_events(struct vd_informer *informer)
{
	struct vdi_informer_event events[TURN_MAX];
	size_t			  count = take_queued(informer, events);
	vd_status		  status = VD_OK;

	for (size_t i = 0; i < count; i++) {
		if (status == VD_OK)
			status = take_event(informer, &events[i]);
		vd_object_unref(events[i].object);
	}
	if (status != VD_OK) {
		/* Out of memory: the whole state again, a little later; the difference tells the handlers. */
		forget_place(informer);
		close_watch(informer);
		informer->reopen_at = vd_mono_add(vd_env_now(informer->env), REOPEN_DELAY);
	} else if (count == TURN_MAX) {
		vd_actor_wake(informer->actor);
	} else {
		(void) take_end(informer);
	}
}

static void cache_ready(void *arg)
{
	struct vd_informer *informer = arg;

	atomic_store(&informer->is_cache_ready, true);
	vd_actor_wake(informer->actor);
}

/* A cache that fills wakes the informer when it is full; everything else that stands in the way takes its time. */
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

static void informer_gone(void *arg)
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
	drop_removed(informer);
	take_arrivals(informer);
	if (is_closed)
		close_watch(informer); /* also what came since the last time */
	else
		take_events(informer);
	due = is_closed ? VD_NEVER : resync(informer);
	drop_removed(informer);
	vdi_lock_acquire(&informer->lock);
	is_open = informer->watch_open;
	/* A close that came meanwhile has woken us again. */
	if (!is_closed && informer->is_closed) {
		vdi_lock_release(&informer->lock);
		return;
	}
	vdi_lock_release(&informer->lock);
	if (is_closed) {
		vdi_ready_forget(&informer->cacher->ready, &informer->ready_waiter);
		if (!is_open) /* else its end wakes us */
			vd_actor_close(informer->actor, informer_gone, informer);
		return;
	}
	now = vd_env_now(informer->env);
	if (!is_open)
		try_open(informer, now);
	if (informer->reopen_at.ns > now.ns)
		due.ns = VDI_MIN(due.ns, informer->reopen_at.ns);
	vd_actor_set_timer(informer->actor, due);
}

/* ---- The public side ---- */

static bool copy_bytes(struct vd_bytes from, struct vd_bytes *ret_copy)
{
	*ret_copy = (struct vd_bytes) { from.size ? vdi_strndup(from.data, from.size) : NULL, from.size };
	return from.size == 0 || ret_copy->data;
}

static vd_status build(struct vd_informer *informer, const struct vd_informer_options *options)
{
	struct vd_actor_options actor = { .name = "informer", .run = run, .arg = informer };

	if (!copy_bytes(options->namespace_name, &informer->options.namespace_name) || !copy_bytes(options->label_selector, &informer->options.label_selector) ||
	    !copy_bytes(options->field_selector, &informer->options.field_selector))
		return VD_NOMEM;
	VDI_TRY(vdi_informer_indexes_new(options->indexes, options->index_count, &informer->indexes));
	informer->index_count = options->index_count;
	return vd_runner_actor_new(informer->runner, &actor, &informer->actor);
}

static vd_status new_informer(struct vd_cacher *cacher, const struct vd_informer_options *options, struct vd_informer **ret_informer,
			      struct vd_error *reterr)
{
	struct vd_watch_options watch = VD_WATCH_OPTIONS_INIT;
	struct vd_informer     *informer;
	vd_status		status;

	if (options->index_count && options->indexes == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "indexes is NULL but index_count is %zu", options->index_count);
	VDI_TRY(vdi_cacher_check_scope(cacher, options->namespace_name, VD_BYTES_NONE, reterr));
	VDI_TRY(vdi_predicate_check(cacher->codec, options->label_selector, options->field_selector, reterr));
	informer = VDI_NEW(struct vd_informer);
	if (informer == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory for an informer");
	informer->env = cacher->env;
	informer->cacher = vdi_cacher_ref(cacher);
	informer->runner = options->runner ? options->runner : vdi_env_runner(cacher->env);
	informer->options = watch;
	informer->ready_waiter = (struct vdi_ready_waiter) { .told = cache_ready, .arg = informer };
	vdi_lock_init(&informer->lock, VDI_LOCK_CACHE_WATCHER);
	vdi_btree_init(&informer->objects, &vdi_object_btree_ops);
	vdi_btree_init(&informer->seen, &vdi_object_btree_ops);
	status = build(informer, options);
	if (status != VD_OK) {
		free_informer(informer);
		return status == VD_INVALID_ARGUMENT ? vd_error_set(reterr, status, "each index of an informer needs a name of its own and a function") :
						       vd_error_set(reterr, status, "%s for an informer", vd_status_sentence(status));
	}
	informer->usage = (struct vdi_usage) { .kind = "informer of", .name = cacher->options.resource, .closed_by = "vd_informer_close", .env = cacher->env };
	vdi_usage_begin(&informer->usage);
	*ret_informer = informer;
	return VD_OK;
}

vd_status vd_informer_open(struct vd_cacher *cacher, const struct vd_informer_options *options, struct vd_informer **ret_informer,
			   struct vd_error *reterr)
{
	VDI_REQUIRE(cacher, reterr);
	VDI_REQUIRE(ret_informer, reterr);
	VDI_REQUIRE_OPTIONS(options, reterr);
	VDI_TRY(new_informer(cacher, options, ret_informer, reterr));
	vd_actor_wake((*ret_informer)->actor);
	return VD_OK;
}

static vd_status check_handler(const struct vd_informer_handler *handler, struct vd_error *reterr)
{
	VDI_REQUIRE(handler, reterr);
	if (handler->resync_period.ns && handler->resync_period.ns < VD_SECONDS(1).ns)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "a resync period is at least 1 s");
	return VD_OK;
}

vd_status vd_informer_new(struct vd_cacher *cacher, struct vd_bytes namespace_name, struct vd_bytes label_selector, struct vd_bytes field_selector,
			  const struct vd_informer_handler *handler, struct vd_informer **ret_informer, struct vd_error *reterr)
{
	struct vd_informer_options options = VD_INFORMER_OPTIONS_INIT;
	struct vd_informer	  *informer;
	vd_status		   status;

	VDI_REQUIRE(cacher, reterr);
	VDI_REQUIRE(ret_informer, reterr);
	VDI_TRY(check_handler(handler, reterr));
	options.namespace_name = namespace_name;
	options.label_selector = label_selector;
	options.field_selector = field_selector;
	VDI_TRY(new_informer(cacher, &options, &informer, reterr));
	status = vd_informer_add_handler(informer, handler, NULL, reterr);
	if (status != VD_OK) {
		vd_informer_close(informer, NULL, NULL);
		return status;
	}
	*ret_informer = informer;
	return VD_OK;
}

vd_status vd_informer_add_handler(struct vd_informer *informer, const struct vd_informer_handler *handler,
				  struct vd_informer_registration **ret_registration, struct vd_error *reterr)
{
	struct vd_informer_registration *registration;
	bool				 is_closed;

	VDI_REQUIRE(informer, reterr);
	VDI_TRY(check_handler(handler, reterr));
	registration = VDI_NEW(struct vd_informer_registration);
	if (registration == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory for a handler");
	registration->handler = *handler;
	vdi_lock_acquire(&informer->lock);
	is_closed = informer->is_closed;
	if (!is_closed) {
		registration->next = informer->arrivals;
		informer->arrivals = registration;
		vd_actor_wake(informer->actor);
	}
	vdi_lock_release(&informer->lock);
	if (is_closed) {
		vdi_free(registration);
		return vd_error_set(reterr, VD_CLOSED, "the informer is closed");
	}
	if (ret_registration)
		*ret_registration = registration;
	return VD_OK;
}

void vd_informer_remove_handler(struct vd_informer *informer, struct vd_informer_registration *registration, void (*done)(void *arg), void *arg)
{
	vdi_lock_acquire(&informer->lock);
	registration->is_removed = true;
	registration->removed = done;
	registration->removed_arg = arg;
	vd_actor_wake(informer->actor);
	vdi_lock_release(&informer->lock);
}

vd_status vd_informer_synced_wait(struct vd_informer *informer, vd_dur timeout)
{
	struct vdi_wait	     wait;
	struct synced_waiter waiter = { .wait = &wait };
	vd_mono		     due;
	bool		     in_time = true;
	bool		     is_synced;

	VDI_REQUIRE(informer, NULL);
	VDI_TRY(vdi_wait_check(informer->env, __func__, NULL));
	due = timeout.ns < 0 ? VD_NEVER : vd_mono_add(vd_env_now(informer->env), timeout);
	vdi_wait_init(&wait, informer->env);
	vdi_lock_acquire(&informer->lock);
	is_synced = informer->is_synced;
	if (!is_synced && vdi_poller_serves_here(informer->runner)) {
		vdi_lock_release(&informer->lock);
		vdi_wait_fini(&wait);
		vdi_log(informer->env, VD_LOG_ERROR, "misuse",
			"vd_informer_synced_wait: this thread runs the poller of this informer: run it until the handlers are told that they are synced");
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
	for (struct synced_waiter **place = &informer->waiters; *place; place = &(*place)->next)
		if (*place == &waiter) {
			*place = waiter.next;
			break;
		}
	is_synced = informer->is_synced;
	vdi_lock_release(&informer->lock);
	vdi_wait_fini(&wait);
	return is_synced ? VD_OK : in_time ? VD_CLOSED : VD_TIMEOUT;
}

struct vd_object *vd_informer_get(struct vd_informer *informer, struct vd_bytes namespace_name, struct vd_bytes name)
{
	struct vd_cacher *cacher = informer->cacher;
	char		  buffer[VDI_STORAGE_KEY_MAX];
	struct vd_bytes	  key;
	struct vd_object *object;
	bool		  is_single;

	if (!vdi_scope_key(vdi_cacher_prefix(cacher), cacher->options.cluster_scoped, namespace_name, name, buffer, &key, &is_single) || !is_single)
		return NULL;
	vdi_lock_acquire(&informer->lock);
	object = vdi_btree_snapshot_get(vdi_btree_view(&informer->objects), key);
	if (object)
		vd_object_ref(object);
	vdi_lock_release(&informer->lock);
	return object;
}

size_t vd_informer_count(struct vd_informer *informer)
{
	size_t count;

	vdi_lock_acquire(&informer->lock);
	count = vdi_btree_count(&informer->objects);
	vdi_lock_release(&informer->lock);
	return count;
}

vd_rev vd_informer_revision(struct vd_informer *informer)
{
	vd_rev revision;

	vdi_lock_acquire(&informer->lock);
	revision = informer->shown_revision;
	vdi_lock_release(&informer->lock);
	return revision;
}

size_t vd_informer_visit(struct vd_informer *informer, vd_object_visit_fn visit, void *arg)
{
	struct vdi_btree_snapshot snapshot;
	struct vdi_btree_cursor	  cursor;
	struct vd_object	 *object;
	size_t			  visited = 0;

	if (visit == NULL)
		return 0;
	snapshot_objects(informer, &snapshot, &cursor);
	while ((object = vdi_btree_cursor_range_next(&cursor))) {
		visited++;
		if (!visit(arg, object))
			break;
	}
	vdi_btree_snapshot_release(&snapshot);
	return visited;
}

size_t vd_informer_visit_index(struct vd_informer *informer, const char *index, struct vd_bytes value, vd_object_visit_fn visit, void *arg)
{
	struct vdi_btree_snapshot snapshot;
	vd_status		  status;
	size_t			  visited;

	if (index == NULL || visit == NULL)
		return 0;
	vdi_lock_acquire(&informer->lock);
	status = vdi_informer_index_snapshot(informer->indexes, informer->index_count, index, &snapshot);
	vdi_lock_release(&informer->lock);
	if (status != VD_OK)
		return 0;
	visited = vdi_informer_index_visit(&snapshot, value, visit, arg);
	vdi_btree_snapshot_release(&snapshot);
	return visited;
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
	wake_waiters_locked(informer);
	vd_actor_wake(informer->actor);
	vdi_lock_release(&informer->lock);
}

struct vd_informer *vd_informer_close_wait(struct vd_informer *informer)
{
	struct vdi_wait wait;

	if (informer == NULL)
		return NULL;
	vdi_wait_check_close(__func__, "vd_informer_close");
	if (vdi_poller_serves_here(informer->runner))
		vdi_misuse("vd_informer_close_wait: this thread runs the poller of this informer: use vd_informer_close, and run the poller until its done was told");
	vdi_wait_init(&wait, informer->env);
	vd_informer_close(informer, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	return NULL;
}
