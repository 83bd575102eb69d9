/* Unit tests of lib/json/json_number.c: which numbers fit into an int64 or a float64, as Go's strconv decides
 * it. */
#include "vdtest.h"

#include "json_number.h"

#include <math.h>

struct row {
	const char *number;
	bool	    fits;
};

static void a_number_fits_if_it_rounds_to_a_finite_float64(void **state)
{
	static const struct row rows[] = {
		{ "0", true },
		{ "-0", true },
		{ "1", true },
		{ "-1.5", true },
		{ "0.1", true },
		{ "9223372036854775807", true },
		{ "9223372036854775808", true },
		{ "-9223372036854775809", true },
		{ "18446744073709551616", true },
		{ "1e-400", true },
		{ "-1E-400", true },
		{ "1e-99999999999999999999", true },
		{ "0e999", true },
		{ "0.000e400", true },
		{ "-0.0E+400", true },
		{ "1e308", true },
		{ "1e309", false },
		{ "-1e309", false },
		{ "1e400", false },
		{ "1E+400", false },
		{ "1e99999999999999999999", false },
		{ "0.1e309", true },
		{ "0.1e310", false },
		{ "0.001e311", true },
		{ "0.001e312", false },
		{ "10e307", true },
		{ "10e308", false },
		{ "100e306", true },
		{ "1.7976931348623157e308", true },
		{ "1.797693134862315807e308", true },
		{ "1.797693134862315808e308", false },
		{ "1.7976931348623159e308", false },
		{ "17976931348623157e292", true },
		{ "17976931348623159e292", false },
		{ "-179769313486231.59e294", false },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		if (vdi_json_number_fits(vd_bytes_of(rows[i].number)) != rows[i].fits)
			fail_msg("%s must%s fit", rows[i].number, rows[i].fits ? "" : " not");
}

/* The least number that does not fit, digit for digit, and its neighbours. */
static void the_bound_is_exact(void **state)
{
	static const char bound[] = "179769313486231580793728971405303415079934132710037826936173778980444968"
				    "2927647509466490179775872070"
				    "963302864166928879109465555478519404026306574886715058206819089020007083"
				    "8367627385484581771153176447"
				    "573027006985557136695962284291481986083493647529271907416844436551070434"
				    "2711559699508093042880177904174497792";
	char		  text[340];
	int		  length;

	assert_false(vdi_json_number_fits(vd_bytes_of(bound)));
	length = snprintf(text, sizeof text, "%.*s1.99999", (int) sizeof bound - 2, bound);
	assert_true(length > 309 && vdi_json_number_fits((struct vd_bytes) { text, (size_t) length }));
	length = snprintf(text, sizeof text, "%s.0", bound);
	assert_false(vdi_json_number_fits((struct vd_bytes) { text, (size_t) length }));
	length = snprintf(text, sizeof text, "0.%se309", bound);
	assert_false(vdi_json_number_fits((struct vd_bytes) { text, (size_t) length }));
	length = snprintf(text, sizeof text, "%.*s", (int) sizeof bound - 2, bound);
	assert_true(vdi_json_number_fits((struct vd_bytes) { text, (size_t) length }));
	length = snprintf(text, sizeof text, "%.*se1", (int) sizeof bound - 2, bound); /* ...790: two less */
	assert_true(vdi_json_number_fits((struct vd_bytes) { text, (size_t) length }));
	length = snprintf(text, sizeof text, "-%s", bound);
	assert_false(vdi_json_number_fits((struct vd_bytes) { text, (size_t) length }));
}

/* The C library rounds as Go does; numbers around the bound, long and short. */
static void strtod_agrees(void **state)
{
	uint64_t seed = 1;

	for (int i = 0; i < 20000; i++) {
		char text[64];

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		(void) snprintf(text, sizeof text, "%s%llu.%llue%d", seed >> 63 ? "-" : "",
				(unsigned long long) (seed >> 40 & 0x3FF),
				(unsigned long long) (seed >> 8 & 0xFFFFFF), (int) (seed >> 52 & 7) + 303);
		if (vdi_json_number_fits(vd_bytes_of(text)) != (bool) isfinite(strtod(text, NULL)))
			fail_msg("%s: strtod gives %g", text, strtod(text, NULL));
		(void) snprintf(text, sizeof text, "1.79769313486231580%02u%llue308",
				(unsigned) (seed >> 32) % 100, (unsigned long long) (seed & 0xFFFFF));
		if (vdi_json_number_fits(vd_bytes_of(text)) != (bool) isfinite(strtod(text, NULL)))
			fail_msg("%s: strtod gives %g", text, strtod(text, NULL));
	}
}

static void check(const char *json, size_t offset, const char *number)
{
	size_t		found = 0;
	struct vd_bytes text = VD_BYTES_NONE;

	if (vdi_json_has_unfit_number(vd_bytes_of(json), &found, &text) != (number != NULL) ||
	    found != offset)
		fail_msg("%s: found at %zu, not %zu", json, found, offset);
	if (number)
		assert_true(vd_bytes_equal(text, vd_bytes_of(number)));
	assert_int_equal(vdi_json_has_unfit_number(vd_bytes_of(json), NULL, NULL), number != NULL);
}

static void numbers_are_found_outside_of_strings(void **state)
{
	check("", 0, NULL);
	check("1e400", 0, "1e400");
	check("[1,-1e309]", 3, "-1e309");
	check("{\"a\":{\"b\":[true,null,\"x\",1E999]}}", 25, "1E999");
	check("{\"1e400\":\"1e400\"}", 0, NULL);
	check("{\"a\":\"\\\"1e400\",\"b\":1}", 0, NULL);
	check("{\"a\":\"\\\\\",\"b\":1e400}", 14, "1e400");
	check("[1,2.5,1e5,-0,1e-400,18446744073709551616]", 0, NULL);
	check("{\"\\\\\\\"1e400\\\\\":1}", 0, NULL);
	check("[\"\",\"\\\"\",\"\\\\\\\\\",1e400]", 16, "1e400");
	/* Not JSON: nothing behind the end is read. */
	check("\"1e400", 0, NULL);
	check("\"\\", 0, NULL);
	check("-", 0, NULL);
	check("1e", 0, NULL);
	check("1e+", 0, NULL);
}

static void a_whole_number_is_written_as_one(void **state)
{
	static const struct {
		const char *number, *whole; /* NULL: it stays */
	} rows[] = {
		{ "1", NULL },
		{ "-7", NULL },
		{ "0", NULL },
		{ "-0", "0" },
		{ "1.0", "1" },
		{ "-1.0", "-1" },
		{ "1e2", "100" },
		{ "1.5e1", "15" },
		{ "1.50E+1", "15" },
		{ "100e-2", "1" },
		{ "0.0", "0" },
		{ "-0.0e5", "0" },
		{ "0e999", "0" },
		{ "1.5", NULL },
		{ "1e-1", NULL },
		{ "1e-400", NULL },
		{ "0.001e3", "1" },
		{ "1e18", "1000000000000000000" },
		{ "1e20", NULL },
		{ "123456789012345e3", "123456789012345000" },
		{ "1234567890123456.0", NULL },
		{ "-2e9", "-2000000000" },
		{ "9223372036854775808", NULL },
		{ "1e400", NULL },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		char   text[VDI_JSON_WHOLE_SIZE];
		size_t size = vdi_json_number_whole(vd_bytes_of(rows[i].number), text);

		if (size != (rows[i].whole ? strlen(rows[i].whole) : 0) ||
		    (size && memcmp(text, rows[i].whole, size) != 0))
			fail_msg("%s becomes %.*s", rows[i].number, (int) size, text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_fits_if_it_rounds_to_a_finite_float64),
		cmocka_unit_test(the_bound_is_exact),
		cmocka_unit_test(strtod_agrees),
		cmocka_unit_test(a_whole_number_is_written_as_one),
		cmocka_unit_test(numbers_are_found_outside_of_strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
