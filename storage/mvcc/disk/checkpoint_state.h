/* The private state of a checkpoint: checkpoint.c opens and reads it, checkpoint_write.c writes groups of
 * journal records, checkpoint_compact.c removes dead records. One thread. */
#ifndef VDI_CHECKPOINT_STATE_H
#define VDI_CHECKPOINT_STATE_H

#include <lmdb.h>

#include "checkpoint.h"

/* A key is revision and place in it, big-endian. */
#define VDI_CHECKPOINT_KEY_SIZE 12
#define VDI_CHECKPOINT_MAP_MIN ((int64_t) 1 << 20)

struct vdi_checkpoint {
	/* Fixed. */
	struct vdi_dir *dir;
	const char     *name; /* of the file */
	MDB_env	       *env;
	MDB_dbi		records;
	MDB_dbi		leases;
	MDB_dbi		meta_dbi;

	struct vdi_checkpoint_meta meta;     /* on disk */
	struct vdi_checkpoint_meta next;     /* of the current group */
	MDB_txn			  *txn;	     /* of the current group */
	bool			   is_swept; /* all records that meta.compacted makes dead are removed */
	uint32_t compact_sub; /* compaction continues at this record of revision meta.compact_next */
	int64_t	 map_size;
	int64_t	 size_bytes;
	uint8_t *scratch;
	size_t	 scratch_capacity;
};

/* Sets the error of "cannot VERB FILE". */
vd_status vdi_checkpoint_lmdb_fail(const struct vdi_checkpoint *checkpoint, int error, const char *verb,
				   struct vd_error *reterr);
void	  vdi_checkpoint_encode_key(vd_rev revision, uint32_t sub, uint8_t ret_key[VDI_CHECKPOINT_KEY_SIZE]);
/* Returns the checksum of a stored value, which includes its place. */
uint64_t vdi_checkpoint_checksum(const void *body, size_t size, vd_rev revision, uint32_t sub);
/* Updates size_bytes. */
void vdi_checkpoint_measure(struct vdi_checkpoint *checkpoint, MDB_txn *txn);
/* Releases the memory of the mapped file. */
void vdi_checkpoint_forget_pages(const struct vdi_checkpoint *checkpoint);
/* Calls each for the records from the one at (from, from_sub) up to revision to. Errors of each end the
 * walk. */
VDI_MUST_USE vd_status vdi_checkpoint_walk_from(struct vdi_checkpoint *checkpoint, vd_rev from,
						uint32_t from_sub, vd_rev to, vdi_checkpoint_each_fn each,
						void *arg, struct vd_error *reterr);

/* ---- checkpoint_write.c ---- */

/* Makes the file at least size bytes long, on disk. */
VDI_MUST_USE vd_status vdi_checkpoint_allocate(struct vdi_dir *dir, const char *name, int64_t size,
					       struct vd_error *reterr);
/* Deletes the entry at key from table, if there is one, in the current group; an error ends the group. */
VDI_MUST_USE vd_status vdi_checkpoint_drop(struct vdi_checkpoint *checkpoint, MDB_dbi table, MDB_val key,
					   int64_t *count, struct vd_error *reterr);

#endif
