/* Durations and sizes on command lines. */
#include "units.h"
#include "vdtest.h"

static void go_s_durations_are_read(void **state)
{
	static const struct {
		const char *text;
		int64_t	    ns;
	} cases[] = { { "0", 0 },
		      { "0s", 0 },
		      { "5s", 5000000000 },
		      { "1.5s", 1500000000 },
		      { ".5s", 500000000 },
		      { "5.s", 5000000000 },
		      { "1.25ms", 1250000 },
		      { "0.5us", 500 },
		      { "0.5\u00b5s", 500 },
		      { "2\u03bcs", 2000 },
		      { "1.9ns", 1 },
		      { "1h30m", 5400000000000 },
		      { "1.5h1.5m0.25s", 5490250000000 },
		      { "0.100000000000000000000h", 360000000000 },
		      { "0.3333333333333333333h", 1199999999999 },
		      { "9223372036854775807ns", INT64_MAX },
		      { "9223372036s854.775807ms", INT64_MAX },
		      { "9223372036.854775807s", INT64_MAX } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		vd_dur duration = { -1 };

		if (!vdi_parse_duration(cases[i].text, &duration) || duration.ns != cases[i].ns)
			fail_msg("%s: %lld ns", cases[i].text, (long long) duration.ns);
	}
}

static void others_are_refused(void **state)
{
	static const char *const cases[] = { "",
					     "5",
					     "1.5",
					     ".s",
					     ".",
					     "s",
					     "1..5s",
					     "1.5.s",
					     "-1s",
					     "+1s",
					     " 1s",
					     "1s ",
					     "1x",
					     "1d",
					     "1mx",
					     "1h30",
					     "1,5s",
					     "1e3s",
					     "9223372036854775808ns",
					     "2562048h",
					     "99999999999999999999s",
					     "\u00b5s",
					     "1S",
					     "1\u00b5",
					     "9223372036.854775808s",
					     "9223372036s855ms" };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		vd_dur duration = { -1 };

		if (vdi_parse_duration(cases[i], &duration) || duration.ns != -1)
			fail_msg("\"%s\" is taken: %lld ns", cases[i], (long long) duration.ns);
	}
}

static void sizes_have_units_or_none(void **state)
{
	int64_t bytes = -1;

	(void) state;
	assert_true(vdi_parse_bytes("64MiB", &bytes));
	assert_int_equal(bytes, 64 << 20);
	assert_true(vdi_parse_bytes("4096", &bytes));
	assert_int_equal(bytes, 4096);
	assert_false(vdi_parse_bytes("1.5g", &bytes));
	assert_false(vdi_parse_bytes("9223372036854775807k", &bytes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(go_s_durations_are_read),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(sizes_have_units_or_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
