/* Which reads are answered by the cache, and which by the store (R-470..R-479, R-580..R-589). */
#ifndef VDI_DELEGATOR_H
#define VDI_DELEGATOR_H

#include "cacher_state.h"

/* What a list asks for, decided from its options alone. */
struct vdi_list_plan {
	bool	is_recursive;
	bool	is_exact;      /* exactly revision; else not older than it */
	bool	is_consistent; /* not older than the store is now */
	vd_rev	revision;
	int64_t limit; /* as the cache honours it */
	int64_t store_limit;
};

enum vdi_list_source { VDI_LIST_FROM_CACHE, VDI_LIST_FROM_STORE };

/* token_revision: of a continue token, 0 without one. VD_BAD_REQUEST, VD_INVALID. */
VDI_MUST_USE vd_status vdi_list_plan_make(const struct vd_list_options *options, vd_rev token_revision,
					  bool is_recursive, struct vdi_list_plan *ret_plan,
					  struct vd_error *reterr);
/* R-584..R-586. has_progress: the store can prove progress; has_revision: the cache could answer an exact
 * read of the plan's revision now. */
enum vdi_list_source vdi_list_source_of(const struct vdi_list_plan *plan, vd_rev cache_revision,
					bool has_progress, bool has_revision);

#endif
