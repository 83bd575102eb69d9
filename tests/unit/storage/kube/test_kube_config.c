/* The places of a configuration, and what replaces what. The identities in it are tested by
 * test_kube_identity.c. */
#include "kube_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "temp_folder.h"
#include "vdtest.h"

static struct {
	char		       folder[TEMP_FOLDER_SIZE];
	char		       pod[TEMP_FOLDER_SIZE + 8];
	struct vd_kube_options options;
	struct vd_error	       error;
} world;

static const char *path_of(const char *name)
{
	static char	paths[8][200]; /* valid until the 8th call after this one */
	static unsigned next;
	char	       *path = paths[next++ % 8];

	snprintf(path, sizeof paths[0], "%s/%s", world.folder, name);
	return path;
}

static void write_file(const char *name, const char *text)
{
	FILE *file = fopen(path_of(name), "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int begin(void **state)
{
	(void) state;
	memset(&world, 0, sizeof world);
	temp_folder_make(world.folder);
	snprintf(world.pod, sizeof world.pod, "%s/pod", world.folder);
	world.options = (struct vd_kube_options) VD_KUBE_OPTIONS_INIT;
	(void) unsetenv("KUBERNETES_SERVICE_HOST");
	(void) unsetenv("KUBERNETES_SERVICE_PORT");
	(void) unsetenv("KUBECONFIG");
	(void) setenv("HOME", world.folder, 1);
	return 0;
}

static int end(void **state)
{
	(void) state;
	temp_folder_remove(world.folder);
	return 0;
}

static vd_status find(struct vdi_kubeconfig *config)
{
	memset(&world.error, 0, sizeof world.error);
	return vdi_kube_config_find(&world.options, world.pod, config, &world.error);
}

static void expect_refusal(vd_status status, const char *message)
{
	struct vdi_kubeconfig config;

	assert_status(find(&config), status);
	assert_status(world.error.code, status);
	if (strstr(world.error.message, message) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", message, world.error.message);
}

/* A variable without a value is as none. */
static void empty_settings_are_none(void **state)
{
	struct vdi_kubeconfig config;

	(void) state;
	(void) setenv("KUBERNETES_SERVICE_HOST", "", 1);
	(void) setenv("KUBECONFIG", "", 1);
	expect_refusal(VD_NOT_FOUND, "and ~/.kube/config does not exist");
	(void) setenv("HOME", "", 1);
	expect_refusal(VD_NOT_FOUND, "~/.kube/config (HOME is not set)");
	(void) unsetenv("HOME");
	expect_refusal(VD_NOT_FOUND, "~/.kube/config (HOME is not set)");
	(void) setenv("HOME", world.folder, 1);
	assert_int_equal(mkdir(path_of(".kube"), 0700), 0);
	write_file(".kube/config", "current-context: a\ncontexts: [{name: a, context: {cluster: a}}]\n"
				   "clusters: [{name: a, cluster: {server: 'https://home'}}]\n");
	assert_status(find(&config), VD_OK);
	assert_string_equal(config.server, "https://home");
	assert_string_equal(config.namespace_name, "default");
	vdi_kubeconfig_fini(&config);
}

/* Its files but the token may be missing. */
static void a_pod_with_little(void **state)
{
	struct vdi_kubeconfig config;

	(void) state;
	assert_int_equal(mkdir(world.pod, 0700), 0);
	write_file("pod/token", "of-the-pod\n");
	(void) setenv("KUBERNETES_SERVICE_HOST", "[fd00::2]", 1);
	(void) setenv("KUBERNETES_SERVICE_PORT", "", 1);
	write_file("pod/namespace", " \n");
	for (int i = 0; i < 2; i++) {
		assert_status(find(&config), VD_OK);
		assert_string_equal(config.server, "https://[fd00::2]:443");
		assert_string_equal(config.namespace_name, "default");
		assert_null(config.ca_file);
		assert_string_equal(config.token_file, path_of("pod/token"));
		vdi_kubeconfig_fini(&config);
		if (i == 0)
			assert_int_equal(unlink(path_of("pod/namespace")), 0);
	}
	world.options.token = "mine";
	assert_status(find(&config), VD_OK);
	assert_null(config.token_file);
	assert_string_equal(config.token, "mine");
	vdi_kubeconfig_fini(&config);
}

/* An option replaces what the kubeconfig says of the same thing, in whatever form. */
static void options_replace_the_kubeconfig(void **state)
{
	static const char user[] = "{client-certificate-data: YQ==, client-key-data: Yg==, tokenFile: token, "
				   "exec: {command: x, apiVersion: client.authentication.k8s.io/v1}}";
	struct vdi_kubeconfig config;
	char		      text[2048];

	(void) state;
	write_file("token", "of-the-file");
	snprintf(text, sizeof text,
		 "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"
		 "clusters: [{name: c, cluster: {server: 'https://one', certificate-authority-data: Yw==, "
		 "tls-server-name: a}}]\nusers: [{name: u, user: %s}]\n",
		 user);
	write_file("config", text);
	world.options.kubeconfig = path_of("config");
	assert_status(find(&config), VD_OK);
	assert_true(vd_bytes_equal(config.ca_data, vd_bytes_of("c")));
	assert_true(vd_bytes_equal(config.cert_data, vd_bytes_of("a")));
	assert_true(vd_bytes_equal(config.key_data, vd_bytes_of("b")));
	assert_string_equal(config.token_file, path_of("token"));
	assert_string_equal(config.exec.command, "x");
	assert_string_equal(config.server_name, "a");
	assert_false(config.insecure);
	vdi_kubeconfig_fini(&config);
	world.options.ca_path = "/ca";
	world.options.cert_path = "/cert";
	world.options.key_path = "/key";
	world.options.token_path = "/token";
	world.options.insecure = true;
	assert_status(find(&config), VD_OK);
	assert_int_equal(config.ca_data.size + config.cert_data.size + config.key_data.size, 0);
	assert_string_equal(config.ca_file, "/ca");
	assert_string_equal(config.cert_file, "/cert");
	assert_string_equal(config.key_file, "/key");
	assert_string_equal(config.token_file, "/token");
	assert_null(config.token);
	assert_null(config.exec.command);
	assert_true(config.insecure);
	vdi_kubeconfig_fini(&config);
	/* The key of the kubeconfig does not belong to another certificate. */
	world.options.key_path = NULL;
	expect_refusal(VD_INVALID_ARGUMENT, "the key is missing");
	world.options.cert_path = NULL;
	world.options.key_path = "/key";
	assert_status(find(&config), VD_OK);
	assert_string_equal(config.key_file, "/key");
	assert_int_equal(config.key_data.size, 0);
	assert_true(vd_bytes_equal(config.cert_data, vd_bytes_of("a")));
	vdi_kubeconfig_fini(&config);
}

static void a_server_is_a_url_or_a_socket(void **state)
{
	static const char *const servers[] = { "http://", "https://", "https:///", "unix:/",
					       "unix:",	  "one",      "" };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(servers); i++) {
		world.options.server = servers[i];
		expect_refusal(VD_INVALID_ARGUMENT, "must be a URL");
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(empty_settings_are_none),
		TEST(a_pod_with_little),
		TEST(options_replace_the_kubeconfig),
		TEST(a_server_is_a_url_or_a_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
