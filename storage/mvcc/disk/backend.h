/* The disk of the MVCC store: an append-only journal that commits wait for, and a checkpoint (LMDB) that is
 * written later.
 *
 * Only the store's writer calls append, sync and the getters, on its own (blocking) actor; open is called
 * before that actor exists. A memory-only store has no backend.
 *
 * Order of calls: vdi_backend_open passes the state to the sink, oldest first; then (append* sync)*; then
 * close. A crash loses all commits that were appended and not synced, or the newest of them; never a part of
 * a transaction.
 */
#ifndef VDI_BACKEND_H
#define VDI_BACKEND_H

#include <vedette/store.h>

#include "base.h"
#include "commit.h"

struct vdi_backend;

/* Blocks. Errors as vd_store_open_mvcc. options->data_dir is not NULL. */
VDI_MUST_USE vd_status vdi_backend_open(const struct vd_env *env, const struct vd_mvcc_options *options,
					const struct vdi_backend_sink *sink, struct vdi_backend **ret_backend,
					struct vd_error *reterr);
/* Encodes the commit into memory; the caller keeps its references. VD_NOMEM, VD_NO_SPACE (the message says
 * whether the disk or the quota is full, and names the path), VD_IO (an earlier sync failed: the backend is
 * closed for writing until it is reopened). After an error the commit is not appended.
 *
 * Reserves room on the disk, for the journal and for the checkpoint. A part of the room is only for commits
 * that free space, which have no put and no grant of a lease. The last part is only for compactions. */
VDI_MUST_USE vd_status vdi_backend_append(struct vdi_backend *backend, const struct vdi_commit *commit,
					  struct vd_error *reterr);
/* Returns true if the quota caused the last VD_NO_SPACE. The writer only. */
bool vdi_backend_is_over_quota(const struct vdi_backend *backend);
/* Returns true if a commit that was refused because the disk is full may fit soon: the checkpointer is making
 * room. Any thread. */
bool vdi_backend_may_make_room(const struct vdi_backend *backend);
/* Returns the size of the room on disk that is reserved for deletes, compaction, the ends of leases and the
 * checkpoint, in bytes. Any thread. */
int64_t vdi_backend_reserve_bytes(const struct vdi_backend *backend);
/* Makes all appended commits durable with one write and one fdatasync; blocks. After a failure no commit that
 * was appended since the last successful sync may be acknowledged or shown. VD_NO_SPACE: the commits were
 * removed, and the backend stays usable; VD_IO: it is closed for writing. */
VDI_MUST_USE vd_status vdi_backend_sync(struct vdi_backend *backend, struct vd_error *reterr);
/* Discards all commits that were appended since the last successful sync; cannot fail. The store calls it if
 * it gives up a group of commits before its sync (memory, quota); it then appends the remaining ones again,
 * with the same revisions. */
void vdi_backend_discard(struct vdi_backend *backend);
/* Mark the directory as unusable, and remove the mark; each is on disk on return. While there is a mark,
 * vdi_backend_open answers VD_CORRUPT. For work of many syncs that is useless if it is incomplete. The writer
 * only. */
VDI_MUST_USE vd_status vdi_backend_mark(struct vdi_backend *backend, struct vd_error *reterr);
VDI_MUST_USE vd_status vdi_backend_unmark(struct vdi_backend *backend, struct vd_error *reterr);
/* Returns the used bytes of journal and checkpoint on disk. Reserved room is not counted, nor are journal
 * records that the checkpoint contains (at most two journal files, while the checkpointer keeps up). */
int64_t vdi_backend_size_bytes(const struct vdi_backend *backend);
/* Ends the checkpointer, syncs, releases the lock of the directory and frees the backend; then calls done. */
void vdi_backend_close(struct vdi_backend *backend, void (*done)(void *arg), void *arg);

#endif
