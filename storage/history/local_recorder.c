/* Each run flushes the buffer, takes some batches of the watch, flushes, and then does what is due: a mark if
 * only the revision has advanced, a progress request, a sync, eviction. A batch is taken only if there is a
 * file for it. So a full disk pauses the watch (the client stops reading from etcd), and nothing is lost
 * unless etcd compacts meanwhile. */
#include "local_store.h"

#define ROUNDS_MAX 16
#define TAKE_MAX 256

void vdi_local_recorder_publish(struct vdi_local_history *history)
{
	struct vdi_local_recorder *recorder = &history->recorder;

	vd_rev floor = vdi_history_files_floor(recorder->files);

	atomic_store(&history->floor, floor);
	if (floor > recorder->began) /* history was evicted since the start */
		atomic_store(&history->kept, floor);
	atomic_store(&history->until, vdi_history_files_until(recorder->files));
	atomic_store(&history->oldest_ns, vdi_history_files_oldest(recorder->files).ns);
	atomic_store(&history->bytes, vdi_history_files_bytes(recorder->files));
}

static void back_off(struct vdi_local_history *history)
{
	struct vdi_local_recorder *recorder = &history->recorder;

	recorder->backoff.ns = recorder->backoff.ns ?
				       VDI_MIN(recorder->backoff.ns * 2, VDI_LOCAL_RETRY_MAX.ns) :
				       VDI_LOCAL_RETRY_FIRST.ns;
	recorder->retry_at = vd_mono_add(vd_env_now(history->env), recorder->backoff);
}

static void close_watch(struct vdi_local_recorder *recorder)
{
	vd_store_watch_close(recorder->watch);
	recorder->watch = NULL;
	recorder->progress = 0;
}

vd_rev vdi_local_fresh_floor(const struct vd_store_status *status)
{
	return VDI_MAX(VDI_MAX(status->compacted, 1), status->current - VDI_LOCAL_BACKFILL_MAX);
}

/* Starts a new history, because the recorded one cannot be continued. */
static void start_over(struct vdi_local_history *history, vd_rev floor)
{
	close_watch(&history->recorder);
	vdi_history_files_restart(history->recorder.files, floor);
	history->recorder.began = floor;
	vdi_metric_add(history->metrics[VDI_LOCAL_DROPS], !history->recorder.is_new);
	vdi_local_recorder_publish(history);
}

/* Handles a failing disk. Logs only the first failure until writing works again. */
static void has_trouble(struct vdi_local_history *history, vd_status status, const struct vd_error *error)
{
	struct vdi_local_recorder *recorder = &history->recorder;
	const char		  *why = error->message[0] ? error->message : vd_status_sentence(status);

	vdi_metric_add(history->metrics[VDI_LOCAL_FAILURES], 1);
	if (!recorder->is_troubled && status == VD_IO)
		vdi_log(history->env, VD_LOG_WARNING, "history",
			"the local history starts over, recorded changes are dropped: %s", why);
	else if (!recorder->is_troubled)
		vdi_log(history->env, VD_LOG_WARNING, "history",
			"the local history cannot be written, will retry; all else continues: %s", why);
	recorder->is_troubled = true;
	atomic_store(&history->is_recording, false);
	/* Free space: evict whatever exceeds the limits. */
	if (status == VD_NO_SPACE)
		(void) !vdi_history_files_evict(recorder->files, vd_env_wall(history->env), NULL);
	/* After a failed write or sync the content of the file is unknown. */
	if (status != VD_NO_SPACE && status != VD_NOMEM)
		start_over(history, vdi_history_files_until(recorder->files));
	back_off(history);
}

static void is_well(struct vdi_local_history *history)
{
	struct vdi_local_recorder *recorder = &history->recorder;

	if (recorder->is_troubled)
		vdi_log(history->env, VD_LOG_INFO, "history", "the local history is written again");
	recorder->is_troubled = false;
	atomic_store(&history->is_recording, true);
	recorder->backoff.ns = 0;
}

static void on_ready(void *arg)
{
	struct vdi_local_history *history = arg;

	vd_actor_wake(history->recorder.actor);
}

static bool open_watch(struct vdi_local_history *history)
{
	struct vdi_local_recorder    *recorder = &history->recorder;
	struct vd_store_watch_request request = {
		.key = vd_bytes_of(history->prefix),
		.range_end = history->prefix_end_bytes,
		.start_revision = vdi_history_files_until(recorder->files) + 1,
		.previous = true,
		.progress = true,
		.ready = on_ready,
		.ready_arg = history,
	};
	vd_status status = vd_store_watch_open(history->front.inner, &request, &recorder->watch, NULL);

	if (status == VD_OK)
		return true;
	recorder->is_over = status == VD_CLOSED;
	back_off(history);
	return false;
}

/* Switches to the next file if the current one is full, so that a burst may fill several files. */
static vd_status make_room(struct vdi_local_history *history, struct vd_error *reterr)
{
	struct vdi_history_files *files = history->recorder.files;

	if (!vdi_history_files_is_full(files))
		return VD_OK;
	VDI_TRY(vdi_history_files_flush(files, reterr));
	VDI_TRY(vdi_history_files_prepare(files, vd_env_wall(history->env), reterr));
	return vdi_history_files_evict(files, vd_env_wall(history->env), reterr);
}

/* Records a whole revision. false: not recorded, and the watch is closed. */
static bool record(struct vdi_local_history *history, const struct vd_store_event *events, size_t count)
{
	struct vdi_local_recorder *recorder = &history->recorder;
	vd_rev			   revision = events[0].kv->mod_rev;
	struct vd_error		   error = { 0 };
	vd_status		   status;

	if (revision <= vdi_history_files_until(recorder->files))
		return true; /* already recorded */
	status = make_room(history, &error);
	if (status == VD_OK)
		status = vdi_history_files_append(recorder->files, events, count, vd_env_wall(history->env));
	if (status == VD_OK) {
		vdi_metric_add(history->metrics[VDI_LOCAL_EVENTS], count);
		return true;
	}
	if (status != VD_INVALID) {
		close_watch(recorder); /* reopened later from this revision */
		has_trouble(history, status, &error);
		return false;
	}
	vdi_log(history->env, VD_LOG_WARNING, "history",
		"the local history starts over after revision %lld: etcd sent a change without the previous "
		"record",
		(long long) revision);
	start_over(history, revision);
	return false;
}

static void take_batch(struct vdi_local_history *history, const struct vd_store_batch *batch)
{
	size_t from = 0;

	history->recorder.is_new = false;
	if (batch->event_count == 0) {
		history->recorder.progress = VDI_MAX(history->recorder.progress, batch->revision);
		return;
	}
	for (size_t i = 1; i <= batch->event_count; i++) {
		if (i < batch->event_count && batch->events[i].kv->mod_rev == batch->events[from].kv->mod_rev)
			continue;
		if (!record(history, batch->events + from, i - from))
			return; /* the watch is closed */
		from = i;
	}
}

static void watch_ended(struct vdi_local_history *history, vd_status status, const struct vd_error *error)
{
	struct vdi_local_recorder *recorder = &history->recorder;
	vd_rev			   until = vdi_history_files_until(recorder->files);
	struct vd_store_status	   now = { 0 };

	close_watch(recorder);
	if (status == VD_CLOSED) {
		recorder->is_over = true;
		return;
	}
	if (status == VD_EXPIRED) {
		/* A new history looks back further than etcd's compaction: not worth a warning. */
		if (!recorder->is_new)
			vdi_log(history->env, VD_LOG_WARNING, "history",
				"the local history starts over: etcd has compacted the changes after "
				"revision "
				"%lld before they were recorded",
				(long long) until);
		(void) !vd_store_status_get(history->front.inner, &now);
		now.compacted = VDI_MAX(now.compacted, error->compacted);
		start_over(history, VDI_MAX(vdi_local_fresh_floor(&now), until + 1));
		recorder->is_new = true;
		if (error->compacted > 0)
			return;
	}
	back_off(history); /* the store itself logs its faults */
}

/* Takes some batches. true: there may be more. */
static bool take_some(struct vdi_local_history *history)
{
	struct vdi_local_recorder *recorder = &history->recorder;

	for (unsigned round = 0; round < ROUNDS_MAX; round++) {
		struct vd_store_batch batch;
		struct vd_error	      error = { 0 };
		vd_status	      status = vd_store_watch_next(recorder->watch, TAKE_MAX, &batch, &error);

		if (status == VD_AGAIN)
			return false;
		if (status != VD_OK) {
			watch_ended(history, status, &error);
			return false;
		}
		take_batch(history, &batch);
		if (recorder->watch == NULL)
			return false;
	}
	return true;
}

/* ---- What is due ---- */

static vd_mono earlier(vd_mono a, vd_mono b)
{
	return a.ns < b.ns ? a : b;
}

static vd_status write_mark(struct vdi_local_recorder *recorder, vd_mono now)
{
	VDI_TRY(vdi_history_files_mark(recorder->files, recorder->progress));
	recorder->mark_at = vd_mono_add(now, VDI_LOCAL_MARK_PERIOD);
	return VD_OK;
}

/* Writes marks for an idle prefix of a busy store: no change up to a revision. *due: when to check again. */
static vd_status see_to_mark(struct vdi_local_history *history, vd_mono now, vd_mono *due)
{
	struct vdi_local_recorder *recorder = &history->recorder;
	vd_rev			   until = vdi_history_files_until(recorder->files);
	struct vd_store_status	   status;

	if (recorder->watch && recorder->ask_at.ns <= now.ns) {
		recorder->ask_at = vd_mono_add(now, VDI_LOCAL_MARK_PERIOD);
		if (vd_store_status_get(history->front.inner, &status) == VD_OK &&
		    status.current > VDI_MAX(until, recorder->progress))
			(void) vd_store_watch_progress(recorder->watch); /* best effort */
	}
	*due = earlier(*due, recorder->ask_at);
	if (recorder->progress > until && recorder->mark_at.ns <= now.ns)
		VDI_TRY(write_mark(recorder, now));
	else if (recorder->progress > until)
		*due = earlier(*due, recorder->mark_at);
	return VD_OK;
}

static vd_status see_to_sync(struct vdi_local_recorder *recorder, vd_mono now, vd_mono *due,
			     struct vd_error *reterr)
{
	if (!vdi_history_files_is_dirty(recorder->files)) {
		recorder->sync_at = VD_NEVER;
		return VD_OK;
	}
	if (recorder->sync_at.ns == VD_NEVER.ns)
		recorder->sync_at = vd_mono_add(now, VDI_LOCAL_SYNC_PERIOD);
	if (recorder->sync_at.ns <= now.ns) {
		VDI_TRY(vdi_history_files_sync(recorder->files, reterr));
		recorder->sync_at = VD_NEVER;
	}
	*due = earlier(*due, recorder->sync_at);
	return VD_OK;
}

/* Drops the loaded history if no watch has used it for VDI_LOCAL_LOADED_IDLE. */
static void drop_idle_history(struct vdi_local_history *history, vd_mono now, vd_mono *due)
{
	vd_mono idle_at =
		vd_mono_add((vd_mono) { atomic_load(&history->loaded_used_ns) }, VDI_LOCAL_LOADED_IDLE);
	struct vdi_loaded_history *loaded;

	if (atomic_load(&history->loaded_floor) == 0)
		return;
	if (idle_at.ns > now.ns) {
		*due = earlier(*due, idle_at);
		return;
	}
	atomic_store(&history->loaded_floor, 0);
	vdi_lock_acquire(&history->lock);
	loaded = history->loaded;
	history->loaded = NULL;
	vdi_lock_release(&history->lock);
	vdi_loaded_history_unref(loaded);
}

static vd_status run_iteration(struct vdi_local_history *history, bool *ret_more, vd_mono *due,
			       struct vd_error *reterr)
{
	struct vdi_local_recorder *recorder = &history->recorder;
	vd_wall			   wall = vd_env_wall(history->env);
	vd_mono			   now = vd_env_now(history->env);

	VDI_TRY(vdi_history_files_flush(recorder->files, reterr));
	VDI_TRY(vdi_history_files_tidy(recorder->files, reterr));
	VDI_TRY(vdi_history_files_prepare(recorder->files, wall, reterr));
	if (recorder->watch || open_watch(history))
		*ret_more = take_some(history);
	/* take_some may have started a new history, which has no file yet. */
	VDI_TRY(vdi_history_files_prepare(recorder->files, wall, reterr));
	VDI_TRY(see_to_mark(history, now, due));
	VDI_TRY(vdi_history_files_flush(recorder->files, reterr));
	VDI_TRY(vdi_history_files_evict(recorder->files, wall, reterr));
	return see_to_sync(recorder, now, due, reterr);
}

/* ---- Life ---- */

static void gone(void *arg)
{
	struct vdi_local_history *history = arg;
	void (*closed)(void *arg) = history->closed;
	void		*closed_arg = history->closed_arg;
	struct vd_store *inner = history->front.inner;

	vdi_local_history_free(history);
	vd_store_close(inner, closed, closed_arg);
}

/* Writes received progress before the end; a failure does no harm. */
static void finish(struct vdi_local_history *history)
{
	struct vdi_local_recorder *recorder = &history->recorder;
	vd_wall			   wall = vd_env_wall(history->env);
	struct vd_error		   error;

	/* Unless the disk failed, each run has flushed its records, so only the mark remains. */
	if (!recorder->is_troubled && vdi_history_files_prepare(recorder->files, wall, &error) == VD_OK) {
		if (recorder->progress > vdi_history_files_until(recorder->files))
			(void) !write_mark(recorder, vd_env_now(history->env));
		if (vdi_history_files_flush(recorder->files, &error) == VD_OK)
			(void) !vdi_history_files_sync(recorder->files, &error);
	}
	close_watch(recorder);
	vd_actor_close(recorder->actor, gone, history);
}

static bool is_closing(struct vdi_local_history *history)
{
	bool closing;

	vdi_lock_acquire(&history->lock);
	closing = history->is_closing;
	vdi_lock_release(&history->lock);
	return closing;
}

void vdi_local_recorder_run(void *arg)
{
	struct vdi_local_history  *history = arg;
	struct vdi_local_recorder *recorder = &history->recorder;
	vd_mono			   now = vd_env_now(history->env), due = VD_NEVER;
	struct vd_error		   error = { 0 };
	bool			   more = false;
	vd_status		   status;

	if (is_closing(history)) {
		finish(history);
		return;
	}
	drop_idle_history(history, now, &due);
	if (recorder->retry_at.ns > now.ns) {
		due = earlier(due, recorder->retry_at);
	} else if (!recorder->is_over) {
		status = run_iteration(history, &more, &due, &error);
		if (status != VD_OK)
			has_trouble(history, status, &error);
		else if (recorder->watch)
			is_well(history);
		else if (!recorder->is_over && recorder->retry_at.ns <= now.ns)
			more = true; /* a new history was started */
		if (recorder->retry_at.ns > now.ns) {
			more = false;
			due = earlier(due, recorder->retry_at);
		}
	}
	vdi_local_recorder_publish(history);
	vd_actor_set_timer(recorder->actor, due);
	if (more)
		vd_actor_wake(recorder->actor);
}
