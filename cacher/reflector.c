/* Events are taken into an array and applied up to the last complete revision; the next events may belong to
 * the revision after it. When the stream has no more events, the last revision is complete too, because
 * watchChan passes on whole revisions.
 *
 * Out of memory is a transient error everywhere: the events stay in the array and the step is repeated a
 * little later. */
#include "reflector.h"

#include <stdio.h>

#include "backfill.h"
#include "cacher_state.h"
#include "dispatch.h"
#include "env.h"

#define TAKE_MAX 64
#define ROUNDS_MAX 8
#define NOMEM_RETRY VD_MS(100)

void vdi_reflector_init(struct vdi_reflector *reflector)
{
	*reflector = (struct vdi_reflector) { .backoff = VDI_BACKOFF_FIRST };
}

static void drop_events(struct vdi_reflector *reflector, size_t count)
{
	for (size_t i = 0; i < count; i++)
		vdi_watchchan_event_fini(&reflector->events[i]);
	reflector->event_count -= count;
	if (count && reflector->event_count)
		memmove(reflector->events, reflector->events + count,
			reflector->event_count * sizeof *reflector->events);
}

static void drop_loading(struct vdi_reflector *reflector)
{
	for (size_t i = 0; i < reflector->loading_count; i++)
		vd_object_unref(reflector->loading[i]);
	vdi_free(reflector->loading);
	reflector->loading = NULL;
	reflector->loading_count = reflector->loading_capacity = 0;
	reflector->loading_bytes = 0;
}

void vdi_reflector_fini(struct vdi_reflector *reflector)
{
	drop_events(reflector, reflector->event_count);
	drop_loading(reflector);
	vdi_btree_fini(&reflector->pending);
	vdi_free(reflector->events);
}

/* ---- The stream ---- */

void vdi_reflector_wake(void *arg)
{
	struct vd_cacher *cacher = arg;

	vd_actor_wake(cacher->actor);
}

static void count_undecodable(void *arg, struct vd_kv *kv, bool is_delete, const struct vd_error *error)
{
	struct vd_cacher *cacher = arg;

	struct vd_bytes key = { kv->data, kv->key_size };

	__atomic_fetch_add(&cacher->reflector.undecodable, 1, __ATOMIC_RELAXED);
	if (is_delete)
		vdi_quarantine_remove(&cacher->quarantine, key, kv->mod_rev);
	else
		vdi_quarantine_add(&cacher->quarantine, key, kv->mod_rev, error ? error->message : "");
	vdi_log(cacher->env, VD_LOG_WARNING, "cacher", "%s: %.*s cannot be decoded and is left out: %s",
		cacher->options.resource, (int) kv->key_size, kv->data, error ? error->message : "");
}

void vdi_reflector_stream_closed(void *arg)
{
	vdi_cacher_call_end(arg);
}

static void close_stream(struct vd_cacher *cacher)
{
	struct vdi_watchchan *watchchan = cacher->reflector.watchchan;

	vdi_lock_acquire(&cacher->watchers.lock);
	cacher->reflector.watchchan = NULL;
	vdi_lock_release(&cacher->watchers.lock);
	if (watchchan)
		vdi_watchchan_close(watchchan, vdi_reflector_stream_closed, cacher);
}

static void back_off(struct vd_cacher *cacher)
{
	struct vdi_reflector *reflector = &cacher->reflector;
	vd_mono		      now = vd_env_now(cacher->env);

	if (vd_mono_since(now, reflector->last_backoff).ns > VDI_BACKOFF_RESET.ns)
		reflector->backoff = VDI_BACKOFF_FIRST;
	/* Jitter factor 1.0: in [d, 2d). */
	reflector->retry_at = vd_mono_add(
		now,
		(vd_dur) { reflector->backoff.ns +
			   (int64_t) vd_env_random_below(cacher->env, (uint64_t) reflector->backoff.ns) });
	reflector->backoff.ns = VDI_MIN(reflector->backoff.ns * 2, VDI_BACKOFF_MAX.ns);
	reflector->last_backoff = now;
}

static void open_stream(struct vd_cacher *cacher)
{
	struct vdi_reflector	    *reflector = &cacher->reflector;
	bool			     is_listing = reflector->phase == VDI_REFLECTOR_LISTING;
	struct vdi_watchchan_options options = {
		.resource = cacher->options.resource,
		.codec = cacher->codec,
		.key = vdi_cacher_prefix(cacher),
		.recursive = true,
		.revision = is_listing ? 0 : vdi_watch_cache_revision(&cacher->watch_cache),
		.send_initial_events = is_listing ? VD_TRUE : VD_UNSET,
		.initial_end_bookmark = is_listing,
		.progress = true,
		.skip_undecodable = cacher->options.skip_undecodable,
		.decode_workers = cacher->options.decode_workers,
		.undecodable = count_undecodable,
		.undecodable_arg = cacher,
		.metrics = cacher->storage_metrics,
		.ready = vdi_reflector_wake,
		.ready_arg = cacher,
	};
	struct vdi_watchchan *watchchan = NULL;
	struct vd_error	      error = { 0 };

	if (!vdi_cacher_call_begin(cacher))
		return;
	reflector->has_events = false;
	reflector->opened = vd_env_now(cacher->env);
	if (is_listing) {
		reflector->started = reflector->opened;
		vdi_quarantine_clear(&cacher->quarantine);
	}
	if (vdi_watchchan_open(cacher->env, cacher->store, &options, &watchchan, &error) != VD_OK) {
		vdi_cacher_call_end(cacher);
		if (is_listing)
			vdi_ready_set_pending(&cacher->ready, error.message);
		back_off(cacher);
		return;
	}
	vdi_lock_acquire(&cacher->watchers.lock);
	reflector->watchchan = watchchan;
	vdi_lock_release(&cacher->watchers.lock);
}

/* Invalidates the cache: all watchers end, and can watch again after the next fill. The log has the store's
 * cause, callers get why. */
static void start_over_for(struct vd_cacher *cacher, const char *why, const char *cause)
{
	struct vdi_reflector *reflector = &cacher->reflector;

	close_stream(cacher);
	drop_events(reflector, reflector->event_count);
	drop_loading(reflector);
	if (reflector->phase == VDI_REFLECTOR_WATCHING) {
		reflector->relists++;
		vdi_metric_add(cacher->metrics.relists, 1);
		vdi_log(cacher->env, VD_LOG_WARNING, "cacher", "%s: listing again: %s",
			cacher->options.resource, cause);
	}
	reflector->phase = VDI_REFLECTOR_LISTING;
	vdi_metric_add(cacher->metrics.initialization_errors, 1);
	vdi_ready_set_pending(&cacher->ready, why);
	vdi_dispatch_end_all(cacher);
	back_off(cacher);
}

static void start_over(struct vd_cacher *cacher, const char *why)
{
	start_over_for(cacher, why, why);
}

void vdi_reflector_relist(struct vd_cacher *cacher, const char *why)
{
	if (cacher->reflector.phase == VDI_REFLECTOR_WATCHING)
		start_over(cacher, why);
}

static bool is_passing(vd_status code)
{
	switch (code) {
	case VD_EXPIRED:
	case VD_UNDECODABLE:
	case VD_CORRUPT:
	case VD_TOO_LARGE_REVISION: /* the store lost revisions */
	case VD_BAD_REQUEST:
	case VD_INVALID_ARGUMENT:
	case VD_UNSUPPORTED: return false;
	default: return true;
	}
}

/* Handles the end of the stream; error is NULL for a regular end. cause: message for the log; NULL: that of
 * the error. */
static void stream_ended(struct vd_cacher *cacher, const struct vd_error *error, const char *cause)
{
	struct vdi_reflector *reflector = &cacher->reflector;
	vd_dur		      lasted = vd_mono_since(vd_env_now(cacher->env), reflector->opened);

	if (reflector->phase == VDI_REFLECTOR_LISTING) {
		start_over(cacher, error ? error->message : "the store ended the list");
		return;
	}
	if (error && !is_passing(error->code)) {
		start_over_for(cacher, error->message, cause ? cause : error->message);
		return;
	}
	reflector->resumes++;
	vdi_metric_add(cacher->metrics.resumes, 1);
	/* A regular end is a server's own timeout: resume at once. A stream that ended within a second
	 * without events is treated as a failure and delayed. */
	if (error || (lasted.ns < VD_SECONDS(1).ns && !reflector->has_events))
		back_off(cacher);
	drop_events(reflector,
		    reflector->event_count); /* partial revision; the next stream sends it completely */
	close_stream(cacher);
}

/* ---- Received events ---- */

static void finish_listing(struct vd_cacher *cacher, vd_rev revision)
{
	struct vdi_reflector *reflector = &cacher->reflector;
	struct vdi_btree      objects;
	bool		      is_backfilling;
	vd_status	      status;

	vdi_btree_init(&objects, &vdi_object_btree_ops);
	status =
		vdi_btree_load_sorted(&objects, (void *const *) reflector->loading, reflector->loading_count);
	if (status == VD_INVALID_ARGUMENT) { /* the store does not list in key order */
		status = VD_OK;
		for (size_t i = 0; status == VD_OK && i < reflector->loading_count; i++)
			status = vdi_btree_put(&objects, reflector->loading[i], NULL);
	}
	if (status != VD_OK) {
		vdi_btree_fini(&objects);
		start_over(cacher, "out of memory");
		return;
	}
	reflector->pending = objects;
	reflector->pending_revision = revision;
	reflector->pending_bytes =
		objects.live.count == reflector->loading_count ? reflector->loading_bytes : -1;
	is_backfilling = vdi_backfill_begin(cacher);
	drop_loading(reflector);
	if (is_backfilling)
		reflector->phase = VDI_REFLECTOR_BACKFILLING;
	else
		vdi_reflector_fill(cacher, false);
}

void vdi_reflector_fill(struct vd_cacher *cacher, bool keep_history)
{
	struct vdi_reflector *reflector = &cacher->reflector;
	vd_rev		      revision = reflector->pending_revision;

	if (revision <= vdi_watch_cache_revision(&cacher->watch_cache))
		atomic_fetch_add(&cacher->set_back, 1);
	vdi_watch_cache_replace(&cacher->watch_cache, &reflector->pending, reflector->pending_bytes, revision,
				keep_history);
	vdi_btree_fini(&reflector->pending);
	reflector->phase = VDI_REFLECTOR_WATCHING;
	reflector->backoff = VDI_BACKOFF_FIRST;
	vdi_metric_add(cacher->metrics.initializations, 1);
	vdi_metric_observe_duration(cacher->metrics.initialization_duration,
				    vd_mono_since(vd_env_now(cacher->env), reflector->started));
	vdi_metric_set(cacher->metrics.revision, revision % INT64_C(1000000000000000));
	vdi_ready_set_ready(&cacher->ready);
	vdi_watch_cache_build_indexes(&cacher->watch_cache);
}

/* Appends a listed object. Its size is added now, while the object is in the CPU cache. */
static bool load(struct vd_cacher *cacher, struct vdi_watchchan_event *event)
{
	struct vdi_reflector *reflector = &cacher->reflector;
	void		     *loading = reflector->loading;

	if (!vdi_grow(&loading, &reflector->loading_capacity, reflector->loading_count + 1,
		      sizeof *reflector->loading))
		return false;
	reflector->loading = loading;
	reflector->loading[reflector->loading_count++] = event->object;
	reflector->loading_bytes += vdi_object_store_size_of(event->object);
	event->object = NULL;
	return true;
}

/* Handles an event of the initial state. false: the stream was closed. */
static bool take_initial(struct vd_cacher *cacher, struct vdi_watchchan_event *event)
{
	struct vdi_reflector *reflector = &cacher->reflector;

	if (event->type == VD_WATCH_BOOKMARK) {
		if (event->initial_events_end)
			finish_listing(cacher, event->revision);
		return reflector->watchchan != NULL;
	}
	if (!load(cacher, event)) {
		start_over(cacher, "out of memory");
		return false;
	}
	return true;
}

static double seconds_between(vd_mono from, vd_mono to)
{
	return to.ns > from.ns ? (double) (to.ns - from.ns) / 1e9 : 0;
}

/* Observes the duration of each stage for the first count events: received, applied, dispatched. All events
 * of a batch share the same times. */
static void observe_stages(struct vd_cacher *cacher, size_t count, vd_mono applied)
{
	const struct vdi_watchchan_event *events = cacher->reflector.events;
	struct vdi_cacher_metrics	 *metrics = &cacher->metrics;
	vd_mono				  dispatched = vd_env_now(cacher->env);
	size_t				  from = 0;

	for (size_t i = 1; i <= count; i++) {
		if (i < count && events[i].received.ns == events[from].received.ns)
			continue;
		vdi_metric_observe_many(metrics->dispatch_storage_to_cache,
					seconds_between(events[from].received, applied), i - from);
		vdi_metric_observe_many(metrics->dispatch_total,
					seconds_between(events[from].received, dispatched), i - from);
		from = i;
	}
	vdi_metric_observe_many(metrics->dispatch_cache_to_watcher, seconds_between(applied, dispatched),
				count);
}

/* Applies and dispatches count events of whole revisions. */
static bool apply(struct vd_cacher *cacher, size_t count)
{
	struct vdi_reflector *reflector = &cacher->reflector;
	struct vdi_event     *few[VDI_APPLY_BATCH];
	struct vdi_applied    applied = { .made = few };
	vd_mono		      time;
	vd_status	      status;

	if (count > VDI_APPLY_BATCH && (applied.made = vdi_calloc(count, sizeof *applied.made)) == NULL)
		return false;
	status = vdi_watch_cache_apply(&cacher->watch_cache, reflector->events, count, &applied);
	time = vd_env_now(cacher->env);
	vdi_metric_add(cacher->metrics.events_received, applied.taken);
	/* Keys that can be decoded again. */
	for (size_t i = 0; vdi_quarantine_count(&cacher->quarantine) && i < applied.taken; i++)
		if (reflector->events[i].lost == NULL)
			vdi_quarantine_remove(&cacher->quarantine, vd_object_key(reflector->events[i].object),
					      reflector->events[i].revision);
	vdi_dispatch_events(cacher, &applied);
	observe_stages(cacher, applied.taken, time);
	drop_events(reflector, applied.taken);
	if (applied.made != few)
		vdi_free(applied.made);
	return status == VD_OK;
}

/* Returns the number of events up to the last revision boundary at or before `wanted` or, if there is none,
 * up to the first one after it. */
static size_t whole_revisions(const struct vdi_reflector *reflector, size_t available, size_t wanted)
{
	size_t count = VDI_MIN(wanted, available);

	if (count == available)
		return count;
	while (count > 0 && reflector->events[count].revision == reflector->events[count - 1].revision)
		count--;
	if (count == 0)
		for (count = wanted; count < available && reflector->events[count].revision ==
								  reflector->events[count - 1].revision;)
			count++;
	return count;
}

/* Returns the number of events, from the first, whose revisions do not decrease. Those after them were made
 * by a store that lost revisions. */
static size_t ascending(const struct vdi_reflector *reflector, size_t available)
{
	size_t count = 1;

	while (count < available &&
	       reflector->events[count].revision >= reflector->events[count - 1].revision)
		count++;
	return count;
}

/* Returns the number of leading changes, before the next bookmark or error. */
static size_t leading_changes(const struct vdi_reflector *reflector)
{
	size_t count = 0;

	while (count < reflector->event_count && reflector->events[count].type <= VD_WATCH_DELETED)
		count++;
	return count;
}

/* Returns true if the last revision of the leading changes may have more events to come; a bookmark after
 * them shows that it is complete. */
static bool is_incomplete(const struct vdi_reflector *reflector, size_t available)
{
	return available > 0 && reflector->events[available - 1].more_in_revision &&
	       (available == reflector->event_count ||
		reflector->events[available].type != VD_WATCH_BOOKMARK);
}

/* Handles undecodable changes of the first revision, once everything before it is applied. Each one becomes a
 * deletion if the cache has the object, and is dropped otherwise. If the whole revision was dropped, a
 * bookmark replaces it. Returns how many events were removed. */
static size_t settle_lost(struct vd_cacher *cacher, size_t size)
{
	struct vdi_reflector *reflector = &cacher->reflector;
	bool		      is_complete = !reflector->events[size - 1].more_in_revision;
	size_t		      kept = 0;

	for (size_t i = 0; i < size; i++) {
		struct vdi_watchchan_event event = reflector->events[i];

		if (event.lost && event.object == NULL)
			event.object = vdi_watch_cache_get(&cacher->watch_cache, vd_kv_key(event.lost), NULL);
		if (event.object == NULL) {
			vdi_watchchan_event_fini(&event);
			if (kept || i + 1 < size)
				continue;
			event.type = VD_WATCH_BOOKMARK;
		}
		reflector->events[kept++] = event;
	}
	reflector->events[kept - 1].more_in_revision = !is_complete;
	memmove(reflector->events + kept, reflector->events + size,
		(reflector->event_count - size) * sizeof *reflector->events);
	reflector->event_count -= size - kept;
	return size - kept;
}

/* Returns how many of the first *available events can be processed together: all before the first revision
 * with undecodable changes, or that revision alone. */
static size_t before_lost(struct vd_cacher *cacher, size_t *available)
{
	const struct vdi_reflector *reflector = &cacher->reflector;
	size_t			    limit = ascending(reflector, *available);
	size_t			    at = 0, size, gone;

	while (at < limit && reflector->events[at].lost == NULL)
		at++;
	if (at == limit)
		return limit;
	while (at > 0 && reflector->events[at - 1].revision == reflector->events[at].revision)
		at--;
	if (at > 0)
		return at;
	for (size = 1; size < limit && reflector->events[size].revision == reflector->events[0].revision;)
		size++;
	gone = settle_lost(cacher, size);
	*available -= gone;
	return size - gone;
}

/* Applies complete revisions; an incomplete one waits for its remaining events. */
static bool apply_changes(struct vd_cacher *cacher, size_t available)
{
	struct vdi_reflector *reflector = &cacher->reflector;
	vd_rev		      current = vdi_watch_cache_revision(&cacher->watch_cache);
	vd_rev		      last = available ? reflector->events[available - 1].revision : 0;

	if (is_incomplete(reflector, available))
		while (available > 0 && reflector->events[available - 1].revision == last)
			available--;
	while (available) {
		size_t count;

		if (reflector->events[0].revision <= current) {
			if (reflector->events[0].revision < current) {
				start_over(cacher, "the store's revisions went back");
				return false;
			}
			drop_events(reflector, 1); /* already applied */
			available--;
			continue;
		}
		count = before_lost(cacher, &available);
		if (reflector->events[0].type == VD_WATCH_BOOKMARK)
			return true;
		count = whole_revisions(reflector, count, VDI_APPLY_BATCH);
		if (!apply(cacher, count)) {
			reflector->apply_failed = true;
			reflector->retry_at = vd_mono_add(vd_env_now(cacher->env), NOMEM_RETRY);
			return false;
		}
		available -= count;
		current = vdi_watch_cache_revision(&cacher->watch_cache);
		vdi_metric_set(cacher->metrics.revision, current % INT64_C(1000000000000000));
	}
	return true;
}

static bool take_bookmark(struct vd_cacher *cacher, const struct vdi_watchchan_event *event)
{
	if (event->revision > vdi_watch_cache_revision(&cacher->watch_cache)) {
		vdi_watch_cache_advance(&cacher->watch_cache, event->revision);
		vdi_metric_set(cacher->metrics.revision, event->revision % INT64_C(1000000000000000));
	}
	vdi_metric_add(cacher->metrics.events_dispatched, 1);
	cacher->reflector.progress_answered = true;
	return true;
}

/* Processes the taken events. false: stop for now (stream closed, or out of memory). */
static bool consume(struct vd_cacher *cacher)
{
	struct vdi_reflector *reflector = &cacher->reflector;

	while (reflector->event_count && reflector->phase != VDI_REFLECTOR_BACKFILLING) {
		struct vdi_watchchan_event *first = &reflector->events[0];
		bool			    goes_on = true;
		size_t			    changes;

		if (first->type == VD_WATCH_ERROR) {
			struct vd_error error = { .code = VD_INTERNAL };
			char		cause[sizeof error.message];

			if (first->error)
				error = *first->error;
			snprintf(cause, sizeof cause, "%s", vdi_watchchan_cause(reflector->watchchan));
			drop_events(reflector, 1);
			stream_ended(cacher, &error, cause);
			return false;
		}
		if (reflector->phase == VDI_REFLECTOR_LISTING) {
			struct vdi_watchchan_event event = *first;

			/* Remove it first, because a failure empties the array. */
			reflector->event_count--;
			memmove(first, first + 1, reflector->event_count * sizeof *first);
			goes_on = take_initial(cacher, &event);
			vdi_watchchan_event_fini(&event);
		} else if (first->type == VD_WATCH_BOOKMARK) {
			goes_on = take_bookmark(cacher, first);
			drop_events(reflector, 1);
		} else {
			changes = leading_changes(reflector);
			reflector->has_events = true;
			goes_on = apply_changes(cacher, changes);
			changes = leading_changes(reflector);
			if (goes_on && changes == reflector->event_count)
				return true; /* all done, or the rest of a revision is yet to come */
			if (goes_on && changes)
				drop_events(reflector,
					    /* the stream broke in the middle of a revision */
					    changes);
		}
		if (!goes_on)
			return false;
	}
	return true;
}

/* Processes the initial state without moving the rest of the array for each event, which would dominate the
 * cost. */
static bool consume_listing(struct vd_cacher *cacher)
{
	struct vdi_reflector *reflector = &cacher->reflector;
	size_t		      i;

	for (i = 0; i < reflector->event_count; i++) {
		if (reflector->events[i].type > VD_WATCH_DELETED)
			break;
		if (!load(cacher, &reflector->events[i])) {
			start_over(cacher, "out of memory");
			return false;
		}
	}
	drop_events(reflector, i);
	return true;
}

static bool take_some(struct vd_cacher *cacher, bool *ret_drained)
{
	struct vdi_reflector *reflector = &cacher->reflector;
	void		     *events = reflector->events;
	size_t		      count = 0;
	vd_status	      status;

	if (!vdi_grow(&events, &reflector->event_capacity, reflector->event_count + TAKE_MAX,
		      sizeof *reflector->events)) {
		reflector->apply_failed = true;
		reflector->retry_at = vd_mono_add(vd_env_now(cacher->env), NOMEM_RETRY);
		return false;
	}
	reflector->events = events;
	status = vdi_watchchan_take(reflector->watchchan, reflector->events + reflector->event_count,
				    TAKE_MAX, &count);
	*ret_drained = status == VD_AGAIN;
	if (status == VD_OK)
		reflector->event_count += count;
	else if (status != VD_AGAIN) {
		if (consume(cacher) && reflector->watchchan)
			stream_ended(cacher, NULL, NULL);
		return false;
	}
	if (reflector->phase == VDI_REFLECTOR_LISTING && !consume_listing(cacher))
		return false;
	return consume(cacher);
}

/* Requests progress at once if a reader began to wait after the last answer, otherwise once per period, in
 * case the store drops a request or a reader waits for a revision that does not exist yet. */
static vd_mono request_progress(struct vd_cacher *cacher, vd_mono now)
{
	struct vdi_reflector *reflector = &cacher->reflector;
	uint64_t	      waits;

	if (reflector->phase != VDI_REFLECTOR_WATCHING ||
	    !vdi_watch_cache_has_waiters(&cacher->watch_cache, &waits))
		return VD_NEVER;
	if (reflector->progress_at.ns <= now.ns ||
	    (reflector->progress_answered && reflector->waits_seen != waits)) {
		reflector->progress_at = vd_mono_add(now, VDI_PROGRESS_PERIOD);
		reflector->progress_answered = false;
		reflector->waits_seen = waits;
		vdi_watchchan_progress(reflector->watchchan);
	}
	return reflector->progress_at;
}

void vdi_reflector_ask_progress(struct vd_cacher *cacher)
{
	struct vd_store_status status;

	if (cacher->reflector.phase == VDI_REFLECTOR_WATCHING && cacher->reflector.watchchan &&
	    vd_store_status_get(cacher->store, &status) == VD_OK &&
	    status.current > vdi_watch_cache_revision(&cacher->watch_cache))
		vdi_watchchan_progress(cacher->reflector.watchchan);
}

vd_mono vdi_reflector_run(struct vd_cacher *cacher, bool *ret_more)
{
	struct vdi_reflector *reflector = &cacher->reflector;
	vd_mono		      now = vd_env_now(cacher->env);
	bool		      drained = false;

	*ret_more = false;
	if (atomic_load(&cacher->is_stopping))
		return VD_NEVER;
	if (reflector->apply_failed || reflector->watchchan == NULL) {
		if (now.ns < reflector->retry_at.ns)
			return reflector->retry_at;
		reflector->apply_failed = false;
	}
	if (reflector->watchchan == NULL)
		open_stream(cacher);
	if (reflector->phase == VDI_REFLECTOR_BACKFILLING) {
		vd_mono due = vdi_backfill_run(cacher);

		if (reflector->phase == VDI_REFLECTOR_BACKFILLING)
			return due;
		(void) consume(cacher); /* events after the listed state */
	}
	for (unsigned rounds = 0;
	     reflector->watchchan && !reflector->apply_failed && rounds < ROUNDS_MAX && !drained; rounds++)
		if (reflector->phase == VDI_REFLECTOR_BACKFILLING || !take_some(cacher, &drained))
			break;
	if (reflector->watchchan == NULL) {
		*ret_more = reflector->retry_at.ns <= now.ns;
		return reflector->retry_at;
	}
	if (reflector->apply_failed)
		return reflector->retry_at;
	*ret_more = !drained;
	if (reflector->phase == VDI_REFLECTOR_BACKFILLING)
		return reflector->backfill_ask_at;
	return request_progress(cacher, now);
}

void vdi_reflector_stop(struct vd_cacher *cacher)
{
	vdi_backfill_stop(cacher);
	close_stream(cacher);
}
