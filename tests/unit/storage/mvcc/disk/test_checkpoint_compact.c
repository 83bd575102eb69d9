/* Unit tests of compaction in storage/mvcc/disk/checkpoint.c: steps of any size, a file that an earlier
 * process left in the middle, a file that cannot grow. Real files. */
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "actor_sim.h"
#include "checkpointer.h"
#include "vdtest.h"

struct fixture {
	char		       path[64];
	struct vdi_dir	      *dir;
	struct vdi_checkpoint *checkpoint;
	vd_rev		       revision;
	uint64_t	       index;
	uint8_t		       store_id[VDI_STORE_ID_SIZE];
};

static void reopen(struct fixture *f)
{
	struct vdi_checkpoint_content content = { .part_count = 1 };

	f->checkpoint = vdi_checkpoint_close(f->checkpoint);
	assert_status(vdi_checkpoint_open(f->dir, true, &content, &f->checkpoint, NULL), VD_OK);
	vdi_checkpoint_content_fini(&content);
}

static void init(struct fixture *f)
{
	memset(f, 0, sizeof *f);
	snprintf(f->path, sizeof f->path, "/tmp/vedette-test-checkpoint-compact-XXXXXX");
	assert_non_null(mkdtemp(f->path));
	assert_status(vdi_dir_open(vdi_disk_os(), f->path, &f->dir, NULL), VD_OK);
	assert_status(vdi_checkpoint_create(f->dir, true, f->store_id, &f->checkpoint, NULL), VD_OK);
	f->revision = 1;
}

static void fini(struct fixture *f)
{
	vdi_checkpoint_close(f->checkpoint);
	assert_status(vdi_dir_unlink(f->dir, VDI_CHECKPOINT_NAME, NULL), VD_OK);
	assert_status(vdi_dir_unlink(f->dir, "LOCK", NULL), VD_OK);
	vdi_dir_close(f->dir);
	assert_int_equal(rmdir(f->path), 0);
}

static vd_status try_commit(struct fixture *f, const struct vdi_commit *commit)
{
	struct vdi_segment_record record = {
		VDI_SEGMENT_COMMIT, f->index + 1, commit->revision, { NULL, vdi_commit_size(commit) }, 0
	};
	void	 *payload = vdi_alloc(record.payload.size);
	vd_status status = vdi_checkpoint_begin(f->checkpoint, (int64_t) record.payload.size, NULL);

	vdi_commit_encode(commit, payload);
	record.payload.data = payload;
	if (status == VD_OK)
		status = vdi_checkpoint_apply(f->checkpoint, &record, NULL);
	if (status == VD_OK)
		status = vdi_checkpoint_commit(f->checkpoint, NULL);
	vdi_free(payload);
	f->index += status == VD_OK;
	return status;
}

static struct vd_kv *make_kv(vd_rev revision, uint32_t sub, size_t size)
{
	static const char value[4096];
	struct vd_kv	 *kv;

	assert_status(vd_kv_new(vd_bytes_of("/k"), (struct vd_bytes) { value, size }, &kv), VD_OK);
	kv->mod_rev = kv->create_rev = revision;
	kv->sub = sub;
	kv->version = 1;
	return kv;
}

/* One commit of the next revision. previous: for each change the revision of the record that it supersedes, 0
 * for none; a change that supersedes one is a delete. */
static vd_status change(struct fixture *f, const vd_rev *previous, unsigned count, size_t size)
{
	struct vdi_change *changes = vdi_calloc(count, sizeof *changes);
	vd_status	   status;

	for (unsigned i = 0; i < count; i++) {
		changes[i].kv = make_kv(f->revision + 1, i, previous[i] ? 0 : size);
		changes[i].is_delete = previous[i] != 0;
		changes[i].previous = previous[i] ? make_kv(previous[i], 0, 0) : NULL;
	}
	status = try_commit(f, &(struct vdi_commit) { .revision = f->revision + 1,
						      .changes = changes,
						      .change_count = count });
	f->revision += status == VD_OK;
	for (unsigned i = 0; i < count; i++) {
		vd_kv_unref(changes[i].kv);
		vd_kv_unref((struct vd_kv *) changes[i].previous);
	}
	vdi_free(changes);
	return status;
}

static void put(struct fixture *f, size_t size)
{
	assert_status(change(f, &(vd_rev) { 0 }, 1, size), VD_OK);
}

static void compact(struct fixture *f, vd_rev revision)
{
	assert_status(try_commit(f, &(struct vdi_commit) { .compact = revision }), VD_OK);
}

/* Steps of so many records until there is nothing more to do. Returns their number. */
static unsigned sweep(struct fixture *f, size_t record_count_max)
{
	unsigned count = 0;

	for (; vdi_checkpoint_compact_pending(f->checkpoint); count++) {
		assert_true(count < 10000);
		assert_status(vdi_checkpoint_compact_step(f->checkpoint, record_count_max, NULL), VD_OK);
	}
	return count;
}

static int64_t record_count(const struct fixture *f)
{
	return vdi_checkpoint_meta(f->checkpoint)->record_count;
}

/* Revisions 2 to 11 put ten records, 12 deletes the first two, 13 the other eight at once. */
static void write_ten_and_delete(struct fixture *f)
{
	vd_rev previous[10];

	for (vd_rev i = 0; i < 10; i++) {
		previous[i] = f->revision + 1;
		put(f, 100);
	}
	assert_status(change(f, previous, 2, 0), VD_OK);
	assert_status(change(f, previous + 2, 8, 0), VD_OK);
}

/* Whatever record a step begins with, the newest revision included: the same is left, the tombstones of that
 * revision. */
static void e406_steps_of_any_size_leave_the_same(void **state)
{
	struct fixture f;

	(void) state;
	for (size_t size = 1; size <= 21; size++) {
		init(&f);
		write_ten_and_delete(&f);
		compact(&f, f.revision);
		assert_int_equal(sweep(&f, size), (20 + size - 1) / size);
		assert_int_equal(record_count(&f), 8);
		/* They are dead as soon as a later revision is the compacted one. */
		put(&f, 100);
		compact(&f, f.revision);
		sweep(&f, size);
		assert_int_equal(record_count(&f), 1);
		reopen(&f);
		fini(&f);
	}
}

/* A later compaction does not pass over the tombstones that an unfinished one has kept. */
static void e406_a_compaction_that_begins_amid_another_one_removes_the_tombstones_of_both(void **state)
{
	struct fixture f;

	(void) state;
	for (unsigned steps = 0; steps <= 20; steps++) {
		init(&f);
		write_ten_and_delete(&f);
		compact(&f, f.revision);
		for (unsigned i = 0; i < steps; i++)
			assert_status(vdi_checkpoint_compact_step(f.checkpoint, 1, NULL), VD_OK);
		put(&f, 100);
		compact(&f, f.revision);
		sweep(&f, 3);
		assert_int_equal(record_count(&f), 1);
		fini(&f);
	}
}

/* A process that ends between any two steps. */
static void e406_compaction_continues_after_a_restart(void **state)
{
	struct fixture f;

	(void) state;
	for (unsigned steps = 0; steps <= 20; steps++) {
		init(&f);
		write_ten_and_delete(&f);
		compact(&f, f.revision);
		for (unsigned i = 0; i < steps; i++)
			assert_status(vdi_checkpoint_compact_step(f.checkpoint, 1, NULL), VD_OK);
		reopen(&f);
		assert_true(vdi_checkpoint_compact_pending(f.checkpoint));
		sweep(&f, 3);
		assert_int_equal(record_count(&f), 8);
		fini(&f);
	}
}

static void *read_file(const struct fixture *f, int64_t *ret_size)
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
	struct fixture f;
	int64_t	       size_before, size_after;
	void	      *before, *after;

	(void) state;
	init(&f);
	assert_false(vdi_checkpoint_compact_pending(f.checkpoint));
	write_ten_and_delete(&f);
	compact(&f, f.revision);
	sweep(&f, 1000);
	before = read_file(&f, &size_before);
	reopen(&f);
	assert_int_equal(sweep(&f, 1000), 1);
	after = read_file(&f, &size_after);
	assert_int_equal(size_before, size_after);
	assert_memory_equal(before, after, (size_t) size_before);
	vdi_free(before);
	vdi_free(after);
	fini(&f);
}

/* Puts so many values and deletes every second one by one commit, so that each page has a record that goes
 * and one that stays; from here on the file cannot grow. To remove all at once needs as many pages again. */
static void fill_and_delete_half(struct fixture *f, unsigned count, size_t size, struct rlimit *ret_before)
{
	vd_rev	     *previous = vdi_calloc(count / 2, sizeof *previous);
	struct rlimit limited;
	int64_t	      file_size;

	for (unsigned i = 0; i < count; i++) {
		if (i % 2)
			previous[i / 2] = f->revision + 1;
		put(f, size);
	}
	assert_status(change(f, previous, count / 2, 0), VD_OK);
	vdi_free(previous);
	compact(f, f->revision);
	reopen(f);
	assert_status(vdi_checkpoint_file_size(f->dir, &file_size, NULL), VD_OK);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, ret_before), 0);
	limited = *ret_before;
	limited.rlim_cur = (rlim_t) file_size;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limited), 0);
}

static void e466_a_large_delete_is_compacted_in_a_file_that_is_full(void **state)
{
	const unsigned count = 3000;
	struct rlimit  before;
	struct fixture f;
	size_t	       step = 1000;

	(void) state;
	init(&f);
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
	fini(&f);
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
		struct fixture			f;
		struct vd_env		       *env;
		bool				is_closed = false;

		init(&f);
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
		reopen(&f);
		assert_int_equal(record_count(&f), rows[i].count);
		vdi_journal_close(journal);
		vd_env_free(env);
		assert_status(vdi_dir_unlink(f.dir, "journal-0000000000000001.vdj", NULL), VD_OK);
		assert_status(vdi_dir_unlink(f.dir, VDI_SEGMENT_RESERVE, NULL), VD_OK);
		fini(&f);
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
