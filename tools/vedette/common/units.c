/* The parsers of sizes and durations. */
#include "units.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

bool vdi_parse_bytes(const char *text, int64_t *ret_bytes)
{
	static const struct {
		const char *name;
		int64_t	    factor;
	} units[] = { { "", 1 },	{ "b", 1 },	    { "k", 1024 },	 { "kib", 1024 },
		      { "kb", 1000 },	{ "m", 1 << 20 },   { "mib", 1 << 20 },	 { "mb", 1000000 },
		      { "g", 1 << 30 }, { "gib", 1 << 30 }, { "gb", 1000000000 } };
	char   *end;
	int64_t number;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	number = strtoll(text, &end, 10);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(units) && errno == 0; i++)
		if (strcasecmp(end, units[i].name) == 0)
			return !__builtin_mul_overflow(number, units[i].factor, ret_bytes);
	return false;
}

#define FRACTION_DIGITS_MAX 18 /* enough: a nanosecond of an hour has 13 */

struct number {
	int64_t whole;
	int64_t fraction; /* of scale */
	int64_t scale;	  /* a power of 10 */
};

/* Parses digits with at most one dot before, between or after them. Returns the end of the number; NULL: no
 * number, or too large. */
static const char *parse_number(const char *text, struct number *ret_number)
{
	struct number number = { 0, 0, 1 };
	size_t	      digits = 0;

	for (; *text >= '0' && *text <= '9'; text++, digits++)
		if (__builtin_mul_overflow(number.whole, 10, &number.whole) ||
		    __builtin_add_overflow(number.whole, *text - '0', &number.whole))
			return NULL;
	if (*text == '.')
		for (unsigned count = 0; *++text >= '0' && *text <= '9'; digits++)
			if (count++ < FRACTION_DIGITS_MAX) {
				number.fraction = number.fraction * 10 + (*text - '0');
				number.scale *= 10;
			}
	*ret_number = number;
	return digits ? text : NULL;
}

static bool add_number(const struct number *number, int64_t unit_ns, vd_dur *total)
{
	int64_t ns;

	return !__builtin_mul_overflow(number->whole, unit_ns, &ns) &&
	       !__builtin_add_overflow(total->ns, ns, &total->ns) &&
	       !__builtin_add_overflow(total->ns,
				       (int64_t) ((__int128) number->fraction * unit_ns / number->scale),
				       &total->ns);
}

bool vdi_parse_duration(const char *text, vd_dur *ret_duration)
{
	static const struct {
		const char *name;
		int64_t	    ns;
	} units[] = { { "ms", 1000000 }, { "us", 1000 },      { "\u00b5s", 1000 },  { "\u03bcs", 1000 },
		      { "ns", 1 },	 { "s", 1000000000 }, { "m", 60000000000 }, { "h", 3600000000000 } };
	vd_dur total = { 0 };

	if (strcmp(text, "0") == 0) {
		*ret_duration = total;
		return true;
	}
	if (*text == 0)
		return false;
	while (*text) {
		struct number number;
		size_t	      i, size = 0;

		text = parse_number(text, &number);
		if (text == NULL)
			return false;
		for (i = 0; i < VDI_ARRAY_SIZE(units); i++) {
			size = strlen(units[i].name);
			if (strncmp(text, units[i].name, size) == 0)
				break;
		}
		if (i == VDI_ARRAY_SIZE(units) || !add_number(&number, units[i].ns, &total))
			return false;
		text += size;
	}
	*ret_duration = total;
	return true;
}
