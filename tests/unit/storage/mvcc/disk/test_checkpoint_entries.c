/* Unit tests of storage/mvcc/disk/checkpoint.c: entries that lie in sound pages of LMDB and make no sense,
 * what a walk gives, and how large a checkpoint says it is. Real files. */
#include <lmdb.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "checkpoint_file.h"

#define SIZE_MAX_HERE 200

/* Puts of the revisions 2 to 11, a delete of 2 by 12, leases 1 and 2. */
static void prepare(struct checkpoint_file *f)
{
	const struct vdi_lease_change leases[] = {
		{ VDI_LEASE_GRANTED, 1, 10, { 100 } },
		{ VDI_LEASE_GRANTED, 2, 20, { 200 } },
	};

	checkpoint_file_init(f);
	for (unsigned i = 0; i < 10; i++)
		checkpoint_file_put(f, 100);
	assert_status(checkpoint_file_change(f, (vd_rev[]) { 2 }, 1, 0), VD_OK);
	assert_status(checkpoint_file_commit(f, &(struct vdi_commit) { .leases = leases, .lease_count = 2 }),
		      VD_OK);
}

/* ---- Writing with LMDB alone ---- */

struct entry {
	const char *table;
	uint8_t	    key[16];
	size_t	    key_size;
	uint8_t	    value[SIZE_MAX_HERE];
	size_t	    value_size; /* 0 without `is_empty`: the entry is removed */
	bool	    is_empty;
};

static void write_entry(struct checkpoint_file *f, const struct entry *entry)
{
	MDB_val	 key = { entry->key_size, (void *) entry->key };
	MDB_val	 value = { entry->value_size, (void *) entry->value };
	char	 path[128];
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi	 table;

	f->checkpoint = vdi_checkpoint_close(f->checkpoint);
	snprintf(path, sizeof path, "%s/%s", f->path, VDI_CHECKPOINT_NAME);
	assert_int_equal(mdb_env_create(&env), 0);
	assert_int_equal(mdb_env_set_maxdbs(env, 3), 0);
	assert_int_equal(mdb_env_open(env, path, MDB_NOSUBDIR | MDB_NOLOCK, 0600), 0);
	assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
	assert_int_equal(mdb_dbi_open(txn, entry->table, 0, &table), 0);
	if (entry->value_size || entry->is_empty)
		assert_int_equal(mdb_put(txn, table, &key, &value, 0), 0);
	else
		assert_int_equal(mdb_del(txn, table, &key, NULL), 0);
	assert_int_equal(mdb_txn_commit(txn), 0);
	mdb_env_close(env);
}

static vd_status try_open(struct checkpoint_file *f, struct vd_error *error)
{
	struct vdi_checkpoint_content content = { .part_count = 1 };
	vd_status		      status;

	*error = (struct vd_error) { 0 };
	status = vdi_checkpoint_open(f->dir, true, &content, &f->checkpoint, error);
	vdi_checkpoint_content_fini(&content);
	if (status != VD_OK)
		assert_status(error->code, status);
	return status;
}

static void expect(struct checkpoint_file *f, const struct entry *entry, vd_status expected, vd_rev revision,
		   const char *why)
{
	struct vd_error error;
	char		message[256];

	write_entry(f, entry);
	assert_status(try_open(f, &error), expected);
	if (why && revision >= 0)
		snprintf(message, sizeof message, "%s/%s is damaged at revision %lld: %s", f->path,
			 VDI_CHECKPOINT_NAME, (long long) revision, why);
	else
		snprintf(message, sizeof message, "%s/%s %s", f->path, VDI_CHECKPOINT_NAME, why ? why : "");
	if (why)
		assert_string_equal(error.message, message);
	checkpoint_file_fini(f);
}

static void put_place(struct entry *entry, vd_rev revision, uint32_t sub)
{
	uint64_t big_revision = __builtin_bswap64((uint64_t) revision);
	uint32_t big_sub = __builtin_bswap32(sub);

	memcpy(entry->key, &big_revision, 8);
	memcpy(entry->key + 8, &big_sub, 4);
}

/* A value with its checksum in front, as one of this place. */
static void put_value(struct entry *entry, vd_rev revision, uint32_t sub, const void *body, size_t size)
{
	uint64_t checksum = XXH3_64bits_withSeed(body, size, ((uint64_t) revision << 20) ^ sub);

	memcpy(entry->value, &checksum, 8);
	memcpy(entry->value + 8, body, size);
	entry->value_size = 8 + size;
}

static struct entry record_at(vd_rev revision, uint32_t sub, const void *body, size_t size)
{
	struct entry entry = { .table = "records", .key_size = 12 };

	put_place(&entry, revision, sub);
	put_value(&entry, revision, sub, body, size);
	return entry;
}

static struct entry lease_of(int64_t id, const void *body, size_t size)
{
	struct entry entry = { .table = "leases", .key_size = 8 };

	put_place(&entry, (vd_rev) id, 0);
	put_value(&entry, (vd_rev) id, 1, body, size);
	return entry;
}

/* A create of "/k" without a value, with this sub. */
static size_t create_record(uint8_t *body, uint8_t sub)
{
	static const uint8_t head[] = { 4, 0, 2, 0, '/', 'k' };

	memcpy(body, head, sizeof head);
	body[1] = sub;
	return sizeof head;
}

#define RECORD_CHECKSUM "the checksum of a record is wrong"
#define RECORD_SENSELESS "a record is complete but its content is invalid"
#define LEASE_CHECKSUM "the checksum of a lease is wrong"
#define META_CHECKSUM "the checksum of its meta entry is wrong"
#define META_SENSELESS "its meta entry is invalid"
#define MISSING "records or leases are missing, or older than they should be"

static void a_record_that_makes_no_sense_is_named(void **state)
{
	struct checkpoint_file f;
	uint8_t		       body[16] = { 0 };
	size_t		       size = create_record(body, 0);
	struct entry	       entry;

	(void) state;
	for (size_t key_size = 11; key_size <= 13; key_size += 2) {
		prepare(&f);
		entry = record_at(99, 0, body, size);
		entry.key_size = key_size;
		expect(&f, &entry, VD_CORRUPT, 0, "a key of the wrong size");
	}
	for (size_t short_size = 0; short_size < 8; short_size++) {
		prepare(&f);
		entry = record_at(99, 0, body, size);
		entry.value_size = short_size;
		entry.is_empty = true;
		expect(&f, &entry, VD_CORRUPT, 99, RECORD_CHECKSUM);
	}
	/* Of another place, or changed. */
	for (unsigned kind = 0; kind < 4; kind++) {
		prepare(&f);
		entry = record_at(99, kind == 3, body, create_record(body, kind == 3));
		if (kind == 0)
			put_place(&entry, 98, 0);
		else if (kind == 1)
			put_place(&entry, 99, 1);
		else if (kind == 2)
			entry.value[entry.value_size - 1] ^= 1;
		else
			entry.value[0] ^= 1;
		expect(&f, &entry, VD_CORRUPT, kind == 0 ? 98 : 99, RECORD_CHECKSUM);
	}
	/* Nothing at all, a byte too few or too many, another number than the key says. */
	for (unsigned kind = 0; kind < 4; kind++) {
		size_t wrong_size = kind == 0 ? 0 : kind == 1 ? size - 1 : kind == 2 ? size + 1 : size;

		prepare(&f);
		create_record(body, kind == 3);
		entry = record_at(99, 0, body, wrong_size);
		expect(&f, &entry, VD_CORRUPT, 99, RECORD_SENSELESS);
	}
	/* One that makes sense, and that the sums do not know. */
	prepare(&f);
	create_record(body, 3);
	entry = record_at(99, 3, body, size);
	expect(&f, &entry, VD_CORRUPT, 12, MISSING);
}

static void a_lease_that_makes_no_sense_is_named(void **state)
{
	struct checkpoint_file f;
	uint8_t		       body[24] = { 10 };
	struct entry	       entry;

	(void) state;
	for (size_t size = 0; size <= sizeof body; size++) {
		prepare(&f);
		entry = lease_of(7, body, size);
		if (size == 16)
			expect(&f, &entry, VD_CORRUPT, 12, MISSING);
		else
			expect(&f, &entry, VD_CORRUPT, 0, LEASE_CHECKSUM);
	}
	for (unsigned kind = 0; kind < 4; kind++) {
		prepare(&f);
		entry = lease_of(7, body, 16);
		if (kind == 0)
			entry.key_size = 7;
		else if (kind == 1)
			entry.key_size = 9;
		else if (kind == 2)
			put_place(&entry, 8, 0);
		else
			entry.value[20] ^= 1;
		expect(&f, &entry, VD_CORRUPT, 0, LEASE_CHECKSUM);
	}
}

/* What is missing, or stands there from an earlier time, shows by the sums alone. */
static void a_missing_or_stale_entry_shows(void **state)
{
	struct checkpoint_file f;
	uint8_t		       body[16] = { 0 };
	size_t		       size = create_record(body, 0);
	struct entry	       entry;

	(void) state;
	for (unsigned kind = 0; kind < 4; kind++) {
		prepare(&f);
		if (kind < 2)
			entry = record_at(5, 0, body, size);
		else
			entry = lease_of(1, body, 16);
		if (kind % 2)
			entry.value_size = 0;
		expect(&f, &entry, VD_CORRUPT, 12, MISSING);
	}
}

/* meta: as it is after prepare(). */
static struct entry meta_entry(const struct vdi_checkpoint_meta *meta, size_t size)
{
	struct entry entry = { .table = "meta", .key = "meta", .key_size = 4, .value_size = size };
	uint64_t     checksum;

	memcpy(entry.value, meta, VDI_MIN(size - 8, sizeof *meta));
	checksum = XXH3_64bits(entry.value, size - 8);
	memcpy(entry.value + size - 8, &checksum, 8);
	return entry;
}

static void a_meta_entry_that_makes_no_sense_is_named(void **state)
{
	const size_t	       whole = sizeof(struct vdi_checkpoint_meta) + 8;
	struct checkpoint_file f;
	struct entry	       entry;

	(void) state;
	for (unsigned kind = 0; kind <= 12; kind++) {
		struct vdi_checkpoint_meta meta;

		prepare(&f);
		meta = *vdi_checkpoint_meta(f.checkpoint);
		assert_int_equal(meta.record_count, 11);
		assert_int_equal(meta.lease_count, 2);
		switch (kind) {
		case 0: /* as it is */
			entry = meta_entry(&meta, whole);
			expect(&f, &entry, VD_OK, 0, NULL);
			break;
		case 1:
			entry = meta_entry(&meta, whole);
			entry.value[30] ^= 1;
			expect(&f, &entry, VD_CORRUPT, 0, META_CHECKSUM);
			break;
		case 2:
			entry = meta_entry(&meta, whole);
			entry.value[whole - 1] ^= 1;
			expect(&f, &entry, VD_CORRUPT, 0, META_CHECKSUM);
			break;
		case 3: /* too short for a checksum and anything before it */
		case 4:
			entry = meta_entry(&meta, kind == 3 ? 12 : 8);
			expect(&f, &entry, VD_CORRUPT, 0, META_CHECKSUM);
			break;
		case 5:
		case 6:
			entry = meta_entry(&meta, kind == 5 ? whole + 8 : whole - 8);
			expect(&f, &entry, VD_CORRUPT, 0, META_SENSELESS);
			break;
		case 7:
			meta.format = 0;
			entry = meta_entry(&meta, whole);
			expect(&f, &entry, VD_CORRUPT, 0, META_SENSELESS);
			break;
		case 8: /* of whatever size */
			meta.format = VDI_CHECKPOINT_FORMAT + 1;
			entry = meta_entry(&meta, whole + 16);
			expect(&f, &entry, VD_NEWER_FORMAT, -1,
			       "has format 2; this program supports formats up to 1");
			break;
		case 9:
			meta.record_count++;
			entry = meta_entry(&meta, whole);
			expect(&f, &entry, VD_CORRUPT, 12, MISSING);
			break;
		case 10:
			meta.lease_count--;
			entry = meta_entry(&meta, whole);
			expect(&f, &entry, VD_CORRUPT, 12, MISSING);
			break;
		case 11:
			meta.digest++;
			entry = meta_entry(&meta, whole);
			expect(&f, &entry, VD_CORRUPT, 12, MISSING);
			break;
		case 12:
			entry = meta_entry(&meta, whole);
			entry.value_size = 0;
			write_entry(&f, &entry);
			assert_status(try_open(&f, &(struct vd_error) { 0 }), VD_CORRUPT);
			checkpoint_file_fini(&f);
			break;
		}
	}
}

/* ---- Walks ---- */

struct walked {
	unsigned  count;
	vd_rev	  first, last;
	unsigned  stop_after; /* 0: never */
	vd_status stop_with;
};

static vd_status note_record(void *arg, const struct vdi_record *record)
{
	struct walked *walked = arg;

	if (walked->count++ == 0)
		walked->first = record->mod_rev;
	assert_true(walked->count == 1 || record->mod_rev > walked->last);
	walked->last = record->mod_rev;
	assert_true(vd_bytes_equal(record->key, vd_bytes_of("/k")));
	assert_int_equal(record->is_delete, record->mod_rev == 12);
	assert_int_equal(record->previous_rev, record->mod_rev == 12 ? 2 : 0);
	return walked->count == walked->stop_after ? walked->stop_with : VD_OK;
}

static void a_walk_gives_the_records_of_its_revisions(void **state)
{
	struct checkpoint_file f;
	struct vd_error	       error = { 0 };

	(void) state;
	prepare(&f);
	for (vd_rev from = -2; from <= 14; from++)
		for (vd_rev to = -2; to <= 14; to++) {
			struct walked walked = { 0 };
			vd_rev	      first = VDI_MAX(from, 2), last = VDI_MIN(to, 12);

			assert_status(vdi_checkpoint_walk(f.checkpoint, from, to, note_record, &walked, NULL),
				      VD_OK);
			assert_int_equal(walked.count, last >= first ? last - first + 1 : 0);
			if (walked.count) {
				assert_int_equal(walked.first, first);
				assert_int_equal(walked.last, last);
			}
		}
	/* The caller ends it with any status but VD_OK, at the last record too. */
	for (unsigned stop_after = 1; stop_after <= 11; stop_after++) {
		struct walked walked = { .stop_after = stop_after, .stop_with = VD_CANCELED };

		assert_status(vdi_checkpoint_walk(f.checkpoint, 0, 100, note_record, &walked, &error),
			      VD_CANCELED);
		assert_int_equal(walked.count, stop_after);
		assert_status(error.code, VD_CANCELED);
		assert_string_equal(error.message, vd_status_sentence(VD_CANCELED));
	}
	checkpoint_file_fini(&f);
}

/* ---- Sizes ---- */

/* Bytes of pages in use: those of the records, and few more. */
static void the_size_is_that_of_the_pages_in_use(void **state)
{
	struct checkpoint_file f;
	vd_rev		       previous[50];
	int64_t		       before, full;

	(void) state;
	checkpoint_file_init(&f);
	before = vdi_checkpoint_size_bytes(f.checkpoint);
	assert_in_range(before, 1, 8 * VDI_CHECKPOINT_PAGE_SIZE);
	for (unsigned i = 0; i < 50; i++) {
		previous[i] = f.revision + 1;
		checkpoint_file_put(&f, 40000); /* ten pages */
		assert_in_range(vdi_checkpoint_size_bytes(f.checkpoint) - before,
				(i + 1) * 10 * VDI_CHECKPOINT_PAGE_SIZE,
				((i + 1) * 10 + 4) * VDI_CHECKPOINT_PAGE_SIZE);
	}
	full = vdi_checkpoint_size_bytes(f.checkpoint);
	checkpoint_file_reopen(&f);
	assert_int_equal(vdi_checkpoint_size_bytes(f.checkpoint), full);
	assert_status(checkpoint_file_change(&f, previous, 50, 0), VD_OK);
	checkpoint_file_compact(&f, f.revision);
	while (vdi_checkpoint_compact_pending(f.checkpoint))
		assert_status(vdi_checkpoint_compact_step(f.checkpoint, 1000, NULL), VD_OK);
	assert_in_range(vdi_checkpoint_size_bytes(f.checkpoint), 1, 8 * VDI_CHECKPOINT_PAGE_SIZE);
	checkpoint_file_fini(&f);
}

/* By a quarter, in steps of 64 KiB; to what is needed if that is more. */
static void a_file_grows_by_a_quarter_or_to_what_is_needed(void **state)
{
	static const struct {
		int64_t expected, size;
	} rows[] = {
		{ 0, 1 << 20 },
		{ 500 << 10, (1 << 20) + (256 << 10) }, /* a quarter is more */
		{ 2 << 20, (4 << 20) + (256 << 10) },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct checkpoint_file f;
		int64_t		       size;

		checkpoint_file_init(&f);
		assert_status(vdi_checkpoint_begin(f.checkpoint, rows[i].expected, NULL), VD_OK);
		vdi_checkpoint_abort(f.checkpoint);
		assert_status(vdi_checkpoint_file_size(f.dir, &size, NULL), VD_OK);
		/* Beside twice the bytes there are the pages in use and a quarter of the least size. */
		assert_in_range(size, rows[i].size, rows[i].size + (i == 2 ? 64 << 10 : 0));
		assert_int_equal(size % (64 << 10), 0);
		checkpoint_file_fini(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_that_makes_no_sense_is_named),
		cmocka_unit_test(a_lease_that_makes_no_sense_is_named),
		cmocka_unit_test(a_missing_or_stale_entry_shows),
		cmocka_unit_test(a_meta_entry_that_makes_no_sense_is_named),
		cmocka_unit_test(a_walk_gives_the_records_of_its_revisions),
		cmocka_unit_test(the_size_is_that_of_the_pages_in_use),
		cmocka_unit_test(a_file_grows_by_a_quarter_or_to_what_is_needed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
