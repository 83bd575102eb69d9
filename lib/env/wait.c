/* The waiter sleeps on one word of memory (a futex). With a mutex, the woken waiter found the mutex still
 * held by the signaller and slept a second time; here it wakes once and does not block, and if the signal
 * comes first neither thread makes a system call.
 *
 * Once the word is DONE the waiter may free everything, so the signaller does not access it afterwards: the
 * wake names an address but does not read it. If other data is there by then, its sleeper gets a spurious
 * wake-up, which a futex allows at any time (glibc's semaphores do the same).
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "wait.h"
#include "env.h"

enum { WAIT_OPEN, WAIT_SLEEPING, WAIT_DONE };

/* Maximum waiters that depend on one: if the scheduler delays that one, no more than these are delayed with
 * it. */
#define BATCH_WAITS_MAX 32

static __thread struct vdi_wait_batch *current_batch;

void vdi_wait_init(struct vdi_wait *wait, const struct vd_env *env)
{
	*wait = (struct vdi_wait) { .env = env };
	atomic_init(&wait->state, WAIT_OPEN);
}

void vdi_wait_init_chained(struct vdi_wait *wait, const struct vd_env *env)
{
	vdi_wait_init(wait, env);
	wait->is_chained = true;
}

void vdi_wait_fini(struct vdi_wait *wait)
{
	wait->env = NULL; /* a later wait on it fails at once */
}

static void signal_one(struct vdi_wait *wait)
{
	_Atomic uint32_t *word = &wait->state;
	uint32_t	  before = atomic_exchange_explicit(word, WAIT_DONE, memory_order_acq_rel);

	VDI_CHECK(before != WAIT_DONE);
	if (before == WAIT_SLEEPING)
		(void) syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void signal_with_rest(struct vdi_wait *wait, unsigned rest_count)
{
	wait->rest = wait->next;
	wait->rest_count = rest_count;
	signal_one(wait);
}

/* Signals the first of each half of the list; the waiters of these two do the same for the rest of their
 * halves. */
static void signal_list(struct vdi_wait *first, unsigned count)
{
	unsigned	 half = (count + 1) / 2;
	struct vdi_wait *second = first;

	if (count == 0)
		return;
	for (unsigned i = 0; i < half; i++)
		second = second->next;
	signal_with_rest(first, half - 1);
	if (count > half)
		signal_with_rest(second, count - half - 1);
}

static void flush(struct vdi_wait_batch *batch)
{
	struct vdi_wait *first = batch->first;
	unsigned	 count = batch->count;

	batch->first = NULL;
	batch->count = 0;
	signal_list(first, count);
}

void vdi_wait_signal(struct vdi_wait *wait)
{
	struct vdi_wait_batch *batch = current_batch;

	if (batch == NULL || !wait->is_chained) {
		signal_one(wait);
		return;
	}
	if (batch->first)
		batch->last->next = wait;
	else
		batch->first = wait;
	batch->last = wait;
	if (++batch->count == BATCH_WAITS_MAX)
		flush(batch);
}

void vdi_wait_batch_begin(struct vdi_wait_batch *batch)
{
	*batch = (struct vdi_wait_batch) { .outer = current_batch };
	current_batch = batch;
}

void vdi_wait_batch_end(struct vdi_wait_batch *batch)
{
	VDI_CHECK(current_batch == batch);
	current_batch = batch->outer;
	flush(batch);
}

struct vdi_wait_batch *vdi_wait_batch_swap(struct vdi_wait_batch *batch)
{
	struct vdi_wait_batch *before = current_batch;

	current_batch = batch;
	return before;
}

void vdi_wait_signal_arg(void *wait)
{
	vdi_wait_signal(wait);
}

bool vdi_wait_is_done(struct vdi_wait *wait)
{
	return atomic_load_explicit(&wait->state, memory_order_acquire) == WAIT_DONE;
}

static bool is_done_arg(void *wait)
{
	return vdi_wait_is_done(wait);
}

/* Sleeps until the word has changed, due has passed, or spuriously. False: due has passed. */
static bool sleep_on(_Atomic uint32_t *word, vd_mono due)
{
	struct timespec at = { .tv_sec = VDI_MAX(due.ns, 0) / 1000000000,
			       .tv_nsec = VDI_MAX(due.ns, 0) % 1000000000 };
	long		error = syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, WAIT_SLEEPING,
				due.ns == VD_NEVER.ns ? NULL : &at, NULL, FUTEX_BITSET_MATCH_ANY);

	VDI_CHECK(error == 0 || errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT);
	return error == 0 || errno != ETIMEDOUT;
}

static void wait_driving(struct vdi_wait *wait, vd_mono due)
{
	vd_dur limit = { due.ns == VD_NEVER.ns ? INT64_MAX : VDI_MAX(due.ns - vd_env_now(wait->env).ns, 0) };

	/* The env is const for its users; a thread that waits on a simulated env drives it. */
	(void) wait->env->drive((struct vd_env *) wait->env, is_done_arg, wait, limit);
}

static void wait_asleep(struct vdi_wait *wait, vd_mono due)
{
	uint32_t open = WAIT_OPEN;
	bool	 is_early = true;

	(void) atomic_compare_exchange_strong_explicit(&wait->state, &open, WAIT_SLEEPING,
						       memory_order_relaxed, memory_order_relaxed);
	while (!vdi_wait_is_done(wait) && is_early)
		is_early = sleep_on(&wait->state, due);
}

bool vdi_wait_until(struct vdi_wait *wait, vd_mono due)
{
	unsigned count;

	if (wait->env->drive)
		wait_driving(wait, due);
	else
		wait_asleep(wait, due);
	if (!vdi_wait_is_done(wait))
		return false;
	count = wait->rest_count;
	wait->rest_count = 0;
	signal_list(wait->rest, count);
	return true;
}

void vdi_wait_wait(struct vdi_wait *wait)
{
	VDI_CHECK(vdi_wait_until(wait, VD_NEVER));
}

/* ---- Threads that run handlers ---- */

/* The actor whose handler or done callback this thread runs. */
static __thread const char *current_handler;

const char *vdi_wait_enter_handler(const char *actor)
{
	const char *outer = current_handler;

	current_handler = actor;
	return outer;
}

void vdi_wait_leave_handler(const char *outer)
{
	current_handler = outer;
}

vd_status vdi_wait_check(const struct vd_env *env, const char *call, struct vd_error *reterr)
{
	static const char format[] =
		"%s: this thread runs the handler of an actor (%s), which may be the one "
		"that must answer: use the call with a callback, or call it on a thread "
		"of your own";

	if (current_handler == NULL)
		return VD_OK;
	if (reterr == NULL)
		vdi_log(env, VD_LOG_ERROR, "misuse", format, call, current_handler);
	return vd_error_set(reterr, VD_INVALID_ARGUMENT, format, call, current_handler);
}

void vdi_wait_check_close(const char *call, const char *instead)
{
	if (current_handler)
		vdi_misuse(
			"%s: this thread runs the handler of an actor (%s), which may be the one that must "
			"answer: use %s",
			call, current_handler, instead);
}

void vdi_wait_for_actor_close(const struct vd_env *env, struct vd_actor *actor)
{
	struct vdi_wait wait;

	vdi_wait_init(&wait, env);
	vd_actor_close(actor, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
}
