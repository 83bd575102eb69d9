/* A Kubernetes endpoint as a vd_store: what lies below /registry/ there, as its lists and watches show it.
 *
 * 	range	lists, page by page; a revision asks for exactly that one (resourceVersionMatch=Exact), so that the pages of all kinds show one moment
 * 	watch	one watch for each kind in the interval. They end and are opened again all the time (their time-out is short: a server sends a bookmark before it ends one); what
 * 		comes twice because of that is left out
 * 	txn	one put (the object as JSON, whatever is there) or one delete of one key, without compares. Answered with the object's new revision; of a delete the revision is not
 * 		known (0). Nothing in the results: somebody else was faster
 * 	others	VD_UNSUPPORTED
 *
 * Values are the objects as in kube_object.h; create_rev is known for what a watch shows as ADDED, version
 * never. With whole_revisions the events of all kinds come in the order of their revisions, each revision
 * complete: an event waits until every kind has passed it, for about as long as a watch lasts, twice that
 * with kinds that send no bookmarks. Without, they come as the server sends them, and a revision of several
 * objects may come in several batches.
 *
 * Memory: one page of a list for each range, 64 MiB for what waits in a watch; who is ahead is not read. An
 * answer that makes no sense is VD_BAD_REQUEST with a sentence that names the kind; what may pass (no
 * connection, 5xx, 429) is VD_UNAVAILABLE or VD_FULL.
 */
#ifndef VDI_KUBE_STORE_H
#define VDI_KUBE_STORE_H

#include <vedette/store.h>

#include "kube_kinds.h"

struct vdi_kube_store_options {
	const struct vdi_http_client_options *http;  /* lent for the store's life */
	const struct vdi_kube_kinds	     *kinds; /* lent for the store's life */
	bool				      whole_revisions;
	unsigned watch_timeout_s; /* default 10; each watch lasts up to half as long again */
};

/* VD_NOMEM, VD_INVALID_ARGUMENT. */
VDI_MUST_USE vd_status vdi_kube_store_new(const struct vd_env		      *env,
					  const struct vdi_kube_store_options *options,
					  struct vd_store **ret_store, struct vd_error *reterr);

#endif
