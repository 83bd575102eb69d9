/* Unit tests of lib/env/disk.c and lib/sim/disk_sim.c: one suite for both, then what only the simulated one
 * can do. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk_sim.h"
#include "env.h"
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
	assert_memory_equal(bytes,
			    "\0\0"
			    "0123456789",
			    12);
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

/* ---- Who may read it ---- */

static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof path, "%s%s%s", os_path, name ? "/" : "", name ? name : "");
	return path;
}

static unsigned os_mode(const char *name)
{
	struct stat attributes;

	assert_int_equal(stat(path_of(name), &attributes), 0);
	return attributes.st_mode & 07777;
}

static void remove_all(void)
{
	static const char *const names[] = { "LOCK", "a", "b" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(names); i++)
		(void) unlink(path_of(names[i]));
	(void) rmdir(os_path);
}

static void make_file(struct vdi_disk *disk, const char *name, enum vdi_file_mode mode,
		      unsigned *ret_mode_found)
{
	struct vdi_dir	*dir;
	struct vdi_file *file;

	assert_status(vdi_dir_open(disk, os_path, &dir, NULL), VD_OK);
	assert_status(vdi_file_open(dir, name, mode, &file, NULL), VD_OK);
	*ret_mode_found = dir->mode_found;
	assert_false(dir->is_shared);
	vdi_file_close(file);
	vdi_dir_close(dir);
}

static void only_the_owner_may_read_whatever_the_umask(void **state)
{
	static const mode_t masks[] = { 0, 022, 0077, 0177 };
	struct vdi_disk	   *disk;
	unsigned	    found;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(masks); i++) {
		mode_t before = umask(masks[i]);

		make_file(vdi_disk_os(), "a", VDI_FILE_CREATE, &found);
		(void) umask(before);
		assert_int_equal(found, 0);
		assert_int_equal(os_mode(NULL), 0700);
		assert_int_equal(os_mode("a"), 0600);
		assert_int_equal(os_mode("LOCK"), 0600);
		remove_all();
	}
	assert_status(vdi_disk_sim_new(1, &disk), VD_OK);
	make_file(disk, "a", VDI_FILE_CREATE, &found);
	assert_int_equal(vdi_disk_sim_mode(disk, NULL), 0700);
	assert_int_equal(vdi_disk_sim_mode(disk, "a"), 0600);
	vdi_disk_sim_free(disk);
}

static void what_others_could_read_is_narrowed(void **state)
{
	struct vdi_disk *disk;
	unsigned	 found;

	(void) state;
	make_file(vdi_disk_os(), "a", VDI_FILE_CREATE, &found);
	make_file(vdi_disk_os(), "b", VDI_FILE_CREATE, &found);
	assert_int_equal(chmod(os_path, 0755), 0);
	assert_int_equal(chmod(path_of("LOCK"), 0644), 0);
	assert_int_equal(chmod(path_of("a"), 0644), 0);
	assert_int_equal(chmod(path_of("b"), 0666), 0);
	make_file(vdi_disk_os(), "a", VDI_FILE_READ, &found);
	assert_int_equal(found, 0755);
	assert_int_equal(os_mode(NULL), 0700);
	assert_int_equal(os_mode("LOCK"), 0600);
	assert_int_equal(os_mode("a"), 0600);
	make_file(vdi_disk_os(), "b", VDI_FILE_WRITE, &found);
	assert_int_equal(found, 0);
	assert_int_equal(os_mode("b"), 0600);
	remove_all();
	assert_status(vdi_disk_sim_new(1, &disk), VD_OK);
	make_file(disk, "a", VDI_FILE_CREATE, &found);
	vdi_disk_sim_set_mode(disk, NULL, 0755);
	vdi_disk_sim_set_mode(disk, "a", 0644);
	make_file(disk, "a", VDI_FILE_READ, &found);
	assert_int_equal(found, 0755);
	assert_int_equal(vdi_disk_sim_mode(disk, NULL), 0700);
	assert_int_equal(vdi_disk_sim_mode(disk, "a"), 0600);
	vdi_disk_sim_free(disk);
}

static unsigned warnings;

static void count_warning(void *arg, const struct vd_log_record *record)
{
	(void) arg;
	warnings += record->level == VD_LOG_WARNING;
}

/* A directory like /tmp keeps its mode; the warning says so. */
static void a_shared_directory_stays_and_is_warned_about(void **state)
{
	struct vd_env_options options = VD_ENV_OPTIONS_INIT;
	struct vd_env	     *env;
	struct vdi_dir	     *dir;

	(void) state;
	options.log = count_warning;
	assert_status(vd_env_new_threads(&options, &env), VD_OK);
	assert_int_equal(mkdir(os_path, 0755), 0);
	assert_int_equal(chmod(os_path, 01777), 0);
	assert_status(vdi_dir_open(vdi_disk_os(), os_path, &dir, NULL), VD_OK);
	assert_true(dir->is_shared);
	assert_int_equal(os_mode(NULL), 01777);
	vdi_dir_warn(dir, env);
	assert_int_equal(warnings, 1);
	vdi_dir_close(dir);
	assert_int_equal(chmod(os_path, 0750), 0);
	assert_status(vdi_dir_open(vdi_disk_os(), os_path, &dir, NULL), VD_OK);
	vdi_dir_warn(dir, env);
	assert_int_equal(warnings, 2);
	vdi_dir_close(dir);
	assert_status(vdi_dir_open(vdi_disk_os(), os_path, &dir, NULL), VD_OK);
	vdi_dir_warn(dir, env);
	assert_int_equal(warnings, 2);
	vdi_dir_close(dir);
	remove_all();
	vd_env_free(env);
}

static void expect_untouched(const char *victim)
{
	char text[16] = "";
	int  fd = open(victim, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof text), 7);
	assert_string_equal(text, "victim\n");
	close(fd);
}

/* Whoever may write to the directory could have a file elsewhere emptied, or one of ours read from
 * elsewhere. */
static void links_are_not_followed(void **state)
{
	char		 victim[80];
	struct vdi_dir	*dir;
	struct vdi_file *file;
	struct vd_error	 error;
	int		 fd;

	(void) state;
	snprintf(victim, sizeof victim, "%s-victim", os_path);
	fd = open(victim, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_int_equal(write(fd, "victim\n", 7), 7);
	close(fd);
	assert_int_equal(mkdir(os_path, 0700), 0);
	assert_int_equal(symlink(victim, path_of("LOCK")), 0);
	assert_status(vdi_dir_open(vdi_disk_os(), os_path, &dir, &error), VD_IO);
	assert_non_null(strstr(error.message, "LOCK is a symbolic link"));
	expect_untouched(victim);
	assert_int_equal(unlink(path_of("LOCK")), 0);
	assert_int_equal(link(victim, path_of("LOCK")), 0);
	assert_status(vdi_dir_open(vdi_disk_os(), os_path, &dir, &error), VD_IO);
	expect_untouched(victim);
	assert_int_equal(unlink(path_of("LOCK")), 0);
	assert_int_equal(mkfifo(path_of("LOCK"), 0600), 0);
	assert_status(vdi_dir_open(vdi_disk_os(), os_path, &dir, &error), VD_IO);
	assert_int_equal(unlink(path_of("LOCK")), 0);
	assert_int_equal(symlink(victim, path_of("a")), 0);
	assert_status(vdi_dir_open(vdi_disk_os(), os_path, &dir, NULL), VD_OK);
	assert_status(vdi_file_open(dir, "a", VDI_FILE_WRITE, &file, NULL), VD_IO);
	assert_status(vdi_file_open(dir, "a", VDI_FILE_READ, &file, NULL), VD_IO);
	vdi_dir_close(dir);
	remove_all();
	assert_int_equal(unlink(victim), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_keep_the_contract),
		cmocka_unit_test(a_crash_keeps_what_was_synced_and_some_of_the_rest),
		cmocka_unit_test(a_failed_sync_forgets_what_was_pending),
		cmocka_unit_test(only_the_owner_may_read_whatever_the_umask),
		cmocka_unit_test(what_others_could_read_is_narrowed),
		cmocka_unit_test(a_shared_directory_stays_and_is_warned_about),
		cmocka_unit_test(links_are_not_followed),
	};

	snprintf(os_path, sizeof os_path, "/tmp/vedette-test-disk-%ld", (long) getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
