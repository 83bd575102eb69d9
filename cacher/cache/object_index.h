/* A list index: value of one declared field or one label -> the objects that have it, in key order.
 *
 * About 14 bytes per object and 100 per distinct value. Only the newest state is indexed; the objects of one
 * value can be snapshotted in O(1) like the whole store. An index that ran out of memory says it is unusable,
 * is dropped, and is built again later; readers scan meanwhile. An index on demand is there only while lists
 * ask for it (object_store.h). Belongs to the cacher's lock. (R-441, R-442; ordered where upstream sorts,
 * W-03.)
 */
#ifndef VDI_OBJECT_INDEX_H
#define VDI_OBJECT_INDEX_H

#include <vedette/codec.h>

#include "base.h"
#include "btree.h"

/* So many lists that would have used it, and an index on demand is built: one list alone costs less than
 * that. */
#define VDI_INDEX_ASKED_ENOUGH 2
/* Objects whose memory is asked for together. */
#define VDI_PREPARE_MAX 16

struct vdi_index_posting;

struct vdi_object_index {
	/* Fixed at creation. */
	char  *label_key;   /* NULL: a field */
	size_t field_index; /* in the codec's declared fields */
	bool   is_on_demand;

	/* Of one on demand. */
	unsigned asked;		  /* lists that could have used it since it went, or was built */
	uint64_t changes_unasked; /* since the last list that used it */

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
/* old_object leaves, object enters; either may be NULL. Out of memory makes the index unusable. */
void vdi_object_index_change(struct vdi_object_index *index, struct vd_object *old_object,
			     struct vd_object *object);
/* Asks the processor for what a change of each of these objects will look at; NULLs among them are fine. At
 * most VDI_PREPARE_MAX. Changes nothing. */
void vdi_object_index_prepare(const struct vdi_object_index *index, struct vd_object *const *objects,
			      size_t count);
/* Whether it is to be there: one on demand when lists have asked for it. */
static inline bool vdi_object_index_is_wanted(const struct vdi_object_index *index)
{
	return !index->is_on_demand || index->asked >= VDI_INDEX_ASKED_ENOUGH;
}
/* Drops it: unusable. */
void vdi_object_index_drop(struct vdi_object_index *index);
/* Unusable for now; it is wanted as before. */
void vdi_object_index_give_up(struct vdi_object_index *index);
/* Builds it from scratch; unusable when out of memory. */
void vdi_object_index_build(struct vdi_object_index *index, const struct vdi_btree_snapshot *objects);
/* The objects with that value; an empty snapshot when there are none. The caller releases it. false:
 * unusable, scan instead. */
bool vdi_object_index_snapshot(const struct vdi_object_index *index, struct vd_bytes value,
			       struct vdi_btree_snapshot *ret_snapshot);
/* How many have the value. */
uint64_t vdi_object_index_count(const struct vdi_object_index *index, struct vd_bytes value);

#endif
