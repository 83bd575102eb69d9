#include "grpc_cause.h"
#include "vdtest.h"

static void expect_target(const char *name, const char *expected)
{
	struct vdi_rpc_endpoint endpoint;
	struct vdi_buffer	target;

	assert_status(vdi_rpc_endpoint_parse(name, &endpoint, NULL), VD_OK);
	vdi_buffer_init(&target, VDI_GRPC_TARGET_SIZE_MAX);
	vdi_grpc_target(&endpoint, &target);
	assert_status(vdi_buffer_status(&target), VD_OK);
	assert_string_equal(target.data, expected);
	vdi_buffer_fini(&target);
	vdi_free(endpoint.address);
}

static void endpoints_as_core_names_them(void **state)
{
	(void) state;
	expect_target("127.0.0.1:2379", "dns:///127.0.0.1:2379");
	expect_target("[::1]:2379", "dns:///%5B::1%5D:2379");
	expect_target("unix:///run/etcd.sock", "unix:///run/etcd.sock");
	expect_target("unixs:/run/a b%", "unix:///run/a%20b%25");
	expect_target("unix:here.sock", "unix:here.sock");
}

static void causes_in_few_words(void **state)
{
	/* Core's words as Debian's 1.51 says them. */
	static const struct {
		const char *words;
		const char *cause;
	} cases[] = {
		{ "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to "
		  "connect to remote host: Connection refused",
		  "connection refused" },
		{ "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.1:1: Failed to "
		  "connect to remote host: No route to host",
		  "no route to host" },
		{ "DNS resolution failed for nowhere.invalid:2379: C-ares status is not ARES_SUCCESS qtype=A "
		  "name=nowhere.invalid is_balancer=0: Domain name not found",
		  "unknown host" },
		{ "DNS resolution failed for x:1: C-ares status is not ARES_SUCCESS qtype=A name=x "
		  "is_balancer=0: Could not contact DNS servers",
		  "the host name could not be resolved: Could not contact DNS servers" },
		{ "failed to connect to all addresses; last error: UNAVAILABLE: ipv4:127.0.0.1:28080: Failed "
		  "parsing HTTP/2",
		  "not an HTTP/2 server" },
		{ "failed to connect to all addresses; last error: UNKNOWN: unix:/tmp/x.sock: No such file "
		  "or directory",
		  "no such file or directory" },
		{ "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Ssl handshake "
		  "failed: SSL_ERROR_SSL: error:0A000086:SSL "
		  "routines::certificate verify failed",
		  "the server's certificate is not trusted (certificate verify failed)" },
		{ "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Peer name "
		  "localhost is not in peer certificate",
		  "the server's certificate is not valid for localhost" },
		{ "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Ssl handshake "
		  "failed: SSL_ERROR_SSL: error:0A00010B:SSL "
		  "routines::wrong version number",
		  "the server does not speak TLS" },
		{ "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Ssl handshake "
		  "failed: SSL_ERROR_SYSCALL: x",
		  "TLS handshake failed: SSL_ERROR_SYSCALL: x" },
		{ "failed to connect to all addresses; last error: UNAVAILABLE: ipv4:127.0.0.1:1: Socket "
		  "closed",
		  "the server closed the connection before HTTP/2 began (TLS or a client certificate may be "
		  "expected)" },
		{ "empty address list: ", "the certificate, its key or the CA cannot be used" },
		{ "something new", "something new" },
		{ "", "" },
	};
	char text[256];

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		vdi_grpc_cause(cases[i].words, text, sizeof text);
		assert_string_equal(text, cases[i].cause);
	}
	vdi_grpc_cause(cases[0].words, text, 5);
	assert_string_equal(text, "conn");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(endpoints_as_core_names_them),
		cmocka_unit_test(causes_in_few_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
