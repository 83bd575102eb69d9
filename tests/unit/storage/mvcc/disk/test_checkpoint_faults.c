/* Unit tests of storage/mvcc/disk/checkpoint.c: each call of LMDB fails once, with each kind of error. The
 * caller hears of it, nothing is lost or half done, and the next attempt succeeds. Real files. */
#include <dlfcn.h>
#include <errno.h>
#include <lmdb.h>

#include "checkpoint_file.h"

/* ---- LMDB: these take the place of the library's own ---- */

static unsigned fail_at; /* 0: never */
static int	fail_with;
static bool	has_failed;
static size_t	map_size; /* the last one that was set */

static bool fails(void)
{
	bool is_now = fail_at && --fail_at == 0;

	has_failed |= is_now;
	return is_now;
}

#define REAL(name) *(void **) &real = dlsym(RTLD_NEXT, name)

int mdb_env_create(MDB_env **env)
{
	int (*real)(MDB_env **);

	REAL("mdb_env_create");
	*env = NULL;
	return fails() ? fail_with : real(env);
}

int mdb_env_set_maxdbs(MDB_env *env, MDB_dbi dbs)
{
	int (*real)(MDB_env *, MDB_dbi);

	REAL("mdb_env_set_maxdbs");
	return fails() ? fail_with : real(env, dbs);
}

int mdb_env_set_mapsize(MDB_env *env, size_t size)
{
	int (*real)(MDB_env *, size_t);

	REAL("mdb_env_set_mapsize");
	map_size = size;
	return fails() ? fail_with : real(env, size);
}

int mdb_env_open(MDB_env *env, const char *path, unsigned int flags, mdb_mode_t mode)
{
	int (*real)(MDB_env *, const char *, unsigned int, mdb_mode_t);

	REAL("mdb_env_open");
	return fails() ? fail_with : real(env, path, flags, mode);
}

int mdb_txn_begin(MDB_env *env, MDB_txn *parent, unsigned int flags, MDB_txn **txn)
{
	int (*real)(MDB_env *, MDB_txn *, unsigned int, MDB_txn **);

	REAL("mdb_txn_begin");
	*txn = (MDB_txn *) &has_failed; /* of no use */
	return fails() ? fail_with : real(env, parent, flags, txn);
}

/* It ends the transaction either way. */
int mdb_txn_commit(MDB_txn *txn)
{
	int (*real)(MDB_txn *);

	REAL("mdb_txn_commit");
	if (!fails())
		return real(txn);
	mdb_txn_abort(txn);
	return fail_with;
}

int mdb_dbi_open(MDB_txn *txn, const char *name, unsigned int flags, MDB_dbi *dbi)
{
	int (*real)(MDB_txn *, const char *, unsigned int, MDB_dbi *);

	REAL("mdb_dbi_open");
	return fails() ? fail_with : real(txn, name, flags, dbi);
}

int mdb_get(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *data)
{
	int (*real)(MDB_txn *, MDB_dbi, MDB_val *, MDB_val *);

	REAL("mdb_get");
	return fails() ? fail_with : real(txn, dbi, key, data);
}

int mdb_put(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *data, unsigned int flags)
{
	int (*real)(MDB_txn *, MDB_dbi, MDB_val *, MDB_val *, unsigned int);

	REAL("mdb_put");
	return fails() ? fail_with : real(txn, dbi, key, data, flags);
}

int mdb_del(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *data)
{
	int (*real)(MDB_txn *, MDB_dbi, MDB_val *, MDB_val *);

	REAL("mdb_del");
	return fails() ? fail_with : real(txn, dbi, key, data);
}

int mdb_cursor_open(MDB_txn *txn, MDB_dbi dbi, MDB_cursor **cursor)
{
	int (*real)(MDB_txn *, MDB_dbi, MDB_cursor **);

	REAL("mdb_cursor_open");
	return fails() ? fail_with : real(txn, dbi, cursor);
}

int mdb_cursor_get(MDB_cursor *cursor, MDB_val *key, MDB_val *data, MDB_cursor_op op)
{
	int (*real)(MDB_cursor *, MDB_val *, MDB_val *, MDB_cursor_op);

	REAL("mdb_cursor_get");
	return fails() ? fail_with : real(cursor, key, data, op);
}

/* ---- What is done while they fail ---- */

static const struct {
	int	  error;
	vd_status status;
} errors[] = { { EIO, VD_IO },
	       { ENOSPC, VD_NO_SPACE },
	       { EDQUOT, VD_NO_SPACE },
	       { ENOMEM, VD_NOMEM },
	       { MDB_MAP_FULL, VD_FULL },
	       { MDB_CORRUPTED, VD_CORRUPT },
	       { MDB_PAGE_NOTFOUND, VD_CORRUPT },
	       { MDB_INVALID, VD_CORRUPT },
	       { MDB_VERSION_MISMATCH, VD_CORRUPT },
	       { MDB_KEYEXIST, VD_CORRUPT },
	       { MDB_BAD_TXN, VD_IO } };

struct walked {
	unsigned count;
	vd_rev	 last;
};

static vd_status note_record(void *arg, const struct vdi_record *record)
{
	struct walked *walked = arg;

	assert_true(record->mod_rev >= walked->last);
	walked->count++;
	walked->last = record->mod_rev;
	return VD_OK;
}

/* Records of 2 to 11, of which 12 deletes two; leases 1 and 2. */
static void prepare(struct checkpoint_file *f)
{
	const struct vdi_lease_change leases[] = {
		{ VDI_LEASE_GRANTED, 1, 10, { 100 } },
		{ VDI_LEASE_GRANTED, 2, 20, { 200 } },
	};

	checkpoint_file_init(f);
	for (unsigned i = 0; i < 10; i++)
		checkpoint_file_put(f, 100);
	assert_status(checkpoint_file_change(f, (vd_rev[]) { 2, 3 }, 2, 0), VD_OK);
	assert_status(checkpoint_file_commit(f, &(struct vdi_commit) { .leases = leases, .lease_count = 2 }),
		      VD_OK);
}

static vd_status open_again(struct checkpoint_file *f, struct vd_error *reterr)
{
	struct vdi_checkpoint_content content = { .part_count = 1 };
	struct vdi_checkpoint	     *checkpoint;
	vd_status		      status;

	f->checkpoint = vdi_checkpoint_close(f->checkpoint);
	status = vdi_checkpoint_open(f->dir, true, &content, &checkpoint, reterr);
	vdi_checkpoint_content_fini(&content);
	if (status == VD_OK)
		f->checkpoint = checkpoint;
	return status;
}

static vd_status apply_group(struct checkpoint_file *f, struct vd_error *reterr)
{
	const struct vdi_lease_change leases[] = {
		{ VDI_LEASE_RENEWED, 1, 0, { 300 } },
		{ VDI_LEASE_REVOKED, 2, 0, { 0 } },
		{ VDI_LEASE_RENEWED, 2, 0, { 400 } }, /* gone */
		{ VDI_LEASE_GRANTED, 3, 30, { 500 } },
	};
	struct vdi_change change = { .kv = checkpoint_file_kv(f->revision + 1, 0, 100) };
	vd_status	  status;

	status = checkpoint_file_try(f,
				     &(struct vdi_commit) { .revision = f->revision + 1,
							    .changes = &change,
							    .change_count = 1,
							    .leases = leases,
							    .lease_count = 4 },
				     reterr);
	vd_kv_unref(change.kv);
	f->revision += status == VD_OK;
	return status;
}

static vd_status compact_all(struct checkpoint_file *f, struct vd_error *reterr)
{
	vd_status status = VD_OK;

	while (status == VD_OK && vdi_checkpoint_compact_pending(f->checkpoint))
		status = vdi_checkpoint_compact_step(f->checkpoint, 5, reterr);
	return status;
}

static vd_status walk_all(struct checkpoint_file *f, struct vd_error *reterr)
{
	struct walked walked = { 0 };
	vd_status     status = vdi_checkpoint_walk(f->checkpoint, 4, 11, note_record, &walked, reterr);

	assert_int_equal(walked.count, status == VD_OK ? 8 : walked.count);
	return status;
}

static vd_status measure(struct checkpoint_file *f, struct vd_error *reterr)
{
	struct vdi_checkpoint_room room, expected;
	vd_status		   status = vdi_checkpoint_measure_room(f->checkpoint, true, &room, reterr);

	if (status == VD_OK) {
		fail_at = 0;
		assert_status(vdi_checkpoint_measure_room(f->checkpoint, true, &expected, NULL), VD_OK);
		assert_memory_equal(&room, &expected, sizeof room);
		assert_true(room.free_bytes[0] > 0);
	}
	return status;
}

static const struct {
	const char *name;
	vd_status (*attempt)(struct checkpoint_file *f, struct vd_error *reterr);
	bool is_compacted; /* before */
	/* After it. */
	int64_t record_count, lease_count;
} rows[] = {
	{ "open", open_again, false, 12, 2 },	    { "group", apply_group, false, 13, 2 },
	{ "compaction", compact_all, true, 10, 2 }, { "walk", walk_all, false, 12, 2 },
	{ "room", measure, false, 12, 2 },
};

/* Returns whether a call has failed. */
static bool attempt_with_failure(size_t row, size_t kind, unsigned nth)
{
	struct checkpoint_file		  f;
	struct vd_error			  error = { 0 };
	const struct vdi_checkpoint_meta *meta;
	vd_status			  status;
	bool				  was_hit;

	prepare(&f);
	if (rows[row].is_compacted)
		checkpoint_file_compact(&f, f.revision);
	has_failed = false;
	fail_with = errors[kind].error;
	fail_at = nth;
	status = rows[row].attempt(&f, &error);
	fail_at = 0;
	was_hit = has_failed;
	if (status != VD_OK) {
		assert_true(was_hit);
		if (status != errors[kind].status)
			fail_msg("%s, call %u, error %d: %s", rows[row].name, nth, fail_with,
				 vd_status_name(status));
		assert_status(error.code, status);
		assert_non_null(strstr(error.message, f.path));
		assert_non_null(strstr(error.message, VDI_CHECKPOINT_NAME));
		assert_status(rows[row].attempt(&f, &error), VD_OK);
	}
	/* Every record and lease is checked against the sums. */
	checkpoint_file_reopen(&f);
	meta = vdi_checkpoint_meta(f.checkpoint);
	assert_int_equal(meta->record_count, rows[row].record_count);
	assert_int_equal(meta->lease_count, rows[row].lease_count);
	assert_int_equal(meta->covered, f.index);
	checkpoint_file_fini(&f);
	return was_hit;
}

static void each_failure_of_lmdb_is_told_and_nothing_is_half_done(void **state)
{
	(void) state;
	for (size_t row = 0; row < VDI_ARRAY_SIZE(rows); row++) {
		unsigned nth = 1;

		while (attempt_with_failure(row, nth % VDI_ARRAY_SIZE(errors), nth))
			nth++;
		assert_true(nth > 3);
	}
}

static void each_error_of_lmdb_has_its_status(void **state)
{
	(void) state;
	for (size_t kind = 0; kind < VDI_ARRAY_SIZE(errors); kind++)
		assert_true(attempt_with_failure(3, kind, 1));
}

static int64_t file_size(struct checkpoint_file *f)
{
	int64_t size;

	assert_status(vdi_checkpoint_file_size(f->dir, &size, NULL), VD_OK);
	return size;
}

/* A map behind the end of the file would be deadly. */
static void the_map_is_as_long_as_the_file(void **state)
{
	struct checkpoint_file f;
	int64_t		       size;

	(void) state;
	prepare(&f);
	for (unsigned i = 0; i < 3; i++) {
		assert_status(vdi_checkpoint_reserve(f.dir, file_size(&f) + (64 << 10), NULL), VD_OK);
		map_size = 0;
		if (i % 2)
			checkpoint_file_put(&f, 10);
		else
			checkpoint_file_reopen(&f);
		assert_int_equal(map_size, file_size(&f));
	}
	/* A full one is made larger, and the group can be tried again. */
	size = file_size(&f);
	fail_with = MDB_MAP_FULL;
	fail_at = 2;
	assert_status(apply_group(&f, NULL), VD_FULL);
	assert_true(file_size(&f) >= size + (64 << 10));
	assert_int_equal(map_size, file_size(&f));
	assert_status(apply_group(&f, NULL), VD_OK);
	/* For another reason it is not. */
	size = file_size(&f);
	fail_with = EIO;
	fail_at = 2;
	assert_status(apply_group(&f, NULL), VD_IO);
	assert_int_equal(file_size(&f), size);
	checkpoint_file_fini(&f);
}

/* The file appears when it is whole. */
static void each_failure_of_lmdb_undoes_a_new_file(void **state)
{
	uint8_t store_id[VDI_STORE_ID_SIZE] = { 7 };
	bool	was_hit = true;

	(void) state;
	for (unsigned nth = 1; was_hit; nth++) {
		struct checkpoint_file f;
		struct vdi_file	      *file;
		struct vd_error	       error = { 0 };
		vd_status	       status;

		checkpoint_file_init(&f);
		f.checkpoint = vdi_checkpoint_close(f.checkpoint);
		assert_status(vdi_dir_unlink(f.dir, VDI_CHECKPOINT_NAME, NULL), VD_OK);
		has_failed = false;
		fail_with = ENOSPC;
		fail_at = nth;
		status = vdi_checkpoint_create(f.dir, true, store_id, &f.checkpoint, &error);
		fail_at = 0;
		was_hit = has_failed;
		assert_status(vdi_file_open(f.dir, VDI_CHECKPOINT_TEMPORARY, VDI_FILE_READ, &file, NULL),
			      VD_NOT_FOUND);
		if (status != VD_OK) {
			assert_true(was_hit);
			assert_status(status, VD_NO_SPACE);
			assert_status(error.code, VD_NO_SPACE);
			f.checkpoint = NULL;
			status = vdi_checkpoint_create(f.dir, true, store_id, &f.checkpoint, &error);
			assert_status(status, VD_OK);
		}
		checkpoint_file_reopen(&f);
		assert_memory_equal(vdi_checkpoint_meta(f.checkpoint)->store_id, store_id, sizeof store_id);
		checkpoint_file_fini(&f);
	}
}

/* A lease of the wrong size, with everything else in order: an open without the content does not see it. */
static void a_lease_that_makes_no_sense_is_not_renewed(void **state)
{
	for (unsigned size = 23; size <= 25; size++) {
		const struct vdi_lease_change renewed = { VDI_LEASE_RENEWED, 1, 0, { 300 } };
		struct checkpoint_file	      f;
		uint64_t		      id = __builtin_bswap64(1);
		uint8_t			      bytes[25] = { 0 };
		MDB_val			      key = { 8, &id }, value = { size, bytes };
		char			      path[128];
		MDB_env			     *env;
		MDB_txn			     *txn;
		MDB_dbi			      leases;
		vd_status		      status;

		(void) state;
		prepare(&f);
		f.checkpoint = vdi_checkpoint_close(f.checkpoint);
		snprintf(path, sizeof path, "%s/%s", f.path, VDI_CHECKPOINT_NAME);
		assert_int_equal(mdb_env_create(&env), 0);
		assert_int_equal(mdb_env_set_maxdbs(env, 3), 0);
		assert_int_equal(mdb_env_open(env, path, MDB_NOSUBDIR | MDB_NOLOCK, 0600), 0);
		assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
		assert_int_equal(mdb_dbi_open(txn, "leases", 0, &leases), 0);
		assert_int_equal(mdb_put(txn, leases, &key, &value, 0), 0);
		assert_int_equal(mdb_txn_commit(txn), 0);
		mdb_env_close(env);
		assert_status(vdi_checkpoint_open(f.dir, true, NULL, &f.checkpoint, NULL), VD_OK);
		status = checkpoint_file_commit(
			&f, &(struct vdi_commit) { .leases = &renewed, .lease_count = 1 });
		assert_status(status, size == 24 ? VD_OK : VD_CORRUPT);
		checkpoint_file_fini(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_failure_of_lmdb_is_told_and_nothing_is_half_done),
		cmocka_unit_test(each_error_of_lmdb_has_its_status),
		cmocka_unit_test(the_map_is_as_long_as_the_file),
		cmocka_unit_test(each_failure_of_lmdb_undoes_a_new_file),
		cmocka_unit_test(a_lease_that_makes_no_sense_is_not_renewed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
