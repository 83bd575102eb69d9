/* The objects of one resource in key order, with list indexes and a few retained snapshots.
 *
 * Belongs to the cacher's lock; the dispatching actor is the only writer. A snapshot is O(1) and read without
 * any lock. Exact reads of an older revision start from the nearest retained snapshot that is newer and take
 * the events between back (vdi_object_undo), so a write never pays for snapshots that nobody reads
 * (R-445..R-450, W-08). For the same reason a field's index may be kept on demand: the second list that could
 * use it builds it, and it goes when it was not used for as many changes as there are objects. An index costs
 * each change a walk down a tree and each object 14 bytes, and most declared fields are never listed by.
 */
#ifndef VDI_OBJECT_STORE_H
#define VDI_OBJECT_STORE_H

#include <vedette/codec.h>

#include "base.h"
#include "btree.h"
#include "history.h"
#include "object_index.h"

#define VDI_SNAPSHOT_COUNT_MAX 16
#define VDI_DEMAND_LABELS_MAX 4 /* labels that have an index on demand at a time */

struct vdi_retained_snapshot {
	vd_rev			  revision;
	uint64_t		  position; /* of the history: events from here on are not in it */
	struct vdi_btree_snapshot snapshot;
};

struct vdi_object_store {
	struct vdi_btree objects;
	/* behind index_count of them: VDI_DEMAND_LABELS_MAX for labels on demand; a place without a label_key
	 * is free */
	struct vdi_object_index *indexes;
	size_t			 index_count; /* declared ones */
	bool			 has_labels_on_demand;
	unsigned		 changes_until_rebuild;
	int64_t			 bytes; /* serialized, of the objects */

	/* Sorted by position. When full the oldest goes. */
	struct vdi_retained_snapshot retained[VDI_SNAPSHOT_COUNT_MAX];
	size_t			     retained_count;
};

/* The first field_count of the codec's declared fields get an index, and the labels of index_labels.
 * index_labels: NULL-terminated or NULL. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_object_store_init(struct vdi_object_store *store, size_t field_count,
					     const char *const *index_labels);
void		       vdi_object_store_fini(struct vdi_object_store *store);
/* From now on, before there are objects: field indexes are kept on demand. Labels get indexes on demand
 * too. */
void vdi_object_store_on_demand(struct vdi_object_store *store);
/* A list of candidate_count objects could use that index. Returns whether it can be used now; builds it when
 * it has been asked for often enough. */
bool vdi_object_store_ask(struct vdi_object_store *store, size_t index, uint64_t candidate_count);
/* The same for a label without a declared index. Lent; NULL: there is none yet, or no place for one. */
struct vdi_object_index *vdi_object_store_ask_label(struct vdi_object_store *store, struct vd_bytes key,
						    uint64_t candidate_count);

/* Lent; NULL when absent. */
struct vd_object *vdi_object_store_get(const struct vdi_object_store *store, struct vd_bytes key);
/* Changes of these keys follow: what they will look at is asked for ahead, all of them at once, so that they
 * wait for memory together and not one after the other. Changes nothing; the writer only. count: up to
 * VDI_PREPARE_MAX. */
void vdi_object_store_prepare(const struct vdi_object_store *store, const struct vd_bytes *keys,
			      size_t count);
/* object takes the place of the one that has its key; object NULL: that of key is removed. *ret_old_object:
 * the one that was there, whose reference is the caller's; NULL: there was none. VD_NOMEM leaves all as
 * before. */
VDI_MUST_USE vd_status vdi_object_store_change(struct vdi_object_store *store, struct vd_bytes key,
					       struct vd_object *object, struct vd_object **ret_old_object);
/* Takes the changes that events (NULL: none) stand for back, of which before shows the state in front of.
 * Cannot fail; takes over before. */
void vdi_object_store_restore(struct vdi_object_store *store, struct vdi_btree_snapshot *before,
			      struct vdi_event *const *events, size_t count);
/* Serialized. */
int64_t vdi_object_store_size_of(const struct vd_object *object);
/* Takes over the whole content of objects (left empty), of so many bytes together (-1: they are counted);
 * retained snapshots are dropped. Declared indexes cannot be used until they are built anew. */
void vdi_object_store_replace(struct vdi_object_store *store, struct vdi_btree *objects, int64_t bytes);
/* In two steps, so that lists need not wait: whether that declared index is to be built, which the caller
 * then does in *ret_fresh from a snapshot of what is there, and nothing may change until it is given back. */
VDI_MUST_USE bool vdi_object_store_index_begin(const struct vdi_object_store *store, size_t index,
					       struct vdi_object_index *ret_fresh);
/* Takes over fresh. */
void vdi_object_store_index_end(struct vdi_object_store *store, size_t index, struct vdi_object_index *fresh);

/* The caller releases it. */
void vdi_object_store_snapshot(const struct vdi_object_store *store, struct vdi_btree_snapshot *ret_snapshot);
/* Keeps a snapshot (another reference) of the state at revision for later exact reads. Cannot fail. */
void vdi_object_store_retain(struct vdi_object_store *store, const struct vdi_btree_snapshot *snapshot,
			     vd_rev revision, uint64_t position);
/* Drops those whose revision is below. */
void vdi_object_store_forget(struct vdi_object_store *store, vd_rev revision_below);
/* The retained snapshot with the smallest position >= position; NULL: none. Lent. */
const struct vdi_retained_snapshot *vdi_object_store_nearest(const struct vdi_object_store *store,
							     uint64_t			    position);

/* Takes one event back in a private tree. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_object_undo(struct vdi_btree *objects, const struct vdi_event *event);

#endif
