/* Less frequent messages, through protobuf-c with the library's allocator. Any thread. */
#ifndef VDI_ETCD_PROTO_H
#define VDI_ETCD_PROTO_H

#include <protobuf-c/protobuf-c.h>

#include <vedette/etcd.h>

#include "base.h"
#include "buffer.h"

/* Larger messages are VD_TOO_BIG, because protobuf-c may need dozens of times their size. */
#define VDI_ETCD_PROTO_SIZE_MAX ((size_t) 64 << 20)

/* Packs message into buffer, replacing its content. VD_NOMEM, VD_TOO_BIG. */
VDI_MUST_USE vd_status vdi_etcd_proto_pack(const ProtobufCMessage *message, struct vdi_buffer *buffer);
/* Unpacks a message. VD_CORRUPT, VD_NOMEM, VD_TOO_BIG, with error set. Only for message types that do not
 * contain themselves, because protobuf-c recurses without a limit. */
VDI_MUST_USE vd_status vdi_etcd_proto_unpack(const ProtobufCMessageDescriptor *descriptor,
					     struct vd_bytes bytes, ProtobufCMessage **ret_message,
					     struct vd_etcd_error *error);
struct Etcdserverpb__ResponseHeader;
/* theirs NULL: zeros, for responses without a header. */
void vdi_etcd_proto_header(const struct Etcdserverpb__ResponseHeader *theirs, struct vd_etcd_header *header);
/* NULL is fine. */
void vdi_etcd_proto_free(ProtobufCMessage *message);

#endif
