/* Calls of work queues and leader elections outside their contract: each is refused, and harms nothing. */
#include <math.h>
#include <unistd.h>
#include <vedette/leader_election.h>
#include <vedette/work_queue.h>

#include "misuse.h"

#include "actor_sim.h"
#include "expect_panic.h"
#include "wait.h"

#define A vd_bytes_of("a")
#define NO_BYTES ((struct vd_bytes) { NULL, 3 })
#define FOR_EVER VD_SECONDS(-1)

static struct vd_work_queue *new_queue(const struct vd_env *env)
{
	struct vd_work_queue *queue = NULL;

	assert_status(vd_work_queue_new(env, NULL, &queue, NULL), VD_OK);
	return queue;
}

/* queue: an open queue with the key "a". */
#define CALL(name, call)                                                                                     \
	static vd_status name(struct misuse_world *w)                                                        \
	{                                                                                                    \
		struct vd_work_queue *queue = new_queue(w->env);                                             \
		vd_status	      status;                                                                \
		assert_status(vd_work_queue_add(queue, A), VD_OK);                                           \
		status = call;                                                                               \
		vd_work_queue_close_wait(queue);                                                             \
		return status;                                                                               \
	}

/* ---- Queues ---- */

#define QUEUE(name, setting)                                                                                 \
	static vd_status name(struct misuse_world *w)                                                        \
	{                                                                                                    \
		struct vd_work_queue_options options = VD_WORK_QUEUE_OPTIONS_INIT;                           \
		struct vd_work_queue	    *queue = NULL;                                                   \
		vd_status		     status;                                                         \
		setting;                                                                                     \
		status = vd_work_queue_new(w->env, &options, &queue, &w->error);                             \
		assert_null(queue);                                                                          \
		return status;                                                                               \
	}

QUEUE(queue_of_another_size, options.size = 3)
QUEUE(queue_without_items, options.items_max = 0)
QUEUE(queue_with_too_many_items, options.items_max = SIZE_MAX)
QUEUE(queue_with_negative_base, options.limits.failure_base = VD_SECONDS(-1))
QUEUE(queue_with_negative_maximum, options.limits.delay_max = VD_SECONDS(-1))
QUEUE(queue_with_negative_rate, options.limits.qps = -1)
QUEUE(queue_with_no_rate, options.limits.qps = NAN)
QUEUE(queue_with_infinite_rate, options.limits.qps = INFINITY)
QUEUE(queue_without_burst, options.limits.burst = 0)
QUEUE(queue_without_env, return vd_work_queue_new(NULL, &options, &queue, &w->error))
QUEUE(queue_without_result, (void) queue; return vd_work_queue_new(w->env, &options, NULL, &w->error))

CALL(add_of_nothing, vd_work_queue_add(NULL, A))
CALL(add_without_bytes, vd_work_queue_add(queue, NO_BYTES))
CALL(add_after_of_nothing, vd_work_queue_add_after(NULL, A, VD_SECONDS(1)))
CALL(add_after_without_bytes, vd_work_queue_add_after(queue, NO_BYTES, VD_SECONDS(1)))
CALL(add_rate_limited_of_nothing, vd_work_queue_add_rate_limited(NULL, A))
CALL(add_rate_limited_without_bytes, vd_work_queue_add_rate_limited(queue, NO_BYTES))
CALL(get_of_nothing, vd_work_queue_get(NULL, NULL, NULL, &(struct vd_bytes) { 0 }))
CALL(get_without_result, vd_work_queue_get(queue, NULL, NULL, NULL))
CALL(get_wait_of_nothing, vd_work_queue_get_wait(NULL, FOR_EVER, &(struct vd_bytes) { 0 }))
CALL(get_wait_without_result, vd_work_queue_get_wait(queue, FOR_EVER, NULL))
CALL(drain_without_callback, vd_work_queue_shutdown_drain(queue, NULL, NULL))
CALL(drain_wait_of_nothing, vd_work_queue_shutdown_drain_wait(NULL, FOR_EVER))

static void no_drain(void *arg, vd_status status)
{
	(void) arg, (void) status;
	fail();
}

CALL(drain_of_nothing, vd_work_queue_shutdown_drain(NULL, no_drain, NULL))

static void note(void *arg)
{
	*(bool *) arg = true;
}

/* Those that return no status. */
static vd_status nothing_of_a_queue(struct misuse_world *w)
{
	struct vd_work_queue *queue = new_queue(w->env);
	bool		      is_done = false;

	vd_work_queue_forget(NULL, A);
	vd_work_queue_forget(queue, NO_BYTES);
	vd_work_queue_forget(queue, VD_BYTES_NONE);
	assert_int_equal(vd_work_queue_num_requeues(NULL, A), 0);
	assert_int_equal(vd_work_queue_num_requeues(queue, NO_BYTES), 0);
	assert_int_equal(vd_work_queue_len(NULL), 0);
	vd_work_queue_done(NULL, A);
	vd_work_queue_done(queue, NO_BYTES);
	vd_work_queue_done(queue, A); /* it is not processed */
	vd_work_queue_shutdown(NULL);
	assert_true(vd_work_queue_is_shutting_down(NULL));
	assert_int_equal(vd_work_num_requeues(NULL), 0);
	vd_work_queue_close(NULL, NULL, NULL);
	vd_work_queue_close(NULL, note, &is_done);
	assert_true(is_done);
	assert_null(vd_work_queue_close_wait(NULL));
	assert_false(vd_work_queue_is_shutting_down(queue));
	vd_work_queue_close_wait(queue);
	return VD_INVALID_ARGUMENT;
}

/* ---- Workers ---- */

static void no_work(void *arg, struct vd_work *work, struct vd_bytes key)
{
	(void) arg, (void) work, (void) key;
	fail();
}

static vd_status run(struct misuse_world *w, struct vd_worker_options options)
{
	struct vd_work_queue *queue = new_queue(w->env);
	vd_status	      status = vd_work_queue_run(queue, &options, &w->error);

	vd_work_queue_close_wait(queue);
	return status;
}

#define WORKERS(name, setting)                                                                               \
	static vd_status name(struct misuse_world *w)                                                        \
	{                                                                                                    \
		struct vd_worker_options options = VD_WORKER_OPTIONS_INIT;                                   \
		options.work = no_work;                                                                      \
		setting;                                                                                     \
		return run(w, options);                                                                      \
	}

WORKERS(workers_of_another_size, options.size = 3)
WORKERS(workers_without_work, options.work = NULL)
WORKERS(no_workers, options.concurrency = 0)
WORKERS(too_many_workers, options.concurrency = VD_WORKERS_MAX + 1)
WORKERS(workers_of_nothing, return vd_work_queue_run(NULL, &options, &w->error))
CALL(workers_without_options, vd_work_queue_run(queue, NULL, &w->error))

/* ---- Waiting where it is not allowed ---- */

struct waiting {
	struct vd_work_queue *queue;
	vd_status (*wait)(struct vd_work_queue *queue);
	struct vdi_wait done;
	vd_status	status;
};

static void run_waiting(void *arg)
{
	struct waiting *waiting = arg;

	waiting->status = waiting->wait(waiting->queue);
	vdi_wait_signal(&waiting->done);
}

static vd_status in_a_handler(struct misuse_world *w, vd_status (*wait)(struct vd_work_queue *queue))
{
	struct waiting		waiting = { .queue = new_queue(w->env), .wait = wait };
	struct vd_actor_options options = { .name = "handler of mine", .run = run_waiting, .arg = &waiting };
	struct vd_actor	       *actor;

	vdi_wait_init(&waiting.done, w->env);
	assert_status(vd_actor_new(w->env, &options, &actor), VD_OK);
	vd_actor_wake(actor);
	vdi_wait_wait(&waiting.done);
	vdi_wait_fini(&waiting.done);
	vdi_wait_for_actor_close(w->env, actor);
	vd_work_queue_close_wait(waiting.queue);
	return waiting.status;
}

static vd_status get_it(struct vd_work_queue *queue)
{
	return vd_work_queue_get_wait(queue, FOR_EVER, &(struct vd_bytes) { 0 });
}

static vd_status drain_it(struct vd_work_queue *queue)
{
	return vd_work_queue_shutdown_drain_wait(queue, FOR_EVER);
}

static vd_status get_wait_in_a_handler(struct misuse_world *w)
{
	return in_a_handler(w, get_it);
}

static vd_status drain_wait_in_a_handler(struct misuse_world *w)
{
	return in_a_handler(w, drain_it);
}

struct worker {
	struct vdi_wait done;
	vd_status (*wait)(struct vd_work_queue *queue);
	struct vd_work_queue *queue;
	vd_status	      status;
};

static void wait_in_work(void *arg, struct vd_work *work, struct vd_bytes key)
{
	struct worker *worker = arg;

	(void) key;
	worker->status = worker->wait(worker->queue);
	vd_work_finish(work, VD_WORK_DONE, VD_SECONDS(0));
	vdi_wait_signal(&worker->done);
}

/* In a worker that is an actor. */
static vd_status get_wait_in_a_worker(struct misuse_world *w)
{
	struct worker		 worker = { .wait = get_it, .queue = new_queue(w->env) };
	struct vd_worker_options options = VD_WORKER_OPTIONS_INIT;

	options.work = wait_in_work;
	options.arg = &worker;
	vdi_wait_init(&worker.done, w->env);
	assert_status(vd_work_queue_run(worker.queue, &options, NULL), VD_OK);
	assert_status(vd_work_queue_add(worker.queue, A), VD_OK);
	vdi_wait_wait(&worker.done);
	vdi_wait_fini(&worker.done);
	vd_work_queue_close_wait(worker.queue);
	return worker.status;
}

/* ---- Elections ---- */

static vd_status no_get(struct vd_leader_lock *lock, vd_dur timeout, vd_leader_lock_fn done, void *arg)
{
	(void) lock, (void) timeout, (void) done, (void) arg;
	return VD_UNAVAILABLE;
}

static vd_status no_write(struct vd_leader_lock *lock, const struct vd_leader_record *record, vd_dur timeout,
			  vd_leader_lock_fn done, void *arg)
{
	(void) record;
	return no_get(lock, timeout, done, arg);
}

static void free_nothing(struct vd_leader_lock *lock)
{
	(void) lock;
}

static const struct vd_leader_lock_ops ops = { no_get, no_write, no_write, free_nothing };
static struct vd_leader_lock	       a_lock = { &ops };

static void ignore(void *arg)
{
	(void) arg;
}

static struct vd_leader_election_options election_options(void)
{
	struct vd_leader_election_options options = VD_LEADER_ELECTION_OPTIONS_INIT;

	options.identity = "me";
	options.started_leading = ignore;
	options.stopped_leading = ignore;
	return options;
}

#define ELECTION(name, setting)                                                                              \
	static vd_status name(struct misuse_world *w)                                                        \
	{                                                                                                    \
		struct vd_leader_election_options options = election_options();                              \
		struct vd_leader_lock_ops	  broken = ops;                                              \
		struct vd_leader_lock		  lock = { &broken };                                        \
		struct vd_leader_election	 *election = NULL;                                           \
		vd_status			  status;                                                    \
		setting;                                                                                     \
		status = vd_leader_election_start(w->env, &lock, &options, &election, &w->error);            \
		assert_null(election);                                                                       \
		return status;                                                                               \
	}

static char long_identity[VD_LEADER_IDENTITY_SIZE_MAX + 1];

ELECTION(election_of_another_size, options.size = 3)
ELECTION(election_without_identity, options.identity = NULL)
ELECTION(election_of_empty_identity, options.identity = "")
ELECTION(election_of_long_identity, memset(long_identity, 'x', sizeof long_identity - 1);
	 options.identity = long_identity)
ELECTION(election_without_start, options.started_leading = NULL)
ELECTION(election_without_stop, options.stopped_leading = NULL)
ELECTION(election_without_lease, options.lease_duration = VD_SECONDS(0))
ELECTION(election_with_a_part_of_a_second, options.lease_duration = VD_MS(15500))
ELECTION(election_with_a_late_deadline, options.renew_deadline = VD_SECONDS(15))
ELECTION(election_with_a_negative_deadline, options.renew_deadline = VD_SECONDS(-1))
ELECTION(election_with_a_long_period, options.retry_period = VD_SECONDS(9))
ELECTION(election_without_period, options.retry_period = VD_SECONDS(0))
ELECTION(election_without_ops, lock.ops = NULL)
ELECTION(election_without_get, broken.get = NULL)
ELECTION(election_without_create, broken.create = NULL)
ELECTION(election_without_update, broken.update = NULL)
ELECTION(election_without_free, broken.free = NULL)
ELECTION(election_without_env, return vd_leader_election_start(NULL, &lock, &options, &election, &w->error))
ELECTION(election_without_lock, return vd_leader_election_start(w->env, NULL, &options, &election, &w->error))
ELECTION(election_without_options, return vd_leader_election_start(w->env, &lock, NULL, &election, &w->error))
ELECTION(election_without_result, (void) election;
	 return vd_leader_election_start(w->env, &lock, &options, NULL, &w->error))
CALL(check_of_nothing, vd_leader_election_check(NULL, VD_SECONDS(1), &w->error))

static struct vd_leader_election *start(const struct vd_env *env)
{
	struct vd_leader_election_options options = election_options();
	struct vd_leader_election	 *election;

	assert_status(vd_leader_election_start(env, &a_lock, &options, &election, NULL), VD_OK);
	return election;
}

static vd_status nothing_of_an_election(struct misuse_world *w)
{
	struct vd_leader_election *election = start(w->env);
	char			   identity[8] = "x";
	bool			   is_done = false;

	vd_leader_lock_free(NULL);
	assert_false(vd_leader_election_is_leader(NULL));
	assert_int_equal(vd_leader_election_leader(NULL, identity, sizeof identity), 0);
	assert_string_equal(identity, "");
	assert_int_equal(vd_leader_election_leader(NULL, NULL, 8), 0);
	assert_int_equal(vd_leader_election_leader(election, NULL, 8), 0);
	vd_leader_election_close(NULL, NULL, NULL);
	vd_leader_election_close(NULL, note, &is_done);
	assert_true(is_done);
	assert_null(vd_leader_election_close_wait(NULL));
	vd_leader_election_close_wait(election);
	return VD_INVALID_ARGUMENT;
}

static const struct misuse misuses[] = {
	MISUSE(queue_of_another_size, VD_INVALID_ARGUMENT, "options of 3 bytes"),
	MISUSE(queue_without_items, VD_INVALID_ARGUMENT, "items_max is 0"),
	MISUSE(queue_with_too_many_items, VD_INVALID_ARGUMENT, "items_max"),
	MISUSE(queue_with_negative_base, VD_INVALID_ARGUMENT, "limits.failure_base"),
	MISUSE(queue_with_negative_maximum, VD_INVALID_ARGUMENT, "limits.delay_max"),
	MISUSE(queue_with_negative_rate, VD_INVALID_ARGUMENT, "limits.qps"),
	MISUSE(queue_with_no_rate, VD_INVALID_ARGUMENT, "limits.qps"),
	MISUSE(queue_with_infinite_rate, VD_INVALID_ARGUMENT, "limits.qps"),
	MISUSE(queue_without_burst, VD_INVALID_ARGUMENT, "burst"),
	MISUSE(queue_without_env, VD_INVALID_ARGUMENT, "env is NULL"),
	MISUSE(queue_without_result, VD_INVALID_ARGUMENT, "ret_queue is NULL"),
	MISUSE(add_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(add_without_bytes, VD_INVALID_ARGUMENT, NULL),
	MISUSE(add_after_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(add_after_without_bytes, VD_INVALID_ARGUMENT, NULL),
	MISUSE(add_rate_limited_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(add_rate_limited_without_bytes, VD_INVALID_ARGUMENT, NULL),
	MISUSE(get_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(get_without_result, VD_INVALID_ARGUMENT, NULL),
	MISUSE(get_wait_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(get_wait_without_result, VD_INVALID_ARGUMENT, NULL),
	MISUSE(drain_without_callback, VD_INVALID_ARGUMENT, NULL),
	MISUSE(drain_wait_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(drain_of_nothing, VD_INVALID_ARGUMENT, NULL),
	MISUSE(nothing_of_a_queue, VD_INVALID_ARGUMENT, NULL),
	MISUSE(workers_of_another_size, VD_INVALID_ARGUMENT, "options of 3 bytes"),
	MISUSE(workers_without_work, VD_INVALID_ARGUMENT, "work is NULL"),
	MISUSE(no_workers, VD_INVALID_ARGUMENT, "concurrency is 0"),
	MISUSE(too_many_workers, VD_INVALID_ARGUMENT, "concurrency is 257"),
	MISUSE(workers_of_nothing, VD_INVALID_ARGUMENT, "queue is NULL"),
	MISUSE(workers_without_options, VD_INVALID_ARGUMENT, "options is NULL"),
	MISUSE(get_wait_in_a_handler, VD_INVALID_ARGUMENT, NULL),
	MISUSE(drain_wait_in_a_handler, VD_INVALID_ARGUMENT, NULL),
	MISUSE(get_wait_in_a_worker, VD_INVALID_ARGUMENT, NULL),
	MISUSE(election_of_another_size, VD_INVALID_ARGUMENT, "options of 3 bytes"),
	MISUSE(election_without_identity, VD_INVALID_ARGUMENT, "identity is empty"),
	MISUSE(election_of_empty_identity, VD_INVALID_ARGUMENT, "identity is empty"),
	MISUSE(election_of_long_identity, VD_INVALID_ARGUMENT, "identity has 512 bytes"),
	MISUSE(election_without_start, VD_INVALID_ARGUMENT, "started_leading is NULL"),
	MISUSE(election_without_stop, VD_INVALID_ARGUMENT, "stopped_leading is NULL"),
	MISUSE(election_without_lease, VD_INVALID_ARGUMENT, "lease_duration"),
	MISUSE(election_with_a_part_of_a_second, VD_INVALID_ARGUMENT, "whole seconds"),
	MISUSE(election_with_a_late_deadline, VD_INVALID_ARGUMENT, "greater than renew_deadline"),
	MISUSE(election_with_a_negative_deadline, VD_INVALID_ARGUMENT, "renew_deadline"),
	MISUSE(election_with_a_long_period, VD_INVALID_ARGUMENT, "retry_period"),
	MISUSE(election_without_period, VD_INVALID_ARGUMENT, "retry_period"),
	MISUSE(election_without_ops, VD_INVALID_ARGUMENT, "lock->ops is NULL"),
	MISUSE(election_without_get, VD_INVALID_ARGUMENT, "get is NULL"),
	MISUSE(election_without_create, VD_INVALID_ARGUMENT, "create is NULL"),
	MISUSE(election_without_update, VD_INVALID_ARGUMENT, "update is NULL"),
	MISUSE(election_without_free, VD_INVALID_ARGUMENT, "free is NULL"),
	MISUSE(election_without_env, VD_INVALID_ARGUMENT, "env is NULL"),
	MISUSE(election_without_lock, VD_INVALID_ARGUMENT, "lock is NULL"),
	MISUSE(election_without_options, VD_INVALID_ARGUMENT, "options is NULL"),
	MISUSE(election_without_result, VD_INVALID_ARGUMENT, "ret_election is NULL"),
	MISUSE(check_of_nothing, VD_INVALID_ARGUMENT, "election is NULL"),
	MISUSE(nothing_of_an_election, VD_INVALID_ARGUMENT, NULL),
};

/* ---- The end ---- */

static struct {
	struct misuse_world	   w;
	struct vd_work_queue	  *queue;
	struct vd_leader_election *election;
} world;

static void close_queue(void *arg)
{
	(void) arg;
	vd_work_queue_close_wait(world.queue);
}

static void close_election(void *arg)
{
	(void) arg;
	vd_leader_election_close_wait(world.election);
}

static void open_all(void)
{
	misuse_world_init(&world.w);
	world.queue = new_queue(world.w.env);
	world.election = start(world.w.env);
}

static void close_in_a_handler(void (*close)(void *arg))
{
	struct vd_actor_options options = { .name = "handler of mine", .run = close };
	struct vd_actor	       *actor;

	open_all();
	assert_status(vd_actor_new(world.w.env, &options, &actor), VD_OK);
	vd_actor_wake(actor);
	for (;;)
		(void) pause();
}

static void queue_closed_in_a_handler(void)
{
	close_in_a_handler(close_queue);
}

static void election_closed_in_a_handler(void)
{
	close_in_a_handler(close_election);
}

static void close_cachers(void)
{
	vd_cacher_close_wait(world.w.pods);
	vd_cacher_close_wait(world.w.nodes);
	vd_store_close_wait(world.w.store);
}

static void env_before_a_queue(void)
{
	open_all();
	vd_leader_election_close_wait(world.election);
	close_cachers();
	vd_env_free(world.w.env);
}

static void env_before_an_election(void)
{
	open_all();
	vd_work_queue_close_wait(world.queue);
	close_cachers();
	vd_env_free(world.w.env);
}

static void finish_of_nothing(void)
{
	vd_work_finish(NULL, VD_WORK_DONE, VD_SECONDS(0));
}

static struct vd_env *new_sim(void)
{
	struct vd_env *env;

	assert_status(vdi_env_new_sim(3, NULL, NULL, &env), VD_OK);
	return env;
}

static void queue_closed_twice(void)
{
	struct vd_work_queue *queue = new_queue(new_sim());

	vd_work_queue_close(queue, NULL, NULL);
	vd_work_queue_close(queue, NULL, NULL);
}

static void election_closed_twice(void)
{
	struct vd_leader_election *election = start(new_sim());

	vd_leader_election_close(election, NULL, NULL);
	vd_leader_election_close(election, NULL, NULL);
}

static void they_stop_the_program(void **state)
{
	(void) state;
	expect_panic(queue_closed_in_a_handler, "vedette: misuse: vd_work_queue_close_wait: this thread runs "
						"the handler of an actor (handler of mine)");
	expect_panic(election_closed_in_a_handler, "vd_leader_election_close_wait: this thread runs");
	expect_panic(env_before_a_queue, "work queue");
	expect_panic(env_before_an_election, "leader election");
	expect_panic(finish_of_nothing, "vd_work_finish: work is NULL");
	expect_panic(queue_closed_twice,
		     "vd_work_queue_close: the work queue without a name is closing already");
	expect_panic(election_closed_twice, "vd_leader_election_close: the election");
}

/* The simulator frees the queue only when it runs. */
static void calls_after_the_queues_close(void **state)
{
	struct vd_env		*env = new_sim();
	struct vd_work_queue	*queue = new_queue(env);
	struct vd_worker_options options = VD_WORKER_OPTIONS_INIT;
	struct vd_bytes		 key;
	bool			 is_closed = false;

	(void) state;
	options.work = no_work;
	assert_status(vd_work_queue_add_after(queue, A, VD_SECONDS(1)), VD_OK);
	vd_work_queue_close(queue, note, &is_closed);
	assert_false(is_closed);
	assert_status(vd_work_queue_add(queue, A), VD_CLOSED);
	assert_status(vd_work_queue_add_after(queue, A, VD_SECONDS(1)), VD_CLOSED);
	assert_status(vd_work_queue_add_rate_limited(queue, A), VD_CLOSED);
	assert_status(vd_work_queue_get(queue, note, &is_closed, &key), VD_CLOSED);
	assert_status(vd_work_queue_get_wait(queue, FOR_EVER, &key), VD_CLOSED);
	assert_status(vd_work_queue_run(queue, &options, NULL), VD_CLOSED);
	assert_true(vd_work_queue_is_shutting_down(queue));
	vdi_sim_run_until_idle(env);
	assert_true(is_closed);
	vd_env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_stop_the_program),
		cmocka_unit_test(calls_after_the_queues_close),
	};

	return misuse_run("misuse_controller", misuses, VDI_ARRAY_SIZE(misuses)) +
	       cmocka_run_group_tests(tests, NULL, NULL);
}
