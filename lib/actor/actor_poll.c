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

#include "run_queue.h"
#include "usage.h"

struct vd_poller {
	/* Fixed at creation. */
	const struct vd_env *env;
	int		     poll_fd;
	int		     event_fd;
	int		     timer_fd;
	struct vd_executor   executor;
	/* thread that ran the poller last; until then the thread that created it */
	_Atomic(const char *) served_by;
	struct vdi_usage      usage;

	/* Its lock, VDI_LOCK_LOOP, protects the fields below too. */
	struct vdi_run_queue ready;
	bool		     is_notified;  /* the eventfd is readable */
	bool		     is_running;   /* will check queue and timers before it returns */
	vd_mono		     timer_fd_due; /* deadline set in the timerfd */
};

/* The address identifies the thread. */
static __thread const char this_thread;

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
	vd_mono		  due = vdi_timer_heap_next_due(&poller->ready.timers);
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

static void enqueue(struct vdi_queued_actor *actor)
{
	struct vd_poller *poller = VDI_CONTAINER_OF(actor->queue, struct vd_poller, ready);

	vdi_lock_acquire(&poller->ready.lock);
	vdi_run_queue_push_locked(&poller->ready, actor);
	if (!poller->is_running)
		set_readable_locked(poller, true);
	vdi_lock_release(&poller->ready.lock);
}

/* ---- Actors ---- */

static void poll_actor_wake(struct vd_actor *base)
{
	struct vdi_queued_actor *actor = vdi_queued_actor_of(base);

	if (vdi_actor_state_wake(&actor->state))
		enqueue(actor);
}

static void poll_actor_set_timer(struct vd_actor *base, vd_mono due)
{
	struct vdi_queued_actor *actor = vdi_queued_actor_of(base);
	struct vd_poller	*poller = VDI_CONTAINER_OF(actor->queue, struct vd_poller, ready);

	vdi_lock_acquire(&poller->ready.lock);
	vdi_timer_heap_set(&poller->ready.timers, &actor->timer, due);
	if (!poller->is_running)
		arm_timer_locked(poller);
	vdi_lock_release(&poller->ready.lock);
}

static void poll_actor_close(struct vd_actor *base, void (*done)(void *arg), void *arg)
{
	struct vdi_queued_actor *actor = vdi_queued_actor_of(base);

	if (vdi_queued_actor_close(actor, done, arg))
		enqueue(actor);
}

static vd_status poll_actor_new(void *executor, const struct vd_actor_options *options,
				struct vd_actor **ret_actor);

static const struct vd_executor_ops poll_ops = { poll_actor_new, poll_actor_wake, poll_actor_set_timer,
						 poll_actor_close };

static vd_status poll_actor_new(void *executor, const struct vd_actor_options *options,
				struct vd_actor **ret_actor)
{
	struct vd_poller *poller = executor;

	/* Blocking actors must not run on the caller's thread. */
	if (options->blocking)
		return vd_executor_actor_new(vdi_env_executor(poller->env), options, ret_actor);
	return vdi_queued_actor_new(&poller->ready, &poll_ops, options, ret_actor);
}

/* ---- The poller ---- */

static void fire_timers_locked(struct vd_poller *poller)
{
	if (poller->ready.timers.count)
		vdi_run_queue_fire_timers_locked(&poller->ready, vd_env_now(poller->env));
}

size_t vd_poller_run(struct vd_poller *poller)
{
	struct vdi_queued_actor *actor;
	size_t			 count;

	vdi_lock_acquire(&poller->ready.lock);
	if (poller->is_running)
		vdi_misuse("vd_poller_run: the poller is already running: do not call it from a callback, or "
			   "on two threads at a time");
	atomic_store(&poller->served_by, &this_thread);
	poller->is_running = true;
	for (count = 0; count < VDI_POLLER_RUN_MAX; count++) {
		fire_timers_locked(poller);
		if ((actor = vdi_run_queue_pop_locked(&poller->ready)) == NULL)
			break;
		vdi_lock_release(&poller->ready.lock);
		actor = vdi_queued_actor_run(actor);
		vdi_lock_acquire(&poller->ready.lock);
		if (actor)
			vdi_run_queue_push_locked(&poller->ready, actor);
	}
	poller->is_running = false;
	set_readable_locked(poller, poller->ready.first != NULL);
	arm_timer_locked(poller);
	vdi_lock_release(&poller->ready.lock);
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
	vdi_run_queue_fini(&poller->ready);
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
	vdi_run_queue_init(&poller->ready, VDI_LOCK_LOOP);
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
	if (poller == NULL)
		return NULL;
	vdi_lock_acquire(&poller->ready.lock);
	if (poller->is_running)
		vdi_misuse("vd_poller_free: the poller is running: do not call it from a callback");
	if (atomic_load(&poller->ready.actors_open))
		vdi_misuse("vd_poller_free: %lld watchers, informers and actors are still open on the "
			   "poller; close them, and run the poller until their done callbacks were called",
			   (long long) atomic_load(&poller->ready.actors_open));
	vdi_lock_release(&poller->ready.lock);
	vdi_run_queue_drain(&poller->ready);
	free_poller(poller);
	return NULL;
}
