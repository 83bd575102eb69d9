/* Watches: cursors into the history. A watch that has seen everything parks, without a position.
 *
 * How etcd's terms map (server/storage/mvcc/watchable_store.go):
 *
 * - synced: PARKED. The watch waits in the index; a matching write finds it by key and wakes it once. It has
 *   no position, so compaction does not affect it.
 * - unsynced: RUNNING. Its owner calls next, which walks the history on the owner's thread in bounded steps.
 *   There is no syncing loop with its 100 ms waits, and neither the writer nor other watches are delayed.
 * - victim: RUNNING too. A watch whose owner does not call next keeps its position and costs nothing else.
 *   When compaction passes the position, the watch ends with VD_EXPIRED, never with a gap.
 *
 * 	           +------ a matching write, or a progress request ------+
 * 	           v                                                     |
 * 	open -> RUNNING --next: no event up to the published revision--> PARKED
 * 	           |                                                     |
 * 	           +-----> ENDED (expired, closed, no memory) <----------+
 *
 * The writer publishes a state and wakes the watches that match its events under one lock. A watch parks,
 * under the lock, only if it has seen every published revision. So no event is missed, and none is delivered
 * twice, because a parked watch remembers the first revision it has not seen. A reader that sees a revision
 * knows that the next call of next of each watch returns its events, because that call takes the lock.
 */
#ifndef VDI_WATCHABLE_H
#define VDI_WATCHABLE_H

#include "mvcc_log.h"
#include "watcher_group.h"

struct vdi_mvcc;
struct vdi_mvcc_state;

/* Maximum events examined by one call of next before it yields. */
#define VDI_WATCH_SCAN_MAX 8192

struct vdi_watch {
	struct vd_store_watch base;

	/* Fixed at creation. */
	vd_rev start_revision;
	void (*ready)(void *arg);
	void *ready_arg;
	bool  previous;
	bool  progress;

	/* Under the lock of watchable. */
	bool			  parked;
	bool			  armed; /* next returned VD_AGAIN: ready() must be called */
	bool			  progress_wanted;
	bool			  is_active; /* events were delivered since the last progress tick */
	vd_status		  end;	     /* VD_OK while the watch is open */
	struct vdi_watcher_group *group;     /* NULL: the store has ended */
	LIST_ENTRY(vdi_watch) parked_node;
	LIST_ENTRY(vdi_watch) all_node;
	LIST_ENTRY(vdi_watch) waiting_node; /* progress is requested before start_revision is reached */
	bool is_waiting;

	/* First revision not seen, and the index of its first event if known (else UINT64_MAX). Only its
	 * owner's thread; under the lock while parked. */
	vd_rev	 position;
	uint64_t position_index;

	/* Only its owner's thread. */
	struct vdi_mvcc_log_cursor  cursor; /* at position, or unset */
	struct vd_store_event	   *events;
	size_t			    event_count;
	size_t			    event_capacity;
	struct vdi_mvcc_log_chunk **chunks; /* keep the borrowed events alive */
	size_t			    chunk_count;
	size_t			    chunk_capacity;
};

struct vdi_watchable {
	struct vdi_lock lock; /* "watchable" in the list of locks */

	/* Under the lock. */
	struct vdi_watcher_index index;
	LIST_HEAD(vdi_watch_list, vdi_watch) all;
	LIST_HEAD(vdi_waiting_list, vdi_watch) waiting;
	vd_rev notified_revision;
	size_t watcher_count;
	size_t parked_count;
	size_t progress_count; /* watches with periodic progress */
	bool   is_closed;
};

/* The owner sets notified_revision before the first watch. */
void vdi_watchable_init(struct vdi_watchable *watchable);
/* Call after close, when no call is in progress: watches that are still open no longer belong to a group. */
void vdi_watchable_fini(struct vdi_watchable *watchable);

/* Publishes the state (vdi_mvcc_publish) and wakes the watches that match one of its last count events.
 * Writer only. */
void vdi_watchable_publish(struct vdi_mvcc *mvcc, struct vdi_mvcc_state *state,
			   const struct vd_store_event *events, size_t count);
/* Runs one progress tick: each watch with periodic progress that delivered no event since the last tick gets
 * a progress batch. Writer only. */
void vdi_watchable_tick(struct vdi_watchable *watchable);
/* Ends every watch with VD_CLOSED; rejects new ones. */
void vdi_watchable_close(struct vdi_watchable *watchable);
bool vdi_watchable_wants_ticks(struct vdi_watchable *watchable);
void vdi_watchable_counts(struct vdi_watchable *watchable, size_t *ret_watchers, size_t *ret_parked);

/* Implementations of the operations in struct vd_store_ops. */
vd_status vdi_watchable_open(struct vd_store *store, const struct vd_store_watch_request *request,
			     struct vd_store_watch **ret_watch, struct vd_error *reterr);
vd_status vdi_watchable_next(struct vd_store_watch *watch, size_t event_count_max,
			     struct vd_store_batch *ret_batch, struct vd_error *reterr);
vd_status vdi_watchable_progress(struct vd_store_watch *watch);
void	  vdi_watchable_close_watch(struct vd_store_watch *watch);

#endif
