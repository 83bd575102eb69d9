/* Unit tests of replay/fault_plan.c. */
#include "fault_plan.h"
#include "vdtest.h"

static void words(void **state)
{
	struct vdi_fault_plan plan;
	enum vdi_fault_kind   kind;

	(void) state;
	assert_status(vdi_fault_plan_init(&plan, "disconnect=0.5,delay=20ms,delay-rate=1,stale=1.5s,refuse=1e-3,compact@30,error@7,disconnect@30", NULL),
		      VD_OK);
	assert_true(plan.after[VDI_FAULT_DISCONNECT] == 0.5);
	assert_true(plan.after[VDI_FAULT_COMPACT] == 0);
	assert_int_equal(plan.delay_max.ns, 20000000);
	assert_int_equal(plan.stale.ns, 1500000000);
	assert_true(plan.delay_rate == 1 && plan.refuse == 1e-3);
	assert_false(vdi_fault_plan_point(&plan, 6, &kind));
	assert_true(vdi_fault_plan_point(&plan, 8, &kind));
	assert_int_equal(kind, VDI_FAULT_ERROR);
	assert_false(vdi_fault_plan_point(&plan, 29, &kind));
	assert_true(vdi_fault_plan_point(&plan, 30, &kind));
	assert_int_equal(kind, VDI_FAULT_DISCONNECT);
	assert_true(vdi_fault_plan_point(&plan, 30, &kind));
	assert_int_equal(kind, VDI_FAULT_COMPACT);
	assert_false(vdi_fault_plan_point(&plan, INT64_MAX, &kind));
	vdi_fault_plan_fini(&plan);
	assert_status(vdi_fault_plan_init(&plan, NULL, NULL), VD_OK);
	vdi_fault_plan_fini(&plan);
	assert_status(vdi_fault_plan_init(&plan, "", NULL), VD_OK);
	vdi_fault_plan_fini(&plan);
}

static void what_is_not_understood_is_named(void **state)
{
	static const char *const rows[][2] = {
		{ "disconnect", "disconnect: must be NAME=VALUE" },
		{ "disconnect=2", "disconnect=2: a probability" },
		{ "disconnect=-0.1", "a probability" },
		{ "disconnect=nan", "a probability" },
		{ "disconnect=", "a probability" },
		{ "disconnect=0.100000000000000000000000000000", "a probability" }, /* 32 bytes: too long for a number */
		{ "refuse=0.1x", "refuse=0.1x: a probability" },
		{ "delay=5", "delay=5: a duration" },
		{ "delay=ms", "a duration" },
		{ "delay=1e30s", "a duration" },
		{ "stale=-1s", "a duration" },
		{ "compact@x", "compact@x: a revision" },
		{ "compact@0", "a revision" },
		{ "compact@99999999999999999999", "a revision" },
		{ "delay@7", "only disconnect, compact and error" },
		{ "earthquake=1", "earthquake=1: no such fault" },
		{ "refuse=0.1,,lose=1", "must be NAME=VALUE" },
		{ "refuse=0.1,", "after the last comma" },
		{ ",", "must be NAME=VALUE" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_fault_plan plan;
		struct vd_error	      error = { 0 };

		assert_status(vdi_fault_plan_init(&plan, rows[i][0], &error), VD_INVALID_ARGUMENT);
		if (strstr(error.message, rows[i][1]) == NULL && strstr(error.message, "must follow the last comma") == NULL)
			fail_msg("%s: %s", rows[i][0], error.message);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words),
		cmocka_unit_test(what_is_not_understood_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
