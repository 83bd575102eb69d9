/* Credential programs that do not end, or print garbage. The other cases use servers, in test_kube.py. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "await.h"
#include "exec_credential.h"
#include "temp_folder.h"
#include "vdtest.h"

#define CREDENTIAL                                                                                           \
	"echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":"  \
	"{\"token\":\"a\"}}'"

static char printed[256]; /* by the last successful run */

/* Signals to groups so far, and those among them whose leader had been reaped already: its id may be another
 * group's. */
static _Atomic unsigned group_kills, late_kills;

/* Takes the place of libc's function. */
int kill(pid_t pid, int number)
{
	siginfo_t info;

	if (pid < 0) {
		atomic_fetch_add(&group_kills, 1);
		if (waitid(P_PID, (id_t) -pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
			atomic_fetch_add(&late_kills, 1);
	}
	return (int) syscall(SYS_kill, pid, number);
}

/* The group of a run is ended, once. */
static bool has_group = true;

/* Runs text in a shell, for at most timeout_ms (0: the default). */
static vd_status run(char *text, int64_t timeout_ms, struct vd_error *reterr)
{
	char api_version[] = "client.authentication.k8s.io/v1", command[] = "/bin/sh", option[] = "-c";
	struct vdi_exec_plan	    plan = { .api_version = api_version,
					     .command = command,
					     .arguments = { command, option, text },
					     .timeout_ms = timeout_ms };
	struct vdi_exec_cluster	    cluster = { "https://127.0.0.1:1" };
	struct vdi_exec_credential *credential;
	struct vdi_exec_answer	    answer;
	unsigned		    kills = atomic_load(&group_kills);
	vd_status		    status;

	assert_status(vdi_exec_credential_new(&plan, &cluster, &credential), VD_OK);
	status = vdi_exec_credential_fetch(credential, &answer, reterr);
	if (status == VD_OK)
		snprintf(printed, sizeof printed, "%s", answer.printed);
	assert_int_equal(atomic_load(&group_kills), kills + has_group);
	assert_int_equal(atomic_load(&late_kills), 0);
	assert_null(vdi_exec_credential_free(credential));
	return status;
}

static void one_that_hangs_is_ended(void **state)
{
	static char	text[] = "sleep 1000";
	struct vd_error error = { 0 };

	(void) state;
	assert_status(run(text, 50, &error), VD_TIMEOUT);
	assert_non_null(strstr(error.message, "took longer"));
}

/* The program has printed everything, and does not exit. */
static void one_that_does_not_end_is_ended(void **state)
{
	static char text[] = "echo '{}'; exec >&-; sleep 1000";

	(void) state;
	assert_status(run(text, 50, NULL), VD_TIMEOUT);
}

/* The end of the program and that of its time come at once, in any order. */
static void one_that_ends_at_the_deadline(void **state)
{
	static char text[] = CREDENTIAL;

	(void) state;
	for (int64_t i = 0; i < 120; i++) {
		vd_status status = run(text, 1 + i % 12, NULL);

		assert_true(status == VD_OK || status == VD_TIMEOUT);
	}
}

/* Its children hold the pipe open, and are ended with it. */
static void what_it_left_behind_is_ended(void **state)
{
	char		path[] = "/tmp/vedette-exec-XXXXXX", text[160];
	struct vd_error error = { 0 };
	FILE	       *file;
	int		fd = mkstemp(path), child = 0;

	(void) state;
	assert_true(fd >= 0);
	(void) close(fd);
	(void) snprintf(text, sizeof text,
			"sh -c 'echo $$ >%s; sleep 1000' & while [ ! -s %s ]; do :; done; exit 0", path,
			path);
	/* Long enough for the child to start; otherwise there is nothing to test. */
	assert_status(run(text, 2000, &error), VD_TIMEOUT);
	file = fopen(path, "re");
	assert_non_null(file);
	if (fscanf(file, "%d", &child) == 1 && child > 1) {
		/* It may wait for its new parent to notice: a zombie does not run. */
		char  stat[64], run_state = 0;
		FILE *entry;

		(void) snprintf(stat, sizeof stat, "/proc/%d/stat", child);
		do {
			entry = fopen(stat, "re");
			run_state = 'Z';
			if (entry && fscanf(entry, "%*d %*s %c", &run_state) != 1)
				run_state = 'Z';
			if (entry)
				(void) fclose(entry);
		} while (run_state != 'Z' && run_state != 'X');
	}
	(void) fclose(file);
	(void) unlink(path);
}

static void more_than_anyone_needs_is_refused(void **state)
{
	static char	text[] = "yes";
	struct vd_error error = { 0 };

	(void) state;
	assert_status(run(text, 0, &error), VD_FORBIDDEN);
	assert_non_null(strstr(error.message, "1 MiB"));
}

/* ---- What it prints on stderr ---- */

static void expect_end_of_message(char *text, vd_status status, const char *end)
{
	struct vd_error error = { 0 };
	const char     *message = error.message;

	assert_status(run(text, 0, &error), status);
	if (strlen(message) < strlen(end) || strcmp(message + strlen(message) - strlen(end), end) != 0)
		fail_msg("\"%s\" does not end with \"%s\"", message, end);
}

static void its_stderr_is_in_the_message(void **state)
{
	static char failed[] = "echo ' no login: run x login ' >&2; exit 3", silent[] = "exit 3",
		    invalid[] = "echo '{}'; echo no login >&2";

	(void) state;
	expect_end_of_message(failed, VD_FORBIDDEN, "\" failed with status 3: no login: run x login");
	expect_end_of_message(silent, VD_FORBIDDEN, "\"/bin/sh\" failed with status 3");
	expect_end_of_message(invalid, VD_FORBIDDEN, "it is not an ExecCredential. no login");
}

struct running {
	struct vdi_exec_credential *credential;
	struct vd_error		    error;
};

static void *fetch(void *arg)
{
	struct running	      *running = arg;
	struct vdi_exec_answer answer;

	assert_status(vdi_exec_credential_fetch(running->credential, &answer, &running->error), VD_CLOSED);
	assert_status(vdi_exec_credential_fetch(running->credential, &answer, NULL), VD_CLOSED);
	return NULL;
}

/* Runs a script, which makes the file $0 when it is to be stopped by another thread. */
static void stop_one(char *script, struct vd_error *ret_error)
{
	char api_version[] = "client.authentication.k8s.io/v1", command[] = "/bin/sh", option[] = "-c";
	char folder[TEMP_FOLDER_SIZE], path[200];
	struct vdi_exec_plan	plan = { .api_version = api_version,
					 .command = command,
					 .arguments = { command, option, script, path } };
	struct vdi_exec_cluster cluster = { "https://127.0.0.1:1" };
	struct running		running = { 0 };
	pthread_t		thread;

	temp_folder_make(folder);
	snprintf(path, sizeof path, "%s/runs", folder);
	assert_status(vdi_exec_credential_new(&plan, &cluster, &running.credential), VD_OK);
	assert_int_equal(pthread_create(&thread, NULL, fetch, &running), 0);
	AWAIT(access(path, F_OK) == 0);
	vdi_exec_credential_stop(running.credential);
	assert_int_equal(pthread_join(thread, NULL), 0);
	*ret_error = running.error;
	vdi_exec_credential_free(running.credential);
	temp_folder_remove(folder);
}

/* The message has what was printed until then. */
static void a_program_that_hangs_is_stopped(void **state)
{
	static char	script[] = "echo open https://x >&2; >$0; exec sleep 1000";
	struct vd_error error;

	(void) state;
	stop_one(script, &error);
	assert_string_equal(error.message, "the credential program \"/bin/sh\" was ended: open https://x");
}

/* It left its group for that of this process. */
static void a_program_of_another_group_is_ended(void **state)
{
	static char script[] =
		"exec python3 -c 'import os, signal, sys; os.setpgid(0, os.getpgid(os.getppid())); "
		"open(sys.argv[1], \"w\"); signal.pause()' $0";
	struct vd_error error;

	(void) state;
	stop_one(script, &error);
	assert_string_equal(error.message, "the credential program \"/bin/sh\" was ended");
}

static void control_characters_are_escaped(void **state)
{
	/* A second line, colours, DEL, a backslash, Latin 1, a control character above ASCII, a letter. */
	static char text[] =
		"printf '\\n a\\n\\033[1mb\\177 \\\\ \\351 \\302\\233 \\303\\251 \\0c\\r\\n' >&2; exit 1";

	(void) state;
	expect_end_of_message(text, VD_FORBIDDEN,
			      ": a\\n\\x1b[1mb\\x7f \\\\ \\xe9 \\xc2\\x9b \xc3\xa9 \\x00c");
}

/* Much text: its end, from the beginning of a character. Pieces that are escaped are not cut. */
static void the_end_of_a_long_text_is_shown(void **state)
{
	static char small[] =
		"i=0; while [ $i -lt 300 ]; do printf '\\303\\251' >&2; i=$((i+1)); done; exit 1",
		    escaped[] = "i=0; while [ $i -lt 300 ]; do printf '\\001' >&2; i=$((i+1)); done; exit 1",
		    large[] = "head -c 300001 /dev/zero | sed 's/./x/g' >&2; echo last >&2; exit 1";
	struct vd_error error = { 0 };
	char		end[300] = ": ...";
	size_t		i;

	(void) state;
	assert_status(run(small, 0, &error), VD_FORBIDDEN);
	for (i = strlen(end); i + 2 <= 233; i += 2)
		memcpy(end + i, "\xc3\xa9", 3);
	expect_end_of_message(small, VD_FORBIDDEN, end);
	end[5] = 0;
	for (i = strlen(end); i + 4 <= 233; i += 4)
		memcpy(end + i, "\\x01", 5);
	expect_end_of_message(escaped, VD_FORBIDDEN, end);
	expect_end_of_message(large, VD_FORBIDDEN, "last");
}

/* Text on stderr is no fault; a child that holds stderr open does not delay the end. */
static void one_that_succeeds_may_print(void **state)
{
	static char text[] = CREDENTIAL "; echo 'flag --x is deprecated' >&2; sleep 1000 >/dev/null &";

	(void) state;
	assert_status(run(text, 30000, NULL), VD_OK);
	assert_string_equal(printed, "flag --x is deprecated");
}

/* stderr is read also after stdout has ended: otherwise the program would wait for a full pipe. */
static void much_text_after_the_credential(void **state)
{
	static char text[] = CREDENTIAL "; exec >&-; head -c 300000 /dev/zero >&2; echo >&2; echo end >&2";

	(void) state;
	assert_status(run(text, 30000, NULL), VD_OK);
	assert_non_null(strstr(printed, "\\nend"));
}

/* ---- Processes without some descriptors or signals ---- */

static void descriptors_0_to_2_are_closed(void **state)
{
	static char text[] = "for i in 0 1 2; do [ ! -e /proc/$PPID/fd/$i ] || exit 4; done; "
			     "cat && echo warned >&2 && " CREDENTIAL;
	int	    kept[3], i;
	vd_status   status;

	(void) state;
	for (i = 0; i < 3; i++) {
		kept[i] = fcntl(i, F_DUPFD_CLOEXEC, 100);
		assert_true(kept[i] >= 100);
	}
	for (i = 0; i < 3; i++)
		(void) close(i);
	status = run(text, 30000, NULL);
	for (i = 0; i < 3; i++) {
		(void) dup2(kept[i], i);
		(void) close(kept[i]);
	}
	assert_status(status, VD_OK);
	assert_string_equal(printed, "warned");
}

static void set_sigchld(void (*handler)(int signal), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	assert_int_equal(sigaction(SIGCHLD, &action, NULL), 0);
}

/* The kernel does not keep the status of a child then. */
static void a_process_that_ignores_sigchld(void **state)
{
	static char	text[] = CREDENTIAL;
	struct vd_error error = { 0 };

	(void) state;
	has_group = false;
	set_sigchld(SIG_IGN, 0);
	assert_status(run(text, 0, &error), VD_FORBIDDEN);
	assert_non_null(strstr(error.message, "cannot be run while this process ignores SIGCHLD"));
	set_sigchld(SIG_DFL, SA_NOCLDWAIT);
	assert_status(run(text, 0, NULL), VD_FORBIDDEN);
	set_sigchld(SIG_DFL, 0);
	has_group = true;
	assert_status(run(text, 0, NULL), VD_OK);
}

static void touch(const char *folder, const char *name)
{
	char path[200];
	int  fd;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void) close(fd);
}

static void *run_it(void *arg)
{
	static struct vd_error error;

	assert_status(run(arg, 30000, &error), VD_FORBIDDEN);
	return &error;
}

/* The process begins to ignore SIGCHLD while the program runs: the status is unknown, and not 0. */
static void a_status_that_is_lost(void **state)
{
	char		 folder[TEMP_FOLDER_SIZE], text[512], path[200];
	struct vd_error *error;
	pthread_t	 thread;

	(void) state;
	has_group = false; /* it ended, and its id is free */
	temp_folder_make(folder);
	snprintf(path, sizeof path, "%s/runs", folder);
	snprintf(text, sizeof text, "cd %s; " CREDENTIAL "; >runs; while [ ! -e go ]; do :; done", folder);
	assert_int_equal(pthread_create(&thread, NULL, run_it, text), 0);
	AWAIT(access(path, F_OK) == 0);
	set_sigchld(SIG_IGN, 0);
	touch(folder, "go");
	assert_int_equal(pthread_join(thread, (void **) &error), 0);
	set_sigchld(SIG_DFL, 0);
	has_group = true;
	assert_non_null(strstr(error->message, "unknown status"));
	temp_folder_remove(folder);
}

static void every_allocation_may_fail(void **state)
{
	static char text[] = "echo "
			     "'{\"apiVersion\":\"client.authentication.k8s.io/"
			     "v1\",\"kind\":\"ExecCredential\",\"status\":{\"clientCertificateData\":\"a\","
			     "\"clientKeyData\":\"b\"}}'";
	char	    api_version[] = "client.authentication.k8s.io/v1", command[] = "/bin/sh", option[] = "-c";
	struct vdi_exec_plan	plan = { .api_version = api_version,
					 .command = command,
					 .arguments = { command, option, text },
					 .gives_cluster = true };
	struct vdi_exec_cluster cluster = { .server = "https://127.0.0.1:1" };
	bool			failed = true;

	(void) state;
	for (uint64_t nth = 1; failed; nth++) {
		struct vdi_exec_credential *credential = NULL;
		struct vdi_exec_answer	    answer;
		int64_t			    live = vdi_alloc_live();
		vd_status		    status;

		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_exec_credential_new(&plan, &cluster, &credential);
		if (status == VD_OK)
			status = vdi_exec_credential_fetch(credential, &answer, NULL);
		failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		vdi_exec_credential_free(credential);
		assert_int_equal(vdi_alloc_live(), live);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_hangs_is_ended),
		cmocka_unit_test(one_that_does_not_end_is_ended),
		cmocka_unit_test(one_that_ends_at_the_deadline),
		cmocka_unit_test(what_it_left_behind_is_ended),
		cmocka_unit_test(more_than_anyone_needs_is_refused),
		cmocka_unit_test(its_stderr_is_in_the_message),
		cmocka_unit_test(a_program_that_hangs_is_stopped),
		cmocka_unit_test(a_program_of_another_group_is_ended),
		cmocka_unit_test(control_characters_are_escaped),
		cmocka_unit_test(the_end_of_a_long_text_is_shown),
		cmocka_unit_test(one_that_succeeds_may_print),
		cmocka_unit_test(much_text_after_the_credential),
		cmocka_unit_test(descriptors_0_to_2_are_closed),
		cmocka_unit_test(a_process_that_ignores_sigchld),
		cmocka_unit_test(a_status_that_is_lost),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
