/* Messages on their way into gRPC's core and out of it, metadata, and core's words as text. Any thread;
 * nothing blocks. */
#ifndef VDI_GRPC_MESSAGE_H
#define VDI_GRPC_MESSAGE_H

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>

#include "rpc_client.h"
#include "rpc_server.h"

/* A copy in our memory, which core gives back on whatever thread it likes. NULL: no memory. For
 * grpc_byte_buffer_destroy. */
grpc_byte_buffer *vdi_grpc_message_pack(struct vd_bytes bytes);
/* A copy in one piece, so that nobody who holds it holds memory of core's. Destroys the buffer, always.
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_grpc_message_unpack(grpc_byte_buffer *buffer, struct vdi_rpc_message *ret_message);

/* The blob may be NULL, and is referred to until core is done with the bytes. */
grpc_byte_buffer *vdi_grpc_blob_pack(struct vd_bytes head, struct vdi_rpc_blob *blob);

/* Whether core would take this pair. */
bool vdi_grpc_metadata_is_legal(const char *key, struct vd_bytes value);

/* The slice as text in one piece: into room if it fits, else allocated (cut to room's size when there is no
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
