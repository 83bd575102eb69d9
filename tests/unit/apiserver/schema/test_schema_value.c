/* Unit tests of apiserver/schema/schema_value.c: numbers as they are written, and which are whole. */
#include "vdtest.h"

#include <math.h>

#include "schema_value.h"

static void numbers_are_written_as_go_does(void **state)
{
	static const struct {
		double	    real;
		const char *text;
	} rows[] = {
		{ 0, "0" },
		{ 1, "1" },
		{ -2.5, "-2.5" },
		{ 0.1, "0.1" },
		{ 100000.5, "100000.5" },
		{ 999999, "999999" },
		{ 1000000, "1e+06" },
		{ 1234567.5, "1.2345675e+06" },
		{ 0.0001, "0.0001" },
		{ 0.00015, "0.00015" },
		{ 0.00001, "1e-05" },
		{ 0.000012, "1.2e-05" },
		{ 123, "123" },
		{ 1e100, "1e+100" },
		{ 1.0 / 3, "0.3333333333333333" },
		{ 2.0 / 3, "0.6666666666666666" },
		{ 99999.99, "99999.99" },
		{ 5e-324, "5e-324" },
		{ 1.7976931348623157e308, "1.7976931348623157e+308" },
		{ 0.30000000000000004, "0.30000000000000004" },
	};
	char text[VDI_SCHEMA_NUMBER_SIZE];

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_schema_number number = { rows[i].real, 7, false };

		vdi_schema_number_write(&number, text);
		assert_string_equal(text, rows[i].text);
	}
	vdi_schema_number_write(&(struct vdi_schema_number) { 1e6, 1000000, true }, text);
	assert_string_equal(text, "1000000");
}

static void numbers_are_read(void **state)
{
	static const struct {
		const char *text;
		double	    real;
		int64_t	    integer;
		bool	    is_integer;
	} rows[] = {
		{ "0", 0, 0, true },
		{ "1", 1, 1, true },
		{ "2", 2, 2, true },
		{ "-7", -7, -7, true },
		{ "9223372036854775807", 9223372036854775807.0, INT64_MAX, true },
		{ "1.5", 1.5, 0, false },
		{ "9223372036854775808", 9223372036854775808.0, 0, false },
		{ "1e-3", 0.001, 0, false },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_schema_number number = vdi_schema_number_of(vd_bytes_of(rows[i].text));

		assert_int_equal(number.is_integer, rows[i].is_integer);
		assert_true(number.real == rows[i].real);
		if (number.is_integer)
			assert_int_equal(number.integer, rows[i].integer);
	}
}

static void some_numbers_are_whole(void **state)
{
	static const struct {
		double number;
		bool   is_whole;
	} rows[] = {
		{ 0, true },
		{ 5, true },
		{ -3, true },
		{ 5.5, false },
		{ -0.5, false },
		{ 9007199254740991.0, true },
		{ 9007199254740992.0, false },
		{ -9007199254740991.0, true },
		{ -9007199254740992.0, false },
		{ INFINITY, false },
		{ -INFINITY, false },
		{ NAN, false },
		{ 3.0000000001, true },
		{ 2.9999999999, true },
		{ 3.0001, false },
		{ 0.0000001, false },
		{ 1e300, false },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		if (vdi_schema_is_whole(rows[i].number) != rows[i].is_whole)
			fail_msg("%g", rows[i].number);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_written_as_go_does),
		cmocka_unit_test(numbers_are_read),
		cmocka_unit_test(some_numbers_are_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
