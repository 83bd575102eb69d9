/* Unit tests of lib/base/base64.c. */
#include "vdtest.h"

#include "base64.h"

static void rfc4648_vectors(void **state)
{
	static const char *const rows[][3] = {
		{ "", "", "" },
		{ "f", "Zg==", "Zg" },
		{ "fo", "Zm8=", "Zm8" },
		{ "foo", "Zm9v", "Zm9v" },
		{ "foob", "Zm9vYg==", "Zm9vYg" },
		{ "fooba", "Zm9vYmE=", "Zm9vYmE" },
		{ "foobar", "Zm9vYmFy", "Zm9vYmFy" },
		{ "\xfb\xff\xbf", "+/+/", "-_-_" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		for (int kind = 0; kind < 2; kind++) {
			char   text[16];
			char   bytes[16];
			size_t size = vdi_base64_encode(kind, vd_bytes_of(rows[i][0]), text);

			assert_int_equal(size, strlen(rows[i][1 + kind]));
			assert_memory_equal(text, rows[i][1 + kind], size);
			assert_status(
				vdi_base64_decode(kind, (struct vd_bytes) { text, size }, bytes, &size, NULL),
				VD_OK);
			assert_int_equal(size, strlen(rows[i][0]));
			assert_memory_equal(bytes, rows[i][0], size);
		}
	}
}

static void wrong_texts_are_refused_with_their_place(void **state)
{
	static const struct {
		int	    kind;
		const char *text;
		size_t	    error_at;
	} rows[] = {
		{ VDI_BASE64_STANDARD, "Zg", 2 },    { VDI_BASE64_STANDARD, "Zg=", 3 },
		{ VDI_BASE64_STANDARD, "Zg===", 5 }, { VDI_BASE64_STANDARD, "====", 0 },
		{ VDI_BASE64_STANDARD, "Z===", 1 },  { VDI_BASE64_STANDARD, "Zh==", 1 },
		{ VDI_BASE64_STANDARD, "Zm9=", 2 },  { VDI_BASE64_STANDARD, "Zm-v", 2 },
		{ VDI_BASE64_STANDARD, "Zm\nv", 2 }, { VDI_BASE64_STANDARD, "Zg==Zg==", 2 },
		{ VDI_BASE64_URL, "Zg==", 2 },	     { VDI_BASE64_URL, "Z", 1 },
		{ VDI_BASE64_URL, "Zm9vZ", 5 },	     { VDI_BASE64_URL, "Zh", 1 },
		{ VDI_BASE64_URL, "Zm9", 2 },	     { VDI_BASE64_URL, "Zm+v", 2 },
		{ VDI_BASE64_URL, " Zm9v", 0 },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		char   bytes[16];
		size_t size = 99;
		size_t error_at = 99;

		assert_status(
			vdi_base64_decode(rows[i].kind, vd_bytes_of(rows[i].text), bytes, &size, &error_at),
			VD_BAD_REQUEST);
		assert_int_equal(error_at, rows[i].error_at);
		assert_int_equal(size, 99);
	}
}

static void every_short_value_survives(void **state)
{
	(void) state;
	for (uint32_t value = 0; value < 1u << 16; value++) {
		uint8_t in[2] = { (uint8_t) (value >> 8), (uint8_t) value };
		char	text[8];
		uint8_t out[8];
		size_t	size;

		for (int kind = 0; kind < 2; kind++) {
			size = vdi_base64_encode(kind, (struct vd_bytes) { in, 2 }, text);
			assert_true(size <= VDI_BASE64_ENCODED_MAX(2));
			assert_status(
				vdi_base64_decode(kind, (struct vd_bytes) { text, size }, out, &size, NULL),
				VD_OK);
			assert_int_equal(size, 2);
			assert_memory_equal(in, out, 2);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rfc4648_vectors),
		cmocka_unit_test(wrong_texts_are_refused_with_their_place),
		cmocka_unit_test(every_short_value_survives),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
