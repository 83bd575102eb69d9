/* Eight bytes per step, with tables of 2048 entries computed when a hash begins, which is cheap because
 * hashes cover megabytes. */
#include "crc32c.h"

#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* bit-reversed */

void vdi_crc32c_init(struct vdi_crc32c *crc)
{
	crc->state = ~0u;
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t value = i;

		for (int bit = 0; bit < 8; bit++)
			value = value & 1 ? value >> 1 ^ POLYNOMIAL : value >> 1;
		crc->table[0][i] = value;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int slice = 1; slice < 8; slice++)
			crc->table[slice][i] = crc->table[slice - 1][i] >> 8 ^
					       crc->table[0][crc->table[slice - 1][i] & 0xff];
}

void vdi_crc32c_add(struct vdi_crc32c *crc, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;
	uint32_t       state = crc->state;

	for (; size >= 8; size -= 8, at += 8) {
		uint32_t low = state ^ ((uint32_t) at[0] | (uint32_t) at[1] << 8 | (uint32_t) at[2] << 16 |
					(uint32_t) at[3] << 24);

		state = crc->table[7][low & 0xff] ^ crc->table[6][low >> 8 & 0xff] ^
			crc->table[5][low >> 16 & 0xff] ^ crc->table[4][low >> 24] ^ crc->table[3][at[4]] ^
			crc->table[2][at[5]] ^ crc->table[1][at[6]] ^ crc->table[0][at[7]];
	}
	for (; size; size--, at++)
		state = state >> 8 ^ crc->table[0][(state ^ *at) & 0xff];
	crc->state = state;
}

uint32_t vdi_crc32c_value(const struct vdi_crc32c *crc)
{
	return ~crc->state;
}
