#include "no_proxy.h"

#include "vdtest.h"

static void hosts_and_domains(void **state)
{
	static const struct {
		const char *list, *host;
		bool	    is_in;
	} cases[] = {
		{ NULL, "a.example", false },
		{ "", "a.example", false },
		{ "*", "a.example", true },
		{ "*,b", "a.example", false }, /* as libcurl: only alone */
		{ "a.example", "a.example", true },
		{ "A.Example.", "a.eXAMPLE", true },
		{ "a.example", "a.example.", true },
		{ "a.example", "b.a.example", true },
		{ ".a.example", "a.example", true },
		{ ".example", "a.example", true },
		{ "example", "anexample", false },
		{ "a.example", "example", false },
		{ "b.example a.example", "a.example", true },
		{ " ,b.example,\ta.example", "a.example", true },
		{ "b.example,", "a.example", false },
		{ ".", "a.example", false },
		{ ",", "a.example", false },
		{ "a.example", "", false },
		{ "a.example", ".", false },
		/* Addresses are compared as such. */
		{ "10.0.0.1", "10.0.0.1", true },
		{ "0.0.1", "10.0.0.1", false },
		{ "10.0.0.0/8", "10.255.0.1", true },
		{ "10.0.0.0/8", "11.0.0.1", false },
		{ "10.0.0.0/9", "10.127.0.1", true },
		{ "10.0.0.0/9", "10.128.0.1", false },
		{ "10.0.0.0/0", "11.0.0.1", true },
		{ "10.0.0.1/32", "10.0.0.1", true },
		{ "10.0.0.1/32", "10.0.0.2", false },
		{ "10.0.0.0/33", "10.0.0.0", false },
		{ "10.0.0.0/", "10.0.0.0", false },
		{ "10.0.0.0/ 8", "10.0.0.1", false },
		{ "10.0.0.0/8x", "10.0.0.1", false },
		{ "10.0.0.0/+8", "10.0.0.1", false },
		{ "fd00::/8", "[fd12::1]", true },
		{ "fd00::/8", "[fe12::1]", false },
		{ "fd00::/8", "fd12::1", true },
		{ "fd00:0::1", "[fd00::1]", true },
		{ "0.0.0.0/0", "[fd00::1]", false },
		{ "::/0", "10.0.0.1", false },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++)
		if (vdi_no_proxy_has(cases[i].list, vd_bytes_of(cases[i].host)) != cases[i].is_in)
			fail_msg("case %zu: \"%s\", \"%s\"", i, cases[i].list ? cases[i].list : "NULL",
				 cases[i].host);
}

static void entries_and_hosts_of_any_length(void **state)
{
	char list[1024], host[300];

	(void) state;
	memset(list, 'x', sizeof list);
	memset(host, 'x', sizeof host);
	memcpy(list + 600, ",a.example", sizeof ",a.example");
	assert_true(vdi_no_proxy_has(list, vd_bytes_of("a.example")));
	assert_false(vdi_no_proxy_has(list, (struct vd_bytes) { host, sizeof host }));
	assert_false(vdi_no_proxy_has(list, (struct vd_bytes) { host, 255 }));
	list[255] = 0;
	assert_true(vdi_no_proxy_has(list, (struct vd_bytes) { host, 255 }));
	assert_false(vdi_no_proxy_has(list, VD_BYTES_NONE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_and_domains),
		cmocka_unit_test(entries_and_hosts_of_any_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
