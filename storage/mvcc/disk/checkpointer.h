/* The actor that moves what the journal has on disk into the checkpoint, compacts there, and gives old
 * journal files back.
 *
 * It follows the journal through its files, so it never holds a commit up and needs no queue: when it falls
 * behind, or cannot write, the journal just grows. Errors are logged and tried again later; after VD_IO and
 * VD_CORRUPT it stops until the store is opened again.
 *
 * A full disk must not stop it, because only the checkpoint gives journal files back and removes what was
 * deleted. So the journal's writer asks for room in the checkpoint before it takes a commit
 * (vdi_checkpointer_make_room). Whatever the journal holds therefore fits into the checkpoint, with a reserve
 * left for commits that free something, and behind that a reserve for compaction.
 */
#ifndef VDI_CHECKPOINTER_H
#define VDI_CHECKPOINTER_H

#include "checkpoint.h"

struct vdi_checkpointer;

struct vdi_checkpointer_options {
	const struct vd_env   *env;
	struct vdi_dir	      *dir;
	struct vdi_journal    *journal;	   /* started; outlives the checkpointer */
	struct vdi_checkpoint *checkpoint; /* taken over when this succeeds; NULL: one is made */
	int64_t		       bytes;	   /* journal bytes that are taken at once */
	vd_dur		       interval;   /* the longest a commit waits otherwise */
	bool		       no_sync;
};

VDI_MUST_USE vd_status vdi_checkpointer_new(const struct vdi_checkpointer_options *options,
					    struct vdi_checkpointer		 **ret_checkpointer,
					    struct vd_error			  *reterr);
/* The journal has something new on disk. The journal's writer; cheap. */
void vdi_checkpointer_notify(struct vdi_checkpointer *checkpointer);
/* Makes sure that a commit of so many bytes and changes fits into the checkpoint; is_freeing: from the
 * reserve, if there is no other room. VD_NO_SPACE: the disk is full. The journal's writer. */
VDI_MUST_USE vd_status vdi_checkpointer_make_room(struct vdi_checkpointer *checkpointer, size_t size,
						  size_t change_count, bool is_freeing,
						  struct vd_error *reterr);
/* Whether work is under way that may make room: a commit that was refused may fit soon. Any thread. */
bool vdi_checkpointer_may_make_room(const struct vdi_checkpointer *checkpointer);
/* Bytes in the file that commits which free nothing cannot use. Any thread. */
int64_t vdi_checkpointer_reserve_bytes(const struct vdi_checkpointer *checkpointer);
/* Bytes of the checkpoint, and how many of vdi_journal_bytes() are in it. Any thread. */
int64_t vdi_checkpointer_size_bytes(const struct vdi_checkpointer *checkpointer);
int64_t vdi_checkpointer_covered_bytes(const struct vdi_checkpointer *checkpointer);
/* Index of the last record in the checkpoint, and whether compaction there is done. Any thread; for tests. */
uint64_t vdi_checkpointer_covered(const struct vdi_checkpointer *checkpointer);
/* Ends after the step under way, frees, then calls done. NULL calls it at once. */
void vdi_checkpointer_close(struct vdi_checkpointer *checkpointer, void (*done)(void *arg), void *arg);

#endif
