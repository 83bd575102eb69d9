/* A number is compared as its digits, without leading zeros, and a decimal exponent, so nothing is
 * rounded. */
#include "json_number.h"

/* The smallest value that rounds to infinity: 2^1024 - 2^970, half a unit above the largest float64 (a tie
 * rounds to even, which is infinity). */
static const char too_large[] =
	"1797693134862315807937289714053034150799341327100378269361737789804449682927647509466490179775872070"
	"9633028641669288791094655554785194040263065748867150582068190890200070838367627385484581771153176447"
	"5730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904"
	"174497792";

#define EXPONENT_MAX                                                                                         \
	((int64_t) 1 << 40) /* larger than any text that fits into memory; keeps sums from overflowing */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Parses the exponent after its 'e'; saturates. */
static int64_t read_exponent(const char *at, const char *end)
{
	bool	negative = at < end && *at == '-';
	int64_t value = 0;

	for (at += at < end && (*at == '-' || *at == '+'); at < end && is_digit(*at) && value < EXPONENT_MAX;
	     at++)
		value = value * 10 + (*at - '0');
	return negative ? -value : value;
}

struct parts {
	const char *first;    /* the first digit that is not 0; NULL: the number is 0 */
	const char *exponent; /* end of the digits and the point */
	int64_t	    place;    /* decimal place of the first digit: 1 for ones, 0 for tenths */
	size_t	    digits;   /* from the first to the last that is not 0 */
	bool	    is_plain; /* no fraction and no exponent */
};

static struct parts take_apart(struct vd_bytes number)
{
	const char  *at = number.data, *end = at + number.size;
	struct parts parts = { .exponent = at };
	bool	     in_fraction = false;
	size_t	     digits = 0;

	while (parts.exponent < end && (*parts.exponent | 0x20) != 'e')
		parts.exponent++;
	for (at += number.size && *at == '-'; at < parts.exponent; at++) {
		if (*at == '.') {
			in_fraction = true;
			continue;
		}
		if (parts.first == NULL && *at != '0')
			parts.first = at;
		if (parts.first == NULL) {
			parts.place -= in_fraction;
			continue;
		}
		parts.place += !in_fraction;
		digits++;
		if (*at != '0')
			parts.digits = digits;
	}
	parts.is_plain = !in_fraction && parts.exponent == end;
	if (parts.exponent < end)
		parts.place += read_exponent(parts.exponent + 1, end);
	return parts;
}

/* Returns the digit at *at and advances it; 0 after the last digit. */
static char next_digit(const struct parts *parts, const char **at)
{
	*at += *at < parts->exponent && **at == '.';
	return *at < parts->exponent ? *(*at)++ : '0';
}

bool vdi_json_number_fits(struct vd_bytes number)
{
	struct parts parts = take_apart(number);
	const char  *at = parts.first;

	if (at == NULL)
		return true; /* 0, with any exponent */
	if (parts.place != (int64_t) sizeof too_large - 1)
		return parts.place < (int64_t) sizeof too_large - 1;
	for (size_t i = 0; i < sizeof too_large - 1; i++) {
		char digit = next_digit(&parts, &at);

		if (digit != too_large[i])
			return digit < too_large[i];
	}
	return false;
}

size_t vdi_json_number_whole(struct vd_bytes number, char buffer[VDI_JSON_WHOLE_SIZE])
{
	struct parts parts = take_apart(number);
	const char  *at = parts.first, *text = number.data;
	size_t	     size = 0;

	if (at == NULL) {
		buffer[0] = '0';
		return parts.is_plain && *text != '-' ? 0 : 1;
	}
	if (parts.is_plain || parts.digits > 15 || parts.place > 19 || parts.place < (int64_t) parts.digits)
		return 0;
	if (*text == '-')
		buffer[size++] = '-';
	for (int64_t i = 0; i < parts.place; i++)
		buffer[size++] = next_digit(&parts, &at);
	return size;
}

/* Skips strings as fast as possible, because they are most of a document. at: the opening quote. Returns the
 * size of json if the string has no end. */
static size_t closing_quote(struct vd_bytes json, size_t at)
{
	const char *text = json.data;

	while (++at < json.size) {
		const char *quote = memchr(text + at, '"', json.size - at), *before = quote;

		if (quote == NULL)
			return json.size;
		while (before > text + at && before[-1] == '\\')
			before--;
		at = (size_t) (quote - text);
		if ((quote - before) % 2 == 0)
			return at;
	}
	return json.size;
}

bool vdi_json_has_unfit_number(struct vd_bytes json, size_t *ret_offset, struct vd_bytes *ret_number)
{
	const char *text = json.data;

	for (size_t at = 0; at < json.size; at++) {
		size_t from = at;

		if (text[at] == '"') {
			at = closing_quote(json, at);
			continue;
		}
		if (!is_digit(text[at]))
			continue;
		while (at < json.size && (is_digit(text[at]) || text[at] == '.' || text[at] == '+' ||
					  text[at] == '-' || (text[at] | 0x20) == 'e'))
			at++;
		if (vdi_json_number_fits((struct vd_bytes) { text + from, at - from })) {
			at--;
			continue;
		}
		from -= from > 0 && text[from - 1] == '-';
		if (ret_offset)
			*ret_offset = from;
		if (ret_number)
			*ret_number = (struct vd_bytes) { text + from, at - from };
		return true;
	}
	return false;
}
