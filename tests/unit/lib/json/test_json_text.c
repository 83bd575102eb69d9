/* Unit tests of lib/json/json_text.c. */
#include "vdtest.h"

#include "json_text.h"

static void h703_strings_are_unescaped(void **state)
{
	static const struct {
		const char *text;
		const char *plain;
		size_t	    size; /* 0: strlen */
	} rows[] = {
		{ "", "", 0 },
		{ "plain", "plain", 0 },
		{ "\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t", 0 },
		{ "\\u006eame", "name", 0 },
		{ "\\u00e9\\u20AC", "\xc3\xa9\xe2\x82\xac", 0 },
		{ "\\ud83d\\ude00", "\xf0\x9f\x98\x80", 0 },
		{ "a\\u0000b", "a\0b", 3 },
		{ "\\u07ff\\u0800\\uffff", "\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf", 0 },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		char   plain[64];
		size_t size = rows[i].size ? rows[i].size : strlen(rows[i].plain);

		assert_int_equal(vdi_json_unescape(vd_bytes_of(rows[i].text), plain), size);
		assert_memory_equal(plain, rows[i].plain, size);
		/* In place. */
		memcpy(plain, rows[i].text, strlen(rows[i].text));
		assert_int_equal(vdi_json_unescape((struct vd_bytes) { plain, strlen(rows[i].text) }, plain),
				 size);
		assert_memory_equal(plain, rows[i].plain, size);
	}
}

static void unescape_of_nonsense_stays_in_bounds(void **state)
{
	static const char *const texts[] = { "\\",	"\\u",	     "\\u1",	   "\\u123",	    "\\u12g4",
					     "\\ud83d", "\\ud83d\\", "\\ud83d\\u", "\\ud83d\\ude0", "\\q" };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(texts); i++) {
		size_t size = strlen(texts[i]);
		char  *in = malloc(size);
		char  *out = malloc(size);

		memcpy(in, texts[i], size);
		assert_true(vdi_json_unescape((struct vd_bytes) { in, size }, out) <= size);
		free(in);
		free(out);
	}
}

static void quote_as_go_does(void **state)
{
	static const struct {
		const char *text;
		size_t	    size;
		const char *quoted;
	} rows[] = {
		{ "", 0, "\"\"" },
		{ "plain/text", 10, "\"plain/text\"" },
		{ "a\0b", 3, "\"a\\u0000b\"" },
		{ "\"\\\b\f\n\r\t\x1f\x7f", 9, "\"\\\"\\\\\\b\\f\\n\\r\\t\\u001f\x7f\"" },
		{ "<a&b>", 5, "\"\\u003ca\\u0026b\\u003e\"" },
		{ "\xc3\xa9\xf0\x9f\x98\x80", 6, "\"\xc3\xa9\xf0\x9f\x98\x80\"" },
		{ "\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa", 9, "\"\\u2028\\u2029\xe2\x80\xaa\"" },
		{ "\xff\xc3", 2, "\"\\ufffd\\ufffd\"" },
		{ "\xed\xa0\x80", 3, "\"\\ufffd\\ufffd\\ufffd\"" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		char   quoted[VDI_JSON_QUOTED_MAX(16)];
		size_t size = vdi_json_quote((struct vd_bytes) { rows[i].text, rows[i].size }, quoted);

		assert_int_equal(size, strlen(rows[i].quoted));
		assert_memory_equal(quoted, rows[i].quoted, size);
	}
}

static void minify_takes_only_white_space_out(void **state)
{
	static const struct {
		const char *json;
		const char *minified;
	} rows[] = {
		{ "", "" },
		{ " \n", "" },
		{ "{}", "{}" },
		{ " { \"b\" : 1.0e+05 ,\t\"a\" : [ 1 , \" x  \\\" \" ] }\r\n",
		  "{\"b\":1.0e+05,\"a\":[1,\" x  \\\" \"]}" },
		{ "[ \"\\\\\" , \" \" ]", "[\"\\\\\",\" \"]" },
		{ "\"torn ", "\"torn " },
		{ "\"torn\\", "\"torn\\" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		size_t size = strlen(rows[i].json);
		char  *text = malloc(size + 1);
		size_t written = vdi_json_minify(vd_bytes_of(rows[i].json), text);

		assert_int_equal(written, strlen(rows[i].minified));
		assert_memory_equal(text, rows[i].minified, written);
		memcpy(text, rows[i].json, size);
		assert_int_equal(vdi_json_minify((struct vd_bytes) { text, size }, text), written);
		assert_memory_equal(text, rows[i].minified, written);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h703_strings_are_unescaped),
		cmocka_unit_test(unescape_of_nonsense_stays_in_bounds),
		cmocka_unit_test(quote_as_go_does),
		cmocka_unit_test(minify_takes_only_white_space_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
