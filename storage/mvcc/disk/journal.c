/* Appended commits are encoded into one buffer, in the layout of the file; sync decides which file they go
 * to, chains and checksums them, and writes them at the tail.
 *
 *   open     reads all, verifies
 *   start    syncs the last file, cleans up
 *   sync     writes, fdatasync
 *   rotate   (inside sync) the file that append prepared (journal_room.h): header, fdatasync, rename, fsync
 *            of the directory; only then a record goes there
 *
 * A file with its real name is therefore always whole, and a crash at any instant leaves at worst a *.tmp
 * that start removes. What failed:
 * - no room for a new file: append refuses the commit, and nothing was written;
 * - no room for the write: the tail is undone (its first record header is zeroed and synced, so that a crash
 *   cannot bring back what was refused), and the journal stays usable: VD_NO_SPACE;
 * - fdatasync, or anything else: what is on disk is unknown, so nothing more is written until the store is
 *   opened again: VD_IO.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "journal.h"
#include "rand.h"
#include "record.h"

struct vdi_journal {
	/* Fixed by open. */
	struct vdi_dir *dir;
	uint64_t	covered;
	bool		no_sync;
	bool		is_new;
	uint8_t		store_id[VDI_STORE_ID_SIZE];
	uint64_t	first_sequence;	 /* needed */
	uint64_t	lowest_sequence; /* existing, needed or not */
	uint64_t	end_sequence;	 /* the last complete one */
	int64_t		covered_bytes;
	uint64_t	unfinished; /* a leftover that start removes; 0: none */

	/* The writer. */
	struct vdi_rand	 rand;
	struct vdi_file *file;
	uint64_t	 sequence;
	uint64_t	 nonce;
	int64_t		 file_size;
	int64_t		 tail;	     /* offset of the next record */
	uint64_t	 previous;   /* checksum of the last record */
	uint64_t	 next_index; /* of the first record in the buffer */
	vd_rev		 revision;
	vd_rev		 buffer_revision; /* with what is in the buffer */
	uint32_t	 salt;
	bool		 is_broken;
	bool		 is_unmarked; /* something was written since the last mark */
	uint8_t		*buffer;
	size_t		 capacity;
	size_t		 buffer_size;
	uint32_t	 buffer_count;
	const char
		*next; /* the prepared file that the buffer goes to (journal_room.h); NULL: the present one */

	struct vdi_journal_room room;

	/* Any thread. */
	_Atomic uint64_t durable_index;
	_Atomic int64_t	 bytes;
	_Atomic uint64_t writing_sequence;

	/* The thread that releases files. */
	uint64_t released_sequence;
};

/* ---- Opening ---- */

struct listing {
	uint64_t *sequences;
	size_t	  count;
	size_t	  capacity;
	bool	  is_foreign; /* the directory contains the local history of an etcd */
};

static vd_status list_one(void *arg, const char *name, int64_t size)
{
	struct listing *listing = arg;
	uint64_t	sequence;

	(void) size;
	listing->is_foreign |= vdi_segment_name_parse(VDI_SEGMENT_HISTORY, name, &sequence);
	if (!vdi_segment_name_parse(VDI_SEGMENT_JOURNAL, name, &sequence))
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

static vd_status corrupt_at(const struct vdi_segment_reader *reader, const char *what,
			    struct vd_error *reterr)
{
	return vd_error_set(reterr, VD_CORRUPT, "%s/%s is damaged at offset %lld: %s",
			    reader->file->dir->path, reader->file->name, (long long) reader->offset, what);
}

/* Reads the headers from the last file backwards, up to the one with the first needed record. */
static vd_status choose_first(struct vdi_journal *journal, const struct listing *listing, size_t *ret_first,
			      size_t *ret_end, struct vd_error *reterr)
{
	struct vdi_segment_reader reader;
	size_t			  end = listing->count;
	uint64_t		  first_index;
	vd_status		  status;

	for (size_t i = listing->count; i-- > 0;) {
		status = vdi_segment_reader_open(&reader, journal->dir, VDI_SEGMENT_JOURNAL,
						 listing->sequences[i], reterr);
		if (status == VD_NOT_FOUND && i + 1 == listing->count) {
			journal->unfinished = listing->sequences[i];
			end = i;
			continue;
		}
		if (status != VD_OK)
			return status == VD_NOT_FOUND ?
				       vd_error_set(reterr, VD_CORRUPT, "%s: journal file %llu is empty",
						    journal->dir->path,
						    (unsigned long long) listing->sequences[i]) :
				       status;
		first_index = reader.header.first_index;
		vdi_segment_reader_fini(&reader);
		if (i + 1 < end && listing->sequences[i] + 1 != listing->sequences[i + 1])
			return vd_error_set(reterr, VD_CORRUPT, "%s: journal file %llu is missing",
					    journal->dir->path,
					    (unsigned long long) listing->sequences[i] + 1);
		if (first_index <= journal->covered + 1) {
			*ret_first = i;
			*ret_end = end;
			return VD_OK;
		}
	}
	if (end > 0)
		return vd_error_set(reterr, VD_CORRUPT,
				    "%s: journal file %llu is missing (nothing before it holds record %llu)",
				    journal->dir->path, (unsigned long long) listing->sequences[0] - 1,
				    (unsigned long long) journal->covered + 1);
	if (journal->covered > 0)
		return vd_error_set(reterr, VD_CORRUPT,
				    "%s: the journal is missing, yet the checkpoint contains %llu records",
				    journal->dir->path, (unsigned long long) journal->covered);
	*ret_first = *ret_end = 0;
	return VD_OK;
}

struct walk {
	struct vdi_journal *journal;
	vdi_journal_each_fn each;
	void		   *arg;
	uint64_t	    chain;	/* checksum of the last record so far */
	uint64_t	    next_index; /* 0: not known yet */
	uint64_t	    last_sequence;
	bool		    is_first_pass;
};

static vd_status walk_records(struct walk *walk, struct vdi_segment_reader *reader, uint64_t index_end,
			      struct vd_error *reterr)
{
	struct vdi_segment_record record;
	vd_status		  status;

	while (reader->next_index < index_end) {
		status = vdi_segment_reader_next(reader, &record, reterr);
		if (status == VD_NOT_FOUND && index_end == UINT64_MAX)
			return VD_OK;
		if (status == VD_NOT_FOUND)
			return corrupt_at(reader,
					  "a record is unreadable, and the next file continues after it",
					  reterr);
		VDI_TRY(status);
		walk->journal->revision = VDI_MAX(walk->journal->revision, record.revision);
		walk->journal->is_unmarked = record.kind != VDI_SEGMENT_MARK;
		if (record.index <= walk->journal->covered && walk->is_first_pass)
			walk->journal->covered_bytes +=
				(int64_t) vdi_segment_record_size(record.payload.size);
		if (record.index > walk->journal->covered && record.kind == VDI_SEGMENT_COMMIT && walk->each)
			VDI_TRY(walk->each(walk->arg, &record, reterr));
	}
	return VD_OK;
}

/* Stores the place at which the writer continues. */
static void adopt_end(struct vdi_journal *journal, const struct vdi_segment_reader *reader)
{
	journal->sequence = reader->header.sequence;
	journal->nonce = reader->header.nonce;
	journal->file_size = reader->header.size;
	journal->tail = reader->offset;
	journal->previous = reader->previous;
	journal->next_index = reader->next_index;
	atomic_store(&journal->durable_index, reader->next_index - 1);
}

static vd_status walk_segment(struct walk *walk, uint64_t sequence, uint64_t index_end,
			      struct vd_error *reterr)
{
	struct vdi_journal	 *journal = walk->journal;
	struct vdi_segment_reader reader;
	vd_status		  status =
		vdi_segment_reader_open(&reader, journal->dir, VDI_SEGMENT_JOURNAL, sequence, reterr);

	if (status != VD_OK)
		return status;
	if (memcmp(reader.header.store_id, journal->store_id, VDI_STORE_ID_SIZE) != 0)
		status = corrupt_at(&reader, "the file belongs to another store", reterr);
	else if (walk->next_index &&
		 (reader.header.first_index != walk->next_index || reader.header.previous != walk->chain))
		status = corrupt_at(&reader, "the file does not continue the one before it", reterr);
	else
		status = walk_records(walk, &reader, index_end, reterr);
	if (status == VD_OK && index_end == UINT64_MAX && walk->is_first_pass)
		status = vdi_segment_reader_classify_end(&reader, reterr);
	if (status == VD_OK && walk->is_first_pass) {
		atomic_fetch_add(&journal->bytes, reader.offset - VDI_SEGMENT_HEADER_SIZE);
		journal->revision = VDI_MAX(journal->revision, reader.header.revision);
		adopt_end(journal, &reader);
	}
	walk->next_index = reader.next_index;
	walk->chain = reader.previous;
	vdi_segment_reader_fini(&reader);
	return status;
}

static vd_status header_of(struct vdi_journal *journal, uint64_t sequence,
			   struct vdi_segment_header *ret_header, struct vd_error *reterr)
{
	struct vdi_segment_reader reader;

	VDI_TRY(vdi_segment_reader_open(&reader, journal->dir, VDI_SEGMENT_JOURNAL, sequence, reterr));
	*ret_header = reader.header;
	vdi_segment_reader_fini(&reader);
	return VD_OK;
}

static vd_status walk_all(struct walk *walk, struct vd_error *reterr)
{
	struct vdi_journal	 *journal = walk->journal;
	struct vdi_segment_header next;

	for (uint64_t sequence = journal->first_sequence; sequence <= journal->end_sequence; sequence++) {
		uint64_t index_end = UINT64_MAX;

		if (sequence < journal->end_sequence) {
			VDI_TRY(header_of(journal, sequence + 1, &next, reterr));
			index_end = next.first_index;
		}
		VDI_TRY(walk_segment(walk, sequence, index_end, reterr));
	}
	return VD_OK;
}

static vd_status find_and_check(struct vdi_journal *journal, const uint8_t *store_id, struct listing *listing,
				vdi_journal_each_fn each, void *arg, struct vd_error *reterr)
{
	struct walk		  walk = { journal, each, arg, .is_first_pass = true };
	struct vdi_segment_header header;
	vd_status		  status = vdi_dir_list(journal->dir, list_one, listing, reterr);
	size_t			  first = 0, end = 0;

	if (status == VD_NOMEM)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	VDI_TRY(status);
	if (listing->is_foreign)
		return vd_error_set(reterr, VD_INVALID,
				    "%s holds the local history of an etcd; an embedded store needs a "
				    "directory of its own",
				    journal->dir->path);
	if (listing->count)
		qsort(listing->sequences, listing->count, sizeof *listing->sequences, order_sequences);
	VDI_TRY(choose_first(journal, listing, &first, &end, reterr));
	journal->is_new = first == end;
	if (journal->is_new) {
		for (int i = 0; i < VDI_STORE_ID_SIZE; i += 8) {
			uint64_t part = vdi_rand_next(&journal->rand);

			memcpy(journal->store_id + i, &part, 8);
		}
		journal->next_index = 1;
		return VD_OK;
	}
	journal->lowest_sequence = listing->sequences[0];
	journal->first_sequence = listing->sequences[first];
	journal->end_sequence = listing->sequences[end - 1];
	VDI_TRY(header_of(journal, journal->first_sequence, &header, reterr));
	memcpy(journal->store_id, store_id ? store_id : header.store_id, VDI_STORE_ID_SIZE);
	VDI_TRY(walk_all(&walk, reterr));
	if (journal->next_index <= journal->covered)
		return vd_error_set(
			reterr, VD_CORRUPT,
			"%s: the journal ends at record %llu, yet the checkpoint contains records up to %llu",
			journal->dir->path, (unsigned long long) journal->next_index - 1,
			(unsigned long long) journal->covered);
	return VD_OK;
}

vd_status vdi_journal_open(const struct vdi_journal_options *options, vdi_journal_each_fn each, void *arg,
			   struct vdi_journal **ret_journal, struct vd_error *reterr)
{
	struct vdi_journal *journal = VDI_NEW(struct vdi_journal);
	struct listing	    listing = { NULL, 0, 0 };
	vd_status	    status;

	if (journal == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	journal->dir = options->dir;
	VDI_CHECK(options->segment_size == 0 || options->segment_size >= VDI_SEGMENT_SIZE_MIN);
	vdi_journal_room_init(&journal->room, options->dir, options->segment_size);
	journal->covered = options->covered;
	journal->no_sync = options->no_sync;
	vdi_rand_init(&journal->rand, options->seed);
	journal->salt = (uint32_t) vdi_rand_next(&journal->rand);
	status = find_and_check(journal, options->store_id, &listing, each, arg, reterr);
	vdi_free(listing.sequences);
	if (status != VD_OK) {
		vdi_journal_room_fini(&journal->room);
		vdi_free(journal);
		return status;
	}
	*ret_journal = journal;
	return VD_OK;
}

vd_status vdi_journal_replay(struct vdi_journal *journal, vdi_journal_each_fn each, void *arg,
			     struct vd_error *reterr)
{
	struct walk walk = { journal, each, arg, .is_first_pass = false };

	VDI_CHECK(journal->file == NULL);
	return journal->is_new ? VD_OK : walk_all(&walk, reterr);
}

/* ---- Starting ---- */

static vd_status remove_if_there(struct vdi_dir *dir, const char *name, struct vd_error *reterr)
{
	vd_status status = vdi_dir_unlink(dir, name, reterr);

	return status == VD_NOT_FOUND ? VD_OK : status;
}

static vd_status prepare_next(struct vdi_journal *journal, size_t size, enum vdi_journal_use use,
			      struct vd_error *reterr);
static vd_status rotate(struct vdi_journal *journal, struct vd_error *reterr);

vd_status vdi_journal_start(struct vdi_journal *journal, struct vd_error *reterr)
{
	char name[VDI_DISK_NAME_MAX];

	VDI_CHECK(journal->file == NULL);
	VDI_TRY(remove_if_there(journal->dir, VDI_SEGMENT_TEMPORARY, reterr));
	if (journal->unfinished) {
		vdi_segment_name(VDI_SEGMENT_JOURNAL, journal->unfinished, name);
		VDI_TRY(remove_if_there(journal->dir, name, reterr));
	}
	if (journal->is_new) {
		VDI_TRY(prepare_next(journal, 0, VDI_JOURNAL_NO_RESERVE, reterr));
		VDI_TRY(rotate(journal, reterr));
		journal->lowest_sequence = journal->first_sequence = journal->sequence;
	} else {
		vdi_segment_name(VDI_SEGMENT_JOURNAL, journal->sequence, name);
		VDI_TRY(vdi_file_open(journal->dir, name, VDI_FILE_WRITE, &journal->file, reterr));
		/* If only the process died, not the machine, the records may be in the page cache only. */
		if (!journal->no_sync) {
			VDI_TRY(vdi_file_sync(journal->file, reterr));
			VDI_TRY(vdi_dir_sync(journal->dir, reterr));
		}
		atomic_store(&journal->writing_sequence, journal->sequence);
	}
	journal->released_sequence = journal->lowest_sequence;
	journal->buffer_revision = journal->revision;
	VDI_TRY(vdi_journal_room_start(&journal->room, reterr));
	/* If the disk is full, the reserve may be missing until one of these files becomes the new one. */
	vdi_journal_release(journal, journal->first_sequence);
	return VD_OK;
}

bool vdi_journal_is_new(const struct vdi_journal *journal)
{
	return journal->is_new;
}

const uint8_t *vdi_journal_store_id(const struct vdi_journal *journal)
{
	return journal->store_id;
}

vd_rev vdi_journal_revision(const struct vdi_journal *journal)
{
	return journal->revision;
}

uint64_t vdi_journal_first_sequence(const struct vdi_journal *journal)
{
	return journal->first_sequence;
}

uint64_t vdi_journal_writing_sequence(const struct vdi_journal *journal)
{
	return atomic_load(&journal->writing_sequence);
}

int64_t vdi_journal_covered_bytes(const struct vdi_journal *journal)
{
	return journal->covered_bytes;
}

uint64_t vdi_journal_durable_index(const struct vdi_journal *journal)
{
	return atomic_load_explicit(&journal->durable_index, memory_order_acquire);
}

int64_t vdi_journal_bytes(const struct vdi_journal *journal)
{
	return atomic_load_explicit(&journal->bytes, memory_order_relaxed);
}

struct vdi_journal_room *vdi_journal_room(struct vdi_journal *journal)
{
	return &journal->room;
}

/* ---- Writing ---- */

static vd_status broken(struct vdi_journal *journal, struct vd_error *reterr)
{
	return vd_error_set(reterr, VD_IO,
			    "%s is closed for writing after an earlier I/O error; open the store again",
			    journal->dir->path);
}

void vdi_journal_discard(struct vdi_journal *journal)
{
	atomic_fetch_sub_explicit(&journal->bytes, (int64_t) journal->buffer_size, memory_order_relaxed);
	journal->buffer_size = 0;
	journal->buffer_count = 0;
	journal->next = NULL;
	journal->buffer_revision = journal->revision;
}

/* Adds a record to the buffer, and fills the part of its header that is known before the sync. */
static vd_status put_record(struct vdi_journal *journal, enum vdi_segment_kind kind, vd_rev revision,
			    size_t payload_size, uint8_t **ret_payload, struct vd_error *reterr)
{
	size_t	 size = vdi_segment_record_size(payload_size);
	uint8_t *bytes;

	if (!vdi_grow((void **) &journal->buffer, &journal->capacity, journal->buffer_size + size, 1))
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	bytes = journal->buffer + journal->buffer_size;
	memset(bytes + size - 8, 0, 8);
	vdi_segment_record_prepare(bytes, kind, revision, payload_size);
	journal->buffer_size += size;
	journal->buffer_count++;
	atomic_fetch_add_explicit(&journal->bytes, (int64_t) size, memory_order_relaxed);
	*ret_payload = bytes + VDI_SEGMENT_RECORD_HEADER_SIZE;
	return VD_OK;
}

/* Chooses the file for a buffer of this size. */
static vd_status prepare_next(struct vdi_journal *journal, size_t size, enum vdi_journal_use use,
			      struct vd_error *reterr)
{
	return vdi_journal_room_prepare(
		&journal->room,
		VDI_MAX((int64_t) (VDI_SEGMENT_HEADER_SIZE + ((size + 4095) & ~(size_t) 4095)),
			VDI_SEGMENT_SIZE_MIN),
		use, &journal->next, reterr);
}

/* Ensures that the buffer plus this many bytes can be written. If the disk is full, the commit is refused
 * here, before anything is written. */
static vd_status make_room(struct vdi_journal *journal, size_t size, enum vdi_journal_use use,
			   struct vd_error *reterr)
{
	vd_status status = VD_OK;

	size += journal->buffer_size;
	if (use != VDI_JOURNAL_FREES)
		status = vdi_journal_room_fill_reserve(&journal->room, reterr);
	if (status == VD_OK && (journal->next || (int64_t) size > journal->file_size - journal->tail))
		status = prepare_next(journal, size, use, reterr);
	if (status == VD_OK || status == VD_NO_SPACE || status == VD_NOMEM)
		return status;
	journal->is_broken = true;
	if (reterr)
		reterr->code = VD_IO;
	return VD_IO;
}

vd_status vdi_journal_append(struct vdi_journal *journal, const struct vdi_commit *commit,
			     enum vdi_journal_use use, struct vd_error *reterr)
{
	size_t	 size = vdi_commit_size(commit);
	uint8_t *payload = NULL; /* a plain release build does not see that put_record sets it */

	if (journal->is_broken)
		return broken(journal, reterr);
	if (size > VDI_JOURNAL_PAYLOAD_MAX)
		return vd_error_set(reterr, VD_TOO_BIG, "a commit of %zu bytes exceeds the maximum of %zu",
				    size, VDI_JOURNAL_PAYLOAD_MAX);
	VDI_TRY(make_room(journal, vdi_segment_record_size(size), use, reterr));
	VDI_TRY(put_record(journal, VDI_SEGMENT_COMMIT, commit->revision, size, &payload, reterr));
	vdi_commit_encode(commit, payload);
	journal->buffer_revision = VDI_MAX(journal->buffer_revision, commit->revision);
	return VD_OK;
}

/* Makes the prepared file the current one. On failure the current file stays. */
static vd_status rotate(struct vdi_journal *journal, struct vd_error *reterr)
{
	struct vdi_segment_header header = {
		.sequence = journal->sequence + 1,
		.first_index = journal->next_index,
		.nonce = vdi_rand_next(&journal->rand),
		.previous = journal->previous,
		.size = vdi_journal_room_take(&journal->room, journal->next),
		.revision = journal->revision,
	};
	struct vdi_file *file;
	vd_status	 status;

	memcpy(header.store_id, journal->store_id, VDI_STORE_ID_SIZE);
	status = vdi_segment_create(journal->dir, &header, journal->next, &file, reterr);
	vdi_journal_room_taken(&journal->room, journal->next);
	journal->next = NULL;
	if (status != VD_OK)
		return status;
	vdi_file_close(journal->file);
	journal->file = file;
	journal->sequence = header.sequence;
	journal->nonce = header.nonce;
	journal->file_size = header.size;
	journal->tail = VDI_SEGMENT_HEADER_SIZE;
	journal->previous = header.checksum;
	atomic_store(&journal->writing_sequence, header.sequence);
	return VD_OK;
}

/* Chains and checksums the records of the buffer. Returns the checksum of the last. */
static uint64_t seal_buffer(struct vdi_journal *journal)
{
	uint64_t previous = journal->previous;
	uint32_t place = 0;

	journal->salt++;
	for (size_t at = 0; at < journal->buffer_size; place++) {
		at += vdi_segment_record_seal(journal->buffer + at, journal->next_index + place,
					      journal->nonce, previous, place, journal->salt, &previous);
	}
	return previous;
}

static vd_status undo_tail(struct vdi_journal *journal)
{
	static const uint8_t zeros[VDI_SEGMENT_RECORD_HEADER_SIZE];

	VDI_TRY(vdi_file_write(journal->file, journal->tail, zeros, sizeof zeros, NULL));
	return journal->no_sync ? VD_OK : vdi_file_sync(journal->file, NULL);
}

static vd_status write_buffer(struct vdi_journal *journal, struct vd_error *reterr)
{
	uint64_t  last = seal_buffer(journal);
	vd_status status =
		vdi_file_write(journal->file, journal->tail, journal->buffer, journal->buffer_size, reterr);

	if (status == VD_NO_SPACE)
		return undo_tail(journal) == VD_OK ?
			       VD_NO_SPACE :
			       vd_error_set(reterr, VD_IO, "%s: no room, and the write could not be undone",
					    journal->dir->path);
	if (status == VD_OK && !journal->no_sync)
		status = vdi_file_sync(journal->file, reterr);
	if (status != VD_OK)
		return VD_IO;
	journal->previous = last;
	journal->tail += (int64_t) journal->buffer_size;
	journal->next_index += journal->buffer_count;
	return VD_OK;
}

vd_status vdi_journal_sync(struct vdi_journal *journal, struct vd_error *reterr)
{
	vd_status status = VD_OK;

	if (journal->is_broken)
		return broken(journal, reterr);
	if (journal->buffer_count == 0)
		return VD_OK;
	if (journal->next)
		status = rotate(journal, reterr);
	if (status == VD_OK)
		status = write_buffer(journal, reterr);
	if (status != VD_OK) {
		journal->is_broken = status != VD_NO_SPACE && status != VD_NOMEM;
		vdi_journal_discard(journal);
		if (journal->is_broken && reterr)
			reterr->code = VD_IO;
		return journal->is_broken ? VD_IO : status;
	}
	journal->revision = journal->buffer_revision;
	journal->is_unmarked = true; /* closing removes it */
	journal->buffer_size = 0;
	journal->buffer_count = 0;
	atomic_store_explicit(&journal->durable_index, journal->next_index - 1, memory_order_release);
	return VD_OK;
}

/* ---- Giving back, ending ---- */

void vdi_journal_release(struct vdi_journal *journal, uint64_t sequence)
{
	char name[VDI_DISK_NAME_MAX];

	VDI_CHECK(sequence <= atomic_load(&journal->writing_sequence));
	for (; journal->released_sequence < sequence; journal->released_sequence++) {
		vdi_segment_name(VDI_SEGMENT_JOURNAL, journal->released_sequence, name);
		vdi_journal_room_release(&journal->room, name);
	}
}

/* With a mark after the last group, damage of that group can be distinguished from a torn write. A failure is
 * harmless. */
void vdi_journal_finish(struct vdi_journal *journal)
{
	uint8_t *payload;

	vdi_journal_discard(journal);
	if (journal->file == NULL || journal->is_broken || !journal->is_unmarked ||
	    journal->file_size - journal->tail < VDI_SEGMENT_RECORD_HEADER_SIZE)
		return;
	if (put_record(journal, VDI_SEGMENT_MARK, 0, 0, &payload, NULL) == VD_OK)
		(void) !vdi_journal_sync(journal, NULL);
	journal->is_unmarked = false;
}

struct vdi_journal *vdi_journal_close(struct vdi_journal *journal)
{
	if (journal == NULL)
		return NULL;
	vdi_journal_finish(journal);
	vdi_file_close(journal->file);
	vdi_journal_room_fini(&journal->room);
	vdi_free(journal->buffer);
	vdi_free(journal);
	return NULL;
}
