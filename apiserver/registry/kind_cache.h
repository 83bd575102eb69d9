/* The cache of one kind: a cacher and its codec, shared by all versions and all successive states of a
 * resource.
 *
 * Reference-counted; the last reference closes the cacher, and the codec is freed once the cacher is closed.
 * A cache can be ended earlier: its watches end, and calls of its cacher return VD_CLOSED or VD_NOT_READY,
 * but the pointers stay valid for holders of a reference. Any thread; nothing blocks.
 */
#ifndef VDI_KIND_CACHE_H
#define VDI_KIND_CACHE_H

#include <stdatomic.h>

#include "resources.h"

struct vdi_kinds;
struct vdi_garbage_kind;

struct vdi_kind_cache {
	/* Fixed at creation. */
	struct vdi_kinds *kinds;
	struct vd_codec	 *codec;
	struct vd_cacher *cacher; /* has a reference of its own, besides the one that closing drops */

	_Atomic uint32_t users;
	_Atomic uint32_t create_count; /* create requests in flight, from dispatch to response */
	atomic_bool	 is_ended;

	struct vdi_garbage_kind *collected; /* the garbage collector's watch of the kind; NULL: none */

	/* Owned by the code that retires the cache (definitions.c). */
	struct vdi_kind_cache *retired_next;
	vd_rev		       last_revision; /* its watches receive events up to here before they end */
	bool		       is_draining;
};

/* Makes a cache for the keys, scope and trigger of resource, with these fields. Counted in kinds until it is
 * freed. Returns the statuses of vd_cacher_new. */
VDI_MUST_USE vd_status vdi_kind_cache_new(struct vdi_kinds *kinds, struct vdi_resource *resource,
					  const struct vd_field_spec *fields, size_t field_count,
					  struct vdi_kind_cache **ret_cache, struct vd_error *reterr);
/* NULL is fine in all; unref returns NULL. */
struct vdi_kind_cache *vdi_kind_cache_ref(struct vdi_kind_cache *cache);
struct vdi_kind_cache *vdi_kind_cache_unref(struct vdi_kind_cache *cache);
/* Closes the cacher now. */
void vdi_kind_cache_end(struct vdi_kind_cache *cache);
/* Closes the cacher when all watches have received the events up to last_revision (vdi_cacher_drain), then
 * wakes the kinds' actor. Call once, from the code that set last_revision; it must hold a reference until
 * is_ended. vdi_kind_cache_end closes at once meanwhile. */
void vdi_kind_cache_drain(struct vdi_kind_cache *cache);
/* Gives resource this cache, with a reference of its own. Call before resource is shared. */
void vdi_kind_cache_bind(struct vdi_kind_cache *cache, struct vdi_resource *resource);

#endif
