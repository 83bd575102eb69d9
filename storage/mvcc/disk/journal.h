/* The journal: commits in revision order in a sequence of preallocated files (their format:
 * journal_segment.h).
 *
 * Opening happens in two steps: vdi_journal_open reads and checks everything and changes nothing;
 * vdi_journal_start makes it writable. In between vdi_journal_replay reads the commits again. Then the writer
 * (one thread) appends and syncs; one group of appends is one write and one fdatasync. One other thread may
 * call vdi_journal_release at the same time; functions whose comment says "Any thread" may be called by all.
 *
 * Each record has an index, from 1 without gaps, and everything up to vdi_journal_durable_index() is on disk.
 */
#ifndef VDI_JOURNAL_H
#define VDI_JOURNAL_H

#include "commit.h"
#include "journal_room.h"
#include "journal_segment.h"

#define VDI_JOURNAL_PAYLOAD_MAX ((size_t) 1 << 30)

struct vdi_journal;

struct vdi_journal_options {
	struct vdi_dir *dir;   /* must outlive the journal */
	uint64_t	seed;  /* of nonces, and of the store id of a new store */
	int64_t	 segment_size; /* size of new files and of the reserve; 0: follows the size of the store */
	uint64_t covered;      /* records up to this index are in the checkpoint and need not be read */
	/* expected store ID, VDI_STORE_ID_SIZE bytes; NULL: any, and an empty directory is a new store */
	const uint8_t *store_id;
	bool	       no_sync; /* never fdatasync: benchmarks */
};

/* Receives a commit that is on disk; borrowed for the call. */
typedef vd_status (*vdi_journal_each_fn)(void *arg, const struct vdi_segment_record *record,
					 struct vd_error *reterr);

/* Opens the journal and calls each (may be NULL) for every commit after covered, when it is verified; later
 * commits may still be damaged. Changes nothing on disk. VD_CORRUPT (the message names file and offset),
 * VD_NEWER_FORMAT, VD_IO, VD_NOMEM, or the error of each. */
VDI_MUST_USE vd_status vdi_journal_open(const struct vdi_journal_options *options, vdi_journal_each_fn each,
					void *arg, struct vdi_journal **ret_journal, struct vd_error *reterr);
/* Calls each for the same commits again; before start only. */
VDI_MUST_USE vd_status vdi_journal_replay(struct vdi_journal *journal, vdi_journal_each_fn each, void *arg,
					  struct vd_error *reterr);
/* Removes temporary files of interrupted work, syncs the records that were read, and creates the first file
 * of a new store. */
VDI_MUST_USE vd_status vdi_journal_start(struct vdi_journal *journal, struct vd_error *reterr);

/* Returns true if there was no journal. */
bool	       vdi_journal_is_new(const struct vdi_journal *journal);
const uint8_t *vdi_journal_store_id(const struct vdi_journal *journal);
/* Returns the newest revision that open found, also in headers of files; 0: none. */
vd_rev vdi_journal_revision(const struct vdi_journal *journal);

/* Contract of vdi_backend_append, vdi_backend_sync, vdi_backend_discard. VD_TOO_BIG: the commit exceeds
 * VDI_JOURNAL_PAYLOAD_MAX. use: the space that it may use if the disk is full. */
VDI_MUST_USE vd_status vdi_journal_append(struct vdi_journal *journal, const struct vdi_commit *commit,
					  enum vdi_journal_use use, struct vd_error *reterr);
VDI_MUST_USE vd_status vdi_journal_sync(struct vdi_journal *journal, struct vd_error *reterr);
void		       vdi_journal_discard(struct vdi_journal *journal);

/* Returns the index of the newest record on disk. Any thread. */
uint64_t vdi_journal_durable_index(const struct vdi_journal *journal);
/* Returns the size of the records appended since start, plus those read by open, in bytes: increases, except
 * when appended records are discarded. Any thread. */
int64_t vdi_journal_bytes(const struct vdi_journal *journal);
/* Returns the room for the next files. Any thread. */
struct vdi_journal_room *vdi_journal_room(struct vdi_journal *journal);
/* Returns the number of the file with the newest record. Any thread. */
uint64_t vdi_journal_writing_sequence(const struct vdi_journal *journal);
/* Returns the size of the records that open read up to options->covered, in bytes. */
int64_t vdi_journal_covered_bytes(const struct vdi_journal *journal);
/* Returns the number of the first file that open needed: a reader that follows the journal begins there. */
uint64_t vdi_journal_first_sequence(const struct vdi_journal *journal);
/* Removes files before sequence, or keeps them for reuse. A failure is harmless, because the next open tries
 * again. */
void vdi_journal_release(struct vdi_journal *journal, uint64_t sequence);

/* Discards records that are not synced, and writes the mark of a clean end. No append may follow. The writer
 * only. */
void vdi_journal_finish(struct vdi_journal *journal);
/* Finishes the journal unless that was done, and frees it. NULL is allowed; returns NULL. */
struct vdi_journal *vdi_journal_close(struct vdi_journal *journal);

#endif
