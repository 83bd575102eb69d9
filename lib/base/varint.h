/* Variable-length integers of protobuf: seven bits per byte, the lowest first. Pure inline functions; any
 * thread. */
#ifndef VDI_VARINT_H
#define VDI_VARINT_H

#include "base.h"

#define VDI_VARINT_SIZE_MAX 10

static inline size_t vdi_varint_size(uint64_t number)
{
	return 1 + (size_t) (63 - __builtin_clzll(number | 1)) / 7;
}

/* Writes number at `at`, which has room for vdi_varint_size(number) bytes; returns the position after it. */
static inline uint8_t *vdi_varint_put(uint8_t *at, uint64_t number)
{
	while (number >= 0x80) {
		*at++ = (uint8_t) (number | 0x80);
		number >>= 7;
	}
	*at++ = (uint8_t) number;
	return at;
}

/* Reads a number from the bytes in [at, end), and returns its size in bytes. 0: it does not end before `end`
 * or within ten bytes. Bits beyond 64 are dropped, as in Go's generated decoders of Kubernetes' types. */
static inline size_t vdi_varint_read(const uint8_t *at, const uint8_t *end, uint64_t *ret_number)
{
	uint64_t number = 0;

	for (size_t i = 0; i < VDI_VARINT_SIZE_MAX && at + i < end; i++) {
		number |= (uint64_t) (at[i] & 0x7f) << (7 * i);
		if (at[i] < 0x80) {
			*ret_number = number;
			return i + 1;
		}
	}
	return 0;
}

/* Reads a number and moves *at behind it. False, and *at stays: as above, or it has more than 64 bits. */
static inline bool vdi_varint_take(const uint8_t **at, const uint8_t *end, uint64_t *ret_number)
{
	size_t size = vdi_varint_read(*at, end, ret_number);

	if (size == 0 || (size == VDI_VARINT_SIZE_MAX && (*at)[VDI_VARINT_SIZE_MAX - 1] > 1))
		return false;
	*at += size;
	return true;
}

#endif
