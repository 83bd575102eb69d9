/* How a wake reaches the loop, and how its timers work.
 *
 * Ready actors are in a queue under the loop's lock. Another thread that queues the first of them writes to
 * the eventfd, unless the loop is dispatching and will check the queue again anyway. On the loop's own thread
 * no write is needed: an event with a zero timeout makes libevent call the dispatch in its next iteration,
 * after it has polled the sockets.
 *
 * One dispatch runs at most ROUND_MAX actors, starts none after ROUND_TIME_MAX, and then returns to libevent.
 * An actor that wakes itself runs again in the next dispatch. So actors that keep themselves ready cannot
 * starve sockets.
 *
 * Timers of actors are in our own heap, and one timerfd is set for the earliest. libevent's own timers use
 * the kernel's coarse clock and milliseconds: as measured, a timer of 300 us fired 4 ms late, after
 * iterations that were too early and used 150 us of CPU. The timerfd is set only when the earliest deadline
 * moves forward in time; when it moves back, one early iteration sets it again.
 */
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "actor_loop.h"
#include "actor_state.h"
#include "env.h"
#include "lock.h"
#include "metrics.h"
#include "thread.h"
#include "timer.h"
#include "wait.h"

#define ROUND_MAX 256
#define ROUND_TIME_MAX ((vd_dur) { 5000000 })
/* Reading the CPU clock of a thread is a system call, too slow for each of many short iterations. */
#define CPU_READ_INTERVAL ((vd_dur) { 1000000 })

struct loop_actor {
	struct vd_actor		actor;
	struct vdi_loop	       *loop;
	struct vd_actor_options options;
	vdi_actor_state		state;

	/* Written before CLOSING is set. */
	void (*done)(void *arg);
	void *done_arg;

	/* Under the loop's lock. */
	struct loop_actor *queue_next;
	struct vdi_timer   timer;
};

struct vdi_loop {
	/* Fixed at creation. */
	const struct vd_env *env;
	struct event_base   *base;
	int		     event_fd;
	int		     timer_fd;
	struct vd_executor   executor;
	_Atomic int64_t	     actors_open;

	/* Loop thread only. */
	struct event wake_event;   /* eventfd is readable */
	struct event turn_event;   /* zero timeout: dispatch in the next iteration */
	struct event timer_event;  /* timerfd is readable */
	vd_mono	     timer_fd_due; /* deadline set in the timerfd */
	vd_dur	     cpu;	   /* CPU time of the thread at cpu_read */
	vd_mono	     cpu_read;	   /* end of an iteration */

	/* Written by the loop thread, read by any thread. */
	_Atomic int64_t	   work_began_ns; /* start of the work of this iteration; 0: not started */
	_Atomic int64_t	   longest_wall_ns, longest_cpu_ns;
	struct vdi_metric *longest_wall, *longest_cpu; /* NULL: the loop has no name */

	/* Owner thread only. */
	struct vdi_thread thread;
	bool		  has_thread;

	/* Under lock. */
	struct vdi_lock	      lock;
	struct loop_actor    *queue_first;
	struct loop_actor    *queue_last;
	struct vdi_timer_heap timers;
	bool		      is_notified;    /* the eventfd was written and not yet read */
	bool		      is_dispatching; /* will check queue and timers before it returns to libevent */
	bool		      is_stopping;
};

/* Loop whose callbacks the current thread runs. */
static __thread struct vdi_loop *current_loop;

static void push_locked(struct vdi_loop *loop, struct loop_actor *actor)
{
	actor->queue_next = NULL;
	if (loop->queue_last)
		loop->queue_last->queue_next = actor;
	else
		loop->queue_first = actor;
	loop->queue_last = actor;
}

static struct loop_actor *pop_locked(struct vdi_loop *loop)
{
	struct loop_actor *actor = loop->queue_first;

	if (actor) {
		loop->queue_first = actor->queue_next;
		if (loop->queue_first == NULL)
			loop->queue_last = NULL;
	}
	return actor;
}

static void take_turn(struct vdi_loop *loop)
{
	static const struct timeval zero;

	if (!evtimer_pending(&loop->turn_event, NULL))
		VDI_CHECK(evtimer_add(&loop->turn_event, &zero) == 0);
}

/* Makes the loop check queue, timers and stop flag. The caller holds the lock; it is released here, before
 * the write to the eventfd. */
static void notify_and_unlock(struct vdi_loop *loop)
{
	bool	 is_silent = loop->is_notified || loop->is_dispatching;
	uint64_t one = 1;

	if (!is_silent && current_loop == loop) {
		vdi_lock_release(&loop->lock);
		take_turn(loop);
		return;
	}
	loop->is_notified |= !is_silent;
	vdi_lock_release(&loop->lock);
	if (!is_silent) {
		ssize_t written;

		do
			written = write(loop->event_fd, &one, sizeof one);
		while (written < 0 && errno == EINTR);
		VDI_CHECK(written == sizeof one);
	}
}

static void enqueue(struct loop_actor *actor)
{
	struct vdi_loop *loop = actor->loop;

	vdi_lock_acquire(&loop->lock);
	push_locked(loop, actor);
	notify_and_unlock(loop);
}

/* ---- Actors ---- */

static void loop_actor_wake(struct vd_actor *base)
{
	struct loop_actor *actor = VDI_CONTAINER_OF(base, struct loop_actor, actor);

	if (vdi_actor_state_wake(&actor->state))
		enqueue(actor);
}

static void loop_actor_set_timer(struct vd_actor *base, vd_mono due)
{
	struct loop_actor *actor = VDI_CONTAINER_OF(base, struct loop_actor, actor);
	struct vdi_loop	  *loop = actor->loop;
	vd_mono		   before;

	vdi_lock_acquire(&loop->lock);
	before = vdi_timer_heap_next_due(&loop->timers);
	vdi_timer_heap_set(&loop->timers, &actor->timer, due);
	if (vdi_timer_heap_next_due(&loop->timers).ns < before.ns)
		notify_and_unlock(loop);
	else
		vdi_lock_release(
			/* an event that fires too early only checks the timers and sets itself again */
			&loop->lock);
}

static void loop_actor_close(struct vd_actor *base, void (*done)(void *arg), void *arg)
{
	struct loop_actor *actor = VDI_CONTAINER_OF(base, struct loop_actor, actor);

	atomic_fetch_sub(&actor->loop->actors_open, 1);
	actor->done = done;
	actor->done_arg = arg;
	if (vdi_actor_state_close(&actor->state))
		enqueue(actor);
}

static vd_status loop_actor_new(void *executor, const struct vd_actor_options *options,
				struct vd_actor **ret_actor)
{
	static const struct vd_executor_ops ops = { loop_actor_new, loop_actor_wake, loop_actor_set_timer,
						    loop_actor_close };
	struct vdi_loop			   *loop = executor;
	struct loop_actor		   *actor;

	/* A loop must not block, so blocking actors run on the env's executor. */
	if (options->blocking)
		return vd_executor_actor_new(vdi_env_executor(loop->env), options, ret_actor);
	actor = VDI_NEW(struct loop_actor);
	if (actor == NULL)
		return VD_NOMEM;
	actor->actor.ops = &ops;
	actor->loop = loop;
	actor->options = *options;
	atomic_init(&actor->state, 0);
	atomic_fetch_add(&loop->actors_open, 1);
	*ret_actor = &actor->actor;
	return VD_OK;
}

/* ---- Dispatch, on the loop thread ---- */

static void fire_timers_locked(struct vdi_loop *loop)
{
	struct vdi_timer *timer;
	vd_mono		  now;

	if (loop->timers.count == 0)
		return;
	now = vd_env_now(loop->env);
	while ((timer = vdi_timer_heap_pop_due(&loop->timers, now)) != NULL) {
		struct loop_actor *actor = VDI_CONTAINER_OF(timer, struct loop_actor, timer);

		if (vdi_actor_state_wake(&actor->state))
			push_locked(loop, actor);
	}
}

static void end_actor(struct loop_actor *actor)
{
	void (*done)(void *arg) = actor->done;
	void *done_arg = actor->done_arg;

	vdi_lock_acquire(&actor->loop->lock);
	vdi_timer_heap_remove(&actor->loop->timers, &actor->timer);
	vdi_lock_release(&actor->loop->lock);
	vdi_free(actor);
	if (done)
		done(done_arg);
}

/* Returns the actor if it must be queued again. */
static struct loop_actor *run_actor(struct loop_actor *actor)
{
	const char *outer = vdi_wait_enter_handler(actor->options.name);

	if (!vdi_actor_state_start(&actor->state)) {
		end_actor(actor);
		actor = NULL;
	} else {
		actor->options.run(actor->options.arg);
		actor = vdi_actor_state_finish(&actor->state) ? actor : NULL;
	}
	vdi_wait_leave_handler(outer);
	return actor;
}

static void arm_timer(struct vdi_loop *loop, vd_mono due)
{
	struct itimerspec spec = { { 0 } };

	if (due.ns >= loop->timer_fd_due.ns)
		return;
	loop->timer_fd_due = due;
	due.ns = VDI_MAX(due.ns, 1); /* 0 would disarm the timerfd */
	spec.it_value = (struct timespec) { .tv_sec = due.ns / 1000000000, .tv_nsec = due.ns % 1000000000 };
	VDI_CHECK(timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL) == 0);
}

void vdi_loop_note_work(void)
{
	if (current_loop && atomic_load_explicit(&current_loop->work_began_ns, memory_order_relaxed) == 0)
		atomic_store_explicit(&current_loop->work_began_ns, vd_env_now(current_loop->env).ns,
				      memory_order_relaxed);
}

bool vdi_loop_is_busy(const struct vdi_loop *loop, vd_dur least)
{
	vd_mono began = { atomic_load_explicit(&loop->work_began_ns, memory_order_relaxed) };

	return began.ns && vd_mono_since(vd_env_now(loop->env), began).ns >= least.ns;
}

static void note_longest(_Atomic int64_t *longest_ns, struct vdi_metric *metric, int64_t ns)
{
	if (ns <= atomic_load_explicit(longest_ns, memory_order_relaxed))
		return;
	atomic_store_explicit(longest_ns, ns, memory_order_relaxed);
	vdi_metric_set_max(metric, ns / 1000);
}

static void end_iteration(struct vdi_loop *loop)
{
	vd_mono now = vd_env_now(loop->env);
	vd_mono began = { atomic_load_explicit(&loop->work_began_ns, memory_order_relaxed) };
	int64_t wall_ns = began.ns ? vd_mono_since(now, began).ns : INT64_MAX;
	vd_dur	cpu;

	if (began.ns)
		note_longest(&loop->longest_wall_ns, loop->longest_wall, wall_ns);
	atomic_store_explicit(&loop->work_began_ns, 0, memory_order_relaxed);
	if (vd_mono_since(now, loop->cpu_read).ns < CPU_READ_INTERVAL.ns)
		return;
	cpu = vdi_thread_cpu();
	note_longest(&loop->longest_cpu_ns, loop->longest_cpu, VDI_MIN(cpu.ns - loop->cpu.ns, wall_ns));
	loop->cpu = cpu;
	loop->cpu_read = now;
}

struct vdi_loop_iteration vdi_loop_longest_iteration(const struct vdi_loop *loop)
{
	return (struct vdi_loop_iteration) {
		{ atomic_load_explicit(&loop->longest_wall_ns, memory_order_relaxed) },
		{ atomic_load_explicit(&loop->longest_cpu_ns, memory_order_relaxed) }
	};
}

static void dispatch(struct vdi_loop *loop)
{
	struct loop_actor *actor;
	struct loop_actor *again = NULL, **again_end = &again;
	vd_mono		   due, until;
	bool		   has_more;
	bool		   is_stopping;

	vdi_loop_note_work();
	until = vd_mono_add(vd_env_now(loop->env), ROUND_TIME_MAX);
	vdi_lock_acquire(&loop->lock);
	loop->is_dispatching = true;
	for (unsigned i = 0; i < ROUND_MAX && (i == 0 || vd_env_now(loop->env).ns < until.ns); i++) {
		fire_timers_locked(loop);
		if (loop->is_stopping || (actor = pop_locked(loop)) == NULL)
			break;
		vdi_lock_release(&loop->lock);
		actor = run_actor(actor);
		vdi_lock_acquire(&loop->lock);
		if (actor) {
			actor->queue_next = NULL;
			*again_end = actor;
			again_end = &actor->queue_next;
		}
	}
	while ((actor = again)) {
		again = actor->queue_next;
		push_locked(loop, actor);
	}
	loop->is_dispatching = false;
	has_more = loop->queue_first != NULL;
	is_stopping = loop->is_stopping;
	due = vdi_timer_heap_next_due(&loop->timers);
	vdi_lock_release(&loop->lock);

	arm_timer(loop, due);
	if (is_stopping)
		event_base_loopbreak(loop->base);
	else if (has_more)
		take_turn(loop);
}

static void drain(int fd)
{
	uint64_t count;
	ssize_t	 got = read(fd, &count, sizeof count);

	VDI_CHECK(got == sizeof count || errno == EAGAIN || errno == EINTR);
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct vdi_loop *loop = arg;

	(void) what;
	vdi_lock_acquire(&loop->lock);
	drain(fd);
	loop->is_notified = false;
	vdi_lock_release(&loop->lock);
	dispatch(loop);
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
	struct vdi_loop *loop = arg;

	(void) what;
	drain(fd);
	loop->timer_fd_due = VD_NEVER;
	dispatch(loop);
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
	(void) fd;
	(void) what;
	dispatch(arg);
}

/* ---- The loop ---- */

static struct event_base *new_base(void)
{
	struct event_config *config = event_config_new();
	struct event_base   *base = NULL;

	if (config && event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK) == 0)
		base = event_base_new_with_config(config);
	if (config)
		event_config_free(config);
	return base;
}

/* Works on a half-built loop too. Freeing the base removes its events. */
static void free_loop(struct vdi_loop *loop)
{
	vdi_metric_release(loop->longest_wall);
	vdi_metric_release(loop->longest_cpu);
	if (loop->base)
		event_base_free(loop->base);
	if (loop->event_fd >= 0)
		close(loop->event_fd);
	if (loop->timer_fd >= 0)
		close(loop->timer_fd);
	vdi_lock_fini(&loop->lock);
	vdi_free(loop);
}

vd_status vdi_loop_new(const struct vd_env *env, struct vdi_loop **ret_loop)
{
	static const struct vd_executor_ops ops = { loop_actor_new, loop_actor_wake, loop_actor_set_timer,
						    loop_actor_close };
	struct vdi_loop			   *loop;

	VDI_CHECK(vdi_env_sim(env) == NULL);
	loop = VDI_NEW(struct vdi_loop);
	if (loop == NULL)
		return VD_NOMEM;
	loop->env = env;
	loop->timer_fd_due = VD_NEVER;
	loop->executor = (struct vd_executor) { &ops, loop };
	vdi_lock_init(&loop->lock, VDI_LOCK_LOOP);
	loop->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	loop->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (loop->event_fd < 0 || loop->timer_fd < 0) {
		free_loop(loop);
		return VD_IO;
	}
	loop->base = new_base();
	if (loop->base == NULL ||
	    event_assign(&loop->wake_event, loop->base, loop->event_fd, EV_READ | EV_PERSIST, on_wake,
			 loop) != 0 ||
	    event_assign(&loop->timer_event, loop->base, loop->timer_fd, EV_READ | EV_PERSIST, on_time,
			 loop) != 0 ||
	    evtimer_assign(&loop->turn_event, loop->base, on_turn, loop) != 0 ||
	    event_add(&loop->wake_event, NULL) != 0 || event_add(&loop->timer_event, NULL) != 0) {
		free_loop(loop);
		return VD_NOMEM;
	}
	*ret_loop = loop;
	return VD_OK;
}

void vdi_loop_run(struct vdi_loop *loop)
{
	struct vdi_loop *outer = current_loop;
	bool		 is_stopping;

	current_loop = loop;
	loop->cpu = vdi_thread_cpu();
	loop->cpu_read = vd_env_now(loop->env);
	dispatch(loop);
	end_iteration(loop); /* the code after this may block */
	do {
		vdi_lock_acquire(&loop->lock);
		is_stopping = loop->is_stopping;
		loop->is_stopping = false;
		vdi_lock_release(&loop->lock);
		if (!is_stopping)
			VDI_CHECK(event_base_loop(loop->base, EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY) >= 0);
		end_iteration(loop);
	} while (!is_stopping);
	current_loop = outer;
}

static void *run_thread(void *arg)
{
	vdi_loop_run(arg);
	return NULL;
}

vd_status vdi_loop_set_name(struct vdi_loop *loop, const char *name)
{
	const char *wall[] = { name, "wall" }, *cpu[] = { name, "cpu" };

	VDI_CHECK(loop->longest_wall == NULL);
	VDI_TRY(vdi_metric_get(vdi_env_metrics(loop->env), VDI_METRIC_LOOP_ITERATION_MAX, wall,
			       &loop->longest_wall));
	return vdi_metric_get(vdi_env_metrics(loop->env), VDI_METRIC_LOOP_ITERATION_MAX, cpu,
			      &loop->longest_cpu);
}

vd_status vdi_loop_start_thread(struct vdi_loop *loop, const char *name)
{
	VDI_CHECK(!loop->has_thread);
	VDI_TRY(vdi_loop_set_name(loop, name));
	VDI_TRY(vdi_thread_start(&loop->thread, name, run_thread, loop));
	loop->has_thread = true;
	return VD_OK;
}

void vdi_loop_stop(struct vdi_loop *loop)
{
	vdi_lock_acquire(&loop->lock);
	loop->is_stopping = true;
	notify_and_unlock(loop);
}

struct vdi_loop *vdi_loop_free(struct vdi_loop *loop)
{
	struct loop_actor *actor;

	if (loop == NULL)
		return NULL;
	if (loop->has_thread) {
		vdi_loop_stop(loop);
		vdi_thread_join(&loop->thread);
	}
	VDI_CHECK(atomic_load(&loop->actors_open) == 0);
	vdi_lock_acquire(&loop->lock);
	while ((actor = pop_locked(loop)) != NULL) {
		vdi_lock_release(&loop->lock);
		VDI_CHECK(run_actor(actor) == NULL); /* only closing actors are left */
		vdi_lock_acquire(&loop->lock);
	}
	vdi_lock_release(&loop->lock);
	event_del(&loop->wake_event);
	event_del(&loop->timer_event);
	evtimer_del(&loop->turn_event);
	free_loop(loop);
	return NULL;
}

struct event_base *vdi_loop_base(struct vdi_loop *loop)
{
	return loop->base;
}

const struct vd_executor *vdi_loop_executor(const struct vdi_loop *loop)
{
	return &loop->executor;
}

bool vdi_loop_is_current(const struct vdi_loop *loop)
{
	return current_loop == loop;
}
