/* A Kubernetes endpoint as a vd_store: the keys below /registry/, as its lists and watches show them.
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
#ifndef VDI_KUBE_STORE_H
#define VDI_KUBE_STORE_H

#include <vedette/store.h>

#include "kube_kinds.h"

struct vdi_kube_store_options {
	const struct vdi_http_client_options *http;  /* borrowed for the store's lifetime */
	const struct vdi_kube_kinds	     *kinds; /* borrowed for the store's lifetime */
	bool				      whole_revisions;
	unsigned watch_timeout_s; /* default 10; each watch lasts up to 1.5 times as long */
};

/* VD_NOMEM, VD_INVALID_ARGUMENT. */
VDI_MUST_USE vd_status vdi_kube_store_new(const struct vd_env		      *env,
					  const struct vdi_kube_store_options *options,
					  struct vd_store **ret_store, struct vd_error *reterr);

#endif
