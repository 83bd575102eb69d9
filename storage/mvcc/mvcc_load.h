/* Loading a data directory: makes the first state of a store from its journal and checkpoint.
 *
 * vd_store_open_mvcc calls it before any actor exists. It opens the persistent backend, whose replay fills
 * the writer's working trees and the history; on success mvcc->persist is set. On failure the caller undoes
 * everything, including the backend.
 */
#ifndef VDI_MVCC_LOAD_H
#define VDI_MVCC_LOAD_H

#include "backend_tuning.h"
#include "mvcc_store.h"

VDI_MUST_USE vd_status vdi_mvcc_load(struct vdi_mvcc *mvcc, const struct vdi_backend_tuning *tuning,
				     struct vd_error *reterr);
/* Attaches all live keys that name a lease to it. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_mvcc_load_attach(struct vdi_mvcc *mvcc);
/* Moves the events gathered in the writer's group to the history. VD_NOMEM: they stay in the group. */
VDI_MUST_USE vd_status vdi_mvcc_load_flush(struct vdi_mvcc *mvcc, vd_mono now);

#endif
