/* Opening reads the files, compares the witnesses with the inner store in one transaction at the newest
 * recorded revision, and hands everything to the recorder. After that, calls and most watches go directly to
 * the inner store. */
#include "local_history.h"

#include <stdio.h>

#include "key_range.h"
#include "local_store.h"
#include "wait.h"

#define VERIFY_ATTEMPTS 5
#define VERIFY_PAUSE VD_SECONDS(1)

static struct vdi_local_history *history_of(struct vd_store *store)
{
	return VDI_CONTAINER_OF(store, struct vdi_local_history, front.base);
}

/* ---- Status ---- */

static vd_status local_status(struct vd_store *store, struct vd_store_status *ret_status)
{
	struct vdi_local_history *history = history_of(store);

	VDI_TRY(vd_store_status_get(history->front.inner, ret_status));
	ret_status->kept = atomic_load(&history->kept);
	ret_status->history = atomic_load(&history->loaded_floor);
	return VD_OK;
}

static void local_dump(struct vd_store *store, void (*write)(void *arg, struct vd_bytes json), void *arg)
{
	struct vdi_local_history *history = history_of(store);
	char			  text[320];
	int			  size;

	vd_store_dump(history->front.inner, write, arg);
	size = snprintf(text, sizeof text,
			",\"localHistory\":{\"oldest\":%lld,\"newest\":%lld,\"bytes\":%lld,\"recording\":%s,"
			"\"inMemory\":%s}",
			(long long) atomic_load(&history->floor), (long long) atomic_load(&history->until),
			(long long) atomic_load(&history->bytes),
			atomic_load(&history->is_recording) ? "true" : "false",
			atomic_load(&history->loaded_floor) ? "true" : "false");
	write(arg, (struct vd_bytes) { text, (size_t) size });
}

/* ---- Watches ---- */

struct vdi_loaded_history *vdi_local_loaded_history_for(struct vdi_local_history *history,
							vd_rev			  start_revision)
{
	struct vdi_loaded_history *loaded = NULL;

	if (start_revision <= 0 || atomic_load(&history->loaded_floor) == 0)
		return NULL;
	vdi_lock_acquire(&history->lock);
	if (history->loaded && start_revision > history->loaded->floor &&
	    start_revision <= history->loaded->until)
		loaded = vdi_loaded_history_ref(history->loaded);
	vdi_lock_release(&history->lock);
	if (loaded)
		atomic_store(&history->loaded_used_ns, vd_env_now(history->env).ns);
	return loaded;
}

static vd_status local_watch(struct vd_store *store, const struct vd_store_watch_request *request,
			     struct vd_store_watch **ret_watch, struct vd_error *reterr)
{
	struct vdi_local_history  *history = history_of(store);
	struct vdi_loaded_history *loaded = vdi_local_loaded_history_for(history, request->start_revision);
	struct vd_bytes		   prefix = vd_bytes_of(history->prefix);

	/* Only keys of the prefix were recorded. */
	if (loaded &&
	    (request->key.size < prefix.size || memcmp(request->key.data, prefix.data, prefix.size) != 0))
		loaded = vdi_loaded_history_unref(loaded);
	if (loaded)
		return vdi_local_watch_open(history->front.inner, loaded, request, ret_watch, reterr);
	return vd_store_watch_open(history->front.inner, request, ret_watch, reterr);
}

/* Calls on watches of local_watch.c go to its own table of operations, and calls on other watches to the
 * inner store. So these functions are reached only with a wrong watch. */
static vd_status no_watch_next(struct vd_store_watch *watch, size_t event_count_max,
			       struct vd_store_batch *ret_batch, struct vd_error *reterr)
{
	return vd_error_set(reterr, VD_INVALID_ARGUMENT, "not a watch of this store");
}

static vd_status no_watch_progress(struct vd_store_watch *watch)
{
	return VD_INVALID_ARGUMENT;
}

static void no_watch_close(struct vd_store_watch *watch)
{
}

/* ---- Metrics ---- */

static const enum vdi_metric_id metric_ids[VDI_LOCAL_METRIC_COUNT] = {
	[VDI_LOCAL_BYTES] = VDI_METRIC_LOCAL_HISTORY_BYTES,
	[VDI_LOCAL_OLDEST_REVISION] = VDI_METRIC_LOCAL_HISTORY_OLDEST_REVISION,
	[VDI_LOCAL_NEWEST_REVISION] = VDI_METRIC_LOCAL_HISTORY_NEWEST_REVISION,
	[VDI_LOCAL_SPAN] = VDI_METRIC_LOCAL_HISTORY_SPAN_SECONDS,
	[VDI_LOCAL_RECORDING] = VDI_METRIC_LOCAL_HISTORY_RECORDING,
	[VDI_LOCAL_EVENTS] = VDI_METRIC_LOCAL_HISTORY_EVENTS_TOTAL,
	[VDI_LOCAL_FAILURES] = VDI_METRIC_LOCAL_HISTORY_FAILURES_TOTAL,
	[VDI_LOCAL_DROPS] = VDI_METRIC_LOCAL_HISTORY_DROPS_TOTAL,
};

static void collect(void *arg)
{
	struct vdi_local_history *history = arg;
	int64_t			  oldest = atomic_load(&history->oldest_ns);
	int64_t			  span = oldest ? vd_env_wall(history->env).ns - oldest : 0;

	vdi_metric_set(history->metrics[VDI_LOCAL_BYTES], atomic_load(&history->bytes));
	vdi_metric_set(history->metrics[VDI_LOCAL_OLDEST_REVISION], atomic_load(&history->floor));
	vdi_metric_set(history->metrics[VDI_LOCAL_NEWEST_REVISION], atomic_load(&history->until));
	vdi_metric_set(history->metrics[VDI_LOCAL_SPAN], VDI_MAX(span, 0) / 1000000000);
	vdi_metric_set(history->metrics[VDI_LOCAL_RECORDING], atomic_load(&history->is_recording));
}

static vd_status init_metrics(struct vdi_local_history *history)
{
	for (size_t i = 0; i < VDI_LOCAL_METRIC_COUNT; i++)
		VDI_TRY(vdi_metric_get(vdi_env_metrics(history->env), metric_ids[i], NULL,
				       &history->metrics[i]));
	history->collector = (struct vdi_metrics_collector) { .collect = collect, .arg = history };
	vdi_metrics_add_collector(vdi_env_metrics(history->env), &history->collector);
	return VD_OK;
}

void vdi_local_history_free(struct vdi_local_history *history)
{
	if (history->collector.collect)
		vdi_metrics_remove_collector(vdi_env_metrics(history->env), &history->collector);
	for (size_t i = 0; i < VDI_LOCAL_METRIC_COUNT; i++)
		vdi_metric_release(history->metrics[i]);
	vdi_history_files_close(history->recorder.files);
	vdi_dir_close(history->recorder.dir);
	vdi_loaded_history_unref(history->loaded);
	vdi_lock_fini(&history->lock);
	vdi_free(history->prefix);
	vdi_free(history->prefix_end);
	vdi_free(history);
}

/* ---- Is it the same store, and does it still have what came after? ---- */

struct answer {
	struct vdi_wait	     wait;
	struct vd_kv *const *witnesses;
	size_t		     count;
	vd_status	     status;
	struct vd_error	     error;
	const struct vd_kv  *liar; /* witness that differs from the store's record */
};

static bool is_confirmed(const struct vd_kv *witness, const struct vd_range_result *found)
{
	const struct vd_kv *kv;

	if (found->kv_count == 0)
		return witness->version == 0;
	kv = found->kvs[0];
	return kv->mod_rev == witness->mod_rev && kv->create_rev == witness->create_rev &&
	       kv->version == witness->version && vd_bytes_equal(vd_kv_value(kv), vd_kv_value(witness));
}

static void on_answer(void *arg, vd_status status, const struct vd_txn_result *result,
		      const struct vd_error *error)
{
	struct answer *answer = arg;

	answer->status = status;
	if (error)
		answer->error = *error;
	for (size_t i = 0; status == VD_OK && i < answer->count; i++)
		if (i + 1 >= result->result_count ||
		    !is_confirmed(answer->witnesses[i], &result->results[i + 1].range))
			answer->liar = answer->witnesses[i];
	vdi_wait_signal(&answer->wait);
}

static void ask_once(struct vdi_local_history *history, vd_rev revision, struct answer *answer)
{
	struct vd_op	      ops[1 + VDI_LOADED_HISTORY_WITNESSES_MAX] = { 0 };
	struct vd_txn_request request = { .success = ops, .success_count = 1 + answer->count };
	vd_status	      status;

	/* The first operation only checks the revision. */
	for (size_t i = 0; i <= answer->count; i++) {
		ops[i].kind = VD_OP_RANGE;
		ops[i].range = (struct vd_range_request) { .key = i ? vd_kv_key(answer->witnesses[i - 1]) :
								      vd_bytes_of(history->prefix),
							   .revision = revision,
							   .limit = 1 };
	}
	vdi_wait_init(&answer->wait, history->env);
	status = vd_store_txn(history->front.inner, &request, on_answer, answer);
	if (status == VD_OK)
		vdi_wait_wait(&answer->wait);
	else
		answer->status = vd_error_set(&answer->error, status, "%s", vd_status_sentence(status));
	vdi_wait_fini(&answer->wait);
}

static void pause_for(const struct vd_env *env, vd_dur duration)
{
	struct vdi_wait wait;

	vdi_wait_init(&wait, env);
	(void) !vdi_wait_until(&wait, vd_mono_add(vd_env_now(env), duration));
	vdi_wait_fini(&wait);
}

static bool may_pass(vd_status status)
{
	return status == VD_UNAVAILABLE || status == VD_TIMEOUT || status == VD_FULL;
}

/* VD_OK: the store agrees with the recorded changes. VD_CORRUPT with a message: it does not. Any other
 * status: the store did not answer. */
static vd_status verify(struct vdi_local_history *history, const struct vdi_loaded_history *loaded,
			vd_rev until, struct vd_error *reterr)
{
	struct vd_kv *witnesses[VDI_LOADED_HISTORY_WITNESSES_MAX];
	struct answer answer = { .witnesses = witnesses };

	if (vdi_loaded_history_witnesses(loaded, witnesses, &answer.count) != VD_OK)
		return vd_error_set(reterr, VD_NOMEM, "out of memory for the local history");
	for (unsigned attempt = 0; attempt < VERIFY_ATTEMPTS; attempt++) {
		if (attempt)
			pause_for(history->env, VERIFY_PAUSE);
		ask_once(history, until, &answer);
		if (!may_pass(answer.status))
			break;
	}
	if (answer.liar)
		(void) vd_error_set(
			&answer.error, VD_CORRUPT,
			"etcd has another version of %.*s at revision %lld: it was restored, or is another "
			"cluster",
			(int) VDI_MIN(answer.liar->key_size, 200u), answer.liar->data, (long long) until);
	else if (answer.status == VD_EXPIRED)
		(void) vd_error_set(&answer.error, VD_CORRUPT,
				    "etcd has compacted the changes after revision %lld", (long long) until);
	else if (answer.status == VD_TOO_LARGE_REVISION)
		(void) vd_error_set(&answer.error, VD_CORRUPT,
				    "etcd has not reached revision %lld: it was restored, or is another "
				    "cluster",
				    (long long) until);
	for (size_t i = 0; i < answer.count; i++)
		vd_kv_unref(witnesses[i]);
	if (answer.liar || answer.status == VD_EXPIRED || answer.status == VD_TOO_LARGE_REVISION)
		answer.status = VD_CORRUPT;
	if (answer.status != VD_OK && reterr)
		*reterr = answer.error;
	return answer.status;
}

/* ---- Opening ---- */

static vd_status read_files(struct vdi_local_history		   *history,
			    const struct vdi_local_history_options *options,
			    const struct vd_store_status *status, struct vdi_loaded_history *loaded,
			    struct vd_error *ret_lost, struct vd_error *reterr)
{
	struct vdi_history_files_options files = {
		.dir = history->recorder.dir,
		.store_id = status->id,
		.prefix = vd_bytes_of(history->prefix),
		.seed = vd_env_random(history->env),
		.bytes_max = options->history_bytes,
		.window = options->history_window,
	};

	return vdi_history_files_open(&files, vd_env_wall(history->env), loaded, &history->recorder.files,
				      ret_lost, reterr);
}

/* Continues the loaded history, or starts a new one. */
static vd_status adopt(struct vdi_local_history *history, struct vdi_loaded_history *loaded,
		       const struct vd_store_status *status, struct vd_error *lost, struct vd_error *reterr)
{
	const char *path = history->recorder.dir->path;
	vd_rev	    floor = vdi_local_fresh_floor(status);
	vd_status   verified = VD_OK;

	if (loaded->until && loaded->latest.count == 0)
		loaded->until = loaded->floor; /* without records nothing can be compared */
	if (loaded->until) {
		verified = verify(history, loaded, loaded->until, lost);
		if (verified != VD_OK && verified != VD_CORRUPT) {
			if (reterr)
				*reterr = *lost;
			return verified;
		}
	}
	if (loaded->until == 0 || verified == VD_CORRUPT ||
	    loaded->until != vdi_history_files_until(history->recorder.files)) {
		bool is_drop = loaded->count > 0 || lost->code != VD_OK;

		if (is_drop)
			vdi_log(history->env, VD_LOG_WARNING, "history",
				"the local history in %s is dropped, clients from before this start must "
				"list again: %s",
				path,
				lost->code != VD_OK ? lost->message :
						      "it has no object to compare with etcd");
		vdi_metric_add(history->metrics[VDI_LOCAL_DROPS], is_drop);
		vdi_history_files_restart(history->recorder.files,
					  verified == VD_OK && loaded->until ? loaded->until : floor);
		history->recorder.is_new = loaded->until == 0 || verified != VD_OK;
		return VD_OK;
	}
	if (lost->code != VD_OK)
		vdi_log(history->env, VD_LOG_WARNING, "history",
			"a part of the local history in %s is lost: %s", path, lost->message);
	vdi_log(history->env, VD_LOG_INFO, "history",
		"watches can resume from revision %lld: loaded %zu changes from %s",
		(long long) loaded->floor, loaded->count, path);
	vdi_loaded_history_seal(loaded);
	history->loaded = vdi_loaded_history_ref(loaded);
	atomic_store(&history->loaded_floor, loaded->floor);
	atomic_store(&history->loaded_used_ns, vd_env_now(history->env).ns);
	return VD_OK;
}

static void local_close(struct vd_store *store, void (*done)(void *arg), void *arg)
{
	struct vdi_local_history *history = history_of(store);

	vdi_lock_acquire(&history->lock);
	history->closed = done;
	history->closed_arg = arg;
	history->is_closing = true;
	/* Under the lock, because a run that sees is_closing frees everything. */
	vd_actor_wake(history->recorder.actor);
	vdi_lock_release(&history->lock);
}

static const struct vd_store_ops ops = {
	.size = sizeof(struct vd_store_ops),
	.range = vdi_forward_range,
	.txn = vdi_forward_txn,
	.compact = vdi_forward_compact,
	.lease_grant = vdi_forward_lease_grant,
	.lease_revoke = vdi_forward_lease_revoke,
	.lease_keep_alive = vdi_forward_lease_keep_alive,
	.lease_time_to_live = vdi_forward_lease_time_to_live,
	.watch = local_watch,
	.watch_next = no_watch_next,
	.watch_progress = no_watch_progress,
	.watch_close = no_watch_close,
	.status = local_status,
	.close = local_close,
	.stream = vdi_forward_stream,
	.shutdown = vdi_forward_shutdown,
	.dump = local_dump,
	.lease_list = vdi_forward_lease_list,
};

static vd_status init(struct vdi_local_history *history, const struct vdi_local_history_options *options)
{
	size_t size = strlen(options->prefix);

	history->prefix = vdi_strdup(options->prefix);
	history->prefix_end = vdi_alloc(size + 1);
	if (history->prefix == NULL || history->prefix_end == NULL)
		return VD_NOMEM;
	history->prefix_end_bytes = vdi_bytes_prefix_end(vd_bytes_of(history->prefix), history->prefix_end);
	return init_metrics(history);
}

static vd_status open_all(struct vdi_local_history *history, const struct vdi_local_history_options *options,
			  struct vd_error *reterr)
{
	struct vd_actor_options actor = {
		.name = "history", .run = vdi_local_recorder_run, .arg = history, .blocking = true
	};
	struct vd_store_status	   status;
	struct vd_error		   lost = { .code = VD_OK };
	struct vdi_loaded_history *loaded = NULL;
	vd_status		   result = init(history, options);

	if (result != VD_OK || vdi_loaded_history_new(&loaded) != VD_OK)
		return vd_error_set(reterr, VD_NOMEM, "out of memory for the local history");
	result = vd_store_status_get(history->front.inner, &status);
	if (result != VD_OK)
		(void) vd_error_set(reterr, result, "the status of the store is unknown: %s",
				    vd_status_sentence(result));
	if (result == VD_OK)
		result = vdi_dir_open(vdi_env_disk(history->env), options->data_dir, &history->recorder.dir,
				      reterr);
	if (result == VD_OK) {
		vdi_dir_warn(history->recorder.dir, history->env);
		result = read_files(history, options, &status, loaded, &lost, reterr);
	}
	if (result == VD_OK)
		result = adopt(history, loaded, &status, &lost, reterr);
	vdi_loaded_history_unref(loaded);
	if (result == VD_OK) {
		vdi_local_recorder_publish(history);
		result = vd_actor_new(history->env, &actor, &history->recorder.actor);
		if (result != VD_OK)
			return vd_error_set(reterr, result, "%s", vd_status_sentence(result));
	}
	return result;
}

vd_status vdi_local_history_open(const struct vd_env *env, struct vd_store *inner,
				 const struct vdi_local_history_options *options, struct vd_store **ret_store,
				 struct vd_error *reterr)
{
	struct vdi_local_history *history = VDI_NEW(struct vdi_local_history);
	vd_status		  status;

	if (history == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory for the local history");
	history->front.base = (struct vd_store) { .ops = &ops, .env = env };
	history->env = env;
	history->front.inner = inner;
	history->recorder.sync_at = VD_NEVER;
	vdi_lock_init(&history->lock, VDI_LOCK_STORE);
	status = open_all(history, options, reterr);
	if (status != VD_OK) {
		vdi_local_history_free(history);
		return status;
	}
	vd_actor_wake(history->recorder.actor);
	*ret_store = &history->front.base;
	return VD_OK;
}
