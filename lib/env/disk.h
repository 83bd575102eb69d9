/* The interface to files: all durable data of vedette reaches the disk through a struct vdi_disk.
 *
 *   vdi_disk_os()       real files                                              (production, kill tests)
 *   vdi_disk_sim_new()  an in-memory disk that loses, tears and refuses writes  (lib/sim/disk_sim.h; tests)
 *
 * A directory is opened exclusively: opening locks its file LOCK; closing, or the end of the process,
 * releases the lock. Files are named relative to their directory, without slashes. Durability is as the
 * operating system guarantees it: a write is durable after vdi_file_sync of its file, a name (created,
 * renamed, removed) after vdi_dir_sync. Before that any subset of the writes may survive a crash, in any
 * order, torn at sector boundaries.
 *
 * Only the owner can access the data: directories have mode 0700 and files 0600, whatever the umask. A wider
 * mode of an existing directory or file is narrowed when it is opened. No file is opened through a symbolic
 * link.
 *
 * All functions may block. Several threads may use one directory, and different files, at the same time; a
 * file has one user at a time, except that reads may run concurrently with all calls (the simulated disk: one
 * thread). Errors: VD_NO_SPACE (disk or disk quota full), VD_NOMEM, VD_NOT_FOUND, VD_EXISTS; VD_IO for all
 * others. The message names the file.
 */
#ifndef VDI_DISK_H
#define VDI_DISK_H

#include "base.h"

#define VDI_DISK_NAME_MAX 64 /* maximum file name, NUL included */

struct vdi_disk {
	const struct vdi_disk_ops *ops;
};
struct vdi_dir {
	const struct vdi_disk_ops *ops;
	char			  *path;
	unsigned mode_found; /* mode when opened, if other users could access the directory; else 0 */
	bool	 is_shared;  /* other users still can, because the mode could not be changed */
};
struct vdi_file {
	const struct vdi_disk_ops *ops;
	struct vdi_dir		  *dir;
	char			   name[VDI_DISK_NAME_MAX];
};

enum vdi_file_mode {
	VDI_FILE_READ,	 /* must exist */
	VDI_FILE_WRITE,	 /* read and write; must exist */
	VDI_FILE_CREATE, /* read and write; must not exist */
};

typedef vd_status (*vdi_dir_list_fn)(void *arg, const char *name, int64_t size);

struct vdi_disk_ops {
	vd_status (*dir_open)(struct vdi_disk *disk, const char *path, struct vdi_dir **ret_dir,
			      struct vd_error *reterr);
	void (*dir_close)(struct vdi_dir *dir);
	vd_status (*dir_list)(struct vdi_dir *dir, vdi_dir_list_fn each, void *arg, struct vd_error *reterr);
	vd_status (*dir_sync)(struct vdi_dir *dir, struct vd_error *reterr);
	vd_status (*dir_rename)(struct vdi_dir *dir, const char *from, const char *to,
				struct vd_error *reterr);
	vd_status (*dir_unlink)(struct vdi_dir *dir, const char *name, struct vd_error *reterr);
	vd_status (*dir_free_bytes)(struct vdi_dir *dir, int64_t *ret_bytes, struct vd_error *reterr);
	vd_status (*file_open)(struct vdi_dir *dir, const char *name, enum vdi_file_mode mode,
			       struct vdi_file **ret_file, struct vd_error *reterr);
	void (*file_close)(struct vdi_file *file);
	vd_status (*file_read)(struct vdi_file *file, int64_t offset, void *buffer, size_t size,
			       size_t *ret_size, struct vd_error *reterr);
	vd_status (*file_write)(struct vdi_file *file, int64_t offset, const void *data, size_t size,
				struct vd_error *reterr);
	vd_status (*file_sync)(struct vdi_file *file, struct vd_error *reterr);
	vd_status (*file_allocate)(struct vdi_file *file, int64_t size, struct vd_error *reterr);
	vd_status (*file_truncate)(struct vdi_file *file, int64_t size, struct vd_error *reterr);
	vd_status (*file_size)(struct vdi_file *file, int64_t *ret_size, struct vd_error *reterr);
};

/* The real disk; a constant. */
struct vdi_disk *vdi_disk_os(void);

/* Opens the directory, creates it if absent (its parent must exist), and takes its lock. VD_LOCKED: another
 * process or opener has it; the message names the process. Close the files before the directory. */
VDI_MUST_USE static inline vd_status vdi_dir_open(struct vdi_disk *disk, const char *path,
						  struct vdi_dir **ret_dir, struct vd_error *reterr)
{
	return disk->ops->dir_open(disk, path, ret_dir, reterr);
}
/* Logs a warning if other users could access the directory before it was opened. */
void vdi_dir_warn(const struct vdi_dir *dir, const struct vd_env *env);
/* NULL is allowed. Returns NULL. */
static inline struct vdi_dir *vdi_dir_close(struct vdi_dir *dir)
{
	if (dir)
		dir->ops->dir_close(dir);
	return NULL;
}
/* Calls each for every regular file, in no order; stops at the first status that is not VD_OK and returns
 * it. */
VDI_MUST_USE static inline vd_status vdi_dir_list(struct vdi_dir *dir, vdi_dir_list_fn each, void *arg,
						  struct vd_error *reterr)
{
	return dir->ops->dir_list(dir, each, arg, reterr);
}
VDI_MUST_USE static inline vd_status vdi_dir_sync(struct vdi_dir *dir, struct vd_error *reterr)
{
	return dir->ops->dir_sync(dir, reterr);
}
/* Atomic; replaces `to` if it exists. */
VDI_MUST_USE static inline vd_status vdi_dir_rename(struct vdi_dir *dir, const char *from, const char *to,
						    struct vd_error *reterr)
{
	return dir->ops->dir_rename(dir, from, to, reterr);
}
VDI_MUST_USE static inline vd_status vdi_dir_unlink(struct vdi_dir *dir, const char *name,
						    struct vd_error *reterr)
{
	return dir->ops->dir_unlink(dir, name, reterr);
}
/* Bytes available to an unprivileged writer. */
VDI_MUST_USE static inline vd_status vdi_dir_free_bytes(struct vdi_dir *dir, int64_t *ret_bytes,
							struct vd_error *reterr)
{
	return dir->ops->dir_free_bytes(dir, ret_bytes, reterr);
}
VDI_MUST_USE static inline vd_status vdi_file_open(struct vdi_dir *dir, const char *name,
						   enum vdi_file_mode mode, struct vdi_file **ret_file,
						   struct vd_error *reterr)
{
	return dir->ops->file_open(dir, name, mode, ret_file, reterr);
}
/* Does not sync. NULL is allowed. Returns NULL. */
static inline struct vdi_file *vdi_file_close(struct vdi_file *file)
{
	if (file)
		file->ops->file_close(file);
	return NULL;
}
/* Reads size bytes, or less at the end of the file; *ret_size is the number read. */
VDI_MUST_USE static inline vd_status vdi_file_read(struct vdi_file *file, int64_t offset, void *buffer,
						   size_t size, size_t *ret_size, struct vd_error *reterr)
{
	return file->ops->file_read(file, offset, buffer, size, ret_size, reterr);
}
/* Writes all bytes; after an error any part of them may have been written. */
VDI_MUST_USE static inline vd_status vdi_file_write(struct vdi_file *file, int64_t offset, const void *data,
						    size_t size, struct vd_error *reterr)
{
	return file->ops->file_write(file, offset, data, size, reterr);
}
/* fdatasync: syncs the content, and the size if needed to read it. After a failure the state on disk is
 * unknown: do not retry. */
VDI_MUST_USE static inline vd_status vdi_file_sync(struct vdi_file *file, struct vd_error *reterr)
{
	return file->ops->file_sync(file, reterr);
}
/* Makes the file at least size bytes long and reserves space for all of them; new bytes read as zero. */
VDI_MUST_USE static inline vd_status vdi_file_allocate(struct vdi_file *file, int64_t size,
						       struct vd_error *reterr)
{
	return file->ops->file_allocate(file, size, reterr);
}
VDI_MUST_USE static inline vd_status vdi_file_truncate(struct vdi_file *file, int64_t size,
						       struct vd_error *reterr)
{
	return file->ops->file_truncate(file, size, reterr);
}
VDI_MUST_USE static inline vd_status vdi_file_size(struct vdi_file *file, int64_t *ret_size,
						   struct vd_error *reterr)
{
	return file->ops->file_size(file, ret_size, reterr);
}

/* The disk of an env: the real one, unless a test set another, which must outlive all objects of the env. Set
 * it before any object is created with the env. */
struct vdi_disk *vdi_env_disk(const struct vd_env *env);
void		 vdi_env_set_disk(struct vd_env *env, struct vdi_disk *disk);

#endif
