/* The history: every change since the compacted revision, once, in revision order.
 *
 * Watches and reads of old revisions are cursors into it. Events are stored in chunks. A chunk is immutable
 * up to its count, reference counted, and stays alive while a cursor is in it, whatever compaction removes.
 * All events of one revision are in one chunk.
 *
 *   chunks   [ 2..40 ][ 41..90 ][ 91..     ]   <- the writer appends here
 *   marks         ^state@33     ^state@88      occasional published states, from which reads of old
 *                                              revisions start
 *
 * The writer alone calls prepare, abort, commit, compact and overdue. A cursor may be used on any thread, by
 * one caller at a time. The lock is held for a binary search of the directory, once per chunk that a cursor
 * enters.
 */
#ifndef VDI_MVCC_LOG_H
#define VDI_MVCC_LOG_H

#include "lock.h"
#include "mvcc_state.h"

#define VDI_MVCC_LOG_CHUNK_EVENTS 1024
/* Distance of marks in events; larger in large stores, where a mark costs more (see mvcc_log.c). */
#define VDI_MVCC_LOG_MARK_SPACING 1024

struct vdi_mvcc_log_chunk {
	_Atomic uint32_t references;
	_Atomic uint32_t count; /* increased under the log's lock; read without it */
	uint32_t	 capacity;
	uint64_t	 first_index; /* of events[0] in the history of this process */
	vd_rev		 first_revision;
	/* length of the common prefix of the keys of all events, including those not yet counted */
	_Atomic uint32_t prefix_size;

	/* events written after count, not yet visible */
	uint32_t		   pending; /* events written behind count, not yet visible */
	int64_t			   size_bytes;
	int64_t			   pending_bytes;
	vd_mono			   opened;
	vd_mono			   newest;
	struct vdi_mvcc_log_chunk *next; /* in a list of chunks to free */

	struct vd_store_event events[];
};

struct vdi_mvcc_log {
	struct vdi_lock lock; /* "snapshot" in the list of locks */

	/* Under the lock; the writer may read them without it. */
	struct vdi_mvcc_log_chunk **chunks; /* chunk_first .. chunk_first + chunk_count */
	size_t			    chunk_first;
	size_t			    chunk_count;
	size_t			    chunk_capacity;
	struct vdi_mvcc_state	  **marks; /* ascending */
	size_t			    mark_count;
	size_t			    mark_capacity;
	vd_rev			    floor; /* all events of this and later revisions are retained */

	/* Writer only. */
	uint64_t		    end_index;
	int64_t			    size_bytes; /* memory that only the history keeps alive */
	int64_t			    chunk_bytes_max;
	vd_dur			    chunk_age_max; /* 0: none */
	bool			    sealed;	   /* the last chunk accepts no more events */
	struct vdi_mvcc_log_chunk **pending_chunks;
	size_t			    pending_chunk_count;
	size_t			    pending_chunk_capacity;
	bool			    mark_pending;
};

/* history_bytes and history_window only determine the size of a chunk, the unit in which history is
 * dropped. */
void vdi_mvcc_log_init(struct vdi_mvcc_log *log, int64_t history_bytes, vd_dur history_window);
void vdi_mvcc_log_fini(struct vdi_mvcc_log *log);

/* Returns the index of the first event of that or a later revision in ascending events. */
size_t vdi_mvcc_log_find(const struct vd_store_event *events, size_t count, vd_rev revision);
/* Makes room for the events (whole revisions, ascending, newer than all before) and writes them where readers
 * do not look yet. After VD_OK call commit, which cannot fail, or abort. VD_NOMEM: nothing changed. */
VDI_MUST_USE vd_status vdi_mvcc_log_prepare(struct vdi_mvcc_log *log, const struct vd_store_event *events,
					    size_t count, uint64_t key_count, vd_mono now);
void		       vdi_mvcc_log_abort(struct vdi_mvcc_log *log);
/* Makes the prepared events visible; takes over their references. Keeps a reference to state at times, as a
 * mark. */
void vdi_mvcc_log_commit(struct vdi_mvcc_log *log, struct vdi_mvcc_state *state);

/* Returns the revision up to which history exceeds its window or its bytes (0: no limit, for each); 0: within
 * the limits. ret_due: when to call again. The bytes limit spares the open chunk and the one before, so that
 * a watch about to read the newest events finds them with their previous records, and a cache over the store
 * keeps its watch. */
vd_rev vdi_mvcc_log_overdue(const struct vdi_mvcc_log *log, vd_mono now, vd_dur window, int64_t bytes_max,
			    vd_rev current, vd_mono *ret_due);
/* Removes every chunk and mark that has only revisions < compacted. The caller drops the returned references
 * later. */
struct vdi_mvcc_log_chunk *vdi_mvcc_log_compact(struct vdi_mvcc_log *log, vd_rev compacted);

/* Returns a reference to the mark nearest to index; NULL: no marks. */
struct vdi_mvcc_state *vdi_mvcc_log_mark_near(struct vdi_mvcc_log *log, uint64_t index);

struct vdi_mvcc_log_chunk *vdi_mvcc_log_chunk_ref(struct vdi_mvcc_log_chunk *chunk);
/* The last reference drops those to the events. NULL is fine; returns NULL. */
struct vdi_mvcc_log_chunk *vdi_mvcc_log_chunk_unref(struct vdi_mvcc_log_chunk *chunk);

/* ---- Cursors: zeroed memory stands nowhere ---- */

struct vdi_mvcc_log_cursor {
	struct vdi_mvcc_log_chunk *chunk; /* one reference */
	uint32_t		   position;
};

/* Moves the cursor to the first event of a revision >= revision. VD_OK; VD_AGAIN: none yet (the cursor is
 * unset); VD_EXPIRED: dropped. */
VDI_MUST_USE vd_status vdi_mvcc_log_seek(struct vdi_mvcc_log *log, vd_rev revision,
					 struct vdi_mvcc_log_cursor *cursor);
/* Moves the cursor to the event with that index, which exists or existed. VD_OK, VD_EXPIRED. */
VDI_MUST_USE vd_status vdi_mvcc_log_seek_index(struct vdi_mvcc_log *log, uint64_t index,
					       struct vdi_mvcc_log_cursor *cursor);
/* Returns the events from the cursor to the end of its chunk, at least one, borrowed while a reference to
 * cursor->chunk is held. Moves to the next chunk if this one is read to its end. The caller advances
 * cursor->position. VD_AGAIN: no event yet; VD_EXPIRED: dropped meanwhile. */
VDI_MUST_USE vd_status vdi_mvcc_log_run(struct vdi_mvcc_log *log, struct vdi_mvcc_log_cursor *cursor,
					const struct vd_store_event **ret_events, uint32_t *ret_count);
/* Returns a common prefix of the keys of all events of the last vdi_mvcc_log_run, borrowed like them. */
struct vd_bytes vdi_mvcc_log_run_prefix(const struct vdi_mvcc_log_cursor *cursor);
/* Returns the index of the cursor's event. */
static inline uint64_t vdi_mvcc_log_cursor_index(const struct vdi_mvcc_log_cursor *cursor)
{
	return cursor->chunk->first_index + cursor->position;
}
void vdi_mvcc_log_cursor_fini(struct vdi_mvcc_log_cursor *cursor);

#endif
