/* Replay of recorded transactions into an open store, for the player of event logs.
 *
 * A transaction gets its recorded revision if the store is below it. If other clients wrote meanwhile and the
 * store has reached that revision, the transaction gets the next one: the order is kept, and no transaction
 * is executed twice. Deletes of missing keys change nothing. The writer executes replays in order with all
 * other submissions, and makes them durable, publishes them and notifies watches in the same way.
 */
#ifndef VDI_MVCC_REPLAY_H
#define VDI_MVCC_REPLAY_H

#include <vedette/store.h>

#include "base.h"
#include "replay_change.h"

/* Replays one transaction at revision (> 0), each key at most once. Without changes, raises the store's
 * revision to it. changes is borrowed for the call. Any thread; never blocks. done is called as for
 * vd_store_compact, with the transaction's actual revision, or with the store's if that is already higher and
 * there is nothing to change. VD_FULL: too many submissions in flight; VD_CLOSED, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_mvcc_replay(struct vd_store *store, vd_rev revision,
				       const struct vdi_replay_change *changes, size_t count, vd_done_fn done,
				       void *arg);

#endif
