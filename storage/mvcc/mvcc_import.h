/* An empty store filled from outside before anybody sees it: revisions, create revisions and versions as they
 * are given.
 *
 * Runs while the store is being opened, before any actor exists; one thread; blocks. Everything is taken into
 * memory first, so that a mistake in what is imported is found before the first byte is written; then it goes
 * to the journal like any commit and is durable when the open returns. Either all of it is in the store that
 * is opened, or the open fails. A process that dies while writing leaves a directory that says so and is not
 * opened again (VD_CORRUPT; vdi_persist_mark).
 */
#ifndef VDI_MVCC_IMPORT_H
#define VDI_MVCC_IMPORT_H

#include "mvcc_store.h"

struct vdi_mvcc_import;

struct vdi_import_change {
	bool is_delete;
	/* key; mod_rev; for a put also value and, where known, create_rev and version (0: what follows from
	 * the record before). Borrowed; not shared with anybody yet. */
	struct vd_kv *kv;
};

/* One transaction. All mod_rev are the same and larger than all before; gaps are fine. VD_INVALID with a
 * sentence (order, a create_rev above mod_rev, a delete of a key that does not exist, one key twice),
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_mvcc_import_commit(struct vdi_mvcc_import	     *import,
					      const struct vdi_import_change *changes, size_t count,
					      struct vd_error *reterr);
/* The state at a revision, as the first thing that is imported: puts in any order, each with its own mod_rev
 * <= revision, each key once. What was before is not known: the store counts as compacted there. Sorts
 * changes. */
VDI_MUST_USE vd_status vdi_mvcc_import_snapshot(struct vdi_mvcc_import *import, vd_rev revision,
						struct vdi_import_change *changes, size_t count,
						struct vd_error *reterr);
/* Older revisions are compacted. Beyond the last revision: with an exact importer the store then stands at
 * that revision, as an etcd does; else VD_INVALID. */
VDI_MUST_USE vd_status vdi_mvcc_import_compact(struct vdi_mvcc_import *import, vd_rev revision,
					       struct vd_error *reterr);

/* A lease, before the keys that hang on it; its time begins now. For importers that are exact. VD_INVALID:
 * the id is 0 or there already. */
VDI_MUST_USE vd_status vdi_mvcc_import_lease(struct vdi_mvcc_import *import, int64_t id, int64_t ttl_s,
					     struct vd_error *reterr);

struct vdi_mvcc_importer {
	/* Imports everything; any error ends the open with it. */
	vd_status (*run)(void *arg, struct vdi_mvcc_import *import, struct vd_error *reterr);
	/* While the journal is written: changes done of all. May be NULL. */
	void (*progress)(void *arg, uint64_t done, uint64_t all);
	void *arg;
	/* Records of another store of this kind: their places within a transaction (sub) and their leases are
	 * kept, and one transaction may write a key more than once. */
	bool is_exact;
	/* Exact only: up to this revision a delete of a key that does not exist is passed over, because
	 * compaction may have removed the key's records. */
	vd_rev compacted;
};

/* Called by the open, after the directory was read. */
VDI_MUST_USE vd_status vdi_mvcc_import_run(struct vdi_mvcc *mvcc, const struct vdi_mvcc_importer *importer,
					   struct vd_error *reterr);

#endif
