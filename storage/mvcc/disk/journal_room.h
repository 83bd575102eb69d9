/* Room for the journal's next file, reserved in advance, so that a full disk is detected before a commit is
 * written.
 *
 *   journal-spare.tmp   room for the next file: a new file, created when an append does not fit into the
 *                       current one, or an old file to be reused. Removed at a start.
 *   journal-reserve     room for the next file if the disk has none. Replaced by the first old file that is
 *                       released, or when the disk has room again. While it is missing, only commits that
 *                       free space are accepted.
 *
 * Both sizes follow the size of the store (vdi_journal_room_set_scale) unless the size of files is fixed.
 *
 * The writer of the journal and the thread that releases old files use it at the same time.
 */
#ifndef VDI_JOURNAL_ROOM_H
#define VDI_JOURNAL_ROOM_H

#include <stdatomic.h>

#include "disk.h"
#include "lock.h"

/* Size of a file: an eighth of the store within these bounds, a power of two. */
#define VDI_JOURNAL_SEGMENT_MIN ((int64_t) 1 << 20)
#define VDI_JOURNAL_SEGMENT_MAX ((int64_t) 64 << 20)
/* Size of the reserve: a 64th of the store within these bounds. */
#define VDI_JOURNAL_RESERVE_MIN ((int64_t) 1 << 20)
#define VDI_JOURNAL_RESERVE_MAX ((int64_t) 16 << 20)

struct vdi_journal_room {
	/* Fixed. */
	struct vdi_dir *dir;
	int64_t		fixed_size; /* size of files and of the reserve; 0: follows the store's size */

	struct vdi_lock lock; /* "journal"; held while files are made */

	/* Under lock. */
	int64_t spare_size; /* 0: there is none */

	/* Written under lock; read by any thread. */
	_Atomic int64_t segment_size; /* desired size of the next file */
	_Atomic int64_t reserve_wanted;
	_Atomic int64_t reserve_size; /* 0: there is none */
};

void vdi_journal_room_init(struct vdi_journal_room *room, struct vdi_dir *dir, int64_t fixed_size);
void vdi_journal_room_fini(struct vdi_journal_room *room);

/* Removes the spare file of an earlier process, and adopts or makes the reserve. A disk without room for a
 * reserve is no error. VD_IO, VD_NOMEM. Blocks. */
VDI_MUST_USE vd_status vdi_journal_room_start(struct vdi_journal_room *room, struct vd_error *reterr);
/* Sets the sizes for a store of store_bytes. */
void vdi_journal_room_set_scale(struct vdi_journal_room *room, int64_t store_bytes);

/* The space that a commit may use. */
enum vdi_journal_use {
	VDI_JOURNAL_NO_RESERVE, /* refused without a reserve, and does not touch it */
	/* refused without a reserve, but may use it for the next file, because old files are being released
	 * and the first one becomes the new reserve */
	VDI_JOURNAL_BORROWS,
	VDI_JOURNAL_FREES, /* may use all space: deletes, compactions, ends of leases */
};

/* Ensures that there is room for a file of size_min bytes or, if possible, of the desired size. *ret_made is
 * VDI_SEGMENT_SPARE, or VDI_SEGMENT_RESERVE if the disk is full. VD_NO_SPACE, VD_IO, VD_NOMEM. Blocks. */
VDI_MUST_USE vd_status vdi_journal_room_prepare(struct vdi_journal_room *room, int64_t size_min,
						enum vdi_journal_use use, const char **ret_made,
						struct vd_error *reterr);
/* Ensures that there is a reserve. Cheap if there is one. Errors as above. */
VDI_MUST_USE vd_status vdi_journal_room_fill_reserve(struct vdi_journal_room *room, struct vd_error *reterr);
/* Begins the use of a prepared file, which must exist: returns its size and holds the lock until
 * vdi_journal_room_taken. */
int64_t vdi_journal_room_take(struct vdi_journal_room *room, const char *made);
void	vdi_journal_room_taken(struct vdi_journal_room *room, const char *made);
/* Removes the spare file. Returns false if there was none. */
bool vdi_journal_room_drop_spare(struct vdi_journal_room *room);
/* Makes an old file the reserve or the spare file, or removes it. A failure is harmless. Blocks. */
void vdi_journal_room_release(struct vdi_journal_room *room, const char *name);

#endif
