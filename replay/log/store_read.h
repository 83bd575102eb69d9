/* Reading a store from an actor, shared by recorder and verification: the interval of keys, a page of a list
 * that the store's thread leaves for the actor, transient failures, and back-off. The user provides ownership
 * and locks. */
#ifndef VDI_STORE_READ_H
#define VDI_STORE_READ_H

#include <vedette/store.h>

#include "base.h"

#define VDI_STORE_PAGE_LEN 1000

/* The keys that begin with a prefix. */
struct vdi_store_interval {
	char	       *prefix, *prefix_end;
	struct vd_bytes key, range_end; /* as in requests */
};
/* prefix is copied; empty: all keys. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_store_interval_init(struct vdi_store_interval *interval, struct vd_bytes prefix);
/* Accepts a zeroed interval. */
void vdi_store_interval_fini(struct vdi_store_interval *interval);

/* The answer of a range. */
struct vdi_store_page {
	vd_status	status;
	struct vd_error error;
	vd_rev		revision;
	struct vd_kv  **kvs; /* references */
	size_t		count, capacity;
	bool		more;
};
/* Requests the page at revision (0: newest) after last (NULL: the first page). As vd_store_range. */
VDI_MUST_USE vd_status vdi_store_page_ask(struct vd_store *store, const struct vdi_store_interval *interval,
					  const struct vd_kv *last, vd_rev revision, vd_range_fn done,
					  void *arg);
/* Copies an answer, for done. A contradictory answer (more keys, but none returned) becomes a failure. */
void vdi_store_page_keep(struct vdi_store_page *page, vd_status status, const struct vd_range_result *result,
			 const struct vd_error *error);
/* Makes the page ready for another answer. Accepts a zeroed page. */
void vdi_store_page_drop(struct vdi_store_page *page);

/* Returns true if a retry may succeed. */
bool vdi_store_failure_passes(vd_status status);

struct vdi_store_backoff {
	vd_dur	wait; /* 0 after a success */
	vd_mono retry_at;
};
/* Notes a failure: doubles the wait, between min and max. */
void vdi_store_backoff_note(struct vdi_store_backoff *backoff, vd_mono now, vd_dur min, vd_dur max);

#endif
