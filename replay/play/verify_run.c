/* Only the actor uses the verifier. The lock guards data that crosses threads: pages of lists and answers to
 * writers. */
#include "verify_run.h"

#include <inttypes.h>
#include <stdio.h>

#include "key_range.h"
#include "lock.h"
#include "rand.h"
#include "store_read.h"
#include "verify_faults.h"
#include "verify_writers.h"

#define STREAMS 3 /* the last one starts in the past */
#define REREADING 2
#define EVENTS_PER_CALL 1000
#define BATCHES_PER_RUN 64
#define REREAD_MAX 2000
#define BACKOFF_MIN VD_MS(20)
#define BACKOFF_MAX VD_SECONDS(2)

static const char *const stream_names[STREAMS] = { "first", "second", "looking back" };

struct stream {
	struct vdi_verify_run	   *run;
	struct vd_store_watch	   *watch;
	struct vdi_verifier_stream *checked;
	struct vdi_store_backoff    backoff;
	vd_rev			    until; /* of the looking-back stream: done when it has passed this */
	const char		   *name;
	struct vd_watch_observer    observer;
};

struct vdi_verify_run {
	const struct vd_env	 *env;
	struct vd_actor		 *actor;
	struct vdi_verify_options options;
	struct vdi_store_interval interval;
	char			 *write_prefix;

	/* Owned by the actor. */
	struct vdi_rand		   rand;
	struct vdi_verifier	  *verifier;
	struct stream		   streams[STREAMS];
	struct vdi_verify_writers  writers;
	bool			   is_running, has_failed;
	vd_rev			   first;	 /* of the first list */
	vd_rev			   shown;	 /* newest revision delivered by a stream */
	vd_rev			   acknowledged; /* newest revision acknowledged to a writer */
	vd_rev			   compacted;	 /* newest known compaction */
	bool			   is_listing;
	vd_rev			   list_revision, list_minimum;
	unsigned		   generation, list_generation; /* of the verifier; each list has one */
	struct vd_kv		  *last;
	vd_mono			   list_due, reread_due, progress_due;
	struct vdi_verifier_totals earlier; /* of earlier verifiers */
	struct vdi_verify_faults   faults;
	vd_mono			   read_due; /* of the next read of a previous record */

	struct vdi_lock lock;
	/* Under lock. */
	unsigned		    calls; /* outstanding calls into the store */
	bool			    has_page;
	struct vdi_store_page	    page;
	struct vdi_verify_progress  progress;
	bool			    is_stopping;
	vd_mono			    stop_at;
	bool			    is_closing, is_actor_gone;
	struct vdi_verify_progress *ret_progress;
	void (*close_done)(void *arg);
	void *close_done_arg;
};

/* ---- Shutdown ---- */

static void destroy(struct vdi_verify_run *run)
{
	void (*done)(void *arg) = run->close_done;
	void *done_arg = run->close_done_arg;

	if (run->ret_progress)
		*run->ret_progress = run->progress;
	for (int i = 0; i < STREAMS; i++) {
		vd_store_watch_close(run->streams[i].watch);
		vdi_verifier_stream_close(run->streams[i].checked);
	}
	vdi_verifier_free(run->verifier);
	vdi_store_page_drop(&run->page);
	vd_kv_unref(run->last);
	vdi_store_interval_fini(&run->interval);
	vdi_verify_faults_fini(&run->faults);
	vdi_verify_writers_fini(&run->writers);
	vdi_free(run->write_prefix);
	vdi_lock_fini(&run->lock);
	vdi_free(run);
	if (done)
		done(done_arg);
}

static void fail(struct vdi_verify_run *run, vd_status status, const struct vd_error *error)
{
	struct vd_error reported = error ? *error : (struct vd_error) { 0 };

	if (run->has_failed)
		return;
	run->has_failed = true;
	vdi_verify_writers_stop(&run->writers);
	if (reported.message[0] == 0)
		(void) vd_error_set(&reported, status, "%s", vd_status_sentence(status));
	reported.code = status;
	if (run->options.failed)
		run->options.failed(run->options.arg, &reported);
}

static void wake(struct vdi_verify_run *run)
{
	vdi_lock_acquire(&run->lock);
	if (!run->is_closing)
		vd_actor_wake(run->actor);
	vdi_lock_release(&run->lock);
}

/* Notes that a call into the store was answered. */
static void call_ended(struct vdi_verify_run *run)
{
	bool gone;

	vdi_lock_acquire(&run->lock);
	run->calls--;
	gone = run->is_actor_gone && run->calls == 0;
	if (!run->is_closing)
		vd_actor_wake(run->actor);
	vdi_lock_release(&run->lock);
	if (gone)
		destroy(run);
}

static void call_begins(struct vdi_verify_run *run)
{
	vdi_lock_acquire(&run->lock);
	run->calls++;
	vdi_lock_release(&run->lock);
}

static void violated(void *arg, const struct vdi_violation *violation)
{
	struct vdi_verify_run *run = arg;

	if (run->options.violated)
		run->options.violated(run->options.arg, violation);
}

/* ---- Lists ---- */

static void on_page(void *arg, vd_status status, const struct vd_range_result *result,
		    const struct vd_error *error)
{
	struct vdi_verify_run *run = arg;

	vdi_lock_acquire(&run->lock);
	run->has_page = true;
	vdi_store_page_keep(&run->page, status, result, error);
	vdi_lock_release(&run->lock);
	call_ended(run);
}

static void ask_page(struct vdi_verify_run *run)
{
	vd_status status;

	run->is_listing = true;
	call_begins(run);
	status = vdi_store_page_ask(run->options.store, &run->interval, run->last, run->list_revision,
				    on_page, run);
	if (status == VD_OK)
		return;
	run->is_listing = false;
	vdi_lock_acquire(&run->lock);
	run->calls--;
	vdi_lock_release(&run->lock);
	if (!vdi_store_failure_passes(status))
		fail(run, status, NULL);
}

static void begin_list(struct vdi_verify_run *run)
{
	run->list_due = vd_mono_add(vd_env_now(run->env), run->options.list_interval);
	run->list_revision = 0;
	run->list_minimum = VDI_MAX(run->shown, run->acknowledged);
	run->list_generation = run->generation;
	run->last = vd_kv_unref(run->last);
	ask_page(run);
}

static void begin_running(struct vdi_verify_run *run)
{
	run->is_running = true;
	run->first = run->shown = run->list_revision;
	vdi_lock_acquire(&run->lock);
	run->progress.is_running = true;
	vdi_lock_release(&run->lock);
}

static vd_status take_items(struct vdi_verify_run *run, struct vd_kv **page, size_t count, bool more)
{
	if (run->last == NULL)
		vdi_verifier_list_begin(run->verifier, run->list_revision, run->list_minimum);
	for (size_t i = 0; i < count; i++)
		VDI_TRY(vdi_verifier_list_item(run->verifier, vd_kv_key(page[i]), page[i]->mod_rev,
					       page[i]->version, vdi_verifier_hash(vd_kv_value(page[i]))));
	if (count) {
		vd_kv_unref(run->last);
		run->last = vd_kv_ref(page[count - 1]);
	}
	if (more)
		return VD_OK;
	vdi_verifier_list_end(run->verifier);
	if (!run->is_running)
		begin_running(run);
	return VD_OK;
}

static void take_page(struct vdi_verify_run *run)
{
	struct vdi_store_page page;
	vd_status	      status;

	vdi_lock_acquire(&run->lock);
	run->has_page = false;
	page = run->page;
	memset(&run->page, 0, sizeof run->page);
	vdi_lock_release(&run->lock);
	if (run->list_revision == 0)
		run->list_revision = page.revision;
	run->is_listing = false;
	status = page.status;
	if (run->list_generation != run->generation)
		status = VD_EXPIRED; /* of an earlier verifier; the next list is due */
	if (status == VD_OK)
		status = take_items(run, page.kvs, page.count, page.more);
	if (status == VD_OK && page.more)
		ask_page(run);
	else if (status == VD_NOMEM)
		fail(run, status, NULL);
	else if (status != VD_OK && status != VD_EXPIRED && !vdi_store_failure_passes(status))
		fail(run, status, &page.error);
	vdi_store_page_drop(&page);
}

/* ---- Streams ---- */

static void be_ready(void *arg)
{
	wake(((struct stream *) arg)->run);
}

/* ---- Faults of the source ---- */

static void on_fault(void *arg, const struct vd_watch_fault *fault)
{
	struct stream *stream = arg;

	vdi_verify_faults_put(&stream->run->faults, stream->name, fault);
	wake(stream->run);
}

static void on_previous(void *arg, vd_status status, const struct vd_range_result *result,
			const struct vd_error *error)
{
	struct vdi_verify_run *run = arg;

	(void) error; /* the status is sufficient */
	vdi_verify_faults_answer(&run->faults, status, result);
	call_ended(run);
}

static void decide_faults(struct vdi_verify_run *run, vd_mono now)
{
	struct vd_range_request request;
	vd_status		status;

	vdi_verify_faults_decide(&run->faults, run->verifier);
	if (now.ns < run->read_due.ns || !vdi_verify_faults_next_read(&run->faults, &request))
		return;
	run->read_due = vd_mono_add(now, BACKOFF_MIN); /* also if it fails at once */
	call_begins(run);
	status = vd_store_range(run->options.store, &request, on_previous, run);
	if (status == VD_OK)
		return;
	vdi_verify_faults_answer(&run->faults, status, NULL);
	vdi_lock_acquire(&run->lock);
	run->calls--;
	vdi_lock_release(&run->lock);
}

/* ---- Delivered events ---- */

static vd_status show(struct vdi_verifier_stream *checked, const struct vd_store_event *events, size_t count)
{
	struct vdi_seen	 few[16];
	struct vdi_seen *seen = count <= VDI_ARRAY_SIZE(few) ? few : vdi_calloc(count, sizeof *seen);
	vd_status	 status;

	if (seen == NULL)
		return VD_NOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct vd_store_event *event = &events[i];

		seen[i] = (struct vdi_seen) { .key = vd_kv_key(event->kv),
					      .revision = event->kv->mod_rev,
					      .is_delete = event->is_delete };
		if (!event->is_delete) {
			seen[i].create_rev = event->kv->create_rev;
			seen[i].version = event->kv->version;
			seen[i].value_hash = vdi_verifier_hash(vd_kv_value(event->kv));
			if (event->kv->version == 0) /* sources without versions report creations */
				seen[i].hint =
					vd_store_event_is_create(event) ? VDI_HINT_ADDED : VDI_HINT_MODIFIED;
		}
		if (event->previous) {
			seen[i].has_previous = true;
			seen[i].previous_revision = event->previous->mod_rev;
			seen[i].previous_hash = vdi_verifier_hash(vd_kv_value(event->previous));
		}
	}
	status = vdi_verifier_revision(checked, seen, count);
	if (seen != few)
		vdi_free(seen);
	return status;
}

static vd_status take_batch(struct stream *stream, const struct vd_store_batch *batch)
{
	if (batch->event_count == 0)
		vdi_verifier_progress(stream->checked, batch->revision);
	for (size_t first = 0, next; first < batch->event_count; first = next) {
		for (next = first + 1; !stream->run->options.in_parts && next < batch->event_count &&
				       batch->events[next].kv->mod_rev == batch->events[first].kv->mod_rev;)
			next++;
		VDI_TRY(show(stream->checked, batch->events + first, next - first));
	}
	stream->run->shown = VDI_MAX(stream->run->shown, batch->revision);
	return VD_OK;
}

static void close_stream(struct stream *stream)
{
	vd_store_watch_close(stream->watch);
	stream->watch = NULL;
	vdi_verifier_stream_close(stream->checked);
	stream->checked = NULL;
}

static void back_off(struct stream *stream)
{
	vdi_store_backoff_note(&stream->backoff, vd_env_now(stream->run->env), BACKOFF_MIN, BACKOFF_MAX);
}

/* Opens a watch that must deliver everything after `after`. */
static void open_watch(struct stream *stream, vd_rev after)
{
	struct vdi_verify_run	     *run = stream->run;
	struct vd_store_watch_request request = { .key = run->interval.key,
						  .range_end = run->interval.range_end,
						  .start_revision = after + 1,
						  .previous = true,
						  .progress = true,
						  .ready = be_ready,
						  .ready_arg = stream,
						  .observer = &stream->observer };
	struct vd_error		      error = { 0 };
	vd_status status = vd_store_watch_open(run->options.store, &request, &stream->watch, &error);

	if (status == VD_OK)
		return;
	stream->watch = NULL;
	if (vdi_store_failure_passes(status))
		back_off(stream);
	else
		fail(run, status, &error);
}

static void start_stream(struct stream *stream, vd_rev after, bool resumes)
{
	if (vdi_verifier_stream_open(stream->run->verifier, stream->name, after, resumes, &stream->checked) !=
	    VD_OK) {
		fail(stream->run, VD_NOMEM, NULL);
		return;
	}
	stream->backoff.wait.ns = 0;
	open_watch(stream, after);
}

static void reread_past(struct vdi_verify_run *run, struct stream *stream)
{
	vd_rev oldest = VDI_MAX(VDI_MAX(run->first, run->compacted), run->shown - REREAD_MAX);
	vd_rev span = run->shown - oldest;

	run->reread_due = vd_mono_add(vd_env_now(run->env), run->options.resume_interval);
	if (span <= 0)
		return;
	stream->until = run->shown;
	start_stream(stream, oldest + (vd_rev) vdi_rand_below(&run->rand, (uint64_t) span), true);
}

static void start_over(struct vdi_verify_run *run)
{
	struct vdi_verifier_totals totals;

	for (int i = 0; i < STREAMS; i++)
		close_stream(&run->streams[i]);
	vdi_verifier_totals_get(run->verifier, &totals);
	run->earlier.events += totals.events;
	run->earlier.revisions += totals.revisions;
	run->earlier.progresses += totals.progresses;
	run->earlier.lists += totals.lists;
	run->earlier.resumes += totals.resumes;
	run->earlier.acknowledgements += totals.acknowledgements;
	run->earlier.violations += totals.violations;
	vdi_verifier_free(run->verifier);
	run->verifier = NULL;
	run->generation++;
	run->list_due.ns = 0;
	run->is_running = false;
	run->shown = 0;
	vdi_lock_acquire(&run->lock);
	run->progress.restarts++;
	vdi_lock_release(&run->lock);
}

/* Handles a watch that expired by a compaction, which is allowed. A looking-back stream is closed; if a main
 * stream expired, verification starts over. */
static void expired(struct vdi_verify_run *run, struct stream *stream, const struct vd_error *error)
{
	run->compacted = VDI_MAX(run->compacted, error->compacted);
	close_stream(stream);
	for (int i = 0; i < REREADING; i++)
		if (stream == &run->streams[i] || run->streams[i].checked == NULL) {
			start_over(run);
			return;
		}
}

static void watch_ended(struct vdi_verify_run *run, struct stream *stream, vd_status status,
			const struct vd_error *error)
{
	vd_store_watch_close(stream->watch);
	stream->watch = NULL;
	if (status == VD_EXPIRED) {
		expired(run, stream, error);
	} else if (vdi_store_failure_passes(status)) {
		vdi_lock_acquire(&run->lock);
		run->progress.reconnects++;
		vdi_lock_release(&run->lock);
		back_off(stream);
	} else {
		fail(run, status, error);
	}
}

/* Reads events of a stream. true: there may be more. */
static bool read_stream(struct vdi_verify_run *run, struct stream *stream)
{
	struct vd_store_batch batch;
	struct vd_error	      error;
	vd_status	      status;

	for (int i = 0; stream->watch && i < BATCHES_PER_RUN; i++) {
		error = (struct vd_error) { 0 };
		status = vd_store_watch_next(stream->watch, EVENTS_PER_CALL, &batch, &error);
		if (status == VD_AGAIN)
			return false;
		if (status != VD_OK) {
			watch_ended(run, stream, status, &error);
			return false;
		}
		stream->backoff.wait.ns = 0;
		if (take_batch(stream, &batch) != VD_OK) {
			fail(run, VD_NOMEM, NULL);
			return false;
		}
	}
	return stream->watch != NULL;
}

static void run_streams(struct vdi_verify_run *run, vd_mono now)
{
	bool more = false;

	for (int i = 0; i < STREAMS && run->is_running && !run->has_failed; i++) {
		struct stream *stream = &run->streams[i];

		if (i == REREADING && stream->checked &&
		    vdi_verifier_stream_position(stream->checked) >= stream->until)
			close_stream(stream);
		if (stream->checked == NULL) {
			if (i == REREADING && now.ns >= run->reread_due.ns)
				reread_past(run, stream);
			else if (i != REREADING)
				start_stream(stream, run->first, false);
		} else if (stream->watch == NULL && now.ns >= stream->backoff.retry_at.ns) {
			open_watch(stream, vdi_verifier_stream_position(stream->checked));
		}
		more |= read_stream(run, stream);
	}
	if (run->is_running && now.ns >= run->progress_due.ns) {
		run->progress_due = vd_mono_add(now, run->options.progress_interval);
		for (int i = 0; i < STREAMS; i++)
			if (run->streams[i].watch)
				(void) vd_store_watch_progress(
					run->streams[i].watch); /* a lost request is repeated */
	}
	if (more)
		vd_actor_wake(run->actor);
}

/* ---- Writers ---- */

static void on_call_begins(void *arg)
{
	call_begins(arg);
}

static void on_call_ended(void *arg)
{
	call_ended(arg);
}

static void on_writer_failed(void *arg, vd_status status)
{
	fail(arg, status, NULL);
}

static void on_answered(void *arg, const char *key, const struct vdi_verify_writer_answer *answer)
{
	struct vdi_verify_run *run = arg;
	bool		       is_unknown = answer->status == VD_UNAVAILABLE || answer->status == VD_TIMEOUT;
	bool		       is_done = answer->status == VD_OK;

	vdi_lock_acquire(&run->lock);
	run->progress.writes += is_done;
	run->progress.unknown_writes += is_unknown;
	if (run->is_stopping && is_done &&
	    run->options.settle_time.ns > 0) /* the time restarts with each success */
		run->stop_at = vd_mono_add(vd_env_now(run->env), run->options.settle_time);
	vdi_lock_release(&run->lock);
	if (is_done)
		run->acknowledged = VDI_MAX(run->acknowledged, answer->revision);
	if (is_done && answer->changed && run->verifier && run->is_running && answer->revision > run->first &&
	    vdi_verifier_acknowledged(run->verifier, answer->revision, vd_bytes_of(key)) != VD_OK)
		fail(run, VD_NOMEM, NULL);
	else if (!is_done && !is_unknown && !vdi_store_failure_passes(answer->status) &&
		 answer->status != VD_NO_SPACE)
		fail(run, answer->status, &answer->error);
}

static bool run_writers(struct vdi_verify_run *run, vd_mono now, bool is_stopping)
{
	return vdi_verify_writers_run(&run->writers, now,
				      is_stopping     ? VDI_VERIFY_WRITERS_CLEAN :
				      run->is_running ? VDI_VERIFY_WRITERS_WRITE :
							VDI_VERIFY_WRITERS_WAIT);
}

/* ---- The actor ---- */

static void publish_totals(struct vdi_verify_run *run)
{
	struct vdi_verifier_totals totals = { 0 };

	if (run->verifier) {
		vdi_verifier_settle(run->verifier);
		vdi_verifier_totals_get(run->verifier, &totals);
	}
	totals.events += run->earlier.events;
	totals.revisions += run->earlier.revisions;
	totals.progresses += run->earlier.progresses;
	totals.lists += run->earlier.lists;
	totals.resumes += run->earlier.resumes;
	totals.acknowledgements += run->earlier.acknowledgements;
	totals.violations += run->earlier.violations;
	vdi_lock_acquire(&run->lock);
	run->progress.totals = totals;
	vdi_lock_release(&run->lock);
}

/* Returns true if all streams have delivered the last writes. */
static bool is_settled(struct vdi_verify_run *run, bool busy)
{
	if (busy || run->is_listing || run->has_failed || !run->is_running)
		return !busy && !run->is_listing;
	if (!vdi_verify_faults_is_idle(&run->faults))
		return false;
	for (int i = 0; i < REREADING; i++)
		if (run->streams[i].checked == NULL || vdi_verifier_stream_position(run->streams[i].checked) <
							       VDI_MAX(run->shown, run->acknowledged))
			return false;
	return !vdi_verifier_list_is_pending(run->verifier);
}

static void on_actor_closed(void *arg);

static void close_now(struct vdi_verify_run *run)
{
	bool first;

	vdi_lock_acquire(&run->lock);
	first = !run->is_closing;
	run->is_closing = true;
	vdi_lock_release(&run->lock);
	if (first)
		vd_actor_close(run->actor, on_actor_closed, run);
}

static void set_timer(struct vdi_verify_run *run, vd_mono now, bool is_stopping, vd_mono stop_at)
{
	vd_mono due = vd_mono_add(now, VD_MS(100));

	if (is_stopping && stop_at.ns < due.ns)
		due = stop_at;
	vd_actor_set_timer(run->actor, due);
}

static vd_status make_verifier(struct vdi_verify_run *run)
{
	struct vdi_verifier_options options = { .in_parts = run->options.in_parts,
						.violated = violated,
						.arg = run };

	return run->verifier ? VD_OK : vdi_verifier_new(&options, &run->verifier);
}

static void verify_run(void *arg)
{
	struct vdi_verify_run *run = arg;
	vd_mono		       now = vd_env_now(run->env), stop_at;
	bool		       has_page, is_stopping, busy;

	vdi_lock_acquire(&run->lock);
	has_page = run->has_page;
	is_stopping = run->is_stopping;
	stop_at = run->stop_at;
	vdi_lock_release(&run->lock);
	if (make_verifier(run) != VD_OK)
		fail(run, VD_NOMEM, NULL);
	if (has_page && !run->has_failed)
		take_page(run);
	busy = run_writers(run, now, is_stopping);
	if (!run->has_failed)
		decide_faults(run, now);
	if (!run->has_failed) {
		run_streams(run, now);
		if (!run->is_listing && now.ns >= run->list_due.ns && !is_stopping && run->verifier &&
		    !vdi_verifier_list_is_pending(run->verifier))
			begin_list(run);
	}
	publish_totals(run);
	if (is_stopping && (is_settled(run, busy) || run->has_failed || now.ns >= stop_at.ns))
		close_now(run);
	else
		set_timer(run, now, is_stopping, stop_at);
}

/* ---- Lifetime ---- */

static vd_status copy_texts(struct vdi_verify_run *run)
{
	struct vd_bytes write_prefix = run->options.write_prefix;

	VDI_TRY(vdi_store_interval_init(&run->interval, run->options.prefix));
	run->write_prefix = vdi_strndup(write_prefix.size ? write_prefix.data : "", write_prefix.size);
	return run->write_prefix ? VD_OK : VD_NOMEM;
}

static void init_writers(struct vdi_verify_run *run)
{
	struct vdi_verify_writers_host host = { .store = run->options.store,
						.prefix = run->write_prefix,
						.count = run->options.writers,
						.one_by_one = run->options.one_by_one,
						.make_value = run->options.make_value,
						.make_value_arg = run->options.arg,
						.call_begins = on_call_begins,
						.call_ended = on_call_ended,
						.answered = on_answered,
						.failed = on_writer_failed,
						.arg = run };

	vdi_verify_writers_init(&run->writers, run->env, &host);
}

vd_status vdi_verify_run_new(const struct vd_env *env, const struct vdi_verify_options *options,
			     struct vdi_verify_run **ret_run)
{
	struct vdi_verify_run  *run = VDI_NEW(struct vdi_verify_run);
	struct vd_actor_options actor = { .name = "verify", .run = verify_run, .arg = run };
	vd_status		status;

	if (run == NULL)
		return VD_NOMEM;
	run->env = env;
	run->options = *options;
	if (run->options.list_interval.ns <= 0)
		run->options.list_interval = VD_SECONDS(2);
	if (run->options.resume_interval.ns <= 0)
		run->options.resume_interval = VD_SECONDS(1);
	if (run->options.progress_interval.ns <= 0)
		run->options.progress_interval = VD_SECONDS(1);
	if (run->options.settle_time.ns <= 0)
		run->options.settle_time = VD_SECONDS(10);
	vdi_rand_init(&run->rand, vd_env_random(env));
	for (int i = 0; i < STREAMS; i++) {
		run->streams[i].run = run;
		run->streams[i].name = stream_names[i];
		run->streams[i].observer = (struct vd_watch_observer) { on_fault, &run->streams[i] };
	}
	vdi_verify_faults_init(&run->faults);
	vdi_lock_init(&run->lock, VDI_LOCK_WAIT);
	status = copy_texts(run);
	init_writers(run);
	if (status == VD_OK)
		status = vd_actor_new(env, &actor, &run->actor);
	if (status != VD_OK) {
		destroy(run);
		return status;
	}
	*ret_run = run;
	vd_actor_wake(run->actor);
	return VD_OK;
}

void vdi_verify_run_progress_get(const struct vdi_verify_run *run, struct vdi_verify_progress *ret_progress)
{
	struct vdi_verify_run *mine =
		(struct vdi_verify_run *) (uintptr_t) run; /* only its lock is modified */

	vdi_lock_acquire(&mine->lock);
	*ret_progress = run->progress;
	vdi_lock_release(&mine->lock);
}

static void on_actor_closed(void *arg)
{
	struct vdi_verify_run *run = arg;
	bool		       last;

	vdi_lock_acquire(&run->lock);
	run->is_actor_gone = true;
	last = run->calls == 0;
	vdi_lock_release(&run->lock);
	if (last)
		destroy(run);
}

void vdi_verify_run_close(struct vdi_verify_run *run, struct vdi_verify_progress *ret_progress,
			  void (*done)(void *arg), void				 *arg)
{
	vdi_lock_acquire(&run->lock);
	run->is_stopping = true;
	run->stop_at = vd_mono_add(vd_env_now(run->env), run->options.settle_time);
	run->ret_progress = ret_progress;
	run->close_done = done;
	run->close_done_arg = arg;
	vd_actor_wake(run->actor);
	vdi_lock_release(&run->lock);
}
