/* Every call of vedette/etcd.h over gRPC against a real etcd, as `peers etcd-run` starts it: 3.7 and 3.4,
 * plain and over TLS, one member and three; and against `vedette etcd`, which must not differ. The answers
 * are those of the observed transcripts (rules E-1101); each test cleans up after itself. Watches have a test
 * of their own. */
#include "control.h"
#include "etcd_client_fixture.h"
#include "lock.h"
#include "vdtest.h"
#include "rpc_etcd_options.h"

#define PATIENCE VD_SECONDS(60)

static struct vd_env  *env;
static struct vd_etcd *client;
static const char     *endpoint_list[8];
static size_t	       endpoint_count;
static bool	       is_old; /* 3.4 */
static bool	       is_tls;

/* ---- Waiting ---- */

static void wait_for(struct etcd_result *result, vd_status started)
{
	if (started != VD_OK)
		fail_msg("not started: %s", vd_status_name(started));
	if (!vdi_wait_until(result->wait, vd_mono_add(vd_env_now(env), PATIENCE)))
		fail_msg("no answer in %d s", (int) (PATIENCE.ns / 1000000000));
	vdi_wait_fini(result->wait);
}

/* Runs one call to its end. */
#define CALL(result, start)                                                                                  \
	do {                                                                                                 \
		struct vdi_wait call_wait_;                                                                  \
		vdi_wait_init(&call_wait_, env);                                                             \
		(result) = (struct etcd_result) { .wait = &call_wait_ };                                     \
		wait_for(&(result), start);                                                                  \
	} while (0)
#define CALL_OK(result, start)                                                                               \
	do {                                                                                                 \
		CALL(result, start);                                                                         \
		assert_etcd_ok(&(result));                                                                   \
	} while (0)

static struct vd_etcd_options options_of(void)
{
	struct vd_etcd_options options = etcd_options_under_test();

	options.endpoints = endpoint_list;
	options.endpoint_count = endpoint_count;
	options.ca_path = getenv("ETCD_CACERT");
	options.cert_path = getenv("ETCD_CERT");
	options.key_path = getenv("ETCD_KEY");
	return options;
}

static struct vd_etcd *open_with(const struct vd_etcd_options *options)
{
	struct vd_etcd *opened;
	struct vd_error error;

	if (vd_etcd_open(env, options, &opened, &error) != VD_OK)
		fail_msg("%s", error.message);
	return opened;
}

static struct etcd_result put_value(struct vd_etcd *by, const char *key, struct vd_bytes value)
{
	const struct vd_op op = { .kind = VD_OP_PUT, .key = vd_bytes_of(key), .value = value };
	struct etcd_result result;

	CALL(result, vd_etcd_put(by, &(struct vd_etcd_call) { .timeout = VD_SECONDS(30) }, &op, etcd_note_op,
				 &result));
	return result;
}

static vd_rev put(const char *key, const char *value)
{
	struct etcd_result result = put_value(client, key, vd_bytes_of(value));

	assert_etcd_ok(&result);
	return result.header.revision;
}

static struct etcd_result range_of(const struct vd_etcd_range_request *request)
{
	struct etcd_result result;

	CALL(result, vd_etcd_range(client, NULL, request, etcd_note_range, &result));
	return result;
}

static void clear(void)
{
	const struct vd_op op = { .kind = VD_OP_DELETE, .key = { "", 1 }, .range_end = { "", 1 } };
	struct etcd_result result;

	CALL_OK(result, vd_etcd_delete(client, NULL, &op, etcd_note_op, &result));
}

/* ---- KV ---- */

static void e107_ranges(void **state)
{
	const struct vd_bytes	     end = { "", 1 };
	struct vd_etcd_range_request all = { .range = { .key = vd_bytes_of("a"), .range_end = end } };
	struct vd_etcd_range_request request;
	struct etcd_result	     result;
	vd_rev			     first, last;

	clear();
	first = put("b", "9");
	put("a", "8");
	put("c", "7");
	last = put("d", "6");
	assert_int_equal(last, first + 3);
	result = range_of(&all);
	assert_etcd_ok(&result);
	assert_true(result.header.cluster_id && result.header.member_id && result.header.raft_term);
	assert_int_equal(result.header.revision, last);
	assert_true(result.kv_count == 4 && result.number == 4 && !result.flag);
	assert_string_equal(result.text, "a");
	request = all;
	request.range.limit = 1;
	request.sort_target = VD_ETCD_SORT_VALUE;
	request.sort_order = VD_ETCD_SORT_ASCEND;
	result = range_of(&request);
	assert_string_equal(result.text, "d");
	assert_true(result.flag && result.number == 4 && result.kv_count == 1);
	request.sort_order = VD_ETCD_SORT_DESCEND;
	result = range_of(&request);
	assert_string_equal(result.text, "b");
	request = all;
	request.min_mod_revision = last;
	result = range_of(&request);
	assert_true(result.kv_count == 1);
	assert_string_equal(result.text, "d");
	request = all;
	request.range.count_only = true;
	request.range.revision = first + 1;
	result = range_of(&request);
	assert_true(result.number == 2 && result.kv_count == 0 && result.header.revision == last);
	request = all;
	request.range.serializable = request.range.keys_only = true;
	result = range_of(&request);
	assert_true(result.kv_count == 4);
	request = all;
	request.range.key = vd_bytes_of("z");
	request.range.range_end = vd_bytes_of("a");
	result = range_of(&request);
	assert_etcd_ok(&result);
	assert_int_equal(result.kv_count, 0);
	request = all;
	request.range.revision = last + 300;
	result = range_of(&request);
	assert_etcd_error(&result, VD_TOO_LARGE_REVISION,
			  "etcdserver: mvcc: required revision is a future revision");
	assert_int_equal(result.error.grpc_code, 11);
	assert_non_null(strchr(result.error.endpoint, ':'));
	result = range_of(&(struct vd_etcd_range_request) { .range = { .key = VD_BYTES_NONE } });
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

	clear();
	put("k", "1");
	CALL_OK(result, vd_etcd_put(client, NULL, &again, etcd_note_op, &result));
	assert_string_equal(result.text, "1");
	CALL(result, vd_etcd_put(client, NULL, &keep, etcd_note_op, &result));
	assert_etcd_error(&result, VD_NOT_FOUND, "etcdserver: key not found");
	assert_false(result.error.maybe_applied);
	CALL(result, vd_etcd_put(client, NULL, &leased, etcd_note_op, &result));
	assert_etcd_error(&result, VD_LEASE_NOT_FOUND, "etcdserver: requested lease not found");
	CALL_OK(result, vd_etcd_delete(client, NULL, &remove, etcd_note_op, &result));
	assert_true(result.number == 1 && result.kv_count == 1);
	assert_string_equal(result.text, "2");
	CALL_OK(result, vd_etcd_delete(client, NULL, &remove, etcd_note_op, &result));
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

	clear();
	CALL_OK(result, vd_etcd_txn(client, NULL, &request, etcd_note_txn, &result));
	assert_true(result.flag && result.kv_count == 3);
	revision = result.header.revision;
	CALL_OK(result, vd_etcd_txn(client, NULL, &request, etcd_note_txn, &result));
	assert_true(!result.flag && result.kv_count == 1);
	assert_int_equal(result.header.revision, revision + 1);
	CALL(result, vd_etcd_txn(client, NULL, &duplicate, etcd_note_txn, &result));
	assert_etcd_error(&result, VD_DUPLICATE_KEY, "etcdserver: duplicate key given in txn request");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(many); i++)
		many[i] = (struct vd_op) { .kind = VD_OP_RANGE, .range = { .key = vd_bytes_of("t") } };
	CALL(result,
	     vd_etcd_txn(client, NULL, &(struct vd_txn_request) { .success = many, .success_count = 129 },
			 etcd_note_txn, &result));
	assert_etcd_error(&result, VD_TOO_BIG, "etcdserver: too many operations in txn request");
}

static void e111_compaction(void **state)
{
	struct etcd_result result;
	vd_rev		   revision;

	put("k", "1");
	revision = put("k", "2");
	CALL_OK(result, vd_etcd_compact(client, NULL, revision, true, etcd_note_done, &result));
	CALL(result, vd_etcd_compact(client, NULL, revision, false, etcd_note_done, &result));
	assert_etcd_error(&result, VD_EXPIRED, "etcdserver: mvcc: required revision has been compacted");
	CALL(result, vd_etcd_compact(client, NULL, revision + 1000, false, etcd_note_done, &result));
	assert_etcd_error(&result, VD_TOO_LARGE_REVISION,
			  "etcdserver: mvcc: required revision is a future revision");
	result = range_of(&(struct vd_etcd_range_request) {
		.range = { .key = vd_bytes_of("k"), .revision = revision - 1 } });
	assert_etcd_error(&result, VD_EXPIRED, "etcdserver: mvcc: required revision has been compacted");
	assert_int_equal(result.error.code, VD_ETCD_COMPACTED);
}

static void e134_e150_limits(void **state)
{
	struct vd_etcd_options options = options_of();
	char		      *large = vdi_calloc(1, 2200000);
	struct etcd_result     result;
	struct vd_etcd	      *small;

	result = put_value(client, "large", (struct vd_bytes) { large, 1600000 });
	assert_etcd_error(&result, VD_TOO_BIG, "etcdserver: request is too large");
	result = put_value(client, "large",
			   (struct vd_bytes) { large, 2200000 }); /* our own limit, as clientv3's */
	assert_true(result.is_error);
	assert_status(result.error.error.code, VD_TOO_BIG);
	assert_non_null(strstr(result.error.error.message, "trying to send message larger than max (2200"));
	assert_false(result.error.maybe_applied);
	result = put_value(client, "large", (struct vd_bytes) { large, 1500000 });
	assert_etcd_ok(&result);
	options.send_size_max = 1000;
	options.receive_size_max = 100000;
	small = open_with(&options);
	CALL(result,
	     vd_etcd_range(small, NULL,
			   &(struct vd_etcd_range_request) { .range = { .key = vd_bytes_of("large") } },
			   etcd_note_range, &result));
	assert_true(result.is_error);
	assert_status(result.error.error.code, VD_TOO_BIG);
	vd_etcd_close_wait(small);
	vdi_free(large);
	clear();
}

static void e107_range_stream(void **state)
{
	const struct vd_etcd_range_request request = { .range = { .key = { "", 1 },
								  .range_end = { "", 1 } } };
	struct etcd_result		   result;
	char				  *value = vdi_calloc(1, 100000);

	clear();
	for (int i = 0; i < 50; i++) {
		char key[16];

		(void) snprintf(key, sizeof key, "key%03d", i);
		result = put_value(client, key, (struct vd_bytes) { value, 100000 });
		assert_etcd_ok(&result);
	}
	CALL(result, vd_etcd_range_stream(client, NULL, &request, etcd_note_range_stream, &result));
	if (is_old) {
		assert_true(result.is_error);
		assert_status(result.error.error.code, VD_UNSUPPORTED);
	} else {
		assert_etcd_ok(&result);
		assert_int_equal(result.kv_count, 50);
		assert_true(result.parts > 1);
	}
	vdi_free(value);
	clear();
}

/* ---- Leases ---- */

static void e113_leases(void **state)
{
	struct vd_op	   leased = { .kind = VD_OP_PUT, .key = vd_bytes_of("leased"), .lease = 77 };
	struct etcd_result result;
	int64_t		   chosen;

	CALL_OK(result, vd_etcd_lease_grant(client, NULL, 77, 100, etcd_note_lease, &result));
	assert_true(result.second == 77 && result.number == 100);
	CALL(result, vd_etcd_lease_grant(client, NULL, 77, 100, etcd_note_lease, &result));
	assert_etcd_error(&result, VD_LEASE_EXISTS, "etcdserver: lease already exists");
	CALL(result, vd_etcd_lease_grant(client, NULL, 0, 9000000001, etcd_note_lease, &result));
	assert_etcd_error(&result, VD_INVALID_ARGUMENT, "etcdserver: too large lease TTL");
	CALL_OK(result, vd_etcd_lease_grant(client, NULL, 0, 50, etcd_note_lease, &result));
	chosen = result.second;
	assert_true(chosen != 0);
	CALL_OK(result, vd_etcd_put(client, NULL, &leased, etcd_note_op, &result));
	CALL_OK(result, vd_etcd_lease_time_to_live(client, NULL, 77, true, etcd_note_lease, &result));
	assert_true(result.number > 90 && result.kv_count == 1);
	assert_string_equal(result.text, "leased");
	CALL_OK(result, vd_etcd_lease_time_to_live(client, NULL, 999, false, etcd_note_lease, &result));
	assert_int_equal(result.number, -1);
	CALL_OK(result, vd_etcd_lease_list(client, NULL, etcd_note_leases, &result));
	assert_int_equal(result.kv_count, 2);
	CALL_OK(result, vd_etcd_lease_keep_alive_once(client, NULL, 77, etcd_note_lease, &result));
	assert_int_equal(result.number, 100);
	CALL(result, vd_etcd_lease_keep_alive_once(client, NULL, 999, etcd_note_lease, &result));
	assert_etcd_error(&result, VD_LEASE_NOT_FOUND, "etcdserver: requested lease not found");
	CALL_OK(result, vd_etcd_lease_revoke(client, NULL, 77, etcd_note_done, &result));
	CALL(result, vd_etcd_lease_revoke(client, NULL, 77, etcd_note_done, &result));
	assert_etcd_error(&result, VD_LEASE_NOT_FOUND, "etcdserver: requested lease not found");
	CALL_OK(result, vd_etcd_lease_revoke(client, NULL, chosen, etcd_note_done, &result));
	result = range_of(&(struct vd_etcd_range_request) { .range = { .key = vd_bytes_of("leased") } });
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
	vd_mono due = vd_mono_add(vd_env_now(env), PATIENCE);

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

	CALL_OK(result, vd_etcd_lease_grant(client, NULL, 78, 3, etcd_note_lease, &result));
	for (int i = 0; i < 2; i++) {
		vdi_lock_init(&kept[i].lock, VDI_LOCK_LEAF);
		vdi_condition_init(&kept[i].changed);
		assert_status(
			vd_etcd_keep_alive_start(client, NULL, 78, note_kept, &kept[i], &keep_alives[i]),
			VD_OK);
	}
	wait_kept(&kept[0], 3, false);
	wait_kept(&kept[1], 2, false);
	CALL_OK(result, vd_etcd_lease_revoke(client, NULL, 78, etcd_note_done, &result));
	for (int i = 0; i < 2; i++) {
		wait_kept(&kept[i], 0, true);
		assert_status(kept[i].ended, VD_LEASE_NOT_FOUND);
		vd_etcd_keep_alive_stop(keep_alives[i]);
		vdi_condition_fini(&kept[i].changed);
		vdi_lock_fini(&kept[i].lock);
	}
}

/* A holder that is being told something while it is stopped: stop waits until it has been told. */
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

	CALL_OK(result, vd_etcd_lease_grant(client, NULL, 79, 60, etcd_note_lease, &result));
	vdi_wait_init(&teller_is_in, env);
	vdi_wait_init(&teller_may_go, env);
	assert_status(vd_etcd_keep_alive_start(client, NULL, 79, tell_slowly, NULL, &keep_alive), VD_OK);
	vdi_wait_wait(&teller_is_in);
	vdi_wait_signal(&teller_may_go);
	vd_etcd_keep_alive_stop(keep_alive);
	assert_true(teller_has_left);
	vdi_wait_fini(&teller_is_in);
	vdi_wait_fini(&teller_may_go);
	CALL_OK(result, vd_etcd_lease_revoke(client, NULL, 79, etcd_note_done, &result));
}

/* ---- Maintenance ---- */

static uint64_t first_member;

static void e114_e115_maintenance(void **state)
{
	const struct vd_etcd_call  here = { .endpoint = endpoint_list[0] };
	const struct vd_etcd_alarm no_space = { 7, VD_ETCD_ALARM_NO_SPACE };
	struct etcd_result	   result;

	CALL_OK(result, vd_etcd_status_get(client, &here, etcd_note_status, &result));
	assert_memory_equal(result.text, is_old ? "3.4" : "3.7", 3);
	assert_true(result.number > 0 && result.second != 0);
	CALL_OK(result, vd_etcd_member_list(client, NULL, true, etcd_note_members, &result));
	assert_true(result.kv_count >= 1 && result.number >= 1 && result.text[0]);
	first_member = (uint64_t) result.second;
	CALL_OK(result, vd_etcd_alarm(client, NULL, VD_ETCD_ALARM_GET, NULL, etcd_note_alarms, &result));
	assert_int_equal(result.kv_count, 0);
	CALL_OK(result,
		vd_etcd_alarm(client, NULL, VD_ETCD_ALARM_ACTIVATE, &no_space, etcd_note_alarms, &result));
	assert_true(result.kv_count == 1 && result.number == 7 && result.second == VD_ETCD_ALARM_NO_SPACE);
	result = put_value(client, "k", vd_bytes_of("v"));
	assert_etcd_error(&result, VD_NO_SPACE, "etcdserver: mvcc: database space exceeded");
	CALL_OK(result,
		vd_etcd_alarm(client, NULL, VD_ETCD_ALARM_DEACTIVATE, &no_space, etcd_note_alarms, &result));
	CALL_OK(result, vd_etcd_defragment(client, &here, etcd_note_done, &result));
	CALL_OK(result, vd_etcd_hash_kv(client, &here, 0, etcd_note_hash, &result));
	assert_true(result.number != 0);
	CALL(result, vd_etcd_move_leader(client, &here, 5, etcd_note_done, &result));
	assert_true(result.is_error);
	assert_true(result.error.code == VD_ETCD_BAD_LEADER_TRANSFEREE ||
		    result.error.code == VD_ETCD_NOT_LEADER);
}

static void e165_snapshot(void **state)
{
	struct etcd_result result;

	put("k", "v");
	CALL_OK(result, vd_etcd_snapshot(client, &(struct vd_etcd_call) { .endpoint = endpoint_list[0] },
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

		vdi_wait_init(&waits[i], env);
		results[i].wait = &waits[i];
		assert_status(i % 2 ? vd_etcd_put(client, NULL, &op, etcd_note_op, &results[i]) :
				      vd_etcd_range(client, NULL, &request, etcd_note_range, &results[i]),
			      VD_OK);
	}
	for (size_t i = 0; i < COUNT; i++) {
		wait_for(&results[i], VD_OK);
		errors += results[i].is_error;
	}
	assert_int_equal(errors, 0);
	vdi_free(results);
	vdi_free(waits);
	clear();
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
	lonely = open_with(&options);
	vdi_wait_init(&wait, env);
	result = (struct etcd_result) { .wait = &wait };
	assert_status(vd_etcd_range(lonely, &(struct vd_etcd_call) { .ret_id = &id }, &request,
				    etcd_note_range, &result),
		      VD_OK);
	vd_etcd_cancel(lonely, id);
	wait_for(&result, VD_OK);
	assert_etcd_error(&result, VD_CANCELED, "context canceled");
	vd_etcd_close_wait(lonely);
}

static void close_with_calls_under_way(void **state)
{
	for (int round = 0; round < 10; round++) {
		enum { COUNT = 40 };
		struct vd_etcd_options		   options = options_of();
		const struct vd_etcd_range_request request = { .range = { .key = vd_bytes_of("k") } };
		struct vd_etcd			  *short_lived = open_with(&options);
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

/* ---- Who is not there, and who is not who ---- */

static struct etcd_result range_by(struct vd_etcd *by, vd_dur timeout)
{
	const struct vd_etcd_range_request request = { .range = { .key = vd_bytes_of("k") } };
	struct etcd_result		   result;

	CALL(result, vd_etcd_range(by, &(struct vd_etcd_call) { .timeout = timeout }, &request,
				   etcd_note_range, &result));
	return result;
}

static void e210_nobody_there(void **state)
{
	const char	      *endpoints[] = { "http://127.0.0.1:1", NULL };
	struct vd_etcd_options options = etcd_options_under_test();
	struct etcd_result     result;
	struct vd_etcd	      *lonely;

	options.endpoints = endpoints;
	options.endpoint_count = 1;
	lonely = open_with(&options);
	result = range_by(lonely, VD_SECONDS(2));
	assert_status(result.error.error.code, VD_TIMEOUT);
	if (strstr(result.error.error.message, "context deadline exceeded: http://127.0.0.1:1: ") == NULL)
		fail_msg("%s", result.error.error.message);
	assert_false(result.error.maybe_applied);
	vd_etcd_close_wait(lonely);
	/* One of two is not there: nobody notices. */
	if (is_tls)
		return;
	endpoints[1] = endpoint_list[0];
	options.endpoint_count = 2;
	lonely = open_with(&options);
	for (int i = 0; i < 20; i++) {
		result = range_by(lonely, VD_SECONDS(10));
		assert_etcd_ok(&result);
	}
	vd_etcd_close_wait(lonely);
}

static void bad_files_and_certificates(void **state)
{
	static const char *const secure[] = { "https://127.0.0.1:1" };
	struct vd_etcd_options	 options = options_of();
	struct vd_error		 error = { 0 };
	struct vd_etcd		*opened;
	struct etcd_result	 result;

	options.endpoints = secure; /* with http:// nobody looks at the files (E-204) */
	options.endpoint_count = 1;
	options.ca_path = "/nowhere/ca.pem";
	assert_status(vd_etcd_open(env, &options, &opened, &error), VD_INVALID_ARGUMENT);
	assert_non_null(strstr(error.message, "/nowhere/ca.pem"));
	if (!is_tls)
		return;
	options = options_of();
	options.cert_path = options.key_path = NULL; /* etcd asks for one */
	opened = open_with(&options);
	result = range_by(opened, VD_SECONDS(2));
	assert_true(result.is_error);
	assert_true(result.error.error.code == VD_TIMEOUT || result.error.error.code == VD_UNAVAILABLE);
	vd_etcd_close_wait(opened);
	options = options_of();
	options.server_name = "elsewhere.example";
	opened = open_with(&options);
	result = range_by(opened, VD_SECONDS(2));
	assert_status(result.error.error.code, VD_TIMEOUT);
	vd_etcd_close_wait(opened);
}

/* ---- Users (E-116, E-167, E-168, E-209) ---- */

static vd_status auth_call(struct vd_etcd *by, int step, struct etcd_result *result)
{
	switch (step) {
	case 0: return vd_etcd_user_add(by, NULL, "root", "secret", etcd_note_done, result);
	case 1: return vd_etcd_user_grant_role(by, NULL, "root", "root", etcd_note_done, result);
	case 2: return vd_etcd_role_add(by, NULL, "reader", etcd_note_done, result);
	case 3:
		return vd_etcd_role_grant(by, NULL, "reader", VD_ETCD_READ, vd_bytes_of("k"), VD_BYTES_NONE,
					  etcd_note_done, result);
	case 4: return vd_etcd_user_add(by, NULL, "alice", "one", etcd_note_done, result);
	case 5: return vd_etcd_user_grant_role(by, NULL, "alice", "reader", etcd_note_done, result);
	default: return vd_etcd_auth_enable(by, NULL, true, etcd_note_done, result);
	}
}

static void e143_e168_e209_users(void **state)
{
	struct vd_etcd_options options = options_of();
	struct etcd_result     result;
	struct vd_etcd	      *root, *alice, *stranger;
	char		       answer[4096];

	if (endpoint_count > 1 || is_tls)
		skip_because("one plain server only: certificates name users too");
	CALL(result, vd_etcd_auth_status(client, NULL, etcd_note_auth_status, &result));
	assert_int_equal(result.is_error, is_old); /* new in 3.5 */
	assert_false(result.flag);
	put("k", "v");
	put("secret", "v");
	/* A user is fine as long as nobody asks for one (AuthNotEnabled). */
	options.user = "root";
	options.password = "secret";
	root = open_with(&options);
	result = range_by(root, VD_SECONDS(10));
	assert_etcd_ok(&result);
	CALL(result, vd_etcd_auth_enable(client, NULL, true, etcd_note_done, &result));
	assert_etcd_error(&result, VD_FORBIDDEN, "etcdserver: root user does not exist");
	CALL(result, vd_etcd_role_add(client, NULL, "root", etcd_note_done, &result));
	for (int step = 0; step < 7; step++)
		CALL_OK(result, auth_call(client, step, &result));
	result = range_by(client, VD_SECONDS(10));
	assert_etcd_error(&result, VD_FORBIDDEN, "etcdserver: user name is empty");
	/* root had no token: it fetches one now (E-209, UserEmpty). */
	result = range_by(root, VD_SECONDS(10));
	assert_etcd_ok(&result);
	options.password = "wrong";
	stranger = open_with(&options);
	result = range_by(stranger, VD_SECONDS(10));
	assert_etcd_error(&result, VD_FORBIDDEN,
			  "etcdserver: authentication failed, invalid user ID or password");
	options.user = "alice";
	options.password = "one";
	alice = open_with(&options);
	result = range_by(alice, VD_SECONDS(10));
	assert_etcd_ok(&result);
	result = put_value(alice, "k", vd_bytes_of("w"));
	assert_etcd_error(&result, VD_FORBIDDEN, "etcdserver: permission denied");
	/* A restart forgets the tokens: both are fetched anew, also for a stream. */
	if (getenv("CONTROL"))
		assert_true(test_control("restart all", answer, sizeof answer));
	for (int i = 0; i < 100; i++) {
		result = range_by(alice, VD_SECONDS(10));
		if (!result.is_error)
			break;
	}
	assert_etcd_ok(&result);
	result = put_value(root, "k", vd_bytes_of("w"));
	assert_etcd_ok(&result);
	CALL(result, vd_etcd_snapshot(root, NULL, etcd_note_snapshot, &result));
	assert_etcd_ok(&result);
	/* A changed password ends alice's token; the old password fetches no other one. */
	CALL_OK(result, vd_etcd_user_change_password(root, NULL, "alice", "two", etcd_note_done, &result));
	result = range_by(alice, VD_SECONDS(10));
	assert_etcd_error(&result, VD_FORBIDDEN,
			  "etcdserver: authentication failed, invalid user ID or password");
	CALL_OK(result, vd_etcd_user_delete(root, NULL, "alice", etcd_note_done, &result));
	CALL_OK(result, vd_etcd_auth_enable(root, NULL, false, etcd_note_done, &result));
	result = range_by(client, VD_SECONDS(10));
	assert_etcd_ok(&result);
	/* With authentication off a token is ignored (E-143). */
	result = range_by(root, VD_SECONDS(10));
	assert_etcd_ok(&result);
	vd_etcd_close_wait(root);
	vd_etcd_close_wait(alice);
	vd_etcd_close_wait(stranger);
	clear();
}

static void e203_reject_old_cluster(void **state)
{
	struct vd_etcd_options options = options_of();
	struct etcd_result     result;
	struct vd_etcd	      *strict;

	options.reject_old_cluster = true;
	strict = open_with(&options);
	result = range_by(strict, VD_SECONDS(20));
	if (is_old)
		assert_etcd_error(&result, VD_UNSUPPORTED, "etcdclient: old cluster version");
	else
		assert_etcd_ok(&result);
	vd_etcd_close_wait(strict);
}

/* ---- A cluster ---- */

/* Reads and writes until 20 writes were taken. Reads are repeated until somebody answers. */
static void work(struct vd_etcd *by)
{
	unsigned puts = 0;

	for (int i = 0; i < 200 && puts < 20; i++) {
		struct etcd_result result = range_by(by, VD_SECONDS(60));

		assert_etcd_ok(&result);
		result = put_value(by, "k", vd_bytes_of("v"));
		puts += !result.is_error;
		if (result.is_error)
			assert_true(result.error.error.code == VD_UNAVAILABLE ||
				    result.error.error.code == VD_TIMEOUT);
	}
	assert_int_equal(puts, 20);
}

static void bring_back(const char *command, const char *member)
{
	char text[64];
	char answer[256];

	(void) snprintf(text, sizeof text, "%s %.32s", command, member);
	assert_true(test_control(text, answer, sizeof answer));
	assert_true(test_control("wait", answer, sizeof answer));
}

static void e205_a_member_dies(void **state)
{
	char member[256];

	if (endpoint_count < 3)
		skip_because("needs three members");
	assert_true(test_control("kill leader", member, sizeof member));
	work(client);
	bring_back("start", member);
}

/* A frozen member keeps its connections: only keep-alive pings find out. Until then calls that went to it
 * wait. */
static void e201_a_member_freezes(void **state)
{
	struct vd_etcd_options options = options_of();
	struct vd_etcd	      *watchful;
	char		       member[256];

	if (endpoint_count < 3)
		skip_because("needs three members");
	options.keepalive_time = VD_SECONDS(5);
	options.keepalive_timeout = VD_SECONDS(1);
	watchful = open_with(&options);
	work(watchful);
	assert_true(test_control("pause leader", member, sizeof member));
	work(watchful);
	bring_back("resume", member);
	vd_etcd_close_wait(watchful);
}

/* What lives as long as the group. */
static int begin(void **state)
{
	struct vd_etcd_options options;
	struct vd_error	       error;

	(void) state;
	if (vd_env_new_threads(NULL, &env) != VD_OK)
		return 1;
	options = options_of();
	if (vd_etcd_open(env, &options, &client, &error) == VD_OK)
		return 0;
	fprintf(stderr, "%s\n", error.message);
	return 1;
}

static int end(void **state)
{
	(void) state;
	vd_etcd_close_wait(client);
	vd_env_free(env);
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
		endpoint_list[endpoint_count++] = word;
	is_old = strcmp(getenv("ETCD_VERSION") ? getenv("ETCD_VERSION") : "", "3.4") == 0;
	is_tls = getenv("ETCD_CACERT") != NULL;
	return cmocka_run_group_tests(tests, begin, end);
}
