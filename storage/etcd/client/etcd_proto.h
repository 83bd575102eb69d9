/* The rare messages, through protobuf-c and our allocator. Any thread. */
#ifndef VDI_ETCD_PROTO_H
#define VDI_ETCD_PROTO_H

#include <protobuf-c/protobuf-c.h>

#include <vedette/etcd.h>

#include "base.h"
#include "buffer.h"

/* Larger ones are VD_TOO_BIG: protobuf-c may need a few dozen times the bytes. */
#define VDI_ETCD_PROTO_SIZE_MAX ((size_t) 64 << 20)

/* Packs message into buffer, whose content is forgotten. VD_NOMEM, VD_TOO_BIG. */
VDI_MUST_USE vd_status vdi_etcd_proto_pack(const ProtobufCMessage *message, struct vdi_buffer *buffer);
/* VD_CORRUPT, VD_NOMEM, VD_TOO_BIG, with error set. Only for messages that do not nest within themselves:
 * protobuf-c recurses without a limit. */
VDI_MUST_USE vd_status vdi_etcd_proto_unpack(const ProtobufCMessageDescriptor *descriptor,
					     struct vd_bytes bytes, ProtobufCMessage **ret_message,
					     struct vd_etcd_error *error);
struct Etcdserverpb__ResponseHeader;
/* theirs NULL: zeros (E-123). */
void vdi_etcd_proto_header(const struct Etcdserverpb__ResponseHeader *theirs, struct vd_etcd_header *header);
/* NULL is fine. */
void vdi_etcd_proto_free(ProtobufCMessage *message);

#endif
