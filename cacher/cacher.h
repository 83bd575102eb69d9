/* What the server and the informer use of a Cacher beyond the public interface. */
#ifndef VDI_CACHER_H
#define VDI_CACHER_H

#include <vedette/cacher.h>

#include "cacher_state.h"

/* Nothing changes any more behind revision, or nobody wants to know: each watch, also one that opens from now
 * on, ends with VD_CLOSED when it has been told all that the cache has once that is as new as revision, which
 * then takes nothing more from the store; how long it may take for it is a matter of its lag limits and its
 * deadline, as ever. Reads go on. Over a store that cannot prove progress a cache without objects counts as
 * new enough. done is called once, on the cacher's actor: when the last watch has gone, or when the cacher is
 * closed before. Any thread; once. */
void vdi_cacher_drain(struct vd_cacher *cacher, vd_rev revision, void (*done)(void *arg), void *arg);
/* vd_cacher_create, but only while guard, an object of another cacher of the same store (lent for the call),
 * is as it is: else VD_CONFLICT. */
VDI_MUST_USE vd_status vdi_cacher_create_beside(struct vd_cacher *cacher, struct vd_object *guard,
						struct vd_bytes namespace_name, struct vd_bytes name,
						struct vd_bytes value, int64_t ttl_s, vd_object_fn done,
						void *arg);
/* vd_cacher_list for a receiver that asks vdi_list_is_long. VD_AGAIN: the list comes from the store, which
 * takes long, and may_read_store is false; nothing was begun. */
VDI_MUST_USE vd_status vdi_cacher_list_pending(struct vd_cacher		    *cacher,
					       const struct vd_list_options *options, bool may_read_store,
					       vd_list_fn done, void *arg, struct vd_error *reterr);

#endif
