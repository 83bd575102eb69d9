/* HTTPS servers behind a proxy: HTTPS_PROXY, NO_PROXY, the kubeconfig's proxy-url. The server has a name that
 * only the proxy can resolve. */
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <unistd.h>

#include "kube_client.h"
#include "kube_socket.h"
#include "rpc_certs.h"
#include "temp_folder.h"
#include "vdtest.h"
#include "wait.h"

#define SERVER "https://elsewhere.example:6443"

static struct vd_env *env;

/* A proxy, and the server behind it. */
static struct {
	struct kube_socket proxy, server;
	const char	  *refusal;	/* the answer to CONNECT; NULL: a tunnel */
	const char	  *target;	/* expected in CONNECT */
	const char	  *credentials; /* expected in Proxy-Authorization, or "" */
} world;

/* ---- The proxy ---- */

static int connect_to_server(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				       .sin_port = htons((in_port_t) world.server.port) };
	int		   fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	KUBE_SOCKET_EXPECT(fd >= 0 && connect(fd, (struct sockaddr *) &address, sizeof address) == 0);
	return fd;
}

static bool move_bytes(int from, int to)
{
	char	bytes[4096];
	ssize_t got = read(from, bytes, sizeof bytes), sent = 0;

	while (got > 0 && sent < got) {
		ssize_t more = write(to, bytes + sent, (size_t) (got - sent));

		if (more <= 0)
			return false;
		sent += more;
	}
	return got > 0;
}

static void pass_bytes(int one, int two)
{
	struct pollfd waiting[] = { { .fd = one, .events = POLLIN }, { .fd = two, .events = POLLIN } };

	while (poll(waiting, VDI_ARRAY_SIZE(waiting), -1) > 0)
		if ((waiting[0].revents && !move_bytes(one, two)) ||
		    (waiting[1].revents && !move_bytes(two, one)))
			return;
}

static bool be_a_proxy(struct kube_socket_call *call, void *arg)
{
	char text[256], first[128];
	int  fd;

	(void) arg;
	snprintf(first, sizeof first, "CONNECT %s HTTP/1.1\r\n", world.target);
	KUBE_SOCKET_EXPECT(strstr(call->head, first) == call->head);
	KUBE_SOCKET_EXPECT(*kube_socket_header(call, "Authorization", text) == 0);
	KUBE_SOCKET_EXPECT(strstr(call->head, "secret") == NULL);
	KUBE_SOCKET_EXPECT(strcmp(kube_socket_header(call, "Proxy-Authorization", text), world.credentials) ==
			   0);
	if (world.refusal)
		return kube_socket_say_text(call, world.refusal);
	if (!kube_socket_say_text(call, "HTTP/1.1 200 Connection established\r\nX-Proxy: yes\r\n\r\n"))
		return false;
	fd = connect_to_server();
	pass_bytes(call->fd, fd);
	(void) close(fd);
	return false;
}

static bool be_a_server(struct kube_socket_call *call, void *arg)
{
	char text[256];

	(void) arg;
	KUBE_SOCKET_EXPECT(strcmp(kube_socket_header(call, "Authorization", text), "Bearer secret") == 0);
	KUBE_SOCKET_EXPECT(
		strncmp(kube_socket_header(call, "Host", text), world.target, strlen(world.target)) == 0);
	KUBE_SOCKET_EXPECT(*kube_socket_header(call, "Proxy-Authorization", text) == 0);
	return kube_socket_say_text(call, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
}

static void clear_environment(void)
{
	static const char *const names[] = { "HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy",
					     "NO_PROXY",   "no_proxy",	 "ALL_PROXY",	"all_proxy" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(names); i++)
		(void) unsetenv(names[i]);
}

static int begin(void **state)
{
	struct vd_env_options options = VD_ENV_OPTIONS_INIT;

	(void) state;
	clear_environment();
	memset(&world, 0, sizeof world);
	world.target = "elsewhere.example:6443";
	world.credentials = "";
	options.threads = 1;
	assert_status(vd_env_new_threads(&options, &env), VD_OK);
	kube_socket_start(&world.server, be_a_server, NULL, rpc_certs_path(&rpc_certs, "elsewhere.pem"),
			  rpc_certs_path(&rpc_certs, "elsewhere.key"), NULL);
	kube_socket_start(&world.proxy, be_a_proxy, NULL, NULL, NULL, NULL);
	return 0;
}

static int end(void **state)
{
	(void) state;
	kube_socket_stop(&world.proxy);
	kube_socket_stop(&world.server);
	env = vd_env_free(env);
	clear_environment();
	return 0;
}

/* ---- Requests ---- */

struct told {
	struct vdi_wait wait;
	vd_status	status;
	char		message[VD_ERROR_MESSAGE_SIZE];
};

static void on_answer(void *arg, vd_status status, const struct vd_kube_answer *answer,
		      const struct vd_error *error)
{
	struct told *told = arg;

	(void) answer;
	told->status = status;
	snprintf(told->message, sizeof told->message, "%s", error->message);
	vdi_wait_signal(&told->wait);
}

static struct vd_kube_options options_for(const char *server)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;

	options.server = server;
	options.token = "secret";
	options.ca_path = rpc_certs_path(&rpc_certs, "ca.pem");
	return options;
}

static struct told get(struct vd_kube_options options)
{
	struct vd_kube_call call = VD_KUBE_CALL_INIT;
	struct vd_error	    error = { 0 };
	struct vd_kube	   *kube;
	struct told	    told = { .status = VD_INTERNAL };

	if (vd_kube_open(env, &options, &kube, &error) != VD_OK)
		fail_msg("%s", error.message);
	vdi_wait_init(&told.wait, env);
	call.path = "/api";
	call.timeout = VD_SECONDS(60);
	assert_status(vd_kube_request(kube, &call, on_answer, &told), VD_OK);
	vdi_wait_wait(&told.wait);
	vdi_wait_fini(&told.wait);
	assert_null(vd_kube_close_wait(kube));
	return told;
}

/* Returns the number of connections to the proxy. */
static unsigned proxied(void)
{
	return atomic_load(&world.proxy.connections);
}

static void expect_proxied(struct vd_kube_options options)
{
	unsigned    before = proxied();
	struct told told = get(options);

	if (told.status != VD_OK)
		fail_msg("%s", told.message);
	assert_int_equal(proxied(), before + 1);
}

/* The name cannot be resolved without the proxy. */
static void expect_direct(struct vd_kube_options options)
{
	unsigned before = proxied();

	assert_status(get(options).status, VD_UNAVAILABLE);
	assert_int_equal(proxied(), before);
}

/* ---- Tests ---- */

/* The proxy sees neither token nor request. */
static void https_goes_through_a_tunnel(void **state)
{
	(void) state;
	expect_direct(options_for(SERVER));
	(void) setenv("HTTP_PROXY", world.proxy.url, 1);
	expect_direct(options_for(SERVER)); /* that is for http:// */
	(void) setenv("HTTPS_PROXY", world.proxy.url, 1);
	expect_proxied(options_for(SERVER));
	(void) unsetenv("HTTPS_PROXY");
	(void) setenv("https_proxy", world.proxy.url, 1);
	expect_proxied(options_for(SERVER));
}

static void no_proxy_names_hosts(void **state)
{
	static const struct {
		const char *list;
		bool	    is_direct;
	} lists[] = { { "elsewhere.example", true },	      { ".example", true },	  { "*", true },
		      { "10.0.0.1,elsewhere.example", true }, { "other.example", false }, { "", false } };

	(void) state;
	(void) setenv("HTTPS_PROXY", world.proxy.url, 1);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(lists); i++) {
		(void) setenv("NO_PROXY", lists[i].list, 1);
		if (lists[i].is_direct)
			expect_direct(options_for(SERVER));
		else
			expect_proxied(options_for(SERVER));
	}
}

/* NO_PROXY is about the host that is connected to, not about the name in its certificate. */
static void a_server_name_is_not_the_host(void **state)
{
	struct vd_kube_options options = options_for("https://kube.invalid");

	(void) state;
	world.target = "kube.invalid:443";
	options.tls_server_name = "elsewhere.example";
	(void) setenv("HTTPS_PROXY", world.proxy.url, 1);
	(void) setenv("NO_PROXY", "kube.invalid", 1);
	expect_direct(options);
	(void) setenv("NO_PROXY", "elsewhere.example", 1);
	expect_direct(options_for(SERVER));
	(void) setenv("no_proxy", "kube.invalid", 1); /* counts more */
	expect_direct(options);
	(void) unsetenv("no_proxy");
	world.refusal = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
	assert_status(get(options).status, VD_UNAVAILABLE);
	assert_int_equal(proxied(), 1);
}

static void the_kubeconfig_names_a_proxy(void **state)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	char		       folder[TEMP_FOLDER_SIZE], path[128];
	FILE		      *file;

	(void) state;
	temp_folder_make(folder);
	snprintf(path, sizeof path, "%s/config", folder);
	file = fopen(path, "we");
	assert_non_null(file);
	fprintf(file,
		"current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
		"clusters: [{name: a, cluster: {server: '" SERVER
		"', proxy-url: '%s', certificate-authority: '%s'}}]\nusers: [{name: a, user: {token: "
		"secret}}]\n",
		world.proxy.url, rpc_certs_path(&rpc_certs, "ca.pem"));
	assert_int_equal(fclose(file), 0);
	options.kubeconfig = path;
	expect_proxied(options);
	/* It counts more than the environment. */
	(void) setenv("HTTPS_PROXY", "http://127.0.0.1:1", 1);
	(void) setenv("NO_PROXY", "*", 1);
	expect_proxied(options);
	/* An option counts more than it. */
	options.proxy_url = "http://127.0.0.1:1";
	expect_direct(options);
	temp_folder_remove(folder);
}

/* The password of the proxy's URL is sent to the proxy only, and is in no message. */
static void a_proxy_with_a_password(void **state)
{
	struct vd_kube_options options = options_for(SERVER);
	struct told	       told;
	char		       url[128];

	(void) state;
	snprintf(url, sizeof url, "http://me:passw0rd@127.0.0.1:%u", world.proxy.port);
	options.proxy_url = url;
	world.credentials = "Basic bWU6cGFzc3cwcmQ=";
	expect_proxied(options);
	world.refusal = "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
	told = get(options);
	assert_status(told.status, VD_UNAVAILABLE);
	assert_non_null(strstr(told.message, "407"));
	assert_null(strstr(told.message, "passw0rd"));
	options.proxy_url = "http://me:passw0rd@127.0.0.1:1";
	told = get(options);
	assert_status(told.status, VD_UNAVAILABLE);
	assert_null(strstr(told.message, "passw0rd"));
}

/* A redirect of the proxy's is not followed, and ends the request. */
static void a_proxy_that_refuses(void **state)
{
	static const char *const refusals[] = {
		"HTTP/1.1 403 Forbidden\r\nContent-Length: 3\r\n\r\nno\n",
		"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/login\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n",
	};
	struct vd_kube_options options = options_for(SERVER);

	(void) state;
	options.proxy_url = world.proxy.url;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(refusals); i++) {
		struct told told;
		char	    code[4] = { 0 };

		world.refusal = refusals[i];
		memcpy(code, refusals[i] + 9, 3);
		told = get(options);
		assert_status(told.status, VD_UNAVAILABLE);
		assert_non_null(strstr(told.message, code));
		assert_non_null(strstr(told.message, "CONNECT"));
	}
	assert_int_equal(atomic_load(&world.server.connections), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(https_goes_through_a_tunnel),   TEST(no_proxy_names_hosts),
		TEST(a_server_name_is_not_the_host), TEST(the_kubeconfig_names_a_proxy),
		TEST(a_proxy_with_a_password),	     TEST(a_proxy_that_refuses),
	};

	return cmocka_run_group_tests(tests, rpc_certs_set_up, rpc_certs_tear_down);
}
