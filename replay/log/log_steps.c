/* Records are gathered until their transaction is complete: at its commit line or, in a log without commit
 * lines, at the next revision, whose first record is then kept for the next step. A mark after an open
 * transaction is kept in the same way. */
#include "log_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "codec_json.h"
#include "key_sort.h"

struct vdi_log_steps {
	char		     *path;
	struct vdi_event_log *log;

	struct vdi_log_change *changes; /* of the current step: first those returned, then those gathered */
	size_t		       count, capacity;
	size_t		       given;	 /* number of returned changes, dropped by the next call */
	vd_rev		       revision; /* of the current transaction; 0: none */
	uint64_t	       line;
	size_t		       bytes;
	vd_wall		       time;

	vdi_codec_of_fn codec_of; /* NULL: objects are not decoded early */
	void	       *codec_of_arg;
	struct vd_kv   *ahead; /* record with validated value, of the current line; NULL: none */

	bool		    mark_waits;
	struct vdi_log_step mark;
	char		   *text; /* of a failure */

	bool		    in_snapshot, has_commits, at_end, is_closed;
	uint64_t	    records;
	uint64_t	    start; /* offset in the text of the current line */
	uint64_t	    whole; /* offset after the last complete step */
	struct vdi_log_tail tail;
};

vd_status vdi_log_steps_broken(const struct vdi_log_steps *steps, uint64_t line, const char *why,
			       struct vd_error *reterr)
{
	struct vd_error reported = { 0 };
	vd_status	status = vd_error_set(&reported, VD_BAD_REQUEST, "%s:%llu: %s", steps->path,
					      (unsigned long long) line, why);

	if (reterr)
		*reterr = reported;
	return status;
}

static void drop(struct vdi_log_steps *steps, size_t count)
{
	for (size_t i = 0; i < count; i++)
		vd_kv_unref(steps->changes[i].kv);
	if (count < steps->count)
		memmove(steps->changes, steps->changes + count,
			(steps->count - count) * sizeof *steps->changes);
	steps->count -= count;
}

/* ---- A step ---- */

static struct vd_bytes key_of(const void *change)
{
	return vd_kv_key(((const struct vdi_log_change *) change)->kv);
}

static vd_status key_is_twice(const struct vdi_log_steps *steps, const struct vdi_log_change *again,
			      struct vd_error *reterr)
{
	struct vd_bytes key = key_of(again);
	uint64_t	line = steps->line + (uint32_t) (again->line - (uint32_t) steps->line);
	char		why[160];

	snprintf(why, sizeof why, "key %.*s%s occurs twice in one transaction or snapshot",
		 (int) VDI_MIN(key.size, (size_t) 100), (const char *) key.data, key.size > 100 ? "..." : "");
	return vdi_log_steps_broken(steps, line, why, reterr);
}

/* Checks that each key occurs once. Keys of most steps ascend, which costs one comparison each; others are
 * sorted. */
static vd_status check_keys(struct vdi_log_steps *steps, size_t count, struct vd_error *reterr)
{
	struct vdi_key_sort_item *items;
	vd_status		  status = VD_OK;
	size_t			  ascending = 1;

	while (ascending < count && vd_bytes_compare(key_of(&steps->changes[ascending - 1]),
						     key_of(&steps->changes[ascending])) < 0)
		ascending++;
	if (ascending >= count)
		return VD_OK;
	items = vdi_calloc(count, 2 * sizeof *items);
	if (items == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	for (size_t i = 0; i < count; i++)
		items[i].value = &steps->changes[i];
	vdi_key_sort(items, items + count, count, key_of);
	for (size_t i = 1; i < count && status == VD_OK; i++)
		if (vd_bytes_equal(key_of(items[i - 1].value), key_of(items[i].value)))
			status = key_is_twice(steps, items[i].value, reterr);
	vdi_free(items);
	return status;
}

/* Returns the gathered changes as a step. waiting: number of changes at the end that belong to the next
 * one. */
static vd_status give(struct vdi_log_steps *steps, enum vdi_log_step_kind kind, vd_rev revision,
		      size_t waiting, struct vdi_log_step *ret_step, struct vd_error *reterr)
{
	VDI_TRY(check_keys(steps, steps->count - waiting, reterr));
	steps->given = steps->count - waiting;
	steps->records += steps->given;
	steps->whole = waiting ? steps->start : vdi_event_log_offset(steps->log);
	*ret_step = (struct vdi_log_step) { .kind = kind,
					    .revision = revision,
					    .changes = steps->changes,
					    .count = steps->given,
					    .bytes = steps->bytes,
					    .time = steps->time,
					    .text = "",
					    .line = steps->line };
	steps->revision = 0;
	steps->bytes = 0;
	steps->time = (vd_wall) { 0 };
	return VD_OK;
}

static void begin(struct vdi_log_steps *steps, vd_rev revision, uint64_t line)
{
	steps->revision = revision;
	steps->line = line;
}

/* ---- Records ---- */

static vd_status make_kv(const struct vdi_log_record *record, struct vd_kv **ret_kv)
{
	struct vd_kv *kv;

	VDI_TRY(vd_kv_new(record->key, record->value, &kv));
	kv->mod_rev = record->revision;
	kv->create_rev = record->create_rev;
	kv->version = record->version;
	*ret_kv = kv;
	return VD_OK;
}

/* Validates the value with the codec that will decode it, otherwise with the log. */
static vd_status check_value(struct vdi_log_steps *steps, struct vdi_log_record *record,
			     struct vd_error *reterr)
{
	const struct vd_codec *codec =
		steps->codec_of ? steps->codec_of(steps->codec_of_arg, record->key) : NULL;

	if (codec && make_kv(record, &steps->ahead) == VD_OK) {
		if (vdi_codec_json_prepare(codec, steps->ahead))
			return VD_OK;
		steps->ahead =
			vd_kv_unref(steps->ahead); /* the full scan may read another record from this line */
	}
	return vdi_event_log_check(steps->log, record, reterr);
}

static vd_status gather(struct vdi_log_steps *steps, const struct vdi_log_record *record,
			struct vd_error *reterr)
{
	struct vd_kv *kv = steps->ahead;
	vd_status     status = VD_OK;

	if (!vdi_grow((void **) &steps->changes, &steps->capacity, steps->count + 1, sizeof *steps->changes))
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	if (kv == NULL)
		status = make_kv(record, &kv);
	if (status != VD_OK)
		return status == VD_TOO_BIG ? vdi_log_steps_broken(steps, record->line,
								   "key or value are too large", reterr) :
					      vd_error_set(reterr, status, "out of memory");
	steps->ahead = NULL;
	/* Assigned by member: copied as a whole it would be read back from the stack, after all stores into
	 * the value (measured: 5% of a replay). */
	steps->changes[steps->count].is_delete = record->kind == VDI_LOG_DELETE;
	steps->changes[steps->count].line = (uint32_t) record->line;
	steps->changes[steps->count].kv = kv;
	steps->count++;
	return VD_OK;
}

static void count_in(struct vdi_log_steps *steps, const struct vdi_log_record *record)
{
	steps->bytes += record->key.size + record->value.size;
	if (steps->time.ns == 0)
		(void) vdi_log_time_parse(record->time, &steps->time); /* an invalid time counts as none */
}

/* *ret_complete: the previous transaction is complete, and record is kept for the next one. */
static vd_status take_change(struct vdi_log_steps *steps, const struct vdi_log_record *record,
			     bool *ret_complete, struct vd_error *reterr)
{
	*ret_complete = false;
	if (steps->in_snapshot) {
		if (record->kind == VDI_LOG_DELETE)
			return vdi_log_steps_broken(steps, record->line, "a DELETE within a snapshot",
						    reterr);
	} else if (steps->revision && steps->revision != record->revision) {
		if (steps->has_commits)
			return vdi_log_steps_broken(
				steps, record->line,
				"a new revision begins, but the previous one has no commit line", reterr);
		*ret_complete = true;
	}
	VDI_TRY(gather(steps, record, reterr));
	if (*ret_complete)
		return VD_OK;
	if (steps->revision == 0)
		begin(steps, record->revision, record->line);
	count_in(steps, record);
	return VD_OK;
}

/* Returns the previous transaction; the kept record begins the next one. */
static vd_status complete_before(struct vdi_log_steps *steps, const struct vdi_log_record *record,
				 struct vdi_log_step *ret_step, struct vd_error *reterr)
{
	vd_status status = give(steps, VDI_STEP_TXN, steps->revision, 1, ret_step, reterr);

	begin(steps, record->revision, record->line);
	count_in(steps, record);
	return status;
}

/* ---- Marks ---- */

static vd_status mark_of(struct vdi_log_steps *steps, const struct vdi_log_record *record,
			 struct vd_error *reterr)
{
	static const enum vdi_log_step_kind kinds[] = { [VDI_LOG_COMPACT] = VDI_STEP_COMPACT,
							[VDI_LOG_PROGRESS] = VDI_STEP_PROGRESS,
							[VDI_LOG_DISCONNECT] = VDI_STEP_DISCONNECT,
							[VDI_LOG_FAILURE] = VDI_STEP_FAILURE };

	vdi_free(steps->text);
	steps->text = vdi_strndup(record->text.size ? record->text.data : "", record->text.size);
	if (steps->text == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	steps->mark = (struct vdi_log_step) { .kind = kinds[record->kind],
					      .revision = record->revision,
					      .text = steps->text,
					      .line = record->line };
	return VD_OK;
}

/* Ends the current transaction before a line that is not part of one. */
static vd_status settle(struct vdi_log_steps *steps, const struct vdi_log_record *record,
			struct vd_error *reterr)
{
	if (steps->in_snapshot)
		return vdi_log_steps_broken(steps, record->line, "only records are allowed within a snapshot",
					    reterr);
	if (steps->revision && steps->has_commits)
		return vdi_log_steps_broken(steps, record->line,
					    "the previous transaction has no commit line", reterr);
	return VD_OK;
}

static vd_status take_mark(struct vdi_log_steps *steps, const struct vdi_log_record *record,
			   struct vdi_log_step *ret_step, struct vd_error *reterr)
{
	VDI_TRY(settle(steps, record, reterr));
	VDI_TRY(mark_of(steps, record, reterr));
	if (steps->revision) {
		steps->mark_waits = true;
		return give(steps, VDI_STEP_TXN, steps->revision, 0, ret_step, reterr);
	}
	*ret_step = steps->mark;
	return VD_OK;
}

/* ---- The end ---- */

/* Returns true if the torn line certainly began another transaction than the current one. */
static bool torn_line_is_of_another(const struct vdi_log_steps *steps)
{
	struct vd_bytes torn = vdi_event_log_torn_text(steps->log);
	char		start[48], ours[48];
	size_t		size = VDI_MIN(torn.size, sizeof start - 1);

	if (size)
		memcpy(start, torn.data, size);
	start[size] = 0;
	snprintf(ours, sizeof ours, "{\"rev\":%lld,", (long long) steps->revision);
	return strncmp(start, "{\"rev\":", 7) == 0 && strchr(start, ',') &&
	       strncmp(start, ours, strlen(ours)) != 0;
}

static vd_status take_end(struct vdi_log_steps *steps, struct vdi_log_step *ret_step, struct vd_error *reterr)
{
	struct vdi_log_tail *tail = &steps->tail;
	bool		     is_sealed = vdi_event_log_is_sealed(steps->log);

	steps->at_end = true;
	tail->is_torn = vdi_event_log_is_torn(steps->log);
	tail->bytes = vdi_event_log_torn_text(steps->log).size;
	tail->line = vdi_event_log_line(steps->log) + 1;
	if (steps->in_snapshot)
		return vdi_log_steps_broken(steps, steps->line, "the log ends within a snapshot", reterr);
	/* In a log with commit lines the last transaction is torn. In one without, it may be torn if the last
	 * line is torn. */
	if (steps->revision &&
	    (steps->has_commits || is_sealed || (tail->is_torn && !torn_line_is_of_another(steps)))) {
		tail->is_torn = true;
		tail->line = steps->line;
		tail->records = steps->count;
		if (!is_sealed)
			tail->bytes += vdi_event_log_offset(steps->log) - steps->whole;
		drop(steps, steps->count);
		steps->revision = 0;
	}
	if (is_sealed && tail->is_torn)
		tail->bytes += vdi_event_log_offset(steps->log) - steps->whole;
	tail->is_unclosed = is_sealed && !steps->is_closed;
	if (steps->revision == 0)
		return VD_CLOSED;
	return give(steps, VDI_STEP_TXN, steps->revision, 0, ret_step, reterr);
}

/* ---- Steps ---- */

/* Processes a record. VD_AGAIN: no step is complete yet. */
static vd_status take(struct vdi_log_steps *steps, const struct vdi_log_record *record,
		      struct vdi_log_step *ret_step, struct vd_error *reterr)
{
	vd_status status;
	bool	  complete;

	steps->is_closed = record->is_end;
	if (record->is_end)
		return settle(steps, record, reterr) == VD_OK ? VD_AGAIN : VD_BAD_REQUEST;
	switch (record->kind) {
	case VDI_LOG_PUT:
	case VDI_LOG_DELETE:
		VDI_TRY(take_change(steps, record, &complete, reterr));
		return complete ? complete_before(steps, record, ret_step, reterr) : VD_AGAIN;
	case VDI_LOG_COMMIT:
		steps->has_commits = true;
		if (steps->in_snapshot || (steps->revision && steps->revision != record->revision))
			return vdi_log_steps_broken(
				steps, record->line,
				"the commit has another revision than the records before it", reterr);
		return steps->revision ? give(steps, VDI_STEP_TXN, steps->revision, 0, ret_step, reterr) :
					 VD_AGAIN;
	case VDI_LOG_SNAPSHOT:
		VDI_TRY(settle(steps, record, reterr));
		steps->in_snapshot = true;
		status = steps->revision ? give(steps, VDI_STEP_TXN, steps->revision, 0, ret_step, reterr) :
					   VD_AGAIN;
		begin(steps, 0, record->line);
		return status;
	case VDI_LOG_SNAPSHOT_END:
		if (!steps->in_snapshot)
			return vdi_log_steps_broken(steps, record->line, "snapshotEnd without a snapshot",
						    reterr);
		steps->in_snapshot = false;
		return give(steps, VDI_STEP_SNAPSHOT, record->revision, 0, ret_step, reterr);
	default: return take_mark(steps, record, ret_step, reterr);
	}
}

vd_status vdi_log_steps_next(struct vdi_log_steps *steps, struct vdi_log_step *ret_step,
			     struct vd_error *reterr)
{
	struct vdi_log_record record;
	vd_status	      status;

	drop(steps, steps->given);
	steps->given = 0;
	if (steps->mark_waits) {
		steps->mark_waits = false;
		*ret_step = steps->mark;
		return VD_OK;
	}
	while (!steps->at_end) {
		steps->start = vdi_event_log_offset(steps->log);
		status = vdi_event_log_next_unchecked(steps->log, &record, reterr);
		if (status == VD_CLOSED)
			return take_end(steps, ret_step, reterr);
		if (status == VD_OK && record.is_unchecked)
			status = check_value(steps, &record, reterr);
		if (status == VD_OK)
			status = take(steps, &record, ret_step, reterr);
		if (status == VD_BAD_REQUEST && vdi_event_log_was_cut_off(steps->log)) {
			(void) vd_error_set(reterr, VD_OK, "%s", "");
			return take_end(steps, ret_step, reterr);
		}
		if (status != VD_AGAIN)
			return status;
	}
	return VD_CLOSED;
}

void vdi_log_steps_prepare(struct vdi_log_steps *steps, vdi_codec_of_fn codec_of, void *arg)
{
	steps->codec_of = codec_of;
	steps->codec_of_arg = arg;
}

struct vdi_log_tail vdi_log_steps_tail(const struct vdi_log_steps *steps)
{
	return steps->tail;
}

bool vdi_log_tail_describe(const struct vdi_log_tail *tail, char text[VDI_LOG_TAIL_SIZE])
{
	if (tail->is_torn)
		snprintf(text, VDI_LOG_TAIL_SIZE,
			 "the log is torn at line %llu: %llu whole records and %llu bytes at its end were "
			 "left out",
			 (unsigned long long) tail->line, (unsigned long long) tail->records,
			 (unsigned long long) tail->bytes);
	else if (tail->is_unclosed)
		snprintf(text, VDI_LOG_TAIL_SIZE,
			 "the log ends before line %llu without a closing line: its writer was killed, "
			 "or lines at its end are missing",
			 (unsigned long long) tail->line);
	return tail->is_torn || tail->is_unclosed;
}

uint64_t vdi_log_steps_records(const struct vdi_log_steps *steps)
{
	return steps->records;
}

vd_status vdi_log_steps_open(const char *path, struct vdi_log_steps **ret_steps, struct vd_error *reterr)
{
	struct vdi_log_steps *steps = VDI_NEW(struct vdi_log_steps);
	vd_status	      status;

	if (steps == NULL || (steps->path = vdi_strdup(path)) == NULL) {
		vdi_free(steps);
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	status = vdi_event_log_open(path, &steps->log, reterr);
	if (status != VD_OK) {
		vdi_log_steps_close(steps);
		return status;
	}
	*ret_steps = steps;
	return VD_OK;
}

struct vdi_log_steps *vdi_log_steps_close(struct vdi_log_steps *steps)
{
	if (steps) {
		drop(steps, steps->count);
		vd_kv_unref(steps->ahead);
		vdi_free(steps->changes);
		vdi_free(steps->text);
		vdi_event_log_close(steps->log);
		vdi_free(steps->path);
		vdi_free(steps);
	}
	return NULL;
}

/* ---- Time ---- */

static bool digits(const char **at, const char *end, int count, int *ret_number)
{
	int number = 0;

	for (int i = 0; i < count; i++, ++*at) {
		if (*at == end || **at < '0' || **at > '9')
			return false;
		number = number * 10 + (**at - '0');
	}
	*ret_number = number;
	return true;
}

static bool letter(const char **at, const char *end, const char *wanted)
{
	if (*at == end || strchr(wanted, **at) == NULL)
		return false;
	++*at;
	return true;
}

/* ".123456789" -> nanoseconds; ignores further digits. */
static bool fraction(const char **at, const char *end, int64_t *ret_ns)
{
	int64_t unit = 100000000;

	*ret_ns = 0;
	if (*at == end || **at != '.')
		return true;
	++*at;
	if (*at == end || **at < '0' || **at > '9')
		return false;
	for (; *at < end && **at >= '0' && **at <= '9'; ++*at, unit /= 10)
		*ret_ns += (**at - '0') * unit;
	return true;
}

/* "Z", "+02:00" -> seconds east. */
static bool offset_of(const char **at, const char *end, int *ret_seconds)
{
	int sign, hours, minutes;

	*ret_seconds = 0;
	if (letter(at, end, "Zz"))
		return true;
	if (*at == end || (**at != '+' && **at != '-'))
		return false;
	sign = **at == '+' ? 1 : -1;
	++*at;
	if (!digits(at, end, 2, &hours) || !letter(at, end, ":") || !digits(at, end, 2, &minutes) ||
	    hours > 23 || minutes > 59)
		return false;
	*ret_seconds = sign * (hours * 3600 + minutes * 60);
	return true;
}

bool vdi_log_time_parse(struct vd_bytes text, vd_wall *ret_time)
{
	const char *at = text.size ? text.data : ""; /* NULL has no end pointer */
	const char *end = at + text.size;
	struct tm   tm = { 0 };
	int64_t	    nanoseconds;
	int	    offset;

	if (text.size < 20 || !digits(&at, end, 4, &tm.tm_year) || !letter(&at, end, "-") ||
	    !digits(&at, end, 2, &tm.tm_mon) || !letter(&at, end, "-") || !digits(&at, end, 2, &tm.tm_mday) ||
	    !letter(&at, end, "Tt ") || !digits(&at, end, 2, &tm.tm_hour) || !letter(&at, end, ":") ||
	    !digits(&at, end, 2, &tm.tm_min) || !letter(&at, end, ":") || !digits(&at, end, 2, &tm.tm_sec) ||
	    !fraction(&at, end, &nanoseconds) || !offset_of(&at, end, &offset) || at != end)
		return false;
	if (tm.tm_year < 1970 || tm.tm_year > 2261 || tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 ||
	    tm.tm_mday > 31 || tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60)
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	ret_time->ns = ((int64_t) timegm(&tm) - offset) * 1000000000 + nanoseconds;
	return true;
}
