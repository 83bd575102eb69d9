/* Recursive descent over a text of at most 64 KiB, with at most 16 nested parentheses. The canonical text is
 * written from the parsed ranges, so that equal selectors have equal texts whatever their spacing. */
#include "shard_selector.h"

#include <stdio.h>

#include "object.h"

#define PARENTHESES_MAX 16
/* "shardRange(object.metadata.namespace, '0x' 16 digits, '0x' 17 digits) || " */
#define RANGE_TEXT_MAX 112

static const char uid_path[] = "object.metadata.uid";
static const char namespace_path[] = "object.metadata.namespace";

struct reader {
	const char	       *at;
	const char	       *end;
	struct vdi_shard_range *ranges;
	size_t			range_count;
	size_t			range_capacity;
	bool			by_namespace;
	struct vd_error	       *error;
};

uint64_t vdi_fnv1a(struct vd_bytes bytes)
{
	const unsigned char *at = bytes.data;
	uint64_t	     hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < bytes.size; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash;
}

#define REFUSE(reader, ...)                                                                                  \
	vd_error_set((reader)->error, VD_BAD_REQUEST, "invalid shard selector: " __VA_ARGS__)

static void skip_space(struct reader *reader)
{
	while (reader->at < reader->end &&
	       (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\n' || *reader->at == '\r' ||
		*reader->at == '\f'))
		reader->at++;
}

static bool take(struct reader *reader, const char *token)
{
	size_t size = strlen(token);

	skip_space(reader);
	if ((size_t) (reader->end - reader->at) < size || memcmp(reader->at, token, size) != 0)
		return false;
	reader->at += size;
	return true;
}

static vd_status expect(struct reader *reader, const char *token)
{
	if (take(reader, token))
		return VD_OK;
	return REFUSE(reader, "expected '%s' at '%.*s'", token,
		      (int) VDI_MIN(reader->end - reader->at, (ptrdiff_t) 40), reader->at);
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Reads an identifier, or several separated by dots; spaces are allowed around the dots. */
static struct vd_bytes read_path(struct reader *reader, char *buffer, size_t size)
{
	size_t used = 0;

	do {
		if (used && used < size)
			buffer[used++] = '.';
		skip_space(reader);
		while (reader->at < reader->end && is_word(*reader->at)) {
			if (used < size)
				buffer[used++] = *reader->at;
			reader->at++;
		}
	} while (take(reader, "."));
	return (struct vd_bytes) { buffer, used };
}

/* Reads a bound: *ret_value is the number, *ret_end is true for 2^64. */
static vd_status read_bound(struct reader *reader, const char *name, uint64_t *ret_value, bool *ret_end)
{
	struct vd_bytes text;
	const char     *from;
	uint64_t	value = 0;
	char		quote;

	skip_space(reader);
	quote = reader->at < reader->end ? *reader->at : 0;
	if (quote != '\'' && quote != '"')
		return REFUSE(reader, "%s must be a string literal (e.g. '0xff')", name);
	from = ++reader->at;
	while (reader->at < reader->end && *reader->at != quote)
		reader->at++;
	if (reader->at == reader->end)
		return REFUSE(reader, "%s: unterminated string", name);
	text = (struct vd_bytes) { from, (size_t) (reader->at++ - from) };
	if (text.size < 2 || memcmp(from, "0x", 2) != 0)
		return REFUSE(reader, "%s must have '0x' prefix, got \"%.*s\"", name,
			      (int) VDI_MIN(text.size, (size_t) 40), from);
	*ret_end = vd_bytes_equal(text, vd_bytes_of("0x10000000000000000"));
	if (!*ret_end && text.size != 18)
		return REFUSE(reader, "%s must be a 0x-prefixed 16-digit hex value, got \"%.*s\"", name,
			      (int) VDI_MIN(text.size, (size_t) 40), from);
	for (size_t i = 2; i < text.size; i++) {
		char c = from[i];

		if ((c < '0' || c > '9') && (c < 'a' || c > 'f'))
			return REFUSE(reader, "%s: invalid hex character \"%c\" in \"%.*s\"", name,
				      c >= ' ' && c <= '~' ? c : '?', (int) text.size, from);
		value = value << 4 | (uint64_t) (c <= '9' ? c - '0' : c - 'a' + 10);
	}
	*ret_value = *ret_end ? 0 : value;
	return VD_OK;
}

static vd_status add_range(struct reader *reader, uint64_t first, uint64_t last)
{
	void *ranges = reader->ranges;

	if (reader->range_count == VDI_SHARD_RANGES_MAX)
		return REFUSE(reader, "more than %d ranges", VDI_SHARD_RANGES_MAX);
	if (!vdi_grow(&ranges, &reader->range_capacity, reader->range_count + 1, sizeof *reader->ranges))
		return vd_error_set(reader->error, VD_NOMEM, "out of memory for a shard selector");
	reader->ranges = ranges;
	reader->ranges[reader->range_count++] = (struct vdi_shard_range) { first, last };
	return VD_OK;
}

static vd_status read_call(struct reader *reader)
{
	char		buffer[64];
	struct vd_bytes path = read_path(reader, buffer, sizeof buffer);
	uint64_t	start = 0, end = 0;
	bool		start_is_end = false, end_is_end = false;
	bool		by_namespace;

	if (!vd_bytes_equal(path, vd_bytes_of("shardRange")))
		return REFUSE(reader, "unsupported function \"%.*s\"; only shardRange() and || are allowed",
			      (int) path.size, (const char *) path.data);
	VDI_TRY(expect(reader, "("));
	path = read_path(reader, buffer, sizeof buffer);
	by_namespace = vd_bytes_equal(path, vd_bytes_of(namespace_path));
	if (!by_namespace && !vd_bytes_equal(path, vd_bytes_of(uid_path)))
		return REFUSE(reader, "unsupported field path \"%.*s\"; supported: %s, %s", (int) path.size,
			      (const char *) path.data, uid_path, namespace_path);
	if (reader->range_count && by_namespace != reader->by_namespace)
		return REFUSE(reader, "all shard ranges must use the same field, got \"%s\" and \"%s\"",
			      reader->by_namespace ? namespace_path : uid_path,
			      by_namespace ? namespace_path : uid_path);
	reader->by_namespace = by_namespace;
	VDI_TRY(expect(reader, ","));
	VDI_TRY(read_bound(reader, "hexStart", &start, &start_is_end));
	VDI_TRY(expect(reader, ","));
	VDI_TRY(read_bound(reader, "hexEnd", &end, &end_is_end));
	VDI_TRY(expect(reader, ")"));
	if (start_is_end || (!end_is_end && start >= end))
		return REFUSE(reader, "shard range start must be less than end");
	return add_range(reader, start, end - 1);
}

static vd_status read_any(struct reader *reader, unsigned depth)
{
	do {
		if (take(reader, "(")) {
			if (depth == PARENTHESES_MAX)
				return REFUSE(reader, "more than %d parentheses", PARENTHESES_MAX);
			VDI_TRY(read_any(reader, depth + 1));
			VDI_TRY(expect(reader, ")"));
		} else {
			VDI_TRY(read_call(reader));
		}
	} while (take(reader, "||"));
	return VD_OK;
}

static vd_status build(const struct reader *reader, struct vdi_shard_selector **ret_selector)
{
	size_t size = sizeof **ret_selector + reader->range_count * sizeof reader->ranges[0];
	struct vdi_shard_selector *selector = vdi_calloc(1, size + reader->range_count * RANGE_TEXT_MAX);
	const char		  *path = reader->by_namespace ? namespace_path : uid_path;

	if (selector == NULL)
		return VD_NOMEM;
	selector->by_namespace = reader->by_namespace;
	selector->range_count = reader->range_count;
	selector->text = (char *) selector + size;
	for (size_t i = 0; i < reader->range_count; i++) {
		const struct vdi_shard_range *range = &reader->ranges[i];
		char			      end[24] = "0x10000000000000000";

		selector->ranges[i] = *range;
		if (range->last != UINT64_MAX)
			snprintf(end, sizeof end, "0x%016llx", (unsigned long long) range->last + 1);
		selector->text_size +=
			(size_t) snprintf(selector->text + selector->text_size, RANGE_TEXT_MAX,
					  "%sshardRange(%s, '0x%016llx', '%s')", i ? " || " : "", path,
					  (unsigned long long) range->first, end);
	}
	*ret_selector = selector;
	return VD_OK;
}

vd_status vdi_shard_selector_parse(struct vd_bytes text, struct vdi_shard_selector **ret_selector,
				   struct vd_error *reterr)
{
	struct reader reader = { .at = text.data,
				 .end = text.size ? (const char *) text.data + text.size : text.data,
				 .error = reterr };
	vd_status     status;

	if (text.size == 0) {
		*ret_selector = NULL;
		return VD_OK;
	}
	if (text.size > VDI_SHARD_SELECTOR_SIZE_MAX)
		return REFUSE(&reader, "longer than %zu bytes", VDI_SHARD_SELECTOR_SIZE_MAX);
	skip_space(&reader);
	if (reader.at == reader.end)
		return REFUSE(&reader,
			      "empty shard selector is not allowed; omit the parameter for unfiltered lists");
	status = read_any(&reader, 0); /* also skips the space after the last range */
	if (status == VD_OK && reader.at != reader.end)
		status = REFUSE(&reader, "only shardRange() and || are allowed, got '%.*s'",
				(int) VDI_MIN(reader.end - reader.at, (ptrdiff_t) 40), reader.at);
	if (status == VD_OK && build(&reader, ret_selector) != VD_OK)
		status = vd_error_set(reterr, VD_NOMEM, "out of memory for a shard selector");
	vdi_free(reader.ranges);
	return status;
}

struct vdi_shard_selector *vdi_shard_selector_free(struct vdi_shard_selector *selector)
{
	vdi_free(selector);
	return NULL;
}

bool vdi_shard_selector_matches(const struct vdi_shard_selector *selector, const struct vd_object *object)
{
	uint64_t hash;

	if (selector == NULL)
		return true;
	hash = vdi_fnv1a(selector->by_namespace ? vd_object_namespace(object) : vdi_object_uid(object));
	for (size_t i = 0; i < selector->range_count; i++)
		if (hash >= selector->ranges[i].first && hash <= selector->ranges[i].last)
			return true;
	return false;
}

struct vd_bytes vdi_shard_selector_text(const struct vdi_shard_selector *selector)
{
	return selector ? (struct vd_bytes) { selector->text, selector->text_size } : VD_BYTES_NONE;
}
