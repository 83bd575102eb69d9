/* Unit tests of lib/sim/clock_sim.c. */
#include "clock_sim.h"
#include "expect_panic.h"

static void simulated_time_moves_only_when_told(void **state)
{
	struct vdi_clock_sim sim;

	(void) state;
	vdi_clock_sim_init(&sim, (vd_mono) { 100 }, (vd_wall) { 5000 });
	assert_true(vdi_clock_mono(&sim.clock).ns == 100);
	assert_true(vdi_clock_wall(&sim.clock).ns == 5000);
	vdi_clock_sim_advance(&sim, (vd_dur) { 10 });
	vdi_clock_sim_jump_wall(&sim, (vd_dur) { -1000 });
	assert_true(vdi_clock_mono(&sim.clock).ns == 110);
	assert_true(vdi_clock_wall(&sim.clock).ns == 4010);
	vdi_clock_sim_set(&sim, (vd_mono) { 200 });
	assert_true(vdi_clock_wall(&sim.clock).ns == 4100);
}

static void go_back(void)
{
	struct vdi_clock_sim sim;

	vdi_clock_sim_init(&sim, (vd_mono) { 100 }, (vd_wall) { 5000 });
	vdi_clock_sim_set(&sim, (vd_mono) { 99 });
}

static void monotonic_time_cannot_go_back(void **state)
{
	(void) state;
	expect_panic(go_back, "check failed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(simulated_time_moves_only_when_told),
		cmocka_unit_test(monotonic_time_cannot_go_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
