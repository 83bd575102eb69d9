/* Days are counted in a calendar whose years begin on March 1, so that the leap day is the last day of a
 * year. */
#include "k8s_time.h"

#define DAY_S 86400
#define ERA_DAYS 146097 /* 400 years */
/* Start of year 0; years 0 to 9999 are supported. */
#define FIRST_S (-62167219200)
#define LAST_S 253402300799

static int64_t days_of(int64_t year, unsigned month, unsigned day)
{
	int64_t	 shifted = month > 2 ? year : year - 1;
	int64_t	 era = (shifted >= 0 ? shifted : shifted - 399) / 400;
	unsigned of_era = (unsigned) (shifted - era * 400);
	unsigned of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return era * ERA_DAYS + (int64_t) of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void date_of(int64_t days, int64_t *ret_year, unsigned *ret_month, unsigned *ret_day)
{
	int64_t	 shifted = days + 719468;
	int64_t	 era = (shifted >= 0 ? shifted : shifted - (ERA_DAYS - 1)) / ERA_DAYS;
	unsigned of_era = (unsigned) (shifted - era * ERA_DAYS);
	unsigned year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	unsigned of_year = of_era - (365 * year + year / 4 - year / 100);
	unsigned month = (5 * of_year + 2) / 153;

	*ret_day = of_year - (153 * month + 2) / 5 + 1;
	*ret_month = month < 10 ? month + 3 : month - 9;
	*ret_year = (int64_t) year + era * 400 + (*ret_month <= 2);
}

static char *digits(char *at, unsigned value, unsigned count)
{
	for (unsigned i = count; i-- > 0; value /= 10)
		at[i] = (char) ('0' + value % 10);
	return at + count;
}

size_t vdi_k8s_time_write(int64_t seconds, int32_t microseconds, char buffer[VDI_K8S_TIME_SIZE])
{
	int64_t	 days = (seconds >= 0 ? seconds : seconds - (DAY_S - 1)) / DAY_S;
	unsigned of_day = (unsigned) (seconds - days * DAY_S);
	int64_t	 year;
	unsigned month, day;
	char	*at = buffer;

	if (seconds < FIRST_S || seconds > LAST_S)
		return 0;
	date_of(days, &year, &month, &day);
	at = digits(at, (unsigned) year, 4);
	*at++ = '-';
	at = digits(at, month, 2);
	*at++ = '-';
	at = digits(at, day, 2);
	*at++ = 'T';
	at = digits(at, of_day / 3600, 2);
	*at++ = ':';
	at = digits(at, of_day / 60 % 60, 2);
	*at++ = ':';
	at = digits(at, of_day % 60, 2);
	if (microseconds >= 0) {
		*at++ = '.';
		at = digits(at, (unsigned) microseconds, 6);
	}
	*at++ = 'Z';
	return (size_t) (at - buffer);
}

struct text {
	const char *at, *end;
};

static bool take(struct text *text, char wanted)
{
	if (text->at == text->end || *text->at != wanted)
		return false;
	text->at++;
	return true;
}

static bool number(struct text *text, unsigned count, unsigned low, unsigned high, unsigned *ret_value)
{
	unsigned value = 0;

	if ((size_t) (text->end - text->at) < count)
		return false;
	for (; count; count--, text->at++) {
		if (*text->at < '0' || *text->at > '9')
			return false;
		value = value * 10 + (unsigned) (*text->at - '0');
	}
	*ret_value = value;
	return value >= low && value <= high;
}

static unsigned days_in(unsigned year, unsigned month)
{
	static const uint8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

	return days[month - 1] + (month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
}

static bool fraction(struct text *text, int32_t *ret_nanoseconds)
{
	int32_t value = 0, scale = 100000000;

	if (!take(text, '.') && !take(text, ','))
		return true;
	if (text->at == text->end || *text->at < '0' || *text->at > '9')
		return false;
	for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++, scale /= 10)
		value += (*text->at - '0') * scale;
	*ret_nanoseconds = value;
	return true;
}

static bool offset(struct text *text, int64_t *ret_seconds)
{
	unsigned hours, minutes;
	bool	 east;

	*ret_seconds = 0;
	if (take(text, 'Z'))
		return true;
	east = take(text, '+');
	if (!east && !take(text, '-'))
		return false;
	if (!number(text, 2, 0, 24, &hours) || !take(text, ':') || !number(text, 2, 0, 60, &minutes))
		return false;
	*ret_seconds = ((int64_t) hours * 3600 + minutes * 60) * (east ? 1 : -1);
	return true;
}

bool vdi_k8s_time_parse(struct vd_bytes bytes, int64_t *ret_seconds, int32_t *ret_nanoseconds)
{
	struct text text = { bytes.data, (const char *) bytes.data + bytes.size };
	unsigned    year, month, day, hour, minute, second;
	int32_t	    nanoseconds = 0;
	int64_t	    east;

	if (bytes.size == 0 || !number(&text, 4, 0, 9999, &year) || !take(&text, '-') ||
	    !number(&text, 2, 1, 12, &month) || !take(&text, '-') ||
	    !number(&text, 2, 1, days_in(year, month), &day) || !take(&text, 'T') ||
	    !number(&text, 2, 0, 23, &hour) || !take(&text, ':') || !number(&text, 2, 0, 59, &minute) ||
	    !take(&text, ':') || !number(&text, 2, 0, 59, &second) || !fraction(&text, &nanoseconds) ||
	    !offset(&text, &east) || text.at != text.end)
		return false;
	*ret_seconds = days_of(year, month, day) * DAY_S + hour * 3600 + minute * 60 + second - east;
	*ret_nanoseconds = nanoseconds;
	return *ret_seconds >= FIRST_S && *ret_seconds <= LAST_S;
}

bool vdi_k8s_time_seconds(struct vd_bytes text, int64_t *ret_seconds)
{
	int32_t nanoseconds;

	return vdi_k8s_time_parse(text, ret_seconds, &nanoseconds);
}

void vdi_k8s_time_format(vd_wall time, char buffer[VDI_K8S_TIME_SIZE])
{
	buffer[vdi_k8s_time_write(time.ns / 1000000000, -1, buffer)] =
		0; /* every time in 64 bits of nanoseconds is within the years 0 to 9999 */
}
