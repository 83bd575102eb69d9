/* The lock is held over the work on the two files, which is rare: the writer prepares one when a file is
 * full, old files are released when the checkpoint has taken them over. An old file gets its new name, and
 * the directory is synced, before anything is written to it: after a crash no file has two names. */
#include "journal_room.h"

#include "journal_segment.h"

void vdi_journal_room_init(struct vdi_journal_room *room, struct vdi_dir *dir, int64_t fixed_size)
{
	memset(room, 0, sizeof *room);
	vdi_lock_init(&room->lock, VDI_LOCK_JOURNAL);
	room->dir = dir;
	room->fixed_size = fixed_size;
	atomic_store(&room->segment_size, fixed_size ? fixed_size : VDI_JOURNAL_SEGMENT_MIN);
	atomic_store(&room->reserve_wanted, fixed_size ? fixed_size : VDI_JOURNAL_RESERVE_MIN);
}

void vdi_journal_room_fini(struct vdi_journal_room *room)
{
	vdi_lock_fini(&room->lock);
}

void vdi_journal_room_set_scale(struct vdi_journal_room *room, int64_t store_bytes)
{
	int64_t size = VDI_JOURNAL_SEGMENT_MIN;

	if (room->fixed_size)
		return;
	while (size < store_bytes / 8 && size < VDI_JOURNAL_SEGMENT_MAX)
		size *= 2;
	atomic_store_explicit(&room->segment_size, size, memory_order_relaxed);
	atomic_store_explicit(
		&room->reserve_wanted,
		VDI_MAX(VDI_JOURNAL_RESERVE_MIN, VDI_MIN(store_bytes / 64, VDI_JOURNAL_RESERVE_MAX)),
		memory_order_relaxed);
}

static vd_status remove_file(struct vdi_journal_room *room, const char *name, struct vd_error *reterr)
{
	vd_status status = vdi_dir_unlink(room->dir, name, reterr);

	return status == VD_NOT_FOUND ? VD_OK : status;
}

/* Makes one attempt; on failure the file is removed. */
static vd_status make_file_of(struct vdi_journal_room *room, const char *name, int64_t size, bool is_synced,
			      struct vd_error *reterr)
{
	struct vdi_file *file;
	vd_status	 status;

	VDI_TRY(remove_file(room, name, reterr));
	VDI_TRY(vdi_file_open(room->dir, name, VDI_FILE_CREATE, &file, reterr));
	status = vdi_file_allocate(file, size, reterr);
	if (status == VD_OK && is_synced)
		status = vdi_file_sync(file, reterr);
	vdi_file_close(file);
	if (status == VD_OK && is_synced)
		status = vdi_dir_sync(room->dir, reterr);
	if (status != VD_OK)
		(void) !vdi_dir_unlink(room->dir, name, NULL);
	return status;
}

/* As large as possible between the two sizes. */
static vd_status make_file(struct vdi_journal_room *room, const char *name, int64_t size, int64_t size_min,
			   bool is_synced, int64_t *ret_size, struct vd_error *reterr)
{
	vd_status status;

	for (;; size = VDI_MAX(size / 4, size_min)) {
		status = make_file_of(room, name, size, is_synced, reterr);
		if (status != VD_NO_SPACE || size <= size_min)
			break;
	}
	if (status == VD_OK)
		*ret_size = size;
	return status;
}

static bool drop_spare_locked(struct vdi_journal_room *room)
{
	vdi_lock_assert_held(&room->lock);
	if (room->spare_size == 0)
		return false;
	room->spare_size = 0;
	(void) !vdi_dir_unlink(room->dir, VDI_SEGMENT_SPARE, NULL);
	return true;
}

bool vdi_journal_room_drop_spare(struct vdi_journal_room *room)
{
	bool was_there;

	vdi_lock_acquire(&room->lock);
	was_there = drop_spare_locked(room);
	vdi_lock_release(&room->lock);
	return was_there;
}

/* ---- The reserve ---- */

static vd_status fill_reserve_locked(struct vdi_journal_room *room, struct vd_error *reterr)
{
	int64_t	  wanted = atomic_load(&room->reserve_wanted);
	int64_t	  size = 0;
	vd_status status;

	vdi_lock_assert_held(&room->lock);
	do
		status = make_file(room, VDI_SEGMENT_RESERVE, wanted,
				   VDI_MIN(wanted, VDI_JOURNAL_RESERVE_MIN), true, &size, reterr);
	while (status == VD_NO_SPACE && drop_spare_locked(room));
	atomic_store(&room->reserve_size, size);
	return status;
}

vd_status vdi_journal_room_fill_reserve(struct vdi_journal_room *room, struct vd_error *reterr)
{
	vd_status status = VD_OK;

	if (atomic_load(&room->reserve_size))
		return VD_OK;
	vdi_lock_acquire(&room->lock);
	if (atomic_load(&room->reserve_size) == 0)
		status = fill_reserve_locked(room, reterr);
	vdi_lock_release(&room->lock);
	return status;
}

/* Brings an existing file near the desired size. After a crash even a file of the right size may have
 * unallocated blocks. VD_NO_SPACE: the file cannot be used. */
static vd_status adjust_file(struct vdi_journal_room *room, struct vdi_file *file, int64_t *ret_size,
			     struct vd_error *reterr)
{
	int64_t wanted = atomic_load(&room->reserve_wanted);
	int64_t size;

	VDI_TRY(vdi_file_size(file, &size, reterr));
	if (size > wanted * 2) {
		VDI_TRY(vdi_file_truncate(file, wanted, reterr));
		size = wanted;
	}
	size = VDI_MAX(size, VDI_MIN(wanted, VDI_JOURNAL_RESERVE_MIN));
	VDI_TRY(vdi_file_allocate(file, size, reterr));
	if (size < wanted && vdi_file_allocate(file, wanted, NULL) == VD_OK)
		size = wanted;
	VDI_TRY(vdi_file_sync(file, reterr));
	*ret_size = size;
	return VD_OK;
}

static vd_status adjust_reserve(struct vdi_journal_room *room, int64_t *ret_size, struct vd_error *reterr)
{
	struct vdi_file *file;
	vd_status	 status;

	VDI_TRY(vdi_file_open(room->dir, VDI_SEGMENT_RESERVE, VDI_FILE_WRITE, &file, reterr));
	status = adjust_file(room, file, ret_size, reterr);
	vdi_file_close(file);
	return status;
}

vd_status vdi_journal_room_start(struct vdi_journal_room *room, struct vd_error *reterr)
{
	int64_t	  size = 0;
	vd_status status;

	vdi_lock_acquire(&room->lock);
	status = remove_file(room, VDI_SEGMENT_SPARE, reterr);
	if (status == VD_OK)
		status = adjust_reserve(room, &size, reterr);
	atomic_store(&room->reserve_size, size);
	if (status == VD_NOT_FOUND || status == VD_NO_SPACE)
		status = fill_reserve_locked(room, reterr);
	vdi_lock_release(&room->lock);
	return status == VD_NO_SPACE ? VD_OK : status;
}

/* ---- The next file ---- */

static vd_status prepare_locked(struct vdi_journal_room *room, int64_t size_min, enum vdi_journal_use use,
				const char **ret_made, struct vd_error *reterr)
{
	int64_t	  wanted = atomic_load(&room->segment_size);
	vd_status status = VD_OK;

	vdi_lock_assert_held(&room->lock);
	*ret_made = VDI_SEGMENT_SPARE;
	if (room->spare_size >= size_min)
		return VD_OK;
	(void) drop_spare_locked(room);
	status = make_file(room, VDI_SEGMENT_SPARE, VDI_MAX(wanted, size_min),
			   VDI_MAX(size_min, VDI_MIN(wanted, VDI_JOURNAL_SEGMENT_MIN)), false,
			   &room->spare_size, reterr);
	if (status == VD_NO_SPACE && use != VDI_JOURNAL_NO_RESERVE &&
	    atomic_load(&room->reserve_size) >= size_min) {
		*ret_made = VDI_SEGMENT_RESERVE;
		return VD_OK;
	}
	return status;
}

vd_status vdi_journal_room_prepare(struct vdi_journal_room *room, int64_t size_min, enum vdi_journal_use use,
				   const char **ret_made, struct vd_error *reterr)
{
	vd_status status;

	vdi_lock_acquire(&room->lock);
	status = prepare_locked(room, size_min, use, ret_made, reterr);
	vdi_lock_release(&room->lock);
	return status;
}

int64_t vdi_journal_room_take(struct vdi_journal_room *room, const char *made)
{
	int64_t size;

	vdi_lock_acquire(&room->lock);
	size = strcmp(made, VDI_SEGMENT_SPARE) == 0 ? room->spare_size : atomic_load(&room->reserve_size);
	VDI_CHECK(size > 0);
	return size;
}

void vdi_journal_room_taken(struct vdi_journal_room *room, const char *made)
{
	if (strcmp(made, VDI_SEGMENT_SPARE) == 0)
		room->spare_size = 0;
	else
		atomic_store(&room->reserve_size, 0);
	vdi_lock_release(&room->lock);
}

/* ---- Old files ---- */

/* Returns false if the file still has its old name. */
static bool rename_old(struct vdi_journal_room *room, const char *name, const char *to, bool *ret_durable)
{
	if (vdi_dir_rename(room->dir, name, to, NULL) != VD_OK)
		return false;
	*ret_durable = vdi_dir_sync(room->dir, NULL) == VD_OK;
	return true;
}

static bool keep_as_reserve_locked(struct vdi_journal_room *room, const char *name)
{
	int64_t size = 0;
	bool	is_durable;

	if (atomic_load(&room->reserve_size) || !rename_old(room, name, VDI_SEGMENT_RESERVE, &is_durable))
		return false;
	if (is_durable && adjust_reserve(room, &size, NULL) != VD_OK)
		size = 0;
	atomic_store(&room->reserve_size, size);
	return true;
}

static bool keep_as_spare_locked(struct vdi_journal_room *room, const char *name)
{
	struct vdi_file *file;
	int64_t		 size = 0;
	bool		 is_durable;

	if (room->spare_size || vdi_file_open(room->dir, name, VDI_FILE_READ, &file, NULL) != VD_OK)
		return false;
	if (vdi_file_size(file, &size, NULL) != VD_OK)
		size = 0;
	vdi_file_close(file);
	if (size != atomic_load(&room->segment_size) ||
	    !rename_old(room, name, VDI_SEGMENT_SPARE, &is_durable))
		return false;
	room->spare_size = is_durable ? size : 0;
	return true;
}

void vdi_journal_room_release(struct vdi_journal_room *room, const char *name)
{
	vdi_lock_acquire(&room->lock);
	if (!keep_as_reserve_locked(room, name) && !keep_as_spare_locked(room, name))
		(void) !vdi_dir_unlink(room->dir, name, NULL);
	vdi_lock_release(&room->lock);
}
