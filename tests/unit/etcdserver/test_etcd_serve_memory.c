/* Every call of the etcd server while each of its requests for memory fails in turn: the client gets the
 * whole answer or an error with words, and the server goes on as if nothing had been. */
#include "etcd_server_fixture.h"

#include "actor_sim.h"
#include "vdtest.h"

#define REQUESTS_MAX 400 /* for memory, of one call */

struct ask {
	const char	       *method;
	const ProtobufCMessage *request;
	bool			is_stream; /* it ends by itself, after messages */
	bool			half_closes;
};

/* One call with its one message; false: it failed. */
static bool ask(struct etcd_server_fixture *fixture, const struct ask *what, size_t *ret_bytes)
{
	struct etcd_server_call call;
	int			code;

	etcd_server_call_init(&call, fixture);
	etcd_server_call_open(&call, fixture, what->method);
	if (!call.is_finished && call.wanted)
		etcd_server_call_send(&call, what->request);
	if (!call.is_finished && what->half_closes)
		etcd_server_call_send(&call, NULL);
	vdi_sim_advance(fixture->env, VD_SECONDS(1));
	if (!call.is_finished)
		fail_msg("%s has no end", what->method);
	code = call.code;
	*ret_bytes = 0;
	for (size_t i = 0; i < call.count; i++)
		*ret_bytes += call.sizes[i];
	if (code == 0)
		assert_true(what->half_closes || call.count > 0);
	else
		assert_true(call.text[0] != 0);
	etcd_server_call_end(&call);
	return code == 0;
}

static void expect_all_or_an_error(struct etcd_server_fixture *fixture, const struct ask *what)
{
	size_t	 whole, bytes;
	bool	 was_reached = true;
	unsigned failures = 0;

	/* The second one finds what the first one left. */
	if (!ask(fixture, what, &whole) || !ask(fixture, what, &whole))
		fail_msg("%s fails", what->method);
	for (uint64_t n = 1; was_reached && n < REQUESTS_MAX; n++) {
		bool is_good;

		vdi_alloc_fail_nth(n, 1);
		is_good = ask(fixture, what, &bytes);
		was_reached = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		failures += !is_good;
		assert_true(is_good || was_reached);
		if (is_good)
			assert_in_range(bytes, whole - whole / 4,
					whole + whole / 4 + 16); /* revisions grow */
	}
	if (failures == 0)
		print_message("%s needs no memory\n", what->method);
	assert_false(was_reached);
	assert_true(ask(fixture, what, &bytes));
}

static void fill(struct etcd_server_fixture *fixture)
{
	static char value[5000];
	char	    key[16];

	memset(value, 'v', sizeof value - 1);
	for (int i = 0; i < 20; i++) {
		(void) snprintf(key, sizeof key, "key-%02d", i);
		etcd_server_put(fixture, key, i % 5 ? "small" : value);
	}
	etcd_server_grant(fixture, 7, 300, 300);
	(void) etcd_server_put_leased(fixture, "leased", "x", 7);
}

static void keys_and_leases(void **state)
{
	struct etcd_server_fixture *fixture = *state;
	Etcdserverpb__PutRequest    put = ETCDSERVERPB__PUT_REQUEST__INIT;
	Etcdserverpb__RangeRequest  one = ETCDSERVERPB__RANGE_REQUEST__INIT, all = one, sorted = one,
				   page = one, by_mod = one;
	Etcdserverpb__DeleteRangeRequest delete = ETCDSERVERPB__DELETE_RANGE_REQUEST__INIT;
	Etcdserverpb__TxnRequest txn = ETCDSERVERPB__TXN_REQUEST__INIT;
	Etcdserverpb__Compare	 compare = ETCDSERVERPB__COMPARE__INIT, *compares[] = { &compare };
	Etcdserverpb__RequestOp	 op = ETCDSERVERPB__REQUEST_OP__INIT, read = op, *ops[] = { &op, &read };
	Etcdserverpb__LeaseTimeToLiveRequest ttl = ETCDSERVERPB__LEASE_TIME_TO_LIVE_REQUEST__INIT;
	Etcdserverpb__LeaseLeasesRequest     leases = ETCDSERVERPB__LEASE_LEASES_REQUEST__INIT;
	Etcdserverpb__LeaseKeepAliveRequest  keep = ETCDSERVERPB__LEASE_KEEP_ALIVE_REQUEST__INIT;
	const struct ask		     asks[] = {
				    { .method = "/etcdserverpb.KV/Put", .request = &put.base },
				    { .method = "/etcdserverpb.KV/Range", .request = &one.base },
				    { .method = "/etcdserverpb.KV/Range", .request = &all.base },
				    { .method = "/etcdserverpb.KV/Range", .request = &sorted.base },
				    { .method = "/etcdserverpb.KV/Range", .request = &page.base },
				    { .method = "/etcdserverpb.KV/RangeStream", .request = &all.base },
				    { .method = "/etcdserverpb.KV/RangeStream", .request = &page.base },
				    { .method = "/etcdserverpb.KV/RangeStream", .request = &by_mod.base },
				    { .method = "/etcdserverpb.KV/DeleteRange", .request = &delete.base },
				    { .method = "/etcdserverpb.KV/Txn", .request = &txn.base },
				    { .method = "/etcdserverpb.Lease/LeaseTimeToLive", .request = &ttl.base },
				    { .method = "/etcdserverpb.Lease/LeaseLeases", .request = &leases.base },
				    { .method = "/etcdserverpb.Lease/LeaseKeepAlive",
				      .request = &keep.base,
				      .half_closes = true },
	};

	fill(fixture);
	put.key = etcd_bytes("put");
	put.value = etcd_bytes("a value");
	put.prev_kv = true;
	put.lease = 7;
	one.key = etcd_bytes("key-05");
	all.key = sorted.key = page.key = etcd_bytes("key-");
	all.range_end = sorted.range_end = page.range_end = etcd_bytes("key.");
	sorted.sort_order = ETCDSERVERPB__RANGE_REQUEST__SORT_ORDER__DESCEND;
	sorted.sort_target = ETCDSERVERPB__RANGE_REQUEST__SORT_TARGET__MOD;
	page.limit = 7;
	by_mod = all;
	by_mod.sort_target = ETCDSERVERPB__RANGE_REQUEST__SORT_TARGET__MOD;
	delete.key = etcd_bytes("absent");
	delete.prev_kv = true;
	compare.key = etcd_bytes("key-01");
	compare.target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_VERSION;
	compare.version = 1;
	op.request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT;
	op.request_put = &put;
	read.request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_RANGE;
	read.request_range = &all;
	txn.compare = compares;
	txn.n_compare = 1;
	txn.success = ops;
	txn.n_success = 2;
	ttl.id = keep.id = 7;
	ttl.keys = true;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(asks); i++)
		expect_all_or_an_error(fixture, &asks[i]);
}

/* Calls that cannot be repeated with the same answer: each ends, with whatever. */
static void calls_that_change_something_end(void **state)
{
	struct etcd_server_fixture	*fixture = *state;
	Etcdserverpb__CompactionRequest	 compact = ETCDSERVERPB__COMPACTION_REQUEST__INIT;
	Etcdserverpb__LeaseGrantRequest	 grant = ETCDSERVERPB__LEASE_GRANT_REQUEST__INIT;
	Etcdserverpb__LeaseRevokeRequest revoke = ETCDSERVERPB__LEASE_REVOKE_REQUEST__INIT;
	const struct ask		 asks[] = {
				{ .method = "/etcdserverpb.KV/Compact", .request = &compact.base },
				{ .method = "/etcdserverpb.Lease/LeaseGrant", .request = &grant.base },
				{ .method = "/etcdserverpb.Lease/LeaseRevoke", .request = &revoke.base },
	};

	fill(fixture);
	grant.ttl = 100;
	revoke.id = 404;
	compact.revision = 5;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(asks); i++) {
		bool was_reached = true;

		for (uint64_t n = 1; was_reached; n++) {
			struct etcd_server_call call;

			assert_true(n < REQUESTS_MAX);
			etcd_server_call_init(&call, fixture);
			etcd_server_call_open(&call, fixture, asks[i].method);
			vdi_alloc_fail_nth(n, 1);
			etcd_server_call_send(&call, asks[i].request);
			was_reached = vdi_alloc_failed();
			vdi_alloc_fail_nth(0, 0);
			assert_true(call.is_finished);
			assert_true(call.code != 0 || call.count == 1);
			etcd_server_call_end(&call);
		}
	}
}

static void members_and_maintenance(void **state)
{
	struct etcd_server_fixture	 *fixture = *state;
	Etcdserverpb__StatusRequest	  status = ETCDSERVERPB__STATUS_REQUEST__INIT;
	Etcdserverpb__HashRequest	  hash = ETCDSERVERPB__HASH_REQUEST__INIT;
	Etcdserverpb__HashKVRequest	  hash_kv = ETCDSERVERPB__HASH_KVREQUEST__INIT;
	Etcdserverpb__AlarmRequest	  alarm = ETCDSERVERPB__ALARM_REQUEST__INIT;
	Etcdserverpb__MemberListRequest	  members = ETCDSERVERPB__MEMBER_LIST_REQUEST__INIT;
	Etcdserverpb__SnapshotRequest	  snap = ETCDSERVERPB__SNAPSHOT_REQUEST__INIT;
	Etcdserverpb__AuthStatusRequest	  auth = ETCDSERVERPB__AUTH_STATUS_REQUEST__INIT;
	Etcdserverpb__AuthUserListRequest users = ETCDSERVERPB__AUTH_USER_LIST_REQUEST__INIT;
	Etcdserverpb__AuthRoleListRequest roles = ETCDSERVERPB__AUTH_ROLE_LIST_REQUEST__INIT;
	const struct ask		  asks[] = {
				 { .method = "/etcdserverpb.Maintenance/Status", .request = &status.base },
				 { .method = "/etcdserverpb.Maintenance/Hash", .request = &hash.base },
				 { .method = "/etcdserverpb.Maintenance/HashKV", .request = &hash_kv.base },
				 { .method = "/etcdserverpb.Maintenance/Alarm", .request = &alarm.base },
				 { .method = "/etcdserverpb.Maintenance/Snapshot", .request = &snap.base },
				 { .method = "/etcdserverpb.Cluster/MemberList", .request = &members.base },
				 { .method = "/etcdserverpb.Auth/AuthStatus", .request = &auth.base },
				 { .method = "/etcdserverpb.Auth/UserList", .request = &users.base },
				 { .method = "/etcdserverpb.Auth/RoleList", .request = &roles.base },
	};

	fill(fixture);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(asks); i++)
		expect_all_or_an_error(fixture, &asks[i]);
}

/* ---- Watches ---- */

/* Creates a watch of what there is from that revision on, up to revision 11: all events come, each once and
 * in order, or the stream ends with words. */
static bool watch(struct etcd_server_fixture *fixture, int64_t revision)
{
	Etcdserverpb__WatchCreateRequest create = ETCDSERVERPB__WATCH_CREATE_REQUEST__INIT;
	Etcdserverpb__WatchRequest	 request = ETCDSERVERPB__WATCH_REQUEST__INIT;
	Etcdserverpb__WatchResponse	*response;
	struct etcd_server_call		 call;
	bool				 is_good, is_created = false, is_canceled = false;
	int64_t				 last = revision - 1;

	create.key = etcd_bytes("key-");
	create.range_end = etcd_bytes("key.");
	create.start_revision = revision;
	create.prev_kv = true;
	request.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST;
	request.create_request = &create;
	etcd_server_call_init(&call, fixture);
	etcd_server_call_open(&call, fixture, "/etcdserverpb.Watch/Watch");
	if (!call.is_finished && call.wanted)
		etcd_server_call_send(&call, &request.base);
	vdi_sim_advance(fixture->env, VD_SECONDS(1));
	while ((response = etcd_server_call_next(&call)) != NULL) {
		assert_false(is_canceled);
		is_created |= response->created;
		is_canceled |= response->canceled;
		for (size_t i = 0; i < response->n_events; i++) {
			assert_int_equal(response->events[i]->kv->mod_revision, last + 1);
			last++;
		}
		ETCD_FREE(response);
	}
	is_good = !call.is_finished && !is_canceled;
	if (is_good) {
		assert_true(is_created);
		assert_int_equal(last, 11);
	} else if (call.is_finished) {
		assert_int_not_equal(call.code, 0);
		assert_true(call.text[0] != 0);
	}
	etcd_server_call_end(&call);
	return is_good;
}

static void watches(void **state)
{
	struct etcd_server_fixture *fixture = *state;

	for (int i = 0; i < 10; i++)
		etcd_server_put(fixture, "key-x", "value");
	/* All events, two, and one: frames of few events are kept for the next watcher. */
	for (int i = 0; i < 3; i++) {
		int64_t	 revision = (const int64_t[]) { 2, 10, 11 }[i];
		bool	 was_reached = true;
		unsigned failures = 0;

		for (uint64_t n = 1; was_reached && n < REQUESTS_MAX; n++) {
			bool is_good;

			vdi_alloc_fail_nth(n, 1);
			is_good = watch(fixture, revision);
			was_reached = vdi_alloc_failed();
			vdi_alloc_fail_nth(0, 0);
			failures += !is_good;
			assert_true(is_good || was_reached);
		}
		assert_false(was_reached);
		assert_true(failures > 0);
		assert_true(watch(fixture, revision));
	}
}

/* ---- The server itself ---- */

static void options_are_checked(void **state)
{
	static const struct {
		struct vdi_etcdserver_options options;
		const char		     *message;
	} rows[] = {
		{ { .txn_ops_max = 129 },
		  "etcd: the maximum of operations in a transaction must be at most 128" },
		{ { .progress_interval = { -1 } }, "etcd: an option is outside its range" },
		{ { .token_ttl = { -1 } }, "etcd: an option is outside its range" },
		{ { .txn_ops_max = 128, .bcrypt_cost = 4 }, NULL },
	};
	struct vd_mvcc_options mvcc = VD_MVCC_OPTIONS_INIT;
	struct vdi_etcdserver *server = NULL;
	struct vd_store	      *store;
	struct vd_env	      *env;
	struct vd_error	       error;

	(void) state;
	assert_status(vdi_env_new_sim(7, NULL, NULL, &env), VD_OK);
	assert_status(vd_store_open_mvcc(env, &mvcc, &store, NULL), VD_OK);
	assert_status(vdi_etcdserver_new(env, &(struct vdi_etcdserver_options) { 0 }, &server, &error),
		      VD_INVALID_ARGUMENT);
	assert_string_equal(error.message, "etcd: store is NULL");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_etcdserver_options options = rows[i].options;

		options.store = store;
		assert_status(vdi_etcdserver_new(env, &options, &server, &error),
			      rows[i].message ? VD_INVALID_ARGUMENT : VD_OK);
		if (rows[i].message)
			assert_string_equal(error.message, rows[i].message);
	}
	/* What was not given. */
	assert_string_equal(server->options.name, "default");
	assert_int_equal(server->options.request_bytes_max, 3 << 19);
	assert_int_equal(server->options.progress_interval.ns, VD_SECONDS(600).ns);
	assert_int_equal(server->options.watchers_max, 100000);
	assert_int_equal(server->options.token_ttl.ns, VD_SECONDS(300).ns);
	assert_int_equal(server->options.bcrypt_cost, 4);
	vdi_etcdserver_stop(server);
	(void) vdi_sim_run_until_idle(env);
	(void) vdi_etcdserver_free(server);
	(void) vd_store_close_wait(store);
	vd_env_free(env);
}

static void a_server_that_cannot_be_made_leaves_nothing(void **state)
{
	struct vdi_etcdserver_options options = { .bcrypt_cost = 4 };
	struct vd_mvcc_options	      mvcc = VD_MVCC_OPTIONS_INIT;
	struct vdi_etcdserver	     *server;
	struct vd_env		     *env;
	vd_status		      status = VD_NOMEM;
	int64_t			      before = vdi_alloc_live();

	(void) state;
	assert_status(vdi_env_new_sim(7, NULL, NULL, &env), VD_OK);
	assert_status(vd_store_open_mvcc(env, &mvcc, &options.store, NULL), VD_OK);
	(void) vdi_sim_run_until_idle(env);
	for (uint64_t n = 1; status != VD_OK; n++) {
		struct vd_error error = { .code = VD_OK };

		assert_true(n < REQUESTS_MAX);
		vdi_alloc_fail_nth(n, 1);
		status = vdi_etcdserver_new(env, &options, &server, &error);
		vdi_alloc_fail_nth(0, 0);
		if (status == VD_OK)
			break;
		assert_status(status, VD_NOMEM);
		(void) vdi_sim_run_until_idle(env);
	}
	vdi_etcdserver_stop(server);
	(void) vdi_sim_run_until_idle(env);
	(void) vdi_etcdserver_free(server);
	(void) vd_store_close_wait(options.store);
	vd_env_free(env);
	assert_int_equal(vdi_alloc_live(), before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, etcd_server_setup, etcd_server_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(keys_and_leases),
		TEST(calls_that_change_something_end),
		TEST(members_and_maintenance),
		TEST(watches),
		cmocka_unit_test(options_are_checked),
		cmocka_unit_test(a_server_that_cannot_be_made_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
