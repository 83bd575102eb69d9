/* A log out of a Kubernetes audit log (audit.k8s.io/v1, a JSON object a line) at level RequestResponse: what
 * requests answered is what the store then held.
 *
 * 	create, update, patch with an object in the answer	a put at its resourceVersion; a deletion, when the object waited for nothing else any more
 * 	delete with an object that still waits for something	a put (it got its deletionTimestamp)
 * 	delete, deletecollection with other objects		deletions at their resourceVersions
 * 	delete answered by a mere Status			a deletion; its revision is not in the audit log: the one behind the newest before it
 * 	everything else						left out: reads, failures, dry runs, other stages and levels, subresources with objects of their own (scale, eviction, binding, ...)
 *
 * Audit logs are written as requests end, which is not quite the order of their revisions: lines are sorted
 * within a window. A line that comes still later is an error. Memory: the window, up to 4096 changes or 32
 * MiB, and the longest line, 64 MiB.
 */
#ifndef VDI_IMPORT_AUDIT_H
#define VDI_IMPORT_AUDIT_H

#include "import.h"

#define VDI_IMPORT_AUDIT_WINDOW 4096
#define VDI_IMPORT_AUDIT_WINDOW_BYTES ((size_t) 32 << 20)

struct vdi_import_audit;

VDI_MUST_USE vd_status vdi_import_audit_new(const struct vdi_import_sink *sink,
					    struct vdi_import_audit	**ret_import);
VDI_MUST_USE vd_status vdi_import_audit_feed(struct vdi_import_audit *import, struct vd_bytes bytes,
					     struct vd_error *reterr);
/* The input has ended; ret_totals may be NULL. */
VDI_MUST_USE vd_status vdi_import_audit_end(struct vdi_import_audit  *import,
					    struct vdi_import_totals *ret_totals, struct vd_error *reterr);
/* NULL is fine. Returns NULL. */
struct vdi_import_audit *vdi_import_audit_free(struct vdi_import_audit *import);

#endif
