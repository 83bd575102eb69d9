/* Tokens (E-168, E-209) and members that are too old (E-203). */
#include <rpc.pb-c.h>

#include "etcd_client_fixture.h"
#include "etcd_state.h"
#include "vdtest.h"

#define RANGE "/etcdserverpb.KV/Range"
#define PUT "/etcdserverpb.KV/Put"
#define AUTHENTICATE "/etcdserverpb.Auth/Authenticate"
#define STATUS "/etcdserverpb.Maintenance/Status"

static void start_with_user(struct etcd_client_fixture *fixture, uint64_t seed)
{
	etcd_client_fixture_init(fixture, seed, 1);
	fixture->options.user = "root";
	fixture->options.password = "secret";
	etcd_client_fixture_open(fixture);
}

static void answer_token(struct rpc_script_call *call, const char *token)
{
	Etcdserverpb__AuthenticateResponse answer = ETCDSERVERPB__AUTHENTICATE_RESPONSE__INIT;

	answer.token = (char *) token;
	rpc_script_answer(call, etcd_pack(&answer));
}

static void assert_token(struct rpc_script_call *call, const char *token)
{
	struct vd_bytes sent = rpc_script_call_metadata(call, "token");

	if (token)
		assert_true(vd_bytes_equal(sent, vd_bytes_of(token)));
	else
		assert_null(sent.data);
}

static void e168_a_token_is_fetched_before_the_first_call(void **state)
{
	struct etcd_client_fixture	   fixture;
	struct etcd_result		   first = { 0 };
	struct etcd_result		   second = { 0 };
	struct etcd_result		   third = { 0 };
	struct rpc_script_call		  *call;
	Etcdserverpb__AuthenticateRequest *request;
	struct vd_bytes			   message;

	start_with_user(&fixture, 1);
	assert_status(etcd_start_range(&fixture, NULL, &first), VD_OK);
	assert_status(etcd_start_put(&fixture, NULL, &second), VD_OK);
	call = rpc_script_expect_call(fixture.script, NULL);
	assert_string_equal(rpc_script_call_method(call), AUTHENTICATE);
	assert_token(call, NULL);
	assert_int_equal(rpc_script_call_timeout(call).ns, VD_SECONDS(20).ns); /* E-202: dial_timeout */
	message = rpc_script_expect_message(call);
	request = etcdserverpb__authenticate_request__unpack(NULL, message.size, message.data);
	assert_string_equal(request->name, "root");
	assert_string_equal(request->password, "secret");
	etcdserverpb__authenticate_request__free_unpacked(request, NULL);
	vdi_sim_run_until_idle(fixture.env);
	assert_null(rpc_script_take_call(fixture.script, NULL)); /* both wait for the one token */
	answer_token(call, "t1");
	call = rpc_script_expect_call(fixture.script, RANGE);
	assert_token(call, "t1");
	rpc_script_answer(call, etcd_header_answer(1));
	call = rpc_script_expect_call(fixture.script, PUT);
	assert_token(call, "t1");
	rpc_script_answer(call, etcd_header_answer(1));
	etcd_expect_calls(&fixture, &first, 1);
	etcd_expect_calls(&fixture, &second, 1);
	assert_etcd_ok(&first);
	assert_etcd_ok(&second);
	assert_status(etcd_start_range(&fixture, NULL, &third), VD_OK);
	call = rpc_script_expect_call(fixture.script, NULL);
	assert_string_equal(rpc_script_call_method(call), RANGE);
	assert_token(call, "t1");
	etcd_client_fixture_fini(&fixture);
}

static void e168_authentication_that_is_not_enabled(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };
	struct rpc_script_call	  *call;

	start_with_user(&fixture, 2);
	assert_status(etcd_start_range(&fixture, NULL, &result), VD_OK);
	rpc_script_end(rpc_script_expect_call(fixture.script, AUTHENTICATE), VDI_RPC_FAILED_PRECONDITION,
		       "etcdserver: authentication is not enabled");
	call = rpc_script_expect_call(fixture.script, RANGE);
	assert_token(call, NULL);
	rpc_script_answer(call, etcd_header_answer(1));
	etcd_expect_calls(&fixture, &result, 1);
	assert_etcd_ok(&result);
	etcd_client_fixture_fini(&fixture);
}

static void wrong_credentials_fail_the_calls_that_wait(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   first = { 0 };
	struct etcd_result	   second = { 0 };

	start_with_user(&fixture, 3);
	assert_status(etcd_start_range(&fixture, NULL, &first), VD_OK);
	assert_status(etcd_start_put(&fixture, NULL, &second), VD_OK);
	rpc_script_end(rpc_script_expect_call(fixture.script, AUTHENTICATE), VDI_RPC_INVALID_ARGUMENT,
		       "etcdserver: authentication failed, invalid user ID or password");
	etcd_expect_calls(&fixture, &first, 1);
	etcd_expect_calls(&fixture, &second, 1);
	assert_etcd_error(&first, VD_FORBIDDEN,
			  "etcdserver: authentication failed, invalid user ID or password");
	assert_etcd_error(&second, VD_FORBIDDEN,
			  "etcdserver: authentication failed, invalid user ID or password");
	assert_false(second.error.maybe_applied);
	/* The next call tries again. */
	assert_status(etcd_start_range(&fixture, NULL, &first), VD_OK);
	answer_token(rpc_script_expect_call(fixture.script, AUTHENTICATE), "t");
	rpc_script_answer(rpc_script_expect_call(fixture.script, RANGE), etcd_header_answer(1));
	etcd_expect_calls(&fixture, &first, 2);
	assert_etcd_ok(&first);
	etcd_client_fixture_fini(&fixture);
}

static void e209_a_token_that_expired_is_fetched_anew(void **state)
{
	static const struct {
		int	    code;
		const char *text;
	} rows[] = { { VDI_RPC_UNAUTHENTICATED, "etcdserver: invalid auth token" },
		     { VDI_RPC_INVALID_ARGUMENT, "etcdserver: revision of auth store is old" },
		     { VDI_RPC_INVALID_ARGUMENT, "etcdserver: user name is empty" } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct etcd_client_fixture fixture;
		struct etcd_result	   result = { 0 };
		struct etcd_result	   second = { 0 };
		struct rpc_script_call	  *call;
		struct rpc_script_call	  *other;

		start_with_user(&fixture, 4 + i);
		assert_status(etcd_start_put(&fixture, NULL, &result), VD_OK);
		answer_token(rpc_script_expect_call(fixture.script, AUTHENTICATE), "old");
		call = rpc_script_expect_call(fixture.script, PUT);
		assert_status(etcd_start_put(&fixture, NULL, &second), VD_OK);
		other = rpc_script_expect_call(fixture.script, PUT);
		assert_token(other, "old");
		rpc_script_end(call, rows[i].code, rows[i].text);
		answer_token(rpc_script_expect_call(fixture.script, AUTHENTICATE), "new");
		call = rpc_script_expect_call(fixture.script, PUT);
		assert_token(call, "new");
		rpc_script_answer(call, etcd_header_answer(1));
		/* The other one was refused with the old token too: it takes the new one that is there. */
		rpc_script_end(other, rows[i].code, rows[i].text);
		call = rpc_script_expect_call(fixture.script, NULL);
		assert_string_equal(rpc_script_call_method(call), PUT);
		assert_token(call, "new");
		rpc_script_answer(call, etcd_header_answer(2));
		etcd_expect_calls(&fixture, &result, 1);
		etcd_expect_calls(&fixture, &second, 1);
		assert_etcd_ok(&result);
		assert_etcd_ok(&second);
		etcd_client_fixture_fini(&fixture);
	}
}

static void e209_a_token_that_is_never_good_ends(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };

	etcd_client_fixture_init(&fixture, 8, 1);
	fixture.options.user = "root";
	fixture.options.password = "secret";
	fixture.options.attempts_max = 3;
	etcd_client_fixture_open(&fixture);
	assert_status(etcd_start_range(&fixture, NULL, &result), VD_OK);
	for (int i = 0; i < 3; i++) {
		answer_token(rpc_script_expect_call(fixture.script, AUTHENTICATE), "t");
		rpc_script_end(rpc_script_expect_call(fixture.script, RANGE), VDI_RPC_UNAUTHENTICATED,
			       "etcdserver: invalid auth token");
	}
	etcd_expect_calls(&fixture, &result, 1);
	assert_etcd_error(&result, VD_FORBIDDEN, "etcdserver: invalid auth token");
	etcd_client_fixture_fini(&fixture);
}

static void e209_a_fixed_token_stays(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };
	struct rpc_script_call	  *call;

	etcd_client_fixture_init(&fixture, 9, 1);
	fixture.options.token = "mine";
	etcd_client_fixture_open(&fixture);
	assert_status(etcd_start_range(&fixture, NULL, &result), VD_OK);
	call = rpc_script_expect_call(fixture.script, NULL);
	assert_string_equal(rpc_script_call_method(call), RANGE);
	assert_token(call, "mine");
	rpc_script_end(call, VDI_RPC_UNAUTHENTICATED, "etcdserver: invalid auth token");
	etcd_expect_calls(&fixture, &result, 1);
	assert_etcd_error(&result, VD_FORBIDDEN, "etcdserver: invalid auth token");
	assert_int_equal(rpc_script_call_count(fixture.script), 1);
	etcd_client_fixture_fini(&fixture);
}

static void a_token_with_odd_bytes_is_refused(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };

	start_with_user(&fixture, 10);
	assert_status(etcd_start_range(&fixture, NULL, &result), VD_OK);
	answer_token(rpc_script_expect_call(fixture.script, AUTHENTICATE), "a\nb");
	etcd_expect_calls(&fixture, &result, 1);
	assert_etcd_error(&result, VD_CORRUPT,
			  "etcdclient: the server's token contains bytes that are not printable");
	assert_status(etcd_start_range(&fixture, NULL, &result), VD_OK);
	rpc_script_answer(rpc_script_expect_call(fixture.script, AUTHENTICATE), vd_bytes_of("\x0a\x7f"));
	etcd_expect_calls(&fixture, &result, 2);
	assert_status(result.error.error.code, VD_CORRUPT);
	etcd_client_fixture_fini(&fixture);
}

static void a_call_that_waits_for_the_token_may_end(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   late = { 0 };
	struct etcd_result	   canceled = { 0 };
	struct etcd_result	   closed = { 0 };
	uint64_t		   id;

	start_with_user(&fixture, 11);
	assert_status(etcd_start_range(&fixture, &(struct vd_etcd_call) { .timeout = VD_SECONDS(1) }, &late),
		      VD_OK);
	assert_status(etcd_start_range(&fixture, &(struct vd_etcd_call) { .ret_id = &id }, &canceled), VD_OK);
	assert_status(etcd_start_range(&fixture, NULL, &closed), VD_OK);
	(void) rpc_script_expect_call(fixture.script, AUTHENTICATE);
	etcd_expect_calls(&fixture, &late, 1);
	assert_etcd_error(&late, VD_TIMEOUT, "context deadline exceeded");
	vd_etcd_cancel(fixture.client, id);
	etcd_expect_calls(&fixture, &canceled, 1);
	assert_etcd_error(&canceled, VD_CANCELED, "context canceled");
	assert_int_equal(closed.calls, 0);
	etcd_client_fixture_close(&fixture);
	assert_int_equal(closed.calls, 1);
	assert_etcd_error(&closed, VD_CLOSED, "etcdclient: the client is closing");
	etcd_client_fixture_fini(&fixture);
}

static void resume_nobody(struct vdi_etcd_waiter *waiter, const struct vdi_etcd_end *failed)
{
	(void) waiter;
	(void) failed;
	fail_msg("who has left is not resumed");
}

/* Who has left may leave again, and wait again. */
static void leaving_is_final(void **state)
{
	struct etcd_client_fixture fixture;
	struct vdi_etcd_waiter	   waiter = { .resume = resume_nobody };

	start_with_user(&fixture, 16);
	vdi_etcd_preflight_leave(fixture.client, &waiter);
	for (int i = 0; i < 2; i++) {
		vdi_etcd_preflight_wait(fixture.client, &waiter, false);
		assert_true(waiter.waits);
		vdi_etcd_preflight_leave(fixture.client, &waiter);
		assert_false(waiter.waits);
		vdi_etcd_preflight_leave(fixture.client, &waiter);
	}
	answer_token(rpc_script_expect_call(fixture.script, AUTHENTICATE), "t");
	vdi_sim_run_until_idle(fixture.env);
	etcd_client_fixture_fini(&fixture);
}

static void e202_the_token_request_is_bounded(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { .env = NULL };
	int64_t			   start;

	start_with_user(&fixture, 12);
	result.env = fixture.env;
	start = vd_env_now(fixture.env).ns;
	assert_status(etcd_start_range(&fixture, NULL, &result), VD_OK);
	etcd_expect_calls(&fixture, &result, 1);
	assert_status(result.error.error.code, VD_TIMEOUT);
	assert_in_range(result.at_ns - start, VD_SECONDS(20).ns, VD_SECONDS(21).ns);
	etcd_client_fixture_fini(&fixture);
}

/* ---- E-203 ---- */

static void answer_version(struct rpc_script_call *call, const char *version)
{
	Etcdserverpb__StatusResponse answer = ETCDSERVERPB__STATUS_RESPONSE__INIT;

	answer.version = (char *) version;
	rpc_script_answer(call, etcd_pack(&answer));
}

static void e203_versions(void **state)
{
	static const struct {
		const char *version;
		vd_status   status;
	} rows[] = { { "3.6.0", VD_OK },
		     { "3.7.3", VD_OK },
		     { "3.8.0-alpha.0", VD_OK },
		     { "4.0.0", VD_OK },
		     { "3.5.99", VD_UNSUPPORTED },
		     { "3.6.0-rc.1", VD_UNSUPPORTED },
		     { "3.6.1-rc.1", VD_OK },
		     { "2.3.8", VD_UNSUPPORTED },
		     { "3.6", VD_INVALID_ARGUMENT },
		     { "", VD_INVALID_ARGUMENT },
		     { "a.b.c", VD_INVALID_ARGUMENT },
		     { "3.6.0x", VD_INVALID_ARGUMENT },
		     { "3.10.0", VD_OK },
		     { "3.6.0+build", VD_OK },
		     { "3..0", VD_INVALID_ARGUMENT } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		assert_status(vdi_etcd_check_version(rows[i].version), rows[i].status);
}

static void e203_every_member_is_asked(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };
	unsigned		   asked = 0;

	etcd_client_fixture_init(&fixture, 13, 3);
	fixture.options.reject_old_cluster = true;
	fixture.options.user = "root";
	fixture.options.password = "secret";
	etcd_client_fixture_open(&fixture);
	assert_status(etcd_start_range(&fixture, NULL, &result), VD_OK);
	answer_token(rpc_script_expect_call(fixture.script, AUTHENTICATE), "t");
	for (int i = 0; i < 3; i++) {
		struct rpc_script_call *call = rpc_script_expect_call(fixture.script, STATUS);

		assert_token(call, "t");
		asked |= 1u << rpc_script_call_endpoint(call);
		answer_version(call, "3.7.0");
	}
	assert_int_equal(asked, 7);
	rpc_script_answer(rpc_script_expect_call(fixture.script, RANGE), etcd_header_answer(1));
	etcd_expect_calls(&fixture, &result, 1);
	assert_etcd_ok(&result);
	/* Once. */
	assert_status(etcd_start_range(&fixture, NULL, &result), VD_OK);
	rpc_script_answer(rpc_script_expect_call(fixture.script, NULL), etcd_header_answer(1));
	etcd_expect_calls(&fixture, &result, 2);
	assert_etcd_ok(&result);
	/* Other members are asked again. */
	assert_status(vd_etcd_set_endpoints(fixture.client, (const char *const[]) { "n1:2379" }, 1, NULL),
		      VD_OK);
	assert_status(etcd_start_range(&fixture, NULL, &result), VD_OK);
	answer_version(rpc_script_expect_call(fixture.script, STATUS), "3.4.0");
	etcd_expect_calls(&fixture, &result, 3);
	assert_etcd_error(&result, VD_UNSUPPORTED, "etcdclient: old cluster version");
	etcd_client_fixture_fini(&fixture);
}

static void e203_an_old_cluster_is_rejected(void **state)
{
	static const struct {
		const char *version; /* NULL: no answer */
		vd_status   status;
		const char *message;
	} rows[] = {
		{ "3.4.23", VD_UNSUPPORTED, "etcdclient: old cluster version" },
		{ "new", VD_UNSUPPORTED, "etcdclient: the member's version is not in dotted-tri format" },
		{ NULL, VD_FORBIDDEN, "etcdserver: permission denied" },
	};

	for (size_t i = 0; i < 2 * VDI_ARRAY_SIZE(rows); i++) {
		const char		  *version = rows[i / 2].version;
		struct etcd_client_fixture fixture;
		struct etcd_result	   result = { 0 };
		struct rpc_script_call	  *calls[2];

		etcd_client_fixture_init(&fixture, 14, 2);
		fixture.options.reject_old_cluster = true;
		etcd_client_fixture_open(&fixture);
		assert_status(etcd_start_range(&fixture, NULL, &result), VD_OK);
		calls[0] = rpc_script_expect_call(fixture.script, STATUS);
		calls[1] = rpc_script_expect_call(fixture.script, STATUS);
		/* Nothing is decided before the last of them has answered, whichever that is. */
		for (size_t member = 0; member < 2; member++) {
			struct rpc_script_call *call = calls[member ^ (i & 1)];

			assert_int_equal(result.calls, 0);
			if (rpc_script_call_endpoint(call) == 0)
				answer_version(call, "3.7.0");
			else if (version)
				answer_version(call, version);
			else
				rpc_script_end(call, VDI_RPC_PERMISSION_DENIED,
					       "etcdserver: permission denied");
			vdi_sim_run_until_idle(fixture.env);
		}
		etcd_expect_calls(&fixture, &result, 1);
		assert_etcd_error(&result, rows[i / 2].status, rows[i / 2].message);
		etcd_client_fixture_fini(&fixture);
	}
}

static void torture_preflight(void **state)
{
	for (uint64_t nth = 1;; nth++) {
		struct etcd_client_fixture fixture;
		struct etcd_result	   result = { 0 };
		bool			   has_failed;
		unsigned		   checked = 0;
		vd_status		   status;

		etcd_client_fixture_init(&fixture, 15, 2);
		fixture.options.reject_old_cluster = true;
		fixture.options.user = "root";
		fixture.options.password = "secret";
		etcd_client_fixture_open(&fixture);
		vdi_alloc_fail_nth(nth, 1);
		status = etcd_start_range(&fixture, NULL, &result);
		while (status == VD_OK && result.calls == 0) {
			struct rpc_script_call *call;

			vdi_sim_advance(fixture.env, VD_MS(100));
			call = rpc_script_take_call(fixture.script, NULL);
			if (call == NULL)
				continue;
			if (strcmp(rpc_script_call_method(call), AUTHENTICATE) == 0) {
				answer_token(call, "t");
			} else if (strcmp(rpc_script_call_method(call), STATUS) == 0) {
				answer_version(call, "3.7.0");
				checked++;
			} else {
				rpc_script_answer(call, etcd_header_answer(1));
			}
		}
		has_failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		if (status != VD_OK)
			assert_status(status, VD_NOMEM);
		else if (result.is_error)
			assert_status(result.error.error.code, VD_NOMEM);
		else
			assert_int_equal(checked, 2); /* no member is let through unasked */
		/* Whatever happened, the next call works. */
		result.is_error = false;
		result.calls = 0;
		assert_status(etcd_start_range(&fixture, NULL, &result), VD_OK);
		while (result.calls == 0) {
			struct rpc_script_call *call;

			vdi_sim_advance(fixture.env, VD_MS(100));
			call = rpc_script_take_call(fixture.script, NULL);
			if (call == NULL)
				continue;
			if (strcmp(rpc_script_call_method(call), AUTHENTICATE) == 0)
				answer_token(call, "t");
			else if (strcmp(rpc_script_call_method(call), STATUS) == 0)
				answer_version(call, "3.7.0");
			else
				rpc_script_answer(call, etcd_header_answer(1));
		}
		assert_etcd_ok(&result);
		etcd_client_fixture_fini(&fixture);
		if (!has_failed)
			break;
		assert_true(nth < 200);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e168_a_token_is_fetched_before_the_first_call),
		cmocka_unit_test(e168_authentication_that_is_not_enabled),
		cmocka_unit_test(wrong_credentials_fail_the_calls_that_wait),
		cmocka_unit_test(e209_a_token_that_expired_is_fetched_anew),
		cmocka_unit_test(e209_a_token_that_is_never_good_ends),
		cmocka_unit_test(e209_a_fixed_token_stays),
		cmocka_unit_test(a_token_with_odd_bytes_is_refused),
		cmocka_unit_test(a_call_that_waits_for_the_token_may_end),
		cmocka_unit_test(leaving_is_final),
		cmocka_unit_test(e202_the_token_request_is_bounded),
		cmocka_unit_test(e203_versions),
		cmocka_unit_test(e203_every_member_is_asked),
		cmocka_unit_test(e203_an_old_cluster_is_rejected),
		cmocka_unit_test(torture_preflight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
