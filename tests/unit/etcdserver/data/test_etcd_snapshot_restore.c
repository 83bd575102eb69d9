/* Unit tests of etcdserver/data/snapshot_read.c and snapshot_restore.c: files as etcd and etcdutl leave
 * them. */
#include "auth_data.h"
#include "bolt_write.h"
#include "serve_wire.h"
#include "snapshot_read.h"
#include "snapshot_restore.h"
#include "vdtest.h"

#include "actor_sim.h"

struct memory {
	uint8_t *bytes;
	size_t	 capacity;
	int64_t	 size;
};

struct row {
	vd_rev	    revision;
	bool	    is_delete;
	const char *key; /* NULL: an empty record */
	vd_rev	    create_rev;
	int64_t	    version;
};

static vd_status write_memory(void *arg, int64_t offset, const void *bytes, size_t size)
{
	struct memory *memory = arg;

	if (!vdi_grow((void **) &memory->bytes, &memory->capacity, (size_t) offset + size, 1))
		return VD_NOMEM;
	memcpy(memory->bytes + offset, bytes, size);
	return VD_OK;
}

static void put_row(struct vdi_bolt_writer *writer, const struct row *row)
{
	unsigned char	    place[18] = { [8] = '_', [17] = 't' };
	uint8_t		    body[64];
	struct vdi_wire_out out = { body, 0 };

	vdi_put_big_endian(place, (uint64_t) row->revision);
	if (row->key)
		vdi_wire_bytes(&out, 1, vd_bytes_of(row->key));
	if (row->key && !row->is_delete) {
		vdi_wire_number(&out, 2, (uint64_t) row->create_rev);
		vdi_wire_number(&out, 3, (uint64_t) row->revision);
		vdi_wire_number(&out, 4, (uint64_t) row->version);
		vdi_wire_bytes(&out, 5, vd_bytes_of("v"));
	}
	assert_status(vdi_bolt_put(writer, (struct vd_bytes) { place, row->is_delete ? 18 : 17 },
				   (struct vd_bytes) { body, out.size }),
		      VD_OK);
}

/* finished, scheduled 0: no such mark. */
static void make_file(struct memory *memory, const struct row *rows, size_t count, vd_rev finished,
		      vd_rev scheduled)
{
	struct vdi_bolt_sink	sink = { write_memory, memory };
	struct vdi_bolt_writer *writer;
	unsigned char		place[17] = { [8] = '_' };

	memset(memory, 0, sizeof *memory);
	assert_status(vdi_bolt_writer_new(&sink, &writer), VD_OK);
	assert_status(vdi_bolt_bucket_begin(writer, "key"), VD_OK);
	for (size_t i = 0; i < count; i++)
		put_row(writer, &rows[i]);
	assert_status(vdi_bolt_bucket_end(writer), VD_OK);
	assert_status(vdi_bolt_bucket_begin(writer, "meta"), VD_OK);
	vdi_put_big_endian(place, (uint64_t) finished);
	if (finished)
		assert_status(vdi_bolt_put(writer, vd_bytes_of("finishedCompactRev"),
					   (struct vd_bytes) { place, sizeof place }),
			      VD_OK);
	vdi_put_big_endian(place, (uint64_t) scheduled);
	if (scheduled)
		assert_status(vdi_bolt_put(writer, vd_bytes_of("scheduledCompactRev"),
					   (struct vd_bytes) { place, sizeof place }),
			      VD_OK);
	assert_status(vdi_bolt_bucket_end(writer), VD_OK);
	assert_status(vdi_bolt_finish(writer, &memory->size), VD_OK);
	(void) vdi_bolt_writer_free(writer);
}

struct world {
	struct vd_env	*env;
	struct vd_store *store;
	struct vd_error	 error;
};

static vd_status restore(struct world *world, const struct row *rows, size_t count, vd_rev finished,
			 vd_rev scheduled)
{
	struct vd_mvcc_options	   options = VD_MVCC_OPTIONS_INIT;
	struct vdi_snapshot_report report;
	struct memory		   memory;
	void			  *auth = NULL;
	size_t			   auth_size = 0;
	vd_status		   status;

	memset(world, 0, sizeof *world);
	options.history_bytes = 0;
	options.history_window = (vd_dur) { 0 };
	make_file(&memory, rows, count, finished, scheduled);
	assert_status(vdi_env_new_sim(1, NULL, NULL, &world->env), VD_OK);
	status = vdi_snapshot_restore(world->env, &options,
				      (struct vd_bytes) { memory.bytes, (size_t) memory.size }, &world->store,
				      &auth, &auth_size, &report, &world->error);
	vdi_free(auth);
	vdi_free(memory.bytes);
	return status;
}

static void world_fini(struct world *world)
{
	if (world->store)
		(void) vd_store_close_wait(world->store);
	(void) vd_env_free(world->env);
}

static void expect_place(struct world *world, vd_rev current, vd_rev compacted)
{
	struct vd_store_status status;

	assert_status(vd_store_status_get(world->store, &status), VD_OK);
	assert_int_equal(status.current, current);
	assert_int_equal(status.compacted, compacted);
}

static void collect(void *arg, vd_status status, const struct vd_range_result *result,
		    const struct vd_error *error)
{
	char *names = arg;

	(void) error;
	assert_status(status, VD_OK);
	for (size_t i = 0; i < result->kv_count; i++)
		strncat(names, result->kvs[i]->data, result->kvs[i]->key_size);
}

static void expect_keys(struct world *world, const char *wanted)
{
	struct vd_range_request request = { .key = { "", 1 }, .range_end = { "", 1 } };
	char			names[32] = "";

	assert_status(vd_store_range(world->store, &request, collect, names), VD_OK);
	assert_string_equal(names, wanted);
}

/* etcdutl snapshot restore --bump-revision --mark-compacted: an empty record at the new revision, and a
 * compaction there that no etcd has made yet. */
static void e409_a_marked_revision_is_where_the_store_stands(void **state)
{
	static const struct row rows[] = { { 2, false, "a", 2, 1 },
					   { 3, false, "b", 3, 1 },
					   { 4, false, "a", 2, 2 },
					   { 5, true, "b", 0, 0 },
					   { 1000, false, NULL, 0, 0 } };
	struct world		world;

	(void) state;
	assert_status(restore(&world, rows, VDI_ARRAY_SIZE(rows), 0, 1000), VD_OK);
	expect_place(&world, 1000, 1000);
	expect_keys(&world, "a");
	world_fini(&world);
}

/* Later writes follow the empty record; the compaction of it was made. */
static void e409_records_follow_an_empty_one(void **state)
{
	static const struct row rows[] = { { 4, false, "a", 2, 2 },
					   { 1000, false, NULL, 0, 0 },
					   { 1001, false, "c", 1001, 1 } };
	struct world		world;

	(void) state;
	assert_status(restore(&world, rows, VDI_ARRAY_SIZE(rows), 1000, 1000), VD_OK);
	expect_place(&world, 1001, 1000);
	expect_keys(&world, "ac");
	world_fini(&world);
}

/* All was deleted and that revision compacted: no record says where the etcd stands, only the mark does. */
static void e409_a_compaction_beyond_all_records(void **state)
{
	static const struct row rows[] = { { 4, false, "a", 2, 2 } };
	struct world		world;

	(void) state;
	assert_status(restore(&world, rows, VDI_ARRAY_SIZE(rows), 9, 9), VD_OK);
	expect_place(&world, 9, 9);
	expect_keys(&world, "a");
	world_fini(&world);
	assert_status(restore(&world, NULL, 0, 9, 9), VD_OK);
	expect_place(&world, 9, 9);
	expect_keys(&world, "");
	world_fini(&world);
}

/* A tombstone at the compacted revision is kept without the record that it deletes; after it a delete of
 * nothing is damage. */
static void a_tombstone_without_its_record(void **state)
{
	static const struct row rows[] = { { 4, false, "a", 2, 2 },
					   { 5, true, "b", 0, 0 },
					   { 6, false, "c", 6, 1 } };
	struct world		world;

	(void) state;
	assert_status(restore(&world, rows, VDI_ARRAY_SIZE(rows), 5, 5), VD_OK);
	expect_place(&world, 6, 5);
	expect_keys(&world, "ac");
	world_fini(&world);
	assert_status(restore(&world, rows, VDI_ARRAY_SIZE(rows), 4, 4), VD_INVALID);
	assert_status(world.error.code, VD_INVALID);
	assert_non_null(strstr(world.error.message, "a delete of a key that does not exist"));
	world_fini(&world);
}

static void put_text(struct vdi_bolt_writer *writer, const char *key, const void *value, size_t size)
{
	assert_status(vdi_bolt_put(writer, vd_bytes_of(key), (struct vd_bytes) { value, size }), VD_OK);
}

static void got_lease(void *arg, vd_status status, const struct vd_lease_result *result,
		      const struct vd_error *error)
{
	(void) error;
	assert_status(status, VD_OK);
	*(int64_t *) arg = result->granted_ttl_s;
}

/* Users, roles, leases, and whether there is authentication: each from the bucket and the key that etcd
 * writes it to, and from nothing else. */
static void users_and_leases_come_with_it(void **state)
{
	static const uint8_t	   root[] = { 0x0a, 4, 'r', 'o', 'o', 't' }, lease[] = { 0x08, 7, 0x10, 100 };
	struct memory		   memory = { 0 };
	struct vdi_bolt_sink	   sink = { write_memory, &memory };
	struct vd_mvcc_options	   options = VD_MVCC_OPTIONS_INIT;
	struct vdi_snapshot_report report;
	struct vdi_bolt_writer	  *writer;
	struct vdi_auth_data	  *data;
	struct vd_store		  *store;
	struct vd_env		  *env;
	void			  *auth = NULL;
	size_t			   auth_size = 0;
	int64_t			   ttl_s = 0;

	(void) state;
	for (int is_enabled = 0; is_enabled < 2; is_enabled++) {
		memset(&memory, 0, sizeof memory);
		assert_status(vdi_bolt_writer_new(&sink, &writer), VD_OK);
		assert_status(vdi_bolt_bucket_begin(writer, "auth"), VD_OK);
		put_text(writer, "authEnable", is_enabled ? "\0" : "\1", 1); /* none that etcd knows */
		put_text(writer, "authEnabled", is_enabled ? "\1" : "\0", 1);
		put_text(writer, "authRevisio", "\0\0\0\0\0\0\0\x63", 8);
		put_text(writer, "authRevision", "\0\0\0\0\0\0\0\x05", 8);
		assert_status(vdi_bolt_bucket_end(writer), VD_OK);
		assert_status(vdi_bolt_bucket_begin(writer, "authRoles"), VD_OK);
		put_text(writer, "root", root, sizeof root);
		assert_status(vdi_bolt_bucket_end(writer), VD_OK);
		assert_status(vdi_bolt_bucket_begin(writer, "authUsers"), VD_OK);
		put_text(writer, "root", root, sizeof root);
		assert_status(vdi_bolt_bucket_end(writer), VD_OK);
		assert_status(vdi_bolt_bucket_begin(writer, "key"), VD_OK);
		put_row(writer, &(struct row) { 4, false, "a", 2, 2 });
		assert_status(vdi_bolt_bucket_end(writer), VD_OK);
		assert_status(vdi_bolt_bucket_begin(writer, "lease"), VD_OK);
		assert_status(vdi_bolt_put(writer, (struct vd_bytes) { "\0\0\0\0\0\0\0\x07", 8 },
					   (struct vd_bytes) { lease, sizeof lease }),
			      VD_OK);
		assert_status(vdi_bolt_bucket_end(writer), VD_OK);
		assert_status(vdi_bolt_bucket_begin(writer, "meta"), VD_OK);
		assert_status(vdi_bolt_bucket_end(writer), VD_OK);
		assert_status(vdi_bolt_finish(writer, &memory.size), VD_OK);
		(void) vdi_bolt_writer_free(writer);
		assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
		assert_status(vdi_snapshot_restore(env, &options,
						   (struct vd_bytes) { memory.bytes, (size_t) memory.size },
						   &store, &auth, &auth_size, &report, NULL),
			      VD_OK);
		assert_int_equal(report.leases, 1);
		assert_int_equal(report.records, 1);
		assert_int_equal(report.revision, 4);
		assert_status(vdi_auth_data_read((struct vd_bytes) { auth, auth_size }, &data), VD_OK);
		assert_int_equal(data->is_enabled, is_enabled);
		assert_int_equal(data->revision, 5);
		assert_int_equal(data->account_count, 1);
		assert_int_equal(data->role_count, 1);
		assert_non_null(vdi_auth_data_account(data, vd_bytes_of("root")));
		assert_non_null(vdi_auth_data_role(data, vd_bytes_of("root")));
		vdi_auth_data_free(data);
		assert_status(vd_store_lease_time_to_live(store, 7, false, got_lease, &ttl_s), VD_OK);
		vdi_sim_run_until_idle(env);
		assert_int_equal(ttl_s, 100);
		vdi_free(auth);
		vdi_free(memory.bytes);
		(void) vd_store_close_wait(store);
		(void) vd_env_free(env);
	}
}

static void empty_records_that_no_tool_writes(void **state)
{
	static const struct row tombstone[] = { { 4, true, NULL, 0, 0 } };
	static const struct row no_revision[] = { { 0, false, NULL, 0, 0 } };
	struct world		world;

	(void) state;
	assert_status(restore(&world, tombstone, 1, 0, 0), VD_CORRUPT);
	world_fini(&world);
	assert_status(restore(&world, no_revision, 1, 0, 0), VD_CORRUPT);
	world_fini(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e409_a_marked_revision_is_where_the_store_stands),
		cmocka_unit_test(e409_records_follow_an_empty_one),
		cmocka_unit_test(e409_a_compaction_beyond_all_records),
		cmocka_unit_test(a_tombstone_without_its_record),
		cmocka_unit_test(users_and_leases_come_with_it),
		cmocka_unit_test(empty_records_that_no_tool_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
