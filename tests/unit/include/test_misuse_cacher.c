/* Calls of a cacher and an informer outside their contract: each is refused with a sentence, and harms
 * nothing. */
#include <stdatomic.h>

#include "misuse.h"

#define NS vd_bytes_of("ns")
#define A vd_bytes_of("a")
#define POD vd_bytes_of("{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\"}}")
#define NO_BYTES ((struct vd_bytes) { NULL, 3 })

static vd_status keep_update(void *arg, struct vd_object *current, struct vd_bytes *ret_value,
			     int64_t *ret_ttl_s, struct vd_error *reterr)
{
	(void) arg, (void) current, (void) ret_value, (void) ret_ttl_s, (void) reterr;
	return VD_OK;
}

static vd_status short_lived(void *arg, struct vd_object *current, struct vd_bytes *ret_value,
			     int64_t *ret_ttl_s, struct vd_error *reterr)
{
	(void) arg, (void) current, (void) reterr;
	*ret_value = vd_bytes_of("{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\"},\"x\":1}");
	*ret_ttl_s = -5;
	return VD_OK;
}

static void no_list(void *arg, vd_status status, struct vd_list *list, const struct vd_error *error)
{
	(void) arg, (void) status, (void) list, (void) error;
	fail();
}

static size_t take_all(void *arg, const struct vd_watch_event *events, size_t count)
{
	(void) arg, (void) events;
	return count;
}

static void no_end(void *arg, vd_status reason)
{
	(void) arg, (void) reason;
}

/* ---- Construction ---- */

static vd_status new_with(struct misuse_world *w, const struct vd_env *env, struct vd_store *store,
			  struct vd_cacher_options *options, bool ret)
{
	struct vd_cacher *cacher = NULL;

	return vd_cacher_new(env, store, options, ret ? &cacher : NULL, &w->error);
}

static struct vd_cacher_options options_of(const struct misuse_world *w)
{
	struct vd_cacher_options options = VD_CACHER_OPTIONS_INIT;

	options.resource = "things";
	options.key_prefix = "/registry/things/";
	options.codec = w->codec;
	return options;
}

#define NEW(name, setting)                                                                                   \
	static vd_status name(struct misuse_world *w)                                                        \
	{                                                                                                    \
		struct vd_cacher_options options = options_of(w);                                            \
		setting;                                                                                     \
		return new_with(w, w->env, w->store, &options, true);                                        \
	}

NEW(cacher_of_another_size, options.size--)
NEW(cacher_without_codec, options.codec = NULL)
NEW(cacher_without_resource, options.resource = NULL)
NEW(cacher_without_prefix, options.key_prefix = NULL)
NEW(cacher_with_zeroed_options, options = (struct vd_cacher_options) { .size = sizeof options })
NEW(cacher_with_negative_interval, options.consistency_interval = VD_SECONDS(-1))
NEW(cacher_with_unknown_enum, options.on_inconsistency = (enum vd_on_inconsistency) 9)
NEW(cacher_with_undeclared_trigger, options.trigger = "spec.nosuch")

static vd_status cacher_without_options(struct misuse_world *w)
{
	return new_with(w, w->env, w->store, NULL, true);
}

static vd_status cacher_without_env(struct misuse_world *w)
{
	struct vd_cacher_options options = options_of(w);

	return new_with(w, NULL, w->store, &options, true);
}

static vd_status cacher_without_store(struct misuse_world *w)
{
	struct vd_cacher_options options = options_of(w);

	return new_with(w, w->env, NULL, &options, true);
}

static vd_status cacher_without_result(struct misuse_world *w)
{
	struct vd_cacher_options options = options_of(w);

	return new_with(w, w->env, w->store, &options, false);
}

/* ---- Gets and writes ---- */

#define CALL(name, call)                                                                                     \
	static vd_status name(struct misuse_world *w)                                                        \
	{                                                                                                    \
		return call;                                                                                 \
	}

CALL(ready_of_nothing, vd_cacher_ready(NULL, &w->error))
CALL(ready_wait_of_nothing, vd_cacher_ready_wait(NULL, VD_SECONDS(-1), &w->error))
CALL(get_of_nothing, vd_cacher_get(NULL, NS, A, VD_REVISION_ANY, misuse_told_object, w))
CALL(get_without_callback, vd_cacher_get(w->pods, NS, A, VD_REVISION_ANY, NULL, w))
CALL(get_without_namespace, vd_cacher_get(w->pods, VD_BYTES_NONE, A, VD_REVISION_ANY, misuse_told_object, w))
CALL(get_without_name, vd_cacher_get(w->pods, NS, VD_BYTES_NONE, VD_REVISION_ANY, misuse_told_object, w))
CALL(get_without_bytes, vd_cacher_get(w->pods, NS, NO_BYTES, VD_REVISION_ANY, misuse_told_object, w))
CALL(get_with_namespace_of_a_cluster, vd_cacher_get(w->nodes, NS, A, VD_REVISION_ANY, misuse_told_object, w))
CALL(get_at_negative_revision, vd_cacher_get(w->pods, NS, A, -7, misuse_told_object, w))
CALL(get_wait_without_namespace,
     vd_cacher_get_wait(w->pods, VD_BYTES_NONE, A, VD_REVISION_ANY, NULL, &w->error))
CALL(get_wait_of_nothing, vd_cacher_get_wait(NULL, NS, A, VD_REVISION_ANY, NULL, &w->error))
CALL(create_without_callback, vd_cacher_create(w->pods, NS, vd_bytes_of("b"), POD, 0, NULL, w))
CALL(create_under_another_name,
     vd_cacher_create(w->pods, NS, vd_bytes_of("b"), POD, 0, misuse_told_object, w))
CALL(create_in_another_namespace,
     vd_cacher_create(w->pods, vd_bytes_of("other"), A, POD, 0, misuse_told_object, w))
CALL(create_without_namespace, vd_cacher_create(w->pods, VD_BYTES_NONE, A, POD, 0, misuse_told_object, w))
CALL(create_with_namespace_in_a_cluster,
     vd_cacher_create(w->nodes, NS, A, vd_bytes_of("{\"metadata\":{\"name\":\"a\"}}"), 0, misuse_told_object,
		      w))
CALL(create_of_a_namespaced_object_in_a_cluster,
     vd_cacher_create(w->nodes, VD_BYTES_NONE, A, POD, 0, misuse_told_object, w))
CALL(create_without_bytes, vd_cacher_create(w->pods, NS, A, NO_BYTES, 0, misuse_told_object, w))
CALL(create_for_a_negative_time, vd_cacher_create(w->pods, NS, A, POD, -1, misuse_told_object, w))
CALL(put_under_another_name, vd_cacher_put_wait(w->pods, NS, vd_bytes_of("b"), POD, NULL, &w->error))
CALL(put_of_a_nameless_object,
     vd_cacher_put_wait(w->pods, NS, A, vd_bytes_of("{\"metadata\":{\"namespace\":\"ns\"}}"), NULL,
			&w->error))
CALL(put_wait_of_nothing, vd_cacher_put_wait(NULL, NS, A, POD, NULL, &w->error))
CALL(update_without_update, vd_cacher_update(w->pods, NS, A, false, NULL, NULL, misuse_told_object, w))
CALL(update_without_callback, vd_cacher_update(w->pods, NS, A, false, NULL, keep_update, NULL, w))
CALL(update_without_namespace,
     vd_cacher_update(w->pods, VD_BYTES_NONE, A, false, NULL, keep_update, misuse_told_object, w))
CALL(delete_without_callback, vd_cacher_delete(w->pods, NS, A, NULL, NULL, NULL, w))
CALL(delete_without_namespace, vd_cacher_delete_wait(w->pods, VD_BYTES_NONE, A, NULL, &w->error))
CALL(delete_wait_of_nothing, vd_cacher_delete_wait(NULL, NS, A, NULL, &w->error))

struct told {
	struct vd_error error;
	atomic_bool	is_done;
};

static void told_update(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
			const struct vd_error *error)
{
	struct told *told = arg;

	(void) status, (void) object, (void) revision;
	told->error = *error;
	atomic_store(&told->is_done, true);
}

static vd_status update_for_a_negative_time(struct misuse_world *w)
{
	static struct told told;

	/* Both functions have one arg; short_lived does not look at it. */
	assert_status(vd_cacher_update(w->pods, NS, A, false, NULL, short_lived, told_update, &told), VD_OK);
	while (!atomic_load(&told.is_done)) /* the answer is behind nothing of ours: ask for something else */
		assert_status(vd_cacher_get_wait(w->pods, NS, A, VD_REVISION_UNSET, NULL, NULL), VD_OK);
	w->error = told.error;
	return VD_OK;
}

static vd_status delete_without_precondition_bytes(struct misuse_world *w)
{
	struct vd_preconditions preconditions = { .uid = NO_BYTES };

	return vd_cacher_delete(w->pods, NS, A, &preconditions, NULL, misuse_told_object, w);
}

/* ---- Lists, changes ---- */

static vd_status list_with(struct misuse_world *w, struct vd_cacher *cacher,
			   const struct vd_list_options *options)
{
	return vd_cacher_list(cacher, options, no_list, w, &w->error);
}

#define LIST(name, cacher, setting)                                                                          \
	static vd_status name(struct misuse_world *w)                                                        \
	{                                                                                                    \
		struct vd_list_options options = VD_LIST_OPTIONS_INIT;                                       \
		setting;                                                                                     \
		return list_with(w, cacher, &options);                                                       \
	}

LIST(list_of_nothing, NULL, (void) 0)
LIST(list_of_another_size, w->pods, options.size = 8)
LIST(list_with_namespace_of_a_cluster, w->nodes, options.namespace_name = NS)
LIST(list_by_undeclared_field, w->pods, options.field_selector = vd_bytes_of("spec.nodeName=n,spec.nosuch=1"))
LIST(list_by_field_without_bytes, w->pods, options.field_selector = NO_BYTES)
LIST(list_by_label_without_bytes, w->pods, options.label_selector = NO_BYTES)
LIST(list_with_token_without_bytes, w->pods, options.continue_token = NO_BYTES)
LIST(list_with_unknown_match, w->pods, options.match = (enum vd_revision_match) 7)
LIST(list_with_negative_limit, w->pods, options.limit = -1)
LIST(list_without_callback_too, w->pods, return vd_cacher_list(w->pods, &options, NULL, w, &w->error))
LIST(list_wait_without_result, w->pods, return vd_cacher_list_wait(w->pods, &options, NULL, &w->error))
CALL(list_without_options, list_with(w, w->pods, NULL))

#define CHANGES(name, cacher, setting)                                                                       \
	static vd_status name(struct misuse_world *w)                                                        \
	{                                                                                                    \
		struct vd_changes_options options = VD_CHANGES_OPTIONS_INIT;                                 \
		struct vd_changes	 *changes = NULL;                                                    \
		setting;                                                                                     \
		return vd_cacher_changes(cacher, &options, &changes, &w->error);                             \
	}

CHANGES(changes_of_nothing, NULL, (void) 0)
CHANGES(changes_of_another_size, w->pods, options.size = 0)
CHANGES(changes_backwards, w->pods, options.after = 5; options.until = 4)
CHANGES(changes_with_namespace_of_a_cluster, w->nodes, options.namespace_name = NS)
CHANGES(changes_by_undeclared_field, w->pods, options.field_selector = vd_bytes_of("nosuch=1"))
CHANGES(changes_without_result, w->pods, (void) changes;
	return vd_cacher_changes(w->pods, &options, NULL, &w->error))

/* ---- Watches ---- */

static vd_status watch_with(struct misuse_world *w, struct vd_cacher *cacher,
			    const struct vd_watch_options *options, const struct vd_watch_sink *sink)
{
	struct vd_watcher *watcher = NULL;
	vd_status	   status = vd_cacher_watch(cacher, options, sink, &watcher, &w->error);

	vd_watcher_close(watcher, NULL, NULL);
	return status;
}

#define WATCH(name, cacher, setting)                                                                         \
	static vd_status name(struct misuse_world *w)                                                        \
	{                                                                                                    \
		struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;                                     \
		setting;                                                                                     \
		return watch_with(w, cacher, &options, NULL);                                                \
	}

WATCH(watch_of_nothing, NULL, (void) 0)
WATCH(watch_of_another_size, w->pods, options.size = 4)
WATCH(watch_with_zeroed_options, w->pods, options = (struct vd_watch_options) { .size = sizeof options })
WATCH(watch_until_before_the_start, w->pods, options.deadline.ns = -5)
WATCH(watch_with_namespace_of_a_cluster, w->nodes, options.namespace_name = NS)
WATCH(watch_by_undeclared_field, w->pods, options.field_selector = vd_bytes_of("spec.nosuch!=1"))
WATCH(watch_without_bytes, w->pods, options.namespace_name = NO_BYTES)
WATCH(watch_with_unknown_enum, w->pods, options.send_initial_events = (enum vd_tristate) 3)
WATCH(watch_with_negative_lag, w->pods, options.lag_bytes_max = -1)
WATCH(watch_from_negative_revision, w->pods, options.revision = -2)
WATCH(watch_without_result, w->pods, return vd_cacher_watch(w->pods, &options, NULL, NULL, &w->error))
CALL(watch_without_options, watch_with(w, w->pods, NULL, NULL))

static vd_status watch_without_deliver(struct misuse_world *w)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct vd_watch_sink	sink = { .ended = no_end };

	return watch_with(w, w->pods, &options, &sink);
}

static vd_status watch_without_ended(struct misuse_world *w)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct vd_watch_sink	sink = { .deliver = take_all };

	return watch_with(w, w->pods, &options, &sink);
}

static vd_status next_without_result(struct misuse_world *w)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct vd_watcher      *watcher;
	vd_status		status;

	assert_status(vd_cacher_watch(w->pods, &options, NULL, &watcher, NULL), VD_OK);
	status = vd_watcher_next(watcher, NULL);
	vd_watcher_close(watcher, NULL, NULL);
	return status;
}

/* A watcher with a sink is not pulled. */
static vd_status pull_of_a_sink(struct misuse_world *w, vd_status (*pull)(struct vd_watcher *watcher))
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct vd_watch_sink	sink = { .deliver = take_all, .ended = no_end };
	struct vd_watcher      *watcher;
	vd_status		status;

	assert_status(vd_cacher_watch(w->pods, &options, &sink, &watcher, NULL), VD_OK);
	status = pull(watcher);
	vd_watcher_close(watcher, NULL, NULL);
	return status;
}

static vd_status pull_next(struct vd_watcher *watcher)
{
	struct vd_watch_event event;

	return vd_watcher_next(watcher, &event);
}

static vd_status pull_wait(struct vd_watcher *watcher)
{
	return vd_watcher_wait(watcher, VD_SECONDS(-1));
}

static vd_status pull_fd(struct vd_watcher *watcher)
{
	return vd_watcher_fd(watcher) < 0 ? VD_INVALID_ARGUMENT : VD_OK;
}

CALL(next_of_a_sink, pull_of_a_sink(w, pull_next))
CALL(wait_of_a_sink, pull_of_a_sink(w, pull_wait))
CALL(fd_of_a_sink, pull_of_a_sink(w, pull_fd))
CALL(next_of_nothing, pull_next(NULL))
CALL(wait_of_nothing, pull_wait(NULL))

/* ---- Informers ---- */

static vd_status inform(struct misuse_world *w, struct vd_cacher *cacher,
			const struct vd_informer_options *options)
{
	struct vd_informer *informer = NULL;

	return vd_informer_open(cacher, options, &informer, &w->error);
}

#define INFORM(name, cacher, setting)                                                                        \
	static vd_status name(struct misuse_world *w)                                                        \
	{                                                                                                    \
		struct vd_informer_options options = VD_INFORMER_OPTIONS_INIT;                               \
		setting;                                                                                     \
		return inform(w, cacher, &options);                                                          \
	}

static const struct vd_informer_index no_values[] = { { "index", NULL, NULL } };

INFORM(informer_of_nothing, NULL, (void) 0)
INFORM(informer_of_another_size, w->pods, options.size = 1)
INFORM(informer_with_namespace_of_a_cluster, w->nodes, options.namespace_name = NS)
INFORM(informer_by_undeclared_field, w->pods, options.field_selector = vd_bytes_of("spec.nosuch=1"))
INFORM(informer_without_indexes, w->pods, options.index_count = 1)
INFORM(informer_index_without_function, w->pods, options.indexes = no_values; options.index_count = 1)
INFORM(informer_without_result, w->pods, return vd_informer_open(w->pods, &options, NULL, &w->error))
CALL(informer_without_options, inform(w, w->pods, NULL))
CALL(synced_wait_of_nothing, vd_informer_synced_wait(NULL, VD_SECONDS(-1)))

static vd_status informer_without_handler(struct misuse_world *w)
{
	struct vd_informer *informer = NULL;

	return vd_informer_new(w->pods, VD_BYTES_NONE, VD_BYTES_NONE, VD_BYTES_NONE, NULL, &informer,
			       &w->error);
}

static vd_status with_informer(struct misuse_world *w,
			       vd_status (*commit)(struct misuse_world *w, struct vd_informer *informer))
{
	struct vd_informer_options options = VD_INFORMER_OPTIONS_INIT;
	struct vd_informer	  *informer;
	vd_status		   status;

	assert_status(vd_informer_open(w->pods, &options, &informer, NULL), VD_OK);
	assert_status(vd_informer_synced_wait(informer, VD_SECONDS(-1)), VD_OK);
	status = commit(w, informer);
	vd_informer_close_wait(informer);
	return status;
}

static vd_status add_no_handler(struct misuse_world *w, struct vd_informer *informer)
{
	return vd_informer_add_handler(informer, NULL, NULL, &w->error);
}

static vd_status add_hasty_handler(struct misuse_world *w, struct vd_informer *informer)
{
	struct vd_informer_handler handler = { .resync_period = VD_MS(-3) };

	return vd_informer_add_handler(informer, &handler, NULL, &w->error);
}

static vd_status visit_with_nothing(struct misuse_world *w, struct vd_informer *informer)
{
	(void) w;
	assert_int_equal(vd_informer_visit(informer, NULL, NULL), 0);
	assert_int_equal(vd_informer_visit_index(informer, NULL, A, NULL, NULL), 0);
	assert_null(vd_informer_get(informer, VD_BYTES_NONE, A));
	return VD_INVALID_ARGUMENT;
}

CALL(handler_of_nothing, with_informer(w, add_no_handler))
CALL(handler_with_negative_resync, with_informer(w, add_hasty_handler))
CALL(visits_with_nothing, with_informer(w, visit_with_nothing))

static const struct misuse misuses[] = {
	MISUSE(cacher_of_another_size, VD_INVALID_ARGUMENT, "_INIT"),
	MISUSE(cacher_without_codec, VD_INVALID_ARGUMENT, "codec"),
	MISUSE(cacher_without_resource, VD_INVALID_ARGUMENT, "resource"),
	MISUSE(cacher_without_prefix, VD_INVALID_ARGUMENT, "prefix"),
	MISUSE(cacher_with_zeroed_options, VD_INVALID_ARGUMENT, "resource is NULL or empty"),
	MISUSE(cacher_with_negative_interval, VD_INVALID_ARGUMENT, "consistency_interval (-1000 ms)"),
	MISUSE(cacher_with_unknown_enum, VD_INVALID_ARGUMENT, "on_inconsistency (9)"),
	MISUSE(cacher_with_undeclared_trigger, VD_INVALID_ARGUMENT, "spec.nosuch is not a declared field"),
	MISUSE(cacher_without_options, VD_INVALID_ARGUMENT, "options is NULL"),
	MISUSE(cacher_without_env, VD_INVALID_ARGUMENT, "vd_cacher_new: env is NULL"),
	MISUSE(cacher_without_store, VD_INVALID_ARGUMENT, "vd_cacher_new: store is NULL"),
	MISUSE(cacher_without_result, VD_INVALID_ARGUMENT, "vd_cacher_new: ret_cacher is NULL"),
	MISUSE(ready_of_nothing, VD_INVALID_ARGUMENT, "vd_cacher_ready: cacher is NULL"),
	MISUSE(ready_wait_of_nothing, VD_INVALID_ARGUMENT, "vd_cacher_ready_wait: cacher is NULL"),
	MISUSE(get_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(get_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(get_without_namespace, VD_INVALID_ARGUMENT,
	       "pods are namespaced: the namespace of \"a\" is missing"),
	MISUSE(get_without_name, VD_INVALID_ARGUMENT, "invalid key"),
	MISUSE(get_without_bytes, VD_INVALID_ARGUMENT, "name.data is NULL but its size is 3"),
	MISUSE(get_with_namespace_of_a_cluster, VD_INVALID_ARGUMENT,
	       "nodes are not namespaced: the namespace must be empty, not \"ns\""),
	MISUSE(get_at_negative_revision, VD_INVALID_ARGUMENT, "the revision is -7"),
	MISUSE(get_wait_without_namespace, VD_INVALID_ARGUMENT, "pods are namespaced"),
	MISUSE(get_wait_of_nothing, VD_INVALID_ARGUMENT, "cacher is NULL"),
	MISUSE(create_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(create_under_another_name, VD_INVALID_ARGUMENT,
	       "do not belong to its key /registry/pods/ns/b"),
	MISUSE(create_in_another_namespace, VD_INVALID_ARGUMENT,
	       "do not belong to its key /registry/pods/other/a"),
	MISUSE(create_without_namespace, VD_INVALID_ARGUMENT, "pods are namespaced"),
	MISUSE(create_with_namespace_in_a_cluster, VD_INVALID_ARGUMENT, "nodes are not namespaced"),
	MISUSE(create_of_a_namespaced_object_in_a_cluster, VD_INVALID_ARGUMENT, "metadata.namespace \"ns\""),
	MISUSE(create_without_bytes, VD_INVALID_ARGUMENT, "value.data is NULL"),
	MISUSE(create_for_a_negative_time, VD_INVALID_ARGUMENT, "the time to live is -1 s"),
	MISUSE(put_under_another_name, VD_INVALID_ARGUMENT, "do not belong to its key"),
	MISUSE(put_of_a_nameless_object, VD_INVALID_ARGUMENT, "do not belong to its key"),
	MISUSE(put_wait_of_nothing, VD_INVALID_ARGUMENT, "cacher is NULL"),
	MISUSE(update_without_update, VD_INVALID_ARGUMENT, NULL),
	MISUSE(update_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(update_without_namespace, VD_INVALID_ARGUMENT, "pods are namespaced"),
	MISUSE(update_for_a_negative_time, VD_INVALID_ARGUMENT, "the time to live is -5 s"),
	MISUSE(delete_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(delete_without_namespace, VD_INVALID_ARGUMENT, "pods are namespaced"),
	MISUSE(delete_wait_of_nothing, VD_INVALID_ARGUMENT, "cacher is NULL"),
	MISUSE(delete_without_precondition_bytes, VD_INVALID_ARGUMENT, "preconditions->uid.data is NULL"),
	MISUSE(list_of_nothing, VD_INVALID_ARGUMENT, "cacher is NULL"),
	MISUSE(list_of_another_size, VD_INVALID_ARGUMENT, "options of 8 bytes"),
	MISUSE(list_with_namespace_of_a_cluster, VD_INVALID_ARGUMENT, "nodes are not namespaced"),
	MISUSE(list_by_undeclared_field, VD_BAD_REQUEST, "field label not supported: spec.nosuch"),
	MISUSE(list_by_field_without_bytes, VD_INVALID_ARGUMENT, "field selector: data is NULL"),
	MISUSE(list_by_label_without_bytes, VD_INVALID_ARGUMENT, "label selector: data is NULL"),
	MISUSE(list_with_token_without_bytes, VD_INVALID_ARGUMENT, "continue_token.data is NULL"),
	MISUSE(list_with_unknown_match, VD_INVALID_ARGUMENT, "match is 7"),
	MISUSE(list_with_negative_limit, VD_INVALID_ARGUMENT, "limit -1"),
	MISUSE(list_without_callback_too, VD_INVALID_ARGUMENT, "done is NULL"),
	MISUSE(list_wait_without_result, VD_INVALID_ARGUMENT, "ret_list is NULL"),
	MISUSE(list_without_options, VD_INVALID_ARGUMENT, "options is NULL"),
	MISUSE(changes_of_nothing, VD_INVALID_ARGUMENT, "cacher is NULL"),
	MISUSE(changes_of_another_size, VD_INVALID_ARGUMENT, "options of 0 bytes"),
	MISUSE(changes_backwards, VD_INVALID_ARGUMENT, "with from not greater than to"),
	MISUSE(changes_with_namespace_of_a_cluster, VD_INVALID_ARGUMENT, "nodes are not namespaced"),
	MISUSE(changes_by_undeclared_field, VD_BAD_REQUEST, "field label not supported: nosuch"),
	MISUSE(changes_without_result, VD_INVALID_ARGUMENT, "ret_changes is NULL"),
	MISUSE(watch_of_nothing, VD_INVALID_ARGUMENT, "cacher is NULL"),
	MISUSE(watch_of_another_size, VD_INVALID_ARGUMENT, "options of 4 bytes"),
	MISUSE(watch_with_zeroed_options, VD_INVALID_ARGUMENT, "the deadline is 0"),
	MISUSE(watch_until_before_the_start, VD_INVALID_ARGUMENT, "the deadline is -5"),
	MISUSE(watch_with_namespace_of_a_cluster, VD_INVALID_ARGUMENT, "nodes are not namespaced"),
	MISUSE(watch_by_undeclared_field, VD_BAD_REQUEST, "field label not supported: spec.nosuch"),
	MISUSE(watch_without_bytes, VD_INVALID_ARGUMENT, "namespace_name.data is NULL"),
	MISUSE(watch_with_unknown_enum, VD_INVALID_ARGUMENT, "send_initial_events is 3"),
	MISUSE(watch_with_negative_lag, VD_INVALID_ARGUMENT, "lag_bytes_max -1"),
	MISUSE(watch_from_negative_revision, VD_INVALID_ARGUMENT, "the revision is -2"),
	MISUSE(watch_without_result, VD_INVALID_ARGUMENT, "ret_watcher is NULL"),
	MISUSE(watch_without_options, VD_INVALID_ARGUMENT, "options is NULL"),
	MISUSE(watch_without_deliver, VD_INVALID_ARGUMENT, "sink->deliver is NULL"),
	MISUSE(watch_without_ended, VD_INVALID_ARGUMENT, "sink->ended is NULL"),
	MISUSE(next_without_result, VD_INVALID_ARGUMENT, NULL),
	MISUSE(next_of_a_sink, VD_INVALID_ARGUMENT, NULL),
	MISUSE(wait_of_a_sink, VD_INVALID_ARGUMENT, NULL),
	MISUSE(fd_of_a_sink, VD_INVALID_ARGUMENT, NULL),
	MISUSE(next_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(wait_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(informer_of_nothing, VD_INVALID_ARGUMENT, "cacher is NULL"),
	MISUSE(informer_of_another_size, VD_INVALID_ARGUMENT, "options of 1 bytes"),
	MISUSE(informer_with_namespace_of_a_cluster, VD_INVALID_ARGUMENT, "nodes are not namespaced"),
	MISUSE(informer_by_undeclared_field, VD_BAD_REQUEST, "field label not supported: spec.nosuch"),
	MISUSE(informer_without_indexes, VD_INVALID_ARGUMENT, "indexes is NULL"),
	MISUSE(informer_index_without_function, VD_INVALID_ARGUMENT, "index"),
	MISUSE(informer_without_result, VD_INVALID_ARGUMENT, "ret_informer is NULL"),
	MISUSE(informer_without_options, VD_INVALID_ARGUMENT, "options is NULL"),
	MISUSE(informer_without_handler, VD_INVALID_ARGUMENT, "handler is NULL"),
	MISUSE(synced_wait_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(handler_of_nothing, VD_INVALID_ARGUMENT, "handler is NULL"),
	MISUSE(handler_with_negative_resync, VD_INVALID_ARGUMENT, "resync"),
	MISUSE(visits_with_nothing, VD_INVALID_ARGUMENT, NULL),
};

/* ---- What stays legal ---- */

static void lists_and_watches_of_all_namespaces(void **state)
{
	struct misuse_world	world;
	struct vd_list_options	list = VD_LIST_OPTIONS_INIT;
	struct vd_watch_options watch = VD_WATCH_OPTIONS_INIT;
	struct vd_list	       *all;

	(void) state;
	misuse_world_init(&world);
	list.name = A;
	assert_status(vd_cacher_list_wait(world.pods, &list, &all, &world.error), VD_OK);
	assert_non_null(vd_list_next(all));
	vd_list_free(all);
	watch.name = A;
	assert_status(watch_with(&world, world.pods, &watch, NULL), VD_OK);
	misuse_world_fini(&world);
}

/* as Kubernetes reads a Namespace. */
static void a_namespace_equal_to_the_name(void **state)
{
	struct misuse_world world;

	(void) state;
	misuse_world_init(&world);
	assert_status(vd_cacher_put_wait(world.nodes, A, A, vd_bytes_of("{\"metadata\":{\"name\":\"a\"}}"),
					 NULL, &world.error),
		      VD_OK);
	assert_status(vd_cacher_get_wait(world.nodes, A, A, VD_REVISION_UNSET, NULL, &world.error), VD_OK);
	misuse_world_fini(&world);
}

static void get_wait_needs_no_result(void **state)
{
	struct misuse_world world;

	(void) state;
	misuse_world_init(&world);
	assert_status(vd_cacher_get_wait(world.pods, NS, A, VD_REVISION_UNSET, NULL, &world.error), VD_OK);
	assert_status(
		vd_cacher_get_wait(world.pods, NS, vd_bytes_of("b"), VD_REVISION_UNSET, NULL, &world.error),
		VD_NOT_FOUND);
	misuse_world_fini(&world);
}

static void ready_wait_leaves_the_error_alone(void **state)
{
	struct misuse_world	 world;
	struct vd_cacher_options options;
	struct vd_cacher	*cacher;
	struct vd_error		 error = { .code = VD_INTERNAL, .message = "mine" };

	(void) state;
	misuse_world_init(&world);
	options = options_of(&world);
	assert_status(vd_cacher_new(world.env, world.store, &options, &cacher, NULL), VD_OK);
	assert_status(vd_cacher_ready_wait(cacher, VD_SECONDS(-1), &error), VD_OK);
	assert_status(error.code, VD_INTERNAL);
	assert_string_equal(error.message, "mine");
	vd_cacher_close_wait(cacher);
	misuse_world_fini(&world);
}

/* Whatever its number is. */
static void an_unknown_type_of_event_is_an_error(void **state)
{
	static const char *const names[] = { "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "ERROR" };

	(void) state;
	for (int i = 0; i < 6; i++)
		assert_string_equal(vd_watch_type_name((enum vd_watch_type) i), names[i]);
	assert_string_equal(vd_watch_type_name((enum vd_watch_type) 7), "ERROR");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_and_watches_of_all_namespaces),
		cmocka_unit_test(a_namespace_equal_to_the_name),
		cmocka_unit_test(get_wait_needs_no_result),
		cmocka_unit_test(ready_wait_leaves_the_error_alone),
		cmocka_unit_test(an_unknown_type_of_event_is_an_error),
	};

	return misuse_run("misuse_cacher", misuses, VDI_ARRAY_SIZE(misuses)) +
	       cmocka_run_group_tests(tests, NULL, NULL);
}
