/* Unit tests of lib/base/sm.c. */
#include "expect_panic.h"
#include "sm.h"
#include "trace.h"

enum { WAITING, LIVE, ENDED };

static const struct vdi_sm_state states[] = {
	[WAITING] = { "waiting", VDI_SM_TO(LIVE) | VDI_SM_TO(ENDED) },
	[LIVE] = { "live", VDI_SM_TO(LIVE) | VDI_SM_TO(ENDED) },
	[ENDED] = { "ended", 0 },
};
static const struct vdi_sm_table table = { "lamp", states, VDI_ARRAY_SIZE(states) };

static void listed_moves_are_made_and_traced(void **state)
{
	struct vdi_sm		      sm;
	uint64_t		      before;
	const struct vdi_trace_entry *entry;

	(void) state;
	vdi_sm_init(&sm, &table, WAITING);
	assert_string_equal(vdi_sm_state_name(&sm), "waiting");
	assert_true(vdi_sm_may(&sm, LIVE));
	assert_false(vdi_sm_may(&sm, WAITING));
	assert_false(vdi_sm_may(&sm, 3));
	before = vdi_trace_ring.count;
	vdi_sm_move(&sm, LIVE);
	vdi_sm_move(&sm, LIVE);
	assert_int_equal(vdi_trace_ring.count, before + 2);
	entry = &vdi_trace_ring.entries[before % VDI_TRACE_ENTRIES];
	assert_string_equal(entry->fact, "lamp");
	assert_int_equal(entry->a, WAITING);
	assert_int_equal(entry->b, LIVE);
	vdi_sm_move(&sm, ENDED);
	assert_true(vdi_sm_is(&sm, ENDED));
	assert_false(vdi_sm_may(&sm, LIVE));
}

static void move_back(void)
{
	struct vdi_sm sm;

	vdi_sm_init(&sm, &table, WAITING);
	vdi_sm_move(&sm, ENDED);
	vdi_sm_move(&sm, LIVE);
}

static void other_moves_stop_the_program(void **state)
{
	(void) state;
	expect_panic(move_back, "lamp: ended may not become live");
	expect_panic(move_back, "vedette: trace: lamp 0 2\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listed_moves_are_made_and_traced),
		cmocka_unit_test(other_moves_stop_the_program),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
