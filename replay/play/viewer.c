/* An actor opens the watch, and opens it again; the cacher's delivering thread calls the sink. A lock guards
 * the shared state; it is not held while lines are passed on. */
#include "viewer.h"

#include "buffer.h"
#include "lock.h"

#define RETRY VD_MS(100)
#define LINE_SIZE_MAX ((size_t) 128 << 20)

struct vdi_viewer {
	const struct vd_env	 *env;
	struct vd_cacher	 *cacher;
	struct vd_actor		 *actor;
	struct vdi_viewer_options options;
	struct vd_watch_options	  watch;
	char			 *text; /* holds the watch's slices */
	struct vdi_buffer	  line; /* used by the delivering thread */

	struct vdi_lock lock;
	/* Under lock. */
	struct vd_watcher *watcher;
	bool		   is_over;   /* will not be opened again */
	bool		   has_ended; /* the watcher must be closed */
	vd_status	   end;
	vd_rev		   seen; /* of the last event or bookmark; 0: none */
	bool		   is_paused;
	/* A pause is over: delayed events, if any, arrive before the next pause. */
	bool	is_resuming;
	vd_mono pause_until;
	bool	is_closing;
	void (*close_done)(void *arg);
	void *close_done_arg;
};

static void give(struct vdi_viewer *viewer)
{
	if (viewer->options.line && vdi_buffer_status(&viewer->line) == VD_OK)
		viewer->options.line(viewer->options.line_arg,
				     (struct vd_bytes) { viewer->line.data, viewer->line.size });
}

/* ---- Lines ---- */

static void write_object(struct vdi_buffer *line, const struct vd_watch_event *event)
{
	struct vd_object_json json;

	vdi_buffer_append_text(line, ",\"key\":");
	vdi_buffer_append_json_string(line, vd_object_key(event->object));
	vdi_buffer_append_text(line, ",\"object\":");
	vd_object_json(event->object, event->revision, &json);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(json.piece); i++)
		vdi_buffer_append(line, json.piece[i]);
}

static void write_error(struct vdi_buffer *line, const struct vd_error *error)
{
	vdi_buffer_printf(line, ",\"error\":{\"code\":%d,\"reason\":\"%s\",\"message\":",
			  vd_status_http(error->code), vd_status_reason(error->code));
	vdi_buffer_append_json_string(line, vd_bytes_of(error->message));
	vdi_buffer_append_char(line, '}');
}

static void write_event(struct vdi_viewer *viewer, const struct vd_watch_event *event)
{
	struct vdi_buffer *line = &viewer->line;

	if (viewer->options.event) {
		viewer->options.event(viewer->options.event_arg, event);
		return;
	}
	vdi_buffer_clear(line);
	vdi_buffer_printf(line, "{\"watch\":%u,\"type\":\"%s\"", viewer->options.number,
			  vd_watch_type_name(event->type));
	if (event->type != VD_WATCH_ERROR)
		vdi_buffer_printf(line, ",\"rev\":%lld", (long long) event->revision);
	if (event->object)
		write_object(line, event);
	if (event->initial_events_end)
		vdi_buffer_append_text(line, ",\"initialEventsEnd\":true");
	if (event->type == VD_WATCH_ERROR && event->error)
		write_error(line, event->error);
	vdi_buffer_append_text(line, "}\n");
	give(viewer);
}

static bool starts_over(const struct vdi_viewer *viewer, vd_status end)
{
	return end == VD_EXPIRED || viewer->seen == 0;
}

static void write_end(struct vdi_viewer *viewer, vd_status reason)
{
	if (viewer->options.event) {
		viewer->options.ended(viewer->options.event_arg, reason, starts_over(viewer, reason));
		return;
	}
	vdi_buffer_clear(&viewer->line);
	vdi_buffer_printf(&viewer->line, "{\"watch\":%u,\"end\":\"%s\"}\n", viewer->options.number,
			  vd_status_name(reason));
	give(viewer);
}

/* ---- The sink ---- */

static bool wants_events(const struct vdi_viewer *viewer)
{
	return viewer->options.line || viewer->options.event;
}

static size_t deliver(void *arg, const struct vd_watch_event *events, size_t count)
{
	struct vdi_viewer *viewer = arg;
	size_t		   taken = viewer->options.pause.ns > 0 ? 1 : count;
	vd_rev		   seen = 0;
	bool		   paused;

	vdi_lock_acquire(&viewer->lock);
	paused = viewer->is_paused;
	vdi_lock_release(&viewer->lock);
	if (paused)
		return 0;
	for (size_t i = 0; i < taken && wants_events(viewer); i++)
		write_event(viewer, &events[i]);
	for (size_t i = taken; i-- > 0 && seen == 0;)
		if (events[i].type != VD_WATCH_ERROR && (!events[i].initial || events[i].initial_events_end))
			seen = events[i].revision;
	vdi_lock_acquire(&viewer->lock);
	viewer->seen = VDI_MAX(viewer->seen, seen);
	if (viewer->options.pause.ns > 0) {
		viewer->is_paused = true;
		viewer->is_resuming = false;
		viewer->pause_until = vd_mono_add(vd_env_now(viewer->env), viewer->options.pause);
		if (!viewer->is_closing)
			vd_actor_wake(viewer->actor);
	}
	vdi_lock_release(&viewer->lock);
	return taken;
}

static void ended(void *arg, vd_status reason)
{
	struct vdi_viewer *viewer = arg;

	vdi_lock_acquire(&viewer->lock);
	viewer->has_ended = true;
	viewer->end = reason;
	if (!viewer->is_closing)
		vd_actor_wake(viewer->actor);
	vdi_lock_release(&viewer->lock);
}

/* ---- The actor ---- */

static void give_up(struct vdi_viewer *viewer)
{
	vdi_lock_acquire(&viewer->lock);
	viewer->is_over = true;
	vdi_lock_release(&viewer->lock);
}

static void write_refusal(struct vdi_viewer *viewer, const struct vd_error *error)
{
	struct vd_watch_event event = { .type = VD_WATCH_ERROR, .error = error };

	write_event(viewer, &event);
	write_end(viewer, error->code);
}

static void open_watch(struct vdi_viewer *viewer)
{
	struct vd_watch_sink sink = { deliver, ended, viewer, NULL };
	struct vd_watcher   *watcher;
	struct vd_error	     error = { 0 };
	vd_status	     status = vd_cacher_ready(viewer->cacher, &error);

	/* Under the lock, because the sink may be called before viewer->watcher is set. */
	vdi_lock_acquire(&viewer->lock);
	viewer->has_ended = false;
	if (status == VD_OK)
		status = vd_cacher_watch(viewer->cacher, &viewer->watch, &sink, &watcher, &error);
	if (status == VD_OK)
		viewer->watcher = watcher;
	vdi_lock_release(&viewer->lock);
	if (status == VD_NOT_READY ||
	    (status != VD_OK && viewer->options.resume && status != VD_BAD_REQUEST && status != VD_CLOSED)) {
		vd_actor_set_timer(viewer->actor, vd_mono_add(vd_env_now(viewer->env), RETRY));
	} else if (status != VD_OK) {
		error.code = status;
		write_refusal(viewer, &error);
		give_up(viewer);
	}
}

/* Sets where the next watch starts: after the last seen revision or, if that has expired or there is none,
 * with the initial state. */
static void aim(struct vdi_viewer *viewer, vd_status end)
{
	if (starts_over(viewer, end)) {
		viewer->watch.revision = VD_REVISION_UNSET;
		viewer->seen = 0;
	} else {
		viewer->watch.revision = viewer->seen;
		viewer->watch.send_initial_events = VD_UNSET;
	}
}

static void take_end(struct vdi_viewer *viewer, struct vd_watcher *watcher, vd_status end)
{
	vd_watcher_close(watcher, NULL, NULL);
	write_end(viewer, end);
	if (!viewer->options.resume) {
		give_up(viewer);
		return;
	}
	vdi_lock_acquire(&viewer->lock);
	aim(viewer, end);
	vdi_lock_release(&viewer->lock);
	vd_actor_wake(viewer->actor);
}

static void check_pause(struct vdi_viewer *viewer, struct vd_watcher *watcher)
{
	vd_mono until, now;
	bool	resumes;

	vdi_lock_acquire(&viewer->lock);
	until = viewer->pause_until;
	now = vd_env_now(viewer->env);
	resumes = viewer->is_paused && now.ns >= until.ns;
	if (resumes)
		until = viewer->pause_until = vd_mono_add(now, viewer->options.pause);
	if (resumes || now.ns >= until.ns) {
		viewer->is_paused = false;
		viewer->is_resuming = resumes;
	}
	vdi_lock_release(&viewer->lock);
	if (viewer->options.pause.ns > 0 && now.ns < until.ns)
		vd_actor_set_timer(viewer->actor, until);
	if (resumes)
		vd_watcher_resume(watcher);
}

static void viewer_run(void *arg)
{
	struct vdi_viewer *viewer = arg;
	struct vd_watcher *watcher;
	bool		   over, has_ended;
	vd_status	   end;

	vdi_lock_acquire(&viewer->lock);
	watcher = viewer->watcher;
	over = viewer->is_over || viewer->is_closing;
	has_ended = viewer->has_ended && watcher;
	end = viewer->end;
	if (has_ended) {
		viewer->watcher = NULL;
		viewer->is_paused = viewer->is_resuming = false;
	}
	vdi_lock_release(&viewer->lock);
	if (over)
		return;
	if (has_ended)
		take_end(viewer, watcher, end);
	else if (watcher)
		check_pause(viewer, watcher);
	else
		open_watch(viewer);
}

/* ---- Lifetime ---- */

static void copy_slice(struct vd_bytes *slice, char **at)
{
	if (slice->size)
		memcpy(*at, slice->data, slice->size);
	slice->data = *at;
	*at += slice->size;
}

static vd_status copy_watch(struct vdi_viewer *viewer, const struct vd_watch_options *watch)
{
	char *at;

	viewer->watch = *watch;
	viewer->text = vdi_alloc(watch->namespace_name.size + watch->name.size + watch->label_selector.size +
				 watch->field_selector.size + watch->shard_selector.size + 1);
	if (viewer->text == NULL)
		return VD_NOMEM;
	at = viewer->text;
	copy_slice(&viewer->watch.namespace_name, &at);
	copy_slice(&viewer->watch.name, &at);
	copy_slice(&viewer->watch.label_selector, &at);
	copy_slice(&viewer->watch.field_selector, &at);
	copy_slice(&viewer->watch.shard_selector, &at);
	return VD_OK;
}

static void free_viewer(struct vdi_viewer *viewer)
{
	vdi_buffer_fini(&viewer->line);
	vdi_lock_fini(&viewer->lock);
	vdi_free(viewer->text);
	vdi_free(viewer);
}

vd_status vdi_viewer_new(const struct vd_env *env, struct vd_cacher *cacher,
			 const struct vdi_viewer_options *options, struct vdi_viewer **ret_viewer)
{
	struct vdi_viewer      *viewer = VDI_NEW(struct vdi_viewer);
	struct vd_actor_options actor = { .name = "viewer", .run = viewer_run, .arg = viewer };
	vd_status		status;

	if (viewer == NULL)
		return VD_NOMEM;
	viewer->env = env;
	viewer->cacher = cacher;
	viewer->options = *options;
	vdi_buffer_init(&viewer->line, LINE_SIZE_MAX);
	vdi_lock_init(&viewer->lock, VDI_LOCK_SERVER);
	status = copy_watch(viewer, options->watch);
	if (status == VD_OK)
		status = vd_actor_new(env, &actor, &viewer->actor);
	if (status != VD_OK) {
		free_viewer(viewer);
		return status;
	}
	viewer->options.watch = NULL;
	vd_actor_wake(viewer->actor);
	*ret_viewer = viewer;
	return VD_OK;
}

bool vdi_viewer_is_open(const struct vdi_viewer *viewer)
{
	struct vdi_viewer *mine = (struct vdi_viewer *) (uintptr_t) viewer; /* only its lock is modified */
	bool		   open;

	vdi_lock_acquire(&mine->lock);
	open = viewer->is_over || (viewer->watcher && !viewer->has_ended);
	vdi_lock_release(&mine->lock);
	return open;
}

bool vdi_viewer_is_idle(const struct vdi_viewer *viewer)
{
	struct vdi_viewer *mine = (struct vdi_viewer *) (uintptr_t) viewer;
	bool		   idle;

	vdi_lock_acquire(&mine->lock);
	idle = viewer->is_over || (!viewer->is_paused && !viewer->is_resuming);
	vdi_lock_release(&mine->lock);
	return idle;
}

static void on_watcher_closed(void *arg)
{
	struct vdi_viewer *viewer = arg;
	void (*done)(void *arg) = viewer->close_done;
	void *done_arg = viewer->close_done_arg;

	free_viewer(viewer);
	if (done)
		done(done_arg);
}

static void on_actor_closed(void *arg)
{
	struct vdi_viewer *viewer = arg;

	if (viewer->watcher)
		vd_watcher_close(viewer->watcher, on_watcher_closed, viewer);
	else
		on_watcher_closed(viewer);
}

void vdi_viewer_close(struct vdi_viewer *viewer, void (*done)(void *arg), void *arg)
{
	vdi_lock_acquire(&viewer->lock);
	viewer->is_closing = true;
	viewer->close_done = done;
	viewer->close_done_arg = arg;
	vdi_lock_release(&viewer->lock);
	vd_actor_close(viewer->actor, on_actor_closed, viewer);
}
