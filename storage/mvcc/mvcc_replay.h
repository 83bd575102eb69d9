/* Recorded transactions, made again in a store that is open: for the player of event logs.
 *
 * A transaction keeps the revision it was recorded at as long as the store is behind it. Where somebody wrote
 * to the store meanwhile and it stands at that revision already, it gets the next one: order is kept, and
 * nothing is ever made twice. Deletes of keys that are not there change nothing. The writer carries these out
 * in order with all other submissions; durable, visible and told to watches as those are.
 */
#ifndef VDI_MVCC_REPLAY_H
#define VDI_MVCC_REPLAY_H

#include <vedette/store.h>

#include "base.h"
#include "replay_change.h"

/* One transaction at revision (> 0), each key once; or, without changes, the store's revision moves on to it.
 * changes is borrowed for the call. Any thread; never blocks. done as for vd_store_compact: the revision that
 * it got, or the store's when it was passed already and there is nothing to change. VD_FULL: too many in
 * flight; VD_CLOSED, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_mvcc_replay(struct vd_store *store, vd_rev revision,
				       const struct vdi_replay_change *changes, size_t count, vd_done_fn done,
				       void *arg);

#endif
