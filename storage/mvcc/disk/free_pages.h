/* Room in the free pages of an LMDB file, by the length of their runs, because a value of several pages needs
 * consecutive pages. */
#ifndef VDI_FREE_PAGES_H
#define VDI_FREE_PAGES_H

#include <lmdb.h>

#include "checkpoint.h"

/* Sets free_bytes to the size of the pages that the next write transaction can use, in time proportional to
 * their number. The caller has no transaction of env open. Returns 0, or the error of LMDB; ENOMEM: out of
 * memory. */
VDI_MUST_USE int vdi_free_pages_measure(MDB_env *env, struct vdi_checkpoint_room *room);

#endif
