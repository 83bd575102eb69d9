/* The options of `vedette etcd` without any on its command line: etcd's defaults. */
#include <stdio.h>
#include <unistd.h>

#include "etcd_server_options.h"
#include "vdtest.h"

static const struct vdi_command command = { .name = "etcd", .usage = "vedette etcd [options]" };

/* argument: the only one; NULL: none. */
static void read_options(struct vdi_etcd_server_options *options, const char *argument)
{
	struct vdi_log_settings log = { 0 };
	char			name[] = "etcd", text[64];
	char		       *argv[] = { name, text };
	int			result = -1;

	(void) snprintf(text, sizeof text, "%s", argument ? argument : "");
	assert_true(vdi_etcd_server_options_read(options, &command, argument ? 2 : 1, argv, &log, &result));
}

static void e150_limits_and_ports_of_a_server_without_options(void **state)
{
	struct vdi_etcd_server_options options;

	(void) state;
	read_options(&options, NULL);
	assert_int_equal(options.calls[0].count, 1);
	assert_string_equal(options.calls[0].addresses[0], "127.0.0.1:2379");
	assert_int_equal(options.calls[1].count, 0);
	assert_int_equal(options.peer_url_count, 1);
	assert_string_equal(options.peer_urls[0], "http://localhost:2380");
	assert_int_equal(options.request_bytes_max, 1572864);
	assert_int_equal(options.txn_ops_max, 128);
	assert_int_equal(options.streams_max, 0);
	assert_int_equal(options.quota_bytes, 0); /* that of the server: 2 GiB */
	vdi_etcd_server_options_fini(&options);
}

static void e150_a_negative_quota_is_none(void **state)
{
	static const struct {
		const char *argument;
		int64_t	    bytes;
	} rows[] = { { "--quota-backend-bytes=0", 0 },
		     { "--quota-backend-bytes=-1", -1 },
		     { "--quota-backend-bytes=-17", -1 },
		     { "--quota-backend-bytes=4294967296", 4294967296 } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_etcd_server_options options;

		read_options(&options, rows[i].argument);
		assert_int_equal(options.quota_bytes, rows[i].bytes);
		vdi_etcd_server_options_fini(&options);
	}
}

static void e151_times_of_keepalive(void **state)
{
	struct vdi_etcd_server_options options;

	(void) state;
	read_options(&options, NULL);
	assert_int_equal(options.ping_interval_min.ns, VD_SECONDS(5).ns);
	assert_int_equal(options.keepalive_interval.ns, VD_SECONDS(7200).ns);
	assert_int_equal(options.keepalive_timeout.ns, VD_SECONDS(20).ns);
	vdi_etcd_server_options_fini(&options);
}

int main(void)
{
	static char	       *no_environment[] = { NULL };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e150_limits_and_ports_of_a_server_without_options),
		cmocka_unit_test(e150_a_negative_quota_is_none),
		cmocka_unit_test(e151_times_of_keepalive),
	};

	environ = no_environment; /* an etcd is also configured by it */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
