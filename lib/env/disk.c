/* The real disk: a thin layer over Linux system calls.
 *
 * The lock is flock() on the file LOCK: it belongs to the open file, so it ends with the process, and it also
 * excludes a second opener inside the same process. The holder writes its process ID into the file, only for
 * the message of a second opener. A LOCK that is a symbolic link or has a second hard link is refused,
 * because writing the process ID would change a file elsewhere. Calls that a signal interrupts are repeated;
 * short writes are continued.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "disk.h"
#include "env.h"

#define DIR_MODE 0700
#define FILE_MODE 0600
#define OTHERS 077

struct os_dir {
	struct vdi_dir base;
	int	       fd;
	int	       lock_fd;
};
struct os_file {
	struct vdi_file base;
	int		fd;
};

static vd_status status_of(int error)
{
	switch (error) {
	case ENOSPC:
	case EDQUOT:
	case EFBIG: return VD_NO_SPACE;
	case ENOMEM: return VD_NOMEM;
	case ENOENT: return VD_NOT_FOUND;
	case EEXIST: return VD_EXISTS;
	default: return VD_IO;
	}
}

static vd_status fail(struct vd_error *reterr, int error, const char *verb, const char *path,
		      const char *name)
{
	char text[128];

	return vd_error_set(reterr, status_of(error), "cannot %s %s%s%s: %s", verb, path, name ? "/" : "",
			    name ? name : "", strerror_r(error, text, sizeof text));
}

static vd_status file_fail(struct vd_error *reterr, int error, const char *verb, const struct vdi_file *file)
{
	return fail(reterr, error, verb, file->dir->path, file->name);
}

/* Narrows the directory's mode, unless everybody may write to it: a directory like /tmp is shared on
 * purpose. */
static void narrow_dir(struct os_dir *dir)
{
	struct stat attributes;

	if (fstat(dir->fd, &attributes) != 0 || (attributes.st_mode & 07777) == DIR_MODE)
		return;
	if (attributes.st_mode & OTHERS)
		dir->base.mode_found = attributes.st_mode & 07777;
	dir->base.is_shared =
		(attributes.st_mode & S_ISVTX || fchmod(dir->fd, DIR_MODE) != 0) && dir->base.mode_found;
}

/* Best effort: the mode of the directory already excludes others. */
static void narrow_file(int fd)
{
	struct stat attributes;

	if (fstat(fd, &attributes) == 0 && (attributes.st_mode & 07777) != FILE_MODE)
		(void) !fchmod(fd, FILE_MODE);
}

static vd_status open_lock(struct os_dir *dir, struct vd_error *reterr)
{
	struct stat attributes;

	dir->lock_fd =
		openat(dir->fd, "LOCK", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, FILE_MODE);
	if (dir->lock_fd < 0 && errno == ELOOP)
		return vd_error_set(reterr, VD_IO, "%s/LOCK is a symbolic link: remove it", dir->base.path);
	if (dir->lock_fd < 0 || fstat(dir->lock_fd, &attributes) != 0)
		return fail(reterr, errno, "open", dir->base.path, "LOCK");
	if (!S_ISREG(attributes.st_mode) || attributes.st_nlink > 1)
		return vd_error_set(reterr, VD_IO,
				    "%s/LOCK has a second hard link or is not a regular file: remove it",
				    dir->base.path);
	narrow_file(dir->lock_fd);
	return VD_OK;
}

static vd_status take_lock(struct os_dir *dir, struct vd_error *reterr)
{
	char	text[32];
	ssize_t size;
	int	error;

	VDI_TRY(open_lock(dir, reterr));
	while (flock(dir->lock_fd, LOCK_EX | LOCK_NB) != 0) {
		error = errno;
		if (error == EINTR)
			continue;
		if (error != EWOULDBLOCK)
			return fail(reterr, error, "lock", dir->base.path, "LOCK");
		size = pread(dir->lock_fd, text, sizeof text - 1, 0);
		text[size > 0 ? size : 0] = 0;
		return vd_error_set(reterr, VD_LOCKED, "%s is in use by process %ld", dir->base.path,
				    strtol(text, NULL, 10));
	}
	size = snprintf(text, sizeof text, "%ld\n", (long) getpid());
	/* The number is only for the message of a second opener, so a full disk must not prevent opening the
	 * store. */
	if (ftruncate(dir->lock_fd, 0) != 0 || pwrite(dir->lock_fd, text, (size_t) size, 0) != size)
		(void) 0;
	return VD_OK;
}

/* Syncs the parent: a new directory's name is durable only after that. */
static vd_status sync_parent(const char *path, struct vd_error *reterr)
{
	char *parent = vdi_alloc(strlen(path) + 4);
	int   fd;
	int   error = 0;

	if (parent == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	sprintf(parent, "%s/..", path);
	fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	vdi_free(parent);
	if (fd < 0 || fsync(fd) != 0)
		error = errno;
	if (fd >= 0)
		close(fd);
	return error ? fail(reterr, error, "sync the parent of", path, NULL) : VD_OK;
}

static void os_dir_close(struct vdi_dir *base)
{
	struct os_dir *dir = VDI_CONTAINER_OF(base, struct os_dir, base);

	if (dir->lock_fd >= 0)
		close(dir->lock_fd);
	if (dir->fd >= 0)
		close(dir->fd);
	vdi_free(dir->base.path);
	vdi_free(dir);
}

static vd_status os_dir_open(struct vdi_disk *disk, const char *path, struct vdi_dir **ret_dir,
			     struct vd_error *reterr)
{
	struct os_dir *dir = VDI_NEW(struct os_dir);
	vd_status      status = VD_OK;

	if (dir == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	dir->base.ops = disk->ops;
	dir->fd = dir->lock_fd = -1;
	dir->base.path = vdi_strdup(path);
	if (dir->base.path == NULL)
		status = vd_error_set(reterr, VD_NOMEM, "out of memory");
	else if (mkdir(path, DIR_MODE) == 0)
		status = sync_parent(path, reterr);
	else if (errno != EEXIST)
		status = fail(reterr, errno, "create", path, NULL);
	if (status == VD_OK) {
		dir->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		status = dir->fd < 0 ? fail(reterr, errno, "open", path, NULL) : take_lock(dir, reterr);
		if (status == VD_OK)
			narrow_dir(dir);
	}
	if (status != VD_OK) {
		os_dir_close(&dir->base);
		return status;
	}
	*ret_dir = &dir->base;
	return VD_OK;
}

static vd_status os_dir_list(struct vdi_dir *base, vdi_dir_list_fn each, void *arg, struct vd_error *reterr)
{
	vd_status      status = VD_OK;
	struct dirent *entry;
	struct stat    info;
	DIR	      *stream = opendir(base->path);

	if (stream == NULL)
		return fail(reterr, errno, "list", base->path, NULL);
	while (status == VD_OK) {
		errno = 0;
		entry = readdir(stream);
		if (entry == NULL) {
			if (errno)
				status = fail(reterr, errno, "list", base->path, NULL);
			break;
		}
		if (fstatat(dirfd(stream), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
			if (errno != ENOENT)
				status = fail(reterr, errno, "examine", base->path, entry->d_name);
		} else if (S_ISREG(info.st_mode)) {
			status = each(arg, entry->d_name, info.st_size);
		}
	}
	closedir(stream);
	return status;
}

static vd_status os_dir_sync(struct vdi_dir *base, struct vd_error *reterr)
{
	struct os_dir *dir = VDI_CONTAINER_OF(base, struct os_dir, base);

	return fsync(dir->fd) == 0 ? VD_OK : fail(reterr, errno, "sync", base->path, NULL);
}

static vd_status os_dir_rename(struct vdi_dir *base, const char *from, const char *to,
			       struct vd_error *reterr)
{
	struct os_dir *dir = VDI_CONTAINER_OF(base, struct os_dir, base);

	return renameat(dir->fd, from, dir->fd, to) == 0 ? VD_OK :
							   fail(reterr, errno, "rename", base->path, from);
}

static vd_status os_dir_unlink(struct vdi_dir *base, const char *name, struct vd_error *reterr)
{
	struct os_dir *dir = VDI_CONTAINER_OF(base, struct os_dir, base);

	return unlinkat(dir->fd, name, 0) == 0 ? VD_OK : fail(reterr, errno, "remove", base->path, name);
}

static vd_status os_dir_free_bytes(struct vdi_dir *base, int64_t *ret_bytes, struct vd_error *reterr)
{
	struct os_dir *dir = VDI_CONTAINER_OF(base, struct os_dir, base);
	struct statvfs info;

	if (fstatvfs(dir->fd, &info) != 0)
		return fail(reterr, errno, "examine", base->path, NULL);
	*ret_bytes = (int64_t) info.f_bavail * (int64_t) info.f_frsize;
	return VD_OK;
}

static vd_status os_file_open(struct vdi_dir *base, const char *name, enum vdi_file_mode mode,
			      struct vdi_file **ret_file, struct vd_error *reterr)
{
	static const int flags[] = { [VDI_FILE_READ] = O_RDONLY,
				     [VDI_FILE_WRITE] = O_RDWR,
				     [VDI_FILE_CREATE] = O_RDWR | O_CREAT | O_EXCL };
	struct os_dir	*dir = VDI_CONTAINER_OF(base, struct os_dir, base);
	struct os_file	*file = VDI_NEW(struct os_file);
	int		 error;

	VDI_CHECK(strlen(name) < VDI_DISK_NAME_MAX);
	if (file == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	file->base.ops = base->ops;
	file->base.dir = base;
	strcpy(file->base.name, name);
	do
		file->fd = openat(dir->fd, name, flags[mode] | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
	while (file->fd < 0 && errno == EINTR);
	if (file->fd < 0) {
		error = errno;
		vdi_free(file);
		return fail(reterr, error, mode == VDI_FILE_CREATE ? "create" : "open", base->path, name);
	}
	narrow_file(file->fd);
	*ret_file = &file->base;
	return VD_OK;
}

static void os_file_close(struct vdi_file *base)
{
	struct os_file *file = VDI_CONTAINER_OF(base, struct os_file, base);

	close(file->fd);
	vdi_free(file);
}

static vd_status os_file_read(struct vdi_file *base, int64_t offset, void *buffer, size_t size,
			      size_t *ret_size, struct vd_error *reterr)
{
	struct os_file *file = VDI_CONTAINER_OF(base, struct os_file, base);
	size_t		done = 0;

	while (done < size) {
		ssize_t got = pread(file->fd, (char *) buffer + done, size - done, offset + (int64_t) done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return file_fail(reterr, errno, "read", base);
		if (got == 0)
			break;
		done += (size_t) got;
	}
	*ret_size = done;
	return VD_OK;
}

static vd_status os_file_write(struct vdi_file *base, int64_t offset, const void *data, size_t size,
			       struct vd_error *reterr)
{
	struct os_file *file = VDI_CONTAINER_OF(base, struct os_file, base);
	size_t		done = 0;

	while (done < size) {
		ssize_t put =
			pwrite(file->fd, (const char *) data + done, size - done, offset + (int64_t) done);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return file_fail(reterr, put < 0 ? errno : EIO, "write", base);
		done += (size_t) put;
	}
	return VD_OK;
}

static vd_status os_file_sync(struct vdi_file *base, struct vd_error *reterr)
{
	struct os_file *file = VDI_CONTAINER_OF(base, struct os_file, base);

	return fdatasync(file->fd) == 0 ? VD_OK : file_fail(reterr, errno, "sync", base);
}

static vd_status os_file_size(struct vdi_file *base, int64_t *ret_size, struct vd_error *reterr)
{
	struct os_file *file = VDI_CONTAINER_OF(base, struct os_file, base);
	struct stat	info;

	if (fstat(file->fd, &info) != 0)
		return file_fail(reterr, errno, "examine", base);
	*ret_size = info.st_size;
	return VD_OK;
}

/* Writes zeros if the file system cannot reserve space. */
static vd_status write_zeros(struct vdi_file *base, int64_t size, struct vd_error *reterr)
{
	static const char zeros[65536];
	int64_t		  offset;

	VDI_TRY(os_file_size(base, &offset, reterr));
	while (offset < size) {
		size_t part = (size_t) VDI_MIN(size - offset, (int64_t) sizeof zeros);

		VDI_TRY(os_file_write(base, offset, zeros, part, reterr));
		offset += (int64_t) part;
	}
	return VD_OK;
}

static vd_status os_file_allocate(struct vdi_file *base, int64_t size, struct vd_error *reterr)
{
	struct os_file *file = VDI_CONTAINER_OF(base, struct os_file, base);

	while (fallocate(file->fd, 0, 0, size) != 0) {
		if (errno == EOPNOTSUPP || errno == ENOSYS)
			return write_zeros(base, size, reterr);
		if (errno != EINTR)
			return file_fail(reterr, errno, "reserve room for", base);
	}
	return VD_OK;
}

static vd_status os_file_truncate(struct vdi_file *base, int64_t size, struct vd_error *reterr)
{
	struct os_file *file = VDI_CONTAINER_OF(base, struct os_file, base);

	return ftruncate(file->fd, size) == 0 ? VD_OK : file_fail(reterr, errno, "truncate", base);
}

static const struct vdi_disk_ops os_ops = {
	.dir_open = os_dir_open,
	.dir_close = os_dir_close,
	.dir_list = os_dir_list,
	.dir_sync = os_dir_sync,
	.dir_rename = os_dir_rename,
	.dir_unlink = os_dir_unlink,
	.dir_free_bytes = os_dir_free_bytes,
	.file_open = os_file_open,
	.file_close = os_file_close,
	.file_read = os_file_read,
	.file_write = os_file_write,
	.file_sync = os_file_sync,
	.file_allocate = os_file_allocate,
	.file_truncate = os_file_truncate,
	.file_size = os_file_size,
};

struct vdi_disk *vdi_disk_os(void)
{
	static struct vdi_disk disk = { &os_ops };

	return &disk;
}

void vdi_dir_warn(const struct vdi_dir *dir, const struct vd_env *env)
{
	if (dir->is_shared)
		vdi_log(env, VD_LOG_WARNING, "disk",
			"%s has mode %04o, so other users can access it, and the mode cannot be changed: use "
			"a directory that belongs to this user",
			dir->path, dir->mode_found);
	else if (dir->mode_found)
		vdi_log(env, VD_LOG_WARNING, "disk",
			"%s had mode %04o, so other users could access it; it has been changed to 0700",
			dir->path, dir->mode_found);
}

struct vdi_disk *vdi_env_disk(const struct vd_env *env)
{
	return env->disk ? env->disk : vdi_disk_os();
}

void vdi_env_set_disk(struct vd_env *env, struct vdi_disk *disk)
{
	env->disk = disk;
}
