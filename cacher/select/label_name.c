/* The syntax of label keys and values, with upstream's error messages. The regular expressions are short
 * enough for loops. */
#include "selector.h"

#define NAME_FORMAT "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
#define NAME_RULE                                                                                            \
	"must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "          \
	"alphanumeric character"
#define NAME_EXAMPLES                                                                                        \
	"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '" NAME_FORMAT "')"
#define DNS_LABEL_FORMAT "[a-z0-9]([-a-z0-9]*[a-z0-9])?"

struct reasons {
	char  *message;
	size_t size;
	size_t length;
	bool   any;
};

/* Appends a reason, truncated to the remaining space. */
static void reason_add(struct reasons *reasons, const char *reason)
{
	const char *const parts[] = { reasons->any ? "; " : "", reason };

	reasons->any = true;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(parts) && reasons->size; i++) {
		size_t length = VDI_MIN(strlen(parts[i]), reasons->size - 1 - reasons->length);

		memcpy(reasons->message + reasons->length, parts[i], length);
		reasons->length += length;
		reasons->message[reasons->length] = 0;
	}
}

static bool is_lower_alphanumeric(char character)
{
	return (character >= 'a' && character <= 'z') || (character >= '0' && character <= '9');
}

static bool is_alphanumeric(char character)
{
	return is_lower_alphanumeric(character) || (character >= 'A' && character <= 'Z');
}

/* ^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$ */
static bool name_matches(const char *name, size_t size)
{
	if (size == 0 || !is_alphanumeric(name[0]) || !is_alphanumeric(name[size - 1]))
		return false;
	for (size_t i = 0; i < size; i++)
		if (!is_alphanumeric(name[i]) && name[i] != '-' && name[i] != '_' && name[i] != '.')
			return false;
	return true;
}

/* Dot-separated labels, each ^[a-z0-9]([-a-z0-9]*[a-z0-9])?$; size is not 0. */
static bool subdomain_matches(const char *name, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		bool first = i == 0 || name[i - 1] == '.';
		bool last = i + 1 == size || name[i + 1] == '.';

		if (name[i] == '.' ? first || last :
				     !is_lower_alphanumeric(name[i]) && (name[i] != '-' || first || last))
			return false;
	}
	return true;
}

bool vdi_label_key_valid(struct vd_bytes key, char *message, size_t size)
{
	struct reasons reasons = { message, size, 0, false };
	const char    *text = key.data;
	const char    *slash = key.size ? memchr(text, '/', key.size) : NULL;
	const char    *name = slash ? slash + 1 : text;
	size_t	       name_size = key.size - (size_t) (name - text);

	if (slash && name_size && memchr(name, '/', name_size)) {
		reason_add(&reasons,
			   "a valid label key " NAME_RULE " " NAME_EXAMPLES
			   " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')");
		return false;
	}
	if (slash == text && slash) {
		reason_add(&reasons, "prefix part must be non-empty");
	} else if (slash) {
		if (slash - text > 253)
			reason_add(&reasons, "prefix part must be no more than 253 bytes");
		if (!subdomain_matches(text, (size_t) (slash - text)))
			reason_add(&reasons, "prefix part a lowercase RFC 1123 subdomain must consist of "
					     "lower case alphanumeric characters, "
					     "'-' or '.', and must start and end with an alphanumeric "
					     "character (e.g. 'example.com', regex "
					     "used for validation is '" DNS_LABEL_FORMAT
					     "(\\." DNS_LABEL_FORMAT ")*')");
	}
	if (name_size == 0)
		reason_add(&reasons, "name part must be non-empty");
	else if (name_size > 63)
		reason_add(&reasons, "name part must be no more than 63 bytes");
	if (!name_matches(name, name_size))
		reason_add(&reasons, "name part " NAME_RULE " " NAME_EXAMPLES);
	return !reasons.any;
}

bool vdi_label_value_valid(struct vd_bytes value, char *message, size_t size)
{
	struct reasons reasons = { message, size, 0, false };

	if (value.size > 63)
		reason_add(&reasons, "must be no more than 63 bytes");
	if (value.size && !name_matches(value.data, value.size))
		reason_add(&reasons, "a valid label must be an empty string or consist of alphanumeric "
				     "characters, '-', '_' or '.', and must start "
				     "and end with an alphanumeric character (e.g. 'MyValue',  or "
				     "'my_value',  or '12345', regex used for "
				     "validation is '(" NAME_FORMAT ")?')");
	return !reasons.any;
}
