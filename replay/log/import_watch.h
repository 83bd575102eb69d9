/* A log out of what `kubectl get KIND --watch -o json` prints, with --output-watch-events or without, or of a
 * watch's raw bytes: JSON values one after the other, however they are indented.
 *
 * 	{"type":"ADDED","object":{...}}	as it says; BOOKMARK is a progress, ERROR an error
 * 	{...}				an object: a put. Without --output-watch-events a deletion looks like one, and is taken for one
 * 	{"kind":"...List","items":[...]}	its items are puts
 *
 * Objects lie where kube-apiserver would keep them, at their resourceVersion, which must grow; what a watch
 * begins with comes in the order of names, and becomes the snapshot: the first objects, as long as they are
 * new, up to the last one that is older than one before it. That takes two passes: _new with scan NULL makes
 * the first one, which gives nothing to the sink; its end tells the second one where the snapshot is. Memory:
 * the longest value, and 12 to 24 bytes for each of the first objects. An object that comes again at the
 * revision of its last change is left out.
 */
#ifndef VDI_IMPORT_WATCH_H
#define VDI_IMPORT_WATCH_H

#include "import.h"

struct vdi_import_watch;

struct vdi_import_watch_scan {
	uint64_t snapshot_count; /* so many objects are the snapshot */
	vd_rev	 snapshot_revision;
};

VDI_MUST_USE vd_status vdi_import_watch_new(const struct vdi_import_watch_scan *scan,
					    vdi_import_prefix_fn prefix_of, void *prefix_arg,
					    const struct vdi_import_sink *sink,
					    struct vdi_import_watch	**ret_import);
VDI_MUST_USE vd_status vdi_import_watch_feed(struct vdi_import_watch *import, struct vd_bytes bytes,
					     struct vd_error *reterr);
/* The input has ended. ret_scan (of the first pass) and ret_totals (of the second) may be NULL. */
VDI_MUST_USE vd_status vdi_import_watch_end(struct vdi_import_watch	 *import,
					    struct vdi_import_watch_scan *ret_scan,
					    struct vdi_import_totals *ret_totals, struct vd_error *reterr);
/* NULL is fine. Returns NULL. */
struct vdi_import_watch *vdi_import_watch_free(struct vdi_import_watch *import);

#endif
