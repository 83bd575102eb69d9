/* What the MVCC store asks of a disk: an append-only journal that commits wait for, and a checkpoint (LMDB)
 * behind it.
 *
 * The store's writer is the only caller of append, sync and the getters, on its own (blocking) actor; open is
 * called before that actor exists. A memory-only store has no persist at all.
 *
 * Order of life: vdi_backend_open replays everything into the sink, oldest first; then (append* sync)* ; then
 * close. What was appended and not yet synced is lost in a crash as a whole or as a suffix in revision order,
 * never in part of a transaction.
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
 * closed for writing until reopened). Nothing of the commit is kept then.
 *
 * Room on the disk is reserved here, for the journal and for the checkpoint. Some of it only commits may use
 * that free something: without a put and without a grant of a lease. The last part of it only compactions may
 * use. */
VDI_MUST_USE vd_status vdi_backend_append(struct vdi_backend *backend, const struct vdi_commit *commit,
					  struct vd_error *reterr);
/* Whether the last VD_NO_SPACE was due to the quota. The writer only. */
bool vdi_backend_is_over_quota(const struct vdi_backend *backend);
/* Whether a commit that was refused with VD_NO_SPACE because the disk is full may fit soon: the checkpoint is
 * making room. Any thread. */
bool vdi_backend_may_make_room(const struct vdi_backend *backend);
/* Bytes on disk that are kept for deletes, compaction, the ends of leases and the checkpoint. Any thread. */
int64_t vdi_backend_reserve_bytes(const struct vdi_backend *backend);
/* Makes everything appended durable with one write and one fdatasync; blocks. On failure nothing appended
 * since the last good sync may be acknowledged or shown; VD_NO_SPACE leaves the backend usable (the tail was
 * undone), VD_IO closes it for writing. */
VDI_MUST_USE vd_status vdi_backend_sync(struct vdi_backend *backend, struct vd_error *reterr);
/* Forgets everything appended since the last good sync, as if it had never been appended; cannot fail. The
 * store calls it when it gives up a group of commits before its sync (memory, quota) and then appends again
 * what still holds, with the same revisions. */
void vdi_backend_discard(struct vdi_backend *backend);
/* From mark to unmark (each durable when it returns) the directory is not to be opened again:
 * vdi_backend_open answers VD_CORRUPT. For work that takes many syncs and means nothing in part. The writer
 * only. */
VDI_MUST_USE vd_status vdi_backend_mark(struct vdi_backend *backend, struct vd_error *reterr);
VDI_MUST_USE vd_status vdi_backend_unmark(struct vdi_backend *backend, struct vd_error *reterr);
/* Bytes on disk, journal and checkpoint: what is in use. Room that is reserved, and journal bytes that the
 * checkpoint has, are left out (two journal files at most while the checkpoint keeps up). */
int64_t vdi_backend_size_bytes(const struct vdi_backend *backend);
/* Ends the checkpoint actor, syncs, releases the lock, frees; done is called when that is over. */
void vdi_backend_close(struct vdi_backend *backend, void (*done)(void *arg), void *arg);

#endif
