/* An allocator for a program of one thread that takes and gives back the same few sizes millions of times:
 * blocks of one size lie together, a block that was given back is the next one taken, and neighbours are
 * never looked at or joined. What malloc does there instead costs a replay a quarter of its time
 * (docs/PERFORMANCE.md).
 *
 * Blocks above VDI_SLAB_BLOCK_MAX, and all when the reserved addresses are used up, are malloc's. A span
 * whose blocks are all back serves any size again; memory goes back to the system when the slab is freed.
 * Bound: what lived at the same time, rounded up (by an eighth at most, above 128 bytes), and the spans that
 * are not full.
 */
#ifndef VDI_ALLOC_SLAB_H
#define VDI_ALLOC_SLAB_H

#include <vedette/env.h>

#include "base.h"

#define VDI_SLAB_BLOCK_MAX 4096
/* Addresses, not memory. */
#define VDI_SLAB_RANGE_DEFAULT ((size_t) 64 << 30)

struct vdi_slab;

/* range_bytes: of address space. VD_NOMEM when there is not so much of it. */
VDI_MUST_USE vd_status vdi_slab_new(size_t range_bytes, struct vdi_slab **ret_slab);
/* For vd_allocator_install. Everything taken through it is taken and given back by the thread that made the
 * slab. */
struct vd_allocator vdi_slab_allocator(struct vdi_slab *slab);
/* Bytes of the spans that hold blocks, and of all that were ever used. */
size_t vdi_slab_used_bytes(const struct vdi_slab *slab);
size_t vdi_slab_peak_bytes(const struct vdi_slab *slab);
/* No block may be in use. NULL is fine; returns NULL. */
struct vdi_slab *vdi_slab_free(struct vdi_slab *slab);

#endif
