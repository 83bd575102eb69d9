/* How a connection is made: TLS, names of servers, proxies, URLs. */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "kube_client.h"
#include "kube_curl.h"
#include "kube_curl_state.h"
#include "kube_reply.h"
#include "kube_socket.h"
#include "rpc_certs.h"
#include "temp_folder.h"
#include "vdtest.h"
#include "wait.h"

static struct vd_env *env;

static int start_env(void **state)
{
	struct vd_env_options options = VD_ENV_OPTIONS_INIT;

	(void) state;
	options.threads = 1;
	return vd_env_new_threads(&options, &env) == VD_OK ? 0 : -1;
}

static int stop_env(void **state)
{
	(void) state;
	env = vd_env_free(env);
	return 0;
}

/* ---- Clients ---- */

static struct vd_kube *client_with(struct vd_kube_options options, const char *server)
{
	struct vd_error error = { 0 };
	struct vd_kube *kube = NULL;

	options.server = server;
	if (vd_kube_open(env, &options, &kube, &error) != VD_OK)
		fail_msg("%s", error.message);
	return kube;
}

/* ---- TLS ---- */

static bool answer_ok(struct kube_socket_call *call, void *arg)
{
	(void) arg;
	return kube_socket_say_text(call, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
}

static vd_status get_tls(const struct kube_socket *server, struct vd_kube_options options, char message[384])
{
	struct vd_kube_call call = VD_KUBE_CALL_INIT;
	struct vd_kube	   *kube = client_with(options, server->url);
	struct kube_reply   reply;
	vd_status	    status;

	call.path = "/";
	kube_reply_await(&reply, env, kube, &call);
	status = reply.status;
	snprintf(message, 384, "%s", reply.error.message);
	kube_reply_fini(&reply);
	assert_null(vd_kube_close_wait(kube));
	return status;
}

static void certificates_are_verified(void **state)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct rpc_certs       certs;
	struct kube_socket     server;
	char		       message[384];

	(void) state;
	if (!rpc_certs_make(&certs))
		skip_because("there is no openssl");
	kube_socket_start(&server, answer_ok, NULL, rpc_certs_path(&certs, "server.pem"),
			  rpc_certs_path(&certs, "server.key"), NULL);
	assert_status(get_tls(&server, options, message), VD_UNAVAILABLE); /* the system's CAs */
	options.ca_path = rpc_certs_path(&certs, "stranger.pem");
	assert_status(get_tls(&server, options, message), VD_UNAVAILABLE);
	assert_non_null(strstr(message, "certificate"));
	options.insecure = true;
	assert_status(get_tls(&server, options, message), VD_OK);
	options.insecure = false;
	options.ca_path = rpc_certs_path(&certs, "ca.pem");
	assert_status(get_tls(&server, options, message), VD_OK);
	options.tls_server_name = "localhost";
	assert_status(get_tls(&server, options, message), VD_OK);
	options.tls_server_name = "elsewhere.example";
	assert_status(get_tls(&server, options, message), VD_UNAVAILABLE);
	kube_socket_stop(&server);
	rpc_certs_remove(&certs);
}

static bool answer_by_name(struct kube_socket_call *call, void *arg)
{
	const char *name = SSL_get_servername(call->ssl, TLSEXT_NAMETYPE_host_name);
	char	    text[256];

	(void) arg;
	KUBE_SOCKET_EXPECT(strncmp(kube_socket_header(call, "Host", text), "127.0.0.1:", 10) == 0);
	KUBE_SOCKET_EXPECT(name && strcmp(name, "elsewhere.example") == 0);
	return answer_ok(call, arg);
}

static void the_server_name_and_a_client_certificate(void **state)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct rpc_certs       certs;
	struct kube_socket     server;
	char		       message[384];

	(void) state;
	if (!rpc_certs_make(&certs))
		skip_because("there is no openssl");
	kube_socket_start(&server, answer_by_name, NULL, rpc_certs_path(&certs, "elsewhere.pem"),
			  rpc_certs_path(&certs, "elsewhere.key"), rpc_certs_path(&certs, "ca.pem"));
	options.ca_path = rpc_certs_path(&certs, "ca.pem");
	options.tls_server_name = "elsewhere.example";
	assert_status(get_tls(&server, options, message), VD_UNAVAILABLE); /* no client certificate */
	options.cert_path = rpc_certs_path(&certs, "client.pem");
	options.key_path = rpc_certs_path(&certs, "client.key");
	assert_status(get_tls(&server, options, message), VD_OK);
	kube_socket_stop(&server);
	rpc_certs_remove(&certs);
}

static bool answer_host(struct kube_socket_call *call, void *arg)
{
	char text[256];

	(void) arg;
	KUBE_SOCKET_EXPECT(strstr(kube_socket_header(call, "Host", text), "127.0.0.1:") == text);
	return kube_socket_say_text(call, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
}

/* It names the server in TLS, which a plain connection does not have. */
static void a_server_name_without_tls_has_no_effect(void **state)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct vd_kube_call    call = VD_KUBE_CALL_INIT;
	struct kube_socket     server;
	struct vd_kube	      *kube;
	struct kube_reply      reply;

	(void) state;
	kube_socket_start(&server, answer_host, NULL, NULL, NULL, NULL);
	options.tls_server_name = "elsewhere.example";
	kube = client_with(options, server.url);
	call.path = "/api";
	kube_reply_await(&reply, env, kube, &call);
	assert_status(reply.status, VD_OK);
	assert_string_equal(reply.body.data, "hello");
	kube_reply_fini(&reply);
	assert_null(vd_kube_close_wait(kube));
	kube_socket_stop(&server);
}

/* ---- Proxies ---- */

static bool answer_as_proxy(struct kube_socket_call *call, void *arg)
{
	(void) arg;
	return kube_socket_say_text(call, strstr(call->head, "GET http://") == call->head ?
						  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nproxy" :
						  "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ndirect");
}

/* Sends GET / to the server; body gets the answer, empty if there is none. */
static void get_body(const char *server, const char *proxy_url, char body[16])
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct vd_kube_call    call = VD_KUBE_CALL_INIT;
	struct vd_kube	      *kube;
	struct kube_reply      reply;

	options.proxy_url = proxy_url;
	kube = client_with(options, server);
	call.path = "/";
	kube_reply_await(&reply, env, kube, &call);
	snprintf(body, 16, "%s", reply.status == VD_OK ? (const char *) reply.body.data : "");
	kube_reply_fini(&reply);
	assert_null(vd_kube_close_wait(kube));
}

static void proxies_are_used_unless_the_server_is_here(void **state)
{
	struct kube_socket server;
	char		   body[16];
	unsigned	   requests;

	(void) state;
	kube_socket_start(&server, answer_as_proxy, NULL, NULL, NULL, NULL);
	(void) setenv("HTTP_PROXY", server.url, 1);
	get_body("http://kube.invalid", NULL, body);
	assert_string_equal(body, "proxy");
	get_body(server.url, NULL, body);
	assert_string_equal(body, "direct");
	(void) setenv("NO_PROXY", "kube.invalid", 1);
	get_body("http://kube.invalid", NULL, body);
	assert_string_equal(body, "");
	get_body("http://kube.invalid", server.url, body); /* the option counts more */
	assert_string_equal(body, "proxy");
	(void) unsetenv("NO_PROXY");
	/* Not by a CGI program, whose client sets HTTP_PROXY by a header; not if the other one is set; not
	 * if it is empty; not for https. */
	(void) setenv("REQUEST_METHOD", "GET", 1);
	get_body("http://kube.invalid", NULL, body);
	assert_string_equal(body, "");
	(void) unsetenv("REQUEST_METHOD");
	(void) setenv("http_proxy", "http://other.invalid", 1);
	get_body("http://kube.invalid", NULL, body);
	assert_string_equal(body, "");
	(void) unsetenv("http_proxy");
	requests = atomic_load(&server.requests);
	get_body("https://kube.invalid", NULL, body);
	assert_string_equal(body, "");
	assert_int_equal(atomic_load(&server.requests), requests);
	(void) setenv("HTTP_PROXY", "", 1);
	get_body("http://kube.invalid", NULL, body);
	assert_string_equal(body, "");
	(void) unsetenv("HTTP_PROXY");
	get_body("http://kube.invalid", server.url, body);
	assert_string_equal(body, "proxy");
	kube_socket_stop(&server);
}

static void bad_urls_are_refused(void **state)
{
	static const char *const urls[] = { "http://user:pass@127.0.0.1",
					    "http://127.0.0.1/?a",
					    "ftp://127.0.0.1",
					    "127.0.0.1:80",
					    "http://",
					    "http://a b",
					    "http://127.0.0.1/#x",
					    "http://127.0.0.1/\177",
					    "http://127.0.0.1/\037" };
	struct vd_kube_options	 options = VD_KUBE_OPTIONS_INIT;
	struct vd_error		 error;
	struct vd_kube		*kube;
	size_t			 i;

	(void) state;
	for (i = 0; i < VDI_ARRAY_SIZE(urls); i++) {
		options.server = urls[i];
		assert_status(vd_kube_open(env, &options, &kube, &error), VD_INVALID_ARGUMENT);
		assert_non_null(strstr(error.message, "URL"));
	}
}

/* ---- Requests ---- */

/* A transport whose actor calls step, until it returns true. */
struct direct {
	struct vdi_kube_transport *_Atomic transport; /* also for the server's threads */
	bool (*step)(struct direct *direct);
	struct vdi_wait		  done, closed;
	bool			  is_done, is_canceled;
	_Atomic bool		  is_closing;
	struct vdi_kube_exchange *exchange;
	_Atomic bool		  has_request;
};

static vd_mono run_direct(void *arg)
{
	struct direct *direct = arg;

	if (direct->transport == NULL)
		return VD_NEVER; /* woken again by direct_open */
	if (!direct->is_done && direct->step(direct)) {
		direct->is_done = true;
		vdi_wait_signal(&direct->done);
	}
	if (direct->is_closing)
		direct->transport->ops->close(direct->transport, vdi_wait_signal_arg, &direct->closed);
	return VD_NEVER;
}

static void direct_open(struct direct *direct, bool (*step)(struct direct *direct), const char *server)
{
	const struct vdi_kube_transport_options options = {
		.env = env, .server = server, .user_agent = "test", .run = run_direct, .arg = direct
	};
	struct vdi_kube_transport *transport = NULL;
	struct vd_error		   error = { 0 };

	memset(direct, 0, sizeof *direct);
	direct->step = step;
	vdi_wait_init(&direct->done, env);
	vdi_wait_init(&direct->closed, env);
	assert_status(vdi_kube_curl_new(&options, &transport, &error), VD_OK);
	direct->transport = transport;
	transport->ops->wake(transport);
}

static void direct_close(struct direct *direct)
{
	vdi_wait_wait(&direct->done);
	direct->is_closing = true;
	direct->transport->ops->wake(direct->transport);
	vdi_wait_wait(&direct->closed);
	vdi_wait_fini(&direct->done);
	vdi_wait_fini(&direct->closed);
}

static void ignore_head(void *arg, const struct vdi_kube_head *head)
{
	(void) arg;
	(void) head;
}

static bool ignore_body(void *arg, struct vd_bytes bytes)
{
	(void) arg;
	(void) bytes;
	return true;
}

static void ignore_end(void *arg, vd_status status, const struct vd_error *error)
{
	(void) arg;
	(void) status;
	(void) error;
}

static void expect_fault(struct vdi_kube_transport *transport, struct vdi_kube_http_request request,
			 const char *part)
{
	const struct vdi_kube_handler handler = { ignore_head, ignore_body, ignore_end, NULL };
	struct vdi_kube_exchange     *exchange = NULL;
	struct vd_error		      error = { 0 };
	char			      expected[128];
	vd_status		      status;

	status = transport->ops->start(transport, &request, &handler, &exchange, &error);
	snprintf(expected, sizeof expected, "the request's %s has characters that are not allowed in HTTP",
		 part ? part : "");
	KUBE_SOCKET_EXPECT(status == (part ? VD_INVALID_ARGUMENT : VD_OK));
	KUBE_SOCKET_EXPECT(strcmp(error.message, part ? expected : "") == 0);
	if (exchange)
		transport->ops->cancel(exchange);
}

static bool start_all(struct direct *direct)
{
	const struct vdi_kube_http_request good = { .method = "GET", .path = "/" };
	struct vdi_kube_http_request	   request;

	for (int i = 0; i < 4; i++) {
		request = good;
		request.method = (const char *[]) { "", "G T", "GET\r\n", "G\177" }[i];
		expect_fault(direct->transport, request, "method");
		request = good;
		request.path = (const char *[]) { "", "a", "/ b", "/#b" }[i];
		expect_fault(direct->transport, request, "path");
		request = good;
		request.token = (const char *[]) { "", "a b", "a\n", "a\177" }[i];
		expect_fault(direct->transport, request, "token");
		request = good;
		request.accept = (const char *[]) { "a\r\nb: c", "a\n", "a\r", "\n" }[i];
		expect_fault(direct->transport, request, "accept");
		request = good;
		request.content_type = (const char *[]) { "a\r\nb: c", "a\n", "a\r", "\n" }[i];
		expect_fault(direct->transport, request, "content type");
	}
	request.accept = "a/b, c/d";
	request.content_type = "a/b; charset=c";
	request.token = "!~";
	expect_fault(direct->transport, request, NULL);
	return true;
}

/* No text of a request can add a header or another request. */
static void texts_that_http_does_not_allow(void **state)
{
	struct direct direct;

	(void) state;
	direct_open(&direct, start_all, "http://127.0.0.1:1");
	direct_close(&direct);
}

/* ---- Connections ---- */

static bool answer_later(struct kube_socket_call *call, void *arg)
{
	struct direct		  *direct = arg;
	struct vdi_kube_transport *transport = direct->transport; /* first: it was set after the rest */

	(void) kube_socket_say_text(call, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no");
	direct->has_request = true;
	transport->ops->wake(transport);
	kube_socket_wait_for_end(call);
	return false;
}

static void expect_option(int fd, int level, int option, int expected)
{
	int	  value = 0;
	socklen_t size = sizeof value;

	KUBE_SOCKET_EXPECT(getsockopt(fd, level, option, &value, &size) == 0);
	if (value != expected)
		fprintf(stderr, "option %d of level %d: %d\n", option, level, value);
	KUBE_SOCKET_EXPECT(value == expected);
}

static bool look_at_socket(struct direct *direct)
{
	const struct vdi_kube_handler	   handler = { ignore_head, ignore_body, ignore_end, NULL };
	const struct vdi_kube_http_request request = { .method = "GET", .path = "/?watch=1" };
	struct vdi_kube_transport	  *base = direct->transport;
	const struct vdi_curl_transport	  *transport =
		VDI_CONTAINER_OF(base, struct vdi_curl_transport, transport);

	if (direct->exchange == NULL)
		KUBE_SOCKET_EXPECT(direct->transport->ops->start(direct->transport, &request, &handler,
								 &direct->exchange, NULL) == VD_OK);
	if (!direct->has_request)
		return false;
	if (direct->is_canceled) {
		KUBE_SOCKET_EXPECT(transport->todo_count == 0 && LIST_EMPTY(&transport->exchanges));
		KUBE_SOCKET_EXPECT(transport->connecting_count == 0 && transport->connected_count == 0);
		direct->transport->ops->wake(direct->transport);
		return transport->socket_count == 0;
	}
	KUBE_SOCKET_EXPECT(transport->socket_count == 1);
	KUBE_SOCKET_EXPECT(fcntl(transport->sockets[0], F_GETFD) == FD_CLOEXEC);
	expect_option(transport->sockets[0], IPPROTO_TCP, TCP_NODELAY, 1);
	expect_option(transport->sockets[0], SOL_SOCKET, SO_KEEPALIVE, 1);
	expect_option(transport->sockets[0], IPPROTO_TCP, TCP_KEEPIDLE, 15);
	expect_option(transport->sockets[0], IPPROTO_TCP, TCP_KEEPINTVL, 15);
	expect_option(transport->sockets[0], IPPROTO_TCP, TCP_USER_TIMEOUT, 45000);
	/* An exchange is noted once, whatever is to be done with it. */
	direct->transport->ops->resume(direct->exchange);
	direct->transport->ops->resume(direct->exchange);
	KUBE_SOCKET_EXPECT(transport->todo_count == 1);
	KUBE_SOCKET_EXPECT(transport->connecting_count == 0 && transport->connected_count == 1);
	direct->transport->ops->cancel(direct->exchange);
	KUBE_SOCKET_EXPECT(transport->todo_count == 1);
	direct->is_canceled = true;
	direct->transport->ops->wake(direct->transport);
	return false;
}

/* A dead server is noticed within a minute: probes are sent while nothing else is. */
static void connections_are_probed(void **state)
{
	struct kube_socket server;
	struct direct	   direct;

	(void) state;
	kube_socket_start(&server, answer_later, &direct, NULL, NULL, NULL);
	direct_open(&direct, look_at_socket, server.url);
	direct_close(&direct);
	kube_socket_stop(&server);
}

#define WANTED (VDI_KUBE_CONNECT_AT_ONCE + 3)

static bool connect_many(struct direct *direct)
{
	const struct vdi_kube_handler	   handler = { ignore_head, ignore_body, ignore_end, NULL };
	const struct vdi_kube_http_request request = { .method = "GET", .path = "/" };
	struct vdi_kube_transport	  *base = direct->transport;
	const struct vdi_curl_transport	  *transport =
		VDI_CONTAINER_OF(base, struct vdi_curl_transport, transport);
	static struct vdi_kube_exchange *exchanges[WANTED];

	direct->transport->ops->wake(direct->transport);
	if (direct->exchange == NULL) {
		for (size_t i = 0; i < WANTED; i++)
			KUBE_SOCKET_EXPECT(direct->transport->ops->start(direct->transport, &request,
									 &handler, &exchanges[i],
									 NULL) == VD_OK);
		direct->exchange = exchanges[0];
		return false;
	}
	KUBE_SOCKET_EXPECT(transport->connecting_count == VDI_KUBE_CONNECT_AT_ONCE);
	KUBE_SOCKET_EXPECT(transport->connected_count == 0);
	for (size_t i = 0; i < WANTED; i++)
		direct->transport->ops->cancel(exchanges[i]);
	return true;
}

/* A server that does not finish its handshakes is not asked for all connections at once. */
static void connections_are_opened_one_after_the_other(void **state)
{
	struct kube_socket server;
	struct direct	   direct;
	char		   url[64];

	(void) state;
	kube_socket_start(&server, answer_ok, NULL, NULL, NULL, NULL);
	snprintf(url, sizeof url, "https://127.0.0.1:%u", server.port); /* which it does not speak */
	direct_open(&direct, connect_many, url);
	direct_close(&direct);
	kube_socket_stop(&server);
}

static bool answer_local(struct kube_socket_call *call, void *arg)
{
	char text[256];

	(void) arg;
	KUBE_SOCKET_EXPECT(strstr(call->head, "GET /api HTTP/1.1\r\n") == call->head);
	KUBE_SOCKET_EXPECT(strcmp(kube_socket_header(call, "Host", text), "localhost") == 0);
	KUBE_SOCKET_EXPECT(strcmp(kube_socket_header(call, "Authorization", text), "Bearer secret") == 0);
	return answer_ok(call, arg);
}

/* A socket of this machine is not reached by the proxy of the environment. */
static void a_server_on_a_unix_socket(void **state)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct vd_kube_call    call = VD_KUBE_CALL_INIT;
	struct kube_socket     server;
	struct vd_kube	      *kube;
	struct kube_reply      reply;
	char		       folder[TEMP_FOLDER_SIZE], path[TEMP_FOLDER_SIZE + 8];

	(void) state;
	temp_folder_make(folder);
	snprintf(path, sizeof path, "%s/socket", folder);
	kube_socket_start_at(&server, path, answer_local, NULL);
	options.token = "secret";
	(void) setenv("HTTP_PROXY", "http://other.invalid", 1);
	(void) setenv("http_proxy", "http://other.invalid", 1);
	kube = client_with(options, server.url);
	call.path = "/api";
	kube_reply_await(&reply, env, kube, &call);
	(void) unsetenv("HTTP_PROXY");
	(void) unsetenv("http_proxy");
	assert_status(reply.status, VD_OK);
	assert_string_equal(reply.body.data, "ok");
	kube_reply_fini(&reply);
	assert_null(vd_kube_close_wait(kube));
	kube_socket_stop(&server);
	temp_folder_remove(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_name_without_tls_has_no_effect),
		cmocka_unit_test(certificates_are_verified),
		cmocka_unit_test(the_server_name_and_a_client_certificate),
		cmocka_unit_test(proxies_are_used_unless_the_server_is_here),
		cmocka_unit_test(bad_urls_are_refused),
		cmocka_unit_test(texts_that_http_does_not_allow),
		cmocka_unit_test(connections_are_probed),
		cmocka_unit_test(connections_are_opened_one_after_the_other),
		cmocka_unit_test(a_server_on_a_unix_socket),
	};

	return cmocka_run_group_tests(tests, start_env, stop_env);
}
