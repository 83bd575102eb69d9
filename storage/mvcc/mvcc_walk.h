/* A walk over all records of a store up to a revision, in the order of their writes. Hashes and snapshots are
 * computed from it.
 *
 * Blocks for the whole walk (a sort of the old part, then the history), so call it from a blocking actor; the
 * writer and other readers are not delayed. The walk sees one state of the store, whatever is written
 * meanwhile.
 */
#ifndef VDI_MVCC_WALK_H
#define VDI_MVCC_WALK_H

#include <vedette/store.h>

#include "base.h"

enum vdi_mvcc_walk_kind {
	/* the records of etcd's HashKV: of those older than compaction, only those live at the walked
	 * revision */
	VDI_MVCC_WALK_HASH,
	/* everything a new store needs to give the same answers: of records older than compaction, those that
	 * were live at compaction */
	VDI_MVCC_WALK_SNAPSHOT,
};

struct vdi_mvcc_walk {
	vd_rev current;	  /* revision of the store */
	vd_rev compacted; /* -1: never */
	vd_rev revision;  /* last revision of the walk */
	/* Called before the first record. May be NULL. */
	void (*begin)(void *arg, const struct vdi_mvcc_walk *walk);
	/* Called for each put or tombstone, borrowed for the call. A failure ends the walk. */
	vd_status (*each)(void *arg, const struct vd_kv *kv, bool is_delete);
	void *arg;
};

/* revision 0: the current one. VD_TOO_LARGE_REVISION, VD_EXPIRED (also if compaction overtakes the walk),
 * VD_NOMEM, VD_CLOSED, VD_UNSUPPORTED (another kind of store), or the error returned by each. */
VDI_MUST_USE vd_status vdi_mvcc_walk(struct vd_store *store, enum vdi_mvcc_walk_kind kind, vd_rev revision,
				     struct vdi_mvcc_walk *walk);

#endif
