/* Calls of the Kubernetes client, its helpers and the event recorder outside their contract: each is refused,
 * and harms nothing. Nothing listens at the server's address. */
#include <math.h>
#include <vedette/event_recorder.h>
#include <vedette/kube_helpers.h>

#include "misuse.h"

#include "actor_sim.h"
#include "expect_panic.h"
#include "kube_client.h"
#include "kube_script.h"
#include "wait.h"

#include <unistd.h>

#define NS vd_bytes_of("ns")
#define A vd_bytes_of("a")
#define NO_BYTES ((struct vd_bytes) { NULL, 3 })
#define FOR_EVER VD_SECONDS(-1)

static struct vd_kube *open_kube(const struct vd_env *env)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct vd_error	       error = { 0 };
	struct vd_kube	      *kube = NULL;

	options.server = "http://127.0.0.1:1";
	if (vd_kube_open(env, &options, &kube, &error) != VD_OK)
		fail_msg("%s", error.message);
	return kube;
}

/* kube: an open client. */
#define CALL(name, call)                                                                                     \
	static vd_status name(struct misuse_world *w)                                                        \
	{                                                                                                    \
		struct vd_kube *kube = open_kube(w->env);                                                    \
		vd_status	status = call;                                                               \
		vd_kube_close_wait(kube);                                                                    \
		return status;                                                                               \
	}
/* A call that must not return anything in result. */
#define RESULT(name, type, call)                                                                             \
	static vd_status name(struct misuse_world *w)                                                        \
	{                                                                                                    \
		struct vd_kube *kube = open_kube(w->env);                                                    \
		struct type    *result = NULL;                                                               \
		vd_status	status = call;                                                               \
		assert_null(result);                                                                         \
		vd_kube_close_wait(kube);                                                                    \
		return status;                                                                               \
	}

/* ---- The client ---- */

#define OPEN(name, setting)                                                                                  \
	static vd_status name(struct misuse_world *w)                                                        \
	{                                                                                                    \
		struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;                                       \
		struct vd_kube	      *kube = NULL;                                                          \
		vd_status	       status;                                                               \
		options.server = "http://127.0.0.1:1";                                                       \
		setting;                                                                                     \
		status = vd_kube_open(w->env, &options, &kube, &w->error);                                   \
		assert_null(kube);                                                                           \
		return status;                                                                               \
	}

OPEN(open_of_another_size, options.size = 3)
OPEN(open_with_zeroed_options, options = (struct vd_kube_options) { .size = sizeof options })
OPEN(open_without_timeout, options.request_timeout = VD_SECONDS(0))
OPEN(open_with_short_silence, options.silence_max = VD_MS(4999))
OPEN(open_without_scheme, options.server = "127.0.0.1:1")
OPEN(open_without_result, return vd_kube_open(w->env, &options, NULL, &w->error))
OPEN(open_without_env, return vd_kube_open(NULL, &options, &kube, &w->error))
OPEN(open_without_options, return vd_kube_open(w->env, NULL, &kube, &w->error))

static void no_done(void *arg)
{
	*(bool *) arg = true;
}

static void no_health(void *arg, const struct vd_kube_health *health)
{
	(void) arg, (void) health;
	fail();
}

/* Those that return no status. */
static vd_status nothing_of_the_client(struct misuse_world *w)
{
	struct vd_kube		     *kube = open_kube(w->env);
	const struct vd_kube_resource pods = { .version = "v1", .plural = "pods" },
				      no_version = { .plural = "pods" }, no_plural = { .version = "v1" };
	bool is_done = false;
	char path[64] = "x";

	assert_string_equal(vd_kube_server(NULL), "");
	assert_string_equal(vd_kube_namespace(NULL), "");
	vd_kube_health(NULL, no_health, NULL);
	vd_kube_health(kube, NULL, NULL);
	vd_kube_close(NULL, NULL, NULL);
	vd_kube_close(NULL, no_done, &is_done);
	assert_true(is_done);
	assert_null(vd_kube_close_wait(NULL));
	assert_int_equal(vd_kube_path(NULL, NS, A, path, sizeof path), 0);
	assert_string_equal(path, "");
	assert_int_equal(vd_kube_path(&no_version, NS, A, path, sizeof path), 0);
	assert_int_equal(vd_kube_path(&no_plural, NS, A, path, sizeof path), 0);
	assert_int_equal(vd_kube_path(&pods, NO_BYTES, A, path, sizeof path), 0);
	assert_int_equal(vd_kube_path(&pods, NS, NO_BYTES, path, sizeof path), 0);
	assert_int_equal(vd_kube_path(&pods, NS, A, NULL, sizeof path),
			 strlen("/api/v1/namespaces/ns/pods/a"));
	vd_kube_close_wait(kube);
	return VD_INVALID_ARGUMENT;
}

/* ---- Requests ---- */

static void no_answer(void *arg, vd_status status, const struct vd_kube_answer *answer,
		      const struct vd_error *error)
{
	(void) arg, (void) status, (void) answer, (void) error;
	fail();
}

static vd_status request(struct vd_kube *kube, struct vd_kube_call call)
{
	call.path = call.path ? call.path : "/api";
	return vd_kube_request(kube, &call, no_answer, NULL);
}

#define REQUEST(...) request(kube, (struct vd_kube_call) { sizeof(struct vd_kube_call), __VA_ARGS__ })

static const struct vd_kube_call a_call = { .size = sizeof a_call, .path = "/api" };
static const struct vd_kube_call pathless = { .size = sizeof pathless };
static const struct vd_kube_call sizeless = { .size = 3, .path = "/api" };

CALL(request_of_nothing, vd_kube_request(NULL, &a_call, no_answer, NULL))
CALL(request_without_call, vd_kube_request(kube, NULL, no_answer, NULL))
CALL(request_without_callback, vd_kube_request(kube, &a_call, NULL, NULL))
CALL(request_without_path, vd_kube_request(kube, &pathless, no_answer, NULL))
CALL(request_of_another_size, vd_kube_request(kube, &sizeless, no_answer, NULL))
CALL(request_without_slash, REQUEST(.path = "api"))
CALL(request_with_a_new_line, REQUEST(.path = "/api\nx"))
CALL(request_with_a_fragment, REQUEST(.path = "/api#x"))
CALL(request_with_a_broken_method, REQUEST(.method = "GE T"))
CALL(request_with_a_second_header, REQUEST(.accept = "a\r\nb: c"))
CALL(request_with_a_second_type, REQUEST(.content_type = "a\r\nb: c"))
CALL(request_without_bytes, REQUEST(.body = NO_BYTES))
CALL(request_with_negative_timeout, REQUEST(.timeout = VD_SECONDS(-1)))
CALL(repeated_post, REQUEST(.method = "POST", .repeat = true))
CALL(repeated_patch, REQUEST(.method = "PATCH", .repeat = true))

static void no_resource(void *arg, vd_status status, const struct vd_kube_resource *resource,
			const struct vd_error *error)
{
	(void) arg, (void) status, (void) resource, (void) error;
	fail();
}

CALL(find_of_nothing, vd_kube_find(NULL, "pods", no_resource, NULL))
CALL(find_without_name, vd_kube_find(kube, NULL, no_resource, NULL))
CALL(find_without_callback, vd_kube_find(kube, "pods", NULL, NULL))

/* ---- Sources and informers ---- */

static const struct vd_kube_resource pods = { .version = "v1", .plural = "pods" };
static const struct vd_kube_resource unversioned = { .plural = "pods" };
static const struct vd_kube_resource nameless = { .version = "v1" };
static const struct vd_kube_resource nodes = { .version = "v1", .plural = "nodes", .cluster_scoped = true };
static const struct vd_kube_scope    in_ns = { .namespace_name = { "ns", 2 } };
static const struct vd_kube_scope    in_no_bytes = { .namespace_name = { NULL, 3 } };
static const struct vd_kube_scope    of_no_labels = { .label_selector = { NULL, 3 } };
static const struct vd_kube_scope    of_no_fields = { .field_selector = { NULL, 3 } };
static const struct vd_kube_scope    of_broken_labels = { .label_selector = { "a in (", 6 } };
static const struct vd_informer_handler handler = { 0 };
static const struct vd_informer_handler hasty = { .resync_period = { 1 } };

#define SOURCE(name, kube, resource, scope, prefix)                                                          \
	RESULT(name, vd_store, vd_store_open_kube(kube, resource, scope, prefix, &result, &w->error))

SOURCE(source_of_nothing, NULL, &pods, NULL, "/a/")
SOURCE(source_without_resource, kube, NULL, NULL, "/a/")
SOURCE(source_without_version, kube, &unversioned, NULL, "/a/")
SOURCE(source_without_plural, kube, &nameless, NULL, "/a/")
SOURCE(source_without_prefix, kube, &pods, NULL, NULL)
SOURCE(source_with_open_prefix, kube, &pods, NULL, "/a")
SOURCE(source_of_no_bytes, kube, &pods, &in_no_bytes, "/a/")
SOURCE(source_of_no_labels, kube, &pods, &of_no_labels, "/a/")
SOURCE(source_of_no_fields, kube, &pods, &of_no_fields, "/a/")
SOURCE(source_of_nodes_in_a_namespace, kube, &nodes, &in_ns, "/a/")
CALL(source_without_result, vd_store_open_kube(kube, &pods, NULL, "/a/", NULL, &w->error))

#define INFORMER(name, kube, resource, scope, handler)                                                       \
	RESULT(name, vd_kube_informer,                                                                       \
	       vd_kube_informer_open(kube, resource, scope, handler, &result, &w->error))

INFORMER(informer_of_nothing, NULL, "pods", NULL, &handler)
INFORMER(informer_without_resource, kube, NULL, NULL, &handler)
INFORMER(informer_of_an_empty_name, kube, "", NULL, &handler)
INFORMER(informer_without_handler, kube, "pods", NULL, NULL)
INFORMER(informer_that_resyncs_too_often, kube, "pods", NULL, &hasty)
INFORMER(informer_of_no_bytes, kube, "pods", &in_no_bytes, &handler)
INFORMER(informer_of_no_labels, kube, "pods", &of_no_labels, &handler)
INFORMER(informer_of_no_fields, kube, "pods", &of_no_fields, &handler)
INFORMER(informer_of_broken_labels, kube, "pods", &of_broken_labels, &handler)
CALL(informer_without_result, vd_kube_informer_open(kube, "pods", NULL, &handler, NULL, &w->error))
CALL(synced_wait_of_nothing, vd_kube_informer_synced_wait(NULL, FOR_EVER))

static bool no_visit(void *arg, struct vd_object *object)
{
	(void) arg, (void) object;
	fail();
	return false;
}

static vd_status nothing_of_an_informer(struct misuse_world *w)
{
	struct vd_kube		*kube = open_kube(w->env);
	struct vd_kube_informer *informer;
	bool			 is_done = false;

	assert_status(vd_kube_informer_open(kube, "pods", NULL, &handler, &informer, NULL), VD_OK);
	assert_null(vd_kube_informer_get(NULL, NS, A));
	assert_null(vd_kube_informer_get(informer, NO_BYTES, A));
	assert_null(vd_kube_informer_get(informer, NS, NO_BYTES));
	assert_int_equal(vd_kube_informer_count(NULL), 0);
	assert_int_equal(vd_kube_informer_revision(NULL), 0);
	assert_int_equal(vd_kube_informer_visit(NULL, no_visit, NULL), 0);
	assert_int_equal(vd_kube_informer_visit(informer, NULL, NULL), 0);
	vd_kube_informer_close(NULL, no_done, &is_done);
	assert_true(is_done);
	assert_null(vd_kube_informer_close_wait(NULL));
	vd_kube_informer_close_wait(informer);
	vd_kube_close_wait(kube);
	return VD_INVALID_ARGUMENT;
}

/* ---- Helpers ---- */

static vd_status no_edit(void *arg, struct vd_bytes object, struct vd_blob **ret_object)
{
	(void) arg, (void) object, (void) ret_object;
	fail();
	return VD_INTERNAL;
}

#define UPDATE(test, setting)                                                                                \
	static vd_status test(struct misuse_world *w)                                                        \
	{                                                                                                    \
		struct vd_kube	     *kube = open_kube(w->env);                                              \
		struct vd_kube_update update = VD_KUBE_UPDATE_INIT;                                          \
		vd_kube_answer_fn     done = no_answer;                                                      \
		vd_status	      status;                                                                \
		update.resource = &pods;                                                                     \
		update.namespace_name = NS;                                                                  \
		update.name = A;                                                                             \
		update.edit = no_edit;                                                                       \
		setting;                                                                                     \
		status = vd_kube_update(kube, &update, done, NULL);                                          \
		vd_kube_close_wait(kube);                                                                    \
		return status;                                                                               \
	}

UPDATE(update_of_another_size, update.size = 3)
UPDATE(update_without_resource, update.resource = NULL)
UPDATE(update_without_version, update.resource = &unversioned)
UPDATE(update_without_plural, update.resource = &nameless)
UPDATE(update_without_name, update.name = VD_BYTES_NONE)
UPDATE(update_without_name_bytes, update.name = NO_BYTES)
UPDATE(update_without_namespace_bytes, update.namespace_name = NO_BYTES)
UPDATE(update_without_edit, update.edit = NULL)
UPDATE(update_without_callback, done = NULL)
UPDATE(update_without_attempts, update.retry.attempts = 0)
UPDATE(update_with_many_attempts, update.retry.attempts = 101)
UPDATE(update_with_negative_delay, update.retry.delay = VD_SECONDS(-1))
UPDATE(update_with_small_factor, update.retry.factor = 0.5)
UPDATE(update_without_factor, update.retry.factor = NAN)
UPDATE(update_with_negative_jitter, update.retry.jitter = -1)
UPDATE(update_without_jitter, update.retry.jitter = NAN)
CALL(update_without_options, vd_kube_update(kube, NULL, no_answer, NULL))
CALL(update_of_nothing, vd_kube_update(NULL, &(struct vd_kube_update) VD_KUBE_UPDATE_INIT, no_answer, NULL))

#define APPLY(test, setting)                                                                                 \
	static vd_status test(struct misuse_world *w)                                                        \
	{                                                                                                    \
		struct vd_kube	    *kube = open_kube(w->env);                                               \
		struct vd_kube_apply apply = VD_KUBE_APPLY_INIT;                                             \
		vd_kube_answer_fn    done = no_answer;                                                       \
		vd_status	     status;                                                                 \
		apply.resource = &pods;                                                                      \
		apply.namespace_name = NS;                                                                   \
		apply.name = A;                                                                              \
		apply.configuration = vd_bytes_of("{}");                                                     \
		apply.field_manager = "me";                                                                  \
		setting;                                                                                     \
		status = vd_kube_apply(kube, &apply, done, NULL);                                            \
		vd_kube_close_wait(kube);                                                                    \
		return status;                                                                               \
	}

APPLY(apply_of_another_size, apply.size = 3)
APPLY(apply_without_resource, apply.resource = NULL)
APPLY(apply_without_version, apply.resource = &unversioned)
APPLY(apply_without_name, apply.name = VD_BYTES_NONE)
APPLY(apply_without_name_bytes, apply.name = NO_BYTES)
APPLY(apply_without_namespace_bytes, apply.namespace_name = NO_BYTES)
APPLY(apply_without_bytes, apply.configuration = NO_BYTES)
APPLY(apply_without_manager, apply.field_manager = NULL)
APPLY(apply_with_empty_manager, apply.field_manager = "")
APPLY(apply_without_callback, done = NULL)
CALL(apply_without_options, vd_kube_apply(kube, NULL, no_answer, NULL))
CALL(apply_of_nothing, vd_kube_apply(NULL, &(struct vd_kube_apply) VD_KUBE_APPLY_INIT, no_answer, NULL))

#define LOCK(name, kube, namespace_name, lock_name)                                                          \
	RESULT(name, vd_leader_lock, vd_lease_lock_new(kube, namespace_name, lock_name, &result, &w->error))

LOCK(lock_of_nothing, NULL, "ns", "a")
LOCK(lock_without_namespace, kube, NULL, "a")
LOCK(lock_in_empty_namespace, kube, "", "a")
LOCK(lock_without_name, kube, "ns", NULL)
LOCK(lock_of_empty_name, kube, "ns", "")
CALL(lock_without_result, vd_lease_lock_new(kube, "ns", "a", NULL, &w->error))

/* ---- The event recorder ---- */

#define RECORDER(name, setting)                                                                              \
	static vd_status name(struct misuse_world *w)                                                        \
	{                                                                                                    \
		struct vd_kube			*kube = open_kube(w->env);                                   \
		struct vd_event_recorder_options options = VD_EVENT_RECORDER_OPTIONS_INIT;                   \
		struct vd_event_recorder	*recorder = NULL;                                            \
		vd_status			 status;                                                     \
		options.component = "c";                                                                     \
		setting;                                                                                     \
		status = vd_event_recorder_open(kube, &options, &recorder, &w->error);                       \
		assert_null(recorder);                                                                       \
		vd_kube_close_wait(kube);                                                                    \
		return status;                                                                               \
	}

RECORDER(recorder_of_another_size, options.size = 3)
RECORDER(recorder_without_component, options.component = NULL)
RECORDER(recorder_without_queue, options.queue_max = 0)
RECORDER(recorder_without_similar, options.similar_max = 0)
RECORDER(recorder_with_many_similar, options.similar_max = 65)
RECORDER(recorder_without_interval, options.similar_interval = VD_SECONDS(0))
RECORDER(recorder_without_burst, options.burst = 0)
RECORDER(recorder_without_refill, options.refill = VD_SECONDS(0))
RECORDER(recorder_without_attempts, options.attempts = 0)
RECORDER(recorder_with_negative_delay, options.retry_delay = VD_SECONDS(-1))
RECORDER(recorder_with_negative_flush, options.flush = VD_SECONDS(-1))
RESULT(recorder_without_options, vd_event_recorder, vd_event_recorder_open(kube, NULL, &result, &w->error))
RESULT(recorder_of_nothing, vd_event_recorder,
       vd_event_recorder_open(NULL, &(struct vd_event_recorder_options) VD_EVENT_RECORDER_OPTIONS_INIT,
			      &result, &w->error))

static vd_status recorder_without_result(struct misuse_world *w)
{
	struct vd_event_recorder_options options = VD_EVENT_RECORDER_OPTIONS_INIT;
	struct vd_kube			*kube = open_kube(w->env);
	vd_status			 status;

	options.component = "c";
	status = vd_event_recorder_open(kube, &options, NULL, &w->error);
	vd_kube_close_wait(kube);
	return status;
}

/* Returns VD_INVALID_ARGUMENT if all calls did. */
static vd_status records(struct misuse_world *w)
{
	struct vd_event_recorder_options options = VD_EVENT_RECORDER_OPTIONS_INIT;
	struct vd_event_recorder_counts	 counts = { 0 };
	struct vd_kube			*kube = open_kube(w->env);
	struct vd_event_object		 object = { .kind = vd_bytes_of("Pod"), .name = A }, broken[4];
	struct vd_event_recorder	*recorder;
	bool				 is_done = false;

	options.component = "c";
	assert_status(vd_event_recorder_open(kube, &options, &recorder, NULL), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(broken); i++)
		broken[i] = object;
	broken[0].kind = VD_BYTES_NONE;
	broken[1].name = VD_BYTES_NONE;
	broken[2].name = NO_BYTES;
	broken[3].uid = NO_BYTES;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(broken); i++)
		assert_status(vd_event_record(recorder, &broken[i], VD_EVENT_NORMAL, "Reason", "x"),
			      VD_INVALID_ARGUMENT);
	assert_status(vd_event_record(NULL, &object, VD_EVENT_NORMAL, "Reason", "x"), VD_INVALID_ARGUMENT);
	assert_status(vd_event_record(recorder, NULL, VD_EVENT_NORMAL, "Reason", "x"), VD_INVALID_ARGUMENT);
	assert_status(vd_event_record(recorder, &object, (enum vd_event_type) 7, "Reason", "x"),
		      VD_INVALID_ARGUMENT);
	assert_status(vd_event_record(recorder, &object, VD_EVENT_NORMAL, NULL, "x"), VD_INVALID_ARGUMENT);
	assert_status(vd_event_record(recorder, &object, VD_EVENT_NORMAL, "", "x"), VD_INVALID_ARGUMENT);
	assert_status(vd_event_record(recorder, &object, VD_EVENT_NORMAL, "Reason", NULL),
		      VD_INVALID_ARGUMENT);
	vd_event_recorder_counts(recorder, NULL);
	vd_event_recorder_counts(NULL, &counts);
	vd_event_recorder_counts(recorder, &counts);
	assert_int_equal(counts.written + counts.filtered + counts.dropped + counts.rejected + counts.failed,
			 0);
	vd_event_recorder_close(NULL, no_done, &is_done);
	assert_true(is_done);
	assert_null(vd_event_recorder_close_wait(NULL));
	vd_event_recorder_close_wait(recorder);
	vd_kube_close_wait(kube);
	return VD_INVALID_ARGUMENT;
}

/* ---- Waiting where it is not allowed ---- */

struct waiting {
	struct vd_kube_informer *informer;
	struct vdi_wait		 done;
	vd_status		 status;
};

static void wait_for_it(void *arg)
{
	struct waiting *waiting = arg;

	waiting->status = vd_kube_informer_synced_wait(waiting->informer, FOR_EVER);
	vdi_wait_signal(&waiting->done);
}

static vd_status synced_wait_in_a_handler(struct misuse_world *w)
{
	struct vd_kube	       *kube = open_kube(w->env);
	struct waiting		waiting = { 0 };
	struct vd_actor_options options = { .name = "handler of mine", .run = wait_for_it, .arg = &waiting };
	struct vd_actor	       *actor;

	assert_status(vd_kube_informer_open(kube, "pods", NULL, &handler, &waiting.informer, NULL), VD_OK);
	vdi_wait_init(&waiting.done, w->env);
	assert_status(vd_actor_new(w->env, &options, &actor), VD_OK);
	vd_actor_wake(actor);
	vdi_wait_wait(&waiting.done);
	vdi_wait_fini(&waiting.done);
	vdi_wait_for_actor_close(w->env, actor);
	vd_kube_informer_close_wait(waiting.informer);
	vd_kube_close_wait(kube);
	return waiting.status;
}

static struct {
	struct misuse_world	  w;
	struct vd_kube		 *kube;
	struct vd_kube_informer	 *informer;
	struct vd_event_recorder *recorder;
} world;

static void close_kube(void *arg)
{
	(void) arg;
	vd_kube_close_wait(world.kube);
}

static void close_informer(void *arg)
{
	(void) arg;
	vd_kube_informer_close_wait(world.informer);
}

static void close_recorder(void *arg)
{
	(void) arg;
	vd_event_recorder_close_wait(world.recorder);
}

static void open_all(void)
{
	struct vd_event_recorder_options options = VD_EVENT_RECORDER_OPTIONS_INIT;

	misuse_world_init(&world.w);
	world.kube = open_kube(world.w.env);
	options.component = "c";
	assert_status(vd_kube_informer_open(world.kube, "pods", NULL, &handler, &world.informer, NULL),
		      VD_OK);
	assert_status(vd_event_recorder_open(world.kube, &options, &world.recorder, NULL), VD_OK);
}

static void in_a_handler(void (*close)(void *arg))
{
	struct vd_actor_options options = { .name = "handler of mine", .run = close };
	struct vd_actor	       *actor;

	open_all();
	assert_status(vd_actor_new(world.w.env, &options, &actor), VD_OK);
	vd_actor_wake(actor);
	for (;;)
		(void) pause();
}

static void kube_closed_in_a_handler(void)
{
	in_a_handler(close_kube);
}

static void informer_closed_in_a_handler(void)
{
	in_a_handler(close_informer);
}

static void recorder_closed_in_a_handler(void)
{
	in_a_handler(close_recorder);
}

static void kube_before_its_informer(void)
{
	open_all();
	vd_kube_close(world.kube, NULL, NULL);
}

static void kube_before_its_recorder(void)
{
	open_all();
	vd_kube_informer_close_wait(world.informer);
	vd_kube_close(world.kube, NULL, NULL);
}

static void kube_before_its_lock(void)
{
	struct vd_leader_lock *lock;

	open_all();
	vd_kube_informer_close_wait(world.informer);
	vd_event_recorder_close_wait(world.recorder);
	assert_status(vd_lease_lock_new(world.kube, "ns", "a", &lock, NULL), VD_OK);
	vd_kube_close(world.kube, NULL, NULL);
}

static void closes_stop_the_program(void **state)
{
	(void) state;
	expect_panic(kube_closed_in_a_handler, "vedette: misuse: vd_kube_close_wait: this thread runs the "
					       "handler of an actor (handler of mine)");
	expect_panic(informer_closed_in_a_handler, "vd_kube_informer_close_wait: this thread runs");
	expect_panic(recorder_closed_in_a_handler, "vd_event_recorder_close_wait: this thread runs");
	expect_panic(kube_before_its_informer, "kube informer pods is open");
	expect_panic(kube_before_its_recorder, "event recorder of c is open");
	expect_panic(kube_before_its_lock, "lock on the Lease a is open");
}

/* ---- After the end has begun ---- */

static struct vd_env *sim_env;

static struct vd_kube *open_simulated(void)
{
	static struct kube_script script;
	struct vd_kube_options	  options = VD_KUBE_OPTIONS_INIT;
	struct vd_kube		 *kube;

	assert_status(vdi_env_new_sim(3, NULL, NULL, &sim_env), VD_OK);
	script = (struct kube_script) { .env = sim_env };
	kube_script_use(&script);
	options.server = "http://127.0.0.1:1";
	assert_status(vdi_kube_open_over(sim_env, &options, kube_script_transport_new, &kube, NULL), VD_OK);
	return kube;
}

static void calls_after_the_clients_close(void **state)
{
	struct vd_kube		*kube = open_simulated();
	struct vd_kube_informer *informer = NULL;
	struct vd_store		*store = NULL;
	bool			 is_closed = false;

	(void) state;
	vd_kube_close(kube, no_done, &is_closed);
	assert_false(is_closed);
	assert_status(vd_kube_request(kube, &a_call, no_answer, NULL), VD_CLOSED);
	assert_status(vd_kube_find(kube, "pods", no_resource, NULL), VD_CLOSED);
	assert_status(vd_store_open_kube(kube, &pods, NULL, "/a/", &store, NULL), VD_CLOSED);
	assert_status(vd_kube_informer_open(kube, "pods", NULL, &handler, &informer, NULL), VD_CLOSED);
	assert_null(store);
	assert_null(informer);
	vdi_sim_run_until_idle(sim_env);
	assert_true(is_closed);
	vd_env_free(sim_env);
}

static void calls_after_the_informers_close(void **state)
{
	struct vd_kube		*kube = open_simulated();
	struct vd_kube_informer *informer = NULL;
	bool			 is_closed = false;

	(void) state;
	assert_status(vd_kube_informer_open(kube, "pods", NULL, &handler, &informer, NULL), VD_OK);
	vd_kube_informer_close(informer, no_done, &is_closed);
	assert_status(vd_kube_informer_synced_wait(informer, FOR_EVER), VD_CLOSED);
	assert_null(vd_kube_informer_get(informer, NS, A));
	assert_int_equal(vd_kube_informer_visit(informer, no_visit, NULL), 0);
	vdi_sim_run_until_idle(sim_env);
	assert_true(is_closed);
	vd_kube_close_wait(kube);
	vd_env_free(sim_env);
}

static void an_event_after_the_recorders_close(void **state)
{
	struct vd_event_recorder_options options = VD_EVENT_RECORDER_OPTIONS_INIT;
	struct vd_event_object		 object = { .kind = vd_bytes_of("Pod"), .name = A };
	struct vd_kube			*kube = open_simulated();
	struct vd_event_recorder	*recorder;
	bool				 is_closed = false;

	(void) state;
	options.component = "c";
	assert_status(vd_event_recorder_open(kube, &options, &recorder, NULL), VD_OK);
	vd_event_recorder_close(recorder, no_done, &is_closed);
	assert_status(vd_event_record(recorder, &object, VD_EVENT_NORMAL, "Reason", "x"), VD_CLOSED);
	vdi_sim_run_until_idle(sim_env);
	assert_true(is_closed);
	vd_kube_close_wait(kube);
	vd_env_free(sim_env);
}

static void kube_closed_twice(void)
{
	struct vd_kube *kube = open_simulated();

	vd_kube_close(kube, NULL, NULL);
	vd_kube_close(kube, NULL, NULL);
}

static void informer_closed_twice(void)
{
	struct vd_kube		*kube = open_simulated();
	struct vd_kube_informer *informer;

	assert_status(vd_kube_informer_open(kube, "pods", NULL, &handler, &informer, NULL), VD_OK);
	vd_kube_informer_close(informer, NULL, NULL);
	vd_kube_informer_close(informer, NULL, NULL);
}

static void recorder_closed_twice(void)
{
	struct vd_event_recorder_options options = VD_EVENT_RECORDER_OPTIONS_INIT;
	struct vd_kube			*kube = open_simulated();
	struct vd_event_recorder	*recorder;

	options.component = "c";
	assert_status(vd_event_recorder_open(kube, &options, &recorder, NULL), VD_OK);
	vd_event_recorder_close(recorder, NULL, NULL);
	vd_event_recorder_close(recorder, NULL, NULL);
}

static void a_second_close_stops_the_program(void **state)
{
	(void) state;
	expect_panic(kube_closed_twice, "vd_kube_close: the client is closing already");
	expect_panic(informer_closed_twice,
		     "vd_kube_informer_close: the informer of pods is closing already");
	expect_panic(recorder_closed_twice, "vd_event_recorder_close: the recorder of c is closing already");
}

static const struct misuse misuses[] = {
	MISUSE(open_of_another_size, VD_INVALID_ARGUMENT, "options of 3 bytes"),
	MISUSE(open_with_zeroed_options, VD_INVALID_ARGUMENT, "request_timeout is 0 ns"),
	MISUSE(open_without_timeout, VD_INVALID_ARGUMENT, "request_timeout is 0 ns"),
	MISUSE(open_with_short_silence, VD_INVALID_ARGUMENT, "silence_max"),
	MISUSE(open_without_scheme, VD_INVALID_ARGUMENT, "must be a URL"),
	MISUSE(open_without_result, VD_INVALID_ARGUMENT, "ret_kube is NULL"),
	MISUSE(open_without_env, VD_INVALID_ARGUMENT, "env is NULL"),
	MISUSE(open_without_options, VD_INVALID_ARGUMENT, "options is NULL"),
	MISUSE(nothing_of_the_client, VD_INVALID_ARGUMENT, NULL),
	MISUSE(request_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(request_without_call, VD_INVALID_ARGUMENT, NULL),
	MISUSE(request_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(request_without_path, VD_INVALID_ARGUMENT, NULL),
	MISUSE(request_of_another_size, VD_INVALID_ARGUMENT, NULL),
	MISUSE(request_without_slash, VD_INVALID_ARGUMENT, NULL),
	MISUSE(request_with_a_new_line, VD_INVALID_ARGUMENT, NULL),
	MISUSE(request_with_a_fragment, VD_INVALID_ARGUMENT, NULL),
	MISUSE(request_with_a_broken_method, VD_INVALID_ARGUMENT, NULL),
	MISUSE(request_with_a_second_header, VD_INVALID_ARGUMENT, NULL),
	MISUSE(request_with_a_second_type, VD_INVALID_ARGUMENT, NULL),
	MISUSE(request_without_bytes, VD_INVALID_ARGUMENT, NULL),
	MISUSE(request_with_negative_timeout, VD_INVALID_ARGUMENT, NULL),
	MISUSE(repeated_post, VD_INVALID_ARGUMENT, NULL),
	MISUSE(repeated_patch, VD_INVALID_ARGUMENT, NULL),
	MISUSE(find_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(find_without_name, VD_INVALID_ARGUMENT, NULL),
	MISUSE(find_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(source_of_nothing, VD_INVALID_ARGUMENT, "kube is NULL"),
	MISUSE(source_without_resource, VD_INVALID_ARGUMENT, "resource is NULL"),
	MISUSE(source_without_version, VD_INVALID_ARGUMENT, "resource.version"),
	MISUSE(source_without_plural, VD_INVALID_ARGUMENT, "resource.plural"),
	MISUSE(source_without_prefix, VD_INVALID_ARGUMENT, "key_prefix is NULL"),
	MISUSE(source_with_open_prefix, VD_INVALID_ARGUMENT, "key_prefix"),
	MISUSE(source_of_no_bytes, VD_INVALID_ARGUMENT, "scope->namespace_name.data is NULL"),
	MISUSE(source_of_no_labels, VD_INVALID_ARGUMENT, "label_selector.data is NULL"),
	MISUSE(source_of_no_fields, VD_INVALID_ARGUMENT, "field_selector.data is NULL"),
	MISUSE(source_of_nodes_in_a_namespace, VD_INVALID_ARGUMENT, "scope.namespace_name"),
	MISUSE(source_without_result, VD_INVALID_ARGUMENT, "ret_store is NULL"),
	MISUSE(informer_of_nothing, VD_INVALID_ARGUMENT, "kube is NULL"),
	MISUSE(informer_without_resource, VD_INVALID_ARGUMENT, "resource is NULL"),
	MISUSE(informer_of_an_empty_name, VD_INVALID_ARGUMENT, "not the name of a resource"),
	MISUSE(informer_without_handler, VD_INVALID_ARGUMENT, "handler is NULL"),
	MISUSE(informer_that_resyncs_too_often, VD_INVALID_ARGUMENT, "resync_period"),
	MISUSE(informer_of_no_bytes, VD_INVALID_ARGUMENT, "namespace_name.data is NULL"),
	MISUSE(informer_of_no_labels, VD_INVALID_ARGUMENT, "label_selector.data is NULL"),
	MISUSE(informer_of_no_fields, VD_INVALID_ARGUMENT, "field_selector.data is NULL"),
	MISUSE(informer_of_broken_labels, VD_BAD_REQUEST, ""),
	MISUSE(informer_without_result, VD_INVALID_ARGUMENT, "ret_informer is NULL"),
	MISUSE(synced_wait_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(nothing_of_an_informer, VD_INVALID_ARGUMENT, NULL),
	MISUSE(update_of_another_size, VD_INVALID_ARGUMENT, NULL),
	MISUSE(update_without_resource, VD_INVALID_ARGUMENT, NULL),
	MISUSE(update_without_version, VD_INVALID_ARGUMENT, NULL),
	MISUSE(update_without_plural, VD_INVALID_ARGUMENT, NULL),
	MISUSE(update_without_name, VD_INVALID_ARGUMENT, NULL),
	MISUSE(update_without_name_bytes, VD_INVALID_ARGUMENT, NULL),
	MISUSE(update_without_namespace_bytes, VD_INVALID_ARGUMENT, NULL),
	MISUSE(update_without_edit, VD_INVALID_ARGUMENT, NULL),
	MISUSE(update_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(update_without_attempts, VD_INVALID_ARGUMENT, NULL),
	MISUSE(update_with_many_attempts, VD_INVALID_ARGUMENT, NULL),
	MISUSE(update_with_negative_delay, VD_INVALID_ARGUMENT, NULL),
	MISUSE(update_with_small_factor, VD_INVALID_ARGUMENT, NULL),
	MISUSE(update_without_factor, VD_INVALID_ARGUMENT, NULL),
	MISUSE(update_with_negative_jitter, VD_INVALID_ARGUMENT, NULL),
	MISUSE(update_without_jitter, VD_INVALID_ARGUMENT, NULL),
	MISUSE(update_without_options, VD_INVALID_ARGUMENT, NULL),
	MISUSE(update_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(apply_of_another_size, VD_INVALID_ARGUMENT, NULL),
	MISUSE(apply_without_resource, VD_INVALID_ARGUMENT, NULL),
	MISUSE(apply_without_version, VD_INVALID_ARGUMENT, NULL),
	MISUSE(apply_without_name, VD_INVALID_ARGUMENT, NULL),
	MISUSE(apply_without_name_bytes, VD_INVALID_ARGUMENT, NULL),
	MISUSE(apply_without_namespace_bytes, VD_INVALID_ARGUMENT, NULL),
	MISUSE(apply_without_bytes, VD_INVALID_ARGUMENT, NULL),
	MISUSE(apply_without_manager, VD_INVALID_ARGUMENT, NULL),
	MISUSE(apply_with_empty_manager, VD_INVALID_ARGUMENT, NULL),
	MISUSE(apply_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(apply_without_options, VD_INVALID_ARGUMENT, NULL),
	MISUSE(apply_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(lock_of_nothing, VD_INVALID_ARGUMENT, "kube is NULL"),
	MISUSE(lock_without_namespace, VD_INVALID_ARGUMENT, "namespace_name is NULL"),
	MISUSE(lock_in_empty_namespace, VD_INVALID_ARGUMENT, "needs a namespace"),
	MISUSE(lock_without_name, VD_INVALID_ARGUMENT, "name is NULL"),
	MISUSE(lock_of_empty_name, VD_INVALID_ARGUMENT, "needs a namespace"),
	MISUSE(lock_without_result, VD_INVALID_ARGUMENT, "ret_lock is NULL"),
	MISUSE(recorder_of_another_size, VD_INVALID_ARGUMENT, "options of 3 bytes"),
	MISUSE(recorder_without_component, VD_INVALID_ARGUMENT, "component is empty"),
	MISUSE(recorder_without_queue, VD_INVALID_ARGUMENT, "queue_max"),
	MISUSE(recorder_without_similar, VD_INVALID_ARGUMENT, "similar_max"),
	MISUSE(recorder_with_many_similar, VD_INVALID_ARGUMENT, "similar_max"),
	MISUSE(recorder_without_interval, VD_INVALID_ARGUMENT, "similar_interval"),
	MISUSE(recorder_without_burst, VD_INVALID_ARGUMENT, "burst"),
	MISUSE(recorder_without_refill, VD_INVALID_ARGUMENT, "refill"),
	MISUSE(recorder_without_attempts, VD_INVALID_ARGUMENT, "attempts"),
	MISUSE(recorder_with_negative_delay, VD_INVALID_ARGUMENT, "retry_delay"),
	MISUSE(recorder_with_negative_flush, VD_INVALID_ARGUMENT, "flush"),
	MISUSE(recorder_without_options, VD_INVALID_ARGUMENT, "options is NULL"),
	MISUSE(recorder_of_nothing, VD_INVALID_ARGUMENT, "kube is NULL"),
	MISUSE(recorder_without_result, VD_INVALID_ARGUMENT, "ret_recorder is NULL"),
	MISUSE(records, VD_INVALID_ARGUMENT, NULL),
	MISUSE(synced_wait_in_a_handler, VD_INVALID_ARGUMENT, NULL),
};

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closes_stop_the_program),
		cmocka_unit_test(calls_after_the_clients_close),
		cmocka_unit_test(calls_after_the_informers_close),
		cmocka_unit_test(an_event_after_the_recorders_close),
		cmocka_unit_test(a_second_close_stops_the_program),
	};

	return misuse_run("misuse_kube", misuses, VDI_ARRAY_SIZE(misuses)) +
	       cmocka_run_group_tests(tests, NULL, NULL);
}
