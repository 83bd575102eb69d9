/* How a connection is made: TLS, names of servers, proxies, URLs. */
#include "kube_curl_state.h"

#include "kube_client.h"
#include "kube_reply.h"
#include "kube_socket.h"
#include "rpc_certs.h"
#include "vdtest.h"

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
	(void) unsetenv("HTTP_PROXY");
	(void) unsetenv("NO_PROXY");
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
					    "http://127.0.0.1/#x" };
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_name_without_tls_has_no_effect),
		cmocka_unit_test(certificates_are_verified),
		cmocka_unit_test(the_server_name_and_a_client_certificate),
		cmocka_unit_test(proxies_are_used_unless_the_server_is_here),
		cmocka_unit_test(bad_urls_are_refused),
	};

	return cmocka_run_group_tests(tests, start_env, stop_env);
}
