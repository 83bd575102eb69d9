/* Unit tests of storage/mvcc/disk/record.c and lease_table.c. */
#include "lease_table.h"
#include "backend_model.h"
#include "record.h"

static void commits_come_back_as_they_went_in(void **state)
{
	struct model model;

	(void) state;
	model_init(&model, 1);
	for (int i = 0; i < 3000; i++) {
		struct model_draft	 draft;
		struct vdi_commit_reader reader;
		uint8_t			*bytes;
		size_t			 size;

		model_draft(&model, &draft);
		size = vdi_commit_size(&draft.commit);
		bytes = vdi_alloc(size);
		vdi_commit_encode(&draft.commit, bytes);
		assert_status(vdi_commit_reader_init(&reader, draft.commit.revision,
						     (struct vd_bytes) { bytes, size }),
			      VD_OK);
		assert_int_equal(reader.change_count, draft.commit.change_count);
		assert_int_equal(reader.lease_count, draft.commit.lease_count);
		assert_int_equal(reader.compact, draft.commit.compact);
		for (size_t j = 0; j < draft.commit.change_count; j++) {
			const struct vd_kv *previous = draft.changes[j].previous;
			struct vdi_record   record, again;
			struct vd_bytes	    body;
			struct model_record got = { NULL, false, 0 },
					    expected = { draft.changes[j].kv, draft.changes[j].is_delete, 0 };

			assert_status(vdi_commit_reader_record(&reader, &record, &body), VD_OK);
			assert_int_equal(record.previous_rev, previous ? previous->mod_rev : 0);
			assert_int_equal(record.previous_sub, previous ? previous->sub : 0);
			assert_status(vdi_record_decode(body, draft.commit.revision, &again), VD_OK);
			assert_status(vdi_record_kv(&again, &got.kv), VD_OK);
			got.is_delete = again.is_delete;
			assert_true(model_same_record(&got, &expected));
			vd_kv_unref(got.kv);
		}
		for (size_t j = 0; j < draft.commit.lease_count; j++) {
			struct vdi_lease_change lease;

			assert_status(vdi_commit_reader_lease(&reader, &lease), VD_OK);
			assert_int_equal(lease.id, draft.leases[j].id);
			assert_int_equal(lease.kind, draft.leases[j].kind);
			assert_true(lease.kind == VDI_LEASE_REVOKED ||
				    lease.deadline.ns == draft.leases[j].deadline.ns);
		}
		assert_status(vdi_commit_reader_end(&reader), VD_OK);
		vdi_free(bytes);
		model_keep(&model, &draft);
	}
	model_fini(&model);
}

/* Most records are creates: of them two numbers are not written, and of them only. */
static void what_a_create_does_not_say_is_not_written(void **state)
{
	static const struct {
		vd_rev	create_rev;
		int64_t version;
		size_t	more;
	} rows[] = { { 5, 1, 0 }, { 5, 2, 2 }, { 4, 1, 2 }, { 4, 2, 2 } };
	size_t least = 0;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_change	 change = { 0 };
		struct vdi_commit	 commit = { .revision = 5, .changes = &change, .change_count = 1 };
		struct vdi_commit_reader reader;
		struct vdi_record	 record;
		uint8_t			*bytes;

		assert_status(vd_kv_new(vd_bytes_of("k"), vd_bytes_of("v"), &change.kv), VD_OK);
		change.is_first = true;
		change.kv->mod_rev = 5;
		change.kv->create_rev = rows[i].create_rev;
		change.kv->version = rows[i].version;
		if (i == 0)
			least = vdi_commit_size(&commit);
		assert_int_equal(vdi_commit_size(&commit), least + rows[i].more);
		bytes = vdi_alloc(vdi_commit_size(&commit));
		vdi_commit_encode(&commit, bytes);
		assert_status(vdi_commit_reader_init(&reader, -1,
						     (struct vd_bytes) { bytes, vdi_commit_size(&commit) }),
			      VD_CORRUPT);
		assert_status(vdi_commit_reader_init(&reader, 0,
						     (struct vd_bytes) { bytes, vdi_commit_size(&commit) }),
			      VD_CORRUPT);
		assert_status(vdi_commit_reader_init(&reader, 1,
						     (struct vd_bytes) { bytes, vdi_commit_size(&commit) }),
			      VD_OK);
		assert_status(vdi_commit_reader_init(&reader, 5,
						     (struct vd_bytes) { bytes, vdi_commit_size(&commit) }),
			      VD_OK);
		assert_status(vdi_commit_reader_record(&reader, &record, NULL), VD_OK);
		assert_int_equal(record.create_rev, rows[i].create_rev);
		assert_int_equal(record.version, rows[i].version);
		vdi_free(bytes);
		vd_kv_unref(change.kv);
	}
}

/* Reads all there is; what it makes of it does not matter, as long as it stays inside the bytes. */
static void read_anything(struct vd_bytes bytes)
{
	struct vdi_commit_reader reader;
	struct vdi_record	 record;
	struct vdi_lease_change	 lease;
	vd_status		 status = vdi_commit_reader_init(&reader, 100, bytes);

	while (status == VD_OK && reader.change_count)
		status = vdi_commit_reader_record(&reader, &record, NULL);
	while (status == VD_OK && reader.lease_count)
		status = vdi_commit_reader_lease(&reader, &lease);
	if (status != VD_OK)
		assert_status(status, VD_CORRUPT);
}

static void senseless_bytes_are_refused_within_bounds(void **state)
{
	struct model model;

	(void) state;
	model_init(&model, 2);
	model.value_size_max = 10;
	for (int i = 0; i < 2000; i++) {
		struct model_draft draft;
		uint8_t		  *bytes, *cut;
		size_t		   size, at;

		model_draft(&model, &draft);
		size = vdi_commit_size(&draft.commit);
		bytes = vdi_alloc(size);
		vdi_commit_encode(&draft.commit, bytes);
		at = vdi_rand_below(&model.rand, size);
		cut = vdi_alloc(at); /* a block of exactly this size, for the address sanitizer */
		memcpy(cut, bytes, at);
		read_anything((struct vd_bytes) { cut, at });
		bytes[at] = (uint8_t) vdi_rand_next(&model.rand);
		read_anything((struct vd_bytes) { bytes, size });
		vdi_free(cut);
		vdi_free(bytes);
		model_drop(&draft);
	}
	model_fini(&model);
}

/* A commit is exactly as long as its size says, whichever change of a lease is its last. */
static void e508_changes_of_leases_come_back_as_they_went_in(void **state)
{
	static const struct vdi_lease_change changes[] = {
		{ VDI_LEASE_GRANTED, 7, 60, { 1000 } },
		{ VDI_LEASE_RENEWED, -7, 0, { -2 } },
		{ VDI_LEASE_REVOKED, INT64_MAX, 0, { 0 } },
		{ VDI_LEASE_GRANTED, INT64_MIN, INT64_MAX, { INT64_MAX } }
	};

	(void) state;
	for (size_t first = 0; first < VDI_ARRAY_SIZE(changes); first++)
		for (size_t count = 1; first + count <= VDI_ARRAY_SIZE(changes); count++) {
			struct vdi_commit	 commit = { .leases = changes + first,
							    .lease_count = count,
							    .compact = 3 };
			size_t			 size = vdi_commit_size(&commit);
			uint8_t			 bytes[128];
			struct vdi_commit_reader reader;
			struct vdi_lease_change	 change;

			assert_true(size + 16 <= sizeof bytes);
			memset(bytes, 0xEE, sizeof bytes);
			vdi_commit_encode(&commit, bytes);
			for (size_t i = size; i < size + 16; i++)
				assert_int_equal(bytes[i], 0xEE);
			assert_status(vdi_commit_reader_init(&reader, 0, (struct vd_bytes) { bytes, size }),
				      VD_OK);
			assert_int_equal(reader.lease_count, count);
			assert_int_equal(reader.compact, 3);
			for (size_t i = 0; i < count; i++) {
				assert_status(vdi_commit_reader_lease(&reader, &change), VD_OK);
				assert_int_equal(change.kind, changes[first + i].kind);
				assert_int_equal(change.id, changes[first + i].id);
				assert_int_equal(change.ttl_s, changes[first + i].ttl_s);
				assert_int_equal(change.deadline.ns, changes[first + i].deadline.ns);
			}
			assert_status(vdi_commit_reader_end(&reader), VD_OK);
			for (size_t cut = 0; cut < size; cut++) {
				vd_status status =
					vdi_commit_reader_init(&reader, 0, (struct vd_bytes) { bytes, cut });

				while (status == VD_OK && reader.lease_count)
					status = vdi_commit_reader_lease(&reader, &change);
				assert_status(status, VD_CORRUPT);
			}
		}
}

static void e508_lease_table_keeps_what_lives(void **state)
{
	struct vdi_lease_table table = { NULL, 0, 0 };
	size_t		       alive = 0;
	int64_t		       live = vdi_alloc_live();

	(void) state;
	for (int64_t id = -500; id < 500; id++) {
		struct vdi_lease_change grant = { VDI_LEASE_GRANTED, id * 7, 60, { 1000 } };
		struct vdi_lease_change renew = { VDI_LEASE_RENEWED, id * 7, 0, { 2000 + id } };
		struct vdi_lease_change revoke = { VDI_LEASE_REVOKED, id * 7, 0, { 0 } };

		assert_status(vdi_lease_table_apply(&table, &renew), VD_OK); /* not yet known */
		assert_status(vdi_lease_table_apply(&table, &grant), VD_OK);
		assert_status(vdi_lease_table_apply(&table, &renew), VD_OK);
		if (id % 3 == 0)
			assert_status(vdi_lease_table_apply(&table, &revoke), VD_OK);
	}
	for (size_t i = 0; i < table.capacity; i++) {
		if (!table.entries[i].is_alive)
			continue;
		alive++;
		assert_true(table.entries[i].id / 7 % 3 != 0 && table.entries[i].ttl_s == 60);
		assert_int_equal(table.entries[i].deadline.ns, 2000 + table.entries[i].id / 7);
	}
	assert_int_equal(alive, 1000 - 333);
	vdi_lease_table_fini(&table);
	vdi_alloc_fail_nth(1, 1);
	assert_status(
		vdi_lease_table_apply(&table, &(struct vdi_lease_change) { VDI_LEASE_GRANTED, 1, 1, { 1 } }),
		VD_NOMEM);
	vdi_alloc_fail_nth(0, 0);
	assert_int_equal(vdi_alloc_live(), live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commits_come_back_as_they_went_in),
		cmocka_unit_test(what_a_create_does_not_say_is_not_written),
		cmocka_unit_test(senseless_bytes_are_refused_within_bounds),
		cmocka_unit_test(e508_changes_of_leases_come_back_as_they_went_in),
		cmocka_unit_test(e508_lease_table_keeps_what_lives),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
