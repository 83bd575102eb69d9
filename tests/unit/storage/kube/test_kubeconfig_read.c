/* Kubeconfigs: what is taken from them, what is refused, and their bounds. Their places are tested by
 * test_kube_identity.c. */
#include "kubeconfig_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "temp_folder.h"
#include "vdtest.h"

static char	       folder[TEMP_FOLDER_SIZE];
static struct vd_error error;

static int begin(void **state)
{
	(void) state;
	temp_folder_make(folder);
	return 0;
}

static int end(void **state)
{
	(void) state;
	temp_folder_remove(folder);
	return 0;
}

static const char *path_of(const char *name)
{
	static char	paths[4][128]; /* valid until the 4th call after this one */
	static unsigned next;
	char	       *path = paths[next++ % 4];

	snprintf(path, sizeof paths[0], "%s/%s", folder, name);
	return path;
}

static void write_file(const char *name, const char *text)
{
	FILE *file = fopen(path_of(name), "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* Reads the file "config" with this text. */
static vd_status read_text(const char *text, struct vdi_kubeconfig *config)
{
	write_file("config", text);
	memset(&error, 0, sizeof error);
	return vdi_kubeconfig_read(path_of("config"), NULL, config, &error);
}

/* message: %s is the file. */
static void expect_refusal(const char *text, vd_status status, const char *message)
{
	struct vdi_kubeconfig config;
	char		      expected[512];
	const char	     *mark = strstr(message, "%s");

	assert_status(read_text(text, &config), status);
	assert_status(error.code, status);
	snprintf(expected, sizeof expected, "%.*s%s%s", mark ? (int) (mark - message) : 0, message,
		 mark ? path_of("config") : "", mark ? mark + 2 : message);
	assert_string_equal(error.message, expected);
}

#define CONFIG(context, cluster, user)                                                                       \
	"current-context: a\n"                                                                               \
	"contexts: [{name: b, context: {cluster: b}}, {name: a, context: " context "}]\n"                    \
	"clusters: [{cluster: {server: 'https://no'}}, {name: c, cluster: " cluster "}]\n"                   \
	"users: [{name: v, user: {token: no}}, {name: u, user: " user "}]\n"
#define USER(user) CONFIG("{cluster: c, user: u}", "{server: 'https://one'}", user)
#define EXEC(members) USER("{exec: {" members "}}")
#define V1 "apiVersion: client.authentication.k8s.io/v1"

static void what_is_refused(void **state)
{
	static const char only[] =
		"%s: only tokens, client certificates and exec are supported; use --token or "
		"--cert and --key instead";
	static const char as[] = "%s: impersonation (as, as-groups) is not supported";
	static const struct {
		const char *text, *message;
	} rows[] = {
		{ "{}", "%s has no current context: give --context" },
		{ "current-context: ''", "%s has no current context: give --context" },
		{ "current-context: a", "%s: there is no \"a\" in contexts" },
		{ "current-context: a\ncontexts: {name: a}", "%s: there is no \"a\" in contexts" },
		{ CONFIG("{user: u}", "{}", "{}"), "%s: the context \"a\" has no cluster" },
		{ CONFIG("{cluster: d}", "{}", "{}"), "%s: there is no \"d\" in clusters" },
		{ CONFIG("{cluster: c, user: w}", "{server: a}", "{}"), "%s: there is no \"w\" in users" },
		{ CONFIG("{cluster: c}", "{}", "{}"), "%s: the cluster has no server" },
		{ CONFIG("{cluster: c}", "{server: a, certificate-authority-data: '%'}", "{}"),
		  "%s: certificate-authority-data is not base64" },
		{ USER("{username: a}"), only },
		{ USER("{auth-provider: {}}"), only },
		{ USER("{as: ''}"), as },
		{ USER("{as-groups: []}"), as },
		{ USER("{as-uid: a}"), as },
		{ USER("{as-user-extra: {}}"), as },
		{ USER("{client-key-data: '%'}"), "%s: client-key-data is not base64" },
		{ EXEC("command: a"), "%s: exec must have a command and an apiVersion" },
		{ EXEC(V1), "%s: exec must have a command and an apiVersion" },
		{ EXEC("command: a, " V1 "alpha1"),
		  "%s: the apiVersion \"client.authentication.k8s.io/v1alpha1\" of exec is not supported" },
		{ EXEC("command: a, interactiveMode: Always, " V1),
		  "%s: \"a\" requires a terminal, which is not available here" },
		{ EXEC("command: a, args: [[]], " V1), "%s: an argument of exec is not a string" },
		{ EXEC("command: a, env: [{value: b}], " V1), "%s: a variable of exec has no name" },
		{ EXEC("command: a, env: [{name: 'b=c'}], " V1), "%s: a variable of exec has no name" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		expect_refusal(rows[i].text, VD_BAD_REQUEST, rows[i].message);
	expect_refusal("a: b\n  c: [", VD_BAD_REQUEST,
		       "%s, line 2: mapping values are not allowed in this context");
}

static void a_cluster_and_a_user(void **state)
{
	static const char *const insecure[] = { "", ", insecure-skip-tls-verify: true",
						", insecure-skip-tls-verify: 'false'" };
	struct vdi_kubeconfig	 config;
	char			 text[1024];

	(void) state;
	for (unsigned i = 0; i < VDI_ARRAY_SIZE(insecure); i++) {
		snprintf(text, sizeof text,
			 CONFIG("{cluster: c, user: u, namespace: ns}",
				"{server: 'https://one', certificate-authority: ca.pem, proxy-url: p, "
				"tls-server-name: n%s}",
				"{client-certificate: /cert.pem, client-key: keys/key.pem, token: t}"),
			 insecure[i]);
		assert_status(read_text(text, &config), VD_OK);
		assert_string_equal(config.server, "https://one");
		assert_string_equal(config.namespace_name, "ns");
		assert_string_equal(config.ca_file, path_of("ca.pem"));
		assert_string_equal(config.cert_file, "/cert.pem");
		assert_string_equal(config.key_file, path_of("keys/key.pem"));
		assert_string_equal(config.proxy_url, "p");
		assert_string_equal(config.server_name, "n");
		assert_string_equal(config.token, "t");
		assert_null(config.token_file);
		assert_null(config.exec.command);
		assert_int_equal(config.insecure, i == 1);
		vdi_kubeconfig_fini(&config);
	}
	/* Data counts more than a file; a user is not needed. */
	assert_status(
		read_text(CONFIG("{cluster: c, user: u}",
				 "{server: a, certificate-authority: b, certificate-authority-data: Yw==}",
				 "{client-certificate: b, client-certificate-data: ZA==, client-key: b, "
				 "client-key-data: ZQ==}"),
			  &config),
		VD_OK);
	assert_true(vd_bytes_equal(config.ca_data, vd_bytes_of("c")));
	assert_true(vd_bytes_equal(config.cert_data, vd_bytes_of("d")));
	assert_true(vd_bytes_equal(config.key_data, vd_bytes_of("e")));
	assert_null(config.ca_file);
	assert_null(config.cert_file);
	assert_null(config.key_file);
	vdi_kubeconfig_fini(&config);
	assert_status(read_text(CONFIG("{cluster: c}", "{server: a}", "{token: t}"), &config), VD_OK);
	assert_null(config.token);
	vdi_kubeconfig_fini(&config);
}

/* In the folder of the file only if it has a slash; a path without a folder is the current one's. */
static void the_program_of_a_user(void **state)
{
	static const char *const commands[][2] = { { "tool", "tool" },
						   { "/bin/tool", "/bin/tool" },
						   { "./tool", NULL } };
	struct vdi_kubeconfig	 config;
	char			 text[1024], old[512];

	(void) state;
	for (unsigned i = 0; i < VDI_ARRAY_SIZE(commands); i++) {
		snprintf(text, sizeof text,
			 EXEC("command: %s, args: [b, ''], env: [{name: c, value: d}, {name: e}], "
			      "provideClusterInfo: %s, installHint: h, interactiveMode: IfAvailable, " V1
			      "%s"),
			 commands[i][0], i == 1 ? "true" : "false", i == 2 ? "beta1" : "");
		assert_status(read_text(text, &config), VD_OK);
		assert_string_equal(config.exec.command, commands[i][1] ? commands[i][1] : path_of("./tool"));
		assert_string_equal(config.exec.arguments[0], config.exec.command);
		assert_string_equal(config.exec.arguments[1], "b");
		assert_string_equal(config.exec.arguments[2], "");
		assert_null(config.exec.arguments[3]);
		assert_string_equal(config.exec.environment[0], "c=d");
		assert_string_equal(config.exec.environment[1], "e=");
		assert_null(config.exec.environment[2]);
		assert_int_equal(config.exec.gives_cluster, i == 1);
		assert_string_equal(config.exec.hint, "h");
		assert_string_equal(config.exec.api_version, i == 2 ? "client.authentication.k8s.io/v1beta1" :
								      "client.authentication.k8s.io/v1");
		vdi_kubeconfig_fini(&config);
	}
	assert_non_null(getcwd(old, sizeof old));
	assert_int_equal(chdir(folder), 0);
	assert_status(vdi_kubeconfig_read("config", NULL, &config, &error), VD_OK);
	assert_string_equal(config.exec.command, "./tool");
	vdi_kubeconfig_fini(&config);
	assert_int_equal(chdir(old), 0);
}

/* So many words, and one more. */
static void a_program_has_so_many_words(void **state)
{
	static const struct {
		const char *list, *word, *message;
	} rows[] = { { "args: [", "a,", "%s: too many arguments of exec" },
		     { "env: [", "{name: a},", "%s: too many variables of exec" } };

	(void) state;
	for (unsigned i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		for (int more = 0; more < 2; more++) {
			struct vdi_kubeconfig config;
			char		      words[4096], text[8192];
			int		      size = 0;

			for (int k = 0; k < VDI_EXEC_WORDS_MAX + more; k++)
				size += snprintf(words + size, sizeof words - (size_t) size, "%s",
						 rows[i].word);
			snprintf(text, sizeof text, EXEC("command: a, %s%s], " V1), rows[i].list, words);
			if (more)
				expect_refusal(text, VD_BAD_REQUEST, rows[i].message);
			else {
				assert_status(read_text(text, &config), VD_OK);
				vdi_kubeconfig_fini(&config);
			}
		}
}

/* The first file that defines a name counts, and its paths are its own. */
static void a_list_of_files(void **state)
{
	struct vdi_kubeconfig config;
	char		      list[4096];
	int		      size = 0;

	(void) state;
	assert_int_equal(mkdir(path_of("other"), 0700), 0);
	write_file("one", "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n");
	write_file("other/two",
		   "current-context: b\nclusters: [{name: c, cluster: {server: 'https://two', "
		   "certificate-authority: ca}}]\nusers: [{name: u, user: {client-key: key}}]\n");
	write_file("three", "clusters: [{name: c, cluster: {server: 'https://three'}}]\n");
	snprintf(list, sizeof list, "::%s:%s/absent:%s/other/two:%s/three:", path_of("one"), folder, folder,
		 folder);
	assert_status(vdi_kubeconfig_read_list(list, NULL, &config, &error), VD_OK);
	assert_string_equal(config.server, "https://two");
	assert_string_equal(config.ca_file, path_of("other/ca"));
	assert_string_equal(config.key_file, path_of("other/key"));
	vdi_kubeconfig_fini(&config);
	/* A single file is not divided. */
	assert_status(vdi_kubeconfig_read(list, NULL, &config, &error), VD_NOT_FOUND);
	assert_status(vdi_kubeconfig_read_list("", NULL, &config, &error), VD_NOT_FOUND);
	assert_string_equal(error.message, "no kubeconfig is named");
	assert_status(vdi_kubeconfig_read_list("::", NULL, &config, &error), VD_NOT_FOUND);
	assert_string_equal(error.message, "no kubeconfig is named");
	/* One that is there must be readable. */
	write_file("bad", "[");
	snprintf(list, sizeof list, "%s:%s", path_of("one"), path_of("bad"));
	assert_status(vdi_kubeconfig_read_list(list, NULL, &config, &error), VD_BAD_REQUEST);
	/* So many, and one more. */
	for (int i = 0; i <= VDI_KUBECONFIGS_MAX; i++) {
		size += snprintf(list + size, sizeof list - (size_t) size,
				 "%s:", path_of(i == 0 ? "one" : "other/two"));
		if (i == VDI_KUBECONFIGS_MAX - 1) {
			assert_status(vdi_kubeconfig_read_list(list, NULL, &config, &error), VD_OK);
			vdi_kubeconfig_fini(&config);
		}
	}
	assert_status(vdi_kubeconfig_read_list(list, NULL, &config, &error), VD_BAD_REQUEST);
	assert_string_equal(error.message, "more than 16 kubeconfigs");
}

/* A text of size bytes: begin, and the fill as often as it fits. */
static void expect_size(const char *first, const char *fill, size_t count, const char *last, vd_status status,
			const char *message)
{
	size_t size = strlen(first) + count * strlen(fill) + strlen(last) + 1;
	char  *text = malloc(size), *at = text;

	at += sprintf(at, "%s", first);
	for (size_t i = 0; i < count; i++)
		at += sprintf(at, "%s", fill);
	sprintf(at, "%s", last);
	expect_refusal(text, status, message);
	free(text);
}

/* Without a context: a file that can be read is refused for that reason. */
static void files_have_bounds(void **state)
{
	static const char none[] = "%s has no current context: give --context";
	static const char large[] = "%s is too deep, too large, or not text";
	static const char brackets[] = "]]]]]]]]]]]]]]]]]";

	(void) state;
	expect_size("x: ", "[", 16, brackets + 1, VD_BAD_REQUEST, none);
	expect_size("x: ", "[", 17, brackets, VD_BAD_REQUEST, large);
	expect_size("x: [", "a,", 99998, "]", VD_BAD_REQUEST, none);
	expect_size("x: [", "a,", 99999, "]", VD_BAD_REQUEST, large);
	expect_size("x: {? [a] : b}", "", 0, "", VD_BAD_REQUEST, large);
	expect_size("x: \"a\\0b\"", "", 0, "", VD_BAD_REQUEST, large);
	/* Aliases count at each use. */
	expect_size("a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
		    "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\nx: [",
		    "*d,", 7, "]", VD_BAD_REQUEST, none);
	expect_size("a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
		    "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\nx: [",
		    "*d,", 8, "]", VD_BAD_REQUEST, large);
	expect_size("x: #", "a", (4 << 20) - 4, "", VD_BAD_REQUEST, none);
	expect_size("x: #", "a", (4 << 20) - 3, "", VD_IO, "%s is too large");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_refused),	     TEST(a_cluster_and_a_user),
		TEST(the_program_of_a_user), TEST(a_program_has_so_many_words),
		TEST(a_list_of_files),	     TEST(files_have_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
