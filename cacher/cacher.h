/* The private interface of a Cacher, used by the API server and the informer. */
#ifndef VDI_CACHER_H
#define VDI_CACHER_H

#include <vedette/cacher.h>

#include "cacher_state.h"

/* Declares that nothing changes after revision, or that no client needs such changes. As soon as the cache
 * has reached revision it stops taking events from the store, and each watch, including one that opens later,
 * ends with VD_CLOSED when it has delivered all cached events; its lag limits and its deadline still apply.
 * Reads continue. Over a store that cannot prove progress, a cache without objects counts as having reached
 * it. done is called once, on the cacher's actor: when the last watch has ended, or when the cacher is closed
 * before that. Any thread; call once. */
void vdi_cacher_drain(struct vd_cacher *cacher, vd_rev revision, void (*done)(void *arg), void *arg);
/* Start revision of a watch with initial events for a receiver that tolerates an initial state from the past:
 * VD_REVISION_UNSET, the newest state; over a store that cannot prove progress VD_REVISION_ANY, the state of
 * the cache, because such a store refuses the former. client-go's reflector makes the same choice. Any
 * thread. */
vd_rev vdi_cacher_initial_revision(const struct vd_cacher *cacher);
/* vd_cacher_create on the condition that guard, an object of another cacher of the same store (borrowed for
 * the call), is unchanged in the store; otherwise VD_CONFLICT. */
VDI_MUST_USE vd_status vdi_cacher_create_beside(struct vd_cacher *cacher, struct vd_object *guard,
						struct vd_bytes namespace_name, struct vd_bytes name,
						struct vd_bytes value, int64_t ttl_s, vd_object_fn done,
						void *arg);
/* vd_cacher_list for a receiver that uses vdi_list_is_long. VD_AGAIN: the list has to be read from the store,
 * which is slow, and may_read_store is false; nothing was started. */
VDI_MUST_USE vd_status vdi_cacher_list_pending(struct vd_cacher		    *cacher,
					       const struct vd_list_options *options, bool may_read_store,
					       vd_list_fn done, void *arg, struct vd_error *reterr);

#endif
