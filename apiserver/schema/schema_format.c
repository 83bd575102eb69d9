/* Formats of strings: the list of pkg/apiserver/validation/formats.go (Kubernetes 1.36). Hand-written checks
 * replace Go's standard library (net.ParseIP, time.Parse, mail.ParseAddress, url.ParseRequestURI) and
 * k8s.io/kube-openapi pkg/validation/strfmt. A format's name is looked up without its dashes, so date-time is
 * datetime. If upstream allows letters beyond ASCII (hostname), every character beyond ASCII counts as a
 * letter. */
#include <arpa/inet.h>

#include "schema_node.h"
#include "validate.h"

typedef bool format_fn(const char *at, size_t size);

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_one_of(char c, const char *set)
{
	return c && strchr(set, c);
}

/* Matches the whole text with a template: 9 is a digit, f a hexadecimal digit, any other character itself. */
static bool looks_like(const char *at, size_t size, const char *template)
{
	if (strlen(template) != size)
		return false;
	for (size_t i = 0; i < size; i++)
		if (template[i] == '9' ? !is_digit(at[i]) :
		    template[i] == 'f' ? !is_hex(at[i]) :
					 template[i] != at[i])
			return false;
	return true;
}

static int two_digits(const char *at)
{
	return (at[0] - '0') * 10 + at[1] - '0';
}

/* ---- Time ---- */

static bool is_date(const char *at, size_t size)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int		 year, month, day;

	if (!looks_like(at, size, "9999-99-99"))
		return false;
	year = two_digits(at) * 100 + two_digits(at + 2);
	month = two_digits(at + 5);
	day = two_digits(at + 8);
	if (month < 1 || month > 12)
		return false;
	return day >= 1 &&
	       day <= days[month - 1] + (month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
}

static bool is_date_time(const char *at, size_t size)
{
	if (size < 20 || !is_date(at, 10) || (at[10] | 0x20) != 't' || !looks_like(at + 11, 8, "99:99:99"))
		return false;
	if (two_digits(at + 11) > 23 || two_digits(at + 14) > 59 || two_digits(at + 17) > 59)
		return false;
	at += 19;
	size -= 19;
	if (size > 1 && is_digit(at[1]) && *at != '+' &&
	    *at != '-') { /* upstream's `(.[0-9]+)?` accepts any character in place of the point */
		for (at++, size--; size && is_digit(*at); at++, size--)
			;
	}
	return (size == 1 && (*at | 0x20) == 'z') || looks_like(at, size, "+99:99") ||
	       looks_like(at, size, "-99:99");
}

static size_t unit_size(const char *at, size_t size)
{
	static const char *const units[] = { "ns", "us", "\xC2\xB5s", "\xCE\xBCs", "ms", "s", "m", "h" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(units); i++)
		if (strlen(units[i]) <= size && memcmp(at, units[i], strlen(units[i])) == 0)
			return strlen(units[i]);
	return 0;
}

/* time.ParseDuration without its check for overflow */
static bool is_go_duration(const char *at, size_t size)
{
	if (size && (*at == '+' || *at == '-'))
		at++, size--;
	if (size == 1 && *at == '0')
		return true;
	if (size == 0)
		return false;
	while (size) {
		size_t digits = 0, unit;

		for (; size && is_digit(*at); at++, size--, digits++)
			;
		if (size && *at == '.')
			for (at++, size--; size && is_digit(*at); at++, size--, digits++)
				;
		unit = unit_size(at, size);
		if (digits == 0 || unit == 0)
			return false;
		at += unit;
		size -= unit;
	}
	return true;
}

/* Accepts "22 ns", "3 days": a number and the name of a unit, anywhere in the text. */
static bool is_duration(const char *at, size_t size)
{
	static const char *const whole[] = { "ns", "us", "\xC2\xB5s", "ms", "s", "m", "h", "hr", "d", "w" };
	static const char *const begins[] = { "nano", "micro", "milli", "sec", "min", "hour", "day", "week" };

	if (is_go_duration(at, size))
		return true;
	for (size_t i = 0; i < size;) {
		size_t word, end;

		if (!is_digit(at[i])) {
			i++;
			continue;
		}
		for (; i < size && is_digit(at[i]); i++)
			;
		for (word = i; word < size && is_one_of(at[word], " \t\n\r\f"); word++)
			;
		for (end = word; end < size && (is_letter(at[end]) || (at[end] & 0x80)); end++)
			;
		for (size_t j = 0; j < VDI_ARRAY_SIZE(whole); j++)
			if (end - word == strlen(whole[j]) &&
			    strncasecmp(at + word, whole[j], end - word) == 0)
				return true;
		for (size_t j = 0; j < VDI_ARRAY_SIZE(begins); j++)
			if (end - word >= strlen(begins[j]) &&
			    strncasecmp(at + word, begins[j], strlen(begins[j])) == 0)
				return true;
		i = VDI_MAX(end, i);
	}
	return false;
}

/* ---- Net ---- */

static bool is_dotted_quad(const char *at, size_t size)
{
	for (int part = 0; part < 4; part++) {
		int value = 0, digits = 0;

		for (; size && is_digit(*at); at++, size--, digits++)
			if ((value = value * 10 + (*at - '0')) > 255)
				return false;
		if (digits == 0)
			return false;
		if (part < 3) {
			if (size == 0 || *at != '.')
				return false;
			at++, size--;
		}
	}
	return size == 0;
}

static bool is_ipv6(const char *at, size_t size)
{
	unsigned char address[16];
	char	      text[64];

	if (size >= sizeof text || size == 0 || memchr(at, 0, size))
		return false;
	memcpy(text, at, size);
	text[size] = 0;
	return inet_pton(AF_INET6, text, address) == 1;
}

static bool is_ipv4(const char *at, size_t size)
{
	return is_dotted_quad(at, size) || (size && memchr(at, '.', size) && is_ipv6(at, size));
}

static bool is_cidr(const char *at, size_t size)
{
	const char *slash = size ? memchr(at, '/', size) : NULL;
	int	    bits = 0, max;

	if (slash == NULL || slash + 1 == at + size)
		return false;
	max = is_dotted_quad(at, (size_t) (slash - at)) ? 32 : is_ipv6(at, (size_t) (slash - at)) ? 128 : -1;
	for (const char *digit = slash + 1; digit < at + size; digit++)
		if (!is_digit(*digit) || (bits = bits * 10 + (*digit - '0')) > max)
			return false;
	return max >= 0;
}

static bool is_mac(const char *at, size_t size)
{
	static const char *const pictures[] = {
		"ff:ff:ff:ff:ff:ff",
		"ff:ff:ff:ff:ff:ff:ff:ff",
		"ff:ff:ff:ff:ff:ff:ff:ff:ff:ff:ff:ff:ff:ff:ff:ff:ff:ff:ff:ff",
		"ff-ff-ff-ff-ff-ff",
		"ff-ff-ff-ff-ff-ff-ff-ff",
		"ff-ff-ff-ff-ff-ff-ff-ff-ff-ff-ff-ff-ff-ff-ff-ff-ff-ff-ff-ff",
		"ffff.ffff.ffff",
		"ffff.ffff.ffff.ffff",
		"ffff.ffff.ffff.ffff.ffff.ffff.ffff.ffff.ffff.ffff",
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(pictures); i++)
		if (looks_like(at, size, pictures[i]))
			return true;
	return false;
}

static bool is_name_rune(char c)
{
	return is_digit(c) || is_letter(c) || (c & 0x80);
}

/* One label: letters and digits at both ends, dashes inside. */
static bool is_host_label(const char *at, size_t size)
{
	if (size == 0 || size > 63 || !is_name_rune(at[0]) || !is_name_rune(at[size - 1]))
		return false;
	for (size_t i = 0; i < size; i++)
		if (!is_name_rune(at[i]) && at[i] != '-')
			return false;
	return true;
}

/* Upstream's expression has two forms: one label, where only the second character may be a dash, or labels
 * followed by a top-level domain of letters. */
static bool is_hostname(const char *at, size_t size)
{
	const char *dot = size ? memchr(at, '.', size) : NULL;

	if (size == 0 || size > 255)
		return false;
	if (dot == NULL) {
		if (size > 63 || !is_name_rune(*at))
			return false;
		for (size_t i = size > 1 && at[1] == '-' ? 2 : 1; i < size; i++)
			if (!is_name_rune(at[i]))
				return false;
		return true;
	}
	for (; dot; dot = memchr(at, '.', size)) {
		if (!is_host_label(at, (size_t) (dot - at)))
			return false;
		size -= (size_t) (dot - at) + 1;
		at = dot + 1;
	}
	for (size_t i = 0; i < size; i++)
		if (!is_letter(at[i]) && !(at[i] & 0x80))
			return false;
	return size >= 2 && size <= 63;
}

static bool has_good_escapes(const char *at, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (at[i] == '%' && (size - i < 3 || !is_hex(at[i + 1]) || !is_hex(at[i + 2])))
			return false;
	return true;
}

/* [user@]host[:port] */
static bool is_authority(const char *at, size_t size)
{
	const char *user = size ? memrchr(at, '@', size) : NULL, *colon;

	if (user) {
		size -= (size_t) (user + 1 - at);
		at = user + 1;
	}
	if (!has_good_escapes(at, size))
		return false;
	for (size_t i = 0; i < size; i++)
		if (is_one_of(at[i], " \"<>\\^`{|}"))
			return false;
	if (size && *at == '[') {
		const char *close = memrchr(at, ']', size);

		if (close == NULL)
			return false;
		size -= (size_t) (close + 1 - at);
		at = close + 1;
		if (size && *at != ':')
			return false;
	}
	colon = size ? memrchr(at, ':', size) : NULL;
	for (const char *digit = colon ? colon + 1 : at + size; digit < at + size; digit++)
		if (!is_digit(*digit))
			return false;
	return true;
}

/* url.ParseRequestURI */
static bool is_uri(const char *at, size_t size)
{
	size_t	    scheme = 0;
	const char *query, *path;

	for (size_t i = 0; i < size; i++)
		if ((unsigned char) at[i] < ' ' || at[i] == 0x7f)
			return false;
	if (size == 0 || *at == ':')
		return false;
	while (scheme < size &&
	       (is_letter(at[scheme]) || (scheme && (is_digit(at[scheme]) || is_one_of(at[scheme], "+-.")))))
		scheme++;
	if (scheme < size && scheme && at[scheme] == ':') {
		at += scheme + 1;
		size -= scheme + 1;
		if (size == 0 || *at != '/')
			return true;
	} else if (*at != '/') {
		return size == 1 && *at == '*';
	}
	query = memchr(at, '?', size);
	if (query)
		size = (size_t) (query - at);
	if (size >= 2 && at[0] == '/' && at[1] == '/' && scheme) {
		path = memchr(at + 2, '/', size - 2);
		if (!is_authority(at + 2, path ? (size_t) (path - at - 2) : size - 2))
			return false;
		size = path ? size - (size_t) (path - at) : 0;
		at = path ? path : at;
	}
	return has_good_escapes(at, size);
}

static bool is_atom(const char *at, size_t size, const char *more)
{
	if (size == 0 || at[0] == '.' || at[size - 1] == '.')
		return false;
	for (size_t i = 0; i < size; i++) {
		if (at[i] == '.' && at[i + 1] == '.')
			return false;
		if (!is_name_rune(at[i]) && at[i] != '.' && !is_one_of(at[i], "!#$%&'*+-/=?^_`{|}~") &&
		    !is_one_of(at[i], more))
			return false;
	}
	return true;
}

/* mail.ParseAddress: `a@b`, `<a@b>`, `Name <a@b>`, `"quoted"@b`, `a@[1.2.3.4]`; without comments and encoded
 * words. */
__attribute__((nonnull)) static bool is_email(const char *at, size_t size)
{
	const char *open, *sign;
	bool	    quoted;

	while (size && (*at == ' ' || *at == '\t'))
		at++, size--;
	while (size && (at[size - 1] == ' ' || at[size - 1] == '\t'))
		size--;
	if (size && at[size - 1] == '>') {
		open = memrchr(at, '<', size);
		if (open == NULL || memchr(at, '@', (size_t) (open - at)))
			return false;
		size -= (size_t) (open + 1 - at) + 1;
		at = open + 1;
	}
	sign = size ? memrchr(at, '@', size) : NULL;
	if (sign == NULL)
		return false;
	quoted = sign - at >= 2 && at[0] == '"' && sign[-1] == '"';
	if (quoted ? memchr(at + 1, '"', (size_t) (sign - at - 2)) != NULL :
		     !is_atom(at, (size_t) (sign - at), ""))
		return false;
	size -= (size_t) (sign + 1 - at);
	at = sign + 1;
	if (size > 2 && at[0] == '[' && at[size - 1] == ']')
		return is_dotted_quad(at + 1, size - 2) || is_ipv6(at + 1, size - 2);
	return is_atom(at, size, "");
}

/* ---- Numbers and the like ---- */

/* Hexadecimal digits in groups of 8, 4, 4, 4, 12 with or without dashes. version: the required version digit,
 * or 0; variant: check the variant digit. */
static bool is_uuid_of(const char *at, size_t size, char version, bool variant)
{
	static const size_t groups[] = { 8, 4, 4, 4, 12 };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(groups); i++) {
		if (i && size && *at == '-')
			at++, size--;
		for (size_t j = 0; j < groups[i]; j++, at++, size--) {
			if (size == 0 || !is_hex(*at))
				return false;
			if (j == 0 && ((i == 2 && version && *at != version) ||
				       (i == 3 && variant && !is_one_of(*at, "89abAB"))))
				return false;
		}
	}
	return size == 0;
}

static bool is_uuid(const char *at, size_t size)
{
	return is_uuid_of(at, size, 0, false);
}

static bool is_uuid3(const char *at, size_t size)
{
	return is_uuid_of(at, size, '3', false);
}

static bool is_uuid4(const char *at, size_t size)
{
	return is_uuid_of(at, size, '4', true);
}

static bool is_uuid5(const char *at, size_t size)
{
	return is_uuid_of(at, size, '5', true);
}

/* Copies the text without the characters of set and returns its length; -1: longer than max. */
static int without(const char *at, size_t size, const char *set, char *to, size_t max)
{
	size_t count = 0;

	for (size_t i = 0; i < size; i++) {
		if (is_one_of(at[i], set))
			continue;
		if (count == max)
			return -1;
		to[count++] = at[i];
	}
	return (int) count;
}

static bool is_isbn10(const char *at, size_t size)
{
	char digits[10];
	int  sum = 0;

	if (without(at, size, " -\t\n\r\f", digits, sizeof digits) != 10)
		return false;
	for (int i = 0; i < 10; i++) {
		if (!is_digit(digits[i]) && !(i == 9 && digits[i] == 'X'))
			return false;
		sum += (i + 1) * (digits[i] == 'X' ? 10 : digits[i] - '0');
	}
	return sum % 11 == 0;
}

static bool is_isbn13(const char *at, size_t size)
{
	char digits[13];
	int  sum = 0;

	if (without(at, size, " -\t\n\r\f", digits, sizeof digits) != 13)
		return false;
	for (int i = 0; i < 13; i++) {
		if (!is_digit(digits[i]))
			return false;
		sum += (i % 2 ? 3 : 1) * (digits[i] - '0');
	}
	return sum % 10 == 0;
}

static bool is_isbn(const char *at, size_t size)
{
	return is_isbn10(at, size) || is_isbn13(at, size);
}

/* Thirteen to sixteen digits, ignoring other characters, with the prefix of an existing issuer and a valid
 * Luhn checksum. */
static bool is_credit_card(const char *at, size_t size)
{
	int digits[16], count = 0, sum = 0;

	for (size_t i = 0; i < size; i++) {
		if (!is_digit(at[i]))
			continue;
		if (count == 16)
			return false;
		digits[count++] = at[i] - '0';
	}
	if (count < 13 || digits[0] == 0 || digits[0] > 6)
		return false;
	for (int i = 0; i < count; i++) {
		int digit = digits[count - 1 - i];

		sum += i % 2 ? (digit * 2 > 9 ? digit * 2 - 9 : digit * 2) : digit;
	}
	return sum % 10 == 0;
}

static bool is_ssn(const char *at, size_t size)
{
	char   plain[9];
	bool   first = size > 3 && (at[3] == '-' || at[3] == ' ');
	size_t second = first ? 6 : 5;

	if (size < 9 || size > 11 ||
	    size != 9 + (size_t) first + (size > second && (at[second] == '-' || at[second] == ' ')))
		return false;
	return without(at, size, "- ", plain, sizeof plain) == 9 && looks_like(plain, 9, "999999999");
}

static bool is_hex_color(const char *at, size_t size)
{
	if (size && *at == '#')
		at++, size--;
	return looks_like(at, size, "fff") || looks_like(at, size, "ffffff");
}

static bool is_rgb_color(const char *at, size_t size)
{
	const char *end = at + size;

	if (size < 10 || memcmp(at, "rgb(", 4) != 0 || end[-1] != ')')
		return false;
	at += 4;
	for (int i = 0; i < 3; i++) {
		int value = 0, digits = 0;

		for (; at < end && is_one_of(*at, " \t\n\r\f"); at++)
			;
		for (; at < end && is_digit(*at) && digits < 4; at++, digits++)
			value = value * 10 + (*at - '0');
		if (digits == 0 || value > 255 || (digits > 1 && at[-digits] == '0'))
			return false;
		for (; at < end && is_one_of(*at, " \t\n\r\f"); at++)
			;
		if (at == end || *at++ != (i < 2 ? ',' : ')'))
			return false;
	}
	return at == end;
}

static bool is_base64(const char *at, size_t size)
{
	size_t padding = size && at[size - 1] == '=' ? (size > 1 && at[size - 2] == '=' ? 2 : 1) : 0;

	if (size == 0 || size % 4)
		return false;
	for (size_t i = 0; i < size - padding; i++)
		if (!is_letter(at[i]) && !is_digit(at[i]) && at[i] != '+' && at[i] != '/')
			return false;
	return true;
}

static bool is_object_id(const char *at, size_t size)
{
	return looks_like(at, size, "ffffffffffffffffffffffff");
}

static bool is_anything(const char *at, size_t size)
{
	return true;
}

static bool is_short_name(const char *at, size_t size)
{
	return vdi_validate_dns_label((struct vd_bytes) { at, size }) == NULL;
}

static bool is_long_name(const char *at, size_t size)
{
	return vdi_validate_subdomain((struct vd_bytes) { at, size }) == NULL;
}

static const struct {
	const char *name;
	format_fn  *holds;
} formats[] = {
	{ "bsonobjectid", is_object_id },
	{ "uri", is_uri },
	{ "email", is_email },
	{ "hostname", is_hostname },
	{ "ipv4", is_ipv4 },
	{ "ipv6", is_ipv6 },
	{ "cidr", is_cidr },
	{ "mac", is_mac },
	{ "uuid", is_uuid },
	{ "uuid3", is_uuid3 },
	{ "uuid4", is_uuid4 },
	{ "uuid5", is_uuid5 },
	{ "isbn", is_isbn },
	{ "isbn10", is_isbn10 },
	{ "isbn13", is_isbn13 },
	{ "creditcard", is_credit_card },
	{ "ssn", is_ssn },
	{ "hexcolor", is_hex_color },
	{ "rgbcolor", is_rgb_color },
	{ "byte", is_base64 },
	{ "password", is_anything },
	{ "date", is_date },
	{ "duration", is_duration },
	{ "datetime", is_date_time },
	{ "k8sshortname", is_short_name },
	{ "k8slongname", is_long_name },
};

static format_fn *find(struct vd_bytes format)
{
	char name[24];
	int  size = format.size ? without(format.data, format.size, "-", name, sizeof name) : 0;

	for (size_t i = 0; size > 0 && i < VDI_ARRAY_SIZE(formats); i++)
		if (strlen(formats[i].name) == (size_t) size &&
		    memcmp(formats[i].name, name, (size_t) size) == 0)
			return formats[i].holds;
	return NULL;
}

bool vdi_schema_format_is_known(struct vd_bytes format, enum vdi_schema_type type)
{
	switch (type) {
	case VDI_TYPE_NONE:
	case VDI_TYPE_STRING: return find(format) != NULL;
	case VDI_TYPE_INTEGER:
		return vd_bytes_equal(format, vd_bytes_of("int32")) ||
		       vd_bytes_equal(format, vd_bytes_of("int64"));
	case VDI_TYPE_NUMBER:
		return vd_bytes_equal(format, vd_bytes_of("float")) ||
		       vd_bytes_equal(format, vd_bytes_of("double"));
	case VDI_TYPE_ARRAY:
	case VDI_TYPE_BOOLEAN:
	case VDI_TYPE_OBJECT: break;
	}
	return false;
}

bool vdi_schema_format_holds(struct vd_bytes format, struct vd_bytes text)
{
	format_fn *holds = find(format);

	return holds == NULL || holds(text.size ? text.data : "", text.size);
}
