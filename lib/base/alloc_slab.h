/* An allocator for single-threaded programs that allocate and free the same few sizes millions of times.
 * Blocks of one size are adjacent, the block freed last is allocated next, and neighbours are never inspected
 * or merged. malloc's work for that costs a replay a quarter of its time (docs/PERFORMANCE.md).
 *
 * malloc provides blocks above VDI_SLAB_BLOCK_MAX, and all blocks when the reserved address range is used up.
 * A span whose blocks are all free can serve any size; the memory returns to the system when the slab is
 * freed. Memory is bounded by the maximum of live bytes, rounded up (by at most an eighth above 128 bytes),
 * plus the free blocks in partial spans.
 */
#ifndef VDI_ALLOC_SLAB_H
#define VDI_ALLOC_SLAB_H

#include <vedette/env.h>

#include "base.h"

#define VDI_SLAB_BLOCK_MAX 4096
/* Address space, not memory. */
#define VDI_SLAB_RANGE_DEFAULT ((size_t) 64 << 30)

struct vdi_slab;

/* range_bytes: size of the address range. VD_NOMEM if the system cannot reserve it. */
VDI_MUST_USE vd_status vdi_slab_new(size_t range_bytes, struct vdi_slab **ret_slab);
/* For vd_allocator_install. Only the thread that created the slab may allocate and free with it. */
struct vd_allocator vdi_slab_allocator(struct vdi_slab *slab);
/* Bytes of the spans that contain blocks, and bytes of all spans ever used. */
size_t vdi_slab_used_bytes(const struct vdi_slab *slab);
size_t vdi_slab_peak_bytes(const struct vdi_slab *slab);
/* No block may be in use. NULL is allowed; returns NULL. */
struct vdi_slab *vdi_slab_free(struct vdi_slab *slab);

#endif
