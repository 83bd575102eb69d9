/* Construction of records without the size limits of vd_kv_new, for records received from a peer, which may
 * have other limits. */
#ifndef VDI_KV_H
#define VDI_KV_H

#include <vedette/store.h>

/* Returns a record with one reference, all numbers 0, and uninitialized room for the key followed by the
 * value in data. NULL: no memory. */
struct vd_kv *vdi_kv_alloc(uint32_t key_size, uint32_t value_size);

#endif
