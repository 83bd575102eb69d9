/* Candidates: the objects a list or an initial state has to look at, as a snapshot and a walk over a part of
 * it.
 *
 * The newest state is narrowed by the scope's key range or by the smallest usable index; an older one by the
 * key range only (R-443, R-449, W-02, W-11).
 */
#ifndef VDI_CANDIDATES_H
#define VDI_CANDIDATES_H

#include "predicate.h"
#include "storage.h"
#include "watch_cache.h"

struct vdi_candidates {
	struct vdi_btree_snapshot snapshot; /* a reference */
	struct vdi_btree_cursor	  cursor;
	uint64_t		  count;
	size_t			  index; /* which list index was walked, counted from 1; 0: none */
};

/* The key that all of the scope's objects start with, or (*ret_single) the one key. buffer takes
 * VDI_STORAGE_KEY_MAX bytes. false: too long, nothing can match. */
bool vdi_scope_key(struct vd_bytes prefix, bool cluster_scoped, struct vd_bytes namespace_name,
		   struct vd_bytes name, char *buffer, struct vd_bytes *ret_key, bool *ret_single);

/* scope: as above. start (empty: none): the first key wanted. The watch cache's lock is held. */
void vdi_candidates_newest_locked(struct vdi_watch_cache *cache, const struct vdi_predicate *predicate,
				  struct vd_bytes scope, bool single, struct vd_bytes start,
				  struct vdi_candidates *ret_candidates);
/* Takes over snapshot. */
void vdi_candidates_of(struct vdi_btree_snapshot *snapshot, struct vd_bytes scope, bool single,
		       struct vd_bytes start, struct vdi_candidates *ret_candidates);
void vdi_candidates_release(struct vdi_candidates *candidates);

#endif
