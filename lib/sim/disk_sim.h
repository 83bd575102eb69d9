/* A disk in memory that keeps only what POSIX promises: for tests of durability.
 *
 * Every write, size change and directory change is pending until its file or directory is synced.
 * vdi_disk_sim_crash() applies a subset of what is pending, drawn from a seed: each write whole, in part (any
 * of its 512-byte sectors) or not at all; each name change or not. Files and directories that were open stay
 * valid only to be closed. A mode that was narrowed may be the old one again, too. Used from one thread.
 *
 * Operations that change or sync something are counted from 1 in the order they come; faults name the
 * operation they hit.
 */
#ifndef VDI_DISK_SIM_H
#define VDI_DISK_SIM_H

#include "disk.h"

#define VDI_DISK_SIM_SECTOR_SIZE 512

enum vdi_disk_sim_fault {
	/* the power goes while the operation is under way: it may happen in part, everything after fails
	 * (VD_IO) */
	VDI_DISK_SIM_CRASH,
	/* VD_IO, not done; a failed sync drops what was pending, as Linux does, while reads still show it */
	VDI_DISK_SIM_IO,
	VDI_DISK_SIM_NO_SPACE, /* VD_NO_SPACE, not done */
	/* a write is done in part, then VD_NO_SPACE; other operations as NO_SPACE */
	VDI_DISK_SIM_SHORT_WRITE,
};

/* VD_NOMEM. The disk begins empty. */
VDI_MUST_USE vd_status vdi_disk_sim_new(uint64_t seed, struct vdi_disk **ret_disk);
/* NULL is fine. Returns NULL. Directories must be closed. */
struct vdi_disk *vdi_disk_sim_free(struct vdi_disk *disk);

/* Hits operation number nth from now (1: the next); 0: never. One fault at a time. */
void vdi_disk_sim_fail_nth(struct vdi_disk *disk, uint64_t nth, enum vdi_disk_sim_fault fault);
/* Whether it was delivered. */
bool	 vdi_disk_sim_failed(const struct vdi_disk *disk);
uint64_t vdi_disk_sim_operations(const struct vdi_disk *disk);
/* Total of file sizes beyond which allocating and growing answer VD_NO_SPACE; INT64_MAX: none. */
void vdi_disk_sim_set_capacity(struct vdi_disk *disk, int64_t bytes);

/* The power is gone and comes back. All must be closed. Faults are off afterwards. Out of memory is a failed
 * check: tests only. */
void vdi_disk_sim_crash(struct vdi_disk *disk);

/* ---- Looking and meddling, past locks and caches: the bytes as any reader sees them now. name is relative to the one directory. ----
 */

/* NULL: no such file. Good until the next change. */
const uint8_t *vdi_disk_sim_content(struct vdi_disk *disk, const char *name, int64_t *ret_size);
/* The same of what would certainly survive a crash. */
const uint8_t *vdi_disk_sim_durable(struct vdi_disk *disk, const char *name, int64_t *ret_size);
/* Turns bits of one byte, durably. */
void vdi_disk_sim_flip(struct vdi_disk *disk, const char *name, int64_t offset, uint8_t bits);
void vdi_disk_sim_cut(struct vdi_disk *disk, const char *name, int64_t size);
/* Mode bits, of the directory when name is NULL. A file must exist. Durable when set. */
unsigned vdi_disk_sim_mode(struct vdi_disk *disk, const char *name);
void	 vdi_disk_sim_set_mode(struct vdi_disk *disk, const char *name, unsigned mode);

#endif
