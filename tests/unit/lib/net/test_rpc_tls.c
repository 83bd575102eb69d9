/* TLS on both sides, with certificates made for the test. Addresses are numbers: Debian's c-ares leaks the
 * name of a host that stands on two lines of /etc/hosts, as localhost does. */
#include "rpc_certs.h"
#include "rpc_fixture.h"
#include "rpc_under_test.h"

static struct vdi_rpc_server_tls server_tls(const char *name, bool mutual)
{
	char pem[32];
	char key[32];

	snprintf(pem, sizeof pem, "%s.pem", name);
	snprintf(key, sizeof key, "%s.key", name);
	return (struct vdi_rpc_server_tls) {
		.cert_path = rpc_certs_path(&rpc_certs, pem),
		.key_path = rpc_certs_path(&rpc_certs, key),
		.client_ca_path = mutual ? rpc_certs_path(&rpc_certs, "ca.pem") : NULL,
		.require_client_cert = mutual,
	};
}

/* Asks for the client's common name. server NULL: plain text. ret_cause not NULL: waits until the endpoint's
 * state has a cause before it asks. */
static struct rpc_answer ask(const struct vdi_rpc_server_tls *server, const struct vdi_rpc_tls *tls,
			     const char *scheme, const char *host, vd_dur timeout, char *ret_cause)
{
	struct vdi_rpc_server_options options = { .tls = server };
	struct vdi_rpc_client	     *client;
	struct rpc_answer	      answer;
	struct vd_error		      error = { 0 };
	char			      address[128];
	const char		     *endpoint = address;

	if (rpc_echo_start(&echo, env, NULL, &options, &error) != VD_OK)
		fail_msg("%s", error.message);
	snprintf(address, sizeof address, "%s%s%s", scheme, host, strrchr(rpc_echo_address(&echo), ':'));
	client = rpc_connect(env, &endpoint, 1, tls);
	if (ret_cause)
		strcpy(ret_cause, rpc_wait_for_cause(client, 0).last_error);
	answer = rpc_ask_simply(env, client, "/test.Echo/Name", VD_BYTES_NONE, timeout);
	rpc_close(env, client);
	rpc_echo_stop(&echo, env);
	return answer;
}

static void expect_name(struct rpc_answer answer, const char *name)
{
	assert_string_equal(answer.text, "");
	assert_int_equal(answer.end.code, VDI_RPC_OK);
	assert_true(vd_bytes_equal(answer.message.bytes, vd_bytes_of(name)));
	rpc_answer_release(&answer);
}

static void expect_failure(const struct vdi_rpc_server_tls *server, const struct vdi_rpc_tls *tls,
			   const char *scheme, const char *host, const char *cause)
{
	char		  text[256];
	struct rpc_answer answer = ask(server, tls, scheme, host, VD_MS(100), text);

	assert_string_equal(text, cause);
	assert_int_equal(answer.end.code, VDI_RPC_DEADLINE_EXCEEDED);
	assert_true(answer.end.unsent);
	assert_non_null(strstr(answer.text, cause));
}

static void e204_the_scheme_decides_about_tls(void **state)
{
	struct vdi_rpc_server_tls server = server_tls("server", false);
	struct vdi_rpc_tls	  tls = { .ca_path = rpc_certs_path(&rpc_certs, "ca.pem") };

	(void) state;
	expect_name(ask(&server, &tls, "https://", "127.0.0.1", VD_SECONDS(10), NULL), "");
	expect_name(ask(&server, &tls, "", "127.0.0.1", VD_SECONDS(10), NULL), "");
	expect_name(ask(NULL, &tls, "http://", "127.0.0.1", VD_SECONDS(10), NULL), "");
	expect_name(ask(NULL, NULL, "", "127.0.0.1", VD_SECONDS(10), NULL), "");
}

/* Each endpoint of the list leads to the server: with the scheme of the first one, its own is ignored. */
static void expect_all_speak(const struct vdi_rpc_server_tls *server, const struct vdi_rpc_tls *tls,
			     const char *const schemes[3])
{
	struct vdi_rpc_server_options options = { .tls = server };
	struct vdi_rpc_request	      request = { .method = "/test.Echo/Echo", .timeout = VD_SECONDS(60) };
	struct vdi_rpc_client	     *client;
	char			      names[3][128];
	const char		     *endpoints[3];

	assert_status(rpc_echo_start(&echo, env, NULL, &options, NULL), VD_OK);
	for (int i = 0; i < 3; i++) {
		snprintf(names[i], sizeof names[i], "%s%s", schemes[i], rpc_echo_address(&echo));
		endpoints[i] = names[i];
	}
	client = rpc_connect(env, endpoints, 3, tls);
	for (request.endpoint = 0; request.endpoint < 3; request.endpoint++) {
		struct rpc_answer answer = rpc_ask(env, client, &request);

		assert_string_equal(answer.text, "");
		assert_int_equal(answer.end.code, VDI_RPC_OK);
		assert_string_equal(answer.endpoint, names[request.endpoint]);
		rpc_answer_release(&answer);
	}
	rpc_close(env, client);
	rpc_echo_stop(&echo, env);
}

static void e204_the_first_scheme_decides_for_all(void **state)
{
	struct vdi_rpc_server_tls server = server_tls("server", false);
	struct vdi_rpc_tls	  tls = { .ca_path = rpc_certs_path(&rpc_certs, "ca.pem") };

	(void) state;
	expect_all_speak(&server, &tls, (const char *[]) { "https://", "http://", "" });
	expect_all_speak(&server, &tls, (const char *[]) { "", "http://", "https://" });
	expect_all_speak(NULL, &tls, (const char *[]) { "http://", "https://", "" });
	expect_all_speak(NULL, NULL, (const char *[]) { "", "https://", "http://" });
}

/* A socket in the file system: unixs: is TLS, unix: is TLS if it is configured. */
static void e204_tls_over_a_socket(void **state)
{
	static const char *const      schemes[] = { "unixs:", "unix:" };
	struct vdi_rpc_server_tls     server = server_tls("server", false);
	struct vdi_rpc_server_options options = { .tls = &server };
	struct vdi_rpc_tls	      tls = { .ca_path = rpc_certs_path(&rpc_certs, "ca.pem"),
					      .server_name = "localhost" };
	const char		     *path = rpc_certs_path(&rpc_certs, "tls.sock");
	char			      address[160];
	const char		     *endpoint = address;

	(void) state;
	snprintf(address, sizeof address, "unix:%s", path);
	assert_status(rpc_echo_start(&echo, env, address, &options, NULL), VD_OK);
	for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
		struct vdi_rpc_client *client;

		snprintf(address, sizeof address, "%s%s", schemes[i], path);
		client = rpc_connect(env, &endpoint, 1, &tls);
		expect_name(rpc_ask_simply(env, client, "/test.Echo/Name", VD_BYTES_NONE, VD_SECONDS(60)),
			    "");
		rpc_close(env, client);
	}
	rpc_echo_stop(&echo, env);
	/* unixs: forces TLS also without TLS options: the roots are the system's then. */
	snprintf(address, sizeof address, "unix:%s", path);
	assert_status(rpc_echo_start(&echo, env, address, NULL, NULL), VD_OK);
	for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
		struct vdi_rpc_client *client;

		snprintf(address, sizeof address, "%s%s", schemes[i], path);
		client = rpc_connect(env, &endpoint, 1, NULL);
		if (i == 0) {
			struct rpc_answer answer =
				rpc_ask_simply(env, client, "/test.Echo/Echo", VD_BYTES_NONE, VD_MS(100));

			assert_int_equal(answer.end.code, VDI_RPC_DEADLINE_EXCEEDED);
			assert_string_equal(rpc_wait_for_cause(client, 0).last_error,
					    "the server does not speak TLS");
			rpc_answer_release(&answer);
		} else
			rpc_expect_echo(client);
		rpc_close(env, client);
	}
	rpc_echo_stop(&echo, env);
}

static void a_certificate_that_nobody_trusts(void **state)
{
	struct vdi_rpc_server_tls server = server_tls("stranger", false);
	struct vdi_rpc_tls	  tls = { .ca_path = rpc_certs_path(&rpc_certs, "ca.pem") };

	(void) state;
	expect_failure(&server, &tls, "https://", "127.0.0.1",
		       "the server's certificate is not trusted (certificate verify failed)");
	/* The system's roots do not know the test's CA either. */
	server = server_tls("server", false);
	expect_failure(&server, NULL, "https://", "127.0.0.1",
		       "the server's certificate is not trusted (certificate verify failed)");
}

/* Without a CA of its own a client takes the system's, and only then. */
static void without_a_ca_the_systems_roots_count(void **state)
{
	struct vdi_rpc_server_tls server = server_tls("server", false);
	struct vdi_rpc_tls	  tls = { .ca_path = NULL };

	(void) state;
	if (rpc_is_grpc()) /* it has roots of its own */
		return;
	assert_int_equal(setenv("SSL_CERT_FILE", rpc_certs_path(&rpc_certs, "ca.pem"), 1), 0);
	expect_name(ask(&server, NULL, "https://", "127.0.0.1", VD_SECONDS(10), NULL), "");
	expect_name(ask(&server, &tls, "https://", "127.0.0.1", VD_SECONDS(10), NULL), "");
	tls.ca_path = rpc_certs_path(&rpc_certs, "stranger.pem");
	expect_failure(&server, &tls, "https://", "127.0.0.1",
		       "the server's certificate is not trusted (certificate verify failed)");
	assert_int_equal(unsetenv("SSL_CERT_FILE"), 0);
}

static void a_certificate_for_another_name(void **state)
{
	struct vdi_rpc_server_tls server = server_tls("elsewhere", false);
	struct vdi_rpc_tls	  tls = { .ca_path = rpc_certs_path(&rpc_certs, "ca.pem") };

	(void) state;
	expect_failure(&server, &tls, "", "127.0.0.1", "the server's certificate is not valid for 127.0.0.1");
	tls.server_name = "elsewhere.example";
	expect_name(ask(&server, &tls, "", "127.0.0.1", VD_SECONDS(10), NULL), "");
}

static void mutual_tls_tells_who_the_client_is(void **state)
{
	struct vdi_rpc_server_tls server = server_tls("server", true);
	struct vdi_rpc_tls	  tls = { .ca_path = rpc_certs_path(&rpc_certs, "ca.pem"),
					  .cert_path = rpc_certs_path(&rpc_certs, "client.pem"),
					  .key_path = rpc_certs_path(&rpc_certs, "client.key") };

	(void) state;
	expect_name(ask(&server, &tls, "https://", "127.0.0.1", VD_SECONDS(10), NULL), "alice");
	server.require_client_cert = false;
	expect_name(ask(&server, &tls, "https://", "127.0.0.1", VD_SECONDS(10), NULL), "alice");
	tls.cert_path = tls.key_path = NULL;
	expect_name(ask(&server, &tls, "https://", "127.0.0.1", VD_SECONDS(10), NULL), "");
}

/* With TLS 1.3 the server says so after the handshake; if the connection is cut before that is read, or the
 * transport does not look, it is only seen to be closed. */
static void expect_cause_of_certificate(const char *cause, const char *best)
{
	if (strcmp(cause, best) != 0)
		assert_string_equal(cause, "the server closed the connection before HTTP/2 began (TLS or a "
					   "client certificate may be expected)");
}

static void a_client_certificate_that_is_missing_or_strange(void **state)
{
	struct vdi_rpc_server_tls server = server_tls("server", true);
	struct vdi_rpc_tls	  tls = { .ca_path = rpc_certs_path(&rpc_certs, "ca.pem") };
	struct rpc_answer	  answer;
	char			  cause[256];

	(void) state;
	answer = ask(&server, &tls, "https://", "127.0.0.1", VD_MS(100), cause);
	assert_int_not_equal(answer.end.code, VDI_RPC_OK);
	expect_cause_of_certificate(cause, "the server requires a client certificate");
	tls.cert_path = rpc_certs_path(&rpc_certs, "stranger.pem");
	tls.key_path = rpc_certs_path(&rpc_certs, "stranger.key");
	answer = ask(&server, &tls, "https://", "127.0.0.1", VD_MS(100), cause);
	assert_int_not_equal(answer.end.code, VDI_RPC_OK);
	expect_cause_of_certificate(cause, "the server does not accept the client certificate");
}

static void plain_text_and_tls_do_not_meet(void **state)
{
	struct vdi_rpc_server_tls server = server_tls("server", false);
	struct vdi_rpc_tls	  tls = { .ca_path = rpc_certs_path(&rpc_certs, "ca.pem") };

	(void) state;
	expect_failure(&server, NULL, "http://", "127.0.0.1",
		       "the server closed the connection before HTTP/2 began (TLS or a client certificate "
		       "may be expected)");
	expect_failure(NULL, &tls, "https://", "127.0.0.1", "the server does not speak TLS");
}

static void refuse_client(const struct vdi_rpc_tls *tls, const char *what)
{
	const char		     *endpoint = "https://localhost:2379";
	struct vdi_rpc_client_options options = { .endpoints = &endpoint, .endpoint_count = 1, .tls = tls };
	struct vdi_rpc_client	     *client;
	struct vd_error		      error = { 0 };

	assert_status(rpc_under_test()->client_new(env, &options, &client, &error), VD_INVALID_ARGUMENT);
	if (strncmp(error.message, what, strlen(what)) != 0)
		fail_msg("\"%s\" does not begin with \"%s\"", error.message, what);
}

static void files_that_are_no_certificates_are_named(void **state)
{
	struct vdi_rpc_server_tls     server = server_tls("nobody", false);
	struct vdi_rpc_server_options options = { .tls = &server };
	struct vd_error		      error = { 0 };

	(void) state;
	refuse_client(&(struct vdi_rpc_tls) { .ca_path = "/nowhere/ca.pem" },
		      "CA file \"/nowhere/ca.pem\": No such file or directory");
	refuse_client(&(struct vdi_rpc_tls) { .ca_path = "/etc/hostname" },
		      "CA file \"/etc/hostname\": holds no PEM block");
	refuse_client(&(struct vdi_rpc_tls) { .ca_path = "/etc" }, "CA file \"/etc\": Is a directory");
	refuse_client(&(struct vdi_rpc_tls) { .cert_path = "/x" },
		      "a certificate and its key are given together");
	refuse_client(&(struct vdi_rpc_tls) { .cert_path = "/nowhere/c", .key_path = "/nowhere/k" },
		      "certificate \"/nowhere/c\": No such file");
	assert_status(rpc_echo_start(&echo, env, NULL, &options, &error), VD_INVALID_ARGUMENT);
	assert_non_null(strstr(error.message, "nobody.pem\": No such file or directory"));
	server = server_tls("server", false);
	server.key_path = NULL;
	assert_status(rpc_echo_start(&echo, env, NULL, &options, &error), VD_INVALID_ARGUMENT);
	assert_string_equal(error.message, "a TLS server needs a certificate and its key");
	server = server_tls("server", false);
	server.require_client_cert = true;
	assert_status(rpc_echo_start(&echo, env, NULL, &options, &error), VD_INVALID_ARGUMENT);
	assert_string_equal(error.message, "client certificates cannot be required without a CA for them");
}

/* The key of another certificate, and files with something else in them: the file is named, with what OpenSSL
 * says. */
static void a_key_that_fits_no_certificate(void **state)
{
	struct vdi_rpc_server_tls     server = server_tls("server", false);
	struct vdi_rpc_server_options options = { .tls = &server };
	struct vdi_rpc_tls	      tls = { .ca_path = rpc_certs_path(&rpc_certs, "ca.pem"),
					      .cert_path = rpc_certs_path(&rpc_certs, "client.pem"),
					      .key_path = rpc_certs_path(&rpc_certs, "server.key") };
	struct vd_error		      error = { 0 };
	const char		     *endpoint = "https://127.0.0.1:1";
	struct vdi_rpc_client_options client_options = { .endpoints = &endpoint,
							 .endpoint_count = 1,
							 .tls = &tls };
	struct vdi_rpc_client	     *client;
	char			      wanted[1024];

	(void) state;
	assert_status(rpc_under_test()->client_new(env, &client_options, &client, &error),
		      VD_INVALID_ARGUMENT);
	(void) snprintf(wanted, sizeof wanted,
			"key \"%s\" cannot be used: it is not the key of \"%s\": key values mismatch",
			tls.key_path, tls.cert_path);
	assert_string_equal(error.message, wanted);
	tls.cert_path = tls.key_path;
	assert_status(rpc_under_test()->client_new(env, &client_options, &client, &error),
		      VD_INVALID_ARGUMENT);
	(void) snprintf(wanted, sizeof wanted,
			"certificate \"%s\" cannot be used: no certificate can be read: no start line",
			tls.cert_path);
	assert_string_equal(error.message, wanted);
	tls.ca_path = tls.key_path;
	assert_status(rpc_under_test()->client_new(env, &client_options, &client, &error),
		      VD_INVALID_ARGUMENT);
	(void) snprintf(wanted, sizeof wanted,
			"CA file \"%s\" cannot be used: no certificate can be read: no start line",
			tls.ca_path);
	assert_string_equal(error.message, wanted);
	server.key_path = rpc_certs_path(&rpc_certs, "client.key");
	assert_status(rpc_echo_start(&echo, env, NULL, &options, &error), VD_INVALID_ARGUMENT);
	(void) snprintf(wanted, sizeof wanted,
			"key \"%s\" cannot be used: it is not the key of \"%s\": key values mismatch",
			server.key_path, server.cert_path);
	assert_string_equal(error.message, wanted);
	server.key_path = server.cert_path;
	assert_status(rpc_echo_start(&echo, env, NULL, &options, &error), VD_INVALID_ARGUMENT);
	(void) snprintf(wanted, sizeof wanted, "key \"%s\" cannot be used: no private key can be read",
			server.key_path);
	assert_memory_equal(error.message, wanted, strlen(wanted));
}

/* Every allocation of a client with TLS may fail: there is no client then, and what was taken is given
 * back. */
static void without_memory_there_is_no_client(void **state)
{
	struct vdi_rpc_tls	      tls = { .ca_path = rpc_certs_path(&rpc_certs, "ca.pem"),
					      .cert_path = rpc_certs_path(&rpc_certs, "client.pem"),
					      .key_path = rpc_certs_path(&rpc_certs, "client.key"),
					      .server_name = "localhost" };
	const char		     *endpoints[] = { "https://127.0.0.1:1", "unix:/nowhere/s" };
	struct vdi_rpc_client_options options = { .endpoints = endpoints, .endpoint_count = 2, .tls = &tls };
	struct vdi_rpc_client	     *client = NULL;
	bool			      was_reached = true;

	(void) state;
	if (rpc_is_grpc()) /* core has memory of its own, and needs it */
		return;
	for (uint64_t n = 1; was_reached; n++) {
		int64_t		before = vdi_alloc_live();
		struct vd_error error = { 0 };
		vd_status	status;

		vdi_alloc_fail_nth(n, 1);
		status = rpc_under_test()->client_new(env, &options, &client, &error);
		was_reached = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		if (status == VD_OK && was_reached) { /* by the client's own thread */
			rpc_close(env, client);
			continue;
		}
		assert_status(status, was_reached ? VD_NOMEM : VD_OK);
		if (was_reached)
			assert_int_equal(vdi_alloc_live(), before);
		assert_true(was_reached || n > 10);
	}
	rpc_close(env, client);
}

static _Atomic unsigned records;

static void count_record(void *arg, const struct vd_log_record *record)
{
	(void) arg;
	if (strcmp(record->module, "grpc") == 0)
		atomic_fetch_add(&records, 1);
}

/* A peer can make core speak at will: each failed handshake is a line or two. */
static void failed_handshakes_do_not_flood_the_log(void **state)
{
	struct vdi_rpc_server_tls server = server_tls("stranger", false);
	struct vdi_rpc_tls	  tls = { .ca_path = rpc_certs_path(&rpc_certs, "ca.pem") };
	struct vd_env_options	  options = VD_ENV_OPTIONS_INIT;
	struct vd_env		 *plain = env;

	(void) state;
	options.log = count_record;
	assert_status(vd_env_new_threads(&options, &env), VD_OK);
	for (int i = 0; i < 5; i++)
		expect_failure(&server, &tls, "https://", "127.0.0.1",
			       "the server's certificate is not trusted (certificate verify failed)");
	env = vd_env_free(env);
	env = plain;
	assert_true(atomic_load(&records) <= 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPC_TEST(e204_the_scheme_decides_about_tls),
		RPC_TEST(e204_the_first_scheme_decides_for_all),
		RPC_TEST(e204_tls_over_a_socket),
		RPC_TEST(a_certificate_that_nobody_trusts),
		RPC_TEST(without_a_ca_the_systems_roots_count),
		RPC_TEST(a_certificate_for_another_name),
		RPC_TEST(mutual_tls_tells_who_the_client_is),
		RPC_TEST(a_client_certificate_that_is_missing_or_strange),
		RPC_TEST(plain_text_and_tls_do_not_meet),
		RPC_TEST(files_that_are_no_certificates_are_named),
		RPC_TEST(a_key_that_fits_no_certificate),
		RPC_TEST(without_memory_there_is_no_client),
		RPC_TEST(failed_handshakes_do_not_flood_the_log),
	};

	return cmocka_run_group_tests(tests, rpc_certs_set_up, rpc_certs_tear_down);
}
