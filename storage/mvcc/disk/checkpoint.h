/* The checkpoint: the records of the journal in LMDB, keyed by revision, so that old journal files can be
 * removed.
 *
 *   checkpoint.mdb, key -> value
 *     "records"   main (8, big-endian), sub (4, big-endian) -> checksum (8), record (record.h)
 *     "leases"    id (8, big-endian) -> checksum (8), ttl (8), deadline (8)
 *     "meta"      "meta" -> struct vdi_checkpoint_meta, checksum (8)
 *
 * The file always has the state after a whole journal record: meta.covered. It is written in groups: begin,
 * apply*, commit; a group that is not committed has no effect. One thread at a time; all functions block.
 * Needs the real disk.
 */
#ifndef VDI_CHECKPOINT_H
#define VDI_CHECKPOINT_H

#include "journal.h"
#include "lease_table.h"
#include "parallel.h"
#include "record.h"

#define VDI_CHECKPOINT_NAME "checkpoint.mdb"
#define VDI_CHECKPOINT_TEMPORARY "checkpoint.tmp" /* name until the file is complete */
#define VDI_CHECKPOINT_FORMAT 1u

struct vdi_checkpoint;

struct vdi_checkpoint_meta {
	uint32_t format;
	uint32_t zero;
	uint8_t	 store_id[VDI_STORE_ID_SIZE];
	uint64_t covered;     /* index of the last journal record that it contains */
	vd_rev	 revision;    /* newest one seen */
	vd_rev	 compacted;   /* -1: never */
	vd_rev	compact_next; /* compaction continues at this revision; there are no dead records before it */
	int64_t record_count;
	int64_t lease_count;
	/* sum of the checksums of all records and leases; detects a missing or stale one */
	uint64_t digest;
};

/* The content of a checkpoint. Every record is verified, and the digest proves that none is missing. */
struct vdi_checkpoint_content {
	/* Set by the caller; the rest is zero. */
	const struct vd_env *env;
	unsigned	     part_count; /* number of threads that read; 1 .. VDI_PARALLEL_MAX */

	struct vdi_lease_table leases;
	/* Records in the order of their revisions: those of the first part, then those of the second, ... */
	struct vdi_checkpoint_part {
		struct vdi_checkpoint_record {
			struct vd_kv *kv; /* a reference; the code that takes it over sets NULL */
			bool	      is_delete;
		} * records;
		size_t	 count;
		size_t	 capacity;
		uint64_t digest;
	} parts[VDI_PARALLEL_MAX];
};

void vdi_checkpoint_content_fini(struct vdi_checkpoint_content *content);

/* Opens the checkpoint. Verifies the whole file before LMDB maps it and, unless content is NULL, reads the
 * content in the same pass. Changes nothing on disk. After a failure content must be freed, too.
 * VD_NOT_FOUND: there is no checkpoint. VD_CORRUPT, VD_NEWER_FORMAT, VD_IO, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_checkpoint_open(struct vdi_dir *dir, bool no_sync,
					   struct vdi_checkpoint_content *content,
					   struct vdi_checkpoint **ret_checkpoint, struct vd_error *reterr);
/* Creates an empty checkpoint; the file gets its name when it is complete and on disk. VD_NO_SPACE, VD_IO,
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_checkpoint_create(struct vdi_dir *dir, bool no_sync, const uint8_t *store_id,
					     struct vdi_checkpoint **ret_checkpoint, struct vd_error *reterr);
/* NULL is allowed; returns NULL. */
struct vdi_checkpoint *vdi_checkpoint_close(struct vdi_checkpoint *checkpoint);

const struct vdi_checkpoint_meta *vdi_checkpoint_meta(const struct vdi_checkpoint *checkpoint);
/* Returns the size of all pages in use, in bytes. */
int64_t vdi_checkpoint_size_bytes(const struct vdi_checkpoint *checkpoint);

/* ---- Room ---- */

/* Room in the file that the next group can use without making the file longer. end_bytes: offset of the
 * unused end of the file. free_bytes[i]: size of the free space before it in pieces of 1 << i consecutive
 * pages. */
#define VDI_CHECKPOINT_PAGE_SIZE ((int64_t) 4096)
#define VDI_CHECKPOINT_ROOM_CLASSES 12
struct vdi_checkpoint_room {
	int64_t end_bytes;
	int64_t free_bytes[VDI_CHECKPOINT_ROOM_CLASSES];
};

/* Measures the room. Not inside a group. is_exact: reads the list of free pages, in time proportional to
 * their number; otherwise free_bytes are 0. */
VDI_MUST_USE vd_status vdi_checkpoint_measure_room(struct vdi_checkpoint *checkpoint, bool is_exact,
						   struct vdi_checkpoint_room *ret_room,
						   struct vd_error	      *reterr);
/* Makes the checkpoint's file in dir at least size bytes long, all of them allocated on disk. Any thread,
 * also while another thread uses the checkpoint. VD_NO_SPACE, VD_NOT_FOUND, VD_IO. */
VDI_MUST_USE vd_status vdi_checkpoint_reserve(struct vdi_dir *dir, int64_t size, struct vd_error *reterr);
/* Returns the length of the file, in bytes. */
VDI_MUST_USE vd_status vdi_checkpoint_file_size(struct vdi_dir *dir, int64_t *ret_size,
						struct vd_error *reterr);

/* ---- Reading; not inside a group ---- */

typedef vd_status (*vdi_checkpoint_each_fn)(void *arg, const struct vdi_record *record);

/* Calls each for the records of the revisions [from, to], in order. They are verified, and borrowed for the
 * call. */
VDI_MUST_USE vd_status vdi_checkpoint_walk(struct vdi_checkpoint *checkpoint, vd_rev from, vd_rev to,
					   vdi_checkpoint_each_fn each, void *arg, struct vd_error *reterr);

/* ---- Writing ---- */

/* A failure of any of these functions ends the group as abort does. The same group may be tried again, except
 * after VD_IO and VD_CORRUPT. The file grows as needed. VD_NO_SPACE: the group does not fit on the disk; a
 * smaller one may fit. VD_FULL: the map was too small and has been enlarged; try the group again. */
VDI_MUST_USE vd_status vdi_checkpoint_begin(struct vdi_checkpoint *checkpoint, int64_t bytes_expected,
					    struct vd_error *reterr);
/* Adds a commit to the group. Commits must be applied in the order of the journal, from meta.covered + 1
 * on. */
VDI_MUST_USE vd_status vdi_checkpoint_apply(struct vdi_checkpoint	    *checkpoint,
					    const struct vdi_segment_record *record, struct vd_error *reterr);
VDI_MUST_USE vd_status vdi_checkpoint_commit(struct vdi_checkpoint *checkpoint, struct vd_error *reterr);
void		       vdi_checkpoint_abort(struct vdi_checkpoint *checkpoint);

/* Returns true if compaction has records to check; after an open also if only those of the compacted revision
 * itself must be checked again. */
bool vdi_checkpoint_compact_pending(const struct vdi_checkpoint *checkpoint);
/* Runs one step of compaction in a group of its own: checks up to record_count_max records at or before
 * meta.compacted, and removes the records that compaction drops (load.c): at most two for each checked
 * one. */
VDI_MUST_USE vd_status vdi_checkpoint_compact_step(struct vdi_checkpoint *checkpoint, size_t record_count_max,
						   struct vd_error *reterr);

#endif
