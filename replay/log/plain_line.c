/* Literals are compared at their exact places, so a missing, repeated or misplaced member ends the fast path
 * at once. The value is the text between its name and the last bracket, if that is exactly one JSON value:
 * then no other member can follow. Callers that scan the value anyway can check this. */
#include "plain_line.h"

#include "json_scan.h"

/* The unread part of the line. */
struct rest {
	const char *at;
	const char *end;
};

#define TAKE(rest, literal) take(rest, literal, sizeof(literal) - 1)

static bool take(struct rest *rest, const char *literal, size_t size)
{
	if ((size_t) (rest->end - rest->at) < size || memcmp(rest->at, literal, size) != 0)
		return false;
	rest->at += size;
	return true;
}

/* Takes 1 to 18 digits as JSON and the log allow them; longer numbers are rare. */
static bool take_number(struct rest *rest, int64_t *ret_number)
{
	const char *start = rest->at;
	int64_t	    number = 0;

	if (rest->at == rest->end || *rest->at == '0')
		return false;
	for (; rest->at < rest->end && *rest->at >= '0' && *rest->at <= '9'; rest->at++) {
		if (rest->at - start == 18)
			return false;
		number = number * 10 + (*rest->at - '0');
	}
	*ret_number = number;
	return rest->at > start;
}

/* Takes text up to and including the closing quote. Only printable ASCII without escapes. */
static bool take_text(struct rest *rest, struct vd_bytes *ret_text)
{
	const char *start = rest->at;

	for (; rest->at < rest->end && *rest->at != '"'; rest->at++)
		if ((signed char) *rest->at < ' ' || *rest->at == '\\') /* negative: multibyte character */
			return false;
	if (rest->at == rest->end)
		return false;
	*ret_text = (struct vd_bytes) { start, (size_t) (rest->at - start) };
	rest->at++;
	return true;
}

static bool take_value(struct rest *rest, struct vd_bytes *ret_value)
{
	struct vd_bytes value = { rest->at, (size_t) (rest->end - rest->at) };

	if (value.size < 2 || rest->end[-1] != '}')
		return false;
	value.size--;
	*ret_value = value;
	return true;
}

static bool read_commit(struct rest *rest, struct vdi_log_record *record)
{
	int64_t		records;
	struct vd_bytes sum;

	record->kind = VDI_LOG_COMMIT;
	if (!take_number(rest, &record->revision))
		return false;
	if (TAKE(rest, ",\"records\":")) {
		if (!take_number(rest, &records))
			return false;
		record->is_counted = true;
		record->records = (uint64_t) records;
	}
	if (TAKE(rest, VDI_EVENT_LOG_SUM_NAME) && !take_text(rest, &sum))
		return false;
	return TAKE(rest, "}") && rest->at == rest->end;
}

static bool read_change(struct rest *rest, struct vdi_log_record *record)
{
	if (!take_number(rest, &record->revision))
		return false;
	if (TAKE(rest, ",\"type\":\"PUT\",\"key\":\""))
		record->kind = VDI_LOG_PUT;
	else if (TAKE(rest, ",\"type\":\"DELETE\",\"key\":\""))
		record->kind = VDI_LOG_DELETE;
	else
		return false;
	if (!take_text(rest, &record->key) || record->key.size == 0 || record->key.size > VD_KEY_SIZE_MAX)
		return false;
	if (TAKE(rest, ",\"time\":\"") && !take_text(rest, &record->time))
		return false;
	if (TAKE(rest, ",\"createRev\":") && !take_number(rest, &record->create_rev))
		return false;
	if (TAKE(rest, ",\"version\":") && !take_number(rest, &record->version))
		return false;
	if (TAKE(rest, ",\"lease\":") && !take_number(rest, &record->lease))
		return false;
	if (record->kind == VDI_LOG_DELETE)
		return TAKE(rest, "}") && rest->at == rest->end;
	record->is_unchecked = true;
	return TAKE(rest, ",\"value\":") && take_value(rest, &record->value);
}

bool vdi_plain_line_is_value(struct vd_bytes value)
{
	/* The line itself is one level. */
	static const struct vdi_json_limits limits = { VDI_EVENT_LOG_LINE_MAX, VDI_JSON_DEPTH_MAX - 1 };
	bool				    is_spaced;

	return vdi_json_validate_spaced(value, &limits, &is_spaced, NULL) == VD_OK && !is_spaced;
}

bool vdi_plain_line_split(struct vd_bytes line, struct vdi_log_record *ret_record)
{
	struct rest	      rest = { line.data, (const char *) line.data + line.size };
	struct vdi_log_record record = { 0 };

	if (TAKE(&rest, "{\"rev\":") ? !read_change(&rest, &record) :
				       !TAKE(&rest, "{\"commit\":") || !read_commit(&rest, &record))
		return false;
	*ret_record = record;
	return true;
}
