/* Base of stores that wrap another store: operations that forward to the inner store unchanged. A wrapping
 * store embeds struct vdi_forward_store as its first member and puts these functions into its struct
 * vd_store_ops for each operation to which it adds nothing.
 *
 * Each function has the contract of its operation in vedette/store.h. Watches and long reads opened by
 * vdi_forward_watch and vdi_forward_stream belong to the inner store, which serves all calls on them.
 */
#ifndef VDI_FORWARD_STORE_H
#define VDI_FORWARD_STORE_H

#include <vedette/store.h>

#include "base.h"

struct vdi_forward_store {
	struct vd_store	 base;
	struct vd_store *inner; /* fixed at creation */
};

VDI_MUST_USE vd_status vdi_forward_range(struct vd_store *store, const struct vd_range_request *request,
					 vd_range_fn done, void *arg);
VDI_MUST_USE vd_status vdi_forward_txn(struct vd_store *store, const struct vd_txn_request *request,
				       vd_txn_fn done, void *arg);
VDI_MUST_USE vd_status vdi_forward_compact(struct vd_store *store, vd_rev revision, bool physical,
					   vd_done_fn done, void *arg);
VDI_MUST_USE vd_status vdi_forward_lease_grant(struct vd_store *store, int64_t id, int64_t ttl_s,
					       vd_lease_fn done, void *arg);
VDI_MUST_USE vd_status vdi_forward_lease_revoke(struct vd_store *store, int64_t id, vd_done_fn done,
						void *arg);
VDI_MUST_USE vd_status vdi_forward_lease_keep_alive(struct vd_store *store, int64_t id, vd_lease_fn done,
						    void *arg);
VDI_MUST_USE vd_status vdi_forward_lease_time_to_live(struct vd_store *store, int64_t id, bool keys,
						      vd_lease_fn done, void *arg);
VDI_MUST_USE vd_status vdi_forward_lease_list(struct vd_store *store, vd_lease_list_fn done, void *arg);
VDI_MUST_USE vd_status vdi_forward_watch(struct vd_store *store, const struct vd_store_watch_request *request,
					 struct vd_store_watch **ret_watch, struct vd_error *reterr);
VDI_MUST_USE vd_status vdi_forward_stream(struct vd_store		       *store,
					  const struct vd_store_stream_request *request,
					  struct vd_store_stream	      **ret_stream);
VDI_MUST_USE vd_status vdi_forward_status(struct vd_store *store, struct vd_store_status *ret_status);
void		       vdi_forward_shutdown(struct vd_store *store);
void vdi_forward_dump(struct vd_store *store, void (*write)(void *arg, struct vd_bytes json), void *arg);

#endif
