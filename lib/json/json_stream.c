/* Counts brackets, and tracks whether the position is inside a string.
 *
 * Most bytes are inside a value and do not end it. They are skipped in blocks of 64 bytes: one bit for each
 * byte, as in json_marks.h. The bits of the strings are the prefix sums (xor) of the quotes' bits, so neither
 * strings nor brackets are walked. A block that may contain the end of a value, or has a backslash outside a
 * string, is left to the walk by single characters.
 *
 * Bytes are copied only if a value does not end in its chunk. */
#include "json_stream.h"

#if defined(__SSE2__) && !defined(VDI_JSON_PORTABLE)
#include <immintrin.h>
#define WITH_BLOCKS 1
#else
#define WITH_BLOCKS 0
#endif

#define BLOCK 64

static bool is_space(char character)
{
	return character == ' ' || character == '\n' || character == '\r' || character == '\t';
}

/* Advances by one character of an open value. True: it was the last one of the value. */
static bool step(struct vdi_json_stream *stream, char character)
{
	if (stream->in_string) {
		if (stream->escaped)
			stream->escaped = false;
		else if (character == '\\')
			stream->escaped = true;
		else if (character == '"')
			stream->in_string = false;
		return false;
	}
	if (character == '"')
		stream->in_string = true;
	else if (character == '{' || character == '[')
		stream->depth++;
	else if (character == '}' || character == ']')
		return --stream->depth == 0;
	return false;
}

#if WITH_BLOCKS
/* A bit for each byte of a block that equals character. */
static inline uint64_t equal_bits(const __m128i bytes[4], char character)
{
	const __m128i wanted = _mm_set1_epi8(character);
	uint64_t      bits = 0;

	for (unsigned i = 0; i < 4; i++)
		bits |= (uint64_t) (unsigned) _mm_movemask_epi8(_mm_cmpeq_epi8(bytes[i], wanted)) << i * 16;
	return bits;
}

/* The bits of the characters after an escaping backslash. *escaped: the one before the block escapes; set to
 * the same for the next block. A run of backslashes escapes with every second one: the addition carries
 * through the run, so that its end tells whether its length is odd. */
static inline uint64_t escaped_bits(uint64_t backslashes, bool *escaped)
{
	const uint64_t even = 0x5555555555555555u;
	uint64_t       after, odd_starts, sum;

	backslashes &= ~(uint64_t) *escaped;
	after = backslashes << 1 | *escaped;
	odd_starts = backslashes & ~even & ~after;
	*escaped = __builtin_add_overflow(odd_starts, backslashes, &sum);
	return (even ^ sum << 1) & after;
}

/* The bits from each quote up to the one before the next quote. */
static inline uint64_t between_bits(uint64_t quotes)
{
	for (unsigned shift = 1; shift < BLOCK; shift *= 2)
		quotes ^= quotes << shift;
	return quotes;
}

/* Adds the brackets of a block to *depth; false: one of them takes it to 0. */
static inline bool add_brackets(unsigned *depth, uint64_t opened, uint64_t closed)
{
	for (uint64_t left = opened | closed; left; left &= left - 1) {
		if ((left & -left & opened) != 0)
			++*depth;
		else if (--*depth == 0)
			return false;
	}
	return true;
}

static inline void add_lines(struct vdi_json_stream *stream, const __m128i bytes[4])
{
	for (uint64_t left = equal_bits(bytes, '\n'); left; left &= left - 1)
		stream->lines++;
}

/* Advances by a block of an open value. False: nothing is done, because the value may end in it. */
static bool skip_block(struct vdi_json_stream *stream, const char *text)
{
	const __m128i bit = _mm_set1_epi8(0x20);
	__m128i	      bytes[4], lower[4];
	uint64_t      quotes, backslashes, strings;
	unsigned      depth = stream->depth;
	bool	      escaped = stream->escaped;

	for (unsigned i = 0; i < 4; i++)
		bytes[i] = _mm_loadu_si128((const __m128i *) (const void *) (text + i * 16));
	quotes = equal_bits(bytes, '"');
	backslashes = equal_bits(bytes, '\\');
	if (stream->in_string && (quotes | backslashes | escaped) == 0) {
		add_lines(stream, bytes);
		return true;
	}
	if ((backslashes | escaped) != 0)
		quotes &= ~escaped_bits(backslashes, &escaped);
	strings = between_bits(quotes) ^ (stream->in_string ? ~(uint64_t) 0 : 0);
	for (unsigned i = 0; i < 4; i++)
		lower[i] = _mm_or_si128(bytes[i], bit); /* of a bracket: the brace */
	if ((backslashes & ~strings) != 0 ||
	    !add_brackets(&depth, equal_bits(lower, '{') & ~strings, equal_bits(lower, '}') & ~strings))
		return false;
	stream->depth = depth;
	stream->in_string = strings >> (BLOCK - 1);
	stream->escaped = escaped;
	add_lines(stream, bytes);
	return true;
}
#else
static bool skip_block(struct vdi_json_stream *stream, const char *text)
{
	(void) stream;
	(void) text;
	return false;
}
#endif

/* Passes the values that end in text[from..size) to each; the first one may have begun before from. Sets
 * *ret_start to the begin of the value that has not ended, or to size. */
static vd_status walk(struct vdi_json_stream *stream, const char *text, size_t from, size_t size,
		      vdi_json_stream_fn each, void *arg, size_t *ret_start)
{
	size_t start = 0, skippable = from;

	for (size_t at = from; at < size; at++) {
		while (stream->depth > 0 && at >= skippable && size - at >= BLOCK) {
			if (skip_block(stream, text + at))
				at += BLOCK;
			else
				skippable = at + BLOCK;
		}
		if (at == size)
			break;
		stream->lines += text[at] == '\n';
		if (stream->depth == 0) {
			/* Between values; commas separate the elements if the inside of an array is fed. */
			if (is_space(text[at]) || text[at] == ',')
				continue;
			if (text[at] != '{' && text[at] != '[')
				return VD_BAD_REQUEST;
			start = at;
			stream->line = stream->lines + 1;
		}
		if (step(stream, text[at]))
			VDI_TRY(each(arg, (struct vd_bytes) { text + start, at + 1 - start }));
	}
	*ret_start = stream->depth > 0 ? start : size;
	return VD_OK;
}

vd_status vdi_json_stream_feed(struct vdi_json_stream *stream, struct vd_bytes bytes, vdi_json_stream_fn each,
			       void *arg)
{
	const char *text = bytes.data;
	size_t	    before = stream->size, size = before + bytes.size, start;

	if (bytes.size == 0)
		return VD_OK;
	if (size > VDI_JSON_STREAM_VALUE_MAX)
		return VD_TOO_BIG;
	if (!vdi_grow((void **) &stream->data, &stream->capacity, size, 1))
		return VD_NOMEM;
	if (before > 0) {
		memcpy(stream->data + before, bytes.data, bytes.size);
		text = stream->data;
	}
	stream->size = 0; /* if each ends the feed */
	VDI_TRY(walk(stream, text, before, size, each, arg, &start));
	stream->size = size - start;
	memmove(stream->data, text + start, stream->size);
	return VD_OK;
}

bool vdi_json_stream_is_open(const struct vdi_json_stream *stream)
{
	return stream->depth > 0;
}

void vdi_json_stream_reset(struct vdi_json_stream *stream)
{
	stream->size = 0;
	stream->depth = 0;
	stream->in_string = stream->escaped = false;
}

void vdi_json_stream_fini(struct vdi_json_stream *stream)
{
	vdi_free(stream->data);
	memset(stream, 0, sizeof *stream);
}
