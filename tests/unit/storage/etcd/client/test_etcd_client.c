/* Options and endpoints of an etcd client (E-201, E-202, E-205), its life. */
#include "etcd_call.h"
#include "etcd_client_fixture.h"
#include "expect_panic.h"
#include "vdtest.h"
#include "wait.h"

#define RANGE "/etcdserverpb.KV/Range"

static void refused(const struct vd_etcd_options *options, const char *message)
{
	struct etcd_client_fixture fixture;
	struct vd_etcd		  *client = NULL;
	struct vd_error		   error = { 0 };

	etcd_client_fixture_init(&fixture, 1, 1);
	assert_status(vdi_etcd_new(fixture.env, options, rpc_script_client(fixture.script), &client, &error),
		      VD_INVALID_ARGUMENT);
	assert_status(error.code, VD_INVALID_ARGUMENT);
	assert_string_equal(error.message, message);
	assert_null(client);
	etcd_client_fixture_fini(&fixture);
}

static void accepted(const struct vd_etcd_options *options)
{
	struct etcd_client_fixture fixture;

	etcd_client_fixture_init(&fixture, 1, 1);
	fixture.options = *options;
	fixture.options.endpoints = fixture.endpoints;
	etcd_client_fixture_open(&fixture);
	etcd_client_fixture_fini(&fixture);
}

static void e201_e202_options_are_checked(void **state)
{
	static const char *const	    endpoints[] = { "e1:2379", "" };
	static const struct vd_etcd_options defaults = VD_ETCD_OPTIONS_INIT;
	struct vd_etcd_options		    options = defaults;

	assert_int_equal(options.send_size_max, 2 << 20);
	assert_int_equal(options.receive_size_max, INT32_MAX);
	assert_int_equal(options.attempts_max, 100);
	assert_int_equal(options.call_timeout.ns, 0);
	refused(&options, "etcdclient: no available endpoints");
	options.endpoints = endpoints;
	options.endpoint_count = 2;
	refused(&options, "etcdclient: endpoint 2 is empty");
	options.endpoint_count = 1;
	options.user = "root";
	refused(&options, "etcdclient: a user needs a password, and a password a user");
	options.password = "x";
	options.token = "t";
	refused(&options, "Username/Password and Token configurations are mutually exclusive");
	options.token = NULL;
	options.receive_size_max = 100;
	options.send_size_max = 200;
	refused(&options, "gRPC message recv limit (100 bytes) must be greater than send limit (200 bytes)");
	options.send_size_max = 0;
	refused(&options, "etcdclient: message limits must be between 1 and 2147483647 bytes");
	options.send_size_max = 100;
	options.attempts_max = 0;
	refused(&options, "etcdclient: attempts_max and watch_buffer_bytes must not be 0");
	options.attempts_max = 1;
	options.keepalive_time = VD_SECONDS(4);
	refused(&options, "etcdclient: keepalive_time must be 0 or at least 5 s");
	options.keepalive_time = VD_SECONDS(0);
	vd_dur *const durations[] = { &options.dial_timeout, &options.call_timeout,
				      &options.keepalive_timeout, &options.keepalive_time };
	for (size_t i = 0; i < VDI_ARRAY_SIZE(durations); i++) {
		durations[i]->ns = -1;
		refused(&options, "etcdclient: timeouts and intervals must not be negative");
		durations[i]->ns = 0;
	}
	accepted(&options);
	options.keepalive_time = (vd_dur) { VD_SECONDS(5).ns - 1 };
	refused(&options, "etcdclient: keepalive_time must be 0 or at least 5 s");
	options.keepalive_time = VD_SECONDS(5);
	accepted(&options);
	options.watch_buffer_bytes = 0;
	refused(&options, "etcdclient: attempts_max and watch_buffer_bytes must not be 0");
	options.watch_buffer_bytes = 1;
	options.send_size_max = options.receive_size_max = 1;
	accepted(&options);
	options.send_size_max = options.receive_size_max = INT32_MAX;
	accepted(&options);
	options.receive_size_max = (size_t) INT32_MAX + 1;
	refused(&options, "etcdclient: message limits must be between 1 and 2147483647 bytes");
	options.receive_size_max = INT32_MAX;
	/* Empty texts are as none. */
	options.user = options.password = options.token = "";
	accepted(&options);
	options.user = options.password = options.token = NULL;
	options.key_path = "k";
	refused(&options, "etcdclient: a certificate needs its key, and a key its certificate");
	options.key_path = NULL;
	options.cert_path = "c";
	refused(&options, "etcdclient: a certificate needs its key, and a key its certificate");
	options.cert_path = NULL;
	options.size--;
	refused(&options,
		"etcdclient: unknown size of the options; initialize them with VD_ETCD_OPTIONS_INIT");
}

static void e202_opening_does_not_wait_for_the_network(void **state)
{
	struct etcd_client_fixture fixture;
	bool			   is_ready = true;
	char			   text[64];

	etcd_client_fixture_init(&fixture, 2, 2);
	rpc_script_set_up(fixture.script, 0, false);
	rpc_script_set_up(fixture.script, 1, false);
	etcd_client_fixture_open(&fixture);
	assert_int_equal(vd_etcd_endpoint_count(fixture.client), 2);
	assert_status(vd_etcd_endpoint_state(fixture.client, 1, &is_ready, text, sizeof text), VD_OK);
	assert_false(is_ready);
	assert_memory_equal(text, "e2:2379", 7);
	assert_status(vd_etcd_endpoint_state(fixture.client, 2, &is_ready, text, sizeof text), VD_NOT_FOUND);
	etcd_client_fixture_fini(&fixture);
}

static void e201_wait_for_ready(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };

	etcd_client_fixture_init(&fixture, 3, 2);
	rpc_script_set_up(fixture.script, 0, false);
	rpc_script_set_up(fixture.script, 1, false);
	etcd_client_fixture_open(&fixture);
	assert_status(etcd_start_range(&fixture, NULL, &result), VD_OK);
	vdi_sim_advance(fixture.env, VD_SECONDS(100));
	assert_int_equal(result.calls, 0);
	rpc_script_set_up(fixture.script, 1, true);
	rpc_script_answer(rpc_script_expect_call(fixture.script, RANGE), etcd_header_answer(1));
	etcd_expect_calls(&fixture, &result, 1);
	assert_etcd_ok(&result);
	etcd_client_fixture_fini(&fixture);
}

static void e205_endpoints_are_replaced(void **state)
{
	static const char *const   next[] = { "n1:2379", "n2:2379", "n3:2379" };
	static const char *const   none[] = { "" };
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };
	struct vd_error		   error;

	etcd_client_fixture_start(&fixture, 4);
	assert_status(vd_etcd_set_endpoints(fixture.client, next, 0, &error), VD_INVALID_ARGUMENT);
	assert_string_equal(error.message, "etcdclient: no available endpoints");
	assert_status(vd_etcd_set_endpoints(fixture.client, none, 1, NULL), VD_INVALID_ARGUMENT);
	assert_int_equal(vd_etcd_endpoint_count(fixture.client), 1);
	assert_status(vd_etcd_set_endpoints(fixture.client, next, 3, &error), VD_OK);
	assert_int_equal(vd_etcd_endpoint_count(fixture.client), 3);
	/* Names are looked up in the new list. */
	assert_status(etcd_start_range(&fixture, &(struct vd_etcd_call) { .endpoint = "e1:2379" }, &result),
		      VD_INVALID_ARGUMENT);
	assert_status(etcd_start_range(&fixture, &(struct vd_etcd_call) { .endpoint = "n3:2379" }, &result),
		      VD_OK);
	assert_int_equal(rpc_script_call_endpoint(rpc_script_expect_call(fixture.script, RANGE)), 2);
	etcd_client_fixture_fini(&fixture);
}

static void a_call_whose_endpoint_was_taken_out(void **state)
{
	static const char *const   next[] = { "n1:2379" };
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };

	etcd_client_fixture_start(&fixture, 5);
	rpc_script_refuse(fixture.script, RANGE, 1, VDI_RPC_UNAVAILABLE, "down");
	assert_status(etcd_start_range(&fixture, &(struct vd_etcd_call) { .endpoint = "e1:2379" }, &result),
		      VD_OK);
	vdi_sim_run_until_idle(fixture.env);
	assert_status(vd_etcd_set_endpoints(fixture.client, next, 1, NULL), VD_OK);
	etcd_expect_calls(&fixture, &result, 1);
	assert_etcd_error(&result, VD_INVALID_ARGUMENT, "etcdclient: the endpoint is no longer in the list");
	etcd_client_fixture_fini(&fixture);
}

static void torture_open(void **state)
{
	for (uint64_t nth = 1;; nth++) {
		struct etcd_client_fixture fixture;
		struct vd_error		   error = { 0 };
		vd_status		   status;

		etcd_client_fixture_init(&fixture, 6, 3);
		fixture.options.user = "u";
		fixture.options.password = "p";
		vdi_alloc_fail_nth(nth, 1);
		status = vdi_etcd_new(fixture.env, &fixture.options, rpc_script_client(fixture.script),
				      &fixture.client, &error);
		vdi_alloc_fail_nth(0, 0);
		if (status != VD_OK) {
			assert_status(status, VD_NOMEM);
			assert_status(error.code, VD_NOMEM);
			assert_null(fixture.client);
		}
		etcd_client_fixture_fini(&fixture);
		if (status == VD_OK)
			break;
	}
}

/* ---- Parts ---- */

struct test_part {
	struct vdi_etcd_part part;
	void (*done)(void *arg);
	void	*done_arg;
	unsigned closes;
};

static struct test_part the_part;
static unsigned		makes;

static void close_part(struct vdi_etcd_part *part, void (*done)(void *arg), void *arg)
{
	struct test_part *mine = (struct test_part *) part;

	mine->closes++;
	mine->done = done;
	mine->done_arg = arg;
}

static vd_status make_part(struct vd_etcd *client, struct vdi_etcd_part **ret_part)
{
	if (makes++ == 0)
		return VD_NOMEM;
	the_part.part.close = close_part;
	*ret_part = &the_part.part;
	return VD_OK;
}

static bool is_closed;

static void set_closed(void *arg)
{
	is_closed = true;
}

static void parts_are_made_once_and_closed_first(void **state)
{
	struct etcd_client_fixture fixture;
	struct vdi_etcd_part	  *part = NULL;

	makes = 0;
	is_closed = false;
	the_part = (struct test_part) { 0 };
	etcd_client_fixture_start(&fixture, 7);
	assert_status(vdi_etcd_part_get(fixture.client, VDI_ETCD_PART_WATCH, make_part, &part), VD_NOMEM);
	assert_status(vdi_etcd_part_get(fixture.client, VDI_ETCD_PART_WATCH, make_part, &part), VD_OK);
	assert_status(vdi_etcd_part_get(fixture.client, VDI_ETCD_PART_WATCH, make_part, &part), VD_OK);
	assert_ptr_equal(part, &the_part.part);
	assert_int_equal(makes, 2);
	vd_etcd_close(fixture.client, set_closed, NULL);
	assert_status(vdi_etcd_part_get(fixture.client, VDI_ETCD_PART_WATCH, make_part, &part), VD_CLOSED);
	fixture.client = NULL;
	vdi_sim_advance(fixture.env, VD_SECONDS(10));
	assert_int_equal(the_part.closes, 1);
	assert_false(is_closed);
	the_part.done(the_part.done_arg);
	vdi_sim_run_until_idle(fixture.env);
	assert_true(is_closed);
	etcd_client_fixture_fini(&fixture);
}

static void e201_jitter_is_within_a_tenth(void **state)
{
	struct etcd_client_fixture fixture;
	bool			   is_below = false;
	bool			   is_above = false;

	etcd_client_fixture_start(&fixture, 8);
	for (int i = 0; i < 200; i++) {
		int64_t wait = vdi_etcd_jitter(fixture.client, VD_MS(25)).ns;

		assert_in_range(wait, VD_MS(25).ns * 9 / 10, VD_MS(25).ns * 11 / 10);
		is_below |= wait < VD_MS(25).ns * 95 / 100;
		is_above |= wait > VD_MS(25).ns * 105 / 100;
	}
	assert_true(is_below && is_above);
	etcd_client_fixture_fini(&fixture);
}

static void free_env_first(void)
{
	static const char *const nowhere[] = { "127.0.0.1:1" };
	struct vd_env_options	 env_options = VD_ENV_OPTIONS_INIT;
	struct vd_etcd_options	 options = VD_ETCD_OPTIONS_INIT;
	struct vd_etcd		*client;
	struct vd_env		*env;

	env_options.threads = 1;
	options.endpoints = nowhere;
	options.endpoint_count = 1;
	assert_status(vd_env_new_threads(&env_options, &env), VD_OK);
	assert_status(vd_etcd_open(env, &options, &client, NULL), VD_OK);
	vd_env_free(env);
}

static void an_env_that_ends_first_is_named(void **state)
{
	expect_panic(free_env_first, "vd_env_free: etcd client is open: close with vd_etcd_close");
}

/* More than one turn of the client takes on: all of them go out, and all of them run out of time. */
static void e205_many_calls_at_once(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };
	const unsigned		   many = 1000;

	etcd_client_fixture_start(&fixture, 9);
	for (unsigned i = 0; i < many; i++)
		assert_status(etcd_start_range(&fixture, &(struct vd_etcd_call) { .timeout = VD_SECONDS(1) },
					       &result),
			      VD_OK);
	vdi_sim_run_until_idle(fixture.env);
	assert_int_equal(rpc_script_call_count(fixture.script), many);
	assert_int_equal(result.calls, 0);
	vdi_sim_advance(fixture.env, VD_SECONDS(2));
	assert_int_equal(result.calls, many);
	etcd_client_fixture_fini(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e201_e202_options_are_checked),
		cmocka_unit_test(e202_opening_does_not_wait_for_the_network),
		cmocka_unit_test(e201_wait_for_ready),
		cmocka_unit_test(e205_endpoints_are_replaced),
		cmocka_unit_test(a_call_whose_endpoint_was_taken_out),
		cmocka_unit_test(torture_open),
		cmocka_unit_test(parts_are_made_once_and_closed_first),
		cmocka_unit_test(e201_jitter_is_within_a_tenth),
		cmocka_unit_test(an_env_that_ends_first_is_named),
		cmocka_unit_test(e205_many_calls_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
