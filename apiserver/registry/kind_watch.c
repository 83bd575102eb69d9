/* The watch delivers on a thread of the env. An actor opens the watch, closes it when it has ended, and opens
 * it again after a delay.
 *
 *   CLOSED --open--> OPEN --ended--> ENDED --close--> CLOSING --closed--> CLOSED (a little later again) /
 */
#include "kind_watch.h"

#include "cacher.h"
#include "env.h"
#include "lock.h"

#define REOPEN_DELAY VD_SECONDS(1)

struct vdi_kind_watch {
	/* Fixed. */
	const struct vd_env	     *env;
	struct vdi_resource	     *resource; /* one reference */
	struct vdi_kind_watch_handler handler;
	struct vd_actor		     *actor;

	struct vdi_lock lock; /* VDI_LOCK_CONTROLLER */

	/* Under lock. */
	bool is_open; /* a watcher exists that is not closed yet */
	bool has_ended;
	bool is_stalled;
	bool is_leaving; /* the kind is going away: the next end of the watch is final */
	bool is_closed;
	void (*closed)(void *arg);
	void *closed_arg;

	/* Owned by the watch's thread while it is open, else by the actor. */
	vd_rev	 revision; /* 0: start with all objects */
	uint64_t fill;
	bool	 is_filling;

	/* Owned by the actor. */
	struct vd_watcher *watcher;
	vd_mono		   reopen_at;
	vd_mono		   resume_at;
	bool		   is_last; /* opened after is_leaving was set */
};

/* ---- Events ---- */

static bool take(struct vdi_kind_watch *watch, const struct vd_watch_event *event)
{
	switch (event->type) {
	case VD_WATCH_ADDED:
	case VD_WATCH_MODIFIED:
	case VD_WATCH_DELETED:
		if (!watch->handler.changed(watch->handler.arg, event, watch->fill))
			return false;
		break;
	case VD_WATCH_BOOKMARK:
		if (event->initial_events_end) {
			watch->is_filling = false;
			watch->handler.filled(watch->handler.arg, watch->fill);
		}
		break;
	case VD_WATCH_ERROR: watch->revision = 0; return true;
	}
	if (!watch->is_filling)
		watch->revision = event->revision;
	return true;
}

static size_t deliver(void *arg, const struct vd_watch_event *events, size_t count)
{
	struct vdi_kind_watch *watch = arg;
	size_t		       taken = 0;

	while (taken < count && take(watch, &events[taken]))
		taken++;
	if (taken < count) {
		vdi_lock_acquire(&watch->lock);
		watch->is_stalled = true;
		vd_actor_wake(watch->actor);
		vdi_lock_release(&watch->lock);
	}
	return taken;
}

static void ended(void *arg, vd_status reason)
{
	struct vdi_kind_watch *watch = arg;

	if (watch->is_filling || (reason != VD_TOO_SLOW && reason != VD_TIMEOUT && reason != VD_CLOSED))
		watch->revision = 0;
	vdi_lock_acquire(&watch->lock);
	watch->has_ended = true;
	vd_actor_wake(watch->actor);
	vdi_lock_release(&watch->lock);
}

static void watch_closed(void *arg)
{
	struct vdi_kind_watch *watch = arg;

	vdi_lock_acquire(&watch->lock);
	watch->is_open = false;
	vd_actor_wake(watch->actor);
	vdi_lock_release(&watch->lock);
}

/* ---- Actor ---- */

static void open_watch(struct vdi_kind_watch *watch)
{
	struct vd_watch_sink	sink = { deliver, ended, watch, vdi_env_executor(watch->env) };
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;

	options.allow_bookmarks = true;
	if (watch->revision) {
		options.revision = watch->revision;
	} else {
		options.send_initial_events = VD_TRUE;
		options.revision = vdi_cacher_initial_revision(watch->resource->cacher);
		watch->is_filling = true;
		watch->fill++;
	}
	vdi_lock_acquire(&watch->lock);
	watch->is_open = true;
	watch->has_ended = watch->is_stalled = false;
	vdi_lock_release(&watch->lock);
	if (vd_cacher_watch(watch->resource->cacher, &options, &sink, &watch->watcher, NULL) == VD_OK)
		return;
	watch->watcher = NULL;
	vdi_lock_acquire(&watch->lock);
	watch->is_open = false;
	vdi_lock_release(&watch->lock);
	watch->reopen_at = vd_mono_add(vd_env_now(watch->env), REOPEN_DELAY);
}

static void close_watcher(struct vdi_kind_watch *watch)
{
	struct vd_watcher *watcher = watch->watcher;

	watch->watcher = NULL;
	watch->resume_at = VD_NEVER;
	watch->reopen_at = vd_mono_add(vd_env_now(watch->env), REOPEN_DELAY);
	vd_watcher_close(watcher, watch_closed, watch);
}

static void gone(void *arg)
{
	struct vdi_kind_watch *watch = arg;
	void (*closed)(void *) = watch->closed;
	void *closed_arg = watch->closed_arg;

	(void) vdi_resource_unref(watch->resource);
	vdi_lock_fini(&watch->lock);
	vdi_free(watch);
	if (closed)
		closed(closed_arg);
}

static void resume_when_due(struct vdi_kind_watch *watch, bool is_stalled)
{
	vd_mono now = vd_env_now(watch->env);

	if (is_stalled && watch->resume_at.ns == INT64_MAX)
		watch->resume_at = vd_mono_add(now, REOPEN_DELAY);
	if (watch->watcher && watch->resume_at.ns <= now.ns) {
		watch->resume_at = VD_NEVER;
		vd_watcher_resume(watch->watcher);
	}
}

static void run(void *arg)
{
	struct vdi_kind_watch *watch = arg;
	bool		       is_open, has_ended, is_stalled, is_leaving, is_closed;

	vdi_lock_acquire(&watch->lock);
	is_open = watch->is_open;
	has_ended = watch->has_ended;
	is_stalled = watch->is_stalled;
	watch->is_stalled = false;
	is_leaving = watch->is_leaving;
	is_closed = watch->is_closed;
	vdi_lock_release(&watch->lock);
	if (watch->watcher && (has_ended || is_closed)) {
		close_watcher(watch);
		return; /* the close wakes this actor again */
	}
	/* The previous watch may have missed events: open one more, without delay. If that fails, there are
	 * no events to deliver. */
	if (!is_open && is_leaving && !is_closed && !watch->is_last) {
		watch->is_last = true;
		open_watch(watch);
		is_open = watch->watcher != NULL;
	}
	if (!is_open && (is_closed || is_leaving)) {
		vd_actor_close(watch->actor, gone, watch);
		return;
	}
	if (!is_open && watch->reopen_at.ns <= vd_env_now(watch->env).ns)
		open_watch(watch);
	resume_when_due(watch, is_stalled);
	vd_actor_set_timer(watch->actor, watch->watcher ? watch->resume_at : watch->reopen_at);
}

/* ---- Constructor and end ---- */

vd_status vdi_kind_watch_new(const struct vd_env *env, struct vdi_resource *resource,
			     const struct vdi_kind_watch_handler *handler, struct vdi_kind_watch **ret_watch)
{
	struct vdi_kind_watch  *watch = VDI_NEW(struct vdi_kind_watch);
	struct vd_actor_options options = { .name = "kind watch", .run = run, .arg = watch };
	vd_status		status = watch ? vd_actor_new(env, &options, &watch->actor) : VD_NOMEM;

	if (status != VD_OK) {
		vdi_free(watch);
		return status;
	}
	vdi_lock_init(&watch->lock, VDI_LOCK_CONTROLLER);
	watch->env = env;
	watch->resource = vdi_resource_ref(resource);
	watch->handler = *handler;
	watch->resume_at = VD_NEVER;
	*ret_watch = watch;
	vd_actor_wake(watch->actor);
	return VD_OK;
}

void vdi_kind_watch_leave(struct vdi_kind_watch *watch, void (*done)(void *arg), void *arg)
{
	vdi_lock_acquire(&watch->lock);
	watch->is_leaving = true;
	watch->closed = done;
	watch->closed_arg = arg;
	vd_actor_wake(watch->actor);
	vdi_lock_release(&watch->lock);
}

void vdi_kind_watch_close(struct vdi_kind_watch *watch, void (*done)(void *arg), void *arg)
{
	vdi_lock_acquire(&watch->lock);
	watch->is_closed = true;
	watch->closed = done;
	watch->closed_arg = arg;
	vd_actor_wake(watch->actor);
	vdi_lock_release(&watch->lock);
}
