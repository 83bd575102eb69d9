/* The recorder's handling of a gap in the history. The keys in the log are compared with a new list, and the
 * difference is written as changes.
 *
 * 	puts		at the revisions in the list
 * 	deletions	at the list's revision, because their own is unknown
 * 	compact		up to the last of these, because the changes between are not in the log; then a
 * 			disconnect, so that watches of a player experience the same gap
 *
 * Memory: the keys, and the changed records. One thread; it reads the log, so it may block.
 */
#ifndef VDI_RECORDER_RELIST_H
#define VDI_RECORDER_RELIST_H

#include "log_writer.h"

struct vdi_relist;

/* Everything in the log must be flushed. VD_NOMEM; errors of vdi_log_steps_open and _next. */
VDI_MUST_USE vd_status vdi_relist_begin(const char *path, struct vdi_relist **ret_relist,
					struct vd_error *reterr);
/* Takes records of the new list; those after revision `done` are new to the log. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_relist_take(struct vdi_relist *relist, struct vd_kv **kvs, size_t count,
				       vd_rev done);
/* Writes the difference; the list at `revision` is complete. Errors as of the writer's functions. */
VDI_MUST_USE vd_status vdi_relist_write(struct vdi_relist *relist, struct vdi_log_writer *writer,
					vd_rev revision, vd_wall now, uint64_t *ret_records,
					struct vd_error *reterr);
/* Accepts NULL. Returns NULL. */
struct vdi_relist *vdi_relist_free(struct vdi_relist *relist);

#endif
