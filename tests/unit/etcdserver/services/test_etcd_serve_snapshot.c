/* Snapshots of the etcd server: what is in the file, whether it lies in memory or on disk, and that a restore
 * of it has everything. The stream itself is in test_etcd_serve_cluster.c. */
#include "actor_sim.h"
#include "auth.h"
#include "bolt_read.h"
#include "etcd_server_fixture.h"
#include "snapshot_restore.h"
#include "temp_folder.h"
#include "vdtest.h"

/* Raw requests of the Auth service: up to three strings. */
static void change_auth(struct etcd_server_fixture *fixture, const char *method, const char *first,
			const char *second, const char *third)
{
	const char	       *fields[] = { first, second, third };
	uint8_t			bytes[256];
	struct vdi_wire_out	out = { bytes, 0 };
	struct etcd_server_call call;

	for (unsigned i = 0; i < 3; i++)
		if (fields[i])
			vdi_wire_bytes(&out, i + 1, vd_bytes_of(fields[i]));
	etcd_server_call_init(&call, fixture);
	etcd_server_call_open(&call, fixture, method);
	etcd_server_call_send_bytes(&call, bytes, out.size);
	assert_string_equal(call.text, "");
	etcd_server_call_end(&call);
}

/* Something of everything; the revisions 2 to 8, compacted at compacted if that is above 0. */
static void fill(struct etcd_server_fixture *fixture, vd_rev compacted)
{
	etcd_server_grant(fixture, 5, 100, 100);
	etcd_server_grant(fixture, -2, 100, 100);
	etcd_server_grant(fixture, 3, 500, 500);
	etcd_server_grant(fixture, 6, 41, 41); /* in its last second when the snapshot is taken */
	(void) etcd_server_put_leased(fixture, "a", "1", 5);
	(void) etcd_server_put_leased(fixture, "b", "1", 0);
	(void) etcd_server_put_leased(fixture, "a", "2", 0);
	(void) etcd_server_put_leased(fixture, "c", "1", -2);
	etcd_server_delete(fixture, "b");
	(void) etcd_server_put_leased(fixture, "b", "2", 3);
	(void) etcd_server_put_leased(fixture, "d", "1", 0); /* 8 */
	vdi_sim_advance(fixture->env, VD_MS(40500));
	if (compacted)
		etcd_server_compact(fixture, compacted);
	change_auth(fixture, "/etcdserverpb.Auth/UserAdd", "root", "rp", NULL);
	change_auth(fixture, "/etcdserverpb.Auth/UserAdd", "alice", NULL, "\x08\1");
	change_auth(fixture, "/etcdserverpb.Auth/RoleAdd", "readers", NULL, NULL);
	change_auth(fixture, "/etcdserverpb.Auth/RoleGrantPermission", "readers", "\x12\1k\x1a\1l", NULL);
	change_auth(fixture, "/etcdserverpb.Auth/UserGrantRole", "alice", "readers", NULL);
}

struct file {
	uint8_t *bytes;
	size_t	 size;
};

static struct file take_snapshot(struct etcd_server_fixture *fixture)
{
	Etcdserverpb__SnapshotRequest request = ETCDSERVERPB__SNAPSHOT_REQUEST__INIT;
	struct etcd_server_call	      call;
	struct file		      file = { 0 };

	etcd_server_call_init(&call, fixture);
	etcd_server_call_open(&call, fixture, "/etcdserverpb.Maintenance/Snapshot");
	etcd_server_call_send(&call, &request.base);
	assert_true(call.is_finished);
	assert_int_equal(call.code, 0);
	for (size_t i = 0; i < call.count; i++) {
		Etcdserverpb__SnapshotResponse *part = etcdserverpb__snapshot_response__unpack(
			NULL, call.sizes[i], (const uint8_t *) call.messages[i]);

		assert_string_equal(part->version, "3.7.0");
		file.bytes = realloc(file.bytes, file.size + part->blob.len + 1);
		memcpy(file.bytes + file.size, part->blob.data, part->blob.len);
		file.size += part->blob.len;
		etcdserverpb__snapshot_response__free_unpacked(part, NULL);
	}
	etcd_server_call_end(&call);
	return file;
}

/* Pairs of a bucket as text, keys and values in hexadecimal if they are no text. */
struct listing {
	char   text[2048];
	size_t size;
	bool   keys_only;
};

static void add_bytes(struct listing *listing, struct vd_bytes bytes)
{
	const unsigned char *at = bytes.data;

	for (size_t i = 0; i < bytes.size; i++)
		listing->size +=
			(size_t) snprintf(listing->text + listing->size, sizeof listing->text - listing->size,
					  at[i] > 0x20 && at[i] < 0x7f ? "%c" : "%02x", at[i]);
}

static void add_char(struct listing *listing, char c)
{
	listing->text[listing->size++] = c;
	listing->text[listing->size] = 0;
}

static vd_status add_pair(void *arg, struct vd_bytes key, struct vd_bytes value)
{
	struct listing *listing = arg;

	add_bytes(listing, key);
	if (!listing->keys_only) {
		add_char(listing, '=');
		add_bytes(listing, value);
	}
	add_char(listing, ' ');
	return VD_OK;
}

static const char *bucket_of(const struct file *file, const char *name, bool keys_only)
{
	static struct listing listing;
	struct vdi_bolt_file  bolt;

	listing = (struct listing) { .keys_only = keys_only };
	assert_status(vdi_bolt_file_init((struct vd_bytes) { file->bytes, file->size - 32 }, &bolt, NULL),
		      VD_OK);
	assert_status(vdi_bolt_each(&bolt, name, add_pair, &listing, NULL), VD_OK);
	return listing.text;
}

static void got_lease(void *arg, vd_status status, const struct vd_lease_result *result,
		      const struct vd_error *error)
{
	(void) error;
	assert_status(status, VD_OK);
	*(struct vd_lease_result *) arg = *result;
}

static void collect(void *arg, vd_status status, const struct vd_range_result *result,
		    const struct vd_error *error)
{
	char *text = arg;

	(void) error;
	(void) snprintf(text, 128, "%s", status == VD_OK ? "" : vd_status_name(status));
	for (size_t i = 0; status == VD_OK && i < result->kv_count; i++) {
		const struct vd_kv *kv = result->kvs[i];

		(void) snprintf(text + strlen(text), 128 - strlen(text), "%.*s=%.*s/%lld/%lld/%lld/%lld ",
				(int) vd_kv_key(kv).size, (const char *) vd_kv_key(kv).data,
				(int) vd_kv_value(kv).size, (const char *) vd_kv_value(kv).data,
				(long long) kv->create_rev, (long long) kv->mod_rev, (long long) kv->version,
				(long long) kv->lease);
	}
}

static const char *content_at(struct vd_store *store, vd_rev revision)
{
	static char		text[128];
	struct vd_range_request request = { .key = { "", 1 }, .range_end = { "", 1 }, .revision = revision };

	assert_status(vd_store_range(store, &request, collect, text), VD_OK);
	return text;
}

static void expect_restored(const struct file *file, struct etcd_server_fixture *fixture, vd_rev compacted)
{
	struct vd_mvcc_options	   options = VD_MVCC_OPTIONS_INIT;
	struct vdi_snapshot_report report;
	struct vd_lease_result	   lease;
	struct vd_store		  *store;
	struct vd_env		  *env;
	void			  *auth, *expected;
	size_t			   auth_size, expected_size;

	options.history_window = (vd_dur) { 0 };
	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	assert_status(vdi_snapshot_restore(env, &options, (struct vd_bytes) { file->bytes, file->size },
					   &store, &auth, &auth_size, &report, NULL),
		      VD_OK);
	assert_int_equal(report.revision, 8);
	assert_int_equal(report.leases, 4);
	assert_int_equal(report.compacted, compacted ? compacted : -1);
	assert_string_equal(content_at(store, 0), "a=2/2/4/2/0 b=2/7/7/1/3 c=1/5/5/1/-2 d=1/8/8/1/0 ");
	assert_string_equal(content_at(store, 6), "a=2/2/4/2/0 c=1/5/5/1/-2 ");
	assert_string_equal(content_at(store, 4), compacted ? "expired" : "a=2/2/4/2/0 b=1/3/3/1/0 ");
	for (int64_t id = -2; id <= 6; id++) {
		if (id != -2 && id != 3 && id < 5)
			continue;
		assert_status(vd_store_lease_time_to_live(store, id, false, got_lease, &lease), VD_OK);
		vdi_sim_run_until_idle(env);
		assert_int_equal(lease.granted_ttl_s, id == 3 ? 500 : id == 6 ? 41 : 100);
	}
	assert_status(vdi_auth_encode(fixture->server->auth, &expected, &expected_size), VD_OK);
	assert_int_equal(auth_size, expected_size);
	assert_memory_equal(auth, expected, expected_size);
	vdi_free(expected);
	vdi_free(auth);
	(void) vd_store_close_wait(store);
	vd_env_free(env);
}

/* rules: E-165 */
static void e165_a_snapshot_has_everything(void **state)
{
	(void) state;
	for (int round = 0; round < 4; round++) {
		struct vdi_etcdserver_options options = { 0 };
		struct etcd_server_fixture    fixture;
		vd_rev			      compacted = round % 2 ? 5 : 0;
		char			      path[TEMP_FOLDER_SIZE];
		char			      wanted[256];
		struct file		      file;

		temp_folder_make(path);
		options.state_path = round < 2 ? NULL : path;
		etcd_server_fixture_open(&fixture, &options);
		fill(&fixture, compacted);
		file = take_snapshot(&fixture);
		expect_restored(&file, &fixture, compacted);
		assert_string_equal(bucket_of(&file, "alarm", false), "");
		assert_string_equal(bucket_of(&file, "members_removed", false), "");
		assert_string_equal(bucket_of(&file, "cluster", false), "clusterVersion=3.7.0 ");
		(void) snprintf(
			wanted, sizeof wanted,
			"%llx={\"id\":%llu,\"peerURLs\":[\"http://localhost:2380\"],\"name\":\"default\"} ",
			(unsigned long long) fixture.server->member_id,
			(unsigned long long) fixture.server->member_id);
		assert_string_equal(bucket_of(&file, "members", false), wanted);
		(void) snprintf(wanted, sizeof wanted,
				"consistent_index=000000000000000b %sstorageVersion=3.7.0 term=%016llx ",
				compacted ? "finishedCompactRev=0000000000000005_0000000000000000 "
					    "scheduledCompactRev=0000000000000005_0000000000000000 " :
					    "",
				(unsigned long long) fixture.server->term);
		assert_string_equal(bucket_of(&file, "meta", false), wanted);
		assert_string_equal(bucket_of(&file, "auth", true), "authEnabled authRevision ");
		assert_string_equal(bucket_of(&file, "authRoles", true), "readers ");
		assert_string_equal(bucket_of(&file, "authUsers", true), "alice root ");
		/* ID, TTL and what is left of it; negative IDs come last. */
		assert_string_equal(bucket_of(&file, "lease", true),
				    "0000000000000003 0000000000000005 0000000000000006 fffffffffffffffe ");
		assert_string_equal(bucket_of(&file, "lease", false),
				    "0000000000000003=080310f40318cb03 0000000000000005=080510d18; "
				    "0000000000000006=080610)1801 "
				    "fffffffffffffffe=08feffffffffffffffff0110d18; ");
		free(file.bytes);
		etcd_server_fixture_close(&fixture);
		temp_folder_remove(path);
	}
	assert_int_equal(vdi_alloc_live(), 0);
}

/* Each allocation fails in turn while the file is made: an error, or the whole file. */
static void a_snapshot_without_memory(void **state)
{
	struct etcd_server_fixture   *fixture = *state;
	Etcdserverpb__SnapshotRequest request = ETCDSERVERPB__SNAPSHOT_REQUEST__INIT;
	bool			      has_failed = true;
	unsigned		      refused = 0;

	fill(fixture, 5);
	for (uint64_t nth = 1; has_failed; nth++) {
		struct etcd_server_call call;

		assert_true(nth < 1000);
		etcd_server_call_init(&call, fixture);
		etcd_server_call_open(&call, fixture, "/etcdserverpb.Maintenance/Snapshot");
		(void) vdi_alloc_fail_nth(nth, 1);
		etcd_server_call_send(&call, &request.base);
		has_failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_true(call.is_finished);
		refused += call.code != 0;
		if (call.code == 0)
			assert_true(call.count >= 2);
		else
			assert_int_equal(call.code, 8);
		etcd_server_call_end(&call);
	}
	assert_true(refused > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e165_a_snapshot_has_everything),
		cmocka_unit_test_setup_teardown(a_snapshot_without_memory, etcd_server_setup,
						etcd_server_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
