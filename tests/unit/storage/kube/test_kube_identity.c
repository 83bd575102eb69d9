/* Where the configuration comes from, and how the identity is kept current. */
#include "kube_identity.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "actor_sim.h"
#include "rpc_certs.h"
#include "temp_folder.h"
#include "vdtest.h"

static struct {
	struct vd_env	      *env;
	char		       folder[TEMP_FOLDER_SIZE];
	char		       pod[TEMP_FOLDER_SIZE + 8];
	struct vd_kube_options options;
	struct vd_error	       error;
	unsigned	       changes;
	bool		       is_closed;
} world;

static const char *path_of(const char *name)
{
	static char	paths[64][200]; /* lent until the 64th call after this one */
	static unsigned next;
	char	       *path = paths[next++ % 64];

	snprintf(path, sizeof paths[0], "%s/%s", world.folder, name);
	return path;
}

static void write_bytes(const char *name, struct vd_bytes bytes)
{
	FILE *file = fopen(path_of(name), "we");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes.data, 1, bytes.size, file), bytes.size);
	assert_int_equal(fclose(file), 0);
}

static void write_file(const char *name, const char *text)
{
	write_bytes(name, vd_bytes_of(text));
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
	return vdi_env_new_sim(5, NULL, NULL, &world.env) == VD_OK ? 0 : -1;
}

static int end(void **state)
{
	(void) state;
	world.env = vd_env_free(world.env);
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
	struct vdi_kubeconfig	  config;
	struct vdi_kube_identity *identity;
	vd_status		  got = find(&config);

	if (got == VD_OK)
		got = vdi_kube_identity_new(world.env, &config, NULL, NULL, &identity, &world.error);
	assert_status(got, status);
	assert_status(world.error.code, status);
	if (strstr(world.error.message, message) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", message, world.error.message);
}

static void on_changed(void *arg)
{
	(void) arg;
	world.changes++;
}

static struct vdi_kube_identity *open_identity(void)
{
	struct vdi_kubeconfig	  config;
	struct vdi_kube_identity *identity = NULL;

	if (find(&config) != VD_OK ||
	    vdi_kube_identity_new(world.env, &config, on_changed, NULL, &identity, &world.error) != VD_OK)
		fail_msg("%s", world.error.message);
	return identity;
}

static void note_closed(void *arg)
{
	(void) arg;
	world.is_closed = true;
}

static void close_identity(struct vdi_kube_identity *identity)
{
	world.is_closed = false;
	vdi_kube_identity_close(identity, note_closed, NULL);
	vdi_sim_run_until_idle(world.env);
	assert_true(world.is_closed);
}

static struct vdi_kube_credential take(struct vdi_kube_identity *identity)
{
	struct vdi_kube_credential credential;

	assert_status(vdi_kube_identity_take(identity, &credential, &world.error), VD_OK);
	return credential;
}

static void expect_token(struct vdi_kube_identity *identity, const char *token)
{
	struct vdi_kube_credential credential = take(identity);

	if (token == NULL)
		assert_null(credential.token);
	else {
		assert_non_null(credential.token);
		assert_string_equal(credential.token, token);
	}
}

/* ---- Places ---- */

static void nothing_is_configured(void **state)
{
	(void) state;
	expect_refusal(VD_NOT_FOUND, "~/.kube/config");
	assert_non_null(strstr(world.error.message, "KUBERNETES_SERVICE_HOST"));
	assert_non_null(strstr(world.error.message, "KUBECONFIG"));
}

static void a_server_is_named(void **state)
{
	struct vdi_kube_identity *identity;

	(void) state;
	world.options.server = "https://10.0.0.1:6443//";
	world.options.token = "secret";
	(void) setenv("KUBERNETES_SERVICE_HOST", "10.9.9.9", 1);
	identity = open_identity();
	assert_string_equal(vdi_kube_identity_config(identity)->server, "https://10.0.0.1:6443");
	assert_string_equal(vdi_kube_identity_config(identity)->namespace_name, "default");
	expect_token(identity, "secret");
	assert_false(vdi_kube_identity_can_change(identity));
	assert_false(vdi_kube_identity_has_program(identity));
	close_identity(identity);
}

static void a_socket_is_named(void **state)
{
	struct vdi_kubeconfig config;

	(void) state;
	world.options.server = "unix:/run/vedette/socket";
	world.options.token = "stays on this machine";
	assert_status(find(&config), VD_OK);
	assert_string_equal(config.server, "unix:/run/vedette/socket");
	vdi_kubeconfig_fini(&config);
	world.options.server = "unix:relative";
	expect_refusal(VD_INVALID_ARGUMENT, "must be a URL");
}

static void make_pod(void)
{
	assert_int_equal(mkdir(world.pod, 0700), 0);
	write_file("pod/token", "of-the-pod\n");
	write_file("pod/namespace", "kube-public\n");
}

static void the_pods_own_cluster(void **state)
{
	struct vdi_kube_identity *identity;
	struct vdi_kubeconfig	  config;

	(void) state;
	(void) setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
	(void) setenv("KUBERNETES_SERVICE_PORT", "6443", 1);
	expect_refusal(VD_INVALID_ARGUMENT, "pod/token");
	make_pod();
	identity = open_identity();
	assert_string_equal(vdi_kube_identity_config(identity)->server, "https://10.0.0.1:6443");
	assert_string_equal(vdi_kube_identity_config(identity)->namespace_name, "kube-public");
	expect_token(identity, "of-the-pod");
	assert_true(vdi_kube_identity_can_change(identity));
	close_identity(identity);
	(void) setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
	(void) unsetenv("KUBERNETES_SERVICE_PORT");
	write_file("pod/ca.crt", "no certificate");
	assert_status(find(&config), VD_OK);
	assert_string_equal(config.server, "https://[fd00::1]:443");
	assert_non_null(config.ca_file);
	vdi_kubeconfig_fini(&config);
	expect_refusal(VD_INVALID_ARGUMENT, "pod/ca.crt has no PEM certificate");
}

#define KUBECONFIG(server, user)                                                                             \
	"apiVersion: v1\nkind: Config\ncurrent-context: one\n"                                               \
	"contexts:\n- name: one\n  context: {cluster: c, user: u, namespace: ns}\n"                          \
	"- name: two\n  context: {cluster: c2}\n"                                                            \
	"clusters:\n- name: c\n  cluster:\n    server: " server "\n"                                         \
	"- name: c2\n  cluster:\n    server: https://two\n    tls-server-name: name.two\n"                   \
	"    proxy-url: http://proxy:3128\n"                                                                 \
	"users:\n- name: u\n  user: " user "\n"

static void a_kubeconfig_and_its_contexts(void **state)
{
	struct vdi_kube_identity *identity;
	struct vdi_kubeconfig	  config;
	struct vdi_kube_tls	  tls;

	(void) state;
	write_file("config", KUBECONFIG("https://one/", "{token: abc}"));
	world.options.kubeconfig = path_of("config");
	identity = open_identity();
	assert_string_equal(vdi_kube_identity_config(identity)->server, "https://one");
	assert_string_equal(vdi_kube_identity_config(identity)->namespace_name, "ns");
	expect_token(identity, "abc");
	close_identity(identity);
	world.options.context = "two";
	identity = open_identity();
	vdi_kube_identity_tls(identity, &tls);
	assert_string_equal(tls.server_name, "name.two");
	assert_string_equal(vdi_kube_identity_config(identity)->proxy_url, "http://proxy:3128");
	expect_token(identity, NULL);
	close_identity(identity);
	world.options.tls_server_name = "other";
	world.options.proxy_url = "socks5://p";
	world.options.token = "mine";
	assert_status(find(&config), VD_OK);
	assert_string_equal(config.server_name, "other");
	assert_string_equal(config.proxy_url, "socks5://p");
	assert_string_equal(config.token, "mine");
	vdi_kubeconfig_fini(&config);
	world.options.server = "https://instead";
	assert_status(find(&config), VD_OK);
	assert_string_equal(config.server, "https://instead");
	assert_string_equal(config.proxy_url, "socks5://p");
	vdi_kubeconfig_fini(&config);
	world.options.server = NULL;
	world.options.context = "three";
	expect_refusal(VD_INVALID_ARGUMENT, "three");
	world.options.kubeconfig = path_of("absent");
	expect_refusal(VD_INVALID_ARGUMENT, "absent");
}

static void the_home_and_the_list(void **state)
{
	struct vdi_kubeconfig config;
	char		      list[600], message[200];

	(void) state;
	assert_int_equal(mkdir(path_of(".kube"), 0700), 0);
	write_file(".kube/config", KUBECONFIG("https://home", "{}"));
	assert_status(find(&config), VD_OK);
	assert_string_equal(config.server, "https://home");
	vdi_kubeconfig_fini(&config);
	/* The first file has the current context, the second one the rest. */
	write_file("first", "current-context: one\nusers:\n- name: u\n  user: {tokenFile: token}\n");
	write_file("token", "from-first");
	write_file("second", KUBECONFIG("https://second", "{token: from-second}"));
	snprintf(list, sizeof list, "%s:%s:%s", path_of("absent"), path_of("first"), path_of("second"));
	(void) setenv("KUBECONFIG", list, 1);
	assert_status(find(&config), VD_OK);
	assert_string_equal(config.server, "https://second");
	assert_string_equal(config.token, "from-first");
	vdi_kubeconfig_fini(&config);
	/* What is in none of them is reported with the first one that is there. */
	world.options.context = "other";
	snprintf(message, sizeof message, "%s: ", path_of("first"));
	assert_int_not_equal(find(&config), VD_OK);
	assert_ptr_equal(strstr(world.error.message, message), world.error.message);
	world.options.context = NULL;
	(void) setenv("KUBECONFIG", path_of("absent"), 1);
	expect_refusal(VD_INVALID_ARGUMENT, "absent");
}

static void what_is_not_supported_is_refused(void **state)
{
	static const char *const users[][2] = {
		{ "{username: a, password: b}", "only tokens" },
		{ "{auth-provider: {name: gcp}}", "only tokens" },
		{ "{token: a, as: b}", "impersonation" },
		{ "{token: a, as-groups: [b]}", "impersonation" },
		{ "{client-certificate-data: '%'}", "base64" },
		{ "{client-certificate: a.pem}", "the key is missing" },
		{ "{client-key: a.pem}", "the certificate is missing" },
		{ "{tokenFile: absent}", "absent" },
		{ "{token: 'a b'}", "token" },
		{ "{token: \"a\\0b\"}", "not text" },
		{ "{\"token\\0\": a}", "not text" },
		{ "{exec: {command: a}}", "apiVersion" },
	};
	char   text[2048];
	size_t i;

	(void) state;
	world.options.kubeconfig = path_of("config");
	for (i = 0; i < VDI_ARRAY_SIZE(users); i++) {
		snprintf(text, sizeof text, KUBECONFIG("https://one", "%s"), users[i][0]);
		write_file("config", text);
		expect_refusal(VD_INVALID_ARGUMENT, users[i][1]);
	}
	write_file("config", "{");
	expect_refusal(VD_INVALID_ARGUMENT, "config");
	write_file("config", KUBECONFIG("https://one",
					"{exec: {command: x, apiVersion: client.authentication.k8s.io/v1}}"));
	world.options.no_exec = true;
	expect_refusal(VD_INVALID_ARGUMENT, "no_exec");
}

static void tokens_are_not_sent_unencrypted(void **state)
{
	struct vdi_kubeconfig config;

	(void) state;
	/* Nor those of a kubeconfig's file or program. */
	write_file("token", "a");
	world.options.kubeconfig = path_of("config");
	write_file("config", KUBECONFIG("http://one", "{tokenFile: token}"));
	expect_refusal(VD_INVALID_ARGUMENT, "unencrypted");
	write_file("config", KUBECONFIG("http://one",
					"{exec: {command: x, apiVersion: client.authentication.k8s.io/v1}}"));
	expect_refusal(VD_INVALID_ARGUMENT, "unencrypted");
	world.options.kubeconfig = NULL;
	world.options.token = "secret";
	world.options.server = "http://10.0.0.1:80";
	expect_refusal(VD_INVALID_ARGUMENT, "unencrypted");
	world.options.server = "http://127.0.0.1.example.org";
	expect_refusal(VD_INVALID_ARGUMENT, "unencrypted");
	world.options.server = "http://127.0.0.1:8080/path";
	assert_status(find(&config), VD_OK);
	vdi_kubeconfig_fini(&config);
	world.options.server = "http://10.0.0.1";
	world.options.insecure = true;
	assert_status(find(&config), VD_OK);
	vdi_kubeconfig_fini(&config);
	world.options.insecure = false;
	world.options.token = NULL;
	assert_status(find(&config), VD_OK);
	vdi_kubeconfig_fini(&config);
}

/* ---- Files that change ---- */

static void a_token_file_is_read_again(void **state)
{
	struct vdi_kube_identity  *identity;
	struct vdi_kube_credential first, second;

	(void) state;
	write_file("token", "one\n");
	world.options.server = "https://one";
	world.options.token_path = path_of("token");
	identity = open_identity();
	first = take(identity);
	write_file("token", "two");
	expect_token(identity, "one");
	vdi_sim_advance(world.env, VD_MS(9999));
	expect_token(identity, "one");
	vdi_sim_advance(world.env, VD_MS(1));
	expect_token(identity, "two");
	second = take(identity);
	assert_true(second.generation != first.generation);
	/* After a 401 at once, unless it was for an older token. */
	write_file("token", "three");
	vdi_kube_identity_refused(identity, first.generation);
	expect_token(identity, "two");
	vdi_kube_identity_refused(identity, second.generation);
	expect_token(identity, "three");
	/* What cannot be used leaves the token as it is. */
	write_file("token", "");
	vdi_sim_advance(world.env, VD_SECONDS(10));
	expect_token(identity, "three");
	assert_int_equal(unlink(path_of("token")), 0);
	vdi_sim_advance(world.env, VD_SECONDS(10));
	expect_token(identity, "three");
	write_file("token", "four");
	vdi_sim_advance(world.env, VD_SECONDS(10));
	expect_token(identity, "four");
	close_identity(identity);
}

/* A token is one word: cut at a NUL it would be another one. */
static void a_token_file_has_one_word(void **state)
{
	static const struct {
		const char *bytes;
		size_t	    size;
		const char *token; /* NULL: the last one is kept */
	} files[] = {
		{ "a\n", 2, "a" },   { " \t\n b \r\n\n", 9, "b" }, { "c\0d", 3, NULL },
		{ "e\0", 2, NULL },  { "\0f", 2, NULL },	   { "g h", 3, NULL },
		{ "i\nj", 3, NULL }, { " \n", 2, NULL },	   { "k\xc3\xa9", 3, NULL },
		{ "l", 1, "l" },
	};
	struct vdi_kube_identity *identity;
	const char		 *last = "first";

	(void) state;
	write_file("token", "first");
	world.options.server = "https://one";
	world.options.token_path = path_of("token");
	identity = open_identity();
	for (size_t i = 0; i < VDI_ARRAY_SIZE(files); i++) {
		write_bytes("token", (struct vd_bytes) { files[i].bytes, files[i].size });
		vdi_sim_advance(world.env, VD_SECONDS(10));
		last = files[i].token ? files[i].token : last;
		expect_token(identity, last);
	}
	close_identity(identity);
	write_bytes("token", (struct vd_bytes) { "c\0d", 3 });
	expect_refusal(VD_INVALID_ARGUMENT, "has a NUL");
}

static void copy_file(const char *from, const char *name)
{
	static char text[65536];
	FILE	   *file = fopen(from, "re");
	size_t	    size;

	assert_non_null(file);
	size = fread(text, 1, sizeof text - 1, file);
	text[size] = 0;
	assert_int_equal(fclose(file), 0);
	write_file(name, text);
}

/* At first even a connection without files has to be configured: whom it trusts, and by which name. */
static void the_first_connection_is_configured(void **state)
{
	struct vdi_kube_identity *identity;

	(void) state;
	write_file("config", KUBECONFIG("https://one", "{token: secret}"));
	world.options.kubeconfig = path_of("config");
	identity = open_identity();
	assert_true(take(identity).tls_changed);
	assert_true(take(identity).tls_changed);
	vdi_kube_identity_configured(identity);
	assert_false(take(identity).tls_changed);
	close_identity(identity);
}

static void certificates_are_read_again(void **state)
{
	struct vdi_kube_identity *identity;
	struct vdi_kube_tls	  tls;
	struct rpc_certs	  certs;
	size_t			  size;

	(void) state;
	if (!rpc_certs_make(&certs))
		skip_because("there is no openssl");
	copy_file(rpc_certs_path(&certs, "client.pem"), "cert");
	copy_file(rpc_certs_path(&certs, "client.key"), "key");
	copy_file(rpc_certs_path(&certs, "ca.pem"), "ca");
	write_file("config",
		   "current-context: one\ncontexts:\n- name: one\n  context: {cluster: c, user: u}\n"
		   "clusters:\n- name: c\n  cluster: {server: 'https://one', "
		   "certificate-authority: ca}\n"
		   "users:\n- name: u\n  user: {client-certificate: cert, client-key: key}\n");
	world.options.kubeconfig = path_of("config");
	identity = open_identity();
	assert_true(take(identity).tls_changed);
	vdi_kube_identity_tls(identity, &tls);
	assert_true(tls.ca.size > 0 && tls.key.size > 0);
	size = tls.cert.size;
	assert_true(take(identity).tls_changed); /* until it is configured */
	vdi_kube_identity_configured(identity);
	vdi_sim_advance(world.env, VD_SECONDS(10));
	assert_false(take(identity).tls_changed);
	/* The key is replaced later: both wait for it. */
	copy_file(rpc_certs_path(&certs, "stranger.pem"), "cert");
	vdi_sim_advance(world.env, VD_SECONDS(10));
	assert_false(take(identity).tls_changed);
	copy_file(rpc_certs_path(&certs, "stranger.key"), "key");
	vdi_sim_advance(world.env, VD_SECONDS(10));
	assert_true(take(identity).tls_changed);
	vdi_kube_identity_tls(identity, &tls);
	assert_true(tls.cert.size != size);
	vdi_kube_identity_configured(identity);
	copy_file(rpc_certs_path(&certs, "stranger.pem"), "ca");
	vdi_sim_advance(world.env, VD_SECONDS(10));
	assert_true(take(identity).tls_changed);
	close_identity(identity);
	/* At first, a pair that does not match is an error. */
	copy_file(rpc_certs_path(&certs, "client.key"), "key");
	expect_refusal(VD_INVALID_ARGUMENT, "does not match its key");
	write_file("key", "no key");
	expect_refusal(VD_INVALID_ARGUMENT, "cannot be read");
	rpc_certs_remove(&certs);
}

/* A CA that vanished does not keep the client from a new token, nor a token from a new CA. */
static void parts_are_renewed_by_themselves(void **state)
{
	struct vdi_kube_identity *identity;
	struct vdi_kube_tls	  tls;
	struct rpc_certs	  certs;
	size_t			  size;

	(void) state;
	if (!rpc_certs_make(&certs))
		skip_because("there is no openssl");
	world.options.server = "https://one";
	world.options.token_path = path_of("token");
	world.options.ca_path = path_of("ca");
	write_file("token", "one");
	expect_refusal(VD_INVALID_ARGUMENT, path_of("ca"));
	copy_file(rpc_certs_path(&certs, "ca.pem"), "ca");
	identity = open_identity();
	expect_token(identity, "one");
	vdi_kube_identity_configured(identity);
	vdi_kube_identity_tls(identity, &tls);
	size = tls.ca.size;
	assert_int_equal(unlink(path_of("ca")), 0);
	write_file("token", "two");
	vdi_sim_advance(world.env, VD_SECONDS(10));
	expect_token(identity, "two");
	assert_false(take(identity).tls_changed);
	vdi_kube_identity_tls(identity, &tls);
	assert_int_equal(tls.ca.size, size);
	write_file("ca", "-----BEGIN CERTIFICATE-----\nno\n");
	write_file("token", "three");
	vdi_sim_advance(world.env, VD_SECONDS(10));
	expect_token(identity, "three");
	assert_false(take(identity).tls_changed);
	copy_file(rpc_certs_path(&certs, "stranger.pem"), "ca");
	assert_int_equal(unlink(path_of("token")), 0);
	vdi_sim_advance(world.env, VD_SECONDS(10));
	expect_token(identity, "three");
	assert_true(take(identity).tls_changed);
	vdi_kube_identity_tls(identity, &tls);
	assert_int_not_equal(tls.ca.size, size);
	close_identity(identity);
	rpc_certs_remove(&certs);
}

/* Also a CA alone. */
static void each_file_is_read_again(void **state)
{
	struct vdi_kube_identity *identity;
	struct rpc_certs	  certs;

	(void) state;
	if (!rpc_certs_make(&certs))
		skip_because("there is no openssl");
	copy_file(rpc_certs_path(&certs, "ca.pem"), "ca");
	world.options.server = "https://one";
	world.options.ca_path = path_of("ca");
	identity = open_identity();
	assert_true(take(identity).tls_changed);
	vdi_kube_identity_configured(identity);
	assert_false(vdi_kube_identity_can_change(identity)); /* it is no identity */
	copy_file(rpc_certs_path(&certs, "stranger.pem"), "ca");
	assert_false(take(identity).tls_changed);
	vdi_sim_advance(world.env, VD_SECONDS(10));
	assert_true(take(identity).tls_changed);
	close_identity(identity);
	rpc_certs_remove(&certs);
}

/* ---- Programs ---- */

/* The program prints the file "answer" and counts its runs in "runs". */
static void make_program(const char *script)
{
	char text[1024];

	snprintf(text, sizeof text, "#!/bin/sh\ncd %s\necho run >>runs\n%s\n", world.folder, script);
	write_file("program", text);
	assert_int_equal(chmod(path_of("program"), 0700), 0);
	write_file("config", KUBECONFIG("https://one", "{exec: {command: ./program, apiVersion: "
						       "client.authentication.k8s.io/v1}}"));
	world.options.kubeconfig = path_of("config");
}

static void set_answer(const char *token, const char *expires)
{
	char text[512];

	snprintf(text, sizeof text,
		 "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
		 "\"status\":{\"token\":\"%s\"%s%s%s}}",
		 token, expires ? ",\"expirationTimestamp\":\"" : "", expires ? expires : "",
		 expires ? "\"" : "");
	write_file("answer", text);
}

static unsigned runs(void)
{
	FILE	*file = fopen(path_of("runs"), "re");
	unsigned count = 0;
	int	 character;

	while (file && (character = fgetc(file)) != EOF)
		count += character == '\n';
	if (file)
		(void) fclose(file);
	return count;
}

static void expect_status(struct vdi_kube_identity *identity, vd_status status)
{
	struct vdi_kube_credential credential;

	memset(&world.error, 0, sizeof world.error);
	assert_status(vdi_kube_identity_take(identity, &credential, &world.error), status);
}

static void a_program_gives_a_token(void **state)
{
	struct vdi_kube_identity *identity;

	(void) state;
	make_program("cat answer");
	set_answer("first", "2024-01-01T01:00:00Z"); /* simulated time begins at 00:00 */
	identity = open_identity();
	assert_true(vdi_kube_identity_has_program(identity));
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(runs(), 0); /* not before it is needed */
	expect_status(identity, VD_AGAIN);
	expect_status(identity, VD_AGAIN);
	assert_int_equal(world.changes, 0);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(world.changes, 1);
	expect_token(identity, "first");
	assert_int_equal(runs(), 1);
	/* It is replaced a minute before its end, and used meanwhile. */
	set_answer("second", "2024-01-01T02:00:00Z");
	assert_int_equal(vdi_kube_identity_due(identity).ns - vd_env_now(world.env).ns,
			 VD_SECONDS(59 * 60).ns);
	vdi_sim_advance(world.env, VD_SECONDS(59 * 60 - 1));
	expect_token(identity, "first");
	assert_int_equal(runs(), 1);
	vdi_sim_advance(world.env, VD_SECONDS(1));
	expect_token(identity, "first");
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(runs(), 2);
	expect_token(identity, "second");
	close_identity(identity);
}

/* Without a token, and with one: the certificate is the one of this run. */
static void a_program_gives_a_certificate(void **state)
{
	static const char *const tokens[] = { "", "\"token\":\"first\"," };
	struct vdi_kube_tls	 tls;

	(void) state;
	for (unsigned i = 0; i < VDI_ARRAY_SIZE(tokens); i++) {
		struct vdi_kube_identity *identity;
		char			  text[512];

		make_program("cat answer");
		snprintf(text, sizeof text,
			 "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
			 "\"status\":{%s\"clientCertificateData\":\"CERT%u\",\"clientKeyData\":\"KEY%u\"}}",
			 tokens[i], i, i);
		write_file("answer", text);
		identity = open_identity();
		expect_status(identity, VD_AGAIN);
		vdi_sim_run_until_idle(world.env);
		assert_true(take(identity).tls_changed);
		expect_token(identity, i ? "first" : NULL);
		vdi_kube_identity_tls(identity, &tls);
		snprintf(text, sizeof text, "CERT%u", i);
		assert_true(vd_bytes_equal(tls.cert, vd_bytes_of(text)));
		snprintf(text, sizeof text, "KEY%u", i);
		assert_true(vd_bytes_equal(tls.key, vd_bytes_of(text)));
		vdi_kube_identity_configured(identity);
		assert_false(take(identity).tls_changed);
		close_identity(identity);
	}
}

/* Connections are opened again whenever a certificate comes or goes. */
static void a_program_changes_its_mind(void **state)
{
	static const char head[] = "{\"kind\":\"ExecCredential\",\"apiVersion\":"
				   "\"client.authentication.k8s.io/v1\",\"status\":{";
	static const char token[] = "\"token\":\"t\"";
	static const char cert[] = "\"clientCertificateData\":\"C\",\"clientKeyData\":\"K\"";
	static const struct {
		const char *answer;
		bool	    is_change;
	} rows[] = { { token, true }, /* the first use */
		     { token, false }, { cert, true }, { cert, true }, { token, true }, { token, false } };
	struct vdi_kube_identity *identity;
	char			  text[512];

	(void) state;
	make_program("cat answer");
	identity = open_identity();
	for (unsigned i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		snprintf(text, sizeof text, "%s%s}}", head, rows[i].answer);
		write_file("answer", text);
		expect_status(identity, VD_AGAIN);
		vdi_sim_run_until_idle(world.env);
		assert_int_equal(take(identity).tls_changed, rows[i].is_change);
		vdi_kube_identity_configured(identity);
		vdi_kube_identity_accepted(identity);
		vdi_kube_identity_refused(identity, take(identity).generation);
		vdi_sim_advance(world.env, VD_SECONDS(10)); /* then it is run at once again */
	}
	close_identity(identity);
}

static void a_rejected_credential_is_replaced(void **state)
{
	struct vdi_kube_identity *identity;
	uint64_t		  generation;

	(void) state;
	make_program("cat answer");
	set_answer("first", NULL);
	identity = open_identity();
	expect_status(identity, VD_AGAIN);
	vdi_sim_run_until_idle(world.env);
	generation = take(identity).generation;
	vdi_kube_identity_refused(identity, generation);
	vdi_kube_identity_refused(identity, generation);
	expect_status(identity, VD_AGAIN); /* at once */
	vdi_sim_run_until_idle(world.env);
	assert_true(take(identity).generation != generation);
	assert_int_equal(runs(), 2);
	/* Again: after a pause, with the cause. */
	vdi_kube_identity_refused(identity, take(identity).generation);
	expect_status(identity, VD_FORBIDDEN);
	assert_non_null(strstr(world.error.message, "rejected"));
	assert_in_range(world.error.retry_after_s, 1, 4);
	vdi_sim_advance(world.env, VD_SECONDS(4));
	expect_status(identity, VD_AGAIN);
	vdi_sim_run_until_idle(world.env);
	expect_token(identity, "first");
	/* At once, but not each time: another path of the server may accept each credential. */
	assert_int_equal(runs(), 3);
	vdi_kube_identity_accepted(identity);
	vdi_kube_identity_refused(identity, take(identity).generation);
	expect_status(identity, VD_FORBIDDEN);
	assert_in_range(world.error.retry_after_s, 1, 2);
	vdi_sim_advance(world.env, VD_SECONDS(1));
	expect_status(identity, VD_AGAIN);
	vdi_sim_run_until_idle(world.env);
	expect_token(identity, "first");
	vdi_kube_identity_accepted(identity);
	vdi_sim_advance(world.env, VD_SECONDS(10));
	vdi_kube_identity_refused(identity, take(identity).generation);
	expect_status(identity, VD_AGAIN);
	close_identity(identity);
}

static void a_program_that_fails_is_run_again(void **state)
{
	struct vdi_kube_identity *identity;
	unsigned		  i;

	(void) state;
	make_program("[ -e answer ] || exit 3\ncat answer");
	identity = open_identity();
	for (i = 0; i < 4; i++) {
		expect_status(identity, VD_AGAIN);
		vdi_sim_run_until_idle(world.env);
		expect_status(identity, VD_FORBIDDEN);
		assert_non_null(strstr(world.error.message, "status 3"));
		assert_in_range(world.error.retry_after_s, 1U << i, (1U << i) + 1);
		assert_int_equal(runs(), i + 1);
		vdi_sim_advance(world.env, VD_SECONDS((int64_t) 1 << i));
	}
	set_answer("at-last", NULL);
	expect_status(identity, VD_AGAIN);
	vdi_sim_run_until_idle(world.env);
	expect_token(identity, "at-last");
	close_identity(identity);
}

/* Sets an answer that expires after life_ms, within the first hour of simulated time. */
static void set_brief_answer(int64_t life_ms)
{
	int64_t at_ms = vd_env_wall(world.env).ns / 1000000 % 3600000 + life_ms;
	char	expires[64];

	snprintf(expires, sizeof expires, "2024-01-01T00:%02d:%02d.%03dZ", (int) (at_ms / 60000 % 60),
		 (int) (at_ms / 1000 % 60), (int) (at_ms % 1000));
	set_answer("brief", expires);
}

/* Lets time pass in small steps, with requests that the server accepts; returns the number of runs. life_ms:
 * the answers' life; 0: the answer stays. */
static unsigned runs_in(struct vdi_kube_identity *identity, int64_t seconds, int64_t life_ms)
{
	unsigned before = runs();

	for (int64_t step = 0; step < seconds * 10; step++) {
		struct vdi_kube_credential credential;

		vdi_sim_advance(world.env, VD_MS(100));
		if (life_ms)
			set_brief_answer(life_ms);
		if (vdi_kube_identity_take(identity, &credential, NULL) == VD_OK)
			vdi_kube_identity_accepted(identity);
		vdi_sim_run_until_idle(world.env);
	}
	return runs() - before;
}

/* A credential that has expired already: the server decides, and the program is not run in a loop. */
static void a_credential_that_expired_before(void **state)
{
	struct vdi_kube_identity *identity;

	(void) state;
	make_program("cat answer");
	set_answer("old", "2023-12-31T23:00:00Z");
	identity = open_identity();
	expect_status(identity, VD_AGAIN);
	vdi_sim_run_until_idle(world.env);
	expect_token(identity, "old");
	expect_token(identity, "old");
	assert_int_equal(runs(), 1);
	/* The pause doubles, although the server accepts it: 1, 2, 4, ... 64 s. */
	assert_in_range(runs_in(identity, 130, 0), 6, 7);
	assert_in_range(runs_in(identity, 640, 0), 9, 11);
	vdi_kube_identity_refused(identity, take(identity).generation);
	expect_status(identity, VD_FORBIDDEN);
	/* A good one ends this. */
	set_answer("new", "2024-01-01T01:00:00Z");
	(void) runs_in(identity, 70, 0);
	expect_token(identity, "new");
	assert_int_equal(runs_in(identity, 60, 0), 0);
	vdi_kube_identity_refused(identity, take(identity).generation);
	expect_status(identity, VD_AGAIN);
	close_identity(identity);
}

/* Credentials that live for a part of a second, and for a bit more. */
static void credentials_that_live_shortly(void **state)
{
	struct vdi_kube_identity *identity;

	(void) state;
	make_program("cat answer");
	set_brief_answer(900);
	identity = open_identity();
	expect_status(identity, VD_AGAIN);
	assert_in_range(runs_in(identity, 60, 900), 5, 7);
	assert_in_range(runs_in(identity, 33, 1500), 20, 27);
	assert_in_range(runs_in(identity, 60, 20000), 3, 5);
	(void) runs_in(identity, 20, 900);
	assert_in_range(runs_in(identity, 20, 1500), 1, 16);
	assert_in_range(runs_in(identity, 8, 900), 3, 5); /* the pause begins at 1 s again */
	close_identity(identity);
}

static void a_token_of_the_options_replaces_the_program(void **state)
{
	struct vdi_kube_identity *identity;

	(void) state;
	make_program("cat answer");
	world.options.token = "mine";
	identity = open_identity();
	assert_false(vdi_kube_identity_has_program(identity));
	expect_token(identity, "mine");
	close_identity(identity);
	assert_int_equal(runs(), 0);
}

/* In real time: close does not wait for the program's end. */
static void close_ends_a_running_program(void **state)
{
	struct vd_env_options	  options = VD_ENV_OPTIONS_INIT;
	struct vdi_kube_identity *identity;

	(void) state;
	make_program("exec sleep 1000");
	world.env = vd_env_free(world.env);
	assert_status(vd_env_new_threads(&options, &world.env), VD_OK);
	identity = open_identity();
	expect_status(identity, VD_AGAIN);
	vdi_kube_identity_close(identity, NULL, NULL); /* vd_env_free waits for it */
}

static void torture_identity(void **state)
{
	uint64_t  nth;
	vd_status status = VD_NOMEM;

	(void) state;
	write_file("token", "one\n");
	write_file("config", KUBECONFIG("https://one/", "{tokenFile: token}"));
	world.options.kubeconfig = path_of("config");
	for (nth = 1; status != VD_OK; nth++) {
		struct vdi_kubeconfig	  config;
		struct vdi_kube_identity *identity = NULL;

		(void) vdi_alloc_fail_nth(nth, 1);
		status = find(&config);
		if (status == VD_OK)
			status = vdi_kube_identity_new(world.env, &config, NULL, NULL, &identity, NULL);
		(void) vdi_alloc_fail_nth(0, 0);
		if (status == VD_OK)
			close_identity(identity);
		else
			assert_status(status, VD_NOMEM);
	}
	assert_true(nth > 8);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_configured),
		TEST(a_server_is_named),
		TEST(a_socket_is_named),
		TEST(the_pods_own_cluster),
		TEST(a_kubeconfig_and_its_contexts),
		TEST(the_home_and_the_list),
		TEST(what_is_not_supported_is_refused),
		TEST(tokens_are_not_sent_unencrypted),
		TEST(a_token_file_is_read_again),
		TEST(a_token_file_has_one_word),
		TEST(the_first_connection_is_configured),
		TEST(certificates_are_read_again),
		TEST(parts_are_renewed_by_themselves),
		TEST(each_file_is_read_again),
		TEST(a_program_gives_a_token),
		TEST(a_program_gives_a_certificate),
		TEST(a_program_changes_its_mind),
		TEST(a_rejected_credential_is_replaced),
		TEST(a_program_that_fails_is_run_again),
		TEST(a_credential_that_expired_before),
		TEST(credentials_that_live_shortly),
		TEST(a_token_of_the_options_replaces_the_program),
		TEST(close_ends_a_running_program),
		TEST(torture_identity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
