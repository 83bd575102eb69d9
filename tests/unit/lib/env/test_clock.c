/* Unit tests of lib/env/clock.c. */
#include "clock.h"
#include "vdtest.h"

static void monotonic_time_never_goes_back(void **state)
{
	vd_mono before = vdi_clock_mono(&vdi_clock_os);

	(void) state;
	for (int i = 0; i < 1000; i++) {
		vd_mono now = vdi_clock_mono(&vdi_clock_os);

		assert_true(now.ns >= before.ns);
		before = now;
	}
}

static void wall_time_is_of_this_century(void **state)
{
	(void) state;
	assert_true(vdi_clock_wall(&vdi_clock_os).ns > VD_SECONDS(1600000000).ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(monotonic_time_never_goes_back),
		cmocka_unit_test(wall_time_is_of_this_century),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
