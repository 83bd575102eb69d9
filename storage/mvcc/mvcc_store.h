/* The embedded MVCC store as its own files see it: who owns what.
 *
 * 	callers' threads  read published states, copy requests into submissions, walk the history for their watches
 * 	writer (blocking) the one that changes anything: executes submissions in groups, makes them durable, publishes (mvcc_writer.c)
 * 	compactor (pool)  drops the references of compacted history, a few chunks at a time (compact.c)
 *
 * Locks, in their order; each is held for a pointer's worth of work: watchable (index of waiting watches),
 * snapshot (published state; directory of the history: two locks of that name, never together), queue
 * (submissions).
 */
#ifndef VDI_MVCC_STORE_H
#define VDI_MVCC_STORE_H

#include "compact.h"
#include "mvcc_metrics.h"
#include "mvcc_writer.h"
#include "persist.h"
#include "usage.h"
#include "watchable.h"

struct vdi_mvcc {
	struct vd_store store; /* first */

	/* Fixed at creation. */
	const struct vd_env   *env;
	struct vd_mvcc_options options; /* data_dir is not kept */
	struct vdi_persist    *persist; /* NULL: memory only. Writer only, after open */

	/* Any thread. */
	_Atomic uint32_t references; /* this block: 1 for the store until it has ended, 1 for each watch */
	_Atomic uint32_t
		users; /* calls under way, and 1 until the writer has ended; at 0 the store's memory goes */
	atomic_bool	 is_closing;
	struct vdi_usage usage;	     /* where it was opened by vd_store_open_mvcc */
	_Atomic int64_t	 published;  /* revision of state; never ahead of it */
	_Atomic int64_t	 compacted;  /* of state */
	_Atomic int64_t	 size_bytes; /* status */

	struct vdi_lock	       state_lock; /* "snapshot" */
	struct vdi_mvcc_state *state;	   /* under state_lock */

	struct vdi_mvcc_log	log;
	struct vdi_watchable	watchable;
	struct vdi_writer	writer;
	struct vdi_compactor	compactor;
	struct vdi_mvcc_metrics metrics;

	/* Under writer.queue_lock until close begins. */
	void (*close_done)(void *arg);
	void *close_done_arg;
};

static inline struct vdi_mvcc *vdi_mvcc_of(struct vd_store *store)
{
	return (struct vdi_mvcc *) store;
}

extern const struct vd_store_ops vdi_mvcc_ops;
/* Whether the store is an embedded one. */
bool vdi_mvcc_is(const struct vd_store *store);

/* A call begins: false when the store is closing. What follows must end with vdi_mvcc_leave. */
bool vdi_mvcc_enter(struct vdi_mvcc *mvcc);
void vdi_mvcc_leave(struct vdi_mvcc *mvcc);
/* A reference to the newest visible state. Between enter and leave, or the writer. */
struct vdi_mvcc_state *vdi_mvcc_state_get(struct vdi_mvcc *mvcc);
/* Writer only: makes state (takes over the reference) visible to everyone. */
void vdi_mvcc_publish(struct vdi_mvcc *mvcc, struct vdi_mvcc_state *state);
/* The writer's actor is gone: goes on with closing. */
void vdi_mvcc_writer_ended(void *mvcc);
void vdi_mvcc_ref(struct vdi_mvcc *mvcc);
void vdi_mvcc_unref(struct vdi_mvcc *mvcc);

#endif
