/* storage/etcd/etcd_store.c over a toy etcd: calls, health, start, end, memory. */
#include "etcd_store_world.h"

#include "expect_panic.h"

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
static void e701_a_write_in_unconfirmed_is_unavailable_or_timed_out(void **state)
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

static void e617_silence_is_noticed_and_forgotten(void **state)
{
	struct world *world = world_open(15, 1);
	unsigned      ranges;

	(void) state;
	assert_false(status_of(world).unreachable);
	ranges = world->toy.ranges;
	vdi_sim_advance(world->env, VD_SECONDS(16));
	assert_int_equal(world->toy.ranges,
			 ranges + 3); /* a sign of life every 5 s, when nothing else happens */
	world->toy.is_silent = true;
	vdi_sim_advance(world->env, VD_SECONDS(8)); /* 5 s until it is asked, 2 s for the answer */
	assert_true(status_of(world).unreachable);
	world->toy.is_silent = false;
	vdi_sim_advance(world->env, VD_SECONDS(3));
	assert_false(status_of(world).unreachable);
	world_free(world);
}

/* It is asked after 5 s without an answer and has 2 s to answer; the first answer without an error ends
 * it. */
static void e617_two_seconds_without_an_answer_are_silence(void **state)
{
	struct world *world = world_open(27, 1);

	(void) state;
	rpc_script_set_delay(world->toy.script, (vd_dur) { 0 });
	assert_status(range_at(world, 0).status, VD_OK); /* it has just answered */
	world->toy.is_silent = true;
	vdi_sim_advance(world->env, (vd_dur) { VD_SECONDS(7).ns - 1 });
	assert_false(status_of(world).unreachable);
	vdi_sim_advance(world->env, (vd_dur) { 1 });
	assert_true(status_of(world).unreachable);
	world->toy.is_silent = false; /* its key does not exist: that is an answer */
	assert_int_equal(world->toy.key_version, 0);
	vdi_sim_advance(world->env, VD_SECONDS(2));
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
	assert_string_equal(answer.error.message,
			    "http://e0:2379: etcdserver: permission denied"); /* who has refused it */
	world_free(world);
}

/* A refusal is a sign of life like any answer: no health check comes within 5 s after it. */
static void e617_a_refusal_is_a_sign_of_life(void **state)
{
	struct world *world = world_open(17, 1);
	unsigned      ranges;

	(void) state;
	world->toy.fail_code = VDI_RPC_INVALID_ARGUMENT;
	world->toy.fail_text = "etcdserver: key is not provided";
	vdi_sim_advance(world->env, VD_SECONDS(4));
	assert_status(range_at(world, 0).status, VD_INVALID_ARGUMENT);
	world->toy.fail_code = 0; /* from now on requests are counted */
	ranges = world->toy.ranges;
	vdi_sim_advance(world->env, VD_SECONDS(4));
	assert_int_equal(world->toy.ranges, ranges);
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
	assert_non_null(strstr(error.message, "no response within 20 s from http://e0:2379: "));
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

/* A refusal that a repetition would get again ends the start; one that may pass is waited out; a client that
 * may not read the key of the compactor has found an etcd. */
static void which_refusals_end_the_start(void **state)
{
	static const struct {
		int	    code;
		const char *text;
		bool	    begins, is_final;
	} rows[] = {
		{ VDI_RPC_PERMISSION_DENIED, "etcdserver: permission denied", true, false },
		{ VDI_RPC_PERMISSION_DENIED, "not for you", false, true },
		{ VDI_RPC_UNAUTHENTICATED, "etcdserver: invalid auth token", false, true },
		{ VDI_RPC_INVALID_ARGUMENT, "etcdserver: user name is empty", false, true },
		{ VDI_RPC_UNIMPLEMENTED, "unknown service etcdserverpb.KV", false, true },
		{ VDI_RPC_INTERNAL, "broken", false, true },
		{ VDI_RPC_UNAVAILABLE, "etcdserver: leader changed", false, false },
		{ VDI_RPC_UNAVAILABLE, "etcdserver: request timed out", false, false },
		{ VDI_RPC_DEADLINE_EXCEEDED, "too late", false, false },
		{ VDI_RPC_RESOURCE_EXHAUSTED, "etcdserver: too many requests", false, false },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct world		    *world = world_new(18, 1);
		struct vd_etcd_store_options options = options_of();
		vd_mono			     began = vd_env_now(world->env);
		vd_status		     status;
		bool			     is_late;

		world->toy.fail_code = rows[i].code;
		world->toy.fail_text = rows[i].text;
		open_store(world, &options);
		status = vdi_etcd_store_wait(world->inner, VD_SECONDS(20), NULL);
		is_late = vd_mono_since(vd_env_now(world->env), began).ns >= VD_SECONDS(20).ns;
		if ((status == VD_OK) != rows[i].begins || is_late != (!rows[i].begins && !rows[i].is_final))
			fail_msg("row %zu: %s%s", i, vd_status_name(status), is_late ? ", late" : "");
		assert_true(world->toy.ranges <= 205); /* ten a second, however fast the answers are */
		world->toy.fail_code = 0;
		if (!rows[i].is_final)
			assert_status(vdi_etcd_store_wait(world->inner, VD_SECONDS(20), NULL), VD_OK);
		world_free(world);
	}
}

/* rules: E-358 */
static void shutdown_gives_up_what_is_outstanding(void **state)
{
	struct world	       *world = world_open(19, 1);
	struct answer		read = { 0 }, write = { 0 };
	struct vd_range_request request = { .key = vd_bytes_of("a") };
	struct vd_store_status	status;
	vd_mono			began = vd_env_now(world->env);

	(void) state;
	world->toy.is_silent = true;
	assert_status(vd_store_range(world->store, &request, got_range, &read), VD_OK);
	assert_status(start_put(world, &write), VD_OK);
	vdi_sim_run_until_idle(world->env);
	vd_store_shutdown(world->store);
	vd_store_shutdown(world->store);
	settle(world, &read);
	settle(world, &write);
	assert_status(read.status, VD_CLOSED);
	assert_status(write.status, VD_CLOSED);
	assert_true(vd_mono_since(vd_env_now(world->env), began).ns < VD_SECONDS(1).ns);
	assert_status(vd_store_range(world->store, &request, got_range, &read), VD_CLOSED);
	assert_status(vd_store_status_get(world->store, &status), VD_CLOSED);
	{
		unsigned		      ready = 0;
		struct vd_store_watch_request watched = { .key = vd_bytes_of("a"),
							  .ready = count_ready,
							  .ready_arg = &ready };
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

static void torture_the_store(void **state)
{
	(void) state;
	for (uint64_t nth = 1;; nth++) {
		struct world		      *world = world_new(nth, 1);
		struct vd_etcd_store_options   options = options_of();
		struct vd_etcd		      *client = etcd_toy_client(&world->toy);
		struct vd_store_watch	      *watch = NULL;
		struct vd_store_stream	      *stream = NULL;
		struct vd_store_part	       part;
		struct vd_store_batch	       batch;
		unsigned		       ready = 0;
		struct vd_store_watch_request  request = { .key = vd_bytes_of("a"),
							   .ready = count_ready,
							   .ready_arg = &ready };
		struct vd_store_stream_request long_read = { .range = { .key = vd_bytes_of("k") },
							     .ready = count_ready,
							     .ready_arg = &ready };
		struct answer		       answer = { .status = VD_OK };
		vd_status		       status;
		bool			       failed;

		world->toy.has_stream = true;
		world->toy.stream_parts = 2;
		world->toy.stream_part_len = 2;
		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_etcd_store_new(world->env, client, &options, world->toy.endpoints, 1,
					    &world->inner, NULL);
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
			vd_etcd_close(client, NULL, NULL);
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

/* A transaction that could not begin is none in progress: a watch from now on does not wait for it. */
static void a_transaction_that_cannot_begin_is_over(void **state)
{
	vd_status status = VD_NOMEM;

	(void) state;
	for (uint64_t nth = 1; status != VD_OK; nth++) {
		struct world *world = world_open(16, 1);
		struct answer answer = { 0 };

		vdi_alloc_fail_nth(nth, 1);
		status = start_put(world, &answer);
		vdi_alloc_fail_nth(0, 0);
		if (status == VD_OK)
			settle(world, &answer);
		else
			assert_status(status, VD_NOMEM);
		assert_int_equal(world->inner->server_state->txns_ended,
				 world->inner->server_state->txns_begun);
		assert_int_equal(world->inner->in_flight, 0);
		world_free(world);
		assert_true(nth < 100);
	}
}

/* A watch that cannot be opened for memory leaves nothing; one that can is whole. */
static void a_watch_without_memory(void **state)
{
	vd_status status = VD_NOMEM;

	(void) state;
	for (uint64_t nth = 1; status != VD_OK; nth++) {
		struct world		     *world = world_open(17, 1);
		unsigned		      ready = 0;
		struct vd_store_watch	     *watch = NULL;
		struct vd_error		      error = { 0 };
		struct vd_store_watch_request request = { .key = vd_bytes_of("a"),
							  .ready = count_ready,
							  .ready_arg = &ready };

		vdi_alloc_fail_nth(nth, 1);
		status = vd_store_watch_open(world->store, &request, &watch, &error);
		vdi_alloc_fail_nth(0, 0);
		if (status == VD_OK) {
			vdi_sim_run_until_idle(world->env);
			etcd_toy_send(&world->toy, etcd_toy_watch(&world->toy, "a"), (vd_rev[]) { 7 }, 1);
			assert_string_equal(next_text(world, watch, 10), "7");
			vd_store_watch_close(watch);
		} else {
			assert_status(status, VD_NOMEM);
			assert_status(error.code, VD_NOMEM);
			assert_true(error.message[0] != 0);
			assert_null(watch);
		}
		world_free(world);
		assert_true(nth < 100);
	}
}

static void got_leases(void *arg, vd_status status, const int64_t *ids, size_t count, vd_rev revision)
{
	(void) ids;
	(void) count;
	got_done(arg, status, revision, NULL);
}

static vd_status start_call(struct world *world, int which, struct answer *answer)
{
	struct vd_range_request range = { .key = vd_bytes_of("a") };

	switch (which) {
	case 0: return vd_store_range(world->store, &range, got_range, answer);
	case 1: return start_put(world, answer);
	case 2: return vd_store_compact(world->store, 1, false, got_done, answer);
	case 3: return vd_store_lease_grant(world->store, 7, 10, got_lease, answer);
	case 4: return vd_store_lease_revoke(world->store, 7, got_done, answer);
	case 5: return vd_store_lease_keep_alive(world->store, 7, got_lease, answer);
	case 6: return vd_store_lease_time_to_live(world->store, 7, true, got_lease, answer);
	default: return vd_store_lease_list(world->store, got_leases, answer);
	}
}

/* An operation that cannot begin is refused by its result alone, leaves nothing, and the next one works. */
static void calls_of_every_kind_without_memory(void **state)
{
	(void) state;
	for (int which = 0; which < 8; which++) {
		vd_status status = VD_NOMEM;

		for (uint64_t nth = 1; status != VD_OK; nth++) {
			struct world *world = world_open(18, 1);
			struct answer answer = { 0 };

			assert_true(nth < 100);
			vdi_alloc_fail_nth(nth, 1);
			status = start_call(world, which, &answer);
			assert_int_equal(status == VD_OK, !vdi_alloc_failed());
			vdi_alloc_fail_nth(0, 0);
			if (status == VD_OK) {
				settle(world, &answer);
			} else {
				assert_status(status, VD_NOMEM);
				vdi_sim_run_until_idle(world->env);
				assert_false(answer.is_done);
				assert_int_equal(world->inner->in_flight, 0);
				assert_status(put(world).status, VD_OK);
			}
			world_free(world);
		}
	}
}

static void calls_of_every_kind_after_the_shutdown(void **state)
{
	struct world *world = world_open(19, 1);
	struct answer answer = { 0 };

	(void) state;
	vd_store_shutdown(world->store);
	for (int which = 0; which < 8; which++)
		assert_status(start_call(world, which, &answer), VD_CLOSED);
	vdi_sim_run_until_idle(world->env);
	assert_false(answer.is_done);
	assert_int_equal(world->inner->in_flight, 0);
	world_free(world);
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
		cmocka_unit_test(e423_every_answer_tells_how_far_the_store_is),
		cmocka_unit_test(e409_e422_refusals_carry_the_revisions),
		cmocka_unit_test(e701_a_write_in_unconfirmed_is_unavailable_or_timed_out),
		cmocka_unit_test(e503_a_lease_that_is_gone_has_nothing_left),
		cmocka_unit_test(e617_silence_is_noticed_and_forgotten),
		cmocka_unit_test(e617_two_seconds_without_an_answer_are_silence),
		cmocka_unit_test(e617_a_server_that_refuses_is_there),
		cmocka_unit_test(e617_a_refusal_is_a_sign_of_life),
		cmocka_unit_test(the_start_waits_and_names_endpoint_and_cause),
		cmocka_unit_test(the_start_ends_at_once_when_we_are_refused),
		cmocka_unit_test(which_refusals_end_the_start),
		cmocka_unit_test(shutdown_gives_up_what_is_outstanding),
		cmocka_unit_test(closing_at_any_moment),
		cmocka_unit_test(torture_the_store),
		cmocka_unit_test(a_transaction_that_cannot_begin_is_over),
		cmocka_unit_test(a_watch_without_memory),
		cmocka_unit_test(calls_of_every_kind_without_memory),
		cmocka_unit_test(calls_of_every_kind_after_the_shutdown),
		cmocka_unit_test(closing_twice_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
