/* The cache of one kind: its cacher and the codec that goes with it, shared by all versions and all editions
 * of a resource.
 *
 * Counted by reference; the last use closes the cacher, and when that is done the codec goes too. A cache can
 * be ended before: its watches end, calls of its cacher answer VD_CLOSED or VD_NOT_READY, and the pointers
 * stay good for who still uses it. Any thread; nothing blocks.
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
	struct vd_cacher *cacher; /* with a reference of its own beside the one that closing gives back */

	_Atomic uint32_t users;
	_Atomic uint32_t create_count; /* requests that create, from their dispatch to their end */
	atomic_bool	 is_ended;

	struct vdi_garbage_kind *collected; /* the garbage collector's actor; NULL: it does not watch it */

	/* Whoever lets it go (definitions.c). */
	struct vdi_kind_cache *retired_next;
	vd_rev		       last_revision; /* what its watches are to be told before they end */
	bool		       is_draining;
};

/* For the keys, the scope and the trigger of resource, and these fields. kinds counts it until it is gone.
 * What vd_cacher_new answers. */
VDI_MUST_USE vd_status vdi_kind_cache_new(struct vdi_kinds *kinds, struct vdi_resource *resource,
					  const struct vd_field_spec *fields, size_t field_count,
					  struct vdi_kind_cache **ret_cache, struct vd_error *reterr);
/* NULL is fine in all; unref returns NULL. */
struct vdi_kind_cache *vdi_kind_cache_ref(struct vdi_kind_cache *cache);
struct vdi_kind_cache *vdi_kind_cache_unref(struct vdi_kind_cache *cache);
/* Closes the cacher now. */
void vdi_kind_cache_end(struct vdi_kind_cache *cache);
/* Closes it when all watches have been told everything up to last_revision (vdi_cacher_drain), and wakes the
 * kinds' actor. Once, by whoever set last_revision, who has a use of it until it is_ended; meanwhile
 * vdi_kind_cache_end cuts it short. */
void vdi_kind_cache_drain(struct vdi_kind_cache *cache);
/* Before resource is shared: it has this cache from now on, with a use of its own. */
void vdi_kind_cache_bind(struct vdi_kind_cache *cache, struct vdi_resource *resource);

#endif
