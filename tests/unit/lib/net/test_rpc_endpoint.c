#include "rpc_endpoint.h"
#include "vdtest.h"

static void expect(const char *name, const char *address, enum vdi_rpc_scheme scheme, bool is_socket)
{
	struct vdi_rpc_endpoint endpoint;
	struct vd_error		error = { 0 };

	if (vdi_rpc_endpoint_parse(name, &endpoint, &error) != VD_OK)
		fail_msg("%s: %s", name, error.message);
	assert_string_equal(endpoint.address, address);
	assert_int_equal(endpoint.scheme, scheme);
	assert_int_equal(endpoint.is_socket, is_socket);
	vdi_free(endpoint.address);
}

static void refuse(const char *name, const char *why)
{
	struct vdi_rpc_endpoint endpoint;
	struct vd_error		error = { 0 };
	char			expected[512];

	assert_status(vdi_rpc_endpoint_parse(name, &endpoint, &error), VD_INVALID_ARGUMENT);
	snprintf(expected, sizeof expected, "endpoint \"%.200s\": %s", name, why);
	assert_string_equal(error.message, expected);
}

static void e204_forms_of_endpoints(void **state)
{
	(void) state;
	expect("127.0.0.1:2379", "127.0.0.1:2379", VDI_RPC_AS_CONFIGURED, false);
	expect("http://host.example:2379", "host.example:2379", VDI_RPC_PLAIN, false);
	expect("HTTPS://host_1:2379/path?query", "host_1:2379", VDI_RPC_TLS, false);
	expect("[::1]:2379", "[::1]:2379", VDI_RPC_AS_CONFIGURED, false);
	expect("[::]:2379", "[::]:2379", VDI_RPC_AS_CONFIGURED, false);
	expect("unix:/run/etcd.sock", "/run/etcd.sock", VDI_RPC_AS_CONFIGURED, true);
	expect("unix:///run/etcd.sock", "/run/etcd.sock", VDI_RPC_AS_CONFIGURED, true);
	expect("unixs:/run/a b%", "/run/a b%", VDI_RPC_TLS, true);
	expect("unix:here.sock", "here.sock", VDI_RPC_AS_CONFIGURED, true);
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
	refuse("ftp://host:21", "has an unknown scheme (http, https, unix and unixs are supported)");
	refuse("unix:", "has no path");
	memset(long_path, 'x', sizeof long_path);
	memcpy(long_path, "unix:/", 6);
	long_path[5 + 108] = 0;
	refuse(long_path, "has a path that is too long for a socket (107 bytes)");
	long_path[5 + 107] = 0;
	expect(long_path, long_path + 5, VDI_RPC_AS_CONFIGURED, true);
}

static void out_of_memory_is_reported(void **state)
{
	struct vdi_rpc_endpoint endpoint;
	bool			failed;

	(void) state;
	for (uint64_t n = 1;; n++) {
		vd_status status;

		vdi_alloc_fail_nth(n, 1);
		status = vdi_rpc_endpoint_parse("http://localhost:2379", &endpoint, NULL);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		if (!failed) {
			assert_status(status, VD_OK);
			vdi_free(endpoint.address);
			break;
		}
		assert_status(status, VD_NOMEM);
	}
}

static void the_first_endpoint_decides_about_tls(void **state)
{
	static const struct {
		const char *first;
		bool	    is_configured, has_tls;
	} rows[] = { { "http://a:1", true, false }, { "https://a:1", false, true },
		     { "a:1", false, false },	    { "a:1", true, true },
		     { "unix:/s", true, true },	    { "unixs:/s", false, true } };
	struct vd_error error;
	bool		has_tls = true;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		const char *const endpoints[] = { rows[i].first, has_tls ? "http://b:2" : "https://b:2" };

		assert_status(vdi_rpc_endpoints_use_tls(endpoints, 2, rows[i].is_configured, &has_tls, NULL),
			      VD_OK);
		assert_int_equal(has_tls, rows[i].has_tls);
	}
	assert_status(vdi_rpc_endpoints_use_tls(NULL, 0, true, &has_tls, &error), VD_INVALID_ARGUMENT);
	assert_string_equal(error.message, "etcdclient: no available endpoints");
	assert_status(
		vdi_rpc_endpoints_use_tls(&(const char *const) { "ftp://a:1" }, 1, true, &has_tls, &error),
		VD_INVALID_ARGUMENT);
	assert_non_null(strstr(error.message, "unknown scheme"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e204_forms_of_endpoints),
		cmocka_unit_test(what_is_no_endpoint_is_named),
		cmocka_unit_test(out_of_memory_is_reported),
		cmocka_unit_test(the_first_endpoint_decides_about_tls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
