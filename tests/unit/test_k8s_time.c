/* Unit tests of storage/k8s_time.c. */
#include "vdtest.h"

#include <time.h>

#include "k8s_time.h"

static void h327_times_are_written_as_go_does(void **state)
{
	static const struct {
		int64_t	    seconds;
		int32_t	    microseconds;
		const char *text;
	} rows[] = {
		{ 0, -1, "1970-01-01T00:00:00Z" },
		{ -1, -1, "1969-12-31T23:59:59Z" },
		{ 951782400, -1, "2000-02-29T00:00:00Z" },
		{ 4107542399, 0, "2100-02-28T23:59:59.000000Z" },
		{ 4107542400, 1, "2100-03-01T00:00:00.000001Z" },
		{ 1780000000, 999999, "2026-05-28T20:26:40.999999Z" },
		{ 253402300799, -1, "9999-12-31T23:59:59Z" },
		{ -62167219200, -1, "0000-01-01T00:00:00Z" },
		{ VDI_K8S_TIME_ZERO_S, -1, "0001-01-01T00:00:00Z" },
	};
	char buffer[VDI_K8S_TIME_SIZE];

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		size_t	size = vdi_k8s_time_write(rows[i].seconds, rows[i].microseconds, buffer);
		int64_t seconds;
		int32_t nanoseconds;

		assert_int_equal(size, strlen(rows[i].text));
		assert_memory_equal(buffer, rows[i].text, size);
		assert_true(vdi_k8s_time_parse(vd_bytes_of(rows[i].text), &seconds, &nanoseconds));
		assert_int_equal(seconds, rows[i].seconds);
		assert_int_equal(nanoseconds, VDI_MAX(rows[i].microseconds, 0) * 1000);
	}
	assert_int_equal(vdi_k8s_time_write(253402300800, -1, buffer), 0);
	assert_int_equal(vdi_k8s_time_write(-62167219201, -1, buffer), 0);
	assert_int_equal(vdi_k8s_time_write(INT64_MIN, -1, buffer), 0);
}

/* Against the C library, over all its days. */
static void every_day_of_many_centuries(void **state)
{
	char buffer[VDI_K8S_TIME_SIZE], expected[64];

	(void) state;
	for (int64_t day = -719528; day < 2932896; day += 7) {
		time_t	  seconds = day * 86400 + (day & 0xffff);
		struct tm tm;
		int64_t	  back;
		int32_t	  nanoseconds;
		size_t	  size = vdi_k8s_time_write(seconds, -1, buffer);

		assert_non_null(gmtime_r(&seconds, &tm));
		snprintf(expected, sizeof expected, "%04d-%02d-%02dT%02d:%02d:%02dZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
			 tm.tm_sec);
		assert_int_equal(size, strlen(expected));
		assert_memory_equal(buffer, expected, size);
		assert_true(vdi_k8s_time_parse((struct vd_bytes) { buffer, size }, &back, &nanoseconds));
		assert_int_equal(back, seconds);
	}
}

static void other_forms_and_other_text(void **state)
{
	static const char *const refused[] = { "", "2026", "2026-01-02", "2026-01-02T03:04:05", "2026-13-02T03:04:05Z", "2026-02-29T03:04:05Z",
					       "2026-01-00T03:04:05Z", "2026-01-02T24:04:05Z", "2026-01-02T03:60:05Z", "2026-01-02T03:04:60Z",
					       "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05+0100", "2026-01-02T03:04:05Zx", "2026-01-02 03:04:05Z",
					       "226-01-02T03:04:05Z", "-026-01-02T03:04:05Z", "0000-01-01T00:00:00+00:01",
					       "9999-12-31T23:59:59-00:01" };
	int64_t			 seconds;
	int32_t			 nanoseconds;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(refused); i++)
		if (vdi_k8s_time_parse(vd_bytes_of(refused[i]), &seconds, &nanoseconds))
			fail_msg("%s is taken for a time", refused[i]);
	assert_true(vdi_k8s_time_parse(vd_bytes_of("1970-01-01T02:00:00.1234567891+02:00"), &seconds, &nanoseconds));
	assert_int_equal(seconds, 0);
	assert_int_equal(nanoseconds, 123456789);
	assert_true(vdi_k8s_time_parse(vd_bytes_of("1969-12-31T19:30:00-04:30"), &seconds, &nanoseconds));
	assert_int_equal(seconds, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h327_times_are_written_as_go_does),
		cmocka_unit_test(every_day_of_many_centuries),
		cmocka_unit_test(other_forms_and_other_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
