/* The embedded MVCC store as its own files see it: threads, locks and ownership.
 *
 * - callers' threads: read published states, copy requests into submissions, walk the history for their
 *   watches
 * - writer (blocking actor): the only one that changes the store; executes submissions in groups, makes them
 *   durable, publishes (mvcc_writer.c)
 * - compactor (actor of the pool): drops the references of compacted history, a few chunks at a time
 *   (compact.c)
 *
 * Locks, in the order in which they may be taken; each is held only to read or change a few pointers:
 * watchable (index of parked watches), snapshot (published state; directory of the history: two locks of that
 * name, never held together), queue (submissions).
 */
#ifndef VDI_MVCC_STORE_H
#define VDI_MVCC_STORE_H

#include "backend.h"
#include "compact.h"
#include "mvcc_metrics.h"
#include "mvcc_writer.h"
#include "usage.h"
#include "watchable.h"

struct vdi_mvcc {
	struct vd_store store; /* first */

	/* Fixed at creation. */
	const struct vd_env   *env;
	struct vd_mvcc_options options; /* data_dir is not kept: NULL */
	struct vdi_backend    *backend; /* NULL: memory only. Writer only, after the open */

	/* Any thread. */
	_Atomic uint32_t references; /* of this block: 1 for the store until it has ended, 1 for each watch */
	/* Calls in progress, and 1 until the writer has ended; at 0 the store's memory is freed. */
	_Atomic uint32_t users;
	atomic_bool	 is_closing;
	struct vdi_usage usage;	     /* misuse detection: opened by vd_store_open_mvcc */
	_Atomic int64_t	 published;  /* revision of state; never ahead of it */
	_Atomic int64_t	 compacted;  /* compacted revision of state */
	_Atomic int64_t	 size_bytes; /* database size for status */

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
/* Returns true if the store is an embedded one. */
bool vdi_mvcc_is(const struct vd_store *store);

/* Begins a call; false: the store is closing. After true the caller must call vdi_mvcc_leave. */
bool vdi_mvcc_enter(struct vdi_mvcc *mvcc);
void vdi_mvcc_leave(struct vdi_mvcc *mvcc);
/* Returns a reference to the newest published state. Call between enter and leave, or from the writer. */
struct vdi_mvcc_state *vdi_mvcc_state_get(struct vdi_mvcc *mvcc);
/* Publishes state; takes over the reference. Writer only. */
void vdi_mvcc_publish(struct vdi_mvcc *mvcc, struct vdi_mvcc_state *state);
/* Continues closing after the writer's actor has ended. */
void vdi_mvcc_writer_ended(void *mvcc);
void vdi_mvcc_ref(struct vdi_mvcc *mvcc);
void vdi_mvcc_unref(struct vdi_mvcc *mvcc);

#endif
