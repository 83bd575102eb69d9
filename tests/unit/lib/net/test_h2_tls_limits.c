/* Unit tests of lib/net/h2_tls_limits.c: a server and a client over TLS, with certificates made for the
 * test. */
#include <unistd.h>

#include "rpc_certs.h"
#include "rpc_fixture.h"

static struct vdi_rpc_server_tls server_tls(void)
{
	return (struct vdi_rpc_server_tls) { .cert_path = rpc_certs_path(&rpc_certs, "server.pem"),
					     .key_path = rpc_certs_path(&rpc_certs, "server.key"),
					     .client_ca_path = rpc_certs_path(&rpc_certs, "ca.pem"),
					     .require_client_cert = true };
}

static void start(const struct vdi_rpc_server_tls *tls)
{
	struct vdi_rpc_server_options options = { .tls = tls };
	struct vd_error		      error = { 0 };

	if (rpc_echo_start(&echo, env, NULL, &options, &error) != VD_OK)
		fail_msg("%s", error.message);
}

/* A client that shows NAME's certificate gets its answer, or none. */
static void expect(const char *name, bool is_served)
{
	char		       cert[32], key[32], address[128];
	const char	      *endpoint = address;
	struct vdi_rpc_tls     tls = { .ca_path = rpc_certs_path(&rpc_certs, "ca.pem") };
	struct vdi_rpc_client *client;
	struct rpc_answer      answer;

	snprintf(cert, sizeof cert, "%s.pem", name);
	snprintf(key, sizeof key, "%s.key", name);
	tls.cert_path = rpc_certs_path(&rpc_certs, cert);
	tls.key_path = rpc_certs_path(&rpc_certs, key);
	snprintf(address, sizeof address, "https://127.0.0.1%s", strrchr(rpc_echo_address(&echo), ':'));
	client = rpc_connect(env, &endpoint, 1, &tls);
	if (!is_served)
		(void) rpc_wait_for_cause(client, 0);
	answer = rpc_ask_simply(env, client, "/test.Echo/Name", VD_BYTES_NONE,
				is_served ? VD_SECONDS(60) : VD_MS(100));
	assert_int_equal(answer.end.code == VDI_RPC_OK, is_served);
	if (is_served)
		rpc_answer_release(&answer);
	rpc_close(env, client);
}

static void expect_refused(const struct vdi_rpc_server_tls *tls, const char *why)
{
	struct vdi_rpc_server_options options = { .tls = tls };
	struct vd_error		      error = { 0 };

	assert_status(rpc_echo_start(&echo, env, NULL, &options, &error), VD_INVALID_ARGUMENT);
	assert_string_equal(error.message, why);
}

static void suites_are_chosen_by_their_names(void **state)
{
	static const struct {
		const char *names;
		bool	    is_served;
	} cases[] = { { "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", true },
		      { "TLS_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", true },
		      { "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
			false } /* the client offers none of these */ };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct vdi_rpc_server_tls tls = server_tls();

		tls.max_version = "TLS1.2";
		tls.cipher_suites = cases[i].names;
		start(&tls);
		expect("client", cases[i].is_served);
		rpc_echo_stop(&echo, env);
	}
}

static void what_cannot_be_is_refused(void **state)
{
	struct vdi_rpc_server_tls tls = server_tls();

	(void) state;
	tls.cipher_suites = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_OF_MINE";
	expect_refused(&tls, "cipher suite \"TLS_OF_MINE\" is unknown");
	tls.min_version = "TLS1.3";
	expect_refused(&tls, "cipher suites cannot be chosen for TLS1.3");
	tls.cipher_suites = NULL;
	tls.max_version = "TLS1.2";
	expect_refused(&tls, "the minimum TLS version TLS1.3 is above the maximum TLS1.2");
	tls.min_version = "TLS1.1";
	expect_refused(&tls, "TLS version \"TLS1.1\" is unknown: TLS1.2 or TLS1.3");
	tls = server_tls();
	tls.crl_path = "/nowhere/crl";
	expect_refused(&tls, "revocation list \"/nowhere/crl\" cannot be read: it must be PEM or DER");
	tls.crl_path = "/etc/hostname"; /* no list */
	expect_refused(&tls, "revocation list \"/etc/hostname\" cannot be read: it must be PEM or DER");
}

static void only_one_version(void **state)
{
	struct vdi_rpc_server_tls tls = server_tls();

	(void) state;
	tls.min_version = "TLS1.3";
	start(&tls);
	expect("client", true);
	rpc_echo_stop(&echo, env);
	tls = server_tls();
	tls.min_version = tls.max_version = "TLS1.3";
	start(&tls);
	expect("client", true);
	rpc_echo_stop(&echo, env);
	tls = server_tls();
	tls.min_version = tls.max_version = "TLS1.2";
	start(&tls);
	expect("client", true);
	rpc_echo_stop(&echo, env);
}

static void only_clients_of_these_names(void **state)
{
	struct vdi_rpc_server_tls tls = server_tls();

	(void) state;
	tls.allowed_hostnames = "other.example,elsewhere.example";
	start(&tls);
	expect("elsewhere", true);
	expect("client", false);
	rpc_echo_stop(&echo, env);
	/* The common name is no host name. */
	tls = server_tls();
	tls.allowed_hostnames = "alice";
	start(&tls);
	expect("client", false);
	rpc_echo_stop(&echo, env);
}

/* The list is read for each connection: what is revoked now is refused now. */
static void a_revoked_certificate_is_refused(void **state)
{
	struct vdi_rpc_server_tls tls = server_tls();
	char			  path[128], command[1024];

	(void) state;
	assert_true(rpc_certs_revoke(&rpc_certs, NULL, "crl.pem"));
	snprintf(path, sizeof path, "%s", rpc_certs_path(&rpc_certs, "crl.pem"));
	tls.crl_path = path;
	start(&tls);
	expect("client", true);
	assert_true(rpc_certs_revoke(&rpc_certs, "client.pem", "crl.pem"));
	expect("client", false);
	expect("elsewhere", true);
	snprintf(command, sizeof command, "openssl crl -in %s -outform DER -out %s.der && mv %s.der %s", path,
		 path, path, path);
	assert_int_equal(system(command), 0);
	expect("client", false);
	expect("elsewhere", true);
	assert_int_equal(truncate(path, 10), 0);
	expect("elsewhere", false);
	rpc_echo_stop(&echo, env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RPC_TEST(suites_are_chosen_by_their_names),
		RPC_TEST(what_cannot_be_is_refused),
		RPC_TEST(only_one_version),
		RPC_TEST(only_clients_of_these_names),
		RPC_TEST(a_revoked_certificate_is_refused),
	};

	return cmocka_run_group_tests(tests, rpc_certs_set_up, rpc_certs_tear_down);
}
