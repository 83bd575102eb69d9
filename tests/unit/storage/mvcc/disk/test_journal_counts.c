/* Unit tests of storage/mvcc/disk/journal.c: what a journal says about itself (index, bytes, revision, files)
 * while it is written and after an open, the mark of a clean end, and commits that are refused. */
#include "disk_sim.h"
#include "journal.h"
#include "rand.h"
#include "record.h"
#include "vdtest.h"

#define COMMITS_MAX 2000
#define MARK_SIZE VDI_SEGMENT_RECORD_HEADER_SIZE

struct world {
	struct vdi_disk		  *disk;
	struct vdi_dir		  *dir;
	struct vdi_journal	  *journal;
	struct vdi_journal_options options;
	vd_rev			   revision;
	struct vd_error		   error;

	/* What was appended, by index. */
	uint64_t count;
	int64_t	 sizes[COMMITS_MAX + 1];
	uint64_t sequences[COMMITS_MAX + 1]; /* of the file; 0: not synced */

	/* What an open gave. */
	uint64_t seen_first, seen_last, seen_count;
};

static vd_status note_seen(void *arg, const struct vdi_segment_record *record, struct vd_error *reterr)
{
	struct world *w = arg;

	(void) reterr;
	assert_int_equal(record->kind, VDI_SEGMENT_COMMIT);
	if (w->seen_count++ == 0)
		w->seen_first = record->index;
	w->seen_last = record->index;
	return VD_OK;
}

static vd_status try_open(struct world *w)
{
	vd_status status;

	assert_status(vdi_dir_open(w->disk, "data", &w->dir, NULL), VD_OK);
	w->options.dir = w->dir;
	w->options.seed = vdi_disk_sim_operations(w->disk) + 1;
	w->seen_first = w->seen_last = w->seen_count = 0;
	status = vdi_journal_open(&w->options, note_seen, w, &w->journal, &w->error);
	if (status != VD_OK)
		w->dir = vdi_dir_close(w->dir);
	return status;
}

static void open_journal(struct world *w)
{
	assert_status(try_open(w), VD_OK);
	assert_status(vdi_journal_start(w->journal, NULL), VD_OK);
}

static void close_journal(struct world *w)
{
	w->journal = vdi_journal_close(w->journal);
	w->dir = vdi_dir_close(w->dir);
}

static void init(struct world *w, int64_t segment_size)
{
	memset(w, 0, sizeof *w);
	assert_status(vdi_disk_sim_new(1, &w->disk), VD_OK);
	w->options.segment_size = segment_size;
	w->revision = 10;
}

static void fini(struct world *w)
{
	if (w->journal)
		close_journal(w);
	vdi_disk_sim_free(w->disk);
}

/* A commit of one put of the next revision, or, if it is 0, of no change. */
static vd_status append(struct world *w, size_t value_size)
{
	static const char value[20000];
	struct vdi_change change = { false, NULL, NULL };
	struct vdi_commit commit = { .changes = &change };
	int64_t		  before = vdi_journal_bytes(w->journal);
	vd_status	  status;

	assert_status(vd_kv_new(vd_bytes_of("/k"), (struct vd_bytes) { value, value_size }, &change.kv),
		      VD_OK);
	if (value_size) {
		commit.revision = ++w->revision;
		commit.change_count = 1;
		change.kv->mod_rev = change.kv->create_rev = w->revision;
		change.kv->version = 1;
	} else {
		commit.compact = 3;
	}
	status = vdi_journal_append(w->journal, &commit, VDI_JOURNAL_NO_RESERVE, &w->error);
	if (status == VD_OK) {
		int64_t size = (int64_t) vdi_segment_record_size(vdi_commit_size(&commit));

		assert_int_equal(vdi_journal_bytes(w->journal), before + size);
		w->sizes[++w->count] = size;
		w->sequences[w->count] = 0;
	} else {
		assert_int_equal(vdi_journal_bytes(w->journal), before);
		w->revision -= value_size != 0;
	}
	vd_kv_unref(change.kv);
	return status;
}

static void sync_journal(struct world *w)
{
	assert_status(vdi_journal_sync(w->journal, NULL), VD_OK);
	for (uint64_t i = w->count; i && w->sequences[i] == 0; i--)
		w->sequences[i] = vdi_journal_writing_sequence(w->journal);
	assert_int_equal(vdi_journal_durable_index(w->journal), w->count);
}

static int64_t sum(const struct world *w, uint64_t from_sequence, uint64_t index_max)
{
	int64_t bytes = 0;

	for (uint64_t i = 1; i <= index_max; i++)
		if (w->sequences[i] >= from_sequence)
			bytes += w->sizes[i];
	return bytes;
}

/* The end of a journal that was closed: a mark takes an index and bytes, too. */
static void note_mark(struct world *w)
{
	w->sizes[++w->count] = MARK_SIZE;
	w->sequences[w->count] = vdi_journal_writing_sequence(w->journal);
}

static void counts_are_those_of_what_is_needed(void **state)
{
	struct world	w;
	struct vdi_rand rand;
	vd_rev		durable_revision = 0;

	(void) state;
	init(&w, 8192);
	vdi_rand_init(&rand, 1);
	open_journal(&w);
	assert_true(vdi_journal_is_new(w.journal));
	assert_int_equal(vdi_journal_revision(w.journal), 0);
	assert_int_equal(vdi_journal_first_sequence(w.journal), 1);
	assert_int_equal(vdi_journal_writing_sequence(w.journal), 1);
	for (unsigned round = 0; round < 40; round++) {
		uint64_t first, covered;
		vd_rev	 revision;

		for (unsigned group = 0; group < 3; group++) {
			uint64_t before = w.count;
			int64_t	 bytes = vdi_journal_bytes(w.journal);

			revision = w.revision;
			for (unsigned i = 0; i < 3; i++)
				assert_status(append(&w, vdi_rand_below(&rand, 2) * 700), VD_OK);
			assert_int_equal(vdi_journal_durable_index(w.journal), before);
			if (vdi_rand_once_in(&rand, 3)) {
				vdi_journal_discard(w.journal);
				assert_int_equal(vdi_journal_bytes(w.journal), bytes);
				w.count = before;
				w.revision = revision;
			}
			sync_journal(&w);
		}
		durable_revision = w.revision;
		/* What is not synced is not there afterwards. */
		first = w.count;
		assert_status(append(&w, 100), VD_OK);
		w.count = first;
		w.revision = durable_revision;
		vdi_journal_finish(w.journal);
		assert_in_range(vdi_journal_durable_index(w.journal), w.count, w.count + 1);
		if (vdi_journal_durable_index(w.journal) > w.count)
			note_mark(&w);
		close_journal(&w);
		covered = round % 4 == 0 ? 0 : vdi_rand_below(&rand, w.count + 1);
		covered = VDI_MAX(covered, w.options.covered);
		w.options.covered = covered;
		open_journal(&w);
		first = vdi_journal_first_sequence(w.journal);
		assert_false(vdi_journal_is_new(w.journal));
		assert_int_equal(vdi_journal_durable_index(w.journal), w.count);
		assert_int_equal(vdi_journal_revision(w.journal),
				 durable_revision == 10 ? 0 : durable_revision);
		assert_int_equal(vdi_journal_writing_sequence(w.journal), w.sequences[w.count]);
		/* The first file that has a record after those. */
		assert_in_range(first, w.sequences[VDI_MAX(covered, 1)],
				w.sequences[VDI_MIN(covered + 1, w.count)]);
		assert_int_equal(vdi_journal_bytes(w.journal), sum(&w, first, w.count));
		assert_int_equal(vdi_journal_covered_bytes(w.journal), sum(&w, first, covered));
		assert_true(w.seen_count == 0 || w.seen_first > covered);
		assert_true(w.seen_last <= w.count);
	}
	assert_true(vdi_journal_first_sequence(w.journal) > 2);
	fini(&w);
}

/* The commits that an open gave are given again, as often as they are asked for, and change no count. */
static void a_replay_gives_the_same_again(void **state)
{
	struct world w;

	(void) state;
	init(&w, 8192);
	open_journal(&w);
	for (unsigned i = 0; i < 40; i++) {
		assert_status(append(&w, 600), VD_OK);
		sync_journal(&w);
	}
	assert_true(vdi_journal_writing_sequence(w.journal) > 2);
	close_journal(&w);
	w.options.covered = 15;
	assert_status(try_open(&w), VD_OK);
	for (unsigned i = 0; i < 3; i++) {
		int64_t bytes = vdi_journal_bytes(w.journal), covered = vdi_journal_covered_bytes(w.journal);

		assert_int_equal(w.seen_first, 16);
		assert_int_equal(w.seen_last, 40);
		assert_int_equal(w.seen_count, 25);
		w.seen_count = 0;
		assert_status(vdi_journal_replay(w.journal, note_seen, &w, NULL), VD_OK);
		assert_int_equal(vdi_journal_bytes(w.journal), bytes);
		assert_int_equal(vdi_journal_covered_bytes(w.journal), covered);
		assert_int_equal(vdi_journal_durable_index(w.journal), 41);
	}
	assert_status(vdi_journal_start(w.journal, NULL), VD_OK);
	assert_status(append(&w, 10), VD_OK);
	assert_status(vdi_journal_sync(w.journal, NULL), VD_OK);
	assert_int_equal(vdi_journal_durable_index(w.journal), 42);
	fini(&w);
}

static uint64_t durable_after_open(struct world *w)
{
	uint64_t index;

	assert_status(try_open(w), VD_OK);
	index = vdi_journal_durable_index(w->journal);
	assert_status(vdi_journal_start(w->journal, NULL), VD_OK);
	return index;
}

/* One mark behind the last commit, however often the end is announced, and none where there is one. */
static void a_clean_end_is_marked_once(void **state)
{
	struct world w;

	(void) state;
	init(&w, 8192);
	open_journal(&w);
	close_journal(&w);
	assert_int_equal(durable_after_open(&w), 0); /* nothing to protect */
	assert_status(append(&w, 100), VD_OK);
	sync_journal(&w);
	vdi_journal_finish(w.journal);
	assert_int_equal(vdi_journal_durable_index(w.journal), 2);
	vdi_journal_finish(w.journal);
	assert_int_equal(vdi_journal_durable_index(w.journal), 2);
	close_journal(&w);
	assert_int_equal(durable_after_open(&w), 2);
	close_journal(&w);
	assert_int_equal(durable_after_open(&w), 2);
	assert_status(append(&w, 100), VD_OK);
	assert_status(vdi_journal_sync(w.journal, NULL), VD_OK);
	assert_int_equal(vdi_journal_durable_index(w.journal), 3);
	close_journal(&w);
	assert_int_equal(durable_after_open(&w), 4);
	/* After a crash there is none, and the next end writes it. */
	assert_status(append(&w, 100), VD_OK);
	assert_status(vdi_journal_sync(w.journal, NULL), VD_OK);
	vdi_disk_sim_fail_nth(w.disk, 1, VDI_DISK_SIM_CRASH);
	close_journal(&w);
	vdi_disk_sim_crash(w.disk);
	assert_int_equal(durable_after_open(&w), 5);
	close_journal(&w);
	assert_int_equal(durable_after_open(&w), 6);
	fini(&w);
}

/* A mark goes into the room that is left and never needs a file of its own. */
static void a_full_file_is_not_marked(void **state)
{
	(void) state;
	for (int64_t left = 0; left <= 2 * MARK_SIZE; left += 8) {
		struct world w;
		int64_t	     rest, value_size;

		init(&w, 8192);
		open_journal(&w);
		assert_status(append(&w, 100), VD_OK);
		rest = 8192 - VDI_SEGMENT_HEADER_SIZE - w.sizes[1];
		/* A record of 2,000 has 2,000 - overhead bytes of value; the sizes of both numbers are 2. */
		assert_status(append(&w, 2000), VD_OK);
		value_size = 2000 + rest - w.sizes[2] - left;
		vdi_journal_discard(w.journal);
		w.count = 0;
		assert_status(append(&w, 100), VD_OK);
		assert_status(append(&w, (size_t) value_size), VD_OK);
		assert_int_equal(w.sizes[2], rest - left);
		sync_journal(&w);
		assert_int_equal(vdi_journal_writing_sequence(w.journal), 1);
		close_journal(&w);
		assert_int_equal(durable_after_open(&w), left >= MARK_SIZE ? 3 : 2);
		fini(&w);
	}
}

/* A new file begins when a record does not fit, not before. */
static void a_file_is_used_to_its_last_byte(void **state)
{
	(void) state;
	for (unsigned more = 0; more < 2; more++) {
		struct world w;
		int64_t	     rest;

		init(&w, 8192);
		open_journal(&w);
		assert_status(append(&w, 1000), VD_OK);
		sync_journal(&w);
		rest = 8192 - VDI_SEGMENT_HEADER_SIZE - w.sizes[1];
		assert_status(append(&w, (size_t) (1000 + rest - w.sizes[1]) + more * 8), VD_OK);
		assert_int_equal(w.sizes[2], rest + more * 8);
		sync_journal(&w);
		assert_int_equal(vdi_journal_writing_sequence(w.journal), 1 + more);
		if (more == 0) {
			assert_status(append(&w, 1), VD_OK);
			sync_journal(&w);
			assert_int_equal(vdi_journal_writing_sequence(w.journal), 2);
		}
		close_journal(&w);
		open_journal(&w);
		assert_int_equal(w.seen_count, 3 - more);
		fini(&w);
	}
}

/* A commit of exactly the maximum is refused only because this disk is too small. */
static void a_commit_beyond_the_maximum_is_refused(void **state)
{
	struct vdi_change change = { false, NULL, NULL };
	struct vdi_commit commit = { .revision = 11, .changes = &change, .change_count = 1 };
	struct world	  w;
	size_t		  least;

	(void) state;
	init(&w, 8192);
	open_journal(&w);
	assert_status(append(&w, 100), VD_OK);
	sync_journal(&w);
	vdi_disk_sim_set_capacity(w.disk, 1 << 20);
	assert_status(vd_kv_new(vd_bytes_of("/k"), VD_BYTES_NONE, &change.kv), VD_OK);
	change.kv->mod_rev = change.kv->create_rev = 11;
	change.kv->version = 1;
	change.kv->value_size = 1u << 29; /* its bytes are not looked at before there is room for them */
	least = vdi_commit_size(&commit) - change.kv->value_size;
	for (unsigned more = 0; more < 2; more++) {
		change.kv->value_size = (uint32_t) (VDI_JOURNAL_PAYLOAD_MAX - least + more);
		assert_int_equal(vdi_commit_size(&commit), VDI_JOURNAL_PAYLOAD_MAX + more);
		assert_status(vdi_journal_append(w.journal, &commit, VDI_JOURNAL_FREES, &w.error),
			      more ? VD_TOO_BIG : VD_NO_SPACE);
		assert_status(w.error.code, more ? VD_TOO_BIG : VD_NO_SPACE);
	}
	assert_string_equal(w.error.message,
			    "a commit of 1073741825 bytes exceeds the maximum of 1073741824");
	change.kv->value_size = 0;
	vd_kv_unref(change.kv);
	/* Neither broke anything. */
	vdi_journal_discard(w.journal);
	assert_status(append(&w, 100), VD_OK);
	sync_journal(&w);
	close_journal(&w);
	open_journal(&w);
	assert_int_equal(w.seen_count, 2);
	fini(&w);
}

/* After an error of the disk nothing is written any more, and the message says what to do. */
static void an_error_closes_the_journal_for_writing(void **state)
{
	(void) state;
	for (uint64_t nth = 1; nth <= 2; nth++) { /* of the write, of its sync */
		struct world w;

		init(&w, 8192);
		open_journal(&w);
		assert_status(append(&w, 100), VD_OK);
		sync_journal(&w);
		assert_status(append(&w, 100), VD_OK);
		vdi_disk_sim_fail_nth(w.disk, nth, VDI_DISK_SIM_IO);
		assert_status(vdi_journal_sync(w.journal, &w.error), VD_IO);
		assert_status(w.error.code, VD_IO);
		assert_true(vdi_disk_sim_failed(w.disk));
		vdi_disk_sim_fail_nth(w.disk, 0, VDI_DISK_SIM_IO);
		assert_int_equal(vdi_journal_durable_index(w.journal), 1);
		assert_int_equal(vdi_journal_bytes(w.journal), w.sizes[1]);
		w.error = (struct vd_error) { 0 };
		assert_status(append(&w, 100), VD_IO);
		assert_string_equal(w.error.message, "data is closed for writing after an earlier I/O error; "
						     "open the store again");
		w.error = (struct vd_error) { 0 };
		assert_status(vdi_journal_sync(w.journal, &w.error), VD_IO);
		assert_non_null(strstr(w.error.message, "open the store again"));
		close_journal(&w); /* without a mark */
		open_journal(&w);
		assert_in_range(vdi_journal_durable_index(w.journal), 1, 2);
		assert_status(append(&w, 100), VD_OK);
		assert_status(vdi_journal_sync(w.journal, NULL), VD_OK);
		fini(&w);
	}
}

/* A process that dies before its sync leaves commits that the next one reads from the cache of the system:
 * what an open gives must survive the loss of power afterwards. */
static void what_an_open_gave_is_on_disk(void **state)
{
	(void) state;
	for (unsigned no_sync = 0; no_sync < 2; no_sync++) {
		uint64_t durable;
		unsigned lost = 0;

		for (uint64_t seed = 0; seed < 20; seed++) {
			struct world w;

			init(&w, 8192);
			vdi_disk_sim_free(w.disk);
			assert_status(vdi_disk_sim_new(seed, &w.disk), VD_OK);
			open_journal(&w);
			assert_status(append(&w, 100), VD_OK);
			sync_journal(&w);
			close_journal(&w);
			w.options.no_sync = true;
			open_journal(&w);
			assert_status(append(&w, 100), VD_OK);
			assert_status(vdi_journal_sync(w.journal, NULL), VD_OK);
			close_journal(&w);
			w.options.no_sync = no_sync;
			durable = durable_after_open(&w);
			assert_int_equal(durable, 4); /* two commits, two marks */
			vdi_disk_sim_fail_nth(w.disk, 1, VDI_DISK_SIM_CRASH);
			close_journal(&w);
			vdi_disk_sim_crash(w.disk);
			lost += try_open(&w) != VD_OK || vdi_journal_durable_index(w.journal) < durable;
			fini(&w);
		}
		assert_int_equal(lost != 0, no_sync);
	}
}

/* A revision never goes back, although the file that is left holds none: its header has it. */
static void a_file_without_revisions_tells_the_last_one(void **state)
{
	struct world w;
	vd_rev	     revision;
	int64_t	     size;
	uint64_t     covered;

	(void) state;
	init(&w, 8192);
	open_journal(&w);
	for (unsigned i = 0; i < 3; i++) {
		assert_status(append(&w, 500), VD_OK);
		sync_journal(&w);
	}
	revision = w.revision;
	while (vdi_journal_writing_sequence(w.journal) == 1) {
		assert_status(append(&w, 0), VD_OK);
		sync_journal(&w);
	}
	covered = w.count - 1;
	vdi_journal_release(w.journal, 2);
	close_journal(&w);
	assert_null(vdi_disk_sim_content(w.disk, "journal-0000000000000001.vdj", &size));
	w.options.covered = covered;
	open_journal(&w);
	assert_int_equal(w.seen_count, 1);
	assert_int_equal(vdi_journal_revision(w.journal), revision);
	fini(&w);
}

static void the_files_of_another_store_are_refused(void **state)
{
	uint8_t	     id[VDI_STORE_ID_SIZE];
	struct world w;

	(void) state;
	init(&w, 8192);
	open_journal(&w);
	assert_status(append(&w, 100), VD_OK);
	sync_journal(&w);
	memcpy(id, vdi_journal_store_id(w.journal), sizeof id);
	close_journal(&w);
	w.options.store_id = id;
	open_journal(&w);
	assert_memory_equal(vdi_journal_store_id(w.journal), id, sizeof id);
	close_journal(&w);
	for (unsigned i = 0; i < sizeof id; i++) {
		id[i] ^= 1;
		assert_status(try_open(&w), VD_CORRUPT);
		assert_string_equal(w.error.message, "data/journal-0000000000000001.vdj is damaged at offset "
						     "4096: the file belongs to another store");
		id[i] ^= 1;
	}
	fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_are_those_of_what_is_needed),
		cmocka_unit_test(a_replay_gives_the_same_again),
		cmocka_unit_test(a_clean_end_is_marked_once),
		cmocka_unit_test(a_full_file_is_not_marked),
		cmocka_unit_test(a_file_is_used_to_its_last_byte),
		cmocka_unit_test(a_commit_beyond_the_maximum_is_refused),
		cmocka_unit_test(what_an_open_gave_is_on_disk),
		cmocka_unit_test(a_file_without_revisions_tells_the_last_one),
		cmocka_unit_test(the_files_of_another_store_are_refused),
		cmocka_unit_test(an_error_closes_the_journal_for_writing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
