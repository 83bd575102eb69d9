/* The files of a local history: every change under a prefix of a store elsewhere, in revision order, so that
 * the past can be told after a restart.
 *
 * A row of segments (journal_segment.h: header, chained and checksummed records), the oldest of which go when
 * the row is larger than `bytes_max` or older than `window`. The header's store id is the identity of the
 * store and a hash of the prefix; its revision is where the segment begins: it has every change after that
 * one. Records:
 *
 *   commit  one revision:   i64 wall time in ns, then for each event, in order
 *                           i64 mod revision, u32 role (0 event, 1 the record that the event before replaced), u32 size, a commit (record.h) of one change
 *   mark    nothing happened up to the record's revision
 *
 * What an event replaced is written only if it is older than the segment: else it is an event of it, so each
 * segment can be read alone.
 *
 * Nothing here is the only copy of anything. So nothing waits for the disk, a record that cannot be read ends
 * what its file has to say (a torn tail and bit rot alike), and the caller compares what was read with the
 * store before believing it.
 *
 * One user at a time; everything may block.
 */
#ifndef VDI_HISTORY_FILES_H
#define VDI_HISTORY_FILES_H

#include "disk.h"
#include "past.h"

#define VDI_HISTORY_SEGMENT_MAX ((int64_t) 16 << 20)
#define VDI_HISTORY_SEGMENT_MIN ((int64_t) 16 << 10)
/* Parts that the budget is divided into: the step in which history goes. */
#define VDI_HISTORY_SEGMENTS 8

struct vdi_history_files;

struct vdi_history_files_options {
	struct vdi_dir *dir; /* lent: outlives the files */
	uint64_t	store_id;
	struct vd_bytes prefix;
	uint64_t	seed;	   /* of nonces */
	int64_t		bytes_max; /* 0: no bound */
	vd_dur		window;	   /* 0: no bound */
};

/* Reads what is there into past (new; its latest records serve as witnesses), and changes nothing on disk.
 * *ret_lost says what could not be used, code VD_OK: nothing. VD_INVALID: the directory holds something else.
 * VD_NOMEM, VD_IO. */
VDI_MUST_USE vd_status vdi_history_files_open(const struct vdi_history_files_options *options, vd_wall now,
					      struct vdi_past *past, struct vdi_history_files **ret_files,
					      struct vd_error *ret_lost, struct vd_error *reterr);
/* Closes without a word to the disk. NULL is fine; returns NULL. */
struct vdi_history_files *vdi_history_files_close(struct vdi_history_files *files);

/* Before anything else is written: what was read and is of no use goes. VD_IO. */
VDI_MUST_USE vd_status vdi_history_files_tidy(struct vdi_history_files *files, struct vd_error *reterr);
/* Everything goes, and the history begins at floor. What cannot be removed contradicts what will be written,
 * and the next open sees that. */
void vdi_history_files_restart(struct vdi_history_files *files, vd_rev floor);

/* Makes sure that there is a file to write to. VD_NO_SPACE (try again later), VD_IO (restart), VD_NOMEM. */
VDI_MUST_USE vd_status vdi_history_files_prepare(struct vdi_history_files *files, vd_wall now,
						 struct vd_error *reterr);
/* After prepare: encodes one whole revision into memory. VD_INVALID: an event is not one that can be told
 * again (no record that it replaced, numbers that make no sense). VD_NOMEM. Nothing was taken then. */
VDI_MUST_USE vd_status vdi_history_files_append(struct vdi_history_files    *files,
						const struct vd_store_event *events, size_t count,
						vd_wall now);
/* After prepare: nothing happened up to revision. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_history_files_mark(struct vdi_history_files *files, vd_rev revision);
/* Writes what was encoded. VD_NO_SPACE: it is kept, flush again later. VD_IO: restart. */
VDI_MUST_USE vd_status vdi_history_files_flush(struct vdi_history_files *files, struct vd_error *reterr);
/* VD_IO: restart. */
VDI_MUST_USE vd_status vdi_history_files_sync(struct vdi_history_files *files, struct vd_error *reterr);
/* Removes what is beyond bytes and window. */
VDI_MUST_USE vd_status vdi_history_files_evict(struct vdi_history_files *files, vd_wall now,
					       struct vd_error *reterr);

/* Every change after floor, up to until (what is only in memory included), can be told. */
vd_rev	vdi_history_files_floor(const struct vdi_history_files *files);
vd_rev	vdi_history_files_until(const struct vdi_history_files *files);
int64_t vdi_history_files_bytes(const struct vdi_history_files *files);
/* Of the oldest record that is kept; 0: none. */
vd_wall vdi_history_files_oldest(const struct vdi_history_files *files);
/* Flush and prepare before more is appended. */
bool vdi_history_files_is_full(const struct vdi_history_files *files);
bool vdi_history_files_is_dirty(const struct vdi_history_files *files); /* written and not synced */

#endif
