/* Unit tests of lib/base/varint.h. */
#include "varint.h"
#include "vdtest.h"

static void every_size_comes_back(void **state)
{
	uint8_t bytes[VDI_VARINT_SIZE_MAX];

	(void) state;
	for (unsigned bits = 0; bits <= 64; bits++) {
		uint64_t       number = bits == 64 ? UINT64_MAX : ((uint64_t) 1 << bits) - 1, got = 0;
		size_t	       size = vdi_varint_size(number);
		const uint8_t *at = bytes;

		assert_int_equal(size, bits == 0 ? 1 : (bits + 6) / 7);
		assert_ptr_equal(vdi_varint_put(bytes, number), bytes + size);
		assert_int_equal(vdi_varint_read(bytes, bytes + size, &got), size);
		assert_true(got == number);
		got = 0;
		assert_true(vdi_varint_take(&at, bytes + size, &got));
		assert_ptr_equal(at, bytes + size);
		assert_true(got == number);
		for (size_t cut = 0; cut < size; cut++) {
			at = bytes;
			assert_int_equal(vdi_varint_read(bytes, bytes + cut, &got), 0);
			assert_false(vdi_varint_take(&at, bytes + cut, &got));
			assert_ptr_equal(at, bytes);
		}
	}
}

static void what_is_too_long(void **state)
{
	uint8_t	       bytes[12];
	const uint8_t *at = bytes;
	uint64_t       number = 7;

	(void) state;
	memset(bytes, 0x80, sizeof bytes);
	assert_int_equal(vdi_varint_read(bytes, bytes + sizeof bytes, &number), 0);
	assert_int_equal(number, 7);
	bytes[9] = 2; /* bit 64 */
	assert_int_equal(vdi_varint_read(bytes, bytes + sizeof bytes, &number), 10);
	assert_true(number == 0);
	assert_false(vdi_varint_take(&at, bytes + sizeof bytes, &number));
	assert_ptr_equal(at, bytes);
	bytes[9] = 1; /* bit 63 */
	assert_true(vdi_varint_take(&at, bytes + sizeof bytes, &number));
	assert_true(number == (uint64_t) 1 << 63);
	bytes[1] = 0; /* more bytes than needed */
	at = bytes;
	assert_true(vdi_varint_take(&at, bytes + sizeof bytes, &number));
	assert_true(number == 0 && at == bytes + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size_comes_back),
		cmocka_unit_test(what_is_too_long),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
