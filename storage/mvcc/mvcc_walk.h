/* Every record that a store holds up to a revision, in the order they were made: what hashes and snapshots
 * are computed from.
 *
 * Blocks for as long as the walk takes (a sort of the old part, then the history), so it belongs on a
 * blocking actor; the writer and other readers do not notice. What is walked is one state of the store,
 * whatever is written meanwhile.
 */
#ifndef VDI_MVCC_WALK_H
#define VDI_MVCC_WALK_H

#include <vedette/store.h>

#include "base.h"

enum vdi_mvcc_walk_kind {
	/* as etcd's HashKV counts (E-470): of what is older than compaction, that which is alive at the
	 * revision walked */
	VDI_MVCC_WALK_HASH,
	/* everything a new store needs to answer the same: of what is older, that which was alive at
	 * compaction */
	VDI_MVCC_WALK_SNAPSHOT,
};

struct vdi_mvcc_walk {
	vd_rev current;	  /* of the store */
	vd_rev compacted; /* -1: never */
	vd_rev revision;  /* the last one walked */
	/* Called before the first record. May be NULL. */
	void (*begin)(void *arg, const struct vdi_mvcc_walk *walk);
	/* A put, or a tombstone. Lent. */
	vd_status (*each)(void *arg, const struct vd_kv *kv, bool is_delete);
	void *arg;
};

/* revision 0: the current one. VD_TOO_LARGE_REVISION, VD_EXPIRED (also when compaction overtook the walk),
 * VD_NOMEM, VD_CLOSED, VD_UNSUPPORTED (another kind of store), or what each answered. */
VDI_MUST_USE vd_status vdi_mvcc_walk(struct vd_store *store, enum vdi_mvcc_walk_kind kind, vd_rev revision,
				     struct vdi_mvcc_walk *walk);

#endif
