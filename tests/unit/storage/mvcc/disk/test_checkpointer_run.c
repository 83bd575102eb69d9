/* Unit tests of storage/mvcc/disk/checkpointer.c: when the actor takes a group and how much, what it does
 * after a failure, and which room it promises. Real files, simulated time and actors. */
#include <signal.h>
#include <sys/resource.h>

#include "actor_sim.h"
#include "checkpointer.h"
#include "env.h"
#include "metrics.h"
#include "temp_folder.h"
#include "vdtest.h"

#define INTERVAL VD_SECONDS(7)
#define RETRY VD_SECONDS(1)
#define SEGMENT_SIZE 16384

struct world {
	struct vd_env		       *env;
	char				path[TEMP_FOLDER_SIZE];
	struct vdi_dir		       *dir;
	struct vdi_journal	       *journal;
	struct vdi_checkpointer	       *checkpointer;
	struct vdi_checkpointer_options options;
	vd_rev				revision;
	unsigned			logged;
	char				message[512]; /* the last one */
	struct rlimit			no_limit;
};

static void note_log(void *arg, const struct vd_log_record *record)
{
	struct world *w = arg;

	w->logged++;
	snprintf(w->message, sizeof w->message, "%s", record->message);
}

static void open_files(struct world *w, uint64_t covered)
{
	struct vdi_journal_options options = { .segment_size = SEGMENT_SIZE, .no_sync = true };

	assert_status(vdi_dir_open(vdi_disk_os(), w->path, &w->dir, NULL), VD_OK);
	options.dir = w->dir;
	options.covered = covered;
	assert_status(vdi_journal_open(&options, NULL, NULL, &w->journal, NULL), VD_OK);
	assert_status(vdi_journal_start(w->journal, NULL), VD_OK);
	w->options.env = w->env;
	w->options.dir = w->dir;
	w->options.journal = w->journal;
}

static void start(struct world *w)
{
	assert_status(vdi_checkpointer_new(&w->options, &w->checkpointer, NULL), VD_OK);
	vdi_sim_run_until_idle(w->env);
}

static void init(struct world *w, int64_t bytes)
{
	memset(w, 0, sizeof *w);
	assert_status(vdi_env_new_sim(1, note_log, w, &w->env), VD_OK);
	temp_folder_make(w->path);
	w->options =
		(struct vdi_checkpointer_options) { .bytes = bytes, .interval = INTERVAL, .no_sync = true };
	w->revision = 1;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &w->no_limit), 0);
	open_files(w, 0);
}

static void note_closed(void *arg)
{
	*(bool *) arg = true;
}

static void stop(struct world *w)
{
	bool is_closed = false;

	vdi_checkpointer_close(w->checkpointer, note_closed, &is_closed);
	assert_int_equal(is_closed, w->checkpointer == NULL);
	vdi_sim_run_until_idle(w->env);
	assert_true(is_closed);
	w->checkpointer = NULL;
}

static void close_files(struct world *w)
{
	w->journal = vdi_journal_close(w->journal);
	w->dir = vdi_dir_close(w->dir);
}

static void fini(struct world *w)
{
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &w->no_limit), 0);
	stop(w);
	close_files(w);
	vd_env_free(w->env);
	temp_folder_remove(w->path);
}

static void limit_files(struct world *w, int64_t size)
{
	struct rlimit limited = w->no_limit;

	limited.rlim_cur = (rlim_t) size;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limited), 0);
}

/* A synced group of count commits of one put each. Returns the bytes of each in the journal. */
static int64_t write_group(struct world *w, unsigned count, size_t size)
{
	static const char value[60000];
	int64_t		  before = vdi_journal_bytes(w->journal);

	for (unsigned i = 0; i < count; i++) {
		struct vdi_change change = { false, NULL, NULL };
		struct vdi_commit commit = { .revision = ++w->revision,
					     .changes = &change,
					     .change_count = 1 };

		assert_status(vd_kv_new(vd_bytes_of("/k"), (struct vd_bytes) { value, size }, &change.kv),
			      VD_OK);
		change.kv->mod_rev = change.kv->create_rev = w->revision;
		change.kv->version = 1;
		assert_status(vdi_journal_append(w->journal, &commit, VDI_JOURNAL_BORROWS, NULL), VD_OK);
		vd_kv_unref(change.kv);
	}
	assert_status(vdi_journal_sync(w->journal, NULL), VD_OK);
	return (vdi_journal_bytes(w->journal) - before) / count;
}

/* And tells the actor. */
static void put(struct world *w, unsigned count, size_t size)
{
	write_group(w, count, size);
	vdi_checkpointer_notify(w->checkpointer);
	vdi_sim_run_until_idle(w->env);
}

static uint64_t covered(const struct world *w)
{
	return vdi_checkpointer_covered(w->checkpointer);
}

static int64_t group_count(const struct world *w)
{
	struct vdi_metric *histogram;
	int64_t		   count;

	assert_status(vdi_metric_get(vdi_env_metrics(w->env),
				     VDI_METRIC_ETCD_DISK_BACKEND_COMMIT_DURATION_SECONDS, NULL, &histogram),
		      VD_OK);
	count = vdi_metric_value(histogram);
	vdi_metric_release(histogram);
	return count;
}

static int64_t file_size(const struct world *w)
{
	int64_t size;

	assert_status(vdi_checkpoint_file_size(w->dir, &size, NULL), VD_OK);
	return size;
}

/* Nothing is taken a nanosecond before the time is up; then so many records are in the checkpoint. */
static void expect_after(struct world *w, vd_dur wait, uint64_t then)
{
	uint64_t before = covered(w);

	vdi_sim_advance(w->env, (vd_dur) { wait.ns - 1 });
	assert_int_equal(covered(w), before);
	vdi_sim_advance(w->env, (vd_dur) { 1 });
	assert_int_equal(covered(w), then);
}

/* ---- When ---- */

static void few_commits_wait_for_the_interval(void **state)
{
	struct world w;

	(void) state;
	init(&w, 64 << 20);
	start(&w);
	put(&w, 1, 100);
	vdi_sim_advance(w.env, VD_SECONDS(3));
	assert_int_equal(covered(&w), 0);
	assert_int_equal(vdi_checkpointer_covered_bytes(w.checkpointer), 0);
	/* What comes meanwhile goes with the first. */
	put(&w, 2, 100);
	expect_after(&w, VD_SECONDS(4), 3);
	assert_int_equal(vdi_checkpointer_covered_bytes(w.checkpointer), vdi_journal_bytes(w.journal));
	/* The next one waits an interval of its own, whenever it comes. */
	vdi_sim_advance(w.env, VD_SECONDS(2));
	put(&w, 1, 100);
	expect_after(&w, INTERVAL, 4);
	vdi_sim_advance(w.env, VD_SECONDS(100));
	put(&w, 1, 100);
	expect_after(&w, INTERVAL, 5);
	assert_int_equal(w.logged, 0);
	assert_int_equal(group_count(&w), 3);
	assert_int_equal(file_size(&w), 1 << 20); /* room for what there was, not for a whole group */
	fini(&w);
}

/* A group ends with the record that makes it large enough; less than a group waits. */
static void enough_bytes_are_taken_at_once_in_groups_of_that_size(void **state)
{
	for (unsigned more = 0; more < 3; more++) { /* bytes beyond three records */
		struct world w;
		int64_t	     size;
		unsigned     group = more ? 4 : 3;

		(void) state;
		init(&w, 1 << 20);
		size = write_group(&w, 1, 100);
		w.options.bytes = 3 * size + (int64_t) more * (size - 1) / 2;
		start(&w);
		assert_int_equal(covered(&w), 0);
		put(&w, group - 2, 100);
		assert_int_equal(covered(&w), 0);
		put(&w, 1, 100);
		assert_int_equal(covered(&w), group);
		put(&w, 2 * group - 1, 100);
		assert_int_equal(covered(&w), 2 * group);
		expect_after(&w, INTERVAL, 3 * group - 1);
		put(&w, 3 * group + 1, 100);
		assert_int_equal(covered(&w), 6 * group - 1);
		assert_int_equal(vdi_checkpointer_covered_bytes(w.checkpointer),
				 (int64_t) (6 * group - 1) * size);
		fini(&w);
	}
}

/* What the last process left is in the checkpoint an interval after the start, or at once. */
static void a_start_continues_where_the_last_process_ended(void **state)
{
	(void) state;
	for (unsigned is_enough = 0; is_enough < 2; is_enough++) {
		struct vdi_checkpoint_content content = { .part_count = 1 };
		struct world		      w;

		init(&w, 1 << 20);
		start(&w);
		put(&w, 30, 1000); /* more than a file */
		vdi_sim_advance(w.env, INTERVAL);
		assert_int_equal(covered(&w), 30);
		put(&w, 40, 1000);
		stop(&w);
		close_files(&w);
		open_files(&w, 30);
		assert_status(vdi_checkpoint_open(w.dir, true, &content, &w.options.checkpoint, NULL), VD_OK);
		vdi_checkpoint_content_fini(&content);
		w.options.bytes = is_enough ? 20000 : 1 << 20;
		start(&w);
		assert_true(vdi_checkpointer_size_bytes(w.checkpointer) > 30000);
		if (is_enough)
			assert_true(covered(&w) > 50);
		else
			assert_int_equal(covered(&w), 30);
		vdi_sim_advance(w.env, INTERVAL);
		assert_true(covered(&w) >= 70); /* with the mark of a clean end */
		assert_int_equal(vdi_checkpointer_covered_bytes(w.checkpointer),
				 vdi_journal_bytes(w.journal));
		fini(&w);
	}
}

/* ---- After a failure ---- */

static void a_failed_group_is_tried_again_after_a_second(void **state)
{
	struct world w;

	(void) state;
	init(&w, 1000);
	start(&w);
	put(&w, 1, 100);
	assert_true(vdi_checkpointer_may_make_room(w.checkpointer));
	vdi_sim_advance(w.env, (vd_dur) { INTERVAL.ns - 1 });
	for (unsigned failures = 1; failures <= 2; failures++) {
		vdi_alloc_fail_nth(1, 1);
		vdi_sim_advance(w.env, (vd_dur) { 1 });
		assert_true(vdi_alloc_failed());
		vdi_alloc_fail_nth(0, 0);
		assert_int_equal(covered(&w), 0);
		assert_int_equal(w.logged, 1); /* once in ten seconds */
		assert_non_null(strstr(w.message, "out of memory"));
		assert_non_null(strstr(w.message, "the journal keeps everything"));
		assert_false(vdi_checkpointer_may_make_room(w.checkpointer));
		/* Not earlier, however much there is. */
		put(&w, 10, 200);
		assert_int_equal(covered(&w), 0);
		vdi_sim_advance(w.env, (vd_dur) { RETRY.ns - 1 });
		assert_int_equal(covered(&w), 0);
	}
	vdi_sim_advance(w.env, (vd_dur) { 1 });
	assert_int_equal(covered(&w), 21);
	assert_false(vdi_checkpointer_may_make_room(w.checkpointer)); /* nothing is left to do */
	put(&w, 1, 100);
	assert_true(vdi_checkpointer_may_make_room(w.checkpointer));
	expect_after(&w, INTERVAL, 22);
	fini(&w);
}

/* In the middle of a group: nothing of it counts, and nothing is released or applied twice. A smaller one may
 * fit; what does not waits for room, and the rest of the file is used. */
static void a_group_that_does_not_fit_is_taken_in_parts(void **state)
{
	struct vdi_checkpoint_content content = { .part_count = 1 };
	struct world		      w;
	uint64_t		      fitting;
	int64_t			      first, size;

	(void) state;
	init(&w, 4 << 20);
	start(&w);
	put(&w, 1, 100);
	vdi_sim_advance(w.env, INTERVAL);
	first = vdi_journal_bytes(w.journal);
	size = write_group(&w, 1000, 3000);
	limit_files(&w, file_size(&w));
	vdi_checkpointer_notify(w.checkpointer);
	do {
		fitting = covered(&w);
		vdi_sim_advance(w.env, VD_SECONDS(60));
	} while (covered(&w) != fitting);
	assert_in_range(covered(&w), 1 + 150, 1 + 340);
	assert_true(w.logged > 0);
	assert_non_null(strstr(w.message, "no_space"));
	assert_int_equal(file_size(&w), 1 << 20);
	assert_int_equal(vdi_checkpointer_covered_bytes(w.checkpointer),
			 first + ((int64_t) fitting - 1) * size);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &w.no_limit), 0);
	vdi_sim_advance(w.env, VD_SECONDS(300)); /* each group is twice as large as the one before */
	assert_int_equal(covered(&w), 1001);
	assert_int_equal(vdi_checkpointer_covered_bytes(w.checkpointer), vdi_journal_bytes(w.journal));
	stop(&w);
	assert_status(vdi_checkpoint_open(w.dir, true, &content, &w.options.checkpoint, NULL), VD_OK);
	assert_int_equal(content.parts[0].count, 1001);
	for (size_t i = 0; i < 1001; i++)
		assert_int_equal(content.parts[0].records[i].kv->mod_rev, 2 + i);
	vdi_checkpoint_content_fini(&content);
	start(&w);
	assert_int_equal(covered(&w), 1001);
	fini(&w);
}

/* The checksum of the last record of the file, which ends where a reader finds no other. */
static uint64_t chain_end(struct world *w, uint64_t *ret_next_index)
{
	struct vdi_segment_reader reader;
	struct vdi_segment_record record;
	uint64_t		  previous;

	assert_status(vdi_segment_reader_open(&reader, w->dir, VDI_SEGMENT_JOURNAL, 1, NULL), VD_OK);
	while (vdi_segment_reader_next(&reader, &record, NULL) == VD_OK)
		;
	previous = reader.previous;
	*ret_next_index = reader.next_index;
	vdi_segment_reader_fini(&reader);
	return previous;
}

/* Damages the last record, which is on disk and not in the checkpoint yet. Returns its offset. */
static int64_t damage_last_record(struct world *w)
{
	static const uint8_t	  damage[4] = { 0xde, 0xad, 0xbe, 0xef };
	struct vdi_segment_reader reader;
	struct vdi_segment_record record;
	struct vdi_file		 *file;
	char			  name[VDI_DISK_NAME_MAX];
	int64_t			  offset = 0;

	assert_status(vdi_segment_reader_open(&reader, w->dir, VDI_SEGMENT_JOURNAL, 1, NULL), VD_OK);
	while (vdi_segment_reader_next(&reader, &record, NULL) == VD_OK)
		offset = record.offset;
	vdi_segment_reader_fini(&reader);
	vdi_segment_name(VDI_SEGMENT_JOURNAL, 1, name);
	assert_status(vdi_file_open(w->dir, name, VDI_FILE_WRITE, &file, NULL), VD_OK);
	assert_status(vdi_file_write(file, offset + VDI_SEGMENT_RECORD_HEADER_SIZE + 20, damage,
				     sizeof damage, NULL),
		      VD_OK);
	vdi_file_close(file);
	return offset;
}

/* A record that was synced and cannot be read any more: no file is the next one unless it continues exactly
 * there. The actor stops; the journal goes on. */
static void damage_in_the_journal_stops_the_actor(void **state)
{
	enum { NO_FILE, OTHER_INDEX, OTHER_CHAIN, OTHER_BOTH, NO_HEADER, KINDS };

	(void) state;
	for (unsigned kind = 0; kind < KINDS; kind++) {
		struct vdi_segment_header header = { .sequence = 2, .size = 8192, .nonce = 5 };
		struct vdi_file		 *file;
		struct world		  w;
		char			  expected[256], name[VDI_DISK_NAME_MAX];
		int64_t			  offset;

		init(&w, 1 << 20);
		start(&w);
		put(&w, 3, 100);
		vdi_sim_advance(w.env, INTERVAL);
		assert_int_equal(covered(&w), 3);
		write_group(&w, 2, 100);
		offset = damage_last_record(&w);
		if (kind != NO_FILE) {
			header.previous = chain_end(&w, &header.first_index);
			assert_int_equal(header.first_index, 5);
			header.first_index += kind == OTHER_INDEX || kind == OTHER_BOTH;
			header.previous += kind == OTHER_CHAIN || kind == OTHER_BOTH;
			assert_status(vdi_segment_create(w.dir, &header, NULL, &file, NULL), VD_OK);
			if (kind == NO_HEADER)
				assert_status(vdi_file_write(file, 20, "damage", 6, NULL), VD_OK);
			vdi_file_close(file);
		}
		vdi_checkpointer_notify(w.checkpointer);
		vdi_sim_run_until_idle(w.env);
		vdi_sim_advance(w.env, INTERVAL);
		assert_int_equal(w.logged, 1);
		vdi_segment_name(VDI_SEGMENT_JOURNAL, kind == NO_HEADER ? 2 : 1, name);
		if (kind == NO_HEADER)
			snprintf(expected, sizeof expected, "%s/%s", w.path, name);
		else
			snprintf(expected, sizeof expected,
				 "%s/%s is damaged at offset %lld: record 5 was written and is unreadable",
				 w.path, name, (long long) offset);
		assert_non_null(strstr(w.message, expected));
		/* Nothing of the group was kept, and nothing is tried again. */
		assert_int_equal(covered(&w), 3);
		write_group(&w, 3, 100);
		vdi_checkpointer_notify(w.checkpointer);
		vdi_sim_advance(w.env, VD_SECONDS(100));
		assert_int_equal(covered(&w), 3);
		assert_int_equal(w.logged, 1);
		assert_false(vdi_checkpointer_may_make_room(w.checkpointer));
		/* What the journal takes need not fit any more. */
		assert_status(vdi_checkpointer_make_room(w.checkpointer, (size_t) 1 << 50, 1, false, NULL),
			      VD_OK);
		fini(&w);
	}
}

static void out_of_memory_leaves_the_checkpoint_to_the_caller(void **state)
{
	struct vd_error error = { 0 };
	struct world	w;
	vd_status	status = VD_NOMEM;

	(void) state;
	init(&w, 1000);
	assert_status(vdi_checkpoint_create(w.dir, true, vdi_journal_store_id(w.journal),
					    &w.options.checkpoint, NULL),
		      VD_OK);
	for (uint64_t nth = 1; status != VD_OK; nth++) {
		assert_true(nth < 100);
		vdi_alloc_fail_nth(nth, 1);
		status = vdi_checkpointer_new(&w.options, &w.checkpointer, &error);
		assert_status(status, vdi_alloc_failed() ? VD_NOMEM : VD_OK);
		vdi_alloc_fail_nth(0, 0);
		if (status == VD_OK)
			break;
		assert_status(error.code, VD_NOMEM);
		assert_true(error.message[0] != 0);
		assert_null(w.checkpointer);
	}
	put(&w, 20, 100);
	assert_true(covered(&w) > 10);
	fini(&w);
}

/* ---- Room ---- */

/* Without a checkpoint there is room unless the attempt to make one has failed. */
static void a_checkpoint_that_cannot_be_made_refuses_what_grows(void **state)
{
	struct vd_error error = { 0 };
	struct world	w;

	(void) state;
	init(&w, 1 << 20);
	write_group(&w, 1, 100);
	assert_status(vdi_checkpointer_new(&w.options, &w.checkpointer, NULL), VD_OK);
	assert_int_equal(vdi_checkpointer_reserve_bytes(w.checkpointer), 0);
	assert_status(vdi_checkpointer_make_room(w.checkpointer, 100, 1, false, NULL), VD_OK);
	assert_status(vdi_checkpointer_make_room(w.checkpointer, 100, 1, true, NULL), VD_OK);
	limit_files(&w, 100000);
	vdi_sim_run_until_idle(w.env);
	vdi_sim_advance(w.env, INTERVAL);
	assert_int_equal(w.logged, 1);
	assert_status(vdi_checkpointer_make_room(w.checkpointer, 100, 1, false, &error), VD_NO_SPACE);
	assert_non_null(strstr(error.message, "there is no room for"));
	assert_non_null(strstr(error.message, VDI_CHECKPOINT_NAME));
	assert_status(vdi_checkpointer_make_room(w.checkpointer, 100, 1, true, NULL), VD_OK);
	assert_int_equal(vdi_checkpointer_reserve_bytes(w.checkpointer), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &w.no_limit), 0);
	vdi_sim_advance(w.env, RETRY);
	vdi_sim_advance(w.env, INTERVAL);
	assert_int_equal(covered(&w), 1);
	assert_status(vdi_checkpointer_make_room(w.checkpointer, 100, 1, false, NULL), VD_OK);
	assert_int_equal(vdi_checkpointer_reserve_bytes(w.checkpointer), (2 << 20) + (512 << 10));
	fini(&w);
}

static int64_t end_of_file(struct world *w)
{
	struct vdi_checkpoint_content content = { .part_count = 1 };
	struct vdi_checkpoint	     *checkpoint;
	struct vdi_checkpoint_room    room;

	assert_status(vdi_checkpoint_open(w->dir, true, &content, &checkpoint, NULL), VD_OK);
	vdi_checkpoint_content_fini(&content);
	assert_status(vdi_checkpoint_measure_room(checkpoint, false, &room, NULL), VD_OK);
	vdi_checkpoint_close(checkpoint);
	return room.end_bytes;
}

/* Twice the bytes of all that is not in the checkpoint yet, 40 for each change of a commit with many of them,
 * and the reserves. */
static void the_file_is_made_as_long_as_the_commit_may_need(void **state)
{
	static const struct {
		size_t	size, change_count;
		bool	is_freeing;
		int64_t needed;
	} rows[] = {
		{ 100000, 1, false, 2 * 100000 + (2 << 20) },
		{ 100000, 1, true, 2 * 100000 },
		{ 4000000, 10, false, 2 * 4000000 + 4000000 / 4096 * 4096 + (2 << 20) },
		{ 4000000, 10, true, 2 * 4000000 },
		{ 1000000, 20000, true, 2 * 1000000 },
		{ 1000000, 25001, true, 3 * 1000000 },
		{ 1000000, 25000, true, 2 * 1000000 },
		{ 1000000, 50001, true, 4 * 1000000 },
		{ 1000000, 50001, false, 4 * 1000000 + 1000000 / 4096 * 4096 + (2 << 20) },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct world w;
		int64_t	     end, before, least;

		init(&w, 1 << 20);
		write_group(&w, 1, 100);
		start(&w);
		vdi_sim_advance(w.env, INTERVAL);
		assert_int_equal(covered(&w), 1);
		end = end_of_file(&w);
		before = file_size(&w);
		least = (end + rows[i].needed + (512 << 10) + 65535) / 65536 * 65536;
		assert_status(vdi_checkpointer_make_room(w.checkpointer, rows[i].size, rows[i].change_count,
							 rows[i].is_freeing, NULL),
			      VD_OK);
		if (least <= before)
			assert_int_equal(file_size(&w), before);
		else /* by an eighth more, for what comes next */
			assert_in_range(file_size(&w), least, least + before / 8 + 65536);
		assert_int_equal(file_size(&w) % 65536, 0);
		/* It is there now. */
		before = file_size(&w);
		assert_status(vdi_checkpointer_make_room(w.checkpointer, rows[i].size, rows[i].change_count,
							 rows[i].is_freeing, NULL),
			      VD_OK);
		assert_int_equal(file_size(&w), before);
		fini(&w);
	}
}

/* A file that is long enough already, to the byte, is left as it is. */
static void a_file_that_is_long_enough_is_left_alone(void **state)
{
	(void) state;
	for (int64_t missing = 0; missing < 2; missing++) {
		struct world w;
		int64_t	     size;

		init(&w, 1 << 20);
		write_group(&w, 1, 100);
		start(&w);
		vdi_sim_advance(w.env, INTERVAL);
		size = end_of_file(&w) + 2 * 1000000 + (512 << 10) - missing;
		assert_status(vdi_checkpoint_reserve(w.dir, size, NULL), VD_OK);
		assert_status(vdi_checkpointer_make_room(w.checkpointer, 1000000, 1, true, NULL), VD_OK);
		if (missing)
			assert_true(file_size(&w) > size);
		else
			assert_int_equal(file_size(&w), size);
		fini(&w);
	}
}

/* What waits for its group counts as well, and no longer once it is in the checkpoint. */
static void commits_that_wait_need_room_too(void **state)
{
	struct world w;
	int64_t	     end, waiting, least;

	(void) state;
	init(&w, 64 << 20);
	write_group(&w, 1, 100);
	start(&w);
	vdi_sim_advance(w.env, INTERVAL);
	end = end_of_file(&w);
	waiting = 100 * write_group(&w, 100, 50000);
	assert_status(vdi_checkpointer_make_room(w.checkpointer, 1000, 1, true, NULL), VD_OK);
	least = (end + 2 * (waiting + 1000) + (512 << 10) + 65535) / 65536 * 65536;
	assert_in_range(file_size(&w), least, least + least / 8 + 65536);
	vdi_checkpointer_notify(w.checkpointer);
	vdi_sim_run_until_idle(w.env);
	vdi_sim_advance(w.env, INTERVAL);
	assert_int_equal(covered(&w), 101);
	/* Taking them did not need more than was made. */
	assert_in_range(file_size(&w), least, least + least / 8 + 65536);
	least = file_size(&w);
	assert_status(vdi_checkpointer_make_room(w.checkpointer, 1000, 1, true, NULL), VD_OK);
	assert_int_equal(file_size(&w), least);
	fini(&w);
}

/* A disk without room refuses, and says how much is missing; the actor looks for room meanwhile. */
static void a_full_disk_refuses_and_the_actor_looks_for_room(void **state)
{
	struct vd_error error = { 0 };
	struct world	w;

	(void) state;
	init(&w, 1 << 20);
	write_group(&w, 1, 100);
	start(&w);
	vdi_sim_advance(w.env, INTERVAL);
	assert_false(vdi_checkpointer_may_make_room(w.checkpointer));
	for (unsigned round = 0; round < 2; round++) {
		/* The second time by the file system, although it says that there is room. */
		size_t size = round ? 9000000 : (size_t) 1 << 50, fitting = 4000000 + 8000000 * round;

		if (round)
			limit_files(&w, file_size(&w));
		assert_status(vdi_checkpointer_make_room(w.checkpointer, size, 1, false, &error),
			      VD_NO_SPACE);
		if (round == 0) {
			assert_non_null(strstr(error.message, "bytes are needed and"));
			assert_non_null(strstr(error.message, VDI_CHECKPOINT_NAME));
		}
		/* A commit that waits is taken at once now. */
		write_group(&w, 1, 100);
		vdi_checkpointer_notify(w.checkpointer);
		assert_true(vdi_checkpointer_may_make_room(w.checkpointer));
		vdi_sim_run_until_idle(w.env);
		assert_int_equal(covered(&w), 2 + 2 * round);
		assert_false(vdi_checkpointer_may_make_room(w.checkpointer));
		/* Until there is room again. */
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &w.no_limit), 0);
		assert_status(vdi_checkpointer_make_room(w.checkpointer, fitting, 1, false, NULL), VD_OK);
		put(&w, 1, 100);
		assert_int_equal(covered(&w), 2 + 2 * round);
		expect_after(&w, INTERVAL, 3 + 2 * round);
	}
	assert_int_equal(w.logged, 0);
	fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_commits_wait_for_the_interval),
		cmocka_unit_test(enough_bytes_are_taken_at_once_in_groups_of_that_size),
		cmocka_unit_test(a_start_continues_where_the_last_process_ended),
		cmocka_unit_test(a_failed_group_is_tried_again_after_a_second),
		cmocka_unit_test(a_group_that_does_not_fit_is_taken_in_parts),
		cmocka_unit_test(damage_in_the_journal_stops_the_actor),
		cmocka_unit_test(out_of_memory_leaves_the_checkpoint_to_the_caller),
		cmocka_unit_test(a_checkpoint_that_cannot_be_made_refuses_what_grows),
		cmocka_unit_test(the_file_is_made_as_long_as_the_commit_may_need),
		cmocka_unit_test(a_file_that_is_long_enough_is_left_alone),
		cmocka_unit_test(commits_that_wait_need_room_too),
		cmocka_unit_test(a_full_disk_refuses_and_the_actor_looks_for_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
