/* Unit tests of storage/mvcc/disk/journal.c and journal_segment.c: damage, recycling, formats, growth. The
 * crash tests are in test_backend.c. */
#include "backend_model.h"
#include "disk_sim.h"
#include "journal.h"

struct world {
	struct vdi_disk	   *disk;
	struct vdi_dir	   *dir;
	struct vdi_journal *journal;
	uint64_t	    covered;
	int64_t		    segment_size;
	vd_rev		    revision;
	struct vd_error	    error;
	uint64_t	    seen_first; /* indexes that open gave */
	uint64_t	    seen_last;
};

static void world_init(struct world *world, uint64_t seed)
{
	memset(world, 0, sizeof *world);
	assert_status(vdi_disk_sim_new(seed, &world->disk), VD_OK);
	world->segment_size = 8192;
	world->revision = 1;
}

static vd_status note_seen(void *arg, const struct vdi_segment_record *record, struct vd_error *reterr)
{
	struct world *world = arg;

	(void) reterr;
	if (world->seen_first == 0)
		world->seen_first = record->index;
	world->seen_last = record->index;
	return VD_OK;
}

static void world_close(struct world *world)
{
	world->journal = vdi_journal_close(world->journal);
	world->dir = vdi_dir_close(world->dir);
}

static vd_status world_open(struct world *world)
{
	struct vdi_journal_options options = { .seed = vdi_disk_sim_operations(world->disk) + 1,
					       .segment_size = world->segment_size,
					       .covered = world->covered };
	vd_status		   status;

	world->seen_first = world->seen_last = 0;
	assert_status(vdi_dir_open(world->disk, "data", &world->dir, &world->error), VD_OK);
	options.dir = world->dir;
	status = vdi_journal_open(&options, note_seen, world, &world->journal, &world->error);
	if (status == VD_OK)
		status = vdi_journal_start(world->journal, &world->error);
	if (status != VD_OK)
		world_close(world);
	return status;
}

static void world_fini(struct world *world)
{
	world_close(world);
	vdi_disk_sim_free(world->disk);
}

/* One synced group of count commits of one put each. */
static vd_status write_group(struct world *world, unsigned count, size_t value_size)
{
	static const char value[1 << 16];

	for (unsigned i = 0; i < count; i++) {
		struct vdi_change change = { false, NULL, NULL };
		struct vdi_commit commit = { .revision = world->revision + 1,
					     .changes = &change,
					     .change_count = 1 };

		assert_status(
			vd_kv_new(vd_bytes_of("/k"), (struct vd_bytes) { value, value_size }, &change.kv),
			VD_OK);
		change.kv->mod_rev = change.kv->create_rev = commit.revision;
		change.kv->version = 1;
		assert_status(
			vdi_journal_append(world->journal, &commit, VDI_JOURNAL_NO_RESERVE, &world->error),
			VD_OK);
		vd_kv_unref(change.kv);
		world->revision++;
	}
	return vdi_journal_sync(world->journal, &world->error);
}

static const char *segment_name(uint64_t sequence)
{
	static char name[VDI_DISK_NAME_MAX];

	vdi_segment_name(VDI_SEGMENT_JOURNAL, sequence, name);
	return name;
}

/* Every byte of every record and header in turn: closed cleanly, so there is always something valid behind
 * it. */
static void any_turned_bit_is_found_and_named(void **state)
{
	struct world world;
	int64_t	     size, end = 0;

	(void) state;
	world_init(&world, 1);
	assert_status(world_open(&world), VD_OK);
	for (int i = 0; i < 20; i++)
		assert_status(write_group(&world, 1 + i % 3, 150), VD_OK);
	world_close(&world);
	for (uint64_t sequence = 1; vdi_disk_sim_content(world.disk, segment_name(sequence), &size);
	     sequence++) {
		const uint8_t *content = vdi_disk_sim_content(world.disk, segment_name(sequence), &size);
		bool is_last = vdi_disk_sim_content(world.disk, segment_name(sequence + 1), &end) == NULL;

		content = vdi_disk_sim_content(world.disk, segment_name(sequence), &size);
		for (end = size; end > VDI_SEGMENT_HEADER_SIZE && content[end - 1] == 0; end--)
			;
		if (is_last)
			end = (end + 7) / 8 * 8 - VDI_SEGMENT_RECORD_HEADER_SIZE; /* but for the mark */
		else
			end = (end + 7) / 8 * 8;
		for (int64_t offset = 0; offset < end; offset++) {
			uint64_t operations = vdi_disk_sim_operations(world.disk);

			vdi_disk_sim_flip(world.disk, segment_name(sequence), offset,
					  (uint8_t) (1u << (offset % 8)));
			assert_status(world_open(&world), VD_CORRUPT);
			assert_non_null(strstr(world.error.message, "journal-"));
			assert_int_equal(vdi_disk_sim_operations(world.disk),
					 operations); /* nothing was changed */
			vdi_disk_sim_flip(world.disk, segment_name(sequence), offset,
					  (uint8_t) (1u << (offset % 8)));
		}
	}
	assert_status(world_open(&world), VD_OK);
	assert_int_equal(world.seen_last, 39);
	world_fini(&world);
}

static void a_cut_or_missing_file_is_found(void **state)
{
	struct world world;
	int64_t	     size;

	(void) state;
	world_init(&world, 2);
	assert_status(world_open(&world), VD_OK);
	for (int i = 0; i < 30; i++)
		assert_status(write_group(&world, 2, 300), VD_OK);
	world_close(&world);
	for (uint64_t sequence = 1; sequence < 4; sequence++) {
		struct vdi_dir *dir;

		assert_non_null(vdi_disk_sim_content(world.disk, segment_name(sequence), &size));
		assert_status(vdi_dir_open(world.disk, "data", &dir, NULL), VD_OK);
		assert_status(vdi_dir_rename(dir, segment_name(sequence), "away", NULL), VD_OK);
		vdi_dir_close(dir);
		assert_status(world_open(&world), VD_CORRUPT);
		assert_status(vdi_dir_open(world.disk, "data", &dir, NULL), VD_OK);
		assert_status(vdi_dir_rename(dir, "away", segment_name(sequence), NULL), VD_OK);
		assert_status(vdi_dir_sync(dir, NULL), VD_OK);
		vdi_dir_close(dir);
	}
	assert_status(world_open(&world), VD_OK);
	world_close(&world);
	vdi_disk_sim_cut(world.disk, segment_name(2), 6000);
	assert_status(world_open(&world), VD_CORRUPT);
	assert_non_null(strstr(world.error.message, segment_name(2)));
	assert_non_null(strstr(world.error.message, "6000"));
	world_fini(&world);
}

static void an_empty_last_file_is_a_leftover(void **state)
{
	struct world	 world;
	struct vdi_file *file;

	(void) state;
	world_init(&world, 3);
	assert_status(world_open(&world), VD_OK);
	assert_status(write_group(&world, 3, 100), VD_OK);
	assert_status(vdi_file_open(world.dir, segment_name(2), VDI_FILE_CREATE, &file, NULL), VD_OK);
	vdi_file_close(file);
	world_close(&world);
	assert_status(world_open(&world), VD_OK);
	assert_int_equal(world.seen_last, 3);
	assert_null(vdi_disk_sim_content(world.disk, segment_name(2), &(int64_t) { 0 }));
	for (int i = 0; i < 20; i++)
		assert_status(write_group(&world, 3, 200), VD_OK);
	world_close(&world);
	assert_status(world_open(&world), VD_OK);
	world_fini(&world);
}

/* The checksum of the header is made right again after its format was raised. */
/* The local history of an etcd and an embedded store do not share a directory. */
static void a_directory_of_another_kind_is_refused(void **state)
{
	struct vdi_segment_header header = { .family = VDI_SEGMENT_HISTORY,
					     .sequence = 1,
					     .first_index = 1,
					     .nonce = 1,
					     .size = VDI_SEGMENT_HEADER_SIZE,
					     .revision = 4 };
	struct vdi_file		 *file;
	struct world		  world;

	(void) state;
	world_init(&world, 8);
	assert_status(vdi_dir_open(world.disk, "data", &world.dir, NULL), VD_OK);
	assert_status(vdi_segment_create(world.dir, &header, NULL, &file, NULL), VD_OK);
	vdi_file_close(file);
	world_close(&world);
	assert_status(world_open(&world), VD_INVALID);
	assert_non_null(strstr(world.error.message, "holds the local history of an etcd"));
	world_fini(&world);
}

static void a_newer_format_is_refused_by_name(void **state)
{
	struct vdi_segment_header header = { .sequence = 1, .first_index = 1, .size = 8192 };
	struct vdi_file		 *file;
	struct world		  world;

	(void) state;
	world_init(&world, 4);
	assert_status(vdi_dir_open(world.disk, "data", &world.dir, NULL), VD_OK);
	assert_status(vdi_segment_create_format(world.dir, &header, VDI_SEGMENT_FORMAT + 1, &file, NULL),
		      VD_OK);
	vdi_file_close(file);
	world.dir = vdi_dir_close(world.dir);
	assert_status(world_open(&world), VD_NEWER_FORMAT);
	assert_non_null(strstr(world.error.message, "format 2"));
	world_fini(&world);
}

/* Files are used again; what an earlier life left in them never comes back, however the new records end. */
static void recycled_files_never_show_their_past(void **state)
{
	(void) state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct world world;
		uint64_t     first, last = 0;

		world_init(&world, seed);
		assert_status(world_open(&world), VD_OK);
		for (unsigned i = 0; i < 20 + seed; i++) {
			uint64_t before = vdi_journal_writing_sequence(world.journal);
			uint64_t durable = vdi_journal_durable_index(world.journal);

			assert_status(write_group(&world, 1 + i % 4, 250),
				      VD_OK); /* equal sizes: old records lie where new ones will */
			if (vdi_journal_writing_sequence(world.journal) != before) {
				world.covered = durable;
				vdi_journal_release(world.journal,
						    vdi_journal_writing_sequence(world.journal));
			}
		}
		last = vdi_journal_durable_index(world.journal);
		if (seed % 2) {
			vdi_disk_sim_fail_nth(world.disk, 1 + seed % 3, VDI_DISK_SIM_CRASH);
			(void) !write_group(&world, 4, 250);
		}
		world_close(&world);
		vdi_disk_sim_crash(world.disk);
		first = world.covered + 1;
		assert_status(world_open(&world), VD_OK);
		assert_true(world.seen_first == first || world.seen_first == 0);
		assert_in_range(world.seen_last, last - (seed % 2 ? 0 : 1), last + 4);
		world_fini(&world);
	}
}

/* A refused group of two, then its first commit alone with the very same content: the second one, which still
 * lies behind it, must not fit. */
static void what_was_refused_does_not_join_a_later_group(void **state)
{
	(void) state;
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct world world;

		world_init(&world, seed);
		assert_status(world_open(&world), VD_OK);
		assert_status(write_group(&world, 1, 100), VD_OK);
		vdi_disk_sim_fail_nth(world.disk, 1, VDI_DISK_SIM_SHORT_WRITE);
		assert_status(write_group(&world, 2, 100), VD_NO_SPACE);
		world.revision -= 2;
		assert_status(write_group(&world, 1, 100), VD_OK);
		vdi_disk_sim_fail_nth(world.disk, 1, VDI_DISK_SIM_IO); /* no mark */
		world_close(&world);
		assert_status(world_open(&world), VD_OK);
		assert_int_equal(world.seen_last, 2);
		world_fini(&world);
	}
}

/* Answered with VD_NO_SPACE means gone, even when the process dies next: whole records of the group may have
 * been written before room ran out. */
static void what_was_refused_is_undone_on_disk(void **state)
{
	(void) state;
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct world world;

		world_init(&world, seed);
		assert_status(world_open(&world), VD_OK);
		assert_status(write_group(&world, 1, 100), VD_OK);
		vdi_disk_sim_fail_nth(world.disk, 1, VDI_DISK_SIM_SHORT_WRITE);
		assert_status(write_group(&world, 3, 100), VD_NO_SPACE);
		vdi_disk_sim_fail_nth(world.disk, 1, VDI_DISK_SIM_IO); /* no mark */
		world_close(&world);
		if (seed % 2)
			vdi_disk_sim_crash(world.disk);
		assert_status(world_open(&world), VD_OK);
		assert_int_equal(world.seen_last, 1);
		world_fini(&world);
	}
}

/* Two whole groups, the second of which is not the one that followed the first: the order of an earlier life
 * of the same file. */
static void records_that_do_not_follow_are_not_read(void **state)
{
	struct vdi_segment_header header = { .sequence = 1, .first_index = 1, .size = 8192, .nonce = 5 };
	uint8_t			  bytes[2 * VDI_SEGMENT_RECORD_HEADER_SIZE];
	struct vdi_file		 *file;
	struct world		  world;
	uint64_t		  checksum;

	(void) state;
	for (int is_chained = 0; is_chained < 2; is_chained++) {
		world_init(&world, 4);
		assert_status(vdi_dir_open(world.disk, "data", &world.dir, NULL), VD_OK);
		assert_status(vdi_segment_create(world.dir, &header, NULL, &file, NULL), VD_OK);
		vdi_segment_record_prepare(bytes, VDI_SEGMENT_COMMIT, 0, 0);
		vdi_segment_record_prepare(bytes + VDI_SEGMENT_RECORD_HEADER_SIZE, VDI_SEGMENT_COMMIT, 0, 0);
		vdi_segment_record_seal(bytes, 1, header.nonce, header.checksum, 0, 0, &checksum);
		vdi_segment_record_seal(bytes + VDI_SEGMENT_RECORD_HEADER_SIZE, 2, header.nonce,
					is_chained ? checksum : checksum + 1, 1, 0, &checksum);
		assert_status(vdi_file_write(file, VDI_SEGMENT_HEADER_SIZE, bytes, sizeof bytes, NULL),
			      VD_OK);
		vdi_file_close(file);
		world.dir = vdi_dir_close(world.dir);
		assert_status(world_open(&world), VD_OK);
		assert_int_equal(world.seen_last, is_chained ? 2 : 1);
		world_fini(&world);
	}
}

/* A record that says it is further in its group than the journal is long is none, whatever its checksum
 * says. */
static void a_record_of_no_group_is_not_read(void **state)
{
	struct vdi_segment_header header = { .sequence = 1, .first_index = 1, .size = 8192, .nonce = 5 };
	uint8_t			  bytes[VDI_SEGMENT_RECORD_HEADER_SIZE];
	struct vdi_segment_reader reader;
	struct vdi_segment_record record;
	struct vdi_file		 *file;
	struct world		  world;
	uint64_t		  checksum;

	(void) state;
	for (uint32_t place = 0; place < 3; place++) {
		world_init(&world, 4);
		assert_status(vdi_dir_open(world.disk, "data", &world.dir, NULL), VD_OK);
		assert_status(vdi_segment_create(world.dir, &header, NULL, &file, NULL), VD_OK);
		vdi_segment_record_prepare(bytes, VDI_SEGMENT_COMMIT, 0, 0);
		vdi_segment_record_seal(bytes, 1, header.nonce, header.checksum, place, 0, &checksum);
		assert_status(vdi_file_write(file, VDI_SEGMENT_HEADER_SIZE, bytes, sizeof bytes, NULL),
			      VD_OK);
		vdi_file_close(file);
		assert_status(
			vdi_segment_reader_open(&reader, world.dir, VDI_SEGMENT_JOURNAL, 1, &world.error),
			VD_OK);
		assert_status(vdi_segment_reader_next(&reader, &record, &world.error),
			      place == 0 ? VD_OK : VD_NOT_FOUND);
		vdi_segment_reader_fini(&reader);
		world.dir = vdi_dir_close(world.dir);
		world_fini(&world);
	}
}

static void a_group_larger_than_a_file_gets_one_of_its_own(void **state)
{
	struct world world;

	(void) state;
	world_init(&world, 6);
	assert_status(world_open(&world), VD_OK);
	assert_status(write_group(&world, 2, 100), VD_OK);
	assert_status(write_group(&world, 5, 60000), VD_OK);
	assert_status(write_group(&world, 2, 100), VD_OK);
	world_close(&world);
	assert_status(world_open(&world), VD_OK);
	assert_int_equal(world.seen_last, 9);
	world_fini(&world);
}

static void a_journal_that_ends_before_the_checkpoint_is_damage(void **state)
{
	struct world world;

	(void) state;
	world_init(&world, 7);
	assert_status(world_open(&world), VD_OK);
	assert_status(write_group(&world, 5, 100), VD_OK);
	world_close(&world);
	world.covered = 20;
	assert_status(world_open(&world), VD_CORRUPT);
	world.covered = 3;
	assert_status(world_open(&world), VD_OK);
	assert_int_equal(world.seen_first, 4);
	world_fini(&world);
}

/* A process that died on a full disk before it released them, when one of its files had become the next one:
 * without them there is no room for another reserve, and without a reserve no commit is taken. */
static void e466_a_start_releases_files_that_the_checkpoint_covers(void **state)
{
	struct world world;
	int64_t	     size, used = 0;

	(void) state;
	world_init(&world, 21);
	assert_status(world_open(&world), VD_OK);
	while (vdi_journal_writing_sequence(world.journal) < 3)
		assert_status(write_group(&world, 1, 2000), VD_OK);
	assert_status(vdi_dir_unlink(world.dir, VDI_SEGMENT_RESERVE, NULL), VD_OK);
	world_close(&world);
	for (uint64_t sequence = 1; vdi_disk_sim_content(world.disk, segment_name(sequence), &size);
	     sequence++)
		used += size;
	vdi_disk_sim_set_capacity(world.disk, used);
	world.covered = (uint64_t) world.revision - 1;
	assert_status(world_open(&world), VD_OK);
	assert_null(vdi_disk_sim_content(world.disk, segment_name(1), &size));
	assert_null(vdi_disk_sim_content(world.disk, segment_name(2), &size));
	assert_non_null(vdi_disk_sim_content(world.disk, segment_name(3), &size));
	for (int i = 0; i < 20; i++) {
		assert_status(write_group(&world, 1, 2000), VD_OK);
		vdi_journal_release(world.journal, vdi_journal_writing_sequence(world.journal));
	}
	world_fini(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_turned_bit_is_found_and_named),
		cmocka_unit_test(a_cut_or_missing_file_is_found),
		cmocka_unit_test(an_empty_last_file_is_a_leftover),
		cmocka_unit_test(a_directory_of_another_kind_is_refused),
		cmocka_unit_test(a_newer_format_is_refused_by_name),
		cmocka_unit_test(recycled_files_never_show_their_past),
		cmocka_unit_test(what_was_refused_does_not_join_a_later_group),
		cmocka_unit_test(what_was_refused_is_undone_on_disk),
		cmocka_unit_test(records_that_do_not_follow_are_not_read),
		cmocka_unit_test(a_record_of_no_group_is_not_read),
		cmocka_unit_test(a_group_larger_than_a_file_gets_one_of_its_own),
		cmocka_unit_test(a_journal_that_ends_before_the_checkpoint_is_damage),
		cmocka_unit_test(e466_a_start_releases_files_that_the_checkpoint_covers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
