/* One epoll descriptor combines two others: an eventfd, readable while the queue is not empty, and a timerfd,
 * set to the earliest timer. Unlike the libevent loop (actor_loop.c) the poller does not know whether the
 * caller sleeps, so the first wake after an empty queue always writes to the eventfd; a run that empties the
 * queue reads it. */
#include "actor_poll.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "actor_state.h"
#include "env.h"
#include "lock.h"
#include "timer.h"
#include "usage.h"
#include "wait.h"

struct poll_actor {
	struct vd_actor		actor;
	struct vd_poller       *poller;
	struct vd_actor_options options;
	vdi_actor_state		state;

	/* Written before CLOSING is set. */
	void (*done)(void *arg);
	void *done_arg;

	/* Under the poller's lock. */
	struct poll_actor *queue_next;
	struct vdi_timer   timer;
};

struct vd_poller {
	/* Fixed at creation. */
	const struct vd_env *env;
	int		     poll_fd;
	int		     event_fd;
	int		     timer_fd;
	struct vd_executor   executor;
	_Atomic int64_t	     actors_open;
	/* thread that ran the poller last; until then the thread that created it */
	_Atomic(const char *) served_by;
	struct vdi_usage      usage;

	/* Under lock. */
	struct vdi_lock	      lock; /* VDI_LOCK_LOOP */
	struct poll_actor    *queue_first;
	struct poll_actor    *queue_last;
	struct vdi_timer_heap timers;
	bool		      is_notified;  /* the eventfd is readable */
	bool		      is_running;   /* will check queue and timers before it returns */
	vd_mono		      timer_fd_due; /* deadline set in the timerfd */
};

/* The address identifies the thread. */
static __thread const char this_thread;

static void push_locked(struct vd_poller *poller, struct poll_actor *actor)
{
	actor->queue_next = NULL;
	if (poller->queue_last)
		poller->queue_last->queue_next = actor;
	else
		poller->queue_first = actor;
	poller->queue_last = actor;
}

static struct poll_actor *pop_locked(struct vd_poller *poller)
{
	struct poll_actor *actor = poller->queue_first;

	if (actor) {
		poller->queue_first = actor->queue_next;
		if (poller->queue_first == NULL)
			poller->queue_last = NULL;
	}
	return actor;
}

/* Under the lock, so that the descriptor is readable exactly while the queue is not empty. */
static void set_readable_locked(struct vd_poller *poller, bool readable)
{
	uint64_t count = 1;
	ssize_t	 size;

	if (poller->is_notified == readable)
		return;
	poller->is_notified = readable;
	do
		size = readable ? write(poller->event_fd, &count, sizeof count) :
				  read(poller->event_fd, &count, sizeof count);
	while (size < 0 && errno == EINTR);
	VDI_CHECK(size == sizeof count);
}

static void arm_timer_locked(struct vd_poller *poller)
{
	vd_mono		  due = vdi_timer_heap_next_due(&poller->timers);
	struct itimerspec spec = { { 0 } };

	if (due.ns == poller->timer_fd_due.ns)
		return;
	poller->timer_fd_due = due;
	if (due.ns != INT64_MAX) {
		due.ns = VDI_MAX(due.ns, (int64_t) 1); /* 0 disarms the timerfd */
		spec.it_value =
			(struct timespec) { .tv_sec = due.ns / 1000000000, .tv_nsec = due.ns % 1000000000 };
	}
	VDI_CHECK(timerfd_settime(poller->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL) == 0);
}

static void enqueue(struct poll_actor *actor)
{
	struct vd_poller *poller = actor->poller;

	vdi_lock_acquire(&poller->lock);
	push_locked(poller, actor);
	if (!poller->is_running)
		set_readable_locked(poller, true);
	vdi_lock_release(&poller->lock);
}

/* ---- Actors ---- */

static void poll_actor_wake(struct vd_actor *base)
{
	struct poll_actor *actor = VDI_CONTAINER_OF(base, struct poll_actor, actor);

	if (vdi_actor_state_wake(&actor->state))
		enqueue(actor);
}

static void poll_actor_set_timer(struct vd_actor *base, vd_mono due)
{
	struct poll_actor *actor = VDI_CONTAINER_OF(base, struct poll_actor, actor);
	struct vd_poller  *poller = actor->poller;

	vdi_lock_acquire(&poller->lock);
	vdi_timer_heap_set(&poller->timers, &actor->timer, due);
	if (!poller->is_running)
		arm_timer_locked(poller);
	vdi_lock_release(&poller->lock);
}

static void poll_actor_close(struct vd_actor *base, void (*done)(void *arg), void *arg)
{
	struct poll_actor *actor = VDI_CONTAINER_OF(base, struct poll_actor, actor);

	atomic_fetch_sub(&actor->poller->actors_open, 1);
	actor->done = done;
	actor->done_arg = arg;
	if (vdi_actor_state_close(&actor->state))
		enqueue(actor);
}

static vd_status poll_actor_new(void *executor, const struct vd_actor_options *options,
				struct vd_actor **ret_actor);

static const struct vd_executor_ops poll_ops = { poll_actor_new, poll_actor_wake, poll_actor_set_timer,
						 poll_actor_close };

static vd_status poll_actor_new(void *executor, const struct vd_actor_options *options,
				struct vd_actor **ret_actor)
{
	struct vd_poller  *poller = executor;
	struct poll_actor *actor;

	/* Blocking actors must not run on the caller's thread. */
	if (options->blocking)
		return vd_executor_actor_new(vdi_env_executor(poller->env), options, ret_actor);
	actor = VDI_NEW(struct poll_actor);
	if (actor == NULL)
		return VD_NOMEM;
	actor->actor.ops = &poll_ops;
	actor->poller = poller;
	actor->options = *options;
	atomic_init(&actor->state, 0);
	atomic_fetch_add(&poller->actors_open, 1);
	*ret_actor = &actor->actor;
	return VD_OK;
}

static void end_actor(struct poll_actor *actor)
{
	void (*done)(void *arg) = actor->done;
	void *done_arg = actor->done_arg;

	vdi_lock_acquire(&actor->poller->lock);
	vdi_timer_heap_remove(&actor->poller->timers, &actor->timer);
	vdi_lock_release(&actor->poller->lock);
	vdi_free(actor);
	if (done)
		done(done_arg);
}

/* Returns the actor if it must be queued again. */
static struct poll_actor *run_actor(struct poll_actor *actor)
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

/* ---- The poller ---- */

static void fire_timers_locked(struct vd_poller *poller)
{
	struct vdi_timer *timer;
	vd_mono		  now;

	if (poller->timers.count == 0)
		return;
	now = vd_env_now(poller->env);
	while ((timer = vdi_timer_heap_pop_due(&poller->timers, now)) != NULL) {
		struct poll_actor *actor = VDI_CONTAINER_OF(timer, struct poll_actor, timer);

		if (vdi_actor_state_wake(&actor->state))
			push_locked(poller, actor);
	}
}

size_t vd_poller_run(struct vd_poller *poller)
{
	struct poll_actor *actor;
	size_t		   count;

	vdi_lock_acquire(&poller->lock);
	if (poller->is_running)
		vdi_misuse("vd_poller_run: the poller is already running: do not call it from a callback, or "
			   "on two threads at a time");
	atomic_store(&poller->served_by, &this_thread);
	poller->is_running = true;
	for (count = 0; count < VDI_POLLER_ROUND_MAX; count++) {
		fire_timers_locked(poller);
		if ((actor = pop_locked(poller)) == NULL)
			break;
		vdi_lock_release(&poller->lock);
		actor = run_actor(actor);
		vdi_lock_acquire(&poller->lock);
		if (actor)
			push_locked(poller, actor);
	}
	poller->is_running = false;
	set_readable_locked(poller, poller->queue_first != NULL);
	arm_timer_locked(poller);
	vdi_lock_release(&poller->lock);
	return count;
}

static void free_poller(struct vd_poller *poller)
{
	vdi_usage_end(&poller->usage);
	if (poller->poll_fd >= 0)
		close(poller->poll_fd);
	if (poller->event_fd >= 0)
		close(poller->event_fd);
	if (poller->timer_fd >= 0)
		close(poller->timer_fd);
	vdi_lock_fini(&poller->lock);
	vdi_free(poller);
}

static bool add_fd(struct vd_poller *poller, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return fd >= 0 && epoll_ctl(poller->poll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

vd_status vd_poller_new(const struct vd_env *env, struct vd_poller **ret_poller)
{
	struct vd_poller *poller;

	VDI_REQUIRE(env, NULL);
	VDI_REQUIRE(ret_poller, NULL);
	if (vdi_env_sim(env))
		return VD_INVALID_ARGUMENT;
	poller = VDI_NEW(struct vd_poller);
	if (poller == NULL)
		return VD_NOMEM;
	poller->env = env;
	poller->executor = (struct vd_executor) { &poll_ops, poller };
	atomic_init(&poller->served_by, &this_thread);
	poller->usage = (struct vdi_usage) { .kind = "poller", .closed_by = "vd_poller_free", .env = env };
	poller->timer_fd_due = VD_NEVER;
	vdi_lock_init(&poller->lock, VDI_LOCK_LOOP);
	poller->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	poller->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	poller->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (poller->poll_fd < 0 || !add_fd(poller, poller->event_fd) || !add_fd(poller, poller->timer_fd)) {
		free_poller(poller);
		return VD_IO;
	}
	vdi_usage_begin(&poller->usage);
	*ret_poller = poller;
	return VD_OK;
}

bool vdi_poller_serves_here(const struct vd_executor *executor)
{
	return executor && executor->ops == &poll_ops &&
	       atomic_load(&((struct vd_poller *) executor->executor)->served_by) == &this_thread;
}

int vd_poller_fd(const struct vd_poller *poller)
{
	return poller->poll_fd;
}

const struct vd_executor *vd_poller_executor(const struct vd_poller *poller)
{
	return &poller->executor;
}

struct vd_poller *vd_poller_free(struct vd_poller *poller)
{
	struct poll_actor *actor;

	if (poller == NULL)
		return NULL;
	vdi_lock_acquire(&poller->lock);
	if (poller->is_running)
		vdi_misuse("vd_poller_free: the poller is running: do not call it from a callback");
	if (atomic_load(&poller->actors_open))
		vdi_misuse("vd_poller_free: %lld watchers, informers and actors are still open on the "
			   "poller; close them, and run the poller until their done callbacks were called",
			   (long long) atomic_load(&poller->actors_open));
	while ((actor = pop_locked(poller)) != NULL) {
		vdi_lock_release(&poller->lock);
		VDI_CHECK(run_actor(actor) == NULL); /* only closing actors are left */
		vdi_lock_acquire(&poller->lock);
	}
	vdi_lock_release(&poller->lock);
	free_poller(poller);
	return NULL;
}
