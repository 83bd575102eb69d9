/* Encoded bytes that many calls share; reference-counted, any thread. */
#ifndef VDI_RPC_BLOB_H
#define VDI_RPC_BLOB_H

#include "base.h"

struct vdi_rpc_blob;

VDI_MUST_USE vd_status vdi_rpc_blob_new(size_t size, struct vdi_rpc_blob **ret_blob, char **ret_bytes);
VDI_SHARED struct vdi_rpc_blob *vdi_rpc_blob_ref(struct vdi_rpc_blob *blob);
VDI_SHARED struct vdi_rpc_blob *vdi_rpc_blob_unref(struct vdi_rpc_blob *blob);
/* The content; borrowed while a reference is held. */
VDI_SHARED struct vd_bytes vdi_rpc_blob_bytes(const struct vdi_rpc_blob *blob);
/* NULL: 0. */
VDI_SHARED size_t vdi_rpc_blob_size(const struct vdi_rpc_blob *blob);
/* For transports that count waiting bytes: one more message with this blob waits to be written, one fewer.
 * Returns true for the first and for the last one. */
bool vdi_rpc_blob_wait(struct vdi_rpc_blob *blob);
bool vdi_rpc_blob_unwait(struct vdi_rpc_blob *blob);

#endif
