/* Validation of requests, shared by the checked front of vedette/store.h and the implementations.
 *
 * All functions may be called from any thread; none blocks or allocates. A request that passes is within
 * every documented bound, so implementations need not check again.
 */
#ifndef VDI_STORE_H
#define VDI_STORE_H

#include <vedette/store.h>

#include "base.h"

/* Entries per list of a transaction (etcd's --max-txn-ops); a nested transaction gets the rest of its
 * parent's. */
#define VDI_TXN_OPS_MAX 128
#define VDI_TXN_DEPTH_MAX 8
/* Operations of a transaction and its nested ones together, in both branches. A limit of ours: upstream only
 * limits the size of the message. */
#define VDI_TXN_OPS_TOTAL_MAX 4096

/* Bounds of a lease's TTL, as in etcd (a smaller TTL is raised to the minimum). */
#define VDI_LEASE_TTL_MIN_S 2
#define VDI_LEASE_TTL_MAX_S 9000000000

/* Returns VD_INVALID_ARGUMENT or VD_TOO_BIG, with a message. */
VDI_MUST_USE vd_status vdi_store_check_range(const struct vd_range_request *request, struct vd_error *reterr);
/* Checks shapes and bounds of compares and operations, including both branches and nested transactions. */
VDI_MUST_USE vd_status vdi_store_check_txn(const struct vd_txn_request *request, struct vd_error *reterr);
/* Returns VD_DUPLICATE_KEY if a branch puts a key twice, or puts and deletes it. The request has passed
 * vdi_store_check_txn. */
VDI_MUST_USE vd_status vdi_store_check_duplicates(const struct vd_txn_request *request,
						  struct vd_error	      *reterr);
/* Returns VD_INTERNAL for a page that reports more records but contains none: a reader that continues after
 * the last key would stop early or start over. */
VDI_MUST_USE vd_status vdi_store_check_page(const struct vd_range_result *result, struct vd_error *reterr);
/* Returns VD_INVALID_ARGUMENT or VD_TOO_BIG, for example if the range is empty, the start revision is
 * negative, or ready is NULL. */
VDI_MUST_USE vd_status vdi_store_check_watch(const struct vd_store_watch_request *request,
					     struct vd_error			 *reterr);

#endif
