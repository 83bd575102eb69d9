/* Appending encodes a record for the current segment into a buffer; flushing writes the buffer after the
 * existing records; a failed write is repeated at the same offset. The next segment starts only when the
 * buffer is empty. So a record is encoded for a known segment, which determines whether an event needs a copy
 * of the record it replaced. */
#include "history_files.h"

#include <stdlib.h>

#include "journal_segment.h"
#include "rand.h"
#include "record.h"

#define ENTRY_HEADER_SIZE 16
#define TIME_SIZE 8
#define IDENTITY_SEED 0x7665646574746501u

enum role { ROLE_EVENT, ROLE_PREVIOUS };

struct segment {
	uint64_t sequence;
	vd_rev	 floor;
	vd_rev	 until;
	int64_t	 size;
	vd_wall	 first; /* 0: the segment has no commit */
	vd_wall	 last;
};

struct vdi_history_files {
	/* Fixed. */
	struct vdi_dir *dir;
	uint8_t		id[VDI_STORE_ID_SIZE];
	int64_t		bytes_max;
	int64_t		segment_size;
	vd_dur		window;
	struct vdi_rand rand;

	struct segment *segments; /* the last one is being written */
	size_t		segment_count;
	size_t		segment_capacity;
	uint64_t       *useless; /* sequences of files for vdi_history_files_tidy to remove */
	size_t		useless_count;
	size_t		useless_capacity;
	int64_t		bytes;
	vd_rev		floor; /* while there is no segment */
	vd_rev		until;

	/* Last segment. */
	struct vdi_file *file; /* NULL: not yet opened for writing */
	bool		 may_continue;
	uint64_t	 sequence_max; /* of all files, including removed ones */
	uint64_t	 nonce;
	uint64_t	 previous;
	uint64_t	 next_index;
	bool		 is_dirty;
	uint8_t		*buffer;
	size_t		 buffer_size;
	size_t		 buffer_capacity;
};

static struct segment *last_of(const struct vdi_history_files *files)
{
	return files->segment_count ? &files->segments[files->segment_count - 1] : NULL;
}

/* ---- Reading ---- */

static uint64_t number_at(const uint8_t *at, size_t size)
{
	uint64_t number = 0;

	memcpy(&number, at, size);
	return number;
}

/* Decodes a commit of one change. */
static vd_status decode_change(vd_rev revision, struct vd_bytes bytes, struct vdi_record *ret_record)
{
	struct vdi_commit_reader reader;

	VDI_TRY(vdi_commit_reader_init(&reader, revision, bytes));
	if (reader.change_count != 1 || reader.lease_count)
		return VD_CORRUPT;
	VDI_TRY(vdi_commit_reader_record(&reader, ret_record, NULL));
	return vdi_commit_reader_end(&reader);
}

struct payload {
	const uint8_t *at;
	const uint8_t *end;
};

static bool peek_role(const struct payload *payload, enum role *ret_role)
{
	if (payload->end - payload->at < ENTRY_HEADER_SIZE)
		return false;
	*ret_role = (enum role) number_at(payload->at + 8, 4);
	return true;
}

static vd_status take_entry(struct payload *payload, enum role wanted, struct vdi_record *ret_record)
{
	enum role role;
	uint64_t  size;

	if (!peek_role(payload, &role) || role != wanted)
		return VD_CORRUPT;
	size = number_at(payload->at + 12, 4);
	if (size > (uint64_t) (payload->end - payload->at - ENTRY_HEADER_SIZE))
		return VD_CORRUPT;
	VDI_TRY(decode_change((vd_rev) number_at(payload->at, 8),
			      (struct vd_bytes) { payload->at + ENTRY_HEADER_SIZE, size }, ret_record));
	payload->at += ENTRY_HEADER_SIZE + size;
	return VD_OK;
}

/* Finds the record that the event replaced: a copy after the event, or an earlier event. */
static vd_status take_previous(struct payload *payload, const struct vdi_record *record,
			       const struct vdi_loaded_history *loaded, struct vd_kv **ret_previous)
{
	struct vdi_record previous;
	struct vd_kv	 *latest;
	enum role	  role;

	*ret_previous = NULL;
	if (record->previous_rev == 0)
		return VD_OK;
	if (peek_role(payload, &role) && role == ROLE_PREVIOUS) {
		VDI_TRY(take_entry(payload, ROLE_PREVIOUS, &previous));
		if (previous.is_delete || previous.mod_rev != record->previous_rev ||
		    !vd_bytes_equal(previous.key, record->key))
			return VD_CORRUPT;
		return vdi_record_kv(&previous, ret_previous);
	}
	latest = vdi_loaded_history_latest(loaded, record->key);
	if (latest == NULL || latest->version == 0 || latest->mod_rev != record->previous_rev)
		return VD_CORRUPT;
	*ret_previous = vd_kv_ref(latest);
	return VD_OK;
}

static vd_status take_commit(struct vdi_loaded_history *loaded, const struct vdi_segment_record *from,
			     bool is_event)
{
	const uint8_t *bytes = from->payload.data;
	struct payload payload = { bytes + TIME_SIZE, bytes + from->payload.size };

	while (payload.at < payload.end) {
		struct vdi_record record;
		struct vd_kv	 *kv, *previous;
		vd_status	  status;

		VDI_TRY(take_entry(&payload, ROLE_EVENT, &record));
		if (record.mod_rev != from->revision)
			return VD_CORRUPT;
		VDI_TRY(take_previous(&payload, &record, loaded, &previous));
		status = vdi_record_kv(&record, &kv);
		if (status != VD_OK) {
			vd_kv_unref(previous);
			return status;
		}
		VDI_TRY(vdi_loaded_history_add(loaded, record.is_delete, kv, previous, is_event));
	}
	return VD_OK;
}

/* Takes a record of the segment. VD_CORRUPT: its content contradicts the records before it. */
static vd_status take_record(struct vdi_history_files *files, struct segment *segment,
			     const struct vdi_segment_record *record, vd_wall now,
			     struct vdi_loaded_history *loaded)
{
	vd_wall time;
	bool	is_old;

	if (record->revision < segment->until ||
	    (record->kind == VDI_SEGMENT_COMMIT && record->revision == segment->until))
		return VD_CORRUPT;
	if (record->kind == VDI_SEGMENT_COMMIT) {
		if (record->payload.size < TIME_SIZE)
			return VD_CORRUPT;
		time.ns = (int64_t) number_at(record->payload.data, TIME_SIZE);
		is_old = files->window.ns > 0 && time.ns < now.ns - files->window.ns;
		if (is_old)
			vdi_loaded_history_forget(loaded, record->revision);
		VDI_TRY(take_commit(loaded, record, !is_old));
		if (segment->first.ns == 0)
			segment->first = time;
		segment->last = time;
	}
	segment->until = loaded->until = record->revision;
	return VD_OK;
}

/* Reads the records of a segment that continues the loaded history or is its first one. */
static vd_status read_records(struct vdi_history_files *files, struct vdi_segment_reader *reader, vd_wall now,
			      struct vdi_loaded_history *loaded, struct segment *segment,
			      struct vd_error *ret_lost, struct vd_error *reterr)
{
	struct vdi_segment_record record;
	vd_status		  status;

	while ((status = vdi_segment_reader_next(reader, &record, reterr)) == VD_OK) {
		size_t count = loaded->count;

		status = take_record(files, segment, &record, now, loaded);
		if (status == VD_CORRUPT) {
			/* Drop the events of an incomplete revision. */
			for (; loaded->count > count; loaded->count--) {
				vd_kv_unref(loaded->events[loaded->count - 1].kv);
				vd_kv_unref(loaded->events[loaded->count - 1].previous);
			}
			vd_error_set(ret_lost, VD_CORRUPT, "%s/%s: invalid record at offset %lld",
				     reader->file->dir->path, reader->file->name, (long long) record.offset);
			files->may_continue = false;
			return VD_OK;
		}
		if (status != VD_OK)
			return vd_error_set(reterr, status, "out of memory");
	}
	if (status != VD_NOT_FOUND)
		return status;
	segment->size = reader->offset;
	files->may_continue = true;
	files->nonce = reader->header.nonce;
	files->previous = reader->previous;
	files->next_index = reader->next_index;
	return VD_OK;
}

static vd_status call_useless(struct vdi_history_files *files, uint64_t sequence)
{
	if (!vdi_grow((void **) &files->useless, &files->useless_capacity, files->useless_count + 1,
		      sizeof *files->useless))
		return VD_NOMEM;
	files->useless[files->useless_count++] = sequence;
	return VD_OK;
}

static vd_status forget_all(struct vdi_history_files *files, struct vdi_loaded_history *loaded)
{
	for (; files->segment_count; files->segment_count--)
		VDI_TRY(call_useless(files, last_of(files)->sequence));
	files->bytes = 0;
	vdi_loaded_history_clear(loaded);
	return VD_OK;
}

static vd_status read_segment(struct vdi_history_files *files, uint64_t sequence, bool is_last, vd_wall now,
			      struct vdi_loaded_history *loaded, struct vd_error *ret_lost,
			      struct vd_error *reterr)
{
	struct vdi_segment_reader reader;
	struct segment		  segment = { .sequence = sequence };
	struct vd_error		  error = { 0 };
	vd_status		  status =
		vdi_segment_reader_open(&reader, files->dir, VDI_SEGMENT_HISTORY, sequence, &error);

	if (status == VD_NOMEM)
		return vd_error_set(reterr, status, "out of memory");
	if (status != VD_OK) {
		/* The creation of the last file may have been interrupted, which is not an error. */
		if (status == VD_NOT_FOUND && !is_last)
			vd_error_set(ret_lost, VD_CORRUPT, "%s: segment %llu has no header", files->dir->path,
				     (unsigned long long) sequence);
		else if (status != VD_NOT_FOUND)
			*ret_lost = error;
		return call_useless(files, sequence);
	}
	if (memcmp(reader.header.store_id, files->id, VDI_STORE_ID_SIZE) != 0) {
		vd_error_set(ret_lost, VD_CONFLICT,
			     "%s/%s was written for another etcd cluster or another prefix", files->dir->path,
			     reader.file->name);
		status = call_useless(files, sequence);
	} else {
		segment.floor = segment.until = reader.header.revision;
		if (files->segment_count && loaded->until != segment.floor) {
			vd_error_set(ret_lost, VD_CORRUPT,
				     "%s: the changes between revisions %lld and %lld are missing",
				     files->dir->path, (long long) loaded->until, (long long) segment.floor);
			status = forget_all(files, loaded);
		}
		if (files->segment_count == 0)
			loaded->floor = loaded->until = segment.floor;
		segment.size = reader.file_size;
		if (status == VD_OK && !vdi_grow((void **) &files->segments, &files->segment_capacity,
						 files->segment_count + 1, sizeof segment))
			status = VD_NOMEM;
		if (status == VD_OK)
			status = read_records(files, &reader, now, loaded, &segment, ret_lost, &error);
		if (status == VD_OK) {
			files->segments[files->segment_count++] = segment;
			files->bytes += segment.size;
		}
	}
	vdi_segment_reader_fini(&reader);
	if (status != VD_OK && reterr)
		*reterr = error;
	return status;
}

struct listing {
	uint64_t *sequences;
	size_t	  count;
	size_t	  capacity;
	bool	  is_foreign;
};

static vd_status list_one(void *arg, const char *name, int64_t size)
{
	struct listing *listing = arg;
	uint64_t	sequence;

	(void) size;
	if (vdi_segment_name_parse(VDI_SEGMENT_JOURNAL, name, &sequence) ||
	    strncmp(name, "checkpoint", 10) == 0)
		listing->is_foreign = true;
	if (!vdi_segment_name_parse(VDI_SEGMENT_HISTORY, name, &sequence))
		return VD_OK;
	if (!vdi_grow((void **) &listing->sequences, &listing->capacity, listing->count + 1,
		      sizeof *listing->sequences))
		return VD_NOMEM;
	listing->sequences[listing->count++] = sequence;
	return VD_OK;
}

static int order_sequences(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *) a, right = *(const uint64_t *) b;

	return VDI_ORDER(left, right);
}

static vd_status read_all(struct vdi_history_files *files, vd_wall now, struct vdi_loaded_history *loaded,
			  struct vd_error *ret_lost, struct vd_error *reterr)
{
	struct listing listing = { 0 };
	vd_status      status = vdi_dir_list(files->dir, list_one, &listing, reterr);

	if (status == VD_OK && listing.is_foreign)
		status = vd_error_set(reterr, VD_INVALID,
				      "%s contains an embedded store; use another directory for the local "
				      "history of etcd",
				      files->dir->path);
	if (status == VD_OK && listing.count)
		qsort(listing.sequences, listing.count, sizeof *listing.sequences, order_sequences);
	for (size_t i = 0; status == VD_OK && i < listing.count; i++) {
		files->sequence_max = listing.sequences[i];
		status = read_segment(files, listing.sequences[i], i + 1 == listing.count, now, loaded,
				      ret_lost, reterr);
		/* Only the last file is continued, so the result of the last iteration counts. */
		if (files->segment_count == 0 || last_of(files)->sequence != listing.sequences[i])
			files->may_continue = false;
	}
	vdi_free(listing.sequences);
	if (status == VD_NOMEM)
		return vd_error_set(reterr, VD_NOMEM, "out of memory for the local history");
	files->floor = loaded->floor;
	files->until = loaded->until;
	return status;
}

vd_status vdi_history_files_open(const struct vdi_history_files_options *options, vd_wall now,
				 struct vdi_loaded_history *loaded, struct vdi_history_files **ret_files,
				 struct vd_error *ret_lost, struct vd_error *reterr)
{
	struct vdi_history_files *files = VDI_NEW(struct vdi_history_files);
	uint64_t		  prefix_hash = vdi_hash_bytes(options->prefix, IDENTITY_SEED);
	int64_t			  part = options->bytes_max / VDI_HISTORY_SEGMENTS;
	vd_status		  status;

	if (files == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory for the local history");
	files->dir = options->dir;
	memcpy(files->id, &options->store_id, 8);
	memcpy(files->id + 8, &prefix_hash, 8);
	files->bytes_max = options->bytes_max;
	files->segment_size =
		part > 0 ? VDI_MAX(VDI_MIN(part, VDI_HISTORY_SEGMENT_MAX), VDI_HISTORY_SEGMENT_MIN) :
			   VDI_HISTORY_SEGMENT_MAX;
	files->window = options->window;
	vdi_rand_init(&files->rand, options->seed);
	status = read_all(files, now, loaded, ret_lost, reterr);
	if (status != VD_OK) {
		vdi_history_files_close(files);
		return status;
	}
	*ret_files = files;
	return VD_OK;
}

struct vdi_history_files *vdi_history_files_close(struct vdi_history_files *files)
{
	if (files) {
		vdi_file_close(files->file);
		vdi_free(files->segments);
		vdi_free(files->useless);
		vdi_free(files->buffer);
		vdi_free(files);
	}
	return NULL;
}

/* ---- Removing ---- */

static vd_status remove_segment(struct vdi_history_files *files, uint64_t sequence, struct vd_error *reterr)
{
	char	  name[VDI_DISK_NAME_MAX];
	vd_status status;

	vdi_segment_name(VDI_SEGMENT_HISTORY, sequence, name);
	status = vdi_dir_unlink(files->dir, name, reterr);
	return status == VD_NOT_FOUND ? VD_OK : status;
}

vd_status vdi_history_files_tidy(struct vdi_history_files *files, struct vd_error *reterr)
{
	while (files->useless_count) {
		VDI_TRY(remove_segment(files, files->useless[files->useless_count - 1], reterr));
		files->useless_count--;
	}
	return VD_OK;
}

void vdi_history_files_restart(struct vdi_history_files *files, vd_rev floor)
{
	files->file = vdi_file_close(files->file);
	/* Newest first: if removal stops in the middle, the remaining files end before the new floor, and the
	 * next open detects the gap. */
	for (; files->segment_count; files->segment_count--)
		(void) !remove_segment(files, last_of(files)->sequence, NULL);
	files->bytes = 0;
	files->buffer_size = 0;
	files->may_continue = files->is_dirty = false;
	files->floor = files->until = floor;
}

vd_status vdi_history_files_evict(struct vdi_history_files *files, vd_wall now, struct vd_error *reterr)
{
	while (files->segment_count > 1) {
		const struct segment *oldest = &files->segments[0];
		bool is_old = files->window.ns > 0 && oldest->last.ns < now.ns - files->window.ns;

		if (!is_old && (files->bytes_max <= 0 || files->bytes <= files->bytes_max))
			return VD_OK;
		VDI_TRY(remove_segment(files, oldest->sequence, reterr));
		files->bytes -= oldest->size;
		files->segment_count--;
		memmove(files->segments, files->segments + 1, files->segment_count * sizeof *files->segments);
		files->floor = VDI_MAX(files->floor, files->segments[0].floor);
	}
	return VD_OK;
}

/* ---- Writing ---- */

/* Continues the last segment after its last readable record. */
static vd_status continue_files(struct vdi_history_files *files, struct vd_error *reterr)
{
	char	  name[VDI_DISK_NAME_MAX];
	vd_status status;

	vdi_segment_name(VDI_SEGMENT_HISTORY, last_of(files)->sequence, name);
	VDI_TRY(vdi_file_open(files->dir, name, VDI_FILE_WRITE, &files->file, reterr));
	status = vdi_file_truncate(files->file, last_of(files)->size, reterr);
	if (status != VD_OK)
		files->file = vdi_file_close(files->file);
	return status;
}

static vd_status next_segment(struct vdi_history_files *files, struct vd_error *reterr)
{
	struct vdi_segment_header header = {
		.family = VDI_SEGMENT_HISTORY,
		.sequence = files->sequence_max + 1,
		.first_index = 1,
		.nonce = vdi_rand_next(&files->rand),
		.size = VDI_SEGMENT_HEADER_SIZE,
		.revision = files->until,
	};
	struct vdi_file *file;

	memcpy(header.store_id, files->id, VDI_STORE_ID_SIZE);
	if (!vdi_grow((void **) &files->segments, &files->segment_capacity, files->segment_count + 1,
		      sizeof *files->segments))
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	if (files->file)
		VDI_TRY(vdi_history_files_sync(files, reterr));
	VDI_TRY(vdi_segment_create(files->dir, &header, NULL, &file, reterr));
	vdi_file_close(files->file);
	files->file = file;
	files->sequence_max = header.sequence;
	files->nonce = header.nonce;
	files->previous = header.checksum;
	files->next_index = header.first_index;
	files->segments[files->segment_count++] = (struct segment) { .sequence = header.sequence,
								     .floor = files->until,
								     .until = files->until,
								     .size = VDI_SEGMENT_HEADER_SIZE };
	files->bytes += VDI_SEGMENT_HEADER_SIZE;
	return VD_OK;
}

vd_status vdi_history_files_prepare(struct vdi_history_files *files, vd_wall now, struct vd_error *reterr)
{
	struct segment *last = last_of(files);

	if (files->buffer_size)
		return VD_OK;
	if (files->file == NULL && files->may_continue)
		VDI_TRY(continue_files(files, reterr));
	if (files->file && last->size < files->segment_size &&
	    (files->window.ns <= 0 || last->first.ns == 0 ||
	     last->first.ns >= now.ns - files->window.ns / VDI_HISTORY_SEGMENTS))
		return VD_OK;
	return next_segment(files, reterr);
}

static bool is_record(const struct vd_kv *kv)
{
	return kv->create_rev > 0 && kv->create_rev <= kv->mod_rev && kv->version > 0;
}

/* Checks the properties on which the encoder relies, because events come from outside. */
static bool is_answerable(const struct vd_store_event *event, vd_rev revision)
{
	const struct vd_kv *kv = event->kv, *previous = event->previous;

	if (kv->mod_rev != revision || (!event->is_delete && !is_record(kv)))
		return false;
	if (previous)
		return is_record(previous) && previous->mod_rev < revision &&
		       vd_bytes_equal(vd_kv_key(previous), vd_kv_key(kv));
	return !event->is_delete && kv->version == 1;
}

static struct vdi_commit one_change(const struct vdi_change *change)
{
	return (struct vdi_commit) { .revision = change->kv->mod_rev, .changes = change, .change_count = 1 };
}

static size_t entry_size(const struct vdi_change *change)
{
	struct vdi_commit commit = one_change(change);

	return ENTRY_HEADER_SIZE + vdi_commit_size(&commit);
}

static uint8_t *put_entry(uint8_t *at, enum role role, const struct vdi_change *change)
{
	struct vdi_commit commit = one_change(change);
	uint32_t	  numbers[2] = { role, (uint32_t) vdi_commit_size(&commit) };

	memcpy(at, &commit.revision, 8);
	memcpy(at + 8, numbers, sizeof numbers);
	vdi_commit_encode(&commit, at + ENTRY_HEADER_SIZE);
	return at + ENTRY_HEADER_SIZE + numbers[1];
}

static struct vdi_change change_of(const struct vd_store_event *event)
{
	return (struct vdi_change) { .is_delete = event->is_delete,
				     .kv = event->kv,
				     .previous = event->previous };
}

/* Returns true if the replaced record must be copied after the event, because it is not an event of this
 * segment. */
static bool spells_previous(const struct vdi_history_files *files, const struct vd_store_event *event,
			    struct vdi_change *ret_change)
{
	*ret_change = (struct vdi_change) { .kv = event->previous, .is_first = true };
	return event->previous && event->previous->mod_rev <= last_of(files)->floor;
}

/* Reserves room at the end of the buffer for a record with a payload of that size. */
static uint8_t *reserve(struct vdi_history_files *files, size_t payload_size, size_t *ret_record_size)
{
	uint8_t *at;

	*ret_record_size = vdi_segment_record_size(payload_size);
	if (!vdi_grow((void **) &files->buffer, &files->buffer_capacity,
		      files->buffer_size + *ret_record_size, 1))
		return NULL;
	at = files->buffer + files->buffer_size;
	memset(at + *ret_record_size - 8, 0, 8);
	return at;
}

static void seal(struct vdi_history_files *files, uint8_t *at, vd_rev revision)
{
	files->buffer_size += vdi_segment_record_seal(at, files->next_index, files->nonce, files->previous, 0,
						      0, &files->previous);
	files->next_index++;
	files->until = last_of(files)->until = revision;
}

vd_status vdi_history_files_append(struct vdi_history_files *files, const struct vd_store_event *events,
				   size_t count, vd_wall now)
{
	struct segment	 *last = last_of(files);
	vd_rev		  revision = events[0].kv->mod_rev;
	size_t		  size = TIME_SIZE, record_size;
	struct vdi_change change;
	uint8_t		 *at, *start;

	VDI_CHECK(files->file != NULL && revision > files->until);
	for (size_t i = 0; i < count; i++) {
		if (!is_answerable(&events[i], revision))
			return VD_INVALID;
		change = change_of(&events[i]);
		size += entry_size(&change);
		if (spells_previous(files, &events[i], &change))
			size += entry_size(&change);
	}
	if (size > UINT32_MAX / 2)
		return VD_INVALID;
	start = reserve(files, size, &record_size);
	if (start == NULL)
		return VD_NOMEM;
	vdi_segment_record_prepare(start, VDI_SEGMENT_COMMIT, revision, size);
	at = start + VDI_SEGMENT_RECORD_HEADER_SIZE;
	memcpy(at, &now.ns, TIME_SIZE);
	at += TIME_SIZE;
	for (size_t i = 0; i < count; i++) {
		change = change_of(&events[i]);
		at = put_entry(at, ROLE_EVENT, &change);
		if (spells_previous(files, &events[i], &change))
			at = put_entry(at, ROLE_PREVIOUS, &change);
	}
	memset(at, 0, (size_t) (start + record_size - at));
	seal(files, start, revision);
	if (last->first.ns == 0)
		last->first = now;
	last->last = now;
	return VD_OK;
}

vd_status vdi_history_files_mark(struct vdi_history_files *files, vd_rev revision)
{
	size_t	 record_size;
	uint8_t *at;

	VDI_CHECK(files->file != NULL && revision >= files->until);
	at = reserve(files, 0, &record_size);
	if (at == NULL)
		return VD_NOMEM;
	vdi_segment_record_prepare(at, VDI_SEGMENT_MARK, revision, 0);
	seal(files, at, revision);
	return VD_OK;
}

vd_status vdi_history_files_flush(struct vdi_history_files *files, struct vd_error *reterr)
{
	struct segment *last = last_of(files);

	if (files->buffer_size == 0)
		return VD_OK;
	VDI_TRY(vdi_file_write(files->file, last->size, files->buffer, files->buffer_size, reterr));
	last->size += (int64_t) files->buffer_size;
	files->bytes += (int64_t) files->buffer_size;
	files->buffer_size = 0;
	files->is_dirty = true;
	return VD_OK;
}

vd_status vdi_history_files_sync(struct vdi_history_files *files, struct vd_error *reterr)
{
	if (!files->is_dirty)
		return VD_OK;
	VDI_TRY(vdi_file_sync(files->file, reterr));
	files->is_dirty = false;
	return VD_OK;
}

/* ---- Asking ---- */

vd_rev vdi_history_files_floor(const struct vdi_history_files *files)
{
	return files->floor;
}

vd_rev vdi_history_files_until(const struct vdi_history_files *files)
{
	return files->until;
}

int64_t vdi_history_files_bytes(const struct vdi_history_files *files)
{
	return files->bytes;
}

vd_wall vdi_history_files_oldest(const struct vdi_history_files *files)
{
	for (size_t i = 0; i < files->segment_count; i++)
		if (files->segments[i].first.ns)
			return files->segments[i].first;
	return (vd_wall) { 0 };
}

bool vdi_history_files_is_full(const struct vdi_history_files *files)
{
	return last_of(files) && last_of(files)->size + (int64_t) files->buffer_size >= files->segment_size;
}

bool vdi_history_files_is_dirty(const struct vdi_history_files *files)
{
	return files->is_dirty;
}
