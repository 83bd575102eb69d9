/* The files of a local history: every change under a prefix of a remote store, in revision order, so that
 * watches from the past can be served after a restart.
 *
 * The files are a sequence of segments (journal_segment.h: a header, then chained and checksummed records).
 * The oldest segments are removed when all together exceed `bytes_max` or are older than `window`. A header's
 * store id consists of the remote store's identity and a hash of the prefix; its revision is the segment's
 * floor: the segment has every change after it. Records:
 *
 * - commit: one revision. i64 wall time in ns, then for each event, in order: i64 mod revision, u32 role (0:
 *   event, 1: the record replaced by the event before), u32 size, and a commit (record.h) of one change.
 * - mark: no change up to the record's revision.
 *
 * The record that an event replaced is copied only if it is older than the segment; otherwise it is an
 * earlier event of the segment. So each segment can be read alone.
 *
 * All of this is also in the remote store. So nothing waits for the disk, a record that cannot be read (a
 * torn tail or bit rot) ends its file, and the caller compares the loaded changes with the store before using
 * them.
 *
 * One user at a time; every call may block.
 */
#ifndef VDI_HISTORY_FILES_H
#define VDI_HISTORY_FILES_H

#include "disk.h"
#include "loaded_history.h"

#define VDI_HISTORY_SEGMENT_MAX ((int64_t) 16 << 20)
#define VDI_HISTORY_SEGMENT_MIN ((int64_t) 16 << 10)
/* Number of segments into which bytes_max is divided; history is removed a segment at a time. */
#define VDI_HISTORY_SEGMENTS 8

struct vdi_history_files;

struct vdi_history_files_options {
	struct vdi_dir *dir; /* borrowed; must outlive the files */
	uint64_t	store_id;
	struct vd_bytes prefix;
	uint64_t	seed;	   /* of nonces */
	int64_t		bytes_max; /* 0: no limit */
	vd_dur		window;	   /* 0: no limit */
};

/* Reads the files into loaded (new; its latest records serve as witnesses); changes nothing on disk.
 * *ret_lost describes unusable content; code VD_OK: none. VD_INVALID: the directory contains something else.
 * VD_NOMEM, VD_IO. */
VDI_MUST_USE vd_status vdi_history_files_open(const struct vdi_history_files_options *options, vd_wall now,
					      struct vdi_loaded_history *loaded,
					      struct vdi_history_files **ret_files, struct vd_error *ret_lost,
					      struct vd_error *reterr);
/* Closes without flush or sync. NULL is fine; returns NULL. */
struct vdi_history_files *vdi_history_files_close(struct vdi_history_files *files);

/* Removes unusable files. Call before any other write. VD_IO. */
VDI_MUST_USE vd_status vdi_history_files_tidy(struct vdi_history_files *files, struct vd_error *reterr);
/* Removes all files; the history then begins at floor. If a file cannot be removed, it contradicts the new
 * ones, and the next open detects that. */
void vdi_history_files_restart(struct vdi_history_files *files, vd_rev floor);

/* Ensures that there is a file to write to. VD_NO_SPACE (try again later), VD_IO (restart), VD_NOMEM. */
VDI_MUST_USE vd_status vdi_history_files_prepare(struct vdi_history_files *files, vd_wall now,
						 struct vd_error *reterr);
/* Encodes a whole revision into the buffer; call after prepare. VD_INVALID: an event cannot be replayed (no
 * record that it replaced, or inconsistent revisions). VD_NOMEM. On an error nothing is taken. */
VDI_MUST_USE vd_status vdi_history_files_append(struct vdi_history_files    *files,
						const struct vd_store_event *events, size_t count,
						vd_wall now);
/* Encodes a mark: no change up to revision. Call after prepare. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_history_files_mark(struct vdi_history_files *files, vd_rev revision);
/* Writes the buffer. VD_NO_SPACE: it is kept; flush again later. VD_IO: restart. */
VDI_MUST_USE vd_status vdi_history_files_flush(struct vdi_history_files *files, struct vd_error *reterr);
/* Syncs written records. VD_IO: restart. */
VDI_MUST_USE vd_status vdi_history_files_sync(struct vdi_history_files *files, struct vd_error *reterr);
/* Removes segments beyond bytes_max and window. */
VDI_MUST_USE vd_status vdi_history_files_evict(struct vdi_history_files *files, vd_wall now,
					       struct vd_error *reterr);

/* All changes after floor, up to until, can be replayed, including those still in the buffer. */
vd_rev	vdi_history_files_floor(const struct vdi_history_files *files);
vd_rev	vdi_history_files_until(const struct vdi_history_files *files);
int64_t vdi_history_files_bytes(const struct vdi_history_files *files);
/* Wall time of the oldest retained record; 0: none. */
vd_wall vdi_history_files_oldest(const struct vdi_history_files *files);
/* Returns true if flush and prepare must be called before the next append. */
bool vdi_history_files_is_full(const struct vdi_history_files *files);
bool vdi_history_files_is_dirty(const struct vdi_history_files *files); /* written but not synced */

#endif
