/* Calls over a scripted peer: attempts and their end (E-206..E-212), cancel, close, memory that fails. */
#include <rpc.pb-c.h>

#include "etcd_client_fixture.h"
#include "vdtest.h"

#define PUT "/etcdserverpb.KV/Put"
#define RANGE "/etcdserverpb.KV/Range"

static void a_call_is_answered(void **state)
{
	struct etcd_client_fixture  fixture;
	struct etcd_result	    result = { 0 };
	Etcdserverpb__RangeResponse answer = ETCDSERVERPB__RANGE_RESPONSE__INIT;
	Mvccpb__KeyValue	    kv = MVCCPB__KEY_VALUE__INIT;
	Mvccpb__KeyValue	   *kvs[] = { &kv };
	struct rpc_script_call	   *call;

	etcd_client_fixture_start(&fixture, 1);
	assert_status(etcd_start_range(&fixture, NULL, &result), VD_OK);
	call = rpc_script_expect_call(fixture.script, RANGE);
	assert_int_equal(rpc_script_call_timeout(call).ns, 0);
	kv.key = (ProtobufCBinaryData) { 1, (uint8_t *) "k" };
	answer.kvs = kvs;
	answer.n_kvs = 1;
	answer.count = 1;
	rpc_script_answer(call, etcd_pack(&answer));
	etcd_expect_calls(&fixture, &result, 1);
	assert_etcd_ok(&result);
	assert_string_equal(result.text, "k");
	etcd_client_fixture_fini(&fixture);
}

static void e206_e207_unavailable_is_repeated_for_reads(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };

	etcd_client_fixture_start(&fixture, 2);
	rpc_script_refuse(fixture.script, RANGE, 3, VDI_RPC_UNAVAILABLE, "connection reset");
	assert_status(etcd_start_range(&fixture, NULL, &result), VD_OK);
	rpc_script_answer(rpc_script_expect_call(fixture.script, RANGE), etcd_header_answer(5));
	etcd_expect_calls(&fixture, &result, 1);
	assert_etcd_ok(&result);
	assert_int_equal(result.header.revision, 5);
	assert_int_equal(result.header.cluster_id, 11);
	etcd_client_fixture_fini(&fixture);
}

static void e207_a_write_is_not_repeated(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };
	struct rpc_script_call	  *call;

	etcd_client_fixture_start(&fixture, 3);
	assert_status(etcd_start_put(&fixture, NULL, &result), VD_OK);
	call = rpc_script_expect_call(fixture.script, PUT);
	rpc_script_cut_call(call, VDI_RPC_UNAVAILABLE, "connection reset");
	etcd_expect_calls(&fixture, &result, 1);
	assert_etcd_error(&result, VD_UNAVAILABLE, "rpc error: code = Unavailable desc = connection reset");
	assert_true(result.error.maybe_applied);
	vdi_sim_advance(fixture.env, VD_SECONDS(10));
	assert_null(rpc_script_take_call(fixture.script, PUT));
	etcd_client_fixture_fini(&fixture);
}

static void e207_a_write_that_was_never_sent_is_repeated(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };

	etcd_client_fixture_start(&fixture, 4);
	rpc_script_refuse(fixture.script, PUT, 2, VDI_RPC_UNAVAILABLE, "there is no connection available");
	assert_status(etcd_start_put(&fixture, NULL, &result), VD_OK);
	rpc_script_answer(rpc_script_expect_call(fixture.script, PUT), etcd_header_answer(7));
	etcd_expect_calls(&fixture, &result, 1);
	assert_etcd_ok(&result);
	etcd_client_fixture_fini(&fixture);
}

static void e101_e102_paths(void **state)
{
	static const struct {
		enum vdi_etcd_method method;
		enum vdi_etcd_kind   kind;
		const char	    *path;
	} rows[] = {
		{ VDI_ETCD_METHOD_RANGE, VDI_ETCD_UNARY, "/etcdserverpb.KV/Range" },
		{ VDI_ETCD_METHOD_RANGE_STREAM, VDI_ETCD_SERVER_STREAM, "/etcdserverpb.KV/RangeStream" },
		{ VDI_ETCD_METHOD_DELETE_RANGE, VDI_ETCD_UNARY, "/etcdserverpb.KV/DeleteRange" },
		{ VDI_ETCD_METHOD_COMPACT, VDI_ETCD_UNARY, "/etcdserverpb.KV/Compact" },
		{ VDI_ETCD_METHOD_WATCH, VDI_ETCD_BIDI, "/etcdserverpb.Watch/Watch" },
		{ VDI_ETCD_METHOD_LEASE_KEEP_ALIVE, VDI_ETCD_BIDI, "/etcdserverpb.Lease/LeaseKeepAlive" },
		{ VDI_ETCD_METHOD_LEASE_LEASES, VDI_ETCD_UNARY, "/etcdserverpb.Lease/LeaseLeases" },
		{ VDI_ETCD_METHOD_MEMBER_PROMOTE, VDI_ETCD_UNARY, "/etcdserverpb.Cluster/MemberPromote" },
		{ VDI_ETCD_METHOD_SNAPSHOT, VDI_ETCD_SERVER_STREAM, "/etcdserverpb.Maintenance/Snapshot" },
		{ VDI_ETCD_METHOD_HASH_KV, VDI_ETCD_UNARY, "/etcdserverpb.Maintenance/HashKV" },
		{ VDI_ETCD_METHOD_AUTHENTICATE, VDI_ETCD_UNARY, "/etcdserverpb.Auth/Authenticate" },
		{ VDI_ETCD_METHOD_ROLE_REVOKE_PERMISSION, VDI_ETCD_UNARY,
		  "/etcdserverpb.Auth/RoleRevokePermission" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		assert_string_equal(vdi_etcd_methods[rows[i].method].path, rows[i].path);
		assert_int_equal(vdi_etcd_methods[rows[i].method].kind, rows[i].kind);
	}
	assert_int_equal(VDI_ETCD_METHOD_COUNT, 42);
}

static void e206_every_method_has_its_class(void **state)
{
	static const enum vdi_etcd_method once[] = {
		VDI_ETCD_METHOD_PUT,
		VDI_ETCD_METHOD_DELETE_RANGE,
		VDI_ETCD_METHOD_TXN,
		VDI_ETCD_METHOD_COMPACT,
		VDI_ETCD_METHOD_DEFRAGMENT,
		VDI_ETCD_METHOD_DOWNGRADE,
		VDI_ETCD_METHOD_MEMBER_ADD,
		VDI_ETCD_METHOD_MEMBER_REMOVE,
		VDI_ETCD_METHOD_MEMBER_UPDATE,
		VDI_ETCD_METHOD_MEMBER_PROMOTE,
		VDI_ETCD_METHOD_AUTH_ENABLE,
		VDI_ETCD_METHOD_AUTH_DISABLE,
		VDI_ETCD_METHOD_AUTH_STATUS,
		VDI_ETCD_METHOD_AUTHENTICATE,
		VDI_ETCD_METHOD_USER_ADD,
		VDI_ETCD_METHOD_USER_DELETE,
		VDI_ETCD_METHOD_USER_CHANGE_PASSWORD,
		VDI_ETCD_METHOD_USER_GRANT_ROLE,
		VDI_ETCD_METHOD_USER_REVOKE_ROLE,
		VDI_ETCD_METHOD_ROLE_ADD,
		VDI_ETCD_METHOD_ROLE_DELETE,
		VDI_ETCD_METHOD_ROLE_GRANT_PERMISSION,
		VDI_ETCD_METHOD_ROLE_REVOKE_PERMISSION,
		/* Streams that are not repeated below their users (E-211). */
		VDI_ETCD_METHOD_RANGE_STREAM,
		VDI_ETCD_METHOD_WATCH,
	};
	size_t count = 0;

	for (int method = 0; method < VDI_ETCD_METHOD_COUNT; method++) {
		bool is_once = false;

		for (size_t i = 0; i < VDI_ARRAY_SIZE(once); i++)
			is_once |= once[i] == (enum vdi_etcd_method) method;
		assert_int_equal(vdi_etcd_methods[method].repeat,
				 is_once ? VDI_ETCD_ONCE : VDI_ETCD_REPEATABLE);
		count += is_once;
	}
	assert_int_equal(count, VDI_ARRAY_SIZE(once));
}

/* Unavailable alone is repeated, apart from Canceled and DeadlineExceeded (E-208): also a read ends with any
 * other code. */
static void e207_other_codes_are_final(void **state)
{
	for (int code = 1; code <= VDI_RPC_UNAUTHENTICATED; code++) {
		struct etcd_client_fixture fixture;
		struct etcd_result	   result = { 0 };

		if (code == VDI_RPC_UNAVAILABLE || code == VDI_RPC_CANCELED ||
		    code == VDI_RPC_DEADLINE_EXCEEDED)
			continue;
		etcd_client_fixture_start(&fixture, 30 + (uint64_t) code);
		assert_status(etcd_start_range(&fixture, NULL, &result), VD_OK);
		rpc_script_end(rpc_script_expect_call(fixture.script, RANGE), code, "words of nobody");
		etcd_expect_calls(&fixture, &result, 1);
		assert_int_equal(result.error.grpc_code, code);
		vdi_sim_advance(fixture.env, VD_SECONDS(10));
		assert_null(rpc_script_take_call(fixture.script, RANGE));
		etcd_client_fixture_fini(&fixture);
	}
}

/* The transport knows whether a write was sent, and not its message: upstream's words are not believed, and
 * others do not keep it from being repeated. */
static void e207_the_transport_decides_and_not_the_words(void **state)
{
	static const char *const words[] = { "there is no address available",
					     "there is no connection available", "connection refused" };

	for (size_t i = 0; i < 2 * VDI_ARRAY_SIZE(words); i++) {
		bool			   is_sent = i >= VDI_ARRAY_SIZE(words);
		const char		  *text = words[i % VDI_ARRAY_SIZE(words)];
		struct etcd_client_fixture fixture;
		struct etcd_result	   result = { 0 };

		etcd_client_fixture_start(&fixture, 50 + i);
		if (!is_sent)
			rpc_script_refuse(fixture.script, PUT, 1, VDI_RPC_UNAVAILABLE, text);
		assert_status(etcd_start_put(&fixture, NULL, &result), VD_OK);
		if (is_sent)
			rpc_script_end(rpc_script_expect_call(fixture.script, PUT), VDI_RPC_UNAVAILABLE,
				       text);
		else
			rpc_script_answer(rpc_script_expect_call(fixture.script, PUT), etcd_header_answer(7));
		etcd_expect_calls(&fixture, &result, 1);
		if (!is_sent)
			assert_etcd_ok(&result);
		else
			assert_true(result.error.maybe_applied);
		vdi_sim_advance(fixture.env, VD_SECONDS(10));
		assert_null(rpc_script_take_call(fixture.script, PUT));
		etcd_client_fixture_fini(&fixture);
	}
}

static void e207_a_typed_error_of_another_code_stops(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };

	etcd_client_fixture_start(&fixture, 5);
	assert_status(etcd_start_range(&fixture, NULL, &result), VD_OK);
	/* The message says Compacted, whatever the code. */
	rpc_script_end(rpc_script_expect_call(fixture.script, RANGE), VDI_RPC_UNAVAILABLE,
		       "etcdserver: mvcc: required revision has been compacted");
	etcd_expect_calls(&fixture, &result, 1);
	assert_etcd_error(&result, VD_EXPIRED, "etcdserver: mvcc: required revision has been compacted");
	assert_int_equal(result.error.code, VD_ETCD_COMPACTED);
	assert_string_equal(result.error.endpoint, "e1:2379");
	etcd_client_fixture_fini(&fixture);
}

static int64_t elapsed_over_attempts(size_t endpoints, unsigned attempts)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };
	int64_t			   start;

	etcd_client_fixture_init(&fixture, 6 + endpoints, endpoints);
	fixture.options.attempts_max = attempts;
	etcd_client_fixture_open(&fixture);
	rpc_script_refuse(fixture.script, RANGE, 1000, VDI_RPC_UNAVAILABLE, "down");
	start = vd_env_now(fixture.env).ns;
	result.env = fixture.env;
	assert_status(etcd_start_range(&fixture, NULL, &result), VD_OK);
	etcd_expect_calls(&fixture, &result, 1);
	assert_etcd_error(&result, VD_UNAVAILABLE, "rpc error: code = Unavailable desc = down");
	rpc_script_refuse(fixture.script, NULL, 0, 0, NULL);
	etcd_client_fixture_fini(&fixture);
	return result.at_ns - start;
}

static void e201_e208_waits_between_attempts(void **state)
{
	const int64_t wait = VD_MS(25).ns;
	int64_t	      one = elapsed_over_attempts(1, 100);
	int64_t	      three = elapsed_over_attempts(3, 100);
	int64_t	      five = elapsed_over_attempts(5, 100);

	/* Attempts 1..99: with one endpoint each waits, with three every second, with five every third; 10 %
	 * up or down. */
	assert_in_range(one, 99 * wait * 9 / 10, 99 * wait * 11 / 10);
	assert_true(one % wait != 0);
	assert_in_range(three, 49 * wait * 9 / 10, 49 * wait * 11 / 10);
	assert_in_range(five, 33 * wait * 9 / 10, 33 * wait * 11 / 10);
	assert_int_equal(elapsed_over_attempts(1, 1), 0);
}

/* rules: E-1024 */
static void e208_canceled_by_the_server_is_repeated_for_reads_only(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   read = { 0 };
	struct etcd_result	   write = { 0 };

	etcd_client_fixture_start(&fixture, 9);
	assert_status(etcd_start_range(&fixture, NULL, &read), VD_OK);
	rpc_script_end(rpc_script_expect_call(fixture.script, RANGE), VDI_RPC_CANCELED, "shutting down");
	rpc_script_end(rpc_script_expect_call(fixture.script, RANGE), VDI_RPC_DEADLINE_EXCEEDED,
		       "context deadline exceeded");
	rpc_script_answer(rpc_script_expect_call(fixture.script, RANGE), etcd_header_answer(2));
	etcd_expect_calls(&fixture, &read, 1);
	assert_etcd_ok(&read);
	/* E-1024: upstream would write again. */
	assert_status(etcd_start_put(&fixture, NULL, &write), VD_OK);
	rpc_script_end(rpc_script_expect_call(fixture.script, PUT), VDI_RPC_CANCELED, "shutting down");
	etcd_expect_calls(&fixture, &write, 1);
	assert_etcd_error(&write, VD_CANCELED, "rpc error: code = Canceled desc = shutting down");
	assert_true(write.error.maybe_applied);
	write = (struct etcd_result) { 0 };
	assert_status(etcd_start_put(&fixture, NULL, &write), VD_OK);
	rpc_script_end(rpc_script_expect_call(fixture.script, PUT), VDI_RPC_DEADLINE_EXCEEDED,
		       "context deadline exceeded");
	etcd_expect_calls(&fixture, &write, 1);
	assert_etcd_error(&write, VD_TIMEOUT,
			  "rpc error: code = DeadlineExceeded desc = context deadline exceeded");
	assert_true(write.error.maybe_applied);
	vdi_sim_advance(fixture.env, VD_SECONDS(10));
	assert_null(rpc_script_take_call(fixture.script, PUT));
	etcd_client_fixture_fini(&fixture);
}

static void e208_a_learner_is_left_for_another_member(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   alone = { 0 };
	struct etcd_result	   among = { 0 };

	etcd_client_fixture_start(&fixture, 10);
	assert_status(etcd_start_put(&fixture, NULL, &alone), VD_OK);
	rpc_script_end(rpc_script_expect_call(fixture.script, PUT), VDI_RPC_FAILED_PRECONDITION,
		       "etcdserver: rpc not supported for learner");
	etcd_expect_calls(&fixture, &alone, 1);
	assert_etcd_error(&alone, VD_UNSUPPORTED, "etcdserver: rpc not supported for learner");
	assert_false(alone.error.maybe_applied);
	etcd_client_fixture_fini(&fixture);

	etcd_client_fixture_init(&fixture, 11, 2);
	etcd_client_fixture_open(&fixture);
	assert_status(etcd_start_put(&fixture, NULL, &among), VD_OK);
	rpc_script_end(rpc_script_expect_call(fixture.script, PUT), VDI_RPC_FAILED_PRECONDITION,
		       "etcdserver: rpc not supported for learner");
	rpc_script_answer(rpc_script_expect_call(fixture.script, PUT), etcd_header_answer(2));
	etcd_expect_calls(&fixture, &among, 1);
	assert_etcd_ok(&among);
	etcd_client_fixture_fini(&fixture);
}

static void maybe_applied_says_what_is_known(void **state)
{
	static const struct {
		int	    code;
		const char *text;
		bool	    maybe;
	} rows[] = {
		{ VDI_RPC_UNAVAILABLE, "etcdserver: request timed out", true },
		{ VDI_RPC_UNAVAILABLE, "etcdserver: leader changed", true },
		{ VDI_RPC_INVALID_ARGUMENT, "etcdserver: key is not provided", false },
		{ VDI_RPC_RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded", true },
		{ VDI_RPC_RESOURCE_EXHAUSTED, "trying to send message larger than max (5 vs. 4)", false },
		{ VDI_RPC_RESOURCE_EXHAUSTED, "Received message larger than max (5 vs. 4)", true },
		{ VDI_RPC_CANCELED, "etcdserver: request canceled", true },
		{ VDI_RPC_INTERNAL, "what?", true },
		{ VDI_RPC_UNIMPLEMENTED, "unknown method", false },
	};
	struct etcd_client_fixture fixture;

	etcd_client_fixture_start(&fixture, 12);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct etcd_result write = { 0 };
		struct etcd_result read = { 0 };

		assert_status(etcd_start_put(&fixture, NULL, &write), VD_OK);
		rpc_script_end(rpc_script_expect_call(fixture.script, PUT), rows[i].code, rows[i].text);
		etcd_expect_calls(&fixture, &write, 1);
		assert_true(write.is_error);
		assert_int_equal(write.error.maybe_applied, rows[i].maybe);
		if (rows[i].code == VDI_RPC_UNAVAILABLE || rows[i].code == VDI_RPC_CANCELED)
			continue;
		assert_status(etcd_start_range(&fixture, NULL, &read), VD_OK);
		rpc_script_end(rpc_script_expect_call(fixture.script, RANGE), rows[i].code, rows[i].text);
		etcd_expect_calls(&fixture, &read, 1);
		assert_false(read.error.maybe_applied);
	}
	etcd_client_fixture_fini(&fixture);
}

static void an_answer_that_cannot_be_read(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   write = { 0 };
	struct etcd_result	   read = { 0 };

	etcd_client_fixture_start(&fixture, 13);
	assert_status(etcd_start_put(&fixture, NULL, &write), VD_OK);
	rpc_script_answer(rpc_script_expect_call(fixture.script, PUT), vd_bytes_of("\x0a\x7f"));
	etcd_expect_calls(&fixture, &write, 1);
	assert_etcd_error(&write, VD_CORRUPT,
			  "the answer cannot be read: a field that is truncated at byte 0");
	assert_true(write.error.maybe_applied);
	assert_string_equal(write.error.endpoint, "e1:2379");
	assert_int_equal(write.error.code, VD_ETCD_OTHER);
	assert_int_equal(write.error.grpc_code, vd_status_grpc(VD_CORRUPT));
	assert_int_not_equal(write.error.grpc_code, 0);
	assert_status(etcd_start_range(&fixture, NULL, &read), VD_OK);
	rpc_script_answer(rpc_script_expect_call(fixture.script, RANGE), vd_bytes_of("\x0a\x7f"));
	etcd_expect_calls(&fixture, &read, 1);
	assert_status(read.error.error.code, VD_CORRUPT);
	assert_false(read.error.maybe_applied);
	etcd_client_fixture_fini(&fixture);
}

static void e210_timeouts(void **state)
{
	const struct vd_etcd_call  call = { .timeout = VD_SECONDS(3) };
	struct etcd_client_fixture fixture;
	struct etcd_result	   silent = { .env = NULL };
	struct etcd_result	   down = { 0 };
	struct etcd_result	   refused = { 0 };
	int64_t			   start;

	etcd_client_fixture_start(&fixture, 14);
	/* Nobody answers. */
	silent.env = fixture.env;
	start = vd_env_now(fixture.env).ns;
	assert_status(etcd_start_range(&fixture, &call, &silent), VD_OK);
	assert_int_equal(rpc_script_call_timeout(rpc_script_expect_call(fixture.script, RANGE)).ns,
			 VD_SECONDS(3).ns);
	etcd_expect_calls(&fixture, &silent, 1);
	assert_etcd_error(&silent, VD_TIMEOUT, "context deadline exceeded");
	assert_in_range(silent.at_ns - start, VD_SECONDS(3).ns, VD_SECONDS(3).ns + VD_MS(1).ns);
	/* Nobody is there: the error says who and why. */
	rpc_script_set_up(fixture.script, 0, false);
	assert_status(etcd_start_put(&fixture, &call, &down), VD_OK);
	etcd_expect_calls(&fixture, &down, 1);
	assert_status(down.error.error.code, VD_TIMEOUT);
	assert_non_null(strstr(down.error.error.message, "context deadline exceeded: e1:2379: "));
	assert_false(down.error.maybe_applied);
	rpc_script_set_up(fixture.script, 0, true);
	/* The time runs out between two attempts. */
	rpc_script_refuse(fixture.script, RANGE, 100000, VDI_RPC_UNAVAILABLE, "down");
	assert_status(etcd_start_range(&fixture, &(struct vd_etcd_call) { .timeout = VD_MS(60) }, &refused),
		      VD_OK);
	etcd_expect_calls(&fixture, &refused, 1);
	assert_status(refused.error.error.code, VD_TIMEOUT);
	etcd_client_fixture_fini(&fixture);
}

static void the_clients_timeout_is_the_default(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };
	struct rpc_script_call	  *call;

	etcd_client_fixture_init(&fixture, 15, 1);
	fixture.options.call_timeout = VD_SECONDS(7);
	etcd_client_fixture_open(&fixture);
	assert_status(etcd_start_range(&fixture, NULL, &result), VD_OK);
	call = rpc_script_expect_call(fixture.script, RANGE);
	assert_int_equal(rpc_script_call_timeout(call).ns, VD_SECONDS(7).ns);
	etcd_expect_calls(&fixture, &result, 1);
	assert_status(result.error.error.code, VD_TIMEOUT);
	etcd_client_fixture_fini(&fixture);
}

static void e140_metadata(void **state)
{
	static const struct vd_etcd_pair pairs[] = { { "x-one", { "1", 1 } }, { "y-bin", { "\0\xff", 2 } },
						     { "z3", { "3", 1 } },    { "z4", { "4", 1 } },
						     { "z5", { "5", 1 } },    { "z6", { "6", 1 } } };
	struct etcd_client_fixture	 fixture;
	struct etcd_result		 result = { 0 };
	struct rpc_script_call		*call;

	etcd_client_fixture_start(&fixture, 16);
	assert_status(etcd_start_range(&fixture, NULL, &result), VD_OK);
	call = rpc_script_expect_call(fixture.script, RANGE);
	assert_int_equal(rpc_script_call_metadata_count(call), 1);
	assert_true(vd_bytes_equal(rpc_script_call_metadata(call, "client-api-version"), vd_bytes_of("3.7")));
	rpc_script_answer(call, etcd_header_answer(1));
	assert_status(etcd_start_range(&fixture,
				       &(struct vd_etcd_call) { .require_leader = true,
								.metadata = pairs,
								.metadata_count = 6 },
				       &result),
		      VD_OK);
	call = rpc_script_expect_call(fixture.script, RANGE);
	assert_int_equal(rpc_script_call_metadata_count(call), 8);
	assert_true(vd_bytes_equal(rpc_script_call_metadata(call, "hasleader"), vd_bytes_of("true")));
	assert_true(vd_bytes_equal(rpc_script_call_metadata(call, "y-bin"), pairs[1].value));
	assert_true(vd_bytes_equal(rpc_script_call_metadata(call, "z6"), vd_bytes_of("6")));
	assert_null(rpc_script_call_metadata(call, "token").data);
	rpc_script_answer(call, etcd_header_answer(1));
	etcd_expect_calls(&fixture, &result, 2);
	etcd_client_fixture_fini(&fixture);
}

static void bad_metadata_and_bad_calls_are_refused(void **state)
{
	static const struct vd_etcd_pair   bad[] = { { "Upper", { "1", 1 } }, { "", { "1", 1 } },
						     { NULL, { "1", 1 } },    { "token", { "1", 1 } },
						     { "a b", { "1", 1 } },   { "grpc-x", { "1", 1 } },
						     { "a", { "\n", 1 } },    { "a", { "\xff", 1 } } };
	struct etcd_client_fixture	   fixture;
	struct etcd_result		   result = { 0 };
	const struct vd_etcd_range_request request = { .range = { .key = vd_bytes_of("k") } };

	etcd_client_fixture_start(&fixture, 17);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(bad); i++)
		assert_status(
			etcd_start_range(&fixture,
					 &(struct vd_etcd_call) { .metadata = &bad[i], .metadata_count = 1 },
					 &result),
			VD_INVALID_ARGUMENT);
	assert_status(etcd_start_range(&fixture, &(struct vd_etcd_call) { .timeout = { -1 } }, &result),
		      VD_INVALID_ARGUMENT);
	assert_status(etcd_start_range(&fixture, &(struct vd_etcd_call) { .endpoint = "e9:2379" }, &result),
		      VD_INVALID_ARGUMENT);
	assert_status(vd_etcd_range(fixture.client, NULL, &request, NULL, NULL), VD_INVALID_ARGUMENT);
	vdi_sim_run_until_idle(fixture.env);
	assert_int_equal(result.calls, 0);
	assert_int_equal(rpc_script_call_count(fixture.script), 0);
	etcd_client_fixture_fini(&fixture);
}

static void e205_round_robin_and_one_endpoint(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };
	unsigned		   seen[3] = { 0 };

	etcd_client_fixture_init(&fixture, 18, 3);
	etcd_client_fixture_open(&fixture);
	for (int i = 0; i < 9; i++) {
		struct rpc_script_call *call;

		assert_status(etcd_start_range(&fixture, NULL, &result), VD_OK);
		call = rpc_script_expect_call(fixture.script, RANGE);
		seen[rpc_script_call_endpoint(call)]++;
		rpc_script_answer(call, etcd_header_answer(1));
		vdi_sim_run_until_idle(fixture.env);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(seen[i], 3);
	for (int i = 0; i < 3; i++) {
		struct rpc_script_call *call;

		assert_status(
			etcd_start_range(&fixture, &(struct vd_etcd_call) { .endpoint = "e2:2379" }, &result),
			VD_OK);
		call = rpc_script_expect_call(fixture.script, RANGE);
		assert_int_equal(rpc_script_call_endpoint(call), 1);
		rpc_script_answer(call, etcd_header_answer(1));
	}
	etcd_expect_calls(&fixture, &result, 12);
	etcd_client_fixture_fini(&fixture);
}

static void places_are_used_again_under_other_ids(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   results[6];
	uint64_t		   ids[6] = { 0 }, old[6];

	etcd_client_fixture_start(&fixture, 30);
	for (int round = 0; round < 3; round++) {
		unsigned seen = 0;

		memset(results, 0, sizeof results);
		memcpy(old, ids, sizeof ids);
		for (int i = 0; i < 6; i++)
			assert_status(etcd_start_range(&fixture, &(struct vd_etcd_call) { .ret_id = &ids[i] },
						       &results[i]),
				      VD_OK);
		for (int i = 0; i < 6; i++)
			for (int k = 0; k < 6; k++)
				assert_true((i == k || ids[i] != ids[k]) && (round == 0 || ids[i] != old[k]));
		for (int k = 0; k < 6 && round; k++)
			vd_etcd_cancel(fixture.client, old[k]); /* nobody's */
		for (int i = 0; i < 6; i++)
			rpc_script_answer(rpc_script_expect_call(fixture.script, RANGE),
					  etcd_header_answer(100 + i));
		vdi_sim_run_until_idle(fixture.env);
		for (int i = 0; i < 6; i++) {
			assert_int_equal(results[i].calls, 1);
			assert_etcd_ok(&results[i]);
			seen |= 1u << (results[i].header.revision - 100);
		}
		assert_int_equal(seen, 0x3f);
	}
	etcd_client_fixture_fini(&fixture);
}

/* A transport whose answer is there, and has been worked on, before its call returns. */
struct hasty {
	struct vdi_rpc_client client; /* first */
	struct vdi_rpc_call   call;
	struct vd_env	     *env;
	unsigned	      calls;
};

static vd_status hasty_call(struct vdi_rpc_client *client, const struct vdi_rpc_request *request,
			    vdi_rpc_done_fn done, void *arg, struct vdi_rpc_call **ret_call)
{
	struct hasty		*hasty = (struct hasty *) client;
	struct vdi_rpc_message	 message = { .bytes = etcd_header_answer(hasty->calls) };
	const struct vdi_rpc_end good = { .message = "", .endpoint = "h" };
	const struct vdi_rpc_end bad = { .code = VDI_RPC_UNAVAILABLE, .message = "not yet", .endpoint = "h" };
	bool			 is_first = hasty->calls++ % 2 == 0;

	done(arg, is_first ? &bad : &good, &message);
	if (is_first) { /* the test's own thread; the second attempt is the actor's */
		vdi_sim_run_until_idle(hasty->env);
		vdi_sim_advance(hasty->env, VD_MS(50));
	}
	if (ret_call)
		*ret_call = &hasty->call;
	return VD_OK;
}

static void hasty_call_cancel(struct vdi_rpc_call *call)
{
	fail_msg("a call that has ended is canceled");
}

static size_t hasty_endpoint_count(struct vdi_rpc_client *client)
{
	return 1;
}

static bool hasty_endpoint_state(struct vdi_rpc_client *client, size_t index,
				 struct vdi_rpc_endpoint_state *ret_state)
{
	return false;
}

static void hasty_close(struct vdi_rpc_client *client, void (*done)(void *arg), void *arg)
{
	done(arg);
}

static void an_answer_that_is_faster_than_the_start(void **state)
{
	static const struct vdi_rpc_client_ops ops = { .call = hasty_call,
						       .call_cancel = hasty_call_cancel,
						       .endpoint_count = hasty_endpoint_count,
						       .endpoint_state = hasty_endpoint_state,
						       .close = hasty_close };
	struct hasty			       hasty = { .client.ops = &ops };
	struct etcd_client_fixture	       fixture = { .live = vdi_alloc_live() };
	static const char *const	       endpoints[] = { "h" };
	static const struct vd_etcd_options    defaults = VD_ETCD_OPTIONS_INIT;
	struct etcd_result		       result = { 0 };
	uint64_t			       id;

	assert_status(vdi_env_new_sim(31, NULL, NULL, &fixture.env), VD_OK);
	hasty.env = fixture.env;
	fixture.options = defaults;
	fixture.options.endpoints = endpoints;
	fixture.options.endpoint_count = 1;
	assert_status(vdi_etcd_new(fixture.env, &fixture.options, &hasty.client, &fixture.client, NULL),
		      VD_OK);
	for (unsigned i = 1; i <= 5; i++) {
		assert_status(etcd_start_range(&fixture, &(struct vd_etcd_call) { .ret_id = &id }, &result),
			      VD_OK);
		assert_int_equal(result.calls, i); /* told, and gone, before the start has returned */
		assert_etcd_ok(&result);
		vd_etcd_cancel(fixture.client, id);
	}
	assert_int_equal(hasty.calls, 10);
	vd_etcd_close_wait(fixture.client);
	vd_env_free(fixture.env);
	assert_int_equal(vdi_alloc_live(), fixture.live);
}

/* ---- Cancel and close ---- */

static void cancel_at_any_moment(void **state)
{
	struct etcd_client_fixture fixture;

	etcd_client_fixture_start(&fixture, 19);
	for (unsigned steps = 0; steps < 12; steps++) {
		struct etcd_result	result = { 0 };
		uint64_t		id = 0;
		struct rpc_script_call *call;

		assert_status(etcd_start_range(&fixture, &(struct vd_etcd_call) { .ret_id = &id }, &result),
			      VD_OK);
		assert_true(id != 0);
		for (unsigned i = 0; i < steps; i++) {
			(void) vdi_sim_step(fixture.env);
			call = rpc_script_take_call(fixture.script, RANGE);
			if (call)
				rpc_script_answer(call, etcd_header_answer(1));
		}
		vd_etcd_cancel(fixture.client, id);
		vd_etcd_cancel(fixture.client, id);
		etcd_expect_calls(&fixture, &result, 1);
		if (result.is_error)
			assert_etcd_error(&result, VD_CANCELED, "context canceled");
		else
			assert_true(steps > 1);
		vd_etcd_cancel(fixture.client, id); /* long gone */
		vdi_sim_run_until_idle(fixture.env);
		assert_int_equal(result.calls, 1);
	}
	vd_etcd_cancel(fixture.client, 0);
	vd_etcd_cancel(fixture.client, 12345678901);
	etcd_client_fixture_fini(&fixture);
}

static void cancel_while_it_waits_for_the_next_attempt(void **state)
{
	struct etcd_client_fixture fixture;
	struct etcd_result	   result = { 0 };
	uint64_t		   id = 0;

	etcd_client_fixture_start(&fixture, 20);
	rpc_script_refuse(fixture.script, RANGE, 1000, VDI_RPC_UNAVAILABLE, "down");
	assert_status(etcd_start_range(&fixture, &(struct vd_etcd_call) { .ret_id = &id }, &result), VD_OK);
	vdi_sim_run_until_idle(fixture.env);
	assert_int_equal(result.calls, 0);
	vd_etcd_cancel(fixture.client, id);
	vdi_sim_run_until_idle(fixture.env);
	assert_int_equal(result.calls, 1);
	assert_etcd_error(&result, VD_CANCELED, "context canceled");
	rpc_script_refuse(fixture.script, NULL, 0, 0, NULL);
	etcd_client_fixture_fini(&fixture);
}

static void close_at_any_moment(void **state)
{
	for (unsigned steps = 0; steps < 30; steps++) {
		struct etcd_client_fixture fixture;
		struct etcd_result	   results[4] = { { 0 } };

		etcd_client_fixture_init(&fixture, 100 + steps, 2);
		etcd_client_fixture_open(&fixture);
		rpc_script_set_delay(fixture.script, VD_MS(1));
		rpc_script_refuse(fixture.script, RANGE, 2, VDI_RPC_UNAVAILABLE, "down");
		for (int i = 0; i < 4; i++)
			assert_status(
				(i % 2 ? etcd_start_put : etcd_start_range)(&fixture, NULL, &results[i]),
				VD_OK);
		for (unsigned i = 0; i < steps; i++) {
			struct rpc_script_call *call = rpc_script_take_call(fixture.script, NULL);

			if (call)
				rpc_script_answer(call, etcd_header_answer(1));
			if (!vdi_sim_step(fixture.env))
				(void) vdi_sim_advance_to_next_timer(fixture.env);
		}
		etcd_client_fixture_close(&fixture);
		for (int i = 0; i < 4; i++) {
			assert_int_equal(results[i].calls, 1);
			assert_true(!results[i].is_error || results[i].error.error.code == VD_CLOSED);
		}
		rpc_script_refuse(fixture.script, NULL, 0, 0, NULL);
		etcd_client_fixture_fini(&fixture);
	}
}

static struct etcd_client_fixture *fixture_in_callback;
static struct etcd_result	   result_in_callback;

static void start_after_close(void *arg, const struct vd_etcd_error *error,
			      const struct vd_etcd_header *header, const struct vd_range_result *result)
{
	etcd_note_range(arg, error, header, result);
	/* A closing client takes no more calls, also inside a callback. */
	assert_status(etcd_start_range(fixture_in_callback, NULL, &result_in_callback), VD_CLOSED);
}

static void a_closing_client_takes_no_calls(void **state)
{
	const struct vd_etcd_range_request request = { .range = { .key = vd_bytes_of("k") } };
	struct etcd_client_fixture	   fixture;
	struct etcd_result		   result = { 0 };

	etcd_client_fixture_start(&fixture, 21);
	fixture_in_callback = &fixture;
	assert_status(vd_etcd_range(fixture.client, NULL, &request, start_after_close, &result), VD_OK);
	etcd_client_fixture_close(&fixture);
	assert_int_equal(result.calls, 1);
	assert_etcd_error(&result, VD_CLOSED, "etcdclient: the client is closing");
	etcd_client_fixture_fini(&fixture);
}

static bool is_closed;

static void set_closed(void *arg)
{
	is_closed = true;
}

static void close_inside(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
			 const struct vd_range_result *result)
{
	etcd_note_range(arg, error, header, result);
	vd_etcd_close(fixture_in_callback->client, set_closed, NULL);
	fixture_in_callback->client = NULL;
}

static void close_inside_a_callback(void **state)
{
	const struct vd_etcd_range_request request = { .range = { .key = vd_bytes_of("k") } };
	struct etcd_client_fixture	   fixture;
	struct etcd_result		   result = { 0 };
	struct etcd_result		   other = { 0 };

	etcd_client_fixture_start(&fixture, 22);
	fixture_in_callback = &fixture;
	is_closed = false;
	assert_status(vd_etcd_range(fixture.client, NULL, &request, close_inside, &result), VD_OK);
	assert_status(etcd_start_put(&fixture, NULL, &other), VD_OK);
	rpc_script_answer(rpc_script_expect_call(fixture.script, RANGE), etcd_header_answer(1));
	vdi_sim_run_until_idle(fixture.env);
	assert_true(is_closed);
	assert_int_equal(result.calls, 1);
	assert_etcd_error(&other, VD_CLOSED, "etcdclient: the client is closing");
	etcd_client_fixture_fini(&fixture);
}

/* ---- Memory ---- */

static void torture_calls(void **state)
{
	for (uint64_t nth = 1;; nth++) {
		struct etcd_client_fixture fixture;
		struct etcd_result	   result = { 0 };
		bool			   has_failed;
		vd_status		   status;

		etcd_client_fixture_start(&fixture, 23);
		rpc_script_refuse(fixture.script, RANGE, 1, VDI_RPC_UNAVAILABLE, "down");
		vdi_alloc_fail_nth(nth, 1);
		status = etcd_start_range(
			&fixture, &(struct vd_etcd_call) { .endpoint = "e1:2379", .timeout = VD_SECONDS(5) },
			&result);
		if (status == VD_OK) {
			struct rpc_script_call *call;

			vdi_sim_advance(fixture.env, VD_MS(100));
			call = rpc_script_take_call(fixture.script, RANGE);
			if (call)
				rpc_script_answer(call, etcd_header_answer(3));
			etcd_expect_calls(&fixture, &result, 1);
			if (result.is_error)
				assert_status(result.error.error.code, VD_NOMEM);
		} else {
			assert_status(status, VD_NOMEM);
		}
		has_failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		vdi_sim_run_until_idle(fixture.env);
		assert_int_equal(result.calls, status == VD_OK);
		etcd_client_fixture_fini(&fixture);
		if (!has_failed)
			break;
		assert_true(nth < 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_is_answered),
		cmocka_unit_test(e206_e207_unavailable_is_repeated_for_reads),
		cmocka_unit_test(e207_a_write_is_not_repeated),
		cmocka_unit_test(e207_a_write_that_was_never_sent_is_repeated),
		cmocka_unit_test(e101_e102_paths),
		cmocka_unit_test(e206_every_method_has_its_class),
		cmocka_unit_test(e207_other_codes_are_final),
		cmocka_unit_test(e207_the_transport_decides_and_not_the_words),
		cmocka_unit_test(e207_a_typed_error_of_another_code_stops),
		cmocka_unit_test(e201_e208_waits_between_attempts),
		cmocka_unit_test(e208_canceled_by_the_server_is_repeated_for_reads_only),
		cmocka_unit_test(e208_a_learner_is_left_for_another_member),
		cmocka_unit_test(maybe_applied_says_what_is_known),
		cmocka_unit_test(an_answer_that_cannot_be_read),
		cmocka_unit_test(e210_timeouts),
		cmocka_unit_test(the_clients_timeout_is_the_default),
		cmocka_unit_test(e140_metadata),
		cmocka_unit_test(bad_metadata_and_bad_calls_are_refused),
		cmocka_unit_test(e205_round_robin_and_one_endpoint),
		cmocka_unit_test(places_are_used_again_under_other_ids),
		cmocka_unit_test(an_answer_that_is_faster_than_the_start),
		cmocka_unit_test(cancel_at_any_moment),
		cmocka_unit_test(cancel_while_it_waits_for_the_next_attempt),
		cmocka_unit_test(close_at_any_moment),
		cmocka_unit_test(a_closing_client_takes_no_calls),
		cmocka_unit_test(close_inside_a_callback),
		cmocka_unit_test(torture_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
