/* storage/etcd/etcd_store*.c, etcd_probe.c, etcd_compactor.c over a toy etcd (tests/support/etcd_toy.h), under the simulator. */
#include "vdtest.h"

#include "actor_sim.h"
#include "etcd_store.h"
#include "etcd_toy.h"
#include "expect_panic.h"

struct world {
	struct vd_env	      *env;
	struct etcd_toy	       toy;
	struct vdi_etcd_store *inner;
	struct vd_store	      *store;
	int64_t		       live;
};

static struct world *world_new(uint64_t seed, size_t endpoint_count)
{
	struct world *world = test_calloc(1, sizeof *world);

	world->live = vdi_alloc_live();
	assert_status(vdi_env_new_sim(seed, NULL, NULL, &world->env), VD_OK);
	etcd_toy_init(&world->toy, world->env, seed, endpoint_count);
	return world;
}

static struct vd_etcd_store_options options_of(void)
{
	struct vd_etcd_store_options options = VD_ETCD_STORE_OPTIONS_INIT;

	return options;
}

static void open_store(struct world *world, const struct vd_etcd_store_options *options)
{
	struct vd_etcd *client = etcd_toy_client(&world->toy);

	assert_non_null(client);
	assert_status(vdi_etcd_store_new(world->env, client, options, world->toy.endpoints, world->toy.endpoint_count, &world->inner, NULL), VD_OK);
	world->store = &world->inner->base;
}

/* Opened and settled: everybody was asked. */
static struct world *world_open(uint64_t seed, size_t endpoint_count)
{
	struct world		    *world = world_new(seed, endpoint_count);
	struct vd_etcd_store_options options = options_of();

	open_store(world, &options);
	assert_status(vdi_etcd_store_wait(world->inner, VD_SECONDS(20), NULL), VD_OK);
	vdi_sim_run_until_idle(world->env);
	return world;
}

static void close_store(struct world *world)
{
	world->store = vd_store_close_wait(world->store);
	world->inner = NULL;
}

static void world_free(struct world *world)
{
	if (world->store)
		close_store(world);
	etcd_toy_fini(&world->toy);
	vd_env_free(world->env);
	assert_int_equal(vdi_alloc_live(), world->live);
	test_free(world);
}

static struct vd_store_status status_of(struct world *world)
{
	struct vd_store_status status = { 0 };

	assert_status(vd_store_status_get(world->store, &status), VD_OK);
	return status;
}

/* ---- The probe ---- */

/* rules: T-105 */
static void r173_versions_that_can_prove_progress(void **state)
{
	static const struct {
		const char *version;
		bool	    can;
	} rows[] = {
		{ "3.4.30", false }, { "3.4.31", true },  { "3.4.99", true },	 { "3.5.0", false },	 { "3.5.12", false }, { "3.5.13", true },
		{ "3.6.0", true },   { "3.7.3", true },	  { "4.0.0", true },	 { "2.3.8", false },	 { "3.3.99", false }, { "", false },
		{ "3.6", false },    { "three", false },  { "3.6.0-rc.1", true }, { "3.5.13-rc.0", false }, { "3.4.31-rc.0", false }, { "3.5.0-alpha.0", true },
		{ "3.6.1+x", true }, { "3.6.1.2", false }, { "3.06.1", false },	 { "-3.6.1", false },	 { "3.6.1x", false },
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
		int64_t waited_ms = vd_mono_since(world->toy.status_times[0][i], world->toy.status_times[0][i - 1]).ns / 1000000;

		assert_int_equal(waited_ms, expected_ms);
		expected_ms = VDI_MIN(2 * expected_ms, 15000);
	}
	world_free(world);
}

/* ---- The compactor ---- */

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
	/* The other one has died: this one wins the next round, and compacts at the revision of the lost one. */
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

/* ---- Calls ---- */

struct answer {
	bool		is_done;
	vd_status	status;
	vd_rev		revision;
	struct vd_error error;
	int64_t		ttl_s;
};

static void got_range(void *arg, vd_status status, const struct vd_range_result *result, const struct vd_error *error)
{
	struct answer *answer = arg;

	answer->is_done = true;
	answer->status = status;
	answer->revision = result ? result->revision : 0;
	if (error)
		answer->error = *error;
}

static void got_txn(void *arg, vd_status status, const struct vd_txn_result *result, const struct vd_error *error)
{
	struct answer *answer = arg;

	answer->is_done = true;
	answer->status = status;
	answer->revision = result ? result->revision : 0;
	if (error)
		answer->error = *error;
}

static void got_lease(void *arg, vd_status status, const struct vd_lease_result *result, const struct vd_error *error)
{
	struct answer *answer = arg;

	(void) error;
	answer->is_done = true;
	answer->status = status;
	answer->ttl_s = result ? result->ttl_s : 0;
}

static void got_done(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	struct answer *answer = arg;

	answer->is_done = true;
	answer->status = status;
	answer->revision = revision;
	if (error)
		answer->error = *error;
}

static bool is_done(void *arg)
{
	return ((struct answer *) arg)->is_done;
}

static void settle(struct world *world, struct answer *answer)
{
	assert_true(vdi_sim_run_until(world->env, is_done, answer, VD_SECONDS(60)));
}

static struct answer range_at(struct world *world, vd_rev revision)
{
	struct vd_range_request request = { .key = vd_bytes_of("a"), .revision = revision };
	struct answer		answer = { 0 };

	assert_status(vd_store_range(world->store, &request, got_range, &answer), VD_OK);
	settle(world, &answer);
	return answer;
}

static vd_status start_put(struct world *world, struct answer *answer)
{
	struct vd_op	      op = { .kind = VD_OP_PUT, .key = vd_bytes_of("a"), .value = vd_bytes_of("1") };
	struct vd_txn_request request = { .success = &op, .success_count = 1 };

	return vd_store_txn(world->store, &request, got_txn, answer);
}

static struct answer put(struct world *world)
{
	struct answer answer = { 0 };

	assert_status(start_put(world, &answer), VD_OK);
	settle(world, &answer);
	return answer;
}

static void e423_every_answer_tells_how_far_the_store_is(void **state)
{
	struct world *world = world_open(11, 1);

	(void) state;
	assert_int_equal(status_of(world).current, 1);
	assert_int_equal(put(world).revision, 2);
	assert_int_equal(status_of(world).current, 2);
	world->toy.revision = 40;
	assert_int_equal(range_at(world, 0).revision, 40);
	assert_int_equal(status_of(world).current, 40);
	assert_true(status_of(world).remote);
	assert_int_equal(status_of(world).key_count, -1);
	world_free(world);
}

static void e409_e422_refusals_carry_the_revisions(void **state)
{
	struct world *world = world_open(12, 1);
	struct answer answer = { 0 };

	(void) state;
	world->toy.revision = 40;
	(void) put(world);
	answer = range_at(world, 100);
	assert_status(answer.status, VD_TOO_LARGE_REVISION);
	assert_int_equal(answer.error.requested, 100);
	assert_int_equal(answer.error.current, 41);
	answer.is_done = false;
	assert_status(vd_store_compact(world->store, 30, false, got_done, &answer), VD_OK);
	settle(world, &answer);
	assert_status(answer.status, VD_OK);
	assert_int_equal(status_of(world).compacted, 30);
	answer = range_at(world, 20);
	assert_status(answer.status, VD_EXPIRED);
	assert_int_equal(answer.error.requested, 20);
	assert_int_equal(answer.error.compacted, 30);
	assert_int_equal(answer.error.current, 41);
	answer.is_done = false;
	assert_status(vd_store_compact(world->store, 30, false, got_done, &answer), VD_OK);
	settle(world, &answer);
	assert_status(answer.status, VD_EXPIRED);
	world_free(world);
}

/* What was sent and not answered may have happened: never an answer that says it has not. */
static void e701_a_write_in_doubt_is_unavailable_or_timed_out(void **state)
{
	struct world *world = world_open(13, 1);
	struct answer answer;

	(void) state;
	world->toy.is_silent = true;
	answer = put(world);
	assert_status(answer.status, VD_TIMEOUT);
	world->toy.is_silent = false;
	world->toy.fail_code = VDI_RPC_UNAVAILABLE;
	world->toy.fail_text = "etcdserver: request timed out, possibly due to connection lost";
	assert_status(put(world).status, VD_UNAVAILABLE);
	world->toy.fail_code = VDI_RPC_INTERNAL;
	world->toy.fail_text = "half way";
	answer = put(world);
	assert_true(answer.status == VD_UNAVAILABLE || answer.status == VD_TIMEOUT);
	assert_non_null(strstr(answer.error.message, "half way"));
	/* A server that refuses has done nothing. */
	world->toy.fail_code = VDI_RPC_RESOURCE_EXHAUSTED;
	world->toy.fail_text = "etcdserver: mvcc: database space exceeded";
	assert_status(put(world).status, VD_NO_SPACE);
	world_free(world);
}

static void e503_a_lease_that_is_gone_has_nothing_left(void **state)
{
	struct world *world = world_open(14, 1);
	struct answer answer = { 0 };

	(void) state;
	assert_status(vd_store_lease_keep_alive(world->store, 7, got_lease, &answer), VD_OK);
	settle(world, &answer);
	assert_status(answer.status, VD_OK);
	assert_int_equal(answer.ttl_s, 30);
	answer.is_done = false;
	assert_status(vd_store_lease_keep_alive(world->store, 404, got_lease, &answer), VD_OK);
	settle(world, &answer);
	assert_status(answer.status, VD_OK);
	assert_int_equal(answer.ttl_s, 0);
	world_free(world);
}

/* ---- Health, start, end ---- */

static void e617_silence_is_noticed_and_forgotten(void **state)
{
	struct world *world = world_open(15, 1);
	unsigned      ranges;

	(void) state;
	assert_false(status_of(world).unreachable);
	ranges = world->toy.ranges;
	vdi_sim_advance(world->env, VD_SECONDS(16));
	assert_int_equal(world->toy.ranges, ranges + 3); /* a sign of life every 5 s, when nothing else happens */
	world->toy.is_silent = true;
	vdi_sim_advance(world->env, VD_SECONDS(8)); /* 5 s until it is asked, 2 s for the answer */
	assert_true(status_of(world).unreachable);
	world->toy.is_silent = false;
	vdi_sim_advance(world->env, VD_SECONDS(3));
	assert_false(status_of(world).unreachable);
	world_free(world);
}

static void e617_a_server_that_refuses_is_there(void **state)
{
	struct world *world = world_open(16, 1);
	struct answer answer;

	(void) state;
	world->toy.fail_code = VDI_RPC_PERMISSION_DENIED;
	world->toy.fail_text = "etcdserver: permission denied";
	vdi_sim_advance(world->env, VD_SECONDS(30));
	assert_false(status_of(world).unreachable);
	answer = range_at(world, 0);
	assert_status(answer.status, VD_FORBIDDEN);
	assert_string_equal(answer.error.message, "http://e0:2379: etcdserver: permission denied"); /* who has refused it */
	world_free(world);
}

static void the_start_waits_and_names_endpoint_and_cause(void **state)
{
	struct world		    *world = world_new(17, 2);
	struct vd_etcd_store_options options = options_of();
	struct vd_error		     error = { 0 };

	(void) state;
	rpc_script_set_up(world->toy.script, 0, false);
	rpc_script_set_up(world->toy.script, 1, false);
	open_store(world, &options);
	assert_status(vdi_etcd_store_wait(world->inner, VD_SECONDS(20), &error), VD_UNAVAILABLE);
	assert_non_null(strstr(error.message, "no answer within 20 s from http://e0:2379: "));
	assert_non_null(strstr(error.message, "; http://e1:2379: "));
	/* It goes on looking. */
	rpc_script_set_up(world->toy.script, 1, true);
	assert_status(vdi_etcd_store_wait(world->inner, VD_SECONDS(20), &error), VD_OK);
	world_free(world);
}

static void the_start_ends_at_once_when_we_are_refused(void **state)
{
	struct world		    *world = world_new(18, 1);
	struct vd_etcd_store_options options = options_of();
	struct vd_error		     error = { 0 };
	vd_mono			     began = vd_env_now(world->env);

	(void) state;
	world->toy.fail_code = VDI_RPC_UNIMPLEMENTED;
	world->toy.fail_text = "unknown service etcdserverpb.KV";
	open_store(world, &options);
	assert_status(vdi_etcd_store_wait(world->inner, VD_SECONDS(20), &error), VD_UNSUPPORTED);
	assert_non_null(strstr(error.message, "unknown service"));
	assert_true(vd_mono_since(vd_env_now(world->env), began).ns < VD_SECONDS(3).ns);
	world_free(world);
}

static void count_ready(void *arg)
{
	(*(unsigned *) arg)++;
}

static void shut_gives_up_what_is_outstanding(void **state)
{
	struct world *world = world_open(19, 1);
	struct answer read = { 0 }, write = { 0 };
	struct vd_range_request request = { .key = vd_bytes_of("a") };
	struct vd_store_status	status;
	vd_mono			began = vd_env_now(world->env);

	(void) state;
	world->toy.is_silent = true;
	assert_status(vd_store_range(world->store, &request, got_range, &read), VD_OK);
	assert_status(start_put(world, &write), VD_OK);
	vdi_sim_run_until_idle(world->env);
	vd_store_shut(world->store);
	vd_store_shut(world->store);
	settle(world, &read);
	settle(world, &write);
	assert_status(read.status, VD_CLOSED);
	assert_status(write.status, VD_CLOSED);
	assert_true(vd_mono_since(vd_env_now(world->env), began).ns < VD_SECONDS(1).ns);
	assert_status(vd_store_range(world->store, &request, got_range, &read), VD_CLOSED);
	assert_status(vd_store_status_get(world->store, &status), VD_CLOSED);
	{
		unsigned		      ready = 0;
		struct vd_store_watch_request watched = { .key = vd_bytes_of("a"), .ready = count_ready, .ready_arg = &ready };
		struct vd_store_watch	     *watch = NULL;
		struct vd_error		      error = { 0 };

		assert_status(vd_store_watch_open(world->store, &watched, &watch, &error), VD_CLOSED);
		assert_status(error.code, VD_CLOSED);
		assert_null(watch);
	}
	world_free(world);
}

static void closing_at_any_moment(void **state)
{
	(void) state;
	for (uint64_t steps = 0; steps < 60; steps++) {
		struct world		    *world = world_new(steps + 100, 2);
		struct vd_etcd_store_options options = options_of();
		struct answer		     answer = { 0 };
		bool			     is_started = false;

		rpc_script_set_delay(world->toy.script, VD_MS(3));
		open_store(world, &options);
		for (uint64_t i = 0; i < steps; i++) {
			if (i == 7) {
				assert_status(start_put(world, &answer), VD_OK);
				is_started = true;
			}
			if (!vdi_sim_step(world->env))
				(void) vdi_sim_advance_to_next_timer(world->env);
		}
		close_store(world);
		assert_int_equal(answer.is_done, is_started);
		world_free(world);
	}
}

/* ---- Watches ---- */

static struct vd_store_watch *watch_from(struct world *world, const char *key, vd_rev start, unsigned *ready)
{
	struct vd_store_watch_request request = { .key = vd_bytes_of(key), .start_revision = start, .ready = count_ready, .ready_arg = ready };
	struct vd_store_watch	     *watch = NULL;

	assert_status(vd_store_watch_open(world->store, &request, &watch, NULL), VD_OK);
	vdi_sim_run_until_idle(world->env);
	return watch;
}

/* "5 5 6" or "progress 9" or the status. */
static const char *next_text(struct world *world, struct vd_store_watch *watch, size_t max)
{
	static char	      text[256];
	struct vd_store_batch batch;
	struct vd_error	      error;
	vd_status	      status;
	size_t		      used = 0;

	vdi_sim_run_until_idle(world->env);
	status = vd_store_watch_next(watch, max, &batch, &error);
	if (status != VD_OK)
		return vd_status_name(status);
	if (batch.event_count == 0)
		(void) snprintf(text, sizeof text, "progress %lld", (long long) batch.revision);
	for (size_t i = 0; i < batch.event_count; i++)
		used += (size_t) snprintf(text + used, sizeof text - used, "%s%lld", i ? " " : "", (long long) batch.events[i].kv->mod_rev);
	if (batch.event_count)
		assert_int_equal(batch.revision, batch.events[batch.event_count - 1].kv->mod_rev);
	return text;
}

static void e329_batches_are_whole_revisions(void **state)
{
	static const vd_rev revisions[] = { 5, 5, 6, 7, 7, 7, 8, 9 };
	struct world	   *world = world_open(20, 1);
	unsigned	    ready = 0;
	struct vd_store_watch *watch = watch_from(world, "a", 2, &ready);

	(void) state;
	assert_true(etcd_toy_watch(&world->toy, "a")->require_leader); /* */
	assert_string_equal(next_text(world, watch, 1), "again");
	etcd_toy_send(&world->toy, etcd_toy_watch(&world->toy, "a"), revisions, VDI_ARRAY_SIZE(revisions));
	vdi_sim_run_until_idle(world->env);
	assert_int_equal(ready, 1);
	assert_string_equal(next_text(world, watch, 1), "5 5");
	assert_string_equal(next_text(world, watch, 2), "6 7 7 7");
	assert_string_equal(next_text(world, watch, 100), "8 9");
	assert_string_equal(next_text(world, watch, 100), "again");
	assert_int_equal(status_of(world).current, 9);
	vd_store_watch_close(watch);
	world_free(world);
}

/* The newest revision heard of decides, not when the server gets the request. */
static void e704_from_now_on_begins_behind_what_is_known(void **state)
{
	struct world	      *world = world_open(21, 1);
	unsigned	       ready = 0;
	struct vd_store_watch *watch;

	(void) state;
	world->toy.revision = 40;
	(void) put(world); /* 41 */
	etcd_toy_write(&world->toy); /* not heard of */
	watch = watch_from(world, "a", 0, &ready);
	assert_int_equal(etcd_toy_watch(&world->toy, "a")->start, 42);
	assert_int_equal(watch->opened, 41);
	vd_store_watch_close(watch);
	world_free(world);
}

/* it never fails with "compacted". */
static void r231_from_now_on_after_a_long_silence(void **state)
{
	struct world	      *world = world_open(22, 1);
	unsigned	       ready = 0;
	struct vd_store_watch *watch;
	vd_rev		       next = 1001;

	(void) state;
	world->toy.revision = 1000;
	world->toy.compacted = 900;
	watch = watch_from(world, "a", 0, &ready);
	assert_string_equal(next_text(world, watch, 1), "again");
	assert_string_equal(next_text(world, watch, 1), "again");
	assert_int_equal(etcd_toy_watch(&world->toy, "a")->start, 900);
	etcd_toy_send(&world->toy, etcd_toy_watch(&world->toy, "a"), &next, 1);
	assert_string_equal(next_text(world, watch, 1), "1001");
	/* From there it is a watch like any other: where it began is told when that is compacted. */
	{
		struct vd_store_batch batch;
		struct vd_error	      error = { 0 };

		etcd_toy_expire(&world->toy, etcd_toy_watch(&world->toy, "a"), 1500);
		vdi_sim_run_until_idle(world->env);
		assert_status(vd_store_watch_next(watch, 1, &batch, &error), VD_EXPIRED);
		assert_int_equal(error.requested, 900);
		assert_int_equal(error.compacted, 1500);
	}
	vd_store_watch_close(watch);
	world_free(world);
}

/* What was written through the store after the watch was asked for is seen, or the watch says that it cannot be. */
static void e704_from_now_on_hides_no_write_that_was_compacted(void **state)
{
	struct world	      *world = world_open(22, 1);
	unsigned	       ready = 0;
	struct vd_store_watch *watch;
	struct vd_store_batch  batch;
	struct vd_error	       error = { 0 };

	(void) state;
	world->toy.revision = 1000;
	world->toy.compacted = 900;
	watch = watch_from(world, "a", 0, &ready);
	(void) put(world);
	assert_int_equal(vd_store_watch_next(watch, 1, &batch, &error), VD_EXPIRED);
	assert_int_equal(error.compacted, 900);
	vd_store_watch_close(watch);
	world_free(world);
}

/* The server has had the watch: what others wrote while the line was cut, and a compaction took, must be told as a gap. What was written before it had the watch need
 * not be seen. */
static void e704_from_now_on_has_no_silent_gap(void **state)
{
	static const struct {
		vd_rev compacted;
		bool   is_gap;
	} rows[] = { { 900, false }, { 1001, false }, { 1002, true }, { 1500, true } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct world	      *world = world_open(22, 1);
		unsigned	       ready = 0;
		struct vd_store_watch *watch;
		struct vd_store_batch  batch;
		struct vd_error	       error = { 0 };

		world->toy.revision = 1000;
		watch = watch_from(world, "a", 0, &ready);
		assert_string_equal(next_text(world, watch, 1), "again");
		world->toy.revision = 2000;
		world->toy.compacted = rows[i].compacted;
		rpc_script_cut(world->toy.script, 0);
		vdi_sim_advance(world->env, VD_SECONDS(30));
		if (rows[i].is_gap) {
			assert_status(vd_store_watch_next(watch, 1, &batch, &error), VD_EXPIRED);
			assert_int_equal(error.compacted, rows[i].compacted);
		} else {
			assert_string_equal(next_text(world, watch, 1), "again");
			assert_string_equal(next_text(world, watch, 1), "again");
			assert_int_equal(etcd_toy_watch(&world->toy, "a")->start, rows[i].compacted);
		}
		vd_store_watch_close(watch);
		world_free(world);
	}
}

static void e334_a_compacted_start_is_told_with_its_revisions(void **state)
{
	struct world		     *world = world_open(23, 1);
	unsigned		      ready = 0;
	struct vd_store_watch	     *watch;
	struct vd_store_batch	      batch;
	struct vd_error		      error = { 0 };

	(void) state;
	world->toy.revision = 1000;
	world->toy.compacted = 900;
	watch = watch_from(world, "a", 500, &ready);
	vdi_sim_run_until_idle(world->env);
	assert_status(vd_store_watch_next(watch, 1, &batch, &error), VD_EXPIRED);
	assert_int_equal(error.compacted, 900);
	assert_int_equal(error.current, 900); /* at least; nothing newer was heard of */
	assert_int_equal(status_of(world).compacted, 900);
	assert_status(vd_store_watch_next(watch, 1, &batch, &error), VD_EXPIRED);
	vd_store_watch_close(watch);
	world_free(world);
}

/* rules: R-144 */
static void r143_e245_progress_comes_to_who_wants_it(void **state)
{
	struct world		     *world = world_open(24, 1);
	unsigned		      ready = 0;
	struct vd_store_watch	     *asks = watch_from(world, "a", 2, &ready), *does_not = watch_from(world, "b", 2, &ready), *always = NULL;
	struct vd_store_watch_request request = { .key = vd_bytes_of("c"), .start_revision = 2, .progress = true, .ready = count_ready, .ready_arg = &ready };

	(void) state;
	assert_status(vd_store_watch_open(world->store, &request, &always, NULL), VD_OK);
	vdi_sim_run_until_idle(world->env);
	assert_true(etcd_toy_watch(&world->toy, "a")->require_leader && etcd_toy_watch(&world->toy, "b")->require_leader);
	assert_true(etcd_toy_watch(&world->toy, "c")->require_leader);
	world->toy.revision = 10;
	assert_status(vd_store_watch_progress(asks), VD_OK);
	assert_string_equal(next_text(world, asks, 1), "progress 10");
	assert_string_equal(next_text(world, asks, 1), "again");
	assert_string_equal(next_text(world, does_not, 1), "again");
	assert_string_equal(next_text(world, always, 1), "progress 10");
	assert_int_equal(status_of(world).current, 10);
	/* It never goes back, nor says anything about what is before the start. */
	etcd_toy_progress(&world->toy, etcd_toy_watch(&world->toy, "c"), 9);
	assert_string_equal(next_text(world, always, 1), "again");
	vd_store_watch_close(always);
	request.start_revision = 50;
	assert_status(vd_store_watch_open(world->store, &request, &always, NULL), VD_OK);
	vdi_sim_run_until_idle(world->env);
	etcd_toy_progress(&world->toy, etcd_toy_watch(&world->toy, "c"), 49); /* E-340 */
	assert_string_equal(next_text(world, always, 1), "again");
	etcd_toy_progress(&world->toy, etcd_toy_watch(&world->toy, "c"), 50);
	assert_string_equal(next_text(world, always, 1), "progress 50");
	vd_store_watch_close(asks);
	vd_store_watch_close(does_not);
	vd_store_watch_close(always);
	world_free(world);
}

/* The watches of all caches lie on one stream: readers of several resources that wait at once cost one request, and its answer is for all of them. */
static void w29_one_request_for_progress_serves_all_caches(void **state)
{
	struct world	      *world = world_open(43, 1);
	unsigned	       ready = 0;
	struct vd_store_watch *watches[5];

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(watches); i++)
		watches[i] = watch_from(world, (const char[2]) { (char) ('a' + i), 0 }, 2, &ready);
	world->toy.revision = 10;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(watches); i++)
		assert_status(vd_store_watch_progress(watches[i]), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(watches); i++)
		assert_string_equal(next_text(world, watches[i], 1), "progress 10");
	vdi_sim_advance(world->env, VD_SECONDS(2));
	assert_int_equal(world->toy.progress_requests, 1);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(watches); i++)
		vd_store_watch_close(watches[i]);
	world_free(world);
}

/* A server that is behind with any watch of the stream drops the request. */
static void e317_a_dropped_request_for_progress_is_repeated(void **state)
{
	struct world	      *world = world_open(41, 1);
	unsigned	       ready = 0;
	struct vd_store_watch *watch = watch_from(world, "a", 2, &ready);

	(void) state;
	world->toy.revision = 10;
	world->toy.has_progress = false;
	assert_status(vd_store_watch_progress(watch), VD_OK);
	vdi_sim_advance(world->env, VD_MS(50));
	assert_int_equal(world->toy.progress_requests, 1);
	vdi_sim_advance(world->env, VD_MS(60));
	assert_int_equal(world->toy.progress_requests, 2);
	assert_string_equal(next_text(world, watch, 1), "again");
	vdi_sim_advance(world->env, VD_SECONDS(10));
	assert_in_range(world->toy.progress_requests, 10, 16); /* ever more patiently */
	world->toy.has_progress = true;
	vdi_sim_advance(world->env, VD_SECONDS(1));
	assert_string_equal(next_text(world, watch, 1), "progress 10");
	world->toy.progress_requests = 0;
	vdi_sim_advance(world->env, VD_SECONDS(10));
	assert_int_equal(world->toy.progress_requests, 0);
	vd_store_watch_close(watch);
	world_free(world);
}

/* A watch that waits for a revision to come keeps the server from answering on its stream (E-340), and one that catches up does, too. */
static void e317_watches_of_the_past_have_a_stream_to_themselves(void **state)
{
	static const vd_rev    revisions[] = { 10 };
	struct world	      *world = world_open(42, 1);
	unsigned	       ready = 0;
	struct vd_store_watch *next = watch_from(world, "next", 2, &ready), *past;
	struct toy_watch      *toy_next = etcd_toy_watch(&world->toy, "next"), *toy_past;

	(void) state;
	etcd_toy_send(&world->toy, toy_next, revisions, 1);
	assert_string_equal(next_text(world, next, 1), "10");
	past = watch_from(world, "past", 10, &ready);
	toy_past = etcd_toy_watch(&world->toy, "past");
	assert_ptr_not_equal(toy_past->call, toy_next->call);
	assert_true(toy_past->require_leader);
	vd_store_watch_close(next);
	next = watch_from(world, "next", 11, &ready);
	toy_next = etcd_toy_watch(&world->toy, "next");
	assert_ptr_not_equal(toy_past->call, toy_next->call);
	world->toy.revision = 10;
	world->toy.has_progress = false;
	/* Each is asked where it is, again and again. */
	assert_status(vd_store_watch_progress(past), VD_OK);
	vdi_sim_advance(world->env, VD_MS(500));
	assert_in_range(world->toy.progress_requests, 3, 6);
	assert_ptr_equal(world->toy.progress_call, toy_past->call);
	world->toy.has_progress = true;
	vdi_sim_advance(world->env, VD_SECONDS(1));
	assert_string_equal(next_text(world, past, 1), "progress 10");
	assert_string_equal(next_text(world, next, 1), "again");
	assert_status(vd_store_watch_progress(next), VD_OK);
	vdi_sim_advance(world->env, VD_MS(500));
	assert_ptr_equal(world->toy.progress_call, toy_next->call);
	vd_store_watch_close(past);
	vd_store_watch_close(next);
	world_free(world);
}

static void r173_without_support_progress_is_not_asked_for(void **state)
{
	struct world		    *world = world_new(25, 1);
	struct vd_etcd_store_options options = options_of();
	unsigned		     ready = 0;
	struct vd_store_watch	    *watch;

	(void) state;
	world->toy.versions[0] = "3.4.23";
	open_store(world, &options);
	assert_status(vdi_etcd_store_wait(world->inner, VD_SECONDS(20), NULL), VD_OK);
	watch = watch_from(world, "a", 2, &ready);
	assert_status(vd_store_watch_progress(watch), VD_UNSUPPORTED);
	vdi_sim_run_until_idle(world->env);
	assert_int_equal(world->toy.progress_requests, 0);
	vd_store_watch_close(watch);
	world_free(world);
}

static void e358_watches_outlive_the_store(void **state)
{
	struct world	      *world = world_open(26, 1);
	unsigned	       ready = 0;
	struct vd_store_watch *watch = watch_from(world, "a", 2, &ready);
	struct vd_store_batch  batch;

	(void) state;
	assert_string_equal(next_text(world, watch, 1), "again");
	close_store(world);
	assert_int_equal(ready, 1);
	assert_status(vd_store_watch_next(watch, 1, &batch, NULL), VD_CLOSED);
	assert_status(vd_store_watch_progress(watch), VD_CLOSED);
	vd_store_watch_close(watch);
	world_free(world);
}

/* ---- Long reads ---- */

static struct vd_store_stream *stream_of(struct world *world, vd_rev revision, unsigned *ready)
{
	struct vd_store_stream_request request = { .range = { .key = vd_bytes_of("k"), .range_end = vd_bytes_of("l"), .revision = revision },
						   .ready = count_ready,
						   .ready_arg = ready };
	struct vd_store_stream	      *stream = NULL;

	assert_status(vd_store_stream_open(world->store, &request, &stream), VD_OK);
	return stream;
}

/* The next part; fails the test when none comes. */
static vd_status next_part(struct world *world, struct vd_store_stream *stream, struct vd_store_part *ret_part, struct vd_error *reterr)
{
	vd_status status;

	while ((status = vd_store_stream_next(stream, ret_part, reterr)) == VD_AGAIN)
		assert_true(vdi_sim_step(world->env));
	return status;
}

/* rules: T-081 */
static void r158_parts_come_in_order_at_one_revision(void **state)
{
	for (int asked = 0; asked < 2; asked++) {
		struct world	       *world = world_open(27, 1);
		unsigned		ready = 0;
		struct vd_store_stream *stream;
		struct vd_store_part	part;
		struct vd_error		error;
		size_t			seen = 0;
		char			key[16];
		bool			is_last = false;

		(void) state;
		world->toy.has_stream = true;
		world->toy.revision = 30;
		world->toy.stream_parts = 9;
		world->toy.stream_part_len = 11;
		world->toy.stream_more = asked;
		stream = stream_of(world, asked ? 20 : 0, &ready);
		while (!is_last) {
			assert_status(next_part(world, stream, &part, &error), VD_OK);
			assert_int_equal(part.range.revision, asked ? 20 : 30);
			assert_int_equal(part.range.more, part.last && asked);
			if (part.range.kv_count)
				assert_int_equal(part.range.count, 99 + asked);
			for (size_t i = 0; i < part.range.kv_count; i++, seen++) {
				snprintf(key, sizeof key, "k%06zu", seen);
				assert_true(vd_bytes_equal(vd_kv_key(part.range.kvs[i]), vd_bytes_of(key)));
			}
			world->toy.revision++; /* later headers do not matter */
			is_last = part.last;
		}
		assert_int_equal(seen, 99);
		assert_status(vd_store_stream_next(stream, &part, &error), VD_CLOSED);
		vd_store_stream_close(stream);
		assert_int_equal(world->toy.streams, 1);
		world_free(world);
	}
}

/* Who does not pull holds the server back. */
static void r158_a_slow_reader_is_back_pressure(void **state)
{
	struct world	       *world = world_open(28, 1);
	unsigned		ready = 0;
	struct vd_store_stream *stream;
	struct vd_store_part	part;
	struct rpc_script_call *call = NULL;

	(void) state;
	world->toy.has_stream = true;
	world->toy.stream_parts = 50;
	world->toy.stream_part_len = 3;
	stream = stream_of(world, 0, &ready);
	vdi_sim_advance(world->env, VD_SECONDS(1));
	for (size_t i = 0; i < rpc_script_call_count(world->toy.script); i++)
		if (strcmp(rpc_script_call_method(rpc_script_call_at(world->toy.script, i)), "/etcdserverpb.KV/RangeStream") == 0)
			call = rpc_script_call_at(world->toy.script, i);
	assert_non_null(call);
	assert_true(rpc_script_call_pending_count(call) >= 48); /* one is here, perhaps one on its way */
	assert_status(next_part(world, stream, &part, NULL), VD_OK);
	vdi_sim_advance(world->env, VD_SECONDS(1));
	assert_true(rpc_script_call_pending_count(call) >= 47);
	vd_store_stream_close(stream);
	world_free(world);
}

/* rules: T-080, T-105 */
static void r158_unimplemented_is_remembered_for_ten_minutes(void **state)
{
	struct world		      *world = world_open(29, 1);
	unsigned		       ready = 0;
	struct vd_store_stream	      *stream = stream_of(world, 0, &ready);
	struct vd_store_stream_request request = { .range = { .key = vd_bytes_of("k") }, .ready = count_ready, .ready_arg = &ready };
	struct vd_store_part	       part;
	struct vd_error		       error;

	(void) state;
	assert_status(next_part(world, stream, &part, &error), VD_UNSUPPORTED);
	vd_store_stream_close(stream);
	assert_status(vd_store_stream_open(world->store, &request, &stream), VD_UNSUPPORTED);
	vdi_sim_advance(world->env, VD_SECONDS(599));
	assert_status(vd_store_stream_open(world->store, &request, &stream), VD_UNSUPPORTED);
	assert_int_equal(world->toy.streams, 1);
	world->toy.has_stream = true;
	world->toy.stream_parts = 1;
	world->toy.stream_part_len = 1;
	vdi_sim_advance(world->env, VD_SECONDS(2));
	stream = stream_of(world, 0, &ready);
	assert_status(next_part(world, stream, &part, &error), VD_OK);
	vd_store_stream_close(stream);
	world_free(world);
}

static void r158_how_a_long_read_may_end(void **state)
{
	static const struct {
		int	    code;
		const char *text;
		vd_status   expected;
	} rows[] = {
		{ VDI_RPC_OUT_OF_RANGE, "etcdserver: mvcc: required revision has been compacted", VD_EXPIRED },
		{ VDI_RPC_OUT_OF_RANGE, "etcdserver: mvcc: required revision is a future revision", VD_TOO_LARGE_REVISION },
		{ VDI_RPC_UNAVAILABLE, "etcdserver: server stopped", VD_UNAVAILABLE },
		{ VDI_RPC_PERMISSION_DENIED, "etcdserver: permission denied", VD_FORBIDDEN },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		for (size_t parts = 0; parts < 3; parts++) {
			struct world	       *world = world_open(30 + i, 1);
			unsigned		ready = 0;
			struct vd_store_stream *stream;
			struct vd_store_part	part;
			struct vd_error		error = { 0 };

			world->toy.has_stream = true;
			world->toy.stream_parts = parts;
			world->toy.stream_part_len = 2;
			world->toy.stream_end_code = rows[i].code;
			world->toy.stream_end_text = rows[i].text;
			stream = stream_of(world, 0, &ready);
			for (size_t n = 0; n < parts; n++) {
				assert_status(next_part(world, stream, &part, &error), VD_OK);
				assert_false(part.last);
			}
			assert_status(next_part(world, stream, &part, &error), rows[i].expected);
			assert_status(error.code, rows[i].expected);
			assert_non_null(strstr(error.message, rows[i].text));
			vd_store_stream_close(stream);
			world_free(world);
		}
	/* No part, no revision. */
	{
		struct world	       *world = world_open(40, 1);
		unsigned		ready = 0;
		struct vd_store_stream *stream;
		struct vd_store_part	part;

		world->toy.has_stream = true;
		stream = stream_of(world, 0, &ready);
		assert_status(next_part(world, stream, &part, NULL), VD_CORRUPT);
		vd_store_stream_close(stream);
		world_free(world);
	}
}

static void a_long_read_is_closed_at_any_moment(void **state)
{
	(void) state;
	for (unsigned steps = 0; steps < 60; steps++) {
		struct world	       *world = world_open(steps + 1, 1);
		unsigned		ready = 0;
		struct vd_store_stream *stream;
		struct vd_store_part	part;

		world->toy.has_stream = true;
		world->toy.stream_parts = 4;
		world->toy.stream_part_len = 2;
		stream = stream_of(world, 0, &ready);
		for (unsigned i = 0; i < steps && vdi_sim_step(world->env); i++)
			if (i % 3 == 0 && vd_store_stream_next(stream, &part, NULL) == VD_CLOSED)
				break;
		if (steps % 2)
			vd_store_shut(world->store);
		vd_store_stream_close(stream);
		world_free(world);
	}
}

/* ---- Memory ---- */

static void torture_the_store(void **state)
{
	(void) state;
	for (uint64_t nth = 1;; nth++) {
		struct world		    *world = world_new(nth, 1);
		struct vd_etcd_store_options options = options_of();
		struct vd_etcd		    *client = etcd_toy_client(&world->toy);
		struct vd_store_watch	    *watch = NULL;
		struct vd_store_stream	    *stream = NULL;
		struct vd_store_part	     part;
		struct vd_store_batch	     batch;
		unsigned		     ready = 0;
		struct vd_store_watch_request request = { .key = vd_bytes_of("a"), .ready = count_ready, .ready_arg = &ready };
		struct vd_store_stream_request long_read = { .range = { .key = vd_bytes_of("k") }, .ready = count_ready, .ready_arg = &ready };
		struct answer		     answer = { .status = VD_OK };
		vd_status		     status;
		bool			     failed;

		world->toy.has_stream = true;
		world->toy.stream_parts = 2;
		world->toy.stream_part_len = 2;
		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_etcd_store_new(world->env, client, &options, world->toy.endpoints, 1, &world->inner, NULL);
		if (status == VD_OK) {
			world->store = &world->inner->base;
			status = start_put(world, &answer);
			if (status == VD_OK)
				settle(world, &answer);
			if (status == VD_OK)
				status = answer.status;
			if (status == VD_OK)
				status = vd_store_watch_open(world->store, &request, &watch, NULL);
			if (status == VD_OK)
				status = vd_store_stream_open(world->store, &long_read, &stream);
			vdi_sim_run_until_idle(world->env);
			while (stream && (status = next_part(world, stream, &part, NULL)) == VD_OK)
				continue;
			if (status == VD_CLOSED)
				status = VD_OK;
			if (watch && vd_store_watch_next(watch, 1, &batch, NULL) == VD_NOMEM)
				status = VD_NOMEM;
		} else {
			assert_status(status, VD_NOMEM);
		}
		failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		vd_store_watch_close(watch);
		vd_store_stream_close(stream);
		vdi_sim_run_until_idle(world->env);
		world_free(world);
		if (!failed) {
			assert_status(status, VD_OK);
			break;
		}
		assert_true(nth < 5000);
	}
}

static void close_twice(void)
{
	struct world *world = world_open(41, 1);

	vd_store_close(world->store, NULL, NULL);
	vd_store_close(world->store, NULL, NULL);
}

static void closing_twice_is_named(void **state)
{
	(void) state;
	expect_panic(close_twice, "vd_store_close: the store is closing already");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r173_versions_that_can_prove_progress),
		cmocka_unit_test(r173_what_is_not_known_is_not_supported),
		cmocka_unit_test(r173_one_that_cannot_turns_it_off_for_good),
		cmocka_unit_test(r173_the_probe_backs_off_from_10_ms_to_15_s),
		cmocka_unit_test(r170_r171_a_lone_server_compacts_one_round_late),
		cmocka_unit_test(r171_who_loses_a_round_adopts_and_waits),
		cmocka_unit_test(r171_a_failed_round_changes_nothing),
		cmocka_unit_test(r171_a_deleted_key_starts_anew),
		cmocka_unit_test(r170_interval_0_only_follows_others),
		cmocka_unit_test(r172_a_lost_watch_of_the_key_is_opened_again_after_a_read),
		cmocka_unit_test(r172_what_was_compacted_before_the_start_is_known_at_once),
		cmocka_unit_test(e423_every_answer_tells_how_far_the_store_is),
		cmocka_unit_test(e409_e422_refusals_carry_the_revisions),
		cmocka_unit_test(e701_a_write_in_doubt_is_unavailable_or_timed_out),
		cmocka_unit_test(e503_a_lease_that_is_gone_has_nothing_left),
		cmocka_unit_test(e617_silence_is_noticed_and_forgotten),
		cmocka_unit_test(e617_a_server_that_refuses_is_there),
		cmocka_unit_test(the_start_waits_and_names_endpoint_and_cause),
		cmocka_unit_test(the_start_ends_at_once_when_we_are_refused),
		cmocka_unit_test(shut_gives_up_what_is_outstanding),
		cmocka_unit_test(closing_at_any_moment),
		cmocka_unit_test(e329_batches_are_whole_revisions),
		cmocka_unit_test(e704_from_now_on_begins_behind_what_is_known),
		cmocka_unit_test(r231_from_now_on_after_a_long_silence),
		cmocka_unit_test(e704_from_now_on_hides_no_write_that_was_compacted),
		cmocka_unit_test(e704_from_now_on_has_no_silent_gap),
		cmocka_unit_test(e334_a_compacted_start_is_told_with_its_revisions),
		cmocka_unit_test(r143_e245_progress_comes_to_who_wants_it),
		cmocka_unit_test(w29_one_request_for_progress_serves_all_caches),
		cmocka_unit_test(e317_a_dropped_request_for_progress_is_repeated),
		cmocka_unit_test(e317_watches_of_the_past_have_a_stream_to_themselves),
		cmocka_unit_test(r173_without_support_progress_is_not_asked_for),
		cmocka_unit_test(e358_watches_outlive_the_store),
		cmocka_unit_test(r158_parts_come_in_order_at_one_revision),
		cmocka_unit_test(r158_a_slow_reader_is_back_pressure),
		cmocka_unit_test(r158_unimplemented_is_remembered_for_ten_minutes),
		cmocka_unit_test(r158_how_a_long_read_may_end),
		cmocka_unit_test(a_long_read_is_closed_at_any_moment),
		cmocka_unit_test(torture_the_store),
		cmocka_unit_test(closing_twice_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
