/* The Cacher: construction, one iteration of its actor, opening a watch, shutdown. Reads are in delegator.c,
 * writes in writes.c. */
#include "cacher.h"

#include "actor_poll.h"
#include "cache_watcher.h"
#include "cacher_dump.h"
#include "cacher_gauges.h"
#include "consistency.h"
#include "delivery_worker.h"
#include "dispatch.h"
#include "env.h"
#include "object_count.h"

#define STOP_POLL VD_MS(10)

/* ---- Destruction ---- */

static void free_options(struct vd_cacher_options *options)
{
	vdi_free((char *) (uintptr_t) options->resource);
	vdi_free((char *) (uintptr_t) options->group);
	vdi_free((char *) (uintptr_t) options->key_prefix);
	vdi_free((char *) (uintptr_t) options->trigger);
}

static void free_cacher(struct vdi_watchers *watchers)
{
	struct vd_cacher *cacher = vdi_cacher_of(watchers);

	vdi_usage_end(&cacher->watchers.usage);
	if (cacher->is_collected)
		vdi_metrics_remove_collector(vdi_env_metrics(cacher->env), &cacher->collector);
	vdi_consistency_fini(&cacher->consistency);
	vdi_reflector_fini(&cacher->reflector);
	vdi_dispatch_fini(cacher);
	vdi_watch_index_fini(&cacher->watcher_index);
	vdi_watch_scopes_fini(&cacher->watch_scopes);
	vdi_watch_cache_fini(&cacher->watch_cache);
	vdi_delivery_worker_unref(cacher->watchers.inline_worker);
	vdi_storage_free(cacher->storage);
	vdi_storage_metrics_free(cacher->storage_metrics);
	vdi_cacher_metrics_fini(&cacher->metrics);
	vdi_quarantine_fini(&cacher->quarantine);
	vdi_ready_fini(&cacher->ready);
	vdi_lock_fini(&cacher->watchers.lock);
	vdi_free(cacher->matches.matches);
	free_options(&cacher->options);
	vdi_free(cacher);
}

/* ---- The actor ---- */

static vd_mono earlier(vd_mono a, vd_mono b)
{
	return a.ns < b.ns ? a : b;
}

static void on_actor_closed(void *arg)
{
	struct vd_cacher *cacher = arg;
	void (*closed)(void *) = cacher->closed;
	void *closed_arg = cacher->closed_arg;

	vdi_usage_release(&cacher->watchers.usage);
	vdi_cacher_unref(cacher);
	if (closed)
		closed(closed_arg);
}

/* Runs pulled delivery workers that no thread is reading from, so that their watchers end. true: others are
 * being read. */
static bool run_pulled(struct vd_cacher *cacher)
{
	struct vdi_delivery_worker *worker;
	bool			    some_left = false;
	bool			    more;

	/* A run removes a delivery worker from the list only later, on this actor, so the list is stable
	 * here. */
	vdi_lock_acquire(&cacher->watchers.lock);
	worker = cacher->watchers.pulled;
	vdi_lock_release(&cacher->watchers.lock);
	while (worker) {
		more = true;
		while (more && vdi_delivery_worker_try_run(worker, &more))
			;
		some_left |= more;
		vdi_delivery_worker_notify(worker);
		vdi_lock_acquire(&cacher->watchers.lock);
		worker = worker->next;
		vdi_lock_release(&cacher->watchers.lock);
	}
	return some_left;
}

/* Calls the drained callback, once. */
static void notify_drained(struct vd_cacher *cacher)
{
	void (*drained)(void *);
	void *arg;

	vdi_lock_acquire(&cacher->watchers.lock);
	drained = cacher->drained;
	arg = cacher->drained_arg;
	cacher->drained = NULL;
	vdi_lock_release(&cacher->watchers.lock);
	if (drained)
		drained(arg);
}

static bool has_all(struct vd_cacher *cacher, vd_rev revision)
{
	struct vd_store_status status = { 0 };

	if (vdi_watch_cache_revision(&cacher->watch_cache) >= revision)
		return true;
	return vd_store_status_get(cacher->store, &status) == VD_OK && !status.progress &&
	       vdi_btree_count(&cacher->watch_cache.store.objects) == 0;
}

static void wake_workers(struct vd_cacher *cacher)
{
	vdi_lock_acquire(&cacher->watchers.lock);
	for (struct vdi_delivery_worker *worker = cacher->watchers.workers; worker; worker = worker->next)
		vdi_delivery_worker_wake(worker);
	for (struct vdi_delivery_worker *worker = cacher->watchers.pulled; worker; worker = worker->next)
		vdi_delivery_worker_wake(worker);
	vdi_delivery_worker_wake(cacher->watchers.inline_worker);
	vdi_lock_release(&cacher->watchers.lock);
}

/* Runs after received events were dispatched and left watchers released. Returns the time of the next
 * call. */
static vd_mono run_draining(struct vd_cacher *cacher)
{
	vd_rev revision;
	bool   is_wanted, is_over;

	vdi_lock_acquire(&cacher->watchers.lock);
	is_wanted = cacher->drained != NULL;
	revision = cacher->drain_revision;
	is_over = cacher->watchers.count == 0 && cacher->watchers.opening_first == NULL;
	vdi_lock_release(&cacher->watchers.lock);
	if (is_wanted && is_over)
		notify_drained(cacher);
	if (!is_wanted || is_over || atomic_load(&cacher->watchers.is_draining))
		return VD_NEVER;
	if (!has_all(cacher, revision)) {
		vdi_reflector_ask_progress(cacher);
		return vd_mono_add(vd_env_now(cacher->env), VDI_PROGRESS_PERIOD);
	}
	/* A new writer may reuse this prefix, but its events do not concern the present watches. */
	vdi_reflector_stop(cacher);
	atomic_store(&cacher->watchers.is_draining, true);
	wake_workers(cacher);
	return VD_NEVER;
}

/* Takes one step of the shutdown per iteration. */
static void run_stopping(struct vd_cacher *cacher)
{
	bool is_over;

	notify_drained(cacher);
	vdi_reflector_stop(cacher);
	vdi_watch_cache_stop(&cacher->watch_cache);
	vdi_dispatch_opening(cacher);
	/* Once, because it wakes this actor too. Watches opened later find the ready state stopped. */
	if (!cacher->is_ending)
		vdi_dispatch_end_all(cacher);
	cacher->is_ending = true;
	while (vdi_delivery_worker_run(cacher->watchers.inline_worker))
		;
	if (run_pulled(cacher))
		vd_actor_set_timer(cacher->actor, vd_mono_add(vd_env_now(cacher->env), STOP_POLL));
	vdi_dispatch_left(cacher);
	vdi_lock_acquire(&cacher->watchers.lock);
	is_over = cacher->call_count == 0 && cacher->watchers.count == 0 &&
		  cacher->watchers.worker_count == 0 && cacher->watchers.opening_first == NULL;
	vdi_lock_release(&cacher->watchers.lock);
	/* CLOSE messages of inline watchers may still be in their inbox. */
	if (is_over && !vdi_delivery_worker_has_work(cacher->watchers.inline_worker) &&
	    !cacher->is_finishing) {
		cacher->is_finishing = true;
		vdi_delivery_worker_shut_down(cacher->watchers.inline_worker);
		vd_actor_close(cacher->actor, on_actor_closed, cacher);
	}
}

static void update_gauges(struct vd_cacher *cacher)
{
	struct vdi_history *history = &cacher->watch_cache.history;

	vdi_metric_set(cacher->metrics.groups, (int64_t) cacher->watcher_index.group_count);
	/* Only this actor changes the history. */
	if (cacher->capacity_seen == history->capacity)
		return;
	cacher->capacity_seen = history->capacity;
	vdi_metric_set(cacher->metrics.capacity, (int64_t) history->capacity);
	vdi_metric_add(cacher->metrics.capacity_increases, history->increases - cacher->increases_seen);
	vdi_metric_add(cacher->metrics.capacity_decreases, history->decreases - cacher->decreases_seen);
	cacher->increases_seen = history->increases;
	cacher->decreases_seen = history->decreases;
}

/* Drops history that the store has compacted. Cache and store share the bytes of old versions, so the memory
 * is freed only when both drop them. A cacher without history sets no timer. */
static vd_mono follow_compaction(struct vd_cacher *cacher)
{
	struct vdi_watch_cache *cache = &cacher->watch_cache;
	vd_mono			now = vd_env_now(cacher->env);
	struct vd_store_status	status;

	if (!vdi_watch_cache_can_compact(cache))
		return VD_NEVER;
	if (cacher->compaction_poll.ns <= now.ns) {
		cacher->compaction_poll = vd_mono_add(now, VDI_COMPACTION_POLL);
		if (vd_store_status_get(cacher->store, &status) == VD_OK &&
		    (status.kept > 0 || status.compacted > 0))
			vdi_watch_cache_compact(cache, VDI_MAX(status.compacted, 0),
						status.kept > 0 ? status.kept : status.compacted);
	}
	return cacher->compaction_poll;
}

static void run(void *arg)
{
	struct vd_cacher *cacher = arg;
	vd_mono		  due = VD_NEVER;
	bool		  more = false, is_fed;

	vdi_cacher_dump_run(cacher);
	if (atomic_load(&cacher->is_stopping)) {
		if (!cacher->is_finishing)
			run_stopping(cacher);
		return;
	}
	is_fed = !atomic_load(&cacher->watchers.is_draining); /* otherwise the cache has its last event */
	if (is_fed)
		due = vdi_reflector_run(cacher, &more);
	due = earlier(due, vdi_watch_cache_serve_waiters(&cacher->watch_cache));
	vdi_dispatch_opening(cacher);
	due = earlier(due, vdi_bookmark_run(&cacher->bookmarks));
	if (is_fed && vdi_bookmark_is_near(&cacher->bookmarks))
		vdi_reflector_ask_progress(cacher);
	more |= vdi_delivery_worker_run(cacher->watchers.inline_worker);
	vdi_dispatch_left(cacher);
	due = earlier(due, run_draining(cacher));
	due = earlier(due, vdi_dispatch_retire_frames(cacher));
	due = earlier(due, follow_compaction(cacher));
	if (is_fed) {
		due = earlier(due, vdi_consistency_run(cacher));
		due = earlier(due, vdi_object_count_run(cacher));
	}
	update_gauges(cacher);
	vd_actor_set_timer(cacher->actor, due);
	if (more)
		vd_actor_wake(cacher->actor);
}

/* ---- Construction ---- */

static vd_status check_options(const struct vd_cacher_options *options, struct vd_error *reterr)
{
	size_t prefix_size;

	VDI_REQUIRE_OPTIONS(options, reterr);
	prefix_size = options->key_prefix ? strlen(options->key_prefix) : 0;
	if (options->resource == NULL || *options->resource == 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "cacher: resource is NULL or empty");
	if (options->codec == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "cacher: codec is NULL");
	if (prefix_size < 2 || options->key_prefix[0] != '/' || options->key_prefix[prefix_size - 1] != '/')
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "the key prefix must start and end with '/' and be more than \"/\"");
	if (options->history_window.ns < VD_SECONDS(75).ns)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "the history window (%lld ms) must not be below 1m15s",
				    (long long) options->history_window.ns / 1000000);
	if (options->history_bytes <= 0 || options->lag_bytes_max <= 0 || options->watcher_count_max == 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "history_bytes, lag_bytes_max and watcher_count_max must be positive");
	if (options->consistency_interval.ns < 0 ||
	    (unsigned) options->on_inconsistency > VD_ON_INCONSISTENCY_PANIC)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "consistency_interval (%lld ms) must not be negative, and "
				    "on_inconsistency (%d) must be one of enum vd_on_inconsistency",
				    (long long) options->consistency_interval.ns / 1000000,
				    (int) options->on_inconsistency);
	return VD_OK;
}

static vd_status find_trigger(const struct vd_cacher_options *options, int *ret_index,
			      struct vd_error *reterr)
{
	*ret_index = -1;
	if (options->trigger == NULL)
		return VD_OK;
	for (size_t i = 0; i < options->codec->field_count && i < VD_FIELDS_MAX; i++)
		if (strcmp(options->codec->field_names[i], options->trigger) == 0) {
			*ret_index = (int) i;
			return VD_OK;
		}
	return vd_error_set(reterr, VD_INVALID_ARGUMENT, "the trigger %s is not a declared field",
			    options->trigger);
}

static vd_status copy_options(struct vd_cacher_options *copy, const struct vd_cacher_options *options)
{
	*copy = *options;
	copy->index_labels = NULL;
	copy->resource = vdi_strdup(options->resource);
	copy->group = vdi_strdup(options->group ? options->group : "");
	copy->key_prefix = vdi_strdup(options->key_prefix);
	copy->trigger = options->trigger ? vdi_strdup(options->trigger) : NULL;
	return copy->resource && copy->group && copy->key_prefix && (copy->trigger || !options->trigger) ?
		       VD_OK :
		       VD_NOMEM;
}

static vd_status build(struct vd_cacher *cacher, const struct vd_cacher_options *options,
		       struct vd_error *reterr)
{
	struct vdi_storage_options storage = { options->resource, options->key_prefix, options->codec, NULL };
	char			   resource[VDI_RESOURCE_LABEL_SIZE];
	struct vd_actor_options	   actor = { .name = "cacher", .run = run, .arg = cacher };

	VDI_TRY(copy_options(&cacher->options, options));
	cacher->key_prefix_size = strlen(options->key_prefix);
	VDI_TRY(vdi_watch_cache_init(
		&cacher->watch_cache, cacher->env, options->history_bytes, options->history_window,
		VDI_MIN(options->codec->field_count, (size_t) VD_FIELDS_MAX), options->index_labels));
	vdi_object_store_on_demand(&cacher->watch_cache.store);
	vdi_resource_label(options->resource, cacher->options.group, resource);
	VDI_TRY(vdi_cacher_metrics_init(&cacher->metrics, cacher->env, cacher->options.group, resource,
					&cacher->watch_cache.store, cacher->codec));
	VDI_TRY(vdi_storage_metrics_new(cacher->env, cacher->options.group, resource,
					&cacher->storage_metrics));
	storage.metrics = cacher->storage_metrics;
	VDI_TRY(vdi_storage_new(cacher->env, cacher->store, &storage, &cacher->storage, reterr));
	VDI_TRY(vdi_delivery_worker_new(&cacher->watchers, VDI_DELIVERY_WORKER_INLINE,
					&cacher->watchers.inline_worker));
	VDI_TRY(vd_actor_new(cacher->env, &actor, &cacher->actor));
	cacher->watch_cache.actor = cacher->watchers.actor = cacher->actor;
	cacher->collector =
		(struct vdi_metrics_collector) { .collect = vdi_cacher_gauges_collect, .arg = cacher };
	vdi_metrics_add_collector(vdi_env_metrics(cacher->env), &cacher->collector);
	cacher->is_collected = true;
	return VD_OK;
}

vd_status vd_cacher_new(const struct vd_env *env, struct vd_store *store,
			const struct vd_cacher_options *options, struct vd_cacher **ret_cacher,
			struct vd_error *reterr)
{
	struct vd_cacher *cacher;
	int		  trigger_index;
	vd_status	  status;

	VDI_REQUIRE(env, reterr);
	VDI_REQUIRE(store, reterr);
	VDI_REQUIRE(ret_cacher, reterr);
	VDI_TRY(check_options(options, reterr));
	VDI_TRY(find_trigger(options, &trigger_index, reterr));
	cacher = VDI_NEW(struct vd_cacher);
	if (cacher == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory for a cacher");
	if (reterr)
		reterr->code = VD_OK;
	cacher->watchers = (struct vdi_watchers) { .env = env,
						   .cache = &cacher->watch_cache,
						   .metrics = &cacher->metrics,
						   .dump = vdi_cacher_dump_worker,
						   .gone = free_cacher };
	atomic_init(&cacher->watchers.references, 1);
	cacher->env = env;
	cacher->store = store;
	cacher->codec = options->codec;
	cacher->trigger_index = trigger_index;
	vdi_lock_init(&cacher->watchers.lock, VDI_LOCK_CACHER);
	vdi_ready_init(&cacher->ready, env);
	vdi_quarantine_init(&cacher->quarantine);
	vdi_reflector_init(&cacher->reflector);
	vdi_watch_index_init(&cacher->watcher_index, options->codec, trigger_index);
	vdi_watch_scopes_init(&cacher->watch_scopes);
	vdi_bookmark_init(&cacher->bookmarks, env);
	vdi_object_count_init(&cacher->object_count, env);
	vdi_consistency_init(&cacher->consistency, env, options->consistency_interval);
	status = build(cacher, options, reterr);
	if (status != VD_OK) {
		if (reterr && reterr->code == VD_OK)
			vd_error_set(reterr, status, "%s for a cacher", vd_status_sentence(status));
		vdi_cacher_unref(cacher);
		return status;
	}
	cacher->watchers.usage = (struct vdi_usage) { .kind = "cacher",
						      .name = cacher->options.resource,
						      .closed_by = "vd_cacher_close",
						      .env = env,
						      .uses = { store, options->codec } };
	vdi_usage_begin(&cacher->watchers.usage);
	vd_actor_wake(cacher->actor);
	*ret_cacher = cacher;
	return VD_OK;
}

void vd_cacher_close(struct vd_cacher *cacher, void (*done)(void *arg), void *arg)
{
	if (cacher == NULL) {
		if (done)
			done(arg);
		return;
	}
	vdi_ready_stop(&cacher->ready);
	vdi_cacher_ref(cacher);
	if (atomic_exchange(&cacher->watchers.usage.is_closing, true))
		vdi_misuse("vd_cacher_close: cacher %s is closing already", cacher->options.resource);
	vdi_lock_acquire(&cacher->watchers.lock);
	cacher->closed = done;
	cacher->closed_arg = arg;
	atomic_store(&cacher->is_stopping, true);
	vd_actor_wake(cacher->actor);
	vdi_lock_release(&cacher->watchers.lock);
	vdi_cacher_unref(cacher);
}

void vdi_cacher_drain(struct vd_cacher *cacher, vd_rev revision, void (*done)(void *arg), void *arg)
{
	vdi_lock_acquire(&cacher->watchers.lock);
	cacher->drain_revision = revision;
	cacher->drained = done;
	cacher->drained_arg = arg;
	vd_actor_wake(cacher->actor);
	vdi_lock_release(&cacher->watchers.lock);
}

/* The wait for each delivery worker would block forever if this thread has to run the delivery worker's
 * poller. */
static void check_pollers(struct vd_cacher *cacher)
{
	bool is_served_here = false;

	vdi_lock_acquire(&cacher->watchers.lock);
	for (struct vdi_delivery_worker *worker = cacher->watchers.workers; worker; worker = worker->next)
		is_served_here |= vdi_poller_serves_here(&worker->executor);
	vdi_lock_release(&cacher->watchers.lock);
	if (is_served_here)
		vdi_misuse("vd_cacher_close_wait: this thread runs the poller of watchers of cacher %s: call "
			   "vd_cacher_close, and run the poller until done is called",
			   cacher->options.resource);
}

struct vd_cacher *vd_cacher_close_wait(struct vd_cacher *cacher)
{
	struct vdi_wait wait;

	if (cacher == NULL)
		return NULL;
	vdi_wait_check_close(__func__, "vd_cacher_close");
	check_pollers(cacher);
	vdi_wait_init(&wait, cacher->env);
	vd_cacher_close(cacher, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	return NULL;
}

vd_status vd_cacher_ready(struct vd_cacher *cacher, struct vd_error *reterr)
{
	VDI_REQUIRE(cacher, reterr);
	return vdi_ready_check(&cacher->ready, NULL, reterr);
}

vd_status vd_cacher_ready_wait(struct vd_cacher *cacher, vd_dur timeout, struct vd_error *reterr)
{
	vd_mono due;

	VDI_REQUIRE(cacher, reterr);
	VDI_TRY(vdi_wait_check(cacher->env, __func__, reterr));
	due = timeout.ns < 0 ? VD_NEVER : vd_mono_add(vd_env_now(cacher->env), timeout);
	return vdi_ready_wait(&cacher->ready, due, reterr);
}

vd_rev vd_cacher_revision(const struct vd_cacher *cacher)
{
	return vdi_watch_cache_revision(&cacher->watch_cache);
}

/* ---- Opening a watch ---- */

static void start_is_fresh(struct vdi_fresh_waiter *waiter, vd_status status)
{
	struct vdi_watch_start *start = VDI_CONTAINER_OF(waiter, struct vdi_watch_start, waiter);
	struct vd_watcher      *watcher = start->watcher;
	struct vd_cacher       *cacher = vdi_cacher_of(watcher->worker->watchers);

	vdi_metric_observe_duration(cacher->metrics.read_wait,
				    vd_mono_since(vd_env_now(cacher->env), waiter->since));
	if (status == VD_TOO_LARGE_REVISION) {
		struct vd_error error;

		vdi_too_large_revision(&error, start->required,
				       vdi_watch_cache_revision(&cacher->watch_cache));
		if ((start->error = vdi_alloc(sizeof error)))
			*start->error = error;
	}
	start->status = status;
	vdi_dispatch_enqueue(cacher, watcher);
	vdi_cacher_call_end(cacher);
}

/* Waits until the cache has the required revision, if the watch requests the initial state. */
static void start_when_fresh(struct vdi_watch_start *start)
{
	struct vd_cacher *cacher = vdi_cacher_of(start->watcher->worker->watchers);

	start->waiter = (struct vdi_fresh_waiter) { .revision = start->required, .done = start_is_fresh };
	if (start->send_initial_events == VD_TRUE && start->required > 0 && vdi_cacher_call_begin(cacher)) {
		if (!vdi_watch_cache_wait(&cacher->watch_cache, &start->waiter))
			return;
		vdi_cacher_call_end(cacher);
	}
	vdi_dispatch_enqueue(cacher, start->watcher);
}

static void start_has_revision(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	struct vdi_watch_start *start = arg;
	struct vd_watcher      *watcher = start->watcher;
	struct vd_cacher       *cacher = vdi_cacher_ref(vdi_cacher_of(watcher->worker->watchers));

	if (status != VD_OK) {
		start->status = status;
		if (error && (start->error = vdi_alloc(sizeof *error)))
			*start->error = *error;
		vdi_dispatch_enqueue(cacher, watcher);
	} else {
		start->required = revision;
		start_when_fresh(start);
	}
	vdi_cacher_call_end(cacher);
	vdi_cacher_unref(cacher);
}

static bool proves_progress(const struct vd_cacher *cacher)
{
	struct vd_store_status store = { 0 };

	return vd_store_status_get(cacher->store, &store) == VD_OK && store.progress;
}

vd_rev vdi_cacher_initial_revision(const struct vd_cacher *cacher)
{
	return proves_progress(cacher) ? VD_REVISION_UNSET : VD_REVISION_ANY;
}

/* Determines the revision that the cache must have reached before it sends the initial state. Errors from
 * here on are events of the stream. */
static void start_watcher(struct vdi_watch_start *start)
{
	struct vd_watcher *watcher = start->watcher;
	struct vd_cacher  *cacher = vdi_cacher_of(watcher->worker->watchers);
	vd_status	   status;

	/* A watch from "any revision" accepts the cached state without proof that it is the newest. */
	if (start->send_initial_events == VD_TRUE && watcher->allow_bookmarks &&
	    start->revision != VD_REVISION_ANY && !proves_progress(cacher)) {
		start->status = VD_INTERNAL;
		if ((start->error = vdi_alloc(sizeof *start->error)))
			vd_error_set(start->error, VD_INTERNAL,
				     "a watch stream was requested by the client but the required storage "
				     "feature RequestWatchProgress is disabled");
		vdi_dispatch_enqueue(cacher, watcher);
		return;
	}
	if (start->revision == VD_REVISION_UNSET && start->send_initial_events != VD_UNSET) {
		if (!vdi_cacher_call_begin(cacher)) {
			start->status = VD_CLOSED;
			vdi_dispatch_enqueue(cacher, watcher);
			return;
		}
		status = vdi_storage_current_revision(cacher->storage, start_has_revision, start);
		if (status != VD_OK) {
			start->status = status;
			vdi_dispatch_enqueue(cacher, watcher);
			vdi_cacher_call_end(cacher);
		}
		return;
	}
	start->required = start->revision == VD_REVISION_UNSET ? 0 : start->revision;
	start_when_fresh(start);
}

static vd_status new_watcher(struct vd_cacher *cacher, const struct vd_watch_options *options,
			     const struct vd_watch_sink *sink, struct vdi_delivery_worker *worker,
			     struct vd_watcher **ret_watcher)
{
	struct vd_watcher *watcher = VDI_NEW(struct vd_watcher);
	struct vdi_pull	  *pull = sink ? NULL : vdi_pull_new();

	if (watcher == NULL || (sink == NULL && pull == NULL)) {
		vdi_free(watcher);
		vdi_pull_free(pull);
		return VD_NOMEM;
	}
	watcher->deliver = sink ? sink->deliver : vdi_pull_deliver;
	watcher->ended = sink ? sink->ended : vdi_pull_ended;
	watcher->arg = sink ? sink->arg : pull;
	vdi_watchers_ref(&cacher->watchers);
	watcher->worker = worker;
	watcher->lag_bytes_max =
		options->lag_bytes_max > 0 ? options->lag_bytes_max : cacher->options.lag_bytes_max;
	watcher->lag_events_max = (uint32_t) (options->lag_events_max > 0 ?
						      VDI_MIN(options->lag_events_max, (int64_t) UINT32_MAX) :
						      0);
	watcher->deadline = options->deadline;
	watcher->allow_bookmarks = options->allow_bookmarks;
	*ret_watcher = watcher;
	return VD_OK;
}

static vd_status new_start(struct vd_cacher *cacher, const struct vd_watch_options *options,
			   struct vdi_watch_start **ret_start, struct vd_error *reterr)
{
	struct vdi_predicate_options predicate = { options->namespace_name,
						   options->name,
						   options->label_selector,
						   options->field_selector,
						   true,
						   cacher->options.cluster_scoped,
						   options->shard_selector,
						   sizeof(struct vdi_watch_group) };
	struct vdi_watch_start	    *start = VDI_NEW(struct vdi_watch_start);
	vd_status		     status;

	if (start == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory for a watch");
	start->revision = options->revision;
	start->send_initial_events = options->send_initial_events;
	status = vdi_predicate_new(cacher->codec, &predicate, &start->predicate, reterr);
	if (status != VD_OK) {
		vdi_watch_start_free(start);
		return status;
	}
	*ret_start = start;
	return VD_OK;
}

/* Counts the watcher, so that the cacher does not finish before it has left. */
static vd_status admit(struct vd_cacher *cacher, struct vd_error *reterr)
{
	vd_status status = VD_OK;

	vdi_lock_acquire(&cacher->watchers.lock);
	if (atomic_load(&cacher->is_stopping))
		status = VD_CLOSED;
	else if (cacher->watchers.count >= cacher->options.watcher_count_max)
		status = VD_FULL;
	else
		cacher->watchers.count++;
	vdi_lock_release(&cacher->watchers.lock);
	if (status == VD_FULL)
		vd_error_set(reterr, VD_FULL, "%u watches are open on %s, no more are allowed",
			     cacher->options.watcher_count_max, cacher->options.resource);
	else if (status != VD_OK)
		vd_error_set(reterr, status, "apiserver cacher is stopped");
	return status;
}

static void dismiss(struct vd_cacher *cacher)
{
	vdi_lock_acquire(&cacher->watchers.lock);
	cacher->watchers.count--;
	vd_actor_wake(cacher->actor);
	vdi_lock_release(&cacher->watchers.lock);
}

static vd_status open_watcher(struct vd_cacher *cacher, const struct vd_watch_options *options,
			      const struct vd_watch_sink *sink, struct vd_watcher **ret_watcher)
{
	struct vdi_delivery_worker *worker;
	vd_status		    status;

	if (sink)
		VDI_TRY(vdi_delivery_worker_get(&cacher->watchers, sink->executor, &worker));
	else
		VDI_TRY(vdi_delivery_worker_new(&cacher->watchers, VDI_DELIVERY_WORKER_PULLED, &worker));
	status = new_watcher(cacher, options, sink, worker, ret_watcher);
	if (status != VD_OK) {
		if (sink)
			vdi_delivery_worker_put(worker);
		else
			vdi_delivery_worker_unref(worker);
		return status;
	}
	if (sink == NULL) {
		vdi_lock_acquire(&cacher->watchers.lock);
		worker->attached = 1;
		worker->next = cacher->watchers.pulled;
		worker->place = &cacher->watchers.pulled;
		if (cacher->watchers.pulled)
			cacher->watchers.pulled->place = &worker->next;
		cacher->watchers.pulled = worker;
		vdi_lock_release(&cacher->watchers.lock);
	}
	return VD_OK;
}

static vd_status check_watch(struct vd_cacher *cacher, const struct vd_watch_options *options,
			     struct vd_error *reterr)
{
	VDI_REQUIRE_OPTIONS(options, reterr);
	VDI_TRY(vdi_cacher_check_scope(cacher, options->namespace_name, options->name, reterr));
	if (options->revision < VD_REVISION_UNSET)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "watch: the revision is %lld, must be VD_REVISION_UNSET or more",
				    (long long) options->revision);
	if (options->deadline.ns <= 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "watch: the deadline is %lld, must be an instant or VD_NEVER: begin with "
				    "VD_WATCH_OPTIONS_INIT",
				    (long long) options->deadline.ns);
	if ((unsigned) options->send_initial_events > VD_TRUE || options->lag_bytes_max < 0 ||
	    options->lag_events_max < 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "watch: send_initial_events is %d, lag_bytes_max %lld, lag_events_max "
				    "%lld: a vd_tristate, and 0 or more",
				    (int) options->send_initial_events, (long long) options->lag_bytes_max,
				    (long long) options->lag_events_max);
	return VD_OK;
}

vd_status vd_cacher_watch(struct vd_cacher *cacher, const struct vd_watch_options *options,
			  const struct vd_watch_sink *sink, struct vd_watcher **ret_watcher,
			  struct vd_error *reterr)
{
	struct vdi_watch_start *start = NULL;
	struct vd_watcher      *watcher = NULL;
	uint64_t		generation = 0;
	vd_status		status;

	VDI_REQUIRE(cacher, reterr);
	VDI_REQUIRE(ret_watcher, reterr);
	VDI_TRY(check_watch(cacher, options, reterr));
	if (sink) {
		VDI_REQUIRE(sink->deliver, reterr);
		VDI_REQUIRE(sink->ended, reterr);
	}
	VDI_TRY(new_start(cacher, options, &start, reterr));
	status = vdi_ready_check(&cacher->ready, &generation, reterr);
	if (status == VD_OK)
		status = admit(cacher, reterr);
	if (status != VD_OK) {
		vdi_watch_start_free(start);
		return status;
	}
	status = open_watcher(cacher, options, sink, &watcher);
	if (status != VD_OK) {
		dismiss(cacher);
		vdi_watch_start_free(start);
		return vd_error_set(reterr, status, "%s: the watch cannot be opened",
				    vd_status_sentence(status));
	}
	atomic_fetch_add_explicit(&cacher->watchers.usage.watchers, 1, memory_order_relaxed);
	watcher->generation = (uint32_t) generation;
	watcher->start = start;
	start->watcher = watcher;
	*ret_watcher = watcher;
	start_watcher(start);
	return VD_OK;
}
