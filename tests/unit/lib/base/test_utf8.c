/* Unit tests of lib/base/utf8.c: every code point, and what is no UTF-8. */
#include "utf8.h"
#include "vdtest.h"

/* Against the definition: a code point is fine unless it is a surrogate, and its encoding is the shortest. */
static void h701_utf8_every_code_point(void **state)
{
	(void) state;
	for (uint32_t code = 0; code <= 0x110000; code++) {
		uint8_t text[4];
		size_t	length;

		if (code < 0x80) {
			text[0] = (uint8_t) code;
			length = 1;
		} else if (code < 0x800) {
			text[0] = (uint8_t) (0xC0 | code >> 6);
			text[1] = (uint8_t) (0x80 | (code & 0x3F));
			length = 2;
		} else if (code < 0x10000) {
			text[0] = (uint8_t) (0xE0 | code >> 12);
			text[1] = (uint8_t) (0x80 | (code >> 6 & 0x3F));
			text[2] = (uint8_t) (0x80 | (code & 0x3F));
			length = 3;
		} else {
			text[0] = (uint8_t) (0xF0 | code >> 18);
			text[1] = (uint8_t) (0x80 | (code >> 12 & 0x3F));
			text[2] = (uint8_t) (0x80 | (code >> 6 & 0x3F));
			text[3] = (uint8_t) (0x80 | (code & 0x3F));
			length = 4;
		}
		if (vdi_utf8_character(text, length) !=
		    (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000) ? 0 : length))
			fail_msg("U+%04X", code);
		if (code <= 0x10FFFF && (code < 0xD800 || code >= 0xE000)) {
			uint8_t put[4];

			assert_int_equal(vdi_utf8_put(put, code), length);
			assert_memory_equal(put, text, length);
		}
		if (length > 1)
			assert_int_equal(vdi_utf8_character(text, length - 1), 0);
	}
	assert_true(vdi_utf8_valid(VD_BYTES_NONE));
	assert_true(vdi_utf8_valid(vd_bytes_of("a\xc3\xa9")));
	assert_false(vdi_utf8_valid(vd_bytes_of("a\xc3")));
	assert_false(vdi_utf8_valid(vd_bytes_of("\xc0\x80")));
	assert_false(vdi_utf8_valid(vd_bytes_of("\xe0\x80\x80")));
	assert_false(vdi_utf8_valid(vd_bytes_of("\xf0\x80\x80\x80")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h701_utf8_every_code_point),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
