/* The actor that copies the journal's records on disk into the checkpoint, compacts the checkpoint, and
 * releases old journal files.
 *
 * It reads the journal's files, so it never delays a commit and needs no queue: if it falls behind, or cannot
 * write, the journal grows. Errors are logged, and the work is tried again later; after VD_IO and VD_CORRUPT
 * it stops until the store is opened again.
 *
 * A full disk must not stop it, because only its work releases journal files and removes deleted records. So
 * the journal's writer requests room in the checkpoint before it accepts a commit
 * (vdi_checkpointer_make_room). Therefore all records of the journal fit into the checkpoint, with a reserve
 * for commits that free space, and another reserve for compaction.
 */
#ifndef VDI_CHECKPOINTER_H
#define VDI_CHECKPOINTER_H

#include "checkpoint.h"

struct vdi_checkpointer;

struct vdi_checkpointer_options {
	const struct vd_env   *env;
	struct vdi_dir	      *dir;
	struct vdi_journal    *journal;	   /* started; outlives the checkpointer */
	struct vdi_checkpoint *checkpoint; /* taken over on success; NULL: a new one is created */
	int64_t		       bytes;	   /* size of the records that one group copies */
	vd_dur		       interval;   /* maximum time that a commit waits for a group to fill */
	bool		       no_sync;
};

VDI_MUST_USE vd_status vdi_checkpointer_new(const struct vdi_checkpointer_options *options,
					    struct vdi_checkpointer		 **ret_checkpointer,
					    struct vd_error			  *reterr);
/* Notifies the checkpointer of new records on disk. The journal's writer; cheap. */
void vdi_checkpointer_notify(struct vdi_checkpointer *checkpointer);
/* Ensures that a commit with this size in bytes and number of changes fits into the checkpoint. is_freeing:
 * it may use the reserve if there is no other room. VD_NO_SPACE: the disk is full. The journal's writer. */
VDI_MUST_USE vd_status vdi_checkpointer_make_room(struct vdi_checkpointer *checkpointer, size_t size,
						  size_t change_count, bool is_freeing,
						  struct vd_error *reterr);
/* Returns true if work is in progress that may make room, so that a refused commit may fit soon. Any
 * thread. */
bool vdi_checkpointer_may_make_room(const struct vdi_checkpointer *checkpointer);
/* Returns the size of the room that only commits that free space may use, in bytes. Any thread. */
int64_t vdi_checkpointer_reserve_bytes(const struct vdi_checkpointer *checkpointer);
/* Return the size of the checkpoint, and how many of vdi_journal_bytes() it contains. Any thread. */
int64_t vdi_checkpointer_size_bytes(const struct vdi_checkpointer *checkpointer);
int64_t vdi_checkpointer_covered_bytes(const struct vdi_checkpointer *checkpointer);
/* Returns the index of the last record in the checkpoint. Any thread; for tests. */
uint64_t vdi_checkpointer_covered(const struct vdi_checkpointer *checkpointer);
/* Ends after the current step and frees; then calls done. NULL: done is called at once. */
void vdi_checkpointer_close(struct vdi_checkpointer *checkpointer, void (*done)(void *arg), void *arg);

#endif
