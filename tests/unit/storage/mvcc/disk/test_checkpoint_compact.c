/* Unit tests of compaction in storage/mvcc/disk/checkpoint.c: steps of any size, a file that an earlier
 * process left in the middle, a file that cannot grow. Real files. */
#include <signal.h>
#include <sys/resource.h>

#include "actor_sim.h"
#include "checkpoint_file.h"
#include "checkpointer.h"

/* Steps of so many records until there is nothing more to do. Returns their number. */
static unsigned sweep(struct checkpoint_file *f, size_t record_count_max)
{
	unsigned count = 0;

	for (; vdi_checkpoint_compact_pending(f->checkpoint); count++) {
		assert_true(count < 10000);
		assert_status(vdi_checkpoint_compact_step(f->checkpoint, record_count_max, NULL), VD_OK);
	}
	return count;
}

static int64_t record_count(const struct checkpoint_file *f)
{
	return vdi_checkpoint_meta(f->checkpoint)->record_count;
}

/* Revisions 2 to 11 put ten records, 12 deletes the first two, 13 the other eight at once. */
static void write_ten_and_delete(struct checkpoint_file *f)
{
	vd_rev previous[10];

	for (vd_rev i = 0; i < 10; i++) {
		previous[i] = f->revision + 1;
		checkpoint_file_put(f, 100);
	}
	assert_status(checkpoint_file_change(f, previous, 2, 0), VD_OK);
	assert_status(checkpoint_file_change(f, previous + 2, 8, 0), VD_OK);
}

/* Whatever record a step begins with, the newest revision included: the same is left, the tombstones of that
 * revision. */
static void e406_steps_of_any_size_leave_the_same(void **state)
{
	struct checkpoint_file f;

	(void) state;
	for (size_t size = 1; size <= 21; size++) {
		checkpoint_file_init(&f);
		write_ten_and_delete(&f);
		checkpoint_file_compact(&f, f.revision);
		assert_int_equal(sweep(&f, size), (20 + size - 1) / size);
		assert_int_equal(record_count(&f), 8);
		/* They are dead as soon as a later revision is the compacted one. */
		checkpoint_file_put(&f, 100);
		checkpoint_file_compact(&f, f.revision);
		sweep(&f, size);
		assert_int_equal(record_count(&f), 1);
		checkpoint_file_reopen(&f);
		checkpoint_file_fini(&f);
	}
}

/* A later compaction does not pass over the tombstones that an unfinished one has kept. */
static void e406_a_compaction_that_begins_amid_another_one_removes_the_tombstones_of_both(void **state)
{
	struct checkpoint_file f;

	(void) state;
	for (unsigned steps = 0; steps <= 20; steps++) {
		checkpoint_file_init(&f);
		write_ten_and_delete(&f);
		checkpoint_file_compact(&f, f.revision);
		for (unsigned i = 0; i < steps; i++)
			assert_status(vdi_checkpoint_compact_step(f.checkpoint, 1, NULL), VD_OK);
		checkpoint_file_put(&f, 100);
		checkpoint_file_compact(&f, f.revision);
		sweep(&f, 3);
		assert_int_equal(record_count(&f), 1);
		checkpoint_file_fini(&f);
	}
}

/* A process that ends between any two steps. */
static void e406_compaction_continues_after_a_restart(void **state)
{
	struct checkpoint_file f;

	(void) state;
	for (unsigned steps = 0; steps <= 20; steps++) {
		checkpoint_file_init(&f);
		write_ten_and_delete(&f);
		checkpoint_file_compact(&f, f.revision);
		for (unsigned i = 0; i < steps; i++)
			assert_status(vdi_checkpoint_compact_step(f.checkpoint, 1, NULL), VD_OK);
		checkpoint_file_reopen(&f);
		assert_true(vdi_checkpoint_compact_pending(f.checkpoint));
		sweep(&f, 3);
		assert_int_equal(record_count(&f), 8);
		checkpoint_file_fini(&f);
	}
}

static void *read_file(const struct checkpoint_file *f, int64_t *ret_size)
{
	struct vdi_file *file;
	void		*bytes;
	size_t		 count;

	assert_status(vdi_file_open(f->dir, VDI_CHECKPOINT_NAME, VDI_FILE_READ, &file, NULL), VD_OK);
	assert_status(vdi_file_size(file, ret_size, NULL), VD_OK);
	bytes = vdi_alloc((size_t) *ret_size);
	assert_status(vdi_file_read(file, 0, bytes, (size_t) *ret_size, &count, NULL), VD_OK);
	vdi_file_close(file);
	return bytes;
}

static void an_open_without_dead_records_writes_nothing(void **state)
{
	struct checkpoint_file f;
	int64_t		       size_before, size_after;
	void		      *before, *after;

	(void) state;
	checkpoint_file_init(&f);
	assert_false(vdi_checkpoint_compact_pending(f.checkpoint));
	write_ten_and_delete(&f);
	checkpoint_file_compact(&f, f.revision);
	sweep(&f, 1000);
	before = read_file(&f, &size_before);
	checkpoint_file_reopen(&f);
	assert_int_equal(sweep(&f, 1000), 1);
	after = read_file(&f, &size_after);
	assert_int_equal(size_before, size_after);
	assert_memory_equal(before, after, (size_t) size_before);
	vdi_free(before);
	vdi_free(after);
	checkpoint_file_fini(&f);
}

/* Puts so many values and deletes every second one by one commit, so that each page has a record that goes
 * and one that stays; from here on the file cannot grow. To remove all at once needs as many pages again. */
static void fill_and_delete_half(struct checkpoint_file *f, unsigned count, size_t size,
				 struct rlimit *ret_before)
{
	vd_rev	     *previous = vdi_calloc(count / 2, sizeof *previous);
	struct rlimit limited;
	int64_t	      file_size;

	for (unsigned i = 0; i < count; i++) {
		if (i % 2)
			previous[i / 2] = f->revision + 1;
		checkpoint_file_put(f, size);
	}
	assert_status(checkpoint_file_change(f, previous, count / 2, 0), VD_OK);
	vdi_free(previous);
	checkpoint_file_compact(f, f->revision);
	checkpoint_file_reopen(f);
	assert_status(vdi_checkpoint_file_size(f->dir, &file_size, NULL), VD_OK);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, ret_before), 0);
	limited = *ret_before;
	limited.rlim_cur = (rlim_t) file_size;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limited), 0);
}

static void e466_a_large_delete_is_compacted_in_a_file_that_is_full(void **state)
{
	const unsigned	       count = 3000;
	struct rlimit	       before;
	struct checkpoint_file f;
	size_t		       step = 1000;

	(void) state;
	checkpoint_file_init(&f);
	fill_and_delete_half(&f, count, 1500, &before);
	while (vdi_checkpoint_compact_pending(f.checkpoint)) {
		vd_status status = vdi_checkpoint_compact_step(f.checkpoint, step, NULL);

		if (status != VD_OK) {
			assert_status(status, VD_NO_SPACE);
			assert_true(step > 1);
			step = VDI_MAX(step / 8, 1);
		}
	}
	assert_true(step < 1000);		   /* else it was not full */
	assert_int_equal(record_count(&f), count); /* count / 2 values, and as many tombstones */
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	checkpoint_file_fini(&f);
}

static void note_closed(void *arg)
{
	*(bool *) arg = true;
}

/* If not even the smallest step fits, the actor makes the pages usable that the step before has freed. */
static void e466_the_actor_compacts_a_file_that_is_full(void **state)
{
	/* In the first two a step leaves so few pages that not even one record can be removed with them, and
	 * frees enough. */
	static const struct {
		unsigned count, size;
	} rows[] = { { 636, 1573 }, { 668, 899 }, { 3000, 1500 } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_checkpointer_options options = { .bytes = 4096,
							    .interval = VD_SECONDS(1),
							    .no_sync = true };
		struct vdi_checkpointer	       *checkpointer;
		struct vdi_journal_options	journal_options = { .segment_size = 65536, .no_sync = true };
		struct vdi_journal	       *journal;
		struct rlimit			before;
		struct checkpoint_file		f;
		struct vd_env		       *env;
		bool				is_closed = false;

		checkpoint_file_init(&f);
		assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
		journal_options.dir = f.dir;
		assert_status(vdi_journal_open(&journal_options, NULL, NULL, &journal, NULL), VD_OK);
		assert_status(vdi_journal_start(journal, NULL), VD_OK);
		fill_and_delete_half(&f, rows[i].count, rows[i].size, &before);
		options.env = env;
		options.dir = f.dir;
		options.journal = journal;
		options.checkpoint = f.checkpoint;
		assert_status(vdi_checkpointer_new(&options, &checkpointer, NULL), VD_OK);
		vdi_sim_advance(env, VD_SECONDS(60));
		vdi_checkpointer_close(checkpointer, note_closed, &is_closed);
		vdi_sim_run_until_idle(env);
		assert_true(is_closed);
		f.checkpoint = NULL;
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
		checkpoint_file_reopen(&f);
		assert_int_equal(record_count(&f), rows[i].count);
		vdi_journal_close(journal);
		vd_env_free(env);
		assert_status(vdi_dir_unlink(f.dir, "journal-0000000000000001.vdj", NULL), VD_OK);
		assert_status(vdi_dir_unlink(f.dir, VDI_SEGMENT_RESERVE, NULL), VD_OK);
		checkpoint_file_fini(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e406_steps_of_any_size_leave_the_same),
		cmocka_unit_test(
			e406_a_compaction_that_begins_amid_another_one_removes_the_tombstones_of_both),
		cmocka_unit_test(e406_compaction_continues_after_a_restart),
		cmocka_unit_test(an_open_without_dead_records_writes_nothing),
		cmocka_unit_test(e466_a_large_delete_is_compacted_in_a_file_that_is_full),
		cmocka_unit_test(e466_the_actor_compacts_a_file_that_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
