/* What compaction leaves to clean up: history chunks that nobody can reach any more except through cursors
 * that already stand in them.
 *
 * The writer takes chunks out of the log in O(chunks) and hands them over; an actor of the pool drops their
 * references, a few per run, so that a compaction of millions of records stops neither the writer nor the
 * pool. Compactions with physical wait for it (E-462).
 */
#ifndef VDI_COMPACT_H
#define VDI_COMPACT_H

#include "mvcc_log.h"

#define VDI_COMPACT_CHUNKS_PER_RUN 4

struct vdi_compact_waiter {
	struct vdi_compact_waiter *next;
	void (*done)(struct vdi_compact_waiter *waiter);
};

struct vdi_compactor {
	struct vd_actor *actor;
	struct vdi_lock	 lock; /* "queue" */

	/* Under the lock. */
	struct vdi_mvcc_log_chunk  *first;
	struct vdi_mvcc_log_chunk **last;
	struct vdi_compact_waiter  *waiters; /* newest first; done when the list has become empty */
};

/* Of zeroed memory. */
VDI_MUST_USE vd_status vdi_compactor_init(struct vdi_compactor *compactor, const struct vd_env *env);
/* Takes over the list of chunks (may be empty). waiter (may be NULL) is called when they and all before are
 * gone, from the actor's thread; or at once when there is nothing to do. */
void vdi_compactor_add(struct vdi_compactor *compactor, struct vdi_mvcc_log_chunk *chunks,
		       struct vdi_compact_waiter *waiter);
/* Ends the actor, then calls done; waiters are called before. */
void vdi_compactor_close(struct vdi_compactor *compactor, void (*done)(void *arg), void *arg);
/* After done: drops what is left and calls the waiters. */
void vdi_compactor_fini(struct vdi_compactor *compactor);

#endif
