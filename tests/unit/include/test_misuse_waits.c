/* Calls that wait, on a thread that would have to serve them: each is refused instead of hanging. The env has
 * one thread. */
#include <stdatomic.h>
#include <vedette/poller.h>

#include "misuse.h"

#include "actor_sim.h"
#include "expect_panic.h"
#include "wait.h"

#define NS vd_bytes_of("ns")
#define A vd_bytes_of("a")
#define FOR_EVER VD_SECONDS(-1)

/* ---- A handler that waits ---- */

struct waiting {
	struct misuse_world *w;
	vd_status (*wait)(struct misuse_world *w);
	struct vd_actor *actor;
	struct vdi_wait	 done;
	vd_status	 status;
};

static void run_waiting(void *arg)
{
	struct waiting *waiting = arg;

	waiting->status = waiting->wait(waiting->w);
	vdi_wait_signal(&waiting->done);
}

/* In the handler of an actor: of the env's pool (or, blocking, of a thread of its own), or of a poller that
 * this thread runs. */
static vd_status in_handler(struct misuse_world	     *w, vd_status (*wait)(struct misuse_world *w),
			    const struct vd_executor *executor, bool blocking)
{
	struct waiting		waiting = { .w = w, .wait = wait };
	struct vd_actor_options options = {
		.name = "handler of mine", .run = run_waiting, .arg = &waiting, .blocking = blocking
	};

	vdi_wait_init(&waiting.done, w->env);
	if (executor)
		assert_status(vd_executor_actor_new(executor, &options, &waiting.actor), VD_OK);
	else
		assert_status(vd_actor_new(w->env, &options, &waiting.actor), VD_OK);
	vd_actor_wake(waiting.actor);
	if (executor)
		vd_poller_run((struct vd_poller *) executor->executor);
	vdi_wait_wait(&waiting.done);
	vdi_wait_fini(&waiting.done);
	if (executor) {
		vd_actor_close(waiting.actor, NULL, NULL);
		vd_poller_run((struct vd_poller *) executor->executor);
	} else {
		vdi_wait_for_actor_close(w->env, waiting.actor);
	}
	return waiting.status;
}

static vd_status store_get(struct misuse_world *w)
{
	struct vd_kv *kv;

	return vd_store_get_wait(w->store, A, &kv, &w->error);
}

static vd_status store_put(struct misuse_world *w)
{
	return vd_store_put_wait(w->store, A, A, NULL, &w->error);
}

static vd_status store_delete(struct misuse_world *w)
{
	return vd_store_delete_wait(w->store, A, VD_BYTES_NONE, NULL, NULL, &w->error);
}

static vd_status cacher_get(struct misuse_world *w)
{
	return vd_cacher_get_wait(w->pods, NS, A, VD_REVISION_UNSET, NULL, &w->error);
}

static vd_status cacher_put(struct misuse_world *w)
{
	return vd_cacher_put_wait(w->pods, NS, A,
				  vd_bytes_of("{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\"},\"x\":1}"),
				  NULL, &w->error);
}

static vd_status cacher_delete(struct misuse_world *w)
{
	return vd_cacher_delete_wait(w->pods, NS, A, NULL, &w->error);
}

static vd_status cacher_list(struct misuse_world *w)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct vd_list	      *list = NULL;
	vd_status	       status = vd_cacher_list_wait(w->pods, &options, &list, &w->error);

	vd_list_free(list);
	return status;
}

static vd_status cacher_ready(struct misuse_world *w)
{
	return vd_cacher_ready_wait(w->pods, FOR_EVER, &w->error);
}

static vd_status watcher_wait(struct misuse_world *w)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct vd_watcher      *watcher;
	vd_status		status;

	assert_status(vd_cacher_watch(w->pods, &options, NULL, &watcher, NULL), VD_OK);
	status = vd_watcher_wait(watcher, FOR_EVER);
	vd_watcher_close(watcher, NULL, NULL);
	return status;
}

static vd_status informer_synced(struct misuse_world *w)
{
	struct vd_informer_options options = VD_INFORMER_OPTIONS_INIT;
	struct vd_informer	  *informer;
	vd_status		   status;

	assert_status(vd_informer_open(w->pods, &options, &informer, NULL), VD_OK);
	status = vd_informer_synced_wait(informer, FOR_EVER);
	vd_informer_close(informer, NULL, NULL);
	return status;
}

#define IN_HANDLERS(name)                                                                                    \
	static vd_status name##_in_the_pool(struct misuse_world *w)                                          \
	{                                                                                                    \
		return in_handler(w, name, NULL, false);                                                     \
	}                                                                                                    \
	static vd_status name##_in_a_poller(struct misuse_world *w)                                          \
	{                                                                                                    \
		struct vd_poller *poller;                                                                    \
		vd_status	  status;                                                                    \
		assert_status(vd_poller_new(w->env, &poller), VD_OK);                                        \
		status = in_handler(w, name, vd_poller_executor(poller), false);                             \
		vd_poller_free(poller);                                                                      \
		return status;                                                                               \
	}

IN_HANDLERS(store_get)
IN_HANDLERS(store_put)
IN_HANDLERS(store_delete)
IN_HANDLERS(cacher_get)
IN_HANDLERS(cacher_put)
IN_HANDLERS(cacher_delete)
IN_HANDLERS(cacher_list)
IN_HANDLERS(cacher_ready)
IN_HANDLERS(watcher_wait)
IN_HANDLERS(informer_synced)

/* ---- Callbacks ---- */

struct answered {
	struct misuse_world *w;
	struct vdi_wait	     done;
	vd_status	     status;
};

/* On the store's own thread. */
static void put_again(void *arg, vd_status status, const struct vd_txn_result *result,
		      const struct vd_error *error)
{
	struct answered *answered = arg;

	(void) result, (void) error;
	assert_status(status, VD_OK);
	answered->status = store_put(answered->w);
	vdi_wait_signal(&answered->done);
}

static vd_status put_in_a_callback_of_the_store(struct misuse_world *w)
{
	struct vd_op	      op = { .kind = VD_OP_PUT, .key = A, .value = A };
	struct vd_txn_request request = { .success = &op, .success_count = 1 };
	struct answered	      answered = { .w = w };

	vdi_wait_init(&answered.done, w->env);
	assert_status(vd_store_txn(w->store, &request, put_again, &answered), VD_OK);
	vdi_wait_wait(&answered.done);
	vdi_wait_fini(&answered.done);
	return answered.status;
}

static size_t get_in_deliver(void *arg, const struct vd_watch_event *events, size_t count)
{
	struct answered *answered = arg;

	(void) events;
	answered->status = cacher_get(answered->w);
	vdi_wait_signal(&answered->done);
	return count;
}

static void no_end(void *arg, vd_status reason)
{
	(void) arg, (void) reason;
}

/* The cacher's own actor calls. */
static vd_status get_in_a_sink(struct misuse_world *w)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct answered		answered = { .w = w };
	struct vd_watch_sink	sink = { .deliver = get_in_deliver, .ended = no_end, .arg = &answered };
	struct vd_watcher      *watcher;

	vdi_wait_init(&answered.done, w->env);
	assert_status(vd_cacher_watch(w->pods, &options, &sink, &watcher, NULL), VD_OK);
	vdi_wait_wait(&answered.done);
	vdi_wait_fini(&answered.done);
	vd_watcher_close(watcher, NULL, NULL);
	return answered.status;
}

static void put_in_add(void *arg, struct vd_object *object, bool initial)
{
	struct answered *answered = arg;

	(void) object, (void) initial;
	answered->status = cacher_put(answered->w);
	vdi_wait_signal(&answered->done);
}

static vd_status put_in_an_informer(struct misuse_world *w)
{
	struct answered		   answered = { .w = w };
	struct vd_informer_handler handler = { .add = put_in_add, .arg = &answered };
	struct vd_informer	  *informer;

	vdi_wait_init(&answered.done, w->env);
	assert_status(vd_informer_new(w->pods, VD_BYTES_NONE, VD_BYTES_NONE, VD_BYTES_NONE, &handler,
				      &informer, NULL),
		      VD_OK);
	vdi_wait_wait(&answered.done);
	vdi_wait_fini(&answered.done);
	vd_informer_close_wait(informer);
	return answered.status;
}

/* Outside vd_poller_run, but nobody else runs the poller. */
static vd_status informer_synced_on_the_thread_of_its_poller(struct misuse_world *w)
{
	struct vd_informer_options options = VD_INFORMER_OPTIONS_INIT;
	struct vd_informer	  *informer;
	struct vd_poller	  *poller;
	struct vdi_wait		   closed;
	vd_status		   status;

	assert_status(vd_poller_new(w->env, &poller), VD_OK);
	options.executor = vd_poller_executor(poller);
	assert_status(vd_informer_open(w->pods, &options, &informer, NULL), VD_OK);
	status = vd_informer_synced_wait(informer, FOR_EVER);
	vdi_wait_init(&closed, w->env);
	vd_informer_close(informer, vdi_wait_signal_arg, &closed);
	while (!vdi_wait_is_done(&closed))
		vd_poller_run(poller);
	vdi_wait_fini(&closed);
	vd_poller_free(poller);
	return status;
}

static vd_status get_in_a_simulation(struct misuse_world *w)
{
	struct misuse_world	sim = { 0 };
	struct waiting		waiting = { .w = &sim, .wait = store_put };
	struct vd_actor_options options = { .name = "handler of mine", .run = run_waiting, .arg = &waiting };

	assert_status(vdi_env_new_sim(3, NULL, NULL, &sim.env), VD_OK);
	assert_status(vd_store_open_mvcc(sim.env, NULL, &sim.store, NULL), VD_OK);
	vdi_wait_init(&waiting.done, sim.env);
	assert_status(vd_actor_new(sim.env, &options, &waiting.actor), VD_OK);
	vd_actor_wake(waiting.actor);
	vdi_wait_wait(&waiting.done);
	vdi_wait_fini(&waiting.done);
	vd_actor_close(waiting.actor, NULL, NULL);
	vd_store_close_wait(sim.store);
	vd_env_free(sim.env);
	w->error = sim.error;
	return waiting.status;
}

#define ALL(name, message)                                                                                   \
	MISUSE(name##_in_the_pool, VD_INVALID_ARGUMENT, message),                                            \
		MISUSE(name##_in_a_poller, VD_INVALID_ARGUMENT, message)

static const struct misuse misuses[] = {
	ALL(store_get, "vd_store_get_wait: this thread runs the handler of an actor (handler of mine)"),
	ALL(store_put, "vd_store_put_wait: this thread"),
	ALL(store_delete, "vd_store_delete_wait: this thread"),
	ALL(cacher_get, "vd_cacher_get_wait: this thread"),
	ALL(cacher_put, "vd_cacher_put_wait: this thread"),
	ALL(cacher_delete, "vd_cacher_delete_wait: this thread"),
	ALL(cacher_list, "vd_cacher_list_wait: this thread"),
	ALL(cacher_ready, "vd_cacher_ready_wait: this thread"),
	ALL(watcher_wait, NULL),
	ALL(informer_synced, NULL),
	MISUSE(put_in_a_callback_of_the_store, VD_INVALID_ARGUMENT, "vd_store_put_wait: this thread"),
	MISUSE(get_in_a_sink, VD_INVALID_ARGUMENT, "vd_cacher_get_wait: this thread"),
	MISUSE(put_in_an_informer, VD_INVALID_ARGUMENT, "vd_cacher_put_wait: this thread"),
	MISUSE(informer_synced_on_the_thread_of_its_poller, VD_INVALID_ARGUMENT, NULL),
	MISUSE(get_in_a_simulation, VD_INVALID_ARGUMENT, "vd_store_put_wait: this thread"),
};

/* ---- Those that return no status ---- */

static vd_status close_store(struct misuse_world *w)
{
	vd_store_close_wait(w->store);
	return VD_OK;
}

static vd_status close_cacher(struct misuse_world *w)
{
	vd_cacher_close_wait(w->pods);
	return VD_OK;
}

static vd_status free_env(struct misuse_world *w)
{
	vd_env_free(w->env);
	return VD_OK;
}

static void run_in_the_pool(vd_status (*wait)(struct misuse_world *w))
{
	static struct misuse_world w;

	misuse_world_init(&w);
	(void) in_handler(&w, wait, NULL, false);
}

static void store_closed_in_a_handler(void)
{
	run_in_the_pool(close_store);
}

static void cacher_closed_in_a_handler(void)
{
	run_in_the_pool(close_cacher);
}

static void env_freed_in_a_handler(void)
{
	run_in_the_pool(free_env);
}

static size_t take_all(void *arg, const struct vd_watch_event *events, size_t count)
{
	(void) arg, (void) events;
	return count;
}

static void cacher_closed_on_the_thread_of_a_poller(void)
{
	static struct misuse_world w;
	struct vd_watch_options	   options = VD_WATCH_OPTIONS_INIT;
	struct vd_watch_sink	   sink = { .deliver = take_all, .ended = no_end };
	struct vd_watcher	  *watcher;
	struct vd_poller	  *poller;

	misuse_world_init(&w);
	assert_status(vd_poller_new(w.env, &poller), VD_OK);
	sink.executor = vd_poller_executor(poller);
	assert_status(vd_cacher_watch(w.pods, &options, &sink, &watcher, NULL), VD_OK);
	vd_cacher_close_wait(w.pods);
}

static void informer_closed_on_the_thread_of_its_poller(void)
{
	static struct misuse_world w;
	struct vd_informer_options options = VD_INFORMER_OPTIONS_INIT;
	struct vd_informer	  *informer;
	struct vd_poller	  *poller;

	misuse_world_init(&w);
	assert_status(vd_poller_new(w.env, &poller), VD_OK);
	options.executor = vd_poller_executor(poller);
	assert_status(vd_informer_open(w.pods, &options, &informer, NULL), VD_OK);
	vd_informer_close_wait(informer);
}

static void closes_stop_the_program(void **state)
{
	(void) state;
	expect_panic(store_closed_in_a_handler, "vedette: misuse: vd_store_close_wait: this thread runs the "
						"handler of an actor (handler of mine)");
	expect_panic(cacher_closed_in_a_handler, "vd_cacher_close_wait: this thread");
	expect_panic(env_freed_in_a_handler, "vd_env_free: this thread");
	expect_panic(cacher_closed_on_the_thread_of_a_poller,
		     "vd_cacher_close_wait: this thread runs the poller of watchers of cacher pods");
	expect_panic(informer_closed_on_the_thread_of_its_poller,
		     "vd_informer_close_wait: this thread runs the poller");
}

/* It has a thread of its own, which nobody waits for. */
static void a_blocking_actor_may_wait(void **state)
{
	vd_status (*const waits[])(struct misuse_world *) = { store_put,    store_delete,    cacher_get,
							      cacher_put,   cacher_list,     cacher_ready,
							      watcher_wait, informer_synced, cacher_delete };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(waits); i++) {
		struct misuse_world w;

		misuse_world_init(&w);
		assert_status(in_handler(&w, waits[i], NULL, true), VD_OK);
		misuse_world_fini(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_blocking_actor_may_wait),
		cmocka_unit_test(closes_stop_the_program),
	};

	return misuse_run("misuse_waits", misuses, VDI_ARRAY_SIZE(misuses)) +
	       cmocka_run_group_tests(tests, NULL, NULL);
}
