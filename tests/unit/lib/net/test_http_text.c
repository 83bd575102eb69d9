/* Unit tests of lib/net/http_text.c. */
#include "http_text.h"
#include "vdtest.h"

static void dates(void **state)
{
	static const struct {
		int64_t	    seconds;
		const char *text;
	} rows[] = {
		{ 784111777, "Sun, 06 Nov 1994 08:49:37 GMT" },
		{ 0, "Thu, 01 Jan 1970 00:00:00 GMT" },
		{ 1709251199, "Thu, 29 Feb 2024 23:59:59 GMT" },
		{ -1, "Wed, 31 Dec 1969 23:59:59 GMT" },
	};
	char text[VDI_HTTP_DATE_SIZE];

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		vdi_http_date((vd_wall) { rows[i].seconds * 1000000000 }, text);
		assert_string_equal(text, rows[i].text);
	}
	vdi_http_date((vd_wall) { INT64_MAX }, text);
	assert_string_equal(text, "Fri, 11 Apr 2262 23:47:16 GMT");
}

static void phrases(void **state)
{
	(void) state;
	assert_string_equal(vdi_http_reason_phrase(200), "OK");
	assert_string_equal(vdi_http_reason_phrase(431), "Request Header Fields Too Large");
	assert_string_equal(vdi_http_reason_phrase(507), "Insufficient Storage");
	assert_string_equal(vdi_http_reason_phrase(299), "Status");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dates),
		cmocka_unit_test(phrases),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
