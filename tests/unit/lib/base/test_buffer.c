/* Unit tests of lib/base/buffer.c. */
#include <jansson.h>

#include "buffer.h"
#include "vdtest.h"

static void expect(struct vdi_buffer *buffer, const char *content)
{
	assert_status(vdi_buffer_status(buffer), VD_OK);
	assert_int_equal(buffer->size, strlen(content));
	if (*content)
		assert_memory_equal(buffer->data, content, strlen(content));
	vdi_buffer_clear(buffer);
}

static void pieces_come_out_in_order(void **state)
{
	struct vdi_buffer buffer;
	int64_t		  live = vdi_alloc_live();

	(void) state;
	vdi_buffer_init(&buffer, 1 << 20);
	assert_int_equal(vdi_buffer_bytes(&buffer).size, 0);
	vdi_buffer_append_text(&buffer, "a");
	vdi_buffer_append(&buffer, VD_BYTES_NONE);
	vdi_buffer_append_char(&buffer, 'b');
	vdi_buffer_append_u64(&buffer, UINT64_MAX);
	vdi_buffer_append_i64(&buffer, INT64_MIN);
	vdi_buffer_append_i64(&buffer, 0);
	vdi_buffer_printf(&buffer, "%s=%d", "c", 5);
	expect(&buffer, "ab18446744073709551615-92233720368547758080c=5");
	vdi_buffer_printf(&buffer, "%0600d", 7); /* longer than what printf keeps on the stack */
	assert_int_equal(buffer.size, 600);
	vdi_buffer_fini(&buffer);
	assert_int_equal(vdi_alloc_live(), live);
}

static void json_strings_are_escaped(void **state)
{
	static const struct {
		const char *text;
		const char *json;
	} cases[] = {
		{ "", "\"\"" },
		{ "plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xb4",
		  "\"plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xb4\"" },
		{ "\"\\\b\f\n\r\t\x01\x1f\x7f", "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"" },
		{ "a\xff"
		  "b\xc3",
		  "\"a\\ufffdb\\ufffd\"" },				    /* bad byte, cut character */
		{ "\xc0\x80", "\"\\ufffd\\ufffd\"" },			    /* overlong */
		{ "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"" },	    /* surrogate */
		{ "\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"" }, /* beyond Unicode */
	};
	struct vdi_buffer buffer;

	(void) state;
	vdi_buffer_init(&buffer, 1 << 20);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		vdi_buffer_append_json_string(&buffer, vd_bytes_of(cases[i].text));
		expect(&buffer, cases[i].json);
	}
	vdi_buffer_fini(&buffer);
}

/* Whatever bytes come, a strict parser accepts the result. */
static void any_bytes_make_valid_json(void **state)
{
	struct vdi_buffer buffer;
	uint64_t	  seed = 1;

	(void) state;
	vdi_buffer_init(&buffer, 1 << 20);
	for (int round = 0; round < 3000; round++) {
		unsigned char text[24];
		json_t	     *parsed;

		for (size_t i = 0; i < sizeof text; i++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			text[i] = (unsigned char) ((seed >> 33) % 3 ? seed >> 40 | 0x80 : seed >> 40);
		}
		vdi_buffer_append_json_string(&buffer, (struct vd_bytes) { text, sizeof text });
		parsed = json_loadb(buffer.data, buffer.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
		assert_non_null(parsed);
		json_decref(parsed);
		vdi_buffer_clear(&buffer);
	}
	vdi_buffer_fini(&buffer);
}

static void the_ceiling_holds_and_the_failure_sticks(void **state)
{
	struct vdi_buffer buffer;
	struct vd_blob	 *blob = NULL;

	(void) state;
	vdi_buffer_init(&buffer, 10);
	vdi_buffer_append_text(&buffer, "12345678");
	vdi_buffer_append_json_string(&buffer, vd_bytes_of("x")); /* needs 3 */
	assert_status(vdi_buffer_status(&buffer), VD_TOO_BIG);
	assert_int_equal(buffer.size, 8);
	vdi_buffer_append_text(&buffer, "9");
	vdi_buffer_append_i64(&buffer, -1);
	vdi_buffer_printf(&buffer, "9");
	assert_null(vdi_buffer_reserve(&buffer, 1));
	assert_int_equal(buffer.size, 8);
	assert_status(vdi_buffer_take_blob(&buffer, &blob), VD_TOO_BIG);
	assert_null(blob);
	vdi_buffer_clear(&buffer);
	vdi_buffer_append_text(&buffer, "1234567890");
	assert_status(vdi_buffer_status(&buffer), VD_OK);
	vdi_buffer_append_char(&buffer, '1');
	assert_status(vdi_buffer_status(&buffer), VD_TOO_BIG);
	vdi_buffer_fini(&buffer);
}

static void a_blob_takes_the_content(void **state)
{
	struct vdi_buffer buffer;
	struct vd_blob	 *blob = NULL;
	char		 *room;

	(void) state;
	vdi_buffer_init(&buffer, 100);
	room = vdi_buffer_reserve(&buffer, 5);
	memcpy(room, "hello", 5);
	vdi_buffer_commit(&buffer, 5);
	assert_status(vdi_buffer_take_blob(&buffer, &blob), VD_OK);
	assert_true(vd_bytes_equal(vd_blob_bytes(blob), vd_bytes_of("hello")));
	assert_int_equal(buffer.size, 0);
	vd_blob_unref(blob);
	vdi_buffer_fini(&buffer);
}

static void a_failed_allocation_keeps_what_was_there(void **state)
{
	bool failed = true;

	(void) state;
	for (uint64_t nth = 1; failed; nth++) {
		struct vdi_buffer buffer;
		int64_t		  live = vdi_alloc_live();

		vdi_buffer_init(&buffer, 1 << 20);
		vdi_alloc_fail_nth(nth, 1);
		vdi_buffer_append_text(&buffer, "first");
		for (int i = 0; i < 10; i++)
			vdi_buffer_printf(&buffer, "%0300d", i);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(vdi_buffer_status(&buffer), failed ? VD_NOMEM : VD_OK);
		if (!failed)
			assert_int_equal(buffer.size, 3005);
		else if (nth > 1)
			assert_int_equal((buffer.size - 5) % 300, 0);
		vdi_buffer_fini(&buffer);
		assert_int_equal(vdi_alloc_live(), live);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_come_out_in_order),
		cmocka_unit_test(json_strings_are_escaped),
		cmocka_unit_test(any_bytes_make_valid_json),
		cmocka_unit_test(the_ceiling_holds_and_the_failure_sticks),
		cmocka_unit_test(a_blob_takes_the_content),
		cmocka_unit_test(a_failed_allocation_keeps_what_was_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
