/* Unit tests of storage/codec/k8s_time.c. */
#include "vdtest.h"

#include <time.h>

#include "k8s_time.h"
#include "rand.h"

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
		snprintf(expected, sizeof expected, "%04d-%02d-%02dT%02d:%02d:%02dZ", tm.tm_year + 1900,
			 tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
		assert_int_equal(size, strlen(expected));
		assert_memory_equal(buffer, expected, size);
		assert_true(vdi_k8s_time_parse((struct vd_bytes) { buffer, size }, &back, &nanoseconds));
		assert_int_equal(back, seconds);
	}
}

static void other_forms_and_other_text(void **state)
{
	static const char *const refused[] = { "",
					       "2026",
					       "2026-01-02",
					       "2026-01-02T03:04:05",
					       "2026-13-02T03:04:05Z",
					       "2026-02-29T03:04:05Z",
					       "2026-01-00T03:04:05Z",
					       "2026-01-02T24:04:05Z",
					       "2026-01-02T03:60:05Z",
					       "2026-01-02T03:04:60Z",
					       "2026-01-02T03:04:05.Z",
					       "2026-01-02T03:04:05+0100",
					       "2026-01-02T03:04:05Zx",
					       "2026-01-02 03:04:05Z",
					       "2026-1/-02T03:04:05Z",
					       "2026-0:-02T03:04:05Z",
					       "226-01-02T03:04:05Z",
					       "-026-01-02T03:04:05Z",
					       "0000-01-01T00:00:00+00:01",
					       "9999-12-31T23:59:59-00:01" };
	int64_t			 seconds;
	int32_t			 nanoseconds;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(refused); i++)
		if (vdi_k8s_time_parse(vd_bytes_of(refused[i]), &seconds, &nanoseconds))
			fail_msg("%s is taken for a time", refused[i]);
	assert_true(vdi_k8s_time_parse(vd_bytes_of("1970-01-01T02:00:00.1234567891+02:00"), &seconds,
				       &nanoseconds));
	assert_int_equal(seconds, 0);
	assert_int_equal(nanoseconds, 123456789);
	assert_true(vdi_k8s_time_parse(vd_bytes_of("1969-12-31T19:30:00-04:30"), &seconds, &nanoseconds));
	assert_int_equal(seconds, 0);
}

static void times_are_rfc_3339(void **state)
{
	int64_t seconds;
	char	text[VDI_K8S_TIME_SIZE];

	assert_true(vdi_k8s_time_seconds(vd_bytes_of("2026-05-28T20:26:40Z"), &seconds));
	assert_int_equal(seconds, 1780000000);
	assert_true(vdi_k8s_time_seconds(vd_bytes_of("2026-05-28T22:26:40.123456+02:00"), &seconds));
	assert_int_equal(seconds, 1780000000);
	assert_true(vdi_k8s_time_seconds(vd_bytes_of("1970-01-01T00:00:00Z"), &seconds));
	assert_int_equal(seconds, 0);
	assert_false(vdi_k8s_time_seconds(vd_bytes_of("2026-13-28T20:26:40Z"), &seconds));
	assert_false(vdi_k8s_time_seconds(vd_bytes_of("2026-05-28 20:26:40Z"), &seconds));
	assert_false(vdi_k8s_time_seconds(vd_bytes_of("yesterday, or so, at noon"), &seconds));
	vdi_k8s_time_format((vd_wall) { INT64_C(1780000000) * 1000000000 }, text);
	assert_string_equal(text, "2026-05-28T20:26:40Z");
}

/* Every field has borders, and a fraction or an offset may follow. */
static void borders_of_times(void **state)
{
	static const struct {
		const char *text;
		int64_t	    seconds; /* -1: it is none */
	} rows[] = {
		{ "1970-01-01t00:00:09Z", -1 },		  { "1970-01-01T00:00:09z", -1 }, /* as Go */
		{ "1970-01-01T23:59:60Z", -1 },		  { "1970-01-31T00:00:00Z", 30 * 86400 },
		{ "1970-12-01T00:00:00Z", 334 * 86400 },  { "1970-01-01T00:00:01.5Z", 1 },
		{ "1970-01-01T00:00:01.0123456789Z", 1 }, { "1970-01-01T01:00:00+01:00", 0 },
		{ "1970-01-01T00:00:00-01:30", 5400 },	  { "1970-01-01T09:09:09+09:09", 9 },
		{ "1970-01-01T02:00:00.5+01:00", 3600 },  { "1970-01-02T00:00:00+24:00", 0 }, /* as Go */
		{ "1970-01-01T01:00:00+00:60", 0 },	  { "1970-01-02T01:00:00+25:00", -1 },
		{ "1970-01-01T01:01:00+00:61", -1 },	  { "1970-01-01T00:00:01,5Z", 1 },
		{ "1970-00-01T00:00:00Z", -1 },		  { "1970-13-01T00:00:00Z", -1 },
		{ "1970-01-00T00:00:00Z", -1 },		  { "1970-01-32T00:00:00Z", -1 },
		{ "1970-01-01T24:00:00Z", -1 },		  { "1970-01-01T00:60:00Z", -1 },
		{ "1970-01-01T00:00:61Z", -1 },		  { "1970-01-01T00:00:00", -1 },
		{ "1970-01-01T00:00:00X", -1 },		  { "1970-01-01T00:00:00Zx", -1 },
		{ "1970-01-01T00:00:00+1:00", -1 },	  { "1970-01-01T00:00:00+01:0x", -1 },
		{ "1970-01-01T00:00:00+x1:00", -1 },	  { "1970-01-01T00:00:00+01:00x", -1 },
		{ "1970-01-01T00:00:00.Zx", -1 },	  { "1970-01-01T00:00:00.12", -1 },
		{ "1970/01-01T00:00:00Z", -1 },		  { "1970-01/01T00:00:00Z", -1 },
		{ "1970-01-01_00:00:00Z", -1 },		  { "1970-01-01T00.00:00Z", -1 },
		{ "1970-01-01T00:00.00Z", -1 },		  { "x970-01-01T00:00:00Z", -1 },
		{ "1970-x1-01T00:00:00Z", -1 },		  { "1970-01-x1T00:00:00Z", -1 },
		{ "1970-01-01Tx0:00:00Z", -1 },		  { "1970-01-01T00:x0:00Z", -1 },
		{ "1970-01-01T00:00:x0Z", -1 },		  { "1970-01-01T00:00:0/Z", -1 },
		{ "1970-01-01T00:00:0:Z", -1 },		  { "", -1 },
	};
	int64_t seconds;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		bool is_time = vdi_k8s_time_seconds(vd_bytes_of(rows[i].text), &seconds);

		if (is_time != (rows[i].seconds >= 0) || (is_time && seconds != rows[i].seconds))
			fail_msg("%s: %d %lld", rows[i].text, is_time, is_time ? (long long) seconds : 0);
	}
}

/* The naive model is the C library's calendar. */
static void times_of_ten_thousand_years(void **state)
{
	struct vdi_rand rand;
	char		text[VDI_K8S_TIME_SIZE];
	int64_t		seconds;

	vdi_rand_init(&rand, 5);
	for (int i = 0; i < 4000; i++) {
		struct tm parts = { .tm_year = (int) vdi_rand_below(&rand, 9999) - 1899,
				    .tm_mon = (int) vdi_rand_below(&rand, 12),
				    .tm_mday = 1 + (int) vdi_rand_below(&rand, 28),
				    .tm_hour = (int) vdi_rand_below(&rand, 24),
				    .tm_min = (int) vdi_rand_below(&rand, 60),
				    .tm_sec = (int) vdi_rand_below(&rand, 60) };
		struct tm same = parts;
		time_t	  time = timegm(&same);

		snprintf(text, sizeof text, "%04u-%02u-%02uT%02u:%02u:%02uZ",
			 (unsigned) (parts.tm_year + 1900) % 10000, (unsigned) (parts.tm_mon + 1) % 100,
			 (unsigned) parts.tm_mday % 100, (unsigned) parts.tm_hour % 100,
			 (unsigned) parts.tm_min % 100, (unsigned) parts.tm_sec % 100);
		assert_true(vdi_k8s_time_seconds(vd_bytes_of(text), &seconds));
		assert_int_equal(seconds, time);
		if (parts.tm_year >= -200 && parts.tm_year < 300) { /* what 64 bits of nanoseconds reach */
			char formatted[VDI_K8S_TIME_SIZE];

			vdi_k8s_time_format((vd_wall) { (int64_t) time * 1000000000 }, formatted);
			assert_string_equal(formatted, text);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_rfc_3339),
		cmocka_unit_test(borders_of_times),
		cmocka_unit_test(times_of_ten_thousand_years),
		cmocka_unit_test(h327_times_are_written_as_go_does),
		cmocka_unit_test(every_day_of_many_centuries),
		cmocka_unit_test(other_forms_and_other_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
