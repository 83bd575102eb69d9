/* What every test includes: cmocka in the order it wants, and our base. */
#ifndef VDTEST_H
#define VDTEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base.h"

#define assert_status(actual, expected) assert_string_equal(vd_status_name(actual), vd_status_name(expected))
/* A group that passes has given back what it took, memory and descriptors, also where no sanitizer looks
 * (tests/mutation). */
int vdtest_run_group(const char *name, const struct CMUnitTest *tests, size_t count, CMFixtureFunction setup,
		     CMFixtureFunction teardown);
#undef cmocka_run_group_tests
#define cmocka_run_group_tests(tests, setup, teardown)                                                       \
	vdtest_run_group(#tests, tests, VDI_ARRAY_SIZE(tests), setup, teardown)
/* A skipped test says why. */
#define skip_because(why)                                                                                    \
	do {                                                                                                 \
		print_message("[ skipped: %s ]\n", why);                                                     \
		skip();                                                                                      \
	} while (false)

#endif
