/* storage/etcd/etcd_compactor.c: rounds of one server and of several, over a toy etcd. */
#include "etcd_store_world.h"

/* rules: T-094 */
static void r170_r171_a_lone_server_compacts_one_round_late(void **state)
{
	struct world *world = world_open(4, 1);
	vd_rev	      first, second;

	(void) state;
	vdi_sim_advance(world->env, VD_SECONDS(299));
	assert_int_equal(world->toy.txns, 0);
	world->toy.revision = 100;
	vdi_sim_advance(world->env, VD_SECONDS(2));
	assert_int_equal(world->toy.txns, 1); /* the first round writes "0" and compacts nothing */
	assert_string_equal(world->toy.key_value, "0");
	assert_int_equal(world->toy.compactions, 0);
	first = world->toy.revision;
	world->toy.revision = 200;
	vdi_sim_advance(world->env, VD_SECONDS(300));
	assert_int_equal(world->toy.compactions, 1);
	assert_int_equal(world->toy.compacted, first); /* what the round before saw */
	assert_int_equal(status_of(world).compacted, first);
	second = world->toy.revision;
	vdi_sim_advance(world->env, VD_SECONDS(300));
	assert_int_equal(world->toy.compacted, second);
	assert_int_equal(world->toy.key_version, 3);
	world_free(world);
}

/* rules: T-094 */
static void r171_who_loses_a_round_adopts_and_waits(void **state)
{
	struct world *world = world_open(5, 1);

	(void) state;
	/* Another server has run for a while. */
	for (int i = 0; i < 7; i++)
		etcd_toy_claim(&world->toy, "50");
	world->toy.revision = 60;
	vdi_sim_advance(world->env, VD_SECONDS(301));
	assert_int_equal(world->toy.txns, 1);
	assert_int_equal(world->toy.key_version, 7); /* lost */
	assert_int_equal(world->toy.compactions, 0);
	assert_int_equal(status_of(world).compacted, 50); /* learned from the value */
	/* The other one has died: this one wins the next round, and compacts at the revision of the lost
	 * one. */
	world->toy.revision = 80;
	vdi_sim_advance(world->env, VD_SECONDS(300));
	assert_int_equal(world->toy.key_version, 8);
	assert_int_equal(world->toy.compacted, 60);
	world_free(world);
}

static void r171_a_failed_round_changes_nothing(void **state)
{
	struct world *world = world_open(6, 1);

	(void) state;
	vdi_sim_advance(world->env, VD_SECONDS(301)); /* version 1, revision 2 */
	world->toy.fail_code = VDI_RPC_FAILED_PRECONDITION;
	world->toy.fail_text = "no";
	vdi_sim_advance(world->env, VD_SECONDS(300));
	assert_int_equal(world->toy.compactions, 0);
	world->toy.fail_code = 0;
	vdi_sim_advance(world->env, VD_SECONDS(300));
	assert_int_equal(world->toy.key_version, 2);
	assert_int_equal(world->toy.compacted, 2);
	world_free(world);
}

static void r171_a_deleted_key_starts_anew(void **state)
{
	struct world *world = world_open(7, 1);

	(void) state;
	vdi_sim_advance(world->env, VD_SECONDS(301));
	world->toy.key_version = 0;
	vdi_sim_advance(world->env, VD_SECONDS(300)); /* lost against nothing: version 0 is adopted */
	assert_int_equal(world->toy.compactions, 0);
	vdi_sim_advance(world->env, VD_SECONDS(300));
	assert_int_equal(world->toy.key_version, 1);
	assert_int_equal(world->toy.compactions, 1);
	world_free(world);
}

/* rules, T-094 */
static void r170_interval_0_only_follows_others(void **state)
{
	struct world		    *world = world_new(8, 1);
	struct vd_etcd_store_options options = options_of();

	(void) state;
	options.compaction_interval = (vd_dur) { 0 };
	open_store(world, &options);
	assert_int_equal(status_of(world).compacted, -1);
	vdi_sim_advance(world->env, VD_SECONDS(3600));
	assert_int_equal(world->toy.txns, 0);
	etcd_toy_claim(&world->toy, "0");
	vdi_sim_run_until_idle(world->env);
	assert_int_equal(status_of(world).compacted, -1);
	etcd_toy_claim(&world->toy, "41");
	vdi_sim_run_until_idle(world->env);
	assert_int_equal(status_of(world).compacted, 41);
	etcd_toy_claim(&world->toy, "17"); /* it only grows */
	etcd_toy_claim(&world->toy, "nonsense");
	vdi_sim_run_until_idle(world->env);
	assert_int_equal(status_of(world).compacted, 41);
	world_free(world);
}

/* rules: R-144 */
static void r172_a_lost_watch_of_the_key_is_opened_again_after_a_read(void **state)
{
	struct world *world = world_open(9, 1);

	(void) state;
	assert_non_null(etcd_toy_watch(&world->toy, VDI_ETCD_COMPACT_KEY));
	assert_true(etcd_toy_watch(&world->toy, VDI_ETCD_COMPACT_KEY)->require_leader);
	etcd_toy_expire(&world->toy, etcd_toy_watch(&world->toy, VDI_ETCD_COMPACT_KEY), 1000);
	vdi_sim_run_until_idle(world->env);
	etcd_toy_claim(&world->toy, "77"); /* nobody watches */
	vdi_sim_advance(world->env, VD_MS(900));
	assert_int_equal(status_of(world).compacted, -1);
	vdi_sim_advance(world->env, VD_MS(200));
	assert_int_equal(status_of(world).compacted, 77);
	assert_non_null(etcd_toy_watch(&world->toy, VDI_ETCD_COMPACT_KEY));
	world_free(world);
}

/* A read of the key that fails is one of many: the next one comes a second later, not at once. */
static void r172_a_failed_read_of_the_key_is_repeated(void **state)
{
	struct world *world = world_open(11, 1);
	unsigned      before;

	(void) state;
	etcd_toy_expire(&world->toy, etcd_toy_watch(&world->toy, VDI_ETCD_COMPACT_KEY), 1000);
	vdi_sim_run_until_idle(world->env);
	etcd_toy_claim(&world->toy, "77");
	world->toy.fail_code = VDI_RPC_FAILED_PRECONDITION;
	world->toy.fail_text = "no";
	before = world->toy.ranges;
	vdi_sim_advance(world->env, VD_MS(3500));
	assert_in_range(world->toy.ranges - before, 0, 4);
	assert_int_equal(status_of(world).compacted, -1);
	world->toy.fail_code = 0;
	vdi_sim_advance(world->env, VD_MS(1000));
	assert_int_equal(status_of(world).compacted, 77);
	world_free(world);
}

static void r172_what_was_compacted_before_the_start_is_known_at_once(void **state)
{
	struct world		    *world = world_new(10, 1);
	struct vd_etcd_store_options options = options_of();

	(void) state;
	world->toy.revision = 500;
	etcd_toy_claim(&world->toy, "400");
	open_store(world, &options);
	assert_status(vdi_etcd_store_wait(world->inner, VD_SECONDS(20), NULL), VD_OK);
	assert_int_equal(status_of(world).compacted, 400);
	assert_int_equal(status_of(world).current, 501);
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r170_r171_a_lone_server_compacts_one_round_late),
		cmocka_unit_test(r171_who_loses_a_round_adopts_and_waits),
		cmocka_unit_test(r171_a_failed_round_changes_nothing),
		cmocka_unit_test(r171_a_deleted_key_starts_anew),
		cmocka_unit_test(r170_interval_0_only_follows_others),
		cmocka_unit_test(r172_a_lost_watch_of_the_key_is_opened_again_after_a_read),
		cmocka_unit_test(r172_a_failed_read_of_the_key_is_repeated),
		cmocka_unit_test(r172_what_was_compacted_before_the_start_is_known_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
