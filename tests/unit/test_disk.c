/* Unit tests of lib/disk.c and lib/disk_sim.c: one suite for both, then what only the simulated one can do. */
#include <unistd.h>

#include "disk_sim.h"
#include "vdtest.h"

static char os_path[64];

static vd_status count_file(void *arg, const char *name, int64_t size)
{
	if (strcmp(name, "LOCK") != 0)
		*(int64_t *) arg += 1000 + size;
	return VD_OK;
}

static void keeps_the_contract(struct vdi_disk *disk, const char *path)
{
	struct vdi_dir	*dir, *second = NULL;
	struct vdi_file *file;
	struct vd_error	 error;
	char		 bytes[16];
	size_t		 size;
	int64_t		 length, seen = 0;

	assert_status(vdi_dir_open(disk, path, &dir, &error), VD_OK);
	assert_status(vdi_dir_open(disk, path, &second, &error), VD_LOCKED);
	assert_non_null(strstr(error.message, "process"));
	assert_status(vdi_file_open(dir, "a", VDI_FILE_READ, &file, &error), VD_NOT_FOUND);
	assert_non_null(strstr(error.message, "a"));
	assert_status(vdi_file_open(dir, "a", VDI_FILE_CREATE, &file, NULL), VD_OK);
	assert_status(vdi_file_open(dir, "a", VDI_FILE_CREATE, &file, NULL), VD_EXISTS);
	assert_status(vdi_file_allocate(file, 1000, NULL), VD_OK);
	assert_status(vdi_file_allocate(file, 500, NULL), VD_OK);
	assert_status(vdi_file_size(file, &length, NULL), VD_OK);
	assert_int_equal(length, 1000);
	assert_status(vdi_file_write(file, 995, "0123456789", 10, NULL), VD_OK);
	assert_status(vdi_file_read(file, 993, bytes, 16, &size, NULL), VD_OK);
	assert_int_equal(size, 12);
	assert_memory_equal(bytes, "\0\0" "0123456789", 12);
	assert_status(vdi_file_read(file, 5000, bytes, 16, &size, NULL), VD_OK);
	assert_int_equal(size, 0);
	assert_status(vdi_file_truncate(file, 100, NULL), VD_OK);
	assert_status(vdi_file_sync(file, NULL), VD_OK);
	vdi_file_close(file);
	assert_status(vdi_dir_rename(dir, "a", "b", NULL), VD_OK);
	assert_status(vdi_dir_sync(dir, NULL), VD_OK);
	assert_status(vdi_dir_list(dir, count_file, &seen, NULL), VD_OK);
	assert_int_equal(seen, 1100);
	assert_status(vdi_dir_free_bytes(dir, &length, NULL), VD_OK);
	assert_true(length > 0);
	assert_status(vdi_dir_unlink(dir, "a", NULL), VD_NOT_FOUND);
	assert_status(vdi_dir_unlink(dir, "b", NULL), VD_OK);
	assert_null(vdi_dir_close(dir));
	assert_status(vdi_dir_open(disk, path, &dir, NULL), VD_OK);
	vdi_dir_close(dir);
}

static void both_keep_the_contract(void **state)
{
	struct vdi_disk *disk;
	char		 file[80];
	int64_t		 live = vdi_alloc_live();

	(void) state;
	assert_status(vdi_disk_sim_new(1, &disk), VD_OK);
	keeps_the_contract(disk, "data");
	vdi_disk_sim_free(disk);
	keeps_the_contract(vdi_disk_os(), os_path);
	snprintf(file, sizeof file, "%s/LOCK", os_path);
	unlink(file);
	assert_int_equal(rmdir(os_path), 0);
	assert_int_equal(vdi_alloc_live(), live);
}

/* What is synced stays; of what is not, any sectors may; each write and each name for itself. */
static void a_crash_keeps_what_was_synced_and_some_of_the_rest(void **state)
{
	unsigned torn = 0, whole = 0, lost = 0, names = 0;

	(void) state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct vdi_disk *disk;
		struct vdi_dir	*dir;
		struct vdi_file *file, *other;
		uint8_t		 ones[2048];
		const uint8_t	*content;
		int64_t		 size;
		unsigned	 kept = 0;

		memset(ones, 1, sizeof ones);
		assert_status(vdi_disk_sim_new(seed, &disk), VD_OK);
		assert_status(vdi_dir_open(disk, "data", &dir, NULL), VD_OK);
		assert_status(vdi_file_open(dir, "a", VDI_FILE_CREATE, &file, NULL), VD_OK);
		assert_status(vdi_file_write(file, 0, ones, 512, NULL), VD_OK);
		assert_status(vdi_file_allocate(file, 4096, NULL), VD_OK);
		assert_status(vdi_file_sync(file, NULL), VD_OK);
		assert_status(vdi_dir_sync(dir, NULL), VD_OK);
		assert_status(vdi_file_write(file, 512, ones, 2048, NULL), VD_OK);
		assert_status(vdi_file_open(dir, "b", VDI_FILE_CREATE, &other, NULL), VD_OK);
		assert_status(vdi_file_sync(other, NULL), VD_OK);
		vdi_file_close(other);
		vdi_file_close(file);
		vdi_dir_close(dir);
		vdi_disk_sim_crash(disk);
		content = vdi_disk_sim_content(disk, "a", &size);
		assert_non_null(content);
		assert_int_equal(size, 4096);
		assert_int_equal(content[511], 1);
		for (unsigned sector = 1; sector < 5; sector++) {
			assert_int_equal(content[sector * 512], content[sector * 512 + 511]);
			kept += content[sector * 512];
		}
		whole += kept == 4;
		lost += kept == 0;
		torn += kept > 0 && kept < 4;
		names += vdi_disk_sim_content(disk, "b", &size) != NULL;
		vdi_disk_sim_free(disk);
	}
	assert_true(torn > 20 && whole > 20 && lost > 20);
	assert_in_range(names, 50, 150);
}

static void a_failed_sync_forgets_what_was_pending(void **state)
{
	struct vdi_disk *disk;
	struct vdi_dir	*dir;
	struct vdi_file *file;
	uint8_t		 bytes[4096];
	const uint8_t	*content;
	int64_t		 size;

	(void) state;
	memset(bytes, 1, sizeof bytes);
	assert_status(vdi_disk_sim_new(3, &disk), VD_OK);
	assert_status(vdi_dir_open(disk, "data", &dir, NULL), VD_OK);
	assert_status(vdi_file_open(dir, "a", VDI_FILE_CREATE, &file, NULL), VD_OK);
	assert_status(vdi_dir_sync(dir, NULL), VD_OK);
	for (int i = 0; i < 8; i++)
		assert_status(vdi_file_write(file, i * 4096, bytes, sizeof bytes, NULL), VD_OK);
	vdi_disk_sim_fail_nth(disk, 1, VDI_DISK_SIM_IO);
	assert_status(vdi_file_sync(file, NULL), VD_IO);
	assert_true(vdi_disk_sim_failed(disk));
	assert_status(vdi_file_sync(file, NULL), VD_OK); /* nothing left to write: success, and yet */
	content = vdi_disk_sim_durable(disk, "a", &size);
	assert_false(size == 8 * 4096 && memchr(content, 0, (size_t) size) == NULL);
	vdi_file_close(file);
	vdi_dir_close(dir);
	vdi_disk_sim_free(disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_keep_the_contract),
		cmocka_unit_test(a_crash_keeps_what_was_synced_and_some_of_the_rest),
		cmocka_unit_test(a_failed_sync_forgets_what_was_pending),
	};

	snprintf(os_path, sizeof os_path, "/tmp/vedette-test-disk-%ld", (long) getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
