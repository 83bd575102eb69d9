/* Compactor: frees history chunks that compaction removed. They are no longer reachable, except through
 * cursors that are already in them.
 *
 * The writer takes chunks out of the log in O(chunks) and hands them over. An actor of the pool drops their
 * references, a few per run, so that a compaction of millions of records delays neither the writer nor the
 * pool. Compactions with physical set are answered when the compactor has finished.
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
	struct vdi_compact_waiter  *waiters; /* newest first; called when the list becomes empty */
};

/* compactor is zeroed memory. */
VDI_MUST_USE vd_status vdi_compactor_init(struct vdi_compactor *compactor, const struct vd_env *env);
/* Takes over the list of chunks (may be empty). Calls waiter (may be NULL) when these and all earlier chunks
 * are freed, from the actor's thread; or before returning if there is nothing to do. */
void vdi_compactor_add(struct vdi_compactor *compactor, struct vdi_mvcc_log_chunk *chunks,
		       struct vdi_compact_waiter *waiter);
/* Ends the actor, then calls done; waiters are called before it. */
void vdi_compactor_close(struct vdi_compactor *compactor, void (*done)(void *arg), void *arg);
/* Call after done. Frees remaining chunks and calls the waiters. */
void vdi_compactor_fini(struct vdi_compactor *compactor);

#endif
