/* The embedded store on a disk that is really full: deletes and compaction work and make room, puts then work
 * again by themselves, and a process that is killed at any moment can start again there.
 *
 *   test_disk_full [KILLS [SEED]]
 *
 * A child fills the store until it is refused, deletes everything and compacts, repeatedly, and reports each
 * acknowledged step through a pipe. The parent kills it after a random number of reports, opens the store
 * itself and compares; the next child continues.
 */
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>

#include <vedette/env.h>
#include <vedette/store.h>

#include "rand.h"
#include "small_disk.h"
#include "wait.h"

#define DISK_MIB 20
#define KEYS_MAX 8192
#define VALUE_SIZE 8000
#define KEY_FORMAT "/registry/things/%06u"

static uint64_t kills = 25;
static uint64_t first_seed = 1;
static char	disk[] = "/tmp/vedette-test-disk-full-XXXXXX";
static char	data[64];

/* ---- The store ---- */

struct answer {
	struct vdi_wait wait;
	vd_status	status;
	vd_rev		revision;
	struct vd_error error;
};

static void note_done(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	struct answer *answer = arg;

	answer->status = status;
	answer->revision = revision;
	if (error)
		answer->error = *error;
	vdi_wait_signal(&answer->wait);
}

static vd_status compact(const struct vd_env *env, struct vd_store *store, vd_rev revision,
			 struct vd_error *reterr)
{
	struct answer answer = { .status = VD_OK };

	vdi_wait_init(&answer.wait, env);
	answer.status = vd_store_compact(store, revision, false, note_done, &answer);
	if (answer.status == VD_OK)
		vdi_wait_wait(&answer.wait);
	vdi_wait_fini(&answer.wait);
	*reterr = answer.error;
	return answer.status;
}

static struct vd_bytes key_of(unsigned number, char key[64])
{
	snprintf(key, 64, KEY_FORMAT, number);
	return vd_bytes_of(key);
}

static vd_status put(struct vd_store *store, unsigned number, vd_rev *ret_revision, struct vd_error *reterr)
{
	static char value[VALUE_SIZE];
	char	    key[64];

	return vd_store_put_wait(store, key_of(number, key),
				 (struct vd_bytes) { value, sizeof value - number % 4000 }, ret_revision,
				 reterr);
}

static vd_status take_away(struct vd_store *store, unsigned number, vd_rev *ret_revision,
			   struct vd_error *reterr)
{
	char	key[64];
	int64_t count = 0;

	return vd_store_delete_wait(store, key_of(number, key), VD_BYTES_NONE, &count, ret_revision, reterr);
}

struct opened {
	struct vd_env	*env;
	struct vd_store *store;
	struct vd_error	 error;
};

static vd_status open_here(struct opened *opened, int64_t quota)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	vd_status	       status;

	memset(opened, 0, sizeof *opened);
	options.data_dir = data;
	options.history_window = (vd_dur) { 0 };
	options.quota_bytes = quota;
	assert_status(vd_env_new_threads(NULL, &opened->env), VD_OK);
	status = vd_store_open_mvcc(opened->env, &options, &opened->store, &opened->error);
	if (status != VD_OK)
		opened->env = vd_env_free(opened->env);
	return status;
}

static void close_here(struct opened *opened)
{
	vd_store_close_wait(opened->store);
	vd_env_free(opened->env);
}

/* The keys and the revision of the store. */
struct content {
	bool   is_there[KEYS_MAX];
	size_t count;
	vd_rev revision;
};

static void read_content(struct vd_store *store, struct content *ret_content)
{
	struct vd_store_status status;
	char		       key[64];

	memset(ret_content, 0, sizeof *ret_content);
	for (unsigned i = 0; i < KEYS_MAX; i++) {
		struct vd_kv *kv;
		vd_status     found = vd_store_get_wait(store, key_of(i, key), &kv, NULL);

		assert_true(found == VD_OK || found == VD_NOT_FOUND);
		if (found == VD_OK)
			vd_kv_unref(kv);
		ret_content->is_there[i] = found == VD_OK;
		ret_content->count += found == VD_OK;
	}
	assert_status(vd_store_status_get(store, &status), VD_OK);
	ret_content->revision = status.current;
}

/* ---- Killed at any moment ---- */

struct report {
	enum { STEP_OPENED, STEP_PUT, STEP_DELETED, STEP_COMPACTED } step;
	unsigned key;
	vd_rev	 revision;
};

static void tell(int fd, struct report report)
{
	if (write(fd, &report, sizeof report) != sizeof report)
		_exit(1);
}

static void give_up(const char *what, const struct vd_error *error)
{
	fprintf(stderr, "%s: %s: %s\n", what, vd_status_name(error->code), error->message);
	_exit(2);
}

static void child(int fd)
{
	struct content	content;
	struct opened	opened;
	struct vd_error error = { 0 };
	vd_rev		revision = 0;

	if (open_here(&opened, 0) != VD_OK)
		give_up("the store does not open on a full disk", &opened.error);
	read_content(opened.store, &content);
	revision = content.revision;
	tell(fd, (struct report) { .step = STEP_OPENED, .revision = revision });
	for (;;) {
		for (unsigned i = 0; i < KEYS_MAX; i++) {
			vd_status status =
				content.is_there[i] ? VD_OK : put(opened.store, i, &revision, &error);

			if (status == VD_NO_SPACE)
				break;
			if (status != VD_OK)
				give_up("put", &error);
			content.is_there[i] = true;
			tell(fd, (struct report) { STEP_PUT, i, revision });
		}
		for (unsigned i = 0; i < KEYS_MAX; i++) {
			if (!content.is_there[i])
				continue;
			if (take_away(opened.store, i, &revision, &error) != VD_OK)
				give_up("delete", &error);
			content.is_there[i] = false;
			tell(fd, (struct report) { STEP_DELETED, i, revision });
		}
		if (compact(opened.env, opened.store, revision, &error) != VD_OK && error.code != VD_EXPIRED)
			give_up("compact", &error);
		tell(fd, (struct report) { .step = STEP_COMPACTED, .revision = revision });
	}
}

static void check(const struct content *known, const struct content *found)
{
	unsigned differences = 0;

	/* One step may have happened without a report. */
	assert_in_range(found->revision, known->revision, known->revision + 1);
	for (unsigned i = 0; i < KEYS_MAX; i++)
		differences += known->is_there[i] != found->is_there[i];
	assert_int_equal(differences, found->revision - known->revision);
}

static uint64_t steps[4];

static void run_and_kill(struct content *known, uint64_t reports)
{
	struct opened  opened;
	struct report  report;
	struct content found;
	int	       pipes[2];
	int	       result;
	pid_t	       pid;

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(pipes[0]);
		child(pipes[1]);
	}
	close(pipes[1]);
	while (read(pipes[0], &report, sizeof report) == sizeof report) {
		steps[report.step]++;
		known->revision = report.revision;
		if (report.step == STEP_PUT || report.step == STEP_DELETED)
			known->is_there[report.key] = report.step == STEP_PUT;
		if (reports-- == 0)
			kill(pid, SIGKILL); /* later reports count, too */
	}
	close(pipes[0]);
	assert_int_equal(waitpid(pid, &result, 0), pid);
	assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL);
	assert_status(open_here(&opened, 0), VD_OK);
	read_content(opened.store, &found);
	close_here(&opened);
	check(known, &found);
	*known = found;
}

static void e466_killed_at_any_moment_it_starts_on_a_full_disk(void **state)
{
	static struct content known = { .revision = 1 };
	struct vdi_rand	      rand;

	(void) state;
	small_disk_mount(disk, DISK_MIB, false);
	vdi_rand_init(&rand, first_seed);
	for (uint64_t i = 0; i < kills; i++)
		run_and_kill(&known, vdi_rand_below(&rand, i % 3 ? 3000 : 100));
	print_message("%llu starts, %llu puts, %llu deletes, %llu compactions\n",
		      (unsigned long long) steps[STEP_OPENED], (unsigned long long) steps[STEP_PUT],
		      (unsigned long long) steps[STEP_DELETED], (unsigned long long) steps[STEP_COMPACTED]);
	assert_true(kills < 10 || (steps[STEP_PUT] && steps[STEP_DELETED] && steps[STEP_COMPACTED]));
	assert_int_equal(umount(disk), 0);
}

/* ---- In one process ---- */

static unsigned put_until_full(struct opened *opened, vd_rev *ret_revision)
{
	unsigned  count = 0;
	vd_status status;

	while ((status = put(opened->store, count, ret_revision, &opened->error)) == VD_OK)
		count++;
	assert_status(status, VD_NO_SPACE);
	assert_non_null(strstr(opened->error.message, "the disk is full"));
	assert_non_null(strstr(opened->error.message, data));
	return count;
}

static void delete_and_compact(struct opened *opened, unsigned count)
{
	vd_rev revision = 0;

	for (unsigned i = 0; i < count; i++)
		assert_status(take_away(opened->store, i, &revision, &opened->error), VD_OK);
	assert_status(compact(opened->env, opened->store, revision, &opened->error), VD_OK);
}

static void e466_deletes_and_compaction_make_room_for_puts(void **state)
{
	struct opened opened;
	vd_rev	      revision;

	(void) state;
	small_disk_mount(disk, 100, false);
	assert_status(open_here(&opened, 0), VD_OK);
	for (int round = 0; round < 2; round++) {
		unsigned count = put_until_full(&opened, &revision);

		print_message("%u puts until the disk is full, %lld bytes free\n", count,
			      (long long) small_disk_free(disk));
		assert_true(count > 3000);
		/* Another program takes the rest. */
		small_disk_fill(disk, 0);
		delete_and_compact(&opened, count);
		small_disk_unfill(disk);
	}
	/* A larger disk is used at once. */
	(void) put_until_full(&opened, &revision);
	small_disk_mount(disk, 120, true);
	assert_status(put(opened.store, KEYS_MAX, &revision, &opened.error), VD_OK);
	close_here(&opened);
	assert_int_equal(umount(disk), 0);
}

/* A range with every key is deleted in one transaction. */
static void e466_a_range_is_deleted_on_a_full_disk(void **state)
{
	struct opened opened;
	vd_rev	      revision;
	int64_t	      deleted = 0;
	unsigned      count;

	(void) state;
	small_disk_mount(disk, DISK_MIB, false);
	assert_status(open_here(&opened, 0), VD_OK);
	count = put_until_full(&opened, &revision);
	small_disk_fill(disk, 0);
	assert_status(vd_store_delete_wait(opened.store, vd_bytes_of("/"), vd_bytes_of("0"), &deleted,
					   &revision, &opened.error),
		      VD_OK);
	assert_int_equal(deleted, count);
	close_here(&opened);
	assert_int_equal(umount(disk), 0);
}

static void a_quota_says_that_it_is_one(void **state)
{
	struct opened opened;
	vd_rev	      revision;
	unsigned      count = 0;

	(void) state;
	small_disk_mount(disk, DISK_MIB, false);
	assert_status(open_here(&opened, 1 << 20), VD_OK);
	while (put(opened.store, count, &revision, &opened.error) == VD_OK)
		count++;
	assert_status(opened.error.code, VD_NO_SPACE);
	assert_non_null(strstr(opened.error.message, "the quota is used up"));
	assert_non_null(strstr(opened.error.message, data));
	delete_and_compact(&opened, count);
	close_here(&opened);
	assert_int_equal(umount(disk), 0);
}

static int64_t taken(void)
{
	int64_t	       bytes = 0;
	struct dirent *entry;
	struct stat    info;
	DIR	      *stream = opendir(data);

	assert_non_null(stream);
	while ((entry = readdir(stream)) != NULL)
		if (fstatat(dirfd(stream), entry->d_name, &info, 0) == 0 && S_ISREG(info.st_mode))
			bytes += (int64_t) info.st_blocks * 512;
	closedir(stream);
	return bytes;
}

static void an_empty_store_takes_little(void **state)
{
	struct opened opened;
	vd_rev	      revision;

	(void) state;
	small_disk_mount(disk, 100, false);
	assert_status(open_here(&opened, 0), VD_OK);
	for (unsigned i = 0; i < 10; i++)
		assert_status(put(opened.store, i, &revision, &opened.error), VD_OK);
	print_message("10 keys take %lld bytes\n", (long long) taken());
	assert_in_range(taken(), 1000000, 7999999);
	close_here(&opened);
	assert_status(open_here(&opened, 0), VD_OK);
	assert_in_range(taken(), 1000000, 7999999);
	close_here(&opened);
	assert_int_equal(umount(disk), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_store_takes_little),
		cmocka_unit_test(e466_deletes_and_compaction_make_room_for_puts),
		cmocka_unit_test(e466_a_range_is_deleted_on_a_full_disk),
		cmocka_unit_test(a_quota_says_that_it_is_one),
		cmocka_unit_test(e466_killed_at_any_moment_it_starts_on_a_full_disk),
	};
	int failed;

	if (argc > 1)
		kills = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		first_seed = strtoull(argv[2], NULL, 10);
	if (!small_disk_enter()) {
		fprintf(stderr, "neither a mount namespace nor a user namespace is allowed here\n");
		return 77;
	}
	if (mkdtemp(disk) == NULL)
		return 1;
	snprintf(data, sizeof data, "%s/data", disk);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	umount2(disk, MNT_DETACH);
	rmdir(disk);
	return failed;
}
