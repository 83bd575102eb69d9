/* Unit tests of lib/base/status.c: what an error holds, and where a long message is cut. */
#include "vdtest.h"

static void an_error_holds_its_code_and_message_only(void **state)
{
	struct vd_error error;

	memset(&error, 0x5A, sizeof error);
	assert_status(vd_error_set(&error, VD_EXPIRED, "%s and %d", "a", 7), VD_EXPIRED);
	assert_status(error.code, VD_EXPIRED);
	assert_string_equal(error.message, "a and 7");
	assert_int_equal(error.requested, 0);
	assert_int_equal(error.current, 0);
	assert_int_equal(error.retry_after_s, 0);
	assert_status(vd_error_set(NULL, VD_NOMEM, "%s", "a"), VD_NOMEM);
	assert_status(vd_error_set(&error, VD_NOMEM, "%s", ""), VD_NOMEM);
	assert_string_equal(error.message, "");
}

/* A message that is too long is cut before the character that does not fit. */
static void a_long_message_is_cut_at_a_character(void **state)
{
	static const char *const characters[] = {
		"x", "\xC3\xA9", "\xE0\xA4\x85", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xC2\x80"
	};
	const size_t room = sizeof((struct vd_error *) NULL)->message - 1;

	for (size_t kind = 0; kind < VDI_ARRAY_SIZE(characters); kind++) {
		size_t width = strlen(characters[kind]);

		for (size_t offset = 0; offset < 4; offset++)
			for (size_t size = room - 6; size <= room + 6; size++) {
				struct vd_error error;
				char		text[sizeof error.message + 16];
				size_t		at = 0, fits;

				while (at < offset)
					text[at++] = '-';
				while (at + width <= size) {
					memcpy(text + at, characters[kind], width);
					at += width;
				}
				text[at] = 0;
				fits = at <= room ? at : offset + (room - offset) / width * width;
				(void) vd_error_set(&error, VD_INVALID, "%s", text);
				assert_int_equal(strlen(error.message), fits);
				assert_memory_equal(error.message, text, fits);
			}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_holds_its_code_and_message_only),
		cmocka_unit_test(a_long_message_is_cut_at_a_character),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
