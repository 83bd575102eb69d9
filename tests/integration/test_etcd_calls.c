/* Every call of vedette/etcd.h on a real etcd, as `peers etcd-run` starts it: 3.7 and 3.4, plain and over
 * TLS, one member and three; and on `vedette etcd`, which must not differ. The expected answers are those of
 * observed transcripts (rules E-1101). Each test cleans up. Watches have a test of their own. */
#include "etcd_calls.h"
#include "lock.h"
#include "vdtest.h"
#include "rpc_etcd_options.h"

#define PATIENCE VD_SECONDS(60)

struct vd_env  *calls_env;
struct vd_etcd *calls_client;
const char     *calls_endpoints[8];
size_t		calls_endpoint_count;
bool		calls_is_old;
bool		calls_is_tls;

/* ---- Waiting ---- */

void calls_wait_for(struct etcd_result *result, vd_status started)
{
	if (started != VD_OK)
		fail_msg("not started: %s", vd_status_name(started));
	if (!vdi_wait_until(result->wait, vd_mono_add(vd_env_now(calls_env), PATIENCE)))
		fail_msg("no answer in %d s", (int) (PATIENCE.ns / 1000000000));
	vdi_wait_fini(result->wait);
}

struct vd_etcd_options calls_options(void)
{
	struct vd_etcd_options options = etcd_options_under_test();

	options.endpoints = calls_endpoints;
	options.endpoint_count = calls_endpoint_count;
	options.ca_path = getenv("ETCD_CACERT");
	options.cert_path = getenv("ETCD_CERT");
	options.key_path = getenv("ETCD_KEY");
	return options;
}

struct vd_etcd *calls_open(const struct vd_etcd_options *options)
{
	struct vd_etcd *opened;
	struct vd_error error;

	if (vd_etcd_open(calls_env, options, &opened, &error) != VD_OK)
		fail_msg("%s", error.message);
	return opened;
}

struct etcd_result calls_put_value(struct vd_etcd *by, const char *key, struct vd_bytes value)
{
	const struct vd_op op = { .kind = VD_OP_PUT, .key = vd_bytes_of(key), .value = value };
	struct etcd_result result;

	CALL(result, vd_etcd_put(by, &(struct vd_etcd_call) { .timeout = VD_SECONDS(30) }, &op, etcd_note_op,
				 &result));
	return result;
}

vd_rev calls_put(const char *key, const char *value)
{
	struct etcd_result result = calls_put_value(calls_client, key, vd_bytes_of(value));

	assert_etcd_ok(&result);
	return result.header.revision;
}

static struct etcd_result calls_range(const struct vd_etcd_range_request *request)
{
	struct etcd_result result;

	CALL(result, vd_etcd_range(calls_client, NULL, request, etcd_note_range, &result));
	return result;
}

void calls_clear(void)
{
	const struct vd_op op = { .kind = VD_OP_DELETE, .key = { "", 1 }, .range_end = { "", 1 } };
	struct etcd_result result;

	CALL_OK(result, vd_etcd_delete(calls_client, NULL, &op, etcd_note_op, &result));
}

/* ---- KV ---- */

static void e107_ranges(void **state)
{
	const struct vd_bytes	     end = { "", 1 };
	struct vd_etcd_range_request all = { .range = { .key = vd_bytes_of("a"), .range_end = end } };
	struct vd_etcd_range_request request;
	struct etcd_result	     result;
	vd_rev			     first, last;

	calls_clear();
	first = calls_put("b", "9");
	calls_put("a", "8");
	calls_put("c", "7");
	last = calls_put("d", "6");
	assert_int_equal(last, first + 3);
	result = calls_range(&all);
	assert_etcd_ok(&result);
	assert_true(result.header.cluster_id && result.header.member_id && result.header.raft_term);
	assert_int_equal(result.header.revision, last);
	assert_true(result.kv_count == 4 && result.number == 4 && !result.flag);
	assert_string_equal(result.text, "a");
	request = all;
	request.range.limit = 1;
	request.sort_target = VD_ETCD_SORT_VALUE;
	request.sort_order = VD_ETCD_SORT_ASCEND;
	result = calls_range(&request);
	assert_string_equal(result.text, "d");
	assert_true(result.flag && result.number == 4 && result.kv_count == 1);
	request.sort_order = VD_ETCD_SORT_DESCEND;
	result = calls_range(&request);
	assert_string_equal(result.text, "b");
	request = all;
	request.min_mod_revision = last;
	result = calls_range(&request);
	assert_true(result.kv_count == 1);
	assert_string_equal(result.text, "d");
	request = all;
	request.range.count_only = true;
	request.range.revision = first + 1;
	result = calls_range(&request);
	assert_true(result.number == 2 && result.kv_count == 0 && result.header.revision == last);
	request = all;
	request.range.serializable = request.range.keys_only = true;
	result = calls_range(&request);
	assert_true(result.kv_count == 4);
	request = all;
	request.range.key = vd_bytes_of("z");
	request.range.range_end = vd_bytes_of("a");
	result = calls_range(&request);
	assert_etcd_ok(&result);
	assert_int_equal(result.kv_count, 0);
	request = all;
	request.range.revision = last + 300;
	result = calls_range(&request);
	assert_etcd_error(&result, VD_TOO_LARGE_REVISION,
			  "etcdserver: mvcc: required revision is a future revision");
	assert_int_equal(result.error.grpc_code, 11);
	assert_non_null(strchr(result.error.endpoint, ':'));
	result = calls_range(&(struct vd_etcd_range_request) { .range = { .key = VD_BYTES_NONE } });
	assert_etcd_error(&result, VD_INVALID_ARGUMENT, "etcdserver: key is not provided");
}

static void e108_puts_and_deletes(void **state)
{
	const struct vd_op again = {
		.kind = VD_OP_PUT, .key = vd_bytes_of("k"), .value = vd_bytes_of("2"), .previous = true
	};
	const struct vd_op keep = { .kind = VD_OP_PUT, .key = vd_bytes_of("absent"), .ignore_value = true };
	const struct vd_op leased = { .kind = VD_OP_PUT, .key = vd_bytes_of("k"), .lease = 987654321 };
	const struct vd_op remove = {
		.kind = VD_OP_DELETE, .key = vd_bytes_of("k"), .range_end = vd_bytes_of("l"), .previous = true
	};
	struct etcd_result result;

	calls_clear();
	calls_put("k", "1");
	CALL_OK(result, vd_etcd_put(calls_client, NULL, &again, etcd_note_op, &result));
	assert_string_equal(result.text, "1");
	CALL(result, vd_etcd_put(calls_client, NULL, &keep, etcd_note_op, &result));
	assert_etcd_error(&result, VD_NOT_FOUND, "etcdserver: key not found");
	assert_false(result.error.maybe_applied);
	CALL(result, vd_etcd_put(calls_client, NULL, &leased, etcd_note_op, &result));
	assert_etcd_error(&result, VD_LEASE_NOT_FOUND, "etcdserver: requested lease not found");
	CALL_OK(result, vd_etcd_delete(calls_client, NULL, &remove, etcd_note_op, &result));
	assert_true(result.number == 1 && result.kv_count == 1);
	assert_string_equal(result.text, "2");
	CALL_OK(result, vd_etcd_delete(calls_client, NULL, &remove, etcd_note_op, &result));
	assert_int_equal(result.number, 0);
}

static void e109_e110_transactions(void **state)
{
	const struct vd_compare absent = { .target = VD_COMPARE_VERSION,
					   .key = vd_bytes_of("t"),
					   .number = 0 };
	const struct vd_op create = { .kind = VD_OP_PUT, .key = vd_bytes_of("t"), .value = vd_bytes_of("1") };
	const struct vd_txn_request nested = { .success = &create, .success_count = 1 };
	const struct vd_op	    success[] = { create,
						  { .kind = VD_OP_RANGE, .range.key = vd_bytes_of("t") },
						  { .kind = VD_OP_DELETE, .key = vd_bytes_of("nothing") } };
	const struct vd_op	    failure[] = { { .kind = VD_OP_TXN, .txn = &nested } };
	const struct vd_txn_request request = { &absent, 1, success, 3, failure, 1 };
	const struct vd_op	    twice[] = { create, create };
	const struct vd_txn_request duplicate = { .success = twice, .success_count = 2 };
	struct vd_op		    many[129];
	struct etcd_result	    result;
	vd_rev			    revision;

	calls_clear();
	CALL_OK(result, vd_etcd_txn(calls_client, NULL, &request, etcd_note_txn, &result));
	assert_true(result.flag && result.kv_count == 3);
	revision = result.header.revision;
	CALL_OK(result, vd_etcd_txn(calls_client, NULL, &request, etcd_note_txn, &result));
	assert_true(!result.flag && result.kv_count == 1);
	assert_int_equal(result.header.revision, revision + 1);
	CALL(result, vd_etcd_txn(calls_client, NULL, &duplicate, etcd_note_txn, &result));
	assert_etcd_error(&result, VD_DUPLICATE_KEY, "etcdserver: duplicate key given in txn request");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(many); i++)
		many[i] = (struct vd_op) { .kind = VD_OP_RANGE, .range = { .key = vd_bytes_of("t") } };
	CALL(result, vd_etcd_txn(calls_client, NULL,
				 &(struct vd_txn_request) { .success = many, .success_count = 129 },
				 etcd_note_txn, &result));
	assert_etcd_error(&result, VD_TOO_BIG, "etcdserver: too many operations in txn request");
}

static void e111_compaction(void **state)
{
	struct etcd_result result;
	vd_rev		   revision;

	calls_put("k", "1");
	revision = calls_put("k", "2");
	CALL_OK(result, vd_etcd_compact(calls_client, NULL, revision, true, etcd_note_done, &result));
	CALL(result, vd_etcd_compact(calls_client, NULL, revision, false, etcd_note_done, &result));
	assert_etcd_error(&result, VD_EXPIRED, "etcdserver: mvcc: required revision has been compacted");
	CALL(result, vd_etcd_compact(calls_client, NULL, revision + 1000, false, etcd_note_done, &result));
	assert_etcd_error(&result, VD_TOO_LARGE_REVISION,
			  "etcdserver: mvcc: required revision is a future revision");
	result = calls_range(&(struct vd_etcd_range_request) {
		.range = { .key = vd_bytes_of("k"), .revision = revision - 1 } });
	assert_etcd_error(&result, VD_EXPIRED, "etcdserver: mvcc: required revision has been compacted");
	assert_int_equal(result.error.code, VD_ETCD_COMPACTED);
}

static void e134_e150_limits(void **state)
{
	struct vd_etcd_options options = calls_options();
	char		      *large = vdi_calloc(1, 2200000);
	struct etcd_result     result;
	struct vd_etcd	      *small;

	result = calls_put_value(calls_client, "large", (struct vd_bytes) { large, 1600000 });
	assert_etcd_error(&result, VD_TOO_BIG, "etcdserver: request is too large");
	result = calls_put_value(calls_client, "large",
				 (struct vd_bytes) { large, 2200000 }); /* our own limit, as clientv3's */
	assert_true(result.is_error);
	assert_status(result.error.error.code, VD_TOO_BIG);
	assert_non_null(strstr(result.error.error.message, "trying to send message larger than max (2200"));
	assert_false(result.error.maybe_applied);
	result = calls_put_value(calls_client, "large", (struct vd_bytes) { large, 1500000 });
	assert_etcd_ok(&result);
	options.send_size_max = 1000;
	options.receive_size_max = 100000;
	small = calls_open(&options);
	CALL(result,
	     vd_etcd_range(small, NULL,
			   &(struct vd_etcd_range_request) { .range = { .key = vd_bytes_of("large") } },
			   etcd_note_range, &result));
	assert_true(result.is_error);
	assert_status(result.error.error.code, VD_TOO_BIG);
	vd_etcd_close_wait(small);
	vdi_free(large);
	calls_clear();
}

static void e107_range_stream(void **state)
{
	const struct vd_etcd_range_request request = { .range = { .key = { "", 1 },
								  .range_end = { "", 1 } } };
	struct etcd_result		   result;
	char				  *value = vdi_calloc(1, 100000);

	calls_clear();
	for (int i = 0; i < 50; i++) {
		char key[16];

		(void) snprintf(key, sizeof key, "key%03d", i);
		result = calls_put_value(calls_client, key, (struct vd_bytes) { value, 100000 });
		assert_etcd_ok(&result);
	}
	CALL(result, vd_etcd_range_stream(calls_client, NULL, &request, etcd_note_range_stream, &result));
	if (calls_is_old) {
		assert_true(result.is_error);
		assert_status(result.error.error.code, VD_UNSUPPORTED);
	} else {
		assert_etcd_ok(&result);
		assert_int_equal(result.kv_count, 50);
		assert_true(result.parts > 1);
	}
	vdi_free(value);
	calls_clear();
}

/* ---- Leases ---- */

static void e113_leases(void **state)
{
	struct vd_op	   leased = { .kind = VD_OP_PUT, .key = vd_bytes_of("leased"), .lease = 77 };
	struct etcd_result result;
	int64_t		   chosen;

	CALL_OK(result, vd_etcd_lease_grant(calls_client, NULL, 77, 100, etcd_note_lease, &result));
	assert_true(result.second == 77 && result.number == 100);
	CALL(result, vd_etcd_lease_grant(calls_client, NULL, 77, 100, etcd_note_lease, &result));
	assert_etcd_error(&result, VD_LEASE_EXISTS, "etcdserver: lease already exists");
	CALL(result, vd_etcd_lease_grant(calls_client, NULL, 0, 9000000001, etcd_note_lease, &result));
	assert_etcd_error(&result, VD_INVALID_ARGUMENT, "etcdserver: too large lease TTL");
	CALL_OK(result, vd_etcd_lease_grant(calls_client, NULL, 0, 50, etcd_note_lease, &result));
	chosen = result.second;
	assert_true(chosen != 0);
	CALL_OK(result, vd_etcd_put(calls_client, NULL, &leased, etcd_note_op, &result));
	CALL_OK(result, vd_etcd_lease_time_to_live(calls_client, NULL, 77, true, etcd_note_lease, &result));
	assert_true(result.number > 90 && result.kv_count == 1);
	assert_string_equal(result.text, "leased");
	CALL_OK(result, vd_etcd_lease_time_to_live(calls_client, NULL, 999, false, etcd_note_lease, &result));
	assert_int_equal(result.number, -1);
	CALL_OK(result, vd_etcd_lease_list(calls_client, NULL, etcd_note_leases, &result));
	assert_int_equal(result.kv_count, 2);
	CALL_OK(result, vd_etcd_lease_keep_alive_once(calls_client, NULL, 77, etcd_note_lease, &result));
	assert_int_equal(result.number, 100);
	CALL(result, vd_etcd_lease_keep_alive_once(calls_client, NULL, 999, etcd_note_lease, &result));
	assert_etcd_error(&result, VD_LEASE_NOT_FOUND, "etcdserver: requested lease not found");
	CALL_OK(result, vd_etcd_lease_revoke(calls_client, NULL, 77, etcd_note_done, &result));
	CALL(result, vd_etcd_lease_revoke(calls_client, NULL, 77, etcd_note_done, &result));
	assert_etcd_error(&result, VD_LEASE_NOT_FOUND, "etcdserver: requested lease not found");
	CALL_OK(result, vd_etcd_lease_revoke(calls_client, NULL, chosen, etcd_note_done, &result));
	result = calls_range(&(struct vd_etcd_range_request) { .range = { .key = vd_bytes_of("leased") } });
	assert_int_equal(result.kv_count, 0);
}

/* Callbacks of a kept lease, counted. */
struct kept {
	struct vdi_lock	     lock;
	struct vdi_condition changed;
	unsigned	     renewals;
	vd_status	     ended; /* VD_OK: not yet */
};

static void note_kept(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		      const struct vd_lease_result *result)
{
	struct kept *kept = arg;

	vdi_lock_acquire(&kept->lock);
	if (error)
		kept->ended = error->error.code;
	else
		kept->renewals++;
	vdi_condition_broadcast(&kept->changed);
	vdi_lock_release(&kept->lock);
}

static void wait_kept(struct kept *kept, unsigned renewals, bool end)
{
	vd_mono due = vd_mono_add(vd_env_now(calls_env), PATIENCE);

	vdi_lock_acquire(&kept->lock);
	while (kept->renewals < renewals || (end && kept->ended == VD_OK))
		if (!vdi_condition_wait_until(&kept->changed, &kept->lock, due))
			fail_msg("the lease says nothing");
	vdi_lock_release(&kept->lock);
}

static void e290_a_lease_is_kept_alive(void **state)
{
	struct kept		   kept[2] = { { .ended = VD_OK } };
	struct vd_etcd_keep_alive *keep_alives[2];
	struct etcd_result	   result;

	CALL_OK(result, vd_etcd_lease_grant(calls_client, NULL, 78, 3, etcd_note_lease, &result));
	for (int i = 0; i < 2; i++) {
		vdi_lock_init(&kept[i].lock, VDI_LOCK_LEAF);
		vdi_condition_init(&kept[i].changed);
		assert_status(vd_etcd_keep_alive_start(calls_client, NULL, 78, note_kept, &kept[i],
						       &keep_alives[i]),
			      VD_OK);
	}
	wait_kept(&kept[0], 3, false);
	wait_kept(&kept[1], 2, false);
	CALL_OK(result, vd_etcd_lease_revoke(calls_client, NULL, 78, etcd_note_done, &result));
	for (int i = 0; i < 2; i++) {
		wait_kept(&kept[i], 0, true);
		assert_status(kept[i].ended, VD_LEASE_NOT_FOUND);
		vd_etcd_keep_alive_stop(keep_alives[i]);
		vdi_condition_fini(&kept[i].changed);
		vdi_lock_fini(&kept[i].lock);
	}
}

/* stop waits while a callback of the holder is running. */
static struct vdi_wait teller_is_in, teller_may_go;
static bool	       teller_was_in, teller_has_left;

static void tell_slowly(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
			const struct vd_lease_result *result)
{
	if (teller_was_in)
		return;
	teller_was_in = true;
	vdi_wait_signal(&teller_is_in);
	vdi_wait_wait(&teller_may_go);
	for (volatile int i = 0; i < 20000000; i++)
		continue;
	teller_has_left = true;
}

static void e290_stop_waits_for_a_callback(void **state)
{
	struct vd_etcd_keep_alive *keep_alive;
	struct etcd_result	   result;

	CALL_OK(result, vd_etcd_lease_grant(calls_client, NULL, 79, 60, etcd_note_lease, &result));
	vdi_wait_init(&teller_is_in, calls_env);
	vdi_wait_init(&teller_may_go, calls_env);
	assert_status(vd_etcd_keep_alive_start(calls_client, NULL, 79, tell_slowly, NULL, &keep_alive),
		      VD_OK);
	vdi_wait_wait(&teller_is_in);
	vdi_wait_signal(&teller_may_go);
	vd_etcd_keep_alive_stop(keep_alive);
	assert_true(teller_has_left);
	vdi_wait_fini(&teller_is_in);
	vdi_wait_fini(&teller_may_go);
	CALL_OK(result, vd_etcd_lease_revoke(calls_client, NULL, 79, etcd_note_done, &result));
}

/* ---- Maintenance ---- */

static uint64_t first_member;

static void e114_e115_maintenance(void **state)
{
	const struct vd_etcd_call  here = { .endpoint = calls_endpoints[0] };
	const struct vd_etcd_alarm no_space = { 7, VD_ETCD_ALARM_NO_SPACE };
	struct etcd_result	   result;

	CALL_OK(result, vd_etcd_status_get(calls_client, &here, etcd_note_status, &result));
	assert_memory_equal(result.text, calls_is_old ? "3.4" : "3.7", 3);
	assert_true(result.number > 0 && result.second != 0);
	CALL_OK(result, vd_etcd_member_list(calls_client, NULL, true, etcd_note_members, &result));
	assert_true(result.kv_count >= 1 && result.number >= 1 && result.text[0]);
	first_member = (uint64_t) result.second;
	CALL_OK(result,
		vd_etcd_alarm(calls_client, NULL, VD_ETCD_ALARM_GET, NULL, etcd_note_alarms, &result));
	assert_int_equal(result.kv_count, 0);
	CALL_OK(result, vd_etcd_alarm(calls_client, NULL, VD_ETCD_ALARM_ACTIVATE, &no_space, etcd_note_alarms,
				      &result));
	assert_true(result.kv_count == 1 && result.number == 7 && result.second == VD_ETCD_ALARM_NO_SPACE);
	result = calls_put_value(calls_client, "k", vd_bytes_of("v"));
	assert_etcd_error(&result, VD_NO_SPACE, "etcdserver: mvcc: database space exceeded");
	CALL_OK(result, vd_etcd_alarm(calls_client, NULL, VD_ETCD_ALARM_DEACTIVATE, &no_space,
				      etcd_note_alarms, &result));
	CALL_OK(result, vd_etcd_defragment(calls_client, &here, etcd_note_done, &result));
	CALL_OK(result, vd_etcd_hash_kv(calls_client, &here, 0, etcd_note_hash, &result));
	assert_true(result.number != 0);
	CALL(result, vd_etcd_move_leader(calls_client, &here, 5, etcd_note_done, &result));
	assert_true(result.is_error);
	assert_true(result.error.code == VD_ETCD_BAD_LEADER_TRANSFEREE ||
		    result.error.code == VD_ETCD_NOT_LEADER);
}

static void e165_snapshot(void **state)
{
	struct etcd_result result;

	calls_put("k", "v");
	CALL_OK(result,
		vd_etcd_snapshot(calls_client, &(struct vd_etcd_call) { .endpoint = calls_endpoints[0] },
				 etcd_note_snapshot, &result));
	assert_int_equal(result.number % 512, 32);
	assert_true(result.parts > 1 && result.second == 0);
}

/* ---- Many at once, cancel, close ---- */

static void many_calls_at_once(void **state)
{
	enum { COUNT = 500 };
	struct etcd_result *results = vdi_calloc(COUNT, sizeof *results);
	struct vdi_wait	   *waits = vdi_calloc(COUNT, sizeof *waits);
	unsigned	    errors = 0;

	for (size_t i = 0; i < COUNT; i++) {
		const struct vd_op		   op = { .kind = VD_OP_PUT,
							  .key = { &i, sizeof i },
							  .value = { &i, sizeof i } };
		const struct vd_etcd_range_request request = { .range = { .key = { &i, sizeof i } } };

		vdi_wait_init(&waits[i], calls_env);
		results[i].wait = &waits[i];
		assert_status(
			i % 2 ? vd_etcd_put(calls_client, NULL, &op, etcd_note_op, &results[i]) :
				vd_etcd_range(calls_client, NULL, &request, etcd_note_range, &results[i]),
			VD_OK);
	}
	for (size_t i = 0; i < COUNT; i++) {
		calls_wait_for(&results[i], VD_OK);
		errors += results[i].is_error;
	}
	assert_int_equal(errors, 0);
	vdi_free(results);
	vdi_free(waits);
	calls_clear();
}

static void e208_cancel(void **state)
{
	static const char *const	   nobody[] = { "http://127.0.0.1:1" };
	struct vd_etcd_options		   options = etcd_options_under_test();
	const struct vd_etcd_range_request request = { .range = { .key = vd_bytes_of("k") } };
	struct etcd_result		   result;
	struct vdi_wait			   wait;
	struct vd_etcd			  *lonely;
	uint64_t			   id;

	options.endpoints = nobody;
	options.endpoint_count = 1;
	lonely = calls_open(&options);
	vdi_wait_init(&wait, calls_env);
	result = (struct etcd_result) { .wait = &wait };
	assert_status(vd_etcd_range(lonely, &(struct vd_etcd_call) { .ret_id = &id }, &request,
				    etcd_note_range, &result),
		      VD_OK);
	vd_etcd_cancel(lonely, id);
	calls_wait_for(&result, VD_OK);
	assert_etcd_error(&result, VD_CANCELED, "context canceled");
	vd_etcd_close_wait(lonely);
}

static void close_with_calls_under_way(void **state)
{
	for (int round = 0; round < 10; round++) {
		enum { COUNT = 40 };
		struct vd_etcd_options		   options = calls_options();
		const struct vd_etcd_range_request request = { .range = { .key = vd_bytes_of("k") } };
		struct vd_etcd			  *short_lived = calls_open(&options);
		struct etcd_result		   results[COUNT] = { { 0 } };

		for (int i = 0; i < COUNT; i++)
			assert_status(
				vd_etcd_range(short_lived, NULL, &request, etcd_note_range, &results[i]),
				VD_OK);
		vd_etcd_close_wait(short_lived);
		for (int i = 0; i < COUNT; i++) {
			assert_int_equal(results[i].calls, 1);
			assert_true(!results[i].is_error || results[i].error.error.code == VD_CLOSED);
		}
	}
}

/* Setup of the whole group. */
static int begin(void **state)
{
	struct vd_etcd_options options;
	struct vd_error	       error;

	(void) state;
	if (vd_env_new_threads(NULL, &calls_env) != VD_OK)
		return 1;
	options = calls_options();
	if (vd_etcd_open(calls_env, &options, &calls_client, &error) == VD_OK)
		return 0;
	fprintf(stderr, "%s\n", error.message);
	return 1;
}

static int end(void **state)
{
	(void) state;
	vd_etcd_close_wait(calls_client);
	vd_env_free(calls_env);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e107_ranges),
		cmocka_unit_test(e108_puts_and_deletes),
		cmocka_unit_test(e109_e110_transactions),
		cmocka_unit_test(e111_compaction),
		cmocka_unit_test(e134_e150_limits),
		cmocka_unit_test(e107_range_stream),
		cmocka_unit_test(e113_leases),
		cmocka_unit_test(e290_a_lease_is_kept_alive),
		cmocka_unit_test(e290_stop_waits_for_a_callback),
		cmocka_unit_test(e114_e115_maintenance),
		cmocka_unit_test(e165_snapshot),
		cmocka_unit_test(many_calls_at_once),
		cmocka_unit_test(e208_cancel),
		cmocka_unit_test(close_with_calls_under_way),
		cmocka_unit_test(e210_nobody_there),
		cmocka_unit_test(bad_files_and_certificates),
		cmocka_unit_test(e203_reject_old_cluster),
		cmocka_unit_test(e143_e168_e209_users),
		cmocka_unit_test(e205_a_member_dies),
		cmocka_unit_test(e201_a_member_freezes),
	};
	static char list[1024];
	char	   *rest = NULL;

	if (getenv("ETCD_ENDPOINTS") == NULL) {
		fprintf(stderr, "no ETCD_ENDPOINTS: run under tests/integration/with-etcd.sh\n");
		return 77;
	}
	(void) snprintf(list, sizeof list, "%s", getenv("ETCD_ENDPOINTS"));
	for (char *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
		calls_endpoints[calls_endpoint_count++] = word;
	calls_is_old = strcmp(getenv("ETCD_VERSION") ? getenv("ETCD_VERSION") : "", "3.4") == 0;
	calls_is_tls = getenv("ETCD_CACERT") != NULL;
	return cmocka_run_group_tests(tests, begin, end);
}
