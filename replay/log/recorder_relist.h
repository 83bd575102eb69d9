/* What a recorder does when a part of history is gone: the log that there is says which keys there were, a
 * new list says which there are, and the difference is written as if it had happened so.
 *
 * 	puts	     at the revisions that the list shows
 * 	deletions    at the list's revision: when they happened nobody knows any more
 * 	compact	     up to the last of these, for what was between is not in the log; then a disconnect, so that watches of a player live through the same
 *
 * Memory: the keys, and the records that changed. One thread; reads the log, so it may block.
 */
#ifndef VDI_RECORDER_RELIST_H
#define VDI_RECORDER_RELIST_H

#include "log_writer.h"

struct vdi_relist;

/* Everything in the log was flushed. VD_NOMEM; what vdi_log_steps_open and _next answer. */
VDI_MUST_USE vd_status vdi_relist_begin(const char *path, struct vdi_relist **ret_relist,
					struct vd_error *reterr);
/* Records of the new list; those behind revision `done` are new to the log. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_relist_take(struct vdi_relist *relist, struct vd_kv **kvs, size_t count,
				       vd_rev done);
/* The list of `revision` is complete. As the writer's functions. */
VDI_MUST_USE vd_status vdi_relist_write(struct vdi_relist *relist, struct vdi_log_writer *writer,
					vd_rev revision, vd_wall now, uint64_t *ret_records,
					struct vd_error *reterr);
/* NULL is fine. Returns NULL. */
struct vdi_relist *vdi_relist_free(struct vdi_relist *relist);

#endif
