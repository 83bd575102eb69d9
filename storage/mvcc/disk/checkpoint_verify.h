/* Looks at an LMDB file from outside, before LMDB does, and reads what is in it on the way. Blocks. */
#ifndef VDI_CHECKPOINT_VERIFY_H
#define VDI_CHECKPOINT_VERIFY_H

#include "disk.h"

/* Sees every entry of every table once the node it lies in has been found sound; what follows may still turn
 * out to be damaged. Entries of a table come in the order of their keys. The table `split` is read in parts
 * when it is large: first come the entries of part 0, then those of part 1, and so on, but the parts run at
 * the same time, each on a thread of its own (lib/env/parallel.h). All is lent for the call. What entry
 * returns other than VD_OK ends it. */
struct vdi_checkpoint_visitor {
	const struct vd_env *env;
	struct vd_bytes	     split;
	unsigned	     part_count; /* 1 .. VDI_PARALLEL_MAX */
	vd_status (*entry)(void *arg, unsigned part, struct vd_bytes table, struct vd_bytes key,
			   struct vd_bytes value, struct vd_error *reterr);
	void *arg;
};

/* VD_CORRUPT, naming file and offset, unless the newest meta page is sane, the file as long as it says, and
 * every page number, node and size in all trees stays inside the file, with no page in two places (free ones
 * included). Reads every page in use once. VD_NOMEM, VD_IO. visitor: NULL when only that is wanted. */
VDI_MUST_USE vd_status vdi_checkpoint_verify(struct vdi_file			 *file,
					     const struct vdi_checkpoint_visitor *visitor,
					     struct vd_error			 *reterr);

#endif
