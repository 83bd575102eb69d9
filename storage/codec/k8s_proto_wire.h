/* Reader of the fields of a protobuf message. Pure functions on borrowed bytes; never read beyond them. */
#ifndef VDI_K8S_PROTO_WIRE_H
#define VDI_K8S_PROTO_WIRE_H

#include "base.h"
#include "varint.h"

enum vdi_k8s_wire {
	VDI_K8S_WIRE_VARINT = 0,
	VDI_K8S_WIRE_64 = 1,
	VDI_K8S_WIRE_BYTES = 2,
	VDI_K8S_WIRE_GROUP = 3,
	VDI_K8S_WIRE_GROUP_END = 4,
	VDI_K8S_WIRE_32 = 5
};

/* A field on the wire. */
struct vdi_k8s_part {
	uint32_t	  number;
	enum vdi_k8s_wire wire;
	uint64_t	  integer; /* varint */
	struct vd_bytes	  bytes;   /* VDI_K8S_WIRE_BYTES */
};

/* Moves *at behind the group that starts there. false: it has no end, or is nested too deeply. */
bool vdi_k8s_skip_group(struct vd_bytes bytes, size_t *at);

/* false: no complete varint. */
static inline bool vdi_k8s_read_varint(struct vd_bytes bytes, size_t *at, uint64_t *ret_value)
{
	const uint8_t *data = bytes.data;
	size_t	       size = vdi_varint_read(data + *at, data + bytes.size, ret_value);

	*at += size;
	return size > 0;
}

static inline bool vdi_k8s_read_tag(struct vd_bytes bytes, size_t *at, uint32_t *ret_number,
				    enum vdi_k8s_wire *ret_wire)
{
	uint64_t tag;

	if (!vdi_k8s_read_varint(bytes, at, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
		return false;
	*ret_number = (uint32_t) (tag >> 3);
	*ret_wire = (enum vdi_k8s_wire)(tag & 7);
	return true;
}

/* Reads the field at *at and moves behind it. false: not a valid field. */
static inline bool vdi_k8s_read_part(struct vd_bytes bytes, size_t *at, struct vdi_k8s_part *ret_part)
{
	uint64_t size;

	ret_part->bytes = VD_BYTES_NONE;
	ret_part->integer = 0;
	if (!vdi_k8s_read_tag(bytes, at, &ret_part->number, &ret_part->wire))
		return false;
	switch (ret_part->wire) {
	case VDI_K8S_WIRE_VARINT: return vdi_k8s_read_varint(bytes, at, &ret_part->integer);
	case VDI_K8S_WIRE_BYTES:
		if (!vdi_k8s_read_varint(bytes, at, &size) || size > bytes.size - *at)
			return false;
		ret_part->bytes = (struct vd_bytes) { (const char *) bytes.data + *at, (size_t) size };
		*at += (size_t) size;
		return true;
	case VDI_K8S_WIRE_64:
	case VDI_K8S_WIRE_32:
		size = ret_part->wire == VDI_K8S_WIRE_64 ? 8 : 4;
		if (bytes.size - *at < size)
			return false;
		*at += (size_t) size;
		return true;
	case VDI_K8S_WIRE_GROUP: return vdi_k8s_skip_group(bytes, at);
	default: return false;
	}
}

#endif
