/* Unit tests of apiserver/schema/schema_format.c: what each format of a string holds and what it does not,
 * whatever stands behind the text. */
#include "vdtest.h"

#include "schema_node.h"

struct format_row {
	const char *text;
	bool	    holds;
};

static void check(const char *format, const struct format_row *rows, size_t count)
{
	static const char behind[] = { 0, '0', '9', 'a', '.', '-', ':', '=', '"', '@', ']', '>' };

	bool failed = false;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < sizeof behind; k++) {
			size_t size = strlen(rows[i].text);
			char   text[400];

			assert_true(size + 16 < sizeof text);
			memset(text, behind[k], sizeof text);
			memcpy(text + 8, rows[i].text, size);
			if (vdi_schema_format_holds(vd_bytes_of(format),
						    (struct vd_bytes) { text + 8, size }) != rows[i].holds) {
				print_error("%s: \"%s\" before %d %s\n", format, rows[i].text, behind[k],
					    rows[i].holds ? "does not hold" : "holds");
				failed = true;
			}
		}
	assert_false(failed);
}

#define CHECK(format, ...)                                                                                   \
	do {                                                                                                 \
		static const struct format_row rows_[] = { __VA_ARGS__ };                                    \
		check(format, rows_, VDI_ARRAY_SIZE(rows_));                                                 \
	} while (0)

#define TEN "abcdefghij"
#define SIXTY TEN TEN TEN TEN TEN TEN

static void times(void **state)
{
	CHECK("date", { "2026-11-21", true }, { "2026-01-31", true }, { "2026-01-32", false },
	      { "2026-02-28", true }, { "2026-02-29", false }, { "2024-02-29", true },
	      { "2024-02-30", false }, { "1900-02-29", false }, { "2000-02-29", true },
	      { "2026-03-31", true }, { "2026-04-31", false }, { "2026-05-31", true },
	      { "2026-06-31", false }, { "2026-07-31", true }, { "2026-08-31", true },
	      { "2026-09-31", false }, { "2026-10-31", true }, { "2026-11-31", false },
	      { "2026-12-31", true }, { "2026-13-01", false }, { "2026-00-01", false },
	      { "2026-01-00", false }, { "2024-01-32", false }, { "2026/01-01", false },
	      { "2026-01/01", false }, { "2026-01-1", false }, { "2026-01-011", false },
	      { "x026-01-01", false }, { "", false });
	CHECK("date-time", { "2026-11-21T22:00:00Z", true }, { "2026-11-21t22:00:00z", true },
	      { "2026-11-21T23:59:59Z", true }, { "2026-11-21T24:00:00Z", false },
	      { "2026-11-21T22:60:00Z", false }, { "2026-11-21T22:00:60Z", false },
	      { "2026-11-21 22:00:00Z", false }, { "2026-11-21T22:00:00", false },
	      { "2026-11-21T22:00:00.Z", false }, { "2026-11-21T22:00:00.1Z", true },
	      { "2026-11-21T22:00:00.123456789Z", true }, { "2026-11-21T22:00:00,5Z", true },
	      { "2026-11-21T22:00:00.1", false }, { "2026-11-21T22:00:00+01:00", true },
	      { "2026-11-21T22:00:00-01:00", true }, { "2026-11-21T22:00:00.5-01:00", true },
	      { "2026-11-21T22:00:00+0100", false }, { "2026-11-21T22:00:00+1:00", false },
	      { "2026-11-21T22:00:00*01:00", false }, { "2026-11-21T22:00:00Zx", false },
	      { "2026-11-21T22:00:00X", false }, { "2026-11-32T22:00:00Z", false },
	      { "2026-11-21T22.00:00Z", false });
	CHECK("duration", { "0", true }, { "+0", true }, { "-0", true }, { "", false }, { "-", false },
	      { "1", false }, { "1s", true }, { "-1s", true }, { "+1s", true }, { "1ns", true },
	      { "1us", true }, { "1\xC2\xB5s", true }, { "1\xCE\xBCs", true }, { "1ms", true },
	      { "1m", true }, { "1h", true }, { "1h1m", true }, { "1.5h", true }, { ".5h", true },
	      { "5.h", true }, { ".h", false }, { "h", false }, { "1h1", true }, { "1x", false },
	      { "00", false },
	      /* a number and a word, anywhere */
	      { "3 days", true }, { "3days", true }, { "3\tDAYS", true }, { "3 d", true }, { "3 D", true },
	      { "3 w", true }, { "3 hr", true }, { "3 hours", true }, { "3 nanoseconds", true },
	      { "3 micros", true }, { "3 milli", true }, { "3 secs", true }, { "3 minutes", true },
	      { "3 weeks", true }, { "3 da", false }, { "3 dd", false }, { "in 3 days", true },
	      { "days 3", false }, { "in days", false }, { "3 4 days", true }, { "3 x 4 days", true },
	      { "3 x", false }, { "3, days", false }, { "3 n", false }, { "3 nan", false },
	      { "3 wee", false }, { "3s4", true }, { "3 \xC2\xB5s", true }, { "3 soon 4 later", false });
}

static void addresses(void **state)
{
	CHECK("ipv4", { "0.0.0.0", true }, { "255.255.255.255", true }, { "256.0.0.0", false },
	      { "0.0.0.256", false }, { "1.2.3", false }, { "1.2.3.", false }, { "1.2.3.4.5", false },
	      { "1..2.3", false }, { "1.2.3.4 ", false }, { ".1.2.3", false }, { "1,2.3.4", false },
	      { "", false }, { "::ffff:1.2.3.4", true }, { "::1", false }, { "a.b.c.d", false },
	      { "01.2.3.4", true });
	CHECK("ipv6", { "::", true }, { "::1", true }, { "fe80::1", true }, { "1:2:3:4:5:6:7:8", true },
	      { "1:2:3:4:5:6:7", false }, { "1:2:3:4:5:6:7:8:9", false }, { "::g", false }, { "", false },
	      { "::ffff:1.2.3.4", true }, { "1.2.3.4", false }, { "fe80::1%eth0", false },
	      { "0000000000000000000000000000000000000000000000000000000000000000", false });
	CHECK("cidr", { "1.2.3.4/0", true }, { "1.2.3.4/32", true }, { "1.2.3.4/33", false },
	      { "::/0", true }, { "::/128", true }, { "::/129", false }, { "1.2.3.4", false },
	      { "1.2.3.4/", false }, { "/8", false }, { "1.2.3/8", false }, { "1.2.3.4/x", false },
	      { "1.2.3.4/8x", false }, { "1.2.3.4/-1", false }, { "", false }, { "x/8", false });
	CHECK("mac", { "00:11:22:33:44:55", true }, { "aA-Bb-cC-Dd-eE-Ff", true }, { "0011.2233.4455", true },
	      { "00:11:22:33:44:55:66:77", true }, { "00-11-22-33-44-55-66-77", true },
	      { "0011.2233.4455.6677", true }, { "00:11:22:33:44", false }, { "00:11:22:33:44-55", false },
	      { "00:11:22:33:44:5g", false }, { "001122334455", false }, { "", false },
	      { "00:11:22:33:44:55:66:77:88:99:aa:bb:cc:dd:ee:ff:00:11:22:33", true },
	      { "00:11:22:33:44:55:", false });
	CHECK("hostname", { "a", true }, { "a1", true }, { "1", true }, { "a-b", true }, { "a-1b", true },
	      { "ab-c", false }, { "a-", true }, { "a--", false }, { "-a", false }, { "", false },
	      { ".", false }, { "a.", false }, { ".com", false }, { "a.b", false }, { "a.bc", true },
	      { "a.b1", false }, { "a.b-c", false }, { "a-b.com", true }, { "-b.com", false },
	      { "b-.com", false }, { "a..com", false }, { "a_b.com", false }, { "a_", false },
	      { "a.b.com", true }, { "a.com.", false }, { "\xC3\xA9.com", true },
	      { "a.\xC3\xA9\xC3\xA9", true }, { SIXTY "abc", true }, { SIXTY "abcd", false },
	      { SIXTY "abc.com", true }, { SIXTY "abcd.com", false }, { "a." SIXTY "abc", true },
	      { "a." SIXTY "abcd", false }, { "[.com", false }, { "a.c@", false }, { "a.c[", false },
	      { "a.`c", false }, { "a.{c", false }, { "a.zZ", true },
	      { SIXTY "." SIXTY "." SIXTY "." SIXTY "." TEN, true },
	      { SIXTY "." SIXTY "." SIXTY "." SIXTY "." TEN "a", true },
	      { SIXTY "." SIXTY "." SIXTY "." SIXTY "." TEN "ab", false });
	CHECK("uri", { "http://a/b", true }, { "/a", true }, { "a", false }, { "*", true }, { "**", false },
	      { "", false }, { ":a", false }, { "a:", true }, { "a:b", true }, { "a1+-.:b", true },
	      { "1a:b", false }, { "+a:b", false }, { "a b:c", false }, { "/a b", true }, { "/a\x1f", false },
	      { "/a\x7f", false }, { "/%41", true }, { "/%4", false }, { "/%4g", false }, { "/%", false },
	      { "/?%", true }, { "http://a:80", true }, { "http://a:", true }, { "http://a:8x", false },
	      { "http://u:p@a:80/x", true }, { "http://u@a:x", false }, { "http://a b/", false },
	      { "http://a\"/", false }, { "http://a<b/", false }, { "http://[::1]", true },
	      { "http://[::1]:80/", true }, { "http://[::1]x", false }, { "http://[::1/", false },
	      { "http://%41/", true }, { "http://%4/", false }, { "http:///x", true }, { "http://", true },
	      { "//a:x/", true }, { "http://a?x:y", true }, { "http:/a:x", true }, { "http://a^/", false },
	      { "http://a|/", false }, { "http://[::1]:8a", false });
	CHECK("email", { "a@b", true }, { "a.b@c.d", true }, { "a", false }, { "a@", false }, { "@b", false },
	      { "", false }, { " a@b\t", true }, { "\ta@b ", true }, { "a b@c", false }, { "a@b c", false },
	      { ".a@b", false }, { "a.@b", false }, { "a..b@c", false }, { "a@b.", false }, { "a@.b", false },
	      { "a@b..c", false }, { "<a@b>", true }, { "Name <a@b>", true }, { "N@me <a@b>", false },
	      { "a@b>", false }, { "<a@b", false }, { "\"a b\"@c", true }, { "\"a\"b\"@c", false },
	      { "\"@c", false }, { "\"\"@c", true }, { "a@[1.2.3.4]", true }, { "a@[::1]", true },
	      { "a@[1.2.3]", false }, { "a@[]", false }, { "a@[1.2.3.4", false },
	      { "a!#$%&'*+-/=?^_`{|}~@b", true }, { "a(@b", false }, { "a,@b", false },
	      { "\xC3\xA9@b", true }, { "a@b@c", false }, { "  a@b  ", true }, { "<>", false });
}

static void numbers_and_the_like(void **state)
{
	CHECK("uuid", { "0f0e0d0c-0b0a-4908-8706-050403020100", true },
	      { "0f0e0d0c0b0a49088706050403020100", true }, { "0F0E0D0C-0b0a49088706-050403020100", true },
	      { "0f0e0d0c-0b0a-4908-8706-05040302010", false },
	      { "0f0e0d0c-0b0a-4908-8706-0504030201000", false },
	      { "-0f0e0d0c-0b0a-4908-8706-050403020100", false },
	      { "0f0e0d0g-0b0a-4908-8706-050403020100", false },
	      { "0f0e0d0-c0b0a-4908-8706-050403020100", false }, { "", false },
	      { "0f0e0d0c--0b0a-4908-8706-050403020100", false });
	CHECK("uuid3", { "0f0e0d0c-0b0a-3908-0706-050403020100", true },
	      { "0f0e0d0c-0b0a-4908-8706-050403020100", false });
	CHECK("uuid4", { "0f0e0d0c-0b0a-4908-8706-050403020100", true },
	      { "0f0e0d0c-0b0a-4908-9706-050403020100", true },
	      { "0f0e0d0c-0b0a-4908-A706-050403020100", true },
	      { "0f0e0d0c-0b0a-4908-b706-050403020100", true },
	      { "0f0e0d0c-0b0a-4908-7706-050403020100", false },
	      { "0f0e0d0c-0b0a-4908-c706-050403020100", false },
	      { "0f0e0d0c-0b0a-5908-8706-050403020100", false });
	CHECK("uuid5", { "0f0e0d0c-0b0a-5908-8706-050403020100", true },
	      { "0f0e0d0c-0b0a-5908-0706-050403020100", false },
	      { "0f0e0d0c-0b0a-4908-8706-050403020100", false });
	CHECK("isbn10", { "0321751043", true }, { "0-321-75104-3", true }, { "0321751044", false },
	      { "032175104", false }, { "03217510433", false }, { "080442957X", true },
	      { "080442957x", false }, { "X804429570", false }, { "0 3217 51043", true },
	      { "978-0321751041", false }, { "032175104a", false }, { "", false });
	CHECK("isbn13", { "978-0321751041", true }, { "9780321751041", true }, { "978 0321751041", true },
	      { "9780321751042", false }, { "978032175104", false }, { "97803217510411", false },
	      { "978032175104X", false }, { "0321751043", false });
	CHECK("isbn", { "0321751043", true }, { "9780321751041", true }, { "0321751044", false },
	      { "9780321751042", false }, { "", false });
	CHECK("creditcard", { "4111 1111 1111 1111", true }, { "4111111111111111", true },
	      { "4111111111111112", false }, { "4222222222222", true }, { "422222222222", false },
	      { "378282246310005", true }, { "5555555555554444", true }, { "6011111111111117", true },
	      { "0000000000000000", false }, { "7000000000000005", false }, { "41111111111111110", false },
	      { "1000000000009", true }, { "", false }, { "6000000000004", true },
	      { "7000000000003", false });
	CHECK("ssn", { "123456789", true }, { "123-45-6789", true }, { "123 45 6789", true },
	      { "12345-6789", true }, { "123-456789", true }, { "12345678", false }, { "1234567890", false },
	      { "123-45-67890", false }, { "123-45-678", false }, { "12-345-6789", false },
	      { "123-4-56789", false }, { "123-45-678x", false }, { "", false }, { "123.45.6789", false },
	      { "12345 6789", true }, { "123--456789", false });
	CHECK("hexcolor", { "#fff", true }, { "fff", true }, { "#FFFFFF", true }, { "ffffff", true },
	      { "#ff", false }, { "#ffff", false }, { "#fffff", false }, { "#fffffff", false },
	      { "#ggg", false }, { "##fff", false }, { "", false }, { "#", false });
	CHECK("rgbcolor", { "rgb(1,2,3)", true }, { "rgb(0,0,0)", true }, { "rgb(255,255,255)", true },
	      { "rgb(256,2,3)", false }, { "rgb( 1 , 2\t, 3 )", true }, { "rgb(01,2,3)", false },
	      { "rgb(1,2)", false }, { "rgb(1,2,3,4)", false }, { "rgb(1,2,3", false },
	      { "rgba(1,2,3)", false }, { "rgb(1,,3,)", false }, { "rgb(a,2,3)", false },
	      { "rgb(1,2,3))", false }, { "rgb(1.2,3)", false }, { "", false }, { "rgb(0001,2,3)", false },
	      { "rgb(10,20,30)", true }, { "rgb(,2,3,4)", false });
	CHECK("byte", { "YWI=", true }, { "YQ==", true }, { "YWJj", true }, { "+/aA", true },
	      { "zZ09", true }, { "YW", false }, { "", false }, { "Y===", false }, { "=WJj", false },
	      { "Y=Jj", false }, { "YW-j", false }, { "YWJjY", false }, { "YWJjYQ==", true },
	      { "====", false });
	CHECK("bsonobjectid", { "507f1f77bcf86cd799439011", true }, { "507f1f77bcf86cd79943901", false },
	      { "507f1f77bcf86cd7994390111", false }, { "507f1f77bcf86cd79943901g", false },
	      { "507F1F77BCF86CD799439011", true });
	CHECK("password", { "", true }, { "x", true });
	CHECK("k8s-short-name", { "a", true }, { "a-1", true }, { "a.b", false }, { "-a", false },
	      { "A", false });
	CHECK("k8s-long-name", { "a.b", true }, { "a..b", false }, { "A", false });
}

static void which_are_known(void **state)
{
	static const struct {
		const char	    *format;
		enum vdi_schema_type type;
		bool		     is_known;
	} rows[] = {
		{ "date-time", VDI_TYPE_STRING, true },
		{ "datetime", VDI_TYPE_STRING, true },
		{ "--date--time--", VDI_TYPE_STRING, true },
		{ "date-time", VDI_TYPE_NONE, true },
		{ "date-time", VDI_TYPE_INTEGER, false },
		{ "nobody", VDI_TYPE_STRING, false },
		{ "", VDI_TYPE_STRING, false },
		{ "-", VDI_TYPE_STRING, false },
		{ "dat", VDI_TYPE_STRING, false },
		{ "dates", VDI_TYPE_STRING, false },
		{ "int32", VDI_TYPE_INTEGER, true },
		{ "int64", VDI_TYPE_INTEGER, true },
		{ "int16", VDI_TYPE_INTEGER, false },
		{ "int32", VDI_TYPE_STRING, false },
		{ "float", VDI_TYPE_NUMBER, true },
		{ "double", VDI_TYPE_NUMBER, true },
		{ "int32", VDI_TYPE_NUMBER, false },
		{ "float", VDI_TYPE_INTEGER, false },
		{ "date", VDI_TYPE_ARRAY, false },
		{ "date", VDI_TYPE_OBJECT, false },
		{ "date", VDI_TYPE_BOOLEAN, false },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", VDI_TYPE_STRING, false },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		if (vdi_schema_format_is_known(vd_bytes_of(rows[i].format), rows[i].type) != rows[i].is_known)
			fail_msg("%s of %d", rows[i].format, rows[i].type);
	assert_true(vdi_schema_format_holds(vd_bytes_of("nobody"), vd_bytes_of("x")));
}

/* The empty text, whatever bytes are behind it. */
static void the_empty_text(void **state)
{
	static const char *const       formats[] = { "bsonobjectid",
						     "cidr",
						     "creditcard",
						     "date",
						     "date-time",
						     "duration",
						     "email",
						     "hexcolor",
						     "hostname",
						     "ipv4",
						     "ipv6",
						     "isbn",
						     "isbn10",
						     "isbn13",
						     "mac",
						     "rgbcolor",
						     "ssn",
						     "uri",
						     "uuid",
						     "uuid3",
						     "uuid4",
						     "uuid5",
						     "k8s-short-name",
						     "k8s-long-name",
						     "datetime" };
	static const struct format_row none[] = { { "", false } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(formats); i++)
		check(formats[i], none, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_empty_text),  cmocka_unit_test(times),
		cmocka_unit_test(addresses),	   cmocka_unit_test(numbers_and_the_like),
		cmocka_unit_test(which_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
