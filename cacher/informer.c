/* How: a WatchList through the ordinary watch. What the initial state brings is compared with what is known, so that the first fill and every later one are
 * the same code: known and changed -> update, unknown -> add, and at its end what was not seen again -> remove. One actor owns the objects'
 * changes and calls the handlers; readers of other threads see the tree under a lock.
 *
 * When a watch ends it is opened again: from the last revision if that may still work, else with the whole state (R-350..R-356).
 */
#include <vedette/informer.h>

#include "cacher.h"
#include "candidates.h"
#include "env.h"

#define REOPEN_DELAY VD_SECONDS(1)

struct vd_informer {
	/* Fixed at creation. */
	const struct vd_env	  *env;
	struct vd_cacher	  *cacher; /* a reference */
	struct vd_informer_handler handler;
	struct vd_actor		  *actor; /* opens watches again */
	struct vd_watch_options	   options; /* strings are ours */

	struct vdi_lock lock; /* VDI_LOCK_CACHE_WATCHER */

	/* Under lock. */
	struct vdi_btree objects; /* changed by the sink's thread only */
	bool		 is_synced;
	bool		 is_closed;
	struct synced_waiter {
		struct vdi_wait	     *wait;
		struct synced_waiter *next;
	} *waiters;
	void (*closed)(void *arg);
	void *closed_arg;
	bool  watch_open; /* a watcher that was not closed yet */
	bool  reopen;
	struct vd_watcher *watcher;

	/* The sink's thread; the actor while no watch is open. */
	struct vdi_btree seen; /* of the initial state under way */
	bool		 is_filling;
	bool		 was_filled;
	vd_rev		 revision; /* last one seen; 0: the whole state is needed */
	vd_mono		 reopen_at;
};

static void free_informer(struct vd_informer *informer)
{
	vdi_btree_fini(&informer->objects);
	vdi_btree_fini(&informer->seen);
	vdi_lock_fini(&informer->lock);
	vdi_cacher_unref(informer->cacher);
	vdi_free((char *) (uintptr_t) informer->options.namespace_name.data);
	vdi_free((char *) (uintptr_t) informer->options.label_selector.data);
	vdi_free((char *) (uintptr_t) informer->options.field_selector.data);
	vdi_free(informer);
}

/* ---- Changes ---- */

/* The watch starts over with the whole state: memory was missing or the stream broke. */
static void forget_place(struct vd_informer *informer)
{
	informer->revision = 0;
	informer->is_filling = false;
	vdi_btree_clear(&informer->seen);
}

/* The caller owns the reference of *ret_old. */
static vd_status store_object(struct vd_informer *informer, struct vd_object *object, struct vd_object **ret_old)
{
	void	 *old = NULL;
	vd_status status;

	vdi_lock_acquire(&informer->lock);
	status = vdi_btree_put(&informer->objects, object, &old);
	vdi_lock_release(&informer->lock);
	*ret_old = old;
	return status;
}

static vd_status set_object(struct vd_informer *informer, struct vd_object *object, bool initial)
{
	struct vd_object *old = NULL;

	VDI_TRY(store_object(informer, object, &old));
	if (old == NULL) {
		if (informer->handler.add)
			informer->handler.add(informer->handler.arg, object, initial);
	} else if (vd_object_revision(old) != vd_object_revision(object) && informer->handler.update) {
		informer->handler.update(informer->handler.arg, old, object);
	}
	vd_object_unref(old);
	return VD_OK;
}

static vd_status remove_object(struct vd_informer *informer, struct vd_bytes key, bool unknown_final_state)
{
	void	 *old = NULL;
	vd_status status;

	vdi_lock_acquire(&informer->lock);
	status = vdi_btree_remove(&informer->objects, key, &old);
	vdi_lock_release(&informer->lock);
	if (status == VD_NOT_FOUND)
		return VD_OK;
	if (status != VD_OK)
		return status;
	if (informer->handler.remove)
		informer->handler.remove(informer->handler.arg, old, unknown_final_state);
	vd_object_unref(old);
	return VD_OK;
}

/* What the new state does not hold was deleted while nobody looked. */
static vd_status remove_unseen(struct vd_informer *informer)
{
	struct vdi_btree_snapshot before;
	struct vdi_btree_cursor	  cursor;
	struct vdi_key_range	  everything = VDI_KEY_RANGE_ALL;
	struct vd_object	 *object;
	vd_status		  status = VD_OK;

	vdi_lock_acquire(&informer->lock);
	vdi_btree_snapshot(&informer->objects, &before);
	vdi_lock_release(&informer->lock);
	vdi_btree_cursor_init(&cursor, &before);
	vdi_btree_cursor_range(&cursor, &everything);
	while (status == VD_OK && (object = vdi_btree_cursor_range_next(&cursor)))
		if (vdi_btree_snapshot_get(vdi_btree_view(&informer->seen), vd_object_key(object)) == NULL)
			status = remove_object(informer, vd_object_key(object), true);
	vdi_btree_snapshot_release(&before);
	return status;
}

static void tell_synced(struct vd_informer *informer)
{
	struct synced_waiter *waiter;

	vdi_lock_acquire(&informer->lock);
	informer->is_synced = true;
	while ((waiter = informer->waiters)) {
		informer->waiters = waiter->next;
		vdi_wait_signal(waiter->wait);
	}
	vdi_lock_release(&informer->lock);
}

static vd_status finish_fill(struct vd_informer *informer, vd_rev revision)
{
	VDI_TRY(remove_unseen(informer));
	vdi_btree_clear(&informer->seen);
	informer->is_filling = false;
	informer->revision = revision;
	if (!informer->was_filled) {
		informer->was_filled = true;
		if (informer->handler.synced)
			informer->handler.synced(informer->handler.arg);
		tell_synced(informer);
	}
	return VD_OK;
}

static vd_status take_event(struct vd_informer *informer, const struct vd_watch_event *event)
{
	vd_status status = VD_OK;

	switch (event->type) {
	case VD_WATCH_ADDED:
	case VD_WATCH_MODIFIED:
		if (event->initial)
			VDI_TRY(vdi_btree_put(&informer->seen, event->object, NULL));
		status = set_object(informer, event->object, event->initial && !informer->was_filled);
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
		informer->revision = event->revision;
	return status;
}

/* ---- The watch ---- */

static void end_watch(struct vd_informer *informer);

static size_t deliver(void *arg, const struct vd_watch_event *events, size_t count)
{
	struct vd_informer *informer = arg;

	for (size_t i = 0; i < count; i++)
		if (take_event(informer, &events[i]) != VD_OK) {
			/* Out of memory: the whole state again, a little later; the difference tells the handlers. */
			forget_place(informer);
			end_watch(informer);
			return count;
		}
	return count;
}

static void watch_closed(void *arg)
{
	struct vd_informer *informer = arg;

	vdi_lock_acquire(&informer->lock);
	informer->watch_open = false;
	vd_actor_wake(informer->actor);
	vdi_lock_release(&informer->lock);
}

static void end_watch(struct vd_informer *informer)
{
	struct vd_watcher *watcher;

	vdi_lock_acquire(&informer->lock);
	watcher = informer->watcher;
	informer->watcher = NULL;
	informer->reopen = true;
	informer->reopen_at = vd_mono_add(vd_env_now(informer->env), REOPEN_DELAY);
	vdi_lock_release(&informer->lock);
	if (watcher)
		vd_watcher_close(watcher, watch_closed, informer);
}

static void ended(void *arg, vd_status reason)
{
	struct vd_informer *informer = arg;

	if (informer->is_filling || reason == VD_EXPIRED)
		forget_place(informer);
	end_watch(informer);
}

static vd_status open_watch(struct vd_informer *informer, struct vd_error *reterr)
{
	struct vd_watch_sink	sink = { deliver, ended, informer, vdi_env_runner(informer->env) };
	struct vd_watch_options options = informer->options;
	struct vd_watcher      *watcher = NULL;
	vd_status		status;

	options.allow_bookmarks = true;
	if (informer->revision) {
		options.revision = informer->revision;
	} else {
		options.send_initial_events = VD_TRUE;
		informer->is_filling = true;
	}
	vdi_lock_acquire(&informer->lock);
	informer->watch_open = true;
	informer->reopen = false;
	vdi_lock_release(&informer->lock);
	status = vd_cacher_watch(informer->cacher, &options, &sink, &watcher, reterr);
	vdi_lock_acquire(&informer->lock);
	if (status != VD_OK)
		informer->watch_open = false;
	else if (!informer->is_closed && !informer->reopen) {
		informer->watcher = watcher;
		watcher = NULL;
	}
	vdi_lock_release(&informer->lock);
	/* It ended, or the informer was closed, before we could note it. */
	if (status == VD_OK && watcher)
		vd_watcher_close(watcher, watch_closed, informer);
	return status;
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
	bool		    is_open;
	bool		    is_closed;
	vd_mono		    now = vd_env_now(informer->env);

	vdi_lock_acquire(&informer->lock);
	is_open = informer->watch_open;
	is_closed = informer->is_closed;
	vdi_lock_release(&informer->lock);
	if (is_open)
		return;
	if (is_closed) {
		vd_actor_close(informer->actor, informer_gone, informer);
		return;
	}
	if (now.ns >= informer->reopen_at.ns && open_watch(informer, NULL) != VD_OK)
		informer->reopen_at = vd_mono_add(now, REOPEN_DELAY);
	vd_actor_set_timer(informer->actor, informer->reopen_at.ns > now.ns ? informer->reopen_at : VD_NEVER);
}

/* ---- The public side ---- */

static bool copy_bytes(struct vd_bytes from, struct vd_bytes *ret_copy)
{
	*ret_copy = (struct vd_bytes) { from.size ? vdi_strndup(from.data, from.size) : NULL, from.size };
	return from.size == 0 || ret_copy->data;
}

static vd_status check_selectors(struct vd_cacher *cacher, struct vd_bytes label_selector, struct vd_bytes field_selector, struct vd_error *reterr)
{
	struct vdi_predicate_options options = { .label_selector = label_selector, .field_selector = field_selector };
	struct vdi_predicate	    *predicate;

	VDI_TRY(vdi_predicate_new(cacher->codec, &options, &predicate, reterr));
	vdi_predicate_unref(predicate);
	return VD_OK;
}

vd_status vd_informer_new(struct vd_cacher *cacher, struct vd_bytes namespace_name, struct vd_bytes label_selector, struct vd_bytes field_selector,
			  const struct vd_informer_handler *handler, struct vd_informer **ret_informer, struct vd_error *reterr)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct vd_actor_options actor = { .name = "informer", .run = run };
	struct vd_informer     *informer;
	vd_status		status;

	VDI_TRY(check_selectors(cacher, label_selector, field_selector, reterr));
	informer = VDI_NEW(struct vd_informer);
	if (informer == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory for an informer");
	informer->env = cacher->env;
	informer->cacher = vdi_cacher_ref(cacher);
	informer->handler = *handler;
	informer->options = options;
	vdi_lock_init(&informer->lock, VDI_LOCK_CACHE_WATCHER);
	vdi_btree_init(&informer->objects, &vdi_object_btree_ops);
	vdi_btree_init(&informer->seen, &vdi_object_btree_ops);
	actor.arg = informer;
	status = copy_bytes(namespace_name, &informer->options.namespace_name) &&
				 copy_bytes(label_selector, &informer->options.label_selector) &&
				 copy_bytes(field_selector, &informer->options.field_selector) ?
			 vd_actor_new(cacher->env, &actor, &informer->actor) :
			 VD_NOMEM;
	if (status != VD_OK) {
		free_informer(informer);
		return vd_error_set(reterr, status, "%s for an informer", vd_status_sentence(status));
	}
	*ret_informer = informer;
	vd_actor_wake(informer->actor);
	return VD_OK;
}

vd_status vd_informer_synced_wait(struct vd_informer *informer, vd_dur timeout)
{
	vd_mono		     due = timeout.ns < 0 ? VD_NEVER : vd_mono_add(vd_env_now(informer->env), timeout);
	struct vdi_wait	     wait;
	struct synced_waiter waiter = { .wait = &wait };
	bool		     in_time = true;
	bool		     is_synced;

	vdi_wait_init(&wait, informer->env);
	vdi_lock_acquire(&informer->lock);
	is_synced = informer->is_synced;
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

void vd_informer_close(struct vd_informer *informer, void (*done)(void *arg), void *arg)
{
	struct vd_watcher    *watcher;
	struct synced_waiter *waiter;

	if (informer == NULL) {
		if (done)
			done(arg);
		return;
	}
	vdi_lock_acquire(&informer->lock);
	informer->is_closed = true;
	informer->closed = done;
	informer->closed_arg = arg;
	watcher = informer->watcher;
	informer->watcher = NULL;
	while ((waiter = informer->waiters)) {
		informer->waiters = waiter->next;
		vdi_wait_signal(waiter->wait);
	}
	/* With a watch open its end wakes the actor; then nothing of ours is touched here any more. */
	if (watcher == NULL)
		vd_actor_wake(informer->actor);
	vdi_lock_release(&informer->lock);
	if (watcher)
		vd_watcher_close(watcher, watch_closed, informer);
}

struct vd_informer *vd_informer_close_wait(struct vd_informer *informer)
{
	struct vdi_wait wait;

	if (informer == NULL)
		return NULL;
	vdi_wait_init(&wait, informer->env);
	vd_informer_close(informer, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	return NULL;
}
