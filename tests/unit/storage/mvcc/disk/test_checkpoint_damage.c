/* Checkpoints with damage, missing files, and an LMDB that refuses: each is named, and nothing is lost. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend_model.h"
#include "checkpoint.h"
#include "checkpoint_world.h"

/* Whatever byte is turned: an error, or every commit as it was (the byte meant nothing). Never something
 * else, never a crash. */
static void damage_of_any_page_byte_is_found_or_means_nothing(void **state)
{
	struct checkpoint_world world;
	char			path[128];
	unsigned		found = 0, meaningless = 0;
	size_t			commits;

	(void) state;
	checkpoint_write_and_settle(&world, 4);
	commits = world.model.commit_count;
	snprintf(path, sizeof path, "%s/%s", world.path, VDI_CHECKPOINT_NAME);
	for (int i = 0; i < 1500; i++) {
		int64_t offset = i < 300 ? i : (int64_t) vdi_rand_below(&world.model.rand, 600000);
		uint8_t bits = (uint8_t) (1u << vdi_rand_below(&world.model.rand, 8));

		if (i >= 300 && i % 3 == 0)
			offset = offset / 4096 * 4096 + (int64_t) vdi_rand_below(&world.model.rand, 64);
		checkpoint_flip(path, offset, bits);
		if (checkpoint_world_open(&world) == VD_OK) {
			assert_int_equal(world.model.commit_count, commits);
			meaningless++;
			checkpoint_world_close(&world); /* before the actor writes anything */
		} else {
			assert_true(world.error.code == VD_CORRUPT || world.error.code == VD_NEWER_FORMAT);
			assert_non_null(strstr(world.error.message, world.path));
			found++;
		}
		checkpoint_flip(path, offset, bits);
	}
	assert_true(found > 100 && meaningless > 100);
	assert_status(checkpoint_world_open(&world), VD_OK);
	checkpoint_world_fini(&world);
}

/* By itself, not by what else is wrong with what stands there. */
static void a_node_at_an_odd_place_is_named(void **state)
{
	struct checkpoint_world world;
	unsigned char		header[20];
	char			path[128];
	unsigned		pages = 0;
	int			fd;

	(void) state;
	checkpoint_write_and_settle(&world, 5);
	snprintf(path, sizeof path, "%s/%s", world.path, VDI_CHECKPOINT_NAME);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	for (int64_t page = 2; pread(fd, header, sizeof header, page * 4096) == (ssize_t) sizeof header;
	     page++) {
		if (header[0] != page % 256 || header[1] != page / 256 || header[10] != 2 || header[11] != 0)
			continue; /* no leaf */
		checkpoint_flip(path, page * 4096 + 16, 1);
		if (checkpoint_world_open(&world) == VD_OK)
			checkpoint_world_close(&world); /* a page that is free */
		else
			pages += strstr(world.error.message, "a node leads outside its page") != NULL;
		checkpoint_flip(path, page * 4096 + 16, 1);
	}
	close(fd);
	assert_true(pages > 3);
	checkpoint_world_fini(&world);
}

static void a_cut_checkpoint_is_named_and_never_mapped(void **state)
{
	struct checkpoint_world world;
	char			path[128];
	int64_t			size;

	(void) state;
	checkpoint_write_and_settle(&world, 5);
	snprintf(path, sizeof path, "%s/%s", world.path, VDI_CHECKPOINT_NAME);
	size = checkpoint_size_of(path);
	for (int64_t at = 0; at <= 400000; at += at < 9000 ? 1000 : 41000) {
		assert_int_equal(truncate(path, at), 0);
		assert_int_not_equal(checkpoint_world_open(&world), VD_OK);
		assert_true(world.error.code == VD_CORRUPT);
		assert_non_null(strstr(world.error.message, VDI_CHECKPOINT_NAME));
	}
	assert_true(size >= 1 << 20);
	checkpoint_world_fini(&world);
}

static void a_missing_journal_beside_a_checkpoint_is_damage(void **state)
{
	struct checkpoint_world world;
	char			path[512];

	(void) state;
	checkpoint_write_and_settle(&world, 6);
	snprintf(path, sizeof path, "rm %s/*.vdj", world.path);
	assert_int_equal(system(path), 0);
	assert_status(checkpoint_world_open(&world), VD_CORRUPT);
	checkpoint_world_fini(&world);
}

static unsigned refuse_at; /* 0: never; else so many calls from now */
static bool	has_refused;

static bool refuses(void)
{
	bool refused = refuse_at && --refuse_at == 0;

	has_refused |= refused;
	return refused;
}

/* These take the place of the library's own. */
int mdb_txn_begin(MDB_env *env, MDB_txn *parent, unsigned int flags, MDB_txn **txn)
{
	int (*next)(MDB_env *, MDB_txn *, unsigned int, MDB_txn **);

	*(void **) &next = dlsym(RTLD_NEXT, "mdb_txn_begin");
	return refuses() ? ENOMEM : next(env, parent, flags, txn);
}

int mdb_dbi_open(MDB_txn *txn, const char *name, unsigned int flags, MDB_dbi *dbi)
{
	int (*next)(MDB_txn *, const char *, unsigned int, MDB_dbi *);

	*(void **) &next = dlsym(RTLD_NEXT, "mdb_dbi_open");
	return refuses() ? ENOMEM : next(txn, name, flags, dbi);
}

int mdb_cursor_open(MDB_txn *txn, MDB_dbi dbi, MDB_cursor **cursor)
{
	int (*next)(MDB_txn *, MDB_dbi, MDB_cursor **);

	*(void **) &next = dlsym(RTLD_NEXT, "mdb_cursor_open");
	return refuses() ? ENOMEM : next(txn, dbi, cursor);
}

/* Each call of a start, and of the work behind it, is refused once: the start says so, or the work is done
 * later; nothing is lost either way. */
static void what_lmdb_refuses_is_told_or_tried_again(void **state)
{
	struct checkpoint_world world;
	bool			was_refused = true;

	(void) state;
	checkpoint_write_and_settle(&world, 31);
	for (unsigned nth = 1; was_refused; nth++) {
		vd_status status;

		refuse_at = nth;
		has_refused = false;
		memset(&world.error, 0, sizeof world.error);
		status = checkpoint_world_open(&world);
		was_refused = has_refused;
		if (was_refused && status != VD_OK) {
			assert_status(world.error.code, status);
			assert_true(world.error.message[0]);
			refuse_at = 0;
			assert_status(checkpoint_world_open(&world), VD_OK);
		}
		refuse_at = 0;
		checkpoint_world_close(&world);
		assert_true(nth < 100);
	}
	for (unsigned nth = 1; nth <= 12; nth++) {
		assert_status(checkpoint_world_open(&world), VD_OK);
		refuse_at = nth;
		checkpoint_world_write(&world, 10);
		checkpoint_settle(&world);
		refuse_at = 0;
		checkpoint_settle(&world);
		assert_int_equal(checkpoint_count_journals(&world), 1);
		checkpoint_world_close(&world);
	}
	assert_status(checkpoint_world_open(&world), VD_OK);
	checkpoint_world_fini(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_at_an_odd_place_is_named),
		cmocka_unit_test(damage_of_any_page_byte_is_found_or_means_nothing),
		cmocka_unit_test(a_cut_checkpoint_is_named_and_never_mapped),
		cmocka_unit_test(a_missing_journal_beside_a_checkpoint_is_damage),
		cmocka_unit_test(what_lmdb_refuses_is_told_or_tried_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
