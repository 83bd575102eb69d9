/* A disk in memory with exactly POSIX's guarantees, for tests of durability.
 *
 * Every write, size change and directory change is pending until its file or directory is synced.
 * vdi_disk_sim_crash() applies a subset of the pending changes, drawn from a seed: each write as a whole, in
 * part (any of its 512-byte sectors) or not at all; each name change or not. Afterwards open files and
 * directories can only be closed. A narrowed mode may become the old one again, too. Use from one thread.
 *
 * Operations that change or sync data are counted from 1 in their order; a fault hits the operation with its
 * number.
 */
#ifndef VDI_DISK_SIM_H
#define VDI_DISK_SIM_H

#include "disk.h"

#define VDI_DISK_SIM_SECTOR_SIZE 512

enum vdi_disk_sim_fault {
	/* power fails during the operation: it may be done in part, and everything after it fails (VD_IO) */
	VDI_DISK_SIM_CRASH,
	/* VD_IO, not done; a failed sync drops the pending changes, like Linux, but reads still return
	 * them */
	VDI_DISK_SIM_IO,
	VDI_DISK_SIM_NO_SPACE, /* VD_NO_SPACE, not done */
	/* a write is done in part, then VD_NO_SPACE; other operations like NO_SPACE */
	VDI_DISK_SIM_SHORT_WRITE,
};

/* Creates an empty disk. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_disk_sim_new(uint64_t seed, struct vdi_disk **ret_disk);
/* NULL is allowed. Returns NULL. Directories must be closed. */
struct vdi_disk *vdi_disk_sim_free(struct vdi_disk *disk);

/* The nth operation from now (1: the next) fails; 0: none. One fault at a time. */
void vdi_disk_sim_fail_nth(struct vdi_disk *disk, uint64_t nth, enum vdi_disk_sim_fault fault);
/* The nth read of a file from now (1: the next) returns VD_IO; 0: none. Reads do not count as operations. */
void vdi_disk_sim_fail_read(struct vdi_disk *disk, uint64_t nth);
/* Returns true if the fault, of either kind, has occurred. */
bool	 vdi_disk_sim_failed(const struct vdi_disk *disk);
uint64_t vdi_disk_sim_operations(const struct vdi_disk *disk);
/* Maximum total of file sizes; beyond it allocating and growing return VD_NO_SPACE; INT64_MAX: no limit. */
void vdi_disk_sim_set_capacity(struct vdi_disk *disk, int64_t bytes);

/* Power fails and returns. All files and directories must be closed. Faults are disabled afterwards. If out
 * of memory a check fails: tests only. */
void vdi_disk_sim_crash(struct vdi_disk *disk);

/* ---- Inspecting and changing content ----
 *
 * Ignores locks and pending changes: the content is what any reader sees now. name is relative to the one
 * directory.
 */

/* NULL: no such file. Valid until the next change. */
const uint8_t *vdi_disk_sim_content(struct vdi_disk *disk, const char *name, int64_t *ret_size);
/* The content that certainly survives a crash, likewise. */
const uint8_t *vdi_disk_sim_durable(struct vdi_disk *disk, const char *name, int64_t *ret_size);
/* Flips bits of one byte, durably. */
void vdi_disk_sim_flip(struct vdi_disk *disk, const char *name, int64_t offset, uint8_t bits);
void vdi_disk_sim_cut(struct vdi_disk *disk, const char *name, int64_t size);
/* Mode bits; of the directory if name is NULL. A file must exist. Setting is durable. */
unsigned vdi_disk_sim_mode(struct vdi_disk *disk, const char *name);
void	 vdi_disk_sim_set_mode(struct vdi_disk *disk, const char *name, unsigned mode);

#endif
