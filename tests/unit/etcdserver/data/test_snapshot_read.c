/* Unit tests of etcdserver/data/snapshot_read.c and of the report of snapshot_restore.c: records, marks and
 * digests that are wrong one by one. */
#include <openssl/evp.h>

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

static vd_status write_memory(void *arg, int64_t offset, const void *bytes, size_t size)
{
	struct memory *memory = arg;

	if (!vdi_grow((void **) &memory->bytes, &memory->capacity, (size_t) offset + size + 64, 1))
		return VD_NOMEM;
	memcpy(memory->bytes + offset, bytes, size);
	return VD_OK;
}

struct pair {
	const char     *bucket;
	struct vd_bytes key, value;
};

/* Pairs in the order of buckets and keys. */
static struct memory make_file(const struct pair *pairs, size_t count)
{
	struct memory		memory = { 0 };
	struct vdi_bolt_sink	sink = { write_memory, &memory };
	struct vdi_bolt_writer *writer;

	assert_status(vdi_bolt_writer_new(&sink, &writer), VD_OK);
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || strcmp(pairs[i - 1].bucket, pairs[i].bucket) != 0)
			assert_status(vdi_bolt_bucket_begin(writer, pairs[i].bucket), VD_OK);
		assert_status(vdi_bolt_put(writer, pairs[i].key, pairs[i].value), VD_OK);
		if (i + 1 == count || strcmp(pairs[i + 1].bucket, pairs[i].bucket) != 0)
			assert_status(vdi_bolt_bucket_end(writer), VD_OK);
	}
	assert_status(vdi_bolt_finish(writer, &memory.size), VD_OK);
	(void) vdi_bolt_writer_free(writer);
	return memory;
}

/* ---- Records ---- */

struct place {
	unsigned char bytes[20];
};

static struct place place_of(vd_rev revision, uint64_t sub)
{
	struct place place = { { [8] = '_', [17] = 't' } };

	vdi_put_big_endian(place.bytes, (uint64_t) revision);
	vdi_put_big_endian(place.bytes + 9, sub);
	return place;
}

struct seen {
	size_t	     count;
	bool	     is_delete;
	struct vd_kv kv; /* of the last one, without its bytes */
	char	     text[64];
	vd_status    answer;
};

static vd_status note(void *arg, bool is_delete, struct vd_kv *kv)
{
	struct seen *seen = arg;

	seen->count++;
	seen->is_delete = is_delete;
	seen->kv = *kv;
	snprintf(seen->text, sizeof seen->text, "%.*s=%.*s", (int) VDI_MIN(kv->key_size, 20u), kv->data,
		 (int) VDI_MIN(kv->value_size, 20u), kv->data + kv->key_size);
	return seen->answer;
}

/* One record alone; *ret_revision: the snapshot's. */
static vd_status read_one(struct vd_bytes key, struct vd_bytes value, struct seen *seen, vd_rev *ret_revision)
{
	struct pair	    pair = { "key", key, value };
	struct memory	    memory = make_file(&pair, 1);
	struct vdi_snapshot snapshot;
	struct vd_error	    error = { 0 };
	vd_status	    status;

	memset(seen->text, 0, sizeof seen->text);
	seen->count = 0;
	assert_status(
		vdi_snapshot_init(&snapshot, (struct vd_bytes) { memory.bytes, (size_t) memory.size }, NULL),
		VD_OK);
	assert_int_equal(snapshot.compacted, -1);
	status = vdi_snapshot_each(&snapshot, note, seen, &error);
	if (status == VD_CORRUPT || status == VD_INVALID) {
		assert_true(error.message[0]);
		assert_int_equal(seen->count, 0);
	}
	*ret_revision = snapshot.revision;
	vdi_free(memory.bytes);
	return status;
}

struct fields {
	const char *key, *value;
	uint64_t    create_rev, version, lease;
};

static struct vd_bytes encode(uint8_t *room, const struct fields *fields, vd_rev revision)
{
	struct vdi_wire_out out = { room, 0 };

	if (fields->key)
		vdi_wire_bytes(&out, 1, vd_bytes_of(fields->key));
	vdi_wire_number(&out, 2, fields->create_rev);
	vdi_wire_number(&out, 3, (uint64_t) revision);
	vdi_wire_number(&out, 4, fields->version);
	if (fields->value)
		vdi_wire_bytes(&out, 5, vd_bytes_of(fields->value));
	vdi_wire_number(&out, 6, fields->lease);
	return (struct vd_bytes) { room, out.size };
}

static void e409_a_record_has_all_its_fields(void **state)
{
	struct fields fields = { "k", "v", 3, 2, 77 };
	struct place  place = place_of(5, 9);
	struct seen   seen = { .answer = VD_OK };
	uint8_t	      room[128];
	vd_rev	      revision;

	(void) state;
	assert_status(
		read_one((struct vd_bytes) { place.bytes, 17 }, encode(room, &fields, 5), &seen, &revision),
		VD_OK);
	assert_int_equal(revision, 5);
	assert_int_equal(seen.count, 1);
	assert_string_equal(seen.text, "k=v");
	assert_false(seen.is_delete);
	assert_true(seen.kv.mod_rev == 5 && seen.kv.sub == 9 && seen.kv.create_rev == 3 &&
		    seen.kv.version == 2 && seen.kv.lease == 77);
	/* a tombstone: key and place only, whatever else stands there */
	assert_status(
		read_one((struct vd_bytes) { place.bytes, 18 }, encode(room, &fields, 5), &seen, &revision),
		VD_OK);
	assert_int_equal(revision, 5);
	assert_string_equal(seen.text, "k=");
	assert_true(seen.is_delete);
	assert_true(seen.kv.mod_rev == 5 && seen.kv.sub == 9 && seen.kv.create_rev == 0 &&
		    seen.kv.version == 0 && seen.kv.lease == 0);
	/* nothing but a place: it only raises the revision */
	assert_status(read_one((struct vd_bytes) { place.bytes, 17 }, VD_BYTES_NONE, &seen, &revision),
		      VD_OK);
	assert_int_equal(revision, 5);
	assert_int_equal(seen.count, 0);
	/* an answer ends it */
	seen.answer = VD_FULL;
	assert_status(
		read_one((struct vd_bytes) { place.bytes, 17 }, encode(room, &fields, 5), &seen, &revision),
		VD_FULL);
}

/* Fields in the other order, and fields that no record has. */
static void fields_of_a_record_come_in_any_order(void **state)
{
	struct place	    place = place_of(5, 9);
	struct seen	    seen = { .answer = VD_OK };
	uint8_t		    room[128];
	struct vdi_wire_out out = { room, 0 };
	vd_rev		    revision;

	(void) state;
	vdi_wire_number(&out, 6, 77);
	vdi_wire_bytes(&out, 9, vd_bytes_of("unknown"));
	vdi_wire_bytes(&out, 5, vd_bytes_of("v"));
	vdi_wire_number(&out, 4, 2);
	vdi_wire_number(&out, 3, 5);
	vdi_wire_number(&out, 2, 3);
	vdi_wire_number(&out, 8, 99);
	vdi_wire_bytes(&out, 1, vd_bytes_of("k"));
	assert_status(read_one((struct vd_bytes) { place.bytes, 17 }, (struct vd_bytes) { room, out.size },
			       &seen, &revision),
		      VD_OK);
	assert_string_equal(seen.text, "k=v");
	assert_true(seen.kv.mod_rev == 5 && seen.kv.sub == 9 && seen.kv.create_rev == 3 &&
		    seen.kv.version == 2 && seen.kv.lease == 77);
}

static void what_a_record_may_say(void **state)
{
	static const struct {
		vd_rev	      revision;
		uint64_t      sub;
		struct fields fields;
		vd_status     put, delete;
	} rows[] = {
		{ 5, 0, { "k", "v", 5, 1, 0 }, VD_OK, VD_OK },
		{ 5, UINT32_MAX >> 1, { "k", "v", 5, 1, 0 }, VD_OK, VD_OK },
		{ 5, (uint64_t) UINT32_MAX + 1, { "k", "v", 5, 1, 0 }, VD_CORRUPT, VD_CORRUPT },
		{ 5, UINT64_MAX, { "k", "v", 5, 1, 0 }, VD_CORRUPT, VD_CORRUPT },
		{ 1, 0, { "k", "v", 1, 1, 0 }, VD_OK, VD_OK },
		{ 0, 0, { "k", "v", 1, 1, 0 }, VD_CORRUPT, VD_CORRUPT },
		{ 0, 0, { "k", "v", 0, 1, 0 }, VD_CORRUPT, VD_CORRUPT },
		{ -1, 0, { "k", "v", 1, 1, 0 }, VD_CORRUPT, VD_CORRUPT },
		{ 5, 0, { "k", "v", 6, 1, 0 }, VD_CORRUPT, VD_OK },
		{ 5, 0, { "k", "v", 0, 1, 0 }, VD_CORRUPT, VD_OK },
		{ 5, 0, { "k", "v", UINT64_MAX, 1, 0 }, VD_CORRUPT, VD_OK },
		{ 5, 0, { "k", "v", 1, 0, 0 }, VD_CORRUPT, VD_OK },
		{ 5, 0, { "k", "v", 1, UINT64_MAX, 0 }, VD_CORRUPT, VD_OK },
		{ 5, 0, { "k", NULL, 1, 1, 0 }, VD_OK, VD_OK },
		{ 5, 0, { NULL, "v", 1, 1, 0 }, VD_CORRUPT, VD_CORRUPT },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		for (unsigned is_delete = 0; is_delete < 2; is_delete++) {
			struct place place = place_of(rows[i].revision, rows[i].sub);
			struct seen  seen = { .answer = VD_OK };
			uint8_t	     room[128];
			vd_rev	     revision;
			vd_status    status =
				read_one((struct vd_bytes) { place.bytes, 17 + is_delete },
					 encode(room, &rows[i].fields, rows[i].revision), &seen, &revision);

			if (status != (is_delete ? rows[i].delete : rows[i].put))
				fail_msg("row %zu, delete %u: status %d", i, is_delete, (int) status);
			assert_int_equal(revision, status == VD_OK ? rows[i].revision : 0);
		}
}

static void places_of_records_are_checked(void **state)
{
	struct fields	fields = { "k", "v", 3, 2, 0 };
	struct place	place = place_of(5, 0);
	struct seen	seen = { .answer = VD_OK };
	uint8_t		room[128];
	struct vd_bytes value = encode(room, &fields, 5);
	vd_rev		revision;

	(void) state;
	for (size_t size = 1; size <= 20; size++)
		assert_status(read_one((struct vd_bytes) { place.bytes, size }, value, &seen, &revision),
			      size == 17 || size == 18 ? VD_OK : VD_CORRUPT);
	place.bytes[17] = 'T';
	assert_status(read_one((struct vd_bytes) { place.bytes, 18 }, value, &seen, &revision), VD_CORRUPT);
	place.bytes[17] = 't';
	place.bytes[8] = '-';
	assert_status(read_one((struct vd_bytes) { place.bytes, 17 }, value, &seen, &revision), VD_CORRUPT);
	assert_status(read_one((struct vd_bytes) { place.bytes, 18 }, value, &seen, &revision), VD_CORRUPT);
	place.bytes[8] = '_';
	for (size_t size = 1; size < value.size; size++) { /* cut off: damage, or fewer fields */
		vd_status status = read_one((struct vd_bytes) { place.bytes, 17 },
					    (struct vd_bytes) { room, size }, &seen, &revision);

		assert_true(status == VD_CORRUPT || (status == VD_OK && size == value.size - 3));
	}
}

static void a_key_has_a_largest_size(void **state)
{
	static uint8_t room[VD_KEY_SIZE_MAX + 100];
	static char    key[VD_KEY_SIZE_MAX + 2];
	struct place   place = place_of(5, 0);
	struct seen    seen = { .answer = VD_OK };
	vd_rev	       revision;

	(void) state;
	for (unsigned more = 0; more < 2; more++) {
		struct fields fields = { key, "v", 3, 2, 0 };

		memset(key, 'k', VD_KEY_SIZE_MAX + more);
		assert_status(read_one((struct vd_bytes) { place.bytes, 17 }, encode(room, &fields, 5), &seen,
				       &revision),
			      more ? VD_INVALID : VD_OK);
		assert_status(read_one((struct vd_bytes) { place.bytes, 18 }, encode(room, &fields, 5), &seen,
				       &revision),
			      more ? VD_INVALID : VD_OK);
	}
}

/* ---- Marks and digests ---- */

static vd_rev compacted_of(const struct pair *pairs, size_t count)
{
	struct memory	    memory = make_file(pairs, count);
	struct vdi_snapshot snapshot;

	assert_status(
		vdi_snapshot_init(&snapshot, (struct vd_bytes) { memory.bytes, (size_t) memory.size }, NULL),
		VD_OK);
	vdi_free(memory.bytes);
	return snapshot.compacted;
}

static void e409_the_later_mark_counts(void **state)
{
	struct place	four = place_of(4, 0), nine = place_of(9, 0);
	struct vd_bytes finished = vd_bytes_of("finishedCompactRev"),
			scheduled = vd_bytes_of("scheduledCompactRev"), other = vd_bytes_of("aCompactRev");
	struct vd_bytes at_four = { four.bytes, 17 }, at_nine = { nine.bytes, 17 };

	(void) state;
	assert_int_equal(
		compacted_of(
			(struct pair[]) { { "meta", finished, at_four }, { "meta", scheduled, at_nine } }, 2),
		9);
	assert_int_equal(
		compacted_of(
			(struct pair[]) { { "meta", finished, at_nine }, { "meta", scheduled, at_four } }, 2),
		9);
	assert_int_equal(compacted_of((struct pair[]) { { "meta", finished, at_four } }, 1), 4);
	assert_int_equal(compacted_of((struct pair[]) { { "meta", scheduled, at_four } }, 1), 4);
	assert_int_equal(
		compacted_of((struct pair[]) { { "meta", other, at_nine }, { "meta", scheduled, at_four } },
			     2),
		4);
	assert_int_equal(compacted_of((struct pair[]) { { "meta", other, at_nine } }, 1), -1);
	for (size_t size = 0; size < 12; size++)
		assert_int_equal(
			compacted_of((struct pair[]) { { "meta", finished, { four.bytes, size } } }, 1),
			size < 8 ? -1 : 4);
	assert_int_equal(compacted_of((struct pair[]) { { "key", finished, VD_BYTES_NONE } }, 1), -1);
}

static void e165_a_digest_at_the_end_is_checked(void **state)
{
	struct pair	    pair = { "meta", vd_bytes_of("a"), vd_bytes_of("b") };
	struct memory	    memory = make_file(&pair, 1);
	size_t		    size = (size_t) memory.size;
	struct vdi_snapshot snapshot;
	struct vd_error	    error;
	unsigned int	    digest_size;

	(void) state;
	assert_int_equal(
		EVP_Digest(memory.bytes, size, memory.bytes + size, &digest_size, EVP_sha256(), NULL), 1);
	assert_int_equal(digest_size, 32);
	assert_status(vdi_snapshot_init(&snapshot, (struct vd_bytes) { memory.bytes, size }, NULL), VD_OK);
	assert_status(vdi_snapshot_init(&snapshot, (struct vd_bytes) { memory.bytes, size + 32 }, NULL),
		      VD_OK);
	assert_int_equal(snapshot.file.size, size);
	for (size_t at = 0; at < 32; at++) {
		memory.bytes[size + at] ^= 1;
		assert_status(
			vdi_snapshot_init(&snapshot, (struct vd_bytes) { memory.bytes, size + 32 }, &error),
			VD_CORRUPT);
		assert_non_null(strstr(error.message, "digest"));
		memory.bytes[size + at] ^= 1;
	}
	memory.bytes[size - 1] ^= 1; /* a byte that says nothing */
	assert_status(vdi_snapshot_init(&snapshot, (struct vd_bytes) { memory.bytes, size + 32 }, NULL),
		      VD_CORRUPT);
	assert_status(vdi_snapshot_init(&snapshot, (struct vd_bytes) { memory.bytes, size }, NULL), VD_OK);
	vdi_free(memory.bytes);
}

/* ---- The report of a restore ---- */

struct restored {
	vd_status		   status;
	struct vdi_snapshot_report report;
	char			   auth[256];
	size_t			   auth_size;
	struct vd_error		   error;
};

/* nth: the allocation that fails; 0: none. */
static struct restored restore(const struct pair *pairs, size_t count, uint64_t nth)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct restored	       restored = { .report.compacted = 99 };
	struct memory	       memory = make_file(pairs, count);
	struct vd_store	      *store = NULL;
	struct vd_env	      *env;
	void		      *auth = NULL;
	int64_t		       live = vdi_alloc_live();

	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	vdi_alloc_fail_nth(nth, 1);
	restored.status =
		vdi_snapshot_restore(env, &options, (struct vd_bytes) { memory.bytes, (size_t) memory.size },
				     &store, &auth, &restored.auth_size, &restored.report, &restored.error);
	vdi_alloc_fail_nth(0, 0);
	if (restored.status == VD_OK) {
		assert_in_range(restored.auth_size, 0, sizeof restored.auth);
		memcpy(restored.auth, auth, restored.auth_size);
		vdi_free(auth);
		(void) vd_store_close_wait(store);
	}
	(void) vd_env_free(env);
	assert_int_equal(vdi_alloc_live(), live); /* nothing is left behind */
	vdi_free(memory.bytes);
	return restored;
}

static void e165_a_restore_reports_what_it_did(void **state)
{
	struct fields a = { "a", "1", 2, 1, 0 }, b = { "b", "2", 2, 1, 7 }, c = { "c", "3", 4, 1, 0 },
		      bad = { "d", "4", 9, 1, 0 };
	struct place	at[] = { place_of(2, 0), place_of(2, 1), place_of(4, 0), place_of(5, 0) };
	uint8_t		rooms[4][64], lease[16], revision[8] = { 0, 0, 0, 0, 0, 0, 0, 6 };
	struct vd_bytes places[4];
	struct restored restored;

	(void) state;
	for (size_t i = 0; i < 4; i++)
		places[i] = (struct vd_bytes) { at[i].bytes, 17 };
	struct vdi_wire_out out = { lease, 0 };
	vdi_wire_number(&out, 1, 7);
	vdi_wire_number(&out, 2, 60);
	struct pair pairs[] = {
		{ "auth", vd_bytes_of("authEnabled"), { "\1", 1 } },
		{ "auth", vd_bytes_of("authRevision"), { revision, 8 } },
		{ "authRoles", vd_bytes_of("r"), vd_bytes_of("role") },
		{ "authUsers", vd_bytes_of("u"), vd_bytes_of("user") },
		{ "key", places[0], encode(rooms[0], &a, 2) },
		{ "key", places[1], encode(rooms[1], &b, 2) },
		{ "key", places[2], encode(rooms[2], &c, 4) },
		{ "lease", vd_bytes_of("7"), { lease, out.size } },
	};
	restored = restore(pairs, VDI_ARRAY_SIZE(pairs), 0);
	assert_status(restored.status, VD_OK);
	assert_true(restored.report.records == 3 && restored.report.leases == 1 &&
		    restored.report.revision == 4 && restored.report.compacted == -1);
	assert_int_equal(restored.auth_size, 4 + 6 + 6);
	assert_memory_equal(restored.auth, "\x08\x01\x10\x06\x1a\x04user\x22\x04role", restored.auth_size);
	/* each allocation that fails is told, and undone */
	for (uint64_t nth = 1; restored.status == VD_OK || restored.status == VD_NOMEM; nth++) {
		restored = restore(pairs, VDI_ARRAY_SIZE(pairs), nth);
		if (restored.status == VD_OK)
			break;
		assert_status(restored.status, VD_NOMEM);
	}
	assert_status(restored.status, VD_OK);
	/* a record that makes no sense while others are gathered: all of it is undone */
	struct pair damaged[] = { pairs[4], pairs[5], { "key", places[3], encode(rooms[3], &bad, 5) } };
	assert_status(restore(damaged, 3, 0).status, VD_CORRUPT);
	/* a lease that cannot be read */
	struct pair cut[] = { { "lease", vd_bytes_of("7"), { lease, out.size - 1 } } };
	assert_status(restore(cut, 1, 0).status, VD_CORRUPT);
	/* of the wrong size: as if it were not there */
	struct pair sizes[] = { { "auth", vd_bytes_of("authEnabled"), { "\1\1", 2 } },
				{ "auth", vd_bytes_of("authRevision"), { revision, 7 } },
				{ "auth", vd_bytes_of("x"), { revision, 8 } } };
	restored = restore(sizes, 3, 0);
	assert_status(restored.status, VD_OK);
	assert_int_equal(restored.auth_size, 0);
	assert_true(restored.report.records == 0 && restored.report.leases == 0 &&
		    restored.report.revision == 0 && restored.report.compacted == -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e409_a_record_has_all_its_fields),
		cmocka_unit_test(fields_of_a_record_come_in_any_order),
		cmocka_unit_test(what_a_record_may_say),
		cmocka_unit_test(places_of_records_are_checked),
		cmocka_unit_test(a_key_has_a_largest_size),
		cmocka_unit_test(e409_the_later_mark_counts),
		cmocka_unit_test(e165_a_digest_at_the_end_is_checked),
		cmocka_unit_test(e165_a_restore_reports_what_it_did),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
