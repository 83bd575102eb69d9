/* Pages and events are written on the recorder's actor. The store's thread copies the answer of a range (by
 * references) and leaves it for the actor. */
#include "recorder.h"

#include <inttypes.h>

#include "lock.h"
#include "recorder_relist.h"
#include "store_read.h"

#define EVENTS_PER_CALL 1000
#define BATCHES_PER_RUN 64
#define BACKOFF_MIN VD_MS(50)
#define BACKOFF_MAX VD_SECONDS(5)

enum state { PAGING, WATCHING, ENDED };

struct vdi_recorder {
	const struct vd_env	   *env;
	struct vd_actor		   *actor;
	struct vdi_recorder_options options;
	struct vdi_store_interval   interval;

	/* The actor's. */
	enum state		 state;
	struct vd_store_watch	*watch;
	struct vdi_relist	*relist;   /* the pages belong to a list after a gap; otherwise NULL */
	vd_rev			 snapshot; /* revision of the pages; 0: set by the first page */
	struct vd_kv		*last;	   /* of the previous page; the next one starts after it */
	struct vdi_store_backoff backoff;
	vd_mono			 flush_due;
	vd_rev			 done; /* everything up to it is recorded */
	vd_rev			 progress_written;
	struct vd_error		 error;

	struct vdi_lock lock;
	/* Under lock. */
	bool			     is_asking; /* a range is outstanding */
	bool			     has_page;
	struct vdi_store_page	     page;
	struct vdi_recorder_progress progress;
	bool			     is_closing, is_actor_gone;
	void (*close_done)(void *arg);
	void *close_done_arg;
};

/* ---- The end ---- */

static void end(struct vdi_recorder *recorder, const struct vd_error *error)
{
	if (recorder->state == ENDED)
		return;
	recorder->state = ENDED;
	vd_actor_set_timer(recorder->actor, VD_NEVER);
	if (recorder->options.ended)
		recorder->options.ended(recorder->options.arg, error);
}

static void fail(struct vdi_recorder *recorder, vd_status status)
{
	if (recorder->error.code == VD_OK)
		(void) vd_error_set(&recorder->error, status, "%s", vd_status_sentence(status));
	end(recorder, &recorder->error);
}

/* Returns false if the write failed; then recording has ended. */
static bool written(struct vdi_recorder *recorder, vd_status status)
{
	if (status == VD_OK)
		return true;
	end(recorder, &recorder->error);
	return false;
}

static void note(struct vdi_recorder *recorder, vd_rev revision, uint64_t records, uint64_t transactions)
{
	recorder->done = VDI_MAX(recorder->done, revision);
	vdi_lock_acquire(&recorder->lock);
	recorder->progress.revision = recorder->done;
	recorder->progress.records += records;
	recorder->progress.transactions += transactions;
	recorder->progress.is_watching = recorder->state == WATCHING;
	vdi_lock_release(&recorder->lock);
}

/* Schedules a retry. */
static void back_off(struct vdi_recorder *recorder)
{
	vdi_store_backoff_note(&recorder->backoff, vd_env_now(recorder->env), BACKOFF_MIN, BACKOFF_MAX);
}

/* ---- The state ---- */

static void destroy(struct vdi_recorder *recorder)
{
	void (*done)(void *arg) = recorder->close_done;
	void *done_arg = recorder->close_done_arg;

	vd_store_watch_close(recorder->watch);
	vdi_store_page_drop(&recorder->page);
	vdi_relist_free(recorder->relist);
	vd_kv_unref(recorder->last);
	vdi_store_interval_fini(&recorder->interval);
	vdi_lock_fini(&recorder->lock);
	vdi_free(recorder);
	if (done)
		done(done_arg);
}

static void on_page(void *arg, vd_status status, const struct vd_range_result *result,
		    const struct vd_error *error)
{
	struct vdi_recorder *recorder = arg;
	bool		     gone;

	vdi_lock_acquire(&recorder->lock);
	recorder->is_asking = false;
	recorder->has_page = true;
	vdi_store_page_keep(&recorder->page, status, result, error);
	gone = recorder->is_actor_gone;
	if (!recorder->is_closing)
		vd_actor_wake(recorder->actor);
	vdi_lock_release(&recorder->lock);
	if (gone)
		destroy(recorder);
}

static void ask_page(struct vdi_recorder *recorder)
{
	vd_status status;

	vdi_lock_acquire(&recorder->lock);
	recorder->is_asking = true;
	vdi_lock_release(&recorder->lock);
	status = vdi_store_page_ask(recorder->options.store, &recorder->interval, recorder->last,
				    recorder->snapshot, on_page, recorder);
	if (status == VD_OK)
		return;
	vdi_lock_acquire(&recorder->lock);
	recorder->is_asking = false;
	vdi_lock_release(&recorder->lock);
	if (vdi_store_failure_passes(status))
		back_off(recorder);
	else
		fail(recorder, status);
}

static void end_snapshot(struct vdi_recorder *recorder)
{
	if (!written(recorder, vdi_log_writer_snapshot_end(recorder->options.writer, recorder->snapshot,
							   &recorder->error)))
		return;
	recorder->last = vd_kv_unref(recorder->last);
	recorder->state = WATCHING;
	note(recorder, recorder->snapshot, 0, 0);
}

static void write_page(struct vdi_recorder *recorder, struct vd_kv **page, size_t count, bool more)
{
	for (size_t i = 0; i < count; i++) {
		if (!written(recorder, vdi_log_writer_change(recorder->options.writer, false, page[i],
							     (vd_wall) { 0 }, &recorder->error)))
			return;
		if (i + 1 == count) {
			vd_kv_unref(recorder->last);
			recorder->last = vd_kv_ref(page[i]);
		}
	}
	note(recorder, 0, count, 0);
	if (!more)
		end_snapshot(recorder);
}

/* ---- The state after a gap ---- */

static void begin_relist(struct vdi_recorder *recorder)
{
	recorder->relist = vdi_relist_free(recorder->relist);
	recorder->last = vd_kv_unref(recorder->last);
	recorder->snapshot = 0;
	if (written(recorder, vdi_log_writer_flush(recorder->options.writer, &recorder->error)) &&
	    written(recorder,
		    vdi_relist_begin(recorder->options.relist_path, &recorder->relist, &recorder->error)))
		recorder->state = PAGING;
}

static void end_relist(struct vdi_recorder *recorder)
{
	uint64_t records = 0;

	if (!written(recorder,
		     vdi_relist_write(recorder->relist, recorder->options.writer, recorder->snapshot,
				      vd_env_wall(recorder->env), &records, &recorder->error)))
		return;
	recorder->relist = vdi_relist_free(recorder->relist);
	recorder->last = vd_kv_unref(recorder->last);
	recorder->state = WATCHING;
	note(recorder, recorder->snapshot, records, 0);
	vdi_lock_acquire(&recorder->lock);
	recorder->progress.relists++;
	vdi_lock_release(&recorder->lock);
}

static void take_relisted(struct vdi_recorder *recorder, const struct vdi_store_page *page)
{
	if (recorder->snapshot < recorder->done) {
		(void) vd_error_set(&recorder->error, VD_EXPIRED,
				    "the store is at revision %" PRId64 ", but the log has revision %" PRId64
				    ": it is a different store, or was restored from a backup",
				    recorder->snapshot, recorder->done);
		end(recorder, &recorder->error);
		return;
	}
	if (vdi_relist_take(recorder->relist, page->kvs, page->count, recorder->done) != VD_OK) {
		fail(recorder, VD_NOMEM);
		return;
	}
	if (page->count) {
		vd_kv_unref(recorder->last);
		recorder->last = vd_kv_ref(page->kvs[page->count - 1]);
	}
	if (!page->more)
		end_relist(recorder);
}

/* ---- Pages ---- */

/* Ends recording if the state was compacted while it was read: the log cannot be completed. */
static void page_failed(struct vdi_recorder *recorder, vd_status status, const struct vd_error *error)
{
	if (vdi_store_failure_passes(status)) {
		back_off(recorder);
		return;
	}
	if (status == VD_EXPIRED && recorder->relist) {
		begin_relist(recorder);
		return;
	}
	recorder->error = *error;
	recorder->error.code = status;
	end(recorder, &recorder->error);
}

static void take_page(struct vdi_recorder *recorder)
{
	struct vdi_store_page page;
	bool		      first = recorder->snapshot == 0;

	vdi_lock_acquire(&recorder->lock);
	recorder->has_page = false;
	page = recorder->page;
	memset(&recorder->page, 0, sizeof recorder->page);
	vdi_lock_release(&recorder->lock);
	if (page.status == VD_OK && first)
		recorder->snapshot = page.revision;
	if (page.status != VD_OK)
		page_failed(recorder, page.status, &page.error);
	else if (recorder->relist)
		take_relisted(recorder, &page);
	else if (!first ||
		 written(recorder, vdi_log_writer_snapshot_begin(recorder->options.writer, recorder->snapshot,
								 &recorder->error)))
		write_page(recorder, page.kvs, page.count, page.more);
	vdi_store_page_drop(&page);
}

static void run_paging(struct vdi_recorder *recorder)
{
	bool has_page, is_asking;

	vdi_lock_acquire(&recorder->lock);
	has_page = recorder->has_page;
	is_asking = recorder->is_asking;
	vdi_lock_release(&recorder->lock);
	if (has_page)
		take_page(recorder);
	if (recorder->state == PAGING && !is_asking &&
	    vd_env_now(recorder->env).ns >= recorder->backoff.retry_at.ns)
		ask_page(recorder);
}

/* ---- The stream ---- */

/* Called on a thread of the store that may hold the store's locks, which come before this lock. */
static void be_ready(void *arg)
{
	struct vdi_recorder *recorder = arg;

	vdi_lock_acquire(&recorder->lock);
	if (!recorder->is_closing)
		vd_actor_wake(recorder->actor);
	vdi_lock_release(&recorder->lock);
}

static void open_watch(struct vdi_recorder *recorder)
{
	struct vd_store_watch_request request = { .key = recorder->interval.key,
						  .range_end = recorder->interval.range_end,
						  .start_revision = recorder->done + 1,
						  .progress = true,
						  .ready = be_ready,
						  .ready_arg = recorder };
	vd_status		      status =
		vd_store_watch_open(recorder->options.store, &request, &recorder->watch, &recorder->error);

	if (status == VD_OK)
		return;
	recorder->watch = NULL;
	if (vdi_store_failure_passes(status)) {
		recorder->error.code = VD_OK;
		back_off(recorder);
	} else {
		fail(recorder, status);
	}
}

static bool write_revision(struct vdi_recorder *recorder, const struct vd_store_event *events, size_t count,
			   vd_wall now)
{
	for (size_t i = 0; i < count; i++)
		if (!written(recorder, vdi_log_writer_change(recorder->options.writer, events[i].is_delete,
							     events[i].kv, now, &recorder->error)))
			return false;
	if (!written(recorder, vdi_log_writer_commit(recorder->options.writer, events[0].kv->mod_rev,
						     &recorder->error)))
		return false;
	note(recorder, events[0].kv->mod_rev, count, 1);
	return true;
}

static void write_batch(struct vdi_recorder *recorder, const struct vd_store_batch *batch)
{
	vd_wall now = vd_env_wall(recorder->env);

	for (size_t first = 0, next; first < batch->event_count; first = next) {
		for (next = first + 1; next < batch->event_count &&
				       batch->events[next].kv->mod_rev == batch->events[first].kv->mod_rev;)
			next++;
		/* Revisions that a peer delivers twice are recorded once. */
		if (batch->events[first].kv->mod_rev > recorder->done &&
		    !write_revision(recorder, batch->events + first, next - first, now))
			return;
	}
	if (batch->event_count == 0 && batch->revision > recorder->done &&
	    batch->revision > recorder->progress_written) {
		if (!written(recorder, vdi_log_writer_mark(recorder->options.writer, VDI_LOG_PROGRESS,
							   batch->revision, NULL, &recorder->error)))
			return;
		recorder->progress_written = batch->revision;
	}
	note(recorder, batch->revision, 0, 0);
}

static void watch_ended(struct vdi_recorder *recorder, vd_status status, const struct vd_error *error)
{
	vd_store_watch_close(recorder->watch);
	recorder->watch = NULL;
	if (status == VD_EXPIRED && recorder->options.relist_path) {
		begin_relist(recorder);
		vd_actor_wake(recorder->actor);
	} else if (status == VD_EXPIRED) {
		(void) vd_error_set(&recorder->error, VD_EXPIRED,
				    "revision %" PRId64
				    " was compacted before it could be recorded; record into a new log",
				    recorder->done + 1);
		recorder->error.compacted = error->compacted;
		end(recorder, &recorder->error);
	} else if (!vdi_store_failure_passes(status)) {
		recorder->error = *error;
		recorder->error.code = status;
		end(recorder, &recorder->error);
	} else if (written(recorder, vdi_log_writer_mark(recorder->options.writer, VDI_LOG_DISCONNECT, 0,
							 NULL, &recorder->error))) {
		vdi_lock_acquire(&recorder->lock);
		recorder->progress.reconnects++;
		vdi_lock_release(&recorder->lock);
		back_off(recorder);
	}
}

static bool until_is_reached(struct vdi_recorder *recorder)
{
	static const struct vd_error none = { .code = VD_OK };

	if (recorder->options.until == 0 || recorder->done < recorder->options.until)
		return false;
	end(recorder, &none);
	return true;
}

static void run_watching(struct vdi_recorder *recorder)
{
	struct vd_store_batch batch;
	struct vd_error	      error = { 0 };
	vd_status	      status = VD_OK;

	if (until_is_reached(recorder))
		return;
	if (recorder->watch == NULL && vd_env_now(recorder->env).ns >= recorder->backoff.retry_at.ns)
		open_watch(recorder);
	for (int i = 0; recorder->watch && recorder->state == WATCHING && i < BATCHES_PER_RUN; i++) {
		status = vd_store_watch_next(recorder->watch, EVENTS_PER_CALL, &batch, &error);
		if (status == VD_AGAIN)
			return;
		if (status != VD_OK) {
			watch_ended(recorder, status, &error);
			return;
		}
		recorder->backoff.wait.ns = 0;
		write_batch(recorder, &batch);
		if (recorder->state == WATCHING && until_is_reached(recorder))
			return;
	}
	if (recorder->watch && recorder->state == WATCHING)
		vd_actor_wake(recorder->actor);
}

/* ---- The actor ---- */

/* Flushes recorded changes periodically. */
static void flush(struct vdi_recorder *recorder)
{
	vd_mono now = vd_env_now(recorder->env);

	if (now.ns < recorder->flush_due.ns)
		return;
	recorder->flush_due = vd_mono_add(now, recorder->options.flush_interval);
	(void) written(recorder, vdi_log_writer_flush(recorder->options.writer, &recorder->error));
}

static void recorder_run(void *arg)
{
	struct vdi_recorder *recorder = arg;
	vd_mono		     due;

	if (recorder->state == PAGING)
		run_paging(recorder);
	if (recorder->state == WATCHING)
		run_watching(recorder);
	if (recorder->state == ENDED)
		return;
	flush(recorder);
	if (recorder->state == ENDED)
		return;
	due = recorder->flush_due;
	if (recorder->backoff.retry_at.ns > vd_env_now(recorder->env).ns)
		due.ns = VDI_MIN(due.ns, recorder->backoff.retry_at.ns);
	vd_actor_set_timer(recorder->actor, due);
}

/* ---- Lifetime ---- */

vd_status vdi_recorder_new(const struct vd_env *env, const struct vdi_recorder_options *options,
			   struct vdi_recorder **ret_recorder)
{
	struct vdi_recorder    *recorder = VDI_NEW(struct vdi_recorder);
	struct vd_actor_options actor = {
		.name = "recorder", .run = recorder_run, .arg = recorder, .blocking = true
	};
	vd_status status;

	if (recorder == NULL)
		return VD_NOMEM;
	recorder->env = env;
	recorder->options = *options;
	if (recorder->options.flush_interval.ns <= 0)
		recorder->options.flush_interval = VD_SECONDS(1);
	recorder->state = options->after ? WATCHING : PAGING;
	recorder->done = recorder->progress.revision = options->after;
	recorder->progress.is_watching = options->after > 0;
	recorder->flush_due = vd_mono_add(vd_env_now(env), recorder->options.flush_interval);
	vdi_lock_init(&recorder->lock, VDI_LOCK_WAIT);
	status = vdi_store_interval_init(&recorder->interval, options->prefix);
	if (status == VD_OK)
		status = vd_actor_new(env, &actor, &recorder->actor);
	if (status != VD_OK) {
		destroy(recorder);
		return status;
	}
	*ret_recorder = recorder;
	vd_actor_wake(recorder->actor);
	return VD_OK;
}

void vdi_recorder_progress_get(const struct vdi_recorder    *recorder,
			       struct vdi_recorder_progress *ret_progress)
{
	struct vdi_recorder *mine =
		(struct vdi_recorder *) (uintptr_t) recorder; /* only its lock is modified */

	vdi_lock_acquire(&mine->lock);
	*ret_progress = recorder->progress;
	vdi_lock_release(&mine->lock);
}

/* If a range is outstanding, its answer destroys the recorder. */
static void on_actor_closed(void *arg)
{
	struct vdi_recorder *recorder = arg;
	bool		     is_asking;

	vdi_lock_acquire(&recorder->lock);
	recorder->is_actor_gone = true;
	is_asking = recorder->is_asking;
	vdi_lock_release(&recorder->lock);
	if (!is_asking)
		destroy(recorder);
}

void vdi_recorder_close(struct vdi_recorder *recorder, void (*done)(void *arg), void *arg)
{
	vdi_lock_acquire(&recorder->lock);
	recorder->is_closing = true;
	recorder->close_done = done;
	recorder->close_done_arg = arg;
	vdi_lock_release(&recorder->lock);
	vd_actor_close(recorder->actor, on_actor_closed, recorder);
}
