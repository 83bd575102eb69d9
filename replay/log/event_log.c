/* Lines are read from the file, through zstd if its magic is present. Plain lines take a fast path
 * (plain_line.c); all others are scanned in one pass with a plan of the members of this format. Values remain
 * slices of the line. A caller that decodes values into objects scans them itself, which validates them; only
 * a value that it rejects is scanned here. */
#include "event_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include "base64.h"
#include "json_scan.h"
#include "json_text.h"
#include "plain_line.h"

#define READ_SIZE ((size_t) 64 << 10)
/* Capacity of a pipe that a log is read from, if the system allows it, to switch less often between writer
 * and reader. */
#define PIPE_SIZE (1 << 20)

enum member {
	MEMBER_LOG,
	MEMBER_REV,
	MEMBER_TYPE,
	MEMBER_KEY,
	MEMBER_VALUE,
	MEMBER_VALUE_BASE64,
	MEMBER_TIME,
	MEMBER_CREATE_REV,
	MEMBER_VERSION,
	MEMBER_LEASE,
	MEMBER_COMMIT,
	MEMBER_SNAPSHOT,
	MEMBER_SNAPSHOT_END,
	MEMBER_COMPACT,
	MEMBER_PROGRESS,
	MEMBER_DISCONNECT,
	MEMBER_ERROR,
	MEMBER_CHECKSUMS,
	MEMBER_RECORDS,
	MEMBER_END,
	MEMBER_SUM,
	MEMBER_COUNT
};
static const char *const member_names[MEMBER_COUNT] = {
	"vedetteLog", "rev",	    "type",  "key",	  "value",    "valueBase64", "time",
	"createRev",  "version",    "lease", "commit",	  "snapshot", "snapshotEnd", "compact",
	"progress",   "disconnect", "error", "checksums", "records",  "end",	     "sum",
};

static const unsigned char zstd_magic[] = { 0x28, 0xb5, 0x2f, 0xfd };

struct scratch {
	char  *data;
	size_t capacity;
};

struct vdi_event_log {
	char		      *path;
	int		       fd;   /* -1: not open */
	ZSTD_DStream	      *zstd; /* NULL: plain */
	struct vdi_json_plan  *plan;
	struct vdi_json_object object;

	char	       *compressed; /* compressed input */
	size_t		compressed_at, compressed_size;
	char	       *text; /* read and not consumed: [at, size) */
	size_t		at, size, capacity;
	struct vd_bytes last;					  /* last line read */
	struct scratch	key_scratch, value_scratch, text_scratch; /* unescaped and decoded members */
	uint64_t	line;
	uint64_t	offset; /* end of that line in the text */
	bool		at_end, torn;
	bool		in_frame;   /* the compressed text read last ends within a frame */
	bool		is_damaged; /* compressed text continues only after damage */
	bool		has_zeros;  /* the line read last contains NUL bytes */
	bool		is_sealed;
	uint64_t	sum;	    /* over all lines read so far */
	uint64_t	sum_line;   /* last line with a checksum */
	uint64_t	sum_offset; /* end of that line in the text */
	uint64_t	records;    /* since the last line that counts records */
};

static vd_status broken(struct vdi_event_log *log, struct vd_error *reterr, const char *why)
{
	return vd_error_set(reterr, VD_BAD_REQUEST, "%s:%llu: %s", log->path, (unsigned long long) log->line,
			    why);
}

/* ---- Bytes ---- */

/* Ensures space for at least READ_SIZE bytes after the unread ones. */
static vd_status make_room(struct vdi_event_log *log, struct vd_error *reterr)
{
	if (log->at) {
		memmove(log->text, log->text + log->at, log->size - log->at);
		log->size -= log->at;
		log->at = 0;
	}
	if (log->size > VDI_EVENT_LOG_LINE_MAX) {
		log->line++;
		return broken(log, reterr, "the line is longer than 64 MiB");
	}
	if (!vdi_grow((void **) &log->text, &log->capacity, log->size + READ_SIZE, 1))
		return vd_error_set(reterr, VD_NOMEM, "out of memory for a line of %s", log->path);
	return VD_OK;
}

static vd_status read_file(struct vdi_event_log *log, char *buffer, size_t room, size_t *ret_size,
			   struct vd_error *reterr)
{
	ssize_t got;

	do
		got = read(log->fd, buffer, room);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return vd_error_set(reterr, VD_IO, "cannot read %s: %s", log->path, strerror(errno));
	*ret_size = (size_t) got;
	return VD_OK;
}

static vd_status read_compressed(struct vdi_event_log *log, size_t *ret_size, struct vd_error *reterr)
{
	ZSTD_outBuffer out = { log->text + log->size, log->capacity - log->size, 0 };

	while (out.pos == 0) {
		ZSTD_inBuffer in;
		size_t	      result;

		if (log->compressed_at == log->compressed_size) {
			log->compressed_at = 0;
			VDI_TRY(read_file(log, log->compressed, READ_SIZE, &log->compressed_size, reterr));
			if (log->compressed_size == 0)
				break;
		}
		in = (ZSTD_inBuffer) { log->compressed, log->compressed_size, log->compressed_at };
		result = ZSTD_decompressStream(log->zstd, &out, &in);
		log->is_damaged = ZSTD_isError(result);
		if (log->is_damaged)
			return vd_error_set(reterr, VD_BAD_REQUEST,
					    "%s: damaged compression after line %llu: %s", log->path,
					    (unsigned long long) log->line, ZSTD_getErrorName(result));
		log->compressed_at = in.pos;
		log->in_frame = result != 0;
	}
	*ret_size = out.pos;
	return VD_OK;
}

static vd_status read_more(struct vdi_event_log *log, struct vd_error *reterr)
{
	size_t size = 0;

	VDI_TRY(make_room(log, reterr));
	if (log->zstd)
		VDI_TRY(read_compressed(log, &size, reterr));
	else
		VDI_TRY(read_file(log, log->text + log->size, log->capacity - log->size, &size, reterr));
	log->size += size;
	log->at_end = size == 0;
	return VD_OK;
}

/* Returns the next line without its newline; VD_CLOSED at the end. Skips empty lines. */
static vd_status next_line(struct vdi_event_log *log, struct vd_bytes *ret_line, struct vd_error *reterr)
{
	size_t searched = 0;

	for (;;) {
		const char *start = log->text + log->at;
		size_t	    unread = log->size - log->at;
		const char *end =
			unread > searched ? memchr(start + searched, '\n', unread - searched) : NULL;

		if (end) {
			size_t size = (size_t) (end - start);

			log->at += size + 1;
			log->offset += size + 1;
			log->line++;
			if (size && start[size - 1] == '\r')
				size--;
			if (size == 0) {
				searched = 0;
				continue;
			}
			*ret_line = (struct vd_bytes) { start, size };
			return VD_OK;
		}
		if (log->at_end) {
			log->torn = unread > 0 || log->in_frame;
			return VD_CLOSED;
		}
		searched = unread;
		VDI_TRY(read_more(log, reterr));
	}
}

/* ---- Members ---- */

/* Parses a whole JSON number; false: not one, or too large. */
static bool parse_number(struct vd_bytes text, int64_t *ret_number)
{
	const char *at = text.data, *end = at + text.size;
	bool	    negative = at < end && *at == '-';
	uint64_t    number = 0;

	at += negative;
	if (at == end || end - at > 19)
		return false;
	for (; at < end; at++) {
		if (*at < '0' || *at > '9')
			return false;
		number = number * 10 + (uint64_t) (*at - '0');
	}
	if (number > (uint64_t) INT64_MAX + negative)
		return false;
	*ret_number = negative ? (int64_t) (0 - number) : (int64_t) number;
	return true;
}

static vd_status number_of(struct vdi_event_log *log, struct vd_bytes line, enum member member, int64_t least,
			   int64_t *ret_number, struct vd_error *reterr)
{
	const struct vdi_json_value *value = vdi_json_field(&log->object, member);
	int64_t			     number;
	char			     why[64];

	if (value->type == VDI_JSON_ABSENT)
		return VD_OK;
	if (value->type != VDI_JSON_NUMBER || !parse_number(vdi_json_value_bytes(line, value), &number) ||
	    number < least) {
		snprintf(why, sizeof why, "\"%s\" must be a whole number", member_names[member]);
		return broken(log, reterr, why);
	}
	*ret_number = number;
	return VD_OK;
}

static vd_status scratch_grow(struct scratch *scratch, size_t size, struct vd_error *reterr)
{
	if (!vdi_grow((void **) &scratch->data, &scratch->capacity, size, 1))
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	return VD_OK;
}

static vd_status string_of(struct vdi_event_log *log, struct vd_bytes line, enum member member,
			   struct scratch *scratch, struct vd_bytes *ret_text, struct vd_error *reterr)
{
	const struct vdi_json_value *value = vdi_json_field(&log->object, member);
	struct vd_bytes		     text = vdi_json_value_bytes(line, value);
	char			     why[64];

	if (value->type == VDI_JSON_ABSENT)
		return VD_OK;
	if (value->type != VDI_JSON_STRING) {
		snprintf(why, sizeof why, "\"%s\" must be a string", member_names[member]);
		return broken(log, reterr, why);
	}
	if (value->escaped) {
		VDI_TRY(scratch_grow(scratch, text.size, reterr));
		text.size = vdi_json_unescape(text, scratch->data);
		text.data = scratch->data;
	}
	*ret_text = text;
	return VD_OK;
}

static vd_status value_of(struct vdi_event_log *log, struct vd_bytes line, struct vdi_log_record *record,
			  struct vd_error *reterr)
{
	const struct vdi_json_value *value = vdi_json_field(&log->object, MEMBER_VALUE);
	const struct vdi_json_value *base64 = vdi_json_field(&log->object, MEMBER_VALUE_BASE64);
	struct vd_bytes		     text = vdi_json_value_bytes(line, value);

	if ((value->type == VDI_JSON_ABSENT) == (base64->type == VDI_JSON_ABSENT))
		return broken(log, reterr, "a PUT needs one of \"value\" and \"valueBase64\"");
	if (value->type != VDI_JSON_ABSENT) {
		if (value->type == VDI_JSON_STRING) /* includes its quotes, because the value is JSON */
			text = (struct vd_bytes) { (const char *) text.data - 1, text.size + 2 };
		if (log->object.spaced) {
			VDI_TRY(scratch_grow(&log->value_scratch, text.size, reterr));
			text.size = vdi_json_minify(text, log->value_scratch.data);
			text.data = log->value_scratch.data;
		}
		record->value = text;
		return VD_OK;
	}
	text = vdi_json_value_bytes(line, base64);
	if (base64->type != VDI_JSON_STRING)
		return broken(log, reterr, "\"valueBase64\" must be a string");
	VDI_TRY(scratch_grow(&log->value_scratch, VDI_BASE64_DECODED_MAX(text.size), reterr));
	if (vdi_base64_decode(VDI_BASE64_STANDARD, text, log->value_scratch.data, &record->value.size,
			      NULL) != VD_OK)
		return broken(log, reterr, "\"valueBase64\" is not base64");
	record->value.data = log->value_scratch.data;
	return VD_OK;
}

static bool has(const struct vdi_event_log *log, enum member member)
{
	return vdi_json_field(&log->object, member)->type != VDI_JSON_ABSENT;
}

static vd_status change_of(struct vdi_event_log *log, struct vd_bytes line, struct vdi_log_record *record,
			   struct vd_error *reterr)
{
	struct vd_bytes type = VD_BYTES_NONE;

	VDI_TRY(number_of(log, line, MEMBER_REV, 1, &record->revision, reterr));
	VDI_TRY(number_of(log, line, MEMBER_CREATE_REV, 1, &record->create_rev, reterr));
	VDI_TRY(number_of(log, line, MEMBER_VERSION, 1, &record->version, reterr));
	VDI_TRY(number_of(log, line, MEMBER_LEASE, INT64_MIN, &record->lease, reterr));
	VDI_TRY(string_of(log, line, MEMBER_TYPE, &log->text_scratch, &type, reterr));
	if (vd_bytes_equal(type, vd_bytes_of("PUT"))) {
		record->kind = VDI_LOG_PUT;
		VDI_TRY(value_of(log, line, record, reterr));
	} else if (vd_bytes_equal(type, vd_bytes_of("DELETE"))) {
		record->kind = VDI_LOG_DELETE;
	} else {
		return broken(log, reterr, "\"type\" must be \"PUT\" or \"DELETE\"");
	}
	VDI_TRY(string_of(log, line, MEMBER_KEY, &log->key_scratch, &record->key, reterr));
	VDI_TRY(string_of(log, line, MEMBER_TIME, &log->text_scratch, &record->time, reterr));
	if (record->key.size == 0 || record->key.size > VD_KEY_SIZE_MAX)
		return broken(log, reterr, "\"key\" must have 1 to 4096 bytes");
	return VD_OK;
}

/* Reads the other members of a line that ends records, or the log. */
static vd_status counts_of(struct vdi_event_log *log, struct vd_bytes line, struct vdi_log_record *record,
			   struct vd_error *reterr)
{
	int64_t records = 0;

	record->is_end = record->kind == VDI_LOG_PROGRESS &&
			 vdi_json_field(&log->object, MEMBER_END)->type == VDI_JSON_TRUE;
	if (record->kind != VDI_LOG_COMMIT && record->kind != VDI_LOG_SNAPSHOT_END)
		return VD_OK;
	VDI_TRY(number_of(log, line, MEMBER_RECORDS, 0, &records, reterr));
	record->is_counted = has(log, MEMBER_RECORDS);
	record->records = (uint64_t) records;
	return VD_OK;
}

static vd_status mark_of(struct vdi_event_log *log, struct vd_bytes line, struct vdi_log_record *record,
			 struct vd_error *reterr)
{
	static const struct {
		enum member	  member;
		enum vdi_log_kind kind;
	} marks[] = {
		{ MEMBER_COMMIT, VDI_LOG_COMMIT },
		{ MEMBER_SNAPSHOT, VDI_LOG_SNAPSHOT },
		{ MEMBER_SNAPSHOT_END, VDI_LOG_SNAPSHOT_END },
		{ MEMBER_COMPACT, VDI_LOG_COMPACT },
		{ MEMBER_PROGRESS, VDI_LOG_PROGRESS },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(marks); i++)
		if (has(log, marks[i].member)) {
			record->kind = marks[i].kind;
			VDI_TRY(number_of(log, line, marks[i].member, 1, &record->revision, reterr));
			return counts_of(log, line, record, reterr);
		}
	if (has(log, MEMBER_DISCONNECT)) {
		record->kind = VDI_LOG_DISCONNECT;
		return VD_OK;
	}
	if (has(log, MEMBER_ERROR)) {
		record->kind = VDI_LOG_FAILURE;
		return string_of(log, line, MEMBER_ERROR, &log->text_scratch, &record->text, reterr);
	}
	return broken(log, reterr,
		      "the line has none of the members rev, commit, snapshot, snapshotEnd, compact, "
		      "progress, disconnect, error");
}

/* ---- Checksums ---- */

uint64_t vdi_event_log_sum_add(uint64_t sum, struct vd_bytes line)
{
	return XXH64(line.data, line.size, sum);
}

/* Splits the checksum from the end of a line. false: there is none. */
static bool split_sum(struct vd_bytes line, struct vd_bytes *ret_summed, uint64_t *ret_sum)
{
	const char *tail;
	uint64_t    sum = 0;

	if (line.size < VDI_EVENT_LOG_SUM_SIZE)
		return false;
	tail = (const char *) line.data + line.size - VDI_EVENT_LOG_SUM_SIZE;
	if (memcmp(tail, VDI_EVENT_LOG_SUM_NAME, sizeof VDI_EVENT_LOG_SUM_NAME - 1) != 0 ||
	    memcmp(tail + VDI_EVENT_LOG_SUM_SIZE - 2, "\"}", 2) != 0)
		return false;
	tail += sizeof VDI_EVENT_LOG_SUM_NAME - 1;
	for (size_t i = 0; i < 16; i++) {
		bool is_digit = tail[i] >= '0' && tail[i] <= '9';

		if (!is_digit && (tail[i] < 'a' || tail[i] > 'f'))
			return false;
		sum = sum << 4 | (uint64_t) (is_digit ? tail[i] - '0' : tail[i] - 'a' + 10);
	}
	*ret_summed = (struct vd_bytes) { line.data, line.size - VDI_EVENT_LOG_SUM_SIZE };
	*ret_sum = sum;
	return true;
}

static vd_status disagrees(struct vdi_event_log *log, struct vd_error *reterr, const char *why)
{
	return vd_error_set(reterr, VD_BAD_REQUEST,
			    "%s:%llu: %s: lines %llu to %llu were changed after they were written", log->path,
			    (unsigned long long) log->line, why, (unsigned long long) log->sum_line + 1,
			    (unsigned long long) log->line);
}

/* Adds the last line to the checksum, or compares it with the checksum at its end. */
static vd_status add_line(struct vdi_event_log *log, const struct vdi_log_record *record,
			  struct vd_error *reterr)
{
	bool		is_change = record->kind == VDI_LOG_PUT || record->kind == VDI_LOG_DELETE;
	struct vd_bytes summed;
	uint64_t	sum;

	if (is_change || !split_sum(log->last, &summed, &sum)) {
		if (!log->is_sealed)
			return VD_OK;
		log->sum = vdi_event_log_sum_add(log->sum, log->last);
		return is_change || record->kind == VDI_LOG_SNAPSHOT ?
			       VD_OK :
			       disagrees(log, reterr, "the line has no checksum at its end");
	}
	if (!log->is_sealed)
		return broken(log, reterr,
			      "the line has a checksum, but the first line of the log does not name the kind "
			      "of its checksums");
	log->sum = vdi_event_log_sum_add(log->sum, summed);
	if (log->sum != sum)
		return disagrees(log, reterr, "the checksum does not match");
	log->sum_line = log->line;
	log->sum_offset = log->offset;
	return VD_OK;
}

/* Compares the number of records that a line states with those that were read. */
static vd_status count_records(struct vdi_event_log *log, const struct vdi_log_record *record,
			       struct vd_error *reterr)
{
	char why[96];

	if (record->kind == VDI_LOG_PUT || record->kind == VDI_LOG_DELETE) {
		log->records++;
		return VD_OK;
	}
	if (record->is_counted && record->records != log->records) {
		snprintf(why, sizeof why, "the line closes %llu records, but there are %llu",
			 (unsigned long long) record->records, (unsigned long long) log->records);
		return broken(log, reterr, why);
	}
	log->records = 0;
	return VD_OK;
}

static vd_status scan(struct vdi_event_log *log, struct vd_bytes line, struct vd_error *reterr)
{
	static const struct vdi_json_limits limits = { VDI_EVENT_LOG_LINE_MAX, VDI_JSON_DEPTH_MAX };
	struct vd_error			    error = { 0 };
	vd_status			    status = vdi_json_scan(line, &limits, &log->object, &error);

	return status == VD_BAD_REQUEST || status == VD_TOO_BIG ? broken(log, reterr, error.message) :
	       status != VD_OK ? vd_error_set(reterr, status, "%s", error.message) :
				 VD_OK;
}

/* Not inlined, so that a plain line does not pay for clearing all this. */
static __attribute__((noinline)) vd_status read_members(struct vdi_event_log *log, struct vd_bytes line,
							struct vdi_log_record *ret_record,
							struct vd_error	      *reterr)
{
	struct vdi_log_record record = { .line = log->line };

	VDI_TRY(scan(log, line, reterr));
	if (has(log, MEMBER_REV))
		VDI_TRY(change_of(log, line, &record, reterr));
	else
		VDI_TRY(mark_of(log, line, &record, reterr));
	*ret_record = record;
	return VD_OK;
}

vd_status vdi_event_log_next_unchecked(struct vdi_event_log *log, struct vdi_log_record *ret_record,
				       struct vd_error *reterr)
{
	struct vdi_log_record record;

	VDI_TRY(next_line(log, &log->last, reterr));
	log->has_zeros = log->is_sealed && memchr(log->last.data, 0, log->last.size);
	if (log->has_zeros)
		return broken(log, reterr, "the line contains NUL bytes");
	if (!vdi_plain_line_split(log->last, &record))
		VDI_TRY(read_members(log, log->last, &record, reterr));
	record.line = log->line;
	VDI_TRY(count_records(log, &record, reterr));
	VDI_TRY(add_line(log, &record, reterr));
	*ret_record = record;
	return VD_OK;
}

vd_status vdi_event_log_check(struct vdi_event_log *log, struct vdi_log_record *record,
			      struct vd_error *reterr)
{
	if (record->is_unchecked && !vdi_plain_line_is_value(record->value))
		return read_members(log, log->last, record, reterr);
	record->is_unchecked = false;
	return VD_OK;
}

vd_status vdi_event_log_next(struct vdi_event_log *log, struct vdi_log_record *ret_record,
			     struct vd_error *reterr)
{
	struct vdi_log_record record;

	VDI_TRY(vdi_event_log_next_unchecked(log, &record, reterr));
	VDI_TRY(vdi_event_log_check(log, &record, reterr));
	*ret_record = record;
	return VD_OK;
}

/* ---- After a power cut ---- */

/* Returns how much text a line states to be on disk; 0: it states nothing. */
static uint64_t synced_of(struct vd_bytes line)
{
	static const char name[] = VDI_EVENT_LOG_SYNCED_NAME;
	struct vd_bytes	  summed;
	const char	 *start, *at;
	uint64_t	  sum;
	int64_t		  synced;

	if (!split_sum(line, &summed, &sum))
		return 0;
	start = summed.data;
	for (at = start + summed.size; at > start && at[-1] >= '0' && at[-1] <= '9';)
		at--;
	if ((size_t) (at - start) < sizeof name - 1 ||
	    memcmp(at - (sizeof name - 1), name, sizeof name - 1) != 0 ||
	    !parse_number((struct vd_bytes) { at, (size_t) (start + summed.size - at) }, &synced))
		return 0;
	return (uint64_t) synced;
}

/* Continues after damage, at the next frame magic. false: there is none. */
static bool find_frame(struct vdi_event_log *log)
{
	size_t kept, got = 0;

	log->at = log->size = 0;
	log->compressed_at++;
	for (;;) {
		for (; log->compressed_at + sizeof zstd_magic <= log->compressed_size; log->compressed_at++) {
			if (memcmp(log->compressed + log->compressed_at, zstd_magic, sizeof zstd_magic) != 0)
				continue;
			log->is_damaged = false;
			return !ZSTD_isError(ZSTD_initDStream(log->zstd));
		}
		kept = log->compressed_size > log->compressed_at ? log->compressed_size - log->compressed_at :
								   0;
		memmove(log->compressed, log->compressed + log->compressed_size - kept, kept);
		if (read_file(log, log->compressed + kept, READ_SIZE - kept, &got, NULL) != VD_OK || got == 0)
			return false;
		log->compressed_at = 0;
		log->compressed_size = kept + got;
	}
}

/* Returns true if a later line states that text after the last valid checksum was synced. */
static bool was_synced(struct vdi_event_log *log)
{
	struct vd_bytes line;
	vd_status	status;

	for (;;) {
		if (log->is_damaged && !find_frame(log))
			return false;
		while ((status = next_line(log, &line, NULL)) == VD_OK)
			if (synced_of(line) > log->sum_offset)
				return true;
		if (status != VD_BAD_REQUEST || !log->is_damaged)
			return status != VD_CLOSED;
	}
}

bool vdi_event_log_was_cut_off(struct vdi_event_log *log)
{
	if (!log->is_sealed || (log->zstd == NULL && !log->has_zeros) || was_synced(log))
		return false;
	log->torn = true;
	log->line = log->sum_line;
	return true;
}

bool vdi_event_log_is_sealed(const struct vdi_event_log *log)
{
	return log->is_sealed;
}

uint64_t vdi_event_log_sum(const struct vdi_event_log *log)
{
	return log->sum;
}

uint64_t vdi_event_log_line(const struct vdi_event_log *log)
{
	return log->line;
}

uint64_t vdi_event_log_offset(const struct vdi_event_log *log)
{
	return log->offset;
}

bool vdi_event_log_is_torn(const struct vdi_event_log *log)
{
	return log->torn;
}

struct vd_bytes vdi_event_log_torn_text(const struct vdi_event_log *log)
{
	return log->torn && log->size > log->at ?
		       (struct vd_bytes) { log->text + log->at, log->size - log->at } :
		       VD_BYTES_NONE;
}

/* ---- Lifetime ---- */

static vd_status read_header(struct vdi_event_log *log, struct vd_error *reterr)
{
	struct vd_bytes line, checksums = VD_BYTES_NONE;
	int64_t		version = 0;
	vd_status	status = next_line(log, &line, reterr);

	if (status == VD_CLOSED)
		return vd_error_set(reterr, VD_BAD_REQUEST,
				    "%s is empty: an event log starts with {\"vedetteLog\":%d}", log->path,
				    VDI_EVENT_LOG_VERSION);
	VDI_TRY(status);
	if (scan(log, line, NULL) != VD_OK || !has(log, MEMBER_LOG))
		return vd_error_set(reterr, VD_BAD_REQUEST,
				    "%s is not an event log: its first line is not {\"vedetteLog\":%d}",
				    log->path, VDI_EVENT_LOG_VERSION);
	VDI_TRY(number_of(log, line, MEMBER_LOG, 1, &version, reterr));
	if (version > VDI_EVENT_LOG_VERSION)
		return vd_error_set(reterr, VD_NEWER_FORMAT,
				    "%s has format %lld, this program supports up to %d", log->path,
				    (long long) version, VDI_EVENT_LOG_VERSION);
	VDI_TRY(string_of(log, line, MEMBER_CHECKSUMS, &log->text_scratch, &checksums, reterr));
	log->is_sealed = has(log, MEMBER_CHECKSUMS);
	if (log->is_sealed && !vd_bytes_equal(checksums, vd_bytes_of(VDI_EVENT_LOG_CHECKSUMS)))
		return vd_error_set(
			reterr, VD_NEWER_FORMAT,
			"%s has checksums of an unknown kind; this program supports " VDI_EVENT_LOG_CHECKSUMS,
			log->path);
	log->sum = vdi_event_log_sum_add(0, line);
	log->sum_line = log->line;
	log->sum_offset = log->offset;
	return VD_OK;
}

/* Checks the first bytes for the magic number of a zstd frame. */
static vd_status find_compression(struct vdi_event_log *log, struct vd_error *reterr)
{
	VDI_TRY(read_more(log, reterr));
	if (log->size < sizeof zstd_magic || memcmp(log->text, zstd_magic, sizeof zstd_magic) != 0)
		return VD_OK;
	log->compressed = vdi_alloc(VDI_MAX(log->size, READ_SIZE));
	log->zstd = ZSTD_createDStream();
	if (log->compressed == NULL || log->zstd == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	memcpy(log->compressed, log->text, log->size);
	log->compressed_size = log->size;
	log->size = 0;
	return VD_OK;
}

static vd_status prepare(struct vdi_event_log *log, struct vd_error *reterr)
{
	struct vd_bytes paths[MEMBER_COUNT];

	for (size_t i = 0; i < MEMBER_COUNT; i++)
		paths[i] = vd_bytes_of(member_names[i]);
	VDI_TRY(vdi_json_plan_new(paths, MEMBER_COUNT, &log->plan, reterr));
	VDI_TRY(vdi_json_object_init(&log->object, log->plan));
	VDI_TRY(find_compression(log, reterr));
	return read_header(log, reterr);
}

vd_status vdi_event_log_open(const char *path, struct vdi_event_log **ret_log, struct vd_error *reterr)
{
	struct vdi_event_log *log = VDI_NEW(struct vdi_event_log);
	vd_status	      status;

	if (log == NULL || (log->path = vdi_strdup(path)) == NULL) {
		vdi_free(log);
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	log->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (log->fd < 0) {
		status = vd_error_set(reterr, errno == ENOENT ? VD_NOT_FOUND : VD_IO, "cannot open %s: %s",
				      path, strerror(errno));
		vdi_event_log_close(log);
		return status;
	}
	(void) fcntl(log->fd, F_SETPIPE_SZ, PIPE_SIZE); /* fails if it is not a pipe */
	status = prepare(log, reterr);
	if (status != VD_OK) {
		vdi_event_log_close(log);
		return status;
	}
	*ret_log = log;
	return VD_OK;
}

struct vdi_event_log *vdi_event_log_close(struct vdi_event_log *log)
{
	if (log) {
		if (log->fd > STDIN_FILENO)
			(void) close(log->fd);
		ZSTD_freeDStream(log->zstd);
		vdi_json_object_fini(&log->object);
		vdi_json_plan_free(log->plan);
		vdi_free(log->compressed);
		vdi_free(log->text);
		vdi_free(log->key_scratch.data);
		vdi_free(log->value_scratch.data);
		vdi_free(log->text_scratch.data);
		vdi_free(log->path);
		vdi_free(log);
	}
	return NULL;
}
