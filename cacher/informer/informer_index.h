/* The indexes of an informer: (value, key) -> object, one ordered tree per index.
 *
 * Changed by the informer's actor under its lock; read as snapshots by anybody (R-441's idea for callers' own
 * functions; client-go's Indexer).
 */
#ifndef VDI_INFORMER_INDEX_H
#define VDI_INFORMER_INDEX_H

#include <vedette/informer.h>

#include "base.h"
#include "btree.h"

struct vdi_informer_index {
	char *name;
	void (*values)(void *arg, const struct vd_object *object, vd_index_emit_fn emit, void *emit_arg);
	void		*arg;
	struct vdi_btree entries;
};

/* VD_NOMEM, VD_INVALID_ARGUMENT: a name twice or missing. */
VDI_MUST_USE vd_status vdi_informer_indexes_new(const struct vd_informer_index *from, size_t count,
						struct vdi_informer_index **ret_indexes);
void		       vdi_informer_indexes_free(struct vdi_informer_index *indexes, size_t count);

/* A change in the making: what it needs is allocated before anything is changed. */
struct vdi_index_change {
	struct vdi_index_entry **entries; /* references; of all indexes, in their order */
	size_t			*ends;	  /* per index: where its entries end */
	size_t			 count;
	size_t			 capacity;
	bool			 failed;
};
/* The entries of object (NULL: none). VD_NOMEM. Calls the callers' functions: no lock. */
VDI_MUST_USE vd_status vdi_index_change_prepare(struct vdi_index_change		*change,
						const struct vdi_informer_index *indexes, size_t count,
						struct vd_object *object);
/* old_entries leave, entries enter. VD_NOMEM leaves all as before. Under the informer's lock. */
VDI_MUST_USE vd_status vdi_index_change_apply(const struct vdi_index_change *old_entries,
					      const struct vdi_index_change *entries,
					      struct vdi_informer_index *indexes, size_t count);
void		       vdi_index_change_fini(struct vdi_index_change *change);

/* The objects of one value: VD_NOT_FOUND: no such index. The caller releases the snapshot. */
VDI_MUST_USE vd_status vdi_informer_index_snapshot(const struct vdi_informer_index *indexes, size_t count,
						   const char *name, struct vdi_btree_snapshot *ret_snapshot);
size_t vdi_informer_index_visit(const struct vdi_btree_snapshot *snapshot, struct vd_bytes value,
				vd_object_visit_fn visit, void *arg);

#endif
