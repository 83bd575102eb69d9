/* Ready actors are in a queue under the loop's lock. Another thread that queues the first of them writes to
 * the eventfd, unless the loop is dispatching and will check the queue again anyway. On the loop's own thread
 * no write is needed: an event with a zero timeout makes libevent call the dispatch in its next iteration,
 * after it has polled the sockets.
 *
 * One dispatch runs at most DISPATCH_MAX actors, starts none after DISPATCH_TIME_MAX, and then returns to
 * libevent. An actor that wakes itself runs again in the next dispatch. So actors that keep themselves ready
 * cannot starve sockets.
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
#include "metrics.h"
#include "run_queue.h"
#include "thread.h"
#include "wait.h"

#define DISPATCH_MAX 256
#define DISPATCH_TIME_MAX ((vd_dur) { 5000000 })
/* Reading the CPU clock of a thread is a system call, too slow for each of many short iterations. */
#define CPU_READ_INTERVAL ((vd_dur) { 1000000 })

struct vdi_loop {
	/* Fixed at creation. */
	const struct vd_env *env;
	struct event_base   *base;
	int		     event_fd;
	int		     timer_fd;
	struct vd_executor   executor;

	/* Loop thread only. */
	struct event wake_event;      /* eventfd is readable */
	struct event iteration_event; /* zero timeout: dispatch in the next iteration */
	struct event timer_event;     /* timerfd is readable */
	vd_mono	     timer_fd_due;    /* deadline set in the timerfd */
	vd_dur	     cpu;	      /* CPU time of the thread at cpu_read */
	vd_mono	     cpu_read;	      /* end of an iteration */

	/* Written by the loop thread, read by any thread. */
	_Atomic int64_t	   work_began_ns; /* start of the work of this iteration; 0: not started */
	_Atomic int64_t	   longest_wall_ns, longest_cpu_ns;
	struct vdi_metric *longest_wall, *longest_cpu; /* NULL: the loop has no name */

	/* Owner thread only. */
	struct vdi_thread thread;
	bool		  has_thread;

	/* Its lock protects the flags below too. */
	struct vdi_run_queue ready;
	bool		     is_notified;    /* the eventfd was written and not yet read */
	bool		     is_dispatching; /* will check queue and timers before it returns to libevent */
	bool		     is_stopping;
};

/* Loop whose callbacks the current thread runs. */
static __thread struct vdi_loop *current_loop;

static void request_iteration(struct vdi_loop *loop)
{
	static const struct timeval zero;

	if (!evtimer_pending(&loop->iteration_event, NULL))
		VDI_CHECK(evtimer_add(&loop->iteration_event, &zero) == 0);
}

/* Makes the loop check queue, timers and stop flag. The caller holds the lock; it is released here, before
 * the write to the eventfd. */
static void notify_and_unlock(struct vdi_loop *loop)
{
	bool	 is_silent = loop->is_notified || loop->is_dispatching;
	uint64_t one = 1;

	if (!is_silent && current_loop == loop) {
		vdi_lock_release(&loop->ready.lock);
		request_iteration(loop);
		return;
	}
	loop->is_notified |= !is_silent;
	vdi_lock_release(&loop->ready.lock);
	if (!is_silent) {
		ssize_t written;

		do
			written = write(loop->event_fd, &one, sizeof one);
		while (written < 0 && errno == EINTR);
		VDI_CHECK(written == sizeof one);
	}
}

static void enqueue(struct vdi_queued_actor *actor)
{
	struct vdi_loop *loop = VDI_CONTAINER_OF(actor->queue, struct vdi_loop, ready);

	vdi_lock_acquire(&loop->ready.lock);
	vdi_run_queue_push_locked(&loop->ready, actor);
	notify_and_unlock(loop);
}

/* ---- Actors ---- */

static void loop_actor_wake(struct vd_actor *base)
{
	struct vdi_queued_actor *actor = vdi_queued_actor_of(base);

	if (vdi_actor_state_wake(&actor->state))
		enqueue(actor);
}

static void loop_actor_set_timer(struct vd_actor *base, vd_mono due)
{
	struct vdi_queued_actor *actor = vdi_queued_actor_of(base);
	struct vdi_loop		*loop = VDI_CONTAINER_OF(actor->queue, struct vdi_loop, ready);
	vd_mono			 before;

	vdi_lock_acquire(&loop->ready.lock);
	before = vdi_timer_heap_next_due(&loop->ready.timers);
	vdi_timer_heap_set(&loop->ready.timers, &actor->timer, due);
	if (vdi_timer_heap_next_due(&loop->ready.timers).ns < before.ns)
		notify_and_unlock(loop);
	else
		vdi_lock_release(
			/* an event that fires too early only checks the timers and sets itself again */
			&loop->ready.lock);
}

static void loop_actor_close(struct vd_actor *base, void (*done)(void *arg), void *arg)
{
	struct vdi_queued_actor *actor = vdi_queued_actor_of(base);

	if (vdi_queued_actor_close(actor, done, arg))
		enqueue(actor);
}

static vd_status loop_actor_new(void *executor, const struct vd_actor_options *options,
				struct vd_actor **ret_actor)
{
	static const struct vd_executor_ops ops = { loop_actor_new, loop_actor_wake, loop_actor_set_timer,
						    loop_actor_close };
	struct vdi_loop			   *loop = executor;

	/* A loop must not block, so blocking actors run on the env's executor. */
	if (options->blocking)
		return vd_executor_actor_new(vdi_env_executor(loop->env), options, ret_actor);
	return vdi_queued_actor_new(&loop->ready, &ops, options, ret_actor);
}

/* ---- Dispatch, on the loop thread ---- */

static void fire_timers_locked(struct vdi_loop *loop)
{
	if (loop->ready.timers.count)
		vdi_run_queue_fire_timers_locked(&loop->ready, vd_env_now(loop->env));
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
	struct vdi_queued_actor *actor;
	struct vdi_queued_actor *again = NULL, **again_end = &again;
	vd_mono			 due, until;
	bool			 has_more;
	bool			 is_stopping;

	vdi_loop_note_work();
	until = vd_mono_add(vd_env_now(loop->env), DISPATCH_TIME_MAX);
	vdi_lock_acquire(&loop->ready.lock);
	loop->is_dispatching = true;
	for (unsigned i = 0; i < DISPATCH_MAX && (i == 0 || vd_env_now(loop->env).ns < until.ns); i++) {
		fire_timers_locked(loop);
		if (loop->is_stopping || (actor = vdi_run_queue_pop_locked(&loop->ready)) == NULL)
			break;
		vdi_lock_release(&loop->ready.lock);
		actor = vdi_queued_actor_run(actor);
		vdi_lock_acquire(&loop->ready.lock);
		if (actor) {
			actor->next = NULL;
			*again_end = actor;
			again_end = &actor->next;
		}
	}
	while ((actor = again)) {
		again = actor->next;
		vdi_run_queue_push_locked(&loop->ready, actor);
	}
	loop->is_dispatching = false;
	has_more = loop->ready.first != NULL;
	is_stopping = loop->is_stopping;
	due = vdi_timer_heap_next_due(&loop->ready.timers);
	vdi_lock_release(&loop->ready.lock);

	arm_timer(loop, due);
	if (is_stopping)
		event_base_loopbreak(loop->base);
	else if (has_more)
		request_iteration(loop);
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
	vdi_lock_acquire(&loop->ready.lock);
	drain(fd);
	loop->is_notified = false;
	vdi_lock_release(&loop->ready.lock);
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

static void on_iteration(evutil_socket_t fd, short what, void *arg)
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
	vdi_run_queue_fini(&loop->ready);
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
	vdi_run_queue_init(&loop->ready, VDI_LOCK_LOOP);
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
	    evtimer_assign(&loop->iteration_event, loop->base, on_iteration, loop) != 0 ||
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
		vdi_lock_acquire(&loop->ready.lock);
		is_stopping = loop->is_stopping;
		loop->is_stopping = false;
		vdi_lock_release(&loop->ready.lock);
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
	vdi_lock_acquire(&loop->ready.lock);
	loop->is_stopping = true;
	notify_and_unlock(loop);
}

struct vdi_loop *vdi_loop_free(struct vdi_loop *loop)
{
	if (loop == NULL)
		return NULL;
	if (loop->has_thread) {
		vdi_loop_stop(loop);
		vdi_thread_join(&loop->thread);
	}
	VDI_CHECK(atomic_load(&loop->ready.actors_open) == 0);
	vdi_run_queue_drain(&loop->ready);
	event_del(&loop->wake_event);
	event_del(&loop->timer_event);
	evtimer_del(&loop->iteration_event);
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
