/* Imports a Kubernetes audit log (audit.k8s.io/v1, one JSON object per line) at level RequestResponse: the
 * objects in the responses are the content of the store.
 *
 * 	create, update, patch with an object in the response
 * 		a put at its resourceVersion; a deletion if nothing delayed the object's removal any more
 * 	delete of an object whose removal is delayed
 * 		a put (it got its deletionTimestamp)
 * 	delete, deletecollection of other objects
 * 		deletions at their resourceVersions
 * 	delete with only a Status as response
 * 		a deletion; its revision is not in the audit log, so it gets the one after the newest
 * 	everything else
 * 		ignored: reads, failures, dry runs, other stages and levels, subresources with objects of
 * 		their own (scale, eviction, binding, ...)
 *
 * Lines of an audit log are written when requests end, which is not exactly the order of their revisions, so
 * lines are sorted within a window. A line that is later than the window is an error. Memory: the window, up
 * to 4096 changes or 32 MiB, and the longest line, 64 MiB.
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
/* Ends the input; ret_totals may be NULL. */
VDI_MUST_USE vd_status vdi_import_audit_end(struct vdi_import_audit  *import,
					    struct vdi_import_totals *ret_totals, struct vd_error *reterr);
/* Accepts NULL. Returns NULL. */
struct vdi_import_audit *vdi_import_audit_free(struct vdi_import_audit *import);

#endif
