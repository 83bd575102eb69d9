/* Unit tests of replay/play/fault_plan.c. */
#include "fault_plan.h"
#include "vdtest.h"

static void words(void **state)
{
	struct vdi_fault_plan	  plan;
	enum vdi_fault_point_kind kind;

	(void) state;
	assert_status(vdi_fault_plan_init(&plan,
					  "disconnect=0.5,delay=20ms,delay-rate=1,stale=1.5s,refuse=1e-3,"
					  "compact@30,error@7,disconnect@30",
					  NULL),
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
		{ "disconnect", "disconnect: expected NAME=VALUE" },
		{ "disconnect=2", "disconnect=2: expected a probability" },
		{ "disconnect=-0.1", "a probability" },
		{ "disconnect=nan", "a probability" },
		{ "disconnect=", "a probability" },
		{ "disconnect=0.100000000000000000000000000000",
		  "a probability" }, /* 32 bytes: too long for a number */
		{ "refuse=0.1x", "refuse=0.1x: expected a probability" },
		{ "delay=5", "delay=5: expected a duration" },
		{ "delay=ms", "a duration" },
		{ "delay=1e30s", "a duration" },
		{ "stale=-1s", "a duration" },
		{ "compact@x", "compact@x: expected a revision" },
		{ "compact@0", "a revision" },
		{ "compact@99999999999999999999", "a revision" },
		{ "delay@7", "only disconnect, compact and error" },
		{ "earthquake=1", "earthquake=1: unknown fault" },
		{ "refuse=0.1,,lose=1", "expected NAME=VALUE" },
		{ "refuse=0.1,", "after the last comma" },
		{ ",", "expected NAME=VALUE" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_fault_plan plan;
		struct vd_error	      error = { 0 };

		assert_status(vdi_fault_plan_init(&plan, rows[i][0], &error), VD_INVALID_ARGUMENT);
		if (strstr(error.message, rows[i][1]) == NULL &&
		    strstr(error.message, "after the last comma") == NULL)
			fail_msg("%s: %s", rows[i][0], error.message);
	}
	/* What was understood before it is forgotten. */
	for (size_t i = 0; i < 2; i++) {
		struct vdi_fault_plan	  plan;
		enum vdi_fault_point_kind kind;

		assert_status(vdi_fault_plan_init(&plan, i ? "compact@5," : "compact@5,earthquake=1", NULL),
			      VD_INVALID_ARGUMENT);
		assert_false(vdi_fault_plan_point(&plan, 5, &kind));
	}
}

/* Each word sets what it names and nothing else. */
static void each_word_sets_its_own(void **state)
{
	static const char *const words[] = { "disconnect=0.5", "compact=0.5", "error=0.5",
					     "delay-rate=0.5", "refuse=0.5",  "lose=0.5",
					     "too-large=0.5",  "cut=0.5",     "delay=3ms",
					     "stale=3ms",      "slow=3ms" };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(words); i++) {
		struct vdi_fault_plan plan;

		assert_status(vdi_fault_plan_init(&plan, words[i], NULL), VD_OK);
		assert_true(plan.after[VDI_FAULT_DISCONNECT] == (i == 0 ? 0.5 : 0));
		assert_true(plan.after[VDI_FAULT_COMPACT] == (i == 1 ? 0.5 : 0));
		assert_true(plan.after[VDI_FAULT_ERROR] == (i == 2 ? 0.5 : 0));
		assert_true(plan.delay_rate == (i == 3 ? 0.5 : 0.1));
		assert_true(plan.refuse == (i == 4 ? 0.5 : 0));
		assert_true(plan.lose == (i == 5 ? 0.5 : 0));
		assert_true(plan.too_large == (i == 6 ? 0.5 : 0));
		assert_true(plan.cut == (i == 7 ? 0.5 : 0));
		assert_int_equal(plan.delay_max.ns, i == 8 ? 3000000 : 0);
		assert_int_equal(plan.stale.ns, i == 9 ? 3000000 : 0);
		assert_int_equal(plan.slow.ns, i == 10 ? 3000000 : 0);
		assert_int_equal(plan.point_count, 0);
		vdi_fault_plan_fini(&plan);
	}
}

static void the_borders_of_numbers(void **state)
{
	static const struct {
		const char *word;
		int64_t	    ns; /* -1: refused */
	} durations[] = { { "delay=0s", 0 },
			  { "delay=0ns", 0 },
			  { "delay=1ns", 1 },
			  { "delay=1us", 1000 },
			  { "delay=1ms", 1000000 },
			  { "delay=1s", 1000000000 },
			  { "delay=2m", 120000000000 },
			  { "delay=999999s", 999999000000000 },
			  { "delay=1000000s", -1 },
			  { "delay=-1ns", -1 },
			  { "delay=infs", -1 },
			  { "delay=nans", -1 },
			  { "delay=1h", -1 },
			  { "delay=", -1 } };
	static const struct {
		const char *word;
		bool	    is_good;
	} others[] = { { "cut=0", true },
		       { "cut=1", true },
		       { "cut=1.0001", false },
		       { "cut=-0.0001", false },
		       { "cut=inf", false },
		       { "cut=0.10000000000000000000000000000", true }, /* 31 bytes */
		       { "error@1", true },
		       { "error@9223372036854775807", true },
		       { "error@9223372036854775808", false },
		       { "error@-1", false },
		       { "error@", false },
		       { "error@1x", false },
		       { "", true },
		       { "=1", false },
		       { "@1", false } };
	struct vdi_fault_plan plan;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(durations); i++) {
		vd_status status = vdi_fault_plan_init(&plan, durations[i].word, NULL);

		if (status != (durations[i].ns < 0 ? VD_INVALID_ARGUMENT : VD_OK) ||
		    (status == VD_OK && plan.delay_max.ns != durations[i].ns))
			fail_msg("%s", durations[i].word);
		vdi_fault_plan_fini(&plan);
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(others); i++) {
		if (vdi_fault_plan_init(&plan, others[i].word, NULL) !=
		    (others[i].is_good ? VD_OK : VD_INVALID_ARGUMENT))
			fail_msg("%s", others[i].word);
		vdi_fault_plan_fini(&plan);
	}
}

/* By revision, and at one revision in the order of the kinds, however they were written; each once. */
static void points_come_in_order(void **state)
{
	static const struct {
		vd_rev			  revision;
		enum vdi_fault_point_kind kind;
	} expected[] = { { 2, VDI_FAULT_ERROR },
			 { 5, VDI_FAULT_DISCONNECT },
			 { 5, VDI_FAULT_COMPACT },
			 { 5, VDI_FAULT_ERROR },
			 { 9, VDI_FAULT_DISCONNECT } };
	struct vdi_fault_plan	  plan;
	enum vdi_fault_point_kind kind;

	(void) state;
	assert_status(vdi_fault_plan_init(&plan, "error@5,disconnect@9,compact@5,error@2,disconnect@5", NULL),
		      VD_OK);
	assert_int_equal(plan.point_count, 5);
	for (size_t i = 0; i < 5; i++) {
		if (i == 0 || expected[i - 1].revision < expected[i].revision)
			assert_false(vdi_fault_plan_point(&plan, expected[i].revision - 1, &kind));
		assert_true(vdi_fault_plan_point(&plan, expected[i].revision, &kind));
		assert_int_equal(kind, expected[i].kind);
	}
	assert_false(vdi_fault_plan_point(&plan, 100, &kind));
	vdi_fault_plan_fini(&plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words),
		cmocka_unit_test(what_is_not_understood_is_named),
		cmocka_unit_test(each_word_sets_its_own),
		cmocka_unit_test(the_borders_of_numbers),
		cmocka_unit_test(points_come_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
