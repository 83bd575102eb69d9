/* Imports the output of `kubectl get KIND --watch -o json`, with or without --output-watch-events, or the raw
 * bytes of a watch: a sequence of JSON values with any indentation.
 *
 * 	{"type":"ADDED","object":{...}}	the event; BOOKMARK becomes a progress, ERROR an error
 * 	{...}				an object: a put. Without --output-watch-events a deletion looks the
 * 					same, and is imported as a put
 * 	{"kind":"...List","items":[...]}	its items are puts
 *
 * Objects get the keys that kube-apiserver uses, at their resourceVersions, which must increase. The initial
 * state of a watch is in the order of names and becomes the snapshot: the first objects, as long as none
 * occurs twice, up to the last one that is older than one before it. That takes two passes: _new with scan
 * NULL makes the first one, which passes nothing to the sink; its end returns the place of the snapshot for
 * the second one. Memory: the longest value, and 12 to 24 bytes for each of the first objects. An object that
 * is repeated at the revision of its last change is ignored.
 */
#ifndef VDI_IMPORT_WATCH_H
#define VDI_IMPORT_WATCH_H

#include "import.h"

struct vdi_import_watch;

struct vdi_import_watch_scan {
	uint64_t snapshot_count; /* number of objects in the snapshot */
	vd_rev	 snapshot_revision;
};

VDI_MUST_USE vd_status vdi_import_watch_new(const struct vdi_import_watch_scan *scan,
					    vdi_import_prefix_fn prefix_of, void *prefix_arg,
					    const struct vdi_import_sink *sink,
					    struct vdi_import_watch	**ret_import);
VDI_MUST_USE vd_status vdi_import_watch_feed(struct vdi_import_watch *import, struct vd_bytes bytes,
					     struct vd_error *reterr);
/* Ends the input. ret_scan (of the first pass) and ret_totals (of the second) may be NULL. */
VDI_MUST_USE vd_status vdi_import_watch_end(struct vdi_import_watch	 *import,
					    struct vdi_import_watch_scan *ret_scan,
					    struct vdi_import_totals *ret_totals, struct vd_error *reterr);
/* Accepts NULL. Returns NULL. */
struct vdi_import_watch *vdi_import_watch_free(struct vdi_import_watch *import);

#endif
