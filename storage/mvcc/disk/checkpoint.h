/* The checkpoint: what the journal said, in LMDB, keyed by revision, so that old journal files can go.
 *
 *   checkpoint.mdb, key -> value
 *     "records"   main (8, big-endian), sub (4, big-endian) -> checksum (8), record (record.h)
 *     "leases"    id (8, big-endian) -> checksum (8), ttl (8), deadline (8)
 *     "meta"      "meta" -> struct vdi_checkpoint_meta, checksum (8)
 *
 * The state of the file is always that after some whole journal record: meta.covered. It is written in
 * groups: begin, apply*, commit; what was not committed never happened. One user at a time; everything
 * blocks. Needs the real disk.
 */
#ifndef VDI_CHECKPOINT_H
#define VDI_CHECKPOINT_H

#include "journal.h"
#include "lease_table.h"
#include "parallel.h"
#include "record.h"

#define VDI_CHECKPOINT_NAME "checkpoint.mdb"
#define VDI_CHECKPOINT_TEMPORARY "checkpoint.tmp" /* one in the making */
#define VDI_CHECKPOINT_FORMAT 1u

struct vdi_checkpoint;

struct vdi_checkpoint_meta {
	uint32_t format;
	uint32_t zero;
	uint8_t	 store_id[VDI_STORE_ID_SIZE];
	uint64_t covered;      /* index of the last journal record that is in */
	vd_rev	 revision;     /* newest one seen */
	vd_rev	 compacted;    /* -1: never */
	vd_rev	 compact_next; /* compaction continues at this revision; before it no dead record is left */
	int64_t	 record_count;
	int64_t	 lease_count;
	/* sum of the checksums of all records and leases: one that is missing or stale shows */
	uint64_t digest;
};

/* All that a checkpoint holds, every record verified, and the proof that none was missing. */
struct vdi_checkpoint_content {
	/* Set by whoever wants it; the rest is zero. */
	const struct vd_env *env;
	unsigned	     part_count; /* read by so many threads; 1 .. VDI_PARALLEL_MAX */

	struct vdi_lease_table leases;
	/* Records in the order of their revisions: those of the first part, then those of the second, ... */
	struct vdi_checkpoint_part {
		struct vdi_checkpoint_record {
			struct vd_kv *kv; /* a reference; who takes it over sets NULL */
			bool	      is_delete;
		} * records;
		size_t	 count;
		size_t	 capacity;
		uint64_t digest;
	} parts[VDI_PARALLEL_MAX];
};

void vdi_checkpoint_content_fini(struct vdi_checkpoint_content *content);

/* Checks the file as a whole before LMDB maps it, and reads what is in it on the way, unless content is NULL.
 * VD_NOT_FOUND: there is none. VD_CORRUPT, VD_NEWER_FORMAT, VD_IO, VD_NOMEM. Changes nothing on disk; content
 * may hold something after a failure. */
VDI_MUST_USE vd_status vdi_checkpoint_open(struct vdi_dir *dir, bool no_sync,
					   struct vdi_checkpoint_content *content,
					   struct vdi_checkpoint **ret_checkpoint, struct vd_error *reterr);
/* Makes an empty one; it has its name only when it is whole and on disk. VD_NO_SPACE, VD_IO, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_checkpoint_create(struct vdi_dir *dir, bool no_sync, const uint8_t *store_id,
					     struct vdi_checkpoint **ret_checkpoint, struct vd_error *reterr);
/* NULL is fine. Returns NULL. */
struct vdi_checkpoint *vdi_checkpoint_close(struct vdi_checkpoint *checkpoint);

const struct vdi_checkpoint_meta *vdi_checkpoint_meta(const struct vdi_checkpoint *checkpoint);
/* Bytes of pages in use. */
int64_t vdi_checkpoint_size_bytes(const struct vdi_checkpoint *checkpoint);

/* ---- Room ---- */

/* Room in the file that the next group can use without making the file longer: end_bytes is where the room at
 * the end of the file begins; free_bytes[i] is what lies before it in pieces of 1 << i pages that follow one
 * another. */
#define VDI_CHECKPOINT_PAGE_SIZE ((int64_t) 4096)
#define VDI_CHECKPOINT_ROOM_CLASSES 12
struct vdi_checkpoint_room {
	int64_t end_bytes;
	int64_t free_bytes[VDI_CHECKPOINT_ROOM_CLASSES];
};

/* Not inside a group. is_exact: looks at the list of free pages, in time proportional to their number; else
 * free_bytes are 0. */
VDI_MUST_USE vd_status vdi_checkpoint_measure_room(struct vdi_checkpoint *checkpoint, bool is_exact,
						   struct vdi_checkpoint_room *ret_room,
						   struct vd_error	      *reterr);
/* Makes the file of the directory's checkpoint at least so long, with room for all of it. Any thread, beside
 * anything. VD_NO_SPACE, VD_NOT_FOUND, VD_IO. */
VDI_MUST_USE vd_status vdi_checkpoint_reserve(struct vdi_dir *dir, int64_t size, struct vd_error *reterr);
/* Length of the file. */
VDI_MUST_USE vd_status vdi_checkpoint_file_size(struct vdi_dir *dir, int64_t *ret_size,
						struct vd_error *reterr);

/* ---- Reading; not inside a group ---- */

typedef vd_status (*vdi_checkpoint_each_fn)(void *arg, const struct vdi_record *record);

/* Records of the revisions [from, to], in order, each verified; lent for the call. */
VDI_MUST_USE vd_status vdi_checkpoint_walk(struct vdi_checkpoint *checkpoint, vd_rev from, vd_rev to,
					   vdi_checkpoint_each_fn each, void *arg, struct vd_error *reterr);

/* ---- Writing ---- */

/* A failure of any of these ends the group as abort does; the same group may be tried again, except after
 * VD_IO and VD_CORRUPT. Room is made as needed, and a disk that has none refuses a group only when it does
 * not fit: VD_NO_SPACE, a smaller group may fit; VD_FULL: the map was too small, it has been made bigger, try
 * the group again. */
VDI_MUST_USE vd_status vdi_checkpoint_begin(struct vdi_checkpoint *checkpoint, int64_t bytes_expected,
					    struct vd_error *reterr);
/* The commits must come in the order of the journal, from meta.covered + 1 on. */
VDI_MUST_USE vd_status vdi_checkpoint_apply(struct vdi_checkpoint	    *checkpoint,
					    const struct vdi_segment_record *record, struct vd_error *reterr);
VDI_MUST_USE vd_status vdi_checkpoint_commit(struct vdi_checkpoint *checkpoint, struct vd_error *reterr);
void		       vdi_checkpoint_abort(struct vdi_checkpoint *checkpoint);

/* Whether compaction has records to look at; after an open also if only the compacted revision itself is to
 * be looked at again. */
bool vdi_checkpoint_compact_pending(const struct vdi_checkpoint *checkpoint);
/* One group of its own: looks at up to record_count_max records at or before meta.compacted, and removes the
 * records that compaction drops (load.c): two for each at most. */
VDI_MUST_USE vd_status vdi_checkpoint_compact_step(struct vdi_checkpoint *checkpoint, size_t record_count_max,
						   struct vd_error *reterr);

#endif
