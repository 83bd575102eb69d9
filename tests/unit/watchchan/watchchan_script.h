/* A watchChan over a store that is a script: a test reads the requests and writes the answers. */
#ifndef WATCHCHAN_SCRIPT_H
#define WATCHCHAN_SCRIPT_H

#include "vdtest.h"

#include "actor_sim.h"
#include "env.h"
#include "storage_metrics.h"
#include "watchchan.h"
#include "watchchan_state.h"

#define ANSWERS_MAX 8
#define KEY "/registry/pods/"

struct answer {
	vd_status	      status;
	const char	     *message; /* of the error; NULL: none */
	struct vd_store_event events[130];
	size_t		      count;
	vd_rev		      revision;
};

struct script {
	struct vd_store	      store;
	struct vd_store_watch watch;
	/* Ranges. */
	unsigned    ranges;
	char	    key[64], range_end[64];
	vd_rev	    revision;
	int64_t	    limit;
	bool	    keys_only;
	vd_status   refuse; /* the next range */
	vd_status   refuse_stream;
	vd_range_fn done;
	void	   *done_arg;
	/* The watch. */
	unsigned		      opened, closed, progress;
	struct vd_store_watch_request request;
	vd_status		      refuse_watch;
	const char		     *refuse_message;
	struct answer		     *answers[ANSWERS_MAX];
	size_t			      answer_count, answer_next, asked_for;
};

struct world {
	struct vd_env		    *env;
	struct vd_codec		    *codec;
	struct script		     script;
	struct vdi_watchchan_options options;
	struct vdi_watchchan	    *watchchan;
	unsigned		     ready;
	bool			     closed;
	int64_t			     live;
};

static inline struct script *script_of(struct vd_store *store)
{
	return VDI_CONTAINER_OF(store, struct script, store);
}

static inline void text_of(char text[64], struct vd_bytes bytes)
{
	snprintf(text, 64, "%.*s", (int) bytes.size, bytes.size ? (const char *) bytes.data : "");
}

static inline vd_status script_range(struct vd_store *store, const struct vd_range_request *request,
				     vd_range_fn done, void *arg)
{
	struct script *script = script_of(store);
	vd_status      refuse = script->refuse;

	script->ranges++;
	text_of(script->key, request->key);
	text_of(script->range_end, request->range_end);
	script->revision = request->revision;
	script->limit = request->limit;
	script->keys_only = request->keys_only;
	script->refuse = VD_OK;
	if (refuse == VD_OK) {
		script->done = done;
		script->done_arg = arg;
	}
	return refuse;
}

static inline vd_status script_watch(struct vd_store *store, const struct vd_store_watch_request *request,
				     struct vd_store_watch **ret_watch, struct vd_error *reterr)
{
	struct script *script = script_of(store);

	if (script->refuse_watch != VD_OK)
		return script->refuse_message ?
			       vd_error_set(reterr, script->refuse_watch, "%s", script->refuse_message) :
			       script->refuse_watch;
	script->opened++;
	script->request = *request;
	script->watch.store = store;
	*ret_watch = &script->watch;
	return VD_OK;
}

static inline vd_status script_next(struct vd_store_watch *watch, size_t max,
				    struct vd_store_batch *ret_batch, struct vd_error *reterr)
{
	struct script *script = script_of(watch->store);
	struct answer *answer;

	script->asked_for = max;
	if (script->answer_next == script->answer_count)
		return VD_AGAIN;
	answer = script->answers[script->answer_next++];
	if (answer->status != VD_OK)
		return answer->message ? vd_error_set(reterr, answer->status, "%s", answer->message) :
					 answer->status;
	*ret_batch = (struct vd_store_batch) { answer->revision, answer->events, answer->count };
	return VD_OK;
}

static inline vd_status script_progress(struct vd_store_watch *watch)
{
	script_of(watch->store)->progress++;
	return VD_OK;
}

static inline vd_status script_stream(struct vd_store *store, const struct vd_store_stream_request *request,
				      struct vd_store_stream **ret_stream)
{
	return script_of(store)->refuse_stream;
}

static inline void script_close(struct vd_store_watch *watch)
{
	script_of(watch->store)->closed++;
}

static const struct vd_store_ops script_ops = {
	.size = sizeof(struct vd_store_ops),
	.range = script_range,
	.watch = script_watch,
	.watch_next = script_next,
	.watch_progress = script_progress,
	.watch_close = script_close,
	.stream = script_stream,
};

static inline void on_ready(void *arg)
{
	((struct world *) arg)->ready++;
}

static inline void on_closed(void *arg)
{
	*(bool *) arg = true;
}

/* From revision 1 on; a test changes the options before it opens. */
static inline void world_init(struct world *world)
{
	memset(world, 0, sizeof *world);
	world->live = vdi_alloc_live();
	assert_status(vdi_env_new_sim(1, NULL, NULL, &world->env), VD_OK);
	assert_status(vd_codec_json_new(NULL, 0, &world->codec, NULL), VD_OK);
	world->script.store.ops = &script_ops;
	world->script.store.env = world->env;
	world->script.refuse_stream = VD_UNSUPPORTED;
	world->options = (struct vdi_watchchan_options) { .codec = world->codec,
							  .key = vd_bytes_of(KEY),
							  .recursive = true,
							  .revision = 1,
							  .ready = on_ready,
							  .ready_arg = world };
}

static inline void open_watch(struct world *world)
{
	assert_status(vdi_watchchan_open(world->env, &world->script.store, &world->options, &world->watchchan,
					 NULL),
		      VD_OK);
	vdi_sim_run_until_idle(world->env);
}

static inline void close_watch(struct world *world)
{
	world->closed = false;
	vdi_watchchan_close(world->watchchan, on_closed, &world->closed);
	vdi_sim_run_until_idle(world->env);
	assert_true(world->closed);
	world->watchchan = NULL;
}

static inline void world_fini(struct world *world)
{
	if (world->watchchan)
		close_watch(world);
	assert_int_equal(world->script.closed, world->script.opened);
	for (size_t i = 0; i < world->script.answer_count; i++) {
		for (size_t k = 0; k < world->script.answers[i]->count; k++) {
			vd_kv_unref(world->script.answers[i]->events[k].kv);
			vd_kv_unref(world->script.answers[i]->events[k].previous);
		}
		free(world->script.answers[i]);
	}
	vd_codec_free(world->codec);
	vd_env_free(world->env);
	assert_int_equal(vdi_alloc_live(), world->live);
}

/* {"metadata":{"name":...}}, or the text itself when it says that it is "junk", or encrypted. */
static inline struct vd_kv *record(const char *name, const char *label, vd_rev created, vd_rev modified)
{
	char	      key[64], value[128];
	struct vd_kv *kv;

	snprintf(key, sizeof key, KEY "%s", name);
	snprintf(value, sizeof value, "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"app\":\"%s\"}}}", name,
		 label);
	if (strcmp(label, "junk") == 0 || strncmp(label, "k8s:enc:", 8) == 0)
		snprintf(value, sizeof value, "%s", label);
	assert_status(vd_kv_new(vd_bytes_of(key), vd_bytes_of(value), &kv), VD_OK);
	kv->create_rev = created;
	kv->mod_rev = modified;
	kv->version = created == modified ? 1 : 2;
	return kv;
}

/* The store answers the read that was asked for. */
static inline void answer_range(struct world *world, vd_status status, vd_rev revision, struct vd_kv **kvs,
				size_t count, bool more, const char *message)
{
	struct vd_range_result result = { .store_revision = revision,
					  .kvs = kvs,
					  .kv_count = count,
					  .count = (int64_t) count,
					  .more = more };
	struct vd_error	       error = { 0 };
	vd_range_fn	       done = world->script.done;

	assert_non_null(done);
	world->script.done = NULL;
	if (message)
		vd_error_set(&error, status, "%s", message);
	done(world->script.done_arg, status, status == VD_OK ? &result : NULL, message ? &error : NULL);
	for (size_t i = 0; i < count; i++)
		vd_kv_unref(kvs[i]);
	vdi_sim_run_until_idle(world->env);
}

static inline struct answer *answer_new(struct world *world)
{
	assert_true(world->script.answer_count < ANSWERS_MAX);
	return world->script.answers[world->script.answer_count++] = calloc(1, sizeof(struct answer));
}

static inline void tell(struct world *world)
{
	world->script.request.ready(world->script.request.ready_arg);
	vdi_sim_run_until_idle(world->env);
}

static inline void tell_status(struct world *world, vd_status status, const char *message)
{
	struct answer *answer = answer_new(world);

	answer->status = status;
	answer->message = message;
	tell(world);
}

static inline void tell_progress(struct world *world, vd_rev revision)
{
	answer_new(world)->revision = revision;
	tell(world);
}

static inline struct vdi_watchchan_event next(struct world *world)
{
	struct vdi_watchchan_event event;

	vdi_sim_run_until_idle(world->env);
	assert_status(vdi_watchchan_next(world->watchchan, &event), VD_OK);
	return event;
}

static inline vd_status next_status(struct world *world)
{
	struct vdi_watchchan_event event;

	vdi_sim_run_until_idle(world->env);
	return vdi_watchchan_next(world->watchchan, &event);
}

/* An event without an object. */
static inline void expect_bookmark(struct world *world, vd_rev revision, bool initial_events_end)
{
	struct vdi_watchchan_event event = next(world);

	assert_int_equal(event.type, VD_WATCH_BOOKMARK);
	assert_int_equal(event.revision, revision);
	assert_int_equal(event.initial_events_end, initial_events_end);
	assert_null(event.object);
	assert_null(event.old_object);
	assert_false(event.initial);
	assert_false(event.more_in_revision);
}

/* The last event, and nothing after it. */
static inline void expect_error(struct world *world, vd_status code, const char *message)
{
	struct vdi_watchchan_event event = next(world);

	assert_int_equal(event.type, VD_WATCH_ERROR);
	assert_status(event.error->code, code);
	assert_string_equal(event.error->message, message);
	assert_null(event.object);
	assert_status(next_status(world), VD_CLOSED);
}

static inline void expect_object(struct world *world, enum vd_watch_type type, const char *name,
				 vd_rev revision, bool more)
{
	struct vdi_watchchan_event event = next(world);

	assert_int_equal(event.type, type);
	assert_non_null(event.object);
	assert_true(vd_bytes_equal(vd_object_name(event.object), vd_bytes_of(name)));
	assert_int_equal(event.revision, revision);
	assert_int_equal(event.more_in_revision, more);
	assert_false(event.initial_events_end);
	assert_null(event.error);
	vdi_watchchan_event_fini(&event);
	assert_null(event.object);
}

static inline void tell_event(struct world *world, bool is_delete, struct vd_kv *kv, struct vd_kv *previous)
{
	struct answer *answer = answer_new(world);

	answer->events[0] = (struct vd_store_event) { is_delete, kv, previous };
	answer->count = 1;
	answer->revision = kv->mod_rev;
	tell(world);
}

static inline bool app_is_x(void *arg, const struct vd_object *object)
{
	struct vd_bytes value;

	return vd_object_label_get(object, vd_bytes_of("app"), &value) &&
	       vd_bytes_equal(value, vd_bytes_of("x"));
}

#endif
