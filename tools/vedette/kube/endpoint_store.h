/* All kinds of a Kubernetes endpoint as one vd_store: the keys below /registry/, as its lists and watches
 * show them. For programs that record or verify what the server sends: unlike the store of
 * vd_store_open_kube, each watch here is a watch of the server, events are not repaired or hidden, and
 * watches begin at any revision that the server has.
 *
 * 	range	lists, page by page; a revision requests exactly that one (resourceVersionMatch=Exact), so
 * 		that the pages of all kinds show the same state
 * 	watch	one watch for each kind in the interval. They end and are reopened frequently (with a short
 * 		time-out, because a server sends a bookmark before it ends a watch); events that are repeated
 * 		because of that are dropped
 * 	txn	one put (the object as JSON, unconditional) or one delete of one key, without compares. The
 * 		answer has the object's new revision; that of a delete is unknown (0). No results: another
 * 		writer was faster
 * 	others	VD_UNSUPPORTED
 *
 * Values are the objects as in kube_object.h; create_rev is known for ADDED events of a watch, version never.
 * With whole_revisions the events of all kinds are delivered in the order of their revisions, each revision
 * complete: an event waits until every kind has passed it, for about the duration of a watch, twice that with
 * kinds without bookmarks. Otherwise they are delivered as the server sends them, and a revision of several
 * objects may be split into several batches.
 *
 * Memory: one page of a list for each range, 64 MiB for the events waiting in a watch; streams that are ahead
 * are not read. An invalid response is VD_BAD_REQUEST with a message that names the kind; transient errors
 * (no connection, 5xx, 429) are VD_UNAVAILABLE or VD_FULL.
 */
#ifndef VDI_ENDPOINT_STORE_H
#define VDI_ENDPOINT_STORE_H

#include <vedette/store.h>

#include "endpoint_kinds.h"

struct vdi_endpoint_store_options {
	struct vd_kube			*kube;	/* open for the store's lifetime */
	const struct vdi_endpoint_kinds *kinds; /* borrowed for the store's lifetime */
	bool				 whole_revisions;
	unsigned watch_timeout_s; /* default 10; each watch lasts up to 1.5 times as long */
};

/* VD_NOMEM, VD_CLOSED. */
VDI_MUST_USE vd_status vdi_endpoint_store_new(const struct vdi_endpoint_store_options *options,
					      struct vd_store **ret_store, struct vd_error *reterr);

#endif
