/* protobuf-c returns NULL both for invalid bytes and for lack of memory; the allocator records a failed
 * allocation. */
#include "etcd_proto.h"

#include "etcd_error.h"

#include <rpc.pb-c.h>

static void *allocate(void *data, size_t size)
{
	void *memory = vdi_alloc(size);

	if (memory == NULL && data)
		*(bool *) data = true;
	return memory;
}

static void release(void *data, void *memory)
{
	vdi_free(memory);
}

vd_status vdi_etcd_proto_pack(const ProtobufCMessage *message, struct vdi_buffer *buffer)
{
	size_t size = protobuf_c_message_get_packed_size(message);
	char  *place;

	vdi_buffer_clear(buffer);
	place = vdi_buffer_reserve(buffer, VDI_MAX(size, 1));
	if (place == NULL)
		return vdi_buffer_status(buffer);
	vdi_buffer_commit(buffer, protobuf_c_message_pack(message, (uint8_t *) place));
	return VD_OK;
}

vd_status vdi_etcd_proto_unpack(const ProtobufCMessageDescriptor *descriptor, struct vd_bytes bytes,
				ProtobufCMessage **ret_message, struct vd_etcd_error *error)
{
	bool		   has_no_memory = false;
	ProtobufCAllocator allocator = { allocate, release, &has_no_memory };
	ProtobufCMessage  *message;

	if (bytes.size > VDI_ETCD_PROTO_SIZE_MAX)
		return vdi_etcd_error_set(error, VD_TOO_BIG,
					  "etcdclient: an answer of %zu bytes is too large", bytes.size);
	message = protobuf_c_message_unpack(descriptor, &allocator, bytes.size, bytes.data);
	if (message == NULL && has_no_memory)
		return vdi_etcd_error_set(error, VD_NOMEM, VDI_ETCD_NO_MEMORY_TEXT);
	if (message == NULL)
		return vdi_etcd_error_set(error, VD_CORRUPT, "the answer cannot be read: it is not a %s",
					  descriptor->name);
	*ret_message = message;
	return VD_OK;
}

void vdi_etcd_proto_header(const Etcdserverpb__ResponseHeader *theirs, struct vd_etcd_header *header)
{
	*header = (struct vd_etcd_header) { 0 };
	if (theirs)
		*header = (struct vd_etcd_header) { theirs->cluster_id, theirs->member_id, theirs->revision,
						    theirs->raft_term };
}

void vdi_etcd_proto_free(ProtobufCMessage *message)
{
	ProtobufCAllocator allocator = { allocate, release, NULL };

	if (message)
		protobuf_c_message_free_unpacked(message, &allocator);
}
