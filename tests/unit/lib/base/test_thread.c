/* Unit tests of lib/base/thread.c. */
#include <signal.h>

#include "thread.h"
#include "vdtest.h"

struct seen {
	sigset_t blocked;
};

static void *look_around(void *arg)
{
	struct seen *seen = arg;

	pthread_sigmask(SIG_SETMASK, NULL, &seen->blocked);
	return NULL;
}

static void threads_leave_signals_to_the_program(void **state)
{
	struct vdi_thread thread;
	struct seen	  seen;
	sigset_t	  before;
	sigset_t	  after;

	(void) state;
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_status(vdi_thread_start(&thread, "a name longer than the kernel takes", look_around, &seen),
		      VD_OK);
	vdi_thread_join(&thread);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_true(sigismember(&seen.blocked, SIGTERM));
	assert_true(sigismember(&seen.blocked, SIGINT));
	/* otherwise the kernel ends the process without any report of the fault */
	assert_false(sigismember(&seen.blocked, SIGSEGV));
	assert_false(sigismember(&seen.blocked, SIGBUS));
	assert_false(sigismember(&seen.blocked, SIGFPE));
	assert_false(sigismember(&seen.blocked, SIGILL));
	assert_false(sigismember(&seen.blocked, SIGABRT));
	assert_int_equal(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
}

static void there_is_at_least_one_processor(void **state)
{
	(void) state;
	assert_true(vdi_thread_processors() >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_leave_signals_to_the_program),
		cmocka_unit_test(there_is_at_least_one_processor),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
