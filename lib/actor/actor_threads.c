/* The pool: one run queue under one lock, with as few system calls as possible.
 *
 * An idle thread sleeps on its own condition variable. One of the sleepers, the timer keeper, sleeps only
 * until the next deadline; the others form a stack, so that the one with the warmest cache is woken first and
 * the keeper last. A wake queues the actor and wakes a sleeper only if no running thread will take the actor
 * soon:
 *   - a thread that was signalled and has not checked the queue yet (`waking`) will find this actor too;
 *   - a handler that wakes one other actor signals no thread, because its own thread checks the queue right
 *     after it. If the queue has more than one actor, a sleeper is signalled to use another processor.
 *
 * A thread that takes an actor and sees more in the queue signals the next sleeper, and so on: a burst of
 * wakes costs the first caller one system call, and the woken threads pay for the others.
 *
 * The lock protects the timers too. A thread that takes from the queue first queues the actors whose timers
 * are due. If a thread starts work, timers are pending, no thread is keeper and another thread sleeps, it
 * signals a sleeper to become the keeper.
 *
 * The condition is signalled after the pool's lock was released, so that the woken thread does not block on
 * it. A thread that also holds other locks, which the actor's handler takes first, defers its signals until
 * those are released (vdi_actor_calls_hold). A worker is not freed while another thread is about to signal it
 * (`callers`).
 *
 * A lent thread belongs to a blocking actor and counts as a pool thread while it handles one event: the first
 * actor that it wakes waits for it, further ones signal a sleeper. It is never the keeper, and it leaves the
 * rest of the queue to a sleeper.
 */
#include <sched.h>

#include "actor_threads.h"
#include "clock.h"
#include "run_queue.h"
#include "thread.h"
#include "wait.h"

struct pool;

struct worker {
	struct pool	    *pool;
	struct vdi_thread    thread;
	struct vdi_condition called;
	/* threads that took the worker from the sleepers and have not signalled it yet */
	atomic_uint callers;

	/* Under the pool's lock. */
	struct worker *asleep_next;
	bool	       is_called;
};

/* An actor with a thread of its own. The record of the thread outlives the actor, until the thread is
 * joined. */
struct blocking_actor {
	struct vd_actor		actor;
	struct pool	       *pool;
	struct vd_actor_options options;
	struct blocking_thread *thread;
	struct vdi_lock		lock;
	struct vdi_condition	changed;

	/* Under lock. */
	bool	is_woken;
	bool	is_closing;
	vd_mono due;
	void (*done)(void *arg);
	void *done_arg;
};

struct blocking_thread {
	struct blocking_actor  *actor;
	struct pool	       *pool;
	const char	       *name;
	struct vdi_thread	thread;
	struct blocking_thread *next;
	bool			is_ended; /* joining will not block long */
};

struct pool {
	struct vdi_run_queue	ready; /* its actors_open counts blocking actors too */
	unsigned		worker_count;
	const struct vdi_clock *clock;

	/* Under the lock of ready. */
	struct worker	       *asleep; /* stack of idle workers, without the timer keeper */
	struct worker	       *keeper; /* asleep until keeper_until */
	vd_mono			keeper_until;
	unsigned		waking; /* signalled, and have not checked the queue yet */
	struct blocking_thread *blocking;
	bool			is_stopping;

	struct worker workers[];
};

#define HELD_CALLS_MAX 16 /* further signals are not deferred */
#define LENT_RUNS_MAX 16
#define LENT_TIME_MAX VD_US(100) /* after this time no further actor is started */
#define LENT_TIME_LONG VD_US(500)
/* multiple of a long run's time without lending: slow handlers cost the thread at most 1 % */
#define LENT_REST 100

/* The pool whose actor this thread is running, or to which it is lent: it will check that pool's queue
 * soon. */
static __thread struct pool *running_for;
/* A queued actor relies on that. */
static __thread bool is_relied_on;
/* Deferred signals. A worker may be in the list twice: it may have woken by itself meanwhile, and slept
 * again. */
static __thread unsigned       call_holds;
static __thread struct worker *held_calls[HELD_CALLS_MAX];
static __thread unsigned       held_call_count;
/* Thread of a blocking actor: its pool, and the time from which it may be lent. */
static __thread struct pool *lends_to;
static __thread vd_mono	     lends_from;

/* ---- The queue ---- */

/* Takes a sleeper from the stack; the caller signals it after releasing the lock. NULL: no signal is
 * needed. */
static struct worker *call_sleeper_locked(struct pool *pool)
{
	struct worker *worker;

	if (pool->waking)
		return NULL;
	worker = pool->asleep;
	if (worker)
		pool->asleep = worker->asleep_next;
	else if (pool->keeper) {
		worker = pool->keeper;
		pool->keeper = NULL;
	} else
		return NULL;
	worker->is_called = true;
	atomic_fetch_add_explicit(&worker->callers, 1, memory_order_relaxed);
	pool->waking++;
	return worker;
}

/* The caller does not hold the lock. NULL is allowed. */
static void signal_called(struct worker *worker)
{
	if (worker == NULL)
		return;
	vdi_condition_signal(&worker->called);
	atomic_fetch_sub_explicit(&worker->callers, 1, memory_order_release);
}

void vdi_actor_calls_hold(void)
{
	call_holds++;
}

void vdi_actor_calls_release(void)
{
	VDI_CHECK(call_holds > 0);
	if (--call_holds)
		return;
	while (held_call_count)
		signal_called(held_calls[--held_call_count]);
}

static void enqueue(struct vdi_queued_actor *actor)
{
	struct pool   *pool = VDI_CONTAINER_OF(actor->queue, struct pool, ready);
	struct worker *sleeper = NULL;
	bool	       was_empty;

	vdi_lock_acquire(&pool->ready.lock);
	was_empty = pool->ready.first == NULL;
	vdi_run_queue_push_locked(&pool->ready, actor);
	if (!was_empty || running_for != pool)
		sleeper = call_sleeper_locked(pool);
	else
		is_relied_on = true;
	vdi_lock_release(&pool->ready.lock);
	if (sleeper && call_holds && held_call_count < HELD_CALLS_MAX)
		held_calls[held_call_count++] = sleeper;
	else
		signal_called(sleeper);
}

static void fire_timers_locked(struct pool *pool)
{
	if (pool->ready.timers.count)
		vdi_run_queue_fire_timers_locked(&pool->ready, vdi_clock_mono(pool->clock));
}

/* ---- Workers ---- */

static void sleep_locked(struct worker *worker)
{
	struct pool *pool = worker->pool;

	worker->is_called = false;
	if (pool->keeper == NULL) {
		pool->keeper = worker;
		while (!worker->is_called && !pool->is_stopping) {
			pool->keeper_until = vdi_timer_heap_next_due(&pool->ready.timers);
			if (!vdi_condition_wait_until(&worker->called, &pool->ready.lock, pool->keeper_until))
				break;
		}
		if (!worker->is_called)
			pool->keeper = NULL;
	} else {
		worker->asleep_next = pool->asleep;
		pool->asleep = worker;
		while (!worker->is_called && !pool->is_stopping)
			vdi_condition_wait(&worker->called, &pool->ready.lock);
	}
	if (worker->is_called)
		pool->waking--;
}

static void *run_worker(void *arg)
{
	struct worker *worker = arg;
	struct pool   *pool = worker->pool;

	running_for = pool;
	vdi_lock_acquire(&pool->ready.lock);
	for (;;) {
		struct vdi_queued_actor *actor;
		struct worker		*sleeper = NULL;

		fire_timers_locked(pool);
		actor = vdi_run_queue_pop_locked(&pool->ready);
		if (actor == NULL) {
			if (pool->is_stopping)
				break;
			sleep_locked(worker);
			continue;
		}
		if (pool->ready.first || (pool->keeper == NULL && pool->ready.timers.count))
			sleeper = call_sleeper_locked(pool);
		vdi_lock_release(&pool->ready.lock);
		signal_called(sleeper);

		actor = vdi_queued_actor_run(actor);

		vdi_lock_acquire(&pool->ready.lock);
		if (actor)
			vdi_run_queue_push_locked(&pool->ready, actor);
	}
	vdi_lock_release(&pool->ready.lock);
	return NULL;
}

/* ---- Lent threads ---- */

void vdi_actor_lend_begin(void)
{
	if (lends_to == NULL || vdi_clock_mono(lends_to->clock).ns < lends_from.ns)
		return;
	is_relied_on = false;
	running_for = lends_to;
}

static void run_lent(struct pool *pool)
{
	const vd_mono		 begin = vdi_clock_mono(pool->clock);
	struct worker		*sleeper = NULL;
	struct vdi_queued_actor *actor;
	vd_dur			 took = { 0 };

	vdi_lock_acquire(&pool->ready.lock);
	for (unsigned runs = 0; runs < LENT_RUNS_MAX && took.ns < LENT_TIME_MAX.ns; runs++) {
		actor = vdi_run_queue_pop_locked(&pool->ready);
		if (actor == NULL)
			break;
		vdi_lock_release(&pool->ready.lock);
		actor = vdi_queued_actor_run(actor);
		took = vd_mono_since(vdi_clock_mono(pool->clock), begin);
		vdi_lock_acquire(&pool->ready.lock);
		if (actor)
			vdi_run_queue_push_locked(&pool->ready, actor);
	}
	if (pool->ready.first)
		sleeper = call_sleeper_locked(pool);
	vdi_lock_release(&pool->ready.lock);
	signal_called(sleeper);
	if (took.ns > LENT_TIME_LONG.ns)
		lends_from.ns = begin.ns + took.ns * LENT_REST;
}

void vdi_actor_lend_end(void)
{
	struct pool *pool = running_for;

	if (lends_to == NULL || pool == NULL)
		return;
	if (is_relied_on)
		run_lent(pool);
	running_for = NULL;
}

/* ---- Pool actors ---- */

static void pool_actor_wake(struct vd_actor *base)
{
	struct vdi_queued_actor *actor = vdi_queued_actor_of(base);

	if (vdi_actor_state_wake(&actor->state))
		enqueue(actor);
}

static void pool_actor_set_timer(struct vd_actor *base, vd_mono due)
{
	struct vdi_queued_actor *actor = vdi_queued_actor_of(base);
	struct pool		*pool = VDI_CONTAINER_OF(actor->queue, struct pool, ready);
	struct worker		*keeper = NULL;

	vdi_lock_acquire(&pool->ready.lock);
	vdi_timer_heap_set(&pool->ready.timers, &actor->timer, due);
	/* Without a keeper a thread is awake and checks the timers before it sleeps. A keeper that wakes too
	 * early only checks again. */
	if (pool->keeper && due.ns < pool->keeper_until.ns)
		keeper = pool->keeper;
	if (keeper)
		pool->keeper_until = due;
	vdi_lock_release(&pool->ready.lock);
	if (keeper)
		vdi_condition_signal(&keeper->called);
}

static void pool_actor_close(struct vd_actor *base, void (*done)(void *arg), void *arg)
{
	struct vdi_queued_actor *actor = vdi_queued_actor_of(base);

	if (vdi_queued_actor_close(actor, done, arg))
		enqueue(actor);
}

static vd_status blocking_actor_new(struct pool *pool, const struct vd_actor_options *options,
				    struct vd_actor **ret_actor);

static vd_status pool_actor_new(void *executor, const struct vd_actor_options *options,
				struct vd_actor **ret_actor)
{
	static const struct vd_executor_ops ops = { pool_actor_new, pool_actor_wake, pool_actor_set_timer,
						    pool_actor_close };
	struct pool			   *pool = executor;

	if (options->blocking)
		return blocking_actor_new(pool, options, ret_actor);
	return vdi_queued_actor_new(&pool->ready, &ops, options, ret_actor);
}

/* ---- Blocking actors ---- */

static void *run_blocking(void *arg)
{
	struct blocking_thread *thread = arg;
	struct blocking_actor  *actor = thread->actor;
	struct pool	       *pool = thread->pool;
	void (*done)(void *arg);
	void *done_arg;

	lends_to = pool;
	vdi_lock_acquire(&actor->lock);
	while (!actor->is_closing) {
		if (!actor->is_woken && actor->due.ns > vdi_clock_mono(pool->clock).ns) {
			vdi_condition_wait_until(&actor->changed, &actor->lock, actor->due);
			continue;
		}
		if (!actor->is_woken)
			actor->due = VD_NEVER;
		actor->is_woken = false;
		vdi_lock_release(&actor->lock);
		actor->options.run(actor->options.arg);
		vdi_lock_acquire(&actor->lock);
	}
	done = actor->done;
	done_arg = actor->done_arg;
	vdi_lock_release(&actor->lock);
	vdi_condition_fini(&actor->changed);
	vdi_lock_fini(&actor->lock);
	vdi_free(actor);
	(void) vdi_wait_enter_handler(thread->name); /* freeing the env waits for this thread */
	if (done)
		done(done_arg);

	vdi_lock_acquire(&pool->ready.lock);
	thread->is_ended = true;
	vdi_lock_release(&pool->ready.lock);
	return NULL;
}

static void blocking_actor_wake(struct vd_actor *base)
{
	struct blocking_actor *actor = VDI_CONTAINER_OF(base, struct blocking_actor, actor);

	vdi_lock_acquire(&actor->lock);
	if (!actor->is_woken) {
		actor->is_woken = true;
		vdi_condition_signal(&actor->changed);
	}
	vdi_lock_release(&actor->lock);
}

static void blocking_actor_set_timer(struct vd_actor *base, vd_mono due)
{
	struct blocking_actor *actor = VDI_CONTAINER_OF(base, struct blocking_actor, actor);

	vdi_lock_acquire(&actor->lock);
	if (due.ns < actor->due.ns)
		vdi_condition_signal(&actor->changed);
	actor->due = due;
	vdi_lock_release(&actor->lock);
}

static void blocking_actor_close(struct vd_actor *base, void (*done)(void *arg), void *arg)
{
	struct blocking_actor *actor = VDI_CONTAINER_OF(base, struct blocking_actor, actor);

	atomic_fetch_sub(&actor->pool->ready.actors_open, 1);
	vdi_lock_acquire(&actor->lock);
	VDI_CHECK(!actor->is_closing);
	actor->is_closing = true;
	actor->done = done;
	actor->done_arg = arg;
	vdi_condition_signal(&actor->changed);
	vdi_lock_release(&actor->lock);
}

/* Joins the threads of actors that have ended, or all threads. */
static void reap_blocking(struct pool *pool, bool all)
{
	struct blocking_thread *ended = NULL;

	vdi_lock_acquire(&pool->ready.lock);
	for (struct blocking_thread **link = &pool->blocking; *link;) {
		struct blocking_thread *thread = *link;

		if (!all && !thread->is_ended) {
			link = &thread->next;
			continue;
		}
		*link = thread->next;
		thread->next = ended;
		ended = thread;
	}
	vdi_lock_release(&pool->ready.lock);
	while (ended) {
		struct blocking_thread *thread = ended;

		ended = thread->next;
		vdi_thread_join(&thread->thread);
		vdi_free(thread);
	}
}

static vd_status blocking_actor_new(struct pool *pool, const struct vd_actor_options *options,
				    struct vd_actor **ret_actor)
{
	static const struct vd_executor_ops ops = { pool_actor_new, blocking_actor_wake,
						    blocking_actor_set_timer, blocking_actor_close };
	struct blocking_actor		   *actor = VDI_NEW(struct blocking_actor);
	struct blocking_thread		   *thread = VDI_NEW(struct blocking_thread);
	vd_status			    status;

	reap_blocking(pool, false);
	if (actor == NULL || thread == NULL) {
		vdi_free(thread);
		vdi_free(actor);
		return VD_NOMEM;
	}
	actor->actor.ops = &ops;
	actor->pool = pool;
	actor->options = *options;
	actor->thread = thread;
	actor->due = VD_NEVER;
	vdi_lock_init(&actor->lock, VDI_LOCK_ACTOR);
	vdi_condition_init(&actor->changed);
	thread->actor = actor;
	thread->name = options->name;
	thread->pool = pool;
	status = vdi_thread_start(&thread->thread, options->name, run_blocking, thread);
	if (status != VD_OK) {
		vdi_condition_fini(&actor->changed);
		vdi_lock_fini(&actor->lock);
		vdi_free(thread);
		vdi_free(actor);
		return status;
	}
	vdi_lock_acquire(&pool->ready.lock);
	thread->next = pool->blocking;
	pool->blocking = thread;
	vdi_lock_release(&pool->ready.lock);
	atomic_fetch_add(&pool->ready.actors_open, 1);
	*ret_actor = &actor->actor;
	return VD_OK;
}

/* ---- The pool ---- */

/* Ends the first `started` workers and frees the pool. */
static void stop(struct pool *pool, unsigned started)
{
	vdi_lock_acquire(&pool->ready.lock);
	pool->is_stopping = true;
	for (unsigned i = 0; i < started; i++)
		vdi_condition_signal(&pool->workers[i].called);
	vdi_lock_release(&pool->ready.lock);
	for (unsigned i = 0; i < started; i++)
		vdi_thread_join(&pool->workers[i].thread);
	for (unsigned i = 0; i < pool->worker_count; i++) {
		while (atomic_load_explicit(&pool->workers[i].callers, memory_order_acquire))
			sched_yield();
		vdi_condition_fini(&pool->workers[i].called);
	}
	vdi_run_queue_fini(&pool->ready);
	vdi_free(pool);
}

vd_status vdi_actor_threads_new(unsigned threads, struct vd_executor *ret_executor)
{
	static const struct vd_executor_ops ops = { pool_actor_new, pool_actor_wake, pool_actor_set_timer,
						    pool_actor_close };
	struct pool			   *pool;

	VDI_CHECK(threads > 0);
	pool = vdi_calloc(1, sizeof *pool + threads * sizeof pool->workers[0]);
	if (pool == NULL)
		return VD_NOMEM;
	pool->worker_count = threads;
	pool->clock = &vdi_clock_os;
	vdi_run_queue_init(&pool->ready, VDI_LOCK_POOL);
	for (unsigned i = 0; i < threads; i++) {
		pool->workers[i].pool = pool;
		vdi_condition_init(&pool->workers[i].called);
	}
	for (unsigned i = 0; i < threads; i++) {
		vd_status status = vdi_thread_start(&pool->workers[i].thread, "vedette-pool", run_worker,
						    &pool->workers[i]);

		if (status != VD_OK) {
			stop(pool, i);
			return status;
		}
	}
	*ret_executor = (struct vd_executor) { &ops, pool };
	return VD_OK;
}

void vdi_actor_threads_free(void *executor)
{
	struct pool *pool = executor;

	if (atomic_load(&pool->ready.actors_open))
		vdi_misuse("vd_env_free: %lld actors are still open; close them with vd_actor_close",
			   (long long) atomic_load(&pool->ready.actors_open));
	reap_blocking(pool, true);
	stop(pool, pool->worker_count);
}
