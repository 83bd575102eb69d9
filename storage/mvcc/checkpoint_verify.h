/* Looks at an LMDB file from outside, before LMDB does. One thread; blocks. */
#ifndef VDI_CHECKPOINT_VERIFY_H
#define VDI_CHECKPOINT_VERIFY_H

#include "disk.h"

/* VD_CORRUPT, naming file and offset, unless the newest meta page is sane, the file as long as it says, and every page number, node and size in
 * all trees stays inside the file, with no page in two places (free ones included). Reads every page in use once. VD_NOMEM, VD_IO. */
VDI_MUST_USE vd_status vdi_checkpoint_verify(struct vdi_file *file, struct vd_error *reterr);

#endif
