/* Reading a store from an actor: what recorder and verification share. Which keys; a page of a list, left by
 * the store's thread for the actor; which failures pass; how long to wait after one. Who owns what, and
 * locks, are the user's. */
#ifndef VDI_STORE_READ_H
#define VDI_STORE_READ_H

#include <vedette/store.h>

#include "base.h"

#define VDI_STORE_PAGE_LEN 1000

/* The keys that begin with a prefix. */
struct vdi_store_interval {
	char	       *prefix, *prefix_end;
	struct vd_bytes key, range_end; /* as requests want them */
};
/* prefix is copied; empty: all keys. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_store_interval_init(struct vdi_store_interval *interval, struct vd_bytes prefix);
/* Copes with a zeroed one. */
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
/* Asks for the page of revision (0: the newest) behind last (NULL: the first). As vd_store_range. */
VDI_MUST_USE vd_status vdi_store_page_ask(struct vd_store *store, const struct vdi_store_interval *interval,
					  const struct vd_kv *last, vd_rev revision, vd_range_fn done,
					  void *arg);
/* For done: keeps what it was given. An answer that contradicts itself becomes a failure. */
void vdi_store_page_keep(struct vdi_store_page *page, vd_status status, const struct vd_range_result *result,
			 const struct vd_error *error);
/* Ready for another. Copes with a zeroed one. */
void vdi_store_page_drop(struct vdi_store_page *page);

/* Trying again later may help. */
bool vdi_store_failure_passes(vd_status status);

struct vdi_store_backoff {
	vd_dur	wait; /* 0 after a success */
	vd_mono retry_at;
};
/* After a failure: twice as long as before, between min and max. */
void vdi_store_backoff_note(struct vdi_store_backoff *backoff, vd_mono now, vd_dur min, vd_dur max);

#endif
