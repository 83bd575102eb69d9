/* Verifies an LMDB file without LMDB, before LMDB maps it, and reads its content in the same pass. Blocks. */
#ifndef VDI_CHECKPOINT_VERIFY_H
#define VDI_CHECKPOINT_VERIFY_H

#include "disk.h"

/* Receives every entry of every table, after the node that contains it was verified; later nodes may still be
 * damaged. The entries of a table are in the order of their keys. A large table `split` is read in parts:
 * part 0 has the first entries, part 1 the next ones, and so on. The parts are read at the same time, each on
 * a thread of its own (lib/env/parallel.h). Arguments are borrowed for the call. Any status but VD_OK ends
 * the verification with that status. */
struct vdi_checkpoint_visitor {
	const struct vd_env *env;
	struct vd_bytes	     split;
	unsigned	     part_count; /* 1 .. VDI_PARALLEL_MAX */
	vd_status (*entry)(void *arg, unsigned part, struct vd_bytes table, struct vd_bytes key,
			   struct vd_bytes value, struct vd_error *reterr);
	void *arg;
};

/* Verifies that the newest meta page is valid, that the file is as long as this page states, that every page
 * number, node and size in all trees is inside the file, and that no page is used twice (free ones included).
 * Reads every page in use once. visitor may be NULL. VD_CORRUPT (the message names file and offset),
 * VD_NOMEM, VD_IO. */
VDI_MUST_USE vd_status vdi_checkpoint_verify(struct vdi_file			 *file,
					     const struct vdi_checkpoint_visitor *visitor,
					     struct vd_error			 *reterr);

#endif
