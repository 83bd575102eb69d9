/* See the header. */
#include "units.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

bool vdi_parse_bytes(const char *text, int64_t *ret_bytes)
{
	static const struct {
		const char *name;
		int64_t	    factor;
	} units[] = { { "", 1 },	   { "b", 1 },		 { "k", 1024 },	     { "kib", 1024 },	 { "kb", 1000 },
		      { "m", 1 << 20 },	   { "mib", 1 << 20 },	 { "mb", 1000000 },  { "g", 1 << 30 },	 { "gib", 1 << 30 },
		      { "gb", 1000000000 } };
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

bool vdi_parse_duration(const char *text, vd_dur *ret_duration)
{
	static const struct {
		const char *name;
		int64_t	    ns;
	} units[] = { { "ms", 1000000 }, { "us", 1000 }, { "ns", 1 }, { "s", 1000000000 }, { "m", 60000000000 }, { "h", 3600000000000 } };
	vd_dur total = { 0 };

	if (strcmp(text, "0") == 0) {
		*ret_duration = total;
		return true;
	}
	if (*text == 0)
		return false;
	while (*text) {
		char   *end;
		int64_t number, part = -1;

		if (*text < '0' || *text > '9')
			return false;
		number = strtoll(text, &end, 10);
		for (size_t i = 0; i < VDI_ARRAY_SIZE(units) && part < 0; i++) {
			size_t size = strlen(units[i].name);

			if (strncmp(end, units[i].name, size) != 0 || (end[size] && (end[size] < '0' || end[size] > '9')))
				continue;
			if (__builtin_mul_overflow(number, units[i].ns, &part) || __builtin_add_overflow(total.ns, part, &total.ns))
				return false;
			text = end + size;
		}
		if (part < 0)
			return false;
	}
	*ret_duration = total;
	return true;
}
