/* Unit tests of lib/rpc/http2/h2_server_header.c. */
#include "h2_server_state.h"
#include "vdtest.h"

/* gRPC's "TimeoutValue TimeoutUnit": one to eight digits and one letter. */
static void timeouts(void **state)
{
	static const struct {
		const char *text;
		int64_t	    ns; /* -1: malformed */
	} cases[] = { { "1n", 1 },
		      { "1u", 1000 },
		      { "1m", 1000000 },
		      { "1S", 1000000000 },
		      { "1M", 60000000000 },
		      { "1H", 3600000000000 },
		      { "0S", 0 },
		      { "12345678m", 12345678000000 },
		      { "99999999S", 99999999000000000 },
		      { "123456789n", -1 },
		      { "00000001S", 1000000000 },
		      { "000000001S", -1 },
		      { "", -1 },
		      { "1", -1 },
		      { "S", -1 },
		      { "1s", -1 },
		      { "1h", -1 },
		      { "1N", -1 },
		      { "-1S", -1 },
		      { "1 S", -1 },
		      { "/S", -1 },
		      { ":S", -1 },
		      { "1.5S", -1 },
		      { "1SS", -1 },
		      { "9H", 9 * 3600000000000 },
		      { "640511H", 640511 * 3600000000000 },
		      { "99999999H", INT64_MAX / 4 },
		      { "99999999M", INT64_MAX / 4 } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		vd_dur timeout = { -1 };
		bool   is_one = vdi_h2_timeout_parse(vd_bytes_of(cases[i].text), &timeout);

		if (is_one != (cases[i].ns >= 0) || timeout.ns != cases[i].ns)
			fail_msg("%s: %lld", cases[i].text, (long long) timeout.ns);
	}
}

/* It stands in the middle of other headers. */
static void a_timeout_ends_where_its_text_ends(void **state)
{
	vd_dur timeout;

	(void) state;
	assert_false(vdi_h2_timeout_parse((struct vd_bytes) { "5S", 1 }, &timeout));
	assert_true(vdi_h2_timeout_parse((struct vd_bytes) { "5S0", 2 }, &timeout));
	assert_int_equal(timeout.ns, 5000000000);
}

/* Printable ASCII as it is, but for the percent sign; all else as %XX. */
static void each_byte_of_a_message_is_encoded(void **state)
{
	(void) state;
	for (int c = 1; c < 256; c++) {
		char   message[2] = { (char) c, 0 }, text[16] = "", expected[16];
		size_t size = vdi_h2_status_encode(message, text, sizeof text);

		snprintf(expected, sizeof expected, c >= 0x20 && c <= 0x7e && c != '%' ? "%c" : "%%%02X", c);
		assert_int_equal(size, strlen(expected));
		assert_memory_equal(text, expected, size);
	}
}

/* What does not fit is left out, and no byte is cut in two. */
static void a_message_is_cut_to_the_room(void **state)
{
	static const struct {
		const char *message, *text;
		size_t	    room;
	} cases[] = { { "abc", "abc", 3 },    { "abc", "ab", 2 }, { "abc", "", 0 },
		      { "a\n", "a%0A", 4 },   { "a\n", "a", 3 },  { "a\nb", "a%0A", 4 },
		      { "a\nb", "a%0Ab", 5 }, { "\n", "%0A", 3 }, { "\n", "", 2 },
		      { "\n\n", "%0A", 5 },   { "", "", 3 } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		char   text[16];
		size_t size;

		memset(text, '#', sizeof text);
		size = vdi_h2_status_encode(cases[i].message, text, cases[i].room);
		if (size != strlen(cases[i].text) || memcmp(text, cases[i].text, size) != 0)
			fail_msg("%zu: %.*s, not %s", i, (int) size, text, cases[i].text);
		assert_int_equal(text[cases[i].room], '#');
	}
}

/* The service gets the client's own metadata, and nothing that belongs to HTTP or gRPC. */
static void headers_of_the_protocol_are_no_metadata(void **state)
{
	static const char *const  protocol[] = { ":scheme",	 ":authority",	":x",
						 "te",		 "user-agent",	"grpc-accept-encoding",
						 "grpc-timeout", "content-type" };
	static const char *const  own[] = { "t",	   "tee",	   "user-agen",	   "user-agents",
					    "grpc-accept", "x-user-agent", "authorization" };
	struct vdi_h2_server_call call = { 0 };

	(void) state;
	call.text = call.room;
	call.text_capacity = sizeof call.room;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(protocol); i++) {
		const char *value = i < 6 ? "v" : i == 6 ? "1S" : "application/grpc";

		assert_true(vdi_h2_server_call_header(&call, vd_bytes_of(protocol[i]), vd_bytes_of(value)));
		if (call.text_size)
			fail_msg("%s", protocol[i]);
	}
	assert_false(call.is_refused);
	assert_int_equal(call.timeout.ns, 1000000000);
	assert_true(call.has_content_type);
	assert_true(call.is_grpc);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(own); i++) {
		size_t before = call.text_size;

		assert_true(vdi_h2_server_call_header(&call, vd_bytes_of(own[i]), vd_bytes_of("v")));
		assert_int_equal(call.text_size, before + strlen(own[i]) + 1 + sizeof(uint32_t) + 1);
		assert_string_equal(call.text + before, own[i]);
		assert_int_equal(call.text[call.text_size - 1], 'v');
	}
	if (call.text != call.room)
		vdi_free(call.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timeouts),
		cmocka_unit_test(a_timeout_ends_where_its_text_ends),
		cmocka_unit_test(each_byte_of_a_message_is_encoded),
		cmocka_unit_test(headers_of_the_protocol_are_no_metadata),
		cmocka_unit_test(a_message_is_cut_to_the_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
