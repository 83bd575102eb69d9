/* Parses the envelope around an object, and the metadata of an object without a table. */
#include "json_text.h"
#include "k8s_proto.h"
#include "k8s_proto_wire.h"

#define SHOWN_MAX 60

/* Counts the nesting instead of recursing. */
bool vdi_k8s_skip_group(struct vd_bytes bytes, size_t *at)
{
	for (unsigned depth = 1; depth > 0;) {
		uint64_t	  value;
		uint32_t	  number;
		enum vdi_k8s_wire wire;

		if (!vdi_k8s_read_tag(bytes, at, &number, &wire))
			return false;
		switch (wire) {
		case VDI_K8S_WIRE_VARINT:
			if (!vdi_k8s_read_varint(bytes, at, &value))
				return false;
			break;
		case VDI_K8S_WIRE_BYTES:
			if (!vdi_k8s_read_varint(bytes, at, &value) || value > bytes.size - *at)
				return false;
			*at += (size_t) value;
			break;
		case VDI_K8S_WIRE_64:
		case VDI_K8S_WIRE_32:
			if (bytes.size - *at < (wire == VDI_K8S_WIRE_64 ? 8u : 4u))
				return false;
			*at += wire == VDI_K8S_WIRE_64 ? 8 : 4;
			break;
		case VDI_K8S_WIRE_GROUP:
			if (++depth > VDI_K8S_PROTO_DEPTH_MAX)
				return false;
			break;
		case VDI_K8S_WIRE_GROUP_END: depth--; break;
		default: return false;
		}
	}
	return true;
}

bool vdi_k8s_proto_is(struct vd_bytes value)
{
	return value.size >= 4 && memcmp(value.data, "k8s", 4) == 0;
}

static bool read_type_meta(struct vd_bytes bytes, struct vdi_k8s_envelope *envelope)
{
	struct vdi_k8s_part part;

	for (size_t at = 0; at < bytes.size;) {
		if (!vdi_k8s_read_part(bytes, &at, &part) ||
		    (part.number <= 2 && part.wire != VDI_K8S_WIRE_BYTES))
			return false;
		if (part.number == 1)
			envelope->api_version = part.bytes;
		else if (part.number == 2)
			envelope->kind = part.bytes;
	}
	return true;
}

vd_status vdi_k8s_proto_open(struct vd_bytes value, struct vdi_k8s_envelope *ret_envelope,
			     struct vd_error *reterr)
{
	struct vdi_k8s_envelope envelope = { .raw = VD_BYTES_NONE };
	struct vd_bytes		encoding = VD_BYTES_NONE, type = VD_BYTES_NONE;
	struct vd_bytes		bytes;
	struct vdi_k8s_part	part;

	if (!vdi_k8s_proto_is(value))
		return vd_error_set(
			reterr, VD_BAD_REQUEST,
			"malformed protobuf: it does not begin with Kubernetes' prefix \"k8s\\0\"");
	if (value.size > VDI_K8S_PROTO_SIZE_MAX)
		return vd_error_set(reterr, VD_TOO_BIG, "more than %zu bytes of protobuf",
				    VDI_K8S_PROTO_SIZE_MAX);
	bytes = (struct vd_bytes) { (const char *) value.data + 4, value.size - 4 };
	for (size_t at = 0; at < bytes.size;) {
		if (!vdi_k8s_read_part(bytes, &at, &part) ||
		    (part.number <= 4 && part.wire != VDI_K8S_WIRE_BYTES) ||
		    (part.number == 1 && !read_type_meta(part.bytes, &envelope)))
			return vd_error_set(reterr, VD_BAD_REQUEST,
					    "malformed protobuf: the envelope is damaged or truncated");
		if (part.number == 2)
			envelope.raw = part.bytes;
		else if (part.number == 3)
			encoding = part.bytes;
		else if (part.number == 4)
			type = part.bytes;
	}
	if (encoding.size || (type.size && !vd_bytes_equal(type, vd_bytes_of(VDI_K8S_PROTO_TYPE))))
		return vd_error_set(
			reterr, VD_BAD_REQUEST,
			"unsupported content of the protobuf envelope: type \"%.*s\", encoding \"%.*s\"",
			(int) vdi_k8s_proto_shown(type).size, (const char *) type.data,
			(int) vdi_k8s_proto_shown(encoding).size, (const char *) encoding.data);
	*ret_envelope = envelope;
	return VD_OK;
}

void vdi_k8s_proto_names(struct vd_bytes raw, struct vd_bytes *ret_name, struct vd_bytes *ret_namespace)
{
	struct vd_bytes	    metadata = VD_BYTES_NONE;
	struct vdi_k8s_part part;

	*ret_name = *ret_namespace = VD_BYTES_NONE;
	for (size_t at = 0; at < raw.size && vdi_k8s_read_part(raw, &at, &part);)
		if (part.number == 1 && part.wire == VDI_K8S_WIRE_BYTES)
			metadata = part.bytes;
	for (size_t at = 0; at < metadata.size && vdi_k8s_read_part(metadata, &at, &part);) {
		if (part.wire != VDI_K8S_WIRE_BYTES || !vdi_utf8_valid(part.bytes))
			continue;
		if (part.number == 1)
			*ret_name = part.bytes;
		else if (part.number == 3)
			*ret_namespace = part.bytes;
	}
}

struct vd_bytes vdi_k8s_proto_shown(struct vd_bytes text)
{
	const char *data = text.data;
	size_t	    size = 0;

	while (size < text.size && size < SHOWN_MAX && data[size] >= ' ' && data[size] < 0x7f)
		size++;
	return (struct vd_bytes) { data, size };
}
