/* Plain pthread objects, so that the thread sanitizer understands them. Without NDEBUG each thread keeps a
 * short stack of the locks that it holds. Checking a new lock against the top is enough, because the stack
 * itself is ordered.
 *
 * Code that runs after the release of a lock but still needs what the lock protected is a race that almost
 * never shows, because the other thread would have to do all its work in between. So builds without NDEBUG
 * can stall a thread there at random, and at other such points: before the wake of an actor.
 */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lock.h"

static const char *const lock_names[] = {
#define LOCK_TEXT(name, text) text,
	VDI_LOCK_MAP(LOCK_TEXT)
#undef LOCK_TEXT
};

static __thread struct vdi_lock_held held;
__thread struct vdi_preemption	    *vdi_preemption;

#ifdef NDEBUG
static bool is_tracked(void)
{
	return vdi_preemption != NULL;
}
#else
static bool is_tracked(void)
{
	return true;
}
#endif

static void note_acquire(const struct vdi_lock *lock)
{
	if (!is_tracked())
		return;
	if (held.count && held.locks[held.count - 1]->name >= lock->name) {
		char why[96];

		snprintf(why, sizeof why, "\"%s\" taken while \"%s\" is held", lock_names[lock->name],
			 lock_names[held.locks[held.count - 1]->name]);
		vdi_panic(__FILE__, __LINE__, "lock order", why);
	}
	VDI_CHECK(held.count < VDI_LOCK_HELD_MAX);
	held.locks[held.count++] = lock;
}

static void note_release(const struct vdi_lock *lock)
{
	unsigned i = held.count;

	if (!is_tracked())
		return;
	while (i > 0 && held.locks[i - 1] != lock)
		i--;
	if (i == 0)
		vdi_panic(__FILE__, __LINE__, "lock holder", lock_names[lock->name]);
	memmove(&held.locks[i - 1], &held.locks[i], (held.count - i) * sizeof held.locks[0]);
	held.count--;
}

static void check_innermost(const struct vdi_lock *lock)
{
	VDI_CHECK(!is_tracked() || (held.count > 0 && held.locks[held.count - 1] == lock));
}

#ifdef NDEBUG
void vdi_lock_stall(unsigned one_in)
{
	(void) one_in;
}
#else
#define STALL_NS_MAX 2000000
#define STALLS_UNKNOWN UINT_MAX

static atomic_uint stall_one_in = STALLS_UNKNOWN;

void vdi_lock_stall(unsigned one_in)
{
	atomic_store_explicit(&stall_one_in, one_in, memory_order_relaxed);
}

static unsigned stalls(void)
{
	unsigned    one_in = atomic_load_explicit(&stall_one_in, memory_order_relaxed);
	const char *text;

	if (one_in != STALLS_UNKNOWN)
		return one_in;
	text = getenv("VEDETTE_LOCK_STALLS");
	one_in = text ? (unsigned) VDI_MIN(strtoul(text, NULL, 10), STALLS_UNKNOWN - 1ul) : 0;
	vdi_lock_stall(one_in);
	return one_in;
}

/* Stalls only if no lock is held; with a lock it would only delay other threads. */
void vdi_lock_stall_here(void)
{
	static __thread uint32_t chance;
	unsigned		 one_in = stalls();
	struct timespec		 pause = { 0 };

	if (one_in == 0 || held.count)
		return;
	if (chance == 0)
		chance = (uint32_t) ((uintptr_t) &chance >> 6) | 1;
	chance = chance * 1664525 + 1013904223;
	if ((chance >> 16) % one_in)
		return;
	pause.tv_nsec = (long) ((chance >> 8) % STALL_NS_MAX);
	(void) nanosleep(&pause, NULL);
}
#endif

void vdi_lock_init(struct vdi_lock *lock, enum vdi_lock_name name)
{
	VDI_CHECK((unsigned) name < VDI_LOCK_COUNT);
	lock->name = name;
	VDI_CHECK(pthread_mutex_init(&lock->mutex, NULL) == 0);
}

void vdi_lock_fini(struct vdi_lock *lock)
{
	VDI_CHECK(pthread_mutex_destroy(&lock->mutex) == 0);
}

void vdi_lock_acquire(struct vdi_lock *lock)
{
	note_acquire(lock);
	if (__builtin_expect(vdi_preemption != NULL, 0)) {
		while (pthread_mutex_trylock(&lock->mutex) != 0)
			vdi_preemption->blocked(vdi_preemption, lock);
		return;
	}
	VDI_CHECK(pthread_mutex_lock(&lock->mutex) == 0);
}

void vdi_lock_release(struct vdi_lock *lock)
{
	note_release(lock);
	VDI_CHECK(pthread_mutex_unlock(&lock->mutex) == 0);
	vdi_preempt_point();
}

struct vdi_lock_held *vdi_lock_held(void)
{
	return &held;
}

void vdi_preempt_spin(void)
{
	if (vdi_preemption)
		vdi_preemption->spin(vdi_preemption);
	else
		sched_yield();
}

void vdi_lock_assert_held(const struct vdi_lock *lock)
{
#ifdef NDEBUG
	(void) lock;
#else
	unsigned i = 0;

	while (i < held.count && held.locks[i] != lock)
		i++;
	VDI_CHECK(i < held.count);
#endif
}

const char *vdi_lock_name(enum vdi_lock_name name)
{
	return (unsigned) name < VDI_LOCK_COUNT ? lock_names[name] : "unknown";
}

void vdi_lock_describe_held(char *text, size_t size)
{
	size_t used = 0;

	VDI_CHECK(size > 0);
	text[0] = 0;
	for (unsigned i = 0; i < held.count && used < size; i++)
		used += (size_t) snprintf(text + used, size - used, "%s%s", i ? " " : "",
					  vdi_lock_name(held.locks[i]->name));
}

void vdi_condition_init(struct vdi_condition *condition)
{
	pthread_condattr_t attributes;

	VDI_CHECK(pthread_condattr_init(&attributes) == 0);
	VDI_CHECK(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
	VDI_CHECK(pthread_cond_init(&condition->condition, &attributes) == 0);
	pthread_condattr_destroy(&attributes);
}

void vdi_condition_fini(struct vdi_condition *condition)
{
	VDI_CHECK(pthread_cond_destroy(&condition->condition) == 0);
}

void vdi_condition_signal(struct vdi_condition *condition)
{
	pthread_cond_signal(&condition->condition);
}

void vdi_condition_broadcast(struct vdi_condition *condition)
{
	pthread_cond_broadcast(&condition->condition);
}

void vdi_condition_wait(struct vdi_condition *condition, struct vdi_lock *lock)
{
	check_innermost(lock);
	VDI_CHECK(pthread_cond_wait(&condition->condition, &lock->mutex) == 0);
}

bool vdi_condition_wait_until(struct vdi_condition *condition, struct vdi_lock *lock, vd_mono due)
{
	struct timespec at;
	int		error;

	if (due.ns == VD_NEVER.ns) {
		vdi_condition_wait(condition, lock);
		return true;
	}
	check_innermost(lock);
	due.ns = VDI_MAX(due.ns, 0);
	at = (struct timespec) { .tv_sec = due.ns / 1000000000, .tv_nsec = due.ns % 1000000000 };
	error = pthread_cond_timedwait(&condition->condition, &lock->mutex, &at);
	VDI_CHECK(error == 0 || error == ETIMEDOUT);
	return error == 0;
}
