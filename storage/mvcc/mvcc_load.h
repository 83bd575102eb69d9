/* What a data directory holds becomes the first state of a store.
 *
 * Called by vd_store_open_mvcc before any actor exists. Opens the persist, whose replay fills the writer's
 * working trees and the history log; on success mvcc->persist is set. On failure the caller undoes
 * everything, persist included.
 */
#ifndef VDI_MVCC_LOAD_H
#define VDI_MVCC_LOAD_H

#include "mvcc_store.h"
#include "persist_tuning.h"

VDI_MUST_USE vd_status vdi_mvcc_load(struct vdi_mvcc *mvcc, const struct vdi_persist_tuning *tuning,
				     struct vd_error *reterr);
/* Attachments of leases for all live keys that name one. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_mvcc_load_attach(struct vdi_mvcc *mvcc);
/* The events gathered in the writer's group become history. VD_NOMEM: they stay there. */
VDI_MUST_USE vd_status vdi_mvcc_load_flush(struct vdi_mvcc *mvcc, vd_mono now);

#endif
