/* Import: fills an empty store from an external source before it is opened, with the given revisions, create
 * revisions and versions.
 *
 * Runs while the store is being opened, on one thread, before any actor exists; blocks. Everything is first
 * gathered in memory, so that invalid input is found before the first byte is written; then it is written to
 * the journal like commits and is durable when the open returns. The import is all or nothing: if it fails,
 * the open fails. If the process dies while writing, the directory is marked as incomplete, and opening it
 * returns VD_CORRUPT (vdi_backend_mark).
 */
#ifndef VDI_MVCC_IMPORT_H
#define VDI_MVCC_IMPORT_H

#include "mvcc_store.h"

struct vdi_mvcc_import;

struct vdi_import_change {
	bool is_delete;
	/* Key and mod_rev; for a put also the value and, if known, create_rev and version (0: derived from
	 * the key's previous record). Borrowed; must not be shared yet. */
	struct vd_kv *kv;
};

/* Imports one transaction. All changes have the same mod_rev, which is above all earlier ones; gaps are
 * allowed. VD_INVALID with a message (wrong order, create_rev above mod_rev, a delete of a key that does not
 * exist, a key more than once), VD_NOMEM. */
VDI_MUST_USE vd_status vdi_mvcc_import_commit(struct vdi_mvcc_import	     *import,
					      const struct vdi_import_change *changes, size_t count,
					      struct vd_error *reterr);
/* Imports the state at a revision; must be the first import. changes are puts in any order, each with its own
 * mod_rev <= revision, each key once; the call sorts them. The store counts as compacted there, because its
 * older revisions are unknown. */
VDI_MUST_USE vd_status vdi_mvcc_import_snapshot(struct vdi_mvcc_import *import, vd_rev revision,
						struct vdi_import_change *changes, size_t count,
						struct vd_error *reterr);
/* Compacts revisions below revision. If it is above the last imported revision, an exact importer moves the
 * store to it, as etcd does; for others it is VD_INVALID. */
VDI_MUST_USE vd_status vdi_mvcc_import_compact(struct vdi_mvcc_import *import, vd_rev revision,
					       struct vd_error *reterr);

/* Imports a lease; must come before the keys attached to it. Its TTL starts now. Only for exact importers.
 * VD_INVALID: the id is 0 or exists, or ttl_s is below 1. */
VDI_MUST_USE vd_status vdi_mvcc_import_lease(struct vdi_mvcc_import *import, int64_t id, int64_t ttl_s,
					     struct vd_error *reterr);

struct vdi_mvcc_importer {
	/* Imports everything; any error fails the open. */
	vd_status (*run)(void *arg, struct vdi_mvcc_import *import, struct vd_error *reterr);
	/* Called while the journal is written: changes written so far and in total. May be NULL. */
	void (*progress)(void *arg, uint64_t done, uint64_t all);
	void *arg;
	/* The records come from another store of this kind or from etcd: their positions within a transaction
	 * (sub) and their leases are kept, and a transaction may write a key more than once. */
	bool is_exact;
	/* Exact only: deletes of a missing key up to this revision are ignored, because compaction may have
	 * removed the key's records. */
	vd_rev compacted;
};

/* Runs the import. Called by the open, after it has read the directory. */
VDI_MUST_USE vd_status vdi_mvcc_import_run(struct vdi_mvcc *mvcc, const struct vdi_mvcc_importer *importer,
					   struct vd_error *reterr);

#endif
