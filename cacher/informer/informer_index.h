/* The indexes of an informer: (value, key) -> object, one ordered tree per index.
 *
 * Changed by the informer's actor under its lock; read as snapshots by any thread. The counterpart of
 * client-go's Indexer.
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

/* VD_NOMEM. VD_INVALID_ARGUMENT: a name is missing or occurs twice. */
VDI_MUST_USE vd_status vdi_informer_indexes_new(const struct vd_informer_index *from, size_t count,
						struct vdi_informer_index **ret_indexes);
void		       vdi_informer_indexes_free(struct vdi_informer_index *indexes, size_t count);

/* A prepared change: everything it needs is allocated before anything changes. */
struct vdi_index_change {
	struct vdi_index_entry **entries; /* references, of all indexes in their order */
	size_t			*ends;	  /* per index, the end of its entries */
	size_t			 count;
	size_t			 capacity;
	bool			 failed;
};
/* Computes the entries of object (NULL: none). VD_NOMEM. Calls the callers' functions, so no lock is held. */
VDI_MUST_USE vd_status vdi_index_change_prepare(struct vdi_index_change		*change,
						const struct vdi_informer_index *indexes, size_t count,
						struct vd_object *object);
/* Removes old_entries and adds entries. VD_NOMEM changes nothing. Under the informer's lock. */
VDI_MUST_USE vd_status vdi_index_change_apply(const struct vdi_index_change *old_entries,
					      const struct vdi_index_change *entries,
					      struct vdi_informer_index *indexes, size_t count);
void		       vdi_index_change_fini(struct vdi_index_change *change);

/* Returns a snapshot of an index, which the caller releases. VD_NOT_FOUND: no such index. */
VDI_MUST_USE vd_status vdi_informer_index_snapshot(const struct vdi_informer_index *indexes, size_t count,
						   const char *name, struct vdi_btree_snapshot *ret_snapshot);
size_t vdi_informer_index_visit(const struct vdi_btree_snapshot *snapshot, struct vd_bytes value,
				vd_object_visit_fn visit, void *arg);

#endif
