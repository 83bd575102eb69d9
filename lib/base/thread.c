/* A new thread inherits the signal mask, so it is set around the creation: a new thread never runs with
 * the program's signals unblocked. */
#include <sched.h>
#include <time.h>
#include <signal.h>
#include <stdio.h>

#include "thread.h"

/* A fault whose signal is blocked ends the process without calling the handler of the program or of a
 * sanitizer, so these signals stay unblocked. */
static void fill_but_faults(sigset_t *signals)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };

	(void) sigfillset(signals);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(faults); i++)
		(void) sigdelset(signals, faults[i]);
}

vd_status vdi_thread_start(struct vdi_thread *thread, const char *name, void *(*run)(void *arg), void *arg)
{
	sigset_t blocked;
	sigset_t before;
	char	 short_name[16];
	int	 error;

	fill_but_faults(&blocked);
	VDI_CHECK(pthread_sigmask(SIG_SETMASK, &blocked, &before) == 0);
	error = pthread_create(&thread->id, NULL, run, arg);
	VDI_CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
	if (error)
		return VD_FULL;
	snprintf(short_name, sizeof short_name, "%s", name);
	/* failure is harmless: names are for debugging only */
	(void) pthread_setname_np(thread->id, short_name);
	return VD_OK;
}

void vdi_thread_join(struct vdi_thread *thread)
{
	VDI_CHECK(pthread_join(thread->id, NULL) == 0);
}

vd_dur vdi_thread_cpu(void)
{
	struct timespec time = { 0 };

	(void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (vd_dur) { (int64_t) time.tv_sec * 1000000000 + time.tv_nsec };
}

unsigned vdi_thread_processors(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof set, &set) != 0)
		return 1;
	return CPU_COUNT(&set) > 0 ? (unsigned) CPU_COUNT(&set) : 1;
}
