/* Credential programs that do not end, or print garbage. The other cases use servers, in
 * test_kubeconfig.py. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "exec_credential.h"
#include "vdtest.h"

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
	vd_status		    status;

	assert_status(vdi_exec_credential_new(&plan, &cluster, &credential), VD_OK);
	status = vdi_exec_credential_get(credential, &answer, reterr);
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
	vd_status   status;

	(void) state;
	status = run(text, 50, NULL);
	assert_true(status == VD_FORBIDDEN ||
		    status == VD_TIMEOUT); /* on a busy machine it has not printed it yet */
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
			status = vdi_exec_credential_get(credential, &answer, NULL);
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
		cmocka_unit_test(what_it_left_behind_is_ended),
		cmocka_unit_test(more_than_anyone_needs_is_refused),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
