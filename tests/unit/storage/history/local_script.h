/* A local history over a store that is a script: a test reads the requests and writes the answers. */
#ifndef LOCAL_SCRIPT_H
#define LOCAL_SCRIPT_H

#include "vdtest.h"

#include <limits.h>

#include "actor_sim.h"
#include "disk_sim.h"
#include "env.h"
#include "local_history.h"
#include "local_store.h"

#define STEPS_MAX 64
#define OPENS_MAX 64
#define DIRECTORY "/data"

/* One answer of the inner watch. */
struct step {
	vd_status	      status;
	vd_rev		      compacted; /* of the error */
	vd_rev		      revision;
	struct vd_store_event events[4];
	size_t		      event_count;
};

struct script {
	struct vd_store	       store;
	struct vd_store_watch  watch;
	struct vd_store_status status;
	vd_status	       status_code;
	vd_status	       refuse_watch;
	/* The watch: requests, and what it says. */
	struct vd_store_watch_request request; /* the last one; its keys are copied */
	char			      key[64], range_end[64];
	vd_rev			      starts[OPENS_MAX];
	vd_mono			      opened_at[OPENS_MAX]; /* refused ones too */
	unsigned		      opens, live, closed;
	unsigned		      asks; /* for progress */
	vd_status		      progress_code;
	size_t			      taken_max;
	struct step		      steps[STEPS_MAX];
	size_t			      step_count, step_next;
	/* Transactions: what the store has of each key that is asked for. */
	unsigned      txns;
	vd_mono	      txn_at[OPENS_MAX];
	vd_rev	      txn_revision;
	size_t	      txn_ops;
	vd_status     txn_submit, txn_code;
	unsigned      txn_fails; /* the first ones, with txn_code; UINT_MAX: all */
	size_t	      txn_short; /* results that are left out */
	struct vd_kv *has[STEPS_MAX];
	size_t	      has_count;
	unsigned      shutdown;
	bool	      is_closed;
};

struct local {
	struct vd_env			*env;
	struct vdi_disk			*disk;
	struct script			 script;
	struct vdi_local_history_options options;
	struct vd_store			*store; /* under test */
	unsigned			 ready;
	char				 log[4096];
};

static inline struct script *script_of(struct vd_store *store)
{
	return VDI_CONTAINER_OF(store, struct script, store);
}

static inline void text_of(char text[64], struct vd_bytes bytes)
{
	snprintf(text, 64, "%.*s", (int) bytes.size, bytes.size ? (const char *) bytes.data : "");
}

static inline vd_status script_watch(struct vd_store *store, const struct vd_store_watch_request *request,
				     struct vd_store_watch **ret_watch, struct vd_error *reterr)
{
	struct script *script = script_of(store);

	assert_in_range(script->opens, 0, OPENS_MAX - 1);
	script->opened_at[script->opens] = vd_env_now(store->env);
	script->starts[script->opens++] = request->start_revision;
	script->request = *request;
	text_of(script->key, request->key);
	text_of(script->range_end, request->range_end);
	if (script->refuse_watch != VD_OK)
		return vd_error_set(reterr, script->refuse_watch, "refused");
	script->live++;
	script->watch = (struct vd_store_watch) { .store = store, .opened = script->status.current };
	*ret_watch = &script->watch;
	return VD_OK;
}

static inline vd_status script_next(struct vd_store_watch *watch, size_t max,
				    struct vd_store_batch *ret_batch, struct vd_error *reterr)
{
	struct script *script = script_of(watch->store);
	struct step   *step = &script->steps[script->step_next];

	script->taken_max = max;
	if (script->step_next == script->step_count)
		return VD_AGAIN;
	script->step_next++;
	if (step->status != VD_OK) {
		vd_error_set(reterr, step->status, "as the script says");
		reterr->compacted = step->compacted;
		return step->status;
	}
	*ret_batch = (struct vd_store_batch) { .revision = step->revision,
					       .events = step->events,
					       .event_count = step->event_count };
	return VD_OK;
}

static inline vd_status script_progress(struct vd_store_watch *watch)
{
	struct script *script = script_of(watch->store);

	script->asks++;
	return script->progress_code;
}

static inline void script_watch_close(struct vd_store_watch *watch)
{
	script_of(watch->store)->live--;
	script_of(watch->store)->closed++;
}

static inline vd_status script_txn(struct vd_store *store, const struct vd_txn_request *request,
				   vd_txn_fn done, void *arg)
{
	struct script	    *script = script_of(store);
	struct vd_op_result  results[1 + VDI_LOADED_HISTORY_WITNESSES_MAX] = { 0 };
	struct vd_txn_result result = { .succeeded = true,
					.results = results,
					.result_count = request->success_count - script->txn_short };
	struct vd_error	     error = { 0 };

	script->txn_at[script->txns++ % OPENS_MAX] = vd_env_now(store->env);
	script->txn_ops = request->success_count;
	script->txn_revision = request->success[0].range.revision;
	if (script->txn_submit != VD_OK)
		return script->txn_submit;
	if (script->txns <= script->txn_fails) {
		vd_error_set(&error, script->txn_code, "the script answers no");
		done(arg, script->txn_code, NULL, &error);
		return VD_OK;
	}
	for (size_t i = 0; i < request->success_count; i++) {
		const struct vd_range_request *range = &request->success[i].range;

		assert_int_equal(request->success[i].kind, VD_OP_RANGE);
		assert_int_equal(range->revision, script->txn_revision);
		assert_int_equal(range->limit, 1);
		for (size_t k = 0; k < script->has_count; k++)
			if (vd_bytes_equal(vd_kv_key(script->has[k]), range->key))
				results[i].range = (struct vd_range_result) { .kvs = &script->has[k],
									      .kv_count = 1,
									      .count = 1 };
	}
	done(arg, VD_OK, &result, NULL);
	return VD_OK;
}

static inline vd_status script_status(struct vd_store *store, struct vd_store_status *ret_status)
{
	*ret_status = script_of(store)->status;
	return script_of(store)->status_code;
}

static inline void script_shutdown(struct vd_store *store)
{
	script_of(store)->shutdown++;
}

static inline void script_dump(struct vd_store *store, void (*write)(void *arg, struct vd_bytes json),
			       void	       *arg)
{
	write(arg, vd_bytes_of(",\"script\":true"));
}

static inline void script_close(struct vd_store *store, void (*done)(void *arg), void *arg)
{
	assert_false(script_of(store)->is_closed);
	script_of(store)->is_closed = true;
	done(arg);
}

static const struct vd_store_ops script_ops = {
	.size = sizeof(struct vd_store_ops),
	.txn = script_txn,
	.watch = script_watch,
	.watch_next = script_next,
	.watch_progress = script_progress,
	.watch_close = script_watch_close,
	.status = script_status,
	.shutdown = script_shutdown,
	.dump = script_dump,
	.close = script_close,
};

static inline void on_local_log(void *arg, const struct vd_log_record *record)
{
	struct local *l = arg;
	size_t	      used = strlen(l->log);

	if (strcmp(record->module, "history") == 0)
		snprintf(l->log + used, sizeof l->log - used, "%c %s\n", "EWID"[record->level],
			 record -> message);
}

static inline unsigned lines_with(const struct local *l, const char *text)
{
	unsigned count = 0;

	for (const char *at = l->log; (at = strstr(at, text)); at++)
		count++;
	return count;
}

/* A store at revision `current` that has compacted nothing. */
static inline void local_init(struct local *l, vd_rev current)
{
	memset(l, 0, sizeof *l);
	assert_status(vdi_env_new_sim(1, on_local_log, l, &l->env), VD_OK);
	assert_status(vdi_disk_sim_new(1, &l->disk), VD_OK);
	vdi_env_set_disk(l->env, l->disk);
	l->script.store = (struct vd_store) { .ops = &script_ops, .env = l->env };
	l->script.status =
		(struct vd_store_status) { .current = current, .compacted = -1, .id = 11, .remote = true };
	l->options = (struct vdi_local_history_options) { .data_dir = DIRECTORY,
							  .prefix = "/registry/",
							  .history_bytes = 1 << 20 };
}

static inline vd_status local_try_open(struct local *l, struct vd_error *error)
{
	return vdi_local_history_open(l->env, &l->script.store, &l->options, &l->store, error);
}

static inline void local_open(struct local *l)
{
	struct vd_error error = { 0 };

	l->log[0] = 0;
	assert_status(local_try_open(l, &error), VD_OK);
	vdi_sim_run_until_idle(l->env);
}

static inline void local_close(struct local *l)
{
	l->store = vd_store_close_wait(l->store);
	assert_true(l->script.is_closed);
	assert_int_equal(l->script.live, 0);
	l->script.is_closed = false;
}

/* The requests of the watch are counted from here. */
static inline void forget_opens(struct local *l)
{
	l->script.opens = l->script.asks = l->script.closed = l->script.txns = 0;
}

static inline void local_fini(struct local *l)
{
	if (l->store)
		local_close(l);
	for (size_t i = 0; i < l->script.step_count; i++)
		for (size_t k = 0; k < l->script.steps[i].event_count; k++) {
			vd_kv_unref(l->script.steps[i].events[k].kv);
			vd_kv_unref(l->script.steps[i].events[k].previous);
		}
	vdi_disk_sim_free(l->disk);
	vd_env_free(l->env);
}

static inline struct vdi_local_history *history_of(struct local *l)
{
	return VDI_CONTAINER_OF(l->store, struct vdi_local_history, front.base);
}

static inline struct vd_kv *new_record(const char *key, vd_rev created, vd_rev modified, int64_t version)
{
	struct vd_kv *kv;

	assert_status(vd_kv_new(vd_bytes_of(key), version ? vd_bytes_of("{}") : (struct vd_bytes) { 0 }, &kv),
		      VD_OK);
	kv->create_rev = created;
	kv->mod_rev = modified;
	kv->version = version;
	return kv;
}

/* "/registry/pods/ns/p0012" is what revision 12 creates. */
static inline struct vd_kv *created_at(vd_rev revision)
{
	char key[64];

	snprintf(key, sizeof key, "/registry/pods/ns/p%04lld", (long long) revision);
	return new_record(key, revision, revision, 1);
}

static inline struct step *next_step(struct local *l)
{
	assert_in_range(l->script.step_count, 0, STEPS_MAX - 1);
	return &l->script.steps[l->script.step_count++];
}

static inline void now_ready(struct local *l)
{
	l->script.request.ready(l->script.request.ready_arg);
	vdi_sim_run_until_idle(l->env);
}

/* The inner watch says one change at each of these revisions, in one batch. */
static inline void say(struct local *l, vd_rev from, size_t count)
{
	struct step *step = next_step(l);

	for (size_t i = 0; i < count; i++) {
		step->events[i].kv = created_at(from + (vd_rev) i);
		if (l->script.has_count < STEPS_MAX)
			l->script.has[l->script.has_count++] = step->events[i].kv;
	}
	step->event_count = count;
	step->revision = from + (vd_rev) count - 1;
	l->script.status.current = VDI_MAX(l->script.status.current, step->revision);
	now_ready(l);
}

static inline void send_progress(struct local *l, vd_rev revision)
{
	next_step(l)->revision = revision;
	now_ready(l);
}

static inline void say_end(struct local *l, vd_status status, vd_rev compacted)
{
	*next_step(l) = (struct step) { .status = status, .compacted = compacted };
	now_ready(l);
}

static inline struct vd_store_status status_of(struct local *l)
{
	struct vd_store_status status;

	assert_status(vd_store_status_get(l->store, &status), VD_OK);
	return status;
}

static inline int64_t metric_of(struct local *l, enum vdi_metric_id id)
{
	const char	  *values[4] = { 0 };
	struct vdi_metric *instance;
	struct vdi_buffer  buffer;
	int64_t		   value;

	vdi_buffer_init(&buffer, 16 << 20);
	assert_status(vdi_metrics_render(vdi_env_metrics(l->env), &buffer), VD_OK); /* collects */
	vdi_buffer_fini(&buffer);
	assert_status(vdi_metric_get(vdi_env_metrics(l->env), id, values, &instance), VD_OK);
	value = vdi_metric_value(instance);
	vdi_metric_release(instance);
	return value;
}

static inline void count_ready(void *arg)
{
	(*(unsigned *) arg)++;
}

#endif
