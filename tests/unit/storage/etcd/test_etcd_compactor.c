/* storage/etcd/etcd_compactor.c: rounds of one server and of several, over a toy etcd. */
#include "etcd_store_world.h"

static void r170_values_of_the_key(void **state)
{
	static const struct {
		const char *text;
		vd_rev	    revision;
	} rows[] = {
		{ "", 0 },
		{ "0", 0 },
		{ "1", 1 },
		{ "10", 10 },
		{ "0099", 99 },
		{ "999999999999999999", 999999999999999999 }, /* 18 digits: fits in any case */
		{ "1999999999999999999", 0 },
		{ "12 ", 0 },
		{ "12/", 0 },
		{ "12:", 0 },
		{ "-12", 0 },
		{ "x", 0 },
		{ "1x2", 0 },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		assert_int_equal(vdi_etcd_compactor_parse(vd_bytes_of(rows[i].text)), rows[i].revision);
	assert_int_equal(vdi_etcd_compactor_parse(VD_BYTES_NONE), 0);
}

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

/* The watch of the key is down: what others compacted comes with the lost claim, what this server compacted
 * from itself. */
static void r171_a_round_teaches_what_was_compacted(void **state)
{
	struct world *world = world_open(12, 1);
	vd_rev	      first;

	(void) state;
	vdi_sim_advance(world->env, VD_MS(299500));
	etcd_toy_expire(&world->toy, etcd_toy_watch(&world->toy, VDI_ETCD_COMPACT_KEY), 1000);
	vdi_sim_run_until_idle(world->env);
	for (int i = 0; i < 7; i++)
		etcd_toy_claim(&world->toy, "50");
	world->toy.revision = 60;
	assert_int_equal(status_of(world).compacted, -1);
	vdi_sim_advance(world->env, VD_MS(700)); /* the round comes before the key is read again */
	assert_int_equal(world->toy.txns, 1);
	assert_int_equal(world->toy.compactions, 0);
	assert_int_equal(status_of(world).compacted, 50);
	first = world->toy.revision;
	vdi_sim_advance(world->env, VD_MS(299500));
	etcd_toy_expire(&world->toy, etcd_toy_watch(&world->toy, VDI_ETCD_COMPACT_KEY), 1000);
	vdi_sim_run_until_idle(world->env);
	assert_int_equal(status_of(world).compacted, 50);
	vdi_sim_advance(world->env, VD_MS(700));
	assert_int_equal(world->toy.compactions, 1);
	assert_int_equal(world->toy.compacted, first);
	assert_int_equal(status_of(world).compacted, first);
	world_free(world);
}

/* The answer to a compaction is a sign of life, and tells the newest revision, like any other answer. */
static void e423_a_compaction_tells_how_far_the_store_is(void **state)
{
	struct world *world = world_open(13, 1);

	(void) state;
	vdi_sim_advance(world->env, VD_SECONDS(599));
	assert_int_equal(world->toy.txns, 1);
	while (world->toy.compactions == 0) {
		if (!vdi_sim_step(world->env))
			(void) vdi_sim_advance_to_next_timer(world->env);
		if (world->toy.txns == 2)
			world->toy.revision = 500; /* others write between the two calls */
	}
	vdi_sim_run_until_idle(world->env);
	assert_int_equal(status_of(world).current, 500);
	world_free(world);
}

/* A round that fails for memory, at whatever place, is over: the next one comes an interval later. */
static void r171_a_round_without_memory_is_one_of_many(void **state)
{
	bool has_failed = true;

	(void) state;
	for (int round = 1; round <= 2; round++, has_failed = true)
		for (uint64_t nth = 1; has_failed; nth++) {
			struct world *world = world_open(13, 1);

			vdi_sim_advance(world->env, VD_SECONDS(300 * round - 1));
			vdi_alloc_fail_nth(nth, 1);
			vdi_sim_advance(world->env, VD_SECONDS(2));
			has_failed = vdi_alloc_failed();
			vdi_alloc_fail_nth(0, 0);
			assert_true(world->toy.compactions <= 1);
			vdi_sim_advance(world->env, VD_SECONDS(297));
			assert_int_equal(world->inner->compactor.rounds, round);
			vdi_sim_advance(world->env, VD_SECONDS(902));
			assert_int_equal(world->inner->compactor.rounds, round + 4);
			assert_in_range(world->toy.compactions, round + 1, round + 3);
			world_free(world);
			assert_true(nth < 100);
		}
}

/* The key cannot be read or watched for memory: tried again after a second, and from then on as before. */
static void r172_following_without_memory_goes_on_later(void **state)
{
	bool has_failed = true;

	(void) state;
	for (uint64_t nth = 1; has_failed; nth++) {
		struct world *world = world_open(14, 1);
		char	      text[16];

		etcd_toy_expire(&world->toy, etcd_toy_watch(&world->toy, VDI_ETCD_COMPACT_KEY), 1000);
		vdi_sim_run_until_idle(world->env);
		vdi_alloc_fail_nth(nth, 1);
		vdi_sim_advance(world->env, VD_MS(1100));
		has_failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		vdi_sim_advance(world->env, VD_MS(2500));
		assert_non_null(etcd_toy_watch(&world->toy, VDI_ETCD_COMPACT_KEY));
		(void) snprintf(text, sizeof text, "%d", 70 + (int) nth);
		etcd_toy_claim(&world->toy, text);
		vdi_sim_run_until_idle(world->env);
		assert_int_equal(status_of(world).compacted, 70 + (int) nth);
		world_free(world);
		assert_true(nth < 100);
	}
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
	assert_int_equal(world->toy.ranges, before); /* the toy counts those that it answers */
	assert_in_range(rpc_script_call_count(world->toy.script), 1, 12);
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
		cmocka_unit_test(r170_values_of_the_key),
		cmocka_unit_test(r170_r171_a_lone_server_compacts_one_round_late),
		cmocka_unit_test(r171_who_loses_a_round_adopts_and_waits),
		cmocka_unit_test(r171_a_round_teaches_what_was_compacted),
		cmocka_unit_test(e423_a_compaction_tells_how_far_the_store_is),
		cmocka_unit_test(r171_a_round_without_memory_is_one_of_many),
		cmocka_unit_test(r172_following_without_memory_goes_on_later),
		cmocka_unit_test(r171_a_failed_round_changes_nothing),
		cmocka_unit_test(r171_a_deleted_key_starts_anew),
		cmocka_unit_test(r170_interval_0_only_follows_others),
		cmocka_unit_test(r172_a_lost_watch_of_the_key_is_opened_again_after_a_read),
		cmocka_unit_test(r172_a_failed_read_of_the_key_is_repeated),
		cmocka_unit_test(r172_what_was_compacted_before_the_start_is_known_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
