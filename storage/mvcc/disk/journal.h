/* The journal: commits in revision order in a row of preallocated files (journal_segment.h says how they
 * look).
 *
 * Opening happens in two steps: vdi_journal_open reads and checks everything and changes nothing;
 * vdi_journal_start makes it writable. In between vdi_journal_replay gives the commits again. Then the writer
 * (one thread) appends and syncs; one group of appends is one write and one fdatasync. vdi_journal_release
 * may be called by one other thread at the same time; the two functions named "any thread" by all.
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
	int64_t	 segment_size; /* of new files and of the reserve; 0: both follow the size of the store */
	uint64_t covered;      /* records up to this index are in the checkpoint and need not be read */
	/* VDI_STORE_ID_SIZE bytes that must be found; NULL: any, and an empty directory is a new store */
	const uint8_t *store_id;
	bool	       no_sync; /* never fdatasync: benchmarks */
};

/* Of a commit that is on disk. The record is lent for the call. */
typedef vd_status (*vdi_journal_each_fn)(void *arg, const struct vdi_segment_record *record,
					 struct vd_error *reterr);

/* each (may be NULL) sees every commit after covered, once it is verified; what follows may still turn out to
 * be damaged. VD_CORRUPT (the message names file and offset), VD_NEWER_FORMAT, VD_IO, VD_NOMEM, or what each
 * returned. Nothing was changed on disk. */
VDI_MUST_USE vd_status vdi_journal_open(const struct vdi_journal_options *options, vdi_journal_each_fn each,
					void *arg, struct vdi_journal **ret_journal, struct vd_error *reterr);
/* The same commits again; before start only. */
VDI_MUST_USE vd_status vdi_journal_replay(struct vdi_journal *journal, vdi_journal_each_fn each, void *arg,
					  struct vd_error *reterr);
/* Removes leftovers of interrupted work, makes sure that what was read is on disk, creates the first file of
 * a new store. */
VDI_MUST_USE vd_status vdi_journal_start(struct vdi_journal *journal, struct vd_error *reterr);

/* Whether there was no journal at all. */
bool	       vdi_journal_is_new(const struct vdi_journal *journal);
const uint8_t *vdi_journal_store_id(const struct vdi_journal *journal);
/* The newest one that open came across, the headers of files included; 0: none. */
vd_rev vdi_journal_revision(const struct vdi_journal *journal);

/* Contract of vdi_backend_append, vdi_backend_sync, vdi_backend_discard. VD_TOO_BIG: the commit exceeds
 * VDI_JOURNAL_PAYLOAD_MAX. use: what it may take when the disk is full. */
VDI_MUST_USE vd_status vdi_journal_append(struct vdi_journal *journal, const struct vdi_commit *commit,
					  enum vdi_journal_use use, struct vd_error *reterr);
VDI_MUST_USE vd_status vdi_journal_sync(struct vdi_journal *journal, struct vd_error *reterr);
void		       vdi_journal_discard(struct vdi_journal *journal);

/* Any thread. */
uint64_t vdi_journal_durable_index(const struct vdi_journal *journal);
/* Bytes of records written or appended since start, plus those read by open: only grows (or falls by what is
 * discarded). Any thread. */
int64_t vdi_journal_bytes(const struct vdi_journal *journal);
/* Room for the next files. Any thread. */
struct vdi_journal_room *vdi_journal_room(struct vdi_journal *journal);
/* The file that the newest record is in. Any thread. */
uint64_t vdi_journal_writing_sequence(const struct vdi_journal *journal);
/* Of what open read, the part up to options->covered. */
int64_t vdi_journal_covered_bytes(const struct vdi_journal *journal);
/* The first file that open needed: where a reader that follows the journal begins. */
uint64_t vdi_journal_first_sequence(const struct vdi_journal *journal);
/* Files before sequence are not needed any more: removed, or kept for reuse. Failing does no harm: the next
 * open tries again. */
void vdi_journal_release(struct vdi_journal *journal, uint64_t sequence);

/* Discards what is not synced and marks a clean end; nothing is appended after that. The writer. */
void vdi_journal_finish(struct vdi_journal *journal);
/* Finishes if that was not done, frees. NULL is fine. Returns NULL. */
struct vdi_journal *vdi_journal_close(struct vdi_journal *journal);

#endif
