/* The history: every change since the compacted revision, once, in revision order.
 *
 * Watchers and reads of old revisions are cursors into it. Events lie in chunks; a chunk is immutable up to
 * its count, reference counted, and lives as long as a cursor stands in it, whatever compaction does. All
 * events of one revision lie in one chunk.
 *
 *   chunks   [ 2..40 ][ 41..90 ][ 91..     ]   <- the writer appends here
 *   marks         ^state@33     ^state@88      a visible state now and then: starting points for reads of old revisions
 *
 * The writer alone calls prepare, abort, commit, compact and overdue. Cursors are used on any thread; each
 * belongs to one caller. The lock is taken for a binary search of the directory, once per chunk that a cursor
 * passes.
 */
#ifndef VDI_MVCC_LOG_H
#define VDI_MVCC_LOG_H

#include "lock.h"
#include "mvcc_state.h"

#define VDI_MVCC_LOG_CHUNK_EVENTS 1024
/* States are kept about this many events apart, or further in large stores, where each costs more (see
 * mvcc_log.c). */
#define VDI_MVCC_LOG_MARK_SPACING 1024

struct vdi_mvcc_log_chunk {
	_Atomic uint32_t references;
	_Atomic uint32_t count; /* grows under the log's lock; readers need none */
	uint32_t	 capacity;
	uint64_t	 first_index; /* of events[0] in the history of this process */
	vd_rev		 first_revision;
	/* so many bytes the keys of all events have in common, those behind count included */
	_Atomic uint32_t prefix_size;

	/* Writer only. */
	uint32_t		   pending; /* events written behind count, not yet visible */
	int64_t			   size_bytes;
	int64_t			   pending_bytes;
	vd_mono			   opened;
	vd_mono			   newest;
	struct vdi_mvcc_log_chunk *next; /* in a list of chunks to reclaim */

	struct vd_store_event events[];
};

struct vdi_mvcc_log {
	struct vdi_lock lock; /* "snapshot" in the list of locks */

	/* Under the lock; the writer may read without it. */
	struct vdi_mvcc_log_chunk **chunks; /* chunk_first .. chunk_first + chunk_count */
	size_t			    chunk_first;
	size_t			    chunk_count;
	size_t			    chunk_capacity;
	struct vdi_mvcc_state	  **marks; /* ascending */
	size_t			    mark_count;
	size_t			    mark_capacity;
	vd_rev			    floor; /* all events of this and later revisions are here */

	/* Writer only. */
	uint64_t		    end_index;
	int64_t			    size_bytes; /* what only the history keeps alive */
	int64_t			    chunk_bytes_max;
	vd_dur			    chunk_age_max; /* 0: none */
	bool			    sealed;	   /* the last chunk takes no more */
	struct vdi_mvcc_log_chunk **pending_chunks;
	size_t			    pending_chunk_count;
	size_t			    pending_chunk_capacity;
	bool			    mark_pending;
};

/* history_bytes and history_window only set the size of a chunk, the step in which history is dropped. */
void vdi_mvcc_log_init(struct vdi_mvcc_log *log, int64_t history_bytes, vd_dur history_window);
void vdi_mvcc_log_fini(struct vdi_mvcc_log *log);

/* Where in ascending events those of that and later revisions begin. */
size_t vdi_mvcc_log_find(const struct vd_store_event *events, size_t count, vd_rev revision);
/* Makes room for the events (whole revisions, ascending, newer than all before) and writes them where nobody
 * looks yet. After VD_OK either commit, which cannot fail, or abort. VD_NOMEM: as before. */
VDI_MUST_USE vd_status vdi_mvcc_log_prepare(struct vdi_mvcc_log *log, const struct vd_store_event *events,
					    size_t count, uint64_t key_count, vd_mono now);
void		       vdi_mvcc_log_abort(struct vdi_mvcc_log *log);
/* Takes over the references that the prepared events hold, makes them visible to cursors; keeps a reference
 * of state now and then. */
void vdi_mvcc_log_commit(struct vdi_mvcc_log *log, struct vdi_mvcc_state *state);

/* The revision up to which history exceeds its window or bytes (0: no bound each); 0 when it does not.
 * ret_due: when to ask again. Bytes leave the open chunk and the one before: a watch that is about to take
 * the newest events finds them whole, with their previous records, and a cache over the store keeps its
 * watch. */
vd_rev vdi_mvcc_log_overdue(const struct vdi_mvcc_log *log, vd_mono now, vd_dur window, int64_t bytes_max,
			    vd_rev current, vd_mono *ret_due);
/* Takes out every chunk and mark that holds only revisions < compacted; the caller drops the references, in
 * its own time. */
struct vdi_mvcc_log_chunk *vdi_mvcc_log_compact(struct vdi_mvcc_log *log, vd_rev compacted);

/* The mark nearest to index: a reference, or NULL when there is none. */
struct vdi_mvcc_state *vdi_mvcc_log_mark_near(struct vdi_mvcc_log *log, uint64_t index);

struct vdi_mvcc_log_chunk *vdi_mvcc_log_chunk_ref(struct vdi_mvcc_log_chunk *chunk);
/* The last one drops the references of its events. NULL is fine; returns NULL. */
struct vdi_mvcc_log_chunk *vdi_mvcc_log_chunk_unref(struct vdi_mvcc_log_chunk *chunk);

/* ---- Cursors: zeroed memory stands nowhere ---- */

struct vdi_mvcc_log_cursor {
	struct vdi_mvcc_log_chunk *chunk; /* one reference */
	uint32_t		   position;
};

/* To the first event of a revision >= revision. VD_OK; VD_AGAIN: there is none yet (the cursor stands
 * nowhere); VD_EXPIRED: dropped. */
VDI_MUST_USE vd_status vdi_mvcc_log_seek(struct vdi_mvcc_log *log, vd_rev revision,
					 struct vdi_mvcc_log_cursor *cursor);
/* To the event of that index, which exists or did. VD_OK, VD_EXPIRED. */
VDI_MUST_USE vd_status vdi_mvcc_log_seek_index(struct vdi_mvcc_log *log, uint64_t index,
					       struct vdi_mvcc_log_cursor *cursor);
/* The run of events from the cursor to the end of its chunk, at least one; lent while a reference on
 * cursor->chunk is held. Crosses into the next chunk when this one is over. The caller moves
 * cursor->position. VD_AGAIN: nothing yet; VD_EXPIRED: dropped in between. */
VDI_MUST_USE vd_status vdi_mvcc_log_run(struct vdi_mvcc_log *log, struct vdi_mvcc_log_cursor *cursor,
					const struct vd_store_event **ret_events, uint32_t *ret_count);
/* What the keys of all events of the run that vdi_mvcc_log_run gave begin with. Lent as they are. */
struct vd_bytes vdi_mvcc_log_run_prefix(const struct vdi_mvcc_log_cursor *cursor);
/* Index of the event the cursor stands on. */
static inline uint64_t vdi_mvcc_log_cursor_index(const struct vdi_mvcc_log_cursor *cursor)
{
	return cursor->chunk->first_index + cursor->position;
}
void vdi_mvcc_log_cursor_fini(struct vdi_mvcc_log_cursor *cursor);

#endif
