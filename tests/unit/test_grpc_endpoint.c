#include "grpc_endpoint.h"
#include "vdtest.h"

static void expect(const char *name, const char *target, enum vdi_grpc_scheme scheme, bool is_socket)
{
	struct vdi_grpc_endpoint endpoint;
	struct vd_error		 error = { 0 };

	if (vdi_grpc_endpoint_parse(name, &endpoint, &error) != VD_OK)
		fail_msg("%s: %s", name, error.message);
	assert_string_equal(endpoint.target, target);
	assert_int_equal(endpoint.scheme, scheme);
	assert_int_equal(endpoint.is_socket, is_socket);
	vdi_free(endpoint.target);
}

static void refuse(const char *name, const char *why)
{
	struct vdi_grpc_endpoint endpoint;
	struct vd_error		 error = { 0 };
	char			 expected[512];

	assert_status(vdi_grpc_endpoint_parse(name, &endpoint, &error), VD_INVALID_ARGUMENT);
	snprintf(expected, sizeof expected, "endpoint \"%.200s\": %s", name, why);
	assert_string_equal(error.message, expected);
}

static void e204_forms_of_endpoints(void **state)
{
	(void) state;
	expect("127.0.0.1:2379", "dns:///127.0.0.1:2379", VDI_GRPC_AS_CONFIGURED, false);
	expect("http://host.example:2379", "dns:///host.example:2379", VDI_GRPC_PLAIN, false);
	expect("HTTPS://host_1:2379/path?query", "dns:///host_1:2379", VDI_GRPC_TLS, false);
	expect("[::1]:2379", "dns:///%5B::1%5D:2379", VDI_GRPC_AS_CONFIGURED, false);
	expect("unix:/run/etcd.sock", "unix:///run/etcd.sock", VDI_GRPC_AS_CONFIGURED, true);
	expect("unix:///run/etcd.sock", "unix:///run/etcd.sock", VDI_GRPC_AS_CONFIGURED, true);
	expect("unixs:/run/a b%", "unix:///run/a%20b%25", VDI_GRPC_TLS, true);
	expect("unix:here.sock", "unix:here.sock", VDI_GRPC_AS_CONFIGURED, true);
}

static void what_is_no_endpoint_is_named(void **state)
{
	char long_path[200];

	(void) state;
	refuse("", "is empty");
	refuse("localhost", "has no port");
	refuse("[::1]", "has no port");
	refuse("http://localhost", "has no port");
	refuse("localhost:", "has no valid port");
	refuse("localhost:etcd", "has no valid port");
	refuse("localhost:0", "has no valid port");
	refuse("localhost:65536", "has no valid port");
	refuse(":2379", "has no host");
	refuse("::1:2379", "is not host:port");
	refuse("[]:2379", "is not host:port");
	refuse("a b:2379", "has a host with a character that no host name has");
	refuse("a/b:2379", "has a host with a character that no host name has");
	refuse("ftp://host:21", "has a scheme that is none of http, https, unix, unixs");
	refuse("unix:", "has no path");
	memset(long_path, 'x', sizeof long_path);
	memcpy(long_path, "unix:/", 6);
	long_path[5 + 109] = 0;
	refuse(long_path, "has a path that is too long for a socket (107 bytes)");
}

static void out_of_memory_is_reported(void **state)
{
	struct vdi_grpc_endpoint endpoint;
	bool			 failed;

	(void) state;
	for (uint64_t n = 1;; n++) {
		vd_status status;

		vdi_alloc_fail_nth(n, 1);
		status = vdi_grpc_endpoint_parse("http://localhost:2379", &endpoint, NULL);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		if (!failed) {
			assert_status(status, VD_OK);
			vdi_free(endpoint.target);
			break;
		}
		assert_status(status, VD_NOMEM);
	}
}

static void causes_in_few_words(void **state)
{
	/* Core's words as Debian's 1.51 says them. */
	static const struct {
		const char *words;
		const char *cause;
	} cases[] = {
		{ "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote host: Connection refused",
		  "connection refused" },
		{ "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.1:1: Failed to connect to remote host: No route to host",
		  "no route to host" },
		{ "DNS resolution failed for nowhere.invalid:2379: C-ares status is not ARES_SUCCESS qtype=A name=nowhere.invalid is_balancer=0: Domain name not found",
		  "unknown host" },
		{ "DNS resolution failed for x:1: C-ares status is not ARES_SUCCESS qtype=A name=x is_balancer=0: Could not contact DNS servers",
		  "the host name could not be resolved: Could not contact DNS servers" },
		{ "failed to connect to all addresses; last error: UNAVAILABLE: ipv4:127.0.0.1:28080: Failed parsing HTTP/2", "not an HTTP/2 server" },
		{ "failed to connect to all addresses; last error: UNKNOWN: unix:/tmp/x.sock: No such file or directory", "no such file or directory" },
		{ "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Ssl handshake failed: SSL_ERROR_SSL: error:0A000086:SSL "
		  "routines::certificate verify failed",
		  "the server's certificate is not trusted (certificate verify failed)" },
		{ "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Peer name localhost is not in peer certificate",
		  "the server's certificate is not valid for localhost" },
		{ "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Ssl handshake failed: SSL_ERROR_SSL: error:0A00010B:SSL "
		  "routines::wrong version number",
		  "the server does not speak TLS" },
		{ "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Ssl handshake failed: SSL_ERROR_SYSCALL: x",
		  "TLS handshake failed: SSL_ERROR_SYSCALL: x" },
		{ "failed to connect to all addresses; last error: UNAVAILABLE: ipv4:127.0.0.1:1: Socket closed",
		  "the server closed the connection before HTTP/2 began (TLS or a client certificate may be expected)" },
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
		cmocka_unit_test(e204_forms_of_endpoints),
		cmocka_unit_test(what_is_no_endpoint_is_named),
		cmocka_unit_test(out_of_memory_is_reported),
		cmocka_unit_test(causes_in_few_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
