/* Lines from many threads to a file: all of them, whole, also when the disk is full, the file renamed, or
 * nobody reads fast enough. */
#include "vdtest.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "async_log.h"
#include "temp_folder.h"
#include "thread.h"

struct world {
	struct vd_env	     *env;
	struct vdi_metric    *taken, *lost;
	char		      directory[TEMP_FOLDER_SIZE], path[96], other[96];
	struct vdi_async_log *log;
	_Atomic unsigned      warnings;
	char		      last[256];
	int64_t		      alloc_live;
};

static struct world world;

static void note_log(void *arg, const struct vd_log_record *record)
{
	(void) arg;
	(void) snprintf(world.last, sizeof world.last, "%s", record->message);
	world.warnings++;
}

static int set_up(void **state)
{
	struct vd_env_options options = VD_ENV_OPTIONS_INIT;

	(void) state;
	memset(&world, 0, sizeof world);
	world.alloc_live = vdi_alloc_live();
	options.log = note_log;
	options.log_level = VD_LOG_INFO;
	assert_status(vd_env_new_threads(&options, &world.env), VD_OK);
	assert_status(vdi_metric_get(vdi_env_metrics(world.env), VDI_METRIC_ACCESS_LOG_LINES_TOTAL, NULL,
				     &world.taken),
		      VD_OK);
	assert_status(vdi_metric_get(vdi_env_metrics(world.env), VDI_METRIC_ACCESS_LOG_LOST_TOTAL, NULL,
				     &world.lost),
		      VD_OK);
	temp_folder_make(world.directory);
	(void) snprintf(world.path, sizeof world.path, "%s/log", world.directory);
	(void) snprintf(world.other, sizeof world.other, "%s/log.1", world.directory);
	return 0;
}

static int tear_down(void **state)
{
	(void) state;
	world.log = vdi_async_log_close(world.log);
	vdi_metric_release(world.taken);
	vdi_metric_release(world.lost);
	vd_env_free(world.env);
	assert_int_equal(vdi_alloc_live(), world.alloc_live);
	temp_folder_remove(world.directory);
	return 0;
}

static vd_status open_log(const char *path, size_t pending_bytes_max, struct vd_error *error)
{
	const struct vdi_async_log_options options = { "test log", path, pending_bytes_max, world.taken,
						       world.lost };

	return vdi_async_log_open(world.env, &options, &world.log, error);
}

static void close_log(void)
{
	world.log = vdi_async_log_close(world.log);
}

static void put(const char *text)
{
	vdi_async_log_put(world.log, vd_bytes_of(text));
}

static size_t read_file(const char *path, char *text, size_t size)
{
	FILE  *file = fopen(path, "r");
	size_t used;

	assert_non_null(file);
	used = fread(text, 1, size - 1, file);
	(void) fclose(file);
	text[used] = 0;
	return used;
}

static void lines_come_in_order_behind_what_was_there(void **state)
{
	struct stat attributes;
	char	    text[64];

	(void) state;
	for (int i = 0; i < 2; i++) {
		assert_status(open_log(world.path, 0, NULL), VD_OK);
		put("one");
		put("");
		put("two");
		close_log();
	}
	(void) read_file(world.path, text, sizeof text);
	assert_string_equal(text, "one\n\ntwo\none\n\ntwo\n");
	assert_int_equal(vdi_metric_value(world.taken), 6);
	assert_int_equal(vdi_metric_value(world.lost), 0);
	assert_int_equal(stat(world.path, &attributes), 0);
	assert_int_equal(attributes.st_mode & 0777, 0600); /* whatever the umask */
}

static void *put_many(void *arg)
{
	char text[32];

	for (int i = 0; i < 2000; i++) {
		(void) snprintf(text, sizeof text, "%s %d", (const char *) arg, i);
		put(text);
	}
	return NULL;
}

static void lines_of_threads_stay_whole(void **state)
{
	struct vdi_thread threads[3];
	char		  names[3][2] = { "a", "b", "c" }, line[64], name;
	int		  next[3] = { 0 }, number;
	FILE		 *file;

	(void) state;
	assert_status(open_log(world.path, 0, NULL), VD_OK);
	for (size_t i = 0; i < 3; i++)
		assert_status(vdi_thread_start(&threads[i], "put", put_many, names[i]), VD_OK);
	for (size_t i = 0; i < 3; i++)
		vdi_thread_join(&threads[i]);
	close_log();
	file = fopen(world.path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof line, file)) {
		assert_int_equal(sscanf(line, "%c %d", &name, &number), 2);
		assert_int_equal(number, next[name - 'a']++);
	}
	(void) fclose(file);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(next[i], 2000);
}

static void a_renamed_file_is_opened_anew(void **state)
{
	char text[64];

	(void) state;
	vdi_async_log_reopen(NULL);
	assert_status(open_log(world.path, 0, NULL), VD_OK);
	put("old");
	close_log();
	assert_status(open_log(world.path, 0, NULL), VD_OK);
	assert_int_equal(rename(world.path, world.other), 0);
	vdi_async_log_reopen(world.log);
	put("new");
	close_log();
	(void) read_file(world.other, text, sizeof text);
	assert_string_equal(text, "old\n");
	(void) read_file(world.path, text, sizeof text);
	assert_string_equal(text, "new\n");
}

static unsigned mode_of(const char *path)
{
	struct stat attributes;

	assert_int_equal(stat(path, &attributes), 0);
	return attributes.st_mode & 07777;
}

/* Made by an older version, or by logrotate. */
static void a_file_that_others_could_read_is_narrowed_with_a_warning(void **state)
{
	int fd = open(world.path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	(void) state;
	assert_int_equal(fchmod(fd, 0644), 0);
	assert_status(open_log(world.path, 0, NULL), VD_OK);
	assert_int_equal(mode_of(world.path), 0600);
	assert_int_equal(world.warnings, 1);
	assert_non_null(strstr(world.last, "0644"));
	assert_int_equal(rename(world.path, world.other), 0);
	assert_int_equal(close(fd), 0);
	fd = open(world.path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_int_equal(fchmod(fd, 0640), 0);
	assert_int_equal(close(fd), 0);
	vdi_async_log_reopen(world.log);
	put("new");
	close_log();
	assert_int_equal(mode_of(world.path), 0600);
	assert_int_equal(world.warnings, 2);
}

static void a_file_that_cannot_be_opened_anew_is_kept(void **state)
{
	char text[64];

	(void) state;
	assert_status(open_log(world.path, 0, NULL), VD_OK);
	assert_int_equal(rename(world.path, world.other), 0);
	assert_int_equal(mkdir(world.path, 0700), 0);
	vdi_async_log_reopen(world.log);
	put("kept");
	close_log();
	assert_int_equal(rmdir(world.path), 0);
	(void) read_file(world.other, text, sizeof text);
	assert_string_equal(text, "kept\n");
	assert_int_equal(world.warnings, 1);
	assert_non_null(strstr(world.last, "cannot be reopened"));
}

static void a_full_disk_is_said_once_and_counted(void **state)
{
	(void) state;
	assert_status(open_log("/dev/full", 0, NULL), VD_OK);
	for (int i = 0; i < 100; i++)
		put("lost");
	close_log();
	assert_int_equal(vdi_metric_value(world.taken), 100);
	assert_int_equal(vdi_metric_value(world.lost), 100);
	assert_int_equal(world.warnings, 1);
	assert_non_null(strstr(world.last, "test log /dev/full: cannot write: No space left on device"));
}

/* The second line does not fit: no half of it stays, and later ones follow when there is room again. */
static void a_line_that_was_torn_is_cut_off(void **state)
{
	struct rlimit limit, small;
	char	      text[64];

	(void) state;
	(void) signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	small = (struct rlimit) { 8, limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_status(open_log(world.path, 0, NULL), VD_OK);
	put("first\nsecond"); /* one write, whatever the actor's pace */
	close_log();
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_status(open_log(world.path, 0, NULL), VD_OK);
	put("third");
	close_log();
	(void) read_file(world.path, text, sizeof text);
	assert_string_equal(text, "first\nthird\n");
}

static void what_cannot_be_kept_is_counted(void **state)
{
	char text[64];

	(void) state;
	assert_status(open_log(world.path, 16, NULL), VD_OK);
	put("longer than all of it");
	put("fits");
	close_log();
	(void) read_file(world.path, text, sizeof text);
	assert_string_equal(text, "fits\n");
	assert_int_equal(vdi_metric_value(world.taken), 1);
	assert_int_equal(vdi_metric_value(world.lost), 1);
	assert_non_null(strstr(world.last, "faster than they can be written"));
}

static void files_that_cannot_be_opened_are_named(void **state)
{
	struct vd_error error;
	char		wanted[160];

	(void) state;
	assert_status(open_log("/nowhere/at/all", 0, &error), VD_IO);
	assert_string_equal(error.message, "test log /nowhere/at/all: No such file or directory");
	assert_status(open_log(world.directory, 0, &error), VD_IO);
	(void) snprintf(wanted, sizeof wanted, "test log %s: Is a directory", world.directory);
	assert_string_equal(error.message, wanted);
	assert_int_equal(mkfifo(world.path, 0600), 0); /* nobody reads it: that must not block */
	assert_status(open_log(world.path, 0, &error), VD_IO);
	vdi_async_log_put(NULL, vd_bytes_of("x"));
	assert_null(vdi_async_log_close(NULL));
}

/* Its reader has stopped: lines are kept until there is no room, and the end does not wait for ever. */
static void a_pipe_that_nobody_reads(void **state)
{
	char line[1000];
	int  fd;

	(void) state;
	memset(line, 'x', sizeof line);
	assert_int_equal(mkfifo(world.path, 0600), 0);
	fd = open(world.path, O_RDONLY | O_NONBLOCK);
	assert_true(fd >= 0);
	assert_status(open_log(world.path, 400000, NULL), VD_OK);
	for (int i = 0; i < 2000; i++)
		vdi_async_log_put(world.log, (struct vd_bytes) { line, sizeof line });
	close_log();
	assert_true(vdi_metric_value(world.lost) > 0);
	assert_true(vdi_metric_value(world.taken) > 0);
	/* And one whose reader goes. */
	assert_status(open_log(world.path, 0, NULL), VD_OK);
	(void) close(fd);
	put("to nobody");
	close_log();
	assert_non_null(strstr(world.last, "Broken pipe"));
}

static void torture(void **state)
{
	vd_status status;

	(void) state;
	for (uint64_t nth = 1;; nth++) {
		(void) vdi_alloc_fail_nth(nth, 1);
		status = open_log(world.path, 0, NULL);
		if (status == VD_OK) {
			put("line");
			(void) vdi_alloc_fail_nth(0, 0);
			close_log();
		}
		(void) vdi_alloc_fail_nth(0, 0);
		assert_true(status == VD_OK || status == VD_NOMEM);
		if (status == VD_OK && nth > 20)
			break;
	}
	assert_true(vdi_metric_value(world.lost) > 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(lines_come_in_order_behind_what_was_there),
		TEST(lines_of_threads_stay_whole),
		TEST(a_renamed_file_is_opened_anew),
		TEST(a_file_that_others_could_read_is_narrowed_with_a_warning),
		TEST(a_file_that_cannot_be_opened_anew_is_kept),
		TEST(a_full_disk_is_said_once_and_counted),
		TEST(a_line_that_was_torn_is_cut_off),
		TEST(what_cannot_be_kept_is_counted),
		TEST(files_that_cannot_be_opened_are_named),
		TEST(a_pipe_that_nobody_reads),
		TEST(torture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
