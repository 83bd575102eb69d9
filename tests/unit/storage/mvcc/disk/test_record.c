/* Unit tests of storage/mvcc/disk/record.c and lease_table.c. */
#include "backend_model.h"
#include "lease_table.h"
#include "record.h"
#include "varint.h"

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

/* ---- Bytes by hand ---- */

enum { TOMBSTONE = 1, LEASE = 2, CREATED = 4, PREVIOUS = 8 };

/* The numbers of a record; of a record without a flag the fields behind it are left out. */
struct spelled {
	unsigned flags;
	uint64_t sub, key_size, value_size, distance, previous_sub, age, version, lease;
	int64_t	 more; /* bytes of key and value beyond what the sizes say, or fewer */
};

static size_t spell(const struct spelled *spelled, uint8_t *bytes)
{
	bool	 is_put = (spelled->flags & TOMBSTONE) == 0;
	uint8_t *at = bytes;
	size_t	 rest =
		(size_t) ((int64_t) (spelled->key_size + (is_put ? spelled->value_size : 0)) + spelled->more);

	*at++ = (uint8_t) spelled->flags;
	at = vdi_varint_put(at, spelled->sub);
	at = vdi_varint_put(at, spelled->key_size);
	if (is_put)
		at = vdi_varint_put(at, spelled->value_size);
	if (spelled->flags & PREVIOUS) {
		at = vdi_varint_put(at, spelled->distance);
		at = vdi_varint_put(at, spelled->previous_sub);
	}
	if (is_put && !(spelled->flags & CREATED)) {
		at = vdi_varint_put(at, spelled->age);
		at = vdi_varint_put(at, spelled->version);
	}
	if (spelled->flags & LEASE)
		at = vdi_varint_put(at, spelled->lease);
	memset(at, 'x', rest);
	return (size_t) (at - bytes) + rest;
}

/* Each number at its limit, and one past it; revision 7. */
static void a_record_has_numbers_within_their_limits(void **state)
{
	static const struct {
		struct spelled spelled;
		bool	       is_good;
	} rows[] = {
		{ { .flags = CREATED, .key_size = 3, .value_size = 4 }, true },
		{ { .flags = CREATED, .key_size = 3, .value_size = 4, .more = -1 }, false },
		{ { .flags = CREATED, .key_size = 3, .value_size = 4, .more = 1 }, false },
		{ { .flags = CREATED, .key_size = 3 }, true },
		{ { .flags = CREATED, .key_size = 3, .more = -1 }, false },
		{ { .flags = CREATED, .sub = UINT32_MAX, .key_size = 1 }, true },
		{ { .flags = CREATED, .sub = (uint64_t) UINT32_MAX + 1, .key_size = 1 }, false },
		{ { .flags = CREATED, .key_size = VD_KEY_SIZE_MAX }, true },
		{ { .flags = CREATED, .key_size = VD_KEY_SIZE_MAX + 1 }, false },
		{ { .flags = CREATED, .key_size = 1, .value_size = VD_VALUE_SIZE_MAX }, true },
		{ { .flags = CREATED, .key_size = 1, .value_size = VD_VALUE_SIZE_MAX + 1 }, false },
		{ { .key_size = 1, .age = 6, .version = 1 }, true },
		{ { .key_size = 1, .age = 7, .version = 1 }, false },
		{ { .key_size = 1, .age = 0, .version = 2 }, true },
		{ { .key_size = 1, .age = 1, .version = 0 }, false },
		{ { .key_size = 1, .age = 1, .version = INT64_MAX }, true },
		{ { .key_size = 1, .age = 1, .version = (uint64_t) INT64_MAX + 1 }, false },
		{ { .flags = PREVIOUS, .key_size = 1, .distance = 6, .version = 3 }, true },
		{ { .flags = PREVIOUS, .key_size = 1, .distance = 7, .version = 3 }, false },
		{ { .flags = PREVIOUS, .key_size = 1, .previous_sub = UINT32_MAX, .version = 3 }, true },
		{ { .flags = PREVIOUS,
		    .key_size = 1,
		    .previous_sub = (uint64_t) UINT32_MAX + 1,
		    .version = 3 },
		  false },
		{ { .flags = LEASE | CREATED, .key_size = 1, .lease = UINT64_MAX }, true },
		{ { .flags = LEASE | PREVIOUS, .key_size = 1, .distance = 1, .version = 9, .lease = 2 },
		  true },
		{ { .flags = TOMBSTONE, .key_size = 5 }, true },
		{ { .flags = TOMBSTONE, .key_size = 5, .more = 1 }, false },
		{ { .flags = TOMBSTONE | PREVIOUS, .key_size = 5, .distance = 3, .previous_sub = 4 }, true },
		{ { .flags = TOMBSTONE | LEASE, .key_size = 5 }, false },
		{ { .flags = TOMBSTONE | CREATED, .key_size = 5 }, false },
		{ { .flags = CREATED | 16, .key_size = 5 }, false },
		{ { .flags = CREATED | 128, .key_size = 5 }, false },
	};
	uint8_t *bytes = vdi_alloc(VD_VALUE_SIZE_MAX + 10000);

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		const struct spelled *spelled = &rows[i].spelled;
		struct vdi_record     record = { .mod_rev = -1 };
		struct vd_bytes	      whole = { bytes, spell(spelled, bytes) };
		bool		      is_put = (spelled->flags & TOMBSTONE) == 0;
		vd_status	      status = vdi_record_decode(whole, 7, &record);

		if (status != (rows[i].is_good ? VD_OK : VD_CORRUPT))
			fail_msg("row %zu: %s", i, vd_status_name(status));
		/* Without a revision there is none. */
		assert_status(vdi_record_decode(whole, 0, &record), VD_CORRUPT);
		assert_status(vdi_record_decode(whole, -1, &record), VD_CORRUPT);
		if (!rows[i].is_good) {
			assert_int_equal(record.mod_rev, -1);
			continue;
		}
		assert_int_equal(record.is_delete, !is_put);
		assert_int_equal(record.sub, spelled->sub);
		assert_int_equal(record.mod_rev, 7);
		assert_int_equal(record.key.size, spelled->key_size);
		assert_int_equal(record.value.size, spelled->value_size);
		assert_ptr_equal((const char *) record.key.data + record.key.size, record.value.data);
		assert_ptr_equal((const uint8_t *) record.value.data + record.value.size, bytes + whole.size);
		assert_int_equal(record.previous_rev,
				 spelled->flags & PREVIOUS ? 7 - (vd_rev) spelled->distance : 0);
		assert_int_equal(record.previous_sub, spelled->previous_sub);
		assert_int_equal(record.create_rev, is_put ? 7 - (vd_rev) spelled->age : 0);
		assert_int_equal(record.version, !is_put		  ? 0 :
						 spelled->flags & CREATED ? 1 :
									    (int64_t) spelled->version);
		assert_int_equal(record.lease,
				 spelled->lease == UINT64_MAX ? INT64_MIN : (int64_t) spelled->lease / 2);
		/* No byte of its numbers may be missing. */
		for (size_t cut = 0; cut < VDI_MIN(whole.size, (size_t) 40); cut++)
			assert_status(vdi_record_decode((struct vd_bytes) { bytes, cut }, 7, &record),
				      VD_CORRUPT);
	}
	vdi_free(bytes);
}

/* A reader gives as many records as are announced, each where it lies, and knows whether any is left. */
static void a_commit_ends_where_its_last_change_does(void **state)
{
	static const struct spelled put = { .flags = CREATED, .key_size = 3, .value_size = 4 };

	(void) state;
	for (unsigned announced = 0; announced <= 3; announced++)
		for (unsigned spare = 0; spare < 2; spare++) {
			struct vdi_commit_reader reader;
			struct vdi_record	 record;
			struct vd_bytes		 body;
			uint8_t			 bytes[128] = { (uint8_t) announced, 0, 9 };
			size_t			 size = 3;

			for (unsigned i = 0; i < 2; i++)
				size += spell(&put, bytes + size);
			size += spare;
			assert_status(vdi_commit_reader_init(&reader, 5, (struct vd_bytes) { bytes, size }),
				      VD_OK);
			assert_int_equal(reader.compact, 9);
			for (unsigned i = 0; i < VDI_MIN(announced, 2u); i++) {
				assert_status(vdi_commit_reader_record(&reader, &record, &body), VD_OK);
				assert_ptr_equal(body.data, bytes + 3 + i * body.size);
				assert_int_equal(record.mod_rev, 5);
				assert_int_equal(reader.change_count, announced - i - 1);
			}
			assert_status(vdi_commit_reader_end(&reader),
				      announced == 2 && !spare ? VD_OK : VD_CORRUPT);
			if (announced > 2 && !spare)
				assert_status(vdi_commit_reader_record(&reader, &record, &body), VD_CORRUPT);
		}
}

/* What a commit announces cannot be more than it has bytes. */
static void a_commit_announces_no_more_than_it_has_bytes(void **state)
{
	static const struct {
		uint64_t changes, leases, compact;
		vd_rev	 revision;
		bool	 is_good;
	} rows[] = {
		{ 3, 0, 0, 1, true },
		{ 4, 0, 0, 1, false },
		{ 0, 3, 0, 0, true },
		{ 0, 4, 0, 0, false },
		{ 1, 0, 0, 0, false },
		{ 1, 0, 0, -1, false },
		{ 0, 0, 0, -1, true },
		{ 0, 0, INT64_MAX, 0, true },
		{ 0, 0, (uint64_t) INT64_MAX + 1, 0, false },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_commit_reader reader;
		uint8_t			 bytes[32], *at = bytes;
		vd_status		 status;

		at = vdi_varint_put(at, rows[i].changes);
		at = vdi_varint_put(at, rows[i].leases);
		at = vdi_varint_put(at, rows[i].compact);
		status = vdi_commit_reader_init(&reader, rows[i].revision,
						(struct vd_bytes) { bytes, (size_t) (at - bytes) });
		if (status != (rows[i].is_good ? VD_OK : VD_CORRUPT))
			fail_msg("row %zu: %s", i, vd_status_name(status));
		if (!rows[i].is_good)
			continue;
		assert_int_equal(reader.change_count, rows[i].changes);
		assert_int_equal(reader.lease_count, rows[i].leases);
		assert_int_equal(reader.compact, rows[i].compact);
		assert_int_equal(reader.revision, rows[i].revision);
	}
}

static void a_lease_change_of_no_kind_is_refused(void **state)
{
	uint8_t bytes[3 + 12] = { 0, 1, 0 };

	(void) state;
	for (unsigned kind = 0; kind < 256; kind++)
		for (size_t size = 3; size <= sizeof bytes; size++) {
			/* kind, id 1, and for a grant a TTL; the deadline follows. */
			size_t			 least = kind == VDI_LEASE_GRANTED ? 14 :
							 kind == VDI_LEASE_RENEWED ? 13 :
							 kind == VDI_LEASE_REVOKED ? 5 :
										     SIZE_MAX;
			struct vdi_commit_reader reader;
			struct vdi_lease_change	 lease = { .id = 77 };

			memset(bytes + 3, 2, sizeof bytes - 3);
			bytes[3] = (uint8_t) kind;
			assert_status(vdi_commit_reader_init(&reader, 0, (struct vd_bytes) { bytes, size }),
				      VD_OK);
			assert_status(vdi_commit_reader_lease(&reader, &lease),
				      size >= least ? VD_OK : VD_CORRUPT);
			assert_int_equal(lease.id, size >= least ? 1 : 77);
			assert_int_equal(reader.lease_count, size < least);
			assert_status(vdi_commit_reader_end(&reader), size == least ? VD_OK : VD_CORRUPT);
		}
}

static const struct vdi_lease_entry *find_lease(const struct vdi_lease_table *table, int64_t id)
{
	for (size_t i = 0; i < table->capacity; i++)
		if (table->entries[i].is_used && table->entries[i].id == id)
			return &table->entries[i];
	return NULL;
}

/* The same lease again and again takes one place; one that was revoked takes none once the table grows. */
static void e508_a_lease_table_grows_with_what_lives(void **state)
{
	struct vdi_lease_table table = { NULL, 0, 0 };

	(void) state;
	for (int64_t i = 0; i < 1000; i++) {
		assert_status(
			vdi_lease_table_apply(&table, &(struct vdi_lease_change) { i % 2 ? VDI_LEASE_REVOKED :
											   VDI_LEASE_GRANTED,
										   5,
										   10 + i,
										   { 100 + i } }),
			VD_OK);
		assert_int_equal(table.count, 1);
		assert_int_equal(find_lease(&table, 5)->is_alive, i % 2 == 0);
		if (i % 2 == 0) {
			assert_int_equal(find_lease(&table, 5)->ttl_s, 10 + i);
			assert_int_equal(find_lease(&table, 5)->deadline.ns, 100 + i);
		}
		/* What was revoked is not renewed. */
		assert_status(vdi_lease_table_apply(
				      &table, &(struct vdi_lease_change) { VDI_LEASE_RENEWED, 5, 0, { 9 } }),
			      VD_OK);
		assert_int_equal(find_lease(&table, 5)->is_alive, i % 2 == 0);
	}
	assert_int_equal(table.capacity, 64);
	for (int64_t id = 100; id < 131; id++) {
		assert_int_equal(table.capacity, 64);
		assert_status(vdi_lease_table_apply(
				      &table, &(struct vdi_lease_change) { VDI_LEASE_GRANTED, id, 1, { 1 } }),
			      VD_OK);
	}
	assert_int_equal(table.count, 32);
	/* The next one needs a larger table, which has no place for the revoked one. */
	assert_status(vdi_lease_table_apply(&table,
					    &(struct vdi_lease_change) { VDI_LEASE_GRANTED, 131, 1, { 1 } }),
		      VD_OK);
	assert_int_equal(table.capacity, 128);
	assert_int_equal(table.count, 32);
	assert_null(find_lease(&table, 5));
	for (int64_t id = 100; id <= 131; id++)
		assert_true(find_lease(&table, id)->is_alive);
	vdi_lease_table_fini(&table);
	assert_null(table.entries);
	assert_int_equal(table.capacity, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commits_come_back_as_they_went_in),
		cmocka_unit_test(what_a_create_does_not_say_is_not_written),
		cmocka_unit_test(senseless_bytes_are_refused_within_bounds),
		cmocka_unit_test(e508_changes_of_leases_come_back_as_they_went_in),
		cmocka_unit_test(e508_lease_table_keeps_what_lives),
		cmocka_unit_test(e508_a_lease_table_grows_with_what_lives),
		cmocka_unit_test(a_record_has_numbers_within_their_limits),
		cmocka_unit_test(a_commit_ends_where_its_last_change_does),
		cmocka_unit_test(a_commit_announces_no_more_than_it_has_bytes),
		cmocka_unit_test(a_lease_change_of_no_kind_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
