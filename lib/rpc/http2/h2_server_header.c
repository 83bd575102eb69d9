/* Text in the headers of a call: the client's timeout, and the text of a status. */
#include "h2_server_state.h"

#define TIMEOUT_DIGITS_MAX 8

bool vdi_h2_timeout_parse(struct vd_bytes text, vd_dur *ret_timeout)
{
	static const struct {
		char	unit;
		int64_t ns;
	} units[] = { { 'H', 3600000000000 }, { 'M', 60000000000 }, { 'S', 1000000000 },
		      { 'm', 1000000 },	      { 'u', 1000 },	    { 'n', 1 } };
	const char *digits = text.data;
	int64_t	    count = 0;

	if (text.size < 2 || text.size > TIMEOUT_DIGITS_MAX + 1)
		return false;
	for (size_t i = 0; i + 1 < text.size; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			return false;
		count = count * 10 + (digits[i] - '0');
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(units); i++) {
		if (units[i].unit != digits[text.size - 1])
			continue;
		/* 99,999,999 hours exceed the range of the clock. */
		ret_timeout->ns = count > INT64_MAX / 4 / units[i].ns ? INT64_MAX / 4 : count * units[i].ns;
		return true;
	}
	return false;
}

size_t vdi_h2_status_encode(const char *message, char *text, size_t size)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t		  used = 0;

	for (const unsigned char *at = (const unsigned char *) message; *at; at++) {
		if (*at >= ' ' && *at <= '~' && *at != '%') {
			if (used == size)
				break;
			text[used++] = (char) *at;
			continue;
		}
		if (size - used < 3)
			break;
		text[used++] = '%';
		text[used++] = digits[*at >> 4];
		text[used++] = digits[*at & 15];
	}
	return used;
}
