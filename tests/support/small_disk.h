/* A small disk of its own for a test: a tmpfs in a mount namespace that only this process and its children
 * see. For tests of full disks. */
#ifndef SMALL_DISK_H
#define SMALL_DISK_H

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "vdtest.h"

static inline bool small_disk_write(const char *path, const char *text)
{
	int  fd = open(path, O_WRONLY | O_CLOEXEC);
	bool is_ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text);

	if (fd >= 0)
		close(fd);
	return is_ok;
}

/* Before threads exist. Root gets a mount namespace; other users a user namespace around it. false: the
 * kernel allows neither. */
static inline bool small_disk_enter(void)
{
	char map[64];
	long uid = (long) getuid(), gid = (long) getgid();

	if (unshare(CLONE_NEWNS) != 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
			return false;
		snprintf(map, sizeof map, "0 %ld 1", uid);
		if (!small_disk_write("/proc/self/setgroups", "deny") ||
		    !small_disk_write("/proc/self/uid_map", map))
			return false;
		snprintf(map, sizeof map, "0 %ld 1", gid);
		if (!small_disk_write("/proc/self/gid_map", map))
			return false;
	}
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* Mounts a disk of so many MiB on an existing directory, or changes the size of the mounted one. */
static inline void small_disk_mount(const char *path, unsigned mib, bool is_there)
{
	char size[32];

	snprintf(size, sizeof size, "size=%um", mib);
	assert_int_equal(mount("tmpfs", path, "tmpfs", is_there ? MS_REMOUNT : 0, size), 0);
}

static inline int64_t small_disk_free(const char *path)
{
	struct statvfs info;

	assert_int_equal(statvfs(path, &info), 0);
	return (int64_t) info.f_bfree * (int64_t) info.f_frsize;
}

/* Fills the disk with a file, except for `left` bytes. */
static inline void small_disk_fill(const char *path, int64_t left)
{
	char	name[256];
	int64_t size = small_disk_free(path) - left;
	int	fd;

	snprintf(name, sizeof name, "%s/neighbour", path);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_true(size <= 0 || fallocate(fd, 0, 0, size) == 0);
	close(fd);
}

static inline void small_disk_unfill(const char *path)
{
	char name[256];

	snprintf(name, sizeof name, "%s/neighbour", path);
	assert_int_equal(unlink(name), 0);
}

#endif
