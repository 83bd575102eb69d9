/* Construction of a store's trees and history from all its records at once, when the store starts.
 *
 * One thread; the store is not visible to others yet. Order of calls: add each record, in revision order;
 * finish; fini, which drops what finish did not take.
 */
#ifndef VDI_MVCC_BUILD_H
#define VDI_MVCC_BUILD_H

#include "mvcc_group.h"

/* Zeroed memory is a valid empty value. */
struct vdi_mvcc_build {
	struct vd_store_event *events; /* records in revision order, with predecessors once those are known */
	size_t		       count;
	size_t		       capacity;
	size_t		       given; /* events before this index are owned by others */
};

/* Allocates room for count records. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_mvcc_build_expect(struct vdi_mvcc_build *build, size_t count);
/* Adds a record; takes over the reference even if it fails. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_mvcc_build_add(struct vdi_mvcc_build *build, struct vd_kv *kv, bool is_delete);
/* Fills group->keys with the live records, and log, which is empty, with those from group->compacted on and
 * their predecessors. VD_NOMEM: both may be partly filled. */
VDI_MUST_USE vd_status vdi_mvcc_build_finish(struct vdi_mvcc_build *build, struct vdi_group *group,
					     struct vdi_mvcc_log *log, vd_mono now);
void		       vdi_mvcc_build_fini(struct vdi_mvcc_build *build);

#endif
