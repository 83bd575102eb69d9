/* Converts messages and metadata to and from core's types, and core's slices to text. Any thread; does not
 * block. */
#ifndef VDI_GRPC_MESSAGE_H
#define VDI_GRPC_MESSAGE_H

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>

#include "rpc_client.h"
#include "rpc_server.h"

/* Copies bytes into our own memory, which core releases on any thread. NULL: out of memory. Freed with
 * grpc_byte_buffer_destroy. */
grpc_byte_buffer *vdi_grpc_message_pack(struct vd_bytes bytes);
/* Copies the buffer into one piece, so that the receiver holds no memory of core. Always destroys the buffer.
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_grpc_message_unpack(grpc_byte_buffer *buffer, struct vdi_rpc_message *ret_message);

/* blob may be NULL; core references it until it has sent the bytes. */
grpc_byte_buffer *vdi_grpc_blob_pack(struct vd_bytes head, struct vdi_rpc_blob *blob);

/* Returns true if core accepts this pair. */
bool vdi_grpc_metadata_is_legal(const char *key, struct vd_bytes value);

/* The slice as text in one piece: in room if it fits, else allocated (cut to the size of room if out of
 * memory). */
struct vdi_grpc_text {
	char *text; /* NUL-terminated */
	char  room[512];
};
void vdi_grpc_text_init(struct vdi_grpc_text *text, grpc_slice slice);
void vdi_grpc_text_fini(struct vdi_grpc_text *text);

static inline struct vd_bytes vdi_grpc_slice_bytes(const grpc_slice *slice)
{
	return (struct vd_bytes) { GRPC_SLICE_START_PTR(*slice), GRPC_SLICE_LENGTH(*slice) };
}

#endif
