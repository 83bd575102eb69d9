/* A list index: maps a value of one declared field or one label to the objects that have it, in key order.
 *
 * It takes about 14 bytes per object and 100 per distinct value. Only the newest state is indexed; the
 * objects of one value can be snapshotted in O(1), like the whole store. If memory runs out, the index
 * becomes unusable, is dropped, and is built again later; meanwhile readers scan. An index on demand exists
 * only while lists use it (object_store.h). Guarded by the watch cache's lock. Upstream sorts the objects at
 * each list instead.
 */
#ifndef VDI_OBJECT_INDEX_H
#define VDI_OBJECT_INDEX_H

#include <vedette/codec.h>

#include "base.h"
#include "btree.h"

/* An index on demand is built when this many lists could have used it, because building it costs more than
 * one list. */
#define VDI_INDEX_ASKED_ENOUGH 2
/* Maximum objects prefetched together. */
#define VDI_PREPARE_MAX 16

struct vdi_index_posting;

struct vdi_object_index {
	/* Fixed at creation. */
	char  *label_key;   /* NULL: a field */
	size_t field_index; /* in the codec's declared fields */
	bool   is_on_demand;

	/* Only of an index on demand. */
	unsigned asked;		  /* lists that could have used it since it was dropped or built */
	uint64_t changes_unasked; /* changes since the last list that used it */

	struct vdi_index_posting **buckets;
	size_t			   bucket_count; /* a power of two, or 0 */
	size_t			   posting_count;
	bool			   is_usable;
};

extern const struct vdi_btree_ops vdi_object_btree_ops;

/* label_key is copied; NULL for a field. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_object_index_init(struct vdi_object_index *index, const char *label_key,
					     size_t field_index);
void		       vdi_object_index_fini(struct vdi_object_index *index);
void		       vdi_object_index_clear(struct vdi_object_index *index);
/* Removes old_object and adds object; either may be NULL. Out of memory makes the index unusable. */
void vdi_object_index_change(struct vdi_object_index *index, struct vd_object *old_object,
			     struct vd_object *object);
/* Prefetches the memory that a change of each of these objects will read; entries may be NULL. At most
 * VDI_PREPARE_MAX. Changes nothing. */
void vdi_object_index_prepare(const struct vdi_object_index *index, struct vd_object *const *objects,
			      size_t count);
/* Returns true if the index should exist: an index on demand only if enough lists could have used it. */
static inline bool vdi_object_index_is_wanted(const struct vdi_object_index *index)
{
	return !index->is_on_demand || index->asked >= VDI_INDEX_ASKED_ENOUGH;
}
/* Makes the index unusable; an index on demand is no longer wanted. */
void vdi_object_index_drop(struct vdi_object_index *index);
/* Makes the index unusable until it is rebuilt. */
void vdi_object_index_give_up(struct vdi_object_index *index);
/* Builds the index from scratch; unusable if out of memory. */
void vdi_object_index_build(struct vdi_object_index *index, const struct vdi_btree_snapshot *objects);
/* Returns the objects with that value, an empty snapshot if there are none. The caller releases it. false:
 * the index is unusable, scan instead. */
bool vdi_object_index_snapshot(const struct vdi_object_index *index, struct vd_bytes value,
			       struct vdi_btree_snapshot *ret_snapshot);
/* Returns the number of objects with the value. */
uint64_t vdi_object_index_count(const struct vdi_object_index *index, struct vd_bytes value);

#endif
