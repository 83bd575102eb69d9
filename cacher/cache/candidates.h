/* Candidates: the objects that a list or an initial state must examine, as a snapshot and a walk over a part
 * of it.
 *
 * For the newest state the scope's key range or the smallest usable index is walked; for an older one the key
 * range. Unlike upstream, a list by index is in key order and can start at a continue token.
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
	size_t			  index; /* the walked list index, counted from 1; 0: none */
};

/* Composes the key prefix of all objects of the scope, or the key of the only one (*ret_single). buffer has
 * VDI_STORAGE_KEY_MAX bytes. false: too long, no object can match. */
bool vdi_scope_key(struct vd_bytes prefix, bool cluster_scoped, struct vd_bytes namespace_name,
		   struct vd_bytes name, char *buffer, struct vd_bytes *ret_key, bool *ret_single);

/* scope: as above. start: first key of the walk; empty: none. The watch cache's lock is held. */
void vdi_candidates_newest_locked(struct vdi_watch_cache *cache, const struct vdi_predicate *predicate,
				  struct vd_bytes scope, bool single, struct vd_bytes start,
				  struct vdi_candidates *ret_candidates);
/* Takes over snapshot. */
void vdi_candidates_of(struct vdi_btree_snapshot *snapshot, struct vd_bytes scope, bool single,
		       struct vd_bytes start, struct vdi_candidates *ret_candidates);
void vdi_candidates_release(struct vdi_candidates *candidates);

#endif
