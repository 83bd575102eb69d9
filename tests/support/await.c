#include "await.h"

#include <sched.h>
#include <time.h>

#include "vdtest.h"

static int64_t present_ns(void)
{
	struct timespec present;

	(void) clock_gettime(CLOCK_MONOTONIC, &present);
	return (int64_t) present.tv_sec * 1000000000 + present.tv_nsec;
}

void await_turn(struct await *await, const char *what, const char *file, int line)
{
	int64_t present = present_ns();

	if (await->begun_ns == 0)
		await->begun_ns = present;
	if (present - await->begun_ns > INT64_C(1000000000) * AWAIT_PATIENCE_S) {
		print_error("waited %d s in vain for: %s\n", AWAIT_PATIENCE_S, what);
		_fail(file, line);
	}
	(void) sched_yield();
}
