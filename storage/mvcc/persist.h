/* What the MVCC store asks of a disk: an append-only journal that commits wait for, and a checkpoint (LMDB) behind it.
 *
 * The store's writer is the only caller of append, sync and the getters, on its own (blocking) actor; open is called before that actor
 * exists. A memory-only store has no persist at all.
 *
 * Order of life: vdi_persist_open replays everything into the sink, oldest first; then (append* sync)* ; then close. What was
 * appended and not yet synced is lost in a crash as a whole or as a suffix in revision order, never in part of a transaction.
 */
#ifndef VDI_PERSIST_H
#define VDI_PERSIST_H

#include <vedette/store.h>

#include "base.h"

struct vdi_persist;

struct vdi_change {
	bool	      is_delete; /* kv is a tombstone then: key and mod_rev, sub */
	struct vd_kv *kv;
	/* The live record of the same key that this one supersedes, lent like kv; NULL when the key had none (a create: version 1). By
	 * it compaction finds what is dead without a map of all keys (E-1017): required for a delete and for a put of version > 1. */
	const struct vd_kv *previous;
	bool is_first; /* no earlier version is in this store, whatever its version says (mvcc_import.h) */
};

enum vdi_lease_change_kind { VDI_LEASE_GRANTED, VDI_LEASE_REVOKED, VDI_LEASE_RENEWED };

struct vdi_lease_change {
	enum vdi_lease_change_kind kind;
	int64_t			   id;
	int64_t			   ttl_s;    /* GRANTED */
	vd_wall			   deadline; /* GRANTED, RENEWED: when it expires */
};

/* One unit that is applied wholly or not at all. */
struct vdi_commit {
	vd_rev			       revision; /* of the changes; 0 when there are none */
	const struct vdi_change	      *changes;	 /* sub order */
	size_t			       change_count;
	const struct vdi_lease_change *leases;
	size_t			       lease_count;
	vd_rev			       compact;	  /* > 0: older revisions than this are compacted from here on */
};

/* Receives the state at open: first begin with the compacted revision (-1: never) and the least revision the store must stand at (it never goes back,
 * E-407); then every record that compaction keeps, in revision order; then leases that live. A sink error ends the open with it. The kv is the
 * sink's reference to keep. */
struct vdi_persist_sink {
	vd_status (*begin)(void *arg, vd_rev compacted, vd_rev revision_min, int64_t record_count_estimate);
	vd_status (*change)(void *arg, struct vd_kv *kv, bool is_delete);
	vd_status (*lease)(void *arg, int64_t id, int64_t ttl_s, vd_wall deadline);
	void *arg;
};

/* Blocks. Errors as vd_store_open_mvcc. options->data_dir is not NULL. */
VDI_MUST_USE vd_status vdi_persist_open(const struct vd_env *env, const struct vd_mvcc_options *options, const struct vdi_persist_sink *sink,
					struct vdi_persist **ret_persist, struct vd_error *reterr);
/* Encodes the commit into memory; the caller keeps its references. VD_NOMEM, VD_NO_SPACE (the message says whether the disk or the quota is full, and names the
 * path), VD_IO (an earlier sync failed: the persist is closed for writing until reopened). Nothing of the commit is kept then.
 *
 * Room on the disk is reserved here, for the journal and for the checkpoint. Some of it only commits may use that free something: without a put and without a grant
 * of a lease. The last part of it only compactions may use. */
VDI_MUST_USE vd_status vdi_persist_append(struct vdi_persist *persist, const struct vdi_commit *commit, struct vd_error *reterr);
/* Whether the last VD_NO_SPACE was due to the quota. The writer only. */
bool vdi_persist_is_over_quota(const struct vdi_persist *persist);
/* Whether a commit that was refused with VD_NO_SPACE because the disk is full may fit soon: the checkpoint is making room. Any thread. */
bool vdi_persist_may_make_room(const struct vdi_persist *persist);
/* Bytes on disk that are kept for deletes, compaction, the ends of leases and the checkpoint. Any thread. */
int64_t vdi_persist_reserve_bytes(const struct vdi_persist *persist);
/* Makes everything appended durable with one write and one fdatasync; blocks. On failure nothing appended since the last good sync may be
 * acknowledged or shown; VD_NO_SPACE leaves the persist usable (the tail was undone), VD_IO closes it for writing. */
VDI_MUST_USE vd_status vdi_persist_sync(struct vdi_persist *persist, struct vd_error *reterr);
/* Forgets everything appended since the last good sync, as if it had never been appended; cannot fail. The store calls it when it gives up
 * a group of commits before its sync (memory, quota) and then appends again what still holds, with the same revisions. */
void vdi_persist_discard(struct vdi_persist *persist);
/* From mark to unmark (each durable when it returns) the directory is not to be opened again: vdi_persist_open answers VD_CORRUPT. For work that takes
 * many syncs and means nothing in part. The writer only. */
VDI_MUST_USE vd_status vdi_persist_mark(struct vdi_persist *persist, struct vd_error *reterr);
VDI_MUST_USE vd_status vdi_persist_unmark(struct vdi_persist *persist, struct vd_error *reterr);
/* Bytes on disk, journal and checkpoint: what is in use. Room that is reserved, and journal bytes that the checkpoint has, are left out (two
 * journal files at most while the checkpoint keeps up). */
int64_t vdi_persist_size_bytes(const struct vdi_persist *persist);
/* Ends the checkpoint actor, syncs, releases the lock, frees; done is called when that is over. */
void vdi_persist_close(struct vdi_persist *persist, void (*done)(void *arg), void *arg);

#endif
