/* The embedded store's own formats: commits, records and whole journals. The first byte selects:
 *
 * 	0	the payload of a commit: refused, or all decoded slices are inside it
 * 	1	one record, as a checkpoint has it
 * 	2	a journal whose commits have these payloads: every checksum is right, the content
 * 		may be invalid
 * 	3	a valid journal, damaged: 4 bytes for each place (3 of offset, 1 of bits to flip);
 * 		opening reports it, or returns the first commits undamaged
 */
#include <stdio.h>

#include "disk_sim.h"
#include "fuzz.h"
#include "journal.h"
#include "load.h"
#include "record.h"

#define COMMITS 12

/* ---- Commits ---- */

static void check_record(const struct vdi_record *record, struct vd_bytes bytes)
{
	const char *start = bytes.data, *end = start + bytes.size;

	VDI_CHECK(record->key.size == 0 || ((const char *) record->key.data >= start &&
					    (const char *) record->key.data + record->key.size <= end));
	VDI_CHECK(record->value.size == 0 || ((const char *) record->value.data >= start &&
					      (const char *) record->value.data + record->value.size <= end));
	VDI_CHECK(record->mod_rev > 0 && record->previous_rev >= 0);
}

/* Returns the number of decoded changes and leases and a hash of them; VD_CORRUPT at any place ends it. */
static vd_status read_commit(vd_rev revision, struct vd_bytes bytes, uint64_t *ret_hash)
{
	struct vdi_commit_reader reader;
	struct vdi_record	 record;
	struct vdi_lease_change	 lease;
	struct vd_bytes		 where;
	uint64_t		 hash = 1469598103934665603u;
	size_t			 changes, leases;

	VDI_TRY(vdi_commit_reader_init(&reader, revision, bytes));
	changes = reader.change_count;
	leases = reader.lease_count;
	for (size_t i = 0; i < changes; i++) {
		struct vdi_record alone;

		VDI_TRY(vdi_commit_reader_record(&reader, &record, &where));
		check_record(&record, bytes);
		/* A checkpoint keeps it in the same form. */
		VDI_CHECK(vdi_record_decode(where, revision, &alone) == VD_OK &&
			  vd_bytes_equal(alone.key, record.key) && alone.sub == record.sub);
		hash = hash * 31 + record.key.size * 7 + record.value.size;
	}
	for (size_t i = 0; i < leases; i++) {
		VDI_TRY(vdi_commit_reader_lease(&reader, &lease));
		hash = hash * 31 + (uint64_t) lease.id;
	}
	*ret_hash = hash;
	return vdi_commit_reader_end(&reader);
}

static void read_record(struct vd_bytes bytes)
{
	struct vdi_record record;
	struct vd_kv	 *kv = NULL;

	if (vdi_record_decode(bytes, 1000, &record) != VD_OK)
		return;
	check_record(&record, bytes);
	if (vdi_record_kv(&record, &kv) != VD_OK)
		return;
	VDI_CHECK(vd_bytes_equal(vd_kv_key(kv), record.key) && kv->mod_rev == record.mod_rev &&
		  (record.is_delete || vd_bytes_equal(vd_kv_value(kv), record.value)));
	vd_kv_unref(kv);
}

/* ---- Journals ---- */

struct world {
	struct vdi_disk *disk;
	struct vdi_dir	*dir;
};

static void open_world(struct world *world)
{
	VDI_CHECK(vdi_disk_sim_new(1, &world->disk) == VD_OK &&
		  vdi_dir_open(world->disk, "data", &world->dir, NULL) == VD_OK);
}

static void close_world(struct world *world)
{
	vdi_dir_close(world->dir);
	vdi_disk_sim_free(world->disk);
}

/* Writes the payloads with correct checksums, as another program or version could have done. */
static void write_payloads(struct world *world, const uint8_t *data, size_t size)
{
	struct vdi_segment_header header = {
		.sequence = 1, .first_index = 1, .nonce = 77, .size = VDI_SEGMENT_SIZE_MIN + 65536
	};
	struct vdi_file *file = NULL;
	uint64_t	 previous, index = 1;
	int64_t		 offset = VDI_SEGMENT_HEADER_SIZE;
	static uint64_t	 aligned[(VDI_SEGMENT_RECORD_HEADER_SIZE + 264) / 8];
	uint8_t		*bytes = (uint8_t *) aligned;

	VDI_CHECK(vdi_segment_create(world->dir, &header, NULL, &file, NULL) == VD_OK);
	previous = header.checksum;
	for (size_t at = 0; at + 1 < size && offset + 512 < header.size;) {
		size_t payload = VDI_MIN(data[at], size - at - 1), whole;

		memset(aligned, 0, sizeof aligned);
		vdi_segment_record_prepare(bytes, VDI_SEGMENT_COMMIT, (vd_rev) index + 1, payload);
		memcpy(bytes + VDI_SEGMENT_RECORD_HEADER_SIZE, data + at + 1, payload);
		whole = vdi_segment_record_seal(bytes, index++, header.nonce, previous, 0, 5, &previous);
		VDI_CHECK(vdi_file_write(file, offset, bytes, whole, NULL) == VD_OK);
		offset += (int64_t) whole;
		at += 1 + payload;
	}
	vdi_file_close(file);
}

static void write_commits(struct world *world)
{
	struct vdi_journal_options options = { .dir = world->dir,
					       .seed = 3,
					       .segment_size = VDI_SEGMENT_SIZE_MIN + 4096 };
	struct vdi_journal	  *journal = NULL;

	VDI_CHECK(vdi_journal_open(&options, NULL, NULL, &journal, NULL) == VD_OK &&
		  vdi_journal_start(journal, NULL) == VD_OK);
	for (int i = 0; i < COMMITS; i++) {
		char		  key[16], value[1500];
		struct vdi_change change = { 0 };
		struct vdi_commit commit = { .revision = i + 2, .changes = &change, .change_count = 1 };

		(void) snprintf(key, sizeof key, "key-%d", i);
		memset(value, 'a' + i, sizeof value);
		VDI_CHECK(vd_kv_new(vd_bytes_of(key),
				    (struct vd_bytes) { value, sizeof value - (size_t) i * 100 },
				    &change.kv) == VD_OK);
		change.kv->create_rev = change.kv->mod_rev = i + 2;
		change.kv->version = 1;
		VDI_CHECK(vdi_journal_append(journal, &commit, VDI_JOURNAL_NO_RESERVE, NULL) == VD_OK &&
			  vdi_journal_sync(journal, NULL) == VD_OK);
		vd_kv_unref(change.kv);
	}
	vdi_journal_close(journal);
}

/* Damages the files; false: nothing was changed. */
static void damage(struct world *world, const uint8_t *data, size_t size)
{
	char	name[VDI_DISK_NAME_MAX];
	int64_t file_size = 0;

	for (size_t at = 0; at + 4 <= size; at += 4) {
		int64_t place = data[at] | data[at + 1] << 8 | data[at + 2] << 16;

		vdi_segment_name(VDI_SEGMENT_JOURNAL, 1 + data[at + 3] % 2, name);
		if (vdi_disk_sim_content(world->disk, name, &file_size) && file_size > 0)
			vdi_disk_sim_flip(world->disk, name, place % file_size, data[at + 3] | 1);
	}
}

struct seen {
	vd_rev	 next;
	unsigned count;
	bool	 checks; /* compare with the commits of write_commits */
};

static vd_status take_commit(void *arg, const struct vdi_segment_record *record, struct vd_error *reterr)
{
	struct seen *seen = arg;
	uint64_t     hash;
	vd_status    status = read_commit(record->revision, record->payload, &hash);

	seen->count++;
	if (seen->checks) {
		VDI_CHECK(status == VD_OK && record->revision == seen->next); /* in order, none between */
		seen->next++;
	}
	return status == VD_OK ? VD_OK : vd_error_set(reterr, status, "the payload is invalid");
}

static void read_journal(struct world *world, bool is_damaged)
{
	struct vdi_journal_options options = { .dir = world->dir,
					       .seed = 4,
					       .segment_size = VDI_SEGMENT_SIZE_MIN + 4096 };
	struct vdi_journal	  *journal = NULL;
	struct vdi_load		   load;
	struct vdi_backend_sink	   sink = { 0 };
	struct seen		   seen = { .next = 2, .checks = is_damaged };
	struct vd_error		   error = { 0 };
	vd_status		   status = vdi_journal_open(&options, take_commit, &seen, &journal, &error);

	VDI_CHECK(status == VD_OK ||
		  (error.message[0] && (status == VD_CORRUPT || status == VD_NEWER_FORMAT)));
	if (status == VD_OK) {
		vdi_load_init(&load, &sink);
		status = vdi_journal_replay(journal, vdi_load_survey, &load, &error);
		if (status == VD_OK)
			status = vdi_journal_replay(journal, vdi_load_bury, &load, &error);
		VDI_CHECK(status == VD_OK || status == VD_CORRUPT);
		vdi_load_fini(&load);
		vdi_journal_close(journal);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t	     live = vdi_alloc_live();
	struct world world;
	uint64_t     hash;

	if (size == 0)
		return 0;
	switch (data[0] % 4) {
	case 0: (void) read_commit(1000, (struct vd_bytes) { data + 1, size - 1 }, &hash); break;
	case 1: read_record((struct vd_bytes) { data + 1, size - 1 }); break;
	case 2:
		open_world(&world);
		write_payloads(&world, data + 1, VDI_MIN(size - 1, (size_t) 16384));
		read_journal(&world, false);
		close_world(&world);
		break;
	default:
		open_world(&world);
		write_commits(&world);
		damage(&world, data + 1, VDI_MIN(size - 1, (size_t) 64));
		read_journal(&world, true);
		close_world(&world);
		break;
	}
	VDI_CHECK(vdi_alloc_live() == live);
	return 0;
}
