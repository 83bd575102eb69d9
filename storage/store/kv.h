/* Making records without vd_kv_new's bounds: for what a peer holds, whose limits are not ours. */
#ifndef VDI_KV_H
#define VDI_KV_H

#include <vedette/store.h>

/* One reference, all numbers 0, room for key and value behind each other in data, not filled. NULL: no
 * memory. */
struct vd_kv *vdi_kv_alloc(uint32_t key_size, uint32_t value_size);

#endif
