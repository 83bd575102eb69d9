/* The choice between cache and store for each read, as in kubernetes/apiserver
 * pkg/storage/cacher/delegator. */
#ifndef VDI_DELEGATOR_H
#define VDI_DELEGATOR_H

#include "cacher_state.h"

/* The parameters of a list, derived from its options alone. */
struct vdi_list_plan {
	bool	is_recursive;
	bool	is_exact;      /* exactly at revision; otherwise not older than it */
	bool	is_consistent; /* not older than the store's current revision */
	vd_rev	revision;
	int64_t limit; /* limit if the cache answers */
	int64_t store_limit;
};

enum vdi_list_source { VDI_LIST_FROM_CACHE, VDI_LIST_FROM_STORE };

/* Applies the defaulting and validation rules of resourceVersion, resourceVersionMatch, limit and continue.
 * token_revision: revision in the continue token; 0 without one. VD_BAD_REQUEST, VD_INVALID. */
VDI_MUST_USE vd_status vdi_list_plan_make(const struct vd_list_options *options, vd_rev token_revision,
					  bool is_recursive, struct vdi_list_plan *ret_plan,
					  struct vd_error *reterr);
/* Chooses the source of a list. has_progress: the store can prove progress; has_revision: the cache can
 * answer an exact read at the plan's revision now. */
enum vdi_list_source vdi_list_source_of(const struct vdi_list_plan *plan, vd_rev cache_revision,
					bool has_progress, bool has_revision);

#endif
