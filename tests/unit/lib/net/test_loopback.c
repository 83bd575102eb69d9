#include "loopback.h"
#include "vdtest.h"

static void hosts_of_this_machine(void **state)
{
	static const char *const hosts[] = {
		"localhost",	     "LocalHost:8080",	      "localhost.",	 "localhost.:1", "127.0.0.1",
		"127.0.0.1:65535",   "127.255.255.254:1",     "127.0.0.53",	 "[::1]",	 "[::1]:6443",
		"[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]:80", "[::ffff:7f00:1]", "127.0.0.1:"
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(hosts); i++) {
		if (!vdi_loopback_has_host(vd_bytes_of(hosts[i])))
			fail_msg("%s is a loopback host", hosts[i]);
	}
}

static void hosts_that_may_be_anywhere(void **state)
{
	static const char *const hosts[] = { "",
					     "127.evil.example",
					     "127.evil.example:8080",
					     "127.0.0.1.evil.example",
					     "127.",
					     "127.1",
					     "127.0.1",
					     "127.0.0.1.",
					     "127.0.0.256",
					     "0127.0.0.1",
					     "0x7f.0.0.1",
					     "2130706433",
					     "127.0.0.1:80:80",
					     "127.0.0.1:evil",
					     "127.0.0.1:123456",
					     "127.0.0.1@evil.example",
					     "127.0.0.1/",
					     " 127.0.0.1",
					     "128.0.0.1",
					     "0.0.0.0",
					     "localhost.evil.example",
					     "localhost..",
					     "xlocalhost",
					     "localhost:80.evil.example",
					     "evil.localhost",
					     "::1",
					     "[::1",
					     "[::1]x",
					     "[::1].evil.example",
					     "[::2]",
					     "[::]",
					     "[::ffff:128.0.0.1]",
					     "[::127.0.0.1]",
					     "[127.0.0.1]",
					     "[localhost]",
					     "[fe80::1%lo]",
					     "[",
					     "[]",
					     ":80",
					     "." };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(hosts); i++) {
		if (vdi_loopback_has_host(vd_bytes_of(hosts[i])))
			fail_msg("%s is no loopback host", hosts[i]);
	}
	assert_false(vdi_loopback_has_host((struct vd_bytes) { "127.0.0.1\0evil", 14 }));
	assert_false(vdi_loopback_has_host((struct vd_bytes) { "127.0.0.1\0", 10 }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_of_this_machine),
		cmocka_unit_test(hosts_that_may_be_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
