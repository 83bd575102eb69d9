/* Unit tests of storage/mvcc/disk/free_pages.c: which pages count, and in runs of which length. Real
 * files. */
#include <lmdb.h>

#include "checkpoint_file.h"
#include "rand.h"

static struct vdi_checkpoint_room measure(struct checkpoint_file *f)
{
	struct vdi_checkpoint_room room;

	assert_status(vdi_checkpoint_measure_room(f->checkpoint, true, &room, NULL), VD_OK);
	return room;
}

static void empty_group(struct checkpoint_file *f)
{
	assert_status(vdi_checkpoint_begin(f->checkpoint, 0, NULL), VD_OK);
	assert_status(vdi_checkpoint_commit(f->checkpoint, NULL), VD_OK);
}

static void remove_dead(struct checkpoint_file *f)
{
	checkpoint_file_compact(f, f->revision);
	while (vdi_checkpoint_compact_pending(f->checkpoint))
		assert_status(vdi_checkpoint_compact_step(f->checkpoint, SIZE_MAX, NULL), VD_OK);
}

/* A value takes its own pages: eight that follow one another. */
static void pages_of_the_last_group_are_not_usable_yet(void **state)
{
	for (unsigned waits = 0; waits < 2; waits++) {
		struct checkpoint_file	   f;
		struct vdi_checkpoint_room room;
		int64_t			   end;

		(void) state;
		checkpoint_file_init(&f);
		checkpoint_file_put(&f, 30000);
		checkpoint_file_put(&f, 10);
		assert_status(checkpoint_file_change(&f, &(vd_rev) { 2 }, 1, 0), VD_OK);
		remove_dead(&f);
		room = measure(&f);
		assert_int_equal(room.free_bytes[3], 0);
		end = room.end_bytes;
		if (waits) {
			empty_group(&f);
			room = measure(&f);
			assert_int_equal(room.free_bytes[3], 8 * VDI_CHECKPOINT_PAGE_SIZE);
			assert_int_equal(room.end_bytes, end);
		}
		/* What LMDB does with them. */
		checkpoint_file_put(&f, 30000);
		room = measure(&f);
		assert_true(waits ? room.end_bytes == end :
				    room.end_bytes >= end + 8 * VDI_CHECKPOINT_PAGE_SIZE);
		checkpoint_file_fini(&f);
	}
}

#define PAGES_MAX 4096

/* LMDB's list of free pages: transaction -> count, then numbers. */
static void mark_free_pages(struct checkpoint_file *f, bool is_free[PAGES_MAX])
{
	char	    path[128];
	MDB_env	   *env;
	MDB_txn	   *txn;
	MDB_cursor *cursor;
	MDB_val	    key, value;
	MDB_envinfo info;

	memset(is_free, 0, PAGES_MAX * sizeof *is_free);
	snprintf(path, sizeof path, "%s/%s", f->path, VDI_CHECKPOINT_NAME);
	assert_int_equal(mdb_env_create(&env), 0);
	assert_int_equal(mdb_env_open(env, path, MDB_NOSUBDIR | MDB_NOLOCK | MDB_RDONLY, 0600), 0);
	assert_int_equal(mdb_env_info(env, &info), 0);
	assert_int_equal(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), 0);
	assert_int_equal(mdb_cursor_open(txn, 0, &cursor), 0);
	while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
		const size_t *list = value.mv_data;

		for (size_t i = 1; *(const size_t *) key.mv_data < info.me_last_txnid && i <= list[0]; i++) {
			assert_true(list[i] < PAGES_MAX);
			is_free[list[i]] = true;
		}
	}
	mdb_cursor_close(cursor);
	mdb_txn_abort(txn);
	mdb_env_close(env);
}

/* Bytes of free pages in pieces of so many pages that follow one another. */
static int64_t count_pieces(const bool is_free[PAGES_MAX], unsigned length)
{
	int64_t	 bytes = 0;
	unsigned run = 0;

	for (unsigned i = 0; i < PAGES_MAX; i++) {
		run = is_free[i] ? run + 1 : 0;
		if (run && run % length == 0)
			bytes += length * VDI_CHECKPOINT_PAGE_SIZE;
	}
	return bytes;
}

static void runs_are_counted_by_their_length(void **state)
{
	static bool	       is_free[PAGES_MAX];
	struct checkpoint_file f;
	struct vdi_rand	       rand;
	unsigned	       most = 0;

	(void) state;
	checkpoint_file_init(&f);
	vdi_rand_init(&rand, 1);
	for (unsigned round = 0; round < 40; round++) {
		vd_rev			   first = f.revision + 1, last;
		struct vdi_checkpoint_room room, quick;

		for (unsigned i = 0; i < 10; i++)
			checkpoint_file_put(
				&f, 1 + vdi_rand_below(&rand, vdi_rand_once_in(&rand, 2) ? 50000 : 2000));
		last = f.revision;
		for (vd_rev revision = first; revision <= last; revision++)
			if (!vdi_rand_once_in(&rand, 4))
				assert_status(checkpoint_file_change(&f, &revision, 1, 0), VD_OK);
		if (vdi_rand_once_in(&rand, 2))
			remove_dead(&f);
		room = measure(&f);
		mark_free_pages(&f, is_free);
		for (unsigned i = 0; i < VDI_CHECKPOINT_ROOM_CLASSES; i++) {
			assert_int_equal(room.free_bytes[i], count_pieces(is_free, 1u << i));
			most = room.free_bytes[i] ? VDI_MAX(most, i) : most;
		}
		assert_status(vdi_checkpoint_measure_room(f.checkpoint, false, &quick, NULL), VD_OK);
		assert_int_equal(quick.end_bytes, room.end_bytes);
		assert_int_equal(quick.free_bytes[0], 0);
	}
	assert_true(most >= 5);
	checkpoint_file_fini(&f);
}

static void out_of_memory_is_told(void **state)
{
	struct vdi_checkpoint_room room;
	struct vd_error		   error = { 0 };
	struct checkpoint_file	   f;
	vd_status		   status = VD_NOMEM;
	bool			   has_failed = true;

	(void) state;
	checkpoint_file_init(&f);
	checkpoint_file_put(&f, 30000);
	checkpoint_file_put(&f, 30000);
	for (uint64_t nth = 1; has_failed; nth++) {
		int64_t live = vdi_alloc_live();

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_checkpoint_measure_room(f.checkpoint, true, &room, &error);
		has_failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, has_failed ? VD_NOMEM : VD_OK);
		assert_true(nth > 1 || has_failed);
		assert_int_equal(vdi_alloc_live(), live);
	}
	assert_status(error.code, VD_NOMEM);
	checkpoint_file_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_of_the_last_group_are_not_usable_yet),
		cmocka_unit_test(runs_are_counted_by_their_length),
		cmocka_unit_test(out_of_memory_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
