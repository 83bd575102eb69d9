/* Trees and history of a store that starts, made of all its records at once.
 *
 * One thread; the store is not visible to anyone yet. add takes over the reference of each record, in
 * revision order; finish builds; fini drops what is left.
 */
#ifndef VDI_MVCC_BUILD_H
#define VDI_MVCC_BUILD_H

#include "mvcc_group.h"

/* Zeroed memory is an empty one. */
struct vdi_mvcc_build {
	struct vd_store_event
		*events; /* records in revision order; with their predecessors once those are known */
	size_t	 count;
	size_t	 capacity;
	size_t	 given; /* references of the events before this one belong to others */
};

/* Room for so many records. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_mvcc_build_expect(struct vdi_mvcc_build *build, size_t count);
/* Takes over the reference, whatever it answers. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_mvcc_build_add(struct vdi_mvcc_build *build, struct vd_kv *kv, bool is_delete);
/* The live records become group->keys; those from group->compacted on become history, with what they
 * replaced. log is empty. VD_NOMEM: both may hold part of it. */
VDI_MUST_USE vd_status vdi_mvcc_build_finish(struct vdi_mvcc_build *build, struct vdi_group *group,
					     struct vdi_mvcc_log *log, vd_mono now);
void		       vdi_mvcc_build_fini(struct vdi_mvcc_build *build);

#endif
