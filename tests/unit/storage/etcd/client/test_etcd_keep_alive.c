/* Keeping leases alive (E-290..E-292). */
#include <rpc.pb-c.h>

#include "etcd_client_fixture.h"
#include "vdtest.h"

#define KEEP_ALIVE "/etcdserverpb.Lease/LeaseKeepAlive"

static int64_t request_id(struct vd_bytes message)
{
	Etcdserverpb__LeaseKeepAliveRequest *request =
		etcdserverpb__lease_keep_alive_request__unpack(NULL, message.size, message.data);
	int64_t id = request->id;

	etcdserverpb__lease_keep_alive_request__free_unpacked(request, NULL);
	return id;
}

static struct vd_bytes answer_of(int64_t id, int64_t ttl)
{
	Etcdserverpb__LeaseKeepAliveResponse answer = ETCDSERVERPB__LEASE_KEEP_ALIVE_RESPONSE__INIT;
	Etcdserverpb__ResponseHeader	     header = ETCDSERVERPB__RESPONSE_HEADER__INIT;

	header.revision = 4;
	answer.header = &header;
	answer.id = id;
	answer.ttl = ttl;
	return etcd_pack(&answer);
}

static size_t requests_of(struct rpc_script_call *call, int64_t id)
{
	size_t count = 0;

	for (size_t i = 0; i < rpc_script_message_count(call); i++)
		count += request_id(rpc_script_message_at(call, i)) == id;
	return count;
}

static void e290_first_at_once_then_every_third(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };
	struct vd_etcd_keep_alive *keep_alive;
	struct rpc_script_call	  *call;

	etcd_client_fixture_start(&fixture, 1);
	assert_status(
		vd_etcd_keep_alive_start(fixture.client, NULL, 7, etcd_note_lease, &result, &keep_alive),
		VD_OK);
	vdi_sim_run_until_idle(fixture.env);
	call = rpc_script_take_call(fixture.script, KEEP_ALIVE);
	assert_non_null(call);
	assert_true(
		vd_bytes_equal(rpc_script_call_metadata(call, "hasleader"), vd_bytes_of("true"))); /* E-291 */
	for (unsigned i = 1; i <= 5; i++) {
		assert_int_equal(rpc_script_message_count(call), i);
		assert_int_equal(request_id(rpc_script_message_at(call, i - 1)), 7);
		rpc_script_send(call, answer_of(7, 9));
		vdi_sim_run_until_idle(fixture.env);
		assert_int_equal(result.calls, i);
		assert_int_equal(result.number, 9);
		assert_int_equal(result.second, 7);
		assert_int_equal(result.header.revision, 4);
		vdi_sim_advance(fixture.env, VD_MS(2990));
		assert_int_equal(rpc_script_message_count(call), i);
		vdi_sim_advance(fixture.env, VD_MS(20));
	}
	vd_etcd_keep_alive_stop(keep_alive);
	vdi_sim_advance(fixture.env, VD_SECONDS(60));
	assert_int_equal(rpc_script_message_count(call), 6);
	assert_int_equal(result.calls, 5);
	vd_etcd_keep_alive_stop(NULL);
	etcd_client_fixture_fini(&fixture);
}

/* A third of a second is less than what passes before an unanswered renewal is sent again. */
static void e290_a_lease_of_one_second(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };
	struct vd_etcd_keep_alive *keep_alive;
	struct rpc_script_call	  *call;

	etcd_client_fixture_start(&fixture, 1);
	assert_status(
		vd_etcd_keep_alive_start(fixture.client, NULL, 7, etcd_note_lease, &result, &keep_alive),
		VD_OK);
	vdi_sim_run_until_idle(fixture.env);
	call = rpc_script_take_call(fixture.script, KEEP_ALIVE);
	for (unsigned i = 1; i <= 5; i++) {
		assert_int_equal(rpc_script_message_count(call), i);
		rpc_script_send(call, answer_of(7, 1));
		vdi_sim_run_until_idle(fixture.env);
		vdi_sim_advance(fixture.env, VD_MS(330));
		assert_int_equal(rpc_script_message_count(call), i);
		vdi_sim_advance(fixture.env, VD_MS(10));
	}
	vd_etcd_keep_alive_stop(keep_alive);
	etcd_client_fixture_fini(&fixture);
}

static void e290_an_unanswered_renewal_is_sent_again_every_half_second(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };
	struct vd_etcd_keep_alive *keep_alive;
	struct rpc_script_call	  *call;

	etcd_client_fixture_start(&fixture, 2);
	assert_status(
		vd_etcd_keep_alive_start(fixture.client, NULL, 7, etcd_note_lease, &result, &keep_alive),
		VD_OK);
	vdi_sim_advance(fixture.env, VD_MS(2100));
	call = rpc_script_take_call(fixture.script, KEEP_ALIVE);
	assert_int_equal(rpc_script_message_count(call), 5);
	vd_etcd_keep_alive_stop(keep_alive);
	etcd_client_fixture_fini(&fixture);
}

static void e290_many_share_the_renewals(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   results[3] = { { 0 } };
	struct vd_etcd_keep_alive *keep_alives[3];
	struct rpc_script_call	  *call;

	etcd_client_fixture_start(&fixture, 3);
	for (int i = 0; i < 3; i++)
		assert_status(vd_etcd_keep_alive_start(fixture.client, NULL, i == 2 ? 8 : 7, etcd_note_lease,
						       &results[i], &keep_alives[i]),
			      VD_OK);
	vdi_sim_run_until_idle(fixture.env);
	call = rpc_script_take_call(fixture.script, KEEP_ALIVE);
	assert_int_equal(requests_of(call, 7), 1);
	assert_int_equal(requests_of(call, 8), 1);
	rpc_script_send(call, answer_of(7, 30));
	vdi_sim_run_until_idle(fixture.env);
	assert_int_equal(results[0].calls, 1);
	assert_int_equal(results[1].calls, 1);
	assert_int_equal(results[2].calls, 0);
	vd_etcd_keep_alive_stop(keep_alives[0]);
	rpc_script_send(call, answer_of(7, 30));
	rpc_script_send(call, answer_of(8, 30));
	rpc_script_send(call, answer_of(99, 30)); /* nobody's */
	vdi_sim_run_until_idle(fixture.env);
	assert_int_equal(results[0].calls, 1);
	assert_int_equal(results[1].calls, 2);
	assert_int_equal(results[2].calls, 1);
	assert_int_equal(rpc_script_call_count(fixture.script), 1);
	vd_etcd_keep_alive_stop(keep_alives[1]);
	vd_etcd_keep_alive_stop(keep_alives[2]);
	etcd_client_fixture_fini(&fixture);
}

static void e290_a_lease_that_is_gone(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   results[2] = { { 0 } };
	struct vd_etcd_keep_alive *keep_alives[2];
	struct rpc_script_call	  *call;

	etcd_client_fixture_start(&fixture, 4);
	for (int i = 0; i < 2; i++)
		assert_status(vd_etcd_keep_alive_start(fixture.client, NULL, 7, etcd_note_lease, &results[i],
						       &keep_alives[i]),
			      VD_OK);
	call = rpc_script_expect_call(fixture.script, KEEP_ALIVE);
	rpc_script_send(call, answer_of(7, 0));
	vdi_sim_run_until_idle(fixture.env);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(results[i].calls, 1);
		assert_etcd_error(&results[i], VD_LEASE_NOT_FOUND, "etcdserver: requested lease not found");
		assert_int_equal(results[i].error.code, VD_ETCD_LEASE_NOT_FOUND);
	}
	vdi_sim_advance(fixture.env, VD_SECONDS(60));
	assert_int_equal(results[0].calls, 1);
	vd_etcd_keep_alive_stop(keep_alives[0]);
	vd_etcd_keep_alive_stop(keep_alives[1]);
	etcd_client_fixture_fini(&fixture);
}

static void e290_not_renewed_in_time(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   first = { 0 };
	struct etcd_result	   second = { 0 };
	struct vd_etcd_keep_alive *keep_alive;
	struct vd_etcd_keep_alive *other;
	struct rpc_script_call	  *call;
	int64_t			   start;

	etcd_client_fixture_start(&fixture, 5);
	first.env = second.env = fixture.env;
	start = vd_env_now(fixture.env).ns;
	assert_status(vd_etcd_keep_alive_start(fixture.client, NULL, 7, etcd_note_lease, &first, &keep_alive),
		      VD_OK);
	assert_status(vd_etcd_keep_alive_start(fixture.client, NULL, 8, etcd_note_lease, &second, &other),
		      VD_OK);
	call = rpc_script_expect_call(fixture.script, KEEP_ALIVE);
	rpc_script_send(call, answer_of(7, 12));
	etcd_expect_calls(&fixture, &first, 1);
	etcd_expect_calls(&fixture, &first, 2);
	assert_etcd_error(&first, VD_TIMEOUT, "etcdclient: the lease was not renewed in time");
	assert_in_range(first.at_ns - start, VD_SECONDS(12).ns, VD_SECONDS(13).ns);
	/* Never answered: dial timeout + 1 s. */
	etcd_expect_calls(&fixture, &second, 1);
	assert_etcd_error(&second, VD_TIMEOUT, "etcdclient: the lease was not renewed in time");
	assert_in_range(second.at_ns - start, VD_SECONDS(21).ns, VD_SECONDS(22).ns);
	vd_etcd_keep_alive_stop(keep_alive);
	vd_etcd_keep_alive_stop(other);
	etcd_client_fixture_fini(&fixture);

	/* Without a dial timeout: 5 s. */
	etcd_client_fixture_init(&fixture, 6, 1);
	fixture.options.dial_timeout = VD_SECONDS(0);
	etcd_client_fixture_open(&fixture);
	second = (struct etcd_result) { .env = fixture.env };
	start = vd_env_now(fixture.env).ns;
	assert_status(vd_etcd_keep_alive_start(fixture.client, NULL, 8, etcd_note_lease, &second, &other),
		      VD_OK);
	etcd_expect_calls(&fixture, &second, 1);
	assert_in_range(second.at_ns - start, VD_SECONDS(5).ns, VD_SECONDS(6).ns);
	vd_etcd_keep_alive_stop(other);
	etcd_client_fixture_fini(&fixture);
}

static void e291_the_stream_is_opened_again_after_half_a_second(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };
	struct vd_etcd_keep_alive *keep_alive;
	struct rpc_script_call	  *call;

	etcd_client_fixture_start(&fixture, 7);
	assert_status(
		vd_etcd_keep_alive_start(fixture.client, NULL, 7, etcd_note_lease, &result, &keep_alive),
		VD_OK);
	for (int i = 0; i < 5; i++) {
		static const int codes[] = { VDI_RPC_UNAVAILABLE, VDI_RPC_INTERNAL, VDI_RPC_UNKNOWN,
					     VDI_RPC_OK, VDI_RPC_PERMISSION_DENIED };

		call = rpc_script_expect_call(fixture.script, KEEP_ALIVE);
		vdi_sim_run_until_idle(fixture.env);
		assert_int_equal(rpc_script_message_count(call), 1);
		rpc_script_end(call, codes[i], i == 0 ? "etcdserver: leader changed" : "x");
		vdi_sim_advance(fixture.env, VD_MS(490));
		assert_null(rpc_script_take_call(fixture.script, KEEP_ALIVE));
		vdi_sim_advance(fixture.env, VD_MS(20));
		assert_int_equal(rpc_script_call_count(fixture.script), i + 2);
	}
	call = rpc_script_expect_call(fixture.script, KEEP_ALIVE);
	rpc_script_send(call, answer_of(7, 30));
	etcd_expect_calls(&fixture, &result, 1);
	assert_etcd_ok(&result);
	vd_etcd_keep_alive_stop(keep_alive);
	etcd_client_fixture_fini(&fixture);
}

static void e291_no_leader_ends_those_who_asked(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   patient = { 0 };
	struct etcd_result	   strict = { 0 };
	struct vd_etcd_keep_alive *keep_alives[2];
	struct rpc_script_call	  *call;

	etcd_client_fixture_start(&fixture, 8);
	assert_status(
		vd_etcd_keep_alive_start(fixture.client, NULL, 7, etcd_note_lease, &patient, &keep_alives[0]),
		VD_OK);
	assert_status(vd_etcd_keep_alive_start(fixture.client,
					       &(struct vd_etcd_call) { .require_leader = true }, 7,
					       etcd_note_lease, &strict, &keep_alives[1]),
		      VD_OK);
	call = rpc_script_expect_call(fixture.script, KEEP_ALIVE);
	rpc_script_end(call, VDI_RPC_UNAVAILABLE, "etcdserver: no leader");
	vdi_sim_run_until_idle(fixture.env);
	assert_int_equal(strict.calls, 1);
	assert_etcd_error(&strict, VD_UNAVAILABLE, "etcdserver: no leader");
	assert_int_equal(strict.error.code, VD_ETCD_NO_LEADER);
	assert_int_equal(patient.calls, 0);
	rpc_script_send(rpc_script_expect_call(fixture.script, KEEP_ALIVE), answer_of(7, 30));
	etcd_expect_calls(&fixture, &patient, 1);
	assert_etcd_ok(&patient);
	assert_int_equal(strict.calls, 1);
	vd_etcd_keep_alive_stop(keep_alives[0]);
	vd_etcd_keep_alive_stop(keep_alives[1]);
	etcd_client_fixture_fini(&fixture);
}

static void e291_close_says_so(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   results[3] = { { 0 } };
	struct vd_etcd_keep_alive *keep_alives[3];

	etcd_client_fixture_start(&fixture, 9);
	for (int i = 0; i < 3; i++)
		assert_status(vd_etcd_keep_alive_start(fixture.client, NULL, i / 2 + 7, etcd_note_lease,
						       &results[i], &keep_alives[i]),
			      VD_OK);
	rpc_script_send(rpc_script_expect_call(fixture.script, KEEP_ALIVE), answer_of(7, 30));
	vdi_sim_run_until_idle(fixture.env);
	etcd_client_fixture_close(&fixture);
	for (int i = 0; i < 3; i++) {
		assert_etcd_error(&results[i], VD_CLOSED,
				  "etcdclient: leases keep alive halted: the client is closing");
		assert_int_equal(results[i].calls, i < 2 ? 2 : 1);
		vd_etcd_keep_alive_stop(keep_alives[i]); /* the handle outlived the client */
	}
	etcd_client_fixture_fini(&fixture);
}

static struct vd_etcd_keep_alive *to_stop[2];
static unsigned			  said;

static void stop_inside(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
			const struct vd_lease_result *result)
{
	said++;
	vd_etcd_keep_alive_stop(to_stop[0]);
	vd_etcd_keep_alive_stop(to_stop[1]);
	to_stop[0] = to_stop[1] = NULL;
}

static void stop_inside_a_callback(void **state)
{
	for (int ttl = 0; ttl < 2; ttl++) { /* with the last word and before it */
		struct etcd_client_fixture fixture;

		said = 0;
		etcd_client_fixture_start(&fixture, 10);
		for (int i = 0; i < 2; i++)
			assert_status(vd_etcd_keep_alive_start(fixture.client, NULL, 7, stop_inside, NULL,
							       &to_stop[i]),
				      VD_OK);
		rpc_script_send(rpc_script_expect_call(fixture.script, KEEP_ALIVE), answer_of(7, 30 * ttl));
		vdi_sim_run_until_idle(fixture.env);
		assert_int_equal(said, 1);
		etcd_client_fixture_fini(&fixture);
	}
}

static void close_at_any_moment(void **state)
{
	for (unsigned steps = 0; steps < 25; steps++) {
		struct etcd_client_fixture fixture;
		struct etcd_result	   result = { 0 };
		struct vd_etcd_keep_alive *keep_alive;

		etcd_client_fixture_init(&fixture, 20 + steps, 1);
		fixture.options.user = steps % 2 ? "root" : NULL;
		fixture.options.password = steps % 2 ? "secret" : NULL;
		etcd_client_fixture_open(&fixture);
		assert_status(vd_etcd_keep_alive_start(fixture.client, NULL, 7, etcd_note_lease, &result,
						       &keep_alive),
			      VD_OK);
		for (unsigned i = 0; i < steps; i++) {
			struct rpc_script_call *call = rpc_script_take_call(fixture.script, NULL);

			if (call && rpc_script_call_is_stream(call))
				rpc_script_send(call, answer_of(7, 30));
			else if (call)
				rpc_script_answer(call, etcd_header_answer(1));
			(void) vdi_sim_step(fixture.env);
		}
		if (steps % 3 == 0)
			vd_etcd_keep_alive_stop(keep_alive);
		etcd_client_fixture_close(&fixture);
		if (steps % 3 != 0) {
			assert_etcd_error(&result, VD_CLOSED,
					  "etcdclient: leases keep alive halted: the client is closing");
			vd_etcd_keep_alive_stop(keep_alive);
		}
		etcd_client_fixture_fini(&fixture);
	}
}

static void torture_keep_alive(void **state)
{
	for (uint64_t nth = 1;; nth++) {
		struct etcd_client_fixture fixture;
		struct etcd_result	   result = { 0 };
		struct vd_etcd_keep_alive *keep_alive = NULL;
		struct rpc_script_call	  *call = NULL;
		bool			   has_failed;
		vd_status		   status;

		etcd_client_fixture_start(&fixture, 50);
		vdi_alloc_fail_nth(nth, 1);
		status = vd_etcd_keep_alive_start(fixture.client, NULL, 7, etcd_note_lease, &result,
						  &keep_alive);
		for (int i = 0; status == VD_OK && result.calls == 0 && i < 30; i++) {
			vdi_sim_advance(fixture.env, VD_MS(100));
			call = call ? call : rpc_script_take_call(fixture.script, KEEP_ALIVE);
			/* An answer that the client has no memory for is asked for again. */
			if (call && rpc_script_message_count(call) && i % 7 == 6)
				rpc_script_send(call, answer_of(7, 30));
			if (call && rpc_script_call_is_over(call))
				call = NULL;
		}
		has_failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		if (status == VD_OK)
			assert_true(result.calls && !result.is_error);
		else
			assert_status(status, VD_NOMEM);
		vd_etcd_keep_alive_stop(keep_alive);
		etcd_client_fixture_fini(&fixture);
		if (!has_failed)
			break;
		assert_true(nth < 100);
	}
}

static void bad_starts(void **state)
{
	struct etcd_client_fixture fixture;
	struct vd_etcd_keep_alive *keep_alive;

	etcd_client_fixture_start(&fixture, 60);
	assert_status(vd_etcd_keep_alive_start(fixture.client, NULL, 0, etcd_note_lease, NULL, &keep_alive),
		      VD_INVALID_ARGUMENT);
	assert_status(vd_etcd_keep_alive_start(fixture.client, NULL, 7, NULL, NULL, &keep_alive),
		      VD_INVALID_ARGUMENT);
	etcd_client_fixture_fini(&fixture);
}

/* ---- Once (E-292) ---- */

static void e292_once(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };
	struct etcd_result	   gone = { 0 };
	struct rpc_script_call	  *call;

	etcd_client_fixture_start(&fixture, 70);
	rpc_script_refuse(fixture.script, KEEP_ALIVE, 2, VDI_RPC_UNAVAILABLE, "down");
	assert_status(vd_etcd_lease_keep_alive_once(fixture.client, NULL, 7, etcd_note_lease, &result),
		      VD_OK);
	call = rpc_script_expect_call(fixture.script, KEEP_ALIVE);
	rpc_script_end(call, VDI_RPC_INTERNAL, "reset"); /* no halt: again */
	call = rpc_script_expect_call(fixture.script, KEEP_ALIVE);
	assert_int_equal(request_id(rpc_script_expect_message(call)), 7);
	rpc_script_send(call, answer_of(7, 30));
	etcd_expect_calls(&fixture, &result, 1);
	assert_etcd_ok(&result);
	assert_int_equal(result.number, 30);
	rpc_script_end(call, VDI_RPC_OK, "");
	vdi_sim_run_until_idle(fixture.env);
	assert_int_equal(result.calls, 1);
	assert_status(vd_etcd_lease_keep_alive_once(fixture.client, NULL, 8, etcd_note_lease, &gone), VD_OK);
	rpc_script_send(rpc_script_expect_call(fixture.script, KEEP_ALIVE), answer_of(8, 0));
	etcd_expect_calls(&fixture, &gone, 1);
	assert_etcd_error(&gone, VD_LEASE_NOT_FOUND, "etcdserver: requested lease not found");
	etcd_client_fixture_fini(&fixture);
}

static void e292_once_ends_with_a_halt(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   halted = { 0 };
	struct etcd_result	   silent = { 0 };
	struct etcd_result	   cut = { 0 };

	etcd_client_fixture_start(&fixture, 71);
	assert_status(vd_etcd_lease_keep_alive_once(fixture.client, NULL, 7, etcd_note_lease, &halted),
		      VD_OK);
	rpc_script_end(rpc_script_expect_call(fixture.script, KEEP_ALIVE), VDI_RPC_PERMISSION_DENIED,
		       "etcdserver: permission denied");
	etcd_expect_calls(&fixture, &halted, 1);
	assert_etcd_error(&halted, VD_FORBIDDEN, "etcdserver: permission denied");
	assert_status(vd_etcd_lease_keep_alive_once(fixture.client, NULL, 7, etcd_note_lease, &silent),
		      VD_OK);
	rpc_script_end(rpc_script_expect_call(fixture.script, KEEP_ALIVE), VDI_RPC_OK, "");
	etcd_expect_calls(&fixture, &silent, 1);
	assert_status(silent.error.error.code, VD_CORRUPT);
	assert_status(vd_etcd_lease_keep_alive_once(fixture.client, NULL, 7, etcd_note_lease, &silent),
		      VD_OK);
	rpc_script_send(rpc_script_expect_call(fixture.script, KEEP_ALIVE), vd_bytes_of("\x0a\x7f"));
	etcd_expect_calls(&fixture, &silent, 2);
	assert_status(silent.error.error.code, VD_CORRUPT);
	assert_status(vd_etcd_lease_keep_alive_once(fixture.client, NULL, 7, etcd_note_lease, &cut), VD_OK);
	etcd_client_fixture_close(&fixture);
	assert_int_equal(cut.calls, 1);
	assert_etcd_error(&cut, VD_CLOSED, "etcdclient: the client is closing");
	etcd_client_fixture_fini(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e290_first_at_once_then_every_third),
		cmocka_unit_test(e290_a_lease_of_one_second),
		cmocka_unit_test(e290_an_unanswered_renewal_is_sent_again_every_half_second),
		cmocka_unit_test(e290_many_share_the_renewals),
		cmocka_unit_test(e290_a_lease_that_is_gone),
		cmocka_unit_test(e290_not_renewed_in_time),
		cmocka_unit_test(e291_the_stream_is_opened_again_after_half_a_second),
		cmocka_unit_test(e291_no_leader_ends_those_who_asked),
		cmocka_unit_test(e291_close_says_so),
		cmocka_unit_test(stop_inside_a_callback),
		cmocka_unit_test(close_at_any_moment),
		cmocka_unit_test(torture_keep_alive),
		cmocka_unit_test(bad_starts),
		cmocka_unit_test(e292_once),
		cmocka_unit_test(e292_once_ends_with_a_halt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
