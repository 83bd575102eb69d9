/* Included by every test: cmocka in the required order, and the base. */
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
/* Runs a group. A group that passes must have released all memory and descriptors, which is checked here also
 * without a sanitizer (tests/mutation). */
int vdtest_run_group(const char *name, const struct CMUnitTest *tests, size_t count, CMFixtureFunction setup,
		     CMFixtureFunction teardown);
#undef cmocka_run_group_tests
#define cmocka_run_group_tests(tests, setup, teardown)                                                       \
	vdtest_run_group(#tests, tests, VDI_ARRAY_SIZE(tests), setup, teardown)
/* Skips the test and prints the reason. */
#define skip_because(why)                                                                                    \
	do {                                                                                                 \
		print_message("[ skipped: %s ]\n", why);                                                     \
		skip();                                                                                      \
	} while (false)

#endif
