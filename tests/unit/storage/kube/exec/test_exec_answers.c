/* Credentials from programs: what a program is given, what it may answer, how it fails. */
#include "exec_credential.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "temp_folder.h"
#include "vdtest.h"

#define V1 "client.authentication.k8s.io/v1"
#define HEAD "\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\""
#define STATUS(members) "{" HEAD ",\"status\":{" members "}}"

/* A program that stays, so that its credential can be asked for again. */
struct kept {
	char			    api_version[64], command[64], option[4], text[2048];
	struct vdi_exec_plan	    plan;
	struct vdi_exec_credential *credential;
	struct vdi_exec_answer	    answer;
	struct vd_error		    error;
};

static void kept_open(struct kept *kept, const char *text)
{
	const struct vdi_exec_cluster cluster = { .server = "https://127.0.0.1:1",
						  .ca = { "ab", 2 },
						  .insecure = true };

	snprintf(kept->api_version, sizeof kept->api_version, V1);
	snprintf(kept->command, sizeof kept->command, "/bin/sh");
	snprintf(kept->option, sizeof kept->option, "-c");
	assert_true(snprintf(kept->text, sizeof kept->text, "%s", text) < (int) sizeof kept->text);
	kept->plan.api_version = kept->api_version;
	kept->plan.command = kept->command;
	kept->plan.arguments[0] = kept->command;
	kept->plan.arguments[1] = kept->option;
	kept->plan.arguments[2] = kept->text;
	assert_status(vdi_exec_credential_new(&kept->plan, &cluster, &kept->credential), VD_OK);
}

static vd_status kept_fetch(struct kept *kept)
{
	memset(&kept->error, 0, sizeof kept->error);
	return vdi_exec_credential_fetch(kept->credential, &kept->answer, &kept->error);
}

static void kept_close(struct kept *kept)
{
	kept->credential = vdi_exec_credential_free(kept->credential);
}

/* Runs text once. */
static vd_status fetch_once(struct kept *kept, const char *text)
{
	vd_status status;

	memset(kept, 0, sizeof *kept);
	kept_open(kept, text);
	status = kept_fetch(kept);
	kept_close(kept);
	return status;
}

static void what_is_no_credential(void **state)
{
	static const char *const rows[][2] = {
		{ "", "it is not an ExecCredential" },
		{ "{}", "it is not an ExecCredential" },
		{ "{\"kind\":\"Credential\",\"apiVersion\":\"" V1 "\"}", "it is not an ExecCredential" },
		{ "{" HEAD ",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"a\"}}",
		  "it is not an ExecCredential" },
		{ "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "beta1\",\"status\":{\"token\":\"a\"}}",
		  "its apiVersion differs from that in the kubeconfig" },
		{ "{" HEAD "}", "it has neither a token nor a certificate" },
		{ STATUS("\"token\":\"\""), "it has neither a token nor a certificate" },
		{ STATUS("\"token\":\"a\",\"clientKeyData\":\"k\""),
		  "a certificate and its key must be given together" },
		{ STATUS("\"token\":\"a\",\"clientCertificateData\":\"c\""),
		  "a certificate and its key must be given together" },
		{ STATUS("\"token\":\"a b\""), "its token has invalid characters" },
		{ STATUS("\"token\":\"a\\u007f\""), "its token has invalid characters" },
		{ STATUS("\"token\":\"a\",\"expirationTimestamp\":\"tomorrow\""),
		  "its expirationTimestamp is not a time" },
		{ STATUS("\"token\":\"a\",\"expirationTimestamp\":\"2024-01-01T00:00:00"
			 ".00000000000000000000000000000000000000000000000000000000000Z\""),
		  "its expirationTimestamp is not a time" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct kept kept;
		char	    text[1024], expected[200];

		snprintf(text, sizeof text, "printf %%s '%s'", rows[i][0]);
		snprintf(expected, sizeof expected, "invalid credential from \"/bin/sh\": %s", rows[i][1]);
		assert_status(fetch_once(&kept, text), VD_FORBIDDEN);
		assert_string_equal(kept.error.message, expected);
		assert_status(kept.error.code, VD_FORBIDDEN);
	}
}

/* Times outside of the clock are its ends, because 0 is never. */
static void when_a_credential_expires(void **state)
{
	static const struct {
		const char *time;
		int64_t	    seconds, nanoseconds;
	} rows[] = {
		{ "2024-01-01T00:00:00Z", 1704067200, 0 },
		{ "2024-01-01T00:00:00.5Z", 1704067200, 500000000 },
		{ "1970-01-01T00:00:01Z", 1, 0 },
		{ "1970-01-01T00:00:00Z", 0, 1 },
		{ "1969-12-31T23:59:59Z", 0, 1 },
		{ "2261-12-31T23:59:59Z", 9214646399, 0 },
		{ "2262-12-31T23:59:59Z", 9214646399, 0 },
		{ "9999-12-31T23:59:59Z", 9214646399, 0 },
	};
	struct kept kept;
	char	    text[512];

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		snprintf(text, sizeof text,
			 "echo '" STATUS("\"token\":\"a\",\"expirationTimestamp\":\"%s\"") "'", rows[i].time);
		assert_status(fetch_once(&kept, text), VD_OK);
		assert_int_equal(kept.answer.expires.ns, rows[i].seconds * 1000000000 + rows[i].nanoseconds);
	}
	assert_status(fetch_once(&kept, "echo '" STATUS("\"token\":\"a\"") "'"), VD_OK);
	assert_int_equal(kept.answer.expires.ns, 0);
}

/* printf of the shell writes begin and end, and head so many letters between them. */
#define FILLED(begin, size, letter, end)                                                                     \
	"printf %%s '" begin "'; head -c " #size " /dev/zero | tr '\\0' '" letter "'; printf %%s '" end "'"

static void a_token_and_an_output_have_a_largest_size(void **state)
{
	struct kept kept;
	char	    text[512];

	(void) state;
	for (int more = 0; more < 2; more++) {
		snprintf(text, sizeof text, FILLED("{" HEAD ",\"status\":{\"token\":\"", % d, "a", "\"}}"),
			 65536 + more);
		assert_status(fetch_once(&kept, text), more ? VD_FORBIDDEN : VD_OK);
		snprintf(text, sizeof text, FILLED(STATUS("\"token\":\"a\""), % d, " ", ""),
			 (1 << 20) - (int) strlen(STATUS("\"token\":\"a\"")) + more);
		assert_status(fetch_once(&kept, text), more ? VD_FORBIDDEN : VD_OK);
		if (more)
			assert_string_equal(kept.error.message,
					    "the credential program \"/bin/sh\" printed more than 1 MiB");
	}
}

static void how_a_program_fails(void **state)
{
	char	    hint[] = "Install it";
	struct kept kept;

	(void) state;
	assert_status(fetch_once(&kept, "echo '" STATUS("\"token\":\"a\"") "'; exit 3"), VD_FORBIDDEN);
	assert_string_equal(kept.error.message, "the credential program \"/bin/sh\" failed with status 3");
	assert_status(fetch_once(&kept, "kill -9 $$"), VD_FORBIDDEN);
	assert_string_equal(kept.error.message, "the credential program \"/bin/sh\" was ended by signal 9");
	for (int i = 0; i < 2; i++) {
		memset(&kept, 0, sizeof kept);
		kept.plan.hint = i ? hint : NULL;
		kept_open(&kept, "");
		snprintf(kept.command, sizeof kept.command, "/nowhere/at/all");
		assert_status(kept_fetch(&kept), VD_FORBIDDEN);
		assert_string_equal(kept.error.message,
				    i ? "the credential program \"/nowhere/at/all\" cannot be run: No such "
					"file or directory. Install it" :
					"the credential program \"/nowhere/at/all\" cannot be run: No such "
					"file or directory");
		kept_close(&kept);
	}
}

/* Signals that this process ignores or blocks, its group and its terminal are no matter of the program. */
static void what_a_program_inherits(void **state)
{
	sigset_t    blocked;
	struct kept kept;

	(void) state;
	(void) signal(SIGPIPE, SIG_IGN);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, &blocked, NULL), 0);
	assert_status(fetch_once(&kept, "read x && exit 3\n"
					"grep -q '^SigIgn:.*[1357]000$' /proc/self/status && exit 4\n"
					"grep -q '^SigBlk:.*[4-7c-f]...$' /proc/self/status && exit 5\n"
					"set -- $(cat /proc/$$/stat)\n"
					"[ \"$5\" = $$ ] || exit 6\n"
					"echo '" STATUS("\"token\":\"a\"") "'"),
		      VD_OK);
	assert_int_equal(pthread_sigmask(SIG_UNBLOCK, &blocked, NULL), 0);
}

/* The variables of this process, those of the kubeconfig, and what the server is like. */
static void the_environment_of_a_program(void **state)
{
	static const char *const infos[] = {
		"{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"spec\":{\"interactive\":false}}",
		"{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"spec\":{\"interactive\":false,"
		"\"cluster\":{\"server\":\"https://127.0.0.1:1\",\"certificate-authority-data\":\"YWI=\","
		"\"insecure-skip-tls-verify\":true}}}",
	};
	char folder[TEMP_FOLDER_SIZE], path[TEMP_FOLDER_SIZE + 8], text[600], info[600];
	char replaced[] = "TEST_EXEC_B=of the plan", added[] = "TEST_EXEC_C=c";

	(void) state;
	temp_folder_make(folder);
	snprintf(path, sizeof path, "%s/info", folder);
	assert_int_equal(setenv("TEST_EXEC_A", "a", 1), 0);
	assert_int_equal(setenv("TEST_EXEC_B", "of the process", 1), 0);
	assert_int_equal(setenv("TEST_EXEC_BB", "bb", 1), 0);
	assert_int_equal(setenv("KUBERNETES_EXEC_INFO", "of another program", 1), 0);
	snprintf(text, sizeof text,
		 "printf %%s \"$KUBERNETES_EXEC_INFO\" >%s\n"
		 "[ \"$TEST_EXEC_A-$TEST_EXEC_B-$TEST_EXEC_BB-$TEST_EXEC_C\" = 'a-of the plan-bb-c' ] || "
		 "exit 3\n"
		 "[ $(tr '\\0' '\\n' </proc/$$/environ | grep -c '^TEST_EXEC_B=') = 1 ] || exit 4\n"
		 "echo '" STATUS("\"token\":\"a\"") "'",
		 path);
	for (int i = 0; i < 2; i++) {
		struct kept kept = { .plan = { .environment = { replaced, added }, .gives_cluster = i } };
		FILE	   *file;

		kept_open(&kept, text);
		assert_status(kept_fetch(&kept), VD_OK);
		kept_close(&kept);
		file = fopen(path, "re");
		assert_non_null(file);
		info[fread(info, 1, sizeof info - 1, file)] = 0;
		assert_int_equal(fclose(file), 0);
		assert_string_equal(info, infos[i]);
	}
	(void) unsetenv("KUBERNETES_EXEC_INFO");
	temp_folder_remove(folder);
}

static void all_parts_of_a_credential(void **state)
{
	struct kept kept;

	(void) state;
	memset(&kept, 0, sizeof kept);
	kept_open(&kept, "echo '" STATUS("\"token\":\"a\",\"clientCertificateData\":\"c\","
					 "\"clientKeyData\":\"k\"") "'");
	for (int i = 0; i < 2; i++) {
		assert_status(kept_fetch(&kept), VD_OK);
		assert_string_equal(kept.answer.token, "a");
		assert_true(vd_bytes_equal(kept.answer.certificate, vd_bytes_of("c")));
		assert_true(vd_bytes_equal(kept.answer.key, vd_bytes_of("k")));
	}
	vdi_exec_credential_stop(kept.credential);
	assert_status(kept_fetch(&kept), VD_CLOSED);
	assert_string_equal(kept.error.message, "the credential program \"/bin/sh\" was ended");
	kept_close(&kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_credential),
		cmocka_unit_test(when_a_credential_expires),
		cmocka_unit_test(a_token_and_an_output_have_a_largest_size),
		cmocka_unit_test(how_a_program_fails),
		cmocka_unit_test(what_a_program_inherits),
		cmocka_unit_test(the_environment_of_a_program),
		cmocka_unit_test(all_parts_of_a_credential),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
