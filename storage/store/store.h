/* What the checked front of vedette/store.h and the implementations share: what a valid request is.
 *
 * All functions may be called from any thread; none blocks or allocates. A request that passes here is within
 * every documented bound, so implementations need not look again.
 */
#ifndef VDI_STORE_H
#define VDI_STORE_H

#include <vedette/store.h>

#include "base.h"

/* E-450: entries per list; a nested transaction has what its parent left. */
#define VDI_TXN_OPS_MAX 128
#define VDI_TXN_DEPTH_MAX 8
/* All operations of a transaction and its nested ones together, both branches. Ours: upstream bounds only the
 * size of the message. */
#define VDI_TXN_OPS_TOTAL_MAX 4096

/* E-501. */
#define VDI_LEASE_TTL_MIN_S 2
#define VDI_LEASE_TTL_MAX_S 9000000000

/* VD_INVALID_ARGUMENT or VD_TOO_BIG, with a sentence. */
VDI_MUST_USE vd_status vdi_store_check_range(const struct vd_range_request *request, struct vd_error *reterr);
/* E-440, E-450: shapes and bounds of everything, nested transactions and both branches included. */
VDI_MUST_USE vd_status vdi_store_check_txn(const struct vd_txn_request *request, struct vd_error *reterr);
/* E-451: VD_DUPLICATE_KEY. The request has passed vdi_store_check_txn. */
VDI_MUST_USE vd_status vdi_store_check_duplicates(const struct vd_txn_request *request,
						  struct vd_error	      *reterr);
/* VD_INTERNAL for an answer that says that there is more and has no key: whoever reads on behind its
 * last key could only stop early, or begin again. */
VDI_MUST_USE vd_status vdi_store_check_page(const struct vd_range_result *result, struct vd_error *reterr);
/* E-311: an empty interval or a negative start. */
VDI_MUST_USE vd_status vdi_store_check_watch(const struct vd_store_watch_request *request,
					     struct vd_error			 *reterr);

#endif
