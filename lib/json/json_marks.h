/* Finds the bytes that are special inside a JSON string (a quote, a backslash, a control character, a byte of
 * a multi-byte character), 64 at a time: one bit per byte, lowest first. Uses SSE2, or AVX2 if the CPU has it
 * (checked at run time), else plain 64-bit arithmetic. Part of json_scan.c. */
#ifndef VDI_JSON_MARKS_H
#define VDI_JSON_MARKS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__) && !defined(VDI_JSON_PORTABLE)
#include <immintrin.h>
#define WITH_SSE2 1
#else
#define WITH_SSE2 0
#endif
#if WITH_SSE2 && !defined(VDI_JSON_SSE2_ONLY)
#define WITH_AVX2 1 /* if the CPU has it */
#else
#define WITH_AVX2 0
#endif

#define BLOCK 64

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define ALWAYS_INLINE static inline __attribute__((always_inline))

static inline uint64_t load8(const void *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof word);
	return word;
}

#if WITH_SSE2
ALWAYS_INLINE uint64_t marks16(const uint8_t *p)
{
	__m128i bytes = _mm_loadu_si128((const __m128i *) (const void *) p);
	/* As signed numbers, control characters and bytes of multi-byte characters are below 0x20. */
	__m128i special = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
						    _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))),
				       _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20)));

	return (uint64_t) (unsigned) _mm_movemask_epi8(special);
}

ALWAYS_INLINE uint64_t marks64(const uint8_t *p)
{
	return marks16(p) | marks16(p + 16) << 16 | marks16(p + 32) << 32 | marks16(p + 48) << 48;
}
#else
ALWAYS_INLINE uint64_t marks8(const uint8_t *p)
{
	const uint64_t ones = 0x0101010101010101u;
	const uint64_t low7 = ones * 0x7F;
	uint64_t       word = load8(p);
	uint64_t       quote = word ^ ones * '"';
	uint64_t       backslash = word ^ ones * '\\';
	/* The top bit of each byte is set if the byte is plain: not zero after the xor, at least 0x20, below
	 * 0x80. There are no carries between bytes. */
	uint64_t plain = (((quote & low7) + low7) | quote) & (((backslash & low7) + low7) | backslash) &
			 ((word & low7) + ones * 0x60) & ~word;

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "the portable marks count bytes from the low end"
#endif
	return ((~plain & ones * 0x80) >> 7) * 0x0102040810204080u >> 56;
}

ALWAYS_INLINE uint64_t marks64(const uint8_t *p)
{
	uint64_t marks = 0;

	for (unsigned i = 0; i < 8; i++)
		marks |= marks8(p + i * 8) << i * 8;
	return marks;
}
#endif

#if WITH_AVX2
__attribute__((target("avx2"))) static inline uint64_t marks32_avx2(const uint8_t *p)
{
	__m256i bytes = _mm256_loadu_si256((const __m256i *) (const void *) p);
	__m256i special = _mm256_or_si256(_mm256_or_si256(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('"')),
							  _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('\\'))),
					  _mm256_cmpgt_epi8(_mm256_set1_epi8(0x20), bytes));

	return (uint64_t) (unsigned) _mm256_movemask_epi8(special);
}

__attribute__((target("avx2"), noinline)) static void blocks_mark_avx2(const uint8_t *p, size_t count,
								       uint64_t *marks)
{
	for (size_t i = 0; i < count; i++)
		marks[i] = marks32_avx2(p + i * BLOCK) | marks32_avx2(p + i * BLOCK + 32) << 32;
}
#endif

static void blocks_mark(const uint8_t *p, size_t count, uint64_t *marks)
{
#if WITH_AVX2
	if (__builtin_cpu_supports("avx2")) {
		blocks_mark_avx2(p, count, marks);
		return;
	}
#endif
	for (size_t i = 0; i < count; i++)
		marks[i] = marks64(p + i * BLOCK);
}

#endif
