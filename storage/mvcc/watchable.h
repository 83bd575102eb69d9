/* Watches: cursors into the history that wait, without a position, when they have seen everything.
 *
 * How etcd's words map (server/storage/mvcc/watchable_store.go, E-325..E-344):
 *
 * 	synced     PARKED: waiting in the index; a write finds it by key and wakes it once. It has no position ("at head by definition"), so
 * 	           compaction below it does not disturb it.
 * 	unsynced   RUNNING: its owner calls next, which walks the history on the caller's thread in bounded steps. No sync loop, no 100 ms,
 * 	           and nobody else notices (E-1001..E-1003).
 * 	victim     RUNNING too: an owner that does not call next keeps a position and costs nothing else; when compaction passes the position
 * 	           the watch ends with VD_EXPIRED, never with a gap.
 *
 * 	           +---------- a matching write, or progress was asked for ----------+
 * 	           v                                                                 |
 * 	open -> RUNNING --next: nothing left up to the published revision--> PARKED -+
 * 	           |                                                          |
 * 	           +-----> ENDED (expired, closed, no memory) <---------------+
 *
 * The writer publishes a state, then calls vdi_watchable_notify. A watch parks under the lock only if it has
 * seen every revision up to notified_revision; if a newer one is published but not yet notified, the writer
 * will find it in the index. So no event is missed, and none is seen twice, because a parked watch remembers
 * the first revision it has not seen.
 */
#ifndef VDI_WATCHABLE_H
#define VDI_WATCHABLE_H

#include "mvcc_log.h"
#include "watcher_group.h"

struct vdi_mvcc;

/* Events looked at by one call of next before it yields. */
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
	bool			  armed; /* next answered VD_AGAIN: ready() is owed */
	bool			  progress_wanted;
	bool			  is_active; /* events were delivered since the last progress tick */
	vd_status		  end;	     /* VD_OK while it lives */
	struct vdi_watcher_group *group;     /* NULL when the store has ended */
	LIST_ENTRY(vdi_watch) parked_node;
	LIST_ENTRY(vdi_watch) all_node;
	LIST_ENTRY(vdi_watch) waiting_node; /* progress is wanted before start_revision is reached */
	bool is_waiting;

	/* The first revision not seen, and the index of its first event if known (else UINT64_MAX). Its
	 * caller's; under the lock while parked. */
	vd_rev	 position;
	uint64_t position_index;

	/* Its caller only. */
	struct vdi_mvcc_log_cursor  cursor; /* stands at position, or nowhere */
	struct vd_store_event	   *events;
	size_t			    event_count;
	size_t			    event_capacity;
	struct vdi_mvcc_log_chunk **chunks; /* hold the lent events */
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
/* After close, when no call is under way: the watches still open belong to no group any more. */
void vdi_watchable_fini(struct vdi_watchable *watchable);

/* Writer only: wakes who waits for one of the events, which have just been published; first_index is the
 * first one's in the log. */
void vdi_watchable_notify(struct vdi_watchable *watchable, const struct vd_store_event *events, size_t count,
			  uint64_t first_index, vd_rev revision);
/* Writer only: one progress tick (E-350): every watch with periodic progress that was idle since the last one
 * gets a progress batch. */
void vdi_watchable_tick(struct vdi_watchable *watchable);
/* Ends every watch with VD_CLOSED and takes no new ones. */
void vdi_watchable_close(struct vdi_watchable *watchable);
bool vdi_watchable_wants_ticks(struct vdi_watchable *watchable);
void vdi_watchable_counts(struct vdi_watchable *watchable, size_t *ret_watchers, size_t *ret_parked);

/* The functions of struct vd_store_ops. */
vd_status vdi_watchable_open(struct vd_store *store, const struct vd_store_watch_request *request,
			     struct vd_store_watch **ret_watch, struct vd_error *reterr);
vd_status vdi_watchable_next(struct vd_store_watch *watch, size_t event_count_max,
			     struct vd_store_batch *ret_batch, struct vd_error *reterr);
vd_status vdi_watchable_progress(struct vd_store_watch *watch);
void	  vdi_watchable_close_watch(struct vd_store_watch *watch);

#endif
