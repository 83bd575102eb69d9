/* storage/etcd/etcd_probe.c: what servers can do, and how often they are asked. */
#include "etcd_store_world.h"

/* rules: T-105 */
static void r173_versions_that_can_prove_progress(void **state)
{
	static const struct {
		const char *version;
		bool	    can;
	} rows[] = {
		{ "3.4.30", false },	  { "3.4.31", true },	    { "3.4.99", true },
		{ "3.5.0", false },	  { "3.5.12", false },	    { "3.5.13", true },
		{ "3.6.0", true },	  { "3.7.3", true },	    { "4.0.0", true },
		{ "2.3.8", false },	  { "3.3.99", false },	    { "", false },
		{ "3.6", false },	  { "three", false },	    { "3.6.0-rc.1", true },
		{ "3.5.13-rc.0", false }, { "3.4.31-rc.0", false }, { "3.5.0-alpha.0", true },
		{ "3.6.1+x", true },	  { "3.6.1.2", false },	    { "3.06.1", false },
		{ "-3.6.1", false },	  { "3.6.1x", false },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		if (vdi_etcd_version_has_progress(rows[i].version) != rows[i].can)
			fail_msg("%s", rows[i].version);
}

static void r173_what_is_not_known_is_not_supported(void **state)
{
	struct world		    *world = world_new(1, 3);
	struct vd_etcd_store_options options = options_of();

	(void) state;
	world->toy.versions[0] = world->toy.versions[1] = world->toy.versions[2] = NULL;
	open_store(world, &options);
	assert_false(status_of(world).progress);
	assert_status(vdi_etcd_store_wait(world->inner, VD_SECONDS(20), NULL), VD_OK);
	assert_false(status_of(world).progress);
	/* One that can is enough while the others are not known. */
	world->toy.versions[1] = "3.5.13";
	vdi_sim_advance(world->env, VD_SECONDS(20));
	assert_true(status_of(world).progress);
	assert_int_equal(status_of(world).size_bytes, 4096);
	world_free(world);
}

static void r173_one_that_cannot_turns_it_off_for_good(void **state)
{
	struct world *world = world_open(2, 3);

	(void) state;
	assert_true(status_of(world).progress);
	world->toy.versions[2] = "3.4.30";
	vdi_sim_advance(world->env, VD_SECONDS(31));
	assert_false(status_of(world).progress);
	world->toy.versions[2] = "3.6.1";
	vdi_sim_advance(world->env, VD_SECONDS(120));
	assert_false(status_of(world).progress);
	world_free(world);
}

static void r173_the_probe_backs_off_from_10_ms_to_15_s(void **state)
{
	struct world		    *world = world_new(3, 1);
	struct vd_etcd_store_options options = options_of();
	int64_t			     expected_ms = 10;

	(void) state;
	world->toy.versions[0] = NULL;
	open_store(world, &options);
	vdi_sim_advance(world->env, VD_SECONDS(120));
	assert_true(world->toy.statuses[0] > 14);
	for (unsigned i = 1; i < 15; i++) {
		int64_t waited_ms =
			vd_mono_since(world->toy.status_times[0][i], world->toy.status_times[0][i - 1]).ns /
			1000000;

		assert_int_equal(waited_ms, expected_ms);
		expected_ms = VDI_MIN(2 * expected_ms, 15000);
	}
	world_free(world);
}

/* The answer to a probe has a revision as any other. */
static void r173_a_probe_teaches_the_revision(void **state)
{
	struct world *world = world_open(18, 1);

	(void) state;
	world->toy.revision = 77;
	world->toy.is_silent = true; /* but for the probe */
	vdi_sim_advance(world->env, VD_SECONDS(31));
	assert_int_equal(status_of(world).current, 77);
	world_free(world);
}

/* A server that could not be asked for memory is asked again. */
static void r173_a_probe_without_memory_is_repeated(void **state)
{
	bool has_failed = true;

	(void) state;
	for (uint64_t nth = 1; has_failed; nth++) {
		struct world *world = world_open(15, 1);
		unsigned      before;

		vdi_alloc_fail_nth(nth, 1);
		vdi_sim_advance(world->env, VD_SECONDS(31));
		has_failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		before = world->toy.statuses[0];
		vdi_sim_advance(world->env, VD_SECONDS(31));
		assert_true(world->toy.statuses[0] > before);
		world_free(world);
		assert_true(nth < 100);
	}
}

/* Every 30 s from each endpoint; -1 while none has answered. */
static void e617_the_size_of_the_database_is_read_every_30_s(void **state)
{
	struct world		    *world = world_new(4, 2);
	struct vd_etcd_store_options options = options_of();

	(void) state;
	world->toy.versions[0] = world->toy.versions[1] = NULL;
	open_store(world, &options);
	assert_int_equal(status_of(world).size_bytes, -1);
	world_free(world);
	world = world_open(5, 2);
	for (int64_t size = 5000; size > 4990; size--) {
		assert_int_equal(status_of(world).size_bytes, size == 5000 ? 4096 : size + 1);
		world->toy.size_bytes = size;
		vdi_sim_advance(world->env, VD_SECONDS(30));
	}
	for (unsigned endpoint = 0; endpoint < 2; endpoint++) {
		assert_true(world->toy.statuses[endpoint] >= 10);
		for (unsigned i = 1; i < world->toy.statuses[endpoint]; i++)
			assert_int_equal(vd_mono_since(world->toy.status_times[endpoint][i],
						       world->toy.status_times[endpoint][i - 1])
						 .ns,
					 VD_SECONDS(30).ns);
	}
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r173_versions_that_can_prove_progress),
		cmocka_unit_test(r173_what_is_not_known_is_not_supported),
		cmocka_unit_test(r173_one_that_cannot_turns_it_off_for_good),
		cmocka_unit_test(r173_the_probe_backs_off_from_10_ms_to_15_s),
		cmocka_unit_test(r173_a_probe_teaches_the_revision),
		cmocka_unit_test(r173_a_probe_without_memory_is_repeated),
		cmocka_unit_test(e617_the_size_of_the_database_is_read_every_30_s),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
