/* The objects of one resource in key order, with list indexes and a few retained snapshots.
 *
 * Guarded by the watch cache's lock; the cacher's actor is the only writer. A snapshot is O(1) and is read
 * without a lock. An exact read of an older revision starts from the nearest retained snapshot that is newer
 * and undoes the events between (vdi_object_undo). So a write never pays for snapshots that are not read. For
 * the same reason a field's index can be kept on demand: it is built for the second list that could use it,
 * and is dropped when it was not used for as many changes as there are objects. An index costs each change a
 * descent in a tree and each object 14 bytes, and most declared fields are never used by a list.
 */
#ifndef VDI_OBJECT_STORE_H
#define VDI_OBJECT_STORE_H

#include <vedette/codec.h>

#include "base.h"
#include "btree.h"
#include "history.h"
#include "object_index.h"

#define VDI_SNAPSHOT_COUNT_MAX 16
#define VDI_DEMAND_LABELS_MAX 4 /* labels with an index on demand at a time */

struct vdi_retained_snapshot {
	vd_rev			  revision;
	uint64_t		  position; /* in the history: events from here on are not included */
	struct vdi_btree_snapshot snapshot;
};

struct vdi_object_store {
	struct vdi_btree objects;
	/* index_count declared ones, then VDI_DEMAND_LABELS_MAX for labels on demand; an entry without a
	 * label_key is free. */
	struct vdi_object_index *indexes;
	size_t			 index_count; /* number of declared indexes */
	bool			 has_labels_on_demand;
	unsigned		 changes_until_rebuild;
	int64_t			 bytes; /* serialized size of the objects */

	/* Sorted by position. If it is full, the oldest is dropped. */
	struct vdi_retained_snapshot retained[VDI_SNAPSHOT_COUNT_MAX];
	size_t			     retained_count;
};

/* Creates indexes for the first field_count of the codec's declared fields and for index_labels
 * (NULL-terminated or NULL). VD_NOMEM. */
VDI_MUST_USE vd_status vdi_object_store_init(struct vdi_object_store *store, size_t field_count,
					     const char *const *index_labels);
void		       vdi_object_store_fini(struct vdi_object_store *store);
/* Switches field indexes, and indexes of other labels, to on demand. Only while the store is empty. */
void vdi_object_store_on_demand(struct vdi_object_store *store);
/* Notes that a list of candidate_count objects could use that index. Returns true if it can be used now;
 * builds it if enough lists could have used it. */
bool vdi_object_store_ask(struct vdi_object_store *store, size_t index, uint64_t candidate_count);
/* The same for a label without a declared index. Borrowed; NULL: no index yet, or no free entry. */
struct vdi_object_index *vdi_object_store_ask_label(struct vdi_object_store *store, struct vd_bytes key,
						    uint64_t candidate_count);

/* Borrowed; NULL if absent. */
struct vd_object *vdi_object_store_get(const struct vdi_object_store *store, struct vd_bytes key);
/* Prefetches the memory that changes of these keys will read, so that the cache misses overlap. Changes
 * nothing; the writer only. count <= VDI_PREPARE_MAX. */
void vdi_object_store_prepare(const struct vdi_object_store *store, const struct vd_bytes *keys,
			      size_t count);
/* Replaces the object with this key by object, or removes it if object is NULL. *ret_old_object: the previous
 * object, whose reference the caller owns; NULL: none. VD_NOMEM changes nothing. */
VDI_MUST_USE vd_status vdi_object_store_change(struct vdi_object_store *store, struct vd_bytes key,
					       struct vd_object *object, struct vd_object **ret_old_object);
/* Undoes the changes of events (entries may be NULL); before is the state before them. Cannot fail; takes
 * over before. */
void vdi_object_store_restore(struct vdi_object_store *store, struct vdi_btree_snapshot *before,
			      struct vdi_event *const *events, size_t count);
/* Returns the serialized size. */
int64_t vdi_object_store_size_of(const struct vd_object *object);
/* Takes over all objects of the tree, which is left empty. bytes: their total size; -1: compute it. Drops the
 * retained snapshots. Declared indexes are unusable until they are built again. */
void vdi_object_store_replace(struct vdi_object_store *store, struct vdi_btree *objects, int64_t bytes);
/* Rebuilds a declared index in two steps, so that lists do not wait. Returns true if the index should be
 * built; the caller builds it in *ret_fresh from a snapshot of the objects, which must not change until
 * _end. */
VDI_MUST_USE bool vdi_object_store_index_begin(const struct vdi_object_store *store, size_t index,
					       struct vdi_object_index *ret_fresh);
/* Takes over fresh. */
void vdi_object_store_index_end(struct vdi_object_store *store, size_t index, struct vdi_object_index *fresh);

/* Takes a snapshot, which the caller releases. */
void vdi_object_store_snapshot(const struct vdi_object_store *store, struct vdi_btree_snapshot *ret_snapshot);
/* Keeps a snapshot (another reference) of the state at revision for later exact reads. Cannot fail. */
void vdi_object_store_retain(struct vdi_object_store *store, const struct vdi_btree_snapshot *snapshot,
			     vd_rev revision, uint64_t position);
/* Drops retained snapshots with lower revisions. */
void vdi_object_store_forget(struct vdi_object_store *store, vd_rev revision_below);
/* Returns the retained snapshot with the smallest position >= position, borrowed; NULL: none. */
const struct vdi_retained_snapshot *vdi_object_store_nearest(const struct vdi_object_store *store,
							     uint64_t			    position);

/* Undoes one event in a private tree. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_object_undo(struct vdi_btree *objects, const struct vdi_event *event);

#endif
